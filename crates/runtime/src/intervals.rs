//! Intervals of work that a tool of the system records as they happen, such as Instruments.
//!
//! A profile hears of work when it is over. A recorder is told of its begin and of its end, each on the thread where
//! that happens. While nobody records, an interval costs one question of the recorder; where a system has none, one look
//! at an empty field.

use std::fmt;
use std::sync::Arc;

/// Kind of work that an interval covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum IntervalKind {
    /// A request, from its acceptance to its last answer.
    Request,
    /// A batch on an instance of a model.
    Batch,
    /// A step of an engine for language models or encoders.
    EngineStep,
    /// A part of a graph on its provider.
    Partition,
    /// An operator on the CPU.
    Operator,
    /// A run on a GPU, from its encoding until its outputs are there.
    GpuRun,
    /// A prediction of Core ML.
    Prediction,
}

impl IntervalKind {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::Request,
        Self::Batch,
        Self::EngineStep,
        Self::Partition,
        Self::Operator,
        Self::GpuRun,
        Self::Prediction,
    ];
}

/// Number by which the begin and the end of an interval are paired.
pub type IntervalNumber = u64;

/// Records begins and ends as they happen. Calls come from any thread, and must not block.
pub trait IntervalRecorder: Send + Sync {
    /// Returns whether somebody records at present.
    fn is_recording(&self) -> bool;

    /// Records the begin of an interval; `what` says of what, such as the model's name. Returns its number.
    fn begin(&self, kind: IntervalKind, what: &str) -> IntervalNumber;

    /// Records the end of an interval that began under this number.
    fn end(&self, kind: IntervalKind, number: IntervalNumber);
}

/// Recorder of intervals, where the system has one.
#[derive(Clone, Default)]
pub struct IntervalSource(pub Option<Arc<dyn IntervalRecorder>>);

impl fmt::Debug for IntervalSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("IntervalSource").field(&self.0.is_some()).finish()
    }
}

impl IntervalSource {
    /// Returns whether somebody records at present.
    #[must_use]
    pub fn is_recording(&self) -> bool {
        self.0.as_ref().is_some_and(|recorder| recorder.is_recording())
    }

    /// Begins an interval, which ends when the value is dropped, on whatever thread. `None` while nobody records.
    #[must_use]
    pub fn begin(&self, kind: IntervalKind, what: &str) -> Option<RecordedInterval> {
        let recorder = self.0.as_ref().filter(|recorder| recorder.is_recording())?;
        let number = recorder.begin(kind, what);
        Some(RecordedInterval { recorder: Arc::clone(recorder), kind, number })
    }
}

/// An interval that has begun. It ends when this is dropped.
#[must_use = "the interval ends when this is dropped"]
pub struct RecordedInterval {
    recorder: Arc<dyn IntervalRecorder>,
    kind: IntervalKind,
    number: IntervalNumber,
}

impl fmt::Debug for RecordedInterval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordedInterval")
            .field("kind", &self.kind)
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

impl Drop for RecordedInterval {
    fn drop(&mut self) {
        self.recorder.end(self.kind, self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[derive(Default)]
    struct ListedIntervals {
        on: AtomicBool,
        told: Mutex<Vec<String>>,
    }

    impl IntervalRecorder for ListedIntervals {
        fn is_recording(&self) -> bool {
            self.on.load(Ordering::Relaxed)
        }

        fn begin(&self, kind: IntervalKind, what: &str) -> IntervalNumber {
            let mut told = self.told.lock().unwrap();
            told.push(format!("{kind:?} {what}"));
            told.len() as u64
        }

        fn end(&self, kind: IntervalKind, number: IntervalNumber) {
            self.told.lock().unwrap().push(format!("{kind:?} ends {number}"));
        }
    }

    #[test]
    fn intervals_are_told_while_somebody_records_and_end_even_after_that() {
        assert!(IntervalSource::default().begin(IntervalKind::Batch, "m").is_none());
        let listed = Arc::new(ListedIntervals::default());
        let source = IntervalSource(Some(Arc::clone(&listed) as Arc<dyn IntervalRecorder>));
        assert!(source.begin(IntervalKind::Batch, "m").is_none() && !source.is_recording());
        listed.on.store(true, Ordering::Relaxed);
        let outer = source.begin(IntervalKind::Request, "m");
        let inner = source.begin(IntervalKind::Batch, "m");
        std::thread::spawn(move || drop(inner)).join().unwrap();
        listed.on.store(false, Ordering::Relaxed);
        drop(outer);
        let told = listed.told.lock().unwrap();
        assert_eq!(*told, ["Request m", "Batch m", "Batch ends 2", "Request ends 1"]);
    }
}
