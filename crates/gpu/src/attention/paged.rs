//! `PagedAttention`: new keys and values go to the blocks of their sequences, then rows attend over them.

use galatea_graph::Dim;
use galatea_graph::ops::fused::PagedAttention;
use galatea_runtime::Precision;
use galatea_runtime::tune::ConfigSpace;
use galatea_tensor::{DataType, Tensor};
use minijinja::context;

use super::paged_tiles::{AttentionTile, sensible, tiles};
use crate::choices::{KernelFamily, KernelQuestion, label, near, ways};
use crate::device::{GpuCapabilities, GpuDevice, KernelShader};
use crate::kernel::{
    DispatchStep, GpuKernel, GpuKernelRow, GpuNodeView, ShaderBinding, fold, param, wgsl_float,
};
use crate::template::render;
use galatea_runtime::{NodeShapes, ValueShape};

pub(super) const ROW: GpuKernelRow = GpuKernelRow {
    name: "paged_attention",
    domain: galatea_graph::GALATEA_DOMAIN,
    ops: &["PagedAttention"],
    supports,
    build,
};

/// Positions of the inputs.
pub(super) const KEYS: usize = 3;
pub(super) const VALUES: usize = 4;
pub(super) const STARTS: usize = 5;
pub(super) const LENGTHS: usize = 6;
pub(super) const BLOCKS: usize = 7;
pub(super) const KEY_SCALES: usize = 8;
pub(super) const VALUE_SCALES: usize = 9;

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

/// Queries of a sequence from which on tiles of them are faster than rows by themselves.
const ROWS_FOR_TILES: usize = 16;

/// Threads that reduce the scores of one head.
const PER_HEAD: usize = 16;

/// The same where chunks are long.
const PER_LONG_HEAD: usize = 32;

/// Parts of positions, at most.
const MAX_SPLITS: usize = 256;

