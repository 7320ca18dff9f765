//! A node's candidates on the device, with inputs that are made up.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::Arc;

use galatea_graph::{Operator, OperatorInputs};
use galatea_runtime::tune::TuningTarget as Tuned;
use galatea_tensor::{DataType, Tensor, f16};

use crate::device::GpuDevice;
use crate::kernel::{DispatchStep, ShaderBinding};
use crate::memory::DeviceBlock;
use crate::plan::halved;
use crate::trial::{BoundDispatch, StepTrial, TrialBuffers, bound};
use galatea_runtime::{NodeShapes, ValueShape};

/// Bytes that no cache holds: weights are found in memory then, as they are in a model of many layers.
const ROTATED: u64 = 256 << 20;
/// The most copies of weights.
const MAX_COPIES: u64 = 32;
/// Nanoseconds that a sample takes at least: shorter ones are repeated.
const SAMPLE_NS: f64 = 1.5e6;
/// The most repetitions of a sample.
const MAX_REPEATS: usize = 256;
/// Numbers that are made up before they are repeated.
const MADE: usize = 1 << 22;
/// Up to so many elements of inputs, weights and outputs the reference says what is right.
const REFERENCE: usize = 1 << 16;

/// Says how a candidate computes the node.
pub(super) type CandidateBinder = Box<dyn Fn(usize) -> Result<DispatchStep, String>>;

/// The node and the lengths that candidates compute.
pub(super) struct BenchCase {
    pub(super) operator: Arc<dyn Operator>,
    pub(super) shapes: NodeShapes,
    /// Contents of the inputs that are not filled with random numbers.
    pub(super) typical: Vec<Option<Tensor>>,
    /// Elements of weights that are no inputs.
    pub(super) weights: usize,
    pub(super) tolerance: f32,
}

/// Candidates that share inputs, weights, outputs and scratch.
pub(super) struct CandidateBench {
    device: Arc<GpuDevice>,
    case: BenchCase,
    bind: CandidateBinder,
    stock: Option<BenchStock>,
    ready: HashMap<usize, BoundCandidate>,
    turn: usize,
}

/// A candidate that was bound.
struct BoundCandidate {
    trial: StepTrial,
    /// Number of runs for a sample.
    times: usize,
}

/// Buffers that candidates run on.
struct BenchStock {
    tensors: Vec<Option<Tensor>>,
    copies: Vec<InputCopies>,
    outputs: Vec<Arc<DeviceBlock>>,
    scratch: Vec<Arc<DeviceBlock>>,
    /// Blocks that kernels keep, held for as long as copies are found by their addresses.
    held: HashMap<usize, Arc<DeviceBlock>>,
}

/// Inputs of a repetition, and copies of what kernels keep by the address of the original.
struct InputCopies {
    inputs: Vec<Option<Arc<DeviceBlock>>>,
    weights: HashMap<usize, Arc<DeviceBlock>>,
}

impl fmt::Debug for CandidateBench {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bench").field("shapes", &self.case.shapes).finish_non_exhaustive()
    }
}

fn text(error: &impl fmt::Display) -> String {
    error.to_string()
}

/// Returns whether values of a type can be made up.
pub(super) fn can_make(dtype: DataType) -> bool {
    use DataType as Of;
    matches!(dtype, Of::Fp32 | Of::Fp16 | Of::Bf16 | Of::Int8 | Of::Uint8 | Of::Bool)
}

/// Repeatable values between -1 and 1, or bytes, or truth values of which few are false.
fn made_up(dtype: DataType, shape: &[usize], seed: usize) -> Result<Tensor, String> {
    let count: usize = shape.iter().product();
    let mut state = u32::try_from(seed).unwrap_or(0).wrapping_mul(0x9e37_79b9) | 1;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) as u16
    };
    let mut unit = || f32::from(next()) / 32_768.0 - 1.0;
    let few = count.min(MADE);
    let all = |few: Vec<u8>| -> Vec<u8> {
        let whole = count * dtype.size_bytes().unwrap_or(0);
        few.iter().copied().cycle().take(if few.is_empty() { 0 } else { whole }).collect()
    };
    let bytes = match dtype {
        DataType::Fp32 => (0..few).flat_map(|_| unit().to_le_bytes()).collect(),
        DataType::Fp16 => (0..few).flat_map(|_| f16::from_f32(unit()).to_le_bytes()).collect(),
        DataType::Bf16 => (0..few)
            .flat_map(|_| {
                let [_, _, low, high] = unit().to_le_bytes();
                [low, high]
            })
            .collect(),
        DataType::Bool => (0..few).map(|_| u8::from(next() % 8 != 0)).collect(),
        _ => (0..few).map(|_| next().to_le_bytes()[1]).collect(),
    };
    Tensor::from_bytes(dtype, shape, &all(bytes)).map_err(|error| text(&error))
}

