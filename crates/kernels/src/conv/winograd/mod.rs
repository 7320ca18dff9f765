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

mod accuracy;
mod micro;
mod tiles;
mod transform;

use std::marker::PhantomData;

use super::ConvParams;
use super::rows::ConvWindow;
use crate::KernelContext;
use crate::Transposition;
use crate::gemm::{PackedB, TileFinish};
use crate::isa::Isa;
use crate::memory::{DisjointSlice, with_scratch};
use crate::pieces::WorkPieces;
use galatea_tensor::Tensor;
use micro::WinogradProducts;
use tiles::{InputTransform, OutputTransform, PixelTiling, TileProducts, TransformedInputs};
use transform::{WinogradF2, WinogradF4, WinogradF6, WinogradTransform};

/// Most bytes of transformed inputs of a block of tiles, and of its products at a time.
const BLOCK_BYTES: usize = 256 * 1024;

/// Most bytes of inputs and products of tiles that all threads work on.
const STAGE_BYTES: usize = 16 * 1024 * 1024;

/// Fewest tiles that are worth a pass over the weights.
const FEW_TILES: usize = 28;

/// Outputs of a tile along a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TileSide {
    Two,
    Four,
    Six,
}

/// Calls `$body` with the form of a side.
macro_rules! with_form {
    ($side:expr, $form:ident => $body:expr) => {
        match $side {
            TileSide::Two => {
                let $form = PhantomData::<WinogradF2>;
                $body
            }
            TileSide::Four => {
                let $form = PhantomData::<WinogradF4>;
                $body
            }
            TileSide::Six => {
                let $form = PhantomData::<WinogradF6>;
                $body
            }
        }
    };
}

impl TileSide {
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

/// Returns whether minimal filtering computes such a convolution.
pub(super) fn fits(p: &ConvParams) -> bool {
    p.kernel == [1, 3, 3]
        && p.stride == [1; 3]
        && p.dilation[1..] == [1; 2]
        && p.groups == 1
        && p.pads_begin[0] == 0
        && p.pads_end[0] == 0
        && p.in_channels > 0
}

/// The error beside the size of a result that is expected with such weights, in ONNX's order.
pub(super) fn expected_error(p: &ConvParams, side: TileSide, weights: &[f32]) -> f64 {
    fn of<F: WinogradTransform>(_: PhantomData<F>, p: &ConvParams, weights: &[f32]) -> f64 {
        accuracy::expected_error::<F>(p, weights)
    }
    with_form!(side, form => of(form, p, weights))
}

/// Transformed weights: a matrix (in-channels, out-channels) per point, beside each other, each
/// rounded up to whole panels.
#[derive(Clone)]
pub(super) struct WinogradWeights {
    side: TileSide,
    pub(super) matrix: PackedB,
}

impl WinogradWeights {
    /// Transforms weights in ONNX's order, in double precision, and rounds once.
    #[allow(clippy::cast_possible_truncation, reason = "each weight is rounded once")]
    pub(super) fn pack(isa: Isa, p: &ConvParams, side: TileSide, weights: &[f32]) -> Self {
        let cin = p.in_channels;
        let columns = Self::columns(isa, p);
        let lines = side.len() + 2;
        let mut points = vec![0.0; side.points() * columns * cin];
        for (channels, taps) in weights.chunks_exact(9).enumerate() {
            let taps = std::array::from_fn(|h| std::array::from_fn(|w| f64::from(taps[3 * h + w])));
            let all = with_form!(side, form => transformed(form, &taps));
            for point in 0..side.points() {
                points[point * columns * cin + channels] = all[point / lines][point % lines] as f32;
            }
        }
        let all = side.points() * columns;
        Self { side, matrix: PackedB::pack(isa, cin, all, &points, cin, Transposition::Yes) }
    }

    /// Weights that were packed before; also where they end.
    pub(super) fn from_data(
        isa: Isa,
        p: &ConvParams,
        side: TileSide,
        all: &Tensor,
    ) -> Option<(Self, usize)> {
        let columns = side.points() * Self::columns(isa, p);
        let matrix = PackedB::from_data(isa, p.in_channels, columns, all, 0)?;
        let end = matrix.data().len();
        Some((Self { side, matrix }, end))
    }

    /// Columns of a point: whole panels.
    fn columns(isa: Isa, p: &ConvParams) -> usize {
        p.out_channels.next_multiple_of(isa.tile_columns())
    }
}

fn transformed<F: WinogradTransform>(
    _: PhantomData<F>,
    taps: &[[f64; 3]; 3],
) -> [[f64; transform::MOST]; transform::MOST] {
    transform::weights::<F>(taps)
}

/// A convolution with everything that its tasks need.
#[derive(Clone, Copy)]
struct WinogradPlan<'a> {
    isa: Isa,
    weights: &'a WinogradWeights,
    tiling: PixelTiling<'a>,
    x: DisjointSlice<f32>,
    y: DisjointSlice<f32>,
    finish: TileFinish,
}

