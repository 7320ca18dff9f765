//! Accepts connections and answers the requests on them.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use tracing::Level;

use super::cors::{self, EndpointPurpose, PageAdmission};
use super::endpoints::{
    self, CallContext, EndpointReply, FoundEndpoint, InferDialect, RequestArrival,
};
use super::message::{ContentType, HttpHead, HttpResponse};
use super::wire::{self, HttpConnection, ReadError};
use crate::app::ServerState;
use crate::listen::ConnectionPeer;
use crate::listen::{ClientConnection, FrontEndListener, PendingConnection};
use crate::tasks::boxed;
use crate::trace;

/// Bodies beyond this size are decoded where blocking is allowed.
const LARGE_BODY_BYTES: usize = 1 << 20;

/// Finds and runs what answers a request.
pub(super) trait EndpointRouter: Send + Sync + 'static {
    /// The answer, or what it waits for.
    fn route(
        &self,
        app: &Arc<ServerState>,
        head: &HttpHead,
        body: Bytes,
        arrival: Option<RequestArrival>,
    ) -> EndpointReply;

    /// The purpose of the endpoint that the request is for.
    fn purpose(&self, head: &HttpHead) -> EndpointPurpose;
}

/// A route of two functions.
pub(super) struct RouteTable<R, P> {
    /// Gives the answer.
    pub(super) route: R,
    /// Says what a request asks for.
    pub(super) purpose: P,
}

impl<R, P> EndpointRouter for RouteTable<R, P>
where
    R: Fn(&Arc<ServerState>, &HttpHead, Bytes, Option<RequestArrival>) -> EndpointReply
        + Send
        + Sync
        + 'static,
    P: Fn(&HttpHead) -> EndpointPurpose + Send + Sync + 'static,
{
    fn route(
        &self,
        app: &Arc<ServerState>,
        head: &HttpHead,
        body: Bytes,
        arrival: Option<RequestArrival>,
    ) -> EndpointReply {
        (self.route)(app, head, body, arrival)
    }

    fn purpose(&self, head: &HttpHead) -> EndpointPurpose {
        (self.purpose)(head)
    }
}

/// Serves the inference protocol until the server stops; open connections live on until their requests are answered.
pub async fn serve(app: Arc<ServerState>, listener: FrontEndListener) {
    accept(app, listener, Arc::new(RouteTable { route, purpose })).await;
}

/// Accepts connections until the server stops.
pub(super) async fn accept(
    app: Arc<ServerState>,
    listener: FrontEndListener,
    route: Arc<dyn EndpointRouter>,
) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = app.stopping() => return,
        };
        match accepted {
            Ok(knock) => {
                let app = Arc::clone(&app);
                let route = Arc::clone(&route);
                tokio::spawn(boxed(async move { serve_connection(&app, knock, &*route).await }));
            }
            // Out of descriptors, for one; accepting again at once would spin.
            Err(error) => {
                tracing::warn!("failed to accept an HTTP connection: {error}");
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        }
    }
}

async fn serve_connection(
    app: &Arc<ServerState>,
    knock: PendingConnection,
    route: &dyn EndpointRouter,
) {
    let peer = knock.peer();
    let stream = match knock.enter().await {
        Ok(stream) => stream,
        Err(error) => return tracing::debug!("an HTTP connection failed to open: {error}"),
    };
    let mut connection = HttpConnection::new(stream);
    if let Err(ReadError::Refused(response)) = requests(app, &mut connection, route, peer).await
        && connection.send(&response, false, true).await.is_ok()
    {
        connection.linger().await;
    }
    connection.shutdown().await;
}

async fn requests(
    app: &Arc<ServerState>,
    connection: &mut HttpConnection<ClientConnection>,
    route: &dyn EndpointRouter,
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
        let arrival = received.map(|start| RequestArrival { start, end: Instant::now() });
        let mut response = match route.route(app, &head, body, arrival) {
            EndpointReply::Ready(response) => response,
            EndpointReply::Pending(response) => tokio::select! {
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
    app: &ServerState,
    connection: &mut HttpConnection<ClientConnection>,
    head: &HttpHead,
    response: &HttpResponse,
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
fn log(head: &HttpHead, response: &HttpResponse, start: Instant) {
    let seconds = start.elapsed().as_secs_f64();
    let method = head.method_name();
    let path = head.path();
    tracing::debug!("HTTP request: {method} {path} {} {seconds:.6} s", response.status());
}

/// Unknown paths, restricted ones and wrong methods are answered here, everything else by the row's handler.
fn route(
    app: &Arc<ServerState>,
    head: &HttpHead,
    body: Bytes,
    arrival: Option<RequestArrival>,
) -> EndpointReply {
    let Some(found) = endpoints::find(head.path()) else {
        return EndpointReply::Ready(HttpResponse::error(404, ContentType::Text, "Not Found"));
    };
    match restricted(app, head, &found).or_else(|| wrong_method(head, &found)) {
        Some(refusal) => EndpointReply::Ready(refusal),
        None => answer(app, head, body, arrival, &found, InferDialect::Kserve),
    }
}

fn purpose(head: &HttpHead) -> EndpointPurpose {
    EndpointPurpose::of(endpoints::find(head.path()).as_ref(), cors::errors_at(head.path()))
}

/// The answer to a request that lacks the header of a restricted endpoint.
pub(super) fn restricted(
    app: &ServerState,
    head: &HttpHead,
    found: &FoundEndpoint<'_>,
) -> Option<HttpResponse> {
    let header = |name: &str| head.header(name).map(str::as_bytes);
    let key = app.http_rules().restrictions.missing(found.row.category, header)?;
    let text = format!("This API is restricted, expecting header '{key}'");
    Some(HttpResponse::error(403, ContentType::Text, &text))
}

/// The answer to a method that the endpoint does not have.
pub(super) fn wrong_method(head: &HttpHead, found: &FoundEndpoint<'_>) -> Option<HttpResponse> {
    let wrong = !found.row.methods.contains(&head.method());
    wrong.then(|| HttpResponse::error(405, found.row.early, "Method Not Allowed"))
}

/// Runs the handler of a row.
pub(super) fn answer(
    app: &Arc<ServerState>,
    head: &HttpHead,
    body: Bytes,
    arrival: Option<RequestArrival>,
    found: &FoundEndpoint<'_>,
    dialect: InferDialect,
) -> EndpointReply {
    let large = body.len() > LARGE_BODY_BYTES;
    let call = CallContext {
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
