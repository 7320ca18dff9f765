//! From a product and a tile to dispatches.

use std::sync::Arc;

use minijinja::value::merge_maps;
use minijinja::{Value, context};

use super::problem::{ImageWindows, MatMulOperand, MatMulProblem};
use crate::device::KernelShader;
use crate::kernel::{DispatchStep, ShaderBinding, fold, param, wgsl_float};
use crate::memory::DeviceBlock;
use crate::template::render;

/// Rows of tiles in a band.
const BAND: usize = 8;
/// Axes of the stack that a shader knows.
const AXES: usize = 3;

/// Division of a matrix multiplication among workgroups, and the shader that computes a tile.
pub(crate) struct ProductLaunch<'a> {
    pub(crate) name: &'static str,
    pub(crate) template: &'static str,
    /// Rows and columns of a tile, and elements of k that are read at a time.
    pub(crate) tile: [usize; 3],
    /// Workgroups that share a tile, each with a part of k.
    pub(crate) shares: usize,
    /// True for each of `A` and `B` that must be read along k, whatever its layout.
    pub(crate) inner: [bool; 2],
    /// Further context of the template.
    pub(crate) context: Value,
    pub(crate) problem: &'a MatMulProblem,
    /// Blocks of `B` that have anything but zeros, in the form that the template reads.
    pub(crate) zeros: Option<Arc<DeviceBlock>>,
}

/// Returns the template context of an operand; `inner` is true if it must be read along k.
fn operand(operand: &MatMulOperand, k: usize, inner: bool) -> Result<Value, String> {
    let inner = inner || operand.lies_along();
    let elem = wgsl_float(operand.dtype)?;
    Ok(context!(inner, elem, wide => operand.quads(inner, k)))
}

/// Returns whether rows of the result are seen as vectors of four.
fn wide_rows(problem: &MatMulProblem) -> bool {
    problem.n.is_multiple_of(4)
        && problem.bias.is_none_or(|(_, step)| step == 1 || problem.spec.bias_rows)
        && problem.more.as_ref().is_none_or(|more| more.quads(true, problem.n))
        && problem.windows.is_none_or(|own| !own.columns || own.pixels.is_multiple_of(4))
}

