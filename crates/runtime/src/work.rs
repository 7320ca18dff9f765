//! Least work of a node: arithmetic, and bytes that it reads and writes.

use galatea_graph::ops::convolution::{ConvChain, FusedConv};
use galatea_graph::ops::fused::{BlockGather, BlockMatMul, FusedAttention, PagedAttention};
use galatea_graph::ops::transformer;
use galatea_graph::{DataMovement, Fact, Node, ValueId};

/// Arithmetic of a computation, and bytes that it cannot do without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArithmeticWork {
    /// Multiplications and additions.
    pub operations: u64,
    /// Bytes that are read and written, each once.
    pub bytes: u64,
}

impl ArithmeticWork {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            operations: self.operations.saturating_add(other.operations),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }
}

/// The work of a node, operand by operand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeWork {
    /// Multiplications and additions: two for each term of a product, at least one for each element
    /// where elements are computed, none where they are only moved.
    pub operations: u64,
    /// Bytes read of each input: what is read, once; a value that is listed twice counts where it is
    /// listed first.
    pub reads: Vec<u64>,
    /// Bytes written of each output.
    pub writes: Vec<u64>,
    /// Bytes of weights that the operator itself holds, as they are stored.
    pub weights: u64,
    /// True if part of the work depends on elements of inputs that are not known; that part is left out.
    pub open: bool,
}

/// Lookup of what is known about values.
pub type KnownFacts<'a> = dyn Fn(ValueId) -> Option<&'a Fact> + 'a;

impl NodeWork {
    /// The work of a node with all shapes known.
    #[must_use]
    pub fn of<'a>(node: &Node, known: &KnownFacts<'a>) -> Self {
        let bytes = |slot: &Option<ValueId>| slot.and_then(known).map_or(0, size_bytes);
        let mut work = Self {
            reads: node.inputs.iter().map(bytes).collect(),
            writes: node.outputs.iter().map(bytes).collect(),
            ..Self::default()
        };
        for (at, input) in node.inputs.iter().enumerate() {
            if input.is_some() && node.inputs[..at].contains(input) {
                work.reads[at] = 0;
            }
        }
        if let Some(paged) = node.operator::<PagedAttention>() {
            work.paged(node, paged, known);
            return work;
        }
        work.weights = held_bytes(node, known);
        let traits = node.traits();
        let written = sum(&work.writes);
        if traits.movement == DataMovement::MovesPart
            && let Some(first) = work.reads.first_mut()
        {
            *first = written.min(*first);
        }
        work.operations = match product_terms(node, known) {
            ProductTerms::Terms(terms) => terms.saturating_mul(2),
            ProductTerms::Unknown => 0,
            ProductTerms::NoProduct if traits.movement != DataMovement::Computes => 0,
            ProductTerms::NoProduct => {
                let all = node.inputs.iter().chain(&node.outputs).flatten();
                all.filter_map(|&id| known(id)).map(elements).max().unwrap_or(0)
            }
        };
        work
    }

    /// All of it.
    #[must_use]
    pub fn total(&self) -> ArithmeticWork {
        let bytes = sum(&self.reads).saturating_add(sum(&self.writes));
        ArithmeticWork { operations: self.operations, bytes: bytes.saturating_add(self.weights) }
    }

    /// Adds the work of paged attention. Of the caches, only positions that rows see and those that are written
    /// count.
    fn paged<'a>(&mut self, node: &Node, paged: &PagedAttention, known: &KnownFacts<'a>) {
        let fact = |slot: usize| node.input(slot).and_then(known);
        let numbers = |slot: usize| fact(slot)?.value.as_ref()?.to_i64_vec().ok();
        let width = |slot: usize, axis: usize| -> u64 {
            let shape = fact(slot).and_then(Fact::known_shape).unwrap_or_default();
            shape.get(axis).map_or(0, |&len| len as u64)
        };
        let element = |slot: usize| {
            fact(slot).and_then(|fact| fact.dtype.size_bytes()).map_or(0, |bytes| bytes as u64)
        };
        let heads = paged.kv_num_heads as u64;
        let key = width(3, 2);
        let value = width(4, 3);
        // Of one position: its key, its value, and their scales where there are any.
        let each = [
            (3, 1, heads * key * element(3)),
            (4, 2, heads * value * element(4)),
            (8, 3, heads * element(8)),
            (9, 4, heads * element(9)),
        ];
        let mut seen = 0;
        let mut written = 0;
        let mut met = 0;
        self.open = true;
        if let (Some(starts), Some(lengths)) = (numbers(5), numbers(6)) {
            self.open = false;
            for (pair, &length) in starts.windows(2).zip(&lengths) {
                let rows = count(pair[1].saturating_sub(pair[0]));
                let (sum, most) = seen_by(count(length), rows, paged.window as u64);
                (seen, written, met) = (seen + most, written + rows, met + sum);
            }
        }
        for (input, output, bytes) in each {
            if let Some(read) = self.reads.get_mut(input) {
                *read = bytes * seen;
            }
            if let Some(write) = self.writes.get_mut(output) {
                *write = bytes * written;
            }
        }
        // The numbers of blocks are read as far as there are positions.
        let block = width(3, 3).max(1);
        if let Some(read) = self.reads.get_mut(7) {
            *read = (*read).min(8 * seen.div_ceil(block));
        }
        self.operations = 2 * met * paged.num_heads as u64 * (key + value);
    }
}

