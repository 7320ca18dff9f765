//! Settings of the files beside an encoder's checkpoint.

use std::path::Path;

use galatea_tensor::read_plain_file;
use serde_json::Value;

use super::pooling::TextPooling;
use crate::config::JsonConfig;
use crate::error::{LlmError, LlmErrorKind, Result};

/// Most bytes of a file of settings.
const MAX_BYTES: u64 = 1 << 20;

/// How an encoder's rows become vectors and its scores are told.
#[derive(Clone, Debug, PartialEq)]
pub struct EncoderSettings {
    /// Ways of pooling, whose vectors follow each other.
    pub pooling: Vec<TextPooling>,
    /// Whether vectors get a length of 1.
    pub normalise: bool,
    /// Texts in front of texts, by what these are for.
    pub prompts: Vec<(String, String)>,
    /// The name of the prompt that is used where none is named.
    pub default_prompt: Option<String>,
    /// Most tokens of a text, where that is less than the model's positions.
    pub most_tokens: Option<usize>,
    /// Whether scores are told between 0 and 1.
    pub sigmoid: bool,
}

impl Default for EncoderSettings {
    /// The mean of rows as it is, and scores between 0 and 1, as sentence-transformers has it.
    fn default() -> Self {
        Self {
            pooling: vec![TextPooling::Mean],
            normalise: false,
            prompts: Vec::new(),
            default_prompt: None,
            most_tokens: None,
            sigmoid: true,
        }
    }
}

impl EncoderSettings {
    /// Reads `modules.json` and the files that it names, `sentence_bert_config.json`,
    /// `config_sentence_transformers.json` and what `config.json` says of scores, where these exist.
    ///
    /// # Errors
    /// A file that is malformed, and a module that is not known.
    pub fn read(folder: &Path, config: &JsonConfig) -> Result<Self> {
        let mut settings = Self { sigmoid: sigmoid(config)?, ..Self::default() };
        for (kind, path) in modules(&folder.join("modules.json"))? {
            match kind.as_str() {
                "Transformer" => {}
                "Pooling" => {
                    let config = JsonConfig::read(&folder.join(path).join("config.json"))?;
                    settings.pooling = TextPooling::read(&config)?;
                }
                "Normalize" => settings.normalise = true,
                other => {
                    let text = format!(
                        "module '{other}' found, expected Transformer, Pooling or Normalize"
                    );
                    return Err(LlmError::new(LlmErrorKind::Config, "modules.json", text));
                }
            }
        }
        let sentence = folder.join("sentence_bert_config.json");
        if sentence.exists() {
            settings.most_tokens =
                JsonConfig::read(&sentence)?.optional_length("max_seq_length")?;
        }
        let prompts = folder.join("config_sentence_transformers.json");
        if prompts.exists() {
            let config = JsonConfig::read(&prompts)?;
            settings.default_prompt = config.text("default_prompt_name")?.map(str::to_owned);
            if let Some(prompts) = config.object("prompts")? {
                for name in prompts.keys() {
                    let text = prompts.text(&name)?.unwrap_or_default().to_owned();
                    settings.prompts.push((name, text));
                }
            }
        }
        Ok(settings)
    }

    /// The text in front of texts that are for `name`, or that of the default.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn prompt(&self, name: Option<&str>) -> Result<&str> {
        let Some(name) = name.or(self.default_prompt.as_deref()) else { return Ok("") };
        let found = self.prompts.iter().find(|(own, _)| own == name);
        found.map(|(_, text)| text.as_str()).ok_or_else(|| {
            let known: Vec<&str> = self.prompts.iter().map(|(name, _)| name.as_str()).collect();
            let text = format!("'{name}' found, expected one of {}", known.join(", "));
            LlmError::new(LlmErrorKind::Parameter, "prompt_name", text)
        })
    }
}

