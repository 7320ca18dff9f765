//! The ways to compute a product, and which one is taken.

use super::cooperative::CooperativeConfig;
use super::problem::Problem;
use super::spec::Spec;
use super::tiled::TiledConfig;
use crate::device::Capabilities;
use crate::kernel::{Shapes, Step};

/// How the operands of a plain product are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turns {
    /// Whether `A` is transposed.
    pub a: bool,
    /// Whether `B` is transposed.
    pub b: bool,
    /// Whether operands may be rounded to FP16 where they are multiplied.
    pub halves: bool,
}

impl Turns {
    fn problem(self, shapes: &Shapes) -> Result<Problem, String> {
        let mut spec = Spec { halves: self.halves, ..Spec::PLAIN };
        (spec.a.matrix, spec.b.matrix) = (self.a, self.b);
        Problem::new(spec, shapes)
    }
}

/// A way to compute a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Variant {
    /// By tiles in workgroup memory; so many workgroups share a tile.
    Tiled(TiledConfig, usize),
    /// The same by cooperative matrices of FP16.
    Cooperative(CooperativeConfig, usize),
}

/// Workgroups that keep a device busy.
const BUSY: usize = 128;
/// The least elements of k for which a workgroup is worth its sums' way through memory.
const SHARE: usize = 256;

impl Variant {
    /// All ways that a device has, without shares.
    #[must_use]
    pub fn all(capabilities: &Capabilities) -> Vec<Self> {
        let tiled = TiledConfig::ALL.iter().filter(|config| config.fits(capabilities));
        let tiled = tiled.map(|&config| Self::Tiled(config, 1));
        let cooperative = CooperativeConfig::ALL.iter().filter(|config| config.fits(capabilities));
        tiled.chain(cooperative.map(|&config| Self::Cooperative(config, 1))).collect()
    }

    /// Whether operands are rounded to FP16 where they are multiplied, if they are not FP16.
    #[must_use]
    pub fn rounds(&self) -> bool {
        matches!(self, Self::Cooperative(..))
    }

    /// The way for a product.
    pub(crate) fn choose(problem: &Problem, capabilities: &Capabilities) -> Self {
        if problem.in_halves() && problem.m > 8 && problem.n > 8 {
            let order = [(128, 128), (64, 128), (64, 64), (32, 64), (32, 32)];
            let all: Vec<_> =
                CooperativeConfig::ALL.iter().filter(|one| one.fits(capabilities)).collect();
            let tile = |config: &&CooperativeConfig| (config.tile[0], config.tile[1]);
            let sized = order.iter().filter_map(|&size| all.iter().find(|one| tile(one) == size));
            if let Some((config, shares)) = fill(problem, sized.map(|&&one| (one, tile(&&one)))) {
                return Self::Cooperative(config, shares);
            }
        }
        let order: &[(usize, usize)] = match problem.m {
            0..=16 => &[(16, 64)],
            _ => &[(128, 128), (64, 64), (32, 64), (32, 32)],
        };
        let all: Vec<_> = TiledConfig::ALL.iter().filter(|one| one.fits(capabilities)).collect();
        let tile = |config: &&TiledConfig| (config.rows, config.columns);
        let sized = order.iter().filter_map(|&size| all.iter().find(|one| tile(one) == size));
        match fill(problem, sized.map(|&&one| (one, tile(&&one)))) {
            Some((config, shares)) => Self::Tiled(config, shares),
            None => Self::Tiled(TiledConfig::ALL[0], 1),
        }
    }

    pub(crate) fn run(
        &self,
        problem: &Problem,
        capabilities: &Capabilities,
        step: &mut Step,
    ) -> Result<(), String> {
        match self {
            Self::Tiled(config, shares) => config.run(problem, *shares, step),
            Self::Cooperative(config, shares) => config.run(problem, *shares, capabilities, step),
        }
    }

    /// The way that a plain product of these shapes takes.
    ///
    /// # Errors
    /// When lengths do not meet.
    pub fn chosen(
        shapes: &Shapes,
        turns: Turns,
        capabilities: &Capabilities,
    ) -> Result<Self, String> {
        Ok(Self::choose(&turns.problem(shapes)?, capabilities))
    }

    /// The dispatches of a plain product of these shapes.
    ///
    /// # Errors
    /// When lengths do not meet or are beyond the device.
    pub fn step(
        &self,
        shapes: &Shapes,
        turns: Turns,
        capabilities: &Capabilities,
    ) -> Result<Step, String> {
        let mut step = Step::default();
        self.run(&turns.problem(shapes)?, capabilities, &mut step)?;
        Ok(step)
    }
}

/// The first of these tiles, the largest first, with which a product keeps a device busy, and how many
/// workgroups share each.
fn fill<T>(
    problem: &Problem,
    sized: impl Iterator<Item = (T, (usize, usize))>,
) -> Option<(T, usize)> {
    let mut found = None;
    for (config, (rows, columns)) in sized {
        let tiles = problem.m.div_ceil(rows) * problem.n.div_ceil(columns) * problem.products();
        let shares = (BUSY / tiles.max(1)).min(problem.k / SHARE).max(1);
        found = Some((config, shares));
        if tiles >= BUSY {
            break;
        }
    }
    found
}
