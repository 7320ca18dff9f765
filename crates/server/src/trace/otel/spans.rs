//! From the entries of a trace to nested spans: `InferRequest` around everything, one span for each model, and
//! `compute` inside it.

use galatea_tensor::OrderedMap;

use galatea_serving::trace::{
    COMPUTE_END, COMPUTE_INPUT_END, COMPUTE_OUTPUT_START, COMPUTE_START, INFER_RESPONSE_COMPLETE,
    QUEUE_START, REQUEST_END, REQUEST_START, TraceEntry, TraceEvent,
};

use super::context::{TraceParent, new_span_id, new_trace_id};
use super::proto::{SERVER, Span, SpanEvent, int, text};

/// Entries about one of the traces.
#[derive(Default)]
struct EntrySpans<'a> {
    began: Option<(&'a str, &'a str, &'a str, Option<u64>)>,
    stamps: Vec<(&'static str, u64)>,
    tensors: Vec<SpanEvent>,
}

impl EntrySpans<'_> {
    fn at(&self, wanted: &str) -> Option<u64> {
        self.stamps.iter().find(|(name, _)| *name == wanted).map(|&(_, ns)| ns)
    }

    fn last(&self) -> Option<u64> {
        self.stamps.iter().map(|&(_, ns)| ns).max()
    }

    fn events(&self, belongs: impl Fn(&str) -> bool) -> Vec<SpanEvent> {
        let mine = self.stamps.iter().filter(|(name, _)| belongs(name));
        mine.map(|&(name, ns)| event(name, ns)).collect()
    }
}

fn event(name: &str, ns: u64) -> SpanEvent {
    SpanEvent { time_unix_nano: ns, name: name.to_owned(), attributes: Vec::new() }
}

/// Spans that a backend makes itself: a stage `NAME_START` opens one inside the last that is open, and `NAME_END` closes
/// it. Stages outside of all of them are the model's.
struct CustomSpans {
    spans: Vec<Span>,
    loose: Vec<SpanEvent>,
}

impl CustomSpans {
    fn of(part: &EntrySpans<'_>, model: [u8; 8]) -> Self {
        let mut custom = Self { spans: Vec::new(), loose: Vec::new() };
        let mut open: Vec<usize> = Vec::new();
        for &(name, ns) in part.stamps.iter().filter(|(name, _)| is_custom(name)) {
            let outer = open.last().copied();
            if let Some(title) = name.strip_suffix("_START") {
                let outer = outer.and_then(|at| custom.spans.get(at));
                let parent_span_id = outer.map_or(model.to_vec(), |span| span.span_id.clone());
                open.push(custom.spans.len());
                custom.spans.push(Span {
                    span_id: new_span_id().to_vec(),
                    parent_span_id,
                    name: title.to_owned(),
                    kind: SERVER,
                    start_time_unix_nano: ns,
                    end_time_unix_nano: ns,
                    events: vec![event(name, ns)],
                    ..Span::default()
                });
                continue;
            }
            match outer.and_then(|at| custom.spans.get_mut(at)) {
                Some(span) => {
                    span.events.push(event(name, ns));
                    span.end_time_unix_nano = ns;
                    if name.strip_suffix("_END") == Some(span.name.as_str()) {
                        open.pop();
                    }
                }
                None => custom.loose.push(event(name, ns)),
            }
        }
        custom
    }
}

/// Stages inside the `compute` span.
const COMPUTE: [&str; 4] = [COMPUTE_START, COMPUTE_INPUT_END, COMPUTE_OUTPUT_START, COMPUTE_END];

/// Stages of the front end, and the response to the client, which recorded Triton shows there too.
fn is_outer(stage: &str) -> bool {
    stage.starts_with("HTTP_") || stage.starts_with("GRPC_") || stage == INFER_RESPONSE_COMPLETE
}

/// Returns whether neither a front end nor the core has such a stage.
fn is_custom(stage: &str) -> bool {
    let of_core = [REQUEST_START, QUEUE_START, REQUEST_END];
    !is_outer(stage) && !COMPUTE.contains(&stage) && !of_core.contains(&stage)
}

