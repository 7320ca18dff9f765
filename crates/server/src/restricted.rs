//! Groups of endpoints that answer only requests with an agreed header.

use std::fmt;
use std::path::Path;

use crate::secret_file::{read_secret_file, secret_lines};

/// Groups of endpoints that can be restricted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndpointCategory {
    /// Liveness and readiness.
    Health,
    /// Names, types and shapes.
    Metadata,
    /// Inference.
    Inference,
    /// Regions of shared memory.
    SharedMemory,
    /// Configuration of models.
    ModelConfig,
    /// Index, load and unload.
    ModelRepository,
    /// Counters.
    Statistics,
    /// Settings of traces.
    Trace,
    /// Settings of the log.
    Logging,
    /// Profiles of what runs.
    Profile,
    /// Settings of power.
    Power,
}

impl EndpointCategory {
    /// Returns the group of that name.
    #[must_use]
    pub(crate) fn named(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, category)| *category)
    }

    /// Returns all groups, in the order of their numbers.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        NAMES.into_iter().map(|(_, category)| category)
    }

    /// Returns the number of the group, from 0.
    pub(crate) fn index(self) -> u32 {
        self as u32
    }

    /// Returns whether calls of the group that do more than read change the server, its models or its settings.
    #[must_use]
    pub fn is_administrative(self) -> bool {
        match self {
            Self::SharedMemory
            | Self::ModelRepository
            | Self::Trace
            | Self::Logging
            | Self::Profile
            | Self::Power => true,
            Self::Health
            | Self::Metadata
            | Self::Inference
            | Self::ModelConfig
            | Self::Statistics => false,
        }
    }
}

/// Names of the groups on the command line.
const NAMES: [(&str, EndpointCategory); 11] = [
    ("health", EndpointCategory::Health),
    ("metadata", EndpointCategory::Metadata),
    ("inference", EndpointCategory::Inference),
    ("shared-memory", EndpointCategory::SharedMemory),
    ("model-config", EndpointCategory::ModelConfig),
    ("model-repository", EndpointCategory::ModelRepository),
    ("statistics", EndpointCategory::Statistics),
    ("trace", EndpointCategory::Trace),
    ("logging", EndpointCategory::Logging),
    ("profile", EndpointCategory::Profile),
    ("power", EndpointCategory::Power),
];

/// Groups, and the header that opens them.
#[derive(Clone, PartialEq, Eq)]
struct RestrictedGroup {
    categories: Vec<EndpointCategory>,
    header: String,
    value: String,
}

/// Restrictions that an endpoint puts on requests before it admits them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndpointRestrictions {
    groups: Vec<RestrictedGroup>,
}

/// Words of a flag that differ between the protocols.
#[derive(Debug, Clone, Copy)]
pub struct FlagWording {
    /// The flag.
    pub flag: &'static str,
    /// Noun that the flag uses for its groups' members.
    pub noun: &'static str,
    /// Prefix of each key in the header's name.
    pub prefix: &'static str,
    /// Groups that the flag knows, by name.
    groups: &'static [(&'static str, EndpointCategory)],
}

/// `--http-restricted-api`
pub const HTTP: FlagWording =
    FlagWording { flag: "http-restricted-api", noun: "api", prefix: "", groups: &NAMES };
/// `--grpc-restricted-protocol`
pub const GRPC: FlagWording = FlagWording {
    flag: "grpc-restricted-protocol",
    noun: "protocol",
    prefix: "triton-grpc-protocol-",
    groups: &NAMES,
};
/// `--openai-restricted-api`, whose groups are those of Triton's front end for OpenAI's protocol.
pub const OPENAI: FlagWording = FlagWording {
    flag: "openai-restricted-api",
    noun: "api",
    prefix: "",
    groups: &[
        ("inference", EndpointCategory::Inference),
        ("model-repository", EndpointCategory::ModelRepository),
        ("metrics", EndpointCategory::Statistics),
        ("health", EndpointCategory::Health),
    ],
};

impl FlagWording {
    fn category(self, name: &str) -> Option<EndpointCategory> {
        self.groups.iter().find(|(known, _)| *known == name).map(|(_, category)| *category)
    }

    fn name(self, category: EndpointCategory) -> &'static str {
        self.groups.iter().find(|(_, known)| *known == category).map_or("", |(name, _)| name)
    }
}

