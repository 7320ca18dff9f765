//! Old names of flags and what they are called now.

use super::{ServerFlags, find, truth};

/// An old flag and the new one that does the same.
struct OldFlag {
    name: &'static str,
    new: &'static str,
    /// Translates a value of the old flag to the new one; none if the old value only states the default.
    value: fn(&str) -> Option<String>,
    /// True if the two may be given together.
    exclusive: bool,
}

/// Words for an old value that only states the default.
pub(super) const DEFAULT: &str = "the default";

/// Name of the flag that has taken an old one's place.
pub(super) fn successor(name: &str) -> &'static str {
    OLD.iter().find(|old| old.name == name).map_or("", |old| old.new)
}

/// The old flags.
const OLD: &[OldFlag] = &[
    OldFlag {
        name: "model-store",
        new: "model-repository",
        value: |path| Some(path.to_owned()),
        exclusive: false,
    },
    OldFlag {
        name: "strict-model-config",
        new: "disable-auto-complete-config",
        value: |strict| truth(strict).filter(|strict| *strict).map(|_| "true".to_owned()),
        exclusive: false,
    },
    OldFlag {
        name: "response-cache-byte-size",
        new: "cache-config",
        value: |size| Some(format!("local,size={size}")).filter(|_| size != "0"),
        exclusive: true,
    },
    OldFlag {
        name: "trace-file",
        new: "trace-config",
        value: |path| Some(format!("triton,file={path}")),
        exclusive: true,
    },
    OldFlag {
        name: "trace-level",
        new: "trace-config",
        value: |level| Some(format!("level={level}")).filter(|_| level != "OFF"),
        exclusive: true,
    },
    OldFlag {
        name: "trace-rate",
        new: "trace-config",
        value: |rate| Some(format!("rate={rate}")),
        exclusive: true,
    },
    OldFlag {
        name: "trace-count",
        new: "trace-config",
        value: |count| Some(format!("count={count}")),
        exclusive: true,
    },
    OldFlag {
        name: "trace-log-frequency",
        new: "trace-config",
        value: |count| Some(format!("triton,log-frequency={count}")),
        exclusive: true,
    },
];

impl ServerFlags {
    /// Makes the new flags of old ones.
    ///
    /// # Errors
    /// Fails when an old flag and its new form are both given and exclude each other.
    pub(super) fn replace_old(&mut self) -> Result<(), String> {
        let both = |old: &&OldFlag| old.exclusive && self.is_set(old.name) && self.is_set(old.new);
        if let Some(OldFlag { name, new, .. }) = OLD.iter().find(both) {
            return Err(format!(
                "Incompatible flags --{name} and --{new} both provided. Please provide one or the \
                 other."
            ));
        }
        for old in OLD {
            for given in self.values.remove(old.name).unwrap_or_default() {
                let new = (old.value)(&given);
                if let Some(value) = &new {
                    find(old.new)?.check(value)?;
                }
                let text = new
                    .as_ref()
                    .map_or_else(|| DEFAULT.to_owned(), |value| format!("--{}={value}", old.new));
                self.replaced.push((old.name, text));
                self.values.entry(old.new).or_default().extend(new);
            }
            if self.values.get(old.new).is_some_and(Vec::is_empty) {
                self.values.remove(old.new);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_flag_and_its_new_form_exclude_each_other_where_one_would_win() {
        for old in OLD {
            let mut flags = ServerFlags::default();
            for name in [old.name, old.new] {
                flags.values.insert(name, vec!["1".to_owned()]);
            }
            let error = flags.replace_old().err().filter(|error| error.contains("both provided"));
            assert_eq!(error.is_some(), old.exclusive, "{}", old.name);
        }
    }
}
