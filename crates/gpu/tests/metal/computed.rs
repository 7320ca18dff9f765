//! Metal texts that ran: what clang makes of them computes what the reference computes.
//!
//! This needs clang, and the variable that names a folder for programs. `cargo xtask msl` sets it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use galatea_gpu::{
    DeviceBlock, DispatchStep, GpuDevice, GpuNodeView, KERNELS, KernelShader, PoolConfig,
    ShaderBinding, ShaderDispatch,
};
use galatea_graph::{Fact, Graph, ValueId, evaluate, infer};
use galatea_runtime::{NodeShapes, Precision};
use galatea_tensor::{DataType, Tensor, Tolerance, compare, f16};

use crate::compiled::{CompiledKernel, MetalCompiler, MetalKernel, Programs, run};
use crate::{apple, cases, golden, translate};

/// Folder in which programs are made, and in which the numbers of texts are left that ran.
const FOLDER: &str = "GALATEA_METAL_PROGRAMS";

/// File of these numbers: of those that are kept, and of others.
const COUNT: &str = "run.txt";

/// Byte of memory that nobody has written.
const UNWRITTEN: u8 = 0xff;

/// Largest distance from the reference, relative to the largest value of a result.
const FP32_DISTANCE: f64 = 2e-5;
const FP16_DISTANCE: f64 = 4e-3;
const BYTE_DISTANCE: f64 = 2e-2;
/// The same of chains in FP16, whose values are larger in between than what is left of them.
const CHAIN_DISTANCE: f64 = 2e-2;

/// Most bytes of the texts of a program: clang reads the library's stand-in once for each.
const PROGRAM_BYTES: usize = 48 << 10;

/// Texts that do not run: no case with known results takes them.
const IDLE: &[&str] = &[];

/// A step, and what it is to compute.
pub(crate) struct TextCase {
    what: String,
    step: DispatchStep,
    /// Inputs of the node.
    inputs: Vec<Option<Tensor>>,
    expected: Vec<Tensor>,
    /// Largest distance of floats, relative to the largest value of a result.
    distance: f64,
    /// Tolerance of integers.
    integers: Tolerance,
    /// True if all its texts run, not only those that are kept.
    every: bool,
}

/// Bytes of a tensor as a buffer has them: shaders may see vectors of 16 bytes.
fn buffer(tensor: &Tensor) -> Vec<u8> {
    let mut bytes = tensor.contiguous().unwrap().as_bytes().unwrap().to_vec();
    bytes.resize(bytes.len().max(16).next_multiple_of(16), UNWRITTEN);
    bytes
}

fn narrow(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap()
}

/// Bytes of weights that a kernel keeps on the device.
fn weights(device: &GpuDevice, block: &DeviceBlock, start: u64, length: u64) -> Vec<u8> {
    let mut all = vec![0; narrow(start + length)];
    block.read(device, &mut all).unwrap();
    all.split_off(narrow(start))
}

/// Returns whether constant floats of the graph's one node are scales of integers.
fn is_quantised(graph: &Graph, facts: &[Option<Fact>]) -> bool {
    let node = &graph.nodes[0];
    let byte = |id: &ValueId| {
        let dtype = facts[id.index()].as_ref().map(|fact| fact.dtype);
        matches!(dtype, Some(DataType::Int8 | DataType::Uint8))
    };
    node.inputs.iter().chain(&node.outputs).flatten().any(byte)
}

/// The tensor in FP16, where it is in FP32.
fn narrowed(tensor: &Tensor) -> Tensor {
    let Ok(all) = tensor.to_vec::<f32>() else { return tensor.clone() };
    Tensor::from_vec(tensor.shape(), all.into_iter().map(f16::from_f32).collect()).unwrap()
}

/// The tensor in FP32, where it is in FP16.
fn widened(tensor: &Tensor) -> Tensor {
    let Ok(all) = tensor.to_vec::<f16>() else { return tensor.clone() };
    Tensor::from_vec(tensor.shape(), all.into_iter().map(f16::to_f32).collect()).unwrap()
}

