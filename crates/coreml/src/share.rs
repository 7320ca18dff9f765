//! Constants of several functions that are the same.

use std::collections::HashMap;
use std::sync::Arc;

use galatea_formats::coreml::mil::{MilArgument, MilBlock, MilValue, fingerprint, same_bytes};

/// Constants of fewer elements stay in the program.
const SMALL: usize = 10;

/// Constants that functions have, each held in memory once while the next function is made. The file of
/// weights has equal ones once in any case.
#[derive(Debug, Default)]
pub(super) struct SharedConstants {
    known: HashMap<u64, Vec<Arc<MilValue>>>,
}

impl SharedConstants {
    /// Takes constants of a block that others have too in place of its own.
    pub(super) fn share(&mut self, block: &mut MilBlock) {
        for operation in &mut block.operations {
            for value in operation.attributes.values_mut() {
                self.replace(value);
            }
            for argument in operation.inputs.values_mut().flatten() {
                if let MilArgument::Value(value) = argument {
                    self.replace(value);
                }
            }
            for inner in &mut operation.blocks {
                self.share(inner);
            }
        }
    }

    fn replace(&mut self, value: &mut Arc<MilValue>) {
        let MilValue::Tensor(element, tensor) = &**value else { return };
        let Ok(bytes) = tensor.unaligned_bytes() else { return };
        if tensor.elements() < SMALL || bytes.is_empty() {
            return;
        }
        let known = self.known.entry(fingerprint(bytes)).or_default();
        let same = |other: &&Arc<MilValue>| match &***other {
            MilValue::Tensor(own, one) => {
                own == element && one.shape() == tensor.shape() && same_bytes(one, tensor)
            }
            _ => false,
        };
        match known.iter().find(same) {
            Some(other) => *value = Arc::clone(other),
            None => known.push(Arc::clone(value)),
        }
    }
}
