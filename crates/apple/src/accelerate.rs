//! Accelerate's BLAS: the only supported way to an Apple chip's matrix unit.

pub use crate::blas_operand::{
    BlasOperand, BlasSizes, GemmScaling, OperandOrientation, SgemmError,
};
use crate::{Unavailable, cblas};

/// A library of matrix products with CBLAS's interface.
#[derive(Clone, Copy)]
pub struct BlasLibrary {
    sgemm: cblas::SgemmFunction,
    name: &'static str,
}

impl std::fmt::Debug for BlasLibrary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Blas").field("name", &self.name).finish_non_exhaustive()
    }
}

impl BlasLibrary {
    /// The system's: Accelerate, which reaches the chip's matrix unit.
    ///
    /// # Errors
    /// [`Unavailable`] off macOS, and where Accelerate has no such function.
    pub fn system() -> Result<Self, Unavailable> {
        #[cfg(any(target_os = "macos", apple_doubles))]
        return system::find().map(|sgemm| Self { sgemm, name: "accelerate" });
        #[cfg(not(any(target_os = "macos", apple_doubles)))]
        Err(Unavailable::off_macos("Accelerate"))
    }

    /// The one in a shared library, to prove calls where the system has none. The library stays
    /// loaded.
    ///
    /// # Errors
    /// [`Unavailable`] when the library cannot be loaded or has no `cblas_sgemm` with 64-bit
    /// integers.
    #[cfg(feature = "library")]
    pub fn open(path: &std::path::Path) -> Result<Self, Unavailable> {
        Ok(Self {
            sgemm: cblas::SgemmFunction::Wide(cblas::library::sgemm(path)?),
            name: "library",
        })
    }

    /// Returns the name in records of measurements.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.name
    }

    /// `C = alpha * A * B + beta * C` in row-major order. `C`'s rows follow each other at
    /// `c_stride`. With `beta` 0, `C` is written without being read.
    ///
    /// # Errors
    /// [`SgemmError`] when a slice or a stride does not fit the sizes. `C` is then untouched.
    pub fn sgemm(
        self,
        sizes: BlasSizes,
        scaling: GemmScaling,
        a: BlasOperand<'_>,
        b: BlasOperand<'_>,
        c: &mut [f32],
        c_stride: usize,
    ) -> Result<(), SgemmError> {
        cblas::checked(self.sgemm, sizes, scaling, a, b, c, c_stride)
    }
}

/// Works like [`BlasLibrary::sgemm`] of the system's library.
///
/// # Errors
/// Returns the same errors as [`BlasLibrary::system`] and [`BlasLibrary::sgemm`].
pub fn sgemm(
    sizes: BlasSizes,
    alpha: f32,
    a: BlasOperand<'_>,
    b: BlasOperand<'_>,
    beta: f32,
    c: &mut [f32],
    c_stride: usize,
) -> Result<(), SgemmError> {
    BlasLibrary::system()?.sgemm(sizes, GemmScaling { alpha, beta }, a, b, c, c_stride)
}

#[cfg(any(target_os = "macos", apple_doubles))]
pub(crate) mod system {
    use std::ffi::{CStr, c_void};
    use std::ptr::NonNull;
    use std::sync::OnceLock;

    use crate::cblas::{SgemmFunction, chosen};
    use crate::{Unavailable, darwin};

    // Nothing is named here, since the oldest systems lack some: functions are looked up.
    #[cfg(target_os = "macos")]
    #[link(name = "Accelerate", kind = "framework")]
    unsafe extern "C" {}

    /// A function of the frameworks that the program is linked with, of which Accelerate is one.
    pub(crate) fn symbol(name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: the name ends with a zero; the default handle searches what is loaded.
        NonNull::new(unsafe { darwin::dlsym(darwin::RTLD_DEFAULT, name.as_ptr()) })
    }

    /// The function, looked up once.
    pub(super) fn find() -> Result<SgemmFunction, Unavailable> {
        static FOUND: OnceLock<Option<SgemmFunction>> = OnceLock::new();
        // SAFETY: Accelerate declares the functions of these names with these types.
        let found = *FOUND.get_or_init(|| unsafe { chosen(symbol) });
        found.ok_or_else(|| Unavailable::new("Accelerate", "this macOS has no cblas_sgemm"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: [f32; 4] = [1.0, 0.0, 0.0, 1.0];
    const SIZES: BlasSizes = BlasSizes { m: 2, n: 2, k: 2 };

    fn plain(data: &[f32]) -> BlasOperand<'_> {
        BlasOperand { data, stride: 2, orientation: OperandOrientation::Plain }
    }

    #[cfg(not(any(target_os = "macos", apple_doubles)))]
    #[test]
    fn off_macos_the_door_says_unavailable() {
        let mut c = [7.0; 4];
        let error =
            sgemm(SIZES, 1.0, plain(&IDENTITY), plain(&IDENTITY), 0.0, &mut c, 2).unwrap_err();
        assert!(matches!(error, SgemmError::Unavailable(_)));
        assert_eq!(c, [7.0; 4]);
    }

    #[cfg(any(target_os = "macos", apple_doubles))]
    #[test]
    fn accelerate_computes_the_product() {
        let b = [1.0, 2.0, 3.0, 4.0];
        let mut c = [f32::NAN; 4];
        sgemm(SIZES, 2.0, plain(&IDENTITY), plain(&b), 0.0, &mut c, 2).unwrap();
        assert_eq!(c, [2.0, 4.0, 6.0, 8.0]);
    }
}
