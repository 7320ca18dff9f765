//! Properties that every operator of the elementwise, reducing, multiplying and normalising
//! families has, whatever it is given: it answers or refuses, it never panics, and what inference
//! says of the result holds.

use galatea_tensor::{DataType, SmallType, Tensor, with_element};
use proptest::prelude::*;

use super::testing::{attributes, int, ints, parse, run, text};
use super::{activation, cast, logic, math, matrix, normalize, reduce};
use crate::attribute::{AttributeValue, Attributes};
use crate::operator::{OpDef, Operator, OperatorInputs};

const FAMILIES: &[&[OpDef]] =
    &[activation::OPS, cast::OPS, logic::OPS, math::OPS, matrix::OPS, normalize::OPS, reduce::OPS];

fn rows() -> Vec<&'static OpDef> {
    FAMILIES.iter().flat_map(|family| family.iter()).collect()
}

/// Attributes that the operator insists on, and one of those it may have, chosen by `pick`.
fn some_attributes(def: &OpDef, pick: usize) -> Attributes {
    let equations = ["ij,jk->ik", "ij->ji", "...i,...i->...", "ii"];
    let mut all = match def.name {
        "Einsum" => attributes([("equation", text(equations[pick % equations.len()]))]),
        "GroupNormalization" => attributes([("num_groups", int(1 + pick as i64 % 3))]),
        "LRN" => attributes([("size", int(1 + pick as i64 % 4))]),
        "BitShift" => attributes([("direction", text(["LEFT", "RIGHT"][pick % 2]))]),
        "Cast" if def.since < 6 => attributes([("to", text(["FLOAT", "INT64"][pick % 2]))]),
        "Cast" | "BitCast" => attributes([("to", int(1 + pick as i64 % 16))]),
        "TopK" if def.since < 10 => attributes([("k", int(pick as i64 % 3))]),
        _ => Attributes::new(),
    };
    let axis = int(pick as i64 % 7 - 3);
    let axes = ints(&[pick as i64 % 7 - 3]);
    let extra: Option<(&str, AttributeValue)> = match def.name {
        "Softmax" | "LogSoftmax" | "Hardmax" | "ArgMax" | "ArgMin" | "TopK" | "LpNormalization"
        | "LayerNormalization" | "RMSNormalization" => Some(("axis", axis)),
        "MeanVarianceNormalization" => Some(("axes", axes)),
        name if name.starts_with("Reduce") && pick.is_multiple_of(2) => Some(("keepdims", int(0))),
        name if name.starts_with("Reduce") && name != "ReduceSum" && def.since < 18 => {
            Some(("axes", axes))
        }
        "Mod" => Some(("fmod", int(pick as i64 % 2))),
        "Gemm" => Some((["transA", "transB"][pick % 2], int(1))),
        "CumSum" => Some((["exclusive", "reverse"][pick % 2], int(1))),
        _ => None,
    };
    all.extend(
        extra.filter(|_| !pick.is_multiple_of(3)).map(|(name, value)| (name.to_owned(), value)),
    );
    all
}

/// A tensor of any type whose elements are small numbers.
pub(super) fn tensor(dtype: DataType, shape: &[usize], seed: i64) -> Tensor {
    let count = shape.iter().product::<usize>() as i64;
    let numbers: Vec<i64> = (0..count).map(|index| (index * 7 + seed) % 5 - 1).collect();
    let plain = Tensor::from_vec(shape, numbers).unwrap();
    let cast = cast::Cast::plain(dtype);
    let inputs = [Some(&plain)];
    cast.reference(OperatorInputs::new(&inputs)).unwrap().remove(0)
}

fn any_shape() -> impl Strategy<Value = Vec<usize>> {
    // Mostly lengths that fit each other.
    let length = prop_oneof![4 => Just(2_usize), 2 => Just(1_usize), 1 => 0_usize..4];
    prop::collection::vec(length, 0..4)
}

