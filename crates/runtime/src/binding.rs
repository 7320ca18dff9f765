//! Inputs of a run against what the model declares.

use std::collections::HashMap;

use galatea_graph::{Datum, Dim, Fact, FactKind, Graph, ValueId};
use galatea_tensor::{DataType, Tensor};

use crate::error::RuntimeError;

/// An input or output of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoInfo {
    /// The name.
    pub name: String,
    /// Kind of the value: tensor, sequence and so on.
    pub kind: FactKind,
    /// The element type.
    pub dtype: DataType,
    /// The axes; empty when `ranked` is false.
    pub dims: Vec<Dim>,
    /// True if the number of axes is known; if not, any shape is accepted.
    pub ranked: bool,
}

impl IoInfo {
    pub(crate) fn of(graph: &Graph, id: ValueId, fact: &Fact) -> Self {
        Self::new(graph.value(id).name.clone(), fact)
    }

    /// An input or output of this type.
    #[must_use]
    pub fn new(name: String, fact: &Fact) -> Self {
        Self {
            name,
            kind: fact.kind,
            dtype: fact.dtype,
            dims: fact.shape.clone().unwrap_or_default(),
            ranked: fact.shape.is_some(),
        }
    }

    /// The type.
    #[must_use]
    pub fn fact(&self) -> Fact {
        let shape = self.ranked.then(|| self.dims.clone());
        Fact::shaped(self.dtype, shape).within(self.kind)
    }

    fn shape_text(&self) -> String {
        let dims: Vec<String> = self.dims.iter().map(Dim::to_string).collect();
        format!("[{}]", dims.join(","))
    }
}

/// Reason why values do not fit inputs.
#[derive(Debug)]
pub(crate) enum BindingFailure {
    /// They never fit.
    Refused(RuntimeError),
    /// They may fit the model's own graph, in which initializers can be replaced and one name may stand for
    /// several lengths.
    Undeclared(RuntimeError),
}

impl From<RuntimeError> for BindingFailure {
    fn from(error: RuntimeError) -> Self {
        Self::Refused(error)
    }
}

impl From<BindingFailure> for RuntimeError {
    fn from(failure: BindingFailure) -> Self {
        let (BindingFailure::Refused(error) | BindingFailure::Undeclared(error)) = failure;
        error
    }
}

/// Puts the named values into the order of `inputs`, and checks their types and shapes.
pub(crate) fn bind<T: Clone + Into<Datum>>(
    inputs: &[IoInfo],
    given: &[(&str, T)],
) -> Result<Vec<Datum>, BindingFailure> {
    check_names(inputs, given)?;
    let mut symbols = HashMap::new();
    let mut ordered = Vec::with_capacity(inputs.len());
    for info in inputs {
        let found = given.iter().find(|(name, _)| *name == info.name);
        let Some((_, value)) = found else {
            return Err(RuntimeError::Input(format!(
                "input '{}' ({}{}) is missing",
                info.name,
                info.dtype,
                info.shape_text()
            ))
            .into());
        };
        let value = match value.clone().into() {
            Datum::Tensor(tensor) if info.kind == FactKind::Tensor => {
                let tensor = of_one_element(info, tensor);
                check_tensor(info, &tensor, &mut symbols)?;
                Datum::Tensor(tensor)
            }
            other => {
                check_kind(info, &other)?;
                other
            }
        };
        ordered.push(value);
    }
    Ok(ordered)
}

/// Gives a tensor of one element the axes that are declared, where these have one element too: clients
/// send a scalar as a vector, and a vector as a scalar.
fn of_one_element(info: &IoInfo, tensor: Tensor) -> Tensor {
    let single = info.ranked && info.dims.iter().all(|dim| *dim == Dim::Known(1));
    if !single || tensor.elements() != 1 || tensor.rank() == info.dims.len() {
        return tensor;
    }
    tensor.reshape(&vec![1; info.dims.len()]).unwrap_or(tensor)
}

