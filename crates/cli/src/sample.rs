//! Sample inputs of models, and what is expected of them.

use std::fs;
use std::path::{Path, PathBuf};

use galatea_tensor::{DataType, bf16, f16};

use super::http_client::HttpAnswer;
use galatea_server::json::{JsonDocument, JsonKind, JsonValue};

/// A tensor of a sample or of an answer.
#[derive(Debug, Clone)]
pub(super) struct SampleTensor {
    pub(super) name: String,
    pub(super) datatype: DataType,
    pub(super) shape: Vec<i64>,
    pub(super) values: SampleValues,
}

/// Elements; booleans are 0 and 1.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum SampleValues {
    Numbers(Vec<f64>),
    Strings(Vec<Vec<u8>>),
}

/// A model's sample.
#[derive(Debug)]
pub(super) struct ModelSample {
    pub(super) model: String,
    /// The file with the inputs.
    pub(super) file: PathBuf,
    /// Its text: the body of an inference request.
    pub(super) text: Vec<u8>,
    pub(super) inputs: Vec<SampleTensor>,
    /// Outputs of another implementation, if known.
    pub(super) expected: Option<Vec<SampleTensor>>,
}

/// Relative and absolute difference that is accepted: the expected numbers come from another implementation, which
/// adds in another order, and FP16 and BF16 have 10 and 7 bits.
const TOLERANCE: f64 = 2e-3;

/// The samples of a repository, by model name.
///
/// # Errors
/// Fails when a file cannot be read.
pub(super) fn samples(repository: &Path) -> Result<Vec<ModelSample>, String> {
    let entries = fs::read_dir(repository)
        .map_err(|error| format!("'{}' cannot be read: {error}", repository.display()))?;
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    folders.sort();
    let mut samples = Vec::new();
    for folder in folders {
        let file = folder.join("sample_input.json");
        if !file.is_file() {
            continue;
        }
        let text = read(&file)?;
        let expected = folder.join("sample_output.json");
        let expected = if expected.is_file() {
            Some(tensors(&read(&expected)?, "outputs").map_err(|why| named(&expected, &why))?)
        } else {
            None
        };
        let inputs = tensors(&text, "inputs").map_err(|why| named(&file, &why))?;
        let model = folder.file_name().map(|name| name.to_string_lossy().into_owned());
        samples.push(ModelSample {
            model: model.unwrap_or_default(),
            file,
            text,
            inputs,
            expected,
        });
    }
    Ok(samples)
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    fs::read(file).map_err(|error| named(file, &error.to_string()))
}

fn named(file: &Path, why: &str) -> String {
    format!("'{}': {why}", file.display())
}

/// Tensors of a JSON text under a key.
pub(super) fn tensors(text: &[u8], key: &str) -> Result<Vec<SampleTensor>, String> {
    let document = JsonDocument::parse(text).map_err(|error| format!("no JSON: {error:?}"))?;
    let list = document.root().member(key).ok_or_else(|| format!("there is no '{key}'"))?;
    list.elements().map(tensor).collect()
}

/// Tensors of an answer over HTTP, with the binary ones behind the JSON.
pub(super) fn answered(answer: &HttpAnswer) -> Result<Vec<SampleTensor>, String> {
    let Some(length) = answer.json_bytes else { return tensors(&answer.body, "outputs") };
    let (text, mut binary) = answer.body.split_at_checked(length).ok_or("the answer is cut")?;
    let mut tensors = tensors(text, "outputs")?;
    for tensor in &mut tensors {
        let size = tensor.datatype.size_bytes().ok_or("binary strings are not expected here")?;
        let count =
            galatea_server::tensor_wire::element_count(&tensor.shape).ok_or("a wrong shape")?;
        let (bytes, rest) =
            binary.split_at_checked(count.saturating_mul(size)).ok_or("the answer is cut")?;
        tensor.values = from_wire(tensor.datatype, bytes)?;
        binary = rest;
    }
    Ok(tensors)
}

