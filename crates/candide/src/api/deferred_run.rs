//! Running transactions whose results come later.

#![forbid(unsafe_code)]

use super::database::Database;
use super::later::{Settle, admitted};
use super::pending::Pending;
use super::runner::Runner;
use super::session::Session;
use crate::engine::Protocol;
use crate::error::Abort;
use crate::txn::Tx;

impl<P: Protocol> Database<P> {
    #[doc = include_str!("run_docs/run_deferred.txt")]
    pub fn run_deferred<S: Settle>(
        &self,
        body: impl FnMut(&Tx<'_, P>) -> Result<S, Abort>,
    ) -> Result<S::Settled, Abort> {
        self.try_run_deferred(body)
    }

    #[doc = include_str!("run_docs/try_run_deferred.txt")]
    pub fn try_run_deferred<S: Settle, E: From<Abort>>(
        &self,
        body: impl FnMut(&Tx<'_, P>) -> Result<S, E>,
    ) -> Result<S::Settled, E> {
        self.try_run(admitted(body)).map(S::settle)
    }
}

impl<P: Protocol> Session<P> {
    #[doc = include_str!("run_docs/run_deferred.txt")]
    pub fn run_deferred<S: Settle>(
        &mut self,
        body: impl FnMut(&Tx<'_, P>) -> Result<S, Abort>,
    ) -> Result<S::Settled, Abort> {
        self.try_run_deferred(body)
    }

    #[doc = include_str!("run_docs/try_run_deferred.txt")]
    pub fn try_run_deferred<S: Settle, E: From<Abort>>(
        &mut self,
        body: impl FnMut(&Tx<'_, P>) -> Result<S, E>,
    ) -> Result<S::Settled, E> {
        self.try_run(admitted(body)).map(S::settle)
    }
}

impl<P: Protocol> Runner<'_, &Database<P>> {
    #[doc = include_str!("run_docs/run_deferred.txt")]
    pub fn run_deferred<S: Settle>(
        &self,
        body: impl FnMut(&Tx<'_, P>) -> Result<S, Abort>,
    ) -> Result<S::Settled, Abort> {
        self.try_run_deferred(body)
    }

    #[doc = include_str!("run_docs/try_run_deferred.txt")]
    pub fn try_run_deferred<S: Settle, E: From<Abort>>(
        &self,
        body: impl FnMut(&Tx<'_, P>) -> Result<S, E>,
    ) -> Result<S::Settled, E> {
        self.try_run(admitted(body)).map(S::settle)
    }

    #[doc = include_str!("run_docs/run_deferred_logged.txt")]
    pub fn run_deferred_logged<S: Settle>(
        &self,
        body: impl FnMut(&Tx<'_, P>) -> Result<S, Abort>,
    ) -> Pending<S::Settled> {
        self.try_run_deferred_logged(body)
    }

    #[doc = include_str!("run_docs/try_run_deferred_logged.txt")]
    pub fn try_run_deferred_logged<S: Settle, E: From<Abort>>(
        &self,
        body: impl FnMut(&Tx<'_, P>) -> Result<S, E>,
    ) -> Pending<S::Settled, E> {
        self.try_run_logged(admitted(body)).map(S::settle)
    }
}

impl<P: Protocol> Runner<'_, &mut Session<P>> {
    #[doc = include_str!("run_docs/run_deferred.txt")]
    pub fn run_deferred<S: Settle>(
        &mut self,
        body: impl FnMut(&Tx<'_, P>) -> Result<S, Abort>,
    ) -> Result<S::Settled, Abort> {
        self.try_run_deferred(body)
    }

    #[doc = include_str!("run_docs/try_run_deferred.txt")]
    pub fn try_run_deferred<S: Settle, E: From<Abort>>(
        &mut self,
        body: impl FnMut(&Tx<'_, P>) -> Result<S, E>,
    ) -> Result<S::Settled, E> {
        self.try_run(admitted(body)).map(S::settle)
    }

    #[doc = include_str!("run_docs/run_deferred_logged.txt")]
    pub fn run_deferred_logged<S: Settle>(
        &mut self,
        body: impl FnMut(&Tx<'_, P>) -> Result<S, Abort>,
    ) -> Pending<S::Settled> {
        self.try_run_deferred_logged(body)
    }

    #[doc = include_str!("run_docs/try_run_deferred_logged.txt")]
    pub fn try_run_deferred_logged<S: Settle, E: From<Abort>>(
        &mut self,
        body: impl FnMut(&Tx<'_, P>) -> Result<S, E>,
    ) -> Pending<S::Settled, E> {
        self.try_run_logged(admitted(body)).map(S::settle)
    }
}
