//! `galatea inspect` of a checkpoint: what it is, how its weights are stored, and what a token takes.

use std::path::Path;

use galatea_llm::facts::{CheckpointFacts, WeightType};
use serde_json::{Value, json};

use crate::table::table;

/// Describes a checkpoint.
///
/// # Errors
/// Fails for missing or damaged files, and for an unknown architecture.
pub(super) fn inspect(path: &Path, json: bool) -> Result<String, String> {
    let facts = CheckpointFacts::read(path).map_err(|error| error.to_string())?;
    Ok(match json {
        true => as_json(path, &facts).to_string(),
        false => as_text(path, &facts),
    })
}

fn as_json(path: &Path, facts: &CheckpointFacts) -> Value {
    let weights: Vec<Value> = facts
        .weights
        .iter()
        .map(|WeightType { name, tensors, numbers, bytes }| {
            json!({"type": name, "tensors": tensors, "parameters": numbers, "bytes": bytes})
        })
        .collect();
    let cache: serde_json::Map<String, Value> =
        facts.cache.iter().map(|of| (of.dtype.to_owned(), of.bytes.into())).collect();
    let tokenizer = match &facts.tokenizer {
        Ok(tokenizer) => json!({"kind": tokenizer.kind, "tokens": tokenizer.tokens}),
        Err(error) => json!({"error": error.to_string()}),
    };
    let mut all = json!({
        "file": path.display().to_string(),
        "format": facts.format,
        "architecture": facts.architecture,
        "duty": facts.duty.name(),
        "layers": facts.layers,
        "encoder_layers": facts.encoder_layers,
        "hidden": facts.hidden,
        "heads": facts.heads,
        "kv_heads": facts.kv_heads,
        "head_size": facts.head_size,
        "context": facts.context,
        "vocabulary": facts.vocabulary,
        "parameters": facts.parameters(),
        "weight_bytes": facts.weight_bytes(),
        "weights": weights,
        "cache_bytes_per_token": cache,
        "tokenizer": tokenizer,
        "chat_template": facts.chat_template,
        "error": facts.problem.as_ref().map(ToString::to_string),
    });
    if let Some(all) = all.as_object_mut() {
        all.retain(|_, value| !value.is_null());
    }
    all
}

/// Bytes for people.
fn size(bytes: usize) -> String {
    const UNITS: [(&str, f64); 3] = [("GB", 1e9), ("MB", 1e6), ("kB", 1e3)];
    let bytes = bytes as f64;
    match UNITS.iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => format!("{:.1} {name}", bytes / unit),
        None => format!("{bytes} bytes"),
    }
}

fn as_text(path: &Path, facts: &CheckpointFacts) -> String {
    let mut lines = vec![
        path.display().to_string(),
        format!("{}, {} in {}", facts.architecture, facts.duty.name(), facts.format),
        shape(facts),
    ];
    lines.push(match facts.context {
        Some(context) => format!("context {context}, vocabulary {}", facts.vocabulary),
        None => format!("vocabulary {}", facts.vocabulary),
    });
    let template = if facts.chat_template { "has" } else { "no" };
    lines.push(match &facts.tokenizer {
        Ok(tokenizer) => format!(
            "tokenizer {} of {} tokens, {template} chat template",
            tokenizer.kind, tokenizer.tokens
        ),
        Err(error) => format!("no tokenizer: {error}"),
    });
    if let Some(error) = &facts.problem {
        lines.push(format!("cannot be loaded: {error}"));
    }
    lines.push(format!("{} parameters, {}", facts.parameters(), size(facts.weight_bytes())));
    let weights = facts.weights.iter().map(|WeightType { name, tensors, numbers, bytes }| {
        vec![name.clone(), tensors.to_string(), numbers.to_string(), size(*bytes)]
    });
    lines.push(table(&["Weights", "Tensors", "Parameters", "Size"], weights).trim_end().to_owned());
    if !facts.cache.is_empty() {
        let cache = facts.cache.iter().map(|of| vec![of.dtype.to_owned(), of.bytes.to_string()]);
        lines.push(table(&["Cache", "Bytes a token"], cache).trim_end().to_owned());
    }
    lines.join("\n")
}

/// Layers, heads and rows.
fn shape(facts: &CheckpointFacts) -> String {
    let mut parts = Vec::new();
    match facts.encoder_layers {
        Some(read) => parts.push(format!("{read} layers that read, {} that write", facts.layers)),
        None => parts.push(format!("{} layers", facts.layers)),
    }
    parts.extend(facts.hidden.map(|hidden| format!("rows of {hidden}")));
    parts.extend(facts.heads.map(|heads| format!("{heads} heads")));
    parts.extend(facts.kv_heads.map(|heads| format!("{heads} of keys and values")));
    parts.extend(facts.head_size.map(|size| format!("each of {size}")));
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoint(name: &str) -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
    }

    fn facts(name: &str) -> (String, Value) {
        let path = checkpoint(name);
        let facts = CheckpointFacts::read(&path).unwrap();
        (as_text(&path, &facts), as_json(&path, &facts))
    }

    #[test]
    fn the_sample_is_described_for_people_and_programs() {
        let (text, json) = facts("examples/models/chat/1");
        for part in ["decoder in safetensors", "has chat template", "BF16", "int8"] {
            assert!(text.contains(part), "{text}");
        }
        let config = std::fs::read(checkpoint("examples/models/chat/1/config.json")).unwrap();
        let config: Value = serde_json::from_slice(&config).unwrap();
        for (key, from) in [
            ("layers", "num_hidden_layers"),
            ("hidden", "hidden_size"),
            ("heads", "num_attention_heads"),
            ("context", "max_position_embeddings"),
            ("vocabulary", "vocab_size"),
        ] {
            assert_eq!(json[key], config[from], "{json}");
        }
        assert_eq!(json["duty"], "decoder");
        assert_eq!(json["tokenizer"]["kind"], "BPE");
        assert!(json["weight_bytes"].as_u64().unwrap() > 1_000_000);
        assert!(json.get("error").is_none() && json.get("encoder_layers").is_none(), "{json}");
    }

    #[test]
    fn encoders_keep_nothing_and_t5_has_two_stacks() {
        let (text, json) = facts("golden/llm/bert-rank");
        assert_eq!(
            (&json["duty"], &json["cache_bytes_per_token"]),
            (&json!("classifier"), &json!({}))
        );
        assert!(text.contains("no tokenizer: "), "{text}");
        let (text, json) = facts("golden/llm/t5");
        assert!(text.contains("layers that read"), "{text}");
        assert!(json.get("context").is_none(), "{json}");
        assert_eq!(json["cache_bytes_per_token"].as_object().unwrap().len(), 1);
    }
}
