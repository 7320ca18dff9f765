//! `TfIdfVectorizer`: how often known sequences of words or numbers occur.

use galatea_tensor::{ByteString, DataType, OrderedMap, Tensor};

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::{self, bounded};

/// How occurrences become numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OccurrenceWeighting {
    /// Their count.
    Tf,
    /// The weight of the sequence if it occurs at all.
    Idf,
    /// The count times the weight.
    TfIdf,
}

/// A word or a number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TextItem {
    /// A number.
    Integer(i64),
    /// A word.
    Text(Vec<u8>),
}

/// Where a sequence is counted, and its weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CountColumn {
    /// The position in the result.
    pub at: usize,
    /// The weight.
    pub weight: f32,
}

/// ONNX `TfIdfVectorizer` of rows `[C]` or `[N, C]`. A sequence's items may be up to
/// `max_skip_count` other items apart, equally far each.
#[derive(Clone, Debug, PartialEq)]
pub struct TfIdfVectorizer {
    /// How occurrences become numbers.
    pub weighting: OccurrenceWeighting,
    /// Lengths of the sequences that count.
    pub lengths: (usize, usize),
    /// How many items may lie between neighbours.
    pub max_skip_count: usize,
    /// The known sequences.
    pub known: OrderedMap<Vec<TextItem>, CountColumn>,
    /// Numbers in a row of the result.
    pub columns: usize,
    /// True if items are words.
    pub words: bool,
}

/// The sequences of a pool, in which those of one item come first, then those of two, and so on.
fn sequences(pool: &[TextItem], starts: &[usize]) -> Result<Vec<Vec<TextItem>>, OpError> {
    let mut all = Vec::new();
    for (index, &start) in starts.iter().enumerate() {
        let end = starts.get(index + 1).copied().unwrap_or(pool.len());
        let part = pool.get(start..end).filter(|part| part.len().is_multiple_of(index + 1));
        let part = part.ok_or_else(|| {
            OpError::new(format!(
                "ngram_counts {starts:?} do not divide a pool of {} items",
                pool.len()
            ))
        })?;
        all.extend(part.chunks(index + 1).map(<[TextItem]>::to_vec));
    }
    Ok(all)
}

impl TfIdfVectorizer {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let attributes = &mut context.attributes;
        let choice = attributes.choice("mode", &["TF", "IDF", "TFIDF"], usize::MAX)?;
        let weighting =
            [OccurrenceWeighting::Tf, OccurrenceWeighting::Idf, OccurrenceWeighting::TfIdf];
        let weighting = weighting.get(choice).copied();
        let weighting = weighting.ok_or_else(|| OpError::new("attribute 'mode' is missing"))?;
        let mut length = |name: &'static str| {
            let found = attributes.int(name)?;
            let missing = || OpError::new(format!("attribute '{name}' is missing"));
            bounds::length(found.ok_or_else(missing)?, name)
        };
        let lengths = (length("min_gram_length")?, length("max_gram_length")?);
        let max_skip_count = length("max_skip_count")?;
        let mut list =
            |name: &'static str| bounds::lengths(&attributes.ints(name)?.unwrap_or_default(), name);
        let starts = list("ngram_counts")?;
        let columns = list("ngram_indexes")?;
        let weights = attributes.floats("weights")?;
        let integers = attributes.ints("pool_int64s")?.unwrap_or_default();
        let strings = attributes.strings("pool_strings")?.unwrap_or_default();
        if integers.is_empty() == strings.is_empty() {
            return Err(OpError::new("one of pool_int64s and pool_strings must be given"));
        }
        let words = integers.is_empty();
        let text = |word: &ByteString| TextItem::Text(word.as_bytes().to_vec());
        let pool: Vec<TextItem> =
            integers.into_iter().map(TextItem::Integer).chain(strings.iter().map(text)).collect();
        let sequences = sequences(&pool, &starts)?;
        let weighed = weights.as_ref().is_none_or(|all| all.len() == columns.len());
        if sequences.len() != columns.len() || !weighed {
            return Err(OpError::new(format!(
                "{} sequences, {} indexes and {:?} weights",
                sequences.len(),
                columns.len(),
                weights.map(|all| all.len())
            )));
        }
        let width = columns.iter().max().map_or(0, |last| last.saturating_add(1));
        let column = |(index, sequence)| {
            let weight = weights.as_ref().map_or(1.0, |all| all[index]);
            (sequence, CountColumn { at: columns[index], weight })
        };
        let mut known = OrderedMap::new();
        for (sequence, column) in sequences.into_iter().enumerate().map(column) {
            known.insert(sequence, column);
        }
        Ok(Box::new(Self { weighting, lengths, max_skip_count, known, columns: width, words }))
    }

    /// Adds what occurs in a row of items.
    fn count(&self, items: &[TextItem], result: &mut [f64]) {
        let mut counts: OrderedMap<&[TextItem], (u32, CountColumn)> = OrderedMap::new();
        let longest = self.lengths.1.min(items.len());
        for length in self.lengths.0.max(1)..=longest {
            // A single item has no neighbours to be apart from.
            let skips = if length == 1 { 0 } else { self.max_skip_count };
            for step in 1..=skips.saturating_add(1) {
                let reach = (length - 1).saturating_mul(step);
                if reach >= items.len() {
                    break;
                }
                for start in 0..items.len() - reach {
                    let found: Vec<TextItem> =
                        items[start..=start + reach].iter().step_by(step).cloned().collect();
                    if let Some((sequence, column)) = self.known.get_key_value(&found) {
                        counts.entry(sequence).or_insert((0, *column)).0 += 1;
                    }
                }
            }
        }
        for (count, column) in counts.into_values() {
            result[column.at] += match self.weighting {
                OccurrenceWeighting::Tf => f64::from(count),
                OccurrenceWeighting::Idf => f64::from(column.weight),
                OccurrenceWeighting::TfIdf => f64::from(count) * f64::from(column.weight),
            };
        }
    }

    fn items(&self, x: &Tensor) -> Result<Vec<TextItem>, OpError> {
        if self.words {
            let text = |word: ByteString| TextItem::Text(word.as_bytes().to_vec());
            return Ok(x.to_vec::<ByteString>()?.into_iter().map(text).collect());
        }
        Ok(x.to_i64_vec()?.into_iter().map(TextItem::Integer).collect())
    }
}

