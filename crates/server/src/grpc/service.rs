//! The RPCs: decode, one call on the core, encode.

use std::sync::Arc;

use galatea_serving::ServingError;
use tonic::{Request, Response, Status, Streaming};

use super::grpc_services::{GrpcServices, token_meter};
use super::proto::health::health_check_response::ServingStatus;
use super::proto::health::{HealthCheckRequest, HealthCheckResponse};
use super::proto::inference::model_metadata_response::TensorMetadata;
use super::proto::inference::repository_index_response::ModelIndex;
use super::proto::inference::{
    CudaSharedMemoryRegisterRequest, CudaSharedMemoryRegisterResponse,
    CudaSharedMemoryStatusRequest, CudaSharedMemoryStatusResponse,
    CudaSharedMemoryUnregisterRequest, CudaSharedMemoryUnregisterResponse, LogSettingsRequest,
    LogSettingsResponse, ModelConfigRequest, ModelConfigResponse, ModelInferRequest,
    ModelInferResponse, ModelMetadataRequest, ModelMetadataResponse, ModelReadyRequest,
    ModelReadyResponse, ModelStatisticsRequest, ModelStatisticsResponse, RepositoryIndexRequest,
    RepositoryIndexResponse, RepositoryModelLoadRequest, RepositoryModelLoadResponse,
    RepositoryModelUnloadRequest, RepositoryModelUnloadResponse, ServerLiveRequest,
    ServerLiveResponse, ServerMetadataRequest, ServerMetadataResponse, ServerReadyRequest,
    ServerReadyResponse, SystemSharedMemoryRegisterRequest, SystemSharedMemoryRegisterResponse,
    SystemSharedMemoryStatusRequest, SystemSharedMemoryStatusResponse,
    SystemSharedMemoryUnregisterRequest, SystemSharedMemoryUnregisterResponse, TraceSettingRequest,
    TraceSettingResponse,
};
use super::repository::{dependents, no_repository, overrides};
use super::stream::{self, CallResponses};
use super::{decode, encode, settings, shm};
use crate::blocking::run_blocking;
use crate::pending::submit;
use crate::status::grpc_status;
use crate::trace;

type UnaryAnswer<T> = Result<Response<T>, Status>;

fn answer<T>(result: Result<T, ServingError>) -> UnaryAnswer<T> {
    result.map(Response::new).map_err(|error| grpc_status(&error))
}

impl GrpcServices {
    async fn infer(
        &self,
        call: Request<ModelInferRequest>,
    ) -> Result<ModelInferResponse, ServingError> {
        let (metadata, extensions, message) = call.into_parts();
        let model = self.app.core().resolve(&message.model_name, &message.model_version)?;
        if model.is_decoupled() {
            return Err(ServingError::unsupported(
                "ModelInfer RPC doesn't support models with decoupled transaction policy",
            ));
        }
        let (mut request, forms) = decode::decode(&self.app, &model, message)?;
        self.forward_metadata(&metadata, &mut request.parameters)?;
        request.trace = trace::grpc(self.app.tracer(), &request.model_name, &metadata);
        request.token_meter = token_meter(extensions.get());
        let trace = request.trace.clone();
        let response = submit(&model, request)?.await;
        let message = response.and_then(|response| encode::response(&model, response, &forms));
        if let Some(trace) = trace {
            trace.stamp(trace::GRPC_SEND_START);
            trace.stamp(trace::GRPC_SEND_END);
        }
        message
    }
}

impl GrpcServices {
    /// Whether the process answers.
    pub(super) async fn server_live(
        &self,
        _: Request<ServerLiveRequest>,
    ) -> UnaryAnswer<ServerLiveResponse> {
        answer(Ok(ServerLiveResponse { live: self.app.core().is_live() }))
    }

    /// Whether it is ready for inference.
    pub(super) async fn server_ready(
        &self,
        _: Request<ServerReadyRequest>,
    ) -> UnaryAnswer<ServerReadyResponse> {
        answer(Ok(ServerReadyResponse { ready: self.app.core().is_ready() }))
    }

    /// Whether a model is.
    pub(super) async fn model_ready(
        &self,
        request: Request<ModelReadyRequest>,
    ) -> UnaryAnswer<ModelReadyResponse> {
        let ModelReadyRequest { name, version } = request.into_inner();
        let ready = self.app.core().model_ready(&name, &version);
        answer(ready.map(|ready| ModelReadyResponse { ready }))
    }

