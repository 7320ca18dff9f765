//! The program under the name of Triton's server.

use std::path::{Path, PathBuf};

/// Name of Triton's program, under which this one serves as that does.
pub(super) const NAME: &str = "tritonserver";

/// Links the program under the name `tritonserver` in a folder; without one, beside itself. Returns the link's path.
///
/// # Errors
/// Fails when the folder cannot be written, or has another program of that name.
pub(super) fn link(folder: Option<&Path>) -> Result<PathBuf, String> {
    let program = std::env::current_exe().and_then(std::fs::canonicalize);
    let program =
        program.map_err(|error| format!("the program's own file is not known: {error}"))?;
    let folder = folder.or_else(|| program.parent()).unwrap_or_else(|| Path::new("."));
    let name = format!("{NAME}{}", std::env::consts::EXE_SUFFIX);
    let path = folder.join(name);
    if std::fs::symlink_metadata(&path).is_ok() {
        return match std::fs::canonicalize(&path).is_ok_and(|found| found == program) {
            true => Ok(path),
            false => Err(format!("'{}' is there already, and is another file", path.display())),
        };
    }
    let failed = |error| format!("'{}' cannot be made: {error}", path.display());
    linked(&program, &path).map_err(failed)?;
    Ok(path)
}

#[cfg(unix)]
fn linked(program: &Path, path: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(program, path)
}

#[cfg(not(unix))]
fn linked(program: &Path, path: &Path) -> std::io::Result<()> {
    std::fs::hard_link(program, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_stands_for_the_program_and_for_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = link(Some(folder.path())).unwrap();
        let own = std::fs::canonicalize(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(std::fs::canonicalize(&path).unwrap(), own);
        assert_eq!(link(Some(folder.path())).unwrap(), path, "a second time nothing is to be done");
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "another").unwrap();
        assert!(link(Some(folder.path())).unwrap_err().contains("is another file"));
        assert!(link(Some(&folder.path().join("nowhere"))).unwrap_err().contains("cannot be made"));
    }
}
