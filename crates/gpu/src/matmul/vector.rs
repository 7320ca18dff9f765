//! Products with few rows or few columns: the other operand is read once, and that takes the time.

use std::sync::Arc;

use minijinja::context;

use super::launch::ProductLaunch;
use super::problem::MatMulProblem;
use crate::device::GpuCapabilities;
use crate::kernel::DispatchStep;
use crate::memory::DeviceBlock;

/// The most rows or columns that are few.
pub(super) const FEW: usize = 8;

/// Zeros of the operand with many rows, on the device.
#[derive(Clone, Debug)]
pub(super) enum MatrixZeros {
    /// A bit for each block that has anything else.
    Blocks(Arc<DeviceBlock>),
    /// Places of the two of each four elements that are kept.
    Half(Arc<DeviceBlock>),
}

/// Division among threads of the operand that has many rows or columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VectorConfig {
    /// Threads of a workgroup.
    pub threads: usize,
    /// Threads that compute the same rows, where these lie along k.
    pub team: usize,
    /// Rows that a team computes.
    pub rows: usize,
    /// Threads beside one another, where columns lie side by side; the others take slices of k.
    pub across: usize,
    /// True if sums are exchanged within subgroups.
    pub subgroups: bool,
}

impl VectorConfig {
    const fn new(threads: usize, team: usize, rows: usize, across: usize, subgroups: bool) -> Self {
        Self { threads, team, rows, across, subgroups }
    }

    /// All that are tried, the usual one first.
    pub const ALL: &'static [Self] = &[
        Self::new(256, 32, 4, 32, true),
        Self::new(256, 32, 4, 32, false),
        Self::new(128, 32, 4, 16, true),
        Self::new(128, 64, 4, 32, true),
        Self::new(256, 64, 4, 64, true),
        Self::new(256, 64, 4, 16, false),
        Self::new(256, 16, 4, 8, true),
    ];

    /// Returns whether a device can run it.
    #[must_use]
    pub fn fits(&self, capabilities: &GpuCapabilities) -> bool {
        let within = u32::try_from(self.threads).is_ok_and(|t| t <= capabilities.workgroup_threads);
        let small = |least: u32| usize::try_from(least).is_ok_and(|l| l <= self.team);
        within && (!self.subgroups || capabilities.subgroup.is_some_and(|(least, _)| small(least)))
    }

    /// Returns whether one operand has few rows or columns, and the other has a layout that a shader can read.
    pub(crate) fn takes(problem: &MatMulProblem) -> bool {
        problem.m <= FEW || problem.n <= FEW && problem.a.inner == 1
    }

    /// Rows or columns of the other operand for a workgroup, and elements of k for a turn of its threads.
    fn tile(&self, along: bool) -> (usize, usize) {
        match along {
            true => (self.threads / self.team * self.rows, self.team * 4),
            false => (self.across * 4, self.threads / self.across * 4),
        }
    }

    /// Returns whether the operand with many rows lies along k.
    fn along(problem: &MatMulProblem) -> bool {
        problem.m > FEW || problem.b.inner == 1 || problem.b.outer != 1
    }

    /// Workgroups that compute different parts of a product.
    pub(crate) fn workgroups(&self, problem: &MatMulProblem) -> usize {
        let many = if problem.m <= FEW { problem.n } else { problem.m };
        many.div_ceil(self.tile(Self::along(problem)).0) * problem.products()
    }

    /// Adds the dispatches of a product whose parts are shared by so many workgroups.
    pub(crate) fn run(
        &self,
        problem: &MatMulProblem,
        shares: usize,
        capabilities: &GpuCapabilities,
        step: &mut DispatchStep,
    ) -> Result<(), String> {
        self.launch(problem, shares, None, capabilities).run(step)
    }

    /// The same of a few rows with a matrix that has zeros.
    pub(super) fn run_sparse(
        &self,
        problem: &MatMulProblem,
        zeros: MatrixZeros,
        capabilities: &GpuCapabilities,
        step: &mut DispatchStep,
    ) -> Result<(), String> {
        let shares = self.shares(problem);
        self.launch(problem, shares, Some(zeros), capabilities).run(step)
    }

    fn launch<'a>(
        &self,
        problem: &'a MatMulProblem,
        shares: usize,
        zeros: Option<MatrixZeros>,
        capabilities: &GpuCapabilities,
    ) -> ProductLaunch<'a> {
        let by_row = problem.m <= FEW;
        let along = Self::along(problem);
        let few = if by_row { problem.m } else { problem.n }.clamp(1, FEW).next_power_of_two();
        let (many, deep) = self.tile(along);
        let tile = if by_row { [few, many, deep] } else { [many, few, deep] };
        let (w, x) = if by_row { ("b", "a") } else { ("a", "b") };
        let least = capabilities.subgroup.map_or(1, |(least, _)| least.max(1));
        let context = context!(
            cell => "f32",
            few, w, x, along, least,
            half => matches!(zeros, Some(MatrixZeros::Half(_))),
            threads => self.threads,
            team => self.team,
            rows => self.rows,
            across => self.across,
            slices => self.threads / self.across,
            subgroups => self.subgroups
        );
        let name = match (&zeros, along) {
            (None, true) => "matmul-f32-rows",
            (None, false) => "matmul-f32-columns",
            (Some(MatrixZeros::Half(_)), _) => "matmul-f32-rows-half",
            (Some(MatrixZeros::Blocks(_)), true) => "matmul-f32-rows-sparse",
            (Some(MatrixZeros::Blocks(_)), false) => "matmul-f32-columns-sparse",
        };
        let zeros = zeros.map(|zeros| match zeros {
            MatrixZeros::Blocks(block) | MatrixZeros::Half(block) => block,
        });
        let template = include_str!("vector.wgsl");
        let inner = [by_row, !by_row];
        ProductLaunch { name, template, tile, shares, inner, context, problem, zeros }
    }
}
