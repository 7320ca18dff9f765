//! The one-dimensional transforms of minimal filtering F(m, 3), vector by vector.
//!
//! The polynomials are evaluated at 0, at pairs `±p`, and at infinity, so every row of a matrix
//! splits into even and odd terms that the two points of a pair share. The points are those with
//! the least error of sums in single precision among small fractions.

use crate::isa::Simd;

/// Most points of one dimension.
pub(super) const MOST: usize = 8;

/// Most pairs of points.
const PAIRS: usize = 3;

/// One of the transforms.
pub(super) trait WinogradTransform: Copy + Send + Sync + 'static {
    /// The positive point of each pair; the first `OUT / 2` count.
    const POINTS: [f64; PAIRS];
    /// Outputs of one tile.
    const OUT: usize;
    /// Inputs of one tile, and points.
    const IN: usize = Self::OUT + 2;
    /// `product of (x² - p²)` over all pairs, as coefficients of powers of `x²`.
    const WHOLE: [f32; PAIRS + 1] = narrow(without(Self::POINTS, Self::OUT / 2, PAIRS));
    /// The same without the pair of that number.
    const REST: [[f32; PAIRS + 1]; PAIRS] = [
        narrow(without(Self::POINTS, Self::OUT / 2, 0)),
        narrow(without(Self::POINTS, Self::OUT / 2, 1)),
        narrow(without(Self::POINTS, Self::OUT / 2, 2)),
    ];
    /// Powers of each point.
    const POWERS: [[f32; MOST]; PAIRS] =
        [powers(Self::POINTS[0]), powers(Self::POINTS[1]), powers(Self::POINTS[2])];
}

/// F(2, 3).
#[derive(Clone, Copy)]
pub(super) struct WinogradF2;
/// F(4, 3).
#[derive(Clone, Copy)]
pub(super) struct WinogradF4;
/// F(6, 3).
#[derive(Clone, Copy)]
pub(super) struct WinogradF6;

impl WinogradTransform for WinogradF2 {
    const POINTS: [f64; PAIRS] = [1.0, 0.0, 0.0];
    const OUT: usize = 2;
}
impl WinogradTransform for WinogradF4 {
    const POINTS: [f64; PAIRS] = [0.625, 1.5, 0.0];
    const OUT: usize = 4;
}
impl WinogradTransform for WinogradF6 {
    const POINTS: [f64; PAIRS] = [0.5, 1.0, 2.0];
    const OUT: usize = 6;
}

/// Coefficients of the product of `x² - p²` over the first `pairs` points but number `skip`.
const fn without(points: [f64; PAIRS], pairs: usize, skip: usize) -> [f64; PAIRS + 1] {
    let mut product = [0.0; PAIRS + 1];
    product[0] = 1.0;
    let mut j = 0;
    while j < pairs {
        if j != skip {
            let square = points[j] * points[j];
            let mut i = PAIRS;
            while i > 0 {
                product[i] = product[i - 1] - square * product[i];
                i -= 1;
            }
            product[0] *= -square;
        }
        j += 1;
    }
    product
}

#[allow(clippy::cast_possible_truncation, reason = "each constant is rounded once")]
const fn narrow(values: [f64; PAIRS + 1]) -> [f32; PAIRS + 1] {
    [values[0] as f32, values[1] as f32, values[2] as f32, values[3] as f32]
}

#[allow(clippy::cast_possible_truncation, reason = "each constant is rounded once")]
const fn powers(point: f64) -> [f32; MOST] {
    let mut all = [1.0; MOST];
    let mut power = 1.0;
    let mut i = 0;
    while i < MOST {
        all[i] = power as f32;
        power *= point;
        i += 1;
    }
    all
}

