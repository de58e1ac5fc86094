//! A real API server calls what listens here.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use cloudcoil_apiserver::Tls as Authority;
use cloudcoil_runtime::core::listen::ListenConfig;
use cloudcoil_testing::ControlPlane;
use http::{Response, Version};
use serde_json::{Value, json};

use crate::raw::served;
use crate::worlds::{self, World, handler, local};

#[test]
fn an_api_server_asks_a_webhook_on_tokio() {
    asks::<worlds::Tokio>("an_api_server_asks_a_webhook_on_tokio", Version::HTTP_2);
}

#[test]
fn an_api_server_asks_a_webhook_on_async_std() {
    asks::<worlds::AsyncStd>("an_api_server_asks_a_webhook_on_async_std", Version::HTTP_11);
}

#[test]
fn an_api_server_asks_a_webhook_on_smol() {
    asks::<worlds::Smol>("an_api_server_asks_a_webhook_on_smol", Version::HTTP_11);
}

#[test]
fn an_api_server_asks_a_webhook_on_threads() {
    asks::<worlds::Threads>("an_api_server_asks_a_webhook_on_threads", Version::HTTP_11);
}

fn asks<W: World>(test: &str, version: Version) {
    let Some(plane) = ControlPlane::start_or_skip(test) else { return };
    let (old, new) = (Authority::generate(&[]).unwrap(), Authority::generate(&[]).unwrap());
    let webhook = handler(move |request| {
        assert_eq!(request.version(), version);
        review(request.body())
    });
    let server = W::listen(ListenConfig { tls: Some(served(&old)), ..local() }, webhook).unwrap();
    let url = format!("https://{}/validate", server.address());
    configure(&plane, &url, &[old.ca_pem(), new.ca_pem()].concat());

    let create = |name: &str| {
        let output = plane.kubectl().args(["create", "configmap", name, "--from-literal=a=b"]).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    // A configuration takes effect a moment after it was stored.
    let refused = loop {
        match create("forbidden") {
            (false, said) => break said,
            (true, _) => {
                assert!(plane.kubectl().args(["delete", "configmap", "forbidden"]).status().unwrap().success())
            }
        }
    };
    assert!(refused.contains("denied the request: this name is not to be had"), "{refused}");
    assert!(create("fine").0);
    server.reload(&served(&new)).unwrap();
    assert!(create("finer").0, "the certificate is another, and nobody has noticed");
    let (created, said) = create("panic");
    assert!(!created && said.contains("failed calling webhook"), "{said}");
    assert!(create("finest").0);
}

fn review(body: &[u8]) -> Response<Bytes> {
    let review: Value = serde_json::from_slice(body).unwrap();
    let request = &review["request"];
    let name = request["name"].as_str().unwrap();
    assert_ne!(name, "panic");
    let allowed = name != "forbidden";
    let answer = json!({
        "apiVersion": review["apiVersion"], "kind": review["kind"],
        "response": {"uid": request["uid"], "allowed": allowed, "status": {"message": "this name is not to be had"}},
    });
    let mut response = Response::new(Bytes::from(answer.to_string()));
    response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
    response
}

fn configure(plane: &ControlPlane, url: &str, ca: &str) {
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "names"},
        "webhooks": [{
            "name": "names.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Fail",
            "clientConfig": {"url": url, "caBundle": STANDARD.encode(ca)},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
        }],
    });
    let file = plane.folder().join("webhook.json");
    std::fs::write(&file, configuration.to_string()).unwrap();
    let applied = plane.kubectl().arg("create").arg("-f").arg(&file).output().unwrap();
    assert!(applied.status.success(), "{applied:?}");
}
