//! Rotary position embeddings: heads turned by tabled angles.

use crate::KernelContext;
use crate::attention::{HeadRows, HeadStrides};
use crate::isa::{IsaKernel, Simd};
use crate::memory::DisjointSlice;

/// Vectors per task.
const GRAIN: usize = 64;

/// The sizes of a rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RotarySizes {
    /// Independent sequences.
    pub batch: usize,
    /// Heads.
    pub heads: usize,
    /// Vectors per head.
    pub rows: usize,
    /// Length of a vector; even.
    pub width: usize,
}

/// A table of cosines or sines, by strides in elements; 0 repeats. Elements of a row are adjacent.
#[derive(Clone, Copy, Debug)]
pub struct RotaryAngles<'a> {
    /// The elements.
    pub data: &'a [f32],
    /// Batch, head and row stride.
    pub strides: HeadStrides,
    /// True if a row has an element for each pair only, which serves both halves.
    pub half: bool,
}

impl RotaryAngles<'_> {
    fn check(&self, name: &str, r: &RotarySizes) {
        let columns = if self.half { r.width / 2 } else { r.width };
        self.strides.check(name, self.data.len(), r.batch, r.heads, r.rows, columns);
    }

    /// The rows for both halves of one vector.
    fn halves(&self, at: usize, half: usize) -> [*const f32; 2] {
        let first = self.data.as_ptr().wrapping_add(at);
        [first, if self.half { first } else { first.wrapping_add(half) }]
    }
}

/// `y = x · cos + rotate_half(x) · sin` for every vector, with `rotate_half([a, b]) = [−b, a]`; `y`
/// is `[batch, heads, rows, width]`.
///
/// # Panics
/// Panics when `width` is odd, or a slice is shorter than its shape and strides say.
pub fn rotary(
    exec: KernelContext<'_>,
    r: &RotarySizes,
    x: HeadRows<'_>,
    tables: [RotaryAngles<'_>; 2],
    y: &mut [f32],
) {
    assert!(r.width.is_multiple_of(2), "rotary: vectors of {} elements have no halves", r.width);
    x.strides.check("X", x.data.len(), r.batch, r.heads, r.rows, r.width);
    tables[0].check("cos", r);
    tables[1].check("sin", r);
    let vectors = r.batch * r.heads * r.rows;
    assert!(y.len() == vectors * r.width, "rotary: {} elements of Y for {r:?}", y.len());
    let y = DisjointSlice::new(y);
    let half = r.width / 2;
    exec.pool.run_ranges(vectors, GRAIN, |range| {
        exec.isa.run(RotaryTask { r, x, tables, y, range, half });
    });
}

struct RotaryTask<'a> {
    r: &'a RotarySizes,
    x: HeadRows<'a>,
    tables: [RotaryAngles<'a>; 2],
    y: DisjointSlice<f32>,
    range: std::ops::Range<usize>,
    half: usize,
}

impl IsaKernel for RotaryTask<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        for vector in self.range.clone() {
            let row = vector % self.r.rows;
            let head = vector / self.r.rows % self.r.heads;
            let batch = vector / self.r.rows / self.r.heads;
            let at = |s: HeadStrides| batch * s.batch + head * s.head + row * s.row;
            let x = self.x.data.as_ptr().wrapping_add(at(self.x.strides));
            let [cos, sin] = self.tables.map(|table| table.halves(at(table.strides), self.half));
            // SAFETY: the caller has checked X, both tables and Y for every vector; vectors of Y
            // are disjoint.
            unsafe { turn(s, x, cos, sin, self.y.at(vector * self.r.width).ptr(), self.half) };
        }
    }
}

/// Heads whose pairs of elements turn by rows of tables.
#[derive(Clone, Copy, Debug)]
pub struct HeadRotation<'a> {
    /// The vectors.
    pub sizes: RotarySizes,
    /// How many pairs of a vector turn; the elements behind them stay.
    pub pairs: usize,
    /// True if the elements of a pair are neighbours; otherwise they are `pairs` apart.
    pub interleaved: bool,
    /// The row of the tables for each batch and row.
    pub rows: &'a [usize],
    /// Cosines and sines, `pairs` in each row.
    pub tables: [&'a [f32]; 2],
    /// Where results lie.
    pub y: HeadStrides,
}

