//! Sums of products named by letters, as one product of matrices.

use galatea_formats::coreml::mil::{MilArg, MilVar};
use galatea_graph::ops::matrix::Einsum;
use galatea_graph::{Dim, Node};

use super::EmitRow;
use super::elementwise::plain_integer;
use super::matrix::product;
use crate::emit::ProgramEmitter;
use crate::unwritable::{Result, refuse, small};

pub(super) const ROWS: &[EmitRow] = &[EmitRow::onnx("Einsum", einsum)];

/// A value whose axes have names.
#[derive(Clone)]
struct AxisNamedValue {
    var: MilVar,
    letters: Vec<char>,
    dims: Vec<Dim>,
}

impl AxisNamedValue {
    /// The value with its axes in this order; letters that it lacks are axes of length 1.
    fn ordered(&self, emit: &mut ProgramEmitter<'_>, order: &[char]) -> Result<Self> {
        let own: Vec<char> =
            order.iter().copied().filter(|letter| self.letters.contains(letter)).collect();
        let at = |letter: &char| self.letters.iter().position(|own| own == letter).unwrap_or(0);
        let axes: Vec<usize> = own.iter().map(at).collect();
        let var = emit.transpose(&self.var, &axes)?;
        let dims = axes.iter().map(|&axis| self.dims[axis].clone()).collect();
        Ok(Self { var, letters: own, dims })
    }

    /// The sum over the axes that are not among these.
    fn summed(&self, emit: &mut ProgramEmitter<'_>, kept: &[char]) -> Result<Self> {
        let gone = |letter: &char| !kept.contains(letter);
        let axes: Vec<usize> =
            (0..self.letters.len()).filter(|&at| gone(&self.letters[at])).collect();
        if axes.is_empty() {
            return Ok(self.clone());
        }
        let left = |at: &usize| !axes.contains(at);
        let axes_arg = axes.iter().map(|&axis| small(axis)).collect::<Result<Vec<_>>>()?;
        let inputs = vec![
            ("x", (&self.var).into()),
            ("axes", MilArg::Ints(axes_arg)),
            ("keep_dims", MilArg::Bool(false)),
        ];
        let var = emit.op("reduce_sum", inputs)?;
        let places: Vec<usize> = (0..self.letters.len()).filter(left).collect();
        Ok(Self {
            var,
            letters: places.iter().map(|&at| self.letters[at]).collect(),
            dims: places.iter().map(|&at| self.dims[at].clone()).collect(),
        })
    }
}

/// The axes of each value and of the result.
fn terms(equation: &str, count: usize) -> Result<(Vec<Vec<char>>, Vec<char>)> {
    let plain: String = equation.chars().filter(|letter| !letter.is_whitespace()).collect();
    let Some((inputs, output)) = plain.split_once("->") else {
        return refuse(format!("the equation '{equation}' does not name its result"));
    };
    if plain.contains('.') {
        return refuse(format!("axes without names in '{equation}'"));
    }
    let inputs: Vec<Vec<char>> = inputs.split(',').map(|term| term.chars().collect()).collect();
    let twice = |term: &Vec<char>| (1..term.len()).any(|at| term[..at].contains(&term[at]));
    if inputs.len() != count || inputs.iter().any(twice) {
        return refuse(format!("the equation '{equation}' for {count} values"));
    }
    Ok((inputs, output.chars().collect()))
}

fn einsum(emit: &mut ProgramEmitter<'_>, node: &Node) -> Result<Vec<MilVar>> {
    plain_integer(emit, node)?;
    let Some(operator) = node.operator::<Einsum>() else { return refuse("a sum of another kind") };
    let (inputs, output) = terms(&operator.equation, node.inputs.len())?;
    let mut values = Vec::with_capacity(inputs.len());
    for (at, letters) in inputs.into_iter().enumerate() {
        let dims = emit.dims(emit.input(node, at)?)?;
        if dims.len() != letters.len() {
            return refuse(format!("input {at} has {} axes for {letters:?}", dims.len()));
        }
        values.push(AxisNamedValue { var: emit.var(node, at)?, letters, dims });
    }
    let result = match values.as_slice() {
        [one] => one.summed(emit, &output)?,
        [a, b] => pair(emit, a, b, &output)?,
        other => return refuse(format!("a product of {} values", other.len())),
    };
    Ok(vec![result.ordered(emit, &output)?.var])
}

/// Axes that both have and the result keeps are a batch, those that it lacks are summed.
fn pair(
    emit: &mut ProgramEmitter<'_>,
    a: &AxisNamedValue,
    b: &AxisNamedValue,
    output: &[char],
) -> Result<AxisNamedValue> {
    let kept = |other: &AxisNamedValue| [output, other.letters.as_slice()].concat();
    let a = a.summed(emit, &kept(b))?;
    let b = b.summed(emit, &kept(&a))?;
    let of = |from: &AxisNamedValue, wanted: &dyn Fn(&char) -> bool| -> Vec<char> {
        from.letters.iter().copied().filter(|letter| wanted(letter)).collect()
    };
    let batch = of(&a, &|letter| b.letters.contains(letter) && output.contains(letter));
    let inner = of(&a, &|letter| b.letters.contains(letter) && !output.contains(letter));
    let left = of(&a, &|letter| !b.letters.contains(letter));
    let right = of(&b, &|letter| !a.letters.contains(letter));
    let x = matrices(emit, &a, &batch, &left, &inner)?;
    let y = matrices(emit, &b, &batch, &inner, &right)?;
    let var = product(emit, &x.var, &y.var, false, false)?;
    let letters = [batch.as_slice(), &left, &right].concat();
    let known = |letter: &char| {
        let found = |from: &AxisNamedValue| {
            from.letters.iter().position(|own| own == letter).map(|at| from.dims[at].clone())
        };
        found(&a).or_else(|| found(&b)).unwrap_or(Dim::Unknown)
    };
    let dims: Vec<Dim> = letters.iter().map(known).collect();
    let rows = x.dims[batch.len()].clone();
    let columns = y.dims[batch.len() + 1].clone();
    let from = [&x.dims[..batch.len()], &[rows, columns]].concat();
    let var = emit.reshape_dims(&var, &from, &dims)?;
    Ok(AxisNamedValue { var, letters, dims })
}

/// A value as matrices: a batch, then rows and columns that each are one axis.
fn matrices(
    emit: &mut ProgramEmitter<'_>,
    value: &AxisNamedValue,
    batch: &[char],
    rows: &[char],
    columns: &[char],
) -> Result<AxisNamedValue> {
    let order = [batch, rows, columns].concat();
    let turned = value.ordered(emit, &order)?;
    let merged = |from: usize, count: usize| match &turned.dims[from..from + count] {
        [one] => one.clone(),
        all => {
            let known: Option<Vec<usize>> = all.iter().map(Dim::known).collect();
            known.map_or(Dim::Unknown, |all| Dim::Known(all.iter().product()))
        }
    };
    let mut dims = turned.dims[..batch.len()].to_vec();
    dims.push(merged(batch.len(), rows.len()));
    dims.push(merged(batch.len() + rows.len(), columns.len()));
    let var = emit.reshape_dims(&turned.var, &turned.dims, &dims)?;
    Ok(AxisNamedValue { var, letters: order, dims })
}
