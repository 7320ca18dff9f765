//! Interface of kernels: from a node to the dispatches that compute it.

use std::sync::Arc;

use galatea_runtime::{KernelDevice, KernelRow, NodeShapes, NodeView};
use galatea_tensor::{DataType, Tensor};

use crate::choices::{AskedQuestion, KernelFamily, KernelQuestion, TuningChoices};
use crate::device::{GpuDevice, KernelShader};
use crate::memory::DeviceBlock;

/// The table of GPU kernels.
#[derive(Debug)]
pub struct GpuKernels;

impl KernelDevice for GpuKernels {
    type Seen<'a> = &'a Arc<GpuDevice>;
    type Kernel = dyn GpuKernel;

    fn float_types(device: &Arc<GpuDevice>) -> &'static [DataType] {
        match device.capabilities().f16 {
            true => &[DataType::Fp32, DataType::Fp16],
            false => &[DataType::Fp32],
        }
    }
}

/// One GPU kernel for some operators. A node that it supports it must bind later, whatever lengths a run has.
pub type GpuKernelRow = KernelRow<GpuKernels>;

/// A node with what is known about its values, for GPU kernels.
pub type GpuNodeView<'a> = NodeView<'a, GpuKernels>;

/// A node prepared for any lengths.
pub trait GpuKernel: Send + Sync {
    /// Says which dispatches compute the node for the shapes of a run. Everything that depends on shapes
    /// only is decided here, once for each set of shapes.
    ///
    /// # Errors
    /// Fails when the shapes are beyond the device.
    fn bind(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String>;

    /// Returns typical contents of an integer input, for measurements; floats need none.
    fn typical(&self, _input: usize, _shapes: &NodeShapes) -> Option<Tensor> {
        None
    }

    /// Bytes of packed weights on the device.
    fn weight_bytes(&self) -> u64 {
        0
    }
}

/// Source of a binding that a kernel passes to a shader. Bindings are numbered in their order; the parameters,
/// if any, follow them as a uniform.
///
/// Values of a run share buffers. A shader therefore declares inputs, outputs and scratch `read_write`, and may
/// be given the same bytes as an input and an output that was declared [`in_place`](Step::in_place). Weights
/// are `read`.
#[derive(Clone, Debug)]
pub enum ShaderBinding {
    /// An input of the node.
    Input(usize),
    /// A part of an input that is a constant: start and length in bytes; the start is a multiple of 256.
    InputPart(usize, u64, u64),
    /// An output of the node.
    Output(usize),
    /// Memory of the step's own, by the number that [`DispatchStep::scratch`] gave.
    Scratch(usize),
    /// Weights that the kernel keeps on the device.
    Weights(Arc<DeviceBlock>),
    /// A part of it: start and length in bytes; the start is a multiple of 256.
    Part(Arc<DeviceBlock>, u64, u64),
}

/// One start of a shader.
#[derive(Clone, Debug)]
pub struct ShaderDispatch {
    /// The shader.
    pub shader: KernelShader,
    /// Bindings of the shader.
    pub bindings: Vec<ShaderBinding>,
    /// Its parameters: 32 bits each, in the layout of a uniform.
    pub params: Vec<u32>,
    /// Workgroups along each axis.
    pub groups: [u32; 3],
}

/// Two values of a step by their numbers: an input, and the output that lies over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverlaidValue {
    /// Number of the input.
    pub input: usize,
    /// Number of the output.
    pub output: usize,
}

/// The dispatches of one node for one set of shapes, in order; each sees what those before it wrote.
#[derive(Clone, Debug, Default)]
pub struct DispatchStep {
    pub(crate) dispatches: Vec<ShaderDispatch>,
    pub(crate) scratch: Vec<u64>,
    pub(crate) in_place: Vec<(usize, usize)>,
    pub(crate) over: Vec<(usize, usize)>,
    choices: TuningChoices,
}

impl DispatchStep {
    /// A step whose kernel asks these which way to take.
    pub(crate) fn asking(choices: TuningChoices) -> Self {
        Self { choices, ..Self::default() }
    }

    /// The candidate that a kernel is to take: number 0, what it takes unasked, where nothing is known.
    /// Measures nothing.
    pub(crate) fn choose(
        &mut self,
        family: &KernelFamily,
        question: impl FnOnce() -> KernelQuestion,
    ) -> usize {
        self.choices.choose(family, question)
    }

    /// Returns whether the step belongs to a tuner or a comparison rather than to a run.
    pub(crate) fn is_measured(&self) -> bool {
        self.choices.is_measured()
    }

    /// Takes the questions that the kernel asked, where they were to be recorded.
    pub(crate) fn asked(&mut self) -> Vec<AskedQuestion> {
        self.choices.take_asked()
    }

    /// Adds a dispatch. One without workgroups does nothing.
    pub fn dispatch(
        &mut self,
        shader: KernelShader,
        bindings: Vec<ShaderBinding>,
        params: Vec<u32>,
        groups: [u32; 3],
    ) {
        if !groups.contains(&0) {
            self.dispatches.push(ShaderDispatch { shader, bindings, params, groups });
        }
    }

    /// Asks for memory that only this step uses, and gives its number.
    pub fn scratch(&mut self, bytes: u64) -> usize {
        self.scratch.push(bytes);
        self.scratch.len() - 1
    }

    /// The step may write an output over an input: whoever reads an element of the input has done so
    /// before anybody writes that element of the output.
    pub fn in_place(&mut self, input: usize, output: usize) {
        self.in_place.push((input, output));
    }

    /// The step changes parts of an input: the output lies over it, or over a copy where somebody
    /// else still reads the input.
    pub fn over(&mut self, input: usize, output: usize) {
        self.over.push((input, output));
    }

    /// Returns the dispatches that were added, in their order.
    #[must_use]
    pub fn dispatches(&self) -> &[ShaderDispatch] {
        &self.dispatches
    }

    /// Returns the bytes of each memory of the step's own, by its number.
    #[must_use]
    pub fn scratch_bytes(&self) -> &[u64] {
        &self.scratch
    }

    /// Returns the outputs that lie over inputs, of which they change parts.
    pub fn overlaid(&self) -> impl Iterator<Item = OverlaidValue> {
        self.over.iter().map(|&(input, output)| OverlaidValue { input, output })
    }
}

/// Workgroups for so many of them in a row, folded into two axes where one is too short for them: a
/// shader's number is `group.x + group.y * groups.x`, and it ignores numbers beyond.
///
/// # Errors
/// Fails when there are more than the device can start.
pub fn fold(groups: usize) -> Result<[u32; 3], String> {
    /// Number of workgroups along an axis that every device supports.
    const MOST: usize = 65_535;
    let rows = groups.div_ceil(MOST).max(1);
    let columns = groups.div_ceil(rows);
    match (u32::try_from(columns), u32::try_from(rows)) {
        (Ok(columns), Ok(rows)) if groups <= MOST * MOST => Ok([columns, rows, 1]),
        _ => Err(format!("{groups} workgroups are more than a device starts")),
    }
}

/// A length as a parameter.
///
/// # Errors
/// Fails when it is beyond 32 bits.
pub fn param(length: usize) -> Result<u32, String> {
    u32::try_from(length).map_err(|_| format!("a length of {length} is beyond 32 bits"))
}

/// The name of a float type in WGSL.
///
/// # Errors
/// Fails when WGSL has no such float.
pub fn wgsl_float(dtype: DataType) -> Result<&'static str, String> {
    match dtype {
        DataType::Fp32 => Ok("f32"),
        DataType::Fp16 => Ok("f16"),
        other => Err(format!("{other} is no float of shaders")),
    }
}
