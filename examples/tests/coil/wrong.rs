//! What goes wrong is told in the same words on every runtime.

use std::collections::BTreeSet;
use std::fs::Permissions;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;

use crate::cluster::words;
use crate::faults::{MAPS, table};
use crate::program::{Home, Runtime};
use crate::same::{same, same_each, told};
use crate::script::{Act, Script, answer, chunk, chunked, json as body, refusal, with_headers};

/// A kubeconfig with these fields of its cluster and user.
fn home(runtime: Runtime, cluster: &str, user: &str) -> Home {
    let kubeconfig = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{{name: k, cluster: {{{cluster}}}}}]\n\
         contexts: [{{name: c, context: {{cluster: k, user: u}}}}]\nusers: [{{name: u, user: {{{user}}}}}]\n"
    );
    Home::new(runtime, &kubeconfig)
}

/// Runs a command that must fail, and say why in one line; what is behind `#` only tells scenes apart.
fn fails(home: &Home, line: &str, server: &str) -> String {
    let ended = home.coil(&words(line.split(" # ").next().unwrap()));
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.lines().count()), (Some(1), "", 1), "{ended:?}");
    told(line, &ended, home, server)
}

/// A server that says the same to whoever connects, whatever he wants.
fn stubborn(says: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                // Whoever hears the end of a connection must have been listened to, or it is a reset.
                let _ = stream.read(&mut [0; 4096]).and_then(|_| stream.write_all(says));
                let _ = stream.shutdown(std::net::Shutdown::Write);
                let _ = stream.read_to_end(&mut Vec::new());
            });
        }
    });
    address
}

#[test]
fn an_answer_that_is_none_is_told_in_the_same_words() {
    let with_length = |length: usize, text: &str| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json";
        Act::Write(format!("{head}\r\nContent-Length: {length}\r\n\r\n{text}").into_bytes())
    };
    let gzip = "Content-Type: application/json\r\nContent-Encoding: gzip\r\n";
    let answers = [
        refusal("401 Unauthorized", "Unauthorized", "Unauthorized"),
        refusal("403 Forbidden", "Forbidden", "configmaps is forbidden"),
        refusal("404 Not Found", "NotFound", "not found"),
        refusal("409 Conflict", "Conflict", "changed"),
        refusal("410 Gone", "Expired", "too old"),
        answer("404 Not Found", "text/plain", b"404 page not found"),
        answer("500 Internal Server Error", "text/html", b"<html>oops</html>"),
        answer("200 OK", "text/html", b"<html>log in</html>"),
        answer("200 OK", "application/json", b"{\"kind\":\"Tab"),
        answer("200 OK", "application/json", b""),
        answer("200 OK", "application/json", b"\xff{}"),
        answer("418 I'm a teapot", "text/plain", b"short and stout"),
        with_headers("302 Found", "Location: https://example.com/login\r\n", b""),
        with_headers("429 Too Many Requests", "Retry-After: 100\r\n", b"slow down"),
        with_headers("200 OK", gzip, b"no gzip"),
        vec![Act::Hang],
        vec![Act::Reset],
        vec![with_length(100, "{\"kind\":"), Act::Hang],
        vec![with_length(100, "{\"kind\":"), Act::Reset],
        vec![chunked(), chunk("{\"kind\":"), Act::Hang],
        vec![chunked(), chunk("{\"kind\":"), Act::Reset],
        vec![chunked(), Act::Write(b"novel\r\n".to_vec())],
    ];
    let said = same_each(&answers, |replies, runtime| {
        let timeout = if matches!(replies[..], [.., Act::Hang]) { " --timeout=2s" } else { "" };
        let script = Script::new();
        script.on(MAPS, [replies.clone()]);
        let home = Home::plain(runtime, &script.url);
        fails(&home, &format!("get cm{timeout}"), &script.url)
            + &fails(&home, &format!("get cm -o name{timeout}"), &script.url)
    });
    assert_eq!(said.matches("no answer within 2s").count(), 6, "{said}");
}

