//! Inputs of a step, attention over what layers keep, and its outputs: of rows of several sequences
//! over blocks, or of one sequence whose lengths are all known.

use galatea_graph::{AttributeValue, Dim, ValueId};
use galatea_tensor::{DataType, Tensor};

use super::built::LookUpKey;
use super::fixed::FixedStep;
use super::net::{LinearSizes, NetBuilder, int};
use super::operands::{AttentionOperands, LayerHeads, StepAngles};
use super::{GraphForm, ModelShape, StepOptions};
use crate::error::Result;

/// A step of one form.
pub(super) enum StepForm {
    /// Rows of several sequences.
    Paged(PagedStep),
    /// Rows of one.
    Fixed(FixedStep),
}

impl StepForm {
    /// The inputs of a step.
    pub(super) fn inputs(net: &mut NetBuilder<'_>, shape: &ModelShape, form: &GraphForm) -> Self {
        match form {
            GraphForm::Paged(options) => Self::Paged(PagedStep::inputs(net, shape, options)),
            GraphForm::Fixed(options) => Self::Fixed(FixedStep::inputs(net, shape, options)),
        }
    }

    /// A row of a matrix for each row of the step, looked up by its token or its position.
    pub(super) fn looked_up(
        &self,
        net: &mut NetBuilder<'_>,
        name: &str,
        sizes: [usize; 2],
        by: LookUpKey,
    ) -> Result<ValueId> {
        match (self, by) {
            (Self::Paged(step), LookUpKey::Token) => net.rows_of(name, sizes, step.tokens),
            (Self::Paged(step), LookUpKey::Position) => net.rows_of(name, sizes, step.positions),
            (Self::Fixed(step), by) => step.looked_up(net, name, sizes, by),
        }
    }

    /// The angles of these tables of cosines and sines, of which rows are turned by their positions;
    /// `kind` tells several apart.
    pub(super) fn angles(
        &self,
        net: &mut NetBuilder<'_>,
        kind: &str,
        cos: Tensor,
        sin: Tensor,
    ) -> StepAngles {
        match self {
            Self::Paged(_) => {
                StepAngles { cos: net.constant("rope", cos), sin: net.constant("rope", sin) }
            }
            Self::Fixed(step) => step.angles(net, kind, cos, sin),
        }
    }

    /// Rows of heads turned by their positions.
    pub(super) fn turned(
        &self,
        net: &mut NetBuilder<'_>,
        x: ValueId,
        angles: StepAngles,
        heads: usize,
    ) -> Result<ValueId> {
        match self {
            Self::Paged(step) => step.turned(net, x, angles, heads),
            Self::Fixed(step) => step.turned(net, x, angles, heads),
        }
    }

    /// Attention of a layer, and its caches after the step.
    pub(super) fn attended(
        &self,
        net: &mut NetBuilder<'_>,
        operands: AttentionOperands,
        heads: &LayerHeads,
        layer: usize,
    ) -> Result<(ValueId, Vec<ValueId>)> {
        match self {
            Self::Paged(step) => step.attended(net, operands, heads, layer),
            Self::Fixed(step) => step.attended(net, operands, heads, layer),
        }
    }

    /// Says what the rows are behind a layer: graphs of fixed lengths can be cut there.
    pub(super) fn end(&self, net: &mut NetBuilder<'_>, x: ValueId) {
        if let Self::Fixed(_) = self {
            net.ends.push(x);
        }
    }

    /// The rows whose logits are asked for.
    pub(super) fn wanted(&self, net: &mut NetBuilder<'_>, x: ValueId) -> Result<ValueId> {
        match self {
            Self::Paged(step) => net.one("Gather", &[], &[x, step.wanted]),
            Self::Fixed(_) => Ok(x),
        }
    }

    /// Logits of rows, in the parts that the form has.
    pub(super) fn logits(
        &self,
        net: &mut NetBuilder<'_>,
        x: ValueId,
        name: &str,
        sizes: LinearSizes,
    ) -> Result<Vec<ValueId>> {
        match self {
            Self::Paged(_) => Ok(vec![net.linear(x, name, sizes, false)?]),
            Self::Fixed(step) => step.logits(net, x, name, sizes),
        }
    }

    /// Names the results of the step.
    pub(super) fn outputs(
        &self,
        net: &mut NetBuilder<'_>,
        logits: &[ValueId],
        caches: Vec<ValueId>,
    ) -> Result<()> {
        match self {
            Self::Paged(step) => step.outputs(net, logits, caches),
            Self::Fixed(step) => step.outputs(net, logits, caches),
        }
    }
}

/// The inputs of a step over blocks.
pub(super) struct PagedStep {
    tokens: ValueId,
    positions: ValueId,
    sequences: [ValueId; 3],
    wanted: ValueId,
    /// Keys and values of each layer, and their scales where they are bytes.
    caches: Vec<Vec<ValueId>>,
}

