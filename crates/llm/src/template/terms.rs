//! Tokens to terms. A chain of any length is one node, and only brackets recurse.

use std::sync::Arc;

use super::lexer::Lexeme;
use super::meter::Rendered;
use super::parser::{JinjaParser, is_constant};
use super::syntax::{
    ArithmeticSign, ArithmeticStep, CallArguments, Comparator, CompareStep, IfChoice, LinkKind,
    Literal, MAX_NAMED_ARGUMENTS, MapPair, NamedArgument, SliceBounds, Term, TermLink,
};

/// Operators of arithmetic by their rank, the loosest first. `~` stands between the first two.
const RANKS: &[&[(&str, ArithmeticSign)]] = &[
    &[("+", ArithmeticSign::Add), ("-", ArithmeticSign::Subtract)],
    &[
        ("*", ArithmeticSign::Multiply),
        ("/", ArithmeticSign::Divide),
        ("//", ArithmeticSign::FloorDivide),
        ("%", ArithmeticSign::Remainder),
    ],
    &[("**", ArithmeticSign::Power)],
];

/// A way to read a term.
type ReadTerm = fn(&mut JinjaParser) -> Rendered<Term>;

impl TermLink {
    /// Whether the link is a call.
    pub(super) fn is_call(&self) -> bool {
        matches!(self.kind, LinkKind::Call(_) | LinkKind::Method { .. })
    }
}

impl JinjaParser {
    /// A term, or a tuple of terms with commas between them.
    pub(super) fn tuple(&mut self) -> Rendered<Term> {
        self.tuple_of(Self::term)
    }

    pub(super) fn tuple_of(&mut self, read: ReadTerm) -> Rendered<Term> {
        let first = read(self)?;
        if !self.is_sign(",") {
            return Ok(first);
        }
        let mut items = vec![first];
        while self.take_sign(",") {
            let ends = matches!(self.peek(), None | Some(Lexeme::PrintEnd | Lexeme::BlockEnd));
            if ends || self.is_sign(")") || self.is_sign("]") {
                break;
            }
            items.push(read(self)?);
        }
        Ok(Term::Tuple(items))
    }

    /// A term with its conditions.
    pub(super) fn term(&mut self) -> Rendered<Term> {
        self.nested(|parser| {
            let mut choices = Vec::new();
            let mut value = parser.any_of()?;
            while parser.take_name("if") {
                let test = parser.any_of()?;
                if parser.take_name("else") {
                    choices.push(IfChoice { value, test });
                    value = parser.any_of()?;
                    continue;
                }
                if parser.is_name("if") {
                    return parser.fault("syntax error: a condition of a condition needs brackets");
                }
                choices.push(IfChoice { value, test });
                return Ok(Term::Choice { choices, otherwise: None });
            }
            if choices.is_empty() {
                return Ok(value);
            }
            Ok(Term::Choice { choices, otherwise: Some(Box::new(value)) })
        })
    }

    /// Terms with `or` between them.
    pub(super) fn any_of(&mut self) -> Rendered<Term> {
        let mut terms = vec![self.all_of()?];
        while self.take_name("or") {
            terms.push(self.all_of()?);
        }
        Ok(one_or(terms, Term::Or))
    }

    fn all_of(&mut self) -> Rendered<Term> {
        let mut terms = vec![self.truth()?];
        while self.take_name("and") {
            terms.push(self.truth()?);
        }
        Ok(one_or(terms, Term::And))
    }

    fn truth(&mut self) -> Rendered<Term> {
        let mut count = 0_usize;
        while self.take_name("not") {
            count += 1;
        }
        let term = self.comparison()?;
        if count == 0 {
            return Ok(term);
        }
        Ok(Term::Truth { negated: count % 2 == 1, of: Box::new(term) })
    }

    fn comparison(&mut self) -> Rendered<Term> {
        let first = self.arithmetic(0)?;
        let mut rest = Vec::new();
        while let Some(by) = self.comparator() {
            rest.push(CompareStep { by, with: self.arithmetic(0)? });
        }
        if rest.is_empty() {
            return Ok(first);
        }
        Ok(Term::Compare { first: Box::new(first), rest })
    }

    fn comparator(&mut self) -> Option<Comparator> {
        let by = match self.peek()? {
            Lexeme::Sign("==") => Comparator::Equal,
            Lexeme::Sign("!=") => Comparator::Unequal,
            Lexeme::Sign("<") => Comparator::Less,
            Lexeme::Sign("<=") => Comparator::LessOrEqual,
            Lexeme::Sign(">") => Comparator::Greater,
            Lexeme::Sign(">=") => Comparator::GreaterOrEqual,
            Lexeme::Name(name) if &**name == "in" => Comparator::In,
            Lexeme::Name(name) if &**name == "not" => {
                let follows = matches!(self.peek_second(), Some(Lexeme::Name(n)) if &**n == "in");
                if !follows {
                    return None;
                }
                self.advance();
                Comparator::NotIn
            }
            _ => return None,
        };
        self.advance();
        Some(by)
    }

