//! What attention masks are made of: comparisons, logic, selections and conversions.

use galatea_graph::ONNX_DOMAIN;
use galatea_graph::ops::cast::Cast;
use galatea_graph::ops::logic::{Compare, CompareKind, Logical, LogicalKind, Not, Where};
use galatea_tensor::{DataType, Element, with_number};

use super::movement::with_plain;
use crate::cpu::{Kernel, KernelRow, NodeView, Shapes, Step};

/// The family's rows.
pub(super) const ROWS: &[KernelRow] = &[
    KernelRow {
        name: "where-any",
        domain: ONNX_DOMAIN,
        ops: &["Where"],
        supports: |view| match view.input(1) {
            Some(fact) if fact.dtype != DataType::Bytes => Ok(()),
            _ => Err("strings are not plain bytes".into()),
        },
        build: |view| view.operator::<Where>().map(|_| Box::new(Select) as Box<dyn Kernel>),
    },
    KernelRow {
        name: "compare-number",
        domain: ONNX_DOMAIN,
        ops: &["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"],
        supports: numbers,
        build: |view| Ok(Box::new(*view.operator::<Compare>()?)),
    },
    KernelRow {
        name: "logical-bool",
        domain: ONNX_DOMAIN,
        ops: &["And", "Or", "Xor"],
        supports: |_| Ok(()),
        build: |view| Ok(Box::new(*view.operator::<Logical>()?)),
    },
    KernelRow {
        name: "not-bool",
        domain: ONNX_DOMAIN,
        ops: &["Not"],
        supports: |_| Ok(()),
        build: |view| view.operator::<Not>().map(|_| Box::new(Negate) as Box<dyn Kernel>),
    },
    KernelRow {
        name: "cast-number",
        domain: ONNX_DOMAIN,
        ops: &["Cast"],
        supports: |view| conversion(view).map(drop),
        build: |view| Ok(Box::new(Convert(conversion(view)?))),
    },
];

fn numbers(view: &NodeView<'_>) -> Result<(), String> {
    match view.input(0).map(|fact| fact.dtype) {
        Some(DataType::Fp16 | DataType::Bf16 | DataType::Bool | DataType::Bytes) | None => {
            Err("the kernel compares FP32, FP64 and integers".into())
        }
        Some(_) => Ok(()),
    }
}

/// Several operands spread over a result: runs along its last axis, with the start of each
/// operand's elements.
struct Runs<const N: usize> {
    /// Length of a run.
    len: usize,
    /// Whether an operand has an element for each of a run, or one for all.
    full: [bool; N],
    starts: Vec<[usize; N]>,
}

/// The most runs that are worth keeping in a plan.
const MOST_RUNS: usize = 1 << 16;

impl<const N: usize> Runs<N> {
    fn new(operands: [&[usize]; N], result: &[usize]) -> Result<Self, String> {
        let same = |shape: &&[usize]| shape.iter().product::<usize>() == result.iter().product();
        if operands.iter().all(same) {
            let len = result.iter().product();
            return Ok(Self { len, full: [true; N], starts: vec![[0; N]] });
        }
        let (&len, lead) = result.split_last().unwrap_or((&1, &[]));
        let length = |operand: usize, axis: usize| {
            let missing = result.len().saturating_sub(operands[operand].len());
            axis.checked_sub(missing).map_or(1, |axis| operands[operand][axis])
        };
        if lead.iter().product::<usize>() > MOST_RUNS {
            return Err(format!("{lead:?} runs"));
        }
        let last = result.len().saturating_sub(1);
        let full: [bool; N] = std::array::from_fn(|at| length(at, last) == len && len != 1);
        let mut step: [usize; N] = std::array::from_fn(|at| length(at, last));
        let mut starts = vec![[0; N]];
        for (axis, &count) in lead.iter().enumerate().rev() {
            let stride: [usize; N] =
                std::array::from_fn(|at| if length(at, axis) == 1 { 0 } else { step[at] });
            let shifted = |index: usize, start: &[usize; N]| -> [usize; N] {
                std::array::from_fn(|at| start[at] + index * stride[at])
            };
            starts = (0..count)
                .flat_map(|index| starts.iter().map(move |start| (index, *start)))
                .map(|(index, start)| shifted(index, &start))
                .collect();
            step = std::array::from_fn(|at| step[at] * length(at, axis));
        }
        Ok(Self { len, full, starts })
    }
}

/// The elements of an operand in one run, repeated where there is one for all.
fn run_of<T: Copy>(x: &[T], start: usize, len: usize, full: bool) -> impl Iterator<Item = T> + '_ {
    let step = usize::from(full);
    (0..len).map(move |at| x[start + at * step])
}

/// `Where`.
struct Select;

impl Kernel for Select {
    fn bind(&self, shapes: &Shapes) -> Result<Step, String> {
        let operands = [shapes.input(0)?, shapes.input(1)?, shapes.input(2)?];
        let runs = Runs::new(operands, shapes.output(0)?)?;
        let Some(Some((dtype, _))) = shapes.inputs.get(1) else {
            return Err("input 1 is missing".into());
        };
        Ok(with_plain!(*dtype, T => Step::new(move |call| {
            let condition = call.input::<bool>(0)?;
            let (a, b) = (call.input::<T>(1)?, call.input::<T>(2)?);
            let mut y = call.output::<T>(0)?;
            let Some(chunks) = y.slice().len().checked_div(runs.len) else { return Ok(()) };
            for (y, start) in y.slice().chunks_exact_mut(runs.len).zip(&runs.starts).take(chunks) {
                let c = run_of(condition, start[0], runs.len, runs.full[0]);
                let a = run_of(a, start[1], runs.len, runs.full[1]);
                let b = run_of(b, start[2], runs.len, runs.full[2]);
                for (((y, c), a), b) in y.iter_mut().zip(c).zip(a).zip(b) {
                    *y = if c { a } else { b };
                }
            }
            Ok(())
        })))
    }
}

