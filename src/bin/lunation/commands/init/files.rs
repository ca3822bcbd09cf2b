//! The texts that `init` writes. The agent's line is the first to edit, and each line says what it is for.

use super::stack::Stack;

/// The prompt, for a person to fill in.
pub(super) const PROMPT: &str = "\
Make the failing checks pass.

Work on one thing at a time. Do not change the tests. Read the code around a failure before you change it, and keep
the change small. When you are done, say in one line what you changed and why.
";

/// The agent line's names, with the one that was found first.
pub(super) struct Agents<'a> {
    /// The one that is written.
    pub(super) chosen: &'a str,
    /// The others, for the comment.
    pub(super) others: Vec<&'a str>,
}

/// `loop.lua`
pub(super) fn script(stack: &Stack, agents: &Agents) -> String {
    let others: Vec<String> = agents.others.iter().map(|name| format!("\"{name}\"")).collect();
    let mut text = String::from("local ln = require \"lunation\"\n\nreturn ln.loop {\n");
    let mut line = |name: &str, value: String, remark: &str| {
        text.push_str(&format!("  {name:7} = {value},  -- {remark}\n"));
    };
    line(
        "agent",
        format!("\"{}\"", agents.chosen),
        &format!("or {}, or a command: ln.agent {{ \"sh\", \"agent.sh\" }}", others.join(", ")),
    );
    line("prompt", "ln.prompt \"PROMPT.md\"".into(), "what it is asked, each time anew; edit that file");
    if stack.sensors.is_empty() {
        line(
            "complete",
            "ln.complete.sentinel \"ALL DONE\"".into(),
            "better: sensors = { \"a command that checks the work\" }",
        );
    } else {
        line("sensors", list(&stack.sensors), "done when these commands exit with 0");
    }
    if !stack.tests.is_empty() {
        let globs: Vec<String> =
            std::iter::once("**".to_owned()).chain(stack.tests.iter().map(|glob| format!("!{glob}"))).collect();
        line("fence", list(&globs), "what it may write; all else is put back");
    }
    line("budget", "{ iterations = 10, wall = \"1h\" }".into(), "the loop never goes beyond this");
    text.push_str("}\n");
    text
}

/// `.luarc.json`, so that an editor finds the annotations.
pub(super) fn luarc(types: &str) -> String {
    let settings = serde_json::json!({
        "runtime.version": "Lua 5.4",
        "workspace.library": [types],
        "workspace.checkThirdParty": false,
    });
    format!("{settings:#}\n")
}

fn list(items: &[String]) -> String {
    let items: Vec<String> = items.iter().map(|item| lua_string(item)).collect();
    format!("{{ {} }}", items.join(", "))
}

/// A Lua string literal.
fn lua_string(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_about_ten_lines_with_the_agent_first() {
        let stack = Stack {
            found: vec!["Cargo.toml".into()],
            sensors: vec!["cargo test".into()],
            tests: vec!["tests/**".into()],
        };
        let text = script(&stack, &Agents { chosen: "codex", others: vec!["claude", "pi"] });
        assert_eq!(
            text,
            "local ln = require \"lunation\"\n\nreturn ln.loop {\n\
             \x20 agent   = \"codex\",  -- or \"claude\", \"pi\", or a command: ln.agent { \"sh\", \"agent.sh\" }\n\
             \x20 prompt  = ln.prompt \"PROMPT.md\",  -- what it is asked, each time anew; edit that file\n\
             \x20 sensors = { \"cargo test\" },  -- done when these commands exit with 0\n\
             \x20 fence   = { \"**\", \"!tests/**\" },  -- what it may write; all else is put back\n\
             \x20 budget  = { iterations = 10, wall = \"1h\" },  -- the loop never goes beyond this\n}\n"
        );
    }

    #[test]
    fn words_are_quoted_for_lua() {
        assert_eq!(lua_string("say \"x\\y\""), r#""say \"x\\y\"""#);
    }
}