/// Checks types and shapes of tensors that are in the order of `inputs`.
pub(crate) fn check_ordered(inputs: &[IoInfo], given: &[Tensor]) -> Result<(), BindingFailure> {
    if inputs.len() != given.len() {
        let found = given.len();
        let expected = inputs.len();
        let text = format!("{found} inputs, the model takes {expected}");
        return Err(RuntimeError::Input(text).into());
    }
    let mut symbols = HashMap::new();
    for (info, tensor) in inputs.iter().zip(given) {
        match info.kind {
            FactKind::Tensor => check_tensor(info, tensor, &mut symbols)?,
            _ => check_kind(info, &Datum::Tensor(tensor.clone()))?,
        }
    }
    Ok(())
}

fn check_names<T>(inputs: &[IoInfo], given: &[(&str, T)]) -> Result<(), BindingFailure> {
    for (index, (name, _)) in given.iter().enumerate() {
        if given[..index].iter().any(|(earlier, _)| earlier == name) {
            return Err(RuntimeError::Input(format!("input '{name}' is given twice")).into());
        }
        if !inputs.iter().any(|info| info.name == *name) {
            let names: Vec<&str> = inputs.iter().map(|info| info.name.as_str()).collect();
            return Err(BindingFailure::Undeclared(RuntimeError::Input(format!(
                "the model has no input '{name}'; its inputs are {}",
                names.join(", ")
            ))));
        }
    }
    Ok(())
}

/// Checks a value that should not be, or is not, a tensor.
fn check_kind(info: &IoInfo, value: &Datum) -> Result<(), RuntimeError> {
    if value.fits(&Fact::unranked(info.dtype).within(info.kind)) {
        return Ok(());
    }
    Err(RuntimeError::Input(format!(
        "input '{}' is {}, expected {} of type {}",
        info.name,
        value.describe(),
        info.kind,
        info.dtype
    )))
}

