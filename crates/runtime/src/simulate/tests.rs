//! Properties of simulations, on traces that a test can reason about.

use super::*;
use crate::chips;
use crate::cost::{ComputeUnit, CostModel, DecoderWork, GraphWork, OperatorWork};
use crate::power::PowerPolicy;

pub(super) const SECOND: u64 = 1_000_000_000;

pub(super) fn kind(chip: &str, count: usize, cooling: MachineCooling) -> MachineKind {
    let cost = CostModel::of(chips::find(chip).unwrap().facts, usize::MAX);
    let memory_bytes = cost.memory_bytes.unwrap();
    let engines = if chip.ends_with("Ultra") { 2 } else { 1 };
    let disk_bytes = USUAL_DISK_BYTES;
    MachineKind { name: chip.to_owned(), count, cost, memory_bytes, cooling, engines, disk_bytes }
}

fn fleet(chip: &str, count: usize) -> Fleet {
    Fleet { kinds: vec![kind(chip, count, MachineCooling::Fan)], ..Fleet::default() }
}

/// A graph of 8 Gflop and 100 MB, such as a picture classifier.
pub(super) fn pictures() -> SimulatedModel {
    let all = OperatorWork {
        operator: "Conv".to_owned(),
        operations: 8e9,
        weight_bytes: 1e8,
        moved_bytes: 4e7,
    };
    SimulatedModel {
        name: "pictures".to_owned(),
        work: ModelWork::Graph(GraphWork::alike(120, &all)),
        max_batch: 8,
        units: ComputeUnit::ALL.to_vec(),
        wire_bytes: [6e5, 4e3],
    }
}

/// A 7B model of 4 bits.
pub(super) fn llama() -> SimulatedModel {
    let work = DecoderWork {
        parameters: 6.74e9,
        weight_bytes: 3.8e9,
        layers: 32.0,
        hidden: 4096.0,
        kv_bytes_per_token: 2.0 * 32.0 * 4096.0 * 2.0,
    };
    SimulatedModel {
        name: "llama".to_owned(),
        work: ModelWork::Decoder(work),
        max_batch: 16,
        units: ComputeUnit::ALL.to_vec(),
        wire_bytes: [4.0, 200.0],
    }
}

pub(super) fn infer(at: u64) -> SimulatedRequest {
    SimulatedRequest { at, model: 0, kind: RequestKind::Infer { batch: 1 } }
}

pub(super) fn generate(at: u64, prompt: u32, output: u32) -> SimulatedRequest {
    SimulatedRequest { at, model: 0, kind: RequestKind::Generate { prompt, output } }
}

#[test]
fn every_request_is_answered_once_and_the_same_input_gives_the_same_report() {
    let models = [pictures(), llama()];
    let mut requests: Vec<SimulatedRequest> = (0..300).map(|at| infer(at * SECOND / 40)).collect();
    requests.extend(
        (0..40).map(|at| SimulatedRequest { model: 1, ..generate(at * SECOND / 4, 300, 50) }),
    );
    let fleet = fleet("Apple M2 Pro", 3);
    let report = simulate(&fleet, &models, &requests).unwrap();
    assert_eq!((report.requests(), report.refused()), (340, 0));
    assert_eq!(report.tokens(), 40 * 50);
    let placed = |model: usize| -> u64 {
        report.models[model].placements.iter().map(|(_, count)| count).sum()
    };
    assert_eq!((placed(0), placed(1)), (300, 40));
    let of_machines = report.machines.iter().map(|machine| machine.requests).sum::<u64>();
    assert_eq!(of_machines, 340);
    for unit in report.machines.iter().flat_map(|machine| &machine.units) {
        assert!((0.0..=1.0 + 1e-9).contains(&unit.utilisation), "{unit:?}");
    }
    assert_eq!(simulate(&fleet, &models, &requests).unwrap(), report);
}

#[test]
fn one_text_takes_what_the_cost_model_says() {
    let fleet = fleet("Apple M1 Max", 1);
    let report = simulate(&fleet, &[llama()], &[generate(0, 512, 101)]).unwrap();
    let ModelWork::Decoder(work) = llama().work else { unreachable!() };
    let cost = &fleet.kinds[0].cost;
    let gpu = cost.unit(ComputeUnit::Gpu).unwrap();
    let first = cost.prefill_seconds(gpu, &work, 512.0, 0.0);
    let whole = first + 100.0 * cost.step_seconds(gpu, &work, 1.0, 512.0 + 50.0);
    let model = &report.models[0];
    assert!((model.first_token.unwrap().p50 / first - 1.0).abs() < 1e-6);
    assert!((model.latency.unwrap().p50 / whole - 1.0).abs() < 1e-6);
}

