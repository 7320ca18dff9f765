//! Searches the static placements of a model among the units of this machine, and times the choice that `--provider
//! auto` makes beside the best of them and beside the processor alone, in turns.
//!
//! `placement MODEL UNITS [--length NAME=N]… [--cuts N] [--seconds S]`: UNITS are those of `--provider`, such as
//! `gpu,coreml:M4,cpu`; symbols of shapes without a number are 1. A placement gives a unit, or two of them, all they can
//! run on one side of a cut or on both, and the processor the rest; cuts lie where the fewest bytes cross them.

#![allow(clippy::print_stdout, reason = "a command-line program")]

use std::collections::HashMap;
use std::error::Error;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use galatea_graph::rewrite::RewriteLevel;
use galatea_graph::{Dim, Fact, Graph, converted, infer};
use galatea_runtime::device_selector::{ComputeDevices, ExecutionGoal};
use galatea_runtime::partition::live_bytes;
use galatea_runtime::{
    ClaimRequest, CompileRequest, Executable, ExecutionProvider, OptimiseLevel, PlacementOptions,
    PreparedGraph, ProviderClaims, ProviderTraits, Run, RuntimeError, Session, SessionOptions,
};
use galatea_tensor::{DataType, OrderedMap, Tensor};
use serde_json::json;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Runs of each placement beside the first, and how far behind the best one may be after one run to go on.
const RUNS: usize = 5;
/// See [`RUNS`].
const HOPELESS: f64 = 1.3;

/// A provider that takes whatever it can of some nodes, and nothing else.
#[derive(Debug)]
struct Within {
    inner: Arc<dyn ExecutionProvider>,
    nodes: Range<usize>,
}

impl ExecutionProvider for Within {
    fn traits(&self) -> ProviderTraits {
        self.inner.traits()
    }

    fn claim(&self, request: &ClaimRequest<'_>) -> ProviderClaims {
        let mut claims = self.inner.claim(request);
        claims.withdraw(&(0..self.nodes.start));
        claims.withdraw(&(self.nodes.end..request.graph.nodes.len()));
        claims.claims.iter_mut().for_each(|claim| claim.cost_ns = 0.0);
        ProviderClaims { launch_ns: 0.0, transfer_ns_per_byte: 0.0, order: None, ..claims }
    }

    fn compile(
        &self,
        request: CompileRequest<'_>,
    ) -> std::result::Result<Box<dyn Executable>, RuntimeError> {
        self.inner.compile(request)
    }
}

/// Words below 1000 for integers, everything seen by masks, numbers between -1 and 1.
fn made_up(name: &str, dtype: DataType, shape: &[usize]) -> Result<Tensor> {
    let count: usize = shape.iter().product();
    let spread = |at: usize| at * 7919 % 1000;
    let number = |at: usize| match (name.contains("mask"), dtype) {
        (true, _) => 1.0,
        (_, DataType::Int64 | DataType::Int32) if name.contains("type") => 0.0,
        (_, DataType::Int64 | DataType::Int32) => u16::try_from(spread(at)).map_or(1.0, f32::from),
        _ => u16::try_from(spread(at)).map_or(0.0, f32::from) / 500.0 - 1.0,
    };
    let numbers = Tensor::from_vec(shape, (0..count).map(number).collect())?;
    Ok(converted(&numbers, dtype)?)
}

/// A model, and what its runs are given.
struct PlacedModel {
    graph: Graph,
    fed: Vec<(String, Tensor)>,
}

impl PlacedModel {
    fn load(path: &str, lengths: &OrderedMap<String, usize>) -> Result<Self> {
        let graph = galatea_formats::onnx::load(Path::new(path))?;
        let mut fed = Vec::new();
        for &id in &graph.inputs {
            let value = graph.value(id);
            let fact = value.declared.clone().ok_or("an input without a type")?;
            let number = |name: &str| Some(lengths.get(name).copied().unwrap_or(1));
            let dims = fact.shape.ok_or("an input without a shape")?;
            let shape: Vec<usize> =
                dims.iter().map(|dim: &Dim| dim.evaluate(&number).unwrap_or(1)).collect();
            fed.push((value.name.clone(), made_up(&value.name, fact.dtype, &shape)?));
        }
        Ok(Self { graph, fed })
    }

