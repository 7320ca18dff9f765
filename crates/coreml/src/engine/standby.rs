//! Executable that serves in an engine's place: made on first need, and dropped when it is not used
//! any more.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use galatea_graph::Graph;
use galatea_runtime::{
    Executable, FallbackProviders, RuntimeError, SessionOptions, compile_fallback,
};

/// Function that makes the executable, as often as it is called.
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
    /// Returns a standby that calls `make` on first need.
    #[must_use]
    pub fn new(make: Box<StandbyMaker>) -> Self {
        Self { make, made: Mutex::new(None) }
    }

    /// A partition as the other providers of its session run it.
    #[must_use]
    pub(crate) fn of(
        graph: Arc<Graph>,
        options: SessionOptions,
        others: FallbackProviders,
    ) -> Self {
        Self::new(Box::new(move || compile_fallback(&others, &graph, &options)))
    }

    /// The executable, made where nobody has it.
    ///
    /// # Errors
    /// Fails when it cannot be made.
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
