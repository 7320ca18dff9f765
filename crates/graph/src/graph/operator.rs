//! The contract of an operator and the row that registers one.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use galatea_tensor::{DataType, SmallType, Tensor};

use super::attribute::{AttributeReader, AttributeValue, Attributes};
use super::body::OperatorBody;
use crate::collect::collected;
use crate::datum::Datum;
use crate::error::OpError;
use crate::fact::Fact;
use crate::traits::OpTraits;

/// Inputs of an operator by position, where an optional one may be absent.
#[derive(Debug)]
pub struct OperatorInputs<'a, T> {
    all: &'a [Option<&'a T>],
}

impl<T> Clone for OperatorInputs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for OperatorInputs<'_, T> {}

impl<'a, T> OperatorInputs<'a, T> {
    /// Wraps inputs in the operator's order.
    #[must_use]
    pub fn new(all: &'a [Option<&'a T>]) -> Self {
        Self { all }
    }

    /// Returns the number of positions, absent ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns whether there are no positions at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The input at a position.
    ///
    /// # Errors
    /// Fails when it is absent.
    pub fn required(&self, index: usize) -> Result<&'a T, OpError> {
        self.optional(index).ok_or_else(|| OpError::new(format!("input {index} is missing")))
    }

    /// The input at a position, if present.
    #[must_use]
    pub fn optional(&self, index: usize) -> Option<&'a T> {
        self.all.get(index).copied().flatten()
    }

    /// All inputs of a variadic operator.
    ///
    /// # Errors
    /// Fails when one of them is absent.
    pub fn all_required(&self) -> Result<Vec<&'a T>, OpError> {
        collected(&mut (0..self.len()).map(|index| self.required(index)))
    }
}

/// Operator of a graph: its attributes are the fields of the implementing struct.
///
/// Downcast with `(operator as &dyn Any).downcast_ref::<Conv>()`, or [`crate::Node::operator`].
pub trait Operator: Any + fmt::Debug + Send + Sync {
    /// Type and shape of every output from those of the inputs.
    ///
    /// # Errors
    /// Fails when the inputs cannot be right: a wrong type, rank or length.
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError>;

    /// Computes every output: plain loops, wide accumulators, no cleverness. Inputs may be any
    /// views; outputs are in the order of the operator's definition.
    ///
    /// # Errors
    /// Fails when the inputs do not fit the operator; never a panic.
    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError>;

    /// Computes every output from values of any kind. They are owned, so that a sequence which
    /// nobody else reads can be changed in place.
    ///
    /// # Errors
    /// Fails like [`Operator::reference`], which computes the outputs of operators on tensors.
    fn evaluate(&self, inputs: Vec<Option<Datum>>) -> Result<Vec<Datum>, OpError> {
        on_tensors(&inputs, &|inputs| self.reference(inputs))
    }

    /// Returns whether inputs may be sequences and optional values; if not, [`Operator::infer`]
    /// sees tensors only.
    fn takes_any_kind(&self) -> bool {
        false
    }

    /// Returns whether equal inputs always give equal outputs at a cost that inputs and outputs
    /// bound, so that the node may be folded.
    fn is_deterministic(&self) -> bool {
        true
    }

    /// The subgraphs that the operator runs.
    fn bodies(&self) -> &[OperatorBody] {
        &[]
    }

    /// Returns the facts of the inputs of the subgraph at a position, from the facts of the node's
    /// inputs.
    ///
    /// # Errors
    /// Returns an error if the node's inputs cannot be right.
    fn body_facts(
        &self,
        _body: usize,
        _inputs: OperatorInputs<'_, Fact>,
    ) -> Result<Vec<Option<Fact>>, OpError> {
        Ok(Vec::new())
    }

    /// Attributes that parse to this operator in the newest version of its domain, subgraphs aside.
    /// An operator that rewrites make gives them; one that is parsed only, and whose node knows what
    /// from, need not.
    fn attributes(&self) -> Option<Attributes> {
        None
    }

