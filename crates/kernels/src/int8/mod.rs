//! Arithmetic on quantised values: products and convolutions of bytes with 32-bit sums, and the
//! way from floats to bytes and back.
//!
//! A quantised value `q` stands for `(q - zero) * scale`. Products run over the bytes as they are;
//! what the zero points add is known per column and per row and taken away at the end, together
//! with the scaling back to bytes.

mod conv;
mod depthwise;
mod drive;
mod elementwise;
mod full_groups;
mod join;
#[cfg(target_arch = "x86_64")]
mod lines;
mod lists;
mod micro;
mod pack;
mod pool;
mod product;
#[cfg(target_arch = "x86_64")]
mod results;
#[cfg(target_arch = "x86_64")]
mod tiles;

pub use conv::{ConvColumns, Int8Conv, Int8ConvWeights, conv_int8};
pub use elementwise::{PairFunction, dequantize, extremes, look_up, pair_bytes, quantize};
pub use full_groups::{sparse_share, zero_group};
pub use pack::{ColumnScales, PackedInt8};
pub use pool::max_pool_bytes;

use crate::KernelContext;
use crate::gemm::check_matrix;
use crate::matrix::ProductSize;
use crate::memory::DisjointSlice;
use drive::multiply;
use join::SummandJoin;
use micro::Int8Output;
use product::{DenseBytes, Int8Product};

/// Quantised values: one byte each.
#[derive(Clone, Copy, Debug)]
pub struct QuantizedBytes<'a> {
    /// The bytes.
    pub data: &'a [u8],
    /// True if they are two's complement.
    pub signed: bool,
    /// The value that stands for zero.
    pub zero: i32,
}

impl QuantizedBytes<'_> {
    /// Returns how the bytes stand for numbers.
    #[must_use]
    pub fn form(&self) -> ByteForm {
        ByteForm { signed: self.signed, zero: self.zero }
    }
}

/// How bytes stand for numbers, apart from their scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteForm {
    /// True if they are two's complement.
    pub signed: bool,
    /// The value that stands for zero.
    pub zero: i32,
}

/// The byte that stands for zero, and the limits of bytes.
#[derive(Clone, Copy, Debug)]
struct ByteLimits {
    /// Added after rounding.
    zero: i32,
    low: i32,
    high: i32,
}

impl ByteForm {
    /// All values of a byte.
    fn limits(self) -> ByteLimits {
        let (low, high) = if self.signed { (-128, 127) } else { (0, 255) };
        ByteLimits { zero: self.zero, low, high }
    }
}

/// How sums become results, and where they go. What is per column is in [`ColumnScales`].
#[derive(Debug)]
pub enum Int8Target<'a> {
    /// Scaled, rounded to even, moved by `zero` and limited to `low..=high`.
    Bytes {
        /// The results.
        out: &'a mut [u8],
        /// Added after rounding.
        zero: i32,
        /// The smallest result.
        low: i32,
        /// The largest result.
        high: i32,
    },
    /// Bytes like `QuantizedBytes`; their values are added to those of other bytes, and the sum made
    /// bytes again.
    Sum {
        /// The results.
        out: &'a mut [u8],
        /// Added after rounding the first time.
        zero: i32,
        /// The smallest summand.
        low: i32,
        /// The largest summand.
        high: i32,
        /// The other summands, and how sums become bytes.
        beside: Int8Summand<'a>,
    },
    /// Scaled, with the bias of each column.
    Floats(&'a mut [f32]),
    /// The sums unchanged.
    Sums(&'a mut [i32]),
}

/// Bytes that join a product's, and how sums become bytes.
#[derive(Clone, Copy, Debug)]
pub struct Int8Summand<'a> {
    /// One for each result, as they lie; none: those that are where the results go.
    pub data: Option<&'a [u8]>,
    /// The form of the bytes that join.
    pub form: ByteForm,
    /// Scales of all bytes.
    pub scales: SummandScales,
    /// The form of the results.
    pub result: ByteForm,
}

/// Scales of two summands and their sum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SummandScales {
    /// The scale of the product's own bytes.
    pub own: f32,
    /// The scale of the bytes that join.
    pub other: f32,
    /// The scale of the results.
    pub result: f32,
}

