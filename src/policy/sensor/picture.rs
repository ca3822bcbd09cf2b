//! A picture as data: how it is taken, and what it must look like.

use serde::{Deserialize, Serialize};

use super::command::CommandSpec;

/// A picture and the one that it must look like.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PictureSpec {
    /// Takes the picture; default: it is there already.
    pub take: Option<CommandSpec>,
    /// The picture, relative to the workspace.
    pub actual: String,
    /// What it must look like, relative to the workspace; no agent may write it.
    pub golden: String,
    /// The largest share of pixels that may differ, from 0 to 1; default 0.
    pub threshold: f64,
    /// How much a pixel may differ before it counts, from 0 to 1; default 0.1.
    pub tolerance: f64,
}
