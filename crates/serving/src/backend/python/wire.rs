//! Messages between the server and a worker, whose end is `python/backend/galatea_channel.py`.
//!
//! A message is its length in four bytes, then a kind of one byte and fixed fields; all numbers are little-endian and
//! lengths of texts four bytes, but where a field says something else.
//!
//! From the server: `START` (JSON), `EXECUTE` and `STOP`. From the worker: `HELLO` (version), then `READY`, `FAILED`
//! (text) or `CONFIG` (JSON, empty for none), then for each `EXECUTE` one `DONE`, and `RESPONSE`s of its requests
//! before or after it. `DONE` and `RESPONSE` have one form.
//!
//! `EXECUTE`: execution (8), requests (4), blocks that are new (2) and that go (2), block of large inputs (4, 0 for
//! none); the numbers (4) of those that go; of the new ones number (4), size (8), length of the name (2), name; the
//! requests; after a multiple of 16 bytes the small inputs, each at one.
//!
//! A request: number (8), slot of its cancellation (4), flags (4), time-out (8), priority (8), kind of correlation (1:
//! 1 number, 2 text), number (8), lengths of that text, the id and the parameters (4 each), outputs wanted (2, 0xffff
//! for all), inputs (2); the texts; the wanted names (length 4, name). An input: length of its name (2), data type (1),
//! rank (1, with 0x80 in the block), place from the message's or the block's start (8), bytes (8), dimensions (8 each),
//! name.
//!
//! `DONE`: execution (8), status (1: 1 for a failure with a text, 2 where the process ends behind it), blocks that are new (2) and that go (2), place of
//! the small outputs (4), length of the text (4), answers (4), then the text or the blocks as above and the answers:
//! number (8), flags (1: 1 final, 2 with a response, 4 once more), code of an error + 1 (1, 0 for none), lengths of its
//! text and of parameters (4 each), outputs (2). An output: length of its name (2), data type (1), rank (1), where it
//! lies (1: 0 here, 1 in a block of the server's, 2 of the worker's), place (8), bytes (8), block (4), dimensions, name.

use galatea_tensor::DataType;

use crate::error::ErrorCode;

/// Version that both ends must speak.
pub(super) const VERSION: u8 = 1;
/// Longest message of a worker that is read.
pub(super) const MAX_MESSAGE_BYTES: usize = 64 << 20;
/// Tensors of so many bytes lie in the message.
pub(super) const SMALL_BYTES: usize = 8192;
/// All tensors together that lie in a message.
pub(super) const MAX_SMALL_BYTES: usize = 128 << 10;

pub(super) const START: u8 = 1;
pub(super) const EXECUTE: u8 = 2;
pub(super) const STOP: u8 = 3;

pub(super) const READY: u8 = 1;
pub(super) const FAILED: u8 = 2;
pub(super) const CONFIG: u8 = 3;
pub(super) const DONE: u8 = 4;
pub(super) const RESPONSE: u8 = 5;
pub(super) const HELLO: u8 = 6;

/// Bit of the rank of inputs that lie in the block.
pub(super) const IN_BLOCK: u8 = 0x80;
/// Largest rank.
pub(super) const MAX_RANK: usize = 127;
/// Number of wanted outputs that stands for all.
pub(super) const ALL_OUTPUTS: u16 = 0xffff;

/// Why bytes are no message.
#[derive(Debug)]
pub(super) struct MalformedMessage(pub(super) String);

/// The number of a data type.
pub(super) fn type_number(datatype: DataType) -> Option<u8> {
    let at = DataType::ALL.iter().position(|known| *known == datatype)?;
    u8::try_from(at).ok()
}

/// Puts fields behind one another.
#[derive(Debug, Default)]
pub(super) struct FieldWriter {
    pub(super) bytes: Vec<u8>,
}

