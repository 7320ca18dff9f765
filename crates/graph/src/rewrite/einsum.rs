//! `Einsum` of two inputs becomes a matrix product between transposes.
//!
//! Labels fall into four groups: those of both inputs and the result (a batch), of the first input and the result
//! (rows), of the second and the result (columns), and of both inputs alone (terms of sums). Both inputs are brought
//! to `batch, rows, terms` and `batch, terms, columns`, and the product to the result's order.

use galatea_tensor::{DataType, Tensor};

use super::ValueMaps;
use super::contrib_parts::PartNodes;
use crate::error::GraphError;
use crate::fact::Dim;
use crate::graph::{Graph, Node, ValueId};
use crate::ops::matrix::{Einsum, EinsumTerms, MatMul};
use crate::ops::shape::{Reshape, Transpose};

/// Labels of a product by what they are to it.
struct ProductLabels {
    batch: Vec<usize>,
    rows: Vec<usize>,
    columns: Vec<usize>,
    terms: Vec<usize>,
}

impl ProductLabels {
    /// Sorts the labels of two inputs and a result; `None` where it is no plain product.
    fn of(all: &EinsumTerms) -> Option<Self> {
        let [left, right] = &all.inputs[..] else { return None };
        let out = &all.output;
        let distinct = |term: &[usize]| (1..term.len()).all(|at| !term[..at].contains(&term[at]));
        let used = |term: &[usize], other: &[usize]| {
            term.iter().all(|label| other.contains(label) || out.contains(label))
        };
        if !(distinct(left) && distinct(right) && used(left, right) && used(right, left)) {
            return None;
        }
        let filter = |from: &[usize], keep: &dyn Fn(&usize) -> bool| -> Vec<usize> {
            from.iter().copied().filter(|label| keep(label)).collect()
        };
        let (of_left, of_right) = (|l: &usize| left.contains(l), |l: &usize| right.contains(l));
        Some(Self {
            batch: filter(out, &|l| of_left(l) && of_right(l)),
            rows: filter(out, &|l| of_left(l) && !of_right(l)),
            columns: filter(out, &|l| !of_left(l) && of_right(l)),
            terms: filter(left, &|l| of_right(l) && !out.contains(l)),
        })
    }
}

/// Nodes in the place of an `Einsum`.
struct EinsumNodes<'a> {
    made: PartNodes<'a>,
    /// Length of each label.
    lengths: Vec<Dim>,
}

/// Replaces an `Einsum` that is a matrix product.
///
/// # Errors
/// None that this rule makes.
pub(super) fn apply(
    graph: &mut Graph,
    maps: &ValueMaps,
    index: usize,
) -> Result<Option<Vec<Node>>, GraphError> {
    let node = graph.nodes[index].clone();
    let Some(op) = node.operator::<Einsum>() else { return Ok(None) };
    let (Some(left), Some(right), Some(output)) = (node.input(0), node.input(1), node.output(0))
    else {
        return Ok(None);
    };
    let Some((terms, lengths)) = measured(op, maps, [left, right]) else { return Ok(None) };
    let Some(labels) = ProductLabels::of(&terms) else { return Ok(None) };
    let mut einsum = EinsumNodes { made: PartNodes::new(graph, &node), lengths };
    let found = einsum.product(&terms, &labels, [left, right], output);
    Ok(found.map(|()| einsum.made.nodes))
}

/// The labels of an equation, and the length of each; `None` where types or lengths are not those of a product.
fn measured(
    op: &Einsum,
    maps: &ValueMaps,
    inputs: [ValueId; 2],
) -> Option<(EinsumTerms, Vec<Dim>)> {
    let facts = inputs.map(|id| maps.fact(id));
    let [Some(left), Some(right)] = facts else { return None };
    let floats = [DataType::Fp32, DataType::Fp16, DataType::Bf16];
    if left.dtype != right.dtype || !floats.contains(&left.dtype) {
        return None;
    }
    let terms = op.terms(&[left.rank()?, right.rank()?]).ok()?;
    let count = terms.inputs.iter().flatten().max().map_or(0, |last| last + 1);
    let mut lengths: Vec<Option<Dim>> = vec![None; count];
    for (term, fact) in terms.inputs.iter().zip([left, right]) {
        for (&label, dim) in term.iter().zip(fact.shape.as_ref()?) {
            match &lengths[label] {
                // Lengths that may differ would broadcast.
                Some(known) if !known.same(dim) => return None,
                _ => lengths[label] = Some(dim.clone()),
            }
        }
    }
    Some((terms, lengths.into_iter().collect::<Option<_>>()?))
}

