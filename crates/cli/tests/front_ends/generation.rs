//! Language models over gRPC, under the names of Triton's vLLM backend.

use galatea_cli::grpc_client::{GrpcClient, connect};
use galatea_server::grpc::proto::inference::grpc_inference_service_client::GrpcInferenceServiceClient;
use galatea_server::grpc::proto::inference::infer_parameter::ParameterChoice;
use galatea_server::grpc::proto::inference::model_infer_request::InferInputTensor;
use galatea_server::grpc::proto::inference::{
    InferParameter, ModelInferRequest, ModelInferResponse, ModelStreamInferResponse,
};
use serde_json::json;
use tonic::codegen::tokio_stream::{self, StreamExt};
use tonic::{Request, Streaming};

use crate::client::get;
use crate::speller::{self, write_checkpoint};
use crate::{Fixture, flags, samples};

/// A server on a repository with a speller.
fn start() -> (Fixture, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    write_checkpoint(&folder.path().join("speller"));
    (Fixture::on(speller::core(folder.path()), &flags(&[])), folder)
}

type Client = GrpcInferenceServiceClient<GrpcClient>;

async fn client(fixture: &Fixture) -> Client {
    connect(fixture.server.addresses().grpc.unwrap()).await.unwrap()
}

/// A request with the inputs that a text, flags and the parameters of sampling are.
fn ask(id: &str, text: &str, flags: &[(&str, bool)], sampling: &str) -> ModelInferRequest {
    let mut request = ModelInferRequest {
        model_name: "speller".to_owned(),
        id: id.to_owned(),
        ..ModelInferRequest::default()
    };
    let mut add = |name: &str, datatype: &str, bytes: Vec<u8>| {
        request.inputs.push(InferInputTensor {
            name: name.to_owned(),
            datatype: datatype.to_owned(),
            shape: vec![1],
            ..InferInputTensor::default()
        });
        request.raw_input_contents.push(bytes.into());
    };
    for (name, text) in [("text_input", text), ("sampling_parameters", sampling)] {
        let length = u32::try_from(text.len()).unwrap().to_le_bytes();
        add(name, "BYTES", [&length, text.as_bytes()].concat());
    }
    for &(name, flag) in flags {
        add(name, "BOOL", vec![u8::from(flag)]);
    }
    request
}

/// The texts of an output.
fn texts(response: &ModelInferResponse, name: &str) -> Vec<String> {
    let at = response.outputs.iter().position(|output| output.name == name).unwrap();
    let mut rest = &response.raw_output_contents[at][..];
    let mut found = Vec::new();
    while let Some((length, behind)) = rest.split_first_chunk() {
        let (text, behind) = behind.split_at(u32::from_le_bytes(*length) as usize);
        found.push(String::from_utf8(text.to_vec()).unwrap());
        rest = behind;
    }
    found
}

fn is_final(response: &ModelInferResponse) -> bool {
    let value = response.parameters["triton_final_response"].parameter_choice.clone();
    value == Some(ParameterChoice::BoolParam(true))
}

/// The answers to some requests of one call that asks nothing more, in the order in which they come.
async fn answers(
    client: &mut Client,
    requests: Vec<ModelInferRequest>,
) -> Vec<ModelStreamInferResponse> {
    let stream = client.model_stream_infer(tokio_stream::iter(requests)).await.unwrap();
    stream.into_inner().map(Result::unwrap).collect().await
}

/// The next response of a call, without an error.
async fn next(answers: &mut Streaming<ModelStreamInferResponse>) -> ModelInferResponse {
    let message = answers.message().await.unwrap().unwrap();
    assert_eq!(message.error_message, "");
    message.infer_response.unwrap()
}

const GREEDY: &str = r#"{"temperature": 0, "max_tokens": 4}"#;

#[test]
fn answers_come_piece_by_piece_and_the_last_one_says_so() {
    let (fixture, _folder) = start();
    fixture.runtime.block_on(async {
        let mut client = client(&fixture).await;
        let flags = [("stream", true), ("return_finish_reason", true)];
        let found = answers(&mut client, vec![ask("7", "u", &flags, GREEDY)]).await;
        let found: Vec<ModelInferResponse> =
            found.into_iter().map(|message| message.infer_response.unwrap()).collect();
        let text: String = found.iter().flat_map(|one| texts(one, "text_output")).collect();
        assert_eq!(text, "vwxy");
        // Nothing comes behind the last piece, for clients that ask for no empty response.
        let finals: Vec<bool> = found.iter().map(is_final).collect();
        assert_eq!(finals, [false, false, false, true]);
        let (last, before) = found.split_last().unwrap();
        assert_eq!(texts(last, "finish_reason"), ["length"]);
        assert!(before.iter().all(|one| texts(one, "finish_reason") == ["None"]));
        assert!(found.iter().all(|one| one.id == "7" && one.model_name == "speller"));
    });
    assert!(fixture.stop());
}

