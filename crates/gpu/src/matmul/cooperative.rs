//! Products by cooperative matrices: operands of FP16, sums in FP32.

use minijinja::context;

use super::launch::ProductLaunch;
use super::problem::{MatMulOperand, MatMulProblem};
use crate::device::GpuCapabilities;
use crate::kernel::DispatchStep;

/// Sizes of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CooperativeConfig {
    /// Rows, columns and depth of the tile of a workgroup.
    pub tile: [usize; 3],
    /// Rows and columns of a subgroup's part of it.
    pub part: [usize; 2],
    /// 2 where the next part of k is written while this one is read.
    pub stages: usize,
    /// Matrices beside one another that leave through workgroup memory at a time.
    pub strip: usize,
    /// Parts of k that threads have read before they are written to workgroup memory.
    pub ahead: usize,
    /// True if threads store their read positions instead of computing them anew for every part.
    pub remembers: bool,
    /// True if matrices leave through two places in turn, which saves waiting for the previous ones.
    pub twice: bool,
}

/// Matrices of sums that a subgroup can keep.
const MAX_SUMS: usize = 16;
/// Multiplications in a shader's text that a processor which plays the GPU compiles in a few seconds.
const MAX_TEXT: usize = 32;

impl CooperativeConfig {
    const fn new(tile: [usize; 3], part: [usize; 2], stages: usize, strip: usize) -> Self {
        Self { tile, part, stages, strip, ahead: 1, remembers: false, twice: false }
    }

    const fn ahead(self) -> Self {
        self.reads_ahead(2)
    }

    const fn reads_ahead(self, parts: usize) -> Self {
        Self { ahead: parts, ..self }
    }

    const fn remembers(self) -> Self {
        Self { remembers: true, ..self }
    }

    const fn twice(self) -> Self {
        Self { twice: true, ..self }
    }

    /// The fastest for large products: by itself on a processor, which has no room for two of them whatever they
    /// take, or two at a time; where operands lie as they are multiplied and where they are turned.
    pub(super) const WIDE: Self = Self::new([128, 256, 32], [64, 64], 1, 1).ahead().twice();
    pub(super) const TURNED: Self = Self::WIDE.remembers();
    pub(super) const SQUARE: Self = Self::new([128, 128, 32], [64, 64], 1, 1).remembers();
    pub(super) const ALONG: Self = Self::SQUARE.ahead();
    /// The fastest where workgroups are few and wait for what they read.
    pub(super) const MIDDLE: Self = Self::new([64, 64, 64], [32, 32], 1, 1).reads_ahead(3);
    pub(super) const FLAT: Self = Self::new([32, 64, 64], [16, 32], 1, 1).reads_ahead(3);
    pub(super) const LOW: Self = Self::new([16, 64, 64], [16, 16], 2, 1);
    pub(super) const SMALL: Self = Self::new([32, 32, 64], [16, 16], 1, 1).reads_ahead(4);
    /// Smallest configuration, fast enough for a CPU that emulates the GPU.
    pub(super) const LEAST: Self = Self::new([32, 32, 32], [16, 16], 2, 1);

