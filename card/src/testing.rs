//! Test doubles: a clock that only moves when told, a card made of registers,
//! and a decorator that fails the k-th access.
