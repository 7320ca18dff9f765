//! `FusedElementwise`: functions of elements that follow each other.

use galatea_tensor::{Tensor, broadcast_shapes};

use super::widened::{narrowed, rounding, widened};
use crate::attribute::{AttributeValue, Attributes, named};
use crate::collect::{collected, collected_some};
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::activation::ActivationKind;
use crate::ops::math::{BinaryKind, UnaryKind, VariadicKind};

/// A function of one element or two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ElementFunction {
    /// A function of mathematics.
    Unary(UnaryKind),
    /// An activation.
    Activation(ActivationKind),
    /// `min(max(x, min), max)`.
    Clip {
        /// Lower bound.
        min: f32,
        /// Upper bound.
        max: f32,
    },
    /// Arithmetic of two elements.
    Binary(BinaryKind),
    /// The smaller or the greater of two elements, or their sum.
    Variadic(VariadicKind),
    /// The first to the power of the second.
    Pow,
}

/// Where a step's operand comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainStepOperand {
    /// An input of the node.
    Input(usize),
    /// The result of an earlier step.
    Step(usize),
}

/// One function of a chain.
#[derive(Clone, Debug, PartialEq)]
pub struct ElementStep {
    /// The function.
    pub function: ElementFunction,
    /// Its operands: one or two.
    pub operands: Vec<ChainStepOperand>,
}

/// Functions applied to each element in turn. The result of the last step is the output.
///
/// Inputs: one or more, of any shapes that broadcast. Output: of their common shape.
/// Types: FP32, FP64, FP16, BF16; each step rounds to the type.
#[derive(Clone, Debug, PartialEq)]
pub struct FusedElementwise {
    /// The steps; a step reads inputs and earlier steps.
    pub steps: Vec<ElementStep>,
}

impl ElementFunction {
    /// Returns the number of operands that it has.
    #[must_use]
    pub fn arity(self) -> usize {
        match self {
            Self::Unary(_) | Self::Activation(_) | Self::Clip { .. } => 1,
            Self::Binary(_) | Self::Variadic(_) | Self::Pow => 2,
        }
    }

    /// The function's value; `b` counts for functions of two elements.
    #[must_use]
    pub fn apply(self, a: f64, b: f64) -> f64 {
        match self {
            Self::Unary(kind) => kind.float(a),
            Self::Activation(kind) => kind.apply(a),
            Self::Clip { min, max } => {
                let low = if a < f64::from(min) { f64::from(min) } else { a };
                if low > f64::from(max) { f64::from(max) } else { low }
            }
            Self::Binary(kind) => kind.float(a, b),
            Self::Variadic(kind) => kind.float(a, b),
            Self::Pow => a.powf(b),
        }
    }

    /// ONNX's name and the parameters.
    fn name(self) -> (&'static str, Vec<f32>) {
        let found = PLAIN.iter().find(|(_, function)| *function == self);
        if let Some((name, _)) = found {
            return (name, Vec::new());
        }
        match self {
            Self::Clip { min, max } => ("Clip", vec![min, max]),
            Self::Activation(ActivationKind::LeakyRelu { alpha }) => ("LeakyRelu", vec![alpha]),
            Self::Activation(ActivationKind::Elu { alpha }) => ("Elu", vec![alpha]),
            Self::Activation(ActivationKind::HardSigmoid { alpha, beta }) => {
                ("HardSigmoid", vec![alpha, beta])
            }
            _ => ("", Vec::new()),
        }
    }

    fn named(name: &str, parameters: &[f32]) -> Option<Self> {
        let plain = PLAIN.iter().find(|(known, _)| *known == name).map(|(_, function)| *function);
        Some(match (name, parameters) {
            (_, []) => plain?,
            ("Clip", &[min, max]) => Self::Clip { min, max },
            ("LeakyRelu", &[alpha]) => Self::Activation(ActivationKind::LeakyRelu { alpha }),
            ("Elu", &[alpha]) => Self::Activation(ActivationKind::Elu { alpha }),
            ("HardSigmoid", &[alpha, beta]) => {
                Self::Activation(ActivationKind::HardSigmoid { alpha, beta })
            }
            _ => return None,
        })
    }

    /// Returns whether a chain may hold the function.
    #[must_use]
    pub fn is_known(self) -> bool {
        !self.name().0.is_empty()
    }
}

