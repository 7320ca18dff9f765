//! Timing of a device: stamps of its own clock, its use, the times of runs, and its peaks.

mod observe;
mod peaks;
mod stamps;

pub(crate) use stamps::RunStamps;

pub(crate) use crate::timers::ClockPair;
pub use crate::timers::{
    DeviceUsage, HostTimes, KernelLabel, KernelRun, RunRecord, TimingObserver,
};

/// Parts of a run that are timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimingLevel {
    /// Nothing.
    Off,
    /// Begin and end of the run on the device.
    Whole,
    /// The same of every dispatch.
    Kernels,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use galatea_graph::{Attributes, Fact, Graph};
    use galatea_runtime::{Run, Session, SessionOptions};
    use galatea_tensor::{DataType, Tensor};

    use crate::device::{DeviceFault, GpuDevice, devices};
    use crate::provider::GpuProvider;

    /// A session of this many nodes that follow each other, on a device.
    fn chain(device: &Arc<GpuDevice>, nodes: usize) -> Session {
        let mut graph = Graph::new("chain");
        graph.opsets = [(String::new(), 21)].into_iter().collect();
        let values: Vec<_> = (0..=nodes).map(|at| graph.value_named(&format!("v{at}"))).collect();
        graph.value_mut(values[0]).declared = Some(Fact::fixed(DataType::Fp32, &[3, 40]));
        let none = Attributes::new();
        for pair in values.windows(2) {
            let (from, to) = (vec![Some(pair[0])], vec![Some(pair[1])]);
            graph.add_node("", "Softmax", "", &none, from, to).unwrap();
        }
        (graph.inputs, graph.outputs) = (vec![values[0]], vec![values[nodes]]);
        let provider = Arc::new(GpuProvider::on(Arc::clone(device)));
        Session::new(graph, &[provider], &SessionOptions::default()).unwrap()
    }

    #[test]
    #[allow(clippy::print_stderr, reason = "a test says that it does nothing")]
    fn a_pass_in_the_middle_that_is_not_done_loses_the_run() {
        if devices().is_empty() {
            eprintln!("skipped: this host has no GPU and no software one");
            return;
        }
        let device = GpuDevice::open(0).unwrap().timed_between_passes().unwrap();
        let session = chain(&device, 4);
        let input = Tensor::from_vec(&[3, 40], vec![0.5_f32; 120]).unwrap();
        let profiled = || session.run(Run::owned(vec![input.clone()]).profiled());
        profiled().unwrap();
        device.act_out(DeviceFault::MiddlePass, 0);
        let lost = profiled().unwrap_err().to_string();
        assert!(lost.contains("pass 2 of 4 did not come to its end"), "{lost}");
        profiled().unwrap();
    }

    #[test]
    #[allow(clippy::print_stderr, reason = "a test says that it does nothing")]
    fn a_submission_has_no_more_passes_than_a_device_takes() {
        if devices().is_empty() {
            eprintln!("skipped: this host has no GPU and no software one");
            return;
        }
        let device = GpuDevice::open(0).unwrap().timed_between_passes().unwrap();
        let nodes = 2100;
        let session = chain(&device, nodes);
        let input = Tensor::from_vec(&[3, 40], vec![0.5_f32; 120]).unwrap();
        let run = || session.run(Run::owned(vec![input.clone()]).profiled()).unwrap().rows;
        run();
        let submits = || device.counters.submits.load(std::sync::atomic::Ordering::Relaxed);
        let before = submits();
        let rows = run();
        assert_eq!(rows.iter().filter(|row| row.op == "Softmax").count(), nodes);
        // A run without stamps, and three pieces of the one with them.
        assert_eq!(submits() - before, 1 + 3);
    }

    #[test]
    #[allow(clippy::print_stderr, reason = "a test says that it does nothing")]
    fn a_device_that_tells_the_time_between_passes_times_every_kernel() {
        if devices().is_empty() {
            eprintln!("skipped: this host has no GPU and no software one");
            return;
        }
        let device = GpuDevice::open(0).unwrap().timed_between_passes().unwrap();
        let mut graph = Graph::new("two");
        graph.opsets = [(String::new(), 21)].into_iter().collect();
        let [x, y, z] = ["x", "y", "z"].map(|name| graph.value_named(name));
        graph.value_mut(x).declared = Some(Fact::fixed(DataType::Fp32, &[3, 40]));
        let none = Attributes::new();
        for (from, to) in [(x, y), (y, z)] {
            graph.add_node("", "Softmax", "", &none, vec![Some(from)], vec![Some(to)]).unwrap();
        }
        (graph.inputs, graph.outputs) = (vec![x], vec![z]);
        let provider = Arc::new(GpuProvider::on(Arc::clone(&device)));
        let session = Session::new(graph, &[provider], &SessionOptions::default()).unwrap();
        let input = Tensor::from_vec(&[3, 40], vec![0.5_f32; 120]).unwrap();
        device.measure_use();
        let before = session.run_tensors(Run::named(&[("x", input.clone())])).unwrap();
        let profiled = session.run(Run::named(&[("x", input)]).profiled()).unwrap();
        let rows = profiled.rows.clone();
        let after = profiled.tensors().unwrap();
        assert_eq!(before[0].to_vec::<f32>().unwrap(), after[0].to_vec::<f32>().unwrap());
        let timed = rows.iter().filter(|row| row.op == "Softmax" && !row.time.is_zero());
        assert_eq!(timed.count(), 2, "{rows:?}");
        assert!(device.usage().is_some_and(|usage| usage.runs >= 1 && !usage.busy.is_zero()));
    }
}
