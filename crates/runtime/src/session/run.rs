//! One run of a session: what it is given and what it returns.

use std::sync::Arc;
use std::time::Instant;

use galatea_graph::{Datum, GraphError};
use galatea_tensor::Tensor;

use crate::binding::{BindingFailure, IoInfo, bind, check_ordered};
use crate::error::RuntimeError;
use crate::profile::ProfileRow;

/// A run of a session.
#[derive(Clone, Debug, Default)]
pub struct Run<'r> {
    /// Inputs of the model.
    pub inputs: RunInputs<'r>,
    /// Outputs to compute.
    pub outputs: OutputMask<'r>,
    /// Name of the provider that runs whatever it can; the session chooses where none is named.
    pub placement: Option<&'r str>,
    /// Time by which the run gets its turn on busy devices.
    pub deadline: Option<Instant>,
    /// Asks for the time of each step.
    pub profile: bool,
}

/// Inputs of a run.
#[derive(Clone, Debug)]
pub enum RunInputs<'r> {
    /// Tensors by name, in any order.
    Named(&'r [(&'r str, Tensor)]),
    /// Values of any kind by name, such as sequences, in any order.
    Values(&'r [(&'r str, Datum)]),
    /// Tensors in the order of [`super::Session::inputs`]. Those that are not shared may be overwritten: a cache that
    /// a step takes and returns stays in place. A failed run loses them. The run takes the planned
    /// partitions, and no other placement.
    Owned(Vec<Tensor>),
}

impl Default for RunInputs<'_> {
    fn default() -> Self {
        Self::Named(&[])
    }
}

/// Outputs that are wanted of a run.
#[derive(Clone, Copy, Debug, Default)]
pub enum OutputMask<'w> {
    /// All of them.
    #[default]
    All,
    /// An entry for each output. Values that no wanted output depends on are not computed, and unwanted outputs
    /// are not copied back from a device.
    Only(&'w [bool]),
}

impl<'w> OutputMask<'w> {
    /// Selects the wanted ones of things that stand for the outputs.
    pub(super) fn of<T>(self, all: &[T]) -> impl Iterator<Item = &T> {
        all.iter().enumerate().filter_map(move |(at, one)| match self {
            Self::Only(wanted) => wanted.get(at).is_some_and(|wanted| *wanted).then_some(one),
            Self::All => Some(one),
        })
    }

    /// Returns the mask of these entries, or of all outputs.
    pub(super) fn from_entries(entries: Option<&'w [bool]>) -> Self {
        entries.map_or(Self::All, Self::Only)
    }

    /// Checks that there is an entry for each of `count` outputs.
    fn check(self, count: usize) -> Result<(), RuntimeError> {
        match self {
            Self::Only(wanted) if wanted.len() != count => {
                let found = wanted.len();
                let text =
                    format!("{found} outputs are said to be wanted or not, the model has {count}");
                Err(RuntimeError::Input(text))
            }
            _ => Ok(()),
        }
    }
}

impl<'r> Run<'r> {
    /// Creates a run with tensors by name, in any order.
    #[must_use]
    pub fn named(inputs: &'r [(&'r str, Tensor)]) -> Self {
        Self { inputs: RunInputs::Named(inputs), ..Self::default() }
    }

    /// Creates a run with values of any kind by name.
    #[must_use]
    pub fn values(inputs: &'r [(&'r str, Datum)]) -> Self {
        Self { inputs: RunInputs::Values(inputs), ..Self::default() }
    }

    /// Creates a run that may overwrite its inputs. See [`RunInputs::Owned`].
    #[must_use]
    pub fn owned(inputs: Vec<Tensor>) -> Self {
        Self { inputs: RunInputs::Owned(inputs), ..Self::default() }
    }

    /// Asks for some outputs only: `wanted` has an entry for each.
    #[must_use]
    pub fn only(self, wanted: &'r [bool]) -> Self {
        Self { outputs: OutputMask::Only(wanted), ..self }
    }

    /// Places every node that a provider can run on the provider of that name.
    #[must_use]
    pub fn on(self, provider: &'r str) -> Self {
        Self { placement: Some(provider), ..self }
    }

    /// Asks for the time of each step.
    #[must_use]
    pub fn profiled(self) -> Self {
        Self { profile: true, ..self }
    }

    /// Returns the run again, to be tried otherwise; `None` where its inputs may be overwritten.
    pub(super) fn to_repeat(&self) -> Option<Self> {
        match self.inputs {
            RunInputs::Owned(_) => None,
            RunInputs::Named(_) | RunInputs::Values(_) => Some(self.clone()),
        }
    }

    /// Checks the inputs and brings them into the model's order.
    pub(super) fn bind(
        self,
        inputs: &[IoInfo],
        outputs: usize,
    ) -> Result<BoundRun<'r>, BindingFailure> {
        self.outputs.check(outputs)?;
        let owned = matches!(self.inputs, RunInputs::Owned(_));
        let inputs = match self.inputs {
            RunInputs::Named(given) => bind(inputs, given)?,
            RunInputs::Values(given) => bind(inputs, given)?,
            RunInputs::Owned(given) => {
                check_ordered(inputs, &given)?;
                given.into_iter().map(Datum::Tensor).collect()
            }
        };
        let Self { outputs, placement, deadline, profile, .. } = self;
        Ok(BoundRun { inputs, owned, outputs, placement, deadline, profile })
    }
}

/// A run whose inputs were checked.
#[derive(Clone, Debug, Default)]
pub(super) struct BoundRun<'r> {
    /// Inputs in the order of the session's.
    pub(super) inputs: Vec<Datum>,
    /// True if the inputs may be overwritten.
    pub(super) owned: bool,
    pub(super) outputs: OutputMask<'r>,
    pub(super) placement: Option<&'r str>,
    pub(super) deadline: Option<Instant>,
    pub(super) profile: bool,
}

/// Result of a run.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// The wanted outputs, in the order of [`super::Session::outputs`].
    pub outputs: Vec<Datum>,
    /// Times of the steps of a profiled run.
    pub rows: Vec<ProfileRow>,
    /// Descriptions of all outputs.
    described: Arc<[IoInfo]>,
    /// Entry for each of them: whether it was wanted. None stands for all.
    wanted: Option<Vec<bool>>,
}

impl RunResult {
    /// Creates the result of a run of a session with these outputs, in the same order.
    pub(super) fn new(ran: PartsResult, wanted: OutputMask<'_>, all: &Arc<[IoInfo]>) -> Self {
        let wanted = match wanted {
            OutputMask::All => None,
            OutputMask::Only(wanted) => Some(wanted.to_vec()),
        };
        Self { outputs: ran.outputs, rows: ran.rows, described: Arc::clone(all), wanted }
    }

    /// Returns the outputs as tensors.
    ///
    /// # Errors
    /// Names an output that is a sequence or an absent value.
    pub fn tensors(self) -> Result<Vec<Tensor>, RuntimeError> {
        let tensor = |(info, datum): (&IoInfo, Datum)| {
            datum.into_tensor().map_err(|error| {
                GraphError::structure(format!("output '{}': {error}", info.name)).into()
            })
        };
        let wanted = OutputMask::from_entries(self.wanted.as_deref());
        wanted.of(&self.described).zip(self.outputs).map(tensor).collect()
    }
}

/// Outputs of a run of partitions, and the times of its steps.
#[derive(Clone, Debug, Default)]
pub(super) struct PartsResult {
    pub(super) outputs: Vec<Datum>,
    pub(super) rows: Vec<ProfileRow>,
}
