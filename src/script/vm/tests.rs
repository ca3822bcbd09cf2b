//! The VM as scripts meet it: sandbox, limits, waiting, errors.

mod broken;
mod harness;
mod limits;
mod loading;
mod running;
mod sandbox;
mod waiting;
