//! Runs for tests, recorded through the library: a clock that the test moves, and a builder that tells a story.

#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use lunation::journal::{Clock, Event, Journal, JournalOptions, RunEnded, RunId, RunStarted, ScriptRecord, Secrets};
use lunation::policy::{
    AgentSpec, Budget, ChangeSummary, Decision, LoopSpec, Observation, Outcome, Reading, ReadingState, Reason, Sense,
    SensorSpec, Strategy, TurnSummary, Usage, UsageTotals, Verdict,
};

/// A clock that stands still until it is moved.
pub struct TestClock {
    start: Timestamp,
    awake: Mutex<Duration>,
}

impl TestClock {
    pub fn at(start: &str) -> Arc<TestClock> {
        Arc::new(TestClock { start: start.parse().unwrap(), awake: Mutex::new(Duration::from_secs(1000)) })
    }

    pub fn advance(&self, seconds: f64) {
        *self.awake.lock().unwrap() += Duration::from_secs_f64(seconds);
    }

    fn awake_since_start(&self) -> Duration {
        *self.awake.lock().unwrap() - Duration::from_secs(1000)
    }
}

impl Clock for TestClock {
    fn wall(&self) -> Timestamp {
        self.start + self.awake_since_start()
    }

    fn awake(&self) -> Duration {
        *self.awake.lock().unwrap()
    }
}

/// A name with a given start and a tail that tells runs apart.
pub fn run_id(start: &str, tail: u8) -> RunId {
    RunId::from_parts(start.parse().unwrap(), [tail; 5])
}

pub fn note(text: &str) -> Event {
    Event::Noted { level: "info".into(), text: text.into() }
}

/// One run that is told step by step.
pub struct Story {
    pub journal: Journal,
    pub clock: Arc<TestClock>,
    usage: UsageTotals,
    iteration: u32,
    failing: u64,
    escalations: u32,
}

/// How one iteration went.
pub struct Step<'s> {
    pub decision: Decision,
    pub failing: u64,
    pub files: &'s [&'s str],
    pub fenced: &'s [&'s str],
    pub guarded: &'s [&'s str],
    pub note: Option<&'s str>,
    pub outcome: Outcome,
    pub complete: Option<bool>,
    pub rung: u32,
    pub agent_s: f64,
    pub sensor_s: f64,
}

impl Step<'_> {
    pub fn keep(failing: u64) -> Step<'static> {
        Step {
            decision: Decision::Keep,
            failing,
            files: &["src/lib.rs"],
            fenced: &[],
            guarded: &[],
            note: None,
            outcome: Outcome::Done,
            complete: (failing == 0).then_some(true),
            rung: 1,
            agent_s: 60.0,
            sensor_s: 5.0,
        }
    }

    pub fn rollback(failing: u64, note: &str) -> Step<'_> {
        Step { decision: Decision::Rollback, note: Some(note), complete: None, ..Step::keep(failing) }
    }

    pub fn stall() -> Step<'static> {
        Step { decision: Decision::Stall, files: &[], complete: None, note: Some("nothing changed"), ..Step::keep(3) }
    }
}

pub fn tree(number: u64) -> String {
    format!("{number:040x}")
}

pub fn sense(failing: u64, seconds: f64) -> Sense {
    let state = if failing == 0 { ReadingState::Passed } else { ReadingState::Failed };
    let reading = Reading {
        id: "cargo test".into(),
        state,
        failing: Some(failing),
        score: None,
        items: (0..failing).map(|n| format!("test_{n}")).collect(),
        fingerprint: format!("f{failing}"),
        summary: format!("{failing} failing"),
        feedback: format!("{failing} tests fail\n"),
        exit: Some(i32::from(failing != 0)),
        timed_out: false,
        duration_s: seconds,
        output: None,
        notes: vec![],
        flaky: false,
        attribution: None,
    };
    Sense::combine(tree(failing), vec![reading], Strategy::All, 4096)
}

pub fn agent() -> AgentSpec {
    AgentSpec::command(["fake"])
}

impl Story {
    pub fn begin(run_dir: &Path, clock: Arc<TestClock>, run: RunId) -> Story {
        Story::begin_with(JournalOptions::new(run_dir, run, clock.clone()), clock)
    }

    pub fn begin_masked(run_dir: &Path, clock: Arc<TestClock>, run: RunId, secrets: Secrets) -> Story {
        let options = JournalOptions { secrets, ..JournalOptions::new(run_dir, run, clock.clone()) };
        Story::begin_with(options, clock)
    }

    pub fn begin_with(options: JournalOptions, clock: Arc<TestClock>) -> Story {
        let journal = Journal::create(options).unwrap();
        let story = Story { journal, clock, usage: UsageTotals::default(), iteration: 0, failing: 3, escalations: 0 };
        story.tell(
            "",
            Event::RunStarted(Box::new(RunStarted {
                version: "0.1.0".into(),
                script: Some(ScriptRecord {
                    path: "loop.lua".into(),
                    sha256: BTreeMap::from([("loop.lua".to_owned(), "ab".repeat(32))]),
                }),
                root: "/project".into(),
                branch: Some("main".into()),
                head: Some(tree(77)),
                checkpoint: tree(1),
                dirty: false,
                tier: "subreaper".into(),
                tier_notes: vec!["no user namespaces here".into()],
                agents: BTreeMap::from([("fake".to_owned(), None)]),
                input: serde_json::json!({}),
                seed: 7,
            })),
        );
        let mut spec = LoopSpec::new(agent(), "Fix the tests.");
        spec.sensors.push(SensorSpec::shell("cargo test"));
        spec.budget = Budget { iterations: Some(5), ..Budget::default() };
        story.tell("loop", Event::LoopStarted { spec: Box::new(spec), template_sha256: None, protected: vec![] });
        story.tell("loop", Event::Baseline { sense: Box::new(sense(3, 2.0)) });
        story
    }

