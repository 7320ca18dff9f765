//! Programs to messages.

use bytes::Bytes;
use galatea_tensor::{ByteString, DataType, OrderedMap, Tensor};

use super::{
    MilArgument, MilBlock, MilElement, MilFunction, MilOperation, MilProgram, MilTensorType,
    MilType, MilValue,
};
use crate::coreml::error::CoreMlError;
use crate::coreml::proto::mil::{
    self as proto, BindingKind, DimensionKind, MilElementsProto, TypeKind,
};

type Result<T> = std::result::Result<T, CoreMlError>;

/// Where large constants go: gives the offset that the program refers to.
pub(crate) type ConstantSink<'s> = dyn FnMut(MilElement, &Tensor) -> Result<u64> + 's;

/// Constants of fewer elements stay in the program, as coremltools has it.
const SMALL: usize = 10;
/// The file that the offsets of a [`ConstantSink`] are in.
const WEIGHTS: &str = "@model_path/weights/weight.bin";

/// Encodes a program.
///
/// # Errors
/// Fails when a constant cannot be written.
pub(crate) fn program(
    program: &MilProgram,
    sink: &mut ConstantSink<'_>,
) -> Result<proto::MilProgramProto> {
    let mut functions = OrderedMap::new();
    for (name, function) in &program.functions {
        functions.insert(name.clone(), encode_function(function, sink)?);
    }
    Ok(proto::MilProgramProto { version: 1, functions, ..proto::MilProgramProto::default() })
}

fn encode_function(
    function: &MilFunction,
    sink: &mut ConstantSink<'_>,
) -> Result<proto::MilFunctionProto> {
    let block = encode_block(&function.block, &function.opset, sink)?;
    Ok(proto::MilFunctionProto {
        inputs: function.inputs.iter().map(|(name, stated)| named_type(name, stated)).collect(),
        opset: function.opset.clone(),
        block_specializations: OrderedMap::from([(function.opset.clone(), block)]),
        ..proto::MilFunctionProto::default()
    })
}

fn encode_block(
    block: &MilBlock,
    opset: &str,
    sink: &mut ConstantSink<'_>,
) -> Result<proto::MilBlockProto> {
    let operations = block.operations.iter().map(|operation| one(operation, opset, sink));
    Ok(proto::MilBlockProto {
        operations: operations.collect::<Result<_>>()?,
        inputs: block.inputs.iter().map(|(name, stated)| named_type(name, stated)).collect(),
        outputs: block.outputs.clone(),
        ..proto::MilBlockProto::default()
    })
}

fn one(
    operation: &MilOperation,
    opset: &str,
    sink: &mut ConstantSink<'_>,
) -> Result<proto::MilOperationProto> {
    let mut inputs = OrderedMap::new();
    for (name, arguments) in &operation.inputs {
        let mut bindings = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let binding = match argument {
                MilArgument::Name(name) => BindingKind::Name(name.clone()),
                MilArgument::Value(value) => BindingKind::Value(constant(value, sink)?),
            };
            bindings.push(proto::MilBindingProto { binding: Some(binding) });
        }
        inputs.insert(name.clone(), proto::MilArgumentProto { arguments: bindings });
    }
    let mut attributes = OrderedMap::new();
    for (name, value) in &operation.attributes {
        attributes.insert(name.clone(), constant(value, sink)?);
    }
    let blocks = operation.blocks.iter().map(|block| encode_block(block, opset, sink));
    Ok(proto::MilOperationProto {
        r#type: operation.operator.clone(),
        inputs,
        outputs: operation.outputs.iter().map(|(name, stated)| named_type(name, stated)).collect(),
        blocks: blocks.collect::<Result<_>>()?,
        attributes,
    })
}

