//! `NGramHashMapping` and `VarlenNGramHashMapping`: hash values of the tokens before each position.

use galatea_tensor::{DataType, Tensor};

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;
use crate::ops::values::{expect_type, from_integers, integers};

/// How texts lie in the tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextLayout {
    /// Rows of equal length `[B, S]`.
    Rows,
    /// One behind the other `[tokens]`, with their borders as an input.
    Joined,
}

/// `NGramHashMapping` and `VarlenNGramHashMapping` of domain `com.microsoft`.
///
/// Inputs: tokens `[B, S]` or `[tokens]`, a factor for each place of an n-gram, the number of values of each head,
/// borders `[B + 1]` of joined texts, the tokens before the first ones `[B, N − 1]`, what is added to the values of each
/// head, the token that ends a text, and segments of the tokens (and of those before joined ones). Outputs: values
/// `[…, (N − 1) · heads]` for n-grams of 2 to N tokens, the last `N − 1` tokens of each text, and their segments.
///
/// A value is the exclusive or of products, which wrap, modulo the head's number. Tokens of other segments, and those
/// up to an end with `reset_on_eos`, count as the end, or as the padding where no end is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NGramHashMapping {
    /// How texts lie.
    pub layout: TextLayout,
    /// Tokens of the longest n-gram.
    pub longest: usize,
    /// Values for the n-grams of one length.
    pub heads: usize,
    /// Token before the first one.
    pub padding: i64,
    /// True if nothing before an end counts.
    pub resets: bool,
    outputs: usize,
}

/// Most values of a token.
const MAX_VALUES: usize = 1 << 20;

type ParsedMapping = Result<Box<dyn Operator>, OpError>;

/// Numbers that all texts share.
struct HashNumbers {
    factors: Vec<i128>,
    sizes: Vec<i128>,
    offsets: Option<Vec<i128>>,
    /// Token in the place of those that do not count.
    nothing: i128,
    /// Token before which nothing counts.
    end: Option<i128>,
    dtype: DataType,
}

/// A text with the tokens before it, and their segments.
struct HashedText {
    tokens: Vec<i128>,
    segments: Option<Vec<i128>>,
    /// Whether segments of the tokens before it are known.
    has_past_segments: bool,
}

impl HashedText {
    /// For each token behind the first `before`, the last place that does not count; none where all do.
    fn borders(&self, before: usize, end: Option<i128>) -> Vec<Option<usize>> {
        let mut last = None;
        let mut all = Vec::with_capacity(self.tokens.len() - before);
        for at in 1..self.tokens.len() {
            let ends = end == Some(self.tokens[at - 1]);
            let known = at > before || self.has_past_segments;
            let differs = self.segments.as_ref().is_some_and(|all| all[at] != all[at - 1]);
            if ends || known && differs {
                last = Some(at - 1);
            }
            if at >= before {
                all.push(last);
            }
        }
        all
    }
}

impl NGramHashMapping {
    pub(super) fn parse_rows(context: &mut ParseContext<'_>) -> ParsedMapping {
        Self::parse(context, TextLayout::Rows)
    }

    pub(super) fn parse_joined(context: &mut ParseContext<'_>) -> ParsedMapping {
        if context.attributes.int_or("state_update_capacity", 0)? != 0 {
            return Err(OpError::new("attribute 'state_update_capacity' is known as 0 only"));
        }
        Self::parse(context, TextLayout::Joined)
    }

