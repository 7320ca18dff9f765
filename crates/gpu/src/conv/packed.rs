//! Weights on the device, laid out for the ways that read them.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::winograd::WinogradConfig;
use crate::memory::Block;

/// How weights lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// For products: a group's terms, each with all channels of the result.
    Terms,
    /// For plain products: the places of a channel's window, each with all channels of the image.
    Windows,
    /// Transformed for short products.
    Short(WinogradConfig),
}

/// Who asks for weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asks {
    /// The build, which guesses how a run will read them.
    Build,
    /// A run.
    Run,
    /// Somebody who compares candidates: what he does not hold any more may go.
    Measurement,
}

#[derive(Debug)]
struct Kept {
    layout: Layout,
    block: Weak<Block>,
    own: Option<Arc<Block>>,
    guessed: bool,
}

/// What is packed so far. Layouts that runs ask for stay; a guess goes when the first run wants another.
#[derive(Debug, Default)]
pub(super) struct Packed(Mutex<Vec<Kept>>);

impl Packed {
    /// The weights in a layout, made where nobody has them.
    ///
    /// # Errors
    /// What `make` says.
    pub(super) fn get(
        &self,
        layout: Layout,
        asks: Asks,
        make: impl FnOnce() -> Result<Arc<Block>, String>,
    ) -> Result<Arc<Block>, String> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.iter().find(|kept| kept.layout == layout);
        let block = match known.and_then(|kept| kept.block.upgrade()) {
            Some(block) => block,
            None => {
                let block = make()?;
                all.retain(|kept| kept.layout != layout);
                let (weak, guessed) = (Arc::downgrade(&block), asks == Asks::Build);
                all.push(Kept { layout, block: weak, own: None, guessed });
                block
            }
        };
        for kept in all.iter_mut() {
            if kept.layout == layout {
                if asks != Asks::Measurement {
                    kept.own = Some(Arc::clone(&block));
                }
                kept.guessed &= asks != Asks::Run;
            } else if kept.guessed && asks == Asks::Run {
                kept.own = None;
            }
        }
        all.retain(|kept| kept.block.strong_count() > 0);
        Ok(block)
    }

    /// Bytes that are kept.
    pub(super) fn bytes(&self) -> u64 {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter_map(|kept| kept.own.as_ref()).map(|block| block.bytes()).sum()
    }
}
