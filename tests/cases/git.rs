//! GIT: checkpoint, rollback, shapes of repositories.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::scene::{Scene, eventually, finish};

fn looped(more: &str) -> String {
    format!(
        "local ln = require \"lunation\"\nreturn ln.loop {{ agent = ln.agent {{ \"worker\" }}, prompt = \"Work.\", \
         breaker = {{ failures = 100, unchanged = 100 }}, {more} }}\n"
    )
}

const ROLLBACK: &str = "sensors = { \"false\" }, decide = function() return \"rollback\", \"no\" end";

/// Mode, content or target, and mtime of everything but the git folder.
fn everything(root: &Path) -> BTreeMap<String, (u32, Vec<u8>, i64)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("listed").flatten() {
            let (path, meta) = (entry.path(), entry.path().symlink_metadata().expect("looked at"));
            let name = path.strip_prefix(root).expect("below").display().to_string();
            if name == ".git" {
                continue;
            }
            let content = match meta.file_type() {
                kind if kind.is_symlink() => path.read_link().expect("a link").into_os_string().into_encoded_bytes(),
                kind if kind.is_dir() => {
                    folders.push(path);
                    Vec::new()
                }
                _ => fs::read(&path).expect("read"),
            };
            let time = if meta.is_dir() { 0 } else { meta.mtime() * 1_000_000_000 + meta.mtime_nsec() };
            found.insert(name, (meta.mode(), content, time));
        }
    }
    found
}

#[test]
fn git_01_nothing_is_signed_and_no_editor_is_opened() {
    let scene = Scene::new()
        .program("sleeps", "echo $0 $* >> \"$HOME/asked\"; sleep 1000")
        .script(&looped(
            "sensors = { \"test -e done\" }, commit = { message = \"the result\" }, budget = { iterations = 1 }",
        ))
        .commit("script")
        .agent("echo x > done; git commit -q -a --no-gpg-sign; echo $? > ../editor; echo ok");
    let settings = "[commit]\n\tgpgSign = true\n[tag]\n\tgpgSign = true\n[gpg]\n\tprogram = sleeps\n[core]\n\teditor = sleeps\n[sequence]\n\teditor = sleeps\n[credential]\n\thelper = !sleeps\n";
    let config = scene.home().join(".gitconfig");
    fs::write(&config, fs::read_to_string(&config).expect("read") + settings).expect("written");
    let started = Instant::now();
    scene.run_loop(&[]).expect_code(0);
    assert!(started.elapsed() < Duration::from_secs(40));
    assert!(!scene.home().join("asked").exists(), "something waited for a person");
    assert_ne!(fs::read_to_string(scene.outside().join("editor")).expect("told").trim(), "0", "the editor failed fast");
    assert!(scene.git(&["log", "-1", "--format=%s %G?"]).starts_with("the result N"));
}

#[test]
fn git_02_hooks_of_the_repository_and_of_the_person_do_not_run_on_checkpoints() {
    for global in [false, true] {
        let scene =
            Scene::new().file("a", "a\n").script(&looped(&format!("{ROLLBACK}, budget = {{ iterations = 2 }}")));
        let scene = scene.commit("more").agent("echo changed >> a; echo ok");
        let hooks = if global { scene.home().join("hooks") } else { scene.path(".git/hooks") };
        fs::create_dir_all(&hooks).expect("made");
        for hook in ["pre-commit", "post-commit", "post-checkout", "post-index-change", "reference-transaction"] {
            let path = hooks.join(hook);
            fs::write(&path, format!("#!/bin/sh\necho {hook} >> {}/hooked\nexit 1\n", scene.outside().display()))
                .expect("written");
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a mode");
        }
        if global {
            finish({
                let mut command = scene.command("git");
                command.args(["config", "--global", "core.hooksPath"]).arg(&hooks);
                command
            })
            .expect_code(0);
        }
        let before = everything(&scene.root());
        scene.run_loop(&[]).expect_code(2);
        let after = everything(&scene.root());
        assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
        assert_eq!(scene.read("a"), "a\n");
        assert!(!scene.outside().join("hooked").exists(), "a hook ran");
    }
}

