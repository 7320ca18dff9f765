//! The file of an entry: a head, constants, packed weights, the graph, and a table of all parts.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use galatea_formats::onnx::OnnxFile;
use galatea_formats::stored::{self, LargeConstant, StoredError, StoredGraph};
use galatea_graph::Fact;
use galatea_runtime::{IoInfo, PackedWeights, PreparedGraph};
use galatea_tensor::{ALIGNMENT, Allocation, DataType, MappedFile, Tensor};
use serde_json::{Value, json};

use super::content::side_by_side;
use super::{ConstantSpot, readers, spot};

/// The first bytes of an entry.
const MAGIC: [u8; 8] = *b"galatea1";
/// Bytes of the head: the magic, start and length of the table, its checksum, the head's checksum.
const HEAD_BYTES: usize = 32;
/// Large parts start on a page, so that systems can share and drop them alone; those of every
/// system are a divisor of this or as long.
const PAGE: u64 = 1 << 14;
/// Floats that are turned into bytes at a time.
const STRETCH: usize = 1 << 14;

/// Why an entry was not written.
#[derive(Debug)]
pub(super) enum EntryRefusal {
    /// The folder, the disk.
    Io(io::Error),
    /// The model has something that is not stored, or is larger than the cache.
    Model(StoredError),
}

impl fmt::Display for EntryRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Model(error) => error.fmt(f),
        }
    }
}

impl From<io::Error> for EntryRefusal {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A part of the file.
#[derive(Clone, Copy, Debug)]
struct EntryPart {
    start: u64,
    bytes: u64,
    /// The checksum.
    sum: u32,
}

impl EntryPart {
    fn json(self) -> Value {
        json!([self.start, self.bytes, self.sum])
    }

    fn read(from: &Value) -> Option<Self> {
        let number = |at: usize| from.get(at)?.as_u64();
        let sum = u32::try_from(number(2)?).ok()?;
        Some(Self { start: number(0)?, bytes: number(1)?, sum })
    }

    fn of<'a>(&self, file: &'a [u8]) -> Option<&'a [u8]> {
        let start = usize::try_from(self.start).ok()?;
        let end = start.checked_add(usize::try_from(self.bytes).ok()?)?;
        file.get(start..end)
    }
}

/// The file that is being written.
struct EntryWriter {
    file: File,
    at: u64,
    limit_bytes: u64,
    packed: Vec<(Tensor, String, EntryPart)>,
    /// How often each constant was packed for a node.
    uses: HashMap<ConstantSpot, usize>,
    failed: Option<io::Error>,
    finished: bool,
}

impl EntryWriter {
    /// Writes a part of this length with the pieces that `give` hands to its argument.
    fn part(
        &mut self,
        bytes: usize,
        give: impl FnOnce(&mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()>,
    ) -> io::Result<EntryPart> {
        let bytes = u64::try_from(bytes).map_err(io::Error::other)?;
        let step = if bytes >= PAGE { PAGE } else { u64::try_from(ALIGNMENT).unwrap_or(PAGE) };
        let start = self.at.next_multiple_of(step);
        if start.saturating_add(bytes) > self.limit_bytes {
            let text = "the model has more bytes than the cache may have";
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, text));
        }
        self.file.seek(SeekFrom::Start(start))?;
        let mut sum = crc32fast::Hasher::new();
        give(&mut |piece| {
            sum.update(piece);
            self.file.write_all(piece)
        })?;
        self.at = start + bytes;
        Ok(EntryPart { start, bytes, sum: sum.finalize() })
    }

    fn bytes(&mut self, bytes: &[u8]) -> io::Result<EntryPart> {
        self.part(bytes.len(), |write| write(bytes))
    }

    fn floats(&mut self, parts: &[&[f32]]) -> io::Result<EntryPart> {
        let count: usize = parts.iter().map(|part| part.len()).sum();
        self.part(count * size_of::<f32>(), |write| {
            let mut buffer = Vec::with_capacity(STRETCH * size_of::<f32>());
            for stretch in parts.iter().flat_map(|part| part.chunks(STRETCH)) {
                buffer.clear();
                buffer.extend(stretch.iter().flat_map(|value| value.to_le_bytes()));
                write(&buffer)?;
            }
            Ok(())
        })
    }
}

/// Takes down the packed weights while a session is made.
pub(super) struct PackedRecorder {
    writer: Mutex<EntryWriter>,
    temporary: PathBuf,
}

