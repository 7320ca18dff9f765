//! The ways to compute a product, and which one is taken.

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
        tiled.map(|&config| Self::Tiled(config, 1)).collect()
    }

    /// The way for a product.
    pub(crate) fn choose(problem: &Problem, capabilities: &Capabilities) -> Self {
        let tiles = |config: &TiledConfig| {
            let rows = problem.m.div_ceil(config.rows);
            rows * problem.n.div_ceil(config.columns) * problem.products()
        };
        let by_size = |rows: usize, columns: usize| {
            let mut all = TiledConfig::ALL.iter().filter(|config| config.fits(capabilities));
            all.find(|config| (config.rows, config.columns) == (rows, columns))
        };
        let low = problem.m <= 16;
        let order: &[(usize, usize)] =
            if low { &[(16, 64)] } else { &[(128, 128), (64, 64), (32, 64), (32, 32)] };
        let fitting = order.iter().filter_map(|&(rows, columns)| by_size(rows, columns));
        let mut found = TiledConfig::ALL[0];
        for config in fitting {
            found = *config;
            if tiles(config) >= BUSY {
                break;
            }
        }
        let shares = match tiles(&found) {
            0 => 1,
            tiles => (BUSY / tiles).min(problem.k / SHARE).max(1),
        };
        Self::Tiled(found, shares)
    }

    pub(crate) fn run(&self, problem: &Problem, step: &mut Step) -> Result<(), String> {
        match self {
            Self::Tiled(config, shares) => config.run(problem, *shares, step),
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
    pub fn step(&self, shapes: &Shapes, turns: Turns) -> Result<Step, String> {
        let mut step = Step::default();
        self.run(&turns.problem(shapes)?, &mut step)?;
        Ok(step)
    }
}
