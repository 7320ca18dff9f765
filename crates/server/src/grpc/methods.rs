//! Methods of the gRPC services by their paths.
//!
//! Tonic's framing is compiled once, for bytes, in place of once for each pair of messages.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use prost::Message;
use tonic::body::Body;
use tonic::codec::CompressionEncoding;
use tonic::server::{Grpc, StreamingService, UnaryService};
use tonic::{Request, Response, Status, Streaming};

use super::codec::{BytesCodec, ProstCodec};
use super::compression::is_compressed;
use super::counted_body::{CountedBody, no_memory, unread_answers};
use super::grpc_services::GrpcServices;
use super::http2::InboundBody;
use super::proto::inference::{ModelInferRequest, ModelStreamInferResponse};
use super::stream::CallResponses;
use super::unary::MAX_MESSAGE_BYTES;
use crate::body_budget::BudgetExhausted;

/// Path of the call that streams in both directions.
const STREAM_INFER: &str = "/inference.GRPCInferenceService/ModelStreamInfer";

/// Largest message of calls that carry no tensors and no files.
const MAX_CONTROL_BYTES: usize = 4 << 20;

type BytesFuture = Pin<Box<dyn Future<Output = Result<Response<Bytes>, Status>> + Send>>;

/// Rules of a service's messages.
#[derive(Clone, Copy)]
enum MessageRules {
    /// Messages as large as Triton's, which may be compressed.
    Inference,
    /// Messages that carry no tensors and no files, which are short, also once they are decompressed.
    Control,
    /// Rules of gRPC where nobody says otherwise.
    Standard,
}

/// One method that takes a message and gives a message.
struct UnaryMethod {
    path: &'static str,
    rules: MessageRules,
    answer: fn(GrpcServices, Request<Bytes>) -> BytesFuture,
}

macro_rules! unary {
    ($rules:ident, $service:literal, $name:literal, $call:ident) => {
        UnaryMethod {
            path: concat!("/", $service, "/", $name),
            rules: MessageRules::$rules,
            answer: |services, request| {
                Box::pin(async move { encoded(services.$call(decoded(request)?).await?) })
            },
        }
    };
}

macro_rules! inference {
    ($name:literal, $call:ident) => {
        unary!(Inference, "inference.GRPCInferenceService", $name, $call)
    };
}

macro_rules! control {
    ($name:literal, $call:ident) => {
        unary!(Control, "inference.GRPCInferenceService", $name, $call)
    };
}

const UNARY_METHODS: &[UnaryMethod] = &[
    control!("ServerLive", server_live),
    control!("ServerReady", server_ready),
    control!("ModelReady", model_ready),
    control!("ServerMetadata", server_metadata),
    control!("ModelMetadata", model_metadata),
    inference!("ModelInfer", model_infer),
    control!("ModelConfig", model_config),
    control!("ModelStatistics", model_statistics),
    control!("RepositoryIndex", repository_index),
    inference!("RepositoryModelLoad", repository_model_load),
    control!("RepositoryModelUnload", repository_model_unload),
    control!("SystemSharedMemoryStatus", system_shared_memory_status),
    control!("SystemSharedMemoryRegister", system_shared_memory_register),
    control!("SystemSharedMemoryUnregister", system_shared_memory_unregister),
    control!("CudaSharedMemoryStatus", cuda_shared_memory_status),
    control!("CudaSharedMemoryRegister", cuda_shared_memory_register),
    control!("CudaSharedMemoryUnregister", cuda_shared_memory_unregister),
    control!("TraceSetting", trace_setting),
    control!("LogSettings", log_settings),
    unary!(Standard, "grpc.health.v1.Health", "Check", check),
];

/// Answers a call of a method that the services have; none for other paths.
pub(super) async fn call(
    services: &GrpcServices,
    request: http::Request<InboundBody>,
) -> Option<http::Response<Body>> {
    let request = request.map(|body| {
        CountedBody::new(body, services.app.body_budget(), services.app.limits().stall)
    });
    let path = request.uri().path();
    if path == STREAM_INFER {
        let grpc = Grpc::new(ProstCodec::default());
        let mut grpc = MessageRules::Inference.applied(grpc);
        return Some(grpc.streaming(StreamInfer { services: services.clone() }, request).await);
    }
    let method = UNARY_METHODS.iter().find(|method| method.path == path)?;
    let mut grpc = method.rules.applied(Grpc::new(BytesCodec));
    Some(grpc.unary(UnaryCall { services: services.clone(), method }, request).await)
}

