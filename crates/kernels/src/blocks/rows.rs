//! A few rows times packed numbers, which are taken apart in registers.

use super::Accuracy;
use super::columns::{group_bytes, term};
use super::pack::{GROUP, PackedBlocks, SLICE, UNIT};
use crate::Exec;
use crate::bf16::{Cells, Place};
use crate::gemm::Finish;
use crate::isa::{Dot, DotIsa, DotKernel, Form, Kernel, Simd};
use crate::memory::{Shared, with_scratch};

/// A product of at most 4 rows.
pub(super) struct FewRows<'a> {
    pub(super) m: usize,
    pub(super) a: &'a [f32],
    pub(super) lda: usize,
    pub(super) b: &'a PackedBlocks,
    pub(super) c: Shared<f32>,
    pub(super) ldc: usize,
    pub(super) finish: Finish,
}

/// Rows as the kernels read them: `units` units of terms each, then a value for each block.
#[derive(Clone, Copy)]
struct Ready {
    /// Terms: FP32, or signed bytes.
    terms: *const f32,
    /// What a sum of a block is multiplied by; for bytes only.
    scales: *const f32,
    /// The sum of the terms of each block.
    sums: *const f32,
}

// SAFETY: a read-only view of scratch that the caller holds while tasks run.
unsafe impl Send for Ready {}
// SAFETY: as for Send.
unsafe impl Sync for Ready {}

impl FewRows<'_> {
    pub(super) fn run(&self, exec: Exec<'_>, accuracy: Accuracy) {
        let dot = DotIsa::of(exec.isa);
        let bytes = accuracy == Accuracy::Reduced && dot.run(Bytewise);
        let (terms, blocks) = (self.b.units() * UNIT, self.b.blocks());
        with_scratch(self.m * (terms + 2 * blocks), |scratch| {
            let (all_terms, rest) = scratch.split_at_mut(self.m * terms);
            let (scales, sums) = rest.split_at_mut(self.m * blocks);
            for row in 0..self.m {
                let a = &self.a[row * self.lda..row * self.lda + self.b.k()];
                let to = &mut all_terms[row * terms..(row + 1) * terms];
                to[..a.len()].copy_from_slice(a);
                to[a.len()..].fill(0.0);
                let at = row * blocks..(row + 1) * blocks;
                self.prepare(to, (&mut scales[at.clone()], &mut sums[at]), bytes);
            }
            let ready =
                Ready { terms: all_terms.as_ptr(), scales: scales.as_ptr(), sums: sums.as_ptr() };
            // A slice is worth a task where its numbers are some tens of kilobytes.
            let slices = self.b.n().div_ceil(SLICE);
            let grain = (64 * 1024 / (terms * SLICE / 2).max(1)).max(1);
            exec.pool.run_ranges(slices, grain, |slices| {
                if bytes {
                    dot.run(Part { on: self, ready, slices });
                } else {
                    exec.isa.run(Part { on: self, ready, slices });
                }
            });
        });
    }

    /// Makes the sums of blocks and, where the terms become bytes, these in place of the floats.
    fn prepare(&self, terms: &mut [f32], (scales, sums): (&mut [f32], &mut [f32]), bytes: bool) {
        let block = self.b.format().block();
        for (at, (scale, sum)) in scales.iter_mut().zip(sums.iter_mut()).enumerate() {
            let range = at * block..((at + 1) * block).min(terms.len());
            let most = terms[range.clone()].iter().fold(0.0_f32, |most, x| most.max(x.abs()));
            *scale = if bytes && most > 0.0 { most / 127.0 } else { 1.0 };
            if bytes {
                let factor = 1.0 / *scale;
                terms[range.clone()].iter_mut().for_each(|x| *x = (*x * factor).round_ties_even());
            }
            *sum = terms[range].iter().sum();
        }
        if bytes {
            // Four bytes take the place of a float: what is written was read before.
            for at in 0..terms.len() / GROUP {
                #[allow(clippy::cast_possible_truncation, reason = "between -127 and 127")]
                let four: [u8; GROUP] = std::array::from_fn(|inside| {
                    (terms[at * GROUP + inside] as i8).cast_unsigned()
                });
                terms[at] = f32::from_bits(u32::from_ne_bytes(four));
            }
        }
    }

    /// # Safety
    /// `sums` has 16 columns for each row; the slice exists.
    #[inline(always)]
    unsafe fn write<S: Simd>(&self, s: S, slice: usize, sums: *const f32) {
        let column = slice * SLICE;
        let place = Place {
            c: Cells::Fp32(self.c.ptr().wrapping_add(column)),
            c_stride: self.ldc,
            columns: SLICE.min(self.b.n() - column),
            accumulate: false,
            far: false,
            finish: Some(self.finish.shifted(0, column)),
            beside: None,
        };
        // SAFETY: the caller vouches for the sums; `gemm_blocks` has checked C.
        unsafe {
            place.write(s, self.m, sums, (SLICE, SLICE));
            place.activate(s, self.m);
        }
    }
}

