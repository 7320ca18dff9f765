//! The table of endpoints, and finding the row of a path.

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use galatea_serving::request::ParameterValue;
use galatea_serving::trace::RequestTrace;
use galatea_serving::{ServingError, TokenMeter};

pub use super::dialect::InferDialect;
use super::message::{ContentType, HttpHead, HttpMethod, HttpResponse};
use super::{
    encoders, generate, handlers, infer, openai, profile, repository, sagemaker, settings, shm,
};
use crate::access::ClientPass;
use crate::app::ServerState;
pub use crate::restricted::EndpointCategory;
use crate::trace;

/// Request that a handler works on.
#[derive(Debug)]
pub struct CallContext<'a> {
    /// The server.
    pub app: &'a Arc<ServerState>,
    /// Head of the request.
    pub head: &'a HttpHead,
    /// Body of the request.
    pub body: Bytes,
    /// Model in the path; empty where the row has none.
    pub model: &'a str,
    /// Version in the path; empty for the latest.
    pub version: &'a str,
    /// A repository stands in the path.
    pub in_repository: bool,
    /// Form of inferences at the endpoint.
    pub dialect: InferDialect,
    /// Arrival of the request, if any request may be traced.
    pub arrival: Option<RequestArrival>,
    /// Client that sent the request.
    pub client: RequestClient<'a>,
}

/// Client of a request, as far as it is known.
#[derive(Debug, Clone, Copy)]
pub struct RequestClient<'a> {
    /// Request of a key's owner; none where keys are not asked for.
    pub pass: Option<&'a ClientPass>,
    /// Address; none over a socket in the file system.
    pub address: Option<IpAddr>,
}

impl RequestClient<'_> {
    /// Counter of the tokens of the client's requests, if they are limited.
    #[must_use]
    pub fn token_meter(&self) -> Option<Arc<dyn TokenMeter>> {
        let key = self.pass?.key();
        key.limits_tokens().then(|| Arc::clone(key) as Arc<dyn TokenMeter>)
    }

    /// Name by which clients are told apart where they share what a model computes. Without keys that is what they say
    /// themselves, or their address.
    pub(super) fn share_name(&self, head: &HttpHead) -> String {
        if let Some(pass) = self.pass {
            return pass.key().name().to_owned();
        }
        let claimed = head.header("authorization").or_else(|| head.header("x-api-key"));
        match (claimed, self.address) {
            (Some(claimed), _) => claimed.to_owned(),
            (None, Some(address)) => address.to_string(),
            (None, None) => String::new(),
        }
    }
}

/// Times at which a request arrived.
#[derive(Debug, Clone, Copy)]
pub struct RequestArrival {
    /// Time at which its head was complete.
    pub start: Instant,
    /// Time at which its body was complete.
    pub end: Instant,
}

impl<'a> CallContext<'a> {
    /// The same request for a model that does not stand in the path.
    #[must_use]
    pub fn of_model(&self, model: &'a str) -> Self {
        Self { model, body: self.body.clone(), ..*self }
    }
}

impl CallContext<'_> {
    /// The trace of an inference, where it is one to trace.
    #[must_use]
    pub fn trace(&self) -> Option<Arc<RequestTrace>> {
        let RequestArrival { start, end } = self.arrival?;
        let parent = self.head.header("traceparent");
        let trace = self.app.tracer().sample(self.model, parent)?;
        trace::note_arrival(&trace, start..end);
        Some(trace)
    }

    /// Adds the headers that the flags forward to the parameters of an inference.
    ///
    /// # Errors
    /// Fails when a header has the name of a reserved parameter.
    pub fn forward_headers(
        &self,
        parameters: &mut Vec<(String, ParameterValue)>,
    ) -> Result<(), ServingError> {
        // The flag is that of the HTTP front end alone.
        if self.dialect != InferDialect::Kserve {
            return Ok(());
        }
        self.app.http_rules().forward.add(self.head.headers(), parameters)
    }
}

/// An answer that comes later, and dropping it cancels what it waits for.
pub type PendingReply = Pin<Box<dyn Future<Output = HttpResponse> + Send>>;

/// Result of a handler.
pub enum EndpointReply {
    /// The answer.
    Ready(HttpResponse),
    /// The answer needs an inference or other work elsewhere.
    Pending(PendingReply),
}

impl std::fmt::Debug for EndpointReply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ready(response) => f.debug_tuple("Ready").field(response).finish(),
            Self::Pending(_) => f.debug_tuple("Pending").finish_non_exhaustive(),
        }
    }
}

