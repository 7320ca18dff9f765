//! Every flag of Triton's server, with what it does here.

use std::fmt;

/// Kind of value that a flag takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlagKind {
    /// Nothing, or true or false.
    Switch,
    /// true or false.
    Bool,
    /// A whole number.
    Number,
    /// A whole number above 0.
    Positive,
    /// A whole number from one to another.
    Range(u64, u64),
    /// A whole number, or -1 for no bound.
    Count,
    /// A port.
    Port,
    /// The first and the last of some ports.
    Ports,
    /// A whole number, or true for 1 and false for 0.
    Level,
    /// Any text.
    Text,
    /// Any text; the flag may be repeated.
    Texts,
    /// A text of the form, with these marks in their order; the flag may be repeated.
    Form(&'static str, &'static str),
    /// The number of a device and a share of its memory; the flag may be repeated.
    DeviceShare,
    /// One of some words.
    Choice(&'static [&'static str]),
}

impl fmt::Display for FlagKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch => f.write_str("nothing"),
            Self::Bool => f.write_str("true or false"),
            Self::Number => f.write_str("a whole number"),
            Self::Positive => f.write_str("a whole number above 0"),
            Self::Range(least, most) => write!(f, "a number from {least} to {most}"),
            Self::Count => f.write_str("a whole number, or -1 for no bound"),
            Self::Port => f.write_str("a port from 0 to 65535"),
            Self::Ports => f.write_str("<first port>-<last port>"),
            Self::Level => f.write_str("a whole number, true or false"),
            Self::Text => f.write_str("text"),
            Self::Texts => f.write_str("text, repeatable"),
            Self::Form(form, _) => write!(f, "{}, repeatable", form.replace('\'', "")),
            Self::DeviceShare => f.write_str("<device>:<fraction>, repeatable"),
            Self::Choice(names) => f.write_str(&names.join("|")),
        }
    }
}

/// Support of a flag compared with Triton.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlagSupport {
    /// The flag has the effect that it has in Triton.
    Yes,
    /// The flag is accepted and changes nothing, for this reason.
    Ignored(&'static str),
}

/// A flag.
#[derive(Debug, Clone, Copy)]
pub struct ServerFlag {
    /// Heading in the help.
    pub group: &'static str,
    /// Name without the dashes.
    pub name: &'static str,
    /// Kind of value that the flag takes.
    pub kind: FlagKind,
    /// Value when it is not given; empty for none.
    pub default: &'static str,
    /// Sentence on the purpose of the flag.
    pub sentence: &'static str,
    /// Support of the flag.
    pub support: FlagSupport,
}

use FlagKind::{
    Bool, Choice, Count, DeviceShare, Form, Level, Number, Port, Ports, Positive, Range, Switch,
    Text, Texts,
};
use FlagSupport::{Ignored, Yes};

const NO_CUDA: FlagSupport = Ignored("there is no CUDA device to configure");
const NO_PLUGINS: FlagSupport = Ignored("backends are built in");
const NO_POOL: FlagSupport = Ignored("messages are not pooled");
const NO_BURST: FlagSupport = Ignored("the server sends one ping at a time");

macro_rules! flags {
    ($([$group:literal] $($name:literal $kind:expr, $default:literal, $sentence:literal, $support:expr;)*)*) => {
        &[$($(ServerFlag {
            group: $group,
            name: $name,
            kind: $kind,
            default: $default,
            sentence: $sentence,
            support: $support,
        }),*),*]
    };
}

