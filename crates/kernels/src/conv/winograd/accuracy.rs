//! Error of minimal filtering with large tiles, estimated of the weights.
//!
//! Rounding of the transformed values is taken to be independent: the variance of an output's error
//! is a sum over the points of a tile, each with the square of its weight and of the coefficients
//! that lead to it. It is compared with the variance of the output itself, for inputs of one size.
//! Source: Barabasz, Anderson, Soodhalter and Gregg (2020).

use super::transform::{self, MOST, WinogradTransform};
use crate::conv::ConvParams;
use crate::isa::Portable;
use crate::isa::Simd;

/// Out-channels that are looked at.
const OUT_CHANNELS: usize = 12;

/// In-channels that are looked at for each.
const IN_CHANNELS: usize = 96;

/// In-channels after which the rounding of sums has doubled an error.
const SUM_GROWTH: f64 = 8.0;

/// The error beside the size of a result (both as root mean squares) that is expected of a
/// convolution with weights in ONNX's order.
pub(super) fn expected_error<F: WinogradTransform>(params: &ConvParams, weights: &[f32]) -> f64 {
    let (cin, cout) = (params.in_channels, params.out_channels);
    let (a, b) = (squares_of_output::<F>(), squares_of_input::<F>());
    let spaced = |most: usize, all: usize| {
        let count = most.min(all);
        (0..count).map(move |i| i * all / count)
    };
    let mut worst = 0.0_f64;
    for out in spaced(OUT_CHANNELS, cout) {
        let mut points = [[0.0; MOST]; MOST];
        let mut size = 0.0;
        for channel in spaced(IN_CHANNELS, cin) {
            let at = (out * cin + channel) * 9;
            let taps = &weights[at..at + 9];
            let square: [[f64; 3]; 3] =
                std::array::from_fn(|h| std::array::from_fn(|w| f64::from(taps[3 * h + w])));
            size += square.iter().flatten().map(|x| x * x).sum::<f64>();
            let all = transform::weights::<F>(&square);
            for (sums, line) in points.iter_mut().zip(all) {
                for (sum, x) in sums.iter_mut().zip(line) {
                    *sum += x * x;
                }
            }
        }
        if size > 0.0 {
            worst = worst.max(greatest(&a, &b, &points) / size);
        }
    }
    let rounding = f64::from(f32::EPSILON) / 2.0;
    worst.sqrt() * rounding * (1.0 + (cin as f64).sqrt() / SUM_GROWTH)
}

/// The greatest of the outputs' sums over points.
fn greatest(
    outputs: &[[f64; MOST]; MOST],
    inputs: &[f64; MOST],
    points: &[[f64; MOST]; MOST],
) -> f64 {
    let mut most = 0.0_f64;
    for vertical in outputs {
        for horizontal in outputs {
            let mut sum = 0.0;
            for i in 0..MOST {
                for j in 0..MOST {
                    sum += vertical[i] * horizontal[j] * inputs[i] * inputs[j] * points[i][j];
                }
            }
            most = most.max(sum);
        }
    }
    most
}

/// Squares of `Aᵀ`, by outputs and points; zeros where a tile has fewer.
fn squares_of_output<F: WinogradTransform>() -> [[f64; MOST]; MOST] {
    let mut squares = [[0.0; MOST]; MOST];
    for point in 0..F::IN {
        let column = transform::output::<Portable, F>(Portable, unit(point));
        for (squares, x) in squares.iter_mut().zip(column).take(F::OUT) {
            squares[point] = first_lane(x).powi(2);
        }
    }
    squares
}

/// Sums of the squares of the lines of `Bᵀ`: how large the inputs are at a point.
fn squares_of_input<F: WinogradTransform>() -> [f64; MOST] {
    let mut squares = [0.0; MOST];
    for at in 0..F::IN {
        let column = transform::input::<Portable, F>(Portable, unit(at));
        for (square, x) in squares.iter_mut().zip(column).take(F::IN) {
            *square += first_lane(x).powi(2);
        }
    }
    squares
}

/// Vectors of zeros, and one of ones.
fn unit(at: usize) -> [<Portable as Simd>::F; MOST] {
    std::array::from_fn(|i| Portable.splat(if i == at { 1.0 } else { 0.0 }))
}

fn first_lane(x: <Portable as Simd>::F) -> f64 {
    f64::from(x[0])
}
