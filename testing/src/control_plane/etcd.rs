//! What is particular to etcd.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use ureq::Agent;

use super::http;
use crate::Error;

/// An etcd server's address and the name that tells it from another's.
pub(super) struct Etcd {
    agent: Agent,
    url: String,
    name: String,
}

impl Etcd {
    pub(super) fn new(agent: Agent, port: u16, name: String) -> Self {
        Self { agent, url: format!("http://127.0.0.1:{port}"), name }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn flags(&self, data: &str) -> BTreeMap<String, String> {
        let flags = [
            ("name", self.name.as_str()),
            ("data-dir", data),
            ("listen-client-urls", &self.url),
            ("advertise-client-urls", &self.url),
            // Alone in its cluster, it is called by no peer.
            ("listen-peer-urls", "http://127.0.0.1:0"),
            ("unsafe-no-fsync", "true"),
        ];
        flags.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// Succeeds when this very server answers, and not another one that has taken its port.
    pub(super) fn probe(&self) -> Result<(), String> {
        let answer = self.call("/v3/cluster/member/list", &json!({})).map_err(|error| error.to_string())?;
        if answer["members"][0]["name"] == self.name.as_str() {
            Ok(())
        } else {
            Err(format!("{} is another etcd: {answer}", self.url))
        }
    }

    /// Makes every revision up to now unreadable, and returns the oldest one that still is readable.
    pub(super) fn compact(&self) -> Result<u64, Error> {
        // Compaction at R leaves R readable, and a watch after R - 1 possible. Two writes put R beyond both.
        let put = json!({ "key": STANDARD.encode("cloudcoil-testing/compaction"), "value": "" });
        self.call("/v3/kv/put", &put)?;
        let answer = self.call("/v3/kv/put", &put)?;
        let revision = answer["header"]["revision"].as_str().and_then(|text| text.parse().ok());
        let revision: u64 =
            revision.ok_or_else(|| self.failed("/v3/kv/put", format!("no revision in its header: {answer}")))?;
        self.call("/v3/kv/compaction", &json!({ "revision": revision.to_string(), "physical": true }))?;
        Ok(revision)
    }

    fn call(&self, path: &str, body: &Value) -> Result<Value, Error> {
        let request = self.agent.post(format!("{}{path}", self.url)).header("content-type", "application/json");
        let text = http::check(request.send(body.to_string())).map_err(|reason| self.failed(path, reason))?;
        serde_json::from_str(&text).map_err(|error| self.failed(path, format!("{error}: {text}")))
    }

    fn failed(&self, path: &str, reason: String) -> Error {
        Error::Etcd { url: format!("{}{path}", self.url), reason }
    }
}
