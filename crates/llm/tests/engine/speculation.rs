//! Guessed tokens change how many steps an answer takes, and nothing else.

use std::sync::mpsc::Sender;

use galatea_llm::engine::{
    EngineOptions, EngineStatistics, GenerationEngine, GenerationRequest, SpeculationMethod,
};
use galatea_llm::error::LlmErrorKind;
use galatea_llm::grammar::{Grammar, GrammarCompiler};
use galatea_llm::sampling::SamplingParameters;
use galatea_llm::stop::FinishReason;
use galatea_tensor::OrderedMap;

use crate::answers::sampled;
use crate::fake::{FakeModel, ask, expected, failure, greedy, options, request, start, tokenizer};

fn looking_up(max_tokens: usize) -> EngineOptions {
    let speculative = Some(SpeculationMethod::PromptLookup { max_tokens, ngram: 3 });
    EngineOptions { speculative, ..options(8, 32) }
}

fn with_draft(model: FakeModel, draft: FakeModel, max_tokens: usize) -> GenerationEngine {
    let (model, draft) = (Box::new(model), Box::new(draft));
    GenerationEngine::start_with_draft(model, draft, max_tokens, tokenizer(), options(8, 32))
        .unwrap()
}

fn prompts() -> Vec<Vec<u32>> {
    // The longer ones take several steps of 32 rows.
    (0..12).map(|seed| (0..5 + seed * 7).map(|at| 1 + (seed + at * 5) % 200).collect()).collect()
}

/// All prompts at once, greedy and not.
fn check(engine: &GenerationEngine, go: Option<Sender<()>>) -> EngineStatistics {
    let hot = |seed| SamplingParameters {
        temperature: 0.7,
        seed: Some(seed),
        repetition_penalty: 1.1,
        ignore_eos: true,
        max_tokens: Some(18),
        ..SamplingParameters::default()
    };
    let prompts = prompts();
    let mut asked = Vec::new();
    for (seed, prompt) in (0..).zip(&prompts) {
        asked.push((expected(prompt, 18), ask(engine, request(prompt, greedy(18)))));
        let sampling = hot(seed);
        asked.push((sampled(&sampling, prompt, 0), ask(engine, request(prompt, sampling))));
    }
    if let Some(go) = go {
        go.send(()).unwrap();
    }
    for (expected, asked) in asked {
        let outcome = asked.outcome();
        assert_eq!(outcome.tokens(), expected);
        assert_eq!(outcome.answers[0].finish, Some(FinishReason::Length));
    }
    let statistics = engine.statistics();
    assert_eq!((statistics.running, statistics.active_blocks), (0, 0));
    statistics
}

#[test]
fn a_draft_model_that_is_always_right_saves_steps() {
    let engine = with_draft(FakeModel::new(64, 4), FakeModel::new(64, 4), 4);
    let outcome = ask(&engine, request(&[1, 2, 3], greedy(21))).outcome();
    assert_eq!(outcome.tokens(), expected(&[1, 2, 3], 21));
    let statistics = engine.statistics();
    // The prompt, and four steps that give five tokens each.
    assert_eq!((statistics.steps, statistics.generation_tokens), (5, 21));
    assert_eq!((statistics.draft_tokens, statistics.accepted_tokens), (16, 16));
}

#[test]
fn answers_are_the_same_whatever_is_guessed() {
    let wrong = |each| FakeModel::new(64, 4).with_slips(each);
    for draft in [wrong(2), wrong(3), wrong(1), FakeModel::new(40, 4)] {
        // Few blocks, so that sequences are preempted and drafts find no room.
        let (model, go) = FakeModel::new(30, 4).held();
        let statistics = check(&with_draft(model, draft, 5), Some(go));
        assert!(statistics.preemptions > 0 && statistics.draft_tokens > 0, "{statistics:?}");
    }
    check(&start(FakeModel::new(48, 4), looking_up(4)), None);
}

