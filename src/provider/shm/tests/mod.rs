//! Provider `shm` through the objects of `api`, in one process or two.

use super::*;
use crate::api::endpoint::scalable::CONTEXTS;
use crate::api::info::model::*;
use crate::api::info::query::{Answer, LIBRARY_VERSION};
use crate::provider::Provider;

mod closing;
mod contexts;
mod offers;
mod remote;
