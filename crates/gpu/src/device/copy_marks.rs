//! Marks by which uploads and copies outside runs say that they came to their end.
//!
//! A driver may end a command buffer and report it as done. So the last command of such a buffer copies a number to
//! memory that the host reads, and whoever waits for the buffer, or for one behind it, looks for that number.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use wgpu::{BufferTransition, BufferUses};

use super::line::QueuedSubmission;
use super::{DeviceFault, GpuDevice};
use crate::buffers::{self, HostBytes, POOLED_USAGES, STEP, SharedBuffer};
use crate::error::GpuError;

/// Bytes of a mark.
const WORD: usize = 4;
/// Marks that may be open at a time.
const MARKS: usize = 64;

/// A mark that commands write.
#[derive(Clone, Copy, Debug)]
pub(super) struct CopyMark {
    slot: usize,
    number: u32,
}

/// A mark that is to be found once a submission is done.
#[derive(Debug)]
struct OpenMark {
    mark: CopyMark,
    work: QueuedSubmission,
}

/// Marks that are free, and those that are to be found.
#[derive(Debug)]
struct MarkState {
    next: u32,
    free: Vec<usize>,
    /// Marks whose commands were handed over, in any order.
    open: VecDeque<OpenMark>,
}

/// Memory of the marks of a device.
#[derive(Debug)]
struct MarkMemory {
    /// Numbers that commands copy.
    numbers: wgpu::Buffer,
    numbers_host: HostBytes,
    /// Words that they copy them to.
    marks: wgpu::Buffer,
    marks_host: HostBytes,
}

/// Marks of a device's uploads and copies.
#[derive(Debug)]
pub(super) struct CopyMarks {
    /// `None` on a device that computes nothing.
    memory: Option<MarkMemory>,
    state: Mutex<MarkState>,
    /// True if bytes were written by the queue since something was handed over. Held while they are.
    uploaded: Mutex<bool>,
}

impl CopyMarks {
    /// Makes the marks of a device; those of one that computes nothing are never written.
    ///
    /// # Errors
    /// Fails when the device has no memory that the host reads.
    pub(super) fn new(device: &wgpu::Device, computes: bool) -> Result<Self, GpuError> {
        let memory = computes.then(|| MarkMemory::new(device)).transpose()?;
        let state = MarkState { next: 1, free: (0..MARKS).collect(), open: VecDeque::new() };
        Ok(Self { memory, state: Mutex::new(state), uploaded: Mutex::new(false) })
    }

