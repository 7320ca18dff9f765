//! `ModelInfer` of messages that are not compressed: a response's tensors go to the socket from where they are.
//!
//! Tonic's own framing copies every message into one buffer on the way in and on the way out. It keeps the calls that
//! are compressed or malformed.

use bytes::{BufMut, Bytes, BytesMut};
use http::request::Parts;
use http::{HeaderMap, HeaderValue};
use prost::Message;
use prost::encoding::{WireType, decode_key, decode_varint, encode_key, encode_varint};
use tonic::Status;
use tonic::metadata::MetadataMap;

use super::compression::{self, CompressionLevel, PREFIX_BYTES};
use super::grpc_services::GrpcServices;
use super::http2::WholeAnswer;
use super::proto::inference::{ModelInferRequest, ModelInferResponse};

/// Path of the call.
pub(super) const PATH: &str = "/inference.GRPCInferenceService/ModelInfer";
/// Alignment of tensors in bytes.
pub(super) const ALIGNMENT: usize = 64;
/// Longest message, as in Triton.
pub(super) const MAX_MESSAGE_BYTES: usize = i32::MAX as usize;
/// Fields that hold raw tensors in a request and in a response.
const RAW_INPUTS: u32 = 7;
const RAW_OUTPUTS: u32 = 6;
/// Tensors up to this size are copied behind the message's head: one frame is cheaper than two.
const COPIED_TENSOR_BYTES: usize = 8 * 1024;

/// Returns whether the call is one for [`call`].
pub(super) fn is_plain(head: &Parts) -> bool {
    let encoding = head.headers.get("grpc-encoding");
    head.uri.path() == PATH && encoding.is_none_or(|name| name == "identity")
}

/// Returns the offset of the first raw tensor in the message that begins with these bytes.
pub(super) fn first_raw(head: &[u8]) -> Option<usize> {
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

/// Answers a call whose message is there.
pub(super) async fn call(
    services: &GrpcServices,
    head: Parts,
    message: Bytes,
    level: Option<CompressionLevel>,
) -> WholeAnswer {
    let coding = level.and_then(|level| level.coding(&head.headers));
    let answer = match ModelInferRequest::decode(message) {
        Err(_) => Err(Status::internal("Unable to parse request")),
        Ok(message) => {
            let metadata = MetadataMap::from_headers(head.headers);
            services
                .model_infer(tonic::Request::from_parts(metadata, head.extensions, message))
                .await
        }
    };
    let written = answer.and_then(|answer| {
        let (metadata, message, _) = answer.into_parts();
        Ok((metadata, pieces(message)?))
    });
    let (metadata, mut pieces) = match written {
        Ok(written) => written,
        Err(status) => return status.into(),
    };
    let mut headers = metadata.into_headers();
    headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    if let Some(coding) = coding {
        headers.insert(compression::ENCODING, coding.name());
        pieces = vec![coding.messages(&pieces.concat())];
    }
    let mut trailers = HeaderMap::with_capacity(1);
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    WholeAnswer { headers, pieces, trailers: Some(trailers) }
}

/// A message with its prefix, in pieces.
fn pieces(mut message: ModelInferResponse) -> Result<Vec<Bytes>, Status> {
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
    let mut pieces = Vec::with_capacity(1 + 2 * tensors.len());
    for tensor in tensors {
        encode_key(RAW_OUTPUTS, WireType::LengthDelimited, &mut head);
        encode_varint(tensor.len() as u64, &mut head);
        if tensor.len() <= COPIED_TENSOR_BYTES {
            head.put_slice(&tensor);
        } else {
            pieces.push(head.split().freeze());
            pieces.push(tensor);
        }
    }
    if !head.is_empty() {
        pieces.push(head.freeze());
    }
    Ok(pieces)
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
    fn pieces_are_the_message_and_large_tensors_are_not_copied() {
        let large = Bytes::from(vec![7; COPIED_TENSOR_BYTES + 1]);
        let message = ModelInferResponse {
            model_name: "m".to_owned(),
            raw_output_contents: vec![Bytes::from_static(b"small"), large.clone(), Bytes::new()],
            ..ModelInferResponse::default()
        };
        let pieces = pieces(message.clone()).unwrap();
        assert!(pieces.iter().any(|piece| piece.as_ptr() == large.as_ptr()));
        let whole = pieces.concat();
        let (prefix, body) = whole.split_at(PREFIX_BYTES);
        assert_eq!(prefix.first(), Some(&0));
        assert_eq!(prefix.get(1..), Some(&u32::try_from(body.len()).unwrap().to_be_bytes()[..]));
        assert_eq!(ModelInferResponse::decode(body).unwrap(), message);
    }
}
