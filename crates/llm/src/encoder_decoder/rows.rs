//! Texts that are being written together, each in a row of the same tensors.
//!
//! Tensors have more rows and places than are in use, so that a session sees few different shapes: a
//! row that nobody has computes something that nobody reads, and places that hold nothing lie so far
//! behind that nothing is added from them.

use galatea_runtime::Run;
use galatea_tensor::{DataType, OwnedTensor, Tensor};

use super::{EncoderDecoder, failed};
use crate::error::Result;

/// The least places for tokens that are written.
const MIN_PAST: usize = 32;

/// The least places for tokens that were read.
const MIN_SOURCE: usize = 16;

/// A position behind all others.
const FAR: i64 = 1 << 40;

/// A text that was read: keys and values for each layer of the decoder.
#[derive(Clone, Debug)]
pub(crate) struct ReadSource {
    /// `[1, length, heads, width]`; behind the text's own length lies nothing of meaning.
    pub(super) cross: Vec<Tensor>,
    pub(super) length: usize,
}

/// Names a row for as long as it is there.
pub(crate) type RowId = u64;

/// A row in use.
#[derive(Clone, Debug)]
struct WritingRow {
    id: RowId,
    source: usize,
    /// Tokens that were written.
    length: usize,
}

/// Rows, read sources and written tokens that the tensors have room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct RowCapacity {
    rows: usize,
    source: usize,
    past: usize,
}

/// Texts that are being written.
#[derive(Debug, Default)]
pub(crate) struct WritingRows {
    /// Contents of each row of the tensors.
    rows: Vec<Option<WritingRow>>,
    room: RowCapacity,
    /// 0 where a token was read, −∞ elsewhere.
    mask: Vec<f32>,
    cross: Vec<Tensor>,
    caches: Vec<Tensor>,
}

impl WritingRows {
    /// How many texts there are.
    pub(crate) fn len(&self) -> usize {
        self.rows.iter().flatten().count()
    }

    /// The bytes that tensors of so many rows have, of which the longest has read `source` tokens and
    /// will write `past`.
    pub(crate) fn bytes(model: &EncoderDecoder, rows: usize, source: usize, past: usize) -> usize {
        let shape = &model.shape;
        let room = RowCapacity::of(rows, source, past);
        let place = shape.heads * shape.head_size * size_of::<f32>() * 2 * shape.layers;
        (room.source + room.past).saturating_mul(room.rows).saturating_mul(place)
    }

    /// Begins a text behind a source. No other row has this name.
    ///
    /// # Errors
    /// No memory, after which no row is there any more.
    pub(crate) fn add(
        &mut self,
        model: &EncoderDecoder,
        id: RowId,
        source: &ReadSource,
    ) -> Result<()> {
        let result = self.begin(model, id, source);
        if result.is_err() {
            *self = Self::default();
        }
        result
    }

    fn begin(&mut self, model: &EncoderDecoder, id: RowId, source: &ReadSource) -> Result<()> {
        let free = self.rows.iter().position(Option::is_none);
        let at = match free.filter(|_| source.length <= self.room.source) {
            Some(at) => at,
            None => {
                let longest = self.longest(|row| row.source).max(source.length);
                let past = self.longest(|row| row.length) + 1;
                self.resize(model, RowCapacity::of(self.len() + 1, longest, past))?;
                self.len()
            }
        };
        let width = model.shape.heads * model.shape.head_size;
        let each = self.room.source;
        let into = std::mem::take(&mut self.cross).into_iter().zip(&source.cross);
        let written = into.map(|(own, read)| {
            let values = read.as_slice::<f32>().map_err(failed)?;
            let mut owned = owned(own)?;
            let all = owned.as_mut_slice::<f32>().map_err(failed)?;
            copy(all, at * each * width, values, 0, source.length * width);
            Ok(owned.freeze())
        });
        self.cross = written.collect::<Result<_>>()?;
        let mask = self.mask.get_mut(at * each..(at + 1) * each).unwrap_or_default();
        for (place, cell) in mask.iter_mut().enumerate() {
            *cell = if place < source.length { 0.0 } else { f32::NEG_INFINITY };
        }
        if let Some(slot) = self.rows.get_mut(at) {
            *slot = Some(WritingRow { id, source: source.length, length: 0 });
        }
        Ok(())
    }