/// Returns the number of positions that the last `rows` of `length` positions see in total, and the number that
/// at least one of them sees. A window of 0 is all.
fn seen_by(length: u64, rows: u64, window: u64) -> (u64, u64) {
    let window = if window == 0 { length } else { window };
    let before = length.saturating_sub(rows);
    let sum = (before..length).map(|position| (position + 1).min(window)).sum();
    (sum, (rows + window).saturating_sub(1).min(length).max(rows.min(length)))
}

fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// Bytes together; sizes of a damaged model may be beyond any number.
fn sum(bytes: &[u64]) -> u64 {
    bytes.iter().fold(0, |sum, bytes| sum.saturating_add(*bytes))
}

fn elements(fact: &Fact) -> u64 {
    fact.known_shape().map_or(0, |shape| size(&shape) as u64)
}

fn size_bytes(fact: &Fact) -> u64 {
    elements(fact).saturating_mul(fact.dtype.size_bytes().unwrap_or(0) as u64)
}

/// Bytes of weights that a node's operator holds and reads.
fn held_bytes<'a>(node: &Node, known: &KnownFacts<'a>) -> u64 {
    if let Some(product) = node.operator::<BlockMatMul>() {
        return product.weights().iter().map(|matrix| matrix.size_bytes() as u64).sum();
    }
    let Some(table) = node.operator::<BlockGather>() else { return 0 };
    let rows = node.input(0).and_then(known).map_or(0, elements);
    let all = table.weights().rows().max(1);
    let bytes = table.weights().size_bytes();
    (bytes / all) as u64 * rows.min(all as u64)
}

/// The shape of an operand, where it is known.
type OperandShape = Option<Vec<usize>>;

/// Multiplications and additions of products, convolutions, attention and recurrent layers with all
/// shapes known, two for each term; 0 for what is none of these.
#[must_use]
pub fn product_operations(node: &Node, facts: &[Option<Fact>]) -> u64 {
    match product_terms(node, &|id| facts.get(id.index())?.as_ref()) {
        ProductTerms::Terms(terms) => terms.saturating_mul(2),
        ProductTerms::Unknown | ProductTerms::NoProduct => 0,
    }
}

/// Terms of a product.
enum ProductTerms {
    Terms(u64),
    /// It is one, but its terms cannot be told.
    Unknown,
    NoProduct,
}

