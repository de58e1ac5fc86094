#![no_main]

use std::sync::LazyLock;

use cloudcoil_apiserver::kinds::{Kinds, fuzz};
use libfuzzer_sys::fuzz_target;

static KINDS: LazyLock<Kinds> = LazyLock::new(Kinds::builtin);

fuzz_target!(|data: &[u8]| fuzz::protobuf(&KINDS, data));