    /// Name, version and extensions of the server.
    pub(super) async fn server_metadata(
        &self,
        _: Request<ServerMetadataRequest>,
    ) -> UnaryAnswer<ServerMetadataResponse> {
        let metadata = self.app.core().metadata();
        answer(Ok(ServerMetadataResponse {
            name: metadata.name,
            version: metadata.version,
            extensions: metadata.extensions,
        }))
    }

    /// Tensors of a model.
    pub(super) async fn model_metadata(
        &self,
        request: Request<ModelMetadataRequest>,
    ) -> UnaryAnswer<ModelMetadataResponse> {
        let ModelMetadataRequest { name, version } = request.into_inner();
        let tensors = |tensors: Vec<galatea_serving::core::TensorMetadata>| {
            let message = |tensor: galatea_serving::core::TensorMetadata| TensorMetadata {
                name: tensor.name,
                datatype: tensor.datatype.wire_name().to_owned(),
                shape: tensor.shape,
            };
            tensors.into_iter().map(message).collect()
        };
        answer(self.app.core().resolve(&name, &version).map(|model| {
            let metadata = model.metadata();
            ModelMetadataResponse {
                name: metadata.name,
                versions: metadata.versions,
                platform: metadata.platform,
                inputs: tensors(metadata.inputs),
                outputs: tensors(metadata.outputs),
            }
        }))
    }

    /// One request, one response.
    pub(super) async fn model_infer(
        &self,
        request: Request<ModelInferRequest>,
    ) -> UnaryAnswer<ModelInferResponse> {
        answer(self.infer(request).await)
    }

    /// Regions of shared memory.
    pub(super) async fn system_shared_memory_status(
        &self,
        request: Request<SystemSharedMemoryStatusRequest>,
    ) -> UnaryAnswer<SystemSharedMemoryStatusResponse> {
        answer(shm::status(self.app.shared_memory(), &request.get_ref().name))
    }

    /// Makes a region known.
    pub(super) async fn system_shared_memory_register(
        &self,
        request: Request<SystemSharedMemoryRegisterRequest>,
    ) -> UnaryAnswer<SystemSharedMemoryRegisterResponse> {
        let done = shm::register(self.app.shared_memory(), request.get_ref());
        answer(done.map(|()| SystemSharedMemoryRegisterResponse {}))
    }

    /// Forgets a region, or all of them.
    pub(super) async fn system_shared_memory_unregister(
        &self,
        request: Request<SystemSharedMemoryUnregisterRequest>,
    ) -> UnaryAnswer<SystemSharedMemoryUnregisterResponse> {
        let name = Some(request.get_ref().name.as_str()).filter(|name| !name.is_empty());
        let done = self.app.shared_memory().unregister(name);
        answer(done.map(|()| SystemSharedMemoryUnregisterResponse {}))
    }

    /// Regions of memory of CUDA devices.
    pub(super) async fn cuda_shared_memory_status(
        &self,
        request: Request<CudaSharedMemoryStatusRequest>,
    ) -> UnaryAnswer<CudaSharedMemoryStatusResponse> {
        let name = request.into_inner().name;
        answer(match name.is_empty() {
            true => Ok(CudaSharedMemoryStatusResponse::default()),
            false => Err(crate::shm::no_cuda_region(&name)),
        })
    }

    /// Makes a region known.
    pub(super) async fn cuda_shared_memory_register(
        &self,
        request: Request<CudaSharedMemoryRegisterRequest>,
    ) -> UnaryAnswer<CudaSharedMemoryRegisterResponse> {
        answer(Err(crate::shm::no_cuda(&request.get_ref().name)))
    }

    /// Forgets a region, or all of them.
    pub(super) async fn cuda_shared_memory_unregister(
        &self,
        _: Request<CudaSharedMemoryUnregisterRequest>,
    ) -> UnaryAnswer<CudaSharedMemoryUnregisterResponse> {
        answer(Ok(CudaSharedMemoryUnregisterResponse {}))
    }

