//! Runs an ONNX model on made-up inputs and prints its time, and which operators take how much.
//!
//! `time_model MODEL [--batch N] [--length N] [--threads N] [--provider NAME] [--seconds S]
//! [--precision fp32|bf16|fp16] [--rows N] [--dump FILE]`: symbols named `batch` get the batch, all others the length; `--rows`
//! is how many single steps to list; `--dump` writes the raw bytes of the first output;
//! `--plans N` makes N plans for growing lengths and runs nothing.

#![allow(clippy::print_stdout, reason = "a command-line program")]

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use galatea_graph::Dim;
use galatea_runtime::{IoInfo, ProfileRow, Run, RuntimeError, Session, SessionOptions};
use galatea_tensor::{DataType, OrderedMap, Tensor};

struct Arguments(Vec<String>);

impl Arguments {
    fn text(&self, name: &str) -> Option<&str> {
        let at = self.0.iter().position(|word| word == name)?;
        self.0.get(at + 1).map(String::as_str)
    }

    fn number(&self, name: &str, default: usize) -> Result<usize, Box<dyn Error>> {
        Ok(self.text(name).map(str::parse).transpose()?.unwrap_or(default))
    }
}

/// Values that need no seed: other programs can make the same.
fn made_up(info: &IoInfo, batch: usize, length: usize) -> Result<Tensor, Box<dyn Error>> {
    let len = |dim: &Dim| match dim {
        Dim::Known(len) => *len,
        Dim::Symbol(name) if name.contains("batch") => batch,
        _ => length,
    };
    let shape: Vec<usize> = info.dims.iter().map(len).collect();
    let count: usize = shape.iter().product();
    let spread = |at: usize| at * 7919 % 1000;
    Ok(match info.dtype {
        DataType::Int64 => {
            let value = |at: usize| match info.name.as_str() {
                name if name.contains("mask") => 1,
                name if name.contains("type") => 0,
                _ => i64::try_from(spread(at)).unwrap_or(0) + 1,
            };
            Tensor::from_vec(&shape, (0..count).map(value).collect::<Vec<i64>>())?
        }
        DataType::Fp32 => {
            let value = |at: usize| u16::try_from(spread(at)).map_or(0.0, f32::from) / 500.0 - 1.0;
            Tensor::from_vec(&shape, (0..count).map(value).collect::<Vec<f32>>())?
        }
        dtype => Tensor::zeros(dtype, &shape)?,
    })
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn print_profile(rows: &[ProfileRow], most: usize) {
    let total: Duration = rows.iter().map(|row| row.time).sum();
    let mut sums: OrderedMap<(&str, &str), (usize, Duration)> = OrderedMap::new();
    for row in rows {
        let sum = sums.entry((&row.op, &row.kernel)).or_default();
        sum.0 += 1;
        sum.1 += row.time;
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, (_, time))| std::cmp::Reverse(*time));
    println!("{:>9} ms in {} steps", format!("{:.3}", milliseconds(total)), rows.len());
    for ((op, kernel), (count, time)) in sums {
        println!("{:>9.3} ms {count:>5} × {op:<28} {kernel}", milliseconds(time));
    }
    let mut slowest: Vec<&ProfileRow> = rows.iter().collect();
    slowest.sort_by_key(|row| std::cmp::Reverse(row.time));
    for row in slowest.into_iter().take(most) {
        println!("{:>9.3} ms {} {} ({})", milliseconds(row.time), row.op, row.node, row.kernel);
    }
}

type Named = Vec<(String, Tensor)>;

fn print_plans(
    session: &Session,
    all: impl Iterator<Item = Result<Named, Box<dyn Error>>>,
) -> Result<(), Box<dyn Error>> {
    for tensors in all {
        let tensors = tensors?;
        let inputs: Vec<(&str, Tensor)> =
            tensors.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect();
        let before = session.report().plans;
        match session.run_tensors(Run::named(&inputs)) {
            Ok(_) | Err(RuntimeError::MemoryLimit { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let plan = session.report().plans;
        let time = milliseconds(plan.time - before.time);
        let over = plan.arena_bytes as f64 / plan.live_bytes.max(1) as f64 * 100.0 - 100.0;
        let (arena, live) = (plan.arena_bytes, plan.live_bytes);
        println!(
            "planned in {time:.3} ms: arena {arena} bytes, {live} alive at once, {over:.1} % over"
        );
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments(std::env::args().skip(1).collect());
    let model = arguments.0.first().ok_or("give the path of a model")?;
    let (batch, length) = (arguments.number("--batch", 1)?, arguments.number("--length", 128)?);
    let plans = arguments.number("--plans", 0)?;
    let options = SessionOptions {
        // Without memory for it a run ends when it is planned.
        memory_limit_bytes: (plans > 0).then_some(0),
        threads: arguments.number("--threads", 2)?,
        precision: arguments.text("--precision").unwrap_or("fp32").parse()?,
        providers: arguments.text("--provider").map(str::to_owned).into_iter().collect(),
        ..SessionOptions::default()
    };
    let start = Instant::now();
    let graph = galatea_formats::onnx::load(Path::new(model))?;
    let loaded = start.elapsed();
    let session = Session::new(graph, &galatea_providers::all(), &options)?;
    println!(
        "loaded in {:.0} ms, compiled in {:.0} ms, partitions {:?}, {:?}",
        milliseconds(loaded),
        milliseconds(start.elapsed() - loaded),
        session.partition_providers(),
        session.report().memory
    );
    let make = |length: usize| -> Result<Vec<(String, Tensor)>, Box<dyn Error>> {
        let one = |info: &IoInfo| Ok((info.name.clone(), made_up(info, batch, length)?));
        session.inputs().iter().map(one).collect()
    };
    if plans > 0 {
        return print_plans(&session, (length..length + plans).map(make));
    }
    let tensors = make(length)?;
    let inputs: Vec<(&str, Tensor)> =
        tensors.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect();
    let start = Instant::now();
    let outputs = session.run_tensors(Run::named(&inputs))?;
    println!("first run {:.3} ms, {:?}", milliseconds(start.elapsed()), session.report().plans);
    if let (Some(path), Some(output)) = (arguments.text("--dump"), outputs.first()) {
        std::fs::write(path, output.as_bytes()?)?;
    }
    let limit = Duration::from_secs(u64::try_from(arguments.number("--seconds", 3)?)?);
    let (begin, mut times) = (Instant::now(), Vec::new());
    while begin.elapsed() < limit {
        let start = Instant::now();
        session.run_tensors(Run::named(&inputs))?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    if let (Some(least), Some(median)) = (times.first(), times.get(times.len() / 2)) {
        let runs = times.len();
        println!(
            "median {:.3} ms, least {:.3} ms of {runs} runs, arena {} bytes",
            milliseconds(*median),
            milliseconds(*least),
            session.report().memory.arena_bytes
        );
    }
    let rows = session.run(Run::named(&inputs).profiled())?.rows;
    print_profile(&rows, arguments.number("--rows", 10)?);
    Ok(())
}
