//! Model repositories on disk: which models and versions there are.

use std::fmt;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use galatea_tensor::{OrderedMap, read_plain_file};

use crate::checkpoint_files::{is_checkpoint, model_name};
use crate::config::ModelConfig;
use crate::config::inference::model_version_policy::PolicyChoice;
use crate::error::ServingError;

/// Which model: its name and, where each repository is a namespace, the repository that it lies in.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModelId {
    /// Path of the repository; empty where names are unique over all repositories.
    pub namespace: String,
    /// Name of the folder and of the configuration, where the repository gives no other.
    pub name: String,
}

impl ModelId {
    /// A model whose name is unique.
    #[must_use]
    pub fn plain(name: &str) -> Self {
        Self { namespace: String::new(), name: name.to_owned() }
    }
}

impl fmt::Display for ModelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.namespace.is_empty() {
            write!(f, "{}::", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}

/// Meaning of a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameMeaning {
    /// For one model over all repositories.
    #[default]
    Unique,
    /// For one model in each repository, whose path is its namespace.
    Namespaced,
}

impl NameMeaning {
    fn id(self, repository: &Path, name: &str) -> ModelId {
        let path = repository.to_string_lossy();
        let namespace = match self {
            Self::Unique => "",
            Self::Namespaced => match path.trim_end_matches('/') {
                "" => path.as_ref(),
                path => path,
            },
        };
        ModelId { namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

/// A folder of models.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelRepository {
    /// The folder.
    pub path: PathBuf,
    /// Names of models that are not called as their folders, by folder.
    pub names: OrderedMap<String, String>,
}

impl ModelRepository {
    /// The folder of a model, where it is here.
    fn folder_of(&self, name: &str) -> Option<PathBuf> {
        let mut renamed = self.names.iter();
        let folder = match renamed.find(|(_, other)| *other == name) {
            Some((folder, _)) => folder,
            None if self.names.contains_key(name) => return None,
            None => name,
        };
        let plain =
            !folder.is_empty() && !folder.starts_with('.') && !folder.contains(['/', '\\', '\0']);
        if !plain {
            return None;
        }
        if let Some(own) = own_name(&self.path) {
            return (own == folder).then(|| self.path.clone());
        }
        let whole = self.path.join(folder);
        if whole.is_dir() {
            return Some(whole);
        }
        // A model that is one file, or several of which the first one counts.
        let files = fs::read_dir(&self.path).into_iter().flatten().flatten();
        files.map(|entry| entry.path()).find(|file| model_name(file) == Some(folder))
    }
}

impl From<&Path> for ModelRepository {
    fn from(path: &Path) -> Self {
        Self { path: path.to_owned(), names: OrderedMap::new() }
    }
}

/// The repositories without those that name a folder again, in whatever words: it would make each model ambiguous.
#[must_use]
pub(crate) fn distinct(given: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = Vec::with_capacity(given.len());
    let mut kept = Vec::with_capacity(given.len());
    for path in given {
        let folder = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        if !folders.contains(&folder) {
            folders.push(folder);
            kept.push(path);
        }
    }
    kept
}

/// A model folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundModel {
    /// Its name is that of the folder where the repository gives no other.
    pub id: ModelId,
    /// The folder.
    pub dir: PathBuf,
    /// Whether another folder has the same identity, so that neither can be used.
    pub ambiguous: bool,
}

/// The model folders of all repositories, by namespace and name. Folders whose names begin with a dot are none. A GGUF
/// file is a model, and so is a repository that is the folder of a checkpoint; other files are none.
///
/// # Errors
/// When a repository cannot be read.
pub fn scan(
    repositories: &[ModelRepository],
    naming: NameMeaning,
) -> Result<Vec<FoundModel>, ServingError> {
    let mut found: OrderedMap<ModelId, FoundModel> = OrderedMap::new();
    for ModelRepository { path, names } in repositories {
        let unreadable = |error: &dyn std::fmt::Display| {
            ServingError::internal(format!(
                "failed to read model repository '{}': {error}",
                path.display()
            ))
        };
        if let Some(name) = own_name(path) {
            let id = naming.id(path, names.get(name).map_or(name, String::as_str));
            add(&mut found, id, path.clone());
            continue;
        }
        for entry in fs::read_dir(path).map_err(|error| unreadable(&error))? {
            let dir = entry.map_err(|error| unreadable(&error))?.path();
            let Some(name) = dir.file_name().and_then(|name| name.to_str()) else {
                tracing::warn!(folder = %dir.display(), "ignored: the name is not UTF-8");
                continue;
            };
            let name = if dir.is_dir() { Some(name) } else { model_name(&dir) };
            let Some(name) = name.filter(|name| !name.starts_with('.')) else { continue };
            let id = naming.id(path, names.get(name).map_or(name, String::as_str));
            add(&mut found, id, dir);
        }
    }
    Ok(found.into_values().collect())
}

fn add(found: &mut OrderedMap<ModelId, FoundModel>, id: ModelId, dir: PathBuf) {
    found.entry(id.clone()).and_modify(|model| model.ambiguous = true).or_insert(FoundModel {
        id,
        dir,
        ambiguous: false,
    });
}

/// The name of the one model that a repository is which is the folder of a checkpoint itself.
fn own_name(repository: &Path) -> Option<&str> {
    // Without its configuration, a folder of models in single files is a repository of these.
    let whole = repository.join("config.json").is_file() && is_checkpoint(repository);
    repository.file_name().and_then(|name| name.to_str()).filter(|_| whole)
}

/// The path of a file that a configuration names in a folder of its model.
///
/// # Errors
/// When the name leads out of the folder: configurations may come from clients.
pub(crate) fn file_in(folder: &Path, name: &str) -> Result<PathBuf, ServingError> {
    let stays = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    if name.is_empty() || name.contains('\0') || !Path::new(name).components().all(stays) {
        return Err(ServingError::invalid_arg(format!(
            "'{name}' must name a file in '{}'",
            folder.file_name().unwrap_or_default().display()
        )));
    }
    Ok(folder.join(name))
}

/// The models of a name and their folders: one where names are unique, else any number but none.
///
/// # Errors
/// When no repository has a folder of this name, or more than one where names are unique.
pub fn find(
    repositories: &[ModelRepository],
    naming: NameMeaning,
    name: &str,
) -> Result<Vec<(ModelId, PathBuf)>, ServingError> {
    let folders = repositories.iter().filter_map(|repository| {
        Some((naming.id(&repository.path, name), repository.folder_of(name)?))
    });
    let found: Vec<_> = folders.collect();
    match (found.len(), naming) {
        (0, _) => {
            Err(ServingError::not_found(format!("no model repository has a folder '{name}'")))
        }
        (1, _) | (_, NameMeaning::Namespaced) => Ok(found),
        (_, NameMeaning::Unique) => {
            Err(ServingError::invalid_arg("model appears in two or more repositories"))
        }
    }
}

/// The folder of a model.
///
/// # Errors
/// Fails like [`find`], also if only other namespaces have a model of this name.
pub fn folder_of(
    repositories: &[ModelRepository],
    naming: NameMeaning,
    id: &ModelId,
) -> Result<PathBuf, ServingError> {
    let found = find(repositories, naming, &id.name)?.into_iter().find(|(found, _)| found == id);
    let none = || ServingError::not_found(format!("no model repository has a model '{id}'"));
    found.map(|(_, folder)| folder).ok_or_else(none)
}

/// Stamp by which changes of a model's files are seen: a digest of the names, sizes and modification times, for each
/// version folder and for everything outside of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FolderStamp {
    /// Everything outside of the version folders but the configuration, whose content decides for itself.
    pub outside: u64,
    /// The configuration: `config.pbtxt`, and the folder `configs` of others.
    pub config: u64,
    /// By version.
    pub versions: OrderedMap<i64, u64>,
    /// The latest change of a file or folder, also one that keeps the time of modification, such as `cp -p`.
    pub newest: Option<SystemTime>,
}

