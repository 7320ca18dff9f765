//! Comparison of a converted model with the one in FP32, output by output.

use galatea_graph::converted;
use galatea_tensor::{DataType, Tensor};

use super::NamedInputs;
use super::calibrate::named;
use super::measure::{LikenessSums, OutputLikeness};
use crate::binding::IoInfo;
use crate::error::RuntimeError;
use crate::session::{Run, Session};

/// Comparison of an output with that of FP32, over all samples.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputComparison {
    /// The output, by its name in the first model.
    pub name: String,
    /// Likeness of all values.
    pub likeness: OutputLikeness,
    /// The greatest difference of two elements that are finite in both.
    pub largest: f64,
    /// The same, as a share of the greatest magnitude in FP32.
    pub relative: f64,
    /// Elements that are finite in FP32 only, or no numbers in the other only.
    pub broken: u64,
    /// All elements.
    pub elements: u64,
}

impl OutputComparison {
    /// The greatest difference of two elements, absolute and as a share; infinite where one is finite in FP32 only.
    #[must_use]
    pub fn apart(&self) -> (f64, f64) {
        match self.broken {
            0 => (self.largest, self.relative),
            _ => (f64::INFINITY, f64::INFINITY),
        }
    }
}

#[derive(Clone, Debug, Default)]
struct ComparisonSums {
    sums: LikenessSums,
    largest: f64,
    magnitude: f64,
    broken: u64,
    elements: u64,
}

impl ComparisonSums {
    fn add(&mut self, first: &Tensor, second: &Tensor) -> Result<(), RuntimeError> {
        if first.elements() != second.elements() {
            return refuse(format!("{:?} and {:?} are compared", first.shape(), second.shape()));
        }
        let first = comparable(first)?;
        let second = comparable(second)?;
        self.sums.add(&first, &second)?;
        let single = |tensor: &Tensor| -> Result<Vec<f32>, RuntimeError> {
            Ok(convert(tensor, DataType::Fp32)?.to_vec::<f32>()?)
        };
        for (a, b) in single(&first)?.into_iter().zip(single(&second)?) {
            let a = f64::from(a);
            let b = f64::from(b);
            self.elements += 1;
            match (a.is_finite(), b.is_finite()) {
                (true, true) => self.largest = self.largest.max((a - b).abs()),
                (true, false) => self.broken += 1,
                (false, _) => self.broken += u64::from(b.is_nan() && !a.is_nan()),
            }
            if a.is_finite() {
                self.magnitude = self.magnitude.max(a.abs());
            }
        }
        Ok(())
    }

    fn finished(&self, name: String) -> OutputComparison {
        let relative =
            if self.magnitude > 0.0 { self.largest / self.magnitude } else { self.largest };
        let likeness = self.sums.likeness();
        let largest = self.largest;
        let broken = self.broken;
        OutputComparison { name, likeness, largest, relative, broken, elements: self.elements }
    }
}

fn refuse<T>(text: String) -> Result<T, RuntimeError> {
    Err(RuntimeError::Quantise(text))
}

fn convert(tensor: &Tensor, dtype: DataType) -> Result<Tensor, RuntimeError> {
    if tensor.dtype() == dtype {
        return Ok(tensor.clone());
    }
    converted(tensor, dtype).map_err(|error| RuntimeError::Quantise(error.to_string()))
}

/// Floats as FP32, all else as integers.
fn comparable(tensor: &Tensor) -> Result<Tensor, RuntimeError> {
    match tensor.dtype() {
        DataType::Fp16 | DataType::Bf16 | DataType::Fp32 | DataType::Fp64 => {
            convert(tensor, DataType::Fp32)
        }
        DataType::Bytes => refuse("texts are compared with nothing".to_owned()),
        _ => convert(tensor, DataType::Int64),
    }
}

/// An input as another form of the model takes it: other types, and axes where it has none.
fn fitted(tensor: &Tensor, input: &IoInfo) -> Result<Tensor, RuntimeError> {
    let tensor = convert(tensor, input.dtype)?;
    if input.ranked && tensor.elements() == 1 && tensor.rank() != input.dims.len() {
        return Ok(tensor.reshape(&vec![1; input.dims.len()])?);
    }
    Ok(tensor)
}

