//! The operator on plain threads.

#[path = "operator.rs"]
pub(crate) mod operator;

/// What the operator is made of here.
pub(crate) mod facade {
    pub(crate) use cloudcoil_blocking::{Context, Controller};
    /// On what is written once for futures and for threads: takes `async` and `.await` away.
    pub(crate) use cloudcoil_dual::blocking as dual;
}
