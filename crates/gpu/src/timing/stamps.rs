//! Stamps of the device's clock around dispatches.

use wgpu::BufferUsages;

use super::TimingLevel;
use crate::device::GpuDevice;
use crate::error::GpuError;
use crate::timers::{StampBuffers, StampPair};

/// Stamps of one set; a pair never lies in two.
const OF_A_SET: u32 = wgpu::QUERY_SET_MAX_QUERIES / 2 * 2;
/// The fewest stamps that are made room for: plans of about as many dispatches share them.
const LEAST: u32 = 64;
/// The stamps of a run: two for each thing that is timed.
#[derive(Debug)]
pub(crate) struct RunStamps {
    room: StampBuffers,
    used: u32,
    /// True if each thing needs a pass of its own, because the device tells the time between passes only.
    pub(crate) apart: bool,
    /// Kind of thing that is timed: each dispatch, or each pass.
    pub(crate) of: TimingLevel,
}

impl RunStamps {
    /// Stamps for so many things, where the device can tell.
    pub(crate) fn new(device: &GpuDevice, things: usize, of: TimingLevel) -> Option<Self> {
        let capabilities = device.capabilities();
        let used = u32::try_from(things).ok()?.checked_mul(2)?;
        if !device.trusts_stamps() || used == 0 || of == TimingLevel::Off {
            return None;
        }
        let apart = !capabilities.timestamps;
        let room = match device.stamps.take(used) {
            Some(room) => room,
            None => StampBuffers::new(device, used.checked_next_power_of_two()?.max(LEAST)).ok()?,
        };
        Some(Self { room, used, apart, of })
    }

    /// The set of a stamp and its number there.
    pub(crate) fn place(&self, stamp: u32) -> Option<(&wgpu::QuerySet, u32)> {
        let set = usize::try_from(stamp / OF_A_SET).ok()?;
        Some((self.room.sets.get(set)?, stamp % OF_A_SET))
    }

    /// Returns the stamps to which a pass writes its begin and its end.
    pub(crate) fn writes(&self, thing: u32) -> Option<wgpu::ComputePassTimestampWrites<'_>> {
        let (query_set, begin) = self.place(thing * 2)?;
        Some(wgpu::ComputePassTimestampWrites {
            query_set,
            beginning_of_pass_write_index: Some(begin),
            end_of_pass_write_index: Some(begin + 1),
        })
    }

    fn bytes(&self) -> u64 {
        u64::from(self.used) * 8
    }

    /// Brings the stamps to where the host reads them, behind all that they are of.
    pub(crate) fn resolve(&self, encoder: &mut wgpu::CommandEncoder) {
        let mut from = 0;
        for set in &self.room.sets {
            let count = (self.used - from).min(OF_A_SET);
            encoder.resolve_query_set(set, 0..count, &self.room.resolved, u64::from(from) * 8);
            from += count;
            if from == self.used {
                break;
            }
        }
        let resolved = &self.room.resolved;
        let read = &self.room.read;
        encoder.copy_buffer_to_buffer(resolved, 0, read, 0, self.bytes());
    }

    /// Asks for the stamps, once the commands are handed over.
    pub(crate) fn map(&self) {
        self.room.read.map_async(wgpu::MapMode::Read, ..self.bytes(), |_| ());
    }

    /// The stamps in ticks of the device's clock, once the run is over; `None` where the device did not read its
    /// clock each time, which it is not asked for again then.
    pub(crate) fn ticks(self, device: &GpuDevice) -> Result<Option<Vec<StampPair>>, GpuError> {
        let view = self.room.read.slice(..self.bytes()).get_mapped_range();
        let view = view.map_err(|error| GpuError::Refusal(error.to_string()))?;
        let number =
            |bytes: &[u8]| bytes.iter().rev().fold(0_u64, |all, &byte| all << 8 | u64::from(byte));
        // Kernels among others may be shorter than a tick, whole passes are not.
        let whole = self.apart || self.of == TimingLevel::Whole;
        let pair = |bytes: &[u8]| {
            let (begin, end) = bytes.split_at(8);
            let pair = StampPair { begin: number(begin), end: number(end) };
            let pair = device.told_stamps(pair).read()?;
            (!whole || pair.ticks().is_some()).then_some(pair)
        };
        let all: Option<Vec<StampPair>> = view.chunks_exact(16).map(pair).collect();
        if all.is_none() {
            device.doubt_stamps();
        }
        drop(view);
        self.room.read.unmap();
        device.stamps.give_back(self.room);
        Ok(all)
    }
}

impl StampBuffers {
    fn new(device: &GpuDevice, count: u32) -> Result<Self, GpuError> {
        let buffer = |usage| {
            device.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("timestamps"),
                size: u64::from(count) * 8,
                usage,
                mapped_at_creation: false,
            })
        };
        let set = |from: u32| {
            device.device.create_query_set(&wgpu::QuerySetDescriptor {
                label: None,
                ty: wgpu::QueryType::Timestamp,
                count: (count - from * OF_A_SET).min(OF_A_SET),
            })
        };
        device.checked(|| Self {
            sets: (0..count.div_ceil(OF_A_SET)).map(set).collect(),
            resolved: buffer(BufferUsages::QUERY_RESOLVE | BufferUsages::COPY_SRC),
            read: buffer(BufferUsages::COPY_DST | BufferUsages::MAP_READ),
            count,
        })
    }
}
