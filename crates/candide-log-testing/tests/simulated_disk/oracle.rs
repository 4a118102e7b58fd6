//! All states that a crash can leave, found by brute force and straight from the definition.
//!
//! A script becomes a list of atoms: things that survive or not as a whole. An atom is certain if
//! a sync covers it. Every subset of the others is tried.

use super::Files;
use super::script::Step;
use std::collections::{BTreeMap, BTreeSet};

const SECTOR: usize = 512;

/// The most bytes of a file.
const SPACE: usize = 2048;

#[derive(Clone, Debug)]
enum Atom {
    Create { name: &'static str, file: usize },
    Rename { from: &'static str, to: &'static str },
    Remove { name: &'static str },
    Empty { file: usize },
    Size { file: usize, size: usize },
    Sector { file: usize, at: usize, bytes: Vec<u8> },
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Loose,
    Adrift,
    Certain,
}

/// What a script has done up to now.
#[derive(Default)]
pub(crate) struct Oracle {
    atoms: Vec<(Atom, Fate)>,
    names: BTreeMap<&'static str, usize>,
    files_made: usize,
}

impl Oracle {
    /// Takes note of a step.
    pub(crate) fn run(&mut self, step: &Step) {
        match step {
            Step::Create(name) => match self.names.get(name) {
                Some(&file) => self.add(Atom::Empty { file }),
                None => {
                    let file = self.files_made;
                    self.files_made += 1;
                    self.names.insert(name, file);
                    self.add(Atom::Create { name, file });
                }
            },
            Step::Write { name, offset, bytes } => self.write(name, *offset as usize, bytes),
            Step::Rename(from, to) => {
                let file = self.names.remove(from).unwrap();
                self.names.insert(to, file);
                self.add(Atom::Rename { from, to });
            }
            Step::Remove(name) => {
                self.names.remove(name);
                self.add(Atom::Remove { name });
            }
            Step::Sync(name) => self.turn(Some(self.names[name]), Fate::Certain),
            Step::FailSync(name) => self.turn(Some(self.names[name]), Fate::Adrift),
            Step::SyncDirectory => self.turn(None, Fate::Certain),
            Step::FailSyncDirectory => self.turn(None, Fate::Adrift),
        }
    }

    fn add(&mut self, atom: Atom) {
        self.atoms.push((atom, Fate::Loose));
    }

    fn write(&mut self, name: &str, offset: usize, bytes: &[u8]) {
        let (file, end) = (self.names[name], offset + bytes.len());
        self.add(Atom::Size { file, size: end });
        let mut at = offset;
        while at < end {
            let stop = end.min(at / SECTOR * SECTOR + SECTOR);
            let bytes = bytes[at - offset..stop - offset].to_vec();
            self.add(Atom::Sector { file, at, bytes });
            at = stop;
        }
    }

    /// Gives another fate to the loose atoms of a file, or of the directory.
    fn turn(&mut self, of: Option<usize>, to: Fate) {
        for (atom, fate) in &mut self.atoms {
            if atom.file() == of && *fate == Fate::Loose {
                *fate = to;
            }
        }
    }

    /// Returns the number of atoms that may survive or not.
    pub(crate) fn uncertain(&self) -> usize {
        self.atoms.iter().filter(|(_, fate)| *fate != Fate::Certain).count()
    }

    /// Returns all states that a crash can leave now.
    pub(crate) fn states(&self) -> BTreeSet<Files> {
        (0_u64..1 << self.uncertain()).map(|subset| self.state(subset)).collect()
    }

    /// Returns the state of which this is the subset of surviving atoms.
    pub(crate) fn state(&self, mut subset: u64) -> Files {
        let mut names: BTreeMap<&str, usize> = BTreeMap::new();
        let mut files = vec![(0, vec![0; SPACE]); self.files_made];
        for (atom, fate) in &self.atoms {
            if *fate != Fate::Certain {
                let survives = subset & 1 == 1;
                subset >>= 1;
                if !survives {
                    continue;
                }
            }
            match atom {
                Atom::Create { name, file } => _ = names.insert(name, *file),
                Atom::Rename { from, to } => {
                    if let Some(file) = names.remove(from) {
                        names.insert(to, file);
                    }
                }
                Atom::Remove { name } => _ = names.remove(name),
                Atom::Empty { file } => files[*file] = (0, vec![0; SPACE]),
                Atom::Size { file, size } => files[*file].0 = files[*file].0.max(*size),
                Atom::Sector { file, at, bytes } => {
                    files[*file].1[*at..at + bytes.len()].copy_from_slice(bytes);
                }
            }
        }
        let contents = |file: usize| files[file].1[..files[file].0].to_vec();
        names.into_iter().map(|(name, file)| (name.to_string(), contents(file))).collect()
    }
}

impl Atom {
    /// Returns the file that the atom belongs to, or `None` if it belongs to the directory.
    fn file(&self) -> Option<usize> {
        match self {
            Self::Empty { file } | Self::Size { file, .. } | Self::Sector { file, .. } => {
                Some(*file)
            }
            _ => None,
        }
    }
}
