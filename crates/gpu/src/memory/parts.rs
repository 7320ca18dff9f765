//! Parts of device memory, copied without the rest.

use galatea_tensor::{OwnedParts, TensorError, TensorErrorKind, check_part};

use super::DeviceBlock;
use super::device_tensor::DeviceMemory;
use crate::buffers::STEP;
use crate::device::DeviceCounters;
use crate::error::GpuError;

fn failed(error: impl Into<GpuError>) -> TensorError {
    TensorErrorKind::Remote(error.into().to_string()).into()
}

/// A device copies whole words.
const WORD: usize = 4;

/// The words around bytes: where they start, how many bytes they have, and how many lie before `start`.
fn words(start: usize, each: usize) -> (usize, usize, usize) {
    let from = start / WORD * WORD;
    (from, (start + each).next_multiple_of(WORD) - from, start - from)
}

fn wide(bytes: usize) -> u64 {
    bytes as u64
}

impl DeviceMemory {
    /// Runs copies between the block and a buffer beside it.
    fn beside(
        &self,
        bytes: usize,
        record: impl FnOnce(&mut wgpu::CommandEncoder, &DeviceBlock),
    ) -> Result<DeviceBlock, TensorError> {
        let device = self.device();
        device.alive().map_err(failed)?;
        let beside = DeviceBlock::private(device, wide(bytes).max(STEP)).map_err(failed)?;
        device
            .checked(|| {
                let mut encoder = device.device.create_command_encoder(&Default::default());
                record(&mut encoder, &beside);
                device.submit_copies(encoder)
            })
            .map_err(failed)?;
        Ok(beside)
    }

    /// Counts copies that the processor made.
    fn count(&self, copies: usize) {
        DeviceCounters::add(&self.device().counters.host_copies, wide(copies));
    }
}

impl OwnedParts for DeviceMemory {
    fn copy_parts(&mut self, copies: &[(usize, usize)], each: usize) -> Result<(), TensorError> {
        for &(from, to) in copies {
            check_part(from.max(to), each, self.len())?;
        }
        if let Some(own) = self.own_bytes() {
            for &(from, to) in copies {
                own.copy_within(from..from + each, to);
            }
            self.count(copies.len());
            return Ok(());
        }
        let aligned =
            |&(from, to): &(usize, usize)| from.is_multiple_of(WORD) && to.is_multiple_of(WORD);
        if !each.is_multiple_of(WORD) || !copies.iter().all(aligned) {
            for &(from, to) in copies {
                let bytes = self.read_parts(&[from], each)?;
                self.write_parts(&[to], each, &bytes)?;
            }
            return Ok(());
        }
        if each == 0 || copies.is_empty() {
            return Ok(());
        }
        self.changed();
        let own = &self.block().buffer;
        // No copy has its source and its target in one buffer.
        self.beside(each, |encoder, beside| {
            for &(from, to) in copies {
                let size = wide(each);
                encoder.copy_buffer_to_buffer(own, wide(from), &beside.buffer, 0, size);
                encoder.copy_buffer_to_buffer(&beside.buffer, 0, own, wide(to), size);
            }
        })?;
        Ok(())
    }

    fn read_parts(&mut self, starts: &[usize], each: usize) -> Result<Vec<u8>, TensorError> {
        let mut size = 0;
        for &start in starts {
            check_part(start, each, self.len())?;
            size += words(start, each).1;
        }
        if size == 0 {
            return Ok(Vec::new());
        }
        if let Some(own) = self.own_bytes() {
            let parts: Vec<&[u8]> = starts.iter().map(|&start| &own[start..start + each]).collect();
            let all = parts.concat();
            self.count(starts.len());
            DeviceCounters::add(&self.device().counters.download_bytes, wide(all.len()));
            return Ok(all);
        }
        let own = &self.block().buffer;
        let beside = self.beside(size, |encoder, beside| {
            let mut at = 0;
            for &start in starts {
                let (from, size, _) = words(start, each);
                let from = wide(from);
                let size = wide(size);
                encoder.copy_buffer_to_buffer(own, from, &beside.buffer, at, size);
                at += size;
            }
        })?;
        let mut read = vec![0; size];
        beside.read(self.device(), &mut read).map_err(failed)?;
        let mut all = Vec::with_capacity(starts.len() * each);
        let mut at = 0;
        for &start in starts {
            let (_, size, before) = words(start, each);
            all.extend_from_slice(&read[at + before..at + before + each]);
            at += size;
        }
        Ok(all)
    }

    fn write_parts(
        &mut self,
        starts: &[usize],
        each: usize,
        bytes: &[u8],
    ) -> Result<(), TensorError> {
        check_part(0, starts.len().saturating_mul(each), bytes.len())?;
        for &start in starts {
            check_part(start, each, self.len())?;
        }
        if let Some(own) = self.own_bytes() {
            for (at, &start) in starts.iter().enumerate() {
                own[start..start + each].copy_from_slice(&bytes[at * each..(at + 1) * each]);
            }
            self.count(starts.len());
            DeviceCounters::add(&self.device().counters.upload_bytes, wide(starts.len() * each));
            return Ok(());
        }
        for (at, &start) in starts.iter().enumerate() {
            let (from, size, before) = words(start, each);
            let part = &bytes[at * each..(at + 1) * each];
            if before == 0 && size == each {
                self.block().write(self.device(), wide(from), part);
                continue;
            }
            // What lies around the part in its words stays.
            let whole = size.min(self.len() - from);
            let mut around = self.read_parts(&[from], whole)?;
            around[before..before + each].copy_from_slice(part);
            self.block().write(self.device(), wide(from), &around);
        }
        self.changed();
        Ok(())
    }
}