#[test]
fn whole_answers_begin_with_their_text_unless_it_is_excluded() {
    let (fixture, _folder) = start();
    fixture.runtime.block_on(async {
        let mut client = client(&fixture).await;
        for (flags, expected) in [
            (&[][..], "uvwxy"),
            (&[("exclude_input_in_output", false)], "uvwxy"),
            (&[("exclude_input_in_output", true)], "vwxy"),
            (&[("stream", false), ("exclude_input_in_output", true)], "vwxy"),
        ] {
            let found = answers(&mut client, vec![ask("", "u", flags, GREEDY)]).await;
            assert_eq!(found.len(), 1, "{flags:?}");
            let response = found[0].infer_response.as_ref().unwrap();
            assert_eq!(texts(response, "text_output"), [expected], "{flags:?}");
            assert!(is_final(response), "{flags:?}");
        }
        let two = r#"{"temperature": 0.5, "seed": 1, "n": 2, "max_tokens": 2}"#;
        let found = answers(&mut client, vec![ask("", "u", &[], two)]).await;
        let response = found[0].infer_response.as_ref().unwrap();
        assert_eq!(texts(response, "text_output"), ["uvw", "uvw"]);
        let streamed = answers(&mut client, vec![ask("", "u", &[("stream", true)], two)]).await;
        let finals: Vec<bool> =
            streamed.iter().map(|one| is_final(one.infer_response.as_ref().unwrap())).collect();
        assert_eq!(finals.iter().filter(|last| **last).count(), 1, "{finals:?}");
        assert!(finals.last().unwrap());
    });
    assert!(fixture.stop());
}

