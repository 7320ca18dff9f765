//! Matrices that several nodes have: a table of tokens often is the matrix of logits too.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use galatea_graph::blocks::{BlockWeights, CodeFormat};
use galatea_tensor::DataType;

use super::pack::PackedCodes;
use crate::device::GpuDevice;

/// Source of a matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
enum MatrixSource {
    /// Bytes of a checkpoint, and what is made of them.
    Bytes { at: (usize, usize), sizes: [usize; 2], of: CodeFormat, factors: DataType },
    /// Something that lies nowhere else.
    Own(usize),
}

impl MatrixSource {
    fn of(source: &Arc<dyn BlockWeights>) -> Self {
        match source.source() {
            Some(at) => Self::Bytes {
                at,
                sizes: [source.rows(), source.columns()],
                of: source.format(),
                factors: source.factors(),
            },
            None => Self::Own(Arc::as_ptr(source).cast::<()>().addr()),
        }
    }
}

/// A matrix that somebody has on a device. While it lives, so does its source, and nothing else is in its
/// place.
struct SharedMatrix {
    device: Weak<GpuDevice>,
    place: MatrixSource,
    matrix: PackingSlot,
}

/// A matrix that is packed once, while others that want it wait.
type PackingSlot = Arc<Mutex<Weak<PackedCodes>>>;

static KNOWN: Mutex<Vec<SharedMatrix>> = Mutex::new(Vec::new());

/// The matrix as it lies on the device, packed by `pack` if nobody has it there.
///
/// # Errors
/// Returns the errors of `pack`.
pub(super) fn shared(
    device: &Arc<GpuDevice>,
    source: &Arc<dyn BlockWeights>,
    pack: impl FnOnce() -> Result<PackedCodes, String>,
) -> Result<Arc<PackedCodes>, String> {
    let slot = slot(device, MatrixSource::of(source));
    let mut own = slot.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = own.upgrade() {
        return Ok(found);
    }
    let matrix = Arc::new(pack()?.with_source(source));
    *own = Arc::downgrade(&matrix);
    Ok(matrix)
}

/// Returns the slot of the matrix from that place, whether it is on the device yet or not.
fn slot(device: &Arc<GpuDevice>, place: MatrixSource) -> PackingSlot {
    let mut all = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|one| {
        let wanted = Arc::strong_count(&one.matrix) > 1;
        wanted || one.matrix.lock().is_ok_and(|matrix| matrix.strong_count() > 0)
    });
    let own =
        |one: &&SharedMatrix| one.place == place && one.device.as_ptr() == Arc::as_ptr(device);
    if let Some(found) = all.iter().find(own) {
        return Arc::clone(&found.matrix);
    }
    let matrix = PackingSlot::default();
    all.push(SharedMatrix { device: Arc::downgrade(device), place, matrix: Arc::clone(&matrix) });
    matrix
}
