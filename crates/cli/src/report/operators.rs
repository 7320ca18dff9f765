//! Tables of operators, and how their times add up.

use serde_json::Value;

use super::page::TableCell;
use crate::step_profile::{HOST, ReachedPeak};

/// Rows of a table of operators.
const LISTED: usize = 40;

/// The head of a table of operators.
pub(super) const OPERATORS: &[&str] =
    &["Operator", "Kernel", "Starts", "us", "Share", "", "GFLOP/s", "GB/s", "Of peak %", "Bound"];

/// Its rows, of what [`DeviceRoofs::json`] says.
pub(super) fn operator_rows(profile: &Value) -> Vec<Vec<TableCell>> {
    let kernels = profile["kernels"].as_array().into_iter().flatten();
    let kernels: Vec<&Value> = kernels.filter(|kernel| kernel["operator"] != HOST).collect();
    let all: f64 = kernels.iter().filter_map(|kernel| kernel["us"].as_f64()).sum();
    let row = |kernel: &Value| {
        let number = |name: &str| kernel[name].as_f64();
        let text = |name: &str| TableCell::text(kernel[name].as_str().unwrap_or(""));
        let share = number("us").unwrap_or(0.0) / all.max(1e-12);
        let some = |value: Option<f64>| value.filter(|value| *value > 0.0);
        let shares = [number("compute_share"), number("memory_share")];
        let reached = ReachedPeak::of(shares, kernel["bound"].as_str().unwrap_or(""));
        vec![
            text("operator"),
            text("kernel"),
            TableCell::number(number("starts"), 0),
            match kernel["estimated"].as_bool() {
                Some(true) => TableCell::Number(format!("~{:.1}", number("us").unwrap_or(0.0))),
                _ => TableCell::number(number("us"), 1),
            },
            TableCell::Number(format!("{:.1} %", share * 100.0)),
            TableCell::Bar(share),
            TableCell::number(some(number("gflops")), 2),
            TableCell::number(some(number("gb_per_s")), 2),
            TableCell::number(reached.share.map(|share| share * 100.0), 0),
            TableCell::Text(reached.bound),
        ]
    };
    let mut rows: Vec<Vec<TableCell>> = kernels.iter().take(LISTED).copied().map(row).collect();
    if let Some(rest) = kernels.get(LISTED..).filter(|rest| !rest.is_empty()) {
        rows.push(other_operators(rest, all));
    }
    rows
}

/// The row of all operators that have none of their own, so that shares add up.
fn other_operators(rest: &[&Value], all: f64) -> Vec<TableCell> {
    let sum = |name: &str| rest.iter().filter_map(|kernel| kernel[name].as_f64()).sum::<f64>();
    let share = sum("us") / all.max(1e-12);
    let mut row = vec![
        TableCell::text(format!("{} others", rest.len())),
        TableCell::text(""),
        TableCell::number(Some(sum("starts")), 0),
        TableCell::number(Some(sum("us")), 1),
        TableCell::Number(format!("{:.1} %", share * 100.0)),
        TableCell::Bar(share),
    ];
    row.resize(OPERATORS.len(), TableCell::text(""));
    row
}

/// Says how the time of a run, in microseconds, and those of its operators add up.
pub(super) fn parts_of_time(what: &str, whole_us: f64, profile: &Value) -> String {
    let kernels = profile["kernels_us"].as_f64().unwrap_or(0.0);
    let begin = format!("{what} takes {whole_us:.1} us, its operators {kernels:.1} us together");
    let rest = whole_us - kernels;
    match rest >= 0.0 {
        true => format!("{begin}, and what is around them {rest:.1} us."),
        false => format!("{begin}: they are timed one by one, which takes {:.1} us.", -rest),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_and_shares_add_up() {
        let kernel = |us: f64| json!({"operator": "Add", "kernel": "k", "us": us, "starts": 2});
        let all: Vec<Value> = (0..LISTED + 2).map(|_| kernel(1.0)).collect();
        let rows = operator_rows(&json!({"kernels": all, "kernels_us": 42.0}));
        assert_eq!(rows.len(), LISTED + 1);
        assert!(rows.iter().all(|row| row.len() == OPERATORS.len()));
        let last = rows.last().unwrap();
        assert_eq!(last[0], TableCell::text("2 others"));
        assert_eq!(last[2], TableCell::Number("4".to_owned()));
        assert_eq!(last[4], TableCell::Number("4.8 %".to_owned()));
        let profile = json!({"kernels_us": 42.0});
        let text = parts_of_time("A run", 50.0, &profile);
        assert_eq!(
            text,
            "A run takes 50.0 us, its operators 42.0 us together, and what is around them 8.0 us."
        );
        let text = parts_of_time("A run", 40.0, &profile);
        assert!(text.ends_with("they are timed one by one, which takes 2.0 us."), "{text}");
    }

    #[test]
    fn bytes_beyond_those_of_memory_are_no_share_of_it() {
        let kernel = json!({"operator": "Add", "kernel": "k", "us": 1.0, "compute_share": 0.25,
            "memory_share": 3.0, "bound": "memory"});
        let rows = operator_rows(&json!({"kernels": [kernel]}));
        assert_eq!(rows[0][8], TableCell::Number("25".to_owned()));
        assert_eq!(rows[0][9], TableCell::text("cache"));
    }
}
