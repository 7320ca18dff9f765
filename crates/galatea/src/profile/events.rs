//! Events of runs, of engines and of requests.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use galatea_llm::observe::{RequestRecord, StepRecord};
use galatea_runtime::PartRun;
use galatea_serving::trace::{
    COMPUTE_END, COMPUTE_START, QUEUE_START, REQUEST_END, REQUEST_START, TraceEntry, TraceEvent,
    unix_ns,
};
use serde_json::{Value, json};

use crate::gpus::GpuPool;

use super::{ProfileItem, WaitingThread};

/// The number of the host among the rows.
const HOST: u64 = 1;
/// The number of the first GPU.
#[cfg(any(target_os = "macos", feature = "gpu"))]
const GPUS: u64 = 100;

/// A row of the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct TimelineRow {
    /// Number of the process.
    process: u64,
    /// Number of the thread in the process.
    thread: u64,
}

/// The row of requests, which belong to no thread.
const REQUESTS: TimelineRow = TimelineRow { process: HOST, thread: 0 };

/// Makes events, and says who is who when somebody comes first.
#[derive(Debug)]
pub(super) struct EventMaker {
    #[cfg_attr(
        not(any(target_os = "macos", feature = "gpu")),
        allow(dead_code, reason = "only runs of GPUs are told by their names")
    )]
    gpus: Arc<GpuPool>,
    /// The moment 0.
    start_ns: u64,
    /// Processes that have been named.
    processes: HashSet<u64>,
    /// Rows that have been named.
    rows: HashSet<TimelineRow>,
    threads: HashMap<std::thread::ThreadId, u64>,
}

impl EventMaker {
    /// Times count from now on.
    pub(super) fn new(gpus: Arc<GpuPool>) -> Self {
        Self {
            gpus,
            start_ns: unix_ns(std::time::Instant::now()),
            processes: HashSet::new(),
            rows: HashSet::new(),
            threads: HashMap::new(),
        }
    }

    pub(super) fn of(&mut self, item: ProfileItem) -> Vec<Value> {
        match item {
            #[cfg(any(target_os = "macos", feature = "gpu"))]
            ProfileItem::Run(run, host) => self.run(&run, &host),
            ProfileItem::Part(run, host) => self.part(&run, &host),
            ProfileItem::Request(entries) => self.request(&entries),
            ProfileItem::Step(model, step, host) => self.step(&model, &step, &host),
            ProfileItem::Generation(model, request) => self.generation(&model, &request),
        }
    }

    /// The row of a thread of this host, which is named the first time.
    fn host_row(&mut self, host: &WaitingThread, out: &mut Vec<Value>) -> TimelineRow {
        let next = self.threads.len() as u64 + 1;
        let thread = *self.threads.entry(host.id).or_insert(next);
        let row = TimelineRow { process: HOST, thread };
        self.introduce(row, "host", &host.name, out);
        row
    }

    fn span(
        &self,
        row: TimelineRow,
        kind: &str,
        name: &str,
        begin: Instant,
        time: Duration,
        args: Value,
    ) -> Value {
        json!({
            "ph": "X", "cat": kind, "name": name, "pid": row.process, "tid": row.thread,
            "ts": self.us(unix_ns(begin)), "dur": time.as_nanos() as f64 / 1e3, "args": args,
        })
    }

    /// A partition that a session ran, on the row of its thread, and its steps one behind the other.
    fn part(&mut self, run: &PartRun, host: &WaitingThread) -> Vec<Value> {
        let mut out = Vec::with_capacity(run.rows.len() + 3);
        let row = self.host_row(host, &mut out);
        let args = json!({"unit": run.provider, "steps": run.rows.len()});
        out.push(self.span(row, "run", &run.model, run.begin, run.time, args));
        let end = run.begin + run.time;
        let mut begin = run.begin;
        for step in &run.rows {
            let mut args = json!({
                "node": step.node, "operator": step.op, "unit": step.provider,
                "flop": step.work.operations, "bytes": step.work.bytes,
            });
            if step.estimated {
                args["estimated"] = true.into();
            }
            let time = step.time.min(end.saturating_duration_since(begin));
            out.push(self.span(row, "kernel", &step.kernel, begin, time, args));
            begin += time;
        }
        out
    }

