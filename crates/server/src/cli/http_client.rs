//! A small HTTP/1.1 client on one connection, for the program's own requests.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The most bytes of a body.
const MOST_BYTES: usize = 256 << 20;

/// A connection that stays open.
#[derive(Debug)]
pub(super) struct Client {
    stream: BufReader<TcpStream>,
    host: String,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    /// Status code.
    pub(super) status: u16,
    /// Bytes of JSON before binary tensors, if the answer says so.
    pub(super) json_bytes: Option<usize>,
    /// Body.
    pub(super) body: Vec<u8>,
}

impl Client {
    /// Connects to an address.
    ///
    /// # Errors
    /// When nobody listens there.
    pub(super) fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream), host: address.to_string() })
    }

    /// As [`connect`](Self::connect), of a server that may be far or gone: nothing takes longer than a time.
    ///
    /// # Errors
    /// As there.
    pub(super) fn connect_within(address: SocketAddr, time: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, time)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(time))?;
        stream.set_write_timeout(Some(time))?;
        Ok(Self { stream: BufReader::new(stream), host: address.to_string() })
    }

    /// Gets what lies at a path.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    pub(super) fn get(&mut self, path: &str) -> io::Result<Answer> {
        let head = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.host);
        self.stream.get_mut().write_all(head.as_bytes())?;
        self.read()
    }

    /// Posts a body. `json_bytes`: how much of it is JSON, where binary tensors follow.
    ///
    /// # Errors
    /// When the connection breaks or the answer is no HTTP.
    pub(super) fn post(
        &mut self,
        path: &str,
        json_bytes: Option<usize>,
        body: &[u8],
    ) -> io::Result<Answer> {
        let mut head = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n",
            self.host,
            body.len()
        );
        if let Some(length) = json_bytes {
            head.push_str(&format!("Inference-Header-Content-Length: {length}\r\n"));
        }
        head.push_str("\r\n");
        let stream = self.stream.get_mut();
        stream.write_all(head.as_bytes())?;
        stream.write_all(body)?;
        self.read()
    }

    /// A line of a head, of a length that heads have.
    fn line(&mut self, line: &mut String) -> io::Result<usize> {
        self.stream.by_ref().take(64 << 10).read_line(line)
    }

    fn read(&mut self) -> io::Result<Answer> {
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
        if length > MOST_BYTES {
            return Err(broken());
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok(Answer { status, json_bytes, body })
    }
}
