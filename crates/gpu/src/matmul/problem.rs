//! A product of known lengths, in the form that all kernels share.

use galatea_runtime::tune::ConfigSpace;
use galatea_tensor::DataType;

use super::spec::MatMulSpec;
use crate::choices::{KernelQuestion, near};
use galatea_runtime::NodeShapes;

/// An operand as it lies: elements from one of its rows, columns or matrices to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MatMulOperand {
    pub(crate) dtype: DataType,
    /// Elements before the first.
    pub(crate) start: usize,
    /// Along the outer axis of the product: rows of `A` and of the result, columns of `B`.
    pub(crate) outer: usize,
    /// Along the inner axis, `k`; for what is added to the result, along its columns.
    pub(crate) inner: usize,
    /// Along each axis of the stack; 0 where it is repeated.
    pub(crate) batch: Vec<usize>,
}

/// An operand whose rows along k are windows of images with channels last, [images, height, width, channels]: a window
/// is some runs of elements, one below the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ImageWindows {
    /// True if they are the columns of `B`, and the result is of [images, m, pixels]; otherwise they are the
    /// rows of `A`.
    pub(crate) columns: bool,
    /// Windows beside one another, and those of an image.
    pub(crate) across: usize,
    pub(crate) pixels: usize,
    /// Elements from one window to the next across and down, and from one image to the next.
    pub(crate) steps: [usize; 3],
    /// Elements of a run, and from where it starts to where the next one does.
    pub(crate) run: usize,
    pub(crate) pitch: usize,
    /// Elements of a window; those of k beyond them are at `zeros`, of which there are four.
    pub(crate) terms: usize,
    pub(crate) zeros: usize,
}

impl ImageWindows {
    /// The operand's name in shaders.
    pub(super) fn operand(&self) -> &'static str {
        if self.columns { "b" } else { "a" }
    }

    /// The parameters in the order of `bindings.wgsl`.
    pub(super) fn params(&self) -> Vec<usize> {
        let Self { across, pixels, steps: [x, y, image], run, pitch, terms, zeros, .. } = *self;
        vec![across, pixels, x, y, image, run, pitch.saturating_sub(run), terms, zeros]
    }
}

/// `batch` products of `m × k` and `k × n`. The result is contiguous.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MatMulProblem {
    pub(crate) spec: MatMulSpec,
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
    /// Lengths of the axes of the stack that are left when neighbours are joined.
    pub(crate) batch: Vec<usize>,
    pub(crate) a: MatMulOperand,
    pub(crate) b: MatMulOperand,
    /// Type and step of the row that is added.
    pub(crate) bias: Option<(DataType, usize)>,
    /// Operand that is added to the whole or multiplies it.
    pub(crate) more: Option<MatMulOperand>,
    pub(crate) out: DataType,
    /// The input that the result may lie over.
    pub(crate) under: Option<usize>,
    /// An operand that is not rows of a matrix.
    pub(crate) windows: Option<ImageWindows>,
}

/// Lengths and steps of a contiguous tensor.
fn contiguous(shape: &[usize]) -> Vec<(usize, usize)> {
    let mut step = 1;
    let mut axes: Vec<(usize, usize)> = shape
        .iter()
        .rev()
        .map(|&len| {
            let axis = (len, step);
            step *= len;
            axis
        })
        .collect();
    axes.reverse();
    axes
}

/// Steps of a tensor's axes along the axes of the whole, which has as many or more.
fn spread(axes: &[(usize, usize)], whole: &[usize]) -> Result<Vec<usize>, String> {
    let lead = whole.len().checked_sub(axes.len()).ok_or("an operand has too many axes")?;
    let mut steps = vec![0; lead];
    for (&(len, step), &to) in axes.iter().zip(&whole[lead..]) {
        match len {
            1 => steps.push(0),
            len if len == to => steps.push(step),
            len => return Err(format!("a length of {len} does not spread over {to}")),
        }
    }
    Ok(steps)
}

/// Axes of the operands with the matrix last, as the product reads them.
fn turned(
    shape: &[usize],
    turn: galatea_graph::ops::contrib::OperandTransposition,
) -> Vec<(usize, usize)> {
    let mut axes = contiguous(shape);
    let rank = axes.len();
    if turn.batch && rank > 2 {
        axes[..rank - 1].rotate_left(1);
    }
    if turn.matrix && rank > 1 {
        axes.swap(rank - 2, rank - 1);
    }
    axes
}

