//! The ways to compute a product, and which one is taken.

use galatea_runtime::tune::{ConfigAxis, ConfigSpace};

use super::cooperative::CooperativeConfig;
use super::estimate;
use super::problem::MatMulProblem;
use super::spec::MatMulSpec;
use super::tiled::TileSizes;
use super::vector::VectorConfig;
use crate::choices::{KernelFamily, label, ways};
use crate::device::GpuCapabilities;
use crate::kernel::DispatchStep;
use galatea_runtime::NodeShapes;

/// Storage of the operands of a plain matrix multiplication.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransposedOperands {
    /// True if `A` is transposed.
    pub a: bool,
    /// True if `B` is transposed.
    pub b: bool,
    /// True if operands may be rounded to FP16 where they are multiplied.
    pub halves: bool,
}

impl TransposedOperands {
    fn problem(self, shapes: &NodeShapes) -> Result<MatMulProblem, String> {
        let mut spec = MatMulSpec { halves: self.halves, ..MatMulSpec::PLAIN };
        (spec.a.matrix, spec.b.matrix) = (self.a, self.b);
        MatMulProblem::new(spec, shapes)
    }
}

/// A way to compute a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatMulVariant {
    /// By tiles in workgroup memory; so many workgroups share a tile.
    Tiled(TileSizes, usize),
    /// The same by cooperative matrices of FP16.
    Cooperative(CooperativeConfig, usize),
    /// Few rows or columns at a time; so many workgroups share k.
    Vector(VectorConfig, usize),
}

/// Workgroups that keep a device busy.
const BUSY: usize = 96;
/// The least elements of k for which a workgroup is worth its sums' way through memory.
const SHARE: usize = 512;

/// Workgroups that may share a tile where that is measured, and the least elements of k for each.
const SHARES: &[usize] = &[1, 2, 4, 8, 16];
const SHARED: usize = 128;

/// Products, as records of measurements name them.
const FAMILY: KernelFamily = KernelFamily::new(
    "matmul",
    &[
        include_str!("activation.wgsl"),
        include_str!("bindings.wgsl"),
        include_str!("cooperative.wgsl"),
        include_str!("operands.wgsl"),
        include_str!("reduce.wgsl"),
        include_str!("result.wgsl"),
        include_str!("tiled.wgsl"),
        include_str!("vector.wgsl"),
        include_str!("work.wgsl"),
    ],
);

impl VectorConfig {
    /// Workgroups that share k.
    pub(super) fn shares(&self, problem: &MatMulProblem) -> usize {
        let groups = self.workgroups(problem).max(1);
        (BUSY * 4 / groups).min(problem.k / SHARE).max(1)
    }
}

impl MatMulVariant {
    /// All ways that a device has, without shares.
    #[must_use]
    pub fn all(capabilities: &GpuCapabilities) -> Vec<Self> {
        let tiled = TileSizes::ALL.iter().filter(|config| config.fits(capabilities));
        let tiled = tiled.map(|&config| Self::Tiled(config, 1));
        let cooperative = CooperativeConfig::ALL.iter().filter(|config| config.fits(capabilities));
        tiled.chain(cooperative.map(|&config| Self::Cooperative(config, 1))).collect()
    }

    /// The ways that are for few rows or columns, where a plain product has these.
    ///
    /// # Errors
    /// Fails when lengths do not meet.
    pub fn few(
        shapes: &NodeShapes,
        turns: TransposedOperands,
        capabilities: &GpuCapabilities,
    ) -> Result<Vec<Self>, String> {
        if !VectorConfig::takes(&turns.problem(shapes)?) {
            return Ok(Vec::new());
        }
        let fitting = VectorConfig::ALL.iter().filter(|config| config.fits(capabilities));
        Ok([1, 4, 16]
            .into_iter()
            .flat_map(|shares| fitting.clone().map(move |&one| Self::Vector(one, shares)))
            .collect())
    }

    /// The same with so many workgroups that share a tile.
    #[must_use]
    pub fn shared(self, shares: usize) -> Self {
        match self {
            Self::Tiled(config, _) => Self::Tiled(config, shares),
            Self::Cooperative(config, _) => Self::Cooperative(config, shares),
            Self::Vector(config, _) => Self::Vector(config, shares),
        }
    }

    /// Returns whether operands that are not FP16 are rounded to it where they are multiplied.
    #[must_use]
    pub fn rounds(&self) -> bool {
        matches!(self, Self::Cooperative(..))
    }