impl TextCase {
    /// The step that computes a graph's one node; `None` where none can be told.
    pub(crate) fn of_node(
        device: &Arc<GpuDevice>,
        graph: &Graph,
        given: &[Tensor],
        precision: Precision,
    ) -> Option<Self> {
        let node = &graph.nodes[0];
        let facts = infer::facts(graph, &HashMap::new()).ok()?;
        let view = GpuNodeView { graph, node, facts: &facts, device, precision };
        let row = KERNELS.find(&view).ok()?;
        let kernel = (row.build)(&view).ok()?;
        let fixed = graph.inputs.iter().zip(given);
        let fixed = fixed.map(|(&id, tensor)| (id, Fact::fixed(tensor.dtype(), tensor.shape())));
        let mut facts = infer::facts(graph, &fixed.collect()).ok()?;
        if precision == Precision::Fp16 && !is_quantised(graph, &facts) {
            // The device stores constants of such a session as FP16.
            for id in node.inputs.iter().flatten().filter(|id| graph.constant(**id).is_some()) {
                let fact = facts[id.index()].as_mut()?;
                let narrow = fact.dtype == DataType::Fp32;
                fact.dtype = if narrow { DataType::Fp16 } else { fact.dtype };
            }
        }
        let mut step = DispatchStep::default();
        kernel.bind(&NodeShapes::known(node, &facts)?, &mut step).ok()?;
        let mut case = Self::of_step(&step, graph, given, precision)?;
        for (input, id) in case.inputs.iter_mut().zip(&node.inputs) {
            let dtype = id.and_then(|id| facts[id.index()].as_ref()).map(|fact| fact.dtype);
            if let (Some(DataType::Fp16), Some(tensor)) = (dtype, input) {
                *tensor = narrowed(tensor);
            }
        }
        Some(case)
    }

    /// A step that computes a graph's one node; `None` where the reference has no result.
    pub(crate) fn of_step(
        step: &DispatchStep,
        graph: &Graph,
        given: &[Tensor],
        precision: Precision,
    ) -> Option<Self> {
        let node = &graph.nodes[0];
        let value = |id: &ValueId| {
            let at = graph.inputs.iter().position(|input| input == id);
            at.map(|at| given[at].clone()).or_else(|| graph.constant(*id).cloned())
        };
        let inputs: Vec<_> = node.inputs.iter().map(|id| id.as_ref().and_then(value)).collect();
        // Products of matrices round what they read.
        let matrices = |one: &ShaderDispatch| one.shader.name.contains("f16-cooperative");
        let halves = precision == Precision::Fp16
            || inputs.iter().flatten().any(|one| one.dtype() == DataType::Fp16)
            || step.dispatches().iter().any(matrices);
        Some(Self {
            what: format!("{} {:?} {precision:?}", node.op_type, given.first()?.shape()),
            step: step.clone(),
            inputs,
            expected: evaluate::run(graph, given).ok()?,
            distance: if halves { FP16_DISTANCE } else { FP32_DISTANCE },
            integers: Tolerance::Exact,
            every: false,
        })
    }

    /// The step that computes a graph's one node where all floats are stored as FP16, whatever the operator takes.
    pub(crate) fn of_halves(
        device: &Arc<GpuDevice>,
        graph: &Graph,
        given: &[Tensor],
    ) -> Option<Self> {
        let node = &graph.nodes[0];
        let rounded: Vec<Tensor> = given.iter().map(|one| widened(&narrowed(one))).collect();
        let fixed = graph.inputs.iter().zip(&rounded);
        let fixed = fixed.map(|(&id, tensor)| (id, Fact::fixed(tensor.dtype(), tensor.shape())));
        let mut facts = infer::facts(graph, &fixed.collect()).ok()?;
        for fact in facts.iter_mut().flatten().filter(|fact| fact.dtype == DataType::Fp32) {
            fact.dtype = DataType::Fp16;
        }
        let precision = Precision::Fp16;
        let view = GpuNodeView { graph, node, facts: &facts, device, precision };
        let kernel = (KERNELS.find(&view).ok()?.build)(&view).ok()?;
        let mut step = DispatchStep::default();
        kernel.bind(&NodeShapes::known(node, &facts)?, &mut step).ok()?;
        let mut case = Self::of_step(&step, graph, &rounded, precision)?;
        case.inputs = case.inputs.iter().map(|one| one.as_ref().map(narrowed)).collect();
        case.expected = case.expected.iter().map(narrowed).collect();
        Some(case)
    }

