//! Grammars as llama.cpp writes them (GBNF), made into Lark's syntax.
//!
//! A GBNF grammar speaks of characters; Lark's speak of pieces of text that a lexer finds, each as long
//! as it can be. So all that is regular becomes one piece as large as possible: a whole grammar without
//! recursion is one regular expression, and a rule that only repeats itself at its end becomes `*`. In
//! rules that do recur, a regular piece takes all that it can.

mod parse;

use crate::error::Result;
use crate::grammar::{escape, refused};
use parse::{GbnfExpression, GbnfRule, RuleId};

/// Whether a text is a GBNF grammar: a line begins a rule with `::=`, as none does in Lark's syntax.
pub(super) fn is_gbnf(text: &str) -> bool {
    text.lines().any(|line| {
        let name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let rest = line.trim_start().trim_start_matches(name);
        rest.len() < line.trim_start().len() && rest.trim_start().starts_with("::=")
    })
}

/// The grammar in Lark's syntax.
///
/// # Errors
/// Fails on text that is no GBNF, and a `root` that no text follows.
pub(super) fn to_lark(text: &str) -> Result<String> {
    let rules = parse::rules(text)?;
    let names: Vec<String> = rules.iter().map(|rule| rule.name.clone()).collect();
    let mut bodies: Vec<GbnfExpression> = rules.into_iter().map(body).collect();
    let productive = productive(&bodies);
    for (rule, body) in bodies.iter_mut().enumerate() {
        match productive[rule] {
            true => prune(body, &productive),
            // Nobody names it any more.
            false => *body = GbnfExpression::empty(),
        }
    }
    if let Some(false) = productive.first() {
        return Err(refused(format!("no text follows the rule '{}': it never ends", names[0])));
    }
    for (rule, body) in bodies.iter_mut().enumerate() {
        if let Some(loops) = without_own_end(rule, body) {
            *body = loops;
        }
    }
    let mut lark = LarkWriter { regular: regular(&bodies), text: String::new(), pieces: 0 };
    lark.write(&bodies);
    Ok(lark.text)
}

fn body(rule: GbnfRule) -> GbnfExpression {
    rule.body.unwrap_or_else(GbnfExpression::empty)
}

/// Which rules some text follows.
fn productive(bodies: &[GbnfExpression]) -> Vec<bool> {
    let mut productive = vec![false; bodies.len()];
    settle(bodies, |rule| {
        productive[rule] = may_end(&bodies[rule], &productive);
        productive[rule]
    });
    productive
}

/// Asks about each rule again whenever one that it names was found, until nothing changes.
fn settle(bodies: &[GbnfExpression], mut found: impl FnMut(RuleId) -> bool) {
    let mut users: Vec<Vec<RuleId>> = vec![Vec::new(); bodies.len()];
    for (rule, body) in bodies.iter().enumerate() {
        body.visit_rules(&mut |named| {
            // Once for each, however often it is named.
            if users[named].last() != Some(&rule) {
                users[named].push(rule);
            }
        });
    }
    let mut known = vec![false; bodies.len()];
    let mut asked: Vec<RuleId> = (0..bodies.len()).collect();
    while let Some(rule) = asked.pop() {
        if !known[rule] && found(rule) {
            known[rule] = true;
            asked.extend(users[rule].iter().copied());
        }
    }
}

fn may_end(expression: &GbnfExpression, productive: &[bool]) -> bool {
    match expression {
        GbnfExpression::Rule(rule) => productive[*rule],
        GbnfExpression::Sequence(parts) => parts.iter().all(|part| may_end(part, productive)),
        GbnfExpression::Choice(parts) => parts.iter().any(|part| may_end(part, productive)),
        GbnfExpression::Repeat(inner, least, _) => *least == 0 || may_end(inner, productive),
        GbnfExpression::Text(_) | GbnfExpression::Class(_) | GbnfExpression::Special(_) => true,
    }
}

