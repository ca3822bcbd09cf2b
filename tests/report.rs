//! What reports say of runs, each told by its journal alone.

mod recorded_run;

use std::path::PathBuf;

use lunation::journal::{Event, Recording, RunId};
use lunation::policy::{BreakerKind, Decision, FailureMode, Outcome, ReadingState, Reason, TimeoutKind};
use lunation::report::{Figures, RunState, Summary, Why, mode_name};
use recorded_run::{Step, Story, TestClock, run_id, sense};

const START: &str = "2026-11-30T20:10:26Z";

struct Run {
    _folder: tempfile::TempDir,
    dir: PathBuf,
    story: Story,
}

impl Run {
    fn new() -> Run {
        let folder = tempfile::tempdir().unwrap();
        let id: RunId = run_id(START, 1);
        let dir = folder.path().join("lunation/runs").join(id.as_str());
        Run { story: Story::begin(&dir, TestClock::at(START), id), dir, _folder: folder }
    }

    fn of(steps: Vec<Step>, reason: Reason) -> Summary {
        let mut run = Run::new();
        for step in steps {
            run.story.iterate(step);
        }
        run.story.end(reason, reason == Reason::Completed);
        run.summary()
    }

    fn recording(&self) -> Recording {
        Recording::read(&self.dir).unwrap()
    }

    fn summary(&self) -> Summary {
        Summary::of(&self.recording(), false)
    }

    fn why(&self, iteration: Option<u32>) -> Option<String> {
        Why::of(&self.recording(), &self.summary(), iteration).map(|why| why.to_text())
    }
}

fn modes(steps: Vec<Step>, reason: Reason) -> Vec<&'static str> {
    Run::of(steps, reason).failure_modes.into_iter().map(mode_name).collect()
}

fn turn(outcome: Outcome) -> Step<'static> {
    Step { outcome, ..Step::keep(2) }
}

#[test]
fn a_summary_tells_each_iteration() {
    let mut run = Run::new();
    run.story.iterate(Step::rollback(4, "broke test_3"));
    run.story.iterate(Step { fenced: &["tests/a.rs"], guarded: &["HEAD", "index"], ..Step::keep(1) });
    run.story.iterate(Step::stall()).climb(1, 2).iterate(Step { rung: 2, ..Step::keep(0) });
    run.story.end(Reason::Completed, true);
    let summary = run.summary();
    assert_eq!(summary.headline(), "completed, verified, after 4 iterations (exit code 0)");
    assert_eq!(summary.state, RunState::Ended);
    assert!(summary.passed());
    assert_eq!((summary.climbs, summary.baseline_failing), (1, Some(3)));
    let told: Vec<_> = summary
        .iterations
        .iter()
        .map(|row| (row.iteration, row.decision.unwrap(), row.failing, row.unchanged, row.fenced, row.guarded))
        .collect();
    use Decision::{Keep, Rollback, Stall};
    assert_eq!(
        told,
        [
            (1, Rollback, Some(4), Some(false), 0, 0),
            (2, Keep, Some(1), Some(false), 1, 2),
            (3, Stall, Some(3), Some(true), 0, 0),
            (4, Keep, Some(0), Some(false), 0, 0),
        ]
    );
    let times: Vec<_> = summary.iterations.iter().map(|row| (row.agent_s, row.sensor_s)).collect();
    assert_eq!(times[1], (Some(60.0), Some(5.0)));
    assert_eq!(times[2], (Some(60.0), None), "no sensor ran for an iteration that changed nothing");
    assert_eq!(summary.iterations[3].agent, "fake-2");
    assert_eq!(summary.iterations[0].note.as_deref(), Some("broke test_3"));
    assert_eq!(summary.next[0].command, "git diff");
}

