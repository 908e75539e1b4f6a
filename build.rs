//! What cargo cannot be told in Cargo.toml: the C part of the crate, how libfabric.so gets its symbol versions, and where
//! the programs find it.

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=FABRIC_LD");
    let manifest = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    // The fuzz targets, a package in a folder of its own, are built from the same source by this file too.
    let for_fuzzing = manifest.ends_with("fuzz");
    let root = if for_fuzzing { manifest.join("..") } else { manifest };
    cbits(&root, &out);
    if !for_fuzzing {
        shared_object(&root, &out);
    }
    programs(&root);
    sanitizer();
}

fn sanitizers() -> Vec<String> {
    let kinds = env::var("CARGO_CFG_SANITIZE").unwrap_or_default();
    kinds
        .split(',')
        .filter(|kind| !kind.is_empty())
        .map(String::from)
        .collect()
}

/// `cfg(tsan)`: built for ThreadSanitizer, by nightly Rust (abi-tests/tsan).
fn sanitizer() {
    if sanitizers().iter().any(|kind| kind == "thread") {
        println!("cargo:rustc-cfg=tsan");
    }
}

/// A C compiler for files of `cbits`, told to cargo.
fn compiler(root: &Path, files: &[&str]) -> cc::Build {
    let mut build = cc::Build::new();
    for file in files {
        let path = root.join("cbits").join(file);
        println!("cargo:rerun-if-changed={}", path.display());
        build.file(path);
    }
    build.warnings(true).extra_warnings(true).flag("-fno-lto");
    build
}

/// What stable Rust cannot say: C-variadic entry points and long double. Bundled in the archive, and whole in the shared
/// object, where nothing in Rust calls them.
fn cbits(root: &Path, out: &Path) {
    let mut build = compiler(root, &["variadic.c", "long_double.c"]);
    build.cargo_metadata(false).compile("fabric_cbits");
    println!("cargo:rustc-link-search=native={}", out.display());
    println!("cargo:rustc-link-lib=static:+whole-archive=fabric_cbits");
}

/// The link of libfabric.so: GNU ld, by way of `cbits/link/ld.bfd`, with our version map and the old versions of the calls.
fn shared_object(root: &Path, out: &Path) {
    let map = out.join("libfabric.map");
    fs::write(&map, version_map(root)).expect("OUT_DIR can be written");
    let objects = compiler(root, &["compat.c"]).compile_intermediates();
    let linker = root.join("cbits/link");
    println!("cargo:rerun-if-changed={}", linker.join("ld.bfd").display());

    let argument = |argument: String| println!("cargo:rustc-cdylib-link-arg={argument}");
    objects.iter().for_each(|object| argument(object.display().to_string()));
    argument("-fuse-ld=bfd".into());
    argument(format!("-B{}", linker.display()));
    argument("-Wl,--libfabric.so-must-be-linked-by-cbits/link/ld.bfd".into());
    argument("-Wl,-soname,libfabric.so.1".into());
    argument(format!("-Wl,--version-script={}", map.display()));
    // A name in the map that nobody defines is an error, as is anything left open, but for a sanitizer's own calls.
    argument("-Wl,--no-undefined-version".into());
    if sanitizers().is_empty() {
        argument("-Wl,-z,defs".into());
    }
    argument("-Wl,-Bsymbolic-functions,--gc-sections,--as-needed,-O1,--build-id".into());
    argument("-Wl,-z,relro,-z,now,-z,noexecstack".into());
}

/// The map with the names of the callable inline API, which are the rows of `src/abi/wrappers`.
fn version_map(root: &Path) -> String {
    let template = root.join("cbits/libfabric.map.in");
    let rows = root.join("src/abi/wrappers");
    println!("cargo:rerun-if-changed={}", template.display());
    println!("cargo:rerun-if-changed={}", rows.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(rows).expect("src/abi/wrappers is there") {
        let text = fs::read_to_string(entry.expect("a file's name").path()).expect("a file of wrappers is text");
        names.extend(text.lines().filter_map(row_name).map(|name| format!("        {name};")));
    }
    names.sort();
    let template = fs::read_to_string(template).expect("cbits/libfabric.map.in is there");
    template.replace("@INLINE_API@", &names.join("\n"))
}

/// The call that a line of the table begins: `    fn fi_NAME(`.
fn row_name(line: &str) -> Option<&str> {
    let name = line.strip_prefix("    fn ")?.split(['(', '<']).next()?;
    name.starts_with("fi_").then_some(name)
}

/// Where the programs find libfabric.so: FABRIC_LIB_DIR, else the staging folder, when they are linked; beside their own
/// folder when they run.
fn programs(root: &Path) {
    println!("cargo:rerun-if-env-changed=FABRIC_LIB_DIR");
    let dir = env::var("FABRIC_LIB_DIR").unwrap_or_else(|_| root.join("target/dist/lib").display().to_string());
    println!("cargo:rustc-link-search=native={dir}");
    println!("cargo:rustc-link-arg-bins=-Wl,-rpath,$ORIGIN/../lib");
}
