//! Runs that are not as the model declares: one name for lengths that differ, replaced initializers, one element with
//! other axes.

use galatea_graph::{AttributeValue, Dim, Fact, Graph, SubgraphAttribute, ValueId};
use galatea_providers::by_name;
use galatea_runtime::{GraphSource, OptimiseLevel, Run, Session, SessionOptions};
use galatea_tensor::{DataType, Tensor};

const PROVIDERS: [&str; 2] = ["cpu", "reference"];
const LEVELS: [OptimiseLevel; 2] = [OptimiseLevel::O0, OptimiseLevel::O3];

fn empty() -> Graph {
    let mut graph = Graph::new("test");
    graph.opsets.insert(String::new(), 17);
    graph
}

fn input(graph: &mut Graph, name: &str, fact: Fact) -> ValueId {
    let id = graph.value_named(name);
    graph.value_mut(id).declared = Some(fact);
    graph.inputs.push(id);
    id
}

fn node(graph: &mut Graph, op_type: &str, inputs: &[ValueId], list: &[(&str, i64)]) -> ValueId {
    let output = graph.fresh_value(op_type);
    let int = |&(name, value): &(&str, i64)| (name.to_owned(), AttributeValue::Int(value));
    let inputs = inputs.iter().copied().map(Some).collect();
    let list = list.iter().map(int).collect();
    graph.add_node("", op_type, "", &list, inputs, vec![Some(output)]).unwrap();
    output
}

fn named(lengths: &[&str]) -> Fact {
    Fact::new(DataType::Fp32, lengths.iter().map(|name| Dim::symbol(name)).collect())
}

fn session(graph: &Graph, provider: &str, level: OptimiseLevel, with_source: bool) -> Session {
    let own = graph.clone();
    let source = match with_source {
        true => GraphSource::new(move || Ok(own.clone())),
        false => GraphSource::default(),
    };
    let options =
        SessionOptions { threads: 2, optimise: level, source, ..SessionOptions::default() };
    Session::new(graph.clone(), &[by_name(provider).unwrap()], &options).unwrap()
}

/// Runs the graph on every provider and level.
fn each(graph: &Graph, mut check: impl FnMut(&Session)) {
    for provider in PROVIDERS {
        for level in LEVELS {
            check(&session(graph, provider, level, true));
        }
    }
}

fn run(session: &Session, inputs: &[(&str, Tensor)]) -> Result<Tensor, String> {
    let outputs = session.run_tensors(Run::named(inputs)).map_err(|error| error.to_string());
    Ok(outputs?.remove(0))
}

fn row(values: &[f32]) -> Tensor {
    Tensor::from_slice(&[1, values.len()], values).unwrap()
}

#[test]
fn lengths_of_one_name_may_differ_between_inputs() {
    let mut graph = empty();
    let left = input(&mut graph, "left", named(&["b", "n"]));
    let right = input(&mut graph, "right", named(&["b", "n"]));
    let sum = node(&mut graph, "Add", &[left, right], &[]);
    let y = node(&mut graph, "Relu", &[sum], &[]);
    graph.outputs = vec![y];
    let tall = Tensor::from_slice(&[2, 2], &[1.0_f32, -5.0, 3.0, 4.0]).unwrap();
    each(&graph, |session| {
        let found = run(session, &[("left", tall.clone()), ("right", row(&[1.0, 2.0]))]);
        let expected = Tensor::from_slice(&[2, 2], &[2.0_f32, 0.0, 4.0, 6.0]).unwrap();
        assert_eq!(found.unwrap(), expected);
        // What is as declared still is, and what no operator takes is refused.
        let found = run(session, &[("left", tall.clone()), ("right", tall.clone())]).unwrap();
        assert_eq!(found.to_vec::<f32>().unwrap(), [2.0, 0.0, 6.0, 8.0]);
        let wrong = run(session, &[("left", tall.clone()), ("right", row(&[1.0, 2.0, 3.0]))]);
        assert!(wrong.is_err());
    });
    let plain = session(&graph, "cpu", OptimiseLevel::O3, false);
    let error = run(&plain, &[("left", tall), ("right", row(&[1.0, 2.0]))]).unwrap_err();
    assert!(error.contains("('b') has length 1, but 2 in input 'left'"), "{error}");
}

