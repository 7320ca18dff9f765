//! `galatea inspect`: what is in a model.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use galatea_formats::onnx;
use galatea_graph::{Dim, Fact, Graph, ValueId};
use galatea_llm::chunked::ChunkManifest;
use galatea_runtime::{OptimiseLevel, Session};
use galatea_tensor::OrderedMap;
use serde_json::{Value, json};

use super::arguments::{path, purpose, threads};
use super::model::{self, SessionChoices};
use super::picture::DrawingChoices;
use super::{chunk_facts, engine, inspect_checkpoint, say};
use crate::table::table;

/// Command line of `galatea inspect`.
#[derive(Debug, Args)]
#[command(mut_args(purpose("provider", "prepare it for this provider")))]
pub(super) struct InspectArguments {
    #[arg(value_name = "MODEL", value_parser = path)]
    model: PathBuf,
    #[command(flatten)]
    session: SessionChoices,
    #[arg(
        long,
        value_name = "N",
        value_parser = threads,
        help = "threads inside an operator [all fast cores]"
    )]
    threads: Option<usize>,
    #[command(flatten)]
    drawing: DrawingChoices,
    #[arg(long, help = "print one line of JSON")]
    json: bool,
}

impl InspectArguments {
    /// Returns the first option given that is about the graph of an ONNX model.
    fn about_graphs(&self) -> Option<&'static str> {
        let SessionChoices { provider, function: _, precision, level } = &self.session;
        let rows = [
            ("provider", provider.is_some()),
            ("threads", self.threads.is_some()),
            ("precision", precision.is_some()),
            ("level", level.is_some()),
        ];
        let drawing = self.drawing.kind().map(|(name, _)| name);
        let found = rows.into_iter().find_map(|(name, given)| given.then_some(name));
        found.or(drawing)
    }
}

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
    opsets: OrderedMap<String, i64>,
    inputs: Vec<ModelPort>,
    outputs: Vec<ModelPort>,
    operators: OrderedMap<String, usize>,
    parameters: usize,
    parameter_bytes: usize,
    /// Description of the prepared session, or the reason why there is none.
    session: Result<InspectedSession, String>,
}

/// Describes a model.
pub(super) fn inspect(arguments: &InspectArguments) -> Result<ExitCode, String> {
    let InspectArguments { session, json, .. } = arguments;
    let function = session.function.name.as_deref();
    if let Some(checkpoint) = model::checkpoint(&arguments.model)? {
        let graphs = arguments.about_graphs();
        if ChunkManifest::is_in(&checkpoint) {
            if let Some(option) = graphs.or(function.map(|_| "function")) {
                let text = "is for ONNX models, and chunks have --json only";
                return Err(format!("--{option} {text}"));
            }
            say(&chunk_facts::inspect(&checkpoint, *json)?);
            return Ok(ExitCode::SUCCESS);
        }
        if let Some(option) = graphs {
            let text = "is for ONNX models, and a checkpoint has --json only";
            return Err(format!("--{option} {text}"));
        }
        say(&inspect_checkpoint::inspect(&checkpoint, *json)?);
        return Ok(ExitCode::SUCCESS);
    }
    let path = model::find(&arguments.model)?;
    if let Some((_, drawing)) = arguments.drawing.kind() {
        let graph = model::load(&path, function)?.graph;
        say(&drawing.of(graph, session.optimise_level())?);
        return Ok(ExitCode::SUCCESS);
    }
    // A wrong option is an error of the caller; only what the model is decides about its session.
    engine().providers(session.provider.as_deref())?;
    let prepared = model::session(&path, session, arguments.threads.unwrap_or(0));
    let report = report(&path, model::load(&path, function)?, prepared);
    say(&if *json { as_json(&report).to_string() } else { as_text(&report) });
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
    let mut operators = OrderedMap::new();
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
