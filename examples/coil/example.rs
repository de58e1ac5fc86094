//! Coil as an example: `cargo run --example coil`.

use std::process::ExitCode;

fn main() -> ExitCode {
    coil::main()
}
