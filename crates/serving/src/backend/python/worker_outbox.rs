//! Messages on their way to a worker that calls.
//!
//! Whoever has a message sends as much of it as there is room for, and waits for nobody; a thread that is there only for
//! as long as it is needed sends what is left. So the thread that reads a worker's calls goes on reading whatever the
//! worker does, which may itself read nothing before it has sent what it has. Other threads wait while much is left:
//! a model that answers faster than a worker reads must not fill the memory.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use rustix::net::SendFlags;

use super::locked;

/// While more bytes than these are left, threads wait that may.
const MAX_BYTES: usize = 8 << 20;

thread_local! {
    static READS: Cell<bool> = const { Cell::new(false) };
}

/// Says that this thread reads the calls of a worker: it waits for none from now on.
pub(super) fn never_wait() {
    READS.set(true);
}

/// The messages to one worker.
#[derive(Debug)]
pub(super) struct BlsOutbox(Arc<OutboxShared>);

#[derive(Debug)]
struct OutboxShared {
    socket: UnixStream,
    state: Mutex<OutboxState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct OutboxState {
    /// Messages, or what is left of them, in order.
    left: VecDeque<Vec<u8>>,
    /// Their bytes, and those of the one that the thread sends.
    bytes: usize,
    /// Whether there is a thread that sends them.
    sends: bool,
    closed: bool,
}

impl BlsOutbox {
    /// Sends on a socket. Who reads nothing for as long as `timeout` has hung.
    ///
    /// # Errors
    /// When the socket cannot have a time-out.
    pub(super) fn new(socket: UnixStream, timeout: Duration) -> io::Result<Self> {
        socket.set_write_timeout(Some(timeout))?;
        let (state, changed) = Default::default();
        Ok(Self(Arc::new(OutboxShared { socket, state, changed })))
    }

    /// Sends a message behind those that were given before, without waiting. What cannot be sent ends the socket, as a
    /// part of it may have gone.
    pub(super) fn push(&self, mut message: Vec<u8>) {
        let mut state = locked(&self.0.state);
        if state.closed {
            return;
        }
        if !state.sends {
            match self.0.send_now(&message) {
                Ok(count) if count == message.len() => return,
                Ok(count) => drop(message.drain(..count)),
                Err(_) => {
                    drop(state);
                    return self.close();
                }
            }
        }
        state.bytes += message.len();
        state.left.push_back(message);
        if !std::mem::replace(&mut state.sends, true) {
            let shared = Arc::clone(&self.0);
            let thread = std::thread::Builder::new().name("worker-replies".to_owned());
            drop(state);
            if let Err(error) = thread.spawn(move || shared.send_left()) {
                tracing::error!("no thread for the replies to a worker: {error}");
                self.close();
            }
        }
    }

    /// Waits until not too much is left, on threads that may.
    pub(super) fn wait(&self) {
        let mut state = locked(&self.0.state);
        while state.bytes > MAX_BYTES && !state.closed && !READS.get() {
            state = self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Nothing more is read or written.
    pub(super) fn close(&self) {
        self.0.close();
    }
}

impl OutboxShared {
    /// Sends what there is room for; how much that was.
    fn send_now(&self, message: &[u8]) -> io::Result<usize> {
        let send = || rustix::net::send(&self.socket, message, SendFlags::DONTWAIT);
        match rustix::io::retry_on_intr(send) {
            Err(rustix::io::Errno::AGAIN) => Ok(0),
            other => Ok(other?),
        }
    }

    fn send_left(&self) {
        loop {
            let mut state = locked(&self.state);
            let Some(message) = state.left.pop_front() else {
                state.sends = false;
                return;
            };
            drop(state);
            if (&self.socket).write_all(&message).is_err() {
                return self.close();
            }
            let mut state = locked(&self.state);
            state.bytes = state.bytes.saturating_sub(message.len());
            drop(state);
            self.changed.notify_all();
        }
    }

    fn close(&self) {
        let _ = self.socket.shutdown(Shutdown::Both);
        let mut state = locked(&self.state);
        (state.closed, state.bytes) = (true, 0);
        state.left.clear();
        drop(state);
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    /// Long enough for any machine.
    const PATIENCE: Duration = Duration::from_secs(60);

    fn message(number: usize) -> Vec<u8> {
        vec![u8::try_from(number % 251).unwrap(); 100_000]
    }

    #[test]
    fn nobody_waits_to_send_and_all_comes_in_order() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let outbox = BlsOutbox::new(ours, PATIENCE).unwrap();
        (0..200).for_each(|number| outbox.push(message(number)));
        for number in 0..200 {
            let mut found = vec![0; 100_000];
            theirs.read_exact(&mut found).unwrap();
            assert!(found == message(number), "{number}");
        }
    }

    #[test]
    fn who_may_wait_does_until_somebody_reads_or_nobody_will() {
        for reads in [true, false] {
            let (ours, mut theirs) = UnixStream::pair().unwrap();
            let outbox = BlsOutbox::new(ours, PATIENCE).unwrap();
            (0..200).for_each(|number| outbox.push(message(number)));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    never_wait();
                    outbox.wait();
                });
                let waits = scope.spawn(|| outbox.wait());
                if reads {
                    theirs.read_exact(&mut vec![0; 200 * 100_000]).unwrap();
                } else {
                    assert!(!waits.is_finished());
                    outbox.close();
                }
            });
        }
    }

    #[test]
    fn who_does_not_read_is_given_up() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let outbox = BlsOutbox::new(ours, Duration::from_millis(10)).unwrap();
        (0..200).for_each(|number| outbox.push(message(number)));
        outbox.wait();
        assert!(locked(&outbox.0.state).closed);
    }
}
