//! `#[derive(Record)]`: the declarations of a struct about its rows.

use crate::attributes::{
    Bytes, Errors, IndexColumn, IndexOptions, Kind, Names, PartOf, TypeOptions, codec_of, constant,
    literal, moved, one_name, without_self,
};
use proc_macro2::{Ident, Span};
use quote::quote_spanned;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{
    Attribute, Data, DeriveInput, Expr, ExprLit, Fields, GenericArgument, Lit, Meta, MetaNameValue,
    Path, PathArguments, Type, TypePath, Visibility,
};

/// The largest number of components of a tuple key.
const TUPLE_MAX: usize = 4;
/// The largest number of groups, and of secondary indexes, of a record.
const GROUPS_MAX: usize = 64;
const INDEXES_MAX: usize = 32;
/// The group of fields that name none.
const DEFAULT_GROUP: &str = "row";

/// A row type.
pub(crate) struct Record {
    pub(crate) path: Path,
    pub(crate) ident: Ident,
    pub(crate) kind: Kind,
    pub(crate) keys: Vec<Column>,
    /// The fields without the keys, in order.
    pub(crate) columns: Vec<Column>,
    /// All fields, in the order of the struct.
    pub(crate) order: Vec<Field>,
    /// Names.
    pub(crate) groups: Vec<String>,
    pub(crate) indexes: Vec<Index>,
}

/// A field.
pub(crate) struct Column {
    pub(crate) ident: Ident,
    pub(crate) vis: Visibility,
    pub(crate) ty: Type,
    /// The type that is stored, which a codec may convert `ty` to.
    pub(crate) stored: Type,
    pub(crate) codec: Option<Type>,
    pub(crate) docs: Vec<Attribute>,
    /// The name of its constant.
    pub(crate) constant: Ident,
    /// The number of its group.
    pub(crate) group: usize,
    pub(crate) indexed: bool,
    pub(crate) default: Option<DefaultValue>,
    /// The earlier names of the field.
    pub(crate) former: Vec<String>,
}

/// The value of a column in rows that were made without it.
pub(crate) enum DefaultValue {
    Given(Expr),
    /// The default of the column's type; asked for at this place.
    OfType(Span),
}

impl DefaultValue {
    pub(crate) fn span(&self) -> Span {
        match self {
            DefaultValue::Given(value) => value.span(),
            DefaultValue::OfType(place) => *place,
        }
    }
}

/// A secondary index.
pub(crate) struct Index {
    pub(crate) name: Ident,
    pub(crate) vis: Visibility,
    pub(crate) constant: Ident,
    pub(crate) unique: bool,
    pub(crate) kind: Kind,
    pub(crate) fields: Vec<IndexField>,
}

/// A column of an index.
#[derive(Clone)]
pub(crate) struct IndexField {
    pub(crate) field: Field,
    /// The parts on the way from the field, if the index has a part of it.
    pub(crate) parts: Vec<PartOf>,
    /// The most bytes that the index keeps, if the column has any length.
    pub(crate) bytes: Option<usize>,
}

/// A field of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    /// The field of this number in [`Record::keys`].
    Key(usize),
    /// The field of this number in [`Record::columns`].
    Column(usize),
}

/// The attributes of one field.
#[derive(Default)]
struct FieldAttributes {
    key: bool,
    constant: Option<Ident>,
    group: Option<Ident>,
    index: Option<IndexOptions>,
    default: Option<DefaultValue>,
    former: Vec<String>,
    codec: Option<Type>,
}

