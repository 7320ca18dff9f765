//! Types and constants in a program's text.

use galatea_tensor::{ByteString, Tensor, checked_elements};

use super::CompiledResult;
use super::parser::{MAX_DEPTH, MilTextParser};
use super::tokens::MilToken;
use crate::coreml::error::CoreMlError;
use crate::coreml::mil::{MilElement, MilTensorType, MilType, MilValue};

/// The elements of a constant as they are written.
struct WrittenElements {
    element: MilElement,
    floats: Vec<f64>,
    integers: Vec<i128>,
    bools: Vec<bool>,
    texts: Vec<ByteString>,
}

impl MilTextParser<'_, '_> {
    /// Returns whether a type comes next.
    pub(super) fn type_follows(&self) -> bool {
        let MilToken::Word(word) = self.tokens.peek() else { return false };
        matches!(*word, "tensor" | "list" | "tuple" | "dict" | "state")
            || MilElement::named(word).is_some()
    }

    /// Reads a type.
    ///
    /// # Errors
    /// Fails when something else stands there, or types are nested too deeply.
    pub(super) fn value_type(&mut self, depth: usize) -> CompiledResult<MilType> {
        if depth > MAX_DEPTH {
            return Err(CoreMlError::invalid(format!(
                "types are nested more than {MAX_DEPTH} deep"
            )));
        }
        let line = self.tokens.line();
        let word = self.tokens.word("a type")?;
        if let Some(element) = MilElement::named(word) {
            return Ok(MilType::tensor(element, &[]));
        }
        if !matches!(word, "tensor" | "list" | "tuple" | "dict" | "state") {
            let text = format!("there is no type '{word}'");
            return Err(CoreMlError::invalid(text).at(format!("line {line}")));
        }
        self.tokens.expect('<')?;
        let found = match word {
            "tensor" => MilType::Tensor(self.tensor_type()?),
            "list" => {
                let item = self.value_type(depth + 1)?;
                let length = if self.tokens.skip(',')? { self.length()? } else { None };
                MilType::List(Box::new(item), length)
            }
            "tuple" => {
                let mut items = Vec::new();
                while *self.tokens.peek() != MilToken::Mark('>') {
                    items.push(self.value_type(depth + 1)?);
                    self.tokens.skip(',')?;
                }
                MilType::Tuple(items)
            }
            "dict" => {
                let key = self.value_type(depth + 1)?;
                self.tokens.expect(',')?;
                MilType::Dictionary(Box::new((key, self.value_type(depth + 1)?)))
            }
            _ => match self.value_type(depth + 1)? {
                MilType::Tensor(held) => MilType::State(held),
                other => {
                    let text = format!("a state of {other}, expected one of a tensor");
                    return Err(CoreMlError::invalid(text).at(format!("line {line}")));
                }
            },
        };
        self.tokens.expect('>')?;
        Ok(found)
    }

    fn tensor_type(&mut self) -> CompiledResult<MilTensorType> {
        let line = self.tokens.line();
        let word = self.tokens.word("a type of elements")?;
        let Some(element) = MilElement::named(word) else {
            let text = format!("there is no type of elements '{word}'");
            return Err(CoreMlError::invalid(text).at(format!("line {line}")));
        };
        self.tokens.expect(',')?;
        self.tokens.expect('[')?;
        let mut shape = Some(Vec::new());
        while !self.tokens.skip(']')? {
            if self.tokens.skip('*')? {
                self.tokens.skip('?')?;
                shape = None;
            } else {
                let length = self.length()?;
                if let Some(lengths) = &mut shape {
                    lengths.push(length);
                }
            }
            if *self.tokens.peek() != MilToken::Mark(']') {
                self.tokens.expect(',')?;
            }
        }
        if shape.as_ref().is_some_and(|lengths| lengths.len() > MAX_DEPTH) {
            let text = format!("more than {MAX_DEPTH} axes");
            return Err(CoreMlError::invalid(text).at(format!("line {line}")));
        }
        Ok(MilTensorType { element, shape })
    }

