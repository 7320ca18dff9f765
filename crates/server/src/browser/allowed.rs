//! Hosts and origins that the flags allow besides those that are safe anyway.

use super::authority::{
    HostAuthority, HostKind, WebOrigin, is_at_or_below, is_below, is_scheme, usual_port,
};

/// Names of a host that an entry of a list stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum HostPattern {
    /// Every host.
    Any,
    /// One address or name.
    Exact(String),
    /// The names below one.
    Below(String),
    /// A name and those below it.
    AtOrBelow(String),
}

impl HostPattern {
    /// Reads `*`, `*.NAME`, `.NAME`, a name or an address.
    fn parse(text: &str) -> Option<Self> {
        let name = |text: &str| match HostKind::parse(text)? {
            HostKind::Name(name) => Some(name.to_owned()),
            HostKind::Address(_) => None,
        };
        if text == "*" {
            return Some(Self::Any);
        }
        if let Some(rest) = text.strip_prefix("*.") {
            return name(rest).map(Self::Below);
        }
        if let Some(rest) = text.strip_prefix('.') {
            return name(rest).map(Self::AtOrBelow);
        }
        HostKind::parse(text).map(|host| Self::exact(host))
    }

    fn exact(host: HostKind<'_>) -> Self {
        Self::Exact(match host {
            HostKind::Address(address) => address.to_string(),
            HostKind::Name(name) => name.to_owned(),
        })
    }

    fn matches(&self, host: HostKind<'_>) -> bool {
        match (self, host) {
            (Self::Any, _) => true,
            (Self::Exact(own), HostKind::Name(name)) => own.eq_ignore_ascii_case(name),
            (Self::Exact(own), HostKind::Address(address)) => own.parse() == Ok(address),
            (Self::Below(own), HostKind::Name(name)) => is_below(name, own),
            (Self::AtOrBelow(own), HostKind::Name(name)) => is_at_or_below(name, own),
            (Self::Below(_) | Self::AtOrBelow(_), HostKind::Address(_)) => false,
        }
    }
}

/// Ports that an entry of a list stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PortPattern {
    Any,
    Exact(u16),
    /// The usual one, where the scheme has one.
    Usual,
}

/// An entry with its host and its port.
#[derive(Debug, Clone, PartialEq, Eq)]
struct AuthorityPattern {
    host: HostPattern,
    port: PortPattern,
}

impl AuthorityPattern {
    /// Reads `HOST`, `HOST:PORT` or `HOST:*`.
    fn parse(text: &str) -> Option<Self> {
        if text.starts_with('[') {
            let (literal, any) = match text.strip_suffix(":*") {
                Some(literal) => (literal, true),
                None => (text, false),
            };
            let HostAuthority { host, port } = HostAuthority::parse(literal)?;
            let port = match port {
                _ if any => PortPattern::Any,
                Some(port) => PortPattern::Exact(port),
                None => PortPattern::Usual,
            };
            return Some(Self { host: HostPattern::exact(host), port });
        }
        let (host, port) = match text.split_once(':') {
            Some((host, "*")) => (host, PortPattern::Any),
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                (host, PortPattern::Exact(port.parse().ok()?))
            }
            Some(_) => return None,
            None => (text, PortPattern::Usual),
        };
        Some(Self { host: HostPattern::parse(host)?, port })
    }
}

/// Hosts of `--allowed-hosts`, and names that belong to the server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AllowedHosts {
    entries: Vec<AuthorityPattern>,
}

impl AllowedHosts {
    /// Reads lists with commas between their entries: `NAME`, `NAME:PORT`, `.NAME` with the names below it,
    /// `*.NAME` for these alone, and `*` for every host.
    ///
    /// # Errors
    /// Returns a sentence about the first entry of another form.
    pub(crate) fn parse(lists: &[String]) -> Result<Self, String> {
        let entries = entries(lists).map(|entry| {
            AuthorityPattern::parse(entry).ok_or_else(|| {
                format!(
                    "--allowed-hosts expects NAME, NAME:PORT, *.NAME, .NAME or *, with commas between them, \
                     got '{entry}'"
                )
            })
        });
        Ok(Self { entries: entries.collect::<Result<_, _>>()? })
    }

