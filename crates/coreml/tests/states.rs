//! Functions with states, and packages of several functions: written, read again and run.

use galatea_coreml::{ConvertOptions, NewFunction, NewState, convert, convert_functions};
use galatea_formats::coreml::mil::MilProgram;
use galatea_formats::coreml::{LoadedCoreMl, NewPackage, load, write_package};
use galatea_graph::{AttributeValue, Attributes, Fact, Graph, ONNX_DOMAIN, ValueId, evaluate};
use galatea_tensor::{DataType, Tensor};

/// Positions of a cache.
const CONTEXT: usize = 8;
/// Elements of a row.
const WIDTH: usize = 16;

struct Made(Graph);

impl Made {
    fn input(&mut self, name: &str, dtype: DataType, dims: &[usize]) -> ValueId {
        let id = self.0.value_named(name);
        self.0.value_mut(id).declared = Some(Fact::fixed(dtype, dims));
        self.0.inputs.push(id);
        id
    }

    fn node(&mut self, op: &str, inputs: &[ValueId]) -> ValueId {
        let output = self.0.fresh_value(op);
        let attributes = match op {
            "ReduceSum" => Attributes::from([("keepdims".to_owned(), AttributeValue::Int(1))]),
            _ => Attributes::new(),
        };
        let inputs = inputs.iter().copied().map(Some).collect();
        self.0.add_node(ONNX_DOMAIN, op, "", &attributes, inputs, vec![Some(output)]).unwrap();
        output
    }

    fn output(&mut self, name: &str, id: ValueId) {
        let named = self.0.value_named(name);
        let (from, to) = (vec![Some(id)], vec![Some(named)]);
        self.0.add_node(ONNX_DOMAIN, "Identity", "", &Attributes::new(), from, to).unwrap();
        self.0.outputs.push(named);
    }
}

/// Rows that go into two caches, the second twice as large; their sum, and how much came so far.
fn step(rows: usize) -> Graph {
    let mut made = Made(Graph::new("step"));
    made.0.opsets.insert(ONNX_DOMAIN.to_owned(), 24);
    let x = made.input("x", DataType::Fp32, &[1, 1, rows, WIDTH]);
    let start = made.input("start", DataType::Int64, &[1]);
    let caches = [0, 1]
        .map(|at| made.input(&format!("cache.{at}"), DataType::Fp32, &[1, 1, CONTEXT, WIDTH]));
    let total = made.input("total", DataType::Fp32, &[1, 1, 1, 1]);
    let eye = |factor: f32| {
        let at = |place: usize| if place.is_multiple_of(WIDTH + 1) { factor } else { 0.0 };
        Tensor::from_vec(&[WIDTH, WIDTH], (0..WIDTH * WIDTH).map(at).collect::<Vec<f32>>()).unwrap()
    };
    let mut sums = Vec::new();
    for (at, cache) in caches.into_iter().enumerate() {
        let weight = made.0.add_constant("weight", eye([1.0, 2.0][at]));
        let row = made.node("MatMul", &[x, weight]);
        let after = made.node("TensorScatter", &[cache, row, start]);
        sums.push(made.node("ReduceSum", &[after]));
        made.output(&format!("cache.{at}.after"), after);
    }
    let both = made.node("Add", &[sums[0], sums[1]]);
    made.output("both", both);
    let came = made.node("ReduceSum", &[x]);
    let after = made.node("Add", &[total, came]);
    made.output("total.after", after);
    made.0
}

fn states() -> [NewState; 2] {
    let part = |name: &str| [name.to_owned(), format!("{name}.after")];
    [
        NewState { name: "cache".to_owned(), parts: vec![part("cache.0"), part("cache.1")] },
        NewState { name: "total".to_owned(), parts: vec![part("total")] },
    ]
}

fn written(package: &NewPackage) -> (LoadedCoreMl, u64) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("step.mlpackage");
    write_package(&path, package).unwrap();
    let weights = path.join("Data/com.apple.CoreML/weights/weight.bin");
    (load(&path).unwrap(), weights.metadata().unwrap().len())
}

/// Operators of a function that are about states, in their order.
fn about_states(program: &MilProgram, function: &str) -> Vec<String> {
    let all = program.functions[function].block.operations.iter().map(|one| one.operator.clone());
    all.filter(|name| ["read_state", "write_state", "slice_update"].contains(&name.as_str()))
        .collect()
}

