//! Peaks of this host's CPU: measured once, and kept in a file beside the cache of prepared models.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

use galatea_providers::{HostCores, measure_host_peaks};
use galatea_runtime::DevicePeaks;
use galatea_serving::model_cache::ModelCache;
use galatea_tensor::read_plain_text;
use serde_json::{Value, json};

/// Format name and version of the file.
const FORMAT: &str = "galatea host peaks 1";
/// The most bytes of a file that is read.
const MAX_BYTES: u64 = 1 << 16;
/// Names of the peaks in the file.
const NAMES: [&str; 4] = ["vector_f32", "bf16", "int8", "bytes"];

/// Peaks that this process knows.
static KNOWN: OnceLock<DevicePeaks> = OnceLock::new();
/// Held while they are read or measured.
static TURN: Mutex<()> = Mutex::new(());

/// Returns the peaks of the CPU. The first call on a host measures them in about a second, during which all fast cores
/// are busy; later ones, of other processes too, read what it found. The chip, its cores, the system and this
/// program's version must be the same.
pub fn processor_peaks() -> DevicePeaks {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    *KNOWN.get_or_init(|| kept_or_measured(file().as_deref(), measure_host_peaks))
}

/// Returns the peaks of the CPU if this process knows them already.
pub(super) fn known_processor_peaks() -> Option<DevicePeaks> {
    KNOWN.get().copied()
}

fn file() -> Option<PathBuf> {
    Some(ModelCache::default_folder()?.with_file_name("host-peaks.json"))
}

/// Host and program that measured.
fn identity() -> String {
    let fast = HostCores::detect().fast;
    let machine = galatea_providers::machine();
    format!("{machine}; {fast} fast; {}", env!("CARGO_PKG_VERSION"))
}

fn kept_or_measured(file: Option<&Path>, measure: impl FnOnce() -> DevicePeaks) -> DevicePeaks {
    if let Some(kept) = file.and_then(read) {
        return kept;
    }
    let start = Instant::now();
    let found = measure();
    let seconds = start.elapsed().as_secs_f64();
    tracing::info!(seconds, "the peaks of the CPU were measured");
    if let Some(Err(error)) = file.map(|file| write(file, &found)) {
        tracing::warn!("the peaks of the CPU are not kept: {error}");
    }
    found
}

fn read(file: &Path) -> Option<DevicePeaks> {
    let small = fs::metadata(file).ok()?.len() <= MAX_BYTES;
    let text = small.then(|| read_plain_text(file).ok()).flatten()?;
    let value: Value = serde_json::from_str(&text).ok()?;
    if value["format"] != FORMAT || value["host"] != identity() {
        return None;
    }
    let peak = |name: &str| value[name].as_f64().filter(|peak| peak.is_finite() && *peak > 0.0);
    let [vector_f32, bf16, int8, bytes] = NAMES.map(peak);
    vector_f32.zip(bytes)?;
    Some(DevicePeaks { vector_f32, bf16, int8, bytes, ..DevicePeaks::default() })
}

fn write(file: &Path, peaks: &DevicePeaks) -> std::io::Result<()> {
    let mut value = json!({"format": FORMAT, "host": identity()});
    let all = [peaks.vector_f32, peaks.bf16, peaks.int8, peaks.bytes];
    for (name, peak) in NAMES.iter().zip(all) {
        value[*name] = json!(peak);
    }
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    // Another process reads the whole file or none.
    let part = file.with_extension(format!("{}.part", std::process::id()));
    fs::write(&part, value.to_string())?;
    fs::rename(&part, file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peaks(rate: f64) -> DevicePeaks {
        let some = Some(rate);
        DevicePeaks {
            vector_f32: some,
            bf16: some,
            int8: some,
            bytes: some,
            ..DevicePeaks::default()
        }
    }

    #[test]
    fn a_host_is_measured_once_and_another_one_anew() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/host-peaks.json");
        assert_eq!(kept_or_measured(Some(&file), || peaks(2e9)), peaks(2e9));
        let kept = kept_or_measured(Some(&file), || panic!("it is known"));
        assert_eq!(kept, peaks(2e9));
        let text = fs::read_to_string(&file).unwrap();
        for broken in [
            text.replace("\"host\":\"", "\"host\":\"other "),
            text[..20].to_owned(),
            "[]".to_owned(),
        ] {
            fs::write(&file, broken).unwrap();
            assert_eq!(kept_or_measured(Some(&file), || peaks(3e9)), peaks(3e9));
        }
        assert_eq!(kept_or_measured(None, || peaks(4e9)), peaks(4e9));
    }

    #[test]
    fn what_was_measured_is_known_from_then_on() {
        let found = processor_peaks();
        assert_eq!(known_processor_peaks(), Some(found));
        assert!(found.vector_f32.is_some() && found.bytes.is_some(), "{found:?}");
    }
}
