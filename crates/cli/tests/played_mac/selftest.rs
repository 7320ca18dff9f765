//! `galatea selftest` on Macs.

use galatea_tensor::OrderedMap;

use serde_json::Value;

use crate::galatea;

/// Lines of a report of the selftest, by subject and device.
type ReportLines = OrderedMap<String, Value>;

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

pub(crate) fn the_quick_selftest_passes_on_a_mac() {
    // Core ML's subjects have a test of their own.
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

/// Units of Core ML on a Mac whose devices are known, and the device that each prefers.
const CORE_ML: [(&str, &str); 4] = [
    ("coreml-cpu", "CPU"),
    ("coreml-cpu-gpu", "GPU"),
    ("coreml-cpu-ane", "Neural Engine"),
    ("coreml-all", "Neural Engine"),
];

/// Features of Core ML that serving uses.
const FEATURES: [&str; 8] = [
    "worker-predictions",
    "worker-not-finite",
    "worker-ranges",
    "worker-enumerated",
    "worker-states",
    "worker-functions",
    "worker-restart",
    "worker-language-model",
];

pub(crate) fn the_selftest_runs_every_feature_of_core_ml_on_every_unit() {
    let units = CORE_ML.map(|row| format!("--unit={}", row.0));
    let units: Vec<&str> = units.iter().map(String::as_str).collect();
    let lines = selftest("m5-max-128gb,macos=27.0", &units);
    let not_passed: Vec<&Value> =
        lines.values().filter(|line| line["outcome"] != "passed").collect();
    assert!(not_passed.is_empty(), "{not_passed:?}");
    for (unit, device) in CORE_ML {
        for subject in FEATURES {
            assert!(lines.contains_key(&format!("{subject} {unit}")), "{subject} on {unit}");
        }
        let layers = &lines[&format!("layers {unit}")];
        let plan = layers["facts"]["plan"].as_str().unwrap();
        assert!(plan.ends_with(&format!(" on {device}")) && !plan.contains(','), "{plan}");
        assert!(layers["figures"]["compile_ms"].is_number(), "{layers}");
    }
}

pub(crate) fn the_selftest_tells_what_a_mac_refuses() {
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