    /// A length; `None` is one that is known in a run only.
    fn length(&mut self) -> CompiledResult<Option<usize>> {
        if self.tokens.skip('?')? {
            return Ok(None);
        }
        let found = match self.tokens.peek() {
            MilToken::Number(number) => number.parse().ok(),
            _ => None,
        };
        let Some(length) = found else { return Err(self.tokens.unexpected("a length")) };
        self.tokens.take()?;
        Ok(Some(length))
    }

    /// Reads a constant with its type, such as `tensor<int32, [2]>([1, 2])`.
    ///
    /// # Errors
    /// Fails when the elements are not those of the type.
    pub(super) fn value(&mut self, depth: usize) -> CompiledResult<MilValue> {
        let line = self.tokens.line();
        let stated = self.value_type(depth)?;
        self.tokens.expect('(')?;
        let found = self.of_type(&stated, depth).map_err(|error| match error.place() {
            "" => error.at(format!("line {line}")),
            _ => error,
        })?;
        self.tokens.expect(')')?;
        Ok(found)
    }

    /// A constant whose type may be left out, as inside of others.
    fn inner(&mut self, stated: &MilType, depth: usize) -> CompiledResult<MilValue> {
        match self.type_follows() {
            true => self.value(depth),
            false => self.of_type(stated, depth),
        }
    }

    fn of_type(&mut self, stated: &MilType, depth: usize) -> CompiledResult<MilValue> {
        if depth > MAX_DEPTH {
            return Err(CoreMlError::invalid(format!(
                "constants are nested more than {MAX_DEPTH} deep"
            )));
        }
        match stated {
            MilType::Tensor(found) => self.tensor(found),
            MilType::List(item, _) => {
                let close = self.opened()?;
                let mut items = Vec::new();
                while !self.tokens.skip(close)? {
                    items.push(self.inner(item, depth + 1)?);
                    self.tokens.skip(',')?;
                }
                Ok(MilValue::List(items))
            }
            MilType::Tuple(types) => {
                let close = self.opened()?;
                let mut items = Vec::new();
                for item in types {
                    items.push(self.inner(item, depth + 1)?);
                    self.tokens.skip(',')?;
                }
                self.tokens.expect(close)?;
                Ok(MilValue::Tuple(items))
            }
            MilType::Dictionary(of) => {
                self.tokens.expect('{')?;
                let mut pairs = Vec::new();
                while !self.tokens.skip('}')? {
                    self.tokens.expect('{')?;
                    let key = self.inner(&of.0, depth + 1)?;
                    self.tokens.expect(',')?;
                    pairs.push((key, self.inner(&of.1, depth + 1)?));
                    self.tokens.expect('}')?;
                    self.tokens.skip(',')?;
                }
                Ok(MilValue::Dictionary(pairs))
            }
            MilType::State(_) => Err(CoreMlError::invalid("a state cannot be a constant")),
        }
    }

    /// Takes the bracket that a list or a tuple begins with, and returns the one that ends it.
    fn opened(&mut self) -> CompiledResult<char> {
        for (open, close) in [('(', ')'), ('[', ']'), ('{', '}')] {
            if self.tokens.skip(open)? {
                return Ok(close);
            }
        }
        Err(self.tokens.unexpected("'('"))
    }

    fn tensor(&mut self, stated: &MilTensorType) -> CompiledResult<MilValue> {
        let element = stated.element;
        let shape: Option<Vec<usize>> =
            stated.shape.as_ref().and_then(|shape| shape.iter().copied().collect());
        let Some(shape) = shape else {
            return Err(CoreMlError::invalid(format!("a constant cannot have the type {stated}")));
        };
        if *self.tokens.peek() == MilToken::Word("BLOBFILE") {
            return self.blob(element, &shape);
        }
        let mut written = WrittenElements {
            element,
            floats: vec![],
            integers: vec![],
            bools: vec![],
            texts: vec![],
        };
        self.elements(&mut written, 0)?;
        written.tensor(&shape).map(|tensor| MilValue::Tensor(element, tensor))
    }

