//! What answers consist of, and when they end.

use galatea_tensor::OrderedMap;

use galatea_llm::engine::{EngineOptions, GenerationRequest};
use galatea_llm::grammar::{Grammar, GrammarCompiler};
use galatea_llm::sampling::{SamplerScratch, SamplingParameters, TokenSampler, logprobs};
use galatea_llm::stop::FinishReason;
use galatea_llm::tokens::SpecialText;

use crate::fake::{
    FakeModel, VOCABULARY, ask, expected, greedy, logits_behind, options, request, start, tokenizer,
};

fn signed(tokens: &[u32]) -> Vec<i64> {
    tokens.iter().copied().map(i64::from).collect()
}

/// What sampling by itself makes of a prompt.
pub(crate) fn sampled(parameters: &SamplingParameters, prompt: &[u32], index: u32) -> Vec<u32> {
    let mut sampler = TokenSampler::new(parameters, VOCABULARY, prompt, &[0], index).unwrap();
    let mut scratch = SamplerScratch::new(VOCABULARY);
    let mut tokens = prompt.to_vec();
    for _ in 0..parameters.max_tokens.unwrap() {
        let token = sampler.sample(&mut logits_behind(&signed(&tokens)), &mut scratch).unwrap();
        sampler.observe(token);
        tokens.push(token);
    }
    tokens.split_off(prompt.len())
}

#[test]
fn each_of_several_answers_is_the_one_of_its_seed_and_number() {
    // With many blocks all run at once; with few, some wait and are computed anew.
    for (blocks, sequences) in [(64, 8), (64, 2), (11, 8)] {
        let engine = start(FakeModel::new(blocks, 4), options(sequences, 16));
        let sampling = SamplingParameters {
            n: 5,
            seed: Some(11),
            temperature: 1.3,
            repetition_penalty: 1.2,
            ignore_eos: true,
            max_tokens: Some(12),
            ..SamplingParameters::default()
        };
        let prompt: Vec<u32> = (1..12).collect();
        let outcome = ask(&engine, request(&prompt, sampling.clone())).outcome();
        assert_eq!(outcome.answers.len(), 5);
        for (index, answer) in outcome.answers.iter().enumerate() {
            assert_eq!(answer.tokens, sampled(&sampling, &prompt, index as u32));
            assert_eq!(answer.finish, Some(FinishReason::Length));
        }
        assert_ne!(outcome.answers[0].tokens, outcome.answers[1].tokens);
        assert_eq!(outcome.usage.unwrap().completion_tokens, 60);
        let statistics = engine.statistics();
        assert_eq!((statistics.running, statistics.waiting, statistics.active_blocks), (0, 0, 0));
        assert_eq!(statistics.preemptions > 0, blocks == 11, "{statistics:?}");
    }
}

#[test]
fn logprobs_are_those_of_the_model_whatever_changes_the_choice() {
    let engine = start(FakeModel::new(64, 4), options(4, 6));
    let prompt: Vec<u32> = (1..20).collect();
    let mut sampling = SamplingParameters {
        logprobs: Some(2),
        prompt_logprobs: Some(3),
        logit_bias: OrderedMap::from([(9, 100.0)]),
        ..greedy(3)
    };
    // The second time the prompt is in the cache, but its logits are wanted.
    for _ in 0..2 {
        let outcome = ask(&engine, request(&prompt, sampling.clone())).outcome();
        assert_eq!(outcome.tokens(), [9, 9, 9]);
        assert_eq!(outcome.cached, Some(0));
        let known = outcome.prompt_logprobs.unwrap();
        assert_eq!((known.len(), &known[0]), (prompt.len(), &None));
        for at in 1..prompt.len() {
            let row = logits_behind(&signed(&prompt[..at]));
            assert_eq!(known[at], logprobs(&row, prompt[at], 3), "{at}");
        }
        for (at, found) in outcome.answers[0].logprobs.iter().enumerate() {
            let before: Vec<u32> = prompt.iter().copied().chain(vec![9; at]).collect();
            assert_eq!(Some(found), logprobs(&logits_behind(&signed(&before)), 9, 2).as_ref());
        }
    }
    sampling.prompt_logprobs = None;
    let outcome = ask(&engine, request(&prompt, sampling)).outcome();
    assert_eq!((outcome.cached, outcome.prompt_logprobs), (Some(16), None));
}

#[test]
fn end_tokens_end_an_answer_unless_they_are_ignored_or_come_too_early() {
    let engine = start(FakeModel::new(64, 4), options(8, 16));
    let ending = |more: SamplingParameters| SamplingParameters {
        logit_bias: OrderedMap::from([(0, 100.0)]),
        ..more
    };
    let outcome = ask(&engine, request(&[1, 2], ending(greedy(5)))).outcome();
    let answer = &outcome.answers[0];
    assert_eq!((&answer.tokens[..], answer.text.as_str()), (&[0][..], ""));
    assert_eq!(answer.finish, Some(FinishReason::EndOfText));
    let ignoring = SamplingParameters { ignore_eos: true, ..ending(greedy(3)) };
    let outcome = ask(&engine, request(&[1, 2], ignoring)).outcome();
    assert_eq!((outcome.tokens(), outcome.answers[0].text.as_str()), (&[0, 0, 0][..], ""));
    let late = SamplingParameters { min_tokens: 3, ..ending(greedy(9)) };
    let outcome = ask(&engine, request(&[1, 2], late)).outcome();
    let mut wanted = expected(&[1, 2], 3);
    wanted.push(0);
    assert_eq!(outcome.tokens(), wanted);
    let third = expected(&[1, 2], 3)[2];
    let stop = SamplingParameters { stop_token_ids: vec![third], ..greedy(9) };
    let outcome = ask(&engine, request(&[1, 2], stop)).outcome();
    assert_eq!(outcome.answers[0].finish, Some(FinishReason::StopToken(third)));
    assert_eq!(outcome.tokens(), &wanted[..3]);
    let shown = tokenizer().decode(&wanted[..2], SpecialText::Skip);
    assert!(shown.starts_with(&outcome.answers[0].text) || outcome.answers[0].text == shown);
}

