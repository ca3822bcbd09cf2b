//! How strongly a command's processes are held together. Owns the choice; the probe itself is the warden's.
//!
//! A tier is only named when a probe on this machine has just shown that it works.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{ProcessError, protocol::Abilities};

/// The tiers, strongest first. Each one takes something from the commands; [`TierReport::remarks`] says what, and a tier
/// that takes less can be forced. The strongest that works is taken, but for the fork gate, which must be asked for.
///
/// | | escapes | can a command hurt its warden | what a command can't do |
/// |---|---|---|---|
/// | PID namespace | nobody | no, it can't name it | see or signal processes outside |
/// | the same, not root | nobody | no | the same, and gain rights by a set-user-id bit |
/// | fork gate | nobody | not where there is the signal scope | gain rights by a set-user-id bit |
/// | subreaper | nobody who can be outrun | yes: reported, never confirmed | – |
/// | process group | whoever leaves the group | yes | – |
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Each command in its own PID namespace: the kernel ends all of it at once, and it can't see its warden.
    ///
    /// Inside, `/proc` shows the command's own processes only, with numbers of their own; all other mounts are as
    /// outside. So a command can't `kill` a server that the user runs, and a file with the number of a process outside
    /// means nothing to it; sockets (an agent for keys, a container daemon) work as ever. Without root there is a user
    /// namespace around it in which only the user and its group are known: the permissions stay, other people's files
    /// show as nobody's, and `sudo`, `su`, `fusermount` or rootless containers with more than one user don't work. A
    /// program that makes namespaces itself (`unshare`, bubblewrap, lunation) can do so inside.
    ///
    /// A command that is root can leave anything that is not a virtual machine, if it wants to; what holds here against
    /// every process that it *leaves behind*, holds against root too.
    PidNamespace,
    /// Subreaper with a gate on fork that can be closed, and the Landlock scope of signals where the kernel has it
    /// (then a command can signal its own processes only).
    ///
    /// **Only taken when it is asked for**, for it is not transparent: a fork that waits for the gate is interrupted by a
    /// signal, and a program whose handler does not restart calls sees an error that no kernel ever gives otherwise. The
    /// `sh` of Debian is one: there `echo a | cat` says "Cannot fork" more often than not, because the end of the first
    /// program interrupts the fork of the second one. Agents run such shells all day.
    ///
    /// The gate needs `no_new_privs`: programs with a set-user-id bit, like `sudo`, gain nothing from it. One gate can't
    /// be put into another: lunation inside an agent of lunation takes another tier then.
    ForkGate,
    /// Every orphan comes to the warden, which kills until `waitpid` says that nobody is left. Commands can do all that
    /// their user can, which includes killing their warden.
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
    /// What commands can't do at this tier, and what the tier can't promise; one line each.
    pub remarks: Vec<String>,
}

const ONLY_ASKED: &str = "works here, but is taken only when asked for: it lets forks of some shells fail";

/// The best tier that the probe showed, or the forced one.
pub(super) fn choose(abilities: &Abilities, forced: Option<Tier>) -> Result<TierReport, ProcessError> {
    let mut why_not_better = Vec::new();
    for (tier, reason) in [
        (Tier::PidNamespace, &abilities.pid_namespace),
        (Tier::ForkGate, &abilities.fork_gate),
        (Tier::Subreaper, &abilities.subreaper),
        (Tier::ProcessGroup, &None),
    ] {
        let asked = forced.map_or(tier != Tier::ForkGate, |f| f == tier);
        match reason {
            None if asked => return Ok(TierReport { tier, why_not_better, remarks: remarks(tier, abilities) }),
            None if forced.is_none() => why_not_better.push(format!("{tier}: {ONLY_ASKED}")),
            None => why_not_better.push(format!("{tier}: works here, but another tier was asked for")),
            Some(why) if forced == Some(tier) => {
                return Err(ProcessError::TierUnavailable { tier, why: why.clone() });
            }
            Some(why) => why_not_better.push(format!("{tier}: {why}")),
        }
    }
    Ok(TierReport { tier: Tier::ProcessGroup, why_not_better, remarks: remarks(Tier::ProcessGroup, abilities) })
}

fn remarks(tier: Tier, abilities: &Abilities) -> Vec<String> {
    const NO_GAIN: &str = "programs with a set-user-id bit (sudo) gain no rights in commands";
    const KILLABLE: &str = "a command can kill its warden, which is found out and never taken for an end";
    let lines: Vec<String> = match tier {
        Tier::PidNamespace => {
            let inside = "commands see and signal their own processes only".to_owned();
            let mapped = "other people's files show as nobody's in commands, with the same permissions";
            let more = [NO_GAIN, mapped].into_iter().filter(|_| abilities.user_namespace).map(str::to_owned);
            std::iter::once(inside).chain(more).collect()
        }
        Tier::ForkGate => {
            let scope = match &abilities.signal_scope {
                None => "commands can signal their own processes only".to_owned(),
                Some(why) => format!("{KILLABLE} ({why})"),
            };
            let forks = "a fork may fail when a signal arrives, in programs that do not restart calls (sh of Debian)";
            vec![NO_GAIN.to_owned(), forks.to_owned(), scope]
        }
        Tier::Subreaper => vec![KILLABLE.to_owned()],
        Tier::ProcessGroup => {
            vec!["processes that leave the group of their command escape, and no end is confirmed".to_owned()]
        }
    };
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only_subreaper() -> Abilities {
        Abilities {
            pid_namespace: Some("denied".into()),
            user_namespace: true,
            fork_gate: Some("too old".into()),
            subreaper: None,
            signal_scope: Some("too old".into()),
        }
    }

    #[test]
    fn the_best_tier_that_works_is_taken_and_better_ones_are_explained() {
        let report = choose(&only_subreaper(), None).unwrap();
        assert_eq!(report.tier, Tier::Subreaper);
        assert_eq!(report.why_not_better, ["pid_namespace: denied", "fork_gate: too old"]);
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
    fn the_gate_is_only_taken_when_asked_for_because_shells_stumble_over_it() {
        let no_namespace = Abilities { fork_gate: None, signal_scope: None, ..only_subreaper() };
        let report = choose(&no_namespace, None).unwrap();
        assert_eq!(report.tier, Tier::Subreaper);
        assert!(report.why_not_better[1].starts_with("fork_gate: works here, but is taken only when asked for"));
        assert_eq!(choose(&no_namespace, Some(Tier::ForkGate)).unwrap().tier, Tier::ForkGate);
    }

    #[test]
    fn what_a_tier_takes_from_commands_is_said() {
        let all = Abilities { pid_namespace: None, fork_gate: None, signal_scope: None, ..only_subreaper() };
        let remarks = |abilities: &Abilities, tier| choose(abilities, Some(tier)).unwrap().remarks.join("; ");
        assert!(remarks(&all, Tier::PidNamespace).contains("sudo"));
        assert!(!remarks(&Abilities { user_namespace: false, ..all.clone() }, Tier::PidNamespace).contains("sudo"));
        assert!(!remarks(&all, Tier::ForkGate).contains("can kill its warden"));
        let unscoped = Abilities { signal_scope: Some("too old".into()), ..all.clone() };
        assert!(remarks(&unscoped, Tier::ForkGate).contains("can kill its warden, which is found out and never taken"));
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