impl fmt::Debug for PackedRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recorder({})", self.temporary.display())
    }
}

impl Drop for PackedRecorder {
    /// Unpublished files are removed.
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.temporary);
    }
}

impl PackedWeights for PackedRecorder {
    fn find(&self, _: &Tensor, _: &str) -> Option<Tensor> {
        None
    }

    fn keep(&self, weights: &Tensor, form: &str, parts: &[&[f32]]) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(spot) = spot(weights).filter(|_| writer.failed.is_none() && !writer.finished)
        else {
            return;
        };
        *writer.uses.entry(spot).or_default() += 1;
        let is_known = |(known, of, _): &(Tensor, String, EntryPart)| {
            of == form && super::spot(known) == Some(spot)
        };
        if writer.packed.iter().any(is_known) {
            return;
        }
        match writer.floats(parts) {
            Ok(part) => writer.packed.push((weights.clone(), form.to_owned(), part)),
            Err(error) => writer.failed = Some(error),
        }
    }
}

impl PackedRecorder {
    /// An entry in a new file of at most so many bytes.
    ///
    /// # Errors
    /// When nothing can be written.
    pub(super) fn new(mut file: File, temporary: PathBuf, limit_bytes: u64) -> io::Result<Self> {
        file.write_all(&[0; HEAD_BYTES])?;
        let at = u64::try_from(HEAD_BYTES).map_err(io::Error::other)?;
        let packed = Vec::new();
        let uses = HashMap::new();
        let writer =
            EntryWriter { file, at, limit_bytes, packed, uses, failed: None, finished: false };
        Ok(Self { writer: Mutex::new(writer), temporary })
    }

    /// Writes everything but the packed weights, which were noted before; gives the file.
    ///
    /// # Errors
    /// When the graph cannot be stored, or the file cannot be written.
    pub(super) fn finish(
        &self,
        prepared: &PreparedGraph,
        files: &[OnnxFile],
        text: &str,
    ) -> Result<PathBuf, EntryRefusal> {
        let mut guard = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let writer = &mut *guard;
        writer.finished = true;
        if let Some(error) = writer.failed.take() {
            return Err(error.into());
        }
        let mut read = HashMap::new();
        readers(&prepared.graph, &mut read);
        let uses = std::mem::take(&mut writer.uses);
        let mut data = Vec::new();
        let mut io = None;
        let mut place = |tensor: &Tensor| {
            let packed = spot(tensor).is_some_and(|spot| uses.get(&spot) >= read.get(&spot));
            if let Some(found) = in_files(tensor, files, packed) {
                return Ok(found);
            }
            let bytes = tensor.unaligned_bytes().unwrap_or_default();
            let part = writer.bytes(bytes).map_err(|error| {
                let text = StoredError::new(error.to_string());
                io = Some(error);
                text
            })?;
            data.push(part);
            let own = u32::try_from(files.len()).map_err(|_| StoredError::new("too many files"))?;
            Ok(LargeConstant { file: own, offset: part.start })
        };
        let ports = |all: &[IoInfo]| -> Vec<(String, Fact)> {
            all.iter().map(|io| (io.name.clone(), io.fact())).collect()
        };
        let inputs = ports(&prepared.inputs);
        let outputs = ports(&prepared.outputs);
        let written = stored::write(&prepared.graph, &inputs, &outputs, &mut place);
        let (graph, constants) = match (written, io) {
            (Ok(written), _) => written,
            (Err(_), Some(error)) => return Err(EntryRefusal::Io(error)),
            (Err(error), None) => return Err(EntryRefusal::Model(error)),
        };
        let graph = writer.bytes(&graph)?;
        let mut numbers: HashMap<ConstantSpot, usize> = HashMap::new();
        for (number, constant) in constants.iter().enumerate() {
            if let Some(spot) = spot(constant) {
                numbers.entry(spot).or_insert(number);
            }
        }
        let packed: Vec<Value> = std::mem::take(&mut writer.packed)
            .iter()
            .filter_map(|(weights, form, part)| {
                let number = numbers.get(&spot(weights)?)?;
                Some(json!({ "constant": number, "form": form, "part": part.json() }))
            })
            .collect();
        let data: Vec<Value> = data.into_iter().map(EntryPart::json).collect();
        let table = json!({
            "text": text, "graph": graph.json(), "data": data, "packed": packed,
        });
        let table = writer.bytes(table.to_string().as_bytes())?;
        writer.file.set_len(writer.at)?;
        writer.file.rewind()?;
        writer.file.write_all(&head(table))?;
        Ok(self.temporary.clone())
    }
}

