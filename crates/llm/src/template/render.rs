//! Statements of a template, executed within the bounds of a rendering.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use serde_json::Value;

use super::builder::{ItemsBuilder, WrittenText};
use super::calls::CallValues;
use super::functions;
use super::meter::{RenderFault, RenderMeter, RenderResult};
use super::scopes::ScopeStack;
use super::show::{OutputSink, show};
use super::syntax::{
    AssignTarget, ForNode, MacroNode, NameId, StatementKind, TemplateStatement, TemplateSyntax,
    TemplateTerm, TermLink, TermLiteral,
};
use super::value::{ListValue, LoopValue, MacroValue, MapEntry, TemplateValue};

/// Variables of a template, of which only those are read that it names.
pub(super) trait RenderVariables {
    /// The variable called `name`.
    fn variable(&self, name: &str) -> Option<&Value>;
}

/// Renders a template.
///
/// # Errors
/// Fails with what the template refuses, and bounds that are reached, with the line.
pub(super) fn render(
    syntax: &TemplateSyntax,
    variables: &dyn RenderVariables,
    now: i64,
    stop: &dyn Fn() -> bool,
) -> RenderResult<String> {
    let meter = RenderMeter::new(stop);
    let input = RenderMeter::unbounded();
    let mut root = Vec::with_capacity(syntax.names.len());
    for name in &syntax.names {
        root.push(match variables.variable(name) {
            Some(value) => Some(TemplateValue::from_json(value, &input)?),
            None => functions::global(name),
        });
    }
    let mut renderer = TemplateRenderer {
        syntax,
        meter: &meter,
        scopes: ScopeStack::new(root),
        now,
        loop_name: syntax
            .names
            .iter()
            .position(|name| &**name == "loop")
            .and_then(|place| NameId::try_from(place).ok()),
        output: vec![WrittenText::new(&meter)?],
    };
    renderer.body(&syntax.body)?;
    Ok(renderer.output.pop().map(WrittenText::into_text).unwrap_or_default())
}

pub(super) struct TemplateRenderer<'t, 'm, 'a> {
    pub(super) syntax: &'t TemplateSyntax,
    pub(super) meter: &'m RenderMeter<'a>,
    pub(super) scopes: ScopeStack,
    /// Seconds since 1970.
    pub(super) now: i64,
    /// The name `loop`, where the template has it.
    pub(super) loop_name: Option<NameId>,
    /// Texts that are being written, innermost last.
    output: Vec<WrittenText>,
}

/// How statements ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyEnd {
    Done,
    Break,
    Continue,
}

impl<'t> TemplateRenderer<'t, '_, '_> {
    fn body(&mut self, statements: &'t [TemplateStatement]) -> RenderResult<BodyEnd> {
        let _level = self.meter.deeper()?;
        for statement in statements {
            self.meter.step(1)?;
            let end = self.statement(statement).map_err(|fault| fault.at(statement.line))?;
            if end != BodyEnd::Done {
                return Ok(end);
            }
        }
        Ok(BodyEnd::Done)
    }

    fn statement(&mut self, statement: &'t TemplateStatement) -> RenderResult<BodyEnd> {
        match &statement.kind {
            StatementKind::Raw(text) => self.write(text)?,
            StatementKind::Print(term) => self.print(term)?,
            StatementKind::Do(term) => drop(self.term(term)?),
            StatementKind::For(node) => self.for_loop(*node, statement.line)?,
            StatementKind::If { arms, otherwise } => {
                for arm in arms {
                    self.meter.step(1)?;
                    if self.term(&arm.condition)?.is_true() {
                        return self.body(&arm.body);
                    }
                }
                return self.body(otherwise);
            }
            StatementKind::Set { target, value } => {
                let value = self.term(value)?;
                self.assign(target, value)?;
            }
            StatementKind::SetBlock { target, filters, body } => {
                let text = self.captured(body, filters)?;
                self.assign(target, text)?;
            }
            StatementKind::With { values, body } => {
                let mut found = Vec::new();
                for assignment in values {
                    found.push(self.term(&assignment.value)?);
                }
                let outer = self.scopes.push(None)?;
                let mut result = Ok(BodyEnd::Done);
                for (assignment, value) in values.iter().zip(found) {
                    result = result.and_then(|_| {
                        self.assign(&assignment.target, value).map(|()| BodyEnd::Done)
                    });
                }
                let result = result.and_then(|_| self.body(body));
                self.scopes.pop(outer);
                return result;
            }
            StatementKind::Scope(body) => {
                let outer = self.scopes.push(None)?;
                let result = self.body(body);
                self.scopes.pop(outer);
                return result;
            }
            StatementKind::Filter { filters, body } => {
                let text = self.captured(body, filters)?;
                self.show(&text)?;
            }
            StatementKind::Macro(node) => {
                let scope = self.scopes.current();
                let name = self.macro_node(*node)?.id;
                let value = TemplateValue::Macro(MacroValue { node: *node, scope });
                self.scopes.set(name, value, self.meter)?;
            }
            StatementKind::Call { call, body } => self.call_block(call, *body)?,
            StatementKind::Break => return Ok(BodyEnd::Break),
            StatementKind::Continue => return Ok(BodyEnd::Continue),
            StatementKind::Other(name) => {
                let message = format!("`{name}`: chat templates cannot use other templates");
                return Err(RenderFault::new(message));
            }
        }
        Ok(BodyEnd::Done)
    }

