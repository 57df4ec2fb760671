//! Computes expressions on the syntax tree, so that each mistake has its exact place and nothing can run long.
//!
//! There are no variables in a castle file, so there is nothing to loop over: the work is linear in the text.

use std::ops::Range;

use castle_model::spec::Shape;
use hcl_edit::Span as _;
use hcl_edit::expr::{
    BinaryOp, BinaryOperator, Conditional, Expression, Object, UnaryOp, UnaryOperator,
};
use hcl_edit::template::{Element, Strip, Template};

use crate::Sources;
use crate::finding::{Finding, Findings};
use crate::function;
use crate::mask::{is_function_name, is_name_of_secret, sounds_secret};
use crate::scan::boundary;
use crate::secrets::{find_secrets, looks_like_secret, named_secret};
use crate::value::{Item, Value};

/// How many bytes before a value are looked at for the name that makes it a secret.
const NAME_BEFORE: usize = 128;

/// Evaluates the expressions of one castle file.
pub(crate) struct Evaluator<'a> {
    /// The files and the environment that `file` and `env` may read.
    pub(crate) sources: &'a Sources,
    /// Where broken values stood; they have been reported.
    pub(crate) broken: &'a [Range<usize>],
    /// Everything found so far.
    pub(crate) findings: &'a mut Findings,
}

