//! Programs of FP16 whose values FP16 would not hold: sums of bytes, long sums, exponentials of what is bounded, and
//! whatever else a run brings. No element is lost that FP32 has.

use std::sync::Arc;

use galatea_coreml::engine::counts;
use galatea_coreml::{ConvertOptions, CoreMlProvider, CoreMlSettings, convert};
use galatea_formats::coreml::mil::MilElement;
use galatea_formats::coreml::{load, write_package};
use galatea_graph::{AttributeValue, Attributes, Dim, Fact, Graph, ValueId};
use galatea_providers::cpu::CpuProvider;
use galatea_runtime::quantize::{OutputComparison, compare};
use galatea_runtime::{ExecutionProvider, OptimiseLevel, Run, Session, SessionOptions};
use galatea_tensor::{DataType, Tensor};

/// A graph in the making.
struct Build(Graph);

impl Build {
    fn new() -> Self {
        let mut graph = Graph::new("ranges");
        graph.opsets.insert(String::new(), 21);
        graph.opsets.insert("com.microsoft".to_owned(), 1);
        Self(graph)
    }

    fn input(&mut self, name: &str, shape: &[usize]) -> ValueId {
        let id = self.0.value_named(name);
        self.0.value_mut(id).declared = Some(Fact::fixed(DataType::Fp32, shape));
        self.0.inputs.push(id);
        id
    }

    fn constant(&mut self, tensor: Tensor) -> ValueId {
        self.0.add_constant("c", tensor)
    }

    fn number(&mut self, value: f32) -> ValueId {
        self.constant(Tensor::scalar(value))
    }

    fn nodes(
        &mut self,
        name: &str,
        named: &[(&str, AttributeValue)],
        inputs: &[ValueId],
        outputs: usize,
    ) -> Vec<ValueId> {
        let (domain, name) = name.split_once(':').unwrap_or(("", name));
        let attributes: Attributes =
            named.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let made: Vec<ValueId> = (0..outputs).map(|_| self.0.fresh_value(name)).collect();
        let inputs = inputs.iter().copied().map(Some).collect();
        let slots = made.iter().copied().map(Some).collect();
        self.0.add_node(domain, name, "", &attributes, inputs, slots).unwrap();
        made
    }

    fn op(&mut self, name: &str, inputs: &[ValueId]) -> ValueId {
        self.nodes(name, &[], inputs, 1)[0]
    }

    fn float(&mut self, sums: ValueId) -> ValueId {
        self.nodes("Cast", &[("to", 1_i64.into())], &[sums], 1)[0]
    }

    fn done(mut self, outputs: &[ValueId]) -> Graph {
        self.0.outputs = outputs.to_vec();
        self.0
    }
}

/// Repeatable numbers from 0 to before 1.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f32::from(u16::try_from(self.0 >> 48).unwrap()) / 65_536.0
    }

    fn below(&mut self, count: usize) -> usize {
        ((self.next() * count as f32) as usize).min(count - 1)
    }

    fn floats(&mut self, shape: &[usize], low: f32, high: f32) -> Tensor {
        let count = shape.iter().product();
        let all = (0..count).map(|_| low + (high - low) * self.next()).collect();
        Tensor::from_vec(shape, all).unwrap()
    }

    fn codes(&mut self, shape: &[usize], signed: bool) -> Tensor {
        let count = shape.iter().product();
        let all: Vec<f32> = (0..count).map(|_| self.next() * 256.0).collect();
        match signed {
            true => Tensor::from_vec(
                shape,
                all.into_iter().map(|one| (one - 128.0).floor() as i8).collect::<Vec<_>>(),
            ),
            false => {
                Tensor::from_vec(shape, all.into_iter().map(|one| one as u8).collect::<Vec<_>>())
            }
        }
        .unwrap()
    }
}

fn cpu() -> Vec<Arc<dyn ExecutionProvider>> {
    vec![Arc::new(CpuProvider::new())]
}

