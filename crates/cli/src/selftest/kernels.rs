//! Families of kernels on each device, at a few shapes and types, beside the reference evaluation.

use std::time::{Duration, Instant};

use galatea_graph::{AttributeValue, Graph, ValueId, evaluate};
use galatea_runtime::{Run, Session, SessionOptions};
use galatea_tensor::Tensor;

use super::line::{SubjectOutcome, SubjectReport};
use super::suite::{GraphBuild, MadeSubject, list};
use super::task::{SelftestEffort, SubjectTask};
use super::units::{self, SelftestUnit};

/// Type that a kernel computes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KernelType {
    Fp32,
    Fp16,
    Bf16,
}

impl KernelType {
    const ALL: [Self; 3] = [Self::Fp32, Self::Fp16, Self::Bf16];

    fn name(self) -> &'static str {
        match self {
            Self::Fp32 => "fp32",
            Self::Fp16 => "fp16",
            Self::Bf16 => "bf16",
        }
    }

    /// Number of the type in ONNX.
    fn number(self) -> i64 {
        match self {
            Self::Fp32 => 1,
            Self::Fp16 => 10,
            Self::Bf16 => 16,
        }
    }

    /// Largest accepted difference: roundings of the type, of sums and of functions.
    fn tolerance(self) -> f64 {
        match self {
            Self::Fp32 => 1e-4,
            Self::Fp16 => 2e-2,
            Self::Bf16 => 6e-2,
        }
    }
}

/// A node in the making.
struct KernelCaseBuild {
    build: GraphBuild,
    element: KernelType,
    /// Length that the shapes follow.
    size: usize,
}

impl KernelCaseBuild {
    /// An input in the type of the kernel.
    fn input(&mut self, name: &str, shape: &[usize]) -> MadeSubject {
        let id = self.build.input(name, shape)?;
        self.cast(id)
    }

    fn weight(&mut self, shape: &[usize]) -> MadeSubject {
        let inner = shape.iter().skip(1).product::<usize>().clamp(1, 4096);
        let id = self.build.weight(shape, u16::try_from(inner).unwrap_or(1))?;
        self.cast(id)
    }

    fn cast(&mut self, id: ValueId) -> MadeSubject {
        match self.element {
            KernelType::Fp32 => Ok(id),
            other => self.build.op("Cast", &[("to", other.number().into())], &[id]),
        }
    }
}

type MakeKernel = fn(&mut KernelCaseBuild) -> MadeSubject;

/// A family of kernels.
pub(super) struct FamilySubject {
    name: &'static str,
    make: MakeKernel,
    types: &'static [KernelType],
    /// True if it is tested with each instruction set of the CPU, whose kernels of it are other ones.
    each_isa: bool,
}

impl FamilySubject {
    const fn new(name: &'static str, make: MakeKernel, types: &'static [KernelType]) -> Self {
        Self { name, make, types, each_isa: false }
    }

    const fn by_isa(self) -> Self {
        Self { each_isa: true, ..self }
    }
}

const ANY: &[KernelType] = &[KernelType::Fp32, KernelType::Fp16];
const PRODUCTS: &[KernelType] = &KernelType::ALL;
const SINGLE: &[KernelType] = &[KernelType::Fp32];

/// Families of kernels of the CPU and of GPUs.
const FAMILIES: &[FamilySubject] = &[
    FamilySubject::new("matmul", matmul, PRODUCTS),
    FamilySubject::new("dot-product", dot_product, ANY).by_isa(),
    FamilySubject::new("matmul-int8", matmul_int8, SINGLE).by_isa(),
    FamilySubject::new("conv", conv, ANY).by_isa(),
    FamilySubject::new("conv-depthwise", depthwise, ANY).by_isa(),
    FamilySubject::new("pool", pool, ANY),
    FamilySubject::new("softmax", softmax, ANY).by_isa(),
    FamilySubject::new("normalize", normalize, ANY).by_isa(),
    FamilySubject::new("reduce", reduce, ANY).by_isa(),
    FamilySubject::new("elements", elements, ANY).by_isa(),
    FamilySubject::new("movement", movement, ANY),
    FamilySubject::new("attention", attention, ANY).by_isa(),
    FamilySubject::new("rotary", rotary, SINGLE),
    FamilySubject::new("resize", resize, SINGLE),
    FamilySubject::new("quantize", quantize, SINGLE).by_isa(),
    FamilySubject::new("lstm", lstm, SINGLE),
    FamilySubject::new("not-finite", not_finite, ANY).by_isa(),
];