/// Whether the instructions take bytes as they are.
struct Bytewise;

impl DotKernel for Bytewise {
    type Output = bool;
    fn run<D: Dot>(self, _: D) -> bool {
        D::FORM != Form::Wide && D::TERMS == GROUP
    }
}

/// The rows times some slices.
struct Part<'a> {
    on: &'a FewRows<'a>,
    ready: Ready,
    slices: std::ops::Range<usize>,
}

/// A slice: `R` rows times numbers of `B` bits.
struct Slice<'a, const B: u32, const R: usize> {
    on: &'a FewRows<'a>,
    ready: Ready,
    slice: usize,
    /// 16 for each row.
    out: *mut f32,
}

macro_rules! by_format {
    ($x:ident, $part:ident, $slice:ident, $out:ident: $($bits:literal)*) => {
        match ($part.on.b.format().bits(), $part.on.m) {
            $(
                ($bits, 1) => $x.enter(by_format!(@ $part, $slice, $out, $bits, 1)),
                ($bits, 2) => $x.enter(by_format!(@ $part, $slice, $out, $bits, 2)),
                ($bits, 3) => $x.enter(by_format!(@ $part, $slice, $out, $bits, 3)),
                ($bits, _) => $x.enter(by_format!(@ $part, $slice, $out, $bits, 4)),
            )*
            _ => {}
        }
    };
    (@ $part:ident, $slice:ident, $out:ident, $bits:literal, $rows:literal) => {
        Slice::<$bits, $rows> { on: $part.on, ready: $part.ready, slice: $slice, out: $out }
    };
}

impl Kernel for Part<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let mut sums = [0.0_f32; 4 * SLICE];
        for slice in self.slices.clone() {
            let out = sums.as_mut_ptr();
            by_format!(s, self, slice, out: 2 3 4 5 6 8);
            // SAFETY: the sums of a slice.
            unsafe { self.on.write(s, slice, sums.as_ptr()) };
        }
    }
}

impl DotKernel for Part<'_> {
    type Output = ();
    #[inline(always)]
    fn run<D: Dot>(self, d: D) {
        let mut sums = [0.0_f32; 4 * SLICE];
        for slice in self.slices.clone() {
            let out = sums.as_mut_ptr();
            by_format!(d, self, slice, out: 2 3 4 5 6 8);
            // SAFETY: the sums of a slice.
            unsafe { self.on.write(d.simd(), slice, sums.as_ptr()) };
        }
    }
}

