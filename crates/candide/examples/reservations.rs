//! A reservation service: rooms, nights, guests and bookings; clients that book and cancel, and a
//! reporter beside them. The protocol is chosen on the command line.
//!
//! ```sh
//! cargo run --release -p candide --example reservations -- mvcc
//! ```

use candide::any::{AnyDatabase, AnyTable, Erased};
use candide::{Abort, Error, Key, Record, RunOptions, Text, Tx};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const ROOMS: u32 = 20;
const NIGHTS: u16 = 60;
const GUESTS: u32 = 50;
const CLIENTS: u64 = 3;
const REQUESTS: u64 = 1_500;
const CENTS_A_NIGHT: i64 = 80_00;

#[derive(Record, Clone, Copy, Debug)]
struct Room {
    #[key]
    number: u32,
    beds: u8,
}

/// A night for which a room is taken. The table is ordered, so that the nights of a room are a
/// range.
#[derive(Record, Clone, Copy, Debug)]
#[record(ordered)]
struct Night {
    #[key]
    room: u32,
    #[key]
    night: u16,
    booking: u64,
}

/// A guest. What a guest owes is a group of its own: a look at the name does not meet a booking.
#[derive(Record, Clone, Copy, Debug)]
struct Guest {
    #[key]
    id: u32,
    #[unique]
    email: Text<40>,
    #[group(account)]
    owes: i64,
}

#[derive(Key, Clone, Copy, Debug, PartialEq)]
enum State {
    Booked,
    Cancelled,
}

#[derive(Record, Clone, Copy, Debug)]
#[index(columns(guest, state))]
struct Booking {
    #[key]
    id: u64,
    guest: u32,
    room: u32,
    first: u16,
    nights: u16,
    state: State,
}

/// Why a request was refused. A closure returns it by `try_run`, since it converts from `Abort`.
#[derive(Debug, PartialEq)]
enum Refused {
    /// The room is taken in this night.
    Taken {
        night: u16,
    },
    UnknownGuest,
    NotBooked,
    /// The engine's reason.
    Engine(Abort),
}

impl From<Abort> for Refused {
    fn from(abort: Abort) -> Refused {
        Refused::Engine(abort)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Taken { night } => write!(f, "the room is taken in night {night}"),
            Refused::UnknownGuest => f.write_str("no guest has this address"),
            Refused::NotBooked => f.write_str("there is no such booking"),
            Refused::Engine(abort) => write!(f, "{abort}"),
        }
    }
}

impl std::error::Error for Refused {}

struct Hotel {
    db: AnyDatabase,
    rooms: AnyTable<Room>,
    nights: AnyTable<Night>,
    guests: AnyTable<Guest>,
    bookings: AnyTable<Booking>,
}

/// What a reporter sees, all of one moment.
#[derive(Debug)]
struct Report {
    booked: usize,
    nights: usize,
    owed: i64,
}

impl Hotel {
    fn open(db: AnyDatabase) -> Result<Hotel, Error> {
        let hotel = Hotel {
            rooms: db.table("rooms")?,
            nights: db.table("nights")?,
            guests: db.table("guests")?,
            bookings: db.table("bookings")?,
            db,
        };
        hotel.db.run(|tx| {
            let rooms = (1..=ROOMS).map(|number| Room { number, beds: 2 });
            hotel.rooms.insert_many(tx, rooms)?;
            for id in 1..=GUESTS {
                hotel.guests.insert(tx, Guest { id, email: Text::new(&email(id))?, owes: 0 })?;
            }
            Ok(())
        })?;
        Ok(hotel)
    }

    /// Books a room for some nights, all of them or none.
    fn book(
        &self,
        id: u64,
        email: &str,
        room: u32,
        first: u16,
        nights: u16,
    ) -> Result<(), Refused> {
        let by_email = self.guests.index(Guest::BY_EMAIL);
        self.db.with(RunOptions::new().named("book")).try_run(|tx| {
            let guest = by_email.find(tx, email)?.ok_or(Refused::UnknownGuest)?;
            self.rooms.read(tx, room, Room::BEDS)?;
            // The scan also sees that no night is taken while this transaction runs.
            let mut taken = self.nights.scan(tx, (room, first)..(room, first + nights), ());
            if let Some(((_, night), ())) = taken.next().transpose()? {
                return Err(Refused::Taken { night });
            }
            let all = (first..first + nights).map(|night| Night { room, night, booking: id });
            self.nights.insert_many(tx, all)?;
            guest.update(Guest::OWES.add(CENTS_A_NIGHT * i64::from(nights)))?;
            let guest = *guest.key();
            let state = State::Booked;
            Ok(self.bookings.insert(tx, Booking { id, guest, room, first, nights, state })?)
        })
    }

