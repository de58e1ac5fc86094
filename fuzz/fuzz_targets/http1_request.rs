#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| cloudcoil_core::fuzz::http1_request(data));