    /// A step of an engine, on the row of its thread, where runs on GPUs lie inside.
    fn step(&mut self, model: &str, step: &StepRecord, host: &WaitingThread) -> Vec<Value> {
        let mut out = Vec::new();
        let row = self.host_row(host, &mut out);
        let time = step.end.saturating_duration_since(step.begin);
        let args = json!({
            "model": model, "tokens": step.tokens, "rows": step.sequences.len(),
            "sequences": step.sequences,
        });
        out.push(self.span(row, "engine", "step", step.begin, time, args));
        out
    }

    /// A request of an engine: from its submission to its end, in the queue, until its first token, and from then on.
    /// An encoder's has no tokens.
    fn generation(&mut self, model: &str, request: &RequestRecord) -> Vec<Value> {
        let mut out = Vec::new();
        self.introduce(REQUESTS, "host", "requests", &mut out);
        let args = json!({
            "request_id": request.id, "sequence": request.number,
            "prompt_tokens": request.prompt_tokens, "cached_tokens": request.cached_tokens,
            "completion_tokens": request.completion_tokens, "outcome": request.outcome.as_str(),
        });
        let RequestRecord { submitted, admitted, first_token, end, .. } = *request;
        let (first, work) = match first_token {
            Some(first) => (first, "prefill"),
            None => (end, if request.completion_tokens == 0 { "compute" } else { "prefill" }),
        };
        let spans = [
            Some((model, submitted, end, args)),
            Some(("queue", submitted, admitted.unwrap_or(end), json!({}))),
            admitted.map(|from| (work, from, first, json!({}))),
            first_token.map(|from| ("decode", from, end, json!({}))),
        ];
        let id = format!("{model}/{}", request.number);
        for (name, from, to, args) in spans.into_iter().flatten() {
            self.nested(&json!(id), name, unix_ns(from), unix_ns(to), &args, &mut out);
        }
        out
    }

    /// A span of a request; those of the same id lie in each other.
    fn nested(
        &self,
        id: &Value,
        name: &str,
        from: u64,
        to: u64,
        args: &Value,
        out: &mut Vec<Value>,
    ) {
        for (phase, ns) in [("b", from), ("e", to.max(from))] {
            out.push(json!({
                "ph": phase, "cat": "request", "id": id, "name": name,
                "pid": HOST, "tid": 0, "ts": self.us(ns), "args": args,
            }));
        }
    }

    /// Microseconds of a moment since 1970.
    fn us(&self, ns: u64) -> f64 {
        let since = i128::from(ns) - i128::from(self.start_ns);
        since as f64 / 1e3
    }

    /// Names a row the first time.
    fn introduce(
        &mut self,
        row: TimelineRow,
        process_name: &str,
        thread_name: &str,
        out: &mut Vec<Value>,
    ) {
        let event = |kind: &str, row: TimelineRow, name: &str| json!({"ph": "M", "name": kind, "pid": row.process, "tid": row.thread, "args": {"name": name}});
        if self.processes.insert(row.process) {
            let first = TimelineRow { thread: 0, ..row };
            out.push(event("process_name", first, process_name));
        }
        if self.rows.insert(row) {
            out.push(event("thread_name", row, thread_name));
        }
    }

    /// A request and what it caused: from its begin to its end, in the queue and at work.
    fn request(&mut self, entries: &[TraceEntry]) -> Vec<Value> {
        let mut out = Vec::new();
        self.introduce(REQUESTS, "host", "requests", &mut out);
        let mut stamps: HashMap<(u64, &str), u64> = HashMap::new();
        for entry in entries {
            if let TraceEvent::Stamp { name, ns } = &entry.event {
                stamps.entry((entry.trace, name)).or_insert(*ns);
            }
        }
        let last = stamps.values().max().copied().unwrap_or(0);
        for entry in entries {
            let TraceEvent::Began { model, version, request_id, parent } = &entry.event else {
                continue;
            };
            let at = |name: &str| stamps.get(&(entry.trace, name)).copied();
            let Some(begin) = at(REQUEST_START) else { continue };
            let end = at(REQUEST_END).unwrap_or(last).max(begin);
            let args = json!({"version": version, "request_id": request_id, "parent": parent});
            let compute = at(COMPUTE_START).map(|from| (from, at(COMPUTE_END).unwrap_or(end)));
            let queue = at(QUEUE_START).map(|from| (from, compute.map_or(end, |(to, _)| to)));
            let spans = [
                Some((model.as_str(), begin, end, args)),
                queue.map(|(from, to)| ("queue", from, to, json!({}))),
                compute.map(|(from, to)| ("compute", from, to, json!({}))),
            ];
            for (name, from, to, args) in spans.into_iter().flatten() {
                self.nested(&json!(entry.trace), name, from, to, &args, &mut out);
            }
        }
        out
    }
}

