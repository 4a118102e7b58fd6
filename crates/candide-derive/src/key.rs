//! `#[derive(Key)]`: the code for a composite key or an enum.

use crate::attributes::{Errors, TypeOptions, literal, moved, without_self};
use crate::expand::type_text;
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Fields, Member, Path, Token, Type, Variant};

pub(crate) fn expand(input: DeriveInput) -> syn::Result<TokenStream> {
    let DeriveInput { attrs, ident, generics, data, .. } = input;
    let mut errors = Errors::default();
    if !generics.params.is_empty() || generics.where_clause.is_some() {
        errors.at(
            &generics,
            "a key has no generic parameters: its number of words must be known here",
        );
    }
    let mut options = TypeOptions::default();
    for attribute in attrs.iter().filter(|attribute| attribute.path().is_ident("key")) {
        errors.take(options.read(attribute, false));
    }
    let path = options.path();
    let code = match data {
        Data::Struct(mut data) => {
            for field in &mut data.fields {
                field.ty = without_self(&field.ty, &ident);
            }
            of_struct(&path, &ident, &data.fields, &mut errors)
        }
        Data::Enum(data) => of_enum(&path, &ident, &data.variants, &mut errors),
        Data::Union(_) => {
            errors.at(&ident, "`Key` is derived for structs and for enums without fields");
            TokenStream::new()
        }
    };
    let code = quote! {
        #[allow(unused_qualifications)]
        const _: () = { #code };
    };
    errors.or(code)
}

/// Returns the beginning of an implementation. The type's name has the span of the declaration, so
/// that the compiler reports a missing requirement of the trait there.
pub(crate) fn header(path: &Path, name: &str, ident: &Ident) -> TokenStream {
    let path = moved(path, ident.span());
    let name: Path = syn::parse_str(name).expect("the path of a trait in the crate");
    let name = moved(&name, ident.span());
    quote_spanned!(ident.span()=> impl #path::#name for #ident)
}

/// Derives a composite key: the words of the components one after another.
fn of_struct(path: &Path, ident: &Ident, fields: &Fields, errors: &mut Errors) -> TokenStream {
    if fields.is_empty() {
        errors.at(ident, "a key has at least one component");
    }
    for attribute in fields.iter().flat_map(|field| &field.attrs) {
        if attribute.path().is_ident("key") {
            errors.at(
                attribute,
                "every field of a key is a component; this attribute is for the fields of a record",
            );
        }
    }
    let components: Vec<Component> = fields
        .iter()
        .zip(fields.members())
        .map(|(field, member)| Component { path, ty: &field.ty, member })
        .collect();
    let members: Vec<&Member> = components.iter().map(|component| &component.member).collect();
    let count = count(&components);
    let widths = components.iter().map(|component| component.item("WIDTHS"));
    let parts = components.iter().map(|Component { member, .. }| quote!(&self.#member));
    let parts = components.iter().zip(parts).map(|(component, value)| component.words(value));
    let from_words = components.iter().enumerate().map(|(number, component)| {
        let (from_words, words) = (component.item("from_words"), component.item("WORDS"));
        let before = self::count(&components[..number]);
        quote!(#from_words(&__words[#before..][..#words]))
    });
    let shows = components.iter().map(|component| {
        let (count, show) = (component.item("WORDS"), component.item("show"));
        quote!((#count, #show as #path::derived::Show))
    });
    let texts = fields.iter().zip(fields.members()).flat_map(|(field, member)| match member {
        Member::Named(name) => [name.unraw().to_string(), type_text(&field.ty)],
        Member::Unnamed(index) => [index.index.to_string(), type_text(&field.ty)],
    });
    let layouts = components.iter().map(|component| component.item("KEY_LAYOUT"));
    let types = fields.members().zip(&components).map(|(member, component)| {
        let name = match member {
            Member::Named(name) => name.unraw().to_string(),
            Member::Unnamed(index) => index.index.to_string(),
        };
        let ty = component.item("KEY_TYPE");
        quote!((#name, #ty))
    });
    // A tuple struct is shown with its name, too, because only the name may distinguish two
    // identifiers.
    let name = literal(ident);
    let (header, as_key) = (header(path, "Key", ident), as_key(path, ident));
    let prefixes = (1..components.len()).map(|length| prefix(path, ident, &components[..length]));
    let field = match &components[..] {
        [component] => newtype_field(path, ident, component),
        _ => TokenStream::new(),
    };
    quote! {
        #[automatically_derived]
        #header {
            type Words = [::core::primitive::u64; #count];
            const WIDTHS: &'static [::core::primitive::u32] =
                &#path::derived::join::<::core::primitive::u32, { #count }, _>(0, [#(#widths),*]);
            const KEY_LAYOUT: ::core::primitive::u64 =
                #path::derived::key_layout(&[#(#texts),*], &[#(#layouts),*]);
            const KEY_TYPE: &'static #path::schema::FieldType = &#path::schema::FieldType::Struct {
                name: #name,
                bits: 0,
                parts: &[#(#types),*],
            };

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn words(&self) -> Self::Words {
                #path::derived::join(0, [#(#parts),*])
            }

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn from_words(__words: &[::core::primitive::u64]) -> Self {
                #ident { #(#members: #from_words),* }
            }

            fn show(
                __words: &[::core::primitive::u64],
                __f: &mut ::core::fmt::Formatter<'_>,
            ) -> ::core::fmt::Result {
                #path::derived::show_components(#name, &[#(#shows),*], __words, __f)
            }
        }

        #as_key
        #(#prefixes)*
        #field
    }
}

/// Derives `AsKey` of a key for itself.
fn as_key(path: &Path, ident: &Ident) -> TokenStream {
    quote! {
        #[automatically_derived]
        impl #path::schema::AsKey<#ident> for #ident {
            type Given = #ident;

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn into_key(self) -> ::core::option::Option<#ident> {
                ::core::option::Option::Some(self)
            }
        }
    }
}

/// A component of a composite key. The code made of the field has the field's place, so that an
/// unsuitable type is reported there.
struct Component<'a> {
    path: &'a Path,
    ty: &'a Type,
    member: Member,
}

impl Component<'_> {
    /// Returns an item of the type's `Key`.
    fn item(&self, name: &str) -> TokenStream {
        let (ty, place) = (self.ty, self.ty.span());
        let (path, name) = (moved(self.path, place), Ident::new(name, place));
        quote_spanned!(place=> <#ty as #path::Key>::#name)
    }

    /// Returns the words of a value, as a slice.
    fn words(&self, value: TokenStream) -> TokenStream {
        let words = self.item("words");
        quote_spanned!(self.ty.span()=> ::core::convert::AsRef::as_ref(&#words(#value)))
    }
}

/// Returns the number of words of all components together.
fn count(components: &[Component]) -> TokenStream {
    let counts = components.iter().map(|component| component.item("WORDS"));
    if components.is_empty() { quote!(0) } else { quote!(#(#counts)+*) }
}

/// Derives the use of a tuple of the first components, each given as by a lookup, as a beginning of
/// the key.
fn prefix(path: &Path, ident: &Ident, first: &[Component]) -> TokenStream {
    let types: Vec<&Type> = first.iter().map(|component| component.ty).collect();
    let given: Vec<Ident> =
        (0..first.len()).map(|number| format_ident!("__Given{number}")).collect();
    let numbers: Vec<syn::Index> = (0..first.len()).map(syn::Index::from).collect();
    let before = first.len() - 1;
    let (last_type, last, at) = (types[before], &given[before], &numbers[before]);
    let (types, before_last) = (&types[..before], &given[..before]);
    quote! {
        #[automatically_derived]
        impl<#(#given),*> #path::schema::KeyPrefix<#ident> for (#(#given,)*)
        where
            #(#before_last: #path::schema::AsKey<#types> + ::core::marker::Copy,)*
            #last: #path::schema::PrefixEnd<#last_type>,
        {
            fn word_range(&self) -> #path::derived::WordRange {
                let __beginning = #path::derived::Beginning::of_words(<#ident as #path::Key>::WORDS)
                    #(.and::<#types, _>(self.#numbers))*;
                #path::schema::PrefixEnd::<#last_type>::add_to(self.#at, __beginning).range()
            }
        }
    }
}

/// Derives a field from a struct around a field. The bound, if it named no lifetime, would have to
/// hold even for keys that are not used as columns.
fn newtype_field(
    path: &Path,
    ident: &Ident,
    Component { ty, member, .. }: &Component,
) -> TokenStream {
    let header = header(path, "schema::Field", ident);
    let (number, one) = (newtype_number(path, ident, ty, member), one_derive(ident));
    let name = literal(ident);
    let part = match member {
        Member::Named(name) => name.unraw().to_string(),
        Member::Unnamed(index) => index.index.to_string(),
    };
    quote! {
        #[automatically_derived]
        #header
        where
            for<'__candide> #ty: #path::schema::Field,
        {
            const BITS: ::core::primitive::u32 = <#ty as #path::schema::Field>::BITS;
            const WORDS: ::core::primitive::usize = <#ty as #path::schema::Field>::WORDS;
            const SIGNED: ::core::primitive::bool = <#ty as #path::schema::Field>::SIGNED;
            const LAYOUT: ::core::primitive::u64 = <#ty as #path::schema::Field>::LAYOUT;
            const TYPE: &'static #path::schema::FieldType = &#path::schema::FieldType::Struct {
                name: #name,
                bits: <#ty as #path::schema::Field>::BITS,
                parts: &[(#part, <#ty as #path::schema::Field>::TYPE)],
            };
            type Buffer = <#ty as #path::schema::Field>::Buffer;

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn word(&self, __index: ::core::primitive::usize) -> ::core::primitive::u64 {
                <#ty as #path::schema::Field>::word(&self.#member, __index)
            }

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn from_buffer(__buffer: &Self::Buffer) -> Self {
                #ident { #member: <#ty as #path::schema::Field>::from_buffer(__buffer) }
            }
        }

        #number
        #one
    }
}

/// Returns a constant that both derives make for a struct of one field: the error about two of them
/// says which derive is enough.
pub(crate) fn one_derive(ident: &Ident) -> TokenStream {
    quote! {
        #[automatically_derived]
        impl #ident {
            #[doc(hidden)]
            const __DERIVE_KEY_ALONE_IT_MAKES_A_COLUMN_TOO: () = ();
        }
    }
}

/// Derives a number from a struct around a number. The bound, if it named no lifetime, would have
/// to hold even around other types.
pub(crate) fn newtype_number(
    path: &Path,
    ident: &Ident,
    ty: &Type,
    member: &Member,
) -> TokenStream {
    let header = header(path, "derived::Newtype", ident);
    quote! {
        #[automatically_derived]
        #header
        where
            for<'__candide> #ty: #path::schema::Summand,
        {
            type Of = #ty;

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn of(&self) -> #ty {
                self.#member
            }
        }
    }
}

/// Derives a field from an enum without fields: a value is the position of its variant.
fn of_enum(
    path: &Path,
    ident: &Ident,
    variants: &Punctuated<Variant, Token![,]>,
    errors: &mut Errors,
) -> TokenStream {
    if variants.is_empty() {
        errors.at(ident, "an enum without variants has no values");
    }
    for variant in variants.iter().filter(|variant| !matches!(variant.fields, Fields::Unit)) {
        errors.at(
            &variant.fields,
            "an enum can be a column or a key only if its variants have no fields",
        );
    }
    // An enum of one variant has one bit, too, since columns and words of keys must not be empty.
    let last = variants.len().saturating_sub(1) as u64;
    let bits = (u64::BITS - last.leading_zeros()).max(1);
    let name = literal(ident);
    let (key_header, field_header) =
        (header(path, "Key", ident), header(path, "schema::Field", ident));
    let as_key = as_key(path, ident);
    let names: Vec<&Ident> = variants.iter().map(|variant| &variant.ident).collect();
    let texts: Vec<_> = names.iter().map(|name| literal(name)).collect();
    let positions: Vec<u64> = (0..).take(names.len()).collect();
    // Derived `Ord` goes by the discriminants, and scans should agree with it.
    let are_explicit = variants.iter().any(|variant| variant.discriminant.is_some());
    let in_order = names.windows(2).filter(|_| are_explicit).map(|pair| {
        let (one, next) = (pair[0], pair[1]);
        quote_spanned! {next.span()=>
            const _: () = ::core::assert!(
                (#ident::#one as ::core::primitive::i128) < (#ident::#next as ::core::primitive::i128),
                "the variants of a key are declared in the order of their discriminants"
            );
        }
    });
    quote! {
        #(#in_order)*

        const __CANDIDE_BITS: ::core::primitive::u32 = #bits;

        const __CANDIDE_TYPE: &#path::schema::FieldType = &#path::schema::FieldType::Enum {
            name: #name,
            bits: #bits,
            variants: &[#(#texts),*],
        };

        #[cfg_attr(not(debug_assertions), inline(always))]
        fn __candide_position(__value: &#ident) -> ::core::primitive::u64 {
            match __value {
                #(#ident::#names => #positions,)*
            }
        }

        #[cfg_attr(not(debug_assertions), inline(always))]
        fn __candide_variant(__position: ::core::primitive::u64) -> #ident {
            match __position {
                #(#positions => #ident::#names,)*
                __position => #path::derived::no_variant(#name, __position),
            }
        }

        #[automatically_derived]
        #key_header {
            type Words = [::core::primitive::u64; 1];
            const WIDTHS: &'static [::core::primitive::u32] = &[__CANDIDE_BITS];
            const KEY_TYPE: &'static #path::schema::FieldType = __CANDIDE_TYPE;

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn words(&self) -> [::core::primitive::u64; 1] {
                [__candide_position(self)]
            }

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn from_words(__words: &[::core::primitive::u64]) -> Self {
                __candide_variant(__words[0])
            }

            fn show(
                __words: &[::core::primitive::u64],
                __f: &mut ::core::fmt::Formatter<'_>,
            ) -> ::core::fmt::Result {
                #path::derived::show_variant(&[#(#texts),*], __words, __f)
            }
        }

        #as_key

        #[automatically_derived]
        #field_header {
            const BITS: ::core::primitive::u32 = __CANDIDE_BITS;
            const TYPE: &'static #path::schema::FieldType = __CANDIDE_TYPE;
            type Buffer = [::core::primitive::u64; 1];

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn word(&self, _: ::core::primitive::usize) -> ::core::primitive::u64 {
                __candide_position(self)
            }

            #[cfg_attr(not(debug_assertions), inline(always))]
            fn from_buffer(__buffer: &[::core::primitive::u64; 1]) -> Self {
                __candide_variant(__buffer[0])
            }
        }
    }
}
