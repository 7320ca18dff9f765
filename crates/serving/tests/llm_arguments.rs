//! Every argument of an engine for language models, and every sampling parameter: a right value is taken, a wrong one is
//! refused with its name.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use galatea_llm::sampling::SamplingParameters;
use galatea_llm::{LlmError, LlmErrorKind};
use galatea_serving::backend::llm::{EngineArguments, LlmBackend, LoadModel};
use galatea_serving::{Core, CoreOptions};
use galatea_tensor::OrderedSet;
use serde_json::{Value, json};

/// Arguments with a value that is none of the usual ones.
fn arguments() -> Vec<(&'static str, Value)> {
    vec![
        ("max_model_len", json!(77)),
        ("max_num_seqs", json!(3)),
        ("max_num_batched_tokens", json!(96)),
        ("max_waiting", json!(5)),
        ("block_size", json!(8)),
        ("num_gpu_blocks_override", json!(40)),
        ("kv_cache_memory_bytes", json!(1_000_000)),
        ("swap_space", json!(0.25)),
        ("enable_prefix_caching", json!(false)),
        ("device", json!("cpu")),
        ("worker", json!("on")),
        ("power_mode", json!("low_power")),
        ("dtype", json!("float16")),
        ("quantization", json!("int8")),
        ("kv_cache_dtype", json!("int8")),
        ("tokenizer", json!("/elsewhere")),
        ("chat_template", json!("{{ messages }}")),
        ("speculative_model", json!("[ngram]")),
        ("num_speculative_tokens", json!(4)),
        ("ngram_prompt_lookup_max", json!(3)),
    ]
}

/// Fields of a value, as it is printed, and their values.
fn fields(value: &impl std::fmt::Debug) -> Vec<(String, String)> {
    let text = format!("{value:#?}");
    let inner: Vec<&str> = text.lines().collect();
    let mut found: Vec<(String, String)> = Vec::new();
    for line in &inner[1..inner.len() - 1] {
        match line.strip_prefix("    ").filter(|line| !line.starts_with([' ', ')', ']', '}'])) {
            Some(line) => {
                let (name, value) = line.split_once(": ").unwrap();
                found.push((name.to_owned(), value.to_owned()));
            }
            None => found.last_mut().unwrap().1 += line,
        }
    }
    found
}

/// Names of the fields that differ.
fn changed(found: &impl std::fmt::Debug, usual: &impl std::fmt::Debug) -> Vec<String> {
    let both = fields(found).into_iter().zip(fields(usual));
    both.filter(|(one, other)| one != other).map(|(one, _)| one.0).collect()
}

/// Options of an engine, or why there is none, for a `model.json` and parameters of the configuration.
fn given(file: &Value, parameters: &str) -> Result<EngineArguments, String> {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("models/m/1");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("model.json"), file.to_string()).unwrap();
    fs::create_dir_all(root.path().join("weights")).unwrap();
    fs::write(root.path().join("weights/config.json"), "{}").unwrap();
    fs::write(root.path().join("weights/model.safetensors"), "").unwrap();
    let config = format!("backend: 'vllm' {parameters}");
    fs::write(root.path().join("models/m/config.pbtxt"), config).unwrap();
    let seen = Arc::new(Mutex::new(None));
    let noted = Arc::clone(&seen);
    let load: LoadModel = Arc::new(move |_: &str, _: &Path, arguments: &EngineArguments| {
        *noted.lock().unwrap() = Some(arguments.clone());
        Err(LlmError::new(LlmErrorKind::Model, "test", "nothing is loaded here"))
    });
    let options = CoreOptions {
        repositories: vec![root.path().join("models")],
        exit_on_error: false,
        ..CoreOptions::default()
    };
    let core = Core::start(options, LlmBackend::all(&load)).unwrap();
    let reason = core.load_failures().remove(0).reason;
    seen.lock().unwrap().take().ok_or(reason)
}

fn named(name: &str, value: &Value) -> Value {
    json!({"model": "../../../weights", name: value})
}

/// A configuration's parameter.
fn parameter(name: &str, value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    format!("parameters {{ key: '{name}' value {{ string_value: '{text}' }} }}")
}

