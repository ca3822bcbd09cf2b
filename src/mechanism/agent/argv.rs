//! From the argument list of a preset to the arguments of one turn.
//!
//! Guarantees that filled-in text is never looked at again and never becomes part of a shell line or of another
//! argument: what is in a prompt cannot be executed and cannot become an option.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use crate::policy::{AgentSource, AgentSpec, PromptChannel};

/// The names that are filled in.
pub(super) const PLACEHOLDERS: [&str; 5] = ["model", "prompt", "prompt_file", "workspace", "tmp"];

/// What is filled in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Filling<'a> {
    pub(super) model: Option<&'a str>,
    /// The prompt, where it goes into the arguments.
    pub(super) prompt: Option<&'a str>,
    /// The prompt's file, where it goes there.
    pub(super) prompt_file: Option<&'a Path>,
    pub(super) workspace: &'a Path,
    pub(super) tmp: &'a Path,
}

/// The program and its arguments.
pub(super) fn fill(argv: &[String], filling: &Filling<'_>) -> Vec<OsString> {
    let mut filled: Vec<OsString> = Vec::new();
    for (at, arg) in argv.iter().enumerate() {
        if filling.model.is_none() && arg.contains("{model}") {
            // The option in front of it has lost its value.
            if arg == "{model}" && at > 1 && argv[at - 1].starts_with('-') {
                filled.pop();
            }
            continue;
        }
        filled.push(fill_one(arg, filling));
    }
    if let Some(prompt) = filling.prompt.filter(|_| !argv.iter().any(|arg| arg == "{prompt}")) {
        filled.push(prompt.into());
    }
    filled
}

fn fill_one(arg: &str, filling: &Filling<'_>) -> OsString {
    let mut bytes = Vec::new();
    let mut rest = arg;
    while let Some((before, name, after)) = next_placeholder(rest) {
        bytes.extend_from_slice(before.as_bytes());
        match value(name, filling) {
            Some(value) => bytes.extend_from_slice(value.as_encoded_bytes()),
            None => bytes.extend_from_slice(&rest.as_bytes()[before.len()..rest.len() - after.len()]),
        }
        rest = after;
    }
    bytes.extend_from_slice(rest.as_bytes());
    OsString::from_vec(bytes)
}

fn value(name: &str, filling: &Filling<'_>) -> Option<OsString> {
    match name {
        "model" => filling.model.map(Into::into),
        "prompt" => filling.prompt.map(Into::into),
        "prompt_file" => filling.prompt_file.map(Into::into),
        "workspace" => Some(filling.workspace.into()),
        "tmp" => Some(filling.tmp.into()),
        _ => None,
    }
}

/// Splits at the first `{name}`: before, name, after. `${name}` is the shell's.
fn next_placeholder(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    while let Some(found) = text[from..].find('{') {
        let open = from + found;
        let inner = &text[open + 1..];
        let end = inner.find(|c: char| !c.is_ascii_lowercase() && c != '_').unwrap_or(inner.len());
        if end > 0 && inner[end..].starts_with('}') && !text[..open].ends_with('$') {
            return Some((&text[..open], &inner[..end], &inner[end + 1..]));
        }
        from = open + 1;
    }
    None
}

/// What is wrong with the arguments of `spec`, if anything: the field and what to do.
pub(super) fn check(spec: &AgentSpec) -> Result<(), (String, String)> {
    let AgentSource::Command(argv) = &spec.source else { return Ok(()) };
    let field = |at: usize| format!("source.command[{}]", at + 1);
    let Some(program) = argv.first().filter(|program| !program.trim().is_empty()) else {
        return Err((field(0), "there is no program to start".into()));
    };
    if next_placeholder(program).is_some_and(|(_, name, _)| PLACEHOLDERS.contains(&name)) {
        return Err((field(0), "the program itself can't be filled in".into()));
    }
    for (at, arg) in argv.iter().enumerate() {
        check_arg(spec, argv, at, arg).map_err(|problem| (field(at), problem))?;
    }
    if spec.prompt_via == PromptChannel::File && !argv.iter().any(|arg| arg.contains("{prompt_file}")) {
        return Err((
            "prompt_via".into(),
            "no argument names the file: put {prompt_file} where its path belongs".into(),
        ));
    }
    Ok(())
}

fn check_arg(spec: &AgentSpec, argv: &[String], at: usize, arg: &str) -> Result<(), String> {
    if arg.contains('\0') {
        return Err("it has a NUL byte".into());
    }
    let mut rest = arg;
    while let Some((_, name, after)) = next_placeholder(rest) {
        check_name(spec, name)?;
        if name == "prompt" {
            check_prompt_place(argv, at, arg)?;
        }
        rest = after;
    }
    Ok(())
}

