//! Rows as the kernels read them: numbers of several rows side by side, then values of each block.

use std::ops::Range;

use super::FewRows;
use crate::blocks::pack::{GROUP, UNIT};
use crate::isa::{DotInstructions, DotIsa, DotKernel, IsaKernel, Simd};
use crate::{KernelContext, isa::Isa};

/// Terms that are worth a task of making them.
const PREPARED: usize = 4 * 1024;

/// Most rows at once: a tile.
pub(super) const MAX_AT_ONCE: usize = 8;

/// Terms that are made together where there are no blocks.
const SPAN: usize = 8 * UNIT;

/// Values of each block beside its terms: [`FIRST`] to [`SCALED`], each for all rows of a tile.
pub(super) const VALUES: usize = 4;

/// Place of the initial value of a sum of bytes, an integer: `-zero` times the sum of its terms.
pub(super) const FIRST: usize = 0;
/// Place of the factor of a sum of a block of bytes.
pub(super) const SCALE: usize = 1;
/// Place of the sum of the terms of a block.
pub(super) const SUM: usize = 2;
/// Place of the same sum with its scale.
pub(super) const SCALED: usize = 3;

/// Rows that are computed at once of those that are left: a missing one is zeros.
#[inline(always)]
pub(super) fn at_once(left: usize) -> usize {
    left.next_power_of_two().min(MAX_AT_ONCE)
}

/// Rows of all tiles, missing ones included.
fn rows_of(m: usize) -> usize {
    let rest = m % MAX_AT_ONCE;
    m - rest + if rest > 0 { at_once(rest) } else { 0 }
}

/// Where rows lie, and for which blocks and zero they are made.
#[derive(Clone, Copy)]
pub(super) struct PreparedRows {
    /// Numbers of a block; 0 where there are none.
    pub(super) block: usize,
    /// The number to subtract from every code.
    pub(super) zero: f32,
    /// Terms of a row, whole units.
    terms: usize,
    /// Blocks of a row.
    blocks: usize,
    base: *mut f32,
}

// SAFETY: a view of scratch that the caller holds while tasks run; while it is made each span is
// one task's, and nobody writes after that.
unsafe impl Send for PreparedRows {}
// SAFETY: as for Send.
unsafe impl Sync for PreparedRows {}

impl PreparedRows {
    /// The room of some rows, in floats. The kernels read ahead the values of one block more.
    pub(super) fn room(m: usize, k: usize, block: usize) -> usize {
        let (terms, blocks) = sizes(k, block);
        (rows_of(m) * (terms + VALUES * blocks) + VALUES * MAX_AT_ONCE).next_multiple_of(16)
    }

    /// The terms and the values of a tile: `rows` rows from `row` on. Of term `t` (a float, or four
    /// bytes) those of all rows lie side by side, of block `b` the values do.
    #[inline(always)]
    pub(super) fn tile(&self, row: usize, rows: usize) -> (*const f32, *const f32) {
        let terms = self.base.wrapping_add(row * (self.terms + VALUES * self.blocks));
        let terms = terms.cast_const();
        (terms, terms.wrapping_add(rows * self.terms))
    }
}

/// Terms and blocks of a row.
fn sizes(k: usize, block: usize) -> (usize, usize) {
    (k.next_multiple_of(UNIT), if block == 0 { 0 } else { k.div_ceil(block) })
}

/// Makes the terms of rows, and the values of their blocks.
pub(super) struct RowPreparation<'a> {
    on: &'a FewRows<'a>,
    k: usize,
    ready: PreparedRows,
    /// Numbers of a span: a block where there are blocks.
    span: usize,
}

/// Some of the spans of all tiles, counted tile by tile.
struct TileSpans<'a> {
    all: &'a RowPreparation<'a>,
    spans: Range<usize>,
}

/// A span of the rows of a tile.
struct RowSpan {
    at: usize,
    row: usize,
    rows: usize,
    start: usize,
    len: usize,
}

impl<'a> RowPreparation<'a> {
    pub(super) fn new(
        on: &'a FewRows<'a>,
        k: usize,
        block: usize,
        zero: f32,
        to: &mut [f32],
    ) -> Self {
        let (terms, blocks) = sizes(k, block);
        let ready = PreparedRows { block, zero, terms, blocks, base: to.as_mut_ptr() };
        let span = if block == 0 { SPAN } else { block };
        Self { on, k, ready, span }
    }

    /// Makes all; as bytes where there are instructions for them.
    pub(super) fn run(&self, exec: KernelContext<'_>, bytes: Option<DotIsa>) -> PreparedRows {
        let tiles = self.on.m.div_ceil(MAX_AT_ONCE);
        let cost = self.span * self.on.m.min(MAX_AT_ONCE);
        let fewest = (PREPARED / cost.max(1)).max(1);
        exec.pool.run_ranges(tiles * self.spans(), fewest, |spans| {
            let some = TileSpans { all: self, spans };
            match bytes {
                Some(dot) => dot.run(some),
                None => Isa::run(exec.isa, some),
            }
        });
        self.ready
    }

    /// Spans of a row.
    #[inline(always)]
    fn spans(&self) -> usize {
        self.ready.terms.div_ceil(self.span)
    }

