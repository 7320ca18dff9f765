//! Messages to programs.

use std::collections::HashSet;
use std::sync::Arc;

use galatea_tensor::{ByteString, Element as Number, OrderedMap, Tensor, checked_elements};

use super::{
    MilArgument, MilBlock, MilElement, MilFunction, MilOperation, MilProgram, MilTensorType,
    MilType, MilValue,
};
use crate::coreml::error::CoreMlError;
use crate::coreml::proto::mil::{
    self as proto, BindingKind, DimensionKind, ImmediateKind, MilElementsProto, MilValueKindProto,
    TypeKind,
};
use crate::coreml::weights::WeightFiles;

type Result<T> = std::result::Result<T, CoreMlError>;

/// Blocks within blocks at most.
const MAX_DEPTH: usize = 16;
/// Most axes of a tensor that a type may state: Core ML's own limit is five.
const MAX_RANK: usize = 16;

/// Decodes a program. Its constants share the files of weights.
///
/// # Errors
/// Fails when the program is of another version, or anything in it lacks what the form asks for.
pub(crate) fn program(
    proto: &proto::MilProgramProto,
    weights: &mut WeightFiles,
) -> Result<MilProgram> {
    if proto.version != 1 {
        let text = format!("the program has version {}, expected 1", proto.version);
        return Err(CoreMlError::unsupported(text));
    }
    let mut functions = OrderedMap::new();
    for (name, found) in &proto.functions {
        let function = MilDecoder { weights, depth: 0 }.function(found);
        functions.insert(
            name.clone(),
            function.map_err(|error| error.at(format!("function '{name}'")))?,
        );
    }
    Ok(MilProgram { functions })
}

struct MilDecoder<'w> {
    weights: &'w mut WeightFiles,
    depth: usize,
}

impl MilDecoder<'_> {
    fn function(&mut self, proto: &proto::MilFunctionProto) -> Result<MilFunction> {
        let Some(block) = proto.block_specializations.get(&proto.opset) else {
            let known: Vec<&str> = proto.block_specializations.keys().map(String::as_str).collect();
            let known = known.join(", ");
            let text = format!("there is no block for its opset '{}', only {known}", proto.opset);
            return Err(CoreMlError::invalid(text));
        };
        let inputs = named_types(&proto.inputs)?;
        Ok(MilFunction { inputs, opset: proto.opset.clone(), block: self.block(block)? })
    }

    fn block(&mut self, proto: &proto::MilBlockProto) -> Result<MilBlock> {
        if self.depth == MAX_DEPTH {
            let text = format!("blocks are nested more than {MAX_DEPTH} deep");
            return Err(CoreMlError::invalid(text));
        }
        self.depth += 1;
        let operations = proto.operations.iter().map(|found| self.operation(found));
        let operations = operations.collect::<Result<_>>();
        self.depth -= 1;
        Ok(MilBlock {
            inputs: named_types(&proto.inputs)?,
            operations: operations?,
            outputs: proto.outputs.clone(),
        })
    }

    fn operation(&mut self, proto: &proto::MilOperationProto) -> Result<MilOperation> {
        let mut operation =
            MilOperation { operator: proto.r#type.clone(), ..MilOperation::default() };
        operation.outputs = named_types(&proto.outputs)?;
        let filled = self.fill(proto, &mut operation);
        filled.map_err(|error| error.at(operation.place()))?;
        Ok(operation)
    }

    fn fill(
        &mut self,
        proto: &proto::MilOperationProto,
        operation: &mut MilOperation,
    ) -> Result<()> {
        for (name, argument) in &proto.inputs {
            let bindings = argument.arguments.iter().map(|binding| self.binding(binding));
            let bindings = bindings
                .collect::<Result<_>>()
                .map_err(|error| error.at(format!("input '{name}'")))?;
            operation.inputs.insert(name.clone(), bindings);
        }
        for (name, value) in &proto.attributes {
            let value =
                self.value(value).map_err(|error| error.at(format!("attribute '{name}'")))?;
            operation.attributes.insert(name.clone(), Arc::new(value));
        }
        operation.blocks =
            proto.blocks.iter().map(|block| self.block(block)).collect::<Result<_>>()?;
        Ok(())
    }

    fn binding(&mut self, proto: &proto::MilBindingProto) -> Result<MilArgument> {
        match &proto.binding {
            None => Err(CoreMlError::invalid("it is bound to nothing")),
            Some(BindingKind::Name(name)) => Ok(MilArgument::Name(name.clone())),
            Some(BindingKind::Value(found)) => {
                self.value(found).map(|value| MilArgument::Value(Arc::new(value)))
            }
        }
    }

    fn value(&mut self, proto: &proto::MilValueProto) -> Result<MilValue> {
        let Some(stated) = &proto.r#type else {
            return Err(CoreMlError::invalid("the constant has no type"));
        };
        match &proto.value {
            None => Err(CoreMlError::invalid("the constant has no value")),
            Some(MilValueKindProto::BlobFile(blob)) => {
                let (element, shape) = constant_type(stated)?;
                let tensor = self.weights.read(&blob.file_name, blob.offset, element, &shape)?;
                Ok(MilValue::Tensor(element, tensor))
            }
            Some(MilValueKindProto::Immediate(found)) => match &found.kind {
                None => Err(CoreMlError::invalid("the constant has no value")),
                Some(ImmediateKind::Tensor(found)) => {
                    let (element, shape) = constant_type(stated)?;
                    Ok(MilValue::Tensor(element, elements(found, element, &shape)?))
                }
                Some(ImmediateKind::List(found)) => Ok(MilValue::List(self.values(&found.values)?)),
                Some(ImmediateKind::Tuple(found)) => {
                    Ok(MilValue::Tuple(self.values(&found.values)?))
                }
                Some(ImmediateKind::Dictionary(found)) => {
                    let none = proto::MilValueProto::default();
                    let pairs = found.values.iter().map(|pair| {
                        let key = self.value(pair.key.as_ref().unwrap_or(&none))?;
                        Ok((key, self.value(pair.value.as_ref().unwrap_or(&none))?))
                    });
                    Ok(MilValue::Dictionary(pairs.collect::<Result<_>>()?))
                }
            },
        }
    }

    fn values(&mut self, all: &[proto::MilValueProto]) -> Result<Vec<MilValue>> {
        all.iter().map(|value| self.value(value)).collect()
    }
}

