//! Effect of a power policy on a model that Core ML runs.

use galatea_apple::coreml::ComputeUnits;
use galatea_apple::qos::ThreadQos;
use galatea_runtime::power::PowerPolicy;

use super::EngineLoadOptions;

/// A policy and what it asks of Core ML. All of it are wishes: Core ML decides for each operator.
struct PowerPolicyRow {
    policy: PowerPolicy,
    units: ComputeUnits,
    fast_prediction: bool,
    qos: ThreadQos,
}

/// The policies. With all units Core ML takes for each operator what it deems the fastest; without the GPU,
/// which draws ten times the power of the Neural Engine, it is that or the processor, and a thread of the
/// class Utility is given efficiency cores. A prediction that is made faster by a longer load is worth it
/// where time counts.
const ROWS: [PowerPolicyRow; 3] = [
    PowerPolicyRow {
        policy: PowerPolicy::HighPerformance,
        units: ComputeUnits::All,
        fast_prediction: true,
        qos: ThreadQos::Initiated,
    },
    PowerPolicyRow {
        policy: PowerPolicy::Balanced,
        units: ComputeUnits::All,
        fast_prediction: false,
        qos: ThreadQos::Default,
    },
    PowerPolicyRow {
        policy: PowerPolicy::LowPower,
        units: ComputeUnits::CpuAndNeuralEngine,
        fast_prediction: false,
        qos: ThreadQos::Utility,
    },
];

/// How a model is loaded under a policy.
pub(super) fn options(policy: PowerPolicy) -> EngineLoadOptions {
    let mut options = EngineLoadOptions::default();
    if let Some(row) = ROWS.iter().find(|row| row.policy == policy) {
        options.units = row.units;
        options.fast_prediction = row.fast_prediction;
        options.qos = row.qos;
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_power_keeps_the_gpu_out_and_high_performance_loads_for_longer() {
        assert_eq!(options(PowerPolicy::LowPower).units, ComputeUnits::CpuAndNeuralEngine);
        assert_eq!(options(PowerPolicy::LowPower).qos, ThreadQos::Utility);
        assert!(options(PowerPolicy::HighPerformance).fast_prediction);
        assert_eq!(options(PowerPolicy::Balanced), EngineLoadOptions::default());
    }
}
