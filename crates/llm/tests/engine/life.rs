//! Requests come, are answered, are taken back, and fail.

use std::sync::{Arc, Mutex, mpsc};

use galatea_llm::engine::{EngineOptions, GenerationEvent, GenerationRequest};
use galatea_llm::error::LlmErrorKind;
use galatea_llm::observe::{EngineObserver, EngineOutcome, RequestRecord, StepRecord};
use galatea_llm::sampling::SamplingParameters;
use galatea_llm::stop::FinishReason;
use galatea_llm::tokens::SpecialText;

use crate::fake::{
    FakeModel, ask, expected, failure, greedy, options, refused, request, start, tokenizer,
};

fn prompt(seed: u32, length: u32) -> Vec<u32> {
    (0..length).map(|at| 1 + (seed * 31 + at * 7) % 290).collect()
}

#[test]
fn a_prompt_in_pieces_goes_on_as_the_model_says() {
    let engine = start(FakeModel::new(16, 4), options(4, 5));
    let prompt = prompt(1, 23);
    let outcome = ask(&engine, request(&prompt, greedy(9))).outcome();
    assert_eq!(outcome.tokens(), expected(&prompt, 9));
    let answer = &outcome.answers[0];
    assert_eq!(answer.finish, Some(FinishReason::Length));
    assert_eq!(answer.text, tokenizer().decode(&answer.tokens, SpecialText::Skip));
    let usage = outcome.usage.unwrap();
    assert_eq!((usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens), (23, 9, 0));
    assert!(usage.total_ns >= usage.first_token_ns && usage.first_token_ns >= usage.queue_ns);
    let statistics = engine.statistics();
    assert_eq!((statistics.prompt_tokens, statistics.generation_tokens), (23, 9));
    // Five pieces, and a step for each further token.
    assert_eq!((statistics.steps, statistics.step_tokens.count()), (13, 13));
    assert_eq!(statistics.time_to_first_token.count(), 1);
    assert_eq!(statistics.inter_token_latency.count(), 8);
    assert_eq!(statistics.finished["length"], 1);
}

#[test]
fn many_requests_at_once_get_what_each_alone_gets() {
    // Too few blocks for all of them, so that some are preempted.
    let (model, go) = FakeModel::new(20, 4).held();
    let engine = start(model, options(8, 16));
    let prompts: Vec<Vec<u32>> = (0..24).map(|seed| prompt(seed % 16, 3 + seed % 11)).collect();
    let asked: Vec<_> =
        prompts.iter().map(|prompt| ask(&engine, request(prompt, greedy(20)))).collect();
    go.send(()).unwrap();
    for (prompt, asked) in prompts.iter().zip(asked) {
        assert_eq!(asked.outcome().tokens(), expected(prompt, 20));
    }
    let statistics = engine.statistics();
    assert!(statistics.preemptions > 0, "{statistics:?}");
}

#[test]
fn preempted_requests_go_on_with_what_was_kept_of_them() {
    for (room, prefix_caching) in [(40, true), (40, false), (11, false), (0, false)] {
        let (model, go) = FakeModel::new(40, 4).with_swap(room).held();
        let engine = start(model, EngineOptions { prefix_caching, ..options(8, 64) });
        let prompts: Vec<Vec<u32>> = (0..12).map(|seed| prompt(seed, 33 + seed % 7)).collect();
        let asked: Vec<_> =
            prompts.iter().map(|prompt| ask(&engine, request(prompt, greedy(40)))).collect();
        go.send(()).unwrap();
        for (prompt, asked) in prompts.iter().zip(asked) {
            assert_eq!(asked.outcome().tokens(), expected(prompt, 40));
        }
        let statistics = engine.statistics();
        assert!(statistics.preemptions > 0, "{statistics:?}");
        assert_eq!(statistics.swapped_out > 0, room > 0, "{statistics:?}");
        assert!(statistics.swapped_in <= statistics.swapped_out, "{statistics:?}");
        assert_eq!((statistics.swapped, statistics.swapped_blocks), (0, 0));
        assert_eq!(statistics.swap_blocks, room);
    }
}

