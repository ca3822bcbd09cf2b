//! As much HTTP as two agents need: one request per connection, answers with a length or in chunks.

use std::io::{BufRead, BufReader, Read, Result, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

/// The longest request body.
const MOST: u64 = 16 << 20;

/// A request.
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) body: Vec<u8>,
}

impl Request {
    pub(super) fn read(stream: &TcpStream) -> Result<Request> {
        let mut reader = BufReader::new(stream);
        let first = line(&mut reader)?;
        let mut words = first.split(' ').map(str::to_owned);
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let (mut length, mut chunked) = (0, false);
        loop {
            let header = line(&mut reader)?.to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            chunked |= header.starts_with("transfer-encoding:") && header.contains("chunked");
        }
        let body = if chunked { chunks(&mut reader)? } else { bytes(&mut reader, length)? };
        Ok(Request { method, path, body })
    }
}

fn line(reader: &mut impl BufRead) -> Result<String> {
    let mut line = String::new();
    reader.take(64 << 10).read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}

fn bytes(reader: &mut impl BufRead, length: u64) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    reader.take(length.min(MOST)).read_to_end(&mut body)?;
    Ok(body)
}

fn chunks(reader: &mut impl BufRead) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let length = u64::from_str_radix(line(reader)?.split(';').next().unwrap_or_default(), 16).unwrap_or(0);
        if length == 0 || body.len() as u64 > MOST {
            return Ok(body);
        }
        body.extend(bytes(reader, length)?);
        line(reader)?;
    }
}

/// Answers with an error in the shape of the provider's.
pub(super) fn error(stream: &TcpStream, status: u16, message: &str, code: Option<&str>) -> Result<()> {
    error_body(stream, status, &json!({"error": {"message": message, "type": code, "param": null, "code": code}}), "")
}

/// Answers with this body; `headers` are whole lines.
pub(super) fn error_body(mut stream: &TcpStream, status: u16, body: &Value, headers: &str) -> Result<()> {
    let reason = match status {
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        429 => "Too Many Requests",
        _ => "Internal Server Error",
    };
    let body = body.to_string();
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status} {reason}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
         connection: close\r\n{headers}\r\n{body}"
    )
}

/// True while the client is there.
pub(super) fn is_open(stream: &TcpStream) -> bool {
    let _ = stream.set_read_timeout(Some(Duration::from_millis(1)));
    match stream.peek(&mut [0]) {
        Ok(0) => false,
        Ok(_) => true,
        Err(error) => matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut),
    }
}

/// A stream of server-sent events. One that is dropped without [`Events::finish`] is a broken answer.
pub(super) struct Events<'a>(&'a TcpStream);

impl Events<'_> {
    pub(super) fn begin(mut stream: &TcpStream) -> Result<Events<'_>> {
        stream.write_all(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n\
              transfer-encoding: chunked\r\nconnection: close\r\n\r\n",
        )?;
        Ok(Events(stream))
    }

    /// One event; `name` where the dialect names them.
    pub(super) fn send(&mut self, name: Option<&str>, data: &str) -> Result<()> {
        let name = name.map_or_else(String::new, |name| format!("event: {name}\n"));
        let event = format!("{name}data: {data}\n\n");
        write!(self.0, "{:x}\r\n{event}\r\n", event.len())?;
        self.0.flush()
    }

    pub(super) fn finish(mut self) -> Result<()> {
        self.0.write_all(b"0\r\n\r\n")
    }
}
