//! `galatea report`: a page of HTML about a model on this host, or about two beside each other.

mod beside;
mod host;
mod language;
mod live;
mod operators;
mod page;
mod roofline;
mod settings;
mod variant;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::arguments::{path, time};
use super::say;
use super::server_place::{ClientArguments, HostPort, http_place};
use beside::TimedRace;
use language::ReportedCheckpoint;
use page::{ReportPage, TableCell};
use settings::{ChangedSetting, ReportSettings};
use variant::{ReportVariant, VariantFindings};

/// Command line of `galatea report`.
#[derive(Debug, Args)]
pub(super) struct ReportArguments {
    #[arg(value_name = "MODEL", value_parser = path)]
    model: PathBuf,
    #[arg(value_name = "MODEL", value_parser = path)]
    other: Option<PathBuf>,
    #[arg(
        short,
        long,
        value_name = "FILE",
        value_parser = path,
        default_value = "report.html",
        help = "where the page goes [report.html]"
    )]
    output: PathBuf,
    #[arg(
        long = "seconds",
        value_name = "S",
        value_parser = time,
        default_value = "3",
        help = "time to measure each variant [3]"
    )]
    time: Duration,
    #[arg(
        long,
        value_name = "NAME=VALUE",
        value_parser = ChangedSetting::parse,
        help = "compare with another setting of these, such as precision=bf16; repeatable"
    )]
    against: Vec<ChangedSetting>,
    #[arg(long, help = "print what was found as a line of JSON too")]
    json: bool,
    #[arg(
        long,
        value_name = "HOST:PORT",
        value_parser = http_place,
        conflicts_with_all = ["other", "against"],
        help = "report the A/B test of MODEL on the server there, with https:// before it where that has TLS"
    )]
    server: Option<HostPort>,
    #[command(flatten)]
    client: ClientArguments,
    #[command(flatten)]
    settings: ReportSettings,
}

/// Turns of a comparison of checkpoints, of three rounds each.
const TURNS: usize = 2;

/// Writes a page about a model, or about two.
pub(super) fn report(arguments: &ReportArguments) -> Result<ExitCode, String> {
    let ReportArguments { output, time, json, .. } = arguments;
    if let Some(place) = &arguments.server {
        return of_server(arguments, place);
    }
    if arguments.client.are_given() {
        return Err("--ca-file, --insecure and --header are for --server".to_owned());
    }
    arguments.settings.gpu_memory.apply()?;
    let sides = sides(arguments)?;
    // Before minutes are spent on measuring.
    writable(output)?;
    let (text, data) = match checkpoints(&sides)? {
        Some(paths) => of_checkpoints(&sides, &paths)?,
        None => of_graphs(sides, *time)?,
    };
    std::fs::write(output, text).map_err(|error| unwritable(output, &error))?;
    say(&match json {
        true => data.to_string(),
        false => format!("{}: {}", output.display(), summary(&data)),
    });
    Ok(ExitCode::SUCCESS)
}

/// Writes the page about the A/B test of a model on a server.
fn of_server(arguments: &ReportArguments, place: &HostPort) -> Result<ExitCode, String> {
    let ReportArguments { output, json, client, .. } = arguments;
    writable(output)?;
    let name = arguments.model.to_string_lossy();
    let (text, data) = live::report(&name, &client.address(place)?)?;
    std::fs::write(output, text).map_err(|error| unwritable(output, &error))?;
    say(&match json {
        true => data.to_string(),
        false => format!("{}: {}", output.display(), live::summary(&data["ab_test"])),
    });
    Ok(ExitCode::SUCCESS)
}

fn unwritable(path: &Path, error: &std::io::Error) -> String {
    format!("'{}' cannot be written: {error}", path.display())
}

/// Refuses a file that cannot be written.
fn writable(path: &Path) -> Result<(), String> {
    let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
    file.map(drop).map_err(|error| unwritable(path, &error))
}

