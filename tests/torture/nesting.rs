//! Namespaces, sandboxes and lunation itself inside a command; a host that dies; and work given to somebody foreign.

use std::{
    fs,
    process::Stdio,
    time::{Duration, Instant},
};

use lunation::mechanism::process::{Command, Ending, Processes, ProcessesConfig, Tier, WardenProgram};
use tokio_util::sync::CancellationToken;

use crate::stage::{Stage, eventually, everywhere, say, warden, with_argument};

const TIER: &str = "LUNATION_TORTURE_TIER";
const FOLDER: &str = "LUNATION_TORTURE_FOLDER";
const MARKER: &str = "MARK";
const TEST: &str = "nesting::act_as_host";

/// A host of its own with a command that leaves a daemon: once inside a command, once to be killed.
#[test]
#[ignore = "a helper process of the other tests here"]
fn act_as_host() {
    let folder = std::path::PathBuf::from(std::env::var_os(FOLDER).expect("only started by the tests below"));
    let marker = std::env::var(MARKER).unwrap();
    let evil = std::env::var_os("EVIL").unwrap();
    let stay = fs::exists(folder.join("stay")).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let done = runtime.block_on(async {
        let mut config = ProcessesConfig::new(WardenProgram::at(warden()));
        config.force_tier = std::env::var(TIER).ok().and_then(|name| Tier::from_name(&name));
        let processes = Processes::start(config, tokio::runtime::Handle::current()).unwrap();
        let env = vec![("PATH".into(), "/usr/bin:/bin".into()), ("EVIL".into(), evil), ("MARK".into(), marker.into())];
        let script = if stay {
            "\"$EVIL\" daemon \"$MARK\"; \"$EVIL\" nested-subreaper \"$MARK\"; exec \"$EVIL\" stubborn \"$MARK\""
        } else {
            "exec \"$EVIL\" daemon \"$MARK\""
        };
        let command = Command::new("sh", &folder, env).args(["-c", script]);
        let done = processes.run(command, CancellationToken::new(), None).await.unwrap();
        format!("{} {:?} {} {}", done.tier, done.ending, done.swept, done.confirmed_gone)
    });
    fs::write(folder.join("inner"), done).unwrap();
}

#[test]
fn lunation_inside_a_command_of_lunation_works_and_holds() {
    everywhere(async |stage| {
        let me = std::env::current_exe().unwrap();
        if rustix::fs::access(&me, rustix::fs::Access::EXEC_OK).is_err()
            || rustix::fs::access(warden(), rustix::fs::Access::EXEC_OK).is_err()
            || warden().starts_with("/proc/self/fd")
        {
            return say("skipped: nesting as another user, its programs are not handed down");
        }
        let command = host_command(stage, me);
        let done = stage.run(command).await;
        assert_eq!(done.ending, Ending::Exited(0), "{}: {}", stage.tier, done.stdout.text() + &done.stderr.text());
        assert_eq!(done.swept, 0, "{}: the inner one reaped its daemon: {done:?}", stage.tier);
        let inner = fs::read_to_string(stage.path().join("inner")).unwrap();
        say(&format!("inside {}: {inner}", stage.tier));
        assert!(inner.ends_with(" Exited(0) 1 true"), "{}: {inner}", stage.tier);
        // And ended from outside while its own command runs.
        fs::write(stage.path().join("stay"), "").unwrap();
        let command = host_command(stage, std::env::current_exe().unwrap()).wall(Duration::from_secs(4));
        let done = stage.run(command.term_grace(Duration::from_millis(100))).await;
        assert!(matches!(done.ending, Ending::TimedOut(_)), "{}: {done:?}", stage.tier);
    });
}

fn host_command(stage: &Stage, me: std::path::PathBuf) -> Command {
    let mut env = stage.env();
    env.push((FOLDER.into(), stage.path().into()));
    Command::new(me, stage.path(), env).args(["--exact", TEST, "--ignored", "--test-threads=1"])
}

