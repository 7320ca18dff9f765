//! Convolutions as products of weights and windows.

use std::sync::Arc;

use galatea_tensor::{DataType, Tensor, f16};
use minijinja::context;

use super::algorithm::ConvRunShape;
use super::build::ConvNode;
use super::cooperative::ConvConfig;
use super::direct::{ConvExtras, more};
use crate::device::{GpuDevice, KernelShader};
use crate::kernel::{DispatchStep, ShaderBinding, fold, param, wgsl_float};
use crate::memory::DeviceBlock;
use crate::template::render;
use galatea_runtime::NodeShapes;

/// Sizes of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvTiles {
    /// Channels of the result that a workgroup computes.
    bm: usize,
    /// Pixels that it computes.
    bn: usize,
    /// Terms that it holds at a time.
    bk: usize,
    /// Channels that a thread computes.
    tm: usize,
}

/// Pixels that a thread computes.
const TN: usize = 4;

/// The tiles to choose from: wide ones, and one for few channels.
pub const CONFIGS: &[ConvTiles] = &[
    ConvTiles { bm: 64, bn: 64, bk: 16, tm: 4 },
    ConvTiles { bm: 128, bn: 64, bk: 16, tm: 8 },
    ConvTiles { bm: 32, bn: 64, bk: 16, tm: 4 },
];

/// Terms are filled up to a multiple of this, and channels to the tile's.
const K_STEP: usize = 32;

impl ConvTiles {
    /// The tile for so many channels in a group. Weights are laid out for it.
    pub(super) fn for_channels(m: usize) -> Self {
        match m {
            ..=32 => CONFIGS[2],
            m if m.is_multiple_of(128) => CONFIGS[1],
            _ => CONFIGS[0],
        }
    }

    /// Returns whether the tile can read weights in this layout.
    pub(super) fn reads(&self, packing: &WeightPacking) -> bool {
        packing.m_padded.is_multiple_of(self.bm) && packing.k_padded.is_multiple_of(self.bk)
    }

    /// Channels and pixels.
    pub(super) fn tile(&self) -> [usize; 2] {
        [self.bm, self.bn]
    }
}

/// Layout of weights on the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct WeightPacking {
    pub(super) m: usize,
    pub(super) m_padded: usize,
    pub(super) k: usize,
    pub(super) k_padded: usize,
    places: usize,
    groups: usize,
}

/// A way to compute tiles.
#[derive(Clone, Copy, Debug)]
pub(super) enum ConvTile {
    Plain(ConvTiles),
    Matrices(ConvConfig),
}

impl WeightPacking {
    pub(super) fn of(convolution: &ConvNode, weights: &[usize]) -> Result<Self, String> {
        let (m, k, places) = convolution.product(weights)?;
        let config = ConvTiles::for_channels(m);
        let m_padded = m.next_multiple_of(config.bm);
        let k_padded = k.next_multiple_of(K_STEP);
        Ok(Self { m, m_padded, k, k_padded, places, groups: convolution.groups() })
    }

    fn elements(&self) -> usize {
        self.groups * self.k_padded * self.m_padded
    }

    /// The place in the tensor of each element, and none for those that fill up.
    fn sources(self, transposed: bool) -> impl Iterator<Item = Option<usize>> {
        let channels = self.k / self.places.max(1);
        (0..self.elements()).map(move |at| {
            let m = at % self.m_padded;
            let k = at / self.m_padded % self.k_padded;
            let part = at / (self.m_padded * self.k_padded);
            let inside = m < self.m && k < self.k;
            inside.then(|| match transposed {
                true => {
                    let channel = part * channels + k / self.places;
                    (channel * self.m + m) * self.places + k % self.places
                }
                false => (part * self.m + m) * self.k + k,
            })
        })
    }
}

/// Packs constant weights, as FP16 where that is asked for.
///
/// # Errors
/// Fails when the weights are no floats, or the device has no room.
pub(super) fn pack(
    device: &GpuDevice,
    tensor: &Tensor,
    convolution: &ConvNode,
    packing: &WeightPacking,
    half: bool,
) -> Result<Arc<DeviceBlock>, String> {
    let failed = |error: &dyn std::fmt::Display| error.to_string();
    let sources = packing.sources(convolution.is_transposed());
    let bytes: Vec<u8> = if tensor.dtype() == DataType::Fp16 {
        let values = tensor.to_vec::<f16>().map_err(|error| failed(&error))?;
        let value = |at: Option<usize>| at.map_or(f16::ZERO, |at| values[at]);
        sources.flat_map(|at| value(at).to_le_bytes()).collect()
    } else {
        let values = tensor.to_vec::<f32>().map_err(|error| failed(&error))?;
        let value = |at: Option<usize>| at.map_or(0.0, |at| values[at]);
        match half {
            true => sources.flat_map(|at| f16::from_f32(value(at)).to_le_bytes()).collect(),
            false => sources.flat_map(|at| value(at).to_le_bytes()).collect(),
        }
    };
    DeviceBlock::weights(device, &bytes).map_err(|error| failed(&error))
}

