//! TEXT: prompt delivery and encodings.

use crate::scene::Scene;

fn from_file(extra: &str) -> String {
    format!(
        "local ln = require \"lunation\"\nreturn ln.loop {{ agent = ln.agent {{ \"worker\" {extra} }}, prompt = ln.prompt \"PROMPT.md\", \
         sensors = {{ \"test -e got\" }}, budget = {{ iterations = 1 }} }}\n"
    )
}

#[test]
fn text_01_prompts_of_any_size_arrive_whole_and_feedback_is_capped() {
    for bytes in [127 << 10, 129 << 10, 3 << 20] {
        let prompt = "x".repeat(bytes);
        let scene = Scene::new().file("PROMPT.md", &prompt).script(&from_file("")).agent("wc -c > got; echo ok");
        let scene = scene.file(".gitignore", "PROMPT.md\n");
        scene.run_loop(&[]).expect_code(0);
        // The baseline is red, and its one line of feedback comes after the template.
        let got: usize = scene.read("got").trim().parse().expect("a number");
        assert!((bytes..bytes + 2000).contains(&got), "{bytes}: {got}");
    }
    let lua = "local ln = require \"lunation\"\nreturn ln.loop { agent = ln.agent { \"worker\" }, prompt = \"Work.\", \
               sensors = { \"head -c 5242880 /dev/zero | tr '\\\\0' y; test -e got\" }, budget = { iterations = 1 } }\n";
    let scene = Scene::new().script(lua).agent("wc -c > got; echo ok");
    scene.run_loop(&[]).expect_code(0);
    let got: usize = scene.read("got").trim().parse().expect("a number");
    assert!(got < 64 << 10, "feedback of 5 MiB is capped: {got}");
}

#[test]
fn text_02_a_prompt_is_data_byte_for_byte() {
    let prompt = "Fix Mike's \"bug\"; see [x] & $(touch pwned) `touch pwned2` $HOME %PATH% \\n\n-rf --help\n";
    let lua = "local ln = require \"lunation\"\nreturn ln.loop { agent = ln.agent { \"worker\" }, prompt = ln.prompt \"PROMPT.md\", \
               budget = { iterations = 1 } }\n";
    let scene = Scene::new().file("PROMPT.md", prompt).script(lua).commit("p").agent("cat > got; echo ok");
    scene.run_loop(&[]).expect_code(2);
    assert_eq!(scene.read("got"), prompt);
    assert_eq!(scene.prompt(1), prompt);
    assert!(!scene.exists("pwned") && !scene.exists("pwned2"));

    // File names and branch names of the repository are data as well.
    let scene = Scene::new()
        .file("PROMPT.md", prompt)
        .file("-rf", "x")
        .file("$(touch pwned)", "x")
        .script(lua)
        .commit("p")
        .agent("echo y > -- '-rf' 2>/dev/null; echo y > ./-rf; echo y > './$(touch pwned)'; echo ok");
    scene.git(&["checkout", "-q", "-b", "a;touch${IFS}pwned"]);
    scene.run_loop(&[]).expect_code(2);
    assert!(!scene.exists("pwned"));
    assert_eq!(scene.git(&["branch", "--show-current"]), "a;touch${IFS}pwned\n");
}

#[test]
fn text_03_odd_encodings_are_accepted_or_named() {
    let lua = from_file("").replace("sensors = { \"test -e got\" }, ", "");
    for (content, got) in [
        (&b"\xef\xbb\xbfDo it.\n"[..], "Do it.\n"),
        (b"Do it.\r\nNow.\r\n", "Do it.\r\nNow.\r\n"),
        (b"no final newline", "no final newline"),
    ] {
        let scene = Scene::new().file("PROMPT.md", content).script(&lua).agent("cat > got; echo ok");
        scene.run_loop(&[]).expect_code(2);
        assert_eq!(scene.read("got"), got);
    }
    for (content, problem) in
        [(&b"\xff\xfeD\0o\0"[..], "UTF-16"), (b"", "empty"), (b" \n\t\n", "empty"), (b"a\0b", "NUL")]
    {
        let scene = Scene::new().file("PROMPT.md", content).script(&lua).agent("echo ok");
        let ran = scene.run_loop(&[]).expect_code(4);
        assert!(ran.stderr.contains("PROMPT.md") && ran.stderr.contains(problem), "{}", ran.stderr);
        assert_eq!(scene.turns(), 0);
    }
    // The script itself.
    let plain = "local ln = require \"lunation\"\nreturn ln.loop { agent = ln.agent { \"worker\" }, prompt = \"x\", budget = { iterations = 1 } }";
    let utf16: Vec<u8> = [0xff, 0xfe].into_iter().chain(plain.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    for good in [format!("\u{feff}{plain}\n"), plain.replace('\n', "\r\n"), plain.to_owned()] {
        let scene = Scene::new().file("loop.lua", good).agent("echo $N > work; echo ok");
        scene.run_loop(&[]).expect_code(2);
    }
    for (bad, problem) in [
        (utf16, "UTF-16"),
        (b"return\0".to_vec(), "NUL"),
        (vec![], "returns nothing"),
        (b"  \n".to_vec(), "returns nothing"),
    ] {
        let scene = Scene::new().file("loop.lua", bad).agent("echo ok");
        let ran = scene.run_loop(&[]).expect_code(4);
        assert!(ran.stderr.contains("loop.lua") && ran.stderr.contains(problem), "{problem}: {}", ran.stderr);
    }
}
