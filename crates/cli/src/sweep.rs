//! `galatea bench` over several batches, sequences and numbers of threads.

use std::fs;
use std::path::Path;
use std::time::Duration;

use clap::Args;

use super::arguments::NumberList;
use super::generate::{self, ShapeChoices};
use super::measurement::{BenchFigures, BenchJob, figures, load};
use super::model::{CacheChoices, SessionChoices};
use super::plot::{self, PlotCurve, PlotPanel};
use super::say;
use crate::table::table;

/// The most points: each takes as long as `--seconds` says.
const MAX_POINTS: usize = 256;
/// The most curves of a panel that can be told apart.
const MAX_CURVES: usize = 12;

/// Options for values to measure, one or several of each.
#[derive(Debug, Args)]
pub(super) struct SweepChoices {
    #[arg(
        long,
        value_name = "N[,N…]",
        value_parser = NumberList::parse,
        default_value = "1",
        help = "length of the batch axis, or several to measure one after the other [1]"
    )]
    batch: NumberList,
    #[arg(
        long,
        value_name = "N[,N…]",
        value_parser = NumberList::parse,
        help = "length of axes along a sequence that the model leaves open [128]"
    )]
    sequence: Option<NumberList>,
    #[arg(
        long,
        value_name = "N[,N…]",
        value_parser = NumberList::parse,
        default_value = "0",
        help = "threads inside an operator, 0 for all fast cores [0]"
    )]
    threads: NumberList,
}

impl SweepChoices {
    /// Returns the number of threads, where there is one.
    ///
    /// # Errors
    /// Fails when there are several.
    pub(super) fn single_threads(&self) -> Result<usize, String> {
        match *self.threads.numbers() {
            [threads] => Ok(threads),
            _ => Err(format!("--threads expects a number, got '{}'", self.threads)),
        }
    }
}

/// Values to measure in each combination.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BenchSweep {
    pub(super) batches: Vec<usize>,
    /// None where the model's own lengths, or likely ones, hold.
    pub(super) sequences: Vec<Option<usize>>,
    /// 0 for all cores.
    pub(super) threads: Vec<usize>,
}

/// Options of measuring a sweep, beside its values.
#[derive(Debug, Clone, Copy)]
pub(super) struct SweepOptions<'a> {
    pub(super) shapes: &'a ShapeChoices,
    pub(super) session: &'a SessionChoices,
    pub(super) cache: &'a CacheChoices,
    /// Time to measure each combination.
    pub(super) time: Duration,
    /// File for the curves.
    pub(super) plot: Option<&'a Path>,
    /// Print lines of JSON in place of a table.
    pub(super) json: bool,
}

/// A combination, with its figures once they are known.
#[derive(Debug, Clone, Copy)]
struct SweepPoint {
    batch: usize,
    sequence: Option<usize>,
    threads: usize,
    figures: BenchFigures,
}

impl BenchSweep {
    /// Returns the sweep that the options ask for.
    ///
    /// # Errors
    /// Fails when there are too many combinations.
    pub(super) fn of(choices: &SweepChoices) -> Result<Self, String> {
        let sequences = match &choices.sequence {
            Some(list) => list.numbers().iter().copied().map(Some).collect(),
            None => vec![None],
        };
        let batches = choices.batch.numbers().to_vec();
        if batches.contains(&0) {
            return Err(
                "--batch expects numbers from 1, got 0: a batch of nothing has no times".to_owned()
            );
        }
        let threads = choices.threads.numbers().to_vec();
        let sweep = Self { batches, sequences, threads };
        let points = sweep.points();
        if points > MAX_POINTS {
            return Err(format!(
                "--batch, --sequence and --threads make {points} combinations, the most is {MAX_POINTS}"
            ));
        }
        Ok(sweep)
    }

    fn points(&self) -> usize {
        let lengths = [self.batches.len(), self.sequences.len(), self.threads.len()];
        lengths.into_iter().fold(1, usize::saturating_mul)
    }

    /// The only combination.
    pub(super) fn single(&self) -> Option<(usize, Option<usize>, usize)> {
        match (&self.batches[..], &self.sequences[..], &self.threads[..]) {
            (&[batch], &[sequence], &[threads]) => Some((batch, sequence, threads)),
            _ => None,
        }
    }

