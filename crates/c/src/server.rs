//! Servers of model repositories in the process.

use std::ffi::c_char;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use galatea::RepositoryOptions;
use galatea::serving::{ControlMode, CoreOptions};
use galatea_server::hosted::HostedServer;
use galatea_server::options::{ListenOptions, ServerOptions};

use crate::api_status::{ApiStatus, CallFailure};
use crate::caller::{CallerPointers, SizedStruct};
use crate::engine::{ENGINES, OpaqueEngine};
use crate::handle_table::HandleTable;
use crate::model::{ApiNamedTensor, named_tensors, put_tensors};
use crate::owned_text::{OpaqueText, put_text};
use crate::tensor::OpaqueTensor;

/// A server of model repositories.
#[derive(Debug)]
pub struct OpaqueServer(());

/// A front end of a server.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrontEndKind {
    /// HTTP: the protocols of KServe, Triton and OpenAI.
    Http = 0,
    /// gRPC.
    Grpc = 1,
    /// The page of metrics.
    Metrics = 2,
}

/// Options of a server. Zeros stand for the usual values, which open no front end.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ServerStartOptions {
    /// `sizeof(galatea_server_options)`.
    pub size: usize,
    /// Device or list of devices of models that ask for none; null for all.
    pub device: *const c_char,
    /// Names of the models to load; null for all.
    pub models: *const *const c_char,
    /// Number of these names.
    pub model_count: usize,
    /// Port of the loopback for HTTP; 0 for no front end, -1 for any free port.
    pub http_port: i32,
    /// Port of the loopback for gRPC; 0 for no front end, -1 for any free port.
    pub grpc_port: i32,
    /// Port of the loopback for metrics; 0 for no front end, -1 for any free port.
    pub metrics_port: i32,
}

// SAFETY: the type is `repr(C)`, begins with its size, and zeros are valid.
unsafe impl SizedStruct for ServerStartOptions {}

static SERVERS: HandleTable<HostedServer, OpaqueServer> = HandleTable::new(8, "server");

fn listen(port: i32) -> Result<Option<ListenOptions>, CallFailure> {
    match port {
        0 => Ok(None),
        -1 => Ok(Some(ListenOptions::loopback(0))),
        _ => match u16::try_from(port) {
            Ok(port) => Ok(Some(ListenOptions::loopback(port))),
            Err(_) => Err(CallFailure::argument(format!("there is no port {port}"))),
        },
    }
}

/// Serves a model repository: loads its models and opens the front ends that are asked for, on the loopback interface.
/// `options` may be null.
///
/// Ownership: the server is the caller's, who ends it with `galatea_server_stop`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_server_start(
    engine: *const OpaqueEngine,
    repository: *const c_char,
    options: *const ServerStartOptions,
    server: *mut *mut OpaqueServer,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        caller.check(server, 1, "server")?;
        let engine = ENGINES.get(engine)?;
        let repositories = vec![caller.text(repository, "repository")?.into()];
        let options = caller.options(options, "options")?;
        let names = caller.slice(options.models, options.model_count, "models")?;
        let names = names.iter().map(|&name| caller.text(name, "models").map(str::to_owned));
        let load = names.collect::<Result<Vec<String>, CallFailure>>()?;
        let control_mode = match options.models.is_null() {
            true => ControlMode::None,
            false => ControlMode::Explicit { load },
        };
        let core = CoreOptions { repositories, control_mode, ..CoreOptions::default() };
        let mut settings = RepositoryOptions { core, ..RepositoryOptions::default() };
        if let Some(device) = caller.optional_text(options.device, "device")? {
            device.clone_into(&mut settings.device);
        }
        let front_ends = ServerOptions {
            http: listen(options.http_port)?,
            grpc: listen(options.grpc_port)?,
            metrics: listen(options.metrics_port)?,
            ..ServerOptions::default()
        };
        let started = HostedServer::start(&engine.engine, settings, &front_ends)?;
        caller.put(server, SERVERS.insert(started)?, "server")
    })
}

/// Tells the address of a front end, such as "127.0.0.1:8000". `front_end` is a `galatea_front_end`.
///
/// Ownership: the text is the caller's, who frees it with `galatea_text_free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_server_address(
    server: *const OpaqueServer,
    front_end: i32,
    address: *mut *mut OpaqueText,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        let addresses = SERVERS.get(server)?.addresses();
        let found: Option<SocketAddr> = match front_end {
            kind if kind == FrontEndKind::Http as i32 => addresses.http,
            kind if kind == FrontEndKind::Grpc as i32 => addresses.grpc,
            kind if kind == FrontEndKind::Metrics as i32 => addresses.metrics,
            _ => return Err(CallFailure::argument(format!("there is no front end {front_end}"))),
        };
        let found = found.ok_or_else(|| {
            CallFailure::new(ApiStatus::Unsupported, "the server has no such front end")
        })?;
        put_text(caller, found.to_string(), address, "address")
    })
}

/// Runs a model of a server, through its queue and its batcher. Outputs are as those of `galatea_model_run`; where
/// `capacity` is too small none is returned and `count` tells how many the model gave.
///
/// Ownership: as of `galatea_model_run`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_server_infer(
    server: *const OpaqueServer,
    model: *const c_char,
    inputs: *const ApiNamedTensor,
    input_count: usize,
    outputs: *mut *mut OpaqueTensor,
    capacity: usize,
    count: *mut usize,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        let server = SERVERS.get(server)?;
        caller.check(outputs, capacity.max(1), "outputs")?;
        caller.check(count, 1, "count")?;
        let model = caller.text(model, "model")?;
        let named = named_tensors(caller, inputs, input_count)?;
        let results = server.models().infer(model, &named)?;
        let results: Vec<_> = results.into_iter().map(|(_, tensor)| tensor).collect();
        caller.put(count, results.len(), "count")?;
        put_tensors(caller, &results, outputs, capacity)
    })
}

/// Closes the front ends, lets requests under way finish for so long, and frees the server. `unanswered` tells how many
/// requests had no answer then; it may be null. Calls of other threads with the server have that time to end, too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn galatea_server_stop(
    server: *mut OpaqueServer,
    timeout_ms: u64,
    unanswered: *mut usize,
) -> ApiStatus {
    // SAFETY: C keeps to the text above.
    let caller = unsafe { CallerPointers::promised() };
    caller.enter(|caller| {
        let timeout = Duration::from_millis(timeout_ms);
        let begin = Instant::now();
        let mut removed = SERVERS.remove(server)?;
        // No call begins any more; those under way have the time to end.
        let server = loop {
            match Arc::try_unwrap(removed) {
                Ok(server) => break server,
                Err(shared) if begin.elapsed() < timeout => removed = shared,
                Err(_) => {
                    let text = "a call of another thread still uses the server, which ends with it";
                    return Err(CallFailure::new(ApiStatus::Server, text));
                }
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        let report = server.stop(timeout.saturating_sub(begin.elapsed()));
        if !unanswered.is_null() {
            caller.put(unanswered, report.unanswered, "unanswered")?;
        }
        Ok(())
    })
}
