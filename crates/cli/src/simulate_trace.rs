//! Traces of requests: lines of JSON, each a model or a request.

use std::collections::HashMap;
use std::io::BufRead;

use galatea_runtime::cost::{ComputeUnit, DecoderWork, GraphWork, OperatorWork};
use galatea_runtime::simulate::{ModelWork, RequestKind, SimulatedModel, SimulatedRequest};
use serde_json::{Map, Value};

/// The most requests of a trace.
const MAX_REQUESTS: usize = 20_000_000;
/// The latest time of a request, in seconds: some three years.
const LATEST: f64 = 1e8;
/// The most rows or tokens of a request.
const MAX_COUNT: u64 = 1_000_000;
/// Rows of a batch at most, and texts at once, where nothing is said.
const USUAL_BATCH: u32 = 16;
/// Bytes of a token of a prompt, and of an event that tells of a token of an answer: estimates.
pub(super) const WIRE_OF_TEXT: [f64; 2] = [4.0, 200.0];
/// The most operators of a described graph.
const MAX_OPERATORS: u64 = 100_000;

/// The models of a trace and its requests.
#[derive(Debug, Default)]
pub(super) struct ReplayedTrace {
    /// The models.
    pub(super) models: Vec<SimulatedModel>,
    /// Its requests, as they stand.
    pub(super) requests: Vec<SimulatedRequest>,
}

/// A line's object, whose keys are taken one by one.
struct TraceLine(Map<String, Value>);

impl TraceLine {
    fn text(&mut self, key: &str) -> Result<String, String> {
        match self.0.remove(key) {
            Some(Value::String(text)) if !text.is_empty() => Ok(text),
            found => Err(wrong(key, found.as_ref(), "a text")),
        }
    }

    /// A number from 0 on.
    fn number(&mut self, key: &str) -> Result<f64, String> {
        let found = self.0.remove(key);
        let number = found.as_ref().and_then(Value::as_f64);
        let fits = number.filter(|number| number.is_finite() && *number >= 0.0);
        fits.ok_or_else(|| wrong(key, found.as_ref(), "a number from 0 on"))
    }

    fn number_or(&mut self, key: &str, usual: f64) -> Result<f64, String> {
        if self.0.contains_key(key) { self.number(key) } else { Ok(usual) }
    }

    /// A count from 1 on.
    fn count(&mut self, key: &str, most: u64) -> Result<u32, String> {
        let found = self.0.remove(key);
        let count =
            found.as_ref().and_then(Value::as_u64).filter(|count| (1..=most).contains(count));
        let count = count.and_then(|count| u32::try_from(count).ok());
        count.ok_or_else(|| wrong(key, found.as_ref(), &format!("a count from 1 to {most}")))
    }

    fn count_or(&mut self, key: &str, usual: u32) -> Result<u32, String> {
        if self.0.contains_key(key) { self.count(key, MAX_COUNT) } else { Ok(usual) }
    }

    fn object(&mut self, key: &str) -> Result<Self, String> {
        match self.0.remove(key) {
            Some(Value::Object(object)) => Ok(Self(object)),
            found => Err(wrong(key, found.as_ref(), "an object")),
        }
    }

    /// Refuses keys that nobody took.
    fn end(self) -> Result<(), String> {
        match self.0.keys().next() {
            Some(key) => Err(format!("unknown key '{key}'")),
            None => Ok(()),
        }
    }
}

fn wrong(key: &str, found: Option<&Value>, expected: &str) -> String {
    match found {
        Some(found) => format!("{key}: {found} found, expected {expected}"),
        None => format!("{key} is missing, expected {expected}"),
    }
}

