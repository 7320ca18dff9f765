//! Convolutions of 3 × 3 windows by Winograd's short products: tiles of the image are transformed, multiplied by
//! transformed weights element by element (a stack of matrix products over channels), and transformed back.
//!
//! A tile of `n × n` pixels takes `(n + 2)²` products where windows take `9 n²`: 16 for 36, 36 for 144, or 64 for
//! 324.

use std::sync::Arc;

use galatea_tensor::{DataType, Tensor, f16};
use minijinja::context;

use super::extras::{ConvExtras, more};
use super::geometry::ConvLengths;
use super::run_shape::ConvRunShape;
use crate::device::{GpuDevice, KernelShader};
use crate::kernel::{DispatchStep, ShaderBinding, fold, param, wgsl_float};
use crate::matmul::ProductStack;
use crate::memory::DeviceBlock;
use crate::template::render;
use galatea_runtime::NodeShapes;

/// Tile size of the Winograd transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WinogradConfig {
    /// Pixels of the result along a side of a tile: 2, 4 or 6.
    pub tile: usize,
}

/// Configurations that a tuner may choose. The smallest tile is also for tiles stored as FP16; sums of FP32 keep
/// enough digits for larger ones.
pub const CONFIGS: &[WinogradConfig] =
    &[WinogradConfig { tile: 4 }, WinogradConfig { tile: 2 }, WinogradConfig { tile: 6 }];

/// Bytes of transformed tiles at a time; images beyond them come later.
const MAX_BYTES: usize = 64 << 20;

/// A row of a transform.
type TransformRow = &'static [f32];

impl WinogradConfig {
    /// Elements along a side of a transformed tile.
    fn side(self) -> usize {
        self.tile + 2
    }

    pub(super) fn cells(self) -> usize {
        self.side() * self.side()
    }

    /// Images whose transforms lie in memory at a time.
    fn at_a_time(self, lengths: &ConvLengths) -> usize {
        let tiles: usize = lengths.output[1..].iter().map(|len| len.div_ceil(self.tile)).product();
        let image = self.cells() * tiles * lengths.channels.max(lengths.m) * 4;
        (MAX_BYTES / image.max(1)).clamp(1, lengths.images.max(1))
    }

    /// Parts that images are computed in, one after another.
    pub(super) fn parts(self, lengths: &ConvLengths) -> usize {
        lengths.images.div_ceil(self.at_a_time(lengths))
    }

