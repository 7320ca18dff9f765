//! Report of a simulation.

use crate::cost::ComputeUnit;

/// Times that shares of all requests do not exceed, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TimeQuantiles {
    /// Half of them.
    pub p50: f64,
    /// Nine of ten.
    pub p90: f64,
    /// 99 of a hundred.
    pub p99: f64,
}

impl TimeQuantiles {
    /// Computes the shares from times in nanoseconds; returns `None` if there are none.
    pub(super) fn of(mut nanos: Vec<u64>) -> Option<Self> {
        nanos.sort_unstable();
        let at = |percent: usize| {
            let place = (nanos.len() * percent).div_ceil(100).saturating_sub(1);
            nanos.get(place).map(|&nanos| nanos as f64 / 1e9)
        };
        Some(Self { p50: at(50)?, p90: at(90)?, p99: at(99)? })
    }
}

/// A unit of a machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimulatedDeviceReport {
    /// The unit.
    pub unit: ComputeUnit,
    /// Number of them in the machine.
    pub count: usize,
    /// The share of the time in which they worked, on average.
    pub utilisation: f64,
}

/// A machine.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineReport {
    /// Its kind's name.
    pub kind: String,
    /// Its number among all machines.
    pub number: usize,
    /// Requests that it has answered.
    pub requests: u64,
    /// Tokens that it has written.
    pub tokens: u64,
    /// From a request to the end of its answer.
    pub latency: Option<TimeQuantiles>,
    /// Its units.
    pub units: Vec<SimulatedDeviceReport>,
    /// Watts on average.
    pub watts: f64,
    /// Joules in all.
    pub joules: f64,
    /// The most degrees Celsius that it had.
    pub hottest: f64,
    /// Seconds in which its clocks were lowered.
    pub throttled_seconds: f64,
    /// Seconds in which its governor allowed less than the full pace.
    pub limited_seconds: f64,
    /// Models that it brought into its memory, and that it let go; none where loading is not simulated.
    pub loads: Option<[u64; 2]>,
}

/// A model.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatedModelReport {
    /// Its name.
    pub name: String,
    /// Requests that were answered.
    pub requests: u64,
    /// Requests that no machine took: none had the memory, or all were too hot.
    pub refused: u64,
    /// Tokens that were written.
    pub tokens: u64,
    /// From a request to the end of its answer.
    pub latency: Option<TimeQuantiles>,
    /// From a request to the first token of its answer.
    pub first_token: Option<TimeQuantiles>,
    /// Requests by unit.
    pub placements: Vec<(ComputeUnit, u64)>,
}

/// Report of a simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulationReport {
    /// From the start to the last answer, in simulated seconds.
    pub seconds: f64,
    /// The machines.
    pub machines: Vec<MachineReport>,
    /// The models.
    pub models: Vec<SimulatedModelReport>,
    /// From any request to the end of its answer.
    pub latency: Option<TimeQuantiles>,
    /// Pieces of work that were simulated.
    pub pieces: u64,
}

impl MachineReport {
    /// Tokens for a joule; absent where none were written.
    #[must_use]
    pub fn tokens_per_joule(&self) -> Option<f64> {
        (self.tokens > 0 && self.joules > 0.0).then(|| self.tokens as f64 / self.joules)
    }
}

impl SimulationReport {
    /// Requests that were answered.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.models.iter().map(|model| model.requests).sum()
    }

    /// Requests that no machine took.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.models.iter().map(|model| model.refused).sum()
    }

    /// Tokens that were written.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.models.iter().map(|model| model.tokens).sum()
    }

    /// Models that were brought into memory, and that were let go; none where loading is not simulated.
    #[must_use]
    pub fn loads(&self) -> Option<[u64; 2]> {
        let all = self.machines.iter().filter_map(|machine| machine.loads);
        all.reduce(|[a, b], [c, d]| [a + c, b + d])
    }

    /// Joules of all machines.
    #[must_use]
    pub fn joules(&self) -> f64 {
        self.machines.iter().map(|machine| machine.joules).sum()
    }

    /// Returns the rate of so many things, per second.
    #[must_use]
    pub fn per_second(&self, count: u64) -> f64 {
        if self.seconds > 0.0 { count as f64 / self.seconds } else { 0.0 }
    }

    /// Tokens for a joule; absent where none were written.
    #[must_use]
    pub fn tokens_per_joule(&self) -> Option<f64> {
        let tokens = self.tokens();
        let joules = self.joules();
        (tokens > 0 && joules > 0.0).then(|| tokens as f64 / joules)
    }
}