impl ReplayedTrace {
    /// Reads a trace, whose requests may be for `models` and for those that it describes before.
    ///
    /// # Errors
    /// Returns the number of the first wrong line, and what was expected.
    pub(super) fn read(lines: impl BufRead, models: Vec<SimulatedModel>) -> Result<Self, String> {
        let mut trace = Self { models, requests: Vec::new() };
        let names = trace.models.iter().enumerate();
        let mut known: HashMap<String, u32> = names
            .filter_map(|(at, model)| Some((model.name.clone(), u32::try_from(at).ok()?)))
            .collect();
        for (at, line) in lines.lines().enumerate() {
            let line = line.map_err(|error| format!("line {}: {error}", at + 1))?;
            if !line.trim().is_empty() {
                trace
                    .take(&line, &mut known)
                    .map_err(|error| format!("line {}: {error}", at + 1))?;
            }
        }
        Ok(trace)
    }

    fn take(&mut self, line: &str, known: &mut HashMap<String, u32>) -> Result<(), String> {
        let line: Map<String, Value> = serde_json::from_str(line)
            .map_err(|error| format!("{error}; expected an object of JSON on one line"))?;
        let mut line = TraceLine(line);
        if !line.0.contains_key("time") {
            let model = described(line)?;
            let number = u32::try_from(self.models.len()).map_err(|_| "too many models")?;
            if known.insert(model.name.clone(), number).is_some() {
                return Err(format!("the model '{}' is there already", model.name));
            }
            self.models.push(model);
            return Ok(());
        }
        if self.requests.len() >= MAX_REQUESTS {
            return Err(format!("more than {MAX_REQUESTS} requests"));
        }
        let time = line.number("time")?;
        if time > LATEST {
            return Err(format!("time: {time} found, expected seconds up to {LATEST}"));
        }
        let name = line.text("model")?;
        let model = *known.get(&name).ok_or_else(|| {
            format!(
                "model: '{name}' found, expected one of --model or one that a line before describes"
            )
        })?;
        let kind = match line.text("kind")?.as_str() {
            "infer" => RequestKind::Infer { batch: line.count_or("batch", 1)? },
            "generate" => RequestKind::Generate {
                prompt: line.count("prompt", MAX_COUNT)?,
                output: line.count("output", MAX_COUNT)?,
            },
            other => return Err(format!("kind: '{other}' found, expected infer or generate")),
        };
        line.end()?;
        self.requests.push(SimulatedRequest { at: nanos(time), model, kind });
        Ok(())
    }
}

/// A model that a line describes by its sums.
fn described(mut line: TraceLine) -> Result<SimulatedModel, String> {
    let name = line.text("model")?;
    let work = if line.0.contains_key("decoder") {
        let mut decoder = line.object("decoder")?;
        let work = DecoderWork {
            parameters: decoder.number("parameters")?,
            weight_bytes: decoder.number("weight_bytes")?,
            layers: decoder.number("layers")?,
            hidden: decoder.number_or("hidden", 0.0)?,
            kv_bytes_per_token: decoder.number_or("kv_bytes_per_token", 0.0)?,
        };
        decoder.end().map_err(|error| format!("decoder: {error}"))?;
        ModelWork::Decoder(work)
    } else if line.0.contains_key("graph") {
        let mut graph = line.object("graph")?;
        let all = OperatorWork {
            operator: name.clone(),
            operations: graph.number("operations")?,
            weight_bytes: graph.number("weight_bytes")?,
            moved_bytes: graph.number_or("moved_bytes", 0.0)?,
        };
        let operators = graph.count("operators", MAX_OPERATORS)?;
        graph.end().map_err(|error| format!("graph: {error}"))?;
        ModelWork::Graph(GraphWork::alike(usize::try_from(operators).unwrap_or(1), &all))
    } else {
        return Err(
            "time is missing, expected a request with a time or a model with its graph or \
                    decoder"
                .to_owned(),
        );
    };
    let max_batch = line.count_or("max_batch", USUAL_BATCH)?;
    let units = units(&mut line)?;
    let [request, answer] = match &work {
        ModelWork::Decoder(_) => WIRE_OF_TEXT,
        ModelWork::Graph(_) => [0.0; 2],
    };
    let request = line.number_or("request_bytes", request)?;
    let wire_bytes = [request, line.number_or("answer_bytes", answer)?];
    line.end()?;
    Ok(SimulatedModel { name, work, max_batch, units, wire_bytes })
}

