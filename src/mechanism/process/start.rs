//! From a command to a running warden: what can be wrong with a command is found here, before anything runs.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::{fd::AsFd, unix::ffi::OsStrExt, unix::net::UnixStream},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use tokio::net::unix::pipe;

use super::{
    Command, ProcessError,
    error::is_transient,
    find_program,
    link::Link,
    log::Log,
    private_tmp::PrivateTmp,
    protocol::{Order, Stage, ToWarden, line},
    spawn::send_descriptors,
    stdin,
    table::{Registration, Shared},
};

/// A warden that was started and has its order on the way.
pub(super) struct Launched {
    pub program: PathBuf,
    pub link: Link,
    pub child: tokio::process::Child,
    pub registration: Registration,
    pub stdout: pipe::Receiver,
    pub stderr: pipe::Receiver,
    pub log: Option<Log>,
    pub tmp: Option<PrivateTmp>,
}

/// How long the warden may take to read its order on a machine that is busy.
const ORDER_BOUND: Duration = Duration::from_secs(60);

/// Checks everything, starts the warden and sends the order. `Ok(None)`: everything was killed for leaving.
pub(super) async fn launch(shared: &Arc<Shared>, command: &Command) -> Result<Option<Launched>, ProcessError> {
    let path = command.env.iter().rev().find(|(name, _)| name == "PATH").map_or(OsStr::new(""), |(_, v)| v);
    check_folder(command)?;
    let program = find_program(&command.program, path, &command.cwd)?;
    let mut order = order(shared, command, &program)?;
    let log = match &command.log_file {
        None => None,
        Some(file) => Some(
            Log::create(file, command.log_cap, command.log_filter.as_ref())
                .map_err(|source| ProcessError::Log { file: file.clone(), source })?,
        ),
    };
    let tmp = match &command.private_tmp {
        None => None,
        Some(folder) => Some(
            PrivateTmp::make(folder).map_err(|source| ProcessError::PrivateTmp { folder: folder.clone(), source })?,
        ),
    };
    if let Some(tmp) = &tmp {
        for (name, value) in tmp.variables() {
            set_variable(&mut order.env, &name, &value);
        }
    }
    match start(shared, command, order).await {
        Ok(Some(Started { link, child, registration, stdout, stderr })) => {
            Ok(Some(Launched { program, link, child, registration, stdout, stderr, log, tmp }))
        }
        other => {
            // Nothing has run in it, so its removal can't fail for a reason of the command's.
            tmp.map_or(Ok(()), PrivateTmp::remove).map_err(ProcessError::system("removing the temporary folder"))?;
            other.map(|_| None)
        }
    }
}

struct Started {
    link: Link,
    child: tokio::process::Child,
    registration: Registration,
    stdout: pipe::Receiver,
    stderr: pipe::Receiver,
}

async fn start(shared: &Arc<Shared>, command: &Command, order: Order) -> Result<Option<Started>, ProcessError> {
    let stdin = stdin::open(&command.stdin, &command.cwd)?;
    let pipe = || io::pipe().map_err(ProcessError::system("a pipe for the output"));
    let (out_reader, out_writer) = pipe()?;
    let (err_reader, err_writer) = pipe()?;
    let socket = || UnixStream::pair().map_err(ProcessError::system("a socket for the warden"));
    let (ours, theirs) = socket()?;
    let mut descriptors = vec![out_writer.as_fd(), err_writer.as_fd(), stdin.as_fd()];
    descriptors.extend(shared.descriptors());
    send_descriptors(&ours, &descriptors).map_err(ProcessError::system("handing descriptors to the warden"))?;

    let mut spawn = tokio::process::Command::from(shared.image.command(theirs));
    let child = spawn.spawn().map_err(|error| shared.image.spawn_error(&error))?;
    drop(spawn); // holds the warden's end of the socket
    drop((out_writer, err_writer, stdin));

    let again = ours.try_clone().map_err(ProcessError::system("the socket of the warden"))?;
    let Some(registration) = shared.register(again, child.id().unwrap_or(0)) else { return Ok(None) };
    let mut link = Link::new(ours).map_err(ProcessError::system("the socket of the warden"))?;
    let receiver = |reader: io::PipeReader| {
        pipe::Receiver::from_owned_fd(reader.into()).map_err(ProcessError::system("reading the output"))
    };
    let (stdout, stderr) = (receiver(out_reader)?, receiver(err_reader)?);
    let sent = tokio::time::timeout(ORDER_BOUND, link.send(&line(&ToWarden::Start(Box::new(order))))).await;
    match sent {
        Ok(Ok(())) => Ok(Some(Started { link, child, registration, stdout, stderr })),
        Ok(Err(error)) => Err(shared.image.failed(format!("it does not take its order: {error}"))),
        Err(_) => Err(shared.image.failed("it does not read its order")),
    }
}

