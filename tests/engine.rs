//! The engine in the scripted world: whole loops in milliseconds, with no process and no repository.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lunation::engine::{Interrupts, MemoryRecorder, PumpSpec, Request, Run, RunParts, RunResult, Urgency};
use lunation::journal::{Event, RunEnded};
use lunation::policy::{
    AgentSpec, Breaker, Budget, CommandLine, CommandSpec, Completion, Decision, DefaultPolicy, FenceSpec, LoopSpec,
    Observation, Outcome, Policy, PolicyError, Reason, SensorSpec, TimeoutKind, Verdict,
};
use lunation::world::{ScriptedTurn, ScriptedWorld, World};

struct Bench {
    world: Arc<ScriptedWorld>,
    recorder: Arc<MemoryRecorder>,
    run: Run,
}

async fn bench(world: ScriptedWorld) -> Bench {
    let world = Arc::new(world);
    let recorder = MemoryRecorder::new();
    let start = world.checkpoint(0).await.expect("a scripted checkpoint");
    let run = Run::new(RunParts {
        id: "20260101-000000-test".into(),
        world: world.clone(),
        recorder: recorder.clone(),
        interrupts: Arc::new(Interrupts::new()),
        root: PathBuf::from("/scripted"),
        start,
        input: serde_json::Value::Null,
        protected: vec!["loop.lua".into()],
    });
    Bench { world, recorder, run }
}

fn spec(sensors: &[&str]) -> LoopSpec {
    let mut spec = LoopSpec::new(AgentSpec::command(["agent"]), "Fix it.");
    spec.sensors = sensors.iter().map(|id| SensorSpec::shell(id)).collect();
    spec
}

fn edit(content: &str) -> ScriptedTurn {
    ScriptedTurn::edit("a", content)
}

impl Bench {
    async fn drive(&self, spec: LoopSpec) -> RunResult {
        self.run.drive(spec, &DefaultPolicy).await.expect("the loop ends by itself")
    }

    async fn finish(&self) -> RunEnded {
        self.run.finish(None).await.expect("the end is recorded")
    }

    fn decisions(&self) -> Vec<Decision> {
        let decided = |event| match event {
            Event::Decided { verdict, .. } => Some(verdict.decision),
            _ => None,
        };
        self.recorder.events().into_iter().filter_map(decided).collect()
    }

    fn count(&self, what: &str) -> usize {
        self.world.done().iter().filter(|done| done.starts_with(what)).count()
    }
}

#[tokio::test]
async fn checks_that_turn_green_complete_the_loop_and_verify_it() {
    let world = ScriptedWorld::new([edit("1"), edit("2")]).sensor("t", [Some(2), Some(1), Some(0)]);
    let bench = bench(world).await;
    let result = bench.drive(spec(&["t"])).await;
    let end = bench.finish().await;
    assert_eq!((result.ok, result.verified, result.iterations), (true, true, 2));
    assert_eq!((end.reason, end.exit_code), (Reason::Completed, 0));
    assert_eq!(bench.decisions(), [Decision::Keep, Decision::Keep]);
    assert_eq!(result.summary, "complete after 2 iterations: 1 of 1 checks hold");
}

#[tokio::test]
async fn each_iteration_goes_through_checkpoint_turn_guard_fence_and_sensors() {
    let bench = bench(ScriptedWorld::new([edit("1")]).sensor("t", [Some(1), Some(0)])).await;
    bench.drive(spec(&["t"])).await;
    let start = ["checkpoint"];
    let baseline = ["checkpoint", "read t", "guard", "settle"];
    let iteration = ["checkpoint", "turn", "guard", "fence", "read t", "guard"];
    let confirmed = ["read t", "guard", "settle"];
    assert_eq!(bench.world.done(), [&start[..], &baseline, &iteration, &confirmed].concat());
}

