//! Ports for servers that may have to come back on the same one.
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use crate::Error;

/// A port of 127.0.0.1 on which nobody listens now.
///
/// It lies below the range from which Linux takes the ports of outgoing connections. One out of that range could be
/// lost while its server restarts, even to a client that tries to reach that very server.
pub(super) fn free() -> Result<u16, Error> {
    let mut last = io::Error::from(io::ErrorKind::AddrInUse);
    for attempt in 0..ATTEMPTS {
        let offset = RandomState::new().hash_one(attempt) % u64::from(LAST - FIRST + 1);
        let port = FIRST + u16::try_from(offset).expect("it is below the number of ports");
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(_) => return Ok(port),
            Err(error) => last = error,
        }
    }
    Err(Error::io("listen on a port of", Path::new("127.0.0.1"), last))
}

const FIRST: u16 = 20_000;
const LAST: u16 = 32_767;
const ATTEMPTS: u32 = 100;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ports_lie_below_those_of_outgoing_connections_and_vary() {
        let ports: BTreeSet<u16> = (0..20).map(|_| free().unwrap()).collect();
        assert!(ports.iter().all(|port| (FIRST..=LAST).contains(port)), "{ports:?}");
        assert!(ports.len() > 10, "{ports:?}");
    }
}
