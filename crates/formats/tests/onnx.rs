//! ONNX files: encodings, names and functions, and everything that must be refused.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use galatea_formats::onnx::proto::{
    DataLocation, FunctionProto, GraphProto, ModelProto, OperatorSetIdProto, SparseTensorProto,
    StringStringEntryProto, TensorProto, TypeProto, type_proto,
};
use galatea_formats::onnx::{load, load_model, parse, parse_model, read_tensor};
use galatea_graph::{Dim, Fact, Graph, evaluate};
use galatea_tensor::{ByteString, DataType, SmallType, Tensor, bf16, f16};
use galatea_testkit::model::{
    self, FLOAT, INT32, INT64, STRING, encode, floats, int, int64s, node, value,
};
use prost::Message;

/// `y = x + b`, with `b` an initializer.
fn addition() -> ModelProto {
    model::model(
        GraphProto {
            name: "addition".to_owned(),
            node: vec![node("Add", &["x", "b"], &["y"])],
            initializer: vec![floats("b", &[2], &[10.0, 20.0])],
            input: vec![value("x", FLOAT, &["batch", "2"]), value("b", FLOAT, &["2"])],
            output: vec![value("y", FLOAT, &["batch", "2"])],
            ..GraphProto::default()
        },
        17,
    )
}

fn graph_mut(model: &mut ModelProto) -> &mut GraphProto {
    model.graph.as_mut().unwrap()
}

fn read(model: &ModelProto) -> Graph {
    parse(encode(model).into(), None).unwrap()
}

fn refusal(model: &ModelProto) -> String {
    parse(encode(model).into(), None).unwrap_err().to_string()
}

fn names(graph: &Graph, ids: &[galatea_graph::ValueId]) -> Vec<String> {
    ids.iter().map(|&id| graph.value(id).name.clone()).collect()
}

/// A folder of its own below the build's temporary folder, empty at first.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn listed_initializers_may_be_replaced() {
    let mut model = addition();
    let mut open = read(&model);
    assert_eq!(names(&open, &open.overridable), ["b"]);
    let usual = open.open();
    assert_eq!(names(&open, &open.inputs), ["x", "b"]);
    assert_eq!(usual, [("b".to_owned(), Tensor::vector(vec![10.0_f32, 20.0]))]);
    graph_mut(&mut model).input.truncate(1);
    assert!(read(&model).overridable.is_empty(), "an initializer that is not listed is fixed");
}

#[test]
fn axes_that_exporters_do_not_know_have_no_common_name() {
    let mut model = addition();
    for text in ["?", "", "None", "unk", "*", "-1", "unknown"] {
        graph_mut(&mut model).input[0] = value("x", FLOAT, &[text, "2"]);
        let graph = read(&model);
        let fact = graph.value(graph.inputs[0]).declared.clone().unwrap();
        assert_eq!(fact.shape.unwrap()[0], Dim::Unknown, "'{text}'");
    }
    for text in ["batch", "unk__12", "past + 1"] {
        graph_mut(&mut model).input[0] = value("x", FLOAT, &[text, "2"]);
        let graph = read(&model);
        let fact = graph.value(graph.inputs[0]).declared.clone().unwrap();
        assert!(matches!(fact.shape.unwrap()[0], Dim::Symbol(_)), "'{text}'");
    }
}

#[test]
fn a_model_becomes_a_graph_that_runs() {
    let graph = read(&addition());
    assert_eq!(names(&graph, &graph.inputs), ["x"], "initializers are no inputs");
    assert_eq!(names(&graph, &graph.outputs), ["y"]);
    let declared = graph.value(graph.inputs[0]).declared.clone().unwrap();
    assert_eq!(declared, Fact::new(DataType::Fp32, vec![Dim::symbol("batch"), Dim::Known(2)]));
    let x = Tensor::from_vec(&[1, 2], vec![1_f32, 2.0]).unwrap();
    let y = evaluate::run(&graph, &[x]).unwrap();
    assert_eq!(y[0].to_vec::<f32>().unwrap(), [11.0, 22.0]);
}

#[test]
fn what_the_file_says_about_itself_is_kept() {
    let mut model = addition();
    model.metadata_props =
        vec![StringStringEntryProto { key: "author".into(), value: "someone".into() }];
    let info = parse_model(encode(&model).into(), None).unwrap().info;
    assert_eq!((info.ir_version, info.producer_name.as_str()), (10, "testkit"));
    assert_eq!(info.metadata["author"], "someone");
}