    /// A constant in a file of weights: `BLOBFILE(path = …, offset = …)`.
    fn blob(&mut self, element: MilElement, shape: &[usize]) -> CompiledResult<MilValue> {
        self.tokens.take()?;
        self.tokens.expect('(')?;
        let mut file = None;
        let mut offset = None;
        while !self.tokens.skip(')')? {
            let word = self.tokens.word("'path' or 'offset'")?;
            self.tokens.expect('=')?;
            let value = self.value(0)?;
            match (word, &value) {
                ("path", value) => file = value.as_text(),
                ("offset", MilValue::Tensor(_, tensor)) => {
                    offset =
                        tensor.to_i64_vec()?.first().and_then(|&found| u64::try_from(found).ok());
                }
                _ => return Err(CoreMlError::invalid(format!("a blob has no '{word}'"))),
            }
            self.tokens.skip(',')?;
        }
        let (Some(file), Some(offset)) = (file, offset) else {
            return Err(CoreMlError::invalid("a blob needs a path and an offset"));
        };
        let tensor = self.weights.read(&file, offset, element, shape)?;
        Ok(MilValue::Tensor(element, tensor))
    }

    /// Elements in brackets, nested as deeply as the shape has axes, or one without any.
    fn elements(&mut self, into: &mut WrittenElements, depth: usize) -> CompiledResult<()> {
        if depth > MAX_DEPTH {
            return Err(CoreMlError::invalid(format!(
                "elements are nested more than {MAX_DEPTH} deep"
            )));
        }
        if self.tokens.skip('[')? {
            while !self.tokens.skip(']')? {
                self.elements(into, depth + 1)?;
                if *self.tokens.peek() != MilToken::Mark(']') {
                    self.tokens.expect(',')?;
                }
            }
            return Ok(());
        }
        // An empty tensor may have nothing between its parentheses.
        if *self.tokens.peek() == MilToken::Mark(')') {
            return Ok(());
        }
        match into.push(self.tokens.peek()) {
            true => self.tokens.take().map(|_| ()),
            false => Err(self.tokens.unexpected(&format!("an element of {}", into.element))),
        }
    }
}

impl WrittenElements {
    /// Takes an element; returns false where the token is none of the type.
    fn push(&mut self, token: &MilToken<'_>) -> bool {
        let written = match token {
            MilToken::Text(text) if self.element == MilElement::String => {
                self.texts.push(ByteString::from(text.as_str()));
                return true;
            }
            MilToken::Word(word) | MilToken::Number(word) => *word,
            _ => return false,
        };
        match self.element {
            MilElement::String => false,
            MilElement::Bool => {
                let found = match written {
                    "true" | "1" => true,
                    "false" | "0" => false,
                    _ => return false,
                };
                self.bools.push(found);
                true
            }
            element if is_floating(element) => {
                let Some(found) = float(written, element == MilElement::Fp32) else { return false };
                self.floats.push(found);
                true
            }
            element => {
                let range = integer_range(element);
                let found = written.parse::<i128>().ok().filter(|found| range.contains(found));
                let Some(found) = found else { return false };
                self.integers.push(found);
                true
            }
        }
    }

    fn tensor(self, shape: &[usize]) -> CompiledResult<Tensor> {
        let expected = checked_elements(shape)?;
        let found = self.floats.len() + self.integers.len() + self.bools.len() + self.texts.len();
        if found != expected {
            let text = format!("{}{shape:?} has {expected} elements, found {found}", self.element);
            return Err(CoreMlError::invalid(text));
        }
        let dtype = self.element.stored_as();
        Ok(match self.element {
            MilElement::String => Tensor::from_vec(shape, self.texts)?,
            MilElement::Bool => Tensor::from_vec(shape, self.bools)?,
            MilElement::Uint64 => {
                let all =
                    self.integers.into_iter().map(|found| u64::try_from(found).unwrap_or(u64::MAX));
                Tensor::from_vec(shape, all.collect())?
            }
            element if is_floating(element) => {
                galatea_graph::converted(&Tensor::from_vec(shape, self.floats)?, dtype)?
            }
            _ => {
                let all =
                    self.integers.into_iter().map(|found| i64::try_from(found).unwrap_or(i64::MAX));
                galatea_graph::converted(&Tensor::from_vec::<i64>(shape, all.collect())?, dtype)?
            }
        })
    }
}

