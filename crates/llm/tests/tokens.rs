//! Tokenizers: equality with the reference library, streams, GGUF vocabularies, bad files.

use std::path::PathBuf;

use galatea_llm::tokens::{
    GgufVocabulary, SpecialText, SpecialTokens, StreamStart, TextStream, Tokenizer,
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// The folder of the trained checkpoints, where the environment names one.
fn models() -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("GALATEA_SHARED") else {
        eprintln!("skipped: GALATEA_SHARED is unset");
        return None;
    };
    Some(PathBuf::from(folder).join("models"))
}

fn json_file(path: PathBuf) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn ids(value: &Value) -> Vec<u32> {
    serde_json::from_value(value.clone()).unwrap()
}

fn streamed(tokenizer: &Tokenizer, ids: &[u32], beginning: StreamStart) -> String {
    let mut stream = TextStream::new(beginning, SpecialText::Skip);
    let mut text = String::new();
    for &id in ids {
        stream.push(tokenizer, id, &mut text);
    }
    stream.finish(&mut text);
    text
}

#[test]
fn prompts_and_answers_of_trained_models_are_those_of_the_reference() {
    let Some(models) = models() else { return };
    let golden = json_file(models.join("golden.json"));
    let mut compared = 0;
    for (name, model) in golden.as_object().unwrap() {
        let tokenizer = Tokenizer::from_folder(&models.join(name)).unwrap();
        assert_eq!(tokenizer.eos(), [0], "{name}");
        for case in model["cases"].as_array().unwrap() {
            let prompt = case["prompt"].as_str().unwrap();
            let expected = ids(&case["ids"]);
            let found = tokenizer.encode(prompt, SpecialTokens::Add).unwrap();
            // T5's own examples end with EOS, which its tokenizer does not add.
            assert_eq!(found, expected[..found.len()], "{name}: {prompt}");
            assert!(expected.len() - found.len() <= 1);
            let answer = ids(&case["greedy_ids"]);
            let text = tokenizer.decode(&answer, SpecialText::Skip);
            assert_eq!(text, case["greedy_text"].as_str().unwrap(), "{name}");
            assert_eq!(streamed(&tokenizer, &answer, StreamStart::AfterPrompt), text);
            compared += 1;
        }
    }
    assert!(compared >= 4);
}

#[test]
fn a_byte_level_vocabulary_of_gguf_encodes_as_its_tokenizer_json() {
    let Some(models) = models() else { return };
    let folder = models.join("books-gpt2-5m");
    let reference = Tokenizer::from_folder(&folder).unwrap();
    let file = json_file(folder.join("tokenizer.json"));
    let mut tokens = vec![String::new(); reference.vocabulary_size()];
    for (name, id) in file["model"]["vocab"].as_object().unwrap() {
        tokens[usize::try_from(id.as_u64().unwrap()).unwrap()] = name.clone();
    }
    let mut token_types = vec![1; tokens.len()];
    token_types[0] = 3;
    token_types[1] = 3;
    let merges = file["model"]["merges"].as_array().unwrap().iter().map(|merge| match merge {
        Value::String(line) => line.clone(),
        pair => format!("{} {}", pair[0].as_str().unwrap(), pair[1].as_str().unwrap()),
    });
    let vocabulary = GgufVocabulary {
        model: "gpt2".to_owned(),
        pre: "gpt-2".to_owned(),
        tokens,
        token_types,
        // Such a merge never takes place.
        merges: merges.chain(["nonesuch t".to_owned()]).collect(),
        bos: Some(0),
        eos: Some(0),
        ..GgufVocabulary::default()
    };
    let tokenizer = Tokenizer::from_gguf(&vocabulary).unwrap();
    assert_eq!(tokenizer.eos(), [0]);
    let text = std::fs::read_to_string(models.join("val.txt")).unwrap();
    for line in text.lines().take(300) {
        let line = format!("{line}<|endoftext|>\u{1F600}");
        let found = tokenizer.encode(&line, SpecialTokens::Add).unwrap();
        assert_eq!(found, reference.encode(&line, SpecialTokens::Add).unwrap(), "{line}");
        assert_eq!(tokenizer.decode(&found, SpecialText::Keep), line);
    }
    let with_bos = GgufVocabulary { add_bos: Some(true), ..vocabulary.clone() };
    let tokenizer = Tokenizer::from_gguf(&with_bos).unwrap();
    assert_eq!(tokenizer.encode("a", SpecialTokens::Add).unwrap()[0], 0);
    assert_eq!(tokenizer.encode("a", SpecialTokens::Omit).unwrap().len(), 1);
    let unknown = GgufVocabulary { pre: "nonesuch".to_owned(), ..vocabulary };
    let error = Tokenizer::from_gguf(&unknown).unwrap_err().to_string();
    assert!(error.contains("tokenizer.ggml.pre") && error.contains("qwen2"), "{error}");
}

