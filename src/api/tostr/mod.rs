//! The texts of fi_tostr: flags, enum values, attributes and addresses in the YAML-like form of the C library.
//!
//! Programs and scripts parse these lines, so spelling, order and indentation are the C library's to the letter. Works
//! on safe values only; `abi::tostr` opens the C pointers and calls in here.
//!
//! - `text`: what is written to, cut where the caller's buffer ends; `flags`, `enums`: the tables of names;
//! - `info`, `nic`, `objects`: the structs; `address`: addresses, one form per format.

pub mod address;
pub mod enums;
pub mod flags;
pub mod info;
pub mod nic;
pub mod objects;
mod text;

pub use text::Text;

/// What stands where a string is missing, as printf has it.
fn or_null(text: &Option<String>) -> &str {
    text.as_deref().unwrap_or("(null)")
}

/// What `%p` prints.
pub struct Pointer(pub usize);

impl core::fmt::Display for Pointer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.0 {
            0 => f.write_str("(nil)"),
            at => write!(f, "{at:#x}"),
        }
    }
}
