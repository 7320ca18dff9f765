//! Winograd's minimal filtering F(m x m, 3 x 3): fewer multiplications for more additions.
//!
//! Tiles of m x m pixels are transformed to (m + 2)² points each, at every point there is a
//! matrix product over channels, and the products are transformed back. A block of tiles passes
//! through the three steps while it is in the second-level cache; the epilogue is part of the last.
//!
//! A value that is not finite reaches all pixels of its tiles.
//!
//! Sources: Lavin and Gray, *Fast Algorithms for Convolutional Neural Networks* (2015);
//! Barabasz, Anderson, Soodhalter and Gregg, *Error Analysis and Improving the Accuracy of Winograd
//! Convolution for Deep Neural Networks* (2020), for the choice of points.

mod tiles;
mod transform;

use std::marker::PhantomData;

use super::ConvParams;
use super::rows::Window;
use crate::Exec;
use crate::gemm::{Finish, K_BLOCK, PackedB, Step, block};
use crate::isa::{Isa, Kernel, Simd};
use crate::memory::{Shared, with_scratch};
use crate::Trans;
use galatea_tensor::Tensor;
use tiles::{Gather, Inputs, Products, Scatter, Tiling};
use transform::{Form, Four, Six, Two};

/// Most bytes of transformed inputs of a block of tiles.
const INPUT_BYTES: usize = 1024 * 1024;

/// Most bytes of products of a block of tiles.
const PRODUCT_BYTES: usize = 512 * 1024;

/// Fewest tiles that are worth a pass over the weights.
const FEW_TILES: usize = 28;

/// Outputs of a tile along a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Two,
    Four,
    Six,
}

/// Calls `$body` with the form of a side.
macro_rules! with_form {
    ($side:expr, $form:ident => $body:expr) => {
        match $side {
            Side::Two => {
                let $form = PhantomData::<Two>;
                $body
            }
            Side::Four => {
                let $form = PhantomData::<Four>;
                $body
            }
            Side::Six => {
                let $form = PhantomData::<Six>;
                $body
            }
        }
    };
}

impl Side {
    /// Outputs along a side.
    pub(super) fn len(self) -> usize {
        match self {
            Self::Two => 2,
            Self::Four => 4,
            Self::Six => 6,
        }
    }

    /// Products of a tile.
    pub(super) fn points(self) -> usize {
        (self.len() + 2) * (self.len() + 2)
    }
}

/// Whether minimal filtering computes such a convolution.
pub(super) fn fits(p: &ConvParams) -> bool {
    p.kernel == [1, 3, 3]
        && p.stride == [1; 3]
        && p.dilation[1..] == [1; 2]
        && p.groups == 1
        && p.pads_begin[0] == 0
        && p.pads_end[0] == 0
        && p.in_channels > 0
}

/// Transformed weights: a matrix (in-channels, out-channels) per point.
#[derive(Clone)]
pub(super) struct Weights {
    side: Side,
    pub(super) points: Vec<PackedB>,
}

impl Weights {
    /// Transforms weights in ONNX's order, in double precision, and rounds once.
    #[allow(clippy::cast_possible_truncation, reason = "each weight is rounded once")]
    pub(super) fn pack(isa: Isa, p: &ConvParams, side: Side, weights: &[f32]) -> Self {
        let (cin, cout) = (p.in_channels, p.out_channels);
        let lines = side.len() + 2;
        let mut points = vec![0.0; side.points() * cin * cout];
        for (channels, taps) in weights.chunks_exact(9).enumerate() {
            let taps = std::array::from_fn(|h| std::array::from_fn(|w| f64::from(taps[3 * h + w])));
            let all = with_form!(side, form => transformed(form, &taps));
            for point in 0..side.points() {
                points[point * cin * cout + channels] = all[point / lines][point % lines] as f32;
            }
        }
        let pack = |w| PackedB::pack(isa, cin, cout, w, cin, Trans::Yes);
        let empty = cin * cout == 0;
        let points = if empty {
            (0..side.points()).map(|_| pack(&[][..])).collect()
        } else {
            points.chunks_exact(cin * cout).map(pack).collect()
        };
        Self { side, points }
    }

