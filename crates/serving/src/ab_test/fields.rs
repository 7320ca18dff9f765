//! Members of JSON objects, read strictly: errors name the member, what was found and what was expected.

use serde_json::{Map, Value};

/// An object whose members are all known, and where it stands.
#[derive(Clone, Debug)]
pub(super) struct StrictObject<'a> {
    place: String,
    members: &'a Map<String, Value>,
}

impl<'a> StrictObject<'a> {
    /// Takes an object with these members at most. `place` is empty for the outermost object.
    ///
    /// # Errors
    /// Fails for another value than an object, and for the first unknown member.
    pub(super) fn of(place: &str, value: &'a Value, known: &[&str]) -> Result<Self, String> {
        let place = if place.is_empty() { String::new() } else { format!("{place}: ") };
        let Value::Object(members) = value else {
            return Err(format!(
                "{place}{value} found, expected an object of {}",
                known.join(", ")
            ));
        };
        match members.keys().find(|name| !known.contains(&name.as_str())) {
            Some(name) => {
                Err(format!("{place}'{name}' found, expected one of {}", known.join(", ")))
            }
            None => Ok(Self { place, members }),
        }
    }

    /// A member as it is.
    pub(super) fn member(&self, name: &str) -> Option<&'a Value> {
        self.members.get(name)
    }

    /// An error on a member's value.
    pub(super) fn wrong(&self, name: &str, found: &Value, expected: &str) -> String {
        format!("{}{name}: {found} found, expected {expected}", self.place)
    }

    /// A number between two bounds, both included.
    ///
    /// # Errors
    /// Names the member, what was found and what was expected.
    pub(super) fn number(&self, name: &str, low: f64, high: f64) -> Result<Option<f64>, String> {
        let Some(value) = self.member(name) else { return Ok(None) };
        let number = value.as_f64().filter(|number| (low..=high).contains(number));
        let expected = || self.wrong(name, value, &format!("a number from {low} to {high}"));
        number.map(Some).ok_or_else(expected)
    }

    /// A whole number between two bounds, both included.
    ///
    /// # Errors
    /// Names the member, what was found and what was expected.
    pub(super) fn whole(&self, name: &str, low: u64, high: u64) -> Result<Option<u64>, String> {
        let Some(value) = self.member(name) else { return Ok(None) };
        let number = value.as_u64().filter(|number| (low..=high).contains(number));
        let expected = || self.wrong(name, value, &format!("a whole number from {low} to {high}"));
        number.map(Some).ok_or_else(expected)
    }
}