#[tokio::test]
async fn a_regression_is_rolled_back_and_told_to_the_next_prompt() {
    let world = ScriptedWorld::new([edit("worse"), edit("good")]).file("a", "old");
    let bench = bench(world.sensor("t", [Some(1), Some(3), Some(0)])).await;
    let result = bench.drive(spec(&["t"])).await;
    assert!(result.verified);
    assert_eq!(bench.decisions(), [Decision::Rollback, Decision::Keep]);
    let prompts = bench.world.prompts();
    assert!(prompts[0].starts_with("Fix it.\n"), "{}", prompts[0]);
    assert!(prompts[0].contains("1 failing") && !prompts[0].contains("rolled back"), "{}", prompts[0]);
    assert!(prompts[1].contains("iteration 1 by agent (touched a, 1 lines) was rolled back: "), "{}", prompts[1]);
    assert!(prompts[1].contains("1 failing"), "feedback is that of the tree as it is: {}", prompts[1]);
}

#[tokio::test]
async fn the_cap_with_nothing_verified_is_exit_2() {
    let bench = bench(ScriptedWorld::new((0..5).map(|n| edit(&n.to_string()))).sensor("t", [Some(1)])).await;
    let mut spec = spec(&["t"]);
    spec.budget.iterations = Some(3);
    let result = bench.drive(spec).await;
    let end = bench.finish().await;
    assert_eq!((result.iterations, end.exit_code, end.verified), (3, 2, false));
    assert_eq!(result.summary, "max_iterations after 3 iterations: 1 failing; nothing was verified");
}

#[tokio::test]
async fn a_sentinel_in_the_last_allowed_iteration_still_succeeds() {
    let bench = bench(ScriptedWorld::new([ScriptedTurn::say("All good.\nDONE")]).sensor("t", [Some(0)])).await;
    let mut spec = spec(&["t"]);
    spec.completion = Completion::default_for(Some("DONE".into()), true);
    spec.budget.iterations = Some(1);
    let result = bench.drive(spec).await;
    assert_eq!((result.ok, result.verified, result.iterations), (true, true, 1));
}

#[tokio::test]
async fn a_sentinel_with_a_red_sensor_is_never_done() {
    let turns = (0..2).map(|n| ScriptedTurn { text: "DONE".into(), ..edit(&n.to_string()) });
    let bench = bench(ScriptedWorld::new(turns).sensor("t", [Some(1)])).await;
    let mut spec = spec(&["t"]);
    spec.completion = Completion::default_for(Some("DONE".into()), true);
    spec.budget.iterations = Some(2);
    let result = bench.drive(spec).await;
    assert_eq!((result.ok, result.reason.as_str()), (false, "max_iterations"));
}

#[tokio::test]
async fn a_sentinel_without_sensors_completes_unverified() {
    let bench = bench(ScriptedWorld::new([edit("1"), ScriptedTurn::say("DONE")])).await;
    let mut spec = spec(&[]);
    spec.completion = Completion::default_for(Some("DONE".into()), false);
    let result = bench.drive(spec).await;
    let end = bench.finish().await;
    assert_eq!((result.ok, result.verified, end.exit_code), (true, false, 1));
}

#[tokio::test]
async fn an_iteration_that_changes_nothing_skips_the_sensors_and_stalls() {
    let world = ScriptedWorld::new([ScriptedTurn::say("thinking"), edit("1")]).sensor("t", [Some(1), Some(0)]);
    let bench = bench(world).await;
    let result = bench.drive(spec(&["t"])).await;
    assert_eq!(bench.decisions(), [Decision::Stall, Decision::Keep]);
    assert!(result.verified);
    assert_eq!(bench.count("read t"), 3, "the baseline, and twice after the edit: green has to come again");
}

#[tokio::test]
async fn a_broken_sensor_is_retried_and_then_ends_the_run() {
    let bench = bench(ScriptedWorld::new([edit("1")]).sensor("t", [Some(1), None])).await;
    let result = bench.drive(spec(&["t"])).await;
    assert_eq!(result.reason, "sensor_broken");
    assert_eq!(bench.decisions(), [Decision::Stop]);
    assert_eq!(bench.count("read t"), 4, "the baseline, one reading, two retries");
    assert_eq!(bench.world.tree().get("a").map(String::as_str), Some("1"), "not rolled back");
}

#[tokio::test]
async fn a_broken_sensor_before_the_first_turn_costs_no_agent() {
    let bench = bench(ScriptedWorld::new([]).sensor("t", [None])).await;
    let result = bench.drive(spec(&["t"])).await;
    assert_eq!((result.reason.as_str(), result.iterations), ("sensor_broken", 0));
    assert!(bench.world.prompts().is_empty());
}

