//! Markup as a tree: elements, attributes and text, escaped when they are written and in no other way.

use std::fmt::Write as _;

use castle_view::clean;

/// Elements that have no content and no end.
const VOID: [&str; 3] = ["meta", "input", "br"];

/// One element.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    tag: &'static str,
    attributes: Vec<(&'static str, String)>,
    content: Vec<Content>,
}

#[derive(Debug, Clone)]
enum Content {
    Text(String),
    /// What stands in this room's own files; never anything that was read.
    Raw(&'static str),
    Node(Node),
}

/// An element without anything in it.
pub(crate) fn el(tag: &'static str) -> Node {
    Node { tag, attributes: Vec::new(), content: Vec::new() }
}

impl Node {
    pub(crate) fn attr(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.attributes.push((name, value.into()));
        self
    }

    pub(crate) fn class(self, names: &'static str) -> Self {
        self.attr("class", names)
    }

    /// Adds an attribute that says something by being there.
    pub(crate) fn flag(self, name: &'static str, is: bool) -> Self {
        if is { self.attr(name, "") } else { self }
    }

    /// Adds text, whoever wrote it.
    pub(crate) fn text(mut self, text: &str) -> Self {
        self.content.push(Content::Text(text.to_owned()));
        self
    }

    /// Adds sentences, whoever wrote them: what stands between backticks is shown as code.
    pub(crate) fn prose(self, text: &str) -> Self {
        let parts: Vec<&str> = text.split('`').collect();
        // One that is left open is a backtick.
        if parts.len().is_multiple_of(2) {
            return self.text(text);
        }
        let mut node = self;
        for (nth, part) in parts.into_iter().enumerate() {
            node = match nth % 2 {
                _ if part.is_empty() => node,
                0 => node.text(part),
                _ => node.child(el("code").text(part)),
            };
        }
        node
    }

    pub(crate) fn raw(mut self, text: &'static str) -> Self {
        self.content.push(Content::Raw(text));
        self
    }

    pub(crate) fn child(mut self, node: Self) -> Self {
        self.content.push(Content::Node(node));
        self
    }

    pub(crate) fn maybe(self, node: Option<Self>) -> Self {
        self.children(node)
    }

    pub(crate) fn children(mut self, nodes: impl IntoIterator<Item = Self>) -> Self {
        self.content.extend(nodes.into_iter().map(Content::Node));
        self
    }

    /// The element as HTML.
    pub(crate) fn write(&self) -> String {
        let mut out = String::new();
        self.write_to(&mut out);
        out
    }

    fn write_to(&self, out: &mut String) {
        out.push('<');
        out.push_str(self.tag);
        for (name, value) in &self.attributes {
            let _ = write!(out, " {name}");
            if !value.is_empty() {
                let _ = write!(out, "=\"{}\"", escaped(value));
            }
        }
        out.push('>');
        for content in &self.content {
            match content {
                Content::Text(text) => out.push_str(&escaped(text)),
                Content::Raw(text) => out.push_str(text),
                Content::Node(node) => node.write_to(out),
            }
        }
        if !VOID.contains(&self.tag) {
            let _ = write!(out, "</{}>", self.tag);
        }
    }
}

/// Text as it may stand between tags and in quotes, without anything that a browser or a reader could be misled by.
fn escaped(text: &str) -> String {
    let (begins, ends) = (text.starts_with(' '), text.ends_with(' ') && text.len() > 1);
    let mut out = String::with_capacity(text.len() + 2);
    if begins {
        out.push(' ');
    }
    for c in clean(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    if ends {
        out.push(' ');
    }
    out
}