/// Turns every vector of X as `t` says.
///
/// # Panics
/// Panics when a slice is shorter than shapes and strides say, or a row is not in the tables.
pub fn turn_rows(exec: KernelContext<'_>, t: &HeadRotation<'_>, x: HeadRows<'_>, y: &mut [f32]) {
    let RotarySizes { batch, heads, rows, width } = t.sizes;
    assert!(2 * t.pairs <= width, "rotary: {} pairs of vectors of {width}", t.pairs);
    assert!(t.rows.len() == batch * rows, "rotary: {} rows of {batch} x {rows}", t.rows.len());
    let greatest = t.rows.iter().max().map_or(0, |row| (row + 1) * t.pairs);
    let least = t.tables[0].len().min(t.tables[1].len());
    assert!(greatest <= least, "rotary: tables of {least} elements, {greatest} are named");
    x.strides.check("X", x.data.len(), batch, heads, rows, width);
    t.y.check("Y", y.len(), batch, heads, rows, width);
    let y = DisjointSlice::new(y);
    exec.pool.run_ranges(batch * rows, GRAIN.div_ceil(heads.max(1)), |range| {
        exec.isa.run(TurnTask { t, x, y, range });
    });
}

struct TurnTask<'a> {
    t: &'a HeadRotation<'a>,
    x: HeadRows<'a>,
    y: DisjointSlice<f32>,
    range: std::ops::Range<usize>,
}

impl IsaKernel for TurnTask<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let HeadRotation { sizes, pairs, interleaved, .. } = *self.t;
        let turned = 2 * pairs;
        for at in self.range.clone() {
            let batch = at / sizes.rows;
            let row = at % sizes.rows;
            let table = self.t.tables.map(|t| t.as_ptr().wrapping_add(self.t.rows[at] * pairs));
            for head in 0..sizes.heads {
                let place = |s: HeadStrides| batch * s.batch + head * s.head + row * s.row;
                let x = self.x.data.as_ptr().wrapping_add(place(self.x.strides));
                let y = self.y.at(place(self.t.y)).ptr();
                // SAFETY: the caller has checked X, the tables' rows and Y for every vector;
                // vectors of Y are disjoint.
                unsafe {
                    if interleaved {
                        turn_neighbours(x, table[0], table[1], y, pairs);
                    } else {
                        turn(s, x, [table[0]; 2], [table[1]; 2], y, pairs);
                    }
                    y.add(turned).copy_from_nonoverlapping(x.add(turned), sizes.width - turned);
                }
            }
        }
    }
}

/// # Safety
/// `x` and `y` are valid for `2 pairs` values and do not overlap; each table for `pairs`.
#[inline(always)]
unsafe fn turn_neighbours(
    x: *const f32,
    cos: *const f32,
    sin: *const f32,
    y: *mut f32,
    pairs: usize,
) {
    for pair in 0..pairs {
        // SAFETY: the caller vouches for every pair.
        unsafe {
            let a = *x.add(2 * pair);
            let b = *x.add(2 * pair + 1);
            let cos = *cos.add(pair);
            let sin = *sin.add(pair);
            *y.add(2 * pair) = a * cos - b * sin;
            *y.add(2 * pair + 1) = a * sin + b * cos;
        }
    }
}

