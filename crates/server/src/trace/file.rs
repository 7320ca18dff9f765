//! The file of traces in Triton's form: one JSON array of entries that an id joins.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use galatea_serving::trace::{TraceEntry, TraceEvent, TraceSink};
use galatea_tensor::OrderedMap;

use super::settings::CountMark;
use crate::json;
use crate::logging::private;

/// Traces that may wait for the disk; when it is slower for long, requests wait for it.
const QUEUE: usize = 1024;

/// Most counts that are followed.
const MAX_COUNTS: usize = 64;

/// A finished trace, and how many belong in one file.
struct FinishedTrace {
    entries: Vec<TraceEntry>,
    frequency: u32,
    mark: Option<CountMark>,
}

/// The thread that writes traces, and the way to it.
#[derive(Debug)]
pub(super) struct TraceFile {
    queue: Mutex<Option<SyncSender<FinishedTrace>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Gives one trace to the writer.
#[derive(Debug)]
struct FileSink {
    file: Arc<TraceFile>,
    frequency: u32,
    mark: Option<CountMark>,
}

impl TraceFile {
    /// Starts the thread.
    ///
    /// # Errors
    /// Fails when the system gives no thread.
    pub(super) fn start(path: &str) -> Result<Arc<Self>, String> {
        let (queue, inbox) = sync_channel(QUEUE);
        let writer = TraceFileWriter { path: path.to_owned(), ..TraceFileWriter::default() };
        let thread = std::thread::Builder::new()
            .name("trace-writer".to_owned())
            .spawn(move || writer.run(&inbox))
            .map_err(|error| format!("cannot start the thread that writes traces: {error}"))?;
        let queue = Mutex::new(Some(queue));
        Ok(Arc::new(Self { queue, thread: Mutex::new(Some(thread)) }))
    }

    /// Returns the sink of one trace.
    pub(super) fn sink(
        self: &Arc<Self>,
        frequency: u32,
        mark: Option<CountMark>,
    ) -> Arc<dyn TraceSink> {
        Arc::new(FileSink { file: Arc::clone(self), frequency, mark })
    }

    /// Writes what waits and ends the arrays. Traces that finish later are lost.
    pub(super) fn close(&self) {
        drop(self.queue.lock().unwrap_or_else(PoisonError::into_inner).take());
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that writes traces panicked");
        }
    }
}

impl Drop for TraceFile {
    fn drop(&mut self) {
        self.close();
    }
}

impl TraceSink for FileSink {
    fn finished(&self, entries: Vec<TraceEntry>) {
        let queue = self.file.queue.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(queue) = queue {
            // The writer ends only after the queue is closed.
            let FileSink { frequency, mark, .. } = *self;
            queue.send(FinishedTrace { entries, frequency, mark }).ok();
        }
    }
}

/// Owner of the files.
#[derive(Default)]
struct TraceFileWriter {
    path: String,
    /// The file of traces that are not split by number.
    whole: Option<GrowingArray>,
    /// The file that is being filled, and the traces in it.
    part: Option<(GrowingArray, u32)>,
    next_part: u64,
    /// Counts of which not all traces are there yet.
    counts: OrderedMap<u64, CollectedCount>,
    failed: bool,
}

/// Traces of a count that are written.
#[derive(Default)]
struct CollectedCount {
    written: u32,
    total: Option<u32>,
}

/// A JSON array that grows.
struct GrowingArray {
    out: BufWriter<File>,
    empty: bool,
}

impl GrowingArray {
    fn create(path: &str) -> io::Result<Self> {
        let mut out = BufWriter::new(
            private(File::options().write(true).create(true).truncate(true)).open(path)?,
        );
        out.write_all(b"[")?;
        Ok(Self { out, empty: true })
    }

    fn add(&mut self, entries: &[TraceEntry]) -> io::Result<()> {
        let mut text = Vec::with_capacity(entries.len() * 64);
        for entry in entries {
            if !std::mem::take(&mut self.empty) {
                text.push(b',');
            }
            write_entry(&mut text, entry);
        }
        self.out.write_all(&text)
    }

