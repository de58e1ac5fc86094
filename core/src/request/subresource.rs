//! Requests about parts of objects that have types of their own.

use bytes::Bytes;
use http::{HeaderValue, Request, header};
use serde_json::{Value, json};

use super::{DeleteParams, Patch, PatchParams, Requests, WriteParams, build, typed};
use crate::error::Error;
use crate::log::LogParams;

impl Requests {
    /// Evicts a pod: a deletion that disruption budgets may refuse, with 429. See
    /// <https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/>.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn evict(&self, name: &str, params: &DeleteParams) -> Result<Request<Bytes>, Error> {
        let mut body = json!({"metadata": {"name": name, "namespace": self.namespace()}});
        if *params != DeleteParams::default() {
            body["deleteOptions"] = params.body();
        }
        // Both places count, and an old server looks only here.
        let write = WriteParams { dry_run: params.dry_run, ..WriteParams::default() };
        self.create_subresource(name, "eviction", &body, &write)
    }

    /// Sets the number of replicas, and nothing else.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn set_replicas(&self, name: &str, replicas: u32, params: &WriteParams) -> Result<Request<Bytes>, Error> {
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        let params = PatchParams { write: params.clone(), force: false };
        self.patch(name, Some("scale"), &patch, &params)
    }

    /// Reads what a container of a pod has written. A refusal is JSON, anything else text.
    ///
    /// # Errors
    /// As [`get`](Self::get); [`Error::Misuse`] when the parameters exclude each other.
    pub fn log(&self, name: &str, params: &LogParams) -> Result<Request<Bytes>, Error> {
        let mut query = self.object_path(name, Some("log"))?.query();
        params.write(&mut query)?;
        let mut request = build(Request::get(query.finish().0), Bytes::new(), "application/json")?;
        request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static("application/json, */*"));
        Ok(request)
    }

    /// A body with the type that the subresource has, unless it says its own or the subresource is not one of Kubernetes'.
    pub(super) fn subresource_body(&self, subresource: &str, body: Value) -> Result<Value, Error> {
        match subresource {
            "scale" => typed(body, "autoscaling/v1", "Scale"),
            "eviction" => typed(body, "policy/v1", "Eviction"),
            "token" => typed(body, "authentication.k8s.io/v1", "TokenRequest"),
            "binding" => typed(body, "v1", "Binding"),
            "status" | "ephemeralcontainers" | "resize" | "approval" | "finalize" => {
                typed(body, &self.resource_type.api_version(), &self.resource_type.kind)
            }
            _ => Ok(body),
        }
    }
}
