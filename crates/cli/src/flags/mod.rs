//! Command-line flags of `serve`: one table, and a reader for both `--flag=value` and `--flag value`.

mod check;
mod clouds;
mod help;
mod old;
mod table;
mod together;

use galatea_tensor::OrderedMap;

use clap::error::ErrorKind;

use crate::usage::explain;

pub use clouds::ENVIRONMENT;
pub(crate) use help::command;
pub use help::{SERVED_PATHS, help};
pub use table::{FLAGS, FlagKind, FlagSupport, ServerFlag};

/// Stand-in for a flag's name: the address of the endpoints for clouds, which no flag sets.
pub const CLOUD_ADDRESS: &str = "cloud address";

/// Stand-in for a flag's name: the address of the OpenAI endpoint.
pub const OPENAI_ADDRESS: &str = "openai address";

/// The flag whose value may come as three arguments.
const THREE_VALUES: &str = "openai-restricted-api";

/// Values of each flag, in the order given.
type FlagValues = OrderedMap<&'static str, Vec<String>>;

/// Values by flag, in the order given.
#[derive(Debug, Clone, Default)]
pub struct ServerFlags {
    values: FlagValues,
    /// Flags given by their old name, and what was made of them.
    replaced: Vec<(&'static str, String)>,
    /// The variables of [`ENVIRONMENT`] that are set.
    environment: OrderedMap<&'static str, String>,
    /// Defaults that the environment changes.
    defaults: OrderedMap<&'static str, String>,
    bind_all: bool,
}

/// Action that the command line asks for.
#[derive(Debug)]
pub enum ParsedCommand {
    /// To serve.
    Serve(ServerFlags),
    /// To print the list of flags.
    Help,
}

/// Mistake in a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlagMistake {
    /// A flag that is unknown or has a wrong value.
    Usage(String),
    /// Flags that do not go together, or a variable of the environment with a wrong value.
    Setting(String),
}

impl FlagMistake {
    /// Returns the sentence about the mistake.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Usage(text) | Self::Setting(text) => text,
        }
    }
}

impl ServerFlags {
    /// Reads a command line. `bind_all`: the default address is 0.0.0.0, as Triton's, and not the loopback.
    ///
    /// # Errors
    /// Returns a sentence about the first flag that is unknown, has a wrong value, or asks for what this
    /// server cannot do.
    pub fn parse(arguments: &[String], bind_all: bool) -> Result<ParsedCommand, String> {
        Self::parse_in(arguments, bind_all, |_| None).map_err(|mistake| mistake.text().to_owned())
    }

    /// Reads a command line in an environment, whose variables change some defaults.
    ///
    /// # Errors
    /// Fails as [`parse`](Self::parse) does, and for a variable with a wrong value.
    pub fn parse_in(
        arguments: &[String],
        bind_all: bool,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<ParsedCommand, FlagMistake> {
        let mut flags = Self { bind_all, ..Self::default() };
        match read(arguments).map_err(FlagMistake::Usage)? {
            Some(values) => flags.values = values,
            None => return Ok(ParsedCommand::Help),
        }
        flags.read_environment(environment).map_err(FlagMistake::Setting)?;
        flags.replace_old().map_err(FlagMistake::Setting)?;
        flags.check_together().map_err(FlagMistake::Setting)?;
        Ok(ParsedCommand::Serve(flags))
    }

    /// Returns whether the flag was given.
    #[must_use]
    pub fn is_set(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// All values of a flag that may be repeated.
    #[must_use]
    pub fn all(&self, name: &str) -> &[String] {
        self.values.get(name).map_or(&[], Vec::as_slice)
    }

    /// Puts other folders in the place of those that `--model-repository` names.
    pub(crate) fn serve_repositories(&mut self, folders: &[String]) {
        if !folders.is_empty() {
            self.values.insert("model-repository", folders.to_vec());
        }
    }

    /// The last value given, or the default.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        if let Some(value) = self.all(name).last() {
            return value;
        }
        if let Some(value) = self.defaults.get(name) {
            return value;
        }
        match name {
            // Clouds ask from outside, and have no flag for the address.
            CLOUD_ADDRESS if self.bind_all => "0.0.0.0",
            // A socket in the file system is that of one front end.
            "metrics-address" | CLOUD_ADDRESS | OPENAI_ADDRESS
                if self.text("http-address").starts_with("unix:") =>
            {
                if self.bind_all {
                    "0.0.0.0"
                } else {
                    "127.0.0.1"
                }
            }
            "metrics-address" | CLOUD_ADDRESS | OPENAI_ADDRESS => self.text("http-address"),
            "http-address" | "grpc-address" if self.bind_all => "0.0.0.0",
            _ => FLAGS.iter().find(|flag| flag.name == name).map_or("", |flag| flag.default),
        }
    }

