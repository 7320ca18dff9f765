//! Limits on the values of a model, for the whole process: a model of a hundred bytes can ask for
//! any amount of memory and time.

use std::sync::OnceLock;

use crate::error::OpError;

/// Limits that hold for every model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphLimits {
    /// The most bytes of one value that an operator makes.
    pub value_bytes: usize,
    /// The most iterations of one loop.
    pub iterations: usize,
}

impl Default for GraphLimits {
    /// More than a model needs: 16 GiB, and 16 million iterations.
    fn default() -> Self {
        Self { value_bytes: 1 << 34, iterations: 1 << 24 }
    }
}

static LIMITS: OnceLock<GraphLimits> = OnceLock::new();

/// Sets the limits, once and before the first use.
///
/// # Errors
/// The limits that hold already.
pub fn set(limits: GraphLimits) -> Result<(), GraphLimits> {
    LIMITS.set(limits).map_err(|_| get())
}

/// The limits that hold.
#[must_use]
pub fn get() -> GraphLimits {
    *LIMITS.get_or_init(GraphLimits::default)
}

/// Refuses another iteration of a loop that had as many as it may, or whose result nobody waits for.
///
/// # Errors
/// Fails when `done` is the limit, or the work of this thread is interrupted.
pub(crate) fn iterate(done: usize) -> Result<(), OpError> {
    wanted()?;
    let GraphLimits { iterations, .. } = get();
    if done < iterations {
        return Ok(());
    }
    Err(OpError::new(format!("more than {iterations} iterations, which is the limit")))
}

/// Refuses work that nobody waits for any more.
///
/// # Errors
/// Fails when the work of this thread is interrupted.
pub(crate) fn wanted() -> Result<(), OpError> {
    match galatea_tensor::is_interrupted() {
        true => Err(OpError::new("interrupted: nobody waits for the result")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_set_once_and_before_their_use() {
        let before = get();
        assert_eq!(set(GraphLimits { value_bytes: 1, iterations: 1 }), Err(before));
        assert_eq!(get(), before);
    }

    #[test]
    fn work_that_nobody_waits_for_is_refused() {
        use galatea_tensor::{InterruptSource, InterruptibleScope};
        assert!(wanted().is_ok());
        let _scope = InterruptibleScope::new(Some(InterruptSource::new(|| true)));
        assert!(iterate(0).unwrap_err().to_string().contains("nobody waits"));
    }

    #[test]
    fn a_loop_that_goes_on_is_refused() {
        let most = get().iterations;
        assert!(iterate(most - 1).is_ok());
        let text = iterate(most).unwrap_err().to_string();
        assert_eq!(text, format!("more than {most} iterations, which is the limit"));
    }
}
