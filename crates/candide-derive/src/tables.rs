//! `#[derive(Tables)]`: the code that opens the tables of a struct of handles.

use crate::attributes::{Errors, TypeOptions};
use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::{Attribute, Data, DeriveInput, Fields, LitStr};

pub(crate) fn expand(input: DeriveInput) -> syn::Result<TokenStream> {
    let DeriveInput { attrs, ident, vis, generics, data } = input;
    let Data::Struct(syn::DataStruct { fields: Fields::Named(fields), .. }) = data else {
        return Err(syn::Error::new_spanned(
            &ident,
            "`Tables` is derived for structs with named fields, which are handles of tables",
        ));
    };
    let mut errors = Errors::default();
    let mut options = TypeOptions::default();
    for attribute in attrs.iter().filter(|attribute| attribute.path().is_ident("tables")) {
        errors.take(options.read(attribute, false));
    }
    let path = options.path();
    let Some(first) = fields.named.first().map(|field| &field.ty) else {
        return Err(syn::Error::new_spanned(&ident, "the struct has no handles of tables"));
    };
    let opened = fields.named.iter().map(|field| {
        let (ident, ty) = (&field.ident, &field.ty);
        let name = errors.take(name_of(&field.attrs)).flatten().unwrap_or_else(|| {
            let ident = ident.as_ref().expect("the fields have names");
            LitStr::new(&ident.unraw().to_string(), ident.span())
        });
        quote!(#ident: <#ty as #path::TableHandle>::open_in(__db, #name)?)
    });
    let opened: Vec<TokenStream> = opened.collect();
    let (parameters, arguments, bounds) = generics.split_for_impl();
    let doc = format!(
        "Returns the tables of `{ident}`; those that the database does not have yet are made."
    );
    errors.or(quote! {
        #[automatically_derived]
        impl #parameters #ident #arguments #bounds {
            #[doc = #doc]
            ///
            /// # Errors
            /// Those of opening a table: the first that is refused.
            #vis fn open(
                __db: &#path::Database<<#first as #path::TableHandle>::Protocol>,
            ) -> ::core::result::Result<Self, #path::Error> {
                ::core::result::Result::Ok(Self { #(#opened),* })
            }
        }
    })
}

/// Returns the name that `#[table(name = "..")]` gives, if there is one.
fn name_of(attributes: &[Attribute]) -> syn::Result<Option<LitStr>> {
    let mut name = None;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("table")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("name") {
                return Err(meta.error("unknown option: there is `name = \"..\"`"));
            }
            if name.replace(meta.value()?.parse()?).is_some() {
                return Err(meta.error("this option is given twice"));
            }
            Ok(())
        })?;
    }
    Ok(name)
}
