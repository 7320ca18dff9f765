//! Programs to messages.

use std::collections::BTreeMap;

use bytes::Bytes;
use galatea_tensor::{ByteString, DataType, Tensor};

use super::{Argument, Block, Element, Function, Operation, Program, TensorType, Type, Value};
use crate::coreml::error::CoreMlError;
use crate::coreml::proto::mil::{self as proto, BindingKind, DimensionKind, Elements, TypeKind};

type Result<T> = std::result::Result<T, CoreMlError>;

/// Where large constants go: gives the offset that the program refers to.
pub(crate) type Sink<'s> = dyn FnMut(Element, &Tensor) -> Result<u64> + 's;

/// Constants of fewer elements stay in the program, as coremltools has it.
const SMALL: usize = 10;
/// The file that the offsets of a [`Sink`] are in.
const WEIGHTS: &str = "@model_path/weights/weight.bin";

/// Encodes a program.
///
/// # Errors
/// When a constant cannot be written.
pub(crate) fn program(program: &Program, sink: &mut Sink<'_>) -> Result<proto::Program> {
    let mut functions = BTreeMap::new();
    for (name, function) in &program.functions {
        functions.insert(name.clone(), encode_function(function, sink)?);
    }
    Ok(proto::Program { version: 1, functions, ..proto::Program::default() })
}

fn encode_function(function: &Function, sink: &mut Sink<'_>) -> Result<proto::Function> {
    let block = encode_block(&function.block, &function.opset, sink)?;
    Ok(proto::Function {
        inputs: function.inputs.iter().map(named_type).collect(),
        opset: function.opset.clone(),
        block_specializations: BTreeMap::from([(function.opset.clone(), block)]),
        ..proto::Function::default()
    })
}

fn encode_block(block: &Block, opset: &str, sink: &mut Sink<'_>) -> Result<proto::Block> {
    let operations = block.operations.iter().map(|operation| one(operation, opset, sink));
    Ok(proto::Block {
        operations: operations.collect::<Result<_>>()?,
        inputs: block.inputs.iter().map(named_type).collect(),
        outputs: block.outputs.clone(),
        ..proto::Block::default()
    })
}

fn one(operation: &Operation, opset: &str, sink: &mut Sink<'_>) -> Result<proto::Operation> {
    let mut inputs = BTreeMap::new();
    for (name, arguments) in &operation.inputs {
        let mut bindings = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let binding = match argument {
                Argument::Name(name) => BindingKind::Name(name.clone()),
                Argument::Value(value) => BindingKind::Value(constant(value, sink)?),
            };
            bindings.push(proto::Binding { binding: Some(binding) });
        }
        inputs.insert(name.clone(), proto::Argument { arguments: bindings });
    }
    let mut attributes = BTreeMap::new();
    for (name, value) in &operation.attributes {
        attributes.insert(name.clone(), constant(value, sink)?);
    }
    let blocks = operation.blocks.iter().map(|block| encode_block(block, opset, sink));
    Ok(proto::Operation {
        r#type: operation.operator.clone(),
        inputs,
        outputs: operation.outputs.iter().map(named_type).collect(),
        blocks: blocks.collect::<Result<_>>()?,
        attributes,
    })
}

