//! Settings of traces from the flags.

use galatea_serving::trace::TraceLevel;

use super::otel::CollectorUrl;
use super::parse;
use super::view::TraceView;

/// Destination of traces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TraceMode {
    /// To a file in Triton's form.
    #[default]
    Triton,
    /// To a collector of OpenTelemetry.
    OpenTelemetry,
}

impl TraceMode {
    /// The name in flags and settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Triton => "triton",
            Self::OpenTelemetry => "opentelemetry",
        }
    }

    fn of(name: &str) -> Option<Self> {
        [Self::Triton, Self::OpenTelemetry].into_iter().find(|mode| mode.name() == name)
    }
}

/// Settings of the export of spans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenTelemetry {
    /// Address of the collector.
    pub url: String,
    /// Attributes of the resource.
    pub resource: Vec<(String, String)>,
    /// Most spans in one message.
    pub max_export_batch_size: usize,
    /// Longest wait of a span in milliseconds.
    pub schedule_delay_ms: u64,
    /// Most spans that wait.
    pub max_queue_size: usize,
}

impl Default for OpenTelemetry {
    fn default() -> Self {
        Self {
            url: "http://localhost:4318/v1/traces".to_owned(),
            resource: Vec::new(),
            max_export_batch_size: 512,
            schedule_delay_ms: 5000,
            max_queue_size: 2048,
        }
    }
}

impl OpenTelemetry {
    /// Names and values as the settings of traces show them.
    #[must_use]
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let mut settings = vec![("url", self.url.clone())];
        let resource = self.resource.iter();
        settings.extend(resource.map(|(key, value)| ("resource", format!("{key}={value}"))));
        settings.push(("bsp_max_export_batch_size", self.max_export_batch_size.to_string()));
        settings.push(("bsp_schedule_delay", self.schedule_delay_ms.to_string()));
        settings.push(("bsp_max_queue_size", self.max_queue_size.to_string()));
        settings
    }
}

/// Traces at the start of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceConfig {
    /// Settings that clients can change.
    pub start: TraceView,
    /// Destination of traces.
    pub mode: TraceMode,
    /// File of the Triton mode; empty for none.
    pub file: String,
    /// Collector of the OpenTelemetry mode.
    pub telemetry: OpenTelemetry,
}

impl Default for TraceConfig {
    fn default() -> Self {
        let level = TraceLevel::default();
        Self {
            start: TraceView { level, rate: 1000, count: -1, log_frequency: 0 },
            mode: TraceMode::Triton,
            file: String::new(),
            telemetry: OpenTelemetry::default(),
        }
    }
}

impl TraceConfig {
    /// Reads values of `--trace-config`, and the variables of OpenTelemetry.
    ///
    /// # Errors
    /// Returns a sentence about the first value that cannot be used.
    pub fn parse(values: &[String]) -> Result<Self, String> {
        let mut config = Self::default();
        config.environment(&|name| std::env::var(name).ok())?;
        let mut levels = Vec::new();
        for text in values {
            let (mode, setting) = match text.split_once(',') {
                Some((mode, setting)) => (Some(mode), setting),
                None => (None, text.as_str()),
            };
            let (key, value) = setting.split_once('=').ok_or_else(|| {
                format!(
                    "--trace-config option format is '<trace mode>,<setting>=<value>'. Got {text}"
                )
            })?;
            let mode = match mode {
                Some(name) => Some(TraceMode::of(name).ok_or_else(|| unknown_mode(name))?),
                None => None,
            };
            config.set(mode, key, value, &mut levels)?;
        }
        if let Some(level) = parse::level(levels.iter().map(String::as_str))? {
            config.start.level = level;
        }
        Ok(config)
    }

    /// Sets what one value says. Levels are gathered: they add up.
    fn set(
        &mut self,
        mode: Option<TraceMode>,
        key: &str,
        value: &str,
        levels: &mut Vec<String>,
    ) -> Result<(), String> {
        match (mode, key) {
            (None, "level") => match value.to_ascii_uppercase().as_str() {
                name @ ("OFF" | "TIMESTAMPS" | "TENSORS") => levels.push(name.to_owned()),
                "MIN" | "MAX" => levels.push("TIMESTAMPS".to_owned()),
                _ => return Err(format!("invalid value for trace level option: {value}")),
            },
            (None, "rate") => self.start.rate = number("rate", value)?,
            (None, "count") => {
                let range =
                    || format!("--trace-config count expects a number >= -1, got '{value}'");
                let count = value.parse().ok().filter(|&count| count >= -1);
                self.start.count = count.ok_or_else(range)?;
            }
            (None, "mode") => {
                self.mode = TraceMode::of(value).ok_or_else(|| unknown_mode(value))?
            }
            (Some(TraceMode::Triton), "file") => value.clone_into(&mut self.file),
            (Some(TraceMode::Triton), "log-frequency") => {
                self.start.log_frequency = number("log-frequency", value)?;
            }
            (Some(TraceMode::OpenTelemetry), _) => self.set_telemetry(key, value)?,
            (Some(mode), _) => {
                return Err(format!("unknown setting '{key}' of --trace-config {}", mode.name()));
            }
            (None, _) => return Err(format!("unknown setting '{key}' of --trace-config")),
        }
        Ok(())
    }

