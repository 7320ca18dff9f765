//! Programs of FP16 whose values FP16 would not hold: sums of bytes, long sums, exponentials of what is bounded, and
//! whatever else a run brings. No element is lost that FP32 has.

use std::sync::Arc;

use galatea_coreml::engine::counts;
use galatea_coreml::{ConvertOptions, CoreMlProvider, CoreMlSettings, convert, first_lost};
use galatea_formats::coreml::mil::MilElement;
use galatea_formats::coreml::{load, write_package};
use galatea_graph::{AttributeValue, Attributes, Dim, Fact, Graph, ValueId};
use galatea_providers::cpu::CpuProvider;
use galatea_runtime::quantize::{OutputComparison, QuantizeContext, compare};
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
        "a norm of what may be nothing",
        |build, x| {
            let axes = build.constant(Tensor::vector(vec![1_i64]));
            let nothing = build.number(0.0);
            let x = build.op("Mul", &[x, nothing]);
            let square = build.op("Mul", &[x, x]);
            let mean = build.op("ReduceMean", &[square, axes]);
            let least = build.number(1e-12);
            let sum = build.op("Add", &[mean, least]);
            let root = build.op("Sqrt", &[sum]);
            let inverse = build.op("Reciprocal", &[root]);
            let y = build.op("Mul", &[x, inverse]);
            let one = build.number(1.0);
            build.op("Add", &[y, one])
        },
        3.0,
    ),
    (
        "a quotient by what is at least a little",
        |build, x| {
            let limit = build.number(0.5);
            let x = build.op("Sub", &[x, x]);
            let axes = build.constant(Tensor::vector(vec![1_i64]));
            let norm = build.op("ReduceL2", &[x, axes]);
            let least = build.number(1e-12);
            let norm = build.op("Max", &[norm, least]);
            let y = build.op("Div", &[x, norm]);
            build.op("Add", &[y, limit])
        },
        3.0,
    ),
    (
        "a logarithm of nearly nothing",
        |build, x| {
            let x = build.op("Sub", &[x, x]);
            let least = build.number(1e-9);
            let x = build.op("Add", &[x, least]);
            build.op("Log", &[x])
        },
        3.0,
    ),
    (
        "a unit that is next to nothing",
        |build, x| {
            let small = build.number(1e-9);
            let x = build.op("Mul", &[x, small]);
            let x = build.op("Neg", &[x]);
            let back = build.number(1e9);
            build.op("Mul", &[x, back])
        },
        3.0,
    ),
    (
        "a factor beyond FP16",
        |build, x| {
            let large = build.number(1e6);
            let x = build.op("Mul", &[x, large]);
            build.op("Div", &[x, large])
        },
        30.0,
    ),
    (
        "the logarithm of a sum of exponentials",
        |build, x| {
            let power = build.op("Exp", &[x]);
            let axes = build.constant(Tensor::vector(vec![1_i64]));
            let sum = build.op("ReduceSum", &[power, axes]);
            build.op("Log", &[sum])
        },
        30.0,
    ),
    (
        "exponentials over their sum",
        |build, x| {
            let power = build.op("Exp", &[x]);
            let axes = build.constant(Tensor::vector(vec![1_i64]));
            let sum = build.op("ReduceSum", &[power, axes]);
            build.op("Div", &[power, sum])
        },
        30.0,
    ),
    (
        "exponentials over one more than themselves",
        |build, x| {
            let power = build.op("Exp", &[x]);
            let one = build.number(1.0);
            let more = build.op("Add", &[power, one]);
            build.op("Div", &[power, more])
        },
        30.0,
    ),
    (
        "a length of two squares",
        |build, x| {
            let two = build.number(2.0);
            let square = build.op("Pow", &[x, two]);
            let other = build.op("Mul", &[x, x]);
            let sum = build.op("Add", &[square, other]);
            build.op("Sqrt", &[sum])
        },
        3000.0,
    ),
    ("a mean of large numbers", |build, x| build.op("Mean", &[x, x, x]), 60_000.0),
    (
        "a bend far below what it bends",
        |build, x| build.nodes("Celu", &[("alpha", 0.001_f32.into())], &[x], 1)[0],
        1000.0,
    ),
    (
        "statistics beyond FP16",
        |build, x| {
            let all = |value: f32| Tensor::from_vec(&[2048], vec![value; 2048]).unwrap();
            let far = build.number(1e5);
            let x = build.op("Add", &[x, far]);
            let inputs = [1.0, 0.5, 1e5, 1e2].map(|value| build.constant(all(value)));
            build.op("BatchNormalization", &[x, inputs[0], inputs[1], inputs[2], inputs[3]])
        },
        30.0,
    ),
    (
        "sums of what is bounded and positive",
        |build, x| {
            let weights =
                build.constant(Tensor::from_vec(&[2048, 4], vec![90.0_f32; 8192]).unwrap());
            let x = build.op("Sigmoid", &[x]);
            let y = build.op("MatMul", &[x, weights]);
            build.op("Sqrt", &[y])
        },
        3.0,
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
    let axes = build.constant(Tensor::vector(vec![1_i64]));
    let most = build.op("ReduceMax", &[y, axes]);
    let y = build.op("Sub", &[y, most]);
    let power = build.op("Exp", &[y]);
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
    let graph = inverse_square();
    let x = Tensor::from_vec(&[2, 3], vec![300.0_f32; 6]).unwrap();
    let session = served(&graph, CoreMlSettings::default());
    let found =
        session.run_tensors(Run::named(&[("x", x)])).unwrap()[0].to_vec::<f32>().unwrap()[0];
    assert!((found / (1000.0 / 90_000.0) - 1.0).abs() < 1e-5, "{found}");
}

