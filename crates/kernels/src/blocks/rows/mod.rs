//! A few rows times packed numbers, which are taken apart in registers.

mod ready;
mod slice;

use super::SLICE;
use super::pack::{GROUP, PackedBlocks};
use super::{BlockAccuracy, CheckedBlockProduct};
use crate::KernelContext;
use crate::bf16::{Bf16ResultCells, ResultPart};
use crate::gemm::TileFinish;
use crate::isa::{Bf16Isa, DotInstructions, DotIsa, DotKernel, IsaKernel, LeftTerms, Simd};
use crate::memory::{DisjointSlice, with_scratch};
use crate::pieces::WorkPieces;
use crate::tiles::TileSums;
use ready::{PreparedRows, RowPreparation, at_once};
use slice::RowSlice;

/// Most rows of a product of floats.
pub(super) const MAX_FLOATS: usize = 4;

/// Most rows of a product with floats of 16 bits, for which nothing is taken apart.
const MAX_HALVES: usize = 16;

/// Rows of bytes that pass by a slice while it is near.
const BATCH: usize = 64;

/// Rows of a product of bytes: for more it pays to make numbers whole where there are tiles.
const FEWER_THAN_TILES: usize = 32;

/// Numbers of a share of the work that is worth its start.
const SHARE: usize = 128 * 1024;

/// Numbers of a piece of a share: small beside it, as a thread may have to wait for the last one.
const PIECE: usize = 32 * 1024;

/// Most pieces that a share would be if all were as short as the last one.
const PIECES: usize = 32;

/// Products of a few rows with several matrices, each of which has `a`'s columns as its rows.
pub(super) struct FewRows<'a> {
    pub(super) m: usize,
    pub(super) a: &'a [f32],
    pub(super) lda: usize,
    pub(super) products: &'a [CheckedBlockProduct<'a>],
    /// True if the first product multiplies the second, and only that is stored.
    pub(super) gated: bool,
}

/// Most rows for which numbers are taken apart in registers.
pub(super) fn most_rows(
    exec: KernelContext<'_>,
    accuracy: BlockAccuracy,
    b: &PackedBlocks,
) -> usize {
    if b.format().half().is_some() {
        return MAX_HALVES;
    }
    let dot = DotIsa::of(exec.isa);
    match accuracy {
        BlockAccuracy::Reduced if dot.run(BytewiseInstructions) => {
            if Bf16Isa::of(exec.isa).amx().is_some() { FEWER_THAN_TILES } else { usize::MAX }
        }
        _ => MAX_FLOATS,
    }
}

impl FewRows<'_> {
    pub(super) fn run(&self, exec: KernelContext<'_>, accuracy: BlockAccuracy) {
        if self.m <= BATCH {
            return self.batch(exec, accuracy);
        }
        for row in (0..self.m).step_by(BATCH) {
            let mut products = self.products.to_vec();
            for product in &mut products {
                product.c = product.c.at(row * product.ldc);
                product.finish = product.finish.shifted(row, 0);
            }
            let m = BATCH.min(self.m - row);
            let a = &self.a[row * self.lda..];
            FewRows { m, a, products: &products, ..*self }.batch(exec, accuracy);
        }
    }

    fn batch(&self, exec: KernelContext<'_>, accuracy: BlockAccuracy) {
        let dot = DotIsa::of(exec.isa);
        let whole = |product: &CheckedBlockProduct<'_>| {
            product.b.format().half().is_none() && product.b.zero(false).fract() == 0.0
        };
        let bytes = accuracy == BlockAccuracy::Reduced
            && dot.run(BytewiseInstructions)
            && self.products.iter().all(whole);
        let signed = bytes && dot.run(SignedBytes);
        let k = self.products.first().map_or(0, |product| product.b.k());
        let kind = |product: &CheckedBlockProduct<'_>| {
            (product.b.format().block(), product.b.zero(signed))
        };
        let mut kinds: Vec<(usize, f32)> = Vec::with_capacity(self.products.len());
        for kind in self.products.iter().map(kind) {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        let room = |block| PreparedRows::room(self.m, k, block);
        with_scratch(kinds.iter().map(|&(block, _)| room(block)).sum(), |mut scratch| {
            let mut made: Vec<PreparedRows> = Vec::with_capacity(kinds.len());
            for &(block, zero) in &kinds {
                let (own, rest) = std::mem::take(&mut scratch).split_at_mut(room(block));
                scratch = rest;
                made.push(
                    RowPreparation::new(self, k, block, zero, own).run(exec, bytes.then_some(dot)),
                );
            }
            let of = |product| made.iter().find(|made| (made.block, made.zero) == kind(product));
            let ready: Vec<PreparedRows> = self.products.iter().filter_map(of).copied().collect();
            self.multiply(exec, &ready, bytes.then_some(dot));
        });
    }

    /// All slices of all products, as bytes where there are instructions for them.
    fn multiply(&self, exec: KernelContext<'_>, ready: &[PreparedRows], dot: Option<DotIsa>) {
        let slices = |product: &CheckedBlockProduct<'_>| product.b.slices();
        let total: usize = match self.gated {
            true => self.products.first().map_or(0, slices),
            false => self.products.iter().map(slices).sum(),
        };
        let k = self.products.first().map_or(1, |product| product.b.k());
        let slice = k.max(1) * SLICE;
        let threads = (total * slice / SHARE).clamp(1, exec.pool.threads());
        let fewest = (PIECE / slice).max(total / (PIECES * threads)).max(1);
        WorkPieces { len: total, threads, most: total, fewest, unit: 1 }.run(exec.pool, |slices| {
            let part = BlockRowsPart { on: self, ready, slices };
            match dot {
                Some(dot) => dot.run(part),
                None => exec.isa.run(part),
            }
        });
    }

    /// # Safety
    /// `sums` has 16 columns for each row; the slice exists.
    #[inline(always)]
    unsafe fn write<S: Simd>(
        &self,
        s: S,
        product: &CheckedBlockProduct<'_>,
        slice: usize,
        sums: *const f32,
        finish: TileFinish,
    ) {
        let column = slice * SLICE;
        let place = ResultPart {
            c: Bf16ResultCells::Fp32(product.c.ptr().wrapping_add(column)),
            c_stride: product.ldc,
            columns: SLICE.min(product.b.n() - column),
            accumulate: false,
            far: false,
            finish: Some(finish),
            beside: None,
        };
        // SAFETY: the caller vouches for the sums; `gemm_blocks` has checked C.
        unsafe {
            place.write(s, self.m, TileSums { data: sums, stride: SLICE, next: SLICE });
            place.activate(s, self.m);
        }
    }
}

