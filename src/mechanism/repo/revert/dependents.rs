//! Which deltas can't be carried out without others.

use std::collections::HashMap;

use super::super::path::{is_below, split};
use super::super::snapshot::Delta;

/// Adds to the chosen deltas those without which they can't be carried out: a folder that comes back where a file
/// stands takes along what is above, and a file that comes back where a folder stands takes along what is below.
pub(crate) fn with_dependents(all: &[Delta], chosen: &mut [bool]) {
    let lost_folders: HashMap<&[u8], usize> = all
        .iter()
        .enumerate()
        .filter(|(_, delta)| delta.was_folder() && !delta.is_folder())
        .map(|(at, delta)| (&*delta.path, at))
        .collect();
    for at in 0..all.len() {
        let delta = &all[at];
        if !chosen[at] || delta.old.is_none() {
            continue;
        }
        let mut path = split(&delta.path).0;
        while !path.is_empty() {
            if let Some(folder) = lost_folders.get(path) {
                chosen[*folder] = true;
            }
            path = split(path).0;
        }
        if delta.is_folder() && !delta.was_folder() {
            for (other, candidate) in all.iter().enumerate() {
                chosen[other] |= is_below(&candidate.path, &delta.path);
            }
        }
    }
}