fn product_terms<'a>(node: &Node, known: &KnownFacts<'a>) -> ProductTerms {
    let row = PRODUCTS.iter().find(|(names, _)| names.contains(&node.op_type.as_str()));
    let Some((_, terms)) = row else { return ProductTerms::NoProduct };
    let shapes = |slots: &[Option<ValueId>]| -> Vec<OperandShape> {
        slots.iter().map(|slot| slot.and_then(known).and_then(Fact::known_shape)).collect()
    };
    let inputs = shapes(&node.inputs);
    let outputs = shapes(&node.outputs);
    terms(node, &inputs, &outputs)
        .map_or(ProductTerms::Unknown, |terms| ProductTerms::Terms(terms as u64))
}

/// Terms of a node from the shapes of its inputs and of its outputs.
type NodeTerms = fn(&Node, &[OperandShape], &[OperandShape]) -> Option<usize>;

/// Counting rules of operators' terms.
const PRODUCTS: &[(&[&str], NodeTerms)] = &[
    (
        &[
            "MatMul",
            "MatMulInteger",
            "MatMulIntegerToFloat",
            "DynamicQuantizeMatMul",
            "QLinearMatMul",
            "MatMulNBits",
        ],
        |_, inputs, outputs| Some(size(first(outputs)?).saturating_mul(*first(inputs)?.last()?)),
    ),
    (&["FusedMatMul", "TransposeMatMul"], |_, inputs, outputs| {
        turned(first(inputs)?, first(outputs)?)
    }),
    (&["BlockMatMul"], |node, inputs, _| {
        let rows = node.operator::<BlockMatMul>()?.weights().iter().map(|matrix| matrix.rows());
        Some(size(first(inputs)?).saturating_mul(rows.sum()))
    }),
    (&["Gemm", "FusedGemm", "QGemm"], |_, inputs, outputs| {
        Some(size(first(inputs)?).saturating_mul(*first(outputs)?.last()?))
    }),
    (
        &["Conv", "FusedConv", "ConvNhwc", "ConvInteger", "NhwcConv", "NhwcFusedConv"],
        |_, inputs, outputs| window(inputs.get(1)?, first(outputs)?),
    ),
    (&["ConvChain"], |node, inputs, outputs| {
        let convs = &node.operator::<ConvChain>()?.convs;
        let mut image = first(inputs)?.to_vec();
        let mut terms = 0;
        for (index, FusedConv { conv, .. }) in convs.iter().enumerate() {
            let weights = inputs.get(ConvChain::weights(index))?;
            let [out, _, kernel @ ..] = weights.as_deref()? else { return None };
            let spatial = conv.geometry(image.get(1..image.len() - 1)?, kernel).ok()?.output;
            image = [&first(outputs)?[..1], &spatial[..], &[*out]].concat();
            terms = window(weights, &image)?.saturating_add(terms);
        }
        Some(terms)
    }),
    (&["QLinearConv", "QLinearConvAdd"], |_, inputs, outputs| {
        window(inputs.get(3)?, first(outputs)?)
    }),
    (&["ConvTranspose"], |_, inputs, _| {
        let [Some(x), Some(w)] = inputs.get(..2)? else { return None };
        Some(size(x).saturating_mul(size(w.get(1..)?)))
    }),
    (&["Attention"], |node, inputs, outputs| {
        let [Some(q), Some(k)] = inputs.get(..2)? else { return None };
        let Some(attention) = node.operator::<FusedAttention>() else {
            // ONNX's own has keys behind the past ones, heads apart or side by side.
            node.operator::<transformer::Attention>()?;
            let past = inputs.get(4).and_then(Option::as_ref).and_then(|past| past.get(2));
            let own = *k.len().checked_sub(2).and_then(|axis| k.get(axis))?;
            let keys = own.saturating_add(*past.unwrap_or(&0));
            return Some(size(q).saturating_add(size(first(outputs)?)).saturating_mul(keys));
        };
        // Every query meets every key twice: for the score and for the sum of values.
        let values = size(q).saturating_add(size(first(outputs)?));
        Some(values.saturating_mul(*k.get(attention.k_perm[2])?))
    }),
    (&["MultiHeadAttention", "GroupQueryAttention"], |_, inputs, outputs| {
        // Keys are those that leave with the past, or those that come.
        let past = outputs.get(1).and_then(Option::as_ref).and_then(|keys| keys.get(2));
        let own = inputs.get(1).and_then(Option::as_ref).and_then(|keys| keys.get(1));
        Some(size(first(outputs)?).saturating_mul(2).saturating_mul(*past.or(own)?))
    }),
    (&["LSTM", "GRU", "RNN"], |_, inputs, _| {
        let [Some(x), Some(w), Some(r)] = inputs.get(..3)? else { return None };
        Some(size(x.get(..2)?).saturating_mul(size(w).saturating_add(size(r))))
    }),
];

