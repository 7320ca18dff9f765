//! `sequence` and `dyna_sequence`: the running sum of `INPUT` within a sequence.
//!
//! The control tensors are those that the configuration names. START sets the sum to the input, every other request
//! adds to it; `OUTPUT` is the sum in each element. Items that are not READY give 0. Without a CORRID control the
//! place in the batch tells the sequences apart, as the direct strategy guarantees. `dyna_sequence` adds the
//! correlation ID to the output of a sequence's last request. Types: INT32 and FP32. Parameter: `execute_delay_ms`.
//! Sequences whose end nothing tells (no END control, or given up for idleness) are forgotten when too many others have
//! come since.

use std::collections::HashMap;
use std::time::Duration;

use galatea_tensor::{ByteString, DataType, Tensor};

use super::delay::{self, ExecuteDelay};
use crate::backend::{
    BackendModel, BatchPayload, InstancePlacement, ModelBackend, ModelFiles, ModelInstance, ModelIo,
};
use crate::batch::{self, NamedTensors};
use crate::config::ModelConfig;
use crate::config::inference::ModelSequenceBatching;
use crate::config::inference::model_config::SchedulingChoice;
use crate::config::inference::model_sequence_batching::StrategyChoice;
use crate::config::inference::model_sequence_batching::control::Kind;
use crate::error::ServingError;

/// Fewest sums that an instance can keep.
/// Source: far more than the candidates of any example; a sum takes about a hundred bytes.
const MIN_SUMS: usize = 1 << 14;

/// See the module.
#[derive(Debug)]
pub(super) struct SequenceBackend;

/// See the module.
#[derive(Debug)]
pub(super) struct DynaSequenceBackend;

impl ModelBackend for SequenceBackend {
    fn name(&self) -> &'static str {
        "sequence"
    }

    fn default_model_filename(&self) -> &'static str {
        ""
    }

    fn load(&self, files: &ModelFiles) -> Result<Box<dyn BackendModel>, ServingError> {
        Ok(Box::new(AccumulatorModel::new(files, AtEnd::Sum)?))
    }
}

impl ModelBackend for DynaSequenceBackend {
    fn name(&self) -> &'static str {
        "dyna_sequence"
    }

    fn default_model_filename(&self) -> &'static str {
        ""
    }

    fn load(&self, files: &ModelFiles) -> Result<Box<dyn BackendModel>, ServingError> {
        let model = AccumulatorModel::new(files, AtEnd::SumAndCorrelation)?;
        for (kind, tensor) in
            [("END", &model.controls.end), ("CORRID", &model.controls.correlation)]
        {
            if tensor.is_none() {
                return Err(ServingError::invalid_arg(format!(
                    "model '{}' must have a {kind} control to use the dyna_sequence backend",
                    files.name
                )));
            }
        }
        Ok(Box::new(model))
    }
}

/// Answer to the last request of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AtEnd {
    Sum,
    SumAndCorrelation,
}

/// Names of the control tensors.
#[derive(Clone, Debug, Default)]
struct ControlNames {
    start: Option<String>,
    end: Option<String>,
    ready: Option<String>,
    correlation: Option<String>,
}

impl ControlNames {
    fn from_config(config: &ModelConfig) -> Result<Self, ServingError> {
        let Some(SchedulingChoice::SequenceBatching(batching)) = &config.scheduling_choice else {
            return Err(ServingError::invalid_arg(format!(
                "model '{}' must have 'sequence_batching' to use a sequence backend",
                config.name
            )));
        };
        let mut controls = Self::default();
        for input in &batching.control_input {
            for control in &input.control {
                let slot = match control.kind() {
                    Kind::ControlSequenceStart => &mut controls.start,
                    Kind::ControlSequenceEnd => &mut controls.end,
                    Kind::ControlSequenceReady => &mut controls.ready,
                    Kind::ControlSequenceCorrid => &mut controls.correlation,
                };
                *slot = Some(input.name.clone());
            }
        }
        Ok(controls)
    }
}

struct AccumulatorModel {
    controls: ControlNames,
    at_end: AtEnd,
    delay: ExecuteDelay,
}

impl AccumulatorModel {
    fn new(files: &ModelFiles, at_end: AtEnd) -> Result<Self, ServingError> {
        Ok(Self {
            controls: ControlNames::from_config(&files.config)?,
            at_end,
            delay: ExecuteDelay::from_files(files)?,
        })
    }
}

impl BackendModel for AccumulatorModel {
    fn io(&self) -> Option<&ModelIo> {
        None
    }

