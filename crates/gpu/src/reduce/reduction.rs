//! Reductions, and pools over whole planes.

use galatea_graph::ops::pooling::{GlobalAveragePool, GlobalLpPool, GlobalMaxPool};
use galatea_graph::ops::reduce::{Reduce, ReduceKind};
use galatea_tensor::DataType;

use super::fold::{FoldEnds, ReducedSourceAxes, ReductionFold, fold};
use crate::element::ShaderKind;
use crate::kernel::{DispatchStep, GpuKernel, GpuKernelRow, GpuNodeView, ShaderBinding};
use galatea_runtime::NodeShapes;
use std::sync::Arc;

use crate::device::GpuDevice;

pub(super) const ROW: GpuKernelRow = GpuKernelRow {
    name: "reduce",
    domain: "",
    ops: &[
        "GlobalAveragePool",
        "GlobalLpPool",
        "GlobalMaxPool",
        "ReduceL1",
        "ReduceL2",
        "ReduceLogSum",
        "ReduceLogSumExp",
        "ReduceMax",
        "ReduceMean",
        "ReduceMin",
        "ReduceProd",
        "ReduceSum",
        "ReduceSumSquare",
    ],
    supports,
    build,
};

pub(super) const LAST: GpuKernelRow = GpuKernelRow {
    name: "reduce",
    domain: "ai.galatea",
    ops: &["GlobalAveragePoolNhwc"],
    supports,
    build,
};

/// Axes that are reduced.
enum ReducedAxes {
    /// Axes of a reduction, from its attributes or its second input.
    Said(Reduce),
    /// All but the batch and the channels.
    Planes {
        /// True if the channels are the last axis.
        channels_last: bool,
    },
}

fn parts(view: &GpuNodeView<'_>) -> Result<(ReducedAxes, ReductionFold), String> {
    let dtype = view.input(0).ok_or("the input is missing")?.dtype;
    // Truth values are ordered like 0 and 1.
    let dtype = if dtype == DataType::Bool { DataType::Uint8 } else { dtype };
    let kind = ShaderKind::of(view, dtype)?;
    let node = view.node;
    if let Some(op) = node.operator::<Reduce>() {
        return Ok((ReducedAxes::Said(op.clone()), of_kind(op.kind, kind, dtype)?));
    }
    let planes = |channels_last| ReducedAxes::Planes { channels_last };
    if let Some(op) = node.operator::<GlobalAveragePool>() {
        return Ok((planes(op.channels_last), of_kind(ReduceKind::Mean, kind, dtype)?));
    }
    if node.operator::<GlobalMaxPool>().is_some() {
        return Ok((planes(false), of_kind(ReduceKind::Max, kind, dtype)?));
    }
    let op = view.operator::<GlobalLpPool>()?;
    #[allow(clippy::float_cmp, reason = "orders are whole numbers")]
    let square = op.p == 2.0;
    let sum = of_kind(ReduceKind::Sum, kind, dtype)?;
    if square {
        return Ok((planes(false), of_kind(ReduceKind::L2, kind, dtype)?));
    }
    let order = op.p;
    let map = format!("pow(abs(x), f32({order:?}))");
    let finish = format!("pow(a, 1.0 / f32({order:?}))");
    Ok((planes(false), ReductionFold { map, finish, ..sum }))
}

/// The least and the greatest value of a type, as literals.
pub(crate) fn range(dtype: DataType) -> Option<(&'static str, &'static str)> {
    Some(match dtype {
        DataType::Fp32 | DataType::Fp16 => {
            ("bitcast<f32>(0xff800000u)", "bitcast<f32>(0x7f800000u)")
        }
        DataType::Int8 => ("i32(-128)", "i32(127)"),
        DataType::Uint8 => ("0u", "255u"),
        DataType::Int32 => ("i32(-2147483648)", "i32(2147483647)"),
        DataType::Uint32 => ("0u", "4294967295u"),
        DataType::Int64 => ("(-9223372036854775807li - 1li)", "9223372036854775807li"),
        _ => return None,
    })
}

const NAN: &str =
    "fn nan(v: f32) -> bool { return (bitcast<u32>(v) & 0x7fffffffu) > 0x7f800000u; }\n";

