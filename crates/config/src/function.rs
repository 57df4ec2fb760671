//! The functions of the castle file: few, pure, and each with a use.

use std::ops::Range;

use castle_model::Subnet;
use hcl_edit::Span as _;
use hcl_edit::expr::{Expression, FuncCall};

use crate::evaluate::Evaluator;
use crate::finding::Finding;
use crate::suggest::{nearest, one_of};
use crate::value::{Item, Value};

/// A function as the reference shows it.
#[derive(Debug)]
pub(crate) struct Function {
    /// Its name.
    pub(crate) name: &'static str,
    /// How it is called.
    pub(crate) signature: &'static str,
    /// What it gives.
    pub(crate) doc: &'static str,
    /// A line that uses it.
    pub(crate) example: &'static str,
}

/// Every function.
pub(crate) const FUNCTIONS: &[Function] = &[
    Function {
        name: "secret",
        signature: "secret(\"KEY\")",
        doc: "A reference to a key in the secret source. It is legal only as the whole value of an attribute of \
              type secret, and stays a reference until the moment of use: no value is read when the file is checked.",
        example: "token = secret(\"GITHUB_TOKEN\")",
    },
    Function {
        name: "env",
        signature: "env(\"NAME\") or env(\"NAME\", \"default\")",
        doc: "The text of an environment variable, or the default if it is not set. Not for secrets.",
        example: "endpoint = env(\"PVE_ENDPOINT\", \"https://pve.lan:8006\")",
    },
    Function {
        name: "file",
        signature: "file(\"path\")",
        doc: "The text of a file, by a literal path relative to the castle file and not outside its folder.",
        example: "ca = file(\"pve-root-ca.pem\")",
    },
    Function {
        name: "cidrhost",
        signature: "cidrhost(\"subnet\", number)",
        doc: "The address with this number in a subnet; a negative number counts from the end.",
        example: "vip = cidrhost(\"192.168.1.0/24\", 210)",
    },
    Function {
        name: "tonumber",
        signature: "tonumber(\"text\")",
        doc: "The whole number that a text spells, for numbers that come from the environment.",
        example: "count = tonumber(env(\"WORKERS\", \"2\"))",
    },
];

/// Why a file that is named has no text; whoever reads files for the castle file leaves all of these out.
pub(crate) const UNUSABLE: &str = "it is not there, is not a regular file, leads out of the project folder or is larger than 1 MiB";

/// The function of this name.
pub(crate) fn signature(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|f| f.name == name)
}

/// Calls a function. `secret` never gets here legally: it is taken off the syntax tree before evaluation.
pub(crate) fn call(
    evaluator: &mut Evaluator<'_>,
    call: &FuncCall,
    range: &Range<usize>,
) -> Option<Item> {
    let name = call.name.name.as_str();
    let known = if call.name.is_namespaced() { None } else { signature(name) };
    let Some(known) = known else {
        let names = || FUNCTIONS.iter().map(|f| f.name);
        let help = match nearest(name, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are {}", one_of(names()).replace(" or ", " and ")),
        };
        let finding = Finding::error("C0203", format!("there is no function `{name}`"));
        evaluator.add(finding.at(range, "called here").help(help));
        return None;
    };
    if known.name == "secret" {
        evaluator.add(
            Finding::error("C0301", "`secret` may not stand here")
                .at(range, "not the whole value of an attribute of type secret")
                .note("a secret stays a reference until the moment of use, so nothing can be computed with it")
                .note("it would also appear in plans, journals and logs as the plain value of this setting")
                .help("give the whole value as secret(\"KEY\") to an attribute of type secret, or a plain value here"),
        );
        return None;
    }
    if known.name == "file" {
        return file(evaluator, call, range, known);
    }
    let items: Vec<Option<Item>> = call.args.iter().map(|a| evaluator.evaluate(a)).collect();
    let items: Vec<Item> = items.into_iter().collect::<Option<_>>()?;
    let foreign = items.iter().any(|item| item.foreign);
    let values: Vec<&Value> = items.iter().map(|item| &item.value).collect();
    match (known.name, values.as_slice()) {
        ("env", [Value::Text(name)]) => env(evaluator, name, None, range),
        ("env", [Value::Text(name), Value::Text(default)]) => {
            env(evaluator, name, Some(default), range)
        }
        ("cidrhost", [Value::Text(subnet), Value::Integer(number)]) => {
            let value = match subnet.parse::<Subnet>() {
                Ok(subnet) => {
                    subnet.host(*number).map(|address| address.to_string()).ok_or_else(|| {
                        let size = 1_u64 << (32 - u32::from(subnet.prefix()));
                        format!("{subnet} has {size} addresses, numbered from 0")
                    })
                }
                Err(_) if foreign => Err("the first argument is not a subnet".to_owned()),
                Err(reason) => Err(reason),
            };
            finish(evaluator, value.map(Value::Text), known, range, foreign)
        }
        ("tonumber", [Value::Text(text)]) => {
            let value = text.trim().parse().map(Value::Integer);
            let value = value.map_err(|_| "the text is not a whole number".to_owned());
            finish(evaluator, value, known, range, foreign)
        }
        _ => wrong_arguments(evaluator, known, range),
    }
}