    pub fn tell(&self, path: &str, event: Event) {
        self.journal.append(path, &event).unwrap();
    }

    pub fn iterate(&mut self, step: Step) -> &mut Story {
        self.iteration += 1;
        let iteration = self.iteration;
        let agent = if step.rung == 1 { "fake".to_owned() } else { format!("fake-{}", step.rung) };
        let started = Event::IterationStarted {
            iteration,
            rung: step.rung,
            agent: agent.clone(),
            checkpoint: tree(1000 + u64::from(iteration)),
            tree: tree(self.failing),
        };
        self.tell("loop", started);
        let text = format!("Fix the tests. (iteration {iteration})\n");
        let prompt = self.journal.blob(text.as_bytes()).unwrap();
        self.tell("loop", Event::Prompted { iteration, prompt, bytes: text.len() as u64, slots: vec![] });
        self.clock.advance(step.agent_s);
        let turn = TurnSummary {
            agent,
            outcome: step.outcome.clone(),
            text: "I did it.".into(),
            summary: "I did it.".into(),
            error: None,
            exit: Some(0),
            timed_out: false,
            usage: Usage { input: Some(1000), output: Some(200), ..Usage::default() },
            duration_s: step.agent_s,
            left_behind: vec![],
            output: None,
        };
        self.usage.add_turn(&turn.usage, step.agent_s);
        let scrubbed = vec!["CLAUDECODE".to_owned()];
        self.tell("loop", Event::TurnEnded { iteration, turn: Box::new(turn.clone()), scrubbed });
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        if !step.guarded.is_empty() {
            self.tell("loop", Event::Guarded { iteration, undone: owned(step.guarded) });
        }
        if !step.fenced.is_empty() {
            self.tell("loop", Event::Fenced { iteration, paths: owned(step.fenced) });
        }
        let diff = format!("diff --git a/src/lib.rs b/src/lib.rs\n+iteration {iteration}\n");
        let empty = step.files.is_empty();
        let change = ChangeSummary {
            empty,
            files: owned(step.files),
            file_count: step.files.len() as u64,
            lines: step.files.len() as u64,
            fenced: owned(step.fenced),
            guarded: owned(step.guarded),
            left_alone: vec![],
            tree: tree(step.failing),
            diff: (!empty).then(|| self.journal.blob(diff.as_bytes()).unwrap()),
        };
        self.tell("loop", Event::Changed { iteration, change: Box::new(change.clone()) });
        let sense = sense(step.failing, step.sensor_s);
        if !empty {
            self.clock.advance(step.sensor_s);
            self.usage.sensor_s += step.sensor_s;
            self.tell("loop", Event::Sensed { iteration, sense: Box::new(sense.clone()), carried: false });
        }
        self.usage.iterations += 1;
        self.usage.wall_s = self.usage.agent_s + self.usage.sensor_s;
        let observation = Observation {
            iteration,
            ok: sense.ok,
            rung: step.rung,
            rungs: 2,
            stalls: 0.0,
            turn: Some(turn),
            change,
            sensor: BTreeMap::from([("cargo test".to_owned(), sense.readings[0].clone())]),
            sense: Some(sense),
            best: None,
            feedback: String::new(),
            tried: String::new(),
            usage: self.usage,
            left: Budget { iterations: Some(5), ..Budget::default() }.left(&self.usage),
            history: vec![],
            seen: vec![],
        };
        let decided = Event::Decided {
            iteration,
            verdict: Verdict { decision: step.decision, note: step.note.map(str::to_owned) },
            complete: step.complete,
            observation: Box::new(observation),
        };
        self.journal.append_durable("loop", &decided).unwrap();
        if step.decision == Decision::Rollback {
            let checkpoint = tree(1000 + u64::from(iteration));
            self.tell("loop", Event::RolledBack { iteration, checkpoint, restored: 1, conflicts: vec![] });
        } else {
            self.failing = step.failing;
        }
        self.tell("loop", Event::IterationEnded { iteration, tree: tree(self.failing), usage: self.usage });
        self
    }

    pub fn climb(&mut self, from: u32, to: u32) -> &mut Story {
        self.escalations += u32::from(to > from);
        self.tell("loop", Event::RungChanged { from, to, why: "3 stalls".into() });
        self
    }

    pub fn end(&mut self, reason: Reason, verified: bool) {
        let ended = RunEnded {
            status: reason.status(),
            reason,
            verified,
            exit_code: reason.exit_code(verified, None).number(),
            iterations: self.iteration,
            escalations: self.escalations,
            usage: self.usage,
            change: ChangeSummary {
                files: vec!["src/lib.rs".into()],
                file_count: 1,
                lines: 4,
                tree: tree(self.failing),
                ..ChangeSummary::default()
            },
            summary: format!("ended: {}", reason.name()),
            error: None,
        };
        self.journal.append_durable("", &Event::RunEnded(Box::new(ended))).unwrap();
    }
}
