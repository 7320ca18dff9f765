//! ML programs: their functions as graphs, beside what the model's description says of them.

use galatea_graph::Graph;
use galatea_tensor::{DataType, OrderedMap};

use super::error::CoreMlError;
use super::feature::{FeatureType, ModelFeature};
use super::mil::{self, MilArgument, MilProgram, MilValue};
use super::proto::{FeatureDescription, FunctionDescription, ModelDescription};
use super::{ClassifierClasses, CoreMlFunction, import};

/// Functions of a model as its description has them.
#[derive(Debug, Default)]
pub(super) struct DescribedProgram {
    /// The functions.
    pub(super) functions: Vec<DescribedFunction>,
    /// The one that is run where none is named; empty for the first.
    pub(super) default_function: String,
}

/// Description of one function.
#[derive(Debug, Default)]
pub(super) struct DescribedFunction {
    pub(super) name: String,
    pub(super) inputs: Vec<ModelFeature>,
    pub(super) outputs: Vec<ModelFeature>,
    pub(super) states: Vec<ModelFeature>,
    /// The output that is a classifier's label.
    pub(super) predicted: String,
    /// The output with the probabilities of all labels.
    pub(super) probabilities: String,
}

/// The functions of a program, and the position of the default one.
///
/// # Errors
/// Fails when program and description differ, or one of them says what is not known.
pub(super) fn functions(
    mut program: MilProgram,
    specification: i32,
    description: DescribedProgram,
) -> Result<(Vec<CoreMlFunction>, usize), CoreMlError> {
    let mut functions = Vec::with_capacity(description.functions.len());
    for described in description.functions {
        let place = format!("function '{}'", described.name);
        let Some(found) = program.functions.remove(&described.name) else {
            let known: Vec<&str> = program.functions.keys().map(String::as_str).collect();
            let text = format!("the program has no such function, only {}", known.join(", "));
            return Err(CoreMlError::invalid(text).at(place));
        };
        let made = one(described, &found, specification);
        functions.push(made.map_err(|error| error.at(place))?);
    }
    let wanted = &description.default_function;
    let default = match wanted.is_empty() {
        true => Some(0),
        false => functions.iter().position(|function| function.name == *wanted),
    };
    let default = default.ok_or_else(|| {
        CoreMlError::invalid(format!("the default function '{wanted}' is not described"))
    })?;
    Ok((functions, default))
}

/// Reads a description.
///
/// # Errors
/// Fails when a feature has no type, or says what Core ML does not allow.
pub(super) fn described(description: &ModelDescription) -> Result<DescribedProgram, CoreMlError> {
    let features = |all: &[FeatureDescription]| {
        all.iter().map(ModelFeature::read).collect::<Result<Vec<_>, CoreMlError>>()
    };
    let main = || {
        Ok(DescribedFunction {
            name: "main".to_owned(),
            inputs: features(&description.input)?,
            outputs: features(&description.output)?,
            states: features(&description.state)?,
            predicted: description.predicted_feature_name.clone(),
            probabilities: description.predicted_probabilities_name.clone(),
        })
    };
    let read = |found: &FunctionDescription| {
        Ok(DescribedFunction {
            name: found.name.clone(),
            inputs: features(&found.input)?,
            outputs: features(&found.output)?,
            states: features(&found.state)?,
            predicted: found.predicted_feature_name.clone(),
            probabilities: found.predicted_probabilities_name.clone(),
        })
    };
    let place = |found: &FunctionDescription| format!("function '{}'", found.name);
    let functions = match description.functions.as_slice() {
        [] => vec![main().map_err(|error: CoreMlError| error.at("function 'main'"))?],
        several => {
            let each = several
                .iter()
                .map(|found| read(found).map_err(|error: CoreMlError| error.at(place(found))));
            each.collect::<Result<_, _>>()?
        }
    };
    Ok(DescribedProgram { functions, default_function: description.default_function_name.clone() })
}

