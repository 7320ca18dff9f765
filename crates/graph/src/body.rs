//! Runs of subgraphs, and facts of their values: those of the reference evaluation and of inference.

use std::collections::HashMap;
use std::fmt;
use std::sync::PoisonError;

use galatea_tensor::Tensor;

use crate::collect::collected;
use crate::datum::Datum;
use crate::error::{GraphError, OpError};
use crate::evaluate;
use crate::fact::{Dim, Fact};
use crate::graph::{OperatorBody, OperatorInputs};
use crate::infer;
use crate::length;

/// Marks the symbols of the graph around a body, so that they are none of the body's own: those
/// stand for one number in one iteration only.
const OUTER: &str = "^";

/// How many results of inference a body keeps: a loop takes up to three to settle.
const KEPT: usize = 4;

impl OperatorBody {
    /// Runs the body once with its own inputs and the captured values.
    pub(crate) fn run(
        &self,
        mut own: Vec<Datum>,
        captured: Vec<Datum>,
    ) -> Result<Vec<Datum>, OpError> {
        own.extend(captured);
        let outputs = match &self.runner {
            Some(runner) => runner.run(own).map_err(|error| self.inside(error)),
            None => evaluate::run_values(self.graph(), own).map_err(|error| self.inside(error)),
        }?;
        if outputs.len() == self.graph().outputs.len() {
            return Ok(outputs);
        }
        Err(OpError::new(format!("'{}' gave {} outputs", self.name(), outputs.len())))
    }

    fn inside(&self, error: impl fmt::Display) -> OpError {
        OpError::new(format!("in '{}': {error}", self.name()))
    }

    /// Returns the facts of the body's inputs as seen inside it, from its own inputs' facts and the
    /// node's.
    pub(crate) fn input_facts(
        &self,
        own: &[Option<Fact>],
        inputs: OperatorInputs<'_, Fact>,
    ) -> Vec<Option<Fact>> {
        let captured = self.captures().iter().map(|&at| inputs.optional(at).cloned());
        let name = |fact: Fact, at: usize| {
            let name = self.graph().inputs.get(at).map_or("", |&id| &self.graph().value(id).name);
            infer::name_unknown(enter(fact), name)
        };
        let all = own.iter().cloned().chain(captured).enumerate();
        all.map(|(at, fact)| fact.map(|fact| name(fact, at))).collect()
    }

    /// Infers the facts of the body's outputs as seen outside it, from its own inputs' facts and
    /// the node's.
    ///
    /// # Errors
    /// Returns an error if an operator inside refuses its inputs.
    pub(crate) fn infer(
        &self,
        own: &[Option<Fact>],
        inputs: OperatorInputs<'_, Fact>,
    ) -> Result<Vec<Fact>, OpError> {
        let given = self.input_facts(own, inputs);
        let lock = || self.inferred.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = lock().iter().find(|(known, _)| same_facts(known, &given)) {
            return Ok(found.clone());
        }
        let named = self.graph().inputs.iter().copied().zip(given.iter().cloned());
        let known: HashMap<_, _> = named.filter_map(|(id, fact)| Some((id, fact?))).collect();
        let facts = infer::facts(self.graph(), &known).map_err(|error| self.inside(error))?;
        let output = |&id: &crate::ValueId| {
            facts[id.index()].clone().map(leave).ok_or_else(|| {
                let name = &self.graph().value(id).name;
                let text = format!("nothing says what type '{name}' has");
                self.inside(GraphError::structure(text))
            })
        };
        let outputs: Vec<Fact> = collected(&mut self.graph().outputs.iter().map(output))?;
        let mut kept = lock();
        if kept.len() >= KEPT {
            kept.pop_front();
        }
        kept.push_back((given, outputs.clone()));
        Ok(outputs)
    }
}

/// Constants of more elements are the same where they are the same memory only.
const COMPARED: usize = 1024;

/// Returns whether both lists certainly say the same.
fn same_facts(a: &[Option<Fact>], b: &[Option<Fact>]) -> bool {
    let place = |value: &Tensor| value.unaligned_bytes().map(<[u8]>::as_ptr_range).ok();
    let same_value = |a: &Tensor, b: &Tensor| {
        (a.elements() <= COMPARED && a == b)
            || (a.shape() == b.shape() && place(a).is_some() && place(a) == place(b))
    };
    let same = |a: &Fact, b: &Fact| {
        let values = match (&a.value, &b.value) {
            (None, None) => true,
            (Some(a), Some(b)) => same_value(a, b),
            _ => false,
        };
        (a.kind, a.dtype) == (b.kind, b.dtype)
            && a.shape == b.shape
            && a.elements == b.elements
            && values
    };
    a.len() == b.len()
        && a.iter().zip(b).all(|pair| match pair {
            (None, None) => true,
            (Some(a), Some(b)) => same(a, b),
            _ => false,
        })
}

fn rename(fact: Fact, other: impl Fn(&str) -> Option<String>) -> Fact {
    let each = |dims: Vec<Dim>| dims.iter().map(|dim| length::rename(dim, &other)).collect();
    Fact { shape: fact.shape.map(each), elements: fact.elements.map(each), ..fact }
}

fn enter(fact: Fact) -> Fact {
    rename(fact, |name| Some(format!("{OUTER}{name}")))
}

/// A fact as the graph around the body sees it: lengths that have a name only inside are unknown.
fn leave(fact: Fact) -> Fact {
    rename(fact, |name| name.strip_prefix(OUTER).map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use galatea_tensor::DataType;

    use super::*;

    #[test]
    fn lengths_of_the_body_stay_inside() {
        let dims = |names: &[&str]| names.iter().map(|name| Dim::symbol(name)).collect();
        let outside = Fact::new(DataType::Fp32, dims(&["past+n", "2*past", "x.0?"]));
        let minus = Some(vec![Dim::Symbol("-1".into()), Dim::Known(3)]);
        let outside = Fact { elements: minus, ..outside };
        assert_eq!(leave(enter(outside.clone())), outside);
        let Some(inside) = enter(outside).shape else { return };
        let mixed = length::plus(&inside[0], &Dim::symbol("past"));
        let fact = leave(Fact::new(DataType::Fp32, vec![mixed, inside[0].clone()]));
        assert_eq!(fact.shape.unwrap(), [Dim::Unknown, Dim::symbol("past+n")]);
    }
}
