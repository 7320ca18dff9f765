//! Sample models that are part of the program, so that `quickstart` works wherever the program lies.

use std::fs;
use std::path::Path;

use galatea_serving::temporary_folder::LockedFolder;

/// File of the sample repository.
struct SampleFile {
    /// Path inside the repository, with `/` between its parts.
    path: &'static str,
    bytes: &'static [u8],
}

macro_rules! file {
    ($path:literal) => {
        SampleFile {
            path: $path,
            bytes: include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/models/", $path)),
        }
    };
}

/// All files of `examples/models`. Weights hardly compress, so they lie here as they are and cost no memory until
/// they are read.
const FILES: &[SampleFile] = &[
    file!("chat/1/config.json"),
    file!("chat/1/generation_config.json"),
    file!("chat/1/model.safetensors"),
    file!("chat/1/tokenizer.json"),
    file!("chat/1/tokenizer_config.json"),
    file!("chat/config.pbtxt"),
    file!("chat/sample_chat.json"),
    file!("digits/1/model.onnx"),
    file!("digits/config.pbtxt"),
    file!("digits/labels.txt"),
    file!("digits/sample_input.json"),
    file!("digits/sample_output.json"),
    file!("identity_bf16/1/model.onnx"),
    file!("identity_bf16/config.pbtxt"),
    file!("identity_bf16/sample_input.json"),
    file!("identity_bf16/sample_output.json"),
    file!("identity_bool/1/model.onnx"),
    file!("identity_bool/config.pbtxt"),
    file!("identity_bool/sample_input.json"),
    file!("identity_bool/sample_output.json"),
    file!("identity_bytes/1/model.onnx"),
    file!("identity_bytes/config.pbtxt"),
    file!("identity_bytes/sample_input.json"),
    file!("identity_bytes/sample_output.json"),
    file!("identity_fp16/1/model.onnx"),
    file!("identity_fp16/config.pbtxt"),
    file!("identity_fp16/sample_input.json"),
    file!("identity_fp16/sample_output.json"),
    file!("identity_fp32/1/model.onnx"),
    file!("identity_fp32/config.pbtxt"),
    file!("identity_fp32/sample_input.json"),
    file!("identity_fp32/sample_output.json"),
    file!("identity_fp64/1/model.onnx"),
    file!("identity_fp64/config.pbtxt"),
    file!("identity_fp64/sample_input.json"),
    file!("identity_fp64/sample_output.json"),
    file!("identity_int16/1/model.onnx"),
    file!("identity_int16/config.pbtxt"),
    file!("identity_int16/sample_input.json"),
    file!("identity_int16/sample_output.json"),
    file!("identity_int32/1/model.onnx"),
    file!("identity_int32/config.pbtxt"),
    file!("identity_int32/sample_input.json"),
    file!("identity_int32/sample_output.json"),
    file!("identity_int64/1/model.onnx"),
    file!("identity_int64/config.pbtxt"),
    file!("identity_int64/sample_input.json"),
    file!("identity_int64/sample_output.json"),
    file!("identity_int8/1/model.onnx"),
    file!("identity_int8/config.pbtxt"),
    file!("identity_int8/sample_input.json"),
    file!("identity_int8/sample_output.json"),
    file!("identity_uint16/1/model.onnx"),
    file!("identity_uint16/config.pbtxt"),
    file!("identity_uint16/sample_input.json"),
    file!("identity_uint16/sample_output.json"),
    file!("identity_uint32/1/model.onnx"),
    file!("identity_uint32/config.pbtxt"),
    file!("identity_uint32/sample_input.json"),
    file!("identity_uint32/sample_output.json"),
    file!("identity_uint64/1/model.onnx"),
    file!("identity_uint64/config.pbtxt"),
    file!("identity_uint64/sample_input.json"),
    file!("identity_uint64/sample_output.json"),
    file!("identity_uint8/1/model.onnx"),
    file!("identity_uint8/config.pbtxt"),
    file!("identity_uint8/sample_input.json"),
    file!("identity_uint8/sample_output.json"),
    file!("lstm/1/model.onnx"),
    file!("lstm/config.pbtxt"),
    file!("lstm/labels.txt"),
    file!("lstm/sample_input.json"),
    file!("lstm/sample_output.json"),
    file!("sentence/1/model.onnx"),
    file!("sentence/config.pbtxt"),
    file!("sentence/labels.txt"),
    file!("sentence/sample_input.json"),
    file!("sentence/sample_output.json"),
    file!("simple/1/model.onnx"),
    file!("simple/config.pbtxt"),
    file!("simple/sample_input.json"),
    file!("simple/sample_output.json"),
    file!("simple_ensemble/1/.gitkeep"),
    file!("simple_ensemble/config.pbtxt"),
    file!("simple_ensemble/sample_input.json"),
    file!("simple_ensemble/sample_output.json"),
    file!("simple_string/1/model.onnx"),
    file!("simple_string/config.pbtxt"),
    file!("simple_string/sample_input.json"),
    file!("simple_string/sample_output.json"),
];

/// Writes the sample models to a folder of their own, which goes when this value is dropped.
///
/// # Errors
/// Fails when the system's folder for temporary files cannot be written.
pub(super) fn write() -> Result<LockedFolder, String> {
    let failed = |place: &Path, error: &dyn std::fmt::Display| {
        format!("'{}' cannot be written: {error}; TMPDIR names another folder", place.display())
    };
    let folder = LockedFolder::make("samples");
    let folder = folder.map_err(|error| failed(&std::env::temp_dir(), &error))?;
    for file in FILES {
        let place = folder.path().join(file.path);
        let parent = place.parent().unwrap_or(folder.path());
        let written = fs::create_dir_all(parent).and_then(|()| fs::write(&place, file.bytes));
        written.map_err(|error| failed(&place, &error))?;
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(folder: &Path, base: &Path, into: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                paths(&path, base, into);
            } else {
                into.push(path.strip_prefix(base).unwrap().to_str().unwrap().to_owned());
            }
        }
    }

    #[test]
    fn the_program_has_every_file_of_the_sample_repository() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/models");
        let mut expected = Vec::new();
        paths(&source, &source, &mut expected);
        expected.sort();
        let written = write().unwrap();
        let mut found = Vec::new();
        paths(written.path(), written.path(), &mut found);
        found.sort();
        assert_eq!(found, expected);
        for path in &found {
            let same = fs::read(written.path().join(path)).unwrap();
            assert_eq!(same, fs::read(source.join(path)).unwrap(), "{path}");
        }
        let place = written.path().to_owned();
        drop(written);
        assert!(!place.exists(), "the folder goes with the command");
    }
}
