//! Addresses of API servers.

use http::Uri;

/// Reads an address as `kubectl` does: without a scheme it is `https` when TLS settings go with it, else `http`.
pub(super) fn parse(text: &str, has_tls_settings: bool) -> Result<Uri, &'static str> {
    let text = text.trim();
    let scheme = match text.split_once("://") {
        Some(_) => "",
        None if has_tls_settings => "https://",
        None => "http://",
    };
    let uri: Uri = format!("{scheme}{text}").parse().map_err(|_| "not a URL")?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err("neither an http nor an https URL");
    }
    match uri.authority() {
        Some(authority) if authority.as_str().contains('@') => Err("a URL must not hold a user name or a password"),
        Some(authority) if !authority.host().is_empty() => Ok(uri),
        _ => Err("a URL without a host"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheme_may_be_left_out() {
        assert_eq!(parse("127.0.0.1:8001", false).unwrap(), "http://127.0.0.1:8001/");
        assert_eq!(parse("api.internal:6443/k8s", true).unwrap(), "https://api.internal:6443/k8s");
        assert_eq!(parse(" HTTPS://[::1]:6443 \n", false).unwrap().host(), Some("[::1]"));
    }

    #[test]
    fn what_is_no_server_is_refused() {
        for text in ["", "https://", "ftp://a", "https://me:word@a", "https://a b", "/only/path"] {
            assert!(parse(text, false).is_err(), "{text:?}");
        }
    }
}
