//! Long short-term memory: all steps of one or both directions.
//!
//! The input's part of all gates is one product before the steps. The gates of a cell lie side by
//! side, a vector of each: the register tile that makes them is followed at once by the cell's
//! functions, while they are in the first-level cache, and threads share a step by cells. Two
//! directions run beside each other.
//!
//! Source: Hochreiter and Schmidhuber, *Long Short-Term Memory* (1997), with forget gates; the order
//! of gates is ONNX's: input, output, forget, cell.

use crate::gemm::{
    DenseRows, GemmProduct, PackedB, TileFinish, check_matrix, gemm, multiply_panels,
    panels_scratch,
};
use crate::isa::{Isa, IsaKernel, Simd};
use crate::memory::{DisjointSlice, with_scratch};
use crate::pieces::WorkPieces;
use crate::{GemmEpilogue, KernelContext, math};

/// Gates of a cell.
const GATES: usize = 4;

/// Steps with fewer products than this run on one thread: handing a part to another takes some
/// microseconds, in which a core does about this many.
const SHARED_PRODUCTS: usize = 3 << 18;

/// Columns that the gates of `hidden` cells take: a whole number of vectors for each gate.
#[must_use]
pub fn gate_columns(isa: Isa, hidden: usize) -> usize {
    GATES * hidden.next_multiple_of(isa.lanes())
}

/// Rows of weights as the kernel multiplies them: a vector of cells of each gate in turn.
///
/// Shapes: `weights` is `[4 * hidden, k]` in ONNX's order of gates; the result is
/// `[gate_columns(isa, hidden), k]`, zeros where there is no cell. A bias has `k` = 1.
///
/// # Panics
/// Panics when `weights` is shorter.
#[must_use]
pub fn interleave_gates(isa: Isa, hidden: usize, k: usize, weights: &[f32]) -> Vec<f32> {
    check_matrix("gates", weights.len(), GATES * hidden, k, k);
    let lanes = isa.lanes();
    let mut out = vec![0.0; gate_columns(isa, hidden) * k];
    for (row, from) in weights.chunks_exact(k.max(1)).take(GATES * hidden).enumerate() {
        let gate = row / hidden;
        let cell = row % hidden;
        let to = (cell / lanes * GATES + gate) * lanes + cell % lanes;
        out[to * k..(to + 1) * k].copy_from_slice(from);
    }
    out
}

/// One direction.
#[derive(Clone, Copy, Debug)]
pub struct LstmPass<'a> {
    /// Weights of the input, of [`interleave_gates`], transposed: `[input, gate_columns]`.
    pub input: &'a PackedB,
    /// Weights of the state: `[hidden, gate_columns]`.
    pub state: &'a PackedB,
    /// The sum of both biases, of [`interleave_gates`].
    pub bias: &'a [f32],
    /// True if the last step comes first.
    pub reversed: bool,
}

/// The sizes and weights of a layer.
#[derive(Clone, Copy, Debug)]
pub struct LstmLayer<'a> {
    /// Steps of the sequence.
    pub steps: usize,
    /// Sequences side by side.
    pub batch: usize,
    /// Cells.
    pub hidden: usize,
    /// Directions.
    pub passes: &'a [LstmPass<'a>],
}

/// States before the first step, zero where absent: `[directions, batch, hidden]`.
#[derive(Clone, Copy, Debug, Default)]
pub struct InitialStates<'a> {
    /// State of the output.
    pub h: Option<&'a [f32]>,
    /// State of the cell.
    pub c: Option<&'a [f32]>,
}

/// Outputs that a run writes.
#[derive(Debug, Default)]
pub struct LstmOutputs<'a> {
    /// `[steps, directions, batch, hidden]`.
    pub y: Option<&'a mut [f32]>,
    /// The last output, `[directions, batch, hidden]`.
    pub h: Option<&'a mut [f32]>,
    /// The last cell state, `[directions, batch, hidden]`.
    pub c: Option<&'a mut [f32]>,
}

