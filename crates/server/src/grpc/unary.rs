//! `ModelInfer` with large tensors: a message is put together once, where its first tensor lies aligned, and a
//! response's tensors go to the socket from where they are.
//!
//! Tonic's own framing copies every message into one buffer on the way in and on the way out. It keeps the calls that
//! are compressed or malformed.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::{Body as _, Frame};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use prost::Message;
use prost::encoding::{WireType, decode_key, decode_varint, encode_key, encode_varint};
use tonic::Status;
use tonic::body::Body;
use tonic::metadata::MetadataMap;

use super::proto::inference::grpc_inference_service_server::GrpcInferenceService;
use super::proto::inference::{ModelInferRequest, ModelInferResponse};

/// Path of the call.
pub(super) const PATH: &str = "/inference.GRPCInferenceService/ModelInfer";
/// Bytes before each message: a compression flag and the length.
const PREFIX_BYTES: usize = 5;
/// Where tensors like to begin.
const ALIGNMENT: usize = 64;
/// Longest message, as in Triton.
const MAX_MESSAGE_BYTES: usize = i32::MAX as usize;
/// Memory taken at once for an announced message; beyond it memory grows with what arrives.
const EAGER_BYTES: usize = 64 << 20;
/// Fields that hold raw tensors in a request and in a response.
const RAW_INPUTS: u32 = 7;
const RAW_OUTPUTS: u32 = 6;
/// Tensors up to this size are copied behind the message's head: one frame is cheaper than two.
const COPIED_TENSOR_BYTES: usize = 8 * 1024;

/// What reading a request's body gave.
pub(super) enum Read {
    /// The message, without its prefix.
    Message(Bytes),
    /// Not an uncompressed message; the whole body is for tonic.
    Other(Body),
}

/// Whether the call is one for [`call`].
pub(super) fn is_plain(request: &Request<Incoming>) -> bool {
    let encoding = request.headers().get("grpc-encoding");
    request.uri().path() == PATH && encoding.is_none_or(|name| name == "identity")
}

/// Reads one message.
///
/// # Errors
/// When the client goes away or its message is longer than it may be.
pub(super) async fn read(mut body: Incoming) -> Result<Read, Status> {
    let first = loop {
        match body.frame().await {
            None => return Ok(Read::Other(Body::empty())),
            Some(Err(error)) => return Err(gone(&error)),
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) if data.is_empty() => {}
                Ok(data) => break data,
                Err(_trailers) => return Ok(Read::Other(Body::empty())),
            },
        }
    };
    let length = match *first {
        [0, a, b, c, d, ..] => u32::from_be_bytes([a, b, c, d]) as usize,
        _ => return Ok(Read::Other(Body::new(Rejoined { first: Some(first), rest: body }))),
    };
    if length > MAX_MESSAGE_BYTES {
        return Err(Status::out_of_range(format!(
            "Error, decoded message length too large: found {length} bytes, the limit is: {MAX_MESSAGE_BYTES} bytes"
        )));
    }
    let here = first.slice(PREFIX_BYTES..);
    let message = if here.len() >= length {
        here.slice(..length)
    } else {
        assemble(&here, length, &mut body).await?
    };
    while !body.is_end_stream() {
        match body.frame().await {
            None => break,
            Some(Err(error)) => return Err(gone(&error)),
            Some(Ok(_)) => {}
        }
    }
    Ok(Read::Message(message))
}

fn gone(error: &hyper::Error) -> Status {
    Status::cancelled(format!("the request could not be read: {error}"))
}

/// The message in one piece, placed so that its first raw tensor is aligned.
async fn assemble(here: &Bytes, length: usize, body: &mut Incoming) -> Result<Bytes, Status> {
    let mut whole = BytesMut::with_capacity(length.min(EAGER_BYTES) + ALIGNMENT);
    let tensor = whole.as_ptr() as usize + first_raw(here).unwrap_or(0);
    let pad = tensor.next_multiple_of(ALIGNMENT) - tensor;
    whole.put_bytes(0, pad);
    whole.put_slice(here);
    while whole.len() < pad + length {
        let data = match body.frame().await {
            None => return Err(Status::internal("Unexpected EOF decoding stream.")),
            Some(Err(error)) => return Err(gone(&error)),
            Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
        };
        let missing = pad + length - whole.len();
        whole.put_slice(data.get(..missing).unwrap_or(&data));
    }
    Ok(whole.freeze().slice(pad..))
}

/// Where the first raw tensor begins in the message whose first bytes these are.
fn first_raw(head: &[u8]) -> Option<usize> {
    let mut rest = head;
    loop {
        let (field, wire) = decode_key(&mut rest).ok()?;
        let skipped = match wire {
            WireType::LengthDelimited => {
                let length = usize::try_from(decode_varint(&mut rest).ok()?).ok()?;
                if field == RAW_INPUTS {
                    return Some(head.len() - rest.len());
                }
                length
            }
            WireType::Varint => decode_varint(&mut rest).map(|_| 0).ok()?,
            WireType::SixtyFourBit => 8,
            WireType::ThirtyTwoBit => 4,
            WireType::StartGroup | WireType::EndGroup => return None,
        };
        rest = rest.get(skipped..)?;
    }
}