    /// A value that is true or false.
    #[must_use]
    pub fn bool(&self, name: &str) -> bool {
        truth(self.text(name)).unwrap_or(false)
    }

    /// A value that is a number.
    #[must_use]
    pub fn number(&self, name: &str) -> u64 {
        let text = self.text(name);
        text.parse().unwrap_or_else(|_| u64::from(truth(text).unwrap_or(false)))
    }

    /// A variable of the environment that the program knows, where it is set.
    #[must_use]
    pub fn environment(&self, name: &str) -> Option<&str> {
        self.environment.get(name).map(String::as_str)
    }

    /// A sentence on each flag given that has no effect, or that has a new name.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        // Triton's words, which scripts look for in the log.
        let old = self.replaced.iter().map(|(name, new)| {
            let successor = old::successor(name);
            format!(
                "Warning: '--{name}' has been deprecated! Please use '--{successor}' instead. It is taken as {new}."
            )
        });
        let strict = "strict-model-config";
        let overridden = self.bool("disable-auto-complete-config")
            && self.replaced.iter().any(|(name, new)| *name == strict && new == old::DEFAULT);
        let overridden = overridden.then(|| {
            format!(
                "Warning: Overriding deprecated '--{strict}' from False to True in favor of \
                 '--disable-auto-complete-config'!"
            )
        });
        let ignored = FLAGS.iter().filter_map(|flag| match flag.support {
            FlagSupport::Ignored(why) if self.is_set(flag.name) => {
                Some(format!("--{} has no effect here: {why}", flag.name))
            }
            _ => None,
        });
        old.chain(overridden).chain(ignored).chain(self.idle()).collect()
    }
}

fn truth(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "on" | "1" => Some(true),
        "false" | "off" | "0" => Some(false),
        _ => None,
    }
}

/// The first and the last port of a range.
fn ports(value: &str) -> Option<(u16, u16)> {
    let (first, last) = value.split_once('-')?;
    let range = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (range.0 <= range.1).then_some(range)
}

/// Finds a flag of the table by its name.
fn find(name: &str) -> Result<&'static ServerFlag, String> {
    FLAGS.iter().find(|flag| flag.name == name).ok_or_else(|| format!("unknown flag --{name}"))
}

/// Gives [`THREE_VALUES`] one value where it has three, as Triton's front end for OpenAI's protocol takes it.
fn in_one_value(arguments: &[String]) -> Vec<String> {
    let mut out: Vec<String> = Vec::with_capacity(arguments.len());
    let mut rest = arguments;
    while let [first, after @ ..] = rest {
        out.push(first.clone());
        rest = after;
        let named = first.strip_prefix("--") == Some(THREE_VALUES);
        let [groups, key, value, after @ ..] = rest else { continue };
        let marked = groups.contains(':') || groups.starts_with('@');
        if named && !marked && ![groups, key, value].iter().any(|one| one.starts_with("--")) {
            out.push(format!("{groups}:{key}={value}"));
            rest = after;
        }
    }
    out
}

