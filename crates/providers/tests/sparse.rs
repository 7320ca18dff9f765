//! Weights of which many are zero.

use std::sync::Arc;

use galatea_graph::{AttributeValue, Fact, ValueId};
use galatea_kernels::Isa;
use galatea_kernels::bf16::passes_over_zeros;
use galatea_kernels::int8::zero_group;
use galatea_kernels::isa::{Bf16Isa, DotIsa};
use galatea_providers::by_name;
use galatea_runtime::tune::{ChoiceSource, ConfigSpace, TuningCache};
use galatea_runtime::{OptimiseLevel, Precision, Run, Session, SessionOptions};
use galatea_tensor::{DataType, Tensor};

use crate::support::{Maker, assert_kernel, check_node, floats};

/// A matrix whose zeros are `zeros` of each 16 blocks of 8 rows and 16 columns.
fn blocks(shape: &[usize; 2], zeros: usize) -> Tensor {
    let [_, columns] = *shape;
    let mut values = floats(shape, 2).to_vec::<f32>().unwrap();
    for (i, value) in values.iter_mut().enumerate() {
        if (i / columns / 8 * 5 + i % columns / 16 * 3) % 16 < zeros {
            *value = 0.0;
        }
    }
    Tensor::from_vec(shape, values).unwrap()
}

/// The same, transposed.
fn turned(matrix: &Tensor) -> Tensor {
    let [rows, columns] = *matrix.shape() else { panic!("a matrix") };
    let values = matrix.to_vec::<f32>().unwrap();
    let turned = (0..values.len()).map(|i| values[i % rows * columns + i / rows]).collect();
    Tensor::from_vec(&[columns, rows], turned).unwrap()
}

#[test]
fn products_with_many_zeros_equal_the_reference() {
    let weights = blocks(&[96, 80], 12);
    for rows in [1, 7, 130] {
        let x = floats(&[rows, 96], 1);
        let w = std::slice::from_ref(&weights);
        check_node("MatMul", &[], std::slice::from_ref(&x), w, "matmul-f32-sparse");
        let gemm = [
            ("transB", AttributeValue::Int(1)),
            ("alpha", AttributeValue::Float(0.5)),
            ("beta", AttributeValue::Float(-1.5)),
        ];
        let constants = [turned(&weights), floats(&[80], 3)];
        check_node("Gemm", &gemm, &[x], &constants, "gemm-f32-sparse");
    }
}

#[test]
fn what_follows_a_sparse_product_is_part_of_it() {
    let weights = turned(&blocks(&[64, 96], 12));
    let mut maker = Maker::new();
    let (x, residual) =
        (maker.input("x", floats(&[2, 9, 64], 1)), maker.input("r", floats(&[2, 9, 96], 4)));
    let (w, bias) = (maker.constant(weights), maker.constant(floats(&[96], 3)));
    let gelu = AttributeValue::String("Gelu".into());
    let attributes = [("trans_b", AttributeValue::Int(1)), ("activation", gelu)];
    let y = maker.node("ai.galatea:FusedMatMul", &attributes, &[x, w, bias, residual], 1);
    let (_, rows) = maker.check(&y, 64);
    assert_kernel(&rows, "fused_matmul-f32-sparse");
}

#[test]
fn convolutions_with_many_zeros_equal_the_reference() {
    let weights = |cin: usize, cout: usize, side: usize| {
        let flat = turned(&blocks(&[cin, cout], 14)).to_vec::<f32>().unwrap();
        let taps = side * side;
        let values =
            flat.iter().flat_map(|&w| (0..taps).map(move |tap| w * (tap + 1) as f32 / 9.0));
        Tensor::from_vec(&[cout, cin, side, side], values.collect()).unwrap()
    };
    let x = floats(&[2, 64, 9, 7], 1);
    let constants = [weights(64, 96, 1), floats(&[96], 3)];
    check_node("Conv", &[], std::slice::from_ref(&x), &constants, "conv-f32-sparse");
    let steps = [("strides", AttributeValue::Ints(vec![2, 2]))];
    check_node("Conv", &steps, &[x], &[weights(64, 96, 3)], "conv-f32-sparse");
}