impl Evaluator<'_> {
    /// The value of an expression; none if it has none, which has then been reported.
    pub(crate) fn evaluate(&mut self, expression: &Expression) -> Option<Item> {
        let range = expression.span().unwrap_or_default();
        if self.broken.iter().any(|b| b.contains(&range.start)) {
            return None;
        }
        let mut foreign = false;
        let value = match expression {
            Expression::Null(_) => Value::Null,
            Expression::Bool(value) => Value::Boolean(*value.value()),
            Expression::Number(number) => match number.value().as_i64() {
                Some(whole) => Value::Integer(whole),
                None => Value::Fraction(number.value().to_string()),
            },
            Expression::String(text) => Value::Text(text.value().clone()),
            Expression::Array(array) => {
                // All elements are looked at, so that each mistake in a list is found.
                let items: Vec<_> = array.iter().map(|e| self.evaluate(e)).collect();
                Value::List(items.into_iter().collect::<Option<_>>()?)
            }
            Expression::Object(object) => self.object(object)?,
            Expression::StringTemplate(template) => {
                self.template(template.iter(), &range, &mut foreign)?
            }
            Expression::HeredocTemplate(heredoc) => {
                let template: &Template = &heredoc.template;
                self.template(template.iter(), &range, &mut foreign)?
            }
            Expression::Parenthesis(inner) => {
                return self.evaluate(inner.inner()).map(|item| Item { range, ..item });
            }
            Expression::Conditional(conditional) => return self.conditional(conditional, &range),
            Expression::FuncCall(call) => return function::call(self, call, &range),
            Expression::UnaryOp(operation) => return self.unary(operation, &range),
            Expression::BinaryOp(operation) => return self.binary(operation, &range),
            Expression::Variable(name) => return self.variable(name.as_str(), &range),
            Expression::Traversal(_) | Expression::ForExpr(_) => {
                return self.refuse(&range, "a reference or a loop", "write the values themselves");
            }
        };
        Some(Item { value, range, foreign })
    }

    /// The value of an expression that may be a secret: no finding repeats anything of it but a misspelt function.
    pub(crate) fn evaluate_sealed(&mut self, expression: &Expression) -> Option<Item> {
        let mark = self.findings.mark();
        let item = self.evaluate(expression);
        let misspelt = match expression {
            Expression::FuncCall(call) => {
                let name = call.name.name.as_str();
                is_function_name(name) && function::signature(name).is_none()
            }
            _ => false,
        };
        if !misspelt {
            self.findings.seal(mark);
        }
        item
    }

    /// Refuses a plain value under a name of a secret, unless it has been reported by its shape.
    fn plain_secret(&mut self, name: &str, item: &Item) {
        let plain = match &item.value {
            // The word for a form, as `shapes` takes it, says something about a secret and is none.
            Value::Text(text) => {
                let is_form = Shape::named(text).is_some();
                !text.is_empty() && !item.foreign && !is_form && !looks_like_secret(text)
            }
            Value::Integer(_) | Value::Fraction(_) => true,
            _ => false,
        };
        if !plain || !is_name_of_secret(name) {
            return;
        }
        let text = std::str::from_utf8(&self.sources.text).unwrap_or_default();
        let start = boundary(text, item.range.start.saturating_sub(NAME_BEFORE));
        let near = text.get(start..item.range.end).unwrap_or_default();
        let shaped =
            find_secrets(near).iter().any(|(range, _)| start + range.end > item.range.start);
        if !shaped {
            self.add(named_secret(name, &item.range));
        }
    }

    fn object(&mut self, object: &Object) -> Option<Value> {
        let mut entries = Vec::new();
        let mut whole = true;
        for (key, value) in object {
            let name = match key {
                hcl_edit::expr::ObjectKey::Ident(name) => Some(name.as_str().to_owned()),
                hcl_edit::expr::ObjectKey::Expression(expression) => {
                    match self.evaluate(expression) {
                        Some(Item { value: Value::Text(text), .. }) => Some(text),
                        Some(item) => {
                            let title = format!("a key must be text, not {}", item.value.kind());
                            self.add(Finding::error("C0201", title).at(&item.range, "the key"));
                            None
                        }
                        None => None,
                    }
                }
            };
            let item = match &name {
                Some(name) if sounds_secret(name) => self.evaluate_sealed(value.expr()),
                _ => self.evaluate(value.expr()),
            };
            match (name, item) {
                (Some(name), Some(item)) => {
                    self.plain_secret(&name, &item);
                    entries.push((name, item));
                }
                _ => whole = false,
            }
        }
        whole.then_some(Value::Map(entries))
    }

    fn template<'t>(
        &mut self,
        elements: impl Iterator<Item = &'t Element>,
        range: &Range<usize>,
        foreign: &mut bool,
    ) -> Option<Value> {
        let mut text = Some(String::new());
        for element in elements {
            let piece = match element {
                Element::Literal(literal) => Some(literal.value().clone()),
                Element::Interpolation(interpolation) if interpolation.strip != Strip::None => {
                    self.refuse(range, "a strip marker (`~`)", "leave the `~` out").and(None)
                }
                Element::Interpolation(interpolation) => {
                    self.evaluate(&interpolation.expr).and_then(|item| {
                        *foreign |= item.foreign;
                        self.as_text(&item)
                    })
                }
                Element::Directive(_) => {
                    self.refuse(range, "a template directive", "write the text itself").and(None)
                }
            };
            text = text.zip(piece).map(|(text, piece)| text + &piece);
        }
        text.map(Value::Text)
    }

    fn as_text(&mut self, item: &Item) -> Option<String> {
        match &item.value {
            Value::Text(text) => Some(text.clone()),
            Value::Integer(number) => Some(number.to_string()),
            Value::Boolean(value) => Some(value.to_string()),
            other => {
                let title = format!("{} can not stand inside of text", other.kind());
                self.add(Finding::error("C0201", title).at(&item.range, "used inside of text"));
                None
            }
        }
    }

    fn conditional(&mut self, conditional: &Conditional, range: &Range<usize>) -> Option<Item> {
        let condition = self.evaluate(&conditional.cond_expr)?;
        let Value::Boolean(chosen) = condition.value else {
            let title = format!("a condition must be a boolean, not {}", condition.value.kind());
            self.add(Finding::error("C0201", title).at(&condition.range, "the condition"));
            return None;
        };
        let branch = if chosen { &conditional.true_expr } else { &conditional.false_expr };
        self.evaluate(branch).map(|item| Item { range: range.clone(), ..item })
    }

    fn unary(&mut self, operation: &UnaryOp, range: &Range<usize>) -> Option<Item> {
        let item = self.evaluate(&operation.expr)?;
        let value = match (operation.operator.value(), &item.value) {
            (UnaryOperator::Neg, Value::Integer(number)) => {
                number.checked_neg().map(Value::Integer)
            }
            (UnaryOperator::Not, Value::Boolean(value)) => Some(Value::Boolean(!value)),
            _ => None,
        };
        let Some(value) = value else {
            let operator = operation.operator.value().as_str();
            let title = format!("`{operator}` can not be applied to {}", item.value.kind());
            self.add(Finding::error("C0206", title).at(range, "this operation"));
            return None;
        };
        Some(Item { value, range: range.clone(), foreign: item.foreign })
    }

    fn binary(&mut self, operation: &BinaryOp, range: &Range<usize>) -> Option<Item> {
        let (left, right) =
            (self.evaluate(&operation.lhs_expr), self.evaluate(&operation.rhs_expr));
        let (left, right) = (left?, right?);
        let operator = *operation.operator.value();
        match compute(&left.value, operator, &right.value) {
            Ok(value) => {
                Some(Item { value, range: range.clone(), foreign: left.foreign || right.foreign })
            }
            Err(reason) => {
                let finding = Finding::error("C0206", format!("`{}` fails", operator.as_str()));
                self.add(finding.at(range, "this operation").note(reason));
                None
            }
        }
    }

    fn variable(&mut self, name: &str, range: &Range<usize>) -> Option<Item> {
        let help = match function::signature(name) {
            Some(function) => format!("call the function: {}", function.signature),
            None => format!("put quotes around it if text is meant: \"{name}\""),
        };
        self.refuse(range, &format!("`{name}` is a variable"), &help)
    }

    fn refuse(&mut self, range: &Range<usize>, what: &str, help: &str) -> Option<Item> {
        let title = format!("{what}: a castle file has no variables");
        let finding = Finding::error("C0205", title).at(range, "nothing is known by this name");
        self.add(
            finding
                .note("each value stands where it is used; castle shows what it computed")
                .help(help),
        );
        None
    }

    /// Keeps a finding.
    pub(crate) fn add(&mut self, finding: Finding) {
        self.findings.add(finding);
    }
}

