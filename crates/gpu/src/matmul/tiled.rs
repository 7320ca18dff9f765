//! Products by tiles in workgroup memory: the portable way.

use std::sync::Arc;

use minijinja::context;

use super::launch::ProductLaunch;
use super::problem::MatMulProblem;
use crate::device::GpuCapabilities;
use crate::kernel::DispatchStep;
use crate::memory::DeviceBlock;

/// Sizes of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TileSizes {
    /// Rows of the result that a workgroup computes.
    pub rows: usize,
    /// Columns of it.
    pub columns: usize,
    /// Elements of k that lie in workgroup memory at a time.
    pub deep: usize,
    /// Threads along rows and along columns.
    pub threads: [usize; 2],
    /// Threads along rows and along columns of a patch whose threads follow one another.
    pub patch: [usize; 2],
    /// 2 where the next part of k is written while this one is read.
    pub stages: usize,
    /// Steps of k that are written out.
    pub unroll: usize,
    /// True if one half of the threads reads `A` and the other `B`.
    pub split: bool,
}

impl TileSizes {
    const fn new(tile: [usize; 3], threads: [usize; 2], patch: [usize; 2], stages: usize) -> Self {
        let [rows, columns, deep] = tile;
        Self { rows, columns, deep, threads, patch, stages, unroll: 8, split: false }
    }

    /// The same with threads that read one operand each.
    const fn split(mut self) -> Self {
        self.split = true;
        self
    }

    /// Threads that read an operand.
    fn loaders(&self) -> usize {
        if self.split { self.count() / 2 } else { self.count() }
    }

    /// All that are tried, the usual one first.
    pub const ALL: &'static [Self] = &[
        Self::new([64, 64, 16], [8, 8], [4, 8], 2),
        Self::new([128, 128, 8], [16, 8], [4, 8], 2),
        Self::new([128, 128, 8], [16, 16], [4, 8], 2),
        Self::new([128, 128, 16], [16, 16], [4, 8], 2).split(),
        Self::new([128, 128, 16], [16, 16], [4, 8], 1).split(),
        Self::new([128, 64, 16], [16, 8], [4, 8], 2).split(),
        Self::new([64, 64, 32], [16, 16], [4, 8], 1).split(),
        Self::new([32, 64, 32], [8, 16], [4, 8], 1),
        Self::new([128, 128, 16], [16, 16], [4, 8], 1),
        Self::new([64, 64, 16], [16, 16], [4, 8], 2),
        Self::new([32, 64, 16], [8, 8], [4, 8], 2),
        Self::new([32, 32, 32], [8, 8], [4, 8], 1),
        Self::new([16, 64, 32], [4, 16], [4, 8], 1),
    ];

    fn count(&self) -> usize {
        self.threads[0] * self.threads[1]
    }

    /// Bytes of workgroup memory.
    fn bytes(&self) -> usize {
        self.stages * self.deep * (self.rows + self.columns + 8) * 4
    }

    /// Returns whether a device can run it.
    #[must_use]
    pub fn fits(&self, capabilities: &GpuCapabilities) -> bool {
        let within = |value: usize, limit: u32| u32::try_from(value).is_ok_and(|v| v <= limit);
        within(self.bytes(), capabilities.workgroup_bytes)
            && within(self.count(), capabilities.workgroup_threads)
            && self.is_sound()
    }

    /// Returns whether the sizes divide as the shader assumes.
    fn is_sound(&self) -> bool {
        let [ty, tx] = self.threads;
        let [wy, wx] = self.patch;
        let count = self.count();
        let loaders = self.loaders();
        // Few threads with workgroup memory are compiled wrongly by some drivers.
        let enough = (64..=1024).contains(&count);
        let loads = |len: usize| {
            (len * self.deep).is_multiple_of(4 * loaders)
                && loaders.is_multiple_of(len / 4)
                && loaders.is_multiple_of(self.deep / 4)
        };
        enough
            && self.rows.is_multiple_of(4 * ty)
            && self.columns.is_multiple_of(4 * tx)
            && ty.is_multiple_of(wy)
            && tx.is_multiple_of(wx)
            && loads(self.rows)
            && loads(self.columns)
            && self.deep.is_multiple_of(self.unroll)
            && (1..=2).contains(&self.stages)
    }

    /// Adds the dispatches of a product whose tiles are shared by so many workgroups.
    pub(crate) fn run(
        &self,
        problem: &MatMulProblem,
        shares: usize,
        step: &mut DispatchStep,
    ) -> Result<(), String> {
        self.launch("matmul-f32-tiled", problem, shares, None).run(step)
    }

    /// The same for those parts of k only that a list has for each column of tiles.
    pub(super) fn run_listed(
        &self,
        problem: &MatMulProblem,
        list: Arc<DeviceBlock>,
        step: &mut DispatchStep,
    ) -> Result<(), String> {
        self.launch("matmul-f32-tiled-sparse", problem, 1, Some(list)).run(step)
    }

    fn launch<'a>(
        &self,
        name: &'static str,
        problem: &'a MatMulProblem,
        shares: usize,
        zeros: Option<Arc<DeviceBlock>>,
    ) -> ProductLaunch<'a> {
        let [ty, tx] = self.threads;
        let [wy, wx] = self.patch;
        let threads = self.count();
        let loaders = self.loaders();
        let context = context!(
            cell => "f32",
            ty, tx, wy, wx, threads,
            rm => self.rows / (4 * ty),
            rn => self.columns / (4 * tx),
            a_loads => self.rows * self.deep / (4 * loaders),
            b_loads => self.columns * self.deep / (4 * loaders),
            stages => self.stages,
            unroll => self.unroll,
            split => self.split,
            loaders
        );
        ProductLaunch {
            name,
            template: include_str!("tiled.wgsl"),
            tile: [self.rows, self.columns, self.deep],
            shares,
            inner: [false; 2],
            context,
            problem,
            zeros,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_sizes_divide_and_fit_into_48_kilobytes() {
        for config in TileSizes::ALL {
            assert!(config.is_sound() && config.bytes() <= 48 << 10, "{config:?}");
        }
    }
}
