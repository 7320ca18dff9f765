//! Pieces in which a run is encoded, and the stamps of its passes and dispatches.

use crate::device::{GpuDevice, RunCommands};
use crate::timing::{RunStamps, TimingLevel};

/// Most passes of one submission: a device has a limit on the parts of one.
pub(super) const MAX_PASSES: usize = 1000;

/// Pieces of a run that are encoded so far.
pub(super) struct EncodedPieces {
    pub(super) before: Vec<wgpu::CommandBuffer>,
    pub(super) encoder: wgpu::CommandEncoder,
    /// Passes before those of the current piece.
    pub(super) passes: usize,
}

impl EncodedPieces {
    pub(super) fn new(device: &GpuDevice) -> Self {
        let encoder = device.device.create_command_encoder(&Default::default());
        Self { before: Vec::new(), encoder, passes: 0 }
    }

    /// Begins the next piece.
    pub(super) fn cut(&mut self, device: &GpuDevice, passes: usize) {
        let encoder = device.device.create_command_encoder(&Default::default());
        self.before.push(std::mem::replace(&mut self.encoder, encoder).finish());
        self.passes = passes;
    }

    /// Hands all over that is encoded.
    pub(super) fn hand_over(&mut self, device: &GpuDevice, passes: usize) {
        self.cut(device, passes);
        for piece in self.before.drain(..) {
            device.submit(piece);
        }
    }

    /// Ends the last piece.
    pub(super) fn finish(self) -> RunCommands {
        RunCommands { before: self.before, last: self.encoder.finish() }
    }
}

/// Writes stamps down where they belong.
pub(super) struct StampMarks<'a> {
    pub(super) stamps: Option<&'a RunStamps>,
    pub(super) dispatch: u32,
    pub(super) pass: u32,
}

impl StampMarks<'_> {
    /// Returns whether each dispatch has a pass of its own.
    pub(super) fn apart(&self) -> bool {
        self.stamps.is_some_and(|stamps| stamps.apart && stamps.of == TimingLevel::Kernels)
    }

    /// Passes that were begun so far.
    pub(super) fn passes(&self) -> usize {
        usize::try_from(self.pass).unwrap_or(usize::MAX)
    }

    /// Number of the pass that was begun last.
    pub(super) fn last_pass(&self) -> usize {
        self.passes().saturating_sub(1)
    }

    pub(super) fn pass<'a>(
        &mut self,
        encoder: &'a mut wgpu::CommandEncoder,
    ) -> wgpu::ComputePass<'a> {
        let thing = if self.apart() { self.dispatch } else { self.pass };
        let whole = |stamps: &&RunStamps| stamps.apart || stamps.of == TimingLevel::Whole;
        let timestamp_writes = self.stamps.filter(whole).and_then(|stamps| stamps.writes(thing));
        self.pass += 1;
        encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: None, timestamp_writes })
    }

    /// A stamp before or behind a dispatch, where the device writes them there.
    pub(super) fn stamp(&self, pass: &mut wgpu::ComputePass<'_>, behind: u32) {
        let inside = |stamps: &&RunStamps| !stamps.apart && stamps.of == TimingLevel::Kernels;
        let place = self.stamps.filter(inside);
        if let Some((set, at)) = place.and_then(|stamps| stamps.place(self.dispatch * 2 + behind)) {
            pass.write_timestamp(set, at);
        }
    }
}
