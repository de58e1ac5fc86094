//! Whether connections go through a proxy, and through which.

use std::fmt;
use std::net::IpAddr;

use http::Uri;
use percent_encoding::percent_decode_str;

use super::{Environment, Secret};

/// The proxy that every connection to the API server goes through.
///
/// ```
/// use cloudcoil_core::config::{Proxy, ProxyScheme};
///
/// let proxy = Proxy::parse("socks5://me:secret@10.0.0.1").unwrap();
/// assert_eq!((proxy.scheme, proxy.host.as_str(), proxy.port), (ProxyScheme::Socks5, "10.0.0.1", 1080));
/// assert_eq!(format!("{proxy:?}"), "Proxy(socks5://10.0.0.1:1080, with credentials)");
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Proxy {
    /// How it is spoken to.
    pub scheme: ProxyScheme,
    /// Its name or address; an IPv6 address has no brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// What it wants to know of who connects.
    pub credentials: Option<ProxyCredentials>,
}

/// How a proxy is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "whoever connects must know each of them")]
pub enum ProxyScheme {
    /// `CONNECT` over plain HTTP (RFC 9110, section 9.3.6).
    Http,
    /// `CONNECT` over TLS; the machine's own authorities vouch for the proxy.
    Https,
    /// SOCKS version 5 (RFC 1928). As in Go, the server's name goes to the proxy, which looks it up.
    Socks5,
    /// The same.
    Socks5h,
}

/// A user name and a password, neither of which is shown.
#[derive(Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "proxies know no other credentials")]
pub struct ProxyCredentials {
    /// The user name.
    pub username: Secret,
    /// The password; empty when there is none.
    pub password: Secret,
}

impl ProxyScheme {
    const ALL: [Self; 4] = [Self::Http, Self::Https, Self::Socks5, Self::Socks5h];

    /// The scheme as it stands in a URL.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Socks5 => "socks5",
            Self::Socks5h => "socks5h",
        }
    }

    const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
            Self::Socks5 | Self::Socks5h => 1080,
        }
    }
}

impl Proxy {
    /// Reads a URL with its scheme; a path, a query and a fragment mean nothing and are passed over.
    ///
    /// # Errors
    /// What is wrong with it. The text itself is not in there: it may hold a password.
    pub fn parse(url: &str) -> Result<Self, &'static str> {
        let (scheme, rest) = url.split_once("://").ok_or("not a URL with a scheme")?;
        let scheme = ProxyScheme::ALL.into_iter().find(|known| known.as_str().eq_ignore_ascii_case(scheme));
        let scheme = scheme.ok_or("the scheme must be http, https, socks5 or socks5h")?;
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let (credentials, address) = match authority.rsplit_once('@') {
            Some((userinfo, address)) => (Some(credentials(userinfo)?), address),
            None => (None, authority),
        };
        let (host, port) = split_port(address)?;
        if host.is_empty() || host.bytes().any(|byte| byte.is_ascii_control() || b" \"<>\\^`{|}".contains(&byte)) {
            return Err("a URL without a usable host");
        }
        let host = decode(host)?;
        Ok(Self { scheme, host, port: port.unwrap_or_else(|| scheme.default_port()), credentials })
    }

    /// The proxy for a server, as the environment has it; with the variable that says so.
    ///
    /// Machines' own addresses (`localhost` and loopback) never have one.
    /// See <https://pkg.go.dev/golang.org/x/net/http/httpproxy#Config>, which `kubectl` goes by.
    pub(super) fn from_environment(
        environment: &Environment,
        server: &Uri,
    ) -> Option<(&'static str, Result<Self, &'static str>)> {
        let is_tls = server.scheme_str() == Some("https");
        let (variable, url) = match is_tls {
            true => ("HTTPS_PROXY", &environment.https_proxy),
            false => ("HTTP_PROXY", &environment.http_proxy),
        };
        let url = url.as_deref().filter(|url| !url.is_empty())?;
        let host = server.host().unwrap_or_default();
        let port = server.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        if goes_direct(host, port, environment.no_proxy.as_deref().unwrap_or_default()) {
            return None;
        }
        // A host alone will do in a variable.
        let proxy = match url.contains("://") {
            true => Self::parse(url),
            false => Self::parse(&format!("http://{url}")),
        };
        Some((variable, proxy))
    }
}

/// Its address, without credentials.
impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (open, close) = if self.host.contains(':') { ("[", "]") } else { ("", "") };
        write!(f, "{}://{open}{}{close}:{}", self.scheme.as_str(), self.host, self.port)
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let credentials = if self.credentials.is_some() { ", with credentials" } else { "" };
        write!(f, "Proxy({self}{credentials})")
    }
}

fn credentials(userinfo: &str) -> Result<ProxyCredentials, &'static str> {
    let (username, password) = userinfo.split_once(':').unwrap_or((userinfo, ""));
    let secret = |text| decode(text).map(Secret::new);
    Ok(ProxyCredentials { username: secret(username)?, password: secret(password)? })
}

