//! `lunation init`: a loop of about ten lines for the project that is here, with the agent's line first to edit.
//!
//! Never overwrites (but with `--force`), and writes all files or none. Runs nothing.

mod files;
mod stack;

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use lunation::mechanism::process::find_program;
use lunation::policy::ExitCode;
use lunation::script::{SCRIPT_NAME, preset_names};
use serde_json::json;

use self::files::Agents;
use self::stack::Stack;
use crate::args::Init;
use crate::exit_code::UsageError;
use crate::present::{Output, Tone};
use crate::surroundings::Surroundings;

const PROMPT_NAME: &str = "PROMPT.md";
/// Where annotations go when the editor is set up too.
pub(super) const TYPES_FOLDER: &str = ".lunation/types";

pub(crate) fn run(args: &Init, around: &Surroundings, out: &mut Output) -> anyhow::Result<ExitCode> {
    let folder = &around.folder;
    // A loop needs a repository: better told now than at the first run.
    let here = around.here()?;
    let stack = Stack::of(folder);
    let found: Vec<&str> = preset_names().filter(|name| is_there(name, around)).collect();
    let chosen = found.first().copied().unwrap_or("claude");
    let agents = Agents { chosen, others: preset_names().filter(|name| *name != chosen).collect() };

    let mut written = vec![(PathBuf::from(SCRIPT_NAME), files::script(&stack, &agents))];
    if args.force || !folder.join(PROMPT_NAME).exists() {
        written.push((PROMPT_NAME.into(), files::PROMPT.into()));
    }
    if args.editor {
        written.push((".luarc.json".into(), files::luarc(TYPES_FOLDER)));
        written
            .extend(super::types::files().into_iter().map(|(name, text)| (Path::new(TYPES_FOLDER).join(name), text)));
    }
    if !args.force {
        refuse_existing(folder, &written)?;
    }
    for (name, text) in &written {
        put(&folder.join(name), text)?;
    }
    if out.json() {
        out.value(&json!({
            "written": written.iter().map(|(name, _)| name.display().to_string()).collect::<Vec<_>>(),
            "root": here.repository.root(), "agent": chosen, "agents_found": found,
            "sensors": stack.sensors, "told_by": stack.found,
        }))?;
        return Ok(ExitCode::Verified);
    }
    for (name, _) in &written {
        out.line(&format!("wrote {}", name.display()))?;
    }
    tell(&stack, &found, chosen, out)?;
    Ok(ExitCode::Verified)
}

fn tell(stack: &Stack, found: &[&str], chosen: &str, out: &mut Output) -> anyhow::Result<()> {
    match stack.found.as_slice() {
        [] => out.extra(&Tone::Warn.paint(
            "no check was found: put the command that checks your work into `sensors`, or nothing can verify the result",
        ))?,
        by => out.extra(&format!("checks, by {}: {}", by.join(" and "), stack.sensors.join(", ")))?,
    }
    match found {
        [] => out.extra(&Tone::Warn.paint(&format!(
            "no agent was found on your PATH: install one (`lunation doctor` tells how), or name your own in place of \"{chosen}\""
        )))?,
        found => out.extra(&format!("agents found: {}", found.join(", ")))?,
    }
    out.extra(&Tone::Dim.paint(
        "next: edit the agent line of loop.lua and PROMPT.md, then: lunation check && lunation trust && lunation run",
    ))
}

fn refuse_existing(folder: &Path, files: &[(PathBuf, String)]) -> Result<(), UsageError> {
    let there: Vec<String> = files
        .iter()
        .filter(|(name, _)| folder.join(name).symlink_metadata().is_ok())
        .map(|(name, _)| name.display().to_string())
        .collect();
    match there.as_slice() {
        [] => Ok(()),
        names => Err(UsageError::new(
            format!("{} is there already, and nothing was written", names.join(" and ")),
            "`lunation init --force` writes over it",
        )),
    }
}

/// Writes a file whole, in one step.
fn put(path: &Path, text: &str) -> anyhow::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let write = || -> std::io::Result<()> {
        fs::create_dir_all(folder)?;
        let mut staged = tempfile::Builder::new().permissions(permissions()).tempfile_in(folder)?;
        staged.write_all(text.as_bytes())?;
        staged.persist(path)?;
        Ok(())
    };
    write().with_context(|| format!("{} cannot be written", path.display()))
}

/// What a new file has; the umask takes its share.
fn permissions() -> fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o666)
}

fn is_there(program: &str, around: &Surroundings) -> bool {
    find_program(OsStr::new(program), around.var("PATH").unwrap_or_default(), &around.folder).is_ok()
}
