//! Hosts and origins as request heads spell them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Longest host name in bytes, without the dot behind it.
const MAX_NAME_BYTES: usize = 253;
/// Longest part of a host name between two dots, in bytes.
const MAX_LABEL_BYTES: usize = 63;

/// A host with or without a port: the value of `Host` and `:authority`, and the end of an origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HostAuthority<'a> {
    /// The host.
    pub(crate) host: HostKind<'a>,
    /// The port, where one is given.
    pub(crate) port: Option<u16>,
}

/// A host, which is an address or a name that somebody has to resolve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostKind<'a> {
    /// An address. IPv4 addresses mapped into IPv6 are IPv4 addresses.
    Address(IpAddr),
    /// A name in any case, without the dot that may end it.
    Name(&'a str),
}

impl<'a> HostAuthority<'a> {
    /// Reads `HOST` or `HOST:PORT`; none where the text is empty, has a user name, or is otherwise malformed.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        if let Some(rest) = text.strip_prefix('[') {
            let (address, rest) = rest.split_once(']')?;
            let port = if rest.is_empty() { None } else { parse_port(rest.strip_prefix(':')?)? };
            // A zone names an interface of the client and says nothing here.
            let address = match address.split_once('%') {
                Some((address, zone)) if is_zone(zone) => address,
                Some(_) => return None,
                None => address,
            };
            let address = address.parse::<Ipv6Addr>().ok()?;
            return Some(Self {
                host: HostKind::Address(IpAddr::V6(address).to_canonical()),
                port,
            });
        }
        let (host, port) = match text.split_once(':') {
            Some((host, port)) => (host, parse_port(port)?),
            None => (text, None),
        };
        Some(Self { host: HostKind::parse(host)?, port })
    }
}

impl<'a> HostKind<'a> {
    /// Reads a host name or an IPv4 address.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let name = text.strip_suffix('.').unwrap_or(text);
        if let Ok(address) = name.parse::<Ipv4Addr>() {
            return Some(Self::Address(IpAddr::V4(address)));
        }
        let fits = |label: &str| {
            (1..=MAX_LABEL_BYTES).contains(&label.len())
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        (name.len() <= MAX_NAME_BYTES && name.split('.').all(fits)).then_some(Self::Name(name))
    }

    /// Returns whether the host always means the machine itself: `localhost`, a name below it, or an address
    /// of the loopback interface.
    pub(crate) fn is_loopback(self) -> bool {
        match self {
            Self::Address(address) => address.is_loopback(),
            Self::Name(name) => is_at_or_below(name, "localhost"),
        }
    }

    /// Returns whether the host is a single word such as `triton`, which no public DNS registry assigns.
    pub(crate) fn is_single_label(self) -> bool {
        match self {
            Self::Address(_) => false,
            Self::Name(name) => !name.contains('.') && !is_number(name),
        }
    }

    /// Returns whether both are the same host, by name.
    pub(crate) fn is(self, other: HostKind<'_>) -> bool {
        match (self, other) {
            (Self::Address(address), HostKind::Address(other)) => address == other,
            (Self::Name(name), HostKind::Name(other)) => name.eq_ignore_ascii_case(other),
            _ => false,
        }
    }
}

/// Returns whether a name equals another one, or is a subdomain of it. Case does not matter.
pub(crate) fn is_at_or_below(name: &str, other: &str) -> bool {
    name.eq_ignore_ascii_case(other) || is_below(name, other)
}

/// Returns whether a name is a subdomain of another one. Case does not matter.
pub(crate) fn is_below(name: &str, other: &str) -> bool {
    let Some(start) = name.len().checked_sub(other.len()) else { return false };
    let (Some(front), Some(end)) = (name.get(..start), name.get(start..)) else { return false };
    front.ends_with('.') && end.eq_ignore_ascii_case(other)
}

