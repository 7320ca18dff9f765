//! Runs whose inputs are padded, so that devices which compile for fixed lengths see few of them.

use galatea_graph::padding::{GraphPadding, padding};
use galatea_graph::rows;
use galatea_graph::{Datum, Fact, Graph, converted};
use galatea_tensor::{DataType, OrderedSet, Tensor, TensorError};

use super::run::OutputMask;
use crate::error::RuntimeError;

/// The axes of a graph that may be longer than what they hold, and the lengths that they get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PaddedAxes {
    /// The length's name.
    name: String,
    padding: GraphPadding,
    /// In rising order.
    lengths: Vec<usize>,
}

/// A run that is longer than what it was given.
pub(super) struct PaddedRun {
    pub(super) inputs: Vec<Datum>,
    /// Length of its inputs before padding.
    pub(super) length: usize,
}

impl PaddedAxes {
    /// The axes of a graph that may be padded up to these lengths: those of a length whose name an input has, and
    /// that counts no independent rows, which are padded elsewhere. Why none may be.
    pub(super) fn of(
        graph: &Graph,
        facts: &[Option<Fact>],
        lengths: &[usize],
    ) -> Result<Self, String> {
        let shapes =
            graph.inputs.iter().filter_map(|id| facts.get(id.index())?.as_ref()?.shape.as_ref());
        let names: OrderedSet<String> = shapes.flatten().flat_map(|dim| dim.names()).collect();
        let apart = rows::independent(graph, facts);
        let mut reasons = vec!["no length is open but that of rows".to_owned()];
        for name in names.into_iter().filter(|name| !apart.contains(name)) {
            match padding(graph, facts, &name) {
                Ok(padding) => {
                    let mut lengths = lengths.to_vec();
                    lengths.sort_unstable();
                    return Ok(Self { name, padding, lengths });
                }
                Err(reason) => reasons.push(format!("'{name}': {reason}")),
            }
        }
        Err(reasons.split_off(usize::from(reasons.len() > 1)).join("; "))
    }

    /// The length's name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// These inputs with zeros behind what they hold; none where they have one of the lengths already, are longer
    /// than all of them, or have a row of which a mask hides everything.
    pub(super) fn run(&self, inputs: &[Datum]) -> Result<Option<PaddedRun>, RuntimeError> {
        let all = || self.padding.inputs.iter().zip(inputs);
        let found =
            all().find_map(|(axes, datum)| datum.as_tensor()?.shape().get(*axes.first()?).copied());
        let longer = found.and_then(|found| self.lengths.iter().find(|&&one| one >= found));
        let Some((length, &to)) = found.zip(longer).filter(|(found, to)| found != *to) else {
            return Ok(None);
        };
        if length == 0 || !self.seen(inputs) {
            return Ok(None);
        }
        let padded = all().map(|(axes, datum)| match datum.as_tensor() {
            Some(tensor) if !axes.is_empty() => {
                let longer =
                    axes.iter().try_fold(tensor.clone(), |tensor, &axis| behind(&tensor, axis, to));
                longer.map(Datum::Tensor).map_err(failed)
            }
            _ => Ok(datum.clone()),
        });
        Ok(Some(PaddedRun { inputs: padded.collect::<Result<_, _>>()?, length }))
    }

    /// Returns whether each row of each mask has an unmasked position.
    fn seen(&self, inputs: &[Datum]) -> bool {
        self.padding.masks.iter().all(|&at| {
            let axes = self.padding.inputs.get(at).map_or(&[][..], Vec::as_slice);
            let tensor = inputs.get(at).and_then(Datum::as_tensor);
            match (axes, tensor) {
                ([axis], Some(tensor)) => every_row(tensor, *axis).unwrap_or(false),
                _ => false,
            }
        })
    }

    /// Places of the inputs of which masks are made.
    pub(super) fn masks(&self) -> &[usize] {
        &self.padding.masks
    }

    /// The front of what a longer run gives, for inputs that held so much, of those outputs that are wanted.
    pub(super) fn cut(
        &self,
        length: usize,
        wanted: OutputMask<'_>,
        outputs: Vec<Datum>,
    ) -> Result<Vec<Datum>, RuntimeError> {
        let axes = wanted.of(&self.padding.outputs);
        let cut = |(axes, datum): (&Vec<usize>, Datum)| match datum {
            Datum::Tensor(tensor) if !axes.is_empty() => {
                let front = axes
                    .iter()
                    .try_fold(tensor, |tensor, &axis| tensor.slice_axis(axis, 0, length, 1));
                front.and_then(|front| front.contiguous()).map(Datum::Tensor).map_err(failed)
            }
            other => Ok(other),
        };
        axes.zip(outputs).map(cut).collect()
    }
}

fn failed(error: TensorError) -> RuntimeError {
    RuntimeError::Input(format!("making inputs longer: {error}"))
}

/// A tensor with zeros behind what it holds along an axis.
fn behind(tensor: &Tensor, axis: usize, to: usize) -> Result<Tensor, TensorError> {
    let tensor = tensor.contiguous()?;
    let mut shape = tensor.shape().to_vec();
    let length = shape.get(axis).copied().unwrap_or(0);
    shape.iter_mut().skip(axis).take(1).for_each(|own| *own = to);
    let inner: usize = shape.iter().skip(axis + 1).product();
    let element = tensor.dtype().size_bytes().unwrap_or(0) * inner;
    let bytes = tensor.unaligned_bytes()?;
    let row = (length * element).max(1);
    let whole = to * element;
    let mut longer = Vec::with_capacity(bytes.len() / row * whole);
    for one in bytes.chunks(row) {
        longer.extend_from_slice(one);
        longer.resize(longer.len() + whole.saturating_sub(one.len()), 0);
    }
    Tensor::from_bytes(tensor.dtype(), &shape, &longer)
}

/// Returns whether each row along an axis has an element that is not 0.
fn every_row(tensor: &Tensor, axis: usize) -> Result<bool, TensorError> {
    let wide = converted(tensor, DataType::Fp64)
        .and_then(|wide| Ok(wide.contiguous()?.to_vec::<f64>()?));
    let Ok(values) = wide else { return Ok(false) };
    let length = tensor.shape().get(axis).copied().unwrap_or(0);
    let inner: usize = tensor.shape().iter().skip(axis + 1).product();
    let outer = values.chunks((length * inner).max(1));
    let seen = |block: &[f64], at: usize| {
        block.iter().skip(at).step_by(inner.max(1)).any(|value| *value != 0.0)
    };
    Ok(outer.into_iter().all(|block| (0..inner).all(|at| seen(block, at))))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn zeros_stand_behind_what_there_was() {
        let tensor = Tensor::from_vec(&[2, 2, 1], vec![1_i64, 2, 3, 4]).unwrap();
        let longer = behind(&tensor, 1, 3).unwrap();
        assert_eq!(longer.shape(), [2, 3, 1]);
        assert_eq!(longer.to_i64_vec().unwrap(), [1, 2, 0, 3, 4, 0]);
        let first = behind(&tensor, 0, 3).unwrap();
        assert_eq!(first.to_i64_vec().unwrap(), [1, 2, 3, 4, 0, 0]);
    }

    #[test]
    fn a_row_of_which_nothing_is_seen_is_found() {
        let mask = |values: &[i64]| Tensor::from_vec(&[2, 2], values.to_vec()).unwrap();
        assert!(every_row(&mask(&[1, 0, 0, 1]), 1).unwrap());
        assert!(!every_row(&mask(&[1, 1, 0, 0]), 1).unwrap());
        assert!(every_row(&mask(&[1, 1, 0, 0]), 0).unwrap());
    }
}