/// A SentencePiece vocabulary: unknown, BOS, EOS, all bytes, and some scored pieces.
fn sentence_piece() -> GgufVocabulary {
    let mut vocabulary = GgufVocabulary {
        model: "llama".to_owned(),
        tokens: ["<unk>", "<s>", "</s>"].map(str::to_owned).to_vec(),
        token_types: vec![2, 3, 3],
        scores: vec![0.0; 3],
        bos: Some(1),
        eos: Some(2),
        unk: Some(0),
        ..GgufVocabulary::default()
    };
    for byte in 0..=255u8 {
        vocabulary.tokens.push(format!("<0x{byte:02X}>"));
        vocabulary.token_types.push(6);
        vocabulary.scores.push(0.0);
    }
    let pieces = [
        "▁a", "ab", "▁ab", "bc", "abc", "▁abc", "ca", "▁▁", "cab", "bca", "▁bc", "aa", "aaaa", "▁",
        "a", "b", "c", "é",
    ];
    for (rank, piece) in pieces.iter().enumerate() {
        vocabulary.tokens.push((*piece).to_owned());
        vocabulary.token_types.push(1);
        vocabulary.scores.push(-(rank as f32));
    }
    vocabulary
}

/// SentencePiece's rule, read plainly: join the neighbours whose joined piece has the best score.
fn joined_by_score(vocabulary: &GgufVocabulary, text: &str) -> Vec<u32> {
    let score = |piece: &str| {
        let at = vocabulary.tokens.iter().position(|t| t == piece)?;
        (vocabulary.token_types[at] == 1).then(|| vocabulary.scores[at])
    };
    let prefixed = format!("▁{}", text.replace(' ', "▁"));
    let mut pieces: Vec<String> = prefixed.chars().map(String::from).collect();
    loop {
        let best = (0..pieces.len().saturating_sub(1))
            .filter_map(|i| Some((i, score(&(pieces[i].clone() + &pieces[i + 1]))?)))
            .reduce(|a, b| if b.1 > a.1 { b } else { a });
        let Some((i, _)) = best else { break };
        let right = pieces.remove(i + 1);
        pieces[i] += &right;
    }
    let id = |name: &str| vocabulary.tokens.iter().position(|t| t == name);
    let of = |piece: &String| match id(piece) {
        Some(id) => vec![id],
        None => piece.bytes().map(|b| id(&format!("<0x{b:02X}>")).unwrap()).collect(),
    };
    pieces.iter().flat_map(of).map(|id| u32::try_from(id).unwrap()).collect()
}

proptest! {
    #[test]
    fn pieces_are_joined_by_score(text in "[abc é\u{4E2D}]{1,24}") {
        let vocabulary = sentence_piece();
        let tokenizer = Tokenizer::from_gguf(&vocabulary).unwrap();
        let found = tokenizer.encode(&text, SpecialTokens::Omit).unwrap();
        prop_assert_eq!(&found, &joined_by_score(&vocabulary, &text));
        prop_assert_eq!(tokenizer.decode(&found, SpecialText::Skip), text);
    }

    #[test]
    fn a_stream_gives_the_text_of_all_its_tokens(ids in prop::collection::vec(0u32..290, 0..40)) {
        let tokenizer = Tokenizer::from_gguf(&sentence_piece()).unwrap();
        let bytes: Vec<u8> = ids
            .iter()
            .filter(|id| !tokenizer.is_special(**id))
            .filter_map(|id| tokenizer.token_bytes(*id))
            .flatten()
            .copied()
            .collect();
        let whole = streamed(&tokenizer, &ids, StreamStart::AfterPrompt);
        prop_assert_eq!(&whole, &String::from_utf8_lossy(&bytes));
        // Text that was given out is never taken back: each prefix of ids gives a prefix of it.
        let mut stream = TextStream::new(StreamStart::AfterPrompt, SpecialText::Skip);
        let mut text = String::new();
        for id in ids {
            stream.push(&tokenizer, id, &mut text);
            prop_assert!(whole.starts_with(&text));
        }
    }
}