impl FieldAttributes {
    fn read(attributes: &[Attribute], errors: &mut Errors) -> FieldAttributes {
        let mut read = FieldAttributes::default();
        for attribute in attributes {
            let path = attribute.path();
            let twice = if path.is_ident("key") {
                if !matches!(attribute.meta, Meta::Path(_)) {
                    errors.at(attribute, "`#[key]` of a field has no options");
                }
                std::mem::replace(&mut read.key, true)
            } else if path.is_ident("column") {
                let message = "a column's constant has a name: `#[column(NAME)]`";
                errors
                    .take(one_name(attribute, message))
                    .is_some_and(|name| read.constant.replace(name).is_some())
            } else if path.is_ident("group") {
                let message = "a group has a name: `#[group(name)]`";
                errors
                    .take(one_name(attribute, message))
                    .is_some_and(|name| read.group.replace(name).is_some())
            } else if path.is_ident("default") {
                // An attribute with `=` has a literal; other expressions are in parentheses.
                let value = match &attribute.meta {
                    Meta::NameValue(value) => Some(DefaultValue::Given(value.value.clone())),
                    Meta::List(_) => attribute.parse_args().ok().map(DefaultValue::Given),
                    Meta::Path(path) => Some(DefaultValue::OfType(path.span())),
                };
                if value.is_none() {
                    let message =
                        "a default is `#[default = 5]`, `#[default(-5)]`, or `#[default]`";
                    errors.at(attribute, message);
                }
                value.is_some_and(|value| read.default.replace(value).is_some())
            } else if path.is_ident("renamed") {
                match &attribute.meta {
                    Meta::NameValue(MetaNameValue {
                        value: Expr::Lit(ExprLit { lit: Lit::Str(name), .. }),
                        ..
                    }) => read.former.push(name.value()),
                    _ => errors.at(attribute, "an earlier name is a text: `#[renamed = \"name\"]`"),
                }
                false
            } else if path.is_ident("index") || path.is_ident("unique") {
                errors
                    .take(IndexOptions::read(attribute))
                    .is_some_and(|options| read.index.replace(options).is_some())
            } else if path.is_ident("record") {
                errors
                    .take(codec_of(attribute))
                    .is_some_and(|codec| read.codec.replace(codec).is_some())
            } else {
                false
            };
            if twice {
                let message = match path.is_ident("index") || path.is_ident("unique") {
                    true => {
                        "a field has one `#[index]` or `#[unique]`; further ones go on the struct, with `columns(..)`"
                    }
                    false => "the field has this attribute twice",
                };
                errors.at(attribute, message);
            }
        }
        read
    }
}

impl Record {
    pub(crate) fn read(input: DeriveInput) -> syn::Result<Record> {
        let DeriveInput { attrs, vis, ident, generics, data } = input;
        let mut errors = Errors::default();
        if !generics.params.is_empty() || generics.where_clause.is_some() {
            errors.at(
                &generics,
                "a record has no generic parameters: tables and constants are of one type",
            );
        }
        let Data::Struct(syn::DataStruct { fields: Fields::Named(fields), .. }) = data else {
            return Err(syn::Error::new_spanned(
                &ident,
                "`Record` is derived for structs with named fields",
            ));
        };

        let mut options = TypeOptions::default();
        let mut on_struct = Vec::new();
        for attribute in &attrs {
            let path = attribute.path();
            if path.is_ident("record") {
                errors.take(options.read(attribute, true));
            } else if path.is_ident("index") || path.is_ident("unique") {
                on_struct.extend(
                    errors.take(IndexOptions::read(attribute)).map(|options| (attribute, options)),
                );
            } else if ["key", "group", "column", "default", "renamed"]
                .iter()
                .any(|name| path.is_ident(name))
            {
                errors.at(attribute, "this attribute belongs to a field");
            }
        }

        let kind = options.kind.unwrap_or(Kind::Hashed);
        let mut record = Record {
            path: options.path(),
            ident,
            kind,
            keys: Vec::new(),
            columns: Vec::new(),
            order: Vec::new(),
            groups: Vec::new(),
            indexes: Vec::new(),
        };
        let on_fields = record.read_fields(fields.named, options.groups.as_ref(), &mut errors);
        for (field, name, options) in on_fields {
            let vis = record.field(field).vis.clone();
            let bytes = record.bytes_of(field, options.bytes, &mut errors);
            let fields = vec![IndexField { field, parts: Vec::new(), bytes }];
            record.add_index(name, vis, &options, fields, &mut errors);
        }
        for (attribute, options) in on_struct {
            record.read_composite(attribute, options, &vis, &mut errors);
        }
        record.check(&mut errors);
        errors.or(record)
    }

    /// Returns a field by its number among the keys or among the columns.
    pub(crate) fn field(&self, field: Field) -> &Column {
        match field {
            Field::Key(number) => &self.keys[number],
            Field::Column(number) => &self.columns[number],
        }
    }

