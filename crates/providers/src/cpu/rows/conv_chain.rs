//! Chains of convolutions around a depthwise one: in bands that stay near where that pays, else one
//! convolution after the other.

use galatea_graph::ops::convolution::{Conv, ConvChain, FusedConv};
use galatea_graph::{GALATEA_DOMAIN, OpError};
use galatea_kernels::conv::{self, ChainLink, CpuConvAlgorithm, PackedConv, conv, conv_chain};
use galatea_kernels::{ActivationFunction, GemmEpilogue};
use galatea_runtime::tune::{ConfigAxis, ConfigSpace};

use super::elementwise::fused;
use super::image::{ImageShape, conv_params, leading};
use crate::cpu::{
    CpuKernel, CpuKernelRow, CpuNodeView, CpuStep, KernelChoices, NodeShapes, StepCall,
    WeightBytes, packing,
};

/// The family's rows.
pub(super) const ROWS: &[CpuKernelRow] = &[CpuKernelRow {
    name: "conv_chain-f32-bands",
    domain: GALATEA_DOMAIN,
    ops: &["ConvChain"],
    supports,
    build: |view| Ok(Box::new(ConvChainKernel::new(view)?)),
}];

/// Floats in a cache line, on which the results of the convolutions start.
const LINE: usize = 16;

fn supports(view: &CpuNodeView<'_>) -> Result<(), String> {
    let all: Vec<usize> = (0..view.node.inputs.len()).collect();
    view.floats(&all)?;
    for index in 0..view.operator::<ConvChain>()?.convs.len() {
        let weights = view.constant(ConvChain::weights(index));
        let rank = weights.ok_or("weights are no constant")?.rank();
        if rank != 4 {
            return Err(format!("weights of rank {rank}"));
        }
    }
    Ok(())
}

/// A convolution of a chain, with constant weights.
struct ConvChainPart {
    op: Conv,
    activation: ActivationFunction,
    /// Shape of the weights in ONNX's order.
    shape: Vec<usize>,
    /// The weights; their padding is that of no image.
    packed: PackedConv,
}

struct ConvChainKernel {
    parts: Vec<ConvChainPart>,
}

/// A convolution for images of some size.
struct BoundConvPart {
    packed: PackedConv,
    activation: ActivationFunction,
    /// The position of its bias among the inputs of the chain.
    bias: usize,
    size: [usize; 3],
    /// Elements of the result.
    elements: usize,
}

impl ConvChainKernel {
    fn new(view: &CpuNodeView<'_>) -> Result<Self, String> {
        let chain = view.operator::<ConvChain>()?;
        let part = |(index, FusedConv { conv: op, activation }): (usize, &FusedConv)| -> Result<ConvChainPart, String> {
            let at = ConvChain::weights(index);
            let shape = view.constant(at).ok_or("weights are no constant")?.shape().to_vec();
            let none = vec![0; shape.len().saturating_sub(2)];
            let params = conv_params(op, &shape, &none, &none)?;
            let packed = packing::convolution(view, at, params, CpuConvAlgorithm::for_any_size(&params))?;
            Ok(ConvChainPart { op: op.clone(), activation: fused(*activation), shape, packed })
        };
        let parts = chain.convs.iter().enumerate().map(part).collect::<Result<_, _>>()?;
        Ok(Self { parts })
    }

    /// The convolutions for the images of a run, whose number comes with them.
    fn bound(&self, shapes: &NodeShapes) -> Result<(usize, Vec<BoundConvPart>), String> {
        let image = ImageShape::of(shapes.input(0)?, true)?;
        let mut spatial = image.spatial;
        let mut channels = image.channels;
        let mut all = Vec::with_capacity(self.parts.len());
        for (index, part) in self.parts.iter().enumerate() {
            let geometry = part.op.geometry(&spatial, &part.shape[2..]);
            let geometry = geometry.map_err(|error| error.to_string())?;
            let begin = &geometry.pads_begin;
            let end = &geometry.pads_end;
            let params = conv_params(&part.op, &part.shape, begin, end)?;
            let packed = part.packed.with_params(params).ok_or_else(|| format!("{params:?}"))?;
            let size = leading(&spatial, 1)?;
            if params.in_channels != channels
                || params.output_size(size) != leading::<3>(&geometry.output, 1)?
            {
                return Err(format!("an image of {channels} channels and size {size:?}"));
            }
            let bias = ConvChain::weights(index) + 1;
            if let Ok(shape) = shapes.input(bias)
                && *shape != [params.out_channels]
            {
                return Err(format!("a bias of shape {shape:?}"));
            }
            (spatial, channels) = (geometry.output, params.out_channels);
            let elements = image.batch * spatial.iter().product::<usize>() * channels;
            let activation = part.activation;
            all.push(BoundConvPart { packed, activation, bias, size, elements });
        }
        let result = shapes.output(0)?;
        if result.iter().product::<usize>() != all.last().map_or(0, |last| last.elements) {
            return Err(format!("a result of shape {result:?}"));
        }
        if let Ok(residual) = shapes.input(1)
            && residual != result
        {
            return Err(format!("a residual of shape {residual:?}"));
        }
        Ok((image.batch, all))
    }
}

