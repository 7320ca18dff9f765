//! Accepts connections and answers the requests on them.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use tracing::Level;

use super::cors::{self, EndpointPurpose, PageAdmission};
use super::message::{ContentType, Head, Response};
use super::rows::{self, Arrival, Call, Dialect, Found, Reply};
use super::wire::{self, Connection, ReadError};
use crate::app::App;
use crate::browser::ConnectionPeer;
use crate::listen::{Knock, Listener, Stream};
use crate::trace;

/// Bodies beyond this size are decoded where blocking is allowed.
const LARGE_BODY_BYTES: usize = 1 << 20;

/// Finds and runs what answers a request.
pub(super) trait Route: Send + Sync + 'static {
    /// The answer, or what it waits for.
    fn route(&self, app: &Arc<App>, head: &Head, body: Bytes, arrival: Option<Arrival>) -> Reply;

    /// The purpose of the endpoint that the request is for.
    fn purpose(&self, head: &Head) -> EndpointPurpose;
}

/// A route of two functions.
pub(super) struct RouteTable<R, P> {
    /// Gives the answer.
    pub(super) route: R,
    /// Says what a request asks for.
    pub(super) purpose: P,
}

impl<R, P> Route for RouteTable<R, P>
where
    R: Fn(&Arc<App>, &Head, Bytes, Option<Arrival>) -> Reply + Send + Sync + 'static,
    P: Fn(&Head) -> EndpointPurpose + Send + Sync + 'static,
{
    fn route(&self, app: &Arc<App>, head: &Head, body: Bytes, arrival: Option<Arrival>) -> Reply {
        (self.route)(app, head, body, arrival)
    }

    fn purpose(&self, head: &Head) -> EndpointPurpose {
        (self.purpose)(head)
    }
}

/// Serves the inference protocol until the server stops; open connections live on until their requests are answered.
pub async fn serve(app: Arc<App>, listener: Listener) {
    accept(app, listener, Arc::new(RouteTable { route, purpose })).await;
}

/// Accepts connections until the server stops.
pub(super) async fn accept(app: Arc<App>, listener: Listener, route: Arc<dyn Route>) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = app.stopping() => return,
        };
        match accepted {
            Ok(knock) => {
                let (app, route) = (Arc::clone(&app), Arc::clone(&route));
                tokio::spawn(async move { converse(&app, knock, &*route).await });
            }
            // Out of descriptors, for one; accepting again at once would spin.
            Err(error) => {
                tracing::warn!("failed to accept an HTTP connection: {error}");
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        }
    }
}

async fn converse(app: &Arc<App>, knock: Knock, route: &dyn Route) {
    let peer = knock.peer();
    let stream = match knock.enter().await {
        Ok(stream) => stream,
        Err(error) => return tracing::debug!("an HTTP connection failed to open: {error}"),
    };
    let mut connection = Connection::new(stream);
    if let Err(ReadError::Refused(response)) = requests(app, &mut connection, route, peer).await
        && connection.send(&response, false, true).await.is_ok()
    {
        connection.linger().await;
    }
    connection.shutdown().await;
}

