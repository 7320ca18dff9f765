//! Checkpoints of language models: prompts and answers.

use galatea_runtime::tune::PairedTimes;
use serde_json::{Value, json};

use super::operators::{OPERATORS, operator_rows, parts_of_time};
use super::page::{ReportPage, TableCell};

use crate::bench_language::{CheckpointJob, MeasuredCheckpoint};

/// Tokens a second of a sort, in each round.
type TokenSpeeds = fn(&MeasuredCheckpoint) -> &[f64];

/// A checkpoint with its settings, and what was measured of it.
#[derive(Debug)]
pub(super) struct ReportedLanguage {
    pub(super) name: String,
    rounds: Vec<MeasuredCheckpoint>,
}

/// A checkpoint to measure, with its name in the page.
pub(super) struct ReportedCheckpoint<'a> {
    pub(super) name: String,
    pub(super) job: CheckpointJob<'a>,
}

/// Measures checkpoints in turns, each as often as the other.
///
/// # Errors
/// Fails when a checkpoint cannot be loaded, or a request fails.
pub(super) fn measure(
    all: &[ReportedCheckpoint<'_>],
    turns: usize,
) -> Result<Vec<ReportedLanguage>, String> {
    let start = |one: &ReportedCheckpoint<'_>| ReportedLanguage {
        name: one.name.clone(),
        rounds: Vec::new(),
    };
    let mut found: Vec<ReportedLanguage> = all.iter().map(start).collect();
    for turn in 0..turns {
        for (checkpoint, one) in all.iter().zip(&mut found) {
            // Steps are taken apart once.
            let job = CheckpointJob { profile: turn == 0, ..checkpoint.job };
            one.rounds.push(job.measure()?);
        }
    }
    Ok(found)
}

impl ReportedLanguage {
    fn speeds(&self, of: TokenSpeeds) -> Vec<f64> {
        self.rounds.iter().flat_map(of).copied().collect()
    }

    fn first(&self) -> Option<&MeasuredCheckpoint> {
        self.rounds.first()
    }

    pub(super) fn write(&self, page: &mut ReportPage) {
        page.section(&format!("{}: prompts and answers", self.name));
        let Some(first) = self.first() else { return };
        let number = |name: &str| first.line[name].as_f64();
        let row = |what: &str, value: Option<f64>, unit: &str| {
            vec![TableCell::text(what), TableCell::number(value, 1), TableCell::text(unit)]
        };
        let mega = |name: &str| number(name).map(|bytes| bytes / 1e6);
        page.table(
            &["", "", ""],
            &[
                row("tokens of the prompt", number("prompt_tokens"), ""),
                row("prompt", number("prefill_tokens_s"), "tokens/s"),
                row("first token", number("ttft_ms"), "ms"),
                row("answer", number("decode_tokens_s"), "tokens/s"),
                bandwidth(number("share_of_bandwidth")),
                row("weights", mega("weight_bytes"), "MB"),
                row("bytes of a token", mega("token_bytes"), "MB"),
                row("loaded in", number("load_ms"), "ms"),
            ],
        );
        for step in &first.steps {
            let number = |name: &str| step[name].as_f64().unwrap_or(0.0);
            let rows = number("rows");
            let before = number("positions_before");
            let us = number("step_us");
            page.section(&format!(
                "{}: a step of {rows} rows behind {before} positions",
                self.name
            ));
            let bound = step["bound"].as_str().map(|bound| format!(" is {bound}-bound"));
            let bound = bound.map(|bound| format!("A step{bound}. ")).unwrap_or_default();
            page.paragraph(&format!(
                "{bound}{}",
                parts_of_time("The step in the middle", us, step)
            ));
            page.table(OPERATORS, &operator_rows(step));
        }
    }

    pub(super) fn json(&self) -> Value {
        let first = self.first();
        json!({
            "name": self.name,
            "measured": first.map(|first| &first.line),
            "steps": first.map(|first| &first.steps),
            "prefill_tokens_s": self.speeds(|round| &round.prefill),
            "decode_tokens_s": self.speeds(|round| &round.decode),
        })
    }
}