#[tokio::test]
async fn what_is_out_of_scope_is_reverted_before_sensors_run_and_told() {
    let turn = ScriptedTurn {
        edits: vec![
            ("tests/t".into(), None),
            ("src/a".into(), Some("1".into())),
            ("loop.lua".into(), Some("x".into())),
        ],
        sabotage: vec!["commit 1234".into()],
        ..ScriptedTurn::default()
    };
    let world = ScriptedWorld::new([turn, ScriptedTurn::edit("src/a", "2")]).file("tests/t", "test");
    let bench = bench(world.sensor("t", [Some(1), Some(1), Some(0)])).await;
    let mut spec = spec(&["t"]);
    spec.fence = FenceSpec { allow: vec!["src/**".into(), "loop.lua".into()], ..FenceSpec::default() };
    bench.drive(spec).await;
    assert_eq!(bench.world.tree().get("tests/t").map(String::as_str), Some("test"));
    assert_eq!(bench.world.tree().get("loop.lua"), None, "the script is always protected");
    let prompt = &bench.world.prompts()[1];
    assert!(prompt.contains("outside of your write scope and were reverted: loop.lua, tests/t."), "{prompt}");
    assert!(prompt.contains("this was undone: commit 1234."), "{prompt}");
}

#[tokio::test]
async fn a_timed_out_turn_is_scored_on_what_it_left() {
    let cut = ScriptedTurn { outcome: Outcome::TimedOut { which: TimeoutKind::Wall }, ..edit("two of three") };
    let bench = bench(ScriptedWorld::new([cut, edit("all")]).sensor("t", [Some(3), Some(1), Some(0)])).await;
    let result = bench.drive(spec(&["t"])).await;
    assert!(result.verified);
    assert_eq!(bench.decisions(), [Decision::Keep, Decision::Keep]);
    assert!(bench.world.prompts()[1].contains("The last turn was cut short after 60 s"));
}

fn trouble(outcome: Outcome) -> ScriptedTurn {
    ScriptedTurn { outcome, ..ScriptedTurn::say("trouble") }
}

#[tokio::test]
async fn provider_trouble_is_waited_out_and_is_no_iteration_of_the_task() {
    let limited = trouble(Outcome::RateLimited { retry_after: Some(20.0) });
    let world = ScriptedWorld::new([limited.clone(), limited, edit("1")]).sensor("t", [Some(1), Some(0)]);
    let bench = bench(world).await;
    let result = bench.drive(spec(&["t"])).await;
    assert_eq!((result.verified, result.iterations), (true, 1));
    assert_eq!(bench.count("wait 2"), 2);
}

#[tokio::test]
async fn provider_trouble_without_end_ends_the_run() {
    let bench = bench(ScriptedWorld::new((0..50).map(|_| trouble(Outcome::Server)))).await;
    let mut spec = spec(&[]);
    spec.budget = Budget { iterations: Some(10), wall: None, ..Budget::default() };
    let result = bench.drive(spec).await;
    assert_eq!(result.reason, "breaker:failures");
    assert_eq!(bench.count("turn"), 8, "every launch counts against the launch cap");
}

#[tokio::test]
async fn a_usage_limit_that_outlasts_the_budget_ends_the_run() {
    let bench = bench(ScriptedWorld::new([trouble(Outcome::UsageLimit { reset_at: Some(36_000) })])).await;
    let result = bench.drive(spec(&[])).await;
    assert_eq!(result.reason, "limit_wait_too_long");
}

#[tokio::test]
async fn a_usage_limit_within_the_budget_is_waited_out() {
    let limited = trouble(Outcome::UsageLimit { reset_at: Some(1800) });
    let bench = bench(ScriptedWorld::new([limited, edit("1")]).sensor("t", [Some(1), Some(0)])).await;
    let result = bench.drive(spec(&["t"])).await;
    assert_eq!((result.verified, result.iterations), (true, 1));
}