    /// The same with all its texts, whether they are kept or not.
    pub(crate) fn whole(self) -> Self {
        let chain = self.what.starts_with("FusedElementwise") && self.distance == FP16_DISTANCE;
        let distance = if chain { CHAIN_DISTANCE } else { self.distance };
        Self { every: true, distance, ..self }
    }

    /// The same with another largest distance.
    pub(crate) fn within(self, distance: f64) -> Self {
        Self { distance, ..self }
    }

    /// The same for values that are stored as bytes.
    pub(crate) fn of_bytes(self) -> Self {
        Self { distance: BYTE_DISTANCE, integers: Tolerance::Within(1.0), ..self }
    }

    /// Runs the step's dispatches one after the other, and compares what is left in the outputs.
    fn run(
        &self,
        device: &GpuDevice,
        kernels: &TranslatedKernels,
        programs: &Programs,
    ) -> Result<(), String> {
        let mut inputs: Vec<_> = self.inputs.iter().map(|one| one.as_ref().map(buffer)).collect();
        let mut outputs: Vec<Vec<u8>> =
            self.expected.iter().map(|one| vec![UNWRITTEN; buffer(one).len()]).collect();
        for over in self.step.overlaid() {
            outputs[over.output].clone_from(inputs[over.input].as_ref().unwrap());
        }
        let padded = |bytes: &u64| vec![UNWRITTEN; narrow((*bytes).max(1).next_multiple_of(256))];
        let mut scratch: Vec<Vec<u8>> = self.step.scratch_bytes().iter().map(padded).collect();
        for dispatch in self.step.dispatches() {
            let kernel = &kernels.0[&dispatch.shader];
            let mut find = |binding: &ShaderBinding| match binding {
                ShaderBinding::Input(at) => inputs[*at].clone().unwrap(),
                ShaderBinding::Output(at) => outputs[*at].clone(),
                ShaderBinding::Scratch(at) => scratch[*at].clone(),
                ShaderBinding::InputPart(at, start, length) => {
                    let all = inputs[*at].as_ref().unwrap();
                    all[narrow(*start)..][..narrow(*length)].to_vec()
                }
                ShaderBinding::Weights(block) => weights(device, block, 0, block.bytes()),
                ShaderBinding::Part(block, start, length) => {
                    weights(device, block, *start, *length)
                }
            };
            let mut buffers: Vec<Vec<u8>> = dispatch.bindings.iter().map(&mut find).collect();
            if !dispatch.params.is_empty() {
                let mut bytes: Vec<u8> =
                    dispatch.params.iter().flat_map(|word| word.to_le_bytes()).collect();
                bytes.resize(bytes.len().next_multiple_of(16), 0);
                buffers.push(bytes);
            }
            let mut sizes = kernel.sizes(&buffers);
            sizes.resize(sizes.len().max(16).next_multiple_of(16), 0);
            buffers.push(sizes);
            let program = programs[&kernel.text].as_ref().map_err(String::clone)?;
            run(program, dispatch.groups, &mut buffers)
                .map_err(|error| format!("{}: {error}", dispatch.shader.name))?;
            for (binding, bytes) in dispatch.bindings.iter().zip(buffers) {
                match binding {
                    ShaderBinding::Input(at) => inputs[*at] = Some(bytes),
                    ShaderBinding::Output(at) => outputs[*at] = bytes,
                    ShaderBinding::Scratch(at) => scratch[*at] = bytes,
                    _ => {}
                }
            }
        }
        self.compare(&outputs)
    }

