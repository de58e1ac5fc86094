//! Source that is compiled twice: with `async` and `.await`, and without.
//!
//! A file that two worlds share names the attribute `dual`, and each world says which it is:
//!
//! ```text
//! use cloudcoil_dual::asynchronous as dual; // here everything stays as it is
//! use cloudcoil_dual::blocking as dual; // here nothing is waited for but by blocking
//! ```
//!
//! It works on tokens and knows no types, so an item means in the blocking world exactly what is left of it.

use proc_macro::{Delimiter, Group, Ident, Punct, Spacing, Span, TokenStream, TokenTree};

/// Leaves the item as it is.
#[proc_macro_attribute]
pub fn asynchronous(_: TokenStream, item: TokenStream) -> TokenStream {
    item
}

/// Makes the item one that blocks.
///
/// `async fn` becomes `fn`, and `.await` goes. A block, which elsewhere is a future that somebody runs, becomes a closure that
/// somebody calls: `async move { … }` is `move || { … }`. [`AsyncFn`] and its like become [`Fn`] and its like.
///
/// So do the examples in documentation; there also `cloudcoil_runtime` becomes `cloudcoil_runtime::blocking`, and lines that
/// name `futures_util` go.
#[proc_macro_attribute]
pub fn blocking(_: TokenStream, item: TokenStream) -> TokenStream {
    without_async(item)
}

fn without_async(tokens: TokenStream) -> TokenStream {
    let mut out = Vec::new();
    let mut docs = Docs { in_example: false };
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(word) if is(&word, "async") => {
                let is_moving = matches!(tokens.peek(), Some(TokenTree::Ident(next)) if is(next, "move"));
                out.extend(tokens.next_if(|_| is_moving));
                if matches!(tokens.peek(), Some(TokenTree::Group(body)) if body.delimiter() == Delimiter::Brace) {
                    out.extend(no_parameters(word.span()));
                }
            }
            TokenTree::Punct(dot)
                if dot.as_char() == '.'
                    && tokens.next_if(|next| matches!(next, TokenTree::Ident(next) if is(next, "await"))).is_some() => {
            }
            TokenTree::Ident(word) => out.push(TokenTree::Ident(blocking_name(word))),
            TokenTree::Group(group) => match docs.rewritten(&group) {
                Some(Rewritten::Kept(group)) => out.push(TokenTree::Group(group)),
                // The `#` of the attribute goes too.
                Some(Rewritten::Dropped) => drop(out.pop()),
                None => out.push(TokenTree::Group(regrouped(&group, without_async(group.stream())))),
            },
            other => out.push(other),
        }
    }
    out.into_iter().collect()
}

fn is(word: &Ident, text: &str) -> bool {
    word.to_string() == text
}

/// `||`
fn no_parameters(span: Span) -> [TokenTree; 2] {
    [Spacing::Joint, Spacing::Alone].map(|spacing| {
        let mut bar = Punct::new('|', spacing);
        bar.set_span(span);
        TokenTree::Punct(bar)
    })
}

fn blocking_name(word: Ident) -> Ident {
    let name = match word.to_string().as_str() {
        "AsyncFn" => "Fn",
        "AsyncFnMut" => "FnMut",
        "AsyncFnOnce" => "FnOnce",
        _ => return word,
    };
    Ident::new(name, word.span())
}

fn regrouped(group: &Group, stream: TokenStream) -> Group {
    let mut regrouped = Group::new(group.delimiter(), stream);
    regrouped.set_span(group.span());
    regrouped
}

/// The lines of the documentation that is being read: each is an attribute.
struct Docs {
    in_example: bool,
}

enum Rewritten {
    Kept(Group),
    Dropped,
}

impl Docs {
    /// What becomes of `[doc = "…"]`; `None` for what is no documentation.
    fn rewritten(&mut self, group: &Group) -> Option<Rewritten> {
        let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
        let [TokenTree::Ident(word), TokenTree::Punct(equals), TokenTree::Literal(line)] = tokens.as_slice() else {
            return None;
        };
        if group.delimiter() != Delimiter::Bracket || !is(word, "doc") || equals.as_char() != '=' {
            return None;
        }
        let text = line.to_string();
        if text.trim_start_matches(['r', '#', '"', ' ']).starts_with("```") {
            self.in_example = !self.in_example;
        }
        if !self.in_example {
            return Some(Rewritten::Kept(group.clone()));
        }
        if text.contains("futures_util") {
            return Some(Rewritten::Dropped);
        }
        let rewritten = text.replace(".await", "").replace("async ", "");
        let rewritten = rewritten.replace("cloudcoil_runtime", "cloudcoil_runtime::blocking");
        let mut literal: proc_macro::Literal = rewritten.parse().expect("it was a literal, and no quotes have changed");
        literal.set_span(line.span());
        let attribute = [tokens[0].clone(), tokens[1].clone(), TokenTree::Literal(literal)];
        Some(Rewritten::Kept(regrouped(group, attribute.into_iter().collect())))
    }
}
