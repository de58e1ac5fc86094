//! Gives a Deployment another image, and waits until its new pods are available.
//!
//! ```text
//! cargo run --example rollout -- NAME CONTAINER IMAGE
//! ```

use std::process::ExitCode;
use std::time::Duration;

use cloudcoil_blocking::core::k8s_openapi::api::apps::v1::Deployment;
use cloudcoil_blocking::{Client, prelude::*};
use serde_json::json;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, container, image] = &arguments[..] else {
        eprintln!("Usage: rollout NAME CONTAINER IMAGE");
        return ExitCode::from(2);
    };
    match roll_out(name, container, image) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rollout: {error}");
            ExitCode::FAILURE
        }
    }
}

fn roll_out(name: &str, container: &str, image: &str) -> Result<(), Error> {
    let deployments = Client::try_default()?.api::<Deployment>();
    let containers = json!([{"name": container, "image": image}]);
    let patch = Patch::Strategic(json!({"spec": {"template": {"spec": {"containers": containers}}}}));
    let wanted = deployments.patch(name, patch).field_manager("rollout").send()?;
    let generation = wanted.metadata.generation;
    println!("{name}: waiting for generation {}", generation.unwrap_or_default());
    let is_rolled_out = move |deployment: &Deployment| {
        let Some(status) = &deployment.status else { return false };
        let replicas = deployment.spec.replicas.unwrap_or(1);
        status.observed_generation >= generation
            && status.updated_replicas.unwrap_or(0) >= replicas
            && status.available_replicas.unwrap_or(0) >= replicas
            && status.replicas.unwrap_or(0) <= status.updated_replicas.unwrap_or(0)
    };
    deployments.wait_for(name).when("rolled out", is_rolled_out).timeout(Duration::from_secs(600)).wait()?;
    println!("{name}: rolled out");
    Ok(())
}
