//! The process mechanism.
