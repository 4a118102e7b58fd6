//! `#[derive(Record)]`: the code for a row type.
//!
//! The macro does not know the size of any type, so constants compute the places of columns: for
//! each group, a `Packing`. The code names every item by its whole path, because the user's own
//! items may have any name.

use crate::attributes::{Kind, literal, moved};
use crate::record::{Column, DefaultValue, Field, Index, IndexField, Record};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Expr, ExprLit, Lit, Path, Type};

impl Record {
    pub(crate) fn expand(&self) -> TokenStream {
        let packings = (0..self.groups.len()).map(|group| self.packing(group));
        let places =
            self.indexes.iter().enumerate().map(|(number, index)| self.index_places(number, index));
        let (constants, layout) = (self.constants(), self.layout());
        let implementation = self.implementation();
        let ident = &self.ident;
        quote! {
            #[allow(dead_code, unused_qualifications)]
            const _: () = {
                #(#packings)*
                #(#places)*
                #layout

                #[automatically_derived]
                impl #ident {
                    #constants
                }

                #[automatically_derived]
                #implementation
            };
        }
    }

    /// Returns the columns of a group, which are packed in this order.
    fn columns_of(&self, group: usize) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(move |column| column.group == group)
    }

    /// Returns the constant with the places of the columns of a group.
    fn packing(&self, group: usize) -> TokenStream {
        let path = &self.path;
        let name = packing_name(group);
        let count = self.columns_of(group).count();
        let sizes = self.columns_of(group).map(|column| column.of_type(path, "SIZE"));
        quote! {
            const #name: #path::derived::Packing<#count> = #path::derived::Packing::new([#(#sizes),*]);
        }
    }

    /// Returns the constant with the places of the columns of an index.
    fn index_places(&self, number: usize, index: &Index) -> TokenStream {
        let (path, name) = (&self.path, places_name(number));
        let places = index.fields.iter().filter_map(|column| match column.field {
            Field::Key(_) => None,
            Field::Column(number) => {
                let whole = self.place(number);
                Some(match self.part(column) {
                    None => whole,
                    Some(part) => quote!(#part.place_in(#whole)),
                })
            }
        });
        quote! {
            const #name: &[#path::derived::Place] = &[#(#places),*];
        }
    }

    /// Returns the place of a column.
    fn place(&self, number: usize) -> TokenStream {
        let column = &self.columns[number];
        let (group, packing) = (column.group, packing_name(column.group));
        let number = self.columns_of(group).position(|other| other.ident == column.ident);
        let number = number.expect("the column is in its group");
        quote!(#packing.place(#group, #number))
    }

    /// Returns the part of a column that an index has; `None` if it has the whole column.
    fn part(&self, column: &IndexField) -> Option<TokenStream> {
        let whole = &self.field(column.field).stored;
        let (mut owner, mut part) = (whole, None);
        for next in &column.parts {
            let (ty, constant) = (&next.ty, next.constant());
            let (path, place) = (moved(&self.path, ty.span()), ty.span());
            let constant = quote_spanned!(place=> <#owner>::#constant);
            let checked = match part {
                None => constant,
                Some(before) => quote!(#before.part(#constant)),
            };
            part = Some(quote_spanned! {place=>
                { const __PART: #path::schema::Part<#whole, #ty> = #checked; __PART }
            });
            owner = ty;
        }
        part
    }

    /// Returns the constants of keys, columns and indexes.
    fn constants(&self) -> TokenStream {
        let Record { path, ident, .. } = self;
        let key_type = self.key_type();
        let components = self.keys.iter().enumerate().map(|(number, key)| {
            let Column { vis, ty, constant, .. } = key;
            let (docs, name, component) =
                (docs(key, "Part of the key"), key.name(), self.component(number));
            quote! {
                #docs
                #vis const #constant: #path::schema::KeyColumn<#ident, #ty> =
                    #path::schema::KeyColumn::new(#name, |__key: &#key_type| #component);
            }
        });
        let columns = (0..self.groups.len()).flat_map(|group| self.columns_of(group).enumerate());
        let columns = columns.map(|(number, column)| {
            let Column { vis, ty, constant, group, indexed, codec, .. } = column;
            let (docs, name) = (docs(column, "Column"), column.name());
            let kind = indexed.then(|| quote!(, #path::schema::Indexed));
            let packing = packing_name(*group);
            let derived = quote!(#path::Column::derived(#group, #packing, #number, #name));
            let (ty, column) = match codec {
                None => (quote!(#path::Column<#ident, #ty #kind>), derived),
                Some(codec) => (
                    quote!(#path::schema::Coded<#ident, #codec #kind>),
                    quote!(#path::schema::Coded::new(#derived)),
                ),
            };
            quote! {
                #docs
                #vis const #constant: #ty = #column;
            }
        });
        let indexes = self.indexes.iter().enumerate().map(|(number, index)| {
            let Index { vis, constant, unique, fields, .. } = index;
            let columns: Vec<String> = fields.iter().map(|column| self.text_of(column)).collect();
            let doc = format!(
                "{} by {}.",
                if *unique { "Unique index" } else { "Index" },
                columns.join(", ")
            );
            let (key, kind) = (self.index_key(index), kind(path, index.kind));
            quote! {
                #[doc = #doc]
                #vis const #constant: #path::schema::IndexOf<#ident, #key, #kind> =
                    #path::schema::IndexOf::derived(#number);
            }
        });
        quote!(#(#components)* #(#columns)* #(#indexes)*)
    }

    /// Returns the type of the primary key.
    fn key_type(&self) -> TokenStream {
        one_or_tuple(self.keys.iter().map(|key| &key.ty), self.ident.span())
    }

    /// Returns component `number` of `__key`.
    fn component(&self, number: usize) -> TokenStream {
        match self.keys.len() {
            1 => quote!(*__key),
            _ => {
                let number = syn::Index::from(number);
                quote!(__key.#number)
            }
        }
    }

    /// Returns the place at which an unsuitable key of an index is reported: its only column, or
    /// the index's name.
    fn index_place(&self, index: &Index) -> Span {
        match &index.fields[..] {
            [column] => self.type_of(column).span(),
            _ => index.name.span(),
        }
    }

    /// Returns the type of an index's key: the type of its column, or the tuple of the types of
    /// several columns.
    fn index_key(&self, index: &Index) -> TokenStream {
        let types = index.fields.iter().map(|column| {
            let ty = self.type_of(column);
            match self.long_key(column) {
                None => quote!(#ty),
                Some(long) => quote_spanned!(ty.span()=> <#ty as #long>::Key),
            }
        });
        one_or_tuple(types, self.index_place(index))
    }

    /// Returns the trait that makes keys of a column of any length.
    fn long_key(&self, column: &IndexField) -> Option<TokenStream> {
        let (most, place) = (column.bytes?, self.type_of(column).span());
        let path = moved(&self.path, place);
        Some(quote_spanned!(place=> #path::derived::LongKey<#most>))
    }

    /// Returns the limits of the columns of any length of an index.
    fn limits(&self, index: &Index) -> Vec<TokenStream> {
        let path = &self.path;
        let limit = |column: &IndexField| match (column.bytes, column.field) {
            (Some(most), Field::Column(number)) => {
                let (place, name) = (self.place(number), self.columns[number].name());
                Some(quote!(#path::derived::KeyLimit::new(#place, #name, #most)))
            }
            _ => None,
        };
        index.fields.iter().filter_map(limit).collect()
    }

    fn implementation(&self) -> TokenStream {
        let Record { path, ident, .. } = self;
        let key = self.key_type();
        let index_kind = kind(path, self.kind);
        let name = literal(ident);
        let packings: Vec<Ident> = (0..self.groups.len()).map(packing_name).collect();
        // A row of nothing but its key has one word that is not used.
        let words = packings.iter().map(|packing| match self.columns.is_empty() {
            true => quote!(1),
            false => quote!(#packing.words),
        });
        let words: Vec<TokenStream> = words.collect();
        let groups = &self.groups;
        let specs =
            self.indexes.iter().enumerate().map(|(number, index)| self.index_spec(number, index));
        let (schema, fields) = (self.schema(), self.field_infos());
        let key_idents: Vec<&Ident> = self.keys.iter().map(|key| &key.ident).collect();
        let key_value =
            one_or_tuple(key_idents.iter().map(|ident| quote!(self.#ident)), Span::call_site());
        let components = (0..self.keys.len()).map(|number| self.component(number));
        let idents: Vec<&Ident> = self.columns.iter().map(|column| &column.ident).collect();
        let puts = self.columns.iter().map(|column| {
            let field = &column.ident;
            let put = self.put(column, &quote!(self.#field));
            quote!(#put;)
        });
        let takes = self.columns.iter().map(|column| {
            let (take, name) = (self.take(column), column.name());
            match &column.codec {
                None => take,
                Some(codec) => {
                    let (place, path) = (codec.span(), moved(path, codec.span()));
                    quote_spanned!(place=> #path::derived::decode::<#codec>(#take, #name))
                }
            }
        });
        let place = ident.span();
        let record = moved(path, place);
        let header = quote_spanned!(place=> impl #record::Record for #ident);
        quote! {
            #header {
                type Key = #key;
                type Index = #index_kind;
                type Image = [::core::primitive::u64; #(#words)+*];
                const META: #path::schema::Meta = #path::schema::Meta::new(
                    #name,
                    &[#(#path::Group::new(#groups, #words)),*],
                )
                .with_indexes(&[#(#specs),*])
                .with_schema(#schema)
                .with_fields(&[#(#fields),*]);

                #[inline]
                fn key(&self) -> Self::Key {
                    #key_value
                }

                #[inline]
                fn store(&self, __row: &mut #path::schema::RowWriter<'_>) {
                    #(#puts)*
                }

                #[inline]
                fn load(__key: &Self::Key, __row: &#path::schema::RowReader<'_>) -> Self {
                    #ident { #(#key_idents: #components,)* #(#idents: #takes,)* }
                }
            }
        }
    }

    /// Returns the stored value of a column in `__row`.
    fn take(&self, column: &Column) -> TokenStream {
        let (constant, take) = (self.constant(column), column.of_type(&self.path, "take"));
        quote!(#take(#constant, __row))
    }

    /// Returns code that puts `value`, an expression, into the column in `__row`.
    fn put(&self, column: &Column, value: &TokenStream) -> TokenStream {
        let (constant, put) = (self.constant(column), column.of_type(&self.path, "put"));
        match &column.codec {
            None => quote!(#put(&#value, #constant, __row)),
            Some(codec) => {
                let (place, path) = (codec.span(), moved(&self.path, codec.span()));
                let encode = quote_spanned!(place=> <#codec as #path::Codec>::encode);
                quote!(#put(&#encode(&#value), #constant, __row))
            }
        }
    }

    /// Returns the column of the stored values.
    fn constant(&self, column: &Column) -> TokenStream {
        let (ident, constant) = (&self.ident, &column.constant);
        let stored = column.codec.is_some().then(|| quote!(.stored()));
        quote!(<#ident>::#constant #stored)
    }

    fn index_spec(&self, number: usize, index: &Index) -> TokenStream {
        let (name, unique, places) = (literal(&index.name), index.unique, places_name(number));
        let (path, kind) = (&self.path, kind(&self.path, index.kind));
        let (key, place) = (self.index_key(index), self.index_place(index));
        let at_key = moved(path, place);
        let count = quote_spanned!(place=> <#key as #at_key::Key>::WORDS);
        let show = quote_spanned!(place=> <#key as #at_key::Key>::show);
        let values = index.fields.iter().map(|column| match column.field {
            Field::Key(number) => self.component(number),
            Field::Column(number) => {
                let whole = &self.columns[number];
                match self.part(column) {
                    None => match self.long_key(column) {
                        None => self.take(whole),
                        Some(long) => {
                            let (constant, ty) = (self.constant(whole), &whole.stored);
                            quote_spanned!(ty.span()=> <#ty as #long>::key(#constant, __row))
                        }
                    },
                    Some(part) => {
                        let (constant, place) = (self.constant(whole), self.type_of(column).span());
                        let path = moved(path, place);
                        quote_spanned! {place=>
                            #path::derived::ColumnType::take(#constant.part(#part), __row)
                        }
                    }
                }
            }
        });
        let values = one_or_tuple(values, Span::call_site());
        let has_key = index.fields.iter().any(|column| matches!(column.field, Field::Key(_)));
        let primary = has_key.then(|| {
            let primary = self.key_type();
            quote!(let __key = &<#primary as #path::Key>::from_words(__primary);)
        });
        let words = quote_spanned! {place=>
            ::core::convert::AsRef::as_ref(&<#key as #at_key::Key>::words(&#values))
        };
        let place_of =
            |field: &Field| self.order.iter().position(|other| other == field).unwrap_or(0);
        let fields = index.fields.iter().map(|column| place_of(&column.field) as u16);
        let limits = self.limits(index);
        let limits = (!limits.is_empty()).then(|| quote!(.with_limits(&[#(#limits),*])));
        quote! {
            #path::schema::IndexSpec::new::<#kind>(
                #name, #unique, #places, #count, #show,
                |__primary, __row, __entry| {
                    #primary
                    __entry.extend_from_slice(#words)
                },
            ).with_fields(&[#(#fields),*]) #limits
        }
    }

    /// Returns the code that finds a type's layout in words, and its description. For a type that
    /// columns or keys cannot have, a trait gives others instead, since the compiler reports an
    /// error about the type already.
    fn layout(&self) -> TokenStream {
        let path = &self.path;
        quote! {
            struct __CandideLayout<T: ?::core::marker::Sized>(::core::marker::PhantomData<T>);

            impl<T: #path::derived::ColumnType> __CandideLayout<T> {
                const OF: ::core::primitive::u64 = <T as #path::derived::ColumnType>::LAYOUT;
                const TYPE: &'static #path::schema::FieldType =
                    <T as #path::derived::ColumnType>::TYPE;
                const CHECK: ::core::option::Option<#path::derived::LongCheck> =
                    <T as #path::derived::ColumnType>::CHECK;
            }

            trait __CandideNoLayout {
                const OF: ::core::primitive::u64 = 0;
                const TYPE: &'static #path::schema::FieldType = &#path::schema::FieldType::Bool;
                const CHECK: ::core::option::Option<#path::derived::LongCheck> =
                    ::core::option::Option::None;
            }

            impl<T: ?::core::marker::Sized> __CandideNoLayout for __CandideLayout<T> {}

            struct __CandideKey<T: ?::core::marker::Sized>(::core::marker::PhantomData<T>);

            impl<T: #path::Key> __CandideKey<T> {
                const TYPE: &'static #path::schema::FieldType = <T as #path::Key>::KEY_TYPE;
            }

            trait __CandideNoKey {
                const TYPE: &'static #path::schema::FieldType = &#path::schema::FieldType::Bool;
            }

            impl<T: ?::core::marker::Sized> __CandideNoKey for __CandideKey<T> {}
        }
    }

    /// Returns the hash of the way rows are stored: the key's fields with their types, the columns
    /// with their types and groups, and the layout of these types in words, which their names do
    /// not show.
    fn schema(&self) -> TokenStream {
        let Record { path, ident, .. } = self;
        let keys =
            self.keys.iter().flat_map(|key| ["key".to_string(), key.name(), type_text(&key.ty)]);
        let columns = self.columns.iter().flat_map(|column| {
            [
                "column".to_string(),
                column.name(),
                match &column.codec {
                    None => type_text(&column.ty),
                    Some(codec) => format!("with {}", type_text(codec)),
                },
                self.groups[column.group].clone(),
            ]
        });
        let texts = keys.chain(columns);
        let layouts =
            self.columns.iter().map(|Column { stored, .. }| quote!(<__CandideLayout<#stored>>::OF));
        quote!(#path::derived::schema_hash::<#ident>(&[#(#texts),*], &[#(#layouts),*]))
    }
}

impl Record {
    /// Returns the descriptions of the fields.
    fn field_infos(&self) -> Vec<TokenStream> {
        let path = &self.path;
        let info = |field: &Field| {
            let ty = &self.field(*field).stored;
            let name = self.field(*field).name();
            let former = &self.field(*field).former;
            let renamed = (!former.is_empty()).then(|| quote!(.renamed(&[#(#former),*])));
            let info = match field {
                Field::Key(_) => quote! {
                    #path::schema::FieldInfo::of_key(#name, <__CandideKey<#ty>>::TYPE)
                },
                Field::Column(number) => {
                    let column = &self.columns[*number];
                    let (default, check) = (self.default_of(column), self.check_of(column));
                    let place = self.place(*number);
                    quote! {
                        #path::schema::FieldInfo::of_column(
                            #name,
                            <__CandideLayout<#ty>>::TYPE,
                            #place,
                            #default,
                        ) #check
                    }
                }
            };
            quote!(#info #renamed)
        };
        self.order.iter().map(info).collect()
    }

    /// Returns the function that writes a column's default into a row, if it has one.
    fn default_of(&self, column: &Column) -> TokenStream {
        let (path, Column { ty, default, codec, .. }) = (&self.path, column);
        let Some(default) = default else { return quote!(::core::option::Option::None) };
        let put = self.put(column, &quote!(__value));
        let value = match default {
            DefaultValue::OfType(place) => quote_spanned! {*place=>
                <#ty as ::core::default::Default>::default()
            },
            DefaultValue::Given(Expr::Lit(ExprLit { lit: Lit::Str(text), .. }))
                if codec.is_none() =>
            {
                quote_spanned! {text.span()=>
                    {
                        const _: () = #path::derived::check_default(<__CandideLayout<#ty>>::TYPE, #text);
                        match <#ty as ::core::convert::TryFrom<&::core::primitive::str>>::try_from(#text) {
                            ::core::result::Result::Ok(__value) => __value,
                            ::core::result::Result::Err(_) => ::core::unreachable!("checked above"),
                        }
                    }
                }
            }
            DefaultValue::Given(value) => quote!(#value),
        };
        quote! {
            ::core::option::Option::Some(|__row: &mut #path::schema::RowWriter<'_>| {
                // A `String` is made of a text as a `Text<N>` is, which may not fit.
                #[allow(clippy::unnecessary_fallible_conversions)]
                let __value: #ty = #value;
                #put;
            })
        }
    }

    /// Returns the call that adds the check of a column's codec, or of its type, to the column's
    /// description.
    fn check_of(&self, column: &Column) -> TokenStream {
        let Some(codec) = column.codec.as_ref() else {
            let ty = &column.ty;
            return quote!(.of_type(<__CandideLayout<#ty>>::CHECK));
        };
        let (take, place) = (self.take(column), codec.span());
        let path = moved(&self.path, place);
        let decode = quote_spanned!(place=> <#codec as #path::Codec>::decode);
        quote! {
            .checked(|__row: &#path::schema::RowReader<'_>| {
                ::core::result::Result::map(#decode(#take), ::core::mem::drop)
            })
        }
    }
}

impl Column {
    fn name(&self) -> String {
        self.ident.unraw().to_string()
    }

    /// Returns an item of `ColumnType`. If the type does not implement the trait, the error is
    /// reported where the field names the type.
    fn of_type(&self, path: &Path, item: &str) -> TokenStream {
        let (ty, place) = (&self.stored, self.stored.span());
        let (path, item) = (moved(path, place), Ident::new(item, place));
        quote_spanned!(place=> <#ty as #path::derived::ColumnType>::#item)
    }
}

/// Returns the field's documentation, for the field's constant.
fn docs(column: &Column, what: &str) -> TokenStream {
    if column.docs.is_empty() {
        let doc = format!("{what} `{}`.", column.name());
        quote!(#[doc = #doc])
    } else {
        let docs = &column.docs;
        quote!(#(#docs)*)
    }
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

/// Returns the only item, or the tuple of several, as code at `place`.
fn one_or_tuple(items: impl ExactSizeIterator<Item = impl ToTokens>, place: Span) -> TokenStream {
    match items.len() {
        1 => quote!(#(#items)*),
        _ => quote_spanned!(place=> (#(#items),*)),
    }
}

/// Returns the text of a type without spaces, which depend on the compiler.
pub(crate) fn type_text(ty: &Type) -> String {
    ty.to_token_stream().to_string().split_whitespace().collect()
}
