//! Nodes that have no form in a program, and numbers that programs do not hold.

use galatea_formats::coreml::CoreMlError;

/// Why a node has no form in a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnwritableNode(pub(crate) String);

pub(crate) type Result<T> = std::result::Result<T, UnwritableNode>;

impl From<CoreMlError> for UnwritableNode {
    fn from(error: CoreMlError) -> Self {
        Self(error.to_string())
    }
}

/// Refuses with a reason.
pub(crate) fn refuse<T>(reason: impl Into<String>) -> Result<T> {
    Err(UnwritableNode(reason.into()))
}

/// A length or position as programs have it.
pub(crate) fn small(value: usize) -> Result<i32> {
    i32::try_from(value).map_err(|_| UnwritableNode(format!("{value} is beyond 32 bits")))
}

/// Lengths or positions as programs have them.
pub(crate) fn small_all(all: &[usize]) -> Result<Vec<i32>> {
    all.iter().map(|&value| small(value)).collect()
}

/// Integers as programs have them.
pub(crate) fn narrow_all(all: &[i64]) -> Result<Vec<i32>> {
    let narrow = |&value: &i64| {
        i32::try_from(value).map_err(|_| UnwritableNode(format!("{value} is beyond 32 bits")))
    };
    all.iter().map(narrow).collect()
}
