//! Convolutions by tiles of AMX that are read where an image lies: the rows of a tile are adjacent
//! pixels of a line, so nothing is gathered. An image with padding is copied once, a band of lines at
//! a time, with the padding around it.

use crate::KernelContext;
use crate::conv::{ConvParams, ConvWindow};
use crate::isa::AMX_ROWS;
use crate::memory::DisjointSlice;
use crate::pieces::WorkPieces;
use crate::tiles::{COLUMNS, RowTile};
use std::ops::Range;

/// Bytes of a step: what a tile holds of a row.
const STEP: usize = 64;

/// Bytes of lines that a block of tiles reads, about: they stay in the second-level cache.
const BAND_BYTES: usize = 384 * 1024;

/// Most tiles of a block.
const MAX_TILES: usize = 128;

/// Fewest tiles of a piece that is worth its own start.
const MIN_TILES: usize = 4;

/// Below this many tiles threads share columns, not tiles.
const FEW_TILES: usize = 16;

/// Cycles of a step of a pair of tiles with a panel of two, those that gathering a run of a row takes
/// at least, and bytes of a longer one for each further cycle.
const STEP_CYCLES: usize = 66;
const RUN_CYCLES: usize = 16;
const GATHERED_IN_CYCLE: usize = 8;

/// Steps with which C is most of what a product moves, and most bytes of panels that are read again
/// for each pair of tiles then.
const FEW_STEPS: usize = 8;
const NEAR_PANELS: usize = 512 * 1024;

/// Returns whether each pair of tiles meets all columns before the next pair: with so few steps, and
/// panels of so many bytes in all.
#[inline(always)]
pub(crate) fn whole_rows_first(steps: usize, panels_bytes: usize) -> bool {
    steps <= FEW_STEPS && panels_bytes <= NEAR_PANELS
}

/// How the terms of a window fall into runs of adjacent bytes of an image, each padded to whole
/// steps: a row of the window where its taps are adjacent, else a tap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WindowRuns {
    /// Bytes of a run.
    len: usize,
    /// The same with padding.
    padded: usize,
    /// Runs of the window's rows, and of each of them.
    counts: [usize; 2],
    /// Bytes of a pixel and of an element.
    pixel: usize,
    element: usize,
}

impl WindowRuns {
    /// For a convolution that can be read so, of elements of so many bytes: one group, and no depth
    /// but that of a batch. `None` too where padding the runs costs more than gathering rows.
    pub(crate) fn of(p: &ConvParams, element: usize) -> Option<Self> {
        let flat = p.kernel[0] == 1 && p.stride[0] == 1 && p.pads_begin[0] + p.pads_end[0] == 0;
        if !flat || p.groups != 1 || p.in_channels == 0 {
            return None;
        }
        let pixel = p.in_channels * element;
        let (len, columns) = match p.dilation[2] {
            1 => (p.kernel[2] * pixel, 1),
            _ => (pixel, p.kernel[2]),
        };
        let counts = [p.kernel[1], columns];
        let runs = Self { len, padded: len.next_multiple_of(STEP), counts, pixel, element };
        let panels = p.out_channels.div_ceil(2 * COLUMNS);
        let run = RUN_CYCLES + len / GATHERED_IN_CYCLE;
        let gathering = 2 * AMX_ROWS * counts[0] * counts[1] * run;
        let gathered = (p.taps() * pixel).div_ceil(STEP) * STEP_CYCLES * panels + gathering;
        let here = runs.terms() * element / STEP * STEP_CYCLES * panels;
        (p.taps() == 1 || here <= gathered).then_some(runs)
    }

    /// Terms with padding.
    pub(crate) fn terms(&self) -> usize {
        self.counts[0] * self.counts[1] * self.padded / self.element
    }

    /// Returns whether no run is padded.
    pub(crate) fn are_whole(&self) -> bool {
        self.padded == self.len
    }

    /// Returns whether the terms lie as gathered rows have them.
    fn is_natural(&self) -> bool {
        self.are_whole() || self.counts == [1, 1]
    }

    /// The tap and the channel of a term that is no padding.
    pub(crate) fn weight(&self, term: usize) -> Option<(usize, usize)> {
        let at = term * self.element;
        let run = at / self.padded;
        let inside = at % self.padded;
        (inside < self.len).then(|| {
            let at = run * self.len + inside;
            (at / self.pixel, at % self.pixel / self.element)
        })
    }
}

