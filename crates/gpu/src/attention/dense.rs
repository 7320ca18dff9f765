//! `FusedAttention` over whole tensors: that of `ai.galatea`, and ONNX's where nothing of the past is given.

use galatea_graph::ops::contrib::MultiHeadAttention;
use galatea_graph::ops::{fused, transformer};
use galatea_runtime::Precision;
use galatea_runtime::tune::ConfigSpace;
use galatea_tensor::DataType;
use minijinja::{Value, context};

use super::flash::{CONFIGS as FLASH_CONFIGS, FlashConfig, KeyLayout};
use super::tiles::{self, CONFIGS as TILES_CONFIGS, TilesConfig};
use crate::choices::{KernelFamily, KernelQuestion, label, near, ways};
use crate::device::{GpuCapabilities, GpuDevice};
use crate::kernel::{
    DispatchStep, GpuKernel, GpuKernelRow, GpuNodeView, ShaderBinding, fold, param, wgsl_float,
};
use galatea_runtime::NodeShapes;

/// The fused one, over any storage order.
pub(super) const FUSED: GpuKernelRow = GpuKernelRow {
    name: "attention-tiles",
    domain: galatea_graph::GALATEA_DOMAIN,
    ops: &["Attention"],
    supports: |view| {
        view.operator::<fused::FusedAttention>()?;
        if (view.rank(0)?, view.rank(1)?, view.rank(2)?) != (4, 4, 4) {
            return Err("Q, K and V need four axes".into());
        }
        if view.has(3) && view.rank(3)? > 4 {
            return Err("a mask of more than four axes".into());
        }
        view.floats_throughout(&[0, 1, 2, 3])
    },
    build: |view| {
        Ok(Box::new(DenseAttentionKernel::of(
            view.operator::<fused::FusedAttention>()?.clone(),
            view,
        )))
    },
};

/// ONNX's.
pub(super) const ONNX: GpuKernelRow = GpuKernelRow {
    name: "onnx_attention-tiles",
    domain: "",
    ops: &["Attention"],
    supports: onnx,
    build: |view| {
        Ok(Box::new(DenseAttentionKernel::of(
            view.operator::<transformer::Attention>()?.clone(),
            view,
        )))
    },
};

/// Kernel row for the operator of `com.microsoft`, on projections that include their biases.
pub(super) const CONTRIB: GpuKernelRow = GpuKernelRow {
    name: "contrib_attention-tiles",
    domain: "com.microsoft",
    ops: &["MultiHeadAttention"],
    supports: contrib,
    build: |view| {
        Ok(Box::new(DenseAttentionKernel::of(*view.operator::<MultiHeadAttention>()?, view)))
    },
};

/// A way to compute attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenseAttentionMethod {
    /// By FP32, on any device.
    Tiles(TilesConfig),
    /// By cooperative matrices of FP16.
    Flash(FlashConfig),
}

/// Attention over whole tensors, as records of measurements name it.
const FAMILY: KernelFamily = KernelFamily::new(
    "attention",
    &[
        include_str!("flash.wgsl"),
        include_str!("loads.wgsl"),
        include_str!("params.wgsl"),
        include_str!("tiles.wgsl"),
    ],
);

impl DenseAttentionMethod {
    fn label(&self) -> String {
        match self {
            Self::Tiles(own) => format!("tiles({})", label(own)),
            Self::Flash(own) => format!("flash({})", label(own)),
        }
    }
}

/// A kernel that computes in the caller's way, for those who measure. The configuration must fit.
#[must_use]
pub fn whole(
    device: &GpuDevice,
    op: fused::FusedAttention,
    way: DenseAttentionMethod,
) -> Box<dyn GpuKernel> {
    let capabilities = device.capabilities().clone();
    Box::new(DenseAttentionKernel { op, capabilities, halves: true, way: Some(way) })
}

/// An operator and how it is computed.
struct DenseAttentionKernel<O> {
    op: O,
    capabilities: GpuCapabilities,
    /// True if operands may be rounded to FP16.
    halves: bool,
    /// The caller's; chosen by shapes otherwise.
    way: Option<DenseAttentionMethod>,
}