    /// Adds a name of the server itself, at every port. What is no name is left out.
    pub(crate) fn add_own(&mut self, name: &str) {
        if let Some(host) = HostKind::parse(name) {
            let host = HostPattern::exact(host);
            self.entries.push(AuthorityPattern { host, port: PortPattern::Any });
        }
    }

    /// Returns whether a host is in the list. An entry without a port stands for all of them.
    pub(crate) fn contains(&self, host: &HostAuthority<'_>) -> bool {
        self.entries.iter().any(|entry| {
            let port = match entry.port {
                PortPattern::Any | PortPattern::Usual => true,
                PortPattern::Exact(port) => host.port == Some(port),
            };
            port && entry.host.matches(host.host)
        })
    }
}

/// An origin of `--allowed-origins`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OriginPattern {
    scheme: String,
    authority: AuthorityPattern,
}

/// Relation of an origin to a list of origins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OriginListing {
    /// An entry names it.
    Named,
    /// The list lets it in without naming it.
    Wildcard,
    /// It is not there.
    Absent,
}

/// Origins of `--allowed-origins`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AllowedOrigins {
    any: bool,
    null: bool,
    named: Vec<OriginPattern>,
}

impl AllowedOrigins {
    /// Reads lists with commas between their entries: `SCHEME://HOST`, `SCHEME://HOST:PORT` with `*` for every port,
    /// `SCHEME://*.NAME`, `SCHEME://*`, `null`, and `*` for every page.
    ///
    /// # Errors
    /// Returns a sentence about the first entry of another form.
    pub(crate) fn parse(lists: &[String]) -> Result<Self, String> {
        let mut allowed = Self::default();
        for entry in entries(lists) {
            match entry {
                "*" => allowed.any = true,
                "null" => allowed.null = true,
                _ => allowed.named.push(OriginPattern::parse(entry).ok_or_else(|| {
                    format!(
                        "--allowed-origins expects SCHEME://HOST or SCHEME://HOST:PORT without a path, or *, with \
                         commas between them, got '{entry}'"
                    )
                })?),
            }
        }
        Ok(allowed)
    }

    /// Looks an origin up in the list; the text is that of the request.
    pub(crate) fn listing(&self, text: &str) -> OriginListing {
        let origin = WebOrigin::parse(text);
        if origin.is_some_and(|origin| self.named.iter().any(|pattern| pattern.matches(origin))) {
            return OriginListing::Named;
        }
        // Every page can make itself one without an origin, so `null` names nobody.
        if self.any || (self.null && text == "null") {
            OriginListing::Wildcard
        } else {
            OriginListing::Absent
        }
    }
}

impl OriginPattern {
    fn parse(text: &str) -> Option<Self> {
        let (scheme, authority) = text.split_once("://")?;
        // A slash is no path yet.
        let authority = authority.strip_suffix('/').unwrap_or(authority);
        let authority = AuthorityPattern::parse(authority)?;
        is_scheme(scheme).then(|| Self { scheme: scheme.to_owned(), authority })
    }

    fn matches(&self, origin: WebOrigin<'_>) -> bool {
        let port = match self.authority.port {
            PortPattern::Any => true,
            PortPattern::Exact(port) => origin.port() == Some(port),
            PortPattern::Usual => origin.port() == usual_port(&self.scheme),
        };
        port && origin.is_scheme(&self.scheme) && self.authority.host.matches(origin.authority.host)
    }
}

