//! Permission of clients to load a model with a configuration and files of their own.

use galatea_serving::Core;
use galatea_serving::config::{self, ModelConfig};
use galatea_serving::core::LoadOverrides;

use crate::flags::ServerFlags;

/// Parameters of a model that say which program on the machine runs it.
const EXECUTABLES: [&str; 2] = ["EXECUTION_ENV_PATH", "PYTHON_EXECUTABLE"];

/// Rules for configurations and files that come with a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverrideRules {
    allowed: bool,
}

impl Default for OverrideRules {
    fn default() -> Self {
        Self { allowed: true }
    }
}

impl OverrideRules {
    /// Reads `--allow-model-overrides`. Where it is not given, overrides are allowed if only this machine reaches the
    /// server.
    #[must_use]
    pub fn of(flags: &ServerFlags) -> Self {
        let name = "allow-model-overrides";
        let allowed = match flags.is_set(name) {
            true => flags.bool(name),
            false => flags.open_places().iter().all(|(_, place)| place.is_loopback()),
        };
        Self { allowed }
    }

    /// Checks that a model may be loaded with these overrides.
    ///
    /// # Errors
    /// Returns a sentence on what was found and which flag allows it.
    pub(crate) fn check(
        self,
        core: &Core,
        model: &str,
        overrides: &LoadOverrides,
    ) -> Result<(), String> {
        let kind = match (&overrides.config, overrides.files.is_empty()) {
            (None, true) => return Ok(()),
            (_, false) => "files",
            (Some(_), true) => "a configuration",
        };
        if !self.allowed {
            return Err(format!(
                "the load of model '{model}' brings {kind}, which this server takes only with \
                 --allow-model-overrides=true"
            ));
        }
        let Some(given) = overrides.config.as_deref().and_then(parse) else { return Ok(()) };
        // A client may give back what the server told it, but files may lie where that points to.
        let served = core.model_config(model, "").ok().filter(|_| overrides.files.is_empty());
        let value = |config: &ModelConfig, name: &str| {
            config.parameters.get(name).map(|parameter| parameter.string_value.clone())
        };
        for name in EXECUTABLES {
            let wanted = value(&given, name);
            let known = served.as_ref().and_then(|config| value(config, name));
            if wanted.is_some() && wanted != known {
                return Err(format!(
                    "the configuration that the load of model '{model}' brings has the parameter '{name}', which \
                     only a configuration in the repository may set"
                ));
            }
        }
        Ok(())
    }
}

/// Reads a configuration as the core does; what it cannot read it refuses itself.
fn parse(text: &str) -> Option<ModelConfig> {
    config::from_json(&serde_json::from_str(text).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::ParsedCommand;

    #[test]
    fn overrides_are_allowed_by_default_where_only_this_machine_asks() {
        let rules = |arguments: &[&str], bind_all| {
            let arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
            match ServerFlags::parse(&arguments, bind_all).unwrap() {
                ParsedCommand::Serve(flags) => OverrideRules::of(&flags).allowed,
                ParsedCommand::Help => panic!("no flags"),
            }
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
