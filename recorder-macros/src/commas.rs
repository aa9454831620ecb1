//! Splits the input of a macro at its commas. A parser of expressions would take long to build.

use proc_macro2::{Ident, Punct, Spacing, TokenStream, TokenTree};

/// Splits a list at the commas between its items.
pub(crate) fn split(input: TokenStream) -> Vec<TokenStream> {
    let (mut items, mut commas) = (vec![TokenStream::new()], Commas::default());
    for token in input {
        match commas.is_separator(&token) {
            true => items.push(TokenStream::new()),
            false => items.last_mut().into_iter().for_each(|item| item.extend([token.clone()])),
        }
    }
    if items.len() > 1 && items.last().is_some_and(TokenStream::is_empty) {
        items.pop();
    }
    items
}

/// Tells the commas between items from those between angle brackets, and from those of a closure's parameters. After an
/// operand, `<` and `|` are operators; elsewhere they open something. In a type, `<` always opens generic arguments.
#[derive(Default)]
pub(crate) struct Commas {
    angles: usize,
    is_in_parameters: bool,
    is_after_operand: bool,
    /// True in the type after `as` or `->`.
    is_in_type: bool,
    is_after_minus: bool,
    /// The operator `<` or `|` that was just passed, if it may be the first half of `<<` or `||`.
    half: Option<char>,
}

impl Commas {
    /// Passes the next token. Returns true if it is a comma between items.
    pub(crate) fn is_separator(&mut self, token: &TokenTree) -> bool {
        let (is_after_minus, half) = (std::mem::take(&mut self.is_after_minus), self.half.take());
        match token {
            TokenTree::Punct(comma) if comma.as_char() == ',' && self.angles == 0 && !self.is_in_parameters => {
                *self = Self::default();
                return true;
            }
            TokenTree::Punct(punct) if is_after_minus && punct.as_char() == '>' => self.is_in_type = true,
            TokenTree::Punct(punct) => self.pass_sign(punct, half),
            TokenTree::Ident(word) => {
                self.is_in_type |= word == "as";
                self.is_after_operand = is_operand(word);
            }
            TokenTree::Group(_) | TokenTree::Literal(_) => (self.is_after_operand, self.is_in_type) = (true, false),
        }
        false
    }

    fn pass_sign(&mut self, punct: &Punct, half: Option<char>) {
        let sign = punct.as_char();
        let opens = !self.is_after_operand && half != Some(sign);
        match sign {
            // After an operand it ends this operand. Elsewhere it comes before a field's value.
            '?' => return,
            '<' if opens || self.angles > 0 || self.is_in_parameters || self.is_in_type => self.angles += 1,
            '>' if self.angles > 0 => {
                self.angles -= 1;
                (self.is_after_operand, self.is_in_type) = (true, false);
                return;
            }
            '|' if self.angles == 0 && (opens || self.is_in_parameters) => self.is_in_parameters ^= true,
            '<' | '|' if half.is_none() && punct.spacing() == Spacing::Joint => self.half = Some(sign),
            '-' => self.is_after_minus = true,
            _ => {}
        }
        // `x as *const A` and `x as a::B` are not over at these signs.
        self.is_in_type &= !self.is_after_operand || sign == ':';
        self.is_after_operand = false;
    }
}

/// Returns true if an expression can end with the word.
fn is_operand(word: &Ident) -> bool {
    let values = ["self", "Self", "super", "crate", "true", "false", "await"];
    values.iter().any(|value| word == value) || syn::parse2::<Ident>(TokenTree::from(word.clone()).into()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_split_at_the_commas_between_its_items() {
        let calls = [
            "n = <Map<u8, u8>>::new() ; a",
            "& <Map<u8, u8>>::new() ; - <[u8; 2] as Map<u8, u8>>::LEN ; & mut <A<B, C>>::new()",
            "|| -> Map<u8, u8> { Map::new() }() ; move |a: Map<u8, u8>, b| a ; || 1 ; |_| 2",
            "Map::<u8, Vec<u8>>::new() ; field.r#in = ? <Map<u8, u8>>::new() ; text = % <A<B, C> as D>::E",
            "a < b ; c > d ; a <= b ; c >= d ; f(x) < y[0] ; z? < 1 ; 2 > 3 ; x.0 < self.y ; r#match < it.await ; ()",
            "a << b ; a >> b ; a << <A<B, C>>::D ; a < <A<B, C>>::D ; a.. <A<B, C>>::D ; a | b ; a || b ; a | c",
            "x as A<B, C> ; x as usize > y ; x as fn(A) -> B<C, D> ; x as u8 + y < z ; x as (u8) < y ; w",
            "if a < b { c } else { d } ; match <A<B, C>>::D { e => f } ; return <A<B, C>>::D ; 'l: loop {} ; 'c' < x ; y",
            "<<A<B, C> as D<E, F>>::G as H>::I ; A::<fn(A, B) -> C<D, E>, { x > y }>::F ; y",
            "true || |a, b| c ; a == || -> A<B, C> { d } ; x",
        ];
        for call in calls {
            let expected: Vec<String> =
                call.split(" ; ").map(|item| item.parse::<TokenStream>().unwrap().to_string()).collect();
            let found = split(call.replace(" ;", ",").parse().unwrap());
            assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
        }
        let count = |call: &str| split(call.parse().unwrap()).len();
        assert_eq!((count("a, b,"), count(""), count("a")), (2, 1, 1));
    }
}
