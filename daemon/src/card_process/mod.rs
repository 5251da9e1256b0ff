//! `reconf-card`: the process that holds one card.
