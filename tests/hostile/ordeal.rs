//! A repository full of a person's unfinished work, an agent that does one bad thing a turn, and what must hold after.

use crate::manifest::{self, Manifest};
use crate::scene::Scene;

/// One turn of the agent.
#[derive(Clone, Copy)]
pub(crate) struct Deed {
    /// What it does, in shell, in the root; a failing command is none of our business.
    pub(crate) shell: &'static str,
    /// Words that the record must use about the git folder, such as `branch` or `config`.
    pub(crate) undone: &'static [&'static str],
    /// Paths that the list of changes must hold, as it shows them.
    pub(crate) seen: &'static [&'static str],
    /// Paths that the fence must have reverted.
    pub(crate) fenced: &'static [&'static str],
    /// Words that the list of what is left alone must hold.
    pub(crate) left: &'static [&'static str],
    /// Are an edit in scope, which the deed may hide, and one out of scope made after it?
    pub(crate) edits: bool,
}

/// A deed to the git folder; the hidden edit and the cheat that go with it are added.
pub(crate) const fn git(shell: &'static str, undone: &'static [&'static str]) -> Deed {
    Deed { shell, undone, seen: &["src/lib.txt"], fenced: &["tests/check.txt"], left: &[], edits: true }
}

/// A deed to files alone.
pub(crate) const fn files(shell: &'static str, seen: &'static [&'static str], fenced: &'static [&'static str]) -> Deed {
    Deed { shell, undone: &[], seen, fenced, left: &[], edits: false }
}

impl Deed {
    pub(crate) const fn left(mut self, left: &'static [&'static str]) -> Deed {
        self.left = left;
        self
    }
}

/// Done after each deed to the git folder: an edit in scope that it may hide, and one out of scope.
const EDITS: &str = "mkdir -p src tests; echo \"hidden $N\" >> src/lib.txt; echo \"cheat $N\" >> tests/check.txt";

/// What the person has under way. `$PWD` is the root; the stash, the branches and the linked worktree are theirs too.
const UNDER_WAY: &str = r#"
set -e
mkdir -p src tests build docs
for n in 1 2 3 4 5 6 7 8 9; do echo "line $n" >> src/half.txt; done
echo one > src/lib.txt; echo keep > src/work.txt; echo check > tests/check.txt; echo data > docs/data.txt
printf '#!/bin/sh\nexit 0\n' > run.sh; chmod 755 run.sh; ln -s src/lib.txt link
printf '.env\nbuild/\n*.log\n' > .gitignore
git add -A; git commit -qm "first"
git checkout -qb dev; echo other > src/lib.txt; git commit -qam "dev"; git checkout -q main
echo two >> src/lib.txt; git commit -qam "second"; echo three >> src/lib.txt; git commit -qam "third"
git branch keep HEAD~1; git tag v1 HEAD~1; git tag -am annotated v2; git update-ref refs/remotes/origin/main HEAD~1
git worktree add -q ../linked -b linked; echo theirs >> ../linked/src/work.txt; echo u > ../linked/untracked
echo stashed >> docs/data.txt; git stash -q
git config alias.st status; git config core.abbrev 9
printf '#!/bin/sh\nexit 0\n' > .git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit
echo 'scratch/' >> .git/info/exclude; mkdir scratch; echo s > scratch/s
echo staged > src/staged.txt; git add src/staged.txt
sed -i 's/line 2/LINE 2/' src/half.txt; git add src/half.txt; sed -i 's/line 8/LINE 8/' src/half.txt
echo notes > notes.txt; echo SECRET > .env; echo out > build/out.bin; echo log > x.log; chmod 600 .env
mkdir empty
touch -d '2020-01-02 03:04:05' notes.txt .env build/out.bin
"#;

pub(crate) const LOOP: &str = r#"
local ln = require "lunation"
return ln.loop {
  agent = ln.agent { "worker" },
  prompt = "Work.",
  sensors = { "false" },
  fence = { "src/**" },
  decide = function() return "rollback", "not this way" end,
  breaker = { failures = 100, unchanged = 100 },
  budget = { iterations = TURNS },
}
"#;

/// The users to test as: whoever runs the tests and, if that is root, one that nobody else is.
pub(crate) fn users() -> Vec<Option<u32>> {
    if rustix::process::geteuid().is_root() { vec![None, Some(crate::ordeal::ORDINARY)] } else { vec![None] }
}

/// A user id that no account has.
pub(crate) const ORDINARY: u32 = 64_123;

/// A repository with a person's work in it.
pub(crate) fn under_way() -> Scene {
    let scene = Scene::new().program("prepare", UNDER_WAY);
    let ran = crate::scene::finish(scene.command("prepare"));
    assert_eq!(ran.code, 0, "{ran:?}");
    scene
}

/// What must be as it was.
pub(crate) struct Before {
    pub(crate) project: Manifest,
    linked: Manifest,
    refs: String,
}

impl Before {
    pub(crate) fn of(scene: &Scene) -> Before {
        Before {
            project: manifest::of(&scene.root()),
            linked: manifest::of(&scene.outside().join("linked")),
            refs: scene.git(&["for-each-ref"]),
        }
    }

    pub(crate) fn still_holds(&self, scene: &Scene, what: &str) {
        let now = manifest::of(&scene.root());
        let differs = manifest::differences(&self.project, &now);
        assert!(differs.is_empty(), "{what}:\n{differs}{}", turn_by_turn(scene));
        let linked = manifest::of(&scene.outside().join("linked"));
        assert_eq!(manifest::differences(&self.linked, &linked), "", "{what}: the linked worktree");
        scene.git(&["fsck", "--full", "--no-dangling"]);
        assert_eq!(scene.git(&["for-each-ref"]), self.refs, "{what}");
        assert!(scene.git(&["stash", "show", "-p"]).contains("+stashed"), "{what}");
        assert!(!scene.outside().join("canary").exists(), "{what}: something planted ran on the host");
    }
}

/// Which turn left something behind, from the looks that the agent took first thing in each.
fn turn_by_turn(scene: &Scene) -> String {
    let look = |n: u32| std::fs::read_to_string(scene.outside().join(format!("looks/{n}"))).unwrap_or_default();
    let first = look(1);
    let last = scene.turns();
    match (2..=last).find(|n| look(*n) != first) {
        Some(n) => format!("  turn {} was the first to leave something", n - 1),
        None => format!("  turn {last} left it"),
    }
}

/// Runs the deeds, one a turn, as each user.
pub(crate) fn ordeal(deeds: &[Deed]) {
    for user in users() {
        endure(under_way(), deeds, user);
    }
}

/// Runs the deeds in a scene, one a turn, and checks all that must hold.
pub(crate) fn endure(scene: Scene, deeds: &[Deed], user: Option<u32>) {
    let mut body = format!(
        "exec 2>>'{out}/errors'; O='{out}'; mkdir -p $O/looks
         find . -path ./.git/objects -prune -o -path ./.git/lunation -prune -o -type f -exec sha256sum {{}} + > $O/raw
         find . -path ./.git/objects -prune -o -path ./.git/lunation -prune -o -printf '%y %m %p %l\\n' >> $O/raw
         sort $O/raw > $O/looks/$N\ncase $N in\n",
        out = scene.outside().display()
    );
    for (n, deed) in (1..).zip(deeds) {
        let edits = if deed.edits { EDITS } else { "" };
        body.push_str(&format!("{n})\n{}\n{edits}\n;;\n", deed.shell));
    }
    body.push_str("esac\nrm -f $O/canary\necho ok");
    let scene = scene.agent(&body);
    std::fs::create_dir(scene.outside().join("looks")).expect("a folder");
    std::fs::write(scene.home().join("turns"), "0").expect("a counter");
    scene.write("loop.lua", LOOP.replace("TURNS", &deeds.len().to_string()));
    let scene = match user {
        Some(user) => scene.owned_by(user),
        None => scene,
    };
    let before = Before::of(&scene);
    let who = user.map_or("as who runs the test".to_owned(), |user| format!("as user {user}"));
    let ran = scene.run_loop(&[]);
    assert_eq!(ran.code, 2, "{who}: {}\n{}", ran.all(), scene.end());
    assert_eq!(scene.turns() as usize, deeds.len(), "{who}: {}", ran.all());
    for (n, deed) in (1..).zip(deeds) {
        named(&scene, n, deed, &who);
    }
    before.still_holds(&scene, &who);
    assert!(ran.all().contains("rolled back") || ran.all().contains("rollback"), "{}", ran.all());
}

/// The record of a turn names what was done in it.
fn named(scene: &Scene, turn: u64, deed: &Deed, who: &str) {
    let words = |kind: &str, field: &str| -> Vec<String> {
        let of_turn = scene.events(kind).into_iter().filter(|data| data["iteration"].as_u64() == Some(turn));
        let lists = of_turn.flat_map(|data| match field.split_once('.') {
            Some((outer, inner)) => data[outer][inner].as_array().cloned(),
            None => data[field].as_array().cloned(),
        });
        lists.flatten().map(|word| word.as_str().unwrap_or_default().to_owned()).collect()
    };
    let shell = deed.shell;
    let guarded = words("guarded", "undone");
    for what in deed.undone {
        let prefix = format!("{what}: ");
        assert!(guarded.iter().any(|word| word.starts_with(&prefix)), "{who}: {shell}: no {what} in {guarded:?}");
    }
    if !deed.edits {
        assert!(guarded.is_empty(), "{who}: {shell}: {guarded:?}");
    }
    let changed = words("changed", "change.files");
    for path in deed.seen {
        assert!(changed.iter().any(|seen| seen == path), "{who}: {shell}: {path} is not in {changed:?}");
    }
    let fenced = words("fenced", "paths");
    for path in deed.fenced {
        let prefix = format!("{path} (");
        assert!(fenced.iter().any(|word| word.starts_with(&prefix)), "{who}: {shell}: {path} is not in {fenced:?}");
    }
    let left = words("changed", "change.left_alone");
    for word in deed.left {
        assert!(left.iter().any(|line| line.contains(word)), "{who}: {shell}: no {word} in {left:?}");
    }
    assert_eq!(words("rolled_back", "conflicts"), [""; 0], "{who}: {shell}");
}
