//! The description of a compiled folder: `metadata.json`, or what the program's functions say of themselves.

use galatea_tensor::OrderedMap;

use galatea_tensor::DataType;
use serde_json::Value;

use super::CompiledResult;
use super::mil::{MilBlock, MilFunction, MilProgram, MilTensorType, MilType};
use crate::coreml::CoreMlModelInfo;
use crate::coreml::error::CoreMlError;
use crate::coreml::feature::{ColorOrder, FeatureShapes, FeatureType, ModelFeature};
use crate::coreml::program::{DescribedFunction, DescribedProgram};

/// Content of a description.
pub(super) struct CompiledDescription {
    pub(super) specification: Option<i32>,
    pub(super) program: DescribedProgram,
    pub(super) info: CoreMlModelInfo,
}

/// Types of elements by their names.
const ELEMENTS: [(&str, DataType); 5] = [
    ("Float32", DataType::Fp32),
    ("Float16", DataType::Fp16),
    ("Double", DataType::Fp64),
    ("Int32", DataType::Int32),
    ("Int8", DataType::Int8),
];

/// Reads `metadata.json`: a list of one object.
///
/// # Errors
/// Fails when the text is no JSON, or a feature's type is not known.
pub(super) fn read(text: &str, program: &MilProgram) -> CompiledResult<CompiledDescription> {
    let all: Value = serde_json::from_str(text)
        .map_err(|error| CoreMlError::invalid(format!("is no JSON: {error}")))?;
    let Some(found) = all.get(0).filter(|found| found.is_object()) else {
        return Err(CoreMlError::invalid("is no list with the description of a model"));
    };
    let several = found.get("functions").and_then(Value::as_array).filter(|all| !all.is_empty());
    let functions = match several {
        None => vec![function("main", found)?],
        Some(all) => {
            let each = all.iter().map(|one| function(&word(one, "name"), one));
            each.collect::<CompiledResult<_>>()?
        }
    };
    let mut described =
        DescribedProgram { functions, default_function: word(found, "defaultFunctionName") };
    // A description that names none is one of the program as it is.
    if described.functions.iter().all(|one| one.inputs.is_empty() && one.outputs.is_empty()) {
        described = of_signatures(program).program;
    }
    Ok(CompiledDescription {
        specification: number(found, "specificationVersion")
            .and_then(|found| i32::try_from(found).ok()),
        program: described,
        info: info(found),
    })
}

/// Description of a program by its functions alone: arrays of the shapes that it takes and gives.
pub(super) fn of_signatures(program: &MilProgram) -> CompiledDescription {
    let functions = program.functions.iter().map(|(name, function)| signature(name, function));
    let default_function = match program.functions.contains_key("main") {
        true => "main".to_owned(),
        false => String::new(),
    };
    let program = DescribedProgram { functions: functions.collect(), default_function };
    CompiledDescription { specification: None, program, info: CoreMlModelInfo::default() }
}

fn signature(name: &str, function: &MilFunction) -> DescribedFunction {
    let mut described = DescribedFunction { name: name.to_owned(), ..DescribedFunction::default() };
    for (name, stated) in &function.inputs {
        match stated {
            MilType::State(held) => described.states.push(array_feature(name, held)),
            MilType::Tensor(found) => described.inputs.push(array_feature(name, found)),
            _ => {}
        }
    }
    let types = types_of(&function.block);
    for name in &function.block.outputs {
        match types.get(name.as_str()) {
            Some(MilType::Tensor(found)) => described.outputs.push(output(name, found)),
            _ => described.outputs.push(feature(name, FeatureType::Dictionary { text_keys: true })),
        }
    }
    described
}

/// An output of a tensor: a text where its elements are, as the label of a classifier is.
fn output(name: &str, found: &MilTensorType) -> ModelFeature {
    match found.element.stored_as() {
        DataType::Bytes => feature(name, FeatureType::Text),
        _ => array_feature(name, found),
    }
}

