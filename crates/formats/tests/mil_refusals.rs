//! Faults of a program are found when it is read, and the error names the operation: cases of
//! `golden/mil` with one thing changed.

use galatea_formats::coreml;
use galatea_formats::coreml::proto::mil::{
    BindingKind, DimensionKind, ImmediateKind, MilArgumentProto, MilBindingProto, MilBlockProto,
    MilDimensionProto, MilElementsProto, MilOperationProto, MilTensorTypeProto, MilValueKindProto,
    MilValueProto, NamedValueType, TypeKind, UnknownDimension,
};
use galatea_formats::coreml::proto::{CoreMlModelProto, ModelKind};
use galatea_testkit::mil;
use prost::Message;

/// The model of a case.
fn model(name: &str) -> CoreMlModelProto {
    let (bytes, _) = mil::case(name).model();
    CoreMlModelProto::decode(bytes.as_slice()).unwrap()
}

/// The block of the only function.
fn block(model: &mut CoreMlModelProto) -> &mut MilBlockProto {
    let Some(ModelKind::MlProgram(program)) = &mut model.kind else { panic!("no program") };
    let function = program.functions.values_mut().next().unwrap();
    function.block_specializations.values_mut().next().unwrap()
}

/// The first operation of an operator.
fn operation<'b>(block: &'b mut MilBlockProto, operator: &str) -> &'b mut MilOperationProto {
    block.operations.iter_mut().find(|operation| operation.r#type == operator).unwrap()
}

fn reading(model: &CoreMlModelProto) -> Result<coreml::LoadedCoreMl, String> {
    let bytes = model.encode_to_vec().into();
    coreml::read_model(bytes, None).map_err(|error| error.to_string())
}

/// Returns the error of a case after `change` was made to it.
fn refusal(case: &str, change: impl FnOnce(&mut MilBlockProto)) -> String {
    let mut model = model(case);
    reading(&model).unwrap();
    change(block(&mut model));
    reading(&model).unwrap_err()
}

#[track_caller]
fn says(found: &str, parts: &[&str]) {
    for part in parts {
        assert!(found.contains(part), "'{found}' does not say '{part}'");
    }
}

fn named(name: &str) -> MilArgumentProto {
    let binding = Some(BindingKind::Name(name.to_owned()));
    MilArgumentProto { arguments: vec![MilBindingProto { binding }] }
}

/// The constant that an input's name stands for.
fn constant<'b>(
    block: &'b mut MilBlockProto,
    operator: &str,
    input: &str,
) -> &'b mut MilValueProto {
    let argument = &operation(block, operator).inputs[input].arguments[0];
    let Some(BindingKind::Name(name)) = &argument.binding else { panic!("not by name") };
    let name = name.clone();
    let made = block.operations.iter_mut().find(|operation| operation.outputs[0].name == name);
    made.unwrap().attributes.get_mut("val").unwrap()
}

/// Makes a constant of integers another.
fn set_integer(value: &mut MilValueProto, integer: i32) {
    let Some(MilValueKindProto::Immediate(immediate)) = &mut value.value else {
        panic!("in a file")
    };
    let Some(ImmediateKind::Tensor(tensor)) = &mut immediate.kind else { panic!("no tensor") };
    let Some(MilElementsProto::Ints(ints)) = &mut tensor.value else { panic!("no integers") };
    ints.values = vec![integer];
}

fn tensor_type(stated: &mut NamedValueType) -> &mut MilTensorTypeProto {
    match &mut stated.r#type.as_mut().unwrap().kind {
        Some(TypeKind::Tensor(found)) => found,
        _ => panic!("no tensor"),
    }
}

const SOFTMAX: &str = "activation/softmax_along_axis_1";
const RNN: &str = "recurrent/rnn_forward";
const COND: &str = "control/cond_whose_predicate_is_true";
const LOOP: &str = "control/while_loop_of_5_rounds";