fn of_kind(kind: ReduceKind, of: ShaderKind, dtype: DataType) -> Result<ReductionFold, String> {
    let float = of == ShaderKind::Float;
    let carried = of.scalar();
    let (least, greatest) = range(dtype).ok_or("the type has no range")?;
    let mut all = ReductionFold {
        carried,
        start: format!("{carried}(0)"),
        map: "x".into(),
        join: "return a + b;\n".into(),
        finish: "a".into(),
        words: match of {
            ShaderKind::Float => Some(("vec2<u32>(bitcast<u32>(a), 0u)", "bitcast<f32>(w.x)")),
            ShaderKind::Signed => Some(("vec2<u32>(bitcast<u32>(a), 0u)", "bitcast<i32>(w.x)")),
            ShaderKind::Unsigned => Some(("vec2<u32>(a, 0u)", "w.x")),
            ShaderKind::Truth | ShaderKind::Wide => None,
        },
        functions: if float { NAN } else { "" },
    };
    // A NaN wins. Between bits it is chosen safely: compilers may take it to be absent among floats.
    let extreme = |order: &str| match float {
        true => format!(
            "var r = bitcast<u32>(select(a, b, b {order} a));\n\
             r = select(r, bitcast<u32>(b), nan(b));\n\
             return bitcast<f32>(select(r, bitcast<u32>(a), nan(a)));\n"
        ),
        false => format!("return select(a, b, b {order} a);\n"),
    };
    match kind {
        ReduceKind::Sum => {}
        ReduceKind::Mean if float => all.finish = "a / f32(count)".into(),
        ReduceKind::Mean => all.finish = format!("a / {carried}(count)"),
        ReduceKind::Max => {
            all.start = least.into();
            all.join = extreme(">");
        }
        ReduceKind::Min => {
            all.start = greatest.into();
            all.join = extreme("<");
        }
        ReduceKind::Prod => {
            all.start = format!("{carried}(1)");
            all.join = "return a * b;\n".into();
        }
        ReduceKind::L1 if of != ShaderKind::Unsigned => all.map = "abs(x)".into(),
        ReduceKind::L1 => {}
        ReduceKind::SumSquare => all.map = "x * x".into(),
        _ if !float => return Err("roots and logarithms are of floats".into()),
        ReduceKind::L2 => (all.map, all.finish) = ("x * x".into(), "sqrt(a)".into()),
        ReduceKind::LogSum => all.finish = "log4(vec4<f32>(a)).x".into(),
        ReduceKind::LogSumExp => return Ok(log_sum_exp()),
    }
    if kind == ReduceKind::Mean && !float && dtype.size_bytes() == Some(1) {
        return Err("a mean of bytes".into());
    }
    Ok(all)
}

/// The largest element and the sum of exponentials relative to it are carried along, so that nothing
/// overflows.
fn log_sum_exp() -> ReductionFold {
    ReductionFold {
        carried: "vec2<f32>",
        start: "vec2<f32>(bitcast<f32>(0xff800000u), 0.0)".into(),
        map: "vec2<f32>(x, 1.0)".into(),
        join: "if a.x == b.x { return vec2<f32>(a.x, a.y + b.y); }\n\
               if a.x > b.x { return vec2<f32>(a.x, a.y + b.y * exp(b.x - a.x)); }\n\
               return vec2<f32>(b.x, b.y + a.y * exp(a.x - b.x));\n"
            .into(),
        finish: "a.x + log4(vec4<f32>(a.y)).x".into(),
        words: Some(("bitcast<vec2<u32>>(a)", "bitcast<vec2<f32>>(w)")),
        functions: "",
    }
}

fn supports(view: &GpuNodeView<'_>) -> Result<(), String> {
    let (reduced, _) = parts(view)?;
    view.rank(0)?;
    if matches!(reduced, ReducedAxes::Said(_)) && !view.is_known(1) {
        return Err("the axes are known only in a run".into());
    }
    Ok(())
}

fn build(view: &GpuNodeView<'_>) -> Result<Box<dyn GpuKernel>, String> {
    let (reduced, fold) = parts(view)?;
    Ok(Box::new(ReductionKernel { reduced, fold, device: Arc::clone(view.device) }))
}

struct ReductionKernel {
    reduced: ReducedAxes,
    fold: ReductionFold,
    device: Arc<GpuDevice>,
}

impl ReducedAxes {
    /// Returns for each axis whether it is reduced.
    fn axes(&self, shapes: &NodeShapes, rank: usize) -> Result<Vec<bool>, String> {
        match self {
            Self::Planes { channels_last } => {
                let channels = if *channels_last { rank - 1 } else { 1 };
                Ok((0..rank).map(|axis| axis != 0 && axis != channels).collect())
            }
            Self::Said(op) => {
                let given = if shapes.has(1) { shapes.integers(1) } else { None };
                let axes = given.or_else(|| op.axes.clone()).unwrap_or_default();
                if axes.is_empty() {
                    return Ok(vec![!op.noop_with_empty_axes; rank]);
                }
                let mut all = vec![false; rank];
                for axis in axes {
                    all[crate::axis::position(axis, rank)?] = true;
                }
                Ok(all)
            }
        }
    }
}

impl GpuKernel for ReductionKernel {
    fn bind(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
        let shape = shapes.input(0)?;
        let reduced = self.reduced.axes(shapes, shape.len())?;
        let axes = ReducedSourceAxes::new(shape, |axis| reduced[axis]);
        let plain = |dtype| if dtype == DataType::Bool { DataType::Uint8 } else { dtype };
        let ends = FoldEnds {
            from: (ShaderBinding::Input(0), plain(shapes.dtype(0)?)),
            to: (ShaderBinding::Output(0), plain(shapes.output_dtype(0)?)),
        };
        fold(&self.fold, &axes, &ends, self.device.capabilities(), step)
    }
}
