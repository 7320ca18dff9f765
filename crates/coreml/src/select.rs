//! Choosing between values.

use galatea_formats::coreml::mil::{MilArg, MilElement, MilVar};

use super::emit::ProgramEmitter;
use super::unwritable::Result;

/// Lengths of axes, as far as they are known.
type KnownLengths = Vec<Option<usize>>;

/// The lengths that two values have together.
fn together(a: &KnownLengths, b: &KnownLengths) -> KnownLengths {
    let rank = a.len().max(b.len());
    let at = |all: &KnownLengths, axis: usize| match (axis + all.len()).checked_sub(rank) {
        Some(axis) => all.get(axis).copied().flatten(),
        None => Some(1),
    };
    let length = |axis| match (at(a, axis), at(b, axis)) {
        (Some(1), other) | (other, Some(1)) => other,
        (Some(len), _) | (_, Some(len)) => Some(len),
        (None, None) => None,
    };
    (0..rank).map(length).collect()
}

impl ProgramEmitter<'_> {
    /// Elements of `a` where the condition holds, else of `b`. The two must have the shape of the result
    /// without the condition: coremltools' loader takes their common shape for that of the result.
    pub(crate) fn select(&mut self, condition: &MilVar, a: MilArg, b: MilArg) -> Result<MilVar> {
        let a = self.as_var(a)?;
        let b = self.as_var(b)?;
        let values = together(&self.lengths_of(&a), &self.lengths_of(&b));
        let own = self.lengths_of(condition);
        let a = match together(&values, &own) == values {
            true => a,
            false => self.over(&a, condition)?,
        };
        let inputs = vec![("cond", condition.into()), ("a", MilArg::Var(a)), ("b", MilArg::Var(b))];
        self.op("select", inputs)
    }

    fn as_var(&mut self, arg: MilArg) -> Result<MilVar> {
        match arg {
            MilArg::Var(var) => Ok(var),
            MilArg::Float(_, value) => self.floats(&[], vec![value]),
            MilArg::Int(value) => self.table(&[], vec![value]),
            other => super::unwritable::refuse(format!("{other:?} in the place of a value")),
        }
    }

    fn lengths_of(&self, var: &MilVar) -> KnownLengths {
        self.dims_of(var).unwrap_or_default()
    }

    /// The value with the shape that it has together with a condition.
    fn over(&mut self, var: &MilVar, condition: &MilVar) -> Result<MilVar> {
        let element = self.element_of(var)?;
        if element == MilElement::Bool {
            let not = self.op("logical_not", vec![("x", condition.into())])?;
            let never = self.pair("logical_and", condition, MilArg::Var(not))?;
            return self.pair("logical_or", var, MilArg::Var(never));
        }
        let zero = match element {
            MilElement::Int32 => MilArg::Int(0),
            _ => MilArg::Float(element, 0.0),
        };
        let number = self.cast(condition, element)?;
        let nothing = self.pair("mul", MilArg::Var(number), zero)?;
        self.pair("add", var, MilArg::Var(nothing))
    }
}