impl MatMulProblem {
    /// The product of a node in a run.
    ///
    /// # Errors
    /// Fails when lengths do not meet.
    pub(crate) fn new(spec: MatMulSpec, shapes: &NodeShapes) -> Result<Self, String> {
        let mut a = turned(shapes.input(0)?, spec.a);
        let mut b = turned(shapes.input(1)?, spec.b);
        let mut whole = shapes.output(0)?.to_vec();
        let row = a.len() == 1;
        let column = b.len() == 1;
        if column {
            b.push((1, 0));
            whole.push(1);
        }
        if row {
            a.insert(0, (1, 0));
            whole.insert(whole.len().saturating_sub(1), 1);
        }
        let (&[.., (_, a_outer), (k, a_inner)], &[.., (k_b, b_inner), (_, b_outer)]) =
            (a.as_slice(), b.as_slice())
        else {
            return Err("an operand is a scalar".into());
        };
        let &[.., m, n] = whole.as_slice() else { return Err("the product is a scalar".into()) };
        if k != k_b {
            return Err(format!("A has {k} columns, B has {k_b} rows"));
        }
        let stack = whole.len() - 2;
        let matrix = |axes: &[(usize, usize)], at: usize| axes[axes.len() - 2 + at].0 == 1;
        let operand = |axes: &[(usize, usize)], input: usize, outer, inner| {
            let batch = spread(&axes[..axes.len() - 2], &whole[..stack])?;
            Ok::<_, String>(MatMulOperand {
                dtype: shapes.dtype(input)?,
                start: 0,
                outer,
                inner,
                batch,
            })
        };
        let a_outer = if matrix(&a, 0) { 0 } else { a_outer };
        let b_outer = if matrix(&b, 1) { 0 } else { b_outer };
        let a = operand(&a, 0, a_outer, a_inner)?;
        let b = operand(&b, 1, b_outer, b_inner)?;
        let bias = match spec.bias {
            Some(index) => {
                let len = shapes.input(index)?.last().copied().unwrap_or(1);
                Some((shapes.dtype(index)?, usize::from(len > 1)))
            }
            None => None,
        };
        let more = match spec.more {
            Some(index) => {
                let mut axes = contiguous(shapes.input(index)?);
                if row && !axes.is_empty() {
                    axes.insert(axes.len() - 1, (1, 0));
                }
                let steps = spread(&axes, &whole)?;
                let (batch, matrix) = steps.split_at(stack);
                let dtype = shapes.dtype(index)?;
                let outer = matrix[0];
                let inner = matrix[1];
                Some(MatMulOperand { dtype, start: 0, outer, inner, batch: batch.to_vec() })
            }
            None => None,
        };
        let batch = whole[..stack].to_vec();
        let out = shapes.output_dtype(0)?;
        // The planner sees to it that nothing else reads what is written over.
        let same = |&index: &usize| shapes.inputs.get(index) == shapes.outputs.first();
        let under = spec.more.filter(same);
        let mut problem =
            Self { spec, m, n, k, batch, a, b, bias, more, out, under, windows: None };
        problem.join();
        Ok(problem)
    }

    /// Joins axes of the stack that lie behind one another in all operands, and the innermost one with the
    /// rows where all its products have the same `B`.
    pub(crate) fn join(&mut self) {
        let mut axes: Vec<(usize, [usize; 3])> = Vec::new();
        let more = |at: usize| self.more.as_ref().map_or(0, |more| more.batch[at]);
        for (at, &len) in self.batch.iter().enumerate() {
            let steps = [self.a.batch[at], self.b.batch[at], more(at)];
            match axes.last_mut() {
                _ if len == 1 => {}
                Some((outer_len, outer))
                    if (0..3).all(|operand| outer[operand] == steps[operand] * len) =>
                {
                    *outer_len *= len;
                    *outer = steps;
                }
                _ => axes.push((len, steps)),
            }
        }
        let more_outer = self.more.as_ref().map_or(0, |more| more.outer);
        while let Some(&(len, [a, b, more])) = axes.last() {
            let behind = |step: usize, outer: usize| step == outer * self.m;
            // A single row has no step of its own.
            let single = self.m == 1 && self.a.outer == 0 && more_outer == 0;
            if self.spec.bias_rows {
                break;
            }
            if b == 0 && single {
                self.a.outer = a;
                if let Some(operand) = &mut self.more {
                    operand.outer = more;
                }
            } else if b != 0 || !behind(a, self.a.outer) || !behind(more, more_outer) {
                break;
            }
            self.m *= len;
            axes.pop();
            if single {
                break;
            }
        }
        self.batch = axes.iter().map(|(len, _)| *len).collect();
        self.a.batch = axes.iter().map(|(_, steps)| steps[0]).collect();
        self.b.batch = axes.iter().map(|(_, steps)| steps[1]).collect();
        if let Some(operand) = &mut self.more {
            operand.batch = axes.iter().map(|(_, steps)| steps[2]).collect();
        }
    }

