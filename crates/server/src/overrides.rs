//! Permission of clients to load a model with a configuration and files of their own.

use galatea_serving::Core;
use galatea_serving::config::{self, ModelConfig};
use galatea_serving::core::LoadOverrides;

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
    /// Rules that allow overrides or refuse all of them.
    #[must_use]
    pub fn new(allowed: bool) -> Self {
        Self { allowed }
    }

    /// Returns whether any overrides are allowed.
    #[must_use]
    pub fn allows(self) -> bool {
        self.allowed
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
        let served = core.resolve(model, "").ok().filter(|_| overrides.files.is_empty());
        let served = served.map(|model| model.config());
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