/// Whether scores are told between 0 and 1, as cross-encoders' files say.
fn sigmoid(config: &JsonConfig) -> Result<bool> {
    let newer = config.object("sentence_transformers")?;
    let newer = match &newer {
        Some(newer) => newer.text("activation_fn")?,
        None => None,
    };
    let older = config.text("sbert_ce_default_activation_function")?;
    let Some(name) = newer.or(older) else { return Ok(true) };
    match name.rsplit('.').next() {
        Some("Sigmoid") => Ok(true),
        Some("Identity") => Ok(false),
        _ => {
            let text = format!("'{name}' found, expected Sigmoid or Identity");
            Err(LlmError::new(LlmErrorKind::Config, "config.json: activation_fn", text))
        }
    }
}

/// The kinds of modules and their folders; none where there is no such file.
fn modules(path: &Path) -> Result<Vec<(String, String)>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let place = path.display().to_string();
    let failed =
        |error: std::io::Error| LlmError::new(LlmErrorKind::Read, &place, error.to_string());
    let size = std::fs::metadata(path).map_err(failed)?.len();
    if size > MAX_BYTES {
        let text = format!("{size} bytes, expected at most {MAX_BYTES}");
        return Err(LlmError::new(LlmErrorKind::Config, place, text));
    }
    let bytes = read_plain_file(path).map_err(failed)?;
    let wrong = |text: String| LlmError::new(LlmErrorKind::Config, &place, text);
    let all: Vec<Value> =
        serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
    let module = |module: &Value| {
        let text = |key: &str| module.get(key).and_then(Value::as_str);
        let kind = text("type")?.rsplit('.').next()?;
        // A folder of the checkpoint's own.
        let path = text("path")?;
        let inside = Path::new(path).components().all(|part| {
            matches!(part, std::path::Component::Normal(_) | std::path::Component::CurDir)
        });
        inside.then(|| (kind.to_owned(), path.to_owned()))
    };
    all.iter()
        .map(|each| {
            module(each)
                .ok_or_else(|| wrong(format!("{each}, expected a type and a folder's path")))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(files: &[(&str, &str)], config: &str) -> Result<EncoderSettings> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("1_Pooling")).unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        EncoderSettings::read(folder.path(), &JsonConfig::parse("config.json", config.as_bytes())?)
    }

    #[test]
    fn files_say_how_vectors_are_made_and_what_stands_before_texts() {
        assert_eq!(settings(&[], "{}").unwrap(), EncoderSettings::default());
        let modules = r#"[{"path": "", "type": "sentence_transformers.models.Transformer"},
            {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
            {"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}]"#;
        let found = settings(
            &[
                ("modules.json", modules),
                ("1_Pooling/config.json", r#"{"pooling_mode": "cls"}"#),
                ("sentence_bert_config.json", r#"{"max_seq_length": 256}"#),
                (
                    "config_sentence_transformers.json",
                    r#"{"prompts": {"query": "query: ", "passage": ""},
                        "default_prompt_name": "query"}"#,
                ),
            ],
            r#"{"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}}"#,
        )
        .unwrap();
        assert_eq!((found.pooling[0], found.normalise), (TextPooling::Cls, true));
        assert_eq!((found.most_tokens, found.sigmoid), (Some(256), false));
        assert_eq!(found.prompt(None).unwrap(), "query: ");
        assert_eq!(found.prompt(Some("passage")).unwrap(), "");
        let error = found.prompt(Some("title")).unwrap_err().to_string();
        assert!(error.contains("'title' found") && error.contains("passage"), "{error}");
    }

    #[test]
    fn modules_that_are_not_known_and_folders_elsewhere_are_refused() {
        for (modules, expected) in [
            (r#"[{"path": "2", "type": "sentence_transformers.models.Dense"}]"#, "module 'Dense'"),
            (r#"[{"path": "../x", "type": "a.Pooling"}]"#, "expected a type and a folder's path"),
            (r#"{"path": ""}"#, "invalid type"),
        ] {
            let error = settings(&[("modules.json", modules)], "{}").unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let strange = r#"{"sbert_ce_default_activation_function": "torch.nn.Softplus"}"#;
        assert!(settings(&[], strange).unwrap_err().to_string().contains("Softplus"));
    }
}