/// The functions without parameters.
const PLAIN: &[(&str, ElementFunction)] = &[
    ("Neg", ElementFunction::Unary(UnaryKind::Neg)),
    ("Abs", ElementFunction::Unary(UnaryKind::Abs)),
    ("Sqrt", ElementFunction::Unary(UnaryKind::Sqrt)),
    ("Exp", ElementFunction::Unary(UnaryKind::Exp)),
    ("Log", ElementFunction::Unary(UnaryKind::Log)),
    ("Erf", ElementFunction::Unary(UnaryKind::Erf)),
    ("Reciprocal", ElementFunction::Unary(UnaryKind::Reciprocal)),
    ("Floor", ElementFunction::Unary(UnaryKind::Floor)),
    ("Ceil", ElementFunction::Unary(UnaryKind::Ceil)),
    ("Round", ElementFunction::Unary(UnaryKind::Round)),
    ("Sign", ElementFunction::Unary(UnaryKind::Sign)),
    ("Sin", ElementFunction::Unary(UnaryKind::Sin)),
    ("Cos", ElementFunction::Unary(UnaryKind::Cos)),
    ("Tan", ElementFunction::Unary(UnaryKind::Tan)),
    ("Atan", ElementFunction::Unary(UnaryKind::Atan)),
    ("Relu", ElementFunction::Activation(ActivationKind::Relu)),
    ("Sigmoid", ElementFunction::Activation(ActivationKind::Sigmoid)),
    ("Tanh", ElementFunction::Activation(ActivationKind::Tanh)),
    ("Softplus", ElementFunction::Activation(ActivationKind::Softplus)),
    ("Softsign", ElementFunction::Activation(ActivationKind::Softsign)),
    ("HardSwish", ElementFunction::Activation(ActivationKind::HardSwish)),
    ("Mish", ElementFunction::Activation(ActivationKind::Mish)),
    ("Silu", ElementFunction::Activation(ActivationKind::Swish { alpha: 1.0 })),
    ("Gelu", ElementFunction::Activation(ActivationKind::Gelu { tanh: false })),
    ("GeluTanh", ElementFunction::Activation(ActivationKind::Gelu { tanh: true })),
    ("Add", ElementFunction::Binary(BinaryKind::Add)),
    ("Sub", ElementFunction::Binary(BinaryKind::Sub)),
    ("Mul", ElementFunction::Binary(BinaryKind::Mul)),
    ("Div", ElementFunction::Binary(BinaryKind::Div)),
    ("Min", ElementFunction::Variadic(VariadicKind::Min)),
    ("Max", ElementFunction::Variadic(VariadicKind::Max)),
    ("Sum", ElementFunction::Variadic(VariadicKind::Sum)),
    ("Pow", ElementFunction::Pow),
];

impl FusedElementwise {
    /// Reads the attributes: `functions` (the steps' names, see [`ElementFunction`]), `operands`
    /// (all steps' operands in turn: an input's number, or −1 − the number of an earlier step) and
    /// `parameters` (of all steps in turn), with how many each step has in `parameter_counts`.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let names = context.attributes.strings("functions")?.unwrap_or_default();
        let operands = context.attributes.ints("operands")?.unwrap_or_default();
        let parameters = context.attributes.floats("parameters")?.unwrap_or_default();
        let counts = context.attributes.ints("parameter_counts")?;
        let counts = counts.unwrap_or_else(|| vec![0; names.len()]);
        let mut operands = operands.into_iter();
        let mut parameters = parameters.into_iter();
        let mut steps: Vec<ElementStep> = Vec::with_capacity(names.len());
        for (index, name) in names.iter().enumerate() {
            let count = counts.get(index).and_then(|&count| usize::try_from(count).ok());
            let own: Vec<f32> = parameters.by_ref().take(count.unwrap_or(0)).collect();
            let name = name.as_str().unwrap_or_default();
            let function = ElementFunction::named(name, &own).ok_or_else(|| {
                OpError::new(format!("step {index}: '{name}' with parameters {own:?} is unknown"))
            })?;
            let operand = |number: i64| {
                let input = usize::try_from(number).ok().filter(|&input| input < context.inputs);
                let step = usize::try_from(-1 - number).ok().filter(|&step| step < index);
                input.map(ChainStepOperand::Input).or(step.map(ChainStepOperand::Step))
            };
            let own: Option<Vec<ChainStepOperand>> =
                collected_some(&mut operands.by_ref().take(function.arity()).map(operand));
            let own = own.filter(|own| own.len() == function.arity()).ok_or_else(|| {
                OpError::new(format!("step {index}: '{name}' reads what is not there"))
            })?;
            steps.push(ElementStep { function, operands: own });
        }
        if steps.is_empty() {
            return Err(OpError::new("attribute 'functions' is empty"));
        }
        Ok(Box::new(Self { steps }))
    }

    /// Names of the functions, in order, for people.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        self.steps.iter().map(|step| step.function.name().0).collect()
    }
}

