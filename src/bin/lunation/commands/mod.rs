//! What the program can do: one file for each command. A command gets its arguments and an [`Output`], and returns the
//! exit code of the program; errors get theirs in `exit_code.rs`.

mod diff;
mod iteration;
mod log;
mod prompt;
mod report;
mod status;
mod why;

use lunation::policy::ExitCode;

use crate::args::{Cli, Command};
use crate::present::Output;

/// Does what the arguments say.
pub(crate) fn run(cli: Cli, out: &mut Output) -> anyhow::Result<ExitCode> {
    let global = &cli.global;
    match cli.command {
        Command::Status(args) => status::run(global, &args, out),
        Command::Why(args) => why::run(global, &args, out),
        Command::Log(args) => log::run(global, &args, out),
        Command::Prompt(args) => prompt::run(global, &args, out),
        Command::Diff(args) => diff::run(global, &args, out),
        Command::Report(args) => report::run(global, &args, out),
    }
}
