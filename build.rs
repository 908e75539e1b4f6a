//! What cargo cannot be told in Cargo.toml: the C part of the crate, where the programs find libfabric.so, and that
//! libfabric.so itself is not cargo's to link.

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    cbits();
    programs();
    no_shared_object();
    sanitizer();
}

/// `cfg(tsan)`: built for ThreadSanitizer, by nightly Rust (abi-tests/tsan).
fn sanitizer() {
    if std::env::var("CARGO_CFG_SANITIZE").is_ok_and(|kinds| kinds.split(',').any(|kind| kind == "thread")) {
        println!("cargo:rustc-cfg=tsan");
    }
}

/// What stable Rust cannot say: C-variadic entry points and long double. The objects are bundled in the archive.
fn cbits() {
    let files = ["cbits/variadic.c", "cbits/long_double.c"];
    for file in files {
        println!("cargo:rerun-if-changed={file}");
    }
    cc::Build::new()
        .files(files)
        .warnings(true)
        .extra_warnings(true)
        .compile("fabric_cbits");
}

/// Where the programs find libfabric.so: FABRIC_LIB_DIR, else the staging folder, when they are linked; beside their own
/// folder when they run.
fn programs() {
    println!("cargo:rerun-if-env-changed=FABRIC_LIB_DIR");
    let dir = std::env::var("FABRIC_LIB_DIR").unwrap_or_else(|_| format!("{ROOT}/target/dist/lib"));
    println!("cargo:rustc-link-search=native={dir}");
    println!("cargo:rustc-link-arg-bins=-Wl,-rpath,$ORIGIN/../lib");
}

/// Fails a link that makes a shared object, with a text that says why; an executable links as ever.
fn no_shared_object() {
    println!("cargo:rerun-if-changed=cbits/no-cargo-so.ld");
    println!("cargo:rustc-link-arg={ROOT}/cbits/no-cargo-so.ld");
}
