//! A node of a tree in as few bytes as it fits.

/// A node that is read without branches: a branch asks `from <= x <= to`, and its two children lie
/// side by side, the one for no first; a leaf answers no to every question and is its own child.
pub(super) trait BranchlessNode: Copy + Send + Sync + 'static {
    /// Returns whether a node with these numbers fits.
    fn fits(feature: u32, from: f32, child: usize) -> bool;

    /// Makes a node.
    fn new(feature: u32, from: f32, to: f32, child: usize, missing_is_yes: bool) -> Self;

    /// The feature that it asks for.
    fn feature(self) -> usize;

    /// The child for this feature. Without `MISSING`, a NaN is answered with no.
    fn next<const MISSING: bool>(self, x: f32) -> u32;
}

/// Eight bytes: the end of the range, which has no beginning, 15 bits of the feature and one for NaN,
/// 16 bits of the child.
#[derive(Clone, Copy)]
pub(super) struct CompactNode(u64);

impl BranchlessNode for CompactNode {
    fn fits(feature: u32, from: f32, child: usize) -> bool {
        feature < 1 << 15 && from == f32::NEG_INFINITY && child < 1 << 16
    }

    fn new(feature: u32, _: f32, to: f32, child: usize, missing_is_yes: bool) -> Self {
        let rest = feature | u32::from(missing_is_yes) << 15;
        Self(u64::from(to.to_bits()) | u64::from(rest) << 32 | (child as u64) << 48)
    }

    #[inline(always)]
    fn feature(self) -> usize {
        (self.0 >> 32) as usize & 0x7fff
    }

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "the lowest 32 bits")]
    fn next<const MISSING: bool>(self, x: f32) -> u32 {
        let mut yes = u32::from(x <= f32::from_bits(self.0 as u32));
        if MISSING {
            yes |= (self.0 >> 47) as u32 & u32::from(x.is_nan());
        }
        (self.0 >> 48) as u32 + yes
    }
}

/// Sixteen bytes, for many features, large trees and any range.
#[derive(Clone, Copy)]
pub(super) struct WideNode {
    from: f32,
    to: f32,
    /// With a bit for NaN.
    feature: u32,
    child: u32,
}

impl BranchlessNode for WideNode {
    fn fits(feature: u32, _: f32, child: usize) -> bool {
        feature < 1 << 31 && u32::try_from(child).is_ok_and(|child| child < u32::MAX)
    }

    #[allow(clippy::cast_possible_truncation, reason = "`fits` was asked before")]
    fn new(feature: u32, from: f32, to: f32, child: usize, missing_is_yes: bool) -> Self {
        let feature = feature | u32::from(missing_is_yes) << 31;
        Self { from, to, feature, child: child as u32 }
    }

    #[inline(always)]
    fn feature(self) -> usize {
        (self.feature & !(1 << 31)) as usize
    }

    #[inline(always)]
    fn next<const MISSING: bool>(self, x: f32) -> u32 {
        let mut yes = u32::from(x <= self.to) & u32::from(x >= self.from);
        if MISSING {
            yes |= self.feature >> 31 & u32::from(x.is_nan());
        }
        self.child + yes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walks<N: BranchlessNode>() {
        for missing in [false, true] {
            let node = N::new(1234, f32::NEG_INFINITY, -2.5, 4321, missing);
            assert_eq!(node.feature(), 1234);
            assert_eq!(node.next::<true>(-2.5), 4322);
            assert_eq!(node.next::<false>(-2.4), 4321);
            assert_eq!(node.next::<true>(f32::NAN), 4321 + u32::from(missing));
            assert_eq!(node.next::<false>(f32::NAN), 4321);
            assert_eq!(node.next::<false>(f32::NEG_INFINITY), 4322);
        }
        let leaf = N::new(0, f32::NEG_INFINITY, f32::NAN, 7, false);
        for x in [0.0, f32::NAN, f32::NEG_INFINITY] {
            assert_eq!((leaf.next::<true>(x), leaf.next::<false>(x)), (7, 7));
        }
    }

    #[test]
    fn both_forms_answer_alike() {
        walks::<CompactNode>();
        walks::<WideNode>();
        let open = f32::NEG_INFINITY;
        assert!(CompactNode::fits(32_767, open, 65_535) && !CompactNode::fits(0, 0.0, 0));
        assert!(!CompactNode::fits(32_768, open, 0) && !CompactNode::fits(0, open, 65_536));
        let equal = WideNode::new(5, 1.5, 1.5, 8, true);
        assert_eq!([1.0, 1.5, 2.0, f32::NAN].map(|x| equal.next::<true>(x)), [8, 9, 8, 9]);
    }
}
