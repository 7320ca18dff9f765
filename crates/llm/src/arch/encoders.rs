//! Table of the architectures of encoders.

use super::bert;
use super::encoder::EncoderArchitecture;
use crate::config::JsonConfig;
use crate::error::Result;

/// All encoders.
pub const ENCODERS: &[EncoderArchitecture] = &[bert::BERT, bert::ROBERTA, bert::DISTILBERT];

/// The encoder that a checkpoint's `config.json` names, if it names one.
///
/// # Errors
/// When the name is no text.
pub fn encoder(config: &JsonConfig) -> Result<Option<&'static EncoderArchitecture>> {
    let Some(name) = config.text("model_type")? else { return Ok(None) };
    Ok(ENCODERS.iter().find(|row| row.model_types.contains(&name)))
}