#[test]
fn unknown_and_missing_inputs_are_refused() {
    let found = refusal(SOFTMAX, |block| {
        let softmax = operation(block, "softmax");
        let x = softmax.inputs["x"].clone();
        softmax.inputs.insert("temperature".to_owned(), x);
    });
    says(&found, &["(softmax)", "no input 'temperature'"]);
    let found = refusal(SOFTMAX, |block| {
        operation(block, "softmax").inputs.remove("x");
    });
    says(&found, &["(softmax)", "input 'x' is missing"]);
    let found = refusal(SOFTMAX, |block| {
        let x = operation(block, "softmax").inputs.get_mut("x").unwrap();
        let twice = x.arguments[0].clone();
        x.arguments.push(twice);
    });
    says(&found, &["(softmax)", "input 'x' is bound to 2 values"]);
}

#[test]
fn operators_that_the_set_does_not_have_are_refused() {
    let found = refusal(SOFTMAX, |block| {
        operation(block, "softmax").r#type = "hardmax".to_owned();
    });
    says(&found, &["(hardmax)", "no operator 'hardmax'"]);
    let found = refusal(SOFTMAX, |block| {
        operation(block, "softmax").r#type = "resize".to_owned();
    });
    says(&found, &["(resize)", "came with CoreML7", "CoreML6"]);
}

#[test]
fn names_must_be_given_before_they_are_read_and_only_once() {
    let found = refusal(SOFTMAX, |block| {
        operation(block, "softmax").inputs.insert("x".to_owned(), named("nobody"));
    });
    says(&found, &["(softmax)", "'nobody'"]);
    // An operation that reads what it gives, and one that reads what a later one gives.
    let found = refusal(SOFTMAX, |block| {
        let softmax = operation(block, "softmax");
        let own = softmax.outputs[0].name.clone();
        softmax.inputs.insert("x".to_owned(), named(&own));
    });
    says(&found, &["(softmax)", "nothing before it gives"]);
    let found = refusal(SOFTMAX, |block| block.operations.reverse());
    says(&found, &["nothing before it gives"]);
    let found = refusal(SOFTMAX, |block| {
        let again = operation(block, "softmax").clone();
        block.operations.push(again);
    });
    says(&found, &["(softmax)", "has a value already"]);
    let found = refusal(SOFTMAX, |block| block.outputs[0] = "nobody".to_owned());
    says(&found, &["output 'nobody'"]);
}

#[test]
fn parameters_of_other_types_and_axes_outside_are_refused() {
    let found = refusal(SOFTMAX, |block| set_integer(constant(block, "softmax", "axis"), 9));
    says(&found, &["(softmax)", "axis 9"]);
    let found = refusal(SOFTMAX, |block| {
        operation(block, "softmax").inputs.insert("axis".to_owned(), named("x"));
    });
    says(&found, &["(softmax)", "input 'axis'", "takes a constant"]);
    let text = MilValueProto {
        value: Some(MilValueKindProto::BlobFile(coreml::proto::mil::BlobFileValue {
            file_name: "@model_path/weights/weight.bin".to_owned(),
            offset: 64,
        })),
        ..constant(block(&mut model(SOFTMAX)), "softmax", "axis").clone()
    };
    let found = refusal(SOFTMAX, |block| *constant(block, "softmax", "axis") = text);
    says(&found, &["(const)", "attribute 'val'"]);
    let found = refusal(RNN, |block| {
        let name = operation(block, "rnn").inputs["direction"].clone();
        operation(block, "rnn").inputs.insert("output_sequence".to_owned(), name);
    });
    says(&found, &["(rnn)", "input 'output_sequence' is string", "expected bool"]);
    let found = refusal(RNN, |block| {
        let weights = operation(block, "rnn").inputs["weight_ih"].clone();
        operation(block, "rnn").inputs.insert("weight_hh".to_owned(), weights);
    });
    says(&found, &["(rnn)", "of the state, expected 1 gates"]);
    let found = refusal(RNN, |block| {
        let word = operation(block, "rnn").inputs["activation"].clone();
        operation(block, "rnn").inputs.insert("direction".to_owned(), word);
    });
    says(&found, &["(rnn)", "input 'direction' is 'tanh'"]);
}

