//! What the mechanisms must be able to do, measured: `cargo bench --bench mechanisms`, with `--processes` or another
//! group's name for a part of it, and `--write README.md` to put the table between the markers of that file.
//!
//! Figures are medians, and what is compared is measured in turns in the same run: look at the ratios, machines are
//! noisy. The exit code is 1 when a requirement is missed.

mod processes;
mod repository;
mod table;

use std::process::ExitCode;

use table::Row;

/// One part of the table.
struct Group {
    /// The option that selects it.
    option: &'static str,
    run: fn() -> anyhow::Result<Vec<Row>>,
}

const GROUPS: &[Group] =
    &[Group { option: "--processes", run: processes::run }, Group { option: "--repository", run: repository::run }];

fn main() -> anyhow::Result<ExitCode> {
    lunation::enter_warden_if_asked();
    if processes::host_death::is_asked_to_act() {
        return processes::host_death::act_as_host().map(|()| ExitCode::SUCCESS);
    }
    let mut selected = Vec::new();
    let mut write = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            // What cargo adds.
            "--bench" => {}
            "--write" => write = Some(arguments.next().ok_or_else(|| anyhow::anyhow!("--write needs a file"))?),
            option => selected.push(
                GROUPS
                    .iter()
                    .find(|group| group.option == option)
                    .ok_or_else(|| anyhow::anyhow!("there is no option {option}"))?,
            ),
        }
    }
    let groups = if selected.is_empty() { GROUPS.iter().collect() } else { selected };
    let mut rows = Vec::new();
    for group in groups {
        rows.extend((group.run)()?);
    }
    table::print(&rows)?;
    if let Some(file) = write {
        table::write_into(std::path::Path::new(&file), &rows)?;
    }
    Ok(if rows.iter().all(|row| row.ok) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
