//! Sampling: equality with a plain reference, distributions, repeatability, ranges.

use galatea_llm::sampling::{
    LogitNeed, SamplerScratch, SamplingParameters, TOP, TokenSampler, TopTokens,
};
use proptest::prelude::*;

fn parameters() -> SamplingParameters {
    SamplingParameters { seed: Some(7), max_tokens: None, ..SamplingParameters::default() }
}

fn sampler(parameters: &SamplingParameters, size: usize) -> TokenSampler {
    TokenSampler::new(parameters, size, &[], &[], 0).unwrap()
}

/// How often each token comes in `draws` positions of one answer.
fn counts(parameters: &SamplingParameters, logits: &[f32], draws: u32) -> Vec<u32> {
    let mut sampler = sampler(parameters, logits.len());
    let mut scratch = SamplerScratch::new(logits.len());
    let mut counts = vec![0; logits.len()];
    for _ in 0..draws {
        let token = sampler.sample(&mut logits.to_vec(), &mut scratch).unwrap();
        counts[token as usize] += 1;
        sampler.observe(token);
    }
    counts
}

/// The distribution that the parameters describe, by sorting everything in f64.
fn reference(p: &SamplingParameters, logits: &[f32]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|a, b| logits[*b].total_cmp(&logits[*a]).then(a.cmp(b)));
    let max = f64::from(logits[order[0]]);
    let weight = |i: usize| ((f64::from(logits[i]) - max) / f64::from(p.temperature)).exp();
    order.retain(|i| weight(*i) >= f64::from(p.min_p));
    if p.top_k > 0 {
        order.truncate(usize::try_from(p.top_k).unwrap());
    }
    let keep = |order: &mut Vec<usize>, share: f64| {
        let wanted = order.iter().map(|i| weight(*i)).sum::<f64>() * share;
        let mut sum = 0.0;
        let kept = order.iter().position(|i| {
            sum += weight(*i);
            sum >= wanted
        });
        order.truncate(kept.map_or(order.len(), |at| at + 1));
    };
    if p.top_p < 1.0 {
        keep(&mut order, f64::from(p.top_p));
    }
    if p.typical_p < 1.0 {
        let total: f64 = order.iter().map(|i| weight(*i)).sum();
        let information = |i: usize| -(weight(i) / total).ln();
        let entropy: f64 = order
            .iter()
            .filter(|i| weight(**i) > 0.0)
            .map(|i| weight(*i) / total * information(*i))
            .sum();
        let distance = |i: usize| (information(i) - entropy).abs();
        order.sort_by(|a, b| distance(*a).total_cmp(&distance(*b)));
        keep(&mut order, f64::from(p.typical_p));
    }
    let total: f64 = order.iter().map(|i| weight(*i)).sum();
    let mut probabilities = vec![0.0; logits.len()];
    for i in order {
        probabilities[i] = weight(i) / total;
    }
    probabilities
}

/// Pearson's statistic of counts against probabilities, and its degrees of freedom.
fn chi_square(counts: &[u32], probabilities: &[f64], draws: u32) -> (f64, usize) {
    let mut sum = 0.0;
    let mut cells = 0;
    for (count, p) in counts.iter().zip(probabilities) {
        if *p == 0.0 {
            assert_eq!(*count, 0, "a token came that has no probability");
            continue;
        }
        let expected = p * f64::from(draws);
        sum += (f64::from(*count) - expected).powi(2) / expected;
        cells += 1;
    }
    (sum, cells - 1)
}

#[test]
fn tokens_come_as_often_as_their_probabilities_say() {
    let logits: Vec<f32> = (0..12).map(|i| ((i * 7) % 12) as f32 * 0.3).collect();
    let settings = [
        parameters(),
        SamplingParameters { temperature: 0.5, ..parameters() },
        SamplingParameters { temperature: 3.0, top_k: 5, ..parameters() },
        SamplingParameters { top_p: 0.8, ..parameters() },
        SamplingParameters { top_k: 7, top_p: 0.7, ..parameters() },
        SamplingParameters { min_p: 0.3, ..parameters() },
        SamplingParameters { min_p: 0.1, top_p: 0.9, ..parameters() },
        SamplingParameters { typical_p: 0.6, ..parameters() },
        SamplingParameters { typical_p: 0.7, top_k: 9, top_p: 0.95, ..parameters() },
    ];
    for p in settings {
        let draws = 20_000;
        let found = counts(&p, &logits, draws);
        let (sum, freedom) = chi_square(&found, &reference(&p, &logits), draws);
        // Mean n, variance 2n: five deviations leave a chance below one in a million.
        let limit = freedom as f64 + 5.0 * (2.0 * freedom as f64).sqrt() + 5.0;
        assert!(sum < limit, "{sum} > {limit} for {p:?}: {found:?}");
    }
}