fn finish(
    evaluator: &mut Evaluator<'_>,
    value: Result<Value, String>,
    known: &Function,
    range: &Range<usize>,
    foreign: bool,
) -> Option<Item> {
    match value {
        Ok(value) => Some(Item { value, range: range.clone(), foreign }),
        Err(reason) => {
            let finding = Finding::error("C0204", format!("`{}` fails", known.name));
            let finding = finding.at(range, "called here").note(reason);
            evaluator.add(finding.help(format!("call it as {}", known.signature)));
            None
        }
    }
}

fn wrong_arguments(
    evaluator: &mut Evaluator<'_>,
    known: &Function,
    range: &Range<usize>,
) -> Option<Item> {
    let finding =
        Finding::error("C0204", format!("`{}` is called with other arguments", known.name));
    evaluator.add(
        finding
            .at(range, "called here")
            .help(format!("call it as {}, such as {}", known.signature, known.example)),
    );
    None
}

fn env(
    evaluator: &mut Evaluator<'_>,
    name: &str,
    default: Option<&str>,
    range: &Range<usize>,
) -> Option<Item> {
    let set = evaluator.sources.environment.get(name).map(String::as_str);
    let Some(text) = set.or(default) else {
        evaluator.add(
            Finding::error("C0207", format!("the environment variable `{name}` is not set"))
                .at(range, "read here")
                .help(format!("export {name}, or give a default: env(\"{name}\", \"…\")")),
        );
        return None;
    };
    let foreign = set.is_some();
    Some(Item { value: Value::Text(text.to_owned()), range: range.clone(), foreign })
}

/// The literal path of a call of `file`, if it has one.
pub(crate) fn literal_path(call: &FuncCall) -> Option<(&str, Range<usize>)> {
    let mut arguments = call.args.iter();
    match (arguments.next(), arguments.next()) {
        (Some(Expression::String(text)), None) => {
            Some((text.value(), text.span().unwrap_or_default()))
        }
        _ => None,
    }
}

fn file(
    evaluator: &mut Evaluator<'_>,
    call: &FuncCall,
    range: &Range<usize>,
    known: &Function,
) -> Option<Item> {
    let Some((path, place)) = literal_path(call) else {
        return wrong_arguments(evaluator, known, range);
    };
    let inside = match inside(path) {
        Ok(inside) => inside,
        Err(reason) => {
            evaluator.add(outside(path, &place, reason));
            return None;
        }
    };
    let text = match evaluator.sources.files.get(&inside) {
        None => Err(format!("`{inside}` can not be used")),
        Some(bytes) => {
            String::from_utf8(bytes.clone()).map_err(|_| format!("`{inside}` is not UTF-8"))
        }
    };
    match text {
        Ok(text) => Some(Item { value: Value::Text(text), range: range.clone(), foreign: true }),
        Err(reason) => {
            let mut finding = Finding::error("C0208", reason).at(&place, "read here");
            if !evaluator.sources.files.contains_key(&inside) {
                finding = finding.note(UNUSABLE);
            }
            evaluator.add(
                finding.help("check the path: it is relative to the folder of the castle file"),
            );
            None
        }
    }
}

/// The finding about a path that leads out of the project folder.
pub(crate) fn outside(path: &str, range: &Range<usize>, reason: &str) -> Finding {
    Finding::error("C0209", format!("`{path}` is outside of the project folder"))
        .at(range, reason)
        .note("a castle is described by its folder alone, so that it is the same on every machine")
        .help("copy the file into the folder of the castle file and name it by a relative path")
}

/// The path within the project folder in its plain form, without `./` and doubled slashes.
///
/// # Errors
/// Says how the path leads out of the folder.
pub(crate) fn inside(path: &str) -> Result<String, &'static str> {
    if path.starts_with('/') || path.starts_with('~') || path.contains('\\') {
        return Err("an absolute path");
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop().ok_or("`..` leads out of the folder")?;
            }
            part => parts.push(part),
        }
    }
    if parts.is_empty() { Err("the folder itself") } else { Ok(parts.join("/")) }
}
