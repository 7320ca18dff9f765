//! Rotary position embeddings: frequencies of the variants, and tables of cosines and sines.
//!
//! Sources: Su et al. 2021 (arXiv 2104.09864); Peng et al. 2023, "YaRN" (arXiv 2309.00071), whose
//! section 3 also has the dynamic and "NTK-aware" forms; for `llama3` the description of LLaMA 3.1.

use std::f64::consts::TAU;

use galatea_tensor::Tensor;

use super::contradiction;
use crate::config::JsonConfig;
use crate::error::Result;

/// How positions become angles.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RopeScaling {
    /// The angle of a position, per pair of elements.
    frequencies: Vec<f64>,
    /// Factor on cosines and sines.
    factor: f64,
}

/// Most numbers of a table: a gigabyte of them.
const MAX_ANGLES: usize = 1 << 28;

/// The variants that a configuration names.
const VARIANTS: &[&str] = &["default", "linear", "dynamic", "yarn", "llama3"];

impl RopeScaling {
    /// For heads of `width` elements and sequences of up to `positions`.
    ///
    /// # Errors
    /// When the configuration names another variant or lacks what the variant needs.
    pub(super) fn new(config: &JsonConfig, width: usize, positions: usize) -> Result<Self> {
        // Newer configurations keep the base beside the variant.
        let parameters = match config.object("rope_parameters")? {
            Some(parameters) => Some(parameters),
            None => config.object("rope_scaling")?,
        };
        let own = match &parameters {
            Some(parameters) => parameters.number("rope_theta")?,
            None => None,
        };
        let base = own.map_or_else(|| config.positive_or("rope_theta", 10_000.0), Ok)?;
        match parameters {
            Some(parameters) => Self::variant(config, &parameters, base, width, positions),
            None => Ok(Self::plain(base, width)),
        }
    }

    /// The variant that `parameters` name, of a base.
    ///
    /// # Errors
    /// Fails like [`Self::new`].
    pub(super) fn variant(
        config: &JsonConfig,
        parameters: &JsonConfig,
        base: f64,
        width: usize,
        positions: usize,
    ) -> Result<Self> {
        let kind = match parameters.text("rope_type")? {
            Some(kind) => kind,
            None => parameters.text("type")?.unwrap_or("default"),
        };
        let plain = Self::plain(base, width);
        match kind {
            "default" => Ok(plain),
            "linear" => {
                let factor = parameters.positive_or("factor", 1.0)?;
                Ok(plain.map(|_, frequency| frequency / factor))
            }
            "dynamic" => Self::dynamic(config, parameters, base, width, positions),
            "yarn" => plain.yarn(config, parameters, base, width),
            "llama3" => plain.llama3(parameters),
            "factors" => plain.divided(parameters),
            _ => Err(parameters.unknown("rope_type", VARIANTS)),
        }
    }

    #[allow(clippy::cast_precision_loss, reason = "lengths of vectors")]
    pub(super) fn plain(base: f64, width: usize) -> Self {
        let frequency = |pair: usize| base.powf(-2.0 * pair as f64 / width as f64);
        Self { frequencies: (0..width / 2).map(frequency).collect(), factor: 1.0 }
    }

    fn map(self, change: impl Fn(usize, f64) -> f64) -> Self {
        let frequencies =
            self.frequencies.iter().enumerate().map(|(pair, &f)| change(pair, f)).collect();
        Self { frequencies, ..self }
    }

    /// A larger base for sequences longer than those of training: that of the longest sequence.
    #[allow(clippy::cast_precision_loss, reason = "lengths")]
    fn dynamic(
        config: &JsonConfig,
        parameters: &JsonConfig,
        base: f64,
        width: usize,
        positions: usize,
    ) -> Result<Self> {
        let factor = parameters.positive_or("factor", 1.0)?;
        let trained = match parameters.optional_length("original_max_position_embeddings")? {
            Some(trained) => trained,
            None => config.length("max_position_embeddings")?,
        };
        let longer = positions.max(trained) as f64 / trained as f64;
        let stretched = factor * longer - (factor - 1.0);
        let exponent = width as f64 / (width as f64 - 2.0).max(1.0);
        Ok(Self::plain(base * stretched.powf(exponent), width))
    }

