//! Inference on every device of a machine, as a library: ONNX graphs, Core ML packages and language models on the CPU,
//! the GPU and the Neural Engine.
//!
//! An [`Engine`] stands for the devices of this machine. It loads a [`Model`] (a graph), an [`Llm`] (a language model)
//! or an [`Encoder`] (vectors of texts), and a [`Server`] serves a repository of them in this process.
//!
//! ```
//! use galatea::{Engine, Tensor};
//!
//! let model = Engine::new().model("../../examples/models/simple")?;
//! let ones = Tensor::from_vec(&[1, 16], vec![1_i32; 16])?;
//! let outputs = model.run(&[("INPUT0", ones.clone()), ("INPUT1", ones)])?;
//! println!("{outputs:?}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Front ends over HTTP and gRPC are in the crate `galatea-server`, the program in `galatea-cli`.

#![forbid(unsafe_code)]
#![allow(clippy::cast_precision_loss, reason = "numbers for people and for metrics are doubles")]

pub mod background_tuning;
mod cancellation;
mod chat_input;
pub mod chunks;
mod comparison;
mod device_list;
pub mod devices;
pub mod disabled;
mod encoder;
mod engine;
mod error;
pub mod files;
pub mod gpus;
pub mod host;
mod kernel_search;
pub mod kernel_tuning;
mod llm;
pub mod memory_limit;
mod model;
pub mod models;
mod operation;
pub mod placement_file;
pub mod power;
pub mod profile;
mod server;
pub mod tuning;
mod wattmeter;

pub use cancellation::AnswerCancellation;
pub use chat_input::{ChatInput, ChatMessage};
pub use comparison::{ComparisonLimits, ModelComparison};
pub use device_list::{DeviceClass, DeviceDescription};
pub use encoder::Encoder;
pub use engine::Engine;
pub use error::{Error, ErrorKind};
pub use kernel_search::{KernelChoice, KernelSearch, TunedKernel};
pub use kernel_tuning::KernelTuningOptions;
pub use llm::{AnswerStream, Llm};
pub use model::{Model, ModelOptions, ModelRuns, usual_cache, usual_level};
pub use operation::{ConvolutionSettings, GemmSettings, OperationSettings, PreparedOperation};
pub use server::{RepositoryOptions, Server};

pub use galatea_llm::chat::{AnswerMessage, AnswerPiece, ChatOptions, GenerationSettings};
pub use galatea_llm::engine::TokenUsage;
pub use galatea_llm::sampling::SamplingParameters;
pub use galatea_runtime::tune::StrategyKind;
pub use galatea_runtime::{IoInfo, OptimiseLevel, Precision};
pub use galatea_serving as serving;
pub use galatea_serving::backend::llm::EngineArguments;
pub use galatea_tensor::{DataType, Tensor};
