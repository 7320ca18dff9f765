//! The kernel for tiles of queries by cooperative matrices.

use minijinja::{Value, context};

use crate::device::{GpuCapabilities, KernelShader};
use crate::matmul::MatrixUnitShape;
use crate::template::render;

/// Tile sizes of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlashConfig {
    /// Queries of a workgroup.
    pub rows: usize,
    /// Keys and values that are there at a time.
    pub keys: usize,
    /// Subgroups that share the queries.
    pub down: usize,
    /// Subgroups that share keys, then columns of values, of the same queries.
    pub across: usize,
}

/// Configurations that a tuner may choose; the first that fits is the default for many queries.
pub const CONFIGS: &[FlashConfig] = &[
    FlashConfig::new(32, 32, 2, 2),
    FlashConfig::new(64, 64, 4, 1),
    FlashConfig::new(64, 64, 4, 2),
    FlashConfig::new(64, 64, 2, 2),
    FlashConfig::new(64, 32, 4, 1),
    FlashConfig::new(64, 32, 4, 2),
    FlashConfig::new(128, 32, 8, 1),
    FlashConfig::new(128, 64, 8, 1),
    FlashConfig::new(32, 128, 2, 2),
    FlashConfig::new(32, 64, 2, 2),
    FlashConfig::new(32, 64, 2, 1),
    FlashConfig::new(32, 32, 4, 1),
    FlashConfig::new(16, 64, 1, 4),
    FlashConfig::new(16, 32, 2, 1),
    FlashConfig::new(16, 32, 2, 2),
    FlashConfig::new(16, 16, 2, 1),
    FlashConfig::new(16, 16, 1, 2),
];

/// Matrices of sums and of queries that a subgroup can keep, and those that a processor which plays the GPU
/// compiles in little time; and fours of scores that a thread looks at.
const MOST: ([usize; 3], [usize; 3]) = ([16, 32, 32], [4, 4, 4]);

/// Workgroups that keep a device busy.
const BUSY: usize = 256;

/// Layout of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyLayout {
    /// Rows of their elements.
    Rows,
    /// In blocks, where elements are rows of keys.
    Blocks,
}

impl FlashConfig {
    const fn new(rows: usize, keys: usize, down: usize, across: usize) -> Self {
        Self { rows, keys, down, across }
    }

    /// The one for heads of these widths, with `count` of them in all; none where matrices do not fit.
    pub(super) fn choose(
        capabilities: &GpuCapabilities,
        widths: [usize; 2],
        queries: usize,
        count: usize,
    ) -> Option<Self> {
        Self::best(|config| config.fits(capabilities, widths), queries, count)
    }

    /// The one for keys and values in blocks, where `queries` of a sequence share a head.
    pub(super) fn choose_blocks(
        capabilities: &GpuCapabilities,
        widths: [usize; 2],
        queries: usize,
        count: usize,
    ) -> Option<Self> {
        Self::best(|config| config.fits_blocks(capabilities, widths), queries, count)
    }

    fn best(fits: impl Fn(&Self) -> bool, queries: usize, count: usize) -> Option<Self> {
        let mut fitting = CONFIGS.iter().filter(|config| fits(config)).copied();
        let best = fitting.next()?;
        if queries.div_ceil(best.rows) * count >= BUSY {
            return Some(best);
        }
        Some(fitting.find(|config| config.rows < best.rows).unwrap_or(best))
    }

    fn threads(&self, lanes: usize) -> usize {
        self.down * self.across * lanes
    }

    /// Elements from one row of scores to the next: rows that threads of a subgroup read together lie in
    /// different banks.
    fn score_pitch(&self, lanes: usize) -> usize {
        self.keys + 4 * (self.threads(lanes) / self.rows).clamp(1, 4)
    }

    /// Halves of the stage: queries, then keys and values as they lie.
    fn stage(&self, width: usize, value_width: usize, layout: KeyLayout) -> usize {
        let keys = match layout {
            KeyLayout::Rows => self.keys * (width + 8),
            KeyLayout::Blocks => width * (self.keys + 8),
        };
        keys.max(self.rows * (width + 8)).max(self.keys * (value_width + 8))
    }

