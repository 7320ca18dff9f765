//! Settings of the provider in a model's configuration.

use galatea_tensor::OrderedMap;

use super::probe_samples::ProbeSamples;
use super::weights::WeightCompression;

/// The provider's name.
pub const NAME: &str = "coreml";

/// Type in which a partition computes its floats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FloatType {
    /// Halves, the only floats of the Neural Engine.
    #[default]
    Fp16,
    /// The model's types, which Core ML computes on other devices.
    Fp32,
}

/// The provider's settings, of one model.
#[derive(Clone, Debug, PartialEq)]
pub struct CoreMlSettings {
    /// `precision`: `fp16`, `fp32`, or `int8`, which computes in FP16.
    pub float: FloatType,
    /// How weights are stored: as they are computed with, or as `precision` `int8` has them.
    pub weights: WeightCompression,
    /// `buckets`: the lengths that open axes are padded up to, in rising order; powers of two where none is
    /// given.
    pub buckets: Vec<usize>,
    /// `sequence_buckets`: the lengths that sequences are padded up to where that changes nothing, in rising
    /// order; where nothing is said, usual ones for an engine.
    pub sequence_buckets: Option<Vec<usize>>,
    /// `accuracy_probe`: whether partitions are compared with FP32 when they are loaded; where nothing is
    /// said, where there is an engine.
    pub probe: Option<bool>,
    /// `accuracy_samples`: inputs for that comparison, besides those that are made.
    pub samples: ProbeSamples,
    /// `accuracy_limit`: the largest relative error of that comparison.
    pub accuracy_limit: f64,
}

/// An error of FP16 through a hundred layers is about a hundredth; a program that went wrong is far off.
const ACCURACY_LIMIT: f64 = 0.05;

/// The most lengths that are kept compiled for an axis.
const MAX_BUCKETS: usize = 16;

impl Default for CoreMlSettings {
    fn default() -> Self {
        Self {
            float: FloatType::default(),
            weights: WeightCompression::default(),
            buckets: Vec::new(),
            sequence_buckets: None,
            probe: None,
            samples: ProbeSamples::default(),
            accuracy_limit: ACCURACY_LIMIT,
        }
    }
}

/// A word for each value.
type SettingWords<T> = &'static [(&'static str, T)];

const PRECISIONS: SettingWords<(FloatType, WeightCompression)> = &[
    ("fp16", (FloatType::Fp16, WeightCompression::None)),
    ("fp32", (FloatType::Fp32, WeightCompression::None)),
    // Weights of 8 bits are widened where they are read: the engine multiplies halves.
    ("int8", (FloatType::Fp16, WeightCompression::Int8)),
];

const TRUTHS: SettingWords<bool> = &[("true", true), ("false", false), ("1", true), ("0", false)];

/// The value of a word.
fn one_of<T: Copy>(name: &str, text: &str, words: SettingWords<T>) -> Result<T, String> {
    let found = words.iter().find(|(word, _)| *word == text.trim());
    found.map(|(_, value)| *value).ok_or_else(|| {
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        format!("{name} '{text}' found, expected {}", words.join(" or "))
    })
}

type SettingSetter = fn(&mut CoreMlSettings, &str) -> Result<(), String>;

/// Every setting, and what takes its value.
const SETTINGS: &[(&str, SettingSetter)] = &[
    ("precision", |to, text| {
        (to.float, to.weights) = one_of("precision", text, PRECISIONS)?;
        Ok(())
    }),
    ("buckets", |to, text| {
        to.buckets = buckets("buckets", text)?;
        Ok(())
    }),
    ("sequence_buckets", |to, text| {
        let none = text.trim() == "none";
        to.sequence_buckets =
            Some(if none { Vec::new() } else { buckets("sequence_buckets", text)? });
        Ok(())
    }),
    ("accuracy_probe", |to, text| {
        to.probe = Some(one_of("accuracy_probe", text, TRUTHS)?);
        Ok(())
    }),
    ("accuracy_samples", |to, text| {
        to.samples = ProbeSamples::of(text).map_err(|why| format!("accuracy_samples {why}"))?;
        Ok(())
    }),
    ("accuracy_limit", |to, text| {
        let limit =
            text.trim().parse().ok().filter(|limit: &f64| *limit > 0.0 && limit.is_finite());
        let wrong =
            || format!("accuracy_limit '{text}' found, expected a number above 0 such as 0.05");
        to.accuracy_limit = limit.ok_or_else(wrong)?;
        Ok(())
    }),
];

