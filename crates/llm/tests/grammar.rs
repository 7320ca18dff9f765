//! Structured output: every answer that the masks allow follows its grammar.

use std::sync::Arc;

use galatea_llm::grammar::{Grammar, GrammarCompiler, GrammarConstraint};
use galatea_llm::sampling::{SamplerScratch, SamplingParameters, TokenSampler};
use galatea_llm::tokens::{GgufVocabulary, SpecialText, SpecialTokens, Tokenizer};
use serde_json::{Value, json};

/// A byte-level vocabulary (`gpt2`) or one of SentencePiece (`llama`): an end token, all bytes, and
/// a few longer pieces.
fn tokenizer(model: &str) -> Arc<Tokenizer> {
    let mut vocabulary = GgufVocabulary {
        model: model.to_owned(),
        pre: "gpt-2".to_owned(),
        tokens: vec!["<end>".to_owned()],
        token_types: vec![3],
        eos: Some(0),
        ..GgufVocabulary::default()
    };
    let pieces: &[&str] = if model == "gpt2" {
        for code in (0x21..=0x7E).chain(0xA1..=0xAC).chain(0xAE..=0xFF).chain(0x100..=0x143) {
            vocabulary.tokens.push(char::from_u32(code).unwrap().to_string());
        }
        vocabulary.merges =
            vec!["t r".to_owned(), "u e".to_owned(), "tr ue".to_owned(), "\" :".to_owned()];
        &["tr", "ue", "true", "\":"]
    } else {
        vocabulary.tokens.extend((0..=255u8).map(|byte| format!("<0x{byte:02X}>")));
        vocabulary.unk = Some(0);
        &["▁", "a", "▁a", "true", "\":", "{", "}"]
    };
    vocabulary.tokens.extend(pieces.iter().map(|p| (*p).to_owned()));
    let normal = if model == "gpt2" { 1 } else { 6 };
    vocabulary.token_types.extend((1..257).map(|_| normal));
    vocabulary.token_types.extend(pieces.iter().map(|_| 1));
    Arc::new(Tokenizer::from_gguf(&vocabulary).unwrap())
}

/// An answer of random tokens among those that are allowed.
fn answer(tokenizer: &Tokenizer, constraint: &mut GrammarConstraint, seed: u64) -> String {
    let size = tokenizer.vocabulary_size();
    let parameters =
        SamplingParameters { seed: Some(seed), max_tokens: None, ..SamplingParameters::default() };
    let mut sampler = TokenSampler::new(&parameters, size, &[], &[], 0).unwrap();
    let mut scratch = SamplerScratch::new(size + 7);
    let mut ids = Vec::new();
    for step in 0..400 {
        // Rows may be padded. Ends and what closes become more probable, so that answers end.
        let mut logits = vec![0.0; size + 7];
        for (weight, closing, byte) in
            [(0.3, "<end>", ""), (0.2, "\"", "<0x22>"), (0.1, "}", "<0x7D>"), (0.1, ">", "<0x3E>")]
        {
            let id = tokenizer.token_to_id(closing).or_else(|| tokenizer.token_to_id(byte));
            logits[id.unwrap() as usize] = step as f32 * weight;
        }
        constraint.mask(&mut logits).unwrap();
        let token = sampler.sample(&mut logits, &mut scratch).unwrap();
        if tokenizer.eos().contains(&token) {
            assert!(constraint.may_finish().unwrap());
            return tokenizer.decode(&ids, SpecialText::Skip);
        }
        sampler.observe(token);
        constraint.accept(token).unwrap();
        ids.push(token);
    }
    panic!("no end after 400 tokens: {}", tokenizer.decode(&ids, SpecialText::Skip));
}

fn answers(grammar: &Grammar) -> Vec<String> {
    let mut texts = Vec::new();
    for model in ["gpt2", "llama"] {
        let tokenizer = tokenizer(model);
        let compiler = GrammarCompiler::new(tokenizer.clone()).unwrap();
        for seed in 0..6 {
            texts.push(answer(&tokenizer, &mut compiler.compile(grammar).unwrap(), seed));
        }
    }
    texts
}