fn named_type(name: &str, stated: &MilType) -> proto::NamedValueType {
    proto::NamedValueType { name: name.to_owned(), r#type: Some(value_type(stated)) }
}

fn value_type(stated: &MilType) -> proto::MilValueTypeProto {
    let boxed = |stated: &MilType| Some(Box::new(value_type(stated)));
    let kind = match stated {
        MilType::Tensor(found) => TypeKind::Tensor(tensor_type(found)),
        MilType::List(item, length) => TypeKind::List(Box::new(proto::ListType {
            r#type: boxed(item),
            length: Some(dimension(*length)),
        })),
        MilType::Tuple(items) => {
            TypeKind::Tuple(proto::TupleType { types: items.iter().map(value_type).collect() })
        }
        MilType::Dictionary(of) => TypeKind::Dictionary(Box::new(proto::DictionaryType {
            key_type: boxed(&of.0),
            value_type: boxed(&of.1),
        })),
        MilType::State(found) => TypeKind::State(Box::new(proto::StateType {
            wrapped_type: boxed(&MilType::Tensor(found.clone())),
        })),
    };
    proto::MilValueTypeProto { kind: Some(kind) }
}

fn tensor_type(found: &MilTensorType) -> proto::MilTensorTypeProto {
    let data_type = i32::from(found.element.proto());
    let Some(shape) = &found.shape else {
        return proto::MilTensorTypeProto {
            data_type,
            rank: -1,
            ..proto::MilTensorTypeProto::default()
        };
    };
    proto::MilTensorTypeProto {
        data_type,
        rank: i64::try_from(shape.len()).unwrap_or(i64::MAX),
        dimensions: shape.iter().copied().map(dimension).collect(),
        ..proto::MilTensorTypeProto::default()
    }
}

fn dimension(length: Option<usize>) -> proto::MilDimensionProto {
    let kind = match length {
        Some(length) => DimensionKind::Constant(proto::ConstantDimension {
            size: u64::try_from(length).unwrap_or(u64::MAX),
        }),
        None => DimensionKind::Unknown(proto::UnknownDimension { variadic: false }),
    };
    proto::MilDimensionProto { kind: Some(kind) }
}

fn constant(value: &MilValue, sink: &mut ConstantSink<'_>) -> Result<proto::MilValueProto> {
    let kind = match value {
        MilValue::Tensor(element, tensor) => {
            let stated = MilType::tensor(*element, tensor.shape());
            let value = match goes_to_file(*element, tensor) {
                true => {
                    let offset = sink(*element, tensor)?;
                    let file_name = WEIGHTS.to_owned();
                    proto::MilValueKindProto::BlobFile(proto::BlobFileValue { file_name, offset })
                }
                false => {
                    let found = elements(*element, tensor)?;
                    let found = proto::TensorValue { value: Some(found) };
                    immediate(proto::ImmediateKind::Tensor(found))
                }
            };
            let r#type = Some(value_type(&stated));
            return Ok(proto::MilValueProto {
                r#type,
                value: Some(value),
                ..proto::MilValueProto::default()
            });
        }
        MilValue::List(items) => proto::ImmediateKind::List(values(items, sink)?),
        MilValue::Tuple(items) => proto::ImmediateKind::Tuple(values(items, sink)?),
        MilValue::Dictionary(pairs) => {
            let mut all = Vec::with_capacity(pairs.len());
            for (key, value) in pairs {
                let key = constant(key, sink)?;
                let value = constant(value, sink)?;
                all.push(proto::KeyValuePair { key: Some(key), value: Some(value) });
            }
            proto::ImmediateKind::Dictionary(proto::DictionaryValue { values: all })
        }
    };
    let r#type = Some(value_type(&type_of(value)));
    Ok(proto::MilValueProto {
        r#type,
        value: Some(immediate(kind)),
        ..proto::MilValueProto::default()
    })
}

fn immediate(kind: proto::ImmediateKind) -> proto::MilValueKindProto {
    proto::MilValueKindProto::Immediate(proto::ImmediateValue { kind: Some(kind) })
}

fn values(items: &[MilValue], sink: &mut ConstantSink<'_>) -> Result<proto::MilValuesProto> {
    let values = items.iter().map(|item| constant(item, sink)).collect::<Result<_>>()?;
    Ok(proto::MilValuesProto { values })
}

/// The type of a constant.
fn type_of(value: &MilValue) -> MilType {
    match value {
        MilValue::Tensor(element, tensor) => MilType::tensor(*element, tensor.shape()),
        MilValue::List(items) => {
            let item = items.first().map_or(MilType::tensor(MilElement::String, &[]), type_of);
            MilType::List(Box::new(item), Some(items.len()))
        }
        MilValue::Tuple(items) => MilType::Tuple(items.iter().map(type_of).collect()),
        MilValue::Dictionary(pairs) => {
            let none = || MilType::tensor(MilElement::String, &[]);
            let first = pairs.first();
            let key = first.map_or_else(none, |(key, _)| type_of(key));
            let value = first.map_or_else(none, |(_, value)| type_of(value));
            MilType::Dictionary(Box::new((key, value)))
        }
    }
}

/// Returns whether a constant is large, and of a type that files of weights have.
fn goes_to_file(element: MilElement, tensor: &Tensor) -> bool {
    let known = crate::coreml::weights::TYPES.iter().any(|(_, known)| *known == element);
    known && tensor.elements() >= SMALL
}

/// Elements in the form that the schema assigns to their type.
fn elements(element: MilElement, tensor: &Tensor) -> Result<MilElementsProto> {
    let wide = |tensor: &Tensor| -> Result<Vec<i32>> {
        let wide = galatea_graph::converted(tensor, DataType::Int32)?;
        Ok(wide.to_vec::<i32>()?)
    };
    Ok(match element {
        MilElement::Bool => {
            MilElementsProto::Bools(proto::RepeatedBools { values: tensor.to_vec()? })
        }
        MilElement::Fp32 => {
            MilElementsProto::Floats(proto::RepeatedFloats { values: tensor.to_vec()? })
        }
        MilElement::Fp64 => {
            MilElementsProto::Doubles(proto::RepeatedDoubles { values: tensor.to_vec()? })
        }
        MilElement::Int32 => {
            MilElementsProto::Ints(proto::RepeatedInts { values: tensor.to_vec()? })
        }
        MilElement::Int16 | MilElement::Uint16 => {
            MilElementsProto::Ints(proto::RepeatedInts { values: wide(tensor)? })
        }
        MilElement::Int64 => {
            MilElementsProto::LongInts(proto::RepeatedLongInts { values: tensor.to_vec()? })
        }
        MilElement::Uint64 => {
            let signed = |value: u64| i64::from_ne_bytes(value.to_ne_bytes());
            let values = tensor.to_vec::<u64>()?.into_iter().map(signed).collect();
            MilElementsProto::LongInts(proto::RepeatedLongInts { values })
        }
        MilElement::String => {
            let text = |text: &ByteString| {
                text.as_str().map(str::to_owned).ok_or_else(|| {
                    CoreMlError::invalid(format!("the text {text:?} is not valid UTF-8"))
                })
            };
            let all = tensor.to_vec::<ByteString>()?;
            let values = all.iter().map(text).collect::<Result<_>>()?;
            MilElementsProto::Strings(proto::RepeatedStrings { values })
        }
        _ => MilElementsProto::Bytes(proto::RepeatedBytes {
            values: Bytes::from(raw(element, tensor)?),
        }),
    })
}

/// Elements as they lie in files.
///
/// # Errors
/// Fails when they have no memory.
pub(crate) fn raw(element: MilElement, tensor: &Tensor) -> Result<Vec<u8>> {
    let whole = tensor.contiguous()?;
    let bytes = whole.as_bytes()?;
    Ok(if element.bits() < 8 { element.pack(bytes) } else { bytes.to_vec() })
}
