//! Serves a model repository in this process, and asks it from several threads: `serve [REPOSITORY]`.

#![allow(clippy::print_stdout, reason = "a command-line program")]

use std::time::Duration;

use galatea::serving::{ControlMode, CoreOptions};
use galatea::{Engine, RepositoryOptions, Server, Tensor};
use galatea_examples::{ExampleResult, arguments_or};

fn main() -> ExampleResult<()> {
    let arguments = arguments_or(&["examples/models"]);
    let core = CoreOptions {
        repositories: vec![arguments[0].clone().into()],
        control_mode: ControlMode::Explicit { load: vec!["simple".to_owned()] },
        ..CoreOptions::default()
    };
    let options = RepositoryOptions { core, ..RepositoryOptions::default() };
    let server = Server::start(&Engine::new(), options)?;
    // Requests that come at the same time share a batch.
    std::thread::scope(|scope| {
        for factor in 1..4 {
            let server = &server;
            scope.spawn(move || match ask(server, factor) {
                Ok(sums) => println!("{factor}: {sums:?}"),
                Err(error) => println!("{factor}: {error}"),
            });
        }
    });
    let report = server.stop(Duration::from_secs(30));
    println!("complete: {}", report.complete);
    Ok(())
}

/// Adds multiples of a number to the numbers from 0 to 15.
fn ask(server: &Server, factor: i32) -> ExampleResult<Vec<i32>> {
    let numbers = |factor: i32| {
        Tensor::from_vec(&[1, 16], (0..16).map(|number| number * factor).collect::<Vec<i32>>())
    };
    let inputs = [("INPUT0", numbers(factor)?), ("INPUT1", numbers(1)?)];
    let outputs = server.infer("simple", &inputs)?;
    Ok(outputs[0].1.to_vec()?)
}