fn matmul(made: &mut KernelCaseBuild) -> MadeSubject {
    let n = made.size;
    let x = made.input("x", &[n, n + 3])?;
    let w = made.weight(&[n + 3, 2 * n])?;
    made.build.plain("MatMul", &[x, w])
}

/// Rows by columns one at a time: dot products, and sums of rows.
fn dot_product(made: &mut KernelCaseBuild) -> MadeSubject {
    let n = 16 * made.size + 3;
    let x = made.input("x", &[1, n])?;
    let one = made.weight(&[n, 1])?;
    let several = made.weight(&[n, 5])?;
    let first = made.build.plain("MatMul", &[x, one])?;
    let others = made.build.plain("MatMul", &[x, several])?;
    made.build.plain("Add", &[first, others])
}

/// A product of bytes, whose scale is that of its input.
fn matmul_int8(made: &mut KernelCaseBuild) -> MadeSubject {
    let n = made.size;
    let x = made.input("x", &[n, n + 3])?;
    let places = 0..(n + 3) * 2 * n;
    let codes: Vec<i8> = places
        .map(|at| i8::try_from(at % 13).unwrap_or(0) - i8::try_from(at % 5).unwrap_or(0))
        .collect();
    let codes = Tensor::from_vec(&[n + 3, 2 * n], codes).map_err(|error| error.to_string())?;
    let codes = made.build.graph.add_constant("codes", codes);
    let [bytes, scale, zero] = made.build.outputs("DynamicQuantizeLinear", &[x])?;
    let none = made.build.graph.add_constant("none", Tensor::scalar(0_i8));
    let sums = made.build.plain("MatMulInteger", &[bytes, codes, zero, none])?;
    let sums = made.build.op("Cast", &[("to", KernelType::Fp32.number().into())], &[sums])?;
    made.build.plain("Mul", &[sums, scale])
}

fn conv(made: &mut KernelCaseBuild) -> MadeSubject {
    let x = made.input("x", &[1, 8, made.size, made.size])?;
    let w = made.weight(&[16, 8, 3, 3])?;
    made.build.op("Conv", &[("pads", list(&[1, 1, 1, 1]))], &[x, w])
}

fn depthwise(made: &mut KernelCaseBuild) -> MadeSubject {
    let x = made.input("x", &[1, 8, made.size, made.size])?;
    let w = made.weight(&[8, 1, 3, 3])?;
    let named = [("pads", list(&[1, 1, 1, 1])), ("group", 8_i64.into())];
    made.build.op("Conv", &named, &[x, w])
}

fn pool(made: &mut KernelCaseBuild) -> MadeSubject {
    let x = made.input("x", &[1, 4, made.size, made.size])?;
    let window = [("kernel_shape", list(&[3, 3])), ("strides", list(&[2, 2]))];
    let most = made.build.op("MaxPool", &window, &[x])?;
    made.build.op("AveragePool", &[("kernel_shape", list(&[2, 2]))], &[most])
}

fn softmax(made: &mut KernelCaseBuild) -> MadeSubject {
    let x = made.input("x", &[3, made.size])?;
    made.build.op("Softmax", &[("axis", (-1_i64).into())], &[x])
}

fn normalize(made: &mut KernelCaseBuild) -> MadeSubject {
    let x = made.input("x", &[5, made.size])?;
    let scale = made.weight(&[made.size])?;
    let bias = made.weight(&[made.size])?;
    made.build.op("LayerNormalization", &[], &[x, scale, bias])
}

fn reduce(made: &mut KernelCaseBuild) -> MadeSubject {
    let x = made.input("x", &[4, made.size, 3])?;
    let axes = made.build.ints(&[1]);
    let mean = made.build.plain("ReduceMean", &[x, axes])?;
    let most = made.build.plain("ReduceMax", &[x, axes])?;
    made.build.plain("Add", &[mean, most])
}

fn elements(made: &mut KernelCaseBuild) -> MadeSubject {
    let x = made.input("x", &[3, made.size])?;
    let y = made.input("other", &[1, made.size])?;
    let sum = made.build.plain("Add", &[x, y])?;
    let bent = made.build.plain("Tanh", &[sum])?;
    let gate = made.build.plain("Sigmoid", &[x])?;
    let product = made.build.plain("Mul", &[bent, gate])?;
    let error = made.build.plain("Erf", &[product])?;
    let power = made.build.plain("Exp", &[error])?;
    let larger = made.build.plain("Greater", &[power, gate])?;
    made.build.plain("Where", &[larger, power, sum])
}

