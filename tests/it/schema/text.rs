//! Schema text and schema hashes: the form in which people and other programs get a schema.

use crate::fixtures::*;
use eventring::internal::{ext_words, published_schema, schema_text_hash};
use eventring::schema::perf::PerfEvent;
use eventring::schema::test::TestEvent;
use eventring::schema::{
    EventInfo, EventPayload, EventType, Evolution, ExtWord, ExtWordKind, ExtWords, FieldInfo, FieldType, Scalar,
    Schema, SchemaInfo, SchemaModel, SchemaTextErrorKind, StructInfo,
};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_text_of_the_published_schemas_describes_every_event() {
    insta::assert_snapshot!("exec", ExecEvent::schema().text());
    insta::assert_snapshot!("test", TestEvent::schema().text());
}

#[test]
fn the_published_hashes_are_constants() {
    assert_eq!(hex(&ExecEvent::schema_hash()), "8933f907c432c98ac0c8db62f9aa164c0c3f1672f41290e4ea3408df6c6723f3");
    assert_eq!(TestEvent::schema_hash(), [0; 32]);
    for schema in [ExecEvent::schema(), TestEvent::schema()] {
        assert_eq!(schema.model().unwrap().schema_hash(), schema.hash());
        assert!(std::ptr::eq(published_schema(schema.content_type(), schema.hash()).unwrap(), schema));
        assert!(published_schema(7, schema.hash()).is_none());
    }
}

#[test]
fn the_hash_of_a_text_is_keccak_256_of_its_lines_without_comments() {
    // The published hash of no bytes.
    let empty = "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470";
    assert_eq!(hex(&schema_text_hash("")), empty);
    assert_eq!(hex(&schema_text_hash("# only a comment\n")), empty);
    let schema = ExecEvent::schema();
    assert_eq!(schema_text_hash(schema.text()), schema_text_hash(&schema.canonical_text()));
    assert!(schema.text().contains("\n# ") && !schema.canonical_text().contains('#'));
}

const FIELD: FieldInfo = FieldInfo {
    name: "price",
    ty: FieldType::Scalar(Scalar::U64),
    offset: 8,
    bytes: 8,
    redacted: false,
    evolution: Evolution::NONE,
    description: "In cents",
};

/// Makes a schema of one event with one field, lets `change` alter it, and returns its hash.
fn hash_of(change: impl FnOnce(&mut SchemaInfo, &mut EventInfo, &mut StructInfo, &mut FieldInfo)) -> [u8; 32] {
    let mut schema = SchemaInfo {
        content_type: 300,
        name: "SHOP",
        version: 1,
        events: &[],
        published_hash: None,
        ext_words: ExtWords::SPAN,
        description: "A shop",
    };
    let mut event = EventInfo {
        code: 2,
        name: "ORDER",
        domain: None,
        payload: None,
        trailing: &[],
        evolution: Evolution::NONE,
        description: "An order",
    };
    let mut order = StructInfo { name: "Order", bytes: 16, align: 8, fields: &[], description: "The order" };
    let mut field = FIELD;
    change(&mut schema, &mut event, &mut order, &mut field);
    order.fields = Vec::leak(vec![field]);
    event.payload = Some(Box::leak(Box::new(order)));
    schema.events = Vec::leak(vec![event]);
    let schema = Schema::new(Box::leak(Box::new(schema)));
    schema.model().unwrap_or_else(|error| panic!("{error}\n{}", schema.text()));
    schema.hash()
}

#[test]
fn the_hash_changes_with_everything_that_determines_the_layout() {
    let same = hash_of(|_, _, _, _| {});
    let changed = [
        hash_of(|schema, _, _, _| schema.content_type = 301),
        hash_of(|schema, _, _, _| schema.name = "STORE"),
        hash_of(|schema, _, _, _| schema.version = 2),
        hash_of(|_, event, _, _| event.code = 3),
        hash_of(|_, event, _, _| event.name = "ORDERED"),
        hash_of(|_, _, order, _| order.bytes = 24),
        hash_of(|_, _, order, _| order.name = "Ordered"),
        hash_of(|_, _, _, field| field.name = "prize"),
        hash_of(|_, _, _, field| field.ty = FieldType::Scalar(Scalar::I64)),
        hash_of(|_, _, _, field| field.offset = 0),
        hash_of(|_, _, _, field| (field.ty, field.bytes) = (FieldType::Scalar(Scalar::U32), 4)),
        hash_of(|_, _, _, field| field.redacted = true),
    ];
    for (i, hash) in changed.iter().enumerate() {
        assert_ne!(*hash, same, "change {i}");
        assert!(!changed[..i].contains(hash), "change {i}");
    }
}