/// # Safety
/// `x` and `y` are valid for `2 half` values and do not overlap; each table for `half`.
#[inline(always)]
unsafe fn turn<S: Simd>(
    s: S,
    x: *const f32,
    cos: [*const f32; 2],
    sin: [*const f32; 2],
    y: *mut f32,
    half: usize,
) {
    let mut i = 0;
    while i < half {
        let m = s.tail(half - i);
        // SAFETY: the mask limits every access to the elements below `half`.
        unsafe {
            let load = |p: *const f32| s.load_tail(p.add(i), m);
            let a = load(x);
            let b = load(x.add(half));
            let first = s.fnma(b, load(sin[0]), s.mul(a, load(cos[0])));
            let second = s.fma(a, load(sin[1]), s.mul(b, load(cos[1])));
            s.store_tail(y.add(i), m, first);
            s.store_tail(y.add(half + i), m, second);
        }
        i += S::LANES;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::test_values as values;
    use crate::{Isa, ThreadPool};

    fn check(r: RotarySizes, rows_first: bool, half: bool) {
        let pool = ThreadPool::new(2);
        let len = r.batch * r.heads * r.rows * r.width;
        let x = values(len, 1);
        let strides = if rows_first {
            HeadStrides::rows_first(r.heads, r.rows, r.width)
        } else {
            HeadStrides::heads_first(r.heads, r.rows, r.width)
        };
        let columns = if half { r.width / 2 } else { r.width };
        let cos = values(r.rows * columns, 2);
        let sin = values(r.rows * columns, 3);
        let shared = HeadStrides { batch: 0, head: 0, row: columns };
        let table = |data| RotaryAngles { data, strides: shared, half };
        for isa in Isa::available() {
            let exec = KernelContext { pool: &pool, isa };
            let mut y = vec![f32::NAN; len];
            rotary(exec, &r, HeadRows { data: &x, strides }, [table(&cos), table(&sin)], &mut y);
            for (at, &got) in y.iter().enumerate() {
                let column = at % r.width;
                let vector = at / r.width;
                let row = vector % r.rows;
                let head = vector / r.rows % r.heads;
                let batch = vector / r.rows / r.heads;
                let from = batch * strides.batch + head * strides.head + row * strides.row;
                let turned = if column < r.width / 2 {
                    -x[from + column + r.width / 2]
                } else {
                    x[from + column - r.width / 2]
                };
                let tabled = |t: &[f32]| t[row * columns + column % columns];
                let want = x[from + column] * tabled(&cos) + turned * tabled(&sin);
                assert!((got - want).abs() < 1e-6, "{} {r:?} {at}: {got} {want}", isa.name());
            }
        }
    }

    #[test]
    fn any_width_order_and_table_equals_the_formula() {
        for width in [2, 6, 32, 64, 80, 130] {
            for (rows_first, half) in [(false, false), (true, false), (false, true), (true, true)] {
                check(RotarySizes { batch: 2, heads: 3, rows: 5, width }, rows_first, half);
            }
        }
        check(RotarySizes { batch: 1, heads: 4, rows: 150, width: 64 }, true, true);
    }

    /// Vectors turned by the formula, from a layout to another.
    fn check_rows(sizes: RotarySizes, pairs: usize, interleaved: bool) {
        let pool = ThreadPool::new(2);
        let RotarySizes { batch, heads, rows, width } = sizes;
        let len = batch * heads * rows * width;
        let x = values(len, 1);
        let from = HeadStrides::rows_first(heads, rows, width);
        let to = HeadStrides::heads_first(heads, rows, width);
        let cos = values(7 * pairs, 2);
        let sin = values(7 * pairs, 3);
        let named: Vec<usize> = (0..batch * rows).map(|at| at * 5 % 7).collect();
        let tables = [cos.as_slice(), sin.as_slice()];
        let t = HeadRotation { sizes, pairs, interleaved, rows: &named, tables, y: to };
        for isa in Isa::available() {
            let mut y = vec![f32::NAN; len];
            turn_rows(
                KernelContext { pool: &pool, isa },
                &t,
                HeadRows { data: &x, strides: from },
                &mut y,
            );
            for (at, &got) in y.iter().enumerate() {
                let column = at % width;
                let row = at / width % rows;
                let head = at / width / rows % heads;
                let batch = at / width / rows / heads;
                let x = |column: usize| x[((batch * rows + row) * heads + head) * width + column];
                let (pair, second) = if interleaved {
                    (column / 2, column % 2 == 1)
                } else {
                    (column % pairs, column >= pairs)
                };
                let want = if column >= 2 * pairs {
                    x(column)
                } else {
                    let entry = named[batch * rows + row] * pairs + pair;
                    let other = match (interleaved, second) {
                        (true, false) => column + 1,
                        (true, true) => column - 1,
                        (false, false) => column + pairs,
                        (false, true) => column - pairs,
                    };
                    let sign = if second { 1.0 } else { -1.0 };
                    x(column) * cos[entry] + sign * x(other) * sin[entry]
                };
                assert!((got - want).abs() < 1e-6, "{} {sizes:?} {at}: {got} {want}", isa.name());
            }
        }
    }

    #[test]
    fn rows_of_tables_turn_pairs_of_either_kind() {
        for (width, pairs) in [(2, 1), (6, 2), (64, 32), (80, 40), (130, 33)] {
            for interleaved in [false, true] {
                check_rows(RotarySizes { batch: 2, heads: 3, rows: 5, width }, pairs, interleaved);
            }
        }
        check_rows(RotarySizes { batch: 1, heads: 2, rows: 150, width: 64 }, 32, false);
    }

    #[test]
    #[should_panic(expected = "are named")]
    fn rows_beyond_the_tables_are_refused() {
        let pool = ThreadPool::new(1);
        let sizes = RotarySizes { batch: 1, heads: 1, rows: 1, width: 2 };
        let strides = HeadStrides::heads_first(1, 1, 2);
        let data = [0.0; 2];
        let tables = [&data[..]; 2];
        let t =
            HeadRotation { sizes, pairs: 1, interleaved: false, rows: &[2], tables, y: strides };
        turn_rows(KernelContext::new(&pool), &t, HeadRows { data: &data, strides }, &mut [0.0; 2]);
    }

    #[test]
    #[should_panic(expected = "no halves")]
    fn odd_vectors_are_refused() {
        let pool = ThreadPool::new(1);
        let r = RotarySizes { batch: 1, heads: 1, rows: 1, width: 3 };
        let strides = HeadStrides::heads_first(1, 1, 3);
        let data = [0.0; 3];
        let table = RotaryAngles { data: &data, strides, half: false };
        rotary(
            KernelContext::new(&pool),
            &r,
            HeadRows { data: &data, strides },
            [table; 2],
            &mut [0.0; 3],
        );
    }
}
