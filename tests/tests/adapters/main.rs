//! The same scenarios on every executor: what works on one works on all.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod scenarios;
mod servers;

use cloudcoil_runtime::Client;
use cloudcoil_runtime::core::config::Config;

/// An executor and the clients that run on it.
trait Adapter {
    fn client(config: &Config) -> Client;

    fn block_on<T>(future: impl Future<Output = T>) -> T;
}

struct Tokio;

impl Adapter for Tokio {
    fn client(config: &Config) -> Client {
        <Client as cloudcoil_tokio::Connect>::try_from_config(config).unwrap()
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(future)
    }
}

struct AsyncStd;

impl Adapter for AsyncStd {
    fn client(config: &Config) -> Client {
        <Client as cloudcoil_async_std::Connect>::try_from_config(config).unwrap()
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        // What futures need to be polled to the end is nothing of an executor's own.
        futures_executor::block_on(future)
    }
}

struct Smol;

impl Adapter for Smol {
    fn client(config: &Config) -> Client {
        <Client as cloudcoil_smol::Connect>::try_from_config(config).unwrap()
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        futures_executor::block_on(future)
    }
}

macro_rules! on_every_executor {
    ($($scenario:ident),* $(,)?) => {
        mod tokio_runs { $(#[test] fn $scenario() { crate::scenarios::$scenario::<crate::Tokio>(); })* }
        mod async_std_runs { $(#[test] fn $scenario() { crate::scenarios::$scenario::<crate::AsyncStd>(); })* }
        mod smol_runs { $(#[test] fn $scenario() { crate::scenarios::$scenario::<crate::Smol>(); })* }
    };
}

on_every_executor!(
    every_verb_over_tcp,
    every_verb_over_tls,
    pages_and_watches_show_the_same_objects,
    a_controller_does_its_work,
    an_answer_may_be_cut_anywhere,
    an_answer_without_a_length_ends_with_its_connection,
    an_answer_that_breaks_off_is_an_error,
    connections_are_used_again,
    a_dropped_watch_closes_its_connection,
    a_silent_server_is_given_up,
    a_server_that_is_not_there_is_a_failure_to_connect,
    large_objects_pass_whole,
    many_watches_at_once,
    an_unknown_authority_is_refused,
    a_rejected_token_is_fetched_anew_once_for_all_who_wait,
    requests_go_through_a_proxy,
    a_program_that_leaves_something_behind_is_not_waited_for,
);
