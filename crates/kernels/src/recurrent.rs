//! Gated recurrent units and the simple recurrent network: all steps of one or both directions.
//!
//! The input's part of all gates is one product before the steps; each step is a product with the state, and the
//! functions of the cells.
//!
//! Source: Cho et al., *Learning Phrase Representations using RNN Encoder-Decoder* (2014); the order of gates is
//! ONNX's: update, reset, hidden.

use crate::gemm::{PackedB, check_matrix, gemm};
use crate::isa::{IsaKernel, Simd};
use crate::memory::DisjointSlice;
use crate::{GemmEpilogue, KernelContext, math};

/// Kind of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatedCell {
    /// `h = tanh(x + r)`.
    Tanh,
    /// `h = max(0, x + r)`.
    Relu,
    /// A gated unit whose reset gate applies to the state.
    ResetState,
    /// A gated unit whose reset gate applies to the product with the state.
    ResetProduct,
}

impl GatedCell {
    /// Returns the gates of a cell.
    #[must_use]
    pub fn gates(self) -> usize {
        match self {
            Self::Tanh | Self::Relu => 1,
            Self::ResetState | Self::ResetProduct => 3,
        }
    }

    /// Returns the gates that are a product with the state itself.
    #[must_use]
    pub fn state_gates(self) -> usize {
        if self == Self::ResetState { 2 } else { self.gates() }
    }
}

/// One direction.
#[derive(Clone, Copy, Debug)]
pub struct GatedPass<'a> {
    /// Weights of the input, `[input, gates * hidden]`.
    pub input: &'a PackedB,
    /// Weights of the state, `[hidden, state_gates * hidden]`.
    pub state: &'a PackedB,
    /// Weights of the state behind the reset gate, `[hidden, hidden]`; for [`GatedCell::ResetState`].
    pub kept: Option<&'a PackedB>,
    /// Added to the input's part, `[gates * hidden]`.
    pub bias: &'a [f32],
    /// Added to the product with the state before the reset gate, `[hidden]`; for [`GatedCell::ResetProduct`].
    pub state_bias: &'a [f32],
    /// True if the last step comes first.
    pub reversed: bool,
}

/// The sizes and weights of a layer.
#[derive(Clone, Copy, Debug)]
pub struct GatedLayer<'a> {
    /// Kind of cells.
    pub cell: GatedCell,
    /// Steps of the sequence.
    pub steps: usize,
    /// Sequences side by side.
    pub batch: usize,
    /// Cells.
    pub hidden: usize,
    /// Directions.
    pub passes: &'a [GatedPass<'a>],
}

/// Outputs that a run writes.
#[derive(Debug, Default)]
pub struct GatedOutputs<'a> {
    /// `[steps, directions, batch, hidden]`.
    pub y: Option<&'a mut [f32]>,
    /// The last output, `[directions, batch, hidden]`.
    pub h: Option<&'a mut [f32]>,
}

impl GatedLayer<'_> {
    fn state(&self) -> usize {
        self.batch * self.hidden
    }

    /// Floats of memory that one direction needs.
    fn pass_len(&self) -> usize {
        let (gates, state_gates) = (self.cell.gates(), self.cell.state_gates());
        // The input's part of all steps, a step's product, what is kept of a state and its product, two states.
        self.state() * (gates * self.steps + state_gates + 4)
    }

    /// Returns the floats of memory that [`recurrent`] needs.
    #[must_use]
    pub fn scratch_len(&self) -> usize {
        self.passes.len() * self.pass_len()
    }

    fn check(&self, x: &[f32], initial: Option<&[f32]>, outputs: &GatedOutputs<'_>) {
        let (gates, hidden) = (self.cell.gates() * self.hidden, self.hidden);
        for pass in self.passes {
            let k = pass.input.k();
            check_matrix("X", x.len(), self.steps * self.batch, k, k);
            assert!(pass.input.n() == gates && pass.bias.len() == gates, "gates: {gates}");
            assert!(pass.state.n() == self.cell.state_gates() * hidden, "state: {hidden} cells");
            assert!(pass.state.k() == hidden, "state: {} rows", pass.state.k());
            let kept = pass.kept.is_some_and(|kept| (kept.k(), kept.n()) == (hidden, hidden));
            assert!(kept || self.cell != GatedCell::ResetState, "no weights of what is kept");
            let biased = pass.state_bias.len() == hidden;
            assert!(biased || self.cell != GatedCell::ResetProduct, "no bias of the state");
        }
        let states = self.passes.len() * self.state();
        let len = |name: &str, found: Option<usize>, expected: usize| {
            assert!(found.is_none_or(|len| len == expected), "{name}: {found:?} for {expected}");
        };
        len("initial h", initial.map(<[f32]>::len), states);
        len("Y", outputs.y.as_deref().map(<[f32]>::len), self.steps * states);
        len("last h", outputs.h.as_deref().map(<[f32]>::len), states);
    }
}