    fn cancel(&self, id: u64) -> Result<(), Refused> {
        self.db.with(RunOptions::new().named("cancel")).try_run(|tx| {
            let booking = self.bookings.get(tx, id, candide::Whole)?;
            let booking = booking.filter(|booking| booking.state == State::Booked);
            let Booking { guest, room, first, nights, .. } = booking.ok_or(Refused::NotBooked)?;
            self.bookings.modify(tx, id, Booking::STATE, |state| *state = State::Cancelled)?;
            for night in first..first + nights {
                self.nights.delete(tx, (room, night))?;
            }
            self.guests.update(tx, guest, Guest::OWES.sub(CENTS_A_NIGHT * i64::from(nights)))?;
            Ok(())
        })
    }

    /// Counts everything in one moment: by a snapshot, if the protocol has them.
    fn report(&self) -> Result<Report, Abort> {
        self.db.read_view(|tx| self.count(tx))
    }

    fn count(&self, tx: &Tx<'_, Erased>) -> Result<Report, Abort> {
        let mut booked = 0;
        let mut nights = 0;
        for row in self.bookings.iter(tx, (Booking::STATE, Booking::NIGHTS)) {
            let (_, (state, count)) = row?;
            if state == State::Booked {
                booked += 1;
                nights += usize::from(count);
            }
        }
        assert_same(tx, nights, self.nights.len(tx)?)?;
        Ok(Report { booked, nights, owed: self.guests.sum(tx, Guest::OWES)? })
    }

    /// Returns the bookings of a guest that stand.
    fn bookings_of(&self, guest: u32) -> Result<Vec<u64>, Abort> {
        let by_guest = self.bookings.index(Booking::BY_GUEST_STATE);
        self.db.run(|tx| {
            let rows = by_guest.rows(tx, (guest, State::Booked), ());
            rows.map(|row| Ok(row?.0)).collect()
        })
    }
}

/// Asserts something about what the closure has read. Under some protocols an attempt that is
/// going to be repeated may have read values of different moments; `validate` ends it before the
/// assertion.
fn assert_same(tx: &Tx<'_, Erased>, left: usize, right: usize) -> Result<(), Abort> {
    tx.validate()?;
    assert_eq!(left, right, "nights of bookings, and nights that are taken");
    Ok(())
}

fn email(guest: u32) -> String {
    format!("guest{guest}@example.org")
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let protocol = std::env::args().nth(1).unwrap_or_else(|| "occ".to_string());
    let hotel = Hotel::open(AnyDatabase::choose(&protocol)?)?;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                scope.spawn({
                    let hotel = &hotel;
                    move || work(hotel, client)
                })
            })
            .collect();
        let reporter = scope.spawn(|| {
            let mut reports = 0;
            while !is_over.load(Ordering::Relaxed) {
                let Report { nights, owed, .. } = hotel.report().expect("nothing limits it");
                assert_eq!(owed, nights as i64 * CENTS_A_NIGHT);
                reports += 1;
            }
            reports
        });
        let refused: usize = clients.into_iter().map(|client| client.join().unwrap()).sum();
        is_over.store(true, Ordering::Relaxed);
        println!("{refused} requests refused, {} reports beside them", reporter.join().unwrap());
    });
    let Report { booked, nights, owed } = hotel.report()?;
    println!("{booked} bookings of {nights} nights, {owed} cents owed");
    println!("guest 7 has the bookings {:?}", hotel.bookings_of(7)?);
    for stats in hotel.db.named_stats() {
        println!("{stats:?}");
    }
    let unknown = hotel.book(0, "unknown@example.org", 1, 1, 1);
    assert_eq!(unknown, Err(Refused::UnknownGuest));
    Ok(())
}

/// Sends requests, and returns how many were refused.
fn work(hotel: &Hotel, client: u64) -> usize {
    let mut random = client + 1;
    let mut below = |bound: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) % bound
    };
    let mut refused = 0;
    for request in 0..REQUESTS {
        let id = client * REQUESTS + request + 1;
        let (guest, room) = (below(GUESTS.into()) as u32 + 1, below(ROOMS.into()) as u32 + 1);
        let (first, nights) = (below((NIGHTS - 7).into()) as u16, below(7) as u16 + 1);
        let done = match below(3) {
            0 => hotel.cancel(client * REQUESTS + below(request + 1)),
            _ => hotel.book(id, &email(guest), room, first, nights),
        };
        match done {
            Ok(()) => {}
            Err(Refused::Engine(abort)) => panic!("{abort}"),
            Err(_) => refused += 1,
        }
    }
    refused
}
