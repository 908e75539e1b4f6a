//! Why a candidate was refused: which attribute, what was asked for, what is offered. Prints as one line of the log;
//! `fi_info --why` shows these lines, and `docs/getinfo.md` describes their form.

use super::describe::describe_flags;
use super::model::Info;
use crate::abi::types::*;
use core::fmt;

#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The attribute as C programs spell it, from the info on: `domain_attr.mr_mode`.
    pub attr: &'static str,
    pub why: Why,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    /// The application asks for bits that are not offered.
    Lacks {
        kind: fi_type,
        asked: u64,
        offers: u64,
    },
    /// The provider cannot do without bits that the application does not give.
    Needs {
        kind: fi_type,
        needs: u64,
        given: u64,
    },
    Above {
        asked: u64,
        most: u64,
    },
    Differs {
        kind: fi_type,
        asked: u64,
        offers: u64,
    },
    NotNamed {
        asked: String,
        offers: String,
    },
    Says(&'static str),
}

pub type Check = Result<(), Refusal>;

impl Refusal {
    pub fn says(attr: &'static str, text: &'static str) -> Refusal {
        Refusal {
            attr,
            why: Why::Says(text),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: ", self.attr)?;
        match &self.why {
            Why::Lacks { kind, asked, offers } => {
                let show = |bits| describe_flags(*kind, bits);
                write!(
                    f,
                    "asked {}, offers {}, lacks {}",
                    show(*asked),
                    show(*offers),
                    show(asked & !offers)
                )
            }
            Why::Needs { kind, needs, given } => {
                let show = |bits| describe_flags(*kind, bits);
                write!(
                    f,
                    "needs {}, given {}, misses {}",
                    show(*needs),
                    show(*given),
                    show(needs & !given)
                )
            }
            Why::Above { asked, most } => write!(f, "asked {asked}, offers at most {most}"),
            Why::Differs { kind, asked, offers } => {
                write!(
                    f,
                    "asked {}, offers {}",
                    describe_flags(*kind, *asked),
                    describe_flags(*kind, *offers)
                )
            }
            Why::NotNamed { asked, offers } => write!(f, "asked {asked:?}, offers {offers:?}"),
            Why::Says(text) => f.write_str(text),
        }
    }
}

/// The candidate in a line of the log: `tcp (FI_EP_RDM, eth0)`.
pub struct Candidate<'a> {
    pub provider: &'a str,
    pub info: &'a Info,
}

impl fmt::Display for Candidate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(
            f,
            "{} ({}",
            self.provider,
            describe_flags(FI_TYPE_EP_TYPE, self.info.ep_type().into())
        )?;
        if let Some(domain) = self.info.domain_name() {
            write!(f, ", {domain}")?;
        }
        f.write_str(")")
    }
}

/// Every bit asked for must be offered.
pub fn subset(attr: &'static str, kind: fi_type, asked: u64, offers: u64) -> Check {
    if asked & !offers == 0 {
        Ok(())
    } else {
        Err(Refusal {
            attr,
            why: Why::Lacks { kind, asked, offers },
        })
    }
}

/// Every bit the provider needs must be given by the application.
pub fn granted(attr: &'static str, kind: fi_type, needs: u64, given: u64) -> Check {
    if needs & !given == 0 {
        Ok(())
    } else {
        Err(Refusal {
            attr,
            why: Why::Needs { kind, needs, given },
        })
    }
}

pub fn at_most(attr: &'static str, asked: u64, most: u64) -> Check {
    if asked <= most {
        Ok(())
    } else {
        Err(Refusal {
            attr,
            why: Why::Above { asked, most },
        })
    }
}

/// `at_most` for the many attributes that C counts in size_t.
pub fn size_at_most(attr: &'static str, asked: usize, most: usize) -> Check {
    at_most(attr, asked as u64, most as u64)
}

pub fn differs(attr: &'static str, kind: fi_type, asked: u32, offers: u32) -> Refusal {
    Refusal {
        attr,
        why: Why::Differs {
            kind,
            asked: asked.into(),
            offers: offers.into(),
        },
    }
}

#[cfg(test)]
mod tests;
