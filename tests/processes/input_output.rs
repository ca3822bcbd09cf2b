//! What a command reads and what is kept of what it writes.

use std::{
    fs,
    io::Write,
    os::fd::AsRawFd,
    time::{Duration, Instant},
};

use lunation::mechanism::process::{Command, Ending, LogFilter, Stdin, Stream};
use tokio_util::sync::CancellationToken;

use crate::harness::{PATIENCE, Place, processes, run, with_argument};

#[tokio::test]
async fn stdin_is_the_null_device_and_ends_at_once() {
    let began = Instant::now();
    let done = run(Place::new().sh("cat >/dev/null; echo ok; readlink /proc/self/fd/0")).await;
    assert_eq!(done.stdout.text(), "ok\n/dev/null\n");
    assert!(began.elapsed() < PATIENCE);
}

#[tokio::test]
async fn a_prompt_of_any_size_arrives_whole() {
    for size in [0, 1, 127 * 1024, 129 * 1024, 3 * 1024 * 1024] {
        let place = Place::new();
        let prompt: Vec<u8> = (0..size).map(|n: usize| (n % 251) as u8).collect();
        let done = run(place.sh("cat > got").stdin(Stdin::Bytes(prompt.clone()))).await;
        assert_eq!(done.ending, Ending::Exited(0));
        assert_eq!(fs::read(place.path().join("got")).unwrap(), prompt, "{size} bytes");
    }
}

#[tokio::test]
async fn a_program_that_does_not_read_its_prompt_is_not_waited_for() {
    let done = run(Place::new().sh("exit 7").stdin(Stdin::Bytes(vec![b'x'; 3 * 1024 * 1024]))).await;
    assert_eq!(done.ending, Ending::Exited(7));
}

