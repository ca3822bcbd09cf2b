use super::*;
use crate::policy::{Reading, ReadingState, Strategy, Usage};

fn governor(budget: Budget, rungs: u32) -> Governor {
    let limits =
        Limits { budget, breaker: Breaker::default(), patience: 3, step_down: 2, rungs, feedback_bytes: 1 << 10 };
    Governor::new(limits, Duration::ZERO)
}

fn turn(outcome: Outcome, seconds: f64) -> TurnSummary {
    TurnSummary {
        agent: "a".into(),
        outcome,
        text: "t".into(),
        summary: "t".into(),
        error: None,
        exit: Some(0),
        timed_out: false,
        usage: Usage::default(),
        duration_s: seconds,
        left_behind: vec![],
        output: None,
    }
}

fn changed(tree: &str) -> ChangeSummary {
    ChangeSummary { empty: false, files: vec!["f".into()], file_count: 1, tree: tree.into(), ..Default::default() }
}

fn unchanged() -> ChangeSummary {
    ChangeSummary { empty: true, ..Default::default() }
}

fn sense(failing: u64, print: &str) -> Sense {
    let state = if failing == 0 { ReadingState::Passed } else { ReadingState::Failed };
    let reading = Reading {
        id: "t".into(),
        state,
        failing: Some(failing),
        score: None,
        items: vec![],
        fingerprint: print.into(),
        summary: String::new(),
        feedback: format!("{failing} failing"),
        exit: Some(1),
        timed_out: false,
        duration_s: 0.1,
        output: None,
        notes: vec![],
        flaky: false,
        attribution: None,
    };
    Sense::combine("tree".into(), vec![reading], Strategy::All, 1000)
}

fn play(
    governor: &mut Governor,
    outcome: Outcome,
    seconds: f64,
    change: &ChangeSummary,
    decision: Decision,
) -> Aftermath {
    governor.open_iteration();
    let turn = turn(outcome, seconds);
    governor.add_turn(&turn);
    governor.close_iteration(Some(&turn), change, None, decision, None)
}

#[test]
fn the_cap_forbids_a_further_iteration_and_never_the_one_that_ended() {
    let mut g = governor(Budget { iterations: Some(1), ..Budget::default() }, 1);
    assert_eq!(g.cap(), None);
    let aftermath = play(&mut g, Outcome::Done, 60.0, &changed("1"), Decision::Keep);
    assert_eq!(aftermath.stop, None);
    assert_eq!(g.cap(), Some(Reason::MaxIterations));
}

#[test]
fn awake_time_is_what_the_wall_budget_counts() {
    let mut g = governor(Budget { wall: Some(Duration::from_secs(10)), ..Budget::default() }, 1);
    g.tick(Duration::from_secs(9));
    assert_eq!((g.cap(), g.wall_left(Duration::from_secs(9))), (None, Some(Duration::from_secs(1))));
    g.tick(Duration::from_secs(10));
    assert_eq!(g.cap(), Some(Reason::MaxWall));
}

#[test]
fn three_instant_failures_open_the_breaker_with_growing_pauses_between() {
    let mut g = governor(Budget::default(), 1);
    let first = play(&mut g, Outcome::Empty, 0.1, &unchanged(), Decision::Stall);
    let second = play(&mut g, Outcome::AgentError, 0.1, &unchanged(), Decision::Stall);
    let third = play(&mut g, Outcome::Empty, 0.1, &unchanged(), Decision::Stall);
    assert_eq!((first.stop, first.back_off), (None, Some(Duration::from_secs(1))));
    assert_eq!((second.stop, second.back_off), (None, Some(Duration::from_secs(2))));
    assert_eq!(third.stop, Some(Reason::Breaker(BreakerKind::Instant)));
    assert_eq!(g.iteration(), 3);
}

#[test]
fn a_silent_turn_that_changed_something_is_no_failure() {
    let mut g = governor(Budget::default(), 1);
    for n in 0..6 {
        let aftermath = play(&mut g, Outcome::Empty, 0.1, &changed(&n.to_string()), Decision::Keep);
        assert_eq!(aftermath, Aftermath::default());
    }
}

