//! Comparison of whether two executables gave the same results.

use galatea_graph::{Datum, converted};
use galatea_tensor::{DataType, Tensor, bf16, f16};

/// The most that FP16 may be off: the length of the difference, of that of the whole. A model of a hundred
/// layers loses about a hundredth; what an engine gets wrong is off by more than all of it.
pub(crate) const MAX_DIFFERENCE: f64 = 0.05;

/// The largest number of FP16: beyond it, results are infinite there.
const LARGEST: f64 = 65_504.0;

/// Returns whether results are what FP16 makes of the expected ones: the length of their difference is at most `limit`
/// of that of the whole.
pub(crate) fn agree(found: &[Datum], expected: &[Datum], limit: f64) -> Result<(), String> {
    if found.len() != expected.len() {
        return Err(format!("{} outputs, expected {}", found.len(), expected.len()));
    }
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        let (Datum::Tensor(found), Datum::Tensor(expected)) = (found, expected) else {
            return Err(format!("output {at} is no tensor"));
        };
        tensors_agree(found, expected, limit).map_err(|text| format!("output {at}: {text}"))?;
    }
    Ok(())
}

pub(super) fn tensors_agree(found: &Tensor, expected: &Tensor, limit: f64) -> Result<(), String> {
    if (found.dtype(), found.shape()) != (expected.dtype(), expected.shape()) {
        let shown = |tensor: &Tensor| {
            format!("{} of shape {:?}", tensor.dtype().wire_name(), tensor.shape())
        };
        return Err(format!("{}, expected {}", shown(found), shown(expected)));
    }
    let numbers = |tensor: &Tensor| -> Result<Vec<f64>, String> {
        let tensor = converted(tensor, DataType::Fp64).map_err(|error| error.to_string())?;
        tensor.to_vec().map_err(|error| error.to_string())
    };
    let found = numbers(found)?;
    let wanted = numbers(expected)?;
    if !expected.dtype().is_float() {
        // Where two scores are nearly the same, FP16 may place the other one first.
        let other = found.iter().zip(&wanted).filter(|(a, b)| a != b).count();
        return match other <= 1 + wanted.len() / 50 {
            true => Ok(()),
            false => Err(format!("{other} of {} integers are others", wanted.len())),
        };
    }
    let mut distance = 0.0;
    let mut length = 0.0;
    for (at, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
        if wanted.is_nan() || wanted.abs() > LARGEST {
            continue;
        }
        if !found.is_finite() {
            return Err(format!("element {at} is {found}, expected {wanted}"));
        }
        distance += (found - wanted) * (found - wanted);
        length += wanted * wanted;
    }
    // What is as small as FP16's steps near zero is nothing.
    #[allow(clippy::cast_precision_loss, reason = "a count of elements")]
    let nothing = wanted.len() as f64 * 1e-6;
    match distance <= limit * limit * length + nothing {
        true => Ok(()),
        false => {
            let share = (distance / length).sqrt();
            Err(format!("it is off by {share:.3} of its length, at most {limit} is allowed"))
        }
    }
}

/// Returns whether an element is no number, or infinite, where the expected one is not.
fn is_lost(found: f64, expected: f64) -> bool {
    !found.is_finite() && expected.is_finite() || found.is_nan() && !expected.is_nan()
}

/// Says which output has elements that are no finite numbers where the expected ones are; an error that counts them.
///
/// # Errors
/// Names the first such output by its place.
pub(crate) fn none_lost(found: &[Datum], expected: &[Datum]) -> Result<(), String> {
    let wide = |datum: &Datum| -> Option<Vec<f64>> {
        let tensor = datum.as_tensor().filter(|tensor| tensor.dtype().is_float())?;
        converted(tensor, DataType::Fp64).ok()?.to_vec().ok()
    };
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        if finite(found) {
            continue;
        }
        let (Some(found), Some(expected)) = (wide(found), wide(expected)) else { continue };
        let both = || found.iter().zip(&expected);
        let lost = both().filter(|(found, expected)| is_lost(**found, **expected)).count();
        if lost > 0 {
            let all = found.len();
            return Err(format!(
                "output {at}: {lost} of {all} elements are no finite numbers where FP32 has some"
            ));
        }
    }
    Ok(())
}

/// Returns whether all elements that are floats are finite numbers.
fn finite(datum: &Datum) -> bool {
    fn each<T: Copy>(all: Option<Vec<T>>, finite: impl Fn(T) -> bool) -> bool {
        all.is_none_or(|all| all.into_iter().all(finite))
    }
    let Some(tensor) = datum.as_tensor() else { return true };
    match tensor.dtype() {
        DataType::Fp32 => match tensor.as_slice::<f32>() {
            Ok(all) => all.iter().all(|value| value.is_finite()),
            Err(_) => each(tensor.to_vec().ok(), f32::is_finite),
        },
        DataType::Fp64 => each(tensor.to_vec().ok(), f64::is_finite),
        DataType::Fp16 => each(tensor.to_vec().ok(), f16::is_finite),
        DataType::Bf16 => each(tensor.to_vec().ok(), bf16::is_finite),
        _ => true,
    }
}

/// Returns whether all floats of results are finite numbers.
pub(crate) fn all_finite(outputs: &[Datum]) -> bool {
    outputs.iter().all(finite)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outputs(all: &[f32]) -> Vec<Datum> {
        vec![Datum::Tensor(Tensor::vector(all.to_vec()))]
    }

    #[test]
    fn elements_that_are_no_numbers_are_counted_unless_fp32_has_none_either() {
        let lost = |found: &[f32], expected: &[f32]| none_lost(&outputs(found), &outputs(expected));
        let nan = f32::NAN;
        let inf = f32::INFINITY;
        assert!(lost(&[1.0, nan, inf, -inf], &[2.0, nan, inf, -inf]).is_ok());
        for (found, expected) in [(nan, 1.0), (inf, 1e9), (-inf, 0.0), (nan, inf), (nan, -inf)] {
            let text = lost(&[0.0, found], &[0.0, expected]).unwrap_err();
            assert!(text.contains("output 0: 1 of 2 elements"), "{text}");
        }
        assert!(all_finite(&outputs(&[1.0])) && !all_finite(&outputs(&[nan])));
        let halves = Tensor::vector(vec![f16::INFINITY]);
        assert!(!all_finite(&[Datum::Tensor(halves)]));
        assert!(all_finite(&[Datum::Tensor(Tensor::vector(vec![1_i64]))]));
    }
}