fn is_floating(element: MilElement) -> bool {
    element.stored_as().is_float()
        || matches!(element, MilElement::Float8E4M3Fn | MilElement::Float8E5M2)
}

/// The integers that an element holds.
fn integer_range(element: MilElement) -> std::ops::RangeInclusive<i128> {
    let bits = element.bits();
    let signed = matches!(
        element,
        MilElement::Int4
            | MilElement::Int8
            | MilElement::Int16
            | MilElement::Int32
            | MilElement::Int64
    );
    match signed {
        true => -(1_i128 << (bits - 1))..=(1_i128 << (bits - 1)) - 1,
        false => 0..=(1_i128 << bits) - 1,
    }
}

/// A number that is written as a decimal, as `inf` or `nan`, or with hexadecimal digits and a binary exponent.
fn float(written: &str, single: bool) -> Option<f64> {
    let (negative, magnitude) = match written.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, written.strip_prefix('+').unwrap_or(written)),
    };
    let found = match magnitude.strip_prefix("0x").or_else(|| magnitude.strip_prefix("0X")) {
        Some(digits) => hexadecimal(digits)?,
        None if single => f64::from(magnitude.parse::<f32>().ok()?),
        None => magnitude.parse().ok()?,
    };
    Some(if negative { -found } else { found })
}

/// The value of `1.8p-3` with hexadecimal digits: C's `%a`.
fn hexadecimal(digits: &str) -> Option<f64> {
    let (mantissa, exponent) = digits.split_once(['p', 'P']).unwrap_or((digits, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    // 13 digits behind the point are all that a double has.
    if whole.len() + fraction.len() > 15 || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let joined = u64::from_str_radix(&format!("{whole}{fraction}"), 16).ok()?;
    let behind = i32::try_from(4 * fraction.len()).ok()?;
    let power = exponent.parse::<i32>().ok()?.checked_sub(behind)?;
    // At most 60 bits, of which those that are set fit a double in every text that a compiler writes.
    #[allow(
        clippy::cast_precision_loss,
        clippy::as_conversions,
        reason = "the comment above says it"
    )]
    let joined = joined as f64;
    // In two steps, since one power may be below what a double has where the product is not.
    let half = power / 2;
    Some(joined * 2_f64.powi(half) * 2_f64.powi(power - half))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_all_forms() {
        assert_eq!(float("0x1.8p-3", true), Some(0.1875));
        assert_eq!(float("-0x1p+4", false), Some(-16.0));
        assert_eq!(float("0x1.4f8b58p-17", true), Some(f64::from(1e-5_f32)));
        assert_eq!(float("0x0.8p0", true), Some(0.5));
        assert_eq!(float("1e-05", true), Some(f64::from(1e-5_f32)));
        assert_eq!(float("-inf", true), Some(f64::NEG_INFINITY));
        assert!(float("nan", false).is_some_and(f64::is_nan));
        assert_eq!(float("0x1p-1074", false), Some(f64::from_bits(1)));
        assert_eq!(float("0xp3", true), None);
        assert_eq!(float("one", true), None);
    }

    #[test]
    fn integers_have_the_range_of_their_type() {
        assert_eq!(integer_range(MilElement::Int4), -8..=7);
        assert_eq!(integer_range(MilElement::Uint3), 0..=7);
        assert_eq!(integer_range(MilElement::Uint64), 0..=i128::from(u64::MAX));
    }
}
