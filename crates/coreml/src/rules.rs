//! Rules about the operations that the Neural Engine takes: `data/engine/rules.toml`, which is part
//! of the program.

use std::sync::OnceLock;

use toml::{Table, Value};

use super::convert_options::ConvertOptions;
use super::neural_engine::NeuralEngine;

/// The file.
const FILE: &str = include_str!("../rules/rules.toml");

/// The rules and figures of the file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EngineRules {
    pub(crate) cost: EngineCost,
    pub(crate) takes: Vec<TakenOperations>,
    pub(crate) refuses: Vec<RefusedOperations>,
}

/// Figures from which times are predicted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct EngineCost {
    /// The share of its peak that the engine reaches with whole models.
    pub(crate) share_of_peak: f64,
    /// 10⁹ bytes a second between memory and engine.
    pub(crate) bandwidth_gb_per_s: f64,
    /// Milliseconds of work that a partition must have to be worth its start.
    pub(crate) least_work_ms: f64,
    /// The most bytes of weights of a program.
    pub(crate) most_weight_bytes: f64,
}

/// Operations that the engine takes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TakenOperations {
    pub(crate) operators: Vec<String>,
    /// The first and the last set of operators.
    opsets: Option<(u32, u32)>,
    /// The first and the last generation of chips.
    generations: Option<(u32, u32)>,
}

/// Operations that it does not take.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RefusedOperations {
    pub(crate) name: String,
    /// Any where empty.
    pub(crate) operators: Vec<String>,
    opsets: Option<(u32, u32)>,
    generations: Option<(u32, u32)>,
    pub(crate) conditions: Vec<RuleCondition>,
    pub(crate) reason: String,
}

/// Condition on an operation, besides its name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RuleCondition {
    /// A value has elements of one of these types, one that none of some parameters reads.
    Elements { types: Vec<String>, apart_from: Vec<String> },
    /// A value has more axes.
    AxesAbove(usize),
    /// A value is longer along an axis.
    LengthAbove(RuleAxis, usize),
    /// An integer of a parameter is larger.
    ParameterAbove(String, i64),
    /// A length is known in a run only.
    Open,
}

/// An axis of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RuleAxis {
    /// The last one.
    Last,
    /// The one before.
    Height,
    /// The second of four.
    Channels,
}

impl RuleAxis {
    const NAMES: [(&'static str, Self); 3] =
        [("last", Self::Last), ("height", Self::Height), ("channels", Self::Channels)];

    /// The length along it, where a value of this shape has it.
    pub(crate) fn of(self, shape: &[Option<usize>]) -> Option<usize> {
        match self {
            Self::Last => shape.last().copied()?,
            Self::Height => shape.len().checked_sub(2).and_then(|at| shape.get(at)).copied()?,
            Self::Channels if shape.len() == 4 => shape.get(1).copied()?,
            Self::Channels => None,
        }
    }
}

/// Where rules hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RulePlace {
    /// The set of operators of the program.
    pub(crate) opset: u32,
    /// The generation of the chip, where it is known.
    pub(crate) generation: Option<u32>,
}

impl RulePlace {
    /// That of what is converted with these options for an engine.
    pub(super) fn of(options: &ConvertOptions, engine: &NeuralEngine) -> Self {
        let opset = u32::try_from(options.specification - 1).unwrap_or(0);
        Self { opset, generation: engine.generation }
    }

    /// Returns whether it is in these bounds; what is not known is in any.
    fn within(self, opsets: Option<(u32, u32)>, generations: Option<(u32, u32)>) -> bool {
        let inside = |bounds: Option<(u32, u32)>, found: Option<u32>| {
            bounds.zip(found).is_none_or(|((first, last), at)| (first..=last).contains(&at))
        };
        inside(opsets, Some(self.opset)) && inside(generations, self.generation)
    }
}

impl TakenOperations {
    pub(crate) fn holds(&self, place: RulePlace, operator: &str) -> bool {
        place.within(self.opsets, self.generations)
            && self.operators.iter().any(|one| one == operator)
    }
}

impl RefusedOperations {
    /// Returns whether it speaks of this operator here, whatever its conditions say.
    pub(crate) fn speaks_of(&self, place: RulePlace, operator: &str) -> bool {
        place.within(self.opsets, self.generations)
            && (self.operators.is_empty() || self.operators.iter().any(|one| one == operator))
    }
}

/// The rules of the file. None of them where the file is wrong, which a test of this program excludes.
pub(crate) fn rules() -> &'static EngineRules {
    static RULES: OnceLock<EngineRules> = OnceLock::new();
    RULES.get_or_init(|| {
        parse(FILE).unwrap_or_else(|problems| {
            tracing::error!("data/engine/rules.toml: {}", problems.join("; "));
            let cost = EngineCost {
                share_of_peak: 1.0,
                bandwidth_gb_per_s: 1.0,
                least_work_ms: f64::INFINITY,
                most_weight_bytes: 0.0,
            };
            EngineRules { cost, takes: Vec::new(), refuses: Vec::new() }
        })
    })
}

