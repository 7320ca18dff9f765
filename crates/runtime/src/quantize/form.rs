//! Quantized forms of a layer: one implementation for each number format.

use std::collections::{HashMap, HashSet};

use galatea_graph::{Graph, ValueId};

use super::layer::WeightedLayer;
use crate::error::RuntimeError;

/// Purpose that a graph is made for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum QuantizePurpose {
    /// To see what it computes: products may be written out where results are the same.
    #[default]
    Measuring,
    /// To be stored.
    Storing,
}

/// Values that were made for one graph, by what they were made of and what they are.
#[derive(Debug, Default)]
pub(super) struct ValueCache {
    values: HashMap<(ValueId, &'static str), Vec<ValueId>>,
    /// Purpose that the graph is made for.
    pub(super) purpose: QuantizePurpose,
}

impl ValueCache {
    /// The values of this kind that were made of another, made now if they are not there yet.
    pub(super) fn once(
        &mut self,
        of: ValueId,
        kind: &'static str,
        make: impl FnOnce() -> Result<Vec<ValueId>, RuntimeError>,
    ) -> Result<Vec<ValueId>, RuntimeError> {
        if let Some(found) = self.values.get(&(of, kind)) {
            return Ok(found.clone());
        }
        let made = make()?;
        self.values.insert((of, kind), made.clone());
        Ok(made)
    }

    /// Notes that a value stands for itself.
    pub(super) fn is_itself(&mut self, id: ValueId, kind: &'static str) {
        self.values.insert((id, kind), vec![id]);
    }
}

/// A way to compute layers with fewer bits.
pub(super) trait QuantizedForm {
    /// Returns the name in reports.
    fn name(&self) -> &'static str;

    /// Returns the reason why a layer cannot have this form; `None` if it can.
    fn refusal(&self, graph: &Graph, layer: &WeightedLayer) -> Option<String>;

    /// Adds to `graph` what must be there before layers are added; `layers` are going to get this form.
    fn begin(
        &self,
        _: &mut Graph,
        _: &[&WeightedLayer],
        _: &mut ValueCache,
    ) -> Result<(), RuntimeError> {
        Ok(())
    }

    /// Adds nodes that compute a layer into `output`.
    fn emit(
        &self,
        graph: &mut Graph,
        layer: &WeightedLayer,
        output: ValueId,
        made: &mut ValueCache,
    ) -> Result<(), RuntimeError>;

    /// Works like [`QuantizedForm::emit`], with inputs and a result of FP32 whatever surrounds the layer.
    fn probe(
        &self,
        graph: &mut Graph,
        layer: &WeightedLayer,
        output: ValueId,
        made: &mut ValueCache,
    ) -> Result<(), RuntimeError> {
        self.emit(graph, layer, output, made)
    }

    /// Changes what no layer does, once all layers are there. The layers that write the values in
    /// the list were not chosen.
    fn finish(&self, _: &mut Graph, _: &HashSet<ValueId>) -> Result<(), RuntimeError> {
        Ok(())
    }
}

/// The graph in which the chosen layers have their form; those that write the values in `left` keep
/// theirs.
pub(super) fn build(
    graph: &Graph,
    chosen: &[&WeightedLayer],
    left: &HashSet<ValueId>,
    form: &dyn QuantizedForm,
    purpose: QuantizePurpose,
) -> Result<Graph, RuntimeError> {
    let mut new = graph.clone();
    let mut index = 0;
    new.nodes.retain(|_| {
        index += 1;
        chosen.iter().all(|layer| layer.index + 1 != index)
    });
    let mut made = ValueCache { purpose, ..ValueCache::default() };
    form.begin(&mut new, chosen, &mut made)?;
    for layer in chosen {
        form.emit(&mut new, layer, layer.output, &mut made)?;
    }
    form.finish(&mut new, left)?;
    new.sort()?;
    new.remove_unused();
    Ok(new)
}

/// The graph as it is, with every layer computed a second time in its form: from floats that have
/// lost nothing before. Gives the values of the second results.
pub(super) fn probes(
    graph: &Graph,
    layers: &[&WeightedLayer],
    form: &dyn QuantizedForm,
) -> Result<(Graph, Vec<ValueId>), RuntimeError> {
    let mut new = graph.clone();
    let mut made = ValueCache::default();
    let mut results = Vec::with_capacity(layers.len());
    for layer in layers {
        let output = super::edit::after(&mut new, layer.output, "probe");
        form.probe(&mut new, layer, output, &mut made)?;
        results.push(output);
    }
    new.sort()?;
    Ok((new, results))
}