impl<O> DenseAttentionKernel<O> {
    fn of(op: O, view: &GpuNodeView<'_>) -> Self {
        let halves = view.precision == Precision::Fp16;
        Self { op, capabilities: view.device.capabilities().clone(), halves, way: None }
    }

    fn way(
        &self,
        dense: &DenseAttention,
        shapes: &NodeShapes,
        step: &mut DispatchStep,
    ) -> Result<DenseAttentionMethod, String> {
        if let Some(way) = self.way {
            return Ok(way);
        }
        let ([b, h, s, d], e) = (dense.q.lengths, dense.v.lengths[3]);
        let stored = [shapes.dtype(0)?, shapes.dtype(1)?, shapes.dtype(2)?];
        let halves = self.halves || stored.iter().all(|dtype| *dtype == DataType::Fp16);
        let others = || -> Vec<DenseAttentionMethod> {
            let flash = FLASH_CONFIGS.iter().filter(|own| {
                halves && own.rows <= 2 * s.max(8) && own.fits(&self.capabilities, [d, e])
            });
            let tiles = TILES_CONFIGS.iter().map(|own| DenseAttentionMethod::Tiles(*own));
            tiles.chain(flash.map(|own| DenseAttentionMethod::Flash(*own))).collect()
        };
        let found = step.choose(&FAMILY, || {
            let [q, k, v] = stored;
            let mask = shapes.dtype(3).map_or(String::new(), |dtype| format!(" mask {dtype}"));
            let seen = if dense.right.is_some() { " causal" } else { "" };
            let half = if halves { " halves" } else { "" };
            KernelQuestion {
                variant: format!("{q}·{k}·{v} {d}·{e}{mask}{seen}{half}"),
                lengths: vec![("n", b * h), ("queries", s), ("keys", dense.k.lengths[2])],
                space: ConfigSpace::new(vec![ways(
                    "way",
                    others().iter().map(DenseAttentionMethod::label),
                )]),
                tolerance: if halves { near::HALVES } else { near::SUMS },
            }
        });
        if let Some(other) = found.checked_sub(1).and_then(|at| others().get(at).copied()) {
            return Ok(other);
        }
        if halves
            && s >= FEW
            && let Some(config) = FlashConfig::choose(&self.capabilities, [d, e], s, b * h)
        {
            return Ok(DenseAttentionMethod::Flash(config));
        }
        Ok(DenseAttentionMethod::Tiles(TilesConfig::choose(s)))
    }

    fn dispatch(
        &self,
        dense: &DenseAttention,
        shapes: &NodeShapes,
        step: &mut DispatchStep,
    ) -> Result<(), String> {
        let way = self.way(dense, shapes, step)?;
        dense.dispatch(way, &self.capabilities, shapes, step)
    }
}

fn onnx(view: &GpuNodeView<'_>) -> Result<(), String> {
    let op: &transformer::Attention = view.operator()?;
    if (4..=6).any(|input| view.has(input)) {
        return Err("keys of the past, or a number of valid keys".into());
    }
    if (1..=3).any(|output| view.node.output(output).is_some()) {
        return Err("keys, values or scores are wanted".into());
    }
    for (input, heads) in [(0, op.q_num_heads), (1, op.kv_num_heads), (2, op.kv_num_heads)] {
        match (view.rank(input)?, heads) {
            (4, _) | (3, Some(1..)) => {}
            (rank, _) => return Err(format!("input {input} of rank {rank}")),
        }
    }
    if let Some(mask) = view.input(3) {
        if view.rank(3)? > 4 {
            return Err("a mask of more than four axes".into());
        }
        if mask.dtype != DataType::Bool && !view.is_float(mask.dtype) {
            return Err(format!("a mask of {}", mask.dtype));
        }
    }
    view.floats_throughout(&[0, 1, 2])
}

