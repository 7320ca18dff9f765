//! Packing a matrix of few bits and bringing it to the device.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;

use galatea_graph::blocks::BlockWeights;
use galatea_tensor::{DataType, bf16, f16};

use super::layout::{CodeLayout, CodeShift, FactorLayout};
use crate::device::GpuDevice;
use crate::memory::DeviceBlock;

/// Bytes that a thread packs before they are uploaded.
const CHUNK_BYTES: usize = 2 << 20;
/// Threads that pack a matrix.
const MAX_THREADS: usize = 8;
/// Packed chunks that wait for their upload, beside those that threads have.
const MAX_WAITING: usize = 4;

/// A row taken apart.
#[derive(Debug)]
pub(crate) struct UnpackedRow<'a> {
    /// A code for each number: a byte, or the bytes of a float.
    pub(crate) codes: &'a mut [u8],
    /// A scale for each block.
    pub(crate) scales: &'a mut [f32],
    /// A zero or offset for each block, where the layout has them.
    pub(crate) shifts: &'a mut [f32],
    /// Unit of the scales of each superblock.
    pub(crate) super_scales: &'a mut [f32],
    /// The same for offsets.
    pub(crate) super_shifts: &'a mut [f32],
}

/// Some rows of a packed matrix, in a block of their own.
#[derive(Clone, Debug)]
pub(crate) struct PackedPiece {
    /// The first row and how many there are.
    pub(crate) first: usize,
    pub(crate) rows: usize,
    pub(crate) block: Arc<DeviceBlock>,
    /// Start and length in bytes of each plane and of the factors.
    pub(crate) regions: [(u64, u64); 3],
}

/// A matrix on the device.
#[derive(Clone, Debug)]
pub(crate) struct PackedCodes {
    pub(crate) layout: CodeLayout,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) pieces: Vec<PackedPiece>,
    /// Source of the matrix, kept alive so that nothing else is allocated at its address.
    _source: Option<Arc<dyn BlockWeights>>,
}

impl PackedCodes {
    /// The matrix, which keeps what it came from.
    pub(crate) fn with_source(self, source: &Arc<dyn BlockWeights>) -> Self {
        Self { _source: Some(Arc::clone(source)), ..self }
    }

    /// Bytes on the device.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.block.bytes()).sum()
    }
}

/// Target of packing a matrix: its layout, its sizes, and the most bytes of a binding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackingPlan {
    pub(crate) layout: CodeLayout,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    /// The most bytes of a binding.
    pub(crate) binding_bytes: u64,
    /// Rows that must stay together.
    pub(crate) together: usize,
}

impl PackingPlan {
    /// Bytes of a row in each region.
    fn row_bytes(&self) -> [usize; 3] {
        let units = self.layout.units(self.columns);
        let [low, high] = self.layout.words();
        let factors: usize = self.layout.factor_words(self.columns).iter().sum();
        [low * units * 4, high * units * 4, factors * 4]
    }
}

/// Packs a matrix whose rows `fill` takes apart, and uploads it piece by piece.
///
/// # Errors
/// Fails when a row cannot be taken apart, or the device has no memory.
pub(crate) fn pack(
    device: &GpuDevice,
    plan: &PackingPlan,
    fill: RowReader<'_>,
) -> Result<PackedCodes, String> {
    let PackingPlan { layout, rows, columns, .. } = *plan;
    let each = plan.row_bytes();
    let most = plan.most_rows(device)?;
    let mut pieces = Vec::new();
    for first in (0..rows).step_by(most) {
        let rows = most.min(rows - first);
        let mut start = 0;
        let regions = each.map(|bytes| {
            let region = (start, ((bytes * rows) as u64).max(16));
            start += region.1.next_multiple_of(256);
            region
        });
        let mut block =
            DeviceBlock::for_weights(device, start).map_err(|error| error.to_string())?;
        upload(device, plan, first..first + rows, &mut block, regions, fill)?;
        pieces.push(PackedPiece { first, rows, block: Arc::new(block), regions });
    }
    Ok(PackedCodes { layout, rows, columns, pieces, _source: None })
}