/// The axes before the one of items.
fn outer<T: Clone>(shape: &[T]) -> Result<Vec<T>, OpError> {
    match shape {
        [] | [_] => Ok(Vec::new()),
        [batch, _] => Ok(vec![batch.clone()]),
        _ => Err(OpError::new(format!("rank {}, expected at most 2", shape.len()))),
    }
}

impl Operator for TfIdfVectorizer {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        if (x.dtype == DataType::Bytes) != self.words {
            return Err(OpError::new(format!("items of type {} do not fit the pool", x.dtype)));
        }
        let Some(dims) = &x.shape else { return Ok(vec![Fact::unranked(DataType::Fp32)]) };
        let shape = [outer(dims)?, vec![Dim::Known(self.columns)]].concat();
        Ok(vec![Fact::new(DataType::Fp32, shape)])
    }

    #[allow(clippy::cast_possible_truncation, reason = "the result is FP32")]
    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        if (x.dtype() == DataType::Bytes) != self.words {
            return Err(OpError::new(format!("items of type {} do not fit the pool", x.dtype())));
        }
        let shape = [outer(x.shape())?, vec![self.columns]].concat();
        let mut result = vec![0.0; bounded(DataType::Fp64, &shape)?];
        let items = self.items(x)?;
        let row = x.shape().last().copied().unwrap_or(1);
        let rows = items.chunks(row.max(1)).zip(result.chunks_mut(self.columns.max(1)));
        rows.for_each(|(items, result)| self.count(items, result));
        let result: Vec<f32> = result.into_iter().map(|value| value as f32).collect();
        Ok(vec![Tensor::from_vec(&shape, result)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::{AttributeValue, Attributes};
    use crate::ops::testing::{attributes, int, ints, one, run, tensor, text};

    fn list(mode: &str, skip: i64) -> Attributes {
        attributes([
            ("mode", text(mode)),
            ("min_gram_length", int(1)),
            ("max_gram_length", int(2)),
            ("max_skip_count", int(skip)),
            ("ngram_counts", ints(&[0, 2])),
            ("ngram_indexes", ints(&[2, 0, 1])),
            ("pool_int64s", ints(&[10, 11, 10, 12])),
            ("weights", AttributeValue::Floats(vec![1.0, 2.0, 3.0])),
        ])
    }

    #[test]
    fn sequences_are_counted_and_weighed() {
        let x = tensor(&[2, 3], &[10_i64, 11, 12, 10, 12, 10]);
        let of = |mode, skip| one("TfIdfVectorizer", 9, &list(mode, skip), &[&x]);
        assert_eq!(of("TF", 0), tensor(&[2, 3], &[1.0_f32, 0.0, 1.0, 0.0, 1.0, 2.0]));
        assert_eq!(of("TF", 1), tensor(&[2, 3], &[1.0_f32, 1.0, 1.0, 0.0, 1.0, 2.0]));
        assert_eq!(of("IDF", 0), tensor(&[2, 3], &[2.0_f32, 0.0, 1.0, 0.0, 3.0, 1.0]));
        assert_eq!(of("TFIDF", 0), tensor(&[2, 3], &[2.0_f32, 0.0, 1.0, 0.0, 3.0, 2.0]));
    }

    #[test]
    fn words_do_not_fit_a_pool_of_numbers() {
        let x = Tensor::vector(vec![ByteString::from("a")]);
        assert!(run("TfIdfVectorizer", 9, &list("TF", 0), &[Some(&x)], 1).is_err());
    }
}
