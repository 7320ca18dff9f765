//! Descriptions of models: inputs, outputs, states and constraints.

use galatea_apple::coreml::{
    ArrayDataType, ArrayFeature, DimensionRange, FeatureKind, PixelFormat, ShapeConstraint,
};
use galatea_doubles::objc::core_ml::{
    NamedText, PlayedFeature, PlayedInterface, PlayedKind, PlayedMetadata, PlayedRange,
    PlayedShapes,
};
use galatea_doubles::objc::runtime::hide;

use crate::player::{FLOAT16, FLOAT32, INT32, LoneTest, TestModel, array_feature};

fn feature(name: &str, kind: PlayedKind) -> PlayedFeature {
    PlayedFeature { name: name.to_owned(), kind, optional: name == "optional" }
}

fn arrays(name: &str, shapes: PlayedShapes) -> PlayedFeature {
    feature(name, PlayedKind::Array { data_type: FLOAT32, shape: vec![1, 3], shapes })
}

fn described(interface: PlayedInterface) -> (LoneTest, galatea_apple::coreml::ModelInterface) {
    let test = LoneTest::with(TestModel::new(interface, |_, _| Ok(Vec::new())));
    let described = test.load().describe().clone();
    (test, described)
}

fn kind_of(kind: PlayedKind) -> FeatureKind {
    let inputs = vec![feature("x", kind)];
    let (_test, found) = described(PlayedInterface { inputs, ..PlayedInterface::default() });
    found.inputs[0].kind.clone()
}

#[test]
fn features_come_in_the_order_of_their_names() {
    let inputs = ["b", "a", "optional"].map(|name| array_feature(name, INT32, &[2]));
    let mut inputs = inputs.to_vec();
    inputs[2].optional = true;
    let (_test, found) = described(PlayedInterface { inputs, ..PlayedInterface::default() });
    let told: Vec<_> = found.inputs.iter().map(|one| (one.name.as_str(), one.optional)).collect();
    assert_eq!(told, [("a", false), ("b", false), ("optional", true)]);
}

#[test]
fn shapes_are_fixed_listed_or_within_ranges() {
    let listed = vec![vec![1, 3], vec![2, 3]];
    let ranges = [(1, 4), (3, 1), (5, 0), (0, usize::MAX), (2, isize::MAX as usize)];
    let ranges = ranges.map(|(location, length)| PlayedRange { location, length });
    let inputs = vec![
        arrays("fixed", PlayedShapes::Fixed),
        arrays("listed", PlayedShapes::Enumerated(listed.clone())),
        arrays("ranges", PlayedShapes::Ranges(ranges.to_vec())),
    ];
    let (_test, found) = described(PlayedInterface { inputs, ..PlayedInterface::default() });
    let constraint = |index: usize| match &found.inputs[index].kind {
        FeatureKind::Array(array) => array.constraint.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(constraint(0), ShapeConstraint::Fixed);
    assert_eq!(constraint(1), ShapeConstraint::Enumerated(listed));
    let range = |low, high| DimensionRange { low, high };
    let expected =
        [range(1, Some(4)), range(3, Some(3)), range(5, Some(5)), range(0, None), range(2, None)];
    assert_eq!(constraint(2), ShapeConstraint::Range(expected.to_vec()));
}

#[test]
fn every_kind_of_values_is_told_apart() {
    let format = u32::from_be_bytes(*b"BGRA");
    let image = PlayedKind::Image { width: 224, height: 112, format };
    let told = FeatureKind::Image { width: 224, height: 112, format: PixelFormat(format) };
    assert_eq!(kind_of(image), told);
    assert_eq!(kind_of(PlayedKind::Plain(1)), FeatureKind::Int64);
    assert_eq!(kind_of(PlayedKind::Plain(2)), FeatureKind::Double);
    assert_eq!(kind_of(PlayedKind::Plain(3)), FeatureKind::String);
    assert_eq!(kind_of(PlayedKind::Plain(6)), FeatureKind::Dictionary);
    assert_eq!(kind_of(PlayedKind::Plain(7)), FeatureKind::Other(7));
    // Without its constraint nothing is known of a feature.
    for number in [4, 5, 8] {
        assert_eq!(kind_of(PlayedKind::Plain(number)), FeatureKind::Other(number));
    }
    let odd = PlayedKind::Array { data_type: 3, shape: vec![1], shapes: PlayedShapes::Fixed };
    assert_eq!(kind_of(odd), FeatureKind::Other(5));
    let negative = PlayedKind::Image { width: -1, height: 1, format };
    assert_eq!(kind_of(negative), FeatureKind::Other(4));
}

#[test]
fn states_are_told_from_macos_15_on() {
    let state = PlayedKind::State { data_type: FLOAT16, shape: vec![1, 8, 32] };
    let states = vec![feature("keys", state)];
    let interface = PlayedInterface { states, ..PlayedInterface::default() };
    let (test, found) = described(interface);
    let constraint = ShapeConstraint::Fixed;
    let array =
        ArrayFeature { data_type: ArrayDataType::Float16, shape: vec![1, 8, 32], constraint };
    assert_eq!(found.states[0].kind, FeatureKind::Array(array));
    let hidden = hide(&["stateDescriptionsByName"]);
    assert_eq!(test.load().describe().states, []);
    drop(hidden);
}

#[test]
fn a_classifier_tells_its_outputs_and_its_author() {
    let additional = ["b", "a"].map(|name| NamedText { name: name.into(), text: "1".into() });
    let metadata = PlayedMetadata {
        description: Some("Digits.".to_owned()),
        author: Some(String::new()),
        additional: additional.to_vec(),
    };
    let (_test, found) = described(PlayedInterface {
        predicted_feature: Some("label".to_owned()),
        predicted_probabilities: Some("probabilities".to_owned()),
        metadata,
        ..PlayedInterface::default()
    });
    assert_eq!(found.predicted_feature.as_deref(), Some("label"));
    assert_eq!(found.predicted_probabilities.as_deref(), Some("probabilities"));
    assert_eq!(found.metadata.description.as_deref(), Some("Digits."));
    assert_eq!(found.metadata.author, None);
    let pair = |name: &str| (name.to_owned(), "1".to_owned());
    assert_eq!(found.metadata.additional, [pair("a"), pair("b")]);
}