/// Reads rules.
///
/// # Errors
/// All mistakes, each with the place, what was found and what was expected.
pub(crate) fn parse(text: &str) -> Result<EngineRules, Vec<String>> {
    let file: Table = text.parse().map_err(|error| vec![format!("{error}")])?;
    let mut problems = Vec::new();
    unknown_keys("the file", &file, &["cost", "takes", "refuses"], &mut problems);
    let cost = cost(&file, &mut problems);
    let mut takes = Vec::new();
    for (at, table) in tables(&file, "takes", &mut problems) {
        let place = format!("takes {at}");
        unknown_keys(
            &place,
            table,
            &["operators", "opsets", "generations", "source"],
            &mut problems,
        );
        let mut read = RuleReader { place, table, problems: &mut problems };
        let operators = read.words("operators");
        if operators.is_empty() {
            read.wrong("operators", "the names of operations");
        }
        read.text("source");
        let opsets = read.bounds("opsets");
        let generations = read.bounds("generations");
        takes.push(TakenOperations { operators, opsets, generations });
    }
    let mut refuses: Vec<RefusedOperations> = Vec::new();
    for (at, table) in tables(&file, "refuses", &mut problems) {
        let rule = refusing(at, table, &mut problems);
        if refuses.iter().any(|other| other.name == rule.name) {
            problems.push(format!("refuses {at}: a second rule of the name '{}'", rule.name));
        }
        refuses.push(rule);
    }
    let known: Vec<&str> = galatea_formats::coreml::operators().collect();
    let named = takes.iter().flat_map(|rule| &rule.operators);
    for name in named.chain(refuses.iter().flat_map(|rule| &rule.operators)) {
        if !known.contains(&name.as_str()) {
            problems.push(format!("'{name}' found, which is no operation of ML programs"));
        }
    }
    if problems.is_empty() { Ok(EngineRules { cost, takes, refuses }) } else { Err(problems) }
}

fn cost(file: &Table, problems: &mut Vec<String>) -> EngineCost {
    let empty = Table::new();
    let table = file.get("cost").and_then(Value::as_table).unwrap_or(&empty);
    let names = ["share_of_peak", "bandwidth_gb_per_s", "least_work_ms", "most_weight_bytes"];
    unknown_keys("cost", table, &names, problems);
    let mut read = RuleReader { place: "cost".to_owned(), table, problems };
    let [share_of_peak, bandwidth_gb_per_s, least_work_ms, most_weight_bytes] =
        names.map(|name| read.number(name));
    if share_of_peak > 1.0 {
        read.wrong("share_of_peak", "1 at most");
    }
    EngineCost { share_of_peak, bandwidth_gb_per_s, least_work_ms, most_weight_bytes }
}

/// The keys of a refusal.
const KEYS: &[&str] = &[
    "name",
    "operators",
    "opsets",
    "generations",
    "elements",
    "apart_from",
    "axes_above",
    "axis",
    "above",
    "parameter",
    "open",
    "reason",
    "source",
];

/// Types of elements by their names in programs.
const ELEMENTS: &[&str] = &[
    "fp16", "fp32", "fp64", "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
];

