//! The oldest macOS that programs run on, as cargo's configuration states it.

/// Cargo's configuration of the workspace.
const CONFIGURATION: &str = include_str!("../../../.cargo/config.toml");

/// Variable by which rustc and compilers of C take the version.
const VARIABLE: &str = "MACOSX_DEPLOYMENT_TARGET";

/// Version of macOS.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SystemVersion(Vec<u32>);

impl SystemVersion {
    /// Reads numbers between dots.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let numbers: Result<Vec<u32>, _> = text.split('.').map(str::parse).collect();
        let mut numbers = numbers.map_err(|_| format!("`{text}`: expected a version"))?;
        // 13 and 13.0 are the same.
        while numbers.last() == Some(&0) {
            numbers.pop();
        }
        Ok(Self(numbers))
    }
}

/// Returns the text of the oldest version.
pub(super) fn text() -> Result<String, String> {
    let table: toml::Table =
        CONFIGURATION.parse().map_err(|error| format!(".cargo/config.toml: {error}"))?;
    let found = table.get("env").and_then(|env| env.get(VARIABLE)).and_then(toml::Value::as_str);
    found.map(str::to_owned).ok_or_else(|| format!(".cargo/config.toml: no `{VARIABLE}`"))
}

/// Returns the target by zig's name.
pub(super) fn zig_target() -> Result<String, String> {
    Ok(format!("aarch64-macos.{}", text()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let version = |text| SystemVersion::parse(text).unwrap();
        assert!(version("13.3") > version("13") && version("13.10") > version("13.9"));
        assert_eq!(version("13"), version("13.0"));
        assert!(SystemVersion::parse("new").is_err());
    }

    #[test]
    fn the_oldest_system_is_stated() {
        assert!(SystemVersion::parse(&text().unwrap()).is_ok());
        assert!(zig_target().unwrap().starts_with("aarch64-macos."));
    }
}
