//! Models that read a text whole and write another one.

use std::path::Path;
use std::sync::Arc;

use galatea_llm::encoder_decoder::EncoderDecoder;
use galatea_llm::engine::{EngineOptions, GenerationEngine};
use galatea_llm::sampling::SamplingParameters;
use galatea_llm::stop::FinishReason;
use galatea_runtime::{ExecutionProvider, SessionOptions};

use crate::fake::{Asked, ask, greedy, options, refused, request, tokenizer};
use crate::reference::Reference;

fn model() -> EncoderDecoder {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/llm/t5");
    let providers: [Arc<dyn ExecutionProvider>; 1] = [Arc::new(Reference { failing: None })];
    EncoderDecoder::load(&folder, &providers, &SessionOptions::default()).unwrap()
}

fn start(options: EngineOptions) -> GenerationEngine {
    GenerationEngine::start_encoder_decoder(model(), tokenizer(), options).unwrap()
}

/// Prompts of different lengths.
fn prompts() -> Vec<Vec<u32>> {
    (0..7_u32).map(|n| (0..1 + n * 5).map(|at| 3 + (at * 7 + n * 11) % 60).collect()).collect()
}

#[test]
fn texts_that_begin_and_end_at_different_times_are_as_each_alone() {
    let engine = start(options(3, 3));
    let lengths = [40, 3, 9, 33, 1, 12, 5];
    let expected: Vec<Vec<u32>> = prompts()
        .iter()
        .zip(lengths)
        .map(|(prompt, most)| model().generate(std::slice::from_ref(prompt), most, &[]).unwrap())
        .map(|mut answers| answers.remove(0))
        .collect();
    let endless = |tokens| SamplingParameters { ignore_eos: true, ..greedy(tokens) };
    let asked: Vec<Asked> = prompts()
        .iter()
        .zip(lengths)
        .map(|(prompt, most)| ask(&engine, request(prompt, endless(u32::try_from(most).unwrap()))))
        .collect();
    // One that is taken back leaves the others alone.
    let gone = ask(&engine, request(&[5, 6], endless(1000)));
    drop(gone.ticket);
    for (asked, expected) in asked.into_iter().zip(expected) {
        let outcome = asked.outcome();
        assert_eq!(outcome.tokens(), expected);
        let usage = outcome.usage.unwrap();
        assert_eq!((usage.completion_tokens, usage.cached_tokens), (expected.len(), 0));
        assert_eq!(outcome.answers[0].finish, Some(FinishReason::Length));
    }
    let told = engine.statistics();
    assert_eq!((told.finished["length"], told.finished["abort"]), (7, 1));
    let all: usize = lengths.iter().sum();
    assert!(told.generation_tokens >= all as u64 && told.running == 0);
}

#[test]
fn several_answers_of_a_request_differ_and_come_again_with_their_seed() {
    let engine = start(options(4, 4));
    let sampling =
        SamplingParameters { n: 3, seed: Some(5), temperature: 1.5, ignore_eos: true, ..greedy(8) };
    let first = ask(&engine, request(&[9, 8, 7], sampling.clone())).outcome();
    let again = ask(&engine, request(&[9, 8, 7], sampling.clone())).outcome();
    assert_eq!(first.answers, again.answers);
    assert_eq!(first.answers.len(), 3);
    assert!(first.answers[0].tokens != first.answers[1].tokens);
    let error = refused(&engine, request(&[9], SamplingParameters { n: 5, ..sampling.clone() }));
    assert!(error.to_string().contains("n: 5 found, expected at most 4"), "{error}");
    let known = SamplingParameters { prompt_logprobs: Some(1), ..greedy(2) };
    assert!(refused(&engine, request(&[9], known)).to_string().contains("reads prompts whole"));
    assert!(refused(&engine, request(&[64], greedy(2))).to_string().contains("less than 64"));
}

#[test]
fn an_engine_that_ends_tells_those_who_wait() {
    let engine = start(options(1, 1));
    let endless = SamplingParameters { ignore_eos: true, ..greedy(4000) };
    let asked: Vec<Asked> =
        (0..3).map(|n| ask(&engine, request(&[5 + n], endless.clone()))).collect();
    drop(engine);
    for asked in asked {
        let error = asked.outcome().error.unwrap().to_string();
        assert!(error.contains("it stops"), "{error}");
    }
}
