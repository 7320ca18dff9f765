//! OpenAI's endpoints and Triton's names for language models, over sockets.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{events, exchange, json_of, parts, post, request, socket};
use crate::speller::{self, CONTEXT, write_checkpoint};
use crate::{Fixture, flags, repository};

/// A server on a repository with a speller.
fn start() -> (Fixture, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    write_checkpoint(&folder.path().join("speller"));
    (start_on(folder.path()), folder)
}

fn start_on(repository: &Path) -> Fixture {
    Fixture::on(speller::core(repository), &flags(&["--openai-port=0"]))
}

fn chat(members: &Value) -> Value {
    let mut body = json!({"model": "speller", "messages": [{"role": "user", "content": "x"}]});
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    body
}

const CHAT: &str = "/v1/chat/completions";
const COMPLETIONS: &str = "/v1/completions";

#[test]
fn a_chat_is_answered_whole_and_in_pieces_alike() {
    let (fixture, _folder) = start();
    let address = fixture.http();
    let (status, _, body) = post(address, CHAT, &chat(&json!({"logprobs": true})));
    assert_eq!(status, 200, "{body}");
    let whole = json_of(&body);
    let choice = whole.pointer("/choices/0").unwrap();
    let alphabet: String = ('a'..='z').collect();
    assert_eq!(choice.pointer("/message/content").unwrap(), &json!(alphabet));
    assert_eq!(choice.get("finish_reason").unwrap(), "stop");
    let first = choice.pointer("/logprobs/content/0").unwrap();
    assert_eq!((&first["token"], &first["bytes"]), (&json!("a"), &json!([97])));
    assert_eq!(whole.pointer("/usage/completion_tokens").unwrap(), 27);

    let options = json!({"stream": true, "stream_options": {"include_usage": true}});
    let (status, head, body) = post(address, CHAT, &chat(&options));
    assert_eq!(status, 200, "{body}");
    assert!(head.contains("Content-Type: text/event-stream"), "{head}");
    let events = events(&body);
    assert_eq!(events[0].pointer("/choices/0/delta/role").unwrap(), "assistant");
    let text = |event: &Value| {
        event.pointer("/choices/0/delta/content").and_then(Value::as_str).unwrap_or("").to_owned()
    };
    assert_eq!(events.iter().map(text).collect::<String>(), alphabet);
    let (last, before) = events.split_last().unwrap();
    assert_eq!(last.pointer("/usage/total_tokens"), whole.pointer("/usage/total_tokens"));
    assert_eq!(last["choices"], json!([]));
    assert!(before.iter().all(|event| event["usage"].is_null()));
    let ended = before.last().unwrap();
    assert_eq!(ended.pointer("/choices/0/finish_reason").unwrap(), "stop");
    assert!(fixture.stop());
}

#[test]
fn answers_keep_to_their_grammars_and_tools() {
    let (fixture, _folder) = start();
    let address = fixture.http();
    let choice = json!({"guided_choice": ["zebra", "yak"]});
    let (_, _, body) = post(address, CHAT, &chat(&choice));
    let content = json_of(&body).pointer("/choices/0/message/content").cloned();
    assert!(["zebra", "yak"].map(|word| Some(json!(word))).contains(&content), "{body}");

    let parameters = json!({"type": "object", "properties": {"mode": {"enum": ["on"]}},
                            "required": ["mode"], "additionalProperties": false});
    let tool = json!({"type": "function", "function": {"name": "light", "parameters": parameters}});
    for (choice, reason) in [
        (json!({"type": "function", "function": {"name": "light"}}), "stop"),
        (json!("required"), "tool_calls"),
    ] {
        let members = json!({"tools": [tool], "tool_choice": choice, "max_tokens": 200,
                             "parallel_tool_calls": false});
        let (_, _, body) = post(address, CHAT, &chat(&members));
        let whole = json_of(&body);
        let call = whole.pointer("/choices/0/message/tool_calls/0/function");
        let call = call.unwrap_or_else(|| panic!("{body}"));
        assert_eq!(call["name"], "light");
        assert_eq!(json_of(call["arguments"].as_str().unwrap()), json!({"mode": "on"}));
        assert_eq!(whole.pointer("/choices/0/finish_reason").unwrap(), reason);

        let mut members = members;
        members.as_object_mut().unwrap().insert("stream".to_owned(), json!(true));
        let (_, _, body) = post(address, CHAT, &chat(&members));
        let (mut names, mut arguments) = (String::new(), String::new());
        for event in events(&body) {
            let Some(call) = event.pointer("/choices/0/delta/tool_calls/0/function") else {
                continue;
            };
            names.push_str(call.get("name").and_then(Value::as_str).unwrap_or(""));
            arguments.push_str(call["arguments"].as_str().unwrap());
        }
        assert_eq!((names.as_str(), json_of(&arguments)), ("light", json!({"mode": "on"})));
    }
    assert!(fixture.stop());
}

