//! A server inside a program that is not asynchronous itself.

use std::time::Duration;

use galatea::serving::ShutdownReport;
use galatea::{Engine, RepositoryOptions, Server};
use tokio::runtime::Runtime;

use crate::options::ServerOptions;
use crate::server::{FrontEndAddresses, RunningServer};

/// A server of model repositories with open front ends, whose threads are its own.
#[derive(Debug)]
pub struct HostedServer {
    models: Server,
    running: RunningServer,
    runtime: Runtime,
}

impl HostedServer {
    /// Loads the models and opens the front ends that the options ask for.
    ///
    /// # Errors
    /// Fails as [`Server::start`] and [`RunningServer::start`] do.
    pub fn start(
        engine: &Engine,
        repositories: RepositoryOptions,
        options: &ServerOptions,
    ) -> Result<Self, galatea::Error> {
        let failed = |error: String| galatea::Error::new(galatea::ErrorKind::Server, error);
        options.check().map_err(failed)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|error| failed(format!("no threads: {error}")))?;
        let models = Server::start(engine, repositories)?;
        let core = models.core().clone();
        let entered = runtime.enter();
        let running = RunningServer::start(core, engine.clone(), options);
        drop(entered);
        match running {
            Ok(running) => Ok(Self { models, running, runtime }),
            Err(error) => {
                models.stop(Duration::ZERO);
                Err(failed(error))
            }
        }
    }

    /// Returns the models behind the front ends.
    #[must_use]
    pub fn models(&self) -> &Server {
        &self.models
    }

    /// Returns the addresses of the front ends.
    #[must_use]
    pub fn addresses(&self) -> FrontEndAddresses {
        self.running.addresses()
    }

    /// Closes the front ends, lets requests under way finish for so long, and stops.
    pub fn stop(self, timeout: Duration) -> ShutdownReport {
        let Self { models, running, runtime } = self;
        let report = runtime.block_on(running.stop(timeout));
        drop(models);
        // A front end that somebody outside keeps busy must not hold the program.
        runtime.shutdown_timeout(Duration::from_secs(1));
        report
    }
}
