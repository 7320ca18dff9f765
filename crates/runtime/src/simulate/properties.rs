//! Properties that hold for every simulation, whatever machines, models and requests there are.

use proptest::prelude::*;

use super::tests::{SECOND, generate, infer, kind, llama, pictures};
use super::*;
use crate::cost::ComputeUnit;
use crate::power::{PowerPolicy, PowerSettings};

const CHIPS: [&str; 4] = ["Apple M1", "Apple M2 Pro", "Apple M2 Ultra", "Apple M4 Max"];

fn fleets() -> impl Strategy<Value = Fleet> {
    let kinds = proptest::collection::vec((0..CHIPS.len(), 1..4_usize, any::<bool>()), 1..3);
    let power = (0..3_usize, proptest::option::of(4.0..60.0_f64));
    let loading = proptest::option::of((0.0..1.0_f64, 0.0..5e-8_f64));
    let network = proptest::option::of((0.0..0.1_f64, 1e6..1e9_f64));
    (kinds, power, loading, network).prop_map(|(kinds, power, loading, network)| Fleet {
        kinds: kinds
            .into_iter()
            .map(|(chip, count, fan)| {
                kind(
                    CHIPS[chip],
                    count,
                    if fan { MachineCooling::Fan } else { MachineCooling::Fanless },
                )
            })
            .collect(),
        power: PowerSettings {
            policy: [PowerPolicy::HighPerformance, PowerPolicy::Balanced, PowerPolicy::LowPower]
                [power.0],
            target_watts: power.1,
            ..PowerSettings::default()
        },
        loading: loading.map(|(start_seconds, compile_seconds_per_byte)| ModelLoading {
            start_seconds,
            compile_seconds_per_byte,
        }),
        network: network.map(|(seconds, bytes)| FleetNetwork { seconds, bytes }),
    })
}

/// A picture classifier, two decoders, and a decoder that fits no machine but the largest.
fn models() -> [SimulatedModel; 4] {
    let mut large = llama();
    if let ModelWork::Decoder(work) = &mut large.work {
        (work.weight_bytes, work.parameters) = (60e9, 120e9);
    }
    let second = SimulatedModel { name: "second".to_owned(), max_batch: 2, ..llama() };
    [pictures(), llama(), second, SimulatedModel { name: "large".to_owned(), ..large }]
}

fn requests() -> impl Strategy<Value = Vec<SimulatedRequest>> {
    let one = (0..20_000_u64, 0..4_u32, 1..12_u32, 1..900_u32, 1..60_u32);
    let one = one.prop_map(|(ms, model, batch, prompt, output)| {
        let at = ms * SECOND / 1000;
        let kind = match model {
            0 => RequestKind::Infer { batch },
            _ => generate(at, prompt, output).kind,
        };
        SimulatedRequest { model, kind, ..infer(at) }
    });
    proptest::collection::vec(one, 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn nothing_is_lost_no_unit_does_two_things_and_energy_adds_up(
        fleet in fleets(),
        requests in requests(),
    ) {
        let models = models();
        let report = simulate(&fleet, &models, &requests).unwrap();

        // Every request is answered or refused, once, with all its tokens.
        prop_assert_eq!(report.requests() + report.refused(), requests.len() as u64);
        for (at, model) in report.models.iter().enumerate() {
            let asked = requests.iter().filter(|one| one.model as usize == at).count() as u64;
            prop_assert_eq!(model.requests + model.refused, asked);
            let placed = model.placements.iter().map(|(_, count)| count).sum::<u64>();
            prop_assert_eq!(placed, model.requests);
            prop_assert_eq!(model.first_token.is_some(), at > 0 && model.requests > 0);
        }
        let by_machine = report.machines.iter().map(|one| one.requests).sum::<u64>();
        prop_assert_eq!(by_machine, report.requests());
        if report.refused() == 0 {
            let tokens = requests.iter().map(|one| match one.kind {
                RequestKind::Generate { output, .. } => u64::from(output),
                RequestKind::Infer { .. } => 0,
            });
            prop_assert_eq!(report.tokens(), tokens.sum::<u64>());
        }

        let mut first = 0;
        for kind in &fleet.kinds {
            let machines = &report.machines[first..first + kind.count];
            first += kind.count;
            for machine in machines {
                // One thing at a time on each unit.
                for unit in &machine.units {
                    prop_assert!(unit.utilisation <= 1.0 + 1e-6, "{unit:?}");
                    prop_assert_eq!(unit.count, if unit.unit == ComputeUnit::NeuralEngine {
                        kind.engines
                    } else {
                        1
                    });
                }
                // Without throttling a machine draws what its units draw while they work, and what it
                // draws in any case.
                let work = machine.units.iter().map(|unit| {
                    let watts = kind.cost.unit(unit.unit).unwrap().watts;
                    unit.utilisation * unit.count as f64 * report.seconds * watts
                });
                let joules = kind.cost.idle_watts * report.seconds + work.sum::<f64>();
                if machine.throttled_seconds <= 0.0 {
                    let off = (machine.joules / joules - 1.0).abs();
                    prop_assert!(off < 1e-6, "{} J and {joules} J", machine.joules);
                }
                prop_assert!((machine.watts * report.seconds / machine.joules - 1.0).abs() < 1e-9);
                prop_assert_eq!(machine.loads.is_some(), fleet.loading.is_some());
                if let Some([loads, evictions]) = machine.loads {
                    prop_assert!(evictions <= loads, "{machine:?}");
                    prop_assert!(loads > 0 || machine.requests == 0, "{machine:?}");
                }
            }
        }
        // The same input gives the same report.
        prop_assert_eq!(simulate(&fleet, &models, &requests).unwrap(), report);
    }
}
