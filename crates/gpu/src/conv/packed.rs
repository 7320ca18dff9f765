//! Weights on the device, laid out for the ways that read them.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::winograd::WinogradConfig;
use crate::memory::DeviceBlock;

/// Layout of weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConvWeightLayout {
    /// For products: a group's terms, each with all channels of the result.
    Terms,
    /// For plain products: the places of a channel's window, each with all channels of the image.
    Windows,
    /// Transformed for short products.
    Short(WinogradConfig),
}

/// Caller that asks for weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WeightRequester {
    /// The build, which guesses how a run will read them.
    Build,
    /// A run.
    Run,
    /// Somebody who compares candidates: what he does not hold any more may go.
    Measurement,
}

#[derive(Debug)]
struct KeptConvWeights {
    layout: ConvWeightLayout,
    block: Weak<DeviceBlock>,
    own: Option<Arc<DeviceBlock>>,
    guessed: bool,
}

/// Weights that are packed so far. Layouts that runs ask for stay; a guess goes when the first run needs
/// another.
#[derive(Debug, Default)]
pub(super) struct PackedConvWeights(Mutex<Vec<KeptConvWeights>>);

impl PackedConvWeights {
    /// The weights in a layout, made where nobody has them.
    ///
    /// # Errors
    /// Returns the errors of `make`.
    pub(super) fn get(
        &self,
        layout: ConvWeightLayout,
        asks: WeightRequester,
        make: impl FnOnce() -> Result<Arc<DeviceBlock>, String>,
    ) -> Result<Arc<DeviceBlock>, String> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.iter().find(|kept| kept.layout == layout);
        let block = match known.and_then(|kept| kept.block.upgrade()) {
            Some(block) => block,
            None => {
                let block = make()?;
                all.retain(|kept| kept.layout != layout);
                let weak = Arc::downgrade(&block);
                let guessed = asks == WeightRequester::Build;
                all.push(KeptConvWeights { layout, block: weak, own: None, guessed });
                block
            }
        };
        for kept in all.iter_mut() {
            if kept.layout == layout {
                if asks != WeightRequester::Measurement {
                    kept.own = Some(Arc::clone(&block));
                }
                kept.guessed &= asks != WeightRequester::Run;
            } else if kept.guessed && asks == WeightRequester::Run {
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