    /// Adds the fields. Returns the indexes of single fields: the field, the index's name, and the
    /// attribute's content.
    fn read_fields(
        &mut self,
        fields: impl IntoIterator<Item = syn::Field>,
        declared: Option<&Names>,
        errors: &mut Errors,
    ) -> Vec<(Field, Ident, IndexOptions)> {
        let mut indexes = Vec::new();
        let mut in_default_group = Vec::new();
        for syn::Field { attrs, vis, ident, ty, .. } in fields {
            let (ident, ty) =
                (ident.expect("the fields have names"), without_self(&ty, &self.ident));
            let read = FieldAttributes::read(&attrs, errors);
            let docs =
                attrs.into_iter().filter(|attribute| attribute.path().is_ident("doc")).collect();
            let constant = read.constant.unwrap_or_else(|| constant(&ident));
            let (default, former) = (read.default, read.former);
            let (group, indexed) = (0, false);
            let codec = read.codec.map(|codec| without_self(&codec, &self.ident));
            let stored = codec.as_ref().map_or_else(|| ty.clone(), |codec| self.stored_by(codec));
            let mut column = Column {
                ident,
                vis,
                ty,
                stored,
                codec,
                docs,
                constant,
                group,
                indexed,
                default,
                former,
            };
            let field = match read.key {
                true => Field::Key(self.keys.len()),
                false => Field::Column(self.columns.len()),
            };
            self.order.push(field);
            if let Some(options) = read.index {
                if let Some(columns) = &options.columns {
                    errors.at(columns, "`columns(..)` belongs to an attribute of the struct");
                }
                let by =
                    || Ident::new(&format!("by_{}", column.ident.unraw()), column.ident.span());
                indexes.push((field, options.name.clone().unwrap_or_else(by), options));
            }
            if read.key {
                if let Some(group) = read.group {
                    errors.at(group, "a key field is in no group: a row keeps its key");
                }
                if let Some(codec) = &column.codec {
                    let message = "a key field has no codec: the table compares stored keys";
                    errors.at(codec, message);
                }
                if let Some(default) = &column.default {
                    let message = "a key field has no default: every row has a key";
                    errors.add(syn::Error::new(default.span(), message));
                }
                self.keys.push(column);
                continue;
            }
            if let (Some(group), Some(declared)) = (&read.group, declared) {
                check_group(group, declared, errors);
            }
            match read
                .group
                .map(|group| group.unraw().to_string())
                .filter(|group| group != DEFAULT_GROUP)
            {
                None => in_default_group.push(self.columns.len()),
                Some(group) => column.group = self.group(group),
            }
            self.columns.push(column);
        }
        for (number, name) in declared.into_iter().flatten().enumerate() {
            if declared
                .into_iter()
                .flatten()
                .take(number)
                .any(|other| other.unraw() == name.unraw())
            {
                errors.at(name, "the group is declared twice");
            } else if name.unraw() != DEFAULT_GROUP
                && !self.groups.iter().any(|group| name.unraw() == group)
            {
                errors.at(name, "no field lies in this group");
            }
        }
        // A row that consists of its key has a group, too: the cell of a group shows that the row
        // exists.
        if !in_default_group.is_empty() || self.columns.is_empty() {
            self.groups.insert(0, DEFAULT_GROUP.to_string());
            for (number, column) in self.columns.iter_mut().enumerate() {
                column.group =
                    if in_default_group.contains(&number) { 0 } else { column.group + 1 };
            }
        }
        indexes
    }