    fn fed(&self) -> Vec<(&str, Tensor)> {
        self.fed.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect()
    }

    fn session(
        &self,
        providers: &[Arc<dyn ExecutionProvider>],
        routing: Option<PlacementOptions>,
    ) -> Result<Session> {
        let options = SessionOptions { routing, ..SessionOptions::default() };
        Ok(Session::new(self.graph.clone(), providers, &options)?)
    }

    fn time(&self, session: &Session) -> Result<Duration> {
        let fed = self.fed();
        let begin = Instant::now();
        session.run(Run::named(&fed))?;
        Ok(begin.elapsed())
    }

    /// Places where the graph, rewritten, is cut: near equal shares, where the fewest bytes live.
    fn cuts(&self, count: usize) -> Result<(Vec<usize>, usize)> {
        let level: OptimiseLevel = RewriteLevel::default();
        let graph = PreparedGraph::new(self.graph.clone(), level)?.graph;
        let given = graph.inputs.iter().zip(&self.fed);
        let given: HashMap<_, _> = given
            .map(|(&id, (_, tensor))| (id, Fact::fixed(tensor.dtype(), tensor.shape())))
            .collect();
        let live = live_bytes(&graph, &infer::facts(&graph, &given)?);
        let nodes = graph.nodes.len();
        let step = nodes / (count + 1);
        let near = |at: usize| {
            let around = (at * step).saturating_sub(step / 3).max(1)..=(at * step + step / 3);
            around.min_by(|&a, &b| live[a.min(nodes)].total_cmp(&live[b.min(nodes)]))
        };
        let mut cuts: Vec<usize> = (1..=count).filter_map(near).filter(|&at| at < nodes).collect();
        cuts.dedup();
        Ok((cuts, nodes))
    }
}

/// Nodes of each device; the CPU has the rest.
type Placement = Vec<(usize, Range<usize>)>;

/// All placements of some units before the processor, with these cuts.
fn placements(units: usize, cuts: &[usize], nodes: usize) -> Vec<Placement> {
    let mut all: Vec<Placement> = vec![Vec::new()];
    for unit in 0..units {
        all.push(vec![(unit, 0..nodes)]);
        all.extend(cuts.iter().map(|&cut| vec![(unit, 0..cut)]));
        all.extend(cuts.iter().map(|&cut| vec![(unit, cut..nodes)]));
        for other in (0..units).filter(|&other| other != unit) {
            all.extend(cuts.iter().map(|&cut| vec![(unit, 0..cut), (other, cut..nodes)]));
        }
    }
    all
}

struct Candidate {
    name: String,
    session: Session,
    times: Vec<Duration>,
}

impl Candidate {
    fn median(&self) -> Duration {
        let mut times = self.times.clone();
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or(Duration::MAX)
    }
}

