//! Cases of `galatea selftest`: small graphs that are written as packages here, models, and packages of a
//! folder.

use std::path::{Path, PathBuf};

use galatea_coreml::{ConvertOptions, WeightCompression, convert};
use galatea_formats::coreml::{self, FeatureType};
use galatea_formats::{npy, onnx};
use galatea_graph::{AttributeValue, Attributes, Dim, Fact, Graph, ValueId, converted, evaluate};
use galatea_tensor::{DataType, Tensor};

use super::task::SubjectLength;

/// A package with what it is given and what it has to give.
pub(super) struct SelftestSubject {
    pub(super) name: String,
    pub(super) package: PathBuf,
    pub(super) inputs: Vec<(String, Tensor)>,
    /// Outputs of the reference, by name.
    pub(super) expected: Vec<(String, Tensor)>,
    /// Largest accepted difference, as a share of the largest value of an output.
    pub(super) tolerance: f64,
}

/// Tolerance for FP16: the error of sums of a few hundred numbers, and of functions of them.
const HALF: f64 = 2e-2;
/// Tolerance for quantized weights.
const FEW_BITS: f64 = 1e-1;

/// A sequence of numbers that is the same everywhere (xorshift of 64 bits).
pub(super) struct RepeatableNumbers(u64);

impl RepeatableNumbers {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// From -1 to 1.
    fn next(&mut self) -> f32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let bits = u16::try_from(self.0 >> 48).unwrap_or(0);
        f32::from(bits) / 32_767.5 - 1.0
    }

    /// Numbers in a shape, times a factor.
    pub(super) fn tensor(&mut self, shape: &[usize], factor: f32) -> Result<Tensor, String> {
        let count = shape.iter().product();
        let all = (0..count).map(|_| self.next() * factor).collect();
        Tensor::from_vec::<f32>(shape, all).map_err(|error| error.to_string())
    }
}

/// A graph in the making.
pub(super) struct GraphBuild {
    pub(super) graph: Graph,
    numbers: RepeatableNumbers,
    pub(super) inputs: Vec<Tensor>,
}

pub(super) type MadeSubject = Result<ValueId, String>;

impl GraphBuild {
    pub(super) fn new(seed: u64) -> Self {
        let mut graph = Graph::new("selftest");
        graph.opsets.insert(String::new(), 20);
        Self { graph, numbers: RepeatableNumbers::new(seed), inputs: Vec::new() }
    }

    pub(super) fn input(&mut self, name: &str, shape: &[usize]) -> MadeSubject {
        let id = self.graph.value_named(name);
        let dims = shape.iter().map(|&len| Dim::Known(len)).collect();
        self.graph.value_mut(id).declared = Some(Fact::new(DataType::Fp32, dims));
        self.graph.inputs.push(id);
        self.inputs.push(self.numbers.tensor(shape, 1.0)?);
        Ok(id)
    }

    /// Weights whose products stay as large as what they multiply.
    pub(super) fn weight(&mut self, shape: &[usize], inner: u16) -> MadeSubject {
        let tensor = self.numbers.tensor(shape, (3.0 / f32::from(inner)).sqrt())?;
        Ok(self.graph.add_constant("weight", tensor))
    }

    pub(super) fn ints(&mut self, all: &[i64]) -> ValueId {
        self.graph.add_constant("ints", Tensor::vector(all.to_vec()))
    }

    pub(super) fn op(
        &mut self,
        name: &str,
        named: &[(&str, AttributeValue)],
        inputs: &[ValueId],
    ) -> MadeSubject {
        let attributes =
            named.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let output = self.graph.fresh_value(name);
        let inputs = inputs.iter().copied().map(Some).collect();
        let added = self.graph.add_node("", name, "", &attributes, inputs, vec![Some(output)]);
        added.map_err(|error| error.to_string())?;
        Ok(output)
    }

    pub(super) fn plain(&mut self, name: &str, inputs: &[ValueId]) -> MadeSubject {
        self.op(name, &[], inputs)
    }

