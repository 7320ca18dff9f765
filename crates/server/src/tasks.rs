//! Tasks of the runtime. Tokio compiles what runs a task for each type of future, and twice: here are few types.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;

use tokio::task::spawn_blocking;

/// Future of a task, of whatever code.
pub(crate) type TaskFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Returns the future of a task in a box.
pub(crate) fn boxed(future: impl Future<Output = ()> + Send + 'static) -> TaskFuture {
    Box::pin(future)
}

type ErasedWork = Box<dyn FnOnce() -> Box<dyn Any + Send> + Send>;

/// Runs work on a thread that may block, and gives its result; none when it panicked or the runtime ends. It goes on
/// to its end also when nobody waits for it any more.
pub(crate) async fn on_blocking_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let done = erased(Box::new(move || Box::new(work()))).await?;
    done.downcast().ok().map(|result| *result)
}

async fn erased(work: ErasedWork) -> Option<Box<dyn Any + Send>> {
    spawn_blocking(work).await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_gives_its_result_and_a_panic_gives_none() {
        assert_eq!(on_blocking_thread(|| vec![1, 2]).await, Some(vec![1, 2]));
        let panics = || -> u8 { std::panic::panic_any(1) };
        assert_eq!(on_blocking_thread(panics).await, None);
    }
}
