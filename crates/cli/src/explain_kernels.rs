//! Lists the choices between kernels that a model has, each with its record.

use galatea::tuning::TuningRecords;
use galatea_runtime::tune::{TuningProblem, TuningRecord};
use galatea_runtime::{Session, TuningInput};
use galatea_tensor::Tensor;

use crate::table::table;

/// The choices that have a record, as a table, for runs with these numbers of rows. Nothing where this machine has no
/// record: then the model is not run either.
///
/// # Errors
/// Fails when the model does not run.
pub(super) fn text(
    session: &Session,
    rows: &[usize],
    records: &TuningRecords,
) -> Result<Option<String>, String> {
    if records.count() == 0 {
        return Ok(None);
    }
    let mut all: Vec<KernelLine> = Vec::new();
    for shapes in rows.iter().filter_map(|&rows| session.usual_shapes(rows)) {
        for problem in problems(session, &shapes)? {
            let line = KernelLine::new(problem, records);
            if all.iter().all(|known| !known.is_like(&line)) {
                all.push(line);
            }
        }
    }
    Ok(Some(rendered(&all)))
}

fn problems(session: &Session, shapes: &[TuningInput]) -> Result<Vec<TuningProblem>, String> {
    let made = session.inputs().iter().zip(shapes).map(|(input, shape)| {
        let zeros = Tensor::zeros(shape.dtype, &shape.shape).map_err(|error| error.to_string());
        Ok((input.name.as_str(), zeros?))
    });
    let made: Vec<(&str, Tensor)> = made.collect::<Result<_, String>>()?;
    session.problems(&made).map_err(|error| error.to_string())
}

/// A choice and what is on record for it.
struct KernelLine {
    family: String,
    bucket: String,
    record: Option<TuningRecord>,
}

impl KernelLine {
    fn new(problem: TuningProblem, records: &TuningRecords) -> Self {
        let record = records.find(&problem);
        Self { family: problem.family, bucket: problem.bucket, record }
    }

    fn is_like(&self, other: &Self) -> bool {
        (&self.family, &self.bucket) == (&other.family, &other.bucket)
    }
}

fn rendered(all: &[KernelLine]) -> String {
    let rows: Vec<Vec<String>> = all
        .iter()
        .filter_map(|KernelLine { family, bucket, record }| {
            let record = record.as_ref()?;
            let gain = format!("{:.2}", record.default_ns / record.time_ns.max(1e-9));
            Some(vec![family.clone(), bucket.clone(), record.choice.clone(), gain])
        })
        .collect();
    let count = format!("{} of {} choices between kernels have a record", rows.len(), all.len());
    match rows.is_empty() {
        true => count,
        false => format!("{}{count}", table(&["Kernels", "Lengths", "Choice", "Gain"], rows)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_with_a_record_are_shown_and_all_are_counted() {
        let record = TuningRecord {
            choice: "threads=1".to_owned(),
            time_ns: 2.0,
            default_ns: 3.0,
            trials: 2,
            others: Vec::new(),
            refused: Vec::new(),
        };
        let line = |bucket: &str, record| KernelLine {
            family: "threads Conv".to_owned(),
            bucket: bucket.to_owned(),
            record,
        };
        let text = rendered(&[line("in64", Some(record)), line("in128", None)]);
        assert!(text.contains("threads=1") && text.contains("1.50") && !text.contains("in128"));
        assert!(text.ends_with("1 of 2 choices between kernels have a record"), "{text}");
        assert_eq!(rendered(&[]), "0 of 0 choices between kernels have a record");
    }
}