/// Removes the choices and repetitions that no text follows from an expression that some text follows.
fn prune(expression: &mut GbnfExpression, productive: &[bool]) {
    match expression {
        GbnfExpression::Sequence(parts) => {
            parts.iter_mut().for_each(|part| prune(part, productive))
        }
        GbnfExpression::Choice(parts) => {
            parts.retain(|part| may_end(part, productive));
            parts.iter_mut().for_each(|part| prune(part, productive));
        }
        GbnfExpression::Repeat(inner, ..) if may_end(inner, productive) => prune(inner, productive),
        GbnfExpression::Repeat(..) => *expression = GbnfExpression::empty(),
        _ => {}
    }
}

/// Which rules are regular expressions: those that name such rules only.
fn regular(bodies: &[GbnfExpression]) -> Vec<bool> {
    let mut regular = vec![false; bodies.len()];
    settle(bodies, |rule| {
        regular[rule] = is_regular(&bodies[rule], &regular);
        regular[rule]
    });
    regular
}

fn is_regular(expression: &GbnfExpression, rules: &[bool]) -> bool {
    match expression {
        GbnfExpression::Rule(rule) => rules[*rule],
        GbnfExpression::Special(_) => false,
        GbnfExpression::Sequence(parts) | GbnfExpression::Choice(parts) => {
            parts.iter().all(|part| is_regular(part, rules))
        }
        GbnfExpression::Repeat(inner, ..) => is_regular(inner, rules),
        GbnfExpression::Text(_) | GbnfExpression::Class(_) => true,
    }
}

/// A rule that names itself only at the end of its choices, as a repetition (Arden's lemma):
/// `a ::= x a | y` is `x* y`.
fn without_own_end(rule: RuleId, body: &GbnfExpression) -> Option<GbnfExpression> {
    let mut choices = Vec::new();
    flatten(body, &mut choices);
    let own = |part: &GbnfExpression| {
        let mut found = false;
        part.visit_rules(&mut |named| found |= named == rule);
        found
    };
    let mut again = Vec::new();
    let mut last = Vec::new();
    for choice in choices {
        let mut parts = match choice {
            GbnfExpression::Sequence(parts) => parts,
            other => vec![other],
        };
        match parts.pop_if(|part| own(part)) {
            Some(GbnfExpression::Rule(_)) if !parts.iter().any(own) => {
                again.push(GbnfExpression::Sequence(parts));
            }
            Some(GbnfExpression::Repeat(inner, 0, Some(1)))
                if *inner == GbnfExpression::Rule(rule) && !parts.iter().any(own) =>
            {
                last.push(GbnfExpression::Sequence(parts.clone()));
                again.push(GbnfExpression::Sequence(parts));
            }
            None if !parts.iter().any(own) => last.push(GbnfExpression::Sequence(parts)),
            _ => return None,
        }
    }
    if again.is_empty() {
        return None;
    }
    let again = GbnfExpression::Repeat(Box::new(GbnfExpression::Choice(again)), 0, None);
    Some(GbnfExpression::Sequence(vec![again, GbnfExpression::Choice(last)]))
}

/// The choices of an expression, those inside of choices and of `?` too.
fn flatten(expression: &GbnfExpression, choices: &mut Vec<GbnfExpression>) {
    match expression {
        GbnfExpression::Choice(parts) => parts.iter().for_each(|part| flatten(part, choices)),
        GbnfExpression::Repeat(inner, 0, Some(1)) => {
            flatten(inner, choices);
            choices.push(GbnfExpression::empty());
        }
        other => choices.push(other.clone()),
    }
}

/// Writes Lark: rules `r0` and so on, pieces of text `R1` for regular rules and `P0` for parts of others.
struct LarkWriter {
    regular: Vec<bool>,
    text: String,
    pieces: usize,
}

