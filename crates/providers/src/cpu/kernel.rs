//! Kernel rows: the way from a node to a step that runs over slices.

use galatea_graph::OpError;
use galatea_kernels::{Isa, KernelContext, RealSlice, RealsMut};
use galatea_runtime::tune::{ConfigSpace, TuningCache, bucket};
use galatea_runtime::{KernelDevice, KernelRow, NodeShapes, NodeView, PackedWeights};
use galatea_tensor::{DataType, Element, TensorMut, TensorRef, bf16};

use super::route::BlasRoute;

/// The CPU as its kernels see it while they are built.
#[derive(Clone, Copy, Debug)]
pub struct CpuBuildContext<'a> {
    /// The instruction set to pack weights for.
    pub isa: Isa,
    /// Where packed weights come from and go to, if anywhere.
    pub packed: Option<&'a dyn PackedWeights>,
    /// The measured choices of the fastest candidates, if there are any.
    pub choices: Option<&'a dyn TuningCache>,
    /// A library that may compute products, if there is one.
    pub blas: Option<BlasRoute>,
}

impl CpuBuildContext<'_> {
    /// The candidate to take of several: the one that is known to be the fastest for such lengths,
    /// else the first.
    #[must_use]
    pub fn choose(&self, family: &str, lengths: &[(&str, usize)], space: &ConfigSpace) -> usize {
        KernelChoices { chooser: self.choices, threads: 0 }.choose(family, lengths, space)
    }
}

/// The table of CPU kernels.
#[derive(Debug)]
pub struct CpuKernels;

impl KernelDevice for CpuKernels {
    type Seen<'a> = CpuBuildContext<'a>;
    type Kernel = dyn CpuKernel;

    fn float_types(_: CpuBuildContext<'_>) -> &'static [DataType] {
        &[DataType::Fp32]
    }
}

/// One CPU kernel for some operators.
pub type CpuKernelRow = KernelRow<CpuKernels>;

/// A node with what is known about its values, for CPU kernels.
pub type CpuNodeView<'a> = NodeView<'a, CpuKernels>;

/// Sources of choices that a kernel can ask when the shapes of a run are known.
#[derive(Clone, Copy, Debug, Default)]
pub struct KernelChoices<'a> {
    /// The measured choices of the fastest candidates, if there are any.
    pub chooser: Option<&'a dyn TuningCache>,
    /// Threads that a step is going to have; 0 where that is not known.
    pub threads: usize,
}

impl KernelChoices<'_> {
    /// The candidate to take of several: the one that is known to be the fastest for such lengths,
    /// else the first.
    #[must_use]
    pub fn choose(&self, family: &str, lengths: &[(&str, usize)], space: &ConfigSpace) -> usize {
        let known = self.chooser.and_then(|all| all.choose(family, &bucket(lengths), space));
        known.filter(|&candidate| candidate < space.len()).unwrap_or(0)
    }
}

/// Which FP32 values a kernel takes and gives as BF16 too, by its choice for some shapes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bf16Operands {
    /// Positions of inputs.
    pub inputs: &'static [usize],
    /// True if output 0 can be.
    pub output: bool,
    /// True if all of them are or none.
    pub together: bool,
}

/// A node prepared for any shapes.
pub trait CpuKernel: Send + Sync {
    /// Prepares a step for the shapes of a run: everything that depends on shapes only.
    ///
    /// # Errors
    /// Fails when the kernel cannot take these shapes; the node then runs by reference.
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String>;

    /// Binds like [`CpuKernel::bind`], where the kernel can ask how it is fastest for these shapes.
    ///
    /// # Errors
    /// Fails like [`CpuKernel::bind`].
    fn bind_chosen(&self, shapes: &NodeShapes, _: KernelChoices<'_>) -> Result<CpuStep, String> {
        self.bind(shapes)
    }

    /// Which FP32 values it takes and gives as BF16 too, where products are computed in BF16. The
    /// types that [`CpuKernel::bind`] then sees say which of them are.
    fn halves(&self, _shapes: &NodeShapes) -> Bf16Operands {
        Bf16Operands::default()
    }

    /// Bytes of packed weights.
    fn weight_bytes(&self) -> WeightBytes {
        WeightBytes::default()
    }
}

/// Where the bytes of packed weights are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WeightBytes {
    /// In memory of this process.
    pub own: usize,
    /// In mapped files.
    pub mapped: usize,
}

impl WeightBytes {
    /// Returns the sizes for bytes that all lie in one place.
    #[must_use]
    pub fn new(bytes: usize, is_mapped: bool) -> Self {
        if is_mapped { Self { own: 0, mapped: bytes } } else { Self { own: bytes, mapped: 0 } }
    }
}