fn types_of(block: &MilBlock) -> OrderedMap<&str, &MilType> {
    let all = block.operations.iter().flat_map(|operation| &operation.outputs);
    all.map(|(name, stated)| (name.as_str(), stated)).collect()
}

fn feature(name: &str, kind: FeatureType) -> ModelFeature {
    ModelFeature { name: name.to_owned(), description: String::new(), kind, optional: false }
}

fn array_feature(name: &str, found: &MilTensorType) -> ModelFeature {
    let lengths = found.shape.clone().unwrap_or_default();
    let known: Option<Vec<usize>> = lengths.iter().copied().collect();
    let shapes = match &known {
        Some(_) => FeatureShapes::Fixed,
        None => FeatureShapes::Range(
            lengths.iter().map(|length| length.map_or((1, None), |len| (len, Some(len)))).collect(),
        ),
    };
    let shape = lengths.iter().map(|length| length.unwrap_or(1)).collect();
    let dtype = found.element.stored_as();
    feature(name, FeatureType::Array { dtype, shape, shapes, default: None })
}

fn function(name: &str, found: &Value) -> CompiledResult<DescribedFunction> {
    let features = |schema: &str| -> CompiledResult<Vec<ModelFeature>> {
        let all = found.get(schema).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let each = all.iter().map(|one| {
            described(one).map_err(|error| error.at(format!("{schema}: '{}'", word(one, "name"))))
        });
        each.collect()
    };
    let outputs = features("outputSchema")?;
    let named = |wanted: fn(&FeatureType) -> bool| {
        let found = outputs.iter().find(|one| wanted(&one.kind));
        found.map(|one| one.name.clone()).unwrap_or_default()
    };
    Ok(DescribedFunction {
        name: name.to_owned(),
        predicted: named(|kind| matches!(kind, FeatureType::Text | FeatureType::Int64)),
        probabilities: named(|kind| matches!(kind, FeatureType::Dictionary { .. })),
        inputs: features("inputSchema")?,
        states: features("stateSchema")?,
        outputs,
    })
}

fn described(found: &Value) -> CompiledResult<ModelFeature> {
    let kind = match word(found, "type").as_str() {
        "MultiArray" | "State" => array(found)?,
        "Image" => image(found)?,
        "Int64" => FeatureType::Int64,
        "Double" => FeatureType::Double,
        "String" => FeatureType::Text,
        "Sequence" => FeatureType::List,
        "Dictionary" => FeatureType::Dictionary { text_keys: word(found, "keyType") == "String" },
        other => {
            let text = format!(
                "its type is '{other}', expected MultiArray, State, Image, Int64, Double, String, Sequence or Dictionary"
            );
            return Err(CoreMlError::unsupported(text));
        }
    };
    Ok(ModelFeature {
        name: word(found, "name"),
        description: word(found, "shortDescription"),
        kind,
        optional: word(found, "isOptional") == "1",
    })
}

fn array(found: &Value) -> CompiledResult<FeatureType> {
    let stated = word(found, "dataType");
    let Some((_, dtype)) = ELEMENTS.into_iter().find(|(name, _)| *name == stated) else {
        let text =
            format!("its dataType is '{stated}', expected Float32, Float16, Double, Int32 or Int8");
        return Err(CoreMlError::unsupported(text));
    };
    let shape = list(found, "shape")?.unwrap_or_default();
    let shape = lengths(&shape, "shape")?;
    let shapes = match (list(found, "enumeratedShapes")?, list(found, "shapeRange")?) {
        (Some(all), _) => FeatureShapes::Enumerated(
            all.iter()
                .map(|one| lengths(one.as_array().map_or(&[], Vec::as_slice), "enumeratedShapes"))
                .collect::<CompiledResult<_>>()?,
        ),
        (None, Some(all)) => FeatureShapes::Range(
            all.iter().map(|one| bounds(one, "shapeRange")).collect::<CompiledResult<_>>()?,
        ),
        (None, None) => FeatureShapes::Fixed,
    };
    Ok(FeatureType::Array { dtype, shape, shapes, default: None })
}

