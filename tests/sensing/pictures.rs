//! Pictures: against a golden one, from a file and from a real browser.

use image::{Rgb, RgbImage};

use crate::scene::Scene;
use crate::{last_reading, loop_over};

fn save(scene: &Scene, name: &str, paint: impl Fn(u32, u32) -> [u8; 3]) {
    RgbImage::from_fn(60, 30, |x, y| Rgb(paint(x, y))).save(scene.path(name)).expect("a picture");
}

fn with_pictures(options: &str, agent: &str) -> Scene {
    let scene = Scene::new();
    save(&scene, "golden.png", |_, _| [255, 255, 255]);
    save(&scene, "now.png", |_, _| [0, 0, 0]);
    save(&scene, "other.png", |x, y| if (40..50).contains(&x) && y >= 25 { [0, 0, 0] } else { [255, 255, 255] });
    scene
        .commit("pictures")
        .script(&loop_over(
            &format!("ln.sensor.picture {{ actual = \"now.png\", golden = \"golden.png\", {options} }}"),
            "budget = { iterations = 1 }",
        ))
        .agent(agent)
}

#[test]
fn a_picture_that_differs_is_red_with_its_region_and_the_difference_as_blob() {
    let scene = with_pictures("threshold = 0.001", "cp other.png now.png");
    scene.run_loop(&[]).expect_code(2);
    let reading = last_reading(&scene);
    assert_eq!(reading["state"], "failed", "{reading}");
    let feedback = reading["feedback"].as_str().unwrap_or_default();
    assert!(feedback.contains("x 40 to 49, y 25 to 29 (lower right)"), "{feedback}");
    assert!(
        feedback.starts_with("2.778% of the pixels of now.png differ from golden.png (allowed: 0.100%)"),
        "{feedback}"
    );
    let blob = reading["output"].as_str().expect("a blob");
    assert!(reading["notes"].to_string().contains(blob));
    let runs = scene.root().join(".git/lunation/runs");
    let run = std::fs::read_dir(runs).expect("runs").flatten().next().expect("a run").path();
    assert!(
        run.join("blobs")
            .read_dir()
            .expect("blobs")
            .flatten()
            .any(|e| e.file_name().to_string_lossy().starts_with(blob))
    );
}

#[test]
fn within_the_threshold_it_is_green_and_the_golden_one_is_fenced() {
    let scene = with_pictures("threshold = 0.05", "cp other.png now.png; cp other.png golden.png");
    scene.run_loop(&[]).expect_code(0);
    assert!(last_reading(&scene)["summary"].as_str().is_some_and(|text| text.starts_with("passed: 2.778%")));
    let white = image::open(scene.path("golden.png")).expect("the golden picture").into_rgb8();
    assert!(white.pixels().all(|pixel| pixel.0 == [255, 255, 255]), "nobody but a person changes it");
}

#[test]
fn no_picture_is_broken_and_one_that_cannot_be_taken_is_told() {
    let scene = with_pictures("", "rm now.png");
    scene.run_loop(&[]);
    let reading = last_reading(&scene);
    assert_eq!(reading["state"], "broken");
    assert!(reading["feedback"].as_str().is_some_and(|text| text.starts_with("now.png cannot be read")), "{reading}");
    let scene = with_pictures("take = \"echo no display; exit 1\"", "cp golden.png now.png");
    scene.run_loop(&[]);
    let reading = last_reading(&scene);
    assert_eq!(reading["state"], "failed", "an old picture is no picture");
    assert_eq!(reading["summary"], "no picture was taken: exit code 1: no display");
}

#[test]
#[allow(clippy::print_stderr, reason = "a test that is left out says so")]
fn a_page_is_looked_at_with_a_real_browser() {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&path).any(|dir| dir.join("chromium").is_file()) {
        eprintln!("left out: there is no chromium on the PATH");
        return;
    }
    // Chromium wants a socket in its temporary folder, whose path must be short.
    let shot = "d=$(mktemp -d /tmp/shot-XXXXXX); TMPDIR=$d chromium --headless --no-sandbox --disable-gpu --hide-scrollbars \
                --window-size=200,100 --user-data-dir=$d/profile --screenshot=now.png file://$PWD/page.html; r=$?; rm -rf $d; exit $r";
    let page = |colour: &str| {
        format!(
            "<!doctype html><body style='margin:0;background:white'><div style='width:50px;height:100px;background:{colour}'></div>"
        )
    };
    let options = format!("take = \"{shot}\", threshold = 0.01, timeout = \"2m\"");
    let scene =
        with_pictures(&options, "case $N in 1) sed -i s/blue/red/ page.html;; 2) sed -i s/red/green/ page.html;; esac");
    let scene = scene.file("page.html", page("green")).commit("a page");
    let ran = std::process::Command::new("sh")
        .args(["-c", &shot.replace("now.png", "golden.png")])
        .current_dir(scene.root())
        .env("TMPDIR", scene.home())
        .env("HOME", scene.home())
        .output()
        .expect("a shell");
    assert!(ran.status.success() && scene.exists("golden.png"), "{ran:?}");
    let script = scene.read("loop.lua").replace("iterations = 1", "iterations = 2");
    let scene = scene.file("loop.lua", &script).file("page.html", page("blue")).commit("the wrong colour");
    scene.run_loop(&[]).expect_code(0);
    assert_eq!(scene.turns(), 2);
    let prompt = scene.prompt(2);
    assert!(prompt.contains("x 0 to 49") && prompt.contains("left)"), "{prompt}");
}