impl LstmLayer<'_> {
    /// Values of a state of one direction.
    fn state(&self) -> usize {
        self.batch * self.hidden
    }

    /// Floats of memory that [`lstm`] needs.
    #[must_use]
    pub fn scratch_len(&self, isa: Isa) -> usize {
        let gates = self.batch * gate_columns(isa, self.hidden);
        self.passes.len() * (gates * (self.steps + 1) + 3 * self.state())
    }

    fn check(&self, isa: Isa, x: &[f32], initial: &InitialStates<'_>, outputs: &LstmOutputs<'_>) {
        let columns = gate_columns(isa, self.hidden);
        for pass in self.passes {
            assert!(pass.input.isa() == isa && pass.state.isa() == isa, "packed for another set");
            assert!(pass.input.n() == columns && pass.state.n() == columns, "gates: {columns}");
            assert!(pass.bias.len() == columns, "bias: {} for {columns}", pass.bias.len());
            assert!(pass.state.k() == self.hidden, "state: {} rows", pass.state.k());
            let k = pass.input.k();
            check_matrix("X", x.len(), self.steps * self.batch, k, k);
        }
        let states = self.passes.len() * self.state();
        let len = |name: &str, found: Option<usize>, expected: usize| {
            assert!(found.is_none_or(|len| len >= expected), "{name}: {found:?} for {expected}");
        };
        len("initial h", initial.h.map(<[f32]>::len), states);
        len("initial c", initial.c.map(<[f32]>::len), states);
        len("Y", outputs.y.as_deref().map(<[f32]>::len), self.steps * states);
        len("last h", outputs.h.as_deref().map(<[f32]>::len), states);
        len("last c", outputs.c.as_deref().map(<[f32]>::len), states);
    }
}

/// Runs a layer.
///
/// Shapes: `x` is `[steps, batch, input]`; `scratch` has [`LstmLayer::scratch_len`] values.
///
/// # Panics
/// Panics when a slice is shorter than its shape, or weights are packed for another instruction
/// set.
pub fn lstm(
    exec: KernelContext<'_>,
    layer: &LstmLayer<'_>,
    x: &[f32],
    initial: InitialStates<'_>,
    outputs: LstmOutputs<'_>,
    scratch: &mut [f32],
) {
    layer.check(exec.isa, x, &initial, &outputs);
    assert!(scratch.len() >= layer.scratch_len(exec.isa), "scratch of {}", scratch.len());
    if layer.state() == 0 || layer.passes.is_empty() {
        return;
    }
    let columns = gate_columns(exec.isa, layer.hidden);
    let each = layer.scratch_len(exec.isa) / layer.passes.len();
    let mut rooms = Vec::new();
    for (pass, room) in layer.passes.iter().zip(scratch.chunks_exact_mut(each)) {
        let (projected, rest) = room.split_at_mut(layer.steps * layer.batch * columns);
        let rows = layer.steps * layer.batch;
        let bias = GemmEpilogue::bias(pass.bias);
        gemm(exec, rows, x, pass.input.k(), pass.input, projected, columns, &bias);
        let (gates, states) = rest.split_at_mut(layer.batch * columns);
        rooms.push(LstmWorkspace {
            projected: projected.as_ptr(),
            gates: DisjointSlice::new(gates),
            states: DisjointSlice::new(states),
        });
    }
    let shared = |slice: Option<&mut [f32]>| slice.map(DisjointSlice::new);
    let results = [shared(outputs.y), shared(outputs.h), shared(outputs.c)];
    let products = layer.batch * GATES * layer.hidden * layer.hidden;
    let beside = layer.passes.len() > 1 && exec.pool.threads() > 1;
    let alone = products < SHARED_PRODUCTS || (beside && exec.pool.threads() == 2);
    let rooms = &rooms;
    let run = |number: usize| {
        let run = LstmRun { exec, layer, number, room: &rooms[number], results, alone };
        run.all(initial);
    };
    if beside {
        exec.pool.run(layer.passes.len(), run)
    } else {
        (0..layer.passes.len()).for_each(run)
    }
}

/// Memory of one direction.
struct LstmWorkspace {
    /// The input's part of the gates of all steps.
    projected: *const f32,
    /// The gates of a step.
    gates: DisjointSlice<f32>,
    /// Two outputs and the cell state.
    states: DisjointSlice<f32>,
}

// SAFETY: the run of the direction alone uses it, while `lstm` holds the borrow.
unsafe impl Send for LstmWorkspace {}
// SAFETY: as for Send.
unsafe impl Sync for LstmWorkspace {}

/// The steps of one direction.
struct LstmRun<'a> {
    exec: KernelContext<'a>,
    layer: &'a LstmLayer<'a>,
    number: usize,
    room: &'a LstmWorkspace,
    /// Y, the last output, the last cell state.
    results: [Option<DisjointSlice<f32>>; 3],
    /// True if one thread runs each step.
    alone: bool,
}

