//! Subjects about GPUs: limits, peaks, clocks, and failures that must be seen.

#[cfg(any(target_os = "macos", feature = "gpu"))]
pub(super) use there::{failures, limits, long_run, peaks, timestamps, zero_timestamps};

#[cfg(not(any(target_os = "macos", feature = "gpu")))]
pub(super) use absent::{
    skipped as limits, skipped as peaks, skipped as timestamps, skipped as zero_timestamps,
    skipped as failures, skipped as long_run,
};

/// Unit of what a machine without a GPU skips.
pub(super) const NONE: &str = "gpu";

/// Says why there is no GPU.
pub(super) fn why_none() -> &'static str {
    match cfg!(any(target_os = "macos", feature = "gpu")) {
        true => "there is no GPU, or only one that the CPU emulates",
        false => "this program was built without the feature gpu",
    }
}

#[cfg(not(any(target_os = "macos", feature = "gpu")))]
mod absent {
    use super::super::line::{SubjectOutcome, SubjectReport};
    use super::super::task::SubjectTask;

    pub(in super::super) fn skipped(_: &SubjectTask) -> SubjectOutcome {
        Ok(SubjectReport::skipped(super::why_none()))
    }
}

#[cfg(any(target_os = "macos", feature = "gpu"))]
mod there {
    use std::sync::Arc;
    use std::time::Instant;

    use galatea::devices;
    use galatea_apple::ChipIdentity;
    use galatea_gpu::{DeviceFault, GpuDevice, GpuProvider};
    use galatea_runtime::{ExecutionProvider, Run, Session, SessionOptions};
    use galatea_tensor::Tensor;

    use super::super::line::{SubjectOutcome, SubjectReport};
    use super::super::suite::GraphBuild;
    use super::super::task::{SelftestEffort, SubjectTask};

    type MaybeDevice = Result<Arc<GpuDevice>, String>;

    /// Opens the GPU of a task's unit. The units leave out software GPUs, the numbers of devices do not.
    fn device(task: &SubjectTask) -> MaybeDevice {
        let number: Option<usize> =
            task.unit.strip_prefix("gpu:").and_then(|text| text.parse().ok());
        let number = number.ok_or_else(|| format!("'{}' is no GPU", task.unit))?;
        let all = galatea_gpu::devices();
        let counted = task.effort == SelftestEffort::Full;
        let mut there = all.iter().enumerate().filter(|(_, one)| counted || !one.software);
        let (index, _) = there.nth(number).ok_or_else(|| format!("there is no '{}'", task.unit))?;
        GpuDevice::open(index).map_err(|error| error.to_string())
    }

    /// A session on the GPU alone, and inputs of a run.
    struct GpuRun {
        session: Session,
        inputs: Vec<Tensor>,
    }

    impl GpuRun {
        fn new(device: &Arc<GpuDevice>) -> Result<Self, String> {
            let mut build = GraphBuild::new(12);
            let mut y = build.input("x", &[64, 128])?;
            for _ in 0..3 {
                let w = build.weight(&[128, 128], 128)?;
                y = build.plain("MatMul", &[y, w])?;
            }
            Self::of(build.ends(&[("y", y)])?, device)
        }

        fn of(build: GraphBuild, device: &Arc<GpuDevice>) -> Result<Self, String> {
            let provider: Arc<dyn ExecutionProvider> =
                Arc::new(GpuProvider::on(Arc::clone(device)));
            let session = Session::new(build.graph, &[provider], &SessionOptions::default());
            let session = session.map_err(|error| error.to_string())?;
            Ok(Self { session, inputs: build.inputs })
        }

        fn run(&self) -> Result<Vec<f32>, String> {
            let found = self.session.run_tensors(Run::owned(self.inputs.clone()));
            let found = found.map_err(|error| error.to_string())?;
            let first = found.first().ok_or("no output")?;
            first.to_vec::<f32>().map_err(|error| error.to_string())
        }
    }