/// Names with their types, each name once.
fn named_types(all: &[proto::NamedValueType]) -> Result<Vec<(String, MilType)>> {
    let mut seen = HashSet::new();
    let read = |found: &proto::NamedValueType| {
        let place = || format!("value '{}'", found.name);
        let Some(stated) = &found.r#type else {
            return Err(CoreMlError::invalid("it has no type").at(place()));
        };
        Ok((found.name.clone(), value_type(stated).map_err(|error| error.at(place()))?))
    };
    let all = all.iter().map(read).collect::<Result<Vec<_>>>()?;
    match all.iter().find(|(name, _)| name.is_empty() || !seen.insert(name.clone())) {
        None => Ok(all),
        Some((name, _)) if name.is_empty() => Err(CoreMlError::invalid("a value has no name")),
        Some((name, _)) => Err(CoreMlError::invalid(format!("value '{name}' is there twice"))),
    }
}

fn value_type(proto: &proto::MilValueTypeProto) -> Result<MilType> {
    let missing = |what: &str| CoreMlError::invalid(format!("the type says no {what}"));
    match &proto.kind {
        None => Err(missing("kind")),
        Some(TypeKind::Tensor(found)) => tensor_type(found).map(MilType::Tensor),
        Some(TypeKind::List(found)) => {
            let item = found.r#type.as_deref().ok_or_else(|| missing("type of items"))?;
            let length = found.length.as_ref().map(dimension).transpose()?.flatten();
            Ok(MilType::List(Box::new(value_type(item)?), length))
        }
        Some(TypeKind::Tuple(found)) => {
            Ok(MilType::Tuple(found.types.iter().map(value_type).collect::<Result<_>>()?))
        }
        Some(TypeKind::Dictionary(found)) => {
            let key = found.key_type.as_deref().ok_or_else(|| missing("type of keys"))?;
            let value = found.value_type.as_deref().ok_or_else(|| missing("type of values"))?;
            Ok(MilType::Dictionary(Box::new((value_type(key)?, value_type(value)?))))
        }
        Some(TypeKind::State(found)) => {
            let inner = found.wrapped_type.as_deref().and_then(|inner| inner.kind.as_ref());
            match inner {
                Some(TypeKind::Tensor(inner)) => tensor_type(inner).map(MilType::State),
                _ => Err(CoreMlError::invalid("a state that holds no tensor")),
            }
        }
    }
}

fn tensor_type(proto: &proto::MilTensorTypeProto) -> Result<MilTensorType> {
    let Some(element) = MilElement::from_proto(proto.data_type) else {
        let text = format!("there is no type of elements {}", proto.data_type);
        return Err(CoreMlError::invalid(text));
    };
    let variadic = |found: &proto::MilDimensionProto| matches!(&found.kind, Some(DimensionKind::Unknown(found)) if found.variadic);
    if proto.rank < 0 || proto.dimensions.iter().any(variadic) {
        return Ok(MilTensorType { element, shape: None });
    }
    if usize::try_from(proto.rank).ok() != Some(proto.dimensions.len()) {
        let text = format!("rank {} with {} dimensions", proto.rank, proto.dimensions.len());
        return Err(CoreMlError::invalid(text));
    }
    if proto.dimensions.len() > MAX_RANK {
        let text = format!("rank {}, at most {MAX_RANK} is possible", proto.rank);
        return Err(CoreMlError::invalid(text));
    }
    let shape = proto.dimensions.iter().map(dimension).collect::<Result<_>>()?;
    Ok(MilTensorType { element, shape: Some(shape) })
}

