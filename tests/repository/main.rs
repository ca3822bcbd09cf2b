//! The repository mechanism against real git and a hostile agent: checkpoints, guard, fence, rollback, recovery.

mod rollback;
mod world;