/// The best of all placements.
fn search(
    model: &PlacedModel,
    providers: &[Arc<dyn ExecutionProvider>],
    count: usize,
) -> Result<(Candidate, usize)> {
    let (cuts, nodes) = model.cuts(count)?;
    let processor = providers.last().ok_or("no unit")?;
    let all = placements(providers.len() - 1, &cuts, nodes);
    let tried = all.len();
    let (mut field, mut best) = (Vec::<Candidate>::new(), Duration::MAX);
    for placement in all {
        let name = placement.iter().map(|(unit, nodes)| {
            format!("{} {}..{}", providers[*unit].name(), nodes.start, nodes.end)
        });
        let name = name.collect::<Vec<_>>().join(" ");
        let forced = placement.iter().map(|(unit, nodes)| {
            let inner = Arc::clone(&providers[*unit]);
            Arc::new(Within { inner, nodes: nodes.clone() }) as Arc<dyn ExecutionProvider>
        });
        let units: Vec<_> = forced.chain([Arc::clone(processor)]).collect();
        // What a unit cannot do alone is no placement.
        let Ok(session) = model.session(&units, None) else { continue };
        let first = model.time(&session).and_then(|_| model.time(&session));
        let Ok(took) = first else { continue };
        best = best.min(took);
        if took <= best.mul_f64(HOPELESS) {
            field.push(Candidate { name, session, times: vec![took] });
        }
        field.retain(|one| one.times[0] <= best.mul_f64(HOPELESS));
    }
    for _ in 0..RUNS {
        for one in &mut field {
            one.times.push(model.time(&one.session)?);
        }
    }
    let best = field.into_iter().min_by_key(Candidate::median).ok_or("no placement runs")?;
    Ok((best, tried))
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [path, list, ..] = words.as_slice() else { return Err("expected MODEL UNITS".into()) };
    let after = |name: &str| -> Vec<&String> {
        words.windows(2).filter(|pair| pair[0] == name).map(|pair| &pair[1]).collect()
    };
    let mut lengths = OrderedMap::new();
    for text in after("--length") {
        let (name, number) = text.split_once('=').ok_or("expected NAME=N")?;
        lengths.insert(name.to_owned(), number.parse::<usize>()?);
    }
    let count = after("--cuts").last().map_or(Ok(3), |text| text.parse::<usize>())?;
    let seconds = after("--seconds").last().map_or(Ok(5.0), |text| text.parse::<f64>())?;
    let model = PlacedModel::load(path, &lengths)?;
    let providers = galatea::Engine::new().providers(Some(list))?;
    let providers: Vec<_> = providers.into_iter().filter(|one| one.name() != "reference").collect();

    let (best, tried) = search(&model, &providers, count)?;
    let routing =
        PlacementOptions { units: Arc::new(ComputeDevices::new()), goal: ExecutionGoal::Latency };
    let auto = model.session(&providers, Some(routing))?;
    auto.try_placements(&model.fed(), Duration::from_secs(60))?;
    let cpu = model.session(&providers[providers.len() - 1..], None)?;
    model.time(&cpu)?;

    let mut field = [
        Candidate { name: "auto".to_owned(), session: auto, times: Vec::new() },
        Candidate { times: Vec::new(), ..best },
        Candidate { name: "cpu".to_owned(), session: cpu, times: Vec::new() },
    ];
    let begin = Instant::now();
    // Each follows each other one as often: a unit that just worked is faster than one that slept.
    let orders = [[0, 1, 2], [2, 1, 0], [1, 0, 2], [2, 0, 1], [1, 2, 0], [0, 2, 1]];
    for order in orders.into_iter().cycle() {
        for at in order {
            let one = &mut field[at];
            one.times.push(model.time(&one.session)?);
        }
        if begin.elapsed().as_secs_f64() >= seconds && field[0].times.len() >= 12 {
            break;
        }
    }
    let ms = |one: &Candidate| one.median().as_secs_f64() * 1e3;
    let [auto, best, cpu] = &field;
    let ways = auto.session.placements(&model.fed())?;
    let way = ways.first().map(|way| way.providers.join(" ")).unwrap_or_default();
    let line = json!({
        "model": path, "placements": tried, "runs": auto.times.len(),
        "auto_ms": ms(auto), "auto_way": way,
        "best_ms": ms(best), "best": if best.name.is_empty() { "cpu" } else { &best.name },
        "cpu_ms": ms(cpu),
        "auto_of_best": ms(auto) / ms(best), "auto_of_cpu": ms(auto) / ms(cpu),
    });
    println!("{line}");
    Ok(())
}