    /// A span, and the tile that it is of.
    #[inline(always)]
    fn span(&self, i: usize) -> RowSpan {
        let spans = self.spans();
        let row = i / spans * MAX_AT_ONCE;
        let at = i % spans;
        let start = at * self.span;
        let len = self.span.min(self.ready.terms - start);
        RowSpan { at, row, rows: at_once(self.on.m - row), start, len }
    }

    /// The numbers of a row of a tile that are left from `start` on; none for a missing row.
    #[inline(always)]
    fn left(&self, row: usize, start: usize) -> &'a [f32] {
        if row >= self.on.m {
            return &[];
        }
        self.on.a[row * self.on.lda..].get(start..self.k).unwrap_or_default()
    }

    #[inline(always)]
    fn terms(&self, span: &RowSpan) -> *mut f32 {
        self.ready.tile(span.row, span.rows).0.cast_mut()
    }

    /// Writes the values of a block of a row of a tile, where there are blocks.
    ///
    /// # Safety
    /// Nobody else writes the block of the row or reads it.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "sums of some hundred bytes")]
    unsafe fn values(&self, span: &RowSpan, row: usize, scale: f32, sum: f32) {
        if span.at >= self.ready.blocks {
            return;
        }
        let all = self.ready.tile(span.row, span.rows).1.cast_mut();
        let value = |kind| all.wrapping_add((VALUES * span.at + kind) * span.rows + row);
        // SAFETY: there are four values for each block of each row, in the scratch.
        unsafe {
            value(FIRST).cast::<i32>().write((-self.ready.zero * sum) as i32);
            value(SCALE).write(scale);
            value(SUM).write(sum);
            value(SCALED).write(scale * sum);
        }
    }
}

/// A vector of the numbers from `at` on; zeros behind the last one.
#[inline(always)]
fn vector<S: Simd>(s: S, numbers: &[f32], at: usize) -> S::F {
    let left = numbers.get(at..).unwrap_or_default();
    if left.len() >= S::LANES {
        // SAFETY: as many numbers as a vector has.
        return unsafe { s.load(left.as_ptr()) };
    }
    // SAFETY: the mask has as many numbers as are left.
    unsafe { s.load_tail(left.as_ptr(), s.tail(left.len())) }
}

impl IsaKernel for TileSpans<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let mut lanes = [0.0_f32; 16];
        for span in self.spans.clone().map(|i| self.all.span(i)) {
            let to = self.all.terms(&span).wrapping_add(span.start * span.rows);
            for row in 0..span.rows {
                let numbers = self.all.left(span.row + row, span.start);
                let mut sum = s.splat(0.0);
                for i in (0..span.len).step_by(S::LANES) {
                    let x = vector(s, numbers, i);
                    sum = s.add(sum, x);
                    // SAFETY: vectors have at most 16 lanes; this task alone has the span's terms.
                    unsafe {
                        s.store(lanes.as_mut_ptr(), x);
                        for (lane, &x) in lanes[..S::LANES].iter().enumerate() {
                            to.add((i + lane) * span.rows + row).write(x);
                        }
                    }
                }
                // SAFETY: this task alone has the span.
                unsafe { self.all.values(&span, row, 1.0, s.reduce_add(sum)) };
            }
        }
    }
}

impl DotKernel for TileSpans<'_> {
    type Output = ();
    #[inline(always)]
    fn run<D: DotInstructions>(self, d: D) {
        let s = d.simd();
        for span in self.spans.clone().map(|i| self.all.span(i)) {
            let to = self.all.terms(&span).wrapping_add(span.start / GROUP * span.rows);
            for row in 0..span.rows {
                let numbers = self.all.left(span.row + row, span.start);
                let mut most = s.splat(0.0);
                for i in (0..span.len).step_by(D::S::LANES) {
                    let x = s.bits(vector(s, numbers, i));
                    most = s.max(s.of_bits(s.and_i(x, s.splat_i(i32::MAX))), most);
                }
                let most = s.reduce_max(most);
                let (scale, factor) =
                    if most > 0.0 { (most / 127.0, 127.0 / most) } else { (1.0, 0.0) };
                // SAFETY: this task alone has the span.
                unsafe {
                    let sum = bytes(d, numbers, span.len, factor, to.add(row), span.rows);
                    self.all.values(&span, row, scale, sum);
                }
            }
        }
    }
}

/// Writes `len` numbers as bytes, four to a word, words `stride` apart; their sum.
///
/// # Safety
/// The words are there, and nobody else writes or reads them.
#[inline(always)]
unsafe fn bytes<D: DotInstructions>(
    d: D,
    numbers: &[f32],
    len: usize,
    factor: f32,
    to: *mut f32,
    stride: usize,
) -> f32 {
    let s = d.simd();
    // Added to a small number, its lowest byte is that number, rounded.
    let magic = s.splat(12_582_912.0);
    let factor = s.splat(factor);
    let mut sum = s.splat(0.0);
    let mut words = [0.0_f32; 16 / GROUP];
    for i in (0..len).step_by(D::S::LANES) {
        let x = s.add(s.mul(vector(s, numbers, i), factor), magic);
        sum = s.add(sum, s.sub(x, magic));
        // SAFETY: vectors have at most 16 lanes; the caller vouches for the words.
        unsafe {
            d.store_bytes(words.as_mut_ptr().cast(), s.bits(x));
            for (at, &word) in words[..D::S::LANES / GROUP].iter().enumerate() {
                to.add((i / GROUP + at) * stride).write(word);
            }
        }
    }
    s.reduce_add(sum)
}
