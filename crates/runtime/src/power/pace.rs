//! Gate that runs pass before they begin, and counters of the time that they take.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::gate::{PowerGate, PowerPermit};
use super::governor::ThreadClass;
use super::reading::PowerDraw;

/// A gate, with the time that runs behind it took on each unit: of the process, or of one model.
#[derive(Debug)]
pub struct Throttle {
    gate: PowerGate,
    units: Mutex<Vec<(String, Arc<AtomicU64>)>>,
    class: AtomicU8,
}

impl Default for Throttle {
    fn default() -> Self {
        Self {
            gate: PowerGate::new(1),
            units: Mutex::default(),
            class: AtomicU8::new(ThreadClass::Urgent as u8),
        }
    }
}

impl Throttle {
    /// At full pace, with urgent threads.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The gate.
    #[must_use]
    pub fn gate(&self) -> &PowerGate {
        &self.gate
    }

    /// Sets the urgency of compute threads from now on.
    pub fn set_class(&self, class: ThreadClass) {
        self.class.store(class as u8, Ordering::Relaxed);
    }

    /// Returns the urgency of compute threads.
    #[must_use]
    pub fn class(&self) -> ThreadClass {
        let now = self.class.load(Ordering::Relaxed);
        ThreadClass::ALL.into_iter().find(|class| *class as u8 == now).unwrap_or(ThreadClass::Usual)
    }

    /// Time that runs took on each unit so far, each run counted for itself.
    #[must_use]
    pub fn spent(&self) -> Vec<(String, Duration)> {
        let units = self.units.lock().unwrap_or_else(PoisonError::into_inner);
        let time = |ns: &AtomicU64| Duration::from_nanos(ns.load(Ordering::Relaxed));
        units.iter().map(|(unit, ns)| (unit.clone(), time(ns))).collect()
    }

    /// Returns the counter of the time on a device.
    fn on(&self, unit: &str) -> Arc<AtomicU64> {
        let mut units = self.units.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = units.iter().find(|(name, _)| name == unit) {
            return Arc::clone(known);
        }
        let new = Arc::<AtomicU64>::default();
        units.push((unit.to_owned(), Arc::clone(&new)));
        new
    }
}

/// Paces of a session's runs, if any: they pass the model's own first, then that of the process.
#[derive(Clone, Debug, Default)]
pub struct PaceSource {
    /// Pace of the model.
    pub own: Option<Arc<Throttle>>,
    /// Pace of the process.
    pub all: Option<Arc<Throttle>>,
}

impl PaceSource {
    fn both(&self) -> impl Iterator<Item = &Arc<Throttle>> {
        self.own.iter().chain(&self.all)
    }

    /// Waits until a run may begin.
    pub(crate) fn enter(&self) -> [Option<PowerPermit<'_>>; 2] {
        // Who waits for the model's turn keeps nobody else from working.
        [&self.own, &self.all].map(|pace| pace.as_deref().map(|pace| pace.gate.enter()))
    }

    /// Returns a counter of the time of runs on a device.
    #[must_use]
    pub fn counting(&self, unit: &str) -> BusyTime {
        BusyTime(self.both().map(|pace| pace.on(unit)).collect())
    }

    /// Returns the urgency of compute threads: the lower one of the model's and the process's.
    #[must_use]
    pub fn class(&self) -> ThreadClass {
        let least = self.both().map(|pace| pace.class()).min();
        least.unwrap_or(ThreadClass::Urgent)
    }
}

impl PartialEq for PaceSource {
    fn eq(&self, other: &Self) -> bool {
        let same = |one: &Option<Arc<Throttle>>, two: &Option<Arc<Throttle>>| match (one, two) {
            (None, None) => true,
            (Some(one), Some(two)) => Arc::ptr_eq(one, two),
            _ => false,
        };
        same(&self.own, &other.own) && same(&self.all, &other.all)
    }
}

impl Eq for PaceSource {}

/// Counter of the time on one device.
#[derive(Debug, Default)]
pub struct BusyTime(Vec<Arc<AtomicU64>>);

