//! `If`: one of two subgraphs.

use std::sync::Arc;

use galatea_tensor::Tensor;

use super::iterate::condition;
use crate::datum::Datum;
use crate::error::OpError;
use crate::fact::Fact;
use crate::graph::OperatorBody;
use crate::operator::{Operator, OperatorInputs, ParseContext, tensors_only};

/// ONNX `If`.
#[derive(Clone, Debug)]
pub struct If {
    /// The body that runs if the condition holds, and the body that runs otherwise.
    pub branches: [OperatorBody; 2],
}

impl If {
    /// Reads both branches, which give the node's outputs and have no inputs of their own.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let branches = [context.body("then_branch")?, context.body("else_branch")?];
        for branch in &branches {
            branch.check(0, context.outputs)?;
        }
        Ok(Box::new(Self { branches }))
    }

    /// The branch that a condition chooses.
    #[must_use]
    pub fn branch(&self, condition: bool) -> &OperatorBody {
        &self.branches[usize::from(!condition)]
    }
}

impl Operator for If {
    /// A branch that cannot run with these shapes is one that is not taken: models choose by
    /// shapes which operators are possible.
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        if let Some(value) = &inputs.required(0)?.value {
            return self.branch(condition(value)?).infer(&[], inputs);
        }
        let [then, other] = &self.branches;
        match (then.infer(&[], inputs), other.infer(&[], inputs)) {
            (Ok(then), Ok(other)) => {
                then.iter().zip(&other).map(|(then, other)| then.join(other)).collect()
            }
            (Ok(facts), Err(_)) | (Err(_), Ok(facts)) => Ok(facts),
            (Err(error), Err(_)) => Err(error),
        }
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        tensors_only(self, inputs)
    }

    fn evaluate(&self, mut inputs: Vec<Option<Datum>>) -> Result<Vec<Datum>, OpError> {
        let chosen = match inputs.first_mut().and_then(Option::take) {
            Some(datum) => condition(&datum.into_tensor()?)?,
            None => return Err(OpError::new("the condition is missing")),
        };
        let branch = self.branch(chosen);
        let captured = branch.capture(&mut inputs)?;
        // What the other branch would read too has one owner only then, and can be changed in place.
        drop(inputs);
        branch.run(Vec::new(), captured)
    }

    fn takes_any_kind(&self) -> bool {
        true
    }

    /// Not folded as it stands: a known condition leaves one branch, whose nodes are folded.
    fn is_deterministic(&self) -> bool {
        false
    }

    fn bodies(&self) -> &[OperatorBody] {
        &self.branches
    }

    fn body_facts(
        &self,
        body: usize,
        inputs: OperatorInputs<'_, Fact>,
    ) -> Result<Vec<Option<Fact>>, OpError> {
        Ok(self.branches[body].input_facts(&[], inputs))
    }

    fn with_bodies(&self, bodies: Vec<OperatorBody>) -> Option<Arc<dyn Operator>> {
        let branches = bodies.try_into().ok()?;
        Some(Arc::new(Self { branches }))
    }
}
