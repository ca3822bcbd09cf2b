//! What to say about global names that a script does not have.

use crate::script::nearest::did_you_mean;

/// What people look for, and where it is.
const INSTEAD: &[(&str, &str)] = &[
    ("os", "scripts have no clock and no environment: pass values in by --input and read ln.input"),
    ("io", "scripts read no files: use ln.prompt for prompts and ln.sh for all else"),
    ("dofile", "use require for modules beside the script"),
    ("loadfile", "use require for modules beside the script"),
    ("package", "use require for modules beside the script"),
    ("collectgarbage", "memory is managed by the host"),
    ("warn", "use ln.log.warn"),
    ("_G", "scripts have no table of globals: use a local table"),
    ("unpack", "write table.unpack"),
    ("setfenv", "write load(text, name, \"t\", env)"),
];

/// For a name that nobody declared. `assigned`: the script sets it.
pub(in crate::script) fn undeclared(name: &str, assigned: bool, known: &[String]) -> String {
    if let Some((_, instead)) = INSTEAD.iter().find(|(tried, _)| *tried == name) {
        return format!("`{name}` is not available: {instead}");
    }
    if known.iter().any(|known| known == name) {
        return format!("`{name}` belongs to lunation and cannot be changed: use a local of another name");
    }
    if assigned {
        return format!("`{name}` is not declared: write `local {name} = …` (scripts have no global variables)");
    }
    let hint = did_you_mean(name, known.iter().map(String::as_str));
    format!("`{name}` is not declared{hint}: it is no local here and no name of lunation")
}

/// Puts the compiler's words about undeclared names into ours; all else stays as it is.
pub(super) fn compile_message(message: &str, line: Option<&str>, known: &[String]) -> String {
    let quoted = |prefix: &str, suffix: &str| -> Option<&str> {
        let rest = message.split_once(prefix)?.1;
        let (name, after) = rest.split_once('\'')?;
        after.starts_with(suffix).then_some(name)
    };
    if let Some(name) = quoted("variable '", " not declared") {
        return undeclared(name, line.is_some_and(|line| assigns(line, name)), known);
    }
    if let Some(name) = quoted("attempt to assign to const variable '", "") {
        if known.iter().any(|known| known == name) {
            return undeclared(name, true, known);
        }
        return format!("`{name}` cannot be assigned to: it is a constant or the variable of a loop");
    }
    message.to_owned()
}

/// Whether the line sets the name, rather than reads it.
fn assigns(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        let before = line[..at].trim_end();
        let after = line[at + name.len()..].trim_start();
        let whole = !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '.');
        whole && ((after.starts_with('=') && !after.starts_with("==")) || before.ends_with("function"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_and_reading_are_told_apart() {
        assert!(assigns("sensors = { 1 }", "sensors"));
        assert!(assigns("function helper(o)", "helper"));
        assert!(!assigns("if sensors == 2 then", "sensors"));
        assert!(!assigns("return o.sensors = 1", "sensors"));
        assert!(!assigns("return sensors", "sensors"));
    }
}
