//! The classification extension: the best classes of an output with their labels, instead of the tensor.

use galatea_serving::{InferenceResponse, ModelHandle, OutputTensor, ServingError};
use galatea_tensor::{ByteString, DataType, Tensor};

/// Most classes that an output may have.
const MAX_CLASSES: usize = 1_000_000;
/// Longest row that C++'s sort orders by insertion alone, in values.
const SHORT_ROW: usize = 16;

/// The classes of an output of a model's response, with the model's labels and batching.
pub(crate) fn output(
    model: &ModelHandle,
    response: &InferenceResponse,
    output: &OutputTensor,
    classes: u64,
) -> Result<Tensor, ServingError> {
    let model = model.of_response(response);
    let labels = model.labels(&output.name).unwrap_or_default();
    classify(&output.tensor, classes, model.has_batches(), labels)
}

/// Texts `value:index` or `value:index:label` of the greatest values, in descending order and by index where equal.
///
/// The result has shape `[classes]`, or `[batch, classes]` where the model batches; a label file may be shorter than
/// the output.
///
/// # Errors
/// Fails for types without an order on the wire, and for more than a million classes.
pub(crate) fn classify(
    tensor: &Tensor,
    classes: u64,
    batching: bool,
    labels: &[String],
) -> Result<Tensor, ServingError> {
    let tensor = tensor.contiguous()?;
    let batch = if batching { tensor.shape().first().copied().unwrap_or(1) } else { 1 };
    let items = tensor.elements().checked_div(batch).unwrap_or(0);
    if items > MAX_CLASSES {
        return Err(ServingError::invalid_arg("classification output tensor too large"));
    }
    let count = usize::try_from(classes).map_or(items, |classes| classes.min(items));
    let form = ClassTexts { items, count, labels };
    let texts = match tensor.dtype() {
        DataType::Uint8 => best(&tensor, &form, |v: &u8| rank((*v).into()), u8::to_string),
        DataType::Uint16 => best(&tensor, &form, |v: &u16| rank((*v).into()), u16::to_string),
        DataType::Uint32 => best(&tensor, &form, |v: &u32| rank((*v).into()), u32::to_string),
        DataType::Uint64 => best(&tensor, &form, |v: &u64| rank(*v), u64::to_string),
        DataType::Int8 => best(&tensor, &form, |v: &i8| signed_rank((*v).into()), i8::to_string),
        DataType::Int16 => best(&tensor, &form, |v: &i16| signed_rank((*v).into()), i16::to_string),
        DataType::Int32 => best(&tensor, &form, |v: &i32| signed_rank((*v).into()), i32::to_string),
        DataType::Int64 => best(&tensor, &form, |v: &i64| signed_rank(*v), i64::to_string),
        DataType::Fp32 => {
            best(&tensor, &form, |v: &f32| float_rank((*v).into()), |v| fixed((*v).into()))
        }
        DataType::Fp64 => best(&tensor, &form, |v: &f64| float_rank(*v), |v| fixed(*v)),
        datatype @ (DataType::Bool
        | DataType::Fp16
        | DataType::Bf16
        | DataType::Bytes
        | DataType::Small(_)) => {
            return Err(ServingError::invalid_arg(format!(
                "class result not available for output due to unsupported type '{datatype}'"
            )));
        }
    }?;
    let shape: &[usize] = if batching { &[batch, count] } else { &[count] };
    Ok(Tensor::from_vec(shape, texts)?)
}

/// The texts to write of each row of values.
struct ClassTexts<'a> {
    /// Values of a row.
    items: usize,
    /// Texts of a row.
    count: usize,
    labels: &'a [String],
}

/// Ranks of numbers: the larger number has the smaller rank.
fn rank(value: u64) -> u64 {
    !value
}

fn signed_rank(value: i64) -> u64 {
    rank(value.cast_unsigned() ^ (1 << 63))
}

/// NaN comes last in long rows: without a place of its own it would leave no order at all.
fn float_rank(value: f64) -> u64 {
    if value.is_nan() {
        return u64::MAX;
    }
    // Both zeros are equal. The bits of negative numbers grow as the numbers fall.
    let bits = (value + 0.0).to_bits();
    rank(if bits >> 63 == 1 { !bits } else { bits | (1 << 63) })
}

/// Returns the indices of values in the order that C++'s sort by `>` gives a short row, which it sorts by insertion.
///
/// Each value goes before those that it exceeds, to the first one that it does not exceed. So nothing passes a NaN but
/// what exceeds the first value of all.
fn inserted<T: PartialOrd>(row: &[T]) -> Vec<usize> {
    let exceeds = |a: usize, b: usize| row.get(a) > row.get(b);
    let mut places: Vec<usize> = Vec::with_capacity(row.len());
    for index in 0..row.len() {
        let before = |&&other: &&usize| exceeds(index, other);
        let passed = match places.first() {
            Some(&first) if exceeds(index, first) => places.len(),
            _ => places.iter().rev().take_while(before).count(),
        };
        places.insert(places.len() - passed, index);
    }
    places
}

/// Returns the indices of ranks in ascending order, and in their own where ranks are equal.
fn order(ranks: impl Iterator<Item = u64>) -> Vec<usize> {
    let mut places: Vec<(u64, usize)> = ranks.zip(0..).collect();
    // One type for all: a sort is compiled for each type that it sorts.
    places.sort_unstable();
    places.into_iter().map(|(_, index)| index).collect()
}