#[test]
fn texts_at_once_share_the_reading_of_weights() {
    let rate = |texts: u64| {
        let requests: Vec<SimulatedRequest> = (0..texts).map(|_| generate(0, 8, 200)).collect();
        let report = simulate(&fleet("Apple M2 Max", 1), &[llama()], &requests).unwrap();
        report.per_second(report.tokens())
    };
    let one = rate(1);
    let eight = rate(8);
    assert!(eight > 3.0 * one && eight < 8.0 * one, "{one} and {eight} tokens/s");
}

#[test]
fn who_comes_while_texts_are_written_gets_a_turn() {
    let requests = [generate(0, 8, 2000), generate(SECOND, 8, 2)];
    let report = simulate(&fleet("Apple M2 Max", 1), &[llama()], &requests).unwrap();
    assert!(report.models[0].latency.unwrap().p50 < 0.2, "{report:?}");
}

#[test]
fn units_that_write_at_once_share_memory() {
    let model = |unit| SimulatedModel { units: vec![unit], max_batch: 1, ..llama() };
    let models = [model(ComputeUnit::Gpu), model(ComputeUnit::Cpu)];
    let rate = |models: &[SimulatedModel]| {
        let request = |at: u32| SimulatedRequest { model: at % 2, ..generate(0, 8, 300) };
        let mut requests: Vec<SimulatedRequest> = (0..12).map(request).collect();
        requests.retain(|request| (request.model as usize) < models.len());
        let report = simulate(&fleet("Apple M1", 1), models, &requests).unwrap();
        report.per_second(report.tokens())
    };
    let one = rate(&models[..1]);
    let two = rate(&models);
    assert!(two < 1.25 * one, "{one} and {two} tokens/s");
}

#[test]
#[ignore = "takes long; prints how long"]
fn a_thousand_machines_take_a_million_requests() {
    let chips = ["Apple M1", "Apple M2 Pro", "Apple M4", "Apple M4 Max"];
    let kinds = chips.map(|chip| kind(chip, 250, MachineCooling::Fan)).to_vec();
    let fleet = Fleet { kinds, ..Fleet::default() };
    let request = |at: u64| match at % 4 {
        0 => SimulatedRequest { model: 1, ..generate(at * SECOND / 1000, 256, 64) },
        _ => infer(at * SECOND / 1000),
    };
    let requests: Vec<SimulatedRequest> = (0..1_000_000).map(request).collect();
    let start = std::time::Instant::now();
    let report = simulate(&fleet, &[pictures(), llama()], &requests).unwrap();
    let rate = report.pieces as f64 / start.elapsed().as_secs_f64();
    println!(
        "{} pieces, {} s in {:?}, {rate:.0} pieces/s",
        report.pieces,
        report.seconds,
        start.elapsed()
    );
    assert_eq!(report.requests(), 1_000_000);
}

#[test]
fn twice_the_machines_take_twice_the_load() {
    let requests: Vec<SimulatedRequest> = (0..200).map(|_| generate(0, 128, 64)).collect();
    let models = [SimulatedModel { units: vec![ComputeUnit::Gpu], ..llama() }];
    let seconds =
        |count| simulate(&fleet("Apple M4 Pro", count), &models, &requests).unwrap().seconds;
    let two = seconds(2);
    let four = seconds(4);
    assert!((1.7..=2.3).contains(&(two / four)), "{two} s and {four} s");
}

#[test]
fn a_target_of_watts_is_held() {
    let requests: Vec<SimulatedRequest> = (0..600).map(|_| generate(0, 64, 400)).collect();
    let mut fleet = fleet("Apple M2", 1);
    let free = simulate(&fleet, &[llama()], &requests).unwrap();
    fleet.power.target_watts = Some(8.0);
    let held = simulate(&fleet, &[llama()], &requests).unwrap();
    assert!(free.machines[0].watts > 10.0, "{} W", free.machines[0].watts);
    let watts = held.machines[0].watts;
    assert!((watts / 8.0 - 1.0).abs() < 0.05, "{watts} W");
    assert!(held.seconds > free.seconds && held.machines[0].limited_seconds > 0.0);
}

