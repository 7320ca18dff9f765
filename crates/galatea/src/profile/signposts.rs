//! Recorder of intervals that hands them to Instruments.

use galatea_runtime::IntervalSource;

/// Returns the system's recorder: signposts on macOS, none elsewhere.
pub(super) fn source() -> IntervalSource {
    #[cfg(any(target_os = "macos", apple_doubles))]
    return recorder::source();
    #[cfg(not(any(target_os = "macos", apple_doubles)))]
    IntervalSource(None)
}

#[cfg(any(target_os = "macos", apple_doubles))]
mod recorder {
    use std::sync::Arc;

    use galatea_apple::signpost::{SignpostLog, SignpostName};
    use galatea_runtime::{IntervalKind, IntervalNumber, IntervalRecorder, IntervalSource};

    /// Signposts of this program.
    struct SignpostRecorder(SignpostLog);

    pub(super) fn source() -> IntervalSource {
        match SignpostLog::open() {
            Ok(log) => IntervalSource(Some(Arc::new(SignpostRecorder(log)))),
            Err(why) => {
                tracing::debug!("there are no signposts: {why}");
                IntervalSource(None)
            }
        }
    }

    fn name(kind: IntervalKind) -> SignpostName {
        match kind {
            IntervalKind::Request => SignpostName::Request,
            IntervalKind::Batch => SignpostName::Batch,
            IntervalKind::EngineStep => SignpostName::EngineStep,
            IntervalKind::Partition => SignpostName::Partition,
            IntervalKind::Operator => SignpostName::Operator,
            IntervalKind::GpuRun => SignpostName::GpuRun,
            IntervalKind::Prediction => SignpostName::Prediction,
        }
    }

    impl IntervalRecorder for SignpostRecorder {
        fn is_recording(&self) -> bool {
            self.0.is_enabled()
        }

        fn begin(&self, kind: IntervalKind, what: &str) -> IntervalNumber {
            self.0.begin(name(kind), what)
        }

        fn end(&self, kind: IntervalKind, number: IntervalNumber) {
            self.0.end(name(kind), number);
        }
    }
}