fn named_type((name, stated): &(String, Type)) -> proto::NamedValueType {
    proto::NamedValueType { name: name.clone(), r#type: Some(value_type(stated)) }
}

fn value_type(stated: &Type) -> proto::ValueType {
    let boxed = |stated: &Type| Some(Box::new(value_type(stated)));
    let kind = match stated {
        Type::Tensor(found) => TypeKind::Tensor(tensor_type(found)),
        Type::List(item, length) => TypeKind::List(Box::new(proto::ListType {
            r#type: boxed(item),
            length: Some(dimension(*length)),
        })),
        Type::Tuple(items) => {
            TypeKind::Tuple(proto::TupleType { types: items.iter().map(value_type).collect() })
        }
        Type::Dictionary(of) => TypeKind::Dictionary(Box::new(proto::DictionaryType {
            key_type: boxed(&of.0),
            value_type: boxed(&of.1),
        })),
        Type::State(found) => TypeKind::State(Box::new(proto::StateType {
            wrapped_type: boxed(&Type::Tensor(found.clone())),
        })),
    };
    proto::ValueType { kind: Some(kind) }
}

fn tensor_type(found: &TensorType) -> proto::TensorType {
    let data_type = i32::from(found.element.proto());
    let Some(shape) = &found.shape else {
        return proto::TensorType { data_type, rank: -1, ..proto::TensorType::default() };
    };
    proto::TensorType {
        data_type,
        rank: i64::try_from(shape.len()).unwrap_or(i64::MAX),
        dimensions: shape.iter().copied().map(dimension).collect(),
        ..proto::TensorType::default()
    }
}

fn dimension(length: Option<usize>) -> proto::Dimension {
    let kind = match length {
        Some(length) => DimensionKind::Constant(proto::ConstantDimension {
            size: u64::try_from(length).unwrap_or(u64::MAX),
        }),
        None => DimensionKind::Unknown(proto::UnknownDimension { variadic: false }),
    };
    proto::Dimension { kind: Some(kind) }
}

fn constant(value: &Value, sink: &mut Sink<'_>) -> Result<proto::Value> {
    let kind = match value {
        Value::Tensor(element, tensor) => {
            let stated = Type::tensor(*element, tensor.shape());
            let value = match goes_to_file(*element, tensor) {
                true => {
                    let offset = sink(*element, tensor)?;
                    let file_name = WEIGHTS.to_owned();
                    proto::ValueKind::BlobFile(proto::BlobFileValue { file_name, offset })
                }
                false => {
                    let found = elements(*element, tensor)?;
                    let found = proto::TensorValue { value: Some(found) };
                    immediate(proto::ImmediateKind::Tensor(found))
                }
            };
            let r#type = Some(value_type(&stated));
            return Ok(proto::Value { r#type, value: Some(value), ..proto::Value::default() });
        }
        Value::List(items) => proto::ImmediateKind::List(values(items, sink)?),
        Value::Tuple(items) => proto::ImmediateKind::Tuple(values(items, sink)?),
        Value::Dictionary(pairs) => {
            let mut all = Vec::with_capacity(pairs.len());
            for (key, value) in pairs {
                let (key, value) = (constant(key, sink)?, constant(value, sink)?);
                all.push(proto::KeyValuePair { key: Some(key), value: Some(value) });
            }
            proto::ImmediateKind::Dictionary(proto::DictionaryValue { values: all })
        }
    };
    let r#type = Some(value_type(&type_of(value)));
    Ok(proto::Value { r#type, value: Some(immediate(kind)), ..proto::Value::default() })
}

fn immediate(kind: proto::ImmediateKind) -> proto::ValueKind {
    proto::ValueKind::Immediate(proto::ImmediateValue { kind: Some(kind) })
}

fn values(items: &[Value], sink: &mut Sink<'_>) -> Result<proto::Values> {
    let values = items.iter().map(|item| constant(item, sink)).collect::<Result<_>>()?;
    Ok(proto::Values { values })
}

/// The type of a constant.
fn type_of(value: &Value) -> Type {
    match value {
        Value::Tensor(element, tensor) => Type::tensor(*element, tensor.shape()),
        Value::List(items) => {
            let item = items.first().map_or(Type::tensor(Element::String, &[]), type_of);
            Type::List(Box::new(item), Some(items.len()))
        }
        Value::Tuple(items) => Type::Tuple(items.iter().map(type_of).collect()),
        Value::Dictionary(pairs) => {
            let none = || Type::tensor(Element::String, &[]);
            let first = pairs.first();
            let key = first.map_or_else(none, |(key, _)| type_of(key));
            let value = first.map_or_else(none, |(_, value)| type_of(value));
            Type::Dictionary(Box::new((key, value)))
        }
    }
}

/// Whether a constant is large, and of a type that files of weights have.
fn goes_to_file(element: Element, tensor: &Tensor) -> bool {
    let known = crate::coreml::weights::TYPES.iter().any(|(_, known)| *known == element);
    known && tensor.elements() >= SMALL
}

/// Elements in the form that the schema assigns to their type.
fn elements(element: Element, tensor: &Tensor) -> Result<Elements> {
    let wide = |tensor: &Tensor| -> Result<Vec<i32>> {
        let wide = galatea_graph::converted(tensor, DataType::Int32)?;
        Ok(wide.to_vec::<i32>()?)
    };
    Ok(match element {
        Element::Bool => Elements::Bools(proto::RepeatedBools { values: tensor.to_vec()? }),
        Element::Fp32 => Elements::Floats(proto::RepeatedFloats { values: tensor.to_vec()? }),
        Element::Fp64 => Elements::Doubles(proto::RepeatedDoubles { values: tensor.to_vec()? }),
        Element::Int32 => Elements::Ints(proto::RepeatedInts { values: tensor.to_vec()? }),
        Element::Int16 | Element::Uint16 => {
            Elements::Ints(proto::RepeatedInts { values: wide(tensor)? })
        }
        Element::Int64 => Elements::LongInts(proto::RepeatedLongInts { values: tensor.to_vec()? }),
        Element::Uint64 => {
            let signed = |value: u64| i64::from_ne_bytes(value.to_ne_bytes());
            let values = tensor.to_vec::<u64>()?.into_iter().map(signed).collect();
            Elements::LongInts(proto::RepeatedLongInts { values })
        }
        Element::String => {
            let text = |text: &ByteString| {
                text.as_str().map(str::to_owned).ok_or_else(|| {
                    CoreMlError::invalid(format!("the text {text:?} is not valid UTF-8"))
                })
            };
            let all = tensor.to_vec::<ByteString>()?;
            let values = all.iter().map(text).collect::<Result<_>>()?;
            Elements::Strings(proto::RepeatedStrings { values })
        }
        _ => Elements::Bytes(proto::RepeatedBytes { values: Bytes::from(raw(element, tensor)?) }),
    })
}

/// Elements as they lie in files.
///
/// # Errors
/// When they have no memory.
pub(crate) fn raw(element: Element, tensor: &Tensor) -> Result<Vec<u8>> {
    let whole = tensor.contiguous()?;
    let bytes = whole.as_bytes()?;
    Ok(if element.bits() < 8 { element.pack(bytes) } else { bytes.to_vec() })
}
