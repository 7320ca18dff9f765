//! Scales of products that come before the product: sums of products may exceed what FP16 holds where what they are
//! scaled back to does not, such as the scores of attention.

use galatea_graph::ops::fused::{FusedActivation, FusedMatMul};
use galatea_graph::{Graph, Node, ValueId, converted};
use galatea_tensor::DataType;

/// The smallest factor that is moved: smaller ones may leave too few digits of what they scale.
const LEAST: f32 = 1.0 / 1024.0;

/// Moves each number that scales a product of two variables back in front of its first operand.
pub(super) fn move_scales(graph: &mut Graph) {
    for at in 0..graph.nodes.len() {
        if let Some(found) = scaled_product(graph, at) {
            found.move_scale(graph);
        }
    }
}

/// A product and the node that scales it back by a number.
struct ScaledProduct {
    product: usize,
    scale: usize,
    /// Operand of `scale` that is the product.
    slot: usize,
}

/// Finds the product that the node at `scale` scales back.
fn scaled_product(graph: &Graph, scale: usize) -> Option<ScaledProduct> {
    let node = graph.nodes.get(scale)?;
    let divides = node.op_type == "Div";
    if !node.domain.is_empty() || !(divides || node.op_type == "Mul") {
        return None;
    }
    let slot = [0, 1].into_iter().find(|&slot| {
        let other = node.input(1 - slot).and_then(|id| number(graph, id));
        let factor = other.map(|found| if divides { 1.0 / found } else { found });
        factor.is_some_and(|factor| (LEAST..1.0).contains(&factor.abs()))
    })?;
    // A number over a product is no scale of it.
    if divides && slot == 1 {
        return None;
    }
    let id = node.input(slot)?;
    let product = graph.nodes[..scale].iter().rposition(|one| one.output(0) == Some(id))?;
    let alone = graph.nodes.iter().filter(|one| one.inputs.contains(&Some(id))).count() == 1
        && !graph.outputs.contains(&id);
    let found = graph.nodes.get(product)?;
    let variable = |at: usize| found.input(at).is_some_and(|id| graph.constant(id).is_none());
    (alone && is_plain(found) && variable(0) && variable(1)).then_some(ScaledProduct {
        product,
        scale,
        slot,
    })
}

/// Returns whether a node is a product and nothing else.
fn is_plain(node: &Node) -> bool {
    match (node.domain.as_str(), node.op_type.as_str()) {
        ("", "MatMul") => true,
        ("ai.galatea", "FusedMatMul") => {
            let inputs = node.inputs.iter().flatten().count();
            node.operator::<FusedMatMul>()
                .is_some_and(|fused| inputs == 2 && fused.activation == FusedActivation::None)
        }
        _ => false,
    }
}

/// The one number that a constant is.
fn number(graph: &Graph, id: ValueId) -> Option<f32> {
    let tensor = graph.constant(id)?;
    let one = tensor.elements() == 1 && tensor.rank() <= 1 && tensor.dtype().is_float();
    let wide = one.then(|| converted(tensor, DataType::Fp32).ok()).flatten()?;
    wide.to_vec::<f32>().ok()?.first().copied()
}

impl ScaledProduct {
    /// Lets the node that scales come first, in the place of the product, and the product in its place.
    fn move_scale(&self, graph: &mut Graph) {
        let Self { product, scale, slot } = *self;
        let first = graph.nodes[product].input(0);
        let early = graph.fresh_value("scaled");
        let result = graph.nodes[scale].outputs.clone();
        let mut before = graph.nodes[scale].clone();
        let mut after = graph.nodes[product].clone();
        before.inputs[slot] = first;
        before.outputs = vec![Some(early)];
        after.inputs[0] = Some(early);
        after.outputs = result;
        graph.nodes[product] = before;
        graph.nodes[scale] = after;
    }
}

#[cfg(test)]
mod tests {
    use galatea_graph::{Attributes, Fact};
    use galatea_tensor::Tensor;

    use super::*;

    /// The product of two inputs, behind it a node with a number.
    fn graph(name: &str, value: Tensor, flipped: bool) -> Graph {
        let mut graph = Graph::new("scores");
        graph.opsets.insert(String::new(), 21);
        let [a, b, sums, y] = ["a", "b", "sums", "y"].map(|name| graph.value_named(name));
        for (id, shape) in [(a, [3, 4]), (b, [4, 5])] {
            graph.value_mut(id).declared = Some(Fact::fixed(DataType::Fp32, &shape));
            graph.inputs.push(id);
        }
        let number = graph.add_constant("number", value);
        let none = Attributes::new();
        let read = vec![Some(a), Some(b)];
        let given = vec![Some(sums)];
        graph.add_node("", "MatMul", "", &none, read, given).unwrap();
        let mut read = vec![Some(sums), Some(number)];
        if flipped {
            read.reverse();
        }
        graph.add_node("", name, "", &none, read, vec![Some(y)]).unwrap();
        graph.outputs.push(y);
        graph
    }

    fn order(graph: &Graph) -> Vec<&str> {
        graph.nodes.iter().map(|node| node.op_type.as_str()).collect()
    }

    #[test]
    fn numbers_that_scale_back_come_first_and_results_stay() {
        for (name, value, flipped) in
            [("Mul", 0.125, false), ("Mul", -0.25, true), ("Div", 8.0, false)]
        {
            let before = graph(name, Tensor::scalar::<f32>(value), flipped);
            let mut after = before.clone();
            move_scales(&mut after);
            assert_eq!(order(&after), [name, "MatMul"]);
            let made = |shape: [usize; 2]| {
                let all = (0..shape[0] * shape[1]).map(|at| at as f32 - 6.0).collect();
                Tensor::from_vec(&shape, all).unwrap()
            };
            let inputs = [made([3, 4]), made([4, 5])];
            let run = |graph: &Graph| galatea_graph::evaluate::run(graph, &inputs).unwrap();
            assert_eq!(run(&after), run(&before), "{name} {value}");
        }
    }

    #[test]
    fn what_scales_nothing_back_stays() {
        let number = |value: f32| Tensor::scalar(value);
        for (name, value, flipped) in [
            ("Mul", number(2.0), false),
            ("Mul", number(1e-6), false),
            ("Div", number(0.5), false),
            ("Div", number(8.0), true),
            ("Add", number(0.5), false),
            ("Mul", Tensor::from_vec(&[1, 1, 1], vec![0.5_f32]).unwrap(), false),
            ("Mul", Tensor::vector(vec![0.5_f32; 5]), false),
        ] {
            let mut graph = graph(name, value, flipped);
            move_scales(&mut graph);
            assert_eq!(order(&graph), ["MatMul", name]);
        }
        let mut graph = graph("Mul", number(0.5), false);
        let sums = graph.nodes[0].output(0).unwrap();
        graph.outputs.push(sums);
        move_scales(&mut graph);
        assert_eq!(order(&graph), ["MatMul", "Mul"]);
    }
}