#[tokio::test]
async fn the_wall_budget_cuts_the_turn_and_ends_the_run() {
    let long = ScriptedTurn { takes: Duration::from_secs(90_000), ..edit("1") };
    let bench = bench(ScriptedWorld::new([long]).sensor("t", [Some(1)])).await;
    let result = bench.drive(spec(&["t"])).await;
    assert_eq!((result.reason.as_str(), result.usage.wall_s), ("max_wall", 7200.0));
}

#[tokio::test]
async fn a_request_before_the_first_iteration_launches_nothing() {
    let bench = bench(ScriptedWorld::new([edit("1")])).await;
    bench.run.interrupts().ask(Request {
        urgency: Urgency::AfterIteration,
        reason: Reason::Interrupted,
        by: "signal".into(),
        signal: Some(2),
    });
    let result = bench.drive(spec(&[])).await;
    let end = bench.finish().await;
    assert_eq!((result.iterations, end.exit_code), (0, 130));
}

#[tokio::test]
async fn the_kill_switch_in_the_tree_ends_the_run_after_the_iteration() {
    let mut turn = edit("1");
    turn.edits.push((".lunation/STOP".into(), Some(String::new())));
    let bench = bench(ScriptedWorld::new([turn]).sensor("t", [Some(1)])).await;
    let result = bench.drive(spec(&["t"])).await;
    assert_eq!((result.reason.as_str(), result.iterations), ("killed", 1));
}

struct Failing;

#[async_trait]
impl Policy for Failing {
    async fn decide(&self, _: &Observation) -> Result<Verdict, PolicyError> {
        Err(PolicyError::Failed { message: "loop.lua:3: no".into(), place: Some("loop.lua:3".into()) })
    }
}

#[tokio::test]
async fn a_policy_that_fails_leaves_no_iteration_half_done() {
    let bench = bench(ScriptedWorld::new([edit("1")]).file("a", "0").sensor("t", [Some(1)])).await;
    let error = bench.run.drive(spec(&["t"]), &Failing).await.expect_err("the policy fails");
    let end = bench.run.finish(Some((error.reason(), error.to_string()))).await.expect("recorded");
    assert_eq!(bench.world.tree().get("a").map(String::as_str), Some("0"));
    assert_eq!((end.reason, end.error.as_deref(), end.exit_code), (Reason::ScriptError, Some("loop.lua:3: no"), 4));
    assert_eq!(bench.decisions(), [Decision::Rollback]);
}

#[tokio::test]
async fn a_loop_by_hand_has_the_same_guarantees() {
    let world = ScriptedWorld::new([ScriptedTurn::edit("out", "x"), ScriptedTurn::edit("src/a", "1")]);
    let bench = bench(world.sensor("t", [Some(1), Some(0)])).await;
    let sensors = [SensorSpec::shell("t")];
    let agent = AgentSpec::command(["agent"]);
    let best = bench.run.sense(&sensors).await.expect("baseline");
    assert_eq!(best.failing, 1);
    let fence = FenceSpec { allow: vec!["src/**".into()], ..FenceSpec::default() };
    let pump = bench.run.iterations(PumpSpec { fence, ..PumpSpec::default() }).await.expect("a pump");
    assert_eq!(pump.next().await.expect("open"), Some(1));
    pump.turn(&agent, "Do it.", vec![]).await.expect("a turn");
    assert!(pump.change().await.expect("a change").empty, "the fence reverted it");
    pump.stall(None).await.expect("a stall");
    assert_eq!(pump.next().await.expect("open"), Some(2));
    pump.turn(&agent, "Do it.", vec![]).await.expect("a turn");
    assert!(pump.sense(&sensors).await.expect("a sense").ok);
    let result = pump.done(Some("all green".into())).await.expect("an end");
    assert_eq!((result.ok, result.verified, result.summary.as_str()), (true, true, "all green"));
    assert_eq!(bench.finish().await.exit_code, 0);
}

#[tokio::test]
async fn an_undecided_iteration_of_a_loop_by_hand_is_rolled_back_and_named() {
    let bench = bench(ScriptedWorld::new([edit("1")])).await;
    let pump = bench.run.iterations(PumpSpec::default()).await.expect("a pump");
    pump.next().await.expect("open");
    pump.turn(&AgentSpec::command(["agent"]), "Do it.", vec![]).await.expect("a turn");
    let error = pump.next().await.expect_err("undecided");
    assert!(error.to_string().starts_with("iteration 1 was left undecided and has been rolled back"), "{error}");
    assert!(bench.world.tree().is_empty());
}

