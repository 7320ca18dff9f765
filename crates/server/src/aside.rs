//! Work that takes its time, on a thread that may wait.

use galatea_serving::Error;
use tokio::task::spawn_blocking;

use crate::app::App;

/// Runs work that blocks, such as the load of a model, beside the threads that serve connections. It goes on to its
/// end also when nobody waits for it any more; a server that stops does not wait.
///
/// # Errors
/// The work's own, INTERNAL when it panicked, and UNAVAILABLE when the server stops first.
pub(crate) async fn aside<T: Send + 'static>(
    app: &App,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::select! {
        biased;
        done = spawn_blocking(work) => {
            let gone = |_| Err(Error::internal("the work on this request ended without a result"));
            done.unwrap_or_else(gone)
        }
        () = app.stopping() => Err(Error::unavailable("Server exiting")),
    }
}