#[test]
fn git_03_fresh_machines_other_owners_and_other_languages() {
    // No identity anywhere: our own, and only in the commit.
    let script = looped("sensors = { \"test -e done\" }, commit = { message = \"done\" }, budget = { iterations = 1 }");
    let scene = Scene::new().script(&script).commit("script").agent("echo x > done; echo ok");
    fs::remove_file(scene.home().join(".gitconfig")).expect("removed");
    scene.run_loop(&[]).expect_code(0);
    assert_eq!(scene.git(&["log", "-1", "--format=%an"]), "lunation\n");
    assert!(!scene.home().join(".gitconfig").exists() && !scene.read(".git/config").contains("lunation"));

    // A clean tree is clean in every language.
    let scene = Scene::new().script(&looped(&format!("{ROLLBACK}, budget = {{ iterations = 1 }}"))).commit("script");
    let scene = scene.agent("echo ok").var("LANG", "de_DE.UTF-8").var("LC_ALL", "de_DE.UTF-8");
    scene.run_loop(&[]).expect_code(2);
    assert_eq!(scene.events("changed")[0]["change"]["empty"].as_bool(), Some(true));
    assert_eq!(scene.events("run_started")[0]["dirty"].as_bool(), Some(false));

    // Somebody else's repository.
    if rustix::process::geteuid().is_root() {
        let scene = Scene::new().script(&script).commit("script").agent("echo x > done; echo ok");
        finish({
            let mut command = Command::new("chown");
            command.arg("-R").arg("64123").arg(scene.root());
            command
        })
        .expect_code(0);
        let ran = scene.run_loop(&[]);
        assert_ne!(ran.code, 0);
        assert!(ran.all().contains("safe.directory"), "{}", ran.all());
        assert_eq!(scene.turns(), 0);
    }
}

#[test]
fn git_04_a_stale_lock_is_proven_removed_and_journaled_and_a_live_one_is_waited_for() {
    let scene = Scene::new().file("a", "a\n").script(&looped(&format!("{ROLLBACK}, budget = {{ iterations = 2 }}")));
    let scene = scene.commit("more").agent("echo x >> a; touch -d '1 hour ago' .git/index.lock; echo ok");
    let lock = scene.path(".git/index.lock");
    fs::write(&lock, "")
        .and_then(|()| fs::File::open(&lock)?.set_modified(std::time::SystemTime::UNIX_EPOCH))
        .expect("a lock");
    scene.run_loop(&[]).expect_code(2);
    assert!(!lock.exists());
    let noted = scene.events("noted").iter().map(|data| data["text"].to_string()).collect::<String>();
    assert!(noted.contains("index.lock"), "the one from before: {noted}");
    let guarded = scene.events("guarded").iter().map(|data| data["undone"].to_string()).collect::<String>();
    assert!(guarded.contains("index.lock"), "those of the agent: {guarded}");

    // A git that waits for its editor holds the lock of its commit; it is waited for.
    let mut holder = scene
        .command("sh")
        .args(["-c", "exec 9> .git/index.lock; echo held; read line; rm .git/index.lock"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a holder");
    std::io::Read::read_exact(holder.stdout.as_mut().expect("piped"), &mut [0; 5]).expect("held");
    let running = scene.start(&["run", "--trust"]);
    std::io::Write::write_all(holder.stdin.as_mut().expect("piped"), b"\n").expect("told");
    assert!(holder.wait().expect("ended").success());
    let ran = running.wait();
    assert_eq!(ran.code, 2, "{ran:?}");

    // While the program is asked how things stand, an agent that commits all the time sees no lock.
    let scene = Scene::new().script(&looped(&format!("{ROLLBACK}, budget = {{ iterations = 1 }}"))).commit("more").agent(
        "for n in $(seq 60); do echo $n > n; git add n && git commit -qm $n || echo failed >> ../failed; done; touch ../over; echo ok",
    );
    let running = scene.start(&["run", "--trust"]);
    eventually("the agent is over", || {
        scene.run(&["status"]);
        scene.outside().join("over").exists()
    });
    running.wait();
    assert!(!scene.outside().join("failed").exists(), "a commit of the agent met a lock");
}

#[test]
fn git_06_a_rollback_removes_what_the_agent_made_and_nothing_else() {
    let scene = Scene::new().file("a", "a\n").file(".gitignore", ".env\nnode_modules/\n");
    let scene = scene.script(&looped(&format!("{ROLLBACK}, budget = {{ iterations = 1 }}"))).commit("more");
    scene.write(".gitignore", ".env\nnode_modules/\nout/\n");
    for path in ["data.bin", ".env", "node_modules/deep/x.js", "out/x"] {
        scene.write(path, format!("{path}\n"));
    }
    let scene =
        scene.agent("echo junk > junk; echo edited > a; printf '.env\\nnode_modules/\\n' > .gitignore; echo ok");
    let before = everything(&scene.root());
    scene.run_loop(&[]).expect_code(2);
    let after = everything(&scene.root());
    for (path, (mode, content, time)) in &before {
        let (mode_now, content_now, time_now) = &after[path];
        assert_eq!((mode, content), (mode_now, content_now), "{path}");
        assert!(["a", ".gitignore"].contains(&&**path) || time == time_now, "{path} was touched");
    }
    assert_eq!(after.len(), before.len(), "junk is gone");
}

#[test]
fn git_08_many_files_and_a_huge_one_cost_once() {
    let scene = Scene::new().script(&looped(&format!("{ROLLBACK}, budget = {{ iterations = 3 }}"))).commit("more");
    fs::create_dir(scene.path("big")).expect("made");
    for n in 0..20_000 {
        if n % 200 == 0 {
            fs::create_dir(scene.path(&format!("big/{n}"))).expect("made");
        }
        fs::write(scene.path(&format!("big/{}/{n}", n - n % 200)), "x").expect("written");
    }
    let huge = fs::File::create(scene.path("huge")).expect("made");
    huge.set_len(5 << 30).expect("sized");
    let scene = scene.agent("echo $N > n; echo ok");
    scene.run_loop(&[]).expect_code(2);
    let changed = scene.events("changed");
    assert_eq!(changed.len(), 3);
    for change in &changed {
        assert!(change["change"]["left_alone"].to_string().contains("huge (over the size cap"), "{change}");
        assert_eq!(change["change"]["files"].to_string(), "[\"n\"]");
    }
    assert_eq!(scene.path("huge").metadata().expect("there").len(), 5 << 30);
    let state = scene.home().join("lunation");
    let left: Vec<_> = files_named(&state, "tmp");
    assert!(left.is_empty(), "temporary objects were left: {left:?}");
}

/// What lies in folders of this name.
fn files_named(root: &Path, name: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            } else if folder.file_name().is_some_and(|folder| folder == name) {
                found.push(entry.path());
            }
        }
    }
    found
}

