//! Products with a constant matrix that is larger than what a kernel sees at once.
//!
//! A matrix whose rows lie along `n` is cut along `k`: each part's sums are added to those of the parts before it.
//! One whose rows lie along `k` is cut along `n`: each part's columns are brought to their place in the result.

use galatea_tensor::DataType;

use super::activation::ProductActivation;
use super::problem::{MatMulOperand, MatMulProblem};
use super::spec::MatMulSpec;
use super::stack::place;
use crate::device::GpuCapabilities;
use crate::kernel::{DispatchStep, GpuNodeView, ShaderBinding};
use crate::movement::{ConcatWindow, put_columns};
use crate::parts::{cut, rows};
use galatea_runtime::NodeShapes;

/// Inputs of the product that computes a part: what is added as a row, and to the whole.
const BIAS: usize = 2;
const MORE: usize = 3;

/// Checks that a matrix multiplication reads its constant matrix in parts.
///
/// # Errors
/// Fails when it does not.
pub(crate) fn supports(view: &GpuNodeView<'_>) -> Result<(), String> {
    let spec = MatMulSpec::of(view)?;
    if view.rank(1)? != 2 {
        return Err("only a single matrix is read in parts".into());
    }
    if spec.gated && !spec.b.matrix {
        return Err("a gated product with such a matrix is not computed in parts".into());
    }
    if spec.bias.is_some_and(|bias| view.constant(bias).is_none()) {
        return Err("what is added to its product is no constant".into());
    }
    let (count, bytes) = rows(view, 1)?;
    cut(count, bytes, view.device.capabilities().binding_bytes).map(|_| ())
}

fn size(dtype: DataType) -> Result<usize, String> {
    dtype.size_bytes().ok_or_else(|| format!("elements of {dtype} have no size"))
}

/// Bytes of the constant matrix of a product, where they are more than a kernel sees.
pub(super) fn oversized_constant(shapes: &NodeShapes, limit: u64) -> Option<u64> {
    shapes.constants.get(1)?.as_ref()?;
    let matrix = shapes.inputs.get(1)?.as_ref()?;
    let bytes = (matrix.elements() * matrix.dtype.size_bytes()?) as u64;
    (bytes.next_multiple_of(16) > limit).then_some(bytes)
}

/// Adds the dispatches of a product, part by part.
///
/// # Errors
/// Fails when lengths are beyond the device.
pub(super) fn run(
    problem: &MatMulProblem,
    capabilities: &GpuCapabilities,
    step: &mut DispatchStep,
) -> Result<(), String> {
    match problem.spec.b.matrix {
        true => by_columns(problem, capabilities, step),
        false => by_depth(problem, capabilities, step),
    }
}

/// Rows of a matrix as a part of an input.
fn window(input: usize, first: usize, rows: usize, row_bytes: usize) -> ShaderBinding {
    ShaderBinding::InputPart(input, (first * row_bytes) as u64, (rows * row_bytes) as u64)
}

/// A product without what follows it.
fn plain(problem: &MatMulProblem) -> MatMulProblem {
    let spec =
        MatMulSpec { bias: None, more: None, activation: ProductActivation::NONE, ..problem.spec };
    MatMulProblem { spec, bias: None, more: None, under: None, ..problem.clone() }
}

fn by_depth(
    problem: &MatMulProblem,
    capabilities: &GpuCapabilities,
    step: &mut DispatchStep,
) -> Result<(), String> {
    let row_bytes = problem.n * size(problem.b.dtype)?;
    let parts = cut(problem.k, row_bytes, capabilities.binding_bytes)?;
    let bytes = problem.elements().checked_mul(4).ok_or("sums are too many")? as u64;
    let sums = [step.scratch(bytes), step.scratch(bytes)];
    let mut batch = vec![problem.m * problem.n; problem.batch.len()];
    for at in (1..batch.len()).rev() {
        batch[at - 1] = batch[at] * problem.batch[at];
    }
    let so_far =
        MatMulOperand { dtype: DataType::Fp32, start: 0, outer: problem.n, inner: 1, batch };
    for (number, &(first, count)) in parts.iter().enumerate() {
        let last = number + 1 == parts.len();
        let mut part = plain(problem);
        (part.k, part.a.start) = (count, problem.a.start + first * problem.a.inner);
        let mut inputs = vec![ShaderBinding::Input(0), window(1, first, count, row_bytes)];
        inputs.extend([ShaderBinding::Input(problem.spec.bias.unwrap_or(BIAS))]);
        part.spec.more = Some(MORE);
        if number > 0 {
            (part.more, part.spec.beta) = (Some(so_far.clone()), 1.0);
            inputs.push(ShaderBinding::Scratch(sums[(number - 1) % 2]));
        } else {
            part.more.clone_from(&problem.more);
            part.spec.more = problem.spec.more.map(|_| MORE);
            inputs.push(ShaderBinding::Input(problem.spec.more.unwrap_or(MORE)));
        }
        if last {
            (part.bias, part.spec.bias) = (problem.bias, problem.spec.bias.map(|_| BIAS));
            part.spec.activation = problem.spec.activation;
        } else {
            part.out = DataType::Fp32;
        }
        let out =
            if last { ShaderBinding::Output(0) } else { ShaderBinding::Scratch(sums[number % 2]) };
        place(&part, &inputs, &out, capabilities, None, step)?;
    }
    Ok(())
}

fn by_columns(
    problem: &MatMulProblem,
    capabilities: &GpuCapabilities,
    step: &mut DispatchStep,
) -> Result<(), String> {
    let row_bytes = problem.k * size(problem.b.dtype)?;
    let parts = cut(problem.n, row_bytes, capabilities.binding_bytes)?;
    let rows = problem.products() * problem.m;
    let most = parts.first().map_or(0, |(_, count)| *count);
    let beside = ShaderBinding::Scratch(step.scratch((rows * most * size(problem.out)?) as u64));
    for &(first, count) in &parts {
        let mut part = MatMulProblem { n: count, under: None, ..problem.clone() };
        let mut inputs = vec![ShaderBinding::Input(0), window(1, first, count, row_bytes)];
        inputs.push(match (problem.spec.bias, problem.bias) {
            (Some(input), Some((dtype, 1))) => window(input, first, count, size(dtype)?),
            (input, _) => ShaderBinding::Input(input.unwrap_or(BIAS)),
        });
        inputs.push(ShaderBinding::Input(problem.spec.more.unwrap_or(MORE)));
        part.spec.bias = problem.spec.bias.map(|_| BIAS);
        part.spec.more = problem.spec.more.map(|_| MORE);
        if let Some(more) = &mut part.more {
            more.start += first * more.inner;
        }
        place(&part, &inputs, &beside, capabilities, None, step)?;
        let columns = ConcatWindow { rows, width: count, pitch: problem.n, offset: first };
        put_columns(&columns, problem.out, vec![beside.clone(), ShaderBinding::Output(0)], step)?;
    }
    Ok(())
}
