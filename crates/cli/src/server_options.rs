//! Typed settings of the server from its flags.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use galatea::models::CheckpointDefaults;
use galatea_server::access::AccessControl;
use galatea_server::app::{ClientLimits, FrontEndRules};
use galatea_server::browser::BrowserRules;
use galatea_server::forward::HeaderForwarding;
use galatea_server::grpc::{CompressionLevel, ConnectionSettings, GrpcSettings};
use galatea_server::listen::{ListenPlace, PortSharing};
use galatea_server::logging::{LogSettings, TimeFormat};
use galatea_server::metrics::MetricsConfig;
use galatea_server::options::{ListenOptions, ServerOptions};
use galatea_server::overrides::OverrideRules;
use galatea_server::restricted::{self, EndpointRestrictions, FlagWording};
use galatea_server::tls::{TlsFile, TlsOptions};
use galatea_server::trace::TraceConfig;

use crate::flags::{CLOUD_ADDRESS, ENVIRONMENT, OPENAI_ADDRESS, ServerFlags};

/// Longest time that a flag can give.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// Names of the flags that describe the TLS of an endpoint.
struct TlsFlagNames {
    on: &'static [&'static str],
    mutual: &'static str,
    certificate: &'static str,
    key: &'static str,
    root: &'static str,
}

const HTTP_TLS: TlsFlagNames = TlsFlagNames {
    on: &["http-use-ssl", "http-use-ssl-mutual"],
    mutual: "http-use-ssl-mutual",
    certificate: "http-server-cert",
    key: "http-server-key",
    root: "http-root-cert",
};
const GRPC_TLS: TlsFlagNames = TlsFlagNames {
    on: &["grpc-use-ssl", "grpc-use-ssl-mutual"],
    mutual: "grpc-use-ssl-mutual",
    certificate: "grpc-server-cert",
    key: "grpc-server-key",
    root: "grpc-root-cert",
};
/// The metrics endpoint has the certificates of the HTTP endpoint.
const METRICS_TLS: TlsFlagNames = TlsFlagNames { on: &["metrics-use-ssl"], ..HTTP_TLS };

/// Names of the flags that describe a front end.
struct ListenFlagNames {
    address: &'static str,
    port: &'static str,
    reuse: Option<&'static str>,
    tls: Option<&'static TlsFlagNames>,
}

const HTTP: ListenFlagNames = ListenFlagNames {
    address: "http-address",
    port: "http-port",
    reuse: Some("reuse-http-port"),
    tls: Some(&HTTP_TLS),
};
const GRPC: ListenFlagNames = ListenFlagNames {
    address: "grpc-address",
    port: "grpc-port",
    reuse: Some("reuse-grpc-port"),
    tls: Some(&GRPC_TLS),
};
const OPENAI: ListenFlagNames = ListenFlagNames {
    address: OPENAI_ADDRESS,
    port: "openai-port",
    reuse: None,
    tls: Some(&HTTP_TLS),
};
const METRICS: ListenFlagNames = ListenFlagNames {
    address: "metrics-address",
    port: "metrics-port",
    reuse: None,
    tls: Some(&METRICS_TLS),
};
const SAGEMAKER: ListenFlagNames =
    ListenFlagNames { address: CLOUD_ADDRESS, port: "sagemaker-port", reuse: None, tls: None };
const VERTEX_AI: ListenFlagNames =
    ListenFlagNames { address: CLOUD_ADDRESS, port: "vertex-ai-port", reuse: None, tls: None };