impl FieldWriter {
    /// Makes room for so many bytes more, so that they are not moved while they are written.
    pub(super) fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve(bytes);
    }
    pub(super) fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }
    pub(super) fn u16(&mut self, value: u16) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }
    pub(super) fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }
    pub(super) fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }
    pub(super) fn size(&mut self, value: usize) {
        self.u64(u64::try_from(value).unwrap_or(u64::MAX));
    }
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }
    /// Zeros up to a multiple of `unit`, from the message's own start on, which is behind its length.
    pub(super) fn pad(&mut self, unit: usize) {
        let len = (self.bytes.len() - LENGTH_BYTES).next_multiple_of(unit) + LENGTH_BYTES;
        self.bytes.resize(len, 0);
    }
    /// Where the next field goes, from the message's own start on.
    pub(super) fn place(&self) -> usize {
        self.bytes.len().saturating_sub(LENGTH_BYTES)
    }
    /// Puts a place into a field of eight bytes that was left open.
    pub(super) fn patch(&mut self, field: usize, place: usize) {
        let value = u64::try_from(place).unwrap_or(u64::MAX).to_le_bytes();
        if let Some(slot) = self.bytes.get_mut(field..field + value.len()) {
            slot.copy_from_slice(&value);
        }
    }
}

/// Bytes of the length before a message.
pub(super) const LENGTH_BYTES: usize = 4;

/// A message that begins, with room for its length.
pub(super) fn begin(kind: u8) -> FieldWriter {
    let mut writer = FieldWriter::default();
    writer.u32(0);
    writer.u8(kind);
    writer
}

/// The bytes of a message that is complete.
pub(super) fn end(mut writer: FieldWriter) -> Vec<u8> {
    let len = u32::try_from(writer.place()).unwrap_or(u32::MAX);
    if let Some(slot) = writer.bytes.get_mut(..LENGTH_BYTES) {
        slot.copy_from_slice(&len.to_le_bytes());
    }
    writer.bytes
}

/// Takes fields one after another.
#[derive(Debug)]
pub(super) struct FieldReader<'a> {
    rest: &'a [u8],
}

impl<'a> FieldReader<'a> {
    pub(super) fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }
    pub(super) fn raw(&mut self, len: usize) -> Result<&'a [u8], MalformedMessage> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or_else(|| {
            MalformedMessage(format!("{} bytes found, expected {len} for a field", self.rest.len()))
        })?;
        self.rest = rest;
        Ok(taken)
    }
    fn array<const N: usize>(&mut self) -> Result<[u8; N], MalformedMessage> {
        let bytes = self.raw(N)?;
        bytes.try_into().map_err(|_| MalformedMessage("a field is cut".to_owned()))
    }
    pub(super) fn u8(&mut self) -> Result<u8, MalformedMessage> {
        self.array::<1>().map(|[byte]| byte)
    }
    pub(super) fn u16(&mut self) -> Result<u16, MalformedMessage> {
        self.array().map(u16::from_le_bytes)
    }
    pub(super) fn u32(&mut self) -> Result<u32, MalformedMessage> {
        self.array().map(u32::from_le_bytes)
    }
    pub(super) fn u64(&mut self) -> Result<u64, MalformedMessage> {
        self.array().map(u64::from_le_bytes)
    }
    /// A size of eight bytes.
    pub(super) fn size(&mut self) -> Result<usize, MalformedMessage> {
        usize::try_from(self.u64()?).map_err(|_| MalformedMessage("a size does not fit".to_owned()))
    }
    /// A length of four bytes.
    pub(super) fn len(&mut self) -> Result<usize, MalformedMessage> {
        usize::try_from(self.u32()?)
            .map_err(|_| MalformedMessage("a length does not fit".to_owned()))
    }
    /// All that is left.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }
    pub(super) fn text(&mut self, len: usize) -> Result<String, MalformedMessage> {
        Ok(String::from_utf8_lossy(self.raw(len)?).into_owned())
    }
}

/// A block of the worker's that is new.
#[derive(Debug)]
pub(super) struct OpenedBlock {
    pub(super) number: u32,
    pub(super) size: usize,
    pub(super) name: String,
}

/// Where the elements of an output lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ElementPlace {
    /// Among the small outputs of the message.
    Message,
    /// In a block of the server's.
    Servers(u32),
    /// In a block of the worker's.
    Workers(u32),
}

