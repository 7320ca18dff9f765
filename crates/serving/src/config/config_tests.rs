use prost_reflect::{Kind, ReflectMessage as _, Value};
use serde_json::Value as Json;

use super::*;
use crate::backend::{ModelIo, ModelTensor};
use crate::config::inference::model_config::SchedulingChoice;

const DEFAULTS: InstanceDefaults = InstanceDefaults { gpus: 0, cpu_count: 1, gpu_count: 1 };

#[test]
fn configurations_look_as_triton_shows_them() {
    let golden: Json =
        serde_json::from_str(include_str!("../../tests/golden/model_config.json")).unwrap();
    let cases = golden["cases"].as_array().unwrap();
    assert!(cases.len() > 10);
    for case in cases {
        let mut config = from_text(case["pbtxt"].as_str().unwrap()).unwrap();
        if config.backend == "python" {
            config.default_model_filename = "model.py".to_owned();
        }
        validate(&config).unwrap();
        normalise(&mut config);
        normalise_instances(&mut config, DEFAULTS);
        validate_tensors(&config).unwrap();
        validate_instances(&config, 0).unwrap();
        let shown = to_json(&config);
        assert_eq!(shown, case["json"], "{}", case["model"]);
        let order = |json: &Json| json.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(order(&shown), order(&case["json"]));
        assert_eq!(from_json(&shown).unwrap(), config, "{}", case["model"]);
    }
}

/// Text that sets every field, of each oneof the member `choice`.
fn everything(message: &MessageDescriptor, choice: usize) -> String {
    let mut text = String::new();
    for field in message.fields() {
        if let Some(oneof) = field.containing_oneof() {
            let members: Vec<_> = oneof.fields().collect();
            if members[choice % members.len()].name() != field.name() {
                continue;
            }
        }
        let value = match field.kind() {
            Kind::Message(inner) => format!("{{ {} }}", everything(&inner, choice)),
            Kind::String => ": \"a\\x41\" 'b'".to_owned(),
            Kind::Bool => ": t".to_owned(),
            Kind::Enum(descriptor) => format!(": {}", descriptor.values().last().unwrap().name()),
            Kind::Float | Kind::Double => ": 0.5f".to_owned(),
            Kind::Uint32 | Kind::Uint64 => ": 0x11".to_owned(),
            Kind::Int32 | Kind::Int64 => ": -7".to_owned(),
            kind => panic!("{kind:?} in {}", field.full_name()),
        };
        text.push_str(&format!("{}{value}; ", field.name()));
        if field.is_list() {
            text.push_str(&format!(
                "{}: [{value}, {value}] ",
                field.name(),
                value = value.trim_start_matches(':')
            ));
        }
    }
    text
}

fn assert_full(message: &prost_reflect::DynamicMessage) {
    for field in message.descriptor().fields() {
        let value = message.get_field(&field);
        // The only value of the secondary device's kind is 0.
        let may_be_unset =
            field.containing_oneof().is_some() || matches!(field.kind(), Kind::Enum(_));
        assert!(may_be_unset || message.has_field(&field), "{}", field.full_name());
        match value.as_ref() {
            Value::Message(inner) if message.has_field(&field) => assert_full(inner),
            Value::List(list) => {
                assert_eq!(list.len(), 3, "{}", field.full_name());
                list.iter().filter_map(Value::as_message).for_each(assert_full);
            }
            Value::Map(map) => assert_eq!(map.len(), 1),
            _ => {}
        }
    }
}

#[test]
fn every_field_of_every_message_is_read_and_shown() {
    for choice in 0..6 {
        let text = everything(&descriptor().unwrap(), choice);
        assert_full(&prototext::parse(&text, &descriptor().unwrap()).unwrap());
        let config = from_text(&text).unwrap();
        assert_eq!(config.name, "aAb");
        assert_eq!(from_json(&to_json(&config)).unwrap(), config, "{text}");
    }
}

