//! Directions, sequences, activations and layouts that `LSTM`, `GRU` and `RNN` share.

use galatea_tensor::{DataType, Tensor};

use crate::collect::collected;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{OperatorInputs, ParseContext};
use crate::ops::bounds;
use crate::ops::values;

/// In which order the steps of a sequence are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecurrentDirection {
    /// First to last.
    Forward,
    /// Last to first.
    Reverse,
    /// Both, with weights of their own.
    Bidirectional,
}

impl RecurrentDirection {
    /// Returns the number of passes.
    #[must_use]
    pub fn count(self) -> usize {
        if self == Self::Bidirectional { 2 } else { 1 }
    }

    /// Returns whether a pass reads from the end.
    fn is_reversed(self, pass: usize) -> bool {
        self == Self::Reverse || pass == 1
    }
}

/// A function of a recurrent cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CellActivation {
    /// `max(x, 0)`.
    Relu,
    /// The hyperbolic tangent.
    Tanh,
    /// `1 / (1 + e^-x)`.
    Sigmoid,
    /// `alpha · x + beta`.
    Affine(f64, f64),
    /// `x` where positive, `alpha · x` elsewhere.
    LeakyRelu(f64),
    /// `x` where at least `alpha`, 0 elsewhere.
    ThresholdedRelu(f64),
    /// `alpha · tanh(beta · x)`.
    ScaledTanh(f64, f64),
    /// `min(max(alpha · x + beta, 0), 1)`.
    HardSigmoid(f64, f64),
    /// `x` where positive, `alpha · (e^x - 1)` elsewhere.
    Elu(f64),
    /// `x / (1 + |x|)`.
    Softsign,
    /// `ln(1 + e^x)`.
    Softplus,
}

impl CellActivation {
    /// The function with this name; `alphas` and `betas` are what is left of the lists.
    fn parse(
        name: &str,
        alphas: &mut impl Iterator<Item = f32>,
        betas: &mut impl Iterator<Item = f32>,
    ) -> Result<Self, OpError> {
        let mut alpha = |default: f64| alphas.next().map_or(default, f64::from);
        let mut beta = |default: f64| betas.next().map_or(default, f64::from);
        Ok(match name.to_ascii_lowercase().as_str() {
            "relu" => Self::Relu,
            "tanh" => Self::Tanh,
            "sigmoid" => Self::Sigmoid,
            "affine" => Self::Affine(alpha(1.0), beta(0.0)),
            "leakyrelu" => Self::LeakyRelu(alpha(0.01)),
            "thresholdedrelu" => Self::ThresholdedRelu(alpha(1.0)),
            "scaledtanh" => Self::ScaledTanh(alpha(1.0), beta(1.0)),
            "hardsigmoid" => Self::HardSigmoid(alpha(0.2), beta(0.5)),
            "elu" => Self::Elu(alpha(1.0)),
            "softsign" => Self::Softsign,
            "softplus" => Self::Softplus,
            _ => return Err(OpError::new(format!("activation '{name}' is unknown"))),
        })
    }

    /// The function's value.
    #[must_use]
    pub fn apply(self, x: f64) -> f64 {
        match self {
            // Compared such that a NaN stays one.
            Self::Relu => {
                if x < 0.0 {
                    0.0
                } else {
                    x
                }
            }
            Self::Tanh => x.tanh(),
            Self::Sigmoid => 1.0 / (1.0 + (-x).exp()),
            Self::Affine(alpha, beta) => alpha * x + beta,
            Self::LeakyRelu(alpha) => {
                if x < 0.0 {
                    alpha * x
                } else {
                    x
                }
            }
            Self::ThresholdedRelu(alpha) => {
                if x >= alpha {
                    x
                } else {
                    0.0
                }
            }
            Self::ScaledTanh(alpha, beta) => alpha * (beta * x).tanh(),
            Self::HardSigmoid(alpha, beta) => (alpha * x + beta).clamp(0.0, 1.0),
            Self::Elu(alpha) => {
                if x < 0.0 {
                    alpha * x.exp_m1()
                } else {
                    x
                }
            }
            Self::Softsign => x / (1.0 + x.abs()),
            // The larger term is taken out so that no exponential overflows.
            Self::Softplus => x.max(0.0) + (-x.abs()).exp().ln_1p(),
        }
    }
}