/// An output as a message has it.
#[derive(Debug)]
pub(super) struct MessageOutput {
    pub(super) name: String,
    pub(super) datatype: DataType,
    pub(super) shape: Vec<usize>,
    pub(super) place: ElementPlace,
    pub(super) offset: usize,
    pub(super) size: usize,
}

/// Answer to a request.
#[derive(Debug)]
pub(super) struct RequestAnswer {
    pub(super) request: u64,
    pub(super) is_final: bool,
    pub(super) once_more: bool,
    /// `None` for the word alone that nothing more comes.
    pub(super) response: Option<WorkerResponse>,
}

/// A response.
#[derive(Debug)]
pub(super) struct WorkerResponse {
    pub(super) error: Option<(ErrorCode, String)>,
    /// JSON, or empty.
    pub(super) parameters: String,
    pub(super) outputs: Vec<MessageOutput>,
}

/// `DONE` or `RESPONSE`.
#[derive(Debug)]
pub(super) struct WorkerAnswers<'a> {
    pub(super) execution: u64,
    /// The text of a failure that all requests of the execution have.
    pub(super) failure: Option<String>,
    /// The process executes nothing more.
    pub(super) ends: bool,
    pub(super) closed: Vec<u32>,
    pub(super) opened: Vec<OpenedBlock>,
    pub(super) answers: Vec<RequestAnswer>,
    /// The small outputs.
    pub(super) small: &'a [u8],
}

impl<'a> WorkerAnswers<'a> {
    /// Reads a message behind its kind.
    pub(super) fn read(message: &'a [u8]) -> Result<Self, MalformedMessage> {
        let mut fields = FieldReader::new(message);
        let _kind = fields.u8()?;
        let execution = fields.u64()?;
        let status = fields.u8()?;
        let opened = fields.u16()?;
        let closed = fields.u16()?;
        let small = fields.len()?;
        let text = fields.len()?;
        let count = fields.u32()?;
        let failure = (status & 1 != 0).then(|| fields.text(text)).transpose()?;
        let ends = status & 2 != 0;
        let closed = (0..closed).map(|_| fields.u32()).collect::<Result<_, _>>()?;
        let opened =
            (0..opened).map(|_| OpenedBlock::read(&mut fields)).collect::<Result<_, _>>()?;
        // So many bytes at least has each; whoever says more is not believed.
        let mut answers = Vec::new();
        for _ in 0..count {
            answers.push(RequestAnswer::read(&mut fields)?);
        }
        let small = if failure.is_some() { &[] } else { message.get(small..).unwrap_or_default() };
        Ok(Self { execution, failure, ends, closed, opened, answers, small })
    }
}

impl WorkerAnswers<'_> {
    /// The worker's blocks in which outputs lie.
    pub(super) fn blocks(&self) -> impl Iterator<Item = u32> {
        let responses = self.answers.iter().filter_map(|answer| answer.response.as_ref());
        responses.flat_map(|response| &response.outputs).filter_map(|output| match output.place {
            ElementPlace::Workers(number) => Some(number),
            ElementPlace::Message | ElementPlace::Servers(_) => None,
        })
    }
}

impl OpenedBlock {
    fn read(fields: &mut FieldReader<'_>) -> Result<Self, MalformedMessage> {
        let number = fields.u32()?;
        let size = fields.size()?;
        let name = fields.u16()?;
        Ok(Self { number, size, name: fields.text(name.into())? })
    }
}

impl RequestAnswer {
    fn read(fields: &mut FieldReader<'_>) -> Result<Self, MalformedMessage> {
        let request = fields.u64()?;
        let flags = fields.u8()?;
        let code = fields.u8()?;
        let text = fields.len()?;
        let parameters = fields.len()?;
        let outputs = fields.u16()?;
        let text = fields.text(text)?;
        let parameters = fields.text(parameters)?;
        let mut all = Vec::new();
        for _ in 0..outputs {
            all.push(MessageOutput::read(fields)?);
        }
        let error = code.checked_sub(1).map(|code| (error_code(code), text));
        let response =
            (flags & 2 != 0).then_some(WorkerResponse { error, parameters, outputs: all });
        Ok(Self { request, is_final: flags & 1 != 0, once_more: flags & 4 != 0, response })
    }
}