impl ProductLaunch<'_> {
    /// Adds the dispatches.
    ///
    /// # Errors
    /// Fails when lengths are beyond the device.
    pub(crate) fn run(self, step: &mut DispatchStep) -> Result<(), String> {
        let problem = self.problem;
        if problem.elements() == 0 {
            return Ok(());
        }
        let lead = problem.batch.len().saturating_sub(AXES);
        let (outer, _) = problem.batch.split_at(lead);
        let shares = if lead == 0 { self.share_count() } else { 1 };
        if let Some(more) = problem.under {
            step.in_place(more, 0);
        }
        if shares > 1 {
            let bytes = problem.elements().checked_mul(4 * shares).ok_or("sums are too many")?;
            let sums = step.scratch(bytes as u64);
            self.tiles(step, &[], shares, Some(sums))?;
            return self.reduce(step, shares, sums);
        }
        for number in 0..outer.iter().product::<usize>() {
            let mut rest = number;
            let mut index = vec![0; lead];
            for (at, &len) in index.iter_mut().zip(outer).rev() {
                (*at, rest) = (rest % len, rest / len);
            }
            self.tiles(step, &index, 1, None)?;
        }
        Ok(())
    }

    /// Workgroups that share a tile, of which none is without work.
    fn share_count(&self) -> usize {
        let steps = self.problem.k.div_ceil(self.tile[2]);
        let each = steps.div_ceil(self.shares.max(1)).max(1);
        steps.div_ceil(each).max(1)
    }

    /// Computes the tiles of all products that these indices of the outer axes lead to.
    fn tiles(
        &self,
        step: &mut DispatchStep,
        index: &[usize],
        shares: usize,
        sums: Option<usize>,
    ) -> Result<(), String> {
        let problem = self.problem;
        let wide = wide_rows(problem);
        let partial = sums.is_some();
        let mut bindings = vec![ShaderBinding::Input(0), ShaderBinding::Input(1)];
        let out = if partial { "f32" } else { wgsl_float(problem.out)? };
        let result = ProductEpilogue::new(problem, partial, &mut bindings)?;
        let zeros_at = bindings.len();
        bindings.extend(self.zeros.iter().cloned().map(ShaderBinding::Weights));
        bindings.push(sums.map_or(ShaderBinding::Output(0), ShaderBinding::Scratch));
        let [bm, bn, bk] = self.tile;
        let context = context!(
            a => operand(&problem.a, problem.k, self.inner[0])?,
            b => operand(&problem.b, problem.k, self.inner[1])?,
            edge => !problem.k.is_multiple_of(bk),
            filled => problem.windows.is_some_and(|own| !own.terms.is_multiple_of(bk)),
            out => context!(elem => out, wide),
            at => merge_maps([context!(zeros => zeros_at), result.numbers(&bindings)]),
            zeros => self.zeros.is_some(),
            partial, bm, bn, bk,
            band => BAND,
            ..merge_maps([result.context(problem), self.context.clone()])
        );
        let shader = KernelShader::new(self.name, render(self.template, context)?).proved();
        let total = problem
            .m
            .div_ceil(bm)
            .checked_mul(problem.n.div_ceil(bn))
            .and_then(|tiles| tiles.checked_mul(shares * self.products()))
            .ok_or("tiles are too many")?;
        let groups = fold(total)?;
        step.dispatch(shader, bindings, self.params(index, shares, total)?, groups);
        Ok(())
    }

    /// Products of one dispatch.
    fn products(&self) -> usize {
        self.problem.batch.iter().rev().take(AXES).product()
    }

    fn reduce(&self, step: &mut DispatchStep, shares: usize, sums: usize) -> Result<(), String> {
        let problem = self.problem;
        let wide = wide_rows(problem);
        let mut bindings = vec![ShaderBinding::Scratch(sums)];
        let result = ProductEpilogue::new(problem, false, &mut bindings)?;
        bindings.push(ShaderBinding::Output(0));
        let context = context!(
            reduce => true,
            partial => false,
            out => context!(elem => wgsl_float(problem.out)?, wide),
            at => result.numbers(&bindings),
            ..result.context(problem)
        );
        let source = render(include_str!("reduce.wgsl"), context)?;
        let shader = KernelShader::new("matmul-f32-reduce", source).proved();
        let rows = problem.products() * problem.m;
        let groups = fold((rows * problem.n.div_ceil(4)).div_ceil(64))?;
        step.dispatch(shader, bindings, self.params(&[], shares, 0)?, groups);
        Ok(())
    }

    /// The parameters in the order of `bindings.wgsl`.
    pub(super) fn params(
        &self,
        index: &[usize],
        shares: usize,
        total: usize,
    ) -> Result<Vec<u32>, String> {
        let problem = self.problem;
        let [bm, bn, bk] = self.tile;
        let share = problem.k.div_ceil(bk).div_ceil(shares).max(1) * bk;
        let lens = inner_axes(&problem.batch, 1);
        let mut words = vec![problem.m, problem.n, problem.k, share, shares];
        words.extend([problem.m.div_ceil(bm), problem.n.div_ceil(bn), total, self.products()]);
        words.extend([lens[1], lens[2]]);
        let start = |operand: &MatMulOperand| -> usize {
            let steps = index.iter().zip(&operand.batch).map(|(at, step)| at * step);
            operand.start + steps.sum::<usize>()
        };
        for operand in [Some(&problem.a), Some(&problem.b), problem.more.as_ref()] {
            let Some(operand) = operand else {
                words.extend([0; 6]);
                continue;
            };
            words.push(start(operand));
            words.extend(inner_axes(&operand.batch, 0));
            words.extend([operand.outer, operand.inner]);
        }
        words.push(problem.bias.map_or(0, |(_, step)| step));
        let number = index.iter().zip(&problem.batch).fold(0, |all, (at, len)| all * len + at);
        words.push(number * self.products() * problem.m * problem.n);
        let mut words: Vec<u32> = words.into_iter().map(param).collect::<Result<_, _>>()?;
        // Indices of elements are beyond 32 bits where these are.
        let lie = |columns: bool| problem.windows.is_none_or(|own| own.columns != columns);
        let operands = [(lie(false), problem.m), (lie(true), problem.n)];
        let operands = operands.into_iter().filter(|(lie, _)| *lie).map(|(_, rows)| rows);
        for count in operands.map(|rows| rows * problem.k).chain([problem.elements()]) {
            param(count)?;
        }
        let spec = &problem.spec;
        let floats = [spec.alpha, spec.beta, spec.activation.p, spec.activation.q];
        words.extend(floats.map(f32::to_bits));
        for word in problem.windows.iter().flat_map(ImageWindows::params) {
            words.push(param(word)?);
        }
        Ok(words)
    }
}

/// The last axes, with `fill` before them where there are fewer.
fn inner_axes(all: &[usize], fill: usize) -> [usize; AXES] {
    let mut last = [fill; AXES];
    for (to, from) in last.iter_mut().rev().zip(all.iter().rev()) {
        *to = *from;
    }
    last
}

/// Operands that are added to the result, as a shader sees them.
struct ProductEpilogue {
    bias: &'static str,
    more: &'static str,
    bias_at: usize,
    more_at: usize,
}

impl ProductEpilogue {
    /// Binds what is added to a result that is not `partial`.
    fn new(
        problem: &MatMulProblem,
        partial: bool,
        bindings: &mut Vec<ShaderBinding>,
    ) -> Result<Self, String> {
        let mut all = Self { bias: "", more: "", bias_at: 0, more_at: 0 };
        if partial {
            return Ok(all);
        }
        if let (Some(index), Some((dtype, _))) = (problem.spec.bias, problem.bias) {
            (all.bias, all.bias_at) = (wgsl_float(dtype)?, bindings.len());
            bindings.push(ShaderBinding::Input(index));
        }
        if let (Some(index), Some(more)) = (problem.spec.more, &problem.more) {
            (all.more, all.more_at) = (wgsl_float(more.dtype)?, bindings.len());
            bindings.push(ShaderBinding::Input(index));
        }
        Ok(all)
    }

    /// Numbers of the bindings, of which the output is the last.
    fn numbers(&self, bindings: &[ShaderBinding]) -> Value {
        let out = bindings.len() - 1;
        context!(bias => self.bias_at, more => self.more_at, out, params => out + 1)
    }

    fn context(&self, problem: &MatMulProblem) -> Value {
        context!(
            bias => self.bias,
            bias_rows => problem.spec.bias_rows,
            windows => problem.windows.map_or("", |own| own.operand()),
            more => self.more,
            gated => problem.spec.gated,
            activation => problem.spec.activation.name
        )
    }
}
