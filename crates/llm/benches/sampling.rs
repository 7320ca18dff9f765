//! The time of one choice from a row of a large vocabulary, on one core.
//!
//! `cargo bench -p galatea-llm --bench sampling`

#![allow(clippy::print_stdout, reason = "a benchmark reports on its terminal")]
#![allow(clippy::cast_possible_truncation, reason = "logits are made from noise")]

use std::hint::black_box;
use std::time::Instant;

use galatea_llm::sampling::{SamplerScratch, SamplingParameters, TokenSampler};

const VOCABULARY: usize = 151_936;

/// Logits like those of a model: normal noise and a few probable tokens.
fn logits() -> Vec<f32> {
    let mut state = 88_172_645_463_325_252_u64;
    let mut uniform = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut row: Vec<f32> = (0..VOCABULARY)
        .map(|_| {
            let radius = (-2.0 * uniform().max(1e-12).ln()).sqrt();
            (radius * (std::f64::consts::TAU * uniform()).cos() * 2.5) as f32
        })
        .collect();
    for (i, logit) in [18.0, 17.0, 16.5, 15.0, 14.0].into_iter().enumerate() {
        row[1000 * i + 7] = logit;
    }
    row
}

fn main() {
    let base = SamplingParameters { seed: Some(1), ..SamplingParameters::default() };
    let settings = [
        ("greedy", SamplingParameters { temperature: 0.0, ..base.clone() }),
        ("temperature 1", base.clone()),
        ("top_k 50", SamplingParameters { top_k: 50, ..base.clone() }),
        ("top_k 20, top_p 0.8", SamplingParameters { top_k: 20, top_p: 0.8, ..base.clone() }),
        ("top_p 0.9", SamplingParameters { top_p: 0.9, ..base.clone() }),
        ("min_p 0.05", SamplingParameters { min_p: 0.05, ..base.clone() }),
        ("penalties, top_k 50", SamplingParameters { top_k: 50, repetition_penalty: 1.1, ..base }),
    ];
    let row = logits();
    let prompt: Vec<u32> = (0..1000).map(|i| i * 97).collect();
    let mut scratch = SamplerScratch::new(VOCABULARY);
    for (name, parameters) in settings {
        let Ok(sampler) = TokenSampler::new(&parameters, VOCABULARY, &prompt, &[], 0) else {
            continue;
        };
        let mut best = f64::INFINITY;
        for _ in 0..300 {
            let mut logits = row.clone();
            let start = Instant::now();
            let token = sampler.sample(black_box(&mut logits), &mut scratch);
            best = best.min(start.elapsed().as_secs_f64());
            let _ = black_box(token);
        }
        println!("{name:<24} {:7.1} µs", best * 1e6);
    }
}
