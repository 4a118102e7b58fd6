//! The header of an object, and the bytes of an object as a whole.

#![forbid(unsafe_code)]

use candide_log::format::{Fault, Malformed, Uuid};

/// The number of bytes of an object's header.
pub const HEADER_BYTES: usize = 128;
/// The version of the format.
pub const VERSION: u32 = 1;
/// The most bytes that the catalog and the payload of an object have together.
pub const CONTENT_BYTES_MAX: usize = 1 << 30;

const MAGIC_BYTES: &[u8; 8] = b"candiOBJ";
const CRC_BYTES: usize = 4;

/// A field of the header. Tests compare the places with `docs/file-format.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// The name that the document uses.
    pub name: &'static str,
    /// The place, in bytes from the beginning of the object.
    pub offset: usize,
    /// The size in bytes.
    pub size: usize,
}

const fn field(name: &'static str, offset: usize, size: usize) -> Field {
    Field { name, offset, size }
}

const MAGIC: Field = field("magic", 0, 8);
const FORMAT: Field = field("format version", 8, 4);
const KIND: Field = field("kind", 12, 4);
const DATABASE: Field = field("database", 16, 16);
const GENERATION: Field = field("generation", 32, 8);
const PLACE: Field = field("place", 40, 8);
const PART: Field = field("part", 48, 4);
const BEFORE_CRC: Field = field("before: CRC", 52, 4);
const BEFORE_GENERATION: Field = field("before: generation", 56, 8);
const BEFORE_PLACE: Field = field("before: place", 64, 8);
const CUT: Field = field("cut", 72, 8);
const STAMP_GENERATION: Field = field("stamp generation", 80, 8);
const FLOOR_GENERATION: Field = field("floor: generation", 88, 8);
const FLOOR_NUMBER: Field = field("floor: number", 96, 8);
const NUMBER: Field = field("number", 104, 8);
const TIME: Field = field("time", 112, 8);
const CATALOG: Field = field("catalog length", 120, 4);
const PAYLOAD: Field = field("payload length", 124, 4);

/// The fields of the header.
pub const FIELDS: &[Field] = &[
    MAGIC,
    FORMAT,
    KIND,
    DATABASE,
    GENERATION,
    PLACE,
    PART,
    BEFORE_CRC,
    BEFORE_GENERATION,
    BEFORE_PLACE,
    CUT,
    STAMP_GENERATION,
    FLOOR_GENERATION,
    FLOOR_NUMBER,
    NUMBER,
    TIME,
    CATALOG,
    PAYLOAD,
];

impl Field {
    fn get(self, bytes: &[u8]) -> u64 {
        let mut number = [0; 8];
        number[..self.size].copy_from_slice(&bytes[self.offset..self.offset + self.size]);
        u64::from_le_bytes(number)
    }

    fn get_u32(self, bytes: &[u8]) -> u32 {
        debug_assert_eq!(self.size, 4);
        self.get(bytes) as u32
    }

    fn put(self, bytes: &mut [u8], number: u64) {
        debug_assert!(self.size == 8 || number >> (8 * self.size) == 0, "{}", self.name);
        let field = &mut bytes[self.offset..self.offset + self.size];
        field.copy_from_slice(&number.to_le_bytes()[..self.size]);
    }

    fn wrong(self, what: impl Into<String>) -> Malformed {
        Malformed::new(self.offset as u64, what.into())
    }
}

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The claim of a process to lead a generation.
    Claim = 1,
    /// Commit records, and what has changed in the catalog before them.
    Block = 2,
    /// The end of a generation's log, which a later leader has created.
    End = 3,
    /// A part of a snapshot.
    Part = 4,
    /// The statement that a snapshot is complete.
    Floor = 5,
    /// The end of a generation's floors, which a later leader has created.
    Seal = 6,
    /// A snapshot in the log, which stands for all that was before it: its parts are there.
    Restart = 7,
}

impl Kind {
    const ALL: [Kind; 7] =
        [Kind::Claim, Kind::Block, Kind::End, Kind::Part, Kind::Floor, Kind::Seal, Kind::Restart];

    /// Returns whether objects of this kind are in the logs.
    pub fn is_logged(self) -> bool {
        matches!(self, Kind::Block | Kind::End | Kind::Restart)
    }
}

/// An object of a log, as those behind it name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct Link {
    /// The generation. 0 means that there is no object.
    pub generation: u64,
    /// The place in the log of the generation, from 1; 0 without an object.
    pub place: u64,
    /// The CRC of the object; 0 without an object.
    pub crc: u32,
}

impl Link {
    /// What names no object: what the first object of a database comes behind.
    pub const NONE: Link = Link { generation: 0, place: 0, crc: 0 };
}

/// The number of a floor: its generation, and its place among the floors of the generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct FloorNumber {
    /// The generation; 0 if there is no floor.
    pub generation: u64,
    /// The number within the generation, from 1; 0 if there is no floor.
    pub number: u64,
}

