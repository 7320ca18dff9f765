//! Search for the fastest kernels of a model on this machine.

use std::path::Path;
use std::time::{Duration, Instant};

use galatea_runtime::tune::{
    SearchLimits, StrategyKind, TuningDatabase, TuningKey, TuningProblem, TuningRecord,
    TuningSearch,
};
use galatea_tensor::Tensor;

use crate::{Error, ErrorKind, Model, tuning};

/// Candidates up to which every one is measured where no strategy is named.
const FEW: usize = 16;

/// Settings of a search for the fastest kernels.
///
/// ```
/// use galatea::{KernelSearch, StrategyKind};
///
/// let search = KernelSearch { strategy: Some(StrategyKind::Genetic), ..KernelSearch::default() };
/// assert_eq!(search.trials, 64);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct KernelSearch {
    /// Strategy; chosen by the number of candidates, if none is given.
    pub strategy: Option<StrategyKind>,
    /// The most candidates of a choice that are measured.
    pub trials: usize,
    /// The most time for all choices together.
    pub time: Duration,
    /// Part of the name of a family of kernels, to which the search is limited; empty for all.
    pub family: String,
}

impl Default for KernelSearch {
    fn default() -> Self {
        let usual = SearchLimits::default();
        let family = String::new();
        Self { strategy: None, trials: usual.trials, time: usual.time, family }
    }
}

/// A choice between kernels that a model has on this machine.
///
/// ```
/// # let model = galatea::Engine::new().model("../../examples/models/digits")?;
/// # let image = galatea::Tensor::from_vec(&[1, 1, 8, 8], vec![0.5_f32; 64]).unwrap();
/// for choice in model.kernel_choices(&[("IMAGE", image)])? {
///     println!("{} {}: {:?}", choice.family, choice.bucket, choice.candidates);
/// }
/// # Ok::<(), galatea::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelChoice {
    /// Node of the graph.
    pub node: String,
    /// Family of kernels.
    pub family: String,
    /// Bucket of lengths.
    pub bucket: String,
    /// Names of the candidates; the first is the default.
    pub candidates: Vec<String>,
}

/// A choice that was measured.
///
/// ```
/// # let record = galatea_runtime::tune::TuningRecord { choice: "a".into(), time_ns: 1.0, default_ns: 2.0,
/// #     trials: 2, others: Vec::new(), refused: Vec::new() };
/// # let space = galatea_runtime::tune::ConfigSpace::new(Vec::new());
/// # let key = galatea_runtime::tune::TuningKey::new("gemm", "m1".into(), "machine", &space);
/// let tuned = galatea::TunedKernel { key, record };
/// println!("{} takes {} ns", tuned.record.choice, tuned.record.time_ns);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct TunedKernel {
    /// Key of the record.
    pub key: TuningKey,
    /// The fastest candidate and the times.
    pub record: TuningRecord,
}

impl Model {
    fn tuning_problems(&self, inputs: &[(&str, Tensor)]) -> Result<Vec<TuningProblem>, Error> {
        self.session().problems(inputs).map_err(Error::of(ErrorKind::Input))
    }

    /// Lists the choices between kernels that the model has for inputs of these shapes.
    ///
    /// # Errors
    /// Fails when the inputs do not fit.
    ///
    /// ```
    /// let model = galatea::Engine::new().model("../../examples/models/simple")?;
    /// assert!(model.kernel_choices(&[]).is_err());
    /// # Ok::<(), galatea::Error>(())
    /// ```
    pub fn kernel_choices(&self, inputs: &[(&str, Tensor)]) -> Result<Vec<KernelChoice>, Error> {
        let of = |problem: &TuningProblem| KernelChoice {
            node: problem.node.clone(),
            family: problem.family.clone(),
            bucket: problem.bucket.clone(),
            candidates: problem.space.names(),
        };
        Ok(self.tuning_problems(inputs)?.iter().map(of).collect())
    }

    /// Measures the choices between kernels and returns the fastest ones. With a file, the records are added to it,
    /// and models that are loaded later take what is fastest where the file is the usual one.
    ///
    /// # Errors
    /// Fails when the inputs do not fit, a default kernel fails, or the file cannot be read or written.
    ///
    /// ```
    /// use galatea::{Engine, KernelSearch, Tensor};
    ///
    /// let model = Engine::new().model("../../examples/models/simple")?;
    /// let ones = Tensor::from_vec(&[1, 16], vec![1_i32; 16])?;
    /// let inputs = [("INPUT0", ones.clone()), ("INPUT1", ones)];
    /// let search = KernelSearch { trials: 2, ..KernelSearch::default() };
    /// println!("{:?}", model.search_kernels(&inputs, &search, None)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn search_kernels(
        &self,
        inputs: &[(&str, Tensor)],
        search: &KernelSearch,
        file: Option<&Path>,
    ) -> Result<Vec<TunedKernel>, Error> {
        let mut problems = self.tuning_problems(inputs)?;
        problems.retain(|problem| problem.family.contains(&search.family));
        let failed = Error::of(ErrorKind::File);
        let existing = file.filter(|file| file.exists()).map(tuning::load).transpose();
        let mut known = existing.map_err(failed)?.unwrap_or_else(TuningDatabase::default);
        let machine = tuning::machine();
        let begin = Instant::now();
        let count = problems.len();
        let mut tuned = Vec::new();
        for (at, mut problem) in problems.into_iter().enumerate() {
            let left = search.time.saturating_sub(begin.elapsed());
            if left.is_zero() {
                break;
            }
            // Twice its share at most: what is large must not take the time of all others.
            let share = left.div_f64((count - at) as f64 / 2.0).min(left);
            let record = measure(&mut problem, search, share).map_err(Error::of(ErrorKind::Run))?;
            let key = problem.key(&machine);
            known.insert(key.clone(), record.clone());
            tuned.push(TunedKernel { key, record });
        }
        if let Some(file) = file {
            tuning::save(&known, file).map_err(Error::of(ErrorKind::File))?;
        }
        Ok(tuned)
    }
}

fn measure(
    problem: &mut TuningProblem,
    search: &KernelSearch,
    time: Duration,
) -> Result<TuningRecord, String> {
    let few = problem.space.len() <= FEW;
    let usual = if few { StrategyKind::Exhaustive } else { StrategyKind::Adaptive };
    let begin = Instant::now();
    let limits = SearchLimits { trials: search.trials, time, ..SearchLimits::default() };
    let run = TuningSearch {
        space: &problem.space,
        device: &mut *problem.device,
        limits,
        clock: &mut || begin.elapsed(),
        progress: &mut |_, _| {},
    };
    let outcome = run.run(&mut *search.strategy.unwrap_or(usual).start(1));
    let outcome = outcome.map_err(|error| format!("{}: {error}", problem.node))?;
    Ok(TuningRecord::new(&problem.space, &outcome))
}
