//! Compiles the C-variadic entry points, which stable Rust cannot define; the object is bundled in the archive.

fn main() {
    println!("cargo:rerun-if-changed=cbits/variadic.c");
    cc::Build::new()
        .file("cbits/variadic.c")
        .warnings(true)
        .extra_warnings(true)
        .compile("fabric_variadic");
}
