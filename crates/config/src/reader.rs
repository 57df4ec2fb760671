//! Holds the syntax tree against the grammar: unknown, missing and doubled things are found here.

use std::collections::BTreeMap;
use std::ops::Range;

use hcl_edit::Span as _;
use hcl_edit::expr::Expression;
use hcl_edit::structure::{Attribute as AttributeNode, Block as BlockNode, Body, Structure};

use crate::convert::{Located, Problem, Setting, Typed, convert};
use crate::evaluate::Evaluator;
use crate::finding::Finding;
use crate::forms::check_key;
use crate::function;
use crate::grammar::{Attribute, Block, CASTLE, Kind, Label, Meaning, Presence, Times};
use crate::mask::{is_function_name, sounds_secret};
use crate::secrets::{looks_like_secret, plain_value, standing_secret};
use crate::suggest::{nearest, one_of};

/// What was read from one block; what is not here was wrong and has been reported, or was not given.
#[derive(Debug)]
pub(crate) struct Contents {
    /// The grammar of the block.
    pub(crate) grammar: &'static Block,
    /// The keyword and its label, for findings about the block as a whole.
    pub(crate) header: Range<usize>,
    /// The label.
    pub(crate) label: Option<Located<String>>,
    /// The values that are good, by their key; in an open block also those of unknown keys.
    values: BTreeMap<String, Value>,
    /// The blocks inside.
    pub(crate) blocks: Vec<Self>,
    /// Words that unknown words were probably meant to be; they are not called missing besides.
    meant: Vec<&'static str>,
    /// Keys that stand in the file, whether their values are good or not.
    written: Vec<String>,
    /// Whether something of the block was lost, so that nobody can say what it lacks.
    excused: bool,
    /// Whether something in it was found wrong.
    pub(crate) wrong: bool,
}

#[derive(Debug)]
struct Value {
    typed: Typed,
    range: Range<usize>,
    key: Range<usize>,
    given: bool,
}

impl Contents {
    /// A value and its place; none if it is wrong or was not given.
    pub(crate) fn get<T: FromTyped>(&self, key: &str) -> Option<Located<T>> {
        let value = self.values.get(key)?;
        Some(Located { value: T::from_typed(&value.typed)?, range: value.range.clone() })
    }

    /// A value without its place.
    pub(crate) fn plain<T: FromTyped>(&self, key: &str) -> Option<T> {
        self.get(key).map(|located| located.value)
    }

    /// Whether the key was written in the file and is good.
    pub(crate) fn is_given(&self, key: &str) -> bool {
        self.values.get(key).is_some_and(|value| value.given)
    }

    /// Whether the key stands in the file, its value good or not, or may have stood in what was lost of it.
    pub(crate) fn may_be_written(&self, key: &str) -> bool {
        self.excused || self.is_meant(key) || self.written.iter().any(|written| written == key)
    }

    /// The keys that were given, with their places.
    pub(crate) fn keys(&self) -> impl Iterator<Item = (&str, &Range<usize>)> {
        self.values.iter().filter(|(_, v)| v.given).map(|(key, v)| (key.as_str(), &v.key))
    }

    /// The first block of this keyword inside.
    pub(crate) fn block(&self, keyword: &str) -> Option<&Self> {
        self.blocks.iter().find(|b| b.grammar.keyword == keyword)
    }

    /// Whether the label should say of which kind the block is, and does not: its keys may be right for that kind.
    fn is_of_unknown_kind(&self) -> bool {
        matches!(self.grammar.label, Label::OneOf(_)) && self.label.is_none()
    }

    /// Whether an unknown word inside was probably meant to be this one.
    pub(crate) fn is_meant(&self, word: &str) -> bool {
        self.meant.contains(&word)
    }

    /// An attribute as a setting of this block, with an example that is right here.
    fn setting(&self, attribute: &Attribute) -> Setting<'static> {
        let label = self.label.as_ref().map(|label| label.value.as_str());
        let example = match (self.grammar.keyword, label, attribute.key) {
            ("nodes", Some("worker"), "count") => "2",
            ("nodes", Some("worker"), "first_ip") => "\"192.168.1.214\"",
            ("nodes", Some("worker"), "first_vmid") => "431",
            _ => attribute.example,
        };
        Setting { key: attribute.key, kind: attribute.kind, example }
    }

    /// The block of this keyword and label inside.
    pub(crate) fn labelled(&self, keyword: &str, label: &str) -> Option<&Self> {
        let named = |b: &&Self| b.label.as_ref().is_some_and(|l| l.value == label);
        self.blocks.iter().filter(|b| b.grammar.keyword == keyword).find(named)
    }
}

