//! Primaries that end before any of their requests: the next opening finds all that was
//! acknowledged, and so does a process that is promoted.

use crate::promoted::{add, follow_on, reopen};
use crate::rows::{counts, read};
use crate::snapshots::{briefly, open_alone};
use crate::{Item, claim_with_rows, insert, open, uuid};
use candide_log_testing::SimDisk;
use candide_reach::sim::SimPlace;
use candide_reach::tools::verify;
use candide_reach::{Patience, Place, Promoted};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// What the end of a process leaves.
struct Image {
    disk: SimDisk,
    place: SimPlace,
    /// The number of rows that had been acknowledged.
    acknowledged: u64,
}

/// A directory and a place of which an image is made before each request.
struct Scene {
    disk: SimDisk,
    place: SimPlace,
    acknowledged: Arc<AtomicU64>,
    images: Arc<Mutex<Vec<Image>>>,
}

pub fn copy(place: &SimPlace) -> SimPlace {
    let to = SimPlace::new(7);
    for name in place.names() {
        if let Some(bytes) = place.read(&name).unwrap() {
            to.create(&name, &bytes).unwrap();
        }
    }
    to
}

fn scene() -> Scene {
    let (disk, place) = (SimDisk::default(), SimPlace::new(1));
    Scene { disk, place, acknowledged: Arc::default(), images: Arc::default() }
}

impl Scene {
    /// Returns the place, of which an image is made before each request.
    fn watched(&self) -> SimPlace {
        let (disk, place) = (self.disk.clone(), self.place.clone());
        let (acknowledged, images) = (self.acknowledged.clone(), self.images.clone());
        self.place.with_hook(move |_| {
            let mut images = images.lock().unwrap();
            // The files and the objects are those of one moment.
            loop {
                let acknowledged = acknowledged.load(Ordering::SeqCst);
                let position = disk.position();
                let place = copy(&place);
                if disk.position() == position {
                    images.push(Image { disk: disk.at(position), place, acknowledged });
                    return;
                }
            }
        })
    }

    fn acknowledge(&self) {
        self.acknowledged.fetch_add(1, Ordering::SeqCst);
    }

    /// Checks that, of all images, a process that is promoted has what was acknowledged. Returns
    /// them.
    fn check_place(&self, database: [u8; 16]) -> Vec<Image> {
        let images = std::mem::take(&mut *self.images.lock().unwrap());
        assert!(images.len() > 20, "{}", images.len());
        for (number, Image { place, acknowledged, .. }) in images.iter().enumerate() {
            let (_, rows) = claim_with_rows(&copy(place), database);
            assert!(rows.rows.len() as u64 >= *acknowledged, "image {number}: {rows:?}");
        }
        images
    }

    /// Checks all images.
    fn check(self, database: [u8; 16]) {
        let images = self.check_place(database);
        for (number, Image { disk, place, acknowledged }) in images.into_iter().enumerate() {
            let (db, items) =
                open(&disk, &place, briefly()).unwrap_or_else(|e| panic!("image {number}: {e}"));
            insert(&db, &items, 1_000_000).unwrap();
            let here = db.run(|tx| items.iter(tx, ()).count()).unwrap();
            assert!(here as u64 > acknowledged, "image {number}");
            assert_eq!(counts(&place, uuid(&db)).len(), here, "image {number}");
            db.checkpoint().unwrap();
            let (rows, _) = read(&place, uuid(&db));
            assert_eq!((rows.rows.len(), rows.snapshots), (here, 1), "image {number}");
            let verified = verify(Arc::new(place), Patience::default()).unwrap();
            assert_eq!(verified.faults, [], "image {number}");
        }
    }
}

#[test]
fn a_primary_may_end_before_any_request_of_a_snapshot() {
    let scene = scene();
    let mut database = [0; 16];
    for round in 0..2 {
        let (db, items) = open(&scene.disk, &scene.watched(), briefly()).unwrap();
        database = uuid(&db);
        for id in 0..4 {
            insert(&db, &items, 100 * round + id).unwrap();
            scene.acknowledge();
            if id % 2 == 1 {
                db.checkpoint().unwrap();
            }
        }
        drop((db, items));
    }
    scene.check(database);
}

#[test]
fn a_directory_may_end_before_any_request_of_its_first_snapshot() {
    let scene = scene();
    let (db, items) = open_alone(&scene.disk);
    for id in 0..3 {
        db.run(|tx| items.insert(tx, Item { id, count: 0 })).unwrap();
    }
    db.checkpoint().unwrap();
    db.run(|tx| items.insert(tx, Item { id: 10, count: 0 })).unwrap();
    drop((db, items));
    let (db, items) = open(&scene.disk, &scene.watched(), briefly()).unwrap();
    let database = uuid(&db);
    insert(&db, &items, 20).unwrap();
    scene.acknowledged.fetch_add(5, Ordering::SeqCst);
    db.checkpoint().unwrap();
    drop((db, items));
    scene.check(database);
}

#[test]
fn a_directory_that_comes_back_may_end_before_any_request_of_its_restart() {
    let scene = scene();
    let (db, items) = open(&scene.disk, &scene.place, briefly()).unwrap();
    let database = uuid(&db);
    insert(&db, &items, 0).unwrap();
    scene.acknowledge();
    drop((db, items));
    let (db, items) = open_alone(&scene.disk);
    db.run(|tx| items.insert(tx, Item { id: 10, count: 0 })).unwrap();
    db.checkpoint().unwrap();
    db.run(|tx| items.insert(tx, Item { id: 20, count: 0 })).unwrap();
    drop((db, items));
    let (db, items) = open(&scene.disk, &scene.watched(), briefly()).unwrap();
    insert(&db, &items, 30).unwrap();
    scene.acknowledged.fetch_add(3, Ordering::SeqCst);
    db.checkpoint().unwrap();
    drop((db, items));
    scene.check(database);
}

#[test]
fn a_standby_may_end_before_any_request_of_its_promotion() {
    let scene = scene();
    let (db, items) = open(&SimDisk::default(), &scene.place, briefly()).unwrap();
    let database = uuid(&db);
    (0..3).for_each(|id| insert(&db, &items, id).unwrap());
    scene.acknowledged.fetch_add(3, Ordering::SeqCst);
    drop((db, items));
    let Promoted { database: db, .. } =
        follow_on(&scene.watched(), &scene.disk).unwrap().promote().unwrap();
    let items = db.table::<Item>("items").unwrap();
    for id in 10..13 {
        add(&db, &items, id).unwrap();
        scene.acknowledge();
    }
    db.checkpoint().unwrap();
    drop((db, items));
    let images = scene.check_place(database);
    let mut led = 0;
    for (number, Image { disk, place, acknowledged }) in images.into_iter().enumerate() {
        let (db, items) = match reopen(&place, &disk) {
            Ok(opened) => {
                led += 1;
                opened
            }
            // It has not led yet, and follows again.
            Err(_) => {
                let standby = follow_on(&place, &disk);
                let standby = standby.unwrap_or_else(|error| panic!("image {number}: {error}"));
                let promoted = standby.promote();
                let db = promoted.unwrap_or_else(|e| panic!("image {number}: {e}")).database;
                let items = db.table::<Item>("items").unwrap();
                (db, items)
            }
        };
        add(&db, &items, 1_000_000).unwrap();
        let here = db.run(|tx| items.iter(tx, ()).count()).unwrap();
        assert!(here as u64 > acknowledged, "image {number}");
        assert_eq!(counts(&place, database).len(), here, "image {number}");
    }
    assert!(led > 5, "{led}");
}
