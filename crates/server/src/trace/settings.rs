//! Settings of traces, for all models and for each: a state machine without clock or lock.

use galatea_tensor::OrderedMap;

use galatea_serving::ServingError;
use galatea_serving::trace::TraceLevel;

use super::config::{TraceConfig, TraceMode};
use super::view::TraceView;

/// Change of a setting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SettingChange<T> {
    /// It stays.
    #[default]
    Keep,
    /// It falls back: a model's to the one of all, that of all to the one at the start.
    Clear,
    /// It becomes this.
    To(T),
}

/// Settings to change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TraceChange {
    /// Level of detail of a trace.
    pub level: SettingChange<TraceLevel>,
    /// Sampling rate: one in this many requests is traced.
    pub rate: SettingChange<u32>,
    /// Number of traces still to make; -1 for no limit.
    pub count: SettingChange<i32>,
    /// Number of traces in a file; 0 for all.
    pub log_frequency: SettingChange<u32>,
}

/// Settings given for a model or for all, and the requests seen under them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct GivenSettings {
    level: Option<TraceLevel>,
    rate: Option<u32>,
    count: Option<i32>,
    log_frequency: Option<u32>,
    seen: u32,
    /// Traces that were chosen under the present count.
    chosen: u32,
    /// Number of the present count.
    group: u64,
}

/// A request that is traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampledRequest {
    /// Settings that chose it.
    pub view: TraceView,
    /// Its place in the count that limits traces, where one does.
    pub mark: Option<CountMark>,
}

/// Place of a trace in a count: when all traces of a used-up count are there, they make a file of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountMark {
    /// Number of the count.
    pub group: u64,
    /// Traces that the count was for; known with the last of them.
    pub total: Option<u32>,
}

impl<T: Copy> SettingChange<T> {
    fn apply(self, to: &mut Option<T>) {
        match self {
            Self::Keep => {}
            Self::Clear => *to = None,
            Self::To(value) => *to = Some(value),
        }
    }
}

impl GivenSettings {
    fn apply(mut self, change: TraceChange) -> Self {
        change.level.apply(&mut self.level);
        change.rate.apply(&mut self.rate);
        change.count.apply(&mut self.count);
        change.log_frequency.apply(&mut self.log_frequency);
        self
    }

    fn over(&self, base: TraceView) -> TraceView {
        TraceView {
            level: self.level.unwrap_or(base.level),
            rate: self.rate.unwrap_or(base.rate),
            count: self.count.unwrap_or(base.count),
            log_frequency: self.log_frequency.unwrap_or(base.log_frequency),
        }
    }

    fn is_empty(&self) -> bool {
        let Self { seen, chosen, group, .. } = *self;
        *self == Self { seen, chosen, group, ..Self::default() }
    }

    /// Counts a request; says whether it is one to trace.
    fn is_turn(&mut self, rate: u32) -> bool {
        self.seen = self.seen.wrapping_add(1);
        rate != 0 && self.seen.is_multiple_of(rate)
    }
}

/// The settings of all models.
#[derive(Debug)]
pub struct TraceSettings {
    start: TraceView,
    mode: TraceMode,
    has_file: bool,
    global: GivenSettings,
    models: OrderedMap<String, GivenSettings>,
    next_group: u64,
}

impl TraceSettings {
    /// The settings at the start.
    #[must_use]
    pub fn new(config: &TraceConfig) -> Self {
        Self {
            start: config.start,
            mode: config.mode,
            has_file: !config.file.is_empty(),
            global: GivenSettings::default(),
            models: OrderedMap::new(),
            next_group: 1,
        }
    }

    /// The settings in force for a model, or with an empty name for those without their own.
    #[must_use]
    pub fn view(&self, model: &str) -> TraceView {
        let global = self.global.over(self.start);
        self.models.get(model).map_or(global, |given| given.over(global))
    }

    /// Returns whether any request may be traced.
    #[must_use]
    pub fn is_active(&self) -> bool {
        let all = std::iter::once("").chain(self.models.keys().map(String::as_str));
        // A collector of OpenTelemetry gets what its senders trace also when the count is used up.
        let collects = self.mode == TraceMode::OpenTelemetry;
        all.map(|model| self.view(model))
            .any(|view| !view.level.is_off() && (view.count != 0 || collects))
    }

    /// Changes the settings of a model, or with an empty name those of all.
    ///
    /// # Errors
    /// Fails when traces would have no destination, or none could be made; nothing is changed then.
    pub fn change(&mut self, model: &str, change: TraceChange) -> Result<TraceView, ServingError> {
        let base = if model.is_empty() { self.start } else { self.view("") };
        let old = if model.is_empty() {
            self.global
        } else {
            self.models.get(model).copied().unwrap_or_default()
        };
        let given = GivenSettings { chosen: 0, group: self.next_group, ..old.apply(change) };
        self.next_group += 1;
        if given.is_empty() && !model.is_empty() {
            self.models.remove(model);
            return Ok(base);
        }
        let view = given.over(base);
        self.check(view)?;
        if model.is_empty() {
            self.global = given;
        } else {
            self.models.insert(model.to_owned(), given);
        }
        Ok(view)
    }

    fn check(&self, view: TraceView) -> Result<(), ServingError> {
        let why = if view.level.is_off() {
            return Ok(());
        } else if view.rate == 0 {
            "sample rate must be non-zero"
        } else if self.mode == TraceMode::Triton && !self.has_file {
            "trace file name is not given"
        } else if view.count == 0 {
            // Triton gives no reason for this one.
            ""
        } else {
            return Ok(());
        };
        Err(ServingError::invalid_arg(format!("Attempting to set invalid trace setting :{why}")))
    }

