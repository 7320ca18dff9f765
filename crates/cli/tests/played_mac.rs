//! The program on Macs that doubles of macOS's functions play.
#![cfg(apple_doubles)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use galatea_doubles::c::VARIABLE;
use serde_json::Value;

fn galatea(mac: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_galatea"));
    command.env(VARIABLE, mac).stdin(Stdio::null());
    command
}

fn chip(mac: &str) -> Value {
    let output = galatea(mac).args(["chip", "--json"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn chip_tells_what_a_mac_is() {
    let base = chip("m1-16gb,macos=13.0");
    assert_eq!(
        (&base["chip"], &base["memory_bytes"]),
        (&"Apple M1".into(), &(16_u64 << 30).into())
    );
    assert_eq!((&base["matrix_unit"], &base["figures_of"]), (&"AMX".into(), &"Apple M1".into()));
    assert_eq!(base["cores"][0]["name"], "Performance");
    assert_eq!(base["neural_engine"]["engines"], 1);
    let ultra = chip("m2-ultra-192gb");
    assert_eq!(
        (&ultra["cores"][0]["cores"], &ultra["neural_engine"]["engines"]),
        (&16.into(), &2.into())
    );
    let max = chip("m5-max-128gb,macos=26.0");
    assert_eq!((&max["cores"][0]["name"], &max["matrix_unit"]), (&"Super".into(), &"SME".into()));
    assert!(max["features"].as_array().unwrap().contains(&"Sme2".into()));
}

#[test]
fn chip_leaves_out_what_a_kernel_does_not_tell() {
    let chip = chip("m4-16gb,macos=13.3,without=hw.perflevel0.l2cachesize");
    assert!(chip["cores"][0].get("l2_bytes").is_none() && chip["cores"][1]["l2_bytes"].is_number());
    // The kernel of this macOS has no name for the extension, which the file of the chip knows.
    assert!(!chip["features"].as_array().unwrap().contains(&"Sme".into()));
    assert_eq!(chip["matrix_unit"], "SME");
}

/// Lines of a report of the selftest, by subject and device.
type ReportLines = BTreeMap<String, Value>;

/// Runs the selftest with these arguments.
fn selftest(mac: &str, arguments: &[&str]) -> ReportLines {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.jsonl");
    let mut command = galatea(mac);
    command.args(["selftest", "--quick", "--output"]).arg(&report).args(arguments);
    let output = command.env("TMPDIR", folder.path()).output().unwrap();
    let text = std::fs::read_to_string(&report).unwrap_or_else(|_| panic!("{output:?}"));
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let subjects = lines.filter(|line| line.get("outcome").is_some());
    let name = |line: &Value| {
        format!("{} {}", line["subject"].as_str().unwrap(), line["unit"].as_str().unwrap())
    };
    subjects.map(|line| (name(&line), line)).collect()
}

#[test]
fn the_quick_selftest_passes_on_a_mac() {
    // The interpreter's subjects and those of Core ML have tests of their own.
    let units = ["--unit=host", "--unit=cpu", "--unit=reference"];
    let lines = selftest("m1-16gb,battery=80", &units);
    let subjects =
        ["load", "battery", "sensors", "heat", "qos", "accelerate", "bnns", "chip", "system"];
    for subject in subjects {
        let line = lines.iter().find(|(name, _)| name.starts_with(&format!("{subject} ")));
        assert_eq!(line.unwrap().1["outcome"], "passed", "{line:?}");
    }
    let failed =
        |line: &&Value| !["passed", "skipped"].contains(&line["outcome"].as_str().unwrap());
    let failed: Vec<&Value> = lines.values().filter(failed).collect();
    assert!(failed.is_empty(), "{failed:?}");
    assert!(lines.len() > 50, "{}", lines.len());
}

#[test]
fn the_selftest_tells_what_a_mac_refuses() {
    let subjects =
        ["load", "battery", "qos", "accelerate", "bnns"].map(|s| format!("--subject={s}"));
    let subjects: Vec<&str> = subjects.iter().map(String::as_str).collect();
    let refused =
        ["host_statistics64", "IOPSCopyPowerSourcesInfo", "pthread_set_qos_class_self_np"]
            .map(|function| format!("refused={function}"))
            .join(",");
    let mac = format!("m1-16gb,{refused},refused=BNNSMatMulWorkspaceSize,macos=13.0");
    let lines = selftest(&mac, &subjects);
    let outcome = |subject: &str| {
        let line = lines.iter().find(|(name, _)| name.starts_with(subject)).unwrap().1;
        (line["outcome"].as_str().unwrap(), line["reason"].as_str().unwrap_or_default())
    };
    let load = outcome("load");
    assert!(load.0 == "failed" && load.1.contains("the kernel answers 5"), "{load:?}");
    assert_eq!(outcome("battery").0, "skipped");
    let qos = outcome("qos");
    assert!(qos.0 == "failed" && qos.1.contains("pthread_set_qos_class_self_np: 1"), "{qos:?}");
    let bnns = outcome("bnns");
    assert!(bnns.0 == "failed" && bnns.1.contains("BNNS refuses the product"), "{bnns:?}");
    // The function of the older interface serves where the newer one is not there.
    assert_eq!(outcome("accelerate").0, "passed");
}

/// A server without models.
struct PlayedServer {
    child: Child,
    metrics: String,
    log: Arc<Mutex<String>>,
    _repository: tempfile::TempDir,
}

impl PlayedServer {
    /// Starts it, and waits until its page of metrics can be read.
    fn start(mac: &str, arguments: &[&str]) -> Self {
        Self::of(galatea(mac), arguments)
    }

    /// Starts it by a command.
    fn of(mut command: Command, arguments: &[&str]) -> Self {
        let repository = tempfile::tempdir().unwrap();
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
        let log = Arc::new(Mutex::new(said));
        keep(lines, Arc::clone(&log));
        keep(BufReader::new(child.stderr.take().unwrap()), Arc::clone(&log));
        Self { child, metrics, log, _repository: repository }
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

    fn page(&self) -> String {
        let mut stream = TcpStream::connect(&self.metrics).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).unwrap();
        page
    }

    /// Returns a value of the page, which is absent where nothing is known.
    fn value(&self, name: &str) -> Option<f64> {
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

#[test]
fn the_metrics_page_has_the_load_of_a_mac() {
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

#[test]
fn the_metrics_page_has_the_power_and_the_heat_of_a_mac() {
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

#[test]
fn counters_that_stand_still_have_no_series() {
    let server = PlayedServer::start("m5-max-128gb,macos=27.0,counters=zeroed", &[]);
    let page = server.page_with(&watts("system"));
    for unit in ["cpu", "neural_engine", "memory"] {
        assert_eq!(value(&page, &watts(unit)), None, "{page}");
    }
    assert!(value(&page, &watts("gpu")).unwrap() > 0.0);
}

#[test]
fn a_target_is_held_for_the_machine_where_the_watts_of_the_processor_are_not_told() {
    let mac = "m5-max-128gb,macos=27.0,counters=zeroed";
    let server = PlayedServer::start(mac, &["--power-target-watts=20"]);
    server.says("the system shows no watts of the processor: 20 W are held for the whole machine");
}

#[test]
fn a_service_without_a_home_is_served() {
    let mut command = galatea("m1-16gb");
    command.env_remove("HOME").env_remove("XDG_CACHE_HOME");
    let server = PlayedServer::of(command, &[]);
    assert!(server.value("nv_cpu_memory_total_bytes").is_some());
}

#[test]
fn a_sensor_library_that_panics_leaves_the_thermal_state() {
    let server = PlayedServer::start("m1-16gb,counters=overlong,heat=2", &[]);
    let page = server.page_with("apple_thermal_state");
    assert_eq!(value(&page, "apple_thermal_state"), Some(2.0));
    assert!(!page.contains("apple_power_watts{"), "{page}");
}
