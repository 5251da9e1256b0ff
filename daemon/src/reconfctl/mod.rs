//! `reconfctl`: the operator's command.
