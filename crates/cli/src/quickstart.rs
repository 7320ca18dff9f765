//! `galatea quickstart`: serves the sample models, sends their samples through the front ends and talks with the language
//! models among them.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use galatea_serving::Core;
use galatea_serving::temporary_folder::LockedFolder;
use serde_json::{Value, json};

use super::arguments::{number, path};
use super::grpc_client::{GrpcClient, connect};
use super::http_client::HttpClient;
use super::progress::ProgressLine;
use super::sample::{ModelSample, SampleTensor, answered, difference, from_wire, samples};
use super::sample_chat::{SampleChats, sample_chats};
use super::{engine, sample_models, say, serve};
use crate::flags::{ParsedCommand, ServerFlags};
use crate::served_paths::ServedPaths;
use crate::server_options::{log_settings, server_options};
use crate::signals::StopSignals;
use crate::table::table;
use galatea_server::grpc::proto::inference::ModelInferRequest;
use galatea_server::grpc::proto::inference::grpc_inference_service_client::GrpcInferenceServiceClient;
use galatea_server::grpc::proto::inference::model_infer_request::InferInputTensor;
use galatea_server::logging;
use galatea_server::server::{FrontEndAddresses, RunningServer};

/// Command line of `galatea quickstart`.
#[derive(Debug, Args)]
pub(super) struct QuickstartArguments {
    #[arg(long, help = "end after the samples")]
    once: bool,
    #[arg(
        long,
        value_name = "PATH",
        value_parser = path,
        help = "serve these models instead: a repository, a file or a checkpoint"
    )]
    model_repository: Option<PathBuf>,
    #[command(flatten)]
    ports: PortChoices,
}

/// Options for ports; 0 is any free one.
#[derive(Debug, Clone, Default, Args)]
struct PortChoices {
    #[arg(long, value_name = "PORT", value_parser = number::<u16>, help = "port of HTTP [8000, or a free one]")]
    http_port: Option<u16>,
    #[arg(long, value_name = "PORT", value_parser = number::<u16>, help = "port of gRPC [8001, or a free one]")]
    grpc_port: Option<u16>,
    #[arg(
        long,
        value_name = "PORT",
        value_parser = number::<u16>,
        help = "port of the metrics [8002, or a free one]"
    )]
    metrics_port: Option<u16>,
}

/// Requests of each sample and front end; the median time is shown.
const REPEATS: usize = 5;
/// Longest wait at the end.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs the tour.
pub(super) fn quickstart(arguments: &QuickstartArguments) -> Result<ExitCode, String> {
    let models = TourModels::find(arguments.model_repository.as_deref())?;
    let repository = models.folder.as_path();
    let samples = samples(repository)?;
    let chats = sample_chats(repository)?;
    say(&format!("Loading {} …", models.name));
    let flags = flags(repository, &arguments.ports, UnsaidPorts::Usual)?;
    logging::start(log_settings(&flags), |name| flags.environment(name))
        .map_err(|error| error.to_string())?;
    let _written = logging::FlushOnDrop;
    let line = ProgressLine::start("Loading the models");
    let loaded = serve::start_server(&flags)?;
    drop(line);
    let core = Arc::clone(loaded.core());
    serve::runtime(&flags)?.block_on(async {
        let mut interrupts = StopSignals::listen()?;
        let server = start(&core, &flags, repository, &arguments.ports)?;
        let addresses = server.addresses();
        let (Some(http), Some(grpc)) = (addresses.http, addresses.grpc) else {
            return Err("the front ends are not open".to_owned());
        };
        // The log has said why.
        let mut failures = core.load_failures().len();
        if !samples.is_empty() {
            failures += tour(&core, http, grpc, &samples).await?;
        }
        let question = chats
            .first()
            .and_then(|chats| Some((chats.model.clone(), chats.question()?.to_owned())));
        if samples.is_empty() && chats.is_empty() {
            say(NO_SAMPLES);
        }
        failures += talk(http, chats).await?;
        let model = samples.first().map(|sample| sample.model.clone());
        let shown = ShownModel { model: model.or_else(|| first_model(&core)), question };
        say(&lines(&addresses, samples.first(), shown));
        if !arguments.once {
            say("Serving until Ctrl-C.");
            interrupts.next().await;
        }
        let stopped = serve::stop(server, EXIT_TIMEOUT).await;
        Ok(if failures > 0 { ExitCode::FAILURE } else { stopped })
    })
}