    /// The way for a product.
    pub(crate) fn choose(problem: &MatMulProblem, capabilities: &GpuCapabilities) -> Self {
        if VectorConfig::takes(problem)
            && let Some(config) = VectorConfig::ALL.iter().find(|one| one.fits(capabilities))
        {
            return Self::Vector(*config, config.shares(problem));
        }
        let matrices = problem.in_halves() && problem.m > 8 && problem.n > 8;
        if matrices && let Some((config, shares)) = estimate::least(problem, capabilities) {
            return Self::Cooperative(config, shares);
        }
        let order: &[(usize, usize)] = match problem.m {
            0..=16 => &[(16, 64)],
            _ => &[(128, 128), (64, 64), (32, 64), (32, 32)],
        };
        let all: Vec<_> = TileSizes::ALL.iter().filter(|one| one.fits(capabilities)).collect();
        let tile = |config: &&TileSizes| (config.rows, config.columns);
        let sized = order.iter().filter_map(|&size| all.iter().find(|one| tile(one) == size));
        match fill(problem, sized.map(|&&one| (one, tile(&&one)))) {
            Some((config, shares)) => Self::Tiled(config, shares),
            None => Self::Tiled(TileSizes::ALL[0], 1),
        }
    }

    /// The way that was measured the fastest for such a product, or the one that sizes and device suggest.
    pub(crate) fn tuned(
        problem: &MatMulProblem,
        capabilities: &GpuCapabilities,
        step: &mut DispatchStep,
    ) -> Self {
        let usual = Self::choose(problem, capabilities);
        let others = || Self::sensible(problem, capabilities);
        let shares = |count: &usize| *count == 1 || problem.k >= SHARED * count;
        let shares = || SHARES.iter().copied().filter(shares);
        let found = step.choose(&FAMILY, || {
            let auto = std::iter::once("auto".to_owned());
            let space = ConfigSpace::new(vec![
                ways("way", others().iter().map(Self::label)),
                ConfigAxis {
                    name: "shares".to_owned(),
                    labels: auto.chain(shares().map(|count| count.to_string())).collect(),
                    ordered: true,
                },
            ]);
            problem.question(space)
        });
        let per_way = shares().count() + 1;
        let way = found / per_way;
        let share = found % per_way;
        let chosen = match way.checked_sub(1).and_then(|way| others().get(way).copied()) {
            Some(other) => other.filled(problem),
            None => usual,
        };
        let share = share.checked_sub(1).and_then(|share| shares().nth(share));
        share.map_or(chosen, |share| chosen.shared(share))
    }

    /// Ways whose tiles are not mostly empty.
    fn sensible(problem: &MatMulProblem, capabilities: &GpuCapabilities) -> Vec<Self> {
        let m = problem.m;
        let n = problem.n;
        let small = |rows: usize, columns: usize| {
            rows <= 2 * m.next_power_of_two().max(16)
                && columns <= 2 * n.next_power_of_two().max(32)
        };
        let halves = problem.in_halves();
        let mut all = Self::all(capabilities);
        all.retain(|way| match way {
            Self::Tiled(config, _) => small(config.rows, config.columns),
            Self::Cooperative(config, _) => halves && small(config.tile[0], config.tile[1]),
            Self::Vector(..) => false,
        });
        if VectorConfig::takes(problem) {
            let fitting = VectorConfig::ALL.iter().filter(|config| config.fits(capabilities));
            all.extend(fitting.map(|&config| Self::Vector(config, 1)));
        }
        all
    }

    /// The same with as many workgroups for a tile as keep a device busy.
    fn filled(self, problem: &MatMulProblem) -> Self {
        let shares = match self {
            Self::Tiled(one, _) => fill(problem, std::iter::once(((), (one.rows, one.columns)))),
            Self::Cooperative(one, _) => {
                fill(problem, std::iter::once(((), (one.tile[0], one.tile[1]))))
            }
            Self::Vector(config, _) => Some(((), config.shares(problem))),
        };
        self.shared(shares.map_or(1, |(_, shares)| shares))
    }

    fn label(&self) -> String {
        match self {
            Self::Tiled(config, _) => format!("tiled({})", label(config)),
            Self::Cooperative(config, _) => format!("cooperative({})", label(config)),
            Self::Vector(config, _) => format!("vector({})", label(config)),
        }
    }

    pub(crate) fn run(
        &self,
        problem: &MatMulProblem,
        capabilities: &GpuCapabilities,
        step: &mut DispatchStep,
    ) -> Result<(), String> {
        match self {
            Self::Tiled(config, shares) => config.run(problem, *shares, step),
            Self::Vector(config, shares) => config.run(problem, *shares, capabilities, step),
            Self::Cooperative(config, shares) => config.run(problem, *shares, capabilities, step),
        }
    }

