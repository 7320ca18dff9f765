//! Comparison of results with tolerances that have a reason.

use std::fmt;

use half::{bf16, f16};
use num_traits::ToPrimitive;

use crate::dtype::DataType;
use crate::small::SmallType;
use crate::tensor::Tensor;

/// How far a float may be from the expected one. Other types must be equal, unless a distance is
/// given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// Equal values (a NaN equals a NaN).
    Exact,
    /// At most this many representable values of the element type apart.
    Ulp(u32),
    /// At most this distance apart, integers too: for expected values that were rounded.
    Within(f64),
    /// Sums of `terms` products in type `accumulator`: rounding errors of a sum grow like a random
    /// walk, √terms · ε, relative to the largest expected magnitude (the terms of a sum are not
    /// known here, its results are); a factor of 8 covers reordering.
    Accumulated {
        /// How many terms the longest sum has.
        terms: usize,
        /// The type sums are kept in.
        accumulator: DataType,
    },
}

/// The first difference beyond the tolerance, and how many there are.
#[derive(Clone, Debug, PartialEq)]
pub struct Mismatch(String);

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Mismatch {}

/// Distance from 1 to the next larger value of a float type.
fn epsilon(dtype: DataType) -> f64 {
    match dtype {
        DataType::Fp16 => f64::from(f16::EPSILON),
        DataType::Bf16 => f64::from(bf16::EPSILON),
        DataType::Fp64 => f64::EPSILON,
        _ => f64::from(f32::EPSILON),
    }
}

/// Smallest positive normal value of a float type.
fn smallest(dtype: DataType) -> f64 {
    match dtype {
        DataType::Fp16 => f64::from(f16::MIN_POSITIVE),
        DataType::Fp64 => f64::MIN_POSITIVE,
        _ => f64::from(f32::MIN_POSITIVE),
    }
}

/// Compares a result with what was expected.
///
/// # Errors
/// [`Mismatch`] when type, shape or an element differ by more than the tolerance.
pub fn compare(found: &Tensor, expected: &Tensor, tolerance: Tolerance) -> Result<(), Mismatch> {
    if found.dtype() != expected.dtype() || found.shape() != expected.shape() {
        return Err(Mismatch(format!(
            "expected {}{:?}, found {}{:?}",
            expected.dtype(),
            expected.shape(),
            found.dtype(),
            found.shape()
        )));
    }
    let dtype = expected.dtype();
    crate::with_float!(dtype, T => {
        let wide = |tensor: &Tensor| -> Vec<f64> {
            let all = tensor.to_vec::<T>().unwrap_or_default();
            all.iter().map(|v| ToPrimitive::to_f64(v).unwrap_or(f64::NAN)).collect()
        };
        compare_floats(&wide(found), &wide(expected), dtype, tolerance)
    }, else {
        if let DataType::Small(small) = dtype {
            return compare_floats(&small_values(found, small), &small_values(expected, small), dtype, tolerance);
        }
        if found == expected { return Ok(()); }
        if let (Tolerance::Within(_), true) = (tolerance, dtype.is_integer()) {
            return compare_floats(&integers(found), &integers(expected), dtype, tolerance);
        }
        Err(Mismatch(format!("expected {expected:?}, found {found:?}")))
    })
}

/// The elements of a tensor of a small type, which a float holds exactly.
fn small_values(tensor: &Tensor, small: SmallType) -> Vec<f64> {
    let whole = tensor.contiguous().ok();
    let codes = whole.as_ref().and_then(|whole| whole.as_bytes().ok()).unwrap_or_default();
    codes.iter().map(|&code| small.value(code)).collect()
}

/// The elements of an integer tensor; too large ones lose their last digits.
fn integers(tensor: &Tensor) -> Vec<f64> {
    let all = tensor.to_i64_vec().unwrap_or_default();
    all.iter().map(|value| value.to_f64().unwrap_or(f64::NAN)).collect()
}

