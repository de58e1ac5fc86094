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

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let credentials = if self.credentials.is_some() { ", with credentials" } else { "" };
        let (open, close) = if self.host.contains(':') { ("[", "]") } else { ("", "") };
        write!(f, "Proxy({}://{open}{}{close}:{}{credentials})", self.scheme.as_str(), self.host, self.port)
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