/// The flags in the order of the help.
pub const FLAGS: &[ServerFlag] = flags![
    ["General"]
    "id" Text, "triton", "Name that the server gives itself in its metadata.", Yes;
    "exit-timeout-secs" Number, "30", "Longest wait for running inferences at shutdown.", Yes;
    "exit-on-error" Bool, "true", "End when a model fails to load at the start.", Yes;
    "strict-readiness" Bool, "true", "Be ready only when every model that should serve does.", Yes;
    ["Logging"]
    "log-verbose" Level, "0", "Level of detail; 0 for none.", Yes;
    "log-info" Bool, "true", "Write information.", Yes;
    "log-warning" Bool, "true", "Write warnings.", Yes;
    "log-error" Bool, "true", "Write errors.", Yes;
    "log-format" Choice(&["default", "ISO8601"]), "default", "Form of the time in a line.", Yes;
    "log-file" Text, "", "File for the log instead of the standard error.", Yes;
    ["Model repository"]
    "model-repository" Texts, "", "Folder of models.", Yes;
    "model-store" Texts, "", "Another name of --model-repository.", Yes;
    "model-control-mode" Choice(&["none", "poll", "explicit"]), "none",
        "Load all models at the start, follow the repository, or load on request.", Yes;
    "repository-poll-secs" Number, "15", "Seconds between two looks at the repository; 0 for none.",
        Yes;
    "load-model" Texts, "", "Model to load at the start in explicit mode; * for all.", Yes;
    "disable-auto-complete-config" Switch, "", "Take configurations as they are written.", Yes;
    "strict-model-config" Bool, "false", "Old form of --disable-auto-complete-config.", Yes;
    "model-config-name" Text, "", "Prefer configs/NAME.pbtxt of a model to its config.pbtxt.", Yes;
    "model-load-thread-count" Number, "4", "Models loaded at the same time.", Yes;
    "model-load-retry-count" Number, "0", "Further attempts after a failed load.", Yes;
    "model-memory-limit" Text, "",
        "Memory of all language models together: BYTES, NGiB or N% of the machine's; idle ones make room.", Yes;
    "gpu-memory-limit" Text, "",
        "Memory of each GPU that models may take: BYTES, NGiB or N% of what it recommends.", Yes;
    "gpu-submission-ms" Range(1, 600_000), "",
        "Predicted milliseconds of GPU work that is submitted at once at most, where no model's metal_config says so; 150 by itself where the GPU shares the host's memory.", Yes;
    "provider" Text, "auto",
        "Units among which runs of models are divided that ask for none: auto, or some of coreml, gpu, gpu:N and cpu with commas between.", Yes;
    "power-target-watts" Text, "",
        "Watts that the chip is to draw at most, where the machine says what it draws.", Yes;
    "enable-thermal-protection" Bool, "true",
        "Slow down before the machine throttles, and take nothing new while it is critically hot.", Yes;
    "allow-software-gpu" Bool, "false",
        "Count a processor that plays a GPU, such as Mesa's lavapipe, as one.", Yes;
    "model-namespacing" Bool, "false", "Let repositories have models of the same name.", Yes;
    ["HTTP"]
    "allow-http" Bool, "true", "Serve HTTP.", Yes;
    "http-address" Text, "127.0.0.1",
        "Address of the HTTP front end, or unix:PATH; tritonserver binds 0.0.0.0.", Yes;
    "http-port" Port, "8000", "Port of the HTTP front end; 0 for any free one.", Yes;
    "openai-port" Port, "", "Port of a front end for OpenAI's endpoints alone; 0 for any free one.", Yes;
    "reuse-http-port" Bool, "false", "Let several processes serve the port.", Yes;
    "http-thread-count" Range(1, 1024), "8",
        "Threads that serve connections of all front ends, at most one for each processor.", Yes;
    "openai-restricted-api" Texts, "",
        "GROUP,GROUP:HEADER=VALUE, or GROUP,GROUP HEADER VALUE: OpenAI's endpoints that need a header, of the groups inference, model-repository, metrics and health; @FILE for a file of such lines.", Yes;
    "http-max-input-size" Positive, "67108864", "Longest JSON of a request in bytes.", Yes;
    "http-header-forward-pattern" Text, "", "Headers that become request parameters.", Yes;
    "http-restricted-api" Texts, "", "GROUP,GROUP:HEADER=VALUE: endpoints that need a header; @FILE for a file of such lines.", Yes;
    "http-use-ssl" Bool, "false", "Serve HTTP over TLS.", Yes;
    "http-use-ssl-mutual" Bool, "false", "The same, for clients with a certificate only.", Yes;
    "http-server-cert" Text, "", "File of the server's certificate chain in PEM form.", Yes;
    "http-server-key" Text, "", "File of the server's private key in PEM form.", Yes;
    "http-root-cert" Text, "", "File of the certificates that clients' must be signed with.", Yes;
    ["Access"]
    "api-key-file" Text, "",
        "File of clients' keys, NAME:KEY or NAME:sha256:HEX and options on each line, mode 0600; read again on SIGHUP. Every request but health needs one of them.", Yes;
    "allowed-hosts" Texts, "",
        "NAME, NAME:PORT, *.NAME or .NAME, with commas between: host names of requests that are taken besides the machine's own; * for all.", Yes;
    "allowed-origins" Texts, "",
        "SCHEME://HOST[:PORT], with commas between: pages that may use the server besides those of this machine; * for all, which may change nothing.", Yes;
    "client-stall-secs" Range(1, 86_400), "60",
        "Seconds in which a client must send 16 KiB of a request, or take 16 KiB of an answer, or all that is left; its request ends otherwise.", Yes;
    "allow-model-overrides" Bool, "",
        "Load models with a configuration and files that the client sends; true where only this machine reaches the server.", Yes;
    "disable-backends" Texts, "",
        "Backends that load nothing, with commas between, such as python,pytorch,tensorflow: those that run code of a model.", Yes;
    ["gRPC"]
    "allow-grpc" Bool, "true", "Serve gRPC.", Yes;
    "grpc-address" Text, "127.0.0.1",
        "Address of the gRPC front end, or unix:PATH; tritonserver binds 0.0.0.0.", Yes;
    "grpc-port" Port, "8001", "Port of the gRPC front end; 0 for any free one.", Yes;
    "reuse-grpc-port" Bool, "false", "Let several processes serve the port.", Yes;
    "grpc-infer-thread-count" Range(2, 128), "2",
        "Threads that serve connections, where this is more than --http-thread-count.", Yes;
    "grpc-infer-allocation-pool-size" Number, "8", "Messages kept for reuse.", NO_POOL;
    "grpc-max-response-pool-size" Number, "2147483647", "Responses kept for reuse.", NO_POOL;
    "grpc-use-ssl" Bool, "false", "Serve gRPC over TLS.", Yes;
    "grpc-use-ssl-mutual" Bool, "false", "The same, for clients with a certificate only.", Yes;
    "grpc-server-cert" Text, "", "File of the server's certificate chain in PEM form.", Yes;
    "grpc-server-key" Text, "", "File of the server's private key in PEM form.", Yes;
    "grpc-root-cert" Text, "", "File of the certificates that clients' must be signed with.", Yes;
    "grpc-infer-response-compression-level" Choice(&["none", "low", "medium", "high"]), "none",
        "Compress answers to inference for clients that accept it.", Yes;
    "grpc-keepalive-time" Number, "7200000", "Milliseconds of silence before a ping.", Yes;
    "grpc-keepalive-timeout" Number, "20000", "Milliseconds to wait for the ping's answer.", Yes;
    "grpc-keepalive-permit-without-calls" Bool, "false", "Ping connections without calls.", Yes;
    "grpc-http2-max-pings-without-data" Number, "2", "Pings without data between them.", NO_BURST;
    "grpc-http2-min-recv-ping-interval-without-data" Number, "300000",
        "Least milliseconds between pings of a client.", Yes;
    "grpc-http2-max-ping-strikes" Number, "2", "Bad pings before a connection is closed.", Yes;
    "grpc-max-connection-age" Number, "", "Milliseconds after which a connection is closed.",
        Yes;
    "grpc-max-connection-age-grace" Number, "", "Milliseconds that calls then still have.", Yes;
    "grpc-header-forward-pattern" Text, "", "Metadata that become request parameters.", Yes;
    "grpc-restricted-protocol" Texts, "", "GROUP,GROUP:KEY=VALUE: RPCs that need metadata; @FILE for a file of such lines.", Yes;
    ["Metrics"]
    "allow-metrics" Bool, "true", "Serve metrics.", Yes;
    "allow-gpu-metrics" Bool, "true", "Metrics of GPUs: how busy they are and what kernels move.", Yes;
    "allow-cpu-metrics" Bool, "true", "Metrics of the processors and memory.", Yes;
    "metrics-address" Text, "", "Address of the metrics front end; that of HTTP when not given.", Yes;
    "metrics-port" Port, "8002", "Port of the metrics front end; 0 for any free one.", Yes;
    "metrics-use-ssl" Bool, "false", "Serve metrics over TLS with the certificates of HTTP.", Yes;
    "metrics-interval-ms" Number, "2000", "Least milliseconds between two readings of the machine.", Yes;
    "metrics-config" Form("<setting>=<value>", "="), "", "Families to add or to leave out.", Yes;
    ["Tracing"]
    "trace-config" Form("'<trace mode>,<setting>=<value>'", "="), "", "Which requests are traced, and where to.", Yes;
    "trace-file" Text, "", "Old form of --trace-config.", Yes;
    "trace-level" Texts, "", "Old form of --trace-config.", Yes;
    "trace-rate" Number, "1000", "Old form of --trace-config.", Yes;
    "trace-count" Count, "-1", "Old form of --trace-config.", Yes;
    "trace-log-frequency" Number, "0", "Old form of --trace-config.", Yes;
    "metal-profile" Switch, "", "Write what GPUs, the host and requests do when, for chrome://tracing and Perfetto.", Yes;
    "metal-profile-output" Text, "profile.json", "File of --metal-profile.", Yes;
    "metal-capture-folder" Text, "",
        "Folder for captures of the GPU for Xcode, which a profile asks for with capture_runs; none are made without it.", Yes;
    ["Backends, cache and rate limiter"]
    "backend-directory" Text, "", "Folder of backends.", NO_PLUGINS;
    "backend-config" Form("'<backend name>,<setting>=<value>'", "="), "", "BACKEND,KEY=VALUE, or KEY=VALUE for all backends.", Yes;
    "repoagent-directory" Text, "", "Folder of repository agents.", NO_PLUGINS;
    "metal-config" Text, "",
        "What is asked of the units of the machine for all models: an object of JSON, or a file that holds one.", Yes;
    "cache-config" Form("<cache name>,<setting>=<value>", ",="), "", "Kind and size of the response cache: local,size=<bytes>.", Yes;
    "cache-directory" Text, "", "Folder of caches.", NO_PLUGINS;
    "response-cache-byte-size" Number, "0", "Old form of --cache-config.", Yes;
    "rate-limit" Choice(&["off", "execution_count"]), "off", "Bounds executions by resources.", Yes;
    "rate-limit-resource" Form("'<resource_name>:<count>:<device>' or '<resource_name>:<count>'", ":"), "", "A resource and its count.", Yes;
    ["Prepared models"]
    "cache-dir" Text, "",
        "Folder of everything that is kept from one start to the next: prepared models, compiled packages, tuning records and placements; the system's own without it.", Yes;
    "model-cache-dir" Text, "",
        "Folder that keeps models rewritten and packed, so that the next load takes no time; empty for the system's own.", Yes;
    "model-cache-byte-size" Number, "8589934592",
        "Most bytes of that folder; what was not used for the longest time goes first. 0 turns it off.", Yes;
    ["Tuning"]
    "auto-tuning" Choice(&["never", "asked", "always"]), "asked",
        "Models whose kernels are measured while the server is idle: none, those with enable_auto_tuning true in metal_config, or all but those with false.", Yes;
    "auto-tuning-seconds" Range(1, 86_400), "60", "Most seconds that the kernels of a model are measured.", Yes;
    "auto-tuning-share" Text, "0.5", "Share of a core that these measurements keep busy at most, on average: above 0 and up to 1.", Yes;
    ["Checkpoints"]
    "quantization" Text, "",
        "Round weights when they are loaded, to q8_0, q6_k, q5_k, q5_1, q5_0, q4_k, q4_1 or q4_0, where a model's own configuration says nothing.", Yes;
    "kv-cache-dtype" Text, "",
        "What keys and values are stored as: auto, float32, float16, bfloat16 or int8, where a model's own configuration says nothing.", Yes;
    "chat-template" Text, "",
        "Chat template of language models whose own configuration names none: its file, or its text.", Yes;
    ["Memory and devices"]
    "pinned-memory-pool-byte-size" Number, "268435456", "Size of the pinned memory pool.", NO_CUDA;
    "cuda-memory-pool-byte-size" Texts, "", "Size of the CUDA memory pool.", NO_CUDA;
    "cuda-virtual-address-size" Texts, "", "Size of the CUDA address space.", NO_CUDA;
    "min-supported-compute-capability" Text, "6.0", "Least CUDA compute capability.", NO_CUDA;
    "enable-peer-access" Bool, "true", "Let CUDA devices copy to each other.", NO_CUDA;
    "model-load-gpu-limit" DeviceShare, "", "Share of a GPU's memory that models may take.", NO_CUDA;
    "buffer-manager-thread-count" Number, "0", "Threads that gather inputs.",
        Ignored("instances gather their inputs themselves");
    "host-policy" Form("'<policy name>,<setting>=<value>'", ",="), "", "Binding of instances to NUMA nodes.",
        Ignored("instances are not bound to NUMA nodes");
    "allow-client-shm" Bool, "false", "Let clients pass tensors in shared memory.", Yes;
    ["Clouds"]
    "allow-sagemaker" Bool, "false", "Serve SageMaker.", Yes;
    "sagemaker-port" Port, "8080", "Port of the front end for SageMaker; 0 for any free one.", Yes;
    "sagemaker-safe-port-range" Ports, "", "Ports that the other front ends must have.", Yes;
    "sagemaker-thread-count" Range(1, 1024), "8", "As --http-thread-count, where this is more.", Yes;
    "allow-vertex-ai" Bool, "false", "Serve Vertex AI; true if AIP_MODE is PREDICTION.", Yes;
    "vertex-ai-port" Port, "8080",
        "Port of the front end for Vertex AI, 0 for any free one; AIP_HTTP_PORT where that is set.", Yes;
    "vertex-ai-thread-count" Range(1, 1024), "8", "As --http-thread-count, where this is more.", Yes;
    "vertex-ai-default-model" Text, "", "Model of predictions.", Yes;
];
