//! Archives and messages of workers, for fuzz targets.

#![allow(clippy::expect_used, reason = "a panic is how a fuzz target reports")]

use std::fs;
use std::sync::{LazyLock, Mutex, PoisonError};

use galatea_tensor::SharedBlock;

use super::blocks::{ServerBlocks, SharedFlagPage, WorkerBlocks};
use super::response::{self, WorkerOutputMemory};
use super::wire::WorkerAnswers;
use crate::config::ModelConfig;

/// Blocks of both sides: one of the server's, with the number 1, and none of the worker's.
struct BlockFixture {
    given: ServerBlocks,
    theirs: WorkerBlocks,
}

static BLOCKS: LazyLock<Mutex<BlockFixture>> = LazyLock::new(|| {
    let prefix = format!("/galfuzz{}", std::process::id());
    let page = format!("{prefix}f");
    let flags = SharedFlagPage::create(&page).expect("a page of flags");
    let mut given = ServerBlocks::new(&flags, &prefix, 4096);
    let lease = given.lease(4096, |bytes| bytes.fill(7)).expect("a block");
    let names = lease.new.iter().map(|(_, name)| name).chain([&page]);
    names.for_each(|name| SharedBlock::unlink(name));
    Mutex::new(BlockFixture { given, theirs: WorkerBlocks::new(&flags, &prefix) })
});

/// Unpacks bytes as the archive of an environment, and looks whether anything left its folder.
pub fn archive(data: &[u8]) {
    let home = tempfile::tempdir().expect("a folder");
    let file = home.path().join("archive");
    let folder = home.path().join("in");
    fs::write(&file, data).expect("the archive");
    fs::create_dir(&folder).expect("the folder");
    // A refusal is one of the outcomes.
    let _ = super::archive::unpack(&file, &folder);
    let beside = fs::read_dir(home.path()).expect("the folder stays").count();
    assert_eq!(beside, 2, "something was written beside the folder");
    assert_eq!(fs::read(&file).expect("the archive stays"), data, "the archive was changed");
}

/// Reads bytes as an answer of a worker of the Python backend, with the tensors of its responses.
pub fn python_worker(data: &[u8]) {
    let Ok(answers) = WorkerAnswers::read(data) else { return };
    let blocks = BLOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    let config = ModelConfig::default();
    let mut memory =
        WorkerOutputMemory { small: answers.small, given: &blocks.given, theirs: &blocks.theirs };
    for answer in answers.answers {
        if let Some(response) = answer.response {
            let _ = response::decode(&config, response, &mut memory);
        }
    }
}
