//! Database of measurements, by key.

use std::fmt;

use galatea_tensor::OrderedMap;

use super::config_space::ConfigSpace;
use super::measure::TuningOutcome;

/// Key of a record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TuningKey {
    /// The operator or family of kernels, such as `gemm-f32`.
    pub family: String,
    /// The lengths, each rounded: see [`bucket`].
    pub bucket: String,
    /// Chip and build of the operating system: what is fast elsewhere says nothing here.
    pub machine: String,
    /// A number for the names of all candidates: with other candidates another may be the best.
    pub candidates: u64,
}

impl TuningKey {
    /// The key of a choice.
    #[must_use]
    pub fn new(family: &str, bucket: String, machine: &str, space: &ConfigSpace) -> Self {
        let family = family.to_owned();
        let machine = machine.to_owned();
        Self { family, bucket, machine, candidates: hash_of_names(&space.names()) }
    }
}

impl fmt::Display for TuningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.family, self.bucket)
    }
}

/// Lengths by name, each rounded up to a power of two or one and a half of one: `m128 k768 n3072`.
/// A candidate that is fast for one length is fast for those near it.
#[must_use]
pub fn bucket(lengths: &[(&str, usize)]) -> String {
    let round = |len: usize| {
        let power = len.max(1).checked_next_power_of_two().unwrap_or(usize::MAX);
        if power >= 4 && len <= power / 4 * 3 { power / 4 * 3 } else { power }
    };
    let part = |(name, len): &(&str, usize)| format!("{name}{}", round(*len));
    lengths.iter().map(part).collect::<Vec<_>>().join(" ")
}

/// A number for names: FNV-1a of all of them.
///
/// Source: G. Fowler, L. Noll, K. Vo, "The FNV Non-Cryptographic Hash Algorithm".
pub(crate) fn hash_of_names(names: &[String]) -> u64 {
    let bytes = names.iter().flat_map(|name| name.bytes().chain([0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The best of some candidates.
#[derive(Clone, Debug, PartialEq)]
pub struct TuningRecord {
    /// Its name.
    pub choice: String,
    /// Its time, in nanoseconds.
    pub time_ns: f64,
    /// The default's time, in nanoseconds.
    pub default_ns: f64,
    /// Number of candidates that were measured.
    pub trials: u64,
    /// Names and times of the other candidates; no time for those that failed.
    pub others: Vec<(String, Option<f64>)>,
    /// Candidates that failed or computed something else, with the reason.
    pub refused: Vec<(String, String)>,
}

impl TuningRecord {
    /// Creates the record of a search's outcome.
    #[must_use]
    pub fn new(space: &ConfigSpace, outcome: &TuningOutcome) -> Self {
        let others = outcome.trials.iter().filter(|trial| trial.candidate != outcome.best);
        let refused = outcome.refused.iter();
        Self {
            choice: space.name(outcome.best),
            time_ns: outcome.best_ns,
            default_ns: outcome.default_ns,
            trials: outcome.trials.len() as u64,
            others: others.map(|trial| (space.name(trial.candidate), trial.time_ns)).collect(),
            refused: refused.map(|r| (space.name(r.candidate), r.reason.clone())).collect(),
        }
    }
}

/// Records by key.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TuningDatabase {
    records: OrderedMap<TuningKey, TuningRecord>,
}

impl TuningDatabase {
    /// Returns the candidate that is on record as the fastest. Measures nothing.
    #[must_use]
    pub fn choose(&self, key: &TuningKey, space: &ConfigSpace) -> Option<usize> {
        let record = self.records.get(key)?;
        (0..space.len()).find(|&candidate| space.name(candidate) == record.choice)
    }

    /// Remembers a record in the place of an older one.
    pub fn insert(&mut self, key: TuningKey, record: TuningRecord) {
        self.records.insert(key, record);
    }

    /// The record of a key.
    #[must_use]
    pub fn get(&self, key: &TuningKey) -> Option<&TuningRecord> {
        self.records.get(key)
    }

    /// All records in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&TuningKey, &TuningRecord)> {
        self.records.iter()
    }

    /// Returns the number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Returns whether there is no record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Takes the records of another database. Of two for one key, the one of more trials stays; of
    /// equal ones, the faster.
    pub fn merge(&mut self, other: Self) {
        for (key, record) in other.records {
            let better =
                |old: &TuningRecord| (record.trials, -record.time_ns) > (old.trials, -old.time_ns);
            if self.records.get(&key).is_none_or(better) {
                self.records.insert(key, record);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::config_space::ConfigAxis;
    use super::*;

    fn record(choice: &str, time_ns: f64, trials: u64) -> TuningRecord {
        let others = vec![("threads=2".to_owned(), Some(5.5)), ("threads=4".to_owned(), None)];
        let refused =
            vec![("threads=4".to_owned(), "result 3 is 1, the default's is 2".to_owned())];
        TuningRecord {
            choice: choice.to_owned(),
            time_ns,
            default_ns: 9.0,
            trials,
            others,
            refused,
        }
    }

    fn key(bucket: &str, space: &ConfigSpace) -> TuningKey {
        TuningKey::new("gemm-f32", bucket.to_owned(), "chip, build 1", space)
    }

    #[test]
    fn lengths_share_a_bucket_with_those_near_them() {
        assert_eq!(bucket(&[("m", 1), ("k", 768), ("n", 3072)]), "m1 k768 n3072");
        assert_eq!(bucket(&[("m", 100), ("k", 700), ("n", 3000)]), "m128 k768 n3072");
        assert_eq!(bucket(&[("m", 0), ("k", 3), ("n", 5)]), "m1 k3 n6");
        assert_eq!(bucket(&[("m", usize::MAX)]), format!("m{}", usize::MAX));
    }

    #[test]
    fn what_is_remembered_is_chosen_for_the_same_candidates_only() {
        let space = ConfigSpace::new(vec![ConfigAxis::numbers("threads", &[2, 1])]);
        let mut database = TuningDatabase::default();
        database.insert(key("m64", &space), record("threads=1", 4.25, 2));
        assert_eq!(database.choose(&key("m64", &space), &space), Some(1));
        assert_eq!(database.choose(&key("m128", &space), &space), None);
        let other = ConfigSpace::new(vec![ConfigAxis::numbers("threads", &[4, 1])]);
        assert_eq!(database.choose(&key("m64", &other), &other), None);
    }

    #[test]
    fn of_two_records_the_better_founded_one_stays() {
        let space = ConfigSpace::new(vec![ConfigAxis::numbers("threads", &[2, 1])]);
        let made = |all: &[(&str, f64, u64)]| {
            let mut database = TuningDatabase::default();
            for (bucket, time, trials) in all {
                database.insert(key(bucket, &space), record("threads=1", *time, *trials));
            }
            database
        };
        let mut first = made(&[("m1", 5.0, 8), ("m2", 5.0, 8), ("m3", 5.0, 8)]);
        first.merge(made(&[("m1", 4.0, 8), ("m2", 4.0, 7), ("m4", 1.0, 1)]));
        let times: Vec<f64> = first.iter().map(|(_, record)| record.time_ns).collect();
        assert_eq!(times, [4.0, 5.0, 5.0, 1.0]);
    }
}