/// What can be taken out of a [`Typed`].
pub(crate) trait FromTyped: Sized {
    /// The value, if it is of this type.
    fn from_typed(typed: &Typed) -> Option<Self>;
}

/// Reads blocks, leaving findings with its evaluator.
pub(crate) struct Reader<'a> {
    /// Computes the values.
    pub(crate) evaluator: Evaluator<'a>,
    /// Where whole lines were lost to syntax errors.
    pub(crate) lost: &'a [usize],
    /// The castle's platform and where it is named, if it is a known one: it decides what else may be said.
    pub(crate) platform: Option<Located<String>>,
    /// The block that the file holds.
    pub(crate) root: &'static Block,
}

impl Reader<'_> {
    /// Reads the body of the file: one block `castle`.
    pub(crate) fn file(&mut self, body: &Body) -> Option<Contents> {
        let mut castle = None;
        for structure in body {
            match structure {
                Structure::Block(node) if node.has_ident("castle") => {
                    let header = header(node);
                    if castle.is_some() {
                        self.add(
                            Finding::error("C0007", "a second castle in the file")
                                .at(&header, "one file describes one castle")
                                .help("put it into a file of its own"),
                        );
                    } else {
                        self.platform = platform(node);
                        castle = Some(self.block(&CASTLE, node));
                    }
                }
                Structure::Block(node) => {
                    let name = node.ident.as_str();
                    let range = node.ident.span().unwrap_or_default();
                    let finding =
                        Finding::error("C0101", format!("there is no block `{name}` here"));
                    let help = match CASTLE.block(name) {
                        Some(_) => format!("move `{name}` into the block `castle`"),
                        None => "the file holds one block: castle \"name\" { … }".to_owned(),
                    };
                    self.add(finding.at(&range, "only `castle` stands outside of it").help(help));
                }
                Structure::Attribute(node) => {
                    let key = node.key.as_str();
                    let range = node.key.span().unwrap_or_default();
                    let finding = Finding::error("C0102", format!("there is no key `{key}` here"));
                    self.add(
                        finding
                            .at(&range, "outside of the block `castle`")
                            .help("the file holds one block: castle \"name\" { … }"),
                    );
                }
            }
        }
        if castle.is_none() {
            let finding = Finding::error("C0006", "there is no castle in the file");
            let help = "begin with castle \"blue\" { … }; examples/blue/castle.hcl is a whole one";
            self.add(finding.note("a castle file holds one block `castle`").help(help));
        }
        castle
    }

    /// Reads one block and those inside.
    pub(crate) fn block(&mut self, grammar: &'static Block, node: &BlockNode) -> Contents {
        let mut contents = Contents {
            grammar,
            header: header(node),
            label: self.label(grammar, node),
            values: BTreeMap::new(),
            blocks: Vec::new(),
            meant: Vec::new(),
            written: Vec::new(),
            excused: false,
            wrong: false,
        };
        let mark = self.evaluator.findings.mark();
        for structure in &node.body {
            match structure {
                Structure::Attribute(attribute) => {
                    contents.written.push(attribute.key.as_str().to_owned());
                    self.attribute(&mut contents, attribute);
                }
                Structure::Block(inner) => self.inner(&mut contents, inner),
            }
        }
        let range = node.span().unwrap_or_default();
        // Of a block of an unknown kind nobody can say what it lacks.
        contents.excused =
            contents.is_of_unknown_kind() || self.lost.iter().any(|at| range.contains(at));
        self.absent(&mut contents);
        contents.wrong = self.evaluator.findings.mark() > mark;
        contents
    }

    /// What the block lacks: defaults are filled in, the rest is reported.
    fn absent(&mut self, contents: &mut Contents) {
        let variant = self.variant_of(contents);
        for attribute in contents.grammar.attributes {
            let known = attribute.variant.is_none() || variant.is_some();
            if !known || !attribute.fits(variant.as_deref()) {
                continue;
            }
            let written = contents.written.iter().any(|key| key == attribute.key);
            match attribute.presence {
                Presence::Required if !contents.may_be_written(attribute.key) => {
                    self.missing_attribute(contents, attribute);
                }
                Presence::Default(text) if !written && !contents.is_meant(attribute.key) => {
                    self.default(contents, attribute, text);
                }
                _ => {}
            }
        }
        for inner in contents.grammar.blocks {
            let given =
                contents.block(inner.keyword).is_some() || contents.may_be_written(inner.keyword);
            if matches!(inner.times, Times::Once | Times::Several) && !given {
                let finding =
                    Finding::error("C0104", format!("the block `{}` is missing", inner.keyword));
                let finding = finding.at(&contents.header, "in this castle").note(inner.doc);
                self.add(finding.help(format!("add {} {{ … }}", inner.opening())));
            }
        }
    }

    /// What decides which attributes a block may have: its own label where that does, else the castle's platform.
    fn variant_of(&self, contents: &Contents) -> Option<String> {
        let by_label = contents.grammar.varies_by_label();
        let named = if by_label { &contents.label } else { &self.platform };
        named.as_ref().map(|located| located.value.clone())
    }

    fn label(&mut self, grammar: &Block, node: &BlockNode) -> Option<Located<String>> {
        let range = header(node);
        let finding = match (grammar.label, node.labels.as_slice()) {
            (Label::None, []) => return None,
            (Label::Name(_) | Label::OneOf(_), [label]) => {
                let text = label.as_str();
                let range = label.span().unwrap_or(range);
                if let Label::OneOf(words) = grammar.label
                    && !words.contains(&text)
                {
                    self.unknown_label(grammar, words, text, &range);
                    return None;
                }
                return Some(Located { value: text.to_owned(), range });
            }
            (Label::None, _) => {
                Finding::error("C0107", format!("`{}` takes no label", grammar.keyword))
            }
            _ => Finding::error("C0107", format!("`{}` takes one label", grammar.keyword)),
        };
        self.add(
            finding.at(&range, "in this line").help(format!("write {} {{ … }}", grammar.opening())),
        );
        None
    }

    fn unknown_label(&mut self, grammar: &Block, words: &[&str], text: &str, range: &Range<usize>) {
        let keyword = grammar.keyword;
        let help = match nearest(text, words.iter().copied()) {
            Some(near) => format!("did you mean {keyword} \"{near}\"?"),
            None => format!("write {keyword} \"{}\"", words[0]),
        };
        self.add(
            Finding::error("C0108", format!("`{keyword}` of an unknown kind"))
                .at(range, "not known to this version")
                .note(format!(
                    "this version knows {}",
                    one_of(words.iter().copied()).replace(" or ", " and ")
                ))
                .help(help),
        );
    }

    fn inner(&mut self, contents: &mut Contents, node: &BlockNode) {
        let keyword = node.ident.as_str();
        let range = node.ident.span().unwrap_or_default();
        let variant = self.variant_of(contents);
        let Some(grammar) = contents.grammar.block(keyword) else {
            let finding = if let Some(attribute) = contents.grammar.attribute(keyword) {
                Finding::error("C0110", format!("`{keyword}` is an attribute, not a block"))
                    .at(&range, "an attribute has `=`")
                    .help(format!("write {keyword} = {}", attribute.example))
            } else {
                Finding::error("C0101", format!("there is no block `{keyword}` here"))
                    .at(&range, format!("unknown in `{}`", contents.grammar.keyword))
                    .help(self.suggestion(contents.grammar, keyword, variant.as_deref()))
            };
            self.add(finding);
            contents.meant.extend(nearest(keyword, contents.grammar.words(variant.as_deref())));
            return;
        };
        let read = self.block(grammar, node);
        // Layers of one name are judged with the other names of layers; a label that is wrong has been reported.
        let misread = read.label.is_none() && !matches!(grammar.label, Label::None);
        let name = |c: &Contents| {
            c.label.as_ref().map(|l| &l.value) == read.label.as_ref().map(|l| &l.value)
        };
        let mut twins = contents.blocks.iter().filter(|b| b.grammar.keyword == keyword && name(b));
        match twins.next() {
            Some(first) if !matches!(grammar.times, Times::Any | Times::Several) && !misread => {
                let finding = Finding::error("C0105", format!("`{}` stands twice", text_of(&read)))
                    .at(&read.header, "the second time")
                    .related(&first.header, "the first time")
                    .help("make one block of the two");
                self.add(finding);
            }
            _ => contents.blocks.push(read),
        }
    }

    fn attribute(&mut self, contents: &mut Contents, node: &AttributeNode) {
        let key = node.key.as_str();
        let range = node.key.span().unwrap_or_default();
        let variant = self.variant_of(contents);
        let meaning = contents.grammar.meaning(key, variant.as_deref());
        let value = if let Meaning::Attribute(attribute) = meaning {
            self.value(&contents.setting(attribute), &node.value)
        } else if let Meaning::Elsewhere(other) = meaning {
            self.of_another_variant(contents, key, other, &range);
            return;
        } else if matches!(meaning, Meaning::Unsure) {
            return;
        } else if let Some(kind) = contents.grammar.open {
            let mark = self.evaluator.findings.mark();
            let value = self.value(&Setting { key, kind, example: "\"5m\"" }, &node.value);
            if sounds_secret(key) {
                self.evaluator.findings.seal(mark);
            }
            value
        } else if contents.is_of_unknown_kind() && contents.grammar.varies_by_label() {
            return;
        } else {
            let finding = if let Some(block) = contents.grammar.block(key) {
                Finding::error("C0110", format!("`{key}` is a block, not an attribute"))
                    .at(&range, "a block has no `=`")
                    .help(format!("write {} {{ … }}", block.opening()))
            } else {
                Finding::error("C0102", format!("there is no key `{key}` here"))
                    .at(&range, format!("unknown in `{}`", contents.grammar.keyword))
                    .help(self.suggestion(contents.grammar, key, variant.as_deref()))
            };
            self.add(finding);
            contents.meant.extend(nearest(key, contents.grammar.words(variant.as_deref())));
            return;
        };
        if let Some(Located { value: typed, range: place }) = value {
            let value = Value { typed, range: place, key: range, given: true };
            contents.values.insert(key.to_owned(), value);
        }
    }

    fn value(&mut self, setting: &Setting<'_>, expression: &Expression) -> Option<Located<Typed>> {
        if setting.kind == Kind::Secret {
            return self.secret(setting, expression);
        }
        let item = self.evaluator.evaluate(expression)?;
        match convert(setting, &item) {
            Ok(value) => Some(Located { value, range: item.range }),
            Err(Problem::Found(finding)) => {
                self.add(*finding);
                None
            }
            Err(Problem::Secret) => {
                self.escaped_secret(&item.range);
                None
            }
        }
    }

    /// A secret is taken from the syntax tree: the whole value must be a call of `secret` with a literal key.
    fn secret(&mut self, setting: &Setting<'_>, expression: &Expression) -> Option<Located<Typed>> {
        let range = expression.span().unwrap_or_default();
        if self.evaluator.broken.iter().any(|b| b.contains(&range.start)) {
            return None;
        }
        let call = match expression {
            Expression::FuncCall(call) if call.name.name.as_str() == "secret" => call,
            _ => {
                if self.is_plain(expression, &range) {
                    self.add(plain_value(setting.key, &range));
                }
                return None;
            }
        };
        let problem = match function::literal_path(call) {
            Some((key, place)) => match check_key(key) {
                Ok(()) => {
                    let value = Typed::Secret(castle_model::spec::SecretRef(key.to_owned()));
                    return Some(Located { value, range });
                }
                Err(reason) => (place, reason),
            },
            None => (range, "it takes one literal text: the key".to_owned()),
        };
        let finding =
            Finding::error("C0304", "`secret` without a proper key").at(&problem.0, "the key");
        self.add(
            finding.note(problem.1).help(format!("write {} = {}", setting.key, setting.example)),
        );
        None
    }

    /// Whether a value in the place of a secret is a plain one. What else is wrong with it, such as a misspelt
    /// function or a secret inside of an expression, the evaluator has said.
    fn is_plain(&mut self, expression: &Expression, range: &Range<usize>) -> bool {
        match expression {
            Expression::FuncCall(call) => {
                let name = call.name.name.as_str();
                matches!(name, "env" | "file")
                    || !is_function_name(name)
                    || self.evaluator.evaluate_sealed(expression).is_some()
            }
            Expression::String(text) if looks_like_secret(text.value()) => {
                self.escaped_secret(range);
                false
            }
            // The name of a function without a call is a slip; any other name may be the secret itself.
            Expression::Variable(name) if function::signature(name.as_str()).is_some() => {
                self.evaluator.evaluate(expression).is_some()
            }
            Expression::Variable(_) | Expression::Traversal(_) => true,
            _ => self.evaluator.evaluate_sealed(expression).is_some(),
        }
    }

    /// A secret is reported where it stands in the text; one that only shows after its escapes are undone, here.
    fn escaped_secret(&mut self, range: &Range<usize>) {
        let text = self.evaluator.sources.text.get(range.clone()).unwrap_or_default();
        if !looks_like_secret(&String::from_utf8_lossy(text)) {
            self.add(standing_secret("a secret", range));
        }
    }

    fn of_another_variant(
        &mut self,
        contents: &Contents,
        key: &str,
        other: &str,
        range: &Range<usize>,
    ) {
        if contents.grammar.keyword != "platform" && contents.grammar.varies_by_label() {
            let title = format!("`{key}` belongs into {} \"{other}\"", contents.grammar.keyword);
            self.add(
                Finding::error("C0112", title)
                    .at(range, format!("not in {}", text_of(contents)))
                    .help(format!("take `{key}` out")),
            );
            return;
        }
        let title = format!("`{key}` belongs to castles of platform \"{other}\"");
        let mut finding = Finding::error("C0112", title).at(range, "not in this castle");
        if let Some(platform) = &self.platform {
            finding = finding
                .related(&platform.range, "the platform of this castle")
                .note(match platform.value.as_str() {
                    "machines" => "machines that stand already are taken as they are: castle gives them no number, size or disk",
                    _ => "castle makes the VMs itself, so it knows all that there is to know about them",
                });
        }
        self.add(finding.help(format!("take `{key}` out")));
    }

    fn missing_attribute(&mut self, contents: &Contents, attribute: &Attribute) {
        let title = format!("`{}` lacks `{}`", text_of(contents), attribute.key);
        self.add(
            Finding::error("C0103", title)
                .at(&contents.header, "in this block")
                .note(attribute.doc)
                .help(format!(
                    "add it, such as {} = {}",
                    attribute.key,
                    contents.setting(attribute).example
                )),
        );
    }

    /// Reads a default as if it stood in the file, so that the reference tells the truth about it.
    fn default(&mut self, contents: &mut Contents, attribute: &Attribute, text: &str) {
        let Ok(expression) = hcl_edit::parser::parse_expr(text) else { return };
        let setting = contents.setting(attribute);
        let typed =
            self.evaluator.evaluate(&expression).and_then(|item| convert(&setting, &item).ok());
        if let Some(typed) = typed {
            let range = contents.header.clone();
            let value = Value { typed, key: range.clone(), range, given: false };
            contents.values.insert(attribute.key.to_owned(), value);
        }
    }

    /// What may have been meant by an unknown word: a near one here, or the same one elsewhere.
    fn suggestion(&self, grammar: &Block, word: &str, variant: Option<&str>) -> String {
        if let Some(near) = nearest(word, grammar.words(variant)) {
            return format!("did you mean `{near}`?");
        }
        let root = self.root;
        let elsewhere = root.blocks.iter().find(|b| b.attribute(word).is_some());
        if let Some(block) = elsewhere {
            return format!("`{word}` belongs into `{}`", block.keyword);
        }
        if root.block(word).is_some() || root.attribute(word).is_some() {
            return format!("`{word}` stands directly in `{}`", root.keyword);
        }
        format!("here may stand {}", one_of(grammar.words(variant)))
    }

    fn add(&mut self, finding: Finding) {
        self.evaluator.add(finding);
    }
}

/// The platform that a castle names first, if it is one of those that are known.
fn platform(castle: &BlockNode) -> Option<Located<String>> {
    let block = castle.body.get_blocks("platform").next()?;
    let label = block.labels.first()?;
    let Some(Label::OneOf(known)) = CASTLE.block("platform").map(|grammar| grammar.label) else {
        return None;
    };
    let range = label.span().unwrap_or_default();
    known.contains(&label.as_str()).then(|| Located { value: label.as_str().to_owned(), range })
}

/// How a block is named in a sentence.
fn text_of(contents: &Contents) -> String {
    match &contents.label {
        Some(label) => format!("{} \"{}\"", contents.grammar.keyword, label.value),
        None => contents.grammar.keyword.to_owned(),
    }
}

/// The keyword with its labels.
fn header(node: &BlockNode) -> Range<usize> {
    let start = node.ident.span().unwrap_or_default();
    let end = node.labels.last().and_then(hcl_edit::Span::span).map_or(start.end, |l| l.end);
    start.start..end
}