    /// Decides whether a request of a model is traced. `forced`: its sender traces it already, whatever the rate and the
    /// count are.
    pub fn sample(&mut self, model: &str, forced: bool) -> Option<SampledRequest> {
        let view = self.view(model);
        if view.level.is_off() || (view.count == 0 && !forced) {
            return None;
        }
        let own = self.models.get_mut(model);
        let counter = match own {
            Some(given) => given,
            None => &mut self.global,
        };
        let chosen = counter.is_turn(view.rate) && view.count != 0;
        if !chosen && !forced {
            return None;
        }
        let mark = (chosen && view.count > 0).then(|| self.count_down(model));
        Some(SampledRequest { view, mark })
    }

    /// Takes one from the count that holds for a model.
    fn count_down(&mut self, model: &str) -> CountMark {
        let own = self.models.get_mut(model).filter(|given| given.count.is_some());
        let given = match own {
            Some(given) => given,
            None => &mut self.global,
        };
        // A start-up count becomes a given one when it begins to shrink.
        let count = given.count.get_or_insert(self.start.count);
        *count -= 1;
        let used_up = *count == 0;
        given.chosen = given.chosen.saturating_add(1);
        CountMark { group: given.group, total: used_up.then_some(given.chosen) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(file: &str) -> TraceSettings {
        let start = TraceView {
            level: TraceLevel { timestamps: true, tensors: false },
            rate: 1,
            count: -1,
            log_frequency: 0,
        };
        TraceSettings::new(&TraceConfig { start, file: file.to_owned(), ..TraceConfig::default() })
    }

    fn rate(rate: u32) -> TraceChange {
        TraceChange { rate: SettingChange::To(rate), ..TraceChange::default() }
    }

    #[test]
    fn models_inherit_live_what_they_are_not_given() {
        let mut settings = settings("f");
        settings.change("m", rate(11)).unwrap();
        let change = TraceChange { log_frequency: SettingChange::To(4), ..rate(21) };
        settings.change("", change).unwrap();
        let m = settings.view("m");
        assert_eq!((m.rate, m.log_frequency), (11, 4));
        assert_eq!(settings.view("other").rate, 21);
        let cleared = TraceChange { rate: SettingChange::Clear, ..TraceChange::default() };
        assert_eq!(settings.change("m", cleared).unwrap().rate, 21);
        assert_eq!(settings.change("", cleared).unwrap().rate, 1);
    }

    #[test]
    fn counts_go_down_to_nothing() {
        let mut settings = settings("f");
        settings
            .change("", TraceChange { count: SettingChange::To(2), ..TraceChange::default() })
            .unwrap();
        let marks: Vec<CountMark> =
            (0..5).filter_map(|_| settings.sample("m", false)?.mark).collect();
        let group = marks[0].group;
        let expected = [None, Some(2)].map(|total| CountMark { group, total });
        assert_eq!((marks.as_slice(), settings.view("").count), (&expected[..], 0));
        assert!(!settings.is_active());
        let error = settings.change(
            "",
            TraceChange { log_frequency: SettingChange::To(1), ..TraceChange::default() },
        );
        assert_eq!(error.unwrap_err().message, "Attempting to set invalid trace setting :");
        let error = settings.change("", rate(0)).unwrap_err().message;
        assert!(error.ends_with(":sample rate must be non-zero"));
    }

    #[test]
    fn every_nth_request_is_traced_and_forced_ones_are() {
        let mut settings = settings("f");
        settings.change("", rate(3)).unwrap();
        let turns: Vec<bool> = (0..7).map(|_| settings.sample("m", false).is_some()).collect();
        assert_eq!(turns, [false, false, true, false, false, true, false]);
        assert!(settings.sample("m", true).is_some());
    }

    #[test]
    fn requests_that_their_senders_trace_need_neither_rate_nor_count() {
        let forced = |rate, count| {
            let start = TraceView {
                level: TraceLevel { timestamps: true, tensors: false },
                rate,
                count,
                log_frequency: 0,
            };
            let mode = TraceMode::OpenTelemetry;
            TraceSettings::new(&TraceConfig { start, mode, ..TraceConfig::default() })
        };
        let mut never = forced(0, -1);
        assert!((0..5).all(|_| never.sample("m", false).is_none()));
        assert!(never.sample("m", true).is_some());
        let mut once = forced(2, 1);
        let chosen = (0..6).filter(|_| once.sample("m", false).is_some()).count();
        assert_eq!((chosen, once.view("").count), (1, 0));
        assert!(once.is_active() && once.sample("m", true).is_some());
        assert_eq!(once.view("").count, 0);
        // One that is forced counts only where it would have been chosen anyway.
        let mut other = forced(2, 5);
        let counts: Vec<i32> = (0..4)
            .map(|_| {
                assert!(other.sample("m", true).is_some());
                other.view("").count
            })
            .collect();
        assert_eq!(counts, [5, 4, 4, 3]);
    }

    #[test]
    fn traces_need_a_file() {
        let mut settings = settings("");
        let error = settings.change("m", rate(2)).unwrap_err().message;
        assert_eq!(error, "Attempting to set invalid trace setting :trace file name is not given");
        assert_eq!(settings.view("m").rate, 1);
    }
}
