//! Models and versions with their states.

use std::sync::{Arc, Weak};

use galatea_tensor::OrderedMap;

use super::ab_variants::LiveAbTest;
use super::describe::{ModelIndexEntry, VersionState};
use super::load_record::LoadRecord;
use super::loaded::{LoadedVersion, VersionExecutor};
use super::tuning::CoreActivity;
use crate::error::ServingError;
use crate::repository::{FoundModel, ModelId, NameMeaning};

/// Why a version that was taken out of service is not available.
pub(super) const UNLOADED: &str = "unloaded";

/// Why a model cannot be used whose name two repositories have.
pub(super) const AMBIGUOUS: &str = "model appears in two or more repositories";

/// A version and its state.
#[derive(Debug)]
pub(super) enum VersionEntry {
    Ready(Arc<LoadedVersion>),
    Unavailable(String),
    Loading,
    Unloading(Arc<LoadedVersion>),
}

/// Which load a change belongs to: a later load or unload of the model makes it void.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LoadEpoch(u64);

/// Origin of the wish for a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WantedBy {
    /// The operator or a client, by name.
    Name,
    /// An ensemble that is composed of it.
    Ensemble,
}

/// The models of all repositories. One that was never loaded has no versions.
#[derive(Debug, Default)]
pub(super) struct ModelTable {
    naming: NameMeaning,
    /// By name, then by namespace.
    entries: OrderedMap<String, OrderedMap<String, ModelEntry>>,
    /// Versions that serve no more and still have requests.
    leaving: Vec<Weak<LoadedVersion>>,
}

#[derive(Debug, Default)]
struct ModelEntry {
    versions: OrderedMap<i64, VersionEntry>,
    /// Why the model as a whole cannot be used although it was to be loaded; shown in the index.
    reason: Option<String>,
    /// Whether the lifecycle knows the model: it was read, if not loaded.
    attempted: bool,
    /// Whether its bare name may mean it: it was read and not unloaded since.
    named: bool,
    /// Inputs that the versions were made from.
    record: Option<Arc<LoadRecord>>,
    /// Test over the versions.
    ab_test: Option<LiveAbTest>,
    epoch: u64,
    by_name: bool,
    /// Its configuration chooses none of the versions that there are; the index leaves such a model out.
    versionless: bool,
    /// It is an ensemble that waits for a model that it is composed of.
    suspended: bool,
}

impl ModelTable {
    /// No models yet.
    pub(super) fn new(naming: NameMeaning) -> Self {
        Self { naming, ..Self::default() }
    }

    fn entry(&self, id: &ModelId) -> Option<&ModelEntry> {
        self.entries.get(&id.name)?.get(&id.namespace)
    }

    fn entry_mut(&mut self, id: &ModelId) -> Option<&mut ModelEntry> {
        self.entries.get_mut(&id.name)?.get_mut(&id.namespace)
    }

    fn all(&self) -> impl Iterator<Item = &ModelEntry> {
        self.entries.values().flat_map(OrderedMap::values)
    }

    /// Makes a model known.
    pub(super) fn know(&mut self, id: &ModelId) {
        self.known(id);
    }

    fn known(&mut self, id: &ModelId) -> &mut ModelEntry {
        self.entries.entry(id.name.clone()).or_default().entry(id.namespace.clone()).or_default()
    }

    /// Forgets models that were never loaded and have no folder any more.
    pub(super) fn forget_unless(&mut self, exists: impl Fn(&ModelId) -> bool) {
        self.entries.retain(|name, spaces| {
            spaces.retain(|namespace, entry| {
                entry.attempted
                    || exists(&ModelId { namespace: namespace.clone(), name: name.clone() })
            });
            !spaces.is_empty()
        });
    }

    /// Says that a model as a whole cannot be used.
    pub(super) fn set_unusable(&mut self, id: &ModelId, reason: Option<String>) {
        self.known(id).reason = reason;
    }

    /// Begins a load; what an earlier one still brings is void.
    pub(super) fn begin(&mut self, id: &ModelId, by: WantedBy) -> LoadEpoch {
        let entry = self.known(id);
        entry.attempted = true;
        entry.named = true;
        entry.epoch += 1;
        entry.by_name |= by == WantedBy::Name;
        entry.suspended = false;
        entry.versionless = false;
        LoadEpoch(entry.epoch)
    }

    fn current(&mut self, id: &ModelId, epoch: LoadEpoch) -> Option<&mut ModelEntry> {
        self.entry_mut(id).filter(|entry| entry.epoch == epoch.0)
    }

