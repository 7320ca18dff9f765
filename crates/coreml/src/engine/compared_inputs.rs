//! Magnitudes of the inputs that a program was compared on: results of others like them are trusted.
//!
//! Results of FP16 are wrong where values leave its range, and how far they go depends on the inputs'
//! magnitudes and lengths. A program that was right on some inputs is compared anew on inputs between other powers of two,
//! or twice as long, so that few runs are compared and no range is served unseen.

use galatea_graph::{Datum, converted};
use galatea_tensor::{DataType, Tensor, f16};

/// The largest number of FP16.
const LARGEST: f64 = 65_504.0;

/// The exponents of powers of two that are told apart: 64 from the first one on.
const FIRST_EXPONENT: f64 = -40.0;
const LAST_EXPONENT: f64 = 23.0;

/// The first run of those that are sampled; each later one has twice its number.
const FIRST_SAMPLE: u64 = 4;

/// How large the inputs of a run are.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct InputMagnitudes {
    /// The largest magnitude in each input of floats; infinite where an element is no number.
    floats: Vec<f64>,
    /// Elements of all inputs.
    elements: usize,
}

impl InputMagnitudes {
    /// Looks through the inputs of a run.
    pub(crate) fn of(inputs: &[Datum]) -> Self {
        let tensors = || inputs.iter().filter_map(Datum::as_tensor);
        let floats = tensors().filter(|tensor| tensor.dtype().is_float()).map(largest).collect();
        Self { floats, elements: tensors().map(Tensor::elements).sum() }
    }

    /// Returns whether FP16 holds every float: what it does not hold says nothing of a program.
    pub(crate) fn are_held(&self) -> bool {
        self.floats.iter().all(|&largest| largest <= LARGEST)
    }

    /// Returns whether a run on these inputs says something of a program: one on nothing but zeros, as of a warm-up,
    /// does not.
    pub(crate) fn tell(&self) -> bool {
        self.floats.is_empty() || self.floats.iter().any(|&largest| largest > 0.0)
    }
}

/// The largest magnitude of floats; infinite where an element is no number.
fn largest(tensor: &Tensor) -> f64 {
    // Bits of floats without their signs are in the order of the magnitudes, behind which are those of no numbers.
    let most = match tensor.dtype() {
        DataType::Fp32 => tensor.as_slice::<f32>().ok().map(|all| {
            let bits = all.iter().map(|value| value.to_bits() & 0x7fff_ffff);
            f64::from(f32::from_bits(bits.max().unwrap_or(0)))
        }),
        DataType::Fp16 => tensor.as_slice::<f16>().ok().map(|all| {
            let bits = all.iter().map(|value| value.to_bits() & 0x7fff);
            f16::from_bits(bits.max().unwrap_or(0)).to_f64()
        }),
        _ => None,
    };
    let slow = || {
        let wide = converted(tensor, DataType::Fp64).ok().and_then(|wide| wide.to_vec().ok());
        let sizes = wide.unwrap_or_default().into_iter().map(f64::abs);
        sizes.fold(0.0, |most, size| if size >= most || size.is_nan() { size } else { most })
    };
    let most = most.unwrap_or_else(slow);
    if most.is_nan() { f64::INFINITY } else { most }
}

/// The bit of a magnitude above zero: one for each power of two.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number from 0 to 63")]
fn octave(size: f64) -> u64 {
    let exponent = size.log2().floor().clamp(FIRST_EXPONENT, LAST_EXPONENT);
    1 << ((exponent - FIRST_EXPONENT) as u32)
}

/// Inputs that a program was compared on, and the count of its runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct ComparedInputs {
    /// The octaves of each input of floats, a bit for each.
    octaves: Vec<u64>,
    elements: usize,
    runs: u64,
    /// True if the first inputs count as compared: the program was found right before.
    known: bool,
}

impl ComparedInputs {
    /// Returns the record of a program that was found right before, on inputs that nobody knows any more.
    pub(crate) fn known_before() -> Self {
        Self { known: true, ..Self::default() }
    }

    /// Returns whether the program was compared on inputs like these.
    pub(crate) fn cover(&mut self, inputs: &InputMagnitudes) -> bool {
        if self.known && inputs.tell() {
            self.known = false;
            self.add(inputs);
        }
        let alike = |(at, &size): (usize, &f64)| {
            let octaves = self.octaves.get(at).copied().unwrap_or(0);
            size == 0.0 || octaves & octave(size) != 0
        };
        let longer = self.elements > 0 && inputs.elements > self.elements.saturating_mul(2);
        !longer && inputs.floats.iter().enumerate().all(alike) || self.known
    }

