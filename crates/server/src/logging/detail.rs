//! Parts of the program whose every line is written, as variables of the environment ask for it.

use tracing::level_filters::LevelFilter;

/// Variable that logs the work of the GPU's provider.
pub const METAL_DEBUG: &str = "TRITON_METAL_DEBUG";
/// Variable that logs which device runs each part, and why.
pub const APPLE_VERBOSE: &str = "TRITON_APPLE_VERBOSE";

/// The variables, and the modules that they make talk.
const TALKING: [(&str, &[&str]); 2] = [
    (METAL_DEBUG, &["galatea_gpu"]),
    (
        APPLE_VERBOSE,
        &["galatea_gpu", "galatea_runtime::session", "galatea_providers", "galatea_coreml"],
    ),
];

/// The modules that are told of in every detail.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct DetailModules(Vec<&'static str>);

impl DetailModules {
    /// Reads the details that an environment asks for. Its values are checked before.
    pub(super) fn of<'e>(environment: impl Fn(&str) -> Option<&'e str>) -> Self {
        let on = |name: &str| environment(name).and_then(truth) == Some(true);
        let talking = TALKING.iter().filter(|(name, _)| on(name));
        Self(talking.flat_map(|(_, modules)| modules.iter().copied()).collect())
    }

    /// Returns whether a module is logged in every detail.
    pub(super) fn tells(&self, target: &str) -> bool {
        self.0.iter().any(|module| {
            let rest = target.strip_prefix(module);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
        })
    }

    /// The least severe level of that.
    pub(super) fn least(&self) -> LevelFilter {
        if self.0.is_empty() { LevelFilter::OFF } else { LevelFilter::TRACE }
    }
}

/// The truth value of a variable.
#[must_use]
pub fn truth(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "on" | "yes" => Some(true),
        "" | "0" | "false" | "off" | "no" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_makes_its_modules_talk_and_no_others() {
        let quiet = DetailModules::of(|name| (name == METAL_DEBUG).then_some("off"));
        assert_eq!((quiet.tells("galatea_gpu"), quiet.least()), (false, LevelFilter::OFF));
        let gpu = DetailModules::of(|name| (name == METAL_DEBUG).then_some("Yes"));
        assert!(gpu.tells("galatea_gpu::device") && !gpu.tells("galatea_gpus"));
        assert!(!gpu.tells("galatea_runtime::session") && gpu.least() == LevelFilter::TRACE);
        let routes = DetailModules::of(|name| (name == APPLE_VERBOSE).then_some("1"));
        assert!(routes.tells("galatea_runtime::session::routes") && routes.tells("galatea_gpu"));
        assert!(!routes.tells("galatea_runtime::tune"));
    }
}
