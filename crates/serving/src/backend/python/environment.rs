//! Environments of models: folders as they are, and archives that are unpacked once for all models that name them.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{self, Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::archive;
use super::locked;
use super::stale_resources::ServerFolder;
use crate::error::ServingError;

/// Names of interpreters, the first that there is.
const INTERPRETERS: [&str; 2] = ["bin/python3", "bin/python"];
/// Script of conda-pack in an archive, which writes the folder's path into scripts and libraries.
const UNPACK: &str = "bin/conda-unpack";
/// Scripts of conda's packages that set variables.
const ACTIVATION: &str = "etc/conda/activate.d";
/// Runs them as conda-pack's `activate` does and prints the variables.
const ACTIVATE: &str = r#"for script in "$CONDA_PREFIX"/etc/conda/activate.d/*.sh; do . "$script"; done >&2
exec "$0" -S -c 'import os, sys
sys.stdout.buffer.write(b"\0".join(name + b"=" + value for name, value in os.environb.items()))'"#;
/// Stands in the folder of an archive that was unpacked and is not looked at by models. Who cleans up old files finds it
/// as old as any other, so where it has gone, others may have, too.
const WHOLE: &str = ".galatea-unpacked";
/// Variables that shells change for themselves.
const SHELLS: [&str; 4] = ["_", "SHLVL", "PWD", "OLDPWD"];
/// Number of names that are listed in errors.
const LISTED: usize = 5;

/// Where the interpreter of a model and its modules are.
#[derive(Debug)]
pub(super) struct PythonEnvironment {
    pub(super) interpreter: PathBuf,
    /// Variables that activation sets.
    variables: Vec<(OsString, OsString)>,
    /// Variables that would name another environment.
    removed: [&'static str; 2],
    /// Goes when the last model that has it goes.
    unpacked: Option<UnpackedArchive>,
}

impl PythonEnvironment {
    /// That of a folder.
    ///
    /// # Errors
    /// INVALID_ARG where there is none, INTERNAL where its scripts do not run.
    pub(super) fn of_folder(folder: &Path) -> Result<Self, ServingError> {
        let interpreter = interpreter_in(folder).ok_or_else(|| lacks(folder, "the environment"))?;
        Self::activated(folder, interpreter, None)
    }

    fn activated(
        folder: &Path,
        interpreter: PathBuf,
        unpacked: Option<UnpackedArchive>,
    ) -> Result<Self, ServingError> {
        let folder = path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let (own, other) = match folder.join("conda-meta").is_dir() {
            true => ("CONDA_PREFIX", "VIRTUAL_ENV"),
            false => ("VIRTUAL_ENV", "CONDA_PREFIX"),
        };
        let mut programs = folder.join("bin").into_os_string();
        if let Some(path) = std::env::var_os("PATH") {
            programs.push(":");
            programs.push(path);
        }
        let variables = vec![("PATH".into(), programs), (own.into(), folder.clone().into())];
        let removed = [other, "PYTHONHOME"];
        let mut made = Self { interpreter, variables, removed, unpacked };
        if own == "CONDA_PREFIX" && has_scripts(&folder.join(ACTIVATION)) {
            made.variables = made.activate().map_err(|why| {
                let scripts = folder.join(ACTIVATION);
                ServingError::internal(format!(
                    "the scripts in '{}' failed: {why}",
                    scripts.display()
                ))
            })?;
        }
        Ok(made)
    }

    /// Whether all that was unpacked is still there, as far as that can be told.
    fn is_whole(&self) -> bool {
        let unpacked = self.unpacked.as_ref();
        unpacked.is_none_or(|unpacked| unpacked.folder.join(WHOLE).is_file())
    }

    /// Lets a process run in it.
    pub(super) fn apply(&self, command: &mut Command) {
        self.removed.iter().for_each(|name| {
            command.env_remove(name);
        });
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
    }

    /// The variables after the scripts of conda's packages have run.
    fn activate(&self) -> Result<Vec<(OsString, OsString)>, String> {
        let mut command = Command::new("bash");
        command.args(["-c", ACTIVATE]).arg(&self.interpreter);
        self.apply(&mut command);
        let printed = run(&mut command)?;
        let pairs = printed.split(|byte| *byte == 0).filter_map(|pair| {
            let at = pair.iter().position(|byte| *byte == b'=')?;
            let name = pair.get(..at)?;
            let value = pair.get(at + 1..)?;
            Some((OsString::from_vec(name.to_vec()), OsString::from_vec(value.to_vec())))
        });
        let differs = |name: &OsStr, value: &OsStr| {
            !SHELLS.iter().any(|own| *own == name)
                && std::env::var_os(name).as_deref() != Some(value)
        };
        Ok(pairs.filter(|(name, value)| differs(name, value)).collect())
    }
}

/// A folder in the backend's.
#[derive(Debug)]
struct UnpackedArchive {
    folder: PathBuf,
    _home: Arc<ServerFolder>,
}

impl Drop for UnpackedArchive {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.folder)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!("'{}' stays: {error}", self.folder.display());
        }
    }
}