/// The attributes that all recurrent operators have.
#[derive(Clone, Debug, PartialEq)]
pub struct RecurrentAttributes {
    /// In which order steps are read.
    pub direction: RecurrentDirection,
    /// The length of a state; that of the weights if absent.
    pub hidden_size: Option<usize>,
    /// The functions of a cell, for one direction after the other.
    pub activations: Vec<CellActivation>,
    /// Limit of the arguments of activations, on either side.
    pub clip: Option<f64>,
    /// True if the batch comes before the steps (`layout` 1, from opset 14 on).
    pub batch_first: bool,
}

/// The operands of one pass over one sequence.
pub(super) struct RecurrentPass<'a> {
    /// Which direction.
    pub(super) number: usize,
    /// Weights of the input, `[gates · hidden, input]`.
    pub(super) w: &'a [f64],
    /// Weights of the state, `[gates · hidden, hidden]`.
    pub(super) r: &'a [f64],
    /// Biases of both, `[2 · gates · hidden]`.
    pub(super) b: &'a [f64],
    /// Peepholes, `[3 · hidden]`; empty without.
    pub(super) p: &'a [f64],
}

/// The state of one sequence: hidden, and the cell's where there is one.
#[derive(Clone)]
pub(super) struct RecurrentState {
    /// The hidden state.
    pub(super) hidden: Vec<f64>,
    /// The cell state; unused but by `LSTM`.
    pub(super) cell: Vec<f64>,
    /// Numbers that a cell reads beside its input, zeros at first; empty but for `AttnLSTM`.
    pub(super) beside: Vec<f64>,
    /// The number of the sequence.
    pub(super) sequence: usize,
}

/// Widths of an operator's cell.
pub(super) struct CellWidths {
    /// Gates of a cell.
    pub(super) gates: usize,
    /// Numbers that it reads beside its input.
    pub(super) beside: usize,
}

impl CellWidths {
    /// Returns the widths of a cell that reads its input alone.
    pub(super) fn plain(gates: usize) -> Self {
        Self { gates, beside: 0 }
    }
}

/// Shapes of a run.
struct RecurrentSizes {
    steps: usize,
    batch: usize,
    input: usize,
    hidden: usize,
}

impl RecurrentAttributes {
    /// Reads the attributes; `defaults` are the functions of one direction.
    pub(super) fn read(context: &mut ParseContext<'_>, defaults: &[&str]) -> Result<Self, OpError> {
        let attributes = &mut context.attributes;
        let names = ["forward", "reverse", "bidirectional"];
        let direction = [
            RecurrentDirection::Forward,
            RecurrentDirection::Reverse,
            RecurrentDirection::Bidirectional,
        ][attributes.choice("direction", &names, 0)?];
        let hidden_size = attributes.int("hidden_size")?;
        let hidden_size =
            hidden_size.map(|size| bounds::length(size, "hidden_size")).transpose()?;
        let mut alphas = attributes.floats("activation_alpha")?.unwrap_or_default().into_iter();
        let mut betas = attributes.floats("activation_beta")?.unwrap_or_default().into_iter();
        let wanted = defaults.len() * direction.count();
        let names: Vec<String> = match attributes.strings("activations")? {
            Some(all) => all
                .iter()
                .map(|name| String::from_utf8_lossy(name.as_bytes()).into_owned())
                .collect(),
            None => defaults.iter().cycle().take(wanted).map(|name| (*name).to_owned()).collect(),
        };
        if names.len() != wanted {
            return Err(OpError::new(format!("{} activations, expected {wanted}", names.len())));
        }
        let activations = collected(
            &mut names.iter().map(|name| CellActivation::parse(name, &mut alphas, &mut betas)),
        )?;
        let clip = attributes.float("clip")?.filter(|clip| *clip > 0.0).map(f64::from);
        let batch_first = attributes.flag("layout", false)?;
        // Before opset 7 this said whether there is a first output; the node says so by having one.
        attributes.ignore("output_sequence");
        Ok(Self { direction, hidden_size, activations, clip, batch_first })
    }

    /// The argument of an activation, limited.
    pub(super) fn clipped(&self, x: f64) -> f64 {
        self.clip.map_or(x, |clip| x.clamp(-clip, clip))
    }

