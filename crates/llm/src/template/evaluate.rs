//! Terms of a template, evaluated within the bounds of a rendering.

use std::rc::Rc;
use std::sync::Arc;

use super::builder::{ItemsBuilder, TextBuilder};
use super::calls::{CallValues, NamedValue};
use super::filters::{self, FilterCall};
use super::meter::{RenderFault, RenderResult};
use super::render::TemplateRenderer;
use super::show::show;
use super::syntax::{
    ArithmeticStep, CallArguments, CompareStep, IfChoice, LinkKind, MAX_NAMED_ARGUMENTS, MapPair,
    NameId, SliceBounds, TemplateTerm, TermLink, TermLiteral,
};
use super::value::{MacroValue, MapEntry, TemplateValue};
use super::{access, arithmetic, checks, compare, functions, methods};

impl<'t> TemplateRenderer<'t, '_, '_> {
    /// The value of a term.
    pub(super) fn term(&mut self, term: &'t TemplateTerm) -> RenderResult<TemplateValue> {
        self.meter.step(1)?;
        match term {
            TemplateTerm::Literal(literal) => return self.literal(literal),
            TemplateTerm::Name(name) => return self.variable(*name),
            _ => {}
        }
        let _level = self.meter.deeper()?;
        match term {
            TemplateTerm::Literal(literal) => self.literal(literal),
            TemplateTerm::Name(name) => self.variable(*name),
            TemplateTerm::List(terms) => {
                let items = self.terms(terms)?;
                TemplateValue::list(items, self.meter)
            }
            TemplateTerm::Tuple(terms) => {
                let items = self.terms(terms)?;
                TemplateValue::tuple(items, self.meter)
            }
            TemplateTerm::Map(pairs) => self.map(pairs),
            TemplateTerm::Truth { negated, of } => {
                Ok(TemplateValue::Bool(self.term(of)?.is_true() != *negated))
            }
            TemplateTerm::Sign { negative, of } => {
                let value = self.term(of)?;
                arithmetic::signed(&value, *negative)
            }
            TemplateTerm::And(terms) => self.first_that(terms, false),
            TemplateTerm::Or(terms) => self.first_that(terms, true),
            TemplateTerm::Compare { first, rest } => self.compare(first, rest),
            TemplateTerm::Chain { first, rest } => self.chain(first, rest),
            TemplateTerm::Concat(terms) => self.concat(terms),
            TemplateTerm::Choice { choices, otherwise } => {
                self.choice(choices, otherwise.as_deref())
            }
            TemplateTerm::Linked { base, links } => {
                let value = self.term(base)?;
                self.linked(value, links)
            }
        }
    }

    fn literal(&self, literal: &TermLiteral) -> RenderResult<TemplateValue> {
        Ok(match literal {
            TermLiteral::None => TemplateValue::None,
            TermLiteral::Bool(truth) => TemplateValue::Bool(*truth),
            TermLiteral::Int(number) => TemplateValue::Int(*number),
            TermLiteral::Float(number) => TemplateValue::Float(*number),
            TermLiteral::Text(text) => return TemplateValue::text(&**text, self.meter),
        })
    }

    fn variable(&self, name: NameId) -> RenderResult<TemplateValue> {
        if self.loop_name == Some(name)
            && let Some(looping) = self.scopes.looping()
        {
            return Ok(TemplateValue::Loop(Rc::clone(looping)));
        }
        let found = self.scopes.get(name, self.meter)?;
        Ok(found.unwrap_or_else(|| TemplateValue::Undefined(Some(self.name(name)))))
    }

    fn terms(&mut self, terms: &'t [TemplateTerm]) -> RenderResult<Vec<TemplateValue>> {
        let mut items = ItemsBuilder::new(self.meter)?;
        for term in terms {
            items.push(self.term(term)?)?;
        }
        Ok(items.into_items())
    }

    fn map(&mut self, pairs: &'t [MapPair]) -> RenderResult<TemplateValue> {
        let mut entries = Vec::with_capacity(pairs.len());
        for pair in pairs {
            let key = self.term(&pair.key)?;
            entries.push(MapEntry { key, value: self.term(&pair.value)? });
        }
        TemplateValue::map(entries, self.meter)
    }

