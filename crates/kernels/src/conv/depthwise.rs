//! Depthwise convolution: every channel by itself, vectors over channels.

use super::rows::Window;
use crate::Exec;
use crate::activation::ActivateRows;
use crate::gemm::Finish;
use crate::isa::{Kernel, Simd};
use crate::memory::Shared;

/// Computes the whole convolution; a task is a run of output rows.
///
/// # Safety
/// `x`, `y` and the finish have the sizes of the window and `batch`; `weights` has one value per
/// tap and channel; nothing else uses `y` meanwhile.
pub(super) unsafe fn run(
    exec: Exec<'_>,
    window: &Window,
    x: &[f32],
    batch: usize,
    weights: &[f32],
    y: Shared<f32>,
    finish: Finish,
) {
    let [od, oh, ow] = window.out;
    let work = ow * window.params.in_channels * window.params.taps();
    exec.pool.run_ranges(batch * od * oh, 65_536usize.div_ceil(work.max(1)), |rows| {
        for row in rows {
            exec.isa.run(Row { window, x: x.as_ptr(), weights: weights.as_ptr(), row, y, finish });
        }
    });
}

/// One output row.
struct Row<'a> {
    window: &'a Window,
    x: *const f32,
    weights: *const f32,
    row: usize,
    y: Shared<f32>,
    finish: Finish,
}

/// The taps of the height and width that `P` adjacent output pixels all have in the image.
struct Taps {
    rows: std::ops::Range<usize>,
    columns: std::ops::Range<usize>,
}

impl Kernel for Row<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let w = self.window;
        let p = &w.params;
        let (batch, place) = w.place(self.row * w.out[2]);
        let rows = inside(w, 1, place[1]);
        let mut column = 0;
        // Columns whose whole window is inside the image.
        let first_whole = p.pads_begin[2].div_ceil(p.stride[2]);
        let span = (p.kernel[2] - 1) * p.dilation[2];
        let end_whole = (w.size[2] + p.pads_begin[2])
            .checked_sub(span)
            .map_or(0, |room| room.div_ceil(p.stride[2]).min(w.out[2]));
        while column < w.out[2] {
            let mut whole = 1;
            if column >= first_whole && column < end_whole {
                whole = end_whole - column;
            }
            let taps = Taps { rows: rows.clone(), columns: inside(w, 2, column) };
            let at = (batch, [place[0], place[1], column]);
            // SAFETY: these pixels see only the image through these taps.
            column += unsafe {
                match whole {
                    8.. => self.pixels::<S, 8>(s, at, &taps),
                    4.. => self.pixels::<S, 4>(s, at, &taps),
                    2.. => self.pixels::<S, 2>(s, at, &taps),
                    _ => self.pixels::<S, 1>(s, at, &taps),
                }
            };
        }
        if let Some(activation) = self.finish.late {
            let columns = p.in_channels * w.out[2];
            let data = self.y.at(self.row * columns).ptr();
            // SAFETY: this task alone writes this row.
            unsafe { ActivateRows { activation, data, rows: 1, columns, stride: 0 }.run(s) };
        }
    }
}

/// The taps of dimension `d` that output coordinate `o` has inside the image.
#[inline(always)]
fn inside(w: &Window, d: usize, o: usize) -> std::ops::Range<usize> {
    let p = &w.params;
    let start = o * p.stride[d];
    let first = p.pads_begin[d].saturating_sub(start).div_ceil(p.dilation[d]);
    let room = (w.size[d] + p.pads_begin[d]).saturating_sub(start);
    let end = room.div_ceil(p.dilation[d]).min(p.kernel[d]);
    first.min(end)..end
}

impl Row<'_> {
    /// Computes `P` adjacent pixels and gives `P`.
    ///
    /// # Safety
    /// All `P` pixels are in the row and have all of `taps` inside the image.
    #[inline(always)]
    unsafe fn pixels<S: Simd, const P: usize>(
        &self,
        s: S,
        (batch, place): (usize, [usize; 3]),
        taps: &Taps,
    ) -> usize {
        s.enter(Pixels::<P> { row: self, batch, place, taps });
        P
    }
}

struct Pixels<'a, const P: usize> {
    row: &'a Row<'a>,
    batch: usize,
    place: [usize; 3],
    taps: &'a Taps,
}

/// Taps whose places are worked out once per call instead of once per vector.
const MOST_TAPS: usize = 64;

/// Where a tap reads, for channel 0 of the first pixel.
#[derive(Clone, Copy)]
struct Tap {
    x: *const f32,
    weight: *const f32,
}

