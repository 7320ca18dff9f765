//! Operators that write text: `GreedySearch`, `Sampling` and `BeamSearch` run a decoder once for each token.

mod beam;
mod decoder;
mod hypotheses;
mod random;
mod requests;
mod scores;
mod single;
mod translator;

#[cfg(test)]
mod search_tests;

pub use beam::BeamSearch;
pub use single::{TokenChoice, TokenSearch, TopShare};
