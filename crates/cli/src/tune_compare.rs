//! Two candidates of a choice beside each other: part of `galatea tune`.

use std::time::{Duration, Instant};

use galatea_runtime::tune::{
    CandidatePair, ConfigSpace, PairedTimes, ResultAgreement, SearchLimits, TuningProblem,
};
use serde_json::{Value, json};

use super::say;
use crate::table::table;

/// Finds a candidate: by its number, its name, or a part of its name that no other one has.
///
/// # Errors
/// Fails when no candidate matches, or several do.
fn find(space: &ConfigSpace, text: &str) -> Result<usize, String> {
    if let Some(number) = text.parse().ok().filter(|&number: &usize| number < space.len()) {
        return Ok(number);
    }
    let names = space.names();
    if let Some(exact) = names.iter().position(|name| name == text) {
        return Ok(exact);
    }
    let mut found = names.iter().enumerate().filter(|(_, name)| name.contains(text));
    match (found.next(), found.next()) {
        (Some((at, _)), None) => Ok(at),
        (Some((at, first)), Some((_, second))) => {
            // The usual one is called like this on every axis.
            if at == 0 && text == first.split(' ').next().unwrap_or_default() {
                return Ok(0);
            }
            Err(format!("'{text}' may be '{first}' or '{second}'"))
        }
        _ => Err(format!("there is no candidate '{text}'")),
    }
}

/// A comparison that was made.
struct ComparedRow<'a> {
    problem: &'a TuningProblem,
    names: [String; 2],
    found: PairedTimes,
    agreement: ResultAgreement,
}

impl ComparedRow<'_> {
    fn json(&self) -> Value {
        let Self { problem, names: [first, second], found, agreement } = self;
        json!({
            "node": problem.node, "family": problem.family, "bucket": problem.bucket,
            "unit": problem.unit, "first": first, "second": second,
            "first_ns": found.median_ns[0], "second_ns": found.median_ns[1],
            "ratio": found.ratio, "low": found.interval[0], "high": found.interval[1],
            "p": found.p, "samples": found.samples, "verdict": found.verdict.name(),
            "agree": agreement.holds(), "apart": finite(agreement.apart),
            "off": agreement.off.map(|off| off.map(finite)), "tolerance": agreement.tolerance,
        })
    }

    fn text(&self) -> String {
        let Self { problem, names: [first, second], found, agreement } = self;
        let mut text = format!(
            "{} {}: {}",
            problem.family,
            problem.bucket,
            found.sentence([first.as_str(), second.as_str()])
        );
        if !agreement.holds() {
            text.push_str(&format!(
                "; their results DIFFER: {:.2e} apart where {:.0e} is allowed",
                agreement.apart, agreement.tolerance
            ));
            if let Some([one, two]) = agreement.off {
                text.push_str(&format!(", {one:.2e} and {two:.2e} from what is right"));
            }
        }
        text
    }
}

/// JSON has no infinity.
fn finite(value: f32) -> Option<f32> {
    value.is_finite().then_some(value)
}

/// Compares the candidates that `names` stand for wherever a choice has both.
///
/// # Errors
/// Fails when no choice has both.
pub(super) fn compare(
    problems: &mut [TuningProblem],
    names: &str,
    samples: usize,
    time: Duration,
    as_json: bool,
) -> Result<(), String> {
    let (first, second) = split(names)?;
    let mut reasons = Vec::new();
    let mut pairs = Vec::new();
    for (at, problem) in problems.iter().enumerate() {
        match (find(&problem.space, first), find(&problem.space, second)) {
            (Ok(first), Ok(second)) => pairs.push((at, [first, second])),
            (Err(reason), _) | (_, Err(reason)) => {
                reasons.push(format!("{} {}: {reason}", problem.family, problem.bucket));
            }
        }
    }
    if pairs.is_empty() {
        reasons.truncate(8);
        return Err(format!("no choice has both candidates: {}", reasons.join("; ")));
    }
    let share = time.div_f64(pairs.len().max(1) as f64);
    for (at, candidates) in pairs {
        let Some(problem) = problems.get_mut(at) else { continue };
        let start = Instant::now();
        let tolerance = SearchLimits::default().tolerance;
        let device = &mut *problem.device;
        let pair = CandidatePair { device, candidates, samples, time: share, tolerance };
        let (found, agreement) = pair
            .run(&mut || start.elapsed())
            .map_err(|error| format!("{} {}: {error}", problem.family, problem.bucket))?;
        let names = candidates.map(|candidate| problem.space.name(candidate));
        let row = ComparedRow { problem, names, found, agreement };
        say(&if as_json { row.json().to_string() } else { row.text() });
    }
    Ok(())
}

/// The two names, between which a slash is: names have commas.
fn split(names: &str) -> Result<(&str, &str), String> {
    let found = names.split_once('/').filter(|(a, b)| !a.is_empty() && !b.is_empty());
    found.ok_or_else(|| format!("--compare expects FIRST/SECOND, got '{names}'"))
}

/// Prints all choices with their candidates.
pub(super) fn list(problems: &[TuningProblem], as_json: bool) {
    if as_json {
        for problem in problems {
            let line = json!({
                "node": problem.node, "family": problem.family, "bucket": problem.bucket,
                "unit": problem.unit, "candidates": problem.space.names(),
            });
            say(&line.to_string());
        }
        return;
    }
    let rows = problems.iter().map(|problem| {
        let names = problem.space.names().into_iter().enumerate();
        let names: Vec<String> = names.map(|(at, name)| format!("{at}: {name}")).collect();
        vec![problem.family.clone(), problem.bucket.clone(), names.join("\n")]
    });
    say(&table(&["Family", "Lengths", "Candidates"], rows));
}

#[cfg(test)]
mod tests {
    use galatea_runtime::tune::ConfigAxis;

    use super::*;

    #[test]
    fn candidates_are_found_by_number_name_and_part_of_a_name() {
        let space = ConfigSpace::new(vec![
            ConfigAxis::names("way", &["usual", "tiled(rows:64)", "tiled(rows:128)"]),
            ConfigAxis::names("shares", &["auto", "2"]),
        ]);
        assert_eq!(find(&space, "3"), Ok(3));
        assert_eq!(find(&space, "way=tiled(rows:64) shares=2"), Ok(3));
        assert_eq!(find(&space, "rows:128) shares=auto"), Ok(4));
        assert_eq!(find(&space, "way=usual"), Ok(0));
        assert!(find(&space, "tiled").unwrap_err().contains("may be"));
        assert!(find(&space, "flash").unwrap_err().contains("no candidate"));
        assert_eq!(split("0/way=usual"), Ok(("0", "way=usual")));
        assert!(split("0,1").is_err());
    }
}