fn tensor(value: JsonValue<'_>) -> Result<SampleTensor, String> {
    let text = |name: &str| match value.member(name).map(JsonValue::kind) {
        Some(JsonKind::String(bytes)) => Ok(String::from_utf8_lossy(bytes).into_owned()),
        _ => Err(format!("a tensor without '{name}'")),
    };
    let shape = value.member("shape").ok_or("a tensor without 'shape'")?;
    let dim = |dim: JsonValue<'_>| match dim.kind() {
        JsonKind::Natural(dim) => i64::try_from(dim).ok(),
        _ => None,
    };
    let shape: Option<Vec<i64>> = shape.elements().map(dim).collect();
    let datatype = text("datatype")?;
    let datatype = datatype.parse().map_err(|_| format!("'{datatype}' is no data type"))?;
    let mut values = if datatype == DataType::Bytes {
        SampleValues::Strings(vec![])
    } else {
        SampleValues::Numbers(vec![])
    };
    if let Some(data) = value.member("data") {
        collect(data, &mut values)?;
    }
    Ok(SampleTensor { name: text("name")?, datatype, shape: shape.ok_or("a wrong shape")?, values })
}

fn collect(data: JsonValue<'_>, values: &mut SampleValues) -> Result<(), String> {
    for value in data.elements() {
        match (value.kind(), &mut *values) {
            (JsonKind::Array(_), values) => collect(value, values)?,
            (JsonKind::String(bytes), SampleValues::Strings(strings)) => {
                strings.push(bytes.to_vec())
            }
            (kind, SampleValues::Numbers(numbers)) => numbers.push(match kind {
                JsonKind::Bool(value) => f64::from(u8::from(value)),
                JsonKind::Negative(value) => value as f64,
                JsonKind::Natural(value) => value as f64,
                JsonKind::Double(value) => value,
                _ => return Err("an element that is no number".to_owned()),
            }),
            _ => return Err("an element that is no string".to_owned()),
        }
    }
    Ok(())
}

/// Elements from bytes of the wire.
#[allow(clippy::indexing_slicing, reason = "chunks have the length of the element")]
pub(super) fn from_wire(datatype: DataType, bytes: &[u8]) -> Result<SampleValues, String> {
    if datatype == DataType::Bytes {
        let strings = galatea_tensor::decode_byte_strings(bytes).map_err(|e| e.to_string())?;
        return Ok(SampleValues::Strings(strings.iter().map(|s| s.as_bytes().to_vec()).collect()));
    }
    let size = datatype.size_bytes().unwrap_or(1);
    let number = |chunk: &[u8]| -> f64 {
        let mut wide = [0_u8; 8];
        wide[..size].copy_from_slice(chunk);
        let bits = u64::from_le_bytes(wide);
        let signed = (bits << (64 - 8 * size)).cast_signed() >> (64 - 8 * size);
        let half = u16::from_le_bytes([wide[0], wide[1]]);
        match datatype {
            DataType::Fp16 => f16::from_bits(half).to_f64(),
            DataType::Bf16 => bf16::from_bits(half).to_f64(),
            DataType::Fp32 => f64::from(f32::from_le_bytes([wide[0], wide[1], wide[2], wide[3]])),
            DataType::Fp64 => f64::from_bits(bits),
            _ if datatype.is_signed_integer() => signed as f64,
            _ => bits as f64,
        }
    };
    Ok(SampleValues::Numbers(bytes.chunks_exact(size).map(number).collect()))
}

