//! Contents of the folder of a model that SageMaker has unpacked.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use galatea_serving::ServingError;
use galatea_serving::config::from_text;
use galatea_serving::repository::ModelRepository;
use galatea_tensor::OrderedMap;

/// Folders that hold no models, whatever a client says.
const SYSTEM: [&str; 3] = ["/dev", "/proc", "/sys"];

/// The repository of a model: the folder that holds the model's, which there gets the name. The folder itself is the
/// model's where it has a configuration. Otherwise the one folder in it is, or of several the one of an ensemble, and
/// the others are its steps.
///
/// # Errors
/// Returns INVALID_ARG when the folder is the system's, cannot be read, or its model is ambiguous.
pub(super) fn repository(url: &str, name: &str) -> Result<ModelRepository, ServingError> {
    let folder = plain(url)?;
    if SYSTEM.iter().any(|system| folder.starts_with(system)) {
        return Err(ServingError::invalid_arg(format!(
            "the url '{url}' is in a folder of the system"
        )));
    }
    if !folder.is_dir() {
        let text = format!("failed to register '{url}', repository not found");
        return Err(ServingError::invalid_arg(text));
    }
    let (path, model) = if folder.join("config.pbtxt").is_file() {
        let parts = folder.parent().zip(folder.file_name().and_then(|name| name.to_str()));
        let (parent, model) = parts.ok_or_else(|| {
            ServingError::invalid_arg(format!("the url '{url}' names no folder of a model"))
        })?;
        (parent.to_owned(), model.to_owned())
    } else {
        let model = model_in(&folder).map_err(|error| {
            ServingError::invalid_arg(format!("the url '{url}' cannot be read: {error}"))
        })?;
        let model = model.map_err(|found| {
            ServingError::invalid_arg(format!(
                "the url '{url}' must hold one model, or several of which one is an ensemble; there are {found} \
                 models and no single ensemble"
            ))
        })?;
        (folder, model)
    };
    Ok(ModelRepository { path, names: OrderedMap::from([(model, name.to_owned())]) })
}

/// An absolute path without `.` and `..`.
fn plain(url: &str) -> Result<PathBuf, ServingError> {
    let path = Path::new(url);
    if !path.is_absolute() || url.contains('\0') {
        let text = format!("the url of a model must be an absolute path, found '{url}'");
        return Err(ServingError::invalid_arg(text));
    }
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    Ok(plain)
}

/// The folder of the model among those in a folder; where none stands out, how many there are.
fn model_in(folder: &Path) -> io::Result<Result<String, usize>> {
    let mut models = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if let (true, Ok(name)) = (entry.path().is_dir(), entry.file_name().into_string())
            && !name.starts_with('.')
        {
            models.push(name);
        }
    }
    if models.len() > 1 {
        let found = models.len();
        models.retain(|name| is_ensemble(&folder.join(name)));
        if models.len() != 1 {
            return Ok(Err(found));
        }
    }
    Ok(models.pop().ok_or(0))
}

fn is_ensemble(folder: &Path) -> bool {
    let text = fs::read_to_string(folder.join("config.pbtxt")).unwrap_or_default();
    from_text(&text).is_ok_and(|config| config.platform == "ensemble")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_of_an_archive_is_found() {
        let root = std::env::temp_dir().join(format!("galatea-archives-{}", std::process::id()));
        let write = |path: &str, config: &str| {
            let folder = root.join(path);
            fs::create_dir_all(folder.join("1")).unwrap();
            fs::write(folder.join("config.pbtxt"), config).unwrap();
        };
        let of = |path: &str| repository(root.join(path).to_str().unwrap(), "given");
        let expected = |path: &str, model: &str| ModelRepository {
            path: root.join(path),
            names: OrderedMap::from([(model.to_owned(), "given".to_owned())]),
        };
        write("plain/model", "backend: \"identity\"");
        assert_eq!(of("plain/model").unwrap(), expected("plain", "model"));
        assert_eq!(of("./plain/../plain/model/").unwrap(), expected("plain", "model"));
        fs::create_dir_all(root.join("nested/model/inner/1")).unwrap();
        assert_eq!(of("nested/model").unwrap(), expected("nested/model", "inner"));
        write("many/a", "backend: \"identity\"");
        write("many/b", "backend: \"identity\"");
        assert!(of("many").unwrap_err().message.contains("there are 2 models"));
        write("many/whole", "platform:  \"ensemble\"");
        assert_eq!(of("many").unwrap(), expected("many", "whole"));
        write("many/twice", "platform: \"ensemble\"");
        assert!(of("many").unwrap_err().message.contains("there are 4 models"));
        assert!(of("none").unwrap_err().message.ends_with("repository not found"));
        for url in ["", "models/m", "/proc/self", "/dev/", "/x/../sys/m"] {
            assert!(repository(url, "given").is_err(), "{url}");
        }
        fs::remove_dir_all(root).unwrap();
    }
}