#[tokio::test]
async fn a_prompt_full_of_shell_is_only_text() {
    let place = Place::new();
    let prompt = "Fix Mike's \"bug\"; see [x] & $(touch pwned) `touch pwned2` $HOME %PATH% \\n\n-rf\n";
    run(place.sh("cat > got").stdin(Stdin::Bytes(prompt.into()))).await;
    assert_eq!(fs::read_to_string(place.path().join("got")).unwrap(), prompt);
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn a_file_can_be_the_stdin() {
    let place = Place::new();
    fs::write(place.path().join("prompt.md"), "from a file").unwrap();
    let done = run(place.sh("cat").stdin(Stdin::File("prompt.md".into()))).await;
    assert_eq!(done.stdout.text(), "from a file");
}

#[tokio::test]
async fn the_prompt_is_in_no_argument_so_a_pattern_kill_hits_nobody() {
    let place = Place::new();
    let secret = format!("next start --port {}", place.marker);
    let command = Command::new("/bin/sh", place.path(), vec![("PATH".into(), "/usr/bin:/bin".into())]);
    let command = command.arg("-c").arg("echo > running; cat > got; while [ ! -e stop ]; do sleep 0.02; done");
    let command = command.stdin(Stdin::Bytes(secret.clone().into()));
    let processes = processes();
    let running = tokio::spawn(async move { processes.run(command, CancellationToken::new(), None).await.unwrap() });
    crate::harness::eventually_async("it runs", || place.path().join("got").exists()).await;
    assert_eq!(with_argument(&secret), []);
    fs::write(place.path().join("stop"), "").unwrap();
    assert_eq!(running.await.unwrap().ending, Ending::Exited(0));
    assert_eq!(fs::read_to_string(place.path().join("got")).unwrap(), secret);
}

#[tokio::test]
async fn only_the_three_standard_descriptors_are_inherited() {
    let place = Place::new();
    // A careless host: open files that are not closed by exec.
    let lock = fs::File::create(place.path().join("lock")).unwrap();
    rustix::io::fcntl_setfd(&lock, rustix::io::FdFlags::empty()).unwrap();
    assert!(lock.as_raw_fd() > 2);
    let done = run(place.sh("ls /proc/$$/fd")).await;
    // A shell may keep its script or a copy of a descriptor above 9; a plain -c shell has none.
    assert_eq!(done.stdout.text().split_whitespace().collect::<Vec<_>>(), ["0", "1", "2"]);
}

#[tokio::test]
async fn signals_are_neither_ignored_nor_blocked_and_the_environment_is_exactly_the_given_one() {
    let place = Place::new();
    let done = run(place.sh("grep -E '^Sig(Blk|Ign)' /proc/self/status")).await;
    assert_eq!(done.stdout.text(), "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
    let env = vec![("B".into(), "2 \n x".into()), ("A".into(), "1".into())];
    let done = run(Command::new("/usr/bin/env", place.path(), env).arg("-0")).await;
    assert_eq!(done.stdout.bytes_if_whole().unwrap(), b"B=2 \n x\0A=1\0");
}

#[tokio::test]
async fn a_flood_is_kept_in_bounded_memory_with_both_ends() {
    let script = "echo first; i=0; head -c 50000000 /dev/zero | tr '\\0' 'x'; echo; echo last";
    let done = run(Place::new().sh(script).keep_output(1000, 2000)).await;
    assert_eq!(done.stdout.total, 6 + 50_000_000 + 1 + 5);
    assert_eq!((done.stdout.head.len(), done.stdout.tail.len()), (1000, 2000));
    let text = done.stdout.text();
    assert!(text.starts_with("first\n[… ") && text.ends_with("\nlast\n"), "{text}");
    assert!(done.stdout.bytes_if_whole().is_none());
}

#[tokio::test]
async fn an_endless_writer_is_ended_by_its_budget() {
    let done = run(Place::new().sh("yes").wall(Duration::from_millis(400))).await;
    assert!(matches!(done.ending, Ending::TimedOut(_)) && done.confirmed_gone);
    assert!(done.stdout.total > 1_000_000);
}

#[tokio::test]
async fn a_flood_on_one_stream_does_not_stop_the_other() {
    let script = "yes & yes_pid=$!; i=0; while [ $i -lt 2000 ]; do echo 0123456789012345678901234567890123456789 >&2; i=$((i+1)); done; kill $yes_pid";
    let done = run(Place::new().sh(script)).await;
    assert_eq!(done.ending, Ending::Exited(0));
    assert_eq!(done.stderr.total, 2000 * 41);
}

#[tokio::test]
async fn bytes_that_are_no_text_are_kept_as_they_are() {
    let done = run(Place::new().sh("printf 'a\\377\\376b\\0c'")).await;
    assert_eq!(done.stdout.bytes_if_whole().unwrap(), b"a\xff\xfeb\0c");
    assert_eq!(done.stdout.text(), "a\u{fffd}\u{fffd}b\0c");
}

#[tokio::test]
async fn the_log_has_both_streams() {
    let place = Place::new();
    let log = place.path().join("logs/turn.log");
    let done = run(place.sh("echo out; echo err >&2").log(&log, 5000)).await;
    let text = fs::read_to_string(&log).unwrap();
    assert!(text == "out\nerr\n" || text == "err\nout\n", "{text}");
    let report = done.log.unwrap();
    assert_eq!((report.path, report.bytes, report.cut, report.error), (log, 8, 0, None));
}

#[tokio::test]
async fn the_log_ends_at_its_cap_and_the_capture_does_not() {
    let place = Place::new();
    let log = place.path().join("turn.log");
    let done = run(place.sh("echo out; head -c 100000 /dev/zero").log(&log, 5000)).await;
    let report = done.log.unwrap();
    let bytes = fs::read(&log).unwrap();
    assert_eq!((report.bytes, report.cut), (bytes.len() as u64, 100_004 - 5000));
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.starts_with("out\n") && text.ends_with("5000 bytes …]\n"), "{}", &text[4900..]);
    assert_eq!(done.stdout.total, 100_004);
}

/// Masks a word that may be split over two chunks.
struct Mask(Vec<u8>);

impl LogFilter for Mask {
    fn pass(&mut self, bytes: &[u8], _: &mut Vec<u8>) {
        self.0.write_all(bytes).unwrap();
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        out.extend(String::from_utf8_lossy(&self.0).replace("abcd1234secret", "[masked]").bytes());
    }
}

#[tokio::test]
async fn a_secret_split_over_two_writes_can_be_kept_out_of_the_log() {
    let place = Place::new();
    let log = place.path().join("log");
    let command = place.sh("printf abcd1234; sleep 0.2; echo secret").log(&log, 1_000_000);
    run(command.log_filter(|_: Stream| Box::new(Mask(Vec::new())))).await;
    assert_eq!(fs::read_to_string(&log).unwrap(), "[masked]\n");
}

#[tokio::test]
async fn the_private_temporary_folder_is_named_owner_only_and_gone_afterwards() {
    let place = Place::new();
    let tmp = place.path().join("state/tmp-1");
    let script = "echo $TMPDIR $TMP $TEMP; stat -c %a \"$TMPDIR\"; mkdir -p \"$TMPDIR/a/b\"; echo x > \"$TMPDIR/a/b/c\"; chmod 0 \"$TMPDIR/a\"";
    let done = run(place.sh(script).env("TMPDIR", "/elsewhere").private_tmp(&tmp)).await;
    let t = tmp.display();
    assert_eq!(done.stdout.text(), format!("{t} {t} {t}\n700\n"));
    assert_eq!(done.tmp_left, None);
    assert!(!tmp.exists());
}

#[tokio::test]
async fn the_temporary_folder_of_a_command_that_could_not_start_is_gone_too() {
    let place = Place::new();
    let tmp = place.path().join("tmp-1");
    let command = place.sh("true").arg("x".repeat(200_000)).private_tmp(&tmp);
    processes().run(command, CancellationToken::new(), None).await.unwrap_err();
    assert!(!tmp.exists());
}