fn decode(text: &str) -> Result<String, &'static str> {
    let mut escapes = text.split('%').skip(1);
    if !escapes.all(|rest| rest.len() >= 2 && rest.bytes().take(2).all(|byte| byte.is_ascii_hexdigit())) {
        return Err("a URL with a broken escape");
    }
    percent_decode_str(text).decode_utf8().map(Into::into).map_err(|_| "a URL whose escapes are no text")
}

/// A host without its brackets, and a port if there is one.
fn split_port(address: &str) -> Result<(&str, Option<u16>), &'static str> {
    let (host, port) = match address.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or("an address without its closing bracket")?;
            let is_ip = host.split('%').next().is_some_and(|host| host.parse::<std::net::Ipv6Addr>().is_ok());
            match (is_ip, rest.strip_prefix(':')) {
                (false, _) => return Err("no IPv6 address between the brackets"),
                (true, None) if !rest.is_empty() => return Err("something other than a port behind the address"),
                (true, port) => (host, port),
            }
        }
        None => address.rsplit_once(':').map_or((address, None), |(host, port)| (host, Some(port))),
    };
    if !address.starts_with('[') && host.contains(':') {
        return Err("an IPv6 address needs brackets");
    }
    match port.filter(|port| !port.is_empty()) {
        None => Ok((host, None)),
        Some(port) => match port.parse() {
            Ok(number) if port.bytes().all(|byte| byte.is_ascii_digit()) => Ok((host, Some(number))),
            _ => Err("the port is no number up to 65535"),
        },
    }
}

/// Whether a server is reached without the proxies of the environment.
fn goes_direct(host: &str, port: u16, no_proxy: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    let address = host.parse::<IpAddr>().ok().map(|address| address.to_canonical());
    if host == "localhost" || address.is_some_and(|address| address.is_loopback()) {
        return true;
    }
    no_proxy.split(',').any(|entry| matches_entry(&entry.trim().to_ascii_lowercase(), &host, address, port))
}

/// Whether an entry of `NO_PROXY` means a host, which is an address if `address` is there.
fn matches_entry(entry: &str, host: &str, address: Option<IpAddr>, port: u16) -> bool {
    if entry == "*" {
        return true;
    }
    if let Some(network) = Network::parse(entry) {
        return address.is_some_and(|address| network.contains(address));
    }
    let (name, wanted_port) = match entry.parse::<IpAddr>() {
        Ok(_) => (entry, None),
        Err(_) => match entry.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
            _ => (entry, None),
        },
    };
    if wanted_port.is_some_and(|wanted| !wanted.is_empty() && wanted != port.to_string()) {
        return false;
    }
    let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    if let Ok(wanted) = name.parse::<IpAddr>() {
        return address == Some(wanted.to_canonical());
    }
    let name = name.strip_prefix('*').filter(|name| name.starts_with('.')).unwrap_or(name);
    match name.strip_prefix('.') {
        _ if name.is_empty() => false,
        Some(_) => host.ends_with(name),
        None => host == name || host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.')),
    }
}

/// Addresses that begin with the same bits.
struct Network {
    address: IpAddr,
    bits: u32,
}

impl Network {
    fn parse(text: &str) -> Option<Self> {
        let (address, bits) = text.split_once('/')?;
        let address = address.parse::<IpAddr>().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.parse::<u32>().ok().filter(|bits| *bits <= most)?;
        Some(Self { address, bits })
    }

