//! The body of a call that reads its messages itself: a message that has not come as a whole takes its part of the memory
//! for bodies.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::Frame;
use tonic::Status;

use super::compression::PREFIX_BYTES;
use super::http2::InboundBody;
use crate::body_budget::{BodyBudget, BodyLease, BudgetExhausted};

/// See the module.
pub(super) struct CountedBody {
    body: InboundBody,
    budget: Arc<BodyBudget>,
    message: UnfinishedMessage,
}

/// A message of which a part has come.
#[derive(Default)]
struct UnfinishedMessage {
    prefix: [u8; PREFIX_BYTES],
    /// Bytes of the prefix that have come.
    prefix_bytes: usize,
    come: usize,
    missing: usize,
    memory: BodyLease,
}

/// Says that there is no memory for a message.
pub(super) fn no_memory() -> Status {
    Status::resource_exhausted("the messages of other calls take all memory for them; try again")
}

/// Says that there is no memory for an answer beside those that clients have not read.
pub(super) fn unread_answers() -> Status {
    let text = "answers that clients have not read take all memory for them; try again";
    Status::resource_exhausted(text)
}

impl CountedBody {
    /// Counts what comes of a body.
    pub(super) fn new(body: InboundBody, budget: &Arc<BodyBudget>) -> Self {
        Self { body, budget: Arc::clone(budget), message: UnfinishedMessage::default() }
    }
}

impl UnfinishedMessage {
    /// Counts a piece.
    fn take(&mut self, piece: &[u8], budget: &BodyBudget) -> Result<(), BudgetExhausted> {
        let mut rest = piece;
        while !rest.is_empty() {
            if self.missing == 0 {
                rest = self.begin(rest, budget);
                continue;
            }
            let here = self.missing.min(rest.len());
            (self.come, self.missing) = (self.come + here, self.missing - here);
            self.memory.cover(self.come)?;
            if self.missing == 0 {
                self.memory = BodyLease::default();
            }
            rest = rest.get(here..).unwrap_or_default();
        }
        Ok(())
    }

    /// Takes bytes of the prefix, and gives those behind it.
    fn begin<'p>(&mut self, piece: &'p [u8], budget: &BodyBudget) -> &'p [u8] {
        let room = self.prefix.get_mut(self.prefix_bytes..).unwrap_or_default();
        let count = room.len().min(piece.len());
        let (of_prefix, rest) = piece.split_at(count);
        room.iter_mut().zip(of_prefix).for_each(|(to, from)| *to = *from);
        self.prefix_bytes += count;
        if self.prefix_bytes == PREFIX_BYTES {
            let [_, a, b, c, d] = self.prefix;
            self.missing = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
            (self.prefix_bytes, self.come) = (0, 0);
            self.memory = budget.begin();
        }
        rest
    }
}

impl http_body::Body for CountedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        let frame = ready!(Pin::new(&mut this.body).poll_frame(context));
        Poll::Ready(frame.map(|frame| {
            let frame = frame.map_err(|error| Status::from_error(error.into()))?;
            if let Some(piece) = frame.data_ref() {
                let taken = this.message.take(piece, &this.budget);
                taken.map_err(|BudgetExhausted| no_memory())?;
            }
            Ok(frame)
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(length: usize) -> Vec<u8> {
        let announced = u32::try_from(length).unwrap().to_be_bytes();
        [&[0][..], &announced, &vec![7; length]].concat()
    }

    #[test]
    fn only_the_message_that_is_not_whole_takes_memory() {
        let budget = BodyBudget::new(8 << 20);
        for cut in [1 << 12, 3, 5, 1 << 16] {
            let mut message = UnfinishedMessage::default();
            let all = [framed(0), framed(200_000), framed(9), framed(3 << 20)].concat();
            for piece in all.chunks(cut) {
                message.take(piece, &budget).unwrap();
            }
            assert_eq!((message.missing, message.prefix_bytes), (0, 0));
            // All of it is free again.
            budget.begin().cover(6 << 20).unwrap();
        }
    }

    #[test]
    fn a_message_that_finds_no_memory_ends_the_call() {
        let budget = BodyBudget::new(8 << 20);
        let mut other = budget.begin();
        other.cover(7 << 20).unwrap();
        let mut message = UnfinishedMessage::default();
        let text = framed(4 << 20);
        assert_eq!(message.take(&text, &budget), Err(BudgetExhausted));
        assert_eq!(budget.refusals(), 1);
        drop((other, message));
        UnfinishedMessage::default().take(&text, &budget).unwrap();
    }
}
