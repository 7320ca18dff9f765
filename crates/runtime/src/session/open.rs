//! Runs that are not as the model declares: one name stands for lengths that differ, or an initializer is replaced.

use galatea_graph::Datum;
use galatea_tensor::{Tensor, collect_mapped_files};

use super::Session;
use super::run::{Run, RunInputs, RunResult};
use crate::error::RuntimeError;
use crate::options::{GraphSource, SessionOptions};

/// A session on the model's own graph, whose inputs have no common names for lengths, and which takes the values of
/// initializers as inputs. What rewriting gains by names and constants, it does not have.
pub(super) struct OpenSession {
    session: Box<Session>,
    /// The inputs that are initializers of the model, and their usual values.
    usual: Vec<(String, Tensor)>,
}

impl Session {
    /// Runs what does not fit the declared inputs; `error` says why it does not.
    ///
    /// # Errors
    /// Returns `error` where the model's own graph is not at hand or does not take the inputs either.
    pub(super) fn run_undeclared(
        &self,
        run: &Run<'_>,
        error: RuntimeError,
    ) -> Result<RunResult, RuntimeError> {
        let Some(open) = self.open.get_or_init(|| self.opened(&error)) else { return Err(error) };
        let mut all: Vec<(&str, Datum)> = match &run.inputs {
            RunInputs::Named(given) => {
                given.iter().map(|(name, tensor)| (*name, tensor.clone().into())).collect()
            }
            RunInputs::Values(given) => given.to_vec(),
            RunInputs::Owned(_) => return Err(error),
        };
        let known = |name: &str| open.session.inputs().iter().any(|input| input.name == name);
        if !all.iter().all(|(name, _)| known(name)) {
            return Err(error);
        }
        for (name, value) in &open.usual {
            if !all.iter().any(|(given, _)| given == name) {
                all.push((name, value.clone().into()));
            }
        }
        let Run { outputs, placement, deadline, profile, .. } = *run;
        open.session.run(Run {
            inputs: RunInputs::Values(&all),
            outputs,
            placement,
            deadline,
            profile,
        })
    }

    fn opened(&self, error: &RuntimeError) -> Option<OpenSession> {
        let options = &self.compiled.options;
        let model = &self.compiled.graph.name;
        let (made, files) = collect_mapped_files(|| {
            Some(options.source.read()?.and_then(|mut graph| {
                let usual = graph.open();
                let options = SessionOptions { source: GraphSource::default(), ..options.clone() };
                let session = Self::new(graph, &self.compiled.providers, &options);
                let session = Box::new(session.map_err(|error| error.to_string())?);
                Ok(OpenSession { session, usual })
            }))
        });
        // It must be the same model, and not one that has taken its place.
        let same = self.files.check_unwritten().and_then(|()| files.check_unwritten());
        let made = made?.and_then(|made| same.map(|()| made).map_err(|error| error.to_string()));
        match made {
            Ok(open) => {
                tracing::warn!(%model, "a run is not as the model declares, so it is prepared for any lengths: {error}");
                Some(open)
            }
            Err(why) => {
                tracing::warn!(%model, "cannot be prepared for a run that is not as it declares: {why}");
                None
            }
        }
    }
}