    /// Returns the type that a codec stores.
    fn stored_by(&self, codec: &Type) -> Type {
        let place = codec.span();
        let path = moved(&self.path, place);
        syn::parse2(quote_spanned!(place=> <#codec as #path::Codec>::Stored))
            .expect("a type's associated type is a type")
    }

    /// Returns the number of the group with this name.
    fn group(&mut self, name: String) -> usize {
        self.groups.iter().position(|group| *group == name).unwrap_or_else(|| {
            self.groups.push(name);
            self.groups.len() - 1
        })
    }

    /// Adds an index that the struct declares.
    fn read_composite(
        &mut self,
        attribute: &Attribute,
        options: IndexOptions,
        vis: &Visibility,
        errors: &mut Errors,
    ) {
        let Some(names) = options.columns.as_ref().filter(|names| !names.is_empty()) else {
            return errors.at(
                attribute,
                "an index that the struct declares names its columns: `columns(a, b)`",
            );
        };
        if let Some(Bytes { place, .. }) = options.bytes {
            let message = "`bytes` belongs to a column of the index: `columns(a, b(bytes = 64))`";
            errors.add(syn::Error::new(place, message));
        }
        if names.len() > TUPLE_MAX {
            errors.at(names, "an index has at most four columns");
        }
        let mut fields: Vec<IndexField> = Vec::new();
        for column in names {
            if let Some(field) = self.index_field(column, errors) {
                match fields.iter().any(|other| self.text_of(other) == self.text_of(&field)) {
                    true => errors.at(&column.name, "the index has this column already"),
                    false => fields.push(field),
                }
            }
        }
        let name = options.name.clone().unwrap_or_else(|| {
            let column = |column: &IndexColumn| {
                let parts = column.parts.iter().map(|part| format!("_{}", part.name()));
                column.name.unraw().to_string() + &parts.collect::<String>()
            };
            let joined: Vec<String> = names.iter().map(column).collect();
            Ident::new(&format!("by_{}", joined.join("_")), names[0].name.span())
        });
        let of_fields = fields.iter().map(|column| &self.field(column.field).vis);
        let vis = of_fields.chain([vis]).min_by_key(|vis| reach(vis)).unwrap_or(vis).clone();
        self.add_index(name, vis, &options, fields, errors);
    }

    /// Returns the field that a column of an index names, and its parts.
    fn index_field(&self, column: &IndexColumn, errors: &mut Errors) -> Option<IndexField> {
        let name = &column.name;
        let is_same = |column: &Column| column.ident.unraw() == name.unraw();
        let of_columns = self.columns.iter().position(is_same).map(Field::Column);
        let Some(field) = of_columns.or_else(|| self.keys.iter().position(is_same).map(Field::Key))
        else {
            let all = self.keys.iter().chain(&self.columns);
            let there_are: Vec<_> = all.map(|column| quoted(&column.ident)).collect();
            let message = format!(
                "there is no field {}; an index can have {}",
                quoted(name),
                there_are.join(", ")
            );
            errors.at(name, message);
            return None;
        };
        if let (Field::Key(_), Some(part)) = (field, column.parts.first()) {
            errors.at(&part.member, "an index has a key field whole: its parts are no columns");
            return None;
        }
        let part = |part: &PartOf| PartOf {
            member: part.member.clone(),
            ty: without_self(&part.ty, &self.ident),
        };
        let bytes = match (&column.parts[..], column.bytes) {
            ([], given) => self.bytes_of(field, given, errors),
            (_, None) => None,
            (_, Some(Bytes { place, .. })) => {
                let message = "a part of a field has a fixed length: an index keeps it whole";
                errors.add(syn::Error::new(place, message));
                None
            }
        };
        Some(IndexField { field, parts: column.parts.iter().map(part).collect(), bytes })
    }

    /// Returns the most bytes that an index keeps of a field: those given, or the default if the
    /// field's type shows that it has any length.
    fn bytes_of(&self, field: Field, given: Option<Bytes>, errors: &mut Errors) -> Option<usize> {
        match (field, given) {
            (Field::Key(_), Some(Bytes { place, .. })) => {
                let message = "a key field has a fixed length: an index keeps it whole";
                errors.add(syn::Error::new(place, message));
                None
            }
            (Field::Column(_), Some(given)) => Some(given.most),
            (Field::Column(number), None) if is_long(&self.columns[number].stored) => {
                Some(Bytes::DEFAULT)
            }
            _ => None,
        }
    }

    /// Returns the name of a column of an index, with its parts: `at.x`.
    pub(crate) fn text_of(&self, column: &IndexField) -> String {
        let parts = column.parts.iter().map(|part| format!(".{}", part.name()));
        self.field(column.field).ident.unraw().to_string() + &parts.collect::<String>()
    }

    /// Returns the type of a column of an index.
    pub(crate) fn type_of<'a>(&'a self, column: &'a IndexField) -> &'a Type {
        column.parts.last().map_or(&self.field(column.field).stored, |part| &part.ty)
    }

    fn add_index(
        &mut self,
        name: Ident,
        vis: Visibility,
        options: &IndexOptions,
        fields: Vec<IndexField>,
        errors: &mut Errors,
    ) {
        if self.indexes.iter().any(|index| index.name.unraw() == name.unraw()) {
            errors.at(&name, format!("there is an index `{}` already", name.unraw()));
            return;
        }
        for column in &fields {
            if let Field::Column(number) = column.field {
                self.columns[number].indexed = true;
            }
        }
        let constant = constant(&name);
        self.indexes.push(Index {
            name,
            vis,
            constant,
            unique: options.unique,
            kind: options.kind,
            fields,
        });
    }

    /// Checks the rules about all fields and indexes together.
    fn check(&self, errors: &mut Errors) {
        if self.keys.is_empty() {
            errors.at(&self.ident, "a record has a primary key: mark its fields with `#[key]`");
        }
        if let Some(column) = self.keys.get(TUPLE_MAX) {
            let message =
                "a key has at most four fields; a struct that derives `Key` may have more";
            errors.at(&column.ident, message);
        }
        if self.keys.len() == 1 {
            let is_of_key = |index: &&Index| match &index.fields[..] {
                [column] => column.field == Field::Key(0),
                _ => false,
            };
            for index in self.indexes.iter().filter(is_of_key) {
                errors.at(
                    &index.name,
                    "a key field needs no index: it is what the primary index finds rows by",
                );
            }
        }
        if self.groups.len() > GROUPS_MAX {
            errors.at(&self.ident, "a record has at most 64 groups");
        }
        if self.indexes.len() > INDEXES_MAX {
            errors.at(&self.ident, "a record has at most 32 indexes");
        }
        let mut constants: Vec<(&Ident, String)> = Vec::new();
        let fields = self.keys.iter().chain(&self.columns);
        let of_fields = fields
            .map(|field| (&field.constant, format!("field `{}`", literal(&field.ident).value())));
        let of_indexes = self
            .indexes
            .iter()
            .map(|index| (&index.constant, format!("index `{}`", index.name.unraw())));
        for (constant, owner) in of_fields.chain(of_indexes) {
            match constants.iter().find(|(other, _)| *other == constant) {
                Some((_, other)) => errors.at(
                    constant,
                    format!(
                        "the constants of {other} and {owner} are both called `{constant}`; \
                         give one another name by `#[column(NAME)]` of a field or `name = ..` of an index"
                    ),
                ),
                None => constants.push((constant, owner)),
            }
        }
    }
}

/// Checks that a struct which declares groups names no others; fields without a group form one
/// more.
fn check_group(group: &Ident, declared: &Names, errors: &mut Errors) {
    let is_same = |name: &Ident| name.unraw() == group.unraw();
    if group.unraw() != DEFAULT_GROUP && !declared.iter().any(is_same) {
        let there_are: String = declared.iter().map(|name| format!("{}, ", quoted(name))).collect();
        let message =
            format!("unknown group {}; the struct has {there_are}`{DEFAULT_GROUP}`", quoted(group));
        errors.at(group, message);
    }
}

/// Returns whether a type is `String`, `Vec<u8>`, or an option of one, as far as its text shows.
fn is_long(ty: &Type) -> bool {
    let Type::Path(TypePath { qself: None, path, .. }) = ty else { return false };
    let Some(last) = path.segments.last() else { return false };
    let argument = match &last.arguments {
        PathArguments::AngleBracketed(arguments) => match arguments.args.first() {
            Some(GenericArgument::Type(ty)) => Some(ty),
            _ => None,
        },
        _ => None,
    };
    match argument {
        None => last.ident == "String" && last.arguments.is_none(),
        Some(Type::Path(argument)) if last.ident == "Vec" => {
            argument.path.segments.last().is_some_and(|last| last.ident == "u8")
        }
        Some(argument) => last.ident == "Option" && is_long(argument),
    }
}

fn quoted(name: &Ident) -> String {
    format!("`{}`", name.unraw())
}

/// Returns the reach of a visibility, for comparisons: its own module, a module around it, the
/// crate, or everywhere. If two visibilities name modules around it by paths of the same kind, the
/// inner module is nearer; otherwise the module named by `super` is, since a macro does not know
/// the module that it is in.
fn reach(vis: &Visibility) -> (u8, usize) {
    match vis {
        Visibility::Inherited => (0, 0),
        Visibility::Restricted(restricted) => {
            let count = restricted.path.segments.len();
            let supers =
                restricted.path.segments.iter().filter(|segment| segment.ident == "super").count();
            match (supers, restricted.path.is_ident("self"), restricted.path.is_ident("crate")) {
                (_, true, _) => (0, 0),
                (_, _, true) => (2, 0),
                (0, ..) => (1, usize::MAX - count),
                (supers, ..) => (1, supers),
            }
        }
        Visibility::Public(_) => (3, 0),
    }
}
