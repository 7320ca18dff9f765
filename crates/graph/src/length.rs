//! Arithmetic of lengths that are known by name: sums, differences, products and exact quotients of
//! symbols, in a form that is the same for equal lengths.
//!
//! A length such as `past+sequence` is itself a [`Dim::Symbol`] whose name is its text: terms in
//! order, each a number times names. Names that other tools gave (`s1 + s2*4`) are read the same
//! way, so that equal sums meet however they are written. A name that is no such text is one atom.

use std::fmt::Write as _;

use galatea_tensor::OrderedMap;

use crate::fact::Dim;
pub(crate) use crate::fact::{number, unless_negative};

/// Expressions of more terms are not followed: nothing in a model needs them, and their text would
/// grow with every node.
const MAX_TERMS: usize = 8;

/// The names that a term multiplies, sorted.
type TermNames = Vec<String>;

/// A polynomial of names with integer factors. Terms whose factor is 0 do not occur.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Length(OrderedMap<TermNames, i64>);

impl Length {
    fn number(value: i64) -> Self {
        let mut length = Self::default();
        length.put(Vec::new(), value);
        length
    }

    fn atom(name: &str) -> Self {
        let mut length = Self::default();
        length.put(vec![name.to_owned()], 1);
        length
    }

    fn put(&mut self, names: TermNames, factor: i64) {
        if factor != 0 {
            self.0.insert(names, factor);
        }
    }

    fn of(dim: &Dim) -> Option<Self> {
        match dim {
            Dim::Known(len) => i64::try_from(*len).ok().map(Self::number),
            Dim::Symbol(name) => Some(Self::of_name(name)),
            Dim::Unknown => None,
        }
    }

    fn of_name(name: &str) -> Self {
        LengthParser::parse(name).unwrap_or_else(|| Self::atom(name))
    }

    fn plus(&self, other: &Self, sign: i64) -> Option<Self> {
        let mut sum = self.clone();
        for (names, factor) in &other.0 {
            let before = sum.0.remove(names).unwrap_or(0);
            sum.put(names.clone(), before.checked_add(factor.checked_mul(sign)?)?);
        }
        (sum.0.len() <= MAX_TERMS).then_some(sum)
    }

    fn times(&self, other: &Self) -> Option<Self> {
        let mut product = Self::default();
        for (left, a) in &self.0 {
            for (right, b) in &other.0 {
                let mut names = [left.as_slice(), right.as_slice()].concat();
                names.sort_unstable();
                let before = product.0.remove(&names).unwrap_or(0);
                product.put(names, before.checked_add(a.checked_mul(*b)?)?);
            }
        }
        (product.0.len() <= MAX_TERMS).then_some(product)
    }

    /// Divides by `divisor`; returns `None` if the quotient is no expression. A divisor of several
    /// terms only finds a quotient of one term.
    fn over(&self, divisor: &Self) -> Option<Self> {
        let (below, by) = divisor.0.first_key_value()?;
        if divisor.0.len() == 1 {
            let mut quotient = Self::default();
            for (names, factor) in &self.0 {
                let (rest, factor) = term_over((names, *factor), (below, *by))?;
                quotient.put(rest, factor);
            }
            return Some(quotient);
        }
        self.0.iter().find_map(|(names, factor)| {
            let (rest, factor) = term_over((names, *factor), (below, *by))?;
            let mut quotient = Self::default();
            quotient.put(rest, factor);
            (quotient.times(divisor)? == *self).then_some(quotient)
        })
    }

    /// The expression as a length, or as the symbol of a negative number.
    fn into_dim(self) -> Dim {
        let mut terms = self.0.iter();
        match (terms.next(), terms.next()) {
            (None, _) => Dim::Known(0),
            (Some((names, &factor)), None) if names.is_empty() => number(factor),
            (Some((names, 1)), None) if names.len() == 1 => Dim::Symbol(names[0].as_str().into()),
            _ => Dim::Symbol(self.text().into()),
        }
    }

    /// The text that [`LengthParser`] reads back.
    fn text(&self) -> String {
        let mut text = String::new();
        for (names, &factor) in &self.0 {
            if factor < 0 {
                text.push('-');
            } else if !text.is_empty() {
                text.push('+');
            }
            let size = factor.unsigned_abs();
            if size != 1 || names.is_empty() {
                let _ = write!(text, "{size}");
                text.push_str(if names.is_empty() { "" } else { "*" });
            }
            for (at, name) in names.iter().enumerate() {
                text.push_str(if at > 0 { "*" } else { "" });
                if is_plain(name) {
                    text.push_str(name);
                } else {
                    let _ = write!(text, "'{}'", name.replace('\'', "\""));
                }
            }
        }
        text
    }
}

/// The quotient of two terms, where it is exact.
fn term_over(above: (&TermNames, i64), below: (&TermNames, i64)) -> Option<(TermNames, i64)> {
    let mut rest = above.0.clone();
    for name in below.0 {
        let at = rest.iter().position(|one| one == name)?;
        rest.remove(at);
    }
    // No factor is 0, and -1 has no overflowing multiple here: numbers come from lengths.
    (above.1.checked_rem(below.1)? == 0).then(|| (rest, above.1 / below.1))
}

