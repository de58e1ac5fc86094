use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn proxy(url: &str) -> Proxy {
    Proxy::parse(url).unwrap()
}

/// Plays answers in pieces of that size, each once something was sent; tells what was sent, and how it ended.
fn play(url: &str, host: &str, answers: &[&[u8]], size: usize) -> (Vec<Vec<u8>>, Result<(), String>) {
    let mut handshake = match ProxyHandshake::new(&proxy(url), host, 6443) {
        Ok(handshake) => handshake,
        Err(error) => return (Vec::new(), Err(error.message.into())),
    };
    let (mut sent, mut answers) = (Vec::new(), answers.iter());
    let mut pieces: Vec<&[u8]> = vec![b""];
    while let Some(piece) = pieces.pop() {
        match handshake.received(piece) {
            Ok(ProxyStep::Send(bytes)) => {
                assert!(pieces.is_empty(), "it speaks while there is something to be heard");
                sent.push(bytes.to_vec());
                pieces = answers.next().map_or(Vec::new(), |answer| answer.chunks(size).rev().collect());
            }
            Ok(ProxyStep::Receive) => {}
            Ok(ProxyStep::Done) => {
                assert!(pieces.is_empty(), "something was not heard");
                return (sent, Ok(()));
            }
            Err(error) => {
                assert_eq!(error.kind, NetworkErrorKind::Connect);
                let problem = error.message.strip_prefix(&format!("the proxy {}: ", proxy(url))).unwrap();
                return (sent, Err(problem.to_owned()));
            }
        }
    }
    (sent, Err("closed".to_owned()))
}

/// The same in pieces of every size.
fn played(url: &str, host: &str, answers: &[&[u8]]) -> (Vec<Vec<u8>>, Result<(), String>) {
    let whole = play(url, host, answers, usize::MAX);
    for size in [1, 2, 3, 7] {
        assert_eq!(play(url, host, answers, size), whole, "{size}");
    }
    whole
}

fn refused(url: &str, answers: &[&[u8]]) -> String {
    played(url, "a", answers).1.unwrap_err()
}