    fn close(mut self) -> io::Result<()> {
        self.out.write_all(b"]")?;
        self.out.flush()
    }
}

impl TraceFileWriter {
    fn run(mut self, inbox: &Receiver<FinishedTrace>) {
        while let Ok(finished) = inbox.recv() {
            let written = self.write(&finished);
            self.report(written);
        }
        let arrays = self.whole.take().into_iter().chain(self.part.take().map(|(array, _)| array));
        let closed: Vec<io::Result<()>> = arrays.map(GrowingArray::close).collect();
        closed.into_iter().for_each(|closed| self.report(closed));
    }

    fn write(&mut self, finished: &FinishedTrace) -> io::Result<()> {
        self.add(finished)?;
        match finished.mark.is_some_and(|mark| self.completes(mark)) {
            true => self.close_counted(),
            false => Ok(()),
        }
    }

    /// Notes a written trace of a count; true where it was the last that was missing.
    fn completes(&mut self, mark: CountMark) -> bool {
        let count = self.counts.entry(mark.group).or_default();
        count.written += 1;
        count.total = count.total.or(mark.total);
        let complete = count.total == Some(count.written);
        if complete {
            self.counts.remove(&mark.group);
        }
        // Counts that were changed before they were used up stay incomplete.
        if self.counts.len() > MAX_COUNTS {
            self.counts.pop_first();
        }
        complete
    }

    /// Ends the files of a used-up count, which all have a number.
    fn close_counted(&mut self) -> io::Result<()> {
        if let Some((part, _)) = self.part.take() {
            part.close()?;
        }
        let Some(whole) = self.whole.take() else { return Ok(()) };
        whole.close()?;
        let numbered = self.next_path();
        std::fs::rename(&self.path, numbered)
    }

    /// Path of the next file with a number.
    fn next_path(&mut self) -> String {
        let path = format!("{}.{}", self.path, self.next_part);
        self.next_part += 1;
        path
    }

    fn add(&mut self, finished: &FinishedTrace) -> io::Result<()> {
        if finished.frequency == 0 {
            let array = match &mut self.whole {
                Some(array) => array,
                none => none.insert(GrowingArray::create(&self.path)?),
            };
            return array.add(&finished.entries);
        }
        let (mut array, count) = match self.part.take() {
            Some(part) => part,
            None => {
                let path = self.next_path();
                (GrowingArray::create(&path)?, 0)
            }
        };
        array.add(&finished.entries)?;
        if count + 1 >= finished.frequency {
            return array.close();
        }
        self.part = Some((array, count + 1));
        Ok(())
    }

    /// Says once that traces cannot be written.
    fn report(&mut self, result: io::Result<()>) {
        if let Err(error) = result
            && !std::mem::replace(&mut self.failed, true)
        {
            tracing::error!("failed to write traces to '{}': {error}", self.path);
        }
    }
}

fn write_entry(out: &mut Vec<u8>, entry: &TraceEntry) {
    out.extend_from_slice(b"{\"id\":");
    json::write_u64(out, entry.trace);
    match &entry.event {
        TraceEvent::Began { model, version, request_id, parent } => {
            member(out, "model_name", model);
            // Versions are numbers in this form.
            out.extend_from_slice(b",\"model_version\":");
            json::write_i64(out, version.parse().unwrap_or(-1));
            if !request_id.is_empty() {
                member(out, "request_id", request_id);
            }
            if let Some(parent) = parent {
                out.extend_from_slice(b",\"parent_id\":");
                json::write_u64(out, *parent);
            }
        }
        TraceEvent::Stamp { name, ns } => {
            out.extend_from_slice(b",\"timestamps\":[{\"name\":");
            json::write_str(out, name.as_bytes());
            out.extend_from_slice(b",\"ns\":");
            json::write_u64(out, *ns);
            out.extend_from_slice(b"}]");
        }
        TraceEvent::Tensor { activity, tensor } => {
            member(out, "activity", activity);
            out.extend_from_slice(b",\"tensor\":{\"name\":");
            json::write_str(out, tensor.name.as_bytes());
            member(out, "data", &tensor.data);
            member(out, "shape", &tensor.shape);
            member(out, "dtype", tensor.datatype);
            out.push(b'}');
        }
    }
    out.push(b'}');
}