    /// Adds a node with several results.
    pub(super) fn outputs<const N: usize>(
        &mut self,
        name: &str,
        inputs: &[ValueId],
    ) -> Result<[ValueId; N], String> {
        let outputs = [(); N].map(|()| self.graph.fresh_value(name));
        let inputs = inputs.iter().copied().map(Some).collect();
        let results = outputs.map(Some).to_vec();
        let added = self.graph.add_node("", name, "", &Attributes::new(), inputs, results);
        added.map_err(|error| error.to_string())?;
        Ok(outputs)
    }

    /// Names the results of the graph.
    pub(super) fn ends(mut self, outputs: &[(&str, ValueId)]) -> Result<Self, String> {
        for (name, id) in outputs {
            let output = self.graph.value_named(name);
            let none = Attributes::new();
            let from = vec![Some(*id)];
            let to = vec![Some(output)];
            let added = self.graph.add_node("", "Identity", "", &none, from, to);
            added.map_err(|error| error.to_string())?;
            self.graph.outputs.push(output);
        }
        Ok(self)
    }
}

pub(super) fn list(all: &[i64]) -> AttributeValue {
    AttributeValue::Ints(all.to_vec())
}

/// Layers of products, activations and shares.
fn layers() -> Result<GraphBuild, String> {
    let mut build = GraphBuild::new(1);
    let x = build.input("x", &[1, 64])?;
    let a = build.weight(&[64, 128], 64)?;
    let b = build.weight(&[128, 16], 128)?;
    let bias = build.weight(&[128], 64)?;
    let y = build.op("Gemm", &[], &[x, a, bias])?;
    let y = build.plain("Gelu", &[y])?;
    let y = build.plain("MatMul", &[y, b])?;
    let shares = build.op("Softmax", &[("axis", (-1_i64).into())], &[y])?;
    build.ends(&[("logits", y), ("shares", shares)])
}

/// Convolutions: a plain one, one of each channel, one of points, and pools.
fn image() -> Result<GraphBuild, String> {
    let mut build = GraphBuild::new(2);
    let x = build.input("image", &[1, 3, 32, 32])?;
    let pads = || ("pads", list(&[1, 1, 1, 1]));
    let first = build.weight(&[16, 3, 3, 3], 27)?;
    let y = build.op("Conv", &[pads(), ("strides", list(&[2, 2]))], &[x, first])?;
    let y = build.plain("Relu", &[y])?;
    let each = build.weight(&[16, 1, 3, 3], 9)?;
    let y = build.op("Conv", &[pads(), ("group", 16_i64.into())], &[y, each])?;
    let y = build.plain("HardSwish", &[y])?;
    let points = build.weight(&[32, 16, 1, 1], 16)?;
    let y = build.op("Conv", &[], &[y, points])?;
    let window = [("kernel_shape", list(&[2, 2])), ("strides", list(&[2, 2]))];
    let most = build.op("MaxPool", &window, &[y])?;
    let mean = build.plain("GlobalAveragePool", &[y])?;
    build.ends(&[("most", most), ("mean", mean)])
}

/// Attention of two heads, with normalisation and a residual.
fn attention() -> Result<GraphBuild, String> {
    let mut build = GraphBuild::new(3);
    let x = build.input("x", &[1, 32, 64])?;
    let scale = build.weight(&[64], 3)?;
    let bias = build.weight(&[64], 3)?;
    let normal = build.op("LayerNormalization", &[], &[x, scale, bias])?;
    let shape = build.ints(&[1, 32, 2, 32]);
    let mut heads = |order: &[i64]| {
        let weight = build.weight(&[64, 64], 64)?;
        let all = build.plain("MatMul", &[normal, weight])?;
        let apart = build.plain("Reshape", &[all, shape])?;
        build.op("Transpose", &[("perm", list(order))], &[apart])
    };
    let q = heads(&[0, 2, 1, 3])?;
    let k = heads(&[0, 2, 3, 1])?;
    let v = heads(&[0, 2, 1, 3])?;
    let factor = build.graph.add_constant("factor", Tensor::scalar(0.176_776_7_f32));
    let q = build.plain("Mul", &[q, factor])?;
    let scores = build.plain("MatMul", &[q, k])?;
    let shares = build.op("Softmax", &[("axis", (-1_i64).into())], &[scores])?;
    let seen = build.plain("MatMul", &[shares, v])?;
    let seen = build.op("Transpose", &[("perm", list(&[0, 2, 1, 3]))], &[seen])?;
    let packed = build.ints(&[1, 32, 64]);
    let seen = build.plain("Reshape", &[seen, packed])?;
    let sum = build.plain("Add", &[x, seen])?;
    build.ends(&[("sum", sum)])
}