#[test]
fn what_a_program_says_of_its_values_must_be_so() {
    let found = refusal(SOFTMAX, |block| {
        tensor_type(&mut operation(block, "softmax").outputs[0]).data_type = 23;
    });
    says(&found, &["(softmax)", "is said to be int32"]);
    let found = refusal(SOFTMAX, |block| {
        let stated = tensor_type(&mut operation(block, "softmax").outputs[0]);
        stated.rank += 1;
        let unknown = DimensionKind::Unknown(UnknownDimension { variadic: false });
        stated.dimensions.push(MilDimensionProto { kind: Some(unknown) });
    });
    says(&found, &["(softmax)", "is said to be"]);
    let found = refusal(SOFTMAX, |block| {
        let softmax = operation(block, "softmax");
        let more = NamedValueType { name: "more".to_owned(), ..softmax.outputs[0].clone() };
        softmax.outputs.push(more);
    });
    says(&found, &["(softmax)", "it says 2 outputs, the operator gives 1"]);
    let found = refusal(SOFTMAX, |block| operation(block, "softmax").outputs.clear());
    says(&found, &["(softmax)", "it says 0 outputs"]);
}

#[test]
fn blocks_must_be_what_the_operation_runs() {
    let found = refusal(COND, |block| {
        operation(block, "cond").blocks.pop();
    });
    says(&found, &["(cond)", "1 blocks, expected two"]);
    let found = refusal(COND, |block| {
        operation(block, "cond").blocks[0].outputs.clear();
    });
    says(&found, &["(cond)", "a block takes 0 values and gives 0, expected none and 1"]);
    let found = refusal(COND, |block| {
        operation(block, "cond").blocks[1].outputs[0] = "nobody".to_owned();
    });
    says(&found, &["(cond)", "the block's output 'nobody'"]);
    let found = refusal(COND, |block| {
        operation(block, "cond").inputs.insert("pred".to_owned(), named("x"));
    });
    says(&found, &["(cond)", "the condition is FP32", "expected BOOL"]);
    let found = refusal(LOOP, |block| {
        let condition = &mut operation(block, "while_loop").blocks[0];
        condition.outputs[0] = condition.inputs[0].name.clone();
    });
    says(&found, &["(while_loop)", "the condition is INT32"]);
    let found = refusal(LOOP, |block| {
        operation(block, "while_loop").blocks[1].inputs.pop();
    });
    says(&found, &["(while_loop)", "2 values with blocks that take 2 and 1"]);
    let found = refusal(LOOP, |block| {
        operation(block, "while_loop").blocks[1].outputs.swap(0, 1);
    });
    says(&found, &["(while_loop)", "the loop's value"]);
    let found = refusal(LOOP, |block| {
        tensor_type(&mut operation(block, "while_loop").blocks[1].inputs[0]).data_type = 11;
    });
    says(&found, &["(while_loop)", "is said to be fp32"]);
    // What a block gives its names is not seen around it.
    let found = refusal(LOOP, |block| {
        let inner = operation(block, "while_loop").blocks[1].outputs[1].clone();
        block.outputs[0] = inner;
    });
    says(&found, &["nothing before it gives"]);
}

#[test]
fn damaged_programs_are_errors_or_other_programs_and_never_panic() {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % u64::try_from(below).unwrap()).unwrap()
    };
    for case in mil::cases() {
        let (mut bytes, folder) = case.model();
        let at = next(bytes.len());
        bytes[at] ^= 1 << next(8);
        let _ = coreml::read_model(bytes.into(), Some(folder.path()));
    }
}