    /// Shows a version as being loaded, unless it serves meanwhile.
    pub(super) fn loading(&mut self, id: &ModelId, version: i64, epoch: LoadEpoch) {
        if let Some(entry) = self.current(id, epoch)
            && !matches!(entry.versions.get(&version), Some(VersionEntry::Ready(_)))
        {
            entry.versions.insert(version, VersionEntry::Loading);
        }
    }

    /// Puts a loaded version into service, and gives the one that it replaces. The version itself comes back when a
    /// later load or unload has overtaken it.
    pub(super) fn serve(
        &mut self,
        id: &ModelId,
        version: i64,
        epoch: LoadEpoch,
        loaded: Arc<LoadedVersion>,
    ) -> Result<Option<Arc<LoadedVersion>>, Arc<LoadedVersion>> {
        let Some(entry) = self.current(id, epoch) else { return Err(loaded) };
        if let Some(VersionEntry::Ready(before)) = entry.versions.get(&version) {
            // Before anybody finds it, so that no request of a sequence comes before the sequence.
            loaded.take_over(before);
        }
        let before = entry.versions.insert(version, VersionEntry::Ready(loaded));
        let before = match before {
            Some(VersionEntry::Ready(before)) => Some(before),
            _ => None,
        };
        before.iter().for_each(|before| before.leave_service());
        self.leaving.extend(before.as_ref().map(Arc::downgrade));
        Ok(before)
    }

    /// Says that a version could not be loaded; one that serves goes on.
    pub(super) fn failed(&mut self, id: &ModelId, version: i64, epoch: LoadEpoch, reason: &str) {
        if let Some(entry) = self.current(id, epoch)
            && !matches!(entry.versions.get(&version), Some(VersionEntry::Ready(_)))
        {
            entry.versions.insert(version, VersionEntry::Unavailable(reason.to_owned()));
        }
    }

    /// Says that there is no version to load.
    pub(super) fn set_versionless(&mut self, id: &ModelId, epoch: LoadEpoch) {
        if let Some(entry) = self.current(id, epoch) {
            entry.versionless = true;
        }
    }

    /// Whether every model that was to be loaded serves. One that is being loaded for the first time does not yet.
    pub(super) fn all_serve(&self) -> bool {
        let serves = |version: &VersionEntry| match version {
            VersionEntry::Ready(_) | VersionEntry::Unloading(_) => true,
            VersionEntry::Unavailable(reason) => reason == UNLOADED,
            VersionEntry::Loading => false,
        };
        let usable = |entry: &ModelEntry| {
            entry.versions.values().all(serves) && !(entry.versionless && entry.versions.is_empty())
        };
        self.all().all(usable)
    }

    /// Lets no load that is under way come into service any more.
    pub(super) fn close(&mut self) {
        self.entries
            .values_mut()
            .flat_map(OrderedMap::values_mut)
            .for_each(|entry| entry.epoch += 1);
    }

    /// Notes what the versions are made from.
    pub(super) fn set_record(&mut self, id: &ModelId, epoch: LoadEpoch, record: Arc<LoadRecord>) {
        if let Some(entry) = self.current(id, epoch) {
            entry.record = Some(record);
        }
    }

    pub(super) fn record(&self, id: &ModelId) -> Option<Arc<LoadRecord>> {
        self.entry(id).and_then(|entry| entry.record.clone())
    }

    /// Takes versions out of service; those that `keep` does not name. They must be drained and then
    /// [`settled`](Self::settled).
    pub(super) fn retire(
        &mut self,
        id: &ModelId,
        keep: impl Fn(i64) -> bool,
    ) -> Vec<(i64, Arc<LoadedVersion>)> {
        let Some(entry) = self.entry_mut(id) else { return Vec::new() };
        let mut retired = Vec::new();
        for (&number, version) in entry.versions.iter_mut().filter(|(number, _)| !keep(**number)) {
            match version {
                VersionEntry::Ready(loaded) => {
                    let loaded = Arc::clone(loaded);
                    loaded.leave_service();
                    *version = VersionEntry::Unloading(Arc::clone(&loaded));
                    retired.push((number, loaded));
                }
                VersionEntry::Loading => {
                    *version = VersionEntry::Unavailable(UNLOADED.to_owned());
                }
                VersionEntry::Unavailable(_) | VersionEntry::Unloading(_) => {}
            }
        }
        retired
    }

