use super::*;
use crate::laws::{self, Move};

const FILE: &str = "current-context: a
clusters: [{name: p, cluster: {server: 'https://a', certificate-authority: ../ca}}, {name: q}]
contexts: [{name: a, context: {cluster: p, user: u}}, {name: b, context: {cluster: q, user: ghost}}, {name: c}]
users: [{name: u, user: {token: s3cret, client-certificate: crt, client-key-data: czNjcmV0, exec: {}}}]
";

/// What is shown of the file at `/k/conf/cfg`, and what was read besides.
fn view(file: &str, context: Option<&str>, options: ViewOptions) -> (Vec<PathBuf>, Result<String, String>) {
    let source =
        ConfigSource { context: context.map(ToOwned::to_owned), ..ConfigSource::from_kubeconfig("/k/conf/cfg") };
    let mut machine = ConfigView::new(source, Environment::default(), options);
    let (mut read, mut out) = (Vec::new(), Outbox::new());
    let _ = machine.step(Now::default(), None, &mut out);
    loop {
        match out.pop().expect("the view ends by itself") {
            ConfigOutput::Read { ticket, path } => {
                let result = match path.to_str().unwrap() {
                    "/k/conf/cfg" => Ok(file.into()),
                    "/k/ca" => Ok(b"CA".to_vec()),
                    "/k/conf/crt" => Ok(b"CRT".to_vec()),
                    _ => Err(ReadError::NotFound),
                };
                read.push(path);
                let _ = machine.step(Now::default(), Some(ConfigInput::Read { ticket, result }), &mut out);
            }
            ConfigOutput::Warn(warning) => panic!("{warning}"),
            ConfigOutput::Loaded(Ok(kubeconfig)) => {
                assert!(!format!("{kubeconfig:?}").contains("s3cret"));
                return (read.split_off(1), Ok(kubeconfig.to_yaml()));
            }
            ConfigOutput::Loaded(Err(error)) => return (read.split_off(1), Err(error.to_string())),
        }
    }
}

const ALL: ViewOptions = ViewOptions { minify: true, flatten: true, raw: true };

#[test]
fn flattening_puts_files_in_place_of_their_paths() {
    let (read, text) = view(FILE, None, ALL);
    assert_eq!(read, [PathBuf::from("/k/ca"), "/k/conf/crt".into()]);
    let text = text.unwrap();
    for line in ["certificate-authority-data: Q0E=", "client-certificate-data: Q1JU", "token: s3cret", "args: null"] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
    assert!(!text.contains("certificate-authority:") && !text.contains("name: q"), "{text}");
}

#[test]
fn secrets_are_hidden_unless_they_are_asked_for() {
    let (read, text) = view(FILE, None, ViewOptions::default());
    let text = text.unwrap();
    assert!(read.is_empty() && !text.contains("s3cret") && !text.contains("czNjcmV0"), "{text}");
    for line in ["token: REDACTED", "client-key-data: DATA+OMITTED", "client-certificate: crt", "name: q"] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
    let (_, flattened) = view(FILE, None, ViewOptions { raw: false, ..ALL });
    assert!(flattened.unwrap().contains("client-certificate-data: DATA+OMITTED"));
}

#[test]
fn what_is_kept_must_be_there() {
    let minify = ViewOptions { minify: true, ..ViewOptions::default() };
    let error = |file, context| view(file, context, minify).1.unwrap_err();
    let expected = "contexts[b].context.user in /k/conf/cfg is \"ghost\", and no user has that name";
    assert_eq!(error(FILE, Some("b")), expected);
    assert_eq!(error(FILE, Some("z")), "no context \"z\" in /k/conf/cfg");
    assert_eq!(error("", None), "no current-context in /k/conf/cfg");
    assert!(view(FILE, Some("c"), minify).1.unwrap().contains("clusters: null"));
    let (read, text) = view(&FILE.replace("../ca", "gone"), None, ALL);
    assert_eq!(read, [PathBuf::from("/k/conf/gone")]);
    let expected =
        "cannot read /k/conf/gone, named by clusters[p].cluster.certificate-authority in /k/conf/cfg: no such file";
    assert_eq!(text.unwrap_err(), expected);
    let (_, text) = view(&FILE.replace("crt", "crt, client-certificate-data: Q1JU"), None, ALL);
    assert!(text.unwrap_err().starts_with("users[u].user.client-certificate in /k/conf/cfg: "));
}

#[test]
fn the_laws_of_machines_hold() {
    let make = || ConfigView::new(ConfigSource::from_kubeconfig("/c"), Environment::default(), ALL);
    let mut other = Tickets::new(0);
    let tickets: Vec<_> = (0..9).map(|_| other.issue()).collect();
    let read = |ticket, text: &str| ConfigInput::Read { ticket, result: Ok(text.as_bytes().to_vec()) };
    let script = [
        Move::Input(read(tickets[0], FILE)),
        Move::Input(read(tickets[1], "CA")),
        Move::Input(read(tickets[2], "CRT")),
    ];
    laws::same_inputs_same_outputs(make, &script);
    laws::stale_inputs_change_nothing(make, &script, &[read(tickets[8], "]")]);
    laws::ended_stays_ended(
        &mut make(),
        &script,
        &[Move::Input(read(tickets[2], "]")), Move::Input(read(tickets[8], ""))],
    );
}

#[test]
fn what_is_printed_is_read_as_the_same_again() {
    let odd = r#"users: [{name: "a\u0084\x85\u2028\u2029\uFEFF\uFFFE", user: {token: "\x7f\u009f\uFFFF"}}]"#;
    let kubeconfig = Kubeconfig::parse("/k".as_ref(), odd.as_bytes()).unwrap();
    assert!(kubeconfig.to_json().contains(r#""token": "\u007f\u009f\uffff""#), "{}", kubeconfig.to_json());
    for printed in [kubeconfig.to_json(), kubeconfig.to_yaml()] {
        let again = Kubeconfig::parse("/k".as_ref(), printed.as_bytes()).unwrap();
        assert_eq!(again.to_json(), kubeconfig.to_json(), "{printed}");
    }
}