/// Runs a model and another form of it on samples, whose names are those of the first, and compares
/// their outputs. Inputs and outputs of the other are the same in their order; names and types need not
/// be.
///
/// # Errors
/// Fails when a run fails, or the two do not fit each other.
pub fn compare(
    first: &Session,
    second: &Session,
    samples: &[NamedInputs],
) -> Result<Vec<OutputComparison>, RuntimeError> {
    let counts = |session: &Session| (session.inputs().len(), session.outputs().len());
    if counts(first) != counts(second) {
        return refuse(format!(
            "{:?} inputs and outputs are compared with {:?}",
            counts(first),
            counts(second)
        ));
    }
    let mut tallies = vec![ComparisonSums::default(); first.outputs().len()];
    for (index, sample) in samples.iter().enumerate() {
        let at = |error: RuntimeError| match error {
            RuntimeError::Input(text) => {
                RuntimeError::Input(format!("sample {}: {text}", index + 1))
            }
            other => other,
        };
        let expected = first.run_tensors(Run::named(&named(sample))).map_err(at)?;
        let mut inputs = Vec::with_capacity(sample.len());
        for (own, other) in first.inputs().iter().zip(second.inputs()) {
            let given = sample.iter().find(|(name, _)| *name == own.name);
            let Some((_, tensor)) = given else {
                return refuse(format!("sample {} has no '{}'", index + 1, own.name));
            };
            inputs.push((other.name.as_str(), fitted(tensor, other)?));
        }
        let found = second.run_tensors(Run::named(&inputs)).map_err(at)?;
        for ((tally, expected), found) in tallies.iter_mut().zip(&expected).zip(&found) {
            tally.add(expected, found)?;
        }
    }
    let names = first.outputs().iter().map(|output| output.name.clone());
    Ok(tallies.iter().zip(names).map(|(tally, name)| tally.finished(name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_counted_by_size_and_broken_elements_apart() {
        let mut tally = ComparisonSums::default();
        let x = |values: Vec<f32>| Tensor::from_vec(&[1, values.len()], values).unwrap();
        tally.add(&x(vec![1.0, -4.0, 2.0]), &x(vec![1.5, -4.0, 2.0])).unwrap();
        tally.add(&x(vec![1.0, 0.0, 0.0]), &x(vec![1.0, f32::INFINITY, 0.0])).unwrap();
        let found = tally.finished("y".to_owned());
        assert_eq!((found.largest, found.relative, found.broken), (0.5, 0.125, 1));
        assert_eq!((found.likeness.rows, found.elements), (2, 6));
        assert_eq!(found.apart(), (f64::INFINITY, f64::INFINITY));
        assert!(tally.add(&x(vec![1.0]), &x(vec![1.0, 2.0])).is_err());
    }

    #[test]
    fn what_is_no_number_in_both_is_not_broken() {
        let mut tally = ComparisonSums::default();
        let nan = f32::NAN;
        let inf = f32::INFINITY;
        let x = |values: Vec<f32>| Tensor::vector(values);
        tally.add(&x(vec![nan, inf, -inf, 1.0]), &x(vec![nan, inf, -65504.0, 1.0])).unwrap();
        let found = tally.clone().finished("y".to_owned());
        assert_eq!((found.broken, found.apart()), (0, (0.0, 0.0)));
        tally.add(&x(vec![-inf, 2.0]), &x(vec![nan, nan])).unwrap();
        assert_eq!(tally.finished("y".to_owned()).broken, 2);
    }

    #[test]
    fn types_of_a_package_are_compared_with_those_of_a_model() {
        let mut tally = ComparisonSums::default();
        tally.add(&Tensor::vector(vec![1_i64, 2]), &Tensor::vector(vec![1_i32, 3])).unwrap();
        let truths = Tensor::vector(vec![true, false]);
        tally.add(&truths, &Tensor::vector(vec![1_i32, 0])).unwrap();
        let found = tally.finished("y".to_owned());
        assert_eq!((found.likeness.top1, found.largest), (0.75, 1.0));
        assert!(tally.add(&Tensor::vector(vec![1.0_f64]), &Tensor::vector(vec![1.0_f32])).is_ok());
    }
}
