//! Samples of a model's inputs that a configuration names, for comparisons at load.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use galatea_formats::npy;
use galatea_graph::{Datum, Fact, Graph, converted};
use galatea_tensor::Tensor;

/// The most samples that a partition is compared on.
const MAX_SAMPLES: usize = 8;

/// Archives of samples: `.npz` files and folders of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProbeSamples {
    files: Vec<PathBuf>,
}

impl ProbeSamples {
    /// Finds the archives that a text names, separated by commas.
    ///
    /// # Errors
    /// Names the first that is no archive and no folder of archives.
    pub(super) fn of(text: &str) -> Result<Self, String> {
        let mut files = Vec::new();
        for name in text.split(',').map(str::trim) {
            let path = Path::new(name);
            let found = if path.is_dir() { archives(path) } else { vec![path.to_owned()] };
            let wrong = found.iter().any(|path| !is_archive(path) || !path.is_file());
            if found.is_empty() || wrong {
                return Err(format!(
                    "'{name}' found, expected .npz archives of inputs or folders of them"
                ));
            }
            files.extend(found);
        }
        Ok(Self { files })
    }

    /// Returns whether no samples were named.
    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns, as text, what the samples depend on: the files as they are now.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for path in &self.files {
            let found = path.metadata().map(|found| (found.size(), found.mtime()));
            text.push_str(&format!("{} {:?} ", path.display(), found.ok()));
        }
        text
    }

    /// Reads the samples that a graph with known shapes takes: those with a tensor of the right shape for each input. There
    /// are none for a part of a model, whose inputs are computed.
    pub(super) fn inputs(&self, graph: &Graph) -> Vec<Vec<Datum>> {
        let mut all = Vec::new();
        for path in &self.files {
            match npy::read_npz(path) {
                Ok(archive) => all.extend(fitting(graph, &archive)),
                Err(error) => tracing::warn!("samples are not compared: {error}"),
            }
            if all.len() >= MAX_SAMPLES {
                all.truncate(MAX_SAMPLES);
                break;
            }
        }
        all
    }
}

fn is_archive(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "npz")
}

/// The archives of a folder in the order of their names.
fn archives(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| is_archive(path)).collect();
    files.sort();
    files
}

/// The inputs of a graph in an archive: one sample, or one for each position of an axis in front of every input.
fn fitting(graph: &Graph, archive: &[(String, Tensor)]) -> Vec<Vec<Datum>> {
    let whole: Option<Vec<Datum>> = sample(graph, archive, &|tensor| Some(tensor.clone()));
    if let Some(whole) = whole {
        return vec![whole];
    }
    let count = archive.iter().filter_map(|(_, tensor)| tensor.shape().first().copied()).min();
    let part = |at: usize| {
        sample(graph, archive, &|tensor| {
            let part = tensor.slice_axis(0, at, 1, 1).ok()?.contiguous().ok()?;
            part.reshape(part.shape().get(1..)?).ok()
        })
    };
    (0..count.unwrap_or(0).min(MAX_SAMPLES)).map_while(part).collect()
}

/// The inputs of a graph, each made of the archive's tensor of its name; none where one is absent or has another shape.
fn sample(
    graph: &Graph,
    archive: &[(String, Tensor)],
    take: &dyn Fn(&Tensor) -> Option<Tensor>,
) -> Option<Vec<Datum>> {
    let one = |&id: &galatea_graph::ValueId| {
        let value = graph.value(id);
        let fact: &Fact = value.declared.as_ref().filter(|fact| fact.is_tensor())?;
        let (_, tensor) = archive.iter().find(|(name, _)| *name == value.name)?;
        let tensor = take(tensor)?;
        let same = fact.known_shape()? == tensor.shape()
            && fact.dtype.is_float() == tensor.dtype().is_float();
        let tensor = same.then(|| converted(&tensor, fact.dtype).ok()).flatten()?;
        Some(Datum::Tensor(tensor))
    };
    graph.inputs.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use galatea_tensor::DataType;

    use super::*;

    fn graph() -> Graph {
        let mut graph = Graph::new("samples");
        for (name, shape) in [("x", &[2, 3][..]), ("y", &[4])] {
            let id = graph.value_named(name);
            graph.value_mut(id).declared = Some(Fact::fixed(DataType::Fp32, shape));
            graph.inputs.push(id);
        }
        graph
    }

    fn zeros(shape: &[usize]) -> Tensor {
        Tensor::zeros(DataType::Fp64, shape).unwrap()
    }

    #[test]
    fn samples_that_fit_a_graph_are_read_from_files_and_folders() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, x: &[usize], y: &[usize]| {
            let path = folder.path().join(name);
            npy::write_npz(&path, [("x", &zeros(x)), ("y", &zeros(y))]).unwrap();
            path
        };
        let one = write("one.npz", &[2, 3], &[4]);
        write("many.npz", &[3, 2, 3], &[3, 4]);
        write("other.npz", &[2, 4], &[4]);
        let found = ProbeSamples::of(one.to_str().unwrap()).unwrap();
        assert_eq!(found.inputs(&graph()).len(), 1);
        let found = ProbeSamples::of(folder.path().to_str().unwrap()).unwrap();
        let all = found.inputs(&graph());
        assert_eq!(all.len(), 4);
        let shapes: Vec<&[usize]> =
            all[2].iter().map(|datum| datum.as_tensor().unwrap().shape()).collect();
        assert_eq!(shapes, [&[2, 3][..], &[4]]);
        // A part of the model has other inputs.
        let mut part = graph();
        let inner = part.value_named("inner");
        part.inputs.push(inner);
        assert!(found.inputs(&part).is_empty());
        let before = found.text();
        write("one.npz", &[9, 2, 3], &[9, 4]);
        assert_ne!(found.text(), before);
        assert_eq!(found.inputs(&graph()).len(), MAX_SAMPLES);
    }

    #[test]
    fn what_is_no_archive_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let empty = folder.path().to_str().unwrap();
        for wrong in ["", "/nowhere.npz", "/etc/hostname", empty] {
            let error = ProbeSamples::of(wrong).unwrap_err();
            assert!(error.contains(wrong) && error.contains("expected .npz archives"), "{error}");
        }
    }
}