#[test]
fn what_cannot_be_generated_is_refused_with_both_numbers() {
    let engine = start(FakeModel::new(8, 4), EngineOptions { max_waiting: 2, ..options(2, 8) });
    assert_eq!(engine.context(), 32);
    let empty = refused(&engine, request(&[], greedy(1)));
    assert_eq!((empty.kind(), empty.place()), (LlmErrorKind::Parameter, "prompt"));
    let long = refused(&engine, request(&prompt(0, 32), greedy(1)));
    assert_eq!(
        long.to_string(),
        "prompt: 32 tokens found, expected at most 31: the context has 32 and the answer needs one"
    );
    let unknown = refused(&engine, request(&[300], greedy(1)));
    assert_eq!(unknown.to_string(), "prompt: token 300 found, expected less than 300");
    let hot = SamplingParameters { temperature: -1.0, ..SamplingParameters::default() };
    assert_eq!(refused(&engine, request(&[1], hot)).place(), "temperature");
    // The context ends an answer without a limit.
    let endless = SamplingParameters { max_tokens: None, ..greedy(1) };
    let outcome = ask(&engine, request(&prompt(0, 31), endless.clone())).outcome();
    assert_eq!(outcome.tokens().len(), 1);
    let outcome = ask(&engine, request(&prompt(0, 5), endless)).outcome();
    assert_eq!(outcome.tokens(), expected(&prompt(0, 5), 27));
    assert_eq!(outcome.answers[0].finish, Some(FinishReason::Length));
}

#[test]
fn who_finds_too_many_waiting_is_refused_and_may_come_again() {
    let (enter, entered) = mpsc::channel();
    let (go, going) = mpsc::channel::<()>();
    let model = FakeModel::new(8, 4).with_trouble(Box::new(move |step, _| {
        if step == 0 {
            enter.send(()).unwrap();
            going.recv().unwrap();
        }
        Ok(())
    }));
    let engine = start(model, EngineOptions { max_waiting: 2, ..options(1, 8) });
    let first = ask(&engine, request(&[1, 2], greedy(3)));
    // The first one runs, so two more may wait.
    entered.recv().unwrap();
    let others = [3, 4].map(|token| ask(&engine, request(&[token], greedy(2))));
    let error = refused(&engine, request(&[5], greedy(2)));
    assert_eq!(error.to_string(), "queue: 2 requests wait, at most 2 may");
    assert_eq!(error.kind(), LlmErrorKind::Overloaded);
    go.send(()).unwrap();
    assert_eq!(first.outcome().tokens(), expected(&[1, 2], 3));
    for (token, asked) in [3, 4].into_iter().zip(others) {
        assert_eq!(asked.outcome().tokens(), expected(&[token], 2));
    }
    assert_eq!(ask(&engine, request(&[5], greedy(2))).outcome().tokens(), expected(&[5], 2));
    assert_eq!(engine.statistics().refused, 1);
}

#[test]
fn a_request_that_is_taken_back_ends_within_a_step() {
    let (enter, entered) = mpsc::channel();
    let (go, going) = mpsc::channel::<()>();
    let model = FakeModel::new(8, 4).with_trouble(Box::new(move |step, _| {
        if step == 3 {
            enter.send(()).unwrap();
            going.recv().unwrap();
        }
        Ok(())
    }));
    let engine = start(model, options(2, 8));
    let mut asked = ask(&engine, request(&[1, 2], greedy(20)));
    entered.recv().unwrap();
    asked.ticket = None;
    go.send(()).unwrap();
    let outcome = asked.outcome();
    assert_eq!(outcome.answers[0].finish, Some(FinishReason::Cancelled));
    assert_eq!(outcome.answers[0].tokens, expected(&[1, 2], 4));
    assert_eq!(outcome.usage.unwrap().completion_tokens, 4);
    // One that waits can be taken back as well, and a ticket may be dropped afterwards.
    let mut late = ask(&engine, request(&[3], greedy(1)));
    late.next();
    late.ticket = None;
    assert_eq!(ask(&engine, request(&[4], greedy(2))).outcome().tokens(), expected(&[4], 2));
    assert_eq!(engine.statistics().finished["abort"], 1);
}

#[test]
fn a_failing_step_fails_its_requests_and_no_others() {
    let model = FakeModel::new(16, 4).with_trouble(Box::new(|step, _| match step {
        2 => Err(failure("out of memory")),
        6 => panic!("an index is out of bounds"),
        _ => Ok(()),
    }));
    let engine = start(model, options(1, 8));
    let first = ask(&engine, request(&[1, 2, 3, 4, 5], greedy(9)));
    let second = ask(&engine, request(&[1, 2, 3, 4, 5], greedy(2)));
    let third = ask(&engine, request(&[7], greedy(9)));
    let last = ask(&engine, request(&[1, 2, 3, 4, 5], greedy(9)));
    let error = first.outcome().error.unwrap();
    assert_eq!((error.kind(), error.message()), (LlmErrorKind::Model, "out of memory"));
    // What the first one had computed is not used again.
    let second = second.outcome();
    assert_eq!((second.cached, second.tokens()), (Some(0), &expected(&[1, 2, 3, 4, 5], 2)[..]));
    let error = third.outcome().error.unwrap();
    assert_eq!(error.to_string(), "model: it panicked: an index is out of bounds");
    assert_eq!(last.outcome().tokens(), expected(&[1, 2, 3, 4, 5], 9));
    let statistics = engine.statistics();
    assert_eq!((statistics.failed, statistics.finished["error"]), (2, 2));
}

