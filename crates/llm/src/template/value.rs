//! Values of a rendering. Texts, lists and maps never change once they are made, count the memory
//! that they hold, and nest to a bounded depth; only namespaces change, and these hold no others.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;
use std::sync::Arc;

use serde_json::Value;

use super::MAX_TEXT_BYTES;
use super::meter::{HeldBytes, RenderFault, RenderMeter, RenderResult};

/// How deep values nest at most. JSON of a request nests to 128.
const MAX_VALUE_DEPTH: u16 = 160;

/// Entries of a map that are looked at one by one.
const MAX_LISTED_ENTRIES: usize = 16;

/// Any value. Clones share what they hold.
#[derive(Debug, Clone)]
pub(super) enum TemplateValue {
    /// Nothing, with the name under which something was looked for.
    Undefined(Option<Arc<str>>),
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(Rc<TextValue>),
    List(Rc<ListValue>),
    Map(Rc<MapValue>),
    Namespace(Rc<NamespaceValue>),
    Loop(Rc<LoopValue>),
    Macro(MacroValue),
    /// A function by its name.
    Function(&'static str),
    /// A method of a value that is not called yet.
    Method(Rc<MethodValue>),
}

#[derive(Debug)]
pub(super) struct TextValue {
    pub(super) text: String,
    _held: HeldBytes,
}

#[derive(Debug)]
pub(super) struct ListValue {
    pub(super) items: Vec<TemplateValue>,
    pub(super) is_tuple: bool,
    nesting: ValueNesting,
    _held: HeldBytes,
}

#[derive(Debug)]
pub(super) struct MapValue {
    entries: Vec<MapEntry>,
    /// Hashes of keys to places, for maps that are not short.
    index: Option<HashMap<u64, u32>>,
    hashing: RandomState,
    nesting: ValueNesting,
    _held: HeldBytes,
}

#[derive(Debug, Clone)]
pub(super) struct MapEntry {
    pub(super) key: TemplateValue,
    pub(super) value: TemplateValue,
}

#[derive(Debug)]
pub(super) struct NamespaceValue {
    pub(super) entries: RefCell<Vec<NamespaceEntry>>,
    held: RefCell<HeldBytes>,
}

#[derive(Debug)]
pub(super) struct NamespaceEntry {
    pub(super) name: Arc<str>,
    pub(super) value: TemplateValue,
}

/// The `loop` of a loop.
#[derive(Debug)]
pub(super) struct LoopValue {
    pub(super) items: Rc<ListValue>,
    pub(super) index: Cell<usize>,
    pub(super) depth: u32,
    /// The place of the loop in the tree.
    pub(super) node: u32,
    /// Arguments that `changed` was called with.
    pub(super) before: RefCell<Option<TemplateValue>>,
}

/// A macro, or the body of a call, and the scope that it sees.
#[derive(Debug, Clone, Copy)]
pub(super) struct MacroValue {
    /// The place of the macro in the tree.
    pub(super) node: u32,
    pub(super) scope: ScopeId,
}

/// A scope, which may have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ScopeId {
    pub(super) place: u32,
    pub(super) serial: u64,
}

#[derive(Debug)]
pub(super) struct MethodValue {
    pub(super) of: TemplateValue,
    pub(super) name: Arc<str>,
}

/// How deep a value reaches, and whether something that changes is in it.
#[derive(Debug, Clone, Copy, Default)]
struct ValueNesting {
    depth: u16,
    changes: bool,
}

impl ValueNesting {
    fn add(&mut self, value: &TemplateValue) {
        let of = value.nesting();
        self.depth = self.depth.max(of.depth);
        self.changes |= of.changes;
    }

    /// The nesting of what holds values of this nesting.
    fn around(self) -> RenderResult<Self> {
        if self.depth >= MAX_VALUE_DEPTH {
            let message = format!("values nest deeper than {MAX_VALUE_DEPTH} levels");
            return Err(RenderFault::new(message));
        }
        Ok(Self { depth: self.depth + 1, ..self })
    }
}

const VALUE_BYTES: usize = size_of::<TemplateValue>();

impl TemplateValue {
    /// A text of its own.
    pub(super) fn text(text: impl Into<String>, meter: &RenderMeter<'_>) -> RenderResult<Self> {
        let text: String = text.into();
        check_length(text.len())?;
        meter.bytes(text.len())?;
        let held = meter.hold(text.capacity() + size_of::<TextValue>())?;
        Ok(Self::Text(Rc::new(TextValue { text, _held: held })))
    }

