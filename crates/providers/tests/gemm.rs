//! Products of two values of a run, and every form of `Gemm`, against the reference.

use crate::support::{Maker, assert_kernel, floats};
use galatea_graph::AttributeValue;
use galatea_kernels::Isa;
use galatea_kernels::isa::Bf16Isa;
use galatea_runtime::{Precision, ProfileRow};

/// A product `Gemm`, of which B may be a constant.
#[derive(Clone, Debug)]
struct GemmCase {
    trans: [bool; 2],
    factors: [f32; 2],
    constant: bool,
    /// Shape of C, if there is one.
    c: Option<Vec<usize>>,
}

const M: usize = 19;
const K: usize = 40;
const N: usize = 33;

fn run(case: &GemmCase, op: &str, precision: Precision) -> Vec<ProfileRow> {
    let flag = |name, on| (name, AttributeValue::Int(i64::from(on)));
    let number = |name, value| (name, AttributeValue::Float(value));
    let mut attributes = vec![
        flag("transA", case.trans[0]),
        flag("transB", case.trans[1]),
        number("alpha", case.factors[0]),
        number("beta", case.factors[1]),
    ];
    if op.ends_with("FusedGemm") {
        attributes.push(("activation", AttributeValue::String("Relu".into())));
    }
    let mut maker = Maker::new();
    maker.precision = precision;
    let sizes = |rows, columns, trans| if trans { [columns, rows] } else { [rows, columns] };
    let a = maker.input("a", floats(&sizes(M, K, case.trans[0]), 1));
    let b = floats(&sizes(K, N, case.trans[1]), 2);
    let b = if case.constant { maker.constant(b) } else { maker.input("b", b) };
    let mut inputs = vec![a, b];
    if let Some(shape) = &case.c {
        inputs.push(maker.input("c", floats(shape, 3)));
    }
    let y = maker.node(op, &attributes, &inputs, 1);
    match precision {
        Precision::Fp32 => maker.check(&y, K).1,
        // Sums of 40 products whose operands are rounded to 8 bits.
        _ => maker.check_within(&y, 0.15),
    }
}

fn cases(constant: bool) -> Vec<GemmCase> {
    let shapes: [Option<&[usize]>; 8] = [
        None,
        Some(&[N]),
        Some(&[1, N]),
        Some(&[M, 1]),
        Some(&[M, N]),
        Some(&[1]),
        Some(&[1, 1]),
        Some(&[]),
    ];
    let mut all = Vec::new();
    for (at, c) in shapes.iter().enumerate() {
        for trans in [[false, false], [true, false], [false, true], [true, true]] {
            // The factors of half of the cases are 1.
            let factors =
                if (at + usize::from(trans[0])) % 2 == 0 { [1.0, 1.0] } else { [0.5, -2.0] };
            all.push(GemmCase { trans, factors, constant, c: c.map(<[usize]>::to_vec) });
        }
    }
    all.push(GemmCase { trans: [false; 2], factors: [1.0, 0.5], constant, c: Some(vec![M, N]) });
    all
}

#[test]
fn every_gemm_has_a_kernel_in_every_precision() {
    let products = Bf16Isa::of(Isa::detect()).has_products();
    for (constant, form) in [(true, "packed"), (false, "batched")] {
        for case in cases(constant) {
            for precision in [Precision::Fp32, Precision::Bf16, Precision::Fp16] {
                let kind = match (precision, constant) {
                    (Precision::Bf16, true) => "bf16",
                    (Precision::Bf16, false) if products => "bf16",
                    (Precision::Fp16, true) => "fp16",
                    _ => "f32",
                };
                assert_kernel(&run(&case, "Gemm", precision), &format!("gemm-{kind}-{form}"));
                let fused = run(&case, "com.microsoft:FusedGemm", precision);
                assert_kernel(&fused, &format!("fused_gemm-{kind}-{form}"));
            }
        }
    }
}

