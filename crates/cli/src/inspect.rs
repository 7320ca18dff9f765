//! `galatea inspect`: what is in a model.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use galatea_formats::onnx;
use galatea_graph::{Dim, Fact, Graph, ValueId};
use galatea_llm::chunked::ChunkManifest;
use galatea_runtime::{OptimiseLevel, Session};
use serde_json::{Value, json};

use super::arguments::{CommandArguments, CommandOption};
use super::{chunk_facts, inspect_checkpoint, model, picture, say};
use crate::table::table;

const CHOICES: &[CommandOption] = &[
    CommandOption { name: "provider", value: "NAME", sentence: "prepare it for this provider" },
    CommandOption {
        name: "function",
        value: "NAME",
        sentence: "function of a model that has several",
    },
    CommandOption {
        name: "threads",
        value: "N",
        sentence: "threads inside an operator [all fast cores]",
    },
    CommandOption { name: "stage", value: "", sentence: "print the graph after each rewrite" },
    CommandOption { name: "dot", value: "", sentence: "print the rewritten graph for Graphviz" },
    CommandOption { name: "svg", value: "", sentence: "print a drawing of the rewritten graph" },
    CommandOption { name: "json", value: "", sentence: "print one line of JSON" },
    CommandOption {
        name: "precision",
        value: "fp32|bf16|fp16",
        sentence: "what products and convolutions compute in [fp32]",
    },
    CommandOption {
        name: "level",
        value: "O0…O3",
        sentence: "how far the graph is rewritten [O3]",
    },
];

/// An input or output.
struct ModelPort {
    name: String,
    datatype: String,
    shape: String,
}

/// A session on the model.
struct InspectedSession {
    providers: String,
    level: OptimiseLevel,
    nodes: usize,
    bytes: usize,
}

/// Report on a model.
struct InspectReport {
    file: String,
    producer: String,
    opsets: BTreeMap<String, i64>,
    inputs: Vec<ModelPort>,
    outputs: Vec<ModelPort>,
    operators: BTreeMap<String, usize>,
    parameters: usize,
    parameter_bytes: usize,
    /// Description of the prepared session, or the reason why there is none.
    session: Result<InspectedSession, String>,
}

/// Returns the options of the command.
pub(super) fn options() -> Vec<CommandOption> {
    CHOICES.to_vec()
}

/// Describes a model.
pub(super) fn inspect(arguments: &CommandArguments) -> Result<ExitCode, String> {
    let given = arguments.only("MODEL")?;
    if let Some(checkpoint) = model::checkpoint(given)? {
        if ChunkManifest::is_in(&checkpoint) {
            return chunk_facts::inspect(&checkpoint, arguments);
        }
        return inspect_checkpoint::inspect(&checkpoint, arguments);
    }
    let path = model::find(given)?;
    if let Some(drawing) = picture::drawing(arguments)? {
        let graph = model::load(&path, arguments)?.graph;
        say(&drawing.of(graph, model::level(arguments)?)?);
        return Ok(ExitCode::SUCCESS);
    }
    // A wrong option is an error of the caller; only what the model is decides about its session.
    model::check(arguments)?;
    let report = report(&path, model::load(&path, arguments)?, model::session(&path, arguments));
    say(&if arguments.has("json") { as_json(&report).to_string() } else { as_text(&report) });
    Ok(ExitCode::SUCCESS)
}

/// A graph and the bodies of its loops and branches, and theirs.
fn with_bodies(graph: &Graph) -> Vec<&Graph> {
    let bodies = graph.nodes.iter().flat_map(|node| node.operator.bodies());
    let inner = bodies.flat_map(|body| with_bodies(body.graph()));
    std::iter::once(graph).chain(inner).collect()
}

