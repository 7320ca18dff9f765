//! Interface of kernels: from a node to the dispatches that compute it.

use std::sync::Arc;

use galatea_graph::{Dim, Fact, Graph, Node, Operator};
use galatea_runtime::Precision;
use galatea_tensor::{DataType, Tensor};

use crate::choices::{AskedQuestion, KernelFamily, KernelQuestion, TuningChoices};
use crate::device::{GpuDevice, KernelShader};
use crate::memory::DeviceBlock;

/// Operators that never move elements.
const VIEWS: &[&str] = &["Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity"];

/// Returns whether the node's output has the elements of its first input under another shape.
pub(crate) fn is_view(node: &Node) -> bool {
    node.domain.is_empty() && VIEWS.contains(&node.op_type.as_str())
}

/// One kernel for some operators.
#[derive(Clone, Copy)]
pub struct GpuKernelRow {
    /// The name in profiles and reports: `{op}-{dtypes}-{variant}`.
    pub name: &'static str,
    /// The operators' domain.
    pub domain: &'static str,
    /// The operators it is for.
    pub ops: &'static [&'static str],
    /// Checks that it can run a node, whatever lengths a run has. A node that it accepts it must bind later.
    pub supports: fn(&GpuNodeView<'_>) -> Result<(), String>,
    /// Prepares a node: packs and uploads weights. Called for supported nodes only.
    pub build: fn(&GpuNodeView<'_>) -> Result<Box<dyn GpuKernel>, String>,
}

impl std::fmt::Debug for GpuKernelRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// A node with what is known about its values.
#[derive(Clone, Copy, Debug)]
pub struct GpuNodeView<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// The node.
    pub node: &'a Node,
    /// Facts by [`galatea_graph::ValueId::index`].
    pub facts: &'a [Option<Fact>],
    /// The device.
    pub device: &'a Arc<GpuDevice>,
    /// Number format of matrix multiplications and convolutions.
    pub precision: Precision,
}

impl<'a> GpuNodeView<'a> {
    /// The fact of an input, if the input is present and anything is known.
    #[must_use]
    pub fn input(&self, index: usize) -> Option<&'a Fact> {
        self.node.input(index).and_then(|id| self.facts[id.index()].as_ref())
    }

    /// The fact of an output, if the output is wanted and anything is known.
    #[must_use]
    pub fn output(&self, index: usize) -> Option<&'a Fact> {
        self.node.output(index).and_then(|id| self.facts[id.index()].as_ref())
    }

    /// The value of a constant input.
    #[must_use]
    pub fn constant(&self, index: usize) -> Option<&'a Tensor> {
        self.input(index).and_then(|fact| fact.value.as_ref())
    }

    /// Returns whether the input is present.
    #[must_use]
    pub fn has(&self, index: usize) -> bool {
        self.node.input(index).is_some()
    }

    /// The number of axes of an input.
    ///
    /// # Errors
    /// Fails when it is absent or not known.
    pub fn rank(&self, index: usize) -> Result<usize, String> {
        let rank = self.input(index).and_then(|fact| fact.shape.as_ref()).map(Vec::len);
        rank.ok_or_else(|| format!("the rank of input {index} is not known"))
    }

    /// The node's operator as the type `T`.
    ///
    /// # Errors
    /// Fails when it has another type.
    pub fn operator<T: Operator>(&self) -> Result<&'a T, String> {
        self.node.operator::<T>().ok_or_else(|| {
            format!("{} is not {}", self.node.operator_name(), std::any::type_name::<T>())
        })
    }

    /// Refuses inputs (of those listed and present) and the first output where they are neither FP32 nor,
    /// on a device that has it, FP16.
    ///
    /// # Errors
    /// Names the first one of another type.
    pub fn floats(&self, inputs: &[usize]) -> Result<(), String> {
        let named = inputs.iter().map(|&index| ("input", index, self.input(index)));
        for (what, index, fact) in named.chain([("output", 0, self.output(0))]) {
            if let Some(fact) = fact
                && !self.is_float(fact.dtype)
            {
                return Err(format!(
                    "{what} {index} is {}, the kernel takes FP32 and FP16",
                    fact.dtype
                ));
            }
        }
        Ok(())
    }

    /// Returns whether the elements of an input are known as soon as the lengths of a run are: it is absent, a
    /// constant, or computed from lengths. Such an input need not be on the device.
    #[must_use]
    pub fn is_known(&self, index: usize) -> bool {
        if !self.has(index) {
            return true;
        }
        let dims = |fact: &Fact| fact.elements.as_ref().is_some_and(|d| !d.contains(&Dim::Unknown));
        self.input(index).is_some_and(|fact| fact.value.is_some() || dims(fact))
    }

    /// Returns whether the device computes with this type of floats.
    #[must_use]
    pub fn is_float(&self, dtype: DataType) -> bool {
        dtype == DataType::Fp32 || dtype == DataType::Fp16 && self.device.capabilities().f16
    }
}