    fn parse(context: &mut ParseContext<'_>, layout: TextLayout) -> ParsedMapping {
        let mut number = |name: &'static str| -> Result<i64, OpError> {
            let found = context.attributes.int(name)?;
            found.ok_or_else(|| OpError::new(format!("attribute '{name}' is missing")))
        };
        let longest = bounds::length(number("max_ngram_size")?, "attribute 'max_ngram_size'")?;
        let heads = bounds::length(number("n_head_per_ngram")?, "attribute 'n_head_per_ngram'")?;
        let padding = number("pad_id")?;
        let resets = context.attributes.flag("reset_on_eos", false)?;
        let values = longest.saturating_sub(1).checked_mul(heads);
        if longest < 2 || heads == 0 || values.is_none_or(|values| values > MAX_VALUES) {
            let text = format!("n-grams of up to {longest} tokens with {heads} heads each");
            return Err(OpError::new(text));
        }
        let outputs = context.outputs;
        Ok(Box::new(Self { layout, longest, heads, padding, resets, outputs }))
    }

    fn values(&self) -> usize {
        (self.longest - 1) * self.heads
    }

    /// Position of an input that both have, by that of the first one.
    fn input(&self, at: usize) -> usize {
        at + usize::from(self.layout == TextLayout::Joined)
    }

    fn numbers(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<HashNumbers, OpError> {
        let (factors, sizes) = (integers(inputs.required(1)?)?, integers(inputs.required(2)?)?);
        if factors.len() < self.longest || sizes.len() != self.values() {
            let (found, expected) = ([factors.len(), sizes.len()], [self.longest, self.values()]);
            let text = format!("{found:?} factors and sizes of heads, expected {expected:?}");
            return Err(OpError::new(text));
        }
        if let Some(size) = sizes.iter().find(|size| **size <= 0) {
            return Err(OpError::new(format!("a head has {size} values")));
        }
        let offsets = inputs.optional(self.input(4)).map(integers).transpose()?;
        if let Some(found) = offsets.as_ref().filter(|all| all.len() != sizes.len()) {
            let expected = sizes.len();
            return Err(OpError::new(format!("{} offsets of {expected} heads", found.len())));
        }
        let end = match inputs.optional(self.input(5)).map(integers).transpose()?.as_deref() {
            None => None,
            Some(&[end]) => Some(end),
            Some(all) => return Err(OpError::new(format!("{} ends, expected one", all.len()))),
        };
        let nothing = end.unwrap_or(i128::from(self.padding));
        let dtype = inputs.required(0)?.dtype();
        let end = end.filter(|_| self.resets);
        Ok(HashNumbers { factors, sizes, offsets, nothing, end, dtype })
    }

    /// Texts with the tokens before them.
    fn texts(
        &self,
        inputs: OperatorInputs<'_, Tensor>,
        numbers: &HashNumbers,
    ) -> Result<Vec<HashedText>, OpError> {
        let (ids, before) = (inputs.required(0)?, self.longest - 1);
        let borders = self.borders(ids, inputs)?;
        let batch = borders.len() - 1;
        let past = |at: usize| -> Result<Option<Vec<i128>>, OpError> {
            match inputs.optional(at) {
                Some(past) if past.shape() != [batch, before] => {
                    let (found, expected) = (past.shape(), [batch, before]);
                    let text = format!("input {at} has shape {found:?}, expected {expected:?}");
                    Err(OpError::new(text))
                }
                past => past.map(integers).transpose(),
            }
        };
        let past_ids = past(self.input(3))?;
        let past_ids = past_ids.unwrap_or_else(|| vec![numbers.nothing; batch * before]);
        let segments = inputs.optional(self.input(6)).map(integers).transpose()?;
        let tokens = integers(ids)?;
        if segments.as_ref().is_some_and(|all| all.len() != tokens.len()) {
            return Err(OpError::new(format!("segments of other than {} tokens", tokens.len())));
        }
        let past_segments =
            if self.layout == TextLayout::Joined { past(self.input(7))? } else { None };
        let text = |(row, span): (usize, &[usize])| {
            let own = row * before..(row + 1) * before;
            let segments = segments.as_ref().map(|all| {
                let first = all.get(span[0]).copied().unwrap_or(0);
                let begun = past_segments.as_ref().map(|all| all[own.clone()].to_vec());
                let begun = begun.unwrap_or_else(|| vec![first; before]);
                [&begun[..], &all[span[0]..span[1]]].concat()
            });
            let tokens = [&past_ids[own.clone()], &tokens[span[0]..span[1]]].concat();
            HashedText { tokens, segments, has_past_segments: past_segments.is_some() }
        };
        Ok(borders.windows(2).enumerate().map(text).collect())
    }

    /// Places at which texts begin and end.
    fn borders(
        &self,
        ids: &Tensor,
        inputs: OperatorInputs<'_, Tensor>,
    ) -> Result<Vec<usize>, OpError> {
        match (self.layout, ids.shape()) {
            (TextLayout::Rows, &[batch, length]) => Ok((0..=batch).map(|at| at * length).collect()),
            (TextLayout::Joined, &[tokens]) => {
                let given = inputs.required(3)?.to_i64_vec()?;
                let borders = bounds::lengths(&given, "a border")?;
                let sound = borders.first() == Some(&0)
                    && borders.last() == Some(&tokens)
                    && borders.len() > 1
                    && borders.is_sorted_by(|a, b| a < b);
                match sound {
                    true => Ok(borders),
                    false => {
                        let borders = bounds::listed(&given);
                        Err(OpError::new(format!("borders {borders} of {tokens} tokens")))
                    }
                }
            }
            (_, shape) => Err(OpError::new(format!("tokens of {} axes", shape.len()))),
        }
    }

    /// Values of all tokens of a text.
    fn hashes(&self, text: &HashedText, of: &HashNumbers, to: &mut Vec<i128>) {
        let before = self.longest - 1;
        for (at, border) in text.borders(before, of.end).into_iter().enumerate() {
            let mut mix = 0;
            for place in 0..self.longest {
                let source = before + at - place;
                let counts = border.is_none_or(|border| source > border);
                let token = if counts { text.tokens[source] } else { of.nothing };
                mix ^= wrapped(token.wrapping_mul(of.factors[place]), of.dtype);
                if place > 0 {
                    let own = (place - 1) * self.heads..place * self.heads;
                    let values = of.sizes[own.clone()].iter().map(|size| mix.rem_euclid(*size));
                    let added = |(head, value): (usize, i128)| {
                        let offset = of.offsets.as_ref().map_or(0, |all| all[own.start + head]);
                        wrapped(value + offset, of.dtype)
                    };
                    to.extend(values.enumerate().map(added));
                }
            }
        }
    }
}