/// Operators on elements.
fn elements() -> Result<GraphBuild, String> {
    let mut build = GraphBuild::new(4);
    let x = build.input("x", &[2, 48])?;
    let y = build.input("y", &[2, 48])?;
    let sum = build.plain("Add", &[x, y])?;
    let product = build.plain("Mul", &[x, y])?;
    let power = build.plain("Exp", &[x])?;
    let root = build.plain("Sqrt", &[power])?;
    let share = build.plain("Div", &[product, root])?;
    let bent = build.plain("Tanh", &[sum])?;
    let gate = build.plain("Sigmoid", &[y])?;
    let larger = build.plain("Greater", &[bent, gate])?;
    let chosen = build.plain("Where", &[larger, bent, share])?;
    let error = build.plain("Erf", &[x])?;
    let least = build.plain("Min", &[error, gate])?;
    build.ends(&[("chosen", chosen), ("least", least)])
}

/// Builds a graph of operators that move elements, and of reductions.
fn movement() -> Result<GraphBuild, String> {
    let mut build = GraphBuild::new(5);
    let x = build.input("x", &[1, 4, 8, 8])?;
    let start = build.ints(&[1]);
    let end = build.ints(&[7]);
    let axes = build.ints(&[2]);
    let part = build.plain("Slice", &[x, start, end, axes])?;
    let pads = build.ints(&[0, 0, 1, 0, 0, 0, 1, 0]);
    let padded = build.plain("Pad", &[part, pads])?;
    let both = build.op("Concat", &[("axis", 1_i64.into())], &[x, padded])?;
    let turned = build.op("Transpose", &[("perm", list(&[0, 2, 3, 1]))], &[both])?;
    let picks = build.ints(&[7, 0, 3]);
    let rows = build.op("Gather", &[("axis", 1_i64.into())], &[turned, picks])?;
    let axes = build.ints(&[3]);
    let mean = build.plain("ReduceMean", &[rows, axes])?;
    let most = build.op("ReduceMax", &[("keepdims", 0_i64.into())], &[rows, axes])?;
    build.ends(&[("rows", rows), ("mean", mean), ("most", most)])
}

/// Steps of a recurrent layer.
fn recurrent() -> Result<GraphBuild, String> {
    let mut build = GraphBuild::new(6);
    let x = build.input("x", &[6, 1, 16])?;
    let w = build.weight(&[1, 64, 16], 16)?;
    let r = build.weight(&[1, 64, 16], 16)?;
    let y = build.op("LSTM", &[("hidden_size", 16_i64.into())], &[x, w, r])?;
    build.ends(&[("y", y)])
}

/// A value as codes of 8 bits and back.
fn coded(build: &mut GraphBuild, x: ValueId, scale: f32) -> MadeSubject {
    let scale = build.graph.add_constant("scale", Tensor::scalar(scale));
    let zero = build.graph.add_constant("zero", Tensor::scalar(0_i8));
    let codes = build.plain("QuantizeLinear", &[x, scale, zero])?;
    build.plain("DequantizeLinear", &[codes, scale, zero])
}

/// Codes of 8 bits between layers, which newer chips compute with.
fn codes() -> Result<GraphBuild, String> {
    let mut build = GraphBuild::new(7);
    let x = build.input("x", &[1, 16, 8, 8])?;
    let weight = build.weight(&[32, 16, 1, 1], 16)?;
    let x = coded(&mut build, x, 1.0 / 64.0)?;
    let y = build.op("Conv", &[], &[x, weight])?;
    let y = coded(&mut build, y, 1.0 / 16.0)?;
    build.ends(&[("y", y)])
}

