//! Products of dense matrices: every variant on awkward lengths, and the operators in sessions.

use crate::support;
use galatea_gpu::StepTrial;
use galatea_gpu::matmul::{MatMulVariant, TransposedOperands};
use galatea_graph::{AttributeValue, Attributes, Dim, Fact, Graph, evaluate};
use galatea_runtime::{NodeShapes, ValueShape};
use galatea_runtime::{OptimiseLevel, Precision, Run, SessionOptions};
use galatea_tensor::{DataType, Tensor, Tolerance, compare, f16};

/// Repeatable values between -1 and 1.
fn values(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12_345);
    (0..count)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f32::from(u16::try_from(state >> 16).unwrap()) / 32_768.0 - 1.0
        })
        .collect()
}

fn floats(shape: &[usize], dtype: DataType, seed: u32) -> Tensor {
    let all = values(shape.iter().product(), seed);
    match dtype {
        DataType::Fp16 => {
            let halves: Vec<f16> = all.into_iter().map(f16::from_f32).collect();
            Tensor::from_vec(shape, halves).unwrap()
        }
        _ => Tensor::from_vec(shape, all).unwrap(),
    }
}

fn bytes(tensor: &Tensor) -> &[u8] {
    tensor.as_bytes().unwrap()
}

/// Returns the bytes of an operand with a poisoned tail: a matrix multiplication that reads it by mistake gives
/// NaN.
fn poisoned(tensor: &Tensor) -> Vec<u8> {
    let mut all = bytes(tensor).to_vec();
    let end = all.len().next_multiple_of(256);
    all.resize(end, 0xff);
    all
}

fn wide(tensor: &Tensor) -> Vec<f64> {
    match tensor.dtype() {
        DataType::Fp16 => {
            tensor.to_vec::<f16>().unwrap().into_iter().map(|x| f64::from(x.to_f32())).collect()
        }
        _ => tensor.to_vec::<f32>().unwrap().into_iter().map(f64::from).collect(),
    }
}

/// `a · b`, rows times columns, in f64.
fn product(a: &Tensor, b: &Tensor, [m, n, k]: [usize; 3], turns: TransposedOperands) -> Vec<f32> {
    let (a, b) = (wide(a), wide(b));
    let at_a = |row: usize, deep: usize| if turns.a { deep * m + row } else { row * k + deep };
    let at_b = |deep: usize, col: usize| if turns.b { col * k + deep } else { deep * n + col };
    let mut all = Vec::with_capacity(m * n);
    for row in 0..m {
        for col in 0..n {
            let sum: f64 = (0..k).map(|deep| a[at_a(row, deep)] * b[at_b(deep, col)]).sum();
            all.push(sum as f32);
        }
    }
    all
}

