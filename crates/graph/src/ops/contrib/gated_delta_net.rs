//! `GatedDeltaNet`: linear attention with a recurrent state, over sequences that lie behind each other.

use galatea_tensor::{DataType, Tensor};

use super::joined_rows::JoinedRows;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::{self, bounded};
use crate::ops::values::{expect_float, expect_type, floats, from_floats};

/// Added to a sum of squares before its root is taken.
const SQUARES_EPSILON: f64 = 1e-12;

/// How the decay is computed from the input of that name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DecayGate {
    /// The input is the decay.
    Given,
    /// `−exp(a_log) · softplus(decay + dt_bias)`.
    Softplus,
    /// `bound · sigmoid(exp(a_log) · (decay + dt_bias))`.
    Sigmoid(f64),
}

impl DecayGate {
    fn apply(self, a_log: f64, raw: f64) -> f64 {
        match self {
            Self::Given => raw,
            Self::Softplus => -a_log.exp() * (raw.max(0.0) + (-raw.abs()).exp().ln_1p()),
            Self::Sigmoid(bound) => bound * sigmoid(a_log.exp() * raw),
        }
    }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// `GatedDeltaNet` of domain `com.microsoft`.
///
/// Inputs: query `[T, H, d_k]`, key `[T, H, d_k]`, value `[T, Hv, d_v]` (or all three behind each other in the
/// query, `[T, 2 · H · d_k + Hv · d_v]`), where the sequences begin `[B + 1]`, the decay `[T, Hv]` or
/// `[T, Hv, d_k]`, β `[T, Hv]`, the state `[B, Hv, d_v, d_k]`, `a_log` `[Hv]`, `dt_bias`, how many steps are
/// reported `[B]`, and whether any are. `[T]` may be `[B, S]`. Outputs: `[T, Hv, d_v]`, the new state, and
/// decays, keys and changes of the first steps.
#[derive(Clone, Debug, PartialEq)]
pub struct GatedDeltaNet {
    /// Factor on the output; 0 means `1/√d_k`.
    pub scale: f32,
    /// True if the state fades.
    pub gated: bool,
    /// True if the state is corrected instead of added to.
    pub delta: bool,
    /// How the decay is computed.
    pub decay: DecayGate,
    /// True if β is the sigmoid of its input.
    pub beta_sigmoid: bool,
    /// True if each query and key is divided by its length.
    pub unit_vectors: bool,
    /// Most steps that are reported for each sequence.
    pub reported: usize,
}

/// Heads and their widths.
#[derive(Clone, Copy)]
struct HeadSizes {
    keys: usize,
    values: usize,
    d_k: usize,
    d_v: usize,
}

/// The operands as numbers, in rows of tokens.
struct DeltaOperands {
    sizes: HeadSizes,
    query: Vec<f64>,
    key: Vec<f64>,
    value: Vec<f64>,
    /// Factors on the state, and how many there are for each head.
    decay: Option<(Vec<f64>, usize)>,
    beta: Option<Vec<f64>>,
}

/// Place for the report of one step.
struct StepReport<'a> {
    place: usize,
    out: &'a mut [f64],
}

