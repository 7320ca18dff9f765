//! Configurations of the kernel that computes single rows over blocks of cached keys.

use galatea_runtime::NodeShapes;
use minijinja::context;

use super::paged_operands::{KEYS, PagedRunLengths, PagedSizes, step_of, stored};
use crate::device::{GpuCapabilities, KernelShader};
use crate::kernel::wgsl_float;
use crate::template::render;

/// Configuration of the kernel for single rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagedConfig {
    /// Threads of a workgroup.
    pub threads: usize,
    /// Positions whose scores are computed at a time; at most as many as threads, where these do not shuffle.
    pub chunk: usize,
    /// Threads beside each other that share the elements of a key and add up by shuffles, where the device has them;
    /// 0 where threads add up in workgroup memory.
    pub shuffled: usize,
    /// The most query heads that share loads of keys; others have workgroups of their own.
    pub heads: usize,
    /// Vectors of values that a thread loads at a time.
    pub unrolled: usize,
    /// Fours of vectors of keys that a thread loads at a time where threads shuffle, as far as keys have them.
    pub key_unrolled: usize,
    /// Workgroups of a step among which positions are divided.
    pub workgroups: usize,
}

/// Configurations that a tuner may choose; the first that fits is the default.
pub const CONFIGS: &[PagedConfig] = &[
    PagedConfig::new(256, 512, 4, 8, 1024).shuffling(4, 4),
    PagedConfig::new(256, 256, 4, 8, 1024).shuffling(4, 4),
    PagedConfig::new(256, 256, 4, 4, 1024).shuffling(4, 1),
    PagedConfig::new(256, 512, 4, 8, 1024).shuffling(4, 2),
    PagedConfig::new(256, 256, 4, 4, 1024),
    PagedConfig::new(128, 128, 8, 4, 1024),
    PagedConfig::new(128, 256, 4, 8, 2048).shuffling(4, 4),
    PagedConfig::new(256, 1024, 4, 8, 1024).shuffling(4, 4),
    PagedConfig::new(256, 512, 4, 8, 1024).shuffling(8, 2),
    PagedConfig::new(256, 512, 4, 8, 2048).shuffling(4, 4),
    PagedConfig::new(256, 512, 8, 4, 1024).shuffling(4, 1),
    PagedConfig::new(128, 128, 4, 4, 2048).shuffling(4, 4),
    PagedConfig::new(128, 256, 8, 8, 2048).shuffling(8, 2),
    PagedConfig::new(256, 128, 4, 4, 1024),
    PagedConfig::new(128, 64, 8, 4, 1024),
    PagedConfig::new(64, 64, 8, 4, 2048),
    PagedConfig::new(128, 128, 8, 8, 2048),
    PagedConfig::new(128, 128, 8, 2, 512),
];

/// Threads that reduce the scores of one head.
const PER_HEAD: usize = 16;

/// The same where chunks are long.
const PER_LONG_HEAD: usize = 32;

impl PagedConfig {
    /// A configuration whose threads add up in workgroup memory.
    const fn new(
        threads: usize,
        chunk: usize,
        heads: usize,
        unrolled: usize,
        workgroups: usize,
    ) -> Self {
        Self { threads, chunk, shuffled: 0, heads, unrolled, key_unrolled: 1, workgroups }
    }

    /// The same configuration with threads that add up by shuffles.
    const fn shuffling(self, shuffled: usize, key_unrolled: usize) -> Self {
        Self { shuffled, key_unrolled, ..self }
    }

    /// Returns whether a device can run it for query heads in groups and keys of a length.
    #[must_use]
    pub fn fits(&self, capabilities: &GpuCapabilities, sizes: &PagedSizes) -> bool {
        let heads = self.heads_of(sizes.shared_heads);
        let threads = u32::try_from(self.threads).unwrap_or(u32::MAX);
        let columns = sizes.value_width.div_ceil(step_of(sizes.value_width));
        let partial = if self.shuffled > 0 { 1 } else { heads };
        let floats = heads * padded(sizes.key_width)
            + self.threads * partial * 4
            + heads * self.chunk
            + 2 * self.per_head() * heads
            + self.chunk
            + 3 * heads
            + 64;
        let least = capabilities.subgroup.map_or(0, |(least, _)| least);
        let scores = match self.shuffled {
            0 => self.chunk <= self.threads,
            lanes => lanes.is_power_of_two() && u32::try_from(lanes).is_ok_and(|n| n <= least),
        };
        threads <= capabilities.workgroup_threads
            && scores
            && heads * self.per_head() <= self.threads
            && columns <= self.threads
            && floats * 4
                <= usize::try_from(capabilities.workgroup_bytes).unwrap_or(0).min(32 << 10)
    }

