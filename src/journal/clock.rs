//! The time that a journal writes into its records. Real and simulated clocks live in the world layer.

use std::time::Duration;

use jiff::Timestamp;

/// Where the time comes from.
pub trait Clock: Send + Sync {
    /// The time of day. It may jump, also backwards.
    fn wall(&self) -> Timestamp;

    /// Time that the machine was awake, from any fixed start. It never goes back and stands still in suspend,
    /// so budgets are counted in it.
    fn awake(&self) -> Duration;
}
