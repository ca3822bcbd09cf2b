//! `lunation types`: the Lua API as annotations that editors read.

use std::path::Path;

use anyhow::Context as _;
use lunation::policy::ExitCode;
use serde_json::json;

use crate::args::Types;
use crate::present::{Output, Tone};
use crate::surroundings::Surroundings;

/// Files by name.
pub(super) fn files() -> Vec<(&'static str, String)> {
    vec![("lunation.lua", lunation::script::annotations())]
}

pub(crate) fn run(args: &Types, around: &Surroundings, out: &mut Output) -> anyhow::Result<ExitCode> {
    let Some(folder) = &args.folder else {
        for (_, text) in files() {
            out.content(text.as_bytes())?;
        }
        return Ok(ExitCode::Verified);
    };
    let folder = around.folder.join(folder);
    std::fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    let mut written = Vec::new();
    for (name, text) in files() {
        let path = folder.join(name);
        // Ours by name, and generated: an older one is replaced.
        std::fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?;
        written.push(path);
    }
    if out.json() {
        out.value(&json!({ "written": written }))?;
        return Ok(ExitCode::Verified);
    }
    written.iter().try_for_each(|path: &std::path::PathBuf| out.line(&format!("wrote {}", path.display())))?;
    out.extra(&Tone::Dim.paint(&hint(&folder)))?;
    Ok(ExitCode::Verified)
}

fn hint(folder: &Path) -> String {
    format!("editors find them by .luarc.json: {{ \"workspace.library\": [\"{}\"] }}", folder.display())
}
