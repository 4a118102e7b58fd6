//! Reading the attributes of the derives.

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::parse::Parser;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, LitInt, LitStr, Member, Meta, Path, Token, Type, parenthesized, token};

/// The errors found so far: the compiler shows all of them at once.
#[derive(Default)]
pub(crate) struct Errors(Option<syn::Error>);

impl Errors {
    /// Returns an error at `tokens`.
    pub(crate) fn at(&mut self, tokens: impl ToTokens, message: impl std::fmt::Display) {
        self.add(syn::Error::new_spanned(tokens, message));
    }

    pub(crate) fn add(&mut self, error: syn::Error) {
        match &mut self.0 {
            Some(errors) => errors.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// Returns the value of a result, or notes its error.
    pub(crate) fn take<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.add(error)).ok()
    }

    /// Returns `value` if no errors were found; otherwise all errors.
    pub(crate) fn or<T>(self, value: T) -> syn::Result<T> {
        self.0.map_or(Ok(value), Err)
    }
}

/// Sets an option that may be given once.
fn once<T>(
    option: &mut Option<T>,
    value: T,
    error: impl FnOnce(&str) -> syn::Error,
) -> syn::Result<()> {
    if option.replace(value).is_some() { Err(error("this option is given twice")) } else { Ok(()) }
}

/// Returns the one identifier in an attribute's parentheses.
pub(crate) fn one_name(attribute: &Attribute, message: &str) -> syn::Result<Ident> {
    let Meta::List(list) = &attribute.meta else {
        return Err(syn::Error::new_spanned(attribute, message));
    };
    if list.tokens.is_empty() {
        return Err(syn::Error::new_spanned(attribute, message));
    }
    attribute.parse_args_with(Ident::parse_any)
}

/// The kind of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Hashed,
    Ordered,
}

/// Names in parentheses.
pub(crate) type Names = Punctuated<Ident, Token![,]>;

/// Returns the codec that `#[record(with = ..)]` of a field names.
pub(crate) fn codec_of(attribute: &Attribute) -> syn::Result<Type> {
    let mut codec = None;
    if !matches!(attribute.meta, Meta::Path(_)) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("with") {
                return Err(meta.error(
                    "`#[record(..)]` of a field is `#[record(with = Codec)]`; other options belong to the struct",
                ));
            }
            let given = meta.value()?.parse()?;
            once(&mut codec, given, |message| meta.error(message))
        })?;
    }
    codec.ok_or_else(|| {
        syn::Error::new_spanned(attribute, "a field's codec has a name: `#[record(with = Codec)]`")
    })
}

/// `#[record(..)]`, or `#[key(..)]` of a key type.
#[derive(Default)]
pub(crate) struct TypeOptions {
    pub(crate) kind: Option<Kind>,
    pub(crate) path: Option<Path>,
    /// The groups that the struct declares, if it declares any.
    pub(crate) groups: Option<Names>,
}

impl TypeOptions {
    /// Adds the settings in `attribute`, of a record or of a key type.
    pub(crate) fn read(&mut self, attribute: &Attribute, is_record: bool) -> syn::Result<()> {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("crate") {
                let path = meta.value()?.call(Path::parse_mod_style)?;
                once(&mut self.path, path, |message| meta.error(message))
            } else if let (true, Some(kind)) = (is_record, kind_of(&meta.path)) {
                once(&mut self.kind, kind, |_| meta.error("an index is either `hash` or `ordered`"))
            } else if is_record && meta.path.is_ident("groups") {
                let groups = names_in_parentheses(&meta)?;
                once(&mut self.groups, groups, |message| meta.error(message))
            } else if is_record {
                Err(meta.error("unknown option: there are `hash`, `ordered`, `groups(a, b)` and `crate = path`"))
            } else {
                Err(meta.error("unknown option: there is `crate = path`"))
            }
        })
    }

    /// Returns the path to the crate.
    pub(crate) fn path(&self) -> Path {
        self.path.clone().unwrap_or_else(|| syn::parse_quote!(::candide))
    }
}

fn names_in_parentheses(meta: &ParseNestedMeta<'_>) -> syn::Result<Names> {
    let content;
    parenthesized!(content in meta.input);
    Punctuated::parse_terminated_with(&content, Ident::parse_any)
}

fn kind_of(path: &Path) -> Option<Kind> {
    if path.is_ident("hash") {
        Some(Kind::Hashed)
    } else if path.is_ident("ordered") {
        Some(Kind::Ordered)
    } else {
        None
    }
}

/// A column of an index that the struct declares: a field, or a part of one, `at.x: i32`.
pub(crate) struct IndexColumn {
    pub(crate) name: Ident,
    /// The parts on the way from the field, each of which is a part of the one before.
    pub(crate) parts: Vec<PartOf>,
    pub(crate) bytes: Option<Bytes>,
}

/// The most bytes that an index keeps of a column of any length.
#[derive(Clone, Copy)]
pub(crate) struct Bytes {
    pub(crate) most: usize,
    /// The place where the number is given.
    pub(crate) place: Span,
}

impl Bytes {
    /// The largest possible number.
    const MOST: usize = 240;
    /// The number if an attribute gives none.
    pub(crate) const DEFAULT: usize = 64;

    /// Reads the number behind `bytes`.
    fn of(meta: &ParseNestedMeta<'_>) -> syn::Result<Bytes> {
        let number: LitInt = meta.value()?.parse()?;
        match number.base10_parse() {
            Ok(most @ 1..=Bytes::MOST) => Ok(Bytes { most, place: number.span() }),
            _ => Err(syn::Error::new_spanned(number, "an index keeps 1 to 240 bytes of a column")),
        }
    }
}

