//! `Einsum`: sums of products named by letters.

use galatea_tensor::{OrderedMap, Tensor};

use crate::collect::{collected, collected_some};
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::{advance, bounded};
use crate::ops::values::{TensorValues, expect_number, expect_same};

/// The sum, over all letters that the result lacks, of the product of all inputs.
///
/// `ij,jk->ik` is a matrix product. `...` stands for any axes, which broadcast. Without `->` the
/// result has the letters that occur once, in alphabetical order, after the axes of `...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Einsum {
    /// The equation as the model has it.
    pub equation: String,
    inputs: Vec<Vec<AxisLabel>>,
    output: Vec<AxisLabel>,
}

/// Labels of the axes of an `Einsum`'s inputs and result: numbers from 0 on, in the order in which they first occur.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EinsumTerms {
    /// Labels of each input.
    pub inputs: Vec<Vec<usize>>,
    /// Labels of the result.
    pub output: Vec<usize>,
}

/// Label of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum AxisLabel {
    /// All axes of `...`; replaced by `Broadcast` once ranks are known.
    Ellipsis,
    /// An axis of `...`, counted from the last one.
    Broadcast(usize),
    Letter(char),
}

fn labels(term: &str) -> Result<Vec<AxisLabel>, OpError> {
    let mut found = Vec::new();
    let mut rest = term;
    while let Some(next) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("...") {
            if found.contains(&AxisLabel::Ellipsis) {
                return Err(OpError::new(format!("'{term}' has '...' twice")));
            }
            found.push(AxisLabel::Ellipsis);
            rest = after;
        } else if next.is_ascii_alphabetic() {
            found.push(AxisLabel::Letter(next));
            rest = &rest[1..];
        } else {
            return Err(OpError::new(format!("'{next}' in '{term}' is no letter")));
        }
    }
    Ok(found)
}

/// The result of an equation that names none.
fn implicit(inputs: &[Vec<AxisLabel>]) -> Vec<AxisLabel> {
    let mut counts = OrderedMap::<AxisLabel, usize>::new();
    for label in inputs.iter().flatten() {
        *counts.entry(*label).or_default() += 1;
    }
    let kept = |(label, count): (AxisLabel, usize)| {
        (label == AxisLabel::Ellipsis || count == 1).then_some(label)
    };
    counts.into_iter().filter_map(kept).collect()
}

impl Einsum {
    /// Reads an equation.
    ///
    /// # Errors
    /// Fails when it is malformed.
    pub fn new(equation: &str) -> Result<Self, OpError> {
        let compact: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
        let (left, right) = match compact.split_once("->") {
            Some((left, right)) => (left, Some(right)),
            None => (compact.as_str(), None),
        };
        let inputs = collected(&mut left.split(',').map(labels))?;
        let output = match right {
            Some(right) => labels(right)?,
            None => implicit(&inputs),
        };
        for (at, label) in output.iter().enumerate() {
            let known =
                *label == AxisLabel::Ellipsis || inputs.iter().flatten().any(|l| l == label);
            if !known || output[..at].contains(label) {
                return Err(OpError::new(format!("the result of '{equation}' is not valid")));
            }
        }
        Ok(Self { equation: equation.to_owned(), inputs, output })
    }

    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let equation = context.attributes.string("equation")?;
        let equation = equation.ok_or_else(|| OpError::new("attribute 'equation' is missing"))?;
        let einsum = Self::new(&equation)?;
        if einsum.inputs.len() != context.inputs {
            return Err(OpError::new(format!(
                "'{equation}' has {} terms, the node has {} inputs",
                einsum.inputs.len(),
                context.inputs
            )));
        }
        Ok(Box::new(einsum))
    }

    /// Returns the labels of all axes for inputs of these ranks.
    ///
    /// # Errors
    /// Fails when the equation does not fit the ranks.
    pub fn terms(&self, ranks: &[usize]) -> Result<EinsumTerms, OpError> {
        let (inputs, output) = self.spell(ranks)?;
        let mut seen: Vec<AxisLabel> = Vec::new();
        let mut number = |label: &AxisLabel| {
            seen.iter().position(|one| one == label).unwrap_or_else(|| {
                seen.push(*label);
                seen.len() - 1
            })
        };
        let inputs: Vec<Vec<usize>> =
            inputs.iter().map(|term| term.iter().map(&mut number).collect()).collect();
        let output = output.iter().map(&mut number).collect();
        Ok(EinsumTerms { inputs, output })
    }

    /// The labels of every input's axes, and of the result's, with `...` spelt out.
    fn spell(&self, ranks: &[usize]) -> Result<(Vec<Vec<AxisLabel>>, Vec<AxisLabel>), OpError> {
        let mut widest = 0;
        let mut inputs = Vec::new();
        for (term, &rank) in self.inputs.iter().zip(ranks) {
            let letters = term.iter().filter(|label| **label != AxisLabel::Ellipsis).count();
            let hidden = rank.checked_sub(letters);
            let hidden = hidden.filter(|&n| n == 0 || letters < term.len()).ok_or_else(|| {
                OpError::new(format!(
                    "an input of '{}' has {rank} axes, expected {letters}",
                    self.equation
                ))
            })?;
            widest = widest.max(hidden);
            inputs.push(spell(term, hidden));
        }
        Ok((inputs, spell(&self.output, widest)))
    }
}