/// Runs a product of 9 rows in a precision, and checks which kernel computes it.
fn check_precision(precision: Precision, weights: Tensor, kernel: &str) {
    let mut maker = Maker::new();
    maker.precision = precision;
    let (x, w) = (maker.input("x", floats(&[9, 96], 1)), maker.constant(weights));
    let y = maker.node("MatMul", &[], &[x, w], 1);
    assert_kernel(&maker.check_within(&y, 3e-2), kernel);
}

#[test]
fn few_zeros_leave_products_dense_in_every_precision() {
    for (precision, kernel) in [
        (Precision::Fp32, "matmul-f32-packed"),
        (Precision::Fp16, "matmul-fp16-packed"),
        (Precision::Bf16, "matmul-bf16-packed"),
    ] {
        check_precision(precision, blocks(&[96, 80], 2), kernel);
    }
}

/// Returns whether instructions of this machine multiply whole tiles, zeros among them.
fn multiplies_tiles() -> bool {
    let isa = Isa::detect();
    passes_over_zeros(Bf16Isa::of(isa), 9).is_err() || zero_group(DotIsa::of(isa)).is_err()
}

#[test]
fn many_zeros_are_passed_over_in_every_precision() {
    check_precision(Precision::Fp16, blocks(&[96, 80], 12), "matmul-f32-sparse");
    let kernel = if multiplies_tiles() { "matmul-bf16-packed" } else { "matmul-bf16-sparse" };
    check_precision(Precision::Bf16, blocks(&[96, 80], 12), kernel);
    let kernel = kernel.replace("matmul", "gemm");
    let mut maker = Maker::new();
    maker.precision = Precision::Bf16;
    let (x, w) = (maker.input("x", floats(&[7, 96], 1)), turned(&blocks(&[96, 80], 12)));
    let (w, bias) = (maker.constant(w), maker.constant(floats(&[80], 3)));
    let attributes = [("transB", AttributeValue::Int(1)), ("alpha", AttributeValue::Float(0.5))];
    let y = maker.node("Gemm", &attributes, &[x, w, bias], 1);
    assert_kernel(&maker.check_within(&y, 3e-2), &kernel);
}

/// Bytes of a matrix of blocks: signed ones with zeros as 0, unsigned ones with zeros as 128.
fn byte_blocks(shape: &[usize; 2], zeros: usize, signed: bool) -> Tensor {
    let values = blocks(shape, zeros).to_vec::<f32>().unwrap();
    let codes = values.iter().map(|value| (value * 100.0) as i8);
    match signed {
        true => Tensor::from_vec(shape, codes.collect::<Vec<i8>>()).unwrap(),
        false => {
            let codes = codes.map(|code| (i16::from(code) + 128) as u8);
            Tensor::from_vec(shape, codes.collect::<Vec<u8>>()).unwrap()
        }
    }
}

#[test]
fn zeros_of_bytes_are_passed_over_and_results_stay_the_same() {
    let sparse = if multiplies_tiles() { "" } else { "-sparse" };
    // Few rows, and those of which nothing is known, gain where nearly all is zero.
    for (zeros, many, ending) in
        [(14, false, sparse), (12, true, sparse), (12, false, ""), (2, true, "")]
    {
        for signed in [true, false] {
            for rows in if many { [32, 70] } else { [1, 13] } {
                let mut maker = Maker::new();
                maker.graph.opsets.insert(String::new(), 21);
                let a = (0..rows * 96).map(|at| (at * 37 % 251) as u8).collect::<Vec<u8>>();
                let a = maker.input("a", Tensor::from_vec(&[rows, 96], a).unwrap());
                if many {
                    let declared = Some(Fact::fixed(DataType::Uint8, &[rows, 96]));
                    maker.graph.value_mut(a.unwrap()).declared = declared;
                }
                let b = maker.constant(byte_blocks(&[96, 80], zeros, signed));
                let a_zero = maker.constant(Tensor::scalar(7_u8));
                let b_zero = match signed {
                    true => maker.constant(Tensor::scalar(3_i8)),
                    false => maker.constant(Tensor::scalar(128_u8)),
                };
                let y = maker.node("MatMulInteger", &[], &[a, b, a_zero, b_zero], 1);
                let kernel = format!("matmul_integer-int8_int32{ending}");
                assert_kernel(&maker.check_within(&y, 0.0), &kernel);
            }
        }
    }
}