#[test]
fn a_machine_without_a_fan_gets_hot_and_is_slowed_down() {
    let requests: Vec<SimulatedRequest> = (0..600).map(|_| generate(0, 64, 400)).collect();
    let mut fleet = fleet("Apple M2", 1);
    let cool = simulate(&fleet, &[llama()], &requests).unwrap();
    fleet.kinds[0].cooling = MachineCooling::Fanless;
    let hot = simulate(&fleet, &[llama()], &requests).unwrap();
    assert!(hot.machines[0].hottest > cool.machines[0].hottest + 10.0);
    assert!(hot.seconds > cool.seconds * 1.02, "{} s and {} s", hot.seconds, cool.seconds);
    assert_eq!(hot.requests(), 600);
}

#[test]
fn low_power_takes_the_unit_that_needs_less() {
    let requests: Vec<SimulatedRequest> = (0..100).map(|at| infer(at * SECOND / 10)).collect();
    let joules = |policy| {
        let mut fleet = fleet("Apple M2 Ultra", 1);
        fleet.power.policy = policy;
        simulate(&fleet, &[pictures()], &requests).unwrap()
    };
    let fast = joules(PowerPolicy::HighPerformance);
    let low = joules(PowerPolicy::LowPower);
    assert!(low.joules() < fast.joules(), "{} J and {} J", low.joules(), fast.joules());
    assert!(low.latency.unwrap().p50 >= fast.latency.unwrap().p50);
    let on_engine = low.models[0].placements[2];
    assert_eq!(on_engine, (ComputeUnit::NeuralEngine, 100));
}

#[test]
fn the_second_engine_of_an_ultra_runs_a_program_beside_the_first() {
    let models = [SimulatedModel { units: vec![ComputeUnit::NeuralEngine], ..pictures() }];
    let requests: Vec<SimulatedRequest> = (0..400).map(|_| infer(0)).collect();
    let run = |engines| {
        let mut fleet = fleet("Apple M2 Ultra", 1);
        fleet.kinds[0].engines = engines;
        simulate(&fleet, &models, &requests).unwrap()
    };
    let one = run(1);
    let two = run(2);
    assert!((1.8..=2.1).contains(&(one.seconds / two.seconds)), "{one:?} {two:?}");
    let engines = two.machines[0].units[2];
    assert_eq!((engines.unit, engines.count), (ComputeUnit::NeuralEngine, 2));
    assert!(engines.utilisation > 0.9 && engines.utilisation <= 1.0 + 1e-9, "{engines:?}");
    assert_eq!(two.models[0].placements[2], (ComputeUnit::NeuralEngine, 400));
    let watts = one.machines[0].watts..two.machines[0].watts;
    assert!(watts.end > watts.start, "{watts:?}");
}

#[test]
fn a_model_is_brought_into_memory_before_it_runs() {
    let mut fleet = fleet("Apple M1 Max", 1);
    let warm = simulate(&fleet, &[llama()], &[generate(0, 64, 8)]).unwrap();
    fleet.loading = Some(ModelLoading::default());
    let twice = [generate(0, 64, 8), generate(60 * SECOND, 64, 8)];
    let cold = simulate(&fleet, &[llama()], &twice).unwrap();
    let loads = ModelLoading::default().start_seconds + llama().weight_bytes() / USUAL_DISK_BYTES;
    let [usual, first] = [&warm, &cold].map(|report| report.models[0].latency.unwrap().p99);
    assert!((first - usual - loads).abs() < 1e-3, "{first} s, {usual} s and {loads} s");
    // The second one finds it there.
    assert!((cold.models[0].latency.unwrap().p50 / usual - 1.0).abs() < 1e-3);
    assert_eq!((cold.loads(), warm.loads()), (Some([1, 0]), None));
}

#[test]
fn a_model_runs_on_the_engine_once_it_is_compiled() {
    let mut fleet = fleet("Apple M1", 1);
    fleet.loading = Some(ModelLoading { start_seconds: 0.0, compile_seconds_per_byte: 1e-6 });
    let models = [SimulatedModel { units: vec![ComputeUnit::NeuralEngine], ..pictures() }];
    let report = simulate(&fleet, &models, &[infer(0)]).unwrap();
    let compiled = 1e-6 * models[0].weight_bytes();
    assert!(report.latency.unwrap().p50 > compiled, "{:?}", report.latency);
    let models = [pictures()];
    let report = simulate(&fleet, &models, &[infer(0), infer(SECOND)]).unwrap();
    assert!(report.latency.unwrap().p99 < compiled, "other units serve meanwhile");
    assert_eq!(report.models[0].placements[2].1, 0);
}