/// Runs a variant on one product and compares it.
fn check(
    variant: MatMulVariant,
    lens: [usize; 3],
    turns: TransposedOperands,
    types: [DataType; 3],
) {
    let Some(device) = support::device() else { return };
    let [m, n, k] = lens;
    let shape = |rows: usize, columns: usize, turned: bool| match turned {
        true => [columns, rows],
        false => [rows, columns],
    };
    let a = floats(&shape(m, k, turns.a), types[0], 1);
    let b = floats(&shape(k, n, turns.b), types[1], 2);
    let shapes = NodeShapes {
        inputs: vec![
            Some(ValueShape::new(types[0], a.shape().to_vec())),
            Some(ValueShape::new(types[1], b.shape().to_vec())),
        ],
        outputs: vec![Some(ValueShape::new(types[2], vec![m, n]))],
        constants: vec![None, None],
    };
    let step = variant.step(&shapes, turns, device.capabilities()).unwrap();
    let size = m * n * types[2].size_bytes().unwrap();
    let (a_bytes, b_bytes) = (poisoned(&a), poisoned(&b));
    let inputs = [Some(a_bytes.as_slice()), Some(b_bytes.as_slice())];
    let trial = StepTrial::new(&device, &step, &inputs, &[size as u64], 1).unwrap();
    trial.run(1).unwrap();
    let found = trial.output(0, size).unwrap();
    let found: Vec<f32> = match types[2] {
        DataType::Fp16 => {
            found.chunks_exact(2).map(|two| f16::from_le_bytes([two[0], two[1]]).to_f32()).collect()
        }
        _ => {
            found.chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().unwrap())).collect()
        }
    };
    let expected = product(&a, &b, lens, turns);
    // Sums of k products below 1 in FP32: a few units of the last place of their size. Operands that are
    // rounded to FP16 are off by 2^-11 each, at random.
    let rounded = variant.rounds() && types[..2] != [DataType::Fp16; 2];
    let size = (k as f32).sqrt();
    let near = if rounded { 4.0 * size * 2.0_f32.powi(-11) } else { 8.0 * size * f32::EPSILON };
    for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
        let last = if types[2] == DataType::Fp16 { expected.abs() * 1e-3 + 1e-6 } else { 0.0 };
        assert!(
            (found - expected).abs() <= near + last,
            "{variant:?} {lens:?} {turns:?} {types:?}: element {at} is {found}, not {expected}"
        );
    }
}

const F32: [DataType; 3] = [DataType::Fp32; 3];

fn variants() -> Vec<MatMulVariant> {
    match support::device() {
        Some(device) => MatMulVariant::all(device.capabilities()),
        None => Vec::new(),
    }
}

fn orders() -> impl Iterator<Item = TransposedOperands> {
    [(false, false), (false, true), (true, false), (true, true)]
        .into_iter()
        .map(|(a, b)| TransposedOperands { a, b, halves: false })
}

#[test]
fn every_variant_computes_aligned_and_ragged_products() {
    for variant in variants() {
        check(variant, [36, 96, 64], TransposedOperands::default(), F32);
        check(variant, [37, 75, 35], TransposedOperands { a: true, b: true, halves: false }, F32);
    }
}

#[test]
fn few_rows_or_columns_are_computed_by_every_variant_for_them() {
    let Some(device) = support::device() else { return };
    let at = |turns: TransposedOperands, [m, n, k]: [usize; 3]| {
        let shape =
            |rows, columns, turned| if turned { vec![columns, rows] } else { vec![rows, columns] };
        let of = |shape| Some(ValueShape::new(DataType::Fp32, shape));
        let shapes = NodeShapes {
            inputs: vec![of(shape(m, k, turns.a)), of(shape(k, n, turns.b))],
            outputs: vec![of(vec![m, n])],
            constants: vec![None, None],
        };
        let all = MatMulVariant::few(&shapes, turns, device.capabilities()).unwrap();
        for (number, variant) in all.into_iter().enumerate() {
            // Those that differ in their shares only differ in lengths, not in their shaders.
            if number < 7 || number % 5 == 0 {
                check(variant, [m, n, k], turns, F32);
            }
        }
    };
    at(TransposedOperands::default(), [1, 140, 200]);
    at(TransposedOperands { b: true, ..TransposedOperands::default() }, [3, 37, 130]);
    at(TransposedOperands { b: true, ..TransposedOperands::default() }, [8, 40, 256]);
    at(TransposedOperands { a: true, ..TransposedOperands::default() }, [5, 18, 65]);
    at(TransposedOperands::default(), [50, 1, 131]);
    at(TransposedOperands { b: true, ..TransposedOperands::default() }, [41, 6, 128]);
    at(TransposedOperands::default(), [1, 1, 1]);
}

#[test]
fn a_usual_variant_computes_every_mix_of_lengths() {
    let Some(variant) = variants().into_iter().next() else { return };
    for turns in orders() {
        for lens in [[1, 1, 1], [1, 64, 8], [65, 1, 3], [2, 130, 4], [3, 8, 36], [129, 66, 12]] {
            check(variant, lens, turns, F32);
        }
    }
    check(variant, [4, 8, 0], TransposedOperands::default(), F32);
}