fn contrib(view: &GpuNodeView<'_>) -> Result<(), String> {
    view.operator::<MultiHeadAttention>()?;
    if [3, 4, 6, 7, 8, 9].into_iter().any(|input| view.has(input)) {
        return Err("a bias of the projections, a mask of keys, or keys of the past".into());
    }
    if (1..=2).any(|output| view.node.output(output).is_some()) {
        return Err("keys or values are wanted".into());
    }
    match (view.rank(0)?, view.rank(1)?, view.rank(2)?) {
        (3, 3, 3) | (3, 4, 4) => {}
        ranks => return Err(format!("inputs of ranks {ranks:?}")),
    }
    if view.has(SCORE_BIAS) && view.rank(SCORE_BIAS)? != 4 {
        return Err("a bias on the scores without four axes".into());
    }
    view.floats_throughout(&[0, 1, 2, SCORE_BIAS])
}

/// Input of `MultiHeadAttention` that is added to the scores.
const SCORE_BIAS: usize = 5;

/// Fewer queries than these leave matrices empty.
const FEW: usize = 9;

/// A value `[batch, heads, positions, elements]`: its lengths, and how far neighbours along each axis
/// are apart.
#[derive(Clone, Copy)]
struct HeadAxes {
    lengths: [usize; 4],
    steps: [usize; 4],
}

impl HeadAxes {
    fn plain(lengths: [usize; 4]) -> Self {
        let [_, h, s, d] = lengths;
        Self { lengths, steps: [h * s * d, s * d, d, 1] }
    }

    /// Stored in another order: axis `i` is the stored axis `perm[i]`.
    fn stored(shape: &[usize], perm: [usize; 4]) -> Result<Self, String> {
        let shape: [usize; 4] = shape.try_into().map_err(|_| format!("{shape:?} for four axes"))?;
        let Self { lengths, steps } = Self::plain(shape);
        Ok(Self { lengths: perm.map(|axis| lengths[axis]), steps: perm.map(|axis| steps[axis]) })
    }

    /// `[B, H, S, D]` or `[B, S, H · D]`.
    fn heads(shape: &[usize], heads: Option<usize>) -> Result<Self, String> {
        match (shape, heads) {
            (&[b, h, s, d], _) => Ok(Self::plain([b, h, s, d])),
            (&[b, s, hidden], Some(h)) if h > 0 && hidden % h == 0 => {
                let d = hidden / h;
                Ok(Self { lengths: [b, h, s, d], steps: [s * hidden, d, hidden, 1] })
            }
            _ => Err(format!("{shape:?} for {heads:?} heads")),
        }
    }
}

/// Parameters of an attention computation.
struct DenseAttention {
    q: HeadAxes,
    k: HeadAxes,
    v: HeadAxes,
    /// Steps of the result.
    y: [usize; 4],
    scale: f32,
    softcap: f32,
    /// The position of the first query among those of keys.
    offset: i64,
    left: Option<usize>,
    right: Option<usize>,
    /// Result of a query that sees no key.
    empty: f32,
    /// True if a mask may cover fewer keys; those beyond it are hidden.
    short_mask: bool,
    /// The input that is the mask.
    mask_input: usize,
}

/// A distance as a parameter; none is −1.
fn reach(length: Option<usize>) -> Result<u32, String> {
    let reach = length.map_or(Ok(-1), |length| i32::try_from(length.min(1 << 30)));
    Ok(reach.map_err(|_| "a window is too long".to_owned())?.cast_unsigned())
}

impl DenseAttention {
    /// The mask's steps, and how many keys it has.
    fn mask(&self, shapes: &NodeShapes) -> Result<([usize; 4], usize), String> {
        let ([b, h, s, _], keys) = (self.q.lengths, self.k.lengths[2]);
        if !shapes.has(self.mask_input) {
            return Ok(([0; 4], keys));
        }
        let shape = shapes.input(self.mask_input)?;
        let wrong = || format!("a mask of shape {shape:?} for scores {:?}", [b, h, s, keys]);
        let mut full = [1; 4];
        full[4_usize.checked_sub(shape.len()).ok_or_else(wrong)?..].copy_from_slice(shape);
        let mut steps = HeadAxes::plain(full).steps;
        for (axis, wanted) in [b, h, s, keys].into_iter().enumerate() {
            if full[axis] == 1 && (axis < 3 || !self.short_mask) {
                steps[axis] = 0;
            } else if full[axis] != wanted && !(axis == 3 && (self.short_mask || full[3] > keys)) {
                return Err(wrong());
            }
        }
        Ok((steps, if self.short_mask { full[3].min(keys) } else { keys }))
    }

