//! `#[derive(Record)]`: the code for a row type.
//!
//! The macro does not know the size of any type, so places are left to constants: those of each group to a `Packing`.
//! Everything is named by its whole path, because the user's own items may have any name.

use crate::attributes::{Kind, literal};
use crate::record::{Column, Index, Record};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Path, Type};

impl Record {
    pub(crate) fn expand(&self) -> TokenStream {
        let packings = (0..self.groups.len()).map(|group| self.packing(group));
        let places = self.indexes.iter().enumerate().map(|(number, index)| self.index_places(number, index));
        let constants = self.constants();
        let implementation = self.implementation();
        let ident = &self.ident;
        quote! {
            #[allow(unused_qualifications)]
            const _: () = {
                #(#packings)*
                #(#places)*

                #[automatically_derived]
                #[allow(dead_code)]
                impl #ident {
                    #constants
                }

                #[automatically_derived]
                #implementation
            };
        }
    }

    /// The columns of a group, which are packed in this order.
    fn columns_of(&self, group: usize) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(move |column| column.group == group)
    }

    /// The constant that says where the columns of a group lie.
    fn packing(&self, group: usize) -> TokenStream {
        let path = &self.path;
        let name = packing_name(group);
        let count = self.columns_of(group).count();
        let sizes = self
            .columns_of(group)
            .map(|Column { ty, .. }| quote_spanned!(ty.span()=> #path::derived::Size::of::<#ty>()));
        quote! {
            const #name: #path::derived::Packing<#count> = #path::derived::Packing::new([#(#sizes),*]);
        }
    }

    /// The constant that says where the columns of an index lie.
    fn index_places(&self, number: usize, index: &Index) -> TokenStream {
        let (path, ident, name) = (&self.path, &self.ident, places_name(number));
        let columns = index.columns.iter().map(|&column| &self.columns[column].constant);
        quote! {
            const #name: &[#path::derived::Place] = &[#(#path::Column::place(&<#ident>::#columns)),*];
        }
    }

    /// The constants of keys, columns and indexes.
    fn constants(&self) -> TokenStream {
        let Record { path, ident, .. } = self;
        let components = self.keys.iter().enumerate().map(|(number, key)| {
            let Column { vis, ty, constant, .. } = key;
            let (docs, name) = (self.docs(key, "Part of the key"), literal(&key.ident));
            let component = if self.keys.len() == 1 {
                quote!(*__key)
            } else {
                let number = syn::Index::from(number);
                quote!(__key.#number)
            };
            quote_spanned! {key.ident.span()=>
                #docs
                #vis const #constant: #path::KeyColumn<#ident, #ty> = #path::KeyColumn::new(#name, |__key| #component);
            }
        });
        let columns = (0..self.groups.len()).flat_map(|group| self.columns_of(group).enumerate());
        let columns = columns.map(|(number, column)| {
            let Column { vis, ty, constant, group, indexed, .. } = column;
            let (docs, name) = (self.docs(column, "Column"), literal(&column.ident));
            let kind = indexed.then(|| quote!(, #path::Indexed));
            let packing = packing_name(*group);
            let new = quote_spanned!(ty.span()=> #path::Column::packed);
            quote_spanned! {column.ident.span()=>
                #docs
                #vis const #constant: #path::Column<#ident, #ty #kind> =
                    #new(#group, #packing.places[#number].0, #packing.places[#number].1, #name);
            }
        });
        let indexes = self.indexes.iter().enumerate().map(|(number, index)| {
            let Index { vis, constant, unique, columns, .. } = index;
            let columns: Vec<String> = columns.iter().map(|&column| self.columns[column].name()).collect();
            let doc = format!("{} by {}.", if *unique { "Unique index" } else { "Index" }, columns.join(", "));
            let key = self.index_key(index);
            let kind = kind(path, index.kind);
            quote_spanned! {index.name.span()=>
                #[doc = #doc]
                #vis const #constant: #path::IndexOf<#ident, #key, #kind> = #path::IndexOf::new(#number);
            }
        });
        quote!(#(#components)* #(#columns)* #(#indexes)*)
    }

    /// The documentation of a field's constant: that of the field.
    fn docs(&self, column: &Column, what: &str) -> TokenStream {
        if column.docs.is_empty() {
            let doc = format!("{what} `{}`.", column.name());
            quote!(#[doc = #doc])
        } else {
            let docs = &column.docs;
            quote!(#(#docs)*)
        }
    }

    /// The type of an index's key: that of its column, or the tuple of several columns' types.
    fn index_key(&self, index: &Index) -> TokenStream {
        one_or_tuple(index.columns.iter().map(|&column| &self.columns[column].ty))
    }

    fn implementation(&self) -> TokenStream {
        let Record { path, ident, .. } = self;
        let key = one_or_tuple(self.keys.iter().map(|key| &key.ty));
        let index_kind = kind(path, self.kind);
        let name = literal(ident);
        let packings: Vec<Ident> = (0..self.groups.len()).map(packing_name).collect();
        // A row of nothing but its key has one word that nobody uses.
        let words = packings.iter().map(|packing| match self.columns.is_empty() {
            true => quote!(1),
            false => quote!(#packing.words),
        });
        let words: Vec<TokenStream> = words.collect();
        let groups = &self.groups;
        let specs = self.indexes.iter().enumerate().map(|(number, index)| self.index_spec(number, index));
        let schema = self.schema();
        let key_idents: Vec<&Ident> = self.keys.iter().map(|key| &key.ident).collect();
        let key_value = one_or_tuple(key_idents.iter().map(|ident| quote!(self.#ident)));
        let components = (0..self.keys.len()).map(|number| match self.keys.len() {
            1 => quote!(*__key),
            _ => {
                let number = syn::Index::from(number);
                quote!(__key.#number)
            }
        });
        let idents: Vec<&Ident> = self.columns.iter().map(|column| &column.ident).collect();
        let puts = self.columns.iter().map(|column| {
            let (put, constant, ident_of) = (path_to(path, "put", column), &column.constant, &column.ident);
            quote!(#put(&<#ident>::#constant, __words, &self.#ident_of);)
        });
        let takes = self.columns.iter().map(|column| {
            let (take, constant) = (path_to(path, "take", column), &column.constant);
            quote!(#take(&<#ident>::#constant, __words))
        });
        quote! {
            impl #path::Record for #ident {
                type Key = #key;
                type Index = #index_kind;
                type Image = [::core::primitive::u64; #(#words)+*];
                const NAME: &'static ::core::primitive::str = #name;
                const GROUPS: &'static [#path::Group] = &[#(#path::Group::new(#groups, #words)),*];
                const INDEXES: &'static [#path::IndexSpec] = &[#(#specs),*];
                const SCHEMA: ::core::primitive::u64 = #schema;

                #[inline]
                fn key(&self) -> Self::Key {
                    #key_value
                }

                #[inline]
                fn store(&self, __words: &mut [::core::primitive::u64]) {
                    #(#puts)*
                }

                #[inline]
                fn load(__key: &Self::Key, __words: &[::core::primitive::u64]) -> Self {
                    #ident { #(#key_idents: #components,)* #(#idents: #takes,)* }
                }
            }
        }
    }

    fn index_spec(&self, number: usize, index: &Index) -> TokenStream {
        let Record { path, ident, .. } = self;
        let (name, unique, places) = (literal(&index.name), index.unique, places_name(number));
        let (kind, key) = (kind(path, index.kind), self.index_key(index));
        let values = one_or_tuple(index.columns.iter().map(|&column| {
            let column = &self.columns[column];
            let (take, constant) = (path_to(path, "take", column), &column.constant);
            quote!(#take(&<#ident>::#constant, __words))
        }));
        quote! {
            #path::IndexSpec::new::<#kind>(#name, #unique, #places, <#key as #path::Key>::WORDS, |__words, __key| {
                #path::derived::append::<#key>(#values, __key)
            })
        }
    }

    /// The hash of how rows are stored: the key's fields with their types, the columns with their types and groups.
    fn schema(&self) -> TokenStream {
        let path = &self.path;
        let keys = self.keys.iter().flat_map(|key| ["key".to_string(), key.name(), type_text(&key.ty)]);
        let columns = self.columns.iter().flat_map(|column| {
            ["column".to_string(), column.name(), type_text(&column.ty), self.groups[column.group].clone()]
        });
        let texts = keys.chain(columns);
        quote!(#path::derived::schema_hash(0xcbf2_9ce4_8422_2325, &[#(#texts),*]))
    }
}

impl Column {
    fn name(&self) -> String {
        self.ident.unraw().to_string()
    }
}

/// A function of `Column`, spanned so that an unsuitable type is reported where the field names it.
fn path_to(path: &Path, function: &str, column: &Column) -> TokenStream {
    let function = Ident::new(function, Span::call_site());
    quote_spanned!(column.ty.span()=> #path::Column::#function)
}

fn packing_name(group: usize) -> Ident {
    format_ident!("__CANDIDE_GROUP_{group}")
}

fn places_name(index: usize) -> Ident {
    format_ident!("__CANDIDE_INDEX_{index}")
}

fn kind(path: &Path, kind: Kind) -> TokenStream {
    match kind {
        Kind::Hashed => quote!(#path::Hashed),
        Kind::Ordered => quote!(#path::Ordered),
    }
}

/// The item, or the tuple of several.
fn one_or_tuple(items: impl ExactSizeIterator<Item = impl ToTokens>) -> TokenStream {
    match items.len() {
        1 => quote!(#(#items)*),
        _ => quote!((#(#items),*)),
    }
}

/// The text of a type without spaces, which depend on the compiler.
fn type_text(ty: &Type) -> String {
    ty.to_token_stream().to_string().split_whitespace().collect()
}
