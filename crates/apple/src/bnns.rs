//! Matrix products with factors of 16 bits, by BNNS: BLAS has none.
//!
//! The functions are there from macOS 13 on and deprecated since 15, so they are looked up when they
//! are first needed; where they are missing the binding is closed and nothing else happens.
//!
//! Source: Apple, Accelerate documentation, `BNNSMatMul`, `BNNSMatMulWorkspaceSize`,
//! `BNNSNDArrayDescriptor` and `BNNSDataLayoutRowMajorMatrix`.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};

use crate::blas_operand::{BlasSizes, OperandOrientation, SgemmError};
use crate::{Unavailable, cblas};

#[cfg(any(test, feature = "library"))]
mod plain;

/// Elements of a factor.
#[derive(Debug, Clone, Copy)]
pub enum BnnsElements<'a> {
    /// Single precision.
    Fp32(&'a [f32]),
    /// IEEE half precision, as bits.
    Fp16(&'a [u16]),
    /// The upper halves of single precision, as bits.
    Bf16(&'a [u16]),
}

impl BnnsElements<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Fp32(data) => data.len(),
            Self::Fp16(data) | Self::Bf16(data) => data.len(),
        }
    }

    /// Returns the address of the elements and their `BNNSDataType`.
    fn parts(&self) -> (*const c_void, u32) {
        match self {
            Self::Fp32(data) => (data.as_ptr().cast(), FLOAT_32),
            Self::Fp16(data) => (data.as_ptr().cast(), FLOAT_16),
            Self::Bf16(data) => (data.as_ptr().cast(), BFLOAT_16),
        }
    }
}

/// One factor of a product.
#[derive(Debug, Clone, Copy)]
pub struct BnnsFactor<'a> {
    /// The elements.
    pub data: BnnsElements<'a>,
    /// Elements from one stored row to the next.
    pub stride: usize,
    /// Orientation of the stored matrix: plain or transposed.
    pub orientation: OperandOrientation,
}

/// Reason why a matrix multiplication was not computed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MatMulError {
    /// A slice or a stride does not fit the sizes.
    #[error(transparent)]
    Layout(#[from] SgemmError),
    /// BNNS does not take such factors here.
    #[error("BNNS refuses the product")]
    Refused,
    /// BNNS took the factors and failed; what it left in the result is unknown.
    #[error("BNNSMatMul failed with {status}")]
    Failed {
        /// Status that it returned.
        status: c_int,
    },
}

/// `BNNSMatMul`.
type BnnsMatMul = unsafe extern "C" fn(
    bool,
    bool,
    f32,
    *const BnnsDescriptor,
    *const BnnsDescriptor,
    *const BnnsDescriptor,
    *mut c_void,
    *const c_void,
) -> c_int;

/// `BNNSMatMulWorkspaceSize`.
type WorkspaceSize = unsafe extern "C" fn(
    bool,
    bool,
    f32,
    *const BnnsDescriptor,
    *const BnnsDescriptor,
    *const BnnsDescriptor,
    *const c_void,
) -> isize;

/// `BNNSDataType`.
const FLOAT_16: u32 = 0x1_0010;
const FLOAT_32: u32 = 0x1_0020;
const BFLOAT_16: u32 = 0x1_8010;

/// `BNNSDataLayoutRowMajorMatrix`: `size[0]` columns and `size[1]` rows; the value at (row, column) is
/// `row * stride[1] + column * stride[0]` elements from the first.
const ROW_MAJOR_MATRIX: u32 = 0x2_0000;

/// `BNNSNDArrayDescriptor`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct BnnsDescriptor {
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

// What C makes of the structure's declaration on a 64-bit system.
const _: () = assert!(
    std::mem::offset_of!(BnnsDescriptor, size) == 8
        && std::mem::offset_of!(BnnsDescriptor, stride) == 72
        && std::mem::offset_of!(BnnsDescriptor, data) == 136
        && std::mem::offset_of!(BnnsDescriptor, data_type) == 144
        && std::mem::offset_of!(BnnsDescriptor, table_data) == 152
        && std::mem::offset_of!(BnnsDescriptor, table_data_type) == 160
        && std::mem::offset_of!(BnnsDescriptor, data_scale) == 164
        && std::mem::offset_of!(BnnsDescriptor, data_bias) == 168
        && size_of::<BnnsDescriptor>() == 176
);