    pub(super) fn list(items: Vec<Self>, meter: &RenderMeter<'_>) -> RenderResult<Self> {
        Ok(Self::List(Rc::new(ListValue::new(items, false, meter)?)))
    }

    pub(super) fn tuple(items: Vec<Self>, meter: &RenderMeter<'_>) -> RenderResult<Self> {
        Ok(Self::List(Rc::new(ListValue::new(items, true, meter)?)))
    }

    pub(super) fn map(entries: Vec<MapEntry>, meter: &RenderMeter<'_>) -> RenderResult<Self> {
        Ok(Self::Map(Rc::new(MapValue::new(entries, meter)?)))
    }

    /// A number of things.
    pub(super) fn count(count: usize) -> Self {
        Self::Int(i128::try_from(count).unwrap_or(i128::MAX))
    }

    /// A value of JSON.
    pub(super) fn from_json(value: &Value, meter: &RenderMeter<'_>) -> RenderResult<Self> {
        Self::from_json_within(value, meter, MAX_VALUE_DEPTH)
    }

    fn from_json_within(value: &Value, meter: &RenderMeter<'_>, levels: u16) -> RenderResult<Self> {
        let Some(below) = levels.checked_sub(1) else {
            let message = format!("values nest deeper than {MAX_VALUE_DEPTH} levels");
            return Err(RenderFault::new(message));
        };
        match value {
            Value::Null => Ok(Self::None),
            Value::Bool(truth) => Ok(Self::Bool(*truth)),
            Value::Number(number) => Ok(match (number.as_i64(), number.as_u64()) {
                (Some(number), _) => Self::Int(number.into()),
                (None, Some(number)) => Self::Int(number.into()),
                (None, None) => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
            }),
            Value::String(text) => Self::text(text.as_str(), meter),
            Value::Array(items) => {
                let items = items.iter().map(|item| Self::from_json_within(item, meter, below));
                Self::list(items.collect::<RenderResult<_>>()?, meter)
            }
            Value::Object(entries) => {
                let entry = |(key, value): (&String, &Value)| {
                    let key = Self::text(key.as_str(), meter)?;
                    Ok(MapEntry { key, value: Self::from_json_within(value, meter, below)? })
                };
                Self::map(entries.iter().map(entry).collect::<RenderResult<_>>()?, meter)
            }
        }
    }

    fn nesting(&self) -> ValueNesting {
        match self {
            Self::List(list) => list.nesting,
            Self::Map(map) => map.nesting,
            // What a namespace holds nests as deep as values may, and lists around it likewise.
            Self::Namespace(_) | Self::Loop(_) | Self::Method(_) => {
                ValueNesting { depth: 0, changes: true }
            }
            _ => ValueNesting::default(),
        }
    }

    /// Whether something that changes is in the value, which might so come to hold itself.
    pub(super) fn changes(&self) -> bool {
        self.nesting().changes
    }

    pub(super) fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(&text.text),
            _ => None,
        }
    }

    pub(super) fn is_undefined(&self) -> bool {
        matches!(self, Self::Undefined(_))
    }

    /// Whole numbers, and truths as Python counts them.
    pub(super) fn as_int(&self) -> Option<i128> {
        match self {
            Self::Int(number) => Some(*number),
            Self::Bool(truth) => Some(i128::from(*truth)),
            _ => None,
        }
    }

    pub(super) fn is_true(&self) -> bool {
        match self {
            Self::Undefined(_) | Self::None => false,
            Self::Bool(truth) => *truth,
            Self::Int(number) => *number != 0,
            Self::Float(number) => *number != 0.0,
            Self::Text(text) => !text.text.is_empty(),
            Self::List(list) => !list.items.is_empty(),
            Self::Map(map) => !map.entries.is_empty(),
            _ => true,
        }
    }

    /// The name of the type in Python.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Undefined(_) => "Undefined",
            Self::None => "NoneType",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Float(_) => "float",
            Self::Text(_) => "str",
            Self::List(list) if list.is_tuple => "tuple",
            Self::List(_) => "list",
            Self::Map(_) => "dict",
            Self::Namespace(_) => "Namespace",
            Self::Loop(_) => "LoopContext",
            Self::Macro(_) => "Macro",
            Self::Function(_) => "function",
            Self::Method(_) => "method",
        }
    }

    /// The error for an undefined value where one is needed.
    pub(super) fn undefined(name: Option<&str>) -> RenderFault {
        match name {
            Some(name) => RenderFault::new(format!("'{name}' is undefined")),
            None => RenderFault::new("the value is undefined"),
        }
    }

    /// The same value unless it is undefined.
    pub(super) fn defined(&self) -> RenderResult<&Self> {
        match self {
            Self::Undefined(name) => Err(Self::undefined(name.as_deref())),
            value => Ok(value),
        }
    }
}