#[test]
fn nodes_in_any_order_are_sorted() {
    let mut model = addition();
    let graph = graph_mut(&mut model);
    graph.node = vec![node("Neg", &["s"], &["y"]), node("Add", &["x", "b"], &["s"])];
    let order: Vec<String> = read(&model).nodes.iter().map(|node| node.op_type.clone()).collect();
    assert_eq!(order, ["Add", "Neg"]);
}

#[test]
fn lengths_that_are_not_numbers_are_symbols_or_unknown() {
    let mut model = addition();
    graph_mut(&mut model).input[0] = value("x", FLOAT, &["?", "-1"]);
    let graph = read(&model);
    let declared = graph.value(graph.inputs[0]).declared.clone().unwrap();
    assert_eq!(declared.shape, Some(vec![Dim::Unknown, Dim::Unknown]));
}

#[test]
fn every_encoding_of_elements_is_read() {
    let raw = |data_type, dims: &[i64], bytes: &[u8]| TensorProto {
        data_type,
        dims: dims.to_vec(),
        raw_data: Some(Bytes::copy_from_slice(bytes)),
        ..TensorProto::default()
    };
    let small = |data_type, values: &[i32]| TensorProto {
        data_type,
        dims: vec![values.len().try_into().unwrap()],
        int32_data: values.to_vec(),
        ..TensorProto::default()
    };
    let packed = |data_type, elements, bytes: &[i32]| TensorProto {
        dims: vec![elements],
        ..small(data_type, bytes)
    };
    let small_of = |dtype, codes: &[u8]| {
        Tensor::from_bytes(DataType::Small(dtype), &[codes.len()], codes).unwrap()
    };
    let wide = |data_type, values: &[u64]| TensorProto {
        data_type,
        dims: vec![values.len().try_into().unwrap()],
        uint64_data: values.to_vec(),
        ..TensorProto::default()
    };
    let doubles = TensorProto {
        data_type: 11,
        dims: vec![1],
        double_data: vec![0.25],
        ..TensorProto::default()
    };
    let strings = TensorProto {
        data_type: STRING,
        dims: vec![2],
        string_data: vec![Bytes::from_static(b"a"), Bytes::from_static(b"\xFF")],
        ..TensorProto::default()
    };
    let cases: Vec<(TensorProto, Tensor)> = vec![
        (raw(FLOAT, &[1], &1.5_f32.to_le_bytes()), Tensor::vector(vec![1.5_f32])),
        (raw(9, &[3], &[0, 1, 2]), Tensor::vector(vec![false, true, true])),
        (raw(INT64, &[], &(-2_i64).to_le_bytes()), Tensor::scalar(-2_i64)),
        (raw(FLOAT, &[0, 4], &[]), Tensor::zeros(DataType::Fp32, &[0, 4]).unwrap()),
        (floats("", &[2], &[1.0, -1.0]), Tensor::vector(vec![1_f32, -1.0])),
        (int64s("", &[1], &[i64::MIN]), Tensor::vector(vec![i64::MIN])),
        (small(INT32, &[-7]), Tensor::vector(vec![-7_i32])),
        (small(2, &[255]), Tensor::vector(vec![255_u8])),
        (small(3, &[-128]), Tensor::vector(vec![-128_i8])),
        (small(4, &[65535]), Tensor::vector(vec![65535_u16])),
        (small(5, &[-32768]), Tensor::vector(vec![-32768_i16])),
        (small(9, &[0, 1]), Tensor::vector(vec![false, true])),
        (small(10, &[0x3C00]), Tensor::vector(vec![f16::from_f32(1.0)])),
        (small(16, &[0x3F80]), Tensor::vector(vec![bf16::from_f32(1.0)])),
        (raw(17, &[2], &[0x38, 0xc0]), small_of(SmallType::Float8E4M3Fn, &[0x38, 0xc0])),
        (small(20, &[0x41, 0xc0]), small_of(SmallType::Float8E5M2FnUz, &[0x41, 0xc0])),
        (raw(22, &[3], &[0x81, 0xf7]), small_of(SmallType::Int4, &[1, 8, 7])),
        (packed(21, 3, &[0x81, 0x07]), small_of(SmallType::Uint4, &[1, 8, 7])),
        (raw(23, &[1], &[0x0f]), small_of(SmallType::Float4E2M1, &[15])),
        (raw(26, &[5], &[0b11_10_01_00, 1]), small_of(SmallType::Int2, &[0, 1, 2, 3, 1])),
        (raw(25, &[0], &[]), small_of(SmallType::Uint2, &[])),
        (wide(12, &[4_000_000_000]), Tensor::vector(vec![4_000_000_000_u32])),
        (wide(13, &[u64::MAX]), Tensor::vector(vec![u64::MAX])),
        (doubles, Tensor::vector(vec![0.25_f64])),
        (strings, Tensor::vector::<ByteString>(vec!["a".into(), vec![255].into()])),
    ];
    for (proto, expected) in cases {
        assert_eq!(read_tensor(proto.encode_to_vec()).unwrap(), expected, "{proto:?}");
    }
}

