//! Passes over one row of logits, in blocks that compilers turn into vector instructions.

/// Values of a block.
const LANES: usize = 16;

/// Values whose largest one is looked for together: what is read again lies in the nearest cache.
const PEAK: usize = LANES * 64;

/// The largest value, NaN aside; -∞ for an empty row.
pub fn largest(row: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (blocks, rest) = row.as_chunks::<LANES>();
    for block in blocks {
        for (lane, value) in lanes.iter_mut().zip(block) {
            *lane = if *value > *lane { *value } else { *lane };
        }
    }
    let larger = |a: f32, b: &f32| if *b > a { *b } else { a };
    rest.iter().chain(&lanes).fold(f32::NEG_INFINITY, larger)
}

/// The first index of the largest value; `None` where no value is above -∞. The row is read once.
pub fn argmax(row: &[f32]) -> Option<usize> {
    let mut best = (f32::NEG_INFINITY, 0);
    for (p, part) in row.chunks(PEAK).enumerate() {
        let peak = largest(part);
        if peak > best.0 {
            best = (peak, p * PEAK);
        }
    }
    let (peak, start) = best;
    let at = row.get(start..)?.iter().position(|value| *value == peak)?;
    (peak > f32::NEG_INFINITY).then_some(start + at)
}

/// Calls `visit` with the index and value of each value of at least `least`.
pub fn visit_from(row: &[f32], mut least: f32, mut visit: impl FnMut(usize, f32) -> f32) {
    let (blocks, rest) = row.as_chunks::<LANES>();
    for (b, block) in blocks.iter().enumerate() {
        if !block.iter().fold(false, |found, value| found | (*value >= least)) {
            continue;
        }
        for (i, value) in block.iter().enumerate() {
            if *value >= least {
                least = visit(b * LANES + i, *value);
            }
        }
    }
    for (i, value) in rest.iter().enumerate() {
        if *value >= least {
            least = visit(blocks.len() * LANES + i, *value);
        }
    }
}

/// The least power of two that counts; what lies below weighs as much, which is nothing.
const MIN_POWER: f32 = -125.0;

/// Weights below are those of tokens that cannot come.
pub(super) const NO_WEIGHT: f32 = 1e-36;

/// 2^x for x ≤ 0, with a relative error below 5e-6; 2^-125 below -125 and for NaN.
///
/// 2^n · 2^f with f within half of 0 and a polynomial for 2^f (Cody and Waite's reduction).
#[inline(always)]
fn power_of_two(x: f32) -> f32 {
    // Adding it leaves the nearest integer in the lowest bits.
    const ROUND: f32 = 12_582_912.0;
    // Not `f32::max`, which looks for NaN on the other side too.
    let x = if x > MIN_POWER { x } else { MIN_POWER };
    let rounded = x + ROUND;
    let f = x - (rounded - ROUND);
    let square = f * f;
    let low = 1.0 + f * std::f32::consts::LN_2;
    let middle = 0.240_226_5 + f * 0.055_504_11;
    let high = 0.009_618_129 + f * 0.001_333_355_8;
    let power = low + square * (middle + square * high);
    f32::from_bits(power.to_bits().wrapping_add(rounded.to_bits() << 23))
}

/// e^((value - largest) · scale), the weight of a logit.
#[inline(always)]
pub fn weight(value: f32, largest: f32, scale: f32) -> f32 {
    power_of_two((value - largest) * (scale * std::f32::consts::LOG2_E))
}

/// Logits whose weights are added up as one part.
const PART: usize = LANES * 64;

/// The sum of the weights of a row.
pub fn sum_exp(row: &[f32], largest: f32, scale: f32) -> f64 {
    row.chunks(PART).map(|part| sum_part(part, largest, scale)).sum()
}

/// The sum of the weights of a row, and in `sums` those of its parts.
pub fn sum_parts(row: &[f32], largest: f32, scale: f32, sums: &mut Vec<f64>) -> f64 {
    sums.clear();
    sums.extend(row.chunks(PART).map(|part| sum_part(part, largest, scale)));
    sums.iter().sum()
}

