use std::fs;

use super::*;
use crate::config;

fn plan(text: &str, dir: &Path) -> Result<Option<Arc<SequencePlan>>, ServingError> {
    let config = config::from_text(&format!(
        "name: \"m\" max_batch_size: 4 input {{ name: \"I\" data_type: TYPE_INT32 dims: 1 }} \
         output {{ name: \"O\" data_type: TYPE_INT32 dims: 1 }} {text}"
    ))
    .unwrap();
    SequencePlan::from_config(&config, dir)
}

fn with_state(state: &str) -> Result<Option<Arc<SequencePlan>>, ServingError> {
    plan(&format!("sequence_batching {{ state {{ {state} }} }}"), Path::new("/nowhere"))
}

#[test]
fn models_without_sequences_have_no_plan() {
    assert!(plan("dynamic_batching { }", Path::new("/nowhere")).unwrap().is_none());
}

#[test]
fn a_state_begins_as_zeros_or_as_its_file() {
    let plan = with_state(
        "input_name: \"S\" output_name: \"T\" data_type: TYPE_INT32 dims: [ 2, -1 ] \
         initial_state { name: \"x\" data_type: TYPE_INT32 dims: [ 2, 3 ] zero_data: true }",
    )
    .unwrap()
    .unwrap();
    assert_eq!(plan.states[0].initial.shape(), [1, 2, 3]);
    let unsaid = with_state("input_name: \"S\" output_name: \"T\" data_type: TYPE_STRING dims: -1");
    assert_eq!(unsaid.unwrap().unwrap().states[0].initial.shape(), [1, 1]);

    let dir = std::env::temp_dir().join(format!("galatea-state-{}", std::process::id()));
    fs::create_dir_all(dir.join("initial_state")).unwrap();
    fs::write(dir.join("initial_state/first"), [7, 0, 0, 0, 8, 0, 0, 0]).unwrap();
    let from = |dims: &str| {
        plan_of_file(
            &dir,
            &format!(
                "dims: {dims} initial_state {{ data_type: TYPE_INT32 dims: {dims} data_file: \"first\" }}"
            ),
        )
    };
    let read = from("2").unwrap().unwrap();
    assert_eq!(read.states[0].initial.to_vec::<i32>().unwrap(), [7, 8]);
    let wrong = from("3").unwrap_err().message;
    fs::remove_dir_all(&dir).unwrap();
    assert!(wrong.contains("expected 12 bytes, got 8"), "{wrong}");
}

fn plan_of_file(dir: &Path, state: &str) -> Result<Option<Arc<SequencePlan>>, ServingError> {
    plan(
        &format!(
            "sequence_batching {{ state {{ input_name: \"S\" output_name: \"T\" data_type: TYPE_INT32 {state} }} }}"
        ),
        dir,
    )
}

#[test]
fn a_state_that_cannot_be_is_refused() {
    let named = "input_name: \"S\" output_name: \"T\" data_type: TYPE_INT32 dims: 1";
    for (state, what) in [
        (
            "input_name: \"I\" output_name: \"T\" data_type: TYPE_INT32 dims: 1",
            "the name of an input",
        ),
        ("input_name: \"S\" data_type: TYPE_INT32 dims: 1", "'output_name'"),
        ("input_name: \"S\" output_name: \"T\" dims: 1", "'data_type'"),
        (
            "input_name: \"S\" output_name: \"O\" data_type: TYPE_FP32 dims: 1",
            "output 'O' has another",
        ),
        ("input_name: \"S\" output_name: \"T\" data_type: TYPE_INT32 dims: 0", "dimension 0"),
        (&format!("{named} use_growable_memory: true"), "use_growable_memory"),
        (
            &format!("{named} initial_state {{ data_type: TYPE_INT32 dims: 2 zero_data: true }}"),
            "does not fit",
        ),
        (
            &format!("{named} initial_state {{ data_type: TYPE_INT64 dims: 1 zero_data: true }}"),
            "another 'data_type'",
        ),
        (
            &format!("{named} initial_state {{ data_type: TYPE_INT32 dims: 1 }}"),
            "'zero_data' or 'data_file'",
        ),
        (
            "input_name: \"S\" output_name: \"T\" data_type: TYPE_INT32 dims: -1 \
             initial_state { data_type: TYPE_INT32 dims: 4611686018427387904 zero_data: true }",
            "too large",
        ),
    ] {
        let message = with_state(state).unwrap_err().message;
        assert!(message.contains(what), "{message}");
    }
    let twice = plan(
        &format!("sequence_batching {{ state {{ {named} }} state {{ {named} }} }}"),
        Path::new("/nowhere"),
    );
    assert!(twice.unwrap_err().message.contains("twice"));
}
