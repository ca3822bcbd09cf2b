//! Reading script text as people save it, and files beneath a script's folders.
//!
//! Owns what may be read for a script: UTF-8 text beneath its own folder or the workspace, through no link to outside.
//! Must not know Lua. Guarantees that what is refused is refused by name and reason, and that each file is read once:
//! what was read first holds for the whole run.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use super::error::{ErrorKind, Place, ScriptError};
use super::manifest::{FileRole, Manifest};

/// Largest script or module, in bytes.
const MOST_SCRIPT_BYTES: u64 = 4 << 20;

/// A script, read and decoded, and the folders that it may read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Real path of the file.
    pub path: PathBuf,
    /// The folder that holds it: modules and prompt files are looked for here first.
    pub folder: PathBuf,
    /// The root of the tree that the script works on.
    pub workspace: PathBuf,
    /// As it is shown in messages: relative to the workspace where it is inside.
    pub name: String,
    /// The path as it was given: a link to the script is fenced like the script.
    written: PathBuf,
    pub(super) bytes: Vec<u8>,
    pub(super) text: String,
}

impl Source {
    /// Reads a script. `workspace` is the root of the repository or folder that it works on.
    ///
    /// # Errors
    /// `NotFound` when it cannot be read, `Encoding` when it is UTF-16, has a NUL byte or is not UTF-8.
    pub fn open(path: &Path, workspace: &Path) -> Result<Source, ScriptError> {
        let shown = path.display().to_string();
        let real = fs::canonicalize(path).map_err(|error| unreadable(&shown, &error))?;
        let workspace =
            fs::canonicalize(workspace).map_err(|error| unreadable(&workspace.display().to_string(), &error))?;
        let folder = real.parent().map(Path::to_owned).unwrap_or_else(|| PathBuf::from("/"));
        let name = shown_name(&real, &workspace);
        let bytes = read_capped(&real, &name, MOST_SCRIPT_BYTES)?;
        let text = decode(&name, &bytes)?;
        let written = std::path::absolute(path).unwrap_or_else(|_| real.clone());
        Ok(Source { path: real, folder, workspace, name, written, bytes, text })
    }

    /// A script that is not in a file: for embedding programs and tests. `folder` is where its modules are.
    ///
    /// # Errors
    /// As [`Source::open`], for the folders.
    pub fn text(name: &str, text: &str, folder: &Path) -> Result<Source, ScriptError> {
        let folder = fs::canonicalize(folder).map_err(|error| unreadable(&folder.display().to_string(), &error))?;
        let text_read = decode(name, text.as_bytes())?;
        Ok(Source {
            path: folder.join(name),
            written: folder.join(name),
            workspace: folder.clone(),
            folder,
            name: name.to_owned(),
            bytes: text.as_bytes().to_vec(),
            text: text_read,
        })
    }
}

/// UTF-8 text, its byte-order mark dropped, line ends as they are.
///
/// # Errors
/// `Encoding`, naming the file and what is wrong with it.
pub(super) fn decode(name: &str, bytes: &[u8]) -> Result<String, ScriptError> {
    let refuse = |message: String| {
        ScriptError::new(ErrorKind::Encoding, message).at(Some(Place { file: name.to_owned(), line: None }))
    };
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Err(refuse("this file is UTF-16: save it as UTF-8".into()));
    }
    let body = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if body.starts_with(b"\x1bLua") {
        return Err(refuse("this is Lua bytecode: lunation runs text only".into()));
    }
    if let Some(at) = body.iter().position(|&byte| byte == 0) {
        return Err(refuse(format!("there is a NUL byte at offset {at}: this is not text")));
    }
    match std::str::from_utf8(body) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => Err(refuse(format!("byte {} fits no character: save the file as UTF-8", error.valid_up_to()))),
    }
}

/// Where a file may be and what it is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
}

/// Reads modules and prompt files, keeps what it read, and lists it.
#[derive(Debug)]
pub(super) struct Reader {
    folder: PathBuf,
    workspace: PathBuf,
    kept: BTreeMap<PathBuf, Vec<u8>>,
    /// Paths as written, where they are links to what was read.
    links: Vec<PathBuf>,
    pub(super) manifest: Manifest,
}

impl Reader {
    pub(super) fn new(source: &Source) -> Reader {
        let mut manifest = Manifest::default();
        manifest.add(FileRole::Script, &source.path, &source.name, &source.bytes);
        Reader {
            folder: source.folder.clone(),
            workspace: source.workspace.clone(),
            kept: BTreeMap::new(),
            links: vec![source.written.clone()],
            manifest,
        }
    }

