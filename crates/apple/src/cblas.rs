//! The CBLAS call: argument order and the checks that make it safe.

#[cfg(any(target_os = "macos", apple_doubles, test))]
use std::ffi::{CStr, c_void};
use std::ffi::{c_int, c_long};
#[cfg(any(target_os = "macos", apple_doubles, test))]
use std::ptr::NonNull;

use crate::blas_operand::{BlasOperand, BlasSizes, GemmScaling, OperandOrientation, SgemmError};

/// `cblas_sgemm` with 64-bit integers.
pub(crate) type CblasSgemm = unsafe extern "C" fn(
    c_int,
    c_int,
    c_int,
    c_long,
    c_long,
    c_long,
    f32,
    *const f32,
    c_long,
    *const f32,
    c_long,
    f32,
    *mut f32,
    c_long,
);

/// `CblasRowMajor`, `CblasNoTrans`, `CblasTrans`. Source: the CBLAS interface (netlib's `cblas.h`).
const ROW_MAJOR: c_int = 101;
const NO_TRANSPOSE: c_int = 111;
const TRANSPOSE: c_int = 112;

/// `cblas_sgemm` with integers of C, which every system with Accelerate has.
pub(crate) type NarrowSgemm = unsafe extern "C" fn(
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    f32,
    *const f32,
    c_int,
    *const f32,
    c_int,
    f32,
    *mut f32,
    c_int,
);

/// Function of a library, by the integers that it takes.
#[derive(Clone, Copy)]
#[cfg_attr(
    not(any(target_os = "macos", apple_doubles, test)),
    allow(dead_code, reason = "macOS has both")
)]
pub(crate) enum SgemmFunction {
    /// Integers of 64 bits.
    Wide(CblasSgemm),
    /// Integers of 32 bits.
    Narrow(NarrowSgemm),
}

/// The interface that `ACCELERATE_NEW_LAPACK` with `ACCELERATE_LAPACK_ILP64` selects, from macOS 13.3 on. With
/// integers of 64 bits no size is narrowed.
#[cfg(any(target_os = "macos", apple_doubles, test))]
const WIDE_NAME: &CStr = c"cblas_sgemm$NEWLAPACK$ILP64";

/// The interface of older systems.
#[cfg(any(target_os = "macos", apple_doubles, test))]
const NARROW_NAME: &CStr = c"cblas_sgemm";

/// Chooses the function of Accelerate by what `find` finds of its names.
///
/// # Safety
/// Each function found has the type that Accelerate declares for its name.
#[cfg(any(target_os = "macos", apple_doubles, test))]
pub(crate) unsafe fn chosen(
    find: impl Fn(&CStr) -> Option<NonNull<c_void>>,
) -> Option<SgemmFunction> {
    if let Some(found) = find(WIDE_NAME) {
        // SAFETY: the caller vouches for the type.
        let function = unsafe { std::mem::transmute::<NonNull<c_void>, CblasSgemm>(found) };
        return Some(SgemmFunction::Wide(function));
    }
    let found = find(NARROW_NAME)?;
    // SAFETY: as above.
    let function = unsafe { std::mem::transmute::<NonNull<c_void>, NarrowSgemm>(found) };
    Some(SgemmFunction::Narrow(function))
}