fn best<T: galatea_tensor::Element + PartialOrd>(
    tensor: &Tensor,
    form: &ClassTexts<'_>,
    rank: impl Fn(&T) -> u64,
    print: impl Fn(&T) -> String,
) -> Result<Vec<ByteString>, ServingError> {
    let mut texts = Vec::new();
    if form.items == 0 {
        return Ok(texts);
    }
    for row in tensor.as_slice::<T>()?.chunks_exact(form.items) {
        let places = match row.len() <= SHORT_ROW {
            true => inserted(row),
            false => order(row.iter().map(&rank)),
        };
        for index in places.into_iter().take(form.count) {
            let Some(value) = row.get(index) else { continue };
            texts.push(form.text(index, print(value)));
        }
    }
    Ok(texts)
}

impl ClassTexts<'_> {
    fn text(&self, index: usize, value: String) -> ByteString {
        let mut text = format!("{value}:{index}");
        if let Some(label) = self.labels.get(index) {
            text.push(':');
            text.push_str(label);
        }
        ByteString::from(text)
    }
}

/// A number as C's `%f` prints it.
fn fixed(value: f64) -> String {
    match (value.is_nan(), value.is_sign_negative()) {
        (true, true) => "-nan".to_owned(),
        (true, false) => "nan".to_owned(),
        (false, _) => format!("{value:.6}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(tensor: &Tensor) -> Vec<String> {
        let strings = tensor.to_vec::<ByteString>().unwrap();
        strings.iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn best_classes_come_first_and_ties_by_index() {
        let labels = ["cat".to_owned(), "dog".to_owned()];
        let scores = Tensor::from_vec(&[1, 4], vec![0.1_f32, 0.7, 0.15, 0.7]).unwrap();
        let result = classify(&scores, 3, true, &labels).unwrap();
        assert_eq!(result.shape(), [1, 3]);
        assert_eq!(texts(&result), ["0.700000:1:dog", "0.700000:3", "0.150000:2"]);
        let integers = Tensor::from_vec(&[2, 2], vec![0_i32, 9, 5, -1]).unwrap();
        let result = classify(&integers, 9, false, &labels).unwrap();
        assert_eq!(result.shape(), [4]);
        assert_eq!(texts(&result), ["9:1:dog", "5:2", "0:0:cat", "-1:3"]);
    }

    /// The order that a real Triton gave, and what the same sort gives elsewhere.
    #[test]
    fn short_rows_with_nan_are_in_the_order_of_a_sort_by_insertion() {
        let of = |values: &[f32], count| {
            let row = Tensor::from_vec(&[values.len()], values.to_vec()).unwrap();
            texts(&classify(&row, count, false, &[]).unwrap())
        };
        let inf = f32::INFINITY;
        assert_eq!(
            of(&[1.0, f32::NAN, inf, -1.0], 9),
            ["inf:2", "1.000000:0", "nan:1", "-1.000000:3"]
        );
        assert_eq!(
            of(&[1.0, f32::NAN, 0.5, 0.75, 2.0], 4),
            ["2.000000:4", "1.000000:0", "nan:1", "0.750000:3"]
        );
        assert_eq!(of(&[-f32::NAN, -inf, 3.0], 3), ["-nan:0", "3.000000:2", "-inf:1"]);
        let ties = [2.0_f32; SHORT_ROW];
        assert!(of(&ties, 16).iter().zip(0..).all(|(text, at)| *text == format!("2.000000:{at}")));
        let mut long = vec![0.5; SHORT_ROW + 1];
        long[3] = f32::NAN;
        assert_eq!(of(&long, 17).last().map(String::as_str), Some("nan:3"));
    }

    #[test]
    fn ranks_are_in_the_order_of_the_numbers() {
        let floats = [f64::INFINITY, 1e300, 1.5, 5e-324, 0.0, -5e-324, -1.0, f64::NEG_INFINITY];
        let ranks: Vec<u64> = floats.map(float_rank).to_vec();
        assert!(ranks.is_sorted_by(|a, b| a < b));
        assert_eq!(float_rank(0.0), float_rank(-0.0));
        assert!(ranks.iter().all(|rank| *rank < float_rank(f64::NAN)));
        assert_eq!(float_rank(f64::NAN), float_rank(-f64::NAN));
        let integers = [i64::MAX, 1, 0, -1, i64::MIN].map(signed_rank);
        assert!(integers.is_sorted_by(|a, b| a < b));
        assert!(rank(u64::MAX) < rank(0));
    }

    #[test]
    fn types_without_an_order_are_refused() {
        let flags = Tensor::from_vec(&[1], vec![true]).unwrap();
        let error = classify(&flags, 1, false, &[]).unwrap_err();
        assert_eq!(
            error.message,
            "class result not available for output due to unsupported type 'BOOL'"
        );
    }

    #[test]
    fn an_empty_batch_has_no_classes() {
        let empty = Tensor::from_vec(&[0, 4], Vec::<f32>::new()).unwrap();
        assert_eq!(classify(&empty, 2, true, &[]).unwrap().elements(), 0);
    }

    #[test]
    fn what_is_no_number_comes_last() {
        let mut values: Vec<f32> = (0..1000_u16).map(|n| f32::from(n * 37 % 101)).collect();
        values.iter_mut().step_by(5).for_each(|value| *value = f32::NAN);
        values.sort_by_key(|value| float_rank((*value).into()));
        assert!(values[..800].is_sorted_by(|a, b| a >= b));
        assert!(values[800..].iter().all(|value| value.is_nan()));
    }
}