    /// The module's file: `a.b` is `a/b.lua` or `a/b/init.lua` beneath the script's folder.
    pub(super) fn module(&mut self, module: &str) -> Result<Found, ScriptError> {
        let well_formed = !module.is_empty()
            && module.split('.').all(|part| {
                !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
            });
        if !well_formed {
            return Err(ScriptError::new(
                ErrorKind::Require,
                format!(
                    "`{module}` is no module name: write names of letters, digits, `_` and `-`, joined by dots, like \
                     \"policies.patient\" for policies/patient.lua"
                ),
            ));
        }
        let relative = module.replace('.', "/");
        for candidate in [format!("{relative}.lua"), format!("{relative}/init.lua")] {
            let folder = self.folder.clone();
            if folder.join(&candidate).symlink_metadata().is_ok() {
                return self.read(&folder, &candidate, FileRole::Module, MOST_SCRIPT_BYTES).map_err(|mut error| {
                    if error.kind == ErrorKind::NotFound {
                        error.kind = ErrorKind::Require;
                    }
                    error
                });
            }
        }
        Err(ScriptError::new(
            ErrorKind::Require,
            format!(
                "there is no module `{module}`: looked for {relative}.lua and {relative}/init.lua beside the script"
            ),
        ))
    }

    /// A prompt file, relative to the script's folder or else to the workspace.
    pub(super) fn prompt(&mut self, file: &str) -> Result<Found, ScriptError> {
        let most = crate::policy::MOST_PROMPT_BYTES as u64 + 3;
        let plain = Path::new(file).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if file.trim().is_empty() || !plain {
            return Err(ScriptError::new(
                ErrorKind::NotFound,
                format!("`{file}` is no path below the project: write one like \"PROMPT.md\" or \"tasks/fix.md\""),
            ));
        }
        for base in [self.folder.clone(), self.workspace.clone()] {
            if base.join(file).symlink_metadata().is_ok() {
                return self.read(&base, file, FileRole::Prompt, most);
            }
        }
        Err(ScriptError::new(ErrorKind::NotFound, format!("the prompt file {file} does not exist")))
    }

    fn read(&mut self, base: &Path, relative: &str, role: FileRole, most: u64) -> Result<Found, ScriptError> {
        let path = fs::canonicalize(base.join(relative)).map_err(|error| unreadable(relative, &error))?;
        if !path.starts_with(base) {
            return Err(ScriptError::new(
                ErrorKind::Require,
                format!("{relative} is a link to outside of {}: only files below it are read", base.display()),
            ));
        }
        if path != base.join(relative) {
            self.links.push(base.join(relative));
        }
        let name = shown_name(&path, &self.workspace);
        let bytes = match self.kept.get(&path) {
            Some(bytes) => bytes.clone(),
            None => read_capped(&path, &name, most)?,
        };
        self.kept.insert(path.clone(), bytes.clone());
        self.manifest.add(role, &path, &name, &bytes);
        Ok(Found { path, name, bytes })
    }

    /// Paths of all files so far, relative to the workspace: what no agent may write.
    pub(super) fn protected(&self) -> Vec<String> {
        let mut paths: Vec<String> = Vec::new();
        let files = self.manifest.entries.iter().map(|entry| &entry.path).chain(&self.links);
        for path in files.filter_map(|path| path.strip_prefix(&self.workspace).ok()) {
            let path = path.to_string_lossy().into_owned();
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        paths
    }
}

/// Reads a file whole, up to a limit; a folder, pipe or device is refused.
fn read_capped(path: &Path, name: &str, most: u64) -> Result<Vec<u8>, ScriptError> {
    let meta = fs::metadata(path).map_err(|error| unreadable(name, &error))?;
    if !meta.is_file() {
        return Err(ScriptError::new(ErrorKind::NotFound, format!("{name} is not a file")));
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(|error| unreadable(name, &error))?;
    file.take(most + 1).read_to_end(&mut bytes).map_err(|error| unreadable(name, &error))?;
    if bytes.len() as u64 > most {
        return Err(ScriptError::new(ErrorKind::NotFound, format!("{name} has more than {most} bytes")));
    }
    Ok(bytes)
}

fn unreadable(name: &str, error: &std::io::Error) -> ScriptError {
    ScriptError::new(ErrorKind::NotFound, format!("{name} cannot be read: {error}"))
}

fn shown_name(path: &Path, workspace: &Path) -> String {
    match path.strip_prefix(workspace) {
        Ok(relative) => relative.to_string_lossy().into_owned(),
        Err(_) => path.to_string_lossy().into_owned(),
    }
}
