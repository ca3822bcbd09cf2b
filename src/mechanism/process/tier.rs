//! How strongly a command's processes are held together. Owns the choice; the probe itself is the warden's.
//!
//! A tier is only named when a probe on this machine has just shown that it works.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{ProcessError, protocol::Abilities};

/// The tiers, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Each command in its own PID namespace: the kernel ends all of it at once, and it can't see its warden.
    PidNamespace,
    /// Subreaper with a gate on fork that can be closed.
    ForkGate,
    /// Every orphan comes to the warden, which kills until `waitpid` says that nobody is left.
    Subreaper,
    /// Only the process group: what leaves the group escapes, and an end is never confirmed.
    ProcessGroup,
}

impl Tier {
    /// The name as it is written in configuration and records.
    pub fn name(self) -> &'static str {
        match self {
            Tier::PidNamespace => "pid_namespace",
            Tier::ForkGate => "fork_gate",
            Tier::Subreaper => "subreaper",
            Tier::ProcessGroup => "process_group",
        }
    }

    /// The tier of that name (`-` counts as `_`); `None` when there is none.
    pub fn from_name(name: &str) -> Option<Tier> {
        let name = name.trim().replace('-', "_");
        [Tier::PidNamespace, Tier::ForkGate, Tier::Subreaper, Tier::ProcessGroup].into_iter().find(|t| t.name() == name)
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The tier in force, and why not a better one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TierReport {
    /// In force for every command.
    pub tier: Tier,
    /// One line for each better tier: its name and the reason.
    pub why_not_better: Vec<String>,
}

/// The best tier that the probe showed, or the forced one.
pub(super) fn choose(abilities: &Abilities, forced: Option<Tier>) -> Result<TierReport, ProcessError> {
    let mut why_not_better = Vec::new();
    for (tier, reason) in [
        (Tier::PidNamespace, &abilities.pid_namespace),
        (Tier::ForkGate, &abilities.fork_gate),
        (Tier::Subreaper, &abilities.subreaper),
        (Tier::ProcessGroup, &None),
    ] {
        let asked = forced.is_none_or(|f| f == tier);
        match reason {
            None if asked => return Ok(TierReport { tier, why_not_better }),
            None => why_not_better.push(format!("{tier}: works here, but another tier was asked for")),
            Some(why) if forced == Some(tier) => {
                return Err(ProcessError::TierUnavailable { tier, why: why.clone() });
            }
            Some(why) => why_not_better.push(format!("{tier}: {why}")),
        }
    }
    Ok(TierReport { tier: Tier::ProcessGroup, why_not_better })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only_subreaper() -> Abilities {
        Abilities { pid_namespace: Some("denied".into()), fork_gate: Some("not built".into()), subreaper: None }
    }

    #[test]
    fn the_best_tier_that_works_is_taken_and_better_ones_are_explained() {
        let report = choose(&only_subreaper(), None).unwrap();
        assert_eq!(report.tier, Tier::Subreaper);
        assert_eq!(report.why_not_better, ["pid_namespace: denied", "fork_gate: not built"]);
    }

    #[test]
    fn a_forced_tier_that_is_not_there_is_an_error_and_never_silently_weaker() {
        let error = choose(&only_subreaper(), Some(Tier::PidNamespace)).unwrap_err();
        assert!(matches!(error, ProcessError::TierUnavailable { tier: Tier::PidNamespace, .. }), "{error}");
    }

    #[test]
    fn a_weaker_tier_can_be_forced_and_says_so() {
        let report = choose(&only_subreaper(), Some(Tier::ProcessGroup)).unwrap();
        assert_eq!(report.tier, Tier::ProcessGroup);
        assert!(report.why_not_better[2].contains("asked for"));
    }

    #[test]
    fn names_round_trip() {
        for tier in [Tier::PidNamespace, Tier::ForkGate, Tier::Subreaper, Tier::ProcessGroup] {
            assert_eq!(Tier::from_name(tier.name()), Some(tier));
            assert_eq!(serde_json::to_string(&tier).unwrap(), format!("\"{tier}\""));
        }
        assert_eq!(Tier::from_name("process-group"), Some(Tier::ProcessGroup));
        assert_eq!(Tier::from_name("jail"), None);
    }
}