    /// The first value of a truth, or the last value.
    fn first_that(
        &mut self,
        terms: &'t [TemplateTerm],
        is_true: bool,
    ) -> RenderResult<TemplateValue> {
        let mut value = TemplateValue::None;
        for term in terms {
            value = self.term(term)?;
            if value.is_true() == is_true {
                break;
            }
        }
        Ok(value)
    }

    fn compare(
        &mut self,
        first: &'t TemplateTerm,
        rest: &'t [CompareStep],
    ) -> RenderResult<TemplateValue> {
        let mut left = self.term(first)?;
        for step in rest {
            let right = self.term(&step.with)?;
            if !compare::compare(step.by, &left, &right, self.meter)? {
                return Ok(TemplateValue::Bool(false));
            }
            left = right;
        }
        Ok(TemplateValue::Bool(true))
    }

    fn chain(
        &mut self,
        first: &'t TemplateTerm,
        rest: &'t [ArithmeticStep],
    ) -> RenderResult<TemplateValue> {
        let mut value = self.term(first)?;
        for step in rest {
            let with = self.term(&step.with)?;
            value = arithmetic::operate(step.by, &value, &with, self.meter)?;
        }
        Ok(value)
    }

    fn concat(&mut self, terms: &'t [TemplateTerm]) -> RenderResult<TemplateValue> {
        let mut out = TextBuilder::new(self.meter)?;
        for term in terms {
            let value = self.term(term)?;
            show(&value, self.meter, &mut out)?;
        }
        out.into_value()
    }

    fn choice(
        &mut self,
        choices: &'t [IfChoice],
        otherwise: Option<&'t TemplateTerm>,
    ) -> RenderResult<TemplateValue> {
        for choice in choices {
            if self.term(&choice.test)?.is_true() {
                return self.term(&choice.value);
            }
        }
        otherwise.map_or(Ok(TemplateValue::Undefined(None)), |term| self.term(term))
    }

    /// Follows some links from a value.
    pub(super) fn linked(
        &mut self,
        mut value: TemplateValue,
        links: &'t [TermLink],
    ) -> RenderResult<TemplateValue> {
        for link in links {
            self.meter.step(1)?;
            value = self.link(value, link).map_err(|fault| fault.at(link.line))?;
        }
        Ok(value)
    }

    fn link(&mut self, value: TemplateValue, link: &'t TermLink) -> RenderResult<TemplateValue> {
        match &link.kind {
            LinkKind::Attribute(name) => access::member(&value, name, self.meter),
            LinkKind::Item(key) => {
                let key = self.term(key)?;
                self.item(&value, &key)
            }
            LinkKind::Slice(bounds) => self.slice(&value, bounds),
            LinkKind::Call(arguments) => {
                let arguments = self.arguments(arguments)?;
                self.call(value, arguments)
            }
            LinkKind::Method { name, arguments } => {
                let arguments = self.arguments(arguments)?;
                self.call_method(&value, name, arguments)
            }
            LinkKind::Filter { name, arguments } => {
                let arguments = self.arguments(arguments)?;
                let call =
                    FilterCall { name, value: &value, arguments: &arguments, meter: self.meter };
                filters::apply(&call)
            }
            LinkKind::Test { name, negated, arguments } => {
                let arguments = self.arguments(arguments)?;
                let holds = checks::holds(name, &value, &arguments, self.meter)?;
                Ok(TemplateValue::Bool(holds != *negated))
            }
        }
    }

    /// `value[key]`, where a key that is not there may be an attribute.
    fn item(&self, value: &TemplateValue, key: &TemplateValue) -> RenderResult<TemplateValue> {
        let found = arithmetic::item(value, key, self.meter)?;
        match key.as_str().filter(|name| found.is_undefined() && name.len() <= 100) {
            Some(name) => access::member(value, &Arc::from(name), self.meter),
            None => Ok(found),
        }
    }

