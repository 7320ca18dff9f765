//! Models that are served without a repository: a file, a folder of files, a folder of one model.

use std::fs;
use std::path::{Path, PathBuf};

use galatea_serving::backend::llm::is_checkpoint;
use galatea_serving::graph_model::ModelFormat;
use galatea_serving::temporary_folder::LockedFolder;
use galatea_tensor::OrderedMap;

/// Repositories to serve. Those of models that lie in none are folders of links, for as long as this lives.
#[derive(Debug, Default)]
pub(crate) struct ServedPaths {
    /// Folders of models.
    pub(crate) repositories: Vec<String>,
    links: Vec<LockedFolder>,
}

/// Contents of a path.
enum PathContents {
    /// A repository, or nothing that is known.
    Repository,
    /// The folder of one model, with its versions.
    ModelFolder,
    /// The folder of a checkpoint.
    Checkpoint,
    /// Files and packages of models.
    Files(Vec<PathBuf>),
}

/// Turns arguments before the first flag into the flag that names repositories.
pub(crate) fn named_by_flag(arguments: &[String]) -> Vec<String> {
    let plain = arguments.iter().take_while(|argument| !argument.starts_with('-')).count();
    let (paths, flags) = arguments.split_at(plain);
    let named = paths.iter().map(|path| format!("--model-repository={path}"));
    named.chain(flags.iter().cloned()).collect()
}

impl ServedPaths {
    /// Finds what each path holds, and makes repositories of what is none.
    ///
    /// # Errors
    /// Says which path lacks a name for its model, and when links cannot be made.
    pub(crate) fn prepare(paths: &[String]) -> Result<Self, String> {
        let mut all = Self::default();
        for given in paths {
            let path = Path::new(given);
            let models = match contents(path) {
                PathContents::Repository => {
                    all.repositories.push(given.clone());
                    continue;
                }
                PathContents::ModelFolder | PathContents::Checkpoint => vec![path.to_owned()],
                PathContents::Files(files) => files,
            };
            let folder = LockedFolder::make("links");
            let folder = folder.map_err(|error| format!("cannot make a folder: {error}"))?;
            let mut names: OrderedMap<String, &PathBuf> = OrderedMap::new();
            for model in &models {
                let name = name_of(model)?;
                if let Some(other) = names.insert(name.clone(), model) {
                    let (one, two) = (other.display(), model.display());
                    return Err(format!("'{one}' and '{two}' would both be the model '{name}'"));
                }
                link(model, &folder.path().join(&name))
                    .map_err(|error| format!("'{}' cannot be linked: {error}", model.display()))?;
                tracing::info!("Serving '{}' as the model '{name}'.", model.display());
            }
            all.repositories.push(folder.path().display().to_string());
            all.links.push(folder);
        }
        Ok(all)
    }
}

/// Returns whether a path is a model by itself.
fn is_model(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    let package = ending == "mlpackage" && path.is_dir();
    let file = path.is_file() && (ModelFormat::of(path).is_some() || ending == "gguf");
    !hidden && (package || file)
}

/// Returns the entries of a folder in the order of their names.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let found = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = found.map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// Returns whether a folder is that of one model: it has a configuration or versions.
fn is_model_folder(folder: &Path) -> bool {
    let version = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        path.is_dir() && !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())
    };
    folder.join("config.pbtxt").is_file() || entries(folder).iter().any(version)
}

fn contents(path: &Path) -> PathContents {
    if is_model(path) {
        return PathContents::Files(vec![path.to_owned()]);
    }
    if !path.is_dir() {
        return PathContents::Repository;
    }
    let entries = entries(path);
    let is_repository = entries.iter().any(|entry| {
        let folder = entry.is_dir() && !is_model(entry);
        folder && (is_model_folder(entry) || is_checkpoint(entry))
    });
    if is_repository {
        return PathContents::Repository;
    }
    if is_model_folder(path) {
        return PathContents::ModelFolder;
    }
    if is_checkpoint(path) {
        return PathContents::Checkpoint;
    }
    let files: Vec<PathBuf> = entries.into_iter().filter(|entry| is_model(entry)).collect();
    if files.is_empty() { PathContents::Repository } else { PathContents::Files(files) }
}

