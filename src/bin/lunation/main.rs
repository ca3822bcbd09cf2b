//! The lunation program: arguments in, words and exit codes out. All else is in the library.

mod app;
mod args;
mod commands;
mod exit_code;
mod present;
mod quoting;
mod surroundings;

fn main() -> std::process::ExitCode {
    // Every agent, sensor and command runs under this same program, entered again as its warden.
    lunation::enter_warden_if_asked();
    app::main()
}
