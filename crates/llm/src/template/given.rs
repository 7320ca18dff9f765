//! Templates that come from outside a checkpoint's own files: given by a user, or lying beside a GGUF file.

use std::path::{Path, PathBuf};

use super::{MAX_TEMPLATE_BYTES, read};
use crate::error::{LlmError, LlmErrorKind, Result};

/// Name of the file with a template, in the folder of a checkpoint.
pub(super) const TEMPLATE_FILE: &str = "chat_template.jinja";

/// Marks of a template's text, which paths do not have.
const TEXT_MARKS: &[char] = &['{', '}', '\n'];

/// Returns whether what somebody gives as a template is its text, and no path.
#[must_use]
pub fn is_template_text(given: &str) -> bool {
    given.contains(TEXT_MARKS)
}

/// Reads a template that somebody gives: its text, or the path of its file.
///
/// # Errors
/// A file that is not there, cannot be read or is too large.
pub(crate) fn given_template(given: &str) -> Result<String> {
    if is_template_text(given) {
        return Ok(given.to_owned());
    }
    let missing = || {
        let text =
            format!("'{given}' is no file, expected a template's text or the path of its file");
        LlmError::new(LlmErrorKind::Parameter, "chat_template", text)
    };
    bounded(Path::new(given))?.ok_or_else(missing)
}

/// Reads the template beside a GGUF file: `NAME.jinja` for `NAME.gguf`, or `chat_template.jinja` for all files of the
/// folder. A link's own folder comes before that of the file behind it.
///
/// # Errors
/// A file that cannot be read or is too large.
pub(crate) fn template_beside(file: &Path) -> Result<Option<String>> {
    let behind = std::fs::canonicalize(file).ok();
    for file in [Some(file), behind.as_deref()].into_iter().flatten() {
        for place in [named_like(file), file.with_file_name(TEMPLATE_FILE)] {
            if let Some(text) = bounded(&place)? {
                return Ok(Some(text));
            }
        }
    }
    Ok(None)
}

/// Path of a model's own template; files of several parts have one.
fn named_like(file: &Path) -> PathBuf {
    let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let whole = stem.split_once("-00001-of-").map_or(stem, |(name, _)| name);
    file.with_file_name(format!("{whole}.jinja"))
}

/// Reads a file of at most the length of a template; nothing where there is none.
fn bounded(path: &Path) -> Result<Option<String>> {
    let size = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let most = u64::try_from(MAX_TEMPLATE_BYTES).unwrap_or(u64::MAX);
    if size > most {
        let text = format!("{size} bytes, expected at most {MAX_TEMPLATE_BYTES}");
        return Err(LlmError::new(LlmErrorKind::Template, path.display().to_string(), text));
    }
    if path.is_dir() { Ok(None) } else { read(path) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_given_as_its_text_or_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("t.txt");
        std::fs::write(&file, "{{ messages }}").unwrap();
        assert_eq!(given_template(file.to_str().unwrap()).unwrap(), "{{ messages }}");
        assert_eq!(given_template("{% if x %}").unwrap(), "{% if x %}");
        for absent in ["nowhere.jinja", folder.path().to_str().unwrap()] {
            let error = given_template(absent).unwrap_err().to_string();
            assert!(error.contains(absent) && error.contains("path of its file"), "{error}");
        }
        let large = std::fs::File::create(&file).unwrap();
        large.set_len(u64::try_from(MAX_TEMPLATE_BYTES).unwrap() + 1).unwrap();
        let error = given_template(file.to_str().unwrap()).unwrap_err().to_string();
        assert!(error.contains("expected at most"), "{error}");
    }

    #[test]
    fn files_have_the_template_of_their_name_or_of_their_folder() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        std::fs::write(place("a.gguf"), "").unwrap();
        assert_eq!(template_beside(&place("a.gguf")).unwrap(), None);
        std::fs::write(place("chat_template.jinja"), "all").unwrap();
        std::fs::write(place("b.jinja"), "own").unwrap();
        let found = |name: &str| template_beside(&place(name)).unwrap();
        assert_eq!(found("a.gguf").as_deref(), Some("all"));
        assert_eq!(found("b.gguf").as_deref(), Some("own"));
        assert_eq!(found("b-00001-of-00003.gguf").as_deref(), Some("own"));
        #[cfg(unix)]
        {
            let links = tempfile::tempdir().unwrap();
            let link = links.path().join("c.gguf");
            std::os::unix::fs::symlink(place("a.gguf"), &link).unwrap();
            assert_eq!(template_beside(&link).unwrap().as_deref(), Some("all"), "behind a link");
        }
    }
}
