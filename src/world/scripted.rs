//! A world in memory: agents, sensors and time play a script, nothing touches the outside.
//!
//! For tests of policies and of the engine itself. Its tree is one string for each path; its clock moves only by what
//! turns and waits take.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use super::{
    Clock, CommandResult, Committed, FixAnswer, GitQuestion, ManualClock, Point, Restored, TurnAnswer, TurnAsk, World,
    WorldError,
};
use crate::policy::scope::Scope;
use crate::policy::{
    AgentSpec, ChangeSummary, CommandSpec, Outcome, Reading, ReadingState, SensorSpec, TurnSummary, Usage,
};

/// One scripted turn.
#[derive(Debug, Clone)]
pub struct ScriptedTurn {
    /// Paths that it writes, with their content; `None` deletes.
    pub edits: Vec<(String, Option<String>)>,
    /// Its final message.
    pub text: String,
    /// How it ends.
    pub outcome: Outcome,
    /// How long it takes.
    pub takes: Duration,
    /// Its usage.
    pub usage: Usage,
    /// What it does to the git folder, by name, for the guard to undo.
    pub sabotage: Vec<String>,
}

impl Default for ScriptedTurn {
    fn default() -> ScriptedTurn {
        ScriptedTurn {
            edits: Vec::new(),
            text: "did something".into(),
            outcome: Outcome::Done,
            takes: Duration::from_secs(60),
            usage: Usage::default(),
            sabotage: Vec::new(),
        }
    }
}

impl ScriptedTurn {
    /// A turn that writes one path and says so.
    pub fn edit(path: &str, content: &str) -> ScriptedTurn {
        ScriptedTurn { edits: vec![(path.into(), Some(content.into()))], ..ScriptedTurn::default() }
    }

    /// A turn that only speaks.
    pub fn say(text: &str) -> ScriptedTurn {
        ScriptedTurn { text: text.into(), ..ScriptedTurn::default() }
    }
}

type Tree = BTreeMap<String, String>;

/// What a sensor says, pass by pass.
#[derive(Debug, Default)]
struct Series {
    /// Failing counts in the order of the passes; `None` is broken. The last one repeats.
    passes: VecDeque<Option<u64>>,
    /// What it says when it is read again on the same tree, for sensors that are not reliable.
    again: VecDeque<Option<u64>>,
    last: Option<u64>,
}

impl Series {
    fn read(&mut self, attempt: u32) -> Option<u64> {
        if attempt > 0 {
            return self.again.pop_front().unwrap_or(self.last);
        }
        self.last =
            if self.passes.len() > 1 { self.passes.pop_front() } else { self.passes.front().copied() }.flatten();
        self.last
    }
}

#[derive(Debug, Default)]
struct State {
    tree: Tree,
    saved: BTreeMap<String, Tree>,
    turns: VecDeque<ScriptedTurn>,
    readings: BTreeMap<String, Series>,
    sabotage: Vec<String>,
    /// The file that a command line writes, with its content.
    command_edits: BTreeMap<String, (String, String)>,
    prompts: Vec<String>,
    done: Vec<String>,
    random: u64,
}

/// A world that plays a script.
#[derive(Debug)]
pub struct ScriptedWorld {
    clock: ManualClock,
    state: Mutex<State>,
}

impl ScriptedWorld {
    /// A world with these turns; when they are used up, further turns change nothing.
    pub fn new(turns: impl IntoIterator<Item = ScriptedTurn>) -> ScriptedWorld {
        let state = State { turns: turns.into_iter().collect(), ..State::default() };
        ScriptedWorld { clock: ManualClock::at(jiff::Timestamp::UNIX_EPOCH), state: Mutex::new(state) }
    }

    /// Sets a sensor's failing counts in the order of the passes; `None` is broken, the last one repeats.
    pub fn sensor(self, id: &str, failing: impl IntoIterator<Item = Option<u64>>) -> ScriptedWorld {
        self.lock().readings.entry(id.into()).or_default().passes = failing.into_iter().collect();
        self
    }

    /// Sets what a sensor says when it is read again on the same tree; without it, what it said before.
    pub fn flaky(self, id: &str, again: impl IntoIterator<Item = Option<u64>>) -> ScriptedWorld {
        self.lock().readings.entry(id.into()).or_default().again = again.into_iter().collect();
        self
    }

    /// What a command line of the script writes into a file whenever it is run.
    pub fn command_edits(self, line: &str, path: &str, content: &str) -> ScriptedWorld {
        self.lock().command_edits.insert(line.into(), (path.into(), content.into()));
        self
    }

