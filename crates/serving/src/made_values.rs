//! Values of inputs that nobody gave.

use galatea_runtime::IoInfo;
use galatea_tensor::{ByteString, DataType, Tensor, bf16, f16};

/// Makes up the values of an input.
///
/// # Errors
/// Fails when there is no memory for them.
pub fn values(
    input: &IoInfo,
    shape: &[usize],
    random: &mut MadeNoise,
) -> Result<Tensor, galatea_tensor::TensorError> {
    let count = galatea_tensor::checked_elements(shape)?;
    let name = input.name.to_ascii_lowercase();
    // Masks let everything through, types and segments are the first, everything else is a small token.
    let integer = |random: &mut MadeNoise| -> u8 {
        if name.contains("mask") {
            1
        } else if name.contains("type") || name.contains("segment") {
            0
        } else {
            u8::try_from(random.next() % 100).unwrap_or(0)
        }
    };
    macro_rules! filled {
        ($type:ty, $make:expr) => {{
            let make: fn(&mut MadeNoise) -> $type = $make;
            Tensor::from_vec(shape, (0..count).map(|_| make(random)).collect())
        }};
        (integers $type:ty) => {
            Tensor::from_vec(
                shape,
                (0..count).map(|_| <$type>::try_from(integer(random)).unwrap_or(0)).collect(),
            )
        };
    }
    match input.dtype {
        DataType::Bool => filled!(bool, |_| true),
        DataType::Uint8 => filled!(integers u8),
        DataType::Uint16 => filled!(integers u16),
        DataType::Uint32 => filled!(integers u32),
        DataType::Uint64 => filled!(integers u64),
        DataType::Int8 => filled!(integers i8),
        DataType::Int16 => filled!(integers i16),
        DataType::Int32 => filled!(integers i32),
        DataType::Int64 => filled!(integers i64),
        DataType::Fp16 => filled!(f16, |random| f16::from_f64(random.normal())),
        DataType::Bf16 => filled!(bf16, |random| bf16::from_f64(random.normal())),
        #[allow(clippy::cast_possible_truncation, reason = "a random number may lose digits")]
        DataType::Fp32 => filled!(f32, |random| random.normal() as f32),
        DataType::Fp64 => filled!(f64, MadeNoise::normal),
        DataType::Bytes => filled!(ByteString, |_| ByteString::from("1")),
        small @ DataType::Small(_) => Tensor::zeros(small, shape),
    }
}

/// Repeatable random numbers: Marsaglia's xorshift, and Box and Muller's normal distribution.
#[derive(Debug)]
pub struct MadeNoise(u64);

impl MadeNoise {
    /// Each seed gives other numbers.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(0x2545_F491_4F6C_DD1D ^ seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    #[allow(clippy::cast_precision_loss, reason = "a double holds 53 bits")]
    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.unit().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_ones_and_normals_are_normal() {
        let mut random = MadeNoise::new(1);
        let mask = IoInfo {
            name: "attention_mask".to_owned(),
            kind: galatea_graph::FactKind::Tensor,
            dtype: DataType::Int64,
            dims: Vec::new(),
            ranked: true,
        };
        let ones = values(&mask, &[3], &mut random).unwrap();
        assert_eq!(ones.to_vec::<i64>().unwrap(), [1, 1, 1]);
        let count = 20_000;
        let sum: f64 = (0..count).map(|_| random.normal()).sum();
        let squares: f64 = (0..count).map(|_| random.normal().powi(2)).sum();
        assert!((sum / f64::from(count)).abs() < 0.03);
        assert!((squares / f64::from(count) - 1.0).abs() < 0.05);
    }
}
