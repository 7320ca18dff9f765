//! TLS for the front ends: certificates from PEM files, and clients that must have one.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, ServerConfig, SignatureScheme};
use tokio_rustls::TlsAcceptor;

/// Protocol inside TLS, as the client's hello names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsApplication {
    /// HTTP/1.1
    Http,
    /// HTTP/2
    Grpc,
}

impl TlsApplication {
    fn protocols(self) -> Vec<Vec<u8>> {
        match self {
            Self::Http => vec![b"http/1.1".to_vec()],
            Self::Grpc => vec![b"h2".to_vec()],
        }
    }
}

/// Files of an endpoint's TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsOptions {
    /// Certificate of the server, and those that vouch for it.
    pub certificate: TlsFile,
    /// Private key of the certificate.
    pub key: TlsFile,
    /// Certificates that vouch for clients; none if clients need none.
    pub client_roots: Option<TlsFile>,
}

impl TlsOptions {
    /// Makes the TLS of an endpoint.
    ///
    /// # Errors
    /// Returns a sentence that names the file: unreadable, incomplete, or not fitting the others.
    pub fn server_config(&self, application: TlsApplication) -> Result<Arc<ServerConfig>, String> {
        check_processor()?;
        let Self { certificate, key, client_roots } = self;
        let provider = Arc::new(rustls_graviola::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("TLS cannot be set up: {error}"))?;
        let builder = match client_roots {
            Some(roots) => builder.with_client_cert_verifier(verifier(roots, provider)?),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder
            .with_single_cert(certificate.certificates()?, key.private_key()?)
            .map_err(|error| format!("{certificate} and {key} cannot be used together: {error}"))?;
        config.alpn_protocols = application.protocols();
        Ok(Arc::new(config))
    }
}

/// Makes what accepts connections with the TLS of an endpoint.
///
/// # Errors
/// Fails as [`TlsOptions::server_config`] does.
pub(crate) fn acceptor(
    options: &TlsOptions,
    application: TlsApplication,
) -> Result<TlsAcceptor, String> {
    options.server_config(application).map(TlsAcceptor::from)
}

fn verifier(
    root: &TlsFile,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn rustls::server::danger::ClientCertVerifier>, String> {
    let mut store = RootCertStore::empty();
    for certificate in root.certificates()? {
        store.add(certificate).map_err(|error| root.unusable(&error))?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(store), provider)
        .build()
        .map_err(|error| root.unusable(&error))
}

/// Servers that a client of this program trusts.
#[derive(Debug, Clone, Copy)]
pub enum ClientTrust<'a> {
    /// Servers whose certificate is in the file, or is signed by one in it.
    File(&'a str),
    /// Servers whose certificates the system's file vouches for, if it has one.
    System,
    /// Every server: its identity is not checked.
    Anybody,
}

/// Files in which systems keep root certificates: macOS and BSD, Debian, Fedora.
const SYSTEM: [&str; 3] =
    ["/etc/ssl/cert.pem", "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];

/// Makes the TLS configuration of this program's clients.
///
/// # Errors
/// Fails for a file that cannot be used, by the flag `--ca-file`, and for a system without one.
pub fn client(trust: ClientTrust<'_>) -> Result<Arc<ClientConfig>, String> {
    check_processor()?;
    let provider = Arc::new(rustls_graviola::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up: {error}"))?;
    let file = |path: &str| TlsFile { path: path.to_owned(), flag: "ca-file" };
    let roots = match trust {
        ClientTrust::Anybody => {
            let anybody = Arc::new(AnyCertificate(provider));
            let builder = builder.dangerous().with_custom_certificate_verifier(anybody);
            return Ok(Arc::new(builder.with_no_client_auth()));
        }
        ClientTrust::File(path) => file(path),
        ClientTrust::System => {
            let found = SYSTEM.into_iter().find(|path| Path::new(path).is_file());
            file(found.ok_or("this system has no file of certificates: --ca-file is missing")?)
        }
    };
    let mut store = RootCertStore::empty();
    let (added, _) = store.add_parsable_certificates(roots.certificates()?);
    if added == 0 {
        return Err(roots.unusable(&"none of its certificates can sign"));
    }
    Ok(Arc::new(builder.with_root_certificates(store).with_no_client_auth()))
}

/// Believes every certificate, but not that it is somebody else's.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _others: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// A file that a flag names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFile {
    /// Name of the flag, for messages.
    pub flag: &'static str,
    /// Path of the file.
    pub path: String,
}

impl TlsFile {
    fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, String> {
        let certificates = CertificateDer::pem_file_iter(Path::new(&self.path))
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| self.unusable(&error))?;
        if certificates.is_empty() {
            return Err(self.unusable(&"it holds no certificate in PEM form"));
        }
        Ok(certificates)
    }

    fn private_key(&self) -> Result<PrivateKeyDer<'static>, String> {
        PrivateKeyDer::from_pem_file(Path::new(&self.path)).map_err(|error| self.unusable(&error))
    }

    fn unusable(&self, why: &dyn fmt::Display) -> String {
        format!("{self} cannot be used: {why}")
    }
}

impl fmt::Display for TlsFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--{}={}", self.flag, self.path)
    }
}

/// The cryptography is written for processors with instructions for it and has no other form.
fn check_processor() -> Result<(), String> {
    #[cfg(target_arch = "x86_64")]
    let (has, needs) = (
        std::arch::is_x86_feature_detected!("aes")
            && std::arch::is_x86_feature_detected!("ssse3")
            && std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("adx")
            && std::arch::is_x86_feature_detected!("bmi2")
            && std::arch::is_x86_feature_detected!("pclmulqdq"),
        "AES, SSSE3, AVX2, ADX, BMI2 and PCLMULQDQ",
    );
    #[cfg(target_arch = "aarch64")]
    let (has, needs) = (
        std::arch::is_aarch64_feature_detected!("neon")
            && std::arch::is_aarch64_feature_detected!("aes")
            && std::arch::is_aarch64_feature_detected!("pmull")
            && std::arch::is_aarch64_feature_detected!("sha2"),
        "NEON, AES, PMULL and SHA2",
    );
    if has { Ok(()) } else { Err(format!("TLS needs a processor with {needs}")) }
}