    /// Puts a file into the tree.
    pub fn file(self, path: &str, content: &str) -> ScriptedWorld {
        self.lock().tree.insert(path.into(), content.into());
        self
    }

    /// The prompts that agents got, oldest first.
    pub fn prompts(&self) -> Vec<String> {
        self.lock().prompts.clone()
    }

    /// What the world was asked to do, oldest first: `checkpoint`, `turn`, `guard`, …
    pub fn done(&self) -> Vec<String> {
        self.lock().done.clone()
    }

    /// The tree as it is.
    pub fn tree(&self) -> BTreeMap<String, String> {
        self.lock().tree.clone()
    }

    /// The clock, to move it.
    pub fn manual_clock(&self) -> &ManualClock {
        &self.clock
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn tree_id(tree: &Tree) -> String {
    let mut hash = Sha256::new();
    for (path, content) in tree {
        hash.update(path.as_bytes());
        hash.update([0]);
        hash.update(content.as_bytes());
        hash.update([0]);
    }
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn differing(one: &Tree, other: &Tree) -> Vec<String> {
    let mut paths: Vec<String> = one.keys().chain(other.keys()).cloned().collect();
    paths.sort();
    paths.dedup();
    paths.retain(|path| one.get(path) != other.get(path));
    paths
}

impl State {
    fn save(&mut self) -> Point {
        let tree = tree_id(&self.tree);
        self.saved.insert(tree.clone(), self.tree.clone());
        Point { id: tree.clone(), tree }
    }

    fn saved(&self, id: &str) -> Result<Tree, WorldError> {
        self.saved.get(id).cloned().ok_or_else(|| WorldError::Other(anyhow::anyhow!("no checkpoint {id}")))
    }

    fn revert(&mut self, to: &Tree, paths: &[String]) {
        for path in paths {
            match to.get(path) {
                Some(content) => self.tree.insert(path.clone(), content.clone()),
                None => self.tree.remove(path),
            };
        }
    }
}

#[async_trait]
impl World for ScriptedWorld {
    fn clock(&self) -> &dyn Clock {
        &self.clock
    }

    fn random(&self) -> u64 {
        let mut state = self.lock();
        state.random = state.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.random
    }

    async fn wait(&self, duration: Duration, _cancel: &CancellationToken) {
        self.lock().done.push(format!("wait {}", duration.as_secs()));
        self.clock.advance(duration);
    }

    async fn peek(&self, path: &str, _most: usize) -> Result<Option<String>, WorldError> {
        Ok(self.lock().tree.get(path).cloned())
    }

    async fn glob(&self, pattern: &str) -> Result<Vec<String>, WorldError> {
        let glob = globset::Glob::new(pattern).map_err(|error| WorldError::Other(error.into()))?.compile_matcher();
        Ok(self.lock().tree.keys().filter(|path| glob.is_match(path)).cloned().collect())
    }

    async fn check_agent(&self, _agent: &AgentSpec) -> Result<(), WorldError> {
        Ok(())
    }

    async fn checkpoint(&self, _iteration: u32) -> Result<Point, WorldError> {
        let mut state = self.lock();
        state.done.push("checkpoint".into());
        Ok(state.save())
    }

    async fn turn(&self, ask: TurnAsk, cancel: &CancellationToken) -> Result<TurnAnswer, WorldError> {
        if cancel.is_cancelled() {
            return Err(WorldError::Cancelled);
        }
        let mut state = self.lock();
        state.done.push("turn".into());
        state.prompts.push(ask.prompt);
        let turn = state.turns.pop_front().unwrap_or_else(|| ScriptedTurn::say("nothing left to do"));
        for (path, content) in turn.edits {
            match content {
                Some(content) => state.tree.insert(path, content),
                None => state.tree.remove(&path),
            };
        }
        state.sabotage.extend(turn.sabotage);
        let takes = ask.wall_left.map_or(turn.takes, |left| left.min(turn.takes));
        drop(state);
        self.clock.advance(takes);
        let timed_out = matches!(turn.outcome, Outcome::TimedOut { .. });
        let summary = TurnSummary {
            agent: ask.agent.label(),
            summary: turn.text.lines().next().unwrap_or_default().to_owned(),
            error: None,
            exit: (!timed_out).then_some(0),
            timed_out,
            outcome: turn.outcome,
            text: turn.text,
            usage: turn.usage,
            duration_s: takes.as_secs_f64(),
            left_behind: Vec::new(),
            output: None,
        };
        Ok(TurnAnswer { summary, scrubbed: Vec::new() })
    }

    async fn guard(&self, _since: &Point) -> Result<Vec<String>, WorldError> {
        let mut state = self.lock();
        state.done.push("guard".into());
        Ok(std::mem::take(&mut state.sabotage))
    }

    async fn fence(&self, since: &Point, scope: &Scope) -> Result<Vec<String>, WorldError> {
        let mut state = self.lock();
        state.done.push("fence".into());
        let before = state.saved(&since.tree)?;
        let mut out = differing(&before, &state.tree);
        out.retain(|path| !scope.allows(path.as_bytes()));
        state.revert(&before, &out);
        Ok(out)
    }

    async fn tree(&self) -> Result<String, WorldError> {
        Ok(self.lock().save().tree)
    }

    async fn changes(&self, since: &Point) -> Result<ChangeSummary, WorldError> {
        let mut state = self.lock();
        let now = state.save();
        let files = differing(&state.saved(&since.tree)?, &state.tree);
        Ok(ChangeSummary {
            empty: files.is_empty(),
            file_count: files.len() as u64,
            lines: files.len() as u64,
            files,
            tree: now.tree,
            ..ChangeSummary::default()
        })
    }

    async fn fix(&self, fix: &CommandSpec, _cancel: &CancellationToken) -> Result<FixAnswer, WorldError> {
        self.lock().done.push(format!("fix {}", fix.line.show()));
        Ok(FixAnswer { exit: Some(0), duration_s: 0.0, notes: Vec::new() })
    }

    async fn read(&self, sensor: &SensorSpec, attempt: u32, cancel: &CancellationToken) -> Result<Reading, WorldError> {
        if cancel.is_cancelled() {
            return Err(WorldError::Cancelled);
        }
        let mut state = self.lock();
        state.done.push(format!("read {}", sensor.id));
        let series = state.readings.get_mut(&sensor.id).ok_or_else(|| WorldError::Unknown {
            kind: "sensor",
            name: sensor.id.clone(),
            known: String::new(),
        })?;
        let failing = series.read(attempt);
        let reading_state = match failing {
            None => ReadingState::Broken,
            Some(0) => ReadingState::Passed,
            Some(_) => ReadingState::Failed,
        };
        let words = failing.map_or_else(|| "no verdict".to_owned(), |n| format!("{n} failing"));
        Ok(Reading {
            id: sensor.id.clone(),
            state: reading_state,
            failing,
            score: None,
            items: Vec::new(),
            fingerprint: words.clone(),
            summary: words.clone(),
            feedback: words,
            exit: failing.map(|n| i32::from(n > 0)),
            timed_out: false,
            duration_s: 0.0,
            output: None,
            notes: Vec::new(),
            flaky: false,
            attribution: None,
        })
    }

    async fn undo(&self, tree: &str) -> Result<Vec<String>, WorldError> {
        let mut state = self.lock();
        let before = state.saved(tree)?;
        let paths = differing(&before, &state.tree);
        state.revert(&before, &paths);
        Ok(paths)
    }

    async fn settle(&self) -> Result<(), WorldError> {
        self.lock().done.push("settle".into());
        Ok(())
    }

    async fn restore(&self, to: &Point) -> Result<Restored, WorldError> {
        let mut state = self.lock();
        state.done.push("restore".into());
        let before = state.saved(&to.tree)?;
        let paths = differing(&before, &state.tree);
        state.revert(&before, &paths);
        Ok(Restored { restored: paths.len() as u64, conflicts: Vec::new() })
    }

    async fn command(&self, command: &CommandSpec, cancel: &CancellationToken) -> Result<CommandResult, WorldError> {
        if cancel.is_cancelled() {
            return Err(WorldError::Cancelled);
        }
        let mut state = self.lock();
        let line = command.line.show();
        if let Some((path, content)) = state.command_edits.get(&line).cloned() {
            state.tree.insert(path, content);
        }
        state.done.push(format!("command {line}"));
        Ok(CommandResult {
            ok: true,
            code: 0,
            stdout: String::new(),
            stderr: String::new(),
            tail: String::new(),
            timed_out: false,
            duration_s: 0.0,
        })
    }

    async fn git(&self, _question: &GitQuestion) -> Result<serde_json::Value, WorldError> {
        Ok(serde_json::Value::Null)
    }

    async fn commit(&self, _start: &Point, message: &str) -> Result<Committed, WorldError> {
        self.lock().done.push(format!("commit {message}"));
        Ok(Committed { commit: Some("0000000".into()), ..Committed::default() })
    }

    async fn write(&self, path: &str, text: &str) -> Result<(), WorldError> {
        let mut state = self.lock();
        state.tree.insert(path.to_owned(), text.to_owned());
        state.done.push(format!("write {path}"));
        Ok(())
    }
}