#[test]
fn models_that_nobody_asks_for_make_room_for_others() {
    let mut fleet = fleet("Apple M1", 1);
    fleet.loading = Some(ModelLoading::default());
    // Room for one of them beside its texts.
    fleet.kinds[0].memory_bytes = 8e9;
    let models = [llama(), SimulatedModel { name: "other".to_owned(), ..llama() }];
    let request = |at: u32| SimulatedRequest {
        model: at % 2,
        ..generate(u64::from(at) * 20 * SECOND, 64, 8)
    };
    let apart: Vec<SimulatedRequest> = (0..6).map(request).collect();
    let report = simulate(&fleet, &models, &apart).unwrap();
    assert_eq!((report.requests(), report.loads()), (6, Some([6, 5])));
    // All at once: those for one model are answered before the other one comes.
    let at_once: Vec<SimulatedRequest> =
        apart.iter().map(|one| SimulatedRequest { at: 0, ..*one }).collect();
    let report = simulate(&fleet, &models, &at_once).unwrap();
    assert_eq!((report.requests(), report.loads()), (6, Some([2, 1])));
}

#[test]
fn requests_go_where_their_model_is() {
    let mut fleet = fleet("Apple M4 Max", 20);
    fleet.loading = Some(ModelLoading::default());
    let requests: Vec<SimulatedRequest> =
        (0..40).map(|at| generate(at * 5 * SECOND, 64, 8)).collect();
    let report = simulate(&fleet, &[llama()], &requests).unwrap();
    assert_eq!((report.requests(), report.loads()), (40, Some([1, 0])));
}

#[test]
fn a_network_adds_its_latency_and_the_time_of_bytes() {
    let mut fleet = fleet("Apple M1", 1);
    let seconds =
        |fleet: &Fleet| simulate(fleet, &[pictures()], &[infer(0)]).unwrap().latency.unwrap().p50;
    let near = seconds(&fleet);
    fleet.network = Some(FleetNetwork { seconds: 0.02, bytes: 1e7 });
    let far = seconds(&fleet);
    let way = 2.0 * 0.02 + (6e5 + 4e3) / 1e7;
    assert!((far - near - way).abs() < 1e-6, "{far} s, {near} s and {way} s");
    // The link is slower than the machine: requests come one after the other.
    let requests: Vec<SimulatedRequest> = (0..50).map(|_| infer(0)).collect();
    let report = simulate(&fleet, &[pictures()], &requests).unwrap();
    assert!(report.seconds > 50.0 * 6e5 / 1e7, "{} s", report.seconds);
}

#[test]
fn what_fits_no_machine_is_refused() {
    let mut large = llama();
    if let ModelWork::Decoder(work) = &mut large.work {
        work.weight_bytes = 1e12;
    }
    let report = simulate(&fleet("Apple M1", 2), &[large], &[generate(0, 8, 8)]).unwrap();
    assert_eq!((report.requests(), report.refused()), (0, 1));
}

#[test]
fn years_without_work_are_passed_over() {
    let year = 365 * 24 * 3600 * SECOND;
    let report = simulate(&fleet("Apple M4", 3), &[pictures()], &[infer(0), infer(year)]).unwrap();
    assert_eq!(report.requests(), 2);
    let cost = &fleet("Apple M4", 3).kinds[0].cost;
    let watts = report.machines[1].watts;
    assert!((watts / cost.idle_watts - 1.0).abs() < 1e-3, "{watts} W");
}

#[test]
fn what_has_no_answer_is_named() {
    let wrong = |fleet: &Fleet, request: SimulatedRequest| {
        simulate(fleet, &[pictures()], &[request]).unwrap_err().to_string()
    };
    let one = fleet("Apple M1", 1);
    assert!(wrong(&one, generate(0, 1, 1)).contains("a graph infers"));
    assert!(wrong(&one, SimulatedRequest { model: 3, ..infer(0) }).contains("no model 3"));
    let nothing = SimulatedRequest { kind: RequestKind::Infer { batch: 0 }, ..infer(0) };
    assert!(wrong(&one, nothing).contains("nothing is asked for"));
    assert!(wrong(&fleet("Apple M1", 0), infer(0)).contains("0 machines"));
}