    /// The way that a plain product of these shapes takes.
    ///
    /// # Errors
    /// Fails when lengths do not meet.
    pub fn chosen(
        shapes: &NodeShapes,
        turns: TransposedOperands,
        capabilities: &GpuCapabilities,
    ) -> Result<Self, String> {
        Ok(Self::choose(&turns.problem(shapes)?, capabilities))
    }

    /// The dispatches of a plain product of these shapes.
    ///
    /// # Errors
    /// Fails when lengths do not meet or are beyond the device.
    pub fn step(
        &self,
        shapes: &NodeShapes,
        turns: TransposedOperands,
        capabilities: &GpuCapabilities,
    ) -> Result<DispatchStep, String> {
        let mut step = DispatchStep::default();
        self.run(&turns.problem(shapes)?, capabilities, &mut step)?;
        Ok(step)
    }
}

/// The first of these tiles, the largest first, with which a product keeps a device busy, and how many
/// workgroups share each.
fn fill<T>(
    problem: &MatMulProblem,
    sized: impl Iterator<Item = (T, (usize, usize))>,
) -> Option<(T, usize)> {
    let mut found = None;
    let mut sized = sized.peekable();
    while let Some((config, (rows, columns))) = sized.next() {
        let tiles = problem.m.div_ceil(rows) * problem.n.div_ceil(columns) * problem.products();
        // Below the smallest tile there is only sharing.
        let enough = if sized.peek().is_some() { BUSY } else { 2 * BUSY };
        if tiles >= enough {
            return Some((config, 1));
        }
        let shares = (2 * BUSY / tiles.max(1)).min(problem.k / SHARE).max(1);
        found = Some((config, shares));
    }
    found
}

#[cfg(test)]
mod tests {
    use galatea_tensor::DataType;

    use galatea_runtime::ValueShape;

    use super::*;
    use crate::device::CooperativeMatrix;

    /// A large GPU, with matrices of this size.
    fn device(size: u32) -> GpuCapabilities {
        GpuCapabilities {
            software: false,
            f16: true,
            subgroup: Some((32, 32)),
            cooperative: vec![CooperativeMatrix { size, wide_sums: true }],
            workgroup_bytes: 32 << 10,
            workgroup_threads: 1024,
            ..GpuCapabilities::default()
        }
    }

    fn chosen(dtype: DataType, [m, n, k]: [usize; 3], halves: bool) -> MatMulVariant {
        let of = |shape: [usize; 2]| Some(ValueShape::new(dtype, shape.to_vec()));
        let inputs = vec![of([m, k]), of([k, n])];
        let outputs = vec![of([m, n])];
        let shapes = NodeShapes { inputs, outputs, constants: vec![None, None] };
        let turns = TransposedOperands { halves, ..TransposedOperands::default() };
        MatMulVariant::chosen(&shapes, turns, &device(16)).unwrap()
    }

    #[test]
    fn operands_of_fp32_are_rounded_only_where_the_session_is_of_fp16() {
        for lens in [[128, 768, 768], [4096, 4096, 4096], [17, 9, 33], [1, 4096, 4096]] {
            assert!(!chosen(DataType::Fp32, lens, false).rounds(), "{lens:?}");
        }
        assert!(chosen(DataType::Fp32, [128, 768, 768], true).rounds());
        assert!(chosen(DataType::Fp16, [128, 768, 768], false).rounds());
    }

    #[test]
    fn small_products_are_shared_and_large_ones_are_not() {
        let shares = |lens: [usize; 3]| match chosen(DataType::Fp32, lens, false) {
            MatMulVariant::Tiled(_, shares)
            | MatMulVariant::Cooperative(_, shares)
            | MatMulVariant::Vector(_, shares) => shares,
        };
        assert_eq!(shares([4096, 4096, 4096]), 1);
        assert!(shares([128, 768, 3072]) > 1);
        assert_eq!(shares([128, 768, 64]), 1);
    }

    #[test]
    fn few_rows_or_columns_have_kernels_of_their_own() {
        for lens in [[1, 4096, 4096], [8, 512, 512], [4096, 1, 512]] {
            let found = chosen(DataType::Fp32, lens, false);
            assert!(matches!(found, MatMulVariant::Vector(..)), "{lens:?}: {found:?}");
        }
        let many = chosen(DataType::Fp32, [9, 512, 512], false);
        assert!(matches!(many, MatMulVariant::Tiled(..)), "{many:?}");
    }

    #[test]
    fn matrices_of_eight_and_of_sixteen_have_tiles() {
        for size in [8, 16] {
            let all = MatMulVariant::all(&device(size));
            let cooperative = |one: &&MatMulVariant| matches!(one, MatMulVariant::Cooperative(..));
            assert!(all.iter().filter(cooperative).count() >= 4, "{size}");
        }
    }
}
