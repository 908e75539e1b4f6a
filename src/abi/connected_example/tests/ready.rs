//! Only endpoints that have something to do are polled.