/// Keys longer than this have no kernel.
const MAX_WIDTH: usize = 512;

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
    fn heads_of(&self, shared_heads: usize) -> usize {
        shared_heads.div_ceil(shared_heads.div_ceil(self.heads.max(1)))
    }

    /// The shader for rows by themselves. Results are `direct` where positions have no parts, and `mixed` where only
    /// sequences with few rows count.
    fn shader(
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

/// Lengths that every run has.
#[derive(Clone, Copy, Debug)]
pub struct PagedSizes {
    /// Query heads of a key head.
    pub shared_heads: usize,
    /// Elements of a key.
    pub key_width: usize,
    /// Elements of a value.
    pub value_width: usize,
}

/// The best of the configurations that fit.
///
/// # Errors
/// Fails when none fits.
fn choose(capabilities: &GpuCapabilities, sizes: &PagedSizes) -> Result<PagedConfig, String> {
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

/// Elements that are loaded at once of vectors of a length.
pub(super) fn step_of(length: usize) -> usize {
    if length.is_multiple_of(4) { 4 } else { 1 }
}

/// The room for a query.
fn padded(width: usize) -> usize {
    width.next_multiple_of(64)
}

/// Attention over caches, as records of measurements name it.
const FAMILY: KernelFamily = KernelFamily::new(
    "paged_attention",
    &[
        include_str!("flash.wgsl"),
        include_str!("loads.wgsl"),
        include_str!("merge.wgsl"),
        include_str!("paged_rows.wgsl"),
        include_str!("params.wgsl"),
        include_str!("tiles.wgsl"),
    ],
);

/// A way to compute rows over caches.
#[derive(Clone, Copy, Debug)]
enum PagedAttentionMethod {
    /// Every row by itself.
    Rows(PagedConfig),
    /// Tiles of the rows of each sequence; of several sequences those with few rows by themselves.
    Tiles(AttentionTile),
}

impl PagedAttentionMethod {
    fn label(&self) -> String {
        match self {
            Self::Rows(own) => format!("rows({})", label(own)),
            Self::Tiles(own) => own.label(),
        }
    }
}

/// Storage format of a cache, by its type.
pub(super) struct CacheElement {
    pub(super) name: &'static str,
    /// Elements of a word, their bits and a mask of these.
    per_word: u32,
    bits: u32,
    mask: u32,
    /// WGSL types as which four elements and one are read.
    pub(super) words: [&'static str; 2],
}

pub(super) fn stored(dtype: DataType) -> Result<CacheElement, String> {
    let (name, per_word, words) = match dtype {
        DataType::Fp32 => ("f32", 1, ["vec4<f32>", "f32"]),
        DataType::Fp16 => ("f16", 2, ["vec2<u32>", "u32"]),
        DataType::Bf16 => ("bf16", 2, ["vec2<u32>", "u32"]),
        DataType::Int8 => ("i8", 4, ["u32", "u32"]),
        other => return Err(format!("a cache of {other}")),
    };
    let bits = 32 / per_word;
    let mask = if bits == 32 { u32::MAX } else { (1 << bits) - 1 };
    Ok(CacheElement { name, per_word, bits, mask, words })
}

/// Results of parts of the positions, which a dispatch of its own puts together.
struct PartialAttention {
    /// Scratch with the sums of values.
    sums: usize,
    /// Scratch with the weights of the sums.
    weights: usize,
    /// Number of parts.
    splits: usize,
    /// Places for rows in the scratches.
    places: usize,
    /// Rows of a sequence at most, where the places belong to sequences.
    few: Option<usize>,
}

impl PartialAttention {
    fn bindings(&self) -> [ShaderBinding; 2] {
        [self.sums, self.weights].map(ShaderBinding::Scratch)
    }
}

/// The operator and how it is computed.
pub(super) struct PagedAttentionKernel {
    pub(super) op: PagedAttention,
    config: PagedConfig,
    pub(super) capabilities: GpuCapabilities,
    /// True if operands may be rounded to FP16.
    pub(super) halves: bool,
}

/// The last two lengths of a cache.
fn lengths<'a>(view: &GpuNodeView<'a>, input: usize) -> Option<[&'a Dim; 2]> {
    let shape = view.input(input)?.shape.as_ref()?;
    match shape.as_slice() {
        [_, _, one, two] => Some([one, two]),
        _ => None,
    }
}

fn sizes(view: &GpuNodeView<'_>, op: &PagedAttention) -> Result<PagedSizes, String> {
    let width = |input: usize, axis: usize| {
        let dim = lengths(view, input).and_then(|dims| dims[axis].known());
        dim.ok_or_else(|| "the length of keys or values is not known".to_owned())
    };
    let shared_heads = op.num_heads / op.kv_num_heads;
    Ok(PagedSizes { shared_heads, key_width: width(KEYS, 0)?, value_width: width(VALUES, 1)? })
}

fn supports(view: &GpuNodeView<'_>) -> Result<(), String> {
    let op: &PagedAttention = view.operator()?;
    view.floats_throughout(&[0, 1, 2])?;
    let cache = view.input(KEYS).ok_or("nothing is known of the caches")?.dtype;
    stored(cache)?;
    let bytes = cache == DataType::Int8;
    let last = if bytes { 4 } else { 2 };
    if (1..=last).any(|output| view.node.output(output).is_none()) {
        return Err("an output of the caches is not wanted".into());
    }
    if bytes && !(view.has(KEY_SCALES) && view.has(VALUE_SCALES)) {
        return Err("caches of bytes need scales".into());
    }
    let sizes = sizes(view, op)?;
    if sizes.key_width == 0 || sizes.value_width == 0 || sizes.key_width > MAX_WIDTH {
        return Err(format!("keys of {} elements", sizes.key_width));
    }
    choose(view.device.capabilities(), &sizes).map(|_| ())
}

fn build(view: &GpuNodeView<'_>) -> Result<Box<dyn GpuKernel>, String> {
    let op: &PagedAttention = view.operator()?;
    let config = choose(view.device.capabilities(), &sizes(view, op)?)?;
    let halves = view.precision == Precision::Fp16;
    Ok(Box::new(PagedAttentionKernel {
        op: *op,
        config,
        capabilities: view.device.capabilities().clone(),
        halves,
    }))
}

/// A kernel with a configuration of the caller's, for those who measure. The configuration must fit.
#[must_use]
pub fn paged(device: &GpuDevice, op: PagedAttention, config: PagedConfig) -> Box<dyn GpuKernel> {
    Box::new(PagedAttentionKernel {
        op,
        config,
        capabilities: device.capabilities().clone(),
        halves: false,
    })
}

/// The lengths of a run.
pub(super) struct PagedRunLengths {
    pub(super) rows: usize,
    pub(super) sequences: usize,
    pub(super) most: usize,
    pub(super) count: usize,
    pub(super) block: usize,
    pub(super) sizes: PagedSizes,
}

impl PagedRunLengths {
    /// The most rows of a sequence that are computed by themselves; with more, tiles share loads of keys.
    fn few(&self) -> usize {
        ((ROWS_FOR_TILES - 1) / self.sizes.shared_heads).max(1)
    }

    /// The most rows that a sequence may have.
    pub(super) fn longest(&self) -> usize {
        (self.rows + 1).saturating_sub(self.sequences.max(1))
    }
}

impl PagedRunLengths {
    fn new(op: &PagedAttention, shapes: &NodeShapes) -> Result<Self, String> {
        let (keys, values) = (shapes.input(KEYS)?, shapes.input(VALUES)?);
        let (&[count, heads, key_width, block], &[n, h, s, value_width]) = (keys, values) else {
            return Err(format!("caches of shapes {keys:?} and {values:?}"));
        };
        if [n, h, s] != [count, heads, block] || heads != op.kv_num_heads || block == 0 {
            return Err(format!("caches {keys:?} and {values:?} for {} heads", op.kv_num_heads));
        }
        let &[rows, columns] = shapes.input(0)? else { return Err("Q has two axes".into()) };
        let own = [[rows, heads * key_width], [rows, heads * value_width]];
        if columns != op.num_heads * key_width || [shapes.input(1)?, shapes.input(2)?] != own {
            return Err("Q, K and V do not fit the caches".into());
        }
        let &[sequences, most] = shapes.input(BLOCKS)? else {
            return Err("blocks have two axes".into());
        };
        let borders = shapes.input(STARTS)? == [sequences + 1];
        if !borders || shapes.input(LENGTHS)? != [sequences] {
            return Err(format!("starts and lengths for {sequences} sequences"));
        }
        if shapes.dtype(KEYS)? == DataType::Int8 {
            let scales = [count, heads, block];
            if shapes.input(KEY_SCALES)? != scales || shapes.input(VALUE_SCALES)? != scales {
                return Err(format!("scales of another shape than {scales:?}"));
            }
        }
        let shared_heads = op.num_heads / op.kv_num_heads;
        let sizes = PagedSizes { shared_heads, key_width, value_width };
        Ok(Self { rows, sequences, most, count, block, sizes })
    }
}

impl PagedAttentionKernel {
    /// Writes the rows' keys and values.
    fn write(
        &self,
        shapes: &NodeShapes,
        run: &PagedRunLengths,
        step: &mut DispatchStep,
    ) -> Result<(), String> {
        let cache = stored(shapes.dtype(KEYS)?)?;
        let native = cache.name == "f16" && self.capabilities.f16;
        let stored = match cache.name {
            "f32" => "f32",
            _ if native => "f16",
            _ => "atomic<u32>",
        };
        let source = render(
            include_str!("paged_write.wgsl"),
            context!(
                k => wgsl_float(shapes.dtype(1)?)?,
                v => wgsl_float(shapes.dtype(2)?)?,
                cache => cache.name,
                per_word => cache.per_word,
                bits => cache.bits,
                mask => cache.mask,
                native,
                stored,
            ),
        )?;
        let mut bindings: Vec<ShaderBinding> =
            [1, 2, STARTS, LENGTHS, BLOCKS].map(ShaderBinding::Input).into();
        bindings.extend([ShaderBinding::Output(1), ShaderBinding::Output(2)]);
        if cache.name == "i8" {
            bindings.extend([ShaderBinding::Output(3), ShaderBinding::Output(4)]);
        }
        let heads = self.op.kv_num_heads;
        let PagedSizes { key_width, value_width, .. } = run.sizes;
        let lengths = [
            run.rows,
            run.sequences,
            run.most,
            heads,
            key_width,
            value_width,
            run.block,
            run.count,
        ];
        let params = lengths.into_iter().map(param).collect::<Result<_, _>>()?;
        let shader = KernelShader::new(format!("paged_attention-{}-write", cache.name), source);
        step.dispatch(shader, bindings, params, fold(run.rows * heads)?);
        Ok(())
    }

    /// The way that was measured the fastest for such a run, where there is a record.
    fn way(
        &self,
        shapes: &NodeShapes,
        run: &PagedRunLengths,
        step: &mut DispatchStep,
    ) -> Result<Option<PagedAttentionMethod>, String> {
        let longest = run.longest();
        let (q, cache) = (shapes.dtype(0)?, shapes.dtype(KEYS)?);
        let tiles =
            if longest * 8 >= run.few() { sensible(self, shapes, run)? } else { Vec::new() };
        let rows = CONFIGS
            .iter()
            .filter(|own| longest <= run.few() * 8 && own.fits(&self.capabilities, &run.sizes));
        let others: Vec<PagedAttentionMethod> = rows
            .map(|own| PagedAttentionMethod::Rows(*own))
            .chain(tiles.into_iter().map(PagedAttentionMethod::Tiles))
            .collect();
        let found = step.choose(&FAMILY, || {
            let PagedSizes { shared_heads, key_width, value_width } = run.sizes;
            let window = if self.op.window > 0 { " window" } else { "" };
            let halves = if self.halves { " halves" } else { "" };
            KernelQuestion {
                variant: format!("{q} {cache} {key_width}·{value_width}{window}{halves}"),
                lengths: vec![
                    ("rows", run.rows),
                    ("sequences", run.sequences),
                    ("positions", run.most * run.block),
                    ("kv", self.op.kv_num_heads),
                    ("shared", shared_heads),
                ],
                space: ConfigSpace::new(vec![ways(
                    "way",
                    others.iter().map(PagedAttentionMethod::label),
                )]),
                tolerance: near::HALVES,
            }
        });
        Ok(found.checked_sub(1).and_then(|at| others.get(at).copied()))
    }

    /// Positions of a part, and how many parts there are.
    fn split(&self, config: PagedConfig, run: &PagedRunLengths, groups: usize) -> (usize, usize) {
        let chunk = config.chunk;
        let mut positions = run.most * run.block;
        if self.op.window > 0 {
            positions = positions.min(self.op.window + chunk);
        }
        let own = (self.op.kv_num_heads * groups).max(1);
        let wanted = config.workgroups.div_ceil(own).clamp(1, MAX_SPLITS);
        let span = positions.div_ceil(wanted).max(1).next_multiple_of(chunk);
        (span, positions.div_ceil(span).max(1))
    }

    /// Every row by itself; of sequences with more rows than `few` none, where that is given.
    fn rows(
        &self,
        shapes: &NodeShapes,
        run: &PagedRunLengths,
        config: PagedConfig,
        few: Option<usize>,
        step: &mut DispatchStep,
    ) -> Result<(), String> {
        let cache = stored(shapes.dtype(KEYS)?)?;
        let PagedSizes { shared_heads, key_width, value_width } = run.sizes;
        let heads = config.heads_of(shared_heads);
        let parts = shared_heads.div_ceil(heads);
        // Places for rows: each has one, or each sequence has some, which may stay empty.
        let (places, busy) = match few {
            None => (run.rows, run.rows),
            Some(few) => (run.sequences * few, run.sequences),
        };
        let (span, splits) = self.split(config, run, busy * parts);
        let direct = splits == 1;
        let mut bindings =
            vec![ShaderBinding::Input(0), ShaderBinding::Output(1), ShaderBinding::Output(2)];
        bindings.extend([STARTS, LENGTHS, BLOCKS].map(ShaderBinding::Input));
        let vectors = places * self.op.num_heads;
        let bytes = |floats: usize| (vectors * splits * floats * 4) as u64;
        let partial = (!direct).then(|| PartialAttention {
            sums: step.scratch(bytes(value_width)),
            weights: step.scratch(bytes(2)),
            splits,
            places,
            few,
        });
        match &partial {
            None => bindings.push(ShaderBinding::Output(0)),
            Some(partial) => bindings.extend(partial.bindings()),
        }
        if cache.name == "i8" {
            bindings.extend([ShaderBinding::Output(3), ShaderBinding::Output(4)]);
        }
        let kv_heads = self.op.kv_num_heads;
        let lengths = [run.rows, run.sequences, run.most, kv_heads, key_width, value_width];
        let more = [
            run.block,
            run.count,
            splits,
            span,
            self.op.window,
            shared_heads,
            parts,
            few.unwrap_or(0),
        ];
        let all = lengths.into_iter().chain(more).map(param);
        let mut params: Vec<u32> = all.collect::<Result<_, _>>()?;
        params.extend([self.scale(key_width).to_bits(), self.op.softcap.to_bits()]);
        let shader = config.shader(shapes, run, direct, few.is_some())?;
        step.dispatch(shader, bindings, params, fold(splits * parts * kv_heads * places)?);
        if let Some(partial) = partial {
            self.merge(shapes, run, &partial, step)?;
        }
        Ok(())
    }

    /// Puts the parts of positions together.
    fn merge(
        &self,
        shapes: &NodeShapes,
        run: &PagedRunLengths,
        partial: &PartialAttention,
        step: &mut DispatchStep,
    ) -> Result<(), String> {
        let value_width = run.sizes.value_width;
        let value_step = step_of(value_width);
        let vector = |of: &str| if value_step == 4 { format!("vec4<{of}>") } else { of.to_owned() };
        let y = vector(wgsl_float(shapes.output_dtype(0)?)?);
        let context = context!(column => vector("f32"), y, mixed => partial.few.is_some());
        let shader = KernelShader::new(
            "paged_attention-merge",
            render(include_str!("merge.wgsl"), context)?,
        );
        let mut bindings = Vec::from(partial.bindings());
        bindings.push(ShaderBinding::Output(0));
        let columns = value_width / value_step;
        let count = partial.places * self.op.num_heads * columns;
        let mut params = vec![param(count)?, param(columns)?, param(partial.splits)?];
        if let Some(few) = partial.few {
            bindings.push(ShaderBinding::Input(STARTS));
            params.extend([param(few)?, param(self.op.num_heads)?]);
        }
        step.dispatch(shader, bindings, params, fold(count.div_ceil(64))?);
        Ok(())
    }

    #[allow(clippy::cast_precision_loss, reason = "the length of a key is small")]
    pub(super) fn scale(&self, key_width: usize) -> f32 {
        self.op.scale.unwrap_or_else(|| 1.0 / (key_width as f32).sqrt())
    }
}

impl GpuKernel for PagedAttentionKernel {
    fn bind(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
        let run = PagedRunLengths::new(&self.op, shapes)?;
        step.over(KEYS, 1);
        step.over(VALUES, 2);
        if shapes.dtype(KEYS)? == DataType::Int8 {
            step.over(KEY_SCALES, 3);
            step.over(VALUE_SCALES, 4);
        }
        if run.count == 0 || run.most == 0 {
            return Ok(());
        }
        self.write(shapes, &run, step)?;
        let usual = self.config;
        let few = run.few();
        match self.way(shapes, &run, step)? {
            Some(PagedAttentionMethod::Rows(config)) => self.rows(shapes, &run, config, None, step),
            Some(PagedAttentionMethod::Tiles(tile))
                if run.sequences == 1 || run.longest() <= few =>
            {
                tiles(self, shapes, &run, 0, Some(tile), step)
            }
            _ if run.longest() <= few => self.rows(shapes, &run, usual, None, step),
            _ if run.sequences == 1 => tiles(self, shapes, &run, 0, None, step),
            // Of several sequences some may have one row and others many, which only the run tells.
            method => {
                self.rows(shapes, &run, usual, Some(few), step)?;
                let tile = if let Some(PagedAttentionMethod::Tiles(tile)) = method {
                    Some(tile)
                } else {
                    None
                };
                tiles(self, shapes, &run, few, tile, step)
            }
        }
    }

    fn typical(&self, input: usize, shapes: &NodeShapes) -> Option<Tensor> {
        let run = PagedRunLengths::new(&self.op, shapes).ok()?;
        let (sequences, rows) = (run.sequences, run.rows);
        let int = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
        // Sequences have blocks of their own, neighbours of which are no neighbours in memory.
        let own = run.most.min(run.count / sequences.max(1));
        let number = |at: usize| match input {
            STARTS => int(at * rows / sequences.max(1)),
            LENGTHS => int((own * run.block).max(rows.div_ceil(sequences.max(1)))),
            _ => int(at % run.most.max(1) % own.max(1) * sequences + at / run.most.max(1)),
        };
        let ValueShape { dtype, shape } = shapes.inputs.get(input)?.as_ref()?;
        let count = shape.iter().product::<usize>();
        let wanted = matches!(input, STARTS | LENGTHS | BLOCKS) && *dtype == DataType::Int64;
        wanted.then(|| Tensor::from_vec(shape, (0..count).map(number).collect::<Vec<i64>>()))?.ok()
    }
}