    /// From a part of an image to its transform.
    fn image(self) -> &'static [TransformRow] {
        match self.tile {
            2 => &[&[1., 0., -1., 0.], &[0., 1., 1., 0.], &[0., -1., 1., 0.], &[0., 1., 0., -1.]],
            6 => &[
                &[1., 0., -5.25, 0., 5.25, 0., -1., 0.],
                &[0., 1., 1., -4.25, -4.25, 1., 1., 0.],
                &[0., -1., 1., 4.25, -4.25, -1., 1., 0.],
                &[0., 0.5, 0.25, -2.5, -1.25, 2., 1., 0.],
                &[0., -0.5, 0.25, 2.5, -1.25, -2., 1., 0.],
                &[0., 2., 4., -2.5, -5., 0.5, 1., 0.],
                &[0., -2., 4., 2.5, -5., -0.5, 1., 0.],
                &[0., -1., 0., 5.25, 0., -5.25, 0., 1.],
            ],
            _ => &[
                &[4., 0., -5., 0., 1., 0.],
                &[0., -4., -4., 1., 1., 0.],
                &[0., 4., -4., -1., 1., 0.],
                &[0., -2., -1., 2., 1., 0.],
                &[0., 2., -1., -2., 1., 0.],
                &[0., 4., 0., -5., 0., 1.],
            ],
        }
    }

    /// From weights to their transform.
    fn weights(self) -> &'static [[f32; 3]] {
        match self.tile {
            2 => &[[1., 0., 0.], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0., 0., 1.]],
            6 => &[
                [1., 0., 0.],
                [-2. / 9., -2. / 9., -2. / 9.],
                [-2. / 9., 2. / 9., -2. / 9.],
                [1. / 90., 1. / 45., 2. / 45.],
                [1. / 90., -1. / 45., 2. / 45.],
                [32. / 45., 16. / 45., 8. / 45.],
                [32. / 45., -16. / 45., 8. / 45.],
                [0., 0., 1.],
            ],
            _ => &[
                [1. / 4., 0., 0.],
                [-1. / 6., -1. / 6., -1. / 6.],
                [-1. / 6., 1. / 6., -1. / 6.],
                [1. / 24., 1. / 12., 1. / 6.],
                [1. / 24., -1. / 12., 1. / 6.],
                [0., 0., 1.],
            ],
        }
    }

    /// From a product to pixels.
    fn result(self) -> &'static [TransformRow] {
        match self.tile {
            2 => &[&[1., 1., 1., 0.], &[0., 1., -1., -1.]],
            6 => &[
                &[1., 1., 1., 1., 1., 1., 1., 0.],
                &[0., 1., -1., 2., -2., 0.5, -0.5, 0.],
                &[0., 1., 1., 4., 4., 0.25, 0.25, 0.],
                &[0., 1., -1., 8., -8., 0.125, -0.125, 0.],
                &[0., 1., 1., 16., 16., 0.0625, 0.0625, 0.],
                &[0., 1., -1., 32., -32., 0.03125, -0.03125, 1.],
            ],
            _ => &[
                &[1., 1., 1., 1., 1., 0.],
                &[0., 1., -1., 2., -2., 0.],
                &[0., 1., 1., 4., 4., 0.],
                &[0., 1., -1., 8., -8., 1.],
            ],
        }
    }
}

/// A sum of named values in WGSL.
fn sum(row: TransformRow, name: impl Fn(usize) -> String) -> String {
    let terms = row.iter().enumerate().filter(|(_, factor)| **factor != 0.0);
    let mut text = String::new();
    for (at, &factor) in terms {
        let sign = if factor < 0.0 { "-" } else { "+" };
        let size = factor.abs();
        let value = name(at);
        let term = if size == 1.0 { value } else { format!("{size:?} * {value}") };
        match (text.is_empty(), sign) {
            (true, "+") => text = term,
            (true, _) => text = format!("-{term}"),
            (false, _) => text.push_str(&format!(" {sign} {term}")),
        }
    }
    text
}

/// Lines that transform `d`, a square, along both axes: `rows · d · rowsᵀ`, into `into` followed by a row and a
/// column.
fn transform(rows: &[TransformRow], into: &str) -> Vec<String> {
    let side = rows[0].len();
    let mut lines = Vec::new();
    for (i, row) in rows.iter().enumerate() {
        for j in 0..side {
            lines.push(format!("let t{i}_{j} = {};", sum(row, |k| format!("d{k}_{j}"))));
        }
    }
    for i in 0..rows.len() {
        for (j, row) in rows.iter().enumerate() {
            lines.push(format!("let {into}{i}_{j} = {};", sum(row, |k| format!("t{i}_{k}"))));
        }
    }
    lines
}

/// Transforms constant weights, to FP16 where that is asked for.
///
/// # Errors
/// Fails when the weights are no floats, or the device has no room.
pub(super) fn pack(
    device: &GpuDevice,
    tensor: &Tensor,
    config: WinogradConfig,
    half: bool,
) -> Result<Arc<DeviceBlock>, String> {
    let failed = |error: &dyn std::fmt::Display| error.to_string();
    let values: Vec<f32> = if tensor.dtype() == DataType::Fp16 {
        let all = tensor.to_vec::<f16>().map_err(|error| failed(&error))?;
        all.into_iter().map(f16::to_f32).collect()
    } else {
        tensor.to_vec::<f32>().map_err(|error| failed(&error))?
    };
    let turned = config.turned(&values);
    let bytes: Vec<u8> = match half {
        true => turned.iter().flat_map(|&x| f16::from_f32(x).to_le_bytes()).collect(),
        false => turned.iter().flat_map(|x| x.to_le_bytes()).collect(),
    };
    DeviceBlock::weights(device, &bytes).map_err(|error| failed(&error))
}

