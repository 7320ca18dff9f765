//! Work that takes its time, on a thread that may wait.

use galatea_serving::ServingError;

use crate::app::ServerState;
use crate::tasks::on_blocking_thread;

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
        done = on_blocking_thread(work) => {
            let gone = || Err(ServingError::internal("the work on this request ended without a result"));
            done.unwrap_or_else(gone)
        }
        () = app.stopping() => Err(ServingError::unavailable("Server exiting")),
    }
}