impl GatedDeltaNet {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let attributes = &mut context.attributes;
        // How many tokens an implementation may take at once has no effect on the result.
        attributes.ignore("chunk_size");
        let rules = ["linear", "gated", "delta", "gated_delta"];
        let rule = attributes.choice("update_rule", &rules, 3)?;
        let bound = f64::from(attributes.float_or("gate_lower_bound", -5.0)?);
        let gates = ["none", "softplus", "qwen", "sigmoid", "kda"];
        let decay = match attributes.choice("gate_activation", &gates, 0)? {
            0 => DecayGate::Given,
            1 | 2 => DecayGate::Softplus,
            _ => DecayGate::Sigmoid(bound),
        };
        let reported = attributes.int_or("state_update_capacity", 0)?;
        let reported = bounds::length(reported, "attribute 'state_update_capacity'")?;
        if reported > 8 {
            let text = format!("attribute 'state_update_capacity' is {reported}, expected 0 to 8");
            return Err(OpError::new(text));
        }
        Ok(Box::new(Self {
            scale: attributes.float_or("scale", 0.0)?,
            gated: rule == 1 || rule == 3,
            delta: rule >= 2,
            decay,
            beta_sigmoid: attributes.choice("beta_activation", &["none", "sigmoid"], 0)? == 1,
            unit_vectors: attributes.flag("qk_l2_norm", false)?,
            reported,
        }))
    }

    /// Refuses optional inputs that the attributes need and that are absent, and those that they have no use for.
    fn check_presence<T>(&self, inputs: OperatorInputs<'_, T>) -> Result<(), OpError> {
        let gate = self.decay != DecayGate::Given;
        let rows = [
            (4, "decay", self.gated),
            (5, "beta", self.delta),
            (7, "a_log", gate),
            (8, "dt_bias", gate),
            (9, "capture_count", self.reported > 0),
        ];
        for (at, name, needed) in rows {
            if inputs.optional(at).is_some() != needed {
                let text = if needed { "is needed and absent" } else { "is given and has no use" };
                return Err(OpError::new(format!("the input {name} {text}")));
            }
        }
        match (inputs.optional(1).is_some(), inputs.optional(2).is_some()) {
            (false, false) if inputs.optional(6).is_none() => {
                Err(OpError::new("a query with key and value inside needs the initial state"))
            }
            (true, true) | (false, false) => Ok(()),
            _ => Err(OpError::new("key and value are both given or both absent")),
        }
    }

    fn operands(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<DeltaOperands, OpError> {
        let query = inputs.required(0)?;
        let (sizes, mut operands) = match (inputs.optional(1), inputs.optional(2)) {
            (Some(key), Some(value)) => separate(query, key, value)?,
            _ => joined(query, inputs.required(6)?)?,
        };
        let HeadSizes { keys, values, d_k, d_v } = sizes;
        if keys == 0 || !values.is_multiple_of(keys) || values == 0 {
            return Err(OpError::new(format!(
                "{values} heads of values are no multiple of {keys} heads of keys"
            )));
        }
        if self.unit_vectors {
            for vectors in operands.iter_mut().take(2) {
                for vector in vectors.chunks_exact_mut(d_k.max(1)) {
                    let squares: f64 = vector.iter().map(|x| x * x).sum();
                    let length = (squares + SQUARES_EPSILON).sqrt();
                    vector.iter_mut().for_each(|x| *x /= length);
                }
            }
        }
        let [query, key, value] = operands;
        let tokens = value.len().checked_div(values * d_v).unwrap_or(0);
        let decay = inputs.optional(4).map(|raw| self.decays(raw, tokens, sizes, inputs));
        let beta = inputs.optional(5).map(|beta| -> Result<Vec<f64>, OpError> {
            let mut all = sized(beta, tokens * values, "beta")?;
            if self.beta_sigmoid {
                all.iter_mut().for_each(|x| *x = sigmoid(*x));
            }
            Ok(all)
        });
        let (decay, beta) = (decay.transpose()?, beta.transpose()?);
        Ok(DeltaOperands { sizes, query, key, value, decay, beta })
    }

    /// Factors on the state for each head, or for each element of its key.
    fn decays(
        &self,
        raw: &Tensor,
        tokens: usize,
        sizes: HeadSizes,
        inputs: OperatorInputs<'_, Tensor>,
    ) -> Result<(Vec<f64>, usize), OpError> {
        let heads = sizes.values;
        let width = if raw.elements() == tokens * heads { 1 } else { sizes.d_k };
        let mut all = sized(raw, tokens * heads * width, "decay")?;
        let a_log = inputs.optional(7).map(|a| sized(a, heads, "a_log")).transpose()?;
        let bias = inputs.optional(8).map(floats).transpose()?.unwrap_or_default();
        let per_head = bias.len() == heads;
        if a_log.is_some() && !per_head && bias.len() != heads * width {
            return Err(OpError::new(format!(
                "dt_bias has {} elements for {heads} heads",
                bias.len()
            )));
        }
        for (at, slot) in all.iter_mut().enumerate() {
            let column = at % (heads * width);
            let head = column / width;
            let a_log = a_log.as_ref().map_or(0.0, |all| all[head]);
            let bias = bias.get(if per_head { head } else { column }).copied().unwrap_or(0.0);
            *slot = self.decay.apply(a_log, *slot + bias).exp();
        }
        Ok((all, width))
    }

    /// Numbers in the report of one step: decays, keys and changes.
    fn report_parts(&self, sizes: HeadSizes, width: usize) -> [usize; 3] {
        [sizes.values * width, sizes.keys * sizes.d_k, sizes.values * sizes.d_v]
    }
}

