//! Entries of the fuzz targets in `fuzz/fuzz_targets` into the front ends. Not for other users.
//!
//! Each takes any bytes. A panic is a finding: of the front end, or of an assertion on what must hold of its answers.

#![allow(clippy::expect_used, clippy::panic, reason = "a panic is how a fuzz target reports")]
#![allow(clippy::missing_panics_doc, reason = "every entry panics where something does not hold")]

use std::fs;
use std::sync::{Arc, LazyLock};

use galatea::Engine;
use galatea_serving::{ControlMode, Core, CoreOptions};
use tokio::runtime::{Builder, Runtime};

use crate::app::{ClientLimits, ServerState};
use crate::{grpc, http, json};

/// Models that give back what they get, of tensors in three types.
const CONFIG: &str = "name: 'echo' backend: 'identity' max_batch_size: 4
    input { name: 'N' data_type: TYPE_INT32 dims: -1 }
    input { name: 'F' data_type: TYPE_FP32 dims: [ 2, -1 ] optional: true }
    input { name: 'T' data_type: TYPE_STRING dims: -1 optional: true }
    output { name: 'N2' data_type: TYPE_INT32 dims: -1 }
    output { name: 'F2' data_type: TYPE_FP32 dims: [ 2, -1 ] }
    output { name: 'T2' data_type: TYPE_STRING dims: -1 }";

/// A server with the model `echo`, for all inputs of a process.
static SERVER: LazyLock<Arc<ServerState>> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder for the model").keep();
    fs::create_dir_all(folder.join("echo/1")).expect("a folder for the version");
    fs::write(folder.join("echo/config.pbtxt"), CONFIG).expect("a configuration");
    let options = CoreOptions {
        repositories: vec![folder],
        control_mode: ControlMode::None,
        ..CoreOptions::default()
    };
    let engine = Engine::new();
    let core = Core::start(options, engine.backends(None)).expect("the model loads");
    Arc::new(ServerState::new(
        core,
        engine,
        ClientLimits { max_input_bytes: 1 << 20, ..ClientLimits::default() },
    ))
});

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().build().expect("a runtime")
}

/// Reads bytes as the requests of a connection: first cut into pieces and whole, which must be read alike; then with
/// the endpoints that answer them.
pub fn http1(data: &[u8]) {
    let (piece, bytes) = data.split_first().map_or((1, data), |(first, rest)| (*first, rest));
    runtime().block_on(async {
        let cut = http::fuzzing::requests(bytes, usize::from(piece).max(1)).await;
        let whole = http::fuzzing::requests(bytes, usize::MAX).await;
        assert_eq!(cut.whole, whole.whole, "requests depend on how their bytes are cut");
        // A line that has not ended may be known for malformed before its end or not.
        let statuses = cut.refusal.zip(whole.refusal);
        assert!(statuses.is_none_or(|(cut, whole)| cut == whole), "refusals depend on cuts");
        http::fuzzing::answered(&SERVER, bytes).await;
    });
}

/// Reads bytes as the body of an inference: two bytes say how many of them are JSON.
pub fn http_infer(data: &[u8]) {
    let Some(([high, low], body)) = data.split_first_chunk::<2>() else { return };
    let length = usize::from(u16::from_be_bytes([*high, *low])).min(body.len());
    let head = format!(
        "POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\
         Inference-Header-Content-Length: {length}\r\n\r\n",
        body.len()
    );
    let bytes = [head.as_bytes(), body].concat();
    runtime().block_on(async {
        let answer = http::fuzzing::answered(&SERVER, &bytes).await;
        assert!(answer.starts_with(b"HTTP/1.1 "), "an inference is not answered");
    });
}

/// Reads bytes as frames of HTTP/2, behind the opening of a connection.
pub fn http2(data: &[u8]) {
    runtime().block_on(grpc::fuzzing::frames(data));
}

/// Reads bytes as coded heads, each behind its length in one byte.
pub fn hpack(data: &[u8]) {
    grpc::fuzzing::heads(data);
}

/// Reads bytes as a message of `ModelInfer`.
pub fn grpc_infer(data: &[u8]) {
    runtime().block_on(grpc::fuzzing::infer(&SERVER, data));
}

/// Reads bytes as JSON. Whatever a strict reader takes is taken here as well.
pub fn json(data: &[u8]) {
    let strict: Result<serde_json::Value, _> = serde_json::from_slice(data);
    match json::JsonDocument::parse(data) {
        Ok(document) => {
            let root = document.root();
            let _ = (root.member("inputs").is_some(), root.kind());
        }
        Err(json::ParseError::Syntax { at, .. }) => {
            assert!(at <= data.len(), "an error lies behind the text");
            assert!(strict.is_err(), "JSON is refused");
        }
        Err(json::ParseError::TooDeep | json::ParseError::TooLong) => {}
    }
}

#[cfg(test)]
mod tests {
    use galatea_testkit::fuzz_corpus::hold;

    use super::*;

    #[test]
    fn committed_inputs_of_the_fuzz_targets_hold() {
        hold("http1", 3, http1);
        hold("http_infer", 3, http_infer);
        hold("http2", 3, http2);
        hold("hpack", 3, hpack);
        hold("grpc_infer", 3, grpc_infer);
        hold("json", 3, json);
    }

    #[test]
    fn the_server_of_the_fuzz_targets_answers() {
        let body = br#"{"inputs":[{"name":"N","shape":[1,2],"datatype":"INT32","data":[1,2]}]}"#;
        let request = format!(
            "POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let bytes = [request.as_bytes(), body].concat();
        let answer = runtime().block_on(http::fuzzing::answered(&SERVER, &bytes));
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("[1,2]"), "{answer}");
    }
}