/// Files that were written this short a time ago may be half of what is to come.
const SETTLING: Duration = Duration::from_millis(500);

/// Folders in folders that are looked into.
const MAX_DEPTH: usize = 16;

impl FolderStamp {
    /// Returns whether nobody has written to the folder for a while, so that what it has is likely whole.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        let now = SystemTime::now();
        let recent = |newest: SystemTime| newest <= now && newest + SETTLING > now;
        !self.newest.is_some_and(recent)
    }

    /// Waits until nobody writes to a model folder any more, and looks at it. `None` where that lasts too long or the
    /// folder cannot be read.
    #[must_use]
    pub fn settled(model_dir: &Path, longest: Duration) -> Option<Self> {
        let start = Instant::now();
        loop {
            // A folder that is being replaced is absent for a moment.
            if let Ok(stamps) = Self::of(model_dir)
                && stamps.is_settled()
            {
                return Some(stamps);
            }
            if start.elapsed() >= longest {
                return None;
            }
            std::thread::sleep(SETTLING / 10);
        }
    }

    /// Looks at a model folder.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn of(model_dir: &Path) -> Result<Self, ServingError> {
        let numbers = versions(model_dir)?;
        let mut stamps = Self::default();
        let mut outside = StampDigest::default();
        let mut config = StampDigest::default();
        let unreadable = |error: std::io::Error| {
            let dir = model_dir.display();
            ServingError::internal(format!("failed to read model folder '{dir}': {error}"))
        };
        let mut entries: Vec<PathBuf> = Vec::new();
        if model_dir.is_file() {
            entries.push(model_dir.to_owned());
        } else {
            for entry in fs::read_dir(model_dir).map_err(unreadable)? {
                entries.push(entry.map_err(unreadable)?.path());
            }
        }
        entries.sort();
        for path in entries {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let version = name.parse().ok().filter(|number| numbers.contains(number));
            match version {
                Some(version) => {
                    let mut digest = StampDigest::default();
                    digest.add(&path, 0);
                    stamps.newest = stamps.newest.max(digest.newest);
                    stamps.versions.insert(version, digest.hasher.finish());
                }
                None if matches!(name, "config.pbtxt" | "configs") => config.add(&path, 0),
                None => outside.add(&path, 0),
            }
        }
        let own = fs::metadata(model_dir).ok().and_then(|metadata| changed(&metadata));
        stamps.newest = stamps.newest.max(outside.newest).max(config.newest).max(own);
        stamps.outside = outside.hasher.finish();
        stamps.config = config.hasher.finish();
        Ok(stamps)
    }
}

