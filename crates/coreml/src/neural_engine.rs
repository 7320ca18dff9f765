//! The Neural Engine of a chip.

use galatea_apple::coreml::{self, CoreMlDevice};
use galatea_apple::{ChipIdentity, coreml::CoreMlFaultKind};
use galatea_runtime::chips::{self, ChipFigure, LowBitSupport};

/// Figures of a chip's Neural Engine, its own ones or those of the nearest relative.
#[derive(Clone, Debug, PartialEq)]
pub struct NeuralEngine {
    /// The chip.
    pub chip: String,
    /// Its generation: 4 of `Apple M4 Pro`.
    pub generation: Option<u32>,
    /// Cores of all engines.
    pub cores: u64,
    /// Number of engines. A program runs on one of them, so that as many instances of a model run at the
    /// same time.
    pub engines: u64,
    /// Speed that Apple states, 10¹² operations a second.
    pub stated_tops: Option<f64>,
    /// 10¹² operations on halves a second, of all engines.
    pub fp16_tops: f64,
    /// Milliseconds that a start takes.
    pub dispatch_ms: f64,
    /// Treatment of weights of 8 bits.
    pub int8: Option<LowBitSupport>,
    /// Treatment of weights of 4 bits.
    pub int4: Option<LowBitSupport>,
    /// 10⁹ bytes of memory a second of the whole chip.
    pub memory_gb_per_s: f64,
}

impl NeuralEngine {
    /// The engine of a chip by its name, such as `Apple M4 Pro` or `M4 Pro`. None where nothing is known of
    /// its family.
    #[must_use]
    pub fn of(chip: &str) -> Option<Self> {
        let own = |name: &str| chips::find(name).map(|known| (name.to_owned(), known.facts));
        let (chip, facts) = own(chip).or_else(|| own(&format!("Apple {chip}")))?;
        let dispatch_ms = chips::figure(&chip, ChipFigure::DispatchMs)?;
        let memory_gb_per_s = chips::figure(&chip, ChipFigure::Bandwidth)?;
        Some(Self {
            generation: chips::generation(&chip),
            cores: whole(facts.least(ChipFigure::EngineCores)?),
            engines: whole(facts.least(ChipFigure::Engines)?).max(1),
            stated_tops: facts.least(ChipFigure::StatedTops),
            fp16_tops: facts.least(ChipFigure::Fp16Tops)?,
            dispatch_ms,
            int8: facts.narrow[0],
            int4: facts.narrow[1],
            memory_gb_per_s,
            chip,
        })
    }

    /// The figures of the engine of this host's chip, whether Core ML offers it or not; none off macOS.
    #[must_use]
    pub fn of_host() -> Option<Self> {
        Self::of(&ChipIdentity::detect().ok()?.name)
    }

    /// The engine of this machine; none off macOS, or where Core ML has none.
    #[must_use]
    pub fn detect() -> Option<Self> {
        let told = match coreml::devices() {
            Ok(devices) => {
                let cores = |device: &CoreMlDevice| match device {
                    CoreMlDevice::NeuralEngine { cores } => u64::try_from(*cores).ok(),
                    _ => None,
                };
                Some(devices.iter().find_map(cores)?)
            }
            // Before macOS 14 nobody tells; every Mac with a chip of Apple's has one.
            Err(fault) if fault.kind == CoreMlFaultKind::Version => None,
            Err(_) => return None,
        };
        let engine = Self::of_host()?;
        Some(Self { cores: told.unwrap_or(engine.cores), ..engine })
    }

    /// Operations on halves a second of one engine.
    #[must_use]
    pub fn halves_per_second(&self) -> f64 {
        #[allow(clippy::cast_precision_loss, reason = "a number of engines")]
        let engines = self.engines as f64;
        self.fp16_tops * 1e12 / engines
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a figure of a data sheet, 0 at least"
)]
fn whole(number: f64) -> u64 {
    number.max(0.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_has_the_figures_of_its_chip() {
        let engine = NeuralEngine::of("M4 Pro").unwrap();
        assert_eq!((engine.chip.as_str(), engine.generation), ("Apple M4 Pro", Some(4)));
        assert_eq!((engine.cores, engine.engines, engine.stated_tops), (16, 1, Some(38.0)));
        assert_eq!(
            (engine.int8, engine.int4),
            (Some(LowBitSupport::Arithmetic), Some(LowBitSupport::Storage))
        );
        assert!((engine.halves_per_second() - 19e12).abs() < 1.0);
        assert!((engine.dispatch_ms - 0.1).abs() < 1e-9);
        assert_eq!(NeuralEngine::of("Apple A17 Pro"), None);
    }

    #[test]
    fn two_engines_share_what_the_chip_has() {
        let one = NeuralEngine::of("M2 Max").unwrap();
        let two = NeuralEngine::of("M2 Ultra").unwrap();
        assert_eq!((two.engines, two.cores), (2, 32));
        assert!((one.halves_per_second() - two.halves_per_second()).abs() < 1.0);
    }

    #[cfg(not(any(target_os = "macos", apple_doubles)))]
    #[test]
    fn off_macos_there_is_none() {
        assert_eq!(NeuralEngine::detect(), None);
    }
}