#[cfg(any(target_os = "macos", feature = "gpu"))]
mod runs {
    use std::time::Duration;

    use galatea_gpu::RunRecord;
    use galatea_runtime::ArithmeticWork;
    use serde_json::{Value, json};

    use super::{EventMaker, GPUS, TimelineRow};
    use crate::profile::WaitingThread;

    impl EventMaker {
        /// A run: what the host did on the row of its thread, and kernels on the row of the queue.
        pub(super) fn run(&mut self, run: &RunRecord, host: &WaitingThread) -> Vec<Value> {
            let mut out = Vec::with_capacity(run.kernels.len() + 8);
            let row = self.host_row(host, &mut out);
            let queue = TimelineRow { process: GPUS + run.device as u64, thread: 1 };
            let name = format!("GPU {} {}", run.device, self.gpus.name(run.device));
            self.introduce(queue, &name, "queue", &mut out);
            self.host(run, row, &mut out);
            let all = run
                .kernels
                .iter()
                .map(|kernel| kernel.work)
                .fold(ArithmeticWork::default(), ArithmeticWork::plus);
            let mut args = rates(all, run.time);
            args["kernels"] = run.kernels.len().into();
            out.push(self.span(queue, "run", &run.model, run.begin, run.time, args));
            let end = run.begin + run.time;
            for (label, kernel) in run.labels.iter().zip(&run.kernels) {
                let mut args = rates(kernel.work, kernel.time);
                args["node"] = label.node.as_str().into();
                args["operator"] = label.op.as_str().into();
                args["shapes"] = label.shapes.as_str().into();
                args["unit"] = label.unit.name().into();
                let time = kernel.time.min(end.saturating_duration_since(kernel.begin));
                out.push(self.span(queue, "kernel", &label.kernel, kernel.begin, time, args));
            }
            out
        }

        fn host(&self, run: &RunRecord, row: TimelineRow, out: &mut Vec<Value>) {
            let host = run.host;
            let device = json!({"gpu": run.device});
            let whole = host.end - host.begin;
            out.push(self.span(row, "host", &run.model, host.begin, whole, device));
            for (name, from, to) in [
                ("prepare", host.begin, host.encode),
                ("encode", host.encode, host.submit),
                ("submit", host.submit, host.submitted),
                ("wait", host.wait, host.done),
                ("read", host.done, host.end),
            ] {
                out.push(self.span(row, "host", name, from, to - from, json!({})));
            }
        }
    }

    /// Renders work, in total and per second.
    fn rates(work: ArithmeticWork, time: Duration) -> Value {
        let seconds = time.as_secs_f64().max(1e-9);
        json!({
            "flop": work.operations,
            "bytes": work.bytes,
            "gflops": work.operations as f64 / seconds / 1e9,
            "gb_per_s": work.bytes as f64 / seconds / 1e9,
        })
    }
}

#[cfg(test)]
mod tests {
    use galatea_llm::observe::EngineOutcome;

    use super::*;

    /// Name, phase and time of what is told of requests.
    fn spans(events: &[Value]) -> Vec<(&str, &str, f64)> {
        let requests = events.iter().filter(|event| event["cat"] == "request");
        requests
            .map(|event| {
                let ts = event["ts"].as_f64().unwrap();
                (event["name"].as_str().unwrap(), event["ph"].as_str().unwrap(), ts)
            })
            .collect()
    }

