//! `table.sort`: stable, and the same on every run.
//!
//! Lua's own sort picks pivots by the clock in long lists, so that equal items change places from run to run.

use mlua::{Function, Lua, Table, Value};

/// Longer lists are refused.
const MOST_ITEMS: usize = 10_000_000;

/// Sorts the list part of `list` in place by `less`.
pub(super) fn sort(_: &Lua, (list, less): (Table, Function)) -> mlua::Result<()> {
    let count = list.raw_len();
    if count > MOST_ITEMS {
        return Err(mlua::Error::runtime(format!("table.sort: more than {MOST_ITEMS} items")));
    }
    let mut items: Vec<Value> = Vec::with_capacity(count);
    for at in 1..=count {
        items.push(list.raw_get(at)?);
    }
    let mut spare = items.clone();
    merge_sort(&mut items, &mut spare, &less)?;
    for (at, item) in items.into_iter().enumerate() {
        list.raw_set(at + 1, item)?;
    }
    Ok(())
}

/// The standard library's sorts may panic on a comparison that contradicts itself; a script's may.
fn merge_sort(items: &mut [Value], spare: &mut [Value], less: &Function) -> mlua::Result<()> {
    let half = items.len() / 2;
    if half == 0 {
        return Ok(());
    }
    merge_sort(&mut items[..half], &mut spare[..half], less)?;
    merge_sort(&mut items[half..], &mut spare[half..], less)?;
    spare.clone_from_slice(items);
    let (left, right) = spare.split_at(half);
    let (mut l, mut r) = (0, 0);
    for slot in items.iter_mut() {
        let take_right = match (left.get(l), right.get(r)) {
            (Some(a), Some(b)) => less.call::<bool>((b, a))?,
            (None, _) => true,
            (Some(_), None) => false,
        };
        if take_right {
            *slot = right[r].clone();
            r += 1;
        } else {
            *slot = left[l].clone();
            l += 1;
        }
    }
    Ok(())
}