/// A number as its type holds it.
fn wrapped(value: i128, dtype: DataType) -> i128 {
    let bits = if dtype == DataType::Int32 { 96 } else { 64 };
    (value << bits) >> bits
}

fn is_token(dtype: DataType) -> bool {
    matches!(dtype, DataType::Int32 | DataType::Int64)
}

impl Operator for NGramHashMapping {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let ids = inputs.required(0)?;
        expect_type("the tokens", ids.dtype, is_token, "INT32 or INT64")?;
        let unknown = vec![Dim::Unknown; if self.layout == TextLayout::Rows { 2 } else { 1 }];
        let mut shape = ids.shape.clone().unwrap_or_else(|| unknown.clone());
        if shape.len() != unknown.len() {
            let (found, expected) = (shape.len(), unknown.len());
            return Err(OpError::new(format!("tokens of {found} axes, expected {expected}")));
        }
        let batch = match self.layout {
            TextLayout::Rows => shape[0].clone(),
            TextLayout::Joined => Dim::Unknown,
        };
        shape.push(Dim::Known(self.values()));
        let last = vec![batch, Dim::Known(self.longest - 1)];
        let mut facts = vec![Fact::new(ids.dtype, shape), Fact::new(ids.dtype, last.clone())];
        if self.outputs > 2 {
            inputs.required(self.input(6))?;
            facts.push(Fact::new(DataType::Int32, last));
        }
        Ok(facts)
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let ids = inputs.required(0)?;
        expect_type("the tokens", ids.dtype(), is_token, "INT32 or INT64")?;
        let numbers = self.numbers(inputs)?;
        let texts = self.texts(inputs, &numbers)?;
        let before = self.longest - 1;
        let shape = [ids.shape(), &[self.values()]].concat();
        let mut all = Vec::with_capacity(bounds::bounded(ids.dtype(), &shape)?);
        texts.iter().for_each(|text| self.hashes(text, &numbers, &mut all));
        let last = |all: &[i128]| all[all.len() - before..].to_vec();
        let of_texts = [texts.len(), before];
        let tokens: Vec<i128> = texts.iter().flat_map(|text| last(&text.tokens)).collect();
        let mut results = vec![
            from_integers(ids.dtype(), &shape, &all)?,
            from_integers(ids.dtype(), &of_texts, &tokens)?,
        ];
        if self.outputs > 2 {
            inputs.required(self.input(6))?;
            let segments = texts.iter().filter_map(|text| text.segments.as_ref());
            let segments: Vec<i128> = segments.flat_map(|all| last(all)).collect();
            results.push(from_integers(DataType::Int32, &of_texts, &segments)?);
        }
        Ok(results)
    }
}

#[cfg(test)]
mod tests {
    use galatea_tensor::Tensor;

