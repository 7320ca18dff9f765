//! The steps of an ensemble and the tensors between them, by number.

/// One step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowStep {
    /// Tensors that it reads.
    pub inputs: Vec<usize>,
    /// Tensors that it writes.
    pub outputs: Vec<usize>,
    /// Whether it answers any number of times; each answer starts an iteration of the steps behind it.
    pub decoupled: bool,
}

/// Why steps do not make a data flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphFault {
    /// Two steps write this tensor, or a step writes an input of the ensemble.
    WrittenTwice(usize),
    /// This step never runs: what it reads is never written.
    NeverRuns(usize),
    /// The inputs of this step come out of different decoupled steps, or only some of them do.
    MixedInputs(usize),
    /// The outputs of the ensemble come out of different decoupled steps, or only some of them do.
    MixedOutputs,
    /// Nothing writes this output of the ensemble.
    Unwritten(usize),
}

/// The iterations that a tensor belongs to: 0 for those of the request itself, else 1 + the decoupled step whose
/// answers start them.
pub(super) type IterationLabel = usize;

/// A checked data flow.
#[derive(Clone, Debug)]
pub struct FlowGraph {
    pub(super) steps: Vec<FlowStep>,
    pub(super) inputs: Vec<usize>,
    pub(super) outputs: Vec<usize>,
    /// In which iterations each step runs.
    pub(super) step_labels: Vec<IterationLabel>,
    /// In which iterations the outputs of the ensemble appear.
    pub(super) output_label: IterationLabel,
    producers: Vec<Option<usize>>,
}

impl FlowGraph {
    /// Checks `steps` between `inputs` and `outputs`, which are numbers below `tensors`.
    ///
    /// # Errors
    /// With the first fault.
    pub fn new(
        tensors: usize,
        inputs: Vec<usize>,
        outputs: Vec<usize>,
        steps: Vec<FlowStep>,
    ) -> Result<Self, GraphFault> {
        let mut producers: Vec<Option<usize>> = vec![None; tensors];
        for (number, step) in steps.iter().enumerate() {
            for &output in &step.outputs {
                let Some(producer) = producers.get_mut(output) else {
                    return Err(GraphFault::Unwritten(output));
                };
                if producer.replace(number).is_some() || inputs.contains(&output) {
                    return Err(GraphFault::WrittenTwice(output));
                }
            }
        }
        let mut labels: Vec<Option<IterationLabel>> = vec![None; tensors];
        for &input in &inputs {
            if let Some(label) = labels.get_mut(input) {
                *label = Some(0);
            }
        }
        let step_labels = label_steps(&steps, &mut labels)?;
        let mut output_label = None;
        for &output in &outputs {
            let label =
                labels.get(output).copied().flatten().ok_or(GraphFault::Unwritten(output))?;
            if *output_label.get_or_insert(label) != label {
                return Err(GraphFault::MixedOutputs);
            }
        }
        let output_label = output_label.unwrap_or(0);
        Ok(Self { steps, inputs, outputs, step_labels, output_label, producers })
    }

    /// Whether any step is decoupled.
    #[must_use]
    pub fn is_decoupled(&self) -> bool {
        self.steps.iter().any(|step| step.decoupled)
    }

    /// The step that writes a tensor; `None` for inputs of the ensemble.
    #[must_use]
    pub fn producer(&self, tensor: usize) -> Option<usize> {
        self.producers.get(tensor).copied().flatten()
    }

    /// Which steps are needed for `wanted`.
    pub(super) fn needed(&self, wanted: &[usize]) -> Vec<bool> {
        let mut needed = vec![false; self.steps.len()];
        let mut open: Vec<usize> = wanted.to_vec();
        while let Some(tensor) = open.pop() {
            let Some(number) = self.producer(tensor) else { continue };
            let (Some(step), Some(needed)) = (self.steps.get(number), needed.get_mut(number))
            else {
                continue;
            };
            if !std::mem::replace(needed, true) {
                open.extend(&step.inputs);
            }
        }
        needed
    }
}

/// Follows the tensors from the inputs of the ensemble through the steps.
fn label_steps(
    steps: &[FlowStep],
    labels: &mut [Option<IterationLabel>],
) -> Result<Vec<IterationLabel>, GraphFault> {
    let mut step_labels: Vec<Option<IterationLabel>> = vec![None; steps.len()];
    loop {
        let mut moved = false;
        for (number, step) in steps.iter().enumerate() {
            let Some(done) = step_labels.get_mut(number).filter(|done| done.is_none()) else {
                continue;
            };
            let known: Option<Vec<IterationLabel>> =
                step.inputs.iter().map(|&input| labels.get(input).copied().flatten()).collect();
            let Some(known) = known else { continue };
            let label = known.first().copied().unwrap_or(0);
            if known.iter().any(|&other| other != label) {
                return Err(GraphFault::MixedInputs(number));
            }
            *done = Some(label);
            for &output in &step.outputs {
                if let Some(of_output) = labels.get_mut(output) {
                    *of_output = Some(if step.decoupled { number + 1 } else { label });
                }
            }
            moved = true;
        }
        if !moved {
            break;
        }
    }
    let never = |(number, label): (usize, Option<IterationLabel>)| {
        label.ok_or(GraphFault::NeverRuns(number))
    };
    step_labels.into_iter().enumerate().map(never).collect()
}
