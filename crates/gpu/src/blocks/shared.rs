//! Matrices that several nodes have: a table of tokens often is the matrix of logits too.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use galatea_graph::blocks::BlockWeights;

use super::pack::Packed;
use crate::device::Device;

/// A matrix that somebody has on a device.
struct Known {
    device: Weak<Device>,
    /// The text of the source, which says where it lies and how; no other source that lives has it.
    text: String,
    matrix: Weak<Packed>,
}

static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());

/// The matrix as it lies on the device, packed by `pack` if nobody has it there.
///
/// # Errors
/// As `pack`.
pub(super) fn shared(
    device: &Arc<Device>,
    source: &Arc<dyn BlockWeights>,
    pack: impl FnOnce() -> Result<Packed, String>,
) -> Result<Arc<Packed>, String> {
    let text = format!("{source:?}");
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut all = known();
    all.retain(|one| one.matrix.strong_count() > 0);
    let own = |one: &&Known| one.text == text && one.device.as_ptr() == Arc::as_ptr(device);
    if let Some(found) = all.iter().find(own).and_then(|one| one.matrix.upgrade()) {
        return Ok(found);
    }
    drop(all);
    let matrix = Arc::new(pack()?.with_source(source));
    let (device, of) = (Arc::downgrade(device), Arc::downgrade(&matrix));
    known().push(Known { device, text, matrix: of });
    Ok(matrix)
}
