//! A small HTTP/1.1 client on one connection, for the program's own requests.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use galatea_server::http::INSTANCE_HEADER;
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
    /// Run of a Galatea server that answers, where it tells.
    pub(super) instance: Option<String>,
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

    /// Waits for answers as long as they take from now on. Shutting the returned handle down ends the connection.
    ///
    /// # Errors
    /// Fails when the connection is gone.
    pub(super) fn patient(&self) -> io::Result<TcpStream> {
        let stream = match self.stream.get_ref() {
            ClientStream::Plain(stream) => stream,
            ClientStream::Tls(stream) => stream.get_ref(),
        };
        stream.set_read_timeout(None)?;
        stream.try_clone()
    }

    /// Posts a body, and reads the answer as it comes.
    ///
    /// # Errors
    /// Fails when the connection breaks or the answer is not HTTP.
    pub(super) fn stream(mut self, path: &str, body: &[u8]) -> io::Result<HttpAnswerStream> {
        let head =
            format!("POST {path} HTTP/1.1\r\n{}Content-Length: {}\r\n\r\n", self.lines, body.len());
        let stream = self.stream.get_mut();
        stream.write_all(head.as_bytes())?;
        stream.write_all(body)?;
        stream.flush()?;
        let head = self.read_head()?;
        let body = BufReader::new(HttpBody { stream: self.stream, framing: head.framing });
        Ok(HttpAnswerStream { status: head.status, body })
    }

    /// A line of a head, of a length that heads have.
    fn line(&mut self, line: &mut String) -> io::Result<usize> {
        self.stream.by_ref().take(64 << 10).read_line(line)
    }

    fn read(&mut self) -> io::Result<HttpAnswer> {
        let HttpAnswerHead { status, json_bytes, instance, framing } = self.read_head()?;
        // A server that ends a short answer by closing it sends no length.
        let length = if let AnswerFraming::Length(length) = framing { length } else { 0 };
        if length > MAX_BYTES {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the answer is too large"));
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok(HttpAnswer { status, json_bytes, instance, body })
    }

    fn read_head(&mut self) -> io::Result<HttpAnswerHead> {
        let broken = || io::Error::new(io::ErrorKind::InvalidData, "the answer is no HTTP");
        let mut line = String::new();
        self.line(&mut line)?;
        let status =
            line.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or_else(broken)?;
        let mut framing = AnswerFraming::Close;
        let mut json_bytes = None;
        let mut instance = None;
        loop {
            line.clear();
            self.line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                framing = AnswerFraming::Length(value.trim().parse().map_err(|_| broken())?);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                framing = AnswerFraming::Chunked { left: 0, begun: false };
            } else if name.eq_ignore_ascii_case("inference-header-content-length") {
                json_bytes = value.trim().parse().ok();
            } else if name.eq_ignore_ascii_case(INSTANCE_HEADER) {
                instance = Some(value.trim().to_owned());
            }
        }
        Ok(HttpAnswerHead { status, json_bytes, instance, framing })
    }
}

/// Head of an answer.
struct HttpAnswerHead {
    status: u16,
    json_bytes: Option<usize>,
    instance: Option<String>,
    framing: AnswerFraming,
}

/// End of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AnswerFraming {
    /// After so many bytes.
    Length(usize),
    /// With an empty chunk; `left` bytes of the present one are to come.
    Chunked { left: usize, begun: bool },
    /// End of the connection.
    Close,
}

/// An answer that is read as it comes.
#[derive(Debug)]
pub(super) struct HttpAnswerStream {
    /// Status code.
    pub(super) status: u16,
    body: BufReader<HttpBody>,
}

impl Read for HttpAnswerStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.body.read(buffer)
    }
}

impl BufRead for HttpAnswerStream {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.body.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.body.consume(count);
    }
}

/// A body without its framing.
#[derive(Debug)]
struct HttpBody {
    stream: BufReader<ClientStream>,
    framing: AnswerFraming,
}

impl HttpBody {
    /// Reads the length of the next chunk.
    fn next_chunk(&mut self, begun: bool) -> io::Result<usize> {
        let broken = || io::Error::new(io::ErrorKind::InvalidData, "a chunk has no length");
        let mut line = String::new();
        if begun {
            // The end of the chunk before.
            self.stream.by_ref().take(2).read_line(&mut line)?;
            line.clear();
        }
        self.stream.by_ref().take(4096).read_line(&mut line)?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        usize::from_str_radix(digits, 16).map_err(|_| broken())
    }
}

impl Read for HttpBody {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = match self.framing {
            AnswerFraming::Close => buffer.len(),
            AnswerFraming::Length(left) => left,
            AnswerFraming::Chunked { left: 0, begun } => {
                let left = self.next_chunk(begun)?;
                // An empty chunk is the last one.
                self.framing = match left {
                    0 => AnswerFraming::Length(0),
                    left => AnswerFraming::Chunked { left, begun: true },
                };
                left
            }
            AnswerFraming::Chunked { left, .. } => left,
        };
        let room = room.min(buffer.len());
        let read = self.stream.read(buffer.get_mut(..room).unwrap_or_default())?;
        match &mut self.framing {
            AnswerFraming::Close => {}
            AnswerFraming::Length(left) | AnswerFraming::Chunked { left, .. } => {
                *left = left.saturating_sub(read);
                if read == 0 && room > 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
        }
        Ok(read)
    }
}
