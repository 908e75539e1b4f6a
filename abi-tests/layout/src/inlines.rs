use crate::{Setup, sheet::Sheet};
use std::path::Path;
pub fn run(_: &Setup, _: &Path, _: Option<&Path>) -> Result<bool, String> {
    todo!()
}
pub fn callers(_: &Sheet) -> String {
    todo!()
}
