//! Chains of functions of elements, tile by tile: what lies between two functions of a chain stays
//! in the first-level cache.

use super::{BinaryFunction, COSTLY_GRAIN, ScalarFunction, binary, unary};
use crate::KernelContext;
use crate::memory::{DisjointSlice, with_scratch};

/// Elements that a chain handles at a time.
const TILE: usize = 512;

/// Where a step's operand comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainOperand {
    /// An input of the chain.
    Input(usize),
    /// The result of an earlier step.
    Step(usize),
}

/// One function of a chain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ChainStep {
    /// A function of one element.
    Unary(ScalarFunction, ChainOperand),
    /// A function of two elements.
    Binary(BinaryFunction, ChainOperand, ChainOperand),
}

impl ChainStep {
    fn operands(&self) -> impl Iterator<Item = ChainOperand> {
        let (first, second) = match *self {
            Self::Unary(_, a) => (a, None),
            Self::Binary(_, a, b) => (a, Some(b)),
        };
        std::iter::once(first).chain(second)
    }
}

/// How an input is spread over the result: for each axis of the result its length and the distance
/// between neighbours in the input, 0 where one element serves the whole axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChainSpread {
    /// Same shape as the result.
    Same,
    /// By axes, the last one adjacent or repeated.
    Axes(Vec<(usize, usize)>),
}

impl ChainSpread {
    /// How a value of one shape is spread over a result; `None` where the shapes do not broadcast.
    #[must_use]
    pub fn new(own: &[usize], result: &[usize]) -> Option<Self> {
        let missing = result.len().checked_sub(own.len())?;
        let mut axes: Vec<(usize, usize)> = Vec::new();
        let mut step = 1;
        for (axis, &len) in result.iter().enumerate().rev() {
            let length = axis.checked_sub(missing).map_or(1, |axis| own[axis]);
            let stride = match length {
                _ if len == 1 && length == 1 => continue,
                1 => 0,
                _ if length == len => step,
                _ => return None,
            };
            step *= length;
            // Neighbouring axes that go on from each other, or repeat together, count as one.
            match axes.last_mut() {
                Some((inner, inner_stride))
                    if stride == *inner * *inner_stride && (stride > 0) == (*inner_stride > 0) =>
                {
                    *inner *= len;
                }
                _ => axes.push((len, stride)),
            }
        }
        axes.reverse();
        let same = axes.is_empty() || matches!(axes.as_slice(), [(_, 1)]);
        Some(if same { Self::Same } else { Self::Axes(axes) })
    }

    /// How many elements an input must have for a result of `len`.
    fn needs(&self, len: usize) -> usize {
        match self {
            Self::Same => len,
            Self::Axes(_) if len == 0 => 0,
            Self::Axes(axes) => {
                1 + axes.iter().map(|&(len, stride)| (len - 1) * stride).sum::<usize>()
            }
        }
    }

    /// Writes the input's elements for the results from `start` on.
    fn gather(axes: &[(usize, usize)], data: &[f32], start: usize, tile: &mut [f32]) {
        let Some((&(inner, stride), outer)) = axes.split_last() else { return };
        let mut done = 0;
        while done < tile.len() {
            let at = start + done;
            let mut row = at / inner;
            let column = at % inner;
            let mut from = column * stride;
            for &(len, stride) in outer.iter().rev() {
                from += row % len * stride;
                row /= len;
            }
            let run = (inner - column).min(tile.len() - done);
            let part = &mut tile[done..done + run];
            match stride {
                0 => part.fill(data[from]),
                _ => {
                    for (value, &x) in part.iter_mut().zip(data[from..].iter().step_by(stride)) {
                        *value = x;
                    }
                }
            }
            done += run;
        }
    }
}

/// A chain of functions whose last one gives the result.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionChain {
    steps: Vec<ChainStep>,
    /// The tile that each step writes; the last one writes the result.
    tiles: Vec<usize>,
    count: usize,
    inputs: usize,
}

impl FunctionChain {
    /// A chain of steps over `inputs` inputs; `None` when there is no step, there are more than
    /// [`FunctionChain::MAX_INPUTS`] inputs, or a step reads an input or step that is not there.
    #[must_use]
    pub fn new(steps: Vec<ChainStep>, inputs: usize) -> Option<Self> {
        let mut last_use = vec![0; steps.len()];
        for (index, step) in steps.iter().enumerate() {
            for operand in step.operands() {
                match operand {
                    ChainOperand::Input(input) if input < inputs => {}
                    ChainOperand::Step(step) if step < index => last_use[step] = index,
                    _ => return None,
                }
            }
        }
        let mut tiles = Vec::new();
        let mut free = Vec::new();
        let mut count = 0;
        for (index, step) in steps.iter().enumerate() {
            // A step may write over an operand that nobody reads after it.
            for operand in step.operands() {
                if let ChainOperand::Step(read) = operand
                    && last_use[read] == index
                    && !free.contains(&tiles[read])
                {
                    free.push(tiles[read]);
                }
            }
            tiles.push(free.pop().unwrap_or_else(|| {
                count += 1;
                count - 1
            }));
        }
        let fits = !steps.is_empty() && inputs <= Self::MAX_INPUTS;
        fits.then_some(Self { steps, tiles, count, inputs })
    }
}

