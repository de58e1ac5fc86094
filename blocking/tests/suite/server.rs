//! Servers with TLS that answer as a test wants, and who vouches for them.

use std::io::{Read, Write};
use std::mem;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use cloudcoil_blocking::Config;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, KeyUsagePurpose, SanType};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use rustls_pki_types::PrivateKeyDer;

use crate::common::pem;

pub(crate) type Authority = CertifiedIssuer<'static, KeyPair>;

pub(crate) fn authority() -> Authority {
    let mut params = CertificateParams::new([]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params.distinguished_name.push(rcgen::DnType::CommonName, "authority");
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate for a host's name or address, and its key.
pub(crate) fn issued(by: &Authority, name: &str) -> (rcgen::Certificate, KeyPair) {
    let mut params = CertificateParams::new([]).unwrap();
    params.subject_alt_names = vec![match name.parse::<IpAddr>() {
        Ok(address) => SanType::IpAddress(address),
        Err(_) => SanType::DnsName(name.try_into().unwrap()),
    }];
    let key = KeyPair::generate().unwrap();
    (params.signed_by(&key, by).unwrap(), key)
}

/// TLS under that name; if `clients` are named, for those whom they vouch for.
pub(crate) fn tls(by: &Authority, name: &str, clients: Option<&Authority>) -> ServerConfig {
    let provider = cloudcoil_tls::provider();
    let builder = ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions().unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(authority.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        }
    };
    let (certificate, key) = issued(by, name);
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    builder.with_single_cert(vec![certificate.der().clone()], key).unwrap()
}

pub(crate) trait Io: Read + Write + Send {}

impl<T: Read + Write + Send> Io for T {}

/// Hands each connection to `talk`, with the TCP below it, each on a thread of its own.
pub(crate) fn listen(
    tls: Option<ServerConfig>,
    talk: impl Fn(Box<dyn Io>, TcpStream) + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tls, talk) = (tls.map(Arc::new), Arc::new(talk));
    thread::spawn(move || {
        for tcp in listener.incoming() {
            let (tcp, talk) = (tcp.unwrap(), talk.clone());
            let below = tcp.try_clone().unwrap();
            let stream: Box<dyn Io> = match &tls {
                None => Box::new(tcp),
                Some(tls) => Box::new(StreamOwned::new(ServerConnection::new(tls.clone()).unwrap(), tcp)),
            };
            thread::spawn(move || talk(stream, below));
        }
    });
    address
}

/// Reads the head of a request or an answer; `None` where the connection ends before.
pub(crate) fn head(stream: &mut dyn Read) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return None,
        }
    }
    Some(String::from_utf8(head).unwrap())
}

/// How many connections had requests, and their heads.
#[derive(Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<(usize, Vec<String>)>>);

impl Seen {
    pub(crate) fn connections(&self) -> usize {
        self.0.lock().unwrap().0
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.0.lock().unwrap().1.clone()
    }
}

/// A server whose answers `answer` makes of the heads of requests.
pub(crate) fn serve(
    tls: Option<ServerConfig>,
    answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static,
) -> (SocketAddr, Seen) {
    let seen = Seen::default();
    let log = seen.clone();
    let address = listen(tls, move |mut stream, _| {
        let mut is_new = true;
        while let Some(head) = head(&mut stream) {
            let length = head
                .to_lowercase()
                .split_once("\r\ncontent-length: ")
                .map_or(0, |(_, rest)| rest.split_once('\r').unwrap().0.parse::<usize>().unwrap());
            stream.read_exact(&mut vec![0; length]).unwrap();
            {
                let mut log = log.0.lock().unwrap();
                log.0 += usize::from(mem::take(&mut is_new));
                log.1.push(head.clone());
            }
            if stream.write_all(&answer(&head)).and_then(|()| stream.flush()).is_err() {
                return;
            }
        }
    });
    (address, seen)
}

pub(crate) fn ok(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

pub(crate) fn config(address: SocketAddr, ca: &Authority) -> Config {
    let mut config = Config::new(&format!("https://{address}")).unwrap();
    config.tls.ca = Some(pem(&ca.pem()));
    config
}
