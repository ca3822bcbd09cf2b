//! The arguments of the program, as written. Nothing is done here.

mod project;
mod reading;
mod running;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub(crate) use project::{Demo, Init, Types};
pub(crate) use reading::{IterationChoice, Log, OfIteration, Report, RunChoice, Status, Why};
pub(crate) use running::{Check, Plan, Restore, Run, ScriptChoice, Stop, Trust};

/// Runs loops of coding agents that can be trusted: each project says in loop.lua what its loop is.
#[derive(Debug, Parser)]
#[command(
    name = "lunation",
    version,
    about,
    disable_help_subcommand = true,
    arg_required_else_help = true,
    after_help = "Exit codes: 0 completed and verified, 1 ended without it, 2 a cap was reached, 3 waiting for a person, \
                  4 usage or script error (nothing was launched), 5 refused (held by another run, or not to be trusted), \
                  128+n ended by signal n.\n\
                  Environment: LUNATION_LOG=debug shows the program's own log on standard error; NO_COLOR turns colour off."
)]
pub(crate) struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub(crate) global: Global,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Work as if started in this folder
    #[arg(short = 'C', value_name = "DIR", global = true, default_value = ".", hide_default_value = true)]
    pub(crate) directory: PathBuf,
    /// Print JSON for programs instead of words for people
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Leave out headings, remarks and hints
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show what this program does, on a small broken project that it makes: no key, no network, half a minute
    Demo(Demo),
    /// Write a loop for the project that is here: loop.lua and PROMPT.md
    Init(Init),
    /// Check a script: load it, launch nothing
    Check(Check),
    /// Show what a run would do and launch, with every default filled in; launch nothing
    Plan(Plan),
    /// Trust a script, with all that it loads, as it is now
    Trust(Trust),
    /// Run a loop
    Run(Run),
    /// Ask the run that is at work here to end
    Stop(Stop),
    /// Put the work tree back as it was before an iteration
    Restore(Restore),
    /// Show where a run is now
    Status(Status),
    /// Tell why a run stands where it stands, and what to type next
    Why(Why),
    /// Show everything that happened in a run, in order
    Log(Log),
    /// Print the exact prompt of an iteration
    Prompt(OfIteration),
    /// Print what an iteration changed, as a diff
    Diff(OfIteration),
    /// Report on one run, or on all runs together
    Report(Report),
    /// Print the Lua API as annotations for editors, or write them
    Types(Types),
    /// Tell what this machine can do for a loop, and what is missing
    Doctor,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_arguments_are_sound_and_every_command_and_option_is_documented() {
        let mut command = Cli::command();
        command.build();
        command.clone().debug_assert();
        for sub in command.get_subcommands() {
            assert!(sub.get_about().is_some(), "{} has no description", sub.get_name());
            for arg in sub.get_arguments() {
                assert!(arg.get_help().is_some(), "{} {} has no description", sub.get_name(), arg.get_id());
            }
        }
    }
}