/// Reads the settings of the server.
///
/// # Errors
/// Returns a sentence about the first flag that cannot be used.
pub fn server_options(flags: &ServerFlags) -> Result<ServerOptions, String> {
    let open = |allowed: bool, names: &ListenFlagNames| {
        allowed.then(|| listen_options(flags, names)).transpose()
    };
    let interval = Duration::from_millis(flags.number("metrics-interval-ms"));
    let gpus = flags.bool("allow-metrics") && flags.bool("allow-gpu-metrics");
    let max_input_bytes = usize::try_from(flags.number("http-max-input-size"));
    let variables = ENVIRONMENT.into_iter().filter_map(|name| {
        flags.environment(name).map(|value| (name.to_owned(), value.to_owned()))
    });
    Ok(ServerOptions {
        http_rules: FrontEndRules {
            openai: restrictions(flags, restricted::OPENAI)?,
            ..rules(flags, restricted::HTTP, "http-header-forward-pattern")?
        },
        grpc_rules: rules(flags, restricted::GRPC, "grpc-header-forward-pattern")?,
        browser_rules: browser_rules(flags)?,
        trace: TraceConfig::parse(flags.all("trace-config"))?,
        families: metrics_config(flags)?,
        grpc: open(flags.bool("allow-grpc"), &GRPC)?,
        http: open(flags.bool("allow-http"), &HTTP)?,
        openai: open(flags.is_set("openai-port"), &OPENAI)?,
        metrics: open(flags.bool("allow-metrics"), &METRICS)?,
        sagemaker: open(flags.bool("allow-sagemaker"), &SAGEMAKER)?,
        vertex_ai: open(flags.bool("allow-vertex-ai"), &VERTEX_AI)?,
        vertex_ai_model: flags.text("vertex-ai-default-model").to_owned(),
        cloud_variables: variables.collect(),
        limits: ClientLimits {
            max_input_bytes: max_input_bytes.unwrap_or(usize::MAX),
            stall: stall(flags),
        },
        grpc_settings: grpc_settings(flags),
        override_rules: override_rules(flags),
        access: access(flags)?,
        client_shared_memory: flags.bool("allow-client-shm"),
        host_metrics: flags.bool("allow-cpu-metrics").then_some(interval),
        gpu_metrics: gpus.then_some(interval),
    })
}

/// Reads the address of a front end, and its TLS.
fn listen_options(flags: &ServerFlags, names: &ListenFlagNames) -> Result<ListenOptions, String> {
    let port = u16::try_from(flags.number(names.port)).unwrap_or(0);
    Ok(ListenOptions {
        place: ListenPlace::new(flags.text(names.address), port),
        sharing: match names.reuse.is_some_and(|name| flags.bool(name)) {
            true => PortSharing::WithOthers,
            false => PortSharing::Alone,
        },
        tls: names.tls.map(|names| tls_options(flags, names)).transpose()?.flatten(),
    })
}

/// Reads the files of an endpoint's TLS; none where its flags do not ask for it.
fn tls_options(flags: &ServerFlags, names: &TlsFlagNames) -> Result<Option<TlsOptions>, String> {
    let Some(on) = names.on.iter().find(|name| flags.bool(name)) else { return Ok(None) };
    let file = |flag: &'static str| match flags.text(flag) {
        "" => Err(format!("--{flag} must be given with --{on}")),
        path => Ok(TlsFile { flag, path: path.to_owned() }),
    };
    Ok(Some(TlsOptions {
        certificate: file(names.certificate)?,
        key: file(names.key)?,
        client_roots: flags.bool(names.mutual).then(|| file(names.root)).transpose()?,
    }))
}

/// Reads restrictions and forwarded headers of a protocol.
fn rules(
    flags: &ServerFlags,
    wording: FlagWording,
    pattern: &'static str,
) -> Result<FrontEndRules, String> {
    Ok(FrontEndRules {
        restrictions: restrictions(flags, wording)?,
        openai: EndpointRestrictions::default(),
        forward: HeaderForwarding::parse(pattern, flags.text(pattern))?,
    })
}

fn restrictions(flags: &ServerFlags, wording: FlagWording) -> Result<EndpointRestrictions, String> {
    EndpointRestrictions::parse(flags.all(wording.flag), wording)
}

