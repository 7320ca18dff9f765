//! Environments that models in Python bring: folders, and archives that are unpacked once.
//!
//! They need a Python with NumPy: that of `GALATEA_PYTHON`, of the environment of `cargo xtask python`, or `python3`.
//! Where there is none, each says so and does nothing.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use flate2::Compression;
use flate2::write::GzEncoder;
use galatea_serving::backend::python::PythonBackend;
use galatea_serving::core::LoadOverrides;
use galatea_tensor::ByteString;
use tempfile::TempDir;

use crate::python::{PATIENCE, PythonModels, ints, python, request, response, send, write_model};

fn printed(python: &Path, code: &str) -> String {
    let output = Command::new(python).args(["-c", code]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A virtual environment that sees NumPy, with a module and a program of its own, and an archive of it.
struct Packed {
    folder: TempDir,
    modules: PathBuf,
}

impl Packed {
    fn new() -> Option<Self> {
        let python = Path::new(python()?);
        let folder = tempfile::tempdir().unwrap();
        let environment = folder.path().join("environment");
        let made = Command::new(python)
            .args(["-m", "venv", "--without-pip"])
            .arg(&environment)
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let modules = printed(
            &environment.join("bin/python3"),
            "import sysconfig; print(sysconfig.get_path('purelib'))",
        );
        let numpy = printed(python, "import numpy, os; print(os.path.dirname(numpy.__path__[0]))");
        let modules = PathBuf::from(modules);
        fs::write(modules.join("numpy.pth"), numpy).unwrap();
        let packed = Self { folder, modules };
        packed.program("bin/own-tool", "#!/bin/sh\necho tool\n");
        packed.module("first");
        Some(packed)
    }

    fn archive(&self) -> PathBuf {
        self.folder.path().join("packed.tar.gz")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join("environment").join(name)
    }

    fn program(&self, name: &str, text: &str) {
        fs::write(self.file(name), text).unwrap();
        fs::set_permissions(self.file(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn module(&self, greeting: &str) {
        fs::write(self.modules.join("greetings.py"), format!("TEXT = '{greeting}'\n")).unwrap();
    }

    /// Writes the archive anew.
    fn pack(&self) {
        let packed = GzEncoder::new(File::create(self.archive()).unwrap(), Compression::fast());
        let mut tar = tar::Builder::new(packed);
        tar.follow_symlinks(false);
        tar.append_dir_all("", self.file("")).unwrap();
        tar.into_inner().unwrap().finish().unwrap();
    }
}

const CLASS: &str = "import os
import subprocess
import sys
import numpy as np
import triton_python_backend_utils as pb_utils
import greetings

class TritonPythonModel:
    def execute(self, requests):
        tool = subprocess.run(['own-tool'], capture_output=True, text=True).stdout.strip()
        names = ['VIRTUAL_ENV', 'CONDA_PREFIX', 'LD_LIBRARY_PATH', 'FROM_SCRIPT']
        found = [greetings.TEXT, sys.prefix, tool] + [os.environ.get(name, '') for name in names]
        return [pb_utils.InferenceResponse([pb_utils.Tensor('OUT', np.array(found, dtype=object))]) for _ in requests]
";

/// A core with models of these names that all name one environment.
fn serve(models: &[&str], environment: &Path) -> PythonModels {
    let folder = tempfile::tempdir().unwrap();
    let config = format!(
        "backend: \"python\" input {{ name: \"IN\" data_type: TYPE_INT32 dims: 1 }} \
         output {{ name: \"OUT\" data_type: TYPE_STRING dims: -1 }} \
         instance_group {{ kind: KIND_CPU count: 2 }} \
         parameters {{ key: \"EXECUTION_ENV_PATH\" value {{ string_value: \"{}\" }} }}",
        environment.display()
    );
    for name in models {
        write_model(folder.path(), name, &config, CLASS);
    }
    PythonModels::start(folder, vec![Arc::new(PythonBackend::default())], &[])
}

impl PythonModels {
    /// What the model finds: greeting, folder, tool, and variables.
    fn found(&self, model: &str) -> [String; 7] {
        let from = send(&self.core, request(model, &[("IN", &ints(&[0]))]));
        let response = response(&from).unwrap();
        let found: Vec<ByteString> = response.outputs[0].tensor.to_vec().unwrap();
        let found = found.iter().map(|text| String::from_utf8(text.as_bytes().to_vec()).unwrap());
        found.collect::<Vec<_>>().try_into().unwrap()
    }

    fn reason(&self, model: &str) -> String {
        let failures = self.core.load_failures();
        failures.into_iter().find(|one| one.model == model).unwrap().reason
    }
}

/// Waits for the end of models, which is told to nobody.
fn goes(folder: &str) {
    let deadline = Instant::now() + PATIENCE;
    while Path::new(folder).exists() {
        assert!(Instant::now() < deadline, "'{folder}' is still there");
        std::thread::yield_now();
    }
}

#[test]
fn an_archive_is_unpacked_once_for_all_models_and_anew_when_it_changes() {
    let Some(packed) = Packed::new() else { return };
    let counted = packed.folder.path().join("counted");
    // As conda-pack's, it runs once the folder is where it stays.
    let script = format!(
        "#!/usr/bin/env python\nimport sys\nopen({:?}, 'a').write(sys.prefix + '\\n')\n",
        counted.to_str().unwrap()
    );
    packed.program("bin/conda-unpack", &script);
    packed.pack();
    let served = serve(&["a", "b", "c"], &packed.archive());
    let unpacked = || fs::read_to_string(&counted).unwrap();
    let [greeting, prefix, tool, environment, conda, libraries, _] = served.found("a");
    assert_eq!((greeting.as_str(), tool.as_str()), ("first", "tool"));
    assert_eq!((&environment, conda.as_str()), (&prefix, ""));
    assert_eq!(libraries, std::env::var("LD_LIBRARY_PATH").unwrap_or_default());
    assert_eq!(served.found("b")[1], prefix);
    assert_eq!(served.found("c")[1], prefix);
    assert_eq!(unpacked(), format!("{prefix}\n"));
    packed.module("second one");
    packed.pack();
    // As in Triton, a model is loaded anew only where a file of its own has changed.
    let load = |model: &str| {
        fs::write(served.folder.path().join(model).join("1/changed"), "").unwrap();
        served.core.load_model(model, LoadOverrides::default()).unwrap();
    };
    load("a");
    let [greeting, next, ..] = served.found("a");
    assert_eq!(greeting, "second one");
    assert_eq!(served.found("b")[..2], ["first".to_owned(), prefix.clone()]);
    load("b");
    load("c");
    assert_eq!(served.found("b")[1], next);
    assert_eq!(unpacked(), format!("{prefix}\n{next}\n"));
    goes(&prefix);
    drop(served);
    goes(&next);
}

#[test]
fn an_archive_is_unpacked_anew_where_somebody_has_cleaned_up() {
    let Some(packed) = Packed::new() else { return };
    packed.pack();
    let served = serve(&["a", "b", "c"], &packed.archive());
    let prefix = served.found("a")[1].clone();
    let load = |model: &str| {
        fs::write(served.folder.path().join(model).join("1/changed"), "").unwrap();
        served.core.load_model(model, LoadOverrides::default()).unwrap();
        served.found(model)[1].clone()
    };
    assert_eq!(load("a"), prefix);
    // What nobody has looked at goes first.
    fs::remove_file(Path::new(&prefix).join(".galatea-unpacked")).unwrap();
    let next = load("b");
    assert_ne!(next, prefix);
    assert_eq!(served.found("a")[1], prefix);
    assert_eq!(load("a"), next);
    // All of it, with the backend's own files.
    fs::remove_dir_all(Path::new(&next).parent().unwrap()).unwrap();
    let last = load("b");
    assert!(last != next && Path::new(&last).is_dir());
    assert_eq!(load("c"), last);
}

#[test]
fn environments_of_conda_are_activated_with_their_scripts() {
    let Some(packed) = Packed::new() else { return };
    fs::create_dir(packed.file("conda-meta")).unwrap();
    fs::create_dir_all(packed.file("etc/conda/activate.d")).unwrap();
    let script = "echo noise\nexport FROM_SCRIPT=\"two\nlines of $CONDA_PREFIX\"\nfalse\n";
    fs::write(packed.file("etc/conda/activate.d/own.sh"), script).unwrap();
    packed.program("bin/conda-unpack", "raise ValueError('the model is served anyway')\n");
    packed.pack();
    // The folder itself does as well.
    for environment in [packed.archive(), packed.file("")] {
        let served = serve(&["a"], &environment);
        let [greeting, prefix, tool, environment, conda, _, script] = served.found("a");
        assert_eq!((greeting.as_str(), tool.as_str()), ("first", "tool"));
        assert_eq!((environment.as_str(), conda.trim_end_matches('/')), ("", prefix.as_str()));
        assert_eq!(script, format!("two\nlines of {conda}"));
    }
}

#[test]
fn an_archive_in_the_models_folder_is_found_and_one_that_is_wrong_is_said_to_be() {
    let Some(packed) = Packed::new() else { return };
    packed.pack();
    let path = Path::new("$$TRITON_MODEL_DIRECTORY/own.tgz");
    let served = serve(&["a", "b", "c", "d", "e"], path);
    let put = |model: &str, bytes: &[u8]| {
        fs::write(served.folder.path().join(model).join("own.tgz"), bytes).unwrap();
        served.core.load_model(model, LoadOverrides::default())
    };
    assert!(served.reason("a").contains("EXECUTION_ENV_PATH of model 'a'"));
    let whole = fs::read(packed.archive()).unwrap();
    put("a", &whole).unwrap();
    assert_eq!(served.found("a")[0], "first");
    let failed = |model: &str, bytes: &[u8], expected: &str| {
        let error = put(model, bytes).unwrap_err().to_string();
        let path = served.folder.path().join(model).join("own.tgz");
        let path = path.canonicalize().unwrap();
        let reason = served.reason(model);
        let begin =
            format!("EXECUTION_ENV_PATH of model '{model}': the archive '{}'", path.display());
        assert!(reason.contains(&begin) && reason.contains(expected), "{error}: {reason}");
    };
    failed("b", &whole[..whole.len() / 2], "is truncated or damaged");
    failed("c", b"BZh91AY&SY", "is compressed with bzip2, expected a tar archive");
    let mut tar = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(0);
    header.set_mode(0o755);
    tar.append_data(&mut header, "environment/bin/python3", &[][..]).unwrap();
    let elsewhere = tar.into_inner().unwrap();
    failed("d", &elsewhere, "has no bin/python3 or bin/python, found at its top: 'environment'");
    // Once it is right, it is used.
    put("b", &whole).unwrap();
    assert_eq!(served.found("b")[0], "first");
}