fn settings() -> impl Strategy<Value = SamplingParameters> {
    let share = |least: f32| prop_oneof![Just(1.0f32), least..1.0f32];
    let min_p = prop_oneof![Just(0.0f32), 0.0..0.5f32];
    (0.2..4.0f32, 0i64..80, share(0.05), share(0.2), min_p, any::<u64>()).prop_map(
        |(temperature, top_k, top_p, typical_p, min_p, seed)| SamplingParameters {
            temperature,
            top_k,
            top_p,
            typical_p,
            min_p,
            seed: Some(seed),
            ..parameters()
        },
    )
}

/// The most probable tokens of a row and their logits.
fn most_probable(logits: &[f32]) -> (Vec<f32>, Vec<u32>) {
    let mut order: Vec<usize> = (0..logits.len()).filter(|i| !logits[*i].is_nan()).collect();
    order.sort_by(|a, b| logits[*b].partial_cmp(&logits[*a]).unwrap().then(a.cmp(b)));
    order.truncate(TOP);
    (order.iter().map(|i| logits[*i]).collect(), order.iter().map(|i| *i as u32).collect())
}

/// Logits of which many are equal, and some cannot come.
fn coarse() -> impl Strategy<Value = Vec<f32>> {
    let some = (-6i8..6).prop_map(|step| f32::from(step) / 2.0);
    let odd = prop_oneof![Just(f32::NEG_INFINITY), Just(f32::NAN), Just(-0.0f32), Just(90.0f32)];
    let logit = prop_oneof![20 => some, 1 => odd, 20 => -9f32..9.0];
    prop::collection::vec(logit, 2..500)
}

proptest! {
    #[test]
    fn the_most_probable_tokens_give_what_all_logits_give(
        p in settings(), greedy in any::<bool>(), logits in coarse(), observed in 0u32..9,
    ) {
        let temperature = if greedy { 0.0 } else { p.temperature };
        let mut sampler = sampler(&SamplingParameters { temperature, ..p }, logits.len());
        let need = sampler.need(logits.len());
        let top_k = usize::try_from(sampler.parameters().top_k).unwrap();
        let few = (1..=TOP.min(logits.len() - 1)).contains(&top_k);
        let expected = if greedy { LogitNeed::Best } else if few { LogitNeed::Top } else { LogitNeed::Logits };
        prop_assert_eq!(need, expected);
        (0..observed).for_each(|_| sampler.observe(0));
        let mut scratch = SamplerScratch::new(logits.len());
        let expected = sampler.sample(&mut logits.clone(), &mut scratch);
        let (values, tokens) = most_probable(&logits);
        let count = match need {
            LogitNeed::Best => values.len().min(1),
            LogitNeed::Top => values.len(),
            LogitNeed::Logits => return Ok(()),
        };
        let top = TopTokens::new(&values[..count], &tokens[..count]);
        prop_assert_eq!(sampler.sample_top(top, &mut scratch), expected);
    }
}

#[test]
fn what_changes_or_tells_logits_needs_them_all() {
    let greedy = SamplingParameters { temperature: 0.0, ..parameters() };
    let likely = SamplingParameters { top_k: 20, ..parameters() };
    for p in [greedy, likely] {
        assert!(sampler(&p, 100).need(100) < LogitNeed::Logits);
        for p in [
            SamplingParameters { repetition_penalty: 1.1, ..p.clone() },
            SamplingParameters { presence_penalty: 0.5, ..p.clone() },
            SamplingParameters { frequency_penalty: -0.5, ..p.clone() },
            SamplingParameters { logit_bias: [(3, 1.0)].into(), ..p.clone() },
            SamplingParameters { logprobs: Some(0), ..p.clone() },
            SamplingParameters { min_tokens: 2, max_tokens: None, ..p.clone() },
        ] {
            assert_eq!(sampler(&p, 100).need(100), LogitNeed::Logits, "{p:?}");
        }
        let mut sampler = sampler(&SamplingParameters { min_tokens: 1, ..p.clone() }, 100);
        assert_eq!(sampler.need(100), LogitNeed::Logits);
        sampler.observe(5);
        assert!(sampler.need(100) < LogitNeed::Logits);
    }
}

