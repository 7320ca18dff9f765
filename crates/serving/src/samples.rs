//! Samples of a model's inputs: from archives, or made.

use std::fs;
use std::path::{Path, PathBuf};

use galatea_formats::npy;
use galatea_graph::{Dim, Graph, ValueId};
use galatea_runtime::quantize::NamedInputs;
use galatea_tensor::Tensor;

/// Most samples that archives may hold together.
const MAX_SAMPLES: usize = 1 << 16;

/// The samples in archives and folders of archives.
///
/// # Errors
/// Names the file that cannot be read, or does not fit the model.
pub fn samples(graph: &Graph, named: &[String]) -> Result<Vec<NamedInputs>, String> {
    let mut all = Vec::new();
    for name in named {
        let path = Path::new(name);
        let files = if path.is_dir() { archives(path)? } else { vec![path.to_owned()] };
        for file in files {
            let archive = npy::read_npz(&file).map_err(|error| error.to_string())?;
            all.extend(split(graph, archive).map_err(|why| format!("{}: {why}", file.display()))?);
            if all.len() > MAX_SAMPLES {
                return Err(format!("there are more than {MAX_SAMPLES} samples"));
            }
        }
    }
    Ok(all)
}

/// The archives of a folder in the order of their names.
fn archives(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder)
        .map_err(|error| format!("'{}' cannot be read: {error}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "npz"))
        .collect();
    files.sort();
    if files.is_empty() {
        return Err(format!("there is no .npz file in '{}'", folder.display()));
    }
    Ok(files)
}

/// The samples of an archive: itself, or one for each position of an axis in front of every input.
fn split(graph: &Graph, archive: NamedInputs) -> Result<Vec<NamedInputs>, String> {
    let rank = |id: &ValueId| {
        let value = graph.value(*id);
        let shape = value.declared.as_ref().and_then(|fact| fact.shape.as_ref());
        (value.name.clone(), shape.map(Vec::<Dim>::len))
    };
    let ranks: Vec<(String, Option<usize>)> = graph.inputs.iter().map(rank).collect();
    let known = |name: &str| ranks.iter().find(|(input, _)| input == name).map(|(_, rank)| *rank);
    let mut stacked = None;
    for (name, tensor) in &archive {
        let rank = known(name).ok_or_else(|| {
            let names: Vec<&str> = ranks.iter().map(|(name, _)| name.as_str()).collect();
            format!("the model has no input '{name}'; its inputs are {}", names.join(", "))
        })?;
        let Some(rank) = rank else { continue };
        let count = match tensor.rank().checked_sub(rank) {
            Some(0) => None,
            Some(1) => tensor.shape().first().copied(),
            _ => {
                let found = tensor.shape();
                return Err(format!("'{name}' has shape {found:?}, expected {rank} axes"));
            }
        };
        if stacked.replace(count).is_some_and(|earlier| earlier != count) {
            return Err(format!("'{name}' has another number of samples than the inputs before"));
        }
    }
    let Some(Some(count)) = stacked else { return Ok(vec![archive]) };
    let one = |at: usize| -> Result<NamedInputs, String> {
        let part = |(name, tensor): &(String, Tensor)| {
            let sliced = tensor.slice_axis(0, at, 1, 1).and_then(|part| {
                let shape = part.shape().get(1..).unwrap_or_default().to_vec();
                part.contiguous()?.reshape(&shape)
            });
            sliced.map(|part| (name.clone(), part)).map_err(|error| error.to_string())
        };
        archive.iter().map(part).collect()
    };
    (0..count.min(MAX_SAMPLES + 1)).map(one).collect()
}

#[cfg(test)]
mod tests {
    use galatea_graph::Fact;
    use galatea_tensor::DataType;

    use super::*;

    #[test]
    fn archives_hold_one_sample_or_several_along_an_axis() {
        let mut graph = Graph::new("test");
        for (name, rank) in [("x", 2), ("y", 1)] {
            let id = graph.value_named(name);
            let dims = vec![Dim::Unknown; rank];
            graph.value_mut(id).declared = Some(Fact::new(DataType::Fp32, dims));
            graph.inputs.push(id);
        }
        let archive = |x: &[usize], y: &[usize]| -> NamedInputs {
            let zeros = |shape: &[usize]| Tensor::zeros(DataType::Fp32, shape).unwrap();
            vec![("x".to_owned(), zeros(x)), ("y".to_owned(), zeros(y))]
        };
        assert_eq!(split(&graph, archive(&[4, 3], &[3])).unwrap().len(), 1);
        let many = split(&graph, archive(&[5, 4, 3], &[5, 3])).unwrap();
        assert_eq!((many.len(), many[4][0].1.shape()), (5, &[4, 3][..]));
        let error = split(&graph, archive(&[5, 4, 3], &[3])).unwrap_err();
        assert!(error.contains("'y' has another number"), "{error}");
        let error = split(&graph, archive(&[3], &[3])).unwrap_err();
        assert!(error.contains("expected 2 axes"), "{error}");
    }
}
