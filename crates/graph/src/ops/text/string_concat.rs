//! `StringConcat` and `StringSplit`: strings joined and cut.

use galatea_tensor::{ByteString, DataType, Tensor, broadcast_shapes};

use crate::collect::collected;
use crate::error::OpError;
use crate::fact::{Dim, Fact};
use crate::operator::{Operator, OperatorInputs, ParseContext};
use crate::ops::bounds;

/// ONNX `StringConcat`: each string of input 0 followed by that of input 1, broadcast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StringConcat;

/// ONNX `StringSplit`: each string cut into a row of pieces, and how many there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StringSplit {
    /// Where to cut; any run of white space if empty.
    pub delimiter: String,
    /// The most cuts there are; none is no limit.
    pub maxsplit: Option<usize>,
}

impl StringConcat {
    /// There are no attributes.
    pub(super) fn parse(_: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        Ok(Box::new(Self))
    }
}

impl Operator for StringConcat {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let shape = Fact::broadcast(&[inputs.required(0)?, inputs.required(1)?])?;
        Ok(vec![Fact::shaped(DataType::Bytes, shape)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let a = inputs.required(0)?;
        let b = inputs.required(1)?;
        let shape = broadcast_shapes(a.shape(), b.shape())?;
        bounds::bounded(DataType::Bytes, &shape)?;
        let strings = |one: &Tensor| -> Result<Vec<ByteString>, OpError> {
            Ok(one.broadcast_to(&shape)?.to_vec()?)
        };
        let join = |(a, b): (&ByteString, &ByteString)| {
            ByteString::from([a.as_bytes(), b.as_bytes()].concat())
        };
        let joined = strings(a)?.iter().zip(&strings(b)?).map(join).collect();
        Ok(vec![Tensor::from_vec(&shape, joined)?])
    }
}

impl StringSplit {
    /// Reads the attributes.
    pub(super) fn parse(context: &mut ParseContext<'_>) -> Result<Box<dyn Operator>, OpError> {
        let delimiter = context.attributes.string("delimiter")?.unwrap_or_default();
        let maxsplit = context.attributes.int("maxsplit")?;
        let maxsplit = maxsplit.and_then(|limit| usize::try_from(limit).ok());
        Ok(Box::new(Self { delimiter, maxsplit }))
    }

    fn pieces<'a>(&self, text: &'a str) -> Vec<&'a str> {
        let limit = self.maxsplit.map_or(usize::MAX, |limit| limit.saturating_add(1));
        if text.is_empty() {
            return Vec::new();
        }
        if !self.delimiter.is_empty() {
            return text.splitn(limit, self.delimiter.as_str()).collect();
        }
        let mut pieces = Vec::new();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            match rest.find(char::is_whitespace) {
                Some(at) if pieces.len() + 1 < limit => {
                    pieces.push(&rest[..at]);
                    rest = rest[at..].trim_start();
                }
                // White space behind the last piece is no piece of its own.
                _ => {
                    pieces.push(rest.trim_end());
                    rest = "";
                }
            }
        }
        pieces
    }
}

impl Operator for StringSplit {
    fn infer(&self, inputs: OperatorInputs<'_, Fact>) -> Result<Vec<Fact>, OpError> {
        let shape = inputs.required(0)?.shape.clone();
        let rows = shape.clone().map(|mut shape| {
            shape.push(Dim::Unknown);
            shape
        });
        let fact = |dtype, shape| Fact::shaped(dtype, shape);
        Ok(vec![fact(DataType::Bytes, rows), fact(DataType::Int64, shape)])
    }

    fn reference(&self, inputs: OperatorInputs<'_, Tensor>) -> Result<Vec<Tensor>, OpError> {
        let data = inputs.required(0)?;
        let strings = data.to_vec::<ByteString>()?;
        let rows = collected(&mut strings.iter().map(|string| {
            let text = string.as_str();
            let error = || OpError::new(format!("the string {string:?} is not valid UTF-8"));
            text.map(|text| self.pieces(text)).ok_or_else(error)
        }))?;
        let widest = rows.iter().map(Vec::len).max().unwrap_or(0);
        let shape = [data.shape(), &[widest]].concat();
        let mut pieces = Vec::with_capacity(bounds::bounded(DataType::Bytes, &shape)?);
        for row in &rows {
            pieces.extend(row.iter().map(|piece| ByteString::from(*piece)));
            pieces.extend(std::iter::repeat_n(ByteString::default(), widest - row.len()));
        }
        let counts: Vec<i64> = rows.iter().map(|row| row.len() as i64).collect();
        Ok(vec![Tensor::from_vec(&shape, pieces)?, Tensor::from_vec(data.shape(), counts)?])
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{attributes, int, one, run, tensor, text};
    use galatea_tensor::{ByteString, Tensor};

    fn words(shape: &[usize], all: &[&str]) -> Tensor {
        tensor(shape, &all.iter().map(|word| ByteString::from(*word)).collect::<Vec<_>>())
    }

    #[test]
    fn strings_join_with_broadcasting() {
        let a = words(&[2], &["abc", "def"]);
        let b = words(&[], &["!"]);
        assert_eq!(
            one("StringConcat", 20, &attributes([]), &[&a, &b]),
            words(&[2], &["abc!", "def!"])
        );
    }

    #[test]
    fn pieces_are_padded_and_counted() {
        let data = words(&[3], &["a,b,c", "", "d"]);
        let comma = attributes([("delimiter", text(","))]);
        let result = run("StringSplit", 20, &comma, &[Some(&data)], 2).unwrap();
        assert_eq!(result[0], words(&[3, 3], &["a", "b", "c", "", "", "", "d", "", ""]));
        assert_eq!(result[1], tensor(&[3], &[3_i64, 0, 1]));
        let spaces = words(&[1], &["  a  b c "]);
        let result = run("StringSplit", 20, &attributes([]), &[Some(&spaces)], 2).unwrap();
        assert_eq!(result[0], words(&[1, 3], &["a", "b", "c"]));
        let once = attributes([("maxsplit", int(1))]);
        let result = run("StringSplit", 20, &once, &[Some(&spaces)], 2).unwrap();
        assert_eq!(result[0], words(&[1, 2], &["a", "b c"]));
    }

    #[test]
    fn bytes_that_are_no_text_are_an_error() {
        let odd = tensor(&[1], &[ByteString::from(vec![0xff_u8])]);
        assert!(run("StringSplit", 20, &attributes([]), &[Some(&odd)], 2).is_err());
    }
}