impl MessageOutput {
    fn read(fields: &mut FieldReader<'_>) -> Result<Self, MalformedMessage> {
        let name = fields.u16()?;
        let datatype = fields.u8()?;
        let rank = fields.u8()?;
        let place = fields.u8()?;
        let offset = fields.size()?;
        let size = fields.size()?;
        let block = fields.u32()?;
        let shape = (0..rank).map(|_| fields.size()).collect::<Result<_, _>>()?;
        let name = fields.text(name.into())?;
        let datatype = DataType::ALL.get(usize::from(datatype)).copied().ok_or_else(|| {
            MalformedMessage(format!(
                "{datatype} found as the type of output '{name}', which is none"
            ))
        })?;
        let place = match place {
            0 => ElementPlace::Message,
            1 => ElementPlace::Servers(block),
            2 => ElementPlace::Workers(block),
            other => {
                return Err(MalformedMessage(format!("{other} found as the place of '{name}'")));
            }
        };
        Ok(Self { name, datatype, shape, place, offset, size })
    }
}

/// The number of a code, as a model knows it.
pub(super) fn code_number(code: ErrorCode) -> u8 {
    match code {
        ErrorCode::Unknown => 0,
        ErrorCode::Internal => 1,
        ErrorCode::NotFound => 2,
        ErrorCode::InvalidArg => 3,
        ErrorCode::Unavailable => 4,
        ErrorCode::Unsupported => 5,
        ErrorCode::AlreadyExists => 6,
        ErrorCode::Cancelled => 7,
    }
}

fn error_code(code: u8) -> ErrorCode {
    match code {
        0 => ErrorCode::Unknown,
        2 => ErrorCode::NotFound,
        3 => ErrorCode::InvalidArg,
        4 => ErrorCode::Unavailable,
        5 => ErrorCode::Unsupported,
        6 => ErrorCode::AlreadyExists,
        7 => ErrorCode::Cancelled,
        _ => ErrorCode::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers() -> Vec<u8> {
        let mut writer = begin(DONE);
        writer.u64(7);
        writer.u8(0);
        writer.u16(1);
        writer.u16(1);
        writer.u32(0);
        writer.u32(0);
        writer.u32(1);
        writer.u32(4);
        writer.u32(5);
        writer.u64(65536);
        writer.u16(2);
        writer.raw(b"/x");
        writer.u64(9);
        writer.raw(&[3, 0]);
        writer.u32(0);
        writer.u32(0);
        writer.u16(1);
        writer.u16(3);
        writer.raw(&[10, 2, 2]);
        for number in [64, 24] {
            writer.u64(number);
        }
        writer.u32(5);
        for dim in [2, 3] {
            writer.u64(dim);
        }
        writer.raw(b"OUT");
        end(writer)
    }

    #[test]
    fn answers_are_read() {
        let message = answers();
        let found = WorkerAnswers::read(&message[LENGTH_BYTES..]).unwrap();
        assert_eq!((found.execution, found.closed.as_slice()), (7, &[4][..]));
        assert_eq!((found.opened[0].number, found.opened[0].size), (5, 65536));
        let answer = &found.answers[0];
        assert!(answer.is_final && !answer.once_more && answer.request == 9);
        let output = &answer.response.as_ref().unwrap().outputs[0];
        assert_eq!((output.name.as_str(), output.datatype), ("OUT", DataType::Fp32));
        assert_eq!(
            (output.shape.as_slice(), output.place),
            (&[2, 3][..], ElementPlace::Workers(5))
        );
    }

    #[test]
    fn cut_and_changed_messages_are_errors_at_worst() {
        let message = answers();
        let message = &message[LENGTH_BYTES..];
        for len in 0..message.len() {
            assert!(WorkerAnswers::read(&message[..len]).is_err(), "{len}");
        }
        for at in 0..message.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut changed = message.to_vec();
                changed[at] = value;
                let _ = WorkerAnswers::read(&changed);
            }
        }
    }
}