    /// Takes a model out of service as a whole; loads of it that are under way become void.
    pub(super) fn unload(&mut self, id: &ModelId) -> Vec<(i64, Arc<LoadedVersion>)> {
        let mut own = Vec::new();
        if let Some(entry) = self.entry_mut(id) {
            own.extend(entry.ab_test.take().into_iter().flat_map(|live| live.retire()));
            entry.epoch += 1;
            entry.record = None;
            entry.by_name = false;
            entry.named = false;
            entry.suspended = false;
        }
        self.leaving.extend(own.iter().map(Arc::downgrade));
        let mut retired = self.retire(id, |_| false);
        retired.extend(own.into_iter().map(|loaded| (loaded.version_number(), loaded)));
        retired
    }

    /// The A/B test of a model.
    pub(super) fn ab_test(&self, id: &ModelId) -> Option<&LiveAbTest> {
        self.entry(id)?.ab_test.as_ref()
    }

    /// All A/B tests.
    pub(super) fn ab_tests(&self) -> impl Iterator<Item = &LiveAbTest> {
        self.all().filter_map(|entry| entry.ab_test.as_ref())
    }

    /// Puts an A/B test in the place of the one that ran, and gives the instances that are not needed any more: those
    /// of the test before, or of this one where a later load or unload has overtaken it.
    pub(super) fn set_ab_test(
        &mut self,
        id: &ModelId,
        epoch: LoadEpoch,
        test: Option<LiveAbTest>,
    ) -> Vec<Arc<LoadedVersion>> {
        let old = match self.current(id, epoch) {
            Some(entry) => std::mem::replace(&mut entry.ab_test, test),
            None => test,
        };
        let own: Vec<_> = old.into_iter().flat_map(|live| live.retire()).collect();
        self.leaving.extend(own.iter().map(Arc::downgrade));
        own
    }

    /// Takes an ensemble out of service until the models that it is composed of are back.
    pub(super) fn suspend(&mut self, id: &ModelId) -> Vec<(i64, Arc<LoadedVersion>)> {
        let by_name = self.is_wanted_by_name(id);
        let retired = self.unload(id);
        if let Some(entry) = self.entry_mut(id) {
            entry.by_name = by_name;
            entry.named = true;
            entry.suspended = true;
        }
        retired
    }

    pub(super) fn is_suspended(&self, id: &ModelId) -> bool {
        self.entry(id).is_some_and(|entry| entry.suspended)
    }

    /// Notes that somebody asked for the model by its name.
    pub(super) fn want_by_name(&mut self, id: &ModelId) {
        if let Some(entry) = self.entry_mut(id) {
            entry.by_name = true;
        }
    }

    /// A retired version has answered its last request.
    pub(super) fn settled(&mut self, id: &ModelId, version: i64, loaded: &Arc<LoadedVersion>) {
        let entry = self.entry_mut(id).and_then(|entry| entry.versions.get_mut(&version));
        if let Some(entry) = entry
            && matches!(entry, VersionEntry::Unloading(known) if Arc::ptr_eq(known, loaded))
        {
            *entry = VersionEntry::Unavailable(UNLOADED.to_owned());
        }
    }

    /// Whether somebody asked for the model by its name.
    pub(super) fn is_wanted_by_name(&self, id: &ModelId) -> bool {
        self.entry(id).is_some_and(|entry| entry.by_name)
    }

    /// Models that the lifecycle knows.
    pub(super) fn attempted(&self) -> impl Iterator<Item = ModelId> {
        let ids = self.entries.iter().flat_map(|(name, spaces)| {
            spaces.iter().map(move |(namespace, entry)| (name, namespace, entry))
        });
        ids.filter(|(_, _, entry)| entry.attempted).map(|(name, namespace, _)| ModelId {
            namespace: namespace.clone(),
            name: name.clone(),
        })
    }

    /// Whether a bare name may mean the model: it was read and not unloaded since.
    pub(super) fn is_named(&self, id: &ModelId) -> bool {
        self.entry(id).is_some_and(|entry| entry.named)
    }

    /// The models that a bare name may mean.
    pub(super) fn named(&self, name: &str) -> Vec<ModelId> {
        let spaces = self.entries.get(name).into_iter().flatten();
        spaces
            .filter(|(_, entry)| entry.named)
            .map(|(namespace, _)| ModelId { namespace: namespace.clone(), name: name.to_owned() })
            .collect()
    }

    /// Whether a model has a version that serves.
    pub(super) fn is_ready(&self, id: &ModelId) -> bool {
        self.ready_of(id).next().is_some()
    }

    /// The version wanted, or the latest that is ready, of the model that a bare name means.
    ///
    /// # Errors
    /// When the name means no model or several, or the version is not ready.
    pub(super) fn find(
        &self,
        name: &str,
        version: Option<i64>,
    ) -> Result<&Arc<LoadedVersion>, ServingError> {
        let (namespace, entry) = self.meant(name)?;
        entry.find(&|| ModelId { namespace: namespace.to_owned(), name: name.to_owned() }, version)
    }

