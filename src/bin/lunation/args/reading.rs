//! Arguments of the commands that read the records of runs.

use clap::Args;

/// Which run.
#[derive(Debug, Args)]
pub(crate) struct RunChoice {
    /// The run: the beginning of its name, or of the name's last part [default: the newest]
    #[arg(long, value_name = "ID")]
    pub(crate) run: Option<String>,
}

/// Which iteration of it.
#[derive(Debug, Args)]
pub(crate) struct IterationChoice {
    /// Number of the iteration [default: the last]
    #[arg(value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) iteration: Option<u32>,
    /// The loop, where several loops of a run have an iteration of this number
    #[arg(long, value_name = "PATH")]
    pub(crate) path: Option<String>,
}

/// `lunation status`
#[derive(Debug, Args)]
pub(crate) struct Status {
    #[command(flatten)]
    pub(crate) run: RunChoice,
}

/// `lunation why`
#[derive(Debug, Args)]
pub(crate) struct Why {
    /// Tell it of this iteration only: why it was kept or rolled back
    #[arg(value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) iteration: Option<u32>,
    #[command(flatten)]
    pub(crate) run: RunChoice,
}

/// `lunation log`
#[derive(Debug, Args)]
pub(crate) struct Log {
    #[command(flatten)]
    pub(crate) run: RunChoice,
    /// Only records of this kind, for example decided; can be given several times
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Vec<String>,
    /// Only the last records, this many
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) last: Option<u32>,
}

/// `lunation prompt`, `lunation diff`
#[derive(Debug, Args)]
pub(crate) struct OfIteration {
    #[command(flatten)]
    pub(crate) iteration: IterationChoice,
    #[command(flatten)]
    pub(crate) run: RunChoice,
}

/// `lunation report`
#[derive(Debug, Args)]
pub(crate) struct Report {
    #[command(flatten)]
    pub(crate) run: RunChoice,
    /// All runs of the repository, with the figures over them
    #[arg(long, conflicts_with = "run")]
    pub(crate) all: bool,
}