    fn instance(
        &self,
        placement: &InstancePlacement,
    ) -> Result<Box<dyn ModelInstance>, ServingError> {
        Ok(Box::new(SequenceAccumulator {
            controls: self.controls.clone(),
            at_end: self.at_end,
            delay: self.delay.of(placement),
            sums: SequenceSums { most: most_sums(&placement.config), ..SequenceSums::default() },
        }))
    }
}

/// Key that tells a sequence from the others of an instance.
type AccumulatedSequence = String;

struct SequenceAccumulator {
    controls: ControlNames,
    at_end: AtEnd,
    delay: Duration,
    sums: SequenceSums,
}

/// Twice as many sums as there can be candidates, so that no candidate is among the forgotten half.
fn most_sums(config: &ModelConfig) -> usize {
    let candidates = match &config.scheduling_choice {
        Some(SchedulingChoice::SequenceBatching(ModelSequenceBatching {
            strategy_choice: Some(StrategyChoice::Oldest(oldest)),
            ..
        })) => usize::try_from(oldest.max_candidate_sequences).unwrap_or(0),
        _ => 0,
    };
    candidates.saturating_mul(2).max(MIN_SUMS)
}

/// Sums of sequences, as many as there is room for.
#[derive(Default)]
struct SequenceSums {
    of: HashMap<AccumulatedSequence, SequenceSum>,
    most: usize,
    /// Counts the uses of all sums.
    uses: u64,
}

#[derive(Default)]
struct SequenceSum {
    value: f64,
    /// The number of its last use.
    used: u64,
}

impl SequenceSums {
    /// The sum of a sequence, 0 where it is new.
    fn get(&mut self, key: &str) -> &mut f64 {
        if self.of.len() >= self.most && !self.of.contains_key(key) {
            self.forget_half();
        }
        self.uses += 1;
        let sum = self.of.entry(key.to_owned()).or_default();
        sum.used = self.uses;
        &mut sum.value
    }

    /// Forgets the half that was not used for longest.
    fn forget_half(&mut self) {
        let mut uses: Vec<u64> = self.of.values().map(|sum| sum.used).collect();
        let middle = uses.len() / 2;
        let (_, &mut from, _) = uses.select_nth_unstable(middle);
        self.of.retain(|_, sum| sum.used >= from);
    }
}

impl ModelInstance for SequenceAccumulator {
    fn execute(&mut self, payload: BatchPayload) {
        if !self.delay.is_zero() {
            delay::wait(self.delay, &payload);
        }
        batch::execute_apart(payload, |first, inputs| self.run(first, &inputs));
    }
}

impl SequenceAccumulator {
    /// Computes the outputs of rows of a batch, of which the first has this number.
    fn run(&mut self, first: usize, inputs: &NamedTensors) -> Result<NamedTensors, ServingError> {
        let named = |name: &str| inputs.iter().find(|(input, _)| input == name).map(|(_, t)| t);
        let input = named("INPUT").ok_or_else(|| {
            ServingError::invalid_arg("a sequence backend needs an input 'INPUT'")
        })?;
        let values = numbers(input)?;
        let rows = self.rows(first, inputs, input)?;
        let each = values.len().checked_div(rows.len()).unwrap_or(0).max(1);
        let mut sums = Vec::with_capacity(values.len());
        for (row, values) in rows.iter().zip(values.chunks(each)) {
            sums.extend(self.step(row, values));
        }
        Ok(vec![("OUTPUT".to_owned(), of_type(input.dtype(), input.shape(), &sums)?)])
    }

    /// The outputs of one item.
    fn step(&mut self, row: &BatchItem, values: &[f64]) -> Vec<f64> {
        if !row.ready {
            return vec![0.0; values.len()];
        }
        let sum = self.sums.get(&row.key);
        if row.start {
            *sum = 0.0;
        }
        *sum += values.iter().sum::<f64>();
        let mut shown = *sum;
        if row.end {
            self.sums.of.remove(&row.key);
            if self.at_end == AtEnd::SumAndCorrelation {
                shown += row.key.parse::<f64>().unwrap_or(0.0);
            }
        }
        vec![shown; values.len()]
    }

