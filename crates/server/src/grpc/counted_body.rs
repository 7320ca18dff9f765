//! The body of a call that reads its messages itself: a message that has not come as a whole takes its part of the memory
//! for bodies, and must go on.

use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use tokio::time::Sleep;
use tonic::Status;

use super::compression::PREFIX_BYTES;
use crate::body_budget::{BodyBudget, BodyLease, BudgetExhausted};
use crate::client_pace::MIN_PACE_BYTES;

/// See the module.
pub(super) struct CountedBody<B> {
    body: B,
    budget: Arc<BodyBudget>,
    message: UnfinishedMessage,
    /// Longest time for the next bytes of a message.
    stall: Duration,
    pace: Option<MessagePace>,
}

/// Time by which more of a message must have come.
struct MessagePace {
    end: Pin<Box<Sleep>>,
    /// Number of the message.
    number: u64,
    /// Bytes that had come when it began.
    come: usize,
}

/// A message of which a part has come.
#[derive(Default)]
struct UnfinishedMessage {
    prefix: [u8; PREFIX_BYTES],
    /// Bytes of the prefix that have come.
    prefix_bytes: usize,
    /// Number of messages that have begun.
    number: u64,
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

impl<B> CountedBody<B> {
    /// Counts what comes of a body.
    pub(super) fn new(body: B, budget: &Arc<BodyBudget>, stall: Duration) -> Self {
        let message = UnfinishedMessage::default();
        Self { body, budget: Arc::clone(budget), message, stall, pace: None }
    }

    /// Waits for more of a message as long as its client may take. Between messages there is no end.
    fn poll_pace(&mut self, context: &mut Context<'_>) -> Poll<Status> {
        if !self.message.is_inside() {
            return Poll::Pending;
        }
        let pace = self.pace.get_or_insert_with(|| MessagePace {
            end: Box::pin(tokio::time::sleep(self.stall)),
            number: self.message.number,
            come: self.message.come,
        });
        pace.end.as_mut().poll(context).map(|()| {
            let seconds = self.stall.as_secs();
            Status::deadline_exceeded(format!("the request did not go on for {seconds} seconds"))
        })
    }

    /// Counts what has come, and begins a new time where it is enough.
    fn count(&mut self, piece: &[u8]) -> Result<(), Status> {
        self.message.take(piece, &self.budget).map_err(|BudgetExhausted| no_memory())?;
        let goes_on = |pace: &MessagePace| {
            self.message.is_inside()
                && self.message.number == pace.number
                && self.message.come < pace.come.saturating_add(MIN_PACE_BYTES)
        };
        self.pace = self.pace.take().filter(goes_on);
        Ok(())
    }
}

impl UnfinishedMessage {
    /// Returns whether a part of a message has come, and not all of it.
    fn is_inside(&self) -> bool {
        self.missing > 0 || self.prefix_bytes > 0
    }

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
            self.number += 1;
            self.memory = budget.begin();
        }
        rest
    }
}

impl<B> http_body::Body for CountedBody<B>
where
    B: http_body::Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Unpin,
{
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) else {
            return this.poll_pace(context).map(|status| Some(Err(status)));
        };
        Poll::Ready(frame.map(|frame| {
            let frame = frame.map_err(|error| Status::from_error(error.into()))?;
            if let Some(piece) = frame.data_ref() {
                this.count(piece)?;
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
    use http_body::Body;

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

    /// Gives a few bytes every ten seconds.
    struct DrippingBody {
        next: Pin<Box<Sleep>>,
        piece: Bytes,
    }

    impl http_body::Body for DrippingBody {
        type Data = Bytes;
        type Error = Status;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
            std::task::ready!(self.next.as_mut().poll(context));
            self.next = Box::pin(tokio::time::sleep(Duration::from_secs(10)));
            Poll::Ready(Some(Ok(Frame::data(self.piece.clone()))))
        }
    }

    /// Time until the body of a message is given up; none where it goes on for an hour.
    async fn time_of(piece: Bytes) -> Option<Duration> {
        let next = Box::pin(tokio::time::sleep(Duration::ZERO));
        let budget = Arc::new(BodyBudget::new(1 << 30));
        let stall = Duration::from_secs(60);
        let mut body = CountedBody::new(DrippingBody { next, piece }, &budget, stall);
        let begun = tokio::time::Instant::now();
        while begun.elapsed() < stall * 60 {
            let frame = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context));
            if let Some(Err(status)) = frame.await {
                assert_eq!(status.code(), tonic::Code::DeadlineExceeded);
                return Some(begun.elapsed());
            }
        }
        None
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_that_does_not_go_on_ends_its_call() {
        let announces_much = Bytes::from_static(&[0, 0x70, 0, 0, 0]);
        let waited = time_of(announces_much).await.unwrap();
        assert!(waited <= Duration::from_secs(70), "{waited:?}");
        // Whole messages may come as rarely as they like, and long ones as fast as they must.
        assert_eq!(time_of(framed(100).into()).await, None);
        assert_eq!(time_of(framed(1 << 20).get(..4000).unwrap().to_vec().into()).await, None);
    }
}