#[test]
fn the_first_space_belongs_to_sentence_piece() {
    let tokenizer = Tokenizer::from_gguf(&sentence_piece()).unwrap();
    let ids = tokenizer.encode("ab c", SpecialTokens::Add).unwrap();
    assert_eq!(ids[0], 1);
    assert_eq!(tokenizer.decode(&ids, SpecialText::Skip), "ab c");
    assert_eq!(tokenizer.decode(&ids, SpecialText::Keep), "<s> ab c");
    assert_eq!(streamed(&tokenizer, &ids, StreamStart::AfterPrompt), " ab c");
    let text = "ab</s>c";
    let ids = tokenizer.encode(text, SpecialTokens::Omit).unwrap();
    assert!(ids.contains(&2), "the text of a special token is that token: {ids:?}");
}

#[test]
fn characters_wait_for_their_last_byte() {
    let tokenizer = Tokenizer::from_gguf(&sentence_piece()).unwrap();
    let byte = |b: u8| 3 + u32::from(b);
    let mut stream = TextStream::new(StreamStart::OfText, SpecialText::Skip);
    let mut text = String::new();
    for (b, expected) in [(0xE4, ""), (0xB8, ""), (0xAD, "中"), (0xF0, "中"), (0x9F, "中")] {
        stream.push(&tokenizer, byte(b), &mut text);
        assert_eq!(text, expected);
    }
    assert!(stream.is_holding());
    stream.push(&tokenizer, byte(b'x'), &mut text);
    assert_eq!(text, "中\u{FFFD}x");
    stream.push(&tokenizer, byte(0xC3), &mut text);
    stream.finish(&mut text);
    assert_eq!(text, "中\u{FFFD}x\u{FFFD}");
}

fn word_piece() -> Value {
    json!({
        "version": "1.0", "truncation": null, "padding": {"strategy": "bad"},
        "added_tokens": [
            {"id": 9, "content": "[MASK]", "single_word": false, "lstrip": false, "rstrip": false,
             "normalized": false, "special": true},
        ],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100,
                  "vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "he": 3, "##llo": 4, "world": 5, ".": 6}},
    })
}

fn load(value: &Value) -> Result<Tokenizer, String> {
    Tokenizer::from_json(&serde_json::to_vec(value).unwrap()).map_err(|e| e.to_string())
}

#[test]
fn word_pieces_pairs_and_added_ids() {
    let tokenizer = load(&word_piece()).unwrap();
    let ids = tokenizer.encode("Hello world. [MASK]", SpecialTokens::Add).unwrap();
    assert_eq!(ids, [1, 3, 4, 5, 6, 9, 2], "the mask keeps the id of the file");
    assert_eq!(tokenizer.vocabulary_size(), 10);
    assert_eq!(tokenizer.token_bytes(7), None);
    let text = tokenizer.decode(&[3, 4, 5, 6], SpecialText::Skip);
    assert_eq!(text, "hello world.");
    let long: Vec<u32> = [3, 4, 5, 6].repeat(20);
    assert_eq!(tokenizer.decode(&long, SpecialText::Skip), vec![text; 20].join(" "));
    assert_eq!(streamed(&tokenizer, &[3, 4], StreamStart::AfterPrompt), " hello");
    let (ids, segments) = tokenizer.encode_pair("hello", "world").unwrap();
    assert_eq!(ids, [1, 3, 4, 2, 5, 2]);
    assert_eq!(segments, [0, 0, 0, 0, 1, 1]);
}

