//! The engine layer.