fn units(line: &mut TraceLine) -> Result<Vec<ComputeUnit>, String> {
    let Some(found) = line.0.remove("units") else { return Ok(ComputeUnit::ALL.to_vec()) };
    let all = ComputeUnit::ALL.map(ComputeUnit::name);
    let unit =
        |name: &Value| ComputeUnit::ALL.into_iter().find(|unit| name.as_str() == Some(unit.name()));
    let units: Option<Vec<ComputeUnit>> =
        found.as_array().and_then(|names| names.iter().map(unit).collect());
    units
        .filter(|units| !units.is_empty())
        .ok_or_else(|| wrong("units", Some(&found), &format!("a list of {}", all.join(", "))))
}

/// Seconds, which are bounded, in nanoseconds.
fn nanos(seconds: f64) -> u64 {
    let time = std::time::Duration::try_from_secs_f64(seconds).unwrap_or_default();
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A model of a file, with usual limits.
pub(super) fn of_file(
    name: &str,
    work: ModelWork,
    units: Vec<ComputeUnit>,
    wire_bytes: [f64; 2],
) -> SimulatedModel {
    SimulatedModel { name: name.to_owned(), work, max_batch: USUAL_BATCH, units, wire_bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODELS: &str = r#"
{"model": "llama", "decoder": {"parameters": 6.7e9, "weight_bytes": 3.8e9, "layers": 32}}
{"model": "pictures", "max_batch": 4, "request_bytes": 6e5, "units": ["gpu"], "graph": {"operations": 8e9, "weight_bytes": 1e8, "operators": 120}}
"#;

    #[test]
    fn models_and_requests_are_read() {
        let requests = r#"{"time": 0.5, "model": "pictures", "kind": "infer", "batch": 2}
{"time": 0, "model": "llama", "kind": "generate", "prompt": 5, "output": 7}"#;
        let trace =
            ReplayedTrace::read(format!("{MODELS}{requests}").as_bytes(), Vec::new()).unwrap();
        assert_eq!((trace.models.len(), trace.requests.len()), (2, 2));
        assert_eq!(trace.models[1].units, [ComputeUnit::Gpu]);
        assert_eq!([0, 1].map(|at| trace.models[at].wire_bytes), [WIRE_OF_TEXT, [6e5, 0.0]]);
        let first =
            SimulatedRequest { at: 500_000_000, model: 1, kind: RequestKind::Infer { batch: 2 } };
        assert_eq!(trace.requests[0], first);
    }

    #[test]
    fn a_wrong_line_is_named_with_what_was_expected() {
        for (line, part) in [
            ("{", "expected an object of JSON"),
            ("[1]", "expected an object of JSON"),
            (r#"{"time": -1, "model": "llama", "kind": "infer"}"#, "time: -1 found"),
            (r#"{"time": 1e99, "model": "llama", "kind": "infer"}"#, "seconds up to"),
            (r#"{"time": 1, "model": "x", "kind": "infer"}"#, "model: 'x' found"),
            (r#"{"time": 1, "model": "llama", "kind": "sing"}"#, "expected infer or generate"),
            (r#"{"time": 1, "model": "llama", "kind": "generate"}"#, "prompt is missing"),
            (
                r#"{"time": 1, "model": "llama", "kind": "generate", "prompt": 0, "output": 1}"#,
                "prompt: 0 found, expected a count from 1",
            ),
            (r#"{"time": 1, "model": "pictures", "kind": "infer", "rows": 1}"#, "key 'rows'"),
            (r#"{"model": "llama", "decoder": {}}"#, "parameters is missing"),
            (r#"{"model": "new"}"#, "time is missing"),
        ] {
            let error =
                ReplayedTrace::read(format!("{MODELS}{line}").as_bytes(), Vec::new()).unwrap_err();
            assert!(error.starts_with("line 4: ") && error.contains(part), "{error}");
        }
        let twice = format!("{MODELS}{}", MODELS.trim());
        let error = ReplayedTrace::read(twice.as_bytes(), Vec::new()).unwrap_err();
        assert!(error.contains("line 4: the model 'llama' is there already"), "{error}");
    }
}