/// Computes the whole convolution.
///
/// # Safety
/// `x`, `y` and the finish have the sizes of the window and `batch`; nothing else uses `y`
/// meanwhile; the parameters are such as [`fits`] takes.
pub(super) unsafe fn run(
    exec: KernelContext<'_>,
    window: &ConvWindow,
    x: &[f32],
    batch: usize,
    weights: &WinogradWeights,
    y: DisjointSlice<f32>,
    finish: TileFinish,
) {
    let side = weights.side;
    let tiling = PixelTiling::new(window, side.len());
    let x = DisjointSlice::from_ptr(x.as_ptr().cast_mut());
    let plan = WinogradPlan { isa: exec.isa, weights, tiling, x, y, finish };
    let p = &window.params;
    let tiles = batch * window.out[0] * tiling.grid[0] * tiling.grid[1];
    let threads = exec.pool.threads();
    let row = side.points() * size_of::<f32>();
    let most = (BLOCK_BYTES / (row * p.in_channels)).max(FEW_TILES);
    // What passes through the caches beyond the second level, per point: the weights for each block
    // of tiles, or once and the inputs and products instead, in both directions and between cores.
    let weights = p.in_channels * p.out_channels;
    let passes = tiles.div_ceil(threads).div_ceil(most);
    let between = tiles * (p.in_channels + p.out_channels);
    if weights * passes * threads > weights + 3 * between {
        let most = STAGE_BYTES / (row * (p.in_channels + p.out_channels));
        let stages = tiles.div_ceil(most.max(FEW_TILES));
        for i in 0..stages {
            plan.stages(exec, tiles * i / stages..tiles * (i + 1) / stages);
        }
        return;
    }
    // Every thread has a part, even where that is less than a pass over the weights is worth.
    let fewest = FEW_TILES.min(tiles / threads).max(1);
    let blocks = WorkPieces { len: tiles, threads, most, fewest, unit: 1 };
    blocks.run(exec.pool, |tiles| plan.block(tiles));
}

impl WinogradPlan<'_> {
    fn inputs(&self, rows: usize) -> TransformedInputs {
        TransformedInputs::new(self.tiling.window.params.in_channels, rows, self.isa.tile_rows())
    }

    /// All steps for a block of tiles, the products of some columns at a time.
    fn block(&self, tiles: std::ops::Range<usize>) {
        let end = self.tiling.window.params.out_channels;
        let rows = tiles.len();
        let inputs = self.inputs(rows);
        let points = self.weights.side.points();
        let width = self.isa.tile_columns();
        let column = points * rows.max(1) * size_of::<f32>();
        let most = (BLOCK_BYTES / column / width * width).clamp(width, end.next_multiple_of(width));
        let products = TileProducts::new(most, rows);
        self.with_rooms(inputs, products, |v, m, zeros| {
            self.gather(tiles.clone(), 0, inputs, v, zeros);
            let mut column = 0;
            while column < end {
                let columns = (column, end.min(column + most));
                self.multiply(0..points, inputs, v, products, m, columns);
                self.scatter(tiles.clone(), products, m, columns);
                column += most;
            }
        });
    }

    /// Each step for all tiles, by all threads: each reads only a part of the weights.
    fn stages(&self, exec: KernelContext<'_>, tiles: std::ops::Range<usize>) {
        let columns = (0, self.tiling.window.params.out_channels);
        let rows = tiles.len();
        let inputs = self.inputs(rows);
        let products = TileProducts::new(columns.1.next_multiple_of(self.isa.tile_columns()), rows);
        let own =
            |range: &std::ops::Range<usize>| tiles.start + range.start..tiles.start + range.end;
        self.with_rooms(inputs, products, |v, m, zeros| {
            exec.pool.run_ranges(rows, 1, |range| {
                self.gather(own(&range), range.start, inputs, v, zeros);
            });
            exec.pool.run(self.weights.side.points(), |point| {
                self.multiply(point..point + 1, inputs, v, products, m, columns);
            });
            exec.pool.run_ranges(rows, 1, |range| {
                let m = m.at(range.start * products.row);
                self.scatter(own(&range), products, m, columns);
            });
        });
    }

    /// Lends room for inputs and products, and as many zeros as the image has channels.
    fn with_rooms(
        &self,
        inputs: TransformedInputs,
        products: TileProducts,
        body: impl FnOnce(DisjointSlice<f32>, DisjointSlice<f32>, &[f32]),
    ) {
        let points = self.weights.side.points();
        let zeros = tiles::odd_lines(self.tiling.window.params.in_channels);
        let v = points * inputs.point;
        let m = points * products.point;
        with_scratch(v + m + zeros, |scratch| {
            let (v, rest) = scratch.split_at_mut(v);
            let (m, zeros) = rest.split_at_mut(m);
            zeros.fill(0.0);
            body(DisjointSlice::new(v), DisjointSlice::new(m), zeros);
        });
    }

    fn gather(
        &self,
        tiles: std::ops::Range<usize>,
        row: usize,
        inputs: TransformedInputs,
        v: DisjointSlice<f32>,
        zeros: &[f32],
    ) {
        let tiling = self.tiling;
        let x = self.x.ptr().cast_const();
        with_form!(self.weights.side, form => {
            self.isa.run(InputTransform { form, tiling, x, tiles, row, inputs, v, zeros });
        });
    }

    /// The products of some columns at some points.
    fn multiply(
        &self,
        points: std::ops::Range<usize>,
        inputs: TransformedInputs,
        v: DisjointSlice<f32>,
        products: TileProducts,
        m: DisjointSlice<f32>,
        columns: (usize, usize),
    ) {
        let weights = &self.weights.matrix;
        let all = self.weights.side.points();
        self.isa.run(WinogradProducts { weights, all, points, inputs, v, products, m, columns });
    }

    /// The pixels of some tiles and columns, whose products start at `m`.
    fn scatter(
        &self,
        tiles: std::ops::Range<usize>,
        products: TileProducts,
        m: DisjointSlice<f32>,
        columns: (usize, usize),
    ) {
        let finish = self.finish;
        let y = self.y;
        let tiling = self.tiling;
        let m = m.ptr().cast_const();
        with_form!(self.weights.side, form => {
            self.isa.run(OutputTransform { form, tiling, tiles, products, m, columns, y, finish });
        });
    }
}
