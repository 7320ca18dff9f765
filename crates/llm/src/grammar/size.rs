//! Costs of grammars: what a small one may take, and what all of a process may take together.
//!
//! A text of ten characters can stand for an expression of a million: `(a{1000}){1000}`. Compiled, it holds 200 MB.

use std::sync::atomic::{AtomicUsize, Ordering};

use llguidance::api::ParserLimits;

use crate::error::{LlmError, LlmErrorKind, Result};

/// Longest text of a small grammar in bytes.
pub(super) const MAX_SMALL_BYTES: usize = 16 << 10;
/// Most memory of all grammars of a process in bytes.
const MAX_MEMORY_BYTES: usize = 1 << 30;
/// Memory in bytes that a grammar may come to need while an answer follows it.
const GROWTH_BYTES: usize = 1 << 20;

/// Memory in bytes that the grammars of the process have.
static MEMORY: GrammarMemory = GrammarMemory(AtomicUsize::new(0));

/// Class of a grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GrammarSize {
    /// It takes a few milliseconds, as nearly all grammars do.
    Small,
    /// It takes up to a second.
    Large,
}

impl GrammarSize {
    /// Returns what the library may spend. A state of its lexer takes up to 2 kB, and an expression 200 bytes.
    pub(super) fn limits(self) -> ParserLimits {
        let usual = ParserLimits { verbose_errors: false, ..ParserLimits::default() };
        match self {
            Self::Small => ParserLimits {
                initial_lexer_fuel: 50_000,
                max_lexer_states: 5_000,
                max_grammar_size: 20_000,
                ..usual
            },
            Self::Large => ParserLimits {
                initial_lexer_fuel: 600_000,
                max_lexer_states: 50_000,
                max_grammar_size: 200_000,
                ..usual
            },
        }
    }

    /// Returns how many bytes its compilation may take.
    fn bytes(self) -> usize {
        match self {
            Self::Small => 12 << 20,
            Self::Large => 200 << 20,
        }
    }
}

/// Returns whether a text of the library says that a grammar goes beyond its limits.
pub(super) fn is_about_size(text: &str) -> bool {
    let parts = ["too many", "too big", "too large", "max is", "fuel"];
    parts.iter().any(|part| text.contains(part))
}

/// Count of memory of grammars.
#[derive(Debug)]
struct GrammarMemory(AtomicUsize);

/// Part of the memory for grammars, which is given back when it is dropped.
#[derive(Debug)]
pub(super) struct GrammarLease {
    memory: &'static GrammarMemory,
    bytes: usize,
    /// Class of the grammar.
    pub(super) size: GrammarSize,
}

impl GrammarLease {
    /// Takes what the compilation of a grammar may need.
    ///
    /// # Errors
    /// [`LlmErrorKind::Overloaded`] where others have it.
    pub(super) fn take(size: GrammarSize) -> Result<Self> {
        Self::of(&MEMORY, size)
    }

    fn of(memory: &'static GrammarMemory, size: GrammarSize) -> Result<Self> {
        let bytes = size.bytes();
        // An allocation of the library that fails ends the process.
        let mut probe = Vec::<u8>::new();
        if probe.try_reserve_exact(bytes).is_err() {
            let text = format!("the system has no {} MiB for it", bytes >> 20);
            return Err(LlmError::new(LlmErrorKind::Overloaded, "grammar", text));
        }
        std::hint::black_box(&probe);
        drop(probe);
        let more = |taken: usize| {
            let sum = taken.saturating_add(bytes);
            (sum <= MAX_MEMORY_BYTES).then_some(sum)
        };
        match memory.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, more) {
            Ok(_) => Ok(Self { memory, bytes, size }),
            Err(taken) => Err(LlmError::new(
                LlmErrorKind::Overloaded,
                "grammar",
                format!(
                    "the grammars of other requests have {} of the {} MiB for them; try again",
                    taken >> 20,
                    MAX_MEMORY_BYTES >> 20
                ),
            )),
        }
    }

    /// Gives back what a compiled grammar of so many bytes does not need.
    pub(super) fn shrink(&mut self, bytes: usize) {
        let spare = self.bytes.saturating_sub(bytes.saturating_add(GROWTH_BYTES));
        self.memory.0.fetch_sub(spare, Ordering::AcqRel);
        self.bytes -= spare;
    }
}

impl Drop for GrammarLease {
    fn drop(&mut self) {
        self.memory.0.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grammars_share_memory_and_give_it_back() {
        static OWN: GrammarMemory = GrammarMemory(AtomicUsize::new(0));
        let large: Vec<_> =
            (0..5).map(|_| GrammarLease::of(&OWN, GrammarSize::Large).unwrap()).collect();
        let refusal = GrammarLease::of(&OWN, GrammarSize::Large).unwrap_err();
        assert_eq!(refusal.kind(), LlmErrorKind::Overloaded);
        assert!(refusal.message().contains("1000 of the 1024 MiB"), "{refusal}");
        let mut small = GrammarLease::of(&OWN, GrammarSize::Small).unwrap();
        small.shrink(5000);
        assert_eq!(small.bytes, 5000 + GROWTH_BYTES);
        small.shrink(usize::MAX);
        assert_eq!(small.bytes, 5000 + GROWTH_BYTES);
        drop(large);
        assert_eq!(OWN.0.load(Ordering::Acquire), small.bytes);
        drop(small);
        assert_eq!(OWN.0.load(Ordering::Acquire), 0);
    }
}
