//! The decision about a request from its head, before its body is read or asked for: keys first, then what is there.

use super::message::{HttpHead, HttpResponse};
use super::target::{ReadyTarget, RouteTarget};
use crate::access::ClientPass;
use crate::app::ServerState;

/// A request whose body may be read.
#[derive(Debug)]
pub(super) struct AdmittedRequest<'a> {
    /// Target that answers it.
    pub(super) target: ReadyTarget<'a>,
    /// Its place among the requests of its key; none where keys are not asked for.
    pub(super) pass: Option<ClientPass>,
}

/// Lets a request in.
///
/// # Errors
/// Returns the answer to a request that is not let in.
pub(super) fn admit<'a>(
    app: &ServerState,
    head: &HttpHead,
    target: RouteTarget<'a>,
) -> Result<AdmittedRequest<'a>, HttpResponse> {
    let RouteTarget { purpose, kind } = target;
    let refused = |refusal| purpose.without_access(&refusal);
    let key = match app.access() {
        Some(access) => {
            let headers = head.headers().map(|(name, value)| (name, value.as_bytes()));
            access.identify(purpose.access(), headers).map_err(refused)?
        }
        None => None,
    };
    let target = kind.ready(app, head)?;
    // What is refused for another reason counts for no limit.
    let pass = key.map(|key| key.begin()).transpose().map_err(refused)?;
    Ok(AdmittedRequest { target, pass })
}
