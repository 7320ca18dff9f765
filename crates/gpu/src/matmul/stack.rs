//! A stack of products as a part of another kernel.

use galatea_tensor::DataType;

use super::problem::Problem;
use super::spec::Spec;
use super::variant::Variant;
use crate::device::Capabilities;
use crate::kernel::{Binding, Shapes, Step};

/// `batch` products of contiguous `m × k` and `k × n`.
pub(crate) struct Stack {
    /// Where A, B and the result are, and their types.
    pub(crate) operands: [(Binding, DataType); 3],
    pub(crate) batch: usize,
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
}

impl Stack {
    /// Adds the dispatches of the products, in the way that was measured the fastest or fits their lengths.
    ///
    /// # Errors
    /// When lengths are beyond the device.
    pub(crate) fn run(&self, capabilities: &Capabilities, step: &mut Step) -> Result<(), String> {
        let &Self { batch, m, n, k, .. } = self;
        let [a, b, out] = self.operands.each_ref().map(|(_, dtype)| *dtype);
        let shapes = Shapes {
            inputs: vec![Some((a, vec![batch, m, k])), Some((b, vec![batch, k, n]))],
            outputs: vec![Some((out, vec![batch, m, n]))],
            constants: vec![None; 2],
        };
        let problem = Problem::new(Spec::PLAIN, &shapes)?;
        let [a, b, out] = self.operands.each_ref().map(|(binding, _)| binding.clone());
        place(&problem, (&[a, b], &out), (capabilities, None), step)
    }
}

/// Adds the dispatches of a product that is a part of another kernel, in this way, or else in the one that was measured
/// the fastest or fits its lengths. Its inputs and its result are these; inputs beyond them are the kernel's.
///
/// # Errors
/// When lengths are beyond the device.
pub(crate) fn place(
    problem: &Problem,
    (inputs, out): (&[Binding], &Binding),
    (capabilities, way): (&Capabilities, Option<Variant>),
    step: &mut Step,
) -> Result<(), String> {
    let mut own = Step::default();
    let way = way.unwrap_or_else(|| Variant::tuned(problem, capabilities, step));
    way.run(problem, capabilities, &mut own)?;
    let first = step.scratch.len();
    for bytes in own.scratch {
        step.scratch(bytes);
    }
    for dispatch in own.dispatches {
        let meant = |binding: Binding| match binding {
            Binding::Input(number) => inputs.get(number).cloned().unwrap_or(Binding::Input(number)),
            Binding::Output(_) => out.clone(),
            Binding::Scratch(number) => Binding::Scratch(first + number),
            other => other,
        };
        let bindings = dispatch.bindings.into_iter().map(meant).collect();
        step.dispatch(dispatch.shader, bindings, dispatch.params, dispatch.groups);
    }
    Ok(())
}
