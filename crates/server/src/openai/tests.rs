//! Requests as clients send them, and answers as these read them.

use galatea_llm::grammar::Grammar;
use galatea_llm::sampling::SamplingParameters;
use galatea_llm::template::GenerationPrompt;
use galatea_llm::tools::{ToolCall, ToolChoice};
use serde_json::{Value, json};

use super::error::ApiError;
use super::fields::ObjectFields;
use super::request::{ChatRequest, CompletionPrompt, CompletionRequest, StreamOptions};
use super::wire::{
    self, AnswerEnvelope, AnswerObject, ChatChoice, ChatPiece, DeltaObject, UsageObject, WireCall,
};
use galatea_llm::chat::AnswerMessage;

fn chat(body: &Value) -> Result<ChatRequest, ApiError> {
    let defaults = SamplingParameters {
        temperature: 0.7,
        top_k: 20,
        max_tokens: None,
        ..SamplingParameters::default()
    };
    ChatRequest::decode(&ObjectFields::of_request(body)?, &defaults, "")
}

/// A chat with one message and further members.
fn chat_with(members: &Value) -> Result<ChatRequest, ApiError> {
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    let all = body.as_object_mut().unwrap();
    all.extend(members.as_object().unwrap().clone());
    chat(&body)
}

fn completion(body: &Value) -> Result<CompletionRequest, ApiError> {
    let fields = ObjectFields::of_request(body)?;
    CompletionRequest::decode(&fields, &SamplingParameters::default(), "")
}

fn param(error: &ApiError) -> String {
    let body = error.to_json();
    assert_eq!(body.pointer("/error/type").unwrap(), "invalid_request_error", "{body}");
    body.pointer("/error/param").and_then(Value::as_str).unwrap_or("null").to_owned()
}

#[test]
fn a_chat_takes_the_models_defaults_and_the_fields_that_are_there() {
    let plain = chat_with(&json!({})).unwrap();
    assert_eq!(plain.common.settings.sampling.temperature, 0.7);
    assert_eq!(plain.common.settings.sampling.max_tokens, None);
    assert_eq!(plain.common.stream, None);
    assert_eq!(plain.conversation.ending, GenerationPrompt::GenerationPrompt);
    let full = chat_with(&json!({
        "temperature": 0, "top_p": 0.5, "top_k": -1, "min_p": 0.1, "typical_p": 0.9, "seed": -1,
        "repetition_penalty": 1.1, "presence_penalty": 1, "frequency_penalty": -1, "n": 2,
        "max_tokens": 5, "max_completion_tokens": 7, "min_tokens": 1, "stop": "END",
        "stop_token_ids": [3, 4], "ignore_eos": true, "skip_special_tokens": false,
        "include_stop_str_in_output": true, "logit_bias": {"5": -100, "6": 1.5}, "logprobs": true,
        "top_logprobs": 3, "prompt_logprobs": 2, "stream": true, "user": "u", "priority": -3,
        "stream_options": {"include_usage": true}, "cache_salt": "s", "return_token_ids": true,
        "chat_template_kwargs": {"enable_thinking": false}, "unheard_of": {"a": [1]},
        "add_generation_prompt": false, "temperature_": null, "guided_regex": "a+",
    }))
    .unwrap();
    let sampling = full.common.settings.sampling;
    assert_eq!((sampling.temperature, sampling.top_k, sampling.n), (0.0, -1, 2));
    assert_eq!((sampling.max_tokens, sampling.seed), (Some(7), Some(u64::MAX)));
    assert_eq!((sampling.logprobs, sampling.prompt_logprobs), (Some(3), Some(2)));
    assert_eq!(sampling.stop, ["END"]);
    assert_eq!(sampling.stop_token_ids, [3, 4]);
    assert_eq!(sampling.logit_bias.into_iter().collect::<Vec<_>>(), [(5, -100.0), (6, 1.5)]);
    assert!(sampling.ignore_eos && !sampling.skip_special_tokens);
    let stream = StreamOptions { usage: true, continuous: false };
    assert_eq!(full.common.stream, Some(stream));
    assert_eq!(full.common.settings.priority, -3);
    assert_ne!(full.common.settings.salt, 0);
    assert_ne!(full.common.settings.client, plain.common.settings.client);
    assert_eq!(full.common.settings.grammar, Some(Grammar::Regex("a+".to_owned())));
    assert_eq!(full.conversation.ending, GenerationPrompt::Complete);
    assert_eq!(full.conversation.variables.get("enable_thinking"), Some(&json!(false)));
}