#[test]
fn names_of_extension_words_are_lines_that_older_readers_and_the_hash_take_for_comments() {
    const WORDS: ExtWords = ExtWords::new([
        Some(ExtWord::new("order", ExtWordKind::Seqno)),
        Some(ExtWord::new("line", ExtWordKind::Index)),
        Some(ExtWord::new("customer", ExtWordKind::Number)),
        None,
    ]);
    let same = hash_of(|_, _, _, _| {});
    assert_eq!(hash_of(|schema, _, _, _| schema.ext_words = ExtWords::NONE), same);
    assert_eq!(hash_of(|schema, _, _, _| schema.ext_words = WORDS), same);

    let text = BothEntries::schema().text();
    assert_eq!(text.lines().filter(|line| line.starts_with("#ext")).collect::<Vec<_>>(), ["#ext 3 span"]);
    let words_of = |lines: &str| {
        let model = SchemaModel::parse(&text.replace("#ext 3 span\n", lines)).unwrap();
        assert_eq!(model.schema_hash(), BothEntries::schema_hash());
        model.ext_words().clone()
    };
    assert_eq!(words_of("#ext 3 span\n"), ExtWords::SPAN);
    // Older schema texts have no `#ext` lines, because extension words had no names then.
    assert_eq!(words_of(""), ExtWords::NONE);
    assert_eq!(words_of("#ext 0 order seqno\n#ext 1 line index\n#ext 2 customer\n"), WORDS);
    // None of these lines gives a name to a word. The first is an ordinary comment, and later versions may give some
    // of the others a meaning.
    for other in [
        "# ext 3 span",
        "#ext 2 span",
        "#ext 3 span seqno",
        "# #ext 3 span",
        "#ext",
        "#ext ",
        "#ext 3",
        "#ext 4 order",
        "#ext 03 order",
        "#ext -1 order",
        "#ext 0 order ",
        "#ext 0  order",
        "#ext 0 order seqno seqno",
        "#ext 0 order time",
        "#ext 0 seq no",
        "#ext 0 \u{e9}",
        "#ext 18446744073709551616 order",
        &format!("#ext 0 {}", "o".repeat(257)),
    ] {
        assert_eq!(words_of(&format!("{other}\n")), ExtWords::NONE, "{other}");
    }
    // If a text gives a word several names, the first one counts. If it gives one name to several words, the first
    // word has it.
    let words = words_of("#ext 0 order\n#ext 0 line\n#ext 1 order\n#ext 1 line\n#ext 3 row\n#ext 3 span\n");
    let named: Vec<_> = words.iter().map(|(index, word)| (index, word.name().to_owned())).collect();
    assert_eq!(named, [(0, "order".to_owned()), (1, "line".to_owned()), (3, "row".to_owned())]);
    assert!(!words.has_span() && words.index_of("line") == Some(1));
}

#[test]
fn the_words_of_published_schemas_are_known_without_being_in_their_text() {
    let exec = ExecEvent::schema();
    assert_eq!(exec.text().lines().filter(|line| line.starts_with("#ext")).collect::<Vec<_>>(), ["#ext 3 span"]);
    let of_text = SchemaModel::parse(exec.text()).unwrap();
    assert_eq!(*of_text.ext_words(), ExtWords::SPAN);
    for words in [exec.model().unwrap().ext_words(), &ext_words(2, None), &ext_words(2, Some(&of_text))] {
        let described: Vec<_> =
            words.iter().map(|(index, word)| (index, word.key().into_owned(), word.value(7))).collect();
        let expected = [("block_seqno", 7), ("txn_index", 6), ("account_index", 7), ("span", 7)];
        let expected = expected.iter().enumerate().map(|(index, (key, value))| (index, (*key).into(), Some(*value)));
        assert_eq!(described, expected.collect::<Vec<_>>());
    }
    for schema in [TestEvent::schema(), PerfEvent::schema()] {
        assert_eq!(*schema.model().unwrap().ext_words(), ExtWords::NONE, "{}", schema.name());
        assert_eq!(ext_words(schema.content_type(), schema.model().ok()), ExtWords::NONE, "{}", schema.name());
    }
    assert_eq!(ext_words(300, BothEntries::schema().model().ok()), ExtWords::SPAN);
}

