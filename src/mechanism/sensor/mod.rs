//! The sensor mechanism.
