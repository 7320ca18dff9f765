//! `galatea simulate`: a trace of requests on machines of any chip, predicted from facts about chips.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use galatea_coreml as coreml;
use galatea_graph::{Dim, Graph, Node, ValueId};
use galatea_llm::facts::{CheckpointFacts, ModelDuty};
use galatea_runtime::cost::{ComputeUnit, DecoderWork, GraphWork};
use galatea_runtime::simulate::{
    Fleet, MachineCooling, MachineKind, ModelWork, SimulatedModel, USUAL_DISK_BYTES,
    simulate as run,
};
use galatea_runtime::{OptimiseLevel, PreparedGraph};
use serde_json::Value;

use super::chip_facts::AskedChip;
use super::simulate_arguments::{NamedFile, SimulateArguments};
use super::simulate_trace::{ReplayedTrace, WIRE_OF_TEXT, of_file};
use super::{model, say, simulate_report};

/// Replays a trace.
pub(super) fn simulate(arguments: &SimulateArguments) -> Result<ExitCode, String> {
    let fleet = Fleet {
        kinds: kinds(arguments)?,
        power: arguments.power(),
        loading: arguments.loading()?,
        network: arguments.network,
    };
    let path = arguments.trace.as_ref().ok_or("--trace FILE is missing")?;
    let shown = path.display();
    let file = File::open(path).map_err(|error| format!("'{shown}': {error}"))?;
    let trace = ReplayedTrace::read(BufReader::new(file), models(arguments)?)
        .map_err(|error| format!("'{shown}', {error}"))?;
    let start = Instant::now();
    let report = run(&fleet, &trace.models, &trace.requests)
        .map_err(|fault| format!("'{shown}': {fault}"))?;
    let took = start.elapsed();
    say(&match arguments.json {
        true => simulate_report::as_json(&fleet, &report, took).to_string(),
        false => simulate_report::as_text(&fleet, &report, took),
    });
    Ok(ExitCode::SUCCESS)
}

fn kinds(arguments: &SimulateArguments) -> Result<Vec<MachineKind>, String> {
    let mut kinds = Vec::new();
    for chip in &arguments.chips {
        kinds.push(known(chip, machine(chip)?)?);
    }
    if let Some(path) = &arguments.fleet {
        let shown = path.display();
        let text = fs::read_to_string(path).map_err(|error| format!("'{shown}': {error}"))?;
        kinds.extend(fleet(&text).map_err(|error| format!("'{shown}': {error}"))?);
    }
    if kinds.is_empty() {
        return Err("--chip NAME or --fleet FILE is missing".to_owned());
    }
    Ok(kinds)
}

/// A machine with a chip, with all the memory that there is for it.
fn machine(chip: &str) -> Result<MachineKind, String> {
    let asked = AskedChip::find(chip)?;
    let cost = asked.cost();
    Ok(MachineKind {
        name: asked.label(),
        count: 1,
        // Where the facts do not say it, the file of a fleet has to.
        memory_bytes: cost.memory_bytes.unwrap_or(0.0),
        cost,
        cooling: MachineCooling::Fan,
        engines: asked.engines(),
        disk_bytes: USUAL_DISK_BYTES,
    })
}

/// A machine whose memory is known.
fn known(chip: &str, machine: MachineKind) -> Result<MachineKind, String> {
    match machine.memory_bytes > 0.0 {
        true => Ok(machine),
        false => Err(format!("chip '{chip}': its memory is not known")),
    }
}

/// Machines of a file:
/// `{"machines": [{"chip": "m2-pro", "count": 600, "memory_gb": 32, "fan": true, "disk_gb_per_s": 5}]}`.
fn fleet(text: &str) -> Result<Vec<MachineKind>, String> {
    let expected = "expected {\"machines\": [{\"chip\": NAME, \"count\": N}]}";
    let all: Value = serde_json::from_str(text).map_err(|error| format!("{error}; {expected}"))?;
    let machines = all.get("machines").and_then(Value::as_array).ok_or(expected)?;
    machines
        .iter()
        .enumerate()
        .map(|(at, one)| of_fleet(one).map_err(|error| format!("machines[{at}]: {error}")))
        .collect()
}