impl MessageRules {
    fn applied<C: tonic::codec::Codec>(self, grpc: Grpc<C>) -> Grpc<C> {
        match self {
            Self::Inference => Self::compressible(grpc, MAX_MESSAGE_BYTES),
            Self::Control => Self::compressible(grpc, MAX_CONTROL_BYTES),
            Self::Standard => grpc,
        }
    }
}

impl MessageRules {
    /// Takes messages of at most so many bytes, compressed or not, and gives any.
    fn compressible<C: tonic::codec::Codec>(grpc: Grpc<C>, most_bytes: usize) -> Grpc<C> {
        grpc.accept_compressed(CompressionEncoding::Gzip)
            .accept_compressed(CompressionEncoding::Deflate)
            .max_decoding_message_size(most_bytes)
            .max_encoding_message_size(MAX_MESSAGE_BYTES)
    }
}

struct UnaryCall {
    services: GrpcServices,
    method: &'static UnaryMethod,
}

impl UnaryService<Bytes> for UnaryCall {
    type Response = Bytes;
    type Future = BytesFuture;

    fn call(&mut self, request: Request<Bytes>) -> BytesFuture {
        let services = self.services.clone();
        let mut memory = services.app.body_budget().begin();
        // A few bytes may stand for many, which stay until the request is answered.
        if is_compressed(request.metadata()) && memory.cover(request.get_ref().len()).is_err() {
            return Box::pin(std::future::ready(Err(no_memory())));
        }
        let budget = services.app.clone();
        let answer = (self.method.answer)(services, request);
        Box::pin(async move {
            let answer = answer.await?;
            drop(memory);
            let held = budget.answer_budget().take(answer.get_ref().len()).await;
            let held = held.map_err(|BudgetExhausted| unread_answers())?;
            Ok(answer.map(|bytes| held.hold(bytes)))
        })
    }
}

struct StreamInfer {
    services: GrpcServices,
}

impl StreamingService<ModelInferRequest> for StreamInfer {
    type Response = ModelStreamInferResponse;
    type ResponseStream = CallResponses;
    type Future = std::future::Ready<Result<Response<CallResponses>, Status>>;

    fn call(&mut self, request: Request<Streaming<ModelInferRequest>>) -> Self::Future {
        std::future::ready(Ok(self.services.model_stream_infer(request)))
    }
}

/// The call with its message read; byte fields share the received buffer.
fn decoded<M: Message + Default>(request: Request<Bytes>) -> Result<Request<M>, Status> {
    let (metadata, extensions, bytes) = request.into_parts();
    let message = M::decode(bytes).map_err(|_| Status::internal("Unable to parse request"))?;
    Ok(Request::from_parts(metadata, extensions, message))
}

fn encoded<M: Message>(response: Response<M>) -> Result<Response<Bytes>, Status> {
    Ok(response.map(|message| message.encode_to_vec().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Paths of the methods of a file that describes services.
    fn described<'a>(text: &'a str, service: &'a str) -> impl Iterator<Item = String> + 'a {
        let names = text.split("rpc ").skip(1).filter_map(|rest| rest.split('(').next());
        names.map(move |name| format!("/{service}/{}", name.trim()))
    }

    #[test]
    fn every_method_that_the_services_describe_is_answered() {
        let inference = include_str!("../../proto/grpc_service.proto");
        let health = include_str!("../../proto/health.proto");
        let mut described: Vec<String> = described(inference, "inference.GRPCInferenceService")
            .chain(described(health, "grpc.health.v1.Health"))
            .collect();
        described.sort();
        let mut answered: Vec<&str> = UNARY_METHODS.iter().map(|method| method.path).collect();
        answered.push(STREAM_INFER);
        answered.sort_unstable();
        assert_eq!(described, answered);
    }
}
