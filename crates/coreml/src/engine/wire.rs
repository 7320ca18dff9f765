//! The messages between the program and its worker: a length of 32 bits, then a message of protobuf.

use std::io::{self, Read, Write};

use galatea_apple::qos::ThreadQos;
use galatea_formats::coreml::{ModelFeature, proto::FeatureDescription};
use prost::Message;

use super::{
    ComputeUnits, EngineError, EngineErrorKind, EngineInterface, EngineLoadOptions,
    EnginePlannedOperator,
};

/// Version of the messages, which both sides exchange first; they must be equal.
pub(super) const VERSION: u32 = 2;

/// The most bytes of a message: a plan of a large model is the longest.
const MAX_BYTES: usize = 64 << 20;

/// Request to the worker.
#[derive(Clone, PartialEq, Message)]
pub(super) struct WorkerRequest {
    /// The number that the answer has.
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(oneof = "WorkerAsk", tags = "2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12")]
    pub(super) ask: Option<WorkerAsk>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum WorkerAsk {
    #[prost(message, tag = "2")]
    Open(BlockMessage),
    #[prost(uint64, tag = "3")]
    Close(u64),
    #[prost(message, tag = "4")]
    Compile(CompileCommand),
    #[prost(message, tag = "5")]
    Load(LoadCommand),
    #[prost(uint64, tag = "6")]
    Unload(u64),
    #[prost(message, tag = "7")]
    Plan(LoadCommand),
    #[prost(uint64, tag = "8")]
    NewState(u64),
    #[prost(message, tag = "9")]
    DropState(StateOf),
    #[prost(message, tag = "10")]
    Predict(PredictCommand),
    #[prost(message, tag = "11")]
    Collect(CollectCommand),
    #[prost(message, tag = "12")]
    CopyState(CopyState),
}

/// Answer of the worker.
#[derive(Clone, PartialEq, Message)]
pub(super) struct WorkerAnswer {
    /// The number of the request; 0 for what nobody asked for.
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(oneof = "WorkerReply", tags = "2, 3, 4, 5, 6, 7, 8, 9")]
    pub(super) reply: Option<WorkerReply>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum WorkerReply {
    #[prost(message, tag = "2")]
    Hello(WorkerHello),
    #[prost(message, tag = "3")]
    Failed(FailedReply),
    #[prost(message, tag = "4")]
    Done(EmptyReply),
    #[prost(message, tag = "5")]
    Loaded(LoadedReply),
    #[prost(uint64, tag = "6")]
    State(u64),
    #[prost(message, tag = "7")]
    Planned(PlannedReply),
    #[prost(message, tag = "8")]
    Predicted(PredictedReply),
    #[prost(message, tag = "9")]
    NeedsRoom(OutputNeeds),
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct EmptyReply {}

/// Said once, before anything else.
#[derive(Clone, PartialEq, Message)]
pub(super) struct WorkerHello {
    #[prost(uint32, tag = "1")]
    pub(super) version: u32,
    #[prost(string, tag = "2")]
    pub(super) engine: String,
}

/// A block of shared memory.
#[derive(Clone, PartialEq, Message)]
pub(super) struct BlockMessage {
    #[prost(uint64, tag = "1")]
    pub(super) number: u64,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(uint64, tag = "3")]
    pub(super) bytes: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct CompileCommand {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) package: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) into: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LoadCommand {
    #[prost(uint64, tag = "1")]
    pub(super) model: u64,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) path: Vec<u8>,
    #[prost(string, optional, tag = "3")]
    pub(super) function: Option<String>,
    /// Number of the compute units in Core ML's `MLComputeUnits`.
    #[prost(uint32, tag = "4")]
    pub(super) units: u32,
    #[prost(bool, tag = "5")]
    pub(super) fast_prediction: bool,
    /// The place in [`CLASSES`].
    #[prost(uint32, tag = "6")]
    pub(super) qos: u32,
    /// The model whose states it takes: another function of the same compiled one.
    #[prost(uint64, optional, tag = "7")]
    pub(super) beside: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct StateOf {
    #[prost(uint64, tag = "1")]
    pub(super) model: u64,
    #[prost(uint64, tag = "2")]
    pub(super) state: u64,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct CopyState {
    #[prost(uint64, tag = "1")]
    pub(super) model: u64,
    #[prost(uint64, tag = "2")]
    pub(super) from: u64,
    #[prost(uint64, tag = "3")]
    pub(super) to: u64,
}

/// A tensor and where its bytes lie; texts as Triton has them, with their lengths before them.
#[derive(Clone, PartialEq, Message)]
pub(super) struct PlacedTensor {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) dtype: String,
    #[prost(uint64, repeated, tag = "3")]
    pub(super) shape: Vec<u64>,
    #[prost(uint64, tag = "4")]
    pub(super) block: u64,
    #[prost(uint64, tag = "5")]
    pub(super) offset: u64,
    #[prost(uint64, tag = "6")]
    pub(super) bytes: u64,
}

