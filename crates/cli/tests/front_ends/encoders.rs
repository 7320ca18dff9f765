//! Encoders over sockets: embeddings, ranks, scores, and Triton's tensors.

use std::fs;
use std::path::{Path, PathBuf};

use galatea_llm::encoder_decoder::EncoderDecoder;
use serde_json::{Map, Value, json};

use crate::client::{events, exchange, get, json_of, post, request};
use crate::{Fixture, flags, repository, speller};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/llm").join(name)
}

/// Copies a small checkpoint, and gives it a tokenizer of the words `a4` to `a63`.
pub(crate) fn write_encoder(name: &str, folder: &Path) {
    fs::create_dir_all(folder.join("1_Pooling")).unwrap();
    for file in ["config.json", "model.safetensors", "modules.json", "1_Pooling/config.json"] {
        if golden(name).join(file).exists() {
            fs::copy(golden(name).join(file), folder.join(file)).unwrap();
        }
    }
    let special = ["[UNK]", "[PAD]", "[CLS]", "[SEP]"];
    let mut words: Map<String, Value> = (4..64).map(|id| (format!("a{id}"), id.into())).collect();
    words.extend(special.iter().enumerate().map(|(id, word)| ((*word).to_owned(), id.into())));
    let added = special.iter().enumerate().map(|(id, word)| {
        json!({"id": id, "content": word, "special": true, "single_word": false,
               "lstrip": false, "rstrip": false, "normalized": false})
    });
    let tokenizer = json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added.collect::<Vec<_>>(),
        "normalizer": null, "pre_tokenizer": {"type": "Whitespace"}, "decoder": null,
        "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
        "model": {"type": "WordLevel", "vocab": words, "unk_token": "[UNK]"},
    });
    fs::write(folder.join("tokenizer.json"), tokenizer.to_string()).unwrap();
}

/// A server with a model of vectors, a cross-encoder and a folder that is no checkpoint of either.
fn start() -> (Fixture, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    write_encoder("bert-mean", &folder.path().join("mean"));
    let prompts = json!({"prompts": {"query": "a9 "}});
    let file = folder.path().join("mean/config_sentence_transformers.json");
    fs::write(file, prompts.to_string()).unwrap();
    write_encoder("bert-rank", &folder.path().join("rank/1"));
    (Fixture::on(repository(folder.path()), &flags(&[])), folder)
}

fn numbers(list: &Value) -> Vec<f64> {
    list.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

fn assert_close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    let far = found.iter().zip(expected).any(|(a, b)| (a - b).abs() > 2e-4);
    assert!(!far, "{found:?}\n{expected:?}");
}

fn cases(name: &str) -> Vec<Value> {
    let text = fs::read(golden(name).join("golden.json")).unwrap();
    let all: Value = serde_json::from_slice(&text).unwrap();
    all["cases"].as_array().unwrap().clone()
}

const EMBEDDINGS: &str = "/v1/embeddings";

#[test]
fn embeddings_are_those_of_the_reference_library() {
    let (fixture, _folder) = start();
    let address = fixture.http();
    let cases = cases("bert-mean");
    let ids: Vec<&Value> = cases.iter().map(|case| &case["ids"]).collect();
    let (status, _, body) = post(address, EMBEDDINGS, &json!({"model": "mean", "input": ids}));
    assert_eq!(status, 200, "{body}");
    let answer = json_of(&body);
    let tokens: usize = ids.iter().map(|ids| ids.as_array().unwrap().len()).sum();
    assert_eq!(answer["usage"], json!({"prompt_tokens": tokens, "total_tokens": tokens}));
    for (index, case) in cases.iter().enumerate() {
        let one = &answer["data"][index];
        assert_eq!((&one["index"], &one["object"]), (&json!(index), &json!("embedding")));
        assert_close(&numbers(&one["embedding"]), &numbers(&case["normalised"]));
    }
    // A part of a vector of length 1 has that length too.
    let part = json!({"model": "mean", "input": ids[0], "dimensions": 8});
    let answer = json_of(&post(address, EMBEDDINGS, &part).2);
    let found = numbers(&answer["data"][0]["embedding"]);
    let whole = numbers(&cases[0]["normalised"])[..8].to_vec();
    let length = whole.iter().map(|x| x * x).sum::<f64>().sqrt();
    assert_close(&found, &whole.iter().map(|x| x / length).collect::<Vec<_>>());
    assert!(fixture.stop());
}

