//! `MatMulInteger` and its kin: products of bytes with zero points, summed in 32 bits.

use galatea_graph::ops::contrib::{DynamicQuantizeMatMul, MatMulIntegerToFloat};
use galatea_tensor::DataType;
use minijinja::{Value, context};

use super::launch::ProductLaunch;
use super::problem::{MatMulOperand, MatMulProblem};
use super::spec::MatMulSpec;
use crate::device::KernelShader;
use crate::kernel::{
    DispatchStep, GpuKernel, GpuKernelRow, GpuNodeView, ShaderBinding, fold, param, wgsl_float,
};
use crate::quantise::{self, DynamicOutputs};
use crate::template::render;
use galatea_runtime::NodeShapes;

pub(super) const ROW: GpuKernelRow = GpuKernelRow {
    name: "matmul-i8-tiled",
    domain: "",
    ops: &["MatMulInteger", "QLinearMatMul"],
    supports,
    build: |view| Ok(Box::new(IntegerProduct { form: IntegerProductResult::of(view)? })),
};

/// Kernel row for the operators of `com.microsoft`, whose results are floats.
pub(super) const CONTRIB: GpuKernelRow = GpuKernelRow {
    domain: "com.microsoft",
    ops: &["DynamicQuantizeMatMul", "MatMulIntegerToFloat"],
    ..ROW
};

/// Rows and columns of a tile, and bytes of k that are read at a time.
const TILE: [usize; 3] = [64, 64, 64];
/// Axes of the stack that one dispatch covers.
const AXES: usize = 3;

/// Use of the sums, which determines the positions of the inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IntegerProductResult {
    /// They are the result.
    Sums,
    /// Bytes with a scale.
    Bytes,
    /// Floats.
    Floats,
    /// Floats, and the first operand is quantised here.
    Dynamic,
}

/// Inputs of a form.
struct IntegerProductInputs {
    /// The operands.
    operands: [usize; 2],
    /// Their zero points; the first is no input where it is computed here.
    zeros: [Option<usize>; 2],
    /// The scales of the operands likewise, and what is added.
    scales: [Option<usize>; 2],
    bias: Option<usize>,
}

impl IntegerProductResult {
    fn of(view: &GpuNodeView<'_>) -> Result<Self, String> {
        if view.operator::<MatMulIntegerToFloat>().is_ok() {
            return Ok(Self::Floats);
        }
        if view.operator::<DynamicQuantizeMatMul>().is_ok() {
            return Ok(Self::Dynamic);
        }
        Ok(if view.node.op_type == "QLinearMatMul" { Self::Bytes } else { Self::Sums })
    }

    fn places(self) -> IntegerProductInputs {
        let places =
            |operands, zeros, scales, bias| IntegerProductInputs { operands, zeros, scales, bias };
        let some = |all: [usize; 2]| all.map(Some);
        match self {
            Self::Sums => places([0, 1], some([2, 3]), [None; 2], None),
            Self::Bytes => places([0, 3], some([2, 5]), some([1, 4]), None),
            Self::Floats => places([0, 1], some([4, 5]), some([2, 3]), Some(6)),
            Self::Dynamic => places([0, 1], [None, Some(3)], [None, Some(2)], Some(4)),
        }
    }
}

fn supports(view: &GpuNodeView<'_>) -> Result<(), String> {
    let form = IntegerProductResult::of(view)?;
    let IntegerProductInputs { operands, zeros, scales, bias } = form.places();
    let dtype = |index: usize| view.input(index).map(|fact| fact.dtype);
    for side in 0..2 {
        let operand = operands[side];
        let most = usize::from(view.rank(operand)? > 1);
        for parameter in [zeros[side], scales[side]].into_iter().flatten() {
            if view.has(parameter) && view.rank(parameter)? > most {
                return Err("zero points are one for all, or one for each row or column".into());
            }
        }
        let byte = matches!(dtype(operand), Some(DataType::Int8 | DataType::Uint8));
        if !(byte || form == IntegerProductResult::Dynamic && side == 0) {
            return Err("it multiplies no bytes".into());
        }
    }
    let mut floats: Vec<usize> = scales.into_iter().flatten().collect();
    match form {
        IntegerProductResult::Bytes => {
            for parameter in [6, 7] {
                if view.rank(parameter)? > usize::from(view.rank(0)? > 1) {
                    return Err("a scale is one for all, or one for each row".into());
                }
            }
            floats.push(6);
        }
        IntegerProductResult::Dynamic => floats.push(0),
        IntegerProductResult::Floats => {
            // A scale of rows is not defined; of one element it may be a vector.
            let shape = view.input(2).and_then(|fact| fact.known_shape());
            if view.rank(2)? > 0 && shape.as_deref() != Some(&[1]) {
                return Err("the scale of A has more than one element".into());
            }
        }
        IntegerProductResult::Sums => {}
    }
    if let Some(bias) = bias.filter(|&bias| view.has(bias)) {
        if view.rank(bias)? > 1 {
            return Err("a bias is one for all, or one for each column".into());
        }
        floats.push(bias);
    }
    if !floats.into_iter().all(|at| dtype(at).is_some_and(|dtype| view.is_float(dtype))) {
        return Err("scales are FP32 or FP16".into());
    }
    match (form, view.output(0).map(|fact| fact.dtype)) {
        (IntegerProductResult::Floats | IntegerProductResult::Dynamic, Some(dtype))
            if !view.is_float(dtype) =>
        {
            Err(format!("the result is {dtype}"))
        }
        _ => Ok(()),
    }
}