/// What an object says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// What the object is.
    pub kind: Kind,
    /// The identity of the database.
    pub database: Uuid,
    /// The generation in whose name the object lies, from 1.
    pub generation: u64,
    /// The place in the log (a block, an end), that of the snapshot (a part), or the number among
    /// the floors (a floor, a seal); 0 for a claim.
    pub place: u64,
    /// The number of a part from 0; the number of parts of the snapshot that a floor or a restart
    /// names.
    pub part: u32,
    /// The object of the log before a block, an end or a restart; the last one that a snapshot
    /// contains. For a part other than the first, the CRC is that of the part before; for the first
    /// part of a restart's snapshot, it is 0.
    pub before: Link,
    /// The cut that a block closes, and up to which a snapshot has the log.
    pub cut: u64,
    /// The generation of the local log to which the cut and the stamps of the records belong.
    pub stamp_generation: u64,
    /// The newest floor that the leader knew when it wrote a block or a restart.
    pub floor: FloorNumber,
    /// The random number of a claim; the claimed generation of the creator of an end or a seal; the
    /// CRC of the last part, of a floor and a restart; of a block, how many objects before it were
    /// not known to be there when it was made.
    pub number: u64,
    /// When the object was made, in milliseconds since 1970. For people only.
    pub time: u64,
}

impl Header {
    /// Returns the header of an object of which nothing more is known.
    pub fn new(kind: Kind, database: Uuid, generation: u64, place: u64) -> Header {
        Header {
            kind,
            database,
            generation,
            place,
            part: 0,
            before: Link::NONE,
            cut: 0,
            stamp_generation: 0,
            floor: FloorNumber::default(),
            number: 0,
            time: 0,
        }
    }

    /// Returns the bytes of the object with this header.
    ///
    /// # Panics
    /// The catalog and the payload are longer than [`CONTENT_BYTES_MAX`].
    pub fn encode(&self, catalog: &[u8], payload: &[u8]) -> Vec<u8> {
        let content = catalog.len() + payload.len();
        assert!(content <= CONTENT_BYTES_MAX, "an object of {content} bytes is too long");
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[..8].copy_from_slice(MAGIC_BYTES);
        bytes[DATABASE.offset..DATABASE.offset + DATABASE.size].copy_from_slice(&self.database);
        let numbers = [
            (FORMAT, VERSION.into()),
            (KIND, self.kind as u64),
            (GENERATION, self.generation),
            (PLACE, self.place),
            (PART, self.part.into()),
            (BEFORE_CRC, self.before.crc.into()),
            (BEFORE_GENERATION, self.before.generation),
            (BEFORE_PLACE, self.before.place),
            (CUT, self.cut),
            (STAMP_GENERATION, self.stamp_generation),
            (FLOOR_GENERATION, self.floor.generation),
            (FLOOR_NUMBER, self.floor.number),
            (NUMBER, self.number),
            (TIME, self.time),
            (CATALOG, catalog.len() as u64),
            (PAYLOAD, payload.len() as u64),
        ];
        numbers.iter().for_each(|(field, number)| field.put(&mut bytes, *number));
        bytes.reserve_exact(content + CRC_BYTES);
        bytes.extend_from_slice(catalog);
        bytes.extend_from_slice(payload);
        let crc = crc32c::crc32c(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        bytes
    }
}

/// An object that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// What the object says of itself.
    pub header: Header,
    /// The CRC of the object.
    pub crc: u32,
    bytes: Vec<u8>,
    catalog_bytes: usize,
}

impl Object {
    /// Reads an object. Its length is checked before the CRC, and the CRC before the version, so
    /// damage is not taken for another version.
    ///
    /// # Errors
    /// The bytes are no object of this version, or damaged.
    pub fn decode(bytes: Vec<u8>) -> Result<Object, Malformed> {
        let length = bytes.len();
        if length < HEADER_BYTES + CRC_BYTES {
            let what = format!("an object ends after {length} bytes");
            return Err(Malformed::new(length as u64, what).with(Fault::Short));
        }
        if &bytes[..8] != MAGIC_BYTES {
            return Err(MAGIC.wrong("this is no object").with(Fault::Magic));
        }
        let (contents, crc) = bytes.split_at(length - CRC_BYTES);
        let stated = field("", 0, 4).get_u32(crc);
        let crc = crc32c::crc32c(contents);
        if crc != stated {
            let what =
                format!("the CRC of the object is {crc:#010x}, and it states {stated:#010x}");
            return Err(Malformed::new(contents.len() as u64, what));
        }
        let found = FORMAT.get_u32(&bytes);
        if found != VERSION {
            let what = format!("the object has version {found} of the format; {VERSION} is known");
            return Err(FORMAT.wrong(what).with(Fault::Version { found, known: VERSION }));
        }
        let (catalog, payload) = (CATALOG.get(&bytes) as usize, PAYLOAD.get(&bytes) as usize);
        if HEADER_BYTES + catalog + payload + CRC_BYTES != length {
            return Err(CATALOG.wrong(format!(
                "a catalog of {catalog} bytes and a payload of {payload} do not make an object of \
                 {length}"
            )));
        }
        let header = read_header(&bytes)?;
        Ok(Object { header, crc, bytes, catalog_bytes: catalog })
    }

