//! Compiles what stable Rust cannot say (C-variadic entry points) into the crate, and keeps cargo from linking a .so.

use std::path::Path;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // An executable links as ever; `--crate-type cdylib` fails with a clear text instead of losing symbol versions.
    println!("cargo:rerun-if-changed=cbits/no-cargo-so.ld");
    println!("cargo:rustc-link-arg={}/cbits/no-cargo-so.ld", env!("CARGO_MANIFEST_DIR"));

    let variadic = "cbits/variadic.c";
    println!("cargo:rerun-if-changed={variadic}");
    if Path::new(variadic).exists() {
        cc::Build::new().file(variadic).warnings(true).extra_warnings(true).compile("fabric_variadic");
    }
}
