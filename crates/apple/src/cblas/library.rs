//! A BLAS in a shared library that is named by its path.

use std::path::Path;

use libloading::Library;

use super::CblasSgemm;
use crate::Unavailable;

/// The names that builds with 64-bit integers give the function.
const NAMES: [&[u8]; 2] = [b"scipy_cblas_sgemm64_\0", b"cblas_sgemm64_\0"];

/// The function of a library, which stays loaded.
pub(crate) fn sgemm(path: &Path) -> Result<CblasSgemm, Unavailable> {
    let failed = |why: String| Unavailable::new("BLAS", format!("{}: {why}", path.display()));
    // SAFETY: the caller names a BLAS, whose initialisers prepare its threads and no more.
    let library = unsafe { Library::new(path) }.map_err(|error| failed(error.to_string()))?;
    let find = |name: &[u8]| {
        // SAFETY: CBLAS declares these functions with this type.
        unsafe { library.get::<CblasSgemm>(name) }.ok().map(|symbol| *symbol)
    };
    let found = NAMES.into_iter().find_map(find);
    let found = found.ok_or_else(|| failed("it has no cblas_sgemm of 64-bit integers".to_owned()));
    // The pointer must stay good.
    std::mem::forget(library);
    found
}