/// Returns the name of a model: that of its file without the ending, or that of its folder.
fn name_of(path: &Path) -> Result<String, String> {
    // `.` and a path that ends with `..` have a name only on the disk.
    let whole = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let name = if is_model(path) { path.file_stem() } else { whole.file_name() };
    let name = name.and_then(|name| name.to_str()).filter(|name| !name.is_empty());
    name.map(str::to_owned).ok_or_else(|| format!("'{}' gives no model's name", path.display()))
}

/// Makes the folder of a model.
fn link(model: &Path, place: &Path) -> std::io::Result<()> {
    let model = fs::canonicalize(model)?;
    if !is_model(&model) {
        return std::os::unix::fs::symlink(model, place);
    }
    fs::create_dir(place)?;
    let name = model.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match model.parent() {
        // Files with weights lie beside the model.
        Some(folder) if ModelFormat::of(&model).is_some() => {
            let name = name.replace('\\', "\\\\").replace('"', "\\\"");
            let config = format!("default_model_filename: \"{name}\"\n");
            fs::write(place.join("config.pbtxt"), config)?;
            std::os::unix::fs::symlink(folder, place.join("1"))
        }
        _ => {
            fs::create_dir(place.join("1"))?;
            std::os::unix::fs::symlink(&model, place.join("1").join(name))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(path: &Path) -> Result<ServedPaths, String> {
        ServedPaths::prepare(&[path.display().to_string()])
    }

    #[test]
    fn arguments_before_the_flags_are_repositories() {
        let texts = |all: &[&str]| all.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let found = named_by_flag(&texts(&["a.onnx", "b", "--http-port", "1"]));
        let expected = ["--model-repository=a.onnx", "--model-repository=b", "--http-port", "1"];
        assert_eq!(found, expected);
        assert_eq!(named_by_flag(&texts(&["--http-port", "1"])), ["--http-port", "1"]);
    }

    #[test]
    fn files_become_models_of_their_names_beside_their_weights() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["digits.onnx", "words.mlmodel", "weights.bin", ".hidden.onnx"] {
            fs::write(folder.path().join(name), name).unwrap();
        }
        fs::create_dir(folder.path().join("net.mlpackage")).unwrap();
        let served = prepared(folder.path()).unwrap();
        let repository = PathBuf::from(&served.repositories[0]);
        let names: Vec<String> = entries(&repository)
            .iter()
            .map(|entry| entry.file_name().unwrap().to_str().unwrap().to_owned())
            .collect();
        assert_eq!(names, ["digits", "net", "words"]);
        let config = fs::read_to_string(repository.join("digits/config.pbtxt")).unwrap();
        assert_eq!(config, "default_model_filename: \"digits.onnx\"\n");
        let weights = fs::read_to_string(repository.join("digits/1/weights.bin")).unwrap();
        assert_eq!(weights, "weights.bin");
        drop(served);
        assert!(!repository.exists(), "links go with the server");
        let one = prepared(&folder.path().join("digits.onnx")).unwrap();
        assert_eq!(entries(Path::new(&one.repositories[0])).len(), 1);
        fs::write(folder.path().join("digits.mlmodel"), "").unwrap();
        assert!(prepared(folder.path()).unwrap_err().contains("both be the model 'digits'"));
    }

    #[test]
    fn repositories_and_what_is_unknown_stay_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let same =
            |path: &Path| prepared(path).unwrap().repositories == [path.display().to_string()];
        assert!(same(folder.path()), "empty");
        assert!(same(&folder.path().join("none")), "absent");
        fs::create_dir_all(folder.path().join("digits/1")).unwrap();
        fs::write(folder.path().join("digits/1/model.onnx"), "").unwrap();
        fs::write(folder.path().join("stray.onnx"), "").unwrap();
        assert!(same(folder.path()), "a repository");
        let served = prepared(&folder.path().join("digits")).unwrap();
        let repository = PathBuf::from(&served.repositories[0]);
        assert!(repository.join("digits/1/model.onnx").is_file(), "the folder of one model");
    }
}
