//! What the program can do: one file for each command. A command gets its arguments and an [`Output`], and returns the
//! exit code of the program; errors get theirs in `exit_code.rs`.

mod check;
mod demo;
mod diff;
mod doctor;
mod init;
mod iteration;
mod log;
mod plan;
mod prompt;
mod report;
mod restore;
mod run;
mod status;
mod stop;
mod trust;
mod types;
mod why;

use lunation::policy::ExitCode;

use crate::args::{Cli, Command};
use crate::present::Output;
use crate::surroundings::Surroundings;

/// Does what the arguments say.
pub(crate) fn run(cli: Cli, around: &Surroundings, out: &mut Output) -> anyhow::Result<ExitCode> {
    let global = &cli.global;
    match cli.command {
        Command::Demo(args) => demo::run(&args, around, out),
        Command::Init(args) => init::run(&args, around, out),
        Command::Check(args) => check::run(&args, around, out),
        Command::Plan(args) => plan::run(&args, around, out),
        Command::Trust(args) => trust::run(&args, around, out),
        Command::Run(args) => run::run(global, &args, around),
        Command::Stop(args) => stop::run(&args, around, out),
        Command::Restore(args) => restore::run(&args, around, out),
        Command::Types(args) => types::run(&args, around, out),
        Command::Doctor => doctor::run(around, out),
        Command::Status(args) => status::run(&args, around, out),
        Command::Why(args) => why::run(&args, around, out),
        Command::Log(args) => log::run(&args, around, out),
        Command::Prompt(args) => prompt::run(&args, around, out),
        Command::Diff(args) => diff::run(&args, around, out),
        Command::Report(args) => report::run(&args, around, out),
    }
}

/// Where the work of a command runs that waits for others.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
}