proptest! {
    #[test]
    fn only_tokens_of_the_reference_come(
        p in settings(), logits in prop::collection::vec(-8f32..8.0, 2..600),
    ) {
        let probabilities = reference(&p, &logits);
        let sampler = sampler(&p, logits.len());
        let mut scratch = SamplerScratch::new(logits.len());
        let token = sampler.sample(&mut logits.clone(), &mut scratch).unwrap() as usize;
        // A token at the very edge of a share may fall on either side in f32.
        let slack = |x: f32| if x < 1.0 { x + 1e-4 } else { x };
        let wider = SamplingParameters {
            top_p: slack(p.top_p).min(1.0), typical_p: slack(p.typical_p).min(1.0),
            min_p: p.min_p * 0.9999, ..p.clone()
        };
        prop_assert!(probabilities[token] > 0.0 || reference(&wider, &logits)[token] > 0.0, "{token}");
    }

    #[test]
    fn the_choice_is_that_of_the_reference_at_the_same_random_number(
        seed: u64, top_k in 1i64..50, logits in prop::collection::vec(-8f32..8.0, 60..400),
    ) {
        // With top-k, candidates lie in their order, so the random number decides alone: the one of
        // a flat row of as many tokens tells it.
        let p = SamplingParameters { seed: Some(seed), top_k, ..parameters() };
        let mut scratch = SamplerScratch::new(1 << 16);
        let flat = SamplingParameters { top_k: 0, ..p.clone() };
        let fine = 1usize << 16;
        let at = sampler(&flat, fine).sample(&mut vec![0.0; fine], &mut scratch).unwrap();
        let random = (f64::from(at) + 0.5) / fine as f64;
        let probabilities = reference(&p, &logits);
        let mut order: Vec<usize> = (0..logits.len()).filter(|i| probabilities[*i] > 0.0).collect();
        order.sort_by(|a, b| logits[*b].total_cmp(&logits[*a]).then(a.cmp(b)));
        let mut sum = 0.0;
        let mut expected = None;
        let mut near = false;
        for i in order {
            near |= (sum - random).abs() < 1e-4;
            sum += probabilities[i];
            near |= (sum - random).abs() < 1e-4;
            if sum > random { expected = Some(i); break; }
        }
        let found = sampler(&p, logits.len()).sample(&mut logits.clone(), &mut scratch).unwrap();
        prop_assert!(near || Some(found as usize) == expected);
    }
}

#[test]
fn the_same_seed_gives_the_same_tokens_whatever_came_between() {
    let p = SamplingParameters { temperature: 2.0, ..parameters() };
    let logits: Vec<f32> = (0..1000).map(|i| (i % 13) as f32 * 0.2).collect();
    let mut scratch = SamplerScratch::new(1000);
    let mut run = |index: u32, disturbed: bool| {
        let mut sampler = TokenSampler::new(&p, 1000, &[], &[], index).unwrap();
        let mut tokens = Vec::new();
        for _ in 0..32 {
            if disturbed {
                // A choice that is thrown away, as speculation makes them.
                sampler.sample(&mut vec![0.0; 1000], &mut scratch).unwrap();
            }
            let token = sampler.sample(&mut logits.clone(), &mut scratch).unwrap();
            sampler.observe(token);
            tokens.push(token);
        }
        tokens
    };
    let first = run(0, false);
    assert_eq!(first, run(0, true));
    assert_ne!(first, run(1, false), "the answers of one request differ");
    assert!(first.windows(2).any(|w| w[0] != w[1]));
    let unseeded = SamplingParameters { seed: None, ..p.clone() };
    let draw = || counts(&unseeded, &logits, 32);
    assert_ne!(draw(), draw());
}

#[test]
fn greedy_takes_the_first_of_the_largest() {
    let p = SamplingParameters { temperature: 0.0, ..parameters() };
    let mut scratch = SamplerScratch::new(4);
    let of = |mut logits: Vec<f32>, scratch: &mut SamplerScratch| {
        sampler(&p, 4).sample(&mut logits, scratch)
    };
    assert_eq!(of(vec![1.0, 2.0, 2.0, 0.0], &mut scratch).unwrap(), 1);
    let impossible = of(vec![f32::NEG_INFINITY; 4], &mut scratch).unwrap_err().to_string();
    assert!(impossible.contains("no token is possible"));
    let random = sampler(&parameters(), 4);
    for bad in [f32::NEG_INFINITY, f32::NAN, f32::INFINITY] {
        assert!(random.sample(&mut [bad; 4], &mut scratch).is_err(), "{bad}");
    }
    let masked = [f32::NEG_INFINITY, f32::NEG_INFINITY, -3.0, f32::NEG_INFINITY];
    assert_eq!(random.sample(&mut masked.clone(), &mut scratch).unwrap(), 2);
}

