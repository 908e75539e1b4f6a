//! What a join of two transports can carry. Called when one is made, and by providers that tell it beforehand.

use crate::engine::port::Limits;

/// The limits of a join of transports with these: those that every peer bears, and those of far peers.
pub fn joined(near: Option<Limits>, far: Option<Limits>) -> (Limits, Limits) {
    let (Some(near), Some(far)) = (near, far) else {
        let only = near.or(far).unwrap_or_default();
        return (only, only);
    };
    let sync_placement = near.sync_placement && far.sync_placement;
    let common = Limits {
        max_body: near.max_body.min(far.max_body),
        eager: near.eager.min(far.eager),
        eager_if_fetched: near.eager_if_fetched.min(far.eager_if_fetched),
        guaranteed_body: near.guaranteed_body.min(far.guaranteed_body),
        sync_placement,
        max_write: near.short_write().min(far.short_write()),
        max_in_writes: near.in_short_writes().min(far.in_short_writes()),
        ..near
    };
    let most = Limits { sync_placement, ..far };
    (common, most)
}