fn one(
    described: DescribedFunction,
    function: &mil::MilFunction,
    specification: i32,
) -> Result<CoreMlFunction, CoreMlError> {
    check_opset(&function.opset, specification)?;
    let (graph, held) = import::function(&described.name, function)?;
    let names = |all: &[ModelFeature]| -> Vec<String> {
        let mut names: Vec<String> = all.iter().map(|feature| feature.name.clone()).collect();
        names.sort();
        names
    };
    let fed = graph.inputs.len() - held.len();
    let given = graph.outputs.len() - held.len();
    let graph_names = |ids: &[galatea_graph::ValueId]| -> Vec<String> {
        let mut names: Vec<String> = ids.iter().map(|&id| graph.value(id).name.clone()).collect();
        names.sort();
        names
    };
    let mut of_states = held.clone();
    of_states.sort();
    let pairs = [
        ("inputs", names(&described.inputs), graph_names(graph.inputs.get(..fed).unwrap_or(&[]))),
        (
            "outputs",
            names(&described.outputs),
            graph_names(graph.outputs.get(..given).unwrap_or(&[])),
        ),
        ("states", names(&described.states), of_states),
    ];
    for (what, described, found) in pairs {
        if described != found {
            let (described, found) = (described.join(", "), found.join(", "));
            let text = format!("the description has the {what} {described}, the program {found}");
            return Err(CoreMlError::invalid(text));
        }
    }
    check_types(&graph, &described.inputs)?;
    let labels = labels(&described, function)?;
    let inputs = ordered(&graph, &graph.inputs, described.inputs);
    let outputs = ordered(&graph, &graph.outputs, described.outputs);
    let states = held
        .iter()
        .filter_map(|held| described.states.iter().find(|state| state.name == *held).cloned());
    let states = states.collect();
    Ok(CoreMlFunction { name: described.name, graph, inputs, outputs, states, labels })
}

/// A specification of version 6 is that of CoreML5, and so on.
fn check_opset(opset: &str, specification: i32) -> Result<(), CoreMlError> {
    let number: Option<i32> = opset.strip_prefix("CoreML").and_then(|number| number.parse().ok());
    match number {
        Some(number) if number >= specification => Err(CoreMlError::invalid(format!(
            "the opset is {opset}, which specification version {specification} does not have"
        ))),
        _ => Ok(()),
    }
}

/// Features in the order that the graph has them.
fn ordered(
    graph: &Graph,
    ids: &[galatea_graph::ValueId],
    features: Vec<ModelFeature>,
) -> Vec<ModelFeature> {
    let mut by_name: OrderedMap<String, ModelFeature> =
        features.into_iter().map(|feature| (feature.name.clone(), feature)).collect();
    ids.iter().filter_map(|&id| by_name.remove(&graph.value(id).name)).collect()
}

/// Checks that the inputs in the description are those that the program takes.
fn check_types(graph: &Graph, inputs: &[ModelFeature]) -> Result<(), CoreMlError> {
    for feature in inputs {
        let Some(id) = graph.find_value(&feature.name) else { continue };
        let Some(fact) = &graph.value(id).declared else { continue };
        let FeatureType::Array { dtype, shape, .. } = &feature.kind else { continue };
        let same_rank = fact.rank().is_none_or(|rank| shape.is_empty() || shape.len() == rank);
        let same_type = *dtype == fact.dtype || *dtype == DataType::Fp64;
        if !same_rank || !same_type {
            let text = format!(
                "input '{}' is described as {dtype}{shape:?}, the program takes {fact}",
                feature.name
            );
            return Err(CoreMlError::invalid(text));
        }
    }
    Ok(())
}

/// The labels of a classifier: the constant that its operation `classify` has.
fn labels(
    described: &DescribedFunction,
    function: &mil::MilFunction,
) -> Result<Option<ClassifierClasses>, CoreMlError> {
    let mut operations = function.block.operations.iter();
    let Some(classify) = operations.find(|operation| operation.operator == "classify") else {
        return Ok(None);
    };
    let classes = classify.inputs.get("classes").and_then(|all| all.first());
    let constant = match classes {
        Some(MilArgument::Value(value)) => Some(value),
        Some(MilArgument::Name(name)) => {
            let mut operations = function.block.operations.iter();
            let made = operations
                .find(|operation| operation.outputs.iter().any(|(output, _)| output == name));
            made.and_then(|operation| operation.attributes.get("val"))
        }
        None => None,
    };
    let names = constant.and_then(|value| names(value));
    let names = names.ok_or_else(|| {
        CoreMlError::invalid("the classes are no constant list of texts or integers")
            .at(classify.place())
    })?;
    Ok(Some(ClassifierClasses {
        predicted: described.predicted.clone(),
        probabilities: described.probabilities.clone(),
        names,
    }))
}

/// The texts or integers of a list or vector, as texts.
pub(super) fn names(value: &MilValue) -> Option<Vec<String>> {
    match value {
        MilValue::List(items) => {
            let each = items.iter().map(|item| names(item)?.pop());
            each.collect()
        }
        MilValue::Tensor(mil::MilElement::String, tensor) => {
            let texts = tensor.to_vec::<galatea_tensor::ByteString>().ok()?;
            texts.iter().map(|text| text.as_str().map(str::to_owned)).collect()
        }
        MilValue::Tensor(_, tensor) => {
            Some(tensor.to_i64_vec().ok()?.iter().map(i64::to_string).collect())
        }
        _ => None,
    }
}
