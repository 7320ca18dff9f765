//! Accepts connections and answers the requests on them.

use std::sync::Arc;
use std::time::Instant;

use galatea_serving::text_beginning;
use tokio::io::{AsyncRead, AsyncWrite};
use tracing::Level;

use super::cors::{self, EndpointPurpose, PageAdmission};
use super::endpoints::{EndpointReply, InferDialect, RequestArrival, RequestClient};
use super::framing::{self, ReadError};
use super::gate::{self, AdmittedRequest};
use super::message::{ContentType, HttpHead, HttpResponse};
use super::tables;
use super::target::{EndpointRouter, EndpointTarget, ReceivedRequest, RouteTarget, TargetKind};
use super::wire::HttpConnection;
use crate::app::ServerState;
use crate::body_budget::{BodyLease, BudgetExhausted};
use crate::connection_count::ConnectionRest;
use crate::listen::ConnectionPeer;
use crate::listen::{FrontEndListener, PendingConnection};
use crate::tasks::boxed;
use crate::trace;

/// Serves the inference protocol until the server stops; open connections live on until their requests are answered.
pub async fn serve(app: Arc<ServerState>, listener: FrontEndListener) {
    accept(app, listener, Arc::new(find)).await;
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
    let counted = match app.connections_open().enter(peer.address) {
        Ok(entry) => entry,
        Err(refusal) => return tracing::debug!("an HTTP connection is closed: {refusal:?}"),
    };
    let stream = match knock.enter().await {
        Ok(stream) => stream,
        Err(error) => return tracing::debug!("an HTTP connection failed to open: {error}"),
    };
    let budget = Arc::clone(app.body_budget());
    let mut connection =
        HttpConnection::new(stream).with_budget(budget).with_stall(app.limits().stall);
    let served = ServedPeer { peer, rest: counted.rest() };
    if let Err(ReadError::Refused(response)) = requests(app, &mut connection, route, served).await
        && connection.send(&response, false, true).await.is_ok()
    {
        connection.linger().await;
    }
    connection.shutdown().await;
}

/// Client of a connection, and the rest of the connection between its requests.
#[derive(Clone, Copy)]
pub(super) struct ServedPeer<'a> {
    /// The client.
    pub(super) peer: ConnectionPeer,
    /// Tells when the connection has to make room for others.
    pub(super) rest: &'a ConnectionRest,
}

