//! `galatea quantize`: a model with fewer bits, and what that costs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use galatea_formats::onnx;
use galatea_runtime::SessionOptions;
use galatea_runtime::quantize::{
    AccuracyBound, OutputLikeness, QuantizeContext, QuantizeMode, QuantizeOptions, QuantizeReport,
    RangeMethod, RoundingAlgorithm, quantize as quantize_graph,
};
use indicatif::ProgressBar;
use serde_json::{Value, json};

use super::arguments::{CommandArguments, CommandOption};
use super::samples::samples;
use super::{engine, model, say};
use crate::table::table;

const CHOICES: &[CommandOption] = &[
    CommandOption { name: "output", value: "FILE.onnx", sentence: "the model to write" },
    CommandOption {
        name: "mode",
        value: "MODE",
        sentence: "dynamic: INT8 weights of products, inputs become UINT8 as a run goes; \
                   static: INT8 weights and values with scales from calibration; \
                   int4: weights of products in blocks of 4 bits; \
                   fp16, bf16: weights of 16 bits; mixed: static, and FP16 for the rest [dynamic]",
    },
    CommandOption {
        name: "calibration",
        value: "DATA",
        sentence: "samples: .npz files or folders of them, each one run, or several along an axis in front; repeatable",
    },
    CommandOption {
        name: "evaluation",
        value: "DATA",
        sentence: "samples on which agreement is measured; repeatable [those of --calibration]",
    },
    CommandOption {
        name: "method",
        value: "NAME",
        sentence: "range of values between layers: minmax, entropy or percentile [minmax]",
    },
    CommandOption {
        name: "percentile",
        value: "P",
        sentence: "share of values in the range, in percent [99.99]",
    },
    CommandOption { name: "per-channel", value: "", sentence: "a scale for each result [yes]" },
    CommandOption {
        name: "per-tensor",
        value: "",
        sentence: "one scale for all weights of a layer",
    },
    CommandOption {
        name: "asymmetric",
        value: "",
        sentence: "ranges of values (int4: of weights) need not be around zero [yes]",
    },
    CommandOption { name: "symmetric", value: "", sentence: "ranges are around zero" },
    CommandOption {
        name: "block",
        value: "N",
        sentence: "weights of 4 bits that share a scale [32]",
    },
    CommandOption {
        name: "algorithm",
        value: "NAME",
        sentence: "int4: rtn rounds each weight to the nearest number, gptq makes up for errors \
                   by calibration [rtn]",
    },
    CommandOption {
        name: "half-arithmetic",
        value: "",
        sentence: "fp16, bf16, mixed: sums and products of 16 bits too, not weights alone",
    },
    CommandOption {
        name: "bound",
        value: "SHARE",
        sentence: "agreement with FP32 to reach: the worst layers stay in FP32 until it holds [0.992]",
    },
    CommandOption {
        name: "agreement",
        value: "NAME",
        sentence: "top1, cosine or auto: top1 for outputs [rows, classes], else cosine [auto]",
    },
    CommandOption {
        name: "exclude",
        value: "LAYER",
        sentence: "keep this layer in FP32; repeatable",
    },
    CommandOption {
        name: "probes",
        value: "N",
        sentence: "the most layers whose effect on the whole is measured to find the worst [64]",
    },
    CommandOption {
        name: "write-anyway",
        value: "",
        sentence: "write the model even where no choice of layers reaches --bound",
    },
    CommandOption {
        name: "external",
        value: "BYTES",
        sentence: "with more bytes of constants, put them into FILE.onnx.data [1073741824]",
    },
    CommandOption { name: "report", value: "FILE.json", sentence: "write the report there too" },
    CommandOption {
        name: "threads",
        value: "N",
        sentence: "threads inside an operator [all cores]",
    },
    CommandOption { name: "provider", value: "NAME", sentence: "run on this provider" },
];

/// Layers in the text of a report; the JSON has all.
const SHOWN_LAYERS: usize = 60;

/// Returns the options of the command.
pub(super) fn choices() -> Vec<CommandOption> {
    CHOICES.to_vec()
}