    use crate::attribute::Attributes;
    use crate::ops::testing::{int, run, tensor};

    const NAME: &str = "com.microsoft:NGramHashMapping";

    fn list(more: &[(&str, i64)]) -> Attributes {
        let own = [("max_ngram_size", 3), ("n_head_per_ngram", 1), ("pad_id", 0)];
        let all = own.iter().chain(more);
        all.map(|&(name, value)| (name.to_owned(), int(value))).collect()
    }

    // Expected values are those of ONNX Runtime.
    #[test]
    fn n_grams_have_values_by_their_tokens() {
        let ids = tensor(&[1, 3], &[2_i64, 4, 1]);
        let factors = Tensor::vector(vec![3_i64, 5, 7]);
        let sizes = Tensor::vector(vec![100_i64, 11]);
        let past = tensor(&[1, 2], &[9_i64, 4]);
        let end_first = tensor(&[1, 2], &[4_i64, 9]);
        let offsets = Tensor::vector(vec![1000_i64, 2000]);
        let (four, five) = (Tensor::scalar(4_i64), Tensor::scalar(5_i64));
        let segments = tensor(&[1, 3], &[0_i32, 1, 1]);
        let reset: &[(&str, i64)] = &[("reset_on_eos", 1)];
        for (more, past, offsets, end, segments, expected) in [
            (&[][..], None, None, None, None, [6_i64, 6, 6, 6, 23, 3]),
            (&[], Some(&past), None, None, None, [18, 1, 6, 4, 23, 3]),
            (&[], None, Some(&offsets), None, None, [1006, 2006, 1006, 2006, 1023, 2003]),
            (&[], None, None, Some(&four), None, [18, 3, 6, 4, 23, 3]),
            (reset, None, None, Some(&four), None, [18, 3, 6, 4, 23, 0]),
            (reset, Some(&end_first), None, Some(&four), None, [43, 0, 6, 2, 23, 0]),
            (&[], None, None, None, Some(&segments), [6, 6, 12, 1, 23, 1]),
            (&[], None, None, Some(&five), Some(&segments), [31, 5, 21, 10, 23, 8]),
            (&[], Some(&past), None, Some(&five), Some(&segments), [18, 1, 21, 10, 23, 8]),
        ] {
            let inputs = [Some(&ids), Some(&factors), Some(&sizes), past, offsets, end, segments];
            let found = run(NAME, 1, &list(more), &inputs, 2).unwrap();
            assert_eq!(found[0], tensor(&[1, 3, 2], &expected));
            assert_eq!(found[1], tensor(&[1, 2], &[4_i64, 1]));
        }
    }

    #[test]
    fn joined_texts_do_not_know_each_other() {
        let ids = Tensor::vector(vec![2_i64, 4, 1, 2, 4]);
        let factors = Tensor::vector(vec![3_i64, 5, 7]);
        let sizes = Tensor::vector(vec![100_i64, 11]);
        let name = "com.microsoft:VarlenNGramHashMapping";
        let inputs = |borders| [Some(&ids), Some(&factors), Some(&sizes), Some(borders)];
        let borders = Tensor::vector(vec![0_i32, 3, 5]);
        let found = run(name, 1, &list(&[]), &inputs(&borders), 2).unwrap();
        let expected = [6_i64, 6, 6, 6, 23, 3, 6, 6, 6, 6];
        assert_eq!(found[0], tensor(&[5, 2], &expected));
        assert_eq!(found[1], tensor(&[2, 2], &[4_i64, 1, 2, 4]));
        for wrong in [vec![0_i32, 3], vec![0, 3, 3, 5], vec![1, 5], vec![5], vec![0, -1, 5]] {
            let wrong = Tensor::vector(wrong);
            let inputs = [Some(&ids), Some(&factors), Some(&sizes), Some(&wrong)];
            assert!(run(name, 1, &list(&[]), &inputs, 2).is_err());
        }
        let none = Tensor::vector(vec![100_i64, 0]);
        let inputs = [Some(&ids), Some(&factors), Some(&none), Some(&borders)];
        assert!(run(name, 1, &list(&[]), &inputs, 2).is_err());
        assert!(run(NAME, 1, &list(&[("n_head_per_ngram", 0)]), &inputs[..3], 2).is_err());
    }
}