    /// Checks that the lengths of keys, values and heads match.
    fn meets(&self) -> Result<(), String> {
        let ([b, h, _, d], [kb, kv_heads, t, kd]) = (self.q.lengths, self.k.lengths);
        let [vb, v_heads, vt, _] = self.v.lengths;
        let fits = kb == b && vb == b && kd == d && vt == t && v_heads == kv_heads;
        if fits && kv_heads != 0 && h % kv_heads == 0 {
            return Ok(());
        }
        Err(format!(
            "Q {:?}, K {:?} and V {:?} do not fit each other",
            self.q.lengths, self.k.lengths, self.v.lengths
        ))
    }

    fn dispatch(
        &self,
        way: DenseAttentionMethod,
        capabilities: &GpuCapabilities,
        shapes: &NodeShapes,
        step: &mut DispatchStep,
    ) -> Result<(), String> {
        self.meets()?;
        let ([b, h, s, d], [_, kv_heads, t, _]) = (self.q.lengths, self.k.lengths);
        let e = self.v.lengths[3];
        let (mask_steps, seen) = self.mask(shapes)?;
        let mask = match shapes.has(self.mask_input) {
            false => "",
            true if shapes.dtype(self.mask_input)? == DataType::Bool => "u32",
            true => wgsl_float(shapes.dtype(self.mask_input)?)?,
        };
        let stored = [shapes.dtype(0), shapes.dtype(1), shapes.dtype(2), shapes.output_dtype(0)];
        let (rows, parts, shader) = match way {
            DenseAttentionMethod::Tiles(config) => {
                let [q, k, v, y] = stored.map(|dtype| wgsl_float(dtype?));
                let own = context! { paged => false, q => q?, k => k?, v => v?, y => y?, mask };
                let (quads, parts) = tiles::columns(e);
                let shader = tiles::shader("attention-tiles".to_owned(), config, quads, own)?;
                (config.rows(), parts, shader)
            }
            DenseAttentionMethod::Flash(config) => {
                let own = self.quads(stored, mask)?;
                (config.rows, 1, config.shader(capabilities, [d, e], KeyLayout::Rows, own)?)
            }
        };
        let row_tiles = s.div_ceil(rows);
        let mut bindings: Vec<ShaderBinding> = [0, 1, 2].map(ShaderBinding::Input).into();
        bindings.push(ShaderBinding::Output(0));
        if shapes.has(self.mask_input) {
            bindings.push(ShaderBinding::Input(self.mask_input));
        }
        let steps = [self.q.steps, self.k.steps, self.v.steps, self.y, mask_steps];
        let lengths = [h, h / kv_heads, s, t.min(seen), d, e, row_tiles, parts];
        let all = steps.into_iter().flatten().chain(lengths).map(param);
        let mut params: Vec<u32> = all.collect::<Result<_, _>>()?;
        let offset = i32::try_from(self.offset).map_err(|_| "positions beyond 32 bits")?;
        params.extend([offset.cast_unsigned(), reach(self.left)?, reach(self.right)?]);
        let empty = if t == 0 { 0.0 } else { self.empty };
        params.extend([self.scale, self.softcap, empty].map(f32::to_bits));
        params.push(param(b)?);
        if e > 0 {
            step.dispatch(shader, bindings, params, fold(row_tiles * parts * h * b)?);
        }
        Ok(())
    }

