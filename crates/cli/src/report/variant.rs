//! Measurements of a graph with its settings.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use galatea_graph::Dim;
use galatea_runtime::{IoInfo, PlacementReport, ProfileRow, Run, Session, SessionExplanation};
use galatea_tensor::{OrderedMap, Tensor};
use serde_json::{Value, json};

use super::operators::{OPERATORS, operator_rows, parts_of_time};
use super::page::{ReportPage, TableCell};
use super::roofline::{self, RooflinePoint, RooflineRoof};
use super::settings::ReportSettings;
use crate::plot::{self, PlotCurve, PlotPanel};
use crate::step_profile::{DeviceRoofs, HOST};
use crate::{generate, measurement, model};

/// Runs before the measurement.
const WARM_UP_RUNS: usize = 2;
/// Fewest runs of a measurement, however long they take.
const MIN_RUNS: usize = 7;
/// Runs whose operators are timed; the one in the middle counts.
const PROFILED: usize = 3;
/// Points of a curve.
const CURVE: usize = 100;

/// A graph with its settings, ready to run.
#[derive(Debug)]
pub(super) struct ReportVariant {
    pub(super) name: String,
    settings: ReportSettings,
    path: PathBuf,
    pub(super) session: Session,
    inputs: Vec<(String, Tensor)>,
    /// Rows of a run.
    pub(super) batch: usize,
    load: Duration,
    source: String,
}

/// Results of measuring a graph.
#[derive(Debug)]
pub(super) struct VariantFindings {
    /// Milliseconds of runs, in their order.
    pub(super) times: Vec<f64>,
    pub(super) outputs: Vec<(String, Tensor)>,
    rows: Vec<ProfileRow>,
    roofs: DeviceRoofs,
    ways: Vec<PlacementReport>,
    explained: SessionExplanation,
}

impl ReportVariant {
    /// Loads a model as its settings ask for.
    ///
    /// # Errors
    /// Fails when the model cannot be prepared, or its inputs cannot be guessed.
    pub(super) fn load(name: &str, given: &Path, settings: ReportSettings) -> Result<Self, String> {
        let path = model::find(given)?;
        let begin = Instant::now();
        let loaded = settings.model(&path)?;
        let load = begin.elapsed();
        let lengths = settings.lengths();
        let made = generate::inputs(loaded.session(), lengths, &settings.shapes.by_input())?;
        let batch = if made.by_batch { lengths.batch } else { 1 };
        let source = loaded.origin().to_string();
        let session = loaded.into_session();
        let name = name.to_owned();
        Ok(Self { name, settings, path, session, inputs: made.inputs, batch, load, source })
    }

    /// Takes the inputs of another one, where it takes such ones; says whether.
    pub(super) fn share_inputs(&mut self, other: &Self) -> bool {
        let takes = |(name, tensor): &(String, Tensor)| {
            let own = self.inputs.iter().find(|(own, _)| own == name);
            own.is_some_and(|(_, own)| {
                own.dtype() == tensor.dtype() && own.shape() == tensor.shape()
            })
        };
        let fits = self.inputs.len() == other.inputs.len() && other.inputs.iter().all(takes);
        if fits {
            self.inputs.clone_from(&other.inputs);
        }
        fits
    }

    fn run(&self, inputs: &[(&str, Tensor)]) -> Result<Vec<Tensor>, String> {
        self.session
            .run_tensors(Run::named(inputs))
            .map_err(|error| format!("{}: {error}", self.name))
    }

    /// Everything but the times: operators, ways, results.
    fn found(&self, times: Vec<f64>, outputs: Vec<Tensor>) -> Result<VariantFindings, String> {
        let inputs = measurement::named(&self.inputs);
        let mut all = Vec::new();
        for _ in 0..PROFILED {
            let rows = self
                .session
                .run(Run::named(&inputs).profiled())
                .map_err(|error| error.to_string())?
                .rows;
            all.push(rows);
        }
        let sum = |rows: &Vec<ProfileRow>| rows.iter().map(|row| row.time).sum::<Duration>();
        all.sort_by_key(sum);
        let rows = all.into_iter().nth(PROFILED / 2).unwrap_or_default();
        let names = self.session.outputs().iter().map(|output| output.name.clone());
        Ok(VariantFindings {
            times,
            outputs: names.zip(outputs).collect(),
            roofs: DeviceRoofs::of(self.settings.session.provider.as_deref(), &rows),
            rows,
            ways: measurement::ways(&self.session, &self.inputs)?,
            explained: self.session.explain(),
        })
    }
}

