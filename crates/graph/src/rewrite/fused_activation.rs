//! Which activation a node applies, in the form that fused operators take.

use super::ValueMaps;
use crate::graph::{Graph, Node, ValueId};
use crate::ops::activation::{Activation, ActivationKind};
use crate::ops::fused::FusedActivation;
use crate::ops::math::Clip;

/// The activation that a node applies, and to what.
pub(super) fn activation_of(
    graph: &Graph,
    maps: &ValueMaps,
    node: &Node,
) -> Option<(FusedActivation, ValueId)> {
    let input = node.input(0)?;
    if node.op_type == "Clip" {
        let (min, max) = clip_bounds(graph, maps, node)?;
        return Some((FusedActivation::Clip { min, max }, input));
    }
    let fused = match node.operator::<Activation>()?.kind {
        ActivationKind::Relu => FusedActivation::Relu,
        ActivationKind::LeakyRelu { alpha } => FusedActivation::LeakyRelu { alpha },
        ActivationKind::Sigmoid => FusedActivation::Sigmoid,
        ActivationKind::Tanh => FusedActivation::Tanh,
        ActivationKind::HardSwish => FusedActivation::HardSwish,
        ActivationKind::Swish { alpha: 1.0 } => FusedActivation::Silu,
        ActivationKind::Gelu { tanh: false } => FusedActivation::Gelu,
        ActivationKind::Gelu { tanh: true } => FusedActivation::GeluTanh,
        _ => return None,
    };
    Some((fused, input))
}

/// The bounds of a `Clip`, where they are attributes or constants; the ends of FP32 where there is none.
pub(super) fn clip_bounds(graph: &Graph, maps: &ValueMaps, node: &Node) -> Option<(f32, f32)> {
    let clip = node.operator::<Clip>()?;
    let bound = |slot: usize, open: f32| match node.input(slot) {
        None => Some(open),
        #[allow(clippy::cast_possible_truncation, reason = "the bound is an FP32 constant")]
        Some(id) => maps.scalar(graph, id).map(|bound| bound as f32),
    };
    let min = clip.min.or_else(|| bound(1, f32::MIN))?;
    let max = clip.max.or_else(|| bound(2, f32::MAX))?;
    Some((min, max))
}