    #[test]
    fn a_request_of_an_engine_has_its_phases_inside() {
        let mut events = EventMaker::new(Arc::default());
        let from = Instant::now();
        let at = |us: u64| from + Duration::from_micros(us);
        let mut request = RequestRecord {
            number: 3,
            id: "r".to_owned(),
            submitted: at(0),
            admitted: Some(at(10)),
            first_token: Some(at(30)),
            end: at(70),
            prompt_tokens: 5,
            cached_tokens: 2,
            completion_tokens: 4,
            outcome: EngineOutcome::Finished,
        };
        let phases = |events: &mut EventMaker, request: &RequestRecord| -> Vec<(String, f64)> {
            let all = events.generation("m", request);
            let found = spans(&all);
            let mut lengths = Vec::new();
            for pair in found.chunks(2) {
                let [(name, "b", from), (same, "e", to)] = pair else { panic!("{found:?}") };
                assert_eq!(name, same);
                lengths.push(((*name).to_owned(), (to - from).round()));
            }
            lengths
        };
        let named = |all: &[(&str, f64)]| -> Vec<(String, f64)> {
            all.iter().map(|(name, time)| ((*name).to_owned(), *time)).collect()
        };
        assert_eq!(
            phases(&mut events, &request),
            named(&[("m", 70.0), ("queue", 10.0), ("prefill", 20.0), ("decode", 40.0)])
        );
        let all = events.generation("m", &request);
        assert_eq!((&all[0]["id"], &all[0]["args"]["request_id"]), (&json!("m/3"), &json!("r")));
        assert_eq!(all[0]["args"]["outcome"], "finished");
        // An encoder has no tokens, and what is taken back may not have begun.
        (request.first_token, request.completion_tokens) = (None, 0);
        assert_eq!(
            phases(&mut events, &request),
            named(&[("m", 70.0), ("queue", 10.0), ("compute", 60.0)])
        );
        request.admitted = None;
        assert_eq!(phases(&mut events, &request), named(&[("m", 70.0), ("queue", 70.0)]));
    }

    #[test]
    fn a_step_lies_on_the_row_of_its_thread() {
        let mut events = EventMaker::new(Arc::default());
        let begin = Instant::now();
        let end = begin + Duration::from_micros(12);
        let step = StepRecord { begin, end, tokens: 9, sequences: vec![1, 4] };
        let host = WaitingThread::current();
        let all = events.step("m", &step, &host);
        let again = events.step("m", &step, &host);
        assert_eq!((all.len(), again.len()), (3, 1), "the row is named once");
        let span = &all[2];
        assert_eq!(
            (&span["ph"], &span["name"], &span["dur"]),
            (&json!("X"), &json!("step"), &json!(12.0))
        );
        let expected = json!({"model": "m", "tokens": 9, "rows": 2, "sequences": [1, 4]});
        assert_eq!(span["args"], expected);
    }

    #[test]
    fn the_row_of_requests_is_named_beside_its_process() {
        let mut events = EventMaker::new(Arc::default());
        let mut out = Vec::new();
        events.introduce(REQUESTS, "host", "requests", &mut out);
        events.introduce(REQUESTS, "host", "requests", &mut out);
        let named: Vec<(&str, &str)> = out
            .iter()
            .map(|event| (event["name"].as_str().unwrap(), event["args"]["name"].as_str().unwrap()))
            .collect();
        assert_eq!(named, [("process_name", "host"), ("thread_name", "requests")]);
    }

    #[test]
    fn a_request_has_its_queue_and_its_work_inside() {
        let stamp = |trace, name, ns| TraceEntry { trace, event: TraceEvent::Stamp { name, ns } };
        let mut events = EventMaker::new(Arc::default());
        let at = |us: u64| events.start_ns + us * 1000;
        let began = TraceEvent::Began {
            model: "m".to_owned(),
            version: "1".to_owned(),
            request_id: "r".to_owned(),
            parent: None,
        };
        let entries = [
            TraceEntry { trace: 7, event: began },
            stamp(7, REQUEST_START, at(10)),
            stamp(7, QUEUE_START, at(11)),
            stamp(7, COMPUTE_START, at(20)),
            stamp(7, COMPUTE_END, at(30)),
            stamp(7, REQUEST_END, at(35)),
        ];
        let all = events.request(&entries);
        assert_eq!(
            spans(&all),
            [
                ("m", "b", 10.0),
                ("m", "e", 35.0),
                ("queue", "b", 11.0),
                ("queue", "e", 20.0),
                ("compute", "b", 20.0),
                ("compute", "e", 30.0),
            ]
        );
    }
}