/// Takes the row with a number apart.
pub(crate) type RowReader<'a> = &'a (dyn Fn(usize, UnpackedRow<'_>) -> Result<(), String> + Sync);

impl PackingPlan {
    /// Rows of a piece at most.
    fn most_rows(&self, device: &GpuDevice) -> Result<usize, String> {
        let each = self.row_bytes();
        let fits = |limit: u64, bytes: usize| {
            let rows = usize::try_from(limit).unwrap_or(usize::MAX) / bytes.max(1);
            rows / self.together * self.together
        };
        // Regions start at multiples of 256.
        let limit = device.capabilities().buffer_bytes.saturating_sub(1024);
        let all: usize = each.iter().sum();
        let least = (all * self.together) as u64;
        let buffer = fits(limit.min(device.shelves.piece_bytes().max(least)), all);
        let bindings = each.iter().map(|&bytes| fits(self.binding_bytes, bytes)).min();
        match buffer.min(bindings.unwrap_or(0)) {
            0 => Err(format!("a row of {} numbers is larger than a binding", self.columns)),
            most => Ok(most),
        }
    }
}

/// Packs the rows of a piece on some threads, and writes them to it meanwhile.
fn upload(
    device: &GpuDevice,
    plan: &PackingPlan,
    rows: Range<usize>,
    block: &mut DeviceBlock,
    regions: [(u64, u64); 3],
    fill: RowReader<'_>,
) -> Result<(), String> {
    let each = plan.row_bytes();
    let share = (CHUNK_BYTES / each.iter().sum::<usize>().max(1)).max(1);
    let first = rows.start;
    packed_shares(plan, rows, share, fill, |start, packed| {
        for ((bytes, each), (region, _)) in packed.iter().zip(each).zip(regions) {
            if !bytes.is_empty() {
                let at = region + ((start - first) * each) as u64;
                block.keep(device, at, bytes).map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    })
}

/// Packs rows, `share` of them at a time on each thread, and hands them to `put` with the first one's number as they
/// are done.
fn packed_shares(
    plan: &PackingPlan,
    rows: Range<usize>,
    share: usize,
    fill: RowReader<'_>,
    mut put: impl FnMut(usize, [Vec<u8>; 3]) -> Result<(), String>,
) -> Result<(), String> {
    let of = |start: usize| start..rows.end.min(start + share);
    let shares: Vec<Range<usize>> = rows.clone().step_by(share).map(of).collect();
    if let [one] = &shares[..] {
        return put(one.start, packed_rows(plan, one.clone(), fill)?);
    }
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let (to, from) = sync_channel(MAX_WAITING);
        let start = |_| {
            let to = to.clone();
            let shares = &shares;
            let next = &next;
            scope.spawn(move || {
                while let Some(own) = shares.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let packed = packed_rows(plan, own.clone(), fill);
                    // Nobody takes any more when one of them failed.
                    if to.send((own.start, packed)).is_err() {
                        break;
                    }
                }
            })
        };
        let running: Vec<_> = (0..threads.min(shares.len())).map(start).collect();
        drop(to);
        let done = from.iter().try_for_each(|(start, packed)| put(start, packed?));
        drop(from);
        let joined = running.into_iter().map(|thread| thread.join());
        let failed = joined.filter(Result::is_err).count();
        if failed > 0 { Err("a thread that packs failed".into()) } else { done }
    })
}

/// Some rows as they lie in each region.
fn packed_rows(
    plan: &PackingPlan,
    rows: Range<usize>,
    fill: RowReader<'_>,
) -> Result<[Vec<u8>; 3], String> {
    let each = plan.row_bytes();
    let mut scratch = RowScratch::new(&plan.layout, plan.columns);
    let mut chunk = each.map(|bytes| vec![0_u8; bytes * rows.len()]);
    for (at, row) in rows.enumerate() {
        scratch.clear();
        fill(row, scratch.row())?;
        let mut parts = chunk.iter_mut().zip(each);
        let [low, high, factors] = std::array::from_fn(|_| match parts.next() {
            Some((all, bytes)) => &mut all[at * bytes..(at + 1) * bytes],
            None => &mut [][..],
        });
        scratch.write(&plan.layout, low, high, factors);
    }
    Ok(chunk)
}

/// Room for a row that is taken apart.
struct RowScratch {
    codes: Vec<u8>,
    /// Bytes of codes that belong to numbers of the row.
    own: usize,
    scales: Vec<f32>,
    shifts: Vec<f32>,
    super_scales: Vec<f32>,
    super_shifts: Vec<f32>,
    /// Scales of the row itself, and superblocks.
    blocks: usize,
    supers: usize,
}

impl RowScratch {
    fn new(layout: &CodeLayout, columns: usize) -> Self {
        let width = if layout.is_float() { layout.bits as usize / 8 } else { 1 };
        let padded = layout.units(columns) * layout.unit();
        let room = layout.blocks(columns);
        let blocks = columns.div_ceil(layout.block.max(1));
        let blocks = if layout.block == 0 { 0 } else { blocks };
        let (super_room, supers) = match layout.factors {
            FactorLayout::Nested(numbers) => {
                ((room * layout.block).div_ceil(numbers), columns.div_ceil(numbers))
            }
            _ => (0, 0),
        };
        let pairs = if layout.pairs() { 1 } else { 0 };
        Self {
            codes: vec![0; padded * width],
            own: columns * width,
            scales: vec![0.0; room],
            shifts: vec![0.0; room * pairs],
            super_scales: vec![0.0; super_room],
            super_shifts: vec![0.0; super_room * pairs],
            blocks,
            supers,
        }
    }

    fn clear(&mut self) {
        self.codes[self.own..].fill(0);
        for all in [&mut self.scales, &mut self.shifts] {
            all.fill(0.0);
        }
    }

    fn row(&mut self) -> UnpackedRow<'_> {
        let pairs = !self.shifts.is_empty();
        let (shifts, super_shifts) = if pairs { (self.blocks, self.supers) } else { (0, 0) };
        UnpackedRow {
            codes: &mut self.codes[..self.own],
            scales: &mut self.scales[..self.blocks],
            shifts: &mut self.shifts[..shifts],
            super_scales: &mut self.super_scales[..self.supers],
            super_shifts: &mut self.super_shifts[..super_shifts],
        }
    }

    /// Writes the row to its place in each region.
    fn write(&self, layout: &CodeLayout, low: &mut [u8], high: &mut [u8], factors: &mut [u8]) {
        if layout.is_float() {
            low.copy_from_slice(&self.codes);
        } else {
            let [below, above] = layout.planes();
            plane(&self.codes, layout, 0, below, low);
            if above > 0 {
                plane(&self.codes, layout, below, above, high);
            }
        }
        self.factors(layout, factors);
    }

    fn factors(&self, layout: &CodeLayout, to: &mut [u8]) {
        let each = |first: &[f32], second: &[f32], put: &mut dyn FnMut(f32)| {
            for (at, &value) in first.iter().enumerate() {
                put(value);
                if let Some(&value) = second.get(at) {
                    put(value);
                }
            }
        };
        let mut at = 0;
        let mut bytes = |from: &[u8]| {
            if let Some(to) = to.get_mut(at..at + from.len()) {
                to.copy_from_slice(from);
            }
            at += from.len();
        };
        let scales = &self.scales;
        let shifts = &self.shifts;
        match layout.factors {
            FactorLayout::Nothing => {}
            FactorLayout::Floats(DataType::Fp16) => {
                each(scales, shifts, &mut |v| bytes(&f16::from_f32(v).to_le_bytes()));
            }
            FactorLayout::Floats(DataType::Bf16) => {
                each(scales, shifts, &mut |v| bytes(&bf16::from_f32(v).to_le_bytes()));
            }
            FactorLayout::Floats(_) => each(scales, shifts, &mut |v| bytes(&v.to_le_bytes())),
            FactorLayout::Nested(numbers) => {
                let per = numbers / layout.block.max(1);
                let multiples = |values: &[f32], wholes: &[f32]| -> Vec<f32> {
                    let times = |(at, &value): (usize, &f32)| {
                        let whole = wholes.get(at / per).copied().unwrap_or(0.0);
                        if whole == 0.0 { 0.0 } else { (value / whole).round_ties_even() }
                    };
                    values.iter().enumerate().map(times).collect()
                };
                let first = multiples(scales, &self.super_scales);
                let second = multiples(shifts, &self.super_shifts);
                #[allow(
                    clippy::cast_possible_truncation,
                    reason = "multiples are from -128 to 127"
                )]
                each(&first, &second, &mut |v| bytes(&(v as i8).to_le_bytes()));
                // Superblocks start at a word.
                let count = first.len() + second.len();
                (count..count.next_multiple_of(4)).for_each(|_| bytes(&[0]));
                each(&self.super_scales, &self.super_shifts, &mut |v| {
                    bytes(&f16::from_f32(v).to_le_bytes());
                });
            }
        }
    }
}