#[test]
fn a_host_that_is_killed_leaves_nobody() {
    everywhere(async |stage| {
        fs::write(stage.path().join("stay"), "").unwrap();
        let mut host = std::process::Command::new("/proc/self/exe")
            .args(["--exact", TEST, "--ignored", "--test-threads=1"])
            .env_clear()
            .envs(stage.env())
            .envs(std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("LUNATION_TORTURE_")))
            .env(TIER, stage.tier.name())
            .env(FOLDER, stage.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // The daemon, the subreaper with its three, and the leader.
        eventually("all run", || with_argument(&stage.marker).len() >= 6).await;
        host.kill().unwrap();
        let killed = Instant::now();
        host.wait().unwrap();
        eventually("nobody is left", || with_argument(&stage.marker).is_empty()).await;
        say(&format!("host killed at {}: all gone in {:?}", stage.tier, killed.elapsed()));
    });
}

#[test]
fn namespaces_inside_a_command_can_be_made_where_the_machine_lets_them() {
    everywhere(async |stage| {
        let outside = std::process::Command::new("unshare").args(["-rpfm", "--mount-proc", "true"]).output();
        if !outside.is_ok_and(|output| output.status.success()) {
            return say("skipped: unshare does not work on this machine");
        }
        let script = "unshare -rpfm --mount-proc sh -c '\"$EVIL\" daemon \"$MARK\"; echo inside $$; exec \"$EVIL\" sleep \"$MARK\"'";
        let done = stage.run(stage.sh(script).wall(Duration::from_secs(1)).term_grace(Duration::ZERO)).await;
        assert_eq!(done.stdout.text(), "inside 1\n", "{}: {}", stage.tier, done.stderr.text());
    });
}

#[test]
fn a_command_sees_what_it_should() {
    everywhere(async |stage| {
        let done =
            stage.run(stage.sh("id -u; id -g; cat /proc/self/comm; echo $PPID; ls -d /proc/[0-9]* | wc -l")).await;
        let text = done.stdout.text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], nix::unistd::geteuid().to_string(), "{}", stage.tier);
        assert_eq!(lines[1], nix::unistd::getegid().to_string(), "{}", stage.tier);
        assert_eq!(lines[2], "cat", "{}: /proc is of this namespace", stage.tier);
        if stage.tier == Tier::PidNamespace {
            assert_eq!(lines[3], "1", "{text}");
            assert!(lines[4].parse::<u32>().unwrap() < 8, "{text}");
        }
        // Nothing but /proc is mounted, and nothing of it is seen outside.
        let mounts = stage.run(stage.sh("cut -d' ' -f5 /proc/self/mountinfo | sort")).await.stdout.text();
        let outside = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mut outside: Vec<&str> = outside.lines().filter_map(|line| line.split(' ').nth(4)).collect();
        // Another test mounts something for a while.
        let lasting = |mount: &&str| !std::path::Path::new(mount).starts_with(std::env::temp_dir());
        outside.retain(lasting);
        outside.sort_unstable();
        let mut inside: Vec<&str> = mounts.lines().collect();
        inside.retain(lasting);
        inside.sort_unstable();
        if stage.tier == Tier::PidNamespace {
            let at = inside.iter().position(|m| *m == "/proc").expect("a fresh /proc");
            inside.remove(at);
        }
        assert_eq!(inside, outside, "{}", stage.tier);
    });
}

#[test]
fn work_given_to_somebody_foreign_is_not_ours_and_lives() {
    everywhere(async |stage| {
        // The documented limit: a server that was there before starts what it is asked to.
        let fifo = stage.path().join("orders");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
        let foreign = format!("{}-foreign", stage.marker.replace("torture", "given"));
        let mut server = std::process::Command::new("/bin/sh")
            .args(["-c", "read order < orders; exec \"$EVIL\" sleep \"$order\""])
            .current_dir(stage.path())
            .env("EVIL", crate::stage::evil())
            .spawn()
            .unwrap();
        stage.run(stage.sh(&format!("echo {foreign} > orders"))).await;
        eventually("the foreign one runs", || !with_argument(&foreign).is_empty()).await;
        let lives = server.try_wait().unwrap().is_none();
        server.kill().unwrap();
        server.wait().unwrap();
        assert!(lives, "{}", stage.tier);
    });
}
