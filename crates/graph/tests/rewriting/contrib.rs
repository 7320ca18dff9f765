//! Operators of ONNX Runtime's optimiser and quantiser in those which they join.

use super::quantized::{bytes, near};
use super::*;

/// A graph of one node of `com.microsoft`, its inputs, and the values of those of the run.
struct One {
    b: Builder,
    inputs: Vec<Option<ValueId>>,
    values: Vec<Tensor>,
}

impl One {
    fn new() -> Self {
        let mut b = Builder::new();
        b.graph.opsets.insert("com.microsoft".into(), 1);
        b.graph.opsets.insert("ai.galatea".into(), 1);
        Self { b, inputs: Vec::new(), values: Vec::new() }
    }

    fn input(mut self, value: Tensor, dims: &[Dim]) -> Self {
        let id = self.b.graph.value_named(&format!("x{}", self.inputs.len()));
        let fact = Fact::new(value.dtype(), dims.to_vec());
        self.b.graph.value_mut(id).declared = Some(fact);
        self.b.graph.inputs.push(id);
        self.inputs.push(Some(id));
        self.values.push(value);
        self
    }

    fn constant(mut self, value: Tensor) -> Self {
        let id = self.b.constant(value);
        self.inputs.push(Some(id));
        self
    }

    fn absent(mut self) -> Self {
        self.inputs.push(None);
        self
    }

    /// Rewrites and compares all outputs: nothing of `com.microsoft` stays but products of integers.
    fn check(mut self, op: &str, attributes: &[(&str, AttributeValue)], outputs: &[&str]) {
        let named: Attributes =
            attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let ids: Vec<Option<ValueId>> = outputs
            .iter()
            .map(|name| (!name.is_empty()).then(|| self.b.graph.value_named(name)))
            .collect();
        self.b.graph.add_node("com.microsoft", op, "n", &named, self.inputs, ids.clone()).unwrap();
        self.b.graph.outputs = ids.into_iter().flatten().collect();
        let graph = self.b.graph;
        let mut rewritten = graph.clone();
        optimise(&mut rewritten, RewriteLevel::O3).unwrap();
        let plain = |node: &galatea_graph::Node| {
            node.domain != "com.microsoft" || node.op_type == "MatMulIntegerToFloat"
        };
        assert!(rewritten.nodes.iter().all(plain), "{op}: {:?}", op_types(&rewritten));
        // So that the rewritten graph can be stored.
        let unnamed = rewritten.nodes.iter().find(|node| node.attributes().is_none());
        assert!(unnamed.is_none(), "{op}: {unnamed:?}");
        match graph.outputs.len() {
            1 if op.starts_with("QLinear") => near(&graph, &rewritten, &self.values, 1.0),
            _ => check_equal(&graph, &rewritten, &self.values),
        }
    }
}

fn int(value: i64) -> AttributeValue {
    AttributeValue::Int(value)
}

fn words(shape: &[usize], values: &[i32]) -> Tensor {
    Tensor::from_slice(shape, values).unwrap()
}

#[test]
fn embeddings_become_look_ups_and_a_normalisation() {
    let dims = [Dim::symbol("batch"), Dim::symbol("sequence")];
    for case in 0..12 {
        let (segments, positions, sums) = (case % 2 == 1, case / 2 % 2 == 1, case / 4 > 0);
        let mut one = One::new().input(words(&[2, 3], &[4, 0, 1, 3, 3, 2]), &dims);
        one = match segments {
            true => one.input(words(&[2, 3], &[0, 1, 1, 0, 0, 1]), &dims),
            false => one.absent(),
        };
        one = one.constant(noise(&[5, 8], 1)).constant(noise(&[4, 8], 2));
        one = if segments { one.constant(noise(&[2, 8], 3)) } else { one.absent() };
        one = one.constant(noise(&[8], 4)).constant(noise(&[8], 5));
        if positions {
            one = one.absent().input(words(&[2, 3], &[3, 1, 0, 0, 1, 2]), &dims);
        }
        let outputs = if sums { &["y", "", "sum"][..] } else { &["y"] };
        let epsilon = [("epsilon", AttributeValue::Float(1e-6))];
        one.check("EmbedLayerNormalization", &epsilon, outputs);
    }
}

#[test]
fn attention_of_bytes_becomes_a_product_of_integers_and_the_fused_one() {
    let dims = [Dim::symbol("batch"), Dim::symbol("sequence"), Dim::Known(8)];
    for (masked, columns) in [(true, 1), (false, 24)] {
        let scales = noise(&[columns], 6).to_vec::<f32>().unwrap();
        let scales = scales.iter().map(|scale| 0.01 + 0.005 * scale.abs()).collect();
        let mut one = One::new()
            .input(bytes(&[2, 3, 8], DataType::Uint8, 1), &dims)
            .constant(bytes(&[8, 24], DataType::Int8, 2))
            .constant(noise(&[24], 3))
            .constant(Tensor::scalar(0.02_f32))
            .constant(Tensor::vector(scales));
        one = match masked {
            true => one.input(words(&[2, 3], &[1, 1, 0, 0, 1, 1]), &dims[..2]),
            false => one.absent(),
        };
        one = one.constant(Tensor::scalar(120_u8)).constant(Tensor::vector(vec![3_i8; columns]));
        one.check("QAttention", &[("num_heads", int(2))], &["y"]);
    }
}

#[test]
fn means_and_shares_between_quantised_values_become_those_of_floats() {
    let image = |last: bool, dtype| {
        let shape = if last { [1, 5, 4, 3] } else { [1, 3, 5, 4] };
        let zero = match dtype {
            DataType::Int8 => [Tensor::scalar(-5_i8), Tensor::scalar(4_i8)],
            _ => [Tensor::scalar(120_u8), Tensor::scalar(131_u8)],
        };
        let [x, y] = zero;
        let one = One::new().input(bytes(&shape, dtype, 1), &known(&shape));
        let one = one.constant(Tensor::scalar(0.021_f32)).constant(x);
        one.constant(Tensor::vector(vec![0.017_f32])).constant(y)
    };
    for (last, dtype) in
        [(false, DataType::Uint8), (true, DataType::Uint8), (false, DataType::Int8)]
    {
        let order = ("channels_last", int(i64::from(last)));
        image(last, dtype).check("QLinearGlobalAveragePool", std::slice::from_ref(&order), &["y"]);
        let all = [("kernel_shape", ints(&[2, 3])), ("pads", ints(&[1, 0, 0, 1])), order];
        image(last, dtype).check("QLinearAveragePool", &all, &["y"]);
        let all = [("axes", ints(&[2, 3])), ("keepdims", int(0))];
        image(last, dtype).check("QLinearReduceMean", &all, &["y"]);
        for opset in [12, 13] {
            let all = [("axis", int(1)), ("opset", int(opset))];
            image(last, dtype).check("QLinearSoftmax", &all, &["y"]);
        }
    }
}

#[test]
fn quantised_parts_are_joined_as_floats() {
    let one = One::new().constant(Tensor::scalar(0.03_f32)).constant(Tensor::scalar(9_u8));
    let one = one.input(bytes(&[2, 3], DataType::Uint8, 1), &known(&[2, 3]));
    let one = one.constant(Tensor::scalar(0.021_f32)).constant(Tensor::scalar(120_u8));
    let one = one.input(bytes(&[2, 5], DataType::Uint8, 2), &known(&[2, 5]));
    let one = one.constant(Tensor::scalar(0.017_f32)).constant(Tensor::scalar(3_u8));
    one.check("QLinearConcat", &[("axis", int(1))], &["y"]);
}