fn movement(made: &mut KernelCaseBuild) -> MadeSubject {
    let n = made.size;
    let x = made.input("x", &[1, 4, n, 6])?;
    let turned = made.build.op("Transpose", &[("perm", list(&[0, 2, 1, 3]))], &[x])?;
    let shape = made.build.ints(&[0, 0, -1]);
    let flat = made.build.plain("Reshape", &[turned, shape])?;
    let picks = made.build.ints(&[7, 0, 3, 3]);
    let rows = made.build.op("Gather", &[("axis", 2_i64.into())], &[flat, picks])?;
    let start = made.build.ints(&[1]);
    let end = made.build.ints(&[5]);
    let axes = made.build.ints(&[2]);
    let part = made.build.plain("Slice", &[flat, start, end, axes])?;
    made.build.op("Concat", &[("axis", 2_i64.into())], &[rows, part])
}

fn attention(made: &mut KernelCaseBuild) -> MadeSubject {
    let q = made.input("q", &[1, 2, made.size, 16])?;
    let k = made.input("k", &[1, 2, 16, made.size])?;
    let v = made.input("v", &[1, 2, made.size, 16])?;
    let scores = made.build.plain("MatMul", &[q, k])?;
    let shares = made.build.op("Softmax", &[("axis", (-1_i64).into())], &[scores])?;
    made.build.plain("MatMul", &[shares, v])
}

fn rotary(made: &mut KernelCaseBuild) -> MadeSubject {
    let n = made.size;
    let x = made.input("x", &[1, 2, n, 16])?;
    let cos = made.weight(&[1, n, 8])?;
    let sin = made.weight(&[1, n, 8])?;
    made.build.plain("RotaryEmbedding", &[x, cos, sin])
}

fn resize(made: &mut KernelCaseBuild) -> MadeSubject {
    let n = made.size;
    let x = made.input("x", &[1, 3, n, n])?;
    let none = made.build.graph.add_constant("none", Tensor::vector(Vec::<f32>::new()));
    let scales = Tensor::vector(vec![1.0_f32, 1.0, 2.0, 2.0]);
    let scales = made.build.graph.add_constant("scales", scales);
    made.build.op(
        "Resize",
        &[("mode", AttributeValue::String("linear".into()))],
        &[x, none, scales],
    )
}

fn quantize(made: &mut KernelCaseBuild) -> MadeSubject {
    let n = made.size;
    let x = made.input("x", &[n, 32])?;
    let scale = made.build.graph.add_constant("scale", Tensor::scalar(1.0_f32 / 128.0));
    let zero = made.build.graph.add_constant("zero", Tensor::scalar(3_u8));
    let codes = made.build.plain("QuantizeLinear", &[x, scale, zero])?;
    made.build.plain("DequantizeLinear", &[codes, scale, zero])
}

fn lstm(made: &mut KernelCaseBuild) -> MadeSubject {
    let x = made.input("x", &[made.size, 1, 16])?;
    let w = made.weight(&[1, 64, 16])?;
    let r = made.weight(&[1, 64, 16])?;
    made.build.op("LSTM", &[("hidden_size", 16_i64.into())], &[x, w, r])
}

/// Infinities and NaN, which fast mathematics loses: x / 0 beside functions that have to keep them.
fn not_finite(made: &mut KernelCaseBuild) -> MadeSubject {
    let x = made.input("x", &[2, made.size])?;
    let none = made.build.plain("Sub", &[x, x])?;
    let ends = made.build.plain("Div", &[x, none])?;
    let nan = made.build.plain("Mul", &[ends, none])?;
    let kept = made.build.plain("Relu", &[ends])?;
    let bent = made.build.plain("Tanh", &[ends])?;
    let sum = made.build.plain("Add", &[kept, bent])?;
    let least = made.build.plain("Abs", &[nan])?;
    made.build.op("Concat", &[("axis", 0_i64.into())], &[sum, ends, least, nan])
}

/// A family of kernels in a type.
pub(super) struct NamedKernel {
    family: &'static FamilySubject,
    element: KernelType,
}

fn all() -> impl Iterator<Item = NamedKernel> {
    FAMILIES
        .iter()
        .flat_map(|family| family.types.iter().map(move |&element| NamedKernel { family, element }))
}

impl NamedKernel {
    fn name(&self) -> String {
        format!("kernel-{}-{}", self.family.name, self.element.name())
    }
}

/// Names the subjects.
pub(super) fn names() -> Vec<String> {
    all().map(|kernel| kernel.name()).collect()
}

/// Returns whether a subject is tested with each instruction set of the CPU.
pub(super) fn differs_by_isa(name: &str) -> bool {
    find(name).is_some_and(|kernel| kernel.family.each_isa)
}

/// Finds the subject of that name.
pub(super) fn find(name: &str) -> Option<NamedKernel> {
    all().find(|kernel| kernel.name() == name)
}