    /// Tells the device's name, driver and limits.
    pub(in super::super) fn limits(task: &SubjectTask) -> SubjectOutcome {
        let device = device(task)?;
        let found = device.capabilities();
        let matrices: Vec<String> =
            found.cooperative.iter().map(|one| format!("{one:?}")).collect();
        #[allow(clippy::cast_precision_loss, reason = "a number for people")]
        let number = |value: u64| value as f64;
        let wrong = (found.binding_bytes == 0 || found.workgroup_threads == 0)
            .then(|| "the device has no room for a kernel".to_owned());
        Ok(SubjectReport::passed()
            .fact("name", found.name.clone())
            .fact("driver", found.driver.clone())
            .fact("backend", found.backend.clone())
            .fact("software", found.software.to_string())
            .fact("unified", found.unified.to_string())
            .fact("f16", found.f16.to_string())
            .fact("subgroup", found.subgroup.map(|pair| format!("{pair:?}")))
            .fact("matrices", Some(matrices.join(" ")).filter(|text| !text.is_empty()))
            .fact("timestamps", found.timestamps.to_string())
            .fact("pass_timestamps", found.pass_timestamps.to_string())
            .figure("binding_bytes", number(found.binding_bytes))
            .figure("buffer_bytes", number(found.buffer_bytes))
            .figure("workgroup_bytes", f64::from(found.workgroup_bytes))
            .figure("workgroup_threads", f64::from(found.workgroup_threads))
            .figure("workgroups", f64::from(found.workgroups))
            .checked(wrong))
    }

    /// Measures the peaks beside what is stated of the chip.
    pub(in super::super) fn peaks(task: &SubjectTask) -> SubjectOutcome {
        let found = device(task)?.peaks().map_err(|error| error.to_string())?;
        let stated = ChipIdentity::detect().map(|chip| devices::peaks_of(&chip.name));
        let stated = stated.unwrap_or_default();
        let micro = |time: Option<std::time::Duration>| time.map(|time| time.as_secs_f64() * 1e6);
        let giga = |rate: Option<f64>| rate.map(|rate| rate / 1e9);
        let right = |rate: Option<f64>| rate.is_none_or(|rate| (1e8..1e15).contains(&rate));
        let all = [found.vector_f32, found.vector_f16, found.matrix_f16, found.bytes];
        let wrong = (!all.into_iter().all(right))
            .then(|| format!("no device reaches such rates: {found:?}"));
        Ok(SubjectReport::passed()
            .figure("peak_fp32_gflops", giga(found.vector_f32))
            .figure("peak_fp16_gflops", giga(found.vector_f16))
            .figure("peak_matrix_fp16_gflops", giga(found.matrix_f16))
            .figure("peak_copy_gbps", giga(found.bytes))
            .figure("dispatch_us", micro(found.dispatch))
            .figure("submit_us", micro(found.submit))
            .figure("stated_peak_fp32_gflops", giga(stated.vector_f32))
            .figure("stated_peak_copy_gbps", giga(stated.bytes))
            .checked(wrong))
    }

    /// Compares the device's clock with the host's.
    pub(in super::super) fn timestamps(task: &SubjectTask) -> SubjectOutcome {
        let device = device(task)?;
        let work = GpuRun::new(&device)?;
        work.run()?;
        device.measure_use();
        let started = Instant::now();
        for _ in 0..100 {
            work.run()?;
        }
        let wall = started.elapsed();
        let Some(usage) = device.usage() else {
            let why = match device.capabilities().pass_timestamps {
                true => "the device gave timestamps that are no readings; the host's clock is used",
                false => "the device has no timestamps; the host's clock is used",
            };
            return Ok(SubjectReport::fell_back(why));
        };
        let wrong = (usage.busy > wall || usage.busy.is_zero())
            .then(|| format!("busy for {:?} of {wall:?}", usage.busy));
        Ok(SubjectReport::passed()
            .figure("busy_ms", usage.busy.as_secs_f64() * 1e3)
            .figure("wall_ms", wall.as_secs_f64() * 1e3)
            .checked(wrong))
    }

