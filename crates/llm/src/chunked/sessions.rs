//! Functions of chunks run by sessions: Core ML's programs by the interpreter, on any provider.

use std::collections::HashMap;
use std::sync::Arc;

use galatea_graph::{Graph, converted};
use galatea_runtime::{ExecutionProvider, Run, Session, SessionOptions};
use galatea_tensor::Tensor;

use super::{ChunkFunctions, ChunkPlace};
use crate::error::{LlmError, LlmErrorKind, Result};

/// A function as a graph: what it is given, then its states; what it gives, then its states as it
/// leaves them.
#[derive(Clone, Debug)]
pub struct ChunkFunction {
    /// The graph.
    pub graph: Graph,
    /// How many states it has.
    pub states: usize,
}

/// A function that is run for the first time, or was run before.
#[derive(Debug)]
enum FunctionUse {
    Not(Box<Graph>),
    Session(Box<Session>),
}

#[derive(Debug)]
struct FunctionSession {
    made: FunctionUse,
    states: usize,
}

/// Runs functions by sessions. Each is made when it is needed for the first time.
pub struct SessionChunks {
    /// By chunk and rows.
    functions: HashMap<(usize, usize), FunctionSession>,
    /// By chunk and sequence; none before the first run.
    states: HashMap<(usize, usize), Vec<Tensor>>,
    providers: Vec<Arc<dyn ExecutionProvider>>,
    options: SessionOptions,
}

impl std::fmt::Debug for SessionChunks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionChunks")
            .field("functions", &self.functions.len())
            .finish_non_exhaustive()
    }
}

fn failed(place: ChunkPlace, text: impl std::fmt::Display) -> LlmError {
    let place = format!("chunk {}, function of {} rows", place.chunk, place.rows);
    LlmError::new(LlmErrorKind::Model, place, text.to_string())
}

impl SessionChunks {
    /// Functions by chunk and rows.
    #[must_use]
    pub fn new(
        functions: Vec<((usize, usize), ChunkFunction)>,
        providers: Vec<Arc<dyn ExecutionProvider>>,
        options: SessionOptions,
    ) -> Self {
        let function = |(place, function): (_, ChunkFunction)| {
            let made = FunctionUse::Not(Box::new(function.graph));
            (place, FunctionSession { made, states: function.states })
        };
        let functions = functions.into_iter().map(function).collect();
        Self { functions, states: HashMap::new(), providers, options }
    }

    /// The session of a function, and how many states it has.
    fn session(&mut self, place: ChunkPlace) -> Result<(&Session, usize)> {
        let missing = || failed(place, "there is no such function");
        let function = self.functions.get_mut(&(place.chunk, place.rows)).ok_or_else(missing)?;
        if let FunctionUse::Not(graph) = &mut function.made {
            let graph = std::mem::take(&mut **graph);
            let session = Session::new(graph, &self.providers, &self.options);
            let session = session.map_err(|error| failed(place, error))?;
            function.made = FunctionUse::Session(Box::new(session));
        }
        match &function.made {
            FunctionUse::Session(session) => Ok((session, function.states)),
            FunctionUse::Not(_) => Err(missing()),
        }
    }
}

impl ChunkFunctions for SessionChunks {
    fn run(&mut self, place: ChunkPlace, inputs: &HashMap<String, Tensor>) -> Result<Vec<Tensor>> {
        let held = self.states.remove(&(place.chunk, place.sequence));
        let (session, states) = self.session(place)?;
        let all = session.inputs();
        let (fed, kept) = all.split_at(all.len().saturating_sub(states));
        let mut given = Vec::with_capacity(all.len());
        for input in fed {
            let tensor = inputs.get(&input.name);
            let tensor =
                tensor.ok_or_else(|| failed(place, format!("no input '{}'", input.name)))?;
            given.push(converted(tensor, input.dtype).map_err(|error| failed(place, error))?);
        }
        match held {
            Some(held) => given.extend(held),
            None => {
                for state in kept {
                    let dims: Option<Vec<usize>> =
                        state.dims.iter().map(|dim| dim.known()).collect();
                    let unknown = || failed(place, format!("state '{}' of any shape", state.name));
                    let zeros = Tensor::zeros(state.dtype, &dims.ok_or_else(unknown)?);
                    given.push(zeros.map_err(|error| failed(place, error))?);
                }
            }
        }
        let mut outputs =
            session.run_tensors(Run::owned(given)).map_err(|error| failed(place, error))?;
        let after = outputs.split_off(outputs.len().saturating_sub(states));
        if states > 0 {
            self.states.insert((place.chunk, place.sequence), after);
        }
        Ok(outputs)
    }

    fn copy(&mut self, from: usize, to: usize) -> Result<()> {
        let held = self.states.iter().filter(|((_, sequence), _)| *sequence == from);
        let copies: Vec<_> =
            held.map(|((chunk, _), tensors)| ((*chunk, to), tensors.clone())).collect();
        self.states.extend(copies);
        Ok(())
    }
}
