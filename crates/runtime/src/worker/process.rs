//! The process of a worker and those that it has started: they form a group, which ends as a whole.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

/// Longest interval of looks at whether a process that was asked to end has done so.
const MAX_LOOK: Duration = Duration::from_millis(50);

/// A process that leads a group of its own. Until somebody has taken its status no other process has its number, so
/// signals go to its group only before that.
#[derive(Debug)]
pub struct ProcessGroup {
    leader: Pid,
    state: Mutex<GroupState>,
}

#[derive(Debug)]
struct GroupState {
    child: Child,
    /// Whether its status was taken.
    reaped: bool,
}

impl ProcessGroup {
    /// Starts a process as the leader of a group of its own.
    ///
    /// A key that stops the program does not reach the group: requests that need the worker end first.
    ///
    /// # Errors
    /// When the process does not start.
    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        let child = command.process_group(0).spawn()?;
        let leader = Pid::from_child(&child);
        Ok(Self { leader, state: Mutex::new(GroupState { child, reaped: false }) })
    }

    /// Number of the leader's process.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.leader.as_raw_nonzero().get().unsigned_abs()
    }

    /// Whether the leader has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let state = self.state();
        state.reaped || self.look(WaitIdOptions::NOHANG)
    }

    /// Waits until the leader has ended, and ends whom it has left behind.
    pub fn wait(&self) {
        self.look(WaitIdOptions::empty());
        let state = self.state();
        if !state.reaped {
            self.end_all();
        }
    }

    /// Waits for the end of a leader that was asked to end. Returns false if that takes longer than `limit`.
    #[must_use]
    pub fn ends_within(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let mut look = Duration::from_millis(1);
        while !self.has_ended() {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(look);
            look = (look * 2).min(MAX_LOOK);
        }
        true
    }

    /// Ends the leader and all of its group, those too that are left of one that has ended.
    pub fn kill(&self) {
        let mut state = self.state();
        if state.reaped {
            return;
        }
        self.end_all();
        // The leader may have gone to another group.
        drop(state.child.kill());
        self.reap(&mut state);
    }

    /// How the leader has ended, if it has.
    #[must_use]
    pub fn status(&self) -> Option<ExitStatus> {
        let mut state = self.state();
        if !state.reaped {
            if !self.look(WaitIdOptions::NOHANG) {
                return None;
            }
            self.end_all();
            self.reap(&mut state);
        }
        state.child.try_wait().ok().flatten()
    }

    fn state(&self) -> MutexGuard<'_, GroupState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reap(&self, state: &mut GroupState) {
        if let Err(error) = state.child.wait() {
            tracing::warn!("the end of worker {} is not known: {error}", self.leader);
        }
        state.reaped = true;
    }

    fn end_all(&self) {
        // There may be nobody left.
        let _ = rustix::process::kill_process_group(self.leader, Signal::KILL);
    }

    /// Whether the leader has ended, whose status stays where it is.
    fn look(&self, how: WaitIdOptions) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | how;
        let look = || rustix::process::waitid(WaitId::Pid(self.leader), options);
        // It is no child any more when somebody else has taken its status.
        !matches!(rustix::io::retry_on_intr(look), Ok(None))
    }
}

/// Ends a process that another server has left behind, with its group.
///
/// # Errors
/// When the number is none of a process that may be ended, or there is no such process.
pub fn end_stray(process: u32) -> io::Result<()> {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    let pid = pid.filter(|pid| !pid.is_init()).ok_or(io::ErrorKind::InvalidInput)?;
    let _ = rustix::process::kill_process_group(pid, Signal::KILL);
    Ok(rustix::process::kill_process(pid, Signal::KILL)?)
}