#[test]
fn states_are_written_in_place_and_found_by_the_next_run_of_any_function() {
    let (one, three, states) = (step(1), step(3), states());
    let function = |name, graph| NewFunction { name, graph, states: &states };
    let functions = [function("decode", &one), function("prefill", &three)];
    let package = convert_functions(functions, &ConvertOptions::default()).unwrap();
    assert_eq!(package.default_function, "decode");
    let expected = [
        // The total is read first, as its value before is what a run computes with.
        &["read_state"][..],
        &["read_state", "slice_update", "write_state", "read_state"],
        &["slice_update", "write_state", "read_state"],
        &["write_state"],
    ];
    assert_eq!(about_states(&package.program, "decode"), expected.concat());
    let (model, bytes) = written(&package);
    let alone = convert_functions([function("decode", &one)], &ConvertOptions::default()).unwrap();
    assert_eq!(bytes, written(&alone).1, "weights that both functions have are there once");
    let prefill = model.function(Some("prefill")).unwrap();
    let shapes: Vec<_> = prefill.states.iter().map(|state| state.name.as_str()).collect();
    assert_eq!(shapes, ["cache", "total"]);
    let mut kept: Vec<Tensor> = [vec![2, 1, CONTEXT, WIDTH], vec![1, 1, 1, 1]]
        .iter()
        .map(|shape| Tensor::zeros(DataType::Fp16, shape).unwrap())
        .collect();
    let mut run = |name: &str, rows: usize, start: i32, value: f32| -> f32 {
        let graph = &model.function(Some(name)).unwrap().graph;
        let x = Tensor::from_vec(&[1, 1, rows, WIDTH], vec![value; rows * WIDTH]).unwrap();
        let mut inputs = vec![x, Tensor::vector(vec![start])];
        inputs.append(&mut kept);
        let mut outputs = evaluate::run(graph, &inputs).unwrap();
        kept = outputs.split_off(1);
        outputs[0].to_vec::<f32>().unwrap()[0]
    };
    // Three rows of ones, then one of twos over the last of them and one behind.
    assert_eq!(run("prefill", 3, 0, 1.0), 3.0 * 3.0 * 16.0);
    assert_eq!(run("decode", 1, 2, 2.0), 3.0 * (2.0 + 2.0) * 16.0);
    assert_eq!(run("decode", 1, 3, 2.0), 3.0 * (2.0 + 4.0) * 16.0);
    let total = galatea_graph::converted(&kept[1], DataType::Fp32).unwrap();
    assert_eq!(total.to_vec::<f32>().unwrap(), [(3.0 + 2.0 + 2.0) * 16.0]);
}

#[test]
fn what_is_no_state_of_the_graph_or_came_later_is_refused() {
    let graph = step(1);
    let refused = |states: &[NewState], options: &ConvertOptions| {
        let function = NewFunction { name: "main", graph: &graph, states };
        convert_functions([function], options).unwrap_err().to_string()
    };
    let state = |parts: &[[&str; 2]]| {
        let parts = parts.iter().map(|part| part.map(str::to_owned)).collect();
        vec![NewState { name: "state".to_owned(), parts }]
    };
    let options = ConvertOptions::default();
    let text = refused(&state(&[["cache.7", "cache.7.after"]]), &options);
    assert!(text.contains("no input 'cache.7'"), "{text}");
    let text = refused(&state(&[["cache.0", "cache.0.after"], ["total", "total.after"]]), &options);
    assert!(text.contains("part [1, 1, 1, 1] of state 'state'"), "{text}");
    let text = refused(&state(&[["start", "total.after"]]), &options);
    assert!(text.contains("floats with known lengths"), "{text}");
    let text = refused(&state(&[]), &options);
    assert!(text.contains("without parts"), "{text}");
    let old = ConvertOptions { specification: 8, ..ConvertOptions::default() };
    let text = refused(&states(), &old);
    assert!(text.contains("came with version 9"), "{text}");
    let two = [
        NewFunction { name: "a", graph: &graph, states: &[] },
        NewFunction { name: "a", graph: &graph, states: &[] },
    ];
    let text = convert_functions(two, &options).unwrap_err().to_string();
    assert!(text.contains("two functions are called 'a'"), "{text}");
}

#[test]
fn floats_at_the_border_can_be_those_of_the_program() {
    let options = ConvertOptions { half_border: true, ..ConvertOptions::default() };
    let (model, _) = written(&convert(&step(1), &options).unwrap());
    let graph = &model.functions[0].graph;
    let dtype = |id: ValueId| graph.value(id).declared.as_ref().unwrap().dtype;
    let found: Vec<DataType> = graph.inputs.iter().copied().map(dtype).collect();
    let half = DataType::Fp16;
    assert_eq!(found, [half, DataType::Int32, half, half, half]);
}
