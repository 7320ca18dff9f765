use prost_reflect::DescriptorPool;
use prost_reflect::prost_types::field_descriptor_proto::{Label, Type};
use prost_reflect::prost_types::{
    DescriptorProto, EnumDescriptorProto, EnumValueDescriptorProto, FieldDescriptorProto,
    FileDescriptorProto, FileDescriptorSet, OneofDescriptorProto,
};

use super::*;

fn field(number: i32, name: &str, kind: Type, label: Label) -> FieldDescriptorProto {
    let type_name = match kind {
        Type::Message => Some(".t.Node".to_owned()),
        Type::Enum => Some(".t.Colour".to_owned()),
        _ => None,
    };
    FieldDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        r#type: Some(kind.into()),
        label: Some(label.into()),
        type_name,
        ..FieldDescriptorProto::default()
    }
}

/// `message Node` with a field of every kind that matters here, itself among them.
fn node() -> MessageDescriptor {
    let member = |number, name| FieldDescriptorProto {
        oneof_index: Some(0),
        ..field(number, name, Type::Bool, Label::Optional)
    };
    let node = DescriptorProto {
        name: Some("Node".to_owned()),
        field: vec![
            field(1, "text", Type::String, Label::Optional),
            field(2, "numbers", Type::Int32, Label::Repeated),
            field(3, "child", Type::Message, Label::Optional),
            field(4, "children", Type::Message, Label::Repeated),
            field(5, "colour", Type::Enum, Label::Optional),
            field(6, "real", Type::Double, Label::Optional),
            field(7, "raw", Type::Bytes, Label::Optional),
            member(8, "left"),
            member(9, "right"),
        ],
        oneof_decl: vec![OneofDescriptorProto {
            name: Some("side".to_owned()),
            ..Default::default()
        }],
        ..DescriptorProto::default()
    };
    let value = |(number, name): (i32, &str)| EnumValueDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        ..Default::default()
    };
    let colour = EnumDescriptorProto {
        name: Some("Colour".to_owned()),
        value: [(0, "GREY"), (1, "GREEN")].map(value).to_vec(),
        ..EnumDescriptorProto::default()
    };
    let file = FileDescriptorProto {
        name: Some("t.proto".to_owned()),
        package: Some("t".to_owned()),
        syntax: Some("proto3".to_owned()),
        message_type: vec![node],
        enum_type: vec![colour],
        ..FileDescriptorProto::default()
    };
    let pool =
        DescriptorPool::from_file_descriptor_set(FileDescriptorSet { file: vec![file] }).unwrap();
    pool.get_message_by_name("t.Node").unwrap()
}

fn read(text: &str) -> DynamicMessage {
    parse(text, &node()).unwrap_or_else(|problems| panic!("{text}: {problems:?}"))
}

fn problems(text: &str) -> Vec<String> {
    parse(text, &node()).unwrap_err().iter().map(ToString::to_string).collect()
}

fn get(message: &DynamicMessage, name: &str) -> Value {
    message.get_field_by_name(name).unwrap().into_owned()
}

#[test]
fn values_of_every_kind_are_read() {
    let message = read(
        "text: 'a' \"b\\n\\x43\\104\\u00e9\" numbers: 0x10 numbers: [-1, 017] colour: GREEN real: -1.5e+3f \
         raw: \"\\377\" left: True child { text: \"inner\" } children: [{}, < real: .5 >] # the end",
    );
    assert_eq!(get(&message, "text"), Value::String("ab\nCD\u{e9}".to_owned()));
    assert_eq!(get(&message, "numbers"), Value::List([16, -1, 15].map(Value::I32).to_vec()));
    assert_eq!(get(&message, "colour"), Value::EnumNumber(1));
    assert_eq!(get(&message, "real"), Value::F64(-1500.0));
    assert_eq!(get(&message, "raw"), Value::Bytes(vec![255].into()));
    assert_eq!(get(&message, "left"), Value::Bool(true));
    let Value::Message(child) = get(&message, "child") else { panic!("no message") };
    assert_eq!(get(&child, "text"), Value::String("inner".to_owned()));
    let Value::List(children) = get(&message, "children") else { panic!("no list") };
    assert_eq!(get(children[1].as_message().unwrap(), "real"), Value::F64(0.5));
    for (text, expected) in [("inf", f64::INFINITY), ("-Infinity", f64::NEG_INFINITY), ("7", 7.0)] {
        assert_eq!(get(&read(&format!("real: {text}")), "real"), Value::F64(expected));
    }
    assert_eq!(get(&read("colour: 1"), "colour"), Value::EnumNumber(1));
    let empty = read("# nothing");
    assert!(node().fields().all(|field| !empty.has_field_by_name(field.name())));
}

#[test]
fn each_problem_is_said_where_it_is_and_reading_goes_on() {
    let cases = [
        (
            "txt: 1 text: 2",
            vec![
                "1:1: txt: Node has no field of this name; did you mean 'text'?",
                "1:14: text: expected a string, found the number 2",
            ],
        ),
        (
            "left: t\nright: t",
            vec!["2:1: right: cannot stand beside 'left' at 1:1: only one of them may be set"],
        ),
        (
            "text: \"a\"\ntext: \"b\"",
            vec!["2:1: text: set for the second time; the first is at 1:1"],
        ),
        ("colour: GREN", vec!["1:9: colour: 'GREN' is no value of Colour; did you mean 'GREEN'?"]),
        ("colour: 7", vec!["1:9: colour: 7 is no value of Colour"]),
        (
            "numbers: 3000000000",
            vec!["1:10: numbers: 3000000000 is out of the range of a 32-bit integer"],
        ),
        ("text: [1]", vec!["1:7: text: a list stands here, but the field takes one value"]),
        (
            "children { child { real: x } }",
            vec!["1:26: children[0].child.real: expected a number, found 'x'"],
        ),
        ("child { ", vec!["1:7: child: the brace opened here is never closed by '}'"]),
        ("}", vec!["1:1: this closing brace has no opening one"]),
        ("text \"a\"", vec!["1:6: text: ':' is missing after the field's name"]),
        ("text: \"a\\q\"", vec!["1:9: '\\q' is no escape"]),
        ("text: \"\\xff\"", vec!["1:7: text: this string is not UTF-8"]),
        (
            "numbers: [1 2]",
            vec![
                "1:13: numbers: expected ',' or ']' in the list opened at 1:10, found the number 2",
            ],
        ),
        (
            "nope { a { b: [1, {c: 2}] } } left: 2",
            vec![
                "1:1: nope: Node has no field of this name",
                "1:37: left: expected true or false, found the number 2",
            ],
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(problems(text), expected, "{text}");
    }
}

#[test]
fn depth_and_number_of_problems_are_bounded() {
    let deep = problems(&"child { ".repeat(100_000));
    assert!(deep.iter().any(|problem| problem.contains("nested deeper than 64")), "{deep:?}");
    assert_eq!(problems(&"x: 1 ".repeat(1000)).len(), MAX_PROBLEMS);
    let fits = format!("{}{}", "child { ".repeat(60), "}".repeat(60));
    read(&fits);
}
