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