/// Packs weights that a run computes.
///
/// # Errors
/// Fails when lengths are beyond the device.
pub(super) fn pack_in_run(
    case: &ConvRunShape<'_>,
    step: &mut DispatchStep,
) -> Result<ShaderBinding, String> {
    let dtype = case.stored[1];
    let transposed = case.convolution.is_transposed();
    let w = wgsl_float(dtype)?;
    let source = render(include_str!("pack.wgsl"), context!(w, transposed))?;
    let total = case.packing.elements();
    let scratch = step.scratch((total * dtype.size_bytes().unwrap_or(4)) as u64);
    let WeightPacking { m, m_padded, k, k_padded, places, groups } = case.packing;
    let params = [total, m, m_padded, k, k_padded, places, groups].map(param);
    let params = params.into_iter().collect::<Result<_, _>>()?;
    let bindings = vec![ShaderBinding::Input(1), ShaderBinding::Scratch(scratch)];
    let shader = KernelShader::new("conv-f32-pack", source).proved();
    step.dispatch(shader, bindings, params, fold(total.div_ceil(256))?);
    Ok(ShaderBinding::Scratch(scratch))
}

/// The shader, and the channels and pixels of its tiles.
fn shader(
    case: &ConvRunShape<'_>,
    tile: ConvTile,
    added: &ConvExtras,
    packed: bool,
) -> Result<(KernelShader, usize, usize), String> {
    let [kz, ky, kx] = case.lengths.window;
    let [x, w, y] = case.stored;
    let at = context! {
        bias => 3,
        residual => 3 + u32::from(added.bias.is_some()),
        params => 3 + added.bindings.len(),
    };
    let own = context! {
        x => wgsl_float(x)?,
        w => wgsl_float(w)?,
        y => wgsl_float(y)?,
        bias => added.bias, residual => added.residual, at, packed, kz, ky, kx,
        transposed => case.convolution.is_transposed(),
        activation => case.convolution.activation.name,
    };
    match tile {
        ConvTile::Matrices(config) => {
            let [bm, bn, _] = config.tile;
            Ok((config.shader(case.capabilities, own)?, bm, bn))
        }
        ConvTile::Plain(ConvTiles { bm, bn, bk, tm }) => {
            let sizes = context!(bm, bn, bk, tm, tn => TN);
            let source = render(include_str!("gemm.wgsl"), context!(..sizes, ..own))?;
            Ok((KernelShader::new("conv-f32-gemm", source), bm, bn))
        }
    }
}

/// Adds the product of packed weights and windows.
///
/// # Errors
/// Fails when lengths are beyond the device.
pub(super) fn run(
    case: &ConvRunShape<'_>,
    tile: ConvTile,
    weights: ShaderBinding,
    shapes: &NodeShapes,
    step: &mut DispatchStep,
) -> Result<(), String> {
    let ConvRunShape { lengths, packing, .. } = case;
    let added = more(shapes)?;
    let packed = matches!(weights, ShaderBinding::Weights(_));
    let (shader, bm, bn) = shader(case, tile, &added, packed)?;
    let tiles_n = lengths.pixels().div_ceil(bn);
    let tiles_m = packing.m_padded / bm;
    let total = tiles_n * tiles_m * lengths.groups * lengths.images;
    let own = [
        total,
        tiles_n,
        tiles_m,
        lengths.groups,
        lengths.channels,
        packing.m,
        packing.m_padded,
        packing.k,
        packing.k_padded,
        lengths.pixels(),
    ];
    let mut params: Vec<u32> = own.into_iter().map(param).collect::<Result<_, _>>()?;
    params.extend(lengths.params()?);
    let activation = case.convolution.activation;
    params.extend([activation.p.to_bits(), activation.q.to_bits()]);
    let bindings = [ShaderBinding::Input(0), weights, ShaderBinding::Output(0)];
    let bindings = bindings.into_iter().chain(added.bindings).collect();
    step.dispatch(shader, bindings, params, fold(total)?);
    Ok(())
}