#[test]
fn a_run_without_an_end_is_running_while_somebody_writes_it_and_unfinished_after() {
    let mut run = Run::new();
    run.story.iterate(Step::keep(2));
    run.story.clock.advance(30.0);
    run.story.tell("loop", recorded_run::note("still here"));
    let recording = run.recording();
    let running = Summary::of(&recording, Recording::is_being_written(&run.dir));
    assert_eq!(running.state, RunState::Running);
    assert_eq!(running.headline(), "running, 1 iteration so far");
    assert_eq!(running.next[0].command, "lunation status");
    let crashed = Summary::of(&recording, false);
    assert_eq!(crashed.state, RunState::Unfinished);
    assert_eq!(crashed.headline(), "crashed or killed: unfinished after 1 iteration, nothing was verified");
    assert!(!crashed.verified && crashed.status.is_none() && crashed.exit_code.is_none());
    assert_eq!((crashed.usage.agent_s, crashed.usage.sensor_s, crashed.usage.wall_s), (60.0, 7.0, 95.0));
    assert_eq!(crashed.usage.tokens, 1200);
}

#[test]
fn an_iteration_that_a_crash_cut_off_starts_over_and_a_second_loop_does_not_hide_the_first() {
    let run = Run::new();
    let begin = |iteration| Event::IterationStarted {
        iteration,
        rung: 1,
        agent: "fake".into(),
        checkpoint: recorded_run::tree(1),
        tree: recorded_run::tree(1),
    };
    let end = |iteration| Event::IterationEnded { iteration, tree: recorded_run::tree(1), usage: Default::default() };
    for event in [begin(1), begin(1), end(1), begin(2), end(2), begin(1)] {
        run.story.tell("loop", event);
    }
    let rows: Vec<_> = run.summary().iterations.iter().map(|row| (row.iteration, row.ended)).collect();
    assert_eq!(rows, [(1, true), (2, true), (1, false)]);
}

#[test]
fn a_broken_sensor_is_not_zero_failing() {
    let mut run = Run::new();
    run.story.iterate(Step::keep(2));
    let mut broken = sense(1, 1.0);
    broken.readings[0].state = ReadingState::Broken;
    broken.readings[0].failing = None;
    broken.broken = true;
    run.story.tell("loop", Event::Sensed { iteration: 2, sense: Box::new(broken), carried: false });
    let row = run.summary().iterations.pop().unwrap();
    assert_eq!((row.iteration, row.failing, row.broken), (2, None, true));
}

#[test]
fn failure_modes_follow_their_rules() {
    let fenced = || Step { fenced: &["tests/a.rs"], ..Step::keep(2) };
    let auth = || turn(Outcome::Auth);
    let nothing: [&str; 0] = [];
    assert_eq!(modes(vec![Step::keep(0)], Reason::Completed), nothing);
    assert_eq!(modes(vec![fenced(), fenced(), Step::keep(0)], Reason::Completed), ["scope-fighting"]);
    assert_eq!(modes(vec![fenced(), Step::keep(0)], Reason::Completed), nothing);
    assert_eq!(modes(vec![Step::stall(), Step::stall(), Step::keep(0)], Reason::Completed), ["agent-silent"]);
    assert_eq!(modes(vec![Step::stall(), Step::keep(2), Step::keep(0)], Reason::Completed), nothing);
    let unchanged = Reason::Breaker(BreakerKind::Unchanged);
    assert_eq!(modes(vec![Step::stall()], unchanged), ["agent-silent"]);
    let instant = Reason::Breaker(BreakerKind::Instant);
    assert_eq!(modes(vec![Step::keep(2), Step::keep(2), turn(Outcome::Empty)], instant), ["agent-silent"]);
    assert_eq!(modes(vec![Step::keep(2), Step::keep(2), turn(Outcome::AgentError)], instant), ["agent-error"]);
    assert_eq!(modes(vec![auth()], Reason::AgentAuth), ["agent-error"]);
    assert_eq!(modes(vec![turn(Outcome::Network), Step::keep(2), Step::keep(0)], Reason::Completed), nothing);
    assert_eq!(modes(vec![turn(Outcome::Network), Step::keep(0)], Reason::Completed), ["agent-error"]);
    let timeout = turn(Outcome::TimedOut { which: TimeoutKind::Wall });
    assert_eq!(modes(vec![timeout], Reason::MaxWall), ["budget-exhausted"]);
    for cap in [Reason::MaxIterations, Reason::MaxTokens, Reason::MaxCost] {
        assert_eq!(modes(vec![Step::keep(2)], cap), ["budget-exhausted"]);
    }
    assert_eq!(modes(vec![Step::keep(2)], Reason::Breaker(BreakerKind::Thrash)), ["thrash"]);
    assert_eq!(modes(vec![Step::keep(2)], Reason::SensorBroken), ["sensor-broken"]);
    let limit = || turn(Outcome::UsageLimit { reset_at: None });
    assert_eq!(modes(vec![limit(), Step::keep(0)], Reason::Completed), ["limit-parked"]);
    assert_eq!(modes(vec![Step::keep(2)], Reason::LimitWaitTooLong), ["limit-parked"]);
}

