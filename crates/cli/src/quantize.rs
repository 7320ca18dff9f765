//! `galatea quantize`: a model with fewer bits, and what that costs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use galatea_formats::onnx;
use galatea_runtime::SessionOptions;
use galatea_runtime::quantize::{
    OutputLikeness, QuantizeContext, QuantizeReport, quantize as quantize_graph,
};
use galatea_serving::samples::samples;
use indicatif::ProgressBar;
use serde_json::{Value, json};

use super::arguments::{number, path};
use super::model::ThreadChoice;
use super::quantize_choices::QuantizeChoices;
use super::{engine, model, say};
use crate::table::table;

/// Command line of `galatea quantize`.
#[derive(Debug, Args)]
pub(super) struct QuantizeArguments {
    #[arg(value_name = "MODEL", value_parser = path)]
    model: PathBuf,
    #[arg(long, value_name = "FILE.onnx", value_parser = path, help = "the model to write")]
    output: PathBuf,
    #[command(flatten)]
    form: QuantizeChoices,
    #[arg(long, help = "write the model even where no choice of layers reaches --bound")]
    write_anyway: bool,
    #[arg(
        long = "external",
        value_name = "BYTES",
        value_parser = number::<usize>,
        default_value_t = onnx::WriteOptions::default().inline_bytes,
        help = "with more bytes of constants, put them into FILE.onnx.data [1073741824]"
    )]
    inline_bytes: usize,
    #[arg(
        long,
        value_name = "FILE.json",
        value_parser = path,
        help = "write the report there too"
    )]
    report: Option<PathBuf>,
    #[command(flatten)]
    threads: ThreadChoice,
    #[arg(long, value_name = "NAME", help = "run on this provider")]
    provider: Option<String>,
}

/// Layers in the text of a report; the JSON has all.
const SHOWN_LAYERS: usize = 60;

/// Quantises a model.
pub(super) fn quantize(arguments: &QuantizeArguments) -> Result<ExitCode, String> {
    let QuantizeArguments { model: given, form, inline_bytes, threads, .. } = arguments;
    model::refuse_chunks(
        given,
        "quantize",
        "ONNX models; 'galatea convert --weights' chooses how chunks are stored",
    )?;
    let path = model::find(given)?;
    let output = &arguments.output;
    if output.extension().is_none_or(|extension| extension != "onnx") {
        return Err(format!("--output expects a file *.onnx, got '{}'", output.display()));
    }
    let options = form.options()?;
    let loaded = model::load(&path, None)?;
    let calibration = samples(&loaded.graph, &form.calibration)?;
    let evaluation = match form.evaluation.as_slice() {
        [] => calibration.clone(),
        named => samples(&loaded.graph, named)?,
    };
    let session = SessionOptions { threads: threads.count, ..SessionOptions::default() };
    let providers = engine().providers(arguments.provider.as_deref())?;
    let context = QuantizeContext {
        providers: &providers,
        session: &session,
        calibration: &calibration,
        evaluation: &evaluation,
    };
    let bar = ProgressBar::new_spinner();
    bar.enable_steady_tick(Duration::from_millis(200));
    let done = quantize_graph(&loaded.graph, &context, &options, &mut |text| {
        bar.set_message(text.to_owned());
    });
    bar.finish_and_clear();
    let done = done.map_err(|error| format!("{}: {error}", path.display()))?;
    let mut info = loaded.info;
    info.producer_name = "galatea".to_owned();
    info.producer_version = env!("CARGO_PKG_VERSION").to_owned();
    // A program that finds the file takes it for what was asked for.
    let written = done.report.holds() || arguments.write_anyway;
    if written {
        // The model may be read from the file that is written: it stays mapped until here.
        let options = onnx::WriteOptions { inline_bytes: *inline_bytes };
        onnx::write_model(&done.graph, &info, output, options)
            .map_err(|error| error.to_string())?;
    }
    let output = written.then_some(output.as_path());
    if let Some(file) = &arguments.report {
        let text = format!("{:#}\n", as_json(&done.report, &path, output));
        fs::write(file, text)
            .map_err(|error| format!("'{}' cannot be written: {error}", file.display()))?;
    }
    say(&as_text(&done.report, output));
    if done.report.holds() {
        return Ok(ExitCode::SUCCESS);
    }
    Err(format!(
        "no choice of layers agrees with FP32 as far as --bound asks: {:.4} of {}; {}",
        done.report.agreement.unwrap_or(0.0),
        done.report.bound,
        if written { "written all the same" } else { "nothing written (--write-anyway does)" }
    ))
}

