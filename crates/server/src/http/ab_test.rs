//! The A/B test of a model: its settings, what was counted so far, and how it ended.

use galatea_runtime::tune::{ProportionTest, WelchTest};
use galatea_serving::ab_test::{
    AbOutcome, AbReport, StopReason, StopRules, VariantPlan, VariantReport, VariantStatistics,
};
use serde_json::{Value, json};

use super::endpoints::{CallContext, EndpointReply};
use super::message::{ContentType, HttpResponse};

/// Answers with the A/B test of a model.
pub(super) fn show(call: &CallContext<'_>) -> EndpointReply {
    EndpointReply::Ready(match call.app.core().ab_report(call.model) {
        Ok(report) => {
            HttpResponse::ok(ContentType::Json, described(&report).to_string().into_bytes())
        }
        Err(error) => HttpResponse::failure(ContentType::Json, &error),
    })
}

/// Describes a test as JSON.
fn described(report: &AbReport) -> Value {
    let AbReport { model, plan, variants, statistics } = report;
    let StopRules { confidence, min_requests, max_requests, max_error_rate, max_latency_ms } =
        plan.stop;
    let all = variants.iter().zip(&plan.variants).zip(&statistics.variants);
    let all: Vec<Value> =
        all.map(|((variant, plan), found)| of_variant(variant, plan, found)).collect();
    json!({
        "model": model,
        "state": if statistics.outcome.is_some() { "stopped" } else { "running" },
        "winner": statistics.outcome.map(|outcome| outcome.winner.name()),
        "reason": statistics.outcome.map(|outcome| outcome.reason.name()),
        "verdict": verdict(report),
        "share": plan.share,
        "sticky": plan.sticky.name(),
        "stop": {
            "confidence": confidence,
            "min_requests": min_requests,
            "max_requests": max_requests,
            "max_error_rate": max_error_rate,
            "max_latency_ms": max_latency_ms,
        },
        "variants": all,
        "latency": statistics.latency.map(|WelchTest { difference, interval, p }| {
            json!({"ratio": difference, "interval": interval, "p": p})
        }),
        "errors": statistics.failures.map(|ProportionTest { difference, interval, p }| {
            json!({"difference": difference, "interval": interval, "p": p})
        }),
        "needed_p": statistics.needed_p,
    })
}

fn of_variant(variant: &VariantReport, plan: &VariantPlan, found: &VariantStatistics) -> Value {
    let metal: Option<Value> =
        plan.metal_config.as_ref().and_then(|text| serde_json::from_str(text).ok());
    let percentile = |at: usize| found.percentiles_ms.and_then(|all| all.get(at).copied());
    json!({
        "name": variant.variant.name(),
        "version": variant.version.to_string(),
        "parameters": plan.parameters,
        "metal_config": metal,
        "share": variant.share,
        "requests": found.requests,
        "failures": found.failures,
        "error_rate": found.error_rate,
        "error_rate_interval": found.error_interval,
        "mean_ms": found.mean_ms,
        "p50_ms": percentile(0),
        "p95_ms": percentile(1),
        "p99_ms": percentile(2),
    })
}

/// The state of a test in a sentence.
fn verdict(report: &AbReport) -> String {
    let Some(AbOutcome { winner, reason }) = report.statistics.outcome else {
        return "The test is running.".to_owned();
    };
    let name = winner.name();
    let other = winner.other().name();
    match reason {
        StopReason::FewerFailures => format!("{name} won: it fails less often than {other}."),
        StopReason::Faster => format!("{name} won: it is faster than {other}."),
        StopReason::ErrorRate => {
            format!("{name} won: {other} fails more often than max_error_rate allows.")
        }
        StopReason::Latency => format!("{name} won: {other} is slower than max_latency_ms allows."),
        StopReason::Undecided => {
            format!("No difference was proved within max_requests; {name} serves on.")
        }
    }
}
