//! The interpreter of tests of models in Python.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

/// An interpreter with NumPy: that of `GALATEA_PYTHON`, of the environment of `cargo xtask python`, or `python3`. Where
/// there is none, it says so.
pub(crate) fn python() -> Option<&'static str> {
    static FOUND: OnceLock<Option<String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let own = std::env::var("GALATEA_PYTHON").ok();
        let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../venv/bin/python");
        let built = Some(built.to_string_lossy().into_owned());
        let candidates = [own, built, Some("python3".to_owned())];
        candidates.into_iter().flatten().find(|python| {
            let imported = Command::new(python).args(["-c", "import numpy"]).output();
            imported.is_ok_and(|output| output.status.success())
        })
    });
    if found.is_none() {
        eprintln!("left out: there is no Python with NumPy; name one in GALATEA_PYTHON");
    }
    found.as_deref()
}
