//! Executable in an engine's place: made when it is needed first, and gone when nobody has it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use galatea_graph::Graph;
use galatea_runtime::{Executable, FallbackProviders, RuntimeError, SessionOptions};

/// Maker of it, called as often as needed.
type StandbyMaker = dyn Fn() -> Result<Box<dyn Executable>, RuntimeError> + Send + Sync;

/// An executable that exists while somebody has it.
pub struct StandbyExecutable {
    make: Box<StandbyMaker>,
    made: Mutex<Option<Weak<dyn Executable>>>,
}

impl fmt::Debug for StandbyExecutable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Standby")
    }
}

impl StandbyExecutable {
    /// Holds the maker; nothing is made yet.
    #[must_use]
    pub fn new(make: Box<StandbyMaker>) -> Self {
        Self { make, made: Mutex::new(None) }
    }

    /// A partition as the other providers of its session run it.
    #[must_use]
    pub(in crate::coreml) fn of(
        graph: Arc<Graph>,
        options: SessionOptions,
        others: FallbackProviders,
    ) -> Self {
        Self::new(Box::new(move || others.compile(&graph, &options)))
    }

    /// The executable, made where nobody has it.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn get(&self) -> Result<Arc<dyn Executable>, RuntimeError> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(there) = made.as_ref().and_then(Weak::upgrade) {
            return Ok(there);
        }
        let new: Arc<dyn Executable> = Arc::from((self.make)()?);
        *made = Some(Arc::downgrade(&new));
        Ok(new)
    }
}