    /// Products of the stack.
    pub(crate) fn products(&self) -> usize {
        self.batch.iter().product()
    }

    /// Returns whether operands may be multiplied in FP16.
    pub(crate) fn in_halves(&self) -> bool {
        self.spec.halves || self.a.dtype == DataType::Fp16 && self.b.dtype == DataType::Fp16
    }

    /// Returns the tuner's question about such a matrix multiplication.
    pub(crate) fn question(&self, space: ConfigSpace) -> KernelQuestion {
        let a = &self.a;
        let b = &self.b;
        let order =
            [a.inner == 1, b.inner != 1].map(|plain| if plain { "n" } else { "t" }).concat();
        let mut variant = format!("{}·{}→{} {order}", a.dtype, b.dtype, self.out);
        if self.spec.halves {
            variant.push_str(" halves");
        }
        if self.spec.bias_rows {
            variant.push_str(" by rows");
        }
        if let Some(windows) = &self.windows {
            variant.push_str(&format!(" windows {}", windows.operand()));
        }
        for (given, name) in [(self.bias.is_some(), " bias"), (self.more.is_some(), " more")] {
            if given {
                variant.push_str(name);
            }
        }
        if !self.spec.activation.name.is_empty() {
            variant.push_str(&format!(" {}", self.spec.activation.name));
        }
        let lengths = vec![("m", self.m), ("n", self.n), ("k", self.k), ("stack", self.products())];
        let exact = self.out == DataType::Fp32 && !self.in_halves();
        let tolerance = if exact { near::SUMS } else { near::HALVES };
        KernelQuestion { variant, lengths, space, tolerance }
    }

    /// Elements of the result.
    pub(crate) fn elements(&self) -> usize {
        self.products() * self.m * self.n
    }
}

impl MatMulOperand {
    /// Returns whether it is read along k: it lies that way, or along neither axis.
    pub(crate) fn lies_along(&self) -> bool {
        self.inner == 1 || self.outer != 1
    }

    /// Returns whether vectors of four along `inner` (or `outer`) start at multiples of four, for this many.
    pub(crate) fn quads(&self, inner: bool, k: usize) -> bool {
        let whole = |step: &usize| step.is_multiple_of(4);
        let (along, across) =
            if inner { (self.inner, self.outer) } else { (self.outer, self.inner) };
        along == 1
            && whole(&across)
            && self.batch.iter().all(whole)
            && (!inner || k.is_multiple_of(4))
    }
}

#[cfg(test)]
mod tests {
    use galatea_runtime::ValueShape;

    use super::*;

    fn problem(a: &[usize], b: &[usize], out: &[usize]) -> MatMulProblem {
        let of = |shape: &[usize]| Some(ValueShape::new(DataType::Fp32, shape.to_vec()));
        let shapes = NodeShapes {
            inputs: vec![of(a), of(b)],
            outputs: vec![of(out)],
            constants: vec![None, None],
        };
        MatMulProblem::new(MatMulSpec::PLAIN, &shapes).unwrap()
    }

    #[test]
    fn stacks_with_one_right_side_become_rows() {
        let found = problem(&[2, 3, 4, 5], &[5, 6], &[2, 3, 4, 6]);
        assert_eq!((found.m, found.n, found.k, found.products()), (24, 6, 5, 1));
        let found = problem(&[2, 1, 5], &[5, 6], &[2, 1, 6]);
        assert_eq!((found.m, found.a.outer, found.products()), (2, 5, 1));
    }

    #[test]
    fn axes_that_lie_behind_one_another_are_joined() {
        let found = problem(&[2, 3, 4, 5], &[2, 3, 5, 6], &[2, 3, 4, 6]);
        assert_eq!((found.batch.as_slice(), found.m), ([6].as_slice(), 4));
        assert_eq!(
            (found.a.batch.as_slice(), found.b.batch.as_slice()),
            ([20].as_slice(), [30].as_slice())
        );
        let found = problem(&[3, 1, 4, 5], &[2, 5, 6], &[3, 2, 4, 6]);
        assert_eq!(found.batch, [3, 2]);
        assert_eq!(
            (found.a.batch.as_slice(), found.b.batch.as_slice()),
            ([20, 0].as_slice(), [0, 30].as_slice())
        );
    }

    #[test]
    fn vectors_of_four_need_steps_of_four() {
        let found = problem(&[4, 8], &[8, 12], &[4, 12]);
        assert!(found.a.quads(true, 8) && found.b.quads(false, 8));
        let found = problem(&[4, 6], &[6, 9], &[4, 9]);
        assert!(!found.a.quads(true, 6) && !found.b.quads(false, 6));
    }
}