/// Said where no model has anything to send.
const NO_SAMPLES: &str = "No model has a sample_input.json (the body of a request) or a sample_chat.json beside its \
                          config.pbtxt, so nothing is sent.";

/// Models of a tour.
struct TourModels {
    folder: PathBuf,
    /// How they are spoken of.
    name: String,
    /// Folders that go with the tour.
    _written: (Option<LockedFolder>, ServedPaths),
}

impl TourModels {
    /// Finds the given models, or writes the samples that are part of the program.
    ///
    /// # Errors
    /// Fails where there is nothing at the given path, and when samples or links cannot be written.
    fn find(given: Option<&Path>) -> Result<Self, String> {
        let Some(given) = given else {
            let written = sample_models::write()?;
            let folder = written.path().to_owned();
            let name = format!("the sample models, in {} until the end", folder.display());
            return Ok(Self { folder, name, _written: (Some(written), ServedPaths::default()) });
        };
        let name = format!("the models in {}", given.display());
        let served = ServedPaths::prepare(&[given.display().to_string()])?;
        let folder = served.repositories.first().map_or_else(|| given.to_owned(), PathBuf::from);
        Ok(Self { folder, name, _written: (None, served) })
    }
}

/// Ports that no option names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UnsaidPorts {
    Usual,
    Free,
}

/// Makes the flags of the server.
fn flags(
    repository: &Path,
    ports: &PortChoices,
    unsaid: UnsaidPorts,
) -> Result<ServerFlags, String> {
    let mut arguments = vec![
        format!("--model-repository={}", repository.display()),
        "--exit-on-error=false".to_owned(),
        "--log-info=false".to_owned(),
    ];
    for (flag, port) in [
        ("http-port", ports.http_port),
        ("grpc-port", ports.grpc_port),
        ("metrics-port", ports.metrics_port),
    ] {
        let port = port.or((unsaid == UnsaidPorts::Free).then_some(0));
        arguments.extend(port.map(|port| format!("--{flag}={port}")));
    }
    match ServerFlags::parse(&arguments, false)? {
        ParsedCommand::Serve(flags) => Ok(flags),
        ParsedCommand::Help => Err("no flags".to_owned()),
    }
}

/// Opens the usual ports, and any free ones where those are taken. A port that an option names is opened or an error.
fn start(
    core: &Arc<Core>,
    usual: &ServerFlags,
    repository: &Path,
    ports: &PortChoices,
) -> Result<RunningServer, String> {
    let start = |flags: &ServerFlags| {
        RunningServer::start(Arc::clone(core), engine().clone(), &server_options(flags)?)
    };
    start(usual).or_else(|error| {
        let PortChoices { http_port, grpc_port, metrics_port } = ports;
        if http_port.is_some() && grpc_port.is_some() && metrics_port.is_some() {
            return Err(error);
        }
        say(&format!("{error}; taking free ports instead"));
        start(&flags(repository, ports, UnsaidPorts::Free)?)
    })
}

/// The first model that serves.
fn first_model(core: &Core) -> Option<String> {
    core.repository_index(true).into_iter().map(|model| model.name).next()
}

/// Sends every sample through both front ends, prints the table and answers the number of failures.
async fn tour(
    core: &Arc<Core>,
    http: SocketAddr,
    grpc: SocketAddr,
    samples: &[ModelSample],
) -> Result<usize, String> {
    let mut client = connect(grpc).await.map_err(|error| format!("gRPC: {error}"))?;
    let mut rows = Vec::new();
    let mut failures = 0;
    for sample in samples {
        let labels = labelled_outputs(core, &sample.model);
        let request = http_request(sample)?;
        let sent = tokio::task::spawn_blocking(move || http_sample(http, &request, &labels));
        let over_http = sent.await.map_err(|error| error.to_string())?;
        let over_grpc = grpc_sample(&mut client, sample).await;
        let row = row(sample, over_http, over_grpc);
        failures += usize::from(row.last().is_some_and(|check| !check.starts_with("ok")));
        rows.push(row);
    }
    let count = rows.len();
    say(&table(&["Model", "Answer", "HTTP ms", "gRPC ms", "Check"], rows));
    say(&format!("{} of {count} samples answered as expected.", count - failures));
    Ok(failures)
}

