//! Asking clients what they were told.

use std::marker::PhantomData;
use std::panic;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use candide::{Abort, Database, Protocol, Session};
use candide_check::black::{self, ListOp, RegisterOp, Transaction};
use candide_check::json::{Header, Line, Writer};
use candide_check::{Violation, edn};
use candide_workloads::clients::{Lists, Object, Registers, Shared};
use candide_workloads::stream;

use super::Run;
use super::verdict::{Claim, Verdict};
use crate::failure::Failure;
use crate::progress::{self, Clock};
use crate::registry::Job;
use crate::sink::Sink;

/// Clients of one kind of object under one protocol.
pub(super) struct Asking<'a, O> {
    threads: usize,
    run: &'a Run<'a>,
    object: PhantomData<O>,
}

impl<'a, O> Asking<'a, O> {
    pub(super) fn new(threads: usize, run: &'a Run<'a>) -> Self {
        Asking { threads, run, object: PhantomData }
    }
}

/// What a checker judges.
pub(super) trait Checked: Object<Op: edn::Operation + Sync> {
    /// What to call it.
    const NAME: &'static str;

    fn check(history: &[Transaction<Self::Op>], options: black::Options) -> Result<(), Violation>;
}

impl Checked for Lists {
    const NAME: &'static str = "lists";

    fn check(history: &[Transaction<ListOp>], options: black::Options) -> Result<(), Violation> {
        black::check_lists(history, options)
    }
}

impl Checked for Registers {
    const NAME: &'static str = "registers";

    fn check(history: &[Transaction<RegisterOp>], options: black::Options) -> Result<(), Violation> {
        black::check_registers(history, options)
    }
}

impl<O: Checked> Job for Asking<'_, O>
where
    Transaction<O::Op>: Line,
{
    type Output = Result<Verdict, Failure>;

    fn run<P: Protocol>(self, policy: P::Policy) -> Self::Output {
        let Asking { threads, run: &Run { args, seed, ref agenda }, .. } = self;
        let open = |path: &Option<PathBuf>| path.as_deref().map(Sink::open).transpose();
        let (json, edn) = (open(&args.history)?, open(&args.edn)?);
        let db = Database::<P>::builder().policy(policy).build()?;
        let properties = db.properties();
        let shared = Shared::<O, P>::create(&db)?;
        let sessions = (0..threads).map(|_| db.session()).collect::<Result<Vec<_>, _>>()?;
        let stop = AtomicBool::new(false);
        let mut ended_early = false;
        let mut history = thread::scope(|scope| {
            let (shared, stop) = (&shared, &stop);
            let spawn = |(thread, session)| scope.spawn(move || work(shared, session, seed, thread, stop));
            let clients: Vec<_> = (0..).zip(sessions).map(spawn).collect();
            let clock = Clock::new(agenda, &format!("recording {} {}", O::NAME, properties.name), args.duration);
            ended_early = !clock.sleep(args.duration);
            stop.store(true, Ordering::Relaxed);
            let mut history = Vec::new();
            for client in clients {
                history.extend(client.join().unwrap_or_else(|payload| panic::resume_unwind(payload))?);
            }
            Ok::<_, Abort>(history)
        })?;
        history.extend(shared.read_all(&mut db.session()?)?);

        let text = format!("{} with {threads} threads", O::NAME);
        if let Some(sink) = json {
            let header = Header { protocol: properties.name.to_string(), seed, text: text.clone() };
            let mut writer = Writer::new(sink.emptied()?, &header)?;
            history.iter().try_for_each(|transaction| writer.write(transaction))?;
            writer.finish()?;
        }
        if let Some(sink) = edn {
            edn::write(&history, sink.emptied()?)?;
        }
        let claim = Claim::of_protocol(properties, args);
        let title = format!("checking {} {},", O::NAME, properties.name);
        let checked = progress::with_line(agenda, &title, None, || O::check(&history, claim.of_values()));
        let title = format!("{}, {threads} threads, seed {seed}", O::NAME);
        Ok(Verdict::of_values(title, claim, &history, checked).ended(ended_early))
    }
}

/// The transactions of one client.
fn work<O: Object, P: Protocol>(
    shared: &Shared<O, P>,
    mut session: Session<P>,
    seed: u64,
    thread: u64,
    stop: &AtomicBool,
) -> Result<Vec<Transaction<O::Op>>, Abort> {
    let mut rng = stream(seed, thread);
    let mut history = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        history.push(shared.step(&mut session, &mut rng)?);
    }
    Ok(history)
}
