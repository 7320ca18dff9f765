//! Support vector machines: regression, and two labels with probabilities.

use bytes::Bytes;
use galatea_graph::ValueId;
use galatea_tensor::{Tensor, checked_elements};

use super::activation::linear;
use super::lower::NetworkLowering;
use super::simple_step::{ClassifierNames, SimpleModelStep, floats, two_labels};
use crate::coreml::decode;
use crate::coreml::error::CoreMlError;
use crate::coreml::proto::simple::{
    KernelKindProto, KernelProto, SupportVectorClassifier, SupportVectorRegressor, SupportVectors,
};

/// Most elements of the matrix of support vectors.
const MAX_ELEMENTS: usize = 1 << 26;

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
struct SvmParts<'a> {
    kernel: Option<&'a KernelProto>,
    vectors: Option<&'a SupportVectors>,
}

/// `Σ alpha · kernel(vector, x) - rho`, a vector of one number.
fn decision(
    cx: &mut NetworkLowering,
    step: &SimpleModelStep<'_>,
    SvmParts { kernel, vectors }: SvmParts<'_>,
    alpha: &[f64],
    rho: f64,
) -> Result<ValueId, CoreMlError> {
    let x = step.columns(cx)?;
    let unknown = || CoreMlError::unsupported("the number of features is not known");
    let columns = cx.dim(x, 0)?.ok_or_else(unknown)?;
    let vectors = matrix(vectors, columns)?;
    if vectors.shape().first() != Some(&alpha.len()) {
        let text = format!("{} coefficients of vectors {:?}", alpha.len(), vectors.shape());
        return Err(CoreMlError::invalid(text));
    }
    let vectors = cx.constant(vectors);
    let float = |value: f64| floats(&[value]).first().copied().unwrap_or(0.0);
    let affine = |cx: &mut NetworkLowering, gamma: f64, c: f64| {
        let product = cx.node("MatMul", &[vectors, x], &[])?;
        linear(cx, product, float(gamma), float(c))
    };
    let missing = || CoreMlError::invalid("it has no kernel");
    let similar = match kernel.and_then(|found| found.kind).ok_or_else(missing)? {
        KernelKindProto::Linear(_) => affine(cx, 1.0, 0.0)?,
        KernelKindProto::Rbf(p) => {
            let apart = cx.node("Sub", &[vectors, x], &[])?;
            let axes = cx.longs(&[1]);
            let square =
                cx.node("ReduceSumSquare", &[apart, axes], &[("keepdims", false.into())])?;
            let scaled = linear(cx, square, float(-p.gamma), 0.0)?;
            cx.node("Exp", &[scaled], &[])?
        }
        KernelKindProto::Poly(p) => {
            let inner = affine(cx, p.gamma, p.c)?;
            let degree = cx.scalar(float(f64::from(p.degree)));
            cx.node("Pow", &[inner, degree], &[])?
        }
        KernelKindProto::Sigmoid(p) => {
            let inner = affine(cx, p.gamma, p.c)?;
            cx.node("Tanh", &[inner], &[])?
        }
    };
    let alpha = cx.constant(Tensor::vector(floats(alpha)));
    let weighted = cx.node("Mul", &[similar, alpha], &[])?;
    let sum = cx.node("ReduceSum", &[weighted], &[("keepdims", true.into())])?;
    linear(cx, sum, 1.0, float(-rho))
}

/// `supportVectorRegressor`.
pub(super) fn regressor(
    cx: &mut NetworkLowering,
    step: &mut SimpleModelStep<'_>,
) -> Result<ClassifierNames, CoreMlError> {
    let p: SupportVectorRegressor = decode(Bytes::clone(step.message))?;
    let alpha = p.coefficients.unwrap_or_default().vector;
    let parts = SvmParts { kernel: p.kernel.as_ref(), vectors: p.support_vectors.as_ref() };
    let id = decision(cx, step, parts, &alpha, p.rho)?;
    step.give(id)
}

/// `supportVectorClassifier`, where there are two labels: a decision becomes the probability of the
/// first one.
pub(super) fn classifier(
    cx: &mut NetworkLowering,
    step: &mut SimpleModelStep<'_>,
) -> Result<ClassifierNames, CoreMlError> {
    let p: SupportVectorClassifier = decode(Bytes::clone(step.message))?;
    let ([alpha], [rho], [a], [b]) =
        (&p.coefficients[..], &p.rho[..], &p.prob_a[..], &p.prob_b[..])
    else {
        let text = "a support vector machine of more than two labels, or without probabilities";
        return Err(CoreMlError::unsupported(text));
    };
    let sparse = p.sparse.map(SupportVectors::Sparse);
    let vectors = sparse.or(p.dense.map(SupportVectors::Dense));
    let parts = SvmParts { kernel: p.kernel.as_ref(), vectors: vectors.as_ref() };
    let found = decision(cx, step, parts, &alpha.vector, *rho)?;
    let scale = floats(&[*a, *b]);
    let a = scale.first().copied().unwrap_or(0.0);
    let b = scale.get(1).copied().unwrap_or(0.0);
    // 1 / (1 + e^(a · d + b)) is of the first label, what is left of the second.
    let inner = linear(cx, found, a, b)?;
    let second = cx.node("Sigmoid", &[inner], &[])?;
    let probabilities = two_labels(cx, second)?;
    step.classify(cx, probabilities, p.class_labels.as_ref())
}