    /// Low frequencies are interpolated, high ones kept, and between them both are mixed.
    #[allow(clippy::cast_precision_loss, reason = "lengths")]
    fn yarn(
        self,
        config: &JsonConfig,
        parameters: &JsonConfig,
        base: f64,
        width: usize,
    ) -> Result<Self> {
        let factor = parameters.positive_or("factor", 1.0)?;
        let trained = match parameters.optional_length("original_max_position_embeddings")? {
            Some(trained) => trained,
            None => config.length("max_position_embeddings")?,
        };
        let fast = parameters.positive_or("beta_fast", 32.0)?;
        let slow = parameters.positive_or("beta_slow", 1.0)?;
        // The pair that turns so often within the trained length.
        let pair =
            |turns: f64| width as f64 * (trained as f64 / (turns * TAU)).ln() / (2.0 * base.ln());
        let mut low = pair(fast);
        let mut high = pair(slow);
        if parameters.flag("truncate", true)? {
            (low, high) = (low.floor(), high.ceil());
        }
        let low = low.max(0.0);
        let mut high = high.min(width as f64 - 1.0);
        if low >= high {
            high = low + 0.001;
        }
        let attention = match parameters.number("attention_factor")? {
            Some(attention) => attention,
            None => yarn_factor(parameters, factor)?,
        };
        let mixed = self.map(|pair, frequency| {
            let interpolated = ((pair as f64 - low) / (high - low)).clamp(0.0, 1.0);
            frequency / factor * interpolated + frequency * (1.0 - interpolated)
        });
        Ok(Self { factor: attention, ..mixed })
    }

    /// Mix of YaRN, with bounds by wavelength.
    fn llama3(self, parameters: &JsonConfig) -> Result<Self> {
        let factor = parameters.positive_or("factor", 8.0)?;
        let low = parameters.positive_or("low_freq_factor", 1.0)?;
        let high = parameters.positive_or("high_freq_factor", 4.0)?;
        let trained = parameters.length("original_max_position_embeddings")?;
        if high <= low {
            let text = format!("high_freq_factor {high} is not more than low_freq_factor {low}");
            return Err(contradiction(text));
        }
        #[allow(clippy::cast_precision_loss, reason = "a length")]
        let trained = trained as f64;
        Ok(self.map(|_, frequency| {
            let turns = trained * frequency / TAU;
            let kept = ((turns - low) / (high - low)).clamp(0.0, 1.0);
            frequency / factor * (1.0 - kept) + frequency * kept
        }))
    }

    /// Every frequency divided by a factor of its own, as GGUF files state it.
    fn divided(self, parameters: &JsonConfig) -> Result<Self> {
        let factors = parameters.numbers("factors")?.unwrap_or_default();
        let right = |&factor: &f64| factor.is_finite() && factor > 0.0;
        if factors.len() != self.frequencies.len() || !factors.iter().all(right) {
            return Err(contradiction(format!(
                "{} factors for {} frequencies",
                factors.len(),
                self.frequencies.len()
            )));
        }
        Ok(self.map(|pair, frequency| frequency / factors.get(pair).unwrap_or(&1.0)))
    }

    /// Cosines and sines, `[positions, width / 2]` of FP32 each.
    ///
    /// # Errors
    /// When they are beyond memory.
    pub(super) fn tables(&self, positions: usize) -> Result<[Tensor; 2]> {
        let shape = [positions, self.frequencies.len()];
        if positions.saturating_mul(self.frequencies.len()) > MAX_ANGLES {
            return Err(contradiction(format!(
                "{positions} positions of {} angles, expected at most {MAX_ANGLES} together",
                self.frequencies.len()
            )));
        }
        let table = |of: fn(f64) -> f64| {
            let mut all = Vec::with_capacity(positions.saturating_mul(self.frequencies.len()));
            for position in 0..positions {
                #[allow(clippy::cast_precision_loss, reason = "a position")]
                let angle = |frequency: &f64| of(position as f64 * frequency) * self.factor;
                #[allow(clippy::cast_possible_truncation, reason = "rounded once")]
                all.extend(self.frequencies.iter().map(|frequency| angle(frequency) as f32));
            }
            Tensor::from_vec(&shape, all).map_err(|error| contradiction(error.to_string()))
        };
        Ok([table(f64::cos)?, table(f64::sin)?])
    }
}