    fn compare(&self, outputs: &[Vec<u8>]) -> Result<(), String> {
        for (bytes, expected) in outputs.iter().zip(&self.expected) {
            let length = expected.contiguous().unwrap().as_bytes().unwrap().len();
            let found =
                Tensor::from_bytes(expected.dtype(), expected.shape(), &bytes[..length]).unwrap();
            let same = compare(&found, expected, self.tolerance(expected));
            same.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// How far a result may be from the reference.
    fn tolerance(&self, expected: &Tensor) -> Tolerance {
        let all: Vec<f64> = match expected.dtype() {
            DataType::Fp32 => {
                expected.to_vec::<f32>().unwrap().into_iter().map(f64::from).collect()
            }
            DataType::Fp16 => {
                expected.to_vec::<f16>().unwrap().into_iter().map(f64::from).collect()
            }
            _ => return self.integers,
        };
        let finite = all.into_iter().filter(|number| number.is_finite());
        Tolerance::Within(
            self.distance * finite.fold(0.0_f64, |most, number| most.max(number.abs())),
        )
    }

    fn shaders(&self) -> impl Iterator<Item = &KernelShader> {
        self.step.dispatches().iter().map(|ShaderDispatch { shader, .. }| shader)
    }
}

/// Texts of shaders.
#[derive(Default)]
struct TranslatedKernels(HashMap<KernelShader, MetalKernel>);

impl TranslatedKernels {
    fn text(&mut self, shader: &KernelShader) -> &str {
        let make = || {
            let checked = translate::check(shader).unwrap();
            let text = translate::metal(shader, &checked).unwrap();
            MetalKernel::new(text, &checked)
        };
        &self.0.entry(shader.clone()).or_insert_with(make).text
    }
}

/// Cases that together run every text that any of them runs.
fn chosen(
    cases: Vec<TextCase>,
    kept: &BTreeMap<String, PathBuf>,
    kernels: &mut TranslatedKernels,
) -> Vec<TextCase> {
    let mut run = BTreeSet::new();
    let mut chosen = Vec::new();
    for case in cases {
        let texts: Vec<String> = case.shaders().map(|one| kernels.text(one).to_owned()).collect();
        let mut new = false;
        for text in texts.into_iter().filter(|text| case.every || kept.contains_key(text)) {
            new |= run.insert(text);
        }
        if new {
            chosen.push(case);
        }
    }
    chosen
}

/// Does something with each of these, on as many threads as there are cores.
fn on_every_core<T: Sync>(all: &[T], work: impl Fn(usize, &T) + Sync) {
    let next = AtomicUsize::new(0);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(one) = all.get(at) else { break };
                    work(at, one);
                }
            });
        }
    });
}

/// Folder of the programs; `None` where none is named, which is said.
fn folder() -> Option<PathBuf> {
    let named = std::env::var_os(FOLDER).map(PathBuf::from);
    if named.is_none() {
        eprintln!("skipped: {FOLDER} names no folder for programs");
    }
    named
}

/// Makes the texts of cases programs, several in each.
fn programs(compiler: &MetalCompiler, kernels: &[&MetalKernel]) -> Programs {
    let mut groups: Vec<Vec<&MetalKernel>> = Vec::new();
    let mut bytes = PROGRAM_BYTES;
    for kernel in kernels {
        if bytes + kernel.text.len() > PROGRAM_BYTES {
            groups.push(Vec::new());
            bytes = 0;
        }
        bytes += kernel.text.len();
        groups.last_mut().unwrap().push(kernel);
    }
    let programs = Mutex::new(Programs::new());
    on_every_core(&groups, |at, group| {
        let made = compiler.compile(group, at);
        for (number, kernel) in group.iter().enumerate() {
            let own = made.clone().map(|program| CompiledKernel { program, number });
            programs.lock().unwrap().insert(kernel.text.clone(), own);
        }
    });
    programs.into_inner().unwrap()
}

