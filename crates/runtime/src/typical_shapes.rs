//! Lengths of a usual run, for predicted times of graphs whose lengths only a run brings.

use std::collections::HashMap;

use galatea_graph::{Dim, Fact, Graph, ValueId, infer};
use galatea_tensor::OrderedSet;

/// Lengths that stand for those that only a run brings: the first for which shapes fit.
const USUAL: &[usize] = &[128, 64, 224, 32, 256, 16, 8, 4, 2, 1];

/// Facts with a number for every length of the inputs: the first axis of an input is one row where its name stands
/// nowhere else, other lengths are one of `first`, or usual ones. None where no number fits. Lengths that follow from
/// values of a run are usual ones too.
#[must_use]
pub fn typical_shapes(
    graph: &Graph,
    facts: &[Option<Fact>],
    first: &[usize],
) -> Option<Vec<Option<Fact>>> {
    let known = |id: &ValueId| facts.get(id.index()).cloned().flatten().map(|fact| (*id, fact));
    let inputs: Vec<(ValueId, Fact)> = graph.inputs.iter().filter_map(known).collect();
    let open = |fact: &Fact| fact.known_shape().is_none();
    if !inputs.iter().any(|(_, fact)| open(fact)) {
        return Some(filled(facts, USUAL[0]));
    }
    let dims = |fact: &Fact| fact.shape.clone().unwrap_or_default();
    let later = inputs.iter().flat_map(|(_, fact)| dims(fact).into_iter().skip(1));
    let later: OrderedSet<String> = later.flat_map(|dim| dim.names()).collect();
    first.iter().chain(USUAL).copied().find_map(|length| {
        let fitting = |longer: Option<&str>| {
            let number = |name: &str| {
                let one = if later.contains(name) { length } else { 1 };
                Some(if longer == Some(name) { 2 * one } else { one })
            };
            let known = inputs.iter().map(|(id, fact)| fixed(*id, fact, length, &number));
            let fixed: Option<HashMap<ValueId, Fact>> = known.collect();
            Some(filled(&infer::facts(graph, &fixed?).ok()?, length))
        };
        // The length of what was before and what comes is the sum of both.
        fitting(None).or_else(|| later.iter().find_map(|name| fitting(Some(name))))
    })
}

/// An input with a number for every length: axes without a name are one row, or as long as others.
fn fixed(
    id: ValueId,
    fact: &Fact,
    length: usize,
    number: &dyn Fn(&str) -> Option<usize>,
) -> Option<(ValueId, Fact)> {
    let dims = fact.shape.as_ref()?.iter().enumerate().map(|(axis, dim)| {
        let usual = if axis == 0 { 1 } else { length };
        Dim::Known(dim.evaluate(number).unwrap_or(usual))
    });
    Some((id, Fact::new(fact.dtype, dims.collect())))
}

/// The facts with 1 for every length that is not known.
#[must_use]
pub fn sized(facts: &[Option<Fact>]) -> Vec<Option<Fact>> {
    filled(facts, 1)
}

/// The facts with a number for every name of a length that is not known.
fn filled(facts: &[Option<Fact>], number: usize) -> Vec<Option<Fact>> {
    let one = |dim: &Dim| Dim::Known(dim.evaluate(&|_| Some(number)).unwrap_or(number));
    let sized = |fact: &Fact| match &fact.shape {
        Some(dims) if fact.known_shape().is_none() => {
            Fact { shape: Some(dims.iter().map(one).collect()), ..fact.clone() }
        }
        _ => fact.clone(),
    };
    facts.iter().map(|fact| fact.as_ref().map(sized)).collect()
}

#[cfg(test)]
mod tests {
    use galatea_graph::ONNX_DOMAIN;
    use galatea_tensor::DataType;

    use super::*;

    #[test]
    fn lengths_that_follow_from_values_are_usual_ones() {
        let mut graph = Graph::new("open");
        graph.opsets.insert(ONNX_DOMAIN.to_owned(), 21);
        let (x, places) = (graph.value_named("x"), graph.value_named("places"));
        graph.value_mut(x).declared = Some(Fact::fixed(DataType::Fp32, &[4]));
        let none = galatea_graph::Attributes::new();
        let (read, written) = (vec![Some(x)], vec![Some(places)]);
        graph.add_node(ONNX_DOMAIN, "NonZero", "", &none, read, written).unwrap();
        (graph.inputs, graph.outputs) = (vec![x], vec![places]);
        let facts = infer::facts(&graph, &HashMap::new()).unwrap();
        let typical = typical_shapes(&graph, &facts, &[]).unwrap();
        let shape = |facts: &[Option<Fact>]| facts[places.index()].as_ref()?.known_shape();
        assert_eq!((shape(&facts), shape(&typical)), (None, Some(vec![1, 128])));
    }

    fn graph(dims: Vec<Dim>) -> (Graph, Vec<Option<Fact>>) {
        let mut graph = Graph::new("open");
        graph.opsets.insert(ONNX_DOMAIN.to_owned(), 21);
        let x = graph.value_named("x");
        let y = graph.value_named("y");
        graph.value_mut(x).declared = Some(Fact::new(DataType::Fp32, dims));
        let none = galatea_graph::Attributes::new();
        graph.add_node(ONNX_DOMAIN, "Relu", "", &none, vec![Some(x)], vec![Some(y)]).unwrap();
        (graph.inputs, graph.outputs) = (vec![x], vec![y]);
        let facts = infer::facts(&graph, &HashMap::new()).unwrap();
        (graph, facts)
    }

    #[test]
    fn a_usual_run_has_one_row_of_many_places() {
        let (graph, facts) =
            graph(vec![Dim::symbol("batch"), Dim::symbol("length"), Dim::Known(3)]);
        let shape = |facts: &[Option<Fact>]| facts[1].as_ref().unwrap().known_shape();
        assert_eq!(shape(&facts), None);
        assert_eq!(shape(&typical_shapes(&graph, &facts, &[]).unwrap()), Some(vec![1, 128, 3]));
        assert_eq!(shape(&typical_shapes(&graph, &facts, &[40]).unwrap()), Some(vec![1, 40, 3]));
        assert_eq!(shape(&sized(&facts)), Some(vec![1, 1, 3]));
    }

    #[test]
    fn lengths_that_are_known_stay() {
        let (graph, facts) = graph(vec![Dim::Known(7), Dim::Known(3)]);
        assert_eq!(typical_shapes(&graph, &facts, &[40]), Some(facts.clone()));
        assert_eq!(sized(&facts), facts);
    }
}