fn check_name(spec: &AgentSpec, name: &str) -> Result<(), String> {
    match name {
        "prompt" if spec.prompt_via != PromptChannel::Arg => {
            Err("{prompt} is only filled in with prompt_via = \"arg\"".into())
        }
        "prompt_file" if spec.prompt_via != PromptChannel::File => {
            Err("{prompt_file} is only filled in with prompt_via = \"file\"".into())
        }
        _ if PLACEHOLDERS.contains(&name) => Ok(()),
        // Braces are ordinary text in many languages; only what looks like a slip is one.
        _ => match PLACEHOLDERS.iter().find(|known| strsim::damerau_levenshtein(known, name) <= 2) {
            Some(known) => Err(format!("{{{name}}} is not filled in; did you mean {{{known}}}?")),
            None => Ok(()),
        },
    }
}

fn check_prompt_place(argv: &[String], at: usize, arg: &str) -> Result<(), String> {
    const SHELLS: [&str; 8] = ["sh", "bash", "dash", "zsh", "ksh", "fish", "env", "eval"];
    if arg != "{prompt}" {
        return Err("{prompt} must be an argument of its own, so that nothing in a prompt can be taken for code".into());
    }
    let shell = argv[0].rsplit('/').next().is_some_and(|name| SHELLS.contains(&name));
    if shell && argv[..at].last().is_some_and(|before| before.starts_with('-') && before.ends_with('c')) {
        return Err("the prompt would be run as a shell script; give it on stdin, or after the script as \"$1\"".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filling() -> Filling<'static> {
        Filling { model: None, prompt: None, prompt_file: None, workspace: Path::new("/w s"), tmp: Path::new("/t") }
    }

    fn words(argv: &[&str], filling: &Filling<'_>) -> Vec<String> {
        let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
        fill(&argv, filling).into_iter().map(|word| word.into_string().unwrap()).collect()
    }

    #[test]
    fn known_names_are_filled_in_and_other_braces_stay() {
        let filled = words(
            &["a", "--dir={workspace}/x", "{tmp}", "awk '{print $1}'", "${tmp}", "{}", "{\"a\":1}", "{unknown}"],
            &filling(),
        );
        assert_eq!(filled, ["a", "--dir=/w s/x", "/t", "awk '{print $1}'", "${tmp}", "{}", "{\"a\":1}", "{unknown}"]);
    }

    #[test]
    fn an_unset_model_takes_its_option_with_it() {
        let argv = ["pi", "--mode", "json", "--model", "{model}", "--m={model}", "x"];
        assert_eq!(words(&argv, &filling()), ["pi", "--mode", "json", "x"]);
        let with = Filling { model: Some("m-1"), ..filling() };
        assert_eq!(words(&argv, &with), ["pi", "--mode", "json", "--model", "m-1", "--m=m-1", "x"]);
        assert_eq!(words(&["a", "use", "{model}"], &filling()), ["a", "use"]);
    }

    #[test]
    fn a_prompt_is_one_argument_and_is_not_looked_into() {
        let with = Filling { prompt: Some("say {tmp} & $(x)"), ..filling() };
        assert_eq!(words(&["a", "{prompt}", "b"], &with), ["a", "say {tmp} & $(x)", "b"]);
        assert_eq!(words(&["a", "b"], &with), ["a", "b", "say {tmp} & $(x)"]);
    }

    fn problem(argv: &[&str], via: PromptChannel) -> Option<(String, String)> {
        let spec = AgentSpec { prompt_via: via, ..AgentSpec::command(argv.iter().copied()) };
        check(&spec).err()
    }

    #[test]
    fn mistakes_in_arguments_are_named() {
        for (argv, via, field, words) in [
            (&[][..], PromptChannel::Stdin, "source.command[1]", "no program"),
            (&["  "], PromptChannel::Stdin, "source.command[1]", "no program"),
            (&["{model}"], PromptChannel::Stdin, "source.command[1]", "itself"),
            (&["a", "{modle}"], PromptChannel::Stdin, "source.command[2]", "did you mean {model}?"),
            (&["a", "{prompt}"], PromptChannel::Stdin, "source.command[2]", "prompt_via = \"arg\""),
            (&["a", "{prompt_file}"], PromptChannel::Arg, "source.command[2]", "prompt_via = \"file\""),
            (&["a"], PromptChannel::File, "prompt_via", "{prompt_file}"),
            (&["a", "--p={prompt}"], PromptChannel::Arg, "source.command[2]", "of its own"),
            (&["/bin/bash", "-lc", "{prompt}"], PromptChannel::Arg, "source.command[3]", "shell script"),
            (&["a", "x\0y"], PromptChannel::Stdin, "source.command[2]", "NUL"),
        ] {
            let (at, why) = problem(argv, via).unwrap_or_else(|| panic!("{argv:?} was accepted"));
            assert_eq!(at, field);
            assert!(why.contains(words), "{why}");
        }
    }

    #[test]
    fn ordinary_arguments_are_accepted() {
        for (argv, via) in [
            (&["sh", "-c", "exec tool \"$1\"", "x", "{prompt}"][..], PromptChannel::Arg),
            (&["awk", "{print}"], PromptChannel::Stdin),
            (&["sh", "-c", "echo ${model}"], PromptChannel::Stdin),
            (&["a", "--file={prompt_file}", "{model}"], PromptChannel::File),
        ] {
            assert_eq!(problem(argv, via), None, "{argv:?}");
        }
    }
}