fn first(shapes: &[OperandShape]) -> Option<&[usize]> {
    shapes.first()?.as_deref()
}

fn size(shape: &[usize]) -> usize {
    shape.iter().copied().fold(1, usize::saturating_mul)
}

/// Terms of a product whose first operand may be turned: its matrices have rows of the result and terms of a
/// sum, in either order.
fn turned(a: &[usize], out: &[usize]) -> Option<usize> {
    let terms = match (a, out) {
        ([.., down, across], [.., rows, _]) if across == rows && down != rows => *down,
        ([.., across], _) => *across,
        _ => return None,
    };
    Some(size(out).saturating_mul(terms))
}

/// Terms of a convolution: each element of the result is a sum over a window.
fn window(weights: &OperandShape, output: &[usize]) -> Option<usize> {
    Some(size(output).saturating_mul(size(weights.as_ref()?.get(1..)?)))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use galatea_graph::{AttributeValue, Attributes, Graph};
    use galatea_tensor::{DataType, Tensor};

    use super::*;

    /// A node of FP32 values with what is known of them.
    fn node(
        domain: &str,
        op: &str,
        attributes: &Attributes,
        operands: [&[&[usize]]; 2],
    ) -> (Graph, HashMap<ValueId, Fact>) {
        let mut graph = Graph::new("test");
        graph.opsets.insert(domain.to_owned(), if domain.is_empty() { 17 } else { 1 });
        let mut facts = HashMap::new();
        let [inputs, outputs] = operands.map(|shapes| {
            let add = |shape: &&[usize]| {
                let id = graph.value_named(&format!("v{}", facts.len()));
                facts.insert(id, Fact::fixed(DataType::Fp32, shape));
                Some(id)
            };
            shapes.iter().map(add).collect::<Vec<_>>()
        });
        graph.add_node(domain, op, "n", attributes, inputs, outputs).unwrap();
        (graph, facts)
    }

    fn work(op: &str, inputs: &[&[usize]], output: &[usize]) -> NodeWork {
        let (graph, facts) = node("", op, &Attributes::new(), [inputs, &[output]]);
        NodeWork::of(&graph.nodes[0], &|id| facts.get(&id))
    }

    #[test]
    fn products_and_convolutions_have_two_operations_a_term() {
        let operations =
            |op, inputs: &[&[usize]], output: &[usize]| work(op, inputs, output).operations;
        assert_eq!(operations("MatMul", &[&[4, 5, 6], &[6, 7]], &[4, 5, 7]), 2 * 4 * 5 * 6 * 7);
        assert_eq!(operations("Gemm", &[&[5, 6], &[6, 7], &[7]], &[5, 7]), 2 * 5 * 6 * 7);
        let conv = operations("Conv", &[&[1, 4, 9, 9], &[8, 4, 3, 3]], &[1, 8, 7, 7]);
        assert_eq!(conv, 2 * 8 * 49 * 36);
        let turned = Attributes::from([("transA".to_owned(), AttributeValue::Int(1))]);
        let operands: [&[&[usize]]; 2] = [&[&[6, 5], &[6, 7]], &[&[5, 7]]];
        let (graph, facts) = node("com.microsoft", "TransposeMatMul", &turned, operands);
        let work = NodeWork::of(&graph.nodes[0], &|id| facts.get(&id));
        assert_eq!(work.operations, 2 * 5 * 6 * 7);
    }

    #[test]
    fn other_operators_compute_an_element_or_move_it() {
        let relu = work("Relu", &[&[5, 6]], &[5, 6]);
        assert_eq!(relu.total(), ArithmeticWork { operations: 30, bytes: 240 });
        let moved = work("Transpose", &[&[5, 6]], &[6, 5]);
        assert_eq!(moved.total(), ArithmeticWork { operations: 0, bytes: 240 });
    }

    #[test]
    fn what_is_not_read_and_what_is_listed_twice_does_not_count() {
        let gather = work("Gather", &[&[1000, 8], &[3]], &[3, 8]);
        assert_eq!((gather.reads[0], gather.writes[0]), (96, 96));
        let (mut graph, facts) = node("", "Mul", &Attributes::new(), [&[&[4], &[4]], &[&[4]]]);
        graph.nodes[0].inputs[1] = graph.nodes[0].inputs[0];
        let square = NodeWork::of(&graph.nodes[0], &|id| facts.get(&id));
        assert_eq!(square.reads, [16, 0]);
    }

    /// A step of one sequence: 2 heads of keys of 4 numbers, blocks of 8 positions.
    fn paged(starts: Option<&[i64]>, lengths: &[i64], window: i64) -> NodeWork {
        let mut attributes = Attributes::new();
        for (name, value) in [("num_heads", 4), ("kv_num_heads", 2), ("window", window)] {
            attributes.insert(name.to_owned(), AttributeValue::Int(value));
        }
        let rows = 3;
        let inputs: [&[usize]; 8] = [
            &[rows, 16],
            &[rows, 8],
            &[rows, 8],
            &[100, 2, 4, 8],
            &[100, 2, 8, 4],
            &[2],
            &[1],
            &[1, 100],
        ];
        let outputs: [&[usize]; 3] = [&[rows, 16], &[100, 2, 4, 8], &[100, 2, 8, 4]];
        let op = "PagedAttention";
        let (graph, mut facts) = node("ai.galatea", op, &attributes, [&inputs, &outputs]);
        let node = &graph.nodes[0];
        for (slot, numbers) in [(5, starts), (6, Some(lengths))] {
            let Some(numbers) = numbers else { continue };
            let value = Tensor::from_vec(&[numbers.len()], numbers.to_vec()).unwrap();
            facts.insert(node.input(slot).unwrap(), Fact::constant(value));
        }
        NodeWork::of(node, &|id| facts.get(&id))
    }

    #[test]
    fn of_paged_caches_the_positions_count_that_rows_see() {
        let all = paged(Some(&[0, 3]), &[20], 0);
        // 18 + 19 + 20 positions meet 4 heads, for scores and for sums of values.
        assert_eq!(all.operations, 2 * (18 + 19 + 20) * 4 * (4 + 4));
        assert_eq!((all.reads[3], all.writes[1]), (20 * 2 * 4 * 4, 3 * 2 * 4 * 4));
        assert!(!all.open);
        let near = paged(Some(&[0, 3]), &[20], 5);
        assert_eq!(near.operations, 2 * (3 * 5) * 4 * (4 + 4));
        assert_eq!(near.reads[3], 7 * 2 * 4 * 4);
    }

    #[test]
    fn what_depends_on_elements_that_are_not_known_is_left_out() {
        let open = paged(None, &[20], 0);
        assert!(open.open);
        assert_eq!((open.operations, open.reads[3]), (0, 0));
    }
}