#[test]
fn three_unchanged_iterations_open_the_breaker_unless_the_ladder_can_be_climbed() {
    let mut g = governor(Budget::default(), 1);
    for _ in 0..2 {
        assert_eq!(play(&mut g, Outcome::Done, 60.0, &unchanged(), Decision::Stall).stop, None);
    }
    let third = play(&mut g, Outcome::Done, 60.0, &unchanged(), Decision::Stall);
    assert_eq!(third.stop, Some(Reason::Breaker(BreakerKind::Unchanged)));

    let mut g = governor(Budget::default(), 2);
    for _ in 0..2 {
        play(&mut g, Outcome::Done, 60.0, &unchanged(), Decision::Stall);
    }
    let third = play(&mut g, Outcome::Done, 60.0, &unchanged(), Decision::Stall);
    assert_eq!(third.stop, None);
    assert_eq!(third.rung.map(|r| (r.from, r.to)), Some((1, 2)));
    assert_eq!(g.escalations, 1);
}

#[test]
fn a_climb_that_pays_steps_down_again() {
    let mut g = governor(Budget::default(), 2);
    g.baseline(sense(9, "nine"));
    g.open_iteration();
    let climb = g.close_iteration(None, &changed("a"), Some(&sense(9, "x")), Decision::Escalate, None);
    assert_eq!(climb.rung.map(|r| r.to), Some(2));
    let mut moves = Vec::new();
    for failing in [7, 5] {
        g.open_iteration();
        let t = turn(Outcome::Done, 60.0);
        let s = sense(failing, &failing.to_string());
        moves.push(g.close_iteration(Some(&t), &changed("b"), Some(&s), Decision::Keep, None).rung.map(|r| r.to));
    }
    assert_eq!(moves, [None, Some(1)]);
}

#[test]
fn a_rolled_back_attempt_is_told_and_the_sense_of_the_old_tree_stays() {
    let mut g = governor(Budget::default(), 1);
    g.baseline(sense(2, "two"));
    g.open_iteration();
    let t = turn(Outcome::Done, 60.0);
    g.close_iteration(Some(&t), &changed("a"), Some(&sense(5, "five")), Decision::Rollback, Some("five now"));
    assert_eq!(
        g.tried(),
        "iteration 1 by a (touched f, 0 lines) was rolled back: broke t (5 failing, 2 before); five now"
    );
    assert_eq!(g.feedback(), "2 failing");
    assert_eq!(g.best_sense().map(|s| s.failing), Some(2));
}

#[test]
fn provider_trouble_backs_off_and_ends_after_its_limit() {
    let mut g = governor(Budget::default(), 1);
    let waits: Vec<_> = (0..7).map(|_| g.transient(&Outcome::Server, 0.0).map(|d| d.as_secs())).collect();
    assert_eq!(waits, [Ok(2), Ok(4), Ok(8), Ok(16), Ok(32), Ok(64), Ok(128)]);
    assert_eq!(g.transient(&Outcome::Server, 0.0), Err(Reason::Breaker(BreakerKind::Failures)));
    let told = Outcome::RateLimited { retry_after: Some(7.0) };
    assert_eq!(governor(Budget::default(), 1).transient(&told, 0.0), Ok(Duration::from_secs(7)));
}

#[test]
fn auth_ends_the_run_at_once() {
    let mut g = governor(Budget::default(), 1);
    assert_eq!(play(&mut g, Outcome::Auth, 1.0, &unchanged(), Decision::Stall).stop, Some(Reason::AgentAuth));
}

#[test]
fn readings_carry_over_when_nothing_changed_and_not_otherwise() {
    let mut g = governor(Budget::default(), 1);
    g.baseline(sense(0, "green"));
    assert!(g.observe(None, &unchanged(), None).ok);
    assert!(!g.observe(None, &changed("x"), None).ok);
}

#[test]
fn unknown_tokens_are_counted_as_unknown() {
    let mut g = governor(Budget { tokens: Some(10), ..Budget::default() }, 1);
    play(&mut g, Outcome::Done, 1.0, &changed("a"), Decision::Keep);
    assert_eq!((g.totals.tokens, g.totals.turns_without_tokens, g.totals.turns_without_cost), (0, 1, 1));
    assert_eq!(g.cap(), None);
}