/// Weights `[out, in, side, side]` whose channels are zero in blocks of 8 times 16.
fn conv_blocks(out: usize, channels: usize, side: usize, zeros: usize) -> Vec<f32> {
    let flat = turned(&blocks(&[channels, out], zeros)).to_vec::<f32>().unwrap();
    let taps = side * side;
    flat.iter().flat_map(|&w| (0..taps).map(move |tap| w * (tap + 1) as f32 / 9.0)).collect()
}

#[test]
fn convolutions_in_bf16_and_of_bytes_pass_over_zeros() {
    let ending = if multiplies_tiles() { "packed" } else { "sparse" };
    for (zeros, ending) in [(14, ending), (2, "packed")] {
        for side in [1, 3] {
            let mut maker = Maker::new();
            maker.precision = Precision::Bf16;
            let values = conv_blocks(96, 64, side, zeros);
            let weights = Tensor::from_vec(&[96, 64, side, side], values).unwrap();
            let (x, w) = (maker.input("x", floats(&[2, 64, 9, 7], 1)), maker.constant(weights));
            let y = maker.node("Conv", &[], &[x, w], 1);
            assert_kernel(&maker.check_within(&y, 0.1), &format!("conv-bf16-{ending}"));
        }
    }
    let ending = if multiplies_tiles() { "" } else { "-sparse" };
    for (zeros, ending) in [(14, ending), (2, "")] {
        for side in [1, 3] {
            let mut maker = Maker::new();
            maker.graph.opsets.insert(String::new(), 21);
            let codes = conv_blocks(96, 64, side, zeros).into_iter().map(|w| (w * 100.0) as i8);
            let weights = Tensor::from_vec(&[96, 64, side, side], codes.collect()).unwrap();
            let image = (0..2 * 64 * 9 * 7).map(|at| (at * 37 % 251) as u8).collect::<Vec<u8>>();
            let x = maker.input("x", Tensor::from_vec(&[2, 64, 9, 7], image).unwrap());
            let w = maker.constant(weights);
            let zero = maker.constant(Tensor::scalar(7_u8));
            let y = maker.node("ConvInteger", &[], &[x, w, zero], 1);
            let kernel = format!("conv_integer-int8_int32{ending}");
            assert_kernel(&maker.check_within(&y, 0.0), &kernel);
        }
    }
}

#[test]
fn a_product_with_an_activation_passes_over_zeros_too() {
    let dense = multiplies_tiles();
    let bf16 = if dense { "fused_gemm-bf16-packed" } else { "fused_gemm-bf16-sparse" };
    for (precision, kernel) in [(Precision::Fp32, "fused_gemm-f32-sparse"), (Precision::Bf16, bf16)]
    {
        let mut maker = Maker::new();
        maker.precision = precision;
        let x = maker.input("x", floats(&[9, 96], 1));
        let w = maker.constant(turned(&blocks(&[96, 80], 12)));
        let bias = maker.constant(floats(&[80], 3));
        let relu = AttributeValue::String("Relu".into());
        let attributes = [
            ("transB", AttributeValue::Int(1)),
            ("alpha", AttributeValue::Float(0.5)),
            ("activation", relu),
        ];
        let y = maker.node("com.microsoft:FusedGemm", &attributes, &[x, w, bias], 1);
        assert_kernel(&maker.check_within(&y, 3e-2), kernel);
    }
}