/// When a file or folder was changed last: on Unix the time of its status, which nobody sets.
fn changed(metadata: &fs::Metadata) -> Option<SystemTime> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let seconds = u64::try_from(metadata.ctime()).ok()?;
        let nanos = u32::try_from(metadata.ctime_nsec()).ok()?;
        SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanos))
    }
    #[cfg(not(unix))]
    metadata.modified().ok()
}

#[derive(Default)]
struct StampDigest {
    hasher: DefaultHasher,
    newest: Option<SystemTime>,
}

impl StampDigest {
    /// Files that cannot be read count as absent: they may be gone by now.
    fn add(&mut self, path: &Path, depth: usize) {
        let Ok(metadata) = fs::metadata(path) else { return };
        let modified = metadata.modified().ok();
        self.newest = self.newest.max(changed(&metadata));
        path.file_name().hash(&mut self.hasher);
        metadata.is_dir().hash(&mut self.hasher);
        if !metadata.is_dir() {
            metadata.len().hash(&mut self.hasher);
            modified.hash(&mut self.hasher);
            return;
        }
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        paths.len().hash(&mut self.hasher);
        if depth < MAX_DEPTH {
            paths.iter().for_each(|path| self.add(path, depth + 1));
        }
    }
}

/// The versions of a model folder, ascending: folders whose names are digits, not 0 and without a leading zero. A
/// checkpoint that lies in the model's folder itself, or is a file, is version 1.
///
/// # Errors
/// When the folder cannot be read.
pub fn versions(model_dir: &Path) -> Result<Vec<i64>, ServingError> {
    let unreadable = |error: std::io::Error| {
        ServingError::internal(format!(
            "failed to read model folder '{}': {error}",
            model_dir.display()
        ))
    };
    let mut versions = Vec::new();
    if model_dir.is_file() {
        return Ok(vec![1]);
    }
    for entry in fs::read_dir(model_dir).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let plain = !name.starts_with('0') && name.bytes().all(|byte| byte.is_ascii_digit());
        if let (true, true, Ok(version)) = (plain, path.is_dir(), name.parse::<i64>()) {
            versions.push(version);
        }
    }
    if versions.is_empty() && is_checkpoint(model_dir) {
        versions.push(1);
    }
    versions.sort_unstable();
    Ok(versions)
}