/// A step of two operands of type `T` into booleans.
fn pairs<T: Element + Copy>(
    shapes: &Shapes,
    function: impl Fn(T, T) -> bool + Send + Sync + 'static,
) -> Result<Step, String> {
    let runs = Runs::new([shapes.input(0)?, shapes.input(1)?], shapes.output(0)?)?;
    Ok(Step::new(move |call| {
        let (a, b) = (call.input::<T>(0)?, call.input::<T>(1)?);
        let mut y = call.output::<bool>(0)?;
        if runs.len == 0 {
            return Ok(());
        }
        for (y, start) in y.slice().chunks_exact_mut(runs.len).zip(&runs.starts) {
            let a = run_of(a, start[0], runs.len, runs.full[0]);
            let b = run_of(b, start[1], runs.len, runs.full[1]);
            for ((y, a), b) in y.iter_mut().zip(a).zip(b) {
                *y = function(a, b);
            }
        }
        Ok(())
    }))
}

impl Kernel for Compare {
    fn bind(&self, shapes: &Shapes) -> Result<Step, String> {
        let Some(Some((dtype, _))) = shapes.inputs.first() else {
            return Err("input 0 is missing".into());
        };
        with_number!(*dtype, T => match self.kind {
            CompareKind::Equal => pairs::<T>(shapes, |a, b| a == b),
            CompareKind::Greater => pairs::<T>(shapes, |a, b| a > b),
            CompareKind::GreaterOrEqual => pairs::<T>(shapes, |a, b| a >= b),
            CompareKind::Less => pairs::<T>(shapes, |a, b| a < b),
            CompareKind::LessOrEqual => pairs::<T>(shapes, |a, b| a <= b),
        }, else { Err("the kernel compares numbers".into()) })
    }
}

impl Kernel for Logical {
    fn bind(&self, shapes: &Shapes) -> Result<Step, String> {
        match self.kind {
            LogicalKind::And => pairs::<bool>(shapes, |a, b| a && b),
            LogicalKind::Or => pairs::<bool>(shapes, |a, b| a || b),
            LogicalKind::Xor => pairs::<bool>(shapes, |a, b| a != b),
        }
    }
}

/// `Not`.
struct Negate;

impl Kernel for Negate {
    fn bind(&self, _shapes: &Shapes) -> Result<Step, String> {
        Ok(map::<bool, bool>(|x| !x))
    }
}

/// A step that converts each element.
fn map<A: Element + Copy, B: Element>(f: fn(A) -> B) -> Step {
    Step::new(move |call| {
        let x = call.input::<A>(0)?;
        let mut y = call.output::<B>(0)?;
        for (y, &x) in y.slice().iter_mut().zip(x) {
            *y = f(x);
        }
        Ok(())
    })
}

/// Makes the step of a conversion.
type Conversion = fn() -> Step;

/// `Cast`.
struct Convert(Conversion);

impl Kernel for Convert {
    fn bind(&self, _shapes: &Shapes) -> Result<Step, String> {
        Ok((self.0)())
    }
}

/// The conversions that masks and token numbers need; each is what `Cast` says it is.
#[allow(clippy::cast_precision_loss, reason = "a cast to FP32 rounds to the nearest")]
fn conversion(view: &NodeView<'_>) -> Result<Conversion, String> {
    let to = view.operator::<Cast>()?.to;
    let from = view.input(0).ok_or("nothing is known about input 0")?.dtype;
    Ok(match (from, to) {
        (DataType::Bool, DataType::Fp32) => || map::<bool, f32>(|x| f32::from(u8::from(x))),
        (DataType::Bool, DataType::Int64) => || map::<bool, i64>(i64::from),
        (DataType::Bool, DataType::Int32) => || map::<bool, i32>(i32::from),
        (DataType::Int64, DataType::Fp32) => || map::<i64, f32>(|x| x as f32),
        (DataType::Int32, DataType::Fp32) => || map::<i32, f32>(|x| x as f32),
        (DataType::Uint8, DataType::Fp32) => || map::<u8, f32>(f32::from),
        (DataType::Uint8, DataType::Int64) => || map::<u8, i64>(i64::from),
        (DataType::Int32, DataType::Int64) => || map::<i32, i64>(i64::from),
        (DataType::Int64, DataType::Bool) => || map::<i64, bool>(|x| x != 0),
        (DataType::Int32, DataType::Bool) => || map::<i32, bool>(|x| x != 0),
        (DataType::Fp32, DataType::Bool) => || map::<f32, bool>(|x| x != 0.0),
        (DataType::Fp32, DataType::Fp32) => || map::<f32, f32>(|x| x),
        _ => return Err(format!("no kernel converts {from} to {to}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_are_spread_run_by_run() {
        let runs = Runs::new([&[2, 1, 3], &[4, 1], &[]], &[2, 4, 3]).unwrap();
        assert_eq!((runs.len, runs.full), (3, [true, false, false]));
        assert_eq!(runs.starts.len(), 8);
        assert_eq!(runs.starts[5], [3, 1, 0]);
        let whole = Runs::new([&[2, 3], &[2, 3]], &[2, 3]).unwrap();
        assert_eq!((whole.len, whole.starts), (6, vec![[0, 0]]));
    }
}
