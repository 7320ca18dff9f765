//! Predictions compared with published measurements, row by row; `docs/simulation.md` has the table.

use std::fmt::Write as _;

use super::*;
use crate::chips;

/// The most that a prediction is off.
const MOST: f64 = 0.25;

/// 7B of 4 bits (Q4_0): tokens a second that a text is written with, published for llama.cpp (discussion 4167).
const DECODE: &[(&str, f64)] = &[
    ("M1", 14.0),
    ("M1 Pro", 36.0),
    ("M1 Max", 61.0),
    ("M1 Ultra", 84.0),
    ("M2", 22.0),
    ("M2 Pro", 38.0),
    ("M2 Max", 66.0),
    ("M2 Ultra", 94.0),
    ("M3", 21.0),
    ("M3 Pro", 31.0),
    ("M3 Max", 66.0),
    ("M3 Ultra", 92.0),
    ("M4", 24.0),
    ("M4 Pro", 51.0),
    ("M4 Max", 83.0),
];

/// The same of tokens a second of a prompt of 512 tokens.
const PREFILL: &[(&str, f64)] =
    &[("M1", 118.0), ("M1 Max", 530.0), ("M2 Ultra", 1238.0), ("M3 Max", 760.0), ("M4 Max", 886.0)];

/// Tokens a second on the Neural Engine, published for ANEMLL; precisions are not stated, and taken for FP16.
/// Parameters in 10⁹.
const ENGINE: &[(&str, f64, f64)] = &[("M4 Pro", 0.8, 56.0), ("M4", 1.0, 54.5), ("M4", 8.0, 9.0)];

/// Rows that are known to be off by more.
///
/// The published prompts of the M5 use the neural accelerators in its GPU, which no kernel here does.
const OUTSIDE: &[&str] = &["8B on the Neural Engine", "prompt, times the M4"];

fn model(chip: &str) -> CostModel {
    let known = chips::find(&chips::full_name(chip)).unwrap();
    assert!(known.exact, "{chip}");
    CostModel::of(known.facts, usize::MAX)
}

/// A 7B model: 32 layers, rows of 4096.
fn seven() -> DecoderWork {
    DecoderWork {
        parameters: 6.74e9,
        weight_bytes: 3.8e9,
        layers: 32.0,
        hidden: 4096.0,
        kv_bytes_per_token: 2.0 * 32.0 * 4096.0 * 2.0,
    }
}

fn written(chip: &str, unit: ComputeUnit, work: &DecoderWork) -> f64 {
    let model = model(chip);
    1.0 / model.step_seconds(model.unit(unit).unwrap(), work, 1.0, 64.0)
}

fn read(chip: &str) -> f64 {
    let model = model(chip);
    512.0 / model.prefill_seconds(model.unit(ComputeUnit::Gpu).unwrap(), &seven(), 512.0, 0.0)
}

/// Returns rows of workload, chip, our prediction and the published figure.
fn rows() -> Vec<(String, String, f64, f64)> {
    let gpu = ComputeUnit::Gpu;
    let row = |what: &str, chip: &str, ours, fact| (what.to_owned(), chip.to_owned(), ours, fact);
    let mut rows = Vec::new();
    for (chip, fact) in DECODE {
        rows.push(row("7B Q4_0, text, tokens/s", chip, written(chip, gpu, &seven()), *fact));
    }
    for (chip, fact) in PREFILL {
        rows.push(row("7B Q4_0, prompt of 512, tokens/s", chip, read(chip), *fact));
    }
    // 289 GB/s at 53.8 tokens a second.
    let nine = DecoderWork { parameters: 9e9, weight_bytes: 5.37e9, ..seven() };
    rows.push(row("9B Q4_0, text, tokens/s", "M4 Max", written("M4 Max", gpu, &nine), 53.8));
    let text = written("M5", gpu, &seven()) / written("M4", gpu, &seven());
    rows.push(row("text, times the M4 (1.19 to 1.27)", "M5", text, 1.23));
    let prompt = read("M5") / read("M4");
    rows.push(row("prompt, times the M4 (up to 4)", "M5", prompt, 4.0));
    for (chip, billions, fact) in ENGINE {
        let parameters = billions * 1e9;
        let work = DecoderWork {
            parameters,
            weight_bytes: 2.0 * parameters,
            kv_bytes_per_token: 0.0,
            ..seven()
        };
        let what = format!("{billions}B on the Neural Engine, text, tokens/s");
        let ours = written(chip, ComputeUnit::NeuralEngine, &work);
        rows.push(row(&what, chip, ours, *fact));
    }
    rows
}

#[test]
fn published_measurements_are_predicted_within_a_quarter_but_for_rows_that_are_listed() {
    let mut lines = String::from(
        "| what | chip | predicted | published | ratio | |\n|---|---|---|---|---|---|\n",
    );
    for (what, chip, ours, fact) in rows() {
        let ratio = ours / fact;
        let inside = (1.0 - MOST..=1.0 + MOST).contains(&ratio);
        let listed = OUTSIDE.iter().any(|outside| what.starts_with(outside));
        assert_eq!(inside, !listed, "{what} on {chip}: {ours:.1}, published {fact}");
        let note = if inside { "" } else { "outside" };
        let digits = if fact < 10.0 { 2 } else { 1 };
        writeln!(lines, "| {what} | {chip} | {ours:.digits$} | {fact} | {ratio:.2} | {note} |")
            .unwrap();
    }
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/simulation.md");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains(&lines), "docs/simulation.md lacks this table:\n{lines}");
}