/// Answers the requests of a connection until one side ends it.
///
/// # Errors
/// Returns the refusal that is still to be sent, or that the client has gone.
pub(super) async fn requests<S: AsyncRead + AsyncWrite + Unpin>(
    app: &Arc<ServerState>,
    connection: &mut HttpConnection<S>,
    route: &dyn EndpointRouter,
    served: ServedPeer<'_>,
) -> Result<(), ReadError> {
    let ServedPeer { peer, rest } = served;
    while let Some(head) = next_head(connection, rest).await? {
        let _request = app.count_request();
        let start = tracing::enabled!(Level::DEBUG).then(Instant::now);
        let received = app.tracer().is_active().then(Instant::now);
        let target = route.find(&head);
        let grant = match cors::admit(app, &head, peer, &target.purpose) {
            PageAdmission::Granted(grant) => grant,
            PageAdmission::Answered(response) => {
                let unread = framing::has_body(&head)?;
                let goes_on = answer_at_once(app, connection, &head, &response, unread).await?;
                if let Some(start) = start {
                    log(&head, &response, start, peer);
                }
                if goes_on {
                    continue;
                }
                break;
            }
        };
        let AdmittedRequest { target, pass } = match gate::admit(app, &head, target) {
            Ok(admitted) => admitted,
            Err(mut response) => {
                grant.apply(&mut response);
                let unread = connection.skip_body(&head).await?;
                let goes_on = answer_at_once(app, connection, &head, &response, unread).await?;
                if let Some(start) = start {
                    log(&head, &response, start, peer);
                }
                if goes_on {
                    continue;
                }
                break;
            }
        };
        connection.limit_body(target.most_body_bytes());
        let body = connection.body(&head).await.map_err(|error| grant.apply_to_error(error))?;
        let arrival = received.map(|start| RequestArrival { start, end: Instant::now() });
        let client = RequestClient { pass: pass.as_ref(), address: peer.address };
        let request = ReceivedRequest { app, head: &head, body, arrival, client };
        let mut response = match target.answer(request) {
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
        let close = framing::wants_close(&head) || response.close || endless || app.is_stopping();
        if let Some(trace) = &response.trace {
            trace.stamp(trace::HTTP_SEND_START);
        }
        let _unsent = match app.answer_budget().take(response.body_bytes()).await {
            Ok(lease) => lease,
            Err(BudgetExhausted) => {
                response = unsent_answer();
                grant.apply(&mut response);
                BodyLease::default()
            }
        };
        connection.send(&response, head.old, close).await?;
        if let Some(pieces) = &mut response.pieces {
            connection.send_pieces(pieces, head.old).await?;
        }
        if let Some(trace) = &response.trace {
            trace.stamp(trace::HTTP_SEND_END);
        }
        if let Some(start) = start {
            log(&head, &response, start, peer);
        }
        if close {
            break;
        }
    }
    Ok(())
}

/// Reads the next head; none when the peer closed between requests, or has to make room for others.
async fn next_head<S: AsyncRead + AsyncWrite + Unpin>(
    connection: &mut HttpConnection<S>,
    rest: &ConnectionRest,
) -> Result<Option<HttpHead>, ReadError> {
    let begun = tokio::select! {
        biased;
        begun = connection.rest_until_begun() => begun?,
        () = rest.should_end() => return Ok(None),
    };
    if begun { connection.head().await } else { Ok(None) }
}

/// Answers a request that is not let in, whose body may be unread; says whether the connection goes on.
async fn answer_at_once<S: AsyncRead + AsyncWrite + Unpin>(
    app: &ServerState,
    connection: &mut HttpConnection<S>,
    head: &HttpHead,
    response: &HttpResponse,
    unread: bool,
) -> Result<bool, ReadError> {
    let close = unread || response.close || framing::wants_close(head) || app.is_stopping();
    connection.send(response, head.old, close).await?;
    if unread {
        connection.linger().await;
    }
    Ok(!close)
}

/// The answer in the place of one for which there is no memory beside those that other clients have not read yet.
fn unsent_answer() -> HttpResponse {
    let text = "answers that other clients have not read yet take all memory for them; try again";
    HttpResponse::error(503, ContentType::Json, text).with_header("Retry-After", "1")
}

/// A line of the access log, behind the answer.
fn log(head: &HttpHead, response: &HttpResponse, start: Instant, peer: ConnectionPeer) {
    let seconds = start.elapsed().as_secs_f64();
    let method = head.method_name();
    let path = head.path();
    let status = response.status();
    let peer = peer.address.map_or_else(|| "a socket".to_owned(), |address| address.to_string());
    let id = head.header("x-request-id").map(|id| text_beginning(id, MAX_LOGGED_ID_BYTES));
    let id = id.map(|id| format!(", id '{id}'")).unwrap_or_default();
    tracing::debug!("HTTP request: {method} {path} {status} {seconds:.6} s, from {peer}{id}");
}

/// The most bytes of a client's own id of a request that are logged.
const MAX_LOGGED_ID_BYTES: usize = 128;

/// Finds the endpoint of a head.
pub(super) fn find(head: &HttpHead) -> RouteTarget<'_> {
    let path = head.path();
    let found = tables::find(path);
    RouteTarget {
        purpose: EndpointPurpose::of(found.as_ref(), cors::errors_at(path)),
        kind: match found {
            Some(found) => TargetKind::Endpoint(EndpointTarget::new(found, InferDialect::Kserve)),
            None => TargetKind::Nothing(HttpResponse::error(404, ContentType::Text, "Not Found")),
        },
    }
}