#[test]
fn the_hash_does_not_change_with_descriptions() {
    let same = hash_of(|_, _, _, _| {});
    let described = hash_of(|schema, event, order, field| {
        schema.description = "";
        event.description = "Two\nlines";
        order.description = "# x";
        field.description = "event 3 X";
    });
    assert_eq!(described, same);
}

/// Two modules with a struct of the same name.
mod inner {
    #[derive(eventring::schema::EventPayload)]
    pub struct Entry {
        pub id: u32,
    }
}

#[derive(EventPayload)]
struct Entry {
    r#type: u8,
    inner: inner::Entry,
    #[event(redact)]
    secret: [u8; 3],
}

/// Events in another order than that of their codes.
#[derive(EventType, Clone, Copy)]
#[event(content_type = 300, version = 7)]
#[repr(u16)]
enum BothEntries {
    #[event(payload = inner::Entry)]
    InnerEntry = 0x10,
    /// First paragraph,
    /// on two lines.
    ///
    /// Second paragraph.
    #[event(payload = Entry, name = "OUTER")]
    OuterEntry = 4,
}

#[test]
fn types_of_the_same_name_are_told_apart_and_events_are_sorted() {
    insta::assert_snapshot!("both_entries", BothEntries::schema().text());
    let model = BothEntries::schema().model().unwrap();
    let entry = Entry { r#type: 9, inner: inner::Entry { id: 5 }, secret: [1, 2, 3] };
    entry.with_bytes(|bytes| {
        assert_eq!(model.decode(4, bytes).to_string(), "type=9 inner={id=5} secret=<redacted>");
    });
    assert_eq!(model.event_by_name("OUTER").unwrap().code(), 4);
    assert_eq!(model.event_by_name("outer").map(|event| event.code()), Some(4));
    assert_eq!((model.version(), BothEntries::OuterEntry.name(), BothEntries::InnerEntry.code()), (7, "OUTER", 16));
    assert_eq!(BothEntries::from_code(4).map(BothEntries::code), Some(4));
    assert!(BothEntries::from_code(1).is_none());
}

#[test]
fn a_ring_is_decoded_by_its_own_text_if_that_is_of_its_hash() {
    let (schema, hash) = (BothEntries::schema(), BothEntries::schema_hash());
    let model = SchemaModel::of_ring(300, hash, Some(schema.text())).unwrap();
    assert_eq!(*model, *schema.model().unwrap());
    let mut other_hash = hash;
    other_hash[31] ^= 1;
    for (content_type, hash, text) in
        [(300, hash, None), (300, other_hash, Some(schema.text())), (301, hash, Some(schema.text()))]
    {
        let error = SchemaModel::of_ring(content_type, hash, text).unwrap_err();
        assert_eq!(error.kind(), SchemaTextErrorKind::NotOfThisRing, "{error}");
    }
    // Files of other implementations carry no schema text. If the reader knows the schema, it does not use the file's
    // text.
    for text in [None, Some(schema.text()), Some("nonsense")] {
        assert_eq!(SchemaModel::of_ring(2, ExecEvent::schema_hash(), text).unwrap().name(), "EXEC");
    }
}

#[test]
fn the_example_in_the_format_document_is_schema_text() {
    let document = include_str!("../../../docs/FORMAT.md");
    let example = document.split("```\n").find(|block| block.starts_with("schema-text 1\ncontent 300")).unwrap();
    let model = SchemaModel::parse(example).unwrap();
    let payload = [&7u64.to_le_bytes()[..], &[1, 0, 0, 0], &250u32.to_le_bytes(), &[1, 0, 0, 0, 0, 0, 0, 0]].concat();
    let payload = [payload, 9u64.to_le_bytes().to_vec(), b"ok".to_vec()].concat();
    assert_eq!(model.decode(2, &payload).to_string(), r#"id=7 side=SELL price=250 fill_count=1 fills=[9] note="ok""#);
}
