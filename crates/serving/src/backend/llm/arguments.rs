//! Engine settings of a configuration, under vLLM's names.

use std::fs;
use std::path::Path;

use galatea_llm::template::is_template_text;
use galatea_tensor::read_plain_file;
use serde_json::{Map, Value};

use crate::backend::ModelFiles;
use crate::config::MetalConfig;
use crate::error::ServingError;

/// Most bytes of a `model.json`.
const MAX_BYTES: u64 = 1 << 20;

/// Arguments of vLLM that mean nothing here: whatever their value, answers are the same.
const WITHOUT_EFFECT: &[&str] = &[
    "gpu_memory_utilization",
    "enforce_eager",
    "disable_log_requests",
    "disable_log_stats",
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "trust_remote_code",
    "distributed_executor_backend",
    "max_parallel_loading_workers",
    "enable_chunked_prefill",
    "load_format",
    "download_dir",
    "seed",
];

/// How an engine is made; what is `None` is the engine's own choice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineArguments {
    /// The most tokens of a prompt and its answer.
    pub max_model_len: Option<usize>,
    /// The most sequences that run together.
    pub max_num_seqs: Option<usize>,
    /// The most tokens of a step.
    pub max_num_batched_tokens: Option<usize>,
    /// The most requests that wait.
    pub max_waiting: Option<usize>,
    /// Positions of a block of the cache.
    pub block_size: Option<usize>,
    /// Blocks of the cache.
    pub num_gpu_blocks_override: Option<usize>,
    /// The most memory of the cache, in bytes.
    pub kv_cache_memory_bytes: Option<usize>,
    /// The most memory outside the cache for the blocks of preempted requests, in bytes.
    pub swap_space: Option<usize>,
    /// Whether requests share what they begin with.
    pub enable_prefix_caching: Option<bool>,
    /// The unit that computes: `auto`, `cpu`, `gpu`, `gpu:N` or `coreml`.
    pub device: Option<String>,
    /// Whether another process runs packages of Core ML: `on` or `off`.
    pub worker: Option<String>,
    /// Power policy of Core ML packages.
    pub power_mode: Option<String>,
    /// The type that the model computes in.
    pub dtype: Option<String>,
    /// How weights are made smaller when they are loaded.
    pub quantization: Option<String>,
    /// Element type of stored keys and values.
    pub kv_cache_dtype: Option<String>,
    /// Where the tokenizer lies, if not in the checkpoint.
    pub tokenizer: Option<String>,
    /// A chat template in the place of the checkpoint's: its text, or the path of its file.
    pub chat_template: Option<String>,
    /// Source of speculative tokens, which one step then confirms: `[ngram]` for what followed the last tokens
    /// earlier in the text, or the path of a smaller checkpoint.
    pub speculative_model: Option<String>,
    /// The most tokens of a guess.
    pub num_speculative_tokens: Option<usize>,
    /// The most last tokens that are looked up.
    pub ngram_prompt_lookup_max: Option<usize>,
    /// Requests to the devices of the machine.
    pub metal: MetalConfig,
}

/// The argument of newer versions that has what is about guesses, under names of its own there.
const SPECULATIVE: &str = "speculative_config";

