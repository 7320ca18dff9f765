use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::config::{self, ModelConfig};
use crate::payload::ExecutionContext;
use crate::request::InferenceRequest;
use crate::schedule::SequenceStep;
use crate::sequence::SequenceState;

struct Batch {
    plan: Arc<SequencePlan>,
    context: Arc<ExecutionContext>,
    states: Vec<Arc<SequenceState>>,
}

impl Batch {
    fn new(text: &str) -> Self {
        let config: ModelConfig = config::from_text(text).unwrap();
        let plan = SequencePlan::from_config(&config, Path::new("/nowhere")).unwrap().unwrap();
        let context = ExecutionContext::new("m", 1, Arc::new(config));
        let states = (0..4).map(|_| SequenceState::initial(&plan)).collect();
        Self { plan, context, states }
    }

    fn request(&self, step: SequenceStep) -> ActiveRequest {
        let state = step.ready.then(|| Arc::clone(&self.states[step.slot]));
        let mut request =
            ActiveRequest::filler(InferenceRequest::default(), Arc::clone(&self.context));
        let plan = Arc::clone(&self.plan);
        request.sequence = Some(Box::new(SequenceContext { step, plan, state }));
        request
    }

    /// A start in slot 0, a gap, and an end in slot 2.
    fn three(&self) -> Vec<ActiveRequest> {
        let step = |slot, correlation, start, end, ready| {
            self.request(SequenceStep { slot, correlation, start, end, ready })
        };
        vec![
            step(0, CorrelationId::Uint(u64::MAX - 1), true, false, true),
            step(1, CorrelationId::None, false, false, false),
            step(2, CorrelationId::String("name".to_owned()), false, true, true),
        ]
    }
}

const CONTROLS: &str = "name: \"m\" max_batch_size: 4 sequence_batching { \
    control_input { name: \"A\" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } } \
    control_input { name: \"B\" control { kind: CONTROL_SEQUENCE_END fp32_false_true: [ -1, 2 ] } } \
    control_input { name: \"C\" control { kind: CONTROL_SEQUENCE_READY bool_false_true: [ false, true ] } } \
    control_input { name: \"D\" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_INT32 } } \
    state { input_name: \"S\" output_name: \"T\" data_type: TYPE_INT32 dims: 2 } }";

#[test]
fn every_row_has_its_controls() {
    let batch = Batch::new(CONTROLS);
    let named = inputs(&batch.three()).unwrap();
    let of = |name: &str| &named.iter().find(|(found, _)| found == name).unwrap().1;
    assert_eq!(of("A").shape(), [3, 1]);
    assert_eq!(of("A").to_vec::<i32>().unwrap(), [1, 0, 0]);
    assert_eq!(of("B").to_vec::<f32>().unwrap(), [-1.0, -1.0, 2.0]);
    assert_eq!(of("C").to_vec::<bool>().unwrap(), [true, false, true]);
    assert_eq!(of("D").to_vec::<i32>().unwrap(), [-2, 0, 4]);
    let wide = CONTROLS.replace("TYPE_INT32 } }", "TYPE_UINT64 } }");
    let named = inputs(&Batch::new(&wide).three()).unwrap();
    let ids: Vec<u64> = named[3].1.to_vec().unwrap();
    assert_eq!(ids, [u64::MAX - 1, 0, u64::from_le_bytes(*b"\x04\0\0\0name")]);
    let texts = CONTROLS.replace("TYPE_INT32 } }", "TYPE_STRING } }");
    let named = inputs(&Batch::new(&texts).three()).unwrap();
    let names: Vec<ByteString> = named[3].1.to_vec().unwrap();
    assert_eq!(names, ["18446744073709551614", "", "name"].map(ByteString::from));
}

#[test]
fn states_are_kept_by_sequence_and_gaps_have_none() {
    let batch = Batch::new(CONTROLS);
    let requests = batch.three();
    let outputs =
        vec![("T".to_owned(), Tensor::from_vec(&[3, 2], vec![1_i32, 2, 3, 4, 5, 6]).unwrap())];
    keep_states(&requests, &outputs).unwrap();
    let named = inputs(&requests).unwrap();
    assert_eq!(named[4].0, "S");
    assert_eq!(named[4].1.shape(), [3, 2]);
    assert_eq!(named[4].1.to_vec::<i32>().unwrap(), [1, 2, 0, 0, 5, 6]);
    let short = vec![("T".to_owned(), Tensor::from_vec(&[1, 2], vec![1_i32, 2]).unwrap())];
    let error = keep_states(&requests, &short).unwrap_err().message;
    assert!(error.contains("the batch has 3 items"), "{error}");
}

#[test]
fn states_of_different_shapes_do_not_share_a_batch() {
    let batch = Batch::new(&CONTROLS.replace("dims: 2", "dims: -1"));
    let requests = batch.three();
    let outputs = vec![("T".to_owned(), Tensor::from_vec(&[1, 3], vec![1_i32, 2, 3]).unwrap())];
    keep_states(&requests[..1], &outputs).unwrap();
    assert_eq!(inputs(&requests[..1]).unwrap()[4].1.to_vec::<i32>().unwrap(), [1, 2, 3]);
    assert!(inputs(&requests).unwrap_err().message.contains("[1, 3] and [1, 1]"));
}

#[test]
fn models_that_do_not_batch_have_controls_of_one_element() {
    let batch = Batch::new(&CONTROLS.replace("max_batch_size: 4", ""));
    let requests = batch.three();
    let named = inputs(&requests[..1]).unwrap();
    assert_eq!((named[0].1.shape(), named[4].1.shape()), ([1].as_slice(), [2].as_slice()));
}