/// Writes the package, reads it, runs it operation by operation, and compares it with the model in FP32: the first
/// output.
fn compared(graph: &Graph, x: &Tensor, level: OptimiseLevel) -> OutputComparison {
    let options = ConvertOptions { level, ..ConvertOptions::default() };
    let package = convert(graph, &options).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.mlpackage");
    write_package(&path, &package).unwrap();
    let program = load(&path).unwrap().functions[0].graph.clone();
    let exact = Session::new(graph.clone(), &cpu(), &SessionOptions::default()).unwrap();
    let plain = SessionOptions { optimise: OptimiseLevel::O1, ..SessionOptions::default() };
    let program = Session::new(program, &cpu(), &plain).unwrap();
    compare(&exact, &program, &[vec![("x".to_owned(), x.clone())]]).unwrap().remove(0)
}

/// A session of which the provider takes all that it can.
fn served(graph: &Graph, settings: CoreMlSettings) -> Session {
    let provider = CoreMlProvider::new().with_settings(settings).forced();
    let providers = [provider, Arc::new(CpuProvider::new()) as Arc<dyn ExecutionProvider>];
    let options = SessionOptions { optimise: OptimiseLevel::O1, ..SessionOptions::default() };
    Session::new(graph.clone(), &providers, &options).unwrap()
}

fn unprobed() -> CoreMlSettings {
    CoreMlSettings { probe: Some(false), ..CoreMlSettings::default() }
}

/// How the units of codes come to the sums.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Units {
    /// Both as one factor, as quantisers write it.
    Together,
    /// One after the other.
    InTurn,
    /// The units as a divisor.
    Divided,
}

/// Codes of `x` times a matrix of codes, as floats, with a bias.
fn dynamic_product(
    noise: &mut Noise,
    (rows, length, columns): (usize, usize, usize),
    (signed, zero, by_column): (bool, bool, bool),
    units: Units,
) -> Graph {
    let mut build = Build::new();
    let x = build.input("x", &[rows, length]);
    let [codes, scale, point] = build.nodes("DynamicQuantizeLinear", &[], &[x], 3)[..] else {
        panic!("three results")
    };
    let weights = build.constant(noise.codes(&[length, columns], signed));
    let mut inputs = vec![codes, weights, point];
    if zero {
        let tensor = if signed { Tensor::scalar(3_i8) } else { Tensor::scalar(120_u8) };
        inputs.push(build.constant(tensor));
    }
    let sums = build.op("MatMulInteger", &inputs);
    let sums = build.float(sums);
    let shape = if by_column { vec![columns] } else { Vec::new() };
    let unit = build.constant(noise.floats(&shape, 0.001, 0.01));
    let y = match units {
        Units::Together => {
            let both = build.op("Mul", &[scale, unit]);
            build.op("Mul", &[sums, both])
        }
        Units::InTurn => {
            let once = build.op("Mul", &[sums, scale]);
            build.op("Mul", &[once, unit])
        }
        Units::Divided => {
            let both = build.op("Mul", &[scale, unit]);
            let inverse = build.op("Reciprocal", &[both]);
            build.op("Div", &[sums, inverse])
        }
    };
    let bias = build.constant(noise.floats(&[columns], -1.0, 1.0));
    let y = build.op("Add", &[y, bias]);
    build.done(&[y])
}

#[test]
fn products_of_dynamic_codes_are_finite_and_near_those_in_fp32() {
    let mut noise = Noise(1);
    for length in [16, 100, 1024, 4096] {
        for at in 0..8 {
            let kinds = (at & 1 == 0, at & 2 == 0, at & 4 == 0);
            let units = [Units::Together, Units::InTurn, Units::Divided][at % 3];
            let level = [OptimiseLevel::O2, OptimiseLevel::O3, OptimiseLevel::O0][at % 3];
            let graph = dynamic_product(&mut noise, (1 + at, length, 8), kinds, units);
            let reach = [1e-3, 1.0, 30.0][(at + 1) % 3];
            let x = noise.floats(&[1 + at, length], -reach, reach);
            let found = compared(&graph, &x, level);
            let what = format!("{length} {kinds:?} {units:?} {level:?} {reach}: {found:?}");
            assert!(found.broken == 0 && found.relative < 0.02, "{what}");
            let session = served(&graph, CoreMlSettings::default());
            assert_eq!(session.partition_providers(), ["coreml"], "{what}");
            let y =
                session.run_tensors(Run::named(&[("x", x)])).unwrap()[0].to_vec::<f32>().unwrap();
            assert!(y.iter().all(|value| value.is_finite()), "{what}");
        }
    }
}