struct IntegerProduct {
    form: IntegerProductResult,
}

/// Bytes of an operand, and how four of them are read with one word.
fn operand(operand: &MatMulOperand, k: usize) -> Value {
    let quads = match (operand.quads(true, k), operand.quads(false, k)) {
        (true, _) => "along",
        (false, true) => "across",
        (false, false) => "",
    };
    context!(elem => "u32", wide => false, quads)
}

/// A zero point, and its step from one row or column to the next.
type ZeroPointStep = Option<(ShaderBinding, u32)>;

/// A product to be summed.
struct SummedProduct {
    problem: MatMulProblem,
    operands: [ShaderBinding; 2],
    zeros: [ZeroPointStep; 2],
    /// Rows that have zero points of their own.
    rows: usize,
    out: ShaderBinding,
}

impl SummedProduct {
    fn dispatch(self, step: &mut DispatchStep) -> Result<(), String> {
        let Self { problem, operands, zeros: [zero_a, zero_b], rows, out: result } = self;
        let mut bindings = Vec::from(operands);
        let mut zero = |given: &ZeroPointStep, dtype: DataType| -> (Value, usize) {
            let at = bindings.len();
            bindings.extend(given.iter().map(|(binding, _)| binding.clone()));
            let given = given.is_some();
            let signed = dtype == DataType::Int8;
            (context!(given, signed, counts => given || !signed), at)
        };
        let (za, za_at) = zero(&zero_a, problem.a.dtype);
        let (zb, zb_at) = zero(&zero_b, problem.b.dtype);
        let out = bindings.len();
        bindings.push(result);
        let context = context!(
            integers => true,
            bias => "",
            more => "",
            a => operand(&problem.a, problem.k),
            b => operand(&problem.b, problem.k),
            za, zb,
            out => context!(elem => "i32", wide => false),
            at => context!(za => za_at, zb => zb_at, out, params => out + 1),
            bm => TILE[0],
            bn => TILE[1],
            band => 8
        );
        let source = render(include_str!("integer.wgsl"), context)?;
        let shader = KernelShader::new(ROW.name, source).proved();
        let lead = problem.batch.len().saturating_sub(AXES);
        let launch = launch(&problem);
        let (outer, inner) = problem.batch.split_at(lead);
        let tiles = problem.m.div_ceil(TILE[0]) * problem.n.div_ceil(TILE[1]);
        let total = tiles.checked_mul(inner.iter().product()).ok_or("tiles are too many")?;
        let step_of = |zero: &ZeroPointStep| zero.as_ref().map_or(0, |(_, step)| *step);
        for number in 0..outer.iter().product::<usize>() {
            let index = unravel(number, outer);
            let mut params = launch.params(&index, 1, total)?;
            params.extend([step_of(&zero_a), param(rows)?, step_of(&zero_b)]);
            step.dispatch(shader.clone(), bindings.clone(), params, fold(total)?);
        }
        Ok(())
    }
}

impl GpuKernel for IntegerProduct {
    fn bind(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
        let IntegerProductInputs { operands: [a, b], zeros, scales, bias } = self.form.places();
        let of = |index: usize| shapes.inputs.get(index).cloned().flatten();
        let mut inputs = vec![of(a), of(b)];
        let dynamic = self.form == IntegerProductResult::Dynamic;
        if let (true, Some(Some(operand))) = (dynamic, inputs.first_mut()) {
            operand.dtype = DataType::Uint8;
        }
        let outputs = shapes.outputs.clone();
        let operands = NodeShapes { inputs, outputs, constants: Vec::new() };
        let problem = MatMulProblem::new(MatMulSpec::PLAIN, &operands)?;
        if problem.elements() == 0 {
            return Ok(());
        }
        let given = |index: Option<usize>| -> ZeroPointStep {
            let index = index.filter(|&index| shapes.has(index))?;
            Some((ShaderBinding::Input(index), own(shapes, index)))
        };
        let mut bound = [ShaderBinding::Input(a), ShaderBinding::Input(b)];
        let mut zeros = zeros.map(given);
        let mut scale = match scales[0] {
            Some(index) => Some((ShaderBinding::Input(index), shapes.dtype(index)?)),
            None => None,
        };
        if dynamic {
            let elements: usize = shapes.input(0)?.iter().product();
            let mut room = |bytes: usize| ShaderBinding::Scratch(step.scratch(bytes as u64));
            let to = DynamicOutputs {
                bytes: room(elements),
                scale: (room(16), DataType::Fp32),
                zero: room(16),
            };
            bound[0] = to.bytes.clone();
            zeros[0] = Some((to.zero.clone(), 0));
            scale = Some(to.scale.clone());
            quantise::dispatch(ShaderBinding::Input(0), shapes.dtype(0)?, elements, to, step)?;
        }
        let rows = match shapes.input(a)? {
            [.., rows, _] => *rows,
            _ => 1,
        };
        let sums = (self.form != IntegerProductResult::Sums)
            .then(|| step.scratch((problem.elements() * 4) as u64));
        let out = sums.map_or(ShaderBinding::Output(0), ShaderBinding::Scratch);
        let own = SummedProduct { problem: problem.clone(), operands: bound, zeros, rows, out };
        own.dispatch(step)?;
        match (sums, self.form, scale, scales[1]) {
            (Some(sums), IntegerProductResult::Bytes, ..) => {
                requantise(&problem, shapes, sums, rows, step)
            }
            (Some(sums), _, Some(scale_a), Some(scale_b)) => {
                let scaled = ScaledSums { sums, scale_a, scale_b, bias };
                scaled.dispatch(&problem, shapes, step)
            }
            _ => Ok(()),
        }
    }
}

