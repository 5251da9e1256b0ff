//! An image that was held against one region: the only thing that is ever
//! written to a region, a tenant's bitstream and the blank image alike.
//!
//! Knows that one was proven for the other. Must not know signatures or
//! registers.

use std::sync::Arc;

use super::image::Image;
use crate::fence::{Proof, Unfit, hold};
use crate::frames::Demand;
use crate::ipc::RegionIndex;

/// See the module. Made by [`Fitted::hold`] alone, so that bytes cannot reach a card without the
/// proof that its shell file demands.
#[derive(Debug)]
pub(super) struct Fitted {
    image: Arc<Image>,
    region: RegionIndex,
    proof: Proof,
}

impl Fitted {
    /// Holds the sealed bytes of an image against what the shell file demands for a region.
    ///
    /// # Errors
    /// They must not be written to it.
    pub(super) fn hold(
        image: &Arc<Image>,
        region: RegionIndex,
        demand: &Demand,
    ) -> Result<Self, Unfit> {
        let contents = image.contents().map_err(Unfit::from)?;
        let proof = hold(&contents, demand)?;
        Ok(Self {
            image: Arc::clone(image),
            region,
            proof,
        })
    }

    /// The image.
    pub(super) fn image(&self) -> &Arc<Image> {
        &self.image
    }

    /// The region that it was held against.
    pub(super) fn region(&self) -> RegionIndex {
        self.region
    }

    /// What was proven.
    pub(super) fn proof(&self) -> &Proof {
        &self.proof
    }
}
