use super::link::Relinked;
use super::*;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;

fn store() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().expect("a folder");
    let store = Store::open(&dir.path().join("store")).expect("a store");
    (dir, store)
}

#[test]
fn what_was_put_is_read_again_also_by_another_store() {
    let (_dir, mut store) = store();
    let contents: Vec<Vec<u8>> = (0..300_usize).map(|n| format!("content {n}\n").repeat(n).into_bytes()).collect();
    let ids: Vec<_> = contents.iter().map(|bytes| store.put(Kind::Blob, bytes).expect("put")).collect();
    store.sync().expect("synced");
    let mut again = Store::open(store.dir()).expect("opened again");
    for (id, bytes) in ids.iter().zip(&contents) {
        assert_eq!(&again.read(*id).expect("read"), bytes);
        assert!(again.has(*id));
    }
    assert!(!again.has(id_of(Kind::Blob, b"never put")));
    assert!(again.read(id_of(Kind::Blob, b"never put")).is_err());
    assert_eq!(fs::read_dir(store.dir().join("tmp")).expect("listed").count(), 0);
}

#[test]
fn what_is_put_twice_is_written_once() {
    let (_dir, mut store) = store();
    store.put(Kind::Blob, b"x").expect("put");
    store.flush().expect("flushed");
    store.put(Kind::Blob, b"x").expect("put");
    store.flush().expect("flushed");
    assert_eq!(fs::read_dir(store.dir().join("objects/pack")).expect("listed").count(), 2);
}

#[test]
fn a_large_file_keeps_its_holes_and_its_content() {
    let (dir, mut store) = store();
    let path = dir.path().join("sparse");
    let file = fs::File::create_new(&path).expect("made");
    rustix::io::pwrite(&file, b"begin", 0).expect("written");
    rustix::io::pwrite(&file, b"end", 300 << 20).expect("written");
    let size = file.metadata().expect("looked at").len();
    let reading = fs::File::open(&path).expect("opened");
    let id = store.put_large(reading.as_fd(), size).expect("put").expect("not changed meanwhile");
    let out = fs::File::create_new(dir.path().join("out")).expect("made");
    store.copy_to(id, out.as_fd()).expect("copied");
    let meta = out.metadata().expect("looked at");
    assert_eq!(meta.len(), size);
    assert!(meta.blocks() * 512 < 1 << 20, "{} blocks", meta.blocks());
    let back = fs::File::open(dir.path().join("out")).expect("opened");
    assert_eq!(store.put_large(back.as_fd(), size).expect("put"), Some(id));
}

#[test]
fn objects_of_the_user_outlive_their_folder_and_come_back() {
    let (dir, mut store) = store();
    let objects = dir.path().join("user/objects");
    fs::create_dir_all(objects.join("ab")).expect("made");
    let name = "c".repeat(38);
    fs::write(objects.join("ab").join(&name), "loose").expect("written");
    let mut seen = AreaState::default();
    store.link_area(&objects, true, &mut seen).expect("linked");
    fs::remove_dir_all(&objects).expect("removed");
    assert_eq!(relink(&mut store, &objects, Some(&mut seen)).expect("relinked").back, 1);
    assert_eq!(fs::read_to_string(objects.join("ab").join(&name)).expect("read"), "loose");
    assert_eq!(relink(&mut store, &objects, Some(&mut seen)).expect("relinked"), Relinked::default());
    fs::remove_dir_all(&objects).expect("removed");
    assert_eq!(relink(&mut store, &objects, None).expect("relinked").back, 1);
}

#[test]
fn objects_that_were_written_into_have_their_content_again() {
    let (dir, mut store) = store();
    let objects = dir.path().join("user/objects");
    fs::create_dir_all(objects.join("ab")).expect("made");
    let file = objects.join("ab").join("c".repeat(38));
    fs::write(&file, "loose").expect("written");
    let mut seen = AreaState::default();
    store.link_area(&objects, true, &mut seen).expect("linked");
    for garbage in ["garbage", "LOOSE"] {
        fs::write(&file, garbage).expect("written");
        assert_eq!(relink(&mut store, &objects, Some(&mut seen)).expect("relinked").mended, 1, "{garbage}");
        assert_eq!(fs::read_to_string(&file).expect("read"), "loose");
    }
    // git sets the times of objects that it meets again; that is nothing
    fs::File::open(&file).and_then(|file| file.set_modified(std::time::SystemTime::UNIX_EPOCH)).expect("set");
    assert_eq!(relink(&mut store, &objects, Some(&mut seen)).expect("relinked"), Relinked::default());
}
