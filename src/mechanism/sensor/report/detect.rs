//! Whose report it is: as was said, by the command, or by the output itself when it is sure.

use super::counted::Counted;
use super::pattern::Pattern;
use super::{LineParser, document, parser_of};
use crate::mechanism::process::Stream;
use crate::policy::{Format, Parse};

/// A document on the output that is longer is refused: a file can be of any length.
const MOST_DOCUMENT: usize = 32 << 20;
/// Pieces of a long line are put together up to this.
const LONGEST_LINE: usize = 1 << 20;

/// A document that is being collected from standard output.
#[derive(Debug, Default)]
struct Collected {
    text: Vec<u8>,
    too_long: bool,
}

/// One format that is listened for.
struct Listener {
    format: Option<Format>,
    parser: Box<dyn LineParser>,
    document: Option<Collected>,
}

/// Reads the output of one command.
pub(in crate::mechanism::sensor) struct Reporter {
    listeners: Vec<Listener>,
    /// True where several reports belong together, because the command runs several runners.
    by_command: bool,
    /// True where the format was named: no report is no proof then.
    pub(in crate::mechanism::sensor) named: bool,
    /// What cargo says when nothing can be built; only told.
    build: Option<Box<dyn LineParser>>,
    joined: [String; 2],
}

/// The runners that are recognised by their output alone.
const RUNNERS: [Format; 9] = [
    Format::Libtest,
    Format::Nextest,
    Format::Pytest,
    Format::Go,
    Format::Jest,
    Format::Vitest,
    Format::Mocha,
    Format::Node,
    Format::Tap,
];

impl Reporter {
    /// `command` as a person types it; it may be empty.
    pub(in crate::mechanism::sensor) fn new(parse: &Parse, command: &str) -> Reporter {
        let listener = |format: Format| Listener { format: Some(format), parser: parser_of(format), document: None };
        let by_command = formats_of(command);
        let named = matches!(parse, Parse::Format(_) | Parse::Pattern(_));
        let runs_cargo_tests = by_command.contains(&Format::Libtest) || by_command.contains(&Format::Nextest);
        let listeners: Vec<Listener> = match parse {
            Parse::Off | Parse::Function(_) => Vec::new(),
            Parse::Format(format) => vec![listener(*format)],
            Parse::Pattern(spec) => {
                vec![Listener { format: None, parser: Box::new(Pattern::new(spec)), document: None }]
            }
            Parse::Auto if by_command.is_empty() => RUNNERS.into_iter().map(listener).collect(),
            Parse::Auto => by_command.iter().copied().map(listener).collect(),
        };
        let build = (*parse == Parse::Auto && runs_cargo_tests || *parse == Parse::Format(Format::Libtest))
            .then(|| parser_of(Format::Cargo));
        let by_command = !by_command.is_empty();
        Reporter { listeners, by_command, named, build, joined: Default::default() }
    }

    /// A line, or a piece of a long one; `ends`: the line ends with it.
    pub(in crate::mechanism::sensor) fn line(&mut self, stream: Stream, piece: &str, ends: bool) {
        if self.listeners.is_empty() {
            return;
        }
        let mut taken = false;
        if stream == Stream::Stdout {
            for listener in &mut self.listeners {
                taken |= listener.collect(piece, ends);
            }
        }
        if taken && self.listeners.len() == 1 {
            return;
        }
        let joined = &mut self.joined[usize::from(stream == Stream::Stderr)];
        if !ends || !joined.is_empty() {
            if joined.len() + piece.len() <= LONGEST_LINE {
                joined.push_str(piece);
            }
            if !ends {
                return;
            }
            let line = std::mem::take(joined);
            self.whole_line(&line);
            return;
        }
        self.whole_line(piece);
    }

    fn whole_line(&mut self, line: &str) {
        for listener in &mut self.listeners {
            if listener.document.is_none() {
                listener.parser.line(line);
            }
        }
        if let Some(build) = &mut self.build {
            build.line(line);
        }
    }

    /// What was reported; `Ok(None)` where nothing was, for sure.
    ///
    /// # Errors
    /// A document that cannot be read.
    pub(in crate::mechanism::sensor) fn finish(&mut self) -> Result<Option<Counted>, String> {
        let mut found: Vec<Counted> = Vec::new();
        for listener in &mut self.listeners {
            match listener.finish() {
                Ok(Some(counted)) => found.push(counted),
                Ok(None) => {}
                Err(why) if self.named || self.by_command => return Err(why),
                Err(_) => {}
            }
        }
        let is_sure = found.len() <= 1 || self.by_command;
        if !is_sure {
            return Ok(None);
        }
        let mut found = found.into_iter();
        let mut sum = found.next();
        if let Some(sum) = &mut sum {
            found.for_each(|counted| sum.add(&counted));
        }
        Ok(sum)
    }

    /// What stood in the way of building, where nothing else was reported.
    pub(in crate::mechanism::sensor) fn build_errors(&mut self) -> Option<Counted> {
        self.build.as_mut()?.finish().filter(|counted| counted.failing > 0)
    }
}