#[test]
fn metal_texts_compute_what_the_reference_computes() {
    let Some(folder) = folder() else { return };
    let kept = golden::kept();
    let device = GpuDevice::imagined(apple(), &PoolConfig::default()).unwrap();
    let mut kernels = TranslatedKernels::default();
    let cases = chosen(cases::all(&device), &kept, &mut kernels);
    let used = cases.iter().flat_map(TextCase::shaders).map(|shader| &kernels.0[shader]);
    let used: BTreeMap<&str, &MetalKernel> = used.map(|kernel| (&*kernel.text, kernel)).collect();
    let texts: Vec<&MetalKernel> = used.values().copied().collect();
    let programs = programs(&MetalCompiler::new(&folder).unwrap(), &texts);
    let failed = Mutex::new(Vec::new());
    on_every_core(&cases, |_, case| {
        if let Err(error) = case.run(&device, &kernels, &programs) {
            failed.lock().unwrap().push(format!("{}: {error}", case.what));
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{} of {} cases:\n{}", failed.len(), cases.len(), failed.join("\n"));
    let idle = kept.iter().filter(|(text, _)| !used.contains_key(&***text));
    let idle: BTreeSet<&str> = idle.map(|(_, path)| path.to_str().unwrap()).collect();
    let known: BTreeSet<&str> = IDLE.iter().copied().collect();
    assert_eq!(idle, known, "texts that did not run, and those that cannot");
    eprintln!(
        "{} cases ran {} texts, {} of those that are kept",
        cases.len(),
        used.len(),
        kept.len() - idle.len()
    );
    let kept_run = kept.len() - idle.len();
    fs::write(folder.join(COUNT), format!("{kept_run} {}\n", used.len() - kept_run)).unwrap();
}

/// The result of an operator's first case whose texts have `part`, with something else in its place.
fn changed(
    device: &GpuDevice,
    cases: &[TextCase],
    folder: &Path,
    operator: &str,
    part: &str,
    other: &str,
) -> Result<(), String> {
    let mut kernels = TranslatedKernels::default();
    let mut has = |case: &&TextCase| {
        let mut found = case.shaders().map(|shader| kernels.text(shader).contains(part));
        found.any(|has| has)
    };
    let case = cases.iter().filter(|case| case.what.starts_with(operator)).find(&mut has).unwrap();
    for kernel in kernels.0.values_mut() {
        kernel.text = kernel.text.replace(part, other);
    }
    let texts: Vec<&MetalKernel> = case.shaders().map(|shader| &kernels.0[shader]).collect();
    let programs = programs(&MetalCompiler::new(folder).unwrap(), &texts);
    case.run(device, &kernels, &programs)
}

#[test]
fn a_text_that_computes_something_else_is_noticed() {
    let Some(folder) = folder() else { return };
    let folder = folder.join("changed");
    let device = GpuDevice::imagined(apple(), &PoolConfig::default()).unwrap();
    let cases = cases::all(&device);
    changed(&device, &cases, &folder, "Softmax", "-0.69314575", "-0.69314575").unwrap();
    let wrong = changed(&device, &cases, &folder, "Softmax", "-0.69314575", "-0.65").unwrap_err();
    assert!(wrong.contains("expected"), "{wrong}");
    let barrier = "metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);";
    let raced = changed(&device, &cases, &folder, "Gemm", barrier, "").unwrap_err();
    assert!(raced.contains("order of threads"), "{raced}");
    let unknown =
        changed(&device, &cases, &folder, "Softmax", "metal::max(", "metal::most(").unwrap_err();
    assert!(unknown.contains("no member named 'most'"), "{unknown}");
}