/// Has the sample conversations again, prints them and answers the number of answers that are not as recorded.
async fn talk(http: SocketAddr, chats: Vec<SampleChats>) -> Result<usize, String> {
    if chats.is_empty() {
        return Ok(0);
    }
    let asked = tokio::task::spawn_blocking(move || {
        let rows: Result<Vec<_>, String> = chats.iter().map(|chats| chats.ask(http)).collect();
        rows.map(|rows| rows.concat())
    });
    let rows = asked.await.map_err(|error| error.to_string())??;
    let wrong = |row: &&Vec<String>| row.last().is_some_and(|check| check != "ok");
    let count = rows.len();
    let failures = rows.iter().filter(wrong).count();
    say(&table(&["Model", "You", "Answer", "ms", "Check"], rows));
    say(&format!("{} of {count} chats answered as expected.", count - failures));
    Ok(failures)
}

/// Outputs whose classes have names.
fn labelled_outputs(core: &Core, model: &str) -> Vec<String> {
    let Ok(model) = core.resolve(model, "") else { return Vec::new() };
    let outputs = model.metadata().outputs.into_iter().map(|output| output.name);
    outputs.filter(|output| model.labels(output).is_some()).collect()
}

/// A request over HTTP.
struct HttpRequest {
    path: String,
    json_bytes: Option<usize>,
    body: Vec<u8>,
}

/// An answer with its median time in milliseconds.
struct TimedAnswer {
    outputs: Vec<SampleTensor>,
    classes: Vec<String>,
    ms: f64,
}

/// The sample file as it is, or as a binary request where its types have no form in JSON.
fn http_request(sample: &ModelSample) -> Result<HttpRequest, String> {
    let path = format!("/v2/models/{}/infer", sample.model);
    if !sample.inputs.iter().any(SampleTensor::needs_binary) {
        return Ok(HttpRequest { path, json_bytes: None, body: sample.text.clone() });
    }
    let mut binary = Vec::new();
    let mut inputs = Vec::new();
    for input in &sample.inputs {
        let bytes = input.to_wire();
        inputs.push(json!({
            "name": input.name,
            "datatype": input.datatype.wire_name(),
            "shape": input.shape,
            "parameters": {"binary_data_size": bytes.len()},
        }));
        binary.extend_from_slice(&bytes);
    }
    let head = json!({"inputs": inputs, "parameters": {"binary_data_output": true}});
    let mut body = head.to_string().into_bytes();
    let json_bytes = Some(body.len());
    body.append(&mut binary);
    Ok(HttpRequest { path, json_bytes, body })
}

fn http_sample(
    address: SocketAddr,
    request: &HttpRequest,
    labels: &[String],
) -> Result<TimedAnswer, String> {
    let failed = |error: std::io::Error| error.to_string();
    let mut client = HttpClient::connect(address).map_err(failed)?;
    let mut times = Vec::new();
    let mut last = None;
    for _ in 0..REPEATS {
        let started = Instant::now();
        let answer =
            client.post(&request.path, request.json_bytes, &request.body).map_err(failed)?;
        times.push(started.elapsed());
        if answer.status != 200 {
            let text = String::from_utf8_lossy(&answer.body).into_owned();
            return Err(format!("{} {text}", answer.status));
        }
        last = Some(answer);
    }
    let outputs = answered(&last.ok_or("no answer")?)?;
    let classes =
        if labels.is_empty() { Vec::new() } else { best_classes(&mut client, request, labels)? };
    Ok(TimedAnswer { outputs, classes, ms: median_ms(times) })
}

/// Asks once more, for the best class of each labelled output.
fn best_classes(
    client: &mut HttpClient,
    request: &HttpRequest,
    labels: &[String],
) -> Result<Vec<String>, String> {
    let mut body: Value =
        serde_json::from_slice(&request.body).map_err(|error| error.to_string())?;
    let output = |name: &String| json!({"name": name, "parameters": {"classification": 1}});
    if let Some(object) = body.as_object_mut() {
        object.insert("outputs".to_owned(), labels.iter().map(output).collect());
    }
    let body = body.to_string();
    let answer =
        client.post(&request.path, None, body.as_bytes()).map_err(|error| error.to_string())?;
    let mut classes = Vec::new();
    for output in answered(&answer)? {
        if let super::sample::SampleValues::Strings(strings) = output.values {
            for text in strings {
                let text = String::from_utf8_lossy(&text).into_owned();
                let mut parts = text.splitn(3, ':');
                let value = parts.next();
                let index = parts.next();
                let label = parts.next().or(index).unwrap_or("?");
                let value: f64 = value.and_then(|value| value.parse().ok()).unwrap_or(f64::NAN);
                classes.push(format!("{label} ({value:.2})"));
            }
        }
    }
    Ok(classes)
}