fn sum_part(part: &[f32], largest: f32, scale: f32) -> f64 {
    let mut lanes = [0f32; LANES];
    let (blocks, rest) = part.as_chunks::<LANES>();
    for block in blocks {
        for (lane, value) in lanes.iter_mut().zip(block) {
            *lane += weight(*value, largest, scale);
        }
    }
    let rest = rest.iter().map(|value| f64::from(weight(*value, largest, scale)));
    lanes.iter().map(|lane| f64::from(*lane)).chain(rest).sum()
}

/// The index at which the running sum of weights passes `target`, by the `sums` of
/// [`sum_parts`]; the last index with a weight where rounding keeps the sum below.
pub fn index_at_sum(
    row: &[f32],
    sums: &[f64],
    largest: f32,
    scale: f32,
    mut target: f64,
) -> Option<usize> {
    let mut last = None;
    for (p, (values, sum)) in row.chunks(PART).zip(sums).enumerate() {
        if *sum > f64::from(NO_WEIGHT) * PART as f64 {
            last = Some((p, values));
            if target < *sum {
                break;
            }
        }
        target -= sum;
    }
    let (p, values) = last?;
    index_inside(values, largest, scale, target).map(|i| p * PART + i)
}

fn index_inside(values: &[f32], largest: f32, scale: f32, target: f64) -> Option<usize> {
    let mut sum = 0.0;
    let mut last = None;
    for (i, value) in values.iter().enumerate() {
        let weight = weight(*value, largest, scale);
        if weight > NO_WEIGHT {
            sum += f64::from(weight);
            last = Some(i);
            if target < sum {
                break;
            }
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn powers_are_exact_to_five_digits() {
        for i in 0..=1_250_000 {
            let x = -(i as f32) / 10_000.0;
            let expected = f64::from(x).exp2();
            let error = (f64::from(power_of_two(x)) - expected).abs() / expected;
            assert!(error < 5e-6, "{x}: {error}");
        }
        assert_eq!(weight(3.0, 3.0, 0.5), 1.0);
        for none in [f32::NEG_INFINITY, f32::NAN, -1e30] {
            assert!(weight(none, 0.0, 1.0) < NO_WEIGHT);
        }
    }

    #[test]
    fn the_first_of_equal_values_is_the_largest() {
        let mut row = vec![0.0; 100];
        for (at, value) in [(97, 3.0), (40, 3.0), (41, 3.0), (3, f32::NAN)] {
            row[at] = value;
        }
        assert_eq!(argmax(&row), Some(40));
        assert_eq!(argmax(&[]), None);
        assert_eq!(argmax(&[f32::NEG_INFINITY; 40]), None);
        assert_eq!(argmax(&[f32::NAN, -1.0]), Some(1));
    }

    proptest! {
        #[test]
        fn passes_do_what_plain_loops_do(row in prop::collection::vec(-40f32..40.0, 1..300)) {
            let max = row.iter().copied().fold(f32::MIN, f32::max);
            prop_assert_eq!(largest(&row), max);
            prop_assert_eq!(argmax(&row), row.iter().position(|v| *v == max));
            let sum: f64 = row.iter().map(|v| f64::from(v - max).exp()).sum();
            prop_assert!((sum_exp(&row, max, 1.0) - sum).abs() < sum * 1e-5);
            let mut seen = Vec::new();
            visit_from(&row, 1.0, |i, _| { seen.push(i); 1.0 });
            let expected: Vec<usize> = (0..row.len()).filter(|i| row[*i] >= 1.0).collect();
            prop_assert_eq!(seen, expected);
            let mut sums = Vec::new();
            prop_assert_eq!(sum_parts(&row, max, 1.0, &mut sums), sum_exp(&row, max, 1.0));
            prop_assert_eq!(index_at_sum(&row, &sums, max, 1.0, 0.0), row.iter().position(|v| weight(*v, max, 1.0) > NO_WEIGHT));
            prop_assert!(index_at_sum(&row, &sums, max, 1.0, 1e30).is_some());
        }
    }
}
