//! Damaged tokenizers and templates: thousands of fixed mutations of the fuzzer's seeds load or are
//! refused, and what loads works.

use std::path::{Path, PathBuf};

use galatea_llm::template::{ChatTemplate, Conversation};
use galatea_llm::tokens::{SpecialText, SpecialTokens, Tokenizer};
use serde_json::{Value, json};

/// xorshift: the same numbers on every run.
struct Noise(u64);

impl Noise {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap() % limit.max(1)
    }
}

fn seeds(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(folder);
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 5);
    paths
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(entries) => entries.values().map(count).sum(),
        _ => 0,
    }
}

/// The `at`-th value inside of `value`.
fn inner(value: &mut Value, mut at: usize) -> &mut Value {
    if at == 0 {
        return value;
    }
    at -= 1;
    let children: Vec<&mut Value> = match value {
        Value::Array(items) => items.iter_mut().collect(),
        Value::Object(entries) => entries.values_mut().collect(),
        _ => unreachable!("a leaf counts as one"),
    };
    for child in children {
        let size = count(child);
        if at < size {
            return inner(child, at);
        }
        at -= size;
    }
    unreachable!("there are fewer values than counted")
}

/// Puts something else in the place of a value.
fn damage(value: &mut Value, others: &[Value], noise: &mut Noise) {
    let size = count(value);
    let replacement = match noise.below(4) {
        0 => {
            let odd = [
                json!(null),
                json!(0),
                json!(1),
                json!(-1),
                json!(4_294_967_295u32),
                json!(1.5),
                json!(""),
                json!("a"),
                json!("▁"),
                json!(" "),
                json!("##"),
                json!("<0x4"),
                json!([]),
                json!({}),
                json!(true),
                json!("é"),
                json!("("),
                json!(".*"),
                json!("^|$"),
            ];
            odd[noise.below(odd.len())].clone()
        }
        1 => {
            let mut other = others[noise.below(others.len())].clone();
            let at = noise.below(count(&other));
            inner(&mut other, at).take()
        }
        2 => inner(&mut value.clone(), noise.below(size)).take(),
        _ => {
            let target = inner(value, noise.below(size));
            match target {
                Value::Array(items) if !items.is_empty() => {
                    drop(items.remove(noise.below(items.len())))
                }
                Value::Object(entries) if !entries.is_empty() => {
                    let key = entries.keys().nth(noise.below(entries.len())).unwrap().clone();
                    entries.remove(&key);
                }
                Value::String(text) => text.push('a'),
                _ => {}
            }
            return;
        }
    };
    *inner(value, 1 + noise.below(size - 1)) = replacement;
}

fn use_tokenizer(tokenizer: &Tokenizer) {
    for text in ["", " ab a1 <s> \u{4E2D}\u{1F600}aab\n", "aaaabbbb"] {
        if let Ok(ids) = tokenizer.encode(text, SpecialTokens::Add) {
            let _ = tokenizer.decode(&ids, SpecialText::Keep);
        }
    }
    let _ = tokenizer.encode_pair("ab", "b a");
    let ids: Vec<u32> = (0..40).rev().collect();
    let _ = tokenizer.decode(&ids, SpecialText::Skip);
}

#[test]
fn damaged_tokenizers_load_or_are_refused() {
    let seeds: Vec<Value> = seeds("tokenizer")
        .iter()
        .map(|path| serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap())
        .collect();
    let mut noise = Noise(0x5EED);
    let mut loaded = 0;
    for seed in &seeds {
        let whole = Tokenizer::from_json(&serde_json::to_vec(seed).unwrap()).unwrap();
        use_tokenizer(&whole);
        for _ in 0..600 {
            let mut value = seed.clone();
            for _ in 0..=noise.below(3) {
                if count(&value) > 1 {
                    damage(&mut value, &seeds, &mut noise);
                }
            }
            if let Ok(tokenizer) = Tokenizer::from_json(&serde_json::to_vec(&value).unwrap()) {
                use_tokenizer(&tokenizer);
                loaded += 1;
            }
        }
    }
    assert!(loaded > 300, "most damage should leave something that loads: {loaded}");
}

#[test]
fn damaged_templates_compile_or_are_refused() {
    let mut noise = Noise(0x7E47);
    let conversation = Conversation {
        messages: vec![
            json!({"role": "user", "content": "x"}),
            json!({"role": "assistant", "content": "y"}),
        ],
        ..Conversation::default()
    };
    let mut rendered = 0;
    for path in seeds("template") {
        let seed: Vec<char> = std::fs::read_to_string(path).unwrap().chars().collect();
        for _ in 0..300 {
            let mut text = seed.clone();
            for _ in 0..=noise.below(3) {
                let from = noise.below(text.len());
                let to = (from + noise.below(12)).min(text.len());
                let piece: Vec<char> = text[from..to].to_vec();
                match noise.below(3) {
                    0 => drop(text.drain(from..to)),
                    1 => {
                        let at = noise.below(text.len());
                        text.splice(at..at, piece);
                    }
                    _ => text.swap(from, to.saturating_sub(1).max(from)),
                }
            }
            let text: String = text.into_iter().collect();
            if let Ok(template) = ChatTemplate::new(&text) {
                rendered += usize::from(template.render(&conversation).is_ok());
            }
        }
    }
    assert!(rendered > 50, "some damage should leave a template that renders: {rendered}");
}