#[test]
fn an_answer_that_ends_early_is_told_in_the_same_words() {
    let answers = [
        &b""[..],
        b"HTTP/1.1 200 OK\r\nContent-",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"kind\":",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n{\"kind\":\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n{\"ki",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}nonsense\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{}",
        b"HTTP/1.1 200 OK\r\n\r\n{\"kind\":",
        b"HTTP/1.1 200 OK\r\nContent-Length: novel\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nno header\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nNo\x01Header: x\r\n\r\n{}",
        b"HTTP/2.0 200 OK\r\n\r\n{}",
        b"HTTP/1.1 999999 OK\r\n\r\n{}",
        b"HTTP/1.1 200\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: novel\r\n\r\n",
        b"HTTP/1.0 200 OK\r\n\r\n{}",
        b"220 mail.example.com ESMTP\r\n",
        b"SSH-2.0-OpenSSH_9.9\r\n",
        b"\x15\x03\x01\x00\x02\x02\x46",
        b"\r\n\r\n",
        b"<html>\n",
    ];
    same_each(&answers, |says, runtime| {
        let server = format!("http://{}", stubborn(says));
        let home = Home::plain(runtime, &server);
        let line = format!("get --raw / # {}", says.escape_ascii());
        told(&line, &home.coil(&["get", "--raw", "/"]), &home, &server)
    });
}

