//! Tokens to terms. A chain of any length is one node, and only brackets recurse.

use std::sync::Arc;

use super::lexer::TemplateLexeme;
use super::meter::RenderResult;
use super::parser::{JinjaParser, is_constant};
use super::syntax::{
    ArithmeticSign, ArithmeticStep, CallArguments, Comparator, CompareStep, IfChoice, LinkKind,
    MAX_NAMED_ARGUMENTS, MapPair, NamedArgument, SliceBounds, TemplateTerm, TermLink, TermLiteral,
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
type ReadTerm = fn(&mut JinjaParser) -> RenderResult<TemplateTerm>;

impl TermLink {
    /// Whether the link is a call.
    pub(super) fn is_call(&self) -> bool {
        matches!(self.kind, LinkKind::Call(_) | LinkKind::Method { .. })
    }
}

impl JinjaParser {
    /// A term, or a tuple of terms with commas between them.
    pub(super) fn tuple(&mut self) -> RenderResult<TemplateTerm> {
        self.tuple_of(Self::term)
    }

    pub(super) fn tuple_of(&mut self, read: ReadTerm) -> RenderResult<TemplateTerm> {
        let first = read(self)?;
        if !self.is_sign(",") {
            return Ok(first);
        }
        let mut items = vec![first];
        while self.take_sign(",") {
            let ends = matches!(
                self.peek(),
                None | Some(TemplateLexeme::PrintEnd | TemplateLexeme::BlockEnd)
            );
            if ends || self.is_sign(")") || self.is_sign("]") {
                break;
            }
            items.push(read(self)?);
        }
        Ok(TemplateTerm::Tuple(items))
    }

    /// A term with its conditions.
    pub(super) fn term(&mut self) -> RenderResult<TemplateTerm> {
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
                return Ok(TemplateTerm::Choice { choices, otherwise: None });
            }
            if choices.is_empty() {
                return Ok(value);
            }
            Ok(TemplateTerm::Choice { choices, otherwise: Some(Box::new(value)) })
        })
    }

    /// Terms with `or` between them.
    pub(super) fn any_of(&mut self) -> RenderResult<TemplateTerm> {
        let mut terms = vec![self.all_of()?];
        while self.take_name("or") {
            terms.push(self.all_of()?);
        }
        Ok(one_or(terms, TemplateTerm::Or))
    }

    fn all_of(&mut self) -> RenderResult<TemplateTerm> {
        let mut terms = vec![self.truth()?];
        while self.take_name("and") {
            terms.push(self.truth()?);
        }
        Ok(one_or(terms, TemplateTerm::And))
    }

    fn truth(&mut self) -> RenderResult<TemplateTerm> {
        let mut count = 0_usize;
        while self.take_name("not") {
            count += 1;
        }
        let term = self.comparison()?;
        if count == 0 {
            return Ok(term);
        }
        Ok(TemplateTerm::Truth { negated: count % 2 == 1, of: Box::new(term) })
    }

    fn comparison(&mut self) -> RenderResult<TemplateTerm> {
        let first = self.arithmetic(0)?;
        let mut rest = Vec::new();
        while let Some(by) = self.comparator() {
            rest.push(CompareStep { by, with: self.arithmetic(0)? });
        }
        if rest.is_empty() {
            return Ok(first);
        }
        Ok(TemplateTerm::Compare { first: Box::new(first), rest })
    }

    fn comparator(&mut self) -> Option<Comparator> {
        let by = match self.peek()? {
            TemplateLexeme::Sign("==") => Comparator::Equal,
            TemplateLexeme::Sign("!=") => Comparator::Unequal,
            TemplateLexeme::Sign("<") => Comparator::Less,
            TemplateLexeme::Sign("<=") => Comparator::LessOrEqual,
            TemplateLexeme::Sign(">") => Comparator::Greater,
            TemplateLexeme::Sign(">=") => Comparator::GreaterOrEqual,
            TemplateLexeme::Name(name) if &**name == "in" => Comparator::In,
            TemplateLexeme::Name(name) if &**name == "not" => {
                let follows =
                    matches!(self.peek_second(), Some(TemplateLexeme::Name(n)) if &**n == "in");
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
    fn arithmetic(&mut self, rank: usize) -> RenderResult<TemplateTerm> {
        let Some(signs) = RANKS.get(rank) else { return self.unary() };
        let first = self.closer(rank)?;
        let mut rest = Vec::new();
        while let Some(TemplateLexeme::Sign(found)) = self.peek() {
            let Some((_, by)) = signs.iter().find(|(sign, _)| sign == found) else { break };
            let by = *by;
            self.advance();
            rest.push(ArithmeticStep { by, with: self.closer(rank)? });
        }
        if rest.is_empty() {
            return Ok(first);
        }
        Ok(TemplateTerm::Chain { first: Box::new(first), rest })
    }

    fn closer(&mut self, rank: usize) -> RenderResult<TemplateTerm> {
        if rank > 0 {
            return self.arithmetic(rank + 1);
        }
        let mut terms = vec![self.arithmetic(1)?];
        while self.take_sign("~") {
            terms.push(self.arithmetic(1)?);
        }
        Ok(one_or(terms, TemplateTerm::Concat))
    }

    /// A value with its signs, and behind them filters and tests.
    fn unary(&mut self) -> RenderResult<TemplateTerm> {
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
            term = TemplateTerm::Sign { negative, of };
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
    fn postfix(&mut self, links: &mut Vec<TermLink>) -> RenderResult<()> {
        loop {
            let line = self.line();
            let kind = if self.take_sign(".") {
                match self.peek() {
                    Some(TemplateLexeme::Int(index)) => {
                        let index = TermLiteral::Int(*index);
                        self.advance();
                        LinkKind::Item(TemplateTerm::Literal(index))
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

    fn attribute(&mut self) -> RenderResult<LinkKind> {
        let name = self.name()?;
        if self.is_sign("(") {
            return Ok(LinkKind::Method { name, arguments: self.arguments()? });
        }
        Ok(LinkKind::Attribute(name))
    }

    fn subscript(&mut self) -> RenderResult<LinkKind> {
        let bound = |parser: &mut Self| -> RenderResult<Option<TemplateTerm>> {
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
            return Ok(LinkKind::Item(TemplateTerm::Tuple(items)));
        }
        let stop = bound(self)?;
        let step = match self.take_sign(":") {
            true => bound(self)?,
            false => None,
        };
        Ok(LinkKind::Slice(Box::new(SliceBounds { start, stop, step })))
    }

    /// A name with points in it.
    fn dotted(&mut self) -> RenderResult<Arc<str>> {
        let mut name = self.name()?;
        while self.take_sign(".") {
            name = format!("{name}.{}", self.name()?).into();
        }
        Ok(name)
    }

    pub(super) fn filter(&mut self) -> RenderResult<TermLink> {
        let line = self.line();
        let name = self.dotted()?;
        let arguments = match self.is_sign("(") {
            true => self.arguments()?,
            false => CallArguments::default(),
        };
        Ok(TermLink { line, kind: LinkKind::Filter { name, arguments } })
    }

    /// A test with its argument, which needs no brackets.
    fn test(&mut self) -> RenderResult<TermLink> {
        let line = self.line();
        self.advance();
        let negated = self.take_name("not");
        let name = self.dotted()?;
        let mut arguments = CallArguments::default();
        let begins = match self.peek() {
            Some(TemplateLexeme::Sign(sign)) => matches!(*sign, "[" | "{"),
            Some(TemplateLexeme::Text(_) | TemplateLexeme::Int(_) | TemplateLexeme::Float(_)) => {
                true
            }
            Some(TemplateLexeme::Name(name)) => {
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

    fn arguments(&mut self) -> RenderResult<CallArguments> {
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
            } else if let (Some(TemplateLexeme::Name(name)), Some(TemplateLexeme::Sign("="))) =
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

    fn primary(&mut self) -> RenderResult<TemplateTerm> {
        let Some(lexeme) = self.peek().cloned() else { return self.unexpected("a value") };
        match lexeme {
            TemplateLexeme::Name(name) => {
                if matches!(&*name, "and" | "or" | "in" | "is" | "if" | "else" | "not") {
                    return self.unexpected("a value");
                }
                self.advance();
                if is_constant(&name) {
                    let name = name.to_ascii_lowercase();
                    let truth = TermLiteral::Bool(name == "true");
                    return Ok(TemplateTerm::Literal(if name == "none" {
                        TermLiteral::None
                    } else {
                        truth
                    }));
                }
                self.rests.varargs |= &*name == "varargs";
                self.rests.kwargs |= &*name == "kwargs";
                Ok(TemplateTerm::Name(self.intern(&name)))
            }
            TemplateLexeme::Text(text) => {
                self.advance();
                if !matches!(self.peek(), Some(TemplateLexeme::Text(_))) {
                    return Ok(TemplateTerm::Literal(TermLiteral::Text(text)));
                }
                let mut all = String::from(&*text);
                while let Some(TemplateLexeme::Text(text)) = self.peek() {
                    all.push_str(text);
                    self.advance();
                }
                Ok(TemplateTerm::Literal(TermLiteral::Text(all.into())))
            }
            TemplateLexeme::Int(number) => {
                self.advance();
                Ok(TemplateTerm::Literal(TermLiteral::Int(number)))
            }
            TemplateLexeme::Float(number) => {
                self.advance();
                Ok(TemplateTerm::Literal(TermLiteral::Float(number)))
            }
            TemplateLexeme::Sign("(") => {
                self.advance();
                let term = match self.is_sign(")") {
                    true => TemplateTerm::Tuple(Vec::new()),
                    false => self.tuple()?,
                };
                self.expect_sign(")")?;
                Ok(term)
            }
            TemplateLexeme::Sign("[") => {
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
                Ok(TemplateTerm::List(items))
            }
            TemplateLexeme::Sign("{") => self.map(),
            _ => self.unexpected("a value"),
        }
    }

    fn map(&mut self) -> RenderResult<TemplateTerm> {
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
        Ok(TemplateTerm::Map(pairs))
    }
}

/// The only one of some terms, or all of them together.
fn one_or(
    mut terms: Vec<TemplateTerm>,
    all: fn(Vec<TemplateTerm>) -> TemplateTerm,
) -> TemplateTerm {
    match (terms.len(), terms.pop()) {
        (1, Some(term)) => term,
        (_, last) => {
            terms.extend(last);
            all(terms)
        }
    }
}

fn linked(base: TemplateTerm, links: Vec<TermLink>) -> TemplateTerm {
    match links.is_empty() {
        true => base,
        false => TemplateTerm::Linked { base: Box::new(base), links },
    }
}