async fn requests(
    app: &Arc<App>,
    connection: &mut Connection<Stream>,
    route: &dyn Route,
    peer: ConnectionPeer,
) -> Result<(), ReadError> {
    while let Some(head) = connection.head().await? {
        let _request = app.count_request();
        let start = tracing::enabled!(Level::DEBUG).then(Instant::now);
        let received = app.tracer().is_active().then(Instant::now);
        let grant = match cors::admit(app, &head, peer, || route.purpose(&head)) {
            PageAdmission::Granted(grant) => grant,
            PageAdmission::Answered(response) => {
                let goes_on = answer_at_once(app, connection, &head, &response).await?;
                if let Some(start) = start {
                    log(&head, &response, start);
                }
                if goes_on {
                    continue;
                }
                break;
            }
        };
        let body = connection.body(&head).await.map_err(|error| grant.apply_to_error(error))?;
        let arrival = received.map(|start| Arrival { start, end: Instant::now() });
        let mut response = match route.route(app, &head, body, arrival) {
            Reply::Now(response) => response,
            Reply::Later(response) => tokio::select! {
                // An answer that is there needs no look at the connection.
                biased;
                response = response => response,
                // Dropping the future cancels the inference.
                () = connection.closed() => return Err(ReadError::Closed),
            },
        };
        grant.apply(&mut response);
        // A server that stops lets each connection have one more answer, or clients that never pause keep it up.
        let endless = response.pieces.is_some() && head.old;
        let close = wire::wants_close(&head) || response.close || endless || app.is_stopping();
        if let Some(trace) = &response.trace {
            trace.stamp(trace::HTTP_SEND_START);
        }
        connection.send(&response, head.old, close).await?;
        if let Some(pieces) = &mut response.pieces {
            connection.send_pieces(pieces, head.old).await?;
        }
        if let Some(trace) = &response.trace {
            trace.stamp(trace::HTTP_SEND_END);
        }
        if let Some(start) = start {
            log(&head, &response, start);
        }
        if close {
            break;
        }
    }
    Ok(())
}

/// Answers a request whose body is not read; says whether the connection goes on.
async fn answer_at_once(
    app: &App,
    connection: &mut Connection<Stream>,
    head: &Head,
    response: &Response,
) -> Result<bool, ReadError> {
    let unread = wire::has_body(head)?;
    let close = unread || wire::wants_close(head) || app.is_stopping();
    connection.send(response, head.old, close).await?;
    if unread {
        connection.linger().await;
    }
    Ok(!close)
}

/// A line of the access log, behind the answer.
fn log(head: &Head, response: &Response, start: Instant) {
    let seconds = start.elapsed().as_secs_f64();
    let (method, path) = (head.method_name(), head.path());
    tracing::debug!("HTTP request: {method} {path} {} {seconds:.6} s", response.status());
}

/// Unknown paths, restricted ones and wrong methods are answered here, everything else by the row's handler.
fn route(app: &Arc<App>, head: &Head, body: Bytes, arrival: Option<Arrival>) -> Reply {
    let Some(found) = rows::find(head.path()) else {
        return Reply::Now(Response::error(404, ContentType::Text, "Not Found"));
    };
    match restricted(app, head, &found).or_else(|| wrong_method(head, &found)) {
        Some(refusal) => Reply::Now(refusal),
        None => answer(app, head, body, arrival, &found, Dialect::Kserve),
    }
}

fn purpose(head: &Head) -> EndpointPurpose {
    EndpointPurpose::of(rows::find(head.path()).as_ref(), cors::errors_at(head.path()))
}

/// The answer to a request that lacks the header of a restricted endpoint.
pub(super) fn restricted(app: &App, head: &Head, found: &Found<'_>) -> Option<Response> {
    let header = |name: &str| head.header(name).map(str::as_bytes);
    let key = app.http_rules().restrictions.missing(found.row.category, header)?;
    let text = format!("This API is restricted, expecting header '{key}'");
    Some(Response::error(403, ContentType::Text, &text))
}

/// The answer to a method that the endpoint does not have.
pub(super) fn wrong_method(head: &Head, found: &Found<'_>) -> Option<Response> {
    let wrong = !found.row.methods.contains(&head.method());
    wrong.then(|| Response::error(405, found.row.early, "Method Not Allowed"))
}

/// Runs the handler of a row.
pub(super) fn answer(
    app: &Arc<App>,
    head: &Head,
    body: Bytes,
    arrival: Option<Arrival>,
    found: &Found<'_>,
    dialect: Dialect,
) -> Reply {
    let large = body.len() > LARGE_BODY_BYTES;
    let call = Call {
        app,
        head,
        body,
        model: found.model,
        version: found.version,
        in_repository: found.in_repository,
        dialect,
        arrival,
    };
    // Decoding this much would keep other connections of the thread waiting.
    if large {
        tokio::task::block_in_place(|| (found.row.handler)(&call))
    } else {
        (found.row.handler)(&call)
    }
}