/// Test of whether the instructions take bytes directly.
struct BytewiseInstructions;

impl DotKernel for BytewiseInstructions {
    type Output = bool;
    fn run<D: DotInstructions>(self, _: D) -> bool {
        D::FORM != LeftTerms::Wide && D::TERMS == GROUP
    }
}

/// Test of whether numbers of a whole byte become signed ones first.
struct SignedBytes;

impl DotKernel for SignedBytes {
    type Output = bool;
    fn run<D: DotInstructions>(self, _: D) -> bool {
        D::FORM == LeftTerms::Signed
    }
}

/// The rows times some slices.
struct BlockRowsPart<'a> {
    on: &'a FewRows<'a>,
    /// The rows for each product.
    ready: &'a [PreparedRows],
    slices: std::ops::Range<usize>,
}

macro_rules! by_format {
    ($x:ident, $slice:ident, $m:ident: $($bits:literal)*) => {{
        let mut row = 0;
        while row < $m {
            let rows = at_once($m - row);
            match ($slice.b.format().kind(), rows) {
                $(
                    ($bits, 1) => $x.enter(by_format!(@ $slice, row, $bits, 1)),
                    ($bits, 2) => $x.enter(by_format!(@ $slice, row, $bits, 2)),
                    ($bits, 4) => $x.enter(by_format!(@ $slice, row, $bits, 4)),
                    ($bits, _) => $x.enter(by_format!(@ $slice, row, $bits, 8)),
                )*
                _ => {}
            }
            row += rows;
        }
    }};
    (@ $slice:ident, $row:ident, $bits:literal, $rows:literal) => {
        {
            let (terms, values) = $slice.ready.tile($row, $rows);
            let out = $slice.out.wrapping_add($row * SLICE);
            RowSlice::<$bits, $rows> { b: $slice.b, slice: $slice.slice, terms, values, out }
        }
    };
}

/// A slice whose format and rows are to be looked at.
struct AnySlice<'a> {
    b: &'a PackedBlocks,
    ready: PreparedRows,
    slice: usize,
    out: *mut f32,
}

impl<'a> BlockRowsPart<'a> {
    /// The slices of the part, each with its product and the product's number.
    #[inline(always)]
    fn slices(&self) -> impl Iterator<Item = (usize, &'a CheckedBlockProduct<'a>, usize)> {
        let products = self.on.products;
        let mut product = 0;
        let mut first = 0;
        self.slices.clone().filter_map(move |at| {
            while at >= first + products.get(product)?.b.slices() {
                first += products.get(product)?.b.slices();
                product += 1;
            }
            Some((product, products.get(product)?, at - first))
        })
    }

    /// Runs the part, where `one` computes the sums of a slice.
    #[inline(always)]
    fn walk<S: Simd>(&self, s: S, one: impl Fn(AnySlice<'a>)) {
        let mut sums = [0.0_f32; BATCH * SLICE];
        let out = sums.as_mut_ptr();
        if let (true, [first, second], &[gates, ready]) =
            (self.on.gated, self.on.products, self.ready)
        {
            let mut gate = [0.0_f32; BATCH * SLICE];
            for slice in self.slices.clone() {
                one(AnySlice { b: first.b, ready: gates, slice, out });
                let column = slice * SLICE;
                let c = DisjointSlice::from_ptr(gate.as_mut_ptr().wrapping_sub(column));
                let place = CheckedBlockProduct { c, ldc: SLICE, ..*first };
                // SAFETY: the sums of a slice; the gate has 16 columns for each row.
                unsafe {
                    self.on.write(s, &place, slice, sums.as_ptr(), first.finish.shifted(0, column));
                }
                one(AnySlice { b: second.b, ready, slice, out });
                let finish = second.finish.shifted(0, column).times(gate.as_ptr(), SLICE);
                // SAFETY: as above.
                unsafe { self.on.write(s, second, slice, sums.as_ptr(), finish) };
            }
            return;
        }
        for (at, product, slice) in self.slices() {
            one(AnySlice { b: product.b, ready: self.ready[at], slice, out });
            let finish = product.finish.shifted(0, slice * SLICE);
            // SAFETY: the sums of a slice.
            unsafe { self.on.write(s, product, slice, sums.as_ptr(), finish) };
        }
    }
}

impl IsaKernel for BlockRowsPart<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let m = self.on.m;
        self.walk(s, |slice| by_format!(s, slice, m: 2 3 4 5 6 8 16 17 18));
    }
}

impl DotKernel for BlockRowsPart<'_> {
    type Output = ();
    #[inline(always)]
    fn run<D: DotInstructions>(self, d: D) {
        let m = self.on.m;
        self.walk(d.simd(), |slice| by_format!(d, slice, m: 2 3 4 5 6 8 16));
    }
}
