//! Models that may be padded, and others that look alike.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use galatea_tensor::{DataType, Tensor};

use super::*;
use crate::{AttributeValue, Attributes, ONNX_DOMAIN, evaluate, infer, rewrite};

type Step<'a> = (&'a str, &'a [(&'a str, AttributeValue)], &'a [&'a str], &'a str);

fn tensor(shape: &[usize], seed: usize) -> Tensor {
    let value = |at: usize| ((at * 37 + seed * 11) % 23) as f32 / 10.0 - 1.1;
    Tensor::from_vec(shape, (0..shape.iter().product()).map(value).collect()).unwrap()
}

/// A graph over `ids` and `mask` `[batch, n]`, with a table of 8 rows of 4, matrices `w0` to `w2`, and constants
/// that are named by their value.
fn graph(steps: &[Step<'_>], outputs: &[&str]) -> Graph {
    let mut graph = Graph::new("padded");
    graph.opsets.insert(ONNX_DOMAIN.to_owned(), 18);
    for (name, dtype) in [("ids", DataType::Int64), ("mask", DataType::Int64)] {
        let id = graph.value_named(name);
        let dims = vec![Dim::symbol("batch"), Dim::symbol("n")];
        graph.value_mut(id).declared = Some(Fact::new(dtype, dims));
        graph.inputs.push(id);
    }
    for (operator, attributes, reads, gives) in steps {
        let reads = reads.iter().map(|name| {
            let id = graph.value_named(name);
            let constant = match (*name, name.parse::<f32>(), name.strip_prefix('i')) {
                ("table", ..) => Some(tensor(&[8, 4], 1)),
                ("w0", ..) => Some(tensor(&[4, 4], 2)),
                ("w1", ..) => Some(tensor(&[4, 4], 3)),
                ("w2", ..) => Some(tensor(&[4, 4], 4)),
                (_, Ok(number), _) => Some(Tensor::scalar(number)),
                (_, _, Some(all)) if all.starts_with(|c: char| c.is_ascii_digit() || c == '-') => {
                    Some(Tensor::vector(
                        all.split(',').map(|one| one.parse::<i64>().unwrap()).collect(),
                    ))
                }
                _ => None,
            };
            if constant.is_some() {
                graph.value_mut(id).initializer = constant;
            }
            Some(id)
        });
        let reads = reads.collect();
        let to = graph.value_named(gives);
        let own = attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let own: Attributes = own.collect();
        graph.add_node(ONNX_DOMAIN, operator, "", &own, reads, vec![Some(to)]).unwrap();
    }
    graph.outputs = outputs.iter().map(|name| graph.find_value(name).unwrap()).collect();
    graph
}

fn found(graph: &Graph) -> Result<GraphPadding, String> {
    let facts = infer::facts(graph, &HashMap::new()).unwrap();
    padding(graph, &facts, "n")
}

fn axis(axis: i64) -> [(&'static str, AttributeValue); 1] {
    [("axis", AttributeValue::Int(axis))]
}

fn perm(axes: &[i64]) -> [(&'static str, AttributeValue); 1] {
    [("perm", AttributeValue::Ints(axes.to_vec()))]
}

fn keep(keep: i64) -> [(&'static str, AttributeValue); 1] {
    [("keepdims", AttributeValue::Int(keep))]
}

/// One layer of attention whose mask is made of the input, and the mean over what is real.
fn encoder() -> Graph {
    let float = [("to", AttributeValue::Int(1))];
    let last = axis(-1);
    let swap = perm(&[0, 2, 1]);
    let sum = keep(0);
    let steps: &[Step<'_>] = &[
        ("Gather", &[], &["table", "ids"], "x"),
        ("MatMul", &[], &["x", "w0"], "q"),
        ("MatMul", &[], &["x", "w1"], "k"),
        ("MatMul", &[], &["x", "w2"], "v"),
        ("Transpose", &swap, &["k"], "kt"),
        ("MatMul", &[], &["q", "kt"], "scores"),
        ("Unsqueeze", &[], &["mask", "i1"], "mask3"),
        ("Cast", &float, &["mask3"], "seen"),
        ("Sub", &[], &["1", "seen"], "unseen"),
        ("Mul", &[], &["unseen", "-10000"], "bias"),
        ("Add", &[], &["scores", "bias"], "masked"),
        ("Softmax", &last, &["masked"], "shares"),
        ("MatMul", &[], &["shares", "v"], "y"),
        ("Unsqueeze", &[], &["mask", "i2"], "mask2"),
        ("Cast", &float, &["mask2"], "real"),
        ("Mul", &[], &["y", "real"], "kept"),
        ("ReduceSum", &sum, &["kept", "i1"], "sum"),
        ("ReduceSum", &sum, &["real", "i1"], "count"),
        ("Div", &[], &["sum", "count"], "mean"),
        ("Gather", &axis(1), &["y", "i0"], "first"),
    ];
    graph(steps, &["y", "mean", "first"])
}

fn integers(rows: &[&[i64]]) -> Tensor {
    Tensor::from_vec(&[rows.len(), rows[0].len()], rows.concat()).unwrap()
}

#[test]
fn an_encoder_with_a_mask_gives_the_same_behind_which_zeros_stand() {
    let mut graph = encoder();
    for level in [None, Some(rewrite::RewriteLevel::O1), Some(rewrite::RewriteLevel::O2)] {
        if let Some(level) = level {
            rewrite::optimise(&mut graph, level).unwrap();
            graph.sort().unwrap();
        }
        let padding = found(&graph).unwrap();
        assert_eq!(padding.inputs, [[1], [1]]);
        assert_eq!(padding.outputs, [vec![1], vec![], vec![]], "{level:?}");
        assert_eq!(padding.masks, [1]);
        let run = |ids: &[&[i64]], mask: &[&[i64]]| {
            evaluate::run(&graph, &[integers(ids), integers(mask)]).unwrap()
        };
        let short = run(&[&[3, 5, 1], &[2, 2, 7]], &[&[1, 1, 1], &[1, 1, 0]]);
        let long =
            run(&[&[3, 5, 1, 0, 0], &[2, 2, 7, 0, 0]], &[&[1, 1, 1, 0, 0], &[1, 1, 0, 0, 0]]);
        for (at, (short, long)) in short.iter().zip(&long).enumerate() {
            let front = match padding.outputs[at].as_slice() {
                [axis] => long.slice_axis(*axis, 0, 3, 1).unwrap(),
                _ => long.clone(),
            };
            let short = short.to_vec::<f32>().unwrap();
            let front = front.to_vec::<f32>().unwrap();
            assert_eq!(short.len(), front.len());
            for (a, b) in short.iter().zip(&front) {
                assert!((a - b).abs() < 1e-5, "{level:?}, output {at}: {short:?} {front:?}");
            }
        }
    }
}

#[test]
fn what_looks_at_positions_that_nothing_hides_is_refused_with_its_node() {
    let float = [("to", AttributeValue::Int(1))];
    let last = axis(-1);
    let swap = perm(&[0, 2, 1]);
    let mean = keep(0);
    let head: &[Step<'_>] = &[("Gather", &[], &["table", "ids"], "x")];
    let scores: &[Step<'_>] = &[
        ("Transpose", &swap, &["x"], "t"),
        ("MatMul", &[], &["x", "t"], "scores"),
        ("Softmax", &last, &["scores"], "shares"),
    ];
    // A mask that hides what it is 1 for: zeros behind would be seen.
    let wrong: &[Step<'_>] = &[
        ("Unsqueeze", &[], &["mask", "i1"], "mask3"),
        ("Cast", &float, &["mask3"], "hidden"),
        ("Mul", &[], &["hidden", "-10000"], "bias"),
        ("Transpose", &swap, &["x"], "t"),
        ("MatMul", &[], &["x", "t"], "scores"),
        ("Add", &[], &["scores", "bias"], "masked"),
        ("Softmax", &last, &["masked"], "shares"),
    ];
    let cases: [(&[Step<'_>], &str, &str); 6] = [
        (scores, "shares", "gets a share"),
        (wrong, "shares", "gets a share"),
        (&[("ReduceMean", &mean, &["x", "i1"], "y")], "y", "Reduce"),
        (&[("ReduceSum", &mean, &["x", "i1"], "y")], "y", "behind the length"),
        (&[("Gather", &axis(1), &["x", "i-1"], "y")], "y", "than the first"),
        (&[("CumSum", &[], &["x", "i1"], "y")], "y", "'CumSum' may put positions together"),
    ];
    for (steps, output, expected) in cases {
        let all: Vec<Step<'_>> = head.iter().chain(steps).copied().collect();
        let error = found(&graph(&all, &[output])).unwrap_err();
        assert!(error.contains(expected) || expected == "Reduce", "{error}");
    }
}

#[test]
fn a_length_that_an_output_tells_is_no_front_of_anything() {
    let steps: &[Step<'_>] = &[("Shape", &[], &["ids"], "n")];
    assert!(found(&graph(steps, &["n"])).is_err());
}
