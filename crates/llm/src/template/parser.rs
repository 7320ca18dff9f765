//! Tokens to the statements of a template. Terms are read in `terms.rs`.

use std::collections::HashMap;
use std::sync::Arc;

use super::lexer::{JinjaToken, TemplateLexeme};
use super::meter::{RenderFault, RenderResult};
use super::syntax::{
    AssignTarget, ForNode, IfArm, MacroNode, MacroParameter, NameId, SetAssignment, StatementKind,
    TemplateStatement, TemplateSyntax, TemplateTerm, TermLink,
};

/// How deep blocks and brackets nest at most.
const MAX_NESTING: u32 = 64;

/// Reads one template.
///
/// # Errors
/// Says what was found in place of what, with its line, or that nesting is too deep.
pub(super) fn parse(tokens: Vec<JinjaToken>) -> RenderResult<TemplateSyntax> {
    let mut parser = JinjaParser {
        tokens,
        at: 0,
        nesting: 0,
        loops_around: 0,
        names: Vec::new(),
        by_name: HashMap::new(),
        macros: Vec::new(),
        loops: Vec::new(),
        rests: ReadRests::default(),
    };
    match parser.body(&[]) {
        Ok(body) => Ok(TemplateSyntax {
            body: body.statements,
            names: parser.names,
            macros: parser.macros,
            loops: parser.loops,
        }),
        Err(fault) => Err(fault.at(parser.line())),
    }
}

pub(super) struct JinjaParser {
    tokens: Vec<JinjaToken>,
    at: usize,
    nesting: u32,
    /// Loops that `break` may end here.
    loops_around: u32,
    names: Vec<Arc<str>>,
    by_name: HashMap<Arc<str>, NameId>,
    macros: Vec<MacroNode>,
    loops: Vec<ForNode>,
    pub(super) rests: ReadRests,
}

/// Which of a macro's remaining arguments its body reads.
#[derive(Debug, Default)]
pub(super) struct ReadRests {
    pub(super) varargs: bool,
    pub(super) kwargs: bool,
}

/// Statements up to a tag, which is read as far as its name.
struct ParsedBody {
    statements: Vec<TemplateStatement>,
    /// The tag's name; none at the end of the template.
    end: Option<Arc<str>>,
}

impl JinjaParser {
    pub(super) fn peek(&self) -> Option<&TemplateLexeme> {
        self.tokens.get(self.at).map(|token| &token.lexeme)
    }

    pub(super) fn peek_second(&self) -> Option<&TemplateLexeme> {
        self.tokens.get(self.at + 1).map(|token| &token.lexeme)
    }

    /// The line of the token before, which is never far away.
    pub(super) fn line(&self) -> u32 {
        let near = self.at.min(self.tokens.len().saturating_sub(1));
        self.tokens.get(near).map_or(1, |token| token.line)
    }

    pub(super) fn advance(&mut self) {
        self.at += 1;
    }

    pub(super) fn fault<T>(&self, message: impl Into<String>) -> RenderResult<T> {
        Err(RenderFault::new(message).at(self.line()))
    }

    /// An error that says what stands here in place of what is wanted.
    pub(super) fn unexpected<T>(&self, expected: &str) -> RenderResult<T> {
        let found = match self.peek() {
            None => "the end of the template".to_owned(),
            Some(TemplateLexeme::Raw(_)) => "text".to_owned(),
            Some(TemplateLexeme::PrintBegin) => "`{{`".to_owned(),
            Some(TemplateLexeme::PrintEnd) => "`}}`".to_owned(),
            Some(TemplateLexeme::BlockBegin) => "`{%`".to_owned(),
            Some(TemplateLexeme::BlockEnd) => "`%}`".to_owned(),
            Some(TemplateLexeme::Name(name)) => {
                format!("`{}`", name.chars().take(40).collect::<String>())
            }
            Some(TemplateLexeme::Text(_)) => "a text".to_owned(),
            Some(TemplateLexeme::Int(_) | TemplateLexeme::Float(_)) => "a number".to_owned(),
            Some(TemplateLexeme::Sign(sign)) => format!("`{sign}`"),
        };
        self.fault(format!("syntax error: unexpected {found}, expected {expected}"))
    }