#[test]
fn impossible_tensors_are_refused_where_they_are_wrong() {
    let refusal = |proto: TensorProto| read_tensor(proto.encode_to_vec()).unwrap_err().to_string();
    let of = |data_type, dims: &[i64]| TensorProto {
        data_type,
        dims: dims.to_vec(),
        ..TensorProto::default()
    };
    let huge = TensorProto { raw_data: Some(Bytes::from_static(&[0; 4])), ..of(FLOAT, &[1 << 62]) };
    assert!(refusal(huge).contains("raw_data: FP32"));
    assert!(refusal(of(FLOAT, &[i64::MAX, i64::MAX])).contains("dims"));
    assert!(refusal(of(FLOAT, &[1 << 40])).contains("found 0"));
    assert!(refusal(of(FLOAT, &[2, -3])).contains("dims[1]: length -3 is negative"));
    assert!(refusal(of(0, &[])).contains("data_type: the element type is not stated"));
    assert!(refusal(of(14, &[])).contains("data_type: ONNX data type 14 is not supported"));
    let three = TensorProto { int32_data: vec![1, 2, 3], ..of(22, &[3]) };
    assert!(refusal(three).contains("int32_data: INT4[3] takes 2 bytes, found 3"));
    let byte = TensorProto { int32_data: vec![1, 256], ..of(22, &[3]) };
    assert!(refusal(byte).contains("int32_data[1]: 256 does not fit the type UINT8"));
    let narrow = TensorProto { int32_data: vec![1, 300], ..of(2, &[2]) };
    assert!(refusal(narrow).contains("int32_data[1]: 300 does not fit the type UINT8"));
    assert!(refusal(of(FLOAT, &[])).contains("found 0"), "a scalar needs its element");
    let short = TensorProto { raw_data: Some(Bytes::from_static(&[0; 7])), ..of(FLOAT, &[2]) };
    assert!(refusal(short).contains("takes 8 bytes, found 7"));
}

#[test]
fn unaligned_raw_data_in_a_mapped_file_is_read() {
    let folder = folder("unaligned");
    for pad in 0..8 {
        let mut model = addition();
        model.producer_name = "p".repeat(pad);
        let raw = [10_f32, 20.0].map(f32::to_le_bytes).concat();
        graph_mut(&mut model).initializer[0] = TensorProto {
            float_data: Vec::new(),
            raw_data: Some(raw.into()),
            ..floats("b", &[2], &[])
        };
        let file = folder.join(format!("{pad}.onnx"));
        std::fs::write(&file, encode(&model)).unwrap();
        let loaded = load_model(&file).unwrap();
        let b = loaded.graph.find_value("b").unwrap();
        assert_eq!(loaded.graph.constant(b).unwrap().to_vec::<f32>().unwrap(), [10.0, 20.0]);
    }
}

