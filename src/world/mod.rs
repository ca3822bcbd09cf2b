//! The world layer.
