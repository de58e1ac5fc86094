//! What holds of every kubeconfig.

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::fuzz::{kubeconfig, shows_no_secret};
use super::*;

fn name() -> impl Strategy<Value = Value> {
    prop_oneof![Just(json!("a")), Just(json!("b")), Just(json!("c"))]
}

/// Some of the fields, each with a value of its own.
fn fields(known: Vec<(&'static str, BoxedStrategy<Value>)>) -> impl Strategy<Value = Value> {
    let fields: Vec<_> =
        known.into_iter().map(|(name, value)| option::of(value).prop_map(move |value| (name, value))).collect();
    fields.prop_map(|fields| {
        Value::Object(
            fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect::<Map<_, _>>(),
        )
    })
}

fn text() -> BoxedStrategy<Value> {
    prop_oneof![
        Just(json!("")),
        Just(Value::Null),
        Just(json!("s3cret")),
        // What YAML would take for something other than text, without quotes.
        (0..ODD.len()).prop_map(|index| json!(ODD[index])),
        "\\PC{0,12}".prop_map(Value::from),
    ]
    .boxed()
}

const ODD: [&str; 14] = ["yes", "0x1F", "1e3", "~", "<<", "- a", "a: b", "#", "2001-01-01", " a", "[", "&a", "!x", "%"];

fn flag() -> BoxedStrategy<Value> {
    any::<bool>().prop_map(Value::from).boxed()
}

fn data() -> BoxedStrategy<Value> {
    prop_oneof![Just(json!("")), Just(json!("czNjcmV0")), Just(Value::Null)].boxed()
}

fn cluster() -> impl Strategy<Value = Value> {
    fields(vec![
        ("server", prop_oneof![Just(json!("https://a:1")), Just(json!("http://a")), text()].boxed()),
        ("certificate-authority", text()),
        ("certificate-authority-data", data()),
        ("insecure-skip-tls-verify", flag()),
        ("tls-server-name", text()),
        ("proxy-url", prop_oneof![Just(json!("http://p:1")), Just(json!("ftp://p")), text()].boxed()),
        ("disable-compression", flag()),
        (
            "extensions",
            Just(json!([{"name": "client.authentication.k8s.io/exec", "extension": {"a": [1, null]}}])).boxed(),
        ),
    ])
}

fn user() -> impl Strategy<Value = Value> {
    let modes = ["Never", "IfAvailable", "Always", ""].map(|mode| Just(json!(mode)).boxed());
    let versions =
        [ExecVersion::V1.as_str(), ExecVersion::V1Beta1.as_str()].map(|version| Just(json!(version)).boxed());
    let exec = fields(vec![
        ("command", Just(json!("./login")).boxed()),
        ("args", vec(text(), 0..3).prop_map(Value::from).boxed()),
        (
            "env",
            vec(text(), 0..3)
                .prop_map(|values| values.into_iter().map(|value| json!({"name": "A", "value": value})).collect())
                .boxed(),
        ),
        ("apiVersion", proptest::strategy::Union::new(versions).boxed()),
        ("interactiveMode", proptest::strategy::Union::new(modes).boxed()),
        ("provideClusterInfo", flag()),
    ]);
    fields(vec![
        ("token", text()),
        ("tokenFile", text()),
        ("username", text()),
        ("password", text()),
        ("client-certificate", text()),
        ("client-certificate-data", data()),
        ("client-key", text()),
        ("client-key-data", data()),
        ("as", text()),
        ("as-groups", vec(text(), 0..2).prop_map(Value::from).boxed()),
        ("as-user-extra", btree_map("[a-z%/ ]{1,3}", vec(text(), 0..2), 0..2).prop_map(|extra| json!(extra)).boxed()),
        ("exec", exec.boxed()),
    ])
}

fn list(field: &'static str, content: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    btree_map("[abc]", content, 0..3).prop_map(move |entries| {
        entries.into_iter().map(|(name, content)| json!({"name": name, field: content})).collect()
    })
}

