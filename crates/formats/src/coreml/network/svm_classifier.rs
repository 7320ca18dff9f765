//! Support vector classifiers of any number of labels.
//!
//! A machine decides between each two labels, as in LIBSVM. The decisions are votes; with the coefficients of
//! probabilities, each is the probability of one of two labels, and these are coupled. Source: Wu, Lin and Weng,
//! "Probability Estimates for Multi-class Classification by Pairwise Coupling" (2004), the second method.

use bytes::Bytes;
use galatea_graph::ValueId;
use galatea_tensor::{DataType, Tensor, checked_elements};

use super::border::label_table;
use super::lower::{NetworkLowering, int, list};
use super::simple_step::{ClassifierNames, SimpleModelStep, floats, two_labels};
use super::svm::{MAX_ELEMENTS, SvmParts, similarities};
use crate::coreml::decode;
use crate::coreml::error::CoreMlError;
use crate::coreml::proto::simple::{SupportVectorClassifier, SupportVectors};

/// Most labels: each costs steps of the elimination, and each two a decision.
const MAX_LABELS: usize = 128;
/// Probabilities of one of two labels keep so far from 0 and 1, as LIBSVM's.
const LEAST: f64 = 1e-7;

/// Two labels, by their numbers; `first` is the smaller one.
#[derive(Clone, Copy)]
struct LabelPair {
    first: usize,
    second: usize,
}

/// All pairs of so many labels, in the order of LIBSVM's decisions.
fn pairs(labels: usize) -> Vec<LabelPair> {
    let of = |first| (first + 1..labels).map(move |second| LabelPair { first, second });
    (0..labels).flat_map(of).collect()
}

/// `supportVectorClassifier`.
pub(super) fn classifier(
    cx: &mut NetworkLowering,
    step: &mut SimpleModelStep<'_>,
) -> Result<ClassifierNames, CoreMlError> {
    let p: SupportVectorClassifier = decode(Bytes::clone(step.message))?;
    let labels = label_table(p.class_labels.as_ref())?.0.len();
    if !(2..=MAX_LABELS).contains(&labels) {
        let text =
            format!("a support vector machine of {labels} labels, expected 2 to {MAX_LABELS}");
        return Err(CoreMlError::unsupported(text));
    }
    let pairs = pairs(labels);
    let count = pairs.len();
    let found = [p.rho.len(), p.prob_a.len(), p.prob_b.len()];
    let decisions = decisions(cx, step, &p, labels)?;
    if found == [count, 0, 0] {
        if !step.description.predicted_probabilities_name.is_empty() {
            let text = "probabilities of a machine without coefficients of them";
            return Err(CoreMlError::unsupported(text));
        }
        let votes = votes(cx, decisions, &pairs, labels)?;
        // Votes choose the label, and are nothing that anybody is given.
        return step.classify(cx, votes, p.class_labels.as_ref()).map(|_| None);
    }
    if found != [count; 3] {
        let text = format!(
            "{found:?} offsets and coefficients of probabilities, expected {count} of each"
        );
        return Err(CoreMlError::invalid(text));
    }
    // 1 / (1 + e^(a · d + b)) is of the first label of a pair, what is left of the second.
    let b = cx.constant(Tensor::vector(floats(&p.prob_b)));
    let a = cx.constant(Tensor::vector(floats(&p.prob_a)));
    let inner = cx.node("Mul", &[decisions, a], &[])?;
    let inner = cx.node("Add", &[inner, b], &[])?;
    let probabilities = if labels == 2 {
        let second = cx.node("Sigmoid", &[inner], &[])?;
        two_labels(cx, second)?
    } else {
        let inner = cx.node("Neg", &[inner], &[])?;
        let firsts = cx.node("Sigmoid", &[inner], &[])?;
        coupled(cx, firsts, &pairs, labels)?
    };
    step.classify(cx, probabilities, p.class_labels.as_ref())
}

