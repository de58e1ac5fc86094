//! The listeners of all adapters: the same scenarios on each, over raw connections, through the adapters' own clients, and called by a
//! real API server.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod http2;
mod limits;
mod raw;
mod scenarios;
mod stops;
mod webhook;
mod worlds;

macro_rules! on_every_adapter {
    ($($group:ident: $($scenario:ident),*;)*) => {
        mod tokio_listens { $($(#[test] fn $scenario() { crate::$group::$scenario::<crate::worlds::Tokio>(); })*)* }
        mod async_std_listens { $($(#[test] fn $scenario() { crate::$group::$scenario::<crate::worlds::AsyncStd>(); })*)* }
        mod smol_listens { $($(#[test] fn $scenario() { crate::$group::$scenario::<crate::worlds::Smol>(); })*)* }
        mod threads_listen { $($(#[test] fn $scenario() { crate::$group::$scenario::<crate::worlds::Threads>(); })*)* }
    };
}

on_every_adapter!(
    scenarios: requests_are_served_over_tcp_and_tls,
        requests_may_be_sent_before_the_answers_to_others,
        a_client_that_asks_first_is_told_to_go_on,
        a_handler_that_panics_is_answered_for_and_the_rest_goes_on,
        what_could_be_read_in_two_ways_is_refused,
        a_certificate_is_replaced_while_connections_are_open,
        clients_are_known_by_their_certificates,
        the_clients_of_all_adapters_are_served,
        what_cannot_listen_says_why,
        many_connections_at_once;
    limits: bodies_are_limited_to_the_byte,
        a_client_that_is_told_of_its_limit_hears_it_while_it_sends,
        heads_are_limited,
        slow_clients_are_cut_off,
        a_slow_handler_is_given_up,
        connections_over_the_limit_wait;
    stops: stopping_answers_what_has_begun_and_takes_nothing_new,
        what_outlasts_the_grace_is_cut_off,
        a_dropped_handle_closes_everything;
);