fn file() -> impl Strategy<Value = Value> {
    let context = fields(vec![("cluster", name().boxed()), ("user", name().boxed()), ("namespace", text())]);
    let extensions = btree_map("[xyz]", 0..9, 0..3).prop_map(|entries| {
        entries.into_iter().map(|(name, content)| json!({"name": name, "extension": content})).collect()
    });
    fields(vec![
        ("current-context", name().boxed()),
        ("preferences", fields(vec![("colors", flag())]).boxed()),
        ("clusters", list("cluster", cluster()).boxed()),
        ("contexts", list("context", context).boxed()),
        ("users", list("user", user()).boxed()),
        ("extensions", extensions.boxed()),
    ])
}

fn parsed(path: &str, file: &Value) -> Kubeconfig {
    Kubeconfig::parse(path.as_ref(), file.to_string().as_bytes()).unwrap()
}

/// What is in a file that is no kubeconfig must not be shown either.
fn with_wrong_type(mut file: Value, secret: &str) -> Value {
    for user in file["users"].as_array_mut().into_iter().flatten() {
        user["user"]["token"] = json!([secret]);
        user["user"]["password"] = json!({secret.to_owned(): secret});
    }
    file
}

/// Most of what is made below is refused on the way; these are not.
#[test]
fn no_kind_of_secret_is_shown() {
    let exec =
        "apiVersion: client.authentication.k8s.io/v1, command: x, interactiveMode: Never, provideClusterInfo: true";
    for user in [
        "token: s3cret".to_owned(),
        "token: s3cret, tokenFile: /tok".to_owned(),
        "username: me, password: s3cret".to_owned(),
        "client-certificate-data: YQ==, client-key-data: YQ==".to_owned(),
        "client-certificate: crt, client-key: key".to_owned(),
        format!("exec: {{{exec}, args: [s3cret], env: [{{name: A, value: s3cret}}]}}"),
    ] {
        let text = format!(
            "current-context: c\ncontexts: [{{name: c, context: {{cluster: p, user: u}}}}]\nusers: [{{name: u, user: {{{user}}}}}]\n\
             clusters: [{{name: p, cluster: {{server: 'https://a', proxy-url: 'http://me:s3cret@p', \
             extensions: [{{name: client.authentication.k8s.io/exec, extension: s3cret}}]}}}}]"
        );
        let kubeconfig = Kubeconfig::parse("/k/cfg".as_ref(), text.as_bytes()).unwrap();
        assert!(shows_no_secret(kubeconfig) > 0, "{user} can be used");
    }
}

proptest! {
    #[test]
    fn merging_is_associative_and_a_file_counts_once(one in file(), two in file(), three in file()) {
        let [one, two, three] = [parsed("/k/1", &one), parsed("/k/2", &two), parsed("/k/3", &three)];
        let left = one.clone().merge(two.clone()).merge(three.clone());
        prop_assert!(left == one.clone().merge(two.merge(three.clone())));
        prop_assert_eq!(left.clone().merge(one).to_json(), left.to_json());
        prop_assert_eq!(Kubeconfig::default().merge(three.clone()).to_json(), three.to_json());
    }

    #[test]
    fn what_is_printed_is_read_as_the_same_and_no_secret_is_shown(file in file()) {
        kubeconfig(file.to_string().as_bytes());
        shows_no_secret(parsed("/k/cfg", &file));
    }

    #[test]
    fn no_error_tells_what_a_field_holds(file in file()) {
        let text = with_wrong_type(file, "s3cret-of-nobody").to_string();
        if let Err(error) = Kubeconfig::parse("/k/cfg".as_ref(), text.as_bytes()) {
            let shown = format!("{error} {error:?}");
            prop_assert!(!shown.contains("s3cret-of-nobody"), "{}", shown);
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in vec(any::<u8>(), 0..200), text in "[-a-c:{}\\[\\],&*!<|>'\"\n \t]{0,80}") {
        kubeconfig(&bytes);
        kubeconfig(text.as_bytes());
        let environment = Environment { https_proxy: Some(text.clone()), no_proxy: Some(text.clone()), ..Default::default() };
        let _ = Proxy::from_environment(&environment, &"https://a:1".parse().unwrap());
        let _ = (Proxy::parse(&text), Config::new(&text));
    }
}
