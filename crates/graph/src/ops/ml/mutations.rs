//! Attributes that make no sense: an operator is refused or answers, and never panics or hangs.

use std::panic::{AssertUnwindSafe, catch_unwind};

use galatea_tensor::{ByteString, DataType, Tensor};

use super::node_lists::tests::stumps;
use crate::attribute::{AttributeValue, Attributes};
use crate::fact::Fact;
use crate::operator::OperatorInputs;
use crate::ops::testing::{attributes, int, ints, parse, tensor, text};

/// Numbers that look random.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % n
    }
}

const INTEGERS: &[i64] = &[-1, 0, 1, 2, 7, 1 << 16, 1 << 31, 1 << 40, i64::MAX, i64::MIN];
const FLOATS: &[f32] = &[0.0, -1.0, 1e30, f32::NAN, f32::INFINITY, f32::NEG_INFINITY];

/// A list that is longer, shorter, empty, or has another element somewhere.
fn spoil<T: Clone>(dice: &mut Dice, list: &mut Vec<T>, other: T) {
    match dice.below(5) {
        0 => list.push(other),
        1 => drop(list.pop()),
        2 => list.clear(),
        _ if list.is_empty() => {}
        _ => {
            let at = dice.below(list.len());
            list[at] = other;
        }
    }
}

fn change(dice: &mut Dice, all: &mut Attributes) {
    let name = all.keys().nth(dice.below(all.len())).unwrap().clone();
    let integer = INTEGERS[dice.below(10)];
    let float = FLOATS[dice.below(6)];
    match all.get_mut(&name).unwrap() {
        _ if dice.below(12) == 0 => drop(all.remove(&name)),
        AttributeValue::Int(value) => *value = integer,
        AttributeValue::Float(value) => *value = float,
        AttributeValue::Ints(list) => spoil(dice, list, integer),
        AttributeValue::Floats(list) => spoil(dice, list, float),
        AttributeValue::Strings(list) => spoil(dice, list, ByteString::from("BRANCH_EQ")),
        AttributeValue::Tensor(tensor) => {
            let mut list = tensor.to_vec::<f32>().unwrap_or_default();
            spoil(dice, &mut list, float);
            *tensor = Tensor::vector(list);
        }
        other => *other = int(integer),
    }
}

fn floats(all: &[f32]) -> AttributeValue {
    AttributeValue::Floats(all.to_vec())
}

fn with<const N: usize>(mut all: Attributes, more: [(&str, AttributeValue); N]) -> Attributes {
    all.extend(attributes(more));
    all
}

/// Name, version, number of outputs and attributes of an operator.
type Model = (&'static str, i64, usize, Attributes);

/// Trees and machines with attributes that make sense.
fn ensembles() -> Vec<Model> {
    let words = || AttributeValue::Strings(["a", "b"].map(ByteString::from).to_vec());
    let votes: &[&[(i64, f32)]] = &[&[(0, 0.5), (1, 0.25)], &[(0, 0.5)]];
    let machine = attributes([
        ("classlabels_ints", ints(&[3, 4])),
        ("vectors_per_class", ints(&[1, 1])),
        ("support_vectors", floats(&[1.0, 2.0, -1.0, -2.0])),
        ("coefficients", floats(&[0.5, -0.5])),
        ("rho", floats(&[0.25])),
        ("prob_a", floats(&[-1.0])),
        ("prob_b", floats(&[0.5])),
        ("kernel_type", text("RBF")),
        ("kernel_params", floats(&[0.5, 0.0, 2.0])),
    ]);
    vec![
        (
            "TreeEnsembleClassifier",
            3,
            2,
            with(
                stumps(votes, "class"),
                [("classlabels_strings", words()), ("base_values", floats(&[0.5, 0.25]))],
            ),
        ),
        ("TreeEnsembleRegressor", 3, 1, with(stumps(votes, "target"), [("n_targets", int(2))])),
        ("TreeEnsemble", 5, 1, super::tree_ensemble::tests::ensemble()),
        ("SVMClassifier", 1, 2, machine),
        (
            "SVMRegressor",
            1,
            1,
            attributes([
                ("n_supports", int(1)),
                ("support_vectors", floats(&[1.0, 0.0])),
                ("coefficients", floats(&[0.5])),
                ("rho", floats(&[0.5])),
            ]),
        ),
    ]
}

/// Other operators with attributes that make sense.
fn others() -> Vec<Model> {
    let words = || AttributeValue::Strings(["a", "b"].map(ByteString::from).to_vec());
    vec![
        (
            "LinearClassifier",
            1,
            2,
            attributes([
                ("coefficients", floats(&[1.0, -1.0, 0.5, 2.0])),
                ("intercepts", floats(&[0.25, 1.0])),
                ("classlabels_strings", words()),
            ]),
        ),
        (
            "LinearRegressor",
            1,
            1,
            attributes([
                ("targets", int(2)),
                ("coefficients", floats(&[1.0, 2.0, 0.0, -1.0])),
                ("intercepts", floats(&[0.5, 1.0])),
            ]),
        ),
        (
            "Scaler",
            1,
            1,
            attributes([("offset", floats(&[1.0, 2.0])), ("scale", floats(&[1.0, 2.0]))]),
        ),
        (
            "Imputer",
            1,
            1,
            attributes([
                ("imputed_value_floats", floats(&[8.0, 9.0])),
                ("replaced_value_float", AttributeValue::Float(1.0)),
            ]),
        ),
        (
            "LabelEncoder",
            4,
            1,
            attributes([("keys_floats", floats(&[1.5, 2.0])), ("values_strings", words())]),
        ),
        ("OneHotEncoder", 1, 1, attributes([("cats_int64s", ints(&[0, 1])), ("zeros", int(1))])),
        ("FeatureVectorizer", 1, 1, attributes([("inputdimensions", ints(&[2]))])),
    ]
}

#[test]
fn attributes_without_sense_do_no_harm() {
    let x = tensor(&[3, 2], &[0.0_f32, 1.0, f32::NAN, 2.0, -1.0, f32::INFINITY]);
    let fact = Fact::fixed(DataType::Fp32, &[3, 2]);
    let mut refused = 0;
    for (name, version, outputs, plain) in ensembles().into_iter().chain(others()) {
        let full = format!("ai.onnx.ml:{name}");
        let operator = parse(&full, version, &plain, 1, outputs).unwrap();
        operator.reference(OperatorInputs::new(&[Some(&x)])).unwrap();
        let mut dice = Dice(u64::try_from(name.len()).unwrap());
        for _ in 0..400 {
            let mut changed = plain.clone();
            for _ in 0..=dice.below(3) {
                if !changed.is_empty() {
                    change(&mut dice, &mut changed);
                }
            }
            let answer = catch_unwind(AssertUnwindSafe(|| {
                let operator = parse(&full, version, &changed, 1, outputs).ok()?;
                operator.infer(OperatorInputs::new(&[Some(&fact)])).ok()?;
                operator.reference(OperatorInputs::new(&[Some(&x)])).ok()
            }));
            let answer = answer.unwrap_or_else(|_| panic!("{name} panicked with {changed:?}"));
            refused += usize::from(answer.is_none());
        }
    }
    assert!(refused > 1000, "{refused} were refused");
}
