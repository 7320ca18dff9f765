//! Checks that the inputs of a prediction fit the model, before it runs.

use galatea_formats::coreml::{FeatureType, ModelFeature};
use galatea_tensor::{DataType, OrderedMap, Tensor};

use super::{EngineError, EngineErrorKind, EngineInterface, NamedTensor, StateNumber};

/// The element type of a feature's tensors; none where it is no tensor.
#[must_use]
pub fn element(feature: &ModelFeature) -> Option<DataType> {
    match &feature.kind {
        FeatureType::Array { dtype, .. } => Some(*dtype),
        FeatureType::Image { .. } => Some(DataType::Fp32),
        FeatureType::Int64 => Some(DataType::Int64),
        FeatureType::Double => Some(DataType::Fp64),
        FeatureType::Text => Some(DataType::Bytes),
        FeatureType::Dictionary { .. } | FeatureType::List => None,
    }
}

/// The one shape of a feature's tensors, where there is only one.
pub(super) fn fixed_shape(feature: &ModelFeature) -> Option<&[usize]> {
    use galatea_formats::coreml::FeatureShapes;
    match &feature.kind {
        FeatureType::Array { shape, shapes: FeatureShapes::Fixed, .. } if !shape.is_empty() => {
            Some(shape)
        }
        _ => None,
    }
}

/// The inputs in the order of the model's: each once, of its type and of a shape that it allows. `None`
/// stands for one that may be left out and is.
pub(super) fn inputs(
    interface: &EngineInterface,
    given: Vec<NamedTensor>,
) -> Result<Vec<Option<Tensor>>, EngineError> {
    let mut by_name = OrderedMap::new();
    for (name, tensor) in given {
        if !interface.inputs.iter().any(|feature| feature.name == name) {
            let names: Vec<&str> = interface.inputs.iter().map(|one| one.name.as_str()).collect();
            let names = names.join(", ");
            return Err(EngineError::argument(format!("no input '{name}': there are {names}")));
        }
        if by_name.insert(name.clone(), tensor).is_some() {
            return Err(EngineError::argument(format!("input '{name}' is given twice")));
        }
    }
    let take = |feature: &ModelFeature| match by_name.remove(&feature.name) {
        Some(tensor) => fits(feature, &tensor).map(|()| Some(tensor)),
        None if feature.optional => Ok(None),
        None => Err(EngineError::argument(format!("input '{}' is missing", feature.name))),
    };
    interface.inputs.iter().map(take).collect()
}

/// Returns whether a tensor is one of the feature's.
fn fits(feature: &ModelFeature, tensor: &Tensor) -> Result<(), EngineError> {
    let expected = element(feature);
    if expected != Some(tensor.dtype()) {
        let expected = expected.map_or("no tensor", DataType::wire_name);
        let found = tensor.dtype().wire_name();
        let name = &feature.name;
        let text = format!("input '{name}' has type {found}, expected {expected}");
        return Err(EngineError::argument(text));
    }
    feature.check_shape(tensor.shape()).map_err(EngineError::argument)
}

/// A model with states predicts on one, another one on none.
pub(super) fn state(
    interface: &EngineInterface,
    given: Option<StateNumber>,
) -> Result<(), EngineError> {
    match (interface.states.first(), given) {
        (Some(state), None) => {
            let name = &state.name;
            Err(EngineError::argument(format!("the model has state '{name}', none was given")))
        }
        (None, Some(_)) => {
            Err(EngineError::argument("a state was given to a model without states"))
        }
        _ => Ok(()),
    }
}

/// Returns whether two functions keep the same: states by name, whatever their order.
pub(super) fn same_states(
    own: &EngineInterface,
    other: &EngineInterface,
) -> Result<(), EngineError> {
    let described = |interface: &EngineInterface| -> OrderedMap<String, String> {
        let row = |feature: &ModelFeature| (feature.name.clone(), format!("{:?}", feature.kind));
        interface.states.iter().map(row).collect()
    };
    let own = described(own);
    let other = described(other);
    match own == other {
        true => Ok(()),
        false => {
            let text = format!("functions of one model have states {own:?} and {other:?}");
            Err(EngineError::new(EngineErrorKind::Load, text))
        }
    }
}

#[cfg(test)]
mod tests {
    use galatea_formats::coreml::FeatureShapes;

    use super::*;

    fn array(name: &str, shape: &[usize], optional: bool) -> ModelFeature {
        let kind = FeatureType::Array {
            dtype: DataType::Fp32,
            shape: shape.to_vec(),
            shapes: FeatureShapes::Fixed,
            default: None,
        };
        ModelFeature { name: name.to_owned(), description: String::new(), kind, optional }
    }

    fn interface() -> EngineInterface {
        let inputs = vec![array("x", &[1, 2], false), array("mask", &[2], true)];
        EngineInterface { inputs, ..EngineInterface::default() }
    }

    fn tensor(shape: &[usize]) -> Tensor {
        Tensor::zeros(DataType::Fp32, shape).unwrap()
    }

    #[test]
    fn inputs_come_in_the_models_order_and_optional_ones_may_be_missing() {
        let given = vec![("mask".to_owned(), tensor(&[2])), ("x".to_owned(), tensor(&[1, 2]))];
        let found = inputs(&interface(), given).unwrap();
        assert_eq!(found[0].as_ref().unwrap().shape(), [1, 2]);
        assert_eq!(found[1].as_ref().unwrap().shape(), [2]);
        let found = inputs(&interface(), vec![("x".to_owned(), tensor(&[1, 2]))]).unwrap();
        assert!(found[1].is_none());
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let refused = |given: Vec<NamedTensor>| inputs(&interface(), given).unwrap_err().text;
        let x = |tensor: Tensor| ("x".to_owned(), tensor);
        assert_eq!(refused(Vec::new()), "input 'x' is missing");
        assert_eq!(
            refused(vec![("y".to_owned(), tensor(&[1]))]),
            "no input 'y': there are x, mask"
        );
        assert_eq!(
            refused(vec![x(tensor(&[1, 2])), x(tensor(&[1, 2]))]),
            "input 'x' is given twice"
        );
        let integers = Tensor::zeros(DataType::Int32, &[1, 2]).unwrap();
        assert_eq!(refused(vec![x(integers)]), "input 'x' has type INT32, expected FP32");
        assert_eq!(refused(vec![x(tensor(&[2]))]), "input 'x' has shape [2], expected [1, 2]");
    }

    #[test]
    fn functions_share_states_of_the_same_names_types_and_shapes() {
        let of =
            |states: Vec<ModelFeature>| EngineInterface { states, ..EngineInterface::default() };
        let key = array("key", &[2], false);
        let value = array("value", &[3], false);
        let own = of(vec![key.clone(), value.clone()]);
        assert!(same_states(&own, &of(vec![value.clone(), key.clone()])).is_ok());
        for other in [vec![key.clone()], vec![key, array("value", &[4], false)]] {
            assert!(same_states(&own, &of(other)).unwrap_err().text.contains("value"));
        }
    }

    #[test]
    fn states_are_given_to_models_that_have_them() {
        let stateful = EngineInterface { states: vec![array("cache", &[1], false)], ..interface() };
        assert!(state(&stateful, Some(1)).is_ok() && state(&interface(), None).is_ok());
        assert!(state(&stateful, None).unwrap_err().text.contains("'cache'"));
        assert!(state(&interface(), Some(1)).unwrap_err().text.contains("without states"));
    }
}
