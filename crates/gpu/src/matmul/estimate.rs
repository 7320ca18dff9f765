//! Choice of the tiles of cooperative matrices for a matrix multiplication, and of the number of workgroups
//! that share one. It rests on measurements on a device with 132 processors (an NVIDIA H200).
//!
//! A processor that computes a tile takes time for every part of k, which threads read ahead, and some before the
//! first and after the last. Tiles beyond what the processors compute at once come in further rounds; where there are
//! too few, several workgroups share a tile, and their sums go through memory. The times hold for that device only,
//! but what they say of one tile beside another holds for others too.

use super::cooperative::CooperativeConfig;
use super::problem::MatMulProblem;
use crate::device::GpuCapabilities;

/// Processors of the device.
const PROCESSORS: usize = 132;
/// Elements of k that the times below are for.
const PART: usize = 64;
/// The least elements of k for which a workgroup is worth its sums' way through memory.
const LEAST: usize = 192;
/// Workgroups that share a tile.
const SHARES: &[usize] = &[1, 2, 3, 4, 6, 8];
/// Microseconds until work begins, for the dispatch that adds the sums of shared tiles, and for each element of them.
const START: f64 = 2.0;
const REDUCE: f64 = 4.0;
const SUM: f64 = 2.7e-6;

/// Time of a large tile that runs alone, as a share of the time of two that run side by side.
const ALONE: f64 = 0.9;

/// Time that tiles of one configuration take.
struct TileRate {
    config: CooperativeConfig,
    /// Tiles that a processor computes side by side in this time; 0 where there is room for many.
    at_once: usize,
    /// Microseconds for 64 elements of k: where `B` lies across k, where it lies along it, and where `A` lies
    /// across k too.
    part: [f64; 3],
    /// Microseconds before and after.
    ends: f64,
    /// Time of one tile among many, as a share of its time alone: while some wait for memory, others multiply.
    beside: f64,
}

const fn rate(config: CooperativeConfig, at_once: usize, part: [f64; 3], ends: f64) -> TileRate {
    TileRate { config, at_once, part, ends, beside: 1.0 }
}

const RATES: &[TileRate] = &[
    rate(CooperativeConfig::WIDE, 1, [1.76, 2.07, 1.81], 2.5),
    rate(CooperativeConfig::TURNED, 1, [1.77, 1.92, 1.71], 2.5),
    rate(CooperativeConfig::SQUARE, 2, [1.86, 2.02, 1.78], 4.0),
    rate(CooperativeConfig::ALONG, 2, [2.07, 1.95, 1.74], 4.0),
    TileRate { beside: 0.7, ..rate(CooperativeConfig::MIDDLE, 0, [0.6; 3], 1.0) },
    rate(CooperativeConfig::FLAT, 0, [0.43; 3], 0.7),
    rate(CooperativeConfig::LOW, 0, [0.4; 3], 0.4),
    rate(CooperativeConfig::SMALL, 0, [0.38; 3], 0.4),
    rate(CooperativeConfig::LEAST, 0, [0.39; 3], 0.4),
];

impl TileRate {
    /// Microseconds of a product.
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    fn time(&self, problem: &MatMulProblem, shares: usize) -> f64 {
        let [rows, columns, _] = self.config.tile;
        let tiles = problem.m.div_ceil(rows) * problem.n.div_ceil(columns) * problem.products();
        let tiles = tiles * shares;
        let rounds = match self.at_once {
            0 => (tiles as f64 / PROCESSORS as f64 * self.beside).max(1.0),
            2 if tiles <= PROCESSORS => ALONE,
            at_once => tiles.div_ceil(PROCESSORS * at_once) as f64,
        };
        let part = match (problem.a.lies_along(), problem.b.lies_along()) {
            (true, false) => self.part[0],
            (_, true) => self.part[1],
            (false, false) => self.part[2],
        };
        let parts = problem.k.div_ceil(PART).div_ceil(shares) as f64;
        let reduce = match shares {
            1 => 0.0,
            _ => REDUCE + (shares * problem.elements()) as f64 * SUM,
        };
        START + rounds * (parts * part + self.ends) + reduce
    }
}

/// The tiles that take the least time, and the workgroups that share each; none where the device has no matrices for
/// any.
pub(super) fn least(
    problem: &MatMulProblem,
    capabilities: &GpuCapabilities,
) -> Option<(CooperativeConfig, usize)> {
    let fitting = RATES.iter().filter(|rate| rate.config.fits(capabilities));
    let all = fitting.flat_map(|rate| {
        let shares = SHARES.iter().filter(|&&shares| shares == 1 || problem.k >= LEAST * shares);
        shares.map(move |&shares| (rate.time(problem, shares), rate.config, shares))
    });
    let least = all.min_by(|one, other| one.0.total_cmp(&other.0));
    least.map(|(_, config, shares)| (config, shares))
}

#[cfg(test)]
mod tests {
    use galatea_tensor::DataType;

    use super::super::spec::MatMulSpec;
    use super::*;
    use crate::device::CooperativeMatrix;
    use galatea_runtime::{NodeShapes, ValueShape};

    fn chosen(stack: usize, [m, n, k]: [usize; 3]) -> ([usize; 2], usize) {
        let of = |shape: [usize; 2]| {
            Some(ValueShape::new(DataType::Fp16, vec![stack, shape[0], shape[1]]))
        };
        let inputs = vec![of([m, k]), of([k, n])];
        let outputs = vec![of([m, n])];
        let shapes = NodeShapes { inputs, outputs, constants: vec![None, None] };
        let problem = MatMulProblem::new(MatMulSpec::PLAIN, &shapes).unwrap();
        let capabilities = GpuCapabilities {
            f16: true,
            subgroup: Some((32, 32)),
            cooperative: vec![CooperativeMatrix { size: 16, wide_sums: true }],
            workgroup_bytes: 48 << 10,
            workgroup_threads: 1024,
            ..GpuCapabilities::default()
        };
        let (config, shares) = least(&problem, &capabilities).unwrap();
        ([config.tile[0], config.tile[1]], shares)
    }

    #[test]
    fn tiles_are_those_that_were_measured_the_fastest() {
        for (stack, lens, tile, shares) in [
            (1, [4096, 4096, 4096], [128, 256], 1),
            (1, [4096, 768, 768], [128, 256], 1),
            (1, [1024, 1024, 1024], [64, 64], 1),
            (1, [512, 3072, 768], [64, 64], 1),
            (1, [128, 3072, 768], [64, 64], 1),
            (384, [128, 64, 128], [64, 64], 1),
        ] {
            assert_eq!(chosen(stack, lens), (tile, shares), "{stack} of {lens:?}");
        }
        let (tile, shares) = chosen(1, [128, 768, 3072]);
        assert!(tile == [64, 64] && (4..=8).contains(&shares), "{tile:?} {shares}");
    }
}
