//! Pools: a thread for each quad of the result walks its windows.

use galatea_graph::ops::pooling::{AveragePool, LpPool, MaxPool, PoolWindow};
use galatea_tensor::DataType;

use crate::element::{
    DispatchParams, ShaderKind, THREADS, declare, entry, load, load_quad, shader, store_quad,
};
use crate::kernel::{
    DispatchStep, GpuKernel, GpuKernelRow, GpuNodeView, ShaderBinding, fold, param,
};
use crate::reduce::range;
use galatea_runtime::NodeShapes;

/// This family's kernels.
pub(crate) const ROWS: &[GpuKernelRow] = &[
    row("", &["AveragePool", "LpPool", "MaxPool"]),
    row("ai.galatea", &["AveragePoolNhwc", "MaxPoolNhwc"]),
    row("com.microsoft", &["NhwcMaxPool"]),
];

const fn row(domain: &'static str, ops: &'static [&'static str]) -> GpuKernelRow {
    GpuKernelRow { name: "pool", domain, ops, supports, build }
}

/// Function of the elements under a window.
#[derive(Clone, Copy, Debug, PartialEq)]
enum PoolingForm {
    /// The largest; its place too, counted column by column or row by row.
    Max { column_major: bool },
    /// The mean, of padding too or not.
    Mean { padding: bool },
    /// The norm of this order.
    Norm(f64),
}

fn parts(view: &GpuNodeView<'_>) -> Result<(PoolWindow, PoolingForm), String> {
    if let Some(op) = view.node.operator::<MaxPool>() {
        return Ok((op.window.clone(), PoolingForm::Max { column_major: op.column_major }));
    }
    if let Some(op) = view.node.operator::<AveragePool>() {
        return Ok((op.window.clone(), PoolingForm::Mean { padding: op.count_include_pad }));
    }
    let op = view.operator::<LpPool>()?;
    Ok((op.window.clone(), PoolingForm::Norm(op.p)))
}

fn supports(view: &GpuNodeView<'_>) -> Result<(), String> {
    let (window, form) = parts(view)?;
    let dtype = view.input(0).ok_or("the input is missing")?.dtype;
    let kind = ShaderKind::of(view, dtype)?;
    let plain = matches!(kind, ShaderKind::Float | ShaderKind::Signed | ShaderKind::Unsigned);
    if !plain || (kind != ShaderKind::Float && !matches!(form, PoolingForm::Max { .. })) {
        return Err(format!("shaders do not pool {dtype}"));
    }
    if view.output(0).is_none() {
        return Err("only places are wanted".into());
    }
    match view.rank(0)? {
        3..=5 if window.kernel_shape.len() + 2 == view.rank(0)? => Ok(()),
        rank => Err(format!("images of rank {rank}")),
    }
}

fn build(view: &GpuNodeView<'_>) -> Result<Box<dyn GpuKernel>, String> {
    let (window, form) = parts(view)?;
    Ok(Box::new(PoolingKernel { window, form }))
}

struct PoolingKernel {
    window: PoolWindow,
    form: PoolingForm,
}

/// One spatial axis of a window, as the text reads its lengths.
struct PoolingAxis {
    input: String,
    output: String,
    kernel: String,
    stride: String,
    dilation: String,
    before: String,
    /// The input with its padding.
    padded: String,
    /// Elements between neighbours in the input.
    step: String,
    /// Places between neighbours as the second output counts them.
    number: String,
}

impl GpuKernel for PoolingKernel {
    fn bind(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
        let shape = shapes.input(0)?;
        let elements = shapes.output(0)?.iter().product::<usize>();
        param(elements)?;
        param(shape.iter().product())?;
        if elements == 0 {
            return Ok(());
        }
        let types = (shapes.dtype(0)?, shapes.output_dtype(0)?);
        let last = self.window.channels_last;
        let channels = if last { shape[shape.len() - 1] } else { 1 };
        let vector = channels.is_multiple_of(4);
        let mut words = DispatchParams::default();
        let quads = elements.div_ceil(4);
        let count = words.length(elements)?;
        let quad_count = words.length(quads)?;
        let channels = words.length(channels)?;
        let axes = self.axes(shape, &mut words)?;
        let wants = shapes.wants(1);
        let mut bindings = vec![ShaderBinding::Input(0), ShaderBinding::Output(0)];
        let mut text = declare(0, "x", types.0)? + &declare(1, "y", types.1)?;
        if wants {
            bindings.push(ShaderBinding::Output(1));
            text.push_str(
                "@group(0) @binding(2) var<storage, read_write> places: array<vec2<u32>>;\n",
            );
        }
        text.push_str(&words.declare(bindings.len()));
        text.push_str(&self.window_text(&axes, &channels, types.0, vector)?);
        text.push_str(&entry(&quad_count));
        text.push_str(&lanes(types, vector, wants, &count));
        text.push_str("}\n");
        let groups = fold(quads.div_ceil(THREADS))?;
        step.dispatch(shader("pool", &text).proved(), bindings, words.into_params(), groups);
        Ok(())
    }
}

/// The quad of results of a thread.
fn lanes(types: (DataType, DataType), vector: bool, wants: bool, count: &str) -> String {
    let mut text = String::new();
    if vector {
        text.push_str("let result = pooled(at * 4u).value;\n");
    } else {
        for lane in 0..4 {
            text.push_str(&format!(
                "let l{lane} = pooled(min(at * 4u + {lane}u, {count} - 1u));\n"
            ));
            if wants {
                text.push_str(&format!(
                    "if at * 4u + {lane}u < {count} {{ places[at * 4u + {lane}u] = vec2<u32>(l{lane}.place, 0u); }}\n"
                ));
            }
        }
        let kind = scalar(types.0);
        text.push_str(&format!(
            "let result = vec4<{kind}>(l0.value, l1.value, l2.value, l3.value);\n"
        ));
    }
    text.push_str(&store_quad("y", types.1, "at", "result", count));
    text
}

fn scalar(dtype: DataType) -> &'static str {
    match dtype {
        DataType::Fp32 | DataType::Fp16 => "f32",
        DataType::Int32 | DataType::Int8 => "i32",
        _ => "u32",
    }
}