#[test]
fn all_the_notations_of_user_files_are_read() {
    let config = from_text(
        "# a comment\n\
         name: 'm' ; max_batch_size: 010,\n\
         input: [ { name: \"A\" data_type: TYPE_FP32 dims: [ 1, -1 ] }, < name: 'B', data_type: 12 dims: 2 dims: 3 > ]\n\
         input { name: \"C\" \n \"D\" data_type: TYPE_BF16 dims: [] optional: True }\n\
         parameters: { key: \"k\" value: { string_value: \"v\\n\\101\" } }\n\
         parameters { key: 'l' value { string_value: \"\\u00e9\" } }\n\
         version_policy: { specific { versions: [3, 1] } }\n\
         instance_group [{ count: 2 kind: KIND_CPU }]",
    )
    .unwrap();
    assert_eq!((config.name.as_str(), config.max_batch_size), ("m", 8));
    assert_eq!(config.input.len(), 3);
    assert_eq!(config.input[0].dims, [1, -1]);
    assert_eq!(
        (config.input[1].dims.as_slice(), config.input[1].data_type),
        ([2, 3].as_slice(), 12)
    );
    assert_eq!((config.input[2].name.as_str(), config.input[2].optional), ("CD", true));
    assert_eq!(config.parameters["k"].string_value, "v\nA");
    assert_eq!(config.parameters["l"].string_value, "é");
}

#[test]
fn ten_mistakes_are_ten_lines_each_with_its_place() {
    let error = from_text(
        "nam: \"m\"\n\
         max_batch_size: eight\n\
         input [ { name: \"A\" data_type: TYPE_FLOAT32 dims: [ 1 } ]\n\
         output { name: 5 dims: 99999999999999999999 }\n\
         dynamic_batching { max_queue_delay_microseconds: -1 preserve_ordering: 2 }\n\
         sequence_batching { }\n\
         platform: \"a\"\n\
         platform: \"b\"\n\
         backend: \"open\n\
         parameters { key: \"k\" value { string: \"v\" } }\n\
         instance_group [ { count: 1 kind: KIND_CPUS }",
    )
    .unwrap_err();
    let expected = [
        "1:1: nam: ModelConfig has no field of this name; did you mean 'name'?",
        "2:17: max_batch_size: expected a 32-bit integer, found 'eight'",
        "3:32: input[0].data_type: 'TYPE_FLOAT32' is no value of DataType; did you mean",
        "3:55: input[0].dims: expected ',' or ']' in the list opened at 3:51, found '}'",
        "4:16: output[0].name: expected a string, found the number 5",
        "4:24: output[0].dims: 99999999999999999999 is out of the range of a 64-bit integer",
        "5:50: dynamic_batching.max_queue_delay_microseconds: -1 is out of the range of an unsigned 64-bit integer",
        "5:72: dynamic_batching.preserve_ordering: expected true or false, found the number 2",
        "6:1: sequence_batching: cannot stand beside 'dynamic_batching' at 5:1: only one of them may be set",
        "8:1: platform: set for the second time; the first is at 7:1",
        "9:10: this string has no closing \" on its line",
        "10:31: parameters.value.string: ModelParameter has no field of this name",
        "11:35: instance_group[0].kind: 'KIND_CPUS' is no value of Kind; did you mean 'KIND_CPU'?",
        "11:46: instance_group: expected ',' or ']' in the list opened at 11:16, found the end of the text",
    ];
    let lines: Vec<&str> = error.message.lines().collect();
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(expected), "found    {line}\nexpected {expected}");
    }
    assert_eq!(lines.len(), expected.len(), "{}", error.message);
}

#[test]
fn hostile_texts_are_errors_and_end() {
    let deep = "input { reshape { ".repeat(20_000);
    for text in [
        &*deep,
        &"[".repeat(50_000),
        &"\"".repeat(999),
        "name: \"\\",
        "a: {{{{[[[<",
        "name",
        "name:",
        "-",
        ": }",
    ] {
        assert!(from_text(text).is_err(), "{:.40}", text);
    }
    let nested = format!("dynamic_batching {}", "{ default_queue_policy ".repeat(1000));
    assert!(from_text(&nested).is_err());
}

#[test]
fn json_problems_name_their_fields() {
    let json = serde_json::json!({
        "max_batch_size": "x", "no_such": 1, "input": [{"data_type": "TYPE_FP33"}], "dynamic_batching": {},
        "ensemble_scheduling": {}, "default_model_filename": 3
    });
    let error = from_json(&json).unwrap_err();
    for expected in [
        "max_batch_size: expected an integer, found \"x\"",
        "no_such: ModelConfig has no field of this name",
        "input.[0].data_type: expected a value of DataType, found \"TYPE_FP33\"",
        "ensemble_scheduling: cannot stand beside 'dynamic_batching': only one of them may be set",
        "default_model_filename: expected a string, found 3",
    ] {
        assert!(error.message.contains(expected), "{expected}\n{}", error.message);
    }
    let camel = serde_json::json!({"maxBatchSize": 3, "dynamicBatching": {"maxQueueDelayMicroseconds": "18446744073709551615"}});
    let config = from_json(&camel).unwrap();
    assert!(matches!(config.scheduling_choice, Some(SchedulingChoice::DynamicBatching(b))
        if b.max_queue_delay_microseconds == u64::MAX));
}