/// Reads which hosts and browser pages are answered.
///
/// # Errors
/// Returns a sentence about the first entry that cannot be used.
pub fn browser_rules(flags: &ServerFlags) -> Result<BrowserRules, String> {
    let places: Vec<ListenPlace> =
        flags.open_places().into_iter().map(|(_, place)| place).collect();
    BrowserRules::parse(flags.all("allowed-hosts"), flags.all("allowed-origins"), &places)
}

/// Reads `--allow-model-overrides`. Where it is not given, overrides are allowed if only this machine reaches the
/// server.
fn override_rules(flags: &ServerFlags) -> OverrideRules {
    let name = "allow-model-overrides";
    OverrideRules::new(match flags.is_set(name) {
        true => flags.bool(name),
        false => flags.open_places().iter().all(|(_, place)| place.is_loopback()),
    })
}

/// Reads the keys of clients.
fn access(flags: &ServerFlags) -> Result<Option<Arc<AccessControl>>, String> {
    let path = flags.text("api-key-file");
    let read = (!path.is_empty()).then(|| AccessControl::open(Path::new(path)).map(Arc::new));
    read.transpose()
}

/// Says that other machines reach front ends that ask for no key, where they do.
#[must_use]
pub(crate) fn exposure_warning(flags: &ServerFlags) -> Option<String> {
    let open = flags.open_places().into_iter().filter(|(_, place)| !place.is_loopback());
    let open: Vec<&str> = open.map(|(title, _)| title).collect();
    let exposed = !open.is_empty() && flags.text("api-key-file").is_empty();
    exposed.then(|| {
        format!(
            "everybody who reaches this machine can use its front ends ({}): --api-key-file asks for keys",
            open.join(", ")
        )
    })
}

/// Reads the families of metrics.
///
/// # Errors
/// Returns a sentence about the first value that cannot be used.
pub fn metrics_config(flags: &ServerFlags) -> Result<MetricsConfig, String> {
    MetricsConfig::parse(flags.all("metrics-config"))
}

/// Reads in which time clients must go on.
fn stall(flags: &ServerFlags) -> Duration {
    Duration::from_secs(flags.number("client-stall-secs"))
}

fn grpc_settings(flags: &ServerFlags) -> GrpcSettings {
    let time = |name: &str| Duration::from_millis(flags.number(name)).min(LONGEST);
    let given = |name: &str| flags.is_set(name).then(|| time(name));
    GrpcSettings {
        keeping: ConnectionSettings {
            keepalive_time: time("grpc-keepalive-time"),
            keepalive_timeout: time("grpc-keepalive-timeout"),
            without_calls: flags.bool("grpc-keepalive-permit-without-calls"),
            ping_interval: time("grpc-http2-min-recv-ping-interval-without-data"),
            ping_strikes: flags.number("grpc-http2-max-ping-strikes"),
            stall: stall(flags),
        },
        max_age: given("grpc-max-connection-age"),
        max_age_grace: given("grpc-max-connection-age-grace"),
        compression: CompressionLevel::named(flags.text("grpc-infer-response-compression-level")),
        answer_delay: Duration::from_secs(
            u64::try_from(test_setting("TRITONSERVER_SERVER_DELAY_GRPC_RESPONSE_SEC")).unwrap_or(0),
        )
        .min(LONGEST),
    }
}

