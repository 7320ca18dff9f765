//! Every field of a model's configuration: it acts, or the log says that it has no effect; a wrong type is refused.
//!
//! Fields are named as the descriptors have them, `MESSAGE.FIELD`. A new field of `model_config.proto` fails here until
//! it has its proof.

mod proofs;
mod scheduled;
mod served;

use galatea_serving::config::{from_text, idle_fields};
use galatea_tensor::{OrderedMap, OrderedSet};
use prost_reflect::{DescriptorPool, FieldDescriptor, Kind, MessageDescriptor};

use proofs::{FieldProof, ProofKind, proofs};

/// The message of configurations.
fn root() -> MessageDescriptor {
    let bytes = include_bytes!("../../src/config/model_config.bin").as_slice();
    let pool = DescriptorPool::decode(bytes).unwrap();
    pool.get_message_by_name("inference.ModelConfig").unwrap()
}

/// A field that holds a value, with the fields around it, the outermost first.
struct ValueField {
    place: Vec<FieldDescriptor>,
}

impl ValueField {
    fn last(&self) -> &FieldDescriptor {
        self.place.last().unwrap()
    }

    /// Name as proofs have it.
    fn name(&self) -> String {
        let field = self.last();
        format!("{}.{}", field.parent_message().name(), field.name())
    }

    /// Text of a configuration with this value of the field. Maps get a key.
    fn text(&self, value: &str) -> String {
        let mut text = value.to_owned();
        for field in self.place.iter().rev() {
            let value = match field.kind() {
                Kind::Message(_) => format!("{{ {text} }}"),
                _ => format!(": {text}"),
            };
            text = format!("{} {value}", field.name());
        }
        text
    }
}

/// Returns the fields that hold values: numbers, words, maps and messages without fields.
fn value_fields() -> Vec<ValueField> {
    let mut found = Vec::new();
    let mut seen = OrderedSet::new();
    collect(&root(), &[], &mut seen, &mut found);
    found
}

fn collect(
    message: &MessageDescriptor,
    place: &[FieldDescriptor],
    seen: &mut OrderedSet<String>,
    found: &mut Vec<ValueField>,
) {
    if !seen.insert(message.full_name().to_owned()) {
        return;
    }
    for field in message.fields() {
        let inside: Vec<FieldDescriptor> = place.iter().cloned().chain([field.clone()]).collect();
        let inner = match field.kind() {
            Kind::Message(inner) if inner.is_map_entry() => {
                let value = inner.map_entry_value_field();
                found.push(ValueField { place: inside.clone() });
                if let Kind::Message(value_message) = value.kind() {
                    let inside: Vec<FieldDescriptor> = inside.into_iter().chain([value]).collect();
                    collect(&value_message, &inside, seen, found);
                }
                continue;
            }
            Kind::Message(inner) => inner,
            _ => {
                found.push(ValueField { place: inside });
                continue;
            }
        };
        if inner.fields().count() == 0 {
            found.push(ValueField { place: inside });
        } else {
            collect(&inner, &inside, seen, found);
        }
    }
}

/// Returns whether a field has no second value that could do something else.
fn has_one_value(field: &ValueField) -> bool {
    matches!(field.last().kind(), Kind::Enum(values) if values.values().count() == 1)
}

#[test]
fn every_field_of_the_configuration_has_its_proof() {
    let fields = value_fields();
    assert!(fields.len() > 100, "{}", fields.len());
    let known: OrderedSet<String> =
        fields.iter().filter(|field| !has_one_value(field)).map(ValueField::name).collect();
    let all = proofs();
    let proved: OrderedSet<String> = all.iter().map(|proof| proof.field.to_owned()).collect();
    assert_eq!(proved.len(), all.len(), "a field has two proofs");
    let without: Vec<&String> = known.iter().filter(|name| !proved.contains(*name)).collect();
    let unknown: Vec<&String> = proved.iter().filter(|name| !known.contains(*name)).collect();
    assert!(without.is_empty() && unknown.is_empty(), "without: {without:?}; unknown: {unknown:?}");
}

