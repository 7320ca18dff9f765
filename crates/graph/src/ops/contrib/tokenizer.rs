//! `Tokenizer`: words of texts.

use std::fmt;

use galatea_tensor::{ByteString, DataType, Tensor};
use regex_automata::hybrid::dfa;
use regex_automata::nfa::thompson;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, MatchKind};

use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds::bounded;
use crate::ops::text::rust_syntax;
use crate::ops::values::expect_type;

/// The most bytes of a compiled pattern.
const MAX_COMPILED_BYTES: usize = 4 << 20;
/// Bytes read behind the ends of matches for each byte of a text. More cost as a pattern's square of the text.
const MAX_READ_AGAIN: usize = 16;
/// Bytes that may be read behind the ends of matches of any text.
const FREE_READ_AGAIN: usize = 1 << 18;
/// Element in front of the words of a text.
const START: &str = "\u{2}";
/// Element behind the words of a text.
const END: &str = "\u{3}";

/// Division of a text into words.
#[derive(Debug)]
pub enum TokenizerRule {
    /// Every character is a word.
    Characters,
    /// Words are what stands between matches, of one pattern after the other.
    Separators(Vec<LongestPattern>),
    /// Words are the matches.
    Words(Box<LongestPattern>),
}

/// `Tokenizer` of domain `com.microsoft`.
///
/// Input: texts `[C]` or `[N, C]`. Output: their words `[…, the largest number of words]`, filled up behind with
/// the padding. The last axis has length 0 where no text has a word.
#[derive(Debug)]
pub struct WordTokenizer {
    /// True if an element marks the beginning of each text, and one its end.
    pub mark: bool,
    /// Element behind shorter texts.
    pub padding: ByteString,
    /// Characters that a word has at least.
    pub min_characters: usize,
    /// The division into words.
    pub rule: TokenizerRule,
}

impl WordTokenizer {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let attributes = &mut context.attributes;
        let missing = |name: &str| OpError::new(format!("attribute '{name}' is missing"));
        let mark = attributes.int("mark")?.ok_or_else(|| missing("mark"))? != 0;
        let padding = attributes.string("pad_value")?.ok_or_else(|| missing("pad_value"))?;
        let least = attributes.int("mincharnum")?.ok_or_else(|| missing("mincharnum"))?;
        let min_characters =
            usize::try_from(least).ok().filter(|&least| least > 0).ok_or_else(|| {
                OpError::new(format!("attribute 'mincharnum' is {least}, expected 1 or more"))
            })?;
        let expression = attributes.string("tokenexp")?;
        let separators = attributes.strings("separators")?;
        let rule = match (separators.as_deref(), expression) {
            (Some([]), _) => {
                return Err(OpError::new("attribute 'separators' has no values"));
            }
            (Some([empty]), _) if empty.as_bytes().is_empty() => TokenizerRule::Characters,
            (Some(all), _) => {
                let patterns = all.iter().map(|one| {
                    let text = one.as_str().ok_or_else(|| OpError::new("a separator is no UTF-8"));
                    LongestPattern::new(text?)
                });
                TokenizerRule::Separators(patterns.collect::<Result<_, OpError>>()?)
            }
            (None, Some(text)) => TokenizerRule::Words(Box::new(LongestPattern::new(&text)?)),
            (None, None) => {
                return Err(OpError::new("attributes 'separators' and 'tokenexp' are missing"));
            }
        };
        if matches!(rule, TokenizerRule::Characters) && min_characters > 1 {
            let text = format!("words of {min_characters} characters, where each character is one");
            return Err(OpError::new(text));
        }
        Ok(Box::new(Self { mark, padding: ByteString::from(padding), min_characters, rule }))
    }

    fn is_long(&self, word: &str) -> bool {
        word.chars().take(self.min_characters).count() == self.min_characters
    }
}