#[test]
fn requests_of_one_call_are_answered_side_by_side_and_errors_do_not_end_it() {
    let (fixture, _folder) = start();
    fixture.runtime.block_on(async {
        let mut client = client(&fixture).await;
        let stream = [("stream", true)];
        let refused = [("stream", true), ("exclude_input_in_output", false)];
        let mut no_text = ask("no text", "", &stream, GREEDY);
        no_text.inputs.remove(0);
        no_text.raw_input_contents.remove(0);
        let mut absent = ask("absent", "u", &stream, GREEDY);
        absent.model_name = "nobody".to_owned();
        let requests = vec![
            ask("first", "a", &stream, GREEDY),
            ask("beams", "u", &stream, r#"{"beams": 4}"#),
            ask("refused", "u", &refused, GREEDY),
            no_text,
            absent,
            ask("second", "k", &stream, GREEDY),
        ];
        let found = answers(&mut client, requests).await;
        let of = |id: &str| {
            found
                .iter()
                .filter(|one| one.infer_response.as_ref().unwrap().id == id)
                .collect::<Vec<_>>()
        };
        for (id, text) in [("first", "bcde"), ("second", "lmno")] {
            let pieces = of(id).into_iter().map(|one| one.infer_response.as_ref().unwrap());
            let pieces: String = pieces.flat_map(|one| texts(one, "text_output")).collect();
            assert_eq!(pieces, text);
        }
        for (id, why) in [
            ("beams", "unknown field `beams`"),
            ("refused", "`exclude_input_in_output` = False is not allowed"),
            ("no text", "text_input"),
            ("absent", "unknown model: 'nobody'"),
        ] {
            let [one] = of(id)[..] else { panic!("{id}: {found:?}") };
            assert!(one.error_message.contains(why), "{id}: {}", one.error_message);
        }
        // One response at a time is not enough for a decoupled model.
        let whole = client.model_infer(ask("", "u", &[], GREEDY)).await.unwrap_err();
        assert!(whole.message().contains("decoupled"), "{whole}");
    });
    assert!(fixture.stop());
}

#[test]
fn clients_may_ask_for_a_status_in_the_place_of_an_error() {
    let (fixture, _folder) = start();
    fixture.runtime.block_on(async {
        let mut client = client(&fixture).await;
        let asked = ask("", "u", &[("stream", true)], r#"{"beams": 4}"#);
        let mut request = Request::new(tokio_stream::iter(vec![asked]));
        request.metadata_mut().insert("triton_grpc_error", "true".parse().unwrap());
        let mut answers = client.model_stream_infer(request).await.unwrap().into_inner();
        let status = answers.message().await.unwrap_err();
        assert_eq!(status.code(), tonic::Code::InvalidArgument);
        assert!(status.message().contains("unknown field `beams`"), "{status}");
    });
    assert!(fixture.stop());
}

#[test]
fn a_call_that_is_dropped_takes_its_requests_back() {
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
    for (stream, taken_back) in [(true, 2), (false, 4)] {
        fixture.runtime.block_on(async {
            let mut client = client(&fixture).await;
            // The answer has no end but the context.
            let endless = r#"{"temperature": 0, "ignore_eos": true, "max_tokens": 60000}"#;
            let requests = ["1", "2"].map(|id| ask(id, "u", &[("stream", stream)], endless));
            // The client resets a call only when all its requests are sent.
            let requests = tokio_stream::iter(requests);
            let mut answers = client.model_stream_infer(requests).await.unwrap().into_inner();
            if stream {
                assert_eq!(texts(&next(&mut answers).await, "text_output"), ["v"]);
            }
            while model.engine().statistics().running < 2 {
                tokio::task::yield_now().await;
            }
        });
        while model.engine().statistics().finished.get("abort") != Some(&taken_back) {
            std::thread::yield_now();
        }
    }
    drop(model);
    let failures = || {
        let statistics = get(fixture.http(), "/v2/models/speller/stats");
        statistics.pointer("/model_stats/0/inference_stats/fail/count").cloned()
    };
    while failures() != Some(json!(4)) {
        std::thread::yield_now();
    }
    assert!(fixture.stop());
}

#[test]
fn responses_are_counted_by_their_index_whatever_door_they_take() {
    let (fixture, _folder) = start();
    let address = fixture.http();
    let counts = || {
        let statistics = get(address, "/v2/models/speller/stats");
        let responses = statistics.pointer("/model_stats/0/response_stats").unwrap();
        let of = |kind: &str| -> Vec<u64> {
            let at = |index: usize| responses.get(index.to_string());
            (0..).map_while(at).map(|one| one[kind]["count"].as_u64().unwrap()).collect()
        };
        (of("success"), of("fail"))
    };
    fixture.runtime.block_on(async {
        let mut client = client(&fixture).await;
        let streamed = ask("", "u", &[("stream", true)], GREEDY);
        answers(&mut client, vec![streamed]).await;
        assert_eq!(counts(), (vec![1, 1, 1, 1], vec![0; 4]));
        answers(&mut client, vec![ask("", "u", &[], GREEDY)]).await;
    });
    assert_eq!(counts(), (vec![2, 1, 1, 1], vec![0; 4]));
    let mut body = json!({"model": "speller", "prompt": "u", "max_tokens": 3});
    assert_eq!(crate::client::post(address, "/v1/completions", &body).0, 200);
    assert_eq!(counts(), (vec![3, 1, 1, 1], vec![0; 4]));
    body["stream"] = json!(true);
    assert_eq!(crate::client::post(address, "/v1/completions", &body).0, 200);
    assert_eq!(counts(), (vec![4, 2, 2, 1], vec![0; 4]));
    assert!(fixture.stop());
}

#[test]
fn the_sample_model_gives_the_same_text_whole_and_in_pieces() {
    let fixture = Fixture::on(samples(&["chat"]), &flags(&[]));
    fixture.runtime.block_on(async {
        let mut client = client(&fixture).await;
        let sampling = r#"{"temperature": 0, "max_tokens": 24, "ignore_eos": true}"#;
        let prompt = "The capital of France is";
        let whole = [("exclude_input_in_output", true)];
        let requests = [("whole", &whole), ("pieces", &[("stream", true)])].map(|(id, flags)| {
            let named = ask(id, prompt, flags, sampling);
            ModelInferRequest { model_name: "chat".to_owned(), ..named }
        });
        let found = answers(&mut client, requests.into()).await;
        let text = |id: &str| -> String {
            let all = found.iter().map(|one| one.infer_response.as_ref().unwrap());
            all.filter(|one| one.id == id).flat_map(|one| texts(one, "text_output")).collect()
        };
        assert!(!text("whole").is_empty());
        assert_eq!(text("whole"), text("pieces"));
        assert!(found.len() > 2);
    });
    assert!(fixture.stop());
}

#[test]
fn an_empty_response_is_not_needed_and_not_sent_where_a_piece_is_the_last() {
    let (fixture, _folder) = start();
    fixture.runtime.block_on(async {
        let mut client = client(&fixture).await;
        let mut asked = ask("", "u", &[("stream", true)], GREEDY);
        let wanted = InferParameter { parameter_choice: Some(ParameterChoice::BoolParam(true)) };
        asked.parameters.insert("triton_enable_empty_final_response".to_owned(), wanted);
        let found = answers(&mut client, vec![asked]).await;
        assert_eq!(found.len(), 4);
        assert!(is_final(found[3].infer_response.as_ref().unwrap()));
    });
    assert!(fixture.stop());
}