/// Where a constant lies in the model's own files, if it can be used there: aligned, or `packed` for
/// every node that reads it, so that nobody needs it as it is.
fn in_files(tensor: &Tensor, files: &[OnnxFile], packed: bool) -> Option<LargeConstant> {
    let (start, len) = spot(tensor)?;
    let element = tensor.dtype().size_bytes()?;
    let found = files.iter().enumerate().find_map(|(number, file)| {
        let first = file.memory.as_ptr().ok()?.addr();
        let offset = start.checked_sub(first)?;
        let inside = offset.checked_add(len)? <= file.memory.len_bytes();
        inside.then_some((number, offset))
    });
    let (number, offset) = found?;
    // Bytes of truth values are looked at when they are read; those here are small and copied.
    let fits = start.is_multiple_of(element) && tensor.dtype() != DataType::Bool;
    let file = u32::try_from(number).ok()?;
    let offset = u64::try_from(offset).ok()?;
    (fits || packed).then_some(LargeConstant { file, offset })
}

fn head(table: EntryPart) -> [u8; HEAD_BYTES] {
    let mut all = MAGIC.to_vec();
    all.extend(table.start.to_le_bytes());
    all.extend(table.bytes.to_le_bytes());
    all.extend(table.sum.to_le_bytes());
    all.extend(crc32fast::hash(&all).to_le_bytes());
    all.try_into().unwrap_or([0; HEAD_BYTES])
}

/// Makes an entry of a table and parts: two bytes with the length of the table, the table, and what lies behind the head.
/// Its checksums and its text become right.
#[cfg(any(test, feature = "fuzzing"))]
pub(super) fn sealed(data: &[u8], text: &str) -> Option<Vec<u8>> {
    let ([high, low], rest) = data.split_first_chunk::<2>()?;
    let (table, parts) = rest.split_at_checked(u16::from_be_bytes([*high, *low]).into())?;
    let mut table: Value = serde_json::from_slice(table).ok()?;
    let mut file = [vec![0; HEAD_BYTES].as_slice(), parts].concat();
    let seal = |part: &mut Value| {
        let Some(found) = EntryPart::read(part) else { return };
        let sum = found.of(&file).map_or(0, crc32fast::hash);
        *part = EntryPart { sum, ..found }.json();
    };
    let members = table.as_object_mut()?;
    members.insert("text".to_owned(), text.into());
    members.get_mut("graph").into_iter().for_each(seal);
    let lists = members.get_mut("data").and_then(Value::as_array_mut);
    lists.into_iter().flatten().for_each(seal);
    let lists = members.get_mut("packed").and_then(Value::as_array_mut);
    lists.into_iter().flatten().filter_map(|one| one.get_mut("part")).for_each(seal);
    let bytes = serde_json::to_vec(&table).ok()?;
    let start = u64::try_from(file.len()).ok()?;
    let length = u64::try_from(bytes.len()).ok()?;
    let place = EntryPart { start, bytes: length, sum: crc32fast::hash(&bytes) };
    file.splice(..HEAD_BYTES, head(place));
    file.extend(bytes);
    Some(file)
}

/// The table's place, if the head is whole.
fn table_of(head: &[u8]) -> Option<EntryPart> {
    let number = |at: usize| -> Option<u64> {
        Some(u64::from_le_bytes(head.get(at..at.checked_add(8)?)?.try_into().ok()?))
    };
    let start = number(8)?;
    let bytes = number(16)?;
    let sum = u32::from_le_bytes(head.get(24..28)?.try_into().ok()?);
    let table = EntryPart { start, bytes, sum };
    (head == self::head(table)).then_some(table)
}

/// An entry whose every part is as it was written.
pub(super) struct CacheEntry {
    memory: Arc<MappedFile>,
    graph: EntryPart,
    packed: Vec<(usize, String, EntryPart)>,
}

