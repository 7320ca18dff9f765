//! Checkpoints of MLX: safetensors whose linear layers and embeddings are codes of few bits.
//!
//! A layer `X` has `X.weight` (words of 32 bits, in each row one stream of codes with the lowest bit
//! first), `X.scales` and `X.biases`; a number is `scale * code + bias`. How many bits a code has and
//! how many share a scale stands in `config.json`: `"quantization": {"group_size": 64, "bits": 4}`,
//! with other values for single layers by name. Source: `mlx.core.quantize` and `mlx_lm`.

#![deny(clippy::indexing_slicing, clippy::as_conversions)]

use galatea_tensor::{DataType, OrderedMap, Tensor};
use serde_json::Value;

use crate::blocks::{BlockMatrix, CodeFormat, CodeMeaning, GroupRows};
use crate::checkpoint::CheckpointError;
use crate::safetensors::SafeTensors;

/// The key in `config.json`.
const KEY: &str = "quantization";

/// How the codes of a layer are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerFormat {
    /// Bits of a code: 2, 3, 4, 5, 6 or 8.
    pub bits: u32,
    /// How many numbers of a row share a scale and a bias: 32, 64 or 128.
    pub group_size: usize,
}

/// Formats of codes from `config.json`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MlxQuantization {
    default: LayerFormat,
    /// By layer; `None` is a layer that stays as it is.
    layers: OrderedMap<String, Option<LayerFormat>>,
}

impl MlxQuantization {
    /// Reads the entry `quantization` of a `config.json`; `None` if there is none.
    ///
    /// # Errors
    /// Fails when the entry is damaged, or asks for something other than scales and biases.
    pub fn from_config(config: &Value) -> Result<Option<Self>, CheckpointError> {
        let Some(entry) = config.get(KEY).filter(|entry| !entry.is_null()) else {
            return Ok(None);
        };
        let entry = entry.as_object().ok_or_else(|| {
            CheckpointError::invalid(format!("expected an object, found {entry}")).at(KEY)
        })?;
        let default = layer_format(entry, None).map_err(|error| error.at(KEY))?;
        let mut layers = OrderedMap::new();
        for (name, value) in entry {
            let format = match value {
                Value::Object(entry) => layer_format(entry, Some(default))
                    .map(Some)
                    .map_err(|error| error.at(format_args!("{KEY}: layer '{name}'")))?,
                Value::Bool(true) => Some(default),
                Value::Bool(false) => None,
                _ => continue,
            };
            layers.insert(name.clone(), format);
        }
        Ok(Some(Self { default, layers }))
    }

    /// How a layer is stored, if it has codes at all; `None` for one that the configuration excepts.
    #[must_use]
    pub fn layer(&self, name: &str) -> Option<LayerFormat> {
        self.layers.get(name).copied().unwrap_or(Some(self.default))
    }

    /// The weights of a layer, whose name has no `.weight`; `None` if they are no codes. The bytes are
    /// shared with the checkpoint.
    ///
    /// Shapes: those of the weights as numbers, `[.., outputs, inputs]`.
    ///
    /// # Errors
    /// Fails when a tensor of the layer is missing, or of a type or shape that does not fit the
    /// others; the error names it.
    pub fn matrix(
        &self,
        tensors: &SafeTensors,
        layer: &str,
    ) -> Result<Option<BlockMatrix>, CheckpointError> {
        let name = |part: &str| format!("{layer}.{part}");
        let has_codes = tensors.tensors().contains_key(&name("scales"));
        let format = match (has_codes, self.layer(layer), self.layers.get(layer)) {
            (true, Some(format), _) => format,
            (true, None, _) => {
                let text = "the configuration excepts this layer, the checkpoint has scales for it";
                return Err(CheckpointError::invalid(text).at(format_args!("layer '{layer}'")));
            }
            (false, _, Some(Some(_))) => {
                tensors.tensor(&name("scales"))?;
                return Ok(None);
            }
            (false, ..) => return Ok(None),
        };
        let part = |part: &str| tensors.tensor(&name(part)).cloned();
        let words = part("weight")?;
        let scales = part("scales")?;
        let biases = part("biases")?;
        let columns = check_words(&words, format)
            .map_err(|error| error.at(format_args!("tensor '{}'", name("weight"))))?;
        for (part, tensor) in [("scales", &scales), ("biases", &biases)] {
            check_groups(tensor, &words, columns, format)
                .map_err(|error| error.at(format_args!("tensor '{}'", name(part))))?;
        }
        let mut shape = words.shape().to_vec();
        if let Some(last) = shape.last_mut() {
            *last = columns;
        }
        let bits = format.bits;
        let group = format.group_size;
        let rows = GroupRows { bits, group, words, scales, offsets: biases, columns };
        BlockMatrix::of_groups(&shape, CodeFormat::new(bits, group, CodeMeaning::Offset), rows)
            .map(Some)
            .map_err(|error| error.at(format_args!("layer '{layer}'")))
    }
}