/// The decision between each two labels: above 0 for the first.
fn decisions(
    cx: &mut NetworkLowering,
    step: &SimpleModelStep<'_>,
    p: &SupportVectorClassifier,
    labels: usize,
) -> Result<ValueId, CoreMlError> {
    let matrix = decision_matrix(p, labels)?;
    let sparse = p.sparse.clone().map(SupportVectors::Sparse);
    let vectors = sparse.or_else(|| p.dense.clone().map(SupportVectors::Dense));
    let count = matrix.shape().last().copied().unwrap_or(0);
    let parts = SvmParts { kernel: p.kernel.as_ref(), vectors: vectors.as_ref(), count };
    let similar = similarities(cx, step, &parts)?;
    let matrix = cx.constant(matrix);
    let sums = cx.node("MatMul", &[matrix, similar], &[])?;
    if p.rho.len() != matrix_rows(labels) {
        let text = format!("{} offsets of {} decisions", p.rho.len(), matrix_rows(labels));
        return Err(CoreMlError::invalid(text));
    }
    let rho = cx.constant(Tensor::vector(floats(&p.rho)));
    cx.node("Sub", &[sums, rho], &[])
}

/// Number of decisions between so many labels.
fn matrix_rows(labels: usize) -> usize {
    labels * labels.saturating_sub(1) / 2
}

/// Coefficients of all vectors in each decision: vectors lie by their label, and a vector has a coefficient for each
/// other label.
fn decision_matrix(p: &SupportVectorClassifier, labels: usize) -> Result<Tensor, CoreMlError> {
    let wrong = |text: String| Err(CoreMlError::invalid(text));
    let rows: Vec<Vec<f32>> = p.coefficients.iter().map(|row| floats(&row.vector)).collect();
    let total = rows.first().map_or(0, Vec::len);
    if rows.len() + 1 != labels || rows.iter().any(|row| row.len() != total) {
        let found: Vec<usize> = rows.iter().map(Vec::len).collect();
        return wrong(format!("{found:?} coefficients, expected {} times as many", labels - 1));
    }
    // Two labels need no borders: the only row is that of the only decision.
    if labels == 2 {
        let row = rows.into_iter().next().unwrap_or_default();
        return Ok(Tensor::from_vec(&[1, total], row)?);
    }
    let sizes: Option<Vec<usize>> =
        p.vectors_of_labels.iter().map(|&size| usize::try_from(size).ok()).collect();
    let sizes = sizes.filter(|sizes| sizes.len() == labels);
    let Some(sizes) = sizes.filter(|sizes| {
        sizes.iter().try_fold(0_usize, |sum, &size| sum.checked_add(size)) == Some(total)
    }) else {
        return wrong(format!(
            "{:?} vectors of {labels} labels, expected {total} together",
            p.vectors_of_labels
        ));
    };
    if checked_elements(&[matrix_rows(labels), total])? > MAX_ELEMENTS {
        let text = format!("{total} support vectors of {labels} labels");
        return Err(CoreMlError::unsupported(text));
    }
    let starts: Vec<usize> = (0..labels).map(|label| sizes.iter().take(label).sum()).collect();
    let mut values = Vec::with_capacity(matrix_rows(labels) * total);
    for LabelPair { first, second } in pairs(labels) {
        let mut row = vec![0.0; total];
        for (label, coefficients) in [(first, &rows[second - 1]), (second, &rows[first])] {
            let range = starts[label]..starts[label] + sizes[label];
            row[range.clone()].copy_from_slice(&coefficients[range]);
        }
        values.extend(row);
    }
    Ok(Tensor::from_vec(&[matrix_rows(labels), total], values)?)
}

/// How many decisions each label has won.
fn votes(
    cx: &mut NetworkLowering,
    decisions: ValueId,
    pairs: &[LabelPair],
    labels: usize,
) -> Result<ValueId, CoreMlError> {
    let matrix = |winner: fn(&LabelPair) -> usize| -> Result<Tensor, CoreMlError> {
        let of = |label| pairs.iter().map(move |pair| f32::from(u8::from(winner(pair) == label)));
        Ok(Tensor::from_vec(&[labels, pairs.len()], (0..labels).flat_map(of).collect())?)
    };
    let [first, second] = [matrix(|pair| pair.first)?, matrix(|pair| pair.second)?];
    let zero = cx.scalar(0.0);
    let won = cx.node("Greater", &[decisions, zero], &[])?;
    let lost = cx.node("Not", &[won], &[])?;
    let mut sums = Vec::with_capacity(2);
    for (matrix, flags) in [(first, won), (second, lost)] {
        let flags = cx.cast(flags, DataType::Fp32)?;
        let matrix = cx.constant(matrix);
        sums.push(cx.node("MatMul", &[matrix, flags], &[])?);
    }
    cx.node("Add", &sums, &[])
}