/// A model and how it is to run.
#[derive(Debug)]
struct ReportSide {
    name: String,
    model: PathBuf,
    settings: ReportSettings,
}

/// Returns the sides to measure: one model, two models, or one model with two settings.
fn sides(arguments: &ReportArguments) -> Result<Vec<ReportSide>, String> {
    let ReportArguments { model: one, other, against, settings, .. } = arguments;
    let first = ReportSide { name: short(one), model: one.clone(), settings: settings.clone() };
    if other.is_none() && against.is_empty() {
        return Ok(vec![first]);
    }
    let name = match other {
        None => {
            let texts: Vec<&str> = against.iter().map(ChangedSetting::text).collect();
            format!("{} with {}", first.name, texts.join(", "))
        }
        Some(two) if short(two) == first.name => format!("{} (second)", first.name),
        Some(two) => short(two),
    };
    let model = other.as_ref().unwrap_or(one).clone();
    let second = ReportSide { name, model, settings: settings.with(against)? };
    Ok(vec![first, second])
}

/// A name for a model of a path.
fn short(path: &Path) -> String {
    let name = path.file_stem().and_then(|name| name.to_str());
    let name = name.filter(|name| *name != "model");
    name.map_or_else(|| path.display().to_string(), str::to_owned)
}

/// The paths of checkpoints; nothing where models are graphs.
fn checkpoints(sides: &[ReportSide]) -> Result<Option<Vec<PathBuf>>, String> {
    let found: Result<Vec<Option<PathBuf>>, String> =
        sides.iter().map(|side| variant::is_checkpoint(&side.model)).collect();
    let found = found?;
    match found.iter().filter(|path| path.is_some()).count() {
        0 => Ok(None),
        count if count == sides.len() => Ok(Some(found.into_iter().flatten().collect())),
        _ => Err("a checkpoint can only be compared with another one".to_owned()),
    }
}

fn title(sides: &[String]) -> String {
    match sides {
        [one] => format!("{one} on this host"),
        _ => sides.join(" beside "),
    }
}

/// The page about one or two graphs.
fn of_graphs(sides: Vec<ReportSide>, time: Duration) -> Result<(String, Value), String> {
    let names: Vec<String> = sides.iter().map(|side| side.name.clone()).collect();
    let mut variants = Vec::new();
    for ReportSide { name, model, settings } in sides {
        variants.push(ReportVariant::load(&name, &model, settings)?);
    }
    let mut shared = false;
    if let [first, second] = variants.as_mut_slice() {
        shared = second.share_inputs(first);
    }
    let found = variant::measure(&variants.iter().collect::<Vec<_>>(), time)?;
    let mut page = ReportPage::new(&title(&names));
    let mut data = json!({});
    if let ([one, two], [a, b]) = (variants.as_slice(), found.as_slice()) {
        let compared = compare(one, two, a, b, shared, &mut page)?;
        put(&mut data, "comparison", compared);
    }
    for (variant, found) in variants.iter().zip(&found) {
        variant.write(found, &mut page)?;
    }
    let all = variants.iter().zip(&found).map(|(variant, found)| variant.json(found)).collect();
    put(&mut data, "variants", Value::Array(all));
    let facts = host::facts();
    host::write(&facts, &mut page);
    put(&mut data, "measured_on", facts);
    Ok((page.end(&data), data))
}