/// Tells a file from one that has taken its place: bytes, seconds and nanoseconds of its last change.
type ArchiveStamp = (u64, i64, i64);
/// Folder that a file was unpacked to. Whoever unpacks has it locked.
type UnpackSlot = Mutex<Option<(ArchiveStamp, Arc<PythonEnvironment>)>>;

/// The archives that are unpacked.
#[derive(Debug, Default)]
pub(super) struct PythonEnvironments {
    archives: Mutex<HashMap<PathBuf, Arc<UnpackSlot>>>,
    next: AtomicU64,
}

impl PythonEnvironments {
    /// The environment of an archive, unpacked now where it was not yet, or the archive or what was unpacked has changed
    /// since.
    ///
    /// # Errors
    /// INVALID_ARG with what is wrong with the archive, INTERNAL where there is no room for it.
    pub(super) fn of_archive(
        &self,
        home: &Arc<ServerFolder>,
        archive: &Path,
    ) -> Result<Arc<PythonEnvironment>, ServingError> {
        let unread = |error: io::Error| {
            ServingError::invalid_arg(format!("'{}' cannot be read: {error}", archive.display()))
        };
        let archive = archive.canonicalize().map_err(unread)?;
        let slot = self.slot(&archive);
        let mut slot = locked(&slot);
        let found = fs::metadata(&archive).map_err(unread)?;
        let stamp = (found.len(), found.mtime(), found.mtime_nsec());
        if let Some((unpacked, environment)) = &*slot
            && *unpacked == stamp
            && environment.is_whole()
        {
            return Ok(Arc::clone(environment));
        }
        let environment = Arc::new(self.unpack(home, &archive)?);
        *slot = Some((stamp, Arc::clone(&environment)));
        Ok(environment)
    }

    /// Where the archive is noted. Those that are gone, such as files of clients, are forgotten.
    fn slot(&self, archive: &Path) -> Arc<UnpackSlot> {
        let mut archives = locked(&self.archives);
        let gone: Vec<PathBuf> =
            archives.keys().filter(|archive| !archive.exists()).cloned().collect();
        let gone: Vec<_> = gone.iter().map(|archive| archives.remove(archive)).collect();
        let slot = Arc::clone(archives.entry(archive.to_owned()).or_default());
        drop(archives);
        // Folders are removed here, which takes its time.
        drop(gone);
        slot
    }

    fn unpack(
        &self,
        home: &Arc<ServerFolder>,
        archive: &Path,
    ) -> Result<PythonEnvironment, ServingError> {
        let began = Instant::now();
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let partly = home.path().join(format!("environment-{number}.part"));
        let folder = home.path().join(format!("environment-{number}"));
        let failed = |error: io::Error| {
            ServingError::internal(format!("'{}' cannot be written: {error}", folder.display()))
        };
        fs::create_dir(&partly).map_err(failed)?;
        let mut unpacked = UnpackedArchive { folder: partly.clone(), _home: Arc::clone(home) };
        archive::unpack(archive, &partly)?;
        let what = format!("the archive '{}'", archive.display());
        interpreter_in(&partly).ok_or_else(|| lacks(&partly, &what))?;
        fs::rename(&partly, &folder).map_err(failed)?;
        unpacked.folder.clone_from(&folder);
        let interpreter = interpreter_in(&folder).ok_or_else(|| lacks(&folder, &what))?;
        finish(&folder, &interpreter);
        fs::write(folder.join(WHOLE), "").map_err(failed)?;
        let took = began.elapsed();
        tracing::info!("{what} was unpacked to '{}' in {took:.1?}", folder.display());
        PythonEnvironment::activated(&folder, interpreter, Some(unpacked))
    }
}

/// Lets conda-pack's own script write the folder's path to where the packed one stood. Triton does without, so one that
/// fails is no reason not to serve.
fn finish(folder: &Path, interpreter: &Path) {
    let script = folder.join(UNPACK);
    if !script.is_file() {
        return;
    }
    let mut command = Command::new(interpreter);
    command.arg(&script).env_remove("PYTHONHOME");
    if let Err(why) = run(&mut command) {
        tracing::warn!("'{}' failed: {why}", script.display());
    }
}

/// Returns the output of a program.
fn run(command: &mut Command) -> Result<Vec<u8>, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("'{program}': {error}"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    Err(format!("{} {last}", output.status))
}

fn has_scripts(folder: &Path) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.path().extension() == Some(OsStr::new("sh")))
}

fn interpreter_in(folder: &Path) -> Option<PathBuf> {
    INTERPRETERS.into_iter().map(|name| folder.join(name)).find(|path| path.is_file())
}

/// Says that there is no interpreter, and what there is.
fn lacks(folder: &Path, what: &str) -> ServingError {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<String> =
        entries.map(|entry| format!("'{}'", entry.file_name().to_string_lossy())).collect();
    found.sort();
    let more = if found.len() > LISTED { ", …" } else { "" };
    found.truncate(LISTED);
    let [first, second] = INTERPRETERS;
    ServingError::invalid_arg(format!(
        "{what} has no {first} or {second}, found at its top: {}{more}",
        found.join(", ")
    ))
}
