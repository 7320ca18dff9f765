//! Texts that were looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// With this variable set, the texts are written and not compared.
const WRITE: &str = "GALATEA_WRITE_METAL";

/// Texts longer than this are kept as a digest only: their loops are written out.
const MAX_BYTES: usize = 48 << 10;

/// Formats of few bits whose texts are kept whole; those of the others differ in how codes are unpacked.
const FORMATS: &[&str] = &["q4x32", "n6x16", "mul-f16", "gather-f16", "merge", "gate"];

/// A kernel's text.
pub(crate) struct Text {
    pub(crate) family: &'static str,
    pub(crate) name: String,
    pub(crate) text: String,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/metal")
}

/// 64 bits of FNV-1a.
fn digest(text: &str) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325_u64;
    text.bytes().fold(start, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// The files: on an Apple GPU the first text of each name with FP16 and without, and digests of all.
fn files(device: &str, texts: &[Text]) -> BTreeMap<PathBuf, String> {
    let mut digests: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut files = BTreeMap::new();
    for Text { family, name, text } in texts {
        let line = format!("{name} {:016x}\n", digest(text));
        digests.entry(family).or_default().insert(line);
        let shown = *family != "blocks" || FORMATS.iter().any(|format| name.contains(format));
        if device == "apple" && shown && text.len() <= MAX_BYTES {
            let half = if text.contains("half") { "-halves" } else { "" };
            let path = Path::new(family).join(format!("{name}{half}.metal"));
            files.entry(path).or_insert_with(|| text.clone());
        }
    }
    for (family, lines) in digests {
        let path = Path::new(family).join(format!("{device}.txt"));
        files.insert(path, lines.into_iter().collect());
    }
    files
}

/// The files of a device that are there.
fn present(device: &str) -> BTreeSet<PathBuf> {
    let list = |path: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(path).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    let all = list(&folder()).into_iter().filter(|path| path.is_dir());
    let own = |path: &PathBuf| {
        let text = path.extension().is_some_and(|extension| extension == "metal");
        path.ends_with(format!("{device}.txt")) || text && device == "apple"
    };
    let files = all.flat_map(|folder| list(&folder)).filter(own);
    files.map(|path| path.strip_prefix(folder()).unwrap().to_owned()).collect()
}

/// Returns the texts that are kept whole, with their files.
pub(crate) fn kept() -> BTreeMap<String, PathBuf> {
    let texts = present("apple").into_iter();
    let texts = texts.filter(|path| path.extension().is_some_and(|extension| extension == "metal"));
    texts.map(|path| (fs::read_to_string(folder().join(&path)).unwrap(), path)).collect()
}

/// Compares the texts of a device with those that were looked at, or writes them.
pub(crate) fn compare(device: &str, texts: &[Text]) {
    let files = files(device, texts);
    let present = present(device);
    let gone = present.iter().filter(|path| !files.contains_key(*path));
    if std::env::var_os(WRITE).is_some() {
        gone.for_each(|path| fs::remove_file(folder().join(path)).unwrap());
        for (path, text) in &files {
            let path = folder().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        return;
    }
    let differs = |(path, text): &(&PathBuf, &String)| {
        fs::read_to_string(folder().join(path)).map_or(true, |kept| kept != **text)
    };
    let changed: Vec<&PathBuf> =
        files.iter().filter(differs).map(|(path, _)| path).chain(gone).collect();
    assert!(
        changed.is_empty(),
        "the Metal text of kernels changed; `cargo xtask metal` writes it anew, look at what becomes \
         of {changed:?}"
    );
}
