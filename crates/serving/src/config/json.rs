//! The JSON form of a configuration, as Triton's `config` endpoint shows it: the field names of the proto file, every
//! scalar, list and map printed also when empty, messages and newer fields only where set, enum values by name, 64-bit
//! integers as numbers.

use prost::Message as _;
use prost_reflect::{
    Cardinality, DynamicMessage, FieldDescriptor, Kind, MapKey, ReflectMessage as _, Value,
};
use serde_json::{Map, Number, Value as Json};

use super::{ModelConfig, descriptor, transcode};
use crate::error::ServingError;

/// Fields that recorded Triton does not know: shown only where they are set.
const NEWER: &[(&str, &str)] = &[("ModelEnsembling", "max_inflight_requests")];

/// Deepest nesting of JSON values that is read.
const MAX_DEPTH: usize = 100;

/// A configuration as JSON.
#[must_use]
pub fn to_json(config: &ModelConfig) -> Json {
    let message = descriptor().and_then(|descriptor| {
        DynamicMessage::decode(descriptor, config.encode_to_vec().as_slice())
            .map_err(|error| ServingError::internal(error.to_string()))
    });
    // Encoding and decoding the same message by the same file cannot fail; a test goes through every field.
    message.map_or(Json::Null, |message| message_json(&message))
}

fn message_json(message: &DynamicMessage) -> Json {
    let mut members = Map::new();
    let descriptor = message.descriptor();
    // The order of the proto file, which is Triton's; `fields()` has that of the numbers.
    let declared = descriptor.descriptor_proto().field.iter();
    for field in declared.filter_map(|field| descriptor.get_field_by_name(field.name())) {
        let singular = !field.is_list() && !field.is_map();
        let optional =
            field.containing_oneof().is_some() || matches!(field.kind(), Kind::Message(_));
        let newer = NEWER.contains(&(descriptor.name(), field.name()));
        if singular && (optional || newer) && !message.has_field(&field) {
            continue;
        }
        members
            .insert(field.name().to_owned(), value_json(&field.kind(), &message.get_field(&field)));
    }
    Json::Object(members)
}

fn value_json(kind: &Kind, value: &Value) -> Json {
    match value {
        Value::Bool(value) => Json::Bool(*value),
        Value::I32(value) => Json::from(*value),
        Value::I64(value) => Json::from(*value),
        Value::U32(value) => Json::from(*value),
        Value::U64(value) => Json::from(*value),
        Value::F32(value) => real(f64::from(*value)),
        Value::F64(value) => real(*value),
        Value::String(value) => Json::String(value.clone()),
        Value::Bytes(value) => Json::String(String::from_utf8_lossy(value).into_owned()),
        Value::EnumNumber(number) => match kind {
            Kind::Enum(descriptor) => descriptor
                .get_value(*number)
                .map_or_else(|| Json::from(*number), |value| Json::String(value.name().to_owned())),
            _ => Json::from(*number),
        },
        Value::Message(message) => message_json(message),
        Value::List(values) => values.iter().map(|value| value_json(kind, value)).collect(),
        Value::Map(entries) => map_json(kind, entries.iter()),
    }
}

fn map_json<'a>(kind: &Kind, entries: impl Iterator<Item = (&'a MapKey, &'a Value)>) -> Json {
    let Kind::Message(entry) = kind else { return Json::Null };
    let value_kind = entry.map_entry_value_field().kind();
    let mut members: Vec<(String, Json)> =
        entries.map(|(key, value)| (key_text(key), value_json(&value_kind, value))).collect();
    members.sort_by(|a, b| a.0.cmp(&b.0));
    Json::Object(members.into_iter().collect())
}

fn key_text(key: &MapKey) -> String {
    match key {
        MapKey::Bool(key) => key.to_string(),
        MapKey::I32(key) => key.to_string(),
        MapKey::I64(key) => key.to_string(),
        MapKey::U32(key) => key.to_string(),
        MapKey::U64(key) => key.to_string(),
        MapKey::String(key) => key.clone(),
    }
}

/// A real number; whole ones without a point, as protobuf prints them.
fn real(value: f64) -> Json {
    // Every whole number below 2^53 is exact in both types.
    #[allow(clippy::cast_possible_truncation, reason = "the value is whole and below 2^53")]
    if value.fract() == 0.0 && value.abs() < 9_007_199_254_740_992.0 {
        return Json::from(value as i64);
    }
    Number::from_f64(value).map_or_else(|| Json::String(value.to_string()), Json::Number)
}

/// Reads the JSON form: field names of the proto file or in camel case, 64-bit integers as numbers or strings.
///
/// # Errors
/// INVALID_ARG with all problems, one a line, each with the field.
pub fn from_json(json: &Json) -> Result<ModelConfig, ServingError> {
    let mut reader = JsonConfigReader { path: Vec::new(), problems: Vec::new() };
    let message = reader.message(json, &DynamicMessage::new(descriptor()?));
    if reader.problems.is_empty() {
        return transcode(&message);
    }
    Err(ServingError::invalid_arg(reader.problems.join("\n")))
}

struct JsonConfigReader {
    path: Vec<String>,
    problems: Vec<String>,
}

