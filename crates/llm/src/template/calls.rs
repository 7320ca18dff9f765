//! The values that a function, filter or test is called with.

use std::sync::Arc;

use super::meter::{RenderFault, RenderResult};
use super::value::TemplateValue;

/// Arguments in their order, and by name.
#[derive(Debug, Default)]
pub(super) struct CallValues {
    pub(super) positional: Vec<TemplateValue>,
    pub(super) named: Vec<NamedValue>,
}

#[derive(Debug)]
pub(super) struct NamedValue {
    pub(super) name: Arc<str>,
    pub(super) value: TemplateValue,
}

impl CallValues {
    /// The argument called `name`.
    pub(super) fn named(&self, name: &str) -> Option<&TemplateValue> {
        self.named.iter().find(|of| &*of.name == name).map(|of| &of.value)
    }

    /// The argument at a place, or by its name.
    pub(super) fn get(&self, at: usize, name: &str) -> Option<&TemplateValue> {
        self.positional.get(at).or_else(|| self.named(name))
    }

    /// Gives an argument that is needed; see [`Self::get`].
    pub(super) fn need(&self, of: &str, at: usize, name: &str) -> RenderResult<&TemplateValue> {
        let missing = || RenderFault::new(format!("{of}: the argument '{name}' is missing"));
        self.get(at, name).ok_or_else(missing)
    }

    /// A text, or none where the argument is missing.
    pub(super) fn text(&self, of: &str, at: usize, name: &str) -> RenderResult<Option<&str>> {
        match self.get(at, name) {
            None | Some(TemplateValue::None) => Ok(None),
            Some(TemplateValue::Text(text)) => Ok(Some(&text.text)),
            Some(other) => Err(wrong(of, name, "a text", other)),
        }
    }

    /// A text that is needed.
    pub(super) fn need_text(&self, of: &str, at: usize, name: &str) -> RenderResult<&str> {
        let value = self.need(of, at, name)?.defined()?;
        value.as_str().ok_or_else(|| wrong(of, name, "a text", value))
    }

    /// A whole number, or none where the argument is missing.
    pub(super) fn int(&self, of: &str, at: usize, name: &str) -> RenderResult<Option<i128>> {
        match self.get(at, name) {
            None | Some(TemplateValue::None) => Ok(None),
            Some(other) => match other.as_int() {
                Some(number) => Ok(Some(number)),
                None => Err(wrong(of, name, "a whole number", other)),
            },
        }
    }

    /// A number of things, which is no less than zero.
    pub(super) fn size(&self, of: &str, at: usize, name: &str) -> RenderResult<Option<usize>> {
        let number = self.int(of, at, name)?;
        Ok(number.map(|number| usize::try_from(number.max(0)).unwrap_or(usize::MAX)))
    }

    /// Whether an argument is given and true.
    pub(super) fn truth(&self, at: usize, name: &str) -> bool {
        self.get(at, name).is_some_and(TemplateValue::is_true)
    }

    /// Refuses arguments beyond those that are known.
    pub(super) fn expect(&self, of: &str, names: &[&str]) -> RenderResult<()> {
        if self.positional.len() > names.len() {
            let found = self.positional.len();
            let most = names.len();
            let message = format!("{of}: {found} arguments found, expected at most {most}");
            return Err(RenderFault::new(message));
        }
        match self.named.iter().find(|of| !names.contains(&&*of.name)) {
            Some(unknown) => {
                Err(RenderFault::new(format!("{of}: unknown argument '{}'", unknown.name)))
            }
            None => Ok(()),
        }
    }
}

/// The error for a value of the wrong type.
pub(super) fn wrong(of: &str, name: &str, wanted: &str, found: &TemplateValue) -> RenderFault {
    let found = found.type_name();
    RenderFault::new(format!("{of}: '{found}' found for {name}, expected {wanted}"))
}