    fn state(&self) -> MutexGuard<'_, MarkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn uploaded(&self) -> MutexGuard<'_, bool> {
        self.uploaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MarkMemory {
    fn new(device: &wgpu::Device) -> Result<Self, GpuError> {
        let made = || -> Result<(wgpu::Buffer, HostBytes), GpuError> {
            let made = buffers::make(device, STEP, POOLED_USAGES, None)?;
            let SharedBuffer { buffer, host, .. } = made;
            let hidden = || GpuError::Refusal("the host does not see marks of copies".to_owned());
            Ok((buffer, host.ok_or_else(hidden)?))
        };
        let (numbers, numbers_host) = made()?;
        let (marks, marks_host) = made()?;
        Ok(Self { numbers, numbers_host, marks, marks_host })
    }

    /// Makes the marks visible to the host behind what was encoded.
    fn show(&self, encoder: &mut wgpu::CommandEncoder) {
        let shown = BufferTransition { buffer: &self.marks, state: BufferUses::MAP_READ };
        encoder.transition_resources(std::iter::once(shown), std::iter::empty());
    }

    /// Returns whether the commands with a mark, which are done, came to their end.
    fn has(&self, mark: CopyMark) -> bool {
        // SAFETY: the commands are done, and the slot is no other's before the mark is let go.
        let word = unsafe { self.marks_host.bytes(mark.slot * WORD, WORD) };
        word == mark.number.to_le_bytes()
    }
}

impl GpuDevice {
    /// Reserves a mark. Where all are open, waits for the work of one.
    fn reserve_mark(&self) -> CopyMark {
        loop {
            let mut state = self.copy_marks.state();
            if let Some(slot) = state.free.pop() {
                let number = state.next;
                state.next = state.next.wrapping_add(1).max(1);
                return CopyMark { slot, number };
            }
            let oldest = state.open.front().map(|open| open.work.clone());
            drop(state);
            match oldest {
                Some(work) if self.alive().is_ok() => self.wait_for_room(&work),
                // Nobody looks for marks of a device that is gone.
                Some(_) => self.forget_marks(),
                None => std::thread::yield_now(),
            }
        }
    }

    fn forget_marks(&self) {
        let mut state = self.copy_marks.state();
        let gone: Vec<usize> = state.open.drain(..).map(|open| open.mark.slot).collect();
        state.free.extend(gone);
    }

    /// Notes that work with a mark was handed over.
    fn expect(&self, mark: CopyMark, work: &QueuedSubmission) {
        self.copy_marks.state().open.push_back(OpenMark { mark, work: work.clone() });
    }

    /// Hands copies over that belong to no run. Whoever waits for them, or for what is behind them, learns whether
    /// they came to their end.
    pub(crate) fn submit_copies(&self, mut encoder: wgpu::CommandEncoder) -> QueuedSubmission {
        let Some(memory) = &self.copy_marks.memory else { return self.submit(encoder.finish()) };
        let mark = self.reserve_mark();
        let at = (mark.slot * WORD) as u64;
        // SAFETY: the slot was free, so no command reads it.
        unsafe { memory.numbers_host.put(mark.slot * WORD, &mark.number.to_le_bytes()) };
        encoder.copy_buffer_to_buffer(&memory.numbers, at, &memory.marks, at, WORD as u64);
        memory.show(&mut encoder);
        let commands = encoder.finish();
        let work = self.submit_some(Some(commands).filter(|_| self.copies()));
        self.expect(mark, &work);
        work
    }

    /// Writes bytes before whatever is handed over next.
    pub(crate) fn upload(&self, buffer: &wgpu::Buffer, offset: u64, bytes: &[u8]) {
        let mut uploaded = self.copy_marks.uploaded();
        *uploaded = true;
        if !self.acts(DeviceFault::LostUploads) {
            self.queue.write_buffer(buffer, offset, bytes);
        }
    }

    /// Hands commands over, if any, behind what was uploaded.
    pub(super) fn submit_some(&self, commands: Option<wgpu::CommandBuffer>) -> QueuedSubmission {
        let commands = commands.filter(|_| !self.acts(DeviceFault::IgnoredWork));
        let Some(memory) = &self.copy_marks.memory else {
            return self.life.line.enter(|| self.queue.submit(commands));
        };
        let mut uploaded = self.copy_marks.uploaded();
        if !std::mem::take(&mut *uploaded) {
            drop(uploaded);
            return self.life.line.enter(|| self.queue.submit(commands));
        }
        let mark = self.reserve_mark();
        if !self.acts(DeviceFault::LostUploads) {
            // It goes to the end of the commands that upload.
            let at = (mark.slot * WORD) as u64;
            self.queue.write_buffer(&memory.marks, at, &mark.number.to_le_bytes());
        }
        let mut encoder = self.device.create_command_encoder(&Default::default());
        memory.show(&mut encoder);
        let all = commands.into_iter().chain([encoder.finish()]);
        let work = self.life.line.enter(|| self.queue.submit(all));
        drop(uploaded);
        self.expect(mark, &work);
        work
    }

    /// Checks the uploads and copies up to a place in the line, which are done, and gives the device up where one did
    /// not come to its end: what it was to bring is not there.
    ///
    /// # Errors
    /// Returns [`GpuError::Lost`] if one did not.
    pub(super) fn check_copies(&self, place: u64) -> Result<(), GpuError> {
        let Some(memory) = &self.copy_marks.memory else { return Ok(()) };
        let mut state = self.copy_marks.state();
        if state.open.is_empty() {
            return Ok(());
        }
        let MarkState { free, open, .. } = &mut *state;
        let mut missing = false;
        open.retain(|one| {
            let done = one.work.place <= place;
            if done {
                missing |= !memory.has(one.mark);
                free.push(one.mark.slot);
            }
            !done
        });
        drop(state);
        if missing {
            return Err(self.lose("a copy did not come to its end".to_owned()));
        }
        Ok(())
    }
}
