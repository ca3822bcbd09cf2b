//! From the process's arguments and environment to a command, and from its result to an exit code.
//!
//! Reads the ambient environment together with `surroundings.rs`; the library gets values.

use std::io::IsTerminal;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser as _;
use tracing_subscriber::EnvFilter;

use crate::args::Cli;
use crate::exit_code::{self, UsageError};
use crate::present::Output;
use crate::surroundings::Surroundings;

/// Variable with the filter of the program's own log, for example `debug`.
const LOG_VARIABLE: &str = "LUNATION_LOG";

/// The program.
pub(crate) fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return exit_code::of_arguments(&error),
    };
    let json = cli.global.json;
    let result = start_log().and_then(|()| {
        let mut out = Output::new(cli.global.json, cli.global.quiet, std::io::stdout().is_terminal());
        let around = Surroundings::read(&cli.global.directory)?;
        let code = crate::commands::run(cli, &around, &mut out)?;
        out.flush()?;
        Ok(code)
    });
    match result {
        Ok(code) => ExitCode::from(code.number()),
        Err(error) => exit_code::of_error(&error, json),
    }
}

/// Sends the program's own log to standard error, so that it never mixes with what a program reads.
fn start_log() -> anyhow::Result<()> {
    let Some(wanted) = std::env::var_os(LOG_VARIABLE).filter(|wanted| !wanted.is_empty()) else { return Ok(()) };
    let wanted = wanted.to_string_lossy();
    let filter = EnvFilter::try_new(&wanted).map_err(|error| {
        UsageError::new(format!("{LOG_VARIABLE}={wanted} is no log filter: {error}"), "try LUNATION_LOG=debug")
    })?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .try_init()
        .map_err(anyhow::Error::from_boxed)
        .context("the log could not be started")
}
