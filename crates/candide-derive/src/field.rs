//! `#[derive(Field)]`: the code for a struct of fields, or an enum with data, as a column.

use crate::attributes::{Errors, TypeOptions, constant, literal, moved, without_self};
use crate::expand::type_text;
use crate::key::{header, newtype_number, one_derive};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Fields, Member, Path, Token, Type, Variant, Visibility};

pub(crate) fn expand(input: DeriveInput) -> syn::Result<TokenStream> {
    let DeriveInput { attrs, ident, vis, generics, data } = input;
    let mut errors = Errors::default();
    if !generics.params.is_empty() || generics.where_clause.is_some() {
        errors.at(&generics, "a field has no generic parameters: its size must be known here");
    }
    let mut options = TypeOptions::default();
    for attribute in attrs.iter().filter(|attribute| attribute.path().is_ident("field")) {
        errors.take(options.read(attribute, false));
    }
    let whole = Whole { path: &options.path(), ident: &ident, vis: &vis };
    let code = match data {
        Data::Struct(mut data) => {
            data.fields.iter_mut().for_each(|field| field.ty = without_self(&field.ty, &ident));
            if data.fields.is_empty() {
                errors.at(&ident, "a struct without fields has no bits to be a column of");
            }
            whole.of_struct(&data.fields)
        }
        Data::Enum(mut data) => {
            for field in data.variants.iter_mut().flat_map(|variant| &mut variant.fields) {
                field.ty = without_self(&field.ty, &ident);
            }
            if data.variants.is_empty() {
                errors.at(&ident, "an enum without variants has no values");
            }
            if !data.variants.is_empty()
                && data.variants.iter().all(|variant| variant.fields.is_empty())
            {
                errors.at(
                    &ident,
                    "no variant has data: derive `Key`, which makes the enum a column and a key",
                );
            }
            whole.of_enum(&data.variants)
        }
        Data::Union(_) => {
            errors.at(&ident, "`Field` is derived for structs and enums");
            TokenStream::new()
        }
    };
    errors.or(quote! {
        #[allow(dead_code, unused_qualifications)]
        const _: () = { #code };
    })
}

/// The type that is derived for.
struct Whole<'a> {
    path: &'a Path,
    ident: &'a Ident,
    vis: &'a Visibility,
}

/// A part of the type: a field of the struct, or of a variant.
struct Part<'a> {
    path: &'a Path,
    ty: &'a Type,
    member: Member,
    /// The constant with the places of its struct or variant, and its number there.
    places: &'a Ident,
    number: usize,
}