/// Times and results of two beside each other, at the top of the page.
fn compare(
    one: &ReportVariant,
    two: &ReportVariant,
    one_found: &VariantFindings,
    two_found: &VariantFindings,
    shared: bool,
    page: &mut ReportPage,
) -> Result<Value, String> {
    let names = [one.name.as_str(), two.name.as_str()];
    let race = TimedRace::of([&one_found.times, &two_found.times], [one.batch, two.batch])?;
    page.section("Beside each other");
    page.verdict(&race.sentence(names));
    let mut data = race.json();
    let curves = vec![
        variant::distribution(names[0], &one_found.times),
        variant::distribution(names[1], &two_found.times),
    ];
    page.figure(&variant::latency_picture(curves)?);
    if !shared {
        page.note("They take other inputs, so their results are not compared.");
        return Ok(data);
    }
    let apart = beside::outputs(&one_found.outputs, &two_found.outputs);
    let agree = !apart.is_empty() && apart.iter().all(beside::ResultDistance::agrees);
    page.verdict(match agree {
        true => "On the same inputs both give the same results within a thousandth.",
        false => "On the same inputs their results differ by more than a thousandth.",
    });
    let row = |one: &beside::ResultDistance| {
        vec![
            TableCell::text(&one.name),
            TableCell::number(Some(one.most).filter(|most| most.is_finite()), 6),
            TableCell::number(Some(one.relative).filter(|most| most.is_finite()), 6),
            TableCell::number(one.same_best.map(|share| share * 100.0), 1),
            TableCell::text(one.differ.clone().unwrap_or_default()),
        ]
    };
    let head = ["Output", "Furthest apart", "Of the greatest value", "Same best %", ""];
    page.table(&head, &apart.iter().map(row).collect::<Vec<_>>());
    put(&mut data, "agree", agree.into());
    put(&mut data, "outputs", apart.iter().map(beside::ResultDistance::json).collect());
    Ok(data)
}

/// The page about one or two checkpoints.
fn of_checkpoints(sides: &[ReportSide], paths: &[PathBuf]) -> Result<(String, Value), String> {
    let names: Vec<String> = sides.iter().map(|side| side.name.clone()).collect();
    let all = sides.iter().zip(paths);
    let all = all.map(|(side, path)| ReportedCheckpoint {
        name: side.name.clone(),
        job: side.settings.checkpoint_job(path),
    });
    let all: Vec<ReportedCheckpoint<'_>> = all.collect();
    let found = language::measure(&all, if all.len() > 1 { TURNS } else { 1 })?;
    let mut page = ReportPage::new(&title(&names));
    let mut data = json!({});
    if let [one, two] = found.as_slice() {
        let (sentences, compared) = language::compare(one, two)?;
        page.section("Beside each other");
        sentences.iter().for_each(|sentence| page.verdict(sentence));
        put(&mut data, "comparison", compared);
    }
    found.iter().for_each(|one| one.write(&mut page));
    put(&mut data, "variants", found.iter().map(language::ReportedLanguage::json).collect());
    let facts = host::facts();
    host::write(&facts, &mut page);
    put(&mut data, "measured_on", facts);
    Ok((page.end(&data), data))
}

fn put(data: &mut Value, name: &str, value: Value) {
    if let Some(fields) = data.as_object_mut() {
        fields.insert(name.to_owned(), value);
    }
}