impl TokenizerRule {
    fn searches(&self) -> Vec<PatternSearch<'_>> {
        match self {
            Self::Characters => Vec::new(),
            Self::Separators(all) => all.iter().map(LongestPattern::search).collect(),
            Self::Words(pattern) => vec![pattern.search()],
        }
    }

    /// The words of a text, those that are too short left out.
    fn words<'t>(
        &self,
        text: &'t str,
        searches: &mut [PatternSearch<'_>],
        is_long: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<&'t str>, OpError> {
        match self {
            Self::Characters => Ok(text.split_inclusive(|_: char| true).collect()),
            Self::Separators(_) => {
                let mut words = vec![text];
                for search in searches {
                    let mut next = Vec::with_capacity(words.len());
                    for word in words {
                        search.split(word, is_long, &mut next)?;
                    }
                    words = next;
                }
                Ok(words)
            }
            Self::Words(_) => {
                let mut words = Vec::new();
                for search in searches {
                    search.matches(text, is_long, &mut words)?;
                }
                Ok(words)
            }
        }
    }
}

/// A pattern with the syntax of RE2 of which the longest of the leftmost matches counts.
pub struct LongestPattern {
    text: String,
    /// Finds where matches begin, from the end of a text to its beginning.
    starts: dfa::DFA,
    longest: dfa::DFA,
}

impl fmt::Debug for LongestPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

impl LongestPattern {
    fn new(text: &str) -> Result<Self, OpError> {
        let wrong = |error: &dyn fmt::Display| OpError::new(format!("pattern '{text}': {error}"));
        let syntax = syntax::Config::new().dot_matches_new_line(true).octal(true);
        let states = thompson::Config::new().nfa_size_limit(Some(MAX_COMPILED_BYTES));
        let config =
            dfa::DFA::config().cache_capacity(MAX_COMPILED_BYTES).skip_cache_capacity_check(true);
        let pattern = rust_syntax(text);
        let build = |states: thompson::Config| {
            let config = config.clone().match_kind(MatchKind::All);
            let builder = dfa::DFA::builder()
                .syntax(syntax)
                .thompson(states)
                .configure(config)
                .build(&pattern);
            builder.map_err(|error| wrong(&error))
        };
        let starts = build(states.clone().reverse(true))?;
        Ok(Self { text: text.to_owned(), starts, longest: build(states)? })
    }

    fn search(&self) -> PatternSearch<'_> {
        PatternSearch {
            pattern: self,
            starts: self.starts.create_cache(),
            longest: self.longest.create_cache(),
        }
    }
}

/// A pattern with the memory that its searches share.
struct PatternSearch<'p> {
    pattern: &'p LongestPattern,
    starts: dfa::Cache,
    longest: dfa::Cache,
}

/// Bytes of a text that match.
struct MatchedBytes {
    start: usize,
    end: usize,
}

/// Matches of a pattern in one text, in time that grows with its length.
struct TextMatches<'t> {
    text: &'t str,
    /// Places where a match can begin, the last one first.
    starts: Vec<usize>,
    /// Bytes read behind the ends of matches.
    read_again: usize,
}