fn report(path: &Path, model: onnx::OnnxModel, session: Result<Session, String>) -> InspectReport {
    let graph = &model.graph;
    let graphs = with_bodies(graph);
    let mut operators = BTreeMap::new();
    for node in graphs.iter().flat_map(|graph| &graph.nodes) {
        *operators.entry(node.operator_name()).or_insert(0) += 1;
    }
    let values = || graphs.iter().flat_map(|graph| graph.values());
    let initializers = || values().filter_map(|value| value.initializer.as_ref());
    let producer = format!("{} {}", model.info.producer_name, model.info.producer_version);
    InspectReport {
        file: path.display().to_string(),
        producer: producer.trim().to_owned(),
        opsets: graph.opsets.clone(),
        inputs: ports(graph, &graph.inputs),
        outputs: ports(graph, &graph.outputs),
        operators,
        parameters: initializers().map(|tensor| tensor.elements()).sum(),
        parameter_bytes: initializers().map(|tensor| tensor.size_bytes()).sum(),
        session: session.map(|session| {
            let memory = session.report().memory;
            InspectedSession {
                providers: model::used_providers(&session),
                level: session.optimise_level(),
                nodes: session.graph().nodes.len(),
                bytes: memory.initializer_bytes,
            }
        }),
    }
}

fn ports(graph: &Graph, ids: &[ValueId]) -> Vec<ModelPort> {
    let port = |&id: &ValueId| {
        let value = graph.value(id);
        ModelPort {
            name: value.name.clone(),
            datatype: value
                .declared
                .as_ref()
                .map_or_else(|| "?".to_owned(), |fact| fact.dtype.to_string()),
            shape: value.declared.as_ref().map_or_else(|| "?".to_owned(), shape_text),
        }
    };
    ids.iter().map(port).collect()
}

fn shape_text(fact: &Fact) -> String {
    match &fact.shape {
        Some(dims) => {
            let dims: Vec<String> = dims.iter().map(Dim::to_string).collect();
            format!("[{}]", dims.join(","))
        }
        None => "any".to_owned(),
    }
}

fn as_json(report: &InspectReport) -> Value {
    let ports = |ports: &[ModelPort]| -> Vec<Value> {
        ports
            .iter()
            .map(|port| json!({"name": port.name, "datatype": port.datatype, "shape": port.shape}))
            .collect()
    };
    let session = match &report.session {
        Ok(InspectedSession { providers, level, nodes, bytes }) => json!({
            "providers": providers,
            "level": level.to_string(),
            "nodes": nodes,
            "initializer_bytes": bytes,
        }),
        Err(error) => json!({"error": error}),
    };
    json!({
        "file": report.file,
        "producer": report.producer,
        "opsets": report.opsets,
        "inputs": ports(&report.inputs),
        "outputs": ports(&report.outputs),
        "operators": report.operators,
        "nodes": report.operators.values().sum::<usize>(),
        "parameters": report.parameters,
        "parameter_bytes": report.parameter_bytes,
        "session": session,
    })
}

fn as_text(report: &InspectReport) -> String {
    let opsets: Vec<String> = report
        .opsets
        .iter()
        .map(|(domain, version)| {
            format!("{} {version}", if domain.is_empty() { "ai.onnx" } else { domain })
        })
        .collect();
    let mut text = format!("{}\n", report.file);
    if !report.producer.is_empty() {
        text.push_str(&format!("made by {}; ", report.producer));
    }
    text.push_str(&format!(
        "opsets: {}\n{} parameters, {:.1} MB\n",
        opsets.join(", "),
        report.parameters,
        report.parameter_bytes as f64 / 1e6
    ));
    match &report.session {
        Ok(InspectedSession { providers, level, nodes, bytes }) => text.push_str(&format!(
            "prepared for {providers}: {nodes} nodes after rewriting ({level}), {:.1} MB of weights held\n",
            *bytes as f64 / 1e6
        )),
        Err(error) => text.push_str(&format!("cannot be prepared: {error}\n")),
    }
    let port = |kind: &str, port: &ModelPort| {
        vec![kind.to_owned(), port.name.clone(), port.datatype.clone(), port.shape.clone()]
    };
    let inputs = report.inputs.iter().map(|input| port("input", input));
    let outputs = report.outputs.iter().map(|output| port("output", output));
    text.push_str(&table(&["", "Name", "Type", "Shape"], inputs.chain(outputs)));
    let mut operators: Vec<(&String, &usize)> = report.operators.iter().collect();
    operators.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let operators =
        operators.into_iter().map(|(name, count)| vec![name.clone(), count.to_string()]);
    text.push_str(&table(&["Operator", "Count"], operators));
    text
}
