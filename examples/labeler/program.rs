//! The program around the operator, written once as the operator is.

use cloudcoil_core::Resource as _;
use k8s_openapi::api::core::v1::ConfigMap;

use super::{Client, World, controller, dual};
use crate::asynchronous::operator::LABEL;
use crate::server::Server;
use crate::{Done, Work};

/// Runs the operator until the process is asked to end.
#[dual]
pub(crate) async fn run(work: &Work, world: World) -> Done {
    let Work::Dev(file) = work else {
        let client = world.client(None).await?;
        return Ok(controller().run(client, world.stop()).await?);
    };
    let server = Server::start(file.as_deref())?;
    let client = world.client(Some(server.kubeconfig())).await?;
    server.introduce();
    create_a_few(&client).await?;
    controller().run(client, world.stop()).await?;
    Ok(server.stop()?)
}

#[dual]
async fn create_a_few(client: &Client) -> Done {
    let maps = client.api::<ConfigMap>();
    for (name, key, value) in [("greeting", "hello", "world"), ("colors", "sky", "blue")] {
        let mut map = ConfigMap { data: Some([(key.to_owned(), value.to_owned())].into()), ..ConfigMap::default() };
        map.metadata_mut().set_name(name);
        map.metadata_mut().set_label(LABEL, "true");
        maps.create(&map).send().await?;
    }
    Ok(())
}