/// Runs variants in turns for a time each, so that all of them meet the same noise.
///
/// # Errors
/// Fails when a run fails.
pub(super) fn measure(
    variants: &[&ReportVariant],
    time: Duration,
) -> Result<Vec<VariantFindings>, String> {
    let inputs: Vec<_> =
        variants.iter().map(|variant| measurement::named(&variant.inputs)).collect();
    let mut outputs = Vec::new();
    for (variant, inputs) in variants.iter().zip(&inputs) {
        let settled = variant.session.try_placements(inputs, measurement::SETTLING);
        settled.map_err(|error| format!("{}: {error}", variant.name))?;
        for _ in 1..WARM_UP_RUNS {
            variant.run(inputs)?;
        }
        outputs.push(variant.run(inputs)?);
    }
    let mut times = vec![Vec::new(); variants.len()];
    let whole = time * u32::try_from(variants.len()).unwrap_or(1);
    let begin = Instant::now();
    while times.first().is_some_and(|times| times.len() < MIN_RUNS) || begin.elapsed() < whole {
        for ((variant, inputs), times) in variants.iter().zip(&inputs).zip(&mut times) {
            let run = Instant::now();
            variant.run(inputs)?;
            times.push(run.elapsed().as_secs_f64() * 1e3);
        }
    }
    let all = variants.iter().zip(times).zip(outputs);
    all.map(|((variant, times), outputs)| variant.found(times, outputs)).collect()
}

/// The value that a share of sorted values does not exceed.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a place in the list"
    )]
    let place = (sorted.len() as f64 * share) as usize;
    sorted.get(place.min(last)).copied().unwrap_or(0.0)
}

