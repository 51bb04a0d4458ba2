//! How the catalog is written.

use serde_json::Value;

/// An object on one line. Fields without a value are left out.
pub fn object(fields: &[(&str, Option<Value>)]) -> String {
    let given = fields.iter().filter_map(|(name, value)| Some(format!("\"{name}\": {}", value.as_ref()?)));
    format!("{{{}}}", given.collect::<Vec<_>>().join(", "))
}

/// The object with one more field: a list that has a line for each element.
pub fn list(object: &str, name: &str, elements: &[String]) -> String {
    let rest = object.trim_end_matches('}');
    if elements.is_empty() {
        return format!("{rest}, \"{name}\": []}}");
    }
    format!("{rest}, \"{name}\": [\n{}]}}", elements.join(",\n"))
}