/// The problem that a change of a good configuration makes.
fn problem(change: &str) -> String {
    let text = format!(
        "name: \"m\" backend: \"b\" max_batch_size: 8 \
         input {{ name: \"I\" data_type: TYPE_FP32 dims: 4 }} {change}"
    );
    let mut config = from_text(&text).unwrap();
    normalise(&mut config);
    let first = validate(&config).and_then(|()| validate_tensors(&config));
    normalise_instances(&mut config, DEFAULTS);
    first
        .and_then(|()| validate_instances(&config, 0))
        .map_or_else(|error| error.message, |()| String::new())
}

#[test]
fn broken_rules_get_tritons_texts() {
    let cases = [
        ("", ""),
        (
            "dynamic_batching { preferred_batch_size: 16 }",
            "dynamic batching preferred size must be <= max batch size for m",
        ),
        (
            "dynamic_batching { preferred_batch_size: 0 }",
            "dynamic batching preferred size must be positive for m",
        ),
        (
            "dynamic_batching { preserve_ordering: true priority_levels: 2 default_priority_level: 1 }",
            "Only one priority level is allowed when 'preserve_ordering' is true for m",
        ),
        (
            "dynamic_batching { preserve_ordering: true default_queue_policy { timeout_action: DELAY } }",
            "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for m",
        ),
        (
            "dynamic_batching { priority_levels: 2 default_priority_level: 3 priority_queue_policy { key: 4 value {} } }",
            "default priority level must be in range [1, 2] for m; \
             priority queue policy must have priority level in range [1, 2] for m",
        ),
        ("output { name: \"O\" dims: 1 }", "model output 'O' must specify 'data_type' for m"),
        (
            "output { name: \"O\" data_type: TYPE_FP32 }",
            "model output 'O' must specify 'dims' for m",
        ),
        (
            "output { name: \"O\" data_type: TYPE_FP32 dims: 0 }",
            "model output 'O' dimension must be integer >= 1, or -1 to indicate a variable-size dimension for m",
        ),
        (
            "output { name: \"O\" data_type: TYPE_FP32 dims: 4 reshape { shape: 3 } }",
            "model output 'O' has different size for dims and reshape for m",
        ),
        (
            "output { name: \"O\" data_type: TYPE_FP32 dims: [2, -1, 6] reshape { shape: [ 2, -1, 3, 2] } }",
            "",
        ),
        (
            "instance_group { kind: KIND_GPU }",
            "instance group m_0 of model m has kind KIND_GPU but no GPUs are available",
        ),
        ("instance_group { gpus: [0, 1] }", ""),
        (
            "instance_group { kind: KIND_CPU gpus: 0 }",
            "instance group m_0 of model m has kind KIND_CPU but specifies one or more GPUs",
        ),
        (
            "sequence_batching { direct { minimum_slot_utilization: 1.5 } \
             control_input { name: \"S\" control { kind: CONTROL_SEQUENCE_START int32_false_true: [1] } } }",
            "sequence batching minimum slot utilization must be in range (0.0, 1.0] for m; sequence batching control \
             'int32_false_true' must have exactly 2 entries for CONTROL_SEQUENCE_START for m",
        ),
        (
            "response_cache { enable: true } model_transaction_policy { decoupled: true }",
            "Response Cache does not currently support model m with 'decoupled' transaction policy. Please disable \
             the response cache.",
        ),
        (
            "ensemble_scheduling { step { model_name: \"x\" } }",
            "ensemble scheduling cannot be set for model 'm' whose platform is not ensemble; must specify 'input_map' \
             in step 0 of ensemble 'm'; must specify 'output_map' in step 0 of ensemble 'm'",
        ),
    ];
    for (change, expected) in cases {
        assert_eq!(problem(change), expected, "{change}");
    }
}

