pub fn nic(_: &crate::api::info::model::NicAttr) -> String {
    String::new()
}
