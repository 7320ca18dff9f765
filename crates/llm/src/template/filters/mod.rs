//! Filters of Jinja2, by name.

mod numbers;
mod sequences;
mod texts;

use super::calls::CallValues;
use super::meter::{RenderFault, RenderMeter, RenderResult};
use super::value::TemplateValue;

/// Arguments of a filter.
pub(super) struct FilterCall<'c, 'm, 'a> {
    /// The filter's name, for errors.
    pub(super) name: &'c str,
    pub(super) value: &'c TemplateValue,
    pub(super) arguments: &'c CallValues,
    pub(super) meter: &'m RenderMeter<'a>,
}

/// Applies a filter.
///
/// # Errors
/// For a filter that is not known, and as the filter says.
pub(super) fn apply(call: &FilterCall<'_, '_, '_>) -> RenderResult<TemplateValue> {
    let _level = call.meter.deeper()?;
    call.meter.step(1)?;
    let found = sequences::apply(call).or_else(|| texts::apply(call));
    found.or_else(|| numbers::apply(call)).unwrap_or_else(|| {
        let name: String = call.name.chars().take(80).collect();
        Err(RenderFault::new(format!("unknown filter: filter {name} is unknown")))
    })
}

/// Whether there is a filter of a name.
pub(super) fn exists(name: &str) -> bool {
    sequences::NAMES.contains(&name)
        || texts::NAMES.contains(&name)
        || numbers::NAMES.contains(&name)
}

impl FilterCall<'_, '_, '_> {
    /// Refuses arguments beyond those that are known.
    fn expect(&self, names: &[&str]) -> RenderResult<()> {
        self.arguments.expect(self.name, names)
    }
}