/// The row of the share of memory's bandwidth; weights that give more lie in caches.
fn bandwidth(share: Option<f64>) -> Vec<TableCell> {
    let known = share.filter(|share| *share <= 1.0).map(|share| share * 100.0);
    let unit = match (known, share) {
        (None, Some(_)) => "all of it and more: the weights lie in caches",
        _ => "%",
    };
    let name = TableCell::text("share of memory's bandwidth");
    vec![name, TableCell::number(known, 1), TableCell::text(unit)]
}

/// Compares the speeds of two: a sentence on prompts and one on answers, and the same for programs.
///
/// # Errors
/// Fails when there are too few rounds.
pub(super) fn compare(
    first: &ReportedLanguage,
    second: &ReportedLanguage,
) -> Result<(Vec<String>, Value), String> {
    let mut sentences = Vec::new();
    let mut data = json!({});
    let kinds: [(&str, TokenSpeeds); 2] =
        [("prompt", |round| &round.prefill), ("answer", |round| &round.decode)];
    for (what, of) in kinds {
        let ns = |one: &ReportedLanguage| -> Vec<f64> {
            one.speeds(of).iter().map(|speed| 1e9 / speed.max(1e-9)).collect()
        };
        let found = PairedTimes::of(&ns(first), &ns(second))?;
        sentences.push(format!("{what}: {}.", found.sentence([&first.name, &second.name])));
        if let Some(fields) = data.as_object_mut() {
            let value = json!({
                "time_ratio": found.ratio, "low": found.interval[0], "high": found.interval[1],
                "p": found.p, "faster": found.verdict.name(),
            });
            fields.insert(what.to_owned(), value);
        }
    }
    let (sentence, answers) = answers(first, second);
    sentences.push(sentence);
    if let Some(fields) = data.as_object_mut() {
        fields.insert("answers".to_owned(), answers);
    }
    Ok((sentences, data))
}

/// Compares the likeliest answers of two: a sentence, and the same for programs.
fn answers(first: &ReportedLanguage, second: &ReportedLanguage) -> (String, Value) {
    let of =
        |one: &ReportedLanguage| one.first().map(|first| (first.vocabulary, first.answers.clone()));
    match (of(first), of(second)) {
        (Some((a, one)), Some((b, two))) if a == b => beside(&one, &two),
        _ => {
            let why = "Their vocabularies differ, so their answers are not compared.";
            (why.to_owned(), Value::Null)
        }
    }
}

/// Compares answers to the same prompts.
fn beside(one: &[Vec<u32>], two: &[Vec<u32>]) -> (String, Value) {
    let mut all = 0;
    let mut equal = 0;
    let mut same = 0;
    let mut firsts = Vec::new();
    for (a, b) in one.iter().zip(two) {
        let pairs = || a.iter().zip(b);
        all += a.len().max(b.len());
        equal += pairs().filter(|(a, b)| a == b).count();
        match pairs().position(|(a, b)| a != b) {
            Some(at) => firsts.push(at + 1),
            None if a.len() == b.len() => same += 1,
            None => firsts.push(a.len().min(b.len()) + 1),
        }
    }
    let count = one.len().min(two.len());
    let share = if all > 0 { equal as f64 / all as f64 } else { 0.0 };
    let least = firsts.iter().min();
    let sentence = match least {
        None => format!("likeliest answers: all {count} are the same."),
        Some(at) => format!(
            "likeliest answers: {same} of {count} are the same; {:.1} % of tokens at the same places are, and the \
             first that differs is token {at}.",
            share * 100.0
        ),
    };
    let data = json!({
        "count": count, "same": same, "equal_tokens": share, "first_differences": firsts,
    });
    (sentence, data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_compared_token_by_token() {
        let (sentence, data) = beside(&[vec![1, 2, 3, 4], vec![5]], &[vec![1, 2, 9, 4], vec![5]]);
        assert!(sentence.contains("1 of 2 are the same; 80.0 %"), "{sentence}");
        assert!(sentence.contains("differs is token 3"), "{sentence}");
        assert_eq!(data["first_differences"], json!([3]));
        let (sentence, _) = beside(&[vec![1]], &[vec![1]]);
        assert!(sentence.contains("all 1 are the same"), "{sentence}");
        let (_, shorter) = beside(&[vec![1, 2]], &[vec![1]]);
        assert_eq!((&shorter["same"], &shorter["first_differences"]), (&json!(0), &json!([2])));
    }
}
