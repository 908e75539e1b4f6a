//! The forms of output that scripts know from the original program: short, long, list of providers, variables.
//!
//! Every function makes text; `main` writes it. Knows `ffi` for what to print.

use crate::abi::types::*;
use crate::ffi::{self, Info, Infos, Narrow, Param};
use core::ffi::c_int;

/// What C's printf makes of a string that may be NULL.
fn text(bytes: Option<&[u8]>) -> &[u8] {
    bytes.unwrap_or(b"(null)")
}

/// A version number as `major.minor`.
pub fn version(number: u32) -> String {
    format!("{}.{}", number >> 16, number & 0xffff)
}

fn provider_version(info: Info) -> String {
    version(info.fabric().map_or(0, |fabric| fabric.prov_version))
}

fn field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(&[b"    ", name.as_bytes(), b": ", value, b"\n"].concat());
}

/// Name and version of each provider, for `-l`.
pub fn providers(infos: &Infos) -> Vec<u8> {
    let mut out = Vec::new();
    for info in infos.iter() {
        out.extend_from_slice(&[text(info.provider()), b":\n"].concat());
        field(&mut out, "version", provider_version(info).as_bytes());
    }
    out
}

/// What each info is, in six lines.
pub fn short(infos: &Infos) -> Vec<u8> {
    let mut out = Vec::new();
    for info in infos.iter() {
        out.extend_from_slice(&[b"provider: ", text(info.provider()), b"\n"].concat());
        field(&mut out, "fabric", text(info.fabric_name()));
        field(&mut out, "domain", text(info.domain_name()));
        field(&mut out, "version", provider_version(info).as_bytes());
        let (kind, protocol) = info
            .ep()
            .map_or((FI_EP_UNSPEC, FI_PROTO_UNSPEC), |ep| (ep.r#type, ep.protocol));
        field(&mut out, "type", &ffi::name_of_u32(kind, Narrow::EpType));
        field(&mut out, "protocol", &ffi::name_of_u32(protocol, Narrow::Protocol));
    }
    out
}

/// Everything about each info, in the library's own words.
pub fn long(infos: &Infos, contains: Option<&[u8]>) -> Vec<u8> {
    let texts = infos.iter().map(Info::text).filter(|text| wanted(text, contains));
    texts
        .map(|text| [b"---\n", text.as_slice()].concat())
        .collect::<Vec<_>>()
        .concat()
}

/// The type of a variable as `-e` names it.
pub fn param_kind(kind: fi_param_type) -> &'static str {
    match kind {
        FI_PARAM_STRING => "String",
        FI_PARAM_INT => "Integer",
        FI_PARAM_SIZE_T => "size_t",
        FI_PARAM_BOOL => "Boolean (0/1, on/off, true/false, yes/no)",
        _ => "Unknown",
    }
}

/// The variables with their help and, if set, their values, in quotes where there is a space.
pub fn variables(params: &[Param], contains: Option<&[u8]>) -> Vec<u8> {
    let mut out = Vec::new();
    for param in params.iter().filter(|p| wanted(&p.name, contains)) {
        out.extend_from_slice(&[b"# ", &param.name[..], b": ", param_kind(param.kind).as_bytes(), b"\n"].concat());
        out.extend_from_slice(&[b"# ", text(param.help.as_deref()), b"\n"].concat());
        if let Some(value) = &param.value {
            let quote: &[u8] = if value.contains(&b' ') { b"\"" } else { b"" };
            out.extend_from_slice(&[&param.name[..], b"=", quote, value, quote, b"\n"].concat());
        }
        out.push(b'\n');
    }
    out
}

pub fn versions(program: &[u8]) -> Vec<u8> {
    let own = format!("{FI_MAJOR_VERSION}.{FI_MINOR_VERSION}.{FI_REVISION_VERSION}\nlibfabric: ");
    let api = format!("\nlibfabric api: {FI_MAJOR_VERSION}.{FI_MINOR_VERSION}\n");
    [program, b": ", own.as_bytes(), &ffi::library_version(), api.as_bytes()].concat()
}

/// The line for a call that failed with a negative number.
pub fn failed(call: &str, code: c_int) -> Vec<u8> {
    [
        format!("{call}: {code} (").as_bytes(),
        &ffi::strerror(code.saturating_neg()),
        b")\n",
    ]
    .concat()
}

/// Whether a text has the wanted part in it, in any case.
pub fn wanted(text: &[u8], part: Option<&[u8]>) -> bool {
    part.is_none_or(|part| part.is_empty() || text.windows(part.len()).any(|window| window.eq_ignore_ascii_case(part)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn param(name: &str, value: Option<&str>) -> Param {
        let own = |s: &str| s.as_bytes().to_vec();
        Param {
            name: own(name),
            kind: FI_PARAM_INT,
            help: Some(own("what it does")),
            value: value.map(own),
        }
    }

    #[test]
    fn variables_are_comments_and_assignments() {
        let params = [
            param("FI_A", None),
            param("FI_B", Some("7")),
            param("FI_AB", Some("a b")),
        ];
        let all = "# FI_A: Integer\n# what it does\n\n# FI_B: Integer\n# what it does\nFI_B=7\n\n\
                   # FI_AB: Integer\n# what it does\nFI_AB=\"a b\"\n\n";
        assert_eq!(String::from_utf8_lossy(&variables(&params, None)), all);
        let some = String::from_utf8(variables(&params, Some(b"i_a"))).unwrap();
        assert!(some.contains("FI_AB") && !some.contains("FI_B"), "{some}");
    }

    #[test]
    fn parts_are_found_in_any_case() {
        assert!(wanted(b"FI_TCP_IFACE", Some(b"tcp")));
        assert!(wanted(b"x", Some(b"")) && wanted(b"", None));
        assert!(!wanted(b"tc", Some(b"tcp")));
    }

    #[test]
    fn versions_have_two_parts() {
        assert_eq!(version(205 << 16 | 10), "205.10");
    }
}