/// Quantises a model.
pub(super) fn quantize(arguments: &CommandArguments) -> Result<ExitCode, String> {
    let given = arguments.only("MODEL")?;
    model::refuse_chunks(
        given.as_ref(),
        "quantize",
        "ONNX models; 'galatea convert --weights' chooses how chunks are stored",
    )?;
    let path = model::find(given)?;
    let output = PathBuf::from(arguments.last("output").ok_or("--output FILE.onnx is missing")?);
    if output.extension().is_none_or(|extension| extension != "onnx") {
        return Err(format!("--output expects a file *.onnx, got '{}'", output.display()));
    }
    let inline_bytes = arguments.number("external", onnx::WriteOptions::default().inline_bytes)?;
    let options = options(arguments)?;
    let loaded = model::load(&path, arguments)?;
    let calibration = samples(&loaded.graph, arguments.all("calibration"))?;
    let evaluation = match arguments.all("evaluation") {
        [] => calibration.clone(),
        named => samples(&loaded.graph, named)?,
    };
    let session =
        SessionOptions { threads: arguments.number("threads", 0)?, ..SessionOptions::default() };
    let providers = engine().providers(arguments.last("provider"))?;
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
    let written = done.report.holds() || arguments.has("write-anyway");
    if written {
        // The model may be read from the file that is written: it stays mapped until here.
        onnx::write_model(&done.graph, &info, &output, onnx::WriteOptions { inline_bytes })
            .map_err(|error| error.to_string())?;
    }
    let output = written.then_some(output.as_path());
    if let Some(file) = arguments.last("report") {
        let text = format!("{:#}\n", as_json(&done.report, &path, output));
        fs::write(file, text).map_err(|error| format!("'{file}' cannot be written: {error}"))?;
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

/// One of several keywords.
pub(super) fn keyword<T: Copy>(
    arguments: &CommandArguments,
    name: &str,
    choices: &[(&str, T)],
    default: T,
) -> Result<T, String> {
    let Some(given) = arguments.last(name) else { return Ok(default) };
    choices.iter().find(|(word, _)| *word == given).map(|(_, value)| *value).ok_or_else(|| {
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        format!("--{name} expects one of {}, got '{given}'", words.join(", "))
    })
}

/// Returns which of two exclusive options was given; `true` for the first.
fn either(arguments: &CommandArguments, first: &str, second: &str) -> Result<Option<bool>, String> {
    match (arguments.has(first), arguments.has(second)) {
        (true, true) => Err(format!("--{first} and --{second} exclude each other")),
        (false, false) => Ok(None),
        (found, _) => Ok(Some(found)),
    }
}

/// Returns the method for ranges of values: `--method` and `--percentile`.
pub(super) fn method(
    arguments: &CommandArguments,
    usual: RangeMethod,
) -> Result<RangeMethod, String> {
    let percentile = RangeMethod::Percentile(arguments.number("percentile", 99.99)?);
    let methods = [
        ("minmax", RangeMethod::MinMax),
        ("entropy", RangeMethod::Entropy),
        ("percentile", percentile),
    ];
    let usual = if arguments.has("percentile") { percentile } else { usual };
    let found = keyword(arguments, "method", &methods, usual)?;
    if arguments.has("percentile") && found != percentile {
        return Err("--percentile goes with --method percentile".to_owned());
    }
    Ok(found)
}

fn options(arguments: &CommandArguments) -> Result<QuantizeOptions, String> {
    let modes = [
        ("dynamic", QuantizeMode::Dynamic),
        ("static", QuantizeMode::Static),
        ("int4", QuantizeMode::Int4),
        ("fp16", QuantizeMode::Fp16),
        ("bf16", QuantizeMode::Bf16),
        ("mixed", QuantizeMode::Mixed),
    ];
    let mode = keyword(arguments, "mode", &modes, QuantizeMode::Dynamic)?;
    let mut options = QuantizeOptions::new(mode);
    options.method = method(arguments, options.method)?;
    options.per_channel =
        either(arguments, "per-channel", "per-tensor")?.unwrap_or(options.per_channel);
    options.symmetric = either(arguments, "symmetric", "asymmetric")?.unwrap_or(options.symmetric);
    options.block = arguments.number("block", options.block)?;
    let algorithms =
        [("rtn", RoundingAlgorithm::RoundToNearest), ("gptq", RoundingAlgorithm::Gptq)];
    options.algorithm = keyword(arguments, "algorithm", &algorithms, options.algorithm)?;
    options.half_arithmetic = arguments.has("half-arithmetic");
    options.bound = arguments.number("bound", options.bound)?;
    let agreements = [
        ("auto", AccuracyBound::Auto),
        ("top1", AccuracyBound::Top1),
        ("cosine", AccuracyBound::Cosine),
    ];
    options.agreement = keyword(arguments, "agreement", &agreements, options.agreement)?;
    options.exclude = arguments.all("exclude").to_vec();
    options.probes = arguments.number("probes", options.probes)?;
    Ok(options)
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
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<QuantizeOptions, String> {
        let arguments: Vec<String> = arguments.iter().map(|&text| text.to_owned()).collect();
        options(&CommandArguments::parse(&arguments, CHOICES)?)
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