#[test]
fn git_09_a_tree_is_dirty_when_git_says_so() {
    let script = looped(&format!("{ROLLBACK}, budget = {{ iterations = 1 }}"));
    let dirty = |scene: &Scene| {
        scene.run_loop(&[]).expect_code(2);
        let started = scene.events("run_started").pop().expect("a record");
        started["dirty"].as_bool().expect("told")
    };
    let scene = Scene::new().script(&script).commit("more").agent("echo ok");
    fs::create_dir_all(scene.home().join(".config/git")).expect("made");
    fs::write(scene.home().join(".config/git/ignore"), ".idea/\n").expect("written");
    scene.write(".idea/workspace.xml", "x");
    symlink("nowhere", scene.path("dangling")).expect("linked");
    scene.git(&["config", "core.autocrlf", "true"]);
    scene.write("windows.txt", "one\r\ntwo\r\n");
    let scene = scene.commit("a dangling link and a file with CRLF");
    assert_eq!(scene.status(), "");
    assert!(!dirty(&scene), "a global ignore file, a dangling link, CRLF under autocrlf");
    assert!(!dirty(&scene), "our own state of the run before");
    assert_eq!(scene.status(), "");
    // Dirty by its line ends alone: what git says is what is told.
    scene.write("windows.txt", "one\ntwo\n");
    assert_eq!(dirty(&scene), !scene.status().is_empty());
    assert_eq!(scene.read("windows.txt"), "one\ntwo\n");
}

#[test]
fn git_11_head_is_where_it_was_after_every_turn() {
    for detached in [false, true] {
        let scene = Scene::new().script(&looped(
            "sensors = { \"false\" }, decide = function() return \"keep\" end, budget = { iterations = 5 }",
        ));
        let scene = scene.file("n", "0\n").commit("0").file("n", "1\n").commit("1").file("n", "2\n").commit("2");
        if detached {
            scene.git(&["checkout", "-q", "--detach"]);
        }
        let scene = scene.agent(
            "cat .git/HEAD > ../head.$N; git for-each-ref > ../refs.$N; case $N in
             1) git checkout -q HEAD~1;; 2) git checkout -q -b other;; 3) git reset -q --hard HEAD~2;;
             4) git stash -q -u;; 5) git commit -q --amend -am amended;; esac; echo $N > t$N; echo ok",
        );
        let (head, refs) = (scene.read(".git/HEAD"), scene.git(&["for-each-ref"]));
        scene.run_loop(&[]).expect_code(2);
        assert_eq!((scene.read(".git/HEAD"), scene.git(&["for-each-ref"])), (head.clone(), refs.clone()));
        for turn in 1..=5 {
            let seen =
                |name: &str| fs::read_to_string(scene.outside().join(format!("{name}.{turn}"))).expect("looked at");
            assert_eq!((seen("head"), seen("refs")), (head.clone(), refs.clone()), "before turn {turn}");
        }
        assert_eq!(scene.events("guarded").len(), 5);
        assert!(scene.exists("t5"), "content stays");
    }
}