/// Cache of a layer, and what belongs to that where it is bytes.
const CACHES: [&str; 4] = ["key", "value", "key_scales", "value_scales"];

impl PagedStep {
    fn inputs(net: &mut NetBuilder<'_>, shape: &ModelShape, options: &StepOptions) -> Self {
        let mut list = |name: &str, dims: &[&str]| {
            let dims: Vec<Dim> = dims.iter().map(|name| Dim::symbol(name)).collect();
            net.input(name, DataType::Int64, &dims)
        };
        let tokens = list("tokens", &["rows"]);
        let positions = list("positions", &["rows"]);
        let sequences = [
            list("starts", &["borders"]),
            list("lengths", &["sequences"]),
            list("blocks", &["sequences", "most_blocks"]),
        ];
        let wanted = list("wanted", &["wanted"]);
        let heads = [Dim::symbol("cache_blocks"), Dim::Known(shape.kv_heads)];
        let block = Dim::symbol("block_size");
        let size = Dim::Known(shape.head_size);
        let mut cache = |(at, kind): (usize, &str), layer: usize| {
            let (dtype, last) = match at {
                // A key's elements are as far apart as a block has positions.
                0 => (options.cache, vec![size.clone(), block.clone()]),
                1 => (options.cache, vec![block.clone(), size.clone()]),
                _ => (DataType::Fp32, vec![block.clone()]),
            };
            let dims: Vec<Dim> = heads.iter().cloned().chain(last).collect();
            net.input(&format!("{kind}.{layer}"), dtype, &dims)
        };
        let count = if options.cache == DataType::Int8 { CACHES.len() } else { 2 };
        let mut of = |layer| {
            CACHES.into_iter().take(count).enumerate().map(|kind| cache(kind, layer)).collect()
        };
        let caches = (0..shape.layers).map(&mut of).collect();
        Self { tokens, positions, sequences, wanted, caches }
    }

    /// Rows of heads turned by their positions.
    fn turned(
        &self,
        net: &mut NetBuilder<'_>,
        x: ValueId,
        angles: StepAngles,
        heads: usize,
    ) -> Result<ValueId> {
        let first = net.constant("batch", Tensor::vector(vec![0_i64]));
        let batch = net.one("Unsqueeze", &[], &[x, first])?;
        let positions = net.one("Unsqueeze", &[], &[self.positions, first])?;
        let heads = ("num_heads", AttributeValue::Int(int(heads)));
        let inputs = [batch, angles.cos, angles.sin, positions];
        let turned = net.one("RotaryEmbedding", &[heads], &inputs)?;
        net.one("Squeeze", &[], &[turned, first])
    }

    /// Attention of a layer, and its caches after the step.
    fn attended(
        &self,
        net: &mut NetBuilder<'_>,
        operands: AttentionOperands,
        heads: &LayerHeads,
        layer: usize,
    ) -> Result<(ValueId, Vec<ValueId>)> {
        let caches = self.caches.get(layer).map_or(&[][..], Vec::as_slice);
        let (caches, scales) = caches.split_at_checked(2).unwrap_or((caches, &[]));
        let [starts, lengths, blocks] = self.sequences;
        let mut inputs = vec![operands.query, operands.key, operands.value];
        inputs.extend(caches.iter().chain(&[starts, lengths, blocks]).chain(scales));
        let number = |name, value| (name, AttributeValue::Int(int(value)));
        let mut attributes = vec![
            number("num_heads", heads.heads),
            number("kv_num_heads", heads.kv_heads),
            number("window", heads.window),
            ("softcap", AttributeValue::Float(heads.softcap)),
        ];
        attributes.extend(heads.scale.map(|scale| ("scale", AttributeValue::Float(scale))));
        let op = "ai.galatea:PagedAttention";
        if scales.is_empty() {
            let [attended, kept @ ..] = net.several::<3>(op, &attributes, &inputs)?;
            return Ok((attended, kept.to_vec()));
        }
        let [attended, kept @ ..] = net.several::<5>(op, &attributes, &inputs)?;
        Ok((attended, kept.to_vec()))
    }

    /// Names the results of the step.
    fn outputs(
        &self,
        net: &mut NetBuilder<'_>,
        logits: &[ValueId],
        caches: Vec<ValueId>,
    ) -> Result<()> {
        for &logits in logits {
            net.output("logits", logits)?;
        }
        let each = self.caches.first().map_or(1, Vec::len);
        for (at, cache) in caches.into_iter().enumerate() {
            let kind = CACHES.get(at % each).copied().unwrap_or_default();
            net.output(&format!("{kind}.{}.after", at / each), cache)?;
        }
        Ok(())
    }
}
