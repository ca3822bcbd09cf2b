//! `ln.git`: questions about the repository; nothing here changes it.

use mlua::{Lua, Value};

use super::{Member, Namespace, Shape, Signature, What, effect};
use crate::script::data;
use crate::script::error::ErrorKind;
use crate::script::vm::{Shared, place, show};
use crate::world::GitQuestion;

const fn question(name: &'static str, doc: &'static str, returns: &'static str) -> Member {
    Member { name, what: What::Function(Signature { doc, params: &[], returns: Some(returns) }) }
}

pub(super) static NAMESPACE: Namespace = Namespace {
    name: "git",
    shape: Shape::Table {
        call: None,
        members: &[
            question("branch", "The branch that HEAD names; nil when detached.", "string?"),
            question("head", "The commit at HEAD; nil on an unborn branch.", "string?"),
            question("status", "Paths that differ from HEAD, with git's two status letters.", "any"),
            question("diff", "The diff against HEAD, by git's rules.", "any"),
            Member {
                name: "log",
                what: What::Function(Signature {
                    doc: "The last commits, newest first; 20 when no number is given, at most 1000.",
                    params: &[("count?", "integer")],
                    returns: Some("any"),
                }),
            },
        ],
    },
    later: &["worktree", "checkpoint", "rollback", "commit"],
    make: |lua| {
        let content = lua.create_table()?;
        for (name, question) in [
            ("branch", GitQuestion::Branch),
            ("head", GitQuestion::Head),
            ("status", GitQuestion::Status),
            ("diff", GitQuestion::Diff),
        ] {
            let function = lua.create_async_function(move |lua: Lua, ()| ask(lua, name, Ok(question.clone())))?;
            content.raw_set(name, function)?;
        }
        let log = lua.create_async_function(|lua: Lua, count: Value| {
            let question = log_question(&lua, &count);
            ask(lua, "log", question)
        })?;
        content.raw_set("log", log)?;
        Ok(Value::Table(content))
    },
};

/// The checks are made before the first wait, where the caller is still on the stack.
fn ask(
    lua: Lua,
    name: &'static str,
    question: mlua::Result<GitQuestion>,
) -> impl Future<Output = mlua::Result<Value>> + Send + 'static {
    let run = effect::allowed(
        &lua,
        &format!("ln.git.{name}"),
        "ask in a function of the run (`return function(run) … end`), or show it to the agent by `context = { \"git log\" }`",
    );
    async move {
        let (run, question) = (run?, question?);
        let answer = crate::script::vm::effect(&lua, async move { run.git(question).await }).await?;
        data::to_lua(&lua, &answer)
    }
}

fn log_question(lua: &Lua, count: &Value) -> mlua::Result<GitQuestion> {
    match count {
        Value::Nil => Ok(GitQuestion::Log(20)),
        Value::Integer(count @ 1..=1000) => Ok(GitQuestion::Log(*count as u32)),
        other => Err(place::raise(
            lua,
            &Shared::of(lua).texts,
            ErrorKind::Options,
            format!("ln.git.log wants a whole number from 1 to 1000, got {}", show::short(other)),
        )),
    }
}
