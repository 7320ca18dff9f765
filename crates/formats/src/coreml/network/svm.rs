//! Support vector machines: kernel functions, and regression.

use bytes::Bytes;
use galatea_graph::ValueId;
use galatea_tensor::{Tensor, checked_elements};

use super::activation::linear;
use super::lower::NetworkLowering;
use super::simple_step::{ClassifierNames, SimpleModelStep, floats};
use crate::coreml::decode;
use crate::coreml::error::CoreMlError;
use crate::coreml::proto::simple::{
    KernelKindProto, KernelProto, SupportVectorRegressor, SupportVectors,
};

/// Most elements of a matrix of support vectors, or of their coefficients.
pub(super) const MAX_ELEMENTS: usize = 1 << 26;

/// The vectors as a matrix of as many columns as there are features.
fn matrix(found: Option<&SupportVectors>, columns: usize) -> Result<Tensor, CoreMlError> {
    let count = match found {
        Some(SupportVectors::Sparse(all)) => all.vectors.len(),
        Some(SupportVectors::Dense(all)) => all.vectors.len(),
        None => 0,
    };
    // Sparse vectors of a small file may have any number of columns.
    let elements = checked_elements(&[count, columns])?;
    if elements > MAX_ELEMENTS {
        let text = format!("{count} support vectors of {columns} numbers");
        return Err(CoreMlError::unsupported(text));
    }
    let mut values = vec![0.0; elements];
    let mut rows = values.chunks_mut(columns.max(1));
    match found {
        None => return Err(CoreMlError::invalid("it has no support vectors")),
        Some(SupportVectors::Dense(all)) => {
            for (vector, row) in all.vectors.iter().zip(&mut rows) {
                if vector.vector.len() != columns {
                    let found = vector.vector.len();
                    let text = format!("a support vector of {found} numbers, expected {columns}");
                    return Err(CoreMlError::invalid(text));
                }
                row.copy_from_slice(&floats(&vector.vector));
            }
        }
        // Positions count from 1 on.
        Some(SupportVectors::Sparse(all)) => {
            for (vector, row) in all.vectors.iter().zip(&mut rows) {
                for node in &vector.nodes {
                    let at = usize::try_from(node.index).ok().and_then(|at| at.checked_sub(1));
                    let wrong = || {
                        let text = format!("position {} of {columns} features", node.index);
                        CoreMlError::invalid(text)
                    };
                    let slot = at.and_then(|at| row.get_mut(at)).ok_or_else(wrong)?;
                    *slot = floats(&[node.value]).first().copied().unwrap_or(0.0);
                }
            }
        }
    }
    Ok(Tensor::from_vec(&[count, columns], values)?)
}

/// Kernel function and support vectors of a machine.
pub(super) struct SvmParts<'a> {
    pub(super) kernel: Option<&'a KernelProto>,
    pub(super) vectors: Option<&'a SupportVectors>,
    /// Number of vectors that there are coefficients of.
    pub(super) count: usize,
}

/// `kernel(vector, x)` of each support vector.
///
/// # Errors
/// Fails without a kernel, or where vectors, features and coefficients are not as many.
pub(super) fn similarities(
    cx: &mut NetworkLowering,
    step: &SimpleModelStep<'_>,
    parts: &SvmParts<'_>,
) -> Result<ValueId, CoreMlError> {
    let x = step.columns(cx)?;
    let unknown = || CoreMlError::unsupported("the number of features is not known");
    let columns = cx.dim(x, 0)?.ok_or_else(unknown)?;
    let vectors = matrix(parts.vectors, columns)?;
    if vectors.shape().first() != Some(&parts.count) {
        let text = format!("{} coefficients of vectors {:?}", parts.count, vectors.shape());
        return Err(CoreMlError::invalid(text));
    }
    let vectors = cx.constant(vectors);
    let float = |value: f64| floats(&[value]).first().copied().unwrap_or(0.0);
    let affine = |cx: &mut NetworkLowering, gamma: f64, c: f64| {
        let product = cx.node("MatMul", &[vectors, x], &[])?;
        linear(cx, product, float(gamma), float(c))
    };
    let missing = || CoreMlError::invalid("it has no kernel");
    match parts.kernel.and_then(|found| found.kind).ok_or_else(missing)? {
        KernelKindProto::Linear(_) => affine(cx, 1.0, 0.0),
        KernelKindProto::Rbf(p) => {
            let apart = cx.node("Sub", &[vectors, x], &[])?;
            let axes = cx.longs(&[1]);
            let square =
                cx.node("ReduceSumSquare", &[apart, axes], &[("keepdims", false.into())])?;
            let scaled = linear(cx, square, float(-p.gamma), 0.0)?;
            cx.node("Exp", &[scaled], &[])
        }
        KernelKindProto::Poly(p) => {
            let inner = affine(cx, p.gamma, p.c)?;
            let degree = cx.scalar(float(f64::from(p.degree)));
            cx.node("Pow", &[inner, degree], &[])
        }
        KernelKindProto::Sigmoid(p) => {
            let inner = affine(cx, p.gamma, p.c)?;
            cx.node("Tanh", &[inner], &[])
        }
    }
}

/// `supportVectorRegressor`.
pub(super) fn regressor(
    cx: &mut NetworkLowering,
    step: &mut SimpleModelStep<'_>,
) -> Result<ClassifierNames, CoreMlError> {
    let p: SupportVectorRegressor = decode(Bytes::clone(step.message))?;
    let alpha = p.coefficients.unwrap_or_default().vector;
    let (kernel, vectors) = (p.kernel.as_ref(), p.support_vectors.as_ref());
    let similar = similarities(cx, step, &SvmParts { kernel, vectors, count: alpha.len() })?;
    let alpha = cx.constant(Tensor::vector(floats(&alpha)));
    let weighted = cx.node("Mul", &[similar, alpha], &[])?;
    let sum = cx.node("ReduceSum", &[weighted], &[("keepdims", true.into())])?;
    let rho = floats(&[p.rho]).first().copied().unwrap_or(0.0);
    let id = linear(cx, sum, 1.0, -rho)?;
    step.give(id)
}