/// Runs a layer.
///
/// Shapes: `x` is `[steps, batch, input]`, `initial` `[directions, batch, hidden]`, zeros where absent; `scratch` has
/// [`GatedLayer::scratch_len`] values.
///
/// # Panics
/// Panics when a slice has another length than its shape, or weights are packed for another instruction set.
pub fn recurrent(
    exec: KernelContext<'_>,
    layer: &GatedLayer<'_>,
    x: &[f32],
    initial: Option<&[f32]>,
    outputs: GatedOutputs<'_>,
    scratch: &mut [f32],
) {
    layer.check(x, initial, &outputs);
    assert!(scratch.len() >= layer.scratch_len(), "scratch of {}", scratch.len());
    let (state, count) = (layer.state(), layer.passes.len());
    if state == 0 || count == 0 {
        return;
    }
    let y = outputs.y.map(DisjointSlice::new);
    let h = outputs.h.map(DisjointSlice::new);
    let rooms = DisjointSlice::new(scratch);
    exec.pool.run(count, |number| {
        let each = layer.pass_len();
        // SAFETY: each direction has a room of its own.
        let room = unsafe { rooms.range(number * each..(number + 1) * each) };
        let own = number * state..(number + 1) * state;
        let run = PassRun { exec, layer, pass: &layer.passes[number] };
        run.all(x, initial.map(|all| &all[own.clone()]), room, |at, values| {
            if let Some(y) = y {
                let start = (at * count + number) * state;
                // SAFETY: no other direction has these results.
                unsafe { y.range(start..start + state) }.copy_from_slice(values);
            }
        });
        if let Some(h) = h {
            // SAFETY: no other direction has this state.
            unsafe { h.range(own) }.copy_from_slice(&room[each - state..]);
        }
    });
}

/// The steps of one direction.
struct PassRun<'a> {
    exec: KernelContext<'a>,
    layer: &'a GatedLayer<'a>,
    pass: &'a GatedPass<'a>,
}

impl PassRun<'_> {
    /// Runs all steps; the last state is at the end of the room.
    fn all(
        &self,
        x: &[f32],
        initial: Option<&[f32]>,
        room: &mut [f32],
        mut done: impl FnMut(usize, &[f32]),
    ) {
        let Self { exec, layer, pass } = *self;
        let (state, gates) = (layer.state(), layer.cell.gates());
        let columns = gates * layer.hidden;
        let (projected, room) = room.split_at_mut(layer.steps * layer.batch * columns);
        let (product, room) = room.split_at_mut(layer.cell.state_gates() * state);
        let (kept, room) = room.split_at_mut(state);
        let (kept_product, room) = room.split_at_mut(state);
        let (next, last) = room.split_at_mut(state);
        let rows = layer.steps * layer.batch;
        let bias = GemmEpilogue::bias(pass.bias);
        gemm(exec, rows, x, pass.input.k(), pass.input, projected, columns, &bias);
        match initial {
            Some(initial) => last.copy_from_slice(initial),
            None => last.fill(0.0),
        }
        for index in 0..layer.steps {
            let at = if pass.reversed { layer.steps - 1 - index } else { index };
            let none = GemmEpilogue::default();
            let width = pass.state.n();
            gemm(exec, layer.batch, last, layer.hidden, pass.state, product, width, &none);
            let mut step = CellStep {
                layer,
                x: &projected[at * layer.batch * columns..(at + 1) * layer.batch * columns],
                product,
                state_bias: pass.state_bias,
                kept,
                kept_product,
                h: last,
                next,
            };
            if let Some(weights) = pass.kept {
                exec.isa.run(KeepStates(&mut step));
                let (from, to) = (&*step.kept, &mut *step.kept_product);
                gemm(exec, layer.batch, from, layer.hidden, weights, to, layer.hidden, &none);
            }
            exec.isa.run(NextStates(&mut step));
            last.copy_from_slice(next);
            done(at, last);
        }
    }
}