/// Types that operators have in common often enough that something is computed.
fn any_type() -> impl Strategy<Value = DataType> {
    prop_oneof![
        6 => Just(DataType::Fp32),
        3 => Just(DataType::Int64),
        1 => prop::sample::select(DataType::ALL.to_vec()),
        1 => prop::sample::select(SmallType::ALL.map(DataType::Small).to_vec()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn operators_answer_or_refuse_and_inference_agrees(
        row in prop::sample::select(rows()),
        first in any_type(),
        types in prop::collection::vec(prop_oneof![3 => Just(None), 1 => any_type().prop_map(Some)], 8),
        shape in any_shape(),
        shapes in prop::collection::vec(prop_oneof![2 => Just(None), 2 => any_shape().prop_map(Some)], 8),
        count in 0_usize..3,
        pick in 0_usize..1000,
    ) {
        let count = (row.inputs.min + count).min(row.inputs.max).min(8);
        let inputs: Vec<Tensor> = (0..count)
            .map(|index| {
                let dtype = types[index].filter(|_| index > 0).unwrap_or(first);
                let shape = shapes[index].as_ref().filter(|_| index > 0).unwrap_or(&shape);
                tensor(dtype, shape, pick as i64 + index as i64)
            })
            .collect();
        let inputs: Vec<Option<&Tensor>> = inputs.iter().map(Some).collect();
        let all = some_attributes(row, pick);
        // `run` holds inference against the result.
        let Err(error) = run(row.name, row.since, &all, &inputs, row.outputs.min) else {
            return Ok(());
        };
        // A refusal is a good answer, but both must refuse.
        if let Ok(operator) = parse(row.name, row.since, &all, count, row.outputs.min) {
            prop_assert!(operator.reference(OperatorInputs::new(&inputs)).is_err(), "only inference: {error}");
        }
    }

    #[test]
    fn elementwise_operators_compute_every_pair_of_shapes_that_broadcast(
        dims in prop::collection::vec((0_usize..4, any::<bool>(), any::<bool>()), 0..4),
        left in 0_usize..4,
        right in 0_usize..4,
        name in prop::sample::select(vec!["Add", "Sub", "Mul", "Min", "Equal", "Less", "Pow"]),
        dtype in prop::sample::select(vec![DataType::Fp32, DataType::Fp16, DataType::Int32]),
    ) {
        let side = |one: fn(&(usize, bool, bool)) -> bool, drop: usize| -> Vec<usize> {
            // Leading axes may be missing where their length is 1.
            let all: Vec<usize> = dims.iter().map(|dim| if one(dim) { 1 } else { dim.0 }).collect();
            let droppable = all.iter().take_while(|len| **len == 1).count();
            all[drop.min(droppable)..].to_vec()
        };
        let a = tensor(dtype, &side(|dim| dim.1, left), 1);
        let b = tensor(dtype, &side(|dim| dim.2, right), 2);
        let found = run(name, 13, &Attributes::new(), &[Some(&a), Some(&b)], 1);
        let found = found.map_err(TestCaseError::fail)?.remove(0);
        let expected = galatea_tensor::broadcast_shapes(a.shape(), b.shape()).unwrap();
        prop_assert_eq!(found.shape(), &expected[..]);
    }

    #[test]
    fn views_give_what_their_copies_give(
        row in prop::sample::select(rows()),
        dtype in any_type(),
        pick in 0_usize..1000,
    ) {
        let stored = tensor(dtype, &[3, 2], pick as i64);
        let view = stored.permute(&[1, 0]).unwrap();
        let copy = with_element!(dtype, T => {
            Tensor::from_vec(view.shape(), view.to_vec::<T>().unwrap()).unwrap()
        });
        let all = some_attributes(row, pick);
        let many = |one: &Tensor| vec![one.clone(); row.inputs.min.max(1)];
        let views = many(&view);
        let copies = many(&copy);
        let of = |inputs: &[Tensor]| {
            let inputs: Vec<Option<&Tensor>> = inputs.iter().map(Some).collect();
            run(row.name, row.since, &all, &inputs, row.outputs.min)
        };
        // Compared as text, in which a NaN equals a NaN.
        prop_assert_eq!(format!("{:?}", of(&views)), format!("{:?}", of(&copies)));
    }
}

#[test]
fn every_row_can_be_parsed_and_computes_something() {
    // The random inputs above are worth something only if operators often accept them.
    let accepts = |row: &&OpDef| {
        (0..60).any(|pick| {
            let all = some_attributes(row, pick);
            let shapes: [&[usize]; 6] = [&[1, 2, 2, 2], &[2, 2], &[2], &[1], &[], &[2, 2, 2]];
            let types = [DataType::Fp32, DataType::Int64, DataType::Bool, DataType::Uint8];
            types.into_iter().any(|dtype| {
                shapes.into_iter().any(|rest| {
                    shapes.into_iter().any(|shape| {
                        [dtype, DataType::Int64, DataType::Fp32].into_iter().any(|other| {
                            let inputs: Vec<Tensor> = (0..row.inputs.min)
                                .map(|at| match at {
                                    0 => tensor(dtype, shape, 1),
                                    // Few operators mix three types; those have tests of theirs.
                                    _ => tensor(other, rest, 1),
                                })
                                .collect();
                            let inputs: Vec<_> = inputs.iter().map(Some).collect();
                            run(row.name, row.since, &all, &inputs, row.outputs.min).is_ok()
                        })
                    })
                })
            })
        })
    };
    let mixed = ["QLinearMatMul", "Where"];
    let deaf: Vec<_> = rows()
        .into_iter()
        .filter(|row| !mixed.contains(&row.name) && !accepts(row))
        .map(|row| (row.name, row.since))
        .collect();
    assert!(deaf.is_empty(), "{deaf:?}");
}