impl SampleTensor {
    /// The elements as bytes of the wire.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "samples hold values of their type"
    )]
    pub(super) fn to_wire(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match &self.values {
            SampleValues::Strings(strings) => {
                for string in strings {
                    let length = u32::try_from(string.len()).unwrap_or(u32::MAX);
                    out.extend_from_slice(&length.to_le_bytes());
                    out.extend_from_slice(string);
                }
            }
            SampleValues::Numbers(numbers) => {
                let size = self.datatype.size_bytes().unwrap_or(0);
                for &number in numbers {
                    let bits = match self.datatype {
                        DataType::Fp16 => u64::from(f16::from_f64(number).to_bits()),
                        DataType::Bf16 => u64::from(bf16::from_f64(number).to_bits()),
                        DataType::Fp32 => u64::from((number as f32).to_bits()),
                        DataType::Fp64 => number.to_bits(),
                        _ if number < 0.0 => (number as i64).cast_unsigned(),
                        _ => number as u64,
                    };
                    out.extend_from_slice(bits.to_le_bytes().get(..size).unwrap_or(&[]));
                }
            }
        }
        out
    }

    /// Returns whether the elements have no form in JSON on the wire.
    pub(super) fn needs_binary(&self) -> bool {
        matches!(self.datatype, DataType::Fp16 | DataType::Bf16)
    }

    /// The first elements, for people.
    pub(super) fn preview(&self) -> String {
        const SHOWN: usize = 4;
        const WIDTH: usize = 60;
        let (mut cells, count): (Vec<String>, usize) = match &self.values {
            SampleValues::Numbers(numbers) => {
                let cell = |number: &f64| {
                    if self.datatype.is_float() {
                        format!("{number:.4}")
                    } else {
                        number.to_string()
                    }
                };
                (numbers.iter().take(SHOWN).map(cell).collect(), numbers.len())
            }
            SampleValues::Strings(strings) => {
                let cell = |string: &Vec<u8>| String::from_utf8_lossy(string).into_owned();
                (strings.iter().take(SHOWN).map(cell).collect(), strings.len())
            }
        };
        if count > SHOWN {
            cells.push("…".to_owned());
        }
        let text = format!("{} {}", self.name, cells.join(" "));
        if text.chars().count() > WIDTH {
            text.chars().take(WIDTH).chain(['…']).collect()
        } else {
            text
        }
    }
}

/// Describes the difference between expected and given tensors; none when they agree.
pub(super) fn difference(expected: &[SampleTensor], given: &[SampleTensor]) -> Option<String> {
    for want in expected {
        let Some(have) = given.iter().find(|tensor| tensor.name == want.name) else {
            return Some(format!("output '{}' is missing", want.name));
        };
        if (have.datatype, &have.shape) != (want.datatype, &want.shape) {
            return Some(format!(
                "output '{}' is {} {:?} and not {} {:?}",
                want.name, have.datatype, have.shape, want.datatype, want.shape
            ));
        }
        let same = match (&want.values, &have.values) {
            (SampleValues::Numbers(want), SampleValues::Numbers(have)) => {
                want.len() == have.len() && want.iter().zip(have).all(|(a, b)| close(*a, *b))
            }
            (want, have) => want == have,
        };
        if !same {
            return Some(format!("the values of output '{}' differ", want.name));
        }
    }
    None
}

fn close(a: f64, b: f64) -> bool {
    // An infinity is near nothing: what is allowed beside it would be infinite too.
    let near = a.is_finite() && (a - b).abs() <= TOLERANCE * a.abs().max(1.0);
    a == b || (a.is_nan() && b.is_nan()) || near
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_survives_the_wire() {
        for (datatype, numbers) in [
            (DataType::Bool, vec![0.0, 1.0]),
            (DataType::Int8, vec![-128.0, 127.0]),
            (DataType::Uint16, vec![0.0, 65_535.0]),
            (DataType::Int64, vec![-5.0, 7.0]),
            (DataType::Fp16, vec![-1.5, 0.5]),
            (DataType::Bf16, vec![-1.5, 0.5]),
            (DataType::Fp32, vec![-1.5, 1e10]),
            (DataType::Fp64, vec![0.1]),
        ] {
            let tensor = SampleTensor {
                name: "x".to_owned(),
                datatype,
                shape: vec![],
                values: SampleValues::Numbers(numbers),
            };
            assert_eq!(from_wire(datatype, &tensor.to_wire()).unwrap(), tensor.values);
        }
    }

    #[test]
    fn differences_are_found() {
        let tensor = |value: f64| SampleTensor {
            name: "x".to_owned(),
            datatype: DataType::Fp32,
            shape: vec![1],
            values: SampleValues::Numbers(vec![value]),
        };
        assert_eq!(difference(&[tensor(1.0)], &[tensor(1.001)]), None);
        assert!(difference(&[tensor(1.0)], &[tensor(1.1)]).is_some());
        assert!(difference(&[tensor(1.0)], &[]).unwrap().contains("missing"));
        for (expected, given) in [(f64::INFINITY, 1.0), (1.0, f64::NAN), (f64::NAN, 1.0)] {
            assert!(difference(&[tensor(expected)], &[tensor(given)]).is_some(), "{expected}");
            assert_eq!(difference(&[tensor(expected)], &[tensor(expected)]), None);
        }
    }
}