impl<const B: u32, const R: usize> Slice<'_, B, R> {
    /// Units of a block, and the first.
    #[inline(always)]
    fn units(&self, block: usize) -> std::ops::Range<usize> {
        let per_block = self.on.b.format().block() / UNIT;
        block * per_block..((block + 1) * per_block).min(self.on.b.units())
    }

    #[inline(always)]
    fn unit(&self, unit: usize) -> *const u8 {
        let b = self.on.b;
        b.slice(self.slice).wrapping_add(unit * b.format().unit_bytes())
    }

    /// Adds the sum of a block to that of a row: `(sum - zero * terms) * scale`.
    ///
    /// # Safety
    /// The block exists; `column` starts a vector.
    #[inline(always)]
    unsafe fn add<S: Simd>(
        &self,
        s: S,
        (block, column, row): (usize, usize, usize),
        zero_shift: f32,
        sum: S::F,
    ) {
        let (b, at) = (self.on.b, row * self.on.b.blocks() + block);
        // SAFETY: scales and zero points of a slice are whole, as are the rows' of a block.
        unsafe {
            let zero = match b.zeros(self.slice, block) {
                zeros if zeros.is_null() => s.splat(b.zero() + zero_shift),
                zeros => s.add(s.load(zeros.add(column)), s.splat(zero_shift)),
            };
            let scale = s.load(b.scales(self.slice, block).add(column));
            let scale = s.mul(scale, s.splat(*self.ready.scales.add(at)));
            let terms = s.splat(*self.ready.sums.add(at));
            let out = self.out.add(row * SLICE + column);
            let sum = s.fnma(zero, terms, sum);
            let before = if block == 0 { s.splat(0.0) } else { s.load(out) };
            s.store(out, s.fma(sum, scale, before));
        }
    }

    /// Without terms there are no blocks.
    #[inline(always)]
    fn clear(&self) {
        for at in 0..R * SLICE {
            // SAFETY: 16 sums for each row.
            unsafe { self.out.add(at).write(0.0) };
        }
    }
}

impl<const B: u32, const R: usize> Kernel for Slice<'_, B, R> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        self.clear();
        let terms = self.on.b.units() * UNIT;
        for block in 0..self.on.b.blocks() {
            for column in (0..SLICE).step_by(S::LANES) {
                let mut sums = [[s.splat(0.0); R]; 2];
                for unit in self.units(block) {
                    for group in 0..UNIT / GROUP {
                        // SAFETY: the unit and the rows' terms exist.
                        unsafe {
                            let bytes = group_bytes::<S, B>(s, self.unit(unit), group, column);
                            for i in 0..4_u32 {
                                let number = term(s, bytes, i);
                                let at = unit * UNIT + group * GROUP + i as usize;
                                for (row, sum) in sums[i as usize % 2].iter_mut().enumerate() {
                                    let x = s.splat(*self.ready.terms.add(row * terms + at));
                                    *sum = s.fma(number, x, *sum);
                                }
                            }
                        }
                    }
                }
                let [even, odd] = sums;
                for (row, (even, odd)) in even.into_iter().zip(odd).enumerate() {
                    let sum = s.add(even, odd);
                    // SAFETY: the block exists.
                    unsafe { self.add(s, (block, column, row), 0.0, sum) };
                }
            }
        }
    }
}

impl<const B: u32, const R: usize> DotKernel for Slice<'_, B, R> {
    type Output = ();
    #[inline(always)]
    fn run<D: Dot>(self, d: D) {
        let s = d.simd();
        self.clear();
        // Bytes of a row lie where its floats were.
        let terms = self.on.b.units() * UNIT;
        // Numbers of 8 bits are signed bytes only after 128 is taken away.
        let signed = D::FORM == Form::Signed && B == 8;
        for block in 0..self.on.b.blocks() {
            for column in (0..SLICE).step_by(D::S::LANES) {
                let mut sums = [[s.splat_i(0); R]; 2];
                for unit in self.units(block) {
                    for group in 0..UNIT / GROUP {
                        // SAFETY: the unit and the rows' terms exist.
                        unsafe {
                            let unit_bytes = self.unit(unit);
                            let mut bytes = group_bytes::<D::S, B>(s, unit_bytes, group, column);
                            if signed {
                                bytes = s.xor_i(bytes, s.splat_i(0x8080_8080_u32.cast_signed()));
                            }
                            let at = unit * UNIT / GROUP + group;
                            for (row, sum) in sums[group % 2].iter_mut().enumerate() {
                                let four = *self.ready.terms.add(row * terms + at);
                                let four = s.splat_i(four.to_bits().cast_signed());
                                *sum = d.dot(*sum, bytes, four);
                            }
                        }
                    }
                }
                let [even, odd] = sums;
                for (row, (even, odd)) in even.into_iter().zip(odd).enumerate() {
                    let sum = s.to_float(s.add_i(even, odd));
                    let shift = if signed { -128.0 } else { 0.0 };
                    // SAFETY: the block exists.
                    unsafe { self.add(s, (block, column, row), shift, sum) };
                }
            }
        }
    }
}
