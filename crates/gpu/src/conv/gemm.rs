//! Convolutions as products of weights and windows.

use std::sync::Arc;

use galatea_tensor::{DataType, Tensor, f16};
use minijinja::context;

use super::cooperative::ConvConfig;
use super::extras::{ConvExtras, more};
use super::node::ConvNode;
use super::run_shape::ConvRunShape;
use super::tiles::{ConvTiles, WeightPacking};
use crate::device::{GpuDevice, KernelShader};
use crate::kernel::{DispatchStep, ShaderBinding, fold, param, wgsl_float};
use crate::memory::DeviceBlock;
use crate::template::render;
use galatea_runtime::NodeShapes;

/// Pixels that a thread computes.
const TN: usize = 4;

/// A way to compute tiles.
#[derive(Clone, Copy, Debug)]
pub(super) enum ConvTile {
    Plain(ConvTiles),
    Matrices(ConvConfig),
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