fn compare_floats(
    found: &[f64],
    expected: &[f64],
    dtype: DataType,
    tolerance: Tolerance,
) -> Result<(), Mismatch> {
    let largest =
        expected.iter().filter(|v| v.is_finite()).fold(0.0_f64, |max, value| max.max(value.abs()));
    let allowed = |value: f64| match tolerance {
        Tolerance::Exact => 0.0,
        Tolerance::Within(distance) => distance,
        Tolerance::Ulp(n) => f64::from(n) * epsilon(dtype) * value.abs().max(smallest(dtype)),
        Tolerance::Accumulated { terms, accumulator } => {
            let terms = terms.max(1).to_f64().unwrap_or(1.0);
            8.0 * terms.sqrt() * epsilon(accumulator) * largest + epsilon(dtype) * value.abs()
        }
    };
    // An infinity is near nothing: what is allowed beside it would be infinite too.
    let near = |a: f64, b: f64| a.is_finite() && b.is_finite() && (a - b).abs() <= allowed(b);
    let same = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan()) || near(a, b);
    let mut wrong = found.iter().zip(expected).enumerate().filter(|(_, (a, b))| !same(**a, **b));
    let Some((index, (a, b))) = wrong.next() else { return Ok(()) };
    let more = wrong.count();
    let apart = |(a, b): (&f64, &f64)| match () {
        () if a == b || a.is_nan() && b.is_nan() => 0.0,
        () if (a - b).is_nan() => f64::INFINITY,
        () => (a - b).abs(),
    };
    let worst = found.iter().zip(expected).map(apart).fold(0.0, f64::max);
    Err(Mismatch(format!(
        "element {index}: expected {b}, found {a}, allowed {:e} ({tolerance:?}); {more} more of {} \
         differ, the largest difference is {worst:e}",
        allowed(*b),
        expected.len(),
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(values: &[f32]) -> Tensor {
        Tensor::vector(values.to_vec())
    }

    #[test]
    fn ulp_allows_neighbours_and_no_more() {
        let one = floats(&[1.0]);
        let near = floats(&[1.0 + f32::EPSILON]);
        assert!(compare(&near, &one, Tolerance::Ulp(1)).is_ok());
        assert!(compare(&near, &one, Tolerance::Exact).is_err());
        assert!(compare(&floats(&[1.0 + 3.0 * f32::EPSILON]), &one, Tolerance::Ulp(2)).is_err());
    }

    #[test]
    fn nan_equals_nan_and_infinity_equals_itself() {
        let odd = floats(&[f32::NAN, f32::INFINITY]);
        assert!(compare(&odd, &odd, Tolerance::Exact).is_ok());
        assert!(compare(&odd, &floats(&[0.0, f32::INFINITY]), Tolerance::Ulp(9)).is_err());
    }

    #[test]
    fn infinities_are_near_nothing_and_no_number_is_the_largest_difference() {
        let sums = Tolerance::Accumulated { terms: 64, accumulator: DataType::Fp32 };
        for tolerance in [Tolerance::Exact, Tolerance::Ulp(8), Tolerance::Within(1.0), sums] {
            let infinite = floats(&[f32::INFINITY, 1.0]);
            for found in [1.0, f32::MAX, f32::NEG_INFINITY, f32::NAN] {
                let found = floats(&[found, 1.0]);
                assert!(compare(&found, &infinite, tolerance).is_err(), "{found:?} {tolerance:?}");
                let back = compare(&infinite, &found, tolerance).unwrap_err().to_string();
                assert!(back.contains("largest difference is inf"), "{back}");
            }
        }
    }

    #[test]
    fn type_shape_and_integers_must_be_equal() {
        assert!(compare(&Tensor::scalar(1_i32), &Tensor::scalar(1_i64), Tolerance::Exact).is_err());
        assert!(
            compare(&Tensor::scalar(1_i32), &Tensor::scalar(2_i32), Tolerance::Ulp(5)).is_err()
        );
        assert!(compare(&floats(&[1.0]), &Tensor::scalar(1.0_f32), Tolerance::Exact).is_err());
    }
}