/// The spans of a request and of all that it caused, the outermost first.
pub(super) fn spans(entries: &[TraceEntry], parent: Option<TraceParent>) -> Vec<Span> {
    let mut parts = OrderedMap::<u64, EntrySpans<'_>>::new();
    let mut now = 0;
    for entry in entries {
        let part = parts.entry(entry.trace).or_default();
        match &entry.event {
            TraceEvent::Began { model, version, request_id, parent } => {
                part.began = Some((model, version, request_id, *parent));
            }
            TraceEvent::Stamp { name, ns } => {
                now = now.max(*ns);
                part.stamps.push((name, *ns));
            }
            TraceEvent::Tensor { activity, tensor } => part.tensors.push(SpanEvent {
                // A tensor has no time of its own: it passed right after the stamp before it.
                time_unix_nano: now,
                name: (*activity).to_owned(),
                attributes: vec![
                    text("triton.tensor.name", &tensor.name),
                    text("triton.tensor.shape", &tensor.shape),
                    text("triton.tensor.dtype", tensor.datatype),
                    text("triton.tensor.data", &tensor.data),
                ],
            }),
        }
    }
    let trace_id = parent.map_or_else(new_trace_id, |parent| parent.trace_id);
    let mut ids = OrderedMap::new();
    let mut spans = Vec::new();
    // A child's number is greater than its parent's, so parents come first.
    for (&id, part) in &parts {
        let Some((_, _, _, cause)) = part.began else { continue };
        let outer = match cause.and_then(|cause| ids.get(&cause).copied()) {
            Some(outer) => outer,
            None => {
                let root = root(part, parent);
                let outer: [u8; 8] = root.span_id.as_slice().try_into().unwrap_or_default();
                spans.push(root);
                outer
            }
        };
        let own = new_span_id();
        ids.insert(id, own);
        spans.extend(model(id, part, own, outer));
    }
    for span in &mut spans {
        span.trace_id = trace_id.to_vec();
    }
    enclose(&mut spans);
    spans
}

/// Makes every span last as long as those in it: a step of an ensemble is let go of after the answer has gone.
fn enclose(spans: &mut [Span]) {
    for at in (1..spans.len()).rev() {
        let (before, rest) = spans.split_at_mut(at);
        let Some(child) = rest.first() else { continue };
        let mut outer = before.iter_mut();
        if let Some(outer) = outer.find(|outer| outer.span_id == child.parent_span_id) {
            outer.end_time_unix_nano = outer.end_time_unix_nano.max(child.end_time_unix_nano);
        }
    }
}

/// The span of the whole request at its front end.
fn root(part: &EntrySpans<'_>, parent: Option<TraceParent>) -> Span {
    let start = part.stamps.iter().map(|&(_, ns)| ns).min().unwrap_or(0);
    Span {
        span_id: new_span_id().to_vec(),
        parent_span_id: parent.map(|parent| parent.span_id.to_vec()).unwrap_or_default(),
        name: "InferRequest".to_owned(),
        kind: SERVER,
        start_time_unix_nano: start,
        end_time_unix_nano: part.last().unwrap_or(start),
        events: part.events(is_outer),
        ..Span::default()
    }
}