/// A number that Triton's tests give in the environment; 0 where there is none.
pub(crate) fn test_setting(name: &str) -> usize {
    std::env::var(name).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// Reads the settings of the log.
#[must_use]
pub fn log_settings(flags: &ServerFlags) -> LogSettings {
    let iso = flags.text("log-format").eq_ignore_ascii_case(TimeFormat::Iso8601.name());
    LogSettings {
        file: flags.text("log-file").to_owned(),
        info: flags.bool("log-info"),
        warning: flags.bool("log-warning"),
        error: flags.bool("log-error"),
        verbose: u32::try_from(flags.number("log-verbose")).unwrap_or(u32::MAX),
        format: if iso { TimeFormat::Iso8601 } else { TimeFormat::Default },
    }
}

/// Reads what checkpoints are loaded with unless they say otherwise.
///
/// # Errors
/// Returns a sentence about an unknown name.
pub(crate) fn checkpoint_defaults(flags: &ServerFlags) -> Result<CheckpointDefaults, String> {
    let given = |name: &str| Some(flags.text(name)).filter(|text| !text.is_empty());
    let defaults = CheckpointDefaults::parse(given("quantization"), given("kv-cache-dtype"))?;
    defaults.with_chat_template(given("chat-template"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::ParsedCommand;
    use galatea_serving::trace::TraceLevel;

    fn parse(arguments: &[&str], bind_all: bool) -> Result<ServerFlags, String> {
        let arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
        match ServerFlags::parse(&arguments, bind_all)? {
            ParsedCommand::Serve(flags) => Ok(flags),
            ParsedCommand::Help => Err("help".to_owned()),
        }
    }

    fn read(arguments: &[&str]) -> Result<TraceConfig, String> {
        server_options(&parse(arguments, false)?).map(|options| options.trace)
    }

    #[test]
    fn the_default_settings_of_grpc_are_those_of_the_flags() {
        let options = server_options(&parse(&[], false).unwrap()).unwrap();
        let usual = GrpcSettings::default();
        assert_eq!(format!("{:?}", options.grpc_settings), format!("{usual:?}"));
    }

    #[test]
    fn both_generations_of_flags_are_read() {
        let new = read(&[
            "--trace-config=triton,file=t.json",
            "--trace-config=triton,log-frequency=3",
            "--trace-config=rate=1",
            "--trace-config=level=TIMESTAMPS",
            "--trace-config=level=TENSORS",
            "--trace-config=count=7",
        ]);
        let old = read(&[
            "--trace-file=t.json",
            "--trace-log-frequency=3",
            "--trace-rate=1",
            "--trace-level=TIMESTAMPS",
            "--trace-level=TENSORS",
            "--trace-count=7",
        ]);
        assert_eq!(new, old);
        let config = new.unwrap();
        assert_eq!((config.file.as_str(), config.start.log_frequency), ("t.json", 3));
        assert_eq!((config.start.rate, config.start.count), (1, 7));
        assert_eq!(config.start.level, TraceLevel { timestamps: true, tensors: true });
    }

    #[test]
    fn front_ends_that_other_machines_reach_without_a_key_are_told_in_one_line() {
        let warning =
            |arguments: &[&str], bind_all| exposure_warning(&parse(arguments, bind_all).unwrap());
        assert_eq!(warning(&[], false), None);
        assert_eq!(warning(&["--api-key-file=k"], true), None);
        let all = warning(&[], true).unwrap();
        assert!(all.contains("(HTTP, GRPC, metrics)") && !all.contains('\n'), "{all}");
        let one = warning(&["--grpc-address=0.0.0.0", "--allow-http=false"], false).unwrap();
        assert!(one.contains("(GRPC)"), "{one}");
    }

    #[test]
    fn overrides_are_allowed_by_default_where_only_this_machine_asks() {
        let rules = |arguments: &[&str], bind_all| {
            override_rules(&parse(arguments, bind_all).unwrap()).allows()
        };
        assert!(rules(&[], false));
        assert!(!rules(&[], true));
        assert!(rules(&["--http-address=unix:/a", "--grpc-address=::1"], false));
        assert!(!rules(&["--grpc-address=0.0.0.0"], false));
        assert!(rules(&["--grpc-address=0.0.0.0", "--allow-grpc=false"], false));
        assert!(!rules(&["--metrics-address=10.0.0.7"], false));
        assert!(!rules(&["--allow-model-overrides=false"], false));
        assert!(rules(&["--allow-model-overrides"], true));
    }
}
