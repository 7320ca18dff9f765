//! A few rows times packed numbers, which are taken apart in registers.

use super::columns::{Bits, float_row, group_bytes, term};
use super::pack::{FP16, GROUP, HALF, PackedBlocks, SLICE, Shifts, UNIT};
use super::{Accuracy, Product};
use crate::Exec;
use crate::bf16::{Cells, Place};
use crate::gemm::Finish;
use crate::isa::{Bf16Isa, Dot, DotIsa, DotKernel, Form, Kernel, Simd};
use crate::memory::{Shared, with_scratch};

/// Most rows of a product of floats.
pub(super) const MOST_FLOATS: usize = 4;

/// Most rows of a product with floats of 16 bits, for which nothing is taken apart.
const MOST_HALVES: usize = 16;

/// Rows of bytes that pass by a slice while it is near.
const BATCH: usize = 64;

/// Rows of a product of bytes: for more it pays to make numbers whole where there are tiles.
const FEWER_THAN_TILES: usize = 32;

/// Most rows at once.
const MOST_AT_ONCE: usize = 8;

/// Terms that are worth a task of making them.
const PREPARED: usize = 16 * 1024;

/// Numbers of a share of the work that is worth its start.
const SHARE: usize = 128 * 1024;

/// Products of a few rows with several matrices, each of which has `a`'s columns as its rows.
pub(super) struct FewRows<'a> {
    pub(super) m: usize,
    pub(super) a: &'a [f32],
    pub(super) lda: usize,
    pub(super) products: &'a [Product<'a>],
    /// Whether the first product multiplies the second, and only that is stored.
    pub(super) gated: bool,
}

/// Rows as the kernels read them: whole units of terms each, then values for each block.
#[derive(Clone, Copy)]
struct Ready {
    /// Numbers of a block.
    block: usize,
    /// What every number has too much.
    zero: f32,
    /// Terms: FP32, or signed bytes.
    terms: *const f32,
    /// What a sum of a block is multiplied by; for bytes only.
    scales: *const f32,
    /// The sum of the terms of each block.
    sums: *const f32,
    /// The same with its scale; for bytes only.
    scaled: *const f32,
    /// What a sum of bytes begins with, `-zero` times the sum of its terms.
    first: *const i32,
}

// SAFETY: a read-only view of scratch that the caller holds while tasks run.
unsafe impl Send for Ready {}
// SAFETY: as for Send.
unsafe impl Sync for Ready {}

/// Values of each block beside its terms.
const VALUES: usize = 4;

/// Blocks of a row; none where there are no scales.
#[inline(always)]
fn blocks_of(k: usize, block: usize) -> usize {
    if block == 0 { 0 } else { k.div_ceil(block) }
}

/// Rows that are computed at once of those that are left: a missing one is zeros.
fn at_once(left: usize) -> usize {
    left.next_power_of_two().min(MOST_AT_ONCE)
}

/// Most rows for which numbers are taken apart in registers.
pub(super) fn most_rows(exec: Exec<'_>, accuracy: Accuracy, b: &PackedBlocks) -> usize {
    if b.format().half().is_some() {
        return MOST_HALVES;
    }
    let dot = DotIsa::of(exec.isa);
    match accuracy {
        Accuracy::Reduced if dot.run(Bytewise) => {
            if Bf16Isa::of(exec.isa).amx().is_some() {
                FEWER_THAN_TILES
            } else {
                usize::MAX
            }
        }
        _ => MOST_FLOATS,
    }
}