    /// Weights that were packed before; also where they end.
    pub(super) fn from_data(
        isa: Isa,
        p: &ConvParams,
        side: Side,
        all: &Tensor,
    ) -> Option<(Self, usize)> {
        let mut at = 0;
        let mut points = Vec::with_capacity(side.points());
        for _ in 0..side.points() {
            let point = PackedB::from_data(isa, p.in_channels, p.out_channels, all, at)?;
            at += point.data().len();
            points.push(point);
        }
        Some((Self { side, points }, at))
    }

    pub(super) fn side(&self) -> Side {
        self.side
    }
}

fn transformed<F: Form>(_: PhantomData<F>, taps: &[[f64; 3]; 3]) -> [[f64; transform::MOST]; transform::MOST] {
    transform::weights::<F>(taps)
}

/// A convolution with everything that its tasks need.
#[derive(Clone, Copy)]
struct Plan<'a> {
    isa: Isa,
    weights: &'a Weights,
    tiling: Tiling<'a>,
    x: Shared<f32>,
    y: Shared<f32>,
    finish: Finish,
}

/// Computes the whole convolution.
///
/// # Safety
/// `x`, `y` and the finish have the sizes of the window and `batch`; nothing else uses `y`
/// meanwhile; the parameters are such as [`fits`] takes.
pub(super) unsafe fn run(
    exec: Exec<'_>,
    window: &Window,
    x: &[f32],
    batch: usize,
    weights: &Weights,
    y: Shared<f32>,
    finish: Finish,
) {
    let side = weights.side;
    let tiling = Tiling::new(window, side.len());
    let x = Shared::from_ptr(x.as_ptr().cast_mut());
    let plan = Plan { isa: exec.isa, weights, tiling, x, y, finish };
    let p = &window.params;
    let tiles = batch * window.out[0] * tiling.grid[0] * tiling.grid[1];
    let threads = exec.pool.threads();
    let panels = p.out_channels.div_ceil(exec.isa.tile_columns());
    let most = (INPUT_BYTES / (side.points() * p.in_channels * size_of::<f32>())).max(FEW_TILES);
    // With fewer tiles than columns the weights are more than the inputs, so threads share the
    // inputs and each reads a part of the weights.
    if threads > 1 && panels >= threads && tiles < p.out_channels {
        let most = most * threads;
        let blocks = tiles.div_ceil(most);
        for i in 0..blocks {
            plan.shared(exec, tiles * i / blocks..tiles * (i + 1) / blocks, panels);
        }
        return;
    }
    let mut blocks = tiles.div_ceil(most);
    if tiles >= 2 * threads {
        blocks = blocks.next_multiple_of(threads);
    }
    exec.pool.run(blocks, |i| plan.block(tiles * i / blocks..tiles * (i + 1) / blocks));
}

