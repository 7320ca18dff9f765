//! Requests for predictions, and their results.

use std::fmt;
#[cfg(any(target_os = "macos", apple_doubles, test))]
use std::sync::{Arc, Mutex, PoisonError};

use super::{CoreMlFault, CoreMlFaultKind, MultiArray, PredictionState};

/// A prediction whose arrays stay with the caller.
#[derive(Debug, Default)]
pub struct Prediction<'a> {
    /// The inputs by name.
    pub inputs: &'a [(&'a str, &'a MultiArray)],
    /// Arrays proposed for the results, by the outputs' names; Core ML may decline them.
    pub backings: &'a mut [(&'a str, &'a mut MultiArray)],
    /// State, for a model with states.
    pub state: Option<&'a mut PredictionState>,
}

/// A prediction that is under way while the caller does something else, so it owns its arrays.
#[derive(Debug, Default)]
pub struct PredictionSubmission {
    /// The inputs by name.
    pub inputs: Vec<(String, MultiArray)>,
    /// Arrays proposed for the results, by the outputs' names; Core ML may decline them.
    pub backings: Vec<(String, MultiArray)>,
    /// State, for a model with states.
    pub state: Option<PredictionState>,
}

/// A submission that has ended.
#[derive(Debug)]
pub struct CompletedPrediction {
    /// Submission, given back.
    pub submission: PredictionSubmission,
    /// The outputs, as [`LoadedModel::predict`](super::LoadedModel::predict) gives them.
    pub result: Result<Vec<(String, PredictionOutput)>, CoreMlFault>,
}

/// Told once when a submission has ended, on a thread of Core ML's.
pub type SubmissionCallback = Box<dyn FnOnce(CompletedPrediction) + Send>;

/// One result.
#[derive(Debug)]
#[non_exhaustive]
pub enum PredictionOutput {
    /// It lies in the array that was proposed for it.
    Backed,
    /// An array of Core ML's.
    Array(MultiArray),
    /// Text, such as a classifier's label.
    String(String),
    /// An integer, such as a classifier's label.
    Int64(i64),
    /// A number.
    Double(f64),
    /// Numbers by label, such as a classifier's probabilities; in no order.
    Dictionary(Vec<(LabelKeyKind, f64)>),
    /// The model gives no value.
    Undefined,
}

/// A label.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LabelKeyKind {
    /// Label as text.
    String(String),
    /// Label as an integer.
    Int64(i64),
}

/// A submission under way, which is answered once: where Core ML forgets it, by an error.
pub(super) struct PendingSubmission(Option<(PredictionSubmission, SubmissionCallback)>);

impl fmt::Debug for PendingSubmission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pending").field(&self.0.as_ref().map(|(submission, _)| submission)).finish()
    }
}

impl PendingSubmission {
    pub(super) fn new(submission: PredictionSubmission, done: SubmissionCallback) -> Self {
        Self(Some((submission, done)))
    }

    /// Answers with what `result` makes of the submission.
    pub(super) fn finish(
        mut self,
        result: impl FnOnce(
            &PredictionSubmission,
        ) -> Result<Vec<(String, PredictionOutput)>, CoreMlFault>,
    ) {
        if let Some((submission, done)) = self.0.take() {
            let result = result(&submission);
            done(CompletedPrediction { submission, result });
        }
    }

    /// Returns the submission.
    #[cfg(any(target_os = "macos", apple_doubles))]
    pub(super) fn submission(&self) -> Option<&PredictionSubmission> {
        self.0.as_ref().map(|(submission, _)| submission)
    }
}

impl Drop for PendingSubmission {
    fn drop(&mut self) {
        if let Some((submission, done)) = self.0.take() {
            let text = "Core ML has ended the prediction without an answer";
            let result = Err(CoreMlFault::new(CoreMlFaultKind::Predict, text));
            done(CompletedPrediction { submission, result });
        }
    }
}

/// Place that holds a submission while Core ML has it. Its handler and whoever started it share the place, and
/// the first of them to finish answers: where Core ML raises an exception it may never let go of the handler.
#[cfg(any(target_os = "macos", apple_doubles, test))]
#[derive(Debug, Clone)]
pub(super) struct SubmissionSlot(Arc<Mutex<Option<PendingSubmission>>>);

#[cfg(any(target_os = "macos", apple_doubles, test))]
impl SubmissionSlot {
    pub(super) fn new(pending: PendingSubmission) -> Self {
        Self(Arc::new(Mutex::new(Some(pending))))
    }

    /// Calls `look` with the submission; none where it has been answered.
    #[cfg(any(target_os = "macos", apple_doubles))]
    pub(super) fn with<R>(&self, look: impl FnOnce(&PredictionSubmission) -> R) -> Option<R> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.as_ref().and_then(PendingSubmission::submission).map(look)
    }

    /// Answers with what `result` makes of the submission, unless it has been answered.
    pub(super) fn finish(
        &self,
        result: impl FnOnce(
            &PredictionSubmission,
        ) -> Result<Vec<(String, PredictionOutput)>, CoreMlFault>,
    ) {
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(pending) = taken {
            pending.finish(result);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn pending() -> (PendingSubmission, mpsc::Receiver<CompletedPrediction>) {
        let (sender, receiver) = mpsc::channel();
        let done = Box::new(move |completed| sender.send(completed).unwrap());
        (PendingSubmission::new(PredictionSubmission::default(), done), receiver)
    }

    #[test]
    fn a_finished_submission_is_answered_once() {
        let (pending, answers) = pending();
        pending.finish(|_| Ok(vec![("n".to_owned(), PredictionOutput::Int64(3))]));
        let outputs = answers.recv().unwrap().result.unwrap();
        assert!(matches!(outputs[..], [(_, PredictionOutput::Int64(3))]));
        assert!(answers.recv().is_err());
    }

    #[test]
    fn a_submission_whose_handler_is_never_let_go_is_answered_by_the_other_holder_and_once() {
        let (pending, answers) = pending();
        let slot = SubmissionSlot::new(pending);
        let handler = std::mem::ManuallyDrop::new(slot.clone());
        let fault = CoreMlFault::new(CoreMlFaultKind::Predict, "prediction: an exception");
        slot.finish(|_| Err(fault));
        handler.finish(|_| Ok(Vec::new()));
        assert_eq!(answers.recv().unwrap().result.unwrap_err().text, "prediction: an exception");
        assert!(answers.recv().is_err());
    }

    #[test]
    fn a_forgotten_submission_is_answered_with_an_error() {
        let (pending, answers) = pending();
        drop(pending);
        let fault = answers.recv().unwrap().result.unwrap_err();
        assert_eq!(fault.kind, CoreMlFaultKind::Predict);
        assert!(answers.recv().is_err());
    }
}