impl FewRows<'_> {
    pub(super) fn run(&self, exec: Exec<'_>, accuracy: Accuracy) {
        if self.m <= BATCH {
            return self.batch(exec, accuracy);
        }
        for row in (0..self.m).step_by(BATCH) {
            let mut products = self.products.to_vec();
            for product in &mut products {
                product.c = product.c.at(row * product.ldc);
                product.finish = product.finish.shifted(row, 0);
            }
            let (m, a) = (BATCH.min(self.m - row), &self.a[row * self.lda..]);
            FewRows { m, a, products: &products, ..*self }.batch(exec, accuracy);
        }
    }

    fn batch(&self, exec: Exec<'_>, accuracy: Accuracy) {
        let dot = DotIsa::of(exec.isa);
        let whole = |product: &Product<'_>| {
            product.b.format().half().is_none() && product.b.zero(false).fract() == 0.0
        };
        let bytes =
            accuracy == Accuracy::Reduced && dot.run(Bytewise) && self.products.iter().all(whole);
        let signed = bytes && dot.run(Signed);
        let k = self.products.first().map_or(0, |product| product.b.k());
        let terms = k.next_multiple_of(UNIT);
        let rows = self.m.next_multiple_of(at_once(self.m));
        let mut kinds: Vec<(usize, f32)> = Vec::with_capacity(self.products.len());
        for product in self.products {
            let kind = (product.b.format().block(), product.b.zero(signed));
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        let room = |block| rows * (terms + VALUES * blocks_of(k, block)).next_multiple_of(16);
        with_scratch(kinds.iter().map(|&(block, _)| room(block)).sum(), |mut scratch| {
            let mut ready: Vec<Ready> = Vec::with_capacity(kinds.len());
            for &(block, zero) in &kinds {
                let (own, rest) = std::mem::take(&mut scratch).split_at_mut(room(block));
                scratch = rest;
                let task = Prepare { on: self, block, zero, k, terms, rows, to: Shared::new(own) };
                let fewest = (PREPARED / terms.max(1)).max(1);
                exec.pool.run_ranges(rows, fewest, |rows| match bytes {
                    true => dot.run(Rows { all: &task, rows }),
                    false => exec.isa.run(Rows { all: &task, rows }),
                });
                ready.push(task.ready());
            }
            self.multiply(exec, &ready, bytes.then_some(dot));
        });
    }

    /// All slices of all products, as bytes where there are instructions for them.
    fn multiply(&self, exec: Exec<'_>, ready: &[Ready], dot: Option<DotIsa>) {
        let slices = |product: &Product<'_>| product.b.slices();
        let total: usize = match self.gated {
            true => self.products.first().map_or(0, slices),
            false => self.products.iter().map(slices).sum(),
        };
        let k = self.products.first().map_or(1, |product| product.b.k());
        let grain = (SHARE / (k.max(1) * SLICE)).max(1);
        exec.pool.run_ranges(total, grain, |slices| {
            let part = Part { on: self, ready, slices };
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
        product: &Product<'_>,
        slice: usize,
        sums: *const f32,
        finish: Finish,
    ) {
        let column = slice * SLICE;
        let place = Place {
            c: Cells::Fp32(product.c.ptr().wrapping_add(column)),
            c_stride: product.ldc,
            columns: SLICE.min(product.b.n() - column),
            accumulate: false,
            far: false,
            finish: Some(finish),
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

/// Whether numbers of a whole byte become signed ones first.
struct Signed;

impl DotKernel for Signed {
    type Output = bool;
    fn run<D: Dot>(self, _: D) -> bool {
        D::FORM == Form::Signed
    }
}

/// Makes the terms of rows, and their sums by block.
struct Prepare<'a> {
    on: &'a FewRows<'a>,
    block: usize,
    zero: f32,
    k: usize,
    /// Terms of a row, missing ones included.
    terms: usize,
    /// Rows, missing ones included.
    rows: usize,
    to: Shared<f32>,
}

/// Some of the rows.
struct Rows<'a> {
    all: &'a Prepare<'a>,
    rows: std::ops::Range<usize>,
}

impl Prepare<'_> {
    /// Where everything lies.
    fn ready(&self) -> Ready {
        let base = self.to.ptr().cast_const();
        let values = |at: usize| base.wrapping_add(self.rows * (self.terms + at * self.blocks()));
        let (block, zero) = (self.block, self.zero);
        let [scales, sums, scaled] = [values(0), values(1), values(2)];
        Ready { block, zero, terms: base, scales, sums, scaled, first: values(3).cast() }
    }

    #[inline(always)]
    fn blocks(&self) -> usize {
        blocks_of(self.k, self.block)
    }

    /// Copies a row, a missing one as zeros.
    ///
    /// # Safety
    /// Nobody else writes the row or reads it.
    #[inline(always)]
    unsafe fn copy(&self, row: usize) -> *mut f32 {
        // SAFETY: the rows are in the scratch; the caller vouches for this one.
        let to = unsafe { self.to.range(row * self.terms..(row + 1) * self.terms) };
        if row >= self.on.m {
            to.fill(0.0);
        } else {
            let a = &self.on.a[row * self.on.lda..row * self.on.lda + self.k];
            to[..a.len()].copy_from_slice(a);
            to[a.len()..].fill(0.0);
        }
        to.as_mut_ptr()
    }

    /// The blocks of a row: the number, where its terms start, and how many there are.
    #[inline(always)]
    fn spans(&self) -> impl Iterator<Item = (usize, usize, usize)> + use<> {
        let (block, terms) = (self.block, self.terms);
        (0..self.blocks()).map(move |at| (at, at * block, block.min(terms - at * block)))
    }

    /// Writes the values of a block of a row.
    ///
    /// # Safety
    /// As [`Self::copy`].
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "sums of some hundred bytes")]
    unsafe fn values(&self, (row, block): (usize, usize), scale: f32, sum: f32) {
        let count = self.rows * self.blocks();
        let at = self.rows * self.terms + row * self.blocks() + block;
        let values = self.to.ptr().wrapping_add(at);
        // SAFETY: there are four values for each block of each row.
        unsafe {
            values.write(scale);
            values.add(count).write(sum);
            values.add(2 * count).write(scale * sum);
            values.add(3 * count).cast::<i32>().write((-self.zero * sum) as i32);
        }
    }
}