    /// The same operator with other subgraphs in the place of its own, as many and with the same
    /// outputs; `None` for an operator without any.
    fn with_bodies(&self, _bodies: Vec<OperatorBody>) -> Option<Arc<dyn Operator>> {
        None
    }
}

/// Computes the outputs of an operator on tensors.
type ReferenceFunction<'a> =
    dyn Fn(OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> + 'a;

/// Computes outputs of operators on tensors. Apart from the trait, since each operator would have
/// a copy of it otherwise.
fn on_tensors(
    inputs: &[Option<Datum>],
    reference: &ReferenceFunction<'_>,
) -> Result<Vec<Datum>, OpError> {
    let tensor = |(at, slot): (usize, &Option<Datum>)| match slot {
        None => Ok(None),
        Some(datum) => {
            datum.as_tensor().cloned().map(Some).ok_or_else(|| no_tensor(at, datum.describe()))
        }
    };
    let inputs = collected(&mut inputs.iter().enumerate().map(tensor))?;
    let inputs: Vec<Option<&Tensor>> = inputs.iter().map(Option::as_ref).collect();
    let outputs = reference(OperatorInputs::new(&inputs))?;
    Ok(outputs.into_iter().map(Datum::Tensor).collect())
}

fn no_tensor(at: usize, found: impl fmt::Display) -> OpError {
    OpError::new(format!("input {at} is {found}, the operator takes tensors"))
}

/// Refuses facts of anything but tensors.
///
/// # Errors
/// The first input that is a sequence or an optional value.
pub(crate) fn expect_tensors(inputs: OperatorInputs<'_, Fact>) -> Result<(), OpError> {
    for at in 0..inputs.len() {
        if let Some(fact) = inputs.optional(at).filter(|fact| !fact.is_tensor()) {
            return Err(no_tensor(at, fact.kind));
        }
    }
    Ok(())
}

/// Implements [`Operator::reference`] for an operator that has [`Operator::evaluate`]: its inputs
/// and outputs must be tensors.
///
/// # Errors
/// Fails like [`Operator::evaluate`], and when an output is no tensor.
pub fn tensors_only(
    operator: &(impl Operator + ?Sized),
    inputs: OperatorInputs<'_, Tensor>,
) -> Result<Vec<Tensor>, OpError> {
    let datum = |at| inputs.optional(at).cloned().map(Datum::Tensor);
    let outputs = operator.evaluate((0..inputs.len()).map(datum).collect())?;
    collected(&mut outputs.into_iter().map(Datum::into_tensor))
}

/// How many inputs or outputs an operator has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arity {
    /// At least.
    pub min: usize,
    /// At most; `usize::MAX` for variadic.
    pub max: usize,
}

impl Arity {
    /// Exactly `n`.
    #[must_use]
    pub const fn exactly(n: usize) -> Self {
        Self { min: n, max: n }
    }

    /// From `min` to `max`.
    #[must_use]
    pub const fn between(min: usize, max: usize) -> Self {
        Self { min, max }
    }

    /// `min` or more.
    #[must_use]
    pub const fn at_least(min: usize) -> Self {
        Self { min, max: usize::MAX }
    }

    /// Returns whether `n` is allowed.
    #[must_use]
    pub fn allows(self, n: usize) -> bool {
        (self.min..=self.max).contains(&n)
    }
}

/// Properties of a node that the parser of its operator reads.
#[derive(Debug)]
pub struct ParseContext<'a> {
    /// The attributes; unread ones are an error of the caller.
    pub attributes: AttributeReader<'a>,
    /// Number of inputs that the node has, absent ones included, and without those that only its
    /// subgraphs read.
    pub inputs: usize,
    /// Number of outputs that the node has, absent ones included.
    pub outputs: usize,
    /// The version of the operator's domain that the model imports.
    pub opset: i64,
}

impl<'a> ParseContext<'a> {
    /// The context of a node.
    #[must_use]
    pub fn new(attributes: &'a Attributes, inputs: usize, outputs: usize, opset: i64) -> Self {
        Self { attributes: AttributeReader::new(attributes), inputs, outputs, opset }
    }

