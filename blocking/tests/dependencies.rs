//! What this crate is made without.

use std::process::Command;

#[test]
fn no_executor_hides_inside() {
    let arguments =
        ["tree", "--offline", "-p", "cloudcoil-blocking", "-e", "normal", "--prefix", "none", "-f", "{lib}"];
    let output = Command::new(env!("CARGO")).args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).unwrap();
    let has = |name| tree.lines().any(|line| line.trim() == name);
    assert!(has("ureq") && has("cloudcoil_core"), "{tree}");
    for executor in ["tokio", "async_std", "futures_executor", "smol", "async_executor", "hyper", "mio", "pollster"] {
        assert!(!has(executor), "{executor} is in the tree");
    }
}