impl Kernel for Rows<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        for row in self.rows.clone() {
            // SAFETY: this task alone has the row.
            let terms = unsafe { self.all.copy(row) };
            for (at, start, len) in self.all.spans() {
                let mut sum = s.splat(0.0);
                for i in (0..len).step_by(S::LANES) {
                    // SAFETY: blocks are whole vectors inside the terms.
                    sum = s.add(sum, unsafe { s.load(terms.add(start + i)) });
                }
                let sum = s.reduce_add(sum);
                // SAFETY: this task alone has the row.
                unsafe { self.all.values((row, at), 1.0, sum) };
            }
        }
    }
}

impl DotKernel for Rows<'_> {
    type Output = ();
    #[inline(always)]
    fn run<D: Dot>(self, d: D) {
        let s = d.simd();
        // Added to a small number, its lowest byte is that number, rounded.
        let magic = s.splat(12_582_912.0);
        let no_sign = s.splat_i(i32::MAX);
        for row in self.rows.clone() {
            // SAFETY: this task alone has the row.
            let terms = unsafe { self.all.copy(row) };
            // The bytes take the first quarter of the terms' place: what is written was read before.
            let bytes = terms.cast::<u8>();
            for (at, start, len) in self.all.spans() {
                let mut most = s.splat(0.0);
                for i in (0..len).step_by(D::S::LANES) {
                    // SAFETY: blocks are whole vectors inside the terms.
                    let x = unsafe { s.load(terms.add(start + i)) };
                    most = s.max(s.of_bits(s.and_i(s.bits(x), no_sign)), most);
                }
                let most = s.reduce_max(most);
                let (scale, factor) =
                    if most > 0.0 { (most / 127.0, 127.0 / most) } else { (1.0, 0.0) };
                let (factor, mut sum) = (s.splat(factor), s.splat(0.0));
                for i in (0..len).step_by(D::S::LANES) {
                    // SAFETY: as above, and bytes lie before the terms that are still to be read.
                    unsafe {
                        let x = s.add(s.mul(s.load(terms.add(start + i)), factor), magic);
                        sum = s.add(sum, s.sub(x, magic));
                        d.store_bytes(bytes.add(start + i), s.bits(x));
                    }
                }
                let sum = s.reduce_add(sum);
                // SAFETY: this task alone has the row.
                unsafe { self.all.values((row, at), scale, sum) };
            }
        }
    }
}

/// The rows times some slices.
struct Part<'a> {
    on: &'a FewRows<'a>,
    ready: &'a [Ready],
    slices: std::ops::Range<usize>,
}