type SuiteRow = (&'static str, fn() -> Result<GraphBuild, String>, WeightCompression, f64);

/// The suite: names, graphs, how weights are stored, and what may be lost.
const SUITE: &[SuiteRow] = &[
    ("layers", layers, WeightCompression::None, HALF),
    ("image", image, WeightCompression::None, HALF),
    ("attention", attention, WeightCompression::None, HALF),
    ("elements", elements, WeightCompression::None, HALF),
    ("movement", movement, WeightCompression::None, HALF),
    ("recurrent", recurrent, WeightCompression::None, HALF),
    // A rounding more or less is a code more or less.
    ("codes", codes, WeightCompression::None, FEW_BITS),
    ("layers-int8", layers, WeightCompression::Int8, FEW_BITS),
    ("layers-palette", layers, WeightCompression::Palette { bits: 8, group: 0 }, FEW_BITS),
];

/// Names the packages of the suite.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    SUITE.iter().map(|(name, _, _, _)| *name)
}

/// Writes a package of the suite into a folder.
///
/// # Errors
/// Fails when there is none of that name, its graph is not converted, or the folder cannot be written to.
pub(super) fn embedded(folder: &Path, name: &str) -> Result<SelftestSubject, String> {
    let row = SUITE.iter().find(|(known, _, _, _)| *known == name);
    let &(name, make, compression, tolerance) =
        row.ok_or_else(|| format!("there is no subject '{name}'"))?;
    let build = make()?;
    let options = ConvertOptions { compression, ..ConvertOptions::default() };
    written(folder, name, &build.graph, &build.inputs, &options, tolerance)
}

/// A graph as a package, with what the reference gives for it.
fn written(
    folder: &Path,
    name: &str,
    graph: &Graph,
    inputs: &[Tensor],
    options: &ConvertOptions,
    tolerance: f64,
) -> Result<SelftestSubject, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{name}: {error}");
    let package = folder.join(format!("{name}.mlpackage"));
    let made = convert(graph, options).map_err(|error| failed(&error))?;
    coreml::write_package(&package, &made).map_err(|error| failed(&error))?;
    let mut graph = graph.clone();
    graph.sort().map_err(|error| failed(&error))?;
    let found = evaluate::run(&graph, inputs).map_err(|error| failed(&error))?;
    let names = |ids: &[ValueId]| -> Vec<String> {
        ids.iter().map(|&id| graph.value(id).name.clone()).collect()
    };
    let inputs = names(&graph.inputs).into_iter().zip(inputs.iter().cloned()).collect();
    let expected = names(&graph.outputs).into_iter().zip(found).collect();
    let subject = SelftestSubject { name: name.to_owned(), package, inputs, expected, tolerance };
    as_taken(subject)
}

/// Inputs in the types that the package takes.
fn as_taken(mut subject: SelftestSubject) -> Result<SelftestSubject, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", subject.name);
    let model = coreml::load(&subject.package).map_err(|error| failed(&error))?;
    let function = model.function(None).map_err(|error| failed(&error))?;
    let mut taken = Vec::new();
    for feature in &function.inputs {
        let FeatureType::Array { dtype, .. } = &feature.kind else {
            return Err(failed(&format!("input '{}' is no array", feature.name)));
        };
        let found = subject.inputs.iter().find(|(name, _)| *name == feature.name);
        let (name, tensor) =
            found.ok_or_else(|| failed(&format!("nothing for input '{}'", feature.name)))?;
        let tensor = converted(tensor, *dtype).map_err(|error| failed(&error))?;
        taken.push((name.clone(), tensor));
    }
    subject.inputs = taken;
    Ok(subject)
}

/// Files of a folder that end so, in the order of their names.
///
/// # Errors
/// Fails when the folder cannot be read.
pub(super) fn ending(folder: &Path, end: &str) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(folder);
    let entries = entries.map_err(|error| format!("{}: {error}", folder.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|found| found == end)).collect();
    found.sort();
    Ok(found)
}