/// Lengths such as `1,4,16`, in rising order.
fn buckets(name: &str, text: &str) -> Result<Vec<usize>, String> {
    let wrong = |why: &str| format!("{name} '{text}' found, expected {why}, such as 1,4,16");
    let each = text.split(',').map(|word| word.trim().parse::<usize>().ok().filter(|&len| len > 0));
    let all: Option<Vec<usize>> = each.collect();
    let mut all = all.ok_or_else(|| wrong("lengths above 0"))?;
    all.sort_unstable();
    all.dedup();
    match all.len() {
        1..=MAX_BUCKETS => Ok(all),
        _ => Err(wrong(&format!("{MAX_BUCKETS} lengths at most"))),
    }
}

impl CoreMlSettings {
    /// The settings by name, as a configuration has them; those that it leaves out are the usual ones. `others`
    /// are names that somebody else takes, for messages.
    ///
    /// # Errors
    /// Names the setting, what was found and what was expected.
    pub fn of(given: &OrderedMap<String, String>, others: &str) -> Result<Self, String> {
        let mut settings = Self::default();
        for (name, text) in given {
            let row = SETTINGS.iter().find(|(known, _)| known == name);
            let Some((_, set)) = row else {
                let names: Vec<&str> = SETTINGS.iter().map(|(name, _)| *name).collect();
                return Err(format!(
                    "'{name}' found, expected one of {}, {others}",
                    names.join(", ")
                ));
            };
            set(&mut settings, text)?;
        }
        if settings.probe == Some(false) && !settings.samples.is_empty() {
            return Err(
                "accuracy_samples found beside accuracy_probe 'false', expected one of them: \
                        samples are compared by the probe"
                    .to_owned(),
            );
        }
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(given: &[(&str, &str)]) -> Result<CoreMlSettings, String> {
        let own = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        CoreMlSettings::of(&given.iter().map(own).collect(), "worker")
    }

    #[test]
    fn every_setting_has_its_field() {
        let found = of(&[
            ("precision", "fp32"),
            ("buckets", "8, 1,4,4"),
            ("sequence_buckets", "64,32"),
            ("accuracy_probe", "true"),
            ("accuracy_limit", "0.01"),
        ]);
        let expected = CoreMlSettings {
            float: FloatType::Fp32,
            weights: WeightCompression::None,
            buckets: vec![1, 4, 8],
            sequence_buckets: Some(vec![32, 64]),
            probe: Some(true),
            samples: ProbeSamples::default(),
            accuracy_limit: 0.01,
        };
        assert_eq!(found, Ok(expected));
        assert_eq!(of(&[]), Ok(CoreMlSettings::default()));
        let narrow = of(&[("precision", "int8")]).unwrap();
        assert_eq!((narrow.float, narrow.weights), (FloatType::Fp16, WeightCompression::Int8));
    }

    #[test]
    fn what_is_no_setting_is_named_with_what_there_is() {
        let error = |name: &str, text: &str| of(&[(name, text)]).unwrap_err();
        let expected = "precision 'half' found, expected fp16 or fp32 or int8";
        assert_eq!(error("precision", "half"), expected);
        assert!(error("accuracy_probe", "yes").contains("'yes' found, expected true or false"));
        assert!(error("speed", "high").starts_with("'speed' found, expected one of precision, "));
        for wrong in ["", "0", "4,x", "-1"] {
            assert!(error("buckets", wrong).contains("expected lengths above 0"), "{wrong}");
        }
        for (name, _) in SETTINGS {
            for wrong in ["", "{}", "null", "[1]", "nonsense", "-3"] {
                let error = error(name, wrong);
                assert!(error.starts_with(name) && error.contains("found, expected"), "{error}");
            }
        }
        let many: Vec<String> = (1..=17).map(|len| len.to_string()).collect();
        assert!(error("buckets", &many.join(",")).contains("16 lengths at most"));
        let none = "accuracy_samples '/nowhere.npz' found, expected .npz archives";
        assert!(error("accuracy_samples", "/nowhere.npz").starts_with(none));
        for wrong in ["0", "-1", "inf", "NaN", "much"] {
            assert!(error("accuracy_limit", wrong).contains("above 0"), "{wrong}");
        }
    }
}
