//! The file of traces in Triton's form: one JSON array of entries that an id joins.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use galatea_serving::trace::{TraceEntry, TraceEvent, TraceSink};

use crate::json;

/// Traces that may wait for the disk; when it is slower for long, requests wait for it.
const QUEUE: usize = 1024;

/// A finished trace, and how many belong in one file.
struct FinishedTrace {
    entries: Vec<TraceEntry>,
    frequency: u32,
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
    pub(super) fn sink(self: &Arc<Self>, frequency: u32) -> Arc<dyn TraceSink> {
        Arc::new(FileSink { file: Arc::clone(self), frequency })
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
            queue.send(FinishedTrace { entries, frequency: self.frequency }).ok();
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
    failed: bool,
}

/// A JSON array that grows.
struct GrowingArray {
    out: BufWriter<File>,
    empty: bool,
}

impl GrowingArray {
    fn create(path: &str) -> io::Result<Self> {
        let mut out = BufWriter::new(File::create(path)?);
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
                let path = format!("{}.{}", self.path, self.next_part);
                self.next_part += 1;
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
            file.sink(2).finished(stamp(id));
            file.sink(0).finished(stamp(id + 10));
        }
        file.close();
        file.sink(0).finished(stamp(9));
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