/// Form of a value, and the setting that it fills.
enum ArgumentField<'a> {
    Count(&'a mut Option<usize>),
    /// Bytes, in GiB.
    Gibibytes(&'a mut Option<usize>),
    Flag(&'a mut Option<bool>),
    Text(&'a mut Option<String>),
}

impl EngineArguments {
    fn field(&mut self, name: &str) -> Option<ArgumentField<'_>> {
        Some(match name {
            "max_model_len" => ArgumentField::Count(&mut self.max_model_len),
            "max_num_seqs" => ArgumentField::Count(&mut self.max_num_seqs),
            "max_num_batched_tokens" => ArgumentField::Count(&mut self.max_num_batched_tokens),
            "max_waiting" => ArgumentField::Count(&mut self.max_waiting),
            "block_size" => ArgumentField::Count(&mut self.block_size),
            "num_gpu_blocks_override" => ArgumentField::Count(&mut self.num_gpu_blocks_override),
            "kv_cache_memory_bytes" => ArgumentField::Count(&mut self.kv_cache_memory_bytes),
            "swap_space" => ArgumentField::Gibibytes(&mut self.swap_space),
            "enable_prefix_caching" => ArgumentField::Flag(&mut self.enable_prefix_caching),
            "device" => ArgumentField::Text(&mut self.device),
            "worker" => ArgumentField::Text(&mut self.worker),
            "power_mode" => ArgumentField::Text(&mut self.power_mode),
            "dtype" => ArgumentField::Text(&mut self.dtype),
            "kv_cache_dtype" => ArgumentField::Text(&mut self.kv_cache_dtype),
            "quantization" => ArgumentField::Text(&mut self.quantization),
            "tokenizer" => ArgumentField::Text(&mut self.tokenizer),
            "chat_template" => ArgumentField::Text(&mut self.chat_template),
            "speculative_model" => ArgumentField::Text(&mut self.speculative_model),
            "num_speculative_tokens" => ArgumentField::Count(&mut self.num_speculative_tokens),
            "ngram_prompt_lookup_max" => ArgumentField::Count(&mut self.ngram_prompt_lookup_max),
            _ => return None,
        })
    }

    /// Takes an argument; `false` where there is none of this name.
    fn set(&mut self, name: &str, value: &Value) -> Result<bool, String> {
        if name == SPECULATIVE {
            return self.set_speculative(value).map(|()| true);
        }
        let Some(field) = self.field(name) else { return Ok(false) };
        // Parameters of a configuration are texts.
        let parsed = value.as_str().and_then(|text| serde_json::from_str(text).ok());
        let number = parsed.as_ref().unwrap_or(value);
        let wrong = |expected: &str| format!("'{name}' is {value}, expected {expected}");
        match field {
            ArgumentField::Count(slot) => {
                let count = number.as_u64().and_then(|count| usize::try_from(count).ok());
                let count = count.filter(|count| *count > 0);
                *slot = Some(count.ok_or_else(|| wrong("a whole number from 1 on"))?);
            }
            ArgumentField::Gibibytes(slot) => {
                let bytes = number.as_f64().and_then(gibibytes);
                *slot = Some(bytes.ok_or_else(|| wrong("a number of GiB from 0 on"))?);
            }
            ArgumentField::Flag(slot) => {
                *slot = Some(number.as_bool().ok_or_else(|| wrong("true or false"))?);
            }
            ArgumentField::Text(slot) => {
                *slot = Some(value.as_str().ok_or_else(|| wrong("a text"))?.to_owned());
            }
        }
        Ok(true)
    }

    /// Takes what is about guesses: `{"method": "ngram", "num_speculative_tokens": 5,
    /// "prompt_lookup_max": 4}`, or `{"model": PATH, "num_speculative_tokens": 5}`.
    fn set_speculative(&mut self, value: &Value) -> Result<(), String> {
        let parsed = value.as_str().and_then(|text| serde_json::from_str(text).ok());
        let given = parsed.as_ref().unwrap_or(value);
        let Some(fields) = given.as_object() else {
            return Err(format!("'{SPECULATIVE}' is {value}, expected an object"));
        };
        let within = |text: String| format!("{SPECULATIVE}: {text}");
        for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
            let own = match (name.as_str(), value.as_str()) {
                ("method", Some("ngram")) => {
                    self.speculative_model = Some("[ngram]".to_owned());
                    continue;
                }
                ("method", Some("draft_model")) => continue,
                ("method", _) => {
                    let text =
                        format!("'method' is {value}, expected \"ngram\" or \"draft_model\"");
                    return Err(within(text));
                }
                // Shorter ends are looked up where the longest is nowhere.
                ("prompt_lookup_min", _) => continue,
                ("prompt_lookup_max", _) => "ngram_prompt_lookup_max",
                ("model", _) => "speculative_model",
                ("num_speculative_tokens", _) => "num_speculative_tokens",
                _ => {
                    let text = format!(
                        "'{name}' found, expected method, model, num_speculative_tokens, \
                         prompt_lookup_max or prompt_lookup_min"
                    );
                    return Err(within(text));
                }
            };
            self.set(own, value).map_err(within)?;
        }
        Ok(())
    }

    /// Looks a chat template's file up in folders of the model, where the path is relative and leads to one.
    pub(super) fn find_template(&mut self, files: &ModelFiles) {
        let Some(given) = self.chat_template.as_mut().filter(|given| !is_template_text(given))
        else {
            return;
        };
        let places = [&files.version_dir, &files.model_dir];
        let found =
            places.map(|folder| folder.join(&*given)).into_iter().find(|path| path.is_file());
        if let Some(found) = found {
            *given = found.display().to_string();
        }
    }

    /// Takes the parameters of a configuration, and the server's settings for the backend where these are silent.
    ///
    /// # Errors
    /// A value of a wrong form.
    pub(super) fn take_parameters(&mut self, files: &ModelFiles) -> Result<(), ServingError> {
        let given = files.config.parameters.iter();
        let given = given.map(|(name, parameter)| (name, &parameter.string_value));
        let silent = |name: &str| !files.config.parameters.contains_key(name);
        let settings = files.settings.iter().filter(|(name, _)| silent(name));
        for (name, text) in settings.chain(given) {
            self.set(name, &Value::from(text.as_str())).map_err(|text| {
                ServingError::invalid_arg(format!("model '{}': parameter {text}", files.name))
            })?;
        }
        Ok(())
    }
}

/// Bytes of so many GiB; nothing for what is no size of memory.
fn gibibytes(count: f64) -> Option<usize> {
    let bytes = count * 1024.0 * 1024.0 * 1024.0;
    // Whole bytes below 2^53 are exact.
    let text = (0.0..9.0e15).contains(&bytes).then(|| format!("{:.0}", bytes.floor()))?;
    text.parse().ok()
}

/// Reads a `model.json` of the vLLM backend: the checkpoint that it names, and the arguments of the engine.
///
/// # Errors
/// A file that cannot be read or is no JSON object, and arguments of a wrong form. Unknown ones are logged.
pub(super) fn read(path: &Path, model: &str) -> Result<(String, EngineArguments), ServingError> {
    let failed = |why: &dyn std::fmt::Display| {
        ServingError::invalid_arg(format!("model '{model}': '{}': {why}", path.display()))
    };
    let all = members(path).map_err(|error| failed(&error))?;
    let arguments = taken(&all, model).map_err(|error| failed(&error))?;
    match all.get("model").and_then(Value::as_str) {
        Some(named) => Ok((named.to_owned(), arguments)),
        None => Err(failed(&"\"model\" must be the path of a checkpoint")),
    }
}

/// Reads the arguments of the engine in a `model.json` beside a checkpoint's own files, where there is one. Which
/// checkpoint it names is of no account.
///
/// # Errors
/// Arguments of a wrong form. Unknown ones are logged, and so is a file that is no JSON object.
pub(super) fn beside(path: &Path, model: &str) -> Result<EngineArguments, ServingError> {
    if !path.is_file() {
        return Ok(EngineArguments::default());
    }
    let shown = path.display();
    let all = match members(path) {
        Ok(all) => all,
        Err(error) => {
            tracing::warn!(model, "'{shown}' is left out: {error}");
            return Ok(EngineArguments::default());
        }
    };
    let named = |error| ServingError::invalid_arg(format!("model '{model}': '{shown}': {error}"));
    taken(&all, model).map_err(named)
}

/// The members of a file that is an object.
fn members(path: &Path) -> Result<Map<String, Value>, String> {
    let size = fs::metadata(path).map_err(|error| error.to_string())?.len();
    if size > MAX_BYTES {
        return Err(format!("{size} bytes, expected at most {MAX_BYTES}"));
    }
    let text = read_plain_file(path).map_err(|error| error.to_string())?;
    serde_json::from_slice(&text).map_err(|error| error.to_string())
}

/// Arguments of the engine among members.
fn taken(all: &Map<String, Value>, model: &str) -> Result<EngineArguments, String> {
    let mut arguments = EngineArguments::default();
    for (name, value) in all.iter().filter(|(name, value)| *name != "model" && !value.is_null()) {
        let known = arguments.set(name, value)?;
        if WITHOUT_EFFECT.contains(&name.as_str()) {
            tracing::info!(
                model,
                argument = name,
                "this argument of the engine has no effect here"
            );
        } else if !known {
            tracing::warn!(model, argument = name, %value, "this argument of the engine is not known here");
        }
    }
    Ok(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<(String, EngineArguments), String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        read(file.path(), "m").map_err(|error| error.message)
    }

    #[test]
    fn arguments_of_vllm_are_understood_or_left_alone() {
        let (model, arguments) = parse(
            r#"{"model": "../w", "max_model_len": 512, "enable_prefix_caching": false, "dtype": "float16",
                "swap_space": 0.5, "gpu_memory_utilization": 0.5, "new_in_vllm": [1], "max_num_seqs": null}"#,
        )
        .unwrap();
        assert_eq!(model, "../w");
        let wanted = EngineArguments {
            max_model_len: Some(512),
            swap_space: Some(1 << 29),
            enable_prefix_caching: Some(false),
            dtype: Some("float16".to_owned()),
            ..EngineArguments::default()
        };
        assert_eq!(arguments, wanted);
    }

    #[test]
    fn a_file_beside_a_checkpoint_gives_arguments_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.json");
        let found = |text: &str| {
            fs::write(&path, text).unwrap();
            beside(&path, "m").map_err(|error| error.message)
        };
        assert_eq!(beside(&path, "m").unwrap(), EngineArguments::default());
        let arguments =
            found(r#"{"model": "elsewhere", "max_model_len": 64, "foreign": {"a": 1}}"#);
        assert_eq!(arguments.unwrap().max_model_len, Some(64));
        let error = found(r#"{"max_model_len": "long"}"#).unwrap_err();
        assert!(
            error.contains("model.json': 'max_model_len' is \"long\", expected a whole"),
            "{error}"
        );
        // Other programs have files of that name.
        for foreign in ["[1, 2]", "<html>"] {
            assert_eq!(found(foreign).unwrap(), EngineArguments::default());
        }
    }

    #[test]
    fn guesses_are_asked_for_in_the_older_way_and_in_the_newer() {
        let older = r#"{"model": "x", "speculative_model": "[ngram]", "num_speculative_tokens": 5,
            "ngram_prompt_lookup_max": 4}"#;
        let newer = r#"{"model": "x", "speculative_config": {"method": "ngram",
            "num_speculative_tokens": 5, "prompt_lookup_max": 4, "prompt_lookup_min": 2}}"#;
        let older = parse(older).unwrap().1;
        let newer = parse(newer).unwrap().1;
        assert_eq!(older, newer);
        assert_eq!(newer.speculative_model.as_deref(), Some("[ngram]"));
        assert_eq!(
            (newer.num_speculative_tokens, newer.ngram_prompt_lookup_max),
            (Some(5), Some(4))
        );
        let draft = r#"{"model": "x", "speculative_config": {"model": "../small"}}"#;
        assert_eq!(parse(draft).unwrap().1.speculative_model.as_deref(), Some("../small"));
    }

    #[test]
    fn wrong_arguments_are_named() {
        for (text, why) in [
            ("[]", "invalid type"),
            ("{}", "\"model\" must be the path"),
            (r#"{"model": "x", "max_model_len": -1}"#, "'max_model_len' is -1, expected a whole"),
            (r#"{"model": "x", "max_num_seqs": 0}"#, "'max_num_seqs' is 0"),
            (r#"{"model": "x", "swap_space": -4}"#, "'swap_space' is -4, expected a number of GiB"),
            (r#"{"model": "x", "enable_prefix_caching": 1}"#, "expected true or false"),
            (r#"{"model": "x", "dtype": 16}"#, "'dtype' is 16, expected a text"),
            (r#"{"model": "x", "speculative_config": 5}"#, "is 5, expected an object"),
            (
                r#"{"model": "x", "speculative_config": {"method": "medusa"}}"#,
                "'method' is \"medusa\", expected \"ngram\"",
            ),
            (
                r#"{"model": "x", "speculative_config": {"num_speculative_tokens": 0}}"#,
                "speculative_config: 'num_speculative_tokens' is 0",
            ),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
