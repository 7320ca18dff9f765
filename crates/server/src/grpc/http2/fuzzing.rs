//! HTTP/2 for fuzz targets: a connection in memory and a service that echoes.

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue};
use tonic::Status;
use tonic::body::Body;

use super::frame::FrameParser;
use super::hpack::{HpackDecoder, encode};
use super::{
    AnswerFuture, CallKind, ConnectionSettings, GrpcService, Http2Connection, InboundBody,
    WholeAnswer,
};
use crate::fuzz_stream::FuzzStream;

/// Opening of a connection: the preface, and settings that change nothing.
const OPENING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// Bytes before the payload of a frame.
const HEAD_BYTES: usize = 9;
/// Limit of heads in bytes.
const LIMIT: usize = 2048;

/// Unary calls give their message back, and others their body as it comes.
#[derive(Clone)]
struct EchoService;

impl GrpcService for EchoService {
    type Call = ();

    fn enter(&self, head: &mut Parts, _: Option<&Bytes>) -> ((), CallKind) {
        let kind = match head.uri.path() {
            "/" => CallKind::Gathered,
            "/index.html" => CallKind::Streamed,
            _ => CallKind::Refused(Status::unimplemented("")),
        };
        ((), kind)
    }

    fn look(_: &mut (), _: &HeaderMap) {}

    fn unary(&self, _: Parts, message: Bytes) -> AnswerFuture<WholeAnswer> {
        Box::pin(async move {
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", HeaderValue::from_static("0"));
            WholeAnswer {
                headers: HeaderMap::new(),
                pieces: vec![message],
                trailers: Some(trailers),
            }
        })
    }

    fn call(&self, request: http::Request<InboundBody>) -> AnswerFuture<http::Response<Body>> {
        Box::pin(async move { http::Response::new(Body::new(request.into_body())) })
    }
}

/// Serves a connection whose frames come in pieces, the length of which is the first byte, and looks at the frames that
/// it sends.
pub(crate) async fn frames(data: &[u8]) {
    let (piece, bytes) = data.split_first().map_or((1, data), |(first, rest)| (*first, rest));
    let all = [OPENING, bytes].concat();
    let (stream, written) = FuzzStream::new(&all, usize::from(piece).max(1));
    let (connection, _closer) =
        Http2Connection::new(stream, EchoService, ConnectionSettings::default());
    // A connection that ends with an error is one of the outcomes.
    connection.run().await.ok();
    let sent = written.take();
    let mut rest = sent.as_slice();
    while let Some((head, others)) = rest.split_first_chunk::<HEAD_BYTES>() {
        let [a, b, c, kind, _, stream @ ..] = *head;
        let length = usize::try_from(u32::from_be_bytes([0, a, b, c])).unwrap_or(usize::MAX);
        // Both windows and the client's limit allow no longer frame.
        assert!(length <= 1 << 24, "a frame of {length} bytes");
        assert!(kind <= 9 && kind != 5, "a frame of kind {kind}");
        let stream = u32::from_be_bytes(stream);
        assert!(stream == 0 || stream % 2 == 1, "a frame of stream {stream}");
        let Some(others) = others.get(length..) else { break };
        rest = others;
    }
}

/// Reads coded heads one after another. What was read is coded and read again, and must be the same.
pub(crate) fn heads(data: &[u8]) {
    let mut decoder = HpackDecoder::new();
    let mut rest = data;
    while let Some((&length, others)) = rest.split_first() {
        let (block, others) = others.split_at(usize::from(length).min(others.len()));
        rest = others;
        let Ok(head) = decoder.decode(block, LIMIT) else { return };
        let mut coded = Vec::new();
        encode(&mut coded, None, &head.headers);
        let again = HpackDecoder::new().decode(&coded, usize::MAX);
        assert!(again.is_ok_and(|again| again.headers == head.headers), "headers change");
    }
    // The same bytes as the payload of frames.
    let mut parser = FrameParser::new();
    let all = [OPENING, data].concat();
    let mut input = all.as_slice();
    while let Ok(Some(_)) = parser.next(&mut input) {}
}
