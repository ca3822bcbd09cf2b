//! The agent mechanism.