#[test]
fn types_of_operands_and_result_mix() {
    let Some(device) = support::device() else { return };
    if !device.capabilities().f16 {
        eprintln!("skipped: the device has no FP16");
        return;
    }
    let Some(variant) = variants().into_iter().next() else { return };
    let (half, full) = (DataType::Fp16, DataType::Fp32);
    for types in [[half; 3], [half, full, half], [full, half, full], [half, half, full]] {
        check(variant, [20, 36, 24], TransposedOperands::default(), types);
        check(
            variant,
            [19, 35, 23],
            TransposedOperands { b: true, ..TransposedOperands::default() },
            types,
        );
    }
}

#[test]
fn operands_of_halves_are_loaded_by_eight_by_four_and_by_one() {
    let cooperative = |one: &MatMulVariant| matches!(one, MatMulVariant::Cooperative(..));
    let half = [DataType::Fp16; 3];
    for (at, variant) in variants().into_iter().filter(cooperative).enumerate() {
        let turns = orders().nth(at % 4).unwrap_or_default();
        check(variant, [72, 136, 200], turns, half);
        check(variant, [36, 76, 44], turns, half);
        if at == 0 {
            for turns in orders() {
                check(variant, [24, 40, 72], turns, half);
                check(variant, [23, 37, 35], turns, half);
            }
        }
    }
}

#[test]
fn workgroups_share_the_sums_of_a_tile() {
    if let Some(&MatMulVariant::Tiled(config, _)) = variants().first() {
        for shares in [2, 3, 7] {
            check(
                MatMulVariant::Tiled(config, shares),
                [33, 40, 200],
                TransposedOperands::default(),
                F32,
            );
            check(
                MatMulVariant::Tiled(config, shares),
                [7, 9, 65],
                TransposedOperands::default(),
                F32,
            );
        }
    }
}

/// A graph of one node over inputs whose lengths have names.
fn graph(domain: &str, op: &str, attributes: &Attributes, inputs: &[Option<Tensor>]) -> Graph {
    let mut graph = Graph::new("test");
    graph.opsets.insert(String::new(), 17);
    graph.opsets.insert("ai.galatea".into(), 1);
    graph.opsets.insert("com.microsoft".into(), 1);
    let ids: Vec<_> = inputs
        .iter()
        .enumerate()
        .map(|(at, value)| {
            let value = value.as_ref()?;
            let id = graph.value_named(&format!("x{at}"));
            let dims = value.shape().iter().map(|&len| Dim::Known(len)).collect();
            graph.value_mut(id).declared = Some(Fact::new(value.dtype(), dims));
            graph.inputs.push(id);
            Some(id)
        })
        .collect();
    let y = graph.value_named("y");
    graph.outputs.push(y);
    graph.add_node(domain, op, "node", attributes, ids, vec![Some(y)]).unwrap();
    graph
}

/// Runs a node on the GPU and by reference.
fn node(domain: &str, op: &str, attributes: &[(&str, AttributeValue)], inputs: &[Option<Tensor>]) {
    let Some(device) = support::device() else { return };
    let attributes: Attributes =
        attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    let graph = graph(domain, op, &attributes, inputs);
    let given: Vec<Tensor> = inputs.iter().flatten().cloned().collect();
    let expected = evaluate::run(&graph, &given).unwrap();
    for precision in [Precision::Fp32, Precision::Fp16] {
        let options =
            SessionOptions { precision, optimise: OptimiseLevel::O0, ..SessionOptions::default() };
        let session = support::session(&device, &graph, &options).unwrap();
        let found = session.run_tensors(Run::owned(given.clone())).unwrap();
        let terms = given[0].shape().last().copied().unwrap_or(1);
        let accumulator = match (precision, given[0].dtype()) {
            (Precision::Fp32, DataType::Fp32) => DataType::Fp32,
            _ => DataType::Fp16,
        };
        let tolerance = Tolerance::Accumulated { terms, accumulator };
        assert_eq!(found[0].shape(), expected[0].shape(), "{op} {attributes:?}");
        if let Err(error) = compare(&found[0], &expected[0], tolerance) {
            let shapes: Vec<_> = given.iter().map(|t| t.shape().to_vec()).collect();
            panic!("{op} {attributes:?} {shapes:?} {precision}: {error}");
        }
    }
}

