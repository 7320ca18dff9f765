//! Prepared models in files: a model that was loaded before is not read, rewritten and packed again.
//!
//! An entry holds the rewritten graph and the packed weights of one model for one program, one level
//! and one set of providers; it is mapped, so that several processes share its pages, and so are the
//! model's own files, in which the other constants stay. Entries are found by the content of the
//! model. So that the content need not be read each time, a note beside them says which content a file
//! had: it holds while device, inode, size and both times of the file (of its content and of its
//! state, which nobody can set back) are the same.
//!
//! Entries appear by renaming finished files, without locks: whoever comes second replaces an equal
//! entry. Every part has a checksum that is compared before the part is used; what is damaged is
//! removed and made anew. Nothing that goes wrong here keeps a model from loading.

mod changed;
mod content;
mod entry;
mod folder;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use galatea_formats::onnx::{self, OnnxFile};
use galatea_graph::Graph;
use galatea_runtime::{
    ExecutionProvider, GraphSource, IoInfo, PackedSource, PreparedGraph, Session, SessionOptions,
};
use galatea_tensor::{Allocation, MappedFile, Tensor};

pub use changed::GraphTransform;
use entry::{CacheEntry, PackedRecorder};
use folder::CacheFolder;

/// Models with smaller constants load as fast without an entry.
const MIN_BYTES: usize = 1 << 20;

/// A file may change twice within the steps of its file system's clock, which are this long at most:
/// nothing is noted about younger ones.
const CLOCK_STEP: Duration = Duration::from_secs(2);

/// The most bytes of all entries, where nobody says otherwise.
pub const DEFAULT_LIMIT_BYTES: u64 = 8 << 30;

/// A folder of prepared models.
#[derive(Debug)]
pub struct ModelCache {
    folder: CacheFolder,
    /// How old a file must be for a note about it.
    settled: Duration,
}

/// Where a session came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionOrigin {
    /// The model, without a cache.
    Model,
    /// The model; it is in the cache now.
    Added,
    /// The cache.
    Cache,
}

impl fmt::Display for SessionOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Model => "model",
            Self::Added => "model, now in the cache",
            Self::Cache => "cache",
        })
    }
}

/// A session on a model, with what was done to its graph.
#[derive(Debug)]
pub struct PreparedSession {
    /// The session.
    pub session: Session,
    /// Where it came from.
    pub origin: SessionOrigin,
    /// Line of the change, where one was asked for.
    pub change: Option<String>,
}

/// Prepares the model in a file, by way of the cache where there is one.
///
/// # Errors
/// When the model cannot be read or prepared; the text says why.
pub fn session(
    cache: Option<&ModelCache>,
    path: &Path,
    providers: &[Arc<dyn ExecutionProvider>],
    options: &SessionOptions,
) -> Result<(Session, SessionOrigin), String> {
    let prepared = changed_session(cache, path, providers, options, None)?;
    Ok((prepared.session, prepared.origin))
}

/// Prepares the model in a file after a change of its graph, by way of the cache where there is one: it holds what came
/// of the change.
///
/// # Errors
/// When the model cannot be read or prepared; the text says why.
pub fn changed_session(
    cache: Option<&ModelCache>,
    path: &Path,
    providers: &[Arc<dyn ExecutionProvider>],
    options: &SessionOptions,
    change: Option<&dyn GraphTransform>,
) -> Result<PreparedSession, String> {
    let file = path.to_owned();
    let source = GraphSource::new(move || onnx::load(&file).map_err(|error| error.to_string()));
    let options = &SessionOptions { source, ..options.clone() };
    let name = change.map(GraphTransform::name).transpose()?;
    let kind = EntryConditions { providers, options, change, name };
    match cache {
        Some(cache) => cache.session(path, &kind),
        None => {
            let graph = onnx::load(path).map_err(|error| error.to_string())?;
            kind.plain(kind.changed(graph))
        }
    }
}

/// A graph to prepare, and the line of its change.
struct ChangedGraph {
    graph: Graph,
    line: Option<String>,
}

/// Conditions of entries besides the model.
struct EntryConditions<'a> {
    providers: &'a [Arc<dyn ExecutionProvider>],
    options: &'a SessionOptions,
    change: Option<&'a dyn GraphTransform>,
    /// Name of the change.
    name: Option<String>,
}

