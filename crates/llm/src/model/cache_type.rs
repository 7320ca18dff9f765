//! Element type of stored keys and values.

use std::str::FromStr;

use galatea_runtime::Precision;
use galatea_tensor::DataType;

use crate::error::{LlmError, LlmErrorKind};
use crate::weights::CheckpointWeights;

/// The type of the cache: one that is told, or as exact as the weights are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheType(Option<DataType>);

/// The names that vLLM has for them, and others' for the same.
const NAMES: &[(&str, CacheType)] = &[
    ("auto", CacheType(None)),
    ("float32", CacheType(Some(DataType::Fp32))),
    ("float16", CacheType(Some(DataType::Fp16))),
    ("bfloat16", CacheType(Some(DataType::Bf16))),
    ("int8", CacheType(Some(DataType::Int8))),
    ("fp32", CacheType(Some(DataType::Fp32))),
    ("half", CacheType(Some(DataType::Fp16))),
    ("fp16", CacheType(Some(DataType::Fp16))),
    ("bf16", CacheType(Some(DataType::Bf16))),
];

impl FromStr for CacheType {
    type Err = LlmError;

    fn from_str(name: &str) -> Result<Self, LlmError> {
        if let Some((_, found)) = NAMES.iter().find(|(own, _)| *own == name) {
            return Ok(*found);
        }
        let known = "auto, float32, float16, bfloat16 or int8";
        let text = if name.starts_with("fp8") {
            format!(
                "{name:?} found, which no processor here multiplies; int8 takes as little memory, \
                 expected {known}"
            )
        } else {
            format!("{name:?} found, expected {known}")
        };
        Err(LlmError::new(LlmErrorKind::Parameter, "kv_cache_dtype", text))
    }
}

impl CacheType {
    /// The type for a checkpoint: where none is told, FP16 beside weights of few bits, which are further off
    /// than that; the type of a session that computes in fewer bits; else FP32, which takes nothing away.
    pub(super) fn of(self, weights: &dyn CheckpointWeights, precision: Precision) -> DataType {
        let few_bits = |name: &String| {
            let blocks = weights.blocks(name).ok().flatten();
            blocks.is_some_and(|blocks| blocks.format().bits() < 16)
        };
        match (self.0, precision) {
            (Some(told), _) => told,
            (None, Precision::Fp16) => DataType::Fp16,
            (None, Precision::Bf16) => DataType::Bf16,
            _ if weights.names().iter().any(few_bits) => DataType::Fp16,
            _ => DataType::Fp32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_vllm_and_others_are_told() {
        assert_eq!("auto".parse(), Ok(CacheType::default()));
        assert_eq!("half".parse::<CacheType>(), "float16".parse());
        let error = "int4".parse::<CacheType>().unwrap_err().to_string();
        assert_eq!(
            error,
            "kv_cache_dtype: \"int4\" found, expected auto, float32, float16, bfloat16 or int8"
        );
        let error = "fp8_e5m2".parse::<CacheType>().unwrap_err().to_string();
        assert!(error.contains("int8 takes as little memory"), "{error}");
    }
}