/// A slice: `R` rows from `row` on times numbers of `B` bits.
struct Slice<'a, const B: u32, const R: usize> {
    b: &'a PackedBlocks,
    ready: Ready,
    slice: usize,
    row: usize,
    /// 16 for each row.
    out: *mut f32,
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
        Slice::<$bits, $rows> {
            b: $slice.b,
            ready: $slice.ready,
            slice: $slice.slice,
            row: $row,
            out: $slice.out.wrapping_add($row * SLICE),
        }
    };
}

/// A slice whose format and rows are to be looked at.
struct AnySlice<'a> {
    b: &'a PackedBlocks,
    ready: Ready,
    slice: usize,
    out: *mut f32,
}

impl<'a> Part<'a> {
    /// The slices of the part, each with its product.
    #[inline(always)]
    fn slices(&self) -> impl Iterator<Item = (&'a Product<'a>, usize)> {
        let products = self.on.products;
        let (mut product, mut first) = (0, 0);
        self.slices.clone().filter_map(move |at| {
            while at >= first + products.get(product)?.b.slices() {
                first += products.get(product)?.b.slices();
                product += 1;
            }
            Some((products.get(product)?, at - first))
        })
    }

    #[inline(always)]
    fn any(&self, signed: bool, b: &'a PackedBlocks, slice: usize, out: *mut f32) -> AnySlice<'a> {
        let (block, zero) = (b.format().block(), b.zero(signed));
        let found = self.ready.iter().find(|ready| ready.block == block && ready.zero == zero);
        let null = std::ptr::null();
        let none = Ready {
            block,
            zero,
            terms: null,
            scales: null,
            sums: null,
            scaled: null,
            first: null.cast(),
        };
        AnySlice { b, ready: found.copied().unwrap_or(none), slice, out }
    }

    /// Runs the part, where `one` computes the sums of a slice.
    #[inline(always)]
    fn walk<S: Simd>(&self, s: S, signed: bool, one: impl Fn(AnySlice<'a>)) {
        let mut sums = [0.0_f32; BATCH * SLICE];
        if let (true, [first, second]) = (self.on.gated, self.on.products) {
            let mut gate = [0.0_f32; BATCH * SLICE];
            for slice in self.slices.clone() {
                one(self.any(signed, first.b, slice, sums.as_mut_ptr()));
                let place = Product { c: Shared::new(&mut gate), ldc: SLICE, ..*first };
                let column = slice * SLICE;
                // SAFETY: the sums of a slice; the gate has 16 columns for each row.
                unsafe {
                    let place = Product {
                        c: Shared::from_ptr(place.c.ptr().wrapping_sub(column)),
                        ..place
                    };
                    self.on.write(s, &place, slice, sums.as_ptr(), first.finish.shifted(0, column));
                }
                one(self.any(signed, second.b, slice, sums.as_mut_ptr()));
                let finish = second.finish.shifted(0, column).times(gate.as_ptr(), SLICE);
                // SAFETY: as above.
                unsafe { self.on.write(s, second, slice, sums.as_ptr(), finish) };
            }
            return;
        }
        for (product, slice) in self.slices() {
            one(self.any(signed, product.b, slice, sums.as_mut_ptr()));
            let finish = product.finish.shifted(0, slice * SLICE);
            // SAFETY: the sums of a slice.
            unsafe { self.on.write(s, product, slice, sums.as_ptr(), finish) };
        }
    }
}

impl Kernel for Part<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let m = self.on.m;
        self.walk(s, false, |slice| by_format!(s, slice, m: 2 3 4 5 6 8 16 17 18));
    }
}

impl DotKernel for Part<'_> {
    type Output = ();
    #[inline(always)]
    fn run<D: Dot>(self, d: D) {
        let m = self.on.m;
        let signed = D::FORM == Form::Signed;
        self.walk(d.simd(), signed, |slice| by_format!(d, slice, m: 2 3 4 5 6 8 16));
    }
}