    fn print(&mut self, term: &'t TemplateTerm) -> RenderResult<()> {
        if let TemplateTerm::Literal(TermLiteral::Text(text)) = term {
            return self.write(text);
        }
        let value = self.term(term)?;
        self.show(&value)
    }

    fn show(&mut self, value: &TemplateValue) -> RenderResult<()> {
        let Some(written) = self.output.last_mut() else { return Ok(()) };
        show(value, self.meter, &mut OutputSink { written, meter: self.meter })
    }

    fn write(&mut self, text: &str) -> RenderResult<()> {
        let Some(written) = self.output.last_mut() else { return Ok(()) };
        written.push(text, self.meter)
    }

    /// Catches what statements write.
    fn capture(
        &mut self,
        run: impl FnOnce(&mut Self) -> RenderResult<()>,
    ) -> RenderResult<TemplateValue> {
        self.output.push(WrittenText::new(self.meter)?);
        let depth = self.output.len();
        let result = run(self);
        self.output.truncate(depth);
        let written = self.output.pop();
        result?;
        match written {
            Some(written) => written.into_value(self.meter),
            None => Ok(TemplateValue::None),
        }
    }

    /// Text that a body writes, after some filters.
    fn captured(
        &mut self,
        body: &'t [TemplateStatement],
        filters: &'t [TermLink],
    ) -> RenderResult<TemplateValue> {
        let outer = self.scopes.push(None)?;
        let text = self.capture(|renderer| renderer.body(body).map(drop));
        self.scopes.pop(outer);
        self.linked(text?, filters)
    }

    pub(super) fn assign(
        &mut self,
        target: &AssignTarget,
        value: TemplateValue,
    ) -> RenderResult<()> {
        self.meter.step(1)?;
        match target {
            AssignTarget::Name(name) => self.scopes.set(*name, value, self.meter),
            AssignTarget::Attribute { namespace, name } => {
                let Some(TemplateValue::Namespace(found)) =
                    self.scopes.get(*namespace, self.meter)?
                else {
                    let message = format!(
                        "cannot assign attribute '{name}' on '{}', which is no namespace",
                        self.name(*namespace)
                    );
                    return Err(RenderFault::new(message));
                };
                found.set(name, value, self.meter)
            }
            AssignTarget::Several(targets) => {
                let items = value.defined()?.elements(self.meter)?;
                if items.items.len() != targets.len() {
                    let found = items.items.len();
                    let wanted = targets.len();
                    let message = format!("{found} values to unpack, expected {wanted}");
                    return Err(RenderFault::new(message));
                }
                let pairs = targets.iter().zip(&items.items);
                pairs.into_iter().try_for_each(|(target, item)| self.assign(target, item.clone()))
            }
        }
    }

    pub(super) fn name(&self, name: NameId) -> Arc<str> {
        let found = usize::try_from(name).ok().and_then(|at| self.syntax.names.get(at));
        found.cloned().unwrap_or_else(|| "".into())
    }

