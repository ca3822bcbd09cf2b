//! The decisions that a loop takes when nobody says otherwise; `lua/lunation/decide.lua` says the same in Lua.

use super::decision::{Decision, Policy, Verdict};
use super::observation::Observation;

/// Fewer failing: keep. More: roll back, naming what broke. Equal: keep a better score; keep an unseen result as
/// lateral; a seen one is a stall. Without sensors every change is kept.
#[derive(Debug, Clone, Copy, Default)]
pub struct DefaultPolicy;

impl DefaultPolicy {
    /// The verdict on an iteration that changed something.
    pub fn verdict(&self, o: &Observation) -> Verdict {
        let (Some(now), Some(best)) = (&o.sense, &o.best) else {
            return Verdict::plain(Decision::Keep);
        };
        if now.failing < best.failing {
            return Verdict::because(Decision::Keep, format!("{} failing, {} before", now.failing, best.failing));
        }
        if now.failing > best.failing {
            return Verdict::because(Decision::Rollback, format!("broke {}", now.newly_failing(best).join(", ")));
        }
        match (now.score, best.score) {
            (Some(score), Some(before)) if score > before => {
                return Verdict::because(Decision::Keep, format!("score {score}, {before} before"));
            }
            _ => {}
        }
        if now.ok {
            return Verdict::because(Decision::Keep, "all checks hold");
        }
        if o.seen.contains(&now.fingerprint) {
            return Verdict::because(Decision::Stall, "a result that was seen before");
        }
        Verdict::because(Decision::Keep, "lateral")
    }
}

impl Policy for DefaultPolicy {}
