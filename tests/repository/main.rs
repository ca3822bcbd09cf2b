//! The repository mechanism against real git and a hostile agent: checkpoints, guard, fence, rollback, recovery.

mod agent_actions;
mod commit;
mod crash;
mod diffs;
mod discovery;
mod fencing;
mod races;
mod random;
mod rollback;
mod world;