/// Refuses texts that are too long before they are made.
pub(super) fn check_length(bytes: usize) -> RenderResult<()> {
    if bytes <= MAX_TEXT_BYTES {
        return Ok(());
    }
    let message =
        format!("the text is too large: {bytes} bytes, longer than {MAX_TEXT_BYTES} bytes");
    Err(RenderFault::new(message))
}

impl ListValue {
    pub(super) fn new(
        items: Vec<TemplateValue>,
        is_tuple: bool,
        meter: &RenderMeter<'_>,
    ) -> RenderResult<Self> {
        // A look at eight elements takes about as long as any step.
        meter.elements(items.len() / 8)?;
        let mut nesting = ValueNesting::default();
        items.iter().for_each(|item| nesting.add(item));
        let held = meter.hold(items.capacity() * VALUE_BYTES + size_of::<Self>())?;
        Ok(Self { items, is_tuple, nesting: nesting.around()?, _held: held })
    }
}

impl MapValue {
    /// A map of entries, of which the last with a key counts and stands where the first stood.
    pub(super) fn new(given: Vec<MapEntry>, meter: &RenderMeter<'_>) -> RenderResult<Self> {
        meter.elements(given.len())?;
        let mut held = meter.hold(given.capacity() * size_of::<MapEntry>() + size_of::<Self>())?;
        if given.len() > MAX_LISTED_ENTRIES {
            held.grow(given.len() * 2 * size_of::<(u64, u32)>())?;
        }
        let mut map = Self {
            entries: Vec::new(),
            index: (given.len() > MAX_LISTED_ENTRIES).then(HashMap::new),
            hashing: RandomState::new(),
            nesting: ValueNesting::default(),
            _held: held,
        };
        map.entries.reserve_exact(given.len());
        for entry in given {
            map.insert(entry, meter)?;
        }
        map.nesting = map.nesting.around()?;
        Ok(map)
    }

    fn insert(&mut self, entry: MapEntry, meter: &RenderMeter<'_>) -> RenderResult<()> {
        self.nesting.add(&entry.value);
        self.nesting.add(&entry.key);
        if self.get(&entry.key, meter)?.is_some() {
            let place = self.place(&entry.key)?;
            if let Some(found) = place.and_then(|place| self.entries.get_mut(place)) {
                found.value = entry.value;
            }
            return Ok(());
        }
        let hash = self.hash(&entry.key)?;
        let place = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        if let Some(index) = &mut self.index {
            index.entry(hash).or_insert(place);
        }
        self.entries.push(entry);
        Ok(())
    }

    fn hash(&self, key: &TemplateValue) -> RenderResult<u64> {
        Ok(match key {
            TemplateValue::Text(text) => self.hashing.hash_one(text.text.as_str()),
            TemplateValue::None => self.hashing.hash_one(()),
            TemplateValue::Int(_) | TemplateValue::Bool(_) => self.hashing.hash_one(key.as_int()),
            TemplateValue::Float(number) => match whole(*number) {
                Some(number) => self.hashing.hash_one(Some(number)),
                None => self.hashing.hash_one(number.to_bits()),
            },
            TemplateValue::List(list) if list.is_tuple && list.nesting.depth == 1 => {
                let hashes = list.items.iter().map(|item| self.hash(item));
                self.hashing.hash_one(hashes.collect::<RenderResult<Vec<u64>>>()?)
            }
            other => {
                let message = format!("unhashable type: '{}'", other.type_name());
                return Err(RenderFault::new(message));
            }
        })
    }

    /// The place of a key, which may be one that no map can have.
    fn place(&self, key: &TemplateValue) -> RenderResult<Option<usize>> {
        let hash = self.hash(key)?;
        let listed = || self.entries.iter().position(|entry| same_key(&entry.key, key));
        let Some(index) = &self.index else { return Ok(listed()) };
        let Some(place) = index.get(&hash).and_then(|place| usize::try_from(*place).ok()) else {
            return Ok(None);
        };
        let found = self.entries.get(place).is_some_and(|entry| same_key(&entry.key, key));
        Ok(if found { Some(place) } else { listed() })
    }

