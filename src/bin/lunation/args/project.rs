//! Arguments of the commands that set a project or a machine up.

use std::path::PathBuf;

use clap::Args;

/// `lunation init`
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// Write over files that are there already
    #[arg(long)]
    pub(crate) force: bool,
    /// Set the editor up too: annotations in .lunation/types, and .luarc.json that names them
    #[arg(long)]
    pub(crate) editor: bool,
}

/// `lunation types`
#[derive(Debug, Args)]
pub(crate) struct Types {
    /// Write them into this folder [default: they are printed]
    #[arg(long = "out", value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
}

/// `lunation demo`
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Keep the folder with the demonstration's project
    #[arg(long)]
    pub(crate) keep: bool,
}