impl Plan<'_> {
    fn inputs(&self, rows: usize) -> Inputs {
        Inputs::new(self.tiling.window.params.in_channels, rows, K_BLOCK)
    }

    /// Columns whose products are kept at once.
    fn columns(&self, rows: usize, most: usize) -> usize {
        let width = self.isa.tile_columns();
        let column = self.weights.side.points() * rows.max(1) * size_of::<f32>();
        (PRODUCT_BYTES / column / width * width).clamp(width, most.next_multiple_of(width))
    }

    /// All steps for a block of tiles.
    fn block(&self, tiles: std::ops::Range<usize>) {
        let channels = self.tiling.window.params.in_channels;
        let end = self.tiling.window.params.out_channels;
        let inputs = self.inputs(tiles.len());
        let zeros = tiles::odd_lines(channels);
        let points = self.weights.side.points();
        with_scratch(points * inputs.point + zeros, |scratch| {
            let (v, zeros) = scratch.split_at_mut(points * inputs.point);
            zeros.fill(0.0);
            let v = Shared::new(v);
            self.gather(tiles.clone(), 0, inputs, v, zeros);
            self.products(tiles, inputs, v, (0, end));
        });
    }

    /// All steps for a block of tiles, by all threads.
    fn shared(&self, exec: Exec<'_>, tiles: std::ops::Range<usize>, panels: usize) {
        let channels = self.tiling.window.params.in_channels;
        let end = self.tiling.window.params.out_channels;
        let width = self.isa.tile_columns();
        let inputs = self.inputs(tiles.len());
        let zeros = tiles::odd_lines(channels);
        let points = self.weights.side.points();
        with_scratch(points * inputs.point + zeros, |scratch| {
            let (v, zeros) = scratch.split_at_mut(points * inputs.point);
            zeros.fill(0.0);
            let (v, zeros) = (Shared::new(v), &*zeros);
            exec.pool.run_ranges(tiles.len(), 1, |range| {
                let own = tiles.start + range.start..tiles.start + range.end;
                self.gather(own, range.start, inputs, v, zeros);
            });
            let groups = panels.min(exec.pool.threads() * 2);
            exec.pool.run(groups, |group| {
                let start = panels * group / groups * width;
                let end = (panels * (group + 1) / groups * width).min(end);
                self.products(tiles.clone(), inputs, v, (start, end));
            });
        });
    }

    fn gather(
        &self,
        tiles: std::ops::Range<usize>,
        row: usize,
        inputs: Inputs,
        v: Shared<f32>,
        zeros: &[f32],
    ) {
        let (tiling, x) = (self.tiling, self.x.ptr().cast_const());
        with_form!(self.weights.side, form => {
            self.isa.run(Gather { form, tiling, x, tiles, row, inputs, v, zeros });
        });
    }

    /// The products of some columns, and their pixels.
    fn products(
        &self,
        tiles: std::ops::Range<usize>,
        inputs: Inputs,
        v: Shared<f32>,
        (start, end): (usize, usize),
    ) {
        let (isa, finish, y, tiling) = (self.isa, self.finish, self.y, self.tiling);
        let most = self.columns(tiles.len(), end - start);
        let products = Products::new(most, tiles.len());
        with_scratch(self.weights.side.points() * products.point, |m| {
            let mut column = start;
            while column < end {
                let columns = (column, end.min(column + most));
                let (weights, m_in) = (&self.weights.points[..], m.as_mut_ptr());
                isa.run(Multiply { weights, inputs, v, products, m: m_in, columns });
                let (m, tiles) = (m.as_ptr(), tiles.clone());
                with_form!(self.weights.side, form => {
                    isa.run(Scatter { form, tiling, tiles, products, m, columns, y, finish });
                });
                column += most;
            }
        });
    }
}

/// The matrix products at all points.
struct Multiply<'a> {
    weights: &'a [PackedB],
    inputs: Inputs,
    v: Shared<f32>,
    products: Products,
    m: *mut f32,
    columns: (usize, usize),
}

impl Kernel for Multiply<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let width = S::LANES * S::TILE_VECTORS;
        let (v, rows, depth) = (self.v.ptr(), self.inputs.rows, self.inputs.depth);
        for (point, b) in self.weights.iter().enumerate() {
            let (b, channels) = (b.as_source(), b.k());
            let mut column = self.columns.0;
            while column < self.columns.1 {
                let columns = width.min(self.columns.1 - column);
                let c = self.m.wrapping_add(point * self.products.point + column - self.columns.0);
                let mut channel = 0;
                while channel < channels {
                    let k = depth.min(channels - channel);
                    // SAFETY: a panel of this point; a packed B needs no scratch.
                    unsafe {
                        let panel = b.panel(s, channel, k, column, columns, std::ptr::null_mut());
                        let step = Step {
                            k,
                            a: v.wrapping_add(self.inputs.at(point, channel, 0)),
                            a_stride: crate::gemm::A_STRIDE,
                            b: panel.data,
                            b_stride: panel.stride,
                            c,
                            c_stride: self.products.row,
                            columns,
                            accumulate: channel > 0,
                            finish: None,
                        };
                        block(s, &step, rows);
                    }
                    channel += depth;
                }
                column += width;
            }
        }
    }
}