impl JsonConfigReader {
    fn problem(&mut self, text: &str) {
        let path =
            if self.path.is_empty() { "the configuration".to_owned() } else { self.path.join(".") };
        self.problems.push(format!("{path}: {text}"));
    }

    fn message(&mut self, json: &Json, empty: &DynamicMessage) -> DynamicMessage {
        let mut message = empty.clone();
        let descriptor = message.descriptor();
        let Json::Object(members) = json else {
            self.problem(&format!(
                "expected an object of the fields of {}, found {json}",
                descriptor.name()
            ));
            return message;
        };
        if self.path.len() > MAX_DEPTH {
            self.problem("objects are nested too deeply");
            return message;
        }
        for (name, value) in members {
            self.path.push(name.clone());
            let found = descriptor
                .get_field_by_name(name)
                .or_else(|| descriptor.get_field_by_json_name(name));
            match found {
                None => self.problem(&format!("{} has no field of this name", descriptor.name())),
                Some(_) if value.is_null() => {}
                Some(field) => {
                    let rival = field.containing_oneof().and_then(|oneof| {
                        oneof.fields().find(|other| {
                            other.number() != field.number() && message.has_field(other)
                        })
                    });
                    if let Some(rival) = rival {
                        self.problem(&format!(
                            "cannot stand beside '{}': only one of them may be set",
                            rival.name()
                        ));
                    }
                    if let Some(value) = self.field(value, &field) {
                        message.set_field(&field, value);
                    }
                }
            }
            self.path.pop();
        }
        message
    }

    fn field(&mut self, json: &Json, field: &FieldDescriptor) -> Option<Value> {
        let kind = field.kind();
        if let (true, Kind::Message(entry)) = (field.is_map(), &kind) {
            let Json::Object(members) = json else {
                self.problem(&format!("expected an object, found {json}"));
                return None;
            };
            let key_kind = entry.map_entry_key_field().kind();
            let value_kind = entry.map_entry_value_field().kind();
            let mut map = std::collections::HashMap::new();
            for (name, value) in members {
                self.path.push(name.clone());
                let key = self.scalar(&Json::String(name.clone()), &key_kind);
                let value = self.single(value, &value_kind);
                self.path.pop();
                let key = match key? {
                    Value::String(key) => MapKey::String(key),
                    Value::U64(key) => MapKey::U64(key),
                    _ => continue,
                };
                map.extend(value.map(|value| (key, value)));
            }
            return Some(Value::Map(map));
        }
        if field.cardinality() != Cardinality::Repeated {
            return self.single(json, &kind);
        }
        let Json::Array(items) = json else {
            self.problem(&format!("expected an array, found {json}"));
            return None;
        };
        let mut list = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            self.path.push(format!("[{at}]"));
            list.extend(self.single(item, &kind));
            self.path.pop();
        }
        Some(Value::List(list))
    }

    fn single(&mut self, json: &Json, kind: &Kind) -> Option<Value> {
        match kind {
            Kind::Message(inner) => {
                Some(Value::Message(self.message(json, &DynamicMessage::new(inner.clone()))))
            }
            _ => self.scalar(json, kind),
        }
    }

    fn scalar(&mut self, json: &Json, kind: &Kind) -> Option<Value> {
        let found = scalar(json, kind);
        if found.is_none() {
            self.problem(&format!("expected {}, found {json}", kind_text(kind)));
        }
        found
    }
}

fn kind_text(kind: &Kind) -> String {
    match kind {
        Kind::Bool => "true or false".to_owned(),
        Kind::String => "a string".to_owned(),
        Kind::Enum(descriptor) => format!("a value of {}", descriptor.name()),
        Kind::Uint32 | Kind::Uint64 => "an unsigned integer".to_owned(),
        Kind::Float | Kind::Double => "a number".to_owned(),
        _ => "an integer".to_owned(),
    }
}

fn scalar(json: &Json, kind: &Kind) -> Option<Value> {
    // Protobuf writes 64-bit integers as strings.
    let number = match json {
        Json::String(text) => text.parse::<Number>().ok(),
        Json::Number(number) => Some(number.clone()),
        _ => None,
    };
    match kind {
        Kind::Bool => json.as_bool().map(Value::Bool),
        Kind::String => json.as_str().map(|text| Value::String(text.to_owned())),
        Kind::Int32 => number?.as_i64()?.try_into().ok().map(Value::I32),
        Kind::Int64 => number?.as_i64().map(Value::I64),
        Kind::Uint32 => number?.as_u64()?.try_into().ok().map(Value::U32),
        Kind::Uint64 => number?.as_u64().map(Value::U64),
        #[allow(
            clippy::cast_possible_truncation,
            reason = "a float field rounds to single precision"
        )]
        Kind::Float => number?.as_f64().map(|real| Value::F32(real as f32)),
        Kind::Double => number?.as_f64().map(Value::F64),
        Kind::Enum(descriptor) => match json {
            Json::String(name) => {
                descriptor.get_value_by_name(name).map(|value| Value::EnumNumber(value.number()))
            }
            _ => descriptor
                .get_value(number?.as_i64()?.try_into().ok()?)
                .map(|value| Value::EnumNumber(value.number())),
        },
        _ => None,
    }
}