fn sorted(times: &[f64]) -> Vec<f64> {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The share of runs that took no longer, over milliseconds.
pub(super) fn distribution(name: &str, times: &[f64]) -> PlotCurve {
    let sorted = sorted(times);
    let step = sorted.len().div_ceil(CURVE).max(1);
    let count = sorted.len().max(1) as f64;
    let point = |(at, time): (usize, &f64)| (*time, (at + 1) as f64 * 100.0 / count);
    let points = sorted.iter().enumerate().step_by(step).map(point).collect();
    PlotCurve { name: name.to_owned(), points }
}

/// The distributions of some times as a picture.
///
/// # Errors
/// Fails when it cannot be drawn.
pub(super) fn latency_picture(curves: Vec<PlotCurve>) -> Result<String, String> {
    let axes = ("ms".to_owned(), "% of runs that took no longer".to_owned());
    plot::svg(&[PlotPanel { title: "Latency".to_owned(), axes, curves }])
}

impl ReportVariant {
    /// Everything that was found, section by section.
    ///
    /// # Errors
    /// Fails when a picture cannot be drawn.
    pub(super) fn write(
        &self,
        found: &VariantFindings,
        page: &mut ReportPage,
    ) -> Result<(), String> {
        page.section(&format!("{}: what it is", self.name));
        page.facts(&self.facts()?);
        page.section(&format!("{}: latency", self.name));
        page.table(
            &["Runs", "Min ms", "P50 ms", "Mean ms", "P90 ms", "P99 ms", "Per second"],
            &[self.latency(found)],
        );
        page.figure(&latency_picture(vec![distribution(&self.name, &found.times)])?);
        page.section(&format!("{}: parts and units", self.name));
        page.note("Predicted from the shapes that the model fixes and usual lengths; measured in the run.");
        page.table(
            &["Part", "Unit", "Nodes", "Predicted ms", "Others ms"],
            &parts(&found.explained),
        );
        page.table(&["Unit", "Predicted ms", "Kernels measured ms"], &found.units());
        found.explained.notes.iter().for_each(|note| page.note(note));
        if !found.ways.is_empty() {
            page.section(&format!("{}: ways to run it", self.name));
            page.table(&["Units", "ms", "", ""], &ways(&found.ways));
        }
        page.section(&format!("{}: operators", self.name));
        let text = found.roofs.text(&found.rows);
        if !text.is_empty() {
            page.paragraph(&text);
        }
        let profile = found.roofs.json(&found.rows);
        let middle = quantile(&sorted(&found.times), 0.5) * 1e3;
        page.paragraph(&parts_of_time("The run in the middle", middle, &profile));
        page.table(OPERATORS, &operator_rows(&profile));
        if let Some(us) = profile["host_us"].as_f64().filter(|us| *us > 0.0) {
            page.note(&format!("Around them the host takes {us:.1} us."));
        }
        match found.roofline()? {
            Some(svg) => page.figure(&svg),
            None => page.note("No operator says both its arithmetic and its bytes."),
        }
        if found.roofs().is_empty() {
            page.note("What the units reach at most is not known here, so there are no roofs and no bounds.");
        }
        page.section(&format!("{}: memory", self.name));
        page.facts(&self.memory());
        Ok(())
    }

    fn facts(&self) -> Result<Vec<(String, String)>, String> {
        let original = model::load(&self.path, self.settings.session.function.name.as_deref())?;
        let graph = self.session.graph();
        let mut counts: OrderedMap<String, usize> = OrderedMap::new();
        for node in &graph.nodes {
            *counts.entry(node.operator_name()).or_default() += 1;
        }
        let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let counts: Vec<String> =
            counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
        let weights = original.graph.values().iter().filter_map(|value| value.initializer.as_ref());
        let parameters: usize = weights.map(Tensor::elements).sum();
        let fact = |name: &str, value: String| (name.to_owned(), value);
        let mut facts = vec![
            fact("file", self.path.display().to_string()),
            fact("parameters", parameters.to_string()),
            fact(
                "nodes",
                format!("{}, {} after rewriting", original.graph.nodes.len(), graph.nodes.len()),
            ),
            fact("operators", counts.join(", ")),
            fact("inputs", ports(self.session.inputs())),
            fact("outputs", ports(self.session.outputs())),
            fact("units", model::used_providers(&self.session)),
            fact("loaded", format!("in {:.0} ms ({})", self.load.as_secs_f64() * 1e3, self.source)),
            fact("measured with", given(&self.inputs)),
        ];
        facts.extend(self.settings.given().into_iter().map(|(name, value)| fact(name, value)));
        Ok(facts)
    }

    fn latency(&self, found: &VariantFindings) -> Vec<TableCell> {
        let sorted = sorted(&found.times);
        let mean = sorted.iter().sum::<f64>() / sorted.len().max(1) as f64;
        let ms = |value: f64| TableCell::number(Some(value), 3);
        vec![
            TableCell::Number(sorted.len().to_string()),
            ms(quantile(&sorted, 0.0)),
            ms(quantile(&sorted, 0.5)),
            ms(mean),
            ms(quantile(&sorted, 0.9)),
            ms(quantile(&sorted, 0.99)),
            TableCell::number(Some(self.batch as f64 * 1e3 / mean.max(1e-9)), 1),
        ]
    }

    fn memory(&self) -> Vec<(String, String)> {
        let memory = self.session.report().memory;
        let plans = self.session.report().plans;
        let all = [
            ("weights in memory", memory.initializer_bytes),
            ("weights in mapped files", memory.mapped_bytes),
            ("intermediate values", plans.arena_bytes),
            ("of which live at once", plans.live_bytes),
        ];
        let mega = |bytes: usize| format!("{:.3} MB", bytes as f64 / 1e6);
        all.into_iter().map(|(name, bytes)| (name.to_owned(), mega(bytes))).collect()
    }

    /// The same for programs.
    pub(super) fn json(&self, found: &VariantFindings) -> Value {
        let sorted = sorted(&found.times);
        let ways: Vec<Value> = found.ways.iter().map(measurement::way_json).collect();
        let memory = self.session.report().memory;
        json!({
            "name": self.name,
            "model": self.path.display().to_string(),
            "units": model::used_providers(&self.session),
            "batch": self.batch,
            "runs": sorted.len(),
            "p50_ms": quantile(&sorted, 0.5),
            "p99_ms": quantile(&sorted, 0.99),
            "mean_ms": sorted.iter().sum::<f64>() / sorted.len().max(1) as f64,
            "ways": ways,
            "profile": found.roofs.json(&found.rows),
            "weight_bytes": memory.initializer_bytes,
            "mapped_bytes": memory.mapped_bytes,
        })
    }
}

impl VariantFindings {
    /// The steps, without what the host does around those of a GPU.
    fn kernels(&self) -> impl Iterator<Item = &ProfileRow> {
        self.rows.iter().filter(|row| row.op != HOST)
    }

    /// Each unit's predicted time beside what its kernels took.
    fn units(&self) -> Vec<Vec<TableCell>> {
        let mut units: OrderedMap<&str, (f64, Option<f64>)> = OrderedMap::new();
        for node in self.explained.partitions.iter().flatten() {
            units.entry(&node.provider).or_default().0 += node.cost_ns / 1e6;
        }
        for row in self.kernels() {
            let measured = &mut units.entry(row.provider).or_default().1;
            *measured = Some(measured.unwrap_or(0.0) + row.time.as_secs_f64() * 1e3);
        }
        let row = |(name, (predicted, measured)): (&str, (f64, Option<f64>))| {
            vec![
                TableCell::text(name),
                TableCell::number(Some(predicted), 3),
                TableCell::number(measured, 3),
            ]
        };
        units.into_iter().map(row).collect()
    }

    fn roofs(&self) -> Vec<RooflineRoof> {
        let mut names: Vec<&'static str> = self.rows.iter().map(|row| row.provider).collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter().flat_map(|name| RooflineRoof::of(name, &self.roofs.peaks(name))).collect()
    }

    fn roofline(&self) -> Result<Option<String>, String> {
        let mut points: OrderedMap<(&str, &str), RooflinePoint> = OrderedMap::new();
        let all: f64 = self.kernels().map(|row| row.time.as_secs_f64()).sum();
        for row in self.kernels() {
            let point = points.entry((&row.op, &row.kernel)).or_insert_with(|| RooflinePoint {
                name: row.op.clone(),
                work: galatea_runtime::ArithmeticWork::default(),
                time: 0.0,
                share: 0.0,
            });
            point.work = point.work.plus(row.work);
            point.time += row.time.as_secs_f64();
            point.share = point.time / all.max(1e-12);
        }
        let points: Vec<RooflinePoint> = points.into_values().collect();
        roofline::svg(&points, &self.roofs())
    }
}

/// Names, types and shapes.
fn ports(ports: &[IoInfo]) -> String {
    let one = |port: &IoInfo| {
        let dims: Vec<String> = port.dims.iter().map(Dim::to_string).collect();
        format!("{} {}[{}]", port.name, port.dtype, dims.join(","))
    };
    ports.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Lists the inputs of a run with their shapes.
fn given(inputs: &[(String, Tensor)]) -> String {
    let one = |(name, tensor): &(String, Tensor)| format!("{name} {:?}", tensor.shape());
    inputs.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn parts(explained: &SessionExplanation) -> Vec<Vec<TableCell>> {
    let row = |(index, nodes): (usize, &Vec<_>)| {
        let times = explained.times.get(index).map_or(&[][..], Vec::as_slice);
        let others = times.iter().skip(1).map(|(name, ns)| format!("{name} {:.3}", ns / 1e6));
        let own = times.first();
        vec![
            TableCell::Number(index.to_string()),
            TableCell::text(own.map_or("", |(name, _)| name.as_str())),
            TableCell::Number(nodes.len().to_string()),
            TableCell::number(own.map(|(_, ns)| ns / 1e6), 3),
            TableCell::text(others.collect::<Vec<_>>().join(", ")),
        ]
    };
    explained.partitions.iter().enumerate().map(row).collect()
}

fn ways(ways: &[PlacementReport]) -> Vec<Vec<TableCell>> {
    let ms = |way: &PlacementReport| way.time.as_secs_f64() * 1e3;
    let most = ways.iter().filter(|way| way.failed.is_none()).map(ms).fold(0.0, f64::max);
    let row = |way: &PlacementReport| {
        let known = if way.measured { "measured" } else { "predicted" };
        vec![
            TableCell::text(measurement::shortened(&way.providers)),
            TableCell::number(way.failed.is_none().then(|| ms(way)), 3),
            TableCell::text(way.failed.clone().unwrap_or_else(|| known.to_owned())),
            TableCell::Bar(if way.failed.is_none() { ms(way) / most.max(1e-12) } else { 0.0 }),
        ]
    };
    ways.iter().map(row).collect()
}

/// Returns the checkpoint that a path stands for, if any; it has no graph to be measured as others are.
pub(super) fn is_checkpoint(given: &Path) -> Result<Option<PathBuf>, String> {
    let found = model::checkpoint(given)?;
    if let Some(path) = &found {
        model::refuse_chunks(Path::new(path), "report", "models and checkpoints")?;
    }
    Ok(found)
}