impl Part<'_> {
    /// Returns an item of `FieldPart`, at the place of the type, where the compiler reports an
    /// unsuitable one.
    fn item(&self, item: &str) -> TokenStream {
        let (ty, place) = (self.ty, self.ty.span());
        let (path, item) = (moved(self.path, place), Ident::new(item, place));
        quote_spanned!(place=> <#ty as #path::derived::FieldPart>::#item)
    }

    fn name(&self) -> String {
        match &self.member {
            Member::Named(name) => name.unraw().to_string(),
            Member::Unnamed(index) => index.index.to_string(),
        }
    }

    fn place(&self) -> TokenStream {
        let (places, number) = (self.places, self.number);
        quote!(#places.at(#number))
    }

    /// Returns what the part, a reference, has in word `__index`.
    fn word(&self, value: TokenStream) -> TokenStream {
        let (item, place) = (self.item("part_word"), self.place());
        quote!(#item(#value, #place, __index))
    }

    /// Returns the part that `__words` hold, as the field of an expression.
    fn take(&self) -> TokenStream {
        let (member, item, place) = (&self.member, self.item("take_part"), self.place());
        quote!(#member: #item(__words, #place))
    }

    fn part_type(&self) -> TokenStream {
        let Part { path, places, number, .. } = self;
        let (name, ty) = (self.name(), self.item("TYPE"));
        quote!(#path::schema::PartType { name: #name, bit: #places.bit(#number), ty: #ty })
    }
}

/// Returns the parts that fields are.
fn parts<'a>(path: &'a Path, fields: &'a Fields, places: &'a Ident) -> Vec<Part<'a>> {
    let parts = fields.iter().zip(fields.members()).enumerate();
    let part = |(number, (field, member)): (usize, (&'a syn::Field, Member))| Part {
        path,
        ty: &field.ty,
        member,
        places,
        number,
    };
    parts.map(part).collect()
}

impl Whole<'_> {
    /// Returns the constant with the places of parts behind a tag.
    fn places(&self, name: &Ident, tag_bits: u32, parts: &[Part<'_>]) -> TokenStream {
        let (path, count) = (self.path, parts.len());
        let sizes = parts.iter().map(|part| part.item("SIZE"));
        quote! {
            const #name: #path::derived::Parts<#count> =
                #path::derived::Parts::new(#tag_bits, [#(#sizes),*]);
        }
    }

    /// Returns the implementation of `Field`.
    fn implementation(
        &self,
        parts: &[Part<'_>],
        texts: &[String],
        (signed, ty, word, value): (TokenStream, TokenStream, TokenStream, TokenStream),
    ) -> TokenStream {
        let path = self.path;
        let header = header(path, "schema::Field", self.ident);
        let layouts = parts.iter().map(|part| part.item("LAYOUT"));
        quote! {
            #[automatically_derived]
            #header {
                const BITS: ::core::primitive::u32 = __CANDIDE_BITS;
                const SIGNED: ::core::primitive::bool = #signed;
                const LAYOUT: ::core::primitive::u64 = #path::derived::key_layout(
                    &[#(#texts),*],
                    &[__CANDIDE_BITS as ::core::primitive::u64, #(#layouts),*],
                );
                const TYPE: &'static #path::schema::FieldType = &#ty;
                type Buffer = [::core::primitive::u64; __CANDIDE_BITS.div_ceil(64) as ::core::primitive::usize];

                #[cfg_attr(not(debug_assertions), inline(always))]
                fn word(&self, __index: ::core::primitive::usize) -> ::core::primitive::u64 {
                    #word
                }

                #[cfg_attr(not(debug_assertions), inline(always))]
                fn from_buffer(__words: &Self::Buffer) -> Self {
                    #value
                }
            }
        }
    }

    fn of_struct(&self, fields: &Fields) -> TokenStream {
        let Whole { path, ident, .. } = *self;
        let places = Ident::new("__CANDIDE_PARTS", Span::call_site());
        let parts = parts(path, fields, &places);
        let constants = parts.iter().zip(fields).map(|(part, field)| {
            let (ty, name, place, vis) = (part.ty, part.name(), part.place(), &field.vis);
            let constant = match &part.member {
                Member::Named(name) => constant(name),
                Member::Unnamed(index) => format_ident!("PART_{}", index.index),
            };
            let doc = format!("Part `{name}`.");
            quote! {
                #[doc = #doc]
                #vis const #constant: #path::schema::Part<#ident, #ty> =
                    #path::schema::Part::derived(#place, #name);
            }
        });
        let texts: Vec<String> =
            parts.iter().flat_map(|part| [part.name(), type_text(part.ty)]).collect();
        let (name, types) = (literal(ident), parts.iter().map(Part::part_type));
        let ty = quote! {
            #path::schema::FieldType::Nested {
                name: #name,
                bits: __CANDIDE_BITS,
                parts: &[#(#types),*],
            }
        };
        let words = parts.iter().map(|part| {
            let member = &part.member;
            part.word(quote!(&self.#member))
        });
        let takes = parts.iter().map(Part::take);
        let (word, value) = (quote!(0 #(| #words)*), quote!(#ident { #(#takes),* }));
        let (signed, number) = match &parts[..] {
            [part] => {
                let number = newtype_number(path, ident, part.ty, &part.member);
                let one = one_derive(ident);
                (part.item("SIGNED"), quote!(#number #one))
            }
            _ => (quote!(false), TokenStream::new()),
        };
        let implementation = self.implementation(&parts, &texts, (signed, ty, word, value));
        let packing = self.places(&places, 0, &parts);
        quote! {
            #packing
            const __CANDIDE_BITS: ::core::primitive::u32 = __CANDIDE_PARTS.bits;
            #[automatically_derived]
            impl #ident {
                #(#constants)*
            }
            #implementation
            #number
        }
    }

    fn of_enum(&self, variants: &Punctuated<Variant, Token![,]>) -> TokenStream {
        let Whole { path, ident, vis } = *self;
        let last = variants.len().saturating_sub(1) as u64;
        let tag_bits = (u64::BITS - last.leading_zeros()).max(1);
        let names: Vec<Ident> =
            (0..variants.len()).map(|number| format_ident!("__CANDIDE_VARIANT_{number}")).collect();
        let of_variants: Vec<Vec<Part<'_>>> = variants
            .iter()
            .zip(&names)
            .map(|(variant, places)| parts(path, &variant.fields, places))
            .collect();
        let packings = names.iter().zip(&of_variants);
        let packings = packings.map(|(name, parts)| self.places(name, tag_bits, parts));
        let packings: Vec<TokenStream> = packings.collect();
        let texts: Vec<_> = variants.iter().map(|variant| literal(&variant.ident)).collect();
        let (mut types, mut words, mut values, mut constants) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut layout: Vec<String> = Vec::new();
        for (number, (variant, parts)) in (0u64..).zip(variants.iter().zip(&of_variants)) {
            let (name, text) = (&variant.ident, literal(&variant.ident));
            let part_types = parts.iter().map(Part::part_type);
            types.push(quote!((#text, &[#(#part_types),*])));
            let bound: Vec<Ident> =
                (0..parts.len()).map(|part| format_ident!("__part_{part}")).collect();
            let members = parts.iter().map(|part| &part.member);
            let of_parts = parts.iter().zip(&bound).map(|(part, bound)| part.word(quote!(#bound)));
            words.push(quote! {
                #ident::#name { #(#members: #bound),* } => (if __index == 0 { #number } else { 0 }) #(| #of_parts)*
            });
            let takes = parts.iter().map(Part::take);
            values.push(quote!(#number => #ident::#name { #(#takes),* }));
            let (constant, doc) = (screaming(name), format!("The variant `{}`.", text.value()));
            constants.push(quote! {
                #[doc = #doc]
                #vis const #constant: #path::schema::Tag<#ident> =
                    #path::schema::Tag::derived(#number);
            });
            layout.push(text.value());
            layout.extend(parts.iter().flat_map(|part| [part.name(), type_text(part.ty)]));
        }
        let name = literal(ident);
        let ty = quote! {
            #path::schema::FieldType::Variants {
                name: #name,
                bits: __CANDIDE_BITS,
                tag_bits: #tag_bits,
                variants: &[#(#types),*],
            }
        };
        let mask = u64::MAX >> (u64::BITS - tag_bits);
        let (word, value) = (
            quote!(match self { #(#words),* }),
            quote! {
                match __words[0] & #mask {
                    #(#values,)*
                    __tag => #path::derived::no_tag(#name, __tag),
                }
            },
        );
        let all: Vec<Part<'_>> = of_variants.into_iter().flatten().collect();
        let implementation = self.implementation(&all, &layout, (quote!(false), ty, word, value));
        quote! {
            #(#packings)*
            const __CANDIDE_BITS: ::core::primitive::u32 =
                #path::derived::most_bits(&[#(#names.bits),*]);
            #[automatically_derived]
            impl #ident {
                #(#constants)*
            }
            #[automatically_derived]
            impl #path::schema::Tagged for #ident {
                const TAG_BITS: ::core::primitive::u32 = #tag_bits;
                const TAGS: &'static [&'static ::core::primitive::str] = &[#(#texts),*];
                const TAG_TYPE: &'static #path::schema::FieldType =
                    &#path::schema::FieldType::Enum {
                        name: #name,
                        bits: #tag_bits,
                        variants: &[#(#texts),*],
                    };
            }
            #implementation
        }
    }
}

/// Returns the name of the constant for a variant: `SendMail` is `SEND_MAIL`.
fn screaming(name: &Ident) -> Ident {
    let mut screaming = String::new();
    let mut is_after_small = false;
    for letter in name.unraw().to_string().chars() {
        if letter.is_uppercase() && is_after_small {
            screaming.push('_');
        }
        is_after_small = !letter.is_uppercase() && letter != '_';
        screaming.extend(letter.to_uppercase());
    }
    Ident::new(&screaming, name.span())
}
