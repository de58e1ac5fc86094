//! What is particular to kube-apiserver.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use ureq::Agent;

use super::certificates::{self, Authority};
use super::http;
use super::process::Folder;
use crate::Error;

/// An API server's address and credentials.
pub(super) struct ApiServer {
    agent: Agent,
    url: String,
    port: u16,
    admin_token: String,
}

/// A bearer token and the user that it stands for.
pub(super) struct Token {
    pub(super) token: String,
    pub(super) user: String,
    pub(super) groups: Vec<String>,
}

impl ApiServer {
    pub(super) fn new(agent: Agent, port: u16) -> Result<Self, Error> {
        Ok(Self { agent, url: format!("https://127.0.0.1:{port}"), port, admin_token: secret()? })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn admin_token(&self) -> &str {
        &self.admin_token
    }

    /// Writes the files that the flags name. Only flags that every supported version knows are used.
    pub(super) fn flags(
        &self,
        folder: &Folder,
        authority: &Authority,
        etcd_url: &str,
        tokens: &[Token],
    ) -> Result<BTreeMap<String, String>, Error> {
        let write = |name, text: &str| folder.write(name, text).map(|path| path.display().to_string());
        let (certificate, key) = authority.serving();
        let (signing, verifying) = certificates::service_account_keys()?;
        let flags = [
            ("etcd-servers", etcd_url.to_owned()),
            ("bind-address", "127.0.0.1".to_owned()),
            // Or it looks for an address of the machine to advertise, and ends on one that has no network.
            ("advertise-address", "127.0.0.1".to_owned()),
            ("endpoint-reconciler-type", "none".to_owned()),
            ("secure-port", self.port.to_string()),
            ("cert-dir", folder.path().join("kube-apiserver").display().to_string()),
            ("tls-cert-file", write("kube-apiserver.crt", certificate)?),
            ("tls-private-key-file", write("kube-apiserver.key", key)?),
            ("client-ca-file", write("ca.crt", &authority.pem())?),
            ("token-auth-file", write("tokens.csv", &self.token_file(tokens)?)?),
            ("service-account-issuer", "https://kubernetes.default.svc.cluster.local".to_owned()),
            ("service-account-key-file", write("service-accounts.pub", &verifying)?),
            ("service-account-signing-key-file", write("service-accounts.key", &signing)?),
            ("service-cluster-ip-range", "10.0.0.0/24".to_owned()),
            ("authorization-mode", "RBAC".to_owned()),
            ("allow-privileged", "true".to_owned()),
            // It refuses Pods until a controller has made their service account, and no controller runs here.
            ("disable-admission-plugins", "ServiceAccount".to_owned()),
        ];
        Ok(flags.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// Succeeds when requests can be served and namespace `default` is there, which clients take for granted.
    pub(super) fn probe(&self) -> Result<(), String> {
        for path in ["/readyz", "/api/v1/namespaces/default"] {
            let request = self.agent.get(format!("{}{path}", self.url));
            let request = request.header("authorization", format!("Bearer {}", self.admin_token));
            http::check(request.call()).map_err(|reason| format!("{path}: {reason}"))?;
        }
        Ok(())
    }

    /// <https://kubernetes.io/docs/reference/access-authn-authz/authentication/#static-token-file>
    fn token_file(&self, tokens: &[Token]) -> Result<String, Error> {
        let admin = line(&self.admin_token, ADMIN, &[MASTERS.to_owned()]);
        let others = tokens.iter().map(|token| {
            if token.token.is_empty() {
                return Err(misuse("user", &token.user, "its token is empty"));
            }
            match token.groups.iter().find(|group| group.contains(',')) {
                Some(group) => Err(misuse("group", group, "the token file separates groups by commas")),
                None => Ok(line(&token.token, &token.user, &token.groups)),
            }
        });
        [Ok(admin)].into_iter().chain(others).collect()
    }
}

/// The kubeconfig of one user; `user` is the YAML under `user:`.
pub(super) fn kubeconfig(url: &str, ca_pem: &str, user: &[(&str, String)]) -> String {
    let credentials: String = user.iter().map(|(name, value)| format!("    {name}: {value}\n")).collect();
    format!(
        "apiVersion: v1
kind: Config
current-context: cloudcoil
clusters:
- name: cloudcoil
  cluster:
    server: {url}
    certificate-authority-data: {}
contexts:
- name: cloudcoil
  context:
    cluster: cloudcoil
    user: cloudcoil
users:
- name: cloudcoil
  user:
{credentials}",
        STANDARD.encode(ca_pem)
    )
}

fn line(token: &str, user: &str, groups: &[String]) -> String {
    // The third column is the user's uid, which nothing here looks at.
    [token, user, user, &groups.join(",")].map(quoted).join(",") + "\n"
}

fn quoted(field: &str) -> String {
    format!("\"{}\"", field.replace('"', "\"\""))
}

fn misuse(what: &'static str, value: &str, reason: &'static str) -> Error {
    Error::Misuse { what, value: value.to_owned(), reason }
}

/// 128 random bits as text.
fn secret() -> Result<String, Error> {
    let source = Path::new("/dev/urandom");
    let mut bytes = [0; 16];
    let read = File::open(source).and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|error| Error::io("read", source, error))?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

pub(super) const ADMIN: &str = "admin";
/// Members may do everything, whatever the authorization mode says.
pub(super) const MASTERS: &str = "system:masters";

pub(super) const SERVED_NAMES: &[&str] = &["kubernetes.default.svc"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_fields_are_quoted() {
        assert_eq!(line("t", "a\"b,c", &["x".into(), "y z".into()]), "\"t\",\"a\"\"b,c\",\"a\"\"b,c\",\"x,y z\"\n");
    }

    #[test]
    fn secrets_differ() {
        assert_ne!(secret().unwrap(), secret().unwrap());
    }
}
