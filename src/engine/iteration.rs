//! One iteration as a pure state machine: which step comes next, whatever the steps bring.
//!
//! Owns the order of the nine steps (design.md section 4). Must not know how a step is done or what is decided.
//! Guarantees, for every sequence of wishes: after a turn comes the guard, then the fence, then the comparison,
//! before anything else can be asked for; a decision is recorded before it is carried out; and every iteration ends
//! with exactly one decision carried out and recorded.

use crate::policy::Decision;

/// What the driver has to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Ask the loop what it wants next.
    Ask,
    /// Run the agent until nothing of it is left.
    Turn,
    /// Put the git folder back.
    Guard,
    /// Revert what is out of scope.
    Fence,
    /// Compare the trees.
    Compare,
    /// Run the fix commands.
    Fix,
    /// Revert what they did out of scope.
    FenceFixes,
    /// Compare again, since fixes may have changed the tree.
    CompareFixes,
    /// Read the sensors.
    Sense,
    /// Write the decision down.
    RecordDecision(Decision),
    /// Carry it out.
    Apply(Decision),
    /// Write the end of the iteration down.
    RecordEnd,
    /// Nothing: it is over.
    Over,
}

/// What a loop may ask for between steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// An agent turn.
    Turn,
    /// A pass over the sensors, with or without fix commands.
    Sense {
        /// True when a sensor has a fix command.
        fixes: bool,
    },
    /// A decision; no further wish is possible.
    Decide(Decision),
}

/// A wish or report that does not fit the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OutOfOrder {
    /// A sense before any turn.
    #[error("there is nothing to sense yet: take a turn first (it:turn)")]
    SenseBeforeTurn,
    /// A wish after the decision.
    #[error("this iteration is decided already: start the next one")]
    AlreadyDecided,
    /// A wish while a step is under way.
    #[error("a step of this iteration is still under way")]
    Busy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open { turned: bool },
    Turn,
    Guard { abort: bool },
    Fence,
    Compare,
    Fix,
    FenceFixes,
    CompareFixes,
    Sense,
    RecordDecision(Decision),
    Apply(Decision),
    RecordEnd,
    Over,
}

/// The iteration's place in its order of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Iteration(State);

impl Default for Iteration {
    fn default() -> Iteration {
        Iteration::open()
    }
}

impl Iteration {
    /// Just after its checkpoint.
    pub fn open() -> Iteration {
        Iteration(State::Open { turned: false })
    }

    /// What to do now.
    pub fn step(self) -> Step {
        match self.0 {
            State::Open { .. } => Step::Ask,
            State::Turn => Step::Turn,
            State::Guard { .. } => Step::Guard,
            State::Fence => Step::Fence,
            State::Compare => Step::Compare,
            State::Fix => Step::Fix,
            State::FenceFixes => Step::FenceFixes,
            State::CompareFixes => Step::CompareFixes,
            State::Sense => Step::Sense,
            State::RecordDecision(decision) => Step::RecordDecision(decision),
            State::Apply(decision) => Step::Apply(decision),
            State::RecordEnd => Step::RecordEnd,
            State::Over => Step::Over,
        }
    }

    /// Takes a wish.
    ///
    /// # Errors
    /// The iteration stays as it is when the wish does not fit.
    pub fn wish(self, wish: Wish) -> Result<Iteration, OutOfOrder> {
        let State::Open { turned } = self.0 else {
            return Err(match self.0 {
                State::RecordDecision(_) | State::Apply(_) | State::RecordEnd | State::Over => {
                    OutOfOrder::AlreadyDecided
                }
                _ => OutOfOrder::Busy,
            });
        };
        let next = match wish {
            Wish::Turn => State::Turn,
            Wish::Sense { .. } if !turned => return Err(OutOfOrder::SenseBeforeTurn),
            Wish::Sense { fixes: true } => State::Fix,
            Wish::Sense { fixes: false } => State::Sense,
            Wish::Decide(decision) => State::RecordDecision(decision),
        };
        Ok(Iteration(next))
    }

    /// The step is done: on to the next.
    pub fn done(self) -> Iteration {
        Iteration(match self.0 {
            State::Open { turned } => State::Open { turned },
            State::Turn => State::Guard { abort: false },
            State::Guard { abort: false } => State::Fence,
            State::Guard { abort: true } => State::RecordDecision(Decision::Rollback),
            State::Fence => State::Compare,
            State::Compare => State::Open { turned: true },
            State::Fix => State::FenceFixes,
            State::FenceFixes => State::CompareFixes,
            State::CompareFixes => State::Sense,
            State::Sense => State::Open { turned: true },
            State::RecordDecision(decision) => State::Apply(decision),
            State::Apply(_) => State::RecordEnd,
            State::RecordEnd | State::Over => State::Over,
        })
    }