#[test]
fn penalties_biases_and_early_ends() {
    let greedy = SamplingParameters { temperature: 0.0, ..parameters() };
    let mut scratch = SamplerScratch::new(4);
    let mut first = |p: &SamplingParameters, logits: [f32; 4], observed: &[u32]| {
        let mut sampler = TokenSampler::new(p, 4, &[0], &[3], 0).unwrap();
        observed.iter().for_each(|token| sampler.observe(*token));
        let mut logits = logits;
        (sampler.sample(&mut logits, &mut scratch).unwrap(), logits)
    };
    let repetition = SamplingParameters { repetition_penalty: 2.0, ..greedy.clone() };
    let (token, logits) = first(&repetition, [3.0, -1.0, 2.0, 0.0], &[1]);
    assert_eq!((token, logits), (2, [1.5, -2.0, 2.0, 0.0]), "the prompt counts too");
    let counted =
        SamplingParameters { presence_penalty: 0.5, frequency_penalty: 0.25, ..greedy.clone() };
    let (_, logits) = first(&counted, [3.0, 3.0, 3.0, 3.0], &[1, 1, 2]);
    assert_eq!(logits, [3.0, 2.0, 2.25, 3.0], "the prompt does not count");
    let biased =
        SamplingParameters { logit_bias: [(1, -100.0), (2, 5.0)].into(), ..greedy.clone() };
    assert_eq!(first(&biased, [3.0, 9.0, 0.0, 0.0], &[]).0, 2);
    let long = SamplingParameters { min_tokens: 1, stop_token_ids: vec![1], ..greedy };
    assert_eq!(first(&long, [0.0, 8.0, 1.0, 9.0], &[]).0, 2);
    assert_eq!(first(&long, [0.0, 8.0, 1.0, 9.0], &[2]).0, 3);
}

#[test]
fn logprobs_are_those_of_the_row_as_it_came() {
    let p =
        SamplingParameters { logprobs: Some(2), logit_bias: [(0, 50.0)].into(), ..parameters() };
    let mut scratch = SamplerScratch::new(3);
    let (token, told) =
        sampler(&p, 3).sample_with_logprobs(&mut [0.0, 1.0, 2.0], &mut scratch).unwrap();
    let told = told.unwrap();
    assert_eq!((token, told.token, told.rank), (0, 0, 3));
    assert_eq!(told.top.iter().map(|t| t.0).collect::<Vec<_>>(), [2, 1]);
    let expected = -(1f32 + 1f32.exp() + 2f32.exp()).ln();
    assert!((told.logprob - expected).abs() < 1e-6);
    let silent = SamplingParameters { logprobs: None, ..p };
    assert_eq!(
        sampler(&silent, 3).sample_with_logprobs(&mut [0.0; 3], &mut scratch).unwrap().1,
        None
    );
}

#[test]
fn values_out_of_range_are_refused_with_field_value_and_range() {
    let read = |text: &str| serde_json::from_str::<SamplingParameters>(text);
    for (text, expected) in [
        (r#"{"temperature": -0.5}"#, "temperature: -0.5 found, expected 0 to 100"),
        (r#"{"top_p": 0}"#, "top_p: 0 found, expected more than 0, at most 1"),
        (r#"{"top_p": 1.5}"#, "top_p: 1.5"),
        (r#"{"top_k": -2}"#, "top_k: -2 found, expected -1 to 10"),
        (r#"{"min_p": 2}"#, "min_p"),
        (r#"{"typical_p": 0}"#, "typical_p"),
        (r#"{"repetition_penalty": 0}"#, "repetition_penalty"),
        (r#"{"presence_penalty": 3}"#, "presence_penalty"),
        (r#"{"frequency_penalty": -3}"#, "frequency_penalty"),
        (r#"{"logit_bias": {"10": 1}}"#, "logit_bias: 10 found, expected a token below 10"),
        (r#"{"logit_bias": {"1": 101}}"#, "logit_bias[1]: 101"),
        (r#"{"n": 0}"#, "n: 0 found, expected 1 to 128"),
        (r#"{"n": 2, "temperature": 0}"#, "n: 2"),
        (r#"{"best_of": 2}"#, "best_of: 2 found, expected the value of n, 1"),
        (r#"{"logprobs": 1000}"#, "logprobs"),
        (r#"{"max_tokens": 0}"#, "max_tokens: 0"),
        (r#"{"max_tokens": 2, "min_tokens": 3}"#, "min_tokens: 3"),
        (r#"{"stop": ["a", ""]}"#, "stop[1]: 0 bytes"),
        (r#"{"stop_token_ids": [3, 10]}"#, "stop_token_ids[1]: 10"),
    ] {
        let error = read(text).unwrap().validate(10).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{text}: {error}");
    }
    let nan = SamplingParameters { temperature: f32::NAN, ..parameters() };
    assert!(nan.validate(10).is_err());
    assert_eq!(read(r#"{"stop": "x"}"#).unwrap().stop, ["x"]);
    assert!(
        read(r#"{"stop": null, "top_k": -1, "seed": 5, "best_of": 1}"#)
            .unwrap()
            .validate(10)
            .is_ok()
    );
    assert!(read(r#"{"temprature": 1}"#).is_err(), "an unknown field is a mistake");
}
