//! Messages of protocol buffers, of which tests make models.

/// A message of protocol buffers.
#[derive(Default)]
pub(crate) struct ProtoMessage(pub(crate) Vec<u8>);

impl ProtoMessage {
    fn varint(mut self, mut value: u64) -> Self {
        while value >= 0x80 {
            self.0.push(u8::try_from(value & 0x7f).unwrap() | 0x80);
            value >>= 7;
        }
        self.0.push(u8::try_from(value).unwrap());
        self
    }

    /// Adds a number.
    pub(crate) fn number(self, field: u64, value: u64) -> Self {
        self.varint(field << 3).varint(value)
    }

    /// Adds bytes or a text.
    pub(crate) fn bytes(self, field: u64, bytes: &[u8]) -> Self {
        let mut this = self.varint(field << 3 | 2).varint(u64::try_from(bytes.len()).unwrap());
        this.0.extend_from_slice(bytes);
        this
    }

    /// Adds a message.
    pub(crate) fn message(self, field: u64, message: Self) -> Self {
        self.bytes(field, &message.0)
    }
}