#[test]
fn every_argument_of_an_engine_is_taken_from_both_places() {
    let plain = json!({"model": "../../../weights"});
    let usual = given(&plain, "").unwrap();
    let mut proved = OrderedSet::new();
    for (name, value) in arguments() {
        let of_file = given(&named(name, &value), "").unwrap();
        assert_eq!(changed(&of_file, &usual), [name], "model.json: {value}");
        let of_config = given(&plain, &parameter(name, &value)).unwrap();
        assert_eq!(of_config, of_file, "{name}: {value}");
        proved.insert(name.to_owned());
    }
    // What `metal_config` says has a table of its own.
    let known: OrderedSet<String> = fields(&EngineArguments::default())
        .into_iter()
        .map(|(name, _)| name)
        .filter(|name| name != "metal")
        .collect();
    assert_eq!(proved, known);
}

#[test]
fn a_wrong_value_of_each_argument_is_refused_with_its_name() {
    for (name, value) in arguments() {
        let wrong = match value {
            Value::Bool(_) => vec![json!(1), json!("maybe"), json!([true]), json!({})],
            Value::String(_) => vec![json!(1), json!(true), json!(["a"]), json!({})],
            _ => vec![json!(-1), json!("many"), json!(true), json!([1]), json!({}), json!(1e300)],
        };
        for wrong in wrong {
            let error = given(&named(name, &wrong), "").unwrap_err();
            let said = error.contains(&format!("'{name}' is {wrong}, expected "));
            assert!(said, "{name} {wrong}: {error}");
            // Any text is a text.
            if value.is_string() {
                continue;
            }
            let plain = json!({"model": "../../../weights"});
            let error = given(&plain, &parameter(name, &wrong)).unwrap_err();
            let said = error.contains(&format!("parameter '{name}' is "));
            assert!(said && error.contains("expected "), "{name} {wrong}: {error}");
        }
    }
}

/// Sampling parameters with a value that is none of the usual ones, and one of a wrong type.
fn sampling() -> Vec<(&'static str, Value, Value)> {
    vec![
        ("temperature", json!(0.5), json!("hot")),
        ("top_k", json!(3), json!(1.5)),
        ("top_p", json!(0.5), json!("all")),
        ("min_p", json!(0.1), json!(true)),
        ("typical_p", json!(0.9), json!([1])),
        ("repetition_penalty", json!(1.1), json!({})),
        ("presence_penalty", json!(0.1), json!("0.1")),
        ("frequency_penalty", json!(0.1), json!(false)),
        ("logit_bias", json!({"5": 1.5}), json!([5])),
        ("seed", json!(7), json!(-7)),
        ("n", json!(2), json!(-1)),
        ("best_of", json!(1), json!("one")),
        ("logprobs", json!(2), json!(2.5)),
        ("prompt_logprobs", json!(1), json!("1")),
        ("min_tokens", json!(3), json!(-3)),
        ("max_tokens", json!(9), json!(4.5)),
        ("stop", json!(["a", "b"]), json!(5)),
        ("stop_token_ids", json!([5]), json!(5)),
        ("include_stop_str_in_output", json!(true), json!(1)),
        ("ignore_eos", json!(true), json!("yes")),
        ("skip_special_tokens", json!(false), json!(0)),
    ]
}

#[test]
fn every_sampling_parameter_is_taken_and_refused_with_another_type() {
    let usual = SamplingParameters::default();
    let read = |name: &str, value: &Value| {
        serde_json::from_value::<SamplingParameters>(json!({name: value}))
    };
    let mut proved = OrderedSet::new();
    for (name, right, wrong) in sampling() {
        assert_eq!(changed(&read(name, &right).unwrap(), &usual), [name], "{right}");
        assert!(read(name, &wrong).is_err(), "{name}: {wrong}");
        proved.insert(name.to_owned());
    }
    let known: OrderedSet<String> = fields(&usual).into_iter().map(|(name, _)| name).collect();
    assert_eq!(proved, known);
    assert!(read("temprature", &json!(1)).unwrap_err().to_string().contains("temprature"));
}