fn tensor(name: &str, datatype: DataType, dims: &[i64]) -> ModelTensor {
    ModelTensor {
        name: name.to_owned(),
        datatype,
        dims: dims.to_vec(),
        ranked: true,
        optional: false,
    }
}

fn batching_model() -> ModelIo {
    ModelIo {
        inputs: vec![
            tensor("A", DataType::Fp32, &[-1, 16]),
            tensor("B", DataType::Bytes, &[-1, -1]),
        ],
        outputs: vec![tensor("C", DataType::Int64, &[-1])],
        ..ModelIo::default()
    }
}

fn completed(text: &str, io: &ModelIo) -> Result<ModelConfig, ServingError> {
    let mut config = from_text(&format!("name: \"m\" {text}")).unwrap();
    complete(&mut config, io, true, DEFAULT_MAX_BATCH_SIZE)?;
    normalise(&mut config);
    Ok(config)
}

#[test]
fn an_empty_configuration_is_completed_from_the_model() {
    let config = completed("", &batching_model()).unwrap();
    assert_eq!(config.max_batch_size, 4);
    assert!(matches!(&config.scheduling_choice, Some(SchedulingChoice::DynamicBatching(b))
        if b.preferred_batch_size == [4]));
    let inputs: Vec<_> = config
        .input
        .iter()
        .map(|i| (i.name.as_str(), datatype(i.data_type), i.dims.clone()))
        .collect();
    assert_eq!(
        inputs,
        [("A", Some(DataType::Fp32), vec![16]), ("B", Some(DataType::Bytes), vec![-1])]
    );
    // A scalar for each item is one element to the client.
    assert_eq!(config.output[0].dims, [1]);
    assert!(config.output[0].reshape.as_ref().unwrap().shape.is_empty());

    let fixed = ModelIo { outputs: vec![tensor("C", DataType::Fp32, &[2, 2])], ..batching_model() };
    let config = completed("", &fixed).unwrap();
    assert_eq!((config.max_batch_size, config.input[0].dims.as_slice()), (0, [-1, 16].as_slice()));
    assert!(config.scheduling_choice.is_none());
}

#[test]
fn a_model_with_an_unknown_number_of_dimensions_gets_no_batching() {
    let mut io = batching_model();
    io.outputs[0] = ModelTensor { ranked: false, dims: Vec::new(), ..io.outputs[0].clone() };
    let config = completed("", &io).unwrap();
    assert_eq!((config.max_batch_size, config.scheduling_choice.is_none()), (0, true));
    let config = completed("max_batch_size: 8", &io).unwrap();
    assert_eq!((config.max_batch_size, config.scheduling_choice.is_none()), (8, true));
}

#[test]
fn a_given_configuration_is_kept() {
    let config = completed(
        "max_batch_size: 1 output { name: \"C\" label_filename: \"l\" }",
        &batching_model(),
    )
    .unwrap();
    assert_eq!((config.max_batch_size, config.scheduling_choice.is_none()), (1, true));
    assert_eq!((config.output[0].label_filename.as_str(), config.output[0].data_type), ("l", 9));
    let full = "input [{ name: \"A\" dims: [-1, 16] }, { name: \"B\" }]";
    assert_eq!(completed(full, &batching_model()).unwrap().max_batch_size, 0);
}

#[test]
fn contradictions_with_the_model_get_tritons_texts() {
    let message = |text| completed(text, &batching_model()).unwrap_err().message;
    assert_eq!(
        message("input { name: \"A\" }"),
        "unable to load model 'm', configuration expects 1 inputs, model provides 2"
    );
    assert_eq!(
        message("input [{ name: \"A\" }, { name: \"X\" }]"),
        "unexpected inference input 'X', allowed inputs are: A, B"
    );
    assert_eq!(
        message(
            "max_batch_size: 4 input [{ name: \"A\" dims: [16, 1] }, { name: \"B\" data_type: TYPE_FP32 }]"
        ),
        "model 'm', tensor 'A': the model expects 2 dimensions (shape [-1,16]) but the model configuration specifies 3 \
         dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, \
         making complete shape [-1,16,1]); unable to load model 'm', unexpected datatype TYPE_FP32 for inference input \
         'B', expecting TYPE_STRING"
    );
    let fixed = ModelIo { outputs: vec![tensor("C", DataType::Fp32, &[2, 2])], ..batching_model() };
    assert_eq!(
        completed("max_batch_size: 2", &fixed).unwrap_err().message,
        "autofill failed for model 'm': model does not support batching while non-zero max_batch_size is specified"
    );
}