fn compute(left: &Value, operator: BinaryOperator, right: &Value) -> Result<Value, String> {
    use BinaryOperator as Op;
    let overflow = || "the result is too large".to_owned();
    let mismatch = || format!("it can not be applied to {} and {}", left.kind(), right.kind());
    Ok(match (left, operator, right) {
        (l, Op::Eq, r) => Value::Boolean(same(l, r).ok_or_else(mismatch)?),
        (l, Op::NotEq, r) => Value::Boolean(!same(l, r).ok_or_else(mismatch)?),
        (Value::Boolean(l), Op::And, Value::Boolean(r)) => Value::Boolean(*l && *r),
        (Value::Boolean(l), Op::Or, Value::Boolean(r)) => Value::Boolean(*l || *r),
        (Value::Integer(l), Op::Less, Value::Integer(r)) => Value::Boolean(l < r),
        (Value::Integer(l), Op::LessEq, Value::Integer(r)) => Value::Boolean(l <= r),
        (Value::Integer(l), Op::Greater, Value::Integer(r)) => Value::Boolean(l > r),
        (Value::Integer(l), Op::GreaterEq, Value::Integer(r)) => Value::Boolean(l >= r),
        (Value::Integer(_), Op::Div | Op::Mod, Value::Integer(0)) => {
            return Err("nothing can be divided by 0".to_owned());
        }
        (Value::Integer(l), operator, Value::Integer(r)) => Value::Integer(
            match operator {
                Op::Plus => l.checked_add(*r),
                Op::Minus => l.checked_sub(*r),
                Op::Mul => l.checked_mul(*r),
                Op::Div => l.checked_div(*r),
                Op::Mod => l.checked_rem(*r),
                _ => return Err(mismatch()),
            }
            .ok_or_else(overflow)?,
        ),
        _ => return Err(mismatch()),
    })
}

/// Whether two plain values are equal; none if they can not be compared.
fn same(left: &Value, right: &Value) -> Option<bool> {
    match (left, right) {
        (Value::List(_) | Value::Map(_) | Value::Fraction(_), _)
        | (_, Value::List(_) | Value::Map(_) | Value::Fraction(_)) => None,
        _ => Some(left == right),
    }
}