impl PatternSearch<'_> {
    fn failed(&self, error: &dyn fmt::Display) -> OpError {
        OpError::new(format!("{:?}: {error}", self.pattern))
    }

    /// Finds where matches can begin, in one pass over the text.
    fn matches_of<'t>(&mut self, text: &'t str) -> Result<TextMatches<'t>, OpError> {
        let input = Input::new(text);
        let mut state = dfa::OverlappingState::start();
        let mut starts = Vec::new();
        loop {
            let dfa = &self.pattern.starts;
            let found = dfa.try_search_overlapping_rev(&mut self.starts, &input, &mut state);
            found.map_err(|error| self.failed(&error))?;
            match state.get_match() {
                Some(start) => starts.push(start.offset()),
                None => break,
            }
        }
        Ok(TextMatches { text, starts, read_again: 0 })
    }

    fn next(
        &mut self,
        matches: &mut TextMatches<'_>,
        from: usize,
    ) -> Result<Option<MatchedBytes>, OpError> {
        while let Some(start) = matches.starts.pop() {
            if start < from {
                continue;
            }
            if let Some(end) = self.longest_end(matches, start)? {
                return Ok(Some(MatchedBytes { start, end }));
            }
        }
        Ok(None)
    }

    /// Finds the end of the longest match that begins at a place. States tell a match one byte late.
    fn longest_end(
        &mut self,
        matches: &mut TextMatches<'_>,
        start: usize,
    ) -> Result<Option<usize>, OpError> {
        let (dfa, bytes) = (&self.pattern.longest, matches.text.as_bytes());
        let input = Input::new(matches.text).range(start..).anchored(Anchored::Yes);
        let begin = dfa.start_state_forward(&mut self.longest, &input);
        let mut state = begin.map_err(|error| self.failed(&error))?;
        let (mut end, mut at) = (None, start);
        while let Some(&byte) = bytes.get(at) {
            let next = dfa.next_state(&mut self.longest, state, byte);
            state = next.map_err(|error| self.failed(&error))?;
            if state.is_match() {
                end = Some(at);
            } else if state.is_dead() {
                break;
            } else if state.is_quit() {
                return Err(self.failed(&format!("byte {byte} ends the search")));
            }
            at += 1;
        }
        if at == bytes.len() {
            let last = dfa.next_eoi_state(&mut self.longest, state);
            if last.map_err(|error| self.failed(&error))?.is_match() {
                end = Some(at);
            }
        }
        matches.read_again += at - end.unwrap_or(start);
        let most = matches.text.len().saturating_mul(MAX_READ_AGAIN) + FREE_READ_AGAIN;
        if matches.read_again > most {
            let text = format!("more than {most} bytes of a text are read behind matches");
            return Err(self.failed(&text));
        }
        Ok(end)
    }

    /// Adds what stands between matches. An empty match ends a text, and what is behind it is lost, as
    /// in ONNX Runtime.
    fn split<'t>(
        &mut self,
        text: &'t str,
        is_long: &dyn Fn(&str) -> bool,
        words: &mut Vec<&'t str>,
    ) -> Result<(), OpError> {
        let mut from = 0;
        let mut matches = self.matches_of(text)?;
        while let Some(found) = self.next(&mut matches, from)? {
            words.extend(text.get(from..found.start).filter(|word| is_long(word)));
            if found.end == found.start {
                return Ok(());
            }
            from = found.end;
        }
        words.extend(text.get(from..).filter(|word| is_long(word)));
        Ok(())
    }

    /// Adds the matches.
    fn matches<'t>(
        &mut self,
        text: &'t str,
        is_long: &dyn Fn(&str) -> bool,
        words: &mut Vec<&'t str>,
    ) -> Result<(), OpError> {
        let mut from = 0;
        let mut all = self.matches_of(text)?;
        while let Some(found) = self.next(&mut all, from)? {
            words.extend(text.get(found.start..found.end).filter(|word| is_long(word)));
            from = match text.get(found.end..).and_then(|rest| rest.chars().next()) {
                Some(skipped) if found.end == found.start => found.end + skipped.len_utf8(),
                None if found.end == found.start => return Ok(()),
                _ => found.end,
            };
        }
        Ok(())
    }
}

