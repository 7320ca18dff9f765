//! Models with control flow: what subgraphs read from outside, rewriting, and what is refused.

use std::collections::HashMap;

use galatea_formats::onnx::parse;
use galatea_formats::onnx::proto::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto,
    TensorProto, TypeProto, ValueInfoProto, type_proto,
};
use galatea_graph::rewrite::{RewriteLevel, optimise};
use galatea_graph::{Datum, Graph, TensorSequence, evaluate, infer};
use galatea_tensor::{DataType, Tensor};
use galatea_testkit::model::{self, FLOAT, INT64, encode, floats, int, int64s, node, value};

/// The number of `BOOL` in `TensorProto.DataType`.
const BOOL: i32 = 9;

fn with(mut node: NodeProto, attributes: Vec<AttributeProto>) -> NodeProto {
    node.attribute = attributes;
    node
}

fn graph(
    node: Vec<NodeProto>,
    input: Vec<ValueInfoProto>,
    output: Vec<ValueInfoProto>,
    initializer: Vec<TensorProto>,
) -> GraphProto {
    GraphProto { name: "g".to_owned(), node, input, output, initializer, ..GraphProto::default() }
}

/// A name without a type, as subgraphs may have it.
fn untyped(name: &str) -> ValueInfoProto {
    ValueInfoProto { name: name.to_owned(), r#type: None }
}

/// A declared sequence of floats.
fn sequence(name: &str) -> ValueInfoProto {
    let elem_type = value("", FLOAT, &["?"]).r#type.map(Box::new);
    let held = type_proto::ElementType { elem_type };
    let r#type = Some(TypeProto { value: Some(type_proto::Value::Sequence(held)) });
    ValueInfoProto { name: name.to_owned(), r#type }
}

/// The body of a loop over `carried`, which keeps its condition.
fn body(
    mut nodes: Vec<NodeProto>,
    carried: Vec<ValueInfoProto>,
    mut outputs: Vec<ValueInfoProto>,
) -> GraphProto {
    nodes.push(node("Identity", &["go"], &["going"]));
    let mut inputs = vec![value("i", INT64, &[]), value("go", BOOL, &[])];
    inputs.extend(carried);
    outputs.insert(0, value("going", BOOL, &[]));
    graph(nodes, inputs, outputs, Vec::new())
}

fn read(model: &ModelProto) -> Graph {
    parse(encode(model).into(), None).unwrap()
}

fn refusal(graph: GraphProto) -> String {
    parse(encode(&model::model(graph, 17)).into(), None).unwrap_err().to_string()
}

fn operators(graph: &Graph) -> Vec<&str> {
    graph.nodes.iter().map(|node| node.op_type.as_str()).collect()
}

/// Runs a graph unchanged and rewritten, and checks that both agree with each other and with
/// inference. Returns the outputs and the rewritten graph.
fn run(model: &ModelProto, inputs: &[Datum]) -> (Vec<Datum>, Graph) {
    let plain = read(model);
    let expected = evaluate::run_values(&plain, inputs.to_vec()).unwrap();
    let mut rewritten = plain.clone();
    optimise(&mut rewritten, RewriteLevel::default()).unwrap();
    rewritten.sort().unwrap();
    assert_eq!(evaluate::run_values(&rewritten, inputs.to_vec()).unwrap(), expected);
    for graph in [&plain, &rewritten] {
        let facts = infer::facts(graph, &HashMap::new()).unwrap();
        for (id, datum) in graph.outputs.iter().zip(&expected) {
            let fact = facts[id.index()].as_ref().unwrap();
            assert!(datum.fits(fact), "inferred {fact}, found {datum:?}");
            if let (Some(tensor), Some(shape)) = (datum.as_tensor(), &fact.shape) {
                assert_eq!(shape.len(), tensor.rank(), "inferred {fact}");
                let fits = shape.iter().zip(tensor.shape());
                assert!(fits.into_iter().all(|(dim, len)| dim.known().is_none_or(|n| n == *len)));
            }
        }
    }
    (expected, rewritten)
}

fn vector(values: &[f32]) -> Datum {
    Datum::Tensor(Tensor::vector(values.to_vec()))
}

fn number(value: i64) -> Datum {
    Datum::Tensor(Tensor::scalar(value))
}

/// `x` grows by `w + doubled x` in each of `n` iterations; every step is an output too.
fn accumulation() -> GraphProto {
    let inner = body(
        vec![
            node("Add", &["sum", "w"], &["more"]),
            node("Add", &["more", "twice"], &["next"]),
            node("Identity", &["next"], &["step"]),
        ],
        vec![value("sum", FLOAT, &["2"])],
        vec![value("next", FLOAT, &["2"]), value("step", FLOAT, &["2"])],
    );
    let repeat =
        with(node("Loop", &["n", "", "x"], &["y", "steps"]), vec![model::graph("body", inner)]);
    graph(
        vec![node("Add", &["x", "x"], &["twice"]), repeat],
        vec![value("n", INT64, &[]), value("x", FLOAT, &["2"])],
        vec![value("y", FLOAT, &["2"]), value("steps", FLOAT, &["?", "2"])],
        vec![floats("w", &[2], &[10.0, 20.0])],
    )
}

#[test]
fn a_loop_reads_values_of_the_graph_around_it() {
    let model = model::model(accumulation(), 17);
    let (outputs, rewritten) = run(&model, &[number(2), vector(&[1.0, 2.0])]);
    assert_eq!(outputs[0], vector(&[25.0, 50.0]));
    let steps = Tensor::from_vec(&[2, 2], vec![13_f32, 26.0, 25.0, 50.0]).unwrap();
    assert_eq!(outputs[1], Datum::Tensor(steps));
    // The constant is the body's own now, and what only the body reads is still computed.
    assert_eq!(operators(&rewritten), ["Add", "Loop"]);
    assert_eq!(rewritten.nodes[1].inputs.len(), 4);
    let inner = rewritten.nodes[1].operator.bodies()[0].graph();
    assert!(inner.constant(inner.find_value("w").unwrap()).is_some());
    let (none, _) = run(&model, &[number(0), vector(&[1.0, 2.0])]);
    assert_eq!(none[0], vector(&[1.0, 2.0]));
    assert_eq!(none[1], Datum::Tensor(Tensor::zeros(DataType::Fp32, &[0, 2]).unwrap()));
}

#[test]
fn a_carried_value_may_change_its_shape() {
    let inner = body(
        vec![with(node("Concat", &["all", "x"], &["longer"]), vec![int("axis", 0)])],
        vec![untyped("all")],
        vec![untyped("longer")],
    );
    let repeat = with(node("Loop", &["n", "", "x"], &["y"]), vec![model::graph("body", inner)]);
    let model = model::model(
        graph(
            vec![repeat],
            vec![value("n", INT64, &[]), value("x", FLOAT, &["2"])],
            vec![value("y", FLOAT, &["?"])],
            Vec::new(),
        ),
        17,
    );
    let (outputs, _) = run(&model, &[number(2), vector(&[1.0, 2.0])]);
    assert_eq!(outputs[0], vector(&[1.0, 2.0, 1.0, 2.0, 1.0, 2.0]));
}

/// `If` over two branches that give `name` of one node each.
fn choice(condition: &str, output: &str, branches: [NodeProto; 2]) -> NodeProto {
    let [then, other] = branches.map(|node| {
        let gives = vec![untyped(&node.output[0])];
        graph(vec![node], Vec::new(), gives, Vec::new())
    });
    let branches = vec![model::graph("then_branch", then), model::graph("else_branch", other)];
    with(node("If", &[condition], &[output]), branches)
}

#[test]
fn a_branch_that_does_not_fit_the_shapes_is_not_taken() {
    let squeeze = node("Squeeze", &["x", "zero"], &["a"]);
    let nodes = vec![
        node("Shape", &["x"], &["shape"]),
        with(node("Gather", &["shape", "zero"], &["length"]), vec![int("axis", 0)]),
        node("Equal", &["length", "one"], &["single"]),
        choice("single", "y", [squeeze, node("Neg", &["x"], &["b"])]),
    ];
    let constants = vec![int64s("zero", &[1], &[0]), int64s("one", &[1], &[1])];
    let gives = vec![untyped("y")];
    let rows = |rows: &str| {
        let input = vec![value("x", FLOAT, &[rows, "2"])];
        model::model(graph(nodes.clone(), input, gives.clone(), constants.clone()), 17)
    };
    let matrix =
        |rows: usize| Datum::Tensor(Tensor::from_vec(&[rows, 2], vec![1_f32; 2 * rows]).unwrap());
    let (one, kept) = run(&rows("n"), &[matrix(1)]);
    assert_eq!(one[0], vector(&[1.0, 1.0]));
    assert!(operators(&kept).contains(&"If"));
    let (two, _) = run(&rows("n"), &[matrix(2)]);
    assert_eq!(two[0].as_tensor().unwrap().shape(), [2, 2]);
    // With fixed shapes the condition is known and one branch is left.
    let (_, squeezed) = run(&rows("1"), &[matrix(1)]);
    assert_eq!(operators(&squeezed), ["Squeeze"]);
    let (_, negated) = run(&rows("2"), &[matrix(2)]);
    assert_eq!(operators(&negated), ["Neg"]);
}

#[test]
fn known_conditions_are_inlined_however_deep() {
    let inner = choice("no", "a", [node("Neg", &["x"], &["b"]), node("Identity", &["x"], &["b"])]);
    let outer = choice("yes", "y", [inner, node("Abs", &["x"], &["c"])]);
    let flag = |name: &str, value: i32| TensorProto {
        name: name.to_owned(),
        data_type: BOOL,
        int32_data: vec![value],
        ..TensorProto::default()
    };
    let model = model::model(
        graph(
            vec![outer, node("Exp", &["y"], &["z"])],
            vec![value("x", FLOAT, &["1"])],
            vec![value("z", FLOAT, &["1"])],
            vec![flag("yes", 1), flag("no", 0)],
        ),
        17,
    );
    let (outputs, rewritten) = run(&model, &[vector(&[0.0])]);
    assert_eq!(outputs[0], vector(&[1.0]));
    assert_eq!(operators(&rewritten), ["Exp"]);
}

#[test]
fn inner_names_hide_outer_ones() {
    // The body has an `x` of its own; the branch inside reads that one, and `w` two levels up.
    let branch = choice(
        "go",
        "next",
        [node("Add", &["x", "w"], &["sum"]), node("Neg", &["x"], &["negative"])],
    );
    let inner = body(vec![branch], vec![untyped("x")], vec![untyped("next")]);
    let repeat = with(node("Loop", &["n", "", "w"], &["z"]), vec![model::graph("body", inner)]);
    let model = model::model(
        graph(
            vec![node("Neg", &["x"], &["w"]), repeat],
            vec![value("n", INT64, &[]), value("x", FLOAT, &["1"])],
            vec![value("z", FLOAT, &["1"])],
            Vec::new(),
        ),
        17,
    );
    let (outputs, _) = run(&model, &[number(3), vector(&[5.0])]);
    assert_eq!(outputs[0], vector(&[-20.0]));
}

#[test]
fn a_loop_builds_a_sequence() {
    let inner = body(
        vec![node("SequenceInsert", &["list", "x"], &["longer"])],
        vec![sequence("list")],
        vec![sequence("longer")],
    );
    let repeat = with(node("Loop", &["n", "", "empty"], &["y"]), vec![model::graph("body", inner)]);
    let model = model::model(
        graph(
            vec![node("SequenceEmpty", &[], &["empty"]), repeat],
            vec![value("n", INT64, &[]), value("x", FLOAT, &["1"])],
            vec![sequence("y")],
            Vec::new(),
        ),
        17,
    );
    let (outputs, _) = run(&model, &[number(3), vector(&[7.0])]);
    let item = Tensor::vector(vec![7_f32]);
    assert_eq!(outputs[0], TensorSequence::new(DataType::Fp32, vec![item; 3]).unwrap().into());
}

/// `out = Loop(times, a → LeakyRelu(a + c, slope))`, where `times` may be absent.
fn repeating() -> FunctionProto {
    let slope = AttributeProto { ref_attr_name: "slope".to_owned(), ..model::float("alpha", 0.0) };
    let inner = body(
        vec![
            node("Add", &["value", "shift"], &["moved"]),
            with(node("LeakyRelu", &["moved"], &["next"]), vec![slope]),
        ],
        vec![untyped("value")],
        vec![untyped("next")],
    );
    FunctionProto {
        name: "Repeat".to_owned(),
        domain: "com.acme".to_owned(),
        input: vec!["a".to_owned(), "c".to_owned(), "times".to_owned()],
        output: vec!["out".to_owned()],
        node: vec![
            node("Neg", &["c"], &["shift"]),
            with(node("Loop", &["times", "", "a"], &["out"]), vec![model::graph("body", inner)]),
        ],
        opset_import: vec![OperatorSetIdProto { domain: String::new(), version: 17 }],
        attribute_proto: vec![model::float("slope", 0.5)],
        ..FunctionProto::default()
    }
}

#[test]
fn subgraphs_of_functions_read_the_call_they_are_in() {
    let call = |x: &str, y: &str, attributes| {
        let mut call = with(node("Repeat", &[x, "c", "n"], &[y]), attributes);
        call.domain = "com.acme".to_owned();
        call
    };
    let mut model = model::model(
        graph(
            vec![call("x", "y", vec![]), call("y", "z", vec![model::float("slope", 0.25)])],
            vec![value("n", INT64, &[]), value("x", FLOAT, &["1"])],
            vec![value("z", FLOAT, &["1"])],
            vec![floats("c", &[1], &[3.0])],
        ),
        17,
    );
    model.functions = vec![repeating()];
    let (outputs, _) = run(&model, &[number(1), vector(&[1.0])]);
    assert_eq!(outputs[0], vector(&[-1.0])); // (1 - 3) / 2 = -1, (-1 - 3) / 4 = -1
}

#[test]
fn a_call_may_give_a_function_its_subgraph() {
    // `Times(n, x; body)` repeats a body that reads `x` of the caller, not the function's own.
    let mut inner = node("Loop", &["n", "", "x"], &["out"]);
    inner.attribute = vec![AttributeProto {
        ref_attr_name: "step".to_owned(),
        g: None,
        ..model::graph("body", GraphProto::default())
    }];
    let function = FunctionProto {
        name: "Times".to_owned(),
        domain: "com.acme".to_owned(),
        input: vec!["n".to_owned(), "x".to_owned()],
        output: vec!["out".to_owned()],
        attribute: vec!["step".to_owned()],
        node: vec![inner],
        opset_import: vec![OperatorSetIdProto { domain: String::new(), version: 17 }],
        ..FunctionProto::default()
    };
    let step = body(
        vec![node("Mul", &["value", "x"], &["next"])],
        vec![untyped("value")],
        vec![untyped("next")],
    );
    let call = |attributes| {
        let mut call = with(node("Times", &["n", "start"], &["y"]), attributes);
        call.domain = "com.acme".to_owned();
        let inputs = vec![value("n", INT64, &[]), value("x", FLOAT, &["1"])];
        let start = vec![floats("start", &[1], &[10.0])];
        let main = graph(vec![call], inputs, vec![value("y", FLOAT, &["1"])], start);
        let mut model = model::model(main, 17);
        model.functions = vec![function.clone()];
        model
    };
    let (outputs, _) = run(&call(vec![model::graph("step", step)]), &[number(2), vector(&[3.0])]);
    assert_eq!(outputs[0], vector(&[90.0]));
    let none = parse(encode(&call(vec![])).into(), None).unwrap_err().to_string();
    assert!(none.contains("there is no subgraph 'body'"), "{none}");
}

#[test]
fn broken_subgraphs_are_refused_by_name() {
    let loop_mut = |model: &mut GraphProto, change: &dyn Fn(&mut GraphProto)| {
        change(model.node[1].attribute[0].g.as_mut().unwrap());
    };
    let broken = |change: &dyn Fn(&mut GraphProto)| {
        let mut model = accumulation();
        loop_mut(&mut model, change);
        refusal(model)
    };
    let missing = broken(&|body| body.node[0].input[1] = "nobody".to_owned());
    assert!(missing.contains("'nobody', which nothing writes"), "{missing}");
    let fewer = broken(&|body| drop(body.output.pop()));
    assert!(
        fewer.contains("'body' takes 3 inputs and gives 2 outputs, expected 3 and 3"),
        "{fewer}"
    );
    let unknown = broken(&|body| body.node[0].op_type = "Frobnicate".to_owned());
    assert!(unknown.contains("graph.node[1].attribute[0].g.node[0]"), "{unknown}");
    let cycle = broken(&|body| body.node[0].input[0] = "next".to_owned());
    assert!(cycle.contains("depends on its own output"), "{cycle}");
    let mut bare = accumulation();
    bare.node[1].attribute.clear();
    let bare = refusal(bare);
    assert!(bare.contains("there is no subgraph 'body'"), "{bare}");
    let mut model = model::model(accumulation(), 17);
    loop_mut(model.graph.as_mut().unwrap(), &|body| body.node[1].op_type = "Expand".to_owned());
    let graph = read(&model);
    let inputs = vec![number(1), vector(&[1.0, 2.0])];
    let text = evaluate::run_values(&graph, inputs).unwrap_err().to_string();
    assert!(
        text.contains("(Loop): in 'body': node 2 '' (Identity)") || text.contains("in 'body'"),
        "{text}"
    );
}

#[test]
fn subgraphs_nested_too_deep_are_refused() {
    let mut deepest = node("Neg", &["x"], &["y"]);
    for _ in 0..20 {
        deepest = choice("c", "y", [deepest.clone(), node("Neg", &["x"], &["y"])]);
    }
    let inputs = vec![value("c", BOOL, &[]), value("x", FLOAT, &["1"])];
    let text = refusal(graph(vec![deepest], inputs, vec![untyped("y")], Vec::new()));
    assert!(text.contains("nested more than 16 deep"), "{text}");
}

#[test]
fn a_loop_that_cannot_end_is_an_error() {
    let mut endless = accumulation();
    endless.node[1].input[0].clear();
    let graph = read(&model::model(endless, 17));
    let run = |graph: &Graph| {
        evaluate::run_values(graph, vec![number(1), vector(&[1.0, 2.0])]).unwrap_err().to_string()
    };
    let mut rewritten = graph.clone();
    optimise(&mut rewritten, RewriteLevel::default()).unwrap();
    for graph in [graph, rewritten] {
        let text = run(&graph);
        assert!(text.contains("would not end"), "{text}");
    }
}

#[test]
fn damage_in_subgraphs_is_an_error_or_another_model_never_a_panic() {
    let mut model = model::model(accumulation(), 17);
    let condition = AttributeProto { ref_attr_name: "which".to_owned(), ..int("to", BOOL.into()) };
    let mut function = repeating();
    function.node.insert(0, with(node("Cast", &["a"], &["flag"]), vec![condition]));
    function.node.push(choice(
        "flag",
        "chosen",
        [node("Add", &["out", "c"], &["p"]), node("SequenceConstruct", &["out", "a"], &["q"])],
    ));
    let mut call = node("Repeat", &["y", "w", "n"], &["z"]);
    call.domain = "com.acme".to_owned();
    call.attribute = vec![int("which", BOOL.into())];
    model.functions = vec![function];
    let main = model.graph.as_mut().unwrap();
    main.node.push(call);
    main.output.push(untyped("z"));
    let good = encode(&model);
    let whole = parse(good.clone().into(), None).unwrap();
    assert!(operators(&whole).contains(&"If"), "{:?}", operators(&whole));
    for bit in 0..good.len() * 8 {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        if let Ok(mut graph) = parse(bytes.into(), None) {
            let _ = optimise(&mut graph, RewriteLevel::default());
        }
    }
}

fn matrix(shape: &[usize], values: &[f32]) -> Datum {
    Datum::Tensor(Tensor::from_slice(shape, values).unwrap())
}

/// The sums of `x` so far: a state and one output.
fn sums() -> GraphProto {
    graph(
        vec![node("Add", &["sum", "x"], &["next"]), node("Identity", &["next"], &["each"])],
        vec![untyped("sum"), untyped("x")],
        vec![untyped("next"), untyped("each")],
        Vec::new(),
    )
}

#[test]
fn a_scan_walks_any_axis_in_either_direction() {
    let attributes = vec![
        model::graph("body", sums()),
        int("num_scan_inputs", 1),
        model::ints("scan_input_axes", &[1]),
        model::ints("scan_input_directions", &[1]),
        model::ints("scan_output_axes", &[-1]),
        model::ints("scan_output_directions", &[1]),
    ];
    let model = model::model(
        graph(
            vec![with(node("Scan", &["start", "x"], &["last", "all"]), attributes)],
            vec![value("x", FLOAT, &["rows", "columns"])],
            vec![untyped("last"), untyped("all")],
            vec![floats("start", &[3], &[0.0; 3])],
        ),
        17,
    );
    let (outputs, _) = run(&model, &[matrix(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])]);
    assert_eq!(outputs[0], vector(&[3.0, 7.0, 11.0]));
    assert_eq!(outputs[1], matrix(&[3, 2], &[3.0, 2.0, 7.0, 4.0, 11.0, 6.0]));
}

#[test]
fn the_first_scan_has_a_batch_of_sequences_of_any_length() {
    let attributes = vec![model::graph("body", sums()), int("num_scan_inputs", 1)];
    let scan = |lengths: &str, directions: &[i64]| {
        let mut attributes = attributes.clone();
        attributes.push(model::ints("directions", directions));
        model::model(
            graph(
                vec![with(node("Scan", &[lengths, "start", "x"], &["last", "all"]), attributes)],
                vec![value("x", FLOAT, &["batch", "time", "1"])],
                vec![untyped("last"), untyped("all")],
                vec![floats("start", &[2, 1], &[0.0; 2]), int64s("lengths", &[2], &[1, 3])],
            ),
            8,
        )
    };
    let x = matrix(&[2, 3, 1], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let (outputs, _) = run(&scan("lengths", &[0]), std::slice::from_ref(&x));
    assert_eq!(outputs[0], matrix(&[2, 1], &[1.0, 15.0]));
    assert_eq!(outputs[1], matrix(&[2, 3, 1], &[1.0, 0.0, 0.0, 4.0, 9.0, 15.0]));
    let (outputs, _) = run(&scan("", &[1]), &[x]);
    assert_eq!(outputs[1], matrix(&[2, 3, 1], &[3.0, 5.0, 6.0, 6.0, 11.0, 15.0]));
}

#[test]
fn a_loop_ends_by_its_condition() {
    let inner = graph(
        vec![node("Add", &["x", "x"], &["next"]), node("Less", &["next", "limit"], &["going"])],
        vec![value("i", INT64, &[]), value("go", BOOL, &[]), untyped("x")],
        vec![value("going", BOOL, &["1"]), untyped("next")],
        Vec::new(),
    );
    let repeat = with(node("Loop", &["", "go", "x"], &["y"]), vec![model::graph("body", inner)]);
    let model = model::model(
        graph(
            vec![node("Less", &["x", "limit"], &["go"]), repeat],
            vec![value("x", FLOAT, &["1"])],
            vec![value("y", FLOAT, &["1"])],
            vec![floats("limit", &[1], &[100.0])],
        ),
        17,
    );
    assert_eq!(run(&model, &[vector(&[3.0])]).0[0], vector(&[192.0]));
    assert_eq!(run(&model, &[vector(&[200.0])]).0[0], vector(&[200.0]));
}
