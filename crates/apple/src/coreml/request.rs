//! What a prediction is asked for and what it answers.

use std::fmt;

use super::{Array, CoreMlFault, CoreMlFaultKind, State};

/// A prediction whose arrays stay with the caller.
#[derive(Debug, Default)]
pub struct Prediction<'a> {
    /// The inputs by name.
    pub inputs: &'a [(&'a str, &'a Array)],
    /// Where results shall lie, by the outputs' names: a proposal, which Core ML may decline.
    pub backings: &'a mut [(&'a str, &'a mut Array)],
    /// What lasts, for a model with states.
    pub state: Option<&'a mut State>,
}

/// A prediction that is under way while the caller does something else, so it owns its arrays.
#[derive(Debug, Default)]
pub struct Submission {
    /// The inputs by name.
    pub inputs: Vec<(String, Array)>,
    /// Where results shall lie, by the outputs' names: a proposal, which Core ML may decline.
    pub backings: Vec<(String, Array)>,
    /// What lasts, for a model with states.
    pub state: Option<State>,
}

/// A submission that has ended.
#[derive(Debug)]
pub struct Completed {
    /// What was submitted, given back.
    pub submission: Submission,
    /// The outputs, as [`LoadedModel::predict`](super::LoadedModel::predict) gives them.
    pub result: Result<Vec<(String, Output)>, CoreMlFault>,
}

/// Told once when a submission has ended, on a thread of Core ML's.
pub type Done = Box<dyn FnOnce(Completed) + Send>;

/// One result.
#[derive(Debug)]
#[non_exhaustive]
pub enum Output {
    /// It lies in the array that was proposed for it.
    Backed,
    /// An array of Core ML's.
    Array(Array),
    /// Text, such as a classifier's label.
    String(String),
    /// An integer, such as a classifier's label.
    Int64(i64),
    /// A number.
    Double(f64),
    /// Numbers by label, such as a classifier's probabilities; in no order.
    Dictionary(Vec<(Key, f64)>),
    /// The model gives no value.
    Undefined,
}

/// A label.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Key {
    /// As text.
    String(String),
    /// As an integer.
    Int64(i64),
}

/// A submission under way, which is answered once: where Core ML forgets it, by an error.
pub(super) struct Pending(Option<(Submission, Done)>);

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pending").field(&self.0.as_ref().map(|(submission, _)| submission)).finish()
    }
}

impl Pending {
    pub(super) fn new(submission: Submission, done: Done) -> Self {
        Self(Some((submission, done)))
    }

    /// Answers with what `result` makes of the submission.
    pub(super) fn finish(
        mut self,
        result: impl FnOnce(&Submission) -> Result<Vec<(String, Output)>, CoreMlFault>,
    ) {
        if let Some((submission, done)) = self.0.take() {
            let result = result(&submission);
            done(Completed { submission, result });
        }
    }

    /// What was submitted.
    #[cfg(target_os = "macos")]
    pub(super) fn submission(&self) -> Option<&Submission> {
        self.0.as_ref().map(|(submission, _)| submission)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some((submission, done)) = self.0.take() {
            let text = "Core ML has ended the prediction without an answer";
            let result = Err(CoreMlFault::new(CoreMlFaultKind::Predict, text));
            done(Completed { submission, result });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn pending() -> (Pending, mpsc::Receiver<Completed>) {
        let (sender, receiver) = mpsc::channel();
        let done = Box::new(move |completed| sender.send(completed).unwrap());
        (Pending::new(Submission::default(), done), receiver)
    }

    #[test]
    fn a_finished_submission_is_answered_once() {
        let (pending, answers) = pending();
        pending.finish(|_| Ok(vec![("n".to_owned(), Output::Int64(3))]));
        let outputs = answers.recv().unwrap().result.unwrap();
        assert!(matches!(outputs[..], [(_, Output::Int64(3))]));
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
