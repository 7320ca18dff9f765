//! Scales and offsets of blocks, as exact and as small as the weights' source had them.

use half::{bf16, f16};

use super::SLICE;
use crate::isa::Simd;
use crate::memory::{AlignedFloats, DisjointSlice};

/// How scales and offsets are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactorForm {
    /// FP32.
    Fp32,
    /// FP16, for factors that are exact as such.
    Fp16,
    /// BF16, for factors that are exact as such.
    Bf16,
    /// A byte for each block, and an FP16 that the byte multiplies for each superblock of so many numbers.
    Nested(usize),
}

/// The factors of all blocks: for each slice and block those of its columns.
pub(super) struct BlockFactorTable {
    form: FactorForm,
    /// Blocks of a column.
    blocks: usize,
    /// Blocks of a superblock, and superblocks of a column.
    per: usize,
    supers: usize,
    data: AlignedFloats,
    /// Factors of superblocks.
    wholes: AlignedFloats,
}

impl BlockFactorTable {
    /// Room for the factors of so many slices.
    pub(super) fn new(form: FactorForm, slices: usize, blocks: usize, block: usize) -> Self {
        let (width, per) = match form {
            FactorForm::Fp32 => (4, 1),
            FactorForm::Fp16 | FactorForm::Bf16 => (2, 1),
            FactorForm::Nested(numbers) => (1, (numbers / block.max(1)).max(1)),
        };
        let supers = if matches!(form, FactorForm::Nested(_)) { blocks.div_ceil(per) } else { 0 };
        let data = AlignedFloats::lasting((slices * blocks * SLICE * width).div_ceil(4));
        let wholes = AlignedFloats::lasting((slices * supers * SLICE).div_ceil(2));
        Self { form, blocks, per, supers, data, wholes }
    }

    /// Superblocks of a column.
    pub(super) fn supers(&self) -> usize {
        self.supers
    }

    pub(super) fn size_bytes(&self) -> usize {
        size_of_val(self.data.as_slice()) + size_of_val(self.wholes.as_slice())
    }

    /// Where the factors of slices are written.
    pub(super) fn writer(&mut self) -> FactorWriter {
        let Self { form, blocks, per, supers, .. } = *self;
        let data = DisjointSlice::from_ptr(self.data.as_bytes_mut().as_mut_ptr());
        let wholes = DisjointSlice::from_ptr(self.wholes.as_bytes_mut().as_mut_ptr().cast());
        FactorWriter { form, blocks, per, supers, data, wholes }
    }

    /// The factors of a block, of the columns of a slice from `column` on.
    ///
    /// # Safety
    /// The slice and the block exist; `column` starts a vector.
    #[inline(always)]
    pub(super) unsafe fn load<S: Simd>(
        &self,
        s: S,
        slice: usize,
        block: usize,
        column: usize,
    ) -> S::F {
        let at = (slice * self.blocks + block) * SLICE + column;
        let data = self.data.as_slice().as_ptr();
        // SAFETY: the caller vouches for the block, of which there are 16 columns.
        unsafe {
            match self.form {
                FactorForm::Fp32 => s.load(data.add(at)),
                FactorForm::Fp16 => s.load_f16(data.cast::<u16>().add(at)),
                FactorForm::Bf16 => s.load_bf16(data.cast::<u16>().add(at)),
                FactorForm::Nested(_) => {
                    let whole = (slice * self.supers + block / self.per) * SLICE + column;
                    let wholes = self.wholes.as_slice().as_ptr().cast::<u16>();
                    let times = s.load_i8(data.cast::<i8>().add(at));
                    s.mul(times, s.load_f16(wholes.add(whole)))
                }
            }
        }
    }