impl BnnsDescriptor {
    /// Creates the descriptor of a stored matrix.
    fn of(data: *const c_void, data_type: u32, rows: usize, columns: usize, stride: usize) -> Self {
        let pair = |x, y| [x, y, 0, 0, 0, 0, 0, 0];
        Self {
            flags: 0,
            layout: ROW_MAJOR_MATRIX,
            size: pair(columns, rows),
            stride: pair(1, stride),
            data: data.cast_mut(),
            data_type,
            table_data: std::ptr::null_mut(),
            table_data_type: data_type,
            data_scale: 1.0,
            data_bias: 0.0,
        }
    }
}

/// BNNS's matrix products.
#[derive(Clone, Copy)]
pub struct BnnsLibrary {
    mat_mul: BnnsMatMul,
    workspace_size: WorkspaceSize,
}

impl std::fmt::Debug for BnnsLibrary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bnns").finish_non_exhaustive()
    }
}

thread_local! {
    /// A thread's workspace, as large as any product of it has needed.
    static WORKSPACE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl BnnsLibrary {
    /// Name in records of measurements.
    pub const NAME: &str = "bnns";

    /// The system's.
    ///
    /// # Errors
    /// [`Unavailable`] off macOS, and where the system lacks the functions.
    pub fn system() -> Result<Self, Unavailable> {
        #[cfg(any(target_os = "macos", apple_doubles))]
        return system::find();
        #[cfg(not(any(target_os = "macos", apple_doubles)))]
        Err(Unavailable::off_macos("BNNS"))
    }

    /// Functions that read the same arguments and compute what BNNS documents, to prove calls where
    /// the system has none.
    #[cfg(any(test, feature = "library"))]
    #[must_use]
    pub fn plain() -> Self {
        Self { mat_mul: plain::mat_mul, workspace_size: plain::workspace_size }
    }

    /// Works like [`BnnsLibrary::plain`], but refuses every multiplication.
    #[cfg(any(test, feature = "library"))]
    #[must_use]
    pub fn refusing() -> Self {
        Self { workspace_size: plain::no_workspace_size, ..Self::plain() }
    }

    /// `C = alpha * A * B` in row-major order, with FP32 sums. `C`'s rows follow each other at
    /// `c_stride`.
    ///
    /// # Errors
    /// [`MatMulError`]. Unless BNNS itself failed, `C` is then untouched.
    pub fn multiply(
        self,
        sizes: BlasSizes,
        alpha: f32,
        a: BnnsFactor<'_>,
        b: BnnsFactor<'_>,
        c: &mut [f32],
        c_stride: usize,
    ) -> Result<(), MatMulError> {
        let BlasSizes { m, n, k } = sizes;
        if m == 0 || n == 0 {
            return Ok(());
        }
        let of_a = a.described('A', m, k)?;
        let of_b = b.described('B', k, n)?;
        cblas::leading('C', c.len(), c_stride, m, n)?;
        if k == 0 {
            c.chunks_mut(c_stride).take(m).for_each(|row| row[..n].fill(0.0));
            return Ok(());
        }
        let of_c = BnnsDescriptor::of(c.as_mut_ptr().cast(), FLOAT_32, m, n, c_stride);
        let [trans_a, trans_b] = [a, b].map(|x| x.orientation == OperandOrientation::Transposed);
        // SAFETY: the descriptors are whole and outlive the call, which looks at sizes and types;
        // without parameters BNNS takes its defaults.
        let bytes = unsafe {
            (self.workspace_size)(trans_a, trans_b, alpha, &of_a, &of_b, &of_c, std::ptr::null())
        };
        let bytes = usize::try_from(bytes).map_err(|_| MatMulError::Refused)?;
        let mut workspace = WORKSPACE.take();
        if workspace.len() < bytes {
            workspace.resize(bytes, 0);
        }
        let room = workspace.as_mut_ptr().cast();
        // SAFETY: `described` and `leading` have shown that each matrix lies within its slice; `c` is
        // borrowed mutably, so nothing else sees it; the factors are only read and no pointer is
        // kept; the workspace has the size that was asked for and needs no alignment.
        let status = unsafe {
            (self.mat_mul)(trans_a, trans_b, alpha, &of_a, &of_b, &of_c, room, std::ptr::null())
        };
        WORKSPACE.set(workspace);
        if status == 0 { Ok(()) } else { Err(MatMulError::Failed { status }) }
    }
}

impl BnnsFactor<'_> {
    /// The descriptor of a factor that the product reads as `rows` by `columns`.
    fn described(
        &self,
        matrix: char,
        rows: usize,
        columns: usize,
    ) -> Result<BnnsDescriptor, SgemmError> {
        let (rows, columns) = match self.orientation {
            OperandOrientation::Plain => (rows, columns),
            OperandOrientation::Transposed => (columns, rows),
        };
        cblas::leading(matrix, self.data.len(), self.stride, rows, columns)?;
        let (data, data_type) = self.data.parts();
        Ok(BnnsDescriptor::of(data, data_type, rows, columns, self.stride))
    }
}