    pub(super) fn is_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), Some(TemplateLexeme::Sign(found)) if *found == sign)
    }

    pub(super) fn is_name(&self, name: &str) -> bool {
        matches!(self.peek(), Some(TemplateLexeme::Name(found)) if &**found == name)
    }

    /// Passes a sign if it stands here.
    pub(super) fn take_sign(&mut self, sign: &str) -> bool {
        let found = self.is_sign(sign);
        self.at += usize::from(found);
        found
    }

    /// Passes a word if it stands here.
    pub(super) fn take_name(&mut self, name: &str) -> bool {
        let found = self.is_name(name);
        self.at += usize::from(found);
        found
    }

    pub(super) fn expect_sign(&mut self, sign: &str) -> RenderResult<()> {
        if self.take_sign(sign) { Ok(()) } else { self.unexpected(&format!("`{sign}`")) }
    }

    /// Any name.
    pub(super) fn name(&mut self) -> RenderResult<Arc<str>> {
        let Some(TemplateLexeme::Name(name)) = self.peek() else {
            return self.unexpected("a name");
        };
        let name = Arc::clone(name);
        self.advance();
        Ok(name)
    }

    pub(super) fn intern(&mut self, name: &Arc<str>) -> NameId {
        if let Some(id) = self.by_name.get(name) {
            return *id;
        }
        let id = NameId::try_from(self.names.len()).unwrap_or(NameId::MAX);
        self.names.push(Arc::clone(name));
        self.by_name.insert(Arc::clone(name), id);
        id
    }

    fn intern_text(&mut self, name: &str) -> NameId {
        self.intern(&Arc::from(name))
    }

    /// Reads something that lies one level deeper.
    pub(super) fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> RenderResult<T>,
    ) -> RenderResult<T> {
        if self.nesting >= MAX_NESTING {
            let message = format!("blocks or brackets nest deeper than {MAX_NESTING} levels");
            return self.fault(message);
        }
        self.nesting += 1;
        let result = read(self);
        self.nesting -= 1;
        result
    }

    fn block_end(&mut self) -> RenderResult<()> {
        if self.peek() != Some(&TemplateLexeme::BlockEnd) {
            return self.unexpected("the end of the tag `%}`");
        }
        self.advance();
        Ok(())
    }

    /// Statements up to one of some tags.
    fn body(&mut self, ends: &[&str]) -> RenderResult<ParsedBody> {
        let mut statements = Vec::new();
        loop {
            let line = self.line();
            let Some(lexeme) = self.peek() else {
                if ends.is_empty() {
                    return Ok(ParsedBody { statements, end: None });
                }
                return self.unexpected(&format!("`{}`", ends.join("` or `")));
            };
            let kind = match lexeme {
                TemplateLexeme::Raw(text) => {
                    let text = text.clone();
                    self.advance();
                    StatementKind::Raw(text)
                }
                TemplateLexeme::PrintBegin => {
                    self.advance();
                    let term = self.tuple()?;
                    if self.peek() != Some(&TemplateLexeme::PrintEnd) {
                        return self.unexpected("the end of the tag `}}`");
                    }
                    self.advance();
                    StatementKind::Print(term)
                }
                _ => {
                    self.advance();
                    let name = self.name()?;
                    if ends.contains(&&*name) {
                        return Ok(ParsedBody { statements, end: Some(name) });
                    }
                    self.nested(|parser| parser.statement(&name))?
                }
            };
            statements.push(TemplateStatement { line, kind });
        }
    }

    /// A body that ends with the tag `end`, whose own end is read too.
    fn block(&mut self, end: &str) -> RenderResult<Vec<TemplateStatement>> {
        self.block_end()?;
        let body = self.body(&[end])?;
        self.block_end()?;
        Ok(body.statements)
    }

    /// Parses a [`Self::block`] whose body is no part of the loop around it.
    fn block_apart(&mut self, end: &str) -> RenderResult<Vec<TemplateStatement>> {
        let around = std::mem::take(&mut self.loops_around);
        let body = self.block(end);
        self.loops_around = around;
        body
    }

    fn statement(&mut self, name: &Arc<str>) -> RenderResult<StatementKind> {
        match &**name {
            "for" => self.for_loop(),
            "if" => self.if_block(),
            "set" => self.set(),
            "with" => self.with(),
            "macro" => self.macro_block(),
            "call" => self.call_block(),
            "filter" => {
                let filters = self.filters()?;
                Ok(StatementKind::Filter { filters, body: self.block_apart("endfilter")? })
            }
            "generation" => Ok(StatementKind::Scope(self.block("endgeneration")?)),
            "autoescape" => {
                self.tuple()?;
                Ok(StatementKind::Scope(self.block("endautoescape")?))
            }
            "block" => {
                self.name()?;
                while self.take_name("scoped") || self.take_name("required") {}
                self.block_end()?;
                let body = self.body(&["endblock"])?;
                if matches!(self.peek(), Some(TemplateLexeme::Name(_))) {
                    self.advance();
                }
                self.block_end()?;
                Ok(StatementKind::Scope(body.statements))
            }
            "print" | "do" => {
                let term = self.tuple()?;
                self.block_end()?;
                let printed = &**name == "print";
                Ok(if printed { StatementKind::Print(term) } else { StatementKind::Do(term) })
            }
            "break" | "continue" => {
                if self.loops_around == 0 {
                    return self.fault(format!("syntax error: `{name}` outside of a loop"));
                }
                self.block_end()?;
                let ends = &**name == "break";
                Ok(if ends { StatementKind::Break } else { StatementKind::Continue })
            }
            "include" => self.other("include"),
            "import" => self.other("import"),
            "from" => self.other("from"),
            "extends" => self.other("extends"),
            _ => {
                self.at -= 1;
                self.unexpected("the name of a tag")
            }
        }
    }

    /// A tag that uses another template. What it says is of no interest.
    fn other(&mut self, name: &'static str) -> RenderResult<StatementKind> {
        while !matches!(self.peek(), None | Some(TemplateLexeme::BlockEnd)) {
            self.advance();
        }
        self.block_end()?;
        Ok(StatementKind::Other(name))
    }

    fn for_loop(&mut self) -> RenderResult<StatementKind> {
        let target = self.target()?;
        if !self.take_name("in") {
            return self.unexpected("`in`");
        }
        let items = self.tuple_of(Self::any_of)?;
        let condition = match self.take_name("if") {
            true => Some(self.term()?),
            false => None,
        };
        let recursive = self.take_name("recursive");
        self.block_end()?;
        self.loops_around += 1;
        let body = self.body(&["endfor", "else"]);
        self.loops_around -= 1;
        let body = body?;
        let otherwise = match body.end.as_deref() {
            Some("else") => self.block("endfor")?,
            _ => {
                self.block_end()?;
                Vec::new()
            }
        };
        let node =
            ForNode { target, items, condition, recursive, body: body.statements, otherwise };
        self.loops.push(node);
        Ok(StatementKind::For(u32::try_from(self.loops.len() - 1).unwrap_or(u32::MAX)))
    }

    fn if_block(&mut self) -> RenderResult<StatementKind> {
        let mut arms = Vec::new();
        loop {
            let condition = self.tuple()?;
            self.block_end()?;
            let body = self.body(&["elif", "else", "endif"])?;
            arms.push(IfArm { condition, body: body.statements });
            match body.end.as_deref() {
                Some("elif") => {}
                Some("else") => {
                    let otherwise = self.block("endif")?;
                    return Ok(StatementKind::If { arms, otherwise });
                }
                _ => {
                    self.block_end()?;
                    return Ok(StatementKind::If { arms, otherwise: Vec::new() });
                }
            }
        }
    }

    fn set(&mut self) -> RenderResult<StatementKind> {
        let target = self.target()?;
        if self.take_sign("=") {
            let value = self.tuple()?;
            self.block_end()?;
            return Ok(StatementKind::Set { target, value });
        }
        let filters = match self.take_sign("|") {
            true => self.filters()?,
            false => Vec::new(),
        };
        Ok(StatementKind::SetBlock { target, filters, body: self.block_apart("endset")? })
    }

    fn with(&mut self) -> RenderResult<StatementKind> {
        let mut values = Vec::new();
        while self.peek() != Some(&TemplateLexeme::BlockEnd) {
            if !values.is_empty() {
                self.expect_sign(",")?;
            }
            let target = self.one_target()?;
            self.expect_sign("=")?;
            values.push(SetAssignment { target, value: self.term()? });
        }
        Ok(StatementKind::With { values, body: self.block("endwith")? })
    }

    fn macro_block(&mut self) -> RenderResult<StatementKind> {
        let name = self.name()?;
        let parameters = self.parameters()?;
        Ok(StatementKind::Macro(self.macro_body(&name, parameters, "endmacro")?))
    }

    fn call_block(&mut self) -> RenderResult<StatementKind> {
        let parameters = match self.is_sign("(") {
            true => self.parameters()?,
            false => Vec::new(),
        };
        let call = self.term()?;
        let is_call = match &call {
            TemplateTerm::Linked { links, .. } => links.last().is_some_and(TermLink::is_call),
            _ => false,
        };
        if !is_call {
            return self.fault("syntax error: `call` needs a call");
        }
        let body = self.macro_body(&Arc::from("caller"), parameters, "endcall")?;
        Ok(StatementKind::Call { call, body })
    }

    fn macro_body(
        &mut self,
        name: &Arc<str>,
        parameters: Vec<MacroParameter>,
        end: &str,
    ) -> RenderResult<u32> {
        let rests = std::mem::take(&mut self.rests);
        let body = self.block_apart(end)?;
        let read = std::mem::replace(&mut self.rests, rests);
        let node = MacroNode {
            name: Arc::clone(name),
            id: self.intern(name),
            parameters,
            body,
            caller: self.intern_text("caller"),
            varargs: self.intern_text("varargs"),
            kwargs: self.intern_text("kwargs"),
            takes_varargs: read.varargs,
            takes_kwargs: read.kwargs,
        };
        self.macros.push(node);
        Ok(u32::try_from(self.macros.len() - 1).unwrap_or(u32::MAX))
    }

    fn parameters(&mut self) -> RenderResult<Vec<MacroParameter>> {
        self.expect_sign("(")?;
        let mut parameters: Vec<MacroParameter> = Vec::new();
        while !self.take_sign(")") {
            if !parameters.is_empty() {
                self.expect_sign(",")?;
                if self.take_sign(")") {
                    break;
                }
            }
            let name = self.name()?;
            let name = self.intern(&name);
            let default = match self.take_sign("=") {
                true => Some(self.term()?),
                false => None,
            };
            parameters.push(MacroParameter { name, default });
        }
        Ok(parameters)
    }

    /// Filters up to the end of a tag.
    fn filters(&mut self) -> RenderResult<Vec<TermLink>> {
        let mut filters = vec![self.filter()?];
        while self.take_sign("|") {
            filters.push(self.filter()?);
        }
        Ok(filters)
    }

    /// A target, or several with commas between them.
    fn target(&mut self) -> RenderResult<AssignTarget> {
        let first = self.one_target()?;
        if !self.is_sign(",") {
            return Ok(first);
        }
        let mut several = vec![first];
        while self.take_sign(",") {
            if !matches!(self.peek(), Some(TemplateLexeme::Name(name)) if &**name != "in")
                && !self.is_sign("(")
            {
                break;
            }
            several.push(self.one_target()?);
        }
        Ok(AssignTarget::Several(several))
    }

    fn one_target(&mut self) -> RenderResult<AssignTarget> {
        if self.take_sign("(") {
            let inner = self.nested(Self::target)?;
            self.expect_sign(")")?;
            return Ok(inner);
        }
        let line = self.line();
        let name = self.name()?;
        if is_constant(&name) || matches!(&*name, "not" | "and" | "or" | "in" | "is" | "if") {
            let message = format!("syntax error: nothing can be assigned to `{name}`");
            return Err(RenderFault::new(message).at(line));
        }
        let id = self.intern(&name);
        if self.take_sign(".") {
            return Ok(AssignTarget::Attribute { namespace: id, name: self.name()? });
        }
        Ok(AssignTarget::Name(id))
    }
}

/// Whether a name is that of a constant.
pub(super) fn is_constant(name: &str) -> bool {
    matches!(name, "true" | "True" | "false" | "False" | "none" | "None")
}
