//! Models with something wrong: messages changed field by field, so that most of the result still
//! decodes and reaches what lies behind the decoder.

use bytes::Bytes;
use galatea_formats::onnx::proto::{
    AttributeProto, AttributeType, Dimension, GraphProto, ModelProto, NodeProto,
    OperatorSetIdProto, SparseTensorProto, TensorProto, TensorShapeProto, TypeProto,
    ValueInfoProto, dimension, type_proto,
};
use galatea_graph::ops;

use crate::noise::NoiseGenerator;

/// Attributes that many operators read; a model's own names are used as often.
const NAMES: &[&str] = &[
    "axis",
    "axes",
    "perm",
    "pads",
    "strides",
    "dilations",
    "kernel_shape",
    "group",
    "to",
    "keepdims",
    "allowzero",
    "mode",
    "auto_pad",
    "ceil_mode",
    "alpha",
    "beta",
    "epsilon",
    "num_heads",
    "blocks",
    "block_size",
    "direction",
    "hidden_size",
    "layout",
    "split",
    "num_outputs",
    "value",
    "equation",
    "saturate",
    "storage_order",
    "output_shape",
    "output_padding",
    "scan_input_axes",
    "num_scan_inputs",
    "sampling_ratio",
    "largest",
    "sorted",
    "K",
    "N",
    "bits",
    "scale",
    "value_ints",
    "start",
    "end",
    "batch_dims",
    "reduction",
    "new_axis",
    "noop_with_empty_axes",
    "starts",
    "ends",
];

/// Texts that attributes hold.
const TEXTS: &[&str] = &[
    "",
    "SAME_UPPER",
    "SAME_LOWER",
    "VALID",
    "NOTSET",
    "reflect",
    "edge",
    "wrap",
    "linear",
    "cubic",
    "nearest",
    "bidirectional",
    "reverse",
    "add",
    "max",
    "ij,jk->ik",
    "...ij->...ji",
    "iii",
    "\u{0}",
];

/// Opset versions at which much changed.
const OPSETS: &[i64] = &[1, 5, 6, 7, 9, 10, 11, 12, 13, 16, 18, 21, 24, 28];

/// A change of a graph.
type GraphChange = fn(&mut GraphProto, &mut NoiseGenerator);

const CHANGES: &[GraphChange] = &[
    rename_operator,
    rewire_input,
    rewire_input,
    rewire_output,
    add_node,
    drop_node,
    repeat_node,
    move_node,
    change_attribute,
    change_attribute,
    add_attribute,
    change_constant,
    change_constant,
    change_declared,
    change_declared,
    add_output,
    make_constant,
    make_sparse,
    nest,
];

/// Changes a model in one to four places.
pub fn mutate(model: &mut ModelProto, noise: &mut NoiseGenerator) {
    for _ in 0..=noise.below(4) {
        match noise.below(16) {
            0 => change_opset(model, noise),
            1 => change_functions(model, noise),
            _ => {
                let Some(graph) = model.graph.as_mut() else { return };
                change_somewhere(graph, noise, 0);
            }
        }
    }
}

/// Puts the nodes of another model behind those of this one and lets them read each other's values.
pub fn join(model: &mut ModelProto, other: &ModelProto, noise: &mut NoiseGenerator) {
    let (Some(graph), Some(other_graph)) = (model.graph.as_mut(), other.graph.as_deref()) else {
        return;
    };
    let known = names(graph);
    let mut added = other_graph.clone();
    let mut map = std::collections::HashMap::new();
    for input in &added.input {
        if let Some(name) = noise.pick(&known).filter(|_| !noise.clone().once_in(3)) {
            map.insert(input.name.clone(), name.clone());
        }
    }
    let mut rename = |name: &mut String| {
        if !name.is_empty() {
            *name = map.get(name).cloned().unwrap_or_else(|| format!("{name}'"));
        }
    };
    for node in &mut added.node {
        node.input.iter_mut().chain(&mut node.output).for_each(&mut rename);
    }
    added.initializer.iter_mut().for_each(|tensor| rename(&mut tensor.name));
    added.input.iter_mut().for_each(|info| rename(&mut info.name));
    added.output.iter_mut().for_each(|info| rename(&mut info.name));
    added.input.retain(|info| info.name.ends_with('\''));
    graph.node.extend(added.node);
    graph.initializer.extend(added.initializer);
    graph.input.extend(added.input);
    graph.output.extend(added.output);
    for import in &other.opset_import {
        if !model.opset_import.iter().any(|own| own.domain == import.domain) {
            model.opset_import.push(import.clone());
        }
    }
    model.functions.extend(other.functions.iter().cloned());
}

