//! How byte-level vocabularies cut text into words, by the names that GGUF files use.

use serde_json::{Value, json};

/// One way of cutting.
pub(super) struct PretokenizerRow {
    /// The names of this way.
    pub(super) names: &'static [&'static str],
    /// Patterns that cut, one after the other; each match becomes a piece.
    patterns: &'static [&'static str],
    /// Whether text is composed (NFC) first.
    composed: bool,
    /// Whether a word that is a token stays whole, whatever the merges make of it.
    pub(super) whole_words: bool,
}

const GPT_2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

const LLAMA_3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

const QWEN_2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

const GPT_4O: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";

const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";

const DEEPSEEK_3: &str = r##"[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"##;

const PUNCTUATION: &str = r"[\p{P}\$\+<=>\^~\|]+";

const fn row(names: &'static [&'static str], patterns: &'static [&'static str]) -> PretokenizerRow {
    PretokenizerRow { names, patterns, composed: false, whole_words: false }
}

/// The table. An absent name means `default`.
pub(super) const ROWS: &[PretokenizerRow] = &[
    row(&["gpt-2", "gpt2", "mpt", "olmo", "jais", "phi-2", "roberta-bpe"], &[GPT_2]),
    row(&["default", ""], &[PUNCTUATION, GPT_2, r"\p{N}+", "[0-9][0-9][0-9]"]),
    row(&["falcon"], &[PUNCTUATION, GPT_2, "[0-9][0-9][0-9]"]),
    row(
        &["starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b"],
        &[r"\p{N}", GPT_2],
    ),
    PretokenizerRow {
        names: &["llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral"],
        patterns: &[LLAMA_3],
        composed: false,
        whole_words: true,
    },
    row(&["dbrx", "smaug-bpe", "chatglm-bpe", "glm4", "granite"], &[LLAMA_3]),
    PretokenizerRow {
        names: &["qwen2", "deepseek-r1-qwen", "megrez"],
        patterns: &[QWEN_2],
        composed: true,
        whole_words: false,
    },
    row(&["stablelm2", "hunyuan"], &[QWEN_2]),
    row(&["gpt-4o", "o200k", "llama4"], &[GPT_4O]),
    PretokenizerRow { names: &["tekken"], patterns: &[TEKKEN], composed: false, whole_words: true },
    row(&["deepseek-v3"], &[r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", DEEPSEEK_3]),
];

/// The row of a name.
pub(super) fn find(name: &str) -> Option<&'static PretokenizerRow> {
    ROWS.iter().find(|row| row.names.contains(&name))
}

impl PretokenizerRow {
    /// The `pre_tokenizer` of a `tokenizer.json`.
    pub(super) fn to_json(&self) -> Value {
        let mut parts: Vec<Value> = self
            .patterns
            .iter()
            .map(|pattern| {
                json!({"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated",
                       "invert": false})
            })
            .collect();
        parts.push(json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
                          "use_regex": false}));
        json!({"type": "Sequence", "pretokenizers": parts})
    }

    /// Its `normalizer`.
    pub(super) fn normalizer(&self) -> Value {
        if self.composed { json!({"type": "NFC"}) } else { Value::Null }
    }
}

#[cfg(test)]
mod tests {
    use tokenizers::{OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer};

    #[test]
    fn words_are_cut_as_the_reference_library_cuts_them() {
        let golden: serde_json::Value =
            serde_json::from_str(include_str!("../../tests/golden/pretokenizers.json")).unwrap();
        let rows = golden["pieces"].as_object().unwrap();
        assert_eq!(rows.len(), super::ROWS.len());
        for (name, texts) in rows {
            let row = super::find(name).unwrap();
            let cutter: tokenizers::PreTokenizerWrapper =
                serde_json::from_value(row.to_json()).unwrap();
            for (text, pieces) in
                golden["texts"].as_array().unwrap().iter().zip(texts.as_array().unwrap())
            {
                let mut cut = PreTokenizedString::from(text.as_str().unwrap());
                cutter.pre_tokenize(&mut cut).unwrap();
                let found: Vec<&str> = cut
                    .get_splits(OffsetReferential::Original, OffsetType::Byte)
                    .into_iter()
                    .map(|(piece, _, _)| piece)
                    .collect();
                let expected: Vec<&str> =
                    pieces.as_array().unwrap().iter().map(|p| p.as_str().unwrap()).collect();
                assert_eq!(found, expected, "{name}: {text}");
            }
        }
    }
}
