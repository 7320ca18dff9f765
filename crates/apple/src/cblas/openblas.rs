//! The call against a BLAS that is not ours: proof that the arguments are in CBLAS's order, that
//! strides and transposes mean the same to it, and that 64-bit integers reach it.
//!
//! `GALATEA_CBLAS` names a shared library with 64-bit integers, such as the OpenBLAS inside NumPy's
//! wheels. Without it the test says that it skipped.

use libloading::Library;

use super::{CblasSgemm, SgemmFunction, checked};
use crate::blas_operand::{BlasOperand, BlasSizes, GemmScaling, OperandOrientation};

/// The names that builds of OpenBLAS with 64-bit integers give the function.
const NAMES: [&[u8]; 2] = [b"scipy_cblas_sgemm64_\0", b"cblas_sgemm64_\0"];

fn library() -> Option<Library> {
    let path = std::env::var_os("GALATEA_CBLAS")?;
    // SAFETY: the library is a BLAS, whose initialisers prepare its threads and no more.
    Some(unsafe { Library::new(&path) }.unwrap_or_else(|e| panic!("{}: {e}", path.display())))
}

fn function(library: &Library) -> CblasSgemm {
    let find = |name: &[u8]| {
        // SAFETY: CBLAS declares these functions with this type.
        unsafe { library.get::<CblasSgemm>(name) }.ok().map(|symbol| *symbol)
    };
    NAMES.into_iter().find_map(find).expect("the library has no cblas_sgemm")
}

/// Small whole numbers, whose products and sums a float holds exactly.
fn values(len: usize, seed: usize) -> Vec<f32> {
    (0..len).map(|i| ((i * 7 + seed * 13) % 11) as f32 - 5.0).collect()
}

/// Element (row, column) of a factor as the product reads it.
fn at(operand: &BlasOperand<'_>, row: usize, column: usize) -> f32 {
    match operand.orientation {
        OperandOrientation::Plain => operand.data[row * operand.stride + column],
        OperandOrientation::Transposed => operand.data[column * operand.stride + row],
    }
}

#[test]
fn a_foreign_blas_computes_what_the_arguments_say() {
    let Some(library) = library() else {
        eprintln!("skipped: GALATEA_CBLAS names no library");
        return;
    };
    let sgemm = function(&library);
    let orientations = [OperandOrientation::Plain, OperandOrientation::Transposed];
    let sizes = [(1, 1, 1), (2, 3, 4), (7, 1, 5), (1, 9, 33), (17, 40, 23), (64, 65, 66)];
    let mut cases = 0;
    for (m, n, k) in sizes {
        for (of_a, of_b) in orientations.into_iter().flat_map(|a| orientations.map(|b| (a, b))) {
            for extra in [0, 3] {
                let stored = |orientation, rows: usize, columns: usize| match orientation {
                    OperandOrientation::Plain => (rows, columns + extra),
                    OperandOrientation::Transposed => (columns, rows + extra),
                };
                let ((a_rows, a_stride), (b_rows, b_stride)) =
                    (stored(of_a, m, k), stored(of_b, k, n));
                let a = values(a_rows * a_stride, m);
                let b = values(b_rows * b_stride, n);
                let a = BlasOperand { data: &a, stride: a_stride, orientation: of_a };
                let b = BlasOperand { data: &b, stride: b_stride, orientation: of_b };
                let stride = n + extra;
                let before = values(m * stride, k);
                let mut c = before.clone();
                checked(
                    SgemmFunction::Wide(sgemm),
                    BlasSizes { m, n, k },
                    GemmScaling { alpha: 2.0, beta: 3.0 },
                    a,
                    b,
                    &mut c,
                    stride,
                )
                .unwrap();
                for (i, (&found, &before)) in c.iter().zip(&before).enumerate() {
                    let row = i / stride;
                    let column = i % stride;
                    let sum: f32 =
                        (0..k).map(|t| at(&a, row, t) * at(&b, t, column.min(n - 1))).sum();
                    let wanted = if column < n { 2.0 * sum + 3.0 * before } else { before };
                    assert_eq!(
                        found, wanted,
                        "{m}x{n}x{k} {of_a:?} {of_b:?} +{extra} at {row},{column}"
                    );
                }
                cases += 1;
            }
        }
    }
    assert_eq!(cases, 48);
}