/// An image as bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByteImage {
    pub(crate) data: *const u8,
    /// Number of bytes that it has.
    pub(crate) len: usize,
    /// Bits to flip in each byte, and the byte of the padding before the flip.
    pub(crate) flip: u8,
    pub(crate) fill: u8,
}

/// A convolution over an image that is read where it lies.
#[derive(Clone, Copy)]
pub(crate) struct LineConv<'a> {
    image: DisjointSlice<u8>,
    /// Bytes of the image.
    len: usize,
    runs: WindowRuns,
    params: &'a ConvParams,
    /// Height and width of the image and of the result.
    size: [usize; 2],
    out: [usize; 2],
    /// Images beside each other: batch and depth.
    images: usize,
    /// Bits to flip in each byte, and the byte of the padding before the flip.
    flip: u8,
    fill: u8,
    /// True if tiles are read from the image itself.
    in_place: bool,
    tile_rows: usize,
    tiles_per_line: usize,
}

impl<'a> LineConv<'a> {
    /// `None` where rows are better gathered: where many tiles would be partly filled, or there are
    /// fewer rows than `least_rows`.
    pub(crate) fn of(
        window: &'a ConvWindow,
        runs: WindowRuns,
        ByteImage { data, len, flip, fill }: ByteImage,
        batch: usize,
        least_rows: usize,
    ) -> Option<Self> {
        let p = &window.params;
        let padded = (1..3).any(|d| p.pads_begin[d] + p.pads_end[d] > 0);
        let in_place = !padded && flip == 0;
        let [od, oh, ow] = window.out;
        let one_by_one = p.taps() == 1 && p.stride == [1; 3];
        // Pixels that see themselves alone are one long line.
        let (images, size, out) = if one_by_one && in_place {
            let pixels = batch * od * oh * ow;
            (1, [1, pixels], [1, pixels])
        } else {
            (batch * od, [window.size[1], window.size[2]], [oh, ow])
        };
        let tiles_per_line = out[1].div_ceil(AMX_ROWS).max(1);
        let tile_rows = out[1].div_ceil(tiles_per_line);
        let tiles = images * out[0] * tiles_per_line;
        let least = (images * out[0] * out[1]).div_ceil(AMX_ROWS);
        if runs.is_natural() && (2 * tiles > 3 * least || window.pixels(batch) < least_rows) {
            return None;
        }
        let image = DisjointSlice::from_ptr(data.cast_mut());
        let params = &window.params;
        Some(Self {
            image,
            len,
            runs,
            params,
            size,
            out,
            images,
            flip,
            fill,
            in_place,
            tile_rows,
            tiles_per_line,
        })
    }

    /// Pixels of a line as it is read: with the padding, where there is one.
    fn width(&self) -> usize {
        if self.in_place {
            return self.size[1];
        }
        let p = self.params;
        (self.out[1] - 1) * p.stride[2] + (p.kernel[2] - 1) * p.dilation[2] + 1
    }

    /// Bytes between lines.
    fn pitch(&self) -> usize {
        self.width() * self.runs.pixel
    }

    /// Bytes between the rows of a tile.
    pub(crate) fn stride(&self) -> usize {
        self.params.stride[2] * self.runs.pixel
    }

    /// Bytes from the first step to each step.
    pub(crate) fn steps(&self) -> Vec<usize> {
        let p = self.params;
        let runs = self.runs;
        let mut steps = Vec::with_capacity(runs.counts[0] * runs.counts[1] * runs.padded / STEP);
        for row in 0..runs.counts[0] {
            for column in 0..runs.counts[1] {
                let run = row * p.dilation[1] * self.pitch() + column * p.dilation[2] * runs.pixel;
                steps.extend((0..runs.padded).step_by(STEP).map(|at| run + at));
            }
        }
        steps
    }

    /// Bytes that a tile reads from its start on, given the last step.
    fn reach(&self, last_step: usize) -> usize {
        (self.tile_rows - 1) * self.stride() + last_step + STEP
    }

    fn tiles(&self) -> usize {
        self.images * self.out[0] * self.tiles_per_line
    }

