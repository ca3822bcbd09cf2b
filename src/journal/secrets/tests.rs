use super::*;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proptest::prelude::*;

fn env(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

const VALUE: &str = "abcd\"12/34 sécret\\";

fn secrets() -> Secrets {
    Secrets::from_env(&env(&[("X_API_KEY", VALUE), ("EDITOR", "some-editor")]), &[])
}

#[test]
fn a_value_is_masked_as_it_is() {
    assert_eq!(secrets().mask(&format!("key={VALUE}; done")), "key=[masked X_API_KEY]; done");
}

#[test]
fn text_without_a_value_is_not_copied() {
    assert!(matches!(secrets().mask("some-editor"), Cow::Borrowed("some-editor")));
}

#[test]
fn escaped_and_encoded_forms_are_masked() {
    let json = serde_json::to_string(VALUE).unwrap();
    let json_in_json = serde_json::to_string(&json).unwrap();
    for text in [
        json,
        json_in_json,
        r#""abcd\"12/34 s\u00e9cret\\""#.to_owned(),
        r#""abcd\"12\/34 sécret\\""#.to_owned(),
        "q=abcd%2212%2F34%20s%C3%A9cret%5C&".to_owned(),
        "q=abcd%2212%2f34%20s%c3%a9cret%5c&".to_owned(),
        "q=abcd%2212%2F34+s%C3%A9cret%5C&".to_owned(),
    ] {
        let masked = secrets().mask(&text).into_owned();
        assert!(masked.contains("[masked X_API_KEY]"), "{text} became {masked}");
        assert!(!masked.contains("cret"), "{text} became {masked}");
    }
}

#[test]
fn base64_is_masked_wherever_the_value_stands_in_it() {
    for before in ["", "a", "ab", "user:"] {
        for engine in [STANDARD, URL_SAFE_NO_PAD] {
            let text = engine.encode(format!("{before}{VALUE}"));
            let masked = secrets().mask(&text).into_owned();
            assert!(masked.contains("[masked X_API_KEY]"), "{text} became {masked}");
            assert!(masked.len() <= "[masked X_API_KEY]".len() + 10, "{text} became {masked}");
        }
    }
}

#[test]
fn short_values_are_no_secrets() {
    let secrets = Secrets::from_env(&env(&[("A_KEY", "1234567"), ("B_KEY", "12345678"), ("C_KEY", "")]), &[]);
    assert_eq!(secrets.names(), ["B_KEY"]);
    assert_eq!(secrets.mask("1234567"), "1234567");
}

#[test]
fn named_variables_and_passwords_in_urls_are_masked() {
    let env = env(&[("HARMLESS", "not-so-harmless"), ("DATABASE_URL", "pg://me:correct-horse@db/app")]);
    let secrets = Secrets::from_env(&env, &["HARMLESS".to_owned()]);
    assert_eq!(
        secrets.mask("not-so-harmless pg://me:correct-horse@db/app"),
        "[masked HARMLESS] pg://me:[masked DATABASE_URL]@db/app"
    );
}

#[test]
fn of_two_values_that_begin_alike_the_longer_one_wins() {
    let secrets = Secrets::from_env(&env(&[("A_KEY", "12345678"), ("B_KEY", "123456789abc")]), &[]);
    assert_eq!(secrets.mask("123456789abc 12345678x"), "[masked B_KEY] [masked A_KEY]x");
}

#[test]
fn lines_of_a_key_file_are_masked_one_by_one() {
    let pem = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEF\nAASCBKcwggSjAgEAAoIBAQC7VJTU\n-----END KEY-----\n";
    let secrets = Secrets::from_env(&env(&[("DEPLOY_KEY", pem)]), &[]);
    assert_eq!(secrets.mask("+  AASCBKcwggSjAgEAAoIBAQC7VJTU"), "+  [masked DEPLOY_KEY]");
    assert_eq!(secrets.mask(pem), "[masked DEPLOY_KEY]");
}

#[test]
fn a_value_of_100_kb_is_masked_whole_and_the_stream_still_holds_back_little() {
    let value = "0123456789abcdefé".repeat(6000);
    let secrets = Secrets::from_env(&env(&[("BIG_SECRET", &value)]), &[]);
    let masked = secrets.mask(&value).into_owned();
    assert_eq!(masked.replace("[masked BIG_SECRET]", ""), "");
    let mut stream = secrets.stream();
    let out = stream.push(&vec![b'x'; 1 << 20]).len();
    assert!(out > (1 << 20) - LONGEST_PATTERN, "{out}");
}

#[test]
fn a_value_in_a_line_of_a_megabyte_is_masked() {
    let line = format!("{}{VALUE}{}", "x".repeat(500_000), "y".repeat(500_000));
    assert!(!secrets().mask(&line).contains("sécret"));
}

#[test]
fn a_value_split_over_two_writes_is_masked_at_every_split() {
    let text = format!("before {VALUE} after");
    for at in 0..=text.len() {
        let mut stream = secrets().stream();
        let mut out = stream.push(&text.as_bytes()[..at]);
        out.extend(stream.push(&text.as_bytes()[at..]));
        out.extend(stream.finish());
        assert_eq!(String::from_utf8(out).unwrap(), "before [masked X_API_KEY] after", "split at {at}");
    }
}

#[test]
fn the_debug_form_shows_names_only() {
    let shown = format!("{:?} {:?}", secrets(), secrets().stream());
    assert!(shown.contains("X_API_KEY"));
    assert!(!shown.contains("abcd"), "{shown}");
}

#[test]
fn without_secrets_nothing_is_held_back() {
    let mut stream = Secrets::none().stream();
    assert_eq!(stream.push(b"all"), b"all");
    assert!(stream.finish().is_empty());
}

proptest! {
    #[test]
    fn a_stream_masks_like_the_whole(
        pieces in proptest::collection::vec("[ab12]{0,12}", 0..12),
        values in proptest::collection::vec("[ab12]{8,14}", 1..4),
    ) {
        let values = values.into_iter().enumerate().map(|(n, value)| (format!("K{n}"), value)).collect();
        let secrets = Secrets::from_values(values);
        let whole: String = pieces.concat();
        let mut stream = secrets.stream();
        let mut out = Vec::new();
        for piece in &pieces {
            out.extend(stream.push(piece.as_bytes()));
        }
        out.extend(stream.finish());
        prop_assert_eq!(String::from_utf8(out).unwrap(), secrets.mask(&whole).into_owned());
    }
}