/// A block for an output.
#[derive(Clone, PartialEq, Message)]
pub(super) struct OutputRoom {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(uint64, tag = "2")]
    pub(super) block: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PredictCommand {
    #[prost(uint64, tag = "1")]
    pub(super) model: u64,
    #[prost(uint64, optional, tag = "2")]
    pub(super) state: Option<u64>,
    #[prost(message, repeated, tag = "3")]
    pub(super) inputs: Vec<PlacedTensor>,
    #[prost(message, repeated, tag = "4")]
    pub(super) rooms: Vec<OutputRoom>,
}

/// Asks for the outputs that had no room, by the number of the prediction.
#[derive(Clone, PartialEq, Message)]
pub(super) struct CollectCommand {
    #[prost(uint64, tag = "1")]
    pub(super) prediction: u64,
    #[prost(message, repeated, tag = "2")]
    pub(super) rooms: Vec<OutputRoom>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct FailedReply {
    /// The place in [`KINDS`].
    #[prost(uint32, tag = "1")]
    pub(super) kind: u32,
    #[prost(string, tag = "2")]
    pub(super) text: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LoadedReply {
    #[prost(message, repeated, tag = "1")]
    pub(super) inputs: Vec<FeatureDescription>,
    #[prost(message, repeated, tag = "2")]
    pub(super) outputs: Vec<FeatureDescription>,
    #[prost(message, repeated, tag = "3")]
    pub(super) states: Vec<FeatureDescription>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PlannedReply {
    #[prost(message, repeated, tag = "1")]
    pub(super) operators: Vec<OperatorMessage>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct OperatorMessage {
    #[prost(string, tag = "1")]
    pub(super) operator: String,
    #[prost(string, repeated, tag = "2")]
    pub(super) outputs: Vec<String>,
    #[prost(string, optional, tag = "3")]
    pub(super) planned: Option<String>,
    #[prost(string, repeated, tag = "4")]
    pub(super) supported: Vec<String>,
    #[prost(double, optional, tag = "5")]
    pub(super) weight: Option<f64>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PredictedReply {
    #[prost(message, repeated, tag = "1")]
    pub(super) outputs: Vec<PlacedTensor>,
}

/// The outputs and their bytes.
#[derive(Clone, PartialEq, Message)]
pub(super) struct OutputNeeds {
    #[prost(message, repeated, tag = "1")]
    pub(super) outputs: Vec<OutputNeed>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct OutputNeed {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(uint64, tag = "2")]
    pub(super) bytes: u64,
}

/// Kinds of failures by their number, those that a worker has.
const KINDS: [EngineErrorKind; 9] = [
    EngineErrorKind::Predict,
    EngineErrorKind::Unavailable,
    EngineErrorKind::Argument,
    EngineErrorKind::File,
    EngineErrorKind::Compile,
    EngineErrorKind::Load,
    EngineErrorKind::Plan,
    EngineErrorKind::Memory,
    EngineErrorKind::StateLost,
];

/// Classes of threads by their number.
const CLASSES: [ThreadQos; 5] = [
    ThreadQos::Default,
    ThreadQos::Background,
    ThreadQos::Utility,
    ThreadQos::Initiated,
    ThreadQos::Interactive,
];

/// Compute units by their number.
const UNITS: [ComputeUnits; 4] = [
    ComputeUnits::CpuOnly,
    ComputeUnits::CpuAndGpu,
    ComputeUnits::All,
    ComputeUnits::CpuAndNeuralEngine,
];

fn number<T: PartialEq>(table: &[T], value: &T) -> u32 {
    let found = table.iter().position(|one| one == value);
    found.and_then(|at| u32::try_from(at).ok()).unwrap_or(0)
}

fn of_number<T: Copy>(table: &[T], number: u32) -> Option<T> {
    table.get(usize::try_from(number).ok()?).copied()
}

impl FailedReply {
    pub(super) fn of(error: &EngineError) -> Self {
        Self { kind: number(&KINDS, &error.kind), text: error.text.clone() }
    }

    pub(super) fn error(self) -> EngineError {
        let kind = of_number(&KINDS, self.kind).unwrap_or(EngineErrorKind::Predict);
        EngineError::new(kind, self.text)
    }
}

impl LoadCommand {
    pub(super) fn of(model: u64, path: Vec<u8>, options: &EngineLoadOptions) -> Self {
        Self {
            model,
            path,
            function: options.function.clone(),
            units: number(&UNITS, &options.units),
            fast_prediction: options.fast_prediction,
            qos: number(&CLASSES, &options.qos),
            beside: None,
        }
    }

    /// The options; those that have no name here are the usual ones.
    pub(super) fn options(&self) -> EngineLoadOptions {
        EngineLoadOptions {
            function: self.function.clone(),
            units: of_number(&UNITS, self.units).unwrap_or_default(),
            fast_prediction: self.fast_prediction,
            qos: of_number(&CLASSES, self.qos).unwrap_or(ThreadQos::Default),
        }
    }
}

impl LoadedReply {
    pub(super) fn of(interface: &EngineInterface) -> Self {
        let all = |list: &[ModelFeature]| list.iter().map(ModelFeature::write).collect();
        Self {
            inputs: all(&interface.inputs),
            outputs: all(&interface.outputs),
            states: all(&interface.states),
        }
    }

    pub(super) fn interface(&self) -> Result<EngineInterface, String> {
        let all = |list: &[FeatureDescription]| -> Result<Vec<ModelFeature>, String> {
            let read = |one| ModelFeature::read(one).map_err(|error| error.to_string());
            list.iter().map(read).collect()
        };
        Ok(EngineInterface {
            inputs: all(&self.inputs)?,
            outputs: all(&self.outputs)?,
            states: all(&self.states)?,
        })
    }
}

impl OperatorMessage {
    pub(super) fn of(row: EnginePlannedOperator) -> Self {
        let EnginePlannedOperator { operator, outputs, planned, supported, weight } = row;
        Self { operator, outputs, planned, supported, weight }
    }

    pub(super) fn row(self) -> EnginePlannedOperator {
        let Self { operator, outputs, planned, supported, weight } = self;
        EnginePlannedOperator { operator, outputs, planned, supported, weight }
    }
}

/// Writes a message with its length.
///
/// # Errors
/// Fails when it is too long, or the other side is gone.
pub(super) fn write(to: &mut impl Write, message: &impl Message) -> io::Result<()> {
    let len = message.encoded_len();
    let head = u32::try_from(len).ok().filter(|_| len <= MAX_BYTES);
    let head = head.ok_or_else(|| wrong(format!("a message of {len} bytes")))?;
    let mut bytes = Vec::with_capacity(len + 4);
    bytes.extend_from_slice(&head.to_le_bytes());
    bytes.extend_from_slice(&message.encode_to_vec());
    to.write_all(&bytes)
}

fn wrong(what: String) -> io::Error {
    let text = format!("found {what}, expected a message of at most {MAX_BYTES} bytes");
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// Messages as their bytes come in.
#[derive(Debug, Default)]
pub(super) struct IncomingWire {
    bytes: Vec<u8>,
}

impl IncomingWire {
    /// Reads once, and gives how many bytes there were: 0 at the end.
    pub(super) fn fill(&mut self, from: &mut impl Read) -> io::Result<usize> {
        let mut part = [0; 16 << 10];
        let count = from.read(&mut part)?;
        self.bytes.extend_from_slice(&part[..count]);
        Ok(count)
    }

    /// The next message, where it is complete.
    ///
    /// # Errors
    /// Fails when what came is no message.
    pub(super) fn next<M: Message + Default>(&mut self) -> io::Result<Option<M>> {
        let Some((head, rest)) = self.bytes.split_first_chunk::<4>() else { return Ok(None) };
        let len = usize::try_from(u32::from_le_bytes(*head)).unwrap_or(usize::MAX);
        if len > MAX_BYTES {
            return Err(wrong(format!("{len} bytes")));
        }
        let Some(body) = rest.get(..len) else { return Ok(None) };
        let message = M::decode(body).map_err(|error| wrong(error.to_string()))?;
        self.bytes.drain(..len + 4);
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_whole_however_they_are_cut() {
        let mut wire = Vec::new();
        for id in 1..4 {
            write(&mut wire, &WorkerRequest { id, ask: Some(WorkerAsk::NewState(id * 7)) })
                .unwrap();
        }
        let mut incoming = IncomingWire::default();
        let mut found = Vec::new();
        for byte in wire {
            incoming.fill(&mut &[byte][..]).unwrap();
            while let Some(request) = incoming.next::<WorkerRequest>().unwrap() {
                found.push((request.id, request.ask));
            }
        }
        let expected = (1..4).map(|id| (id, Some(WorkerAsk::NewState(id * 7))));
        assert_eq!(found, expected.collect::<Vec<_>>());
    }

    #[test]
    fn garbage_is_refused() {
        let mut incoming = IncomingWire::default();
        incoming.fill(&mut &b"GARBAGE!"[..]).unwrap();
        assert!(
            incoming.next::<WorkerAnswer>().unwrap_err().to_string().contains("expected a message")
        );
        let mut incoming = IncomingWire::default();
        incoming.fill(&mut &[3, 0, 0, 0, 0xff, 0xff, 0xff][..]).unwrap();
        assert!(incoming.next::<WorkerAnswer>().is_err());
    }

    #[test]
    fn options_and_failures_arrive_as_they_were() {
        for units in UNITS {
            let function = Some("main".to_owned());
            let options = EngineLoadOptions {
                function,
                units,
                fast_prediction: true,
                qos: ThreadQos::Utility,
            };
            assert_eq!(LoadCommand::of(1, Vec::new(), &options).options(), options);
        }
        for kind in KINDS {
            let error = EngineError::new(kind, "text");
            assert_eq!(FailedReply::of(&error).error(), error);
        }
    }
}