#[test]
fn files_stay_in_their_folder_and_warm_up_ends() {
    let check = |text: &str| {
        validate(&from_text(&format!("name: 'm' backend: 'b' {text}")).unwrap())
            .map_err(|error| error.message)
    };
    for inside in ["model.onnx", "sub/model.onnx", "./model.onnx", "..model"] {
        assert_eq!(check(&format!("default_model_filename: '{inside}'")), Ok(()), "{inside}");
    }
    for outside in ["../model.onnx", "/etc/passwd", "a/../../b", ".."] {
        let error = check(&format!("default_model_filename: '{outside}'")).unwrap_err();
        assert!(error.contains("must name a file in the version folder"), "{error}");
    }
    assert_eq!(check("model_warmup { name: 'w' count: 65536 }"), Ok(()));
    for endless in ["count: 4000000000", "batch_size: 4000000000"] {
        let error = check(&format!("model_warmup {{ name: 'w' {endless} }}")).unwrap_err();
        assert!(error.contains("of warmup sample 'w' must be <= 65536"), "{error}");
    }
}

#[test]
fn tensors_of_a_batch_name_their_source_and_their_targets() {
    let check = |text: &str| {
        let config = format!(
            "name: 'm' backend: 'b' max_batch_size: 2 {text} input [{{ name: 'A' data_type: TYPE_INT32 dims: [-1] }}] \
             output [{{ name: 'Z' data_type: TYPE_INT32 dims: [-1] }}, {{ name: 'Y' data_type: TYPE_INT32 dims: [-1] }}]"
        );
        validate_tensors(&from_text(&config).unwrap()).map_err(|error| error.message)
    };
    for kind in [
        "BATCH_ELEMENT_COUNT",
        "BATCH_ACCUMULATED_ELEMENT_COUNT",
        "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO",
        "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE",
        "BATCH_ITEM_SHAPE",
        "BATCH_ITEM_SHAPE_FLATTEN",
    ] {
        let made = |sources: &str| {
            check(&format!(
                "batch_input {{ kind: {kind} target_name: ['S', 'T'] data_type: TYPE_INT32 source_input: [{sources}] }}"
            ))
        };
        assert_eq!(made("'A'"), Ok(()));
        for (sources, found) in [("", 0), ("'A', 'A'", 2)] {
            let text = format!("batch input kind '{kind}' expects 1 source input, got {found}");
            assert_eq!(made(sources), Err(text));
        }
        assert_eq!(made("'X'"), Err("unknown source input name 'X'".to_owned()));
    }
    let split = |targets: &str, sources: &str| {
        check(&format!(
            "batch_output {{ kind: BATCH_SCATTER_WITH_INPUT_SHAPE target_name: [{targets}] source_input: [{sources}] }}"
        ))
    };
    assert_eq!(split("'Z', 'Y'", "'A'"), Ok(()));
    for (targets, sources, text) in [
        (
            "'Z'",
            "",
            "batch output kind 'BATCH_SCATTER_WITH_INPUT_SHAPE' expects 1 source input, got 0",
        ),
        ("'Z'", "'X'", "unknown source input name 'X'"),
        ("'X'", "'A'", "unknown target output name 'X'"),
        ("'Z', 'Z'", "'A'", "target output name 'Z' can only be specified once"),
    ] {
        assert_eq!(split(targets, sources), Err(text.to_owned()));
    }
    let twice = "batch_output { target_name: 'Z' source_input: 'A' } ".repeat(2);
    assert_eq!(check(&twice), Err("target output name 'Z' can only be specified once".to_owned()));
}

#[test]
fn instances_of_all_groups_are_counted_together() {
    let groups = |count: i32, number: usize| {
        "instance_group { count: {} kind: KIND_CPU } "
            .replace("{}", &count.to_string())
            .repeat(number)
    };
    assert_eq!(problem(&groups(512, 2)), "");
    let found = problem(&groups(1000, 50));
    assert!(found.contains("50000 instances together, but at most 1024"), "{found}");
    assert!(problem(&groups(1025, 1)).contains("has 1025 instances"));
    assert!(problem(&groups(i32::MAX, 3)).contains("2147483647"));
}