    /// A subgraph that must be there.
    ///
    /// # Errors
    /// Fails when it is missing, or the attribute has another kind.
    pub fn body(&mut self, name: &'static str) -> Result<OperatorBody, OpError> {
        let Some(subgraph) = self.attributes.graph(name)? else {
            return Err(OpError::new(format!("there is no subgraph '{name}'")));
        };
        // The node reads what its subgraphs capture behind its own inputs, in the attributes' order.
        let earlier = self.attributes.all().iter().take_while(|(other, _)| other.as_str() != name);
        let captured = earlier.map(|(_, value)| match value {
            AttributeValue::Graph(subgraph) => subgraph.captured,
            _ => 0,
        });
        let first = self.inputs + captured.sum::<usize>();
        Ok(OperatorBody::new(name, *subgraph, first))
    }

    /// The data type that an attribute names by its ONNX number.
    ///
    /// # Errors
    /// Fails when the attribute is no integer or names a type that is not supported.
    pub fn data_type(&mut self, name: &'static str) -> Result<Option<DataType>, OpError> {
        self.attributes.int(name)?.map(onnx_data_type).transpose()
    }
}

/// The data type with this number in ONNX's `TensorProto.DataType`.
///
/// # Errors
/// Fails when there is none, or it is not supported.
pub fn onnx_data_type(number: i64) -> Result<DataType, OpError> {
    Ok(match number {
        1 => DataType::Fp32,
        2 => DataType::Uint8,
        3 => DataType::Int8,
        4 => DataType::Uint16,
        5 => DataType::Int16,
        6 => DataType::Int32,
        7 => DataType::Int64,
        8 => DataType::Bytes,
        9 => DataType::Bool,
        10 => DataType::Fp16,
        11 => DataType::Fp64,
        12 => DataType::Uint32,
        13 => DataType::Uint64,
        16 => DataType::Bf16,
        17 => DataType::Small(SmallType::Float8E4M3Fn),
        18 => DataType::Small(SmallType::Float8E4M3FnUz),
        19 => DataType::Small(SmallType::Float8E5M2),
        20 => DataType::Small(SmallType::Float8E5M2FnUz),
        21 => DataType::Small(SmallType::Uint4),
        22 => DataType::Small(SmallType::Int4),
        23 => DataType::Small(SmallType::Float4E2M1),
        24 => DataType::Small(SmallType::Float8E8M0),
        25 => DataType::Small(SmallType::Uint2),
        26 => DataType::Small(SmallType::Int2),
        other => {
            return Err(OpError::new(format!("ONNX data type {other} is not supported")));
        }
    })
}

/// The number of a data type in ONNX's `TensorProto.DataType`; `None` for a type that it lacks.
#[must_use]
pub fn onnx_number(dtype: DataType) -> Option<i64> {
    (1..=26).find(|&number| onnx_data_type(number) == Ok(dtype))
}

/// One operator from one opset version on: a row of a family's table.
#[derive(Clone, Copy, Debug)]
pub struct OpDef {
    /// The domain; empty for ONNX's default one.
    pub domain: &'static str,
    /// The operator's name in its domain.
    pub name: &'static str,
    /// The first opset version that this definition is for.
    pub since: i64,
    /// How many inputs a node may have.
    pub inputs: Arity,
    /// How many outputs a node may have.
    pub outputs: Arity,
    /// Reads the attributes; the caller refuses the ones left unread.
    pub parse: fn(&mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError>,
    /// Facts that passes over graphs rely on.
    pub traits: OpTraits,
}

impl OpDef {
    /// A row of ONNX's default domain.
    #[must_use]
    pub const fn onnx(
        name: &'static str,
        since: i64,
        inputs: Arity,
        outputs: Arity,
        parse: fn(&mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError>,
    ) -> Self {
        Self {
            domain: crate::ONNX_DOMAIN,
            name,
            since,
            inputs,
            outputs,
            parse,
            traits: OpTraits::NONE,
        }
    }
}
