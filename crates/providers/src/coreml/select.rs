//! Choosing between values.

use galatea_formats::coreml::mil::{Arg, Element, Var};

use super::emit::{Emit, Result};

/// Lengths of axes, as far as they are known.
type Lengths = Vec<Option<usize>>;

/// The lengths that two values have together.
fn together(a: &Lengths, b: &Lengths) -> Lengths {
    let rank = a.len().max(b.len());
    let at = |all: &Lengths, axis: usize| match (axis + all.len()).checked_sub(rank) {
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

impl Emit<'_> {
    /// Elements of `a` where the condition holds, else of `b`. The two must have the shape of the result
    /// without the condition: coremltools' loader takes their common shape for that of the result.
    pub(crate) fn select(&mut self, condition: &Var, a: Arg, b: Arg) -> Result<Var> {
        let a = self.as_var(a)?;
        let b = self.as_var(b)?;
        let values = together(&self.lengths_of(&a), &self.lengths_of(&b));
        let own = self.lengths_of(condition);
        let a = match together(&values, &own) == values {
            true => a,
            false => self.over(&a, condition)?,
        };
        let inputs = vec![("cond", condition.into()), ("a", Arg::Var(a)), ("b", Arg::Var(b))];
        self.op("select", inputs)
    }

    fn as_var(&mut self, arg: Arg) -> Result<Var> {
        match arg {
            Arg::Var(var) => Ok(var),
            Arg::Float(_, value) => self.floats(&[], vec![value]),
            Arg::Int(value) => self.table(&[], vec![value]),
            other => super::emit::refuse(format!("{other:?} in the place of a value")),
        }
    }

    fn lengths_of(&self, var: &Var) -> Lengths {
        self.dims_of(var).unwrap_or_default()
    }

    /// The value with the shape that it has together with a condition.
    fn over(&mut self, var: &Var, condition: &Var) -> Result<Var> {
        let element = self.element_of(var)?;
        if element == Element::Bool {
            let not = self.op("logical_not", vec![("x", condition.into())])?;
            let never = self.pair("logical_and", condition, Arg::Var(not))?;
            return self.pair("logical_or", var, Arg::Var(never));
        }
        let zero = match element {
            Element::Int32 => Arg::Int(0),
            _ => Arg::Float(element, 0.0),
        };
        let number = self.cast(condition, element)?;
        let nothing = self.pair("mul", Arg::Var(number), zero)?;
        self.pair("add", var, Arg::Var(nothing))
    }
}