impl BoundConvPart {
    /// Returns the epilogue of the convolution, in a call of the chain.
    fn epilogue<'a>(
        &self,
        call: &StepCall<'a>,
        is_last: bool,
    ) -> Result<GemmEpilogue<'a>, OpError> {
        let bias = call.optional(self.bias)?;
        let epilogue = GemmEpilogue { bias, residual: None, activation: self.activation };
        let residual = if is_last { call.optional(1)? } else { None };
        Ok(match residual {
            Some(data) => epilogue.with_residual(data, self.packed.params().out_channels),
            None => epilogue,
        })
    }
}

/// Convolutions as a chain with a depthwise one, if they are one.
fn chain<'a>(
    all: &'a [BoundConvPart],
    epilogues: &[GemmEpilogue<'a>],
) -> Option<conv::ConvChainSpec<'a>> {
    let link = |(bound, epilogue): (&'a BoundConvPart, &GemmEpilogue<'a>)| ChainLink {
        packed: &bound.packed,
        epilogue: *epilogue,
    };
    let links: Vec<ChainLink<'a>> = all.iter().zip(epilogues).map(link).collect();
    let is_depthwise =
        |link: &ChainLink<'_>| link.packed.algorithm() == CpuConvAlgorithm::Depthwise;
    let (first, depthwise, last) = match links[..] {
        [a, b] if is_depthwise(&a) => (None, a, Some(b)),
        [a, b] => (Some(a), b, None),
        [a, b, c] => (Some(a), b, Some(c)),
        _ => return None,
    };
    is_depthwise(&depthwise).then_some(conv::ConvChainSpec { first, depthwise, last })
}

/// Floats of the results of all convolutions but the last.
fn scratch_of(all: &[BoundConvPart]) -> usize {
    all.iter().rev().skip(1).map(|bound| bound.elements.next_multiple_of(LINE)).sum()
}

/// The convolutions one after the other.
fn run_apart(call: &mut StepCall<'_>, batch: usize, all: &[BoundConvPart]) -> Result<(), OpError> {
    let scratch_len = scratch_of(all);
    let mut scratch = call.scratch_if(scratch_len)?;
    let (mut x, (mut rest, _)) = (call.input::<f32>(0)?, scratch.split(scratch_len));
    let mut y = call.output::<f32>(0)?;
    for (index, bound) in all.iter().enumerate() {
        let is_last = index + 1 == all.len();
        let epilogue = bound.epilogue(call, is_last)?;
        if is_last {
            conv(call.exec, &bound.packed, x, batch, bound.size, y.slice(), &epilogue);
            break;
        }
        let (own, others) = rest.split_at_mut(bound.elements.next_multiple_of(LINE));
        conv(call.exec, &bound.packed, x, batch, bound.size, own, &epilogue);
        (x, rest) = (own, others);
    }
    Ok(())
}

impl CpuKernel for ConvChainKernel {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        self.bind_chosen(shapes, KernelChoices::default())
    }

    fn bind_chosen(
        &self,
        shapes: &NodeShapes,
        choices: KernelChoices<'_>,
    ) -> Result<CpuStep, String> {
        let (batch, all) = self.bound(shapes)?;
        let weights: Vec<usize> = (0..all.len()).map(ConvChain::weights).collect();
        let size = all.first().ok_or("no convolutions")?.size;
        let plain = vec![GemmEpilogue::default(); all.len()];
        let fitting = chain(&all, &plain).filter(|chain| chain.fits(size));
        let pays = fitting.map(|chain| chain.pays(choices.threads.max(1), batch, size));
        if pays.is_some_and(|pays| in_bands(&all, batch, pays, choices)) {
            let step = CpuStep::new(move |call| {
                let count = all.len();
                let epilogue =
                    |(at, bound): (usize, &BoundConvPart)| bound.epilogue(call, at + 1 == count);
                let epilogues =
                    all.iter().enumerate().map(epilogue).collect::<Result<Vec<_>, _>>()?;
                let chain = chain(&all, &epilogues).ok_or_else(|| OpError::new("no chain"))?;
                let x = call.input::<f32>(0)?;
                let mut y = call.output::<f32>(0)?;
                conv_chain(call.exec, &chain, x, batch, size, y.slice());
                Ok(())
            });
            return Ok(step.without(&weights));
        }
        let scratch = scratch_of(&all);
        let step = CpuStep::new(move |call| run_apart(call, batch, &all));
        Ok(step.without(&weights).with_scratch(scratch))
    }

    fn weight_bytes(&self) -> WeightBytes {
        let bytes = |part: &ConvChainPart| {
            WeightBytes::new(part.packed.size_bytes(), part.packed.is_mapped())
        };
        self.parts.iter().map(bytes).sum()
    }
}

/// Returns whether a chain that fits is computed in bands, which likely pays or not.
fn in_bands(all: &[BoundConvPart], batch: usize, pays: bool, choices: KernelChoices<'_>) -> bool {
    let names = if pays { ["bands", "apart"] } else { ["apart", "bands"] };
    let depthwise = all.iter().map(|bound| bound.packed.params()).find(|params| params.groups > 1);
    let Some(depthwise) = depthwise else { return false };
    let lengths = [
        ("n", batch),
        ("pixels", all[0].size.iter().product()),
        ("in", all[0].packed.params().in_channels),
        ("wide", depthwise.in_channels),
        ("out", all[all.len() - 1].packed.params().out_channels),
    ];
    let space = ConfigSpace::new(vec![ConfigAxis::names("way", &names)]);
    let family = format!("conv_chain-f32 {:?} {:?}", depthwise.kernel, depthwise.stride);
    names[choices.choose(&family, &lengths, &space)] == "bands"
}