/// The factor on cosines and sines that YaRN's paper fits, with DeepSeek's two scales where given.
fn yarn_factor(parameters: &JsonConfig, factor: f64) -> Result<f64> {
    let of = |scale: f64| if factor <= 1.0 { 1.0 } else { 0.1 * scale * factor.ln() + 1.0 };
    Ok(match (parameters.number("mscale")?, parameters.number("mscale_all_dim")?) {
        (Some(own), Some(all)) if own != 0.0 && all != 0.0 => of(own) / of(all),
        _ => of(1.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rope(text: &str, width: usize) -> Result<RopeScaling> {
        RopeScaling::new(&JsonConfig::parse("config.json", text.as_bytes())?, width, 64)
    }

    #[test]
    fn frequencies_fall_from_one_and_variants_stretch_them() {
        let plain = rope("{}", 4).unwrap();
        assert_eq!(plain, RopeScaling { frequencies: vec![1.0, 0.01], factor: 1.0 });
        let old = r#"{"rope_theta": 100, "rope_scaling": {"type": "linear", "factor": 4}}"#;
        assert_eq!(rope(old, 4).unwrap().frequencies, [0.25, 0.025]);
        let new = r#"{"rope_parameters": {"rope_type": "default", "rope_theta": 100.0}}"#;
        assert_eq!(rope(new, 4).unwrap().frequencies, [1.0, 0.1]);
        let twice = r#"{"max_position_embeddings": 32,
            "rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}"#;
        // 64 positions of 32 trained ones: the base grows by (2 · 2 − 1) to the power of 4 / 2.
        let stretched = rope(twice, 4).unwrap().frequencies;
        assert!((stretched[1] - (90_000.0_f64).powf(-0.5)).abs() < 1e-12, "{stretched:?}");
    }

    #[test]
    fn high_frequencies_stay_and_low_ones_are_divided() {
        let llama = r#"{"rope_theta": 500000, "rope_scaling": {"rope_type": "llama3", "factor": 8,
            "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 8192}}"#;
        let plain = RopeScaling::plain(500_000.0, 128);
        let found = rope(llama, 128).unwrap();
        assert_eq!(found.frequencies[0], plain.frequencies[0]);
        assert_eq!(found.frequencies[63], plain.frequencies[63] / 8.0);
        let yarn = r#"{"max_position_embeddings": 64, "rope_scaling": {"rope_type": "yarn",
            "factor": 4, "original_max_position_embeddings": 4096}}"#;
        let plain = RopeScaling::plain(10_000.0, 64);
        let found = rope(yarn, 64).unwrap();
        assert_eq!(found.frequencies[0], plain.frequencies[0]);
        assert_eq!(found.frequencies[31], plain.frequencies[31] / 4.0);
        assert!((found.factor - (0.1 * 4.0_f64.ln() + 1.0)).abs() < 1e-12);
    }

    #[test]
    fn tables_beyond_memory_are_refused() {
        let text = rope("{}", 128).unwrap().tables(1 << 31).unwrap_err().to_string();
        assert!(text.contains("2147483648 positions of 64 angles"), "{text}");
    }

    #[test]
    fn unknown_variants_and_missing_numbers_are_named() {
        let text = rope(r#"{"rope_scaling": {"type": "spiral"}}"#, 4).unwrap_err().to_string();
        assert!(text.contains("rope_type") && text.contains("llama3"), "{text}");
        let text = rope(r#"{"rope_scaling": {"type": "llama3"}}"#, 4).unwrap_err().to_string();
        assert!(text.contains("original_max_position_embeddings: missing"), "{text}");
    }
}
