//! What the process was started with.

use cloudcoil_core::config::Environment;

/// The variables that matter, as the process has them.
pub fn process_environment() -> Environment {
    Environment::from_variables(|name| std::env::var_os(name))
}