/// The probabilities of all labels that fit those of the first labels of pairs best.
///
/// With r(i, j) of the first of two labels, they minimise the sum over all pairs of (r(j, i)·p(i) - r(i, j)·p(j))². As
/// they add up to 1, they are proportional to the solution of (Q + 1)·p = 1, where Q is the matrix of that sum. It is
/// positive definite, so that Gauss and Jordan's elimination needs no pivots.
fn coupled(
    cx: &mut NetworkLowering,
    firsts: ValueId,
    pairs: &[LabelPair],
    labels: usize,
) -> Result<ValueId, CoreMlError> {
    let double = |values: Vec<f64>, shape: &[usize]| Tensor::from_vec(shape, values);
    let firsts = cx.cast(firsts, DataType::Fp64)?;
    let [low, high] = [LEAST, 1.0 - LEAST].map(|bound| cx.constant(Tensor::scalar(bound)));
    let firsts = cx.node("Clip", &[firsts, low, high], &[])?;
    // r as a matrix: that of a pair, what it leaves at the mirrored place, and zeros between.
    let one = cx.constant(Tensor::scalar(1.0_f64));
    let seconds = cx.node("Sub", &[one, firsts], &[])?;
    let zero = cx.constant(Tensor::vector(vec![0.0_f64]));
    let all = cx.node("Concat", &[firsts, seconds, zero], &[("axis", 0_i64.into())])?;
    let mut places = vec![int(2 * pairs.len()); labels * labels];
    for (at, &LabelPair { first, second }) in pairs.iter().enumerate() {
        places[first * labels + second] = int(at);
        places[second * labels + first] = int(pairs.len() + at);
    }
    let places = cx.constant(Tensor::from_vec(&[labels, labels], places)?);
    let r = cx.node("Gather", &[all, places], &[])?;
    let mirrored = cx.node("Transpose", &[r], &[("perm", list(vec![1, 0]))])?;
    let axes = cx.longs(&[0]);
    let squares = cx.node("ReduceSumSquare", &[r, axes], &[("keepdims", false.into())])?;
    let unit: Vec<f64> =
        (0..labels * labels).map(|at| f64::from(u8::from(at % (labels + 1) == 0))).collect();
    let unit = cx.constant(double(unit, &[labels, labels])?);
    let diagonal = cx.node("Mul", &[unit, squares], &[])?;
    let product = cx.node("Mul", &[r, mirrored], &[])?;
    let q = cx.node("Sub", &[diagonal, product], &[])?;
    let matrix = cx.node("Add", &[q, one], &[])?;
    let ones = cx.constant(double(vec![1.0; labels], &[labels, 1])?);
    let mut system = cx.node("Concat", &[matrix, ones], &[("axis", 1_i64.into())])?;
    for at in 0..labels {
        system = eliminated(cx, system, at, labels)?;
    }
    let solution = part(cx, system, labels, 1)?;
    let solution = cx.reshape(solution, &[-1])?;
    let sum = cx.node("ReduceSum", &[solution], &[("keepdims", true.into())])?;
    let probabilities = cx.node("Div", &[solution, sum], &[])?;
    cx.cast(probabilities, DataType::Fp32)
}

/// A system of equations after a step of Gauss and Jordan's elimination: column `at` becomes one of the unit matrix.
fn eliminated(
    cx: &mut NetworkLowering,
    system: ValueId,
    at: usize,
    rows: usize,
) -> Result<ValueId, CoreMlError> {
    let row = part(cx, system, at, 0)?;
    let column = part(cx, system, at, 1)?;
    let pivot = part(cx, row, at, 1)?;
    let scaled = cx.node("Div", &[row, pivot], &[])?;
    let unit: Vec<f64> = (0..rows).map(|row| f64::from(u8::from(row == at))).collect();
    let unit = cx.constant(Tensor::from_vec(&[rows, 1], unit)?);
    let moved = cx.node("Sub", &[column, unit], &[])?;
    let outer = cx.node("MatMul", &[moved, scaled], &[])?;
    cx.node("Sub", &[system, outer], &[])
}

/// A row (axis 0) or a column (axis 1) of a matrix, which stays one.
fn part(
    cx: &mut NetworkLowering,
    x: ValueId,
    at: usize,
    axis: i64,
) -> Result<ValueId, CoreMlError> {
    let [start, end, axes] = [int(at), int(at) + 1, axis].map(|one| cx.longs(&[one]));
    cx.node("Slice", &[x, start, end, axes], &[])
}