impl std::iter::Sum for WeightBytes {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |a, b| Self { own: a.own + b.own, mapped: a.mapped + b.mapped })
    }
}

/// Function that runs a step.
pub type StepFunction = Box<dyn Fn(&mut StepCall<'_>) -> Result<(), OpError> + Send + Sync>;

/// A kernel bound to shapes.
pub struct CpuStep {
    /// The work.
    pub run: StepFunction,
    /// `(input, output)` positions: the output may be written over the input. The step then gets
    /// no such input, and the output holds its elements.
    pub in_place: Vec<(usize, usize)>,
    /// FP32 elements that the step needs for itself; it finds them behind its outputs.
    pub scratch: usize,
    /// Constant inputs that the step does not look at, such as weights of which it has a packed form;
    /// it gets no such inputs, so that nobody brings them to memory.
    pub unread: Vec<usize>,
}

impl CpuStep {
    /// A step that never works in place.
    pub fn new(
        run: impl Fn(&mut StepCall<'_>) -> Result<(), OpError> + Send + Sync + 'static,
    ) -> Self {
        Self { run: Box::new(run), in_place: Vec::new(), scratch: 0, unread: Vec::new() }
    }

    /// The same step, which does not look at constant inputs.
    #[must_use]
    pub fn without(mut self, inputs: &[usize]) -> Self {
        self.unread.extend(inputs);
        self
    }

    /// The same step, which may write an output over an input.
    #[must_use]
    pub fn in_place(mut self, input: usize, output: usize) -> Self {
        self.in_place.push((input, output));
        self
    }

    /// The same step with this many FP32 elements for itself.
    #[must_use]
    pub fn with_scratch(mut self, elements: usize) -> Self {
        self.scratch = elements;
        self
    }
}

impl std::fmt::Debug for CpuStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Step").field("in_place", &self.in_place).finish_non_exhaustive()
    }
}

/// The values of one run of a step.
#[derive(Debug)]
pub struct StepCall<'a> {
    /// Threads and instruction set.
    pub exec: KernelContext<'a>,
    /// Inputs by position.
    pub inputs: Vec<Option<TensorRef<'a>>>,
    /// Outputs by position.
    pub outputs: Vec<Option<TensorMut<'a>>>,
}