/// Reads the values of each flag in their order, or nothing where the help is asked for.
fn read(arguments: &[String]) -> Result<Option<FlagValues>, String> {
    let arguments = in_one_value(arguments);
    let matches = match command("serve").no_binary_name(true).try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error) if error.kind() == ErrorKind::DisplayHelp => return Ok(None),
        Err(error) => return Err(explain(&error, "flag")),
    };
    let mut values = FlagValues::new();
    for flag in FLAGS {
        for value in matches.get_many::<String>(flag.name).into_iter().flatten() {
            flag.check(value)?;
            values.entry(flag.name).or_default().push(value.clone());
        }
    }
    Ok(Some(values))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<ServerFlags, String> {
        let arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
        match ServerFlags::parse(&arguments, false)? {
            ParsedCommand::Serve(flags) => Ok(flags),
            ParsedCommand::Help => Err("help".to_owned()),
        }
    }

    #[test]
    fn both_spellings_and_repetition_work() {
        let flags = parse(&[
            "--model-repository=/a",
            "--model-store",
            "/b",
            "--http-port",
            "0",
            "--allow-grpc=OFF",
            "--disable-auto-complete-config",
            "--strict-readiness",
            "--log-info",
            "false",
        ])
        .unwrap();
        assert_eq!(flags.all("model-repository"), ["/a", "/b"]);
        assert_eq!(flags.number("http-port"), 0);
        assert!(!flags.bool("allow-grpc"));
        assert!(flags.bool("disable-auto-complete-config"));
        assert!(flags.bool("strict-readiness"));
        assert!(!flags.bool("log-info"));
        assert_eq!(flags.number("exit-timeout-secs"), 30);
        assert_eq!(parse(&["--log-verbose=true"]).unwrap().number("log-verbose"), 1);
        assert_eq!(flags.text("metrics-address"), "127.0.0.1");
    }

    #[test]
    fn mistakes_are_named() {
        for (argument, text) in [
            ("--http-prot=1", "did you mean --http-port?"),
            ("--qwertyuiop=1", "unknown flag --qwertyuiop"),
            ("--http-port=70000", "expects a port"),
            ("--allow-http=maybe", "expects true or false, got 'maybe'"),
            ("--rate-limit=sometimes", "off|execution_count"),
            ("--model-control-mode=pull", "none|poll|explicit, got 'pull'"),
            ("--load-model=x", "--model-control-mode=explicit"),
            (
                "--http-port=8001",
                "cannot listen to HTTP requests and GRPC requests at the same address and port 127.0.0.1:8001",
            ),
            ("--metrics-address=0.0.0.0 --metrics-port=8000", "HTTP requests and metrics requests"),
            (
                "--grpc-infer-thread-count=1",
                "--grpc-infer-thread-count expects a number from 2 to 128, got '1'",
            ),
            ("--trace-count=-2", "or -1 for no bound, got '-2'"),
            ("--http-max-input-size=0", "--http-max-input-size must be greater than 0, got '0'"),
            ("--http-max-input-size -1", "must be greater than 0, got '-1'"),
            ("--http-max-input-size=much", "expects a whole number above 0, got 'much'"),
            ("--model-load-gpu-limit=-1:0.5", "<device>:<fraction>, repeatable, got '-1:0.5'"),
            ("--model-load-gpu-limit=0:-0.5", "got '0:-0.5'"),
            ("--model-load-gpu-limit=0", "got '0'"),
            ("--allow-=true", "unknown flag --allow-"),
            ("--http-port", "--http-port needs a value"),
            (
                "--metrics-config=foo",
                "--metrics-config option format is <setting>=<value>. Got foo",
            ),
            ("--host-policy=a=b,c", "Got a=b,c"),
            ("--http-port --grpc-port=0", "expects a port from 0 to 65535, got '--grpc-port=0'"),
            ("--grpc-infer-response-compression-level=some", "none|low|medium|high, got 'some'"),
            ("serve", "unexpected argument"),
            (
                "--log-verbose=much",
                "--log-verbose expects a whole number, true or false, got 'much'",
            ),
            ("--sagemaker-safe-port-range=9-1", "<first port>-<last port>, got '9-1'"),
            (
                "--allow-sagemaker=true --sagemaker-safe-port-range=8081-9000",
                "cannot listen to HTTP requests at port 8000, allowed port range is [8081, 9000]",
            ),
            (
                "--allow-sagemaker=true --allow-vertex-ai=true",
                "SageMaker requests and Vertex AI requests at the same address and port 127.0.0.1:8080",
            ),
        ] {
            let arguments: Vec<&str> = argument.split(' ').collect();
            let error = parse(&arguments).unwrap_err();
            assert!(error.contains(text), "{argument}: {error}");
        }
    }

    #[test]
    fn a_beginning_that_means_one_flag_stands_for_it() {
        let flags =
            parse(&["--log-warn=false", "--model-rep", "/a", "--metrics-p=0", "--allow-htt=0"])
                .unwrap();
        assert!(!flags.bool("log-warning") && !flags.bool("allow-http"));
        assert_eq!(flags.all("model-repository"), ["/a"]);
        assert_eq!(flags.text("metrics-port"), "0");
        parse(&["--model-load-gpu-limit=0:0.5", "--model-load-gpu-limit=1:0"]).unwrap();
        // A whole name is that flag, also where others go on from it.
        assert_eq!(parse(&["--cache-dir=/c"]).unwrap().text("cache-dir"), "/c");
    }

    #[test]
    fn restrictions_of_openai_may_be_three_arguments() {
        let name = "openai-restricted-api";
        let flags = parse(&[
            "--openai-restricted-api",
            "inference,metrics",
            "admin",
            "secret",
            "--openai-restricted-api=health:k=v",
            "--openai-restricted-api",
            "model-repository:k=w",
            "--log-info",
            "true",
        ])
        .unwrap();
        assert_eq!(
            flags.all(name),
            ["inference,metrics:admin=secret", "health:k=v", "model-repository:k=w"]
        );
        assert!(parse(&["--openai-restricted-api", "health", "--log-info", "true"]).is_ok());
    }

    #[test]
    fn words_are_read_in_any_case() {
        parse(&["--rate-limit=OFF", "--allow-sagemaker=False", "--model-control-mode=EXPLICIT"])
            .unwrap();
    }

    #[test]
    fn flags_without_effect_and_old_names_are_told() {
        let flags = parse(&[
            "--enable-peer-access=true",
            "--strict-model-config=true",
            "--model-store=/a",
            "--grpc-server-cert=/c",
            "--http-server-cert=/c",
            "--http-use-ssl-mutual=true",
            "--repository-poll-secs=15",
        ])
        .unwrap();
        assert!(flags.bool("disable-auto-complete-config"));
        assert_eq!(flags.all("model-repository"), ["/a"]);
        assert_eq!(
            flags.warnings(),
            [
                "Warning: '--model-store' has been deprecated! Please use '--model-repository' instead. It is taken \
                 as --model-repository=/a.",
                "Warning: '--strict-model-config' has been deprecated! Please use \
                 '--disable-auto-complete-config' instead. It is taken as --disable-auto-complete-config=true.",
                "--enable-peer-access has no effect here: there is no CUDA device to configure",
                "--repository-poll-secs has no effect without --model-control-mode=poll",
                "--grpc-server-cert has no effect without --grpc-use-ssl=true",
            ]
        );
    }

    #[test]
    fn an_old_flag_that_a_new_one_overrides_is_told() {
        let both = ["--strict-model-config=false", "--disable-auto-complete-config"];
        let told = |given: &[&str]| {
            let text = "Warning: Overriding deprecated '--strict-model-config' from False to True in favor of \
                        '--disable-auto-complete-config'!";
            parse(given).unwrap().warnings().iter().any(|warning| warning == text)
        };
        assert!(told(&both));
        assert!(!told(&both[..1]) && !told(&both[1..]));
        assert!(!told(&["--strict-model-config=true", both[1]]));
    }

    /// A flag that is said to work is asked for by its full name somewhere.
    #[test]
    fn no_flag_is_read_and_forgotten() {
        fn collect(folder: &std::path::Path, text: &mut String) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    collect(&path, text);
                } else if path.extension().is_some_and(|extension| extension == "rs")
                    && !["table.rs", "together.rs"].map(|name| path.ends_with(name)).contains(&true)
                {
                    let source = std::fs::read_to_string(&path).unwrap();
                    text.push_str(source.split("#[cfg(test)]").next().unwrap());
                }
            }
        }
        let mut source = String::new();
        let own = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        collect(&own.join("src"), &mut source);
        // Restrictions name their flags themselves.
        collect(&own.join("../server/src"), &mut source);
        for flag in FLAGS.iter().filter(|flag| flag.support == FlagSupport::Yes) {
            assert!(source.contains(&format!("\"{}\"", flag.name)), "--{} does nothing", flag.name);
        }
    }

    #[test]
    fn called_as_triton_every_address_is_bound() {
        let Ok(ParsedCommand::Serve(flags)) = ServerFlags::parse(&[], true) else {
            panic!("serves")
        };
        assert_eq!(flags.text("http-address"), "0.0.0.0");
        assert_eq!(flags.text("metrics-address"), "0.0.0.0");
        assert_eq!(flags.text(CLOUD_ADDRESS), "0.0.0.0");
        let alone = parse(&["--http-address=unix:/a"]).unwrap();
        assert_eq!(alone.text(CLOUD_ADDRESS), "127.0.0.1");
        assert_eq!(alone.text("metrics-address"), "127.0.0.1");
    }

    #[test]
    fn every_flag_has_a_valid_default_and_stands_in_the_help() {
        for flag in FLAGS {
            assert!(help().contains(flag.name));
            if !flag.default.is_empty() {
                flag.check(flag.default).unwrap();
            }
        }
    }
}
