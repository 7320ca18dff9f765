//! Operators that attention masks are made of: comparisons, logic, selections and conversions.

use galatea_graph::ONNX_DOMAIN;
use galatea_graph::ops::cast::Cast;
use galatea_graph::ops::logic::{Compare, CompareKind, Logical, LogicalKind, Not, Where};
use galatea_kernels::moves::share_runs;
use galatea_kernels::{KernelContext, convert};
use galatea_tensor::{DataType, Element, f16, with_number};

use super::movement::with_plain;
use super::spread::{SpreadRuns, map_pairs, run_of};
use crate::cpu::{CpuKernel, CpuKernelRow, CpuNodeView, CpuStep, NodeShapes};

/// The family's rows.
pub(super) const ROWS: &[CpuKernelRow] = &[
    CpuKernelRow {
        name: "where-any",
        domain: ONNX_DOMAIN,
        ops: &["Where"],
        supports: |view| match view.input(1) {
            Some(fact) if fact.dtype != DataType::Bytes => Ok(()),
            _ => Err("strings are not plain bytes".into()),
        },
        build: |view| view.operator::<Where>().map(|_| Box::new(WhereKernel) as Box<dyn CpuKernel>),
    },
    CpuKernelRow {
        name: "compare-number",
        domain: ONNX_DOMAIN,
        ops: &["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"],
        supports: numbers,
        build: |view| Ok(Box::new(*view.operator::<Compare>()?)),
    },
    CpuKernelRow {
        name: "logical-bool",
        domain: ONNX_DOMAIN,
        ops: &["And", "Or", "Xor"],
        supports: |_| Ok(()),
        build: |view| Ok(Box::new(*view.operator::<Logical>()?)),
    },
    CpuKernelRow {
        name: "not-bool",
        domain: ONNX_DOMAIN,
        ops: &["Not"],
        supports: |_| Ok(()),
        build: |view| view.operator::<Not>().map(|_| Box::new(NotKernel) as Box<dyn CpuKernel>),
    },
    CpuKernelRow {
        name: "cast-number",
        domain: ONNX_DOMAIN,
        ops: &["Cast"],
        supports: |view| conversion(view).map(drop),
        build: |view| Ok(Box::new(CastKernel(conversion(view)?))),
    },
];

fn numbers(view: &CpuNodeView<'_>) -> Result<(), String> {
    match view.input(0).map(|fact| fact.dtype) {
        Some(DataType::Fp16 | DataType::Bf16 | DataType::Bool | DataType::Bytes) | None => {
            Err("the kernel compares FP32, FP64 and integers".into())
        }
        Some(_) => Ok(()),
    }
}

/// `Where`.
struct WhereKernel;