/// The inverse of a square: zero in FP16 from 256 on, where FP32 has a small number.
fn inverse_square() -> Graph {
    let mut build = Build::new();
    let x = build.input("x", &[2, 3]);
    let square = build.op("Mul", &[x, x]);
    let inverse = build.op("Reciprocal", &[square]);
    let large = build.number(1000.0);
    let y = build.op("Mul", &[inverse, large]);
    build.done(&[y])
}

#[test]
fn inputs_that_reach_farther_than_all_before_are_compared() {
    let graph = inverse_square();
    let session = served(&graph, CoreMlSettings::default());
    let run = |value: f32| {
        let x = Tensor::from_vec(&[2, 3], vec![value; 6]).unwrap();
        session.run_tensors(Run::named(&[("x", x)])).unwrap()[0].to_vec::<f32>().unwrap()[0]
    };
    for _ in 0..6 {
        assert!((run(3.0) / (1000.0 / 9.0) - 1.0).abs() < 2e-3);
    }
    let before = counts();
    assert!((run(300.0) / (1000.0 / 90_000.0) - 1.0).abs() < 1e-5);
    let after = counts();
    assert!(after.fallbacks > before.fallbacks && after.comparisons > before.comparisons);
    assert!((run(3.0) / (1000.0 / 9.0) - 1.0).abs() < 1e-6, "others serve");
}

#[test]
fn a_sample_of_later_runs_is_compared_behind_the_answers() {
    // The square of the second element is zero in FP16, where the first one is as large as ever.
    let mut build = Build::new();
    let x = build.input("x", &[1, 2]);
    let (from, to) = (Tensor::vector(vec![1_i64]), Tensor::vector(vec![2_i64]));
    let [from, to] = [from, to].map(|place| build.constant(place));
    let axes = build.constant(Tensor::vector(vec![1_i64]));
    let last = build.op("Slice", &[x, from, to, axes]);
    let mut y = build.op("Mul", &[last, last]);
    let thousand = build.number(1000.0);
    for _ in 0..2 {
        y = build.op("Mul", &[y, thousand]);
    }
    let graph = build.done(&[y]);
    let session = served(&graph, CoreMlSettings::default());
    let run = |value: f32| {
        let x = Tensor::from_vec(&[1, 2], vec![1.0, value]).unwrap();
        session.run_tensors(Run::named(&[("x", x)])).unwrap()[0].to_vec::<f32>().unwrap()[0]
    };
    for _ in 0..2 {
        assert!((run(0.1) / 1e4 - 1.0).abs() < 2e-3);
    }
    let before = counts();
    assert_eq!(run(1e-4), 0.0, "FP16 serves");
    let begun = std::time::Instant::now();
    while run(1e-4) == 0.0 {
        assert!(begun.elapsed().as_secs() < 60, "no run is compared");
        std::thread::yield_now();
    }
    assert!((run(1e-4) / 1e-2 - 1.0).abs() < 1e-5);
    assert!(counts().fallbacks > before.fallbacks);
}

#[test]
fn the_node_that_loses_numbers_first_is_named() {
    let mut build = Build::new();
    let x = build.input("x", &[2, 3]);
    // An infinity that FP32 has too.
    let zero = build.op("Sub", &[x, x]);
    let none = build.op("Log", &[zero]);
    let power = build.op("Exp", &[x]);
    let square = build.op("Mul", &[power, power]);
    let nothing = build.op("Sub", &[square, square]);
    let y = build.op("Max", &[nothing, none]);
    let graph = build.done(&[y]);
    let at = |value: f32| {
        let x = Tensor::from_vec(&[2, 3], vec![value; 6]).unwrap();
        let samples = vec![vec![("x".to_owned(), x)]];
        let context = QuantizeContext {
            providers: &cpu(),
            session: &SessionOptions::default(),
            calibration: &samples,
            evaluation: &[],
        };
        first_lost(&graph, &ConvertOptions::default(), &context).unwrap()
    };
    let found = at(20.0).unwrap();
    assert!(found.place.starts_with("node 2 ") && found.place.ends_with("(Exp)"), "{found:?}");
    assert!(found.reason.starts_with("6 elements of"), "{found:?}");
    assert_eq!(at(1.0), None);
}

#[test]
fn samples_of_the_configuration_are_compared_at_load() {
    let mut build = Build::new();
    let x = build.input("x", &[2, 3]);
    let y = build.op("Exp", &[x]);
    let graph = build.done(&[y]);
    let folder = tempfile::tempdir().unwrap();
    let settings = |value: f32| {
        let path = folder.path().join(format!("{value}.npz"));
        let x = Tensor::from_vec(&[2, 3], vec![value; 6]).unwrap();
        galatea_formats::npy::write_npz(&path, [("x", &x)]).unwrap();
        let text = path.to_str().unwrap().to_owned();
        let given = [("accuracy_probe", "true".to_owned()), ("accuracy_samples", text)];
        let given = given.map(|(name, text)| (name.to_owned(), text));
        CoreMlSettings::of(&given.into(), "others").unwrap()
    };
    assert_eq!(served(&graph, settings(5.0)).partition_providers(), ["coreml"]);
    // Made inputs up to 1 say nothing of these.
    assert_eq!(served(&graph, settings(20.0)).partition_providers(), ["cpu"]);
}
