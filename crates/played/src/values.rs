//! Tensors as values of the doubles of Core ML, and back.

use galatea_doubles::objc::core_ml::{PlayedFailure, PlayedTensor, PlayedValue};
use galatea_tensor::{ByteString, DataType, Tensor};

/// Numbers of `MLFeatureType`.
pub(crate) const WHOLE: isize = 1;
pub(crate) const REAL: isize = 2;
pub(crate) const TEXT: isize = 3;

/// Number of `MLMultiArrayDataType`, and the type that it stands for.
struct ArrayTypeNumber {
    number: isize,
    dtype: DataType,
}

/// The types of elements that both sides have.
const TYPES: [ArrayTypeNumber; 5] = [
    ArrayTypeNumber { number: 0x1_0010, dtype: DataType::Fp16 },
    ArrayTypeNumber { number: 0x1_0020, dtype: DataType::Fp32 },
    ArrayTypeNumber { number: 0x1_0040, dtype: DataType::Fp64 },
    ArrayTypeNumber { number: 0x2_0020, dtype: DataType::Int32 },
    ArrayTypeNumber { number: 0x2_0008, dtype: DataType::Int8 },
];

fn wrong(error: impl std::fmt::Display) -> PlayedFailure {
    PlayedFailure::error(1, &error.to_string())
}

/// Returns the number of a type of elements.
///
/// # Errors
/// Fails for a type that arrays of Core ML do not have.
pub(crate) fn number(dtype: DataType) -> Result<isize, PlayedFailure> {
    let row = TYPES.iter().find(|row| row.dtype == dtype);
    row.map(|row| row.number).ok_or_else(|| wrong(format!("there are no arrays of {dtype}")))
}

/// Makes an array of a tensor.
pub(crate) fn played(tensor: &Tensor) -> Result<PlayedTensor, PlayedFailure> {
    let all = tensor.contiguous().map_err(wrong)?;
    Ok(PlayedTensor {
        data_type: number(tensor.dtype())?,
        shape: tensor.shape().to_vec(),
        bytes: all.unaligned_bytes().map_err(wrong)?.to_vec(),
    })
}

/// Makes a tensor of an array.
pub(crate) fn tensor(of: &PlayedTensor) -> Result<Tensor, PlayedFailure> {
    let row = TYPES.iter().find(|row| row.number == of.data_type);
    let row = row.ok_or_else(|| wrong(format!("arrays of type {} are unknown", of.data_type)))?;
    Tensor::from_bytes(row.dtype, &of.shape, &of.bytes).map_err(wrong)
}

/// Makes a tensor of a value that is given to a model; `None` for one that has none.
pub(crate) fn given(value: &PlayedValue) -> Result<Option<Tensor>, PlayedFailure> {
    match value {
        PlayedValue::Tensor(array) => tensor(array).map(Some),
        PlayedValue::Whole(whole) => Ok(Some(Tensor::scalar(*whole))),
        PlayedValue::Real(real) => Ok(Some(Tensor::scalar(*real))),
        PlayedValue::Undefined => Ok(None),
        other => Err(wrong(format!("{other:?} is given, which nobody plays"))),
    }
}

/// Makes a value of an output of this kind, a number of `MLFeatureType`; `None` for arrays.
pub(crate) fn output(tensor: &Tensor, plain: Option<isize>) -> Result<PlayedValue, PlayedFailure> {
    let empty = || wrong("an output without an element");
    match plain {
        None => Ok(PlayedValue::Tensor(played(tensor)?)),
        Some(WHOLE) => {
            let all = tensor.to_vec::<i64>().map_err(wrong)?;
            all.first().map(|whole| PlayedValue::Whole(*whole)).ok_or_else(empty)
        }
        Some(REAL) => {
            let all = tensor.to_vec::<f64>().map_err(wrong)?;
            all.first().map(|real| PlayedValue::Real(*real)).ok_or_else(empty)
        }
        Some(_) => {
            let all = tensor.to_vec::<ByteString>().map_err(wrong)?;
            let text = all.first().ok_or_else(empty)?;
            Ok(PlayedValue::Text(String::from_utf8_lossy(text.as_bytes()).into_owned()))
        }
    }
}