impl EndpointRestrictions {
    /// Reads the values of the flag, each `group,group:header=value`, or `@FILE` for a file with one on each line.
    ///
    /// # Errors
    /// Returns a sentence about the first value that has another form, names an unknown group or repeats a
    /// group, and about a file that cannot be read or is open to other users.
    pub fn parse(values: &[String], wording: FlagWording) -> Result<Self, String> {
        let mut restrictions = Self::default();
        for value in sources(values, wording)? {
            let group = parse_group(&value, wording)?;
            for category in &group.categories {
                if restrictions.groups.iter().any(|other| other.categories.contains(category)) {
                    return Err(twice(*category, wording));
                }
            }
            restrictions.groups.push(group);
        }
        Ok(restrictions)
    }

    /// The header that a request lacks, or has with another value. `header` finds the value of one of its headers.
    pub fn missing<'a>(
        &self,
        category: EndpointCategory,
        header: impl Fn(&str) -> Option<&'a [u8]>,
    ) -> Option<&str> {
        let group = self.groups.iter().find(|group| group.categories.contains(&category))?;
        let opens = header(&group.header).is_some_and(|value| same(value, group.value.as_bytes()));
        (!opens).then_some(&group.header)
    }
}

/// Compares in a time that does not tell how much is right.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

/// Text of a group, and how errors show it.
struct GroupSource {
    text: String,
    shown: String,
}

/// Takes values as they are given, or from the files that they name. What stands in a file is a secret, which errors do
/// not repeat.
fn sources(values: &[String], wording: FlagWording) -> Result<Vec<GroupSource>, String> {
    let mut sources = Vec::new();
    for value in values {
        let Some(path) = value.strip_prefix('@') else {
            sources.push(GroupSource { text: value.clone(), shown: value.clone() });
            continue;
        };
        let text = read_secret_file(wording.flag, Path::new(path))?;
        sources.extend(secret_lines(&text).map(|line| GroupSource {
            text: line.text.to_owned(),
            shown: format!("line {} of {value}", line.number),
        }));
    }
    Ok(sources)
}

fn parse_group(source: &GroupSource, wording: FlagWording) -> Result<RestrictedGroup, String> {
    let FlagWording { flag, noun, prefix, .. } = wording;
    let GroupSource { text, shown } = source;
    let parts = text
        .split_once(':')
        .and_then(|(names, pair)| Some((names, pair.split_once('=')?)))
        .filter(|(_, (key, value))| !key.is_empty() && !value.is_empty());
    let Some((names, (key, value))) = parts else {
        return Err(format!(
            "--{flag} option format is '<config name>:<setting>=<value>'. Got {shown}; a config name is \
             a list of groups, a setting is the name of a header"
        ));
    };
    let mut categories = Vec::new();
    for name in names.split(',') {
        let Some(category) = wording.category(name) else {
            let known: Vec<&str> = wording.groups.iter().map(|(name, _)| *name).collect();
            return Err(format!(
                "unknown restricted {noun} '{name}' in --{flag}={shown}; there are {}",
                known.join(", ")
            ));
        };
        if categories.contains(&category) {
            return Err(twice(category, wording));
        }
        categories.push(category);
    }
    Ok(RestrictedGroup { categories, header: format!("{prefix}{key}"), value: value.to_owned() })
}

fn twice(category: EndpointCategory, wording: FlagWording) -> String {
    format!(
        "restricted {} '{}' can not be specified in multiple config groups",
        wording.noun,
        wording.name(category)
    )
}

impl fmt::Display for EndpointCategory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(_, category)| category == self).map_or("", |(name, _)| name);
        f.write_str(name)
    }
}

