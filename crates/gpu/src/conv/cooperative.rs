//! Convolutions of images as products by cooperative matrices: operands of FP16, sums in FP32.

use minijinja::{Value, context};

use crate::device::{GpuCapabilities, KernelShader};
use crate::matmul::MatrixUnitShape;
use crate::template::render;

/// Sizes of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvConfig {
    /// Channels of the result, pixels, and terms that a workgroup holds at a time.
    pub tile: [usize; 3],
    /// Channels and pixels of a subgroup's part of it.
    pub part: [usize; 2],
    /// Matrices beside one another that leave through workgroup memory at a time.
    pub strip: usize,
}

/// Configurations that a tuner may choose: the first that fits the channels and keeps the device busy is the
/// default.
pub const CONFIGS: &[ConvConfig] = &[
    ConvConfig::new([128, 128, 32], [64, 64], 2),
    ConvConfig::new([64, 128, 32], [32, 64], 2),
    ConvConfig::new([64, 64, 32], [32, 32], 2),
    ConvConfig::new([32, 128, 32], [32, 32], 2),
    ConvConfig::new([32, 64, 32], [16, 32], 1),
    ConvConfig::new([32, 64, 32], [16, 16], 1),
    ConvConfig::new([32, 32, 32], [16, 16], 1),
];

/// Workgroups that keep a device busy.
pub(super) const BUSY: usize = 128;

/// Matrices of sums that a subgroup can keep, and those that a processor which plays the GPU compiles in
/// little time.
const MAX_SUMS: (usize, usize) = (16, 4);

impl ConvConfig {
    const fn new(tile: [usize; 3], part: [usize; 2], strip: usize) -> Self {
        Self { tile, part, strip }
    }

    fn subgroups(&self) -> usize {
        self.tile[0] / self.part[0] * (self.tile[1] / self.part[1])
    }

    fn bytes(&self, size: usize) -> usize {
        let [rows, columns, deep] = self.tile;
        let results = self.subgroups() * size * self.strip * size * 4;
        2 * deep * (rows + columns + 16) + results
    }

    /// Returns whether a device can run it.
    #[must_use]
    pub fn fits(&self, capabilities: &GpuCapabilities) -> bool {
        let Some(MatrixUnitShape { size, lanes }) = MatrixUnitShape::of(capabilities) else {
            return false;
        };
        let within = |value: usize, limit: u32| u32::try_from(value).is_ok_and(|v| v <= limit);
        let ([rows, columns, deep], [part_rows, part_columns]) = (self.tile, self.part);
        let threads = self.subgroups() * lanes;
        let sums = part_rows / size * (part_columns / size);
        let (real, software) = MAX_SUMS;
        let loads = |len: usize| {
            threads.is_multiple_of(len / 4) && (len * deep).is_multiple_of(4 * threads)
        };
        rows.is_multiple_of(part_rows)
            && columns.is_multiple_of(part_columns)
            && part_rows.is_multiple_of(size)
            && part_columns.is_multiple_of(size * self.strip)
            && deep.is_multiple_of(size)
            && self.subgroups() >= 2
            && loads(rows)
            && loads(columns)
            && sums <= if capabilities.software { software } else { real }
            && within(self.bytes(size), capabilities.workgroup_bytes)
            && within(threads, capabilities.workgroup_threads)
    }

    /// The one for so many channels, filled up, and pixels, in so many products; none where matrices do not fit.
    pub(super) fn choose(
        capabilities: &GpuCapabilities,
        channels: usize,
        pixels: usize,
        products: usize,
    ) -> Option<Self> {
        let fits = |one: &&Self| channels.is_multiple_of(one.tile[0]) && one.fits(capabilities);
        let mut best = None;
        for config in CONFIGS.iter().filter(fits) {
            let groups = channels / config.tile[0] * pixels.div_ceil(config.tile[1]) * products;
            best = Some(*config);
            if groups >= BUSY {
                break;
            }
        }
        best
    }

    /// The shader; `own` says how operands are stored, and what the window is like.
    ///
    /// # Errors
    /// Fails when the device has no such matrices.
    pub(super) fn shader(
        &self,
        capabilities: &GpuCapabilities,
        own: Value,
    ) -> Result<KernelShader, String> {
        let shape = MatrixUnitShape::of(capabilities).filter(|_| self.fits(capabilities));
        let MatrixUnitShape { size, lanes } =
            shape.ok_or("the device has no cooperative matrices for this convolution")?;
        let [bm, bn, bk] = self.tile;
        let threads = self.subgroups() * lanes;
        let sizes = context! {
            size, bm, bn, bk, threads,
            sm => self.part[0],
            sn => self.part[1],
            strip => self.strip,
            subgroups => self.subgroups(),
            w_loads => bm * bk / (4 * threads),
            x_loads => bn * bk / (4 * threads),
            // On Metal, where they are of 8, they are read from single elements only.
            wide => size > 8,
        };
        let source = render(include_str!("cooperative.wgsl"), context!(..sizes, ..own))?;
        Ok(KernelShader::new("conv-f16-cooperative", source).proved())
    }
}