/// Query, key and value of inputs of their own.
fn separate(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
) -> Result<(HeadSizes, [Vec<f64>; 3]), OpError> {
    let (Some((tokens, &[keys, d_k])), Some((rows, &[values, d_v]))) =
        (query.shape().split_last_chunk(), value.shape().split_last_chunk())
    else {
        return Err(OpError::new("query and value need a rank of 3 or 4"));
    };
    if key.shape() != query.shape() || tokens != rows {
        return Err(OpError::new(format!(
            "query {:?}, key {:?} and value {:?} do not fit each other",
            query.shape(),
            key.shape(),
            value.shape()
        )));
    }
    Ok((HeadSizes { keys, values, d_k, d_v }, [floats(query)?, floats(key)?, floats(value)?]))
}

/// Query, key and value behind each other in every row; the state says how wide they are.
fn joined(query: &Tensor, state: &Tensor) -> Result<(HeadSizes, [Vec<f64>; 3]), OpError> {
    let (Some(&width), &[_, values, d_v, d_k]) = (query.shape().last(), state.shape()) else {
        return Err(OpError::new(format!(
            "a query of shape {:?} and a state of shape {:?}",
            query.shape(),
            state.shape()
        )));
    };
    let rest = width.checked_sub(values.saturating_mul(d_v)).unwrap_or(usize::MAX);
    let keys = rest.checked_div(2 * d_k).unwrap_or(0);
    if rest == usize::MAX || keys * 2 * d_k != rest {
        return Err(OpError::new(format!(
            "rows of {width} numbers do not fit a state of shape {:?}",
            state.shape()
        )));
    }
    let all = floats(query)?;
    let part = |start: usize, len: usize| -> Vec<f64> {
        all.chunks_exact(width.max(1)).flat_map(|row| row[start..start + len].to_vec()).collect()
    };
    let keyed = keys * d_k;
    let parts = [part(0, keyed), part(keyed, keyed), part(2 * keyed, values * d_v)];
    Ok((HeadSizes { keys, values, d_k, d_v }, parts))
}

/// The elements of a tensor that must have this many.
fn sized(tensor: &Tensor, count: usize, what: &str) -> Result<Vec<f64>, OpError> {
    if tensor.elements() != count {
        let found = tensor.shape();
        return Err(OpError::new(format!("{what} has shape {found:?}, expected {count} elements")));
    }
    floats(tensor)
}

impl DeltaOperands {
    /// One step of one head: changes its state `[d_v, d_k]` and returns what it added for each value.
    fn step(&self, token: usize, head: usize, state: &mut [f64]) -> Vec<f64> {
        let HeadSizes { values, d_k, d_v, .. } = self.sizes;
        let key = self.vector(&self.key, token, head);
        let row = token * values + head;
        if let Some((decay, width)) = &self.decay {
            for (at, entry) in state.iter_mut().enumerate() {
                let column = if *width == 1 { 0 } else { at % d_k };
                *entry *= decay[row * width + column];
            }
        }
        let mut added = self.value[row * d_v..][..d_v].to_vec();
        if let Some(beta) = &self.beta {
            for (slot, line) in added.iter_mut().zip(state.chunks_exact(d_k)) {
                let found: f64 = line.iter().zip(key).map(|(s, k)| s * k).sum();
                *slot = beta[row] * (*slot - found);
            }
        }
        for (line, added) in state.chunks_exact_mut(d_k).zip(&added) {
            line.iter_mut().zip(key).for_each(|(entry, k)| *entry += added * k);
        }
        added
    }

