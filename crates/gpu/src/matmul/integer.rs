//! `MatMulInteger`: products of bytes with zero points, summed in 32 bits.

use galatea_tensor::DataType;
use minijinja::{Value, context};

use super::launch::Launch;
use super::problem::{Operand, Problem};
use super::spec::Spec;
use crate::device::Shader;
use crate::kernel::{Binding, Kernel, KernelRow, NodeView, Shapes, Step, fold, param};
use crate::template::render;

pub(super) const ROW: KernelRow = KernelRow {
    name: "matmul-i8-tiled",
    domain: "",
    ops: &["MatMulInteger"],
    supports,
    build: |_| Ok(Box::new(Product)),
};

/// Rows and columns of a tile, and bytes of k that are read at a time.
const TILE: [usize; 3] = [64, 64, 64];
/// Axes of the stack that one dispatch covers.
const AXES: usize = 3;

fn supports(view: &NodeView<'_>) -> Result<(), String> {
    for (operand, zero) in [(0, 2), (1, 3)] {
        let rank = view.rank(operand)?;
        if view.has(zero) && view.rank(zero)? > usize::from(rank > 1) {
            return Err("zero points are one for all, or one for each row or column".into());
        }
        let bytes = [Some(DataType::Int8), Some(DataType::Uint8)];
        if !bytes.contains(&view.input(operand).map(|fact| fact.dtype)) {
            return Err("it multiplies no bytes".into());
        }
    }
    Ok(())
}

struct Product;

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
        let problem = Problem::new(Spec::PLAIN, shapes)?;
        if problem.elements() == 0 {
            return Ok(());
        }
        let mut bindings = vec![Binding::Input(0), Binding::Input(1)];
        let mut zero = |index: usize, dtype: DataType| -> (Value, usize) {
            let given = shapes.has(index);
            let at = bindings.len();
            if given {
                bindings.push(Binding::Input(index));
            }
            let signed = dtype == DataType::Int8;
            (context!(given, signed, counts => given || !signed), at)
        };
        let (za, za_at) = zero(2, problem.a.dtype);
        let (zb, zb_at) = zero(3, problem.b.dtype);
        let out = bindings.len();
        bindings.push(Binding::Output(0));
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
        let steps = |index: usize| -> usize {
            let len = shapes.input(index).ok().and_then(|shape| shape.first().copied());
            usize::from(len.unwrap_or(1) > 1)
        };
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
            params.extend([param(steps(2))?, param(rows)?, param(steps(3))?]);
            step.dispatch(shader.clone(), bindings.clone(), params, fold(total)?);
        }
        Ok(())
    }
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