impl PoolingKernel {
    /// Three axes, with axes of length 1 in front where there are fewer.
    fn axes(
        &self,
        shape: &[usize],
        words: &mut DispatchParams,
    ) -> Result<Vec<PoolingAxis>, String> {
        let last = self.window.channels_last;
        let spatial = if last { &shape[1..shape.len() - 1] } else { &shape[2..] };
        let geometry = self.window.geometry(spatial).map_err(|error| error.to_string())?;
        let missing = 3 - spatial.len();
        let mut step = if last { shape[shape.len() - 1] } else { 1 };
        let column_major = matches!(self.form, PoolingForm::Max { column_major: true });
        let mut axes = Vec::new();
        for place in (0..3_usize).rev() {
            let own = place.checked_sub(missing);
            let of = |list: &[usize], default: usize| {
                own.and_then(|axis| list.get(axis)).copied().unwrap_or(default)
            };
            let input = of(spatial, 1);
            let number: usize = match (column_major, own) {
                (true, Some(axis)) => spatial[..axis].iter().product(),
                (false, Some(axis)) => spatial[axis + 1..].iter().product(),
                (_, None) => 0,
            };
            let before = of(&geometry.pads_begin, 0);
            axes.push(PoolingAxis {
                input: words.length(input)?,
                output: words.length(of(&geometry.output, 1))?,
                kernel: words.length(of(&self.window.kernel_shape, 1))?,
                stride: words.length(of(&self.window.strides, 1))?,
                dilation: words.length(of(&self.window.dilations, 1))?,
                before: words.length(before)?,
                padded: words.length(before + input + of(&geometry.pads_end, 0))?,
                step: words.length(step)?,
                number: words.length(number)?,
            });
            step *= input;
        }
        axes.reverse();
        Ok(axes)
    }