#[cfg(any(target_os = "macos", apple_doubles))]
mod system {
    use std::ffi::c_void;
    use std::ptr::NonNull;
    use std::sync::OnceLock;

    use super::{BnnsLibrary, BnnsMatMul, WorkspaceSize};
    use crate::Unavailable;
    use crate::accelerate::system::symbol;

    /// Both functions, looked up once.
    pub(super) fn find() -> Result<BnnsLibrary, Unavailable> {
        static FOUND: OnceLock<Option<BnnsLibrary>> = OnceLock::new();
        let look_up = || {
            let mat_mul = symbol(c"BNNSMatMul")?;
            let size = symbol(c"BNNSMatMulWorkspaceSize")?;
            // SAFETY: Accelerate declares the function of this name with this type.
            let mat_mul = unsafe { std::mem::transmute::<NonNull<c_void>, BnnsMatMul>(mat_mul) };
            // SAFETY: as above.
            let workspace_size =
                unsafe { std::mem::transmute::<NonNull<c_void>, WorkspaceSize>(size) };
            Some(BnnsLibrary { mat_mul, workspace_size })
        };
        let found = *FOUND.get_or_init(look_up);
        found.ok_or_else(|| Unavailable::new("BNNS", "this macOS has no BNNSMatMul"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Small whole numbers, which every type and every sum here holds exactly.
    fn values(len: usize, seed: usize) -> Vec<f32> {
        (0..len).map(|i| ((i * 7 + seed * 13) % 11) as f32 - 5.0).collect()
    }

    /// The types of a factor's elements.
    const TYPES: [u32; 3] = [FLOAT_32, FLOAT_16, BFLOAT_16];

    /// A small whole number as bits of a type of 16 bits.
    fn bits(value: f32, data_type: u32) -> u16 {
        let wide = value.to_bits();
        if data_type == BFLOAT_16 {
            return u16::try_from(wide >> 16).unwrap();
        }
        if value == 0.0 {
            return 0;
        }
        // Sign, the exponent moved from a bias of 127 to one of 15, ten bits of the fraction.
        let sign = wide >> 31 << 15;
        let exponent = (wide >> 23 & 0xff) + 15 - 127;
        u16::try_from(sign | exponent << 10 | wide >> 13 & 0x3ff).unwrap()
    }

    /// A factor's elements in memory.
    struct Stored {
        wide: Vec<f32>,
        half: Vec<u16>,
        data_type: u32,
    }

    impl Stored {
        fn new(wide: Vec<f32>, data_type: u32) -> Self {
            let half = match data_type {
                FLOAT_32 => Vec::new(),
                _ => wide.iter().map(|&value| bits(value, data_type)).collect(),
            };
            Self { wide, half, data_type }
        }

        fn elements(&self) -> BnnsElements<'_> {
            match self.data_type {
                FLOAT_16 => BnnsElements::Fp16(&self.half),
                BFLOAT_16 => BnnsElements::Bf16(&self.half),
                _ => BnnsElements::Fp32(&self.wide),
            }
        }
    }

    #[test]
    fn sizes_strides_transposes_and_types_reach_the_call() {
        let orientations = [OperandOrientation::Plain, OperandOrientation::Transposed];
        let mut cases = 0;
        for (m, n, k) in [(1, 1, 1), (2, 3, 4), (7, 1, 5), (1, 9, 33), (17, 40, 23)] {
            for (of_a, of_b) in orientations.into_iter().flat_map(|a| orientations.map(|b| (a, b)))
            {
                for (type_a, type_b) in TYPES.into_iter().flat_map(|a| TYPES.map(|b| (a, b))) {
                    for extra in [0, 3] {
                        check((m, n, k), (of_a, of_b), (type_a, type_b), extra);
                        cases += 1;
                    }
                }
            }
        }
        assert_eq!(cases, 360);
    }

    fn check(
        (m, n, k): (usize, usize, usize),
        (of_a, of_b): (OperandOrientation, OperandOrientation),
        (type_a, type_b): (u32, u32),
        extra: usize,
    ) {
        let stored = |orientation, rows: usize, columns: usize| match orientation {
            OperandOrientation::Plain => (rows, columns + extra),
            OperandOrientation::Transposed => (columns, rows + extra),
        };
        let ((a_rows, a_stride), (b_rows, b_stride)) = (stored(of_a, m, k), stored(of_b, k, n));
        let a = Stored::new(values(a_rows * a_stride, m), type_a);
        let b = Stored::new(values(b_rows * b_stride, n), type_b);
        let stride = n + extra;
        let mut c = vec![f32::NAN; m * stride];
        let left = BnnsFactor { data: a.elements(), stride: a_stride, orientation: of_a };
        let right = BnnsFactor { data: b.elements(), stride: b_stride, orientation: of_b };
        BnnsLibrary::plain()
            .multiply(BlasSizes { m, n, k }, 2.0, left, right, &mut c, stride)
            .unwrap();
        let at =
            |x: &Stored, orientation, stride: usize, row: usize, column: usize| match orientation {
                OperandOrientation::Plain => x.wide[row * stride + column],
                OperandOrientation::Transposed => x.wide[column * stride + row],
            };
        for (i, found) in c.iter().enumerate() {
            let row = i / stride;
            let column = i % stride;
            if column >= n {
                assert!(found.is_nan(), "wrote between the rows");
                continue;
            }
            let term = |t| at(&a, of_a, a_stride, row, t) * at(&b, of_b, b_stride, t, column);
            let wanted = 2.0 * (0..k).map(term).sum::<f32>();
            assert_eq!(*found, wanted, "{m}x{n}x{k} {of_a:?} {of_b:?} {type_a:x} {type_b:x}");
        }
    }

    fn ones(data: &[f32], stride: usize) -> BnnsFactor<'_> {
        BnnsFactor {
            data: BnnsElements::Fp32(data),
            stride,
            orientation: OperandOrientation::Plain,
        }
    }

    #[test]
    fn short_slices_and_strides_are_refused_before_the_call() {
        let sizes = BlasSizes { m: 2, n: 4, k: 3 };
        let data = [1.0; 12];
        let mut c = [7.0; 8];
        let mut call = |a, b| BnnsLibrary::plain().multiply(sizes, 1.0, a, b, &mut c, 4);
        let short = call(ones(&data[..5], 3), ones(&data, 4)).unwrap_err();
        assert_eq!(short, SgemmError::Short { matrix: 'A', found: 5, needed: 6 }.into());
        let stride = call(ones(&data, 3), ones(&data, 3)).unwrap_err();
        assert_eq!(stride, SgemmError::Stride { matrix: 'B', stride: 3, columns: 4 }.into());
        let left = ones(&data, 3);
        let right = ones(&data, 4);
        let result =
            BnnsLibrary::plain().multiply(sizes, 1.0, left, right, &mut c[..7], 4).unwrap_err();
        assert_eq!(result, SgemmError::Short { matrix: 'C', found: 7, needed: 8 }.into());
        assert_eq!(c, [7.0; 8]);
    }

    #[test]
    fn what_bnns_refuses_leaves_the_result_untouched() {
        let sizes = BlasSizes { m: 2, n: 2, k: 2 };
        let data = [1.0; 4];
        let mut c = [7.0; 4];
        let left = ones(&data, 2);
        let right = ones(&data, 2);
        let error =
            BnnsLibrary::refusing().multiply(sizes, 1.0, left, right, &mut c, 2).unwrap_err();
        assert_eq!((error, c), (MatMulError::Refused, [7.0; 4]));
    }

    #[test]
    fn no_terms_leave_zeros() {
        let mut c = [3.0; 8];
        let left = ones(&[], 0);
        let right = ones(&[], 4);
        BnnsLibrary::plain()
            .multiply(BlasSizes { m: 2, n: 4, k: 0 }, 1.0, left, right, &mut c, 4)
            .unwrap();
        assert_eq!(c, [0.0; 8]);
    }

    #[cfg(not(any(target_os = "macos", apple_doubles)))]
    #[test]
    fn off_macos_the_door_says_unavailable() {
        assert_eq!(BnnsLibrary::system().unwrap_err().door, "BNNS");
    }

    #[cfg(any(target_os = "macos", apple_doubles))]
    #[test]
    fn bnns_computes_the_product_where_it_takes_the_types() {
        let Ok(bnns) = BnnsLibrary::system() else { return };
        let identity = [1.0, 0.0, 0.0, 1.0];
        let b = [1.0, 2.0, 3.0, 4.0];
        for data_type in TYPES {
            let b = Stored::new(b.to_vec(), data_type);
            let mut c = [7.0; 4];
            let b = BnnsFactor {
                data: b.elements(),
                stride: 2,
                orientation: OperandOrientation::Plain,
            };
            let sizes = BlasSizes { m: 2, n: 2, k: 2 };
            match bnns.multiply(sizes, 2.0, ones(&identity, 2), b, &mut c, 2) {
                Ok(()) => assert_eq!(c, [2.0, 4.0, 6.0, 8.0], "{data_type:x}"),
                Err(error) => assert_eq!(error, MatMulError::Refused),
            }
        }
    }
}
