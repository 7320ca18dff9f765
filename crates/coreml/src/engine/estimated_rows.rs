//! Times of the operators of a prediction, as far as a plan tells.
//!
//! Core ML times no operator of a prediction. Its plan gives each operator a weight: its share of the cost of all, as
//! Core ML estimates it. A weight times the measured time of the prediction is what the operator took if the
//! estimate is right, and is marked as such.

use std::time::Duration;

use galatea_runtime::{PlacedOperator, ProfileRow};

use crate::NAME;

/// Operator of the row of a prediction whose plan has no weights. Its time is measured.
const WHOLE: &str = "prediction";

/// Returns a row for each operator with a weight, whose times add up to `time`; one row of the whole prediction where
/// no operator has any.
pub(super) fn estimated_rows(placed: &[PlacedOperator], time: Duration) -> Vec<ProfileRow> {
    let weight = |row: &PlacedOperator| row.weight.filter(|one| one.is_finite() && *one > 0.0);
    let whole: f64 = placed.iter().filter_map(weight).sum();
    if whole <= 0.0 {
        let kernel = WHOLE.to_owned();
        let op = WHOLE.to_owned();
        return vec![ProfileRow { op, kernel, provider: NAME, time, ..ProfileRow::default() }];
    }
    let row = |row: &PlacedOperator| {
        Some(ProfileRow {
            node: row.outputs.first().cloned().unwrap_or_default(),
            op: operator_name(&row.operator).to_owned(),
            kernel: format!("{} on {}", row.operator, row.planned),
            provider: NAME,
            time: time.mul_f64(weight(row)? / whole),
            estimated: true,
            ..ProfileRow::default()
        })
    };
    placed.iter().filter_map(row).collect()
}

/// The name of an operator without its opset, such as `conv` of `ios16.conv`.
fn operator_name(planned: &str) -> &str {
    planned.rsplit_once('.').map_or(planned, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(operator: &str, weight: Option<f64>) -> PlacedOperator {
        PlacedOperator {
            operator: operator.to_owned(),
            outputs: vec![format!("{operator}_0")],
            planned: "Neural Engine".to_owned(),
            supported: Vec::new(),
            weight,
        }
    }

    #[test]
    fn weights_divide_the_time_of_a_prediction_and_are_marked_as_estimates() {
        let plan = [
            placed("ios16.conv", Some(0.6)),
            placed("ios16.relu", Some(0.2)),
            placed("const", None),
            placed("ios16.odd", Some(f64::NAN)),
            placed("ios16.less", Some(-1.0)),
        ];
        let rows = estimated_rows(&plan, Duration::from_micros(800));
        let found: Vec<_> =
            rows.iter().map(|row| (row.op.as_str(), row.time.as_micros(), row.estimated)).collect();
        assert_eq!(found, [("conv", 600, true), ("relu", 200, true)]);
        assert_eq!(rows[0].kernel, "ios16.conv on Neural Engine");
        assert_eq!((rows[0].node.as_str(), rows[0].provider), ("ios16.conv_0", NAME));
    }

    #[test]
    fn a_plan_without_weights_leaves_the_time_of_the_whole_which_is_measured() {
        for plan in [vec![], vec![placed("ios16.conv", None)], vec![placed("a", Some(0.0))]] {
            let rows = estimated_rows(&plan, Duration::from_micros(9));
            assert_eq!(rows.len(), 1);
            assert_eq!((rows[0].op.as_str(), rows[0].time.as_micros()), (WHOLE, 9));
            assert!(!rows[0].estimated);
        }
    }
}