/// Sums that become floats.
struct ScaledSums {
    /// The scratch that they are in.
    sums: usize,
    scale_a: (ShaderBinding, DataType),
    scale_b: usize,
    bias: Option<usize>,
}

impl ScaledSums {
    fn dispatch(
        self,
        problem: &MatMulProblem,
        shapes: &NodeShapes,
        step: &mut DispatchStep,
    ) -> Result<(), String> {
        let (scale_a, a) = self.scale_a;
        let bias = self.bias.filter(|&index| shapes.has(index));
        let added = bias.map(|index| wgsl_float(shapes.dtype(index)?)).transpose()?;
        let context = context!(
            a => wgsl_float(a)?,
            b => wgsl_float(shapes.dtype(self.scale_b)?)?,
            bias => added.unwrap_or_default(),
            y => wgsl_float(problem.out)?
        );
        let source = render(include_str!("rescale.wgsl"), context)?;
        let scale_b = ShaderBinding::Input(self.scale_b);
        let mut bindings =
            vec![ShaderBinding::Scratch(self.sums), scale_a, scale_b, ShaderBinding::Output(0)];
        bindings.extend(bias.map(ShaderBinding::Input));
        let elements = problem.elements();
        let mut params = vec![param(elements)?, param(problem.n)?, own(shapes, self.scale_b)];
        params.push(bias.map_or(0, |index| own(shapes, index)));
        let shader = KernelShader::new("matmul-i8-rescale", source).proved();
        step.dispatch(shader, bindings, params, fold(elements.div_ceil(4 * 64))?);
        Ok(())
    }
}

/// The step of what is one for all, or one for each row or column.
fn own(shapes: &NodeShapes, index: usize) -> u32 {
    let len = shapes.input(index).ok().and_then(|shape| shape.first().copied());
    u32::from(len.unwrap_or(1) > 1)
}

/// Makes bytes of the sums in this scratch, with scales for so many rows.
fn requantise(
    problem: &MatMulProblem,
    shapes: &NodeShapes,
    sums: usize,
    rows: usize,
    step: &mut DispatchStep,
) -> Result<(), String> {
    let float = |index: usize| wgsl_float(shapes.dtype(index)?);
    let signed = problem.out == DataType::Int8;
    let context = context!(a => float(1)?, b => float(4)?, y => float(6)?, signed);
    let source = render(include_str!("requantise.wgsl"), context)?;
    let inputs = [1, 4, 6, 7].map(ShaderBinding::Input);
    let mut bindings = vec![ShaderBinding::Scratch(sums)];
    bindings.extend(inputs);
    bindings.push(ShaderBinding::Output(0));
    let mut params = vec![param(problem.elements())?, param(problem.n)?, param(rows)?];
    params.extend([1, 4, 6, 7].map(|index| own(shapes, index)));
    let groups = fold(problem.elements().div_ceil(256))?;
    step.dispatch(
        KernelShader::new("matmul-i8-requantise", source).proved(),
        bindings,
        params,
        groups,
    );
    Ok(())
}

/// Returns the indices along the axes of the element with this number.
fn unravel(number: usize, axes: &[usize]) -> Vec<usize> {
    let mut rest = number;
    let mut index = vec![0; axes.len()];
    for (at, &len) in index.iter_mut().zip(axes).rev() {
        (*at, rest) = (rest % len, rest / len);
    }
    index
}

fn launch(problem: &MatMulProblem) -> ProductLaunch<'_> {
    let context = Value::UNDEFINED;
    ProductLaunch {
        name: ROW.name,
        template: "",
        tile: TILE,
        shares: 1,
        inner: [false; 2],
        context,
        problem,
        zeros: None,
    }
}
