//! Texts and lists that grow within the bounds of a rendering.

use std::rc::Rc;

use super::MAX_TEXT_BYTES;
use super::meter::{HeldBytes, RenderFault, RenderMeter, RenderResult};
use super::value::{ListValue, TemplateValue, check_length};

/// A text that is being written.
pub(super) struct TextBuilder<'m, 'a> {
    meter: &'m RenderMeter<'a>,
    written: WrittenText,
}

/// Text that a builder has written so far, and the memory that counts for it.
pub(super) struct WrittenText {
    text: String,
    held: HeldBytes,
}

impl WrittenText {
    pub(super) fn new(meter: &RenderMeter<'_>) -> RenderResult<Self> {
        Ok(Self { text: String::new(), held: meter.hold(0)? })
    }

    /// Appends a text.
    ///
    /// # Errors
    /// When a bound is reached, or the host has no memory.
    pub(super) fn push(&mut self, text: &str, meter: &RenderMeter<'_>) -> RenderResult<()> {
        self.reserve(text.len(), meter)?;
        self.text.push_str(text);
        Ok(())
    }

    fn reserve(&mut self, bytes: usize, meter: &RenderMeter<'_>) -> RenderResult<()> {
        check_length(self.text.len().saturating_add(bytes))?;
        meter.bytes(bytes)?;
        let before = self.text.capacity();
        if self.text.len() + bytes > before {
            let wanted = (self.text.len() + bytes).max((2 * before).min(MAX_TEXT_BYTES));
            self.held.set(wanted)?;
            let no_memory = |_| RenderFault::new("the host has no memory for the text");
            self.text.try_reserve_exact(wanted - self.text.len()).map_err(no_memory)?;
        }
        Ok(())
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    pub(super) fn into_value(mut self, meter: &RenderMeter<'_>) -> RenderResult<TemplateValue> {
        if self.text.capacity() > 2 * self.text.len() {
            self.text.shrink_to_fit();
        }
        let Self { text, held } = self;
        drop(held);
        TemplateValue::text(text, meter)
    }
}

impl<'m, 'a> TextBuilder<'m, 'a> {
    pub(super) fn new(meter: &'m RenderMeter<'a>) -> RenderResult<Self> {
        Ok(Self { meter, written: WrittenText::new(meter)? })
    }

    pub(super) fn push(&mut self, text: &str) -> RenderResult<()> {
        self.written.push(text, self.meter)
    }

    pub(super) fn push_char(&mut self, character: char) -> RenderResult<()> {
        self.push(character.encode_utf8(&mut [0; 4]))
    }

    /// Appends two texts, and takes no more memory than they need.
    pub(super) fn push_both(&mut self, first: &str, second: &str) -> RenderResult<()> {
        self.written.reserve(first.len() + second.len(), self.meter)?;
        self.written.text.push_str(first);
        self.written.text.push_str(second);
        Ok(())
    }

    /// Appends a text so many times.
    pub(super) fn push_times(&mut self, text: &str, times: usize) -> RenderResult<()> {
        let bytes = text.len().saturating_mul(times);
        check_length(bytes)?;
        self.written.reserve(bytes, self.meter)?;
        if !text.is_empty() {
            (0..times).for_each(|_| self.written.text.push_str(text));
        }
        Ok(())
    }

    pub(super) fn as_str(&self) -> &str {
        &self.written.text
    }

    pub(super) fn into_value(self) -> RenderResult<TemplateValue> {
        self.written.into_value(self.meter)
    }
}

/// Values that become a list.
pub(super) struct ItemsBuilder<'m, 'a> {
    meter: &'m RenderMeter<'a>,
    items: Vec<TemplateValue>,
    held: HeldBytes,
}

impl<'m, 'a> ItemsBuilder<'m, 'a> {
    pub(super) fn new(meter: &'m RenderMeter<'a>) -> RenderResult<Self> {
        Ok(Self { meter, items: Vec::new(), held: meter.hold(0)? })
    }

    /// Appends a value, which takes a step.
    pub(super) fn push(&mut self, value: TemplateValue) -> RenderResult<()> {
        self.meter.step(1)?;
        let before = self.items.capacity();
        self.items.push(value);
        if self.items.capacity() != before {
            self.held.set(self.items.capacity() * size_of::<TemplateValue>())?;
        }
        Ok(())
    }

    pub(super) fn extend(&mut self, values: &[TemplateValue]) -> RenderResult<()> {
        self.meter.elements(values.len() / 8 + 1)?;
        self.held.set((self.items.len() + values.len()) * size_of::<TemplateValue>())?;
        self.items.extend_from_slice(values);
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn into_items(self) -> Vec<TemplateValue> {
        self.items
    }

    pub(super) fn into_list(self) -> RenderResult<TemplateValue> {
        drop(self.held);
        TemplateValue::list(self.items, self.meter)
    }
}

impl TemplateValue {
    /// The elements that a loop sees.
    pub(super) fn elements(&self, meter: &RenderMeter<'_>) -> RenderResult<Rc<ListValue>> {
        let items = match self {
            Self::List(list) => return Ok(Rc::clone(list)),
            Self::Undefined(_) => Vec::new(),
            Self::Map(map) => {
                meter.elements(map.len())?;
                map.entries().iter().map(|entry| entry.key.clone()).collect()
            }
            Self::Text(text) => {
                let mut items = ItemsBuilder::new(meter)?;
                for character in text.text.chars() {
                    items.push(Self::text(character, meter)?)?;
                }
                items.into_items()
            }
            other => {
                let message = format!("'{}' object is not iterable", other.type_name());
                return Err(RenderFault::new(message));
            }
        };
        Ok(Rc::new(ListValue::new(items, false, meter)?))
    }
}