async fn grpc_sample(
    client: &mut GrpcInferenceServiceClient<GrpcClient>,
    sample: &ModelSample,
) -> Result<TimedAnswer, String> {
    let inputs = sample.inputs.iter().map(|input| InferInputTensor {
        name: input.name.clone(),
        datatype: input.datatype.wire_name().to_owned(),
        shape: input.shape.clone(),
        parameters: HashMap::new(),
        contents: None,
    });
    let request = ModelInferRequest {
        model_name: sample.model.clone(),
        inputs: inputs.collect(),
        raw_input_contents: sample.inputs.iter().map(|input| input.to_wire().into()).collect(),
        ..ModelInferRequest::default()
    };
    let mut times = Vec::new();
    let mut outputs = Vec::new();
    for _ in 0..REPEATS {
        let started = Instant::now();
        let answer = client.model_infer(request.clone()).await;
        times.push(started.elapsed());
        let answer = answer
            .map_err(|status| format!("{:?}: {}", status.code(), status.message()))?
            .into_inner();
        outputs.clear();
        for (output, raw) in answer.outputs.into_iter().zip(answer.raw_output_contents) {
            let datatype = output.datatype.parse().map_err(|_| "an unknown data type")?;
            let values = from_wire(datatype, &raw)?;
            outputs.push(SampleTensor { name: output.name, datatype, shape: output.shape, values });
        }
    }
    Ok(TimedAnswer { outputs, classes: Vec::new(), ms: median_ms(times) })
}

fn median_ms(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times.get(times.len() / 2).map_or(0.0, Duration::as_secs_f64) * 1e3
}

fn row(
    sample: &ModelSample,
    http: Result<TimedAnswer, String>,
    grpc: Result<TimedAnswer, String>,
) -> Vec<String> {
    let ms = |timed: &Result<TimedAnswer, String>| match timed {
        Ok(timed) => format!("{:.2}", timed.ms),
        Err(_) => "-".to_owned(),
    };
    let cells = [ms(&http), ms(&grpc)];
    let (answer, check) = match (http, grpc) {
        (Ok(http), Ok(grpc)) => {
            let answer = if http.classes.is_empty() {
                http.outputs.iter().map(SampleTensor::preview).collect::<Vec<_>>().join("\n")
            } else {
                http.classes.join(", ")
            };
            let between =
                difference(&http.outputs, &grpc.outputs).map(|why| format!("HTTP and gRPC: {why}"));
            let check = match &sample.expected {
                Some(expected) => difference(expected, &http.outputs).or(between),
                None => between,
            };
            (answer, check.unwrap_or_else(|| "ok".to_owned()))
        }
        (Err(error), _) => ("-".to_owned(), format!("HTTP: {error}")),
        (_, Err(error)) => ("-".to_owned(), format!("gRPC: {error}")),
    };
    let [http_ms, grpc_ms] = cells;
    vec![sample.model.clone(), answer, http_ms, grpc_ms, check]
}

/// Model that the lines to copy speak of.
struct ShownModel {
    model: Option<String>,
    /// A language model and what to say to it.
    question: Option<(String, String)>,
}

/// Lines to copy.
fn lines(addresses: &FrontEndAddresses, sample: Option<&ModelSample>, shown: ShownModel) -> String {
    let at = |address: Option<SocketAddr>| {
        address.map_or_else(|| "-".to_owned(), |address| address.to_string())
    };
    let http = at(addresses.http);
    let mut text = format!(
        "\nHTTP {http} · gRPC {} · metrics {}\n\n  curl -s http://{http}/v2\n",
        at(addresses.grpc),
        at(addresses.metrics)
    );
    if let Some(model) = &shown.model {
        text.push_str(&format!("  curl -s http://{http}/v2/models/{model}/config\n"));
    }
    if let Some(sample) = sample {
        text.push_str(&format!(
            "  curl -s http://{http}/v2/models/{model}/infer -d @{}\n",
            sample.file.display(),
            model = sample.model
        ));
    }
    if let Some((model, question)) = shown.question {
        let body = json!({"model": model, "messages": [{"role": "user", "content": question}]});
        let body = body.to_string().replace('\'', "'\\''");
        text.push_str(&format!("  curl -s http://{http}/v1/chat/completions -d '{body}'\n"));
    }
    text.push_str(&format!("  curl -s http://{}/metrics\n", at(addresses.metrics)));
    text
}