impl LstmRun<'_> {
    fn all(&self, initial: InitialStates<'_>) {
        let state = self.layer.state();
        let layer = self.layer;
        let buffer = |i: usize| self.room.states.at(i * state);
        let own = self.number * state..(self.number + 1) * state;
        let start = |to: DisjointSlice<f32>, from: Option<&[f32]>| {
            // SAFETY: a state in this direction's own memory.
            let to = unsafe { to.range(0..state) };
            match from {
                Some(from) => to.copy_from_slice(&from[own.clone()]),
                None => to.fill(0.0),
            }
        };
        let mut h = buffer(0);
        let c = buffer(2);
        start(h, initial.h);
        start(c, initial.c);
        let [y, last_h, last_c] = self.results;
        for index in 0..layer.steps {
            let reversed = layer.passes[self.number].reversed;
            let at = if reversed { layer.steps - 1 - index } else { index };
            let next = match y {
                Some(y) => y.at((at * layer.passes.len() + self.number) * state),
                None => buffer((index + 1) % 2),
            };
            self.step(at, h, c, next);
            h = next;
        }
        for (to, from) in [(last_h, h), (last_c, c)] {
            let Some(to) = to else { continue };
            // SAFETY: this direction's part of the output, and a state that is complete.
            unsafe { to.range(own.clone()).copy_from_slice(from.range(0..state)) };
        }
    }

    /// One step: new cell states in place, new outputs to `next`.
    fn step(
        &self,
        at: usize,
        h: DisjointSlice<f32>,
        c: DisjointSlice<f32>,
        next: DisjointSlice<f32>,
    ) {
        let isa = self.exec.isa;
        let layer = self.layer;
        let pass = &layer.passes[self.number];
        let columns = gate_columns(isa, layer.hidden);
        let projected = self.room.projected.wrapping_add(at * layer.batch * columns);
        let product = GemmProduct {
            m: layer.batch,
            n: columns,
            k: layer.hidden,
            a: DenseRows::new(h.ptr(), layer.hidden),
            b: pass.state.as_source(),
            c: self.room.gates,
            c_stride: columns,
            finish: TileFinish::plus(projected, columns),
        };
        let groups = layer.hidden.div_ceil(isa.lanes());
        let threads = self.exec.pool.threads();
        let pieces = WorkPieces { len: groups, threads, most: groups, fewest: 1, unit: 1 };
        let task = |groups: std::ops::Range<usize>| {
            with_scratch(panels_scratch(isa, layer.batch, layer.hidden), |scratch| {
                let scratch = scratch.as_mut_ptr();
                isa.run(LstmCells {
                    product: &product,
                    groups,
                    hidden: layer.hidden,
                    c,
                    next,
                    scratch,
                });
            });
        };
        if self.alone { task(0..groups) } else { pieces.run(self.exec.pool, task) }
    }
}

/// The gates and the new states of some groups of cells, a vector each.
struct LstmCells<'a> {
    product: &'a GemmProduct<DenseRows>,
    groups: std::ops::Range<usize>,
    hidden: usize,
    c: DisjointSlice<f32>,
    next: DisjointSlice<f32>,
    scratch: *mut f32,
}

