//! The list of all answers, before the application gets it: what names leave out, what order, no twins.

use crate::abi::types::*;
use crate::api::info::check::log_refusal;
use crate::api::info::model::Info;
use crate::api::info::query::{Answer, Query};
use crate::api::info::refusal::{Check, Refusal, Why};
use crate::provider::filter::Filter;

/// Everything that is done to the application's own queries and not to those of providers.
pub(super) fn finish(answers: &mut Vec<Answer>, filter: &Filter, query: &Query) {
    answers.retain(|answer| is_wanted(&answer.info, filter, query.hints));
    put_what_is_better_than_layers_first(answers);
    drop_twins(answers);
}

fn is_wanted(info: &Info, filter: &Filter, hints: Option<&Info>) -> bool {
    match check_names(info, filter, hints) {
        Ok(()) => true,
        Err(refusal) => {
            log_refusal(info.prov_name().unwrap_or(""), info, &refusal);
            false
        }
    }
}

fn check_names(info: &Info, filter: &Filter, hints: Option<&Info>) -> Check {
    if filter.hides_info(info.prov_name().unwrap_or("")) {
        return Err(Refusal::says("fabric_attr.prov_name", "left out by FI_PROVIDER"));
    }
    let asked = |name: fn(&Info) -> Option<&str>| hints.and_then(name);
    check_name("domain_attr.name", asked(Info::domain_name), info.domain_name())?;
    check_name("fabric_attr.name", asked(Info::fabric_name), info.fabric_name())
}

fn check_name(attr: &'static str, asked: Option<&str>, offers: Option<&str>) -> Check {
    let Some(asked) = asked else { return Ok(()) };
    let offers = offers.unwrap_or("");
    if asked.eq_ignore_ascii_case(offers) {
        return Ok(());
    }
    Err(Refusal {
        attr,
        why: Why::NotNamed {
            asked: asked.into(),
            offers: offers.into(),
        },
    })
}

/// ofi_rxm stands before most others in the order of providers. Better than its layer over tcp is what tcp does by
/// itself, and better than either layer is auto, which has the network below and shared memory too.
fn put_what_is_better_than_layers_first(answers: &mut Vec<Answer>) {
    put_before(answers, "tcp", &["tcp;ofi_rxm"]);
    put_before(answers, "auto", &["verbs;ofi_rxm", "tcp", "tcp;ofi_rxm"]);
}

/// Reliable endpoints of this name go before the first of the others, if they are behind.
fn put_before(answers: &mut Vec<Answer>, better: &str, others: &[&str]) {
    let is_of = |answer: &Answer, name: &str| {
        let own = answer.info.prov_name();
        answer.info.ep_type() == FI_EP_RDM && own.is_some_and(|own| own.eq_ignore_ascii_case(name))
    };
    let is_other = |answer: &Answer| others.iter().any(|name| is_of(answer, name));
    let Some(first) = answers.iter().position(is_other) else {
        return;
    };
    let after = answers.split_off(first);
    let (better, after): (Vec<_>, Vec<_>) = after.into_iter().partition(|answer| is_of(answer, better));
    answers.extend(better.into_iter().chain(after));
}

/// A second info that says the same in every field is of no use to anybody.
fn drop_twins(answers: &mut Vec<Answer>) {
    let mut kept: Vec<Answer> = Vec::with_capacity(answers.len());
    for answer in answers.drain(..) {
        if !kept.iter().any(|other| are_twins(other, &answer)) {
            kept.push(answer);
        }
    }
    *answers = kept;
}