    fn for_node(&self, node: u32) -> RenderResult<&'t ForNode> {
        let found = usize::try_from(node).ok().and_then(|at| self.syntax.loops.get(at));
        found.ok_or_else(|| RenderFault::new("the loop is not known"))
    }

    fn macro_node(&self, node: u32) -> RenderResult<&'t MacroNode> {
        let found = usize::try_from(node).ok().and_then(|at| self.syntax.macros.get(at));
        found.ok_or_else(|| RenderFault::new("the macro is not known"))
    }

    fn for_loop(&mut self, node: u32, line: u32) -> RenderResult<()> {
        let items = self.term(&self.for_node(node)?.items)?;
        self.run_loop(node, &items, 0).map_err(|fault| fault.at(line))
    }

    fn run_loop(&mut self, place: u32, items: &TemplateValue, depth: u32) -> RenderResult<()> {
        let _level = self.meter.deeper()?;
        let node = self.for_node(place)?;
        let mut items = items.elements(self.meter)?;
        if let Some(condition) = &node.condition {
            items = self.kept(node, condition, &items)?;
        }
        if items.items.is_empty() {
            let outer = self.scopes.push(None)?;
            let result = self.body(&node.otherwise);
            self.scopes.pop(outer);
            return result.map(drop);
        }
        let state = Rc::new(LoopValue {
            items,
            index: Cell::new(0),
            depth,
            node: place,
            before: RefCell::new(None),
        });
        let outer = self.scopes.push(Some(Rc::clone(&state)))?;
        let mut result = Ok(BodyEnd::Done);
        for (index, item) in state.items.items.iter().enumerate() {
            state.index.set(index);
            self.scopes.clear();
            result = self
                .meter
                .step(1)
                .and_then(|()| self.assign(&node.target, item.clone()))
                .and_then(|()| self.body(&node.body));
            if !matches!(result, Ok(BodyEnd::Done | BodyEnd::Continue)) {
                break;
            }
        }
        self.scopes.pop(outer);
        result.map(drop)
    }

    /// The items of a loop that its condition keeps.
    fn kept(
        &mut self,
        node: &'t ForNode,
        condition: &'t TemplateTerm,
        items: &Rc<ListValue>,
    ) -> RenderResult<Rc<ListValue>> {
        let mut kept = ItemsBuilder::new(self.meter)?;
        let outer = self.scopes.push(None)?;
        let mut result = Ok(());
        for item in &items.items {
            self.scopes.clear();
            let holds = self
                .assign(&node.target, item.clone())
                .and_then(|()| self.term(condition))
                .map(|value| value.is_true());
            result = match holds {
                Ok(true) => kept.push(item.clone()),
                Ok(false) => Ok(()),
                Err(fault) => Err(fault),
            };
            if result.is_err() {
                break;
            }
        }
        self.scopes.pop(outer);
        result?;
        Ok(Rc::new(ListValue::new(kept.into_items(), false, self.meter)?))
    }

    /// Calls a loop with what it goes through next.
    pub(super) fn recurse(
        &mut self,
        of: &LoopValue,
        arguments: &CallValues,
    ) -> RenderResult<TemplateValue> {
        if !self.for_node(of.node)?.recursive {
            let message = "a loop is called that is not marked `recursive`";
            return Err(RenderFault::new(message));
        }
        let items = arguments.need("loop", 0, "iterable")?.clone();
        let node = of.node;
        let depth = of.depth + 1;
        self.capture(|renderer| renderer.run_loop(node, &items, depth))
    }

    fn call_block(&mut self, call: &'t TemplateTerm, body: u32) -> RenderResult<()> {
        let caller = MacroValue { node: body, scope: self.scopes.current() };
        let value = self.call_with(call, caller)?;
        self.show(&value)
    }

    /// Calls a macro.
    pub(super) fn call_macro(
        &mut self,
        called: MacroValue,
        arguments: CallValues,
    ) -> RenderResult<TemplateValue> {
        let _level = self.meter.deeper()?;
        self.meter.step(1)?;
        let node = self.macro_node(called.node)?;
        let outer = self.scopes.push_inside(called.scope)?;
        let result = self
            .bind(node, arguments)
            .and_then(|()| self.capture(|renderer| renderer.body(&node.body).map(drop)));
        self.scopes.pop(outer);
        result
    }

    /// Sets the parameters of a macro in its scope.
    fn bind(&mut self, node: &'t MacroNode, arguments: CallValues) -> RenderResult<()> {
        let CallValues { positional, named } = arguments;
        let given = positional.len();
        let mut positional = positional.into_iter();
        let mut named: HashMap<Arc<str>, TemplateValue> =
            named.into_iter().map(|of| (of.name, of.value)).collect();
        for parameter in &node.parameters {
            self.meter.step(1)?;
            let value = match (positional.next(), named.remove(&self.name(parameter.name))) {
                (Some(value), _) | (None, Some(value)) => value,
                (None, None) => match &parameter.default {
                    Some(default) => self.term(default)?,
                    None => TemplateValue::Undefined(Some(self.name(parameter.name))),
                },
            };
            self.scopes.set(parameter.name, value, self.meter)?;
        }
        if let Some(caller) = named.remove("caller") {
            self.scopes.set(node.caller, caller, self.meter)?;
        }
        let rest: Vec<TemplateValue> = positional.collect();
        if !rest.is_empty() && !node.takes_varargs {
            let name = &node.name;
            let most = node.parameters.len();
            let message =
                format!("macro '{name}' takes not more than {most} argument(s), {given} found");
            return Err(RenderFault::new(message));
        }
        if let Some(unknown) = named.keys().next().filter(|_| !node.takes_kwargs) {
            let message = format!("macro '{}' takes no argument '{unknown}'", node.name);
            return Err(RenderFault::new(message));
        }
        if node.takes_varargs {
            let rest = TemplateValue::tuple(rest, self.meter)?;
            self.scopes.set(node.varargs, rest, self.meter)?;
        }
        if node.takes_kwargs {
            let entry = |(name, value): (Arc<str>, TemplateValue)| {
                Ok(MapEntry { key: TemplateValue::text(&*name, self.meter)?, value })
            };
            let rest = named.into_iter().map(entry).collect::<RenderResult<Vec<_>>>()?;
            let rest = TemplateValue::map(rest, self.meter)?;
            self.scopes.set(node.kwargs, rest, self.meter)?;
        }
        Ok(())
    }
}
