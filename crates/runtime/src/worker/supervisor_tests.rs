//! Supervisors of real processes that end in every way that there is.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::*;

/// Longer than anything here takes where all is well.
const LONG: Duration = Duration::from_secs(60);

/// Begins each time that a worker starts: what it does then is said by files beside it.
const SCRIPT: &str = "cd \"$1\" || exit 1; echo $$ >>starts
[ -e polite ] || trap '' TERM
[ -e bad ] && exit 3
[ -e hang ] && sleep 600
echo ready
[ -e short ] && exit 0
while :; do sleep 0.01; done";

const POLICY: RestartPolicy = RestartPolicy {
    window: None,
    free_ends: 0,
    first_rest: Duration::from_millis(1),
    max_rest: Duration::from_millis(20),
    max_ends: None,
};

struct ShellWorkers {
    folder: PathBuf,
    policy: RestartPolicy,
    restarts: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct ShellProcess(ProcessGroup);

impl SupervisedProcess for ShellProcess {
    fn wait(&self) {
        self.0.wait();
    }

    fn kill(&self) {
        self.0.kill();
    }

    fn stop(&self) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.0.number()).unwrap()).unwrap();
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.0.ends_within(Duration::from_millis(100));
        self.0.kill();
    }
}

impl WorkerKind for ShellWorkers {
    type Process = ShellProcess;
    type Worker = Arc<ShellProcess>;
    type Error = String;

    fn policy(&self) -> RestartPolicy {
        self.policy
    }

    fn start(&self, begun: &dyn Fn(&Arc<ShellProcess>)) -> Result<Arc<ShellProcess>, String> {
        let (output, input) = io::pipe().unwrap();
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(SCRIPT).arg("sh").arg(&self.folder);
        command.stdin(Stdio::null()).stdout(input);
        let group = ProcessGroup::spawn(&mut command).map_err(|error| error.to_string())?;
        drop(command);
        let process = Arc::new(ShellProcess(group));
        if self.folder.join("slow").exists() {
            thread::sleep(Duration::from_millis(100));
        }
        begun(&process);
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).unwrap();
        if line.trim_end() == "ready" {
            return Ok(process);
        }
        process.kill();
        Err(process.0.status().unwrap().to_string())
    }

    fn restart_counter(&self) -> RestartCounter {
        let restarts = Arc::clone(&self.restarts);
        Box::new(move || {
            restarts.fetch_add(1, Ordering::SeqCst);
        })
    }
}

impl WaitingWorkerKind for ShellWorkers {
    fn process(worker: &Arc<ShellProcess>) -> &Arc<ShellProcess> {
        worker
    }

    fn unhealthy(&self, why: &str) -> String {
        format!("unhealthy: {why}")
    }

    fn over(&self) -> String {
        "over".to_owned()
    }

    fn unsupervised(&self, error: &io::Error) -> String {
        error.to_string()
    }

    fn patience(&self) -> Duration {
        Duration::from_millis(50)
    }

    fn log_failure(&self, _: &String, _: Option<Duration>) {}
}

impl SharedWorkerKind for ShellWorkers {
    fn ended(worker: &ShellProcess) -> Option<Instant> {
        worker.0.has_ended().then(Instant::now)
    }

    fn resting(&self, rest: &RestartRest) -> String {
        format!("resting after {}", rest.ends)
    }

    fn refused(&self) -> String {
        "refused".to_owned()
    }
}

/// A folder that says what workers do.
struct WorkerFolder {
    folder: tempfile::TempDir,
    restarts: Arc<AtomicUsize>,
}

impl WorkerFolder {
    fn new(files: &[&str]) -> Self {
        let stage = Self { folder: tempfile::tempdir().unwrap(), restarts: Arc::default() };
        files.iter().for_each(|file| stage.set(file));
        stage
    }

    fn kind(&self, policy: RestartPolicy) -> ShellWorkers {
        let folder = self.folder.path().to_owned();
        ShellWorkers { folder, policy, restarts: Arc::clone(&self.restarts) }
    }

    fn set(&self, file: &str) {
        fs::write(self.folder.path().join(file), "").unwrap();
    }

    fn clear(&self, file: &str) {
        fs::remove_file(self.folder.path().join(file)).unwrap();
    }

    /// The processes that were started.
    fn starts(&self) -> Vec<u32> {
        let text = fs::read_to_string(self.folder.path().join("starts")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Waits until so many processes were started.
    fn started(&self, count: usize) -> u32 {
        until(|| self.starts().len() >= count);
        self.starts()[count - 1]
    }
}

fn until(mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < deadline, "it takes too long");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Ends a worker. Returns whether it ran until then.
fn was_alive(worker: &ShellProcess) -> bool {
    let alive = !worker.0.has_ended();
    worker.kill();
    alive
}

/// Waits until a process was ended and reaped.
fn gone(process: u32) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(process).unwrap()).unwrap();
    until(|| rustix::process::test_kill_process(pid).is_err());
}

#[test]
fn a_first_worker_that_ends_before_it_is_ready_is_an_error() {
    let stage = WorkerFolder::new(&["bad"]);
    let error = WorkerSupervisor::start(stage.kind(POLICY)).unwrap_err();
    assert_eq!(error, "exit status: 3");
    gone(stage.started(1));
}

#[test]
fn a_worker_that_ends_while_it_is_used_is_followed_by_the_next_at_once() {
    let stage = WorkerFolder::new(&[]);
    // Whoever is of use rests for no time, however long others would.
    let policy = RestartPolicy { first_rest: LONG * 60, max_rest: LONG * 60, ..POLICY };
    let supervisor = WorkerSupervisor::start(stage.kind(policy)).unwrap();
    for ends in 0..3 {
        let worker = supervisor.take().unwrap();
        assert_eq!(stage.starts().len(), ends + 1);
        worker.kill();
    }
    let last = supervisor.take().unwrap();
    until(|| stage.restarts.load(Ordering::SeqCst) == 3);
    supervisor.stop();
    last.stop();
    stage.starts().into_iter().for_each(gone);
}

