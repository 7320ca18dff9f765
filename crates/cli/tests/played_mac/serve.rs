//! `galatea serve` on Macs: what its page of metrics and its log tell.
//!
//! Models that Core ML runs are in [`crate::core_ml`].

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::galatea;

/// A server.
pub(crate) struct PlayedServer {
    child: Child,
    http: String,
    metrics: String,
    log: Arc<Mutex<String>>,
    _repository: tempfile::TempDir,
}

impl PlayedServer {
    /// Starts it without models, and waits until its page of metrics can be read.
    fn start(mac: &str, arguments: &[&str]) -> Self {
        Self::of(galatea(mac), tempfile::tempdir().unwrap(), arguments)
    }

    /// Starts it by a command, with the models of this repository.
    pub(crate) fn of(
        mut command: Command,
        repository: tempfile::TempDir,
        arguments: &[&str],
    ) -> Self {
        command.arg("serve").arg("--model-repository").arg(repository.path());
        command.args(["--http-port=0", "--allow-grpc=false", "--metrics-port=0"]);
        command.args(["--metrics-interval-ms=0"]).args(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut said = String::new();
        let metrics = loop {
            let start = said.len();
            assert!(lines.read_line(&mut said).unwrap() > 0, "the server has ended: {said}");
            if let Some((_, address)) = said[start..].split_once("Started Metrics Service at ") {
                break address.split_whitespace().next().unwrap().trim_matches('"').to_owned();
            }
        };
        let http = said.split_once("Started HTTPService at ").unwrap().1;
        let http = http.split_whitespace().next().unwrap().trim_matches('"').to_owned();
        let log = Arc::new(Mutex::new(said));
        keep(lines, Arc::clone(&log));
        keep(BufReader::new(child.stderr.take().unwrap()), Arc::clone(&log));
        Self { child, http, metrics, log, _repository: repository }
    }

    /// Waits until the log has a text.
    fn says(&self, text: &str) {
        let start = Instant::now();
        while !self.log.lock().unwrap().contains(text) {
            let waited = start.elapsed();
            assert!(waited < Duration::from_secs(30), "{}", self.log.lock().unwrap());
            std::thread::yield_now();
        }
    }

    pub(crate) fn page(&self) -> String {
        told(&self.metrics, "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    }

    /// Sends a body to a path, and returns the whole answer.
    pub(crate) fn post(&self, path: &str, body: &str) -> String {
        let length = body.len();
        let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n");
        told(&self.http, &format!("{head}Content-Length: {length}\r\n\r\n{body}"))
    }

    /// Numbers of the processes that this one has started.
    pub(crate) fn children(&self) -> Vec<u32> {
        let tasks = format!("/proc/{}/task", self.child.id());
        let of_task = |task: std::io::Result<std::fs::DirEntry>| {
            std::fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default()
        };
        let all: String = std::fs::read_dir(tasks).unwrap().map(of_task).collect();
        all.split_whitespace().map(|number| number.parse().unwrap()).collect()
    }

    /// Returns a value of the page, which is absent where nothing is known.
    pub(crate) fn value(&self, name: &str) -> Option<f64> {
        value(&self.page(), name)
    }

    /// Waits until a page has what is read in the background.
    fn page_with(&self, name: &str) -> String {
        let start = Instant::now();
        loop {
            let page = self.page();
            if value(&page, name).is_some() {
                return page;
            }
            assert!(start.elapsed() < Duration::from_secs(30), "no {name}: {page}");
            std::thread::yield_now();
        }
    }
}

/// Sends a request and returns what comes back.
fn told(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Adds lines to a log, in the background: what is not read would stop the server once it is much.
fn keep(mut lines: impl BufRead + Send + 'static, log: Arc<Mutex<String>>) {
    std::thread::spawn(move || {
        let mut line = String::new();
        while lines.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
            log.lock().unwrap().push_str(&line);
            line.clear();
        }
    });
}

/// The value of a family, with labels where it has some.
fn value(page: &str, name: &str) -> Option<f64> {
    let start = format!("{name} ");
    let line = page.lines().find(|line| line.starts_with(&start))?;
    Some(line.rsplit(' ').next().unwrap().parse().unwrap())
}

/// The name of a series of watts.
fn watts(unit: &str) -> String {
    format!("apple_power_watts{{unit=\"{unit}\"}}")
}

impl Drop for PlayedServer {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

pub(crate) fn the_metrics_page_has_the_load_of_a_mac() {
    let server = PlayedServer::start("m1-16gb", &[]);
    let memory = (16_u64 << 30) as f64;
    assert_eq!(server.value("nv_cpu_memory_total_bytes"), Some(memory));
    // Pages of programs, of the kernel and of what is compressed.
    assert_eq!(server.value("nv_cpu_memory_used_bytes"), Some(memory / 64.0 * 25.0));
    let start = Instant::now();
    while server.value("nv_cpu_utilization") == Some(0.0) {
        assert!(start.elapsed() < Duration::from_secs(20), "the cores seem to do nothing");
    }
    assert!((0.0..=1.0).contains(&server.value("nv_cpu_utilization").unwrap()));
}

pub(crate) fn the_metrics_page_has_the_power_and_the_heat_of_a_mac() {
    let server = PlayedServer::start("m1-16gb,heat=1,low-power", &[]);
    let page = server.page_with(&watts("cpu"));
    for (unit, expected) in [("cpu", 5.0), ("gpu", 3.0), ("neural_engine", 1.0), ("system", 12.5)] {
        let found = value(&page, &watts(unit)).unwrap();
        assert!((expected / 4.0..expected * 4.0).contains(&found), "{unit}: {found}");
    }
    assert_eq!(value(&page, "apple_thermal_state"), Some(1.0));
    assert_eq!(value(&page, "apple_temperature_celsius"), Some(45.0));
    assert_eq!(value(&page, "apple_low_power_mode"), Some(1.0));
}

pub(crate) fn counters_that_stand_still_have_no_series() {
    let server = PlayedServer::start("m5-max-128gb,macos=27.0,counters=zeroed", &[]);
    let page = server.page_with(&watts("system"));
    for unit in ["cpu", "neural_engine", "memory"] {
        assert_eq!(value(&page, &watts(unit)), None, "{page}");
    }
    assert!(value(&page, &watts("gpu")).unwrap() > 0.0);
}

pub(crate) fn a_target_is_held_for_the_machine_where_the_watts_of_the_processor_are_not_told() {
    let mac = "m5-max-128gb,macos=27.0,counters=zeroed";
    let server = PlayedServer::start(mac, &["--power-target-watts=20"]);
    server.says("the system shows no watts of the processor: 20 W are held for the whole machine");
}

pub(crate) fn a_service_without_a_home_is_served() {
    let mut command = galatea("m1-16gb");
    command.env_remove("HOME").env_remove("XDG_CACHE_HOME");
    let server = PlayedServer::of(command, tempfile::tempdir().unwrap(), &[]);
    assert!(server.value("nv_cpu_memory_total_bytes").is_some());
}

pub(crate) fn a_sensor_library_that_panics_leaves_the_thermal_state() {
    let server = PlayedServer::start("m1-16gb,counters=overlong,heat=2", &[]);
    let page = server.page_with("apple_thermal_state");
    assert_eq!(value(&page, "apple_thermal_state"), Some(2.0));
    assert!(!page.contains("apple_power_watts{"), "{page}");
}