/// Values of a step: rows of sequences.
struct CellStep<'a> {
    layer: &'a GatedLayer<'a>,
    /// The input's part of the gates.
    x: &'a [f32],
    /// The product with the state.
    product: &'a [f32],
    state_bias: &'a [f32],
    /// The state behind the reset gate, and its product.
    kept: &'a mut [f32],
    kept_product: &'a mut [f32],
    h: &'a [f32],
    next: &'a mut [f32],
}

/// Multiplies states with their reset gates.
struct KeepStates<'a, 'b>(&'a mut CellStep<'b>);

impl IsaKernel for KeepStates<'_, '_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let step = self.0;
        let hidden = step.layer.hidden;
        for row in 0..step.layer.batch {
            let x = &step.x[(row * 3 + 1) * hidden..(row * 3 + 2) * hidden];
            let product = &step.product[(row * 2 + 1) * hidden..(row * 2 + 2) * hidden];
            let h = &step.h[row * hidden..(row + 1) * hidden];
            let kept = &mut step.kept[row * hidden..(row + 1) * hidden];
            for at in (0..hidden).step_by(S::LANES) {
                let m = s.tail(hidden - at);
                // SAFETY: all slices have `hidden` values, and the mask ends with them.
                unsafe {
                    let load = |from: &[f32]| s.load_tail(from.as_ptr().add(at), m);
                    let reset = math::sigmoid(s, s.add(load(x), load(product)));
                    s.store_tail(kept.as_mut_ptr().add(at), m, s.mul(reset, load(h)));
                }
            }
        }
    }
}

/// Computes the states after a step.
struct NextStates<'a, 'b>(&'a mut CellStep<'b>);

impl NextStates<'_, '_> {
    #[inline(always)]
    fn simple<S: Simd>(step: &mut CellStep<'_>, s: S, f: impl Fn(S::F) -> S::F) {
        let len = step.next.len();
        for at in (0..len).step_by(S::LANES) {
            let m = s.tail(len - at);
            // SAFETY: all slices have `len` values, and the mask ends with them.
            unsafe {
                let load = |from: &[f32]| s.load_tail(from.as_ptr().add(at), m);
                let sum = s.add(load(step.x), load(step.product));
                s.store_tail(step.next.as_mut_ptr().add(at), m, f(sum));
            }
        }
    }

    #[inline(always)]
    fn gated<S: Simd>(step: &mut CellStep<'_>, s: S, of_product: bool) {
        let hidden = step.layer.hidden;
        let width = step.layer.cell.state_gates() * hidden;
        for row in 0..step.layer.batch {
            let x = &step.x[row * 3 * hidden..(row + 1) * 3 * hidden];
            let product = &step.product[row * width..(row + 1) * width];
            let own = row * hidden..(row + 1) * hidden;
            let (h, kept) = (&step.h[own.clone()], &step.kept_product[own.clone()]);
            let (bias, next) = (step.state_bias, &mut step.next[own]);
            for at in (0..hidden).step_by(S::LANES) {
                let m = s.tail(hidden - at);
                // SAFETY: each gate has `hidden` values, and the mask ends with them.
                unsafe {
                    let load = |from: &[f32], gate: usize| {
                        s.load_tail(from.as_ptr().add(gate * hidden + at), m)
                    };
                    let gate = |g: usize| math::sigmoid(s, s.add(load(x, g), load(product, g)));
                    let update = gate(0);
                    let outer = match of_product {
                        true => s.mul(gate(1), s.add(load(product, 2), load(bias, 0))),
                        false => load(kept, 0),
                    };
                    let fresh = math::tanh(s, s.add(load(x, 2), outer));
                    let mixed = s.fma(update, s.sub(load(h, 0), fresh), fresh);
                    s.store_tail(next.as_mut_ptr().add(at), m, mixed);
                }
            }
        }
    }
}

impl IsaKernel for NextStates<'_, '_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let step = self.0;
        match step.layer.cell {
            GatedCell::Tanh => Self::simple(step, s, |x| math::tanh(s, x)),
            // A maximum gives its second operand where one is NaN.
            GatedCell::Relu => Self::simple(step, s, |x| s.max(s.splat(0.0), x)),
            GatedCell::ResetState => Self::gated(step, s, false),
            GatedCell::ResetProduct => Self::gated(step, s, true),
        }
    }
}
