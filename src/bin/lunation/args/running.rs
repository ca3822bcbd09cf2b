//! Arguments of the commands that load a script, and of those that act on a run.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::{Map, Value};

use super::reading::RunChoice;

/// Which script, and what it is given.
#[derive(Debug, Args)]
pub(crate) struct ScriptChoice {
    /// The script; wins over -f
    #[arg(value_name = "FILE")]
    pub(crate) named: Option<PathBuf>,
    /// The script [default: loop.lua, here or in a folder above]
    #[arg(short, long, value_name = "FILE", env = "LUNATION_FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Input of the script as KEY=VALUE or a JSON object, seen as ln.input; can be given several times
    #[arg(long, value_name = "INPUT", value_parser = parse_input)]
    pub(crate) input: Vec<Map<String, Value>>,
}

impl ScriptChoice {
    /// All inputs together; a later one wins.
    pub(crate) fn merged_input(&self) -> Map<String, Value> {
        self.input.iter().flat_map(Map::clone).collect()
    }
}

/// Forms in which the records of a run are told while it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EventsForm {
    /// One JSON object a line, as in the journal
    Jsonl,
}

/// `lunation run`
#[derive(Debug, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) script: ScriptChoice,
    /// Trust the script as it is now without being asked
    #[arg(long)]
    pub(crate) trust: bool,
    /// Print every record of the run as it is written, for programs; lines for people go to standard error
    #[arg(long, value_name = "FORM")]
    pub(crate) events: Option<EventsForm>,
}

/// `lunation check`
#[derive(Debug, Args)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) script: ScriptChoice,
}

/// `lunation plan`
#[derive(Debug, Args)]
pub(crate) struct Plan {
    #[command(flatten)]
    pub(crate) script: ScriptChoice,
}

/// `lunation stop`
#[derive(Debug, Args)]
pub(crate) struct Stop {
    /// Abort the current iteration and roll it back, instead of waiting for its end
    #[arg(long)]
    pub(crate) now: bool,
}

/// `lunation restore`
#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// The tree before this iteration; 0 is the tree as the run found it
    #[arg(value_name = "N", required_unless_present = "to")]
    pub(crate) iteration: Option<u32>,
    /// The loop, where several loops of a run have an iteration of this number
    #[arg(long, value_name = "PATH")]
    pub(crate) path: Option<String>,
    #[command(flatten)]
    pub(crate) run: RunChoice,
    /// A checkpoint by its id, as an earlier restore told it
    #[arg(long, value_name = "CHECKPOINT", conflicts_with_all = ["iteration", "path", "run"])]
    pub(crate) to: Option<String>,
}

/// `lunation trust`
#[derive(Debug, Args)]
pub(crate) struct Trust {
    #[command(flatten)]
    pub(crate) script: ScriptChoice,
}

/// Reads `KEY=VALUE` (a text) or a JSON object.
fn parse_input(text: &str) -> Result<Map<String, Value>, String> {
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(text).map_err(|error| format!("not a JSON object: {error}"));
    }
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok(Map::from_iter([(key.trim().to_owned(), Value::from(value))]))
        }
        _ => Err("write KEY=VALUE or a JSON object, for example --input issue=12 or --input '{\"issue\":12}'".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_texts_by_key_or_json() {
        assert_eq!(parse_input("a=b=c").unwrap(), Map::from_iter([("a".to_owned(), Value::from("b=c"))]));
        assert_eq!(parse_input("n=").unwrap()["n"], "");
        assert_eq!(parse_input("{\"n\": 12}").unwrap()["n"], 12);
        for wrong in ["", "a", "=b", "{", "{1}", "[1]"] {
            assert!(parse_input(wrong).is_err(), "{wrong}");
        }
        let choice = ScriptChoice {
            named: None,
            file: None,
            input: vec![parse_input("a=1").unwrap(), parse_input("{\"a\": 2, \"b\": 3}").unwrap()],
        };
        assert_eq!(Value::Object(choice.merged_input()), serde_json::json!({ "a": 2, "b": 3 }));
    }
}