#[test]
fn wrong_fields_are_named() {
    for (members, name) in [
        (json!({"messages": []}), "messages"),
        (json!({"messages": null}), "messages"),
        (json!({"messages": ["hi"]}), "messages[0]"),
        (json!({"messages": [{"content": "hi"}]}), "messages[0].role"),
        (json!({"messages": [{"role": "user"}]}), "messages[0].content"),
        (json!({"messages": [{"role": "user", "content": 5}]}), "messages[0].content"),
        (
            json!({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}),
            "messages[0].content[0].type",
        ),
        (
            json!({"messages": [{"role": "user", "content": [{"type": "text"}]}]}),
            "messages[0].content[0].text",
        ),
        (
            json!({"messages": [{"role": "assistant", "tool_calls": [
                {"function": {"name": "f", "arguments": "{"}}]}]}),
            "messages[0].tool_calls[0].function.arguments",
        ),
        (json!({"temperature": "hot"}), "temperature"),
        (json!({"n": -1}), "n"),
        (json!({"n": 1.5}), "n"),
        (json!({"max_tokens": "many"}), "max_tokens"),
        (json!({"stop": [1]}), "stop"),
        (json!({"stop_token_ids": ["a"]}), "stop_token_ids"),
        (json!({"logit_bias": {"x": 1}}), "logit_bias"),
        (json!({"logit_bias": {"1": "x"}}), "logit_bias.1"),
        (json!({"logprobs": 1}), "logprobs"),
        (json!({"top_logprobs": 5}), "top_logprobs"),
        (json!({"logprobs": true, "top_logprobs": 21}), "top_logprobs"),
        (json!({"stream_options": {"include_usage": true}}), "stream_options"),
        (
            json!({"stream": true, "stream_options": {"include_usage": 1}}),
            "stream_options.include_usage",
        ),
        (json!({"response_format": {}}), "response_format.type"),
        (json!({"response_format": {"type": "xml"}}), "response_format.type"),
        (json!({"response_format": {"type": "json_schema"}}), "response_format.json_schema"),
        (
            json!({"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}}),
            "response_format.json_schema.schema",
        ),
        (json!({"guided_json": "{"}), "guided_json"),
        (json!({"guided_json": {}, "guided_regex": "a"}), "guided_regex"),
        (json!({"structured_outputs": {"choice": "a"}}), "structured_outputs.choice"),
        (json!({"tools": [{"type": "function"}]}), "tools[0].function"),
        (json!({"tool_choice": "required"}), "tool_choice"),
        (json!({"chat_template": "x"}), "chat_template"),
        (
            json!({"continue_final_message": true, "add_generation_prompt": true}),
            "continue_final_message",
        ),
        (json!({"priority": 5_000_000_000_u64}), "priority"),
    ] {
        let error = chat_with(&members).unwrap_err();
        assert_eq!(error.status(), 400);
        assert_eq!(param(&error), name, "{members}");
        assert!(error.message().starts_with(name), "{}", error.message());
    }
    assert!(chat(&json!([1])).unwrap_err().message().contains("expected a JSON object"));
    let long = json!({"temperature": "x".repeat(5000)});
    assert!(chat_with(&long).unwrap_err().message().len() < 200);
}

#[test]
fn messages_have_the_form_that_templates_expect() {
    let request = chat(&json!({"messages": [
        {"role": "developer", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": null, "refusal": null, "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"x\": 1}"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "2"},
    ]}))
    .unwrap();
    assert_eq!(
        Value::Array(request.conversation.messages),
        json!([
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "a\nb"},
            {"role": "assistant", "content": "", "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "f", "arguments": {"x": 1}}}]},
            {"role": "tool", "tool_call_id": "1", "content": "2"},
        ])
    );
}

#[test]
fn tools_reach_the_template_unless_none_is_to_be_called() {
    let tools =
        json!([{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]);
    let of = |choice: Value| chat_with(&json!({"tools": tools, "tool_choice": choice})).unwrap();
    let auto = of(Value::Null);
    assert_eq!((auto.choice, auto.common.settings.grammar), (ToolChoice::Auto, None));
    assert_eq!(auto.conversation.tools.map(|all| all.len()), Some(1));
    assert_eq!(of(json!("none")).conversation.tools, None);
    let named = of(json!({"type": "function", "function": {"name": "f"}}));
    assert_eq!(named.common.settings.grammar, Some(Grammar::JsonSchema(json!({"type": "object"}))));
    let single = chat_with(
        &json!({"tools": tools, "tool_choice": "required", "parallel_tool_calls": false}),
    );
    let Some(Grammar::JsonSchema(schema)) = single.unwrap().common.settings.grammar else {
        panic!("no schema");
    };
    assert_eq!(schema.get("maxItems"), Some(&json!(1)));
}

#[test]
fn structured_output_has_many_names() {
    let schema = json!({"type": "object"});
    let wanted = Some(Grammar::JsonSchema(schema.clone()));
    for members in [
        json!({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}}),
        json!({"guided_json": schema}),
        json!({"guided_json": schema.to_string()}),
        json!({"structured_outputs": {"json": schema}}),
    ] {
        assert_eq!(chat_with(&members).unwrap().common.settings.grammar, wanted, "{members}");
    }
    let of = |members: Value| chat_with(&members).unwrap().common.settings.grammar;
    assert_eq!(of(json!({"response_format": {"type": "text"}})), None);
    assert_eq!(of(json!({"response_format": {"type": "json_object"}})), Some(Grammar::JsonObject));
    let choice = Some(Grammar::Choice(vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(of(json!({"guided_choice": ["a", "b"]})), choice);
    assert_eq!(of(json!({"structured_outputs": {"choice": ["a", "b"]}})), choice);
}

#[test]
fn a_completion_has_prompts_of_four_forms() {
    let prompts = |prompt: Value| completion(&json!({"prompt": prompt})).map(|of| of.prompts);
    let text = |text: &str| CompletionPrompt::Text(text.to_owned());
    assert_eq!(prompts(json!("a")).unwrap(), [text("a")]);
    assert_eq!(prompts(json!(["a", "b"])).unwrap(), [text("a"), text("b")]);
    assert_eq!(prompts(json!([1, 2])).unwrap(), [CompletionPrompt::Tokens(vec![1, 2])]);
    let lists = [CompletionPrompt::Tokens(vec![1]), CompletionPrompt::Tokens(vec![2, 3])];
    assert_eq!(prompts(json!([[1], [2, 3]])).unwrap(), lists);
    for (wrong, name) in [
        (json!([]), "prompt"),
        (json!(5), "prompt"),
        (json!([1, "a"]), "prompt"),
        (json!(["a", 1]), "prompt[1]"),
    ] {
        assert_eq!(param(&prompts(wrong).unwrap_err()), name);
    }
    assert_eq!(param(&completion(&json!({})).unwrap_err()), "prompt");
}

#[test]
fn a_completion_may_ask_for_its_prompt_alone() {
    let plain = completion(&json!({"prompt": "a"})).unwrap();
    assert_eq!(plain.common.settings.sampling.max_tokens, Some(16));
    assert!(plain.add_special_tokens && !plain.echo);
    let scored = completion(&json!({"prompt": "a", "echo": true, "max_tokens": 0, "logprobs": 1}));
    let scored = scored.unwrap();
    assert!(scored.nothing_new);
    assert_eq!(scored.common.settings.sampling.prompt_logprobs, Some(1));
    assert_eq!(scored.common.settings.sampling.max_tokens, Some(1));
    let suffix = completion(&json!({"prompt": "a", "suffix": "b"})).unwrap_err();
    assert_eq!(param(&suffix), "suffix");
}

fn parsed(answer: &impl serde::Serialize) -> Value {
    serde_json::from_slice(&wire::to_bytes(answer)).unwrap()
}

#[test]
fn a_chats_answer_has_openais_members() {
    let envelope = AnswerEnvelope::new("chatcmpl-", "chat.completion", "its", "m");
    let call = ToolCall { name: "f".to_owned(), arguments: "{}".to_owned() };
    let message =
        AnswerMessage { content: "\n".to_owned(), calls: vec![call], ..AnswerMessage::default() };
    let choice = ChatChoice {
        index: 0,
        message: message.into(),
        logprobs: None,
        finish_reason: Some("tool_calls"),
        stop_reason: None,
        token_ids: None,
    };
    let mut answer = AnswerObject::new(&envelope, vec![choice]);
    answer.usage = Some(Some(UsageObject::new(5, 2, 3)));
    let found = parsed(&answer);
    assert_eq!(found.get("object").unwrap(), "chat.completion");
    assert!(found.get("id").unwrap().as_str().unwrap().starts_with("chatcmpl-"));
    assert_eq!(
        found.get("usage").unwrap(),
        &json!({"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8,
                "prompt_tokens_details": {"cached_tokens": 2}})
    );
    let message = found.pointer("/choices/0/message").unwrap();
    assert_eq!(message.get("content"), Some(&Value::Null));
    assert_eq!(message.get("reasoning_content"), None);
    let call = message.pointer("/tool_calls/0").unwrap();
    assert_eq!(call.get("type").unwrap(), "function");
    assert_eq!(call.get("function").unwrap(), &json!({"name": "f", "arguments": "{}"}));
    assert_eq!(call.get("index"), None);
}

#[test]
fn a_piece_holds_only_what_is_new() {
    let envelope = AnswerEnvelope::new("chatcmpl-", "chat.completion.chunk", "mine", "m");
    let piece = |delta| ChatPiece {
        index: 0,
        delta,
        logprobs: None,
        finish_reason: None,
        stop_reason: None,
        token_ids: None,
    };
    let delta = DeltaObject {
        tool_calls: vec![WireCall::arguments(1, "{".to_owned())],
        ..DeltaObject::default()
    };
    let mut answer = AnswerObject::new(&envelope, vec![piece(delta)]);
    answer.usage = Some(None);
    let event = String::from_utf8(wire::event(&answer)).unwrap();
    let body = event.strip_prefix("data: ").unwrap().strip_suffix("\n\n").unwrap();
    let found: Value = serde_json::from_str(body).unwrap();
    assert_eq!(found.get("id").unwrap(), "chatcmpl-mine");
    assert_eq!(found.get("usage"), Some(&Value::Null));
    assert_eq!(
        found.get("choices").unwrap(),
        &json!([{"index": 0, "logprobs": null, "finish_reason": null,
                 "delta": {"tool_calls": [{"index": 1, "function": {"arguments": "{"}}]}}])
    );
    let begin = DeltaObject {
        tool_calls: vec![WireCall::begin(0, "f".to_owned())],
        ..DeltaObject::default()
    };
    let found = parsed(&AnswerObject::new(&envelope, vec![piece(begin)]));
    let call = found.pointer("/choices/0/delta/tool_calls/0").unwrap();
    assert_eq!(call.pointer("/function/name").unwrap(), "f");
    assert!(call.get("id").unwrap().as_str().unwrap().starts_with("call_"));
}