/// Name of a file without its end.
pub(super) fn stem(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

/// A tensor of seeded numbers: small integers, or floats from -1 to 1.
fn seeded(
    numbers: &mut RepeatableNumbers,
    dtype: DataType,
    shape: &[usize],
) -> Result<Tensor, String> {
    let wide = numbers.tensor(shape, if dtype.is_integer() { 4.0 } else { 1.0 })?;
    let wide = match dtype.is_integer() {
        true => {
            let all = wide.to_vec::<f32>().map_err(|error| error.to_string())?;
            let all = all.into_iter().map(|value| value.abs().floor()).collect();
            Tensor::from_vec::<f32>(shape, all).map_err(|error| error.to_string())?
        }
        false => wide,
    };
    converted(&wide, dtype).map_err(|error| error.to_string())
}

/// Makes a package of an ONNX model; lengths that are not known are 1 unless they are given.
///
/// # Errors
/// Fails when the model cannot be read, converted or evaluated.
pub(super) fn model(
    path: &Path,
    folder: &Path,
    lengths: &[SubjectLength],
) -> Result<SelftestSubject, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let model = onnx::load_model(path).map_err(|error| failed(&error))?;
    let mut options = ConvertOptions::default();
    let mut inputs = Vec::new();
    let mut numbers = RepeatableNumbers::new(8);
    let number =
        |name: &str| Some(lengths.iter().find(|one| one.name == name).map_or(1, |one| one.length));
    for &id in &model.graph.inputs {
        let value = model.graph.value(id);
        let fact = value.declared.as_ref();
        let fact = fact.ok_or_else(|| failed(&format!("no type of '{}'", value.name)))?;
        let dims = fact.shape.as_ref();
        let dims = dims.ok_or_else(|| failed(&format!("no number of axes of '{}'", value.name)))?;
        let shape: Vec<usize> = dims.iter().map(|dim| dim.evaluate(&number).unwrap_or(1)).collect();
        inputs.push(seeded(&mut numbers, fact.dtype, &shape)?);
        options.shapes.insert(value.name.clone(), shape);
    }
    written(folder, &stem(path), &model.graph, &inputs, &options, HALF)
        .map_err(|error| failed(&error))
}

/// Reads a package. `NAME.inputs.npz` beside `NAME.mlpackage` holds its inputs, else seeded numbers are used.
/// `NAME.outputs.npz` holds the expected outputs, else the reference evaluates the program.
///
/// # Errors
/// Fails when a file cannot be read, or the package is one that this test does not run.
pub(super) fn package(path: &Path) -> Result<SelftestSubject, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let model = coreml::load(path).map_err(|error| failed(&error))?;
    let function = model.function(None).map_err(|error| failed(&error))?;
    if !function.states.is_empty() {
        return Err(failed(&"a package with states, which this test does not run"));
    }
    let beside = |end: &str| path.with_file_name(format!("{}.{end}.npz", stem(path)));
    let read = |path: &Path| npy::read_npz(path).map_err(|error| failed(&error));
    let inputs: Vec<(String, Tensor)> = match beside("inputs") {
        path if path.exists() => read(&path)?,
        _ => {
            let mut numbers = RepeatableNumbers::new(9);
            let one = |feature: &coreml::ModelFeature| match &feature.kind {
                FeatureType::Array { dtype, shape, .. } => {
                    Ok((feature.name.clone(), seeded(&mut numbers, *dtype, shape)?))
                }
                _ => Err(failed(&format!("input '{}' is no array", feature.name))),
            };
            function.inputs.iter().map(one).collect::<Result<_, String>>()?
        }
    };
    let mut subject = as_taken(SelftestSubject {
        name: stem(path),
        package: path.to_owned(),
        inputs,
        expected: Vec::new(),
        tolerance: HALF,
    })?;
    subject.expected = match beside("outputs") {
        path if path.exists() => read(&path)?,
        _ => {
            let fed: Vec<Tensor> = subject.inputs.iter().map(|(_, one)| one.clone()).collect();
            let found = evaluate::run(&function.graph, &fed).map_err(|error| failed(&error))?;
            let names = function.outputs.iter().map(|feature| feature.name.clone());
            names.zip(found).collect()
        }
    };
    Ok(subject)
}