#[test]
fn completions_take_texts_and_tokens_and_give_their_probabilities() {
    let (fixture, _folder) = start();
    let address = fixture.http();
    let texts = json!({"model": "speller", "prompt": ["v", "w"], "max_tokens": 3, "echo": true, "logprobs": 1});
    let (status, _, body) = post(address, COMPLETIONS, &texts);
    assert_eq!(status, 200, "{body}");
    let whole = json_of(&body);
    let texts: Vec<&Value> =
        whole["choices"].as_array().unwrap().iter().map(|choice| &choice["text"]).collect();
    assert_eq!(texts, [&json!("vwxy"), &json!("wxyz")]);
    let logprobs = whole.pointer("/choices/0/logprobs").unwrap();
    assert_eq!(logprobs["tokens"], json!(["v", "w", "x", "y"]));
    assert_eq!(logprobs["text_offset"], json!([0, 1, 2, 3]));
    assert_eq!(logprobs.pointer("/token_logprobs/0"), Some(&Value::Null));
    assert_eq!(whole.pointer("/choices/1/finish_reason").unwrap(), "length");
    assert_eq!(whole.pointer("/usage/completion_tokens").unwrap(), 6);

    let (_, _, body) =
        post(address, "/tokenize", &json!({"prompt": "xy", "return_token_strs": true}));
    let tokens = json_of(&body);
    assert_eq!((&tokens["count"], &tokens["token_strs"]), (&json!(2), &json!(["x", "y"])));
    assert_eq!(tokens["max_model_len"], CONTEXT);
    let (_, _, body) = post(address, "/v1/detokenize", &json!({"tokens": tokens["tokens"]}));
    assert_eq!(json_of(&body), json!({"prompt": "xy"}));

    let stream = json!({"prompt": tokens["tokens"], "stream": true, "stop": "z"});
    let (_, _, body) = post(address, COMPLETIONS, &stream);
    let events = events(&body);
    assert!(
        events.iter().all(|event| event.pointer("/choices/0/text") == Some(&json!(""))),
        "{body}"
    );
    let last = events.last().unwrap();
    assert_eq!(last.pointer("/choices/0/stop_reason").unwrap(), "z");
    let scored = json!({"prompt": "ab", "max_tokens": 0, "echo": true, "logprobs": 0});
    let (_, _, body) = post(address, COMPLETIONS, &scored);
    let scored = json_of(&body);
    assert_eq!(scored.pointer("/choices/0/text").unwrap(), "ab");
    assert_eq!(scored.pointer("/usage/completion_tokens").unwrap(), 0);
    assert!(fixture.stop());
}

