//! Many clients that ask, listen for a while, and go away.

use std::sync::mpsc;

use galatea_llm::engine::{GenerationEngine, GenerationEvent, GenerationRequest};
use galatea_llm::error::LlmErrorKind;
use galatea_llm::sampling::SamplingParameters;

use crate::answers::sampled;
use crate::fake::{FakeModel, ask, expected, failure, greedy, options, request, tokenizer};

const CLIENTS: u64 = 16;
const REQUESTS: u64 = 40;

/// A few numbers that look random.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// What a client asks for the `at`-th time.
fn ask_for(chance: &mut Chance, client: u64, at: u64) -> GenerationRequest {
    let length = 1 + chance.below(40) as u32;
    let first = chance.below(3) as u32;
    let sampling = SamplingParameters {
        temperature: 0.9,
        seed: Some(at),
        n: 1 + chance.below(3) as u32,
        min_tokens: 8,
        max_tokens: Some(8 + chance.below(20) as u32),
        ignore_eos: true,
        ..SamplingParameters::default()
    };
    GenerationRequest {
        client,
        priority: chance.below(3) as i32,
        salt: chance.below(2),
        ..request(&(0..length).map(|at| 1 + first + at * 3).collect::<Vec<_>>(), sampling)
    }
}

/// One client: it hears whole answers, or drops its ticket in between.
fn visit(engine: &GenerationEngine, client: u64, failed: &mpsc::Sender<()>) {
    let mut chance = Chance(client);
    for at in 0..REQUESTS {
        let asked = ask_for(&mut chance, client, at);
        let patience = if chance.below(3) == 0 { chance.below(12) } else { u64::MAX };
        let (sender, events) = mpsc::channel();
        let sink = Box::new(move |event| sender.send(event).unwrap());
        let mut ticket = Some(engine.submit(asked.clone(), sink).unwrap());
        let (mut answers, mut lasts) = (vec![Vec::new(); asked.sampling.n as usize], 0);
        // The sink, and with it the sender, goes with the last event.
        for (heard, event) in (0_u64..).zip(&events) {
            assert_eq!(lasts, 0, "{event:?} comes behind the last event");
            match event {
                GenerationEvent::Delta(delta) => answers[delta.index].extend(delta.tokens),
                GenerationEvent::Started { .. } => {}
                GenerationEvent::Finished(_) => lasts += 1,
                GenerationEvent::Failed(error) => {
                    assert_eq!(error.kind(), LlmErrorKind::Model);
                    failed.send(()).unwrap();
                    lasts += 1;
                }
            }
            if heard >= patience {
                ticket = None;
            }
        }
        assert_eq!(lasts, 1);
        drop(ticket);
        for (index, tokens) in answers.iter().enumerate() {
            let whole = sampled(&asked.sampling, &asked.prompt, index as u32);
            assert!(whole.starts_with(tokens), "{tokens:?} of {whole:?}");
        }
    }
}

#[test]
fn nothing_is_lost_or_leaked_when_many_come_and_go() {
    let trouble = |at: u64| {
        Box::new(move |step: u64, _: &_| match step % at == at - 1 {
            true => Err(failure("now and then")),
            false => Ok(()),
        })
    };
    let model = Box::new(FakeModel::new(64, 4).with_trouble(trouble(300)));
    let draft = Box::new(FakeModel::new(64, 4).with_slips(3));
    let engine =
        GenerationEngine::start_with_draft(model, draft, 3, tokenizer(), options(12, 48)).unwrap();
    let (sender, failed) = mpsc::channel();
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (engine, sender) = (&engine, sender.clone());
            scope.spawn(move || visit(engine, client, &sender));
        }
    });
    drop(sender);
    assert!(failed.iter().count() > 0);
    // Tickets that were dropped are known before this is.
    let last = ask(&engine, request(&[1, 2, 3], greedy(2))).outcome();
    assert!(last.error.is_some() || last.tokens() == expected(&[1, 2, 3], 2));
    let statistics = engine.statistics();
    assert_eq!((statistics.running, statistics.waiting, statistics.active_blocks), (0, 0, 0));
    assert_eq!(statistics.requests, CLIENTS * REQUESTS + 1);
    assert!(statistics.preemptions > 0 && statistics.finished["abort"] > 0, "{statistics:?}");
}
