//! Accelerate's BLAS: the only supported way to an Apple chip's matrix unit.

use crate::Unavailable;
#[cfg(target_os = "macos")]
use crate::cblas;

/// How an operand lies in memory. Rows follow each other at `stride` elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Orientation {
    /// As the product reads it.
    Plain,
    /// Transposed: its columns are stored as rows.
    Transposed,
}

/// One factor of a product.
#[derive(Debug, Clone, Copy)]
pub struct Operand<'a> {
    /// The elements.
    pub data: &'a [f32],
    /// Elements from one stored row to the next.
    pub stride: usize,
    /// Whether the stored matrix is the transposed one.
    pub orientation: Orientation,
}

/// The sizes of `C = alpha * A * B + beta * C`: `A` is `m` by `k`, `B` is `k` by `n`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Rows of the result.
    pub m: usize,
    /// Columns of the result.
    pub n: usize,
    /// Terms of each sum.
    pub k: usize,
}

/// Why a product was not computed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SgemmError {
    /// Not on this machine.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// A slice is shorter than its matrix.
    #[error("matrix {matrix} has {found} elements, its sizes need {needed}")]
    Short {
        /// `A`, `B` or `C`.
        matrix: char,
        /// Elements found.
        found: usize,
        /// Elements needed.
        needed: usize,
    },
    /// A stride is smaller than a row.
    #[error("matrix {matrix} has stride {stride}, its rows have {columns} elements")]
    Stride {
        /// `A`, `B` or `C`.
        matrix: char,
        /// The stride given.
        stride: usize,
        /// Elements of one stored row.
        columns: usize,
    },
    /// A size, a stride or their product exceeds what BLAS can be told.
    #[error("matrix {matrix} is too large")]
    TooLarge {
        /// `A`, `B` or `C`.
        matrix: char,
    },
}

/// `C = alpha * A * B + beta * C` in row-major order, on the chip's matrix unit. `C`'s rows follow
/// each other at `c_stride`. With `beta` 0, `C` is written without being read.
///
/// # Errors
/// [`SgemmError`]: off macOS always [`SgemmError::Unavailable`], elsewhere when a slice or a stride
/// does not fit the sizes. `C` is then untouched.
pub fn sgemm(
    sizes: Sizes,
    alpha: f32,
    a: Operand<'_>,
    b: Operand<'_>,
    beta: f32,
    c: &mut [f32],
    c_stride: usize,
) -> Result<(), SgemmError> {
    #[cfg(target_os = "macos")]
    return cblas::checked(cblas::cblas_sgemm_ilp64, sizes, (alpha, beta), (a, b), c, c_stride);
    #[cfg(not(target_os = "macos"))]
    {
        let _ = (sizes, alpha, a, b, beta, c, c_stride);
        Err(Unavailable::off_macos("Accelerate").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: [f32; 4] = [1.0, 0.0, 0.0, 1.0];
    const SIZES: Sizes = Sizes { m: 2, n: 2, k: 2 };

    fn plain(data: &[f32]) -> Operand<'_> {
        Operand { data, stride: 2, orientation: Orientation::Plain }
    }

    #[cfg(not(target_os = "macos"))]
    #[test]
    fn off_macos_the_door_says_unavailable() {
        let mut c = [7.0; 4];
        let error =
            sgemm(SIZES, 1.0, plain(&IDENTITY), plain(&IDENTITY), 0.0, &mut c, 2).unwrap_err();
        assert!(matches!(error, SgemmError::Unavailable(_)));
        assert_eq!(c, [7.0; 4]);
    }

    #[cfg(target_os = "macos")]
    #[test]
    fn accelerate_computes_the_product() {
        let b = [1.0, 2.0, 3.0, 4.0];
        let mut c = [f32::NAN; 4];
        sgemm(SIZES, 2.0, plain(&IDENTITY), plain(&b), 0.0, &mut c, 2).unwrap();
        assert_eq!(c, [2.0, 4.0, 6.0, 8.0]);
    }
}