    /// The vector of the head of keys that a head of values belongs to.
    fn vector<'a>(&self, all: &'a [f64], token: usize, head: usize) -> &'a [f64] {
        let HeadSizes { keys, values, d_k, .. } = self.sizes;
        &all[(token * keys + head / (values / keys)) * d_k..][..d_k]
    }

    /// Writes decay, key and change of one step of one head.
    fn report(
        &self,
        parts: [usize; 3],
        token: usize,
        head: usize,
        added: &[f64],
        to: StepReport<'_>,
    ) {
        let HeadSizes { keys, values, d_k, d_v } = self.sizes;
        let StepReport { place, out } = to;
        let capacity = out.len() / parts.iter().sum::<usize>().max(1);
        let mut write = |kind: usize, column: usize, numbers: &[f64]| {
            let before: usize = parts[..kind].iter().map(|part| part * capacity).sum();
            let start = before + place * parts[kind] + column;
            out[start..start + numbers.len()].copy_from_slice(numbers);
        };
        let width = parts[0] / values;
        match &self.decay {
            Some((decay, _)) => {
                let start = (token * values + head) * width;
                write(0, head * width, &decay[start..start + width]);
            }
            None => write(0, head * width, &vec![1.0; width]),
        }
        write(1, head / (values / keys) * d_k, self.vector(&self.key, token, head));
        write(2, head * d_v, added);
    }
}

