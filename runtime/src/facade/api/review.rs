//! Who the server takes a client for.

use cloudcoil_core::Error;
use cloudcoil_core::k8s_openapi::api::authentication::v1::{SelfSubjectReview, UserInfo};

use super::{Client, dual};

#[dual]
impl Client {
    /// Asks the server who it takes this client for: user, groups, and what else it knows.
    ///
    /// See <https://kubernetes.io/docs/reference/access-authn-authz/authentication/#self-subject-review>.
    ///
    /// # Errors
    /// As [`Api::get`](super::Api::get).
    pub async fn whoami(&self) -> Result<UserInfo, Error> {
        let review = self.api::<SelfSubjectReview>().create(&SelfSubjectReview::default()).send().await?;
        Ok(review.status.and_then(|status| status.user_info).unwrap_or_default())
    }
}