    /// Adds inputs on which the program was right.
    pub(crate) fn add(&mut self, inputs: &InputMagnitudes) {
        self.octaves.resize(self.octaves.len().max(inputs.floats.len()), 0);
        for (octaves, &size) in self.octaves.iter_mut().zip(&inputs.floats) {
            if size > 0.0 {
                *octaves |= octave(size);
            }
        }
        self.elements = self.elements.max(inputs.elements);
    }

    /// Counts a run that was not compared, and returns whether it is one of the sample: the 4th, the 8th, the 16th and
    /// so on.
    pub(crate) fn is_sampled(&mut self) -> bool {
        self.runs = self.runs.saturating_add(1);
        self.runs >= FIRST_SAMPLE && self.runs.is_power_of_two()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(all: &[f32]) -> InputMagnitudes {
        InputMagnitudes::of(&[Datum::Tensor(Tensor::vector(all.to_vec()))])
    }

    #[test]
    fn inputs_of_zeros_or_beyond_fp16_say_nothing_of_a_program() {
        assert!(of(&[0.0, 1.0]).tell() && !of(&[0.0, 0.0]).tell());
        assert!(InputMagnitudes::of(&[]).tell());
        assert!(of(&[65_504.0]).are_held() && !of(&[7e4]).are_held());
        assert!(!of(&[f32::NAN, 1.0]).are_held() && !of(&[-f32::INFINITY]).are_held());
        let integers = InputMagnitudes::of(&[Datum::Tensor(Tensor::vector(vec![0_i64]))]);
        assert!(integers.tell() && integers.are_held());
    }

    #[test]
    fn magnitudes_are_those_of_every_type_of_float() {
        let all = [0.5_f32, -3.0, 2.0];
        let halves: Vec<f16> = all.iter().map(|&value| f16::from_f32(value)).collect();
        let wide: Vec<f64> = all.iter().map(|&value| f64::from(value)).collect();
        for tensor in [Tensor::vector(all.to_vec()), Tensor::vector(halves), Tensor::vector(wide)] {
            assert_eq!(largest(&tensor), 3.0, "{}", tensor.dtype());
        }
        let broken = Tensor::vector(vec![1.0, f64::NAN, 7.0]);
        assert!(largest(&broken).is_infinite());
        assert!(largest(&Tensor::vector(vec![f16::NAN, f16::ONE])).is_infinite());
        // A view that is no row of memory.
        let matrix = Tensor::from_vec::<f32>(&[2, 2], vec![1.0, -9.0, 2.0, 3.0]).unwrap();
        assert_eq!(largest(&matrix.permute(&[1, 0]).unwrap()), 9.0);
    }

    #[test]
    fn inputs_of_another_magnitude_or_twice_as_long_are_not_covered() {
        let mut compared = ComparedInputs::default();
        assert!(!compared.cover(&of(&[1.0, 0.0])) && compared.cover(&of(&[0.0])));
        compared.add(&of(&[1.0, 0.0]));
        for covered in [&[1.0, 0.1][..], &[-1.9], &[1.5], &[0.0; 4]] {
            assert!(compared.cover(&of(covered)), "{covered:?}");
        }
        for new in [&[2.1][..], &[0.9], &[1e9], &[1e-30], &[f32::NAN], &[1.0; 5]] {
            assert!(!compared.cover(&of(new)), "{new:?}");
        }
        compared.add(&of(&[100.0, 0.0]));
        assert!(compared.cover(&of(&[127.0])) && !compared.cover(&of(&[201.0])));
        assert!(!compared.cover(&of(&[20.0])), "between what was compared");
        // One that was right before is taken at its word once.
        let mut known = ComparedInputs::known_before();
        assert!(known.cover(&of(&[0.0])) && known.cover(&of(&[5.0])));
        assert!(known.cover(&of(&[7.0])) && !known.cover(&of(&[11.0])));
    }

    #[test]
    fn samples_grow_rare() {
        let mut compared = ComparedInputs::default();
        let sampled: Vec<u64> = (1..=70).filter(|_| compared.is_sampled()).collect();
        assert_eq!(sampled, [4, 8, 16, 32, 64]);
    }
}