fn f32s(shape: &[usize], seed: u32) -> Option<Tensor> {
    Some(floats(shape, DataType::Fp32, seed))
}

#[test]
fn stacks_broadcast_and_vectors_lend_an_axis() {
    let cases: &[(&[usize], &[usize])] = &[
        (&[5], &[5]),
        (&[5], &[5, 3]),
        (&[4, 5], &[5]),
        (&[2, 3, 4, 5], &[5]),
        (&[5], &[2, 5, 3]),
        (&[2, 3, 4, 5], &[5, 6]),
        (&[3, 1, 4, 5], &[2, 5, 6]),
        (&[2, 1, 2, 1, 2, 3, 4], &[1, 3, 1, 2, 1, 4, 5]),
        (&[4, 5], &[2, 3, 5, 6]),
        (&[7, 1, 5], &[5, 6]),
        (&[2, 0, 5], &[5, 6]),
        (&[2, 3, 0], &[0, 6]),
    ];
    for (a, b) in cases {
        node("", "MatMul", &[], &[f32s(a, 1), f32s(b, 2)]);
    }
}

#[test]
fn gemm_has_factors_and_a_third_matrix_that_spreads() {
    let flag = AttributeValue::Int;
    let float = AttributeValue::Float;
    for c in [None, f32s(&[], 3), f32s(&[6], 3), f32s(&[5, 1], 3), f32s(&[5, 6], 3)] {
        let attributes = [("alpha", float(0.5)), ("beta", float(2.0))];
        node("", "Gemm", &attributes, &[f32s(&[5, 7], 1), f32s(&[7, 6], 2), c.clone()]);
        let turned = [("transA", flag(1)), ("transB", flag(1)), ("beta", float(-1.0))];
        node("", "Gemm", &turned, &[f32s(&[7, 5], 1), f32s(&[6, 7], 2), c]);
    }
    let c = f32s(&[8], 3);
    node("", "Gemm", &[], &[f32s(&[12, 8], 1), f32s(&[8, 8], 2), c]);
}

#[test]
fn what_follows_a_product_is_computed_with_it() {
    let text = |text: &str| AttributeValue::String(text.into());
    let (a, b, bias) = (f32s(&[2, 5, 8], 1), f32s(&[8, 12], 2), f32s(&[12], 3));
    for name in [
        "",
        "Relu",
        "Sigmoid",
        "Tanh",
        "HardSwish",
        "Silu",
        "Gelu",
        "GeluTanh",
        "Clip",
        "LeakyRelu",
    ] {
        let mut attributes = vec![("activation", text(name))];
        match name {
            "Clip" => {
                attributes.push(("activation_params", AttributeValue::Floats(vec![-0.5, 0.75])));
            }
            "LeakyRelu" => {
                attributes.push(("activation_params", AttributeValue::Floats(vec![0.125])));
            }
            _ => {}
        }
        let inputs = [a.clone(), b.clone(), bias.clone()];
        node("ai.galatea", "FusedMatMul", &attributes, &inputs);
    }
    let turned = [("trans_b", AttributeValue::Int(1))];
    for more in [&[2, 5, 12][..], &[5, 12], &[12], &[2, 1, 12], &[5, 1], &[1], &[3, 2, 5, 12]] {
        let inputs = [a.clone(), f32s(&[12, 8], 2), bias.clone(), f32s(more, 4)];
        node("ai.galatea", "FusedMatMul", &turned, &inputs);
        let inputs = [a.clone(), b.clone(), None, f32s(more, 4)];
        node("ai.galatea", "FusedMatMul", &[("gated", AttributeValue::Int(1))], &inputs);
    }
    // The product spreads over what is added.
    node(
        "ai.galatea",
        "FusedMatMul",
        &[],
        &[f32s(&[1, 8], 1), f32s(&[8, 1], 2), None, f32s(&[3, 5], 3)],
    );
    node(
        "ai.galatea",
        "FusedMatMul",
        &[],
        &[f32s(&[8], 1), f32s(&[8, 5], 2), None, f32s(&[3, 5], 3)],
    );
}

