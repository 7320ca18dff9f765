//! Rules on the browser pages that may speak to the server.
//!
//! A page can send requests to any address that its user's machine reaches, the loopback interface included. It sends
//! them with the `Host` of its own choice where it makes its name resolve to that address (DNS rebinding), and with
//! its `Origin` otherwise. [`BrowserRules`] decides by these headers alone, before a body is read. The rules are told
//! to users in `docs/security.md`.

mod allowed;
mod authority;
mod decision;
mod hostname;
mod marks;

pub(crate) use allowed::{AllowedHosts, AllowedOrigins};
pub(crate) use decision::{BrowserRequest, ContentDemand, EndpointClass, PageRefusal};
pub(crate) use marks::BrowserMarks;

use self::hostname::own_names;
use crate::listen::ListenPlace;

/// Hosts and origins that the server takes requests from.
#[derive(Debug, Clone, Default)]
pub struct BrowserRules {
    hosts: AllowedHosts,
    origins: AllowedOrigins,
}

impl BrowserRules {
    /// Reads the values of `--allowed-hosts` and `--allowed-origins`. Names of addresses that the server listens at
    /// are allowed hosts, and so are the machine's own where one of these addresses is not of the loopback interface.
    ///
    /// # Errors
    /// Returns a sentence about the first entry that cannot be used.
    pub fn parse(
        hosts: &[String],
        origins: &[String],
        places: &[ListenPlace],
    ) -> Result<Self, String> {
        let mut hosts = AllowedHosts::parse(hosts)?;
        let origins = AllowedOrigins::parse(origins)?;
        for place in places {
            if let ListenPlace::Tcp(host, _) = place {
                hosts.add_own(host);
            }
            if !place.is_loopback() {
                own_names().iter().for_each(|name| hosts.add_own(name));
            }
        }
        Ok(Self { hosts, origins })
    }
}
