//! Groups of terms of packed bytes that hold anything but zeros, listed for each vector of columns.

use crate::isa::{DotInstructions, DotIsa, DotKernel, PairInstructions, Simd};
use crate::matrix::MatrixSize;
use crate::zero_groups::ZeroGroup;

/// Numbers that follow the last list, so that tiles may look so many ahead.
pub(super) const AHEAD: usize = 12;

/// Part of a dense product's time that each group that is left takes, where all are left.
const GROUP_EFFORT: f64 = 1.4;

/// Share of the time of a dense product that a sparse one may be expected to take at most.
const WORTHWHILE: f64 = 0.9;

/// Numbers of the groups that hold anything but zeros, for each vector of columns.
#[derive(Clone, Debug)]
pub(super) struct FullGroups {
    /// Start of the list of each vector, and end of the last one.
    starts: Vec<u32>,
    groups: Vec<u32>,
}

/// The same as tasks see them.
#[derive(Clone, Copy)]
pub(super) struct GroupLists {
    starts: *const u32,
    groups: *const u32,
}

// SAFETY: a read-only view of lists that the caller of the product holds meanwhile.
unsafe impl Send for GroupLists {}
// SAFETY: as for Send.
unsafe impl Sync for GroupLists {}

/// Groups of one vector of columns.
#[derive(Clone, Copy)]
pub(super) struct GroupList {
    pub(super) groups: *const u32,
    pub(super) count: usize,
}

/// How a set of instructions multiplies groups.
#[derive(Clone, Copy)]
struct ListForm {
    group: ZeroGroup,
    /// Vectors of a panel.
    vectors: usize,
    /// True if it multiplies pairs of rows, for which there are no lists.
    pairs: bool,
}

struct ListFormQuery;

impl DotKernel for ListFormQuery {
    type Output = ListForm;
    #[inline(always)]
    fn run<D: DotInstructions>(self, _: D) -> ListForm {
        ListForm {
            group: ZeroGroup { terms: D::GROUP, columns: D::S::LANES },
            vectors: D::TILE_VECTORS,
            pairs: <D::Pairs as PairInstructions>::PRESENT,
        }
    }
}

/// Returns the groups of zeros that products of bytes pass over.
///
/// # Errors
/// Fails with the reason where the instructions have no such kernel.
pub fn zero_group(dot: DotIsa) -> Result<ZeroGroup, String> {
    let form = dot.run(ListFormQuery);
    #[cfg(target_arch = "x86_64")]
    let tiles = matches!(dot, DotIsa::Amx(..));
    #[cfg(not(target_arch = "x86_64"))]
    let tiles = false;
    if form.pairs || tiles {
        return Err(format!("{} multiplies whole tiles, zeros among them", dot.name()));
    }
    Ok(form.group)
}

/// Returns the share of a dense product's time that one takes which passes over zeros; `None` where that
/// is not worth it. `full` is the share of groups that hold anything else.
#[must_use]
pub fn sparse_share(full: f64) -> Option<f64> {
    Some(GROUP_EFFORT * full).filter(|share| *share < WORTHWHILE)
}

impl FullGroups {
    /// Lists the groups of panels that are packed for some instructions.
    ///
    /// `None` where there is no kernel for them, or where numbers pass 32 bits.
    pub(super) fn of(dot: DotIsa, size: MatrixSize, panels: &[u8]) -> Option<Self> {
        zero_group(dot).ok()?;
        let ListForm { group, vectors, .. } = dot.run(ListFormQuery);
        let groups = size.rows.div_ceil(group.terms);
        let bytes = group.terms * group.columns;
        let mut found = Self { starts: vec![0], groups: Vec::new() };
        for vector in 0..size.columns.div_ceil(group.columns) {
            let (panel, inside) = (vector / vectors, vector % vectors);
            for number in 0..groups {
                let at = ((panel * groups + number) * vectors + inside) * bytes;
                if panels.get(at..at + bytes)?.iter().any(|byte| *byte != 0) {
                    found.groups.push(u32::try_from(number).ok()?);
                }
            }
            found.starts.push(u32::try_from(found.groups.len()).ok()?);
        }
        found.groups.extend([0; AHEAD]);
        Some(found)
    }

    /// Memory held, in bytes.
    pub(super) fn size_bytes(&self) -> usize {
        size_of_val(&self.starts[..]) + size_of_val(&self.groups[..])
    }

    pub(super) fn lists(&self) -> GroupLists {
        GroupLists { starts: self.starts.as_ptr(), groups: self.groups.as_ptr() }
    }
}

impl GroupLists {
    /// The list of a vector of columns.
    ///
    /// # Safety
    /// The matrix has the vector.
    #[inline(always)]
    pub(super) unsafe fn list(&self, vector: usize) -> GroupList {
        // SAFETY: the caller vouches for the vector.
        unsafe {
            let start = *self.starts.add(vector) as usize;
            let end = *self.starts.add(vector + 1) as usize;
            GroupList { groups: self.groups.add(start), count: end - start }
        }
    }
}