/// The numbers of a tensor.
fn numbers(tensor: &Tensor) -> Result<Vec<f32>, String> {
    let found = match tensor.dtype() {
        DataType::Fp32 => tensor.to_vec::<f32>(),
        DataType::Fp16 => {
            tensor.to_vec::<f16>().map(|all| all.into_iter().map(f16::to_f32).collect())
        }
        #[allow(clippy::cast_precision_loss, reason = "large numbers are compared roughly")]
        _ => tensor.to_i64_vec().map(|all| all.into_iter().map(|value| value as f32).collect()),
    };
    found.map_err(|error| text(&error))
}

impl CandidateBench {
    pub(super) fn new(device: &Arc<GpuDevice>, case: BenchCase, bind: CandidateBinder) -> Self {
        let device = Arc::clone(device);
        let ready = HashMap::new();
        Self { device, case, bind, stock: None, ready, turn: 0 }
    }

    /// The values of all inputs, as they lie on the device.
    fn tensors(&self) -> Result<Vec<Option<Tensor>>, String> {
        let NodeShapes { inputs, constants, .. } = &self.case.shapes;
        let one = |(at, slot): (usize, &Option<ValueShape>)| {
            let Some(ValueShape { dtype, shape }) = slot else { return Ok(None) };
            let given = constants.get(at).and_then(Option::as_ref);
            let given = given.or(self.case.typical.get(at).and_then(Option::as_ref));
            match given {
                None => made_up(*dtype, shape, at + 1).map(Some),
                Some(tensor) if tensor.dtype() == *dtype => {
                    tensor.contiguous().map(Some).map_err(|error| text(&error))
                }
                Some(tensor) => halved(tensor).map(Some).map_err(|error| text(&error)),
            }
        };
        inputs.iter().enumerate().map(one).collect()
    }

    /// Inputs whose bytes a run does not find in a cache: weights, and what it changes in place.
    fn is_cold(&self, step: &DispatchStep, input: usize) -> bool {
        let constant = self.case.shapes.constants.get(input).is_some_and(Option::is_some);
        constant || step.over.iter().any(|&(read, _)| read == input)
    }

    fn stock(&self, step: &DispatchStep) -> Result<BenchStock, String> {
        let device = &self.device;
        let tensors = self.tensors()?;
        let mut inputs = Vec::with_capacity(tensors.len());
        for tensor in &tensors {
            let bytes = tensor.as_ref().map(Tensor::as_bytes).transpose();
            let bytes = bytes.map_err(|error| text(&error))?;
            let block = bytes.map(|bytes| DeviceBlock::with(device, bytes)).transpose();
            inputs.push(block.map_err(|error| text(&error))?);
        }
        let cold = (0..inputs.len()).filter(|&at| self.is_cold(step, at));
        let blocks = cold.filter_map(|at| inputs[at].as_ref());
        let kept: HashMap<usize, u64> =
            weights(step).map(|block| (Arc::as_ptr(block).addr(), block.bytes())).collect();
        let bytes = blocks.map(|block| block.bytes()).sum::<u64>() + kept.values().sum::<u64>();
        let software = device.capabilities().software;
        let count = if bytes == 0 || software { 1 } else { ROTATED.div_ceil(bytes) };
        let mut copies = vec![InputCopies { inputs, weights: HashMap::new() }];
        for _ in 1..count.clamp(1, MAX_COPIES) {
            let mut inputs = copies[0].inputs.clone();
            for (at, input) in inputs.iter_mut().enumerate() {
                if let Some(block) = input.as_mut().filter(|_| self.is_cold(step, at)) {
                    *block = self.copied(block)?;
                }
            }
            copies.push(InputCopies { inputs, weights: HashMap::new() });
        }
        let output = |slot: &Option<ValueShape>| {
            let bytes = slot.as_ref().map_or(0, |value| size_bytes(value.dtype, &value.shape));
            DeviceBlock::new(device, bytes.max(16) as u64)
                .map(Arc::new)
                .map_err(|error| text(&error))
        };
        let outputs = self.case.shapes.outputs.iter().map(output).collect::<Result<_, _>>()?;
        let held = weights(step).map(|block| (Arc::as_ptr(block).addr(), Arc::clone(block)));
        let held = held.collect();
        Ok(BenchStock { tensors, copies, outputs, scratch: Vec::new(), held })
    }