#[tokio::test]
async fn stopping_by_hand_after_a_cap_keeps_the_cap_as_the_reason() {
    let bench = bench(ScriptedWorld::new([edit("1")])).await;
    let spec = PumpSpec { budget: Budget { iterations: Some(1), ..Budget::default() }, ..PumpSpec::default() };
    let pump = bench.run.iterations(spec).await.expect("a pump");
    pump.next().await.expect("open");
    pump.turn(&AgentSpec::command(["agent"]), "Do it.", vec![]).await.expect("a turn");
    pump.keep(None).await.expect("a keep");
    assert_eq!(pump.next().await.expect("closed"), None);
    let result = bench.run.stop("out of budget").await.expect("an end");
    assert_eq!((result.reason.as_str(), result.summary.as_str()), ("max_iterations", "out of budget"));
    assert_eq!(bench.finish().await.exit_code, 2);
}

#[tokio::test]
async fn a_bad_spec_launches_nothing_and_names_every_field() {
    let bench = bench(ScriptedWorld::new([])).await;
    let mut spec = spec(&["t", "t", " "]);
    spec.budget.iterations = Some(0);
    let error = bench.run.drive(spec, &DefaultPolicy).await.expect_err("a bad spec");
    assert_eq!(
        error.to_string(),
        "budget.iterations: must be at least 1; leave it out for the default of 10\n\
         sensors[2]: is the second sensor named `t`: give it an id of its own\n\
         sensors[3]: has a blank name\n\
         sensors[3]: has a blank command: write what to run, for example \"cargo test\""
    );
    assert_eq!(bench.world.done(), ["checkpoint"]);
}

#[tokio::test]
async fn a_regression_that_does_not_come_again_is_flaky_and_rolls_nothing_back() {
    let world = ScriptedWorld::new([edit("1"), edit("2")]).sensor("t", [Some(1), Some(3), Some(0)]);
    let bench = bench(world.flaky("t", [Some(1), Some(0)])).await;
    let result = bench.drive(spec(&["t"])).await;
    assert!(result.verified);
    assert_eq!(bench.decisions(), [Decision::Keep, Decision::Keep]);
    let sensed: Vec<_> = bench
        .recorder
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::Sensed { sense, .. } => Some(sense.readings[0].clone()),
            _ => None,
        })
        .collect();
    assert_eq!((sensed[0].flaky, sensed[0].failing), (true, Some(1)), "the last reliable number stands");
    assert_eq!(sensed[0].summary, "flaky: 3 failing, then 1 failing on the same tree");
    assert!(!sensed[1].flaky);
}

#[tokio::test]
async fn a_green_that_does_not_come_again_completes_nothing() {
    let world = ScriptedWorld::new([edit("1"), edit("2")]).sensor("t", [Some(1), Some(0), Some(1)]);
    let bench = bench(world.flaky("t", [Some(1)])).await;
    let mut spec = spec(&["t"]);
    spec.budget.iterations = Some(2);
    let result = bench.drive(spec).await;
    assert_eq!((result.ok, result.reason.as_str()), (false, "max_iterations"));
}

#[tokio::test]
async fn a_sensor_that_asks_for_one_reading_is_read_once() {
    let world = ScriptedWorld::new([edit("1")]).sensor("t", [Some(1), Some(0)]);
    let bench = bench(world.flaky("t", [Some(9)])).await;
    let mut spec = spec(&["t"]);
    spec.sensors[0].confirm = 1;
    assert!(bench.drive(spec).await.verified);
    assert_eq!(bench.count("read t"), 2);
}

#[tokio::test]
async fn a_tree_that_was_sensed_before_is_not_sensed_again() {
    let turns = [edit("1"), edit("2"), edit("1"), edit("3")];
    let bench = bench(ScriptedWorld::new(turns).sensor("t", [Some(2), Some(1), Some(1), Some(0)])).await;
    let result = bench.drive(spec(&["t"])).await;
    assert!(result.verified);
    assert_eq!(bench.count("read t"), 5, "the baseline, 1, 2, 3, and 3 once more to confirm it");
}