fn of_fleet(one: &Value) -> Result<MachineKind, String> {
    const KEYS: [&str; 5] = ["chip", "count", "memory_gb", "fan", "disk_gb_per_s"];
    let one = one.as_object().ok_or("expected an object")?;
    if let Some(key) = one.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(format!("unknown key '{key}', expected one of {}", KEYS.join(", ")));
    }
    let chip = one.get("chip").and_then(Value::as_str).ok_or("chip: expected a name")?;
    let mut kind = machine(chip)?;
    if let Some(found) = one.get("count") {
        let count = found.as_u64().and_then(|count| usize::try_from(count).ok());
        kind.count = count.ok_or_else(|| format!("count: {found} found, expected a count"))?;
    }
    let giga = |key: &str| match one.get(key) {
        None => Ok(None),
        Some(found) => {
            let number = found.as_f64().filter(|giga| giga.is_finite() && *giga > 0.0);
            let number =
                number.ok_or_else(|| format!("{key}: {found} found, expected a number above 0"));
            number.map(|giga| Some(giga * 1e9))
        }
    };
    kind.memory_bytes = giga("memory_gb")?.unwrap_or(kind.memory_bytes);
    kind.disk_bytes = giga("disk_gb_per_s")?.unwrap_or(kind.disk_bytes);
    kind.cooling = match one.get("fan") {
        None | Some(Value::Bool(true)) => MachineCooling::Fan,
        Some(Value::Bool(false)) => MachineCooling::Fanless,
        Some(found) => return Err(format!("fan: {found} found, expected true or false")),
    };
    known(chip, kind)
}

/// The models of files.
fn models(arguments: &SimulateArguments) -> Result<Vec<SimulatedModel>, String> {
    let lengths = arguments.lengths.iter().map(|one| (one.name.clone(), one.length));
    let lengths: HashMap<String, usize> = lengths.collect();
    let mut models = Vec::new();
    for NamedFile { name, file } in &arguments.models {
        let mut units = ComputeUnit::ALL.to_vec();
        let (work, wire) = match model::checkpoint(file)? {
            Some(checkpoint) => (decoder(&checkpoint)?, WIRE_OF_TEXT),
            None => {
                let path = model::find(file)?;
                let graph = model::load(&path, None)?.graph;
                let failed = |error: String| format!("'{}': {error}", file.display());
                if !graph.nodes.iter().all(has_form) {
                    units.retain(|unit| *unit != ComputeUnit::NeuralEngine);
                }
                let prepared = PreparedGraph::new(graph, OptimiseLevel::default());
                let graph = prepared.map_err(|error| failed(error.to_string()))?.graph;
                let wire =
                    [&graph.inputs, &graph.outputs].map(|all| row_bytes(&graph, all, &lengths));
                let work = GraphWork::of(&graph, &lengths);
                (ModelWork::Graph(work.map_err(|error| failed(error.to_string()))?), wire)
            }
        };
        models.push(of_file(name, work, units, wire));
    }
    Ok(models)
}

/// Bytes of the inputs or outputs of a graph for one row, as far as their shapes are known.
fn row_bytes(graph: &Graph, all: &[ValueId], lengths: &HashMap<String, usize>) -> f64 {
    let bytes = |&id: &ValueId| {
        let fact = graph.value(id).declared.as_ref()?;
        let shape = fact.shape.as_ref()?.iter().map(|dim| match dim {
            Dim::Known(length) => *length as f64,
            Dim::Symbol(name) => lengths.get(&**name).map_or(1.0, |length| *length as f64),
            Dim::Unknown => 1.0,
        });
        Some(shape.product::<f64>() * fact.dtype.size_bytes().unwrap_or(0) as f64)
    };
    all.iter().filter_map(bytes).sum()
}

/// Returns whether Core ML programs can express a node; otherwise a Neural Engine cannot run it.
fn has_form(node: &Node) -> bool {
    coreml::operators().any(|(domain, name)| (domain, name) == (&node.domain, &node.op_type))
}

