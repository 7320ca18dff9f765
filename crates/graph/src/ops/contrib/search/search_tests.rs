use galatea_tensor::Tensor;

use crate::attribute::{AttributeValue, Attributes, SubgraphAttribute};
use crate::datum::Datum;
use crate::fact::{Dim, Fact};
use crate::graph::Graph;
use crate::ops::testing::{attributes, int, ints, parse, tensor};
use galatea_tensor::DataType;

const EMBEDDINGS: [f32; 14] =
    [-0.8, -1.32, -0.25, 0.42, 1.14, 0.11, -0.55, -0.78, 0.75, 1.63, 0.27, -1.23, -0.96, 1.6];
const SCORES: [f32; 14] =
    [0.24, -2.08, -0.1, -1.4, -0.76, -0.59, -0.86, 0.66, -0.08, -0.71, 0.49, 1.0, -1.97, -0.31];

/// A decoder of seven words: the scores are products with a word's numbers and the sum of those of all words that the
/// mask lets through, to which a tenth of the position is added.
fn decoder() -> Graph {
    let mut graph = Graph::new("decoder");
    graph.opsets.insert(String::new(), 17);
    let fact = |dtype, lengths: &[Option<usize>]| {
        let dims = lengths.iter().map(|one| one.map_or(Dim::Unknown, Dim::Known));
        Some(Fact::new(dtype, dims.collect()))
    };
    let pair = [None, None];
    for (name, declared) in [
        ("ids", fact(DataType::Int32, &pair)),
        ("positions", fact(DataType::Int32, &pair)),
        ("mask", fact(DataType::Int32, &pair)),
        ("past", fact(DataType::Fp32, &[Some(2), None, Some(1), None, Some(2)])),
    ] {
        let id = graph.value_named(name);
        graph.value_mut(id).declared = declared;
        graph.inputs.push(id);
    }
    let vector = |numbers: &[i64]| Tensor::vector(numbers.to_vec());
    for (name, value) in [
        ("words", tensor(&[7, 2], &EMBEDDINGS)),
        ("scores", tensor(&[2, 7], &SCORES)),
        ("tenth", Tensor::scalar(0.1_f32)),
        ("first", Tensor::scalar(0_i64)),
        ("0", vector(&[0])),
        ("1", vector(&[1])),
        ("2", vector(&[2])),
        ("1,3", vector(&[1, 3])),
    ] {
        let id = graph.value_named(name);
        graph.value_mut(id).initializer = Some(value);
    }
    let axis = |axis: i64| attributes([("axis", int(axis))]);
    let float = attributes([("to", int(1))]);
    let none = attributes([]);
    for (operator, list, inputs, output) in [
        ("Gather", &none, &["words", "ids"][..], "word"),
        ("Cast", &float, &["positions"], "place"),
        ("Unsqueeze", &none, &["place", "2"], "places"),
        ("Mul", &none, &["places", "tenth"], "shift"),
        ("Add", &none, &["word", "shift"], "own"),
        ("Unsqueeze", &none, &["own", "1"], "heads"),
        ("Unsqueeze", &none, &["heads", "0"], "key"),
        ("Concat", &axis(0), &["key", "key"], "both"),
        ("Concat", &axis(3), &["past", "both"], "present"),
        ("Gather", &axis(0), &["present", "first"], "keys"),
        ("Cast", &float, &["mask"], "counts"),
        ("Unsqueeze", &none, &["counts", "1,3"], "seen"),
        ("Mul", &none, &["keys", "seen"], "visible"),
        ("ReduceSum", &attributes([("keepdims", int(0))]), &["visible", "2"], "sum"),
        ("Add", &none, &["own", "sum"], "all"),
        ("MatMul", &none, &["all", "scores"], "logits"),
    ] {
        let inputs = inputs.iter().map(|name| Some(graph.value_named(name))).collect();
        let output = vec![Some(graph.value_named(output))];
        graph.add_node("", operator, operator, list, inputs, output).unwrap();
    }
    graph.outputs = vec![graph.value_named("logits"), graph.value_named("present")];
    graph
}

fn search(name: &str, more: &[(&str, AttributeValue)], inputs: Vec<Option<Tensor>>) -> Vec<Tensor> {
    let subgraph = SubgraphAttribute { graph: decoder(), captured: 0 };
    let mut list: Attributes = attributes([
        ("decoder", AttributeValue::Graph(Box::new(subgraph))),
        ("pad_token_id", int(0)),
    ]);
    list.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    let operator = parse(name, 1, &list, inputs.len(), 1).unwrap();
    let inputs = inputs.into_iter().map(|tensor| tensor.map(Datum::Tensor)).collect();
    let found = operator.evaluate(inputs).unwrap();
    found.into_iter().map(|datum| datum.into_tensor().unwrap()).collect()
}

fn prompts() -> Option<Tensor> {
    Some(tensor(&[2, 3], &[0_i32, 0, 3, 2, 4, 5]))
}

fn one(value: i32) -> Option<Tensor> {
    Some(Tensor::vector(vec![value]))
}

fn factor(value: f32) -> Option<Tensor> {
    Some(Tensor::vector(vec![value]))
}