fn member(out: &mut Vec<u8>, name: &str, value: &str) {
    out.push(b',');
    json::write_str(out, name.as_bytes());
    out.push(b':');
    json::write_str(out, value.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use galatea_serving::trace::TracedTensor;
    use std::path::PathBuf;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("galatea-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn stamp(trace: u64) -> Vec<TraceEntry> {
        vec![TraceEntry { trace, event: TraceEvent::Stamp { name: "REQUEST_START", ns: 5 } }]
    }

    #[test]
    fn files_hold_so_many_traces_and_are_whole_arrays() {
        let folder = folder("trace-parts");
        let path = folder.join("t.json");
        let file = TraceFile::start(path.to_str().unwrap()).unwrap();
        for id in 1..=3 {
            file.sink(2, None).finished(stamp(id));
            file.sink(0, None).finished(stamp(id + 10));
        }
        file.close();
        file.sink(0, None).finished(stamp(9));
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
        let entry = |id| {
            format!("{{\"id\":{id},\"timestamps\":[{{\"name\":\"REQUEST_START\",\"ns\":5}}]}}")
        };
        assert_eq!(read("t.json.0"), format!("[{},{}]", entry(1), entry(2)));
        assert_eq!(read("t.json.1"), format!("[{}]", entry(3)));
        assert_eq!(read("t.json"), format!("[{},{},{}]", entry(11), entry(12), entry(13)));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_count_that_is_used_up_makes_a_file_with_a_number() {
        let folder = folder("trace-counts");
        let path = folder.join("t.json");
        let file = TraceFile::start(path.to_str().unwrap()).unwrap();
        let sink = |group, total| file.sink(0, Some(CountMark { group, total }));
        // The last one chosen need not be the last one finished.
        sink(1, Some(3)).finished(stamp(3));
        sink(1, None).finished(stamp(1));
        sink(1, None).finished(stamp(2));
        file.sink(5, Some(CountMark { group: 2, total: Some(1) })).finished(stamp(4));
        sink(3, None).finished(stamp(5));
        file.close();
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
        let ids = |name: &str| -> Vec<u64> {
            let entries: Vec<serde_json::Value> = serde_json::from_str(&read(name)).unwrap();
            entries.iter().filter_map(|entry| entry["id"].as_u64()).collect()
        };
        assert_eq!(ids("t.json.0"), [3, 1, 2]);
        assert_eq!(ids("t.json.1"), [4]);
        assert_eq!(ids("t.json"), [5]);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn entries_have_tritons_members() {
        let text = |event| {
            let mut out = Vec::new();
            write_entry(&mut out, &TraceEntry { trace: 7, event });
            String::from_utf8(out).unwrap()
        };
        let began = |request_id: &str, parent| TraceEvent::Began {
            model: "m".to_owned(),
            version: "1".to_owned(),
            request_id: request_id.to_owned(),
            parent,
        };
        assert_eq!(text(began("", None)), r#"{"id":7,"model_name":"m","model_version":1}"#);
        assert_eq!(
            text(began("r", Some(3))),
            r#"{"id":7,"model_name":"m","model_version":1,"request_id":"r","parent_id":3}"#
        );
        let tensor = TracedTensor {
            name: "I".to_owned(),
            data: "1,2".to_owned(),
            shape: "1,2".to_owned(),
            datatype: "INT32",
        };
        assert_eq!(
            text(TraceEvent::Tensor { activity: "TENSOR_QUEUE_INPUT", tensor }),
            r#"{"id":7,"activity":"TENSOR_QUEUE_INPUT","tensor":{"name":"I","data":"1,2","shape":"1,2","dtype":"INT32"}}"#
        );
    }
}
