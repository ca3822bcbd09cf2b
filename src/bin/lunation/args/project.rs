//! Arguments of the commands that set a project or a machine up.

use std::path::PathBuf;

use clap::Args;

/// `lunation init`
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// Write over files that are there already
    #[arg(long)]
    pub(crate) force: bool,
}

/// `lunation types`
#[derive(Debug, Args)]
pub(crate) struct Types {
    /// Folder for the annotations that editors read [default: .lunation/types]
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
}

/// `lunation doctor`
#[derive(Debug, Args)]
pub(crate) struct Doctor {}

/// `lunation demo`
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Keep the folder with the demonstration's project
    #[arg(long)]
    pub(crate) keep: bool,
}