/// Answers a call whose message is read.
pub(super) async fn call<S: GrpcInferenceService>(
    service: &S,
    headers: HeaderMap,
    extensions: http::Extensions,
    message: Bytes,
) -> Result<Response<Body>, Infallible> {
    let answer = match ModelInferRequest::decode(message) {
        Err(_) => Err(Status::internal("Unable to parse request")),
        Ok(message) => {
            let metadata = MetadataMap::from_headers(headers);
            service.model_infer(tonic::Request::from_parts(metadata, extensions, message)).await
        }
    };
    let written = answer.and_then(|answer| {
        let (metadata, message, _) = answer.into_parts();
        Ok((metadata, segments(message)?))
    });
    Ok(match written {
        Ok((metadata, segments)) => {
            let mut response = Response::new(Body::new(segments));
            *response.headers_mut() = metadata.into_headers();
            let content_type = HeaderValue::from_static("application/grpc");
            response.headers_mut().insert(http::header::CONTENT_TYPE, content_type);
            response
        }
        Err(status) => status.into_http(),
    })
}

/// The body of a response: pieces of the one message, then the status.
struct Segments {
    parts: VecDeque<Bytes>,
    ended: bool,
}

fn segments(mut message: ModelInferResponse) -> Result<Segments, Status> {
    let tensors = std::mem::take(&mut message.raw_output_contents);
    let framed = |tensor: &Bytes| 1 + prost::length_delimiter_len(tensor.len()) + tensor.len();
    let length = message.encoded_len() + tensors.iter().map(framed).sum::<usize>();
    let announced = u32::try_from(length).ok().filter(|_| length <= MAX_MESSAGE_BYTES);
    let Some(announced) = announced else {
        return Err(Status::out_of_range(format!(
            "the response has {length} bytes, the limit is {MAX_MESSAGE_BYTES} bytes"
        )));
    };
    let copied = tensors.iter().filter(|tensor| tensor.len() <= COPIED_TENSOR_BYTES);
    let copied: usize = copied.map(|tensor| tensor.len()).sum();
    let capacity = PREFIX_BYTES + message.encoded_len() + copied + 16 * tensors.len();
    let mut head = BytesMut::with_capacity(capacity);
    head.put_u8(0);
    head.put_u32(announced);
    message.encode_raw(&mut head);
    let mut parts = VecDeque::with_capacity(1 + 2 * tensors.len());
    for tensor in tensors {
        encode_key(RAW_OUTPUTS, WireType::LengthDelimited, &mut head);
        encode_varint(tensor.len() as u64, &mut head);
        if tensor.len() <= COPIED_TENSOR_BYTES {
            head.put_slice(&tensor);
        } else {
            parts.push_back(head.split().freeze());
            parts.push_back(tensor);
        }
    }
    if !head.is_empty() {
        parts.push_back(head.freeze());
    }
    Ok(Segments { parts, ended: false })
}

impl http_body::Body for Segments {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(part) = self.parts.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(part))));
        }
        if std::mem::replace(&mut self.ended, true) {
            return Poll::Ready(None);
        }
        let mut trailers = HeaderMap::with_capacity(1);
        trailers.insert("grpc-status", HeaderValue::from_static("0"));
        Poll::Ready(Some(Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.ended
    }
}

/// A body whose first piece was looked at.
struct Rejoined {
    first: Option<Bytes>,
    rest: Incoming,
}

impl http_body::Body for Rejoined {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        Pin::new(&mut self.rest).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.rest.is_end_stream()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grpc::proto::inference::model_infer_request::InferInputTensor;

    #[test]
    fn the_first_raw_tensor_is_found_in_the_first_bytes() {
        let input = InferInputTensor { name: "I".repeat(300), ..InferInputTensor::default() };
        let message = ModelInferRequest {
            model_name: "m".to_owned(),
            inputs: vec![input],
            raw_input_contents: vec![Bytes::from_static(b"abcdefgh")],
            ..ModelInferRequest::default()
        };
        let bytes = message.encode_to_vec();
        let at = first_raw(&bytes).unwrap();
        assert_eq!(bytes.get(at..), Some(&b"abcdefgh"[..]));
        assert_eq!(first_raw(bytes.get(..at - 1).unwrap()), None);
        assert_eq!(first_raw(b""), None);
        assert_eq!(first_raw(&[0xff; 16]), None);
    }

    #[test]
    fn segments_are_the_message_and_large_tensors_are_not_copied() {
        let large = Bytes::from(vec![7; COPIED_TENSOR_BYTES + 1]);
        let message = ModelInferResponse {
            model_name: "m".to_owned(),
            raw_output_contents: vec![Bytes::from_static(b"small"), large.clone(), Bytes::new()],
            ..ModelInferResponse::default()
        };
        let segments = segments(message.clone()).unwrap();
        assert!(segments.parts.iter().any(|part| part.as_ptr() == large.as_ptr()));
        let whole: Vec<u8> = segments.parts.iter().flatten().copied().collect();
        let (prefix, body) = whole.split_at(PREFIX_BYTES);
        assert_eq!(prefix.first(), Some(&0));
        assert_eq!(prefix.get(1..), Some(&u32::try_from(body.len()).unwrap().to_be_bytes()[..]));
        assert_eq!(ModelInferResponse::decode(body).unwrap(), message);
    }
}
