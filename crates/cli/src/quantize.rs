//! `galatea quantize`: a model with fewer bits, and what that costs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use galatea_formats::onnx;
use galatea_runtime::SessionOptions;
use galatea_runtime::quantize::{
    AccuracyBound, OutputLikeness, QuantizeContext, QuantizeMode, QuantizeOptions, QuantizeReport,
    RangeMethod, RoundingAlgorithm, quantize as quantize_graph,
};
use indicatif::ProgressBar;
use serde_json::{Value, json};

use super::arguments::{choice, number, path};
use super::samples::samples;
use super::{engine, model, say};
use crate::table::table;

/// Command line of `galatea quantize`.
#[derive(Debug, Args)]
pub(super) struct QuantizeArguments {
    #[arg(value_name = "MODEL", value_parser = path)]
    model: PathBuf,
    #[arg(long, value_name = "FILE.onnx", value_parser = path, help = "the model to write")]
    output: Option<PathBuf>,
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
    #[arg(
        long,
        value_name = "N",
        value_parser = number::<usize>,
        default_value_t = 0,
        help = "threads inside an operator [all cores]"
    )]
    threads: usize,
    #[arg(long, value_name = "NAME", help = "run on this provider")]
    provider: Option<String>,
}

/// Options for what is quantised and how.
#[derive(Debug, Args)]
struct QuantizeChoices {
    #[arg(
        long,
        value_name = "MODE",
        value_parser = choice(MODES),
        default_value = "dynamic",
        help = "dynamic: INT8 weights of products, inputs become UINT8 as a run goes; \
                static: INT8 weights and values with scales from calibration; \
                int4: weights of products in blocks of 4 bits; \
                fp16, bf16: weights of 16 bits; mixed: static, and FP16 for the rest [dynamic]"
    )]
    mode: QuantizeMode,
    #[arg(
        long,
        value_name = "DATA",
        help = "samples: .npz files or folders of them, each one run, or several along an axis in front; repeatable"
    )]
    calibration: Vec<String>,
    #[arg(
        long,
        value_name = "DATA",
        help = "samples on which agreement is measured; repeatable [those of --calibration]"
    )]
    evaluation: Vec<String>,
    #[command(flatten)]
    range: RangeChoices,
    #[arg(long, conflicts_with = "per_tensor", help = "a scale for each result [yes]")]
    per_channel: bool,
    #[arg(long, help = "one scale for all weights of a layer")]
    per_tensor: bool,
    #[arg(
        long,
        conflicts_with = "symmetric",
        help = "ranges of values (int4: of weights) need not be around zero [yes]"
    )]
    asymmetric: bool,
    #[arg(long, help = "ranges are around zero")]
    symmetric: bool,
    #[arg(
        long,
        value_name = "N",
        value_parser = number::<usize>,
        help = "weights of 4 bits that share a scale [32]"
    )]
    block: Option<usize>,
    #[arg(
        long,
        value_name = "NAME",
        value_parser = choice(ALGORITHMS),
        help = "int4: rtn rounds each weight to the nearest number, gptq makes up for errors \
                by calibration [rtn]"
    )]
    algorithm: Option<RoundingAlgorithm>,
    #[arg(long, help = "fp16, bf16, mixed: sums and products of 16 bits too, not weights alone")]
    half_arithmetic: bool,
    #[arg(
        long,
        value_name = "SHARE",
        value_parser = number::<f64>,
        help = "agreement with FP32 to reach: the worst layers stay in FP32 until it holds [0.992]"
    )]
    bound: Option<f64>,
    #[arg(
        long,
        value_name = "NAME",
        value_parser = choice(AGREEMENTS),
        help = "top1, cosine or auto: top1 for outputs [rows, classes], else cosine [auto]"
    )]
    agreement: Option<AccuracyBound>,
    #[arg(long, value_name = "LAYER", help = "keep this layer in FP32; repeatable")]
    exclude: Vec<String>,
    #[arg(
        long,
        value_name = "N",
        value_parser = number::<usize>,
        help = "the most layers whose effect on the whole is measured to find the worst [64]"
    )]
    probes: Option<usize>,
}

/// Words of `--mode`.
const MODES: &[(&str, QuantizeMode)] = &[
    ("dynamic", QuantizeMode::Dynamic),
    ("static", QuantizeMode::Static),
    ("int4", QuantizeMode::Int4),
    ("fp16", QuantizeMode::Fp16),
    ("bf16", QuantizeMode::Bf16),
    ("mixed", QuantizeMode::Mixed),
];
/// Words of `--algorithm`.
const ALGORITHMS: &[(&str, RoundingAlgorithm)] =
    &[("rtn", RoundingAlgorithm::RoundToNearest), ("gptq", RoundingAlgorithm::Gptq)];