    /// The function `pooled(number)` of one element of the result, or of the four from it on.
    fn window_text(
        &self,
        axes: &[PoolingAxis],
        channels: &str,
        dtype: DataType,
        vector: bool,
    ) -> Result<String, String> {
        let kind = scalar(dtype);
        let value = if vector { format!("vec4<{kind}>") } else { kind.to_owned() };
        let (least, _) = range(dtype).ok_or("the type has no range")?;
        let (start, add, finish) = match self.form {
            PoolingForm::Max { .. } => {
                (format!("{value}({least})"), self.larger(dtype, vector), String::new())
            }
            PoolingForm::Mean { padding } => {
                let counted = if padding { "padded" } else { "seen" };
                let mean = format!("best = best / f32(max({counted}, 1u));\n");
                (format!("{value}(0)"), "best += e;\n".into(), mean)
            }
            PoolingForm::Norm(order) => {
                let power = |x: &str, p: &str| format!("pow({x}, {value}({p}))");
                let add = format!("best += {};\n", power("abs(e)", &format!("{order:?}")));
                let root = power("best", &format!("1.0 / {order:?}"));
                (format!("{value}(0)"), add, format!("best = {root};\n"))
            }
        };
        let element = match vector {
            true => load_quad("x", dtype, "(source / 4u)"),
            false => load("x", dtype, "source"),
        };
        let mut text = format!(
            "struct Pooled {{ value: {value}, place: u32 }}\n\
             fn pooled(number: u32) -> Pooled {{\nvar r = number / {channels};\nlet channel = number % {channels};\n"
        );
        for (name, axis) in ["z", "y", "x"].iter().zip(axes).rev() {
            text.push_str(&format!("let o{name} = r % {0};\nr = r / {0};\n", axis.output));
        }
        let pixels = axes.iter().map(|axis| axis.input.clone()).collect::<Vec<_>>().join(" * ");
        text.push_str(&format!(
            "let base = r * {pixels} * {channels} + channel;\nvar best = {start};\nvar place = 0u;\n\
             var seen = 0u;\nvar padded = 0u;\n"
        ));
        for (name, axis) in ["z", "y", "x"].iter().zip(axes) {
            let PoolingAxis { kernel, stride, dilation, before, input, padded, .. } = axis;
            text.push_str(&format!(
                "for (var k{name} = 0u; k{name} < {kernel}; k{name}++) {{\n\
                 let p{name} = o{name} * {stride} + k{name} * {dilation};\n\
                 let i{name} = p{name} - {before};\n\
                 let in_{name} = p{name} >= {before} && i{name} < {input};\nlet pad_{name} = p{name} < {padded};\n"
            ));
        }
        let sum = |pick: &dyn Fn(&PoolingAxis) -> &String| {
            let terms = ["z", "y", "x"].iter().zip(axes);
            terms
                .map(|(name, axis)| format!("i{name} * {}", pick(axis)))
                .collect::<Vec<_>>()
                .join(" + ")
        };
        text.push_str(&format!(
            "if pad_z && pad_y && pad_x {{ padded++; }}\n\
             if in_z && in_y && in_x {{\nlet source = base + {};\nlet e = {element};\nlet own = r * {pixels} + {};\n{add}seen++;\n}}\n}} }} }}\n\
             {finish}return Pooled(best, place);\n}}\n",
            sum(&|axis| &axis.step),
            sum(&|axis| &axis.number),
        ));
        Ok(text)
    }

    /// The first of equal elements stays, and a NaN stays against numbers.
    fn larger(&self, dtype: DataType, vector: bool) -> String {
        let float = scalar(dtype) == "f32";
        match (vector, float) {
            (true, true) => "best = max4(best, e);\n".into(),
            (true, false) => "best = max(best, e);\n".into(),
            (false, true) => "let e_nan = (bitcast<u32>(e) & 0x7fffffffu) > 0x7f800000u;\n\
                 let best_nan = (bitcast<u32>(best) & 0x7fffffffu) > 0x7f800000u;\n\
                 if seen == 0u || (!best_nan && (e > best || e_nan)) { best = e; place = own; }\n"
                .into(),
            (false, false) => "if seen == 0u || e > best { best = e; place = own; }\n".into(),
        }
    }
}