/// Returns the present versions that the configuration's policy chooses, ascending.
#[must_use]
pub fn chosen_versions(config: &ModelConfig, present: &[i64]) -> Vec<i64> {
    let policy = config.version_policy.as_ref().and_then(|policy| policy.policy_choice.as_ref());
    match policy {
        Some(PolicyChoice::All(_)) => present.to_vec(),
        Some(PolicyChoice::Specific(specific)) => {
            present.iter().copied().filter(|version| specific.versions.contains(version)).collect()
        }
        Some(PolicyChoice::Latest(latest)) => last(present, latest.num_versions),
        None => last(present, 1),
    }
}

fn last(present: &[i64], count: u32) -> Vec<i64> {
    // A count of 0 is what protobuf gives for an unwritten number; it means the default.
    let count = usize::try_from(count.max(1)).unwrap_or(usize::MAX);
    present.iter().copied().skip(present.len().saturating_sub(count)).collect()
}

/// The lines of a labels file.
///
/// # Errors
/// When the file cannot be read.
pub fn read_labels(path: &Path) -> Result<Vec<String>, ServingError> {
    let bytes = read_plain_file(path).map_err(|error| {
        let why = match error.kind() {
            // The words of the C library, without the number that Rust adds.
            std::io::ErrorKind::NotFound => "No such file or directory".to_owned(),
            _ => error.to_string(),
        };
        ServingError::internal(format!(
            "failed to open text file for read {}: {why}",
            path.display()
        ))
    })?;
    Ok(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::inference::{ModelVersionPolicy, model_version_policy};

    fn folder(name: &str, subfolders: &[&str]) -> PathBuf {
        let root =
            std::env::temp_dir().join(format!("galatea-repository-{name}-{}", std::process::id()));
        for sub in subfolders {
            fs::create_dir_all(root.join(sub)).unwrap();
        }
        root
    }

    #[test]
    fn files_that_a_configuration_names_lie_in_their_folder() {
        let folder = Path::new("/models/m/warmup");
        assert_eq!(file_in(folder, "a/b").unwrap(), Path::new("/models/m/warmup/a/b"));
        for outside in ["", "..", "../x", "a/../../x", "/etc/passwd", "a\0b"] {
            let message = file_in(folder, outside).unwrap_err().message;
            assert!(message.contains("must name a file in 'warmup'"), "{message}");
        }
    }

    #[test]
    fn version_folders_are_positive_numbers_without_leading_zeros() {
        let root = folder(
            "versions",
            &["1", "3", "20", "0", "02", "x", "1a", "-4", "99999999999999999999"],
        );
        fs::write(root.join("7"), "a file").unwrap();
        assert_eq!(versions(&root).unwrap(), [1, 3, 20]);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_name_in_two_repositories_is_ambiguous() {
        let a = folder("a", &["one", "both", ".git"]);
        let b = folder("b", &["both", "two"]);
        fs::write(a.join("README.md"), "").unwrap();
        let both = [a.as_path(), b.as_path()].map(ModelRepository::from);
        let found = scan(&both, NameMeaning::Unique).unwrap();
        let names: Vec<_> =
            found.iter().map(|model| (model.id.to_string(), model.ambiguous)).collect();
        let named = |name: &str, ambiguous| (name.to_owned(), ambiguous);
        assert_eq!(names, [named("both", true), named("one", false), named("two", false)]);
        assert!(
            find(&both, NameMeaning::Unique, "both").unwrap_err().message.contains("two or more")
        );
        let found = find(&both, NameMeaning::Unique, "one").unwrap();
        assert_eq!(found, [(ModelId::plain("one"), a.join("one"))]);
        fs::remove_dir_all(a).unwrap();
        fs::remove_dir_all(b).unwrap();
    }

    #[test]
    fn a_namespace_tells_models_of_one_name_apart() {
        let a = folder("c", &["one", "both"]);
        let b = folder("d", &["both", "two"]);
        let slashed = PathBuf::from(format!("{}/", a.display()));
        let repositories = [slashed.as_path(), b.as_path()].map(ModelRepository::from);
        let found = scan(&repositories, NameMeaning::Namespaced).unwrap();
        assert!(found.iter().all(|model| !model.ambiguous));
        let ids: Vec<String> = found.iter().map(|model| model.id.to_string()).collect();
        let id = |repository: &Path, name: &str| format!("{}::{name}", repository.display());
        assert_eq!(ids, [id(&a, "both"), id(&a, "one"), id(&b, "both"), id(&b, "two")]);
        let both = find(&repositories, NameMeaning::Namespaced, "both").unwrap();
        assert_eq!(both.len(), 2);
        let of = |id: &ModelId| folder_of(&repositories, NameMeaning::Namespaced, id);
        assert_eq!(of(&both[1].0).unwrap(), b.join("both"));
        let other = ModelId { name: "one".to_owned(), ..both[1].0.clone() };
        assert!(of(&other).unwrap_err().message.contains(&other.to_string()));
        fs::remove_dir_all(a).unwrap();
        fs::remove_dir_all(b).unwrap();
    }

    #[test]
    fn a_folder_may_have_another_name() {
        let root = folder("renamed", &["model", "other"]);
        let names = OrderedMap::from([("model".to_owned(), "given".to_owned())]);
        let repository = [ModelRepository { path: root.clone(), names }];
        let found = scan(&repository, NameMeaning::Unique).unwrap();
        let names: Vec<_> = found.iter().map(|model| model.id.name.as_str()).collect();
        assert_eq!(names, ["given", "other"]);
        let find = |name: &str| folder_of(&repository, NameMeaning::Unique, &ModelId::plain(name));
        assert_eq!(find("given").unwrap(), root.join("model"));
        assert_eq!(find("other").unwrap(), root.join("other"));
        for name in ["model", "../renamed/other", ""] {
            assert!(find(name).is_err(), "{name}");
        }
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_folder_named_again_counts_once() {
        let root = folder("distinct", &["a", "b"]);
        let given = ["a", "b", "a", "b/../a", "./a/", "missing", "missing"];
        let given = given.map(|name| root.join(name)).to_vec();
        let kept = ["a", "b", "missing"].map(|name| root.join(name));
        assert_eq!(distinct(given), kept);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_missing_repository_is_an_error_that_names_it() {
        let error = scan(&[Path::new("/nowhere/models").into()], NameMeaning::Unique).unwrap_err();
        assert!(error.message.contains("'/nowhere/models'"), "{error}");
    }

    #[test]
    fn version_policies_choose() {
        let with = |policy| ModelConfig {
            version_policy: Some(ModelVersionPolicy { policy_choice: Some(policy) }),
            ..ModelConfig::default()
        };
        let present = [1, 2, 5];
        assert_eq!(chosen_versions(&ModelConfig::default(), &present), [5]);
        let latest = model_version_policy::Latest { num_versions: 2 };
        assert_eq!(chosen_versions(&with(PolicyChoice::Latest(latest)), &present), [2, 5]);
        let all = model_version_policy::All {};
        assert_eq!(chosen_versions(&with(PolicyChoice::All(all)), &present), present);
        let specific = model_version_policy::Specific { versions: vec![7, 1] };
        assert_eq!(chosen_versions(&with(PolicyChoice::Specific(specific)), &present), [1]);
    }
}