#[test]
fn inputs_that_are_positive_only_give_the_largest_sums() {
    let mut noise = Noise(2);
    let kinds = (false, false, false);
    let mut graph = dynamic_product(&mut noise, (2, 4096, 4), kinds, Units::Together);
    for open in [false, true] {
        if open {
            // Rows that a run brings.
            let shape = vec![Dim::symbol("rows"), Dim::Known(4096)];
            let x = graph.inputs[0];
            graph.value_mut(x).declared = Some(Fact::new(DataType::Fp32, shape));
        }
        let x = noise.floats(&[2, 4096], 0.9, 1.0);
        let found = compared(&graph, &x, OptimiseLevel::O2);
        assert!(found.broken == 0 && found.relative < 0.02, "{open}: {found:?}");
    }
}

#[test]
fn scores_are_scaled_before_they_are_summed() {
    for (name, number) in [("Mul", 1.0 / 64.0), ("Div", 64.0)] {
        let mut build = Build::new();
        let x = build.input("x", &[4, 64]);
        let turned = build.nodes("Transpose", &[], &[x], 1)[0];
        let scores = build.op("MatMul", &[x, turned]);
        let number = build.number(number);
        let scores = build.op(name, &[scores, number]);
        let scores = build.op("Softmax", &[scores]);
        let graph = build.done(&[scores]);
        // Their sums of squares are beyond FP16.
        let x = Noise(8).floats(&[4, 64], 30.0, 60.0);
        let found = compared(&graph, &x, OptimiseLevel::O2);
        assert!(found.broken == 0, "{found:?}");
    }
}

#[test]
fn convolutions_of_dynamic_codes_are_finite_and_near_those_in_fp32() {
    let mut noise = Noise(3);
    for (channels, window, zero) in [(4, 1, false), (16, 3, true), (64, 3, false), (256, 3, true)] {
        let mut build = Build::new();
        let shape = [1, channels, 6, 6];
        let x = build.input("x", &shape);
        let made = build.nodes("DynamicQuantizeLinear", &[], &[x], 3);
        let weights = build.constant(noise.codes(&[5, channels, window, window], false));
        let mut inputs = vec![made[0], weights, made[2]];
        if zero {
            inputs.push(build.constant(Tensor::scalar(100_u8)));
        }
        let sums = build.op("ConvInteger", &inputs);
        let sums = build.float(sums);
        let unit = build.constant(noise.floats(&[1, 5, 1, 1], 0.001, 0.01));
        let both = build.op("Mul", &[made[1], unit]);
        let y = build.op("Mul", &[sums, both]);
        let y = build.op("Relu", &[y]);
        let graph = build.done(&[y]);
        for reach in [1e-3, 1.0, 50.0] {
            let x = noise.floats(&shape, -reach / 4.0, reach);
            let found = compared(&graph, &x, OptimiseLevel::O2);
            assert!(found.broken == 0 && found.relative < 0.02, "{channels} {reach}: {found:?}");
        }
    }
}

#[test]
fn scales_that_a_graph_finds_itself_are_computed_in_fp32_too() {
    let mut noise = Noise(4);
    let mut build = Build::new();
    let x = build.input("x", &[3, 512]);
    let size = build.op("Abs", &[x]);
    let most = build.nodes("ReduceMax", &[("keepdims", 0_i64.into())], &[size], 1)[0];
    let limit = build.number(127.0);
    let scale = build.op("Div", &[most, limit]);
    let made = build.nodes("DynamicQuantizeLinear", &[], &[x], 3);
    let weights = build.constant(noise.codes(&[512, 6], true));
    let sums = build.op("MatMulInteger", &[made[0], weights, made[2]]);
    let sums = build.float(sums);
    let once = build.op("Mul", &[sums, scale]);
    let unit = build.number(0.004);
    let y = build.op("Mul", &[once, unit]);
    let graph = build.done(&[y]);
    let x = noise.floats(&[3, 512], -2.0, 2.0);
    let found = compared(&graph, &x, OptimiseLevel::O2);
    assert!(found.broken == 0 && found.relative < 0.02, "{found:?}");
}

