//! Values as JSON.

use eventring::schema::Value;
use std::borrow::Cow;

#[test]
fn values_have_their_documented_form_in_json() {
    let malformed = Value::Malformed { problem: "too short".into(), rest: &[1, 255] };
    let numbers = [Value::Uint(u64::MAX), Value::Int(-5), Value::Uint128(7), Value::Int128(-7), Value::F64(-0.0)];
    let floats = [0.1, 1e20, f32::MIN_POSITIVE, f32::NAN, f32::INFINITY].map(Value::F32);
    let enums = [Some("GREEN"), None].map(|name| Value::Enum { name, number: -3 });
    let value = Value::Struct(vec![
        ("text", Value::Text(Cow::Borrowed("a\"\u{1b}\n"))),
        ("list", Value::List([&numbers[..], &floats, &enums].concat())),
        ("twice", Value::Bool(true)),
        ("twice", Value::Redacted),
        ("rest", malformed),
        ("bytes", Value::Bytes(&[0, 16])),
    ]);
    let numbers = r#"18446744073709551615,-5,"7","-7",-0.0"#;
    let floats = "0.1,1e+20,1.1754944e-38,null,null";
    let rest = r#""rest":{"malformed":"too short","rest":"0x01ff"},"bytes":"0x0010""#;
    assert_eq!(
        serde_json::to_string(&value).unwrap(),
        format!(r#"{{"text":"a\"\u001b\n","list":[{numbers},{floats},"GREEN",-3],"twice":true,"twice":null,{rest}}}"#)
    );
}