fn refusing(at: usize, table: &Table, problems: &mut Vec<String>) -> RefusedOperations {
    let place = match table.get("name").and_then(Value::as_str) {
        Some(name) => format!("refuses '{name}'"),
        None => format!("refuses {at}"),
    };
    unknown_keys(&place, table, KEYS, problems);
    let mut read = RuleReader { place, table, problems };
    let name = read.text("name");
    let reason = read.text("reason");
    read.text("source");
    let operators = read.words("operators");
    let opsets = read.bounds("opsets");
    let generations = read.bounds("generations");
    let mut conditions = Vec::new();
    if table.contains_key("elements") {
        let words = read.words("elements");
        if words.is_empty() || words.iter().any(|word| !ELEMENTS.contains(&word.as_str())) {
            read.wrong("elements", &format!("some of {}", ELEMENTS.join(", ")));
        }
        let apart_from = read.words("apart_from");
        conditions.push(RuleCondition::Elements { types: words, apart_from });
    } else if table.contains_key("apart_from") {
        read.wrong("apart_from", "elements with it");
    }
    if table.contains_key("axes_above") {
        conditions.push(RuleCondition::AxesAbove(read.count("axes_above")));
    }
    if table.contains_key("open") {
        if table.get("open") != Some(&Value::Boolean(true)) {
            read.wrong("open", "true");
        }
        conditions.push(RuleCondition::Open);
    }
    match (table.contains_key("axis"), table.contains_key("parameter")) {
        (true, false) => {
            let axis = read.text("axis");
            match RuleAxis::NAMES.iter().find(|(name, _)| *name == axis) {
                Some((_, axis)) => {
                    conditions.push(RuleCondition::LengthAbove(*axis, read.count("above")));
                }
                None => read.wrong("axis", "last, height or channels"),
            }
        }
        (false, true) => {
            let most = i64::try_from(read.count("above")).unwrap_or(i64::MAX);
            conditions.push(RuleCondition::ParameterAbove(read.text("parameter"), most));
        }
        (true, true) => read.wrong("parameter", "either it or axis"),
        (false, false) if table.contains_key("above") => {
            read.wrong("above", "axis or parameter with it")
        }
        (false, false) => {}
    }
    if operators.is_empty() && conditions.is_empty() {
        read.wrong("operators", "these or a condition");
    }
    RefusedOperations { name, operators, opsets, generations, conditions, reason }
}

/// The tables of an array of tables, with their places counted from 1.
fn tables<'a>(
    file: &'a Table,
    name: &str,
    problems: &mut Vec<String>,
) -> impl Iterator<Item = (usize, &'a Table)> + use<'a> {
    let all = file.get(name).and_then(Value::as_array);
    if all.is_none() {
        problems.push(format!("no [[{name}]] found"));
    }
    let all = all.into_iter().flatten().enumerate();
    all.filter_map(|(at, value)| Some((at + 1, value.as_table()?)))
}

fn unknown_keys(place: &str, table: &Table, known: &[&str], problems: &mut Vec<String>) {
    for key in table.keys().filter(|key| !known.contains(&key.as_str())) {
        problems.push(format!("{place}: '{key}' found, expected one of {}", known.join(", ")));
    }
}

/// A value as the file has it.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("\"{text}\""),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Boolean(truth) => truth.to_string(),
        Value::Datetime(_) => "a date".to_owned(),
        Value::Array(all) => {
            format!("[{}]", all.iter().map(shown).collect::<Vec<_>>().join(", "))
        }
        Value::Table(_) => "a table".to_owned(),
    }
}

/// Reads a table and takes note of what is wrong.
struct RuleReader<'a> {
    place: String,
    table: &'a Table,
    problems: &'a mut Vec<String>,
}