// Expected values are those of ONNX Runtime.
#[test]
fn the_most_probable_texts_are_found() {
    let name = "com.microsoft:BeamSearch";
    let inputs = vec![prompts(), one(9), None, one(3), one(2)];
    let found = search(name, &[("eos_token_id", int(6))], inputs);
    let texts = [
        [0_i32, 0, 3, 5, 5, 5, 5, 5, 5],
        [0, 0, 3, 1, 3, 5, 5, 5, 5],
        [2, 4, 5, 0, 5, 5, 5, 5, 5],
        [2, 4, 5, 0, 5, 5, 5, 2, 0],
    ];
    assert_eq!(found[0], tensor(&[2, 2, 9], texts.as_flattened()));
    let scores = [-0.052_743_975, -0.439_843_77, -0.268_155_28, -0.405_23];
    let close = |found: &[f32], expected: &[f32]| {
        let pairs = found.iter().zip(expected);
        pairs.for_each(|(found, expected)| assert!((found - expected).abs() < 1e-5, "{found}"));
    };
    close(&found[1].to_vec::<f32>().unwrap(), &scores);
    assert_eq!(found[2].shape(), [6, 2, 3, 7]);
    let steps = [-5.436_854, -1.730_454_4, -2.925_654_4, -3.367_654_3, -4.867_254, -0.421_054_36];
    close(&found[2].to_vec::<f32>().unwrap(), &steps);
    let first = tensor(&[2, 7], &[1_i32, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 0, 0]);
    let inputs = vec![
        prompts(),
        one(9),
        one(6),
        one(3),
        one(2),
        factor(2.0),
        factor(1.3),
        None,
        Some(first),
    ];
    let more =
        [("eos_token_id", int(5)), ("no_repeat_ngram_size", int(2)), ("early_stopping", int(1))];
    let found = search(name, &more, inputs);
    let texts = [
        [0_i32, 0, 3, 1, 1, 4, 4, 0, 4],
        [0, 0, 3, 1, 1, 4, 0, 1, 0],
        [2, 4, 5, 0, 2, 0, 0, 0, 0],
        [2, 4, 5, 2, 0, 0, 0, 0, 0],
    ];
    assert_eq!(found[0], tensor(&[2, 2, 9], texts.as_flattened()));
}

#[test]
fn the_greatest_scores_are_followed_by_all_rules() {
    let name = "com.microsoft:GreedySearch";
    let found = search(name, &[("eos_token_id", int(6))], vec![prompts(), one(9)]);
    let texts = [[0_i32, 0, 3, 5, 5, 5, 5, 5, 5], [2, 4, 5, 0, 5, 5, 5, 5, 5]];
    assert_eq!(found[0], tensor(&[2, 9], texts.as_flattened()));
    let words = Tensor::vector(vec![1_i32, 1, 1, 0, 1, 1, 1]);
    let mask = tensor(&[2, 3], &[0_i32, 1, 1, 1, 1, 1]);
    let rules = || {
        vec![prompts(), one(9), one(8), factor(1.5), Some(words.clone()), None, Some(mask.clone())]
    };
    for (end, texts) in [
        (6, [[0_i32, 0, 3, 5, 5, 2, 5, 1, 5], [2, 4, 5, 0, 5, 5, 2, 0, 2]]),
        (2, [[0, 0, 3, 5, 5, 6, 1, 5, 0], [2, 4, 5, 0, 5, 5, 6, 0, 0]]),
    ] {
        let more = [("eos_token_id", int(end)), ("no_repeat_ngram_size", int(2))];
        let found = search(name, &more, rules());
        assert_eq!(found[0], tensor(&[2, 9], texts.as_flattened()), "{end}");
    }
}

#[test]
fn tokens_are_drawn_by_the_seed() {
    let float = AttributeValue::Float;
    let cases = [
        (
            vec![("top_p", float(0.9)), ("temperature", float(3.0))],
            [[0_i32, 0, 3, 0, 0, 0, 0, 0, 0], [2, 4, 5, 0, 5, 5, 5, 2, 0]],
        ),
        (
            vec![("top_p", float(0.5)), ("custom", int(1))],
            [[0, 0, 3, 5, 5, 5, 5, 5, 5], [2, 4, 5, 0, 5, 5, 5, 5, 5]],
        ),
    ];
    for (mut more, texts) in cases {
        more.push(("eos_token_id", int(6)));
        let seed = vec![prompts(), one(9), None, None, None, None, None, None, one(7)];
        let found = search("com.microsoft:Sampling", &more, seed);
        assert_eq!(found[0], tensor(&[2, 9], texts.as_flattened()));
        assert_eq!(found[1].shape(), [2, 7]);
    }
}

#[test]
fn what_no_search_can_do_is_refused() {
    let name = "com.microsoft:GreedySearch";
    let graph = |captured| {
        let subgraph = SubgraphAttribute { graph: decoder(), captured };
        ("decoder", AttributeValue::Graph(Box::new(subgraph)))
    };
    let list = |model: i64| {
        let tokens =
            [("pad_token_id", int(0)), ("eos_token_id", int(6)), ("model_type", int(model))];
        let mut list = attributes(tokens);
        list.extend([graph(0)].map(|(name, value)| (name.to_owned(), value)));
        list
    };
    let refused = parse(name, 1, &list(1), 2, 1).map(drop).unwrap_err();
    assert!(refused.contains("'model_type' is 1"), "{refused}");
    let mut without = list(0);
    without.remove("decoder");
    assert!(
        parse(name, 1, &without, 2, 1).map(drop).unwrap_err().contains("no subgraph 'decoder'")
    );
    let operator = parse(name, 1, &list(0), 2, 1).unwrap();
    for (length, text) in [(3, "max_length is 3"), (5000, "max_length is 5000"), (-1, "max_length")]
    {
        let inputs = vec![prompts().map(Datum::Tensor), one(length).map(Datum::Tensor)];
        let error = operator.evaluate(inputs).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
    let ragged = attributes([("pad_token_id", ints(&[0])), ("eos_token_id", int(6))]);
    assert!(parse(name, 1, &ragged, 2, 1).is_err());
}
