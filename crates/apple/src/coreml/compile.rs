//! From a package to the folder that Core ML loads.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::{CoreMlFault, CoreMlFaultKind, system};

/// Compiles a `.mlpackage` or an `.mlmodel` and leaves the result, a `.mlmodelc`, at `into`. Whoever
/// looks there finds the whole folder or none: a folder that somebody else has left there in the
/// meantime stays, so `into` should be named after what is compiled.
///
/// # Errors
/// `File` when the package is not there, `into` is taken or cannot be written, `Compile` when Core
/// ML refuses the package, `Unavailable` off macOS.
pub fn compile(package: &Path, into: &Path) -> Result<(), CoreMlFault> {
    if let Err(error) = fs::metadata(package) {
        return Err(CoreMlFault::file(format!("{}: {error}", package.display())));
    }
    if fs::symlink_metadata(into).is_ok() {
        return Err(CoreMlFault::file(format!("{}: is there already", into.display())));
    }
    let made = made(system::compile(package)?)?;
    let installed = install(&made, into);
    if made.exists() {
        // What is left lies in the system's folder for temporary files, which it clears itself.
        let _ = fs::remove_dir_all(&made);
    }
    installed
}

/// Numbers of copies, so that no two of this process have one name.
static COPIES: AtomicU64 = AtomicU64::new(0);

/// Moves a folder to `into`, at once for those who look there.
fn install(made: &Path, into: &Path) -> Result<(), CoreMlFault> {
    let wrong = |error: io::Error| CoreMlFault::file(format!("{}: {error}", into.display()));
    let name = into.file_name().ok_or_else(|| {
        CoreMlFault::file(format!("{}: expected a name for a folder", into.display()))
    })?;
    let parent = into.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(wrong)?;
    match fs::rename(made, into) {
        Ok(()) => return Ok(()),
        Err(_) if into.is_dir() => return Ok(()),
        // Another volume, which a folder cannot be moved to.
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {}
        Err(error) => return Err(wrong(error)),
    }
    let process = std::process::id();
    let number = COPIES.fetch_add(1, Ordering::Relaxed);
    let beside = parent.join(format!(".{}.{process}.{number}", name.to_string_lossy()));
    let copied = copy(made, &beside).and_then(|()| fs::rename(&beside, into));
    if copied.is_err() {
        // Best effort: the error that is told is the first one.
        let _ = fs::remove_dir_all(&beside);
    }
    match copied {
        Err(error) if !into.is_dir() => Err(wrong(error)),
        _ => Ok(()),
    }
}

/// Copies a folder of folders and files.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut waiting: Vec<(PathBuf, PathBuf)> = vec![(from.to_owned(), to.to_owned())];
    while let Some((from, to)) = waiting.pop() {
        fs::create_dir(&to)?;
        for entry in fs::read_dir(&from)? {
            let entry = entry?;
            let target = to.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                waiting.push((entry.path(), target));
            } else {
                fs::copy(entry.path(), target)?;
            }
        }
    }
    Ok(())
}

/// Checks that the result of the system's compiler is a folder.
fn made(path: Option<PathBuf>) -> Result<PathBuf, CoreMlFault> {
    path.filter(|path| path.is_dir()).ok_or_else(|| {
        let text = "Core ML says that it has compiled the package and gives no folder";
        CoreMlFault::new(CoreMlFaultKind::Compile, text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(at: &Path) {
        fs::create_dir_all(at.join("weights")).unwrap();
        fs::write(at.join("model.mil"), "program").unwrap();
        fs::write(at.join("weights/weight.bin"), "bytes").unwrap();
    }

    #[test]
    fn a_folder_is_moved_and_its_parents_are_made() {
        let root = tempfile::tempdir().unwrap();
        let made = root.path().join("made");
        let into = root.path().join("cache/x/a.mlmodelc");
        model(&made);
        install(&made, &into).unwrap();
        assert!(!made.exists());
        assert_eq!(fs::read(into.join("weights/weight.bin")).unwrap(), b"bytes");
    }

    #[test]
    fn a_folder_that_came_first_stays() {
        let root = tempfile::tempdir().unwrap();
        let made = root.path().join("made");
        let into = root.path().join("a.mlmodelc");
        model(&made);
        model(&into);
        fs::write(into.join("model.mil"), "first").unwrap();
        install(&made, &into).unwrap();
        assert_eq!(fs::read(into.join("model.mil")).unwrap(), b"first");
    }

    #[test]
    fn a_folder_is_copied_whole() {
        let root = tempfile::tempdir().unwrap();
        let made = root.path().join("made");
        let to = root.path().join("copy");
        model(&made);
        copy(&made, &to).unwrap();
        assert_eq!(fs::read(to.join("model.mil")).unwrap(), b"program");
        assert_eq!(fs::read(to.join("weights/weight.bin")).unwrap(), b"bytes");
        assert_eq!(copy(&made, &to).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn nothing_is_compiled_from_nothing_or_over_something() {
        let root = tempfile::tempdir().unwrap();
        let missing = compile(&root.path().join("a.mlpackage"), &root.path().join("b"));
        assert!(missing.unwrap_err().text.contains("a.mlpackage"));
        let taken = compile(root.path(), root.path()).unwrap_err();
        assert!(taken.text.ends_with("is there already"));
        assert_eq!(taken.kind, CoreMlFaultKind::File);
    }

    #[test]
    fn a_compiler_that_gives_no_folder_has_failed() {
        assert_eq!(made(None).unwrap_err().kind, CoreMlFaultKind::Compile);
        assert!(made(Some(PathBuf::from("/nowhere"))).is_err());
    }

    #[cfg(not(any(target_os = "macos", apple_doubles)))]
    #[test]
    fn off_macos_nothing_is_compiled() {
        let root = tempfile::tempdir().unwrap();
        let fault = compile(root.path(), &root.path().join("b")).unwrap_err();
        assert_eq!(fault.kind, CoreMlFaultKind::Unavailable);
    }
}
