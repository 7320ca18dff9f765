//! How far rewriting goes.

use std::fmt;
use std::str::FromStr;

/// How far rewriting goes. Every level gives equal results; the lower ones are for finding out what
/// a rewrite does, and for models whose exact sequence of roundings matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum RewriteLevel {
    /// Not at all: the model's own nodes run as they stand.
    O0,
    /// Constants are folded, shapes resolved, equal nodes merged, nodes without effect removed.
    /// Every node left is an operator of the model's own kind.
    O1,
    /// Nodes are fused into larger operators too.
    O2,
    /// Providers change layouts too, and chains of element-wise operators become one.
    #[default]
    O3,
}

impl RewriteLevel {
    /// All levels, the lowest first.
    pub const ALL: [Self; 4] = [Self::O0, Self::O1, Self::O2, Self::O3];
}

impl fmt::Display for RewriteLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::O0 => "O0",
            Self::O1 => "O1",
            Self::O2 => "O2",
            Self::O3 => "O3",
        })
    }
}

impl FromStr for RewriteLevel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wanted = |level: &Self| level.to_string().eq_ignore_ascii_case(text.trim());
        Self::ALL.into_iter().find(wanted).ok_or_else(|| {
            format!("optimisation level '{text}' is unknown, expected O0, O1, O2 or O3")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_read_back_what_they_print() {
        for level in RewriteLevel::ALL {
            assert_eq!(level.to_string().parse(), Ok(level));
        }
        assert_eq!("o2".parse(), Ok(RewriteLevel::O2));
        assert_eq!(
            "4".parse::<RewriteLevel>().unwrap_err(),
            "optimisation level '4' is unknown, expected O0, O1, O2 or O3"
        );
    }
}