    /// One of the functions of a pass, of which there are `each`.
    pub(super) fn activation(&self, pass: usize, each: usize, which: usize) -> CellActivation {
        // `read` has made the list as long as all passes need.
        self.activations.get(pass * each + which).copied().unwrap_or(CellActivation::Tanh)
    }

    /// Types and shapes of the outputs `Y`, `Y_h` and, for `LSTM`, `Y_c`.
    pub(super) fn infer(
        &self,
        inputs: OperatorInputs<'_, Fact>,
        outputs: usize,
    ) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        let r = inputs.required(2)?;
        values::expect_float(x.dtype)?;
        let axis = |at: usize| match &x.shape {
            None => Ok(Dim::Unknown),
            Some(shape) if shape.len() == 3 => Ok(shape[at].clone()),
            Some(shape) => Err(OpError::new(format!("X has rank {}, expected 3", shape.len()))),
        };
        let first = axis(0)?;
        let second = axis(1)?;
        let hidden = match (self.hidden_size, &r.shape) {
            (Some(size), _) => Dim::Known(size),
            (None, Some(shape)) if shape.len() == 3 => shape[2].clone(),
            _ => Dim::Unknown,
        };
        let passes = Dim::Known(self.direction.count());
        let (all, last) = if self.batch_first {
            let last = vec![first.clone(), passes.clone(), hidden.clone()];
            (vec![first, second, passes, hidden], last)
        } else {
            let last = vec![passes.clone(), second.clone(), hidden.clone()];
            (vec![first, passes, second, hidden], last)
        };
        let mut facts = vec![Fact::new(x.dtype, all)];
        facts.resize(outputs, Fact::new(x.dtype, last));
        Ok(facts)
    }

    /// Checks the weights and gives the shapes of the run.
    fn sizes(
        &self,
        x: &Tensor,
        w: &Tensor,
        r: &Tensor,
        cell: &CellWidths,
    ) -> Result<RecurrentSizes, OpError> {
        let (&[steps, batch, input], &[_, _, hidden]) = (x.shape(), r.shape()) else {
            return Err(OpError::new(format!(
                "X has shape {:?} and R {:?}, expected rank 3",
                x.shape(),
                r.shape()
            )));
        };
        let passes = self.direction.count();
        let CellWidths { gates, beside } = *cell;
        let rows = gates.saturating_mul(hidden);
        let fits = w.shape() == [passes, rows, input.saturating_add(beside)]
            && r.shape() == [passes, rows, hidden]
            && self.hidden_size.is_none_or(|size| size == hidden);
        if !fits {
            return Err(OpError::new(format!(
                "W {:?} and R {:?} do not fit {gates} gates, {passes} directions, input {input} \
                 and hidden_size {:?}",
                w.shape(),
                r.shape(),
                self.hidden_size
            )));
        }
        Ok(RecurrentSizes { steps, batch, input, hidden })
    }

    /// A state input `[directions, batch, hidden]`, zeros if absent.
    fn initial(&self, input: Option<&Tensor>, sizes: &RecurrentSizes) -> Result<Vec<f64>, OpError> {
        let shape = [self.direction.count(), sizes.batch, sizes.hidden];
        let Some(input) = input else {
            return Ok(vec![0.0; bounds::bounded(DataType::Fp64, &shape)?]);
        };
        let input = if self.batch_first { input.permute(&[1, 0, 2])? } else { input.clone() };
        expect_shape("an initial state", &input, &shape)?;
        values::floats(&input)
    }

    /// Runs every pass over every sequence.
    ///
    /// `step` computes the next state from the input of a step; `cell` is the input of the first
    /// cell state and `p` that of peepholes, where the operator has them.
    pub(super) fn run(
        &self,
        inputs: OperatorInputs<'_, Tensor>,
        widths: &CellWidths,
        cell: Option<&Tensor>,
        p: Option<&Tensor>,
        step: &dyn Fn(&RecurrentPass<'_>, &[f64], &RecurrentState) -> RecurrentState,
    ) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let dtype = x.dtype();
        let x = if self.batch_first { x.permute(&[1, 0, 2])? } else { x.clone() };
        let w = inputs.required(1)?;
        let r = inputs.required(2)?;
        let sizes = self.sizes(&x, w, r, widths)?;
        let RecurrentSizes { steps, batch, input, hidden } = sizes;
        let passes = self.direction.count();
        let rows = widths.gates * hidden;
        let columns = input + widths.beside;
        let biases = match inputs.optional(3) {
            None => vec![0.0; passes * 2 * rows],
            Some(b) => {
                expect_shape("B", b, &[passes, 2 * rows])?;
                values::floats(b)?
            }
        };
        let peepholes = match p {
            None => Vec::new(),
            Some(p) => {
                expect_shape("P", p, &[passes, 3 * hidden])?;
                values::floats(p)?
            }
        };
        let lengths = sequence_lengths(inputs.optional(4), batch, steps)?;
        let first = self.initial(inputs.optional(5), &sizes)?;
        let first_cell = self.initial(cell, &sizes)?;
        let x = values::floats(&x)?;
        let w = values::floats(w)?;
        let r = values::floats(r)?;
        let shape = [steps, passes, batch, hidden];
        let mut all = vec![0.0; bounds::bounded(DataType::Fp64, &shape)?];
        let mut last = first.clone();
        let mut last_cell = first_cell.clone();
        for number in 0..passes {
            let part = |len: usize| number * len..(number + 1) * len;
            let pass = RecurrentPass {
                number,
                w: &w[part(rows * columns)],
                r: &r[part(rows * hidden)],
                b: &biases[part(2 * rows)],
                p: if p.is_some() { &peepholes[part(3 * hidden)] } else { &[] },
            };
            for (sequence, &length) in lengths.iter().enumerate() {
                let place = (number * batch + sequence) * hidden;
                let here = place..place + hidden;
                let mut state = RecurrentState {
                    hidden: first[here.clone()].to_vec(),
                    cell: first_cell[here.clone()].to_vec(),
                    beside: vec![0.0; widths.beside],
                    sequence,
                };
                for turn in 0..length {
                    let reversed = self.direction.is_reversed(number);
                    let at = if reversed { length - 1 - turn } else { turn };
                    let start = (at * batch + sequence) * input;
                    state = step(&pass, &x[start..start + input], &state);
                    let start = ((at * passes + number) * batch + sequence) * hidden;
                    all[start..start + hidden].copy_from_slice(&state.hidden);
                }
                last[here.clone()].copy_from_slice(&state.hidden);
                last_cell[here].copy_from_slice(&state.cell);
            }
        }
        let all = values::from_floats(dtype, &shape, all)?;
        let state = |values| values::from_floats(dtype, &[passes, batch, hidden], values);
        let last = state(last)?;
        let last_cell = state(last_cell)?;
        if !self.batch_first {
            return Ok(vec![all, last, last_cell]);
        }
        Ok(vec![
            bounds::owned(&all.permute(&[2, 0, 1, 3])?)?,
            bounds::owned(&last.permute(&[1, 0, 2])?)?,
            bounds::owned(&last_cell.permute(&[1, 0, 2])?)?,
        ])
    }
}

