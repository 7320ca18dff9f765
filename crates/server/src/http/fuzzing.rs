//! HTTP/1 for fuzz targets: connections in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::framing::ReadError;
use super::message::{ContentType, HttpHead, HttpResponse};
use super::serve::{self, ServedPeer};
use super::target::{EndpointRouter, RouteTarget, TargetKind};
use super::wire::HttpConnection;
use crate::app::ServerState;
use crate::connection_count::ConnectionCount;
use crate::fuzz_stream::FuzzStream;
use crate::listen::{ConnectionPath, ConnectionPeer};

/// Requests of a connection as they were read.
#[derive(Debug, PartialEq)]
pub(crate) struct ReadRequests {
    /// Target and body of each request.
    pub(crate) whole: Vec<(String, Vec<u8>)>,
    /// Status of the refusal that ends the connection.
    pub(crate) refusal: Option<u16>,
}

/// Reads all requests of a connection whose bytes come in pieces of so many bytes.
pub(crate) async fn requests(bytes: &[u8], piece: usize) -> ReadRequests {
    let (stream, _) = FuzzStream::new(bytes, piece);
    let mut connection = HttpConnection::new(stream);
    let mut whole = Vec::new();
    loop {
        let read = async {
            let Some(head) = connection.head().await? else { return Ok(None) };
            let body = connection.body(&head).await?;
            let name = format!("{} {:?} {}", head.method_name(), head.authority(), head.path());
            Ok::<_, ReadError>(Some((name, body.to_vec())))
        };
        match read.await {
            Ok(Some(request)) => whole.push(request),
            Err(ReadError::Refused(response)) => {
                return ReadRequests { whole, refusal: Some(response.status()) };
            }
            // What is cut off looks like another protocol as long as its first line has not ended.
            Ok(None) | Err(ReadError::Closed) => return ReadRequests { whole, refusal: None },
        }
    }
}

/// Finds endpoints, but for those that change the server or write files, and counts the requests.
struct CountedRouter(Arc<AtomicUsize>);

impl EndpointRouter for CountedRouter {
    fn find<'a>(&'a self, head: &'a HttpHead) -> RouteTarget<'a> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let found = serve::find(head);
        let changes = match &found.kind {
            TargetKind::Endpoint(target) => target.found.row.category.is_administrative(),
            TargetKind::Metrics | TargetKind::Nothing(_) => false,
        };
        if !changes {
            return found;
        }
        let nothing = HttpResponse::error(404, ContentType::Text, "Not Found");
        RouteTarget { kind: TargetKind::Nothing(nothing), ..found }
    }
}

/// Answers the requests of a connection, and gives all bytes of the answers. The client waits for the answers of all
/// requests that are complete, and leaves in the middle of one that is not.
pub(crate) async fn answered(app: &Arc<ServerState>, bytes: &[u8]) -> Vec<u8> {
    let complete = requests(bytes, usize::MAX).await.whole.len();
    let begun = Arc::new(AtomicUsize::new(0));
    let router = CountedRouter(Arc::clone(&begun));
    let server = Arc::clone(app);
    let (stream, written) = FuzzStream::new(bytes, usize::MAX);
    let stream = stream
        .waiting(move || server.open_requests() > 0 && begun.load(Ordering::SeqCst) <= complete);
    let mut connection = HttpConnection::new(stream).with_budget(Arc::clone(app.body_budget()));
    let peer = ConnectionPeer { path: ConnectionPath::Loopback, encrypted: false, address: None };
    let count = Arc::new(ConnectionCount::new(1000));
    let Ok(entry) = count.enter(None) else { return Vec::new() };
    let served = ServedPeer { peer, rest: entry.rest() };
    let ended = serve::requests(app, &mut connection, &router, served).await;
    if let Err(ReadError::Refused(response)) = ended {
        connection.send(&response, false, true).await.ok();
    }
    written.take()
}
