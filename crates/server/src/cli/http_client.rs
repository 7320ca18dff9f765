//! A small HTTP/1.1 client on one connection, for the program's own requests.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

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

    fn read(&mut self) -> io::Result<Answer> {
        let broken = || io::Error::new(io::ErrorKind::InvalidData, "the answer is no HTTP");
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let status =
            line.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or_else(broken)?;
        let mut length = 0;
        let mut json_bytes = None;
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().map_err(|_| broken())?;
            } else if name.eq_ignore_ascii_case("inference-header-content-length") {
                json_bytes = value.trim().parse().ok();
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok(Answer { status, json_bytes, body })
    }
}
