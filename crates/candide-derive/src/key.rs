//! `#[derive(Key)]`: the code for a composite key or an enum.

use crate::attributes::{Errors, TypeOptions, literal};
use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Fields, Member, Path, Token, Type, Variant};

pub(crate) fn expand(input: DeriveInput) -> syn::Result<TokenStream> {
    let DeriveInput { attrs, ident, generics, data, .. } = input;
    let mut errors = Errors::default();
    if !generics.params.is_empty() || generics.where_clause.is_some() {
        errors.at(&generics, "a key has no generic parameters: its number of words must be known here");
    }
    let mut options = TypeOptions::default();
    for attribute in attrs.iter().filter(|attribute| attribute.path().is_ident("key")) {
        errors.take(options.read(attribute, false));
    }
    let path = options.path();
    let code = match data {
        Data::Struct(data) => of_struct(&path, &ident, &data.fields, &mut errors),
        Data::Enum(data) => of_enum(&path, &ident, &data.variants, &mut errors),
        Data::Union(_) => {
            errors.at(&ident, "`Key` is derived for structs and for enums without fields");
            TokenStream::new()
        }
    };
    errors.or(quote! {
        #[allow(unused_qualifications)]
        const _: () = { #code };
    })
}

/// A composite: the words of the components one after another.
fn of_struct(path: &Path, ident: &Ident, fields: &Fields, errors: &mut Errors) -> TokenStream {
    if fields.is_empty() {
        errors.at(ident, "a key has at least one component");
    }
    for attribute in fields.iter().flat_map(|field| &field.attrs) {
        if attribute.path().is_ident("key") {
            errors.at(attribute, "every field of a key is a component; this attribute is for the fields of a record");
        }
    }
    let types: Vec<&Type> = fields.iter().map(|field| &field.ty).collect();
    let members: Vec<Member> = fields.members().collect();
    let count = |types: &[&Type]| {
        let counts = types.iter().map(|ty| quote_spanned!(ty.span()=> <#ty as #path::Key>::WORDS));
        quote!(#(#counts)+*)
    };
    let from_words = (0..types.len()).map(|number| {
        let (ty, before) = (types[number], count(&types[..number]));
        let before = if number == 0 { quote!(0) } else { before };
        quote_spanned!(ty.span()=> <#ty as #path::Key>::from_words(&__words[#before..]))
    });
    let prefixes = (1..types.len()).map(|length| {
        let (first, words) = (&types[..length], count(&types[..length]));
        let numbers = (0..length).map(syn::Index::from);
        quote! {
            #[automatically_derived]
            impl #path::KeyPrefix<#ident> for (#(#first,)*) {
                fn word_range(&self) -> #path::derived::WordRange {
                    let __words: [::core::primitive::u64; #words] = #path::derived::join(
                        0,
                        [#(::core::convert::AsRef::as_ref(&#path::Key::words(&self.#numbers))),*],
                    );
                    #path::derived::WordRange::beginning_with(&__words, <#ident as #path::Key>::WORDS)
                }
            }
        }
    });
    let words = count(&types);
    // Code that does not need its components to be fields unless somebody uses the key as one.
    let field = (types.len() == 1).then(|| {
        let (ty, member) = (types[0], &members[0]);
        quote! {
            #[automatically_derived]
            impl #path::Field for #ident
            where
                for<'__candide> #ty: #path::Field,
            {
                const BITS: ::core::primitive::u32 = <#ty as #path::Field>::BITS;
                type Buffer = <#ty as #path::Field>::Buffer;

                #[inline(always)]
                fn word(&self, __index: ::core::primitive::usize) -> ::core::primitive::u64 {
                    #path::Field::word(&self.#member, __index)
                }

                #[inline(always)]
                fn from_buffer(__buffer: &Self::Buffer) -> Self {
                    #ident { #member: #path::Field::from_buffer(__buffer) }
                }
            }
        }
    });
    quote! {
        #[automatically_derived]
        impl #path::Key for #ident {
            type Words = [::core::primitive::u64; #words];
            const WIDTHS: &'static [::core::primitive::u32] =
                &#path::derived::join::<::core::primitive::u32, { #words }, _>(0, [#(<#types as #path::Key>::WIDTHS),*]);

            #[inline(always)]
            fn words(&self) -> Self::Words {
                #path::derived::join(
                    0,
                    [#(::core::convert::AsRef::as_ref(&#path::Key::words(&self.#members))),*],
                )
            }

            #[inline(always)]
            fn from_words(__words: &[::core::primitive::u64]) -> Self {
                #ident { #(#members: #from_words),* }
            }
        }

        #(#prefixes)*
        #field
    }
}

/// An enum without fields: a value is the position of its variant.
fn of_enum(path: &Path, ident: &Ident, variants: &Punctuated<Variant, Token![,]>, errors: &mut Errors) -> TokenStream {
    if variants.is_empty() {
        errors.at(ident, "an enum without variants has no values");
    }
    for variant in variants.iter().filter(|variant| !matches!(variant.fields, Fields::Unit)) {
        errors.at(&variant.fields, "an enum is a key if its variants have no fields");
    }
    // An enum of one variant has a bit all the same: columns and words of keys are not empty.
    let last = variants.len().saturating_sub(1) as u64;
    let bits = (u64::BITS - last.leading_zeros()).max(1);
    let name = literal(ident);
    let names: Vec<&Ident> = variants.iter().map(|variant| &variant.ident).collect();
    let positions: Vec<u64> = (0..).take(names.len()).collect();
    quote! {
        const __CANDIDE_BITS: ::core::primitive::u32 = #bits;

        #[inline(always)]
        fn __candide_position(__value: &#ident) -> ::core::primitive::u64 {
            match __value {
                #(#ident::#names => #positions,)*
            }
        }

        #[inline(always)]
        fn __candide_variant(__position: ::core::primitive::u64) -> #ident {
            match __position {
                #(#positions => #ident::#names,)*
                __position => #path::derived::no_variant(#name, __position),
            }
        }

        #[automatically_derived]
        impl #path::Key for #ident {
            type Words = [::core::primitive::u64; 1];
            const WIDTHS: &'static [::core::primitive::u32] = &[__CANDIDE_BITS];

            #[inline(always)]
            fn words(&self) -> Self::Words {
                [__candide_position(self)]
            }

            #[inline(always)]
            fn from_words(__words: &[::core::primitive::u64]) -> Self {
                __candide_variant(__words[0])
            }
        }

        #[automatically_derived]
        impl #path::Field for #ident {
            const BITS: ::core::primitive::u32 = __CANDIDE_BITS;
            type Buffer = [::core::primitive::u64; 1];

            #[inline(always)]
            fn word(&self, _: ::core::primitive::usize) -> ::core::primitive::u64 {
                __candide_position(self)
            }

            #[inline(always)]
            fn from_buffer(__buffer: &Self::Buffer) -> Self {
                __candide_variant(__buffer[0])
            }
        }
    }
}