/// Changes a graph, or one of those inside it.
fn change_somewhere(graph: &mut GraphProto, noise: &mut NoiseGenerator, depth: usize) {
    let nested = graph.node.iter_mut().flat_map(|node| &mut node.attribute);
    let mut nested: Vec<&mut Box<GraphProto>> = nested.filter_map(|a| a.g.as_mut()).collect();
    if depth < 20
        && noise.once_in(2)
        && let Some(inner) = noise.pick_mut(&mut nested)
    {
        return change_somewhere(inner, noise, depth + 1);
    }
    if let Some(change) = noise.pick(CHANGES) {
        change(graph, noise);
    }
}

/// Every name that a graph mentions.
fn names(graph: &GraphProto) -> Vec<String> {
    let mut all: Vec<String> = graph.input.iter().map(|info| info.name.clone()).collect();
    all.extend(graph.initializer.iter().map(|tensor| tensor.name.clone()));
    all.extend(graph.node.iter().flat_map(|node| node.input.iter().chain(&node.output)).cloned());
    all
}

fn any_operator(noise: &mut NoiseGenerator) -> (String, String) {
    let count = ops::all().count();
    let row = ops::all().nth(noise.below(count));
    row.map_or_else(Default::default, |row| (row.domain.to_owned(), row.name.to_owned()))
}

fn rename_operator(graph: &mut GraphProto, noise: &mut NoiseGenerator) {
    let (domain, name) = any_operator(noise);
    if let Some(node) = noise.pick_mut(&mut graph.node) {
        (node.domain, node.op_type) = (domain, name);
        if noise.once_in(2) {
            node.attribute.clear();
        }
    }
}

fn rewire_input(graph: &mut GraphProto, noise: &mut NoiseGenerator) {
    let mut all = names(graph);
    all.extend([String::new(), "nobody".to_owned()]);
    let Some(node) = noise.pick_mut(&mut graph.node) else { return };
    let name = noise.pick(&all).cloned().unwrap_or_default();
    match noise.below(4) {
        0 => node.input.push(name),
        1 => drop(node.input.pop()),
        _ => {
            if let Some(slot) = noise.pick_mut(&mut node.input) {
                *slot = name;
            }
        }
    }
}

fn rewire_output(graph: &mut GraphProto, noise: &mut NoiseGenerator) {
    let all = names(graph);
    let fresh = format!("v{}", all.len());
    let Some(node) = noise.pick_mut(&mut graph.node) else { return };
    match noise.below(4) {
        0 => node.output.push(fresh),
        1 => drop(node.output.pop()),
        2 => {
            if let (Some(slot), Some(name)) =
                (noise.pick_mut(&mut node.output), noise.clone().pick(&all))
            {
                slot.clone_from(name);
            }
        }
        _ => {
            if let Some(slot) = noise.pick_mut(&mut node.output) {
                slot.clear();
            }
        }
    }
}

