//! A node or more for every kernel row, with lengths that make it take each of its ways.

use galatea_graph::{AttributeValue, Attributes, GALATEA_DOMAIN};
use galatea_tensor::Tensor;

use crate::support::node::{Node, bytes, floats, wide};

/// A node, and the folder of its kernels' texts.
pub(crate) struct Specimen {
    pub(crate) family: &'static str,
    pub(crate) node: Node,
}

const CONTRIB: &str = "com.microsoft";

fn with<const N: usize>(all: [(&str, AttributeValue); N]) -> Attributes {
    all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn int(value: i64) -> AttributeValue {
    AttributeValue::Int(value)
}

fn ints(all: &[i64]) -> AttributeValue {
    AttributeValue::Ints(all.to_vec())
}

fn text(text: &str) -> AttributeValue {
    AttributeValue::String(text.into())
}

fn vector(all: &[i64]) -> Tensor {
    Tensor::vector(all.to_vec())
}

/// Positions that are all in bounds of an axis of so many elements.
fn positions(shape: &[usize], most: i64) -> Tensor {
    let count = i64::try_from(shape.iter().product::<usize>()).unwrap();
    Tensor::from_vec(shape, (0..count).map(|at| at % most).collect::<Vec<i64>>()).unwrap()
}

/// Integers of 32 bits.
fn words(shape: &[usize]) -> Tensor {
    let count = i32::try_from(shape.iter().product::<usize>()).unwrap();
    Tensor::from_vec(shape, (0..count).map(|at| at - 9).collect::<Vec<i32>>()).unwrap()
}

fn bools(shape: &[usize]) -> Tensor {
    let count = shape.iter().product::<usize>();
    Tensor::from_vec(shape, (0..count).map(|at| at % 3 == 0).collect::<Vec<bool>>()).unwrap()
}

/// All of them.
pub(crate) fn all() -> Vec<Specimen> {
    let families: [(&'static str, Vec<Node>); 12] = [
        ("attention", attention()),
        ("blocks", few_bits()),
        ("conv", [convolutions(), byte_convolutions()].concat()),
        ("elementwise", [elements(), scaled()].concat()),
        ("matmul", [products(), sparse_products(), byte_products()].concat()),
        ("movement", [moves(), picks(), made()].concat()),
        ("normalize", norms()),
        ("pooling", pools()),
        ("quantise", quantised()),
        ("reduce", reductions()),
        ("resize", sizes()),
        ("rotary", turns()),
    ];
    let own = |(family, nodes): (&'static str, Vec<Node>)| {
        nodes.into_iter().map(move |node| Specimen { family, node })
    };
    let mut all: Vec<Specimen> = families.into_iter().flat_map(own).collect();
    all.extend(softmaxes().into_iter().map(|node| Specimen { family: "softmax", node }));
    all
}

/// Specimens whose kernels are made of other families' too, which are to be seen there first.
pub(crate) fn composed() -> Vec<Specimen> {
    let own = |node| Specimen { family: "recurrent", node };
    recurrences().into_iter().map(own).collect()
}

fn attention() -> Vec<Node> {
    let mut all = Vec::new();
    for (rows, keys) in [(1, 200), (70, 133), (128, 128)] {
        for width in [64, 33] {
            let of = |length: usize| floats(&[1, 2, length, width], 1.0);
            let node = || Node::new(GALATEA_DOMAIN, "Attention").input(of(rows));
            let node = || node().input(of(keys)).input(of(keys));
            all.push(node());
            all.push(node().input(floats(&[1, 1, rows, keys], 1.0)));
        }
        let packed = |length: usize, width: usize| floats(&[2, length, width], 1.0);
        let heads =
            with([("q_num_heads", int(4)), ("kv_num_heads", int(2)), ("is_causal", int(1))]);
        let node = Node::new("", "Attention").opset(25).with(heads).input(packed(rows, 256));
        all.push(node.input(packed(keys, 128)).input(packed(keys, 128)));
    }
    let node = Node::new(CONTRIB, "MultiHeadAttention").with(with([("num_heads", int(4))]));
    let of = |length: usize| floats(&[2, length, 256], 1.0);
    all.push(node.input(of(70)).input(of(133)).input(of(133)));
    all
}

fn recurrences() -> Vec<Node> {
    let layer = |op, gates: usize, hidden: usize, batch: usize| {
        let x = floats(&[4, batch, 16], 1.0);
        let weights = |columns: usize| floats(&[2, gates * hidden, columns], 0.2);
        let node = Node::new("", op).opset(14).with(with([("direction", text("bidirectional"))]));
        let node = node.input(x).constant(weights(16)).constant(weights(hidden));
        node.constant(floats(&[2, 2 * gates * hidden], 0.1))
    };
    let mut all = Vec::new();
    for (op, gates) in [("LSTM", 4), ("GRU", 3), ("RNN", 1)] {
        // A workgroup's layer, steps, steps of odd lengths, and steps behind matrix multiplications.
        for (hidden, batch) in [(32, 2), (256, 3), (255, 1), (256, 80)] {
            all.push(layer(op, gates, hidden, batch).outputs(2));
        }
        let lengths = Tensor::vector(vec![4_i32, 2, 0]);
        let clipped = with([("clip", AttributeValue::Float(2.0))]);
        let node = layer(op, gates, 256, 3).with(clipped).input(lengths);
        all.push(node.input(floats(&[2, 3, 256], 1.0)));
    }
    let linear = with([("linear_before_reset", int(1)), ("layout", int(1))]);
    let batch = |node: Node| node.with(linear.clone()).outputs(2);
    all.push(batch(layer("GRU", 3, 256, 3)));
    all.push(batch(layer("GRU", 3, 48, 3)));
    let open = layer("LSTM", 4, 256, 3).with(with([("input_forget", int(1))])).absent().absent();
    all.push(open.absent().constant(floats(&[2, 768], 0.3)).outputs(3));
    all
}

fn few_bits() -> Vec<Node> {
    let node = |bits: usize, block: usize, rows: usize| {
        let (k, n) = (256_usize, 72_usize);
        let blocks = k.div_ceil(block);
        let length = |length: usize| int(i64::try_from(length).unwrap());
        let attributes = with([
            ("K", length(k)),
            ("N", length(n)),
            ("bits", length(bits)),
            ("block_size", length(block)),
        ]);
        let node =
            Node::new(CONTRIB, "MatMulNBits").with(attributes).input(floats(&[rows, k], 1.0));
        node.constant(bytes(&[n, blocks, block * bits / 8])).constant(floats(&[n * blocks], 0.1))
    };
    let mut all = Vec::new();
    for rows in [1, 5, 40] {
        all.push(node(4, 32, rows));
        all.push(node(4, 128, rows).constant(bytes(&[72])));
        all.push(node(8, 64, rows));
    }
    all
}

fn convolutions() -> Vec<Node> {
    let node = |op, image: &[usize]| Node::new("", op).input(floats(image, 1.0));
    let mut all = vec![
        node("Conv", &[1, 3, 32, 32]).constant(floats(&[64, 3, 3, 3], 1.0)),
        node("Conv", &[1, 64, 32, 32]).constant(floats(&[64, 64, 3, 3], 1.0)),
        node("Conv", &[1, 64, 32, 32]).constant(floats(&[128, 64, 1, 1], 1.0)),
        node("Conv", &[1, 17, 9, 7]).input(floats(&[33, 17, 3, 3], 1.0)),
        node("Conv", &[1, 32, 64, 64]).input(floats(&[64, 32, 3, 3], 1.0)),
        node("Conv", &[2, 3, 19]).constant(floats(&[4, 3, 5], 1.0)),
        node("Conv", &[1, 2, 5, 6, 7]).constant(floats(&[3, 2, 2, 3, 3], 1.0)),
        node("ConvTranspose", &[2, 6, 5, 4]).constant(floats(&[6, 5, 3, 3], 1.0)),
        node("ConvTranspose", &[2, 6, 5, 4]).input(floats(&[6, 5, 3, 3], 1.0)),
    ];
    let grouped = |group: i64| with([("group", int(group)), ("pads", ints(&[1, 1, 1, 1]))]);
    all.push(
        node("Conv", &[1, 32, 14, 14]).with(grouped(32)).constant(floats(&[32, 1, 3, 3], 1.0)),
    );
    all.push(
        node("Conv", &[1, 32, 14, 14]).with(grouped(2)).constant(floats(&[64, 16, 3, 3], 1.0)),
    );
    for (last, image, result) in [(0, [2, 5, 6, 7], [2, 9, 6, 7]), (1, [2, 6, 7, 5], [2, 6, 7, 9])]
    {
        for activation in ["", "Relu", "Silu"] {
            let attributes = with([
                ("channels_last", int(last)),
                ("pads", ints(&[1, 1, 1, 1])),
                ("activation", text(activation)),
            ]);
            let node = Node::new(GALATEA_DOMAIN, "FusedConv").with(attributes);
            let node = node.input(floats(&image, 2.0)).constant(floats(&[9, 5, 3, 3], 1.0));
            all.push(node.constant(floats(&[9], 1.0)).input(floats(&result, 3.0)));
        }
    }
    let relu = with([("activation", text("Relu"))]);
    let node = Node::new(CONTRIB, "FusedConv").with(relu).input(floats(&[1, 8, 9, 9], 1.0));
    all.push(node.constant(floats(&[16, 8, 3, 3], 1.0)).constant(floats(&[16], 1.0)));
    for (domain, op) in
        [(GALATEA_DOMAIN, "ConvNhwc"), (CONTRIB, "NhwcFusedConv"), (CONTRIB, "NhwcConv")]
    {
        let node = Node::new(domain, op).input(floats(&[1, 9, 9, 8], 1.0));
        all.push(node.constant(floats(&[16, 8, 3, 3], 1.0)).constant(floats(&[16], 1.0)));
    }
    all
}

/// Operators of one float.
const ONE: &[&str] = &[
    "Abs",
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "Ceil",
    "Celu",
    "Cos",
    "Cosh",
    "Elu",
    "Erf",
    "Exp",
    "Floor",
    "Gelu",
    "HardSigmoid",
    "HardSwish",
    "IsInf",
    "IsNaN",
    "LeakyRelu",
    "Log",
    "Mish",
    "Neg",
    "Reciprocal",
    "Relu",
    "Round",
    "Selu",
    "Shrink",
    "Sigmoid",
    "Sign",
    "Sin",
    "Sinh",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Tan",
    "Tanh",
    "ThresholdedRelu",
];
/// Operators of one float that is scaled before and behind.
const SCALED: &[&str] = &["Affine", "ParametricSoftplus", "ScaledTanh"];
/// Operators of two floats.
const TWO: &[&str] = &[
    "Add",
    "Div",
    "Equal",
    "Greater",
    "GreaterOrEqual",
    "Less",
    "LessOrEqual",
    "Max",
    "Mean",
    "Min",
    "Mul",
    "PRelu",
    "Pow",
    "Sub",
    "Sum",
];
/// Operators of two truth values.
const TRUTHS: &[&str] = &["And", "Equal", "Or", "Xor"];
/// Operators of two integers.
const INTEGERS: &[&str] = &["Add", "Less", "Max", "Mul", "Sub"];
/// Operators of the bits of two words.
const BITS: &[&str] = &["BitwiseAnd", "BitwiseOr", "BitwiseXor"];

fn elements() -> Vec<Node> {
    let shape = &[6, 8];
    let mut all: Vec<Node> =
        ONE.iter().map(|op| Node::new("", op).input(floats(shape, 4.0))).collect();
    let factor = with([("scale", AttributeValue::Float(0.75))]);
    all.push(Node::new("", "Scale").with(factor).input(floats(shape, 4.0)));
    for op in SCALED {
        let numbers =
            [("alpha", AttributeValue::Float(0.5)), ("beta", AttributeValue::Float(-1.25))];
        all.push(Node::new("", op).with(with(numbers)).input(floats(shape, 4.0)));
    }
    all.extend(
        TWO.iter().map(|op| Node::new("", op).input(floats(shape, 4.0)).input(floats(shape, 2.0))),
    );
    for other in [&[8][..], &[6, 1], &[1]] {
        all.push(Node::new("", "Add").input(floats(shape, 4.0)).input(floats(other, 2.0)));
    }
    all.push(
        Node::new("", "Mul").input(floats(&[2, 1, 3, 1, 4], 4.0)).input(floats(&[5, 1, 2, 1], 1.0)),
    );
    all.extend(TRUTHS.iter().map(|op| Node::new("", op).input(bools(shape)).input(bools(shape))));
    all.push(Node::new("", "Not").input(bools(shape)));
    for op in INTEGERS {
        all.push(Node::new("", op).input(wide(shape)).input(wide(shape)));
        all.push(Node::new("", op).input(bytes(shape)).input(bytes(shape)));
    }
    let left = with([("direction", text("LEFT"))]);
    all.push(Node::new("", "BitShift").with(left).input(bytes(shape)).input(bytes(shape)));
    all.push(Node::new("", "BitwiseNot").input(words(shape)));
    all.extend(BITS.iter().map(|op| Node::new("", op).input(words(shape)).input(words(shape))));
    for op in ["Div", "Mod"] {
        all.push(Node::new("", op).input(wide(shape)).constant(Tensor::scalar(7_i64)));
        all.push(Node::new("", op).input(words(shape)).constant(Tensor::scalar(7_i32)));
    }
    for to in [1, 10, 6, 7, 9, 2, 3] {
        let to = || with([("to", int(to))]);
        all.push(Node::new("", "Cast").with(to()).input(floats(shape, 4.0)));
        all.push(Node::new("", "Cast").with(to()).input(wide(shape)));
        all.push(Node::new("", "Cast").with(to()).input(bools(shape)));
    }
    all.push(Node::new("", "CastLike").input(wide(shape)).input(floats(shape, 1.0)));
    let clip = Node::new("", "Clip").input(floats(shape, 4.0)).constant(Tensor::scalar(-1.0_f32));
    all.push(clip.constant(Tensor::scalar(1.0_f32)));
    let fmod = with([("fmod", int(1))]);
    all.push(Node::new("", "Mod").with(fmod).input(floats(shape, 4.0)).input(floats(shape, 2.0)));
    let node = Node::new("", "Where").input(bools(shape)).input(floats(shape, 1.0));
    all.push(node.input(floats(&[8], 1.0)));
    let row = |size: f32| floats(&[3], size);
    let node = Node::new("", "BatchNormalization").input(floats(&[2, 3, 5, 7], 2.0));
    let node = node.constant(row(1.0)).constant(row(2.0)).constant(row(0.5));
    all.push(node.constant(Tensor::vector(vec![0.5_f32, 2.0, 1.5])));
    all.push(Node::new("", "Swish").opset(24).input(floats(shape, 4.0)));
    let node = Node::new("", "SwiGLU").opset(28).input(floats(shape, 4.0));
    all.push(node.input(floats(shape, 2.0)));
    all.extend(chains());
    all
}

fn chains() -> Vec<Node> {
    let shape = &[6, 8];
    let names = ["Sub", "Sigmoid", "Mul", "Clip", "Div", "Add"];
    let names = AttributeValue::Strings(names.iter().map(|&name| name.into()).collect());
    let attributes = with([
        ("functions", names),
        ("operands", ints(&[0, 1, -1, -2, 0, -3, -4, 2, 1, -5])),
        ("parameters", AttributeValue::Floats(vec![-0.5, 0.5])),
        ("parameter_counts", ints(&[0, 0, 0, 2, 0, 0])),
    ]);
    let node = Node::new(GALATEA_DOMAIN, "FusedElementwise").with(attributes);
    let node = node.input(floats(shape, 1.0)).input(floats(shape, 1.0));
    let mut all = vec![node.input(floats(&[1], 1.0))];
    for op in ["FastGelu", "Gelu", "QuickGelu"] {
        all.push(Node::new(CONTRIB, op).input(floats(shape, 4.0)));
    }
    all.push(Node::new(CONTRIB, "BiasGelu").input(floats(shape, 4.0)).constant(floats(&[8], 1.0)));
    all.push(
        Node::new(CONTRIB, "BiasAdd")
            .input(floats(shape, 4.0))
            .constant(floats(&[8], 1.0))
            .input(floats(shape, 2.0)),
    );
    all
}

/// Products with matrices of blocks of zeros, and of two zeros of each four elements.
fn sparse_products() -> Vec<Node> {
    let left: [fn(usize, usize) -> bool; 2] =
        [|k, n| (k / 64 + n / 64).is_multiple_of(4), |k, n| (k % 4 + n).is_multiple_of(2)];
    let mut all = Vec::new();
    for left in left {
        for turned in [0, 1] {
            let shape = if turned == 1 { [256, 512] } else { [512, 256] };
            let mut values = floats(&shape, 1.0).to_vec::<f32>().unwrap();
            for (at, value) in values.iter_mut().enumerate() {
                let (row, column) = (at / shape[1], at % shape[1]);
                let (k, n) = if turned == 1 { (column, row) } else { (row, column) };
                *value = if left(k, n) { *value } else { 0.0 };
            }
            for rows in [1, 40] {
                let node = Node::new("", "Gemm").with(with([("transB", int(turned))]));
                let node = node.input(floats(&[rows, 512], 1.0));
                all.push(node.constant(Tensor::from_vec(&shape, values.clone()).unwrap()));
            }
        }
    }
    all
}

fn products() -> Vec<Node> {
    let plain = |a: &[usize], b: &[usize]| {
        Node::new("", "MatMul").input(floats(a, 1.0)).constant(floats(b, 1.0))
    };
    let mut all = vec![
        plain(&[1, 256], &[256, 128]),
        plain(&[12, 256], &[256, 128]),
        plain(&[200, 256], &[256, 256]),
        plain(&[37, 75], &[75, 35]),
        plain(&[2, 3, 40, 64], &[64, 72]),
    ];
    all.push(
        Node::new("", "MatMul").input(floats(&[4, 70, 64], 1.0)).input(floats(&[4, 64, 72], 1.0)),
    );
    let turned = with([("transB", int(1)), ("beta", AttributeValue::Float(2.0))]);
    let node = Node::new("", "Gemm").with(turned).input(floats(&[70, 64], 1.0));
    all.push(node.constant(floats(&[72, 64], 1.0)).constant(floats(&[72], 1.0)));
    for name in ["", "Relu", "Gelu", "Silu"] {
        for rows in [1, 64] {
            let node =
                Node::new(GALATEA_DOMAIN, "FusedMatMul").with(with([("activation", text(name))]));
            let node = node.input(floats(&[2, rows, 64], 1.0)).constant(floats(&[64, 96], 1.0));
            all.push(node.constant(floats(&[96], 1.0)).input(floats(&[2, rows, 96], 1.0)));
        }
    }
    let node = Node::new(GALATEA_DOMAIN, "FusedMatMul").with(with([("gated", int(1))]));
    let node = node.input(floats(&[64, 64], 1.0)).constant(floats(&[64, 96], 1.0));
    all.push(node.absent().input(floats(&[64, 96], 1.0)));
    let turned = || with([("transB", int(1))]);
    for op in ["FusedMatMul", "TransposeMatMul"] {
        let node = Node::new(CONTRIB, op).with(turned());
        all.push(node.input(floats(&[70, 64], 1.0)).input(floats(&[72, 64], 1.0)));
    }
    let relu = with([("activation", text("Relu"))]);
    let node = Node::new(CONTRIB, "FusedGemm").with(relu).input(floats(&[70, 64], 1.0));
    all.push(node.input(floats(&[64, 72], 1.0)).input(floats(&[72], 1.0)));
    all
}

fn scale() -> Tensor {
    Tensor::scalar(0.5_f32)
}

fn zero() -> Tensor {
    Tensor::scalar(3_u8)
}

fn byte_products() -> Vec<Node> {
    let mut all = Vec::new();
    let node = Node::new("", "MatMulInteger").input(bytes(&[70, 68])).input(bytes(&[68, 72]));
    all.push(node.clone());
    all.push(node.input(Tensor::scalar(3_u8)).input(Tensor::scalar(5_u8)));
    let node = Node::new("", "QLinearMatMul").input(bytes(&[5, 9])).input(scale()).input(zero());
    let node = node.input(bytes(&[9, 7])).input(scale()).input(zero());
    all.push(node.input(scale()).input(zero()));
    let node = Node::new(CONTRIB, "MatMulIntegerToFloat").input(bytes(&[5, 9]));
    all.push(node.input(bytes(&[9, 7])).input(scale()).input(scale()));
    let node = Node::new(CONTRIB, "DynamicQuantizeMatMul").input(floats(&[5, 9], 1.0));
    let node = node.input(bytes(&[9, 7])).input(floats(&[7], 1.0));
    all.push(node.absent().input(floats(&[7], 1.0)));
    all
}

/// Elements with scales and zero points.
fn scaled() -> Vec<Node> {
    let shape = &[6, 8];
    let mut all = Vec::new();
    for domain in ["", CONTRIB] {
        let node = Node::new(domain, "QuantizeLinear").input(floats(shape, 9.0)).input(scale());
        all.push(node.input(zero()));
        let node = Node::new(domain, "DequantizeLinear").input(bytes(shape));
        all.push(node.input(floats(&[8], 1.0)).input(bytes(&[8])));
    }
    all.push(Node::new("", "DequantizeLinear").input(words(shape)).input(scale()));
    let one = |node: Node| node.input(bytes(shape)).input(scale()).input(zero());
    for op in ["QLinearAdd", "QLinearMul"] {
        all.push(one(one(Node::new(CONTRIB, op))).input(scale()).input(zero()));
    }
    for op in ["QLinearLeakyRelu", "QLinearSigmoid"] {
        all.push(one(Node::new(CONTRIB, op)).input(scale()).input(zero()));
    }
    let node = Node::new(CONTRIB, "QLinearWhere").input(bools(shape));
    all.push(one(one(node)).input(scale()).input(zero()));
    all
}

fn quantised() -> Vec<Node> {
    let table = AttributeValue::Ints((0..256).rev().collect());
    let table = with([("table", table), ("dtype", int(2))]);
    vec![
        Node::new("", "DynamicQuantizeLinear").input(floats(&[5, 9], 1.0)).outputs(3),
        Node::new(GALATEA_DOMAIN, "LookUp").with(table).input(bytes(&[5, 9])),
    ]
}

fn byte_convolutions() -> Vec<Node> {
    let (x, w) = ([1, 3, 9, 9], [5, 3, 3, 3]);
    let node = Node::new("", "ConvInteger").input(bytes(&x)).input(bytes(&w));
    let mut all = vec![node.clone(), node.input(zero()).input(zero())];
    let single = || with([("group", AttributeValue::Int(3))]);
    let node = || Node::new("", "ConvInteger").with(single()).input(bytes(&x));
    all.push(node().input(bytes(&[3, 1, 3, 3])).input(zero()).input(zero()));
    let quantised = |domain: &'static str, op: &'static str| {
        let node = Node::new(domain, op).input(bytes(&x)).input(scale()).input(zero());
        let node = node.input(bytes(&w)).input(floats(&[5], 1.0)).input(bytes(&[5]));
        node.input(scale()).input(zero()).input(words(&[5]))
    };
    all.extend(["", CONTRIB].map(|domain| quantised(domain, "QLinearConv")));
    let node = quantised(GALATEA_DOMAIN, "QLinearConvAdd").input(bytes(&[1, 5, 7, 7]));
    all.push(node.input(scale()).input(zero()).input(scale()).input(zero()));
    all
}

/// Data of elements of every size.
fn every(make: impl Fn(Tensor) -> Node, shape: &[usize]) -> [Node; 3] {
    [make(floats(shape, 2.0)), make(bytes(shape)), make(wide(shape))]
}

fn moves() -> Vec<Node> {
    let mut all = Vec::new();
    for (shape, perm) in [(&[40, 33][..], &[1_i64, 0][..]), (&[2, 9, 3, 8], &[0, 2, 1, 3])] {
        let perm = with([("perm", ints(perm))]);
        all.extend(every(|data| Node::new("", "Transpose").with(perm.clone()).input(data), shape));
    }
    let slice = |data| {
        let node = Node::new("", "Slice").input(data).constant(vector(&[8]));
        node.constant(vector(&[1])).constant(vector(&[1])).constant(vector(&[-2]))
    };
    all.extend(every(slice, &[4, 9]));
    let split = |data| {
        let node = Node::new("", "Split").with(with([("axis", int(1))])).input(data);
        node.constant(vector(&[2, 3, 4])).outputs(3)
    };
    all.extend(every(split, &[4, 9]));
    let expand = |data| Node::new("", "Expand").input(data).constant(vector(&[2, 3, 5]));
    all.extend(every(expand, &[3, 1]));
    all.extend(every(|data| Node::new("", "Tile").input(data).constant(vector(&[2, 3])), &[3, 5]));
    let two = || with([("blocksize", int(2))]);
    all.extend(every(|data| Node::new("", "DepthToSpace").with(two()).input(data), &[1, 8, 3, 5]));
    all.extend(every(|data| Node::new("", "SpaceToDepth").with(two()).input(data), &[1, 2, 4, 6]));
    let join = |make: &dyn Fn(&[usize]) -> Tensor| {
        let node = Node::new("", "Concat").with(with([("axis", int(1))]));
        [[3, 5], [3, 1], [3, 8]].iter().fold(node, |node, shape| node.input(make(shape)))
    };
    all.extend([join(&|shape| floats(shape, 1.0)), join(&bytes), join(&wide)]);
    for mode in ["constant", "reflect", "edge", "wrap"] {
        let mode = with([("mode", text(mode))]);
        let pads = || vector(&[1, 2, 0, 3, -1, 1]);
        let node = |data| Node::new("", "Pad").with(mode.clone()).input(data).constant(pads());
        all.extend(every(node, &[3, 5, 4]));
    }
    all
}

fn picks() -> Vec<Node> {
    let mut all = Vec::new();
    all.extend(every(
        |data| Node::new("", "Gather").input(data).input(positions(&[2, 3], 9)),
        &[9, 8],
    ));
    let axis = || with([("axis", int(1))]);
    let node = |data| {
        Node::new("", "GatherElements").with(axis()).input(data).input(positions(&[3, 4, 2], 5))
    };
    all.extend(every(node, &[3, 5, 2]));
    all.extend(every(
        |data| Node::new("", "GatherND").input(data).input(positions(&[3, 2], 3)),
        &[3, 4, 8],
    ));
    for reduction in ["none", "add", "mul", "max", "min"] {
        let attributes = || with([("axis", int(1)), ("reduction", text(reduction))]);
        let node = Node::new("", "ScatterElements").with(attributes()).input(floats(&[3, 5], 2.0));
        all.push(node.input(positions(&[2, 3], 5)).input(floats(&[2, 3], 3.0)));
        let node = Node::new("", "ScatterND").with(with([("reduction", text(reduction))]));
        let node = node.input(floats(&[4, 7], 2.0)).input(positions(&[3, 1], 4));
        all.push(node.input(floats(&[3, 7], 3.0)));
    }
    let node = Node::new("", "ScatterND").input(wide(&[3, 4])).input(positions(&[2, 2], 3));
    all.push(node.input(wide(&[2])));
    all
}

fn made() -> Vec<Node> {
    let triangle = |domain| {
        let node =
            move |data| Node::new(domain, "Trilu").input(data).constant(Tensor::scalar(1_i64));
        every(node, &[2, 5, 7])
    };
    let mut all: Vec<Node> = triangle("").into();
    all.extend(triangle(CONTRIB));
    let node = Node::new("", "OneHot").input(positions(&[2, 3], 5)).constant(Tensor::scalar(5_i64));
    all.push(node.constant(Tensor::vector(vec![0.0_f32, 1.0])));
    all.push(Node::new("", "EyeLike").input(floats(&[4, 7], 1.0)));
    all
}

fn norms() -> Vec<Node> {
    let mut all = Vec::new();
    for shape in [&[5, 7][..], &[2, 768], &[1, 17_000], &[2100, 12]] {
        let len = *shape.last().unwrap();
        let x = || floats(shape, 3.0);
        let row = |size| floats(&[len], size);
        let node = Node::new("", "LayerNormalization").input(x()).constant(row(1.0));
        all.push(node.clone().constant(row(0.5)));
        all.push(node.constant(row(0.5)).outputs(3));
        all.push(Node::new("", "RMSNormalization").opset(23).input(x()).constant(row(1.0)));
        for domain in ["", CONTRIB] {
            let node = Node::new(domain, "SimplifiedLayerNormalization").input(x());
            all.push(node.constant(row(1.0)));
        }
        let node = Node::new(CONTRIB, "SkipLayerNormalization").input(x()).input(x());
        let node = node.constant(row(1.0)).constant(row(0.5)).constant(row(0.25));
        all.push(node.outputs(4));
        let node = Node::new(CONTRIB, "SkipSimplifiedLayerNormalization").input(x()).input(x());
        all.push(node.constant(row(1.0)));
    }
    let x = || floats(&[2, 6, 5, 3], 2.0);
    let channels = || floats(&[6], 1.0);
    let node = Node::new("", "InstanceNormalization").input(x());
    all.push(node.constant(channels()).constant(channels()));
    let node = Node::new("", "GroupNormalization").with(with([("num_groups", int(3))]));
    all.push(node.input(x()).constant(channels()).constant(channels()));
    all.push(Node::new("", "LRN").with(with([("size", int(3))])).input(x()));
    all
}

fn pools() -> Vec<Node> {
    let window = || {
        with([
            ("kernel_shape", ints(&[3, 3])),
            ("strides", ints(&[2, 2])),
            ("pads", ints(&[1, 1, 1, 1])),
        ])
    };
    let mut all = Vec::new();
    for op in ["AveragePool", "LpPool", "MaxPool"] {
        all.push(Node::new("", op).with(window()).input(floats(&[2, 3, 7, 9], 2.0)));
    }
    all.push(Node::new("", "MaxPool").with(window()).input(floats(&[2, 3, 7, 9], 2.0)).outputs(2));
    for channels in [3, 8] {
        for op in ["AveragePoolNhwc", "MaxPoolNhwc"] {
            let node = Node::new(GALATEA_DOMAIN, op).with(window());
            all.push(node.input(floats(&[2, 7, 9, channels], 2.0)));
        }
    }
    let node = Node::new(CONTRIB, "NhwcMaxPool").with(window());
    all.push(node.input(bytes(&[2, 7, 9, 8])));
    all
}

fn reductions() -> Vec<Node> {
    const KINDS: &[&str] = &[
        "ReduceL1",
        "ReduceL2",
        "ReduceLogSum",
        "ReduceLogSumExp",
        "ReduceMax",
        "ReduceMean",
        "ReduceMin",
        "ReduceProd",
        "ReduceSum",
        "ReduceSumSquare",
    ];
    let mut all = Vec::new();
    for op in KINDS {
        for (shape, axis) in [(&[5, 7][..], 1), (&[2, 5000], 1), (&[33, 3], 0)] {
            all.push(Node::new("", op).input(floats(shape, 1.0)).constant(vector(&[axis])));
        }
    }
    all.push(Node::new("", "ReduceSum").input(wide(&[4, 9])).constant(vector(&[1])));
    all.push(Node::new("", "ReduceMax").input(bytes(&[4, 9])).constant(vector(&[1])));
    for op in ["GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"] {
        all.push(Node::new("", op).input(floats(&[2, 3, 7, 9], 1.0)));
    }
    all.push(Node::new(GALATEA_DOMAIN, "GlobalAveragePoolNhwc").input(floats(&[2, 7, 9, 8], 1.0)));
    for (shape, axis) in [(&[5, 7][..], 1), (&[2, 5000], 1), (&[33, 3], 0)] {
        for op in ["ArgMax", "ArgMin"] {
            all.push(Node::new("", op).with(with([("axis", int(axis))])).input(floats(shape, 1.0)));
        }
        for (op, opset) in [("CumSum", 21), ("CumProd", 26)] {
            let node = Node::new("", op).opset(opset).input(floats(shape, 1.0));
            all.push(node.constant(Tensor::scalar(axis)));
        }
    }
    all.push(Node::new("", "ArgMax").input(words(&[4, 9])));
    all.push(Node::new("", "CumSum").input(wide(&[4, 9])).constant(Tensor::scalar(1_i64)));
    for (shape, k) in [(&[3, 10][..], 4), (&[2, 9000], 50)] {
        let node = Node::new("", "TopK").input(floats(shape, 9.0)).constant(vector(&[k]));
        all.push(node.outputs(2));
    }
    let node = Node::new("", "TopK").input(words(&[3, 10])).constant(vector(&[4]));
    all.push(node.outputs(2));
    all
}

fn sizes() -> Vec<Node> {
    let mut all = Vec::new();
    for mode in ["nearest", "linear", "cubic"] {
        for place in ["half_pixel", "align_corners", "asymmetric"] {
            let attributes =
                with([("mode", text(mode)), ("coordinate_transformation_mode", text(place))]);
            let node = Node::new("", "Resize").with(attributes).input(floats(&[1, 2, 5, 7], 2.0));
            all.push(node.absent().absent().constant(vector(&[1, 2, 9, 4])));
        }
    }
    all
}

fn turns() -> Vec<Node> {
    let mut all = Vec::new();
    for (perm, shape) in [([0, 1, 2, 3], [2, 3, 5, 8]), ([0, 2, 1, 3], [2, 5, 3, 8])] {
        let node = Node::new(GALATEA_DOMAIN, "Rotary").with(with([("perm", ints(&perm))]));
        let tables = || floats(&[5, 4], 1.0);
        all.push(node.input(floats(&shape, 1.0)).input(tables()).input(tables()));
    }
    for interleaved in [0, 1] {
        let attributes = || with([("interleaved", int(interleaved)), ("num_heads", int(5))]);
        let x = || floats(&[2, 3, 40], 1.0);
        let table = || floats(&[10, 4], 1.0);
        let node = Node::new("", "RotaryEmbedding").opset(23).with(attributes()).input(x());
        all.push(node.input(table()).input(table()).input(positions(&[2, 3], 10)));
        let node = Node::new("", "RotaryEmbedding").opset(23).with(attributes()).input(x());
        let own = || floats(&[2, 3, 4], 1.0);
        all.push(node.input(own()).input(own()));
        let node = Node::new(CONTRIB, "RotaryEmbedding").with(attributes()).input(x());
        all.push(node.input(positions(&[2, 3], 10)).input(table()).input(table()));
    }
    all
}

fn softmaxes() -> Vec<Node> {
    let mut all = Vec::new();
    for (shape, axis) in
        [(&[5, 7][..], 1), (&[2, 768], 1), (&[3, 1023], 1), (&[1, 20_000], 1), (&[33, 3], 0)]
    {
        for op in ["Softmax", "LogSoftmax"] {
            all.push(Node::new("", op).with(with([("axis", int(axis))])).input(floats(shape, 6.0)));
        }
    }
    all
}