fn likeness_json(likeness: &OutputLikeness) -> Value {
    json!({
        "cosine": likeness.cosine,
        "sqnr_db": likeness.sqnr_db,
        "kl_divergence": likeness.divergence,
        "top1": likeness.top1,
        "rows": likeness.rows,
    })
}

fn as_json(report: &QuantizeReport, model: &Path, output: Option<&Path>) -> Value {
    let layers: Vec<Value> = report
        .layers
        .iter()
        .map(|layer| {
            json!({
                "name": layer.name,
                "op": layer.op,
                "form": layer.form,
                "likeness": layer.likeness.as_ref().map(likeness_json),
                "effect": layer.effect,
                "reason": layer.reason,
            })
        })
        .collect();
    let outputs = report.outputs.iter();
    let outputs: Vec<Value> = outputs
        .map(|output| json!({"name": output.name, "likeness": likeness_json(&output.likeness)}))
        .collect();
    let attempts = report.attempts.iter();
    let attempts: Vec<Value> = attempts
        .map(|tried| json!({"left_out": tried.left_out, "agreement": tried.agreement}))
        .collect();
    json!({
        "model": model.display().to_string(),
        "output": output.map(|output| output.display().to_string()),
        "measure": report.measure,
        "agreement": report.agreement,
        "bound": report.bound,
        "holds": report.holds(),
        "attempts": attempts,
        "constant_bytes_before": report.bytes_before,
        "constant_bytes": report.bytes_after,
        "outputs": outputs,
        "layers": layers,
    })
}

/// The cells of a likeness.
fn cells(likeness: Option<&OutputLikeness>) -> [String; 4] {
    match likeness {
        None => Default::default(),
        Some(found) => [
            format!("{:.5}", found.cosine),
            format!("{:.1}", found.sqnr_db),
            format!("{:.2e}", found.divergence),
            format!("{:.4}", found.top1),
        ],
    }
}

fn as_text(report: &QuantizeReport, output: Option<&Path>) -> String {
    let head = ["Layer", "Operator", "Form", "Cosine", "SQNR dB", "KL", "Top-1", "Effect", "Why"];
    let mut rows = Vec::new();
    for layer in report.layers.iter().take(SHOWN_LAYERS) {
        let mut row = vec![layer.name.clone(), layer.op.clone(), layer.form.to_owned()];
        row.extend(cells(layer.likeness.as_ref()));
        row.push(layer.effect.map(|effect| format!("{effect:.1e}")).unwrap_or_default());
        row.push(layer.reason.clone().unwrap_or_default());
        rows.push(row);
    }
    let hidden = report.layers.len().saturating_sub(SHOWN_LAYERS);
    if hidden > 0 {
        rows.push(vec![format!("… and {hidden} more")]);
    }
    let mut text = table(&head, rows);
    let rows = report.outputs.iter().map(|output| {
        let mut row = vec![output.name.clone()];
        row.extend(cells(Some(&output.likeness)));
        row
    });
    let rows: Vec<Vec<String>> = rows.collect();
    if !rows.is_empty() {
        text.push_str(&table(&["Output", "Cosine", "SQNR dB", "KL", "Top-1"], rows));
    }
    let left = report.attempts.last().map_or(0, |attempt| attempt.left_out);
    match report.agreement {
        Some(agreement) => text.push_str(&format!(
            "agreement with FP32 ({}): {agreement:.4}, asked for {}; {left} layers left out for it\n",
            report.measure, report.bound
        )),
        None => text.push_str("no data: agreement with FP32 is not known\n"),
    }
    let megabytes = |bytes: usize| bytes as f64 / 1e6;
    text.push_str(&format!(
        "{}: {:.2} MB of constants, {:.2} MB before",
        output.map_or_else(|| "not written".to_owned(), |output| output.display().to_string()),
        megabytes(report.bytes_after),
        megabytes(report.bytes_before)
    ));
    text
}
