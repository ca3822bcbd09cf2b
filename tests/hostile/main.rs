//! Agents that do their worst to a repository in which a person has work of every kind under way, each through the
//! real program: afterwards everything is as it was, what they hid was seen, what they planted never ran, and the
//! record names it. As the user who runs the tests and, where that is root, as an ordinary one too.

#[path = "../scene/mod.rs"]
mod scene;

mod files;
mod git_folder;
mod history;
mod index;
mod manifest;
mod ordeal;
mod planted;
mod shapes;