impl<const P: usize> Kernel for Pixels<'_, P> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let row = self.row;
        let w = row.window;
        let p = &w.params;
        let channels = p.in_channels;
        let [kd, kh, kw] = p.kernel;
        let mut taps = [Tap { x: row.x, weight: row.weights }; MOST_TAPS];
        let mut count = 0;
        let mut first = true;
        for d in 0..kd {
            let Some(image_d) = w.tap(0, self.place[0], d) else { continue };
            for h in self.taps.rows.clone() {
                let image_h = self.place[1] * p.stride[1] + h * p.dilation[1] - p.pads_begin[1];
                let image_row = (self.batch * w.size[0] + image_d) * w.size[1] + image_h;
                for t in self.taps.columns.clone() {
                    let image_w = self.place[2] * p.stride[2] + t * p.dilation[2] - p.pads_begin[2];
                    taps[count] = Tap {
                        x: row.x.wrapping_add((image_row * w.size[2] + image_w) * channels),
                        weight: row.weights.wrapping_add(((d * kh + h) * kw + t) * channels),
                    };
                    count += 1;
                    if count == MOST_TAPS {
                        // A large window goes on from what Y holds so far.
                        self.sweep(s, &taps, first, false);
                        (first, count) = (false, 0);
                    }
                }
            }
        }
        self.sweep(s, &taps[..count], first, true);
    }
}

impl<const P: usize> Pixels<'_, P> {
    /// Adds some taps for all channels: to nothing if `first`, else to Y; finishes if `last`.
    #[inline(always)]
    fn sweep<S: Simd>(&self, s: S, taps: &[Tap], first: bool, last: bool) {
        let channels = self.row.window.params.in_channels;
        let mut c = 0;
        while c + S::LANES <= channels {
            // SAFETY: whole vectors of channels.
            unsafe { self.vector(s, taps, c, None, (first, last)) };
            c += S::LANES;
        }
        if c < channels {
            // SAFETY: the mask chooses the channels left.
            unsafe { self.vector(s, taps, c, Some(s.tail(channels - c)), (first, last)) };
        }
    }

    /// One vector of channels from `c` on.
    ///
    /// # Safety
    /// The vector is whole, or `mask` chooses channels that exist; all taps are inside the image
    /// for all `P` pixels.
    #[inline(always)]
    unsafe fn vector<S: Simd>(
        &self,
        s: S,
        taps: &[Tap],
        c: usize,
        mask: Option<S::M>,
        (first, last): (bool, bool),
    ) {
        let row = self.row;
        let w = row.window;
        let channels = w.params.in_channels;
        let step = w.params.stride[2] * channels;
        let pixel = row.row * w.out[2] + self.place[2];
        let y = row.y.ptr().wrapping_add(pixel * channels + c);
        let mut acc = [s.splat(0.0); P];
        if !first {
            for (i, acc) in acc.iter_mut().enumerate() {
                // SAFETY: y covers these pixels and channels.
                *acc = unsafe { load(s, y.add(i * channels), mask) };
            }
        }
        for tap in taps {
            // SAFETY: the taps are inside the image for all P pixels.
            unsafe {
                let weight = load(s, tap.weight.add(c), mask);
                let x = tap.x.add(c);
                for (i, acc) in acc.iter_mut().enumerate() {
                    *acc = s.fma(load(s, x.add(i * step), mask), weight, *acc);
                }
            }
        }
        let finish = if last { row.finish.shifted(pixel, c) } else { Finish::none() };
        for (i, mut acc) in acc.into_iter().enumerate() {
            // SAFETY: bias, residual and y cover these pixels and channels.
            unsafe {
                if let Some(bias) = finish.bias_at(0) {
                    acc = s.add(acc, load(s, bias, mask));
                }
                if let Some(residual) = finish.residual_at(i, 0) {
                    acc = s.add(acc, load(s, residual, mask));
                }
                acc = s.min(s.splat(finish.high), s.max(s.splat(finish.low), acc));
                let y = y.add(i * channels);
                match mask {
                    Some(m) => s.store_tail(y, m, acc),
                    None => s.store(y, acc),
                }
            }
        }
    }
}

/// # Safety
/// `p` is valid for a vector, or for what `mask` chooses.
#[inline(always)]
unsafe fn load<S: Simd>(s: S, p: *const f32, mask: Option<S::M>) -> S::F {
    // SAFETY: the caller vouches for the memory.
    unsafe {
        match mask {
            Some(m) => s.load_tail(p, m),
            None => s.load(p),
        }
    }
}
