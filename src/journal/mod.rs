//! The journal layer.
