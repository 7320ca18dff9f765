//! Chat templates: equality with the reference implementation, and templates that mean harm.

use galatea_llm::template::{ChatTemplate, Conversation, GenerationPrompt};
use serde_json::{Map, Value, json};

fn list(value: &Value) -> Option<Vec<Value>> {
    value.as_array().cloned()
}

#[test]
fn conversations_are_written_as_the_reference_writes_them() {
    let golden: Value = serde_json::from_str(include_str!("golden/templates.json")).unwrap();
    let tokens = json!({"bos_token": "<s>", "eos_token": {"content": "</s>"}});
    for (i, case) in golden["cases"].as_array().unwrap().iter().enumerate() {
        let name = case["template"].as_str().unwrap();
        let source = golden["templates"][name].as_str().unwrap();
        let template = ChatTemplate::new(source).unwrap().with_tokens(&tokens);
        let conversation = Conversation {
            messages: list(&case["messages"]).unwrap(),
            tools: list(&case["tools"]),
            documents: list(&case["documents"]),
            ending: if case["continue_final_message"] == true {
                GenerationPrompt::ContinueFinalMessage
            } else if case["add_generation_prompt"] == true {
                GenerationPrompt::GenerationPrompt
            } else {
                GenerationPrompt::Complete
            },
            variables: case["variables"].as_object().unwrap().clone(),
            ..Conversation::default()
        };
        let found = template.render(&conversation);
        match case.get("error") {
            Some(message) => {
                let error = found.unwrap_err();
                let message = message.as_str().unwrap();
                assert_eq!(error.message(), message, "{i} {name}");
            }
            None => assert_eq!(found.unwrap(), case["text"].as_str().unwrap(), "{i} {name}"),
        }
    }
}

fn user(text: &str) -> Vec<Value> {
    vec![json!({"role": "user", "content": text})]
}

fn render(source: &str) -> Result<String, String> {
    let template = ChatTemplate::new(source).map_err(|e| e.to_string())?;
    let conversation = Conversation { messages: user("hi"), ..Conversation::default() };
    template.render(&conversation).map_err(|e| e.to_string())
}

#[test]
fn models_without_a_template_speak_chatml() {
    let template = ChatTemplate::from_config(&Value::Null, None).unwrap();
    assert!(template.is_default());
    let conversation = Conversation {
        messages: vec![
            json!({"role": "system", "content": "s"}),
            json!({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}),
        ],
        ..Conversation::default()
    };
    assert_eq!(
        template.render(&conversation).unwrap(),
        "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\nab<|im_end|>\n<|im_start|>assistant\n"
    );
}

#[test]
fn one_of_several_templates_is_chosen_by_name_and_tools() {
    let config = json!({"chat_template": [
        {"name": "default", "template": "plain"},
        {"name": "tool_use", "template": "tools"},
        {"name": "rag", "template": "rag"},
    ]});
    let templates = ChatTemplate::from_config(&config, None).unwrap();
    let with = |tools: Option<Vec<Value>>, name: Option<&str>| {
        templates.render(&Conversation {
            messages: user("x"),
            tools,
            template: name.map(str::to_owned),
            ..Conversation::default()
        })
    };
    assert_eq!(with(None, None).unwrap(), "plain");
    assert_eq!(with(Some(vec![]), None).unwrap(), "tools");
    assert_eq!(with(None, Some("rag")).unwrap(), "rag");
    let error = with(None, Some("x")).unwrap_err().to_string();
    assert!(error.contains("default, tool_use, rag"), "{error}");
    let file = ChatTemplate::from_config(&config, Some("file")).unwrap();
    assert_eq!(file.names(), ["default"]);
    assert!(ChatTemplate::from_config(&json!({"chat_template": 7}), None).is_err());
    assert!(ChatTemplate::from_config(&json!({"chat_template": [7]}), None).is_err());
}

#[test]
fn templates_know_the_time_of_the_conversation() {
    let template = ChatTemplate::new("{{ strftime_now('%B %Y') }}").unwrap();
    let noon = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_752_580_800);
    let conversation =
        Conversation { messages: user("x"), now: Some(noon), ..Conversation::default() };
    assert_eq!(template.render(&conversation).unwrap(), "July 2025");
    assert!(render("{{ strftime_now('%!') }}").is_err());
}

#[test]
fn harmful_templates_end_with_an_error() {
    for (source, expected) in [
        (
            "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
            "fuel",
        ),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "recursion"),
        ("{{ 'x' * 90000000 }}", "longer than"),
        ("{{ 'x' * 9000000000000 }}", "too large"),
        ("{% include 'other' %}", ""),
        ("{{ messages[0].__class__.__mro__ }}", ""),
        ("{% if %}", "line 1"),
        ("a\n{{ raise_exception('no ' ~ 7) }}", "line 2: no 7"),
        ("{{ x.y.z }}", "undefined"),
        ("{{ messages | tojson(indent=100000000) }}", "indent"),
    ] {
        let error = render(source).unwrap_err();
        assert!(error.contains(expected), "{source}: {error}");
    }
    let nested = format!("{}x{}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(render(&format!("{{{{ {nested} }}}}")).is_err());
    assert!(render(&" ".repeat(2 << 20)).unwrap_err().contains("bytes"));
}

#[test]
fn only_text_can_be_continued() {
    let template = ChatTemplate::new("{{ messages[-1].content }}").unwrap();
    let of = |messages: Vec<Value>| {
        template.render(&Conversation {
            messages,
            ending: GenerationPrompt::ContinueFinalMessage,
            variables: Map::new(),
            ..Conversation::default()
        })
    };
    assert_eq!(of(user("go on")).unwrap(), "go on");
    for messages in [vec![], vec![json!({"role": "user"})], vec![json!({"content": 7})]] {
        assert!(of(messages).unwrap_err().to_string().contains("continue_final_message"));
    }
}

/// Texts that Jinja2 3.1 gives, sandboxed and with blocks trimmed as `transformers` sets it up.
#[test]
fn expressions_filters_tests_and_methods_give_what_jinja2_gives() {
    let golden: Value = serde_json::from_str(include_str!("golden/features.json")).unwrap();
    let now = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_790_000_000);
    for case in golden["cases"].as_array().unwrap() {
        let source = case["template"].as_str().unwrap();
        let conversation = Conversation {
            messages: list(&golden["messages"]).unwrap(),
            tools: list(&golden["tools"]),
            variables: golden["variables"].as_object().unwrap().clone(),
            now: Some(now),
            ..Conversation::default()
        };
        let found = ChatTemplate::new(source).and_then(|template| template.render(&conversation));
        match case["text"].as_str() {
            Some(text) => assert_eq!(found.unwrap(), text, "{source}"),
            None => assert!(found.is_err(), "{source}"),
        }
    }
}

#[test]
fn nothing_is_an_empty_list_to_filters_that_go_through_one() {
    let conversation = Conversation { messages: user("x"), ..Conversation::default() };
    for filter in
        ["select", "reject", "map('upper')", "selectattr('a')", "rejectattr('a', 'eq', 1)"]
    {
        let source =
            format!("{{{{ tools|{filter}|list|length }}}}{{{{ ''|{filter}|list|length }}}}");
        let text = ChatTemplate::new(&source).unwrap().render(&conversation).unwrap();
        assert_eq!(text, "00", "{filter}");
    }
}
