//! Asking clients what they were told.

use std::marker::PhantomData;
use std::panic;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use candide::{Abort, Database, Error, Protocol, Session};
use candide_check::black::{self, ListOp, RegisterOp, Transaction};
use candide_check::json::{Header, Line, Writer};
use candide_check::{Violation, edn};
use candide_workloads::clients::{Lists, Object, Registers, Shared};
use candide_workloads::stream;
use fastrand::Rng;

use super::Rules;
use super::verdict::Verdict;
use crate::failure::Failure;
use crate::progress::{self, Clock};
use crate::registry::{Choice, Job};
use crate::sink::Sink;

/// Clients of one kind of object, whichever it is.
pub trait Clients {
    /// Has clients work on a database of a protocol, on so many threads, and judges what they were told.
    fn ask(&self, protocol: Choice, threads: usize, rules: &Rules<'_>) -> Result<Verdict, Failure>;
}

/// Makes clients that work under every protocol, all of which they are compiled for.
pub fn clients<O: Checked + 'static>() -> Box<dyn Clients>
where
    Transaction<O::Op>: Line,
{
    Box::new(Asking::<O>(PhantomData))
}

/// A kind of object of which a checker can judge what clients were told.
pub trait Checked: Object<Op: edn::Operation + Sync> {
    /// What to call it.
    const NAME: &'static str;

    /// Judges a history.
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

/// The only kind of [`Clients`].
struct Asking<O>(PhantomData<O>);

impl<O: Checked + 'static> Clients for Asking<O>
where
    Transaction<O::Op>: Line,
{
    fn ask(&self, protocol: Choice, threads: usize, rules: &Rules<'_>) -> Result<Verdict, Failure> {
        let &Rules { seed, duration, ref agenda, .. } = rules;
        let open = |path: Option<&Path>| path.map(Sink::open).transpose();
        let (json, edn) = (open(rules.history)?, open(rules.edn)?);
        let tables = protocol.run(Create::<O>(PhantomData))?;
        let clients = (0..threads).map(|_| tables.client()).collect::<Result<Vec<_>, _>>()?;
        let stop = AtomicBool::new(false);
        let mut ended_early = false;
        let mut history = thread::scope(|scope| {
            let stop = &stop;
            let spawn = |(thread, client)| scope.spawn(move || work::<O::Op>(client, seed, thread, stop));
            let clients: Vec<_> = (0..).zip(clients).map(spawn).collect();
            let clock = Clock::new(agenda, &format!("recording {} {}", O::NAME, protocol.name()), duration);
            ended_early = !clock.sleep(duration);
            stop.store(true, Ordering::Relaxed);
            let mut history = Vec::new();
            for client in clients {
                history.extend(client.join().unwrap_or_else(|payload| panic::resume_unwind(payload))?);
            }
            Ok::<_, Abort>(history)
        })?;
        history.extend(tables.client()?.read_all()?);

        let text = format!("{} with {threads} threads", O::NAME);
        if let Some(sink) = json {
            let header = Header { protocol: protocol.name().to_string(), seed, text: text.clone() };
            let mut writer = Writer::new(sink.emptied()?, &header)?;
            history.iter().try_for_each(|transaction| writer.write(transaction))?;
            writer.finish()?;
        }
        if let Some(sink) = edn {
            edn::write(&history, sink.emptied()?)?;
        }
        let claim = rules.claim.with_promises(protocol);
        let title = format!("checking {} {},", O::NAME, protocol.name());
        let checked = progress::with_line(agenda, &title, None, || O::check(&history, claim.of_values()));
        let title = format!("{}, {threads} threads, seed {seed}", O::NAME);
        Ok(Verdict::of_values(title, claim, &history, checked).ended(ended_early))
    }
}

/// Has a client run transactions until it is told to stop.
fn work<Op>(
    mut client: Box<dyn Client<Op> + '_>,
    seed: u64,
    thread: u64,
    stop: &AtomicBool,
) -> Result<Vec<Transaction<Op>>, Abort> {
    let mut rng = stream(seed, thread);
    let mut history = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        history.push(client.step(&mut rng)?);
    }
    Ok(history)
}

/// A database with tables that clients work on, whichever its protocol.
trait Tables<Op>: Sync {
    /// Opens a session for a client.
    fn client(&self) -> Result<Box<dyn Client<Op> + '_>, Error>;
}

/// A client, whichever the protocol of its database.
trait Client<Op>: Send {
    /// Draws a transaction and runs it.
    fn step(&mut self, rng: &mut Rng) -> Result<Transaction<Op>, Abort>;

    /// Reads every key that has been in use.
    fn read_all(&mut self) -> Result<Vec<Transaction<Op>>, Abort>;
}

/// Creates the tables under a protocol. Only this and what follows is compiled for each of them.
struct Create<O>(PhantomData<O>);

impl<O: Object + 'static> Job for Create<O> {
    type Output = Result<Box<dyn Tables<O::Op>>, Error>;

    fn run<P: Protocol>(self) -> Self::Output {
        let db = Database::<P>::builder().build()?;
        let shared = Shared::<O, P>::create(&db)?;
        Ok(Box::new(Created { db, shared }))
    }
}

/// The only kind of [`Tables`].
struct Created<O: Object, P: Protocol> {
    db: Database<P>,
    shared: Shared<O, P>,
}

impl<O: Object, P: Protocol> Tables<O::Op> for Created<O, P> {
    fn client(&self) -> Result<Box<dyn Client<O::Op> + '_>, Error> {
        Ok(Box::new(Connected { shared: &self.shared, session: self.db.session()? }))
    }
}

/// The only kind of [`Client`].
struct Connected<'a, O: Object, P: Protocol> {
    shared: &'a Shared<O, P>,
    session: Session<P>,
}

impl<O: Object, P: Protocol> Client<O::Op> for Connected<'_, O, P> {
    fn step(&mut self, rng: &mut Rng) -> Result<Transaction<O::Op>, Abort> {
        self.shared.step(&mut self.session, rng)
    }

    fn read_all(&mut self) -> Result<Vec<Transaction<O::Op>>, Abort> {
        self.shared.read_all(&mut self.session)
    }
}
