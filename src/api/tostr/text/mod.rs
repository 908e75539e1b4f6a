//! A text that ends where the caller's buffer would.
//!
//! The cut is made while writing, not afterwards: a list that loses its last comma at the cut gains room for its
//! bracket, so the result is not simply a prefix of the full text.

use core::fmt::{self, Display, Write};

/// Spaces per level of indentation.
const STEP: usize = 4;

/// What is written so far, and how large the caller's buffer is. Bytes, since addresses and names may hold any.
pub struct Text {
    bytes: Vec<u8>,
    size: usize,
}

impl Text {
    /// For a buffer of `size` bytes, the ending NUL included.
    pub fn new(size: usize) -> Text {
        Text {
            bytes: Vec::new(),
            size,
        }
    }

    /// Lets `write!` be used without a result to look at: too much text is cut, not an error.
    pub fn write_fmt(&mut self, args: fmt::Arguments<'_>) {
        // Cannot fail: `write_str` never does, and neither does what we format.
        let _ = Write::write_fmt(&mut Cut(self), args);
    }

    /// The line that opens a struct; its members go one step deeper, which is what comes back.
    pub fn open(&mut self, depth: usize, name: &str) -> usize {
        writeln!(self, "{:1$}{name}:", "", depth * STEP);
        depth + 1
    }

    /// One member and its value.
    pub fn line(&mut self, depth: usize, label: &str, value: impl Display) {
        self.label(depth, label);
        writeln!(self, "{value}");
    }

    /// The front of a line whose value comes in pieces.
    pub fn label(&mut self, depth: usize, label: &str) {
        write!(self, "{:1$}{label}: ", "", depth * STEP);
    }

    pub fn end_line(&mut self) {
        writeln!(self);
    }

    /// The names of a list's flags with commas between them.
    pub fn add_list<'a>(&mut self, names: impl Iterator<Item = &'a str>) {
        for name in names {
            write!(self, "{name}, ");
        }
        if self.bytes.ends_with(b", ") {
            self.bytes.truncate(self.bytes.len() - 2);
        }
    }

    /// A piece made outside, an address or an object's own text. It may use the one byte that ordinary text leaves
    /// free before the NUL.
    pub fn add_piece(&mut self, piece: &[u8]) {
        let room = self.left().saturating_sub(1);
        self.bytes.extend(piece.iter().take(room));
    }

    /// Bytes of the buffer not yet used, the ending NUL's included.
    pub fn left(&self) -> usize {
        self.size.saturating_sub(self.bytes.len())
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// The writer behind `write_fmt`: stops two bytes before the buffer's end, as the C library does.
struct Cut<'a>(&'a mut Text);

impl Write for Cut<'_> {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        let room = self.0.left().saturating_sub(2);
        self.0.bytes.extend(piece.bytes().take(room));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