    /// Finds like [`find`](Self::find) a model in its namespace.
    ///
    /// # Errors
    /// When the model is unknown or the version is not ready.
    pub(super) fn find_in(
        &self,
        id: &ModelId,
        version: Option<i64>,
    ) -> Result<&Arc<LoadedVersion>, ServingError> {
        let entry = self.entry(id).filter(|entry| entry.attempted);
        let unknown = || ServingError::not_found(unknown(&id.to_string()));
        entry.ok_or_else(unknown)?.find(&|| id.clone(), version)
    }

    /// The model that a bare name means.
    fn meant(&self, name: &str) -> Result<(&str, &ModelEntry), ServingError> {
        let spaces = self.entries.get(name);
        if self.naming == NameMeaning::Unique {
            let only = spaces.and_then(|spaces| spaces.get("")).filter(|entry| entry.attempted);
            let only = only.map(|entry| ("", entry));
            return only.ok_or_else(|| ServingError::not_found(unknown(name)));
        }
        let Some(spaces) = spaces.filter(|spaces| spaces.values().any(|entry| entry.attempted))
        else {
            return Err(ServingError::invalid_arg(unknown(name)));
        };
        let mut meant = spaces.iter().filter(|(_, entry)| entry.named);
        match (meant.next(), meant.count()) {
            (Some((namespace, entry)), 0) => Ok((namespace, entry)),
            (None, _) => Err(ServingError::not_found(format!(
                "Identifier of model '{name}' is not found in global map"
            ))),
            (Some(_), more) => Err(ServingError::invalid_arg(format!(
                "There are {} identifiers of model '{name}' in global map, model namespace must be provided to \
                 resolve ambiguity.",
                more + 1
            ))),
        }
    }

    pub(super) fn ready_of(
        &self,
        id: &ModelId,
    ) -> impl Iterator<Item = (i64, &Arc<LoadedVersion>)> + use<'_> {
        let versions = self.entry(id).map(|entry| &entry.versions);
        versions.into_iter().flatten().filter_map(|(&number, entry)| Some((number, entry.ready()?)))
    }

    pub(super) fn ready_versions(&self, id: &ModelId) -> Vec<String> {
        self.ready_of(id).map(|(number, _)| number.to_string()).collect()
    }

    /// Versions that serve, and the instances of A/B tests.
    pub(super) fn all_running(&self) -> impl Iterator<Item = &Arc<LoadedVersion>> {
        self.all_ready().chain(self.ab_tests().flat_map(LiveAbTest::own))
    }

    pub(super) fn all_ready(&self) -> impl Iterator<Item = &Arc<LoadedVersion>> {
        self.all().flat_map(|entry| entry.versions.values()).filter_map(VersionEntry::ready)
    }

    /// Requests without an answer, those of versions that are leaving included.
    pub(super) fn unanswered(&mut self) -> usize {
        self.leaving.retain(|version| version.strong_count() > 0);
        let leaving = self.leaving.iter().filter_map(Weak::upgrade);
        let leaving: usize = leaving.map(|version| version.context.unanswered()).sum();
        let of = |entry: &VersionEntry| match entry {
            VersionEntry::Ready(loaded) | VersionEntry::Unloading(loaded) => {
                loaded.context.unanswered()
            }
            VersionEntry::Unavailable(_) | VersionEntry::Loading => 0,
        };
        let serving = self.all().flat_map(|entry| entry.versions.values());
        let tested = self.ab_tests().flat_map(LiveAbTest::own);
        let tested: usize = tested.map(|version| version.context.unanswered()).sum();
        leaving + tested + serving.map(of).sum::<usize>()
    }

    /// Requests that the versions in service have accepted, and those of them without an answer.
    pub(super) fn activity(&self) -> CoreActivity {
        let mut activity = CoreActivity::default();
        for entry in self.all().flat_map(|entry| entry.versions.values()) {
            if let VersionEntry::Ready(loaded) | VersionEntry::Unloading(loaded) = entry {
                activity.accepted = activity.accepted.wrapping_add(loaded.context.accepted());
                activity.unanswered += loaded.context.unanswered();
            }
            activity.loading += usize::from(matches!(entry, VersionEntry::Loading));
        }
        activity
    }

    /// Requests without an answer of ensembles that serve or leave.
    pub(super) fn ensembles_unanswered(&self) -> usize {
        let versions = self.all().flat_map(|entry| entry.versions.values());
        let of = |entry: &VersionEntry| match entry {
            VersionEntry::Ready(loaded) | VersionEntry::Unloading(loaded) => {
                match loaded.executor {
                    VersionExecutor::Ensemble(_) => loaded.context.unanswered(),
                    VersionExecutor::Instances(_) => 0,
                }
            }
            VersionEntry::Unavailable(_) | VersionEntry::Loading => 0,
        };
        versions.map(of).sum()
    }

    /// The lines of a model folder in the index: its versions with their states, or its name alone.
    pub(super) fn index_of(&self, found: &FoundModel) -> Vec<ModelIndexEntry> {
        let line = |version: Option<i64>, state, reason| ModelIndexEntry {
            name: found.id.name.clone(),
            namespace: found.id.namespace.clone(),
            version: version.map(|version| version.to_string()),
            state,
            reason,
        };
        if found.ambiguous {
            let reason = Some(AMBIGUOUS.to_owned());
            return vec![line(None, Some(VersionState::Unavailable), reason)];
        }
        let Some(entry) = self.entry(&found.id) else {
            return vec![line(None, None, None)];
        };
        if entry.versions.is_empty() && !entry.versionless {
            return vec![line(None, None, None)];
        }
        let described = |(&number, version): (&i64, &VersionEntry)| {
            let (state, reason) = version.described();
            line(Some(number), Some(state), reason)
        };
        entry.versions.iter().map(described).collect()
    }
}

