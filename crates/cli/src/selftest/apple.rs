//! Subjects that only a Mac has: sensors, thread classes and Apple's libraries of mathematics. Elsewhere each is skipped with the
//! reason that its binding gives.

use std::time::{Duration, Instant};

use galatea_apple::accelerate::{
    BlasLibrary, BlasOperand, BlasSizes, GemmScaling, OperandOrientation,
};
use galatea_apple::bnns::{BnnsElements, BnnsFactor, BnnsLibrary};
use galatea_apple::machine_load::{CoreTicks, UsedPages};
use galatea_apple::qos::ThreadQos;
use galatea_apple::{ChipIdentity, battery as power, sensors as counters};

use super::line::{SubjectOutcome, SubjectReport};
use super::task::SubjectTask;

/// Time that counters are read for.
const COUNTED: Duration = Duration::from_millis(200);
/// Rows, columns and length of the products.
const SIZE: usize = 96;
/// Watts of a machine.
const WATTS: std::ops::RangeInclusive<f64> = 0.0..=1000.0;
/// Degrees Celsius of a chip that runs.
const CELSIUS: std::ops::RangeInclusive<f64> = 5.0..=125.0;

/// Makes a skipped subject of a binding that is not there.
fn unavailable(error: &dyn std::fmt::Display) -> SubjectReport {
    SubjectReport::skipped(error.to_string())
}

/// Reads how busy the cores and the memory are.
pub(super) fn load(_: &SubjectTask) -> SubjectOutcome {
    let before = match CoreTicks::now() {
        Ok(ticks) => ticks,
        Err(error) => return Ok(unavailable(&error)),
    };
    std::thread::sleep(COUNTED);
    let ticks = CoreTicks::now().map_err(|error| error.to_string())?.since(before);
    let page = ChipIdentity::detect().map_err(|error| error.to_string())?.page_bytes;
    let used = UsedPages::now().map_err(|error| error.to_string())?.bytes(page);
    let memory = galatea::host::machine_memory_bytes().unwrap_or(u64::MAX);
    let wrong = match (ticks.total(), used) {
        (0, _) => Some("the counters of the cores stand still".to_owned()),
        (_, used) if used == 0 || used > memory => Some(format!("{used} bytes in use of {memory}")),
        _ => None,
    };
    Ok(SubjectReport::passed()
        .figure("busy_share", ticks.busy() as f64 / ticks.total().max(1) as f64)
        .figure("used_bytes", used as f64)
        .checked(wrong))
}

/// Reads watts and temperatures, and compares them with what is plausible.
pub(super) fn sensors(_: &SubjectTask) -> SubjectOutcome {
    let mut counters = match counters::Counters::open() {
        Ok(counters) => counters,
        Err(error) => return Ok(unavailable(&error)),
    };
    let sample = counters.sample(COUNTED).map_err(|error| error.to_string())?;
    let all = [
        ("cpu_watts", sample.cpu_watts, WATTS),
        ("gpu_watts", sample.gpu_watts, WATTS),
        ("neural_engine_watts", sample.engine_watts, WATTS),
        ("memory_watts", sample.memory_watts, WATTS),
        ("system_watts", sample.system_watts, WATTS),
        ("cpu_celsius", sample.cpu_celsius, CELSIUS),
        ("gpu_celsius", sample.gpu_celsius, CELSIUS),
    ];
    let mut report = SubjectReport::passed();
    let mut wrong = None;
    for (name, value, range) in all {
        report = report.figure(name, value);
        if let Some(value) = value.filter(|value| !range.contains(value)) {
            wrong = Some(format!("{name} is {value}, expected {range:?}"));
        }
    }
    if report.figures.is_empty() {
        wrong = Some("no sensor tells anything".to_owned());
    }
    Ok(report.checked(wrong))
}

/// Reads the thermal state and the low power mode.
pub(super) fn heat(_: &SubjectTask) -> SubjectOutcome {
    let heat = match counters::heat() {
        Ok(heat) => heat,
        Err(error) => return Ok(unavailable(&error)),
    };
    let low = counters::low_power_mode().map_err(|error| error.to_string())?;
    Ok(SubjectReport::passed()
        .fact("heat", format!("{heat:?}"))
        .fact("low_power_mode", low.to_string()))
}