#[test]
fn a_run_that_passed_after_a_climb_needed_it() {
    let mut run = Run::new();
    run.story.iterate(Step::keep(2)).climb(1, 2).iterate(Step { rung: 2, ..Step::keep(0) });
    run.story.end(Reason::Completed, true);
    assert_eq!(run.summary().failure_modes, [FailureMode::NeededEscalation]);
    let mut down = Run::new();
    down.story.iterate(Step::keep(2)).climb(2, 1).iterate(Step::keep(0));
    down.story.end(Reason::Completed, true);
    assert_eq!(down.summary().failure_modes, []);
}

#[test]
fn a_sensor_out_of_time_is_a_failure_mode_of_a_run_that_passed_too() {
    let mut run = Run::new();
    let mut late = sense(1, 600.0);
    late.readings[0].timed_out = true;
    run.story.tell("loop", Event::Sensed { iteration: 1, sense: Box::new(late), carried: false });
    run.story.iterate(Step::keep(0)).end(Reason::Completed, true);
    assert_eq!(run.summary().failure_modes, [FailureMode::SensorTimeout]);
}

#[test]
fn why_tells_decision_observation_completion_and_what_to_type() {
    let mut run = Run::new();
    run.story.iterate(Step::keep(2));
    run.story.iterate(Step { fenced: &["tests/a.rs"], ..Step::rollback(4, "broke test_2, test_3") });
    run.story.end(Reason::MaxIterations, false);
    let id = run_id(START, 1);
    assert_eq!(
        run.why(None).unwrap(),
        format!(
            "\
run {id}: max_iterations, not verified, after 2 iterations (exit code 2)

ended: max_iterations

iteration 2 was rolled back: broke test_2, test_3
  turn: fake ended as `done`
  change: 1 file and 1 line
  fence reverted: tests/a.rs
  failing: 2 before, 4 after; new: test_2, test_3

completion: not complete; the checks alone count (mode `override`)
  checks (all must pass):
    cargo test: failed (4 failing)

next: lunation run    # goes on from the tree as it is; raise the budget in the script to give it more at once
next: lunation log    # shows all that happened
next: git diff    # shows what was kept so far
"
        )
    );
}

#[test]
fn why_can_be_asked_of_one_iteration() {
    let mut run = Run::new();
    run.story.iterate(Step::rollback(4, "broke test_3")).iterate(Step::keep(2));
    run.story.end(Reason::MaxIterations, false);
    let first = run.why(Some(1)).unwrap();
    assert!(first.contains("iteration 1 was rolled back: broke test_3"), "{first}");
    assert!(first.contains("failing: 3 before, 4 after; new: test_3"), "{first}");
    assert!(!first.contains("next:"), "{first}");
    let second = run.why(Some(2)).unwrap();
    assert!(second.contains("failing: 3 before, 2 after"), "compared with the tree that it began with: {second}");
    assert_eq!(run.why(Some(3)), None);
}

