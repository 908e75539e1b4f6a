//! What the names of one call of fi_getinfo stand for: each is looked up once, however many offers want to know.

use super::{End, Family, Names, Resolver};
use core::cell::RefCell;
use std::net::SocketAddr;

type Question = (Option<String>, Option<String>, Family, End, Names);

/// Made for a call, and forgotten with it: the next one may find another address.
#[derive(Default)]
pub struct Found(RefCell<Vec<(Question, Option<SocketAddr>)>>);

/// Asks another one what is not known yet.
pub(super) struct Remembering<'a> {
    pub found: Option<&'a Found>,
    pub ask: &'a dyn Resolver,
}

impl Resolver for Remembering<'_> {
    fn lookup(
        &self,
        node: Option<&str>,
        service: Option<&str>,
        family: Family,
        end: End,
        names: Names,
    ) -> Option<SocketAddr> {
        let ask = || self.ask.lookup(node, service, family, end, names);
        let Some(Found(found)) = self.found else { return ask() };
        let question = (node.map(str::to_owned), service.map(str::to_owned), family, end, names);
        let known = found
            .borrow()
            .iter()
            .find(|known| known.0 == question)
            .map(|known| known.1);
        known.unwrap_or_else(|| {
            let answer = ask();
            found.borrow_mut().push((question, answer));
            answer
        })
    }

    fn source_for(&self, dest: &SocketAddr) -> Option<SocketAddr> {
        self.ask.source_for(dest)
    }
}
