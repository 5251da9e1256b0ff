//! AMD devices through the whole product: guest, `reconfd`, `reconf-card`, AXI
//! HWICAP, and a simulated card with the frames of the real device. What is
//! written is compared with the fence's own answer, frame by frame; what must
//! not be written is looked for on the card.
//!
//! Partial bitstreams made here always; genuine ones where `../shared` is.

mod genuine;
mod impostor;
mod loads;
mod publishing;
mod refusals;
mod stage;