/// An endpoint.
#[derive(Debug)]
pub struct Endpoint {
    /// Path; `{model}` is a segment, `{version}` a segment of digits, `{repository}` a segment.
    pub pattern: &'static str,
    /// Group.
    pub category: EndpointCategory,
    /// Methods that it answers.
    pub methods: &'static [HttpMethod],
    /// Content type of answers that come before the handler: wrong method.
    pub early: ContentType,
    /// Decode, one call on the core, encode.
    pub handler: fn(&CallContext<'_>) -> EndpointReply,
}

macro_rules! rows {
    ($($pattern:literal $category:ident $($method:ident)|+ $early:ident $handler:path;)*) => {
        &[$(Endpoint {
            pattern: $pattern,
            category: EndpointCategory::$category,
            methods: &[$(HttpMethod::$method),+],
            early: ContentType::$early,
            handler: $handler,
        }),*]
    };
}

/// Triton's endpoints, and those of profiles. The first row whose pattern fits the path has the request.
pub const ROWS: &[Endpoint] = rows![
    "/v2/health/live" Health Get Text handlers::live;
    "/v2/health/ready" Health Get Text handlers::ready;
    "/v2/models/{model}/infer" Inference Post Text infer::infer;
    "/v2/models/{model}/versions/{version}/infer" Inference Post Text infer::infer;
    "/v2/models/{model}/generate" Inference Post Json generate::generate;
    "/v2/models/{model}/versions/{version}/generate" Inference Post Json generate::generate;
    "/v2/models/{model}/generate_stream" Inference Post Json generate::generate_stream;
    "/v2/models/{model}/versions/{version}/generate_stream" Inference Post Json generate::generate_stream;
    "/v2/models/{model}/ready" Health Get Text handlers::model_ready;
    "/v2/models/{model}/versions/{version}/ready" Health Get Text handlers::model_ready;
    "/v2" Metadata Get Json handlers::server_metadata;
    "/v2/models/stats" Statistics Get Json handlers::all_statistics;
    "/v2/models/{model}" Metadata Get Json handlers::model_metadata;
    "/v2/models/{model}/versions/{version}" Metadata Get Json handlers::model_metadata;
    "/v2/models/{model}/config" ModelConfig Get Json handlers::model_config;
    "/v2/models/{model}/versions/{version}/config" ModelConfig Get Json handlers::model_config;
    "/v2/models/{model}/stats" Statistics Get Json handlers::model_statistics;
    "/v2/models/{model}/versions/{version}/stats" Statistics Get Json handlers::model_statistics;
    "/v2/models/{model}/trace/setting" Trace Get|Post Json settings::trace;
    "/v2/trace/setting" Trace Get|Post Json settings::trace;
    "/v2/logging" Logging Get|Post Json settings::log;
    "/v2/profile" Profile Get Json profile::show;
    "/v2/profile/start" Profile Post Json profile::start;
    "/v2/profile/stop" Profile Post Json profile::stop;
    "/v2/profile/trace" Profile Get Json profile::trace;
    "/v2/repository/index" ModelRepository Post Json repository::index;
    "/v2/repository/{repository}/index" ModelRepository Post Json repository::index;
    "/v2/repository/models/{model}/load" ModelRepository Post Json repository::load;
    "/v2/repository/{repository}/models/{model}/load" ModelRepository Post Json repository::load;
    "/v2/repository/models/{model}/unload" ModelRepository Post Json repository::unload;
    "/v2/repository/{repository}/models/{model}/unload" ModelRepository Post Json repository::unload;
    "/v2/systemsharedmemory/status" SharedMemory Get Json shm::status;
    "/v2/systemsharedmemory/region/{model}/status" SharedMemory Get Json shm::status;
    "/v2/systemsharedmemory/register" SharedMemory Post Json shm::register;
    "/v2/systemsharedmemory/region/{model}/register" SharedMemory Post Json shm::register;
    "/v2/systemsharedmemory/unregister" SharedMemory Post Json shm::unregister;
    "/v2/systemsharedmemory/region/{model}/unregister" SharedMemory Post Json shm::unregister;
    "/v2/cudasharedmemory/status" SharedMemory Get Json shm::cuda_status;
    "/v2/cudasharedmemory/region/{model}/status" SharedMemory Get Json shm::cuda_status;
    "/v2/cudasharedmemory/register" SharedMemory Post Json shm::cuda_register;
    "/v2/cudasharedmemory/region/{model}/register" SharedMemory Post Json shm::cuda_register;
    "/v2/cudasharedmemory/unregister" SharedMemory Post Json shm::cuda_unregister;
    "/v2/cudasharedmemory/region/{model}/unregister" SharedMemory Post Json shm::cuda_unregister;
];

/// OpenAI's endpoints, and vLLM's beside them. The HTTP front end has them behind its own; they may have a front end alone.
pub const OPENAI: &[Endpoint] = rows![
    "/v1/chat/completions" Inference Post Json openai::chat;
    "/v1/completions" Inference Post Json openai::completions;
    "/v1/embeddings" Inference Post Json encoders::embeddings;
    "/v1/rerank" Inference Post Json encoders::rerank;
    "/v2/rerank" Inference Post Json encoders::rerank;
    "/rerank" Inference Post Json encoders::rerank;
    "/v1/score" Inference Post Json encoders::score;
    "/score" Inference Post Json encoders::score;
    "/v1/models" Metadata Get Json openai::models;
    "/v1/models/{model}" Metadata Get Json openai::model;
    "/tokenize" Inference Post Json openai::tokenize;
    "/detokenize" Inference Post Json openai::detokenize;
    "/v1/tokenize" Inference Post Json openai::tokenize;
    "/v1/detokenize" Inference Post Json openai::detokenize;
    "/health" Health Get Text handlers::ready;
    "/health/ready" Health Get Text handlers::ready;
];

/// Every endpoint of the front end for SageMaker.
pub const SAGEMAKER: &[Endpoint] = rows![
    "/ping" Health Get Text sagemaker::ping;
    "/invocations" Inference Post Text sagemaker::invocations;
    "/models" ModelRepository Get|Post|Delete|Other Text sagemaker::models;
    "/models/" ModelRepository Get|Post|Delete|Other Text sagemaker::models;
    "/models/{model}" ModelRepository Get|Post|Delete|Other Text sagemaker::model;
    "/models/{model}/invoke" Inference Post Text sagemaker::invoke;
];

/// A row with what its pattern took from the path.
#[derive(Debug, Clone, Copy)]
pub struct FoundEndpoint<'a> {
    /// The row.
    pub row: &'static Endpoint,
    /// Segment for `{model}`.
    pub model: &'a str,
    /// Segment for `{version}`.
    pub version: &'a str,
    /// The pattern has a `{repository}`.
    pub in_repository: bool,
}

