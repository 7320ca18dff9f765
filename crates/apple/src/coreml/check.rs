//! Checks that refuse in advance what Core ML would answer with an exception.

use std::path::PathBuf;

use super::interface::{FeatureKind, InterfaceFeature};
use super::layout::{ArrayLayout, shown};
use super::{ArrayDataType, ComputeUnits, CoreMlFault, ModelInterface};

/// View of an array that goes to a model, for the checks.
#[derive(Debug, Clone, Copy)]
pub(super) struct GivenArray<'a> {
    pub(super) name: &'a str,
    pub(super) data_type: ArrayDataType,
    pub(super) shape: &'a [usize],
    /// True if the array's memory may be written.
    pub(super) writable: bool,
}

/// Every input is one of the model's, once and of an allowed shape, and none is missing.
pub(super) fn inputs(
    interface: &ModelInterface,
    given: &[GivenArray<'_>],
) -> Result<(), CoreMlFault> {
    for one in given {
        array("input", &interface.inputs, *one)?;
    }
    unique("input", given)?;
    for wanted in interface.inputs.iter().filter(|wanted| !wanted.optional) {
        if given.iter().all(|one| one.name != wanted.name) {
            let what = wanted.kind.word();
            let text = format!("input `{}` is missing: expected {what}", wanted.name);
            return Err(CoreMlFault::argument(text));
        }
    }
    Ok(())
}

/// Every array that a result shall lie in fits an output and may be written.
pub(super) fn backings(
    interface: &ModelInterface,
    given: &[GivenArray<'_>],
) -> Result<(), CoreMlFault> {
    for one in given {
        array("output", &interface.outputs, *one)?;
        if !one.writable {
            let text = format!("output `{}`: its array's memory is read-only", one.name);
            return Err(CoreMlFault::argument(text));
        }
    }
    unique("output", given)
}

/// Identity of the models that accept a state: functions of one compiled model, on the same devices and with
/// the same arrays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StateKinship {
    pub(super) compiled: PathBuf,
    pub(super) units: ComputeUnits,
    pub(super) states: Vec<InterfaceFeature>,
}

/// A model with states is given some, made by itself or its kin; one without gets none.
pub(super) fn state(own: &StateKinship, given: Option<&StateKinship>) -> Result<(), CoreMlFault> {
    let text = match (own.states.first(), given) {
        (Some(state), None) => format!("the model has state `{}`, no state was given", state.name),
        (None, Some(_)) => "a state was given to a model without states".to_owned(),
        (Some(_), Some(maker)) if maker != own => {
            "the state given is that of another model".to_owned()
        }
        _ => return Ok(()),
    };
    Err(CoreMlFault::argument(text))
}

fn array(
    role: &str,
    features: &[InterfaceFeature],
    given: GivenArray<'_>,
) -> Result<(), CoreMlFault> {
    let name = given.name;
    let Some(feature) = features.iter().find(|feature| feature.name == name) else {
        let names: Vec<&str> = features.iter().map(|feature| feature.name.as_str()).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let text = format!("no {role} `{name}`: the model's are {names}");
        return Err(CoreMlFault::argument(text));
    };
    let FeatureKind::Array(wanted) = &feature.kind else {
        let text = format!("{role} `{name}`: found an array, expected {}", feature.kind.word());
        return Err(CoreMlFault::argument(text));
    };
    if wanted.data_type != given.data_type || !wanted.allows(given.shape) {
        let found = format!("{} of shape {}", given.data_type, shown(given.shape));
        let text = format!("{role} `{name}`: found {found}, expected {wanted}");
        return Err(CoreMlFault::argument(text));
    }
    Ok(())
}

fn unique(role: &str, given: &[GivenArray<'_>]) -> Result<(), CoreMlFault> {
    for (index, one) in given.iter().enumerate() {
        if given[..index].iter().any(|earlier| earlier.name == one.name) {
            return Err(CoreMlFault::argument(format!("{role} `{}` is given twice", one.name)));
        }
    }
    Ok(())
}

/// An array at `offset` in memory of `len` bytes that starts at `address` lies within it, at a
/// multiple of its elements' size.
pub(super) fn window(
    layout: &ArrayLayout,
    address: usize,
    len: usize,
    offset: usize,
) -> Result<(), CoreMlFault> {
    let needed = layout.span();
    if offset.checked_add(needed).is_none_or(|end| end > len) {
        let text = format!(
            "array of shape {}: needs {needed} bytes from {offset} on, its memory has {len}",
            shown(&layout.shape)
        );
        return Err(CoreMlFault::argument(text));
    }
    let size = layout.data_type.size_bytes();
    if !address.wrapping_add(offset).is_multiple_of(size) {
        let text = format!(
            "array of {}: starts at byte {offset} of its memory, which is no multiple of {size}",
            layout.data_type
        );
        return Err(CoreMlFault::argument(text));
    }
    Ok(())
}

/// The width and the height of a surface for an array: the last dimension, and the product of the
/// others.
pub(super) fn surface(layout: &ArrayLayout) -> Result<(usize, usize), CoreMlFault> {
    let wrong = |what: String| CoreMlFault::argument(format!("surface: {what}"));
    if !matches!(layout.data_type, ArrayDataType::Float16 | ArrayDataType::Int8) {
        return Err(wrong(format!("found {}, expected Float16 or Int8", layout.data_type)));
    }
    let width = layout.shape.last().copied().unwrap_or(1);
    let height = layout.shape.iter().rev().skip(1).product();
    if [width, height].into_iter().any(|size| i32::try_from(size).is_err()) {
        let shape = shown(&layout.shape);
        return Err(wrong(format!("shape {shape} is {width} wide and {height} high: too large")));
    }
    Ok((width, height))
}

#[cfg(test)]
mod tests {
    use super::super::{ArrayFeature, ShapeConstraint};
    use super::*;

    fn feature(name: &str, kind: FeatureKind) -> InterfaceFeature {
        InterfaceFeature { name: name.to_owned(), kind, optional: false }
    }

    fn array_of(data_type: ArrayDataType, shape: &[usize]) -> FeatureKind {
        let shape = shape.to_vec();
        FeatureKind::Array(ArrayFeature { data_type, shape, constraint: ShapeConstraint::Fixed })
    }

    fn interface() -> ModelInterface {
        let mut mask = feature("mask", array_of(ArrayDataType::Int32, &[4]));
        mask.optional = true;
        ModelInterface {
            inputs: vec![mask, feature("x", array_of(ArrayDataType::Float16, &[1, 4]))],
            outputs: vec![
                feature("label", FeatureKind::String),
                feature("y", array_of(ArrayDataType::Float16, &[1, 2])),
            ],
            ..ModelInterface::default()
        }
    }

    fn given<'a>(name: &'a str, data_type: ArrayDataType, shape: &'a [usize]) -> GivenArray<'a> {
        GivenArray { name, data_type, shape, writable: true }
    }

    const X: (&str, ArrayDataType, &[usize]) = ("x", ArrayDataType::Float16, &[1, 4]);

    #[test]
    fn inputs_that_fit_are_taken_and_optional_ones_may_be_missing() {
        let x = given(X.0, X.1, X.2);
        assert_eq!(inputs(&interface(), &[x]), Ok(()));
        let mask = given("mask", ArrayDataType::Int32, &[4]);
        assert_eq!(inputs(&interface(), &[x, mask]), Ok(()));
    }

    #[test]
    fn inputs_that_do_not_fit_are_named() {
        let refused = |list: &[GivenArray<'_>]| inputs(&interface(), list).unwrap_err().text;
        let x = given(X.0, X.1, X.2);
        assert_eq!(refused(&[]), "input `x` is missing: expected an array");
        assert_eq!(refused(&[x, x]), "input `x` is given twice");
        assert_eq!(refused(&[given("z", X.1, X.2)]), "no input `z`: the model's are mask, x");
        assert_eq!(
            refused(&[given("x", ArrayDataType::Float32, &[1, 4])]),
            "input `x`: found Float32 of shape [1, 4], expected Float16 of shape [1, 4]"
        );
        assert_eq!(
            refused(&[given("x", X.1, &[4])]),
            "input `x`: found Float16 of shape [4], expected Float16 of shape [1, 4]"
        );
    }

    #[test]
    fn results_lie_in_arrays_that_fit_and_may_be_written() {
        let refused = |list: &[GivenArray<'_>]| backings(&interface(), list).unwrap_err().text;
        let y = given("y", ArrayDataType::Float16, &[1, 2]);
        assert_eq!(backings(&interface(), &[y]), Ok(()));
        assert_eq!(
            refused(&[GivenArray { writable: false, ..y }]),
            "output `y`: its array's memory is read-only"
        );
        assert_eq!(
            refused(&[given("label", ArrayDataType::Float16, &[1])]),
            "output `label`: found an array, expected a text"
        );
        assert_eq!(refused(&[y, y]), "output `y` is given twice");
    }

    #[test]
    fn states_belong_to_the_functions_of_the_model_that_made_them() {
        let of = |compiled: &str, len: usize, units| StateKinship {
            compiled: compiled.into(),
            units,
            states: vec![feature("cache", array_of(ArrayDataType::Float16, &[len]))],
        };
        let all = ComputeUnits::All;
        let plain = StateKinship { states: Vec::new(), ..of("a", 8, all) };
        let stateful = of("a", 8, all);
        assert_eq!(state(&plain, None), Ok(()));
        assert_eq!(state(&stateful, Some(&of("a", 8, all))), Ok(()));
        assert!(state(&stateful, None).unwrap_err().text.contains("`cache`"));
        for other in [of("b", 8, all), of("a", 4, all), of("a", 8, ComputeUnits::CpuOnly)] {
            let refused = state(&stateful, Some(&other)).unwrap_err();
            assert!(refused.text.contains("another model"), "{refused:?}");
        }
        assert!(state(&plain, Some(&stateful)).unwrap_err().text.contains("without states"));
    }

    #[test]
    fn an_array_lies_within_its_memory_and_at_its_alignment() {
        let layout = ArrayLayout::contiguous(ArrayDataType::Float32, &[2, 2]).unwrap();
        assert_eq!(window(&layout, 64, 20, 4), Ok(()));
        assert!(window(&layout, 64, 19, 4).unwrap_err().text.contains("needs 16 bytes from 4 on"));
        assert!(window(&layout, 64, 20, usize::MAX).is_err());
        assert!(window(&layout, 64, 32, 2).unwrap_err().text.contains("no multiple of 4"));
        assert!(window(&layout, 62, 32, 2).is_ok());
    }

    #[test]
    fn a_surface_is_as_wide_as_the_last_dimension() {
        let layout = ArrayLayout::contiguous(ArrayDataType::Float16, &[2, 3, 4]).unwrap();
        assert_eq!(surface(&layout), Ok((4, 6)));
        let line = ArrayLayout::contiguous(ArrayDataType::Int8, &[5]).unwrap();
        assert_eq!(surface(&line), Ok((5, 1)));
        let wrong = ArrayLayout::contiguous(ArrayDataType::Float32, &[5]).unwrap();
        assert!(surface(&wrong).unwrap_err().text.contains("expected Float16"));
        let wide = ArrayLayout::contiguous(ArrayDataType::Float16, &[1 << 31]).unwrap();
        assert!(surface(&wide).unwrap_err().text.contains("too large"));
    }
}