    fn rows(
        &self,
        first: usize,
        inputs: &NamedTensors,
        input: &Tensor,
    ) -> Result<Vec<BatchItem>, ServingError> {
        let control = |name: &Option<String>, absent: bool| {
            let tensor = name.as_ref().and_then(|name| inputs.iter().find(|(n, _)| n == name));
            let Some((_, tensor)) = tensor else { return Ok(None) };
            let set = numbers(tensor)?.into_iter().map(|value| value != 0.0);
            Ok::<_, ServingError>(Some((set.collect::<Vec<bool>>(), absent)))
        };
        let start = control(&self.controls.start, false)?;
        let end = control(&self.controls.end, false)?;
        let ready = control(&self.controls.ready, true)?;
        let keys = match &self.controls.correlation {
            Some(name) => {
                inputs.iter().find(|(n, _)| n == name).map(|(_, t)| texts(t)).transpose()?
            }
            None => None,
        };
        let counts = [&start, &end, &ready].into_iter().flatten().map(|(set, _)| set.len());
        let rows = counts.max().unwrap_or_else(|| input.shape().first().copied().unwrap_or(1));
        let at = |set: &Option<(Vec<bool>, bool)>, row: usize, absent: bool| {
            set.as_ref().and_then(|(set, _)| set.get(row).copied()).unwrap_or(absent)
        };
        let row = |number: usize| BatchItem {
            key: keys
                .as_ref()
                .and_then(|keys| keys.get(number).cloned())
                .unwrap_or_else(|| (first + number).to_string()),
            start: at(&start, number, false),
            end: at(&end, number, false),
            ready: at(&ready, number, true),
        };
        Ok((0..rows).map(row).collect())
    }
}

/// One item of a batch.
struct BatchItem {
    key: AccumulatedSequence,
    start: bool,
    end: bool,
    ready: bool,
}

fn numbers(tensor: &Tensor) -> Result<Vec<f64>, ServingError> {
    Ok(match tensor.dtype() {
        DataType::Int32 => tensor.to_vec::<i32>()?.into_iter().map(f64::from).collect(),
        DataType::Fp32 => tensor.to_vec::<f32>()?.into_iter().map(f64::from).collect(),
        DataType::Bool => {
            tensor.to_vec::<bool>()?.into_iter().map(|set| f64::from(u8::from(set))).collect()
        }
        other => {
            return Err(ServingError::invalid_arg(format!(
                "a sequence backend takes INT32, FP32 and BOOL, found {}",
                other.wire_name()
            )));
        }
    })
}

fn texts(tensor: &Tensor) -> Result<Vec<String>, ServingError> {
    Ok(match tensor.dtype() {
        DataType::Uint64 => tensor.to_vec::<u64>()?.iter().map(ToString::to_string).collect(),
        DataType::Int64 => tensor.to_vec::<i64>()?.iter().map(ToString::to_string).collect(),
        DataType::Uint32 => tensor.to_vec::<u32>()?.iter().map(ToString::to_string).collect(),
        DataType::Int32 => tensor.to_vec::<i32>()?.iter().map(ToString::to_string).collect(),
        DataType::Bytes => {
            let strings = tensor.to_vec::<ByteString>()?;
            strings
                .iter()
                .map(|text| String::from_utf8_lossy(text.as_bytes()).into_owned())
                .collect()
        }
        other => {
            return Err(ServingError::internal(format!(
                "a correlation ID cannot have the type {}",
                other.wire_name()
            )));
        }
    })
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::as_conversions,
    reason = "sums of INT32 values that leave their range saturate, and FP32 has fewer digits"
)]
fn of_type(dtype: DataType, shape: &[usize], values: &[f64]) -> Result<Tensor, ServingError> {
    Ok(if dtype == DataType::Fp32 {
        Tensor::from_vec(shape, values.iter().map(|&value| value as f32).collect::<Vec<_>>())?
    } else {
        Tensor::from_vec(shape, values.iter().map(|&value| value as i32).collect::<Vec<_>>())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_that_are_long_unused_make_room() {
        let mut sums = SequenceSums { most: 8, ..SequenceSums::default() };
        for number in 0..1000 {
            *sums.get("kept") += 1.0;
            *sums.get(&number.to_string()) += f64::from(number);
            assert!(sums.of.len() <= 8);
        }
        assert_eq!((*sums.get("kept"), *sums.get("999"), *sums.get("0")), (1000.0, 999.0, 0.0));
    }

    #[test]
    fn there_is_room_for_all_candidates() {
        let config = |strategy: &str| {
            crate::config::from_text(&format!("name: 'm' sequence_batching {{ {strategy} }}"))
                .unwrap()
        };
        assert_eq!(most_sums(&config("direct { }")), MIN_SUMS);
        assert_eq!(most_sums(&config("oldest { max_candidate_sequences: 50000 }")), 100_000);
    }
}
