//! Measures the time of models that are read from a file: the first run with nothing in memory, and runs whose
//! weights exceed the device's limit. Prints a line of JSON for each, with and without reading ahead.
//!
//! `streaming FILE [LAYERS] [WIDTH] [PERCENT] [DEVICE]`: the file is created, has `LAYERS` matrices of `WIDTH`
//! × `WIDTH` FP32, and is removed; the device may hold `PERCENT` of them.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a program for people who measure"
)]

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use galatea_gpu::{GpuDevice, GpuProvider, PoolConfig};
use galatea_graph::{Attributes, Dim, Fact, Graph};
use galatea_runtime::{ExecutionProvider, Run, Session, SessionOptions};
use galatea_tensor::{DataType, MappedFile, Tensor};

const RUNS: u32 = 4;

struct StreamedModel {
    path: PathBuf,
    layers: usize,
    width: usize,
    /// The file, once it is written.
    mapped: Option<Arc<MappedFile>>,
}

impl StreamedModel {
    fn layer_bytes(&self) -> usize {
        self.width * self.width * 4
    }

    fn write(&mut self) {
        let mut file = File::create(&self.path).expect("a file");
        let mut state = 1_u32;
        for _ in 0..self.layers {
            let mut next = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                ((state >> 8) as f32 / (1 << 24) as f32 - 0.5) / self.width as f32
            };
            let bytes = (0..self.width * self.width).flat_map(|_| next().to_le_bytes());
            file.write_all(&bytes.collect::<Vec<u8>>()).expect("room for the file");
        }
        file.sync_all().expect("a disk");
        self.mapped = Some(Arc::new(MappedFile::open(&self.path).unwrap()));
    }

    /// Makes the system forget what it has of the file in memory.
    fn forget(&self) {
        #[cfg(target_os = "linux")]
        {
            // What is mapped does not go.
            self.mapped.as_ref().expect("a file").release();
            let file = File::open(&self.path).unwrap();
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        }
    }

    fn graph(&self, layers: usize) -> Graph {
        let file = self.mapped.as_ref().expect("a file");
        let mut graph = Graph::new("layers");
        graph.opsets.insert(String::new(), 21);
        let mut x = graph.value_named("x");
        let dims = vec![Dim::symbol("rows"), Dim::Known(self.width)];
        graph.value_mut(x).declared = Some(Fact::new(DataType::Fp32, dims));
        graph.inputs.push(x);
        for layer in 0..layers {
            let (shape, at) = ([self.width, self.width], layer * self.layer_bytes());
            let file = Arc::clone(file);
            let weights = Tensor::from_allocation(DataType::Fp32, &shape, file, at).unwrap();
            let weights = graph.add_constant("w", weights);
            let product = graph.fresh_value("product");
            let inputs = vec![Some(x), Some(weights)];
            let none = Attributes::new();
            graph.add_node("", "MatMul", "", &none, inputs, vec![Some(product)]).unwrap();
            x = product;
        }
        graph.outputs.push(x);
        graph
    }

    fn session(&self, device: &Arc<GpuDevice>, layers: usize) -> Session {
        let provider: Arc<dyn ExecutionProvider> = Arc::new(GpuProvider::on(Arc::clone(device)));
        Session::new(self.graph(layers), &[provider], &SessionOptions::default()).unwrap()
    }

    fn run(&self, session: &Session) -> f64 {
        let x = Tensor::from_vec(&[1, self.width], vec![1.0_f32; self.width]).unwrap();
        let start = Instant::now();
        session.run_tensors(Run::named(&[("x", x)])).unwrap();
        start.elapsed().as_secs_f64() * 1e3
    }

    /// The first run with nothing in memory; kernels are compiled before.
    fn cold(&self, device: &Arc<GpuDevice>) -> f64 {
        self.run(&self.session(device, 1));
        self.forget();
        let start = Instant::now();
        self.run(&self.session(device, self.layers));
        start.elapsed().as_secs_f64() * 1e3
    }

    fn repeated(&self, device: &Arc<GpuDevice>) -> f64 {
        let session = self.session(device, self.layers);
        self.run(&session);
        self.run(&session);
        let mean = (0..RUNS).map(|_| self.run(&session)).sum::<f64>() / f64::from(RUNS);
        if device.streams().streamed_bytes > 0 {
            println!("{{\"streams\":\"{:?}\"}}", device.streams());
        }
        mean
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: usize| {
        arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let path = Path::new(arguments.first().expect("streaming FILE")).to_path_buf();
    let mut model =
        StreamedModel { path, layers: number(1, 24), width: number(2, 2048), mapped: None };
    let (percent, device) = (number(3, 50), number(4, 0));
    model.write();
    let bytes = model.layers * model.layer_bytes();
    let budget = (bytes / 100 * percent) as u64;
    let open = |config: PoolConfig| GpuDevice::open_with(device, &config).expect("a device");
    let whole = open(PoolConfig::default());
    println!(
        "{{\"device\":\"{}\",\"weights_bytes\":{bytes},\"budget_bytes\":{budget}}}",
        whole.capabilities().name
    );
    println!("{{\"whole_ms\":{:.3}}}", model.repeated(&whole));
    let ahead = || PoolConfig::default();
    let behind = || PoolConfig::default().reading_ahead(0);
    let (with, without) = (model.cold(&open(ahead())), model.cold(&open(behind())));
    println!(
        "{{\"cold_ms\":{with:.3},\"cold_without_ms\":{without:.3},\"times\":{:.2}}}",
        without / with
    );
    let (with, without) = (open(ahead().within(budget)), open(behind().within(budget)));
    let (with_ms, without_ms) = (model.repeated(&with), model.repeated(&without));
    println!(
        "{{\"beyond_ms\":{with_ms:.3},\"beyond_without_ms\":{without_ms:.3},\"times\":{:.2}}}",
        without_ms / with_ms
    );
    // The same with nothing of the file in memory before each run.
    let each = |device: &Arc<GpuDevice>| {
        let session = model.session(device, model.layers);
        model.run(&session);
        let runs = (0..RUNS).map(|_| {
            model.forget();
            model.run(&session)
        });
        runs.sum::<f64>() / f64::from(RUNS)
    };
    let (with_ms, without_ms) = (each(&with), each(&without));
    println!(
        "{{\"disk_ms\":{with_ms:.3},\"disk_without_ms\":{without_ms:.3},\"times\":{:.2}}}",
        without_ms / with_ms
    );
    std::fs::remove_file(&model.path).unwrap();
}