#[test]
fn what_follows_is_added_to_tiles_of_matrices_beyond_the_last_row_and_column_too() {
    let halves = |shape: &[usize], seed| Some(floats(shape, DataType::Fp16, seed));
    let gelu = [("activation", AttributeValue::String("Gelu".into()))];
    for [m, n, k] in [[33, 40, 32], [17, 35, 24]] {
        let (a, b, bias) = (halves(&[m, k], 1), halves(&[k, n], 2), halves(&[n], 3));
        let more = halves(&[m, n], 4);
        node("ai.galatea", "FusedMatMul", &gelu, &[a.clone(), b.clone(), bias.clone()]);
        node("ai.galatea", "FusedMatMul", &[], &[a.clone(), b.clone(), bias, more.clone()]);
        node("ai.galatea", "FusedMatMul", &[], &[a, b, None, more]);
    }
}

/// GELU of numbers of FP16 up to 100, as a product of one term.
#[test]
fn gelu_is_as_exact_as_a_result_of_fp16() {
    let Some(device) = support::device() else { return };
    let numbers: Vec<f16> =
        (0..=0xd640_u16).filter(|bits| bits & 0x7fff <= 0x5640).map(f16::from_bits).collect();
    let count = numbers.len();
    let a = Tensor::from_vec(&[count, 1], numbers.clone()).unwrap();
    let b = Tensor::from_vec(&[1, 16], vec![f16::from_f32(1.0); 16]).unwrap();
    let attributes: Attributes =
        [("activation".to_owned(), AttributeValue::String("Gelu".into()))].into();
    let graph =
        graph("ai.galatea", "FusedMatMul", &attributes, &[Some(a.clone()), Some(b.clone())]);
    let options = SessionOptions { optimise: OptimiseLevel::O0, ..SessionOptions::default() };
    let session = support::session(&device, &graph, &options).unwrap();
    let found = wide(&session.run_tensors(Run::owned(vec![a.clone(), b.clone()])).unwrap()[0]);
    let expected = wide(&evaluate::run(&graph, &[a, b]).unwrap()[0]);
    for (at, number) in numbers.iter().enumerate() {
        let (found, expected) = (found[16 * at], expected[16 * at]);
        // A step of FP16 at the value: where it lies between two, either may be taken.
        let step = 2f64.powi((expected.abs().log2().floor() as i32).max(-14) - 10);
        assert!((found - expected).abs() <= step, "gelu({number}) is {expected}, found {found}");
    }
}

#[test]
fn contributed_products_turn_and_scale() {
    let flag = || AttributeValue::Int(1);
    let half = ("alpha", AttributeValue::Float(0.5));
    let both = [("transA", flag()), ("transB", flag()), half.clone()];
    node("com.microsoft", "FusedMatMul", &both, &[f32s(&[2, 6, 5], 1), f32s(&[2, 7, 6], 2)]);
    let batch = [("transBatchA", flag()), ("transBatchB", flag()), half];
    node("com.microsoft", "FusedMatMul", &batch, &[f32s(&[5, 3, 6], 1), f32s(&[6, 3, 7], 2)]);
    node(
        "com.microsoft",
        "TransposeMatMul",
        &[("transB", flag())],
        &[f32s(&[5, 6], 1), f32s(&[7, 6], 2)],
    );
    for name in [
        "Relu",
        "Sigmoid",
        "Tanh",
        "Softplus",
        "Softsign",
        "HardSwish",
        "Elu",
        "Selu",
        "ThresholdedRelu",
        "HardSigmoid",
    ] {
        let activation = [("activation", AttributeValue::String(name.into()))];
        let inputs = [f32s(&[5, 6], 1), f32s(&[6, 7], 2), f32s(&[7], 3)];
        node("com.microsoft", "FusedGemm", &activation, &inputs);
    }
}