    /// Operations of a rank and of those that bind closer.
    fn arithmetic(&mut self, rank: usize) -> Rendered<Term> {
        let Some(signs) = RANKS.get(rank) else { return self.unary() };
        let first = self.closer(rank)?;
        let mut rest = Vec::new();
        while let Some(Lexeme::Sign(found)) = self.peek() {
            let Some((_, by)) = signs.iter().find(|(sign, _)| sign == found) else { break };
            let by = *by;
            self.advance();
            rest.push(ArithmeticStep { by, with: self.closer(rank)? });
        }
        if rest.is_empty() {
            return Ok(first);
        }
        Ok(Term::Chain { first: Box::new(first), rest })
    }

    fn closer(&mut self, rank: usize) -> Rendered<Term> {
        if rank > 0 {
            return self.arithmetic(rank + 1);
        }
        let mut terms = vec![self.arithmetic(1)?];
        while self.take_sign("~") {
            terms.push(self.arithmetic(1)?);
        }
        Ok(one_or(terms, Term::Concat))
    }

    /// A value with its signs, and behind them filters and tests.
    fn unary(&mut self) -> Rendered<Term> {
        let mut negative = None;
        while self.is_sign("-") || self.is_sign("+") {
            negative = Some(negative.unwrap_or(false) != self.is_sign("-"));
            self.advance();
        }
        let mut term = self.primary()?;
        let mut links = Vec::new();
        self.postfix(&mut links)?;
        if let Some(negative) = negative {
            let of = Box::new(linked(term, std::mem::take(&mut links)));
            term = Term::Sign { negative, of };
        }
        loop {
            if self.take_sign("|") {
                links.push(self.filter()?);
            } else if self.is_name("is") {
                links.push(self.test()?);
            } else if self.is_sign("(") {
                let line = self.line();
                links.push(TermLink { line, kind: LinkKind::Call(self.arguments()?) });
            } else {
                return Ok(linked(term, links));
            }
        }
    }

    /// Attributes, items and calls.
    fn postfix(&mut self, links: &mut Vec<TermLink>) -> Rendered<()> {
        loop {
            let line = self.line();
            let kind = if self.take_sign(".") {
                match self.peek() {
                    Some(Lexeme::Int(index)) => {
                        let index = Literal::Int(*index);
                        self.advance();
                        LinkKind::Item(Term::Literal(index))
                    }
                    _ => self.attribute()?,
                }
            } else if self.take_sign("[") {
                let kind = self.subscript()?;
                self.expect_sign("]")?;
                kind
            } else if self.is_sign("(") {
                LinkKind::Call(self.arguments()?)
            } else {
                return Ok(());
            };
            links.push(TermLink { line, kind });
        }
    }

    fn attribute(&mut self) -> Rendered<LinkKind> {
        let name = self.name()?;
        if self.is_sign("(") {
            return Ok(LinkKind::Method { name, arguments: self.arguments()? });
        }
        Ok(LinkKind::Attribute(name))
    }

    fn subscript(&mut self) -> Rendered<LinkKind> {
        let bound = |parser: &mut Self| -> Rendered<Option<Term>> {
            match parser.is_sign(":") || parser.is_sign("]") {
                true => Ok(None),
                false => parser.term().map(Some),
            }
        };
        let start = bound(self)?;
        if !self.take_sign(":") {
            let Some(first) = start else { return self.unexpected("a subscript") };
            if !self.is_sign(",") {
                return Ok(LinkKind::Item(first));
            }
            let mut items = vec![first];
            while self.take_sign(",") && !self.is_sign("]") {
                items.push(self.term()?);
            }
            return Ok(LinkKind::Item(Term::Tuple(items)));
        }
        let stop = bound(self)?;
        let step = match self.take_sign(":") {
            true => bound(self)?,
            false => None,
        };
        Ok(LinkKind::Slice(Box::new(SliceBounds { start, stop, step })))
    }

    /// A name with points in it.
    fn dotted(&mut self) -> Rendered<Arc<str>> {
        let mut name = self.name()?;
        while self.take_sign(".") {
            name = format!("{name}.{}", self.name()?).into();
        }
        Ok(name)
    }

    pub(super) fn filter(&mut self) -> Rendered<TermLink> {
        let line = self.line();
        let name = self.dotted()?;
        let arguments = match self.is_sign("(") {
            true => self.arguments()?,
            false => CallArguments::default(),
        };
        Ok(TermLink { line, kind: LinkKind::Filter { name, arguments } })
    }