/// Finds the row of a path. Paths are compared as received: a trailing slash or an encoded letter is another path.
#[must_use]
pub fn find(path: &str) -> Option<FoundEndpoint<'_>> {
    find_in(ROWS, path).or_else(|| find_in(OPENAI, path))
}

/// Finds the row of a path that lacks the slash at its beginning.
#[must_use]
pub fn find_without_slash(path: &str) -> Option<FoundEndpoint<'_>> {
    let found = |row: &'static Endpoint| match_pattern(row, row.pattern.strip_prefix('/')?, path);
    ROWS.iter().chain(OPENAI).find_map(found)
}

/// Finds the row of a path in the table of a front end.
#[must_use]
pub fn find_in<'a>(rows: &'static [Endpoint], path: &'a str) -> Option<FoundEndpoint<'a>> {
    rows.iter().find_map(|row| match_pattern(row, row.pattern, path))
}

fn match_pattern<'a>(
    row: &'static Endpoint,
    pattern: &str,
    path: &'a str,
) -> Option<FoundEndpoint<'a>> {
    let mut found = FoundEndpoint { row, model: "", version: "", in_repository: false };
    if !pattern.contains('{') {
        return (pattern == path).then_some(found);
    }
    let mut segments = path.split('/');
    for want in pattern.split('/') {
        let have = segments.next()?;
        match want {
            "{model}" if !have.is_empty() => found.model = have,
            "{version}" if !have.is_empty() && have.bytes().all(|byte| byte.is_ascii_digit()) => {
                found.version = have;
            }
            "{repository}" if !have.is_empty() => found.in_repository = true,
            _ if want == have && !want.starts_with('{') => {}
            _ => return None,
        }
    }
    segments.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_match_whole_and_as_received() {
        let found = find("/v2/models/add_sub/versions/01/infer").unwrap();
        assert_eq!(
            (found.row.category, found.model, found.version),
            (EndpointCategory::Inference, "add_sub", "01")
        );
        assert_eq!(find("/v2/models/stats").unwrap().row.category, EndpointCategory::Statistics);
        assert_eq!(find("/v2/models/a%5Fb").unwrap().model, "a%5Fb");
        assert!(find("/v2/repository/r/models/m/load").unwrap().in_repository);
        let found = find_without_slash("v2/models/add_sub/infer").unwrap();
        assert_eq!((found.row.pattern, found.model), ("/v2/models/{model}/infer", "add_sub"));
        assert_eq!(find_without_slash("v2").unwrap().row.pattern, "/v2");
        assert!(find_without_slash("/v2").is_none() && find_without_slash("").is_none());
        for path in [
            "/",
            "/v2/",
            "/V2",
            "//v2",
            "/v2/health",
            "/v2/health/live/",
            "/v2/models/",
            "/v2/models//ready",
            "/v2/models/m/versions/x/ready",
            "/v2/models/m/versions/",
            "/v2/models/m/versions",
            "/v2/models/m/nope",
        ] {
            assert!(find(path).is_none(), "{path}");
        }
    }
}