/// The product of a weight's rows with a vector, from row `gate · len` on.
pub(super) fn product(weights: &[f64], gate: usize, len: usize, vector: &[f64]) -> Vec<f64> {
    let columns = vector.len();
    (gate * len..(gate + 1) * len)
        .map(|row| {
            let row = &weights[row * columns..(row + 1) * columns];
            row.iter().zip(vector).map(|(weight, value)| weight * value).sum()
        })
        .collect()
}

pub(super) fn expect_shape(name: &str, tensor: &Tensor, shape: &[usize]) -> Result<(), OpError> {
    if tensor.shape() == shape {
        return Ok(());
    }
    Err(OpError::new(format!("{name} has shape {:?}, expected {shape:?}", tensor.shape())))
}

/// The length of every sequence; all steps if absent.
fn sequence_lengths(
    input: Option<&Tensor>,
    batch: usize,
    steps: usize,
) -> Result<Vec<usize>, OpError> {
    let Some(input) = input else { return Ok(vec![steps; batch]) };
    let lengths = bounds::lengths(&input.to_i64_vec()?, "a sequence length")?;
    if lengths.len() != batch || lengths.iter().any(|&length| length > steps) {
        return Err(OpError::new(format!(
            "sequence lengths {lengths:?} for a batch of {batch} with {steps} steps"
        )));
    }
    Ok(lengths)
}