#[test]
fn bad_files_are_refused_by_place() {
    let broken = |change: &dyn Fn(&mut Value)| {
        let mut value = word_piece();
        change(&mut value);
        load(&value).unwrap_err()
    };
    let bpe = |prefix: Value, merges: Value| {
        json!({"type": "BPE", "continuing_subword_prefix": prefix, "merges": merges,
               "vocab": {"a": 0, "b": 1, "ab": 2, "##b": 3, "a##": 4, "##": 5}})
    };
    let cases: Vec<(&str, String)> = vec![
        ("version", broken(&|v| v["version"] = json!("2.0"))),
        ("added_tokens[0]", broken(&|v| v["added_tokens"][0]["id"] = json!(4_000_000_000u32))),
        ("model.vocab", broken(&|v| v["model"]["vocab"]["he"] = json!(-1))),
        ("model.vocab", broken(&|v| v["model"]["vocab"] = json!("x"))),
        (
            "max_input_chars_per_word",
            broken(&|v| v["model"]["max_input_chars_per_word"] = json!(1_000_000)),
        ),
        ("model.merges[0]", broken(&|v| v["model"] = bpe(json!(null), json!(["a zzzzzzzzzzzz"])))),
        ("model.merges[0]", broken(&|v| v["model"] = bpe(json!(null), json!([["ab", "ab"]])))),
        ("model.merges[0]", broken(&|v| v["model"] = bpe(json!("##"), json!(["a b"])))),
        ("model.merges[0]", broken(&|v| v["model"] = bpe(json!(null), json!(["a"])))),
        (
            "decoder.stop",
            broken(&|v| {
                v["decoder"] = json!({"type": "Strip", "content": " ", "start": 0, "stop": 1})
            }),
        ),
        (
            "pre_tokenizer.length",
            broken(&|v| v["pre_tokenizer"] = json!({"type": "FixedLength", "length": 0})),
        ),
        (
            "precompiled_charsmap",
            broken(&|v| {
                v["normalizer"] = json!({"type": "Precompiled", "precompiled_charsmap": null})
            }),
        ),
        (
            "precompiled_charsmap",
            broken(&|v| {
                v["normalizer"] = json!({"type": "Precompiled", "precompiled_charsmap": "AAAA"})
            }),
        ),
        (
            "normalizer",
            broken(&|v| {
                let grow = json!({"type": "Replace", "pattern": {"String": "a"}, "content": "a".repeat(100)});
                v["normalizer"] = json!({"type": "Sequence", "normalizers": vec![grow; 8]});
            }),
        ),
        (
            "post_processor.single[0]",
            broken(&|v| {
                v["post_processor"] = json!({"type": "TemplateProcessing", "pair": [], "special_tokens": {},
                "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}]});
            }),
        ),
        (
            "post_processor.single[0]",
            broken(&|v| {
                v["post_processor"] = json!({"type": "TemplateProcessing", "pair": [], "special_tokens": {},
                "single": [{"Sequence": {"id": "B", "type_id": 0}}]});
            }),
        ),
        ("tokenizer", broken(&|v| v["decoder"] = json!({"type": "Nonesuch"}))),
        ("decoder", broken(&|v| v["decoder"] = json!(7))),
        (
            "tokenizer",
            broken(
                &|v| v["pre_tokenizer"] = json!({"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated", "invert": false}),
            ),
        ),
    ];
    for (place, error) in cases {
        assert!(
            error.starts_with(place)
                || error.contains(&format!(".{place}"))
                || error.contains(place),
            "{place}: {error}"
        );
    }
    assert!(Tokenizer::from_json(b"{").is_err());
    assert!(Tokenizer::from_json(&b"[".repeat(100_000)).is_err());
}

#[test]
fn ends_of_answers_come_from_all_files() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, value: Value| {
        std::fs::write(folder.path().join(name), serde_json::to_vec(&value).unwrap()).unwrap();
    };
    write("tokenizer.json", word_piece());
    write("config.json", json!({"eos_token_id": 5, "bos_token_id": 1, "pad_token_id": 0}));
    let ends = || Tokenizer::from_folder(folder.path()).map(|t| t.eos().to_vec());
    assert_eq!(ends().unwrap(), [5]);
    write("generation_config.json", json!({"eos_token_id": [2, 3, 2, 5000]}));
    assert_eq!(ends().unwrap(), [2, 3], "an id behind the vocabulary never comes");
    write("tokenizer_config.json", json!({"eos_token": {"content": "[SEP]"}, "bos_token": null}));
    assert_eq!(ends().unwrap(), [2, 3]);
    let tokenizer = Tokenizer::from_folder(folder.path()).unwrap();
    assert_eq!((tokenizer.bos(), tokenizer.special_ids().pad), (Some(1), Some(0)));
    write("generation_config.json", json!({"eos_token_id": "x"}));
    let error = ends().unwrap_err().to_string();
    assert!(error.contains("generation_config.json: eos_token_id"), "{error}");
    let missing = Tokenizer::from_folder(&folder.path().join("none")).unwrap_err().to_string();
    assert!(missing.contains("tokenizer.json"), "{missing}");
}
