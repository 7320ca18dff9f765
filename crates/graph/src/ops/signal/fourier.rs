//! Discrete Fourier transforms of complex numbers.

use std::f64::consts::TAU;

/// A complex number: real and imaginary part.
pub(super) type ComplexNumber = (f64, f64);

fn add(a: ComplexNumber, b: ComplexNumber) -> ComplexNumber {
    (a.0 + b.0, a.1 + b.1)
}

fn multiply(a: ComplexNumber, b: ComplexNumber) -> ComplexNumber {
    (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)
}

/// `e^(±2πi · k / n)` for every `k` below `n`.
#[allow(clippy::cast_precision_loss, reason = "a signal has fewer than 2^31 elements")]
fn roots(n: usize, inverse: bool) -> Vec<ComplexNumber> {
    let sign = if inverse { 1.0 } else { -1.0 };
    let root = |k: usize| {
        let (sin, cos) = (TAU * k as f64 / n as f64).sin_cos();
        (cos, sign * sin)
    };
    (0..n).map(root).collect()
}

/// The transform of a signal, of the same length; the inverse one is not divided by the length.
pub(super) fn transform(signal: &[ComplexNumber], inverse: bool) -> Vec<ComplexNumber> {
    split(signal, 0, 1, &roots(signal.len(), inverse))
}

/// The transform of the elements from `start` on, `step` apart. Even lengths are made of the
/// transforms of the elements at even and at odd positions.
///
/// Source: Cooley and Tukey 1965, "An algorithm for the machine calculation of complex Fourier
/// series".
fn split(
    signal: &[ComplexNumber],
    start: usize,
    step: usize,
    roots: &[ComplexNumber],
) -> Vec<ComplexNumber> {
    let n = signal.len() / step;
    if n % 2 == 1 {
        let sum = |k: usize| {
            let term = |j: usize| multiply(signal[start + j * step], roots[(j * k % n) * step]);
            (0..n).map(term).fold((0.0, 0.0), add)
        };
        return (0..n).map(sum).collect();
    }
    if n == 0 {
        return Vec::new();
    }
    let even = split(signal, start, step * 2, roots);
    let odd = split(signal, start + step, step * 2, roots);
    let at = |k: usize| add(even[k % (n / 2)], multiply(odd[k % (n / 2)], roots[k * step]));
    (0..n).map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inverse_brings_a_signal_of_any_length_back() {
        for n in [0_usize, 1, 2, 3, 5, 6, 8, 12, 15, 28] {
            let signal: Vec<ComplexNumber> =
                (0..n).map(|k| ((k as f64).sin() + 1.0, (k as f64 * 2.0).cos())).collect();
            let back = transform(&transform(&signal, false), true);
            for (found, expected) in back.iter().zip(&signal) {
                assert!((found.0 / n as f64 - expected.0).abs() < 1e-12, "{n}");
                assert!((found.1 / n as f64 - expected.1).abs() < 1e-12, "{n}");
            }
        }
    }

    #[test]
    fn a_wave_has_one_frequency() {
        let wave: Vec<ComplexNumber> =
            (0..6).map(|k| ((TAU * 2.0 * k as f64 / 6.0).cos(), 0.0)).collect();
        let found = transform(&wave, false);
        for (k, (re, im)) in found.into_iter().enumerate() {
            let expected = if k == 2 || k == 4 { 3.0 } else { 0.0 };
            assert!((re - expected).abs() < 1e-12 && im.abs() < 1e-12, "{k}: {re} {im}");
        }
    }
}
