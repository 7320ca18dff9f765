//! Facts that rows say, held against the reference evaluation on small inputs.

use galatea_tensor::{DataType, Tensor};

use super::*;
use crate::attribute::{AttributeValue, Attributes};
use crate::operator::OperatorInputs;
use crate::ops::{all, parse};
use crate::{DataMovement, ONNX_DOMAIN, converted};

/// Rows of the samples, and elements of a row.
const ROWS: usize = 4;
const WIDTH: usize = 6;

/// Types that samples are tried in.
const TYPES: [DataType; 5] =
    [DataType::Fp32, DataType::Int64, DataType::Uint8, DataType::Bool, DataType::Int8];

/// Operators whose samples need another first input than the others.
const SELECTED_BY_FIRST: &[&str] = &["Where"];

/// Returns the attributes without which an operator is refused.
fn needed(def: &OpDef) -> Attributes {
    let list: &[(&str, AttributeValue)] = match def.name {
        "Cast" if def.since < 6 => &[("to", AttributeValue::String("FLOAT".into()))],
        "Cast" => &[("to", AttributeValue::Int(1))],
        "BitShift" => &[("direction", AttributeValue::String("LEFT".into()))],
        "Mod" => &[("fmod", AttributeValue::Int(1))],
        "ScaledTanh" | "ParametricSoftplus" => {
            &[("alpha", AttributeValue::Float(2.0)), ("beta", AttributeValue::Float(0.5))]
        }
        _ => &[],
    };
    list.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

/// Numbers from 0 up, one of which is negative or not a half, in a type.
fn numbers(dtype: DataType, seed: usize) -> Tensor {
    let number = |at: usize| ((at * 7 + seed * 3) % 11) as f32 * 0.5 - 1.0;
    let floats: Vec<f32> = (0..ROWS * WIDTH).map(number).collect();
    let floats = Tensor::from_vec(&[ROWS, WIDTH], floats).unwrap();
    let whole = match dtype {
        DataType::Uint8 | DataType::Bool => {
            let small = (0..ROWS * WIDTH).map(|at| ((at + seed) % 3) as f32).collect();
            Tensor::from_vec(&[ROWS, WIDTH], small).unwrap()
        }
        _ => floats,
    };
    converted(&whole, dtype).unwrap()
}

/// Runs an operator; `None` where it refuses.
fn run(def: &OpDef, inputs: &[Tensor]) -> Option<Tensor> {
    let attributes = needed(def);
    let operator =
        parse(def.domain, def.name, Some(def.since.max(1)), &attributes, inputs.len(), 1).ok()?;
    let given: Vec<Option<&Tensor>> = inputs.iter().map(Some).collect();
    operator.reference(OperatorInputs::new(&given)).ok()?.into_iter().next()
}

/// Inputs that an operator takes; `None` where no sample is.
fn sample(def: &OpDef) -> Option<Vec<Tensor>> {
    let count = match def.traits.elementwise {
        Some(ElementwiseInputs::First) => 1,
        _ => def.inputs.min.max(2).min(def.inputs.max),
    };
    let count = if def.name == "CastLike" { 2 } else { count };
    TYPES.into_iter().find_map(|dtype| {
        let mut inputs: Vec<Tensor> = (0..count).map(|at| numbers(dtype, at)).collect();
        if SELECTED_BY_FIRST.contains(&def.name) {
            inputs[0] = numbers(DataType::Bool, 0);
        }
        if def.name == "PRelu" && def.since < 7 {
            // One slope for each channel.
            let slopes = (0..WIDTH).map(|at| at as f32).collect();
            inputs[1] = Tensor::from_vec(&[WIDTH], slopes).unwrap();
        }
        run(def, &inputs).is_some().then_some(inputs)
    })
}

/// The same rows in the opposite order; a vector is a parameter and stays.
fn turned(tensor: &Tensor) -> Tensor {
    if tensor.rank() == 1 {
        return tensor.clone();
    }
    let rows: Vec<Tensor> = (0..ROWS).rev().map(|row| rows_of(tensor, row, row + 1)).collect();
    joined(&rows)
}

fn rows_of(tensor: &Tensor, from: usize, to: usize) -> Tensor {
    let row = tensor.as_bytes().unwrap().len() / tensor.shape()[0];
    let mut shape = tensor.shape().to_vec();
    shape[0] = to - from;
    let bytes = &tensor.as_bytes().unwrap()[from * row..to * row];
    Tensor::from_bytes(tensor.dtype(), &shape, bytes).unwrap()
}

fn joined(rows: &[Tensor]) -> Tensor {
    let mut bytes = Vec::new();
    for row in rows {
        bytes.extend_from_slice(row.as_bytes().unwrap());
    }
    let mut shape = rows[0].shape().to_vec();
    shape[0] = rows.iter().map(|row| row.shape()[0]).sum();
    Tensor::from_bytes(rows[0].dtype(), &shape, &bytes).unwrap()
}

fn same(a: &Tensor, b: &Tensor) -> bool {
    a.shape() == b.shape() && a.as_bytes().unwrap() == b.as_bytes().unwrap()
}

#[test]
fn element_wise_operators_follow_their_elements() {
    let mut checked = 0;
    for def in all().filter(|def| def.traits.elementwise.is_some()) {
        let inputs = sample(def).unwrap_or_else(|| panic!("{} takes no sample", def.name));
        let found = run(def, &inputs).unwrap();
        assert_eq!(found.shape(), inputs[0].shape(), "{}", def.name);
        let others: Vec<Tensor> = inputs.iter().map(turned).collect();
        let other = run(def, &others).unwrap();
        assert!(same(&turned(&found), &other), "{} mixes elements", def.name);
        checked += 1;
    }
    assert!(checked > 80, "{checked}");
}

#[test]
fn element_wise_operators_keep_rows_apart() {
    for def in all().filter(|def| def.traits.elementwise.is_some()) {
        assert_eq!(def.traits.rows, RowIndependence::Apart, "{}", def.name);
    }
}

#[test]
fn rows_of_unary_operators_that_keep_them_apart_do_not_know_each_other() {
    let unary = |def: &&OpDef| def.traits.rows == RowIndependence::Apart && def.inputs.min == 1;
    let mut checked = 0;
    for def in all().filter(unary) {
        let Some(inputs) = sample_of_one(def) else { continue };
        let Some(whole) = run(def, &inputs) else { continue };
        // Without its first axis a result is not divided by rows.
        if whole.shape().first() != Some(&ROWS) {
            continue;
        }
        // Of two rows each: some operators treat an axis of length 1 in another way.
        let parts: Vec<Tensor> = (0..ROWS)
            .step_by(2)
            .map(|row| run(def, &[rows_of(&inputs[0], row, row + 2)]).unwrap())
            .collect();
        assert!(same(&whole, &joined(&parts)), "{} mixes rows", def.name);
        checked += 1;
    }
    assert!(checked > 40, "{checked}");
}

/// One input that an operator takes alone.
fn sample_of_one(def: &OpDef) -> Option<Vec<Tensor>> {
    TYPES.into_iter().map(|dtype| vec![numbers(dtype, 0)]).find(|one| run(def, one).is_some())
}

#[test]
fn operators_that_move_elements_give_those_of_their_first_input() {
    let bits = |tensor: &Tensor| -> Vec<u32> {
        tensor.to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
    };
    let indices = Tensor::from_vec(&[2], vec![1_i64, 0]).unwrap();
    let ends = Tensor::from_vec(&[2], vec![3_i64, 4]).unwrap();
    let square = Tensor::from_vec(&[2, 1], vec![1_i64, 0]).unwrap();
    let mut checked = 0;
    for def in all().filter(|def| def.traits.moves_first_input() && def.domain == ONNX_DOMAIN) {
        let mut x = numbers(DataType::Fp32, 0).to_vec::<f32>().unwrap();
        x[5] = f32::from_bits(0x7fc0_1234);
        let x = Tensor::from_vec(&[ROWS, WIDTH], x).unwrap();
        let samples = [
            vec![x.clone()],
            vec![x.clone(), indices.clone()],
            vec![x.clone(), indices.clone(), ends.clone()],
            vec![x.clone(), square.clone()],
        ];
        let Some(found) = samples.iter().find_map(|inputs| run(def, inputs)) else { continue };
        let known = bits(&x);
        assert!(bits(&found).iter().all(|one| known.contains(one)), "{} computes", def.name);
        let keeps = def.traits.movement == DataMovement::Keeps;
        assert!(!keeps || bits(&found) == known, "{} moves elements", def.name);
        checked += 1;
    }
    assert!(checked > 10, "{checked}");
}

#[test]
fn all_versions_of_an_operator_say_the_same() {
    for def in all() {
        let found = traits(def.domain, def.name);
        assert_eq!(def.traits, found, "{} of version {}", def.name, def.since);
    }
}
