//! `MatMulInteger` and `QLinearMatMul`: products of bytes with zero points, summed in 32 bits.

use galatea_tensor::DataType;
use minijinja::{Value, context};

use super::launch::Launch;
use super::problem::{Operand, Problem};
use super::spec::Spec;
use crate::device::Shader;
use crate::kernel::{Binding, Kernel, KernelRow, NodeView, Shapes, Step, fold, param, wgsl_float};
use crate::template::render;

pub(super) const ROW: KernelRow = KernelRow {
    name: "matmul-i8-tiled",
    domain: "",
    ops: &["MatMulInteger", "QLinearMatMul"],
    supports,
    build: |view| Ok(Box::new(Product { quantised: is_quantised(view) })),
};

/// Rows and columns of a tile, and bytes of k that are read at a time.
const TILE: [usize; 3] = [64, 64, 64];
/// Axes of the stack that one dispatch covers.
const AXES: usize = 3;

fn is_quantised(view: &NodeView<'_>) -> bool {
    view.node.op_type == "QLinearMatMul"
}

fn supports(view: &NodeView<'_>) -> Result<(), String> {
    let quantised = is_quantised(view);
    let [a, b] = if quantised { [0, 3] } else { [0, 1] };
    // With the operand whose rows or columns they are for.
    let parameters: &[(usize, usize)] = match quantised {
        true => &[(1, a), (2, a), (4, b), (5, b), (6, a), (7, a)],
        false => &[(2, a), (3, b)],
    };
    for &(parameter, operand) in parameters {
        let most = usize::from(view.rank(operand)? > 1);
        if view.has(parameter) && view.rank(parameter)? > most {
            return Err("zero points are one for all, or one for each row or column".into());
        }
    }
    let bytes = [Some(DataType::Int8), Some(DataType::Uint8)];
    let dtype = |index: usize| view.input(index).map(|fact| fact.dtype);
    if !bytes.contains(&dtype(a)) || !bytes.contains(&dtype(b)) {
        return Err("it multiplies no bytes".into());
    }
    if quantised && ![1, 4, 6].into_iter().all(|at| dtype(at).is_some_and(|d| view.is_float(d))) {
        return Err("scales are FP32 or FP16".into());
    }
    Ok(())
}

struct Product {
    quantised: bool,
}

/// Bytes of an operand, and how four of them are read with one word.
fn operand(operand: &Operand, k: usize) -> Value {
    let quads = match (operand.quads(true, k), operand.quads(false, k)) {
        (true, _) => "along",
        (false, true) => "across",
        (false, false) => "",
    };
    context!(elem => "u32", wide => false, quads)
}

impl Kernel for Product {
    fn bind(&self, shapes: &Shapes, step: &mut Step) -> Result<(), String> {
        let [a, b, zero_a, zero_b] = if self.quantised { [0, 3, 2, 5] } else { [0, 1, 2, 3] };
        let of = |index: usize| shapes.inputs.get(index).cloned().flatten();
        let operands = Shapes {
            inputs: vec![of(a), of(b)],
            outputs: shapes.outputs.clone(),
            constants: Vec::new(),
        };
        let problem = Problem::new(Spec::PLAIN, &operands)?;
        if problem.elements() == 0 {
            return Ok(());
        }
        let mut bindings = vec![Binding::Input(a), Binding::Input(b)];
        let mut zero = |index: usize, dtype: DataType| -> (Value, usize) {
            let given = shapes.has(index);
            let at = bindings.len();
            if given {
                bindings.push(Binding::Input(index));
            }
            let signed = dtype == DataType::Int8;
            (context!(given, signed, counts => given || !signed), at)
        };
        let (za, za_at) = zero(zero_a, problem.a.dtype);
        let (zb, zb_at) = zero(zero_b, problem.b.dtype);
        let out = bindings.len();
        let sums = self.quantised.then(|| step.scratch((problem.elements() * 4) as u64));
        bindings.push(sums.map_or(Binding::Output(0), Binding::Scratch));
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
        let shader = Shader::new(ROW.name, source).proved();
        let rows = match shapes.input(0)? {
            [.., rows, _] => *rows,
            _ => 1,
        };
        let (lead, launch) = (problem.batch.len().saturating_sub(AXES), launch(&problem));
        let (outer, inner) = problem.batch.split_at(lead);
        let tiles = problem.m.div_ceil(TILE[0]) * problem.n.div_ceil(TILE[1]);
        let total = tiles.checked_mul(inner.iter().product()).ok_or("tiles are too many")?;
        for number in 0..outer.iter().product::<usize>() {
            let index = unravel(number, outer);
            let mut params = launch.params(&index, 1, total)?;
            params.extend([own(shapes, zero_a), param(rows)?, own(shapes, zero_b)]);
            step.dispatch(shader.clone(), bindings.clone(), params, fold(total)?);
        }
        match sums {
            Some(sums) => requantise(&problem, shapes, (sums, rows), step),
            None => Ok(()),
        }
    }
}

/// The step of what is one for all, or one for each row or column.
fn own(shapes: &Shapes, index: usize) -> u32 {
    let len = shapes.input(index).ok().and_then(|shape| shape.first().copied());
    u32::from(len.unwrap_or(1) > 1)
}

/// Makes bytes of the sums in this scratch, with scales for so many rows.
fn requantise(
    problem: &Problem,
    shapes: &Shapes,
    (sums, rows): (usize, usize),
    step: &mut Step,
) -> Result<(), String> {
    let float = |index: usize| wgsl_float(shapes.dtype(index)?);
    let signed = problem.out == DataType::Int8;
    let context = context!(a => float(1)?, b => float(4)?, y => float(6)?, signed);
    let source = render(include_str!("requantise.wgsl"), context)?;
    let inputs = [1, 4, 6, 7].map(Binding::Input);
    let mut bindings = vec![Binding::Scratch(sums)];
    bindings.extend(inputs);
    bindings.push(Binding::Output(0));
    let mut params = vec![param(problem.elements())?, param(problem.n)?, param(rows)?];
    params.extend([1, 4, 6, 7].map(|index| own(shapes, index)));
    let groups = fold(problem.elements().div_ceil(256))?;
    step.dispatch(Shader::new("matmul-i8-requantise", source).proved(), bindings, params, groups);
    Ok(())
}

/// Where a number leads among axes.
fn unravel(number: usize, axes: &[usize]) -> Vec<usize> {
    let mut rest = number;
    let mut index = vec![0; axes.len()];
    for (at, &len) in index.iter_mut().zip(axes).rev() {
        (*at, rest) = (rest % len, rest / len);
    }
    index
}

fn launch(problem: &Problem) -> Launch<'_> {
    let context = Value::UNDEFINED;
    Launch {
        name: ROW.name,
        template: "",
        tile: TILE,
        shares: 1,
        inner: [false; 2],
        context,
        problem,
    }
}