impl CacheEntry {
    /// Checks an entry that must be that of `text`.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub(super) fn open(memory: Arc<MappedFile>, text: &str) -> Result<Self, String> {
        let file: &[u8] = (*memory).as_ref();
        let damaged = |what: &str| format!("{what} is damaged");
        let table = file.get(..HEAD_BYTES).and_then(table_of).ok_or_else(|| damaged("the head"))?;
        let ends = table.start.checked_add(table.bytes);
        if ends != u64::try_from(file.len()).ok() {
            return Err(format!("the file has {} bytes instead of {ends:?}", file.len()));
        }
        check(file, &[table])?;
        let table = table.of(file).unwrap_or_default();
        let table: Value = serde_json::from_slice(table).map_err(|error| error.to_string())?;
        if table.get("text").and_then(Value::as_str) != Some(text) {
            return Err("it is the entry of something else".to_owned());
        }
        let read = || {
            let graph = EntryPart::read(table.get("graph")?)?;
            let data = table.get("data")?.as_array()?.iter().map(EntryPart::read);
            let packed = |one: &Value| {
                let number = usize::try_from(one.get("constant")?.as_u64()?).ok()?;
                let form = one.get("form")?.as_str()?.to_owned();
                Some((number, form, EntryPart::read(one.get("part")?)?))
            };
            let packed = table.get("packed")?.as_array()?.iter().map(packed);
            Some((graph, data.collect::<Option<Vec<_>>>()?, packed.collect::<Option<Vec<_>>>()?))
        };
        let (graph, data, packed) = read().ok_or_else(|| damaged("the table"))?;
        let mut all = data;
        all.push(graph);
        all.extend(packed.iter().map(|(_, _, part)| *part));
        check(file, &all)?;
        Ok(Self { graph, packed, memory })
    }

    /// The graph, whose constants lie in these files and, behind them, in the entry; and its packed
    /// weights.
    ///
    /// # Errors
    /// When the graph cannot be read.
    pub(super) fn read(
        self,
        mut files: Vec<Arc<dyn Allocation>>,
    ) -> Result<(StoredGraph, Arc<EntryWeights>), String> {
        let Self { memory, graph, packed } = self;
        files.push(Arc::clone(&memory) as Arc<dyn Allocation>);
        let bytes = graph.of((*memory).as_ref()).unwrap_or_default();
        let stored = stored::read(bytes, &files).map_err(|error| error.to_string())?;
        let numbers = stored.constants.iter().enumerate();
        let numbers = numbers.filter_map(|(number, constant)| Some((spot(constant)?, number)));
        // Of constants in one place the first is the one that was counted.
        let mut by_spot = HashMap::new();
        for (spot, number) in numbers {
            by_spot.entry(spot).or_insert(number);
        }
        let parts = packed.into_iter().map(|(number, form, part)| ((number, form), part));
        let constants = stored.constants.clone();
        let kept = EntryWeights { memory, _constants: constants, by_spot, parts: parts.collect() };
        Ok((stored, Arc::new(kept)))
    }
}

/// Compares the checksums of parts.
fn check(file: &[u8], parts: &[EntryPart]) -> Result<(), String> {
    let failed = AtomicBool::new(false);
    side_by_side(parts.len(), &|at| {
        let Some(part) = parts.get(at) else { return };
        if part.of(file).map(crc32fast::hash) != Some(part.sum) {
            failed.store(true, Ordering::Relaxed);
        }
    });
    if failed.into_inner() {
        return Err("a part does not have its checksum".to_owned());
    }
    Ok(())
}

/// The packed weights of an entry.
pub(super) struct EntryWeights {
    memory: Arc<MappedFile>,
    /// Keeps the places of constants their own.
    _constants: Vec<Tensor>,
    by_spot: HashMap<ConstantSpot, usize>,
    parts: HashMap<(usize, String), EntryPart>,
}

impl fmt::Debug for EntryWeights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kept({} packed weights)", self.parts.len())
    }
}

impl PackedWeights for EntryWeights {
    fn find(&self, weights: &Tensor, form: &str) -> Option<Tensor> {
        let number = *self.by_spot.get(&spot(weights)?)?;
        let part = self.parts.get(&(number, form.to_owned()))?;
        let count = usize::try_from(part.bytes).ok()? / size_of::<f32>();
        let memory = Arc::clone(&self.memory) as Arc<dyn Allocation>;
        let start = usize::try_from(part.start).ok()?;
        Tensor::from_allocation(DataType::Fp32, &[count], memory, start).ok()
    }

    /// A form that the entry does not have is packed again each time.
    fn keep(&self, _: &Tensor, _: &str, _: &[&[f32]]) {}
}
