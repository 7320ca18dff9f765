//! Doubles of BNNS's matrix product.
//!
//! Source: Apple, Accelerate documentation, `BNNSMatMul`, `BNNSMatMulWorkspaceSize`, `BNNSNDArrayDescriptor` and
//! `BNNSDataLayoutRowMajorMatrix`; its headers `bnns_structures.h` and `bnns_constants.h`.

use std::cell::Cell;
use std::ffi::{c_int, c_void};

use super::played::PlayedMac;
use super::refuse;

const FLOAT_16: u32 = 0x1_0010;
const FLOAT_32: u32 = 0x1_0020;
const BFLOAT_16: u32 = 0x1_8010;
const ROW_MAJOR_MATRIX: u32 = 0x2_0000;

/// Bytes of workspace for each element of the result, and at least.
const WORKSPACE_BYTES: usize = 4;
const MIN_WORKSPACE_BYTES: usize = 64;

/// `BNNSNDArrayDescriptor`.
#[repr(C)]
pub(super) struct ArrayDescriptor {
    flags: u32,
    layout: u32,
    size: [usize; 8],
    stride: [usize; 8],
    data: *mut c_void,
    data_type: u32,
    table_data: *mut c_void,
    table_data_type: u32,
    data_scale: f32,
    data_bias: f32,
}

thread_local! {
    /// Bytes of workspace that the thread was told last.
    static TOLD: Cell<Option<usize>> = const { Cell::new(None) };
}

/// A matrix as the product reads it.
struct ReadMatrix<'a> {
    of: &'a ArrayDescriptor,
    rows: usize,
    columns: usize,
    /// Elements from one row, and from one column, to the next.
    steps: [usize; 2],
}

impl<'a> ReadMatrix<'a> {
    /// Checks a descriptor.
    ///
    /// # Safety
    /// It is null or a descriptor.
    unsafe fn new(function: &str, name: &str, of: *const ArrayDescriptor, turned: bool) -> Self {
        let wrong = |why: String| -> ! { refuse(function, &format!("{name}: {why}")) };
        // SAFETY: the caller gives a descriptor.
        let Some(of) = (unsafe { of.as_ref::<'a>() }) else { wrong("no descriptor".to_owned()) };
        if of.flags != 0 || of.layout != ROW_MAJOR_MATRIX {
            wrong(format!("flags {:#x} and layout {:#x}", of.flags, of.layout));
        }
        if ![FLOAT_16, FLOAT_32, BFLOAT_16].contains(&of.data_type) {
            wrong(format!("type {:#x} of elements", of.data_type));
        }
        let [columns, rows] = [of.size[0], of.size[1]];
        if rows == 0 || columns == 0 || of.size[2..].iter().any(|&size| size != 0) {
            wrong(format!("sizes {:?}", of.size));
        }
        if of.stride[0] != 1 || of.stride[1] < columns {
            wrong(format!("strides {:?} of {columns} columns", of.stride));
        }
        if of.data.is_null() || !of.data.addr().is_multiple_of(of.element_bytes()) {
            wrong(format!("elements at {:?}", of.data));
        }
        if !of.table_data.is_null() || of.data_scale != 1.0 || of.data_bias != 0.0 {
            wrong("a table, a scale or a bias".to_owned());
        }
        let (rows, columns, steps) = match turned {
            false => (rows, columns, [of.stride[1], 1]),
            true => (columns, rows, [1, of.stride[1]]),
        };
        Self { of, rows, columns, steps }
    }

    fn index(&self, row: usize, column: usize) -> usize {
        row * self.steps[0] + column * self.steps[1]
    }

    /// An element.
    ///
    /// # Safety
    /// The descriptor tells the truth of its memory.
    unsafe fn at(&self, row: usize, column: usize) -> f32 {
        let index = self.index(row, column);
        let half = || {
            // SAFETY: the caller vouches for the memory.
            unsafe { *self.of.data.cast::<u16>().add(index) }
        };
        match self.of.data_type {
            FLOAT_16 => of_half(half()),
            BFLOAT_16 => f32::from_bits(u32::from(half()) << 16),
            // SAFETY: as above.
            _ => unsafe { *self.of.data.cast::<f32>().add(index) },
        }
    }
}

impl ArrayDescriptor {
    fn element_bytes(&self) -> usize {
        (self.data_type & 0xff) as usize / 8
    }
}

/// The value of an FP16.
fn of_half(bits: u16) -> f32 {
    let magnitude = u32::from(bits & 0x7fff);
    let value = match magnitude {
        0x7c00.. => f32::from_bits(0x7f80_0000 | (magnitude & 0x3ff) << 13),
        // Its exponent counts from 15 and that of FP32 from 127; the product is exact, below the normal numbers, too.
        _ => f32::from_bits(magnitude << 13) * 2.0_f32.powi(112),
    };
    if bits & 0x8000 == 0 { value } else { -value }
}

/// Matrices of a product.
struct ReadProduct<'a> {
    a: ReadMatrix<'a>,
    b: ReadMatrix<'a>,
    c: ReadMatrix<'a>,
}

impl ReadProduct<'_> {
    /// Checks that the matrices fit each other.
    fn checked(self, function: &str) -> Self {
        let Self { a, b, c } = &self;
        if a.columns != b.rows || a.rows != c.rows || b.columns != c.columns {
            let of = |matrix: &ReadMatrix<'_>| format!("{}x{}", matrix.rows, matrix.columns);
            refuse(function, &format!("{} times {} is no {}", of(a), of(b), of(c)));
        }
        if c.of.data_type != FLOAT_32 {
            refuse(function, "the result is not FP32");
        }
        self
    }