impl LarkWriter {
    fn write(&mut self, bodies: &[GbnfExpression]) {
        let start = self.rule(0);
        self.text.push_str(&format!("start: {start}\n"));
        let reached = reached(bodies);
        for (rule, body) in bodies.iter().enumerate().filter(|(rule, _)| reached[*rule]) {
            let name = self.rule(rule);
            let body = if self.regular[rule] { self.piece(body) } else { self.parsed(body) };
            self.text.push_str(&format!("{name}: {body}\n"));
        }
    }

    fn rule(&self, rule: RuleId) -> String {
        format!("{}{rule}", if self.regular[rule] { 'R' } else { 'r' })
    }

    /// The body of a piece of text.
    fn piece(&self, expression: &GbnfExpression) -> String {
        match expression {
            GbnfExpression::Text(text) if text.is_empty() => "\"\"".to_owned(),
            GbnfExpression::Text(text) => format!("/{}/", escape(text)),
            GbnfExpression::Class(pattern) => format!("/{pattern}/"),
            GbnfExpression::Special(name) => name.clone(),
            GbnfExpression::Rule(rule) => self.rule(*rule),
            GbnfExpression::Sequence(parts) if parts.is_empty() => "\"\"".to_owned(),
            GbnfExpression::Sequence(parts) => {
                joined(parts.iter().map(|part| self.piece(part)), " ")
            }
            GbnfExpression::Choice(parts) => {
                joined(parts.iter().map(|part| self.piece(part)), " | ")
            }
            GbnfExpression::Repeat(inner, least, most) => {
                repeated(&self.piece(inner), *least, *most)
            }
        }
    }

    /// The body of a rule; what is regular in it becomes pieces.
    fn parsed(&mut self, expression: &GbnfExpression) -> String {
        if is_empty(expression) {
            return "\"\"".to_owned();
        }
        if is_regular(expression, &self.regular) {
            return self.named_piece(expression);
        }
        match expression {
            GbnfExpression::Sequence(parts) => {
                let regular = |part: &GbnfExpression| is_regular(part, &self.regular);
                let runs = parts.chunk_by(|one, next| regular(one) && regular(next));
                let runs: Vec<&[GbnfExpression]> = runs.collect();
                let runs = runs.into_iter().map(|run| match run {
                    [one] => self.parsed(one),
                    many => self.named_piece(&GbnfExpression::Sequence(many.to_vec())),
                });
                joined(runs, " ")
            }
            GbnfExpression::Choice(parts) => {
                let piece =
                    |part: &&GbnfExpression| is_regular(part, &self.regular) && !is_empty(part);
                let (pieces, others): (Vec<_>, Vec<_>) = parts.iter().partition(piece);
                let mut choices: Vec<String> =
                    others.into_iter().map(|part| self.parsed(part)).collect();
                if !pieces.is_empty() {
                    let pieces = pieces.into_iter().cloned().collect();
                    choices.push(self.named_piece(&GbnfExpression::Choice(pieces)));
                }
                joined(choices.into_iter(), " | ")
            }
            GbnfExpression::Repeat(inner, least, most) => {
                let inner = self.parsed(inner);
                repeated(&inner, *least, *most)
            }
            other => self.piece(other),
        }
    }

    fn named_piece(&mut self, expression: &GbnfExpression) -> String {
        if let GbnfExpression::Rule(rule) = expression {
            return self.rule(*rule);
        }
        let name = format!("P{}", self.pieces);
        self.pieces += 1;
        let body = self.piece(expression);
        self.text.push_str(&format!("{name}: {body}\n"));
        name
    }
}

/// Which rules `root` leads to.
fn reached(bodies: &[GbnfExpression]) -> Vec<bool> {
    let mut reached = vec![false; bodies.len()];
    let mut next: Vec<RuleId> = vec![0];
    while let Some(rule) = next.pop() {
        if !std::mem::replace(&mut reached[rule], true) {
            bodies[rule].visit_rules(&mut |named| {
                if !reached[named] {
                    next.push(named);
                }
            });
        }
    }
    reached
}

