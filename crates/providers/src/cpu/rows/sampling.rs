//! Operators that read images between their elements.

use galatea_graph::ops::vision::{GridSample, RegionCells, RoiAlign, SampleMode};
use galatea_graph::{ONNX_DOMAIN, OpError};
use galatea_kernels::KernelContext;
use galatea_kernels::moves::share_runs;
use galatea_kernels::sampling::{SampleTap, sample_planes};

use super::CONTRIB_DOMAIN;
use crate::cpu::{CpuKernel, CpuKernelRow, CpuNodeView, CpuStep, NodeShapes};

/// The family's rows.
pub(super) const ROWS: &[CpuKernelRow] = &[
    CpuKernelRow {
        name: "grid_sample-f32",
        domain: ONNX_DOMAIN,
        ops: &["GridSample"],
        supports: flat_image,
        build: |view| Ok(Box::new(*view.operator::<GridSample>()?)),
    },
    CpuKernelRow {
        name: "grid_sample-f32",
        domain: CONTRIB_DOMAIN,
        ops: &["GridSample"],
        supports: flat_image,
        build: |view| Ok(Box::new(*view.operator::<GridSample>()?)),
    },
    CpuKernelRow {
        name: "roi_align-f32",
        domain: ONNX_DOMAIN,
        ops: &["RoiAlign"],
        supports: |view| {
            view.floats(&[0, 1])?;
            match view.operator::<RoiAlign>()?.max {
                true => Err("the largest sample of a cell".into()),
                false => Ok(()),
            }
        },
        build: |view| Ok(Box::new(*view.operator::<RoiAlign>()?)),
    },
];

/// Refuses images of other types and ranks.
fn flat_image(view: &CpuNodeView<'_>) -> Result<(), String> {
    view.floats(&[0, 1])?;
    match view.rank(0)? {
        4 => Ok(()),
        rank => Err(format!("an image of {rank} axes, the kernel takes 4")),
    }
}

#[allow(clippy::cast_possible_truncation, reason = "a weight is computed in FP64 and kept in FP32")]
fn tap(place: Option<usize>, weight: f64) -> SampleTap {
    let place = place.and_then(|place| u32::try_from(place).ok());
    place.map_or(SampleTap::NOTHING, |place| SampleTap { place, weight: weight as f32 })
}

/// Fills the taps of one place: those of its rows times those of its columns.
fn fill(op: &GridSample, position: [f64; 2], size: [usize; 2], to: &mut [SampleTap]) {
    let [height, width] = size;
    let (columns, rows) = (op.taps(position[0], width), op.taps(position[1], height));
    let pairs = rows.iter().flat_map(|row| columns.iter().map(move |column| (row, column)));
    for (to, ((row, row_weight), (column, weight))) in to.iter_mut().zip(pairs) {
        let place = row.zip(column).map(|(row, column)| row * width + column);
        *to = tap(place, row_weight * weight);
    }
}

impl CpuKernel for GridSample {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let (&[batch, channels, height, width], &[_, rows, columns, 2]) =
            (shapes.input(0)?, shapes.input(1)?)
        else {
            return Err("an image and a grid of other ranks".into());
        };
        let (plane, places) = (height * width, rows * columns);
        if plane == 0 || channels == 0 || places == 0 || u32::try_from(plane).is_err() {
            return Err(format!("an image of {height} x {width}"));
        }
        let each = match self.mode {
            SampleMode::Nearest => 1,
            SampleMode::Linear => 4,
            SampleMode::Cubic => 16,
        };
        let op = *self;
        Ok(CpuStep::new(move |call| {
            let (x, grid) = (call.input::<f32>(0)?, call.input::<f32>(1)?);
            let mut y = call.output::<f32>(0)?;
            let y = y.slice();
            let mut taps = vec![SampleTap::default(); places * each];
            for image in 0..batch {
                let grid = &grid[image * places * 2..(image + 1) * places * 2];
                share_runs(call.exec, &mut taps, each, |range, taps| {
                    let grid = grid[range.start * 2..range.end * 2].as_chunks::<2>().0;
                    for (to, position) in taps.chunks_exact_mut(each).zip(grid) {
                        fill(&op, position.map(f64::from), [height, width], to);
                    }
                });
                let x = &x[image * channels * plane..(image + 1) * channels * plane];
                let y = &mut y[image * channels * places..(image + 1) * channels * places];
                sample_planes(call.exec, x, plane, &taps, each, y);
            }
            Ok(())
        }))
    }
}

/// Most taps of a region that are kept at a time; cells of larger ones are read one by one.
const REGION_TAPS: usize = 1 << 20;

/// Channels of an image.
struct SampledImage<'a> {
    x: &'a [f32],
    height: usize,
    width: usize,
}

impl SampledImage<'_> {
    /// Writes the means of all cells of a region.
    fn average(
        &self,
        exec: KernelContext<'_>,
        region: &RegionCells,
        output: [usize; 2],
        y: &mut [f32],
    ) {
        let [rows, columns] = output;
        let (each, cells, plane) = (region.taps(), rows * columns, self.height * self.width);
        if each == 0 {
            y.fill(0.0);
            return;
        }
        let of_cell = |cell: usize, taps: &mut Vec<SampleTap>| {
            let all = region.cell([cell / columns, cell % columns], [self.height, self.width]);
            taps.extend(all.map(|(place, weight)| tap(Some(place), weight)));
        };
        let mut taps = Vec::new();
        if each.saturating_mul(cells) <= REGION_TAPS {
            (0..cells).for_each(|cell| of_cell(cell, &mut taps));
            sample_planes(exec, self.x, plane, &taps, each, y);
            return;
        }
        let mut one = vec![0.0; y.len() / cells];
        for cell in 0..cells {
            taps.clear();
            of_cell(cell, &mut taps);
            sample_planes(exec, self.x, plane, &taps, each, &mut one);
            one.iter().enumerate().for_each(|(channel, mean)| y[channel * cells + cell] = *mean);
        }
    }
}

impl CpuKernel for RoiAlign {
    fn bind(&self, shapes: &NodeShapes) -> Result<CpuStep, String> {
        let (&[batch, channels, height, width], &[regions, 4]) =
            (shapes.input(0)?, shapes.input(1)?)
        else {
            return Err("an image and regions of other ranks".into());
        };
        let (plane, cells) = (height * width, self.output[0] * self.output[1]);
        if plane == 0 || channels == 0 || cells == 0 || u32::try_from(plane).is_err() {
            return Err(format!("an image of {height} x {width} in {cells} cells"));
        }
        if shapes.input(2)? != [regions] {
            return Err("not one image for each region".into());
        }
        let op = *self;
        Ok(CpuStep::new(move |call| {
            let (x, all) = (call.input::<f32>(0)?, call.input::<f32>(1)?);
            let images = call.input::<i64>(2)?;
            let mut y = call.output::<f32>(0)?;
            let y = y.slice().chunks_exact_mut(channels * cells);
            for ((y, region), &image) in y.zip(all.as_chunks::<4>().0).zip(images) {
                let image = usize::try_from(image).ok().filter(|&image| image < batch);
                let image = image.ok_or_else(|| OpError::new("a region of no image"))?;
                let region = op.cells(region.map(f64::from))?;
                let x = &x[image * channels * plane..(image + 1) * channels * plane];
                let image = SampledImage { x, height, width };
                image.average(call.exec, &region, op.output, y);
            }
            Ok(())
        }))
    }
}