/// A plug-in may keep something about its card that we do not see.
fn are_twins(a: &Answer, b: &Answer) -> bool {
    let has_secrets = |answer: &Answer| answer.own.is_some() && answer.info.nic.is_some();
    a.info == b.info && !has_secrets(a) && !has_secrets(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::info::model::NicAttr;
    use crate::api::info::samples::{shm, tcp_msg, tcp_rdm};

    fn named(mut info: Info, prov_name: &str) -> Answer {
        info.fabric.as_mut().unwrap().prov_name = Some(prov_name.into());
        Answer { info, own: None }
    }

    fn names(answers: &[Answer]) -> Vec<&str> {
        answers.iter().map(|answer| answer.info.prov_name().unwrap()).collect()
    }

    #[test]
    fn tcp_and_its_layer() {
        let rows: &[(&[&str], &[&str])] = &[
            (&["tcp;ofi_rxm", "shm", "tcp"], &["tcp", "tcp;ofi_rxm", "shm"]),
            (
                &["verbs;ofi_rxm", "tcp;ofi_rxm", "udp", "tcp"],
                &["verbs;ofi_rxm", "tcp", "tcp;ofi_rxm", "udp"],
            ),
            (&["shm", "tcp"], &["shm", "tcp"]),
            (
                &["verbs;ofi_rxm", "tcp;ofi_rxm", "auto", "shm", "tcp"],
                &["auto", "verbs;ofi_rxm", "tcp", "tcp;ofi_rxm", "shm"],
            ),
            (&["auto", "shm", "tcp"], &["auto", "shm", "tcp"]),
            (&["tcp", "tcp;ofi_rxm"], &["tcp", "tcp;ofi_rxm"]),
            (&["shm"], &["shm"]),
            (&[], &[]),
        ];
        for (before, after) in rows {
            let mut answers: Vec<Answer> = before.iter().map(|name| named(tcp_rdm(), name)).collect();
            put_what_is_better_than_layers_first(&mut answers);
            assert_eq!(names(&answers), *after);
        }
        let mut answers = vec![
            named(tcp_rdm(), "tcp;ofi_rxm"),
            named(tcp_msg(), "tcp"),
            named(tcp_rdm(), "tcp"),
        ];
        put_what_is_better_than_layers_first(&mut answers);
        let types: Vec<u32> = answers.iter().map(|answer| answer.info.ep_type()).collect();
        assert_eq!(types, [FI_EP_RDM, FI_EP_RDM, FI_EP_MSG]);
        assert_eq!(names(&answers), ["tcp", "tcp;ofi_rxm", "tcp"]);
    }

    #[test]
    fn twins_go_and_near_twins_stay() {
        let mut other = shm();
        other.src_addr = Some(vec![1]);
        let with_card = |own: Option<Box<dyn core::any::Any>>| {
            let mut info = shm();
            info.nic = Some(NicAttr::default());
            Answer {
                own,
                ..named(info, "card")
            }
        };
        let mut answers = vec![
            named(shm(), "shm"),
            named(shm(), "shm"),
            named(shm(), "shm2"),
            named(other.clone(), "shm"),
            named(other, "shm"),
            with_card(Some(Box::new(()))),
            with_card(Some(Box::new(()))),
            with_card(None),
            with_card(None),
        ];
        drop_twins(&mut answers);
        assert_eq!(names(&answers), ["shm", "shm2", "shm", "card", "card", "card"]);
    }

    #[test]
    fn names_in_hints() {
        let rows = [
            // (domain hint, fabric hint, refused)
            (None, None, None),
            (Some("shm"), None, None),
            (Some("SHM"), Some("Shm"), None),
            (Some("sh"), None, Some("domain_attr.name")),
            (Some("shm0"), None, Some("domain_attr.name")),
            (None, Some("10.0.0.0/24"), Some("fabric_attr.name")),
            (Some(""), None, Some("domain_attr.name")),
        ];
        for (domain, fabric, refused) in rows {
            let mut hints = Info::blank();
            hints.domain.as_mut().unwrap().name = domain.map(str::to_owned);
            hints.fabric.as_mut().unwrap().name = fabric.map(str::to_owned);
            let outcome = check_names(&shm(), &Filter::default(), Some(&hints))
                .err()
                .map(|refusal| refusal.attr);
            assert_eq!(outcome, refused, "{domain:?} {fabric:?}");
        }
    }
}
