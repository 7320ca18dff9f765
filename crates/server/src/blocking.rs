//! Work that takes its time, on a thread that may wait.

use galatea_serving::ServingError;
use tokio::task::spawn_blocking;

use crate::app::ServerState;

/// Runs work that blocks, such as the load of a model, beside the threads that serve connections. It goes on to its
/// end also when nobody waits for it any more; a server that stops does not wait.
///
/// # Errors
/// Returns the work's own error, INTERNAL when it panicked, and UNAVAILABLE when the server stops first.
pub(crate) async fn run_blocking<T: Send + 'static>(
    app: &ServerState,
    work: impl FnOnce() -> Result<T, ServingError> + Send + 'static,
) -> Result<T, ServingError> {
    tokio::select! {
        biased;
        done = spawn_blocking(work) => {
            let gone = |_| Err(ServingError::internal("the work on this request ended without a result"));
            done.unwrap_or_else(gone)
        }
        () = app.stopping() => Err(ServingError::unavailable("Server exiting")),
    }
}
