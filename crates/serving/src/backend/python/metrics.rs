//! Custom metrics of models: what `MetricFamily` and `Metric` call.
//!
//! A worker knows its families and metrics by numbers, which it gives back when Python has lost the object. What it still
//! has goes when it ends. Numbers that may not be finite cross as text, for which JSON has no other form.

use serde_json::Value;

use super::bls_callee::BlsCallee;
use super::bls_socket::BlsSocket;
use crate::custom_metrics::{MetricKind, MetricLabels};
use crate::error::ServingError;

fn text<'a>(call: &'a Value, name: &str) -> Result<&'a str, ServingError> {
    let found = call.get(name).and_then(Value::as_str);
    found.ok_or_else(|| {
        ServingError::invalid_arg(format!("'{name}' of a call of a metric is no text"))
    })
}

fn number(text: &str) -> Result<f64, ServingError> {
    text.parse().map_err(|_| ServingError::invalid_arg(format!("'{text}' found, not a number")))
}

/// Makes a family, or finds it: `name`, `description` and `kind`; its number.
pub(super) fn family(
    callee: &BlsCallee,
    calls: &BlsSocket,
    call: &Value,
) -> Result<Value, ServingError> {
    let kind = match text(call, "kind")? {
        "counter" => MetricKind::Counter,
        "gauge" => MetricKind::Gauge,
        "histogram" => MetricKind::Histogram,
        other => return Err(ServingError::invalid_arg(format!("'{other}' is no kind of metrics"))),
    };
    let family = callee.metrics().family(text(call, "name")?, text(call, "description")?, kind)?;
    let mut held = calls.metrics();
    let number = held.next();
    held.families.insert(number, family);
    Ok(number.into())
}

/// Makes a metric, or finds it: number of its `family`, `labels`, `buckets` as texts; its number.
pub(super) fn metric(
    _: &BlsCallee,
    calls: &BlsSocket,
    call: &Value,
) -> Result<Value, ServingError> {
    let family = call.get("family").and_then(Value::as_u64).unwrap_or_default();
    let mut labels = MetricLabels::new();
    for (name, value) in call.get("labels").and_then(Value::as_object).into_iter().flatten() {
        let value = value.as_str().ok_or_else(|| {
            ServingError::invalid_arg(format!("the label '{name}' of a metric is no text"))
        })?;
        labels.insert(name.clone(), value.to_owned());
    }
    let buckets = call.get("buckets").and_then(Value::as_array).map(|bounds| {
        bounds.iter().map(|bound| number(bound.as_str().unwrap_or_default())).collect()
    });
    let mut held = calls.metrics();
    let family = held.families.get(&family);
    let family = family.ok_or_else(|| ServingError::not_found("the metric family has gone"))?;
    let metric = family.metric(labels, buckets.transpose()?)?;
    let number = held.next();
    held.metrics.insert(number, metric);
    Ok(number.into())
}

/// Changes a metric, or asks for its value: `metric` is its number, `how` what is done, `value` a number as text.
pub(super) fn change(
    _: &BlsCallee,
    calls: &BlsSocket,
    call: &Value,
) -> Result<Value, ServingError> {
    let metric = call.get("metric").and_then(Value::as_u64).unwrap_or_default();
    let metric = calls.metrics().metrics.get(&metric).cloned();
    let metric = metric.ok_or_else(|| ServingError::not_found("the metric has gone"))?;
    match text(call, "how")? {
        "increment" => metric.increment(number(text(call, "value")?)?)?,
        "set" => metric.set(number(text(call, "value")?)?)?,
        "observe" => metric.observe(number(text(call, "value")?)?)?,
        "value" => return Ok(metric.value()?.to_string().into()),
        other => {
            return Err(ServingError::invalid_arg(format!("'{other}' found as a use of a metric")));
        }
    }
    Ok(Value::Null)
}