#[test]
fn what_is_wrong_is_said_as_openai_says_it() {
    let (fixture, _folder) = start();
    let address = fixture.http();
    let long = "y".repeat(CONTEXT + 1);
    for (path, body, status, code, text) in [
        (
            CHAT,
            chat(&json!({"model": "nobody"})),
            404,
            json!("model_not_found"),
            "'nobody' does not exist",
        ),
        (CHAT, chat(&json!({"temperature": -1})), 400, Value::Null, "temperature: -1 found"),
        (
            CHAT,
            chat(&json!({"max_tokens": 100_000})),
            400,
            json!("context_length_exceeded"),
            "100000 are asked for",
        ),
        (CHAT, chat(&json!({"guided_regex": "("})), 400, Value::Null, "grammar"),
        (CHAT, chat(&json!({"n": 2})), 400, Value::Null, "n: 2 found"),
        (
            COMPLETIONS,
            json!({"prompt": long}),
            400,
            json!("context_length_exceeded"),
            "maximum context length",
        ),
        (COMPLETIONS, json!({"prompt": [100_000]}), 400, Value::Null, "100000 found"),
        (COMPLETIONS, json!({"prompt": ""}), 400, Value::Null, "no tokens found"),
        ("/detokenize", json!({"tokens": [100_000]}), 400, Value::Null, "100000 found"),
    ] {
        for stream in [false, true] {
            let mut body = body.clone();
            body.as_object_mut().unwrap().insert("stream".to_owned(), json!(stream));
            let (found, _, answer) = post(address, path, &body);
            assert_eq!(found, status, "{answer}");
            let error = &json_of(&answer)["error"];
            assert_eq!(error["code"], code, "{answer}");
            assert!(error["message"].as_str().unwrap().contains(text), "{answer}");
            assert_eq!(error["type"], "invalid_request_error");
        }
    }
    let (status, _, answer) = parts(&exchange(address, &request("POST", CHAT, "{")));
    assert!(status == 400 && answer.contains("no JSON"), "{answer}");
    let simple = json!({"model": "simple", "prompt": "x"});
    assert_eq!(post(address, COMPLETIONS, &simple).0, 404);
    assert!(fixture.stop());
}

#[test]
fn a_full_queue_is_told_with_a_time_to_come_back() {
    let folder = tempfile::tempdir().unwrap();
    write_checkpoint(&folder.path().join("speller"));
    let config = "parameters { key: 'max_waiting' value { string_value: '1' } }";
    fs::write(folder.path().join("speller/config.pbtxt"), config).unwrap();
    let fixture = start_on(folder.path());
    // The engine takes one by one what waits, and this is more than may wait.
    let many: Vec<String> = vec!["x".to_owned(); 500];
    let (status, head, body) = post(fixture.http(), COMPLETIONS, &json!({"prompt": many}));
    assert_eq!(status, 429, "{body}");
    assert!(head.contains("\r\nRetry-After: 1"), "{head}");
    assert_eq!(json_of(&body).pointer("/error/code").unwrap(), "rate_limit_exceeded");
    assert!(fixture.stop());
}

