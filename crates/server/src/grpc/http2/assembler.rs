//! The one message of a unary call, put together from pieces so that its first tensor lies aligned.

use bytes::{BufMut, Bytes, BytesMut};
use tonic::Status;

use super::super::compression::PREFIX_BYTES;
use super::super::unary::{ALIGNMENT, MAX_MESSAGE_BYTES, first_raw};
use crate::body_budget::has_memory;

/// Memory taken at once for an announced message; beyond it memory grows with what arrives.
const EAGER_BYTES: usize = 64 << 20;

/// Part of a message that has arrived so far.
#[derive(Debug, Default)]
pub(super) struct MessageAssembler {
    /// The first bytes, as long as they are fewer than a prefix.
    first: Vec<u8>,
    whole: BytesMut,
    pad: usize,
    length: Option<usize>,
    received: usize,
}

/// State of a message after a further piece.
#[derive(Debug)]
pub(super) enum AssembledPiece {
    /// It goes on.
    More,
    /// It is compressed or no message at all: these are the bytes so far, for somebody else.
    Other(Vec<u8>),
    /// It is longer than it may be, or than there is memory for.
    TooLong(Status),
}

impl AssembledPiece {
    /// A message for which there is no memory beside those of other calls.
    pub(super) fn without_memory() -> Self {
        let text = "the messages of other calls take all memory for them; try again";
        Self::TooLong(Status::resource_exhausted(text))
    }

    /// A message for which the system has no memory.
    fn too_long_for_the_system(bytes: usize) -> Self {
        let text = format!("the system has no memory for a message of {bytes} bytes");
        Self::TooLong(Status::resource_exhausted(text))
    }
}

impl MessageAssembler {
    /// Returns whether the system has memory for a further piece.
    fn has_room(&self, piece: &[u8]) -> bool {
        self.whole.capacity() - self.whole.len() >= piece.len()
            || has_memory(2 * self.whole.len() + piece.len())
    }

    /// Bytes that have come.
    pub(super) fn received(&self) -> usize {
        self.received
    }

    /// Adds a piece. What is beyond the message's length is left out.
    pub(super) fn put(&mut self, piece: &[u8]) -> AssembledPiece {
        self.received += piece.len();
        if let Some(length) = self.length {
            if !self.has_room(piece) {
                return AssembledPiece::too_long_for_the_system(length);
            }
            self.extend(piece);
            return AssembledPiece::More;
        }
        if self.first.is_empty() && piece.len() >= PREFIX_BYTES {
            return self.begin(piece);
        }
        self.first.extend_from_slice(piece);
        if self.first.len() < PREFIX_BYTES {
            return AssembledPiece::More;
        }
        let first = std::mem::take(&mut self.first);
        self.begin(&first)
    }

    fn begin(&mut self, first: &[u8]) -> AssembledPiece {
        let Some(([0, a, b, c, d], here)) = first.split_first_chunk::<PREFIX_BYTES>() else {
            return AssembledPiece::Other(first.to_vec());
        };
        let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        if length > MAX_MESSAGE_BYTES {
            return AssembledPiece::TooLong(Status::out_of_range(format!(
                "Error, decoded message length too large: found {length} bytes, the limit is: \
                 {MAX_MESSAGE_BYTES} bytes"
            )));
        }
        if !has_memory(length.min(EAGER_BYTES) + ALIGNMENT) {
            return AssembledPiece::too_long_for_the_system(length);
        }
        self.length = Some(length);
        self.whole = BytesMut::with_capacity(length.min(EAGER_BYTES) + ALIGNMENT);
        let tensor = self.whole.as_ptr() as usize + first_raw(here).unwrap_or(0);
        self.pad = tensor.next_multiple_of(ALIGNMENT) - tensor;
        self.whole.put_bytes(0, self.pad);
        self.extend(here);
        AssembledPiece::More
    }

    fn extend(&mut self, piece: &[u8]) {
        let missing = self.pad + self.length.unwrap_or(0) - self.whole.len();
        self.whole.put_slice(piece.get(..missing).unwrap_or(piece));
    }

    /// The message, now that nothing follows; `Ok(Err(bytes))` when not even its prefix has come.
    pub(super) fn finish(self) -> Result<Result<Bytes, Vec<u8>>, Status> {
        let Some(length) = self.length else { return Ok(Err(self.first)) };
        if self.whole.len() < self.pad + length {
            return Err(Status::internal("Unexpected EOF decoding stream."));
        }
        Ok(Ok(self.whole.freeze().slice(self.pad..)))
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;
    use crate::grpc::proto::inference::ModelInferRequest;

    #[test]
    fn a_message_is_the_same_however_it_is_cut_and_its_tensor_is_aligned() {
        let message = ModelInferRequest {
            model_name: "m".to_owned(),
            raw_input_contents: vec![vec![7; 1000].into()],
            ..ModelInferRequest::default()
        };
        let message = message.encode_to_vec();
        let length = u32::try_from(message.len()).unwrap().to_be_bytes();
        let framed = [&[0][..], &length, &message, b"beyond"].concat();
        for cut in [1, 3, 5, 6, 100, framed.len()] {
            let mut gather = MessageAssembler::default();
            for piece in framed.chunks(cut) {
                assert!(matches!(gather.put(piece), AssembledPiece::More));
            }
            assert_eq!(gather.received(), framed.len());
            let found = gather.finish().unwrap().unwrap();
            assert_eq!(found, message);
            if cut >= 100 {
                let tensor = first_raw(&found).unwrap();
                assert!((found.as_ptr() as usize + tensor).is_multiple_of(ALIGNMENT));
            }
        }
    }

    #[test]
    fn what_is_not_a_message_is_told_apart() {
        let mut compressed = MessageAssembler::default();
        assert!(
            matches!(compressed.put(&[1, 0, 0, 0, 9, 8]), AssembledPiece::Other(bytes) if bytes.len() == 6)
        );
        let mut long = MessageAssembler::default();
        assert!(matches!(long.put(&[0, 0xff, 0, 0, 0]), AssembledPiece::TooLong(_)));
        let mut short = MessageAssembler::default();
        assert!(matches!(short.put(&[0, 0, 0, 0, 2, 1]), AssembledPiece::More));
        assert_eq!(short.finish().unwrap_err().code(), tonic::Code::Internal);
        assert_eq!(MessageAssembler::default().finish().unwrap(), Err(Vec::new()));
    }
}