impl BusyTime {
    /// Counts the time since `begin`.
    pub fn since(&self, begin: Instant) {
        let ns = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(0);
        for count in &self.0 {
            count.fetch_add(ns, Ordering::Relaxed);
        }
    }
}

/// Returns the watts of a chip's draw that are attributed to a model.
///
/// Each device whose watts are known is charged to the model by the share of time that the model's runs took
/// there. The rest of the chip is charged by the same share as those devices, or by the share of the time where
/// none is known. `own` and `all` are the times of the model and of all models on each device; `part` returns a
/// device's draw. Returns `None` if the chip does not report its draw.
#[must_use]
pub fn attributed(
    own: &[(String, Duration)],
    all: &[(String, Duration)],
    draw: &PowerDraw,
    part: impl Fn(&str, &PowerDraw) -> Option<f64>,
) -> Option<f64> {
    let chip = draw.chip()?;
    let mut known = 0.0;
    let mut mine = 0.0;
    let mut time = 0.0;
    let mut my_time = 0.0;
    for (unit, everybody) in all.iter().filter(|(_, time)| !time.is_zero()) {
        let model = own.iter().find(|(name, _)| name == unit);
        let model = model.map_or(Duration::ZERO, |(_, time)| *time).min(*everybody);
        time += everybody.as_secs_f64();
        my_time += model.as_secs_f64();
        if let Some(watts) = part(unit, draw) {
            known += watts;
            mine += watts * model.as_secs_f64() / everybody.as_secs_f64();
        }
    }
    let share = match (known > 0.0, time > 0.0) {
        (true, _) => mine / known,
        (false, true) => my_time / time,
        (false, false) => 0.0,
    };
    Some(mine + (chip - known).max(0.0) * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(list: &[(&str, u64)]) -> Vec<(String, Duration)> {
        let time = |(unit, ms): &(&str, u64)| ((*unit).to_owned(), Duration::from_millis(*ms));
        list.iter().map(time).collect()
    }

    fn part(unit: &str, draw: &PowerDraw) -> Option<f64> {
        match unit {
            "cpu" => draw.cpu,
            "gpu" => draw.gpu,
            _ => None,
        }
    }

    #[test]
    fn a_model_is_charged_for_its_time_on_each_unit_and_its_share_of_the_rest() {
        let watts = |own: &[(&str, u64)], draw: &PowerDraw| {
            attributed(&times(own), &times(&[("cpu", 400), ("gpu", 800)]), draw, part)
        };
        let draw =
            PowerDraw { cpu: Some(4.0), gpu: Some(8.0), memory: Some(3.0), ..PowerDraw::default() };
        assert_eq!(
            watts(&[("gpu", 800)], &draw),
            Some(10.0),
            "all of the GPU, two thirds of memory"
        );
        assert_eq!(watts(&[("cpu", 400), ("gpu", 800)], &draw), Some(15.0));
        assert_eq!(watts(&[], &draw), Some(0.0));
        // Only the chip has a sensor: time is all that is known.
        let chip = PowerDraw { package: Some(12.0), ..PowerDraw::default() };
        let part_of_time = watts(&[("cpu", 300)], &chip).unwrap();
        assert!((part_of_time - 3.0).abs() < 1e-9, "{part_of_time}");
        assert_eq!(watts(&[("cpu", 300)], &PowerDraw::default()), None);
        assert_eq!(attributed(&[], &[], &chip, part), Some(0.0), "nobody works");
    }

    #[test]
    fn time_is_counted_for_the_model_and_for_everybody() {
        let source = PaceSource { own: Some(Arc::default()), all: Some(Arc::default()) };
        let spent = source.counting("gpu");
        spent.since(Instant::now() - Duration::from_millis(5));
        for pace in source.both() {
            let [(unit, time)] = &pace.spent()[..] else { panic!("one unit was used") };
            assert!(unit == "gpu" && *time >= Duration::from_millis(5));
        }
        assert_eq!(source.class(), ThreadClass::Urgent);
        source.both().last().unwrap().set_class(ThreadClass::Thrifty);
        assert_eq!(source.class(), ThreadClass::Thrifty);
    }
}