#[test]
fn a_c_that_does_not_broadcast_to_the_product_is_refused() {
    let mut maker = Maker::new();
    let a = maker.input("a", floats(&[M, K], 1));
    let b = maker.input("b", floats(&[K, N], 2));
    let c = maker.input("c", floats(&[M], 3));
    let attributes = galatea_graph::Attributes::new();
    let y = maker.graph.value_named("y");
    let added = maker.graph.add_node("", "Gemm", "", &attributes, vec![a, b, c], vec![Some(y)]);
    added.unwrap();
    maker.graph.outputs = vec![y];
    let inputs: Vec<_> = maker.inputs.clone();
    let named: Vec<_> = inputs.iter().map(|(name, x)| (name.as_str(), x.clone())).collect();
    let options = galatea_runtime::SessionOptions::default();
    let cpu = [galatea_providers::by_name("cpu").unwrap()];
    let made = galatea_runtime::Session::new(maker.graph.clone(), &cpu, &options);
    let failed =
        made.and_then(|session| session.run_tensors(galatea_runtime::Run::named(&named)).map(drop));
    assert!(failed.unwrap_err().to_string().contains('C'));
}

#[test]
fn products_of_two_variables_take_bf16_where_the_processor_multiplies_it() {
    let kernel = match Bf16Isa::of(Isa::detect()).has_products() {
        true => "matmul-bf16-batched",
        false => "matmul-f32-batched",
    };
    let shapes: [[&[usize]; 2]; 7] = [
        [&[M, K], &[K, N]],
        [&[2, 3, M, K], &[2, 3, K, N]],
        [&[2, 3, M, K], &[3, K, N]],
        [&[3, M, K], &[K, N]],
        [&[M, K], &[4, K, N]],
        // Too few rows and terms for BF16, and an odd number of terms.
        [&[2, 3, 5], &[2, 5, 7]],
        [&[2, 20, 35], &[2, 35, 9]],
    ];
    for [a, b] in shapes {
        let mut maker = Maker::new();
        maker.precision = Precision::Bf16;
        let (a, b) = (maker.input("a", floats(a, 1)), maker.input("b", floats(b, 2)));
        let y = maker.node("MatMul", &[], &[a, b], 1);
        assert_kernel(&maker.check_within(&y, 0.15), kernel);
    }
}

#[test]
fn turned_products_of_other_runtimes_have_a_kernel() {
    let flag = |name, on| (name, AttributeValue::Int(i64::from(on)));
    for precision in [Precision::Fp32, Precision::Bf16] {
        for trans in [[false, false], [true, false], [false, true], [true, true]] {
            for alpha in [1.0, 0.25] {
                let mut maker = Maker::new();
                maker.precision = precision;
                let sizes = |rows, columns, trans| match trans {
                    true => [2, columns, rows],
                    false => [2, rows, columns],
                };
                let a = maker.input("a", floats(&sizes(M, K, trans[0]), 1));
                let b = maker.input("b", floats(&sizes(K, N, trans[1]), 2));
                let attributes = [
                    flag("transA", trans[0]),
                    flag("transB", trans[1]),
                    ("alpha", AttributeValue::Float(alpha)),
                ];
                let y = maker.node("com.microsoft:FusedMatMul", &attributes, &[a, b], 1);
                let rows =
                    maker.check_within(&y, if precision == Precision::Fp32 { 1e-4 } else { 0.15 });
                let whole = Bf16Isa::of(Isa::detect()).has_products();
                let kind = if precision == Precision::Bf16 && whole { "bf16" } else { "f32" };
                assert_kernel(&rows, &format!("turned_matmul-{kind}-batched"));
            }
        }
    }
}

#[test]
fn values_between_products_of_two_variables_stay_bf16() {
    let mut maker = Maker::new();
    maker.precision = Precision::Bf16;
    let a = maker.input("a", floats(&[2, 20, 34], 1));
    let b = maker.input("b", floats(&[2, 34, 36], 2));
    let scores = maker.node("MatMul", &[], &[a, b], 1)[0];
    let c = maker.input("c", floats(&[2, 36, 10], 3));
    let y = maker.node("MatMul", &[], &[scores, c], 1);
    // Sums of about 6 are rounded to 8 bits before they are multiplied.
    maker.check_within(&y, 1.0);
}
