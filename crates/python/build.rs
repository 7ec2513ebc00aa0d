//! Puts the commit that is being built into the extension, so that a result can say what made it.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // where there is no repository (a source distribution) there is no commit to tell
    let head = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output().ok();
    let commit = head
        .filter(|out| out.status.success())
        .map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned());
    if let Some(path) = Command::new("git").args(["rev-parse", "--git-path", "logs/HEAD"]).output().ok()
        && let Ok(path) = String::from_utf8(path.stdout)
    {
        println!("cargo:rerun-if-changed={}", path.trim());
    }
    println!("cargo:rustc-env=TIDEGATE_COMMIT={}", commit.unwrap_or_default());
}
