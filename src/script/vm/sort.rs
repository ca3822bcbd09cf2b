//! `table.sort`: stable, and the same on every run.
//!
//! Lua's own sort picks pivots by the clock in long lists, so that equal items change places from run to run.

use mlua::{Function, Lua, Table, Value};

/// Longer lists are refused.
const MOST_ITEMS: usize = 10_000_000;

/// Sorts the list part of `list` in place by `less`.
pub(super) fn sort(lua: &Lua, (list, less): (Table, Function)) -> mlua::Result<()> {
    let count = list.raw_len();
    if count > MOST_ITEMS {
        return Err(mlua::Error::runtime(format!("table.sort: more than {MOST_ITEMS} items")));
    }
    // The items stay in Lua: of references to them Rust can hold only so many.
    let mut order: Vec<usize> = (1..=count).collect();
    let mut spare = order.clone();
    merge_sort(&mut order, &mut spare, &|a, b| {
        less.call::<bool>((list.raw_get::<Value>(a)?, list.raw_get::<Value>(b)?))
    })?;
    let sorted = lua.create_table_with_capacity(count, 0)?;
    for (at, from) in order.into_iter().enumerate() {
        sorted.raw_set(at + 1, list.raw_get::<Value>(from)?)?;
    }
    for at in 1..=count {
        list.raw_set(at, sorted.raw_get::<Value>(at)?)?;
    }
    Ok(())
}

/// The standard library's sorts may panic on a comparison that contradicts itself; a script's may.
fn merge_sort(
    items: &mut [usize],
    spare: &mut [usize],
    less: &impl Fn(usize, usize) -> mlua::Result<bool>,
) -> mlua::Result<()> {
    let half = items.len() / 2;
    if half == 0 {
        return Ok(());
    }
    merge_sort(&mut items[..half], &mut spare[..half], less)?;
    merge_sort(&mut items[half..], &mut spare[half..], less)?;
    spare.copy_from_slice(items);
    let (left, right) = spare.split_at(half);
    let (mut l, mut r) = (0, 0);
    for slot in items.iter_mut() {
        let take_right = match (left.get(l), right.get(r)) {
            (Some(&a), Some(&b)) => less(b, a)?,
            (None, _) => true,
            (Some(_), None) => false,
        };
        if take_right {
            *slot = right[r];
            r += 1;
        } else {
            *slot = left[l];
            l += 1;
        }
    }
    Ok(())
}