#[test]
fn products_that_quantise_as_they_run_hold_small_and_large_inputs() {
    let mut noise = Noise(5);
    for (name, reach) in
        [("Dynamic", 1e-5), ("Dynamic", 1.0), ("Dynamic", 5e4), ("ToFloat", 1e-4), ("ToFloat", 9.0)]
    {
        let mut build = Build::new();
        let x = build.input("x", &[2, 64]);
        let weights = build.constant(noise.codes(&[64, 4], true));
        let unit = build.number(1e-3);
        let y = match name {
            "Dynamic" => build.op("com.microsoft:DynamicQuantizeMatMul", &[x, weights, unit]),
            _ => {
                let made = build.nodes("DynamicQuantizeLinear", &[], &[x], 3);
                let inputs = [made[0], weights, made[1], unit, made[2]];
                build.op("com.microsoft:MatMulIntegerToFloat", &inputs)
            }
        };
        let large = build.number(0.1 / reach);
        let y = build.op("Mul", &[y, large]);
        let graph = build.done(&[y]);
        let x = noise.floats(&[2, 64], -reach, reach);
        let found = compared(&graph, &x, OptimiseLevel::O2);
        assert!(found.broken == 0 && found.relative < 0.1, "{name} {reach}: {found:?}");
    }
}