#[test]
fn a_stop_string_ends_an_answer_before_its_length_does() {
    let engine = start(FakeModel::new(64, 4), options(8, 16));
    // "x", "y" and "z" again and again.
    let ids = ["x", "y", "z"].map(|name| tokenizer().token_to_id(name).unwrap());
    let grammar = Grammar::Regex("(xyz){4}".to_owned());
    let constraint = GrammarCompiler::new(tokenizer()).unwrap().compile(&grammar).unwrap();
    let ask_for = |sampling: SamplingParameters| {
        let constraint = Some(constraint.clone());
        let request = GenerationRequest { constraint, ..request(&[5, 6, 7], sampling) };
        ask(&engine, request).outcome().answers.remove(0)
    };
    // The grammar's end is the answer's end.
    let whole = ask_for(greedy(50));
    assert_eq!(whole.tokens, ids.repeat(4));
    assert_eq!(
        (whole.text.as_str(), whole.finish),
        ("xyzxyzxyzxyz", Some(FinishReason::EndOfText))
    );
    let stop = SamplingParameters { stop: vec!["zxy".to_owned()], ..greedy(5) };
    let stopped = ask_for(stop.clone());
    assert_eq!(stopped.tokens.len(), 5);
    assert_eq!(
        (stopped.text.as_str(), stopped.finish),
        ("xy", Some(FinishReason::StopString("zxy".to_owned())))
    );
    let included = SamplingParameters { include_stop_str_in_output: true, ..stop.clone() };
    assert_eq!(ask_for(included).text, "xyzxy");
    let late = SamplingParameters { min_tokens: 6, max_tokens: Some(50), ..stop.clone() };
    assert_eq!(ask_for(late).text, "xyzxyzxyz".split_at(8).0.to_owned());
    // What was held back comes with the end.
    let short = SamplingParameters { max_tokens: Some(3), ..stop };
    let short = ask_for(short);
    assert_eq!((short.text.as_str(), short.finish), ("xyz", Some(FinishReason::Length)));
}

#[test]
fn what_prompts_begin_with_is_computed_once_for_each_salt() {
    let engine = start(FakeModel::new(64, 4), options(8, 16));
    let prompt: Vec<u32> = (1..23).collect();
    let ask_with = |salt: u64, prompt: &[u32]| {
        let request = GenerationRequest { salt, ..request(prompt, greedy(6)) };
        let outcome = ask(&engine, request).outcome();
        assert_eq!(outcome.tokens(), expected(prompt, 6));
        assert_eq!(outcome.cached, outcome.usage.map(|usage| usage.cached_tokens));
        outcome.cached.unwrap()
    };
    assert_eq!(ask_with(0, &prompt), 0);
    assert_eq!(ask_with(0, &prompt), 20);
    assert_eq!(ask_with(1, &prompt), 0);
    // An answer is part of what the next turn begins with.
    let turn: Vec<u32> = prompt.iter().copied().chain(expected(&prompt, 6)).chain([3, 4]).collect();
    assert_eq!(ask_with(0, &turn), 24);
    let statistics = engine.statistics();
    assert_eq!((statistics.prefix_queries, statistics.prefix_hits), (96, 44));
}

#[test]
fn tokens_of_long_rows_are_the_same_with_any_number_of_threads() {
    let answers = |threads: usize| {
        // So long that several threads are worth it.
        let (model, go) = FakeModel::new(256, 4).with_width(200_000).held();
        let engine = start(model, EngineOptions { threads, ..options(12, 200) });
        let compiler = GrammarCompiler::new(tokenizer()).unwrap();
        let asked: Vec<_> = (0..12)
            .map(|at: u32| {
                let sampling = SamplingParameters {
                    seed: Some(at.into()),
                    temperature: if at.is_multiple_of(4) { 0.0 } else { 1.4 },
                    repetition_penalty: if at.is_multiple_of(3) { 1.3 } else { 1.0 },
                    logprobs: at.is_multiple_of(2).then_some(2),
                    n: if at == 5 { 2 } else { 1 },
                    max_tokens: Some(6),
                    ..SamplingParameters::default()
                };
                let mut request = request(&[at + 1, 2, 3], sampling);
                let digits = Grammar::Regex("[0-9]{4}".to_owned());
                request.constraint = (at == 7).then(|| compiler.compile(&digits).unwrap());
                ask(&engine, request)
            })
            .collect();
        go.send(()).unwrap();
        asked.into_iter().map(|asked| asked.outcome().answers).collect::<Vec<_>>()
    };
    let alone = answers(1);
    assert_eq!(alone[7][0].text.len(), 4);
    assert_eq!(alone[2][0].logprobs.len(), 6);
    assert_eq!(answers(3), alone);
}
