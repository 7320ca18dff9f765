//! Models that call models: who waits for a request, and who calls whom.
//!
//! An execution that calls another model holds its instance until that has answered. Requests that wait behind each
//! other in a circle would wait for ever, so a call that may close one does not queue with the others, see
//! [`CallGraph`].

use std::sync::{Arc, Mutex, PoisonError};

use galatea_tensor::{OrderedMap, OrderedSet};

use crate::error::ServingError;

/// Longest chain of models that call each other.
pub const MAX_DEPTH: usize = 16;

/// The models that wait for an answer to a request, the outermost first. None where a client made it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitingModels(Option<Arc<[String]>>);

impl WaitingModels {
    /// Whether a client made the request.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// How many models wait.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.0.as_ref().map_or(0, |path| path.len())
    }

    /// The model that calls.
    #[must_use]
    pub fn last(&self) -> Option<&str> {
        self.0.as_ref()?.last().map(String::as_str)
    }

    /// The callers of what this model calls while it has requests with these callers.
    ///
    /// # Errors
    /// INVALID_ARG with the chain where it is too long.
    pub fn then(&self, model: &str) -> Result<Self, ServingError> {
        let before = self.0.iter().flat_map(|path| path.iter().cloned());
        let path: Vec<String> = before.chain([model.to_owned()]).collect();
        if path.len() > MAX_DEPTH {
            return Err(ServingError::invalid_arg(format!(
                "models call each other {} deep, expected {MAX_DEPTH} at most: {}",
                path.len(),
                path.join(" -> ")
            )));
        }
        Ok(Self(Some(path.into())))
    }
}

/// Which models have called which.
///
/// A call that leads back to its caller is not queued behind the requests of clients: its model keeps spare instances
/// for each depth of calls. Whoever holds an instance waits only for models that do not lead back to it, or for spare
/// instances of a greater depth, so nobody waits in a circle. What was queued before a circle was seen is safe: it takes
/// its last call to close it, and that one is not queued.
#[derive(Debug, Default)]
pub(crate) struct CallGraph(Mutex<OrderedMap<String, OrderedSet<String>>>);

impl CallGraph {
    /// Notes a call; whether the model called leads back to its caller, as far as anybody knows.
    pub(crate) fn leads_back(&self, caller: &str, called: &str) -> bool {
        let mut edges = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !edges.get(caller).is_some_and(|known| known.contains(called)) {
            edges.entry(caller.to_owned()).or_default().insert(called.to_owned());
        }
        let mut seen = OrderedSet::new();
        let mut left = vec![called];
        while let Some(model) = left.pop() {
            if model == caller {
                return true;
            }
            if seen.insert(model) {
                left.extend(edges.get(model).into_iter().flatten().map(String::as_str));
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_ends_with_an_error_that_names_it() {
        let mut callers = WaitingModels::default();
        for _ in 0..MAX_DEPTH {
            callers = callers.then("a").unwrap();
        }
        assert_eq!((callers.depth(), callers.last()), (MAX_DEPTH, Some("a")));
        let error = callers.then("b").unwrap_err();
        assert!(error.message.ends_with("a -> a -> b"), "{error}");
    }

    #[test]
    fn the_call_that_closes_a_circle_is_seen() {
        let graph = CallGraph::default();
        assert!(graph.leads_back("a", "a"));
        assert!(!graph.leads_back("a", "b"));
        assert!(!graph.leads_back("b", "c"));
        assert!(graph.leads_back("c", "a"));
        assert!(graph.leads_back("a", "b"));
        assert!(!graph.leads_back("d", "a"));
    }
}
