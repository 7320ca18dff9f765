//! Messages between the program and its worker, for fuzz targets. Not for other users.

#![allow(clippy::expect_used, reason = "a panic is how a fuzz target reports")]
#![allow(clippy::missing_panics_doc, reason = "a panic is how a fuzz target reports")]

use std::io;
use std::sync::{Arc, LazyLock};

use galatea_tensor::SharedBlock;
use prost::Message;

use super::blocks;
use super::wire::{
    IncomingWire, PlacedTensor, WorkerAnswer, WorkerAsk, WorkerReply, WorkerRequest,
};

/// A block in which the tensors of all inputs lie.
static BLOCK: LazyLock<Arc<SharedBlock>> = LazyLock::new(|| {
    let name = format!("/galfuzzc{}", std::process::id());
    let block = SharedBlock::create(&name, 4096, 1).expect("a block");
    SharedBlock::unlink(&name);
    Arc::new(block)
});

/// Reads bytes as messages of either side, in pieces the length of which is the first byte.
pub fn core_ml_worker(data: &[u8]) {
    let Some((&piece, bytes)) = data.split_first() else { return };
    let piece = usize::from(piece).max(1);
    if let Ok(requests) = messages::<WorkerRequest>(bytes, piece) {
        requests.into_iter().filter_map(|request| request.ask).for_each(request);
    }
    if let Ok(answers) = messages::<WorkerAnswer>(bytes, piece) {
        answers.into_iter().filter_map(|answer| answer.reply).for_each(reply);
    }
}

fn messages<M: Message + Default>(bytes: &[u8], piece: usize) -> io::Result<Vec<M>> {
    let mut incoming = IncomingWire::default();
    let mut found = Vec::new();
    for mut piece in bytes.chunks(piece) {
        while !piece.is_empty() {
            incoming.fill(&mut piece)?;
            while let Some(message) = incoming.next()? {
                found.push(message);
            }
        }
    }
    Ok(found)
}

/// Takes a request apart as the worker does, without doing what it asks for.
fn request(ask: WorkerAsk) {
    match ask {
        WorkerAsk::Load(load) | WorkerAsk::Plan(load) => drop(load.options()),
        WorkerAsk::Predict(predict) => tensors(&predict.inputs),
        _ => {}
    }
}

/// Takes an answer apart as the program does.
fn reply(reply: WorkerReply) {
    match reply {
        WorkerReply::Failed(failed) => drop(failed.error()),
        WorkerReply::Loaded(loaded) => drop(loaded.interface()),
        WorkerReply::Planned(planned) => {
            planned.operators.into_iter().for_each(|operator| drop(operator.row()));
        }
        WorkerReply::Predicted(predicted) => tensors(&predicted.outputs),
        _ => {}
    }
}

fn tensors(placed: &[PlacedTensor]) {
    for tensor in placed {
        // A refusal is one of the outcomes.
        let _ = blocks::found(tensor, &BLOCK);
    }
}

#[cfg(test)]
mod tests {
    use galatea_testkit::fuzz_corpus::hold;

    use super::*;

    #[test]
    fn committed_inputs_of_the_fuzz_target_hold() {
        hold("core_ml_worker", 3, core_ml_worker);
    }
}
