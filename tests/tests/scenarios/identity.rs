//! Client certificates, and who they show, at both servers.

use cloudcoil_apiserver::Tls;
use cloudcoil_testing::ControlPlane;
use cloudcoil_tokio::core::Answer;
use cloudcoil_tokio::prelude::*;
use http::Request;
use serde_json::{Value, json};

use crate::answer::differences;
use crate::side::{self, Sides, client};

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_shows_who_one_is() {
    let Some(plane) = side::real(ControlPlane::builder(), "a_certificate_shows_who_one_is") else { return };
    let sides = Sides::start(plane).await;
    let groups = ["devs", "ops"];
    let real = sides.plane.client_certificate("jane", &groups).unwrap();
    let real = client(&sides.plane.kubeconfig_with_certificate(&real)).await;
    let memory = sides.server.tls().unwrap().client_certificate("jane", &groups).unwrap();
    let memory = client(&sides.server.kubeconfig_with_certificate(&memory)).await;
    let [real, memory] = [who(&real).await, who(&memory).await].map(without_fingerprint);
    assert_eq!(differences(&real, &memory), Vec::<String>::new());
    assert_eq!(
        (&memory["username"], &memory["groups"]),
        (&json!("jane"), &json!(["devs", "ops", "system:authenticated"]))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_of_another_authority_is_nobodys() {
    let test = "a_certificate_of_another_authority_is_nobodys";
    let Some(plane) = side::real(ControlPlane::builder(), test) else { return };
    let sides = Sides::start(plane).await;
    let stranger = Tls::generate(&[]).unwrap().client_certificate("jane", &["system:masters"]).unwrap();
    let memory = client(&sides.server.kubeconfig_with_certificate(&stranger)).await;
    let mut mixed = sides.plane.client_certificate("x", &[]).unwrap();
    (mixed.certificate_pem, mixed.key_pem) = (stranger.certificate_pem, stranger.key_pem);
    let real = client(&sides.plane.kubeconfig_with_certificate(&mixed)).await;
    for client in [&real, &memory] {
        assert_eq!(ask(client, &[]).await.status, 401);
    }
    // A good token is good all the same.
    for client in [&real, &memory] {
        let answer = ask(client, &[("authorization", "Bearer bob-token")]).await;
        assert_eq!(body(&answer)["status"]["userInfo"]["username"], "bob");
    }
}

async fn ask(client: &Client, headers: &[(&str, &str)]) -> Answer {
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let mut request = Request::post(path).header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    client.request(request.body("{}".into()).unwrap()).await.unwrap()
}

async fn who(client: &Client) -> Value {
    let answer = ask(client, &[]).await;
    assert_eq!(answer.status, 201, "{}", String::from_utf8_lossy(&answer.body));
    body(&answer)["status"]["userInfo"].clone()
}

fn body(answer: &Answer) -> Value {
    serde_json::from_slice(&answer.body).unwrap()
}

/// The user without what names the certificate itself.
fn without_fingerprint(mut user: Value) -> Value {
    let id = &mut user["extra"]["authentication.kubernetes.io/credential-id"][0];
    let fingerprint = id.as_str().and_then(|id| id.strip_prefix("X509SHA256=")).unwrap_or_default();
    assert_eq!(fingerprint.len(), 64, "{id}");
    *id = json!("<fingerprint>");
    user
}