impl Operator for WordTokenizer {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_type("the input", x.dtype, |dtype| dtype == DataType::Bytes, "BYTES")?;
        let Some(dims) = &x.shape else { return Ok(vec![Fact::unranked(x.dtype)]) };
        if !(1..=2).contains(&dims.len()) {
            return Err(OpError::new(format!("the input is {x}, expected [C] or [N, C]")));
        }
        Ok(vec![Fact::new(x.dtype, [dims.as_slice(), &[Dim::Unknown]].concat())])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        if !(1..=2).contains(&x.rank()) {
            let text = format!("the input has shape {:?}, expected [C] or [N, C]", x.shape());
            return Err(OpError::new(text));
        }
        let texts = x.to_vec::<ByteString>()?;
        let mut searches = self.rule.searches();
        let mut rows = Vec::with_capacity(texts.len());
        for text in &texts {
            let text = text.as_str().ok_or_else(|| OpError::new("a text is no UTF-8"))?;
            rows.push(self.rule.words(text, &mut searches, &|word| self.is_long(word))?);
        }
        let most = rows.iter().map(Vec::len).max().unwrap_or(0);
        let length = if most > 0 && self.mark { most + 2 } else { most };
        let shape = [x.shape(), &[length]].concat();
        let mut all = Vec::with_capacity(bounded(DataType::Bytes, &shape)?);
        let marks = usize::from(self.mark && most > 0);
        for words in rows {
            let padding = length - words.len() - 2 * marks;
            all.extend(std::iter::repeat_n(ByteString::from(START), marks));
            all.extend(words.into_iter().map(ByteString::from));
            all.extend(std::iter::repeat_n(ByteString::from(END), marks));
            all.extend(std::iter::repeat_n(self.padding.clone(), padding));
        }
        Ok(vec![Tensor::from_vec(&shape, all)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::AttributeValue;
    use crate::ops::testing::{attributes, int, one, parse, text};

    const NAME: &str = "com.microsoft:Tokenizer";

    fn list(rule: (&str, AttributeValue), mark: bool, least: i64) -> crate::attribute::Attributes {
        attributes([
            rule,
            ("mark", int(mark.into())),
            ("pad_value", text("#")),
            ("mincharnum", int(least)),
        ])
    }

    fn separators(all: &[&str]) -> (&'static str, AttributeValue) {
        let all = all.iter().map(|one| ByteString::from(*one)).collect();
        ("separators", AttributeValue::Strings(all))
    }

    fn rows(list: &crate::attribute::Attributes, texts: &[&str]) -> Vec<String> {
        let texts: Vec<ByteString> = texts.iter().map(|text| ByteString::from(*text)).collect();
        let found = one(NAME, 1, list, &[&Tensor::vector(texts)]);
        let width = found.shape()[1];
        let all = found.to_vec::<ByteString>().unwrap();
        let joined = |row: usize| {
            let row = all[row * width..(row + 1) * width].iter();
            row.map(|word| word.as_str().unwrap()).collect::<Vec<_>>().join("|")
        };
        (0..found.shape()[0]).map(joined).collect()
    }

    // Expected values are those of ONNX Runtime.
    #[test]
    fn separators_divide_one_after_the_other() {
        let plain = |all: &[&str]| list(separators(all), false, 1);
        let marked = list(separators(&[" "]), true, 1);
        assert_eq!(
            rows(&marked, &["a b  cc", "", "x"]),
            ["\u{2}|a|b|cc|\u{3}", "\u{2}|\u{3}|#|#|#", "\u{2}|x|\u{3}|#|#"]
        );
        assert_eq!(rows(&marked, &["  ", ""]), ["", ""]);
        assert_eq!(rows(&list(separators(&[" "]), false, 2), &["a b  cc", "x"]), ["cc", "#"]);
        assert_eq!(rows(&plain(&[",", ";"]), &["a,b;c d"]), ["a|b|c d"]);
        assert_eq!(rows(&plain(&["[0-9]+"]), &["a12b3c"]), ["a|b|c"]);
        assert_eq!(rows(&plain(&["X", "XY"]), &["aXYbXc"]), ["a|Yb|c"]);
        assert_eq!(rows(&plain(&["X|XY"]), &["aXYbXc"]), ["a|b|c"]);
        assert_eq!(rows(&plain(&["[0-9]*"]), &["12ab", "a12b"]), ["", ""]);
        assert_eq!(rows(&list(separators(&[",", ";"]), false, 2), &["abc,d;ef,g"]), ["abc|ef"]);
    }

    #[test]
    fn characters_are_words() {
        assert_eq!(
            rows(&list(separators(&[""]), false, 1), &["abc", "dé", ""]),
            ["a|b|c", "d|é|#", "#|#|#"]
        );
        assert_eq!(rows(&list(separators(&[""]), true, 1), &["é"]), ["\u{2}|é|\u{3}"]);
        let error = parse(NAME, 1, &list(separators(&[""]), true, 2), 1, 1).map(drop);
        assert!(error.unwrap_err().contains("each character is one"));
    }

    #[test]
    fn matches_are_words_and_the_longest_counts() {
        let words = |pattern: &str, least: i64| list(("tokenexp", text(pattern)), false, least);
        assert_eq!(
            rows(&words("[a-zA-Z0-9_]+", 1), &["Hello, world x", "é ab"]),
            ["Hello|world|x", "ab|#|#"]
        );
        assert_eq!(rows(&words(r"\w+", 1), &["Hello, wörld"]), ["Hello|w|rld"]);
        assert_eq!(rows(&words("[a-z]+", 2), &["a bb a cc"]), ["bb|cc"]);
        assert_eq!(rows(&words("ab|abc", 1), &["abcab"]), ["abc|ab"]);
        assert_eq!(rows(&words("a*", 1), &["aab a", "éaé"]), ["aa|a", "a|#"]);
        assert_eq!(rows(&words(".", 1), &["aé\n"]), ["a|é|\n"]);
        assert_eq!(rows(&words("^ab", 1), &["ab\nab"]), ["ab"]);
        assert_eq!(rows(&words("(?i)abc|", 1), &["xAbC"]), ["AbC"]);
    }

    #[test]
    fn hostile_patterns_cost_no_square_of_the_text() {
        let words = |pattern: &str| list(("tokenexp", text(pattern)), false, 1);
        let long = "a".repeat(20_000);
        let longs = Tensor::vector(vec![ByteString::from(long.clone())]);
        // What would match from each byte to the end of the text is read once, from the end.
        let found = one(NAME, 1, &words("[^c]*c|b"), &[&longs]);
        assert_eq!(found.shape(), [1, 0]);
        // A match at each byte, behind which all could belong to a longer one.
        for pattern in ["a|a[^c]*c", "a(a*c)?"] {
            let operator = parse(NAME, 1, &words(pattern), 1, 1).unwrap();
            let inputs = [Some(&longs)];
            let error = operator.reference(OperatorInputs::new(&inputs)).unwrap_err().to_string();
            assert!(error.contains("are read behind matches"), "{error}");
        }
        let some = rows(&words("a|a[^c]*c"), &["aaab", "aab aac"]);
        assert_eq!(some, ["a|a|a", "aab aac|#|#"]);
    }

    #[test]
    fn batches_keep_their_axes_and_bad_attributes_are_named() {
        let texts = ["a b", "c", "", "d e f"].map(ByteString::from);
        let plain = list(separators(&[" "]), false, 1);
        let found = one(NAME, 1, &plain, &[&Tensor::from_slice(&[2, 2], &texts).unwrap()]);
        assert_eq!(found.shape(), [2, 2, 3]);
        let none = Tensor::from_vec(&[0, 2], Vec::<ByteString>::new()).unwrap();
        assert_eq!(one(NAME, 1, &plain, &[&none]).shape(), [0, 2, 0]);
        let refused = |list| parse(NAME, 1, &list, 1, 1).map(drop).unwrap_err();
        assert!(refused(list(("tokenexp", text("(ab")), false, 1)).contains("pattern '(ab'"));
        assert!(refused(list(separators(&[" "]), false, 0)).contains("'mincharnum' is 0"));
        assert!(refused(list(separators(&[]), false, 1)).contains("no values"));
        let mut without = list(separators(&[" "]), false, 1);
        without.remove("separators");
        assert!(refused(without).contains("'separators' and 'tokenexp'"));
    }
}