fn check_folder(command: &Command) -> Result<(), ProcessError> {
    let failed = |source| ProcessError::Folder { folder: command.cwd.clone(), source };
    let meta = std::fs::metadata(&command.cwd).map_err(failed)?;
    if meta.is_dir() { Ok(()) } else { Err(failed(io::Error::from_raw_os_error(libc::ENOTDIR))) }
}

fn order(shared: &Shared, command: &Command, program: &std::path::Path) -> Result<Order, ProcessError> {
    let mut argv = vec![command.program.clone()];
    argv.extend(command.args.iter().cloned());
    for (at, arg) in argv.iter().enumerate() {
        usable(arg, || format!("argument {at} of {:?}", command.program))?;
    }
    usable(command.cwd.as_os_str(), || "the working folder".into())?;
    let mut env = Vec::new();
    for (name, value) in &command.env {
        usable(name, || format!("the variable name {name:?}"))?;
        usable(value, || format!("the value of {name:?}"))?;
        if name.is_empty() || name.as_bytes().contains(&b'=') {
            return Err(unusable(format!("the variable name {name:?}"), "it is empty or contains '='"));
        }
        set_variable(&mut env, name, value);
    }
    Ok(Order {
        program: program.into(),
        argv,
        env,
        cwd: std::path::absolute(&command.cwd)
            .map_err(|source| ProcessError::Folder { folder: command.cwd.clone(), source })?
            .into(),
        late_ms: millis(command.late_output),
        tier: shared.tier.tier,
        hold: shared.holds(),
        after_host_death: shared.after_host_death(),
    })
}

fn set_variable(env: &mut Vec<OsString>, name: &OsStr, value: &OsStr) {
    let mut line = name.to_owned();
    line.push("=");
    let is_same = |other: &OsString| other.as_bytes().starts_with(line.as_bytes());
    env.retain(|other| !is_same(other));
    line.push(value);
    env.push(line);
}

fn usable(text: &OsStr, what: impl FnOnce() -> String) -> Result<(), ProcessError> {
    if text.as_bytes().contains(&0) { Err(unusable(what(), "it contains a NUL byte")) } else { Ok(()) }
}

fn unusable(what: String, why: &str) -> ProcessError {
    ProcessError::Unusable { what, why: why.into() }
}

/// A duration as the protocol has it.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// What a start that failed in the warden means for the caller.
pub(super) fn start_error(command: &Command, program: PathBuf, stage: Stage, errno: i32) -> ProcessError {
    let not_executable = |why: &str| ProcessError::NotExecutable { program: program.clone(), why: why.into() };
    match (stage, errno) {
        (Stage::Folder, _) => {
            ProcessError::Folder { folder: command.cwd.clone(), source: io::Error::from_raw_os_error(errno) }
        }
        (Stage::Exec, libc::ENOENT) => {
            not_executable("the interpreter that its first line (or its format) names is missing")
        }
        (Stage::Exec, libc::EACCES) => not_executable("permission denied (its mode, or a file system mounted noexec)"),
        (Stage::Exec, libc::ENOEXEC) => {
            not_executable("it is no program for this machine; a script needs a first line like #!/bin/sh")
        }
        _ => ProcessError::SpawnFailed { program, stage: stage.name(), errno, transient: is_transient(errno) },
    }
}