impl<'a> StepCall<'a> {
    /// The elements of an input.
    ///
    /// # Errors
    /// Fails when it is absent or of another type.
    pub fn input<T: Element>(&self, index: usize) -> Result<&'a [T], OpError> {
        match self.inputs.get(index) {
            Some(Some(tensor)) => Ok(tensor.as_slice::<T>()?),
            _ => Err(OpError::new(format!("input {index} is missing"))),
        }
    }

    /// The elements of an input that are only moved, as those of their type's carrier.
    ///
    /// # Errors
    /// Fails when it is absent or `T` is neither its element type nor that of the carrier.
    pub fn carriers<T: Element>(&self, index: usize) -> Result<&'a [T], OpError> {
        match self.inputs.get(index) {
            Some(Some(tensor)) => Ok(tensor.as_carriers::<T>()?),
            _ => Err(OpError::new(format!("input {index} is missing"))),
        }
    }

    /// The elements of an optional input.
    ///
    /// # Errors
    /// Fails when it is of another type.
    pub fn optional<T: Element>(&self, index: usize) -> Result<Option<&'a [T]>, OpError> {
        match self.inputs.get(index) {
            Some(Some(tensor)) => Ok(Some(tensor.as_slice::<T>()?)),
            _ => Ok(None),
        }
    }

    /// The elements of an input of FP32 or BF16.
    ///
    /// # Errors
    /// Fails when it is absent or of another type.
    pub fn reals(&self, index: usize) -> Result<RealSlice<'a>, OpError> {
        match self.inputs.get(index) {
            Some(Some(tensor)) if tensor.dtype() == DataType::Bf16 => {
                Ok(RealSlice::Bf16(tensor.as_slice()?))
            }
            _ => self.input::<f32>(index).map(RealSlice::Fp32),
        }
    }

    /// The bytes of an input.
    ///
    /// # Errors
    /// Fails when it is absent or a string tensor.
    pub fn input_bytes(&self, index: usize) -> Result<&'a [u8], OpError> {
        let bytes = self.inputs.get(index).and_then(|input| input.as_ref()?.bytes());
        bytes.ok_or_else(|| OpError::new(format!("input {index} is missing")))
    }

    /// Returns whether an input was left out because the output lies over it.
    #[must_use]
    pub fn is_in_place(&self, input: usize) -> bool {
        matches!(self.inputs.get(input), Some(None))
    }

    /// The elements of an output, to be written. What else the call holds stays usable, as the
    /// output is taken out of it.
    ///
    /// # Errors
    /// Fails when nobody wants it, it was taken before, or it is of another type.
    pub fn output<T: Element>(&mut self, index: usize) -> Result<StepOutput<'a, T>, OpError> {
        let taken = self.outputs.get_mut(index).and_then(Option::take);
        let mut tensor = taken.ok_or_else(|| OpError::new(format!("output {index} is missing")))?;
        tensor.as_mut_slice::<T>()?;
        Ok(StepOutput { tensor, element: std::marker::PhantomData })
    }

    /// Takes the elements of an output, like [`StepCall::output`], as those of their type's carrier.
    ///
    /// # Errors
    /// Fails like [`StepCall::output`]; `T` may be the element type or that of the carrier.
    pub fn output_carriers<T: Element>(
        &mut self,
        index: usize,
    ) -> Result<StepOutput<'a, T>, OpError> {
        let taken = self.outputs.get_mut(index).and_then(Option::take);
        let mut tensor = taken.ok_or_else(|| OpError::new(format!("output {index} is missing")))?;
        tensor.as_mut_carriers::<T>()?;
        Ok(StepOutput { tensor, element: std::marker::PhantomData })
    }

    /// Takes the elements of an output of FP32 or BF16, like [`StepCall::output`].
    ///
    /// # Errors
    /// Fails like [`StepCall::output`].
    pub fn output_reals(&mut self, index: usize) -> Result<RealsOutput<'a>, OpError> {
        match self.outputs.get(index) {
            Some(Some(tensor)) if tensor.dtype() == DataType::Bf16 => {
                self.output(index).map(RealsOutput::Bf16)
            }
            _ => self.output(index).map(RealsOutput::Fp32),
        }
    }

    /// The bytes of an output, to be written, whatever its type is.
    ///
    /// # Errors
    /// Fails when nobody wants it, it was taken before, or its bytes are not free.
    pub fn output_bytes(&mut self, index: usize) -> Result<StepOutput<'a, u8>, OpError> {
        let taken = self.outputs.get_mut(index).and_then(Option::take);
        let tensor = taken.filter(|tensor| tensor.dtype() != DataType::Bool);
        let tensor = tensor.ok_or_else(|| OpError::new(format!("output {index} is missing")))?;
        Ok(StepOutput { tensor, element: std::marker::PhantomData })
    }

    /// The step's own memory of `elements`, as it asked for; none for 0.
    ///
    /// # Errors
    /// Fails when it was taken before.
    pub fn scratch_if(&mut self, elements: usize) -> Result<StepScratch<'a>, OpError> {
        if elements == 0 {
            return Ok(StepScratch(None));
        }
        let last = self.outputs.len().saturating_sub(1);
        Ok(StepScratch(Some(self.output::<f32>(last)?)))
    }
}

/// An output of FP32 or BF16 that a step writes.
#[derive(Debug)]
pub enum RealsOutput<'a> {
    /// Output of FP32.
    Fp32(StepOutput<'a, f32>),
    /// Output of BF16.
    Bf16(StepOutput<'a, bf16>),
}

impl RealsOutput<'_> {
    /// The elements.
    pub fn reals(&mut self) -> RealsMut<'_> {
        match self {
            Self::Fp32(output) => RealsMut::Fp32(output.slice()),
            Self::Bf16(output) => RealsMut::Bf16(output.slice()),
        }
    }
}

/// A step's own memory.
#[derive(Debug)]
pub struct StepScratch<'a>(Option<StepOutput<'a, f32>>);

impl StepScratch<'_> {
    /// The first `at` elements and the others.
    pub fn split(&mut self, at: usize) -> (&mut [f32], &mut [f32]) {
        match &mut self.0 {
            Some(output) => output.slice().split_at_mut(at),
            None => (&mut [], &mut []),
        }
    }
}

/// An output that a step writes.
#[derive(Debug)]
pub struct StepOutput<'a, T> {
    tensor: TensorMut<'a>,
    element: std::marker::PhantomData<T>,
}

impl StepOutput<'_, u8> {
    /// The bytes of an output of any type but `BOOL`, taken with [`StepCall::output_bytes`].
    pub fn bytes(&mut self) -> &mut [u8] {
        self.tensor.bytes_mut().unwrap_or_default()
    }
}

impl<T: Element> StepOutput<'_, T> {
    /// The elements.
    pub fn slice(&mut self) -> &mut [T] {
        // The type was checked when the output was taken.
        self.tensor.as_mut_carriers::<T>().unwrap_or_default()
    }
}