/// Checks every length, then calls `function`.
pub(crate) fn checked(
    function: SgemmFunction,
    sizes: BlasSizes,
    GemmScaling { alpha, beta }: GemmScaling,
    a: BlasOperand<'_>,
    b: BlasOperand<'_>,
    c: &mut [f32],
    c_stride: usize,
) -> Result<(), SgemmError> {
    let BlasSizes { m, n, k } = sizes;
    if m == 0 || n == 0 {
        return Ok(());
    }
    let lda = a.leading('A', m, k)?;
    let ldb = b.leading('B', k, n)?;
    let ldc = leading('C', c.len(), c_stride, m, n)?;
    let size =
        |value: usize, matrix| c_long::try_from(value).map_err(|_| SgemmError::TooLarge { matrix });
    let m = size(m, 'A')?;
    let n = size(n, 'B')?;
    let k = size(k, 'A')?;
    let (order, a_code, b_code) = (ROW_MAJOR, a.orientation.code(), b.orientation.code());
    let (a, b, c) = (a.data.as_ptr(), b.data.as_ptr(), c.as_mut_ptr());
    match function {
        // SAFETY: `leading` has shown that each matrix, read in row-major order with its leading
        // dimension, lies within its slice; `c` is borrowed mutably, so nothing else sees it; the
        // function only reads `a` and `b` and keeps no pointer.
        SgemmFunction::Wide(function) => unsafe {
            function(order, a_code, b_code, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
        },
        SgemmFunction::Narrow(function) => {
            let narrow = |value: c_long, matrix| {
                c_int::try_from(value).map_err(|_| SgemmError::TooLarge { matrix })
            };
            let (m, n, k) = (narrow(m, 'A')?, narrow(n, 'B')?, narrow(k, 'A')?);
            let (lda, ldb, ldc) = (narrow(lda, 'A')?, narrow(ldb, 'B')?, narrow(ldc, 'C')?);
            // SAFETY: as above.
            unsafe {
                function(order, a_code, b_code, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
            }
        }
    }
    Ok(())
}

impl OperandOrientation {
    fn code(self) -> c_int {
        match self {
            Self::Plain => NO_TRANSPOSE,
            Self::Transposed => TRANSPOSE,
        }
    }
}

impl BlasOperand<'_> {
    /// The leading dimension of a factor that the product reads as `rows` by `columns`.
    fn leading(&self, matrix: char, rows: usize, columns: usize) -> Result<c_long, SgemmError> {
        let (rows, columns) = match self.orientation {
            OperandOrientation::Plain => (rows, columns),
            OperandOrientation::Transposed => (columns, rows),
        };
        leading(matrix, self.data.len(), self.stride, rows, columns)
    }
}

/// Checks that a stored matrix lies within `found` elements; its leading dimension for BLAS, which
/// wants at least 1 even of an empty matrix.
pub(crate) fn leading(
    matrix: char,
    found: usize,
    stride: usize,
    rows: usize,
    columns: usize,
) -> Result<c_long, SgemmError> {
    if stride < columns {
        return Err(SgemmError::Stride { matrix, stride, columns });
    }
    let too_large = SgemmError::TooLarge { matrix };
    if rows > 0 && columns > 0 {
        let needed = (rows - 1).checked_mul(stride).and_then(|n| n.checked_add(columns));
        let needed = needed.ok_or_else(|| too_large.clone())?;
        if found < needed {
            return Err(SgemmError::Short { matrix, found, needed });
        }
    }
    c_long::try_from(stride.max(1)).map_err(|_| too_large)
}

#[cfg(feature = "library")]
pub(crate) mod library;
#[cfg(test)]
mod openblas;

#[cfg(test)]
mod tests {
    use super::*;

    /// A stand-in with CBLAS's contract, for either order and transposition.
    unsafe extern "C" fn plain_sgemm(
        order: c_int,
        transpose_a: c_int,
        transpose_b: c_int,
        m: c_long,
        n: c_long,
        k: c_long,
        alpha: f32,
        a: *const f32,
        lda: c_long,
        b: *const f32,
        ldb: c_long,
        beta: f32,
        c: *mut f32,
        ldc: c_long,
    ) {
        assert_eq!(order, ROW_MAJOR);
        let at = |row: c_long, column: c_long, stride: c_long, transposed: c_int| {
            let index =
                if transposed == TRANSPOSE { column * stride + row } else { row * stride + column };
            usize::try_from(index).unwrap()
        };
        for row in 0..m {
            for column in 0..n {
                let mut sum = 0.0;
                for step in 0..k {
                    // SAFETY: `checked` promises that the element lies in A.
                    let left = unsafe { *a.add(at(row, step, lda, transpose_a)) };
                    // SAFETY: `checked` promises that the element lies in B.
                    let right = unsafe { *b.add(at(step, column, ldb, transpose_b)) };
                    sum += left * right;
                }
                // SAFETY: `checked` promises that the element lies in C.
                let element = unsafe { &mut *c.add(at(row, column, ldc, NO_TRANSPOSE)) };
                let before = if beta == 0.0 { 0.0 } else { beta * *element };
                *element = alpha * sum + before;
            }
        }
    }

    fn plain(data: &[f32], stride: usize) -> BlasOperand<'_> {
        BlasOperand { data, stride, orientation: OperandOrientation::Plain }
    }

    fn transposed(data: &[f32], stride: usize) -> BlasOperand<'_> {
        BlasOperand { data, stride, orientation: OperandOrientation::Transposed }
    }

    const A: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    const B: [f32; 12] = [1.0, 0.0, 2.0, 1.0, 0.0, 1.0, 1.0, 3.0, 1.0, 1.0, 0.0, 2.0];
    const SIZES: BlasSizes = BlasSizes { m: 2, n: 4, k: 3 };
    /// A (2x3) times B (3x4), by hand.
    const AB: [f32; 8] = [4.0, 5.0, 4.0, 13.0, 10.0, 11.0, 13.0, 31.0];

    #[test]
    fn a_rectangular_product_has_its_arguments_in_order() {
        let mut c = [f32::NAN; 8];
        checked(
            SgemmFunction::Wide(plain_sgemm),
            SIZES,
            GemmScaling { alpha: 1.0, beta: 0.0 },
            plain(&A, 3),
            plain(&B, 4),
            &mut c,
            4,
        )
        .unwrap();
        assert_eq!(c, AB);
    }

    #[test]
    fn transposed_factors_give_the_same_product() {
        let at = [1.0, 4.0, 2.0, 5.0, 3.0, 6.0];
        let bt = [1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 2.0, 1.0, 0.0, 1.0, 3.0, 2.0];
        let mut c = [0.0; 8];
        checked(
            SgemmFunction::Wide(plain_sgemm),
            SIZES,
            GemmScaling { alpha: 1.0, beta: 0.0 },
            transposed(&at, 2),
            transposed(&bt, 3),
            &mut c,
            4,
        )
        .unwrap();
        assert_eq!(c, AB);
    }

    #[test]
    fn strides_alpha_and_beta_reach_the_call() {
        let wide = [1.0, 2.0, 3.0, -9.0, 4.0, 5.0, 6.0];
        let mut c = [1.0; 11];
        checked(
            SgemmFunction::Wide(plain_sgemm),
            SIZES,
            GemmScaling { alpha: 2.0, beta: 10.0 },
            plain(&wide, 4),
            plain(&B, 4),
            &mut c,
            6,
        )
        .unwrap();
        assert_eq!(c[..4], AB[..4].iter().map(|v| 2.0 * v + 10.0).collect::<Vec<_>>()[..]);
        assert_eq!(c[4..6], [1.0, 1.0], "elements between the rows stay");
        assert_eq!(c[6..10], AB[4..].iter().map(|v| 2.0 * v + 10.0).collect::<Vec<_>>()[..]);
    }

    #[test]
    fn no_terms_leave_beta_times_c() {
        let mut c = [3.0; 8];
        let sizes = BlasSizes { k: 0, ..SIZES };
        checked(
            SgemmFunction::Wide(plain_sgemm),
            sizes,
            GemmScaling { alpha: 1.0, beta: 2.0 },
            plain(&[], 0),
            plain(&[], 4),
            &mut c,
            4,
        )
        .unwrap();
        assert_eq!(c, [6.0; 8]);
    }

    #[test]
    fn short_slices_and_strides_are_refused_before_the_call() {
        let mut c = [0.0; 8];
        let mut call = |a, b| {
            checked(
                SgemmFunction::Wide(plain_sgemm),
                SIZES,
                GemmScaling { alpha: 1.0, beta: 0.0 },
                a,
                b,
                &mut c,
                4,
            )
        };
        let short = call(plain(&A[..5], 3), plain(&B, 4)).unwrap_err();
        assert_eq!(short, SgemmError::Short { matrix: 'A', found: 5, needed: 6 });
        let stride = call(plain(&A, 3), plain(&B, 3)).unwrap_err();
        assert_eq!(stride, SgemmError::Stride { matrix: 'B', stride: 3, columns: 4 });
        let mut small = [0.0; 7];
        let c = checked(
            SgemmFunction::Wide(plain_sgemm),
            SIZES,
            GemmScaling { alpha: 1.0, beta: 0.0 },
            plain(&A, 3),
            plain(&B, 4),
            &mut small,
            4,
        );
        assert_eq!(c.unwrap_err(), SgemmError::Short { matrix: 'C', found: 7, needed: 8 });
    }

    #[test]
    fn sizes_that_overflow_are_refused() {
        let mut c = [0.0; 8];
        let sizes = BlasSizes { m: usize::MAX, n: 4, k: 3 };
        let result = checked(
            SgemmFunction::Wide(plain_sgemm),
            sizes,
            GemmScaling { alpha: 1.0, beta: 0.0 },
            plain(&A, 3),
            plain(&B, 4),
            &mut c,
            4,
        );
        assert_eq!(result.unwrap_err(), SgemmError::TooLarge { matrix: 'A' });
    }

    /// The stand-in with integers of C.
    unsafe extern "C" fn narrow_sgemm(
        order: c_int,
        transpose_a: c_int,
        transpose_b: c_int,
        m: c_int,
        n: c_int,
        k: c_int,
        alpha: f32,
        a: *const f32,
        lda: c_int,
        b: *const f32,
        ldb: c_int,
        beta: f32,
        c: *mut f32,
        ldc: c_int,
    ) {
        let [m, n, k, lda, ldb, ldc] = [m, n, k, lda, ldb, ldc].map(c_long::from);
        // SAFETY: `checked` promises the same to both.
        unsafe {
            plain_sgemm(
                order,
                transpose_a,
                transpose_b,
                m,
                n,
                k,
                alpha,
                a,
                lda,
                b,
                ldb,
                beta,
                c,
                ldc,
            );
        }
    }

    /// Returns the function of a system that has these names of Accelerate.
    fn system(names: &[&CStr]) -> Option<SgemmFunction> {
        let find = |name: &CStr| {
            let wide = name == WIDE_NAME;
            let function =
                if wide { plain_sgemm as *mut c_void } else { narrow_sgemm as *mut c_void };
            NonNull::new(function).filter(|_| names.contains(&name))
        };
        // SAFETY: the stand-ins have the types of their names.
        unsafe { chosen(find) }
    }

    #[test]
    fn a_system_without_wide_integers_multiplies_by_narrow_ones() {
        let scaling = GemmScaling { alpha: 1.0, beta: 0.0 };
        for (names, wide) in [(&[NARROW_NAME, WIDE_NAME][..], true), (&[NARROW_NAME][..], false)] {
            let function = system(names).unwrap();
            assert_eq!(matches!(function, SgemmFunction::Wide(_)), wide);
            let mut c = [f32::NAN; 8];
            checked(function, SIZES, scaling, plain(&A, 3), plain(&B, 4), &mut c, 4).unwrap();
            assert_eq!(c, AB);
        }
        assert!(system(&[]).is_none());
    }

    #[test]
    fn sizes_beyond_narrow_integers_are_refused() {
        let function = system(&[NARROW_NAME]).unwrap();
        let sizes = BlasSizes { m: 1, n: 1, k: 1 };
        let scaling = GemmScaling { alpha: 1.0, beta: 0.0 };
        let mut c = [7.0];
        // One row needs no more elements, however far the next one would lie.
        let far = plain(&A, 1 << 31);
        let refused = checked(function, sizes, scaling, far, plain(&B, 1), &mut c, 1);
        assert_eq!(refused.unwrap_err(), SgemmError::TooLarge { matrix: 'A' });
        assert_eq!(c, [7.0]);
    }
}