impl<const B: u32, const R: usize> Slice<'_, B, R> {
    #[inline(always)]
    fn unit(&self, unit: usize) -> *const u8 {
        self.b.slice(self.slice).wrapping_add(unit * self.b.format().unit_bytes())
    }

    /// The place of a value of a block of one of the rows.
    #[inline(always)]
    fn value(&self, row: usize, block: usize) -> usize {
        (self.row + row) * self.b.blocks() + block
    }

    /// The block that ends with a half of a unit, if one does.
    #[inline(always)]
    fn ended(&self, unit: usize, half: usize) -> Option<usize> {
        let block = self.b.format().block();
        if block == HALF {
            // The last unit may have one block only.
            return Some(2 * unit + half).filter(|&block| block < self.b.blocks());
        }
        let per_block = block / UNIT;
        let last = (unit + 1).is_multiple_of(per_block) || unit + 1 == self.b.units();
        (half == 1 && last).then_some(unit / per_block)
    }

    /// # Safety
    /// `out` has 16 columns for each row.
    #[inline(always)]
    unsafe fn store<S: Simd>(&self, s: S, column: usize, totals: &[S::F; R]) {
        for (row, &total) in totals.iter().enumerate() {
            // SAFETY: the caller vouches for the place.
            unsafe { s.store(self.out.add(row * SLICE + column), total) };
        }
    }
}

impl<const B: u32, const R: usize> Slice<'_, B, R> {
    /// The sums of floats, in two parts whatever the number of rows.
    #[inline(always)]
    fn halves<S: Simd>(&self, s: S) {
        let terms = self.b.units() * UNIT;
        for column in (0..SLICE).step_by(S::LANES) {
            let mut sums = [[s.splat(0.0); R]; 2];
            for unit in 0..self.b.units() {
                for row in 0..UNIT {
                    // SAFETY: the unit and the rows' terms exist.
                    unsafe {
                        let at = (self.slice, unit);
                        let number = float_row::<S, B>(s, self.b, at, row, column);
                        for (own, sum) in sums[row % 2].iter_mut().enumerate() {
                            let at = (self.row + own) * terms + unit * UNIT + row;
                            *sum = s.fma(number, s.splat(*self.ready.terms.add(at)), *sum);
                        }
                    }
                }
            }
            let [even, odd] = sums;
            let totals = std::array::from_fn(|row| s.add(even[row], odd[row]));
            // SAFETY: 16 sums for each row.
            unsafe { self.store(s, column, &totals) };
        }
    }
}

impl<const B: u32, const R: usize> Kernel for Slice<'_, B, R> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        if B >= FP16 {
            return self.halves(s);
        }
        let terms = self.b.units() * UNIT;
        let bits = Bits::<S, B>::new(s, self.b.format());
        let zero = s.splat(self.b.zero(false));
        for column in (0..SLICE).step_by(S::LANES) {
            let (mut totals, mut sums) = ([s.splat(0.0); R], [[s.splat(0.0); R]; 2]);
            for unit in 0..self.b.units() {
                for half in 0..2 {
                    for group in half * 4..half * 4 + 4 {
                        // SAFETY: the unit and the rows' terms exist.
                        unsafe {
                            let bytes = group_bytes(s, &bits, self.unit(unit), group, column);
                            for i in 0..4_u32 {
                                let number = term(s, bytes, i);
                                let at = unit * UNIT + group * GROUP + i as usize;
                                for (row, sum) in sums[i as usize % 2].iter_mut().enumerate() {
                                    let at = (self.row + row) * terms + at;
                                    let x = s.splat(*self.ready.terms.add(at));
                                    *sum = s.fma(number, x, *sum);
                                }
                            }
                        }
                    }
                    let Some(block) = self.ended(unit, half) else { continue };
                    let at = (self.slice, block, column);
                    // SAFETY: the block exists.
                    unsafe {
                        let scale = self.b.scales.load(s, at);
                        // What is added to a sum for each of its terms, before the scale and after.
                        let (zero, offset) = match &self.b.shifts {
                            Shifts::Zero(_) => (zero, s.splat(0.0)),
                            Shifts::Zeros(all) => (s.add(all.load(s, at), zero), s.splat(0.0)),
                            Shifts::Offsets(all) => (zero, all.load(s, at)),
                        };
                        for (row, total) in totals.iter_mut().enumerate() {
                            let terms = s.splat(*self.ready.sums.add(self.value(row, block)));
                            let sum = s.add(sums[0][row], sums[1][row]);
                            *total = s.fma(s.fnma(zero, terms, sum), scale, *total);
                            *total = s.fma(offset, terms, *total);
                        }
                    }
                    sums = [[s.splat(0.0); R]; 2];
                }
            }
            // SAFETY: 16 sums for each row.
            unsafe { self.store(s, column, &totals) };
        }
    }
}