/// Returns whether a label is a number as old address parsers read it, such as `2130706433` and `0x7f000001`.
fn is_number(label: &str) -> bool {
    let hexadecimal = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
    match hexadecimal {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => label.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

fn is_zone(zone: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte);
    !zone.is_empty() && zone.bytes().all(fits)
}

/// Reads what stands behind the colon, which may be nothing.
fn parse_port(text: &str) -> Option<Option<u16>> {
    match text {
        "" => Some(None),
        digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok().map(Some),
        _ => None,
    }
}

/// The origin of a page, `SCHEME://HOST[:PORT]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WebOrigin<'a> {
    /// The scheme in any case.
    pub(crate) scheme: &'a str,
    /// Host and port.
    pub(crate) authority: HostAuthority<'a>,
}

impl<'a> WebOrigin<'a> {
    /// Reads an origin; none for `null` and for what has a path, a user name or another form.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (scheme, authority) = text.split_once("://")?;
        let authority = HostAuthority::parse(authority)?;
        is_scheme(scheme).then_some(Self { scheme, authority })
    }

    /// Returns whether the page was loaded over HTTP or HTTPS.
    pub(crate) fn is_web(self) -> bool {
        self.is_scheme("http") || self.is_scheme("https")
    }

    /// Returns whether the origin has this scheme.
    pub(crate) fn is_scheme(self, scheme: &str) -> bool {
        self.scheme.eq_ignore_ascii_case(scheme)
    }

    /// The port, or the usual one of the scheme.
    pub(crate) fn port(self) -> Option<u16> {
        self.authority.port.or_else(|| usual_port(self.scheme))
    }

    /// Returns whether a request to the host goes to the origin itself.
    pub(crate) fn serves(self, host: &HostAuthority<'_>) -> bool {
        let port = host.port.or_else(|| usual_port(self.scheme));
        self.is_web() && self.authority.host.is(host.host) && self.port() == port
    }
}

/// Returns whether a text is a scheme of URLs.
pub(crate) fn is_scheme(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.bytes().all(fits)
}

