//! The functions of a protocol, as lists, for protocols that pass calls on to another protocol:
//! [`Erased`](super::Erased) and, for histories, `Recorded`.

#![forbid(unsafe_code)]

/// Expands the macro `$each` once for each function of a trait (`Protocol`, `Absence`, `InPlace` or
/// `Versions`), or of `all` of them. The inner protocol is called `P`.
///
/// `$each` is given the type that has the function (`[P]` or `[P::Versions]`), the name of the
/// function, three lists of parameters, and the result. The second list has the part of the
/// protocol through which [`Erased`](super::Erased) finds the inner protocol. This list is empty if
/// that part is the clock of the context in the first list. The types of parameters are those that
/// [`type_of`] knows.
///
/// The lists leave out how a protocol's parts are made and described (`properties`, `policies`,
/// `clock` and `attempt`), the notes about scans, and the functions of a session's versions and of
/// a backlog. A function that the lists miss and that has a default is found by the lint
/// `missing_trait_methods`, where the macro is used.
macro_rules! for_each_function {
    (all: $each:ident) => {
        for_each_function! { Protocol: $each }
        for_each_function! { Absence: $each }
        for_each_function! { InPlace: $each }
        for_each_function! { Versions: $each }
    };
    (Protocol: $each:ident) => {
        for_each_function! { $each [P]
            begin [context: Context] [attempt: AttemptMut] [];
            read [context: Context] [attempt: AttemptMut] [at: CellAt, copy: Copy]
                -> Result<Seen, Abort>;
            read_at_once [] [attempt: AttemptMut] [at: CellAt, copy: Copy] -> Option<Seen>;
            read_for_update [context: Context] [attempt: AttemptMut] [at: CellAt, copy: Copy]
                -> Result<Seen, Abort>;
            hold [context: Context] [attempt: AttemptMut] [at: CellAt] -> Result<bool, Abort>;
            loosen [] [attempt: AttemptMut] [at: CellAt, range: NumberRange] -> bool;
            loosened [] [attempt: Attempt] [each: (&mut dyn FnMut(CellAt, u64))];
            lock_ahead [context: Context] [attempt: AttemptMut] [at: CellAt, writes: bool]
                -> Result<(), Abort>;
            lock_place [context: Context] [attempt: Attempt] [at: CellAt] -> Option<u64>;
            end_wait [context: Context] [] [at: CellAt];
            waits_to_link [context: Context] [attempt: Attempt] [table: u16] -> bool;
            finds_keys_late [context: Context] [attempt: Attempt] [table: u16] -> bool;
            is_permanent [context: Context] [attempt: AttemptMut] [at: CellAt] -> Result<bool, Abort>;
            assumes_blindly [context: Context] [] [at: CellAt] -> bool;
            is_present [] [attempt: Attempt] [at: CellAt] -> bool;
            assumes [context: Context] [attempt: AttemptMut] [at: CellAt, exists: bool]
                -> Result<bool, Abort>;
            stage [context: Context] [attempt: AttemptMut]
                [writes: WritesMut, at: CellAt, intent: Intent, op: Op] -> Result<(), Abort>;
            stage_new [context: Context] [attempt: AttemptMut]
                [writes: WritesMut, cells: Cells, operand: u32] -> Result<(), Abort>;
            revalidate [context: Context] [attempt: AttemptMut] [writes: Writes]
                -> Result<(), Abort>;
            commit [context: Context] [attempt: AttemptMut]
                [writes: WritesMut, turn: (&mut LogTurn<'_>)] -> Result<Committed, Abort>;
            commit_late [context: Context] [attempt: AttemptMut]
                [writes: WritesMut, turn: (&mut LogTurn<'_>)] -> Result<Committed, Abort>;
            changes [] [attempt: Attempt] [writes: Writes, sink: Sink];
            cut [] [clock: Clock] [epochs: (&Epochs)] -> u64;
            last_stamp [] [clock: Clock] [epochs: (&Epochs)] -> u64;
            seen_stamp [clock: Clock, epochs: (&Epochs)] [attempt: Attempt] [] -> u64;
            read_set_size [] [attempt: Attempt] [] -> usize;
            abort [context: Context] [attempt: AttemptMut] [writes: WritesMut];
            validate_without_writes [context: Context] [attempt: AttemptMut]
                [writes: Writes, images: (&mut Vec<u64>)] -> Result<Option<Abort>, Abort>;
            watch [context: Context] [attempt: AttemptMut] [watch: (&mut Watch<'_>)]
                -> Result<(), Unwatched>;
            begin_ts_bound [] [clock: Clock] [] -> u64;
            reach [context: Context] [attempt: AttemptMut] [time: u64, table: u16]
                -> Result<(), Abort>;
            prefetch [] [clock: Clock] [at: CellAt, first: usize, count: usize];
        }
    };
    (Absence: $each:ident) => {
        for_each_function! { $each [P]
            absent [context: Context] [attempt: AttemptMut] [missing: (Missing<'_>)]
                -> Result<(), Abort>;
            linked [] [attempt: AttemptMut] [node: NodeAt, before: u64, after: u64, first: CellAt];
            divided [] [attempt: AttemptMut] [change: (&NodeChange)];
            init_absent_cell [] [clock: Clock] [at: CellAt, flags: u64];
            inherit_from_node [] [clock: Clock] [node: NodeAt, at: CellAt];
            may_be_reaped [] [clock: Clock] [first: CellAt] -> bool;
            keep [context: Context] [] [first: CellAt] -> Result<bool, Abort>;
            enqueue_if_absent [] [clock: Clock] [first: CellAt] -> bool;
            reap [context: Context] []
                [due: (&mut Due), table: (&TableCore), units: (&[CellAt]), horizon: Epoch]
                -> GcOutcome;
            merge_into_node [] [clock: Clock] [node: NodeAt, at: CellAt];
            node_rts [] [clock: Clock] [node: NodeAt] -> u64;
            raise_node_rts [] [clock: Clock] [node: NodeAt, time: u64] -> bool;
            each_row [] [clock: Clock] [at: CellAt, each: (&mut dyn FnMut(&[AtomicU64]))];
            rts [] [clock: Clock] [at: CellAt] -> u64;
        }
    };
    (InPlace: $each:ident) => {
        for_each_function! { $each [P::InPlace]
            enter [] [clock: Clock] [until: (Option<Instant>)] -> Result<(), Abort>;
            leave [] [clock: Clock] [];
            has_failed [] [attempt: Attempt] [] -> bool;
            has_changed [] [attempt: Attempt] [] -> bool;
            mark [] [attempt: AttemptMut] [] -> usize;
            applied [] [attempt: Attempt] [] -> Applied;
            failure_since [] [attempt: AttemptMut] [since: Applied] -> Result<(), Failure>;
            fail [] [attempt: AttemptMut] [abort: Abort] -> bool;
            hide [] [attempt: AttemptMut] [at: CellAt] -> Option<Abort>;
            show [] [attempt: AttemptMut] [at: CellAt] -> Result<(), Failure>;
            undo_to [] [attempt: AttemptMut] [to: Applied];
            read_at_mark [context: Context] [attempt: AttemptMut]
                [at: CellAt, mark: usize, copy: Copy] -> Result<Seen, Abort>;
        }
    };
    (Versions: $each:ident) => {
        for_each_function! { $each [P::Versions]
            is_older [] [attempt: Attempt] [at: CellAt] -> bool;
            chain_length [clock: Clock] [attempt: Attempt] [at: CellAt] -> Option<usize>;
            make_room [context: Context] [attempt: Attempt] [table: (&TableCore)]
                -> Result<(), Abort>;
            open_snapshot [] [clock: Clock] [since: Moment] -> u64;
            open_again [] [clock: Clock] [ts: u64, since: Moment];
            close_snapshot [] [clock: Clock] [ts: u64, since: Moment];
            register_snapshot [clock: Clock] [attempt: Attempt] [since: Moment] -> Option<u64>;
            unregister_snapshot [] [clock: Clock] [ts: u64, since: Moment];
            oldest_snapshot [] [clock: Clock] [] -> Option<(u64, Moment)>;
            begin_walk [context: Context] [] [];
            end_walk [context: Context] [] [];
            approach [] [clock: Clock] [due: Cells];
            detach_for_snapshots [context: Context] []
                [due: (&Due), table: (&TableCore), units: (&[CellAt])] -> bool;
        }
    };
    ($each:ident $of:tt
        $($name:ident [$($before:tt)*] [$($part:tt)*] [$($after:tt)*] $(-> $result:ty)?;)+) => {
        $($each! { $of $name [$($before)*] [$($part)*] [$($after)*] $(-> $result)? })+
    };
}
pub(crate) use for_each_function;

/// Expands to the type of a parameter in the traits of a protocol.
macro_rules! type_of {
    (Context) => { &mut Context<'_, Self> };
    (Clock) => { &<Self as Parts>::Clock };
    (Attempt) => { &<Self as Parts>::Attempt };
    (AttemptMut) => { &mut <Self as Parts>::Attempt };
    (Writes) => { &WriteSet };
    (WritesMut) => { &mut WriteSet };
    (Copy) => { impl FnMut(Words<'_>) };
    (Sink) => { &mut impl ChangeSink };
    (Cells) => { impl Iterator<Item = CellAt> + Clone };
    (($($type:tt)+)) => { $($type)+ };
    ($type:ident) => { $type };
}
pub(crate) use type_of;
