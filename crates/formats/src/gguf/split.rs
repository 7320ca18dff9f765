//! Checkpoints in several files, as llama.cpp's `gguf-split` writes them.

use std::path::{Path, PathBuf};

use super::GgufFile;
use crate::checkpoint::{CheckpointError, FileSource};

/// The keys of the number of a file from 0 on, of the files, and of the tensors in all of them.
const NUMBER: &str = "split.no";
const COUNT: &str = "split.count";
const TENSORS: &str = "split.tensors.count";

/// How many files the checkpoint says it has; 0 where it says nothing.
pub(super) fn count(part: &GgufFile) -> Result<u16, CheckpointError> {
    let count = part.metadata.find::<u32>(COUNT)?.unwrap_or(0);
    u16::try_from(count).map_err(|_| {
        CheckpointError::invalid(format!("{count} files are too many"))
            .at(format_args!("metadata '{COUNT}'"))
    })
}

/// The whole checkpoint that a file is a part of.
pub(super) fn complete(path: &Path, part: GgufFile) -> Result<GgufFile, CheckpointError> {
    let count = count(&part).map_err(|error| error.in_file(path))?;
    if count < 2 {
        return Ok(part);
    }
    let pattern = SplitPattern::of(path, count).map_err(|error| error.in_file(path))?;
    let mut whole: Option<GgufFile> = None;
    for number in 0..count {
        let file = pattern.path(number);
        let next = read(&file, number, count).map_err(|error| error.in_file(&file))?;
        let Some(whole) = &mut whole else {
            whole = Some(next);
            continue;
        };
        whole.append(next.tensors).map_err(|error| error.in_file(&file))?;
        whole.files.extend(next.files);
    }
    let whole = whole.unwrap_or(part);
    let expected = whole.metadata.find::<u64>(TENSORS)?;
    if let Some(expected) = expected
        && u64::try_from(whole.tensors.len()).ok() != Some(expected)
    {
        let text = format!("{expected}, the {count} files have {}", whole.tensors.len());
        let error = CheckpointError::invalid(text).at(format_args!("metadata '{TENSORS}'"));
        return Err(error.in_file(path));
    }
    Ok(whole)
}

fn read(path: &Path, number: u16, expected: u16) -> Result<GgufFile, CheckpointError> {
    let part = GgufFile::read(&FileSource::open(path)?)?;
    let found = part.metadata.get::<u32>(NUMBER)?;
    if found != u32::from(number) {
        let text = format!("this is part {found} of the checkpoint, its name says {number}");
        return Err(CheckpointError::invalid(text).at(format_args!("metadata '{NUMBER}'")));
    }
    let count = count(&part)?;
    if count != expected {
        let text = format!("{count} files, another part of the checkpoint says {expected}");
        return Err(CheckpointError::invalid(text).at(format_args!("metadata '{COUNT}'")));
    }
    Ok(part)
}

/// The names of the files.
#[derive(Debug)]
struct SplitPattern {
    folder: PathBuf,
    prefix: String,
    count: u16,
}

impl SplitPattern {
    fn of(path: &Path, count: u16) -> Result<Self, CheckpointError> {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let end = format!("-of-{count:05}.gguf");
        let numbered = name.strip_suffix(&end).and_then(|rest| rest.rsplit_once('-'));
        let prefix = numbered
            .filter(|(_, number)| number.len() == 5 && number.parse::<u16>().is_ok())
            .map(|(prefix, _)| prefix.to_owned());
        let prefix = prefix.ok_or_else(|| {
            let text = format!(
                "one of {count} files of a checkpoint, and its name does not end in '-NNNNN{end}', \
                 so that the others cannot be found"
            );
            CheckpointError::invalid(text)
        })?;
        Ok(Self { folder: path.parent().unwrap_or(Path::new("")).to_owned(), prefix, count })
    }

    fn path(&self, number: u16) -> PathBuf {
        let Self { folder, prefix, count } = self;
        folder.join(format!("{prefix}-{:05}-of-{count:05}.gguf", u32::from(number) + 1))
    }
}