    fn copied(&self, block: &Arc<DeviceBlock>) -> Result<Arc<DeviceBlock>, String> {
        if block.is_outside() {
            return Err("weights outside the GPU cannot be tried".to_owned());
        }
        let copy =
            DeviceBlock::lasting(&self.device, block.bytes()).map_err(|error| text(&error))?;
        let mut encoder = self.device.device.create_command_encoder(&Default::default());
        encoder.copy_buffer_to_buffer(&block.buffer, 0, &copy.buffer, 0, block.bytes());
        self.device.submit(encoder.finish());
        Ok(Arc::new(copy))
    }

    fn ready(&mut self, candidate: usize) -> Result<&mut BoundCandidate, String> {
        if !self.ready.contains_key(&candidate) {
            let trial = self.trial(candidate)?;
            let once = trial.run(1).map_err(|error| text(&error))?;
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "within the bounds that follow"
            )]
            let fits = (SAMPLE_NS / once.max(1.0)).ceil() as usize;
            let software = self.device.capabilities().software;
            let times = fits.clamp(1, if software { 4 } else { MAX_REPEATS });
            self.ready.insert(candidate, BoundCandidate { trial, times });
        }
        self.ready.get_mut(&candidate).ok_or_else(|| "it was lost".to_owned())
    }

    fn trial(&mut self, candidate: usize) -> Result<StepTrial, String> {
        let step = (self.bind)(candidate)?;
        let mut stock = match self.stock.take() {
            Some(stock) => stock,
            None => self.stock(&step)?,
        };
        let made = self.bound(&step, &mut stock);
        self.stock = Some(stock);
        Ok(StepTrial::of_bound(&self.device, made?))
    }

    fn bound(
        &self,
        step: &DispatchStep,
        stock: &mut BenchStock,
    ) -> Result<Vec<Vec<BoundDispatch>>, String> {
        // Repetitions follow one another, so that all have the same memory.
        for (at, &bytes) in step.scratch.iter().enumerate() {
            let large = stock.scratch.get(at).is_some_and(|block| block.bytes() >= bytes);
            if large {
                continue;
            }
            let block = DeviceBlock::new(&self.device, bytes).map_err(|error| text(&error))?;
            let block = Arc::new(block);
            match stock.scratch.get_mut(at) {
                Some(slot) => *slot = block,
                None => stock.scratch.push(block),
            }
        }
        for block in weights(step) {
            stock.held.entry(Arc::as_ptr(block).addr()).or_insert_with(|| Arc::clone(block));
        }
        let mut all = Vec::with_capacity(stock.copies.len());
        for (number, copy) in stock.copies.iter_mut().enumerate() {
            for block in weights(step).filter(|_| number > 0) {
                if let Entry::Vacant(slot) = copy.weights.entry(Arc::as_ptr(block).addr()) {
                    slot.insert(self.copied(block)?);
                }
            }
            let mut outputs = stock.outputs.clone();
            for &(read, written) in &step.over {
                if let (Some(slot), Some(Some(input))) =
                    (outputs.get_mut(written), copy.inputs.get(read))
                {
                    *slot = Arc::clone(input);
                }
            }
            let inputs = &copy.inputs[..];
            let weights = &copy.weights;
            let buffers =
                TrialBuffers { inputs, outputs: &outputs, scratch: &stock.scratch, weights };
            all.push(bound(&self.device, step, &buffers).map_err(|error| text(&error))?);
        }
        Ok(all)
    }

    /// Outputs that are compared: of all that are not caches.
    fn compared(&self, over: &[(usize, usize)]) -> Vec<usize> {
        let outputs = self.case.shapes.outputs.iter().enumerate();
        let own = |at: usize| over.iter().all(|&(_, written)| written != at);
        outputs.filter(|(at, slot)| slot.is_some() && own(*at)).map(|(at, _)| at).collect()
    }

    fn clear(&self) {
        let Some(stock) = &self.stock else { return };
        let mut encoder = self.device.device.create_command_encoder(&Default::default());
        for output in &stock.outputs {
            encoder.clear_buffer(&output.buffer, 0, None);
        }
        self.device.submit(encoder.finish());
    }

    fn results(&self, at: usize) -> Result<Vec<f32>, String> {
        let slot = self.case.shapes.outputs.get(at).and_then(Option::as_ref);
        let (Some(stock), Some(ValueShape { dtype, shape })) = (&self.stock, slot) else {
            return Err("there is no output".to_owned());
        };
        let mut bytes = vec![0; size_bytes(*dtype, shape)];
        stock.outputs[at].read(&self.device, &mut bytes).map_err(|error| text(&error))?;
        let tensor = Tensor::from_bytes(*dtype, shape, &bytes).map_err(|error| text(&error))?;
        numbers(&tensor)
    }
}

