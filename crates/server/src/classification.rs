//! The classification extension: the best classes of an output with their labels, instead of the tensor.

use std::cmp::Ordering;

use galatea_serving::{InferenceResponse, ModelHandle, OutputTensor, ServingError};
use galatea_tensor::{ByteString, DataType, Tensor};

/// Most classes that an output may have.
const MAX_CLASSES: usize = 1_000_000;

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
    let texts = match tensor.dtype() {
        DataType::Uint8 => best::<u8>(&tensor, items, count, labels, u8::to_string),
        DataType::Uint16 => best::<u16>(&tensor, items, count, labels, u16::to_string),
        DataType::Uint32 => best::<u32>(&tensor, items, count, labels, u32::to_string),
        DataType::Uint64 => best::<u64>(&tensor, items, count, labels, u64::to_string),
        DataType::Int8 => best::<i8>(&tensor, items, count, labels, i8::to_string),
        DataType::Int16 => best::<i16>(&tensor, items, count, labels, i16::to_string),
        DataType::Int32 => best::<i32>(&tensor, items, count, labels, i32::to_string),
        DataType::Int64 => best::<i64>(&tensor, items, count, labels, i64::to_string),
        DataType::Fp32 => best::<f32>(&tensor, items, count, labels, |v| fixed((*v).into())),
        DataType::Fp64 => best::<f64>(&tensor, items, count, labels, |v| fixed(*v)),
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

/// Larger values first, and what is no number last: without a place of its own it would leave no order at all.
fn largest_first<T: PartialOrd>(a: &T, b: &T) -> Ordering {
    let no_number = |value: &T| value.partial_cmp(value).is_none();
    let by_value = || b.partial_cmp(a).unwrap_or(Ordering::Equal);
    no_number(a).cmp(&no_number(b)).then_with(by_value)
}

fn best<T: galatea_tensor::Element + PartialOrd>(
    tensor: &Tensor,
    items: usize,
    count: usize,
    labels: &[String],
    print: impl Fn(&T) -> String,
) -> Result<Vec<ByteString>, ServingError> {
    let mut texts = Vec::new();
    if items == 0 {
        return Ok(texts);
    }
    for row in tensor.as_slice::<T>()?.chunks_exact(items) {
        let mut order: Vec<(usize, &T)> = row.iter().enumerate().collect();
        order.sort_by(|(_, a), (_, b)| largest_first(*a, *b));
        for (index, value) in order.into_iter().take(count) {
            let mut text = format!("{}:{index}", print(value));
            if let Some(label) = labels.get(index) {
                text.push(':');
                text.push_str(label);
            }
            texts.push(ByteString::from(text));
        }
    }
    Ok(texts)
}

/// A number as C's `%f` prints it.
fn fixed(value: f64) -> String {
    if value.is_nan() { "nan".to_owned() } else { format!("{value:.6}") }
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
        values.sort_by(largest_first);
        assert!(values[..800].is_sorted_by(|a, b| a >= b));
        assert!(values[800..].iter().all(|value| value.is_nan()));
    }
}