impl Listener {
    /// Takes the piece into the document, if one has begun.
    fn collect(&mut self, piece: &str, ends: bool) -> bool {
        let Some(format) = self.format else { return false };
        let collected = match &mut self.document {
            Some(collected) => collected,
            None if document::begins(format, piece) => self.document.insert(Collected::default()),
            None => return false,
        };
        if collected.text.len() + piece.len() > MOST_DOCUMENT {
            collected.too_long = true;
        } else {
            collected.text.extend_from_slice(piece.as_bytes());
            if ends {
                collected.text.push(b'\n');
            }
        }
        true
    }

    fn finish(&mut self) -> Result<Option<Counted>, String> {
        match (self.format, self.document.take()) {
            (Some(_), Some(Collected { too_long: true, .. })) => Err(format!(
                "its report is longer than {} MiB: let it be written to a file, and name that with `report`",
                MOST_DOCUMENT >> 20
            )),
            (Some(format), Some(collected)) => {
                let read = document::read(format, collected.text.as_slice());
                read.map(Some).map_err(|why| format!("its report cannot be read: {why}"))
            }
            _ => Ok(self.parser.finish()),
        }
    }
}

/// Which runners and linters a command line starts, as far as it says.
fn formats_of(command: &str) -> Vec<Format> {
    let mut formats = Vec::new();
    for part in command.split(['\n', ';', '&', '|', '(', ')']) {
        let words: Vec<&str> = part
            .split_whitespace()
            .map(|word| word.trim_matches(['"', '\'']))
            .skip_while(|word| word.contains('=') && !word.starts_with('-'))
            .collect();
        if let Some(format) = format_of(&words)
            && !formats.contains(&format)
        {
            formats.push(format);
        }
    }
    formats
}

/// Programs that start the one after them.
const STARTERS: [&str; 17] = [
    "npx", "pnpm", "yarn", "bunx", "exec", "run", "uv", "poetry", "pipenv", "hatch", "env", "time", "nice", "timeout",
    "python", "python3", "-m",
];

fn format_of(words: &[&str]) -> Option<Format> {
    let mut words = words.iter().copied().peekable();
    let mut started = false;
    loop {
        let word = words.next()?;
        let name = word.rsplit('/').next().unwrap_or(word);
        let rest: Vec<&str> = words.clone().collect();
        let has = |flag: &str| rest.iter().any(|word| *word == flag || word.starts_with(&format!("{flag}=")));
        let reporter = |names: &[&str]| {
            rest.windows(2).any(|pair| ["--reporter", "-R"].contains(&pair[0]) && names.contains(&pair[1]))
                || names.iter().any(|name| rest.contains(&format!("--reporter={name}").as_str()))
        };
        match name {
            "cargo" => {
                let verb = rest.iter().find(|word| !word.starts_with(['+', '-']))?;
                return match *verb {
                    "test" | "t" if !has("--no-run") => Some(Format::Libtest),
                    "nextest" => Some(Format::Nextest),
                    "clippy" | "check" | "c" | "build" | "b" => Some(Format::Cargo),
                    _ => None,
                };
            }
            "pytest" | "py.test" => return Some(Format::Pytest),
            "go" => return (rest.first() == Some(&"test")).then_some(Format::Go),
            "jest" => return Some(Format::Jest),
            "vitest" if reporter(&["tap", "tap-flat"]) => return Some(Format::Tap),
            "vitest" if reporter(&["junit"]) => return Some(Format::Junit),
            "vitest" => return Some(Format::Vitest),
            "mocha" if reporter(&["tap"]) => return Some(Format::Tap),
            "mocha" => return Some(Format::Mocha),
            "tsc" => return Some(Format::Tsc),
            "eslint" if has("-f") || has("--format") => {
                let json =
                    rest.iter().any(|word| ["json", "-fjson", "--format=json", "-f=json", "stylish"].contains(word));
                return json.then_some(Format::Eslint);
            }
            "eslint" => return Some(Format::Eslint),
            "ruff" => return (rest.first() == Some(&"check")).then_some(Format::Ruff),
            _ if STARTERS.contains(&name) || started && word.starts_with('-') || super::counted::is_number(word) => {
                started = true;
            }
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runners_are_recognised_by_their_command() {
        for (command, formats) in [
            ("cargo test", &[Format::Libtest][..]),
            ("cargo +nightly test --all -- --nocapture", &[Format::Libtest]),
            ("RUST_BACKTRACE=1 cargo t", &[Format::Libtest]),
            ("cargo test --no-run", &[]),
            ("cargo nextest run", &[Format::Nextest]),
            ("cargo clippy -- -D warnings", &[Format::Cargo]),
            ("cargo fmt --check", &[]),
            ("cd web && npx jest --ci", &[Format::Jest]),
            ("python -m pytest -q", &[Format::Pytest]),
            ("uv run --frozen pytest tests", &[Format::Pytest]),
            ("./venv/bin/pytest", &[Format::Pytest]),
            ("go test ./...", &[Format::Go]),
            ("go vet ./...", &[]),
            ("npx vitest run --reporter=tap", &[Format::Tap]),
            ("cargo test && npx tsc --noEmit", &[Format::Libtest, Format::Tsc]),
            ("npm test", &[]),
            ("echo cargo test", &[]),
            ("npx eslint -f unix .", &[]),
            ("npx eslint --format json .", &[Format::Eslint]),
            ("ruff format --check", &[]),
            ("timeout 60 ruff check .", &[Format::Ruff]),
        ] {
            assert_eq!(formats_of(command), formats, "{command}");
        }
    }
}