    fn bytes(&self, widths: [usize; 2], lanes: usize, keys: KeyLayout) -> usize {
        let [width, value_width] = widths;
        let halves = self.stage(width, value_width, keys) + self.rows * (self.keys + 8);
        let vectors = if keys == KeyLayout::Blocks { self.keys + 8 } else { 0 };
        let floats = self.rows * (self.score_pitch(lanes) + 1) + self.threads(lanes) + vectors + 4;
        2 * halves + 4 * floats
    }

    /// Returns whether a device can run it for heads whose keys and values have these widths.
    #[must_use]
    pub fn fits(&self, capabilities: &GpuCapabilities, widths: [usize; 2]) -> bool {
        self.fits_as(capabilities, widths, KeyLayout::Rows)
    }

    /// The same for keys and values in blocks.
    #[must_use]
    pub fn fits_blocks(&self, capabilities: &GpuCapabilities, widths: [usize; 2]) -> bool {
        let lanes = MatrixUnitShape::of(capabilities).map_or(0, |shape| shape.lanes);
        self.fits_as(capabilities, widths, KeyLayout::Blocks)
            && self.threads(lanes).is_multiple_of(self.keys / 4)
    }

    fn fits_as(&self, capabilities: &GpuCapabilities, widths: [usize; 2], keys: KeyLayout) -> bool {
        let Some(MatrixUnitShape { size, lanes }) = MatrixUnitShape::of(capabilities) else {
            return false;
        };
        let within = |value: usize, limit: u32| u32::try_from(value).is_ok_and(|v| v <= limit);
        let [width, value_width] = widths;
        let threads = self.threads(lanes);
        let unit = size * self.across;
        let sound = width.is_multiple_of(size)
            && value_width.is_multiple_of(unit)
            && self.keys.is_multiple_of(unit)
            && self.rows.is_multiple_of(size * self.down)
            && threads.is_multiple_of(self.rows)
            && self.keys.is_multiple_of(4 * (threads / self.rows).max(1));
        if !sound || width == 0 || value_width == 0 || self.down * self.across < 2 {
            return false;
        }
        let bands = self.rows / self.down / size;
        let looks = self.keys * self.rows / (4 * threads);
        let [sums, queries, most_looks] = if capabilities.software { MOST.1 } else { MOST.0 };
        bands * value_width / unit <= sums
            && bands * width / size <= queries
            && looks <= most_looks
            && within(self.bytes(widths, lanes, keys), capabilities.workgroup_bytes)
            && within(threads, capabilities.workgroup_threads)
    }

    /// The shader for heads of these widths; `own` says how operands are stored.
    ///
    /// # Errors
    /// Fails when the device has no such matrices.
    pub(super) fn shader(
        &self,
        capabilities: &GpuCapabilities,
        widths: [usize; 2],
        keys: KeyLayout,
        own: Value,
    ) -> Result<KernelShader, String> {
        let fits = match keys {
            KeyLayout::Rows => self.fits(capabilities, widths),
            KeyLayout::Blocks => self.fits_blocks(capabilities, widths),
        };
        let shape = MatrixUnitShape::of(capabilities).filter(|_| fits);
        let MatrixUnitShape { size, lanes } =
            shape.ok_or("the device has no cooperative matrices for this attention")?;
        let sizes = context! {
            size,
            rows => self.rows,
            keys => self.keys,
            down => self.down,
            across => self.across,
            bands => self.rows / self.down / size,
            threads => self.threads(lanes),
            d => widths[0],
            e => widths[1],
            stage => self.stage(widths[0], widths[1], keys),
            paged => keys == KeyLayout::Blocks,
            score_pitch => self.score_pitch(lanes),
            wide => capabilities.wide_matrices,
        };
        let source = render(include_str!("flash.wgsl"), context!(..sizes, ..own))?;
        Ok(KernelShader::new("attention-f16-cooperative", source).proved())
    }
}