/// Entries of lists, without blanks around them.
fn entries(lists: &[String]) -> impl Iterator<Item = &str> {
    lists.iter().flat_map(|list| list.split(',')).map(str::trim).filter(|entry| !entry.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(text: &str) -> AllowedHosts {
        AllowedHosts::parse(&[text.to_owned()]).unwrap()
    }

    fn origins(text: &str) -> AllowedOrigins {
        AllowedOrigins::parse(&[text.to_owned()]).unwrap()
    }

    #[test]
    fn hosts_are_listed_by_name_port_and_suffix() {
        for (list, host, contained) in [
            ("triton.lan", "Triton.LAN:8000", true),
            ("triton.lan", "triton.lan.", true),
            ("triton.lan", "a.triton.lan", false),
            ("triton.lan", "triton.lan.evil.com", false),
            ("a.lan, b.lan", "b.lan", true),
            ("a.lan,,b.lan", "c.lan", false),
            ("a.lan:8000", "a.lan:8000", true),
            ("a.lan:8000", "a.lan:8001", false),
            ("a.lan:8000", "a.lan", false),
            (".a.lan", "a.lan", true),
            (".a.lan", "x.y.a.lan", true),
            (".a.lan", "xa.lan", false),
            ("*.a.lan", "x.a.lan:1", true),
            ("*.a.lan", "a.lan", false),
            ("*", "whatever.example", true),
            ("[fd00::1]", "[fd00:0::1]:9", true),
            ("10.0.0.1", "10.0.0.1", true),
            ("10.0.0.1", "10.0.0.2", false),
        ] {
            let host = HostAuthority::parse(host).unwrap();
            assert_eq!(hosts(list).contains(&host), contained, "{list} {host:?}");
        }
        for wrong in
            ["http://a.lan", "a.lan/", "*a.lan", "a.*", "a b", "a.lan:x", "user@a", "*.10.0.0.1"]
        {
            let error = AllowedHosts::parse(&[wrong.to_owned()]).unwrap_err();
            assert!(error.contains("--allowed-hosts") && error.contains(wrong), "{error}");
        }
    }

    #[test]
    fn origins_are_listed_by_scheme_host_and_port() {
        for (list, origin, listing) in [
            ("https://a.example", "https://a.example", OriginListing::Named),
            ("https://A.example/", "https://a.example:443", OriginListing::Named),
            ("https://a.example", "http://a.example", OriginListing::Absent),
            ("https://a.example", "https://a.example:8443", OriginListing::Absent),
            ("https://a.example", "https://b.a.example", OriginListing::Absent),
            ("https://a.example", "https://a.example.evil.com", OriginListing::Absent),
            ("http://a.example:3000", "http://a.example:3000", OriginListing::Named),
            ("http://a.example:*", "http://a.example:1", OriginListing::Named),
            ("http://[::1]:*", "http://[::1]:3000", OriginListing::Named),
            ("http://[fd00::2]:80", "http://[fd00::2]", OriginListing::Named),
            ("https://*.a.example", "https://x.a.example", OriginListing::Named),
            ("https://*.a.example", "https://a.example", OriginListing::Absent),
            ("chrome-extension://*", "chrome-extension://abcdef", OriginListing::Named),
            ("chrome-extension://abc", "chrome-extension://abd", OriginListing::Absent),
            ("tauri://localhost", "tauri://localhost", OriginListing::Named),
            ("*", "https://evil.com", OriginListing::Wildcard),
            ("*", "null", OriginListing::Wildcard),
            ("*,https://a.example", "https://a.example", OriginListing::Named),
            ("null", "null", OriginListing::Wildcard),
            ("https://a.example", "null", OriginListing::Absent),
            ("https://a.example", "https://a.example/", OriginListing::Absent),
            ("", "https://a.example", OriginListing::Absent),
        ] {
            assert_eq!(origins(list).listing(origin), listing, "{list} {origin}");
        }
        for wrong in [
            "a.example",
            "https://a.example/path",
            "https://",
            "https://a b",
            "https://a:x",
            "://a",
        ] {
            let error = AllowedOrigins::parse(&[wrong.to_owned()]).unwrap_err();
            assert!(error.contains("--allowed-origins") && error.contains(wrong), "{error}");
        }
    }
}
