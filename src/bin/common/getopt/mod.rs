//! Reads a command line as the C library's getopt and getopt_long do: `-lv`, `-pTCP`, `-p tcp`, `--prov=tcp`,
//! `--prov tcp`, unambiguous beginnings of long names, operands anywhere, `--` as the end of the options. Without a
//! long name in the table, `--x` is the short option `-`, as it is to getopt.
//!
//! Knows no program's options: they come as a table. Called by the programs' `options`.

#[cfg(test)]
mod tests;

/// One option. `id` is what the caller gets back.
pub struct Spec<I: 'static> {
    pub id: I,
    pub short: Option<u8>,
    /// Empty for none.
    pub long: &'static str,
    pub takes_value: bool,
}

/// What was found.
#[derive(Debug, PartialEq)]
pub enum Found<'a, I> {
    /// An option, with its value if it takes one, else an empty one.
    Option(I, &'a [u8]),
    Operand(&'a [u8]),
}

/// What is wrong with the command line, in getopt's words, to be put behind the program's name.
#[derive(Debug, PartialEq)]
pub struct Wrong(pub Vec<u8>);

pub struct Parser<'a, I: 'static> {
    specs: &'static [Spec<I>],
    args: &'a [Vec<u8>],
    next: usize,
    /// What is left of a group of short options.
    group: &'a [u8],
    stop_at_operand: bool,
    options_are_over: bool,
}

impl<'a, I: Copy> Parser<'a, I> {
    /// `args` without the program's name; `posix` ends the options at the first operand.
    pub fn new(specs: &'static [Spec<I>], args: &'a [Vec<u8>], posix: bool) -> Self {
        Parser {
            specs,
            args,
            next: 0,
            group: &[],
            stop_at_operand: posix,
            options_are_over: false,
        }
    }

    fn has_long_names(&self) -> bool {
        self.specs.iter().any(|spec| !spec.long.is_empty())
    }

    fn take_arg(&mut self) -> Option<&'a [u8]> {
        let arg = self.args.get(self.next)?;
        self.next += 1;
        Some(arg)
    }

    fn short(&mut self, letter: u8, rest: &'a [u8]) -> Result<Found<'a, I>, Wrong> {
        let Some(spec) = self.specs.iter().find(|s| s.short == Some(letter)) else {
            self.group = rest;
            return Err(wrong(&[b"invalid option -- '", &[letter], b"'"]));
        };
        if !spec.takes_value {
            self.group = rest;
            return Ok(Found::Option(spec.id, b""));
        }
        self.group = &[];
        match if rest.is_empty() { self.take_arg() } else { Some(rest) } {
            Some(value) => Ok(Found::Option(spec.id, value)),
            None => Err(wrong(&[b"option requires an argument -- '", &[letter], b"'"])),
        }
    }

    fn long(&mut self, text: &'a [u8]) -> Result<Found<'a, I>, Wrong> {
        let (name, given) = match text.iter().position(|c| *c == b'=') {
            Some(at) => (&text[..at], Some(&text[at + 1..])),
            None => (text, None),
        };
        let spec = self.spec_named(name, text)?;
        let value = match (spec.takes_value, given) {
            (false, Some(_)) => {
                return Err(wrong(&[
                    b"option '--",
                    spec.long.as_bytes(),
                    b"' doesn't allow an argument",
                ]));
            }
            (false, None) => &b""[..],
            (true, Some(value)) => value,
            (true, None) => match self.take_arg() {
                Some(value) => value,
                None => return Err(wrong(&[b"option '--", spec.long.as_bytes(), b"' requires an argument"])),
            },
        };
        Ok(Found::Option(spec.id, value))
    }

    /// The option of exactly this name, or the only one whose name begins so.
    fn spec_named(&self, name: &[u8], text: &[u8]) -> Result<&'static Spec<I>, Wrong> {
        let specs = self.specs;
        if let Some(spec) = specs.iter().find(|s| s.long.as_bytes() == name) {
            return Ok(spec);
        }
        let fits: Vec<_> = specs.iter().filter(|s| s.long.as_bytes().starts_with(name)).collect();
        match fits.as_slice() {
            [] => Err(wrong(&[b"unrecognized option '--", text, b"'"])),
            [only] => Ok(only),
            several => {
                let mut message = [b"option '--", text, b"' is ambiguous; possibilities:"].concat();
                for spec in several {
                    message.extend_from_slice(format!(" '--{}'", spec.long).as_bytes());
                }
                Err(Wrong(message))
            }
        }
    }
}

impl<'a, I: Copy> Iterator for Parser<'a, I> {
    type Item = Result<Found<'a, I>, Wrong>;

    fn next(&mut self) -> Option<Self::Item> {
        if let [letter, rest @ ..] = self.group {
            return Some(self.short(*letter, rest));
        }
        let argument = self.take_arg()?;
        match argument {
            operand if self.options_are_over => Some(Ok(Found::Operand(operand))),
            b"--" => {
                self.options_are_over = true;
                self.next()
            }
            [b'-', b'-', text @ ..] if self.has_long_names() => Some(self.long(text)),
            [b'-', letter, rest @ ..] => Some(self.short(*letter, rest)),
            operand => {
                self.options_are_over = self.stop_at_operand;
                Some(Ok(Found::Operand(operand)))
            }
        }
    }
}

fn wrong(parts: &[&[u8]]) -> Wrong {
    Wrong(parts.concat())
}