/// Returns whether a name is one word, so that it stands for itself inside a text.
fn is_plain(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.')
}

/// Reads `2*a+b*(c-1)`; nesting is bounded by the length of the text, which is bounded too.
struct LengthParser<'a> {
    rest: &'a str,
    depth: usize,
}

impl<'a> LengthParser<'a> {
    const MAX_TEXT: usize = 256;
    const MAX_DEPTH: usize = 8;

    fn parse(text: &'a str) -> Option<Length> {
        if is_plain(text) {
            return Some(Length::atom(text));
        }
        if text.len() > Self::MAX_TEXT {
            return None;
        }
        let mut parser = Self { rest: text, depth: 0 };
        let length = parser.sum()?;
        parser.skip();
        parser.rest.is_empty().then_some(length)
    }

    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, wanted: char) -> bool {
        self.skip();
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn sum(&mut self) -> Option<Length> {
        let mut sum = if self.take('-') {
            Length::default().plus(&self.product()?, -1)?
        } else {
            self.product()?
        };
        loop {
            let sign = if self.take('+') {
                1
            } else if self.take('-') {
                -1
            } else {
                return Some(sum);
            };
            sum = sum.plus(&self.product()?, sign)?;
        }
    }

    fn product(&mut self) -> Option<Length> {
        let mut product = self.factor()?;
        while self.take('*') {
            product = product.times(&self.factor()?)?;
        }
        Some(product)
    }

    fn factor(&mut self) -> Option<Length> {
        if self.take('(') {
            self.depth += 1;
            if self.depth > Self::MAX_DEPTH {
                return None;
            }
            let inner = self.sum()?;
            self.depth -= 1;
            return self.take(')').then_some(inner);
        }
        if self.take('\'') {
            let (name, rest) = self.rest.split_once('\'')?;
            self.rest = rest;
            return Some(Length::atom(name));
        }
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        let end = self.rest.find(|c| !is_word(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        if is_plain(word) {
            Some(Length::atom(word))
        } else {
            word.parse().ok().map(Length::number)
        }
    }
}

impl Dim {
    /// A named length. A name that is an expression of others, such as `past + sequence`, is put in
    /// the form that inference gives to the same sum.
    #[must_use]
    pub fn symbol(name: &str) -> Self {
        canonical(name)
    }

    /// The names that the length is made of: one for `batch`, two for `past+sequence`.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        names(self)
    }

    /// The number that the length is when its names stand for these numbers; `None` where one is
    /// not given or the result is no length.
    #[must_use]
    pub fn evaluate(&self, number: &dyn Fn(&str) -> Option<usize>) -> Option<usize> {
        evaluate(self, number)
    }
}

fn combine(a: &Dim, b: &Dim, with: impl Fn(&Length, &Length) -> Option<Length>) -> Dim {
    Length::of(a)
        .zip(Length::of(b))
        .and_then(|(a, b)| with(&a, &b))
        .map_or(Dim::Unknown, Length::into_dim)
}

/// Returns whether two numbers are equal, where that is certain: a length that is a sum of names
/// with positive factors is no negative number.
pub(crate) fn equal(a: &Dim, b: &Dim) -> Option<bool> {
    let difference = Length::of(a)?.plus(&Length::of(b)?, -1)?;
    if difference.0.is_empty() {
        return Some(true);
    }
    let number = difference.0.get(&Vec::new()).copied().unwrap_or(0);
    let names = || difference.0.iter().filter(|(names, _)| !names.is_empty());
    let never = names().next().is_none()
        || (number > 0 && names().all(|(_, &factor)| factor > 0))
        || (number < 0 && names().all(|(_, &factor)| factor < 0));
    never.then_some(false)
}

/// The sum of two lengths.
pub(crate) fn plus(a: &Dim, b: &Dim) -> Dim {
    combine(a, b, |a, b| a.plus(b, 1))
}

/// The difference of two lengths; the symbol of a negative number where that is certain.
pub(crate) fn minus(a: &Dim, b: &Dim) -> Dim {
    combine(a, b, |a, b| a.plus(b, -1))
}

/// The product of two lengths.
pub(crate) fn times(a: &Dim, b: &Dim) -> Dim {
    combine(a, b, Length::times)
}

/// The quotient of two lengths, where it is exact whatever the symbols stand for.
pub(crate) fn over(a: &Dim, b: &Dim) -> Dim {
    combine(a, b, Length::over)
}

/// The name of a symbol in the form in which equal lengths have equal names.
pub(crate) fn canonical(name: &str) -> Dim {
    if is_plain(name) {
        return Dim::Symbol(name.into());
    }
    match LengthParser::parse(name).map(Length::into_dim) {
        Some(dim @ (Dim::Symbol(_) | Dim::Known(_))) => unless_negative(dim),
        _ => Dim::Symbol(name.into()),
    }
}

/// The same length over other names; unknown where a name has no other.
pub(crate) fn rename(dim: &Dim, other: impl Fn(&str) -> Option<String>) -> Dim {
    if let Dim::Known(_) = dim {
        return dim.clone();
    }
    let Some(length) = Length::of(dim) else { return Dim::Unknown };
    let mut renamed = Length::default();
    for (names, factor) in length.0 {
        let names: Option<TermNames> = names.iter().map(|name| other(name)).collect();
        let Some(mut names) = names else { return Dim::Unknown };
        names.sort_unstable();
        renamed.put(names, factor);
    }
    renamed.into_dim()
}

/// The names that a length is made of.
pub(crate) fn names(dim: &Dim) -> Vec<String> {
    let Some(length) = Length::of(dim) else { return Vec::new() };
    let mut names: Vec<String> = length.0.into_keys().flatten().collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The number that a length is, from the numbers of its names.
pub(crate) fn evaluate(dim: &Dim, number: &dyn Fn(&str) -> Option<usize>) -> Option<usize> {
    let mut sum = 0_i64;
    for (names, factor) in Length::of(dim)?.0 {
        let mut term = factor;
        for name in &names {
            term = term.checked_mul(i64::try_from(number(name)?).ok()?)?;
        }
        sum = sum.checked_add(term)?;
    }
    usize::try_from(sum).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dim(name: &str) -> Dim {
        Dim::Symbol(name.into())
    }

    #[test]
    fn equal_sums_have_one_name_however_they_are_written() {
        let names = ["past + sequence", "sequence+past", "(sequence) + 2*past - past"];
        for name in names {
            assert_eq!(canonical(name), dim("past+sequence"), "{name}");
        }
        assert_eq!(plus(&dim("sequence"), &dim("past")), canonical("past + sequence"));
        assert_eq!(minus(&canonical("past + sequence"), &dim("past")), dim("sequence"));
        assert_eq!(canonical("2*3"), Dim::Known(6));
    }

    #[test]
    fn products_divide_again() {
        let batch = dim("batch");
        let sequence = dim("sequence");
        let all = times(&times(&batch, &sequence), &Dim::Known(768));
        let rest = over(&over(&all, &times(&batch, &sequence)), &Dim::Known(64));
        assert_eq!(rest, Dim::Known(12));
        assert_eq!(over(&all, &dim("other")), Dim::Unknown);
        assert_eq!(over(&all, &Dim::Known(5)), Dim::Unknown);
        assert_eq!(over(&Dim::Known(4), &Dim::Known(0)), Dim::Unknown);
        let rows = times(&plus(&batch, &Dim::Known(1)), &sequence);
        assert_eq!(over(&rows, &sequence), canonical("batch+1"));
        let whole = times(&rows, &Dim::Known(12));
        assert_eq!(over(&whole, &times(&rows, &Dim::Known(4))), Dim::Known(3));
    }

    #[test]
    fn other_names_are_atoms() {
        let odd = dim("model/layer-0.output.1");
        assert_eq!(canonical("a b"), dim("a b"));
        let sum = plus(&odd, &Dim::Known(2));
        assert_eq!(minus(&sum, &Dim::Known(2)), Dim::Symbol("model/layer-0.output.1".into()));
    }

    #[test]
    fn names_stand_for_numbers() {
        let total = canonical("2*past + sequence - 1");
        assert_eq!(total.names(), ["past", "sequence"]);
        let number = |name: &str| Some(if name == "past" { 7 } else { 3 });
        assert_eq!(total.evaluate(&number), Some(16));
        assert_eq!(total.evaluate(&|name| (name == "past").then_some(7)), None);
        assert_eq!(total.evaluate(&|_| Some(0)), None, "lengths are not negative");
    }

    #[test]
    fn numbers_are_equal_or_not_where_that_is_certain() {
        let batch = dim("batch");
        let less = number(-1);
        assert_eq!(equal(&less, &less), Some(true));
        assert_eq!(equal(&batch, &less), Some(false), "a length is not negative");
        assert_eq!(equal(&batch, &Dim::Known(1)), None);
        assert_eq!(equal(&canonical("batch+1"), &batch), Some(false));
        assert_eq!(equal(&canonical("2-batch"), &less), None);
    }

    #[test]
    fn negative_and_huge_lengths_are_no_lengths() {
        let less = minus(&Dim::Known(1), &Dim::Known(2));
        assert_eq!(less, dim("-1"));
        assert_eq!(plus(&less, &Dim::Known(3)), Dim::Known(2));
        assert_eq!(unless_negative(less), Dim::Unknown);
        let huge = times(&Dim::Known(usize::MAX >> 1), &Dim::Known(4));
        assert_eq!(huge, Dim::Unknown);
        assert_eq!(times(&Dim::Unknown, &Dim::Known(2)), Dim::Unknown);
        let nested = format!("{}a{}", "(".repeat(100), ")".repeat(100));
        assert_eq!(canonical(&nested), dim(&nested));
    }
}