fn check_tensor<'a>(
    info: &'a IoInfo,
    tensor: &Tensor,
    symbols: &mut HashMap<&'a str, (usize, &'a str)>,
) -> Result<(), BindingFailure> {
    if tensor.dtype() != info.dtype {
        return Err(RuntimeError::Input(format!(
            "input '{}' is of type {}, expected {}",
            info.name,
            tensor.dtype(),
            info.dtype
        ))
        .into());
    }
    if !info.ranked {
        return Ok(());
    }
    let wrong = |why: String| {
        RuntimeError::Input(format!(
            "input '{}' has shape {:?}, expected {}: {why}",
            info.name,
            tensor.shape(),
            info.shape_text()
        ))
    };
    if tensor.rank() != info.dims.len() {
        let found = tensor.rank();
        let expected = info.dims.len();
        return Err(wrong(format!("{found} axes instead of {expected}")).into());
    }
    let mut contradiction = None;
    for (axis, (&len, dim)) in tensor.shape().iter().zip(&info.dims).enumerate() {
        match dim {
            Dim::Known(expected) if *expected != len => {
                let text = format!("axis {axis} has length {len} instead of {expected}");
                return Err(wrong(text).into());
            }
            Dim::Symbol(name) => {
                let &mut (bound, by) = symbols.entry(name).or_insert((len, &info.name));
                if bound != len {
                    let text = format!(
                        "axis {axis} ('{name}') has length {len}, but {bound} in input '{by}'"
                    );
                    contradiction.get_or_insert_with(|| wrong(text));
                }
            }
            _ => {}
        }
    }
    contradiction.map_or(Ok(()), |error| Err(BindingFailure::Undeclared(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(name: &str, dims: &[Dim]) -> IoInfo {
        let kind = FactKind::Tensor;
        let dtype = DataType::Fp32;
        IoInfo { name: name.into(), kind, dtype, dims: dims.to_vec(), ranked: true }
    }

    fn zeros(shape: &[usize]) -> Tensor {
        Tensor::zeros(DataType::Fp32, shape).unwrap()
    }

    fn error(inputs: &[IoInfo], given: &[(&str, Tensor)]) -> String {
        RuntimeError::from(bind(inputs, given).unwrap_err()).to_string()
    }

    #[test]
    fn one_element_gets_the_axes_that_are_declared() {
        let one = |dims: &[usize], shape: &[usize]| {
            let dims: Vec<Dim> = dims.iter().map(|&len| Dim::Known(len)).collect();
            let bound = bind(&[info("a", &dims)], &[("a", zeros(shape))]).ok()?;
            Some(bound[0].as_tensor().unwrap().shape().to_vec())
        };
        assert_eq!(one(&[], &[1]), Some(vec![]));
        assert_eq!(one(&[], &[1, 1]), Some(vec![]));
        assert_eq!(one(&[1], &[]), Some(vec![1]));
        assert_eq!(one(&[1, 1], &[1]), Some(vec![1, 1]));
        for (dims, shape) in [(&[][..], &[2][..]), (&[1], &[0]), (&[2], &[]), (&[1, 3], &[1])] {
            assert_eq!(one(dims, shape), None, "{dims:?} {shape:?}");
        }
        let open = [info("a", &[Dim::symbol("n")])];
        assert!(bind(&open, &[("a", zeros(&[]))]).is_err(), "an open length may be any");
    }

    #[test]
    fn only_contradictory_names_and_unknown_inputs_may_fit_the_models_own_graph() {
        let n = Dim::symbol("n");
        let inputs = [info("a", &[n.clone(), Dim::Known(2)]), info("b", &[n])];
        let undeclared = |given: &[(&str, Tensor)]| {
            matches!(bind(&inputs, given), Err(BindingFailure::Undeclared(_)))
        };
        assert!(undeclared(&[("a", zeros(&[3, 2])), ("b", zeros(&[4]))]));
        assert!(undeclared(&[("a", zeros(&[3, 2])), ("b", zeros(&[3])), ("c", zeros(&[1]))]));
        assert!(!undeclared(&[("a", zeros(&[3, 4])), ("b", zeros(&[3]))]));
        assert!(!undeclared(&[("a", zeros(&[3, 2]))]));
    }

    #[test]
    fn inputs_are_ordered_as_the_model_declares_them() {
        let inputs = [info("a", &[Dim::Known(1)]), info("b", &[Dim::symbol("n")])];
        let bound = bind(&inputs, &[("b", zeros(&[3])), ("a", zeros(&[1]))]).unwrap();
        let shape = |at: usize| bound[at].as_tensor().unwrap().shape().to_vec();
        assert_eq!((shape(0), shape(1)), (vec![1], vec![3]));
    }

    #[test]
    fn wrong_inputs_are_named_with_what_was_expected() {
        let n = Dim::symbol("n");
        let inputs = [info("a", &[n.clone(), Dim::Known(2)]), info("b", &[n])];
        let good = || zeros(&[3, 2]);
        assert!(error(&inputs, &[("a", good())]).contains("input 'b' (FP32[n]) is missing"));
        let text = error(&inputs, &[("a", good()), ("c", zeros(&[3]))]);
        assert!(text.contains("no input 'c'") && text.contains("inputs are a, b"), "{text}");
        let text = error(&inputs, &[("a", good()), ("a", good())]);
        assert!(text.contains("'a' is given twice"), "{text}");
        let text = error(&inputs, &[("a", zeros(&[3, 4])), ("b", zeros(&[3]))]);
        assert!(text.contains("axis 1 has length 4 instead of 2"), "{text}");
        let text = error(&inputs, &[("a", zeros(&[3])), ("b", zeros(&[3]))]);
        assert!(text.contains("1 axes instead of 2"), "{text}");
        let text = error(&inputs, &[("a", good()), ("b", zeros(&[4]))]);
        assert!(text.contains("('n') has length 4, but 3 in input 'a'"), "{text}");
        let text = error(&inputs, &[("a", Tensor::scalar(1_i32)), ("b", zeros(&[3]))]);
        assert!(text.contains("type INT32, expected FP32"), "{text}");
    }
}