    fn slice(
        &mut self,
        value: &TemplateValue,
        bounds: &'t SliceBounds,
    ) -> RenderResult<TemplateValue> {
        let mut bound = |term: &'t Option<TemplateTerm>| match term {
            Some(term) => self.term(term),
            None => Ok(TemplateValue::None),
        };
        let given = arithmetic::GivenSlice {
            start: bound(&bounds.start)?,
            stop: bound(&bounds.stop)?,
            step: bound(&bounds.step)?,
        };
        given.of(value, self.meter)
    }

    fn arguments(&mut self, given: &'t CallArguments) -> RenderResult<CallValues> {
        let mut positional = self.terms(&given.positional)?;
        let mut named = Vec::with_capacity(given.named.len());
        for argument in &given.named {
            let value = self.term(&argument.value)?;
            named.push(NamedValue { name: Arc::clone(&argument.name), value });
        }
        if let Some(spread) = &given.spread {
            let spread = self.term(spread)?.elements(self.meter)?;
            self.meter.elements(spread.items.len())?;
            positional.extend_from_slice(&spread.items);
        }
        if let Some(spread) = &given.spread_named {
            let TemplateValue::Map(map) = self.term(spread)? else {
                return Err(RenderFault::new("what stands behind ** must be a mapping"));
            };
            self.meter.elements(map.len())?;
            for entry in map.entries().iter().take(MAX_NAMED_ARGUMENTS + 1) {
                let Some(name) = entry.key.as_str() else {
                    return Err(RenderFault::new("keywords must be strings"));
                };
                named.push(NamedValue { name: name.into(), value: entry.value.clone() });
            }
        }
        if named.len() > MAX_NAMED_ARGUMENTS {
            let message = format!("a call has more than {MAX_NAMED_ARGUMENTS} named arguments");
            return Err(RenderFault::new(message));
        }
        Ok(CallValues { positional, named })
    }

    /// Calls a value.
    fn call(&mut self, value: TemplateValue, arguments: CallValues) -> RenderResult<TemplateValue> {
        match value.defined()? {
            TemplateValue::Macro(called) => self.call_macro(*called, arguments),
            TemplateValue::Function(name) => {
                functions::call(name, &arguments, self.now, self.meter)
            }
            TemplateValue::Method(method) => {
                methods::call(&method.of, &method.name, &arguments, self.meter)
            }
            TemplateValue::Loop(of) => {
                let of = Rc::clone(of);
                self.recurse(&of, &arguments)
            }
            other => {
                let message = format!("'{}' object is not callable", other.type_name());
                Err(RenderFault::new(message))
            }
        }
    }

    /// Calls an attribute of a value: a method, or what a map or namespace holds.
    fn call_method(
        &mut self,
        value: &TemplateValue,
        name: &Arc<str>,
        arguments: CallValues,
    ) -> RenderResult<TemplateValue> {
        match value.defined()? {
            TemplateValue::Loop(of) => functions::call_loop(of, name, &arguments, self.meter),
            other if methods::exists(other, name) => {
                methods::call(other, name, &arguments, self.meter)
            }
            other => {
                let found = access::member(other, name, self.meter)?;
                if found.is_undefined() {
                    return methods::call(other, name, &arguments, self.meter);
                }
                self.call(found, arguments)
            }
        }
    }

    /// The value of a call, which gets a body to call.
    pub(super) fn call_with(
        &mut self,
        term: &'t TemplateTerm,
        caller: MacroValue,
    ) -> RenderResult<TemplateValue> {
        let TemplateTerm::Linked { base, links } = term else {
            return Err(RenderFault::new("`call` needs a call"));
        };
        let Some((last, before)) = links.split_last() else {
            return Err(RenderFault::new("`call` needs a call"));
        };
        let value = self.term(base)?;
        let value = self.linked(value, before)?;
        let given = match &last.kind {
            LinkKind::Call(arguments) | LinkKind::Method { arguments, .. } => arguments,
            _ => return Err(RenderFault::new("`call` needs a call")),
        };
        let mut arguments = self.arguments(given)?;
        let name = Arc::from("caller");
        arguments.named.push(NamedValue { name, value: TemplateValue::Macro(caller) });
        match &last.kind {
            LinkKind::Method { name, .. } => self.call_method(&value, name, arguments),
            _ => self.call(value, arguments),
        }
    }
}