    /// All that are tried.
    pub const ALL: &'static [Self] = &[
        Self::WIDE,
        Self::TURNED,
        Self::SQUARE,
        Self::ALONG,
        Self::MIDDLE,
        Self::FLAT,
        Self::LOW,
        Self::SMALL,
        Self::LEAST,
        Self::new([32, 32, 32], [16, 16], 1, 1).ahead().remembers().twice(),
        Self::new([128, 128, 32], [64, 64], 1, 1).ahead(),
        Self::new([128, 256, 32], [64, 64], 1, 2),
        Self::new([128, 256, 32], [64, 32], 1, 1).ahead(),
        Self::new([256, 128, 32], [64, 64], 1, 1).ahead().twice(),
        Self::new([128, 128, 64], [64, 64], 1, 2).remembers(),
        Self::new([128, 128, 16], [64, 64], 1, 1).ahead(),
        Self::new([128, 128, 32], [64, 64], 1, 4),
        Self::new([128, 128, 32], [32, 64], 2, 1),
        Self::new([128, 128, 32], [64, 32], 2, 1),
        Self::new([128, 128, 32], [32, 64], 1, 2).ahead(),
        Self::new([64, 128, 32], [32, 64], 2, 2),
        Self::new([64, 128, 32], [32, 64], 1, 1).reads_ahead(3),
        Self::new([64, 64, 64], [32, 32], 1, 1).ahead().remembers(),
        Self::new([64, 64, 32], [32, 32], 2, 2),
        Self::new([64, 64, 32], [32, 32], 1, 2),
        Self::new([64, 64, 32], [32, 32], 1, 1).ahead(),
        Self::new([64, 64, 32], [32, 32], 2, 1).ahead().remembers(),
        Self::new([32, 64, 64], [16, 32], 1, 1),
        Self::new([32, 64, 64], [16, 32], 1, 1).reads_ahead(3).remembers(),
        Self::new([32, 64, 32], [16, 32], 2, 1),
        Self::new([16, 64, 64], [16, 16], 1, 1).reads_ahead(4),
    ];

    /// Subgroups of a workgroup.
    fn subgroups(&self) -> usize {
        let [rows, columns, _] = self.tile;
        rows / self.part[0] * (columns / self.part[1])
    }

    /// Bytes of workgroup memory at most, whatever way the operands lie.
    fn bytes(&self, size: usize) -> usize {
        let [rows, columns, deep] = self.tile;
        let tile = |len: usize| ((len + 8) * deep).max(len * (deep + 8)) * 2;
        self.stages * (tile(rows) + tile(columns)) + self.results(size)
    }

    /// Places that matrices leave through.
    fn places(&self) -> usize {
        if self.twice { 2 } else { 1 }
    }

    /// Bytes of workgroup memory that matrices leave through.
    fn results(&self, size: usize) -> usize {
        self.places() * self.subgroups() * size * self.strip * size * 4
    }

    /// Returns whether a device can run it.
    #[must_use]
    pub fn fits(&self, capabilities: &GpuCapabilities) -> bool {
        let Some(shape) = MatrixUnitShape::of(capabilities) else { return false };
        let within = |value: usize, limit: u32| u32::try_from(value).is_ok_and(|v| v <= limit);
        let threads = self.subgroups() * shape.lanes;
        let sums = self.part[0] / shape.size * (self.part[1] / shape.size);
        let text = sums * (self.tile[2] / shape.size) * self.ahead;
        sums <= MAX_SUMS
            && (!capabilities.software || text <= MAX_TEXT)
            && within(self.bytes(shape.size), capabilities.workgroup_bytes)
            && within(threads, capabilities.workgroup_threads)
            && self.is_sound(shape)
    }

    /// Returns whether the sizes divide as the shader assumes.
    fn is_sound(&self, MatrixUnitShape { size, lanes }: MatrixUnitShape) -> bool {
        let [rows, columns, deep] = self.tile;
        let [part_rows, part_columns] = self.part;
        let threads = self.subgroups() * lanes;
        let loads = |len: usize| (len * deep).is_multiple_of(4 * threads);
        rows.is_multiple_of(part_rows)
            && columns.is_multiple_of(part_columns)
            && part_rows.is_multiple_of(size)
            && part_columns.is_multiple_of(size * self.strip)
            && deep.is_multiple_of(size)
            // Few threads with workgroup memory are compiled wrongly by some drivers.
            && self.subgroups() >= 2
            && loads(rows)
            && loads(columns)
    }

    /// Adds the dispatches of a product whose tiles are shared by so many workgroups.
    ///
    /// # Errors
    /// Fails when the device has no such matrices.
    pub(crate) fn run(
        &self,
        problem: &MatMulProblem,
        shares: usize,
        capabilities: &GpuCapabilities,
        step: &mut DispatchStep,
    ) -> Result<(), String> {
        let shape = MatrixUnitShape::of(capabilities).filter(|_| self.fits(capabilities));
        let MatrixUnitShape { size, lanes } =
            shape.ok_or("the device has no cooperative matrices for this")?;
        let [rows, columns, deep] = self.tile;
        let subgroups = self.subgroups();
        let threads = subgroups * lanes;
        let wide = capabilities.wide_matrices;
        // Where whole vectors lie in every part of k, they are as far from one another in each.
        let along = |operand: &MatMulOperand| operand.quads(operand.lies_along(), problem.k);
        let even = problem.k.is_multiple_of(deep) && along(&problem.a) && along(&problem.b);
        let context = context!(
            cell => "f16",
            size, subgroups, threads, wide,
            unit => if wide { 4 } else { 1 },
            sm => self.part[0],
            sn => self.part[1],
            a_loads => rows * deep / (4 * threads),
            b_loads => columns * deep / (4 * threads),
            stages => self.stages,
            strip => self.strip,
            results => self.places(),
            ahead => self.ahead,
            remembers => self.remembers && even
        );
        let launch = ProductLaunch {
            name: "matmul-f16-cooperative",
            template: include_str!("cooperative.wgsl"),
            tile: self.tile,
            shares,
            inner: [false; 2],
            context,
            problem,
            zeros: None,
        };
        launch.run(step)
    }
}

/// Shape of a device's cooperative matrices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MatrixUnitShape {
    /// Rows and columns.
    pub(crate) size: usize,
    /// Threads of a subgroup.
    pub(crate) lanes: usize,
}

impl MatrixUnitShape {
    /// Returns the shape of the matrices of FP16 with sums in FP32, if the device has any.
    pub(crate) fn of(capabilities: &GpuCapabilities) -> Option<Self> {
        let size = usize::try_from(capabilities.wide_cooperative()?.size).ok()?;
        // A device that lists a range and has matrices has subgroups of 32.
        let lanes = match capabilities.subgroup? {
            (least, most) if least == most => usize::try_from(least).ok()?,
            (least, most) if (least..=most).contains(&32) => 32,
            _ => return None,
        };
        (capabilities.f16 && matches!(size, 8 | 16)).then_some(Self { size, lanes })
    }
}
