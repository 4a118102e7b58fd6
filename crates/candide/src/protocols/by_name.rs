//! Protocols by name, for programs that choose one at run time.

#![forbid(unsafe_code)]

use super::erased::Chosen;
use crate::engine::Protocol;
use crate::unknown_name::UnknownName;
use std::str::FromStr;

macro_rules! by_name {
    ($($protocol:ty: $($_kind:ident $_name:ident = $policy:expr),+;)+) => {
        impl Chosen {
            /// Returns the names that [`Chosen::from_str`] accepts: those of the protocols, and of
            /// the policies of protocols that have several.
            ///
            /// ```
            /// let names = candide::any::Chosen::names();
            /// assert!(["occ", "2pl-wait-die", "mvcc", "global-lock"].iter().all(|name| names.contains(name)));
            /// ```
            pub fn names() -> Vec<&'static str> {
                vec![$($(<$protocol>::properties(&$policy).name),+),+]
            }

            // Compiled where it is called, since it refers to all protocols.
            #[inline]
            fn named(name: &str) -> Option<Chosen> {
                $(for policy in [$($policy),+] {
                    if <$protocol>::properties(&policy).name == name {
                        return Some(Chosen::of::<$protocol>(policy));
                    }
                })+
                None
            }
        }
    };
}
crate::for_each_protocol!(by_name);

impl FromStr for Chosen {
    type Err = UnknownName;

    /// Chooses the protocol, or the policy of a protocol, that is called `name`.
    ///
    /// ```
    /// use candide::any::{AnyDatabase, Chosen};
    ///
    /// let chosen: Chosen = "2pl-wait-die".parse()?;
    /// let db = AnyDatabase::builder().policy(chosen).memory_limit(64 << 20).build()?;
    /// assert_eq!(db.properties().name, "2pl-wait-die");
    /// # Ok::<(), candide::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`UnknownName`] if there is none. The error lists the names.
    #[inline]
    fn from_str(name: &str) -> Result<Chosen, UnknownName> {
        Chosen::named(name).ok_or_else(|| UnknownName::new("protocol", name, Chosen::names()))
    }
}
