//! Constants of several functions that are the same.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use galatea_formats::coreml::mil::{Argument, Block, Value};

/// Constants of fewer elements stay in the program.
const SMALL: usize = 10;

/// Constants that functions have, each held once: then the file of weights has them once too.
#[derive(Debug, Default)]
pub(super) struct Shared {
    known: HashMap<u64, Vec<Arc<Value>>>,
}

impl Shared {
    /// Takes constants of a block that others have too in place of its own.
    pub(super) fn share(&mut self, block: &mut Block) {
        for operation in &mut block.operations {
            for value in operation.attributes.values_mut() {
                self.replace(value);
            }
            for argument in operation.inputs.values_mut().flatten() {
                if let Argument::Value(value) = argument {
                    self.replace(value);
                }
            }
            for inner in &mut operation.blocks {
                self.share(inner);
            }
        }
    }

    fn replace(&mut self, value: &mut Arc<Value>) {
        let Value::Tensor(element, tensor) = &**value else { return };
        let Ok(bytes) = tensor.unaligned_bytes() else { return };
        if tensor.elements() < SMALL || bytes.is_empty() {
            return;
        }
        let mut hasher = DefaultHasher::new();
        (tensor.shape(), bytes).hash(&mut hasher);
        let known = self.known.entry(hasher.finish()).or_default();
        let same = |other: &&Arc<Value>| match &***other {
            Value::Tensor(own, one) => {
                own == element
                    && one.shape() == tensor.shape()
                    && one.unaligned_bytes().is_ok_and(|own| own == bytes)
            }
            _ => false,
        };
        match known.iter().find(same) {
            Some(other) => *value = Arc::clone(other),
            None => known.push(Arc::clone(value)),
        }
    }
}