    /// A test with its argument, which needs no brackets.
    fn test(&mut self) -> Rendered<TermLink> {
        let line = self.line();
        self.advance();
        let negated = self.take_name("not");
        let name = self.dotted()?;
        let mut arguments = CallArguments::default();
        let begins = match self.peek() {
            Some(Lexeme::Sign(sign)) => matches!(*sign, "[" | "{"),
            Some(Lexeme::Text(_) | Lexeme::Int(_) | Lexeme::Float(_)) => true,
            Some(Lexeme::Name(name)) => {
                !matches!(&**name, "else" | "or" | "and" | "if" | "is" | "in" | "not" | "recursive")
            }
            _ => false,
        };
        if self.is_sign("(") {
            arguments = self.arguments()?;
        } else if begins {
            let term = self.primary()?;
            let mut links = Vec::new();
            self.postfix(&mut links)?;
            arguments.positional.push(linked(term, links));
        }
        Ok(TermLink { line, kind: LinkKind::Test { name, negated, arguments } })
    }

    fn arguments(&mut self) -> Rendered<CallArguments> {
        self.expect_sign("(")?;
        let mut arguments = CallArguments::default();
        let mut first = true;
        while !self.take_sign(")") {
            if !std::mem::take(&mut first) {
                self.expect_sign(",")?;
                if self.take_sign(")") {
                    break;
                }
            }
            if self.take_sign("*") {
                arguments.spread = Some(Box::new(self.term()?));
            } else if self.take_sign("**") {
                arguments.spread_named = Some(Box::new(self.term()?));
            } else if let (Some(Lexeme::Name(name)), Some(Lexeme::Sign("="))) =
                (self.peek(), self.peek_second())
            {
                let name = Arc::clone(name);
                self.advance();
                self.advance();
                if arguments.named.len() >= MAX_NAMED_ARGUMENTS {
                    let message =
                        format!("a call has more than {MAX_NAMED_ARGUMENTS} named arguments");
                    return self.fault(message);
                }
                arguments.named.push(NamedArgument { name, value: self.term()? });
            } else if arguments.named.is_empty() {
                arguments.positional.push(self.term()?);
            } else {
                return self.unexpected("a named argument");
            }
        }
        Ok(arguments)
    }

    fn primary(&mut self) -> Rendered<Term> {
        let Some(lexeme) = self.peek().cloned() else { return self.unexpected("a value") };
        match lexeme {
            Lexeme::Name(name) => {
                if matches!(&*name, "and" | "or" | "in" | "is" | "if" | "else" | "not") {
                    return self.unexpected("a value");
                }
                self.advance();
                if is_constant(&name) {
                    let name = name.to_ascii_lowercase();
                    let truth = Literal::Bool(name == "true");
                    return Ok(Term::Literal(if name == "none" { Literal::None } else { truth }));
                }
                self.rests.varargs |= &*name == "varargs";
                self.rests.kwargs |= &*name == "kwargs";
                Ok(Term::Name(self.intern(&name)))
            }
            Lexeme::Text(text) => {
                self.advance();
                if !matches!(self.peek(), Some(Lexeme::Text(_))) {
                    return Ok(Term::Literal(Literal::Text(text)));
                }
                let mut all = String::from(&*text);
                while let Some(Lexeme::Text(text)) = self.peek() {
                    all.push_str(text);
                    self.advance();
                }
                Ok(Term::Literal(Literal::Text(all.into())))
            }
            Lexeme::Int(number) => {
                self.advance();
                Ok(Term::Literal(Literal::Int(number)))
            }
            Lexeme::Float(number) => {
                self.advance();
                Ok(Term::Literal(Literal::Float(number)))
            }
            Lexeme::Sign("(") => {
                self.advance();
                let term = match self.is_sign(")") {
                    true => Term::Tuple(Vec::new()),
                    false => self.tuple()?,
                };
                self.expect_sign(")")?;
                Ok(term)
            }
            Lexeme::Sign("[") => {
                self.advance();
                let mut items = Vec::new();
                while !self.take_sign("]") {
                    if !items.is_empty() {
                        self.expect_sign(",")?;
                        if self.take_sign("]") {
                            break;
                        }
                    }
                    items.push(self.term()?);
                }
                Ok(Term::List(items))
            }
            Lexeme::Sign("{") => self.map(),
            _ => self.unexpected("a value"),
        }
    }

    fn map(&mut self) -> Rendered<Term> {
        self.advance();
        let mut pairs = Vec::new();
        while !self.take_sign("}") {
            if !pairs.is_empty() {
                self.expect_sign(",")?;
                if self.take_sign("}") {
                    break;
                }
            }
            let key = self.term()?;
            self.expect_sign(":")?;
            pairs.push(MapPair { key, value: self.term()? });
        }
        Ok(Term::Map(pairs))
    }
}

/// The only one of some terms, or all of them together.
fn one_or(mut terms: Vec<Term>, all: fn(Vec<Term>) -> Term) -> Term {
    match (terms.len(), terms.pop()) {
        (1, Some(term)) => term,
        (_, last) => {
            terms.extend(last);
            all(terms)
        }
    }
}

fn linked(base: Term, links: Vec<TermLink>) -> Term {
    match links.is_empty() {
        true => base,
        false => Term::Linked { base: Box::new(base), links },
    }
}
