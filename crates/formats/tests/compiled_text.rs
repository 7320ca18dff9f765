//! The text and the description that Core ML's compiler writes of a program, made of the package's own messages.

use std::fmt::Write as _;

use galatea_formats::coreml::mil::MilElement;
use galatea_formats::coreml::proto::mil::{
    BindingKind, DimensionKind, ImmediateKind, MilBlockProto, MilDimensionProto, MilElementsProto,
    MilOperationProto, MilProgramProto, MilValueKindProto, MilValueProto, MilValueTypeProto,
    TypeKind,
};
use galatea_formats::coreml::{ColorOrder, FeatureShapes, FeatureType, ModelFeature};
use galatea_tensor::{DataType, f16};
use serde_json::{Value, json};

/// How a text is written: compilers differ with the set of operators.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextStyle {
    /// Scalars are `int32(1)`, not `tensor<int32, []>(1)`.
    pub(crate) short_scalars: bool,
    /// Several results are in parentheses.
    pub(crate) grouped_results: bool,
    /// Blocks stand before the attributes.
    pub(crate) blocks_first: bool,
}

/// The text of a program.
pub(crate) fn program(found: &MilProgramProto, style: TextStyle) -> String {
    let mut text =
        "program(1.3)\n[buildInfo = dict<string, string>({{\"coremlc-version\", \"3505.4.1\"}, \
                    {\"note\", \"a \\\"quoted\\\" \\\\ text\"}})]\n{\n"
            .to_owned();
    for (name, function) in &found.functions {
        let release = match function.opset.as_str() {
            "CoreML9" => "ios26".to_owned(),
            opset => format!("ios1{}", opset.strip_prefix("CoreML").unwrap()),
        };
        let inputs: Vec<String> = function
            .inputs
            .iter()
            .map(|input| {
                format!("{} {}", value_type(input.r#type.as_ref().unwrap(), style), input.name)
            })
            .collect();
        writeln!(text, "  func {name}<{release}>({})", inputs.join(", ")).unwrap();
        block(&mut text, &function.block_specializations[&function.opset], style);
        text.push_str(";\n");
    }
    text.push_str("}\n");
    text
}

fn block(text: &mut String, found: &MilBlockProto, style: TextStyle) {
    text.push_str(" {\n");
    for one in &found.operations {
        operation(text, one, style);
    }
    write!(text, "}} -> ({})", found.outputs.join(", ")).unwrap();
}

fn operation(text: &mut String, found: &MilOperationProto, style: TextStyle) {
    let outputs: Vec<String> = found
        .outputs
        .iter()
        .map(|output| {
            format!("{} {}", value_type(output.r#type.as_ref().unwrap(), style), output.name)
        })
        .collect();
    match outputs.as_slice() {
        [] => {}
        [only] => write!(text, "{only} = ").unwrap(),
        several if style.grouped_results => write!(text, "({}) = ", several.join(", ")).unwrap(),
        several => write!(text, "{} = ", several.join(", ")).unwrap(),
    }
    let inputs: Vec<String> = found
        .inputs
        .iter()
        .map(|(name, bound)| {
            let all: Vec<String> = bound
                .arguments
                .iter()
                .map(|one| match one.binding.as_ref().unwrap() {
                    BindingKind::Name(name) => name.clone(),
                    BindingKind::Value(found) => value(found, style),
                })
                .collect();
            match all.as_slice() {
                [only] => format!("{name} = {only}"),
                several => format!("{name} = ({})", several.join(", ")),
            }
        })
        .collect();
    write!(text, "{}({})", found.r#type, inputs.join(", ")).unwrap();
    if !style.blocks_first {
        attributes(text, found, style);
    }
    for (at, inner) in found.blocks.iter().enumerate() {
        if at > 0 && style.blocks_first {
            text.push(',');
        }
        let inputs: Vec<String> = inner
            .inputs
            .iter()
            .map(|input| {
                format!("{} {}", value_type(input.r#type.as_ref().unwrap(), style), input.name)
            })
            .collect();
        if !inputs.is_empty() {
            write!(text, " ({})", inputs.join(", ")).unwrap();
        }
        block(text, inner, style);
    }
    if style.blocks_first {
        attributes(text, found, style);
    }
    text.push_str(";\n");
}

fn attributes(text: &mut String, found: &MilOperationProto, style: TextStyle) {
    let all: Vec<String> = found
        .attributes
        .iter()
        .map(|(name, one)| format!("{name} = {}", value(one, style)))
        .collect();
    if !all.is_empty() {
        write!(text, "[{}]", all.join(", ")).unwrap();
    }
}

fn dimension(found: &MilDimensionProto) -> String {
    match found.kind.as_ref().unwrap() {
        DimensionKind::Constant(length) => length.size.to_string(),
        DimensionKind::Unknown(unknown) if unknown.variadic => "*?".to_owned(),
        DimensionKind::Unknown(_) => "?".to_owned(),
    }
}

fn value_type(found: &MilValueTypeProto, style: TextStyle) -> String {
    match found.kind.as_ref().unwrap() {
        TypeKind::Tensor(found) => {
            let element = MilElement::from_proto(found.data_type).unwrap();
            let lengths: Vec<String> = found.dimensions.iter().map(dimension).collect();
            match (lengths.is_empty() && found.rank == 0, style.short_scalars) {
                (true, true) => element.to_string(),
                (true, false) => format!("tensor<{element}, []>"),
                (false, _) if found.rank < 0 => format!("tensor<{element}, [*?]>"),
                (false, _) => format!("tensor<{element}, [{}]>", lengths.join(", ")),
            }
        }
        TypeKind::List(found) => {
            let item = value_type(found.r#type.as_ref().unwrap(), style);
            match &found.length {
                Some(length) => format!("list<{item}, {}>", dimension(length)),
                None => format!("list<{item}>"),
            }
        }
        TypeKind::Tuple(found) => {
            let items: Vec<String> = found.types.iter().map(|one| value_type(one, style)).collect();
            format!("tuple<{}>", items.join(", "))
        }
        TypeKind::Dictionary(found) => format!(
            "dict<{}, {}>",
            value_type(found.key_type.as_ref().unwrap(), style),
            value_type(found.value_type.as_ref().unwrap(), style)
        ),
        TypeKind::State(found) => {
            format!("state<{}>", value_type(found.wrapped_type.as_ref().unwrap(), style))
        }
    }
}

fn value(found: &MilValueProto, style: TextStyle) -> String {
    let stated = found.r#type.as_ref().unwrap();
    let written = value_type(stated, style);
    match found.value.as_ref().unwrap() {
        MilValueKindProto::BlobFile(blob) => {
            let (text, long) = match style.short_scalars {
                true => ("string", "uint64"),
                false => ("tensor<string, []>", "tensor<uint64, []>"),
            };
            format!(
                "{written}(BLOBFILE(path = {text}(\"{}\"), offset = {long}({})))",
                blob.file_name, blob.offset
            )
        }
        MilValueKindProto::Immediate(found) => match found.kind.as_ref().unwrap() {
            ImmediateKind::Tensor(found) => {
                let TypeKind::Tensor(tensor) = stated.kind.as_ref().unwrap() else {
                    panic!("elements of no tensor")
                };
                let element = MilElement::from_proto(tensor.data_type).unwrap();
                let lengths: Vec<usize> =
                    tensor.dimensions.iter().map(|one| dimension(one).parse().unwrap()).collect();
                let count = lengths.iter().product();
                let all = found
                    .value
                    .as_ref()
                    .map_or(Vec::new(), |found| elements(found, element, count));
                format!("{written}({})", nested(&all, &lengths))
            }
            ImmediateKind::List(found) => format!("{written}(({}))", values(&found.values, style)),
            ImmediateKind::Tuple(found) => format!("{written}(({}))", values(&found.values, style)),
            ImmediateKind::Dictionary(found) => {
                let pairs: Vec<String> = found
                    .values
                    .iter()
                    .map(|pair| {
                        let key = value(pair.key.as_ref().unwrap(), style);
                        format!("{{{key}, {}}}", value(pair.value.as_ref().unwrap(), style))
                    })
                    .collect();
                format!("{written}({{{}}})", pairs.join(", "))
            }
        },
    }
}

fn values(all: &[MilValueProto], style: TextStyle) -> String {
    all.iter().map(|one| value(one, style)).collect::<Vec<_>>().join(", ")
}

fn nested(all: &[String], lengths: &[usize]) -> String {
    match lengths {
        [] => all.first().cloned().unwrap_or_default(),
        [_] => format!("[{}]", all.join(", ")),
        [first, inner @ ..] => {
            let step = all.len() / (*first).max(1);
            let parts: Vec<String> =
                (0..*first).map(|at| nested(&all[at * step..(at + 1) * step], inner)).collect();
            format!("[{}]", parts.join(", "))
        }
    }
}

fn elements(found: &MilElementsProto, element: MilElement, count: usize) -> Vec<String> {
    fn all<T: ToString>(values: &[T]) -> Vec<String> {
        values.iter().map(T::to_string).collect()
    }
    match found {
        MilElementsProto::Floats(found) => {
            found.values.iter().map(|&one| hexadecimal(f64::from(one))).collect()
        }
        MilElementsProto::Doubles(found) => {
            found.values.iter().map(|&one| hexadecimal(one)).collect()
        }
        MilElementsProto::Ints(found) => all(&found.values),
        MilElementsProto::LongInts(found) => all(&found.values),
        MilElementsProto::Bools(found) => all(&found.values),
        MilElementsProto::Strings(found) => {
            let quoted = |one: &String| one.replace('\\', "\\\\").replace('"', "\\\"");
            found.values.iter().map(|one| format!("\"{}\"", quoted(one))).collect()
        }
        MilElementsProto::Bytes(found) if element.bits() < 8 => {
            of_bytes(&element.unpack(&found.values, count), element)
        }
        MilElementsProto::Bytes(found) => of_bytes(&found.values, element),
    }
}

fn of_bytes(bytes: &[u8], element: MilElement) -> Vec<String> {
    let pairs = bytes.chunks_exact(2).map(|pair| [pair[0], pair[1]]);
    match element {
        MilElement::Fp16 => {
            pairs.map(|pair| hexadecimal(f16::from_le_bytes(pair).to_f64())).collect()
        }
        MilElement::Int16 => pairs.map(|pair| i16::from_le_bytes(pair).to_string()).collect(),
        MilElement::Uint16 => pairs.map(|pair| u16::from_le_bytes(pair).to_string()).collect(),
        MilElement::Int8 | MilElement::Int4 => {
            bytes.iter().map(|&one| i8::from_le_bytes([one]).to_string()).collect()
        }
        MilElement::Int32 => bytes
            .chunks_exact(4)
            .map(|four| i32::from_le_bytes(four.try_into().unwrap()).to_string())
            .collect(),
        MilElement::Uint32 => bytes
            .chunks_exact(4)
            .map(|four| u32::from_le_bytes(four.try_into().unwrap()).to_string())
            .collect(),
        other if other.bits() <= 8 => bytes.iter().map(u8::to_string).collect(),
        other => panic!("bytes of {other}"),
    }
}

/// A number as C's `%a` writes it.
fn hexadecimal(value: f64) -> String {
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let bits = value.abs().to_bits();
    match value.abs() {
        found if found.is_nan() => return "nan".to_owned(),
        found if found.is_infinite() => return format!("{sign}inf"),
        0.0 => return format!("{sign}0x0p+0"),
        _ => {}
    }
    let exponent = i64::try_from(bits >> 52).unwrap() - 1023;
    let mantissa = format!("{:013x}", bits & ((1 << 52) - 1));
    match mantissa.trim_end_matches('0') {
        "" => format!("{sign}0x1p{exponent:+}"),
        digits => format!("{sign}0x1.{digits}p{exponent:+}"),
    }
}

/// The description of a function's features, as `metadata.json` has it.
pub(crate) fn metadata(
    specification: i32,
    inputs: &[ModelFeature],
    outputs: &[ModelFeature],
    states: &[ModelFeature],
) -> String {
    let all = |features: &[ModelFeature]| features.iter().map(feature).collect::<Vec<Value>>();
    let found = json!([{
        "metadataOutputVersion": "3.0",
        "specificationVersion": specification,
        "shortDescription": "what it is for",
        "author": "somebody",
        "userDefinedMetadata": {"com.github.apple.coremltools.version": "9.0"},
        "inputSchema": all(inputs),
        "outputSchema": all(outputs),
        "stateSchema": all(states),
    }]);
    found.to_string()
}

fn feature(found: &ModelFeature) -> Value {
    let optional = if found.optional { "1" } else { "0" };
    let mut written =
        json!({"name": found.name, "isOptional": optional, "shortDescription": found.description});
    let fields = match &found.kind {
        FeatureType::Array { dtype, shape, shapes, .. } => {
            let dtype = match dtype {
                DataType::Fp16 => "Float16",
                DataType::Fp32 => "Float32",
                DataType::Fp64 => "Double",
                DataType::Int32 => "Int32",
                _ => "Int8",
            };
            let mut fields =
                json!({"type": "MultiArray", "dataType": dtype, "shape": format!("{shape:?}")});
            match shapes {
                FeatureShapes::Fixed => {}
                FeatureShapes::Enumerated(all) => {
                    fields["enumeratedShapes"] = format!("{all:?}").into()
                }
                FeatureShapes::Range(all) => {
                    let high =
                        |high: Option<usize>| high.map_or(-1, |high| i64::try_from(high).unwrap());
                    let all: Vec<Value> =
                        all.iter().map(|one| json!([one.0, high(one.1)])).collect();
                    fields["shapeRange"] = Value::from(all).to_string().into();
                }
            }
            fields
        }
        FeatureType::Image { colors, size, .. } => {
            let colors = match colors {
                ColorOrder::Gray => "Grayscale",
                ColorOrder::GrayHalf => "GrayscaleFloat16",
                ColorOrder::Rgb => "RGB",
                ColorOrder::Bgr => "BGR",
            };
            json!({"type": "Image", "colorspace": colors, "height": size[0].to_string(), "width": size[1].to_string()})
        }
        FeatureType::Int64 => json!({"type": "Int64"}),
        FeatureType::Double => json!({"type": "Double"}),
        FeatureType::Text => json!({"type": "String"}),
        FeatureType::List => json!({"type": "Sequence"}),
        FeatureType::Dictionary { text_keys } => {
            json!({"type": "Dictionary", "keyType": if *text_keys { "String" } else { "Int64" }})
        }
    };
    for (name, value) in fields.as_object().unwrap() {
        written[name] = value.clone();
    }
    written
}