#[test]
fn texts_have_their_prompts_and_their_ends_cut_as_requests_say() {
    let (fixture, _folder) = start();
    let address = fixture.http();
    let vector = |members: Value| {
        let mut body = json!({"input": "a5 a6"});
        body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        let (status, _, body) = post(address, EMBEDDINGS, &body);
        assert_eq!(status, 200, "{body}");
        let answer = json_of(&body);
        (answer["data"][0]["embedding"].clone(), answer["usage"]["prompt_tokens"].clone())
    };
    // Without a model the only one that may be meant is taken, and here there are two.
    let (status, _, body) = post(address, EMBEDDINGS, &json!({"input": "a5"}));
    assert!(status == 400 && body.contains("model: missing"), "{body}");
    let plain = vector(json!({"model": "mean"}));
    assert_eq!(plain.1, 4);
    assert_eq!(vector(json!({"model": "mean", "input": [2, 5, 6, 3]})), plain);
    assert_eq!(
        vector(json!({"model": "mean", "input": ["a5 a6 a7 a8"],
                             "truncate_prompt_tokens": 4})),
        plain
    );
    let asked = vector(json!({"model": "mean", "prompt_name": "query"}));
    assert_eq!(asked, vector(json!({"model": "mean", "input": "a9 a5 a6"})));
    let bare = vector(json!({"model": "mean", "add_special_tokens": false}));
    assert_eq!(bare.1, 2);
    let (text, _) = vector(json!({"model": "mean", "encoding_format": "base64"}));
    // 32 numbers of 4 bytes.
    assert_eq!(text.as_str().unwrap().len(), 172);
    assert!(fixture.stop());
}

#[test]
fn documents_come_in_the_order_of_their_scores() {
    let (fixture, _folder) = start();
    let address = fixture.http();
    let documents = json!(["a20 a21 a22", {"text": "a9 a5 a6"}, "a50"]);
    let body = json!({"model": "mean", "query": "a5 a6", "documents": documents, "top_n": 2});
    let (status, _, body) = post(address, "/v1/rerank", &body);
    assert_eq!(status, 200, "{body}");
    let answer = json_of(&body);
    let results = answer["results"].as_array().unwrap();
    assert_eq!((results.len(), &results[0]["index"]), (2, &json!(1)));
    assert!((results[0]["relevance_score"].as_f64().unwrap() - 1.0).abs() < 1e-5);
    assert_eq!(results[0]["document"], json!({"text": "a9 a5 a6"}));

    let pair = json!({"model": "rank", "query": "a5 a6", "documents": ["a7", "a8 a9"],
                      "return_documents": false});
    let ranked = json_of(&post(address, "/rerank", &pair).2);
    let results = ranked["results"].as_array().unwrap();
    let score = |at: usize| results[at]["relevance_score"].as_f64().unwrap();
    assert!(score(0) >= score(1) && results[0].get("document").is_none(), "{ranked}");
    let scores = json!({"model": "rank", "text_1": "a5 a6", "text_2": ["a7", "a8 a9"]});
    let scored = json_of(&post(address, "/score", &scores).2);
    for result in results {
        let index = usize::try_from(result["index"].as_u64().unwrap()).unwrap();
        assert_eq!(scored["data"][index]["score"], result["relevance_score"]);
    }
    let pairs = json!({"model": "mean", "text_1": ["a5", "a6"], "text_2": ["a5", "a7"]});
    let near = json_of(&post(address, "/v1/score", &pairs).2);
    assert!((near["data"][0]["score"].as_f64().unwrap() - 1.0).abs() < 1e-5, "{near}");
    assert!(near["data"][1]["score"].as_f64().unwrap() < 0.999, "{near}");
    assert!(fixture.stop());
}