fn dimension(proto: &proto::MilDimensionProto) -> Result<Option<usize>> {
    match &proto.kind {
        Some(DimensionKind::Constant(found)) => usize::try_from(found.size)
            .map(Some)
            .map_err(|_| CoreMlError::invalid(format!("{} is no length", found.size))),
        Some(DimensionKind::Unknown(_)) => Ok(None),
        None => Err(CoreMlError::invalid("a dimension says nothing")),
    }
}

/// The type of a constant, whose shape must be known.
fn constant_type(proto: &proto::MilValueTypeProto) -> Result<(MilElement, Vec<usize>)> {
    let stated = value_type(proto)?;
    let known = |found: &MilTensorType| -> Option<Vec<usize>> {
        found.shape.as_ref()?.iter().copied().collect()
    };
    match stated.as_tensor().and_then(|found| Some((found.element, known(found)?))) {
        Some(found) => Ok(found),
        None => Err(CoreMlError::invalid(format!("a constant cannot have the type {stated}"))),
    }
}

/// The elements of a constant, in the form that the schema assigns to their type.
fn elements(proto: &proto::TensorValue, element: MilElement, shape: &[usize]) -> Result<Tensor> {
    let wrong = |found: &str| {
        let text = format!("elements of {element}{shape:?} are not stored as {found}");
        Err(CoreMlError::invalid(text))
    };
    match (&proto.value, element) {
        (Some(MilElementsProto::Floats(all)), MilElement::Fp32) => {
            tensor(shape, all.values.clone())
        }
        (Some(MilElementsProto::Doubles(all)), MilElement::Fp64) => {
            tensor(shape, all.values.clone())
        }
        (Some(MilElementsProto::Bools(all)), MilElement::Bool) => tensor(shape, all.values.clone()),
        (Some(MilElementsProto::Strings(all)), MilElement::String) => {
            let texts = all.values.iter().map(|text| ByteString::from(text.as_str()));
            tensor(shape, texts.collect())
        }
        (Some(MilElementsProto::Ints(all)), MilElement::Int32) => tensor(shape, all.values.clone()),
        (Some(MilElementsProto::Ints(all)), MilElement::Int16) => {
            narrowed::<i16, _>(shape, &all.values)
        }
        (Some(MilElementsProto::Ints(all)), MilElement::Uint16) => {
            narrowed::<u16, _>(shape, &all.values)
        }
        (Some(MilElementsProto::Ints(all)), MilElement::Int8) => {
            narrowed::<i8, _>(shape, &all.values)
        }
        (Some(MilElementsProto::Ints(all)), MilElement::Uint8) => {
            narrowed::<u8, _>(shape, &all.values)
        }
        (Some(MilElementsProto::LongInts(all)), MilElement::Int64) => {
            tensor(shape, all.values.clone())
        }
        (Some(MilElementsProto::LongInts(all)), MilElement::Uint64) => {
            let unsigned = |&value: &i64| u64::from_ne_bytes(value.to_ne_bytes());
            tensor(shape, all.values.iter().map(unsigned).collect())
        }
        (Some(MilElementsProto::Bytes(all)), _) => from_bytes(&all.values, element, shape),
        // An empty message is an empty tensor of any type.
        (None, _) if shape.contains(&0) => Ok(Tensor::zeros(element.stored_as(), shape)?),
        (None, _) => wrong("nothing"),
        (Some(MilElementsProto::Floats(_)), _) => wrong("floats"),
        (Some(MilElementsProto::Doubles(_)), _) => wrong("doubles"),
        (Some(MilElementsProto::Bools(_)), _) => wrong("bools"),
        (Some(MilElementsProto::Strings(_)), _) => wrong("strings"),
        (Some(MilElementsProto::Ints(_)), _) => wrong("ints"),
        (Some(MilElementsProto::LongInts(_)), _) => wrong("longInts"),
    }
}

fn tensor<T: Number>(shape: &[usize], all: Vec<T>) -> Result<Tensor> {
    Ok(Tensor::from_vec(shape, all)?)
}

fn narrowed<T: Number + TryFrom<i32>, V>(shape: &[usize], all: &[V]) -> Result<Tensor>
where
    V: Copy + Into<i32>,
{
    let narrow = |&value: &V| {
        let value: i32 = value.into();
        T::try_from(value)
            .map_err(|_| CoreMlError::invalid(format!("{value} is beyond {}", T::DTYPE)))
    };
    tensor(shape, all.iter().map(narrow).collect::<Result<_>>()?)
}

fn from_bytes(bytes: &[u8], element: MilElement, shape: &[usize]) -> Result<Tensor> {
    let count = checked_elements(shape)?;
    let expected = count.saturating_mul(element.bits()).div_ceil(8);
    if element == MilElement::String || bytes.len() != expected {
        let text = format!("{element}{shape:?} takes {expected} bytes, found {}", bytes.len());
        return Err(CoreMlError::invalid(text));
    }
    let dtype = element.stored_as();
    match element.bits() {
        0..8 => Ok(Tensor::from_bytes(dtype, shape, &element.unpack(bytes, count))?),
        _ => Ok(Tensor::from_bytes(dtype, shape, bytes)?),
    }
}