#[test]
fn a_draft_model_that_fails_is_not_asked_again() {
    let draft = FakeModel::new(64, 4).with_trouble(Box::new(|step, _| match step {
        7 => Err(failure("out of memory")),
        8.. => panic!("it is asked again"),
        _ => Ok(()),
    }));
    let statistics = check(&with_draft(FakeModel::new(200, 4), draft, 3), None);
    assert_eq!(statistics.failed, 0);
}

#[test]
fn text_that_repeats_is_looked_up() {
    let engine = start(FakeModel::new(64, 4), looking_up(6));
    // A bias makes one token follow again and again.
    let repeating = SamplingParameters { logit_bias: OrderedMap::from([(9, 100.0)]), ..greedy(40) };
    let outcome = ask(&engine, request(&[1, 2, 3], repeating)).outcome();
    assert_eq!(outcome.tokens(), [9; 40]);
    let statistics = engine.statistics();
    assert_eq!(statistics.draft_tokens, statistics.accepted_tokens);
    assert!(statistics.steps < 12, "{statistics:?}");
}

#[test]
fn guesses_follow_grammars_and_stop_where_answers_do() {
    let engine = start(FakeModel::new(64, 4), looking_up(6));
    let compiler = GrammarCompiler::new(tokenizer()).unwrap();
    let constraint = compiler.compile(&Grammar::Regex("(xyz){6}!".to_owned())).unwrap();
    let ask_for = |sampling: SamplingParameters| {
        let constraint = Some(constraint.clone());
        let request = GenerationRequest { constraint, ..request(&[5, 6, 7], sampling) };
        ask(&engine, request).outcome().answers.remove(0)
    };
    let whole = ask_for(greedy(50));
    assert_eq!(whole.text, "xyzxyzxyzxyzxyzxyz!");
    assert_eq!(whole.finish, Some(FinishReason::EndOfText));
    let stop = SamplingParameters { stop: vec!["zxyzxyzx".to_owned()], ..greedy(50) };
    let stopped = ask_for(stop);
    assert_eq!((stopped.text.as_str(), stopped.tokens.len()), ("xy", 10));
    let short = ask_for(SamplingParameters { logprobs: Some(1), ..greedy(11) });
    assert_eq!((short.text.as_str(), short.logprobs.len()), ("xyzxyzxyzxy", 11));
    assert!(engine.statistics().accepted_tokens > 10);
}

#[test]
fn text_that_a_grammar_leaves_no_choice_about_takes_one_step() {
    let engine = start(FakeModel::new(64, 4), options(8, 64));
    let compiler = GrammarCompiler::new(tokenizer()).unwrap();
    let grammar = Grammar::Regex("[ab]the_same_for_all[cd]!".to_owned());
    let constraint = Some(compiler.compile(&grammar).unwrap());
    let asked = GenerationRequest { constraint, ..request(&[5, 6, 7], greedy(50)) };
    let answer = ask(&engine, asked).outcome().answers.remove(0);
    let (first, rest) = answer.text.split_at(1);
    assert!("ab".contains(first) && rest.starts_with("the_same_for_all"), "{}", answer.text);
    assert_eq!(answer.tokens.len(), 19);
    let statistics = engine.statistics();
    // The prompt and the first letter, the text and the choice behind it, and the end.
    assert_eq!((statistics.steps, statistics.accepted_tokens), (3, 17));
}

#[test]
fn what_cannot_be_guessed_is_refused_at_the_start() {
    let none = EngineOptions {
        speculative: Some(SpeculationMethod::Draft { max_tokens: 3 }),
        ..EngineOptions::default()
    };
    let model = || Box::new(FakeModel::new(8, 4));
    let error = GenerationEngine::start(model(), tokenizer(), none).unwrap_err();
    assert_eq!((error.kind(), error.place()), (LlmErrorKind::Parameter, "speculative"));
    let error = GenerationEngine::start(model(), tokenizer(), looking_up(65)).unwrap_err();
    assert_eq!(error.to_string(), "speculative.max_tokens: 65 found, expected 1 to 64");
}
