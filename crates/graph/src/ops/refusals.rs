//! Operators that need inputs which fit each other answer or refuse, whatever they are given: a
//! model or a request may say anything, and nothing may panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

use galatea_tensor::{DataType, Tensor};

use super::properties::tensor;
use super::testing::{int, ints, parse, run, text};
use super::{
    contrib, convolution, loss, ml, pooling, random, shape, signal, training, transformer, vision,
};
use crate::attribute::{AttributeValue, Attributes};
use crate::operator::{OpDef, OperatorInputs};

const FAMILIES: &[&[OpDef]] = &[
    contrib::OPS,
    convolution::OPS,
    loss::OPS,
    ml::OPS,
    pooling::OPS,
    random::OPS,
    shape::OPS,
    signal::OPS,
    training::OPS,
    transformer::OPS,
    vision::OPS,
];

fn rows() -> Vec<&'static OpDef> {
    FAMILIES.iter().flat_map(|family| family.iter()).collect()
}

/// Attributes that the operator insists on, and some of those it may have, chosen by `pick`.
fn some_attributes(def: &OpDef, pick: usize) -> Attributes {
    let small = pick as i64 % 3;
    let heads = int(1 + small);
    let required: Vec<(&str, AttributeValue)> = match def.name {
        "RandomNormal" | "RandomUniform" => vec![("shape", ints(&[small, 2]))],
        "LinearAttention" => vec![("q_num_heads", int(2)), ("kv_num_heads", heads)],
        "Attention" | "MultiHeadAttention" if def.domain == "com.microsoft" => {
            vec![("num_heads", heads), ("unidirectional", int(small % 2))]
        }
        "Attention" if pick.is_multiple_of(2) => {
            vec![("q_num_heads", int(2)), ("kv_num_heads", heads), ("is_causal", int(small % 2))]
        }
        "GroupQueryAttention" => vec![
            ("num_heads", int(2)),
            ("kv_num_heads", heads),
            ("do_rotary", int(small % 2)),
            ("local_window_size", int(small)),
        ],
        "RotaryEmbedding" if small > 0 => vec![("num_heads", heads)],
        "MatMulNBits" => vec![("K", int(2)), ("N", int(small)), ("block_size", int(16))],
        "GatherBlockQuantized" => {
            vec![("block_size", int(small)), ("quantize_axis", int(small - 1))]
        }
        "QLinearSoftmax" => vec![("opset", int(12 + small))],
        "QLinearConcat" | "Concat" => vec![("axis", int(small - 1))],
        "MaxRoiPool" => vec![("pooled_shape", ints(&[2, small]))],
        "RoiAlign" => vec![("output_height", int(small)), ("mode", text(["avg", "max"][pick % 2]))],
        "Momentum" => {
            vec![("alpha", AttributeValue::Float(0.5)), ("beta", AttributeValue::Float(0.5))]
        }
        "DFT" => vec![("inverse", int(small % 2)), ("onesided", int(pick as i64 % 2))],
        "GridSample" if small > 0 => {
            vec![("padding_mode", text(["border", "reflection"][pick % 2]))]
        }
        "DepthToSpace" | "SpaceToDepth" => vec![("blocksize", int(small))],
        "Reshape" if def.since == 1 => vec![("shape", ints(&[small, -1]))],
        "Upsample" => vec![("scales", AttributeValue::Floats(vec![1.5, 2.0]))],
        "LinearRegressor" | "LinearClassifier" | "SVMRegressor" | "SVMClassifier" => {
            let floats = |all: &[f32]| AttributeValue::Floats(all[..2 - pick % 2].to_vec());
            let mut all = vec![("coefficients", floats(&[0.5, -1.0]))];
            if def.name.starts_with("SVM") {
                all.push(("rho", floats(&[0.5, 1.0])));
            }
            if def.name.ends_with("Classifier") {
                all.push(("classlabels_ints", ints(&[3, 4, 5][..1 + pick % 3])));
            }
            all
        }
        "OneHotEncoder" => vec![("cats_int64s", ints(&[0, 1])), ("zeros", int(small))],
        "Imputer" => vec![("imputed_value_int64s", ints(&[7, 8][..1 + pick % 2]))],
        "LabelEncoder" if def.since > 1 => {
            vec![("keys_int64s", ints(&[0, 1])), ("values_int64s", ints(&[small, 4]))]
        }
        name if name.contains("Pool") && !name.contains("Global") || name == "MaxUnpool" => {
            vec![("kernel_shape", ints(&[2, 1 + small][..1 + pick % 2]))]
        }
        _ => Vec::new(),
    };
    required.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % n
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// Shapes that often fit each other, and some that fit little.
const SHAPES: &[&[usize]] = &[
    &[2],
    &[2, 2],
    &[2, 2, 2],
    &[1, 2, 2],
    &[2, 2, 2, 2],
    &[1, 2, 2, 2],
    &[1, 1, 2, 2],
    &[2, 2, 2, 2, 2],
    &[1],
    &[],
    &[2, 4],
    &[1, 4],
    &[2, 1],
    &[3],
    &[0],
    &[2, 0],
    &[1, 2, 0, 2],
    &[1, 3, 2],
];

const TYPES: &[DataType] = &[
    DataType::Fp32,
    DataType::Fp32,
    DataType::Fp32,
    DataType::Int64,
    DataType::Int32,
    DataType::Uint8,
    DataType::Int8,
    DataType::Bool,
    DataType::Fp16,
    DataType::Bytes,
];

/// Returns a description of the fault in the answer to random inputs, if there is one.
fn trial(row: &OpDef, dice: &mut Dice) -> Option<String> {
    let count = (row.inputs.min + dice.below(6)).min(row.inputs.max).min(12);
    let shape = *dice.pick(SHAPES);
    let dtype = *dice.pick(TYPES);
    let pick = dice.below(1000);
    let mut input = |index: usize| {
        if index > 0 && dice.below(10) == 0 {
            return None;
        }
        let shape = if dice.below(2) == 0 { shape } else { dice.pick(SHAPES) };
        let dtype = if index == 0 || dice.below(2) == 0 { dtype } else { *dice.pick(TYPES) };
        Some(tensor(dtype, shape, (pick + index) as i64))
    };
    let inputs: Vec<Option<Tensor>> = (0..count).map(&mut input).collect();
    let inputs: Vec<Option<&Tensor>> = inputs.iter().map(Option::as_ref).collect();
    let all = some_attributes(row, pick);
    let domain = if row.domain.is_empty() { String::new() } else { format!("{}:", row.domain) };
    let name = format!("{domain}{}", row.name);
    let shown = || format!("{name} {} of {inputs:?} with {all:?}", row.since);
    // `run` holds inference against the result; a refusal is a good answer, but then both must
    // refuse.
    let answer = catch_unwind(AssertUnwindSafe(|| {
        let error = run(&name, row.since, &all, &inputs, row.outputs.min).err()?;
        let operator = parse(&name, row.since, &all, count, row.outputs.min).ok()?;
        let found = operator.reference(OperatorInputs::new(&inputs));
        found.is_ok().then(|| format!("{}: only inference refuses: {error}", shown()))
    }));
    answer.unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().cloned();
        let text = text.or_else(|| payload.downcast_ref::<&str>().map(|&text| text.to_owned()));
        Some(format!("{}: panicked: {}", shown(), text.unwrap_or_default()))
    })
}

#[test]
fn operators_answer_or_refuse() {
    let mut failures = Vec::new();
    for row in rows() {
        let mut dice = Dice(row.since.cast_unsigned());
        failures.extend((0..300).find_map(|_| trial(row, &mut dice)));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}