    fn workspace_bytes(&self) -> usize {
        (self.c.rows * self.c.columns * WORKSPACE_BYTES).max(MIN_WORKSPACE_BYTES)
    }
}

/// Double of `BNNSMatMulWorkspaceSize`. A Mac that refuses it takes no such product.
///
/// # Safety
/// The descriptors are descriptors.
pub(super) unsafe extern "C" fn workspace_size(
    trans_a: bool,
    trans_b: bool,
    _alpha: f32,
    a: *const ArrayDescriptor,
    b: *const ArrayDescriptor,
    c: *const ArrayDescriptor,
    _parameters: *const c_void,
) -> isize {
    const NAME: &str = "BNNSMatMulWorkspaceSize";
    if PlayedMac::here().refuses(NAME) {
        return -1;
    }
    let product = ReadProduct {
        // SAFETY: the caller gives descriptors.
        a: unsafe { ReadMatrix::new(NAME, "A", a, trans_a) },
        // SAFETY: as above.
        b: unsafe { ReadMatrix::new(NAME, "B", b, trans_b) },
        // SAFETY: as above.
        c: unsafe { ReadMatrix::new(NAME, "C", c, false) },
    };
    let bytes = product.checked(NAME).workspace_bytes();
    TOLD.set(Some(bytes));
    bytes.cast_signed()
}

/// Double of `BNNSMatMul`.
///
/// # Safety
/// The descriptors tell the truth of their memory, and the workspace is as large as was told.
pub(super) unsafe extern "C" fn mat_mul(
    trans_a: bool,
    trans_b: bool,
    alpha: f32,
    a: *const ArrayDescriptor,
    b: *const ArrayDescriptor,
    c: *const ArrayDescriptor,
    workspace: *mut c_void,
    _parameters: *const c_void,
) -> c_int {
    const NAME: &str = "BNNSMatMul";
    if PlayedMac::here().refuses(NAME) {
        return 1;
    }
    let product = ReadProduct {
        // SAFETY: the caller gives descriptors.
        a: unsafe { ReadMatrix::new(NAME, "A", a, trans_a) },
        // SAFETY: as above.
        b: unsafe { ReadMatrix::new(NAME, "B", b, trans_b) },
        // SAFETY: as above.
        c: unsafe { ReadMatrix::new(NAME, "C", c, false) },
    }
    .checked(NAME);
    if workspace.is_null() || TOLD.take() != Some(product.workspace_bytes()) {
        refuse(NAME, "the thread has not asked for this product's workspace");
    }
    // SAFETY: the caller has that much workspace, which the product may use as it likes.
    unsafe { workspace.cast::<u8>().write_bytes(0xa5, product.workspace_bytes()) };
    let ReadProduct { a, b, c } = &product;
    for row in 0..c.rows {
        for column in 0..c.columns {
            // SAFETY: the caller vouches for the matrices.
            let term = |at| unsafe { a.at(row, at) * b.at(at, column) };
            let sum: f32 = (0..a.columns).map(term).sum();
            let result = c.of.data.cast::<f32>();
            // SAFETY: as above, and nobody else sees the result.
            unsafe { *result.add(c.index(row, column)) = alpha * sum };
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_has_its_value() {
        let cases = [(0x0000, 0.0), (0x3c00, 1.0), (0xc000, -2.0), (0x7bff, 65504.0)];
        for (bits, value) in cases {
            assert_eq!(of_half(bits), value);
        }
        assert_eq!(of_half(0x0001), 2.0_f32.powi(-24));
        assert_eq!(of_half(0xfc00), f32::NEG_INFINITY);
        assert!(of_half(0x7e00).is_nan());
    }
}