/// One case of what has a bound: how it is made of the input, and what the input is.
type Case = (&'static str, fn(&mut Build, ValueId) -> ValueId, f32);

const BOUNDED: &[Case] = &[
    (
        "an exponential of what is limited",
        |build, x| {
            let (low, high) = (build.number(-15.0), build.number(15.0));
            let x = build.op("Clip", &[x, low, high]);
            let power = build.op("Exp", &[x]);
            build.op("Log", &[power])
        },
        20.0,
    ),
    (
        "a square of what is limited",
        |build, x| {
            let (low, high) = (build.number(-900.0), build.number(900.0));
            let x = build.op("Clip", &[x, low, high]);
            let square = build.op("Mul", &[x, x]);
            build.op("Sqrt", &[square])
        },
        900.0,
    ),
    (
        "a norm of a long row",
        |build, x| {
            let axes = build.constant(Tensor::vector(vec![1_i64]));
            let sum = build.op("ReduceSumSquare", &[x, axes]);
            let root = build.op("Sqrt", &[sum]);
            build.op("Div", &[x, root])
        },
        100.0,
    ),
    (
        "a long norm",
        |build, x| {
            let axes = build.constant(Tensor::vector(vec![1_i64]));
            let norm = build.op("ReduceL2", &[x, axes]);
            build.op("Div", &[x, norm])
        },
        5000.0,
    ),
    (
        "a share of a long sum",
        |build, x| {
            let axes = build.constant(Tensor::vector(vec![1_i64]));
            let size = build.op("Abs", &[x]);
            let sum = build.op("ReduceSum", &[size, axes]);
            build.op("Div", &[size, sum])
        },
        200.0,
    ),
    (
        "a share of a long sum of magnitudes",
        |build, x| {
            let axes = build.constant(Tensor::vector(vec![1_i64]));
            let sum = build.op("ReduceL1", &[x, axes]);
            build.op("Div", &[x, sum])
        },
        200.0,
    ),
    (
        "a product of many",
        |build, x| {
            let axes = build.constant(Tensor::vector(vec![1_i64]));
            let one = build.number(1.0);
            let near = build.number(0.01);
            let x = build.op("Abs", &[x]);
            let x = build.op("Mul", &[x, near]);
            let x = build.op("Add", &[x, one]);
            let product = build.op("ReduceProd", &[x, axes]);
            build.op("Log", &[product])
        },
        1.0,
    ),
];

#[test]
fn what_is_bounded_or_long_passes_through_fp32() {
    let mut noise = Noise(6);
    for (name, make, reach) in BOUNDED {
        let mut build = Build::new();
        let x = build.input("x", &[2, 2048]);
        let y = make(&mut build, x);
        let graph = build.done(&[y]);
        let x = noise.floats(&[2, 2048], *reach / 10.0, *reach);
        let found = compared(&graph, &x, OptimiseLevel::O2);
        assert!(found.broken == 0 && found.relative < 0.01, "{name}: {found:?}");
    }
}

#[test]
fn results_beyond_fp16_leave_the_program_whole() {
    let mut build = Build::new();
    let x = build.input("x", &[1, 2048]);
    let axes = build.constant(Tensor::vector(vec![1_i64]));
    let sum = build.op("ReduceSumSquare", &[x, axes]);
    let graph = build.done(&[sum]);
    let x = Tensor::from_vec(&[1, 2048], vec![16.0_f32; 2048]).unwrap();
    let found = compared(&graph, &x, OptimiseLevel::O2);
    assert!(found.broken == 0 && found.relative < 1e-5, "{found:?}");
}

/// The results in a program that are FP32, but for its border.
fn wide(graph: &Graph) -> usize {
    let package = convert(graph, &ConvertOptions::default()).unwrap();
    let block = &package.program.functions["main"].block;
    let inner = block.operations.iter().flat_map(|operation| &operation.outputs);
    let inner = inner.filter(|(name, _)| !block.outputs.contains(name));
    inner
        .filter(|(_, found)| found.as_tensor().is_some_and(|one| one.element == MilElement::Fp32))
        .count()
}

#[test]
fn what_nothing_proves_stays_fp16() {
    let mut noise = Noise(7);
    let mut build = Build::new();
    let x = build.input("x", &[4, 64]);
    let weights = build.constant(noise.floats(&[64, 64], -0.3, 0.3));
    let y = build.op("MatMul", &[x, weights]);
    let y = build.op("Sigmoid", &[y]);
    let y = build.op("MatMul", &[y, weights]);
    let power = build.op("Exp", &[y]);
    let axes = build.constant(Tensor::vector(vec![1_i64]));
    let sum = build.op("ReduceSum", &[power, axes]);
    let y = build.op("Div", &[power, sum]);
    let mask = build.constant(Tensor::scalar(f32::MIN));
    let y = build.op("Add", &[y, mask]);
    let y = build.op("Softmax", &[y]);
    let graph = build.done(&[y]);
    assert_eq!(wide(&graph), 0);
    // One sum of bytes makes as few others wide as there are between it and its scale.
    let one = dynamic_product(&mut noise, (2, 64, 8), (true, false, true), Units::Together);
    let mut two = Build(one);
    let y = two.0.outputs[0];
    let y = two.op("Tanh", &[y]);
    let weights = two.constant(noise.floats(&[8, 8], -0.3, 0.3));
    let y = two.op("MatMul", &[y, weights]);
    let before = wide(&two.0);
    let graph = two.done(&[y]);
    assert_eq!(wide(&graph), before);
}

#[test]
fn what_a_run_brings_beyond_fp16_is_answered_by_others() {
    let mut build = Build::new();
    let x = build.input("x", &[2, 3]);
    let y = build.op("Exp", &[x]);
    let graph = build.done(&[y]);
    let of = |value: f32| Tensor::from_vec(&[2, 3], vec![value; 6]).unwrap();
    let run = |session: &Session, value: f32| {
        session.run_tensors(Run::named(&[("x", of(value))])).unwrap()[0].to_vec::<f32>().unwrap()[0]
    };
    for settings in [CoreMlSettings::default(), unprobed()] {
        // At once, and behind runs that were right.
        for before in [0, 3] {
            let session = served(&graph, settings.clone());
            for _ in 0..before {
                assert!((run(&session, 1.0) - 1.0_f32.exp()).abs() < 2e-3);
            }
            let counted = counts();
            let found = run(&session, 20.0);
            assert!((found / 20.0_f32.exp() - 1.0).abs() < 1e-5, "{found}");
            let after = counts();
            assert!(after.nonfinite > counted.nonfinite && after.fallbacks > counted.fallbacks);
            // From now on others serve: digits that FP16 does not have.
            assert!((run(&session, 1.0) - 1.0_f32.exp()).abs() < 1e-6);
        }
    }
    // Where FP32 has no number either, nobody is to blame.
    let session = served(&graph, unprobed());
    assert!(run(&session, 89.0).is_infinite());
    assert!(run(&session, f32::NAN).is_nan());
    assert!((run(&session, 1.0) - 1.0_f32.exp()).abs() > 1e-6, "FP16 still serves");
}

#[test]
fn first_results_that_are_finite_and_wrong_are_not_served() {
    // The square is infinite in FP16, its inverse zero, where FP32 has a small number.
    let mut build = Build::new();
    let x = build.input("x", &[2, 3]);
    let square = build.op("Mul", &[x, x]);
    let inverse = build.op("Reciprocal", &[square]);
    let large = build.number(1000.0);
    let y = build.op("Mul", &[inverse, large]);
    let graph = build.done(&[y]);
    let x = Tensor::from_vec(&[2, 3], vec![300.0_f32; 6]).unwrap();
    let session = served(&graph, CoreMlSettings::default());
    let found =
        session.run_tensors(Run::named(&[("x", x)])).unwrap()[0].to_vec::<f32>().unwrap()[0];
    assert!((found / (1000.0 / 90_000.0) - 1.0).abs() < 1e-5, "{found}");
}

/// A random operator on values of `[4, 32]`.
fn grown(build: &mut Build, noise: &mut Noise, all: &[ValueId]) -> ValueId {
    let last = *all.last().unwrap();
    let x = if noise.next() < 0.7 { last } else { all[noise.below(all.len())] };
    let y = all[noise.below(all.len())];
    let axes = build.constant(Tensor::vector(vec![1_i64]));
    let one = |build: &mut Build, names: &[&str], noise: &mut Noise| {
        build.op(names[noise.below(names.len())], &[x])
    };
    match noise.below(8) {
        0 => one(build, &["Exp", "Sigmoid", "Tanh", "Relu", "Softplus", "Erf"], noise),
        1 => one(build, &["Abs", "Neg", "Softmax", "Gelu", "HardSwish", "Elu"], noise),
        2 => build.op(["Add", "Sub", "Mul", "Max", "Min"][noise.below(5)], &[x, y]),
        3 => {
            let kinds = ["ReduceSum", "ReduceSumSquare", "ReduceL2", "ReduceL1", "ReduceLogSumExp"];
            let sum = build.op(kinds[noise.below(5)], &[x, axes]);
            build.op("Sub", &[x, sum])
        }
        4 => {
            let size = build.op("Abs", &[x]);
            let least = build.number(0.01);
            let size = build.op("Add", &[size, least]);
            let name = ["Sqrt", "Log", "Reciprocal"][noise.below(3)];
            build.op(name, &[size])
        }
        5 => {
            let factor = 10.0_f32.powf(noise.next() * 6.0 - 3.0);
            let factor = build.number(factor);
            build.op("Mul", &[x, factor])
        }
        6 => {
            let weights = build.constant(noise.floats(&[32, 32], -2.0, 2.0));
            build.op("MatMul", &[x, weights])
        }
        _ => {
            let made = build.nodes("DynamicQuantizeLinear", &[], &[x], 3);
            let weights = build.constant(noise.codes(&[32, 32], true));
            let sums = build.op("MatMulInteger", &[made[0], weights, made[2]]);
            let sums = build.float(sums);
            let unit = build.number(0.01);
            let unit = build.op("Mul", &[made[1], unit]);
            build.op("Mul", &[sums, unit])
        }
    }
}

#[test]
fn no_random_graph_loses_numbers_that_fp32_has() {
    let (mut lost, mut compared) = (Vec::new(), 0);
    for seed in 0..300 {
        let mut noise = Noise(1000 + seed);
        let mut build = Build::new();
        let x = build.input("x", &[4, 32]);
        let mut all = vec![x];
        for _ in 0..2 + noise.below(6) {
            let next = grown(&mut build, &mut noise, &all);
            all.push(next);
        }
        let graph = build.done(&[*all.last().unwrap()]);
        let exact = Session::new(graph.clone(), &cpu(), &SessionOptions::default()).unwrap();
        let settings = if seed % 2 == 0 { CoreMlSettings::default() } else { unprobed() };
        let half = served(&graph, settings);
        for reach in [1.0, 10.0, 1000.0] {
            let x = noise.floats(&[4, 32], -reach, reach);
            let run = |session: &Session| -> Vec<f32> {
                session.run_tensors(Run::named(&[("x", x.clone())])).unwrap()[0].to_vec().unwrap()
            };
            let (expected, found) = (run(&exact), run(&half));
            compared += usize::from(half.partition_providers().contains(&"coreml"));
            let is_lost = |(found, expected): (&f32, &f32)| {
                !found.is_finite() && expected.is_finite() || found.is_nan() && !expected.is_nan()
            };
            if found.iter().zip(&expected).any(is_lost) {
                lost.push((seed, reach));
            }
        }
    }
    assert!(lost.is_empty(), "{lost:?}");
    assert!(compared > 600, "{compared} runs of programs");
}
