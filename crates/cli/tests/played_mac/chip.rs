//! `galatea chip` on Macs.

use serde_json::Value;

use crate::galatea;

fn chip(mac: &str) -> Value {
    let output = galatea(mac).args(["chip", "--json"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

pub(crate) fn chip_tells_what_a_mac_is() {
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

pub(crate) fn chip_shows_no_figure_that_its_file_does_not_state() {
    // Nobody has measured its matrix unit, and its memory is of the size with fewer or with more GPU cores.
    let max = chip("m5-max-128gb,macos=26.0");
    assert_eq!(
        (&max["peak_gflops"], max.get("bandwidth_gb_per_s")),
        (&serde_json::json!({}), None)
    );
    assert_eq!(
        (&max["matrix_version"], &max["figures_of"]),
        (&"SME2p1".into(), &"Apple M5 Max".into())
    );
    let older = chip("m1-max-64gb");
    assert_eq!(
        (&older["matrix_version"], &older["bandwidth_gb_per_s"]),
        (&"M1".into(), &400.0.into())
    );
    assert_eq!(older["peak_gflops"]["matrix-f32"], 2626.0);
}

pub(crate) fn chip_leaves_out_what_a_kernel_does_not_tell() {
    let chip = chip("m4-16gb,macos=13.3,without=hw.perflevel0.l2cachesize");
    assert!(chip["cores"][0].get("l2_bytes").is_none() && chip["cores"][1]["l2_bytes"].is_number());
    // The kernel of this macOS has no name for the extension, which the file of the chip knows.
    assert!(!chip["features"].as_array().unwrap().contains(&"Sme".into()));
    assert_eq!(chip["matrix_unit"], "SME");
}