#[test]
fn json_follows_its_schema() {
    let schema = json!({
        "type": "object",
        "properties": {"ok": {"type": "boolean"}, "kind": {"enum": ["a", "bé"]},
                       "n": {"type": "integer", "minimum": 0, "maximum": 99}},
        "required": ["ok", "kind", "n"], "additionalProperties": false,
    });
    for text in answers(&Grammar::JsonSchema(schema)) {
        let value: Value = serde_json::from_str(&text).expect(&text);
        assert!(value["ok"].is_boolean(), "{text}");
        assert!(value["kind"] == "a" || value["kind"] == "bé", "{text}");
        assert!(value["n"].as_u64().is_some_and(|n| n <= 99), "{text}");
        assert_eq!(value.as_object().unwrap().len(), 3, "{text}");
    }
    for text in answers(&Grammar::JsonObject) {
        assert!(serde_json::from_str::<Value>(&text).expect(&text).is_object());
    }
}

#[test]
fn expressions_choices_and_grammars() {
    for text in answers(&Grammar::Regex("[0-9]{3}-(x|yz)/é".to_owned())) {
        let (digits, rest) = text.split_once('-').unwrap();
        assert!(digits.len() == 3 && digits.bytes().all(|b| b.is_ascii_digit()), "{text}");
        assert!(rest == "x/é" || rest == "yz/é", "{text}");
    }
    let choices = ["a/b", "a|b", "(", "\\", "\"q\" 1", "中\n"].map(str::to_owned).to_vec();
    for text in answers(&Grammar::Choice(choices.clone())) {
        assert!(choices.contains(&text), "{text:?}");
    }
    let lark = "start: pair+\npair: \"<\" pair? \">\"\n".to_owned();
    for text in answers(&Grammar::Lark(lark)) {
        let depth = text.bytes().try_fold(0i32, |depth, b| {
            let depth = if b == b'<' { depth + 1 } else { depth - 1 };
            (depth >= 0).then_some(depth)
        });
        assert_eq!(depth, Some(0), "{text}");
        assert!(!text.is_empty());
    }
}

/// What llama.cpp ships for JSON, with less text so that random answers end.
const JSON: &str = r#"
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws  # a comment
object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value){0,2}
  )? "}" ws
array  ::= "[" ws ( value ("," ws value){0,2} )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) ){0,3} "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [1-9] [0-9]?)? ws
ws     ::= | " " | "\n" [ \t]{0,3}
"#;

#[test]
fn grammars_of_llama_cpp_are_understood() {
    for text in answers(&Grammar::from_text(JSON.to_owned())) {
        let value: Value = serde_json::from_str(&text).expect(&text);
        assert!(value.is_object(), "{text}");
    }
    // A rule that repeats itself at its end, and text behind it that it could have taken.
    let tail = "root ::= word \"b!\"\nword ::= [a-c] word | [a-c]\n".to_owned();
    for text in answers(&Grammar::from_text(tail)) {
        let word = text.strip_suffix("b!").expect(&text);
        assert!(!word.is_empty() && word.bytes().all(|b| b"abc".contains(&b)), "{text}");
    }
    let sums = r#"root ::= sum
sum ::= term (" + " term)?
term ::= [0-9]{1,2} | "(" sum ")" | "é\u0021"
"#;
    for text in answers(&Grammar::from_text(sums.to_owned())) {
        let open = text.matches('(').count();
        assert_eq!(open, text.matches(')').count(), "{text}");
        assert!(text.chars().all(|c| "0123456789 +()é!".contains(c)), "{text}");
    }
}

#[test]
fn what_must_come_is_told() {
    let tokenizer = tokenizer("gpt2");
    let compiler = GrammarCompiler::new(tokenizer.clone()).unwrap();
    let mut constraint = compiler.compile(&Grammar::Regex("true(1|2)".to_owned())).unwrap();
    let forced = constraint.forced();
    assert_eq!(tokenizer.decode(&forced, SpecialText::Skip), "true");
    assert_eq!(forced.len(), 1, "as the tokenizer encodes it");
    assert_eq!(constraint.allowed_prefix(&[forced[0], 0]).unwrap(), 1);
    let mut other = constraint.clone();
    forced.iter().for_each(|token| constraint.accept(*token).unwrap());
    assert!(!constraint.may_finish().unwrap());
    assert_eq!(constraint.allowed().unwrap().len(), 2);
    constraint.accept(tokenizer.token_to_id("2").unwrap()).unwrap();
    assert!(constraint.may_finish().unwrap());
    assert_eq!(constraint.allowed().unwrap(), [0]);
    assert!(other.accept(tokenizer.token_to_id("x").unwrap()).is_err());
}

