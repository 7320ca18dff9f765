#![allow(clippy::cast_possible_truncation, reason = "the nearest f32 is what is asked for")]

use super::*;
use crate::gemm::test_values as values;
use crate::{ActivationFunction, Isa, KernelContext, ThreadPool};
use proptest::prelude::*;

/// Distance from the exact value in units of the last place of the nearest `f32`.
fn ulps(got: f32, want: f64) -> f64 {
    let near = want as f32;
    if near.is_nan() || got.is_nan() {
        return if near.is_nan() && got.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if near.is_infinite() || got.is_infinite() {
        return if near == got { 0.0 } else { f64::INFINITY };
    }
    let unit = f64::from(f32::from_bits(near.abs().to_bits() + 1)) - f64::from(near.abs());
    (f64::from(got) - want).abs() / unit
}

/// erf by its series and, for large arguments, its continued fraction.
fn erf(x: f64) -> f64 {
    let a = x.abs();
    let value = if a < 3.0 {
        let mut term = a;
        let mut sum = a;
        for n in 1..200 {
            term *= -a * a / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        sum * std::f64::consts::FRAC_2_SQRT_PI
    } else {
        let mut tail = a;
        for n in (1..120).rev() {
            tail = a + f64::from(n) / 2.0 / tail;
        }
        1.0 - (-a * a).exp() / tail / std::f64::consts::PI.sqrt()
    };
    value.copysign(x)
}

/// A sweep over many exponents and signs, then a dense one.
fn sweep() -> Vec<f32> {
    let mut x: Vec<f32> = (0..200_000u32).map(|i| f32::from_bits(i * 21_139)).collect();
    x.extend((-60_000..60_000).map(|i| i as f32 * 0.001_7));
    x.extend((-60_000..60_000).map(|i| i as f32 * 0.000_251));
    x.extend([0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e-45, -1e-45, 88.7, -103.9]);
    x
}

/// The worst error on each instruction set: the set's name and the function, the error in ULP, what
/// was given and what was found.
fn worst(
    f: ScalarFunction,
    exact: impl Fn(f64) -> f64,
    domain: impl Fn(f32) -> bool,
) -> impl Iterator<Item = (String, f64, f32, f32)> {
    let pool = ThreadPool::new(2);
    let x = sweep();
    let want: Vec<f64> = x.iter().map(|&x| exact(f64::from(x))).collect();
    let mut found = Vec::new();
    for isa in Isa::available() {
        let mut y = vec![0.0; x.len()];
        unary(KernelContext { pool: &pool, isa }, f, &x, &mut y);
        let mut worst = (format!("{f:?} {}", isa.name()), 0.0, 0.0, 0.0);
        for ((&x, &y), &want) in x.iter().zip(&y).zip(&want).filter(|((x, _), _)| domain(**x)) {
            let error = ulps(y, want);
            if error > worst.1 {
                worst = (worst.0, error, x, y);
            }
        }
        found.push(worst);
    }
    found.into_iter()
}

fn check(f: ScalarFunction, exact: impl Fn(f64) -> f64, limit: f64, domain: impl Fn(f32) -> bool) {
    for worst in worst(f, exact, domain) {
        assert!(worst.1 <= limit, "{worst:?}");
    }
}

#[test]
fn functions_are_within_their_ulp_bounds_on_every_isa() {
    let all = |_: f32| true;
    // A result below the normal range loses bits with the last multiplication.
    check(ScalarFunction::Exp, f64::exp, 1.2, all);
    check(ScalarFunction::Log, f64::ln, 2.0, all);
    check(ScalarFunction::Tanh, f64::tanh, 2.0, all);
    check(ScalarFunction::Erf, erf, 2.0, all);
    check(ScalarFunction::Sigmoid, |x| 1.0 / (1.0 + (-x).exp()), 2.0, all);
    let swish = |x: f64| x / (1.0 + (-1.5 * x).exp());
    // The rounding of the exponent counts as often as it is large.
    check(ScalarFunction::Swish { alpha: 1.5 }, swish, 8.0, |x| x.abs() < 5.0);
    for (f, exact) in [
        (ScalarFunction::Floor, f64::floor as fn(f64) -> f64),
        (ScalarFunction::Ceil, f64::ceil),
        (ScalarFunction::Round, f64::round_ties_even),
    ] {
        check(f, exact, 0.0, all);
    }
    check(ScalarFunction::Sqrt, f64::sqrt, 0.5, all);
    check(ScalarFunction::Rsqrt, |x| 1.0 / x.sqrt(), 1.5, all);
    check(ScalarFunction::Reciprocal, |x| 1.0 / x, 0.5, all);
    check(ScalarFunction::Softplus, |x| x.max(0.0) + (-x.abs()).exp().ln_1p(), 4.0, |x| x > -80.0);
    check(ScalarFunction::Softsign, |x| x / (1.0 + x.abs()), 2.0, |x| x.is_finite());
    check(ScalarFunction::Abs, f64::abs, 0.0, all);
    check(ScalarFunction::Neg, |x| -x, 0.0, all);
}

/// `1 - erf x` without cancellation, for `x` not below 0.
fn erfc(x: f64) -> f64 {
    if x < 3.0 {
        return 1.0 - erf(x);
    }
    let mut tail = x;
    for n in (1..120).rev() {
        tail = x + f64::from(n) / 2.0 / tail;
    }
    (-x * x).exp() / tail / std::f64::consts::PI.sqrt()
}

#[test]
fn activations_are_within_2_ulp_of_the_exact_functions_for_every_float() {
    let gelu = |x: f64| {
        let y = x * std::f64::consts::FRAC_1_SQRT_2;
        let normal = if y < 0.0 { erfc(-y) / 2.0 } else { 0.5 + erf(y) / 2.0 };
        x * normal
    };
    let gelu_tanh = |x: f64| {
        let y = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
        // 1 + tanh y without cancellation.
        x / (1.0 + (-2.0 * y).exp())
    };
    let silu = |x: f64| x / (1.0 + (-x).exp());
    let hard_swish = |x: f64| x * ((x + 3.0).clamp(0.0, 6.0) / 6.0);
    type Exact<'a> = &'a dyn Fn(f64) -> f64;
    let cases: [(ActivationFunction, Exact<'_>); 6] = [
        (ActivationFunction::Gelu, &gelu),
        (ActivationFunction::GeluTanh, &gelu_tanh),
        (ActivationFunction::Silu, &silu),
        (ActivationFunction::HardSwish, &hard_swish),
        (ActivationFunction::Tanh, &f64::tanh),
        (ActivationFunction::Sigmoid, &|x| 1.0 / (1.0 + (-x).exp())),
    ];
    let mut wrong = Vec::new();
    for (activation, exact) in cases {
        // Without fused multiply-add a sum or two are rounded once more.
        let limit = |name: &str| if name.ends_with("portable") { 2.5 } else { 2.0 };
        let found = worst(ScalarFunction::Activation(activation), exact, |_| true);
        wrong.extend(found.filter(|worst| worst.1 > limit(&worst.0)));
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn activations_are_near_the_exact_functions() {
    let gelu = |x: f64| 0.5 * x * (1.0 + erf(x * std::f64::consts::FRAC_1_SQRT_2));
    let gelu_tanh = |x: f64| {
        let y = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
        // 1 + tanh y without cancellation.
        x / (1.0 + (-2.0 * y).exp())
    };
    type Exact<'a> = &'a dyn Fn(f64) -> f64;
    let cases: [(ActivationFunction, Exact<'_>); 8] = [
        (ActivationFunction::Gelu, &gelu),
        (ActivationFunction::GeluTanh, &gelu_tanh),
        (ActivationFunction::Silu, &|x| x / (1.0 + (-x).exp())),
        (ActivationFunction::HardSwish, &|x| x * (x / 6.0 + 0.5).clamp(0.0, 1.0)),
        (ActivationFunction::HardSigmoid { alpha: 0.2, beta: 0.5 }, &|x| {
            (0.2 * x + 0.5).clamp(0.0, 1.0)
        }),
        (ActivationFunction::LeakyRelu { alpha: 0.1 }, &|x| if x < 0.0 { 0.1 * x } else { x }),
        (ActivationFunction::Relu, &|x| x.max(0.0)),
        (ActivationFunction::Clip { min: -1.0, max: 6.0 }, &|x| x.clamp(-1.0, 6.0)),
    ];
    let pool = ThreadPool::new(1);
    let x: Vec<f32> = (-9000..9000).map(|i| i as f32 * 0.001).collect();
    for isa in Isa::available() {
        for (activation, exact) in &cases {
            let mut y = x.clone();
            activate_inplace(KernelContext { pool: &pool, isa }, *activation, &mut y);
            for (&x, &y) in x.iter().zip(&y) {
                let want = exact(f64::from(x));
                // The negative tail of GELU is a small difference of numbers near 1.
                let error = (f64::from(y) - want).abs();
                let limit = 2.5e-7 * want.abs() + 1.5e-7 * f64::from(x).abs() + 1e-30;
                assert!(error <= limit, "{activation:?} {} at {x}: {y} {want}", isa.name());
            }
        }
    }
}

#[test]
fn activations_of_infinities_are_those_of_the_formulas() {
    let pool = ThreadPool::new(1);
    // Minus infinity times a gate of 0 is a NaN, as in ONNX Runtime.
    let cases = [
        (ActivationFunction::Gelu, f32::INFINITY, f32::NAN),
        (ActivationFunction::GeluTanh, f32::INFINITY, f32::NAN),
        (ActivationFunction::Silu, f32::INFINITY, f32::NAN),
        (ActivationFunction::HardSwish, f32::INFINITY, f32::NAN),
        (ActivationFunction::Sigmoid, 1.0, 0.0),
        (ActivationFunction::Tanh, 1.0, -1.0),
        (ActivationFunction::Relu, f32::INFINITY, 0.0),
        (ActivationFunction::Clip { min: 0.0, max: 6.0 }, 6.0, 0.0),
        (ActivationFunction::LeakyRelu { alpha: 0.1 }, f32::INFINITY, f32::NEG_INFINITY),
        (ActivationFunction::HardSigmoid { alpha: 0.2, beta: 0.5 }, 1.0, 0.0),
    ];
    for isa in Isa::available() {
        for (activation, above, below) in cases {
            let mut x = [f32::INFINITY, f32::NEG_INFINITY];
            activate_inplace(KernelContext { pool: &pool, isa }, activation, &mut x);
            for (found, wanted) in x.into_iter().zip([above, below]) {
                let equal = found == wanted || (found.is_nan() && wanted.is_nan());
                assert!(equal, "{activation:?} {}: {found}, expected {wanted}", isa.name());
            }
            // Far out, nothing overflows on the way.
            let mut x = [1e38, -1e38];
            activate_inplace(KernelContext { pool: &pool, isa }, activation, &mut x);
            assert!(x.iter().all(|x| !x.is_nan()), "{activation:?} {}", isa.name());
        }
    }
}

#[test]
fn a_nan_stays_a_nan() {
    let pool = ThreadPool::new(1);
    let activations = [
        ActivationFunction::None,
        ActivationFunction::Relu,
        ActivationFunction::Clip { min: 0.0, max: 6.0 },
        ActivationFunction::Gelu,
        ActivationFunction::GeluTanh,
        ActivationFunction::Sigmoid,
        ActivationFunction::Tanh,
        ActivationFunction::Silu,
        ActivationFunction::HardSwish,
        ActivationFunction::LeakyRelu { alpha: 0.1 },
    ];
    for isa in Isa::available() {
        let exec = KernelContext { pool: &pool, isa };
        for activation in activations {
            let mut x = [f32::NAN; 3];
            activate_inplace(exec, activation, &mut x);
            assert!(x.iter().all(|v| v.is_nan()), "{activation:?} {}", isa.name());
        }
        for f in [BinaryFunction::Add, BinaryFunction::Max, BinaryFunction::Min] {
            for (a, b) in [(f32::NAN, 1.0), (1.0, f32::NAN), (f32::NAN, f32::INFINITY)] {
                let mut y = [0.0];
                binary(exec, f, &[a], &[b], OperandBroadcast::Same, &mut y);
                assert!(y[0].is_nan(), "{f:?} {}", isa.name());
            }
        }
        let mut y = [f32::INFINITY, f32::NEG_INFINITY];
        binary_inplace(exec, BinaryFunction::Max, &mut y, &[1.0], OperandBroadcast::Scalar);
        assert_eq!(y, [f32::INFINITY, 1.0]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn binaries_equal_the_reference_for_every_broadcast(
        rows in 0usize..50, columns in 1usize..70, seed in 0u32..1000,
        f in prop_oneof![
            Just(BinaryFunction::Add), Just(BinaryFunction::Sub), Just(BinaryFunction::ReverseSub), Just(BinaryFunction::Mul),
            Just(BinaryFunction::Div), Just(BinaryFunction::ReverseDiv), Just(BinaryFunction::Max), Just(BinaryFunction::Min), Just(BinaryFunction::Prelu),
            Just(BinaryFunction::Pow), Just(BinaryFunction::ReversePow),
        ],
    ) {
        let pool = ThreadPool::new(2);
        let positive = |len, seed| -> Vec<f32> {
            values(len, seed).iter().map(|v| v + 1.5).collect()
        };
        let a = positive(rows * columns, seed);
        for isa in Isa::available() {
            for broadcast in [
                OperandBroadcast::Same, OperandBroadcast::Scalar,
                OperandBroadcast::Row { columns }, OperandBroadcast::Column { columns },
            ] {
                let b = positive(match broadcast {
                    OperandBroadcast::Same => rows * columns,
                    OperandBroadcast::Scalar => 1,
                    OperandBroadcast::Row { columns } => columns,
                    OperandBroadcast::Column { .. } => rows,
                }, seed + 1);
                let mut y = vec![f32::NAN; a.len()];
                binary(KernelContext { pool: &pool, isa }, f, &a, &b, broadcast, &mut y);
                for (i, &y) in y.iter().enumerate() {
                    let b = match broadcast {
                        OperandBroadcast::Same => b[i],
                        OperandBroadcast::Scalar => b[0],
                        OperandBroadcast::Row { columns } => b[i % columns],
                        OperandBroadcast::Column { columns } => b[i / columns],
                    };
                    let a = f64::from(a[i]);
                    let b = f64::from(b);
                    let want = match f {
                        BinaryFunction::Add => a + b,
                        BinaryFunction::Sub => a - b,
                        BinaryFunction::ReverseSub => b - a,
                        BinaryFunction::Mul => a * b,
                        BinaryFunction::Div => a / b,
                        BinaryFunction::ReverseDiv => b / a,
                        BinaryFunction::Max => a.max(b),
                        BinaryFunction::Min => a.min(b),
                        BinaryFunction::Prelu => if a < 0.0 { a * b } else { a },
                        BinaryFunction::Pow => a.powf(b),
                        BinaryFunction::ReversePow => b.powf(a),
                    };
                    prop_assert!(ulps(y, want) <= 1.0, "{f:?} {broadcast:?} {y} {want}");
                }
            }
        }
    }
}
