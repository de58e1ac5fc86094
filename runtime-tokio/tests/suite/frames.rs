//! A server that speaks HTTP/2 frame by frame, and says whatever it is told.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use cloudcoil_tokio::Config;
use cloudcoil_tokio::core::config::{Pem, Secret};
use tokio::io::{self, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::tls::{authority, issued, server_config};

/// A request that has come to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Which connection it came over, from 0.
    pub(crate) connection: usize,
    pub(crate) stream: u32,
    pub(crate) body: String,
}

/// What the server says next, and whether it closes the connection then.
#[derive(Default)]
pub(crate) struct Said {
    frames: Vec<u8>,
    closes: bool,
}

impl Said {
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.frames.extend(other.frames);
        self.closes |= other.closes;
        self
    }

    pub(crate) fn and_close(self) -> Self {
        Self { closes: true, ..self }
    }
}

pub(crate) const NO_ERROR: u32 = 0;
pub(crate) const INTERNAL_ERROR: u32 = 2;
pub(crate) const REFUSED_STREAM: u32 = 7;
pub(crate) const CANCEL: u32 = 8;
pub(crate) const ENHANCE_YOUR_CALM: u32 = 11;

/// What a server that is about to close says first: it still takes up all that is on its way.
pub(crate) const ANY_STREAM: u32 = (1 << 31) - 1;

pub(crate) fn nothing() -> Said {
    Said::default()
}

/// 200 with that object, whole.
pub(crate) fn answer(stream: u32, object: &str) -> Said {
    head(stream, &[]).and(data(stream, object, true))
}

/// 200 with these headers besides the type of the content.
pub(crate) fn head(stream: u32, more: &[(String, String)]) -> Said {
    let usual = [("content-type".to_owned(), "application/json".to_owned())];
    // The status is in the table that everybody has; the others are literals.
    let mut block = vec![0x88];
    for (name, value) in usual.iter().chain(more) {
        block.push(0);
        literal(&mut block, name);
        literal(&mut block, value);
    }
    let mut said = nothing();
    let mut pieces = block.chunks(MAX_FRAME).enumerate().peekable();
    while let Some((number, piece)) = pieces.next() {
        let flags = if pieces.peek().is_none() { END_HEADERS } else { 0 };
        said = said.and(frame(if number == 0 { HEADERS } else { CONTINUATION }, flags, stream, piece));
    }
    said
}

pub(crate) fn data(stream: u32, text: &str, is_last: bool) -> Said {
    frame(DATA, u8::from(is_last), stream, text.as_bytes())
}

pub(crate) fn reset(stream: u32, reason: u32) -> Said {
    frame(RST_STREAM, 0, stream, &reason.to_be_bytes())
}

pub(crate) fn go_away(last: u32, reason: u32) -> Said {
    frame(GOAWAY, 0, 0, &[last.to_be_bytes(), reason.to_be_bytes()].concat())
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Said {
    let mut frames = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
    frames.extend([kind, flags]);
    frames.extend(stream.to_be_bytes());
    frames.extend(payload);
    Said { frames, closes: false }
}

/// A text of HPACK: its length in a prefix of seven bits and seven bits at a time, and the text.
fn literal(block: &mut Vec<u8>, text: &str) {
    match text.len().checked_sub(127) {
        None => block.push(u8::try_from(text.len()).unwrap()),
        Some(mut rest) => {
            block.push(127);
            while rest >= 128 {
                block.push(u8::try_from(rest % 128).unwrap() | 128);
                rest /= 128;
            }
            block.push(u8::try_from(rest).unwrap());
        }
    }
    block.extend(text.as_bytes());
}

/// What the server does: first on each connection, by its number, and then for each request.
pub(crate) type Script = Box<dyn FnMut(usize, Option<&Asked>) -> Said + Send>;

/// A server that goes by a script.
pub(crate) struct Frames {
    pub(crate) address: SocketAddr,
    pub(crate) config: Config,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Frames {
    pub(crate) async fn serve(script: impl FnMut(usize, Option<&Asked>) -> Said + Send + 'static) -> Self {
        let ca = authority();
        let tls = Arc::new(server_config(&issued(&ca, "127.0.0.1"), None, &["h2"]));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut config = Config::new(&format!("https://{address}")).unwrap();
        config.tls.ca = Some(Pem { origin: "test".into(), text: Secret::new(ca.pem()) });
        let (asked, script): (Arc<Mutex<Vec<Asked>>>, _) =
            (Arc::default(), Arc::new(Mutex::new(Box::new(script) as Script)));
        let heard = asked.clone();
        tokio::spawn(async move {
            for number in 0.. {
                let (tcp, _) = listener.accept().await.unwrap();
                // Whoever goes has heard enough.
                let (acceptor, script, heard) = (TlsAcceptor::from(tls.clone()), script.clone(), heard.clone());
                tokio::spawn(async move { talk(number, tcp, acceptor, &script, &heard).await });
            }
        });
        Self { address, config, asked }
    }

    /// All requests so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// All requests so far, by their connection and stream.
    pub(crate) fn streams(&self) -> Vec<(usize, u32)> {
        self.asked().iter().map(|asked| (asked.connection, asked.stream)).collect()
    }
}

async fn talk(
    connection: usize,
    tcp: TcpStream,
    acceptor: TlsAcceptor,
    script: &Mutex<Script>,
    heard: &Mutex<Vec<Asked>>,
) -> io::Result<()> {
    let mut stream = acceptor.accept(tcp).await?;
    stream.read_exact(&mut [0; PREFACE]).await?;
    let first = (script.lock().unwrap())(connection, None);
    let mut said = frame(SETTINGS, 0, 0, &[]).and(first);
    let mut open: Vec<(u32, Vec<u8>)> = Vec::new();
    loop {
        stream.write_all(&said.frames).await?;
        stream.flush().await?;
        if said.closes {
            return stream.shutdown().await;
        }
        said = nothing();
        let (kind, flags, id, payload) = read(&mut stream).await?;
        match kind {
            SETTINGS if flags & ACK == 0 => said = frame(SETTINGS, ACK, 0, &[]),
            PING if flags & ACK == 0 => said = frame(PING, ACK, 0, &payload),
            HEADERS => open.push((id, Vec::new())),
            DATA => open.iter_mut().filter(|(other, _)| *other == id).for_each(|(_, body)| body.extend(&payload)),
            RST_STREAM => open.retain(|(other, _)| *other != id),
            _ => {}
        }
        if matches!(kind, HEADERS | DATA) && flags & END_STREAM != 0 {
            let at = open.iter().position(|(other, _)| *other == id).unwrap();
            let body = String::from_utf8(open.swap_remove(at).1).unwrap();
            let asked = Asked { connection, stream: id, body };
            heard.lock().unwrap().push(asked.clone());
            said = (script.lock().unwrap())(connection, Some(&asked));
        }
    }
}

async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<(u8, u8, u32, Vec<u8>)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).await?;
    let [one, two, three, kind, flags, a, b, c, d] = head;
    let mut payload = vec![0; u32::from_be_bytes([0, one, two, three]) as usize];
    stream.read_exact(&mut payload).await?;
    Ok((kind, flags, u32::from_be_bytes([a, b, c, d]), payload))
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
/// How long what every client says first is.
const PREFACE: usize = 24;
/// The longest frame that every client takes.
const MAX_FRAME: usize = 16 << 10;