impl EntryConditions<'_> {
    /// Makes the change, if any.
    fn changed(&self, graph: Graph) -> ChangedGraph {
        match self.change {
            None => ChangedGraph { graph, line: None },
            Some(change) => {
                let (graph, line) = change.change(graph, self.providers, self.options);
                ChangedGraph { graph, line: Some(line) }
            }
        }
    }

    /// Prepares a graph without the cache.
    fn plain(&self, changed: ChangedGraph) -> Result<PreparedSession, String> {
        let prepared = PreparedGraph::new(changed.graph, self.options.optimise);
        let prepared = prepared.map_err(|error| error.to_string())?;
        let session = self.session(prepared, PackedSource::default())?;
        Ok(PreparedSession { session, origin: SessionOrigin::Model, change: changed.line })
    }

    /// Program, level and providers: different texts for different entries of a model.
    fn text(&self, content: &str) -> String {
        let names = &self.options.providers;
        let packings =
            self.providers.iter().map(|p| format!("{} {}", p.name(), p.traits().packing));
        let packings: Vec<String> = packings.collect();
        let level = self.options.optimise;
        let program = content::program();
        let precision = self.options.precision;
        let change = self.name.iter().map(|name| format!(", {name}"));
        let change: String = change.collect();
        format!("{content} of {program}, {level}, {precision}, {names:?} of {packings:?}{change}")
    }

    fn session(&self, prepared: PreparedGraph, packed: PackedSource) -> Result<Session, String> {
        let options = SessionOptions { packed, ..self.options.clone() };
        Session::of_prepared(prepared, self.providers, &options).map_err(|error| error.to_string())
    }
}

/// Folders that the environment and the system know of a user.
#[derive(Debug, Default)]
struct KnownFolders {
    /// `HOME`.
    home: Option<PathBuf>,
    /// `XDG_CACHE_HOME`.
    caches: Option<PathBuf>,
    /// The home in the system's list of users.
    user: Option<PathBuf>,
}

impl KnownFolders {
    /// Returns the folder of caches. Paths that are not absolute count as unknown.
    fn caches(self, on_macos: bool) -> Option<PathBuf> {
        let absolute = |path: Option<PathBuf>| path.filter(|path| path.is_absolute());
        let home = absolute(self.home).or(absolute(self.user));
        if on_macos {
            return home.map(|home| home.join("Library/Caches"));
        }
        absolute(self.caches).or_else(|| home.map(|home| home.join(".cache")))
    }
}

/// Folder of everything that the program keeps, where it was told one.
static CHOSEN: OnceLock<PathBuf> = OnceLock::new();

/// Keeps in this folder what is otherwise kept in the system's folder for caches: prepared models, and what lies beside
/// them. It is for the whole process; the first choice holds.
pub fn use_folder(folder: PathBuf) {
    // A program that chooses twice has one folder.
    CHOSEN.set(folder).ok();
}

impl ModelCache {
    /// The cache in a folder, which is made when it is needed; entries that were not used for the
    /// longest time go when all together have more than `limit_bytes`.
    #[must_use]
    pub fn new(folder: PathBuf, limit_bytes: u64) -> Self {
        Self { folder: CacheFolder::new(folder, limit_bytes), settled: CLOCK_STEP }
    }

    /// The same, with another age from which on files are trusted not to change twice between two
    /// steps of their file system's clock; 2 seconds, where nobody says otherwise.
    #[must_use]
    pub fn settled_after(self, age: Duration) -> Self {
        Self { settled: age, ..self }
    }

    /// The folder that was chosen by [`use_folder`], or the one where systems keep what programs can make anew: `~/Library/Caches` on macOS,
    /// elsewhere `$XDG_CACHE_HOME` or `~/.cache`. Services are often started without `HOME`: then
    /// the home is the one that the system has for the user. `None` where no home is known.
    #[must_use]
    pub fn default_folder() -> Option<PathBuf> {
        if let Some(chosen) = CHOSEN.get() {
            return Some(chosen.join("models"));
        }
        let set = |name: &str| std::env::var_os(name).map(PathBuf::from);
        let known = KnownFolders {
            home: set("HOME"),
            caches: set("XDG_CACHE_HOME"),
            // Without the variable, this asks the system's list of users.
            user: std::env::home_dir(),
        };
        let on_macos = cfg!(any(target_os = "macos", apple_doubles));
        known.caches(on_macos).map(|caches| caches.join("galatea/models"))
    }

