//! Predicted times of nodes, from sizes alone.

use galatea_graph::ops::convolution::{ConvChain, FusedConv};
use galatea_graph::ops::fused::Attention;
use galatea_graph::{Dim, Fact, Node};

/// Elements of a fact; lengths that are not known count as 1.
#[allow(clippy::cast_precision_loss, reason = "an estimate")]
fn elements(fact: &Fact) -> f64 {
    fact.shape.iter().flatten().map(|dim| Dim::known(dim).unwrap_or(1) as f64).product()
}

/// Multiplications and additions of a node, roughly: two per element of the output and element of
/// the second operand's column for products, ten per element for everything else.
pub(crate) fn operations(node: &Node, facts: &[Option<Fact>]) -> f64 {
    let fact = |id: Option<galatea_graph::ValueId>| id.and_then(|id| facts[id.index()].as_ref());
    let written: f64 = node.outputs.iter().filter_map(|&id| fact(id)).map(elements).sum();
    let weights = fact(node.input(1)).map_or(1.0, elements);
    let product = ["MatMul", "Gemm", "Conv", "LSTM", "GRU", "RNN"];
    if !product.iter().any(|name| node.op_type.contains(name)) {
        return 10.0 * written.max(1.0);
    }
    let columns = fact(node.input(1))
        .and_then(|fact| fact.shape.as_ref())
        .and_then(|shape| if node.op_type.contains("Conv") { shape.first() } else { shape.last() })
        .and_then(Dim::known)
        .unwrap_or(1);
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    let terms = weights / columns.max(1) as f64;
    2.0 * written.max(1.0) * terms.max(1.0)
}

/// The shape of an operand, where it is known.
type Shape = Option<Vec<usize>>;

/// Multiplications and additions of products, convolutions, attention and recurrent layers with all
/// shapes known, two for each term; 0 for what is none of these.
pub(crate) fn product_operations(node: &Node, facts: &[Option<Fact>]) -> u64 {
    let shape = |id: Option<galatea_graph::ValueId>| -> Shape {
        facts.get(id?.index())?.as_ref()?.known_shape()
    };
    let row = PRODUCTS.iter().find(|(names, _)| names.contains(&node.op_type.as_str()));
    let inputs: Vec<Shape> = (0..node.inputs.len()).map(|slot| shape(node.input(slot))).collect();
    let terms = row.and_then(|(_, terms)| terms(node, &inputs, &shape(node.output(0))?));
    terms.and_then(|terms| u64::try_from(terms.saturating_mul(2)).ok()).unwrap_or(0)
}

/// Terms of a node from the shapes of its inputs and of its first output.
type Terms = fn(&Node, &[Shape], &[usize]) -> Option<usize>;

/// How the terms of operators are counted.
const PRODUCTS: &[(&[&str], Terms)] = &[
    (
        &[
            "MatMul",
            "FusedMatMul",
            "MatMulInteger",
            "MatMulIntegerToFloat",
            "QLinearMatMul",
            "MatMulNBits",
        ],
        |_, inputs, output| Some(size(output) * *inputs.first()?.as_ref()?.last()?),
    ),
    (&["Gemm", "QGemm"], |_, inputs, output| {
        let a = inputs.first()?.as_ref()?;
        Some(output.last()? * size(a))
    }),
    (&["Conv", "FusedConv", "ConvNhwc", "ConvInteger"], |_, inputs, output| {
        window(inputs.get(1)?, output)
    }),
    (&["ConvChain"], |node, inputs, output| {
        let convs = &node.operator::<ConvChain>()?.convs;
        let mut image = inputs.first()?.clone()?;
        let mut terms = 0;
        for (index, FusedConv { conv, .. }) in convs.iter().enumerate() {
            let weights = inputs.get(ConvChain::weights(index))?;
            let [out, _, kernel @ ..] = weights.as_deref()? else { return None };
            let spatial = conv.geometry(image.get(1..image.len() - 1)?, kernel).ok()?.output;
            image = [&output[..1], &spatial[..], &[*out]].concat();
            terms += window(weights, &image)?;
        }
        Some(terms)
    }),
    (&["QLinearConv"], |_, inputs, output| window(inputs.get(3)?, output)),
    (&["ConvTranspose"], |_, inputs, _| {
        let [Some(x), Some(w)] = inputs.get(..2)? else { return None };
        Some(size(x) * size(w.get(1..)?))
    }),
    (&["Attention"], |node, inputs, output| {
        let attention = node.operator::<Attention>()?;
        let [Some(q), Some(k)] = inputs.get(..2)? else { return None };
        // Every query meets every key twice: for the score and for the sum of values.
        Some((size(q) + size(output)) * k.get(attention.k_perm[2])?)
    }),
    (&["LSTM", "GRU", "RNN"], |_, inputs, _| {
        let [Some(x), Some(w), Some(r)] = inputs.get(..3)? else { return None };
        Some(size(x.get(..2)?) * (size(w) + size(r)))
    }),
];

fn size(shape: &[usize]) -> usize {
    shape.iter().copied().fold(1, usize::saturating_mul)
}

/// Terms of a convolution: each element of the result is a sum over a window.
fn window(weights: &Shape, output: &[usize]) -> Option<usize> {
    Some(size(output) * size(weights.as_ref()?.get(1..)?))
}

#[cfg(test)]
mod tests {
    use galatea_graph::{Attributes, Graph};
    use galatea_tensor::DataType;

    use super::*;

    fn operations_of(op: &str, inputs: &[&[usize]], output: &[usize]) -> u64 {
        let mut graph = Graph::new("test");
        graph.opsets.insert(String::new(), 17);
        let mut facts = Vec::new();
        let mut add = |graph: &mut Graph, shape: &[usize]| {
            facts.push(Some(Fact::fixed(DataType::Fp32, shape)));
            graph.value_named(&format!("v{}", facts.len()))
        };
        let inputs: Vec<_> = inputs.iter().map(|shape| Some(add(&mut graph, shape))).collect();
        let output = add(&mut graph, output);
        let none = Attributes::new();
        graph.add_node(("", op), "n", &none, inputs, vec![Some(output)]).unwrap();
        product_operations(&graph.nodes[0], &facts)
    }

    #[test]
    fn products_and_convolutions_have_two_operations_a_term() {
        assert_eq!(operations_of("MatMul", &[&[4, 5, 6], &[6, 7]], &[4, 5, 7]), 2 * 4 * 5 * 6 * 7);
        assert_eq!(operations_of("Gemm", &[&[5, 6], &[6, 7], &[7]], &[5, 7]), 2 * 5 * 6 * 7);
        let conv = operations_of("Conv", &[&[1, 4, 9, 9], &[8, 4, 3, 3]], &[1, 8, 7, 7]);
        assert_eq!(conv, 2 * 8 * 49 * 36);
        assert_eq!(operations_of("Relu", &[&[5, 6]], &[5, 6]), 0);
    }
}