#[test]
fn wrong_requests_are_named_with_the_field() {
    let (fixture, folder) = start();
    let address = fixture.http();
    let long = "a7 ".repeat(70);
    for (path, body, status, why) in [
        (EMBEDDINGS, json!({"model": "mean"}), 400, "input: missing"),
        (EMBEDDINGS, json!({"model": "mean", "input": []}), 400, "expected a text, a list of"),
        (EMBEDDINGS, json!({"model": "mean", "input": ["x", 5]}), 400, "input[1]: 5 found"),
        (EMBEDDINGS, json!({"model": "mean", "input": [99]}), 400, "tokens below 64"),
        (EMBEDDINGS, json!({"model": "mean", "input": "x", "dimensions": 33}), 400, "1 to 32"),
        (
            EMBEDDINGS,
            json!({"model": "mean", "input": "x", "encoding_format": "int8"}),
            400,
            "expected float or base64",
        ),
        (
            EMBEDDINGS,
            json!({"model": "mean", "input": "x", "prompt_name": "title"}),
            400,
            "prompt_name: 'title' found",
        ),
        (
            EMBEDDINGS,
            json!({"model": "mean", "input": "x", "truncate_prompt_tokens": 65}),
            400,
            "from 1 to 64, or -1",
        ),
        (
            EMBEDDINGS,
            json!({"model": "mean", "input": ["x", long]}),
            400,
            "context_length_exceeded",
        ),
        (EMBEDDINGS, json!({"model": "rank", "input": "x"}), 400, "makes no vectors"),
        (EMBEDDINGS, json!({"model": "none", "input": "x"}), 404, "model_not_found"),
        (
            "/v1/chat/completions",
            json!({"model": "mean", "messages": []}),
            400,
            "is an encoder, which writes no texts",
        ),
        ("/v1/rerank", json!({"model": "rank", "query": "x"}), 400, "documents: missing"),
        (
            "/v1/rerank",
            json!({"model": "rank", "query": "x", "documents": [5]}),
            400,
            "documents[0]: 5 found",
        ),
        (
            "/v1/rerank",
            json!({"model": "rank", "query": "x", "documents": ["y", long]}),
            400,
            "documents[1] has 74 tokens",
        ),
        (
            "/v1/score",
            json!({"model": "rank", "text_1": ["x", "y"], "text_2": ["z"]}),
            400,
            "text_1: 2 texts found for 1 of text_2",
        ),
    ] {
        let (found, _, answer) = post(address, path, &body);
        assert!(found == status && answer.contains(why), "{path} {body}: {found} {answer}");
        assert!(answer.starts_with("{\"error\":{"), "{answer}");
    }
    assert!(fixture.stop());
    // A model that writes makes no vectors.
    let root = folder.path().join("writers");
    speller::write_checkpoint(&root.join("speller"));
    let fixture = Fixture::on(speller::core(&root), &flags(&[]));
    let (status, _, body) =
        post(fixture.http(), EMBEDDINGS, &json!({"model": "speller", "input": "x"}));
    assert!(status == 400 && body.contains("vectors and scores are those of encoders"), "{body}");
    assert!(fixture.stop());
}