#[test]
fn bad_grammars_are_refused_before_any_work() {
    let compiler = GrammarCompiler::new(tokenizer("gpt2")).unwrap();
    for grammar in [
        Grammar::Regex("(".to_owned()),
        Grammar::Regex("[^\\s\\S]".to_owned()),
        Grammar::Lark("start: missing".to_owned()),
        Grammar::Lark("nonsense".to_owned()),
        Grammar::Lark(String::new()),
        Grammar::Gbnf("root ::= a\na ::= \"(\" a \")\"".to_owned()),
        Grammar::Gbnf("root ::= none".to_owned()),
        Grammar::Gbnf("root ::= [^\\x00-\\U0010FFFF]".to_owned()),
        Grammar::Lark("x".repeat(2 << 20)),
        Grammar::Choice(vec![]),
        Grammar::Choice(vec!["x".to_owned(); 5000]),
        Grammar::JsonSchema(json!(7)),
        Grammar::JsonSchema(json!({"type": "nonesuch"})),
        Grammar::JsonSchema(json!({"type": "string", "minLength": 5, "maxLength": 2})),
        Grammar::JsonSchema(json!(false)),
        Grammar::JsonSchema(json!({"$ref": "#/definitions/none"})),
    ] {
        let shown: String = format!("{grammar:?}").chars().take(80).collect();
        let error = compiler.compile(&grammar).expect_err(&shown);
        assert!(!error.message().is_empty() && error.message().len() < 2000, "{shown}: {error}");
    }
    let row = &mut [0.0; 3];
    assert!(compiler.compile(&Grammar::JsonObject).unwrap().mask(row).is_err());
}

#[test]
fn json_cannot_be_spaces_for_ever() {
    let tokenizer = tokenizer("gpt2");
    let compiler = GrammarCompiler::new(Arc::clone(&tokenizer)).unwrap();
    let mut constraint = compiler.compile(&Grammar::JsonObject).unwrap();
    let mut accept = |text: &str| {
        let tokens = tokenizer.encode(text, SpecialTokens::Omit).unwrap();
        tokens.into_iter().all(|token| constraint.accept(token).is_ok())
    };
    assert!(accept("{\n        \"a\":"));
    let spaces = (0..100).take_while(|_| accept(" ")).count();
    assert!((1..=24).contains(&spaces), "{spaces}");
}

#[test]
fn grammars_that_explode_are_refused_or_shared() {
    let compiler = GrammarCompiler::new(tokenizer("gpt2")).unwrap();
    for pattern in ["(a{1000}){1000}", "a{1000000}", "((a{100}){100}){100}"] {
        // What is only looked at where an answer gets to it may begin.
        let Ok(constraint) = compiler.compile(&Grammar::Regex(pattern.to_owned())) else {
            continue;
        };
        let mut all: Vec<_> = (0..64).map(|_| constraint.clone()).collect();
        for constraint in &mut all {
            assert!(constraint.allowed().map_or(true, |allowed| !allowed.is_empty()));
        }
    }
    let level = |level: usize| format!("T{level}: T{} T{}\n", level + 1, level + 1);
    let doubled: String = (0..60).map(level).collect();
    let error = compiler.compile(&Grammar::Lark(format!("start: T0\n{doubled}T60: \"a\"\n")));
    assert!(error.unwrap_err().message().contains("too big"));
    // Schemas that refer to themselves and to nothing else have no text.
    let circle = json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"});
    let error = compiler.compile(&Grammar::JsonSchema(circle)).unwrap_err();
    assert_eq!(error.message(), "no text follows the grammar");
    // The others still compile.
    assert!(compiler.compile(&Grammar::Regex("[a-z]+".to_owned())).is_ok());
}