/// Answers with the candidate of that name.
#[derive(Debug)]
struct NamedCandidate(&'static str);

impl TuningCache for NamedCandidate {
    fn choose(&self, _: &str, _: &str, space: &ConfigSpace) -> Option<usize> {
        (0..space.len()).find(|&candidate| space.name(candidate).ends_with(self.0))
    }
}

/// A product with a sparse matrix, and its output.
fn sparse_product() -> (Maker, Vec<Option<ValueId>>) {
    let mut maker = Maker::new();
    let (x, w) = (maker.input("x", floats(&[8, 96], 1)), maker.constant(blocks(&[96, 80], 12)));
    let y = maker.node("MatMul", &[], &[x, w], 1);
    maker.graph.outputs = y.iter().flatten().copied().collect();
    (maker, y)
}

#[test]
fn measurements_decide_between_sparse_and_dense() {
    for (answer, kernel) in [("dense", "matmul-f32-packed"), ("strips-1", "matmul-f32-sparse")] {
        let (maker, _) = sparse_product();
        let choices = ChoiceSource(Some(Arc::new(NamedCandidate(answer)) as Arc<dyn TuningCache>));
        let optimise = OptimiseLevel::O0;
        let options = SessionOptions { choices, optimise, threads: 2, ..SessionOptions::default() };
        let session =
            Session::new(maker.graph.clone(), &[by_name("cpu").unwrap()], &options).unwrap();
        let inputs = [("x", floats(&[8, 96], 1))];
        let mut run = session.run(Run::named(&inputs).profiled()).unwrap();
        assert_kernel(&std::mem::take(&mut run.rows), kernel);
    }
}

#[test]
fn measurements_decide_between_passing_over_and_dense_bf16() {
    if multiplies_tiles() {
        return;
    }
    for (answer, kernel) in [("dense", "matmul-bf16-packed"), ("groups", "matmul-bf16-sparse")] {
        let (maker, _) = sparse_product();
        let choices = ChoiceSource(Some(Arc::new(NamedCandidate(answer)) as Arc<dyn TuningCache>));
        let (optimise, precision) = (OptimiseLevel::O0, Precision::Bf16);
        let options = SessionOptions {
            choices,
            optimise,
            precision,
            threads: 2,
            ..SessionOptions::default()
        };
        let session =
            Session::new(maker.graph.clone(), &[by_name("cpu").unwrap()], &options).unwrap();
        let inputs = [("x", floats(&[8, 96], 1))];
        let mut run = session.run(Run::named(&inputs).profiled()).unwrap();
        assert_kernel(&std::mem::take(&mut run.rows), kernel);
    }
}

#[test]
fn an_explanation_names_the_sparse_kernel() {
    let (maker, _) = sparse_product();
    let explained = maker.session("cpu").explain().to_string();
    assert!(explained.contains("matmul-f32-sparse"), "{explained}");
}

#[test]
fn the_layouts_and_the_dense_product_are_measured() {
    let (maker, _) = sparse_product();
    let session = maker.session("cpu");
    let problems = session.problems(&[("x", floats(&[8, 96], 1))]).unwrap();
    let mut found = problems.into_iter().filter(|problem| problem.family == "gemm-f32-sparse");
    let mut problem = found.next().unwrap();
    let last = problem.space.len() - 1;
    assert!(problem.space.name(last).ends_with("dense"), "{}", problem.space.name(last));
    let first = problem.device.compute(0).unwrap();
    for candidate in 1..=last {
        let other = problem.device.compute(candidate).unwrap();
        assert!(first.iter().zip(&other).all(|(a, b)| (a - b).abs() < 1e-4), "{candidate}");
    }
}