#[test]
fn models_of_tensors_are_listed_loaded_and_unloaded() {
    let fixture = crate::start(&["--openai-port=0"]);
    let openai = fixture.server.addresses().openai.unwrap();
    let ask = |method: &str, path: &str| {
        let (status, _, body) = parts(&exchange(openai, &request(method, path, "")));
        (status, body)
    };
    let listed = || {
        let list = json_of(&ask("GET", "/v1/models").1);
        let ids = list["data"].as_array().unwrap().iter();
        ids.map(|model| model["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(listed(), ["digits", "identity_fp32", "simple", "simple_string"]);
    let (status, body) = ask("GET", "/v1/models/simple");
    assert_eq!((status, &json_of(&body)["max_model_len"]), (200, &Value::Null));
    let (status, body) = ask("POST", "/v1/models/simple/load");
    assert!(status == 400 && body.contains("Model 'simple' is already loaded"), "{body}");
    assert_eq!(ask("POST", "/v1/models/simple/unload").0, 200);
    assert_eq!(listed(), ["digits", "identity_fp32", "simple_string"]);
    let (status, body) = ask("POST", "/v1/models/simple/unload");
    assert!(status == 400 && body.contains("'simple' is not loaded"), "{body}");
    let (status, body) = ask("POST", "/v1/models/simple/load");
    assert_eq!((status, &json_of(&body)["id"]), (200, &json!("simple")), "{body}");
    let (status, body) = ask("POST", "/v1/models/nobody/load");
    assert!(status == 400 && body.contains("'nobody' cannot be loaded"), "{body}");
    assert_eq!(ask("GET", "/v1/models/simple/load").0, 405);
    let (status, body) = ask("GET", "/metrics");
    assert!(status == 200 && body.contains("nv_inference_request_success{"), "{body}");
    assert!(fixture.stop());
}

#[test]
fn groups_of_endpoints_need_their_header_and_bodies_have_a_limit() {
    let fixture = crate::start(&[
        "--openai-port=0",
        "--http-max-input-size=100",
        "--openai-restricted-api=model-repository,metrics:admin=k",
        "--openai-restricted-api",
        "inference",
        "caller",
        "c",
    ]);
    let openai = fixture.server.addresses().openai.unwrap();
    for address in [openai, fixture.http()] {
        let asked = |headers: &str| {
            let text = format!("GET /v1/models HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
            let (status, _, body) = parts(&exchange(address, text.as_bytes()));
            (status, body)
        };
        let (status, body) = asked("Connection: close\r\n");
        let error = &json_of(&body)["error"];
        assert_eq!((status, &error["type"]), (401, &json!("authentication_error")), "{body}");
        assert_eq!(error["code"], "invalid_auth");
        let expected = "This API is restricted, expecting header 'admin' with valid value";
        assert_eq!(error["message"], expected);
        assert_eq!(asked("Connection: close\r\nadmin: wrong\r\n").0, 401);
        assert_eq!(asked("Connection: close\r\nadmin: k\r\n").0, 200);
        assert_eq!(post(address, COMPLETIONS, &json!({"prompt": "x"})).0, 401);
    }
    // Triton's own endpoints have a flag of their own.
    assert!(exchange(fixture.http(), &request("GET", "/v2", "")).starts_with("HTTP/1.1 200"));
    assert!(exchange(openai, &request("GET", "/metrics", "")).starts_with("HTTP/1.1 401"));
    assert!(exchange(openai, &request("GET", "/health", "")).starts_with("HTTP/1.1 200"));
    assert!(fixture.stop());
    let fixture = crate::start(&["--openai-port=0", "--http-max-input-size=100"]);
    let long = json!({"model": "m", "prompt": "x".repeat(100)});
    let bytes = long.to_string().len();
    let (status, _, body) = post(fixture.http(), COMPLETIONS, &long);
    let error = &json_of(&body)["error"];
    assert_eq!((status, &error["code"]), (413, &json!("content_too_large")), "{body}");
    let expected = format!(
        "Request size of {bytes} bytes exceeds the maximum allowed input size of 100 bytes. Use --http-max-input-size \
         to increase the limit."
    );
    assert_eq!(error["message"], json!(expected));
    assert!(fixture.stop());
}

#[test]
fn models_are_listed_at_both_doors() {
    let (fixture, _folder) = start();
    let openai = fixture.server.addresses().openai.unwrap();
    for address in [fixture.http(), openai] {
        let (status, _, body) = parts(&exchange(address, &request("GET", "/v1/models", "")));
        let list = json_of(&body);
        assert_eq!((status, &list["object"]), (200, &json!("list")));
        assert_eq!(list.pointer("/data/0/id").unwrap(), "speller");
        let (status, _, body) =
            parts(&exchange(address, &request("GET", "/v1/models/speller", "")));
        assert_eq!((status, &json_of(&body)["max_model_len"]), (200, &json!(CONTEXT)));
        let (status, _, body) = parts(&exchange(address, &request("GET", "/v1/models/x", "")));
        assert_eq!((status, &json_of(&body)["error"]["code"]), (404, &json!("model_not_found")));
        assert_eq!(post(address, COMPLETIONS, &json!({"prompt": "x"})).0, 200);
    }
    let (status, _, body) = parts(&exchange(openai, &request("GET", "/v2/health/live", "")));
    assert!(status == 404 && body.contains("is no endpoint"), "{body}");
    assert!(exchange(openai, &request("GET", "/health", "")).starts_with("HTTP/1.1 200"));
    assert!(fixture.stop());
}

#[test]
fn a_client_that_leaves_takes_its_request_back() {
    let (fixture, _folder) = start();
    let model = fixture
        .server
        .app()
        .core()
        .resolve("speller", "")
        .unwrap()
        .language_model()
        .unwrap()
        .unwrap();
    for (stream, taken_back) in [(false, 1), (true, 2)] {
        // The answer has no end but the context.
        let members = json!({"stream": stream, "ignore_eos": true});
        let mut connection = socket(fixture.http());
        connection.write_all(&request("POST", CHAT, &chat(&members).to_string())).unwrap();
        while model.engine().statistics().running == 0 {
            std::thread::yield_now();
        }
        if stream {
            let mut head = [0; 12];
            connection.read_exact(&mut head).unwrap();
            assert_eq!(&head, b"HTTP/1.1 200");
        }
        drop(connection);
        while model.engine().statistics().finished.get("abort") != Some(&taken_back) {
            std::thread::yield_now();
        }
    }
    drop(model);
    assert!(fixture.stop());
}

#[test]
fn checkpoints_are_found_wherever_they_lie() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write_checkpoint(&root.join("plain"));
    write_checkpoint(&root.join("versioned/3"));
    fs::write(root.join("single.gguf"), "").unwrap();
    for part in 1..=2 {
        fs::write(root.join(format!("split-0000{part}-of-00002.gguf")), "").unwrap();
    }
    let vllm = root.join("written");
    fs::create_dir_all(vllm.join("1")).unwrap();
    let group = "backend: 'vllm' instance_group [{ count: 1 kind: KIND_MODEL }]";
    fs::write(vllm.join("config.pbtxt"), group).unwrap();
    let arguments = json!({"model": root.join("plain"), "max_model_len": 99, "swap_space": 4});
    fs::write(vllm.join("1/model.json"), arguments.to_string()).unwrap();
    let fixture = start_on(root);
    let core = fixture.server.app().core();
    let found: Vec<(String, usize)> =
        core.language_models().into_iter().map(|(name, model)| (name, model.context())).collect();
    let named = |name: &str, context| (name.to_owned(), context);
    assert_eq!(
        found,
        [
            named("plain", CONTEXT),
            named("single", CONTEXT),
            named("split", CONTEXT),
            named("versioned", CONTEXT),
            named("written", 99)
        ]
    );
    assert!(core.resolve("single", "1").unwrap().is_decoupled());
    assert!(fixture.stop());
    // The folder of a checkpoint is a repository of one model.
    let whole = root.join("plain");
    let fixture = start_on(&whole);
    assert_eq!(fixture.server.app().core().language_models()[0].0, "plain");
    assert!(fixture.stop());
}

#[test]
fn generate_knows_the_names_of_tritons_vllm_backend() {
    let (fixture, _folder) = start();
    let address = fixture.http();
    let path = "/v2/models/speller/generate";
    let parameters = json!({"temperature": "0", "max_tokens": "2"}).to_string();
    let body = json!({"text_input": "u", "sampling_parameters": parameters,
                      "return_finish_reason": true, "return_num_input_tokens": true,
                      "return_num_output_tokens": true, "return_cumulative_logprob": true});
    let (status, _, answer) = post(address, path, &body);
    assert_eq!(status, 200, "{answer}");
    let found = json_of(&answer);
    assert_eq!(found["text_output"], "uvw");
    assert_eq!(
        (&found["finish_reason"], &found["num_input_tokens"]),
        (&json!("length"), &json!(1))
    );
    assert_eq!(found["num_output_tokens"], 2);
    assert!(found["cumulative_logprob"].as_f64().unwrap() > -0.1);

    let body = json!({"text_input": "u", "max_tokens": 2, "temperature": 0.0,
                      "exclude_input_in_output": true});
    assert_eq!(json_of(&post(address, path, &body).2)["text_output"], "vw");

    let body = json!({"text_input": "u", "stream": true, "temperature": 0.0, "max_tokens": 3});
    let (status, _, answer) = post(address, "/v2/models/speller/generate_stream", &body);
    let pieces =
        answer.split_terminator("\n\n").map(|event| json_of(event.strip_prefix("data: ").unwrap()));
    let text: String =
        pieces.map(|piece| piece["text_output"].as_str().unwrap().to_owned()).collect();
    assert_eq!((status, text.as_str()), (200, "vwx"));

    let wrong = json!({"text_input": "u", "sampling_parameters": "{\"beams\": 4}"});
    let (status, _, answer) = post(address, path, &wrong);
    assert!(status == 400 && answer.contains("unknown field `beams`"), "{answer}");
    let wrong = json!({"text_input": "u", "stream": true, "exclude_input_in_output": false});
    let (_, _, answer) = post(address, path, &wrong);
    assert!(answer.contains("is not allowed"), "{answer}");
    assert!(fixture.stop());
}

#[test]
fn the_metrics_page_has_vllms_names() {
    let (fixture, _folder) = start();
    let body = json!({"prompt": "w", "max_tokens": 2});
    assert_eq!(post(fixture.http(), COMPLETIONS, &body).0, 200);
    let metrics = fixture.server.addresses().metrics.unwrap();
    let page = exchange(metrics, &request("GET", "/metrics", ""));
    for line in [
        "vllm:prompt_tokens_total{model_name=\"speller\"} 1",
        "vllm:generation_tokens_total{model_name=\"speller\"} 2",
        "vllm:request_success_total{finished_reason=\"length\",model_name=\"speller\"} 1",
        "vllm:time_to_first_token_seconds_count{model_name=\"speller\"} 1",
        "vllm:num_requests_running{model_name=\"speller\"} 0",
    ] {
        assert!(page.contains(&format!("{line}\n")), "{line} is not in\n{page}");
    }
    assert!(fixture.stop());
}

#[test]
fn a_trained_checkpoint_gives_the_recorded_tokens() {
    let Some(shared) = std::env::var_os("GALATEA_SHARED") else {
        eprintln!("skipped: GALATEA_SHARED does not say where the recorded checkpoints are");
        return;
    };
    let checkpoints = Path::new(&shared).join("models");
    let name = "books-qwen2-draft-2m";
    let golden: Value =
        serde_json::from_slice(&fs::read(checkpoints.join("golden.json")).unwrap()).unwrap();
    let case = &golden[name]["cases"][0];
    let ids = |key: &str| case[key].as_array().unwrap().clone();
    let (prompt, greedy) = (ids("ids"), ids("greedy_ids"));
    let folder = tempfile::tempdir().unwrap();
    let arguments = json!({"model": checkpoints.join(name), "max_model_len": 128, "num_gpu_blocks_override": 8});
    fs::create_dir_all(folder.path().join("m/1")).unwrap();
    fs::write(folder.path().join("m/1/model.json"), arguments.to_string()).unwrap();
    let fixture = Fixture::on(repository(folder.path()), &flags(&[]));
    let body =
        json!({"prompt": prompt, "max_tokens": 6, "temperature": 0, "return_token_ids": true});
    let (status, _, body) = post(fixture.http(), COMPLETIONS, &body);
    assert_eq!(status, 200, "{body}");
    let found = json_of(&body).pointer("/choices/0/token_ids").cloned().unwrap();
    assert_eq!(found.as_array().unwrap()[..], greedy[prompt.len()..prompt.len() + 6]);
    assert!(fixture.stop());
}

#[test]
fn a_model_that_is_unloaded_ends_its_answers_and_then_its_engine() {
    let (fixture, _folder) = start();
    let address = fixture.http();
    let model = fixture
        .server
        .app()
        .core()
        .resolve("speller", "")
        .unwrap()
        .language_model()
        .unwrap()
        .unwrap();
    let members = json!({"max_tokens": 20_000, "ignore_eos": true, "temperature": 0.0});
    let mut generate = members.clone();
    generate.as_object_mut().unwrap().insert("text_input".to_owned(), json!("x"));
    let asked = [("/v2/models/speller/generate", generate), (CHAT, chat(&members))];
    let answers = asked.map(|(path, body)| std::thread::spawn(move || post(address, path, &body)));
    while model.engine().statistics().requests < 2 {
        std::thread::yield_now();
    }
    let engine = Arc::downgrade(&model);
    drop(model);
    let (status, _, body) = post(address, "/v2/repository/models/speller/unload", &json!({}));
    assert_eq!(status, 200, "{body}");
    for answer in answers {
        let (status, _, body) = answer.join().unwrap();
        assert!(status == 200 && body.contains("wxyz"), "{status}");
    }
    while engine.strong_count() > 0 {
        std::thread::yield_now();
    }
    assert_eq!(post(address, CHAT, &chat(&json!({}))).0, 404);
    assert!(fixture.stop());
}

#[test]
fn a_server_that_stops_lets_answers_end() {
    let (fixture, _folder) = start();
    let address = fixture.http();
    let late = std::thread::spawn(move || {
        post(address, CHAT, &chat(&json!({"max_tokens": 20_000, "ignore_eos": true})))
    });
    // A fast machine may have answered already.
    while fixture.server.app().open_requests() == 0 && !late.is_finished() {
        std::thread::yield_now();
    }
    let whole = fixture.runtime.block_on(fixture.server.stop(Duration::from_secs(20)));
    let (status, _, body) = late.join().unwrap();
    assert!(whole.complete && [200, 503].contains(&status), "{body}");
}
