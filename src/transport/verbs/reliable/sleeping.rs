//! Sleeping until something comes. Part of `Reliable`.

use super::Reliable;
use super::attempt::Way;
use super::seam::Device;
use std::os::fd::RawFd;

impl<D: Device> Reliable<D> {
    /// The descriptor that becomes readable when there may be something to poll, after `arm` returned true.
    pub fn wake_fd(&self) -> RawFd {
        self.device.wake_fd()
    }

    /// Makes that descriptor readable.
    pub fn wake(&self) {
        self.device.wake();
    }

    /// Looks whether there is something to poll.
    pub fn arm(&mut self) -> bool {
        if !self.device.is_ours() {
            return true;
        }
        self.armed = true;
        self.device.quieten();
        let told = self.device.notify().is_ok();
        self.visitors.extend(self.device.request());
        self.device.look(&mut self.news);
        self.troubles.extend(core::iter::from_fn(|| self.device.trouble()));
        let idle = self.self_queue.is_empty() && self.ready.is_empty() && self.peers.ended.is_empty();
        let heard = !self.visitors.is_empty() || !self.news.is_empty() || !self.troubles.is_empty();
        let came = self.has_completions() || heard;
        told && idle && !came && !self.must_look()
    }

    /// Something waits that makes nothing readable: credit, which peers write without a word, a pause, or a try that is
    /// to be given up.
    fn must_look(&mut self) -> bool {
        let ends_by_time = self.config.elsewhere_after.is_some();
        let mut ways = self.peers.ways().iter().filter_map(|number| self.peers.get(*number));
        if ways.any(|peer| ends_by_time || matches!(peer.way, Way::Resting { .. })) {
            return true;
        }
        self.peers.links().any(|link| link.is_starved())
    }
}
