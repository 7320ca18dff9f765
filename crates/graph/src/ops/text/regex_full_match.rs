//! `RegexFullMatch`: which strings a pattern matches from end to end.

use galatea_tensor::{ByteString, DataType, Tensor};
use regex::bytes::{Regex, RegexBuilder};

use super::re2::rust_syntax;
use crate::error::OpError;
use crate::fact::Fact;
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::values::expect_type;

/// The most bytes of a compiled pattern: a repetition of a few letters can stand for any number of
/// states, and a model can have many patterns.
const MAX_COMPILED_BYTES: usize = 4 << 20;

/// ONNX `RegexFullMatch`; patterns have the syntax of RE2, and matching takes linear time.
#[derive(Clone, Debug)]
pub struct RegexFullMatch {
    /// The pattern with anchors at both ends.
    pub pattern: Regex,
}

impl RegexFullMatch {
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let text = context.attributes.string("pattern")?;
        let text = text.ok_or_else(|| OpError::new("attribute 'pattern' is missing"))?;
        let compile = |text: &str| {
            let built =
                RegexBuilder::new(&rust_syntax(text)).size_limit(MAX_COMPILED_BYTES).build();
            built.map_err(|error| OpError::new(format!("attribute 'pattern': {error}")))
        };
        // Alone first, so that no parenthesis of the pattern closes the group around it.
        compile(&text)?;
        Ok(Box::new(Self { pattern: compile(&format!(r"\A(?:{text})\z"))? }))
    }
}

impl Operator for RegexFullMatch {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let x = inputs.required(0)?;
        expect_type("the input", x.dtype, |dtype| dtype == DataType::Bytes, "BYTES")?;
        let shape = x.shape.clone();
        Ok(vec![Fact::shaped(DataType::Bool, shape)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let x = inputs.required(0)?;
        let matches = |text: &ByteString| self.pattern.is_match(text.as_bytes());
        let found: Vec<bool> = x.to_vec::<ByteString>()?.iter().map(matches).collect();
        Ok(vec![Tensor::from_vec(x.shape(), found)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attributes, one, parse, text};

    #[test]
    fn a_pattern_may_repeat_letters_as_often_as_there_is_room() {
        let parsed = |pattern: &str| {
            let list = attributes([("pattern", text(pattern))]);
            parse("RegexFullMatch", 20, &list, 1, 1).map(drop)
        };
        parsed(r"(\W|^)[\w.\-]{0,25}@(yahoo|gmail)\.com(\W|$)").unwrap();
        assert!(parsed(r"\w{1000}{1000}").unwrap_err().contains("size limit of 4194304"));
    }

    #[test]
    fn a_part_is_no_match() {
        let x = ["a", "ab", "b", "xa", ""].map(ByteString::from).to_vec();
        let list = attributes([("pattern", text("a|b"))]);
        let found = one("RegexFullMatch", 20, &list, &[&Tensor::vector(x)]);
        assert_eq!(found, Tensor::vector(vec![true, false, true, false, false]));
        for wrong in ["(", "a)(b"] {
            let list = attributes([("pattern", text(wrong))]);
            assert!(parse("RegexFullMatch", 20, &list, 1, 1).unwrap_err().contains("pattern"));
        }
    }
}