/// Reads the battery.
pub(super) fn battery(_: &SubjectTask) -> SubjectOutcome {
    match power::battery() {
        Err(error) => Ok(unavailable(&error)),
        Ok(None) => Ok(SubjectReport::passed().fact("battery", "none".to_owned())),
        Ok(Some(found)) => {
            let right = (0.0..=1.0).contains(&found.charge);
            let wrong = (!right).then(|| format!("a charge of {}, expected 0 to 1", found.charge));
            let report = SubjectReport::passed().figure("charge_share", found.charge);
            Ok(report.fact("discharging", found.discharging.to_string()).checked(wrong))
        }
    }
}

/// Sets each class of a thread and reads it again.
pub(super) fn qos(_: &SubjectTask) -> SubjectOutcome {
    if let Err(error) = ThreadQos::current() {
        return Ok(unavailable(&error));
    }
    let all = [ThreadQos::Utility, ThreadQos::Initiated, ThreadQos::Interactive];
    for class in all {
        class.set().map_err(|error| format!("{class:?}: {error}"))?;
        let found = ThreadQos::current().map_err(|error| error.to_string())?;
        if found != class {
            return Ok(SubjectReport::failed(format!("{class:?} was set, {found:?} was found")));
        }
    }
    Ok(SubjectReport::passed())
}

/// Factors of a product, and what it gives.
struct ProductCase {
    a: Vec<f32>,
    b: Vec<f32>,
    expected: Vec<f32>,
}

impl ProductCase {
    /// Small whole numbers, whose sums are exact in every type.
    fn new() -> Self {
        let at = |place: usize, period: usize| {
            f32::from(u8::try_from(place % period).unwrap_or(0)) - 2.0
        };
        let a: Vec<f32> = (0..SIZE * SIZE).map(|place| at(place, 5)).collect();
        let b: Vec<f32> = (0..SIZE * SIZE).map(|place| at(place, 7)).collect();
        let cell = |place: usize| {
            (0..SIZE).map(|k| a[place / SIZE * SIZE + k] * b[k * SIZE + place % SIZE]).sum()
        };
        let expected = (0..SIZE * SIZE).map(cell).collect();
        Self { a, b, expected }
    }

    fn wrong(&self, found: &[f32]) -> Option<String> {
        let mut pairs = self.expected.iter().zip(found).enumerate();
        let (at, (expected, found)) = pairs.find(|(_, (expected, found))| expected != found)?;
        Some(format!("element {at} is {found}, expected {expected}"))
    }
}

const SIZES: BlasSizes = BlasSizes { m: SIZE, n: SIZE, k: SIZE };

/// Multiplies matrices of FP32 with Accelerate.
pub(super) fn accelerate(_: &SubjectTask) -> SubjectOutcome {
    let library = match BlasLibrary::system() {
        Ok(library) => library,
        Err(error) => return Ok(unavailable(&error)),
    };
    let case = ProductCase::new();
    let operand = |data| BlasOperand { data, stride: SIZE, orientation: OperandOrientation::Plain };
    let mut c = vec![0.0; SIZE * SIZE];
    let scaling = GemmScaling { alpha: 1.0, beta: 0.0 };
    let started = Instant::now();
    let done = library.sgemm(SIZES, scaling, operand(&case.a), operand(&case.b), &mut c, SIZE);
    done.map_err(|error| error.to_string())?;
    let ms = started.elapsed().as_secs_f64() * 1e3;
    Ok(SubjectReport::passed().figure("first_ms", ms).checked(case.wrong(&c)))
}

/// Multiplies matrices of BF16 with BNNS.
pub(super) fn bnns(_: &SubjectTask) -> SubjectOutcome {
    let library = match BnnsLibrary::system() {
        Ok(library) => library,
        Err(error) => return Ok(unavailable(&error)),
    };
    let case = ProductCase::new();
    let bits = |all: &[f32]| -> Vec<u16> {
        all.iter().map(|value| u16::try_from(value.to_bits() >> 16).unwrap_or(0)).collect()
    };
    let halves = [bits(&case.a), bits(&case.b)];
    let factor = |at: usize| BnnsFactor {
        data: BnnsElements::Bf16(&halves[at]),
        stride: SIZE,
        orientation: OperandOrientation::Plain,
    };
    let mut c = vec![0.0; SIZE * SIZE];
    let started = Instant::now();
    let done = library.multiply(SIZES, 1.0, factor(0), factor(1), &mut c, SIZE);
    done.map_err(|error| error.to_string())?;
    let ms = started.elapsed().as_secs_f64() * 1e3;
    Ok(SubjectReport::passed().figure("first_ms", ms).checked(case.wrong(&c)))
}
