//! Models that wait for each other while they are loaded.

use std::sync::Mutex;

use super::locked;
use crate::error::ServingError;

/// Models that are being loaded and wait for the load of others, by name. Two that wait for each other would do so for
/// ever.
#[derive(Debug, Default)]
pub(super) struct ModelLoadWaits(Mutex<Vec<(String, String)>>);

impl ModelLoadWaits {
    /// Notes that a model that is being loaded waits for another one.
    pub(super) fn begin(&self, model: &str, other: &str) -> Result<(), ServingError> {
        let mut waits = locked(&self.0);
        let mut left = vec![other.to_owned()];
        let mut at = 0;
        while let Some(name) = left.get(at).cloned() {
            if name == model {
                return Err(ServingError::unavailable(format!(
                    "'{other}' cannot be loaded while '{model}' is, which waits for it"
                )));
            }
            let next = waits.iter().filter(|(waiting, _)| *waiting == name);
            let next: Vec<String> = next.map(|(_, other)| other.clone()).collect();
            left.extend(next.into_iter().filter(|next| *next == model || *next != name));
            left.truncate(1 << 10);
            at += 1;
        }
        waits.push((model.to_owned(), other.to_owned()));
        Ok(())
    }

    pub(super) fn end(&self, model: &str, other: &str) {
        let mut waits = locked(&self.0);
        let at = waits.iter().position(|(waiting, of)| waiting == model && of == other);
        if let Some(at) = at {
            waits.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_do_not_wait_for_each_other() {
        let loads = ModelLoadWaits::default();
        assert!(loads.begin("a", "a").is_err());
        loads.begin("a", "b").unwrap();
        loads.begin("b", "c").unwrap();
        assert!(loads.begin("c", "a").unwrap_err().message.contains("'a' cannot be loaded"));
        loads.end("b", "c");
        loads.begin("c", "a").unwrap();
    }
}