/// Types and shapes of one node in a run, as values lie on the device. Absent inputs and unwanted
/// outputs are `None`.
#[derive(Clone, Debug)]
pub struct GpuShapes {
    /// Types and shapes of the inputs.
    pub inputs: Vec<Option<(DataType, Vec<usize>)>>,
    /// Types and shapes of the outputs.
    pub outputs: Vec<Option<(DataType, Vec<usize>)>>,
    /// Values of the inputs that are known before the run.
    pub constants: Vec<Option<Tensor>>,
}

impl GpuShapes {
    /// The shape of an input.
    ///
    /// # Errors
    /// Fails when it is absent.
    pub fn input(&self, index: usize) -> Result<&[usize], String> {
        match self.inputs.get(index) {
            Some(Some((_, shape))) => Ok(shape),
            _ => Err(format!("input {index} is missing")),
        }
    }

    /// The type of an input.
    ///
    /// # Errors
    /// Fails when it is absent.
    pub fn dtype(&self, index: usize) -> Result<DataType, String> {
        match self.inputs.get(index) {
            Some(Some((dtype, _))) => Ok(*dtype),
            _ => Err(format!("input {index} is missing")),
        }
    }

    /// The type of an output.
    ///
    /// # Errors
    /// Fails when the output is not wanted.
    pub fn output_dtype(&self, index: usize) -> Result<DataType, String> {
        match self.outputs.get(index) {
            Some(Some((dtype, _))) => Ok(*dtype),
            _ => Err(format!("output {index} is not wanted")),
        }
    }

    /// The shape of an output.
    ///
    /// # Errors
    /// Fails when the output is not wanted.
    pub fn output(&self, index: usize) -> Result<&[usize], String> {
        match self.outputs.get(index) {
            Some(Some((_, shape))) => Ok(shape),
            _ => Err(format!("output {index} is not wanted")),
        }
    }

    /// Returns whether an input is present.
    #[must_use]
    pub fn has(&self, index: usize) -> bool {
        matches!(self.inputs.get(index), Some(Some(_)))
    }

    /// Returns whether an output is wanted.
    #[must_use]
    pub fn wants(&self, index: usize) -> bool {
        matches!(self.outputs.get(index), Some(Some(_)))
    }

    /// The known integers of an input.
    #[must_use]
    pub fn integers(&self, index: usize) -> Option<Vec<i64>> {
        self.constants.get(index)?.as_ref()?.to_i64_vec().ok()
    }
}

/// A node prepared for any lengths.
pub trait GpuKernel: Send + Sync {
    /// Says which dispatches compute the node for the shapes of a run. Everything that depends on shapes
    /// only is decided here, once for each set of shapes.
    ///
    /// # Errors
    /// Fails when the shapes are beyond the device.
    fn bind(&self, shapes: &GpuShapes, step: &mut DispatchStep) -> Result<(), String>;

    /// Returns typical contents of an integer input, for measurements; floats need none.
    fn typical(&self, _input: usize, _shapes: &GpuShapes) -> Option<Tensor> {
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
