//! Runs of a session that is a partition of another one, which has checked what goes in.

use galatea_graph::Datum;

use super::{OutputMask, Session};
use crate::error::RuntimeError;
use crate::provider::ProfileRow;

fn of(wanted: Option<&[bool]>) -> OutputMask<'_> {
    wanted.map_or(OutputMask::All, OutputMask::Some)
}

impl Session {
    /// Computes the outputs, those that are wanted where that is said; inputs are in the order of
    /// [`Session::inputs`].
    ///
    /// # Errors
    /// Returns the error of the part that failed.
    pub(crate) fn run_inner(
        &self,
        inputs: Vec<Datum>,
        wanted: Option<&[bool]>,
    ) -> Result<Vec<Datum>, RuntimeError> {
        self.owned_values(inputs, of(wanted))
    }

    /// Works like [`Session::run_inner`], and also returns the time of each step.
    ///
    /// # Errors
    /// Returns the same errors as [`Session::run_inner`].
    pub(crate) fn profile_inner(
        &self,
        inputs: &[Datum],
        wanted: Option<&[bool]>,
    ) -> Result<(Vec<Datum>, Vec<ProfileRow>), RuntimeError> {
        let mut rows = Some(Vec::new());
        let outputs = self.run_or_demote(inputs, of(wanted), &mut rows)?;
        Ok((outputs, rows.unwrap_or_default()))
    }
}