impl<const B: u32, const R: usize> DotKernel for Slice<'_, B, R> {
    type Output = ();
    #[inline(always)]
    fn run<D: Dot>(self, d: D) {
        let s = d.simd();
        // Bytes of a row lie where its floats were.
        let terms = self.b.units() * UNIT;
        let bits = Bits::<D::S, B>::new(s, self.b.format());
        // Numbers of 8 bits are signed bytes only after 128 is taken away.
        let signed = D::FORM == Form::Signed && (B == 8 || B == 16);
        for column in (0..SLICE).step_by(D::S::LANES) {
            let (mut totals, mut sums) = ([s.splat(0.0); R], [s.splat_i(0); R]);
            let mut begins = true;
            let mut next = 0;
            for unit in 0..self.b.units() {
                for half in 0..2 {
                    if begins {
                        if next == self.b.blocks() {
                            continue;
                        }
                        for (row, sum) in sums.iter_mut().enumerate() {
                            // SAFETY: there is a value for each block of each row.
                            *sum =
                                s.splat_i(unsafe { *self.ready.first.add(self.value(row, next)) });
                        }
                        begins = false;
                    }
                    for group in half * 4..half * 4 + 4 {
                        // SAFETY: the unit and the rows' terms exist.
                        unsafe {
                            let unit_bytes = self.unit(unit);
                            let mut bytes = group_bytes(s, &bits, unit_bytes, group, column);
                            if signed {
                                bytes = s.xor_i(bytes, s.splat_i(0x8080_8080_u32.cast_signed()));
                            }
                            let at = unit * UNIT / GROUP + group;
                            for (row, sum) in sums.iter_mut().enumerate() {
                                let four = *self.ready.terms.add((self.row + row) * terms + at);
                                let four = s.splat_i(four.to_bits().cast_signed());
                                *sum = d.dot(*sum, bytes, four);
                            }
                        }
                    }
                    let Some(block) = self.ended(unit, half) else { continue };
                    (begins, next) = (true, block + 1);
                    // SAFETY: the block exists.
                    unsafe { self.add(s, (block, column), &sums, &mut totals) };
                }
            }
            // SAFETY: 16 sums for each row.
            unsafe { self.store(s, column, &totals) };
        }
    }
}

impl<const B: u32, const R: usize> Slice<'_, B, R> {
    /// Adds sums of bytes of a block to the totals.
    ///
    /// # Safety
    /// The block exists; `column` starts a vector.
    #[inline(always)]
    unsafe fn add<S: Simd>(
        &self,
        s: S,
        (block, column): (usize, usize),
        sums: &[S::I; R],
        totals: &mut [S::F; R],
    ) {
        let at = (self.slice, block, column);
        // SAFETY: scales and shifts of a slice are whole, as are the rows' of a block.
        unsafe {
            let scale = self.b.scales.load(s, at);
            match &self.b.shifts {
                Shifts::Zero(_) => {
                    for (row, total) in totals.iter_mut().enumerate() {
                        let own = s.splat(*self.ready.scales.add(self.value(row, block)));
                        *total = s.fma(s.to_float(sums[row]), s.mul(scale, own), *total);
                    }
                }
                Shifts::Zeros(all) => {
                    let zero = all.load(s, at);
                    for (row, total) in totals.iter_mut().enumerate() {
                        let value = self.value(row, block);
                        let own = s.splat(*self.ready.scales.add(value));
                        let terms = s.splat(*self.ready.sums.add(value));
                        let sum = s.fnma(zero, terms, s.to_float(sums[row]));
                        *total = s.fma(sum, s.mul(scale, own), *total);
                    }
                }
                Shifts::Offsets(all) => {
                    let offset = all.load(s, at);
                    for (row, total) in totals.iter_mut().enumerate() {
                        let value = self.value(row, block);
                        let own = s.splat(*self.ready.scales.add(value));
                        *total = s.fma(s.to_float(sums[row]), s.mul(scale, own), *total);
                        let terms = s.splat(*self.ready.scaled.add(value));
                        *total = s.fma(offset, terms, *total);
                    }
                }
            }
        }
    }
}