impl Int8Target<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Bytes { out, .. } | Self::Sum { out, .. } => out.len(),
            Self::Floats(out) => out.len(),
            Self::Sums(out) => out.len(),
        }
    }

    fn out(self) -> Int8Output {
        match self {
            Self::Bytes { out, zero, low, high } => {
                let limits = ByteLimits { zero, low, high };
                Int8Output::Bytes { c: DisjointSlice::new(out), limits }
            }
            Self::Sum { out, zero, low, high, beside } => {
                let len = beside.data.map_or(out.len(), <[u8]>::len);
                assert!(len >= out.len(), "{len} summands for {}", out.len());
                let c = DisjointSlice::new(out);
                let from = match beside.data {
                    Some(data) => DisjointSlice::from_ptr(data.as_ptr().cast_mut()),
                    None => c,
                };
                let summand = ByteLimits { zero, low, high };
                Int8Output::Sum { c, summand, from, joins: SummandJoin::new(&beside) }
            }
            Self::Floats(out) => Int8Output::Floats(DisjointSlice::new(out)),
            Self::Sums(out) => Int8Output::Sums(DisjointSlice::new(out)),
        }
    }
}

/// `C = A B` of bytes, with B packed once.
///
/// Shapes: A is `m` rows of `b.k()`, adjacent; C is `m` rows of `b.n()`, adjacent.
///
/// # Panics
/// Panics when a slice is shorter than its shape says, or `columns` is made for another B or
/// another form of A.
pub fn gemm_int8(
    exec: KernelContext<'_>,
    m: usize,
    a: QuantizedBytes<'_>,
    b: &PackedInt8,
    columns: &ColumnScales,
    target: Int8Target<'_>,
) {
    let n = b.n();
    let k = b.k();
    check_matrix("A", a.data.len(), m, k, k);
    check_matrix("C", target.len(), m, n, n);
    columns.check(b, a.signed);
    let job = Int8Product {
        m,
        n,
        k,
        a: DenseBytes::new(a.data.as_ptr(), k),
        signed: a.signed,
        b: b.panels(),
        columns: columns.pointers(),
        out: target.out(),
        c_stride: n,
    };
    // SAFETY: the lengths are checked above, and the target is borrowed exclusively.
    unsafe { multiply(exec, b.dot(), &job) };
}

/// One side of a batched product: matrices of the same size, whose rows are adjacent.
#[derive(Clone, Copy, Debug)]
pub struct Int8BatchedOperand<'a> {
    /// The matrices.
    pub bytes: QuantizedBytes<'a>,
    /// Where each starts; the same offset may repeat.
    pub offsets: &'a [usize],
}

/// `C[i] = A[i] B[i]` of bytes, all scaled by `scale`.
///
/// Shapes: A is `m` x `k` from each of its offsets on, B `k` x `n`; C is `[batch, m, n]`, adjacent.
///
/// # Panics
/// Panics when there are not as many offsets of A as of B, or a slice is shorter than its shape
/// says.
pub fn matmul_int8_batched(
    exec: KernelContext<'_>,
    size: ProductSize,
    a: Int8BatchedOperand<'_>,
    b: Int8BatchedOperand<'_>,
    scale: f32,
    target: Int8Target<'_>,
) {
    let ProductSize { m, k, n } = size;
    let batch = a.offsets.len();
    assert!(b.offsets.len() == batch, "{batch} matrices and {}", b.offsets.len());
    check_matrix("C", target.len(), batch.saturating_mul(m), n, n);
    for (&at, &bt) in a.offsets.iter().zip(b.offsets) {
        check_matrix("A", a.bytes.data.len().saturating_sub(at), m, k, k);
        check_matrix("B", b.bytes.data.len().saturating_sub(bt), k, n, n);
    }
    let dot = crate::isa::DotIsa::of(exec.isa);
    let out = target.out();
    exec.pool.run(batch, |i| {
        let right = &b.bytes.data[b.offsets[i]..];
        let packed =
            PackedInt8::pack(dot, k, n, b.bytes.signed, |row, column| right[row * n + column]);
        let columns = ColumnScales::new(&packed, a.bytes.form(), &[b.bytes.zero]);
        let columns = columns.with_scales(|_| scale);
        let job = Int8Product {
            m,
            n,
            k,
            a: DenseBytes::new(a.bytes.data[a.offsets[i]..].as_ptr(), k),
            signed: a.bytes.signed,
            b: packed.panels(),
            columns: columns.pointers(),
            out: out.at(i * m * n),
            c_stride: n,
        };
        // SAFETY: the lengths are checked above; each task writes a matrix of its own.
        unsafe { multiply(exec, dot, &job) };
    });
}

#[cfg(test)]
mod tests;