/// Lengths that shapes follow; the last in a full test only.
const SIZES: [usize; 4] = [8, 13, 40, 130];

/// Runs a family of kernels at each shape, and compares with the reference.
pub(super) fn test(kernel: &NamedKernel, task: &SubjectTask) -> SubjectOutcome {
    let unit = units::find(&task.unit, task.effort)?;
    let SelftestUnit::Interpreter { providers, .. } = &unit else {
        return Err(format!("'{}' runs no kernels", task.unit));
    };
    let sizes = if task.effort == SelftestEffort::Full { &SIZES[..] } else { &SIZES[..3] };
    let mut worst: f64 = 0.0;
    let mut report = SubjectReport::passed();
    for (seed, &size) in (1..).zip(sizes) {
        let mut build = GraphBuild::new(seed);
        // Rotary embeddings came with version 23.
        build.graph.opsets.insert(String::new(), 23);
        let mut made = KernelCaseBuild { build, element: kernel.element, size };
        let y = (kernel.family.make)(&mut made)?;
        let wide = made.build.op("Cast", &[("to", KernelType::Fp32.number().into())], &[y])?;
        let build = made.build.ends(&[("y", wide)])?;
        let mut sorted = build.graph.clone();
        sorted.sort().map_err(|error| error.to_string())?;
        let expected = evaluate::run(&sorted, &build.inputs).map_err(|error| error.to_string())?;
        let session = Session::new(build.graph, providers, &SessionOptions::default());
        let session = session.map_err(|error| error.to_string())?;
        let found =
            session.run_tensors(Run::owned(build.inputs)).map_err(|error| error.to_string())?;
        let named = |all: Vec<Tensor>| -> Vec<(String, Tensor)> {
            all.into_iter().map(|tensor| ("y".to_owned(), tensor)).collect()
        };
        let off = units::difference(&named(expected), &named(found))?;
        worst = worst.max(off);
        report = report.figure("difference", worst);
        if let Err(wrong) = units::within(off, kernel.element.tolerance()) {
            return Ok(report.checked(Some(format!("at length {size}: {wrong}"))));
        }
        if let Some(reason) = other_provider(&session, &task.unit) {
            let back = SubjectReport::fell_back(reason).figure("difference", worst);
            return Ok(back);
        }
    }
    Ok(report)
}

/// Says what another provider ran in the place of the unit, and why, if one did.
fn other_provider(session: &Session, unit: &str) -> Option<String> {
    let wanted = unit.split([':', '-']).next().unwrap_or_default();
    let explained = session.explain();
    let node = explained.partitions.iter().flatten().find(|node| node.provider != wanted)?;
    let refusal = node.refusals.iter().find(|(provider, _)| provider == wanted);
    let why = refusal.map(|(_, reason)| format!(": {reason}")).unwrap_or_default();
    Some(format!("{} ran {}{why}", node.provider, node.op))
}

/// A chain of products that keeps a device busy for a short time.
fn chain() -> Result<GraphBuild, String> {
    let mut build = GraphBuild::new(11);
    let mut y = build.input("x", &[16, 128])?;
    for _ in 0..4 {
        let w = build.weight(&[128, 128], 128)?;
        y = build.plain("MatMul", &[y, w])?;
    }
    build.ends(&[("y", y)])
}

/// Runs of which the median counts.
const RUNS: usize = 5;

/// Measures a run at once, and one after a rest of two seconds.
pub(super) fn idle_latency(task: &SubjectTask) -> SubjectOutcome {
    let unit = units::find(&task.unit, task.effort)?;
    let SelftestUnit::Interpreter { providers, .. } = &unit else {
        return Err(format!("'{}' runs no kernels", task.unit));
    };
    let build = chain()?;
    let graph: Graph = build.graph;
    let session = Session::new(graph, providers, &SessionOptions::default());
    let session = session.map_err(|error| error.to_string())?;
    let once = || {
        let started = Instant::now();
        let done = session.run_tensors(Run::owned(build.inputs.clone()));
        done.map_err(|error| error.to_string())?;
        Ok::<f64, String>(started.elapsed().as_secs_f64() * 1e3)
    };
    once()?;
    let mut busy = (0..RUNS).map(|_| once()).collect::<Result<Vec<f64>, String>>()?;
    busy.sort_by(f64::total_cmp);
    std::thread::sleep(Duration::from_secs(2));
    let idle = once()?;
    Ok(SubjectReport::passed()
        .figure("after_0_s_ms", busy.get(RUNS / 2).copied())
        .figure("after_2_s_ms", idle))
}
