//! Damaged models of Core ML: whatever is wrong, reading ends with an error or with a model, never with a panic,
//! and soon.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bytes::Bytes;
use galatea_formats::coreml::proto::mil::{
    BindingKind, MilProgramProto, MilValueKindProto, TypeKind,
};
use galatea_formats::coreml::proto::{CoreMlModelProto, ModelKind};
use galatea_formats::coreml::read_model;
use galatea_testkit::noise::NoiseGenerator;
use prost::Message;

/// The small programs among the golden cases, with their weights.
fn cases() -> Vec<(String, Vec<u8>, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/mil");
    let mut zips: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()).collect();
    zips.retain(|path| path.extension().is_some_and(|extension| extension == "zip"));
    zips.sort();
    let mut cases = Vec::new();
    for path in zips {
        let mut archive = zip::ZipArchive::new(File::open(&path).unwrap()).unwrap();
        let names: Vec<String> =
            archive.file_names().map(|name| name.unwrap().into_owned()).collect();
        // A few of each family: every operator is read by the test of the operators.
        let models = names.iter().filter(|name| name.ends_with("/model.mlmodel"));
        for name in models.step_by(8) {
            let mut bytes = |name: &str| {
                let mut all = Vec::new();
                if let Ok(mut file) = archive.by_name(name) {
                    file.read_to_end(&mut all).unwrap();
                }
                all
            };
            let weights = name.replace("model.mlmodel", "weights/weight.bin");
            cases.push((name.clone(), bytes(name), bytes(&weights)));
        }
    }
    assert!(cases.len() > 100, "only {} cases", cases.len());
    cases
}

/// Reads a model whose weights are these bytes.
fn read(folder: &Path, model: Vec<u8>, weights: &[u8]) -> bool {
    std::fs::create_dir_all(folder.join("weights")).unwrap();
    std::fs::write(folder.join("weights/weight.bin"), weights).unwrap();
    let started = Instant::now();
    let read = read_model(Bytes::from(model), Some(folder));
    assert!(
        started.elapsed() < Duration::from_secs(20),
        "a small file takes {:?}",
        started.elapsed()
    );
    if let Err(error) = &read {
        assert!(!error.to_string().is_empty());
    }
    read.is_ok()
}

fn pick(noise: &mut NoiseGenerator, count: usize) -> usize {
    noise.below(count.max(1))
}

#[test]
fn bytes_that_are_cut_or_changed_are_refused_or_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut noise = NoiseGenerator::new(11);
    let (mut refused, mut taken) = (0, 0);
    for (_, model, weights) in cases() {
        for round in 0..4 {
            let (mut model, mut weights) = (model.clone(), weights.clone());
            let target = if round == 3 && !weights.is_empty() { &mut weights } else { &mut model };
            let at = pick(&mut noise, target.len());
            match round {
                0 => target.truncate(at),
                _ => target[at] ^= 1 << pick(&mut noise, 8),
            }
            match read(folder.path(), model, &weights) {
                true => taken += 1,
                false => refused += 1,
            }
        }
    }
    assert!(refused > 100 && taken > 0, "{refused} refused, {taken} taken");
}

/// Changes one thing of a program as a message, so that what is wrong lies deeper than the encoding.
fn change(program: &mut MilProgramProto, noise: &mut NoiseGenerator) {
    let Some(function) = program.functions.values_mut().next() else { return };
    let opset = function.opset.clone();
    let Some(block) = function.block_specializations.get_mut(&opset) else { return };
    let count = block.operations.len();
    let (at, other) = (pick(noise, count), pick(noise, count));
    let names: Vec<String> = block
        .operations
        .iter()
        .flat_map(|one| one.outputs.iter().map(|o| o.name.clone()))
        .collect();
    let name = names[pick(noise, names.len())].clone();
    match pick(noise, 8) {
        0 => block.operations.swap(at, other),
        1 => drop(block.operations.remove(at)),
        2 => block.operations[at].r#type = block.operations[other].r#type.clone(),
        3 => {
            // Any value of the program in the place of another, its own result among them.
            let operation = &mut block.operations[at];
            let bindings = operation.inputs.values_mut().flat_map(|one| &mut one.arguments);
            for binding in bindings.take(1) {
                binding.binding = Some(BindingKind::Name(name.clone()));
            }
        }
        4 => drop(block.operations[at].inputs.pop_first()),
        5 => {
            let outputs = &mut block.operations[at].outputs;
            for output in outputs.iter_mut().take(1) {
                if let Some(TypeKind::Tensor(found)) =
                    output.r#type.as_mut().and_then(|stated| stated.kind.as_mut())
                {
                    found.data_type = i32::try_from(noise.below(45)).unwrap();
                }
            }
        }
        6 => {
            for value in block.operations[at].attributes.values_mut() {
                if let Some(MilValueKindProto::BlobFile(blob)) = &mut value.value {
                    blob.offset = u64::try_from(noise.below(4096)).unwrap();
                }
            }
        }
        _ => block.outputs[0].clone_from(&name),
    }
}

#[test]
fn programs_that_say_what_is_not_so_are_refused_or_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut noise = NoiseGenerator::new(12);
    let (mut refused, mut taken) = (0, 0);
    for (_, bytes, weights) in cases() {
        for _ in 0..6 {
            let mut model = CoreMlModelProto::decode(bytes.as_slice()).unwrap();
            let Some(ModelKind::MlProgram(program)) = &mut model.kind else { continue };
            change(program, &mut noise);
            match read(folder.path(), model.encode_to_vec(), &weights) {
                true => taken += 1,
                false => refused += 1,
            }
        }
    }
    assert!(refused > 300 && taken > 0, "{refused} refused, {taken} taken");
}