    /// Acts out timestamps that are zero: nothing may believe them.
    pub(in super::super) fn zero_timestamps(task: &SubjectTask) -> SubjectOutcome {
        let device = device(task)?;
        let work = GpuRun::new(&device)?;
        device.measure_use();
        device.act_out(DeviceFault::ZeroStamps, 0);
        for _ in 0..3 {
            work.run()?;
        }
        if !device.capabilities().pass_timestamps {
            return Ok(SubjectReport::skipped("the device has no timestamps"));
        }
        let wrong = device.usage().map(|usage| format!("zeros were taken for {usage:?}"));
        Ok(SubjectReport::passed().checked(wrong))
    }

    /// Acts out work that is not done and counts as done: the run has to fail, and the next one to be right.
    pub(in super::super) fn failures(task: &SubjectTask) -> SubjectOutcome {
        for fault in [DeviceFault::LastDispatch, DeviceFault::IgnoredWork] {
            let device = device(task)?;
            let work = GpuRun::new(&device)?;
            let right = work.run()?;
            device.act_out(fault, 0);
            // Commands of the first run may have been ready before.
            if (0..2).all(|_| work.run().is_ok()) {
                return Ok(SubjectReport::failed(format!("{fault:?} was not seen")));
            }
            if work.run()? != right {
                let text = format!("after {fault:?} the next device gives other numbers");
                return Ok(SubjectReport::failed(text));
            }
        }
        Ok(SubjectReport::passed())
    }

    /// Rows and columns of the matrices of the long run.
    const LONG_SIZE: usize = 2048;
    /// Seconds of the long run; macOS has ended runs of two.
    const LONG_SECONDS: f64 = 12.0;
    /// Multiplications whose time is measured before.
    const MEASURED: u16 = 16;
    /// Most multiplications of the long run.
    const MAX_LONG: f64 = 4000.0;

    /// Multiplies by the identity so often in one run on the GPU.
    fn identities(device: &Arc<GpuDevice>, count: u16) -> Result<GpuRun, String> {
        let mut build = GraphBuild::new(13);
        let mut y = build.input("x", &[LONG_SIZE, LONG_SIZE])?;
        let at = |place: usize| f32::from(u8::from(place.is_multiple_of(LONG_SIZE + 1)));
        let ones: Vec<f32> = (0..LONG_SIZE * LONG_SIZE).map(at).collect();
        let ones = Tensor::from_vec(&[LONG_SIZE, LONG_SIZE], ones);
        let ones = ones.map_err(|error| error.to_string())?;
        let ones = build.graph.add_constant("ones", ones);
        for _ in 0..count {
            y = build.plain("MatMul", &[y, ones])?;
        }
        GpuRun::of(build.ends(&[("y", y)])?, device)
    }

    /// Hands over more work at once than macOS lets a display wait for. The run has to be right, or to fail: a failure
    /// that nobody sees leaves other numbers.
    pub(in super::super) fn long_run(task: &SubjectTask) -> SubjectOutcome {
        if !cfg!(target_os = "macos") {
            return Ok(SubjectReport::skipped(
                "only macOS ends long runs; gpu-failures acts it out",
            ));
        }
        if task.effort == SelftestEffort::Quick {
            return Ok(SubjectReport::skipped("it takes long; --full runs it"));
        }
        let device = device(task)?;
        device.set_submission_bound(std::time::Duration::ZERO);
        let short = identities(&device, MEASURED)?;
        short.run()?;
        let started = Instant::now();
        short.run()?;
        let each = started.elapsed().as_secs_f64() / f64::from(MEASURED);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is bounded")]
        let count = (LONG_SECONDS / each.max(1e-6)).clamp(1.0, MAX_LONG) as u16;
        let long = identities(&device, count)?;
        let started = Instant::now();
        let found = long.run();
        let report = SubjectReport::passed().figure("run_s", started.elapsed().as_secs_f64());
        let found = match found {
            Err(error) => return Ok(report.fact("seen", error)),
            Ok(found) => found,
        };
        let right = long.inputs.first().and_then(|one| one.to_vec::<f32>().ok());
        let wrong = (Some(found) != right).then(|| "wrong numbers, and no error".to_owned());
        Ok(report.fact("seen", "the run came to its end".to_owned()).checked(wrong))
    }
}