#[tokio::test]
async fn states_that_come_again_and_again_open_the_breaker() {
    let turns = (0..12).map(|n| edit(["a", "b"][n % 2]));
    let bench = bench(ScriptedWorld::new(turns).sensor("t", [Some(1)])).await;
    let mut spec = spec(&["t"]);
    spec.budget.iterations = Some(12);
    let result = bench.drive(spec).await;
    assert_eq!((result.reason.as_str(), result.iterations), ("breaker:thrash", 5));
}

#[tokio::test]
async fn readings_are_told_apart_by_whose_failure_they_are() {
    use lunation::policy::Attribution;
    let world = ScriptedWorld::new([edit("1")])
        .sensor("clean", [Some(0)])
        .sensor("regressed", [Some(0), Some(1)])
        .sensor("old", [Some(2)])
        .sensor("fixed", [Some(1), Some(0)]);
    let bench = bench(world).await;
    let mut spec = spec(&["clean", "regressed", "old", "fixed"]);
    spec.budget.iterations = Some(1);
    bench.drive(spec).await;
    let readings = bench.recorder.events().into_iter().find_map(|event| match event {
        Event::Sensed { sense, .. } => Some(sense.readings),
        _ => None,
    });
    let told: Vec<_> = readings.expect("sensed").into_iter().map(|reading| reading.attribution).collect();
    assert_eq!(
        told,
        [
            Some(Attribution::Clean),
            Some(Attribution::Regressed),
            Some(Attribution::BaselineBroken),
            Some(Attribution::FixedBaseline)
        ]
    );
}

async fn green_by_hand(bench: &Bench) -> lunation::engine::Pump {
    let pump = bench.run.iterations(PumpSpec::default()).await.expect("a pump");
    pump.next().await.expect("open");
    pump.turn(&AgentSpec::command(["agent"]), "Do it.", vec![]).await.expect("a turn");
    assert!(pump.sense(&[SensorSpec::shell("t")]).await.expect("a sense").ok);
    pump
}

#[tokio::test]
async fn a_command_that_changes_the_tree_after_the_checks_takes_their_word_back() {
    let world = ScriptedWorld::new([edit("1")]).sensor("t", [Some(0)]).command_edits("rm a", "a", "broken");
    let bench = bench(world).await;
    let pump = green_by_hand(&bench).await;
    bench.run.command(&CommandSpec::new(CommandLine::Shell("rm a".into()))).await.expect("a command");
    let result = pump.done(None).await.expect("an end");
    assert!(!result.verified, "the checks ran on another tree");
    let end = bench.finish().await;
    assert_eq!((end.verified, end.exit_code), (false, 1));
}

#[tokio::test]
async fn what_changes_after_the_end_of_the_loop_is_verified_by_nothing() {
    let world = ScriptedWorld::new([edit("1")]).sensor("t", [Some(0)]).command_edits("rm a", "a", "broken");
    let bench = bench(world).await;
    let pump = green_by_hand(&bench).await;
    assert!(pump.done(None).await.expect("an end").verified);
    bench.run.command(&CommandSpec::new(CommandLine::Shell("rm a".into()))).await.expect("a command");
    let end = bench.finish().await;
    assert_eq!((end.reason, end.verified, end.exit_code), (Reason::Completed, false, 1));
}

#[tokio::test]
async fn what_a_command_of_the_script_changes_before_the_checks_is_part_of_the_result() {
    let world = ScriptedWorld::new([edit("1")]).sensor("t", [Some(0)]).command_edits("fmt", "a", "tidy");
    let bench = bench(world).await;
    let pump = bench.run.iterations(PumpSpec::default()).await.expect("a pump");
    pump.next().await.expect("open");
    pump.turn(&AgentSpec::command(["agent"]), "Do it.", vec![]).await.expect("a turn");
    bench.run.command(&CommandSpec::new(CommandLine::Shell("fmt".into()))).await.expect("a command");
    assert!(pump.sense(&[SensorSpec::shell("t")]).await.expect("a sense").ok);
    assert!(pump.done(None).await.expect("an end").verified);
    assert_eq!(bench.world.tree()["a"], "tidy");
    assert_eq!(bench.finish().await.exit_code, 0);
}