    /// Something failed or somebody ended the run: guard, roll back, record. A decision that is already being carried
    /// out is finished instead.
    pub fn abort(self) -> Iteration {
        match self.0 {
            State::Apply(_) | State::RecordEnd | State::Over => self,
            _ => Iteration(State::Guard { abort: true }),
        }
    }

    /// True while the iteration waits for a wish.
    pub fn is_waiting(self) -> bool {
        matches!(self.0, State::Open { .. })
    }

    /// True when nothing is left to do.
    pub fn is_over(self) -> bool {
        self.0 == State::Over
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run(mut iteration: Iteration, trace: &mut Vec<Step>) -> Iteration {
        while !iteration.is_waiting() && !iteration.is_over() {
            trace.push(iteration.step());
            iteration = iteration.done();
        }
        iteration
    }

    #[test]
    fn a_whole_iteration_goes_through_its_steps_in_order() {
        let mut trace = Vec::new();
        let iteration = run(Iteration::open().wish(Wish::Turn).unwrap(), &mut trace);
        let iteration = run(iteration.wish(Wish::Sense { fixes: true }).unwrap(), &mut trace);
        let iteration = run(iteration.wish(Wish::Decide(Decision::Keep)).unwrap(), &mut trace);
        assert!(iteration.is_over());
        assert_eq!(
            trace,
            [
                Step::Turn,
                Step::Guard,
                Step::Fence,
                Step::Compare,
                Step::Fix,
                Step::FenceFixes,
                Step::CompareFixes,
                Step::Sense,
                Step::RecordDecision(Decision::Keep),
                Step::Apply(Decision::Keep),
                Step::RecordEnd,
            ]
        );
    }

    #[test]
    fn what_does_not_fit_is_refused_and_changes_nothing() {
        let open = Iteration::open();
        assert_eq!(open.wish(Wish::Sense { fixes: false }), Err(OutOfOrder::SenseBeforeTurn));
        let busy = open.wish(Wish::Turn).unwrap();
        assert_eq!(busy.wish(Wish::Turn), Err(OutOfOrder::Busy));
        let decided = open.wish(Wish::Decide(Decision::Stall)).unwrap();
        assert_eq!(decided.wish(Wish::Turn), Err(OutOfOrder::AlreadyDecided));
    }

    #[derive(Debug, Clone)]
    enum Action {
        Wish(Wish),
        Abort,
    }

    fn action() -> impl Strategy<Value = Action> {
        prop_oneof![
            Just(Action::Wish(Wish::Turn)),
            any::<bool>().prop_map(|fixes| Action::Wish(Wish::Sense { fixes })),
            prop::sample::select(Decision::NAMES.map(|(_, d)| d).to_vec()).prop_map(|d| Action::Wish(Wish::Decide(d))),
            Just(Action::Abort),
        ]
    }

    proptest! {
        #[test]
        fn nothing_skips_guard_fence_or_record(actions in prop::collection::vec(action(), 0..12), cut in 0usize..4) {
            let mut trace = Vec::new();
            let mut iteration = Iteration::open();
            for action in actions {
                match action {
                    Action::Wish(wish) => if let Ok(next) = iteration.wish(wish) { iteration = next },
                    Action::Abort => {
                        // An abort may come after any number of steps.
                        for _ in 0..cut {
                            if iteration.is_waiting() || iteration.is_over() { break }
                            trace.push(iteration.step());
                            iteration = iteration.done();
                        }
                        iteration = iteration.abort();
                    }
                }
                iteration = run(iteration, &mut trace);
            }
            if !iteration.is_over() {
                iteration = run(iteration.abort(), &mut trace);
            }
            prop_assert!(iteration.is_over());
            let applied: Vec<usize> = (0..trace.len()).filter(|&at| matches!(trace[at], Step::Apply(_))).collect();
            prop_assert_eq!(applied.len(), 1);
            let Step::Apply(decision) = trace[applied[0]] else { unreachable!() };
            prop_assert_eq!(trace[applied[0] - 1], Step::RecordDecision(decision));
            prop_assert_eq!(trace.last(), Some(&Step::RecordEnd));
            for (at, step) in trace.iter().enumerate() {
                if *step == Step::Turn {
                    prop_assert_eq!(trace.get(at + 1), Some(&Step::Guard));
                }
                if matches!(step, Step::Sense | Step::Fix) {
                    let last_turn = trace[..at].iter().rposition(|s| *s == Step::Turn);
                    let last_fence = trace[..at].iter().rposition(|s| matches!(s, Step::Fence | Step::FenceFixes));
                    prop_assert!(last_fence > last_turn);
                }
            }
        }
    }
}