#[test]
fn sparse_constants_become_dense_and_stay_bounded() {
    let sparse = |positions: TensorProto, dims: &[i64]| {
        let mut model = addition();
        let graph = graph_mut(&mut model);
        graph.initializer.clear();
        let count = i64::try_from(positions.int64_data.len() / positions.dims.len()).unwrap();
        let values = vec![5.0; usize::try_from(count).unwrap()];
        graph.sparse_initializer = vec![SparseTensorProto {
            values: Some(floats("b", &[count], &values)),
            indices: Some(positions),
            dims: dims.to_vec(),
        }];
        model
    };
    let constant = |model: &ModelProto| {
        let graph = read(model);
        graph.constant(graph.find_value("b").unwrap()).unwrap().to_vec::<f32>().unwrap()
    };
    let linear = sparse(int64s("", &[1], &[3]), &[2, 2]);
    assert_eq!(constant(&linear), [0.0, 0.0, 0.0, 5.0]);
    let rows = sparse(int64s("", &[2, 2], &[0, 1, 1, 0]), &[2, 2]);
    assert_eq!(constant(&rows), [0.0, 5.0, 5.0, 0.0]);
    assert!(refusal(&sparse(int64s("", &[1], &[4]), &[2, 2])).contains("position 4 lies outside"));
    let huge = sparse(int64s("", &[1], &[0]), &[1 << 31, 1 << 20]);
    assert!(refusal(&huge).contains("sparse_initializer[0].dims: the dense form"));
    // Few bytes cannot ask for many, however far that is from the memory of a machine.
    let thin = sparse(int64s("", &[1], &[0]), &[1 << 25]);
    assert!(refusal(&thin).ends_with("the limit is 67115008"), "{}", refusal(&thin));
    let empty = sparse(int64s("", &[1, 3], &[1, 1, 1]), &[1 << 62, 1 << 62, 0]);
    assert!(refusal(&empty).contains("sparse_initializer[0].dims"));
}

#[test]
fn external_data_is_shared_and_checked() {
    let folder = folder("external");
    let numbers: Vec<u8> = (0..8_u8).flat_map(|n| f32::from(n).to_le_bytes()).collect();
    std::fs::write(folder.join("weights.bin"), numbers).unwrap();
    std::fs::write(folder.parent().unwrap().join("secret.bin"), [0; 64]).unwrap();
    let entry = |key: &str, value: &str| StringStringEntryProto {
        key: key.to_owned(),
        value: value.to_owned(),
    };
    let outside = folder.parent().unwrap().join("secret.bin").display().to_string();
    let attempt = |location: &str, offset: &str, length: &str| {
        let mut model = addition();
        graph_mut(&mut model).initializer[0] = TensorProto {
            float_data: Vec::new(),
            data_location: DataLocation::External.into(),
            external_data: vec![
                entry("location", location),
                entry("offset", offset),
                entry("length", length),
            ],
            ..floats("b", &[2], &[])
        };
        let file = folder.join("model.onnx");
        std::fs::write(&file, encode(&model)).unwrap();
        let graph = load(&file).map_err(|error| error.to_string())?;
        let b = graph.find_value("b").and_then(|id| graph.constant(id).cloned());
        Ok::<_, String>(b.unwrap().to_vec::<f32>().unwrap())
    };
    assert_eq!(attempt("weights.bin", "8", "8").unwrap(), [2.0, 3.0]);
    assert_eq!(attempt("./weights.bin", "24", "8").unwrap(), [6.0, 7.0]);
    let refused = |location: &str, offset: &str, length: &str, text: &str| {
        let error = attempt(location, offset, length).unwrap_err();
        assert!(error.contains(text) && error.contains("graph.initializer[0]"), "{error}");
    };
    refused("../secret.bin", "0", "8", "not a relative path inside");
    refused(&outside, "0", "8", "not a relative path inside");
    refused("", "0", "8", "not a relative path inside");
    refused("missing.bin", "0", "8", "cannot read");
    refused("weights.bin", "28", "8", "has 32 bytes");
    refused("weights.bin", "33", "8", "beyond the 32 bytes");
    refused("weights.bin", "18446744073709551615", "8", "beyond the 32 bytes");
    refused("weights.bin", "-4", "8", "offset '-4' is not a byte count");
    refused("weights.bin", "0", "12", "takes 8 bytes, found 12");
    refused(".", "0", "8", "not a plain file");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("../secret.bin", folder.join("link.bin")).unwrap();
        refused("link.bin", "0", "8", "a link that leaves the model's folder");
    }
}

#[test]
fn external_data_needs_a_folder() {
    let mut model = addition();
    graph_mut(&mut model).initializer[0].data_location = DataLocation::External.into();
    assert!(refusal(&model).contains("no entry 'location'"));
    graph_mut(&mut model).initializer[0].external_data =
        vec![StringStringEntryProto { key: "location".into(), value: "w".into() }];
    assert!(refusal(&model).contains("this model has no folder"));
}

