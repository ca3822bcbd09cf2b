//! Things that git would run, planted in every place that it looks at: none may ever run on the host.

use crate::ordeal::{Before, LOOP, git, ordeal, under_way, users};

/// Plants a program in one place each, by writing files: the agent's own git runs nothing of it.
#[test]
fn nothing_planted_runs() {
    ordeal(&[
        git(
            "printf '#!/bin/sh\\ntouch '$O'/canary\\ncat\\n' > $O/evil; chmod 755 $O/evil
             for h in post-index-change reference-transaction pre-commit post-checkout pre-auto-gc fsmonitor-watchman post-commit prepare-commit-msg commit-msg post-rewrite pre-push; do cp $O/evil .git/hooks/$h; done",
            &["hook"],
        ),
        git("printf '[core]\\n\\tfsmonitor = %s/evil\\n\\thooksPath = %s\\n\\tpager = %s/evil\\n\\teditor = %s/evil\\n\\tsshCommand = %s/evil\\n' $O $O $O $O $O >> .git/config", &["config"]),
        git("printf '[filter \"e\"]\\n\\tclean = %s/evil\\n\\tsmudge = %s/evil\\n\\tprocess = %s/evil\\n\\trequired = true\\n' $O $O $O >> .git/config; echo '* filter=e' > src/.gitattributes; echo '* filter=e' > .git/info/attributes", &["config", "info"]),
        git("printf '[diff]\\n\\texternal = %s/evil\\n[diff \"e\"]\\n\\ttextconv = %s/evil\\n\\tcommand = %s/evil\\n' $O $O $O >> .git/config; echo '* diff=e' > src/.gitattributes", &["config"]),
        git("printf '[alias]\\n\\tstatus = !%s/evil\\n\\trev-parse = !%s/evil\\n\\tconfig = !%s/evil\\n' $O $O $O >> .git/config", &["config"]),
        git("printf '[include]\\n\\tpath = ../src/evil.conf\\n' >> .git/config; printf '[core]\\n\\tfsmonitor = %s/evil\\n' $O > src/evil.conf", &["config"]),
        git("printf '[commit]\\n\\tgpgSign = true\\n[gpg]\\n\\tprogram = %s/evil\\n[credential]\\n\\thelper = %s/evil\\n[merge \"e\"]\\n\\tdriver = %s/evil\\n' $O $O $O >> .git/config; echo '* merge=e' > src/.gitattributes", &["config"]),
        git("printf '[core]\\n\\talternateRefsCommand = %s/evil\\n[uploadpack]\\n\\tpackObjectsHook = %s/evil\\n[extensions]\\n\\tpartialClone = origin\\n[remote \"origin\"]\\n\\turl = ext::%s/evil\\n\\tpromisor = true\\n[protocol]\\n\\tallow = always\\n' $O $O $O >> .git/config; rm -f .git/objects/??/*", &["config"]),
        git("git init -q src/nested; printf '[core]\\n\\tfsmonitor = %s/evil\\n' $O >> src/nested/.git/config; touch src/nested/x", &[]),
    ]);
}

/// The loop asks git itself, between turns and at the start of the next run, while what the agent planted inside
/// nested repositories that the person tracks (which no guard covers) is still there.
#[test]
fn questions_to_git_run_nothing_from_inside_nested_repositories() {
    for user in users() {
        let scene = under_way();
        let scene = scene.program(
            "nest",
            "set -e; git init -q src/inner; cd src/inner; echo i > i; git add i; git commit -qm i; cd ../..
             git -c advice.addEmbeddedRepo=false add src/inner; git commit -qm 'a repository inside' -- src/inner",
        );
        assert_eq!(crate::scene::finish(scene.command("nest")).code, 0);
        let scene = scene.agent(
            "O=$(dirname $PWD)
             printf '#!/bin/sh\\ntouch '$O'/canary\\n' > $O/evil; chmod 755 $O/evil
             printf '[core]\\n\\tfsmonitor = %s/evil\\n' $O >> src/inner/.git/config
             cp $O/evil src/inner/.git/hooks/post-index-change; touch src/inner/i
             rm -f $O/canary; echo $N > src/inner/n; echo ok",
        );
        let asks = "on_iteration = function() ln.git.status(); ln.git.diff(); ln.git.log() end,\n  budget";
        let lua =
            LOOP.replace("TURNS", "2").replace("budget", asks).replace("\"rollback\", \"not this way\"", "\"keep\"");
        let scene = scene.script(&lua);
        let scene = match user {
            Some(user) => scene.owned_by(user),
            None => scene,
        };
        let canary = scene.outside().join("canary");
        scene.run_loop(&[]).expect_code(2);
        assert!(!canary.exists(), "a question between turns ran what was planted");
        scene.run_loop(&[]).expect_code(2);
        assert!(!canary.exists(), "the start of a run ran what was planted");
        assert_eq!(scene.turns(), 4);
    }
}

/// What people type in the morning: every reading command, on a repository that was sabotaged while no run was there.
#[test]
fn commands_that_only_read_run_nothing_that_is_planted() {
    let scene = under_way().agent("echo x >> src/lib.txt; echo ok").script(&LOOP.replace("TURNS", "1"));
    scene.run_loop(&[]).expect_code(2);
    let before = Before::of(&scene);
    let evil = scene.bin().join("evil");
    let scene = scene.program("evil", "touch \"$(dirname \"$0\")/../canary\"");
    let canary = scene.outside().join("canary");
    std::fs::copy(scene.path(".git/config"), scene.outside().join("config")).expect("copied");
    let mut config = scene.read(".git/config");
    config.push_str(&format!("[core]\n\tfsmonitor = {0}\n\tpager = {0}\n[diff]\n\texternal = {0}\n", evil.display()));
    scene.write(".git/config", config);
    for args in
        [&["status"][..], &["log"], &["diff", "1"], &["prompt", "1"], &["report"], &["why"], &["check"], &["plan"]]
    {
        scene.run(args).expect_code(0);
        assert!(!canary.exists(), "{args:?}");
    }
    scene.write(".git/config", std::fs::read(scene.outside().join("config")).expect("read"));
    before.still_holds(&scene, "reading commands");
}
