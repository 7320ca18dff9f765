//! `galatea tune` on a GPU, if only a software one: what it measures, keeps, reads again, and refuses.

#![cfg(all(unix, any(target_os = "macos", feature = "gpu")))]

use std::path::{Path, PathBuf};
use std::process::Output;

use crate::program;
use galatea_formats::npy;
use galatea_tensor::{DataType, Tensor, Tolerance, compare};
use serde_json::Value;

/// A home of its own, where records are kept.
struct Home(tempfile::TempDir);

impl Home {
    /// None where the host has no GPU, which is said.
    fn new() -> Option<Self> {
        if let Err(error) = galatea::Engine::new().providers(Some("gpu")) {
            eprintln!("skipped: {error}");
            return None;
        }
        Some(Self(tempfile::tempdir().unwrap()))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn galatea(&self, arguments: &[&str]) -> Output {
        program::galatea()
            .args(arguments)
            .env("HOME", self.0.path())
            .env("XDG_CACHE_HOME", self.path("cache"))
            .output()
            .unwrap()
    }

    /// Returns the output of a command, which must succeed.
    fn done(&self, arguments: &[&str]) -> String {
        let output = self.galatea(arguments);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {told}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Returns the error output of a command that must fail.
    fn refused(&self, arguments: &[&str]) -> String {
        let output = self.galatea(arguments);
        assert!(!output.status.success(), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    /// Every file below the home, by its name.
    fn records(&self) -> PathBuf {
        let file = self.path("cache").join("galatea/tuning.jsonl");
        assert!(file.is_file(), "{} is missing", file.display());
        file
    }
}

fn digits() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/models/digits");
    path.to_str().unwrap().to_owned()
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the sample's answer to an image.
fn answer(home: &Home, model: &str, name: &str) -> Tensor {
    let pixels: Vec<f32> = (0..64_u8).map(|at| f32::from(at % 17)).collect();
    let image = Tensor::from_vec(&[1, 1, 8, 8], pixels).unwrap();
    assert_eq!(image.dtype(), DataType::Fp32);
    let (input, output) = (home.path("in.npz"), home.path(name));
    npy::write_npz(&input, [("IMAGE", &image)]).unwrap();
    let (input, output) = (input.to_str().unwrap(), output.to_str().unwrap());
    home.done(&["run", model, "--provider", "gpu", "--inputs", input, "--outputs", output]);
    let all = npy::read_npz(Path::new(&format!("{output}0.npz"))).unwrap();
    all.into_iter().next().unwrap().1
}

#[test]
fn records_are_kept_and_read_and_change_no_answer() {
    let Some(home) = Home::new() else { return };
    let model = digits();
    let before = answer(&home, &model, "before");
    let tune = ["tune", &model, "--provider", "gpu", "--samples", "2", "--trials", "3", "--json"];
    let found = lines(&home.done(&tune));
    assert!(!found.is_empty());
    for record in &found {
        assert!(record["family"].as_str().unwrap().starts_with("gpu "), "{record}");
        assert!(record["time_ns"].as_f64().unwrap() > 0.0, "{record}");
        assert_eq!(record["refused"], serde_json::json!([]), "{record}");
    }
    let families: Vec<&str> = found.iter().map(|one| one["family"].as_str().unwrap()).collect();
    let has = |family: &str| families.iter().any(|one| one.starts_with(family));
    assert!(has("gpu conv "), "{families:?}");

    // A second run finds all of them, and measures none.
    let file = home.records();
    let kept = std::fs::read(&file).unwrap();
    assert_eq!(home.done(&tune), "");
    assert_eq!(std::fs::read(&file).unwrap(), kept);
    let told = home.done(&["tune", &model, "--provider", "gpu"]);
    assert!(told.contains("have a record already"), "{told}");
    let again = [&tune[..], &["--again", "--family", "conv"]].concat();
    let again = lines(&home.done(&again));
    assert_eq!(again.len(), families.iter().filter(|one| one.contains("conv")).count());
    let shown = home.done(&["tune", "--inspect", file.to_str().unwrap(), "--json"]);
    assert_eq!(lines(&shown).len(), found.len());

    // What is taken now is another way of computing the same.
    let after = answer(&home, &model, "after");
    compare(&after, &before, Tolerance::Within(1e-4)).unwrap();
}

#[test]
fn two_candidates_are_compared_with_a_verdict() {
    let Some(home) = Home::new() else { return };
    let model = digits();
    let gpu = ["--provider", "gpu"];
    let listed = lines(&home.done(&[&["tune", &model, "--list", "--json"][..], &gpu].concat()));
    assert!(listed.iter().all(|one| one["candidates"].as_array().unwrap().len() > 1), "{listed:?}");
    let compared = ["tune", &model, "--compare", "0/1", "--samples", "5", "--json"];
    let compared = lines(&home.done(&[&compared[..], &gpu].concat()));
    assert_eq!(compared.len(), listed.len());
    for line in &compared {
        let p = line["p"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&p), "{line}");
        assert!(!line["verdict"].as_str().unwrap().is_empty(), "{line}");
        assert_eq!(line["agree"], true, "{line}");
        let [low, ratio, high] =
            ["low", "ratio", "high"].map(|field| line[field].as_f64().unwrap());
        assert!(low <= ratio && ratio <= high, "{line}");
    }
    assert!(!home.path("cache").join("galatea/tuning.jsonl").exists(), "records were written");
}

#[test]
fn what_cannot_be_done_is_said() {
    let Some(home) = Home::new() else { return };
    let model = digits();
    for (arguments, expected) in [
        (&["--compare", "0,1"][..], "--compare expects FIRST/SECOND"),
        (&["--compare", "usual/nothing-like-it"], "there is no candidate 'nothing-like-it'"),
        (&["--strategy", "luck"], "--strategy expects one of"),
        (&["--seconds", "-1"], "--seconds expects a time"),
        (&["--samples", "many"], "--samples"),
        (&["--provider", "gpu:99"], "99"),
        (&["--nonsense"], "nonsense"),
    ] {
        let provider: &[&str] =
            if arguments.contains(&"--provider") { &[] } else { &["--provider", "gpu"] };
        let all = [&["tune", &model][..], provider, arguments].concat();
        let told = home.refused(&all);
        assert!(told.contains(expected), "{arguments:?}: {told}");
        assert!(!told.contains("panicked"), "{told}");
    }
    assert!(home.refused(&["tune", "--provider", "gpu"]).contains("MODEL"));
    let broken = home.path("broken.jsonl");
    std::fs::write(&broken, "no records\n").unwrap();
    let all = ["tune", &model, "--provider", "gpu", "--database", broken.to_str().unwrap()];
    let told = home.refused(&all);
    assert!(told.contains("broken.jsonl"), "{told}");
    assert_eq!(std::fs::read_to_string(&broken).unwrap(), "no records\n");
}

#[test]
fn steps_of_a_checkpoint_are_tuned_and_write_the_same() {
    let Some(home) = Home::new() else { return };
    let shared = std::env::var_os("GALATEA_SHARED").map(PathBuf::from);
    let found = shared.map(|folder| folder.join("models/books-qwen2-draft-2m"));
    let Some(model) = found.filter(|path| path.is_dir()) else {
        eprintln!("skipped: GALATEA_SHARED has no models");
        return;
    };
    let model = model.to_str().unwrap();
    let write = ["run", model, "--provider", "gpu", "--prompt", "It was a", "--max-tokens", "8"];
    let before = home.done(&write);
    let tune = [
        "tune",
        model,
        "--provider",
        "gpu",
        "--prompt-tokens",
        "24",
        "--context",
        "16",
        "--samples",
        "2",
        "--trials",
        "2",
        "--seconds",
        "600",
        "--json",
    ];
    let found = lines(&home.done(&tune));
    let families: Vec<&str> = found.iter().map(|one| one["family"].as_str().unwrap()).collect();
    assert!(families.iter().any(|one| one.contains("paged_attention")), "{families:?}");
    assert_eq!(home.done(&tune), "");
    assert_eq!(home.done(&write), before);
}