impl IsaKernel for LstmCells<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let p = self.product;
        let width = GATES * S::LANES;
        // SAFETY: the groups are whole panels; `lstm` has checked the sizes, and no other task
        // writes these gates.
        unsafe {
            let columns = self.groups.start * width..self.groups.end * width;
            multiply_panels(s, p, columns, self.scratch);
        }
        for row in 0..p.m {
            for group in self.groups.clone() {
                let cell = group * S::LANES;
                let tail = s.tail(self.hidden - cell);
                // SAFETY: the gates of these cells are there; the mask limits the states to cells
                // that exist.
                unsafe {
                    let gates = p.c.ptr().add(row * p.c_stride + group * width);
                    let gate = |i: usize| s.load(gates.add(i * S::LANES));
                    let at = row * self.hidden + cell;
                    let c = s.load_tail(self.c.ptr().add(at), tail);
                    let kept = s.mul(math::sigmoid(s, gate(2)), c);
                    let c = s.fma(math::sigmoid(s, gate(0)), math::tanh(s, gate(3)), kept);
                    let h = s.mul(math::sigmoid(s, gate(1)), math::tanh(s, c));
                    s.store_tail(self.c.ptr().add(at), tail, c);
                    s.store_tail(self.next.ptr().add(at), tail, h);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::test_values;
    use crate::{ThreadPool, Transposition};

    /// One direction, value by value, in f64.
    fn plain(
        [steps, batch, input, hidden]: [usize; 4],
        x: &[f32],
        [w, r, bias]: [&[f32]; 3],
        [h0, c0]: [&[f32]; 2],
        reversed: bool,
    ) -> (Vec<Vec<f64>>, Vec<f64>) {
        let mut h: Vec<f64> = h0.iter().map(|&x| f64::from(x)).collect();
        let mut c: Vec<f64> = c0.iter().map(|&x| f64::from(x)).collect();
        let mut all = vec![Vec::new(); steps];
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        for index in 0..steps {
            let t = if reversed { steps - 1 - index } else { index };
            let before = h.clone();
            for b in 0..batch {
                for cell in 0..hidden {
                    let gate = |g: usize| {
                        let row = g * hidden + cell;
                        let of_x = (0..input).map(|k| {
                            f64::from(x[(t * batch + b) * input + k])
                                * f64::from(w[row * input + k])
                        });
                        let of_h = (0..hidden)
                            .map(|k| before[b * hidden + k] * f64::from(r[row * hidden + k]));
                        of_x.sum::<f64>() + of_h.sum::<f64>() + f64::from(bias[row])
                    };
                    let at = b * hidden + cell;
                    c[at] = sigmoid(gate(2)) * c[at] + sigmoid(gate(0)) * gate(3).tanh();
                    h[at] = sigmoid(gate(1)) * c[at].tanh();
                }
            }
            all[t].clone_from(&h);
        }
        (all, c)
    }

    fn check(exec: KernelContext<'_>, sizes: [usize; 4], directions: usize, with_states: bool) {
        let [steps, batch, input, hidden] = sizes;
        let isa = exec.isa;
        let state = batch * hidden;
        let x = test_values(steps * batch * input, 1);
        let parts: Vec<[Vec<f32>; 3]> = [0, 1][..directions]
            .iter()
            .map(|d| {
                let w = 4 * hidden * input;
                let r = 4 * hidden * hidden;
                [test_values(w, 7 + d), test_values(r, 17 + d), test_values(4 * hidden, 27 + d)]
            })
            .collect();
        let zeros = vec![0.0; directions * state];
        let h0 = test_values(directions * state, 3);
        let c0 = test_values(directions * state, 4);
        let [h0, c0] = if with_states { [&h0, &c0] } else { [&zeros, &zeros] };
        let columns = gate_columns(isa, hidden);
        let packed: Vec<_> = parts
            .iter()
            .map(|[w, r, bias]| {
                let pack = |k: usize, rows: &[f32]| {
                    let rows = interleave_gates(isa, hidden, k, rows);
                    PackedB::pack(isa, k, columns, &rows, k, Transposition::Yes)
                };
                (pack(input, w), pack(hidden, r), interleave_gates(isa, hidden, 1, bias))
            })
            .collect();
        let passes: Vec<LstmPass<'_>> = packed
            .iter()
            .enumerate()
            .map(|(d, (input, state, bias))| LstmPass { input, state, bias, reversed: d == 1 })
            .collect();
        let layer = LstmLayer { steps, batch, hidden, passes: &passes };
        let initial = if with_states {
            InitialStates { h: Some(h0), c: Some(c0) }
        } else {
            InitialStates::default()
        };
        let mut y = vec![9.0; steps * directions * state];
        let mut h = vec![9.0; directions * state];
        let mut c = vec![9.0; directions * state];
        let mut scratch = vec![9.0; layer.scratch_len(isa)];
        let outputs = LstmOutputs { y: Some(&mut y), h: Some(&mut h), c: Some(&mut c) };
        lstm(exec, &layer, &x, initial, outputs, &mut scratch);
        let mut only_h = vec![9.0; directions * state];
        let outputs = LstmOutputs { h: Some(&mut only_h), ..LstmOutputs::default() };
        lstm(exec, &layer, &x, initial, outputs, &mut scratch);
        assert_eq!(h, only_h, "{sizes:?}: with and without Y");
        for (d, [w, r, bias]) in parts.iter().enumerate() {
            let own = d * state..(d + 1) * state;
            let before = [&h0[own.clone()], &c0[own.clone()]];
            let (all, last) = plain(sizes, &x, [w, r, bias], before, d == 1);
            let close = |name: &str, found: &[f32], expected: &[f64]| {
                for (f, e) in found.iter().zip(expected) {
                    // Sums of a few hundred products of at most 1/4, then functions of slope 1.
                    assert!((f64::from(*f) - e).abs() < 2e-5, "{sizes:?} {name}: {f} for {e}");
                }
            };
            for (t, expected) in all.iter().enumerate() {
                let at = (t * directions + d) * state;
                close("y", &y[at..at + state], expected);
            }
            close("c", &c[own.clone()], &last);
            let t = if d == 1 { 0 } else { steps - 1 };
            close("h", &h[own], &all[t]);
        }
    }

    #[test]
    fn layers_agree_with_the_definition() {
        for isa in Isa::available() {
            for threads in [1, 2, 3] {
                let pool = ThreadPool::new(threads);
                let exec = KernelContext { pool: &pool, isa };
                for directions in [1, 2] {
                    check(exec, [5, 1, 3, 7], directions, true);
                    check(exec, [4, 3, 20, 33], directions, false);
                    check(exec, [3, 9, 5, 16], directions, true);
                }
            }
            let pool = ThreadPool::new(3);
            // Large enough to share steps.
            check(KernelContext { pool: &pool, isa }, [2, 5, 8, 200], 1, true);
        }
    }
}