fn spell(term: &[AxisLabel], hidden: usize) -> Vec<AxisLabel> {
    let mut spelt = Vec::new();
    for label in term {
        match label {
            AxisLabel::Ellipsis => spelt.extend((0..hidden).rev().map(AxisLabel::Broadcast)),
            other => spelt.push(*other),
        }
    }
    spelt
}

/// Joins the lengths that one label has in several places; all labels broadcast.
fn lengths(
    terms: &[Vec<AxisLabel>],
    shapes: &[&[usize]],
) -> Result<OrderedMap<AxisLabel, usize>, OpError> {
    let mut lengths = OrderedMap::<AxisLabel, usize>::new();
    for (&label, &len) in terms.iter().flatten().zip(shapes.iter().copied().flatten()) {
        let joined = lengths.entry(label).or_insert(1);
        if *joined == 1 {
            *joined = len;
        } else if len != 1 && len != *joined {
            return Err(OpError::new(format!("an axis has length {len} here, {joined} there")));
        }
    }
    Ok(lengths)
}

/// An input's steps along each of the loop's axes; 0 where it lacks the axis or broadcasts.
fn strides(term: &[AxisLabel], shape: &[usize], loops: &[AxisLabel]) -> Vec<usize> {
    let mut strides = vec![0; loops.len()];
    let mut step = 1;
    for (label, &len) in term.iter().zip(shape).rev() {
        if let Some(at) = loops.iter().position(|one| one == label)
            && len != 1
        {
            // A label that occurs twice in one term walks its diagonal.
            strides[at] += step;
        }
        step *= len;
    }
    strides
}

struct EinsumLoops {
    output: Vec<usize>,
    summed: Vec<usize>,
    strides: Vec<Vec<usize>>,
}

impl EinsumLoops {
    fn run<T: Copy>(
        &self,
        inputs: &[Vec<T>],
        zero: T,
        one: T,
        multiply: impl Fn(T, T) -> T,
        add: impl Fn(T, T) -> T,
    ) -> Vec<T> {
        let shape: Vec<usize> = self.output.iter().chain(&self.summed).copied().collect();
        let each: usize = self.summed.iter().product();
        let mut index = vec![0; shape.len()];
        let mut result = Vec::new();
        for _ in 0..self.output.iter().product() {
            let mut sum = zero;
            for _ in 0..each {
                let mut product = one;
                for (input, strides) in inputs.iter().zip(&self.strides) {
                    let at: usize = index.iter().zip(strides).map(|(i, stride)| i * stride).sum();
                    product = multiply(product, input[at]);
                }
                sum = add(sum, product);
                advance(&mut index, &shape);
            }
            result.push(sum);
        }
        result
    }
}

