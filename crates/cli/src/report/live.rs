//! The A/B test of a model on a running server.

use std::time::Duration;

use serde_json::{Value, json};

use super::page::{ReportPage, TableCell};
use crate::http_client::{HttpClient, ServerAddress};

/// Longest time for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Writes the page about the test of a model on a server.
///
/// # Errors
/// Fails when the server does not answer, and with its words when the model has no test.
pub(super) fn report(model: &str, server: &ServerAddress) -> Result<(String, Value), String> {
    let data = json!({"ab_test": fetched(model, server)?});
    let test = &data["ab_test"];
    let mut page = ReportPage::new(&format!("A/B test of {model}"));
    page.section("Verdict");
    for sentence in verdicts(test) {
        page.verdict(&sentence);
    }
    page.section("Variants");
    let head = [
        "Variant",
        "Version",
        "Settings",
        "Share %",
        "Requests",
        "Failures",
        "Failures %",
        "Mean ms",
        "P50 ms",
        "P95 ms",
        "P99 ms",
    ];
    let rows: Vec<Vec<TableCell>> =
        test["variants"].as_array().into_iter().flatten().map(row).collect();
    page.table(&head, &rows);
    page.section("Rules");
    page.facts(&rules(test));
    page.note(
        "Latency is compared by the test of Welch on logarithms, failures by the pooled test of two proportions. A \
         difference counts below the chance above, which shares the confidence among all comparisons of the test.",
    );
    Ok((page.end(&data), data))
}

/// A few words on the test.
pub(super) fn summary(test: &Value) -> String {
    verdicts(test).join(" ")
}

fn fetched(model: &str, server: &ServerAddress) -> Result<Value, String> {
    let named = model.chars().all(|letter| letter.is_alphanumeric() || "-_.~".contains(letter));
    if model.is_empty() || !named {
        return Err(format!("'{model}' is no name of a model on a server"));
    }
    let failed = |why: &str| format!("no A/B test of '{model}' from {}: {why}", server.address);
    let mut client =
        HttpClient::connect_within(server, PATIENCE).map_err(|error| failed(&error.to_string()))?;
    let answer = client
        .get(&format!("/v2/models/{model}/ab"))
        .map_err(|error| failed(&error.to_string()))?;
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    match answer.status {
        200 if body.is_object() => Ok(body),
        status => {
            let said = body["error"].as_str().map(str::to_owned);
            Err(failed(&said.unwrap_or_else(|| format!("it answers with status {status}"))))
        }
    }
}

/// State of the test, and what the numbers say so far.
fn verdicts(test: &Value) -> Vec<String> {
    let mut all: Vec<String> = test["verdict"].as_str().map(str::to_owned).into_iter().collect();
    let percent = |value: &Value| value.as_f64().unwrap_or(f64::NAN) * 100.0;
    let latency = &test["latency"];
    if latency.is_object() {
        all.push(format!(
            "Latency of b is {:.1} % of that of a (between {:.1} and {:.1} %, p = {:.2e}).",
            percent(&latency["ratio"]),
            percent(&latency["interval"][0]),
            percent(&latency["interval"][1]),
            latency["p"].as_f64().unwrap_or(f64::NAN),
        ));
    }
    let errors = &test["errors"];
    if errors.is_object() {
        all.push(format!(
            "b fails in {:+.2} percentage points of requests more than a (between {:+.2} and {:+.2}, p = {:.2e}).",
            percent(&errors["difference"]),
            percent(&errors["interval"][0]),
            percent(&errors["interval"][1]),
            errors["p"].as_f64().unwrap_or(f64::NAN),
        ));
    }
    all
}

fn row(variant: &Value) -> Vec<TableCell> {
    let text = |name: &str| TableCell::text(variant[name].as_str().unwrap_or(""));
    let number = |name: &str, digits| TableCell::number(variant[name].as_f64(), digits);
    let percent =
        |name: &str| TableCell::number(variant[name].as_f64().map(|share| share * 100.0), 2);
    let mut settings: Vec<String> = Vec::new();
    for object in ["parameters", "metal_config"] {
        let members = variant[object].as_object().into_iter().flatten();
        settings.extend(members.map(|(name, value)| match value.as_str() {
            Some(text) => format!("{name}={text}"),
            None => format!("{name}={value}"),
        }));
    }
    vec![
        text("name"),
        text("version"),
        TableCell::text(settings.join(", ")),
        percent("share"),
        number("requests", 0),
        number("failures", 0),
        percent("error_rate"),
        number("mean_ms", 3),
        number("p50_ms", 3),
        number("p95_ms", 3),
        number("p99_ms", 3),
    ]
}

fn rules(test: &Value) -> Vec<(String, String)> {
    let stop = test["stop"].as_object().into_iter().flatten();
    let stop = stop.filter(|(_, value)| !value.is_null());
    let mut all: Vec<(String, String)> =
        stop.map(|(name, value)| (name.clone(), value.to_string())).collect();
    for name in ["share", "sticky", "needed_p"] {
        let value = &test[name];
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        all.push((name.to_owned(), text));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test() -> Value {
        json!({
            "model": "m", "state": "stopped", "verdict": "b won: it is faster than a.",
            "share": 0.5, "sticky": "none", "needed_p": 0.003,
            "stop": {"confidence": 0.95, "max_error_rate": null},
            "variants": [
                {"name": "a", "version": "1", "parameters": {}, "metal_config": null, "share": 0.0,
                 "requests": 100, "failures": 1, "error_rate": 0.01, "p50_ms": 2.0},
                {"name": "b", "version": "1", "parameters": {"x": "y"}, "metal_config": {"precision": "fp16"},
                 "share": 1.0, "requests": 90, "failures": 0, "error_rate": 0.0, "p50_ms": 1.0},
            ],
            "latency": {"ratio": 0.5, "interval": [0.4, 0.6], "p": 0.0001},
            "errors": {"difference": -0.01, "interval": [-0.05, 0.02], "p": 0.4},
        })
    }

    #[test]
    fn sentences_tell_what_was_found() {
        let said = summary(&test());
        assert!(
            said.starts_with("b won: it is faster than a. Latency of b is 50.0 % of that of a"),
            "{said}"
        );
        assert!(said.contains("b fails in -1.00 percentage points"), "{said}");
        assert_eq!(verdicts(&json!({"verdict": "The test is running.", "latency": null})).len(), 1);
    }

    #[test]
    fn tables_show_settings_and_rules() {
        let b = row(&test()["variants"][1]);
        assert_eq!(b[2], TableCell::text("x=y, precision=fp16"));
        assert_eq!(b[3], TableCell::Number("100.00".to_owned()));
        let rules = rules(&test());
        assert!(rules.contains(&("confidence".to_owned(), "0.95".to_owned())));
        assert!(!rules.iter().any(|(name, _)| name == "max_error_rate"));
    }

    #[test]
    fn names_that_no_model_has_are_refused_before_anybody_is_asked() {
        let address =
            ServerAddress { address: ([127, 0, 0, 1], 1).into(), tls: None, headers: Vec::new() };
        for name in ["", "a/b", "a b", "a\r\nX: y"] {
            assert!(fetched(name, &address).unwrap_err().contains("is no name of a model"));
        }
    }
}
