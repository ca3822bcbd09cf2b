//! How things are done: processes, repositories, agents, sensors. Knows nothing of when or why.

pub mod agent;
pub mod process;
pub mod repo;
pub mod sensor;
