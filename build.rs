//! Compiles the C-variadic entry points, which stable Rust cannot define, into the library, and tells the programs where
//! libfabric.so is.

fn main() {
    variadic();
    programs();
}

/// The object is bundled in the archive.
fn variadic() {
    println!("cargo:rerun-if-changed=cbits/variadic.c");
    cc::Build::new()
        .file("cbits/variadic.c")
        .warnings(true)
        .extra_warnings(true)
        .compile("fabric_variadic");
}

/// Where the programs find libfabric.so: FABRIC_LIB_DIR, else the staging folder, when they are linked; beside their own
/// folder when they run.
fn programs() {
    println!("cargo:rerun-if-env-changed=FABRIC_LIB_DIR");
    let staged = || format!("{}/target/dist/lib", env!("CARGO_MANIFEST_DIR"));
    let dir = std::env::var("FABRIC_LIB_DIR").unwrap_or_else(|_| staged());
    println!("cargo:rustc-link-search=native={dir}");
    println!("cargo:rustc-link-arg-bins=-Wl,-rpath,$ORIGIN/../lib");
}