fn layer_format(
    entry: &serde_json::Map<String, Value>,
    default: Option<LayerFormat>,
) -> Result<LayerFormat, CheckpointError> {
    if let Some(mode) = entry.get("mode").filter(|mode| mode.as_str() != Some("affine")) {
        let text = format!("mode {mode} is not supported, only \"affine\"");
        return Err(CheckpointError::unsupported(text));
    }
    let number = |key: &str, default: Option<u64>, known: &[u64]| {
        let found = match (entry.get(key), default) {
            (None, Some(default)) => Some(default),
            (found, _) => found.and_then(Value::as_u64),
        };
        found.filter(|found| known.contains(found)).ok_or_else(|| {
            let given = entry.get(key).map_or("nothing".to_owned(), Value::to_string);
            let known: Vec<String> = known.iter().map(u64::to_string).collect();
            let known = known.join(", ");
            CheckpointError::invalid(format!("'{key}' is {given}, expected one of {known}"))
        })
    };
    let (bits, group) = match default {
        Some(default) => (Some(default.bits.into()), u64::try_from(default.group_size).ok()),
        None => (None, None),
    };
    let bits = number("bits", bits, &[2, 3, 4, 5, 6, 8])?;
    let group_size = number("group_size", group, &[32, 64, 128])?;
    let wrong = |_| CheckpointError::invalid("a number is too large");
    Ok(LayerFormat {
        bits: u32::try_from(bits).map_err(wrong)?,
        group_size: usize::try_from(group_size).map_err(wrong)?,
    })
}

/// The codes of a row.
fn check_words(words: &Tensor, format: LayerFormat) -> Result<usize, CheckpointError> {
    let LayerFormat { bits, group_size } = format;
    let last = words.shape().last().copied().filter(|_| words.rank() >= 2);
    let bits_of_row = last.and_then(|last| last.checked_mul(32));
    let width = usize::try_from(bits).unwrap_or(1);
    let columns = bits_of_row
        .filter(|all| all.is_multiple_of(width))
        .and_then(|all| all.checked_div(width))
        .filter(|columns| columns.is_multiple_of(group_size));
    columns.filter(|_| words.dtype() == DataType::Uint32).ok_or_else(|| {
        CheckpointError::invalid(format!(
            "{} of shape {:?}, expected UINT32 whose rows are whole groups of {group_size} codes of \
             {bits} bits",
            words.dtype(),
            words.shape()
        ))
    })
}

fn check_groups(
    tensor: &Tensor,
    words: &Tensor,
    columns: usize,
    format: LayerFormat,
) -> Result<(), CheckpointError> {
    let mut expected = words.shape().to_vec();
    if let Some(last) = expected.last_mut() {
        *last = columns.checked_div(format.group_size).unwrap_or(0);
    }
    let known = matches!(tensor.dtype(), DataType::Fp16 | DataType::Bf16 | DataType::Fp32);
    if known && tensor.shape() == expected {
        return Ok(());
    }
    Err(CheckpointError::invalid(format!(
        "{} of shape {:?}, expected FP16, BF16 or FP32 of shape {expected:?}",
        tensor.dtype(),
        tensor.shape()
    )))
}
