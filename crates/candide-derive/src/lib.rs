//! The derive macros of Candide.
#![forbid(unsafe_code)]

mod attributes;
mod expand;
mod key;
mod record;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Record
#[proc_macro_derive(Record, attributes(record, key, group, column, index, unique))]
pub fn derive_record(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    let record = record::Record::read(input);
    record.map_or_else(syn::Error::into_compile_error, |record| record.expand()).into()
}

/// Key
#[proc_macro_derive(Key, attributes(key))]
pub fn derive_key(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    key::expand(input).unwrap_or_else(syn::Error::into_compile_error).into()
}
