//! Files, folders, links and special things in the working tree.

use crate::ordeal::{endure, files, git, ordeal, under_way, users};

const DEEP: &str =
    "perl -e 'chdir \"src\"; for (1..60) { mkdir \"n\" x 100; chdir \"n\" x 100 } open F, \">deep\"; print F 1'";
const TOO_DEEP: &str =
    "perl -e 'chdir \"src\"; for (1..400) { mkdir \"n\"; chdir \"n\" } open F, \">deep\"; print F 1'";

#[test]
fn modes_links_and_kinds_come_back() {
    ordeal(&[
        files(
            "chmod 000 src/work.txt tests/check.txt; chmod 555 src docs",
            &["src/work.txt"],
            &["tests/check.txt", "docs"],
        ),
        files("chmod 000 src tests", &["src"], &["tests"]),
        files("chmod 4755 src/lib.txt; chmod 644 run.sh; chmod 777 .", &["src/lib.txt"], &["run.sh"]),
        files("rm -rf docs; ln -s $O docs", &[], &["docs"]),
        files("rm -rf tests; ln -s src tests", &[], &["tests"]),
        files("mv src s; mkdir src; cp s/* src/; rm -rf s; ln -s /etc src/etc", &["src/etc"], &[]),
        files(
            "rm src/work.txt; ln -s /etc/passwd src/work.txt; rm link; echo file > link",
            &["src/work.txt"],
            &["link"],
        ),
        files("rm -rf src; echo file > src", &["src/lib.txt"], &["src"]),
        files("rm notes.txt; mkdir -p notes.txt/a/b; echo x > notes.txt/a/b/c", &[], &["notes.txt"]),
        files(
            "rmdir empty; rm -rf docs; mkdir -p src/void/of/things",
            &["src/void/of/things"],
            &["empty", "docs/data.txt"],
        ),
        files("mv src/work.txt tests/stolen.txt; mv notes.txt src/notes.txt", &[], &["tests/stolen.txt", "notes.txt"]),
    ]);
}

#[test]
fn hard_links_lead_nowhere() {
    // the outside file must stay as it is though the rollback removes its second name
    for user in users() {
        let scene = under_way();
        let outside = scene.outside().join("outside.txt");
        std::fs::write(&outside, "outside\n").expect("written");
        let deeds = [
            files(
                "ln $O/outside.txt src/inside.txt; rm src/work.txt; ln $O/outside.txt src/work.txt",
                &["src/inside.txt", "src/work.txt"],
                &[],
            ),
            files(
                "ln src/lib.txt $O/theirs; rm -f $O/theirs; ln .env src/env; echo more >> src/lib.txt",
                &["src/lib.txt"],
                &[],
            ),
        ];
        endure(scene, &deeds, user);
    }
}

#[test]
fn special_things_are_never_opened_and_are_gone_after() {
    let mut deeds = vec![
        files("mkfifo src/pipe tests/pipe", &["src/pipe"], &["tests/pipe"]),
        files("rm src/work.txt; mkfifo src/work.txt", &["src/work.txt"], &[]),
        files(
            "perl -MSocket -e 'socket(S, PF_UNIX, SOCK_STREAM, 0); bind(S, sockaddr_un(\"src/sock\"))'",
            &["src/sock"],
            &[],
        )
        .left(&["socket"]),
        files("truncate -s 5G src/huge", &["src/huge"], &[]).left(&["over the size cap"]),
        files(DEEP, &[], &[]),
        files(TOO_DEEP, &[], &[]).left(&["src/n/n/n/n"]),
    ];
    for user in users() {
        let mut deeds = deeds.clone();
        if user.is_none() && rustix::process::geteuid().is_root() {
            deeds.push(
                files("mknod src/null c 1 3 && mknod src/disk b 7 200", &["src/null", "src/disk"], &[])
                    .left(&["device"]),
            );
        }
        endure(under_way(), &deeds, user);
    }
    deeds.clear();
}

#[test]
fn odd_names_are_names_like_others() {
    ordeal(&[
        files(
            "touch 'src/a\nb' 'src/tab\there' 'src/\"quoted\"' 'src/back\\slash' 'src/-n' 'src/*' 'src/ '",
            &["src/a%0ab", "src/tab%09here", "src/\"quoted\"", "src/-n", "src/*"],
            &[],
        ),
        files(
            "touch \"src/$(printf '\\377\\376')\" src/%41 'src/~' src/.git2 src/git~1 src/.GIT",
            &["src/%ff%fe", "src/%2541", "src/git~1"],
            &["src/.GIT"],
        ),
        files("touch src/$(printf 'n%.0s' $(seq 255)) src/CON src/a: src/b.", &["src/CON"], &[]),
        files(
            "ln -s loop src/loop; ln -s $(printf 'x%.0s' $(seq 4000)) src/long; ln -s . src/self",
            &["src/loop", "src/long", "src/self"],
            &[],
        ),
        files("for n in $(seq 2000); do : > src/many.$n; done", &["src/many.1"], &[]),
    ]);
}

#[test]
fn ignored_files_of_the_person_survive() {
    ordeal(&[
        files(": > .gitignore; echo x > src/x", &["src/x"], &[".gitignore"]),
        files("echo 'src/evil*' > src/.gitignore; echo e > src/evil.sh", &["src/.gitignore", "src/evil.sh"], &[]),
        files("printf '*\\n!.gitignore\\n' > src/.gitignore; echo e > src/evil.sh", &["src/evil.sh"], &[]),
        files("echo overwritten > .env; echo log >> x.log; echo o > build/out.bin; echo x > src/x", &["src/x"], &[]),
        files("rm .env x.log; mv build src/stolen; echo x > src/x", &["src/x", "src/stolen/out.bin"], &[]),
        files(
            "rm -rf build scratch .env; mkdir build; echo new > build/new; rm build/new; echo x > src/x",
            &["src/x"],
            &[],
        ),
    ]);
}

#[test]
fn a_nested_repository_is_no_hiding_place() {
    ordeal(&[
        files("git init -q src/nested; echo x > src/nested/x", &["src/nested/x"], &["src/nested/.git"]),
        files(
            "git init -q src/n; cd src/n; echo x > x; git add x; git -c user.name=a -c user.email=b commit -qm x; echo '*' > .git/info/exclude; echo y > y",
            &["src/n/x", "src/n/y"],
            &["src/n/.git"],
        ),
        git("git -c protocol.file.allow=always submodule --quiet add ./. src/sub; echo x > src/sub/x", &["submodule"]),
    ]);
}