#[test]
fn dropping_the_engine_answers_everything() {
    let (enter, entered) = mpsc::channel();
    let model = FakeModel::new(16, 4).with_trouble(Box::new(move |step, _| {
        if step == 0 {
            enter.send(()).unwrap();
        }
        Ok(())
    }));
    let engine = start(model, options(2, 8));
    let long = SamplingParameters { max_tokens: None, ..greedy(1) };
    let asked: Vec<_> = (1..6).map(|token| ask(&engine, request(&[token], long.clone()))).collect();
    entered.recv().unwrap();
    engine.refuse_requests();
    assert_eq!(refused(&engine, request(&[1], greedy(1))).kind(), LlmErrorKind::Unavailable);
    drop(engine);
    for asked in asked {
        let outcome = asked.outcome();
        let kind = outcome.error.map(|error| error.kind());
        assert!(kind == Some(LlmErrorKind::Unavailable) || outcome.usage.is_some(), "{kind:?}");
    }
}

#[test]
fn a_listener_that_panics_ends_its_request_only() {
    let engine = start(FakeModel::new(16, 4), options(2, 8));
    let sink = Box::new(|event: GenerationEvent| panic!("{event:?}"));
    let ticket = engine.submit(request(&[1, 2], greedy(50)), sink).unwrap();
    assert_eq!(ask(&engine, request(&[4], greedy(2))).outcome().tokens(), expected(&[4], 2));
    ticket.detach();
    assert_eq!(ask(&engine, request(&[4], greedy(2))).outcome().tokens(), expected(&[4], 2));
    assert_eq!(engine.statistics().running, 0);
}

#[derive(Default)]
struct Seen {
    steps: Mutex<Vec<StepRecord>>,
    requests: Mutex<Vec<RequestRecord>>,
}

impl EngineObserver for Seen {
    fn stepped(&self, step: StepRecord) {
        self.steps.lock().unwrap().push(step);
    }

    fn ended(&self, request: RequestRecord) {
        self.requests.lock().unwrap().push(request);
    }
}

#[test]
fn who_watches_is_told_of_every_step_and_of_the_end_of_every_request() {
    let (model, go) = FakeModel::new(16, 4).held();
    let engine = start(model, options(4, 5));
    let seen = Arc::new(Seen::default());
    engine.observe(seen.clone());
    let prompt = prompt(1, 23);
    let named = GenerationRequest { id: "mine".to_owned(), ..request(&prompt, greedy(9)) };
    let asked = ask(&engine, named);
    // It comes while the first one's first step waits, and goes again.
    drop(ask(&engine, request(&prompt, greedy(9))));
    go.send(()).unwrap();
    asked.outcome();
    drop(engine);
    let requests = seen.requests.lock().unwrap();
    let [second, first] = &requests[..] else { panic!("{requests:?}") };
    assert_eq!((first.id.as_str(), first.outcome), ("mine", EngineOutcome::Finished));
    assert_eq!((first.prompt_tokens, first.completion_tokens), (23, 9));
    let (admitted, token) = (first.admitted.unwrap(), first.first_token.unwrap());
    assert!(first.submitted <= admitted && admitted <= token && token <= first.end);
    assert_eq!((second.id.as_str(), second.outcome), ("", EngineOutcome::Cancelled));
    // Five pieces, and a step for each further token.
    let steps = seen.steps.lock().unwrap();
    let own = steps.iter().filter(|step| step.sequences.contains(&first.number));
    let tokens: Vec<usize> = own.map(|step| step.tokens).collect();
    assert_eq!(tokens, [5, 5, 5, 5, 3, 1, 1, 1, 1, 1, 1, 1, 1]);
    assert!(steps.iter().all(|step| step.begin <= step.end));
    assert!(steps.windows(2).all(|pair| pair[0].end <= pair[1].begin));
}