/// `Bᵀ d`: the inputs of a tile at every point. The first `F::IN` of both count.
#[inline(always)]
pub(super) fn input<S: Simd, F: WinogradTransform>(s: S, d: [S::F; MOST]) -> [S::F; MOST] {
    let pairs = F::OUT / 2;
    let mut out = [s.splat(0.0); MOST];
    let mut even = d[2 * pairs];
    let mut odd = d[2 * pairs + 1];
    for i in 0..pairs {
        let factor = s.splat(F::WHOLE[i]);
        even = s.fma(factor, d[2 * i], even);
        odd = s.fma(factor, d[2 * i + 1], odd);
    }
    out[0] = even;
    out[F::IN - 1] = odd;
    for j in 0..pairs {
        let mut even = d[2 * pairs];
        let mut odd = d[2 * pairs - 1];
        for i in 0..pairs - 1 {
            let factor = s.splat(F::REST[j][i]);
            even = s.fma(factor, d[2 * i + 2], even);
            odd = s.fma(factor, d[2 * i + 1], odd);
        }
        let point = s.splat(F::POWERS[j][1]);
        out[1 + 2 * j] = s.fma(point, odd, even);
        out[2 + 2 * j] = s.fnma(point, odd, even);
    }
    out
}

/// `Aᵀ m`: the outputs of a tile from the products at every point. The first `F::IN` of `m` and
/// the first `F::OUT` of the result count.
#[inline(always)]
pub(super) fn output<S: Simd, F: WinogradTransform>(s: S, m: [S::F; MOST]) -> [S::F; MOST] {
    let pairs = F::OUT / 2;
    let mut out = [s.splat(0.0); MOST];
    out[0] = m[0];
    out[F::OUT - 1] = m[F::IN - 1];
    for j in 0..pairs {
        let sum = s.add(m[1 + 2 * j], m[2 + 2 * j]);
        let difference = s.sub(m[1 + 2 * j], m[2 + 2 * j]);
        for (i, out) in out.iter_mut().enumerate().take(F::OUT) {
            let part = if i % 2 == 0 { sum } else { difference };
            let power = F::POWERS[j][i];
            // The first term of a sum is no sum.
            let first = j == 0 && i != 0 && i != F::OUT - 1;
            *out = if first {
                s.mul(s.splat(power), part)
            } else if i == 0 {
                s.add(*out, part)
            } else {
                s.fma(s.splat(power), part, *out)
            };
        }
    }
    out
}

/// `G g Gᵀ` in double precision: a window of 3 x 3 taps at every pair of points.
pub(super) fn weights<F: WinogradTransform>(taps: &[[f64; 3]; 3]) -> [[f64; MOST]; MOST] {
    let rows = matrix::<F>();
    let along =
        |row: &[f64; 3], x: [f64; 3]| row.iter().zip(x).map(|(&factor, x)| factor * x).sum::<f64>();
    let mut out = [[0.0; MOST]; MOST];
    for (out, vertical) in out.iter_mut().zip(&rows[..F::IN]) {
        let column = |c: usize| along(vertical, [taps[0][c], taps[1][c], taps[2][c]]);
        let line = [column(0), column(1), column(2)];
        for (out, horizontal) in out.iter_mut().zip(&rows[..F::IN]) {
            *out = along(horizontal, line);
        }
    }
    out
}

/// The matrix G: powers of each point over the product of its distances to the others.
fn matrix<F: WinogradTransform>() -> [[f64; 3]; MOST] {
    let pairs = F::OUT / 2;
    let mut rows = [[0.0; 3]; MOST];
    let squares = |skip: usize| {
        let others = (0..pairs).filter(move |&j| j != skip);
        others.map(|j| F::POINTS[j] * F::POINTS[j])
    };
    rows[0][0] = 1.0 / squares(PAIRS).map(|square| -square).product::<f64>();
    for (j, &p) in F::POINTS[..pairs].iter().enumerate() {
        let distances = 2.0 * p * p * squares(j).map(|square| p * p - square).product::<f64>();
        rows[1 + 2 * j] = [1.0, p, p * p].map(|power| power / distances);
        rows[2 + 2 * j] = [1.0, -p, p * p].map(|power| power / distances);
    }
    rows[F::IN - 1][2] = 1.0;
    rows
}