impl Operator for GatedDeltaNet {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let query = inputs.required(0)?;
        expect_float(query.dtype)?;
        self.check_presence(inputs)?;
        for at in [3, 9, 10] {
            if let Some(fact) = inputs.optional(at) {
                expect_type("counts", fact.dtype, |dtype| dtype == DataType::Int32, "INT32")?;
            }
        }
        let state = match (inputs.optional(6), inputs.optional(2)) {
            (Some(state), _) => state.shape.clone(),
            (None, Some(value)) => value.shape.as_ref().and_then(|dims| {
                let [.., heads, d_v] = &dims[..] else { return None };
                let d_k = query.shape.as_ref()?.last()?.clone();
                Some(vec![Dim::Unknown, heads.clone(), d_v.clone(), d_k])
            }),
            _ => None,
        };
        let output = match (inputs.optional(2), &query.shape, &state) {
            (Some(value), ..) => value.shape.clone(),
            (None, Some(query), Some(state)) if state.len() == 4 && !query.is_empty() => {
                Some([&query[..query.len() - 1], &state[1..3]].concat())
            }
            _ => None,
        };
        let batch = state.as_ref().and_then(|dims| dims.first().cloned()).unwrap_or(Dim::Unknown);
        Ok(vec![
            Fact::shaped(query.dtype, output),
            Fact::shaped(DataType::Fp32, state),
            Fact::new(DataType::Fp32, vec![batch, Dim::Unknown]),
        ])
    }

    #[allow(clippy::cast_precision_loss, reason = "the width of a head is small")]
    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        self.check_presence(inputs)?;
        let query = inputs.required(0)?;
        let operands = self.operands(inputs)?;
        let HeadSizes { values, d_k, d_v, .. } = operands.sizes;
        let rank = if inputs.optional(1).is_some() { 2 } else { 1 };
        let leading = &query.shape()[..query.rank().saturating_sub(rank)];
        let tokens: usize = leading.iter().product();
        let batch = inputs.optional(6).and_then(|state| state.shape().first().copied());
        let rows = JoinedRows::read(inputs.optional(3), tokens, batch)?;
        let state_shape = [rows.count(), values, d_v, d_k];
        let count = bounded(DataType::Fp64, &state_shape)?;
        let mut state = match inputs.optional(6) {
            Some(state) if state.shape() != state_shape => {
                let found = state.shape();
                let text = format!("the state has shape {found:?}, expected {state_shape:?}");
                return Err(OpError::new(text));
            }
            Some(state) => floats(state)?,
            None => vec![0.0; count],
        };
        let shape = [leading, &[values, d_v]].concat();
        let mut output = vec![0.0; bounded(DataType::Fp64, &shape)?];
        let width = operands.decay.as_ref().map_or(1, |(_, width)| *width);
        let parts = self.report_parts(operands.sizes, width);
        let report_shape = [rows.count(), self.reported * parts.iter().sum::<usize>()];
        let mut reports = vec![0.0; bounded(DataType::Fp64, &report_shape)?];
        let active = match inputs.optional(10) {
            Some(active) => active.to_i64_vec()?.first().is_some_and(|&active| active != 0),
            None => true,
        };
        let captured = rows.captured(inputs.optional(9).filter(|_| active), self.reported)?;
        let scale = match self.scale {
            0.0 => 1.0 / (d_k as f64).sqrt(),
            scale => f64::from(scale),
        };
        for (sequence, range) in rows.ranges().enumerate() {
            let start = range.start;
            for token in range {
                for head in 0..values {
                    let size = d_k * d_v;
                    let state = &mut state[(sequence * values + head) * size..][..size];
                    let added = operands.step(token, head, state);
                    let query = operands.vector(&operands.query, token, head);
                    let out = &mut output[(token * values + head) * d_v..][..d_v];
                    for (slot, line) in out.iter_mut().zip(state.chunks_exact(d_k.max(1))) {
                        *slot = scale * line.iter().zip(query).map(|(s, q)| s * q).sum::<f64>();
                    }
                    if token - start < captured[sequence] {
                        let out = &mut reports[sequence * report_shape[1]..][..report_shape[1]];
                        let to = StepReport { place: token - start, out };
                        operands.report(parts, token, head, &added, to);
                    }
                }
            }
        }
        Ok(vec![
            from_floats(query.dtype(), &shape, output)?,
            from_floats(DataType::Fp32, &state_shape, state)?,
            from_floats(DataType::Fp32, &report_shape, reports)?,
        ])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, int, run, tensor, text};

    #[test]
    fn each_sequence_has_a_state_that_adds_up() {
        let q = tensor(&[3, 1, 1], &[1.0_f32, 1.0, 2.0]);
        let k = tensor(&[3, 1, 1], &[1.0_f32, 2.0, 3.0]);
        let v = tensor(&[3, 1, 1], &[1.0_f32, 1.0, 1.0]);
        let starts = tensor(&[3], &[0_i32, 2, 3]);
        let list = attributes([("update_rule", text("linear"))]);
        let inputs = [Some(&q), Some(&k), Some(&v), Some(&starts)];
        let all = run("com.microsoft:GatedDeltaNet", 1, &list, &inputs, 2).unwrap();
        assert_eq!(all[0], tensor(&[3, 1, 1], &[1.0_f32, 3.0, 6.0]));
        assert_eq!(all[1], tensor(&[2, 1, 1, 1], &[3.0_f32, 3.0]));
        let wrong = tensor(&[3], &[0_i32, 4, 3]);
        let inputs = [Some(&q), Some(&k), Some(&v), Some(&wrong)];
        assert!(run("com.microsoft:GatedDeltaNet", 1, &list, &inputs, 2).is_err());
    }

    #[test]
    fn inputs_that_the_rule_has_no_use_for_are_refused() {
        let x = tensor(&[1, 1, 1], &[1.0_f32]);
        let gate = tensor(&[1, 1], &[1.0_f32]);
        let starts = tensor(&[2], &[0_i32, 1]);
        let list = attributes([("update_rule", text("linear"))]);
        let inputs = [Some(&x), Some(&x), Some(&x), Some(&starts), Some(&gate)];
        let error = run("com.microsoft:GatedDeltaNet", 1, &list, &inputs, 2).unwrap_err();
        assert!(error.contains("decay"), "{error}");
        let list = attributes([("state_update_capacity", int(9))]);
        assert!(run("com.microsoft:GatedDeltaNet", 1, &list, &inputs, 2).is_err());
    }
}
