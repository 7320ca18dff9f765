//! Plain implementation of BNNS's matrix multiplication as documented, which reads the descriptors themselves.

use std::ffi::{c_int, c_void};

use super::{BFLOAT_16, BnnsDescriptor, FLOAT_16, FLOAT_32, ROW_MAJOR_MATRIX};

/// Bytes of workspace for each row of the result, so that a workspace matters.
const ROW_BYTES: usize = 24;

/// A matrix as its descriptor says, or its transpose.
struct DescribedMatrix<'a> {
    of: &'a BnnsDescriptor,
    transposed: bool,
}

impl DescribedMatrix<'_> {
    fn rows(&self) -> usize {
        self.of.size[usize::from(!self.transposed)]
    }

    fn columns(&self) -> usize {
        self.of.size[usize::from(self.transposed)]
    }

    /// Returns the distance of an element from the first.
    fn index(&self, row: usize, column: usize) -> usize {
        let (row, column) = if self.transposed { (column, row) } else { (row, column) };
        row * self.of.stride[1] + column * self.of.stride[0]
    }

    /// An element.
    ///
    /// # Safety
    /// The descriptor tells the truth of its memory.
    unsafe fn at(&self, row: usize, column: usize) -> f32 {
        let index = self.index(row, column);
        // SAFETY: the caller vouches for the element.
        let value = unsafe {
            match self.of.data_type {
                FLOAT_32 => *self.of.data.cast::<f32>().add(index),
                FLOAT_16 => widened(*self.of.data.cast::<u16>().add(index)),
                _ => f32::from_bits(u32::from(*self.of.data.cast::<u16>().add(index)) << 16),
            }
        };
        value * self.of.data_scale + self.of.data_bias
    }
}

/// An FP16 by its definition.
fn widened(half: u16) -> f32 {
    let exponent = i32::from(half >> 10 & 0x1f);
    let fraction = f32::from(half & 0x3ff) / 1024.0;
    let size = match exponent {
        0 => fraction * 2.0_f32.powi(-14),
        31 if fraction > 0.0 => f32::NAN,
        31 => f32::INFINITY,
        _ => (1.0 + fraction) * 2.0_f32.powi(exponent - 15),
    };
    if half & 0x8000 == 0 { size } else { -size }
}

/// The product's matrices, where they fit each other.
fn matrices<'a>(
    trans_a: bool,
    trans_b: bool,
    a: &'a BnnsDescriptor,
    b: &'a BnnsDescriptor,
    c: &'a BnnsDescriptor,
) -> Option<[DescribedMatrix<'a>; 3]> {
    let known = |of: &BnnsDescriptor| {
        of.flags == 0
            && of.layout == ROW_MAJOR_MATRIX
            && [FLOAT_16, FLOAT_32, BFLOAT_16].contains(&of.data_type)
            && of.size[..2].iter().all(|&len| len > 0)
            && of.size[2..].iter().chain(&of.stride[2..]).all(|&len| len == 0)
            && of.stride[0] > 0
            && of.stride[1] >= of.size[0]
    };
    let a = DescribedMatrix { of: a, transposed: trans_a };
    let b = DescribedMatrix { of: b, transposed: trans_b };
    let c = DescribedMatrix { of: c, transposed: false };
    let fits = a.columns() == b.rows() && c.rows() == a.rows() && c.columns() == b.columns();
    let all = [a, b, c];
    (fits && all.iter().all(|matrix| known(matrix.of)) && all[2].of.data_type == FLOAT_32)
        .then_some(all)
}

/// Stand-in for `BNNSMatMulWorkspaceSize`.
pub(super) unsafe extern "C" fn workspace_size(
    trans_a: bool,
    trans_b: bool,
    _alpha: f32,
    a: *const BnnsDescriptor,
    b: *const BnnsDescriptor,
    c: *const BnnsDescriptor,
    _parameters: *const c_void,
) -> isize {
    // SAFETY: the caller gives descriptors.
    let [a, b, c] = unsafe { [&*a, &*b, &*c] };
    let bytes = matrices(trans_a, trans_b, a, b, c).map(|[a, ..]| a.rows() * ROW_BYTES);
    bytes.and_then(|bytes| isize::try_from(bytes).ok()).unwrap_or(-1)
}

/// Stand-in for `BNNSMatMulWorkspaceSize` that supports no multiplication.
pub(super) unsafe extern "C" fn no_workspace_size(
    _trans_a: bool,
    _trans_b: bool,
    _alpha: f32,
    _a: *const BnnsDescriptor,
    _b: *const BnnsDescriptor,
    _c: *const BnnsDescriptor,
    _parameters: *const c_void,
) -> isize {
    -1
}

/// Stand-in for `BNNSMatMul`.
#[allow(clippy::too_many_arguments, reason = "BNNS's")]
pub(super) unsafe extern "C" fn mat_mul(
    trans_a: bool,
    trans_b: bool,
    alpha: f32,
    a: *const BnnsDescriptor,
    b: *const BnnsDescriptor,
    c: *const BnnsDescriptor,
    workspace: *mut c_void,
    _parameters: *const c_void,
) -> c_int {
    // SAFETY: the caller gives descriptors.
    let [a, b, c] = unsafe { [&*a, &*b, &*c] };
    let Some([a, b, c]) = matrices(trans_a, trans_b, a, b, c) else { return -1 };
    // SAFETY: the caller gives as much workspace as was asked for.
    unsafe { workspace.cast::<u8>().write_bytes(0xa5, a.rows() * ROW_BYTES) };
    for row in 0..c.rows() {
        for column in 0..c.columns() {
            // SAFETY: the caller's matrices have these elements.
            let term = |t| unsafe { a.at(row, t) * b.at(t, column) };
            let sum: f32 = (0..a.columns()).map(term).sum();
            // SAFETY: as above, and nobody else sees the result.
            unsafe { *c.of.data.cast::<f32>().add(c.index(row, column)) = alpha * sum };
        }
    }
    0
}