/// Returns the work of a checkpoint's decoder.
fn decoder(path: &Path) -> Result<ModelWork, String> {
    let facts = CheckpointFacts::read(path).map_err(|error| error.to_string())?;
    if facts.duty != ModelDuty::Decoder {
        let path = path.display();
        let duty = facts.duty.name();
        return Err(format!("'{path}' is of the sort {duty}, expected a decoder"));
    }
    let halves = facts.cache.iter().find(|of| of.dtype == "float16");
    let float = |number: usize| number as f64;
    Ok(ModelWork::Decoder(DecoderWork {
        parameters: float(facts.parameters()),
        weight_bytes: float(facts.weight_bytes()),
        layers: float(facts.layers),
        hidden: float(facts.hidden.unwrap_or(0)),
        kv_bytes_per_token: halves.map_or(0.0, |of| float(of.bytes)),
    }))
}

#[cfg(test)]
mod tests {
    use super::super::arguments::parse;
    use super::*;

    #[test]
    fn fleets_are_read_and_mistakes_are_named() {
        let text = r#"{"machines": [{"chip": "m2-pro", "count": 600}, {"chip": "m2", "fan": false, "memory_gb": 8}]}"#;
        let kinds = fleet(text).unwrap();
        assert_eq!(
            (kinds[0].count, kinds[1].count, kinds[1].cooling),
            (600, 1, MachineCooling::Fanless)
        );
        assert!((kinds[1].memory_bytes - 8e9).abs() < 1.0);
        let ultra = fleet(r#"{"machines": [{"chip": "m2-ultra", "disk_gb_per_s": 7}]}"#).unwrap();
        assert_eq!((ultra[0].engines, kinds[0].engines), (2, 1));
        assert!((ultra[0].disk_bytes - 7e9).abs() < 1.0);
        for (text, part) in [
            ("[]", "expected {\"machines\""),
            (r#"{"machines": [{}]}"#, "machines[0]: chip: expected a name"),
            (r#"{"machines": [{"chip": "m2", "count": -1}]}"#, "count: -1 found"),
            (r#"{"machines": [{"chip": "m2", "fans": 1}]}"#, "unknown key 'fans'"),
            (r#"{"machines": [{"chip": "m2", "memory_gb": 0}]}"#, "memory_gb: 0 found"),
            (r#"{"machines": [{"chip": "q7"}]}"#, "chip 'q7' found"),
        ] {
            let error = fleet(text).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_trace_is_replayed_on_a_fleet_and_on_chips() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let trace = r#"{"model": "a", "graph": {"operations": 1e9, "weight_bytes": 1e7, "operators": 9}}
{"time": 0, "model": "a", "kind": "infer"}
{"time": 0.1, "model": "a", "kind": "infer", "batch": 2}"#;
        fs::write(path("trace"), trace).unwrap();
        fs::write(path("fleet"), r#"{"machines": [{"chip": "m6-max", "count": 20}]}"#).unwrap();
        for more in [
            vec!["--fleet", &path("fleet")],
            vec!["--chip", "m1", "--chip=m4:8", "--json"],
            vec![
                "--chip",
                "m1-ultra",
                "--loading",
                "--compile-seconds-per-gb=9",
                "--network=5,100",
            ],
        ] {
            let trace = path("trace");
            let own = ["--trace", &trace, "--policy", "low_power", "--power-target-watts", "9"];
            let all: Vec<&str> = own.into_iter().chain(more).collect();
            let all = parse(&all).unwrap();
            assert_eq!(simulate(&all).unwrap(), ExitCode::SUCCESS);
        }
    }

    #[test]
    fn options_that_are_missing_or_wrong_are_named() {
        let wrong = |arguments: &[&str], part: &str| {
            let parsed = parse(arguments);
            let error = parsed.and_then(|parsed| simulate(&parsed)).unwrap_err();
            assert!(error.contains(part), "{error}");
        };
        wrong(&[], "--chip NAME or --fleet FILE is missing");
        wrong(&["--chip", "m1"], "--trace FILE is missing");
        wrong(&["--chip", "m1", "--policy", "fast"], "expected one of high_performance");
        wrong(&["--chip", "m1", "--trace", "/nowhere"], "/nowhere");
        wrong(&["--chip", "m1", "--network", "5"], "--network expects milliseconds and Mbit/s");
        wrong(&["--chip", "m1", "--network", "5,0"], "got '5,0'");
        wrong(&["--chip", "m1", "--compile-seconds-per-gb", "5"], "needs --loading");
    }
}