/// Repeatable bytes.
fn bytes_of(shape: &[usize], signed: bool, seed: u32) -> Option<Tensor> {
    let all = values(shape.iter().product(), seed);
    Some(if signed {
        let all: Vec<i8> = all.into_iter().map(|x| (x * 127.0) as i8).collect();
        Tensor::from_vec(shape, all).unwrap()
    } else {
        let all: Vec<u8> = all.into_iter().map(|x| (x * 127.0 + 128.0) as u8).collect();
        Tensor::from_vec(shape, all).unwrap()
    })
}

#[test]
fn products_of_bytes_are_exact() {
    let Some(device) = support::device() else { return };
    let check = |inputs: &[Option<Tensor>]| {
        let graph = graph("", "MatMulInteger", &Attributes::new(), inputs);
        let given: Vec<Tensor> = inputs.iter().flatten().cloned().collect();
        let expected = evaluate::run(&graph, &given).unwrap();
        let session = support::session(&device, &graph, &SessionOptions::default()).unwrap();
        let found = session.run_tensors(Run::owned(given)).unwrap();
        assert_eq!(found[0], expected[0]);
    };
    for (signed_a, signed_b) in [(true, true), (false, true), (true, false), (false, false)] {
        let a = |shape: &[usize]| bytes_of(shape, signed_a, 1);
        let b = |shape: &[usize]| bytes_of(shape, signed_b, 2);
        check(&[a(&[5, 7]), b(&[7, 6])]);
        check(&[
            a(&[70, 68]),
            b(&[68, 72]),
            bytes_of(&[], signed_a, 3),
            bytes_of(&[], signed_b, 4),
        ]);
        check(&[
            a(&[9, 130]),
            b(&[130, 67]),
            bytes_of(&[9], signed_a, 3),
            bytes_of(&[67], signed_b, 4),
        ]);
        check(&[a(&[3, 4, 8]), b(&[8, 12]), bytes_of(&[4], signed_a, 3), None]);
        check(&[a(&[2, 1, 5, 6]), b(&[3, 6, 4]), None, bytes_of(&[1], signed_b, 4)]);
        check(&[a(&[6]), b(&[6]), bytes_of(&[], signed_a, 3), None]);
    }
}

#[test]
fn quantised_products_are_quantised_again() {
    let Some(device) = support::device() else { return };
    let scale = |all: &[f32]| Some(Tensor::vector(all.to_vec()));
    let one = |value: f32| Some(Tensor::scalar(value));
    for signed in [true, false] {
        let of = |shape: &[usize], seed: u32| bytes_of(shape, signed, seed);
        let cases = [
            [
                of(&[5, 9], 1),
                one(0.5),
                of(&[], 2),
                of(&[9, 7], 3),
                one(0.25),
                of(&[], 4),
                one(16.0),
                of(&[], 5),
            ],
            [
                of(&[2, 3, 40], 1),
                scale(&[0.5, 0.25, 0.125]),
                of(&[3], 2),
                of(&[40, 2], 3),
                scale(&[0.5, 0.75]),
                of(&[2], 4),
                one(64.0),
                of(&[1], 5),
            ],
        ];
        for inputs in cases {
            let graph = graph("", "QLinearMatMul", &Attributes::new(), &inputs);
            let given: Vec<Tensor> = inputs.iter().flatten().cloned().collect();
            let expected = evaluate::run(&graph, &given).unwrap();
            let session = support::session(&device, &graph, &SessionOptions::default()).unwrap();
            let found = session.run_tensors(Run::owned(given)).unwrap();
            // These scales and sums are exact in FP32; others may round to the byte beside.
            assert_eq!(found[0], expected[0]);
        }
    }
}