#[test]
fn every_field_acts_or_is_told_to_have_no_effect() {
    let sources = served::sources();
    let mut outcomes = SeenOutcomes::default();
    for FieldProof { field, kind } in proofs() {
        match kind {
            ProofKind::Differs { seen, without, with } => {
                assert_idle_nowhere(field, with);
                let before = outcomes.of(seen, without);
                let after = outcomes.of(seen, with);
                assert_ne!(before, after, "{field}: '{with}' does what '{without}' does");
            }
            ProofKind::Idle(text) => {
                let told = idle_fields(&from_text(text).unwrap());
                assert_eq!(told.len(), 1, "{field}: '{text}': {told:?}");
                let name = field.split('.').next_back().unwrap();
                let known = told[0].field.contains(name) || told[0].field.ends_with(".cuda");
                let whole = told[0].field.ends_with(".secondary_devices");
                assert!(known || whole, "{field}: {told:?}");
            }
            ProofKind::Label(why) => assert!(!why.is_empty()),
            ProofKind::Elsewhere(test) => {
                assert!(sources.contains(&format!("fn {test}(")), "{field}: no test '{test}'");
            }
        }
    }
}

/// Results for texts, so that each is tried once.
#[derive(Default)]
struct SeenOutcomes(OrderedMap<(usize, &'static str), String>);

impl SeenOutcomes {
    fn of(&mut self, seen: fn(&str) -> String, text: &'static str) -> String {
        let observer = seen as usize;
        if let Some(known) = self.0.get(&(observer, text)) {
            return known.clone();
        }
        let outcome = seen(text);
        // What differs by itself proves nothing: the first text of each kind is tried twice.
        if self.0.keys().all(|(other, _)| *other != observer) {
            assert_eq!(seen(text), outcome, "'{text}' is not steady");
        }
        self.0.insert((observer, text), outcome.clone());
        outcome
    }
}

/// A field with an effect is not told to have none.
fn assert_idle_nowhere(field: &str, text: &str) {
    let name = field.split('.').next_back().unwrap();
    if let Ok(config) = from_text(text) {
        let told = idle_fields(&config);
        assert!(told.iter().all(|one| !one.field.ends_with(name)), "{field}: {told:?}");
    }
}

/// Values that a field of this kind does not take.
fn wrong_values(kind: &Kind) -> &'static [&'static str] {
    match kind {
        Kind::String | Kind::Bytes => &["5", "true", "1.5", "[ 1 ]"],
        Kind::Bool => &["'true'", "2", "-1", "0.5", "maybe"],
        Kind::Enum(_) => &["'KIND'", "NO_SUCH_WORD", "1.5"],
        Kind::Float | Kind::Double => &["'1'", "yes"],
        Kind::Uint32 | Kind::Fixed32 => &["'1'", "-1", "1.5", "yes", "4294967296"],
        Kind::Uint64 | Kind::Fixed64 => &["'1'", "-1", "1.5", "yes", "18446744073709551616"],
        Kind::Message(_) => &["5"],
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => &["'1'", "1.5", "yes", "2147483648"],
        _ => &["'1'", "1.5", "yes", "9223372036854775808"],
    }
}

#[test]
fn a_value_of_another_type_is_refused_with_its_place_for_every_field() {
    for field in value_fields() {
        for wrong in wrong_values(&field.last().kind()) {
            let text = match field.last().kind() {
                Kind::Message(_) => {
                    let text = field.text("MARK");
                    let (before, after) = text.split_once("{ MARK }").unwrap();
                    format!("{before}: {wrong}{after}")
                }
                _ => field.text(wrong),
            };
            let error = from_text(&text).expect_err(&text).message;
            let name = field.last().name();
            assert!(error.contains(name), "'{text}': {error}");
            let first = error.split(": ").next().unwrap();
            let has_place = first.split_once(':').is_some_and(|(line, column)| {
                line.parse::<usize>().is_ok() && column.parse::<usize>().is_ok()
            });
            assert!(has_place, "'{text}': {error}");
        }
    }
}
