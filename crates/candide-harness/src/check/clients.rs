//! Histories of clients: the answers that clients received from transactions, for a checker.

use std::marker::PhantomData;
use std::panic;
use std::thread;

use candide::any::Erased;
use candide::{Abort, Database, Error, Session};
use candide_check::black::{self, ListOp, Outcome, RegisterOp, Transaction};
use candide_check::json::{Header, Line, Writer};
use candide_check::{Verdict as Judgement, edn};
use candide_workloads::clients::{Lists, Object, Registers, Shared};
use candide_workloads::stream;

use super::allowance::Allowance;
use super::verdict::Verdict;
use super::{DatabaseOptions, Rules};
use crate::failure::Failure;
use crate::interrupt;
use crate::output::Sink;
use crate::progress::{self, Clock};
use crate::registry::Choice;
use crate::results::Locks;
use crate::run::Barrier;

/// The number of transactions after which a recording ends, since a history of answers is judged as
/// a whole: it then takes less than 1 GB.
const TRANSACTIONS_MAX: usize = 500_000;

/// Clients of one kind of object.
pub trait Clients {
    /// Returns the name of the kind of object.
    fn name(&self) -> &'static str;

    /// Returns the name of the only table.
    fn table(&self) -> &'static str;

    /// Runs one client on each of `threads` threads, on a database under `protocol`, and checks the
    /// answers that the clients received.
    fn ask(&self, protocol: Choice, threads: usize, rules: &Rules<'_>) -> Result<Verdict, Failure>;
}

/// Creates clients that work under every protocol.
pub fn clients<O: Checked + 'static>() -> Box<dyn Clients>
where
    Transaction<O::Op>: Line,
{
    Box::new(Asking::<O>(PhantomData))
}

/// A kind of object whose answers to clients a checker can judge.
pub trait Checked: Object<Op: edn::Operation + Sync> {
    /// The name of the kind of object.
    const NAME: &'static str;

    /// Judges a history.
    fn check(history: &[Transaction<Self::Op>], options: black::Options) -> Judgement;
}

impl Checked for Lists {
    const NAME: &'static str = "lists";

    fn check(history: &[Transaction<ListOp>], options: black::Options) -> Judgement {
        black::check_lists(history, options).into()
    }
}

impl Checked for Registers {
    const NAME: &'static str = "registers";

    fn check(history: &[Transaction<RegisterOp>], options: black::Options) -> Judgement {
        black::check_registers(history, options)
    }
}

/// The only kind of [`Clients`].
struct Asking<O>(PhantomData<O>);

impl<O: Checked + 'static> Clients for Asking<O>
where
    Transaction<O::Op>: Line,
{
    fn name(&self) -> &'static str {
        O::NAME
    }

    fn table(&self) -> &'static str {
        O::TABLE
    }

    fn ask(&self, protocol: Choice, threads: usize, rules: &Rules<'_>) -> Result<Verdict, Failure> {
        let &Rules { options, seed, duration, ref agenda, .. } = rules;
        let [json, edn] = Sink::open_all([("--history", rules.history), ("--edn", rules.edn)])?;
        let tables = Tables::<O>::create(protocol, options)?;
        let clients = (0..threads).map(|_| tables.client()).collect::<Result<Vec<_>, _>>()?;
        let before = tables.db.stats();
        let (allowance, meeting) = (Allowance::new(), Barrier::of(threads));
        let (mut ended_early, mut is_cut) = (false, false);
        let mut history = thread::scope(|scope| {
            let (allowance, meeting) = (&allowance, &meeting);
            let spawn = |(thread, client)| {
                scope.spawn(move || {
                    meeting.member().wait();
                    work(client, seed, thread, allowance)
                })
            };
            let clients: Vec<_> = (0..).zip(clients).map(spawn).collect();
            let is_used_up = || !allowance.is_any_left();
            let title = format!("recording {} {}", O::NAME, protocol.name());
            let clock = Clock::new(agenda, &title, duration).watching(&is_used_up);
            meeting.gather(|| ());
            allowance.renew(TRANSACTIONS_MAX);
            clock.sleep(duration);
            ended_early = interrupt::is_pressed();
            is_cut = is_used_up();
            allowance.end();
            let mut history = Vec::new();
            for client in clients {
                history
                    .extend(client.join().unwrap_or_else(|payload| panic::resume_unwind(payload))?);
            }
            Ok::<_, Abort>(history)
        })?;
        let locks = Locks::between(&before, &tables.db.stats());
        let committed =
            history.iter().filter(|transaction| transaction.outcome == Outcome::Committed).count();
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
        let claim = rules.claim.with_promises(protocol, options);
        let title = format!("checking {} {},", O::NAME, protocol.name());
        let checked =
            progress::with_line(agenda, &title, None, || O::check(&history, claim.of_values()));
        let cut = match is_cut {
            true => format!(", ended after {TRANSACTIONS_MAX} transactions"),
            false => String::new(),
        };
        let title = format!("{}, {threads} threads, seed {seed}{cut}", O::NAME);
        Ok(Verdict::of_values(title, claim, &history, checked)
            .of_run(committed as u64, ended_early)
            .of_locks(protocol, locks))
    }
}

/// Makes `client` run transactions until the run has ended. Returns the client's history.
fn work<O: Object>(
    mut client: Client<'_, O>,
    seed: u64,
    thread: u64,
    allowance: &Allowance,
) -> Result<Vec<Transaction<O::Op>>, Abort> {
    let mut rng = stream(seed, thread);
    let mut history = Vec::new();
    allowance.spend(|| {
        history.push(client.shared.step(&mut client.session, &mut rng)?);
        Ok::<_, Abort>(())
    })?;
    Ok(history)
}

/// A database with tables that clients work on.
struct Tables<O: Object> {
    db: Database<Erased>,
    shared: Shared<O, Erased>,
}

impl<O: Object> Tables<O> {
    /// Creates a database under `protocol`, with its tables.
    fn create(protocol: Choice, options: DatabaseOptions) -> Result<Tables<O>, Error> {
        let protocol = protocol.for_tables(&[O::TABLE]);
        let builder = Database::<Erased>::builder().policy(protocol.erased());
        let db = options.build(builder)?;
        let shared = Shared::create(&db)?;
        Ok(Tables { db, shared })
    }

    /// Opens a session for a client.
    fn client(&self) -> Result<Client<'_, O>, Error> {
        Ok(Client { shared: &self.shared, session: self.db.session()? })
    }
}

/// A client.
struct Client<'a, O: Object> {
    shared: &'a Shared<O, Erased>,
    session: Session<Erased>,
}

impl<O: Object> Client<'_, O> {
    /// Reads every key that has been in use.
    fn read_all(&mut self) -> Result<Vec<Transaction<O::Op>>, Abort> {
        self.shared.read_all(&mut self.session)
    }
}
