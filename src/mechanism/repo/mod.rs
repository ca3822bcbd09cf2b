//! The repo mechanism.