#[test]
fn tensors_statistics_and_metrics_know_encoders_too() {
    let (fixture, _folder) = start();
    let address = fixture.http();
    let body = json!({"model": "mean", "input": ["a5 a6", "a7"]});
    let expected = json_of(&post(address, EMBEDDINGS, &body).2);
    let expected: Vec<f64> =
        (0..2).flat_map(|at| numbers(&expected["data"][at]["embedding"])).collect();
    let texts = json!({"inputs": [{"name": "text_input", "datatype": "BYTES", "shape": [2],
                                   "data": ["a5 a6", "a7"]}]});
    let (status, _, body) = post(address, "/v2/models/mean/infer", &texts);
    assert_eq!(status, 200, "{body}");
    let output = json_of(&body)["outputs"][0].clone();
    assert_eq!((&output["name"], &output["shape"]), (&json!("embedding"), &json!([2, 32])));
    assert_close(&numbers(&output["data"]), &expected);
    let pairs = json!({"inputs": [
        {"name": "query", "datatype": "BYTES", "shape": [1], "data": ["a5"]},
        {"name": "documents", "datatype": "BYTES", "shape": [3], "data": ["a6", "a7 a8", "a9"]}]});
    let (status, _, body) = post(address, "/v2/models/rank/infer", &pairs);
    assert_eq!(status, 200, "{body}");
    assert_eq!(json_of(&body)["outputs"][0]["shape"], json!([3]));
    let long = json!({"inputs": [{"name": "text_input", "datatype": "BYTES", "shape": [1],
                                  "data": ["a7 ".repeat(70)]}]});
    let (status, _, body) = post(address, "/v2/models/mean/infer", &long);
    assert!(status == 400 && body.contains("72 tokens found, expected from 1 to 64"), "{body}");
    let metadata = get(address, "/v2/models/mean");
    assert_eq!(metadata["outputs"][0]["shape"], json!([-1, 32]));
    let statistics = get(address, "/v2/models/mean/stats");
    let counted = statistics.pointer("/model_stats/0/inference_stats/success/count").unwrap();
    assert_eq!(counted, 2, "{statistics}");
    let ids: Vec<Value> = get(address, "/v1/models")["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| json!([model["id"], model["max_model_len"]]))
        .collect();
    assert_eq!(ids, [json!(["mean", 64]), json!(["rank", 64])]);
    let tokens = json_of(&post(address, "/tokenize", &json!({"model": "mean", "prompt": "a5"})).2);
    assert_eq!(tokens["tokens"], json!([2, 5, 3]));
    let metrics = fixture.server.addresses().metrics.unwrap();
    let page = exchange(metrics, &request("GET", "/metrics", ""));
    for line in [
        "vllm:prompt_tokens_total{model_name=\"mean\"} 14",
        "vllm:request_success_total{finished_reason=\"stop\",model_name=\"mean\"} 2",
        "vllm:num_requests_running{model_name=\"mean\"} 0",
        "nv_inference_request_success{model=\"mean\",version=\"1\"} 2",
    ] {
        assert!(page.contains(&format!("{line}\n")), "{line} is not in\n{page}");
    }
    // What an encoder does not have is not told.
    assert!(!page.contains("vllm:kv_cache_usage_perc"), "{page}");
    assert!(fixture.stop());
}

#[test]
fn a_model_that_reads_texts_whole_writes_others() {
    let folder = tempfile::tempdir().unwrap();
    write_encoder("t5", &folder.path().join("writer"));
    let fixture = Fixture::on(repository(folder.path()), &flags(&[]));
    let address = fixture.http();
    let model = EncoderDecoder::load(
        &golden("t5"),
        &galatea_providers::all(),
        &galatea_runtime::SessionOptions::default(),
    );
    let model = model.unwrap();
    let prompts: Vec<Vec<u32>> = cases("t5")
        .iter()
        .map(|case| serde_json::from_value(case["ids"].clone()).unwrap())
        .collect();
    let body = json!({"prompt": prompts, "max_tokens": 9, "temperature": 0,
                      "ignore_eos": true, "return_token_ids": true});
    let (status, _, answer) = post(address, "/v1/completions", &body);
    assert_eq!(status, 200, "{answer}");
    let whole = json_of(&answer);
    for (at, expected) in model.generate(&prompts, 9, &[]).unwrap().into_iter().enumerate() {
        assert_eq!(whole["choices"][at]["token_ids"], json!(expected), "{whole}");
        assert_eq!(whole["choices"][at]["finish_reason"], "length");
    }
    let stream = json!({"prompt": prompts[0], "max_tokens": 9, "temperature": 0,
                        "ignore_eos": true, "stream": true});
    let (_, _, answer) = post(address, "/v1/completions", &stream);
    let text: String =
        events(&answer).iter().map(|piece| piece["choices"][0]["text"].as_str().unwrap()).collect();
    assert_eq!(whole["choices"][0]["text"], text);
    let generate = json!({"text_input": "a5 a6", "temperature": 0.7, "max_tokens": 4, "seed": 3,
                          "ignore_eos": true, "exclude_input_in_output": true});
    let (status, _, first) = post(address, "/v2/models/writer/generate", &generate);
    let again = post(address, "/v2/models/writer/generate", &generate).2;
    assert_eq!(
        (status, json_of(&first)["text_output"].clone()),
        (200, json_of(&again)["text_output"].clone())
    );
    let chat = json!({"messages": [{"role": "user", "content": "a5"}]});
    let (status, _, answer) = post(address, "/v1/chat/completions", &chat);
    assert!(status == 400 && answer.contains("no chat template"), "{answer}");
    let scored = json!({"prompt": "a5", "prompt_logprobs": 1});
    let (status, _, answer) = post(address, "/v1/completions", &scored);
    assert!(status == 400 && answer.contains("prompt_logprobs: this model reads"), "{answer}");
    assert!(fixture.stop());
}
