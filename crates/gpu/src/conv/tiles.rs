//! Tiles of products of weights and windows, and the layout of weights that they read.

use super::node::ConvNode;

/// Sizes of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvTiles {
    /// Channels of the result that a workgroup computes.
    pub(super) bm: usize,
    /// Pixels that it computes.
    pub(super) bn: usize,
    /// Terms that it holds at a time.
    pub(super) bk: usize,
    /// Channels that a thread computes.
    pub(super) tm: usize,
}

/// The tiles to choose from: wide ones, and one for few channels.
pub const CONFIGS: &[ConvTiles] = &[
    ConvTiles { bm: 64, bn: 64, bk: 16, tm: 4 },
    ConvTiles { bm: 128, bn: 64, bk: 16, tm: 8 },
    ConvTiles { bm: 32, bn: 64, bk: 16, tm: 4 },
];

/// Terms are filled up to a multiple of this, and channels to the tile's.
const K_STEP: usize = 32;

impl ConvTiles {
    /// The tile for so many channels in a group. Weights are laid out for it.
    pub(super) fn for_channels(m: usize) -> Self {
        match m {
            ..=32 => CONFIGS[2],
            m if m.is_multiple_of(128) => CONFIGS[1],
            _ => CONFIGS[0],
        }
    }

    /// Returns whether the tile can read weights in this layout.
    pub(super) fn reads(&self, packing: &WeightPacking) -> bool {
        packing.m_padded.is_multiple_of(self.bm) && packing.k_padded.is_multiple_of(self.bk)
    }

    /// Channels and pixels.
    pub(super) fn tile(&self) -> [usize; 2] {
        [self.bm, self.bn]
    }
}

/// Layout of weights on the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct WeightPacking {
    pub(super) m: usize,
    pub(super) m_padded: usize,
    pub(super) k: usize,
    pub(super) k_padded: usize,
    pub(super) places: usize,
    pub(super) groups: usize,
}

impl WeightPacking {
    pub(super) fn of(convolution: &ConvNode, weights: &[usize]) -> Result<Self, String> {
        let (m, k, places) = convolution.product(weights)?;
        let config = ConvTiles::for_channels(m);
        let m_padded = m.next_multiple_of(config.bm);
        let k_padded = k.next_multiple_of(K_STEP);
        Ok(Self { m, m_padded, k, k_padded, places, groups: convolution.groups() })
    }

    pub(super) fn elements(&self) -> usize {
        self.groups * self.k_padded * self.m_padded
    }

    /// The place in the tensor of each element, and none for those that fill up.
    pub(super) fn sources(self, transposed: bool) -> impl Iterator<Item = Option<usize>> {
        let channels = self.k / self.places.max(1);
        (0..self.elements()).map(move |at| {
            let m = at % self.m_padded;
            let k = at / self.m_padded % self.k_padded;
            let part = at / (self.m_padded * self.k_padded);
            let inside = m < self.m && k < self.k;
            inside.then(|| match transposed {
                true => {
                    let channel = part * channels + k / self.places;
                    (channel * self.m + m) * self.places + k % self.places
                }
                false => (part * self.m + m) * self.k + k,
            })
        })
    }
}