    /// Runs a model for each message of the stream; models answer none, one or many times.
    pub(super) fn model_stream_infer(
        &self,
        request: Request<Streaming<ModelInferRequest>>,
    ) -> Response<CallResponses> {
        Response::new(stream::start(self, &self.app, request))
    }

    /// Configuration of a model.
    pub(super) async fn model_config(
        &self,
        request: Request<ModelConfigRequest>,
    ) -> UnaryAnswer<ModelConfigResponse> {
        let ModelConfigRequest { name, version } = request.into_inner();
        let model = self.app.core().resolve(&name, &version);
        answer(model.map(|model| ModelConfigResponse { config: Some((*model.config()).clone()) }))
    }

    /// Counters of models.
    pub(super) async fn model_statistics(
        &self,
        request: Request<ModelStatisticsRequest>,
    ) -> UnaryAnswer<ModelStatisticsResponse> {
        let ModelStatisticsRequest { name, version } = request.into_inner();
        let name = Some(name.as_str()).filter(|name| !name.is_empty());
        let models = self.app.core().model_statistics(name, &version);
        answer(models.map(|models| ModelStatisticsResponse {
            model_stats: models.into_iter().map(encode::statistics).collect(),
        }))
    }

    /// Contents of the repositories.
    pub(super) async fn repository_index(
        &self,
        request: Request<RepositoryIndexRequest>,
    ) -> UnaryAnswer<RepositoryIndexResponse> {
        let RepositoryIndexRequest { repository_name, ready } = request.into_inner();
        answer(no_repository(&repository_name).map(|()| {
            let models = self.app.core().repository_index(ready);
            let message = |model: galatea_serving::core::ModelIndexEntry| ModelIndex {
                name: model.name,
                version: model.version.unwrap_or_default(),
                state: model.state.map(|state| state.name().to_owned()).unwrap_or_default(),
                reason: model.reason.unwrap_or_default(),
            };
            RepositoryIndexResponse { models: models.into_iter().map(message).collect() }
        }))
    }

    /// Loads a model.
    pub(super) async fn repository_model_load(
        &self,
        request: Request<RepositoryModelLoadRequest>,
    ) -> UnaryAnswer<RepositoryModelLoadResponse> {
        let RepositoryModelLoadRequest { repository_name, model_name, parameters } =
            request.into_inner();
        let core = Arc::clone(self.app.core());
        let given = no_repository(&repository_name).and_then(|()| overrides(parameters));
        if let Ok(given) = &given {
            let allowed = self.app.override_rules().check(&core, &model_name, given);
            allowed.map_err(Status::permission_denied)?;
        }
        let done = run_blocking(&self.app, move || core.load_model(&model_name, given?));
        answer(done.await.map(|()| RepositoryModelLoadResponse {}))
    }

    /// Unloads a model.
    pub(super) async fn repository_model_unload(
        &self,
        request: Request<RepositoryModelUnloadRequest>,
    ) -> UnaryAnswer<RepositoryModelUnloadResponse> {
        let RepositoryModelUnloadRequest { repository_name, model_name, parameters } =
            request.into_inner();
        let core = Arc::clone(self.app.core());
        let done = run_blocking(&self.app, move || {
            no_repository(&repository_name)?;
            core.unload_model(&model_name, dependents(&parameters)?)
        });
        answer(done.await.map(|()| RepositoryModelUnloadResponse {}))
    }

    /// Reads and changes the settings of request traces.
    pub(super) async fn trace_setting(
        &self,
        request: Request<TraceSettingRequest>,
    ) -> UnaryAnswer<TraceSettingResponse> {
        answer(settings::trace(&self.app, request.into_inner()))
    }

    /// Reads and changes the settings of the log.
    pub(super) async fn log_settings(
        &self,
        request: Request<LogSettingsRequest>,
    ) -> UnaryAnswer<LogSettingsResponse> {
        answer(settings::log(request.into_inner()))
    }
}

impl GrpcServices {
    /// The state of the server, whichever service is named.
    pub(super) async fn check(
        &self,
        _: Request<HealthCheckRequest>,
    ) -> UnaryAnswer<HealthCheckResponse> {
        let ready = self.app.core().is_ready();
        let status = if ready { ServingStatus::Serving } else { ServingStatus::NotServing };
        answer(Ok(HealthCheckResponse { status: status.into() }))
    }
}
