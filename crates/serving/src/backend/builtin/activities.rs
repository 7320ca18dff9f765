//! Stages that a backend adds to the traces of its requests, as Triton's `identity` does to show it.

use std::time::Duration;

use super::delay;
use crate::backend::{BatchPayload, ModelFiles};
use crate::error::ServingError;

/// Time between the start and the end of the first activity.
const ACTIVITY_TIME: Duration = Duration::from_millis(100);

/// An activity without a length.
const SINGLE: &str = "CUSTOM_SINGLE_ACTIVITY";
/// The first activity.
const FIRST: [&str; 2] = ["CUSTOM_ACTIVITY_START", "CUSTOM_ACTIVITY_END"];
/// Activities one inside another.
const NESTED: [[&str; 2]; 10] = [
    ["CUSTOM_ACTIVITY0_START", "CUSTOM_ACTIVITY0_END"],
    ["CUSTOM_ACTIVITY1_START", "CUSTOM_ACTIVITY1_END"],
    ["CUSTOM_ACTIVITY2_START", "CUSTOM_ACTIVITY2_END"],
    ["CUSTOM_ACTIVITY3_START", "CUSTOM_ACTIVITY3_END"],
    ["CUSTOM_ACTIVITY4_START", "CUSTOM_ACTIVITY4_END"],
    ["CUSTOM_ACTIVITY5_START", "CUSTOM_ACTIVITY5_END"],
    ["CUSTOM_ACTIVITY6_START", "CUSTOM_ACTIVITY6_END"],
    ["CUSTOM_ACTIVITY7_START", "CUSTOM_ACTIVITY7_END"],
    ["CUSTOM_ACTIVITY8_START", "CUSTOM_ACTIVITY8_END"],
    ["CUSTOM_ACTIVITY9_START", "CUSTOM_ACTIVITY9_END"],
];

/// Activities that each traced request reports. Parameters: `enable_custom_tracing`, `nested_span_count` and
/// `single_activity_frequency`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CustomTracing {
    /// Number of activities that lie one inside another.
    nested: usize,
    /// One in so many of them holds an activity without a length; 0 for none.
    single_every: usize,
}

impl CustomTracing {
    /// The activities that a configuration asks for.
    ///
    /// # Errors
    /// When a parameter has no value that it may have.
    pub(super) fn from_files(files: &ModelFiles) -> Result<Option<Self>, ServingError> {
        let enabled = files.parameter("enable_custom_tracing").unwrap_or("false").trim();
        let number = |name| -> Result<usize, ServingError> {
            Ok(usize::try_from(delay::number(files, name)?).unwrap_or(usize::MAX))
        };
        let tracing = Self {
            nested: number("nested_span_count")?,
            single_every: number("single_activity_frequency")?,
        };
        let wrong = |name: &str, expected: String, found: &str| {
            let model = &files.name;
            let text = format!(
                "parameter '{name}' of model '{model}' must be {expected}, found '{found}'"
            );
            Err(ServingError::invalid_arg(text))
        };
        if tracing.nested > NESTED.len() {
            let expected = format!("at most {}", NESTED.len());
            return wrong("nested_span_count", expected, &tracing.nested.to_string());
        }
        match enabled.to_ascii_lowercase().as_str() {
            "true" => Ok(Some(tracing)),
            "false" => Ok(None),
            _ => wrong("enable_custom_tracing", "true or false".to_owned(), enabled),
        }
    }

    /// Adds the activities to the traces of a payload's requests; others take no time.
    pub(super) fn report(self, payload: &BatchPayload) {
        let nested = NESTED.get(..self.nested).unwrap_or(&NESTED);
        for request in payload.requests() {
            let Some(trace) = &request.request.trace else { continue };
            let [start, end] = FIRST;
            trace.stamp(start);
            delay::wait_while(ACTIVITY_TIME, || !request.is_cancelled());
            trace.stamp(end);
            trace.stamp(SINGLE);
            for (at, [start, _]) in nested.iter().enumerate() {
                trace.stamp(start);
                if self.single_every > 0 && at.is_multiple_of(self.single_every) {
                    trace.stamp(SINGLE);
                }
            }
            nested.iter().rev().for_each(|[_, end]| trace.stamp(end));
        }
    }
}
