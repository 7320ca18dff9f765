//! Policies of how far ahead weights are prefetched.

use std::fmt;
use std::str::FromStr;

/// Eagerness with which weights are loaded before they are needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrefetchPolicy {
    /// Not before somebody waits for them.
    None,
    /// No more than the next one: most of what is near stays there.
    Conservative,
    /// Prefetches as far ahead as measured times require.
    #[default]
    Adaptive,
    /// Prefetches as far ahead as there is room, from the start.
    Aggressive,
}

/// The policies and their names in configurations.
const POLICIES: [(PrefetchPolicy, &str); 4] = [
    (PrefetchPolicy::None, "none"),
    (PrefetchPolicy::Conservative, "conservative"),
    (PrefetchPolicy::Adaptive, "adaptive"),
    (PrefetchPolicy::Aggressive, "aggressive"),
];

impl PrefetchPolicy {
    /// The least and the most touches ahead, where `most` are of use.
    #[must_use]
    pub fn touches(self, most: usize) -> [usize; 2] {
        match self {
            Self::None => [0, 0],
            Self::Conservative => [0, most.min(1)],
            Self::Adaptive => [0, most],
            Self::Aggressive => [most, most],
        }
    }
}

impl fmt::Display for PrefetchPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = POLICIES.iter().find(|(policy, _)| policy == self);
        f.write_str(name.map_or("", |(_, name)| name))
    }
}

impl FromStr for PrefetchPolicy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = POLICIES.iter().find(|(_, name)| *name == text.trim());
        found.map(|(policy, _)| *policy).ok_or_else(|| {
            let names = POLICIES.map(|(_, name)| name).join(", ");
            format!("'{text}' found, expected one of {names}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_read_back_what_they_print_and_bound_the_way_ahead() {
        for (policy, name) in POLICIES {
            assert_eq!((name.parse(), policy.to_string()), (Ok(policy), name.to_owned()));
        }
        assert!("eager".parse::<PrefetchPolicy>().unwrap_err().contains("expected one of none"));
        let touches = POLICIES.map(|(policy, _)| policy.touches(6));
        assert_eq!(touches, [[0, 0], [0, 1], [0, 6], [6, 6]]);
    }
}