    fn set_telemetry(&mut self, key: &str, value: &str) -> Result<(), String> {
        let telemetry = &mut self.telemetry;
        match key {
            "url" => {
                CollectorUrl::parse(value)?;
                value.clone_into(&mut telemetry.url);
            }
            "resource" => {
                let (name, value) = value.split_once('=').ok_or_else(|| {
                    format!(
                        "--trace-config opentelemetry,resource expects key=value, got '{value}'"
                    )
                })?;
                telemetry.resource.push((name.to_owned(), value.to_owned()));
            }
            "bsp_max_export_batch_size" => telemetry.max_export_batch_size = number(key, value)?,
            "bsp_schedule_delay" => telemetry.schedule_delay_ms = number(key, value)?,
            "bsp_max_queue_size" => telemetry.max_queue_size = number(key, value)?,
            _ => return Err(format!("unknown setting '{key}' of --trace-config opentelemetry")),
        }
        Ok(())
    }

    /// Reads the batch processor's environment variables; flags come after them.
    fn environment(&mut self, read: &dyn Fn(&str) -> Option<String>) -> Result<(), String> {
        for (name, key) in ENVIRONMENT {
            if let Some(value) = read(name).filter(|value| !value.is_empty()) {
                self.set_telemetry(key, &value).map_err(|error| format!("{name}: {error}"))?;
            }
        }
        Ok(())
    }
}

/// Variables of OpenTelemetry's batch span processor and the settings that they stand for.
const ENVIRONMENT: [(&str, &str); 3] = [
    ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "bsp_max_export_batch_size"),
    ("OTEL_BSP_SCHEDULE_DELAY", "bsp_schedule_delay"),
    ("OTEL_BSP_MAX_QUEUE_SIZE", "bsp_max_queue_size"),
];

fn unknown_mode(name: &str) -> String {
    format!("invalid value for trace mode option: {name}. Options are: triton, opentelemetry")
}

fn number<T: std::str::FromStr>(key: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("--trace-config {key} expects a whole number, got '{value}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[&str]) -> Result<TraceConfig, String> {
        let values: Vec<String> = values.iter().map(|&value| value.to_owned()).collect();
        TraceConfig::parse(&values)
    }

    #[test]
    fn the_collector_is_described_by_flags_and_environment() {
        let config = read(&[
            "mode=opentelemetry",
            "opentelemetry,url=http://h:1/v1/traces",
            "opentelemetry,resource=a=b=c",
        ])
        .unwrap();
        assert_eq!(config.mode, TraceMode::OpenTelemetry);
        assert_eq!(config.telemetry.url, "http://h:1/v1/traces");
        assert_eq!(config.telemetry.resource, [("a".to_owned(), "b=c".to_owned())]);
        let config = read(&["opentelemetry,url=localhost:4318/v1/traces"]).unwrap();
        assert_eq!(config.telemetry.url, "localhost:4318/v1/traces");
        let mut config = TraceConfig::default();
        let read = |name: &str| (name == "OTEL_BSP_SCHEDULE_DELAY").then(|| "20".to_owned());
        config.environment(&read).unwrap();
        assert_eq!(config.telemetry.schedule_delay_ms, 20);
        assert!(config.environment(&|_| Some("x".to_owned())).is_err());
    }

    #[test]
    fn mistakes_are_named() {
        for (value, text) in [
            ("rate", "'<trace mode>,<setting>=<value>'. Got rate"),
            ("speed=1", "unknown setting 'speed'"),
            ("level=LOUD", "invalid value for trace level option: LOUD"),
            ("mode=jaeger", "invalid value for trace mode option: jaeger"),
            ("zipkin,url=x", "invalid value for trace mode option: zipkin"),
            ("count=-2", "expects a number >= -1, got '-2'"),
            ("triton,url=x", "unknown setting 'url' of --trace-config triton"),
            ("opentelemetry,url=https://h/x", "expects http://HOST:PORT/PATH"),
            ("opentelemetry,resource=x", "expects key=value, got 'x'"),
        ] {
            let error = read(&[value]).unwrap_err();
            assert!(error.contains(text), "{value}: {error}");
        }
    }
}