/// A convolution with transformed weights.
pub(super) struct WinogradConv<'a> {
    pub(super) case: &'a ConvRunShape<'a>,
    pub(super) config: WinogradConfig,
    pub(super) weights: ShaderBinding,
}

impl WinogradConfig {
    /// Weights `[M, C, 3, 3]` as `[cells, M, C]`.
    fn turned(self, values: &[f32]) -> Vec<f32> {
        let rows = self.weights();
        let windows = values.len() / 9;
        let side = self.side();
        let mut all = vec![0.0; self.cells() * windows];
        for (at, window) in values.chunks_exact(9).enumerate() {
            for (i, down) in rows.iter().enumerate() {
                for (j, across) in rows.iter().enumerate() {
                    let places = (0..9).map(|place| {
                        let factor = f64::from(down[place / 3]) * f64::from(across[place % 3]);
                        factor * f64::from(window[place])
                    });
                    #[allow(clippy::cast_possible_truncation, reason = "rounded to FP32")]
                    let sum = places.sum::<f64>() as f32;
                    all[(i * side + j) * windows + at] = sum;
                }
            }
        }
        all
    }
}

/// Some images of a run.
struct WinogradPart {
    first: usize,
    images: usize,
    /// Tiles along an image's axes; all of the part, filled up to fours.
    tiles: [usize; 2],
    columns: usize,
}

impl WinogradPart {
    fn params(&self, lengths: &ConvLengths, more: &[f32]) -> Result<Vec<u32>, String> {
        let [down, across] = self.tiles;
        let own = [
            self.images * down * across,
            self.columns,
            self.first,
            down,
            across,
            lengths.channels,
            lengths.m,
        ];
        let mut params: Vec<u32> = own.into_iter().map(param).collect::<Result<_, _>>()?;
        params.extend(lengths.params()?);
        params.extend(more.iter().map(|x| x.to_bits()));
        Ok(params)
    }
}

impl WinogradConv<'_> {
    fn before(
        &self,
        shapes: &NodeShapes,
        part: &WinogradPart,
        tiles: usize,
        step: &mut DispatchStep,
    ) -> Result<(), String> {
        let source = render(
            include_str!("winograd_image.wgsl"),
            context! {
                x => wgsl_float(shapes.dtype(0)?)?,
                v => wgsl_float(self.dtype())?,
                side => self.config.side(),
                tile => self.config.tile,
                lines => transform(self.config.image(), "v"),
            },
        )?;
        let bindings = vec![ShaderBinding::Input(0), ShaderBinding::Scratch(tiles)];
        let lengths = &self.case.lengths;
        let params = part.params(lengths, &[])?;
        let count = part.columns * lengths.channels;
        let shader = KernelShader::new("conv-winograd-image", source).proved();
        step.dispatch(shader, bindings, params, fold(count.div_ceil(64))?);
        Ok(())
    }

    fn after(
        &self,
        shapes: &NodeShapes,
        part: &WinogradPart,
        products: usize,
        step: &mut DispatchStep,
    ) -> Result<(), String> {
        let ConvExtras { bindings, bias, residual } = more(shapes)?;
        let activation = self.case.convolution.activation;
        let added = u32::from(bias.is_some());
        let source = render(
            include_str!("winograd_result.wgsl"),
            context! {
                y => wgsl_float(shapes.output_dtype(0)?)?,
                bias,
                residual,
                at => context!(bias => 2, residual => 2 + added, params => 2 + bindings.len()),
                side => self.config.side(),
                tile => self.config.tile,
                lines => transform(self.config.result(), "y"),
                activation => activation.name,
            },
        )?;
        let all = vec![ShaderBinding::Scratch(products), ShaderBinding::Output(0)];
        let bindings = all.into_iter().chain(bindings).collect();
        let lengths = &self.case.lengths;
        let params = part.params(lengths, &[activation.p, activation.q])?;
        let count = part.images * part.tiles[0] * part.tiles[1] * lengths.m;
        let shader = KernelShader::new("conv-winograd-result", source).proved();
        step.dispatch(shader, bindings, params, fold(count.div_ceil(64))?);
        Ok(())
    }
}