fn size_bytes(dtype: DataType, shape: &[usize]) -> usize {
    shape.iter().product::<usize>() * dtype.size_bytes().unwrap_or(0)
}

/// Returns the blocks that a kernel keeps and binds.
fn weights(step: &DispatchStep) -> impl Iterator<Item = &Arc<DeviceBlock>> {
    let all = step.dispatches.iter().flat_map(|dispatch| &dispatch.bindings);
    all.filter_map(|binding| match binding {
        ShaderBinding::Weights(block) | ShaderBinding::Part(block, ..) => Some(block),
        _ => None,
    })
}

impl Tuned for CandidateBench {
    fn compute(&mut self, candidate: usize) -> Result<Vec<f32>, String> {
        let over = (self.bind)(candidate)?.over;
        self.ready(candidate)?;
        self.clear();
        let ready = self.ready(candidate)?;
        ready.trial.run(1).map_err(|error| text(&error))?;
        let mut all = Vec::new();
        for at in self.compared(&over) {
            all.extend(self.results(at)?);
        }
        Ok(all)
    }

    fn sample(&mut self, candidate: usize) -> Result<f64, String> {
        let turn = self.turn;
        let ready = self.ready(candidate)?;
        let times = ready.times;
        let found = ready.trial.run_from(turn, times).map_err(|error| text(&error))?;
        self.turn = turn.wrapping_add(times);
        Ok(found)
    }

    fn expected(&mut self) -> Result<Option<Vec<f32>>, String> {
        let slots = self.case.shapes.inputs.iter().chain(&self.case.shapes.outputs).flatten();
        let elements: usize = slots.map(ValueShape::elements).sum();
        if elements + self.case.weights > REFERENCE {
            return Ok(None);
        }
        let step = (self.bind)(0)?;
        if self.stock.is_none() {
            self.stock = Some(self.stock(&step)?);
        }
        let Some(stock) = &self.stock else { return Ok(None) };
        let inputs: Vec<Option<&Tensor>> = stock.tensors.iter().map(Option::as_ref).collect();
        // Where the reference refuses, the default has to be believed.
        let Ok(right) = self.case.operator.reference(OperatorInputs::new(&inputs)) else {
            return Ok(None);
        };
        let mut all = Vec::new();
        for at in self.compared(&step.over) {
            let Some(tensor) = right.get(at) else { return Ok(None) };
            all.extend(numbers(tensor)?);
        }
        Ok(Some(all))
    }

    fn tolerance(&self) -> Option<f32> {
        Some(self.case.tolerance)
    }
}