#[test]
fn opsets_outside_the_supported_range_are_refused() {
    for opset in [0, 29, i64::MAX] {
        let mut model = addition();
        model.opset_import[0].version = opset;
        let text = refusal(&model);
        assert!(text.contains(&format!("imports opset {opset}")), "{text}");
        assert!(text.contains("1 to 28 are supported"), "{text}");
    }
    let mut model = addition();
    model.opset_import.clear();
    assert!(refusal(&model).contains("graph.node[0]: the model imports no opset"));
}

#[test]
fn an_unknown_operator_is_named_with_its_node() {
    let mut model = addition();
    let graph = graph_mut(&mut model);
    graph.node[0].op_type = "Frobnicate".to_owned();
    graph.node[0].name = "first".to_owned();
    graph.node[0].domain = "com.acme".to_owned();
    let text = refusal(&model);
    for part in ["graph.node[0]", "first", "Frobnicate", "com.acme"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn broken_structure_is_refused() {
    let broken = |change: &dyn Fn(&mut GraphProto)| {
        let mut model = addition();
        change(graph_mut(&mut model));
        refusal(&model)
    };
    let cycle = broken(&|graph| {
        graph.node = vec![node("Add", &["x", "y"], &["z"]), node("Neg", &["z"], &["y"])];
    });
    assert!(cycle.contains("depends on its own output"), "{cycle}");
    let twice = broken(&|graph| graph.node.push(node("Neg", &["x"], &["y"])));
    assert!(twice.contains("which has a value already"), "{twice}");
    let missing = broken(&|graph| graph.node[0].input[0] = "nobody".to_owned());
    assert!(missing.contains("'nobody', which nothing writes"), "{missing}");
    let unwritten = broken(&|graph| graph.output[0].name = "nobody".to_owned());
    assert!(unwritten.contains("'nobody'"), "{unwritten}");
    let same = broken(&|graph| graph.initializer.push(floats("b", &[1], &[0.0])));
    assert!(same.contains("graph.initializer[1]: initializer 'b' is given twice"), "{same}");
    let inputs = broken(&|graph| graph.input.push(value("x", FLOAT, &[])));
    assert!(inputs.contains("graph.input[2]: 'x' is listed twice"), "{inputs}");
    let outputs = broken(&|graph| graph.output.push(value("y", FLOAT, &[])));
    assert!(outputs.contains("graph.output[1]: 'y' is listed twice"), "{outputs}");
    let unnamed = broken(&|graph| graph.initializer[0].name.clear());
    assert!(unnamed.contains("an initializer has no name"), "{unnamed}");
    let attribute = broken(&|graph| {
        graph.node[0].attribute = vec![int("axis", 0), int("axis", 1)];
    });
    assert!(attribute.contains("graph.node[0].attribute[1]: attribute 'axis' is given twice"));
    let unknown = broken(&|graph| graph.node[0].attribute = vec![int("sparkle", 1)]);
    assert!(unknown.contains("unknown attribute 'sparkle'"), "{unknown}");
    let sequence = broken(&|graph| {
        let value = Some(type_proto::Value::Sequence(Default::default()));
        graph.input[0].r#type = Some(TypeProto { value });
    });
    assert!(sequence.contains("graph.input[0]: 'x' is a sequence"), "{sequence}");
}

/// A model whose only node calls a function, and the function.
fn calling(function: FunctionProto, attributes: &[(&str, f32)]) -> ModelProto {
    let mut model = addition();
    let graph = graph_mut(&mut model);
    let mut call = node(&function.name, &["x", "b"], &["y"]);
    call.domain.clone_from(&function.domain);
    call.attribute = attributes.iter().map(|(name, v)| model::float(name, *v)).collect();
    graph.node = vec![call];
    model.functions = vec![function];
    model
}

/// `out = LeakyRelu(a * c, alpha)` with `alpha` an attribute of the function, by default 0.5.
fn leaky() -> FunctionProto {
    let mut relu = node("LeakyRelu", &["product"], &["out"]);
    let reference = model::float("alpha", 0.0);
    relu.attribute = vec![galatea_formats::onnx::proto::AttributeProto {
        ref_attr_name: "slope".to_owned(),
        ..reference
    }];
    FunctionProto {
        name: "Leaky".to_owned(),
        domain: "com.acme".to_owned(),
        input: vec!["a".to_owned(), "c".to_owned()],
        output: vec!["out".to_owned()],
        node: vec![node("Mul", &["a", "c"], &["product"]), relu],
        opset_import: vec![OperatorSetIdProto { domain: String::new(), version: 17 }],
        attribute_proto: vec![model::float("slope", 0.5)],
        ..FunctionProto::default()
    }
}

#[test]
fn functions_are_inlined_with_their_attributes() {
    let x = Tensor::from_vec(&[1, 2], vec![1_f32, -1.0]).unwrap();
    for (attributes, expected) in [(&[][..], [10.0, -10.0]), (&[("slope", 0.1)][..], [10.0, -2.0])]
    {
        let graph = read(&calling(leaky(), attributes));
        assert_eq!(graph.nodes.len(), 2);
        let y = evaluate::run(&graph, std::slice::from_ref(&x)).unwrap();
        assert_eq!(y[0].to_vec::<f32>().unwrap(), expected);
    }
}

#[test]
fn a_function_called_twice_keeps_its_values_apart() {
    let mut model = calling(leaky(), &[]);
    let graph = graph_mut(&mut model);
    let mut again = graph.node[0].clone();
    again.input = vec!["y".to_owned(), "b".to_owned()];
    again.output = vec!["z".to_owned()];
    graph.node.push(again);
    graph.output = vec![value("z", FLOAT, &["batch", "2"])];
    let graph = read(&model);
    let x = Tensor::from_vec(&[1, 2], vec![1_f32, 2.0]).unwrap();
    let z = evaluate::run(&graph, &[x]).unwrap();
    assert_eq!(z[0].to_vec::<f32>().unwrap(), [100.0, 800.0]);
}

#[test]
fn a_function_may_hand_an_input_through() {
    let mut function = leaky();
    function.output = vec!["a".to_owned()];
    let graph = read(&calling(function, &[]));
    let x = Tensor::from_vec(&[1, 2], vec![1_f32, 2.0]).unwrap();
    assert_eq!(evaluate::run(&graph, std::slice::from_ref(&x)).unwrap(), [x]);
}

#[test]
fn functions_that_never_end_or_explode_are_refused() {
    let mut own = leaky();
    let mut call = node("Leaky", &["a", "c"], &["out"]);
    call.domain = "com.acme".to_owned();
    own.node = vec![call.clone()];
    assert!(refusal(&calling(own.clone(), &[])).contains("function 'Leaky' calls itself"));
    // Two that call each other.
    let mut other = FunctionProto { name: "Other".to_owned(), ..own.clone() };
    let mut mutual = calling(own.clone(), &[]);
    mutual.functions[0].node[0].op_type = "Other".to_owned();
    other.node[0].op_type = "Leaky".to_owned();
    mutual.functions.push(other);
    assert!(refusal(&mutual).contains("function 'Leaky' calls itself, or one that it calls does"));
    // Each level calls the next one twice: 2^30 nodes.
    let mut model = calling(leaky(), &[]);
    model.functions.clear();
    for level in 0..30 {
        let mut function = own.clone();
        function.name = if level == 0 { "Leaky".to_owned() } else { format!("F{level}") };
        call.op_type = format!("F{}", level + 1);
        let (mut first, mut second) = (call.clone(), call.clone());
        first.output = vec!["between".to_owned()];
        second.input[0] = "between".to_owned();
        function.node = vec![first, second];
        model.functions.push(function);
    }
    let mut last = leaky();
    last.name = "F30".to_owned();
    model.functions.push(last);
    let text = refusal(&model);
    assert!(text.contains("longer than"), "{text}");
}

#[test]
fn bytes_of_attributes_count_when_functions_are_inlined() {
    let calls = |function: FunctionProto, count: usize| {
        let mut model = calling(function, &[]);
        let graph = graph_mut(&mut model);
        let call = graph.node[0].clone();
        graph.node = (0..count)
            .map(|at| {
                let output = vec![format!("y{at}")];
                galatea_formats::onnx::proto::NodeProto { output, ..call.clone() }
            })
            .collect();
        model
    };
    // A function that holds a megabyte, called 200 times; raw data would be shared.
    let mut constant = node("Constant", &[], &["out"]);
    constant.attribute = vec![model::tensor("value", floats("", &[1 << 18], &vec![1.0; 1 << 18]))];
    let function =
        FunctionProto { node: vec![constant.clone()], attribute_proto: Vec::new(), ..leaky() };
    let text = refusal(&calls(function.clone(), 200));
    assert!(text.contains("repeat more than 134217728 bytes"), "{text}");
    let shared = TensorProto {
        float_data: Vec::new(),
        raw_data: Some(vec![0; 4 << 18].into()),
        ..floats("", &[1 << 18], &[])
    };
    constant.attribute = vec![model::tensor("value", shared)];
    let function = FunctionProto { node: vec![constant], ..function };
    let mut model = calls(function, 200);
    graph_mut(&mut model).output[0].name = "y0".to_owned();
    read(&model);
}

#[test]
fn bytes_that_are_no_model_say_how_far_they_were_read() {
    let garbage = parse(Bytes::from_static(b"#!/bin/sh\necho hello\n"), None).unwrap_err();
    assert!(garbage.to_string().contains("at byte"), "{garbage}");
    let empty = parse(Bytes::new(), None).unwrap_err();
    assert!(empty.to_string().contains("holds no graph"), "{empty}");
    let missing = load(Path::new("/nowhere/model.onnx")).unwrap_err();
    assert!(missing.to_string().contains("/nowhere/model.onnx"), "{missing}");
    let folder = load(Path::new("/")).unwrap_err();
    assert!(folder.to_string().contains("is not a plain file"), "{folder}");
}

#[test]
fn graphs_nested_without_end_are_refused() {
    let mut inner = GraphProto::default();
    for _ in 0..200 {
        let mut holder = node("If", &["x"], &["y"]);
        holder.attribute = vec![model::graph("then_branch", inner)];
        inner = GraphProto { node: vec![holder], ..GraphProto::default() };
    }
    let text = refusal(&model::model(inner, 17));
    assert!(text.contains("recursion"), "{text}");
}

/// A small xorshift generator: the same mutations on every run.
struct Noise(u64);

impl Noise {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap() % bound
    }
}

/// A model with a bit of everything.
fn rich() -> Vec<u8> {
    let mut model = calling(leaky(), &[("slope", 0.25)]);
    let graph = graph_mut(&mut model);
    graph.node.push(node("Reshape", &["y", "shape"], &["flat"]));
    let mut softmax = node("Softmax", &["flat"], &["p"]);
    softmax.attribute = vec![int("axis", -1)];
    graph.node.push(softmax);
    graph.initializer.push(int64s("shape", &[1], &[-1]));
    graph.initializer.push(TensorProto {
        raw_data: Some(Bytes::from_static(&[1, 2, 3, 4])),
        float_data: Vec::new(),
        ..floats("unused", &[1], &[])
    });
    graph.sparse_initializer = vec![SparseTensorProto {
        values: Some(floats("sparse", &[1], &[1.0])),
        indices: Some(int64s("", &[1], &[2])),
        dims: vec![3],
    }];
    graph.value_info = vec![value("flat", FLOAT, &["n"])];
    graph.output = vec![value("p", FLOAT, &["n"])];
    encode(&model)
}

#[test]
fn damage_anywhere_is_an_error_or_another_model_never_a_panic() {
    let good = rich();
    parse(Bytes::from(good.clone()), None).unwrap();
    for len in 0..good.len() {
        let cut = Bytes::copy_from_slice(&good[..len]);
        let _ = parse(cut, None);
    }
    for bit in 0..good.len() * 8 {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let _ = parse(bytes.into(), None);
    }
    let mut noise = Noise(0x9E37_79B9_7F4A_7C15);
    for _ in 0..4000 {
        let mut bytes = good.clone();
        for _ in 0..1 + noise.below(8) {
            let at = noise.below(bytes.len());
            match noise.below(4) {
                0 => bytes[at] = u8::try_from(noise.below(256)).unwrap(),
                1 => bytes[at] = 0xFF,
                2 => {
                    bytes.remove(at);
                }
                _ => bytes.insert(at, u8::try_from(noise.below(256)).unwrap()),
            }
        }
        let _ = parse(bytes.into(), None);
    }
}
