//! Check that clients cannot tell the variants apart by what they take and give.

use galatea_tensor::OrderedMap;

use crate::config::ModelConfig;
use crate::config::inference::model_config::SchedulingChoice;

/// Refuses variants that take or give other tensors, since clients ask without knowing which one answers.
///
/// # Errors
/// Says in what they differ.
pub(crate) fn check_compatible(a: &ModelConfig, b: &ModelConfig) -> Result<(), String> {
    let inputs = |config: &ModelConfig| -> OrderedMap<String, i32> {
        config.input.iter().map(|one| (one.name.clone(), one.data_type)).collect()
    };
    let outputs = |config: &ModelConfig| -> OrderedMap<String, i32> {
        config.output.iter().map(|one| (one.name.clone(), one.data_type)).collect()
    };
    same("inputs", &inputs(a), &inputs(b))?;
    same("outputs", &outputs(a), &outputs(b))?;
    let traits = |config: &ModelConfig| {
        let policy = config.model_transaction_policy.as_ref();
        let sequences =
            matches!(config.scheduling_choice, Some(SchedulingChoice::SequenceBatching(_)));
        [
            ("has a batch dimension", config.max_batch_size > 0),
            ("is decoupled", policy.is_some_and(|policy| policy.decoupled)),
            ("batches sequences", sequences),
        ]
    };
    for (one, two) in traits(a).iter().zip(&traits(b)) {
        if one.1 != two.1 {
            let only = if one.1 { "a" } else { "b" };
            return Err(format!("only {only} {}, expected both or neither", one.0));
        }
    }
    Ok(())
}

fn same(
    what: &str,
    a: &OrderedMap<String, i32>,
    b: &OrderedMap<String, i32>,
) -> Result<(), String> {
    let differs = |name: &&String| a.get(*name) != b.get(*name);
    match a.keys().chain(b.keys()).find(differs) {
        Some(name) => {
            Err(format!("a and b differ in their {what}: '{name}' is not in both with one type"))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::from_text;

    #[test]
    fn variants_that_take_other_tensors_are_refused() {
        let of = |more: &str| from_text(&format!("name: 'm' backend: 'b' {more}")).unwrap();
        let plain = of("max_batch_size: 2 input { name: 'X' data_type: TYPE_FP32 dims: 1 }");
        assert_eq!(check_compatible(&plain, &plain), Ok(()));
        for (text, said) in [
            ("max_batch_size: 2 input { name: 'Y' data_type: TYPE_FP32 dims: 1 }", "inputs: 'X'"),
            ("max_batch_size: 2 input { name: 'X' data_type: TYPE_INT8 dims: 1 }", "inputs: 'X'"),
            ("input { name: 'X' data_type: TYPE_FP32 dims: 1 }", "only a has a batch dimension"),
            (
                "max_batch_size: 2 input { name: 'X' data_type: TYPE_FP32 dims: 1 } sequence_batching { }",
                "only b batches sequences",
            ),
        ] {
            let error = check_compatible(&plain, &of(text)).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