#[test]
fn why_shows_the_breakers_diagnosis_and_an_open_iteration() {
    let mut run = Run::new();
    run.story.iterate(Step::stall());
    let diagnosis = "# Loop `loop` stopped\n\nIt changed nothing.\n".to_owned();
    run.story.tell("loop", Event::BreakerOpened { breaker: BreakerKind::Unchanged, diagnosis });
    run.story.end(Reason::Breaker(BreakerKind::Unchanged), false);
    let why = run.why(None).unwrap();
    assert!(why.contains("breaker:unchanged, not verified"), "{why}");
    assert!(why.contains("It changed nothing."), "{why}");
    assert!(why.contains("next: lunation prompt 1"), "{why}");

    let crashed = Run::new();
    let (checkpoint, tree) = (recorded_run::tree(1), recorded_run::tree(1));
    crashed
        .story
        .tell("loop", Event::IterationStarted { iteration: 1, rung: 1, agent: "fake".into(), checkpoint, tree });
    let why = crashed.why(None).unwrap();
    assert!(why.contains("iteration 1 is open: the agent had not ended"), "{why}");
}

#[test]
fn every_reason_has_a_next_step() {
    use Reason::*;
    for reason in [
        Completed,
        Stopped,
        MaxIterations,
        MaxWall,
        MaxTokens,
        MaxCost,
        Breaker(BreakerKind::Failures),
        Breaker(BreakerKind::Unchanged),
        Breaker(BreakerKind::Instant),
        Breaker(BreakerKind::Thrash),
        AgentAuth,
        AgentMissing,
        LimitWaitTooLong,
        SensorBroken,
        RouterBroken,
        RepoLost,
        DiskFull,
        Killed,
        Interrupted,
        ScriptError,
        HostError,
        Parked,
    ] {
        assert!(!Run::of(vec![], reason).next.is_empty(), "{reason:?}");
    }
}

#[test]
fn figures_over_runs_are_those_of_the_promise() {
    let first = Run::of(vec![Step::keep(0)], Reason::Completed);
    let second = Run::of(vec![Step::keep(2), Step::stall(), Step::keep(0)], Reason::Completed);
    let third = Run::of(vec![Step::stall(), Step::stall()], Reason::MaxIterations);
    let mut climbing = Run::new();
    climbing.story.iterate(Step::keep(2)).climb(1, 2);
    let unfinished = climbing.summary();
    let running = Summary::of(&climbing.recording(), true);
    let figures = Figures::over([&first, &second, &third, &unfinished, &running]);
    assert_eq!((figures.runs, figures.running, figures.unfinished, figures.passed), (5, 1, 1, 2));
    assert_eq!(figures.pass_rate, Some(0.5));
    assert_eq!((figures.first_iteration_passes, figures.first_iteration_share), (1, Some(0.5)));
    assert_eq!((figures.iterations, figures.unchanged_iterations), (8, 3));
    assert_eq!(figures.zero_change_share, Some(0.375));
    assert_eq!(figures.agent_s, 480.0);
    // Those without an end count the baseline by what the journal tells.
    assert_eq!(figures.sensor_s, 5.0 + 10.0 + 0.0 + 7.0 + 7.0);
    assert_eq!((figures.climbs, figures.runs_with_climbs), (2, 2));
    assert_eq!(figures.reasons["completed"], 2);
    assert_eq!(figures.failure_modes["agent-silent"], 1);
    assert_eq!(figures.failure_modes["budget-exhausted"], 1);
    assert_eq!(figures.decisions["keep"], 5);
}

#[test]
fn figures_over_nothing_have_no_shares() {
    let figures = Figures::over([]);
    assert_eq!(figures.pass_rate, None);
    assert_eq!(figures.first_iteration_share, None);
    assert_eq!(figures.zero_change_share, None);
    assert_eq!(figures.agent_time_share, None);
}

#[test]
fn a_summary_is_json_with_plain_names() {
    let mut run = Run::new();
    run.story.iterate(Step::keep(0)).end(Reason::Completed, true);
    let json = serde_json::to_value(run.summary()).unwrap();
    assert_eq!(json["state"], "ended");
    assert_eq!(json["reason"], "completed");
    assert_eq!(json["verified"], true);
    assert_eq!(json["iterations"][0]["decision"], "keep");
    assert_eq!(json["next"][0]["command"], "git diff");
}