#[test]
fn an_http_proxy_is_asked_to_connect() {
    let (sent, ended) =
        played("http://px", "api.example.org", &[b"HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\n"]);
    let expected = format!(
        "CONNECT api.example.org:6443 HTTP/1.1\r\nHost: api.example.org:6443\r\nUser-Agent: {USER_AGENT}\r\n\r\n"
    );
    assert_eq!((String::from_utf8(sent.concat()).unwrap(), ended), (expected, Ok(())));
    let (sent, ended) = played("https://me:pass%20word@px", "[2001:db8::1]", &[b"HTTP/1.0 204\n\n"]);
    let text = String::from_utf8(sent.concat()).unwrap();
    assert!(text.starts_with("CONNECT [2001:db8::1]:6443 HTTP/1.1\r\n"), "{text}");
    assert!(text.ends_with("\r\nProxy-Authorization: Basic bWU6cGFzcyB3b3Jk\r\n\r\n"), "{text}");
    assert_eq!(ended, Ok(()));
    assert_eq!(played("http://px", "a", &[b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"]).1, Ok(()));
}

#[test]
fn an_http_proxy_that_refuses_is_understood() {
    let asks = b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n<html>";
    let advice = "it asks for a user name and a password: write USER:PASSWORD@ before the host in its URL";
    assert_eq!(refused("http://px", &[asks]), advice);
    assert_eq!(refused("http://me:word@px", &[asks]), "it does not take the user name and the password in its URL");
    assert_eq!(refused("http://px", &[b"HTTP/1.1 403 Forbidden\r\n\r\n"]), "it answers 403 Forbidden");
    assert_eq!(refused("http://px", &[b"HTTP/1.1 503\r\n\r\n"]), "it answers 503");
    assert_eq!(refused("http://px", &[b"SSH-2.0-OpenSSH_9.6\r\n\r\n"]), "it does not speak HTTP/1.1");
    assert_eq!(refused("http://px", &[b"\r\n\r\n"]), "it does not speak HTTP/1.1");
    assert_eq!(refused("http://px", &[&[b'x'; LIMIT + 1]]), "it answers at too great length");
    assert_eq!(refused("http://px", &[b"HTTP/1.1 200"]), "closed");
    let extra = &[&b"HTTP/1.1 200 OK\r\n\r\nx"[..]];
    assert_eq!(play("http://px", "a", extra, usize::MAX).1.unwrap_err(), "it says more than it was asked");
}

#[test]
fn a_socks_proxy_is_given_the_name_or_the_address() {
    let fine: &[u8] = &[5, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    let (sent, ended) = played("socks5://px", "abc", &[&[5, 0], fine]);
    assert_eq!((sent, ended), (vec![vec![5, 1, 0], vec![5, 1, 0, 3, 3, b'a', b'b', b'c', 0x19, 0x2b]], Ok(())));
    let (sent, ended) = played("socks5h://px", "10.0.0.1", &[&[5, 0], &[5, 0, 0, 3, 2, b'p', b'x', 0, 0]]);
    assert_eq!((&sent[1][..], ended), (&[5, 1, 0, 1, 10, 0, 0, 1, 0x19, 0x2b][..], Ok(())));
    let six = [&[5, 0, 0, 4][..], &[0; 18]].concat();
    let (sent, ended) = played("socks5://px", "[::1]", &[&[5, 0], &six]);
    assert_eq!((sent[1][3], sent[1].len(), ended), (4, 22, Ok(())));
    let (sent, ended) = played("socks5://me:word@px", "a", &[&[5, 2], &[1, 0], fine]);
    assert_eq!((sent[0].as_slice(), sent[1].as_slice()), (&[5, 2, 0, 2][..], &b"\x01\x02me\x04word"[..]));
    assert_eq!(ended, Ok(()));
    assert_eq!(played("socks5://me:word@px", "a", &[&[5, 0], fine]).1, Ok(()), "it does not care who asks");
}

#[test]
fn a_socks_proxy_that_refuses_is_understood() {
    let advice = "it asks for a user name and a password: write USER:PASSWORD@ before the host in its URL";
    assert_eq!(refused("socks5://px", &[&[5, 255]]), advice);
    assert_eq!(refused("socks5://me:w@px", &[&[5, 255]]), "it knows no way to prove who one is that is known here");
    assert_eq!(
        refused("socks5://me:w@px", &[&[5, 2], &[1, 1]]),
        "it does not take the user name and the password in its URL"
    );
    assert_eq!(refused("socks5://px", &[b"HTTP/1.1 400"]), "it does not speak SOCKS version 5");
    assert_eq!(refused("socks5://px", &[&[5, 0], &[4]]), "it does not speak SOCKS version 5");
    for (code, problem) in
        [(2, "it does not allow it"), (4, "it cannot reach the host"), (9, "it gives no known reason")]
    {
        assert_eq!(refused("socks5://px", &[&[5, 0], &[5, code]]), problem);
    }
    assert_eq!(refused("socks5://px", &[&[5, 0], &[5, 0, 0, 9]]), "it does not speak SOCKS version 5");
    let long = "x".repeat(256);
    for (url, host) in [("socks5://px".to_owned(), long.as_str()), (format!("socks5://{long}@px"), "a")] {
        assert!(ProxyHandshake::new(&proxy(&url), host, 1).is_err());
    }
}

#[test]
fn requests_over_plain_http_are_forwarded_by_http_proxies() {
    let (plain, encrypted) = ("http://a".parse().unwrap(), "https://a".parse().unwrap());
    assert!(proxy("http://px").forwards(&plain) && proxy("https://px").forwards(&plain));
    assert!(!proxy("http://px").forwards(&encrypted) && !proxy("socks5://px").forwards(&plain));
}

#[test]
fn nothing_shows_a_password() {
    let mut handshake = ProxyHandshake::new(&proxy("http://me:s3cret@px"), "a", 1).unwrap();
    let shown = format!("{handshake:?} {:?} {}", handshake.received(b""), handshake.closed());
    assert!(shown.contains("http://px:80") && !shown.contains("s3cret"), "{shown}");
    assert!(proxy("http://me:s3cret@px").authorization().unwrap().is_sensitive());
}

proptest! {
    #[test]
    fn no_answer_panics(url in prop_oneof![Just("http://px"), Just("socks5://px"), Just("socks5://me:w@px")], answers in vec(vec(any::<u8>(), 0..20), 0..4), size in 1_usize..5) {
        let answers: Vec<_> = answers.iter().map(Vec::as_slice).collect();
        let _ = play(url, "a", &answers, size);
    }
}

/// In the little stack that a thread of an executor has.
#[test]
fn any_number_of_interim_answers_is_passed_over() {
    let interim = b"HTTP/1.1 100\n\n";
    let many = interim.repeat(LIMIT / interim.len() - 2);
    let ended = play("http://px", "a", &[&[&many[..], b"HTTP/1.1 200 OK\r\n\r\n"].concat()], usize::MAX).1;
    assert_eq!(ended, Ok(()));
}