#[test]
fn lengths_of_one_name_may_differ_within_an_input() {
    let mut graph = empty();
    let x = input(&mut graph, "x", named(&["n", "n"]));
    let shape = node(&mut graph, "Shape", &[x], &[]);
    let first = graph.add_constant("c", Tensor::vector(vec![0_i64]));
    let rows = node(&mut graph, "Gather", &[shape, first], &[("axis", 0)]);
    let rest = graph.add_constant("c", Tensor::vector(vec![-1_i64]));
    let target = node(&mut graph, "Concat", &[rest, rows], &[("axis", 0)]);
    let y = node(&mut graph, "Reshape", &[x, target], &[]);
    graph.outputs = vec![y];
    let x = Tensor::from_slice(&[2, 3], &[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    each(&graph, |session| {
        let found = run(session, &[("x", x.clone())]).unwrap();
        assert_eq!(found.shape(), [3, 2], "a rule that trusts the name would keep the shape");
    });
}

#[test]
fn a_branch_that_is_not_taken_may_have_a_past_of_no_rows() {
    let mut graph = empty();
    let past = input(&mut graph, "past", named(&["b", "p"]));
    let x = input(&mut graph, "x", named(&["b", "s"]));
    let uses = input(&mut graph, "uses", Fact::fixed(DataType::Bool, &[1]));
    let branch = |joined: bool| {
        let mut inner = empty();
        let ids = ["past", "x"].map(|name| inner.value_named(name));
        let output = match joined {
            true => node(&mut inner, "Concat", &ids, &[("axis", 1)]),
            false => node(&mut inner, "Identity", &ids[1..], &[]),
        };
        inner.inputs = ids.to_vec();
        inner.outputs = vec![output];
        AttributeValue::Graph(Box::new(SubgraphAttribute { graph: inner, captured: 2 }))
    };
    let output = graph.fresh_value("y");
    let branches = [("then_branch", branch(true)), ("else_branch", branch(false))];
    let branches = branches.map(|(name, value)| (name.to_owned(), value)).into_iter().collect();
    let added = graph.add_node("", "If", "", &branches, vec![Some(uses)], vec![Some(output)]);
    added.unwrap();
    graph.outputs = vec![output];
    let _ = (past, x);
    let none = Tensor::zeros(DataType::Fp32, &[0, 0]).unwrap();
    let given = |past: Tensor, uses: bool| {
        vec![("past", past), ("x", row(&[1.0, 2.0])), ("uses", Tensor::vector(vec![uses]))]
    };
    each(&graph, |session| {
        assert_eq!(run(session, &given(none.clone(), false)).unwrap(), row(&[1.0, 2.0]));
        let joined = run(session, &given(row(&[7.0]), true)).unwrap();
        assert_eq!(joined, row(&[7.0, 1.0, 2.0]));
    });
}

#[test]
fn an_initializer_that_is_an_input_is_a_default() {
    let mut graph = empty();
    let x = input(&mut graph, "x", named(&["n", "m"]));
    let b = graph.value_named("b");
    graph.value_mut(b).initializer = Some(Tensor::vector(vec![1.0_f32, 2.0]));
    graph.value_mut(b).declared = Some(Fact::fixed(DataType::Fp32, &[2]));
    let fixed = graph.add_constant("fixed", Tensor::vector(vec![0.0_f32, 1.0]));
    graph.overridable = vec![b];
    let product = node(&mut graph, "Mul", &[b, b], &[]);
    let sum = node(&mut graph, "Add", &[x, product], &[]);
    let y = node(&mut graph, "Add", &[sum, fixed], &[]);
    graph.outputs = vec![y];
    each(&graph, |session| {
        assert_eq!(session.inputs().len(), 1, "a default need not be given");
        let x = ("x", row(&[0.0, 0.0]));
        assert_eq!(run(session, &[x.clone()]).unwrap(), row(&[1.0, 5.0]));
        let other = ("b", Tensor::vector(vec![3.0_f32, -1.0]));
        assert_eq!(run(session, &[x.clone(), other]).unwrap(), row(&[9.0, 2.0]));
        assert_eq!(run(session, &[x.clone()]).unwrap(), row(&[1.0, 5.0]));
        let wrong = ("b", Tensor::vector(vec![3.0_f32]));
        assert!(run(session, &[x.clone(), wrong]).unwrap_err().contains("length 1 instead of 2"));
        let unknown = (("fixed~1"), Tensor::vector(vec![3.0_f32, 1.0]));
        assert!(run(session, &[x, unknown]).unwrap_err().contains("no input 'fixed~1'"));
    });
}

#[test]
fn one_element_has_the_axes_that_are_declared() {
    let mut graph = empty();
    let x = input(&mut graph, "x", named(&["n", "m"]));
    let gain = input(&mut graph, "gain", Fact::fixed(DataType::Fp32, &[]));
    let bias = input(&mut graph, "bias", Fact::fixed(DataType::Fp32, &[1]));
    let product = node(&mut graph, "Mul", &[x, gain], &[]);
    let y = node(&mut graph, "Add", &[product, bias], &[]);
    graph.outputs = vec![y];
    let one = |shape: &[usize], value: f32| Tensor::from_slice(shape, &[value]).unwrap();
    each(&graph, |session| {
        for (gain, bias) in [(&[][..], &[1][..]), (&[1], &[]), (&[1, 1], &[1, 1])] {
            let inputs =
                [("x", row(&[1.0, 2.0])), ("gain", one(gain, 2.0)), ("bias", one(bias, 0.5))];
            assert_eq!(run(session, &inputs).unwrap(), row(&[2.5, 4.5]), "{gain:?} {bias:?}");
        }
        let two = Tensor::vector(vec![1.0_f32, 2.0]);
        let inputs = [("x", row(&[1.0])), ("gain", two), ("bias", one(&[], 0.0))];
        assert!(run(session, &inputs).unwrap_err().contains("1 axes instead of 0"));
    });
}

#[test]
fn rows_of_minus_infinity_have_no_softmax() {
    for op_type in ["Softmax", "LogSoftmax"] {
        for axis in [0, 1] {
            let mut graph = empty();
            let x = input(&mut graph, "x", named(&["n", "m"]));
            let y = node(&mut graph, op_type, &[x], &[("axis", axis)]);
            graph.outputs = vec![y];
            let mut values = [0.5_f32; 18];
            let hidden = |at: usize| if axis == 1 { at / 6 == 1 } else { at % 6 == 1 };
            (0..18).filter(|&at| hidden(at)).for_each(|at| values[at] = f32::NEG_INFINITY);
            let x = Tensor::from_slice(&[3, 6], &values).unwrap();
            each(&graph, |session| {
                let found = run(session, &[("x", x.clone())]).unwrap().to_vec::<f32>().unwrap();
                let nan: Vec<bool> = found.iter().map(|value| value.is_nan()).collect();
                let expected: Vec<bool> = (0..18).map(hidden).collect();
                assert_eq!(nan, expected, "{op_type} along {axis}");
            });
        }
    }
}
