//! Pools whose window has gaps, which programs have no operators for: each element of the window is a part of
//! the image with the pool's steps, and these come together axis by axis.

use galatea_formats::coreml::mil::{MilArg, MilVar};
use galatea_graph::ops::pooling::PoolWindow;

use crate::emit::ProgramEmitter;
use crate::lengths::SliceTake;
use crate::unwritable::{Result, refuse, small};

/// A window with gaps over an image of known lengths.
pub(super) struct DilatedWindow {
    kernel: Vec<usize>,
    strides: Vec<usize>,
    dilations: Vec<usize>,
    /// Lengths of the spatial axes, without pads.
    lengths: Vec<usize>,
    before: Vec<usize>,
    after: Vec<usize>,
    output: Vec<usize>,
}

/// Returns whether a window has gaps.
pub(super) fn has_gaps(window: &PoolWindow) -> bool {
    window.dilations.iter().any(|&step| step != 1)
}

impl DilatedWindow {
    /// The window over an image whose axes of space have these lengths.
    pub(super) fn new(window: &PoolWindow, lengths: Vec<usize>) -> Result<Self> {
        let geometry = window.geometry(&lengths).or_else(|error| refuse(error.to_string()))?;
        let or_ones = |all: &[usize]| match all.is_empty() {
            true => vec![1; lengths.len()],
            false => all.to_vec(),
        };
        Ok(Self {
            kernel: window.kernel_shape.clone(),
            strides: or_ones(&window.strides),
            dilations: or_ones(&window.dilations),
            before: geometry.pads_begin,
            after: geometry.pads_end,
            output: geometry.output,
            lengths,
        })
    }

    /// Where the last element of the last window is, and one more.
    fn reach(&self, axis: usize) -> usize {
        let last = (self.output[axis] - 1) * self.strides[axis];
        last + (self.kernel[axis] - 1) * self.dilations[axis] + 1
    }

    /// Combines the elements of each window by `operator`, with `fill` around the image. The first
    /// two axes are batch and channels.
    pub(super) fn combined(
        &self,
        emit: &mut ProgramEmitter<'_>,
        x: &MilVar,
        operator: &str,
        fill: f32,
    ) -> Result<MilVar> {
        let mut pad = vec![0; 4];
        for axis in 0..self.lengths.len() {
            let there = self.lengths[axis] + self.before[axis] + self.after[axis];
            let more = self.reach(axis).saturating_sub(there);
            pad.extend([small(self.before[axis])?, small(self.after[axis] + more)?]);
        }
        let mut found = x.clone();
        if pad.iter().any(|&len| len != 0) {
            let fill = emit.float(fill);
            let inputs = vec![
                ("x", MilArg::Var(found)),
                ("pad", MilArg::Ints(pad)),
                ("mode", MilArg::Text("constant")),
                ("constant_val", fill),
            ];
            found = emit.op("pad", inputs)?;
        }
        for axis in 0..self.lengths.len() {
            let mut all: Option<MilVar> = None;
            for at in 0..self.kernel[axis] {
                let part = self.part(emit, &found, axis, at)?;
                all = Some(match all {
                    None => part,
                    Some(before) => emit.pair(operator, &before, &part)?,
                });
            }
            found = all.unwrap_or(found);
        }
        Ok(found)
    }

    /// Returns the elements at one place of every window along an axis.
    fn part(
        &self,
        emit: &mut ProgramEmitter<'_>,
        x: &MilVar,
        axis: usize,
        at: usize,
    ) -> Result<MilVar> {
        let start = at * self.dilations[axis];
        let end = start + (self.output[axis] - 1) * self.strides[axis] + 1;
        let mut cut = SliceTake::whole(self.lengths.len() + 2).range(axis + 2, start, end)?;
        cut.stride[axis + 2] = small(self.strides[axis])?;
        emit.cut(x, cut)
    }

    /// How many elements of each window count: those of the image, and those of its pads where `pads` says so.
    #[allow(clippy::cast_precision_loss, reason = "windows are small")]
    pub(super) fn counts(&self, emit: &mut ProgramEmitter<'_>, pads: bool) -> Result<MilVar> {
        let mut all = vec![1.0_f32];
        for axis in 0..self.lengths.len() {
            let front = self.before[axis];
            let len = self.lengths[axis];
            let counted = match pads {
                true => 0..front + len + self.after[axis],
                false => front..front + len,
            };
            let count = |place: usize| {
                let element = |at: &usize| {
                    counted.contains(&(place * self.strides[axis] + at * self.dilations[axis]))
                };
                (0..self.kernel[axis]).filter(element).count() as f32
            };
            let own: Vec<f32> = (0..self.output[axis]).map(count).collect();
            all = all.iter().flat_map(|&outer| own.iter().map(move |&one| outer * one)).collect();
        }
        let shape: Vec<usize> = [1, 1].into_iter().chain(self.output.iter().copied()).collect();
        emit.floats(&shape, all)
    }
}