    /// Reads the factors of a slice, of its columns from `column` on.
    #[inline(always)]
    pub(super) fn reader<S: Simd>(&self, s: S, slice: usize, column: usize) -> FactorReader<S> {
        let data = self.data.as_slice().as_ptr().cast::<u8>();
        let wholes = self.wholes.as_slice().as_ptr().cast::<u16>();
        let width = match self.form {
            FactorForm::Fp32 => 4,
            FactorForm::Fp16 | FactorForm::Bf16 => 2,
            FactorForm::Nested(_) => 1,
        };
        FactorReader {
            form: self.form,
            data: data.wrapping_add((slice * self.blocks * SLICE + column) * width),
            wholes: wholes.wrapping_add(slice * self.supers * SLICE + column),
            whole: s.splat(1.0),
            left: 0,
            per: self.per,
        }
    }
}

/// Reads the factors of the blocks of a slice one after the other.
pub(super) struct FactorReader<S: Simd> {
    form: FactorForm,
    data: *const u8,
    /// Pointer to the factor of the next superblock, and the factor of this one.
    wholes: *const u16,
    whole: S::F,
    /// Blocks of this superblock that are left.
    left: usize,
    per: usize,
}

impl<S: Simd> FactorReader<S> {
    /// The factors of the next block.
    ///
    /// # Safety
    /// There is one.
    #[inline(always)]
    pub(super) unsafe fn next(&mut self, s: S) -> S::F {
        let data = self.data;
        // SAFETY: the caller vouches for the block, of which there are 16 columns.
        unsafe {
            match self.form {
                FactorForm::Fp32 => {
                    self.data = data.wrapping_add(4 * SLICE);
                    s.load(data.cast())
                }
                FactorForm::Fp16 => {
                    self.data = data.wrapping_add(2 * SLICE);
                    s.load_f16(data.cast())
                }
                FactorForm::Bf16 => {
                    self.data = data.wrapping_add(2 * SLICE);
                    s.load_bf16(data.cast())
                }
                FactorForm::Nested(_) => {
                    if self.left == 0 {
                        self.whole = s.load_f16(self.wholes);
                        self.wholes = self.wholes.wrapping_add(SLICE);
                        self.left = self.per;
                    }
                    self.left -= 1;
                    self.data = data.wrapping_add(SLICE);
                    s.mul(s.load_i8(data.cast()), self.whole)
                }
            }
        }
    }
}

/// Writes factors of slices, each of which is written by one thread.
#[derive(Clone, Copy)]
pub(super) struct FactorWriter {
    form: FactorForm,
    blocks: usize,
    per: usize,
    supers: usize,
    data: DisjointSlice<u8>,
    wholes: DisjointSlice<u16>,
}

impl FactorWriter {
    /// Writes those of a column: a factor for each block, and for each superblock what they are multiples of.
    ///
    /// # Safety
    /// The slice exists, and nobody else writes or reads it.
    #[allow(clippy::cast_possible_truncation, reason = "multiples are from -128 to 127")]
    pub(super) unsafe fn column(
        &self,
        slice: usize,
        column: usize,
        values: &[f32],
        wholes: &[f32],
    ) {
        for (block, &value) in values.iter().enumerate() {
            let at = (slice * self.blocks + block) * SLICE + column;
            let data = self.data.ptr();
            // SAFETY: the caller vouches for the slice; blocks and columns are inside.
            unsafe {
                match self.form {
                    FactorForm::Fp32 => data.cast::<f32>().add(at).write(value),
                    FactorForm::Fp16 => data.cast::<f16>().add(at).write(f16::from_f32(value)),
                    FactorForm::Bf16 => data.cast::<bf16>().add(at).write(bf16::from_f32(value)),
                    FactorForm::Nested(_) => {
                        let whole = wholes[block / self.per];
                        let times =
                            if whole == 0.0 { 0.0 } else { (value / whole).round_ties_even() };
                        data.cast::<i8>().add(at).write(times as i8);
                    }
                }
            }
        }
        for (at, &whole) in wholes.iter().enumerate().take(self.supers) {
            let at = (slice * self.supers + at) * SLICE + column;
            // SAFETY: as above.
            unsafe { self.wholes.ptr().add(at).write(f16::from_f32(whole).to_bits()) };
        }
    }
}