/// The span of a model and, where it computed, that of the computation.
fn model(id: u64, part: &EntrySpans<'_>, own: [u8; 8], outer: [u8; 8]) -> Vec<Span> {
    let Some((name, version, request_id, cause)) = part.began else { return Vec::new() };
    let mut attributes = vec![
        text("triton.model_name", name),
        int("triton.model_version", version.parse().unwrap_or(0)),
        int("triton.trace_id", id),
        int("triton.trace_parent_id", cause.unwrap_or(0)),
    ];
    if !request_id.is_empty() {
        attributes.push(text("triton.request_id", request_id));
    }
    let start = part.at(REQUEST_START).unwrap_or(0);
    let inner = |stage: &str| {
        !COMPUTE.contains(&stage) && !is_custom(stage) && (cause.is_some() || !is_outer(stage))
    };
    let CustomSpans { spans: custom, loose } = CustomSpans::of(part, own);
    let mut events = part.events(inner);
    events.extend(loose);
    events.extend(part.tensors.iter().cloned());
    let mut spans = vec![Span {
        span_id: own.to_vec(),
        parent_span_id: outer.to_vec(),
        name: name.to_owned(),
        kind: SERVER,
        start_time_unix_nano: start,
        end_time_unix_nano: part.at(REQUEST_END).or_else(|| part.last()).unwrap_or(start),
        attributes,
        events,
        ..Span::default()
    }];
    if let Some(start) = part.at(COMPUTE_START) {
        spans.push(Span {
            span_id: new_span_id().to_vec(),
            parent_span_id: own.to_vec(),
            name: "compute".to_owned(),
            kind: SERVER,
            start_time_unix_nano: start,
            end_time_unix_nano: part.at(COMPUTE_END).unwrap_or(start),
            events: part.events(|stage| COMPUTE.contains(&stage)),
            ..Span::default()
        });
    }
    spans.extend(custom);
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(trace: u64, name: &'static str, ns: u64) -> TraceEntry {
        TraceEntry { trace, event: TraceEvent::Stamp { name, ns } }
    }

    fn began(trace: u64, model: &str, parent: Option<u64>) -> TraceEntry {
        let model = model.to_owned();
        let version = "3".to_owned();
        TraceEntry {
            trace,
            event: TraceEvent::Began { model, version, request_id: "r".to_owned(), parent },
        }
    }

    #[test]
    fn spans_nest_as_models_call_each_other() {
        let entries = [
            stamp(4, "HTTP_RECV_START", 10),
            began(4, "ensemble", None),
            stamp(4, REQUEST_START, 20),
            began(5, "step", Some(4)),
            stamp(5, REQUEST_START, 30),
            stamp(5, COMPUTE_START, 40),
            stamp(5, COMPUTE_END, 50),
            stamp(4, REQUEST_END, 60),
            stamp(5, REQUEST_END, 70),
            stamp(4, INFER_RESPONSE_COMPLETE, 75),
            stamp(4, "HTTP_SEND_END", 80),
        ];
        let parent = TraceParent { trace_id: [1; 16], span_id: [2; 8], sampled: true };
        let spans = spans(&entries, Some(parent));
        let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
        assert_eq!(names, ["InferRequest", "ensemble", "step", "compute"]);
        assert!(spans.iter().all(|span| span.trace_id == [1; 16]));
        assert_eq!(spans[0].parent_span_id, [2; 8]);
        for (child, parent) in [(1, 0), (2, 1), (3, 2)] {
            let (child, parent): (&Span, &Span) = (&spans[child], &spans[parent]);
            assert_eq!(child.parent_span_id, parent.span_id);
            assert!(parent.start_time_unix_nano <= child.start_time_unix_nano);
            assert!(parent.end_time_unix_nano >= child.end_time_unix_nano);
        }
        let attributes = &spans[2].attributes;
        assert!(attributes.contains(&text("triton.model_name", "step")));
        assert!(attributes.contains(&int("triton.trace_parent_id", 4)));
        assert!(attributes.contains(&text("triton.request_id", "r")));
        let events: Vec<&str> = spans[0].events.iter().map(|event| event.name.as_str()).collect();
        assert_eq!(events, ["HTTP_RECV_START", INFER_RESPONSE_COMPLETE, "HTTP_SEND_END"]);
        assert_eq!(spans[3].events.len(), 2);
    }

    #[test]
    fn a_backends_own_stages_are_spans_inside_each_other() {
        let entries = [
            began(4, "m", None),
            stamp(4, REQUEST_START, 20),
            stamp(4, "LOAD", 25),
            stamp(4, "A_START", 30),
            stamp(4, "B_START", 40),
            stamp(4, "NOTE", 45),
            stamp(4, "B_END", 50),
            stamp(4, "A_END", 60),
            stamp(4, "C_START", 65),
            stamp(4, COMPUTE_START, 28),
            stamp(4, COMPUTE_END, 70),
            stamp(4, REQUEST_END, 80),
        ];
        let spans = spans(&entries, None);
        let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
        assert_eq!(names, ["InferRequest", "m", "compute", "A", "B", "C"]);
        let events = |at: usize| -> Vec<&str> {
            spans[at].events.iter().map(|event| event.name.as_str()).collect()
        };
        assert_eq!(events(1), [REQUEST_START, REQUEST_END, "LOAD"]);
        assert_eq!(events(2), [COMPUTE_START, COMPUTE_END]);
        assert_eq!(events(3), ["A_START", "A_END"]);
        assert_eq!(events(4), ["B_START", "NOTE", "B_END"]);
        assert_eq!(events(5), ["C_START"]);
        for (child, parent) in [(3, 1), (4, 3), (5, 1)] {
            assert_eq!(spans[child].parent_span_id, spans[parent].span_id);
        }
        let times: Vec<(u64, u64)> = spans
            .iter()
            .skip(3)
            .map(|span| (span.start_time_unix_nano, span.end_time_unix_nano))
            .collect();
        assert_eq!(times, [(30, 60), (40, 50), (65, 65)]);
    }
}