fn image(found: &Value) -> CompiledResult<FeatureType> {
    let colors = match word(found, "colorspace").to_uppercase().as_str() {
        "RGB" => ColorOrder::Rgb,
        "BGR" => ColorOrder::Bgr,
        "GRAYSCALE" => ColorOrder::Gray,
        "GRAYSCALEFLOAT16" | "GRAYSCALE16HALF" => ColorOrder::GrayHalf,
        "" if word(found, "isColor") == "0" => ColorOrder::Gray,
        "" => ColorOrder::Rgb,
        other => {
            let text = format!("its colorspace is '{other}', expected RGB, BGR or Grayscale");
            return Err(CoreMlError::unsupported(text));
        }
    };
    let length = |name: &str| {
        let given = number(found, name).and_then(|length| usize::try_from(length).ok());
        given.ok_or_else(|| CoreMlError::invalid(format!("it has no {name}")))
    };
    let ranges = ["heightRange", "widthRange"].map(|name| list(found, name));
    let sizes = match ranges {
        [Ok(Some(height)), Ok(Some(width))] => FeatureShapes::Range(vec![
            bounds(&Value::Array(height), "heightRange")?,
            bounds(&Value::Array(width), "widthRange")?,
        ]),
        _ => match list(found, "enumeratedSizes")? {
            Some(all) => FeatureShapes::Enumerated(
                all.iter()
                    .map(|one| {
                        lengths(one.as_array().map_or(&[], Vec::as_slice), "enumeratedSizes")
                    })
                    .collect::<CompiledResult<_>>()?,
            ),
            None => FeatureShapes::Fixed,
        },
    };
    Ok(FeatureType::Image { colors, size: [length("height")?, length("width")?], sizes })
}

/// A field that is a text.
fn word(found: &Value, name: &str) -> String {
    found.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// A field that is an integer, written as a number or as a text.
fn number(found: &Value, name: &str) -> Option<i64> {
    let field = found.get(name)?;
    field.as_i64().or_else(|| field.as_str()?.trim().parse().ok())
}

/// A field that is a list, mostly written as a text: `"[1, 3]"`.
fn list(found: &Value, name: &str) -> CompiledResult<Option<Vec<Value>>> {
    match found.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(all)) => Ok(Some(all.clone())),
        Some(Value::String(text)) if text.trim().is_empty() => Ok(None),
        Some(Value::String(text)) => serde_json::from_str(text)
            .map(Some)
            .map_err(|error| CoreMlError::invalid(format!("{name} '{text}' is no list: {error}"))),
        Some(other) => Err(CoreMlError::invalid(format!("{name} is {other}, expected a list"))),
    }
}

fn lengths(all: &[Value], name: &str) -> CompiledResult<Vec<usize>> {
    let length = |found: &Value| {
        let length = found.as_u64().and_then(|length| usize::try_from(length).ok());
        length.ok_or_else(|| CoreMlError::invalid(format!("{found} in {name} is no length")))
    };
    all.iter().map(length).collect()
}

/// Two lengths; a second one that is negative is no upper bound.
fn bounds(found: &Value, name: &str) -> CompiledResult<(usize, Option<usize>)> {
    let wrong = || CoreMlError::invalid(format!("{found} in {name} is no pair of lengths"));
    let Some([low, high]) = found.as_array().map(Vec::as_slice) else { return Err(wrong()) };
    let low = low.as_u64().and_then(|low| usize::try_from(low).ok()).ok_or_else(wrong)?;
    let high = high.as_i64().ok_or_else(wrong)?;
    Ok((low, usize::try_from(high).ok()))
}

fn info(found: &Value) -> CoreMlModelInfo {
    let own = found.get("userDefinedMetadata").and_then(Value::as_object);
    let texts = own.into_iter().flatten();
    let texts = texts.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
    CoreMlModelInfo {
        description: word(found, "shortDescription"),
        version: word(found, "version"),
        author: word(found, "author"),
        license: word(found, "license"),
        metadata: texts.collect(),
    }
}