/// Words of `--agreement`.
const AGREEMENTS: &[(&str, AccuracyBound)] = &[
    ("auto", AccuracyBound::Auto),
    ("top1", AccuracyBound::Top1),
    ("cosine", AccuracyBound::Cosine),
];

/// Options for ranges of values.
#[derive(Debug, Args)]
pub(super) struct RangeChoices {
    #[arg(
        long,
        value_name = "NAME",
        value_parser = choice(METHODS),
        help = "range of values between layers: minmax, entropy or percentile [minmax]"
    )]
    pub(super) method: Option<RangeName>,
    #[arg(
        long,
        value_name = "P",
        value_parser = number::<f64>,
        help = "share of values in the range, in percent [99.99]"
    )]
    pub(super) percentile: Option<f64>,
}

/// Name of a method for ranges of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RangeName {
    MinMax,
    Entropy,
    Percentile,
}

/// Words of `--method`.
const METHODS: &[(&str, RangeName)] = &[
    ("minmax", RangeName::MinMax),
    ("entropy", RangeName::Entropy),
    ("percentile", RangeName::Percentile),
];
/// Share of values in a range, in percent, where nothing else is said.
const PERCENTILE: f64 = 99.99;

impl RangeChoices {
    /// Returns the method for ranges of values.
    ///
    /// # Errors
    /// Fails when a percentile is given for another method.
    pub(super) fn range_method(&self, usual: RangeMethod) -> Result<RangeMethod, String> {
        match (self.method, self.percentile) {
            (Some(RangeName::MinMax | RangeName::Entropy), Some(_)) => {
                Err("--percentile goes with --method percentile".to_owned())
            }
            (Some(RangeName::MinMax), None) => Ok(RangeMethod::MinMax),
            (Some(RangeName::Entropy), None) => Ok(RangeMethod::Entropy),
            (Some(RangeName::Percentile), None) => Ok(RangeMethod::Percentile(PERCENTILE)),
            (_, Some(percentile)) => Ok(RangeMethod::Percentile(percentile)),
            (None, None) => Ok(usual),
        }
    }
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
    let output = arguments.output.as_ref().ok_or("--output FILE.onnx is missing")?;
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
    let session = SessionOptions { threads: *threads, ..SessionOptions::default() };
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

impl QuantizeChoices {
    fn options(&self) -> Result<QuantizeOptions, String> {
        let usual = QuantizeOptions::new(self.mode);
        Ok(QuantizeOptions {
            method: self.range.range_method(usual.method)?,
            per_channel: (self.per_channel || usual.per_channel) && !self.per_tensor,
            symmetric: (self.symmetric || usual.symmetric) && !self.asymmetric,
            block: self.block.unwrap_or(usual.block),
            algorithm: self.algorithm.unwrap_or(usual.algorithm),
            half_arithmetic: self.half_arithmetic,
            bound: self.bound.unwrap_or(usual.bound),
            agreement: self.agreement.unwrap_or(usual.agreement),
            exclude: self.exclude.clone(),
            probes: self.probes.unwrap_or(usual.probes),
            ..usual
        })
    }
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

#[cfg(test)]
mod tests {
    use super::super::arguments::parse;
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<QuantizeOptions, String> {
        parse::<QuantizeChoices>(arguments)?.options()
    }

    #[test]
    fn options_are_read_and_mistakes_are_named() {
        let found = parsed(&["--mode", "static", "--percentile=99.9", "--symmetric"]).unwrap();
        assert_eq!((found.mode, found.symmetric), (QuantizeMode::Static, true));
        assert_eq!(found.method, RangeMethod::Percentile(99.9));
        assert_eq!(parsed(&[]).unwrap(), QuantizeOptions::new(QuantizeMode::Dynamic));
        let error = |arguments: &[&str]| parsed(arguments).unwrap_err();
        assert!(error(&["--mode", "int3"]).contains("dynamic, static, int4"));
        assert!(error(&["--per-channel", "--per-tensor"]).contains("exclude each other"));
        assert!(error(&["--method=entropy", "--percentile=99"]).contains("--method percentile"));
        assert!(error(&["--block", "x"]).contains("expects a number"));
    }
}
