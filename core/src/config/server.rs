//! Addresses of API servers.

use http::Uri;
use http::uri::PathAndQuery;

/// Reads an address as `kubectl` does: without a scheme it is `http`. A query and a fragment mean nothing.
pub(super) fn parse(text: &str) -> Result<Uri, &'static str> {
    let text = text.trim();
    let has_scheme = text.contains("://");
    let scheme = if has_scheme { "" } else { "http://" };
    let uri: Uri = format!("{scheme}{text}").parse().map_err(|_| "not a URL")?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err("neither an http nor an https URL");
    }
    let authority = uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
    if authority.contains('@') {
        return Err("a URL must not hold a user name or a password");
    }
    if uri.host().unwrap_or_default().is_empty() {
        return Err("a URL without a host");
    }
    let port = authority.rsplit_once(':').map(|(_, port)| port).filter(|port| !port.ends_with(']'));
    if port.is_some_and(|port| !port.is_empty() && uri.port_u16().is_none()) {
        return Err("the port is no number up to 65535");
    }
    if !has_scheme && uri.path() != "/" {
        return Err("a URL with a path needs its scheme");
    }
    let mut parts = uri.into_parts();
    let path = parts.path_and_query.as_ref().map_or("/", PathAndQuery::path).to_owned();
    parts.path_and_query = path.parse().ok();
    Uri::from_parts(parts).map_err(|_| "not a URL")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_left_out_may_be_left_out() {
        for (text, expected) in [
            ("127.0.0.1:8001", "http://127.0.0.1:8001/"),
            ("localhost", "http://localhost/"),
            ("api.internal:6443/", "http://api.internal:6443/"),
            ("[::1]:6443", "http://[::1]:6443/"),
            ("https://a", "https://a/"),
            ("https://a:1/", "https://a:1/"),
            ("https://a:1/k8s/c/", "https://a:1/k8s/c/"),
            ("https://a:1/k8s?x=y#z", "https://a:1/k8s"),
            ("https://a:1?x=y", "https://a:1/"),
            ("https://a/%2f", "https://a/%2f"),
            (" HTTPS://[fd00::1]:6443 \n", "https://[fd00::1]:6443/"),
        ] {
            assert_eq!(parse(text).unwrap(), expected, "{text:?}");
        }
    }

    #[test]
    fn what_is_no_server_is_refused() {
        for text in [
            "",
            "https://",
            "https:///x",
            "https://:1",
            "ftp://a",
            "https://me:word@a",
            "https://a b",
            "/only/path",
            "a/path",
            "::1",
            "https://a:99999",
            "https://a:x",
            "unix:///run/socket",
        ] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
