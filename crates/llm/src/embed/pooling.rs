//! One vector of a text's rows, as sentence-transformers makes it.

use crate::config::JsonConfig;
use crate::error::{LlmError, LlmErrorKind, Result};

/// A way from rows to one vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextPooling {
    /// The first row.
    Cls,
    /// The greatest of each column.
    Max,
    /// The mean of all rows.
    Mean,
    /// Their sum divided by the root of their number.
    MeanSqrtLength,
    /// Their mean, each counted as often as its position says, from 1.
    WeightedMean,
    /// The last row.
    LastToken,
}

/// All ways: the name, the key of older files, and the way, in the order in which vectors of several
/// follow each other.
const WAYS: &[(&str, &str, TextPooling)] = &[
    ("cls", "pooling_mode_cls_token", TextPooling::Cls),
    ("max", "pooling_mode_max_tokens", TextPooling::Max),
    ("mean", "pooling_mode_mean_tokens", TextPooling::Mean),
    ("mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens", TextPooling::MeanSqrtLength),
    ("weightedmean", "pooling_mode_weightedmean_tokens", TextPooling::WeightedMean),
    ("lasttoken", "pooling_mode_lasttoken", TextPooling::LastToken),
];

impl TextPooling {
    /// Fields of a `config.json` of a pooling module.
    ///
    /// # Errors
    /// A way that is not known, and none at all.
    pub fn read(config: &JsonConfig) -> Result<Vec<Self>> {
        if !config.flag("include_prompt", true)? {
            return Err(config.unknown("include_prompt", &["true"]));
        }
        let named = match config.texts("pooling_mode") {
            Ok(names) => names,
            Err(_) => config.text("pooling_mode")?.map(|name| vec![name]),
        };
        let known: Vec<&str> = WAYS.iter().map(|(name, ..)| *name).collect();
        if let Some(names) = named {
            let way = |wanted: &&str| WAYS.iter().find(|(name, ..)| name == wanted);
            let found: Option<Vec<Self>> =
                names.iter().map(|name| way(name).map(|(.., way)| *way)).collect();
            let found = found.filter(|found| !found.is_empty());
            return found.ok_or_else(|| config.unknown("pooling_mode", &known));
        }
        let mut found = Vec::new();
        for (_, key, way) in WAYS {
            if config.flag(key, *way == Self::Mean)? {
                found.push(*way);
            }
        }
        if found.is_empty() {
            let text = format!("no way of pooling, expected one of {}", known.join(", "));
            return Err(LlmError::new(LlmErrorKind::Config, "1_Pooling/config.json", text));
        }
        Ok(found)
    }

    /// Appends the vector of rows of `width` numbers, of which there is at least one.
    #[allow(clippy::cast_precision_loss, reason = "counts of tokens")]
    pub(super) fn pool(self, rows: &[f32], width: usize, vector: &mut Vec<f32>) {
        let width = width.max(1);
        let count = rows.len() / width;
        let sum = |weight: &dyn Fn(usize) -> f64, divisor: f64| -> Vec<f32> {
            let mut sums = vec![0.0_f64; width];
            for (at, row) in rows.chunks_exact(width).enumerate() {
                for (sum, x) in sums.iter_mut().zip(row) {
                    *sum += weight(at) * f64::from(*x);
                }
            }
            #[allow(clippy::cast_possible_truncation, reason = "rounded once")]
            sums.into_iter().map(|sum| (sum / divisor) as f32).collect()
        };
        let one = |_: usize| 1.0;
        let place = |at: usize| at as f64 + 1.0;
        let length = count as f64;
        match self {
            Self::Cls => vector.extend(rows.chunks_exact(width).next().unwrap_or_default()),
            Self::LastToken => vector.extend(rows.chunks_exact(width).last().unwrap_or_default()),
            Self::Max => {
                let mut most = vec![f32::NEG_INFINITY; width];
                for row in rows.chunks_exact(width) {
                    most.iter_mut().zip(row).for_each(|(most, x)| *most = most.max(*x));
                }
                vector.extend(most);
            }
            Self::Mean => vector.extend(sum(&one, length)),
            Self::MeanSqrtLength => vector.extend(sum(&one, length.sqrt())),
            Self::WeightedMean => {
                vector.extend(sum(&place, length * (length + 1.0) / 2.0));
            }
        }
    }
}

/// Gives a vector a length of 1; one that is 0 stays.
pub fn normalise(vector: &mut [f32]) {
    let square: f64 = vector.iter().map(|x| f64::from(*x).powi(2)).sum();
    let length = square.sqrt().max(1e-12);
    #[allow(clippy::cast_possible_truncation, reason = "rounded once")]
    vector.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pooled(way: TextPooling) -> Vec<f32> {
        let mut vector = Vec::new();
        way.pool(&[1.0, -4.0, 3.0, 2.0, 2.0, 8.0, 0.0, 6.0], 2, &mut vector);
        vector
    }

    #[test]
    fn every_way_makes_one_vector_of_all_rows() {
        assert_eq!(pooled(TextPooling::Cls), [1.0, -4.0]);
        assert_eq!(pooled(TextPooling::LastToken), [0.0, 6.0]);
        assert_eq!(pooled(TextPooling::Max), [3.0, 8.0]);
        assert_eq!(pooled(TextPooling::Mean), [1.5, 3.0]);
        assert_eq!(pooled(TextPooling::MeanSqrtLength), [3.0, 6.0]);
        assert_eq!(pooled(TextPooling::WeightedMean), [1.3, 4.8]);
        let mut vector = [3.0, 4.0];
        normalise(&mut vector);
        assert_eq!(vector, [0.6, 0.8]);
    }

    #[test]
    fn older_and_newer_files_name_their_ways() {
        let read =
            |text: &str| TextPooling::read(&JsonConfig::parse("config.json", text.as_bytes())?);
        assert_eq!(read("{}").unwrap(), [TextPooling::Mean]);
        let older = r#"{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}"#;
        assert_eq!(read(older).unwrap(), [TextPooling::Cls]);
        assert_eq!(read(r#"{"pooling_mode": "lasttoken"}"#).unwrap(), [TextPooling::LastToken]);
        let two = read(r#"{"pooling_mode": ["mean", "max"]}"#).unwrap();
        assert_eq!(two, [TextPooling::Mean, TextPooling::Max]);
        for wrong in [
            r#"{"pooling_mode": "median"}"#,
            r#"{"pooling_mode_mean_tokens": false}"#,
            r#"{"include_prompt": false}"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
