//! Products of bytes with constant weights of which many are zero.

use galatea_graph::ONNX_DOMAIN;
use galatea_graph::ops::contrib::QGemm;
use galatea_kernels::MatrixSize;
use galatea_kernels::int8::{sparse_share, zero_group};
use galatea_kernels::isa::DotIsa;

use super::CONTRIB_DOMAIN;
use super::quantized::{
    GEMM, INTEGER, QLINEAR, QuantizedInputs, TO_FLOAT, is_signed, pack, product_of,
    supports_product,
};
use super::sparse::{known_rows, measured};
use crate::cpu::{CpuKernel, CpuKernelRow, CpuNodeView};

/// The family's rows, which come before those of dense products.
pub(super) const ROWS: &[CpuKernelRow] = &[
    CpuKernelRow {
        name: "qlinear_matmul-int8-sparse",
        domain: ONNX_DOMAIN,
        ops: &["QLinearMatMul"],
        supports: |view| supports_sparse(view, QLINEAR, false),
        build: |view| product(view, QLINEAR, false, 1.0),
    },
    CpuKernelRow {
        name: "matmul_integer-int8_int32-sparse",
        domain: ONNX_DOMAIN,
        ops: &["MatMulInteger"],
        supports: |view| supports_sparse(view, INTEGER, false),
        build: |view| product(view, INTEGER, false, 1.0),
    },
    CpuKernelRow {
        name: "matmul_integer-int8_f32-sparse",
        domain: CONTRIB_DOMAIN,
        ops: &["MatMulIntegerToFloat"],
        supports: |view| supports_sparse(view, TO_FLOAT, false),
        build: |view| product(view, TO_FLOAT, false, 1.0),
    },
    CpuKernelRow {
        name: "qgemm-int8-sparse",
        domain: CONTRIB_DOMAIN,
        ops: &["QGemm"],
        supports: |view| {
            let op = view.operator::<QGemm>()?;
            if op.trans_a {
                return Err("the kernel takes A as it is".into());
            }
            supports_sparse(view, GEMM, op.trans_b)
        },
        build: |view| {
            let op = view.operator::<QGemm>()?;
            product(view, GEMM, op.trans_b, op.alpha)
        },
    },
];

/// Rows from which on a tile of one vector keeps the processor as busy as a dense one.
const MANY_ROWS: usize = 32;

/// The share of full groups up to which fewer rows gain, or rows of which nothing is known: dense tiles
/// of few rows are wide, and wait less for the sums of each other.
const FEW_ROWS_FULL: f64 = 0.18;

/// Refuses products that are not expected, or known, to be faster where zeros are passed over.
fn supports_sparse(
    view: &CpuNodeView<'_>,
    places: QuantizedInputs,
    trans_b: bool,
) -> Result<(), String> {
    supports_product(view, places)?;
    let weights = view.constant(places.b).ok_or("B is no constant")?;
    let [.., rows, columns] = *weights.shape() else { return Err("B is no matrix".into()) };
    let (k, n) = if trans_b { (columns, rows) } else { (rows, columns) };
    let group = zero_group(DotIsa::of(view.device.isa))?;
    let whole = weights.contiguous().map_err(|error| error.to_string())?;
    let bytes = whole.as_bytes().map_err(|error| error.to_string())?;
    // What is packed as 0 adds nothing to the sums, whatever the zero points.
    let zero = if is_signed(weights.dtype())? { 0 } else { 0x80 };
    let is_zero = |row: usize, column: usize| {
        let at = if trans_b { column * k + row } else { row * n + column };
        bytes.get(at).is_none_or(|byte| *byte == zero)
    };
    let full = group.full_share(MatrixSize { rows: k, columns: n }, &is_zero);
    let full = full.ok_or("few weights are stored as 0, or as 128 where they are unsigned")?;
    let percent = ((1.0 - full) * 100.0).round();
    let said = format!(
        "{percent} % of the groups of {} weights are zero in {} columns",
        group.terms, group.columns
    );
    let rows = known_rows(view);
    let many = rows.is_some_and(|rows| rows >= MANY_ROWS);
    if sparse_share(full).is_none() || !many && full > FEW_ROWS_FULL {
        let of = if many { "" } else { " of fewer than 32 rows" };
        return Err(format!("{said}: a dense product{of} is faster"));
    }
    let m = rows.unwrap_or(0);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a percentage")]
    let lengths = [("m", m), ("k", k), ("n", n), ("zeros", percent as usize)];
    measured(view, "gemm-int8-sparse", &lengths).map_err(|reason| format!("{said}: {reason}"))
}

fn product(
    view: &CpuNodeView<'_>,
    places: QuantizedInputs,
    trans_b: bool,
    alpha: f32,
) -> Result<Box<dyn CpuKernel>, String> {
    let weights = view.constant(places.b).ok_or("B is no constant")?;
    let packed = pack(view, weights, trans_b)?.passing_over_zeros();
    product_of(view, places, Some(packed), alpha)
}