    fn session(&self, path: &Path, kind: &EntryConditions<'_>) -> Result<PreparedSession, String> {
        if let Some(prepared) = self.noted(path, kind) {
            return Ok(prepared);
        }
        let onnx::OnnxModel { graph, files, .. } =
            onnx::load_model(path).map_err(|error| error.to_string())?;
        // A change takes longer than what an entry saves of a small model.
        if constant_bytes(&graph) < MIN_BYTES && kind.change.is_none() {
            return kind.plain(kind.changed(graph));
        }
        let content = match self.content(&files) {
            Ok(content) => content,
            Err(error) => {
                self.complain(&error);
                return kind.plain(kind.changed(graph));
            }
        };
        let name = self.folder.entry(&kind.text(&content));
        let known = name.is_file().then(|| self.found(&content, &files, kind)).flatten();
        if let Some(prepared) = known {
            self.note(path, &files, &content);
            return Ok(prepared);
        }
        let ChangedGraph { graph, line } = kind.changed(graph);
        let prepared = PreparedGraph::new(graph, kind.options.optimise);
        let prepared = prepared.map_err(|error| error.to_string())?;
        if let Some(line) = &line
            && let Err(error) = self.folder.write_line(&kind.text(&content), line)
        {
            self.complain(&error);
        }
        let (session, origin) = self.add(path, &content, prepared, files, kind)?;
        Ok(PreparedSession { session, origin, change: line })
    }

    /// The session of an entry, with the line of its change.
    fn found(
        &self,
        content: &str,
        files: &[OnnxFile],
        kind: &EntryConditions<'_>,
    ) -> Option<PreparedSession> {
        let change = match kind.change {
            Some(_) => Some(self.folder.line(&kind.text(content))?),
            None => None,
        };
        let session = self.entry(content, files, kind)?;
        Some(PreparedSession { session, origin: SessionOrigin::Cache, change })
    }

    /// The session of an entry whose content a note tells.
    fn noted(&self, path: &Path, kind: &EntryConditions<'_>) -> Option<PreparedSession> {
        let note = self.folder.note(path)?;
        let mut files = Vec::with_capacity(note.files.len());
        for (path, identity) in note.files {
            let memory = Arc::new(MappedFile::open(&path).ok()?);
            if content::FileIdentity::of(memory.metadata()) != identity {
                return None;
            }
            files.push(OnnxFile { path, memory });
        }
        self.found(&note.content, &files, kind)
    }

    /// Notes the content of a model, if its files will not change unnoticed.
    fn note(&self, path: &Path, files: &[OnnxFile], content: &str) {
        let settled = |file: &OnnxFile| content::is_older(file.memory.metadata(), self.settled);
        if files.iter().all(settled)
            && let Err(error) = self.folder.write_note(path, files, content)
        {
            self.complain(&error);
        }
    }

    fn content(&self, files: &[OnnxFile]) -> Result<String, std::io::Error> {
        Ok(content::digest(self.folder.secret()?, files))
    }

    fn complain(&self, error: &dyn fmt::Display) {
        tracing::warn!(folder = %self.folder.path().display(), %error, "the cache of models cannot be used");
    }

    /// The session of an entry; one that is damaged is removed.
    fn entry(
        &self,
        content: &str,
        files: &[OnnxFile],
        kind: &EntryConditions<'_>,
    ) -> Option<Session> {
        let text = kind.text(content);
        let path = self.folder.entry(&text);
        let memory = Arc::new(MappedFile::open_cached(&path).ok()?);
        let opened =
            CacheEntry::open(memory, &text).and_then(|entry| session_of(entry, files, kind));
        match opened {
            Ok(session) => {
                self.folder.touch(&path);
                Some(session)
            }
            Err(error) => {
                tracing::warn!(entry = %path.display(), %error, "removed a damaged entry of the cache of models");
                self.folder.remove(&path);
                None
            }
        }
    }