    /// Lines of an image that so many adjacent lines of the result see.
    fn lines_seen(&self, lines: usize) -> usize {
        let p = self.params;
        (lines - 1) * p.stride[1] + (p.kernel[1] - 1) * p.dilation[1] + 1
    }

    /// Tiles of a block.
    fn most_tiles(&self) -> usize {
        if self.out[0] == 1 && self.in_place {
            return (BAND_BYTES / (self.tile_rows * self.stride())).clamp(2, MAX_TILES);
        }
        let lines = BAND_BYTES / (self.params.stride[1] * self.pitch()).max(1);
        (lines.max(1) * self.tiles_per_line).clamp(2, MAX_TILES)
    }

    /// The line of the result that a tile is in, and its first column.
    fn place(&self, tile: usize) -> (usize, usize) {
        (tile / self.tiles_per_line, tile % self.tiles_per_line * self.tile_rows)
    }

    /// The lines of the result that some tiles are in, image by image: the image, its first line and
    /// how many.
    fn parts(&self, tiles: &Range<usize>) -> impl Iterator<Item = (usize, usize, usize)> {
        let first = self.place(tiles.start).0;
        let end = self.place(tiles.end - 1).0 + 1;
        let height = self.out[0];
        (first / height..end.div_ceil(height)).map(move |image| {
            let from = first.max(image * height);
            (image, from - image * height, end.min((image + 1) * height) - from)
        })
    }

    /// Bytes of the copies that some tiles need.
    pub(crate) fn copied(&self, tiles: &Range<usize>, last_step: usize) -> usize {
        if self.in_place {
            let first = self.first_beyond(tiles, last_step);
            return (tiles.end - first) * self.reach(last_step);
        }
        let lines: usize = self.parts(tiles).map(|(_, _, lines)| self.lines_seen(lines)).sum();
        lines * self.pitch() + self.reach(last_step)
    }

    /// The first of some tiles that would be read beyond the image.
    fn first_beyond(&self, tiles: &Range<usize>, last_step: usize) -> usize {
        let beyond = |&tile: &usize| self.start(tile) + self.reach(last_step) > self.len;
        tiles.clone().rev().take_while(beyond).last().unwrap_or(tiles.end)
    }

    /// Where a tile starts in an image that is read in place.
    fn start(&self, tile: usize) -> usize {
        let (line, column) = self.place(tile);
        let image = line / self.out[0];
        let line = line % self.out[0];
        (image * self.size[0] + line * self.params.stride[1]) * self.pitch()
            + column * self.stride()
    }

    /// Returns the number of rows that a tile makes.
    fn rows(&self, column: usize) -> usize {
        (self.out[1] - column).min(self.tile_rows)
    }

    /// Rows of a tile.
    pub(crate) fn tile_rows(&self) -> usize {
        self.tile_rows
    }

    /// Some tiles, and copies of what they need in `room`.
    ///
    /// # Safety
    /// The image is there, and the room has [`LineConv::copied`] bytes.
    pub(crate) unsafe fn list(
        &self,
        tiles: Range<usize>,
        last_step: usize,
        room: *mut u8,
    ) -> Vec<RowTile> {
        // SAFETY: as for this function.
        unsafe {
            match self.in_place {
                true => self.tiles_in_place(tiles, last_step, room),
                false => self.tiles_of_copy(tiles, room),
            }
        }
    }

    /// Shares tiles and panels of `columns` columns among threads: `part` is called with each.
    pub(crate) fn share(
        &self,
        exec: KernelContext<'_>,
        serial: bool,
        columns: usize,
        part: impl Fn(Range<usize>, Range<usize>) + Sync,
    ) {
        let threads = if serial { 1 } else { exec.pool.threads() };
        let tiles = self.tiles();
        let most = self.most_tiles();
        let width = 2 * COLUMNS;
        let panels = columns.div_ceil(width);
        if threads > 1 && tiles <= FEW_TILES && panels >= 2 * threads {
            let groups = 2 * threads;
            let start = |group: usize| (panels * group / groups * width).min(columns);
            exec.pool.run(groups, |group| part(0..tiles, start(group)..start(group + 1)));
            return;
        }
        let fewest = MIN_TILES.min(most);
        let pieces = WorkPieces { len: tiles, threads, most, fewest, unit: 2 };
        let body = |tiles: Range<usize>| part(tiles, 0..columns);
        if serial {
            let all = (0..pieces.count()).map(|i| pieces.get(i));
            all.filter(|piece| !piece.is_empty()).for_each(body);
        } else {
            pieces.run(exec.pool, body);
        }
    }