    /// Ends a text.
    ///
    /// # Errors
    /// No memory, after which no row is there any more.
    pub(crate) fn remove(&mut self, model: &EncoderDecoder, id: RowId) -> Result<()> {
        for slot in &mut self.rows {
            if slot.as_ref().is_some_and(|row| row.id == id) {
                *slot = None;
            }
        }
        let used = self.len();
        if used == 0 {
            *self = Self::default();
        } else if used.next_power_of_two() < self.room.rows {
            let source = self.longest(|row| row.source);
            let past = self.longest(|row| row.length) + 1;
            let smaller = self.resize(model, RowCapacity::of(used, source, past));
            if smaller.is_err() {
                *self = Self::default();
            }
            return smaller;
        }
        Ok(())
    }

    /// Appends a token to each of some rows, and gives the logits of what follows in their order.
    ///
    /// # Errors
    /// A run that fails, after which no row is there any more.
    pub(crate) fn step(
        &mut self,
        model: &EncoderDecoder,
        tokens: &[(RowId, u32)],
    ) -> Result<Vec<Vec<f32>>> {
        let result = self.run(model, tokens);
        if result.is_err() {
            *self = Self::default();
        }
        result
    }

    fn run(&mut self, model: &EncoderDecoder, tokens: &[(RowId, u32)]) -> Result<Vec<Vec<f32>>> {
        if self.longest(|row| row.length) >= self.room.past {
            let source = self.longest(|row| row.source);
            let past = self.longest(|row| row.length) + 1;
            let room = RowCapacity::of(self.len(), source, past);
            self.resize(model, RowCapacity { rows: room.rows.max(self.room.rows), ..room })?;
        }
        let mut found =
            model.decoder.run_tensors(Run::owned(self.inputs(tokens)?)).map_err(failed)?;
        let layers = model.shape.layers;
        if found.len() != 1 + 2 * layers {
            return Err(failed(format!("the decoder gave {} results", found.len())));
        }
        let new = found.split_off(1);
        self.keep(model, tokens, &new)?;
        let logits = found.first().map(Tensor::to_vec::<f32>).transpose().map_err(failed)?;
        let logits = logits.unwrap_or_default();
        let width = model.shape.vocabulary.max(1);
        let row = |id: RowId| {
            let at = self.place(id)?;
            logits.get(at * width..(at + 1) * width).map(<[f32]>::to_vec)
        };
        let missing = || failed("a row has no logits");
        tokens.iter().map(|(id, _)| row(*id).ok_or_else(missing)).collect()
    }

    /// The decoder's inputs.
    fn inputs(&self, tokens: &[(RowId, u32)]) -> Result<Vec<Tensor>> {
        let RowCapacity { rows, source, past } = self.room;
        let mut own = vec![0_i64; rows];
        let mut positions = vec![0_i64; rows];
        let mut keys = vec![FAR; rows * (past + 1)];
        for (id, token) in tokens {
            if let Some(cell) = self.place(*id).and_then(|at| own.get_mut(at)) {
                *cell = i64::from(*token);
            }
        }
        let lines = keys.chunks_mut(past + 1).zip(&mut positions).zip(&self.rows);
        for ((keys, position), row) in lines {
            let length = row.as_ref().map_or(0, |row| row.length);
            *position = int(length);
            for (place, key) in keys.iter_mut().take(length).enumerate() {
                *key = int(place);
            }
            if let Some(last) = keys.last_mut() {
                *last = int(length);
            }
        }
        let mut inputs = vec![
            Tensor::from_vec(&[rows, 1], own).map_err(failed)?,
            Tensor::from_vec(&[rows, 1], positions).map_err(failed)?,
            Tensor::from_vec(&[rows, past + 1], keys).map_err(failed)?,
            Tensor::from_vec(&[rows, source], self.mask.clone()).map_err(failed)?,
        ];
        for (cross, caches) in self.cross.chunks(2).zip(self.caches.chunks(2)) {
            inputs.extend(cross.iter().chain(caches).cloned());
        }
        Ok(inputs)
    }