fn unknown(model: &str) -> String {
    format!("Request for unknown model: '{model}' is not found")
}

impl ModelEntry {
    fn find(
        &self,
        id: &dyn Fn() -> ModelId,
        version: Option<i64>,
    ) -> Result<&Arc<LoadedVersion>, ServingError> {
        let of =
            |text: std::fmt::Arguments<'_>| format!("Request for unknown model: '{}' {text}", id());
        let Some(version) = version else {
            let ready = self.versions.values().rev().find_map(VersionEntry::ready);
            let none = || of(format_args!("has no available versions"));
            return ready.ok_or_else(|| ServingError::not_found(none()));
        };
        match self.versions.get(&version) {
            None => {
                Err(ServingError::not_found(of(format_args!("version {version} is not found"))))
            }
            Some(VersionEntry::Ready(loaded)) => Ok(loaded),
            Some(_) => {
                let text = of(format_args!("version {version} is not at ready state"));
                Err(ServingError::unavailable(text))
            }
        }
    }
}

impl VersionEntry {
    fn ready(&self) -> Option<&Arc<LoadedVersion>> {
        match self {
            Self::Ready(loaded) => Some(loaded),
            Self::Unavailable(_) | Self::Loading | Self::Unloading(_) => None,
        }
    }

    fn described(&self) -> (VersionState, Option<String>) {
        match self {
            Self::Ready(loaded) => (VersionState::Ready, loaded.out_of_memory()),
            Self::Unavailable(reason) => (VersionState::Unavailable, Some(reason.clone())),
            Self::Loading => (VersionState::Loading, None),
            Self::Unloading(_) => (VersionState::Unloading, None),
        }
    }
}

/// Reads a version as C's `stol` does, whose results Triton's clients know: leading digits count, what follows does
/// not. Empty is the latest version.
///
/// # Errors
/// When there are no digits, too many of them, or a negative number.
pub(super) fn parse_version(text: &str) -> Result<Option<i64>, ServingError> {
    if text.is_empty() {
        return Ok(None);
    }
    let trimmed = text.trim_start();
    let signed = trimmed.starts_with(['-', '+']);
    let digits = trimmed.chars().skip(usize::from(signed)).take_while(char::is_ascii_digit).count();
    let number: String = trimmed.chars().take(digits + usize::from(signed)).collect();
    match number.parse::<i64>() {
        Ok(version) if version >= 0 => Ok(Some(version)),
        Ok(_) => Err(ServingError::invalid_arg(format!(
            "invalid model version specified '{text}' , version should be an integral value > 0"
        ))),
        Err(_) => Err(ServingError::invalid_arg(format!(
            "failed to get model version from specified version string '{text}' (details: stol), version should be an \
             integral value > 0"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_triton_reads_them() {
        assert_eq!(parse_version("").unwrap(), None);
        assert_eq!(parse_version("01").unwrap(), Some(1));
        assert_eq!(parse_version("1abc").unwrap(), Some(1));
        assert_eq!(parse_version("0").unwrap(), Some(0));
        let message = |text| parse_version(text).unwrap_err().message;
        assert_eq!(
            message("-1"),
            "invalid model version specified '-1' , version should be an integral value > 0"
        );
        for text in ["x", "-", "9223372036854775808"] {
            assert!(
                message(text)
                    .contains(&format!("version string '{text}' (details: stol), version should"))
            );
        }
    }
}