impl EinsumNodes<'_> {
    /// Adds the product; `None` where a target of a reshape cannot be told.
    fn product(
        &mut self,
        all: &EinsumTerms,
        labels: &ProductLabels,
        inputs: [ValueId; 2],
        output: ValueId,
    ) -> Option<()> {
        let ProductLabels { batch, rows, columns, terms } = labels;
        let [left, right] = inputs;
        let left = self.turned(left, &all.inputs[0], &[batch, rows, terms])?;
        let right = self.turned(right, &all.inputs[1], &[batch, terms, columns])?;
        let order: Vec<usize> = [&batch[..], rows, columns].concat();
        let whole = rows.len() == 1 && columns.len() == 1;
        let sorted = order == all.output;
        let product =
            self.made.add("MatMul", MatMul, &[left, right], (whole && sorted).then_some(output));
        if whole && sorted {
            return Some(());
        }
        let apart = match whole {
            true => product,
            false => {
                let lengths = [rows, columns].into_iter().flatten().map(|&l| self.length(l));
                let target = target(batch.len(), lengths.collect())?;
                self.reshaped(product, target, sorted.then_some(output))
            }
        };
        if !sorted {
            let place = |label: &usize| order.iter().position(|one| one == label);
            let permutation = all.output.iter().map(place).collect::<Option<Vec<_>>>()?;
            self.transposed(apart, permutation, Some(output));
        }
        Some(())
    }

    /// Brings an input to three groups of labels: the first stays apart, each of the others becomes one axis.
    fn turned(
        &mut self,
        from: ValueId,
        term: &[usize],
        groups: &[&Vec<usize>; 3],
    ) -> Option<ValueId> {
        let order: Vec<usize> = groups.iter().flat_map(|group| group.iter().copied()).collect();
        let place = |label: &usize| term.iter().position(|one| one == label);
        let permutation = order.iter().map(place).collect::<Option<Vec<_>>>()?;
        let mut value = from;
        if !permutation.iter().copied().eq(0..permutation.len()) {
            value = self.transposed(value, permutation, None);
        }
        let [batch, first, second] = groups;
        if first.len() == 1 && second.len() == 1 {
            return Some(value);
        }
        let joined = [first, second].map(|group| {
            let mut lengths = group.iter().map(|&label| self.length(label));
            lengths.try_fold(1_usize, |all, len| all.checked_mul(len?))
        });
        Some(self.reshaped(value, target(batch.len(), joined.to_vec())?, None))
    }

    fn length(&self, label: usize) -> Option<usize> {
        self.lengths.get(label).and_then(Dim::known)
    }

    fn transposed(
        &mut self,
        from: ValueId,
        permutation: Vec<usize>,
        output: Option<ValueId>,
    ) -> ValueId {
        self.made.add("Transpose", Transpose { perm: Some(permutation) }, &[from], output)
    }

    fn reshaped(&mut self, from: ValueId, target: Vec<i64>, output: Option<ValueId>) -> ValueId {
        let shape = self.made.constant("shape", Tensor::vector(target));
        self.made.add("Reshape", Reshape { allow_zero: false }, &[from, shape], output)
    }
}

/// The target of a reshape that keeps `kept` leading axes; at most one of the others may be unknown.
fn target(kept: usize, others: Vec<Option<usize>>) -> Option<Vec<i64>> {
    if others.iter().filter(|len| len.is_none()).count() > 1 || others.contains(&Some(0)) {
        return None;
    }
    let number = |len: Option<usize>| len.map_or(Some(-1), |len| i64::try_from(len).ok());
    let mut target = vec![0; kept];
    target.extend(others.into_iter().map(number).collect::<Option<Vec<_>>>()?);
    Some(target)
}
