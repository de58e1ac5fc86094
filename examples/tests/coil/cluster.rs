//! The API server in memory, for the program.

use std::sync::Mutex;
use std::time::Instant;

use cloudcoil_apiserver::{ApiServer, ServerConfig, ServerHandle, serve};
use cloudcoil_tokio::core::{HttpEvent, Now, Outbox};

use crate::program::{Ended, Home, PATIENCE, Runtime};

/// A server in memory, and a folder to run the program in.
pub(crate) struct Cluster {
    pub(crate) home: Home,
    pub(crate) url: String,
    server: Mutex<Option<ServerHandle>>,
    runtime: tokio::runtime::Runtime,
}

impl Cluster {
    pub(crate) fn new(on: Runtime) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let server = runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            serve(ServerConfig::default(), listener).unwrap()
        });
        let (home, url) = (Home::new(on, &server.kubeconfig()), server.url());
        Self { home, url, server: Mutex::new(Some(server)), runtime }
    }

    /// Does something with the server itself.
    pub(crate) fn act<T: Send + 'static>(
        &self,
        action: impl FnOnce(&mut ApiServer, Now, &mut Outbox<HttpEvent>) -> T + Send + 'static,
    ) -> T {
        let server = self.server.lock().unwrap();
        self.runtime.block_on(server.as_ref().unwrap().with(action)).unwrap()
    }

    /// Waits until so many watches are open.
    pub(crate) fn wait_for_watches(&self, count: usize) {
        let began = Instant::now();
        while self.act(|server, _, _| server.open_watches()) != count {
            assert!(began.elapsed() < PATIENCE, "there are not {count} watches");
            std::thread::yield_now();
        }
    }

    /// Runs a line of words; what is printed must be as expected, and nothing may go to the other stream.
    pub(crate) fn ok(&self, line: &str, stdout: &str) {
        let ended = self.home.coil(&words(line));
        let expected = Ended { code: Some(0), stdout: stdout.to_owned(), stderr: String::new() };
        assert_eq!(ended, expected, "coil {line}");
    }

    /// Runs a line of words, which must fail with one line that has this part.
    pub(crate) fn fails(&self, line: &str, code: i32, part: &str) {
        let ended = self.home.coil(&words(line));
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(code), ""), "coil {line}: {ended:?}");
        assert!(ended.stderr.starts_with("error: ") && ended.stderr.lines().count() == 1, "coil {line}: {ended:?}");
        assert!(ended.stderr.contains(part), "coil {line}: {ended:?}");
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(server) = self.server.lock().unwrap().take() {
            self.runtime.block_on(server.shutdown());
        }
    }
}

/// The words of a line.
pub(crate) fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}