    /// Returns what has changed in the catalog since the object before; for a part, the whole.
    pub fn catalog(&self) -> &[u8] {
        &self.bytes[HEADER_BYTES..HEADER_BYTES + self.catalog_bytes]
    }

    /// Returns the payload.
    pub fn payload(&self) -> &[u8] {
        &self.bytes[HEADER_BYTES + self.catalog_bytes..self.bytes.len() - CRC_BYTES]
    }

    /// Returns the number of bytes of the whole object.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the place of the last object of the log that was known to be there, with all before
    /// it, when this one of the same log was made.
    pub(crate) fn known_before(&self) -> u64 {
        let Header { kind, place, number, .. } = self.header;
        place - 1 - if kind == Kind::Block { number } else { 0 }
    }

    /// Returns a restart as a floor that names its snapshot. It has no number.
    pub(crate) fn as_floor(&self) -> Object {
        let header = Header { kind: Kind::Floor, place: 0, before: self.link(), ..self.header };
        Object { header, ..self.clone() }
    }

    /// Returns how the objects behind this one name it, if it is one of a log.
    pub fn link(&self) -> Link {
        let Header { generation, place, .. } = self.header;
        Link { generation, place, crc: self.crc }
    }
}

fn read_header(bytes: &[u8]) -> Result<Header, Malformed> {
    let kind = KIND.get(bytes);
    let Some(kind) = Kind::ALL.into_iter().find(|known| *known as u64 == kind) else {
        return Err(KIND.wrong(format!("there is no kind {kind} of objects")));
    };
    let mut database = Uuid::default();
    database.copy_from_slice(&bytes[DATABASE.offset..DATABASE.offset + DATABASE.size]);
    let header = Header {
        kind,
        database,
        generation: GENERATION.get(bytes),
        place: PLACE.get(bytes),
        part: PART.get_u32(bytes),
        before: Link {
            generation: BEFORE_GENERATION.get(bytes),
            place: BEFORE_PLACE.get(bytes),
            crc: BEFORE_CRC.get_u32(bytes),
        },
        cut: CUT.get(bytes),
        stamp_generation: STAMP_GENERATION.get(bytes),
        floor: FloorNumber {
            generation: FLOOR_GENERATION.get(bytes),
            number: FLOOR_NUMBER.get(bytes),
        },
        number: NUMBER.get(bytes),
        time: TIME.get(bytes),
    };
    check_header(&header)?;
    Ok(header)
}

/// Checks that the fields that mean nothing for this kind of objects are zeros, and that numbers
/// count from where they should.
fn check_header(header: &Header) -> Result<(), Malformed> {
    let kind = header.kind;
    let zero = |field: Field, number: u64| match number {
        0 => Ok(()),
        _ => Err(field.wrong(format!("{} of {kind:?} is {number} instead of 0", field.name))),
    };
    let positive = |field: Field, number: u64| match number {
        0 => Err(field.wrong(format!("{} of {kind:?} is 0", field.name))),
        _ => Ok(()),
    };
    positive(GENERATION, header.generation)?;
    if kind == Kind::Claim {
        zero(PLACE, header.place)?;
    } else {
        positive(PLACE, header.place)?;
    }
    match kind {
        Kind::Part => {}
        Kind::Floor | Kind::Restart => positive(PART, header.part.into())?,
        _ => zero(PART, header.part.into())?,
    }
    if matches!(kind, Kind::Claim | Kind::Seal) {
        zero(BEFORE_CRC, header.before.crc.into())?;
        zero(BEFORE_GENERATION, header.before.generation)?;
        zero(BEFORE_PLACE, header.before.place)?;
    }
    if !matches!(kind, Kind::Block | Kind::Part | Kind::Floor | Kind::Restart) {
        zero(CUT, header.cut)?;
        zero(STAMP_GENERATION, header.stamp_generation)?;
    }
    if !matches!(kind, Kind::Block | Kind::Restart) {
        zero(FLOOR_GENERATION, header.floor.generation)?;
        zero(FLOOR_NUMBER, header.floor.number)?;
    }
    match kind {
        Kind::Claim | Kind::End | Kind::Seal => positive(NUMBER, header.number)?,
        Kind::Part => zero(NUMBER, header.number)?,
        Kind::Block if header.number >= header.place => {
            let (number, place) = (header.number, header.place);
            return Err(NUMBER.wrong(format!("number of Block {place} is {number}")));
        }
        Kind::Block | Kind::Floor | Kind::Restart => {}
    }
    Ok(())
}