#[test]
fn git_14_what_the_person_staged_stays_staged_and_is_in_no_result() {
    for (code, more) in [
        (
            0,
            "sensors = { \"test -e done\" }, commit = { message = \"the result\" }, budget = { iterations = 1 }"
                .to_owned(),
        ),
        (2, format!("{ROLLBACK}, budget = {{ iterations = 1 }}")),
    ] {
        let lines: String = (1..=9).map(|n| format!("line {n}\n")).collect();
        let scene = Scene::new().file("a", "a\n").file("b", &lines).script(&looped(&more)).commit("more");
        scene.write("a", "a staged\n");
        scene.write("b", lines.replace("line 2", "LINE 2"));
        scene.git(&["add", "a", "b"]);
        scene.write("b", lines.replace("line 2", "LINE 2").replace("line 8", "LINE 8"));
        scene.write("c", "untracked\n");
        let scene = scene.agent("echo x > done; git add -A; git reset -q; echo ok");
        let staged = scene.git(&["diff", "--cached"]);
        let unstaged = scene.git(&["diff"]);
        scene.run_loop(&[]).expect_code(code);
        assert_eq!((scene.git(&["diff", "--cached"]), scene.git(&["diff"])), (staged, unstaged));
        assert!(scene.status().contains("?? c"));
        if code == 0 {
            assert_eq!(scene.git(&["show", "--format=", "--name-only", "HEAD"]), "done\n");
        }
    }
}

#[test]
fn git_15_modes_links_and_line_ends_come_back_and_a_second_rollback_changes_nothing() {
    let scene = Scene::new().script(&looped(&format!("{ROLLBACK}, budget = {{ iterations = 2 }}")));
    let scene = scene.file("script", "#!/bin/sh\n").file("secret", "s\n").file("empty", "").file("crlf", "a\r\nb\r\n");
    let scene = scene
        .file(".gitattributes", "* text=auto\n*.lfs filter=stub\n")
        .file("big.lfs", "raw content\n")
        .file("untouched", "u\n");
    scene.git(&["config", "filter.stub.clean", "sed s/raw/cooked/"]);
    scene.git(&["config", "filter.stub.smudge", "sed s/cooked/raw/"]);
    fs::set_permissions(scene.path("script"), fs::Permissions::from_mode(0o755)).expect("a mode");
    fs::set_permissions(scene.path("secret"), fs::Permissions::from_mode(0o600)).expect("a mode");
    for (link, target) in [("to-file", "secret"), ("to-outside", "/etc/hostname"), ("dangling", "nowhere")] {
        symlink(target, scene.path(link)).expect("linked");
    }
    let scene = scene.commit("all of it");
    fs::create_dir(scene.path("hollow")).expect("made");
    let scene = scene.agent(
        "chmod 644 script secret; echo x > empty; printf 'a\\nb\\n' > crlf; echo other > big.lfs; rmdir hollow
         for l in to-file to-outside dangling; do rm $l; echo file > $l; done; echo ok",
    );
    let (before, status) = (everything(&scene.root()), scene.status());
    scene.run_loop(&[]).expect_code(2);
    let after = everything(&scene.root());
    let plain = |all: &BTreeMap<String, (u32, Vec<u8>, i64)>| -> Vec<(String, u32, Vec<u8>)> {
        all.iter().map(|(path, (mode, content, _))| (path.clone(), *mode, content.clone())).collect()
    };
    assert_eq!(plain(&after), plain(&before));
    assert_eq!(scene.status(), status);
    assert_eq!(after["untouched"], before["untouched"], "its time too");
    scene.run(&["restore", "0"]).expect_code(0);
    assert_eq!(everything(&scene.root()), after, "a second rollback changes nothing, no time either");
}
