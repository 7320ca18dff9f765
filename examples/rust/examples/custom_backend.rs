//! Serves a model whose backend is written here: it turns the numbers of each request round. `custom_backend`.

#![allow(clippy::print_stdout, reason = "a command-line program")]

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use galatea::serving::backend::{
    BackendModel, BatchPayload, InstancePlacement, ModelBackend, ModelFiles, ModelInstance, ModelIo,
};
use galatea::serving::{CoreOptions, ServingError, batch};
use galatea::{Engine, RepositoryOptions, Server, Tensor};
use galatea_examples::ExampleResult;

const CONFIG: &str = r#"
backend: "reversal"
max_batch_size: 8
input { name: "NUMBERS" data_type: TYPE_FP32 dims: 4 }
output { name: "REVERSED" data_type: TYPE_FP32 dims: 4 }
"#;

/// Backend of models that turn numbers round.
#[derive(Debug)]
struct ReversalBackend;

impl ModelBackend for ReversalBackend {
    fn name(&self) -> &str {
        "reversal"
    }

    fn default_model_filename(&self) -> &str {
        ""
    }

    fn load(&self, _files: &ModelFiles) -> Result<Box<dyn BackendModel>, ServingError> {
        Ok(Box::new(Reversal))
    }
}

/// The model, and each of its instances: it has no state.
struct Reversal;

impl BackendModel for Reversal {
    fn io(&self) -> Option<&ModelIo> {
        None
    }

    fn instance(&self, _: &InstancePlacement) -> Result<Box<dyn ModelInstance>, ServingError> {
        Ok(Box::new(Self))
    }
}

impl ModelInstance for Reversal {
    fn execute(&mut self, payload: BatchPayload) {
        // Rows of all requests of the batch come together, and go back to their requests.
        batch::execute(payload, |inputs| {
            let failed = |error: &dyn std::fmt::Display| ServingError::internal(error.to_string());
            let (_, numbers) = inputs.first().ok_or_else(|| failed(&"there is no input"))?;
            let rows = numbers.to_vec::<f32>().map_err(|error| failed(&error))?;
            let turned: Vec<f32> =
                rows.chunks(4).flat_map(|row| row.iter().rev().copied()).collect();
            let turned = Tensor::from_vec(numbers.shape(), turned);
            Ok(vec![("REVERSED".to_owned(), turned.map_err(|error| failed(&error))?)])
        });
    }
}

fn main() -> ExampleResult<()> {
    let repository = std::env::temp_dir().join("galatea-custom-backend");
    fs::create_dir_all(repository.join("reversal/1"))?;
    fs::write(repository.join("reversal/config.pbtxt"), CONFIG)?;
    let core = CoreOptions { repositories: vec![repository], ..CoreOptions::default() };
    let backends: Vec<Arc<dyn ModelBackend>> = vec![Arc::new(ReversalBackend)];
    let options = RepositoryOptions { core, backends, ..RepositoryOptions::default() };
    let server = Server::start(&Engine::new(), options)?;
    let numbers = Tensor::from_vec(&[1, 4], vec![1.0_f32, 2.0, 3.0, 4.0])?;
    let outputs = server.infer("reversal", &[("NUMBERS", numbers)])?;
    println!("{} = {:?}", outputs[0].0, outputs[0].1.to_vec::<f32>()?);
    server.stop(Duration::from_secs(10));
    Ok(())
}
