//! The process of a worker and those that it has started: they form a group, which ends as a whole.

use std::io;
use std::process::{Child, ExitStatus};
use std::sync::Mutex;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use super::locked;

/// A process that leads a group of its own. Until somebody has taken its status no other process has its number, so
/// signals go to its group only before that.
#[derive(Debug)]
pub(super) struct ProcessGroup {
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
    /// The group of a child that was started as its leader.
    pub(super) fn of(child: Child) -> Self {
        let state = Mutex::new(GroupState { child, reaped: false });
        let leader = Pid::from_child(&locked(&state).child);
        Self { leader, state }
    }

    /// Whether the leader has ended.
    pub(super) fn has_ended(&self) -> bool {
        let state = locked(&self.state);
        state.reaped || self.look(WaitIdOptions::NOHANG)
    }

    /// Waits until the leader has ended, and ends whom it has left behind.
    pub(super) fn wait(&self) {
        self.look(WaitIdOptions::empty());
        let state = locked(&self.state);
        if !state.reaped {
            self.end_all();
        }
    }

    /// Ends the leader and all of its group, those too that are left of one that has ended.
    pub(super) fn kill(&self) {
        let mut state = locked(&self.state);
        if state.reaped {
            return;
        }
        self.end_all();
        // The leader may have gone to another group.
        drop(state.child.kill());
        self.reap(&mut state);
    }

    /// How the leader has ended, if it has.
    pub(super) fn status(&self) -> Option<ExitStatus> {
        let mut state = locked(&self.state);
        if !state.reaped {
            if !self.look(WaitIdOptions::NOHANG) {
                return None;
            }
            self.end_all();
            self.reap(&mut state);
        }
        state.child.try_wait().ok().flatten()
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
pub(super) fn end_stray(process: u32) -> io::Result<()> {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    let pid = pid.filter(|pid| !pid.is_init()).ok_or(io::ErrorKind::InvalidInput)?;
    let _ = rustix::process::kill_process_group(pid, Signal::KILL);
    Ok(rustix::process::kill_process(pid, Signal::KILL)?)
}
