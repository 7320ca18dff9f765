//! Flags as clouds change them: environment variables that set defaults, and the ports that are safe.

use super::{ServerFlags, find, ports};
use galatea_server::http::vertex_ai;
use galatea_server::listen::ListenPlace;
use galatea_server::logging::detail::{self, APPLE_VERBOSE, METAL_DEBUG};
use galatea_server::sagemaker;

/// The front end for SageMaker in messages.
pub(super) const SAGEMAKER: &str = "SageMaker";

const AIP_MODE: &str = "AIP_MODE";
const AIP_HTTP_PORT: &str = "AIP_HTTP_PORT";

/// The variables that clouds set.
pub const ENVIRONMENT: [&str; 9] = [
    AIP_MODE,
    AIP_HTTP_PORT,
    vertex_ai::PREDICT_ROUTE,
    vertex_ai::HEALTH_ROUTE,
    sagemaker::PING_MODE,
    sagemaker::DEFAULT_MODEL,
    sagemaker::INFERENCE_TYPE,
    METAL_DEBUG,
    APPLE_VERBOSE,
];

impl ServerFlags {
    /// Keeps the variables that are known, and the defaults that they change.
    ///
    /// # Errors
    /// Fails when a variable has a value that its flag does not take.
    pub(super) fn read_environment(
        &mut self,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<(), String> {
        for name in ENVIRONMENT {
            if let Some(value) = environment(name) {
                self.environment.insert(name, value);
            }
        }
        for name in [METAL_DEBUG, APPLE_VERBOSE] {
            let found = self.environment(name).filter(|value| detail::truth(value).is_none());
            if let Some(value) = found {
                return Err(format!("{name}: '{value}' found, expected true or false"));
            }
        }
        // In its containers Vertex AI asks at its own front end alone.
        if self.environment(AIP_MODE) == Some("PREDICTION") {
            for (flag, value) in
                [("allow-vertex-ai", "true"), ("allow-http", "false"), ("allow-grpc", "false")]
            {
                self.defaults.insert(flag, value.to_owned());
            }
        }
        if let Some(port) = self.environment(AIP_HTTP_PORT).map(str::to_owned) {
            let flag = find("vertex-ai-port")?;
            flag.check(&port).map_err(|error| format!("{error}, from {AIP_HTTP_PORT}"))?;
            self.defaults.insert(flag.name, port);
        }
        Ok(())
    }

    /// Checks that the ports of other endpoints are in the range that SageMaker declares safe.
    ///
    /// # Errors
    /// Returns a sentence about the first endpoint whose port is outside.
    pub(super) fn check_safe_ports(&self, open: &[(&str, ListenPlace)]) -> Result<(), String> {
        let range = ports(self.text("sagemaker-safe-port-range"));
        let (Some((first, last)), true) = (range, self.bool("allow-sagemaker")) else {
            return Ok(());
        };
        for (title, place) in open.iter().filter(|(title, _)| *title != SAGEMAKER) {
            match place {
                ListenPlace::Tcp(_, port) if !(first..=last).contains(port) => {
                    return Err(format!(
                        "The server cannot listen to {title} requests at port {port}, allowed port \
                         range is [{first}, {last}]"
                    ));
                }
                ListenPlace::Tcp(..) | ListenPlace::Unix(_) => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::ParsedCommand;
    use super::*;

    fn parse(arguments: &[&str], variables: &[(&str, &str)]) -> Result<ServerFlags, String> {
        let arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
        let environment = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let parsed = ServerFlags::parse_in(&arguments, false, environment);
        match parsed.map_err(|mistake| mistake.text().to_owned())? {
            ParsedCommand::Serve(flags) => Ok(flags),
            ParsedCommand::Help => Err("help".to_owned()),
        }
    }

    #[test]
    fn vertex_ai_changes_defaults_and_flags_overrule_it() {
        let variables = [("AIP_MODE", "PREDICTION"), ("AIP_HTTP_PORT", "7080")];
        let flags = parse(&[], &variables).unwrap();
        let doors = ["allow-vertex-ai", "allow-http", "allow-grpc", "allow-metrics"];
        assert_eq!(doors.map(|door| flags.bool(door)), [true, false, false, true]);
        assert_eq!(flags.number("vertex-ai-port"), 7080);
        assert!(flags.warnings().is_empty());
        let flags = parse(&["--allow-http=true", "--vertex-ai-port=1"], &variables).unwrap();
        assert!(flags.bool("allow-http"));
        assert_eq!(flags.number("vertex-ai-port"), 1);
        let flags = parse(&[], &[("AIP_MODE", "TRAINING")]).unwrap();
        assert!(flags.bool("allow-http") && !flags.bool("allow-vertex-ai"));
        let error = parse(&[], &[("AIP_HTTP_PORT", "http")]).unwrap_err();
        assert!(error.contains("'http'") && error.ends_with("from AIP_HTTP_PORT"), "{error}");
    }

    #[test]
    fn variables_that_are_known_are_kept() {
        let flags = parse(&[], &[(sagemaker::DEFAULT_MODEL, "m"), ("HOME", "/root")]).unwrap();
        assert_eq!(flags.environment(sagemaker::DEFAULT_MODEL), Some("m"));
        assert_eq!(flags.environment("HOME"), None);
    }
}