/// An input of a chain; without data it is the result's own memory, to be written over.
#[derive(Clone, Copy, Debug)]
pub struct ChainInput<'a> {
    /// The elements.
    pub data: Option<&'a [f32]>,
    /// How they are spread over the result.
    pub spread: &'a ChainSpread,
}

/// Applies a chain to every element.
///
/// # Panics
/// Panics when the number of inputs is not the chain's, an input is shorter than its spread says,
/// or an input without data is not spread as the result.
pub fn chain(
    exec: KernelContext<'_>,
    chain: &FunctionChain,
    inputs: &[ChainInput<'_>],
    y: &mut [f32],
) {
    assert!(inputs.len() == chain.inputs, "chain: {} inputs of {}", inputs.len(), chain.inputs);
    for input in inputs {
        let fits = match input.data {
            Some(data) => data.len() >= input.spread.needs(y.len()),
            None => *input.spread == ChainSpread::Same,
        };
        assert!(fits, "chain: an input does not reach over {} elements", y.len());
    }
    let len = y.len();
    let y = DisjointSlice::new(y);
    let spread = inputs.iter().filter(|input| *input.spread != ChainSpread::Same).count();
    exec.pool.run_ranges(len, COSTLY_GRAIN, |range| {
        with_scratch((chain.count + spread) * TILE, |scratch| {
            let tiles = DisjointSlice::new(scratch);
            for start in range.clone().step_by(TILE) {
                let n = TILE.min(range.end - start);
                // SAFETY: ranges are disjoint parts of y, and tiles are this task's own.
                unsafe { tile(exec, chain, inputs, tiles, y.at(start), start, n) };
            }
        });
    });
}

/// Runs all steps over `n` elements from `start` on, which `y` points to.
///
/// # Safety
/// `y` is valid for `n` values that no other task uses; `tiles` has room for the chain's tiles and
/// the spread inputs; the inputs were checked against the whole result.
unsafe fn tile(
    exec: KernelContext<'_>,
    chain: &FunctionChain,
    inputs: &[ChainInput<'_>],
    tiles: DisjointSlice<f32>,
    y: DisjointSlice<f32>,
    start: usize,
    n: usize,
) {
    let mut spread = chain.count;
    let mut sources = [std::ptr::null::<f32>(); FunctionChain::MAX_INPUTS];
    for (source, input) in sources.iter_mut().zip(inputs) {
        *source = match (input.data, input.spread) {
            (None, _) => y.ptr().cast_const(),
            (Some(data), ChainSpread::Same) => data[start..start + n].as_ptr(),
            (Some(data), ChainSpread::Axes(axes)) => {
                let at = spread * TILE;
                // SAFETY: the scratch has a tile for each spread input.
                let part = unsafe { tiles.range(at..at + n) };
                ChainSpread::gather(axes, data, start, part);
                spread += 1;
                part.as_ptr()
            }
        };
    }
    for (index, step) in chain.steps.iter().enumerate() {
        let from = |operand: ChainOperand| match operand {
            ChainOperand::Input(input) => sources[input],
            ChainOperand::Step(step) => tiles.at(chain.tiles[step] * TILE).ptr().cast_const(),
        };
        let last = index + 1 == chain.steps.len();
        let to = if last { y } else { tiles.at(chain.tiles[index] * TILE) }.ptr();
        // SAFETY: every place has n values; a source is the target itself or apart from it.
        unsafe {
            match *step {
                ChainStep::Unary(f, a) => unary::part(exec, f, from(a), to, n),
                ChainStep::Binary(f, a, b) => {
                    binary::part(exec, f, from(a), from(b), false, to, n);
                }
            }
        }
    }
}

impl FunctionChain {
    /// The most inputs of a chain.
    pub const MAX_INPUTS: usize = 32;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::gemm::test_values as values;
    use crate::{Isa, ThreadPool};

    /// The same chain, element by element.
    fn expected(
        steps: &[ChainStep],
        inputs: &[(Vec<f32>, Vec<usize>)],
        shape: &[usize],
    ) -> Vec<f32> {
        let len: usize = shape.iter().product();
        let element = |input: &(Vec<f32>, Vec<usize>), at: usize| {
            let mut rest = at;
            let mut index = 0;
            let mut step = 1;
            let missing = shape.len() - input.1.len();
            for axis in (0..shape.len()).rev() {
                let place = rest % shape[axis];
                rest /= shape[axis];
                if axis >= missing && input.1[axis - missing] != 1 {
                    index += place * step;
                    step *= input.1[axis - missing];
                }
            }
            input.0[index]
        };
        (0..len)
            .map(|at| {
                let mut results: Vec<f32> = Vec::new();
                for step in steps {
                    let read = |operand| match operand {
                        ChainOperand::Input(input) => element(&inputs[input], at),
                        ChainOperand::Step(step) => results[step],
                    };
                    let result = match *step {
                        ChainStep::Unary(ScalarFunction::Neg, a) => -read(a),
                        ChainStep::Unary(_, a) => read(a).abs(),
                        ChainStep::Binary(BinaryFunction::Mul, a, b) => read(a) * read(b),
                        ChainStep::Binary(BinaryFunction::Sub, a, b) => read(a) - read(b),
                        ChainStep::Binary(_, a, b) => read(a) + read(b),
                    };
                    results.push(result);
                }
                results.pop().unwrap()
            })
            .collect()
    }

    fn operand(number: usize, inputs: usize, steps: usize) -> ChainOperand {
        let number = number % (inputs + steps);
        if number < inputs {
            ChainOperand::Input(number)
        } else {
            ChainOperand::Step(number - inputs)
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn chains_equal_the_same_steps_element_by_element(
            shape in prop::collection::vec(1_usize..12, 1..4), wide in 1_usize..700,
            spread in prop::collection::vec((0_usize..16, 0_usize..4), 1..4),
            functions in prop::collection::vec((0_usize..5, 0_usize..99, 0_usize..99), 1..8),
            in_place in any::<bool>(),
        ) {
            let mut shape = shape;
            *shape.last_mut().unwrap() = wide;
            let mut inputs = vec![(values(shape.iter().product(), 9), shape.clone())];
            for (&(repeated, missing), seed) in spread.iter().zip(0..) {
                let own: Vec<usize> = shape.iter().enumerate().skip(missing.min(shape.len()))
                    .map(|(axis, &len)| if repeated >> axis & 1 == 1 { 1 } else { len }).collect();
                inputs.push((values(own.iter().product(), seed), own));
            }
            let steps: Vec<ChainStep> = functions.iter().enumerate().map(|(at, &(f, a, b))| {
                let a = operand(a, inputs.len(), at);
                let b = operand(b, inputs.len(), at);
                match f {
                    0 => ChainStep::Unary(ScalarFunction::Neg, a),
                    1 => ChainStep::Unary(ScalarFunction::Abs, a),
                    2 => ChainStep::Binary(BinaryFunction::Mul, a, b),
                    3 => ChainStep::Binary(BinaryFunction::Sub, a, b),
                    _ => ChainStep::Binary(BinaryFunction::Add, a, b),
                }
            }).collect();
            let made = FunctionChain::new(steps.clone(), inputs.len()).unwrap();
            let want = expected(&steps, &inputs, &shape);
            let spreads: Vec<ChainSpread> =
                inputs.iter().map(|(_, own)| ChainSpread::new(own, &shape).unwrap()).collect();
            let pool = ThreadPool::new(2);
            for isa in Isa::available() {
                let mut y = if in_place { inputs[0].0.clone() } else { vec![f32::NAN; want.len()] };
                let given: Vec<ChainInput<'_>> = inputs.iter().zip(&spreads).enumerate()
                    .map(|(at, ((data, _), spread))| {
                        let data = (at > 0 || !in_place).then_some(data.as_slice());
                        ChainInput { data, spread }
                    })
                    .collect();
                chain(KernelContext { pool: &pool, isa }, &made, &given, &mut y);
                prop_assert_eq!(&y, &want);
            }
        }
    }

    #[test]
    fn steps_share_tiles_and_wrong_programs_are_refused() {
        use ChainOperand::{Input, Step};
        let chain = |steps: &[ChainStep]| FunctionChain::new(steps.to_vec(), 1);
        let line: Vec<ChainStep> = (0..6)
            .map(|at| {
                let from = if at == 0 { Input(0) } else { Step(at - 1) };
                ChainStep::Unary(ScalarFunction::Neg, from)
            })
            .collect();
        assert_eq!(chain(&line).unwrap().count, 1);
        assert_eq!(chain(&[]), None);
        assert_eq!(chain(&[ChainStep::Unary(ScalarFunction::Neg, Input(1))]), None);
        assert_eq!(chain(&[ChainStep::Unary(ScalarFunction::Neg, Step(0))]), None);
        assert_eq!(ChainSpread::new(&[2], &[3]), None);
    }
}