#[test]
fn a_connection_that_cannot_be_made_is_told_in_the_same_words() {
    let plain = stubborn(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    let tls = Script::tls();
    let insecure = "insecure-skip-tls-verify: true, ";
    let servers = [
        (String::new(), "http://127.0.0.1:1".to_owned()),
        (String::new(), "https://127.0.0.1:1".to_owned()),
        (String::new(), "https://[::1]:1".to_owned()),
        (String::new(), "http://nowhere.invalid".to_owned()),
        (String::new(), "https://nowhere.invalid:6443".to_owned()),
        (String::new(), format!("https://{plain}")),
        (String::new(), tls.url.clone()),
        (String::new(), tls.url.replace("https", "http")),
        (format!("certificate-authority-data: {}, ", tls.authority()), tls.url.replace("127.0.0.1", "localhost")),
        (format!("certificate-authority-data: {}, tls-server-name: elsewhere, ", tls.authority()), tls.url.clone()),
        ("certificate-authority: none.crt, ".to_owned(), tls.url.clone()),
        ("certificate-authority-data: bm8gY2VydGlmaWNhdGU=, ".to_owned(), tls.url.clone()),
        ("proxy-url: 'http://127.0.0.1:1', ".to_owned(), "http://cluster.invalid".to_owned()),
        (format!("{insecure}proxy-url: 'http://127.0.0.1:1', "), "https://cluster.invalid".to_owned()),
        (format!("{insecure}proxy-url: 'http://nowhere.invalid:3128', "), "https://cluster.invalid".to_owned()),
        (format!("{insecure}proxy-url: 'socks5://127.0.0.1:1', "), "https://cluster.invalid".to_owned()),
        (format!("{insecure}proxy-url: 'novel://127.0.0.1:1', "), "https://cluster.invalid".to_owned()),
        (format!("{insecure}proxy-url: 'http://{plain}', "), "https://cluster.invalid".to_owned()),
        (format!("proxy-url: 'http://{plain}', "), "http://cluster.invalid".to_owned()),
    ];
    same_each(&servers, |(fields, server), runtime| {
        let home = home(runtime, &format!("{fields}server: '{server}'"), "");
        fails(&home, &format!("get cm # {fields}"), server)
    });
}

#[test]
fn a_proxy_that_does_not_help_is_told_in_the_same_words() {
    let answers = [
        &b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"[..],
        b"HTTP/1.1 403 Forbidden\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\nno!\n",
        b"HTTP/1.1 502 Bad Gateway\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.9\r\n",
        b"",
    ];
    same_each(&answers, |refusal, runtime| {
        let proxy = stubborn(refusal);
        let said = ["https://cluster.invalid", "http://cluster.invalid"].map(|server| {
            let fields = format!("insecure-skip-tls-verify: true, proxy-url: 'http://{proxy}', server: '{server}'");
            let home = home(runtime, &fields, "");
            // Without a tunnel the proxy's answer counts as the server's.
            let ended = home.coil(&["get", "--raw", "/"]);
            told(&format!("get --raw / # {}", refusal.escape_ascii()), &ended, &home, server).replace(&proxy, "PROXY")
        });
        said.concat()
    });
}

#[test]
fn credentials_that_cannot_be_had_are_told_in_the_same_words() {
    let script = Script::tls();
    script.on(MAPS, [table("", &["a"])]);
    let cluster = format!("insecure-skip-tls-verify: true, server: '{}'", script.url);
    let exec = |fields: &str| {
        format!("exec: {{apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, {fields}}}")
    };
    let prints = |text: &str| exec(&format!("command: printf, args: ['%s', '{text}']"));
    let credential = |status: &str| {
        format!(r#"{{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{status}}}"#)
    };
    let users = [
        exec("command: ./none"),
        exec("command: none-of-that-name, installHint: 'get it somewhere'"),
        exec("command: ./forbidden"),
        exec("command: sh, args: ['-c', 'echo first >&2; echo second >&2; exit 3']"),
        exec("command: sh, args: ['-c', 'kill -KILL $$']"),
        exec("command: 'false'"),
        exec("command: 'true'"),
        prints("no JSON"),
        prints("{}"),
        prints(&credential("{}")),
        prints(&credential(r#"{"token":""}"#)),
        prints(&credential(r#"{"token":"a\nb"}"#)),
        prints(&credential(r#"{"clientCertificateData":"x","clientKeyData":"y"}"#)),
        prints(&credential(r#"{"token":"t"}"#).replace("io/v1", "io/v1beta1")),
        exec("command: sleep, args: ['60']"),
        "exec: {command: x}".to_owned(),
        "tokenFile: none".to_owned(),
        "token: a, username: b".to_owned(),
        "client-certificate: none.crt, client-key: none.key".to_owned(),
        "client-certificate-data: bm8=, client-key-data: bm8=".to_owned(),
        "auth-provider: {name: gcp}".to_owned(),
    ];
    same_each(&users, |user, runtime| {
        let home = home(runtime, &cluster, user);
        std::fs::set_permissions(home.file("forbidden", ""), Permissions::from_mode(0o644)).unwrap();
        let timeout = if user.contains("sleep") { "--timeout=1s" } else { "--timeout=30s" };
        let ended = home.coil(&["get", "cm", timeout]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{user}: {ended:?}");
        // Whoever asks when a program has failed has it run again: that depends on who is how fast.
        let told = told(user, &ended, &home, &script.url);
        told.replace("first\nsecond\nfirst\n", "first\n")
    });
}

#[test]
fn requests_and_warnings_are_told_in_the_same_words() {
    same(|runtime| {
        let script = Script::new();
        let headers = "Warning: 299 - \"v1 Novel is deprecated\"\r\nWarning: 299 - \"twice\", 299 - \"thrice\"\r\n";
        let (busy, page) = (
            with_headers("429 Too Many Requests", "Retry-After: 1\r\n", b""),
            r#"{"kind":"ConfigMapList","items":null}"#,
        );
        script.on(MAPS, [busy, with_headers("200 OK", headers, page.as_bytes()), body(page)]);
        let home = Home::plain(runtime, &script.url);
        let ended = home.coil(&["get", "cm", "-v", "-o", "json"]);
        // Times and the jitter of a wait are nobody's decision.
        let mut said = told("get cm -v", &ended, &home, &script.url);
        for start in ["in ", "after="] {
            said = said.lines().map(|line| line.split(start).next().unwrap().to_owned() + "\n").collect();
        }
        // What is asked for at one time is answered in any order.
        said = said.replace("GET /api 200 \n", "").replace("GET /apis 200 \n", "");
        said
    });
}

/// Which request starts the program that both need, and how often it runs, is a matter of chance.
#[test]
fn what_credentials_take_is_told_in_the_same_words() {
    let script = Script::tls();
    let cluster = format!("insecure-skip-tls-verify: true, server: '{}'", script.url);
    let fails = "command: sh, args: ['-c', 'exit 3']";
    let user = format!("exec: {{apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, {fails}}}");
    let said = same(|runtime| {
        let home = home(runtime, &cluster, &user);
        let ended = home.coil(&["get", "cm", "-v"]);
        let told = told("get cm -v", &ended, &home, &script.url).replace("/apis ", "/api ");
        let lines = told.lines().map(|line| line.trim_start_matches("--- ").split("failed in ").next().unwrap());
        lines.collect::<BTreeSet<&str>>().into_iter().fold(String::new(), |said, line| said + line + "\n")
    });
    for part in
        ["GET /api fetching credentials", "GET /api the credential program has ended", "GET /api no credentials"]
    {
        assert!(said.contains(part), "{said}");
    }
}