    /// The value of a key.
    ///
    /// # Errors
    /// For what cannot be a key.
    pub(super) fn get(
        &self,
        key: &TemplateValue,
        meter: &RenderMeter<'_>,
    ) -> RenderResult<Option<&TemplateValue>> {
        let texts = match key {
            TemplateValue::List(list) => list.items.as_slice(),
            key => std::slice::from_ref(key),
        };
        for text in texts.iter().filter_map(TemplateValue::as_str) {
            meter.bytes(text.len().saturating_mul(self.len().min(MAX_LISTED_ENTRIES)))?;
        }
        Ok(self.place(key)?.and_then(|place| self.entries.get(place)).map(|entry| &entry.value))
    }

    pub(super) fn get_text(&self, key: &str) -> Option<&TemplateValue> {
        let is_key = |entry: &&MapEntry| entry.key.as_str() == Some(key);
        let found = match &self.index {
            None => self.entries.iter().find(is_key),
            Some(index) => {
                let place = usize::try_from(*index.get(&self.hashing.hash_one(key))?).ok()?;
                let found = self.entries.get(place);
                found.filter(is_key).or_else(|| self.entries.iter().find(is_key))
            }
        };
        found.map(|entry| &entry.value)
    }

    pub(super) fn entries(&self) -> &[MapEntry] {
        &self.entries
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

/// The place of an element from either end.
pub(super) fn place(index: i128, length: usize) -> Option<usize> {
    let from_end = if index < 0 { i128::try_from(length).ok()? } else { 0 };
    usize::try_from(index + from_end).ok().filter(|place| *place < length)
}

/// The whole number that a number is.
pub(super) fn whole(number: f64) -> Option<i128> {
    const LIMIT: f64 = 1e38;
    #[expect(clippy::cast_possible_truncation, reason = "the number is whole and in range")]
    (number.trunc() == number && number.abs() < LIMIT).then_some(number as i128)
}

/// Whether two keys of maps are equal. What is no key equals nothing.
fn same_key(a: &TemplateValue, b: &TemplateValue) -> bool {
    match (a, b) {
        (TemplateValue::Text(a), TemplateValue::Text(b)) => a.text == b.text,
        (TemplateValue::None, TemplateValue::None) => true,
        (TemplateValue::Float(a), TemplateValue::Float(b)) => a == b,
        (TemplateValue::Float(a), b) => whole(*a).is_some() && whole(*a) == b.as_int(),
        (a, TemplateValue::Float(b)) => whole(*b).is_some() && whole(*b) == a.as_int(),
        (TemplateValue::List(a), TemplateValue::List(b)) => {
            a.is_tuple
                && b.is_tuple
                && a.nesting.depth == 1
                && a.items.len() == b.items.len()
                && a.items.iter().zip(&b.items).all(|(a, b)| same_key(a, b))
        }
        (a, b) => a.as_int().is_some() && a.as_int() == b.as_int(),
    }
}

impl NamespaceValue {
    pub(super) fn new(meter: &RenderMeter<'_>) -> RenderResult<Self> {
        let held = RefCell::new(meter.hold(size_of::<Self>())?);
        Ok(Self { entries: RefCell::default(), held })
    }

    /// Sets an attribute.
    ///
    /// # Errors
    /// For a value that a namespace is in: it could come to hold itself.
    pub(super) fn set(
        &self,
        name: &Arc<str>,
        value: TemplateValue,
        meter: &RenderMeter<'_>,
    ) -> RenderResult<()> {
        if value.changes() {
            let message = format!(
                "a namespace cannot hold a '{}' with a namespace, loop or method in it (at '{name}')",
                value.type_name()
            );
            return Err(RenderFault::new(message));
        }
        let mut entries = self.entries.borrow_mut();
        meter.elements(entries.len() / 8)?;
        let old = match entries.iter_mut().find(|entry| entry.name == *name) {
            Some(entry) => Some(std::mem::replace(&mut entry.value, value)),
            None => {
                self.held.borrow_mut().grow(size_of::<NamespaceEntry>())?;
                entries.push(NamespaceEntry { name: Arc::clone(name), value });
                None
            }
        };
        drop(entries);
        drop(old);
        Ok(())
    }

    pub(super) fn get(
        &self,
        name: &str,
        meter: &RenderMeter<'_>,
    ) -> RenderResult<Option<TemplateValue>> {
        let entries = self.entries.borrow();
        meter.elements(entries.len() / 8)?;
        Ok(entries.iter().find(|entry| &*entry.name == name).map(|entry| entry.value.clone()))
    }
}
