//! A small HTTP/1.1 client on one connection, for the program's own requests.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

/// The most bytes of a body.
const MAX_BYTES: usize = 256 << 20;

/// Address of a server, and the TLS and headers that it demands.
#[derive(Debug, Clone)]
pub(super) struct ServerAddress {
    /// Its address.
    pub(super) address: SocketAddr,
    /// TLS configuration and the expected server name, if the server speaks TLS.
    pub(super) tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    /// Names and values of more headers.
    pub(super) headers: Vec<(String, String)>,
}

/// Transport of the bytes: plain TCP or TLS.
#[derive(Debug)]
enum ClientStream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Read for ClientStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for ClientStream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(buffer),
            Self::Tls(stream) => stream.write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

/// A connection that stays open.
#[derive(Debug)]
pub(super) struct HttpClient {
    stream: BufReader<ClientStream>,
    /// Lines of every head: the host and what the front end wants besides.
    lines: String,
}

/// An answer.
#[derive(Debug)]
pub(super) struct HttpAnswer {
    /// Status code.
    pub(super) status: u16,
    /// Bytes of JSON before binary tensors, if the answer says so.
    pub(super) json_bytes: Option<usize>,
    /// Body.
    pub(super) body: Vec<u8>,
}

impl HttpClient {
    /// Connects to an address.
    ///
    /// # Errors
    /// Fails when nobody listens there.
    pub(super) fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let lines = format!("Host: {address}\r\n");
        Ok(Self { stream: BufReader::new(ClientStream::Plain(stream)), lines })
    }

    /// Connects to a server that may be far or gone: nothing takes longer than a time.
    ///
    /// # Errors
    /// Fails when nobody listens there. Errors of TLS are returned by the first request.
    pub(super) fn connect_within(door: &ServerAddress, time: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&door.address, time)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(time))?;
        stream.set_write_timeout(Some(time))?;
        let mut lines = format!("Host: {}\r\n", door.address);
        for (name, value) in &door.headers {
            lines.push_str(&format!("{name}: {value}\r\n"));
        }
        let stream = match &door.tls {
            None => ClientStream::Plain(stream),
            Some((config, name)) => {
                let client = ClientConnection::new(Arc::clone(config), name.clone());
                let client = client.map_err(io::Error::other)?;
                ClientStream::Tls(Box::new(StreamOwned::new(client, stream)))
            }
        };
        Ok(Self { stream: BufReader::new(stream), lines })
    }

    /// Requests a path with GET.
    ///
    /// # Errors
    /// Fails as [`post`](Self::post) does.
    pub(super) fn get(&mut self, path: &str) -> io::Result<HttpAnswer> {
        let head = format!("GET {path} HTTP/1.1\r\n{}\r\n", self.lines);
        self.stream.get_mut().write_all(head.as_bytes())?;
        self.stream.get_mut().flush()?;
        self.read()
    }

    /// Posts a body. `json_bytes` is the length of its JSON part, where binary tensors follow.
    ///
    /// # Errors
    /// Fails when the connection breaks or the answer is not HTTP.
    pub(super) fn post(
        &mut self,
        path: &str,
        json_bytes: Option<usize>,
        body: &[u8],
    ) -> io::Result<HttpAnswer> {
        let mut head =
            format!("POST {path} HTTP/1.1\r\n{}Content-Length: {}\r\n", self.lines, body.len());
        if let Some(length) = json_bytes {
            head.push_str(&format!("Inference-Header-Content-Length: {length}\r\n"));
        }
        head.push_str("\r\n");
        let stream = self.stream.get_mut();
        stream.write_all(head.as_bytes())?;
        stream.write_all(body)?;
        stream.flush()?;
        self.read()
    }

    /// A line of a head, of a length that heads have.
    fn line(&mut self, line: &mut String) -> io::Result<usize> {
        self.stream.by_ref().take(64 << 10).read_line(line)
    }

    fn read(&mut self) -> io::Result<HttpAnswer> {
        let broken = || io::Error::new(io::ErrorKind::InvalidData, "the answer is no HTTP");
        let mut line = String::new();
        self.line(&mut line)?;
        let status =
            line.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or_else(broken)?;
        let mut length = 0;
        let mut json_bytes = None;
        loop {
            line.clear();
            self.line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().map_err(|_| broken())?;
            } else if name.eq_ignore_ascii_case("inference-header-content-length") {
                json_bytes = value.trim().parse().ok();
            }
        }
        if length > MAX_BYTES {
            return Err(broken());
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok(HttpAnswer { status, json_bytes, body })
    }
}