/// Leaves out the value, which is a secret.
impl fmt::Debug for RestrictedGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group")
            .field("categories", &self.categories)
            .field("header", &self.header)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(values: &[&str], wording: FlagWording) -> Result<EndpointRestrictions, String> {
        let values: Vec<String> = values.iter().map(|&value| value.to_owned()).collect();
        EndpointRestrictions::parse(&values, wording)
    }

    #[test]
    fn each_group_has_its_own_header() {
        let values = ["model-repository,shared-memory:admin=secret", "health:h=a=b:c"];
        let http = parse(&values, HTTP).unwrap();
        let missing = |category, headers: &[(&str, &'static str)]| {
            let headers = headers.to_vec();
            http.missing(category, |name| {
                headers.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_bytes())
            })
        };
        assert_eq!(missing(EndpointCategory::Metadata, &[]), None);
        assert_eq!(missing(EndpointCategory::SharedMemory, &[]), Some("admin"));
        assert_eq!(missing(EndpointCategory::SharedMemory, &[("admin", "secre")]), Some("admin"));
        assert_eq!(missing(EndpointCategory::SharedMemory, &[("admin", "Secret")]), Some("admin"));
        assert_eq!(missing(EndpointCategory::ModelRepository, &[("admin", "secret")]), None);
        assert_eq!(missing(EndpointCategory::Health, &[("h", "a=b:c")]), None);
        let grpc = parse(&values, GRPC).unwrap();
        let header = grpc.missing(EndpointCategory::Health, |_| None);
        assert_eq!(header, Some("triton-grpc-protocol-h"));
        assert!(!format!("{http:?}").contains("secret"));
    }

    #[test]
    fn mistakes_are_named() {
        for (values, text) in [
            (&["healthy:k=v"][..], "unknown restricted api 'healthy'"),
            (
                &["health:k=v", "logging,health:l=w"],
                "restricted api 'health' can not be specified in multiple config groups",
            ),
            (&["health,health:k=v"], "can not be specified in multiple config groups"),
            (
                &["health"],
                "--http-restricted-api option format is '<config name>:<setting>=<value>'. Got health",
            ),
            (&["health:k"], "option format is"),
            (&["health:=v"], "option format is"),
            (&["health:k="], "option format is"),
            (&[":k=v"], "unknown restricted api ''"),
        ] {
            let error = parse(values, HTTP).unwrap_err();
            assert!(error.contains(text), "{values:?}: {error}");
        }
        assert!(parse(&["x:k=v"], GRPC).unwrap_err().contains("unknown restricted protocol 'x'"));
    }

    #[test]
    fn the_groups_of_openai_are_those_of_its_front_end() {
        let values = ["inference,model-repository:admin=k", "metrics:m=1", "health:h=2"];
        let openai = parse(&values, OPENAI).unwrap();
        let missing = |category| openai.missing(category, |_| None);
        assert_eq!(missing(EndpointCategory::Inference), Some("admin"));
        assert_eq!(missing(EndpointCategory::ModelRepository), Some("admin"));
        assert_eq!(missing(EndpointCategory::Statistics), Some("m"));
        assert_eq!(missing(EndpointCategory::Health), Some("h"));
        let error = parse(&["logging:k=v"], OPENAI).unwrap_err();
        assert!(
            error.contains("there are inference, model-repository, metrics, health"),
            "{error}"
        );
        let error = parse(&["metrics:k=v", "metrics:l=w"], OPENAI).unwrap_err();
        assert!(error.contains("restricted api 'metrics' can not be specified"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn groups_stand_in_a_file_that_only_its_owner_reads() {
        use std::fs::{self, Permissions};
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("groups");
        let read = |mode: u32, text: &str| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            parse(&["health:h=v", &format!("@{}", path.display())], HTTP)
        };
        let http = read(0o600, "# admins\n\nmodel-repository:admin=secret\nlogging:l=s\n").unwrap();
        assert_eq!(http.missing(EndpointCategory::ModelRepository, |_| None), Some("admin"));
        assert_eq!(http.missing(EndpointCategory::Logging, |_| Some(b"s")), None);
        assert_eq!(http.missing(EndpointCategory::Health, |_| None), Some("h"));
        let error = read(0o600, "\nlogging=secret").unwrap_err();
        assert!(error.contains("Got line 2 of @") && !error.contains("secret"), "{error}");
        let error = read(0o644, "logging:l=s").unwrap_err();
        assert!(error.contains("expected 0600"), "{error}");
    }

    #[test]
    fn every_group_has_a_name() {
        for ((name, category), index) in NAMES.into_iter().zip(0..) {
            assert_eq!(category.to_string(), name);
            assert_eq!(EndpointCategory::named(name), Some(category));
            assert_eq!(category.index(), index);
        }
    }
}