fn is_empty(expression: &GbnfExpression) -> bool {
    match expression {
        GbnfExpression::Text(text) => text.is_empty(),
        GbnfExpression::Sequence(parts) => parts.is_empty(),
        _ => false,
    }
}

fn joined(parts: impl Iterator<Item = String>, between: &str) -> String {
    format!("({})", parts.collect::<Vec<_>>().join(between))
}

fn repeated(inner: &str, least: usize, most: Option<usize>) -> String {
    match (least, most) {
        (0, None) => format!("({inner})*"),
        (1, None) => format!("({inner})+"),
        (0, Some(1)) => format!("({inner})?"),
        (_, Some(0)) => "\"\"".to_owned(),
        (least, None) => format!("({inner}){{{least},}}"),
        (least, Some(most)) => format!("({inner}){{{least},{most}}}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_syntaxes_are_told_apart() {
        assert!(is_gbnf("# a comment\nroot ::= \"a\"\n"));
        assert!(is_gbnf("  some-rule::= x"));
        for lark in ["start: \"a::=b\"", "// root ::= x\nstart: A", "", "::= x", "%llguidance {}"] {
            assert!(!is_gbnf(lark), "{lark}");
        }
    }

    #[test]
    fn regular_rules_become_pieces_and_own_ends_repetitions() {
        let lark = to_lark("root ::= \"a/\" ws\nws ::= ([ \\t] ws)?").unwrap();
        assert!(lark.starts_with("start: R0\nR0: (/a\\x2f/ R1)\nR1: "), "{lark}");
        let lark = to_lark("root ::= \"x\" root \"y\" | [0-9] \"z\" |").unwrap();
        let wanted = "P0: /x/\nP1: /y/\nP2: ((/[\\x{30}-\\x{39}]/ /z/))\n\
                      r0: ((P0 r0 P1) | \"\" | P2)\n";
        assert_eq!(lark, format!("start: r0\n{wanted}"));
    }

    #[test]
    fn what_never_ends_is_no_choice() {
        let text = "root ::= \"p\" (\"x\" bad | \"y\" bad* | \"z\")\nbad ::= \"q\" bad";
        let lark = to_lark(text).unwrap();
        let choices = "R0: (/p/ ((/y/ \"\") | /z/))\n";
        assert_eq!(lark, format!("start: R0\n{choices}"));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, why) in [
            ("root ::= x", "the rule 'x' is not defined"),
            ("a ::= \"b\"", "the rule 'root' is not defined"),
            ("root ::= \"a\"\nroot ::= \"b\"", "'root' is defined twice"),
            ("root ::= \"a\"\n\nx = \"b\"", "line 3: '=' found, expected '::='"),
            ("root ::= \"a", "the end found, expected '\"'"),
            ("root ::= [a", "expected ']'"),
            ("root ::= [z-a]", "does not end before 'z'"),
            ("root ::= (\"a\"", "expected ')'"),
            ("root ::= \"a\"{3,2}", "at least 3"),
            ("root ::= \"a\"{9999}", "up to 2000"),
            (&format!("root ::= {}", "\"a\" ".repeat(60_000)), "at most 131072"),
            ("root ::= \"\\q\"", "an escape"),
            ("root ::= !<[3]>", "'!', which is not supported"),
            ("root ::= root", "never ends"),
            ("root ::= a\na ::= \"x\" b\nb ::= a", "no text follows the rule 'root'"),
        ] {
            let error = to_lark(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
        let deep = format!("root ::= {}\"a\"{}", "(".repeat(1000), ")".repeat(1000));
        assert!(to_lark(&deep).unwrap_err().to_string().contains("parentheses"));
        let many: String = (0..2000).map(|rule| format!("r{rule} ::= \"a\"\n")).collect();
        assert!(to_lark(&many).unwrap_err().to_string().contains("more than 1024 rules"));
    }
}