impl RuleReader<'_> {
    fn wrong(&mut self, key: &str, expected: &str) {
        let found = self.table.get(key).map_or("nothing".to_owned(), shown);
        self.problems.push(format!("{}: {key} {found} found, expected {expected}", self.place));
    }

    fn text(&mut self, key: &str) -> String {
        match self.table.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()) {
            Some(text) => text.to_owned(),
            None => {
                self.wrong(key, "a text");
                String::new()
            }
        }
    }

    /// The words of a list; none where it is absent.
    fn words(&mut self, key: &str) -> Vec<String> {
        let Some(value) = self.table.get(key) else { return Vec::new() };
        let words = value.as_array().and_then(|all| {
            all.iter().map(|word| word.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        });
        words.unwrap_or_else(|| {
            self.wrong(key, "a list of words");
            Vec::new()
        })
    }

    fn count(&mut self, key: &str) -> usize {
        let found = self.table.get(key).and_then(Value::as_integer);
        let found = found.and_then(|number| usize::try_from(number).ok());
        found.unwrap_or_else(|| {
            self.wrong(key, "a whole number");
            0
        })
    }

    fn number(&mut self, key: &str) -> f64 {
        let value = self.table.get(key);
        #[allow(clippy::cast_precision_loss, reason = "figures of data sheets are small")]
        let found =
            value.and_then(|value| value.as_float().or(value.as_integer().map(|all| all as f64)));
        found.filter(|number| *number > 0.0).unwrap_or_else(|| {
            self.wrong(key, "a number above 0");
            1.0
        })
    }

    fn bounds(&mut self, key: &str) -> Option<(u32, u32)> {
        let value = self.table.get(key)?;
        let whole = |value: &Value| u32::try_from(value.as_integer()?).ok();
        let pair = value.as_array().and_then(|all| match all.as_slice() {
            [first, last] => Some((whole(first)?, whole(last)?)),
            _ => None,
        });
        let pair = pair.filter(|(first, last)| first <= last);
        if pair.is_none() {
            self.wrong(key, "the first and the last, as in [5, 9]");
        }
        pair
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_read_and_names_what_there_is() {
        let rules = parse(FILE).unwrap_or_else(|problems| panic!("{}", problems.join("\n")));
        assert!(rules.takes.len() > 4 && rules.refuses.len() > 10);
        // Every operation is spoken of at most once among those that are taken.
        let mut names: Vec<&String> = rules.takes.iter().flat_map(|rule| &rule.operators).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    /// Returns the error messages for the file with a line added.
    fn wrong(more: &str) -> String {
        parse(&format!("{FILE}\n{more}\n")).unwrap_err().join("\n")
    }

    #[test]
    fn mistakes_are_named_with_their_place_all_at_once() {
        assert!(parse("[[takes").unwrap_err()[0].contains("TOML parse error"));
        let empty = parse("").unwrap_err().join("\n");
        assert!(
            empty.contains("cost: share_of_peak nothing found, expected a number above 0"),
            "{empty}"
        );
        assert!(empty.contains("no [[takes]] found"), "{empty}");
        let all = wrong(
            "[[refuses]]\nname = \"gather\"\noperators = [\"gather\", \"fly\"]\nopsets = [9, 5]\nspeed = 1",
        );
        for expected in [
            "refuses 'gather': 'speed' found, expected one of name, operators",
            "refuses 'gather': reason nothing found, expected a text",
            "refuses 'gather': source nothing found, expected a text",
            "refuses 'gather': opsets [9, 5] found, expected the first and the last, as in [5, 9]",
            "a second rule of the name 'gather'",
            "'fly' found, which is no operation of ML programs",
        ] {
            assert!(all.contains(expected), "{expected} in {all}");
        }
        let rule = |more: &str| {
            wrong(&format!("[[refuses]]\nname = \"n\"\nreason = \"r\"\nsource = \"s\"\n{more}"))
        };
        assert!(rule("").contains("operators nothing found, expected these or a condition"));
        assert!(rule("elements = [\"fp8\"]").contains("expected some of fp16, fp32"));
        assert!(rule("apart_from = [\"end\"]").contains("expected elements with it"));
        assert!(rule("axis = \"first\"\nabove = 2").contains("expected last, height or channels"));
        assert!(rule("axis = \"last\"").contains("above nothing found, expected a whole number"));
        assert!(rule("above = 3").contains("expected axis or parameter with it"));
        assert!(rule("open = false").contains("open false found, expected true"));
    }

    #[test]
    fn bounds_hold_from_the_first_to_the_last() {
        let rule = TakenOperations {
            operators: vec!["quantize".to_owned()],
            opsets: Some((7, 9)),
            generations: Some((4, 9)),
        };
        let at = |opset, generation| rule.holds(RulePlace { opset, generation }, "quantize");
        assert!(at(7, Some(4)) && at(9, None) && !at(6, Some(4)) && !at(8, Some(3)));
        assert!(!rule.holds(RulePlace { opset: 8, generation: None }, "conv"));
    }
}
