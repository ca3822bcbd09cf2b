//! The policy layer.
