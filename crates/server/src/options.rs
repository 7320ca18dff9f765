//! Settings of a server, typed: what its front ends listen on, whom they answer, and what is observed.

use std::sync::Arc;
use std::time::Duration;

use galatea_tensor::OrderedMap;

use crate::access::AccessControl;
use crate::app::{ClientLimits, FrontEndRules};
use crate::browser::BrowserRules;
use crate::grpc::GrpcSettings;
use crate::http::vertex_ai;
use crate::listen::{ListenPlace, PortSharing};
use crate::metrics::MetricsConfig;
use crate::overrides::OverrideRules;
use crate::sagemaker::SageMaker;
use crate::tls::{TlsApplication, TlsOptions, acceptor};
use crate::trace::TraceConfig;

/// Settings of a server. Front ends that are `None` stay closed; by default all of them are.
#[derive(Debug, Clone, Default)]
pub struct ServerOptions {
    /// HTTP: KServe's protocol, extensions of Triton and of OpenAI.
    pub http: Option<ListenOptions>,
    /// gRPC.
    pub grpc: Option<ListenOptions>,
    /// OpenAI's endpoints alone.
    pub openai: Option<ListenOptions>,
    /// The page of metrics.
    pub metrics: Option<ListenOptions>,
    /// SageMaker.
    pub sagemaker: Option<ListenOptions>,
    /// Vertex AI.
    pub vertex_ai: Option<ListenOptions>,
    /// Model of Vertex AI's predictions; the only one, if empty.
    pub vertex_ai_model: String,
    /// Variables that clouds set, by name.
    pub cloud_variables: OrderedMap<String, String>,
    /// Limits on what clients send.
    pub limits: ClientLimits,
    /// Rules of the HTTP front ends.
    pub http_rules: FrontEndRules,
    /// Rules of the gRPC front end.
    pub grpc_rules: FrontEndRules,
    /// Connections and answers of gRPC.
    pub grpc_settings: GrpcSettings,
    /// Browser pages that may speak to the server.
    pub browser_rules: BrowserRules,
    /// Configurations and files that loads of models may bring along.
    pub override_rules: OverrideRules,
    /// Keys that open the server; none where it is open to everybody.
    pub access: Option<Arc<AccessControl>>,
    /// True if clients may register shared memory.
    pub client_shared_memory: bool,
    /// Families of metrics.
    pub families: MetricsConfig,
    /// Shortest time between two looks at the machine; none if metrics do not tell of it.
    pub host_metrics: Option<Duration>,
    /// Shortest time between two looks at GPUs; none if metrics do not tell of them.
    pub gpu_metrics: Option<Duration>,
    /// Traces of requests.
    pub trace: TraceConfig,
}

/// Address of a front end, and the TLS that it speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenOptions {
    /// Address.
    pub place: ListenPlace,
    /// Permission for other processes to listen there too.
    pub sharing: PortSharing,
    /// TLS; none for plain connections.
    pub tls: Option<TlsOptions>,
}

impl ListenOptions {
    /// A port of the loopback interface without TLS; 0 stands for any free one.
    #[must_use]
    pub fn loopback(port: u16) -> Self {
        let place = ListenPlace::new("127.0.0.1", port);
        Self { place, sharing: PortSharing::Alone, tls: None }
    }
}

impl ServerOptions {
    /// Returns a variable that clouds set, if it is set.
    #[must_use]
    pub fn cloud_variable(&self, name: &str) -> Option<&str> {
        self.cloud_variables.get(name).map(String::as_str)
    }

    /// Checks what a start would find out only after the models are loaded: files of TLS, and variables of clouds.
    ///
    /// # Errors
    /// Returns a sentence about the first setting that cannot be used.
    pub fn check(&self) -> Result<(), String> {
        SageMaker::of(|name| self.cloud_variable(name))?;
        if self.vertex_ai.is_some() {
            vertex_ai::routes(|name| self.cloud_variable(name))
                .map_err(|why| vertex_ai::refusal(&why))?;
        }
        let grpc = self.grpc.iter().map(|one| (one, TlsApplication::Grpc));
        let others = [&self.http, &self.metrics].into_iter().flatten();
        for (listen, application) in grpc.chain(others.map(|one| (one, TlsApplication::Http))) {
            listen.tls.as_ref().map(|tls| acceptor(tls, application)).transpose()?;
        }
        Ok(())
    }
}