    /// The tiles in the image itself; those that would be read beyond it are copied to `room`.
    ///
    /// # Safety
    /// The image is there, and the room has [`LineConv::copied`] bytes.
    unsafe fn tiles_in_place(
        &self,
        tiles: Range<usize>,
        last_step: usize,
        room: *mut u8,
    ) -> Vec<RowTile> {
        let beyond = self.first_beyond(&tiles, last_step);
        let reach = self.reach(last_step);
        let at = |tile: usize| {
            let (start, (line, column)) = (self.start(tile), self.place(tile));
            let from = self.image.ptr().wrapping_add(start).cast_const();
            let a = match tile.checked_sub(beyond) {
                None => from,
                Some(number) => {
                    let to = room.wrapping_add(number * reach);
                    let left = self.len.saturating_sub(start).min(reach);
                    // SAFETY: so much is left of the image, and the room has it.
                    unsafe {
                        std::ptr::copy_nonoverlapping(from, to, left);
                        std::ptr::write_bytes(to.add(left), 0, reach - left);
                    }
                    to.cast_const()
                }
            };
            RowTile { a, row: line * self.out[1] + column, rows: self.rows(column) }
        };
        tiles.map(at).collect()
    }

    /// Copies the lines that the tiles see, and gives the tiles there.
    ///
    /// # Safety
    /// The image is there, and the room has [`LineConv::copied`] bytes.
    unsafe fn tiles_of_copy(&self, tiles: Range<usize>, room: *mut u8) -> Vec<RowTile> {
        let pitch = self.pitch();
        let p = self.params;
        let mut list = Vec::with_capacity(tiles.len());
        let mut to = room;
        for (image, first, lines) in self.parts(&tiles) {
            for line in 0..lines {
                let band = to.wrapping_add(line * p.stride[1] * pitch);
                let number = image * self.out[0] + first + line;
                for tile in number * self.tiles_per_line..(number + 1) * self.tiles_per_line {
                    if tiles.contains(&tile) {
                        let column = self.place(tile).1;
                        let a = band.wrapping_add(column * self.stride()).cast_const();
                        let row = number * self.out[1] + column;
                        list.push(RowTile { a, row, rows: self.rows(column) });
                    }
                }
            }
            let seen = self.lines_seen(lines);
            for line in 0..seen {
                let from = (first * p.stride[1] + line).wrapping_sub(p.pads_begin[1]);
                let from = (from < self.size[0]).then(|| image * self.size[0] + from);
                // SAFETY: the line is inside the image, and the room has the band.
                unsafe { self.copy_line(from, to.wrapping_add(line * pitch)) };
            }
            to = to.wrapping_add(seen * pitch);
        }
        list
    }

    /// Copies a line with its padding; one of padding alone where there is none.
    ///
    /// # Safety
    /// The image has the line, and `to` is valid for one.
    unsafe fn copy_line(&self, line: Option<usize>, to: *mut u8) {
        let pixel = self.runs.pixel;
        let before = self.params.pads_begin[2] * pixel;
        let all = self.pitch();
        let fill = self.fill ^ self.flip;
        // SAFETY: the caller vouches for the line and the room.
        unsafe {
            let Some(line) = line else {
                std::ptr::write_bytes(to, fill, all);
                return;
            };
            let len = (self.size[1] * pixel).min(all.saturating_sub(before));
            let before = before.min(all);
            let from = self.image.ptr().add(line * self.size[1] * pixel);
            std::ptr::write_bytes(to, fill, before);
            std::ptr::copy_nonoverlapping(from.cast_const(), to.add(before), len);
            if self.flip != 0 {
                let turned = std::slice::from_raw_parts_mut(to.add(before), len);
                turned.iter_mut().for_each(|byte| *byte ^= self.flip);
            }
            std::ptr::write_bytes(to.add(before + len), fill, all - before - len);
        }
    }
}