impl Operator for FusedElementwise {
    fn attributes(&self) -> Option<Attributes> {
        let number = |operand: &ChainStepOperand| match *operand {
            ChainStepOperand::Input(index) => i64::try_from(index).ok(),
            ChainStepOperand::Step(index) => i64::try_from(index).ok().map(|index| -1 - index),
        };
        let operands = self.steps.iter().flat_map(|step| &step.operands);
        let operands = collected_some(&mut operands.map(number))?;
        let all: Vec<_> = self.steps.iter().map(|step| step.function.name()).collect();
        let counts: Vec<usize> = all.iter().map(|(_, parameters)| parameters.len()).collect();
        let names = all.iter().map(|(name, _)| (*name).into()).collect();
        let parameters = all.into_iter().flat_map(|(_, parameters)| parameters).collect();
        Some(named([
            ("functions", AttributeValue::Strings(names)),
            ("operands", AttributeValue::Ints(operands)),
            ("parameters", AttributeValue::Floats(parameters)),
            ("parameter_counts", counts.as_slice().into()),
        ]))
    }

    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let all = inputs.all_required()?;
        let dtype = inputs.required(0)?.dtype;
        if let Some(other) = all.iter().find(|fact| fact.dtype != dtype) {
            return Err(OpError::new(format!("inputs are {dtype} and {}", other.dtype)));
        }
        Ok(vec![Fact::shaped(dtype, Fact::broadcast(&all)?)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let dtype = inputs.required(0)?.dtype();
        let all = inputs.all_required()?;
        let mut shape = Vec::new();
        for tensor in &all {
            shape = broadcast_shapes(&shape, tensor.shape())?;
        }
        let spread = |tensor: &&Tensor| widened(&tensor.broadcast_to(&shape)?, dtype);
        let values: Vec<Vec<f64>> = collected(&mut all.iter().map(spread))?;
        let round = rounding(dtype)?;
        let mut results: Vec<Vec<f64>> = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let operand = |slot: usize| {
                step.operands.get(slot).map(|operand| match *operand {
                    ChainStepOperand::Input(index) => &values[index],
                    ChainStepOperand::Step(index) => &results[index],
                })
            };
            let a = operand(0).ok_or_else(|| OpError::new("a step has no operand"))?;
            let b = operand(1);
            let result = a.iter().enumerate().map(|(at, a)| {
                let b = b.map_or(0.0, |b| b[at]);
                round(step.function.apply(*a, b))
            });
            results.push(result.collect());
        }
        Ok(vec![narrowed(dtype, &shape, results.pop().unwrap_or_default())?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::AttributeValue;
    use crate::ops::testing::{attributes, ints, one, run};

    #[test]
    fn every_function_has_one_name() {
        for (at, (name, function)) in PLAIN.iter().enumerate() {
            assert_eq!(ElementFunction::named(name, &[]), Some(*function), "{name}");
            assert!(PLAIN[at + 1..].iter().all(|(other, _)| other != name), "{name}");
        }
        let with = [
            ElementFunction::Clip { min: -1.0, max: 6.0 },
            ElementFunction::Activation(ActivationKind::LeakyRelu { alpha: 0.1 }),
            ElementFunction::Activation(ActivationKind::HardSigmoid { alpha: 0.2, beta: 0.5 }),
        ];
        for function in with {
            let (name, parameters) = function.name();
            assert_eq!(ElementFunction::named(name, &parameters), Some(function));
        }
        assert!(!ElementFunction::Unary(UnaryKind::BitwiseNot).is_known());
    }

    #[test]
    fn steps_read_inputs_and_earlier_steps() {
        let strings =
            |all: &[&str]| AttributeValue::Strings(all.iter().map(|&name| name.into()).collect());
        // clip(a + b, 0, 5) · (a + b)
        let with = |operands: &[i64]| {
            attributes([
                ("functions", strings(&["Add", "Clip", "Mul"])),
                ("operands", ints(operands)),
                ("parameters", AttributeValue::Floats(vec![0.0, 5.0])),
                ("parameter_counts", ints(&[0, 2, 0])),
            ])
        };
        let a = Tensor::from_vec(&[2, 1], vec![1.0_f32, -4.0]).unwrap();
        let b = Tensor::vector(vec![2.0_f32, 7.0]);
        const NAME: &str = "ai.galatea:FusedElementwise";
        let result = one(NAME, 1, &with(&[0, 1, -1, -2, -1]), &[&a, &b]);
        let expected = vec![9.0_f32, 40.0, 0.0, 9.0];
        assert_eq!(result, Tensor::from_vec(&[2, 2], expected).unwrap());
        for operands in [&[0, 2, -1, -2, -1][..], &[0, 1, -3, -2, -1], &[0, 1, -1]] {
            let error = run(NAME, 1, &with(operands), &[Some(&a), Some(&b)], 1).unwrap_err();
            assert!(error.contains("is not there"), "{error}");
        }
    }
}
