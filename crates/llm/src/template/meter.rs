//! Bounds of one rendering: steps, memory that values hold, depth, and a client who has left.

use std::cell::Cell;
use std::rc::Rc;

/// The steps that a template may take: a thousand messages take about a million.
const MAX_STEPS: u64 = 20_000_000;

/// Bytes that all values of a rendering may hold at the same time.
const MAX_HELD_BYTES: usize = 128 << 20;

/// Bytes that are copied or compared in one step.
const BYTES_A_STEP: u64 = 128;

/// Cost of a look at any text beside its bytes.
const BYTES_A_LOOK: u64 = 16;

/// How deep statements, terms, macros, loops and filters call each other. Each level takes a few
/// hundred bytes of the thread's stack.
const MAX_DEPTH: u32 = 400;

/// Steps between two looks at whether the rendering is still wanted.
const STEPS_BETWEEN_LOOKS: u64 = 4096;

/// The longest message of an error, in bytes.
const MAX_MESSAGE_BYTES: usize = 4096;

/// An error of a template: its line, where that is known, and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RenderFault {
    pub(super) line: Option<u32>,
    pub(super) message: String,
}

/// The result of whatever a template does.
pub(super) type RenderResult<T> = Result<T, RenderFault>;

impl RenderFault {
    /// An error whose line is not known yet. Messages that texts of a request are part of are cut.
    pub(super) fn new(message: impl Into<String>) -> Self {
        let mut message = message.into();
        if message.len() > MAX_MESSAGE_BYTES {
            let end = (0..=MAX_MESSAGE_BYTES).rev().find(|end| message.is_char_boundary(*end));
            message.truncate(end.unwrap_or(0));
            message.push('…');
        }
        Self { line: None, message }
    }

    /// The same error at a line, unless it has one.
    pub(super) fn at(mut self, line: u32) -> Self {
        self.line.get_or_insert(line);
        self
    }
}

/// Steps, bytes and time that a rendering has left.
pub(super) struct RenderMeter<'a> {
    steps: Cell<u64>,
    /// Steps until the next look at `stop`.
    look: Cell<u64>,
    /// Bytes that no step was taken for yet.
    unpaid: Cell<u64>,
    depth: Cell<u32>,
    held: Rc<HeldTotal>,
    stop: &'a dyn Fn() -> bool,
}

/// The memory of all values, and how much it may be.
#[derive(Debug)]
struct HeldTotal {
    bytes: Cell<usize>,
    limit: usize,
}

impl<'a> RenderMeter<'a> {
    /// Full bounds; `stop` says whether nobody wants the text any more.
    pub(super) fn new(stop: &'a dyn Fn() -> bool) -> Self {
        Self {
            steps: Cell::new(MAX_STEPS),
            look: Cell::new(STEPS_BETWEEN_LOOKS),
            unpaid: Cell::new(0),
            depth: Cell::new(0),
            held: Rc::new(HeldTotal { bytes: Cell::new(0), limit: MAX_HELD_BYTES }),
            stop,
        }
    }

    /// No bounds, for values that the request itself brings.
    pub(super) fn unbounded() -> Self {
        Self {
            steps: Cell::new(u64::MAX),
            look: Cell::new(u64::MAX),
            unpaid: Cell::new(0),
            depth: Cell::new(0),
            held: Rc::new(HeldTotal { bytes: Cell::new(0), limit: usize::MAX }),
            stop: &|| false,
        }
    }

    /// Takes steps.
    pub(super) fn step(&self, steps: u64) -> RenderResult<()> {
        match self.steps.get().checked_sub(steps) {
            Some(left) => self.steps.set(left),
            None => {
                self.steps.set(0);
                let message = format!("out of fuel: it takes more than {MAX_STEPS} steps");
                return Err(RenderFault::new(message));
            }
        }
        match self.look.get().checked_sub(steps) {
            Some(left) => {
                self.look.set(left);
                Ok(())
            }
            None => self.look(),
        }
    }

    #[cold]
    fn look(&self) -> RenderResult<()> {
        self.look.set(STEPS_BETWEEN_LOOKS);
        if (self.stop)() {
            return Err(RenderFault::new("cancelled: nobody wants the text any more"));
        }
        Ok(())
    }

    /// Takes the steps for looking at or copying bytes.
    pub(super) fn bytes(&self, bytes: usize) -> RenderResult<()> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let unpaid = self.unpaid.get().saturating_add(bytes).saturating_add(BYTES_A_LOOK);
        self.unpaid.set(unpaid % BYTES_A_STEP);
        if unpaid < BYTES_A_STEP { Ok(()) } else { self.step(unpaid / BYTES_A_STEP) }
    }

    /// Takes the steps for looking at each character of some bytes.
    pub(super) fn characters(&self, bytes: usize) -> RenderResult<()> {
        self.bytes(bytes.saturating_mul(8))
    }

    /// Goes a level deeper, as long as the result lives.
    pub(super) fn deeper(&self) -> RenderResult<DepthLevel<'_>> {
        if self.depth.get() >= MAX_DEPTH {
            let message = format!("the recursion is deeper than {MAX_DEPTH} levels");
            return Err(RenderFault::new(message));
        }
        self.depth.set(self.depth.get() + 1);
        Ok(DepthLevel { depth: &self.depth })
    }

    /// Takes a step for each of some elements.
    pub(super) fn elements(&self, count: usize) -> RenderResult<()> {
        self.step(count as u64)
    }

    /// Counts memory until the result is dropped.
    pub(super) fn hold(&self, bytes: usize) -> RenderResult<HeldBytes> {
        let mut hold = HeldBytes { bytes: 0, held: Rc::clone(&self.held) };
        hold.grow(bytes)?;
        Ok(hold)
    }
}

/// A level that was entered.
pub(super) struct DepthLevel<'m> {
    depth: &'m Cell<u32>,
}

impl Drop for DepthLevel<'_> {
    fn drop(&mut self) {
        self.depth.set(self.depth.get().saturating_sub(1));
    }
}

/// Memory that counts as long as this lives.
#[derive(Debug)]
pub(super) struct HeldBytes {
    bytes: usize,
    held: Rc<HeldTotal>,
}

impl HeldBytes {
    /// Counts further bytes.
    pub(super) fn grow(&mut self, bytes: usize) -> RenderResult<()> {
        let held = self.held.bytes.get().saturating_add(bytes);
        if held > self.held.limit {
            let message =
                format!("its values take more than {MAX_HELD_BYTES} bytes ({bytes} more wanted)");
            return Err(RenderFault::new(message));
        }
        self.held.bytes.set(held);
        self.bytes += bytes;
        Ok(())
    }

    fn release(&self, bytes: usize) {
        self.held.bytes.set(self.held.bytes.get().saturating_sub(bytes));
    }

    /// Counts so many bytes from now on.
    pub(super) fn set(&mut self, bytes: usize) -> RenderResult<()> {
        match bytes.checked_sub(self.bytes) {
            Some(more) => self.grow(more),
            None => {
                self.release(self.bytes - bytes);
                self.bytes = bytes;
                Ok(())
            }
        }
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.release(self.bytes);
    }
}