impl WinogradConv<'_> {
    fn dtype(&self) -> DataType {
        self.case.stored[1]
    }

    /// Adds the dispatches.
    ///
    /// # Errors
    /// Fails when lengths are beyond the device.
    pub(super) fn run(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
        let lengths = &self.case.lengths;
        let [_, height, width] = lengths.output;
        let tiles = [height, width].map(|len| len.div_ceil(self.config.tile));
        let per_image = tiles[0] * tiles[1];
        if per_image == 0 || lengths.images == 0 {
            return Ok(());
        }
        let cells = self.config.cells();
        let at_a_time = self.config.at_a_time(lengths);
        let columns = |images: usize| (images * per_image).next_multiple_of(4);
        let size =
            |channels: usize, bytes: usize| (cells * channels * columns(at_a_time) * bytes) as u64;
        let narrow = self.dtype().size_bytes().unwrap_or(4);
        let before = step.scratch(size(lengths.channels, narrow));
        let products = step.scratch(size(lengths.m, 4));
        for first in (0..lengths.images).step_by(at_a_time) {
            let images = at_a_time.min(lengths.images - first);
            let part = WinogradPart { first, images, tiles, columns: columns(images) };
            self.before(shapes, &part, before, step)?;
            let stack = ProductStack {
                operands: [
                    (self.weights.clone(), self.dtype()),
                    (ShaderBinding::Scratch(before), self.dtype()),
                    (ShaderBinding::Scratch(products), DataType::Fp32),
                ],
                batch: cells,
                m: lengths.m,
                n: part.columns,
                k: lengths.channels,
            };
            stack.run(self.case.capabilities, step)?;
            self.after(shapes, &part, products, step)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `rows · d · rowsᵀ` of a square.
    fn both(rows: &[TransformRow], d: &[f32]) -> Vec<f32> {
        let side = rows[0].len();
        let cell = |i: usize, j: usize| {
            let places = (0..side * side).map(|at| rows[i][at / side] * rows[j][at % side] * d[at]);
            places.sum()
        };
        (0..rows.len() * rows.len()).map(|at| cell(at / rows.len(), at % rows.len())).collect()
    }

    #[test]
    fn short_products_are_those_of_windows() {
        for config in CONFIGS {
            let side = config.side();
            let small = |at: usize| f32::from(u8::try_from(at * 37 % 23).unwrap_or(0)) - 11.0;
            let d: Vec<f32> = (0..side * side).map(small).collect();
            let g: Vec<f32> = (0..9).map(|at| small(at + 5)).collect();
            let products: Vec<f32> = both(config.image(), &d)
                .iter()
                .zip(config.turned(&g))
                .map(|(a, b)| a * b)
                .collect();
            for (at, found) in both(config.result(), &products).into_iter().enumerate() {
                let y = at / config.tile;
                let x = at % config.tile;
                let seen = |place: usize| d[(y + place / 3) * side + x + place % 3];
                let expected: f32 = (0..9).map(|place| g[place] * seen(place)).sum();
                assert!(
                    (found - expected).abs() < 1e-2,
                    "{config:?} {at}: {found}, not {expected}"
                );
            }
        }
    }

    #[test]
    fn sums_leave_out_what_counts_nothing() {
        let name = |at| format!("d{at}");
        assert_eq!(sum(&[-1.0, 0.0, 1.0, -2.5], name), "-d0 + d2 - 2.5 * d3");
    }
}