/// A few words on what was found.
fn summary(data: &Value) -> String {
    let one = |variant: &Value| {
        let name = variant["name"].as_str().unwrap_or("");
        match variant["p50_ms"].as_f64() {
            Some(ms) => format!("{name} {ms:.3} ms on {}", variant["units"].as_str().unwrap_or("")),
            None => {
                let speed = |of: &str| variant["measured"][of].as_f64().unwrap_or(0.0);
                let read = speed("prefill_tokens_s");
                let written = speed("decode_tokens_s");
                format!("{name} reads {read:.1} and writes {written:.1} tokens/s")
            }
        }
    };
    let variants = data["variants"].as_array().into_iter().flatten();
    variants.map(one).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use galatea_runtime::Precision;

    use super::super::arguments::parse;
    use super::*;

    fn sample(name: &str) -> String {
        format!("{}/../../examples/models/{name}", env!("CARGO_MANIFEST_DIR"))
    }

    /// The page that a command line gives, and its numbers.
    fn written(arguments: &[&str]) -> (String, Value) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page.html");
        let output = path.display().to_string();
        let all = [arguments, &["--output", &output]].concat();
        report(&parse(&all).unwrap()).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let (_, rest) = text.split_once("id=\"report\">").unwrap();
        let (data, _) = rest.split_once("</script>").unwrap();
        for outside in ["src=", "href=", "@import", "url("] {
            assert!(!text.contains(outside), "{outside} is in the page");
        }
        let data = serde_json::from_str(data).unwrap();
        (text, data)
    }

    #[test]
    fn a_page_about_a_model_has_its_operators_and_pictures() {
        let digits = sample("digits");
        let (text, data) = written(&[&digits, "--seconds=0.05", "--batch=2", "--no-model-cache"]);
        for wanted in ["what it is", "latency", "operators", "memory", "<svg", "Conv", "IMAGE"] {
            assert!(text.contains(wanted), "{wanted} is not in the page");
        }
        let one = &data["variants"][0];
        assert!(one["p50_ms"].as_f64().unwrap() > 0.0 && one["runs"].as_u64().unwrap() >= 7);
        assert!(data.get("comparison").is_none() && !text.contains("NaN"));
    }

    #[test]
    fn two_settings_are_compared_on_the_same_inputs() {
        let digits = sample("digits");
        let (text, data) =
            written(&[&digits, "--seconds=0.05", "--no-model-cache", "--against", "level=O0"]);
        let compared = &data["comparison"];
        assert_eq!(
            (&compared["agree"], data["variants"].as_array().unwrap().len()),
            (&json!(true), 2)
        );
        let [low, high] =
            ["latency_low", "latency_high"].map(|name| compared[name].as_f64().unwrap());
        assert!(low <= high && low > 0.0, "{compared}");
        assert!(text.contains("level=O0") && text.contains("On the same inputs"));
    }

    #[test]
    fn a_page_about_a_checkpoint_has_prompts_and_answers() {
        let chat = sample("chat");
        let (text, data) = written(&[&chat, "--prompt-tokens=8", "--decode-tokens=4"]);
        assert!(text.contains("prompts and answers") && text.contains("a step of 1 rows"));
        let one = &data["variants"][0];
        assert!(one["measured"]["decode_tokens_s"].as_f64().unwrap() > 0.0);
        assert_eq!(one["steps"].as_array().unwrap().len(), 2);
    }

    fn of(given: &[&str]) -> Result<Vec<ReportSide>, String> {
        parse(given).and_then(|arguments| sides(&arguments))
    }

    #[test]
    fn a_model_is_compared_with_itself_in_other_settings() {
        let sides =
            of(&["m/a.onnx", "--precision=fp32", "--against", "precision=bf16", "--output", "x"]);
        let sides = sides.unwrap();
        let found: Vec<_> = sides
            .iter()
            .map(|side| (side.name.as_str(), side.settings.session.precision))
            .collect();
        let [exact, half] = [Some(Precision::Fp32), Some(Precision::Bf16)];
        assert_eq!(found, [("a", exact), ("a with precision=bf16", half)]);
        let two = of(&["a/m.onnx", "b/m.onnx"]).unwrap();
        assert_eq!((two[0].name.as_str(), two[1].name.as_str()), ("m", "m (second)"));
    }

    #[test]
    fn mistakes_are_named() {
        for (given, expected) in [
            (&[][..], "MODEL is missing"),
            (&["a", "b", "c"], "unexpected argument 'c'"),
            (&["a", "--against", "speed"], "--against expects NAME=VALUE, got 'speed'"),
            (&["a", "--against", "output=x"], "there is no setting 'output'; there are batch"),
            (&["a", "--against", "threads=x"], "--against: --threads expects a number, got 'x'"),
            (&["a", "--plot", "x"], "unknown option --plot"),
        ] {
            let error = of(given).unwrap_err();
            assert!(error.contains(expected), "{given:?}: {error}");
        }
    }
}
