//! Inputs that do not fit: those of a case, one of them changed.

use galatea_graph::Datum;
use galatea_tensor::{ByteString, DataType, Tensor, bf16, f16};

/// A change of one tensor; `None` where it makes no sense.
type TensorMutation = fn(&Tensor) -> Option<Tensor>;

const MUTATIONS: &[TensorMutation] = &[
    |tensor| tensor.reshape(&[tensor.elements()]).ok(),
    |tensor| tensor.reshape(&[&[1], tensor.shape()].concat()).ok(),
    |tensor| tensor.slice_axis(0, 0, 0, 1).ok(),
    |tensor| tensor.slice_axis(tensor.rank().checked_sub(1)?, 0, 0, 1).ok(),
    |tensor| tensor.slice_axis(tensor.rank().checked_sub(1)?, 0, 1, 1).ok(),
    |tensor| (tensor.rank() > 0).then(|| tensor.slice_axis(0, 0, 1, 1).ok())?.and_then(drop_axis),
    |tensor| filled(tensor.dtype(), tensor.shape(), -1),
    |tensor| filled(tensor.dtype(), tensor.shape(), i64::MIN),
    |tensor| filled(tensor.dtype(), tensor.shape(), i64::MAX),
    |tensor| filled(tensor.dtype(), tensor.shape(), 1 << 40),
    not_a_number,
    |tensor| Tensor::zeros(DataType::Fp32, tensor.shape()).ok(),
    |tensor| Tensor::zeros(DataType::Int64, tensor.shape()).ok(),
    |tensor| Tensor::zeros(DataType::Bool, tensor.shape()).ok(),
    |tensor| Some(Tensor::scalar(ByteString::from("no"))).filter(|_| tensor.rank() < 2),
];

fn drop_axis(tensor: Tensor) -> Option<Tensor> {
    tensor.reshape(&tensor.shape()[1..]).ok()
}

/// A tensor of one number, as far as the type holds it.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "any number will do"
)]
fn filled(dtype: DataType, shape: &[usize], value: i64) -> Option<Tensor> {
    let n = shape.iter().product();
    let wide = value as f64;
    match dtype {
        DataType::Int64 => Tensor::from_vec(shape, vec![value; n]),
        DataType::Int32 => Tensor::from_vec(shape, vec![value as i32; n]),
        DataType::Int8 => Tensor::from_vec(shape, vec![value as i8; n]),
        DataType::Uint8 => Tensor::from_vec(shape, vec![value as u8; n]),
        DataType::Fp32 => Tensor::from_vec(shape, vec![wide as f32; n]),
        DataType::Fp64 => Tensor::from_vec(shape, vec![wide; n]),
        DataType::Fp16 => Tensor::from_vec(shape, vec![f16::from_f64(wide); n]),
        DataType::Bf16 => Tensor::from_vec(shape, vec![bf16::from_f64(wide); n]),
        _ => return None,
    }
    .ok()
}

fn not_a_number(tensor: &Tensor) -> Option<Tensor> {
    let n = tensor.elements();
    match tensor.dtype() {
        DataType::Fp32 => Tensor::from_vec(tensor.shape(), vec![f32::NAN; n]).ok(),
        DataType::Fp16 => Tensor::from_vec(tensor.shape(), vec![f16::NAN; n]).ok(),
        _ => None,
    }
}

/// Cases of more elements are left out: the loops behind them take their time.
const MAX_ELEMENTS: usize = 2048;

/// The inputs of a case with one change each.
pub(crate) fn mutants(inputs: &[Datum]) -> Vec<Vec<Datum>> {
    let mut all = Vec::new();
    if inputs.iter().filter_map(Datum::as_tensor).map(Tensor::elements).sum::<usize>()
        > MAX_ELEMENTS
    {
        return all;
    }
    for (at, input) in inputs.iter().enumerate() {
        let Datum::Tensor(tensor) = input else { continue };
        for changed in MUTATIONS.iter().filter_map(|mutation| mutation(tensor)) {
            let mut mutant = inputs.to_vec();
            mutant[at] = Datum::Tensor(changed);
            all.push(mutant);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mutant_differs_in_one_input() {
        let inputs = [Tensor::vector(vec![1_i64, 2]), Tensor::scalar(1.0_f32)];
        let inputs: Vec<Datum> = inputs.into_iter().map(Datum::Tensor).collect();
        let all = mutants(&inputs);
        assert!(all.len() > 12);
        let tensors = |all: &[Datum]| -> Vec<Tensor> {
            all.iter().filter_map(Datum::as_tensor).cloned().collect()
        };
        let old = tensors(&inputs);
        let same = |new: &[Tensor]| new.iter().zip(&old).filter(|(a, b)| a == b).count();
        assert!(all.iter().all(|mutant| same(&tensors(mutant)) >= 1));
    }
}
