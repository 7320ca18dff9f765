//! Tools: definitions and choices of requests, and calls in what models write.

use galatea_llm::grammar::Grammar;
use galatea_llm::tools::{
    ToolCall, ToolChoice, ToolDefinition, ToolDelta, ToolFormat, ToolParser, parse,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn call(name: &str, arguments: &str) -> ToolCall {
    ToolCall { name: name.to_owned(), arguments: arguments.to_owned() }
}

/// Text, its format, and the text and calls that it holds.
fn cases() -> Vec<(ToolFormat, &'static str, &'static str, Vec<ToolCall>)> {
    let weather = r#"{"city": "Zürich \"x\" }", "days": [1, {"a": null}]}"#;
    vec![
        (
            ToolFormat::Llama,
            r#" {"name": "f", "parameters": {"a": 1}}"#,
            "",
            vec![call("f", r#"{"a": 1}"#)],
        ),
        (
            ToolFormat::Llama,
            r#"<|python_tag|>{"name": "f", "parameters": {}}; {"parameters": {"b": {}}, "name": "g"}"#,
            "",
            vec![call("f", "{}"), call("g", r#"{"b": {}}"#)],
        ),
        (ToolFormat::Llama, "The sum is {4}.", "The sum is {4}.", vec![]),
        (ToolFormat::Llama, r#"{"answer": 42}"#, r#"{"answer": 42}"#, vec![]),
        (
            ToolFormat::Llama,
            r#"{"name": "f", "parameters": [1]}"#,
            r#"{"name": "f", "parameters": [1]}"#,
            vec![],
        ),
        (
            ToolFormat::Hermes,
            r#"Let me see.
<tool_call>
{"name": "get_weather", "arguments": {"city": "Zürich \"x\" }", "days": [1, {"a": null}]}}
</tool_call>
<tool_call>
{"name": "add", "arguments": "{\"a\": 2}", "id": 7}
</tool_call>"#,
            "Let me see.",
            vec![call("get_weather", weather), call("add", r#"{"a": 2}"#)],
        ),
        (ToolFormat::Hermes, "a <tool_box> b\n", "a <tool_box> b\n", vec![]),
        (
            ToolFormat::Hermes,
            "x<tool_call>\nnot JSON</tool_call>",
            "x<tool_call>\nnot JSON</tool_call>",
            vec![],
        ),
        (
            ToolFormat::Hermes,
            r#"<tool_call>{"name": "f", "arg"#,
            r#"<tool_call>{"name": "f", "arg"#,
            vec![],
        ),
        (ToolFormat::Hermes, "<tool_call>", "<tool_call>", vec![]),
        (
            ToolFormat::Mistral,
            r#"[TOOL_CALLS] [{"name": "f", "arguments": {"a": 1}, "id": "abcdefghi"}, {"name": "g", "arguments": {}}]"#,
            "",
            vec![call("f", r#"{"a": 1}"#), call("g", "{}")],
        ),
        (
            ToolFormat::Mistral,
            r#"Now:[TOOL_CALLS]f{"a": 1}[TOOL_CALLS]g-2[ARGS]{}"#,
            "Now:",
            vec![call("f", r#"{"a": 1}"#), call("g-2", "{}")],
        ),
        (ToolFormat::Mistral, "[TOOL_CALLS] what?", "[TOOL_CALLS] what?", vec![]),
        (ToolFormat::List, r#"[{"name": "f", "arguments": {}}]"#, "", vec![call("f", "{}")]),
        (
            ToolFormat::Arguments("f".to_owned()),
            r#" {"a": [{}]}"#,
            "",
            vec![call("f", r#"{"a": [{}]}"#)],
        ),
    ]
}

#[test]
fn calls_are_found_in_whole_answers() {
    for (format, text, content, calls) in cases() {
        assert_eq!(parse(&format, text), (content.to_owned(), calls), "{text}");
    }
}

/// What the pieces of an answer make together.
fn streamed(format: &ToolFormat, pieces: &[&str]) -> (String, Vec<ToolCall>, ToolParser) {
    let mut parser = ToolParser::new(format.clone());
    let mut deltas: Vec<ToolDelta> = pieces.iter().flat_map(|piece| parser.push(piece)).collect();
    deltas.extend(parser.finish());
    let mut content = String::new();
    let mut calls: Vec<ToolCall> = Vec::new();
    for delta in deltas {
        match delta {
            ToolDelta::Text(text) => content.push_str(&text),
            ToolDelta::Begin { index, name } => {
                assert_eq!(index, calls.len());
                calls.push(call(&name, ""));
            }
            ToolDelta::Arguments { index, text } => {
                assert_eq!(index + 1, calls.len());
                calls[index].arguments.push_str(&text);
            }
        }
    }
    (content, calls, parser)
}

#[test]
fn streams_tell_what_whole_answers_hold() {
    for (format, text, content, calls) in cases() {
        let characters: Vec<String> = text.chars().map(String::from).collect();
        let pieces: Vec<&str> = characters.iter().map(String::as_str).collect();
        let (found, found_calls, parser) = streamed(&format, &pieces);
        if parser.is_malformed() && parser.calls() == 0 && !found_calls.is_empty() {
            // The call was told before it turned out to be malformed.
            continue;
        }
        assert_eq!((found.as_str(), found_calls), (content, calls), "{text}");
    }
}

#[test]
fn names_come_first_and_arguments_as_they_are_written() {
    let mut parser = ToolParser::new(ToolFormat::Hermes);
    assert_eq!(parser.push("Yes\n<tool_"), [ToolDelta::Text("Yes".to_owned())]);
    assert_eq!(parser.push("call>{\"name\": \"f\", \"argu"), []);
    let begin = ToolDelta::Begin { index: 0, name: "f".to_owned() };
    let more = |text: &str| ToolDelta::Arguments { index: 0, text: text.to_owned() };
    assert_eq!(parser.push("ments\": {\"a\""), [begin, more("{\"a\"")]);
    assert_eq!(parser.push(": 1}"), [more(": 1}")]);
    assert_eq!(parser.push("}</tool_call>"), []);
    assert_eq!(parser.finish(), []);
    assert!(!parser.is_malformed() && parser.calls() == 1);
}

proptest! {
    #[test]
    fn any_text_survives(
        pieces in prop::collection::vec(
            "(<tool_call>|</tool_call>|\\[TOOL_CALLS\\]|\\{\"name\": \"f\", \"arguments\": |\\{|\\}|\\]|\"|,|f|é|\n){0,4}", 0..10),
        which in 0usize..4,
    ) {
        let format = [ToolFormat::Llama, ToolFormat::Hermes, ToolFormat::Mistral, ToolFormat::List][which].clone();
        let text = pieces.concat();
        let (content, calls) = parse(&format, &text);
        for call in &calls {
            prop_assert!(serde_json::from_str::<Value>(&call.arguments).is_ok());
        }
        let parts: Vec<&str> = pieces.iter().map(String::as_str).collect();
        let (found, found_calls, parser) = streamed(&format, &parts);
        if !parser.is_malformed() {
            prop_assert_eq!((found, found_calls), (content, calls));
        } else {
            prop_assert_eq!(content, text);
        }
    }
}

fn tools() -> Vec<ToolDefinition> {
    let request = json!([
        {"type": "function", "function": {"name": "f", "description": "d", "parameters":
            {"type": "object", "properties": {"a": {"type": "integer"}}}}},
        {"type": "function", "function": {"name": "g"}},
    ]);
    ToolDefinition::from_request(&request).unwrap()
}

#[test]
fn definitions_and_choices_are_read() {
    let tools = tools();
    assert_eq!(tools[0].to_json()["function"]["description"], "d");
    assert_eq!(tools[1].parameters["type"], "object");
    let choose = |choice: Value| ToolChoice::from_request(&choice, &tools);
    assert_eq!(choose(json!(null)).unwrap(), ToolChoice::Auto);
    assert_eq!(choose(json!("none")).unwrap(), ToolChoice::None);
    let named = choose(json!({"type": "function", "function": {"name": "f"}})).unwrap();
    assert_eq!(named.grammar(&tools), Some(Grammar::JsonSchema(tools[0].parameters.clone())));
    let required = choose(json!("required")).unwrap();
    let Some(Grammar::JsonSchema(schema)) = required.grammar(&tools) else {
        panic!("{required:?}")
    };
    assert_eq!(schema["items"]["anyOf"][1]["properties"]["name"]["const"], "g");
    assert_eq!(ToolChoice::Auto.grammar(&tools), None);
    assert_eq!(ToolChoice::from_request(&Value::Null, &[]).unwrap(), ToolChoice::None);
    for (choice, place) in [
        (json!("some"), "tool_choice"),
        (json!({"function": {"name": "h"}}), "tool_choice.function.name"),
        (json!(7), "tool_choice"),
    ] {
        assert_eq!(choose(choice).unwrap_err().place(), place);
    }
    assert!(ToolChoice::from_request(&json!("required"), &[]).is_err());
}

#[test]
fn bad_definitions_are_refused_by_place() {
    let f = |function: Value| json!([{"type": "function", "function": function}]);
    for (request, place) in [
        (json!(7), "tools"),
        (json!([{"type": "retrieval"}]), "tools[0].type"),
        (json!([{"type": "function"}]), "tools[0].function"),
        (f(json!({})), "tools[0].function.name"),
        (f(json!({"name": "a b"})), "tools[0].function.name"),
        (f(json!({"name": "x".repeat(65)})), "tools[0].function.name"),
        (f(json!({"name": "a", "parameters": 7})), "tools[0].function.parameters"),
        (json!([f(json!({"name": "a"}))[0], f(json!({"name": "a"}))[0]]), "tools[1].function.name"),
    ] {
        assert_eq!(ToolDefinition::from_request(&request).unwrap_err().place(), place);
    }
}

#[test]
fn templates_tell_their_format() {
    assert_eq!(ToolFormat::of_template("… <tool_call> …"), Some(ToolFormat::Hermes));
    assert_eq!(ToolFormat::of_template("[TOOL_CALLS]"), Some(ToolFormat::Mistral));
    assert_eq!(ToolFormat::of_template("message.role == 'ipython'"), Some(ToolFormat::Llama));
    assert_eq!(ToolFormat::of_template("{{ messages }}"), None);
}
