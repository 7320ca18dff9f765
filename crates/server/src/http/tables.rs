//! Tables of the endpoints of each front end.

use super::endpoints::{Endpoint, EndpointCategory, FoundEndpoint, find_in, match_pattern};
use super::message::{ContentType, HttpMethod};
use super::{
    ab_test, encoders, front_ends, generate, handlers, infer, openai, openai_models, power,
    profile, repository, sagemaker, settings, shm,
};

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
pub(super) const ROWS: &[Endpoint] = rows![
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
    "/v2/models/{model}/ab" Statistics Get Json ab_test::show;
    "/v2/models/{model}/trace/setting" Trace Get|Post Json settings::trace;
    "/v2/trace/setting" Trace Get|Post Json settings::trace;
    "/v2/logging" Logging Get|Post Json settings::log;
    "/v2/profile" Profile Get Json profile::show;
    "/v2/profile/start" Profile Post Json profile::start;
    "/v2/profile/stop" Profile Post Json profile::stop;
    "/v2/profile/trace" Profile Get Json profile::trace;
    "/galatea/v1/front_ends" Metadata Get Json front_ends::show;
    "/galatea/v1/power" Power Get|Post Json power::settings;
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
pub(super) const OPENAI: &[Endpoint] = rows![
    "/v1/chat/completions" Inference Post Json openai::chat;
    "/v1/completions" Inference Post Json openai::completions;
    "/v1/embeddings" Inference Post Json encoders::embeddings;
    "/v1/rerank" Inference Post Json encoders::rerank;
    "/v2/rerank" Inference Post Json encoders::rerank;
    "/rerank" Inference Post Json encoders::rerank;
    "/v1/score" Inference Post Json encoders::score;
    "/score" Inference Post Json encoders::score;
    "/v1/models" Metadata Get Json openai_models::models;
    "/v1/models/{model}" Metadata Get Json openai_models::model;
    "/v1/models/{model}/load" ModelRepository Post Json openai_models::load;
    "/v1/models/{model}/unload" ModelRepository Post Json openai_models::unload;
    "/tokenize" Inference Post Json openai::tokenize;
    "/detokenize" Inference Post Json openai::detokenize;
    "/v1/tokenize" Inference Post Json openai::tokenize;
    "/v1/detokenize" Inference Post Json openai::detokenize;
    "/health" Health Get Text handlers::ready;
    "/health/ready" Health Get Text handlers::ready;
];

/// Endpoints that the front end for OpenAI's protocol alone has besides.
pub(super) const OPENAI_ALONE: &[Endpoint] = rows![
    "/metrics" Statistics Get Json handlers::metrics;
];

/// Every endpoint of the front end for SageMaker.
pub(super) const SAGEMAKER: &[Endpoint] = rows![
    "/ping" Health Get Text sagemaker::ping;
    "/invocations" Inference Post Text sagemaker::invocations;
    "/models" ModelRepository Get|Post|Delete|Other Text sagemaker::models;
    "/models/" ModelRepository Get|Post|Delete|Other Text sagemaker::models;
    "/models/{model}" ModelRepository Get|Post|Delete|Other Text sagemaker::model;
    "/models/{model}/invoke" Inference Post Text sagemaker::invoke;
];

/// Finds the row of a path at the front end for OpenAI's protocol alone.
#[must_use]
pub(super) fn find_openai(path: &str) -> Option<FoundEndpoint<'_>> {
    find_in(OPENAI, path).or_else(|| find_in(OPENAI_ALONE, path))
}

/// Returns whether a row is one of OpenAI's protocol, which has restrictions of its own.
pub(super) fn is_openai(row: &Endpoint) -> bool {
    OPENAI.iter().chain(OPENAI_ALONE).any(|other| std::ptr::eq(other, row))
}

/// Finds the row of a path. Paths are compared as received: a trailing slash or an encoded letter is another path.
#[must_use]
pub(super) fn find(path: &str) -> Option<FoundEndpoint<'_>> {
    find_in(ROWS, path).or_else(|| find_in(OPENAI, path))
}

/// Finds the row of a path that lacks the slash at its beginning.
#[must_use]
pub(super) fn find_without_slash(path: &str) -> Option<FoundEndpoint<'_>> {
    let found = |row: &'static Endpoint| match_pattern(row, row.pattern.strip_prefix('/')?, path);
    ROWS.iter().chain(OPENAI).find_map(found)
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