    /// Threads that share the elements of a key, where each loads so many positions.
    fn slices(&self, positions: usize) -> usize {
        match self.shuffled {
            0 => self.threads / (self.chunk / positions),
            lanes => lanes,
        }
    }

    /// Fours of vectors of keys at a time: no more than the threads of a key have of it, with what it is padded by.
    fn key_unrolled(&self, width: usize) -> usize {
        let fours = padded(width) / 4 / self.shuffled.max(1);
        (1..=self.key_unrolled.max(1)).rev().find(|n| fours.is_multiple_of(*n)).unwrap_or(1)
    }

    fn per_head(&self) -> usize {
        if self.shuffled > 0 { PER_LONG_HEAD } else { PER_HEAD }
    }

    /// The heads of a workgroup: parts of equal size, as far as that goes.
    pub(super) fn heads_of(&self, shared_heads: usize) -> usize {
        shared_heads.div_ceil(shared_heads.div_ceil(self.heads.max(1)))
    }

    /// The shader for rows by themselves. Results are `direct` where positions have no parts, and `mixed` where only
    /// sequences with few rows count.
    pub(super) fn shader(
        &self,
        shapes: &NodeShapes,
        run: &PagedRunLengths,
        direct: bool,
        mixed: bool,
    ) -> Result<KernelShader, String> {
        let cache = stored(shapes.dtype(KEYS)?)?;
        let PagedSizes { shared_heads, key_width, value_width } = run.sizes;
        let key_step = step_of(run.block);
        let value_step = step_of(value_width);
        let vector = |step: usize, of: &str| {
            if step == 4 { format!("vec4<{of}>") } else { of.to_owned() }
        };
        let slices = self.slices(key_step);
        let groups = self.threads / slices;
        let y = vector(value_step, wgsl_float(shapes.output_dtype(0)?)?);
        let column = vector(value_step, "f32");
        let source = render(
            include_str!("paged_rows.wgsl"),
            context!(
                q => wgsl_float(shapes.dtype(0)?)?,
                y,
                column,
                cache => cache.name,
                key_word => cache.words[usize::from(key_step == 1)],
                value_word => cache.words[usize::from(value_step == 1)],
                score => vector(key_step, "f32"),
                key_quads => key_step == 4,
                value_quads => value_step == 4,
                key_step,
                value_step,
                direct,
                mixed,
                threads => self.threads,
                chunk => self.chunk,
                heads => self.heads_of(shared_heads),
                groups,
                slices,
                shuffled => self.shuffled > 0,
                per_head => self.per_head(),
                width => padded(key_width),
                unrolled => self.unrolled,
                key_unrolled => self.key_unrolled(key_width),
            ),
        )?;
        Ok(KernelShader::new(format!("paged_attention-{}-rows", cache.name), source))
    }
}

/// The best of the configurations that fit.
///
/// # Errors
/// Fails when none fits.
pub(super) fn choose(
    capabilities: &GpuCapabilities,
    sizes: &PagedSizes,
) -> Result<PagedConfig, String> {
    let fitting = CONFIGS.iter().find(|config| config.fits(capabilities, sizes));
    // Fewer heads take less of what threads share.
    let fewer = || {
        let plain = PagedConfig::new(128, 128, 8, 4, 1024);
        let halves = [4, 2, 1].map(|heads| PagedConfig { heads, ..plain });
        let wide = PagedConfig { threads: 256, heads: 1, ..plain };
        halves.into_iter().chain([wide]).find(|config| config.fits(capabilities, sizes))
    };
    fitting.copied().or_else(fewer).ok_or_else(|| format!("{sizes:?} are beyond the kernel"))
}

/// The room for a query.
fn padded(width: usize) -> usize {
    width.next_multiple_of(64)
}