    /// Returns the template context of the operands for the matrix kernels, with whether four elements of a row
    /// lie together.
    fn quads(&self, stored: [Result<DataType, String>; 4], mask: &str) -> Result<Value, String> {
        let steps = [self.q.steps, self.k.steps, self.v.steps, self.y];
        let quads = steps.map(|steps| steps[3] == 1 && steps[..3].iter().all(|step| step % 4 == 0));
        let mut words = Vec::new();
        for (dtype, quads) in stored.into_iter().zip(quads) {
            let name = wgsl_float(dtype?)?;
            words.push(if quads { format!("vec4<{name}>") } else { name.to_owned() });
        }
        let [q, k, v, y] = &words[..] else { return Err("four operands".into()) };
        let [q_quads, k_quads, v_quads, y_quads] = quads;
        Ok(context! { q, k, v, y, mask, q_quads, k_quads, v_quads, y_quads })
    }
}

fn position(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

impl GpuKernel for DenseAttentionKernel<fused::FusedAttention> {
    fn bind(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
        let op = &self.op;
        let q = HeadAxes::stored(shapes.input(0)?, op.q_perm)?;
        let k = HeadAxes::stored(shapes.input(1)?, op.k_perm)?;
        let v = HeadAxes::stored(shapes.input(2)?, op.v_perm)?;
        let [b, h, s, _] = q.lengths;
        let result = [b, h, s, v.lengths[3]];
        let plain = HeadAxes::plain(op.out_perm.map(|axis| result[axis])).steps;
        let mut y = [0; 4];
        for (at, axis) in op.out_perm.into_iter().enumerate() {
            y[axis] = plain[at];
        }
        let dense = DenseAttention {
            q,
            k,
            v,
            y,
            scale: op.scale,
            softcap: 0.0,
            offset: position(k.lengths[2]) - position(s),
            left: None,
            right: op.causal.then_some(0),
            empty: if op.masked_to_zero { 0.0 } else { f32::NAN },
            short_mask: false,
            mask_input: 3,
        };
        self.dispatch(&dense, shapes, step)
    }
}

impl GpuKernel for DenseAttentionKernel<transformer::Attention> {
    fn bind(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
        let op = &self.op;
        let q = HeadAxes::heads(shapes.input(0)?, op.q_num_heads)?;
        let k = HeadAxes::heads(shapes.input(1)?, op.kv_num_heads)?;
        let v = HeadAxes::heads(shapes.input(2)?, op.kv_num_heads)?;
        let [b, h, s, d] = q.lengths;
        let e = v.lengths[3];
        let packed = shapes.input(0)?.len() == 3;
        let y = if packed { [s * h * e, e, h * e, 1] } else { HeadAxes::plain([b, h, s, e]).steps };
        #[allow(clippy::cast_precision_loss, reason = "the width of a head is small")]
        let scale = op.scale.unwrap_or_else(|| 1.0 / (d as f32).sqrt());
        let causal = op.is_causal.then_some(0);
        let dense = DenseAttention {
            q,
            k,
            v,
            y,
            scale,
            softcap: op.softcap,
            offset: 0,
            left: op.left_window,
            right: causal.or(op.right_window),
            empty: 0.0,
            short_mask: true,
            mask_input: 3,
        };
        self.dispatch(&dense, shapes, step)
    }
}

impl GpuKernel for DenseAttentionKernel<MultiHeadAttention> {
    fn bind(&self, shapes: &NodeShapes, step: &mut DispatchStep) -> Result<(), String> {
        let heads = Some(self.op.num_heads);
        let q = HeadAxes::heads(shapes.input(0)?, heads)?;
        let k = HeadAxes::heads(shapes.input(1)?, heads)?;
        let v = HeadAxes::heads(shapes.input(2)?, heads)?;
        let [_, h, s, d] = q.lengths;
        let e = v.lengths[3];
        #[allow(clippy::cast_precision_loss, reason = "the width of a head is small")]
        let scale = self.op.scale.unwrap_or_else(|| 1.0 / (d as f32).sqrt());
        let dense = DenseAttention {
            q,
            k,
            v,
            y: [s * h * e, e, h * e, 1],
            scale,
            softcap: 0.0,
            offset: 0,
            left: None,
            right: self.op.unidirectional.then_some(0),
            empty: 0.0,
            short_mask: false,
            mask_input: SCORE_BIAS,
        };
        self.dispatch(&dense, shapes, step)
    }
}