    /// Puts the new keys and values of the rows that go on behind those they have.
    fn keep(
        &mut self,
        model: &EncoderDecoder,
        tokens: &[(RowId, u32)],
        new: &[Tensor],
    ) -> Result<()> {
        let width = model.shape.heads * model.shape.head_size;
        let past = self.room.past;
        let places: Vec<usize> = tokens.iter().filter_map(|(id, _)| self.place(*id)).collect();
        let into = std::mem::take(&mut self.caches).into_iter().zip(new);
        let written = into.map(|(cache, new)| {
            let new = new.contiguous().map_err(failed)?;
            let values = new.as_slice::<f32>().map_err(failed)?;
            let mut owned = owned(cache)?;
            let all = owned.as_mut_slice::<f32>().map_err(failed)?;
            for &at in &places {
                let length = self.rows.get(at).and_then(Option::as_ref).map_or(0, |row| row.length);
                copy(all, (at * past + length) * width, values, at * width, width);
            }
            Ok(owned.freeze())
        });
        self.caches = written.collect::<Result<_>>()?;
        for at in places {
            if let Some(row) = self.rows.get_mut(at).and_then(Option::as_mut) {
                row.length += 1;
            }
        }
        Ok(())
    }

    fn place(&self, id: RowId) -> Option<usize> {
        self.rows.iter().position(|row| row.as_ref().is_some_and(|row| row.id == id))
    }

    fn longest(&self, of: impl Fn(&WritingRow) -> usize) -> usize {
        self.rows.iter().flatten().map(of).max().unwrap_or(0)
    }

    /// Makes tensors with this room, in which the rows in use come first.
    fn resize(&mut self, model: &EncoderDecoder, room: RowCapacity) -> Result<()> {
        let used: Vec<usize> = (0..self.rows.len())
            .filter(|at| self.rows.get(*at).is_some_and(Option::is_some))
            .collect();
        let heads = model.shape.heads;
        let size = model.shape.head_size;
        let width = heads * size;
        let moved = |old: Option<&Tensor>, from: usize, to: usize| -> Result<Tensor> {
            let mut new = OwnedTensor::zeroed(DataType::Fp32, &[room.rows, to, heads, size])
                .map_err(failed)?;
            if let Some(old) = old {
                let values = old.as_slice::<f32>().map_err(failed)?;
                let all = new.as_mut_slice::<f32>().map_err(failed)?;
                for (row, at) in used.iter().enumerate() {
                    let count = from.min(to) * width;
                    copy(all, row * to * width, values, at * from * width, count);
                }
            }
            Ok(new.freeze())
        };
        let tensors = 2 * model.shape.layers;
        let cross = (0..tensors)
            .map(|at| moved(self.cross.get(at), self.room.source, room.source))
            .collect::<Result<_>>()?;
        let caches = (0..tensors)
            .map(|at| moved(self.caches.get(at), self.room.past, room.past))
            .collect::<Result<_>>()?;
        let mut rows: Vec<Option<WritingRow>> =
            used.iter().filter_map(|at| self.rows.get(*at).cloned()).collect();
        rows.resize(room.rows, None);
        // A row that nobody has attends to one place, which holds zeros.
        let sources = rows.iter().map(|row| row.as_ref().map_or(1, |row| row.source));
        let cell = |source: usize, at: usize| if at < source { 0.0 } else { f32::NEG_INFINITY };
        let mask =
            sources.flat_map(|source| (0..room.source).map(move |at| cell(source, at))).collect();
        *self = Self { rows, room, mask, cross, caches };
        Ok(())
    }
}

impl RowCapacity {
    /// Room for so many rows, of which the longest has read `source` tokens and has `past`.
    fn of(rows: usize, source: usize, past: usize) -> Self {
        Self {
            rows: rows.next_power_of_two(),
            source: source.next_power_of_two().max(MIN_SOURCE),
            past: past.next_power_of_two().max(MIN_PAST),
        }
    }
}

/// A tensor that nobody else has, copied where somebody has.
fn owned(tensor: Tensor) -> Result<OwnedTensor> {
    match tensor.into_owned() {
        Ok(owned) => Ok(owned),
        Err(shared) => {
            let mut own = OwnedTensor::zeroed(shared.dtype(), shared.shape()).map_err(failed)?;
            let values = shared.as_slice::<f32>().map_err(failed)?;
            let all = own.as_mut_slice::<f32>().map_err(failed)?;
            copy(all, 0, values, 0, values.len());
            Ok(own)
        }
    }
}

/// Copies `count` numbers, as far as both have them.
fn copy(to: &mut [f32], at: usize, from: &[f32], start: usize, count: usize) {
    if let (Some(to), Some(from)) = (to.get_mut(at..at + count), from.get(start..start + count)) {
        to.copy_from_slice(from);
    }
}

fn int(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
