//! Rules over several flags.

use super::clouds::SAGEMAKER;
use super::{CLOUD_ADDRESS, OPENAI_ADDRESS, ServerFlags};
use galatea_server::listen::ListenPlace;

/// A flag that does something only where another has a value.
struct FlagDependency {
    name: &'static str,
    on: &'static str,
    value: &'static str,
}

macro_rules! depends {
    ($($name:literal $on:literal $value:literal;)*) => {
        &[$(FlagDependency { name: $name, on: $on, value: $value }),*]
    };
}

/// The flags that depend on others.
const DEPENDS: &[FlagDependency] = depends![
    "repository-poll-secs" "model-control-mode" "poll";
    "rate-limit-resource" "rate-limit" "execution_count";
    "http-address" "allow-http" "true";
    "http-port" "allow-http" "true";
    "reuse-http-port" "allow-http" "true";
    "http-use-ssl" "allow-http" "true";
    "http-use-ssl-mutual" "allow-http" "true";
    "http-header-forward-pattern" "allow-http" "true";
    "http-restricted-api" "allow-http" "true";
    "http-server-cert" "http-use-ssl" "true";
    "http-server-key" "http-use-ssl" "true";
    "http-root-cert" "http-use-ssl-mutual" "true";
    "grpc-address" "allow-grpc" "true";
    "grpc-port" "allow-grpc" "true";
    "reuse-grpc-port" "allow-grpc" "true";
    "grpc-use-ssl" "allow-grpc" "true";
    "grpc-use-ssl-mutual" "allow-grpc" "true";
    "grpc-header-forward-pattern" "allow-grpc" "true";
    "grpc-restricted-protocol" "allow-grpc" "true";
    "grpc-server-cert" "grpc-use-ssl" "true";
    "grpc-server-key" "grpc-use-ssl" "true";
    "grpc-root-cert" "grpc-use-ssl-mutual" "true";
    "metrics-address" "allow-metrics" "true";
    "metrics-port" "allow-metrics" "true";
    "metrics-use-ssl" "allow-metrics" "true";
    "metrics-config" "allow-metrics" "true";
    "allow-cpu-metrics" "allow-metrics" "true";
    "allow-gpu-metrics" "allow-metrics" "true";
    "metal-profile-output" "metal-profile" "true";
    "sagemaker-port" "allow-sagemaker" "true";
    "sagemaker-safe-port-range" "allow-sagemaker" "true";
    "vertex-ai-port" "allow-vertex-ai" "true";
    "vertex-ai-default-model" "allow-vertex-ai" "true";
];

/// The flag of a front end that is open where it is given.
const OPENAI: &str = "openai-port";

/// The front ends and their flags.
const DOORS: [(&str, &str, &str, &str); 6] = [
    ("HTTP", "allow-http", "http-address", "http-port"),
    ("OpenAI", OPENAI, OPENAI_ADDRESS, OPENAI),
    ("GRPC", "allow-grpc", "grpc-address", "grpc-port"),
    ("metrics", "allow-metrics", "metrics-address", "metrics-port"),
    (SAGEMAKER, "allow-sagemaker", CLOUD_ADDRESS, "sagemaker-port"),
    ("Vertex AI", "allow-vertex-ai", CLOUD_ADDRESS, "vertex-ai-port"),
];

impl ServerFlags {
    /// # Errors
    /// Returns a sentence about flags that cannot be given together.
    pub(super) fn check_together(&self) -> Result<(), String> {
        let explicit = self.text("model-control-mode").eq_ignore_ascii_case("explicit");
        if self.is_set("load-model") && !explicit {
            return Err("Use of '--load-model' requires setting '--model-control-mode=explicit' \
                        as well."
                .to_owned());
        }
        self.check_doors()
    }

    /// The front ends that are to be open by title, and where they are.
    pub(crate) fn open_places(&self) -> Vec<(&'static str, ListenPlace)> {
        DOORS
            .into_iter()
            .filter(|(_, allow, ..)| self.bool(allow) || *allow == OPENAI && self.is_set(OPENAI))
            .map(|(title, _, address, port)| {
                let port = u16::try_from(self.number(port)).unwrap_or(0);
                (title, ListenPlace::new(self.text(address), port))
            })
            .collect()
    }

    /// Two front ends need two addresses.
    fn check_doors(&self) -> Result<(), String> {
        let open = self.open_places();
        for (index, (a, place)) in open.iter().enumerate() {
            for (b, other) in open.iter().skip(index + 1) {
                if place.meets(other) {
                    return Err(format!(
                        "The server cannot listen to {a} requests and {b} requests at the same \
                         address and port {place}"
                    ));
                }
            }
        }
        self.check_safe_ports(&open)
    }

    /// Sentences on flags given whose condition does not hold.
    pub(super) fn idle(&self) -> impl Iterator<Item = String> + '_ {
        DEPENDS
            .iter()
            .filter(|row| self.is_set(row.name) && !self.holds(row.on, row.value))
            .map(|row| format!("--{} has no effect without --{}={}", row.name, row.on, row.value))
    }

    fn holds(&self, name: &str, value: &str) -> bool {
        match name {
            // Mutual TLS is TLS.
            "http-use-ssl" | "grpc-use-ssl" => {
                let metrics = name == "http-use-ssl" && self.bool("metrics-use-ssl");
                self.bool(name) || self.bool(&format!("{name}-mutual")) || metrics
            }
            _ if value == "true" => self.bool(name),
            _ => self.text(name).eq_ignore_ascii_case(value),
        }
    }
}