/// A node of any operator that reads what there is; its results become outputs.
fn add_node(graph: &mut GraphProto, noise: &mut NoiseGenerator) {
    let all = names(graph);
    let count = ops::all().count();
    let Some(row) = ops::all().nth(noise.below(count)) else { return };
    let number = |least: usize, most: usize, noise: &mut NoiseGenerator| {
        least.saturating_add(noise.below(most.saturating_sub(least).min(3) + 1)).min(8)
    };
    let inputs = number(row.inputs.min, row.inputs.max, noise);
    let outputs = number(row.outputs.min.max(1), row.outputs.max, noise);
    let input = (0..inputs).filter_map(|_| noise.pick(&all).cloned()).collect();
    let output: Vec<String> = (0..outputs).map(|at| format!("w{}.{at}", all.len())).collect();
    if let Some(name) = output.first().filter(|_| noise.once_in(2)) {
        graph.output.push(ValueInfoProto { name: name.clone(), r#type: None });
    }
    let node = NodeProto {
        input,
        output,
        op_type: row.name.to_owned(),
        domain: row.domain.to_owned(),
        ..NodeProto::default()
    };
    graph.node.push(node);
}

fn drop_node(graph: &mut GraphProto, noise: &mut NoiseGenerator) {
    if graph.node.len() > 1 {
        graph.node.remove(noise.below(graph.node.len()));
    }
}

fn repeat_node(graph: &mut GraphProto, noise: &mut NoiseGenerator) {
    let fresh = names(graph).len();
    let Some(mut node) = noise.pick(&graph.node).cloned() else { return };
    let from = node.output.first().cloned();
    for (at, name) in node.output.iter_mut().enumerate().filter(|(_, name)| !name.is_empty()) {
        *name = format!("r{fresh}.{at}");
    }
    if let (Some(slot), Some(from)) = (noise.pick_mut(&mut node.input), from) {
        *slot = from;
    }
    if let Some(name) = node.output.first() {
        graph.output.push(ValueInfoProto { name: name.clone(), r#type: None });
    }
    graph.node.push(node);
}

fn move_node(graph: &mut GraphProto, noise: &mut NoiseGenerator) {
    let from = noise.below(graph.node.len());
    let to = noise.below(graph.node.len());
    if !graph.node.is_empty() {
        graph.node.swap(from, to);
    }
}

fn change_attribute(graph: &mut GraphProto, noise: &mut NoiseGenerator) {
    let mut all: Vec<&mut AttributeProto> =
        graph.node.iter_mut().flat_map(|node| &mut node.attribute).collect();
    let Some(attribute) = noise.pick_mut(&mut all) else { return };
    match noise.below(8) {
        0 => attribute.name = noise.pick(NAMES).copied().unwrap_or_default().to_owned(),
        1 => attribute.r#type = i32::try_from(noise.below(16)).unwrap_or(0),
        2 => attribute.ints.push(noise.integer()),
        3 => {
            let copy = attribute.ints.clone();
            attribute.ints.extend(copy);
        }
        4 => drop(attribute.ints.pop()),
        _ => refill(attribute, noise),
    }
    if attribute.ints.len() > 1024 {
        attribute.ints.truncate(4);
    }
}

/// Other values of the same kinds.
fn refill(attribute: &mut AttributeProto, noise: &mut NoiseGenerator) {
    attribute.i = noise.integer();
    attribute.f = noise.float();
    if let Some(slot) = noise.pick_mut(&mut attribute.ints) {
        *slot = noise.integer();
    }
    if let Some(slot) = noise.pick_mut(&mut attribute.floats) {
        *slot = noise.float();
    }
    if attribute.s.is_some() {
        let text = noise.pick(TEXTS).copied().unwrap_or_default();
        attribute.s = Some(Bytes::from_static(text.as_bytes()));
    }
    if let Some(tensor) = attribute.t.as_mut() {
        change_tensor(tensor, noise);
    }
}

fn add_attribute(graph: &mut GraphProto, noise: &mut NoiseGenerator) {
    let Some(node) = noise.pick_mut(&mut graph.node) else { return };
    let mut attribute = AttributeProto {
        name: noise.pick(NAMES).copied().unwrap_or_default().to_owned(),
        i: noise.integer(),
        f: noise.float(),
        ..AttributeProto::default()
    };
    attribute.ints = (0..noise.below(6)).map(|_| noise.integer()).collect();
    let text = noise.pick(TEXTS).copied().unwrap_or_default();
    attribute.s = Some(Bytes::from_static(text.as_bytes()));
    let kinds = [AttributeType::Int, AttributeType::Int, AttributeType::Ints, AttributeType::Float];
    let kind = noise.pick(&kinds).copied().unwrap_or(AttributeType::String);
    attribute.r#type = if noise.once_in(5) { AttributeType::String } else { kind }.into();
    node.attribute.retain(|old| old.name != attribute.name);
    node.attribute.push(attribute);
}

fn change_constant(graph: &mut GraphProto, noise: &mut NoiseGenerator) {
    if let Some(tensor) = noise.pick_mut(&mut graph.initializer) {
        change_tensor(tensor, noise);
    }
}

/// Other elements, or another shape that may or may not fit them.
fn change_tensor(tensor: &mut TensorProto, noise: &mut NoiseGenerator) {
    match noise.below(6) {
        0 => tensor.dims.push(noise.integer()),
        1 => drop(tensor.dims.pop()),
        2 => {
            if let Some(slot) = noise.pick_mut(&mut tensor.dims) {
                *slot = noise.integer();
            }
        }
        3 => tensor.data_type = i32::try_from(noise.below(18)).unwrap_or(1),
        _ => *tensor = small_tensor(&tensor.name, noise),
    }
}

/// A tensor of few elements, complete and of a usual type.
fn small_tensor(name: &str, noise: &mut NoiseGenerator) -> TensorProto {
    let dims: Vec<i64> =
        (0..noise.below(4)).map(|_| i64::try_from(noise.below(5)).unwrap_or(0)).collect();
    let count = usize::try_from(dims.iter().product::<i64>()).unwrap_or(0);
    let mut tensor = TensorProto { name: name.to_owned(), dims, ..TensorProto::default() };
    match noise.below(4) {
        0 | 1 => {
            tensor.data_type = 7;
            tensor.int64_data = (0..count).map(|_| noise.integer()).collect();
        }
        2 => {
            tensor.data_type = 1;
            tensor.float_data = (0..count).map(|_| noise.float()).collect();
        }
        _ => {
            tensor.data_type = [2, 3, 6, 9][noise.below(4)];
            tensor.int32_data =
                (0..count).map(|_| i32::try_from(noise.below(2)).unwrap_or(0)).collect();
        }
    }
    tensor
}

/// Another type or shape of an input, an output or a value in between.
fn change_declared(graph: &mut GraphProto, noise: &mut NoiseGenerator) {
    let lists = graph.input.iter_mut().chain(&mut graph.output).chain(&mut graph.value_info);
    let mut all: Vec<&mut ValueInfoProto> = lists.collect();
    let Some(info) = noise.pick_mut(&mut all) else { return };
    let Some(type_proto::Value::Tensor(tensor)) =
        info.r#type.as_mut().and_then(|found| found.value.as_mut())
    else {
        return;
    };
    let shape = tensor.shape.get_or_insert_with(TensorShapeProto::default);
    let value = match noise.below(4) {
        0 => None,
        1 => Some(dimension::Value::DimParam(["n", "m", "n*2", "?"][noise.below(4)].to_owned())),
        2 => Some(dimension::Value::DimValue(noise.integer())),
        _ => Some(dimension::Value::DimValue(i64::try_from(noise.below(5)).unwrap_or(1))),
    };
    match noise.below(8) {
        0 => tensor.elem_type = i32::try_from(noise.below(18)).unwrap_or(1),
        1 => tensor.shape = None,
        2 => shape.dim.push(Dimension { value }),
        3 => drop(shape.dim.pop()),
        4 => info.r#type = None,
        _ => {
            if let Some(slot) = noise.pick_mut(&mut shape.dim) {
                slot.value = value;
            }
        }
    }
}

fn add_output(graph: &mut GraphProto, noise: &mut NoiseGenerator) {
    if let Some(name) = noise.pick(&names(graph)).cloned() {
        graph.output.push(ValueInfoProto { name, r#type: None });
    }
}

/// An input becomes a constant: what reads it may be folded.
fn make_constant(graph: &mut GraphProto, noise: &mut NoiseGenerator) {
    if let Some(info) = noise.pick(&graph.input) {
        let tensor = small_tensor(&info.name, noise);
        graph.initializer.retain(|old| old.name != tensor.name);
        graph.initializer.push(tensor);
    }
}

fn make_sparse(graph: &mut GraphProto, noise: &mut NoiseGenerator) {
    let Some(name) = noise.pick(&graph.initializer).map(|tensor| tensor.name.clone()) else {
        return;
    };
    graph.initializer.retain(|old| old.name != name);
    let values = small_tensor(&name, noise);
    let indices = small_tensor("", noise);
    let dims = (0..noise.below(4)).map(|_| noise.integer()).collect();
    graph.sparse_initializer.push(SparseTensorProto {
        values: Some(values),
        indices: Some(indices),
        dims,
    });
}

/// Some nodes move into a branch or into a loop.
fn nest(graph: &mut GraphProto, noise: &mut NoiseGenerator) {
    if graph.node.is_empty() || graph.node.len() > 64 {
        return;
    }
    let node = graph.node.remove(noise.below(graph.node.len()));
    let input = node.input.clone();
    let output = node.output.clone();
    let kind = noise.below(3);
    let mut body = GraphProto { node: vec![node], ..GraphProto::default() };
    let untyped = |name: &str| ValueInfoProto { name: name.to_owned(), r#type: None };
    if kind > 0 {
        let flag = |name: &str| {
            let tensor =
                type_proto::Tensor { elem_type: 9, shape: Some(TensorShapeProto::default()) };
            let r#type = Some(TypeProto { value: Some(type_proto::Value::Tensor(tensor)) });
            ValueInfoProto { name: name.to_owned(), r#type }
        };
        let mut number = flag("loop.i");
        if let Some(type_proto::Value::Tensor(tensor)) =
            number.r#type.as_mut().and_then(|found| found.value.as_mut())
        {
            tensor.elem_type = 7;
        }
        body.input = vec![number, flag("loop.c")];
        body.output.push(flag("loop.c"));
    }
    body.output.extend(output.iter().filter(|name| !name.is_empty()).map(|name| untyped(name)));
    let graph_attribute = |name: &str, g: GraphProto| AttributeProto {
        name: name.to_owned(),
        g: Some(Box::new(g)),
        r#type: AttributeType::Graph.into(),
        ..AttributeProto::default()
    };
    let condition = input.first().cloned().unwrap_or_default();
    let (op_type, input, attribute) = if kind == 0 {
        let branches = vec![
            graph_attribute("then_branch", body.clone()),
            graph_attribute("else_branch", body),
        ];
        ("If", vec![condition], branches)
    } else {
        ("Loop", vec![condition, String::new()], vec![graph_attribute("body", body)])
    };
    graph.node.push(NodeProto {
        op_type: op_type.to_owned(),
        input,
        output,
        attribute,
        ..NodeProto::default()
    });
}

fn change_opset(model: &mut ModelProto, noise: &mut NoiseGenerator) {
    let version = noise.pick(OPSETS).copied().unwrap_or(1);
    match noise.pick_mut(&mut model.opset_import) {
        Some(import) => import.version = version,
        None => model.opset_import.push(OperatorSetIdProto { domain: String::new(), version }),
    }
}

/// Calls of functions: a node that calls one, or a function's body changed.
fn change_functions(model: &mut ModelProto, noise: &mut NoiseGenerator) {
    let Some(graph) = model.graph.as_mut() else { return };
    if model.functions.is_empty() {
        let Some(node) = noise.pick(&graph.node).cloned() else { return };
        let function = galatea_formats::onnx::proto::FunctionProto {
            name: node.op_type.clone(),
            domain: node.domain.clone(),
            input: node.input.clone(),
            output: node.output.clone(),
            node: if noise.once_in(4) { vec![node] } else { graph.node.clone() },
            opset_import: model.opset_import.clone(),
            ..Default::default()
        };
        model.functions.push(function);
        return;
    }
    let Some(function) = noise.pick(&model.functions).cloned() else { return };
    let caller = NodeProto {
        op_type: function.name.clone(),
        domain: function.domain.clone(),
        input: function.input.clone(),
        output: function.output.clone(),
        ..NodeProto::default()
    };
    match noise.below(3) {
        0 => graph.node.push(caller),
        1 => {
            if let Some(other) = noise.pick_mut(&mut model.functions) {
                other.node.push(caller);
            }
        }
        _ => {
            if let Some(other) = noise.pick_mut(&mut model.functions) {
                let mut inside =
                    GraphProto { node: std::mem::take(&mut other.node), ..GraphProto::default() };
                change_somewhere(&mut inside, noise, 0);
                other.node = inside.node;
            }
        }
    }
}
