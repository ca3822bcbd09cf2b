//! Reports that a command wrote into files.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use globset::{Glob, GlobSetBuilder};
use ignore::WalkBuilder;

use super::counted::Counted;
use super::{document, parser_of};
use crate::policy::{Format, Parse};

/// Files of one report.
const MOST_FILES: usize = 10_000;
/// Bytes of one file.
const MOST_BYTES: u64 = 1 << 30;

/// A report that cannot be had.
#[derive(Debug, thiserror::Error)]
pub(in crate::mechanism::sensor) enum ReportFileError {
    /// No file, or none that is new.
    #[error("it wrote no report: nothing new matches {0}")]
    None(String),
    /// A file that cannot be read.
    #[error("its report {file} cannot be read: {why}")]
    Unreadable {
        /// The file, relative to the folder.
        file: String,
        /// Why.
        why: String,
    },
}

/// Reads all report files below `root` that match one of the globs and are not older than `since`. The format is told by
/// `parse`, or else by the file itself.
///
/// # Errors
/// [`ReportFileError`].
pub(in crate::mechanism::sensor) fn read_files(
    root: &Path,
    globs: &[String],
    parse: &Parse,
    since: SystemTime,
) -> Result<Counted, ReportFileError> {
    let mut sum: Option<Counted> = None;
    for path in matching(root, globs) {
        let file = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        let unreadable = |why: String| ReportFileError::Unreadable { file: file.clone(), why };
        let meta = path.metadata().map_err(|error| unreadable(error.to_string()))?;
        let is_new = meta.modified().is_ok_and(|modified| modified >= since);
        if !is_new || !meta.is_file() {
            continue;
        }
        if meta.len() > MOST_BYTES {
            return Err(unreadable(format!("it has more than {MOST_BYTES} bytes")));
        }
        let counted = read_one(&path, parse).map_err(unreadable)?;
        match &mut sum {
            Some(sum) => sum.add(&counted),
            None => sum = Some(counted),
        }
    }
    sum.ok_or_else(|| ReportFileError::None(globs.join(", ")))
}

/// Files below the root, sorted; links are not followed, ignored folders are looked into: reports lie there.
fn matching(root: &Path, globs: &[String]) -> Vec<PathBuf> {
    let mut set = GlobSetBuilder::new();
    for glob in globs.iter().filter_map(|glob| Glob::new(glob).ok()) {
        set.add(glob);
    }
    let Ok(set) = set.build() else { return Vec::new() };
    // A glob that names a folder is looked for there alone.
    let mut found = Vec::new();
    for base in globs.iter().map(|glob| fixed_part(glob)) {
        let walk = WalkBuilder::new(root.join(&base))
            .standard_filters(false)
            .filter_entry(|entry| entry.file_name() != ".git")
            .build();
        for entry in walk.flatten() {
            let inside = entry.path().strip_prefix(root).is_ok_and(|path| set.is_match(path));
            if inside && entry.file_type().is_some_and(|kind| kind.is_file()) && found.len() < MOST_FILES {
                found.push(entry.into_path());
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

fn fixed_part(glob: &str) -> PathBuf {
    glob.split('/').take_while(|part| !part.contains(['*', '?', '[', '{'])).collect()
}

fn read_one(path: &Path, parse: &Parse) -> Result<Counted, String> {
    let mut input = BufReader::with_capacity(256 << 10, File::open(path).map_err(|error| error.to_string())?);
    let format = match parse {
        Parse::Format(format) => *format,
        _ => sniff(input.fill_buf().map_err(|error| error.to_string())?)?,
    };
    let first = String::from_utf8_lossy(&input.buffer()[..input.buffer().len().min(4096)]).into_owned();
    if first.lines().next().is_some_and(|line| document::begins(format, line)) {
        return document::read(format, input);
    }
    let mut parser = parser_of(format);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = (&mut input).take(1 << 20).read_until(b'\n', &mut line).map_err(|error| error.to_string())?;
        if read == 0 {
            break;
        }
        parser.line(
            &anstream::adapter::strip_str(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r'])).to_string(),
        );
    }
    parser.finish().ok_or_else(|| format!("it is no report of `{}`", format.name()))
}

/// What kind of report begins like this.
fn sniff(start: &[u8]) -> Result<Format, String> {
    let text = String::from_utf8_lossy(start);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let has = |word: &str| text.contains(word);
    if text.starts_with('<') && has("<testsuite") {
        Ok(Format::Junit)
    } else if text.starts_with("TAP version")
        || text.starts_with("1..")
        || text.starts_with("ok ")
        || text.starts_with("not ok ")
    {
        Ok(Format::Tap)
    } else if text.starts_with('{') && (has("sarif") || has("\"runs\"")) {
        Ok(Format::Sarif)
    } else if text.starts_with('{') && has("numTotalTests") {
        Ok(Format::Jest)
    } else if text.starts_with('{') && has("\"Action\"") {
        Ok(Format::Go)
    } else if text.starts_with('{') && has("\"reason\"") {
        Ok(Format::Cargo)
    } else if text.starts_with('{') && has("\"stats\"") {
        Ok(Format::Mocha)
    } else if text.starts_with('[') && has("\"filePath\"") {
        Ok(Format::Eslint)
    } else if text.starts_with('[') && has("\"filename\"") {
        Ok(Format::Ruff)
    } else {
        Err("its format is not known: name it with `parse`".into())
    }
}