#[test]
fn a_worker_that_ends_before_its_use_says_so_and_is_followed_by_the_next() {
    let stage = WorkerFolder::new(&["short"]);
    let supervisor = WorkerSupervisor::start(stage.kind(POLICY)).unwrap();
    stage.started(4);
    stage.clear("short");
    until(|| supervisor.take().is_ok_and(|worker| was_alive(&worker)));
    supervisor.stop();
}

#[test]
fn workers_that_do_not_start_are_tried_again_and_again() {
    let stage = WorkerFolder::new(&[]);
    let supervisor = WorkerSupervisor::start(stage.kind(POLICY)).unwrap();
    stage.set("bad");
    supervisor.take().unwrap().kill();
    stage.started(4);
    assert_eq!(supervisor.take().unwrap_err(), "unhealthy: exit status: 3");
    stage.clear("bad");
    until(|| supervisor.take().is_ok_and(|worker| was_alive(&worker)));
    until(|| stage.restarts.load(Ordering::SeqCst) >= 1);
    supervisor.stop();
}

#[test]
fn after_the_most_ends_no_worker_starts() {
    let stage = WorkerFolder::new(&[]);
    let policy = RestartPolicy { max_ends: Some(3), ..POLICY };
    let supervisor = WorkerSupervisor::start(stage.kind(policy)).unwrap();
    stage.set("bad");
    supervisor.take().unwrap().kill();
    stage.started(4);
    thread::sleep(Duration::from_millis(200));
    assert_eq!(stage.starts().len(), 4);
    assert_eq!(supervisor.take().unwrap_err(), "unhealthy: exit status: 3");
    supervisor.stop();
}

#[test]
fn a_worker_that_never_gets_ready_ends_with_a_drain_a_close_or_a_stop() {
    for end in ["drain", "close", "stop"] {
        let stage = WorkerFolder::new(&[]);
        let supervisor = WorkerSupervisor::start(stage.kind(POLICY)).unwrap();
        stage.set("hang");
        supervisor.take().unwrap().kill();
        let hangs = stage.started(2);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| supervisor.take());
            match end {
                "drain" => supervisor.signal().drain(),
                "close" => supervisor.signal().close(),
                _ => supervisor.stop(),
            }
            assert_eq!(waiting.join().unwrap().err().as_deref(), Some("over"), "{end}");
        });
        gone(hangs);
        supervisor.stop();
        assert_eq!(stage.starts().len(), 2, "{end}");
    }
}

#[test]
fn a_worker_that_nobody_knows_of_yet_does_not_outlive_a_stop() {
    let stage = WorkerFolder::new(&[]);
    let supervisor = WorkerSupervisor::start(stage.kind(POLICY)).unwrap();
    stage.set("hang");
    stage.set("slow");
    supervisor.take().unwrap().kill();
    let begun = stage.started(2);
    supervisor.stop();
    // The program may end here, and with it whoever could end the worker.
    let pid = rustix::process::Pid::from_raw(i32::try_from(begun).unwrap()).unwrap();
    assert!(rustix::process::test_kill_process(pid).is_err());
}

#[test]
fn a_worker_that_nobody_took_ends_with_its_supervisor() {
    for files in [&["polite"] as &[&str], &[]] {
        let stage = WorkerFolder::new(files);
        let supervisor = WorkerSupervisor::start(stage.kind(POLICY)).unwrap();
        supervisor.stop();
        gone(stage.started(1));
        assert_eq!(supervisor.take().unwrap_err(), "over");
        assert_eq!(stage.restarts.load(Ordering::SeqCst), 0);
    }
}

#[test]
fn a_shared_worker_starts_when_it_is_asked_for() {
    let stage = WorkerFolder::new(&[]);
    let supervisor = OnDemandSupervisor::new(stage.kind(POLICY));
    assert!(supervisor.running().is_none());
    assert!(stage.starts().is_empty());
    let first = supervisor.take().unwrap();
    let again = supervisor.take().unwrap();
    assert_eq!([first.generation, again.generation], [1, 1]);
    assert!(Arc::ptr_eq(&first.worker, &again.worker));
    first.worker.kill();
    assert!(supervisor.running().is_none());
    assert_eq!(stage.starts().len(), 1);
    // It may rest for a moment.
    until(|| supervisor.take().is_ok_and(|next| next.generation == 2));
    assert_eq!(stage.restarts.load(Ordering::SeqCst), 1);
    supervisor.running().unwrap().kill();
    stage.starts().into_iter().for_each(gone);
}

#[test]
fn a_shared_worker_rests_and_is_refused_after_the_most_ends() {
    let stage = WorkerFolder::new(&["bad"]);
    let long = RestartPolicy { free_ends: 1, first_rest: LONG * 60, max_rest: LONG * 60, ..POLICY };
    let supervisor = OnDemandSupervisor::new(stage.kind(long));
    let told = [(); 3].map(|()| supervisor.take().unwrap_err());
    assert_eq!(told, ["exit status: 3", "exit status: 3", "resting after 2"]);
    let none = RestartPolicy { first_rest: Duration::ZERO, max_ends: Some(2), ..POLICY };
    let supervisor = OnDemandSupervisor::new(stage.kind(none));
    let told = [(); 3].map(|()| supervisor.take().unwrap_err());
    assert_eq!(told, ["exit status: 3", "exit status: 3", "refused"]);
    assert_eq!(stage.starts().len(), 4);
    assert_eq!(stage.restarts.load(Ordering::SeqCst), 0);
}
