//! The script layer.