    /// Measures every combination; a session for each number of threads.
    pub(super) fn run(&self, path: &Path, options: &SweepOptions<'_>) -> Result<(), String> {
        let shapes = options.shapes.by_input();
        let SweepOptions { time, json: quiet, .. } = *options;
        let mut points = Vec::with_capacity(self.points());
        for &threads in &self.threads {
            let loaded = load(path, options.session, options.cache, threads)?;
            for &batch in &self.batches {
                for &sequence in &self.sequences {
                    let wanted = generate::FreeLengths { batch, sequence };
                    let made = generate::inputs(&loaded.session, wanted, &shapes)?;
                    if self.batches.len() > 1 && !made.by_batch {
                        return Err(
                            "no input has a batch axis whose length --shape leaves open".to_owned()
                        );
                    }
                    let figures = figures(&loaded.session, &made.inputs, time, quiet)?;
                    let provider = options.session.provider.as_deref();
                    let job = BenchJob { path, provider, batch, sequence, threads };
                    if quiet {
                        say(&job.json(&loaded, figures).to_string());
                    }
                    let threads = job.threads_used();
                    points.push(SweepPoint { batch, sequence, threads, figures });
                }
            }
        }
        if !quiet {
            say(&text(&points));
        }
        match options.plot {
            Some(file) => draw(file, path, &points),
            None => Ok(()),
        }
    }
}

fn text(points: &[SweepPoint]) -> String {
    let cell = |value: f64| format!("{value:.3}");
    let rows = points.iter().map(|point| {
        let BenchFigures { runs, min, median, mean, p99 } = point.figures;
        let mut row = vec![point.threads.to_string(), point.batch.to_string()];
        row.push(point.sequence.map(|length| length.to_string()).unwrap_or_default());
        row.push(runs.to_string());
        row.extend([min, median, mean, p99].map(cell));
        row.push(format!("{:.1}", point.batch as f64 * 1e3 / median.max(1e-9)));
        row
    });
    let head = [
        "Threads",
        "Batch",
        "Sequence",
        "Runs",
        "Min ms",
        "Median ms",
        "Mean ms",
        "P99 ms",
        "Per second",
    ];
    table(&head, rows)
}

fn draw(file: &Path, path: &Path, points: &[SweepPoint]) -> Result<(), String> {
    let panels = panels(&name_of(path), points);
    if panels.is_empty() {
        return Err("--plot needs a list of --batch, --sequence or --threads".to_owned());
    }
    let most = panels.iter().map(|panel| panel.curves.len()).max().unwrap_or(0);
    if most > MAX_CURVES {
        return Err(format!("a panel would have {most} curves, the most is {MAX_CURVES}"));
    }
    let text = plot::svg(&panels)?;
    fs::write(file, text)
        .map_err(|error| format!("'{}' cannot be written: {error}", file.display()))
}

/// Returns the display name of a model: that of its file, or in a repository that of its folder.
fn name_of(path: &Path) -> String {
    let name = |path: &Path| Some(path.file_stem()?.to_string_lossy().into_owned());
    let in_repository = |name: &String| name == "model" || name.parse::<u64>().is_ok();
    let mut names = path.ancestors().filter_map(name);
    let named = names.find(|name| !in_repository(name));
    named.or_else(|| name(path)).unwrap_or_default()
}

