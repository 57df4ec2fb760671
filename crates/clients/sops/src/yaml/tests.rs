//! Where comments land, and how text is written.

use super::{read, write};

fn again(text: &str) -> String {
    write(&read(text).unwrap().documents)
}

/// Comments in every place that we could think of.
const COMMENTED: &str = "\
# top é

# second
a: 1 # line a
b: | # lit
  text # not
  more

# after b
c:
    # in c
    d: >-
      folded
      text
    # trailing c
    e: \"quo # ted\" # line e
# before f
f: # line f
  - x # item
  # head y
  - y: 1
    z: 2
  -
    # inner
    k: v
  - - n
    - m
  # trail f
g: {a: 1, # flow
  b: [1,
  # x
  2]}
h:
- z1
# zero
- z2
# next
i: plain
  multi line # c
j:
k: !!str 12
e1: [ # in nothing
  ]
p: [1, 2] # behind a bracket
q: {r: 1} # behind a brace
s: !!merge <<
# end
---
# of the second
o: 'it''s # one' # two
...
# after
";

#[test]
fn comments_land_where_sops_puts_them() {
    insta::assert_snapshot!(again(COMMENTED), @r#"
    # top é
    # second
    # line a
    a: 1
    # lit
    b: |
        text # not
        more
    # after b
    c:
        # in c
        d: folded text
        # trailing c
        # line e
        e: "quo # ted"
    # before f
    f:
        # line f
        # item
        - x
        # head y
        - "y": 1
          z: 2
        # inner
        - k: v
        - - "n"
          - m
        # trail f
    g:
        # flow
        a: 1
        b:
            - 1
            # x
            - 2
    h:
        - z1
        # zero
        - z2
    # next
    # c
    i: plain multi line
    j: null
    k: "12"
    # in nothing
    e1: []
    p:
        # behind a bracket
        - 1
        - 2
    q:
        # behind a brace
        r: 1
    s: "<<"
    # end
    ---
    # of the second
    # two
    o: "it's # one"
    # after
    "#);
    // And they stay there.
    assert_eq!(again(&again(COMMENTED)), again(COMMENTED));
}

#[test]
fn text_that_could_be_something_else_is_quoted() {
    let text = r#"
a: "true"
b: 'no'
c: "1:20"
d: "x: y"
e: "x #y"
f: " x"
g: "tab\there"
h: "line\r\nfeed"
i: "\u00e9\u2028"
j: "<<"
k: "a\n\n\nb\n\n"
"y": x
"": x
"#;
    insta::assert_snapshot!(again(text), @r#"
    a: "true"
    b: "no"
    c: "1:20"
    d: "x: y"
    e: "x #y"
    f: " x"
    g: "tab\there"
    h: "line\r\nfeed"
    i: "é\u2028"
    j: "<<"
    k: "a\n\n\nb\n\n"
    "y": x
    "": x
    "#);
}