#[tokio::test]
async fn a_command_of_the_script_does_not_get_around_the_fence() {
    let world = ScriptedWorld::new([ScriptedTurn::edit("src/a", "1")]).command_edits("cheat", "tests/t", "true");
    let bench = bench(world).await;
    let fence = FenceSpec { allow: vec!["src/**".into()], ..FenceSpec::default() };
    let pump = bench.run.iterations(PumpSpec { fence, ..PumpSpec::default() }).await.expect("a pump");
    pump.next().await.expect("open");
    pump.turn(&AgentSpec::command(["agent"]), "Do it.", vec![]).await.expect("a turn");
    bench.run.command(&CommandSpec::new(CommandLine::Shell("cheat".into()))).await.expect("a command");
    assert_eq!(bench.world.tree().keys().collect::<Vec<_>>(), ["src/a"]);
    pump.keep(None).await.expect("a keep");
}

#[tokio::test]
async fn a_loop_by_hand_never_goes_on_with_the_budget_of_another() {
    let bench = bench(ScriptedWorld::new([edit("1"), edit("2"), edit("3")])).await;
    let agent = AgentSpec::command(["agent"]);
    let outer = bench.run.iterations(PumpSpec::default()).await.expect("a pump");
    outer.next().await.expect("open");
    outer.turn(&agent, "Do it.", vec![]).await.expect("a turn");
    outer.keep(None).await.expect("a keep");
    let inner = bench.run.iterations(PumpSpec::default()).await.expect("the loop before it has no open iteration");
    inner.next().await.expect("open");
    assert_eq!(outer.open_iteration().await, None, "the open one is the inner loop's");
    for error in [
        outer.keep(None).await.expect_err("not its iteration"),
        outer.turn(&agent, "Do it.", vec![]).await.expect_err("not its iteration"),
        outer.next().await.expect_err("over"),
    ] {
        assert!(error.to_string().contains("another run:iterations has begun since"), "{error}");
    }
    assert_eq!(inner.open_iteration().await, Some(1), "and nothing happened to that one");
    inner.stall(None).await.expect("a stall");
}

#[tokio::test]
async fn a_breaker_of_a_loop_by_hand_writes_its_diagnosis_with_the_last_turn() {
    let nothing = || ScriptedTurn::say("I am done thinking.");
    let bench = bench(ScriptedWorld::new([nothing(), nothing()])).await;
    let breaker = Breaker { unchanged: 2, diagnosis: Some("DIAGNOSIS.md".into()), ..Breaker::default() };
    let pump = bench.run.iterations(PumpSpec { breaker, ..PumpSpec::default() }).await.expect("a pump");
    while pump.next().await.expect("no error").is_some() {
        pump.turn(&AgentSpec::command(["agent"]), "Do it.", vec![]).await.expect("a turn");
        pump.stall(None).await.expect("a stall");
    }
    let opened = bench.recorder.events().into_iter().find_map(|event| match event {
        Event::BreakerOpened { diagnosis, .. } => Some(diagnosis),
        _ => None,
    });
    let diagnosis = opened.expect("the breaker is in the record");
    assert!(diagnosis.contains("Last turn: agent ended as `done`"), "{diagnosis}");
    assert_eq!(bench.count("write DIAGNOSIS.md"), 1, "{:?}", bench.world.done());
}

#[tokio::test]
async fn a_request_to_end_now_ends_the_context_commands_of_a_loop() {
    let bench = bench(ScriptedWorld::new([edit("1")])).await;
    bench.run.interrupts().ask(Request {
        urgency: Urgency::Now,
        reason: Reason::Interrupted,
        by: "test".into(),
        signal: None,
    });
    let mut spec = spec(&["t"]);
    spec.context = vec![CommandSpec::new(CommandLine::Shell("sleep 600".into()))];
    let error = bench.run.drive(spec, &DefaultPolicy).await.expect_err("cancelled");
    assert!(error.is_cancelled(), "{error}");
}