impl CpuKernel for WhereKernel {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let operands = [shapes.input(0)?, shapes.input(1)?, shapes.input(2)?];
        let runs = SpreadRuns::new(operands, shapes.output(0)?)?;
        Ok(with_plain!(shapes.dtype(1)?, T => CpuStep::new(move |call| {
            let condition = call.input::<bool>(0)?;
            let a = call.carriers::<T>(1)?;
            let b = call.carriers::<T>(2)?;
            let mut y = call.output_carriers::<T>(0)?;
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

impl CpuKernel for Compare {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        with_number!(shapes.dtype(0)?, T => match self.kind {
            CompareKind::Equal => map_pairs::<T, bool>(shapes, |a, b| a == b),
            CompareKind::Greater => map_pairs::<T, bool>(shapes, |a, b| a > b),
            CompareKind::GreaterOrEqual => map_pairs::<T, bool>(shapes, |a, b| a >= b),
            CompareKind::Less => map_pairs::<T, bool>(shapes, |a, b| a < b),
            CompareKind::LessOrEqual => map_pairs::<T, bool>(shapes, |a, b| a <= b),
        }, else { Err("the kernel compares numbers".into()) })
    }
}

impl CpuKernel for Logical {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        match self.kind {
            LogicalKind::And => map_pairs::<bool, bool>(shapes, |a, b| a && b),
            LogicalKind::Or => map_pairs::<bool, bool>(shapes, |a, b| a || b),
            LogicalKind::Xor => map_pairs::<bool, bool>(shapes, |a, b| a != b),
        }
    }
}

/// `Not`.
struct NotKernel;

impl CpuKernel for NotKernel {
    fn bind(&self, _shapes: &NodeShapes) -> Result<CpuStep, String> {
        Ok(map::<bool, bool>(|x| !x))
    }
}

/// A step that converts each element, on several threads where they are many.
fn map<A: Element + Copy, B: Element>(f: impl Fn(A) -> B + Send + Sync + 'static) -> CpuStep {
    CpuStep::new(move |call| {
        let x = call.input::<A>(0)?;
        let mut y = call.output::<B>(0)?;
        share_runs(call.exec, y.slice(), 1, |range, y| {
            for (y, &x) in y.iter_mut().zip(&x[range]) {
                *y = f(x);
            }
        });
        Ok(())
    })
}

/// A step that converts all elements, on several threads where they are many.
fn converted<A: Element, B: Element>(f: fn(KernelContext<'_>, &[A], &mut [B])) -> CpuStep {
    CpuStep::new(move |call| {
        let x = call.input::<A>(0)?;
        let mut y = call.output::<B>(0)?;
        f(call.exec, x, y.slice());
        Ok(())
    })
}

/// Makes the step of a conversion.
type CastStepMaker = fn() -> CpuStep;

/// `Cast`.
struct CastKernel(CastStepMaker);

impl CpuKernel for CastKernel {
    fn bind(&self, _shapes: &NodeShapes) -> Result<CpuStep, String> {
        Ok((self.0)())
    }
}

/// The conversions that masks, token numbers and 16-bit floats need; each is what `Cast` says it is.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a cast to floats rounds to the nearest, one to integers towards zero, and long ones wrap"
)]
fn conversion(view: &CpuNodeView<'_>) -> Result<CastStepMaker, String> {
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
        (DataType::Fp32, DataType::Int64) => || map::<f32, i64>(|x| x as i64),
        (DataType::Fp32, DataType::Int32) => || map::<f32, i32>(|x| x as i32),
        (DataType::Fp32, DataType::Uint8) => || map::<f32, u8>(|x| x as i32 as u8),
        (DataType::Fp32, DataType::Int8) => || map::<f32, i8>(|x| x as i32 as i8),
        (DataType::Fp32, DataType::Fp64) => || map::<f32, f64>(f64::from),
        (DataType::Fp64, DataType::Fp32) => || map::<f64, f32>(|x| x as f32),
        (DataType::Fp64, DataType::Int64) => || map::<f64, i64>(|x| x as i64),
        (DataType::Int64, DataType::Int32) => || map::<i64, i32>(|x| x as i32),
        (DataType::Int64, DataType::Fp64) => || map::<i64, f64>(|x| x as f64),
        (DataType::Int32, DataType::Fp64) => || map::<i32, f64>(f64::from),
        (DataType::Uint8, DataType::Int32) => || map::<u8, i32>(i32::from),
        (DataType::Int8, DataType::Fp32) => || map::<i8, f32>(f32::from),
        (DataType::Int8, DataType::Int32) => || map::<i8, i32>(i32::from),
        (DataType::Bool, DataType::Uint8) => || map::<bool, u8>(u8::from),
        (DataType::Uint8, DataType::Bool) => || map::<u8, bool>(|x| x != 0),
        (DataType::Fp16, DataType::Fp32) => || converted(convert::f16_to_f32),
        (DataType::Fp32, DataType::Fp16) => || converted(convert::f32_to_f16),
        (DataType::Bf16, DataType::Fp32) => || converted(convert::bf16_to_f32),
        (DataType::Fp32, DataType::Bf16) => || converted(convert::f32_to_bf16),
        (DataType::Bool, DataType::Fp16) => || map::<bool, f16>(|x| f16::from(u8::from(x))),
        _ => return Err(format!("no kernel converts {from} to {to}")),
    })
}