/// A part of a struct that derives `Field`, with its type, which this macro cannot know.
#[derive(Clone)]
pub(crate) struct PartOf {
    pub(crate) member: Member,
    pub(crate) ty: Type,
}

impl PartOf {
    /// Returns the name as it follows the point.
    pub(crate) fn name(&self) -> String {
        match &self.member {
            Member::Named(name) => name.unraw().to_string(),
            Member::Unnamed(index) => index.index.to_string(),
        }
    }

    /// Returns the name of the constant that the part's struct has for it.
    pub(crate) fn constant(&self) -> Ident {
        match &self.member {
            Member::Named(name) => constant(name),
            Member::Unnamed(index) => Ident::new(&format!("PART_{}", index.index), index.span),
        }
    }
}

impl Parse for IndexColumn {
    fn parse(input: ParseStream<'_>) -> syn::Result<IndexColumn> {
        let name = input.call(Ident::parse_any)?;
        let mut parts = Vec::new();
        while input.peek(Token![.]) {
            input.parse::<Token![.]>()?;
            let member: Member = input.parse()?;
            if !input.peek(Token![:]) {
                let message = "a part of a field has its type: `at.x: i32`";
                return Err(syn::Error::new_spanned(member, message));
            }
            input.parse::<Token![:]>()?;
            parts.push(PartOf { member, ty: input.parse()? });
        }
        let mut bytes = None;
        if input.peek(token::Paren) {
            let content;
            parenthesized!(content in input);
            let parser = syn::meta::parser(|meta| {
                if !meta.path.is_ident("bytes") {
                    return Err(meta.error("unknown option: there is `bytes = ..`"));
                }
                once(&mut bytes, Bytes::of(&meta)?, |message| meta.error(message))
            });
            parser.parse2(content.parse()?)?;
        }
        Ok(IndexColumn { name, parts, bytes })
    }
}

impl ToTokens for IndexColumn {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        self.name.to_tokens(tokens);
        for PartOf { member, ty } in &self.parts {
            member.to_tokens(tokens);
            ty.to_tokens(tokens);
        }
    }
}

/// `#[index(..)]` or `#[unique(..)]`.
pub(crate) struct IndexOptions {
    pub(crate) unique: bool,
    pub(crate) name: Option<Ident>,
    pub(crate) columns: Option<Punctuated<IndexColumn, Token![,]>>,
    pub(crate) kind: Kind,
    pub(crate) bytes: Option<Bytes>,
}

impl IndexOptions {
    pub(crate) fn read(attribute: &Attribute) -> syn::Result<IndexOptions> {
        let unique = attribute.path().is_ident("unique");
        let (mut name, mut columns, mut kind, mut bytes) = (None, None, None, None);
        if !matches!(attribute.meta, Meta::Path(_)) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("name") {
                    let ident = meta.value()?.call(Ident::parse_any)?;
                    once(&mut name, ident, |message| meta.error(message))
                } else if meta.path.is_ident("columns") {
                    let content;
                    parenthesized!(content in meta.input);
                    let given = Punctuated::parse_terminated(&content)?;
                    once(&mut columns, given, |message| meta.error(message))
                } else if meta.path.is_ident("bytes") {
                    once(&mut bytes, Bytes::of(&meta)?, |message| meta.error(message))
                } else if let Some(given) = kind_of(&meta.path) {
                    once(&mut kind, given, |_| meta.error("an index is either `hash` or `ordered`"))
                } else {
                    Err(meta.error("unknown option: there are `hash`, `ordered`, `name = ..`, `bytes = ..` and `columns(..)`"))
                }
            })?;
        }
        let kind = kind.unwrap_or(if unique { Kind::Hashed } else { Kind::Ordered });
        Ok(IndexOptions { unique, name, columns, kind, bytes })
    }
}

/// Returns the name of the constant for something called `name`.
pub(crate) fn constant(name: &Ident) -> Ident {
    let unraw = name.unraw();
    Ident::new(&unraw.to_string().to_uppercase(), name.span())
}

/// Returns an identifier as a literal of its text.
pub(crate) fn literal(name: &Ident) -> LitStr {
    LitStr::new(&name.unraw().to_string(), Span::call_site())
}

/// Returns `path` as if it had been written at `place`, so that an error in code that uses it is
/// reported there.
pub(crate) fn moved(path: &Path, place: Span) -> TokenStream {
    let moved = |mut token: TokenTree| {
        // The meaning of `$crate` depends on the macro that contains it.
        let is_macros = matches!(&token, TokenTree::Ident(ident) if ident == "$crate");
        token.set_span(if is_macros { token.span() } else { place });
        token
    };
    path.to_token_stream().into_iter().map(moved).collect()
}

/// Returns the type of a field of `owner` with the name of `owner` in place of `Self`, because
/// derived code repeats the type elsewhere.
pub(crate) fn without_self(ty: &Type, owner: &Ident) -> Type {
    syn::parse2(replace_self(ty.to_token_stream(), owner))
        .expect("a type has a name where it had `Self`")
}

fn replace_self(tokens: TokenStream, owner: &Ident) -> TokenStream {
    let replace = |token| match token {
        TokenTree::Ident(ident) if ident == "Self" => {
            let mut name = owner.clone();
            name.set_span(owner.span().located_at(ident.span()));
            TokenTree::Ident(name)
        }
        TokenTree::Group(group) => {
            let mut replaced = Group::new(group.delimiter(), replace_self(group.stream(), owner));
            replaced.set_span(group.span());
            TokenTree::Group(replaced)
        }
        token => token,
    };
    tokens.into_iter().map(replace).collect()
}
