//! Whether a script may run: asked on a terminal, refused with the exact command elsewhere.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use lunation::host::{Host, HostError, Plan, Script};

/// Makes sure that the script is trusted, or refuses.
pub(crate) async fn settle(host: &Host, script: &Script, granted: bool, may_ask: bool) -> anyhow::Result<()> {
    let plan = host.check(script.clone()).await?;
    if plan.trusted {
        return Ok(());
    }
    let refused = HostError::Untrusted { script: plan.script.clone(), changed: plan.changed.clone() };
    if !granted && (!may_ask || !is_watched() || !ask(&plan)?) {
        return Err(refused.into());
    }
    host.grant_trust_as_seen(script.clone(), &plan).await?;
    Ok(())
}

/// True when a person can read the question and answer it.
fn is_watched() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

fn ask(plan: &Plan) -> anyhow::Result<bool> {
    let mut err = anstream::stderr().lock();
    let what = if plan.changed.is_empty() { "is not trusted yet" } else { "changed since you trusted it" };
    writeln!(err, "{} {what}. It runs commands here in your name:", plan.script.display())?;
    for (file, digest) in &plan.files {
        let mark = if plan.changed.contains(file) {
            "changed"
        } else if plan.changed.is_empty() {
            "new"
        } else {
            "as before"
        };
        writeln!(err, "  {mark:9} {digest}  {file}")?;
    }
    writeln!(err, "Read it first; `lunation plan` shows what it would do.")?;
    write!(err, "Trust it and run? [y/N] ")?;
    err.flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