    fn contains(&self, other: IpAddr) -> bool {
        match (self.address, other) {
            (IpAddr::V4(network), IpAddr::V4(other)) => {
                (network.to_bits() ^ other.to_bits()).leading_zeros() >= self.bits
            }
            (IpAddr::V6(network), IpAddr::V6(other)) => {
                (network.to_bits() ^ other.to_bits()).leading_zeros() >= self.bits
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(https: &str, http: &str, none: &str) -> Environment {
        let set = |text: &str| Some(text.to_owned());
        Environment { https_proxy: set(https), http_proxy: set(http), no_proxy: set(none), ..Default::default() }
    }

    /// The proxy for a server, as text.
    fn chosen(environment: &Environment, server: &str) -> String {
        match Proxy::from_environment(environment, &server.parse().unwrap()) {
            None => "direct".to_owned(),
            Some((_, Ok(proxy))) => format!("{}:{}", proxy.host, proxy.port),
            Some((variable, Err(problem))) => format!("{variable}: {problem}"),
        }
    }

    #[test]
    fn each_scheme_has_its_variable() {
        let both = environment("http://px:3128", "http://bad:1", ".corp.example,10.0.0.0/8");
        for (server, expected) in [
            ("https://10.1.2.3:6443", "direct"),
            ("https://k.corp.example", "direct"),
            ("https://k.example.org", "px:3128"),
            ("http://k.example.org", "bad:1"),
            ("https://corp.example", "px:3128"),
            ("https://11.0.0.1", "px:3128"),
            ("https://localhost:6443", "direct"),
            ("https://127.0.0.1", "direct"),
            ("https://127.8.9.1", "direct"),
            ("https://[::1]:6443", "direct"),
            ("https://[::ffff:127.0.0.1]", "direct"),
            ("http://LOCALHOST", "direct"),
            ("https://localhost.example", "px:3128"),
        ] {
            assert_eq!(chosen(&both, server), expected, "{server}");
        }
        assert_eq!(chosen(&environment("", "http://bad:1", ""), "https://k.example.org"), "direct");
        assert_eq!(chosen(&Environment::default(), "https://k.example.org"), "direct");
    }

    #[test]
    fn no_proxy_takes_names_domains_addresses_networks_and_ports() {
        for (entry, server, is_direct) in [
            ("*", "https://a.b", true),
            ("x, * ,y", "https://a.b", true),
            ("a.b", "https://a.b", true),
            ("a.b", "https://x.a.b", true),
            ("a.b", "https://xa.b", false),
            ("A.b", "https://a.B", true),
            (".a.b", "https://a.b", false),
            (".a.b", "https://x.a.b", true),
            ("*.a.b", "https://x.a.b", true),
            ("*.a.b", "https://a.b", false),
            ("a.b:6443", "https://a.b:6443", true),
            ("a.b:6443", "https://a.b", false),
            ("a.b:443", "https://a.b", true),
            (".b:443", "https://a.b", true),
            ("a.b:", "https://a.b", true),
            (":443", "https://a.b", false),
            ("10.0.0.1", "https://10.0.0.1", true),
            ("10.0.0.1", "https://10.0.0.10", false),
            ("10.0.0.1:6443", "https://10.0.0.1:6443", true),
            ("10.0.0.1:6443", "https://10.0.0.1", false),
            ("10.0.0.0/8", "https://10.200.0.1", true),
            ("10.0.0.0/31", "https://10.0.0.2", false),
            ("0.0.0.0/0", "https://1.2.3.4", true),
            ("10.0.0.0/33", "https://10.0.0.1", false),
            ("10.0.0.0/8", "https://k.example", false),
            ("fd00::/8", "https://[fd12::1]:6443", true),
            ("fd00::/8", "https://10.0.0.1", false),
            ("fd00::1", "https://[fd00::1]", true),
            ("[fd00::1]:6443", "https://[fd00::1]:6443", true),
            ("[fd00::1]:6443", "https://[fd00::1]", false),
            ("[fd00::1]", "https://[fd00:0:0::1]", true),
            ("::ffff:10.0.0.1", "https://10.0.0.1", true),
            (", ,,", "https://a.b", false),
            ("https://a.b", "https://a.b", false),
        ] {
            let found = chosen(&environment("px:1", "", entry), server);
            assert_eq!(found, if is_direct { "direct" } else { "px:1" }, "{entry} {server}");
        }
    }

    #[test]
    fn a_proxy_is_read_with_its_credentials_and_its_default_port() {
        for (url, expected) in [
            ("http://px", "Proxy(http://px:80)"),
            ("HTTPS://px/", "Proxy(https://px:443)"),
            ("socks5://s:1081?x#y", "Proxy(socks5://s:1081)"),
            ("socks5h://[fd00::1]", "Proxy(socks5h://[fd00::1]:1080)"),
            ("http://px:", "Proxy(http://px:80)"),
            ("http://me:p%40s%3As@px:8080", "Proxy(http://px:8080, with credentials)"),
            ("http://me@px", "Proxy(http://px:80, with credentials)"),
        ] {
            assert_eq!(format!("{:?}", Proxy::parse(url).unwrap()), expected, "{url}");
        }
        let credentials = Proxy::parse("http://m%65:p%40s:s@px").unwrap().credentials.unwrap();
        assert_eq!((credentials.username.expose(), credentials.password.expose()), (&b"me"[..], &b"p@s:s"[..]));
    }

    #[test]
    fn what_is_no_proxy_is_refused_without_its_text() {
        for url in [
            "",
            "px",
            "px:3128",
            "//px",
            "://px",
            "ftp://px",
            "socks4://px",
            "http://",
            "http://:1",
            "http:///x",
            "http://p x",
            "http://px:x",
            "http://px:99999",
            "http://px:+1",
            "http://::1",
            "http://[::1",
            "http://[x]",
            "http://[::1]x",
            "http://me:%zz@px",
            "http://me:%@px",
            "http://me:%ff@px",
        ] {
            assert!(Proxy::parse(url).is_err(), "{url:?}");
        }
        let found = chosen(&environment("ftp://me:s3cret@px", "", ""), "https://a.b");
        assert_eq!(found, "HTTPS_PROXY: the scheme must be http, https, socks5 or socks5h");
    }

    #[test]
    fn variables_may_be_in_small_letters_and_empty_ones_are_unset() {
        let variables = [
            ("HTTPS_PROXY", ""),
            ("https_proxy", "low"),
            ("HTTP_PROXY", "UP"),
            ("http_proxy", "low"),
            ("no_proxy", "x"),
        ];
        let environment = Environment::from_variables(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).into())
        });
        let found = [&environment.https_proxy, &environment.http_proxy, &environment.no_proxy];
        assert_eq!(found.map(|value| value.as_deref()), [Some("low"), Some("UP"), Some("x")]);
    }
}