impl Operator for Einsum {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let all = inputs.all_required()?;
        let dtype = inputs.required(0)?.dtype;
        expect_number(dtype)?;
        for fact in &all {
            expect_same(dtype, fact.dtype)?;
        }
        let ranks: Option<Vec<usize>> = collected_some(&mut all.iter().map(|fact| fact.rank()));
        let Some(ranks) = ranks else { return Ok(vec![Fact::unranked(dtype)]) };
        let (terms, output) = self.spell(&ranks)?;
        let mut dims = OrderedMap::<AxisLabel, Fact>::new();
        for (term, fact) in terms.iter().zip(&all) {
            for (label, dim) in term.iter().zip(fact.shape.iter().flatten()) {
                let one = Fact::new(dtype, vec![dim.clone()]);
                let joined = match dims.get(label) {
                    Some(known) => Fact::broadcast(&[known, &one])?.unwrap_or_default(),
                    None => vec![dim.clone()],
                };
                dims.insert(*label, Fact::new(dtype, joined));
            }
        }
        let dim = |label: &AxisLabel| {
            let fact = dims.get(label);
            fact.and_then(|fact| fact.shape.as_ref()?.first().cloned()).unwrap_or(Dim::Unknown)
        };
        Ok(vec![Fact::new(dtype, output.iter().map(dim).collect())])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let all = inputs.all_required()?;
        let dtype = inputs.required(0)?.dtype();
        expect_number(dtype)?;
        let ranks: Vec<usize> = all.iter().map(|tensor| tensor.rank()).collect();
        let shapes: Vec<&[usize]> = all.iter().map(|tensor| tensor.shape()).collect();
        let (terms, output) = self.spell(&ranks)?;
        let lengths = lengths(&terms, &shapes)?;
        let summed: Vec<AxisLabel> =
            lengths.keys().filter(|l| !output.contains(l)).copied().collect();
        let of = |labels: &[AxisLabel]| {
            labels.iter().map(|l| lengths.get(l).copied().unwrap_or(1)).collect()
        };
        let order: Vec<AxisLabel> = output.iter().chain(&summed).copied().collect();
        let strides =
            terms.iter().zip(&shapes).map(|(term, shape)| strides(term, shape, &order)).collect();
        let loops = EinsumLoops { output: of(&output), summed: of(&summed), strides };
        bounded(dtype, &loops.output)?;
        bounded(dtype, &loops.summed)?;
        let mut floats = Vec::new();
        let mut integers = Vec::new();
        for tensor in &all {
            expect_same(dtype, tensor.dtype())?;
            match TensorValues::read(tensor)? {
                TensorValues::Floats(values) => floats.push(values),
                TensorValues::Integers(values) => integers.push(values),
                TensorValues::Bools(_) | TensorValues::Strings(_) => {}
            }
        }
        let values = if dtype.is_float() {
            TensorValues::Floats(loops.run(&floats, 0.0, 1.0, |a, b| a * b, |a, b| a + b))
        } else {
            TensorValues::Integers(loops.run(
                &integers,
                0,
                1,
                i128::wrapping_mul,
                i128::wrapping_add,
            ))
        };
        Ok(vec![values.write(dtype, &loops.output)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, counting, one, parse, tensor, text};

    fn run(equation: &str, inputs: &[&Tensor]) -> Tensor {
        one("Einsum", 12, &attributes([("equation", text(equation))]), inputs)
    }

    #[test]
    fn products_transposes_diagonals_and_sums() {
        let a = counting(&[2, 3]);
        let b = counting(&[3, 2]);
        assert_eq!(run("ij,jk->ik", &[&a, &b]), tensor(&[2, 2], &[10.0_f32, 13.0, 28.0, 40.0]));
        assert_eq!(run("ij,jk", &[&a, &b]), tensor(&[2, 2], &[10.0_f32, 13.0, 28.0, 40.0]));
        assert_eq!(run("ij->ji", &[&b]), tensor(&[2, 3], &[0.0_f32, 2.0, 4.0, 1.0, 3.0, 5.0]));
        assert_eq!(run("ij->i", &[&a]), Tensor::vector(vec![3.0_f32, 12.0]));
        assert_eq!(run("ii->i", &[&counting(&[2, 2])]), Tensor::vector(vec![0.0_f32, 3.0]));
        assert_eq!(run("ii", &[&counting(&[2, 2])]), Tensor::scalar(3.0_f32));
    }

    #[test]
    fn ellipses_broadcast() {
        let a = counting(&[2, 1, 2]);
        let b = counting(&[2, 2]);
        let expected = tensor(&[2, 1, 2], &[2.0_f32, 3.0, 6.0, 11.0]);
        assert_eq!(run("...ij,jk->...ik", &[&a, &b]), expected);
        assert_eq!(run("... i j , ... j k", &[&a, &b]), expected);
    }

    #[test]
    fn malformed_equations_are_errors() {
        for equation in ["i1->i", "ij->k", "ij->ii", "......->i", "i,j->ij"] {
            let all = attributes([("equation", text(equation))]);
            assert!(parse("Einsum", 12, &all, 1, 1).is_err(), "{equation}");
        }
    }
}
