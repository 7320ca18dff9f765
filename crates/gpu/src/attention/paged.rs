//! `PagedAttention`: new keys and values go to the blocks of their sequences, then rows attend over them.

use galatea_graph::Dim;
use galatea_graph::ops::fused::PagedAttention;
use galatea_runtime::Precision;
use galatea_runtime::tune::ConfigSpace;
use galatea_tensor::{DataType, Tensor};
use minijinja::context;

use super::paged_config::{CONFIGS, PagedConfig, choose};
use super::paged_operands::{
    BLOCKS, KEY_SCALES, KEYS, LENGTHS, PagedAttentionNode, PagedRunLengths, PagedSizes, STARTS,
    VALUE_SCALES, VALUES, step_of, stored,
};
use super::paged_tiles::{AttentionTile, sensible, tiles};
use crate::choices::{KernelFamily, KernelQuestion, label, near, ways};
use crate::device::{GpuDevice, KernelShader};
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

/// Parts of positions, at most.
const MAX_SPLITS: usize = 256;

/// Keys longer than this have no kernel.
const MAX_WIDTH: usize = 512;

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
struct PagedAttentionKernel {
    node: PagedAttentionNode,
    config: PagedConfig,
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
    let capabilities = view.device.capabilities().clone();
    let node = PagedAttentionNode { op: *op, capabilities, halves };
    Ok(Box::new(PagedAttentionKernel { node, config }))
}

/// A kernel with a configuration of the caller's, for those who measure. The configuration must fit.
#[must_use]
pub fn paged(device: &GpuDevice, op: PagedAttention, config: PagedConfig) -> Box<dyn GpuKernel> {
    let capabilities = device.capabilities().clone();
    let node = PagedAttentionNode { op, capabilities, halves: false };
    Box::new(PagedAttentionKernel { node, config })
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
        let native = cache.name == "f16" && self.node.capabilities.f16;
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
        let heads = self.node.op.kv_num_heads;
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
            if longest * 8 >= run.few() { sensible(&self.node, shapes, run)? } else { Vec::new() };
        let rows = CONFIGS.iter().filter(|own| {
            longest <= run.few() * 8 && own.fits(&self.node.capabilities, &run.sizes)
        });
        let others: Vec<PagedAttentionMethod> = rows
            .map(|own| PagedAttentionMethod::Rows(*own))
            .chain(tiles.into_iter().map(PagedAttentionMethod::Tiles))
            .collect();
        let found = step.choose(&FAMILY, || {
            let PagedSizes { shared_heads, key_width, value_width } = run.sizes;
            let window = if self.node.op.window > 0 { " window" } else { "" };
            let halves = if self.node.halves { " halves" } else { "" };
            KernelQuestion {
                variant: format!("{q} {cache} {key_width}·{value_width}{window}{halves}"),
                lengths: vec![
                    ("rows", run.rows),
                    ("sequences", run.sequences),
                    ("positions", run.most * run.block),
                    ("kv", self.node.op.kv_num_heads),
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
        if self.node.op.window > 0 {
            positions = positions.min(self.node.op.window + chunk);
        }
        let own = (self.node.op.kv_num_heads * groups).max(1);
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
        let vectors = places * self.node.op.num_heads;
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
        let kv_heads = self.node.op.kv_num_heads;
        let lengths = [run.rows, run.sequences, run.most, kv_heads, key_width, value_width];
        let more = [
            run.block,
            run.count,
            splits,
            span,
            self.node.op.window,
            shared_heads,
            parts,
            few.unwrap_or(0),
        ];
        let all = lengths.into_iter().chain(more).map(param);
        let mut params: Vec<u32> = all.collect::<Result<_, _>>()?;
        params.extend([self.node.scale(key_width).to_bits(), self.node.op.softcap.to_bits()]);
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
        let count = partial.places * self.node.op.num_heads * columns;
        let mut params = vec![param(count)?, param(columns)?, param(partial.splits)?];
        if let Some(few) = partial.few {
            bindings.push(ShaderBinding::Input(STARTS));
            params.extend([param(few)?, param(self.node.op.num_heads)?]);
        }
        step.dispatch(shader, bindings, params, fold(count.div_ceil(64))?);
        Ok(())
    }
}

impl GpuKernel for PagedAttentionKernel {
    fn bind(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
        let run = PagedRunLengths::new(&self.node.op, shapes)?;
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
                tiles(&self.node, shapes, &run, 0, Some(tile), step)
            }
            _ if run.longest() <= few => self.rows(shapes, &run, usual, None, step),
            _ if run.sequences == 1 => tiles(&self.node, shapes, &run, 0, None, step),
            // Of several sequences some may have one row and others many, which only the run tells.
            method => {
                self.rows(shapes, &run, usual, Some(few), step)?;
                let tile = if let Some(PagedAttentionMethod::Tiles(tile)) = method {
                    Some(tile)
                } else {
                    None
                };
                tiles(&self.node, shapes, &run, few, tile, step)
            }
        }
    }

    fn typical(&self, input: usize, shapes: &NodeShapes) -> Option<Tensor> {
        let run = PagedRunLengths::new(&self.node.op, shapes).ok()?;
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
