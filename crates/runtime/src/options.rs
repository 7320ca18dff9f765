//! How a session is to be made.

pub use galatea_graph::rewrite::Level as OptimiseLevel;

/// How a session is to be made. [`Default`] uses all cores, all rewrites and any amount of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionOptions {
    /// Threads that share the work inside an operator; 0 means as many as there are cores.
    pub threads: usize,
    /// Names of the providers to use, in order of preference where predicted times are equal;
    /// empty means all that are given, in their order.
    pub providers: Vec<String>,
    /// Which rewrites run before the graph is partitioned; providers change layouts at `O3` only.
    pub optimise: OptimiseLevel,
    /// The most bytes of intermediate values that one run may hold; `None` means no limit.
    pub memory_limit_bytes: Option<usize>,
    /// The most partitions to split the graph into, where fewer are possible.
    pub max_partitions: usize,
    /// How many sets of concrete input shapes a provider keeps plans for.
    pub plan_cache: usize,
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
        }
    }
}

impl SessionOptions {
    /// The number of threads, with 0 replaced by the number of cores.
    #[must_use]
    pub fn resolved_threads(&self) -> usize {
        if self.threads > 0 {
            return self.threads;
        }
        std::thread::available_parallelism().map_or(1, usize::from)
    }
}