    /// Prepares a model and adds it; the session is that of the new entry, so that its weights are
    /// shared with whoever loads it next.
    fn add(
        &self,
        path: &Path,
        content: &str,
        prepared: PreparedGraph,
        files: Vec<OnnxFile>,
        kind: &EntryConditions<'_>,
    ) -> Result<(Session, SessionOrigin), String> {
        let text = kind.text(content);
        let recorder = match self.folder.create().and_then(|(file, temporary)| {
            Ok(Arc::new(PackedRecorder::new(file, temporary, self.folder.limit_bytes())?))
        }) {
            Ok(recorder) => recorder,
            Err(error) => {
                self.complain(&error);
                return Ok((
                    kind.session(prepared, PackedSource::default())?,
                    SessionOrigin::Model,
                ));
            }
        };
        let session =
            kind.session(prepared.clone(), PackedSource(Some(Arc::clone(&recorder) as _)))?;
        let written = recorder.finish(&prepared, &files, &text);
        if let Err(error) = written.and_then(|temporary| self.folder.publish(&temporary, &text)) {
            tracing::debug!(model = %path.display(), %error, "is not kept in the cache of models");
            if let entry::EntryRefusal::Io(error) = error {
                self.complain(&error);
            }
            return Ok((session, SessionOrigin::Model));
        }
        self.note(path, &files, content);
        // What was touched while packing goes with the first maps of the files.
        let again = files.iter().map(|file| {
            let memory = MappedFile::open(&file.path).ok()?;
            let same = content::FileIdentity::of(memory.metadata())
                == content::FileIdentity::of(file.memory.metadata());
            same.then(|| OnnxFile { path: file.path.clone(), memory: Arc::new(memory) })
        });
        let again: Option<Vec<OnnxFile>> = again.collect();
        drop((prepared, files));
        let shared = again.and_then(|files| self.entry(content, &files, kind));
        Ok(shared.map_or((session, SessionOrigin::Model), |shared| (shared, SessionOrigin::Added)))
    }
}

/// Prepares the graph of an entry.
fn session_of(
    entry: CacheEntry,
    files: &[OnnxFile],
    kind: &EntryConditions<'_>,
) -> Result<Session, String> {
    let mut memories: Vec<Arc<dyn Allocation>> = Vec::with_capacity(files.len() + 1);
    memories.extend(files.iter().map(|file| Arc::clone(&file.memory) as Arc<dyn Allocation>));
    let (stored, packed) = entry.read(memories)?;
    let ports = |all: Vec<(String, galatea_graph::Fact)>| -> Vec<IoInfo> {
        all.into_iter().map(|(name, fact)| IoInfo::new(name, &fact)).collect()
    };
    let inputs = ports(stored.inputs);
    let outputs = ports(stored.outputs);
    let prepared = PreparedGraph { graph: stored.graph, inputs, outputs };
    kind.session(prepared, PackedSource(Some(packed)))
}

/// The address and the length of a constant's bytes, which tell it from others while it lives.
type ConstantSpot = (usize, usize);

fn spot(tensor: &Tensor) -> Option<ConstantSpot> {
    let bytes = tensor.unaligned_bytes().ok()?;
    Some((bytes.as_ptr().addr(), bytes.len()))
}

/// How often nodes read each constant, those of subgraphs included.
fn readers(graph: &Graph, counts: &mut HashMap<ConstantSpot, usize>) {
    for node in &graph.nodes {
        let constants = node.inputs.iter().flatten().filter_map(|&id| graph.constant(id));
        for spot in constants.filter_map(spot) {
            *counts.entry(spot).or_default() += 1;
        }
        for body in node.operator.bodies() {
            readers(body.graph(), counts);
        }
    }
}

/// Bytes of all constants.
fn constant_bytes(graph: &Graph) -> usize {
    let own = graph.values().iter().filter_map(|value| value.initializer.as_ref());
    let bodies = graph.nodes.iter().flat_map(|node| node.operator.bodies());
    let inner: usize = bodies.map(|body| constant_bytes(body.graph())).sum();
    own.map(Tensor::size_bytes).sum::<usize>() + inner
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(home: &str, caches: &str, user: &str) -> KnownFolders {
        let set = |text: &str| (!text.is_empty()).then(|| PathBuf::from(text));
        KnownFolders { home: set(home), caches: set(caches), user: set(user) }
    }

    #[test]
    fn a_service_without_home_keeps_its_caches_where_its_user_does() {
        let caches = known("", "", "/var/root").caches(true);
        assert_eq!(caches, Some(PathBuf::from("/var/root/Library/Caches")));
        let caches = known("", "", "/root").caches(false);
        assert_eq!(caches, Some(PathBuf::from("/root/.cache")));
    }

    #[test]
    fn what_is_set_comes_before_what_the_system_knows() {
        let set = || known("/home/a", "/caches", "/root");
        assert_eq!(set().caches(true), Some(PathBuf::from("/home/a/Library/Caches")));
        assert_eq!(set().caches(false), Some(PathBuf::from("/caches")));
        assert_eq!(known("relative", "", "").caches(false), None);
        assert_eq!(known("", "", "").caches(true), None);
    }
}
