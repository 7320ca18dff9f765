//! Options of a session.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use galatea_graph::Graph;
pub use galatea_graph::rewrite::RewriteLevel as OptimiseLevel;
use galatea_tensor::Tensor;

use crate::device_selector::{ComputeDevices, ExecutionGoal, PlacementHistorySource};
pub use crate::power::PaceSource;
use crate::prefetch::PrefetchPolicy;
use crate::tune::ChoiceSource;
use crate::watch::WatchSource;

/// Number format in which matrix multiplications and convolutions compute. Sums, and all other operators, are
/// FP32 in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Precision {
    /// The format that the model states.
    #[default]
    Fp32,
    /// FP32 weights and the values that they meet are rounded to BF16; what lies between two such
    /// products may be BF16 too.
    Bf16,
    /// FP32 weights of matrix products are rounded to FP16 and widened where they are multiplied: half
    /// the memory, a quarter of a thousandth of each weight. Values beyond 65504 become infinite.
    Fp16,
}

impl Precision {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Fp32, Self::Bf16, Self::Fp16];
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fp32 => "fp32",
            Self::Bf16 => "bf16",
            Self::Fp16 => "fp16",
        })
    }
}

impl FromStr for Precision {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = |one: &Self| one.to_string().eq_ignore_ascii_case(text.trim());
        Self::ALL.into_iter().find(wanted).ok_or_else(|| {
            let known: Vec<String> = Self::ALL.iter().map(ToString::to_string).collect();
            format!("precision '{text}' is unknown, expected {}", known.join(" or "))
        })
    }
}

/// Time at which a session becomes available if its partitions take long to compile, such as those for a Neural
/// Engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CompileMode {
    /// After all partitions are compiled.
    #[default]
    Wait,
    /// At once: other providers run them meanwhile.
    Background,
}

impl CompileMode {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Wait, Self::Background];
}

impl fmt::Display for CompileMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Wait => "wait",
            Self::Background => "background",
        })
    }
}

impl FromStr for CompileMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|one| one.to_string() == text.trim());
        found.ok_or_else(|| format!("'{text}' found, expected wait or background"))
    }
}

/// Packed forms of weights that outlive a session, such as those in a file.
pub trait PackedWeights: fmt::Debug + Send + Sync {
    /// The packed form of a constant of the graph; `form` says all that its layout depends on
    /// besides the constant. A vector of FP32 that starts on a cache line.
    fn find(&self, weights: &Tensor, form: &str) -> Option<Tensor>;

    /// Takes note of a packed form that was not found, in parts of whole cache lines.
    fn keep(&self, weights: &Tensor, form: &str, parts: &[&[f32]]);
}

/// Place where a session finds packed weights, if any.
#[derive(Clone, Debug, Default)]
pub struct PackedSource(pub Option<Arc<dyn PackedWeights>>);

impl PartialEq for PackedSource {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl Eq for PackedSource {}

/// Division of a session's runs among devices: the load of each device, and the goal by which a placement is
/// chosen.
#[derive(Clone, Debug)]
pub struct PlacementOptions {
    /// The units, with what all sessions have handed to them.
    pub units: Arc<ComputeDevices>,
    /// Goal by which a placement is chosen.
    pub goal: ExecutionGoal,
}

impl PartialEq for PlacementOptions {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.units, &other.units) && self.goal == other.goal
    }
}

impl Eq for PlacementOptions {}

/// The units at which runs of a session wait for their turns, if they do: those of its [`PlacementOptions`] where it has one.
#[derive(Clone, Debug, Default)]
pub struct TurnSource(pub Option<Arc<ComputeDevices>>);

impl PartialEq for TurnSource {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl Eq for TurnSource {}

/// Function that reads a model's graph once more.
type ReadGraph = dyn Fn() -> Result<Graph, String> + Send + Sync;

/// Place where a session finds the model's own graph for runs that are not as the model declares, if any.
#[derive(Clone, Default)]
pub struct GraphSource(Option<Arc<ReadGraph>>);

impl GraphSource {
    /// A source that reads the graph by a function.
    pub fn new(read: impl Fn() -> Result<Graph, String> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(read)))
    }

    /// Reads the graph; `None` where there is no source.
    pub(crate) fn read(&self) -> Option<Result<Graph, String>> {
        self.0.as_ref().map(|read| read())
    }
}

impl fmt::Debug for GraphSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GraphSource").field(&self.0.is_some()).finish()
    }
}

impl PartialEq for GraphSource {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl Eq for GraphSource {}

/// Most threads inside an operator that a session is given. More are never faster, and each has a stack.
pub const MAX_SESSION_THREADS: usize = 1024;

/// Options of a session. [`Default`] uses all fast cores, all rewrites and any amount of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionOptions {
    /// Threads that share the work inside an operator; 0 means as many as there are fast cores.
    pub threads: usize,
    /// Names of the providers to use, in order of preference where predicted times are equal;
    /// empty means all that are given, in their order.
    pub providers: Vec<String>,
    /// Level of rewrites that run before the graph is partitioned; providers change layouts at `O3` only.
    pub optimise: OptimiseLevel,
    /// The most bytes of intermediate values that one run may hold; `None` means no limit.
    pub memory_limit_bytes: Option<usize>,
    /// The most partitions to split the graph into, where fewer are possible.
    pub max_partitions: usize,
    /// Number of sets of concrete input shapes for which a provider keeps plans.
    pub plan_cache: usize,
    /// Store that packed weights are read from and written to.
    pub packed: PackedSource,
    /// Number format of matrix multiplications and convolutions, where a provider can choose.
    pub precision: Precision,
    /// Source of tuned choices for this machine; without one, defaults are taken.
    pub choices: ChoiceSource,
    /// Eagerness of bringing weights to a device that has no room for all of them.
    pub prefetch: PrefetchPolicy,
    /// Limiter that keeps runs to a pace.
    pub pace: PaceSource,
    /// Policy on whether to wait for partitions that take long to compile.
    pub compile: CompileMode,
    /// Division of runs among devices; without it all runs take the placement that was planned first.
    pub routing: Option<PlacementOptions>,
    /// Queue in which runs that are not divided wait for their turns.
    pub turns: TurnSource,
    /// Store that remembers the times of placements, where runs are divided.
    pub ways: PlacementHistorySource,
    /// Observer that is told of runs.
    pub watch: WatchSource,
    /// Source of the graph for runs that are not as the model declares; without it, they fail.
    pub source: GraphSource,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            threads: 0,
            providers: Vec::new(),
            optimise: OptimiseLevel::default(),
            memory_limit_bytes: None,
            max_partitions: 16,
            plan_cache: 32,
            packed: PackedSource::default(),
            precision: Precision::default(),
            choices: ChoiceSource::default(),
            prefetch: PrefetchPolicy::default(),
            pace: PaceSource::default(),
            compile: CompileMode::default(),
            routing: None,
            turns: TurnSource::default(),
            ways: PlacementHistorySource::default(),
            watch: WatchSource::default(),
            source: GraphSource::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_to_compile_read_back_what_they_print() {
        for mode in CompileMode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        let error = "later".parse::<CompileMode>().unwrap_err();
        assert_eq!(error, "'later' found, expected wait or background");
    }

    #[test]
    fn precisions_read_back_what_they_print() {
        for precision in Precision::ALL {
            assert_eq!(precision.to_string().parse(), Ok(precision));
        }
        assert_eq!("BF16".parse(), Ok(Precision::Bf16));
        assert_eq!(
            "int3".parse::<Precision>(),
            Err("precision 'int3' is unknown, expected fp32 or bf16 or fp16".into())
        );
    }
}
