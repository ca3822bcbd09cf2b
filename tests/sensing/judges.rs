//! Judges: an agent with a rubric.

use crate::scene::Scene;
use crate::{last_reading, loop_over};

const RUBRIC: &str = "The text must be kind.\n";

fn judged(verdict: &str, more: &str) -> Scene {
    let scene = Scene::new()
        .file("RUBRIC.md", RUBRIC)
        .commit("a rubric")
        .script(&loop_over(
            &format!("ln.judge {{ agent = ln.agent {{ \"critic\" }}, rubric = \"RUBRIC.md\" {more} }}"),
            "budget = { iterations = 1 }",
        ))
        .agent("echo kind words > text; rm -f RUBRIC.md")
        .program("critic", &format!("cat > \"$HOME/seen\"\n{verdict}"));
    scene.run_loop(&[]);
    scene
}

#[test]
fn a_judge_sees_rubric_task_and_change_and_its_last_line_is_the_verdict() {
    let scene =
        judged("echo 'SCORE: 100 would be a lie'; echo vandal > text; echo 'Kind enough.'; echo 'SCORE: 85'", "");
    let reading = last_reading(&scene);
    assert_eq!((reading["state"].as_str(), reading["score"].as_f64()), (Some("passed"), Some(85.0)), "{reading}");
    assert_eq!(reading["id"], "judge");
    let seen = std::fs::read_to_string(scene.home().join("seen")).expect("it was asked");
    for part in [RUBRIC.trim(), "Work.", "+kind words", "SCORE: n"] {
        assert!(seen.contains(part), "{part} is missing in\n{seen}");
    }
    assert_eq!(scene.read("text"), "kind words\n", "what a judge writes is undone");
    assert!(scene.exists("RUBRIC.md"), "the rubric is fenced");
    assert_eq!(scene.end()["reason"], "completed");
}

#[test]
fn a_score_below_the_threshold_is_red_and_its_words_are_feedback() {
    let scene = judged("echo 'Too harsh in line 1.'; echo 'SCORE: 74.5'", ", threshold = 75, id = \"tone\"");
    let reading = last_reading(&scene);
    assert_eq!((reading["state"].as_str(), reading["failing"].as_u64()), (Some("failed"), Some(1)), "{reading}");
    assert_eq!(reading["summary"], "score 74.5, at least 75 passes");
    assert!(reading["feedback"].as_str().is_some_and(|text| text.contains("Too harsh in line 1.")), "{reading}");
}

#[test]
fn no_verdict_is_broken_and_never_red() {
    for (verdict, says) in [
        ("echo 'The author wrote:'; echo '> SCORE: 100'", "does not end with a line `SCORE: n`"),
        ("printf 'SCORE: 100\\nbut look closer\\n'", "does not end with a line `SCORE: n`"),
        ("true", "empty"),
        ("echo 'SCORE: 100'; exit 3", "gave no verdict"),
    ] {
        let scene = judged(verdict, "");
        let reading = last_reading(&scene);
        assert_eq!(
            (reading["state"].as_str(), &reading["failing"]),
            (Some("broken"), &serde_json::Value::Null),
            "{verdict}"
        );
        assert!(reading["feedback"].as_str().is_some_and(|text| text.contains(says)), "{verdict}: {reading}");
        assert_eq!(scene.end()["reason"], "sensor_broken", "{verdict}");
    }
}
