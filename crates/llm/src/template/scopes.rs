//! Variables and where they are seen.

use std::rc::Rc;

use super::meter::{RenderFault, RenderMeter, RenderResult};
use super::syntax::NameId;
use super::value::{LoopValue, ScopeId, TemplateValue};

/// Scopes at the same time, which the bound of depth keeps far below.
const MAX_SCOPES: usize = 1 << 16;

/// The scopes that a template is in. Each sees one around it, up to the template's own, whose
/// variables have places by their names.
#[derive(Debug)]
pub(super) struct ScopeStack {
    root: Vec<Option<TemplateValue>>,
    scopes: Vec<VariableScope>,
    serials: u64,
}

#[derive(Debug)]
struct VariableScope {
    serial: u64,
    /// The scope around; none where that is the template's.
    around: Option<usize>,
    variables: Vec<ScopedVariable>,
    looping: Option<Rc<LoopValue>>,
}

#[derive(Debug)]
struct ScopedVariable {
    name: NameId,
    value: TemplateValue,
}

/// How many scopes there were.
#[derive(Debug, Clone, Copy)]
pub(super) struct OuterScopes(usize);

impl ScopeStack {
    pub(super) fn new(root: Vec<Option<TemplateValue>>) -> Self {
        Self { root, scopes: Vec::new(), serials: 0 }
    }

    /// Begins a scope inside the current one, that of a loop if one is given.
    pub(super) fn push(&mut self, looping: Option<Rc<LoopValue>>) -> RenderResult<OuterScopes> {
        let around = self.scopes.len().checked_sub(1);
        self.push_around(around, looping)
    }

    /// Begins a scope inside another one, or inside the template's where that has ended.
    pub(super) fn push_inside(&mut self, scope: ScopeId) -> RenderResult<OuterScopes> {
        let place = usize::try_from(scope.place).ok().and_then(|place| place.checked_sub(1));
        let alive = |place: &usize| {
            self.scopes.get(*place).is_some_and(|found| found.serial == scope.serial)
        };
        let around = place.filter(alive);
        self.push_around(around, None)
    }

    fn push_around(
        &mut self,
        around: Option<usize>,
        looping: Option<Rc<LoopValue>>,
    ) -> RenderResult<OuterScopes> {
        let outer = OuterScopes(self.scopes.len());
        if outer.0 >= MAX_SCOPES {
            return Err(RenderFault::new("the recursion has too many scopes"));
        }
        self.serials += 1;
        let scope = VariableScope { serial: self.serials, around, variables: Vec::new(), looping };
        self.scopes.push(scope);
        Ok(outer)
    }

    /// Ends all scopes that have begun since.
    pub(super) fn pop(&mut self, outer: OuterScopes) {
        self.scopes.truncate(outer.0);
    }

    /// Forgets the variables of the current scope.
    pub(super) fn clear(&mut self) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.variables.clear();
        }
    }

    /// The current scope.
    pub(super) fn current(&self) -> ScopeId {
        let place = u32::try_from(self.scopes.len()).unwrap_or(u32::MAX);
        ScopeId { place, serial: self.scopes.last().map_or(0, |scope| scope.serial) }
    }

    /// Sets a variable of the current scope.
    pub(super) fn set(
        &mut self,
        name: NameId,
        value: TemplateValue,
        meter: &RenderMeter<'_>,
    ) -> RenderResult<()> {
        let Some(scope) = self.scopes.last_mut() else {
            let place = usize::try_from(name).ok().and_then(|place| self.root.get_mut(place));
            if let Some(place) = place {
                *place = Some(value);
            }
            return Ok(());
        };
        meter.elements(scope.variables.len() / 16)?;
        match scope.variables.iter_mut().find(|variable| variable.name == name) {
            Some(variable) => variable.value = value,
            None => scope.variables.push(ScopedVariable { name, value }),
        }
        Ok(())
    }

    /// The variable that is seen under a name.
    pub(super) fn get(
        &self,
        name: NameId,
        meter: &RenderMeter<'_>,
    ) -> RenderResult<Option<TemplateValue>> {
        let mut looked_at = 0;
        let mut place = self.scopes.len().checked_sub(1);
        while let Some(scope) = place.and_then(|place| self.scopes.get(place)) {
            let found = scope.variables.iter().find(|variable| variable.name == name);
            if let Some(variable) = found {
                return Ok(Some(variable.value.clone()));
            }
            looked_at += 1 + scope.variables.len();
            place = scope.around;
        }
        meter.elements(looked_at / 16)?;
        let root = usize::try_from(name).ok().and_then(|place| self.root.get(place));
        Ok(root.cloned().flatten())
    }

    /// The innermost loop that is seen.
    pub(super) fn looping(&self) -> Option<&Rc<LoopValue>> {
        let mut place = self.scopes.len().checked_sub(1);
        while let Some(scope) = place.and_then(|place| self.scopes.get(place)) {
            if scope.looping.is_some() {
                return scope.looping.as_ref();
            }
            place = scope.around;
        }
        None
    }
}