/// The port of URLs of a scheme that name none.
pub(crate) fn usual_port(scheme: &str) -> Option<u16> {
    match scheme {
        _ if scheme.eq_ignore_ascii_case("http") => Some(80),
        _ if scheme.eq_ignore_ascii_case("https") => Some(443),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_read_with_ports_and_in_any_case() {
        let address = |text: &str| HostKind::Address(text.parse().unwrap());
        for (text, host, port) in [
            ("localhost", HostKind::Name("localhost"), None),
            ("localhost.", HostKind::Name("localhost"), None),
            ("LocalHost:8000", HostKind::Name("LocalHost"), Some(8000)),
            ("evil.com:", HostKind::Name("evil.com"), None),
            ("a_b-c.d", HostKind::Name("a_b-c.d"), None),
            ("127.0.0.1:8000", address("127.0.0.1"), Some(8000)),
            ("127.0.0.1.", address("127.0.0.1"), None),
            ("127.0.0.1.evil.com", HostKind::Name("127.0.0.1.evil.com"), None),
            ("0x7f.1", HostKind::Name("0x7f.1"), None),
            ("127.1", HostKind::Name("127.1"), None),
            ("0177.0.0.1", HostKind::Name("0177.0.0.1"), None),
            ("[::1]", address("::1"), None),
            ("[::1]:8000", address("::1"), Some(8000)),
            ("[::ffff:127.0.0.1]:80", address("127.0.0.1"), Some(80)),
            ("[fe80::1%eth0]", address("fe80::1"), None),
            ("[FE80::1%25eth0]:1", address("fe80::1"), Some(1)),
        ] {
            assert_eq!(HostAuthority::parse(text), Some(HostAuthority { host, port }), "{text}");
        }
    }

    #[test]
    fn what_is_no_host_is_refused() {
        let long_label = "x".repeat(64);
        let long_name = format!("{}com", "abcdefg.".repeat(32));
        for text in [
            "",
            ":8000",
            ".",
            "..",
            ".localhost",
            "localhost..",
            "a..b",
            "user@localhost",
            "localhost@evil.com",
            "localhost:8000@evil.com",
            "localhost:http",
            "localhost:+80",
            "localhost:65536",
            "localhost:80:80",
            "localhost/",
            "localhost,evil.com",
            "local host",
            "localhost\u{0}",
            "lo\u{441}alhost",
            "%6cocalhost",
            "::1",
            "[::1",
            "[::1]8000",
            "[::1]:x",
            "[127.0.0.1]",
            "[localhost]",
            "[::1%]",
            "[::1%a/b]",
            "*",
            "*.localhost",
            &long_label,
            &long_name,
        ] {
            assert_eq!(HostAuthority::parse(text), None, "{text}");
        }
    }

    #[test]
    fn loopback_names_are_those_that_nobody_else_can_have() {
        let of = |text: &'static str| HostAuthority::parse(text).unwrap().host;
        for text in [
            "localhost",
            "LOCALHOST.",
            "app.localhost",
            "a.b.LocalHost:1",
            "127.0.0.1",
            "127.255.255.254:9",
            "[::1]",
            "[0:0:0:0:0:0:0:1]",
            "[::ffff:127.9.9.9]",
        ] {
            assert!(of(text).is_loopback(), "{text}");
        }
        for text in [
            "localhost.evil.com",
            "127.0.0.1.evil.com",
            "notlocalhost",
            "my-localhost",
            "0.0.0.0",
            "128.0.0.1",
            "[::]",
            "[::2]",
            "0x7f.1",
            "2130706433",
            "localhost.localdomain",
        ] {
            assert!(!of(text).is_loopback(), "{text}");
        }
    }

    #[test]
    fn a_single_label_is_a_word_and_no_number() {
        let of = |text: &'static str| HostAuthority::parse(text).unwrap().host;
        assert!(
            ["x", "triton:8000", "a1", "Triton."].iter().all(|text| of(text).is_single_label())
        );
        for text in ["a.b", "2130706433", "0x7f000001", "0X", "10.0.0.1", "[::1]"] {
            assert!(!of(text).is_single_label(), "{text}");
        }
    }

    #[test]
    fn origins_are_read_whole_or_not_at_all() {
        let origin = WebOrigin::parse("HTTPS://App.example").unwrap();
        assert!(origin.is_web() && origin.port() == Some(443));
        assert_eq!(WebOrigin::parse("http://[::1]:3000").unwrap().port(), Some(3000));
        assert_eq!(WebOrigin::parse("chrome-extension://abc").unwrap().port(), None);
        for text in [
            "",
            "null",
            "localhost",
            "http:localhost",
            "//localhost",
            "://localhost",
            "http://localhost/",
            "http://localhost:3000/path",
            "http://user@localhost",
            "http://localhost@evil.com",
            "http://localhost:99999",
            "http://",
            "1http://a",
            "http://localhost http://evil.com",
            "http://localhost, http://evil.com",
            "http://a?b",
        ] {
            assert_eq!(WebOrigin::parse(text), None, "{text}");
        }
    }

    #[test]
    fn an_origin_serves_its_own_host_and_port() {
        for (origin, host, same) in [
            ("http://localhost:8000", "localhost:8000", true),
            ("http://LOCALHOST:8000", "localhost.:8000", true),
            ("http://localhost", "localhost", true),
            ("http://localhost", "localhost:80", true),
            ("https://a.example", "a.example", true),
            ("https://a.example:443", "a.example", true),
            ("http://localhost:8000", "localhost:8001", false),
            ("http://localhost:8000", "127.0.0.1:8000", false),
            ("http://localhost", "localhost:8000", false),
            ("https://a.example", "a.example:80", false),
            ("http://[::1]:8000", "[0::1]:8000", true),
            ("ftp://localhost:8000", "localhost:8000", false),
        ] {
            let host = HostAuthority::parse(host).unwrap();
            assert_eq!(WebOrigin::parse(origin).unwrap().serves(&host), same, "{origin} {host:?}");
        }
    }
}
