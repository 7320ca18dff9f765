//! Address of a collector.

/// An address that is `http://host[:port]/path`; without a scheme that is meant too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CollectorUrl {
    pub(super) authority: String,
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) path: String,
}

impl CollectorUrl {
    /// Reads an address.
    ///
    /// # Errors
    /// Returns a sentence when spans cannot be sent to the address.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            format!(
                "--trace-config opentelemetry,url expects http://HOST:PORT/PATH, {why}: '{text}'"
            )
        };
        let rest = text.strip_prefix("http://").unwrap_or(text);
        if rest.contains("://") {
            return Err(wrong("got another scheme"));
        }
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, "/v1/traces"),
        };
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| wrong("the port is no number up to 65535"))?)
            }
            _ => (authority, 80),
        };
        let clean = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if host.is_empty() || !clean(authority) || !clean(path) {
            return Err(wrong("it names no host or has characters that an address cannot have"));
        }
        Ok(Self {
            authority: authority.to_owned(),
            host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port,
            path: path.to_owned(),
        })
    }
}
