//! The operators that take most of the time of a profile.

use serde_json::{Value, json};

/// Members of an operator that a bottleneck repeats.
const MEMBERS: [&str; 8] =
    ["operator", "kernel", "unit", "share", "total_ms", "bound", "compute_share", "memory_share"];

/// Lists the operators that take most of the time in a summary of a profile, the slowest first: each as a JSON object
/// with its model, its share of the model's time, and what bounds it where that is known.
#[must_use]
pub fn bottlenecks(summary: &Value, limit: usize) -> Vec<Value> {
    let time = |row: &Value| row["total_ms"].as_f64().unwrap_or(0.0);
    let mut rows = Vec::new();
    for model in summary["models"].as_array().into_iter().flatten() {
        for operator in model["operators"].as_array().into_iter().flatten() {
            let mut row = json!({"model": model["model"]});
            for name in MEMBERS {
                if let Some(value) = operator.get(name) {
                    row[name] = value.clone();
                }
            }
            rows.push(row);
        }
    }
    rows.sort_by(|a, b| time(b).total_cmp(&time(a)));
    rows.truncate(limit);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_operators_of_all_models_come_first_with_what_is_known_of_them() {
        let operator = |name: &str, ms: f64| json!({"operator": name, "total_ms": ms, "count": 1});
        let summary = json!({"models": [
            {"model": "a", "operators": [operator("Add", 1.0), operator("Mul", 5.0)]},
            {"model": "b", "operators": [operator("Conv", 3.0)]},
        ]});
        let found = bottlenecks(&summary, 2);
        let expected = [
            json!({"model": "a", "operator": "Mul", "total_ms": 5.0}),
            json!({"model": "b", "operator": "Conv", "total_ms": 3.0}),
        ];
        assert_eq!(found, expected);
        assert!(bottlenecks(&json!({}), 2).is_empty());
    }
}