#[test]
fn a_result_never_lies_over_what_is_read_as_a_matrix_too() {
    let Some(device) = support::device() else { return };
    let mut graph = Graph::new("test");
    graph.opsets.insert(String::new(), 17);
    graph.opsets.insert("ai.galatea".into(), 1);
    let shape = [96, 96];
    let given = [floats(&shape, DataType::Fp32, 1), floats(&shape, DataType::Fp32, 2)];
    let ids: Vec<_> = ["x", "w"].map(|name| graph.value_named(name)).to_vec();
    for &id in &ids {
        let dims = shape.iter().map(|&len| Dim::Known(len)).collect();
        graph.value_mut(id).declared = Some(Fact::new(DataType::Fp32, dims));
        graph.inputs.push(id);
    }
    let none = Attributes::new();
    let [h, seen, y] = ["h", "seen", "y"].map(|name| graph.value_named(name));
    graph.add_node("", "Relu", "relu", &none, vec![Some(ids[0])], vec![Some(h)]).unwrap();
    graph.add_node("", "Identity", "view", &none, vec![Some(h)], vec![Some(seen)]).unwrap();
    let inputs = vec![Some(seen), Some(ids[1]), None, Some(h)];
    graph.add_node("ai.galatea", "FusedMatMul", "product", &none, inputs, vec![Some(y)]).unwrap();
    graph.outputs.push(y);
    let expected = evaluate::run(&graph, &given).unwrap();
    let options = SessionOptions { optimise: OptimiseLevel::O0, ..SessionOptions::default() };
    let session = support::session(&device, &graph, &options).unwrap();
    let found = session.run_tensors(Run::owned(given.to_vec())).unwrap();
    let tolerance = Tolerance::Accumulated { terms: 96, accumulator: DataType::Fp32 };
    compare(&found[0], &expected[0], tolerance).unwrap();
}

/// A NaN that comes out of a product stays one behind every function, as it does where the function is a node of its
/// own: bounds take it for a number.
#[test]
fn what_is_no_number_stays_so_behind_functions() {
    let Some(device) = support::device() else { return };
    let names =
        ["Relu", "Clip", "LeakyRelu", "Sigmoid", "Tanh", "HardSwish", "Silu", "Gelu", "GeluTanh"];
    for (rows, name) in names.into_iter().flat_map(|name| [(2, name), (40, name)]) {
        let mut x = values(rows * 64, 1);
        x[5] = f32::NAN;
        let x = Tensor::from_vec(&[rows, 64], x).unwrap();
        let w = Tensor::from_vec(&[64, 72], values(64 * 72, 2)).unwrap();
        let mut attributes: Attributes =
            [("activation".to_owned(), AttributeValue::String(name.into()))].into();
        let params = match name {
            "Clip" => vec![-0.5, 0.75],
            "LeakyRelu" => vec![0.125],
            _ => Vec::new(),
        };
        if !params.is_empty() {
            attributes.insert("activation_params".to_owned(), AttributeValue::Floats(params));
        }
        let inputs = [Some(x.clone()), Some(w.clone())];
        let graph = graph("ai.galatea", "FusedMatMul", &attributes, &inputs);
        let session = support::session(&device, &graph, &SessionOptions::default()).unwrap();
        let found = session.run_tensors(Run::owned(vec![x, w])).unwrap();
        let found = found[0].to_vec::<f32>().unwrap();
        let (first, rest) = found.split_at(72);
        assert!(first.iter().all(|value| value.is_nan()), "{name}: {first:?}");
        assert!(rest.iter().all(|value| value.is_finite()), "{name}");
    }
}
