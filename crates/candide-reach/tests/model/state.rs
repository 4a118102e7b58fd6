//! A state of the model: what the place has, what is on its way to it, and what each process knows.

/// The largest generation.
pub const GENERATIONS: usize = 3;
/// The largest place of a log's object, of which the last one has room for an end only.
pub const PLACES: usize = 4;

/// The first opening of the database, which leads generation 1 at the beginning.
pub const PRIMARY: usize = 0;
/// A process that is promoted without having followed.
pub const NEWCOMER: usize = 1;
/// A process that follows, and may be promoted at any time.
pub const STANDBY: usize = 2;

/// A list of blocks: four bits for each, the first one lowest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct List(u64);

impl List {
    pub fn len(self) -> u32 {
        (u64::BITS - self.0.leading_zeros()).div_ceil(4)
    }

    pub fn push(self, block: u8) -> List {
        List(self.0 | u64::from(block) << (4 * self.len()))
    }

    pub fn blocks(self) -> impl Iterator<Item = u8> {
        (0..self.len()).map(move |at| (self.0 >> (4 * at) & 15) as u8)
    }

    pub fn last(self) -> u8 {
        self.blocks().last().unwrap_or(0)
    }

    pub fn contains(self, block: u8) -> bool {
        self.blocks().any(|other| other == block)
    }

    pub fn is_prefix_of(self, other: List) -> bool {
        let mask = (1_u64 << (4 * self.len())) - 1;
        self.len() <= other.len() && self.0 == other.0 & mask
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// An object of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Logged {
    #[default]
    Free,
    Block(u8),
    /// The end of a generation, by the claimant of another.
    End(u8),
}

/// An object among the floors of a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Floored {
    #[default]
    Free,
    /// The snapshot up to this place of the generation is complete.
    Floor(u8),
    /// The generation has no further floor, by the claimant of another.
    Seal(u8),
}

/// A place of the log: the generation and the place within it. 0 is before all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct At {
    pub generation: u8,
    pub place: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Phase {
    #[default]
    Idle,
    /// Reads the log as blocks come.
    Following,
    /// Has offered a claim and does not know its fate.
    Claiming,
    Sealing,
    /// Reads the logs of earlier generations and ends each.
    Closing,
    Leading,
    /// Has crashed and may come back.
    Down,
    /// Is superseded, has met a leader, or refuses to go on.
    Stopped,
}

/// A process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Node {
    pub phase: Phase,
    /// The generation that it has claimed or wants to.
    pub claim: u8,
    /// What its claims carry.
    pub number: u8,
    /// What it has read or, as leader, knows to be in the place.
    pub list: List,
    /// What the directory has, sent or not.
    pub local: List,
    /// The length of `list` when it last acknowledged.
    pub known: u8,
    /// The number of its new blocks in this generation.
    pub fresh: u8,
    /// What it reads next of the log.
    pub next: At,
    /// What it looks at while it seals.
    pub cursor: At,
    /// What it was about to read as a follower when it was promoted.
    pub own: At,
    /// The newest floor that it has met.
    pub floor: At,
    /// The end that it has gone past, whose successor it has not seen: place and claimant.
    pub passed: Option<(u8, u8)>,
    pub offered: u8,
    pub acknowledged: u8,
    /// The number of its own floors, and the place of the newest.
    pub floors: u8,
    pub floored: u8,
}

impl Node {
    /// Returns what a process does until a claim of its own exists.
    pub fn phase_before_claim(&self) -> Phase {
        match self.number {
            2..=3 => Phase::Down,
            number if number == number_of(STANDBY, 0) => Phase::Following,
            _ => Phase::Idle,
        }
    }
}

/// Requests on their way to one name: a bit for each content.
pub type Requests = u8;

/// The request with a leader's own content.
pub const OWN: Requests = 1;
/// The request with the content that a leader offers instead, which only a mutant does.
pub const OTHER: Requests = 2;

/// Returns the request with an end or a seal by a claimant.
pub fn by(claimant: u8) -> Requests {
    2 << claimant
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct State {
    /// The process that has created each claim, by its number; 0 is free.
    pub claims: [u8; GENERATIONS + 1],
    pub log: [[Logged; PLACES + 1]; GENERATIONS + 1],
    pub floors: [[Floored; 3]; GENERATIONS + 1],
    /// The blocks of each snapshot, by generation and place.
    pub snapshots: [[List; PLACES + 1]; GENERATIONS + 1],
    pub claiming: [Requests; GENERATIONS + 1],
    pub logging: [[Requests; PLACES + 1]; GENERATIONS + 1],
    pub flooring: [[Requests; 3]; GENERATIONS + 1],
    /// The block that the leader of a generation has offered for a place.
    pub blocks: [[u8; PLACES + 1]; GENERATIONS + 1],
    /// The place that a leader's floor names.
    pub named: [[u8; 3]; GENERATIONS + 1],
    /// The end of a generation that each claimant has read: place and claimant. What the claimant
    /// writes next names it.
    pub ends: [[(u8, u8); GENERATIONS + 1]; GENERATIONS + 1],
    /// The newest floor that each leader has read from, which its blocks name.
    pub bases: [At; GENERATIONS + 1],
    pub nodes: [Node; 3],
    /// The block behind which each block was written.
    pub behind: [u8; 16],
    /// A bit for each block that was acknowledged in a generation.
    pub acknowledged: [u16; GENERATIONS + 1],
    pub restarts: u8,
}

impl State {
    /// Returns the state in which the primary leads generation 1, without blocks.
    pub fn first() -> State {
        let mut state = State::default();
        state.claims[1] = number_of(PRIMARY, 0);
        let primary = &mut state.nodes[PRIMARY];
        (primary.phase, primary.claim, primary.number) = (Phase::Leading, 1, number_of(PRIMARY, 0));
        state.nodes[NEWCOMER].number = number_of(NEWCOMER, 0);
        let standby = &mut state.nodes[STANDBY];
        standby.phase = Phase::Following;
        standby.number = number_of(STANDBY, 0);
        standby.next = At { generation: 1, place: 1 };
        state
    }

    /// Returns the largest number of a claim.
    pub fn newest(&self) -> u8 {
        self.claims.iter().skip(1).take_while(|number| **number != 0).count() as u8
    }

    pub fn logged(&self, at: At) -> Logged {
        self.log[at.generation as usize][at.place as usize]
    }
}

/// Returns what the claims of a process carry, which is new at each opening.
pub fn number_of(node: usize, restarts: u8) -> u8 {
    match node {
        PRIMARY => 1 + restarts,
        node => 4 + node as u8,
    }
}

/// Returns whether the primary's directory has this number, after any number of openings.
pub fn is_of_primary(number: u8) -> bool {
    (1..=3).contains(&number)
}
