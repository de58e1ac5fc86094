//! The operator with an `async fn`.

#[path = "operator.rs"]
pub(crate) mod operator;

/// What the operator is made of here.
pub(crate) mod facade {
    /// On what is written once for futures and for threads: stays as it is here.
    pub(crate) use cloudcoil_dual::asynchronous as dual;
    pub(crate) use cloudcoil_runtime::{Context, Controller};
}