/// An axis of a sweep: its name, and where a point lies on it.
type SweepAxis = (&'static str, fn(&SweepPoint) -> Option<usize>);

const ALONG: [SweepAxis; 3] = [
    ("batch", |point| Some(point.batch)),
    ("sequence", |point| point.sequence),
    ("threads", |point| Some(point.threads)),
];

/// A panel for each axis with several lengths: a curve for each combination of the others.
fn panels(model: &str, points: &[SweepPoint]) -> Vec<PlotPanel> {
    let varies = |at: fn(&SweepPoint) -> Option<usize>| {
        points.iter().zip(points.iter().skip(1)).any(|(a, b)| at(a) != at(b))
    };
    let swept: Vec<SweepAxis> = ALONG.into_iter().filter(|(_, at)| varies(*at)).collect();
    let panel = |&(name, at): &SweepAxis| {
        let mut curves: Vec<PlotCurve> = Vec::new();
        for point in points {
            let others = swept.iter().filter(|(other, _)| *other != name);
            let others = others.map(|(other, at)| format!("{other} {}", at(point).unwrap_or(0)));
            let legend = others.collect::<Vec<_>>().join(", ");
            let here = (at(point).unwrap_or(0) as f64, point.figures.median);
            match curves.iter_mut().find(|curve| curve.name == legend) {
                Some(curve) => curve.points.push(here),
                None => curves.push(PlotCurve { name: legend, points: vec![here] }),
            }
        }
        for curve in &mut curves {
            curve.points.sort_by(|a, b| a.0.total_cmp(&b.0));
            if curve.name.is_empty() {
                "median".clone_into(&mut curve.name);
            }
        }
        PlotPanel {
            title: format!("{model}: time of a run by {name}"),
            axes: (name.to_owned(), "median, ms".to_owned()),
            curves,
        }
    };
    swept.iter().map(panel).collect()
}

#[cfg(test)]
mod tests {
    use super::super::arguments::parse;
    use super::*;

    fn point(batch: usize, sequence: Option<usize>, threads: usize) -> SweepPoint {
        let median = (batch * sequence.unwrap_or(1)) as f64 / threads as f64;
        let figures = BenchFigures { runs: 5, min: 0.0, median, mean: median, p99: median };
        SweepPoint { batch, sequence, threads, figures }
    }

    #[test]
    fn each_swept_axis_has_a_panel_and_the_others_make_curves() {
        let mut points = Vec::new();
        for threads in [1, 2] {
            points.extend([4, 1, 8].map(|batch| point(batch, None, threads)));
        }
        let panels = panels("m", &points);
        let names: Vec<&str> = panels.iter().map(|panel| panel.axes.0.as_str()).collect();
        assert_eq!(names, ["batch", "threads"]);
        let curves = &panels[0].curves;
        assert_eq!((curves[0].name.as_str(), curves[1].name.as_str()), ("threads 1", "threads 2"));
        assert_eq!(curves[0].points, [(1.0, 1.0), (4.0, 4.0), (8.0, 8.0)]);
        assert_eq!(panels[1].curves.len(), 3);
        assert_eq!(panels[1].curves[0].points, [(1.0, 4.0), (2.0, 2.0)]);
    }

    #[test]
    fn a_single_axis_has_one_curve_and_a_point_has_none() {
        let points = [32, 64].map(|sequence| point(1, Some(sequence), 2));
        let found = panels("m", &points);
        assert_eq!((found.len(), found[0].curves.len()), (1, 1));
        assert_eq!(found[0].curves[0].name, "median");
        assert!(panels("m", &points[..1]).is_empty());
    }

    #[test]
    fn models_of_a_repository_are_called_as_their_folders() {
        assert_eq!(name_of(Path::new("models/digits/1/model.onnx")), "digits");
        assert_eq!(name_of(Path::new("zoo/resnet50.onnx")), "resnet50");
        assert_eq!(name_of(Path::new("model.onnx")), "model");
    }

    #[test]
    fn single_values_are_no_sweep_and_lists_are_bounded() {
        let sweep = |text: &[&str]| parse(text).and_then(|choices| BenchSweep::of(&choices));
        assert_eq!(sweep(&[]).unwrap().single(), Some((1, None, 0)));
        assert_eq!(sweep(&["--batch", "4", "--threads=2"]).unwrap().single(), Some((4, None, 2)));
        assert_eq!(sweep(&["--sequence=8"]).unwrap().single(), Some((1, Some(8), 0)));
        assert_eq!(sweep(&["--batch=1,2"]).unwrap().single(), None);
        assert!(sweep(&["--batch=1,x"]).unwrap_err().contains("--batch expects"));
        let many = (1..=20).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        let batch = format!("--batch={many}");
        let threads = format!("--threads={many}");
        assert!(sweep(&[&batch, &threads]).unwrap_err().contains("400 combinations"));
    }
}
