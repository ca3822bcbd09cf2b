//! A server of this process that answers questions with what was recorded.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What it was asked: path and query, decoded.
pub(crate) type Asked = Arc<Mutex<Vec<String>>>;

/// Serves until the test ends; `answer` gets the path with its query and returns a status and a body.
pub(crate) fn serve(answer: impl Fn(&str) -> (u16, String) + Send + 'static) -> (String, Asked) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let asked = Asked::default();
    let told = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = handle(stream, &answer, &told);
        }
    });
    (url, asked)
}

fn handle(mut stream: TcpStream, answer: &impl Fn(&str) -> (u16, String), asked: &Asked) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut head = first.clone();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        head.push_str(&line);
    }
    let path = decode(first.split(' ').nth(1).unwrap_or_default());
    let token = head.lines().find(|line| line.to_ascii_lowercase().starts_with("authorization:")).unwrap_or_default();
    asked.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(format!("{path} {token}"));
    let (status, body) = answer(&path);
    write!(stream, "HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

fn decode(text: &str) -> String {
    let mut out = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let hex = (bytes[at] == b'%').then(|| text.get(at + 1..at + 3)).flatten();
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(if bytes[at] == b'+' { b' ' } else { bytes[at] });
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
