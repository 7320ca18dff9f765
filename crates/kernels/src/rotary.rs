//! Rotary position embeddings: halves of heads turned by tabled angles.

use crate::Exec;
use crate::attention::{HeadStrides, Heads};
use crate::isa::{Kernel, Simd};
use crate::memory::Shared;

/// Vectors per task.
const GRAIN: usize = 64;

/// The sizes of a rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotary {
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
pub struct Table<'a> {
    /// The elements.
    pub data: &'a [f32],
    /// Batch, head and row stride.
    pub strides: HeadStrides,
    /// Whether a row has an element for each pair only, which serves both halves.
    pub half: bool,
}

impl Table<'_> {
    fn check(&self, name: &str, r: &Rotary) {
        let columns = if self.half { r.width / 2 } else { r.width };
        self.strides.check(name, self.data.len(), [r.batch, r.heads, r.rows, columns]);
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
/// When `width` is odd, or a slice is shorter than its shape and strides say.
pub fn rotary(exec: Exec<'_>, r: &Rotary, x: Heads<'_>, tables: [Table<'_>; 2], y: &mut [f32]) {
    assert!(r.width.is_multiple_of(2), "rotary: vectors of {} elements have no halves", r.width);
    x.strides.check("X", x.data.len(), [r.batch, r.heads, r.rows, r.width]);
    tables[0].check("cos", r);
    tables[1].check("sin", r);
    let vectors = r.batch * r.heads * r.rows;
    assert!(y.len() == vectors * r.width, "rotary: {} elements of Y for {r:?}", y.len());
    let (y, half) = (Shared::new(y), r.width / 2);
    exec.pool.run_ranges(vectors, GRAIN, |range| {
        exec.isa.run(Task { r, x, tables, y, range, half });
    });
}

struct Task<'a> {
    r: &'a Rotary,
    x: Heads<'a>,
    tables: [Table<'a>; 2],
    y: Shared<f32>,
    range: std::ops::Range<usize>,
    half: usize,
}

impl Kernel for Task<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        for vector in self.range.clone() {
            let (row, head) = (vector % self.r.rows, vector / self.r.rows % self.r.heads);
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
            let (a, b) = (load(x), load(x.add(half)));
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

    fn check(r: Rotary, rows_first: bool, half: bool) {
        let pool = ThreadPool::new(2);
        let len = r.batch * r.heads * r.rows * r.width;
        let x = values(len, 1);
        let strides = if rows_first {
            HeadStrides::rows_first(r.heads, r.rows, r.width)
        } else {
            HeadStrides::heads_first(r.heads, r.rows, r.width)
        };
        let columns = if half { r.width / 2 } else { r.width };
        let (cos, sin) = (values(r.rows * columns, 2), values(r.rows * columns, 3));
        let shared = HeadStrides { batch: 0, head: 0, row: columns };
        let table = |data| Table { data, strides: shared, half };
        for isa in Isa::available() {
            let exec = Exec { pool: &pool, isa };
            let mut y = vec![f32::NAN; len];
            rotary(exec, &r, Heads { data: &x, strides }, [table(&cos), table(&sin)], &mut y);
            for (at, &got) in y.iter().enumerate() {
                let (column, vector) = (at % r.width, at / r.width);
                let (row, head) = (vector % r.rows, vector / r.rows % r.heads);
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
                check(Rotary { batch: 2, heads: 3, rows: 5, width }, rows_first, half);
            }
        }
        check(Rotary { batch: 1, heads: 4, rows: 150, width: 64 }, true, true);
    }

    #[test]
    #[should_panic(expected = "no halves")]
    fn odd_vectors_are_refused() {
        let pool = ThreadPool::new(1);
        let r = Rotary { batch: 1, heads: 1, rows: 1, width: 3 };
        let strides = HeadStrides::heads_first(1, 1, 3);
        let data = [0.0; 3];
        let table = Table { data: &data, strides, half: false };
        rotary(Exec::new(&pool), &r, Heads { data: &data, strides }, [table; 2], &mut [0.0; 3]);
    }
}
