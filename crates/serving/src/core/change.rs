//! Changes of a model since it was loaded.

use galatea_tensor::OrderedSet;

use super::load_record::{LoadRecord, ModelSource, PolledModel};
use crate::config::{self, ModelConfig};
use crate::repository::FolderStamp;

/// How much of a version has to be made anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChangeExtent {
    /// It can go on as it is.
    Nothing,
    /// Its instances; the model is the same.
    Instances,
    /// All of it.
    Model,
}

/// A model compared with what its versions were made from.
#[derive(Debug)]
pub(super) struct ModelChange {
    config: ChangeExtent,
    /// The configuration now, with its defaults.
    now: Option<ModelConfig>,
    /// Versions whose files are the same.
    same_files: OrderedSet<i64>,
}

impl ModelChange {
    /// Nothing is as it was.
    pub(super) fn everything() -> Self {
        Self { config: ChangeExtent::Model, now: None, same_files: OrderedSet::new() }
    }

    pub(super) fn between(
        before: Option<&LoadRecord>,
        polled: &PolledModel,
        source: &ModelSource,
        stamps: &FolderStamp,
    ) -> Self {
        let Some(before) = before.filter(|before| {
            before.source.dir == source.dir && before.stamps.outside == stamps.outside
        }) else {
            return Self::everything();
        };
        let same =
            |version: &i64| before.stamps.versions.get(version) == stamps.versions.get(version);
        let mut now = polled.config.clone();
        config::normalise(&mut now);
        Self {
            now: Some(now),
            config: extent(&before.config, &polled.config),
            same_files: polled.versions.iter().copied().filter(same).collect(),
        }
    }

    /// Compares with a version that serves, of which `completed` is the configuration.
    pub(super) fn of(&self, version: i64, completed: &ModelConfig) -> ChangeExtent {
        let Some(now) = self.now.as_ref().filter(|_| self.same_files.contains(&version)) else {
            return ChangeExtent::Model;
        };
        // A client may give back what it was shown, which has all that the model has completed.
        let shown = || extent(completed, now);
        match self.config {
            ChangeExtent::Model if shown() != ChangeExtent::Model => ChangeExtent::Instances,
            known => known,
        }
    }
}

fn extent(before: &ModelConfig, after: &ModelConfig) -> ChangeExtent {
    // Which versions serve is decided elsewhere; it changes nothing in those that do.
    let mut old = ModelConfig { version_policy: None, ..before.clone() };
    let mut new = ModelConfig { version_policy: None, ..after.clone() };
    if old == new {
        return ChangeExtent::Nothing;
    }
    old.instance_group.clear();
    new.instance_group.clear();
    if old == new { ChangeExtent::Instances } else { ChangeExtent::Model }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::from_text;

    #[test]
    fn only_what_a_configuration_says_of_the_model_makes_it_anew() {
        let of = |after: &str| {
            let config = |text: &str| from_text(&format!("name: 'm' backend: 'b' {text}")).unwrap();
            extent(&config("max_batch_size: 4"), &config(after))
        };
        assert_eq!(of("max_batch_size: 4"), ChangeExtent::Nothing);
        assert_eq!(of("max_batch_size: 4 version_policy { all {} }"), ChangeExtent::Nothing);
        assert_eq!(of("max_batch_size: 4 instance_group { count: 3 }"), ChangeExtent::Instances);
        assert_eq!(of("max_batch_size: 8"), ChangeExtent::Model);
        assert_eq!(of("max_batch_size: 8 instance_group { count: 3 }"), ChangeExtent::Model);
    }
}
