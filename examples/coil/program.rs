//! Coil as a program, which tests can run: `cargo run --bin coil`.

use std::process::ExitCode;

fn main() -> ExitCode {
    coil::main()
}