/// Writes some bits of each code: those of group `g` and its number `j` lie in the byte `j` of a word.
fn plane(codes: &[u8], layout: &CodeLayout, from: u32, bits: u32, to: &mut [u8]) {
    let unit = layout.unit();
    let per_word = 8 / bits as usize;
    let bytes = unit * bits as usize / 8;
    let mask = u8::MAX >> (8 - bits);
    for (codes, to) in codes.chunks_exact(unit).zip(to.chunks_exact_mut(bytes)) {
        for (group, codes) in codes.chunks_exact(4).enumerate() {
            let up = group % per_word * bits as usize;
            let word = &mut to[group / per_word * 4..][..4];
            for (to, code) in word.iter_mut().zip(codes) {
                *to |= (code >> from & mask) << up;
            }
        }
    }
}

impl CodeLayout {
    /// Takes rows of a checkpoint's matrix apart.
    pub(crate) fn fill(
        &self,
        weights: &dyn BlockWeights,
        row: usize,
        to: UnpackedRow<'_>,
    ) -> Result<(), String> {
        use galatea_graph::blocks::{BlockRow, SuperScales};
        let UnpackedRow { codes, scales, shifts, super_scales, super_shifts } = to;
        let offsets = if self.shift == CodeShift::Offsets { shifts } else { &mut [] };
        let found = weights.unpack_row(row, BlockRow { codes, scales, offsets });
        found.map_err(|error| error.to_string())?;
        if super_scales.is_empty() {
            return Ok(());
        }
        let all = SuperScales { scales: super_scales, offsets: super_shifts };
        weights.super_scales(row, all).map_err(|error| error.to_string())
    }
}
