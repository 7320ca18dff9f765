//! Work that takes its time, on a thread that may wait.

use galatea_serving::Error;
use tokio::task::spawn_blocking;

/// Runs work that blocks, such as the load of a model, beside the threads that serve connections. It goes on to its
/// end also when nobody waits for it any more.
///
/// # Errors
/// The work's own, and INTERNAL when it panicked.
pub(crate) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let gone = |_| Err(Error::internal("the work on this request ended without a result"));
    spawn_blocking(work).await.unwrap_or_else(gone)
}
