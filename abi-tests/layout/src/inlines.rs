//! Writes, from the sheet, a C program that calls every inline on op tables of recording stubs, and runs it.
//!
//! For each `call` of the sheet the program checks that exactly the named slot was reached with the arguments given,
//! and that a guarded call answers as the sheet says when the slot is missing. Inlines that do more are tested by hand
//! in `c/special.h`. The same program tests the symbols of a library that have the inlines' names.

use crate::asserts::CONTAINER_OF;
use crate::sheet::{self, Sheet, entries, list, text};
use crate::{NOW, Setup};
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::{collections::BTreeSet, fs};

/// Inlines with a test by hand beside the one that the sheet gives.
const MORE: [&str; 3] = ["fi_profile_read_u64", "fi_cq_readerr", "fi_mr_refresh"];

pub fn run(setup: &Setup, include: &Path, library: Option<&Path>) -> Result<bool, String> {
    let sheet = sheet::read(&setup.sheets, NOW)?;
    let source = setup.work.join("inlines.c");
    fs::write(&source, program(&sheet)).map_err(|e| format!("{}: {e}", source.display()))?;
    let mut good = true;
    for compiler in setup.compilers.iter().filter(|c| !c.ends_with("++")) {
        let binary = setup.work.join("inlines");
        let built = Command::new(compiler)
            .args([
                "-std=gnu11",
                "-Wall",
                "-Wextra",
                "-Wno-deprecated-declarations",
                "-Wno-cast-function-type",
            ])
            .args(["-Wno-missing-field-initializers", "-g", "-I"])
            .arg(include)
            .arg("-I")
            .arg(setup.here.join("c"))
            .args([Path::new("-o"), &binary, &source, Path::new("-ldl")])
            .output()
            .map_err(|e| format!("{compiler}: {e}"))?;
        print!("{}", String::from_utf8_lossy(&built.stderr));
        if !built.status.success() {
            println!("FAIL {compiler}: inlines do not compile");
            good = false;
            continue;
        }
        let status = Command::new(&binary)
            .args(library)
            .status()
            .map_err(|e| e.to_string())?;
        if status.code().is_none() {
            println!("FAIL inlines: the program died, {status}");
        }
        good &= status.success();
    }
    Ok(good)
}

fn inlines(sheet: &Sheet) -> impl Iterator<Item = (&String, &Value)> {
    sheet.section("functions").filter(|(_, f)| f["kind"] == "inline")
}

/// A C declaration: function pointers have their name inside.
fn declare(ty: &str, name: &str) -> String {
    match ty.split_once("(*)") {
        Some((before, after)) => format!("{before}(*{name}){after}"),
        None => format!("{ty} {name}"),
    }
}

fn program(sheet: &Sheet) -> String {
    let mut out = format!("#include <stddef.h>\n{CONTAINER_OF}\n");
    for header in &sheet.headers {
        out += &format!("#include <{header}>\n");
    }
    out += "#include \"harness.h\"\n\n";
    out += &stubs(sheet);
    out += &fills(sheet);
    out += "#include \"special.h\"\n\n";
    let mut table = String::new();
    for (name, entry) in inlines(sheet) {
        let test = if entry.get("call").is_some() {
            out += &call_test(sheet, name, entry);
            "test"
        } else if entry.get("returns_field").is_some() {
            out += &field_test(name, entry);
            "test"
        } else if samples(sheet, name).next().is_some() {
            out += &sample_test(sheet, name);
            "test"
        } else {
            "special"
        };
        table += &format!("\t{{ \"{name}\", {test}_{name}, (any_function) {name} }},\n");
        if MORE.contains(&name.as_str()) {
            table += &format!("\t{{ \"{name}\", more_{name}, (any_function) {name} }},\n");
        }
    }
    out + &main_function(&table)
}

fn main_function(table: &str) -> String {
    format!(
        "static const struct {{\n\tconst char *name;\n\tvoid (*test)(any_function);\n\tany_function inline_function;\n}} \
         tests[] = {{\n{table}}};\n\n{}",
        r#"int main(int argc, char **argv)
{
	size_t i;

	if (argc > 1 && !(library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL))) {
		printf("FAIL %s\n", dlerror());
		return 1;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	fill_tables();
	for (i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		any_function f = tests[i].inline_function;

		testing = tests[i].name;
		if (library) {
			f = (any_function) dlsym(library, testing);
			CHECK(f, "no such symbol");
		}
		if (f)
			tests[i].test(f);
	}
	printf("%s %s: %d checks held, %d failed, %zu tests\n", failed ? "FAIL" : "PASS",
	       library ? "symbols of the library" : "inlines of the headers", passed, failed, i);
	return failed != 0;
}
"#
    )
}

/// A stub for every slot of every table; each answers its own number.
fn stubs(sheet: &Sheet) -> String {
    let mut out = String::new();
    let mut fill = String::from("static void fill_tables(void)\n{\n");
    let mut answer = 1000;
    for (table, entry) in sheet.section("op_tables") {
        let _ = writeln!(out, "static struct {table} full_{table};");
        let _ = writeln!(fill, "\tfull_{table}.size = sizeof(full_{table});");
        for slot in list(entry, "slots") {
            let name = text(slot, "name");
            answer += 1;
            let _ = writeln!(out, "#define ANSWER_{table}_{name} {answer}");
            let params: Vec<_> = list(slot, "params")
                .enumerate()
                .map(|(i, p)| declare(text(p, "type"), &format!("p{i}")))
                .collect();
            let puts: String = (0..params.len())
                .map(|i| format!("\tput(&p{i}, sizeof(p{i}));\n"))
                .collect();
            let returns = text(slot, "returns");
            let back = match returns {
                "void" => String::new(),
                ty => format!("\treturn ({ty}) {answer};\n"),
            };
            let params = if params.is_empty() {
                "void".into()
            } else {
                params.join(", ")
            };
            let _ = writeln!(
                out,
                "static {returns} stub_{table}_{name}({params})\n{{\n\tentered(\"{table}.{name}\");\n{puts}{back}}}"
            );
            let _ = writeln!(fill, "\tfull_{table}.{name} = stub_{table}_{name};");
        }
    }
    out + "\n" + &fill + "}\n\n"
}

/// For every object: all its tables full.
fn fills(sheet: &Sheet) -> String {
    let mut out = String::new();
    let pointers: Vec<(String, &str)> = sheet
        .section("op_tables")
        .flat_map(|(table, e)| {
            list(e, "pointed_to_by")
                .filter_map(|p| p.as_str())
                .map(move |p| (table.clone(), p))
        })
        .collect();
    let mut objects: BTreeSet<&str> = pointers
        .iter()
        .filter_map(|(_, p)| Some(p.split_once('.')?.0))
        .collect();
    objects.insert("fid_mr");
    objects.insert("fid_mc");
    for object in objects {
        let mut body = String::new();
        for (table, pointer) in &pointers {
            if let Some((owner, member)) = pointer.split_once('.')
                && owner == object
            {
                let _ = writeln!(body, "\tobject->{member} = &full_{table};");
            }
        }
        for field in list(&sheet.json["structs"][object], "fields").filter(|f| text(f, "type") == "struct fid") {
            let _ = writeln!(body, "\tobject->{}.ops = &full_fi_ops;", text(field, "name"));
        }
        let _ = writeln!(
            out,
            "static __attribute__((unused)) void fill_{object}(struct {object} *object)\n{{\n\tmemset(object, 0, sizeof(*object));\n{body}}}\n"
        );
    }
    out
}

/// A value of the type that no other parameter has.
fn value(ty: &str, index: usize) -> String {
    match ty {
        "uint64_t" | "size_t" | "fi_addr_t" => format!("ANY_NUMBER + {index}"),
        "int" | "uint32_t" => format!("0x51000000 + {index}"),
        _ if ty.starts_with("enum ") => format!("({ty}) {index}"),
        _ => format!("({ty}) (uintptr_t) {}", 0x10000 + 0x100 * index),
    }
}

/// The object an inline works on, its parameters as variables, and the call.
struct Stage {
    setup: String,
    call: String,
}

fn stage(name: &str, entry: &Value, root: &str, root_type: &str, root_param: &str) -> Stage {
    let object = root_type
        .trim_start_matches("const ")
        .trim_start_matches("struct ")
        .trim_end_matches(" *");
    let mut setup = format!(
        "\t__typeof__(&{name}) call = (__typeof__(&{name})) f;\n\tstruct {object} object;\n\tstruct {object} *{root} = &object;\n\n\t(void) {root};\n"
    );
    for (i, param) in list(entry, "params").enumerate() {
        let (p, ty) = (text(param, "name"), text(param, "type"));
        if p == root {
            continue;
        }
        let value = match ty {
            _ if p == root_param => "&object.fid".to_string(),
            "struct fi_cq_err_entry *" => "&(struct fi_cq_err_entry) { .olen = 1 }".to_string(),
            _ => value(ty, i + 1),
        };
        let _ = writeln!(setup, "\t{} = {value};", declare(ty, p));
    }
    let _ = writeln!(setup, "\n\tfill_{object}(&object);");
    let args: Vec<_> = list(entry, "params").map(|p| text(p, "name")).collect();
    Stage {
        setup,
        call: format!("call({})", args.join(", ")),
    }
}

fn call_test(sheet: &Sheet, name: &str, entry: &Value) -> String {
    let call = &entry["call"];
    let (path, table, slot) = (text(call, "path"), text(call, "op_table"), text(call, "slot"));
    let root = path.split("->").next().unwrap_or_default();
    let cast = &call["casts"][root];
    let (root_type, root_param) = match cast.as_object() {
        Some(_) => (text(cast, "to"), text(cast, "from")),
        None => (
            list(entry, "params")
                .find(|p| p["name"] == root)
                .map_or("", |p| text(p, "type")),
            root,
        ),
    };
    let stage = stage(name, entry, root, root_type, root_param);
    let mut out = format!(
        "static void test_{name}(any_function f)\n{{\n{}\tbegin();\n",
        stage.setup
    );
    let slot_entry = list(&sheet.json["op_tables"][table], "slots")
        .find(|s| s["name"] == slot)
        .unwrap_or(&Value::Null);
    let mut after = String::new();
    for (i, (arg, param)) in list(call, "args").zip(list(slot_entry, "params")).enumerate() {
        let arg = arg.as_str().unwrap_or_default();
        let target = arg.strip_prefix('&').unwrap_or_default();
        let is_param = list(entry, "params").any(|p| p["name"] == target);
        if let Some(local) = entry["locals"][target].as_str() {
            let _ = writeln!(
                out,
                "\tseen.follow = {i};\n\tseen.follow_size = sizeof({local});\n\twant_any();"
            );
            after += &local_checks(sheet, entry, local);
        } else if is_param {
            let _ = writeln!(
                out,
                "\tseen.follow = {i};\n\tseen.follow_size = sizeof({target});\n\twant_any();"
            );
            let _ = writeln!(
                after,
                "\tCHECK(!memcmp(seen.followed.bytes, &{target}, sizeof({target})), \"*{target}\");"
            );
        } else {
            let ty = text(param, "type");
            let _ = writeln!(
                out,
                "\t{{\n\t\t{} = {arg};\n\t\twant(&want_, sizeof(want_));\n\t}}",
                declare(ty, "want_")
            );
        }
    }
    let returns = text(entry, "returns");
    let answers = call["forwarder"] == true && returns != "void";
    if answers {
        let _ = writeln!(
            out,
            "\tCHECK({} == ({returns}) ANSWER_{table}_{slot}, \"answer\");",
            stage.call
        );
    } else {
        let _ = writeln!(out, "\t{};", stage.call);
    }
    let _ = writeln!(out, "\treached(\"{table}.{slot}\");\n{after}");
    if let Some(answer) = call["guard"]["else"].as_str() {
        let lvalue = path.rsplit_once("->").map_or(path, |(table, _)| table);
        out += &guard_checks(&stage.call, lvalue, table, slot, answer);
    }
    out + "}\n\n"
}

/// Fields of a struct that the inline fills: those named as a parameter hold it.
fn local_checks(sheet: &Sheet, entry: &Value, local: &str) -> String {
    let Some(tag) = local.strip_prefix("struct ") else {
        return String::new();
    };
    let params: Vec<_> = list(entry, "params").map(|p| text(p, "name")).collect();
    list(&sheet.json["structs"][tag], "fields")
        .map(|f| text(f, "name"))
        .filter(|f| params.contains(f))
        .map(|f| format!("\tCHECK((({local} *) seen.followed.bytes)->{f} == {f}, \"{tag}.{f}\");\n"))
        .collect()
}

/// A table one slot too short, an empty slot, no table: the answer is the sheet's, and nothing is called.
fn guard_checks(call: &str, lvalue: &str, table: &str, slot: &str, answer: &str) -> String {
    format!(
        "\t{{\n\t\tstruct {table} cut = *{lvalue};\n\n\
         \t\tbegin();\n\
         \t\t{lvalue} = &cut;\n\
         \t\tcut.size = offsetof(struct {table}, {slot});\n\
         \t\tCHECK({call} == {answer}, \"answer of a short table\");\n\
         \t\tcut.size = sizeof(cut);\n\
         \t\tcut.{slot} = NULL;\n\
         \t\tCHECK({call} == {answer}, \"answer of an empty slot\");\n\
         \t\t{lvalue} = NULL;\n\
         \t\tCHECK({call} == {answer}, \"answer without a table\");\n\
         \t\tCHECK(!seen.calls, \"a call through a missing slot\");\n\
         \t\tcut = full_{table};\n\
         \t\tcut.size = offsetof(struct {table}, {slot}) + sizeof(cut.{slot});\n\
         \t\t{lvalue} = &cut;\n\
         \t\tCHECK({call} == ANSWER_{table}_{slot}, \"answer of a table that just has the slot\");\n\t}}\n"
    )
}

fn field_test(name: &str, entry: &Value) -> String {
    let field = text(entry, "returns_field");
    let root = field.split("->").next().unwrap_or_default();
    let ty = list(entry, "params").next().map_or("", |p| text(p, "type"));
    let stage = stage(name, entry, root, ty, root);
    format!(
        "static void test_{name}(any_function f)\n{{\n{}\tmemset(&{field}, 0x5C, sizeof({field}));\n\
         \tCHECK({} == {field}, \"answer is not {field}\");\n}}\n\n",
        stage.setup, stage.call
    )
}

fn samples<'a>(sheet: &'a Sheet, name: &'a str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    entries(&sheet.json["samples"])
        .filter_map(move |(call, value)| Some((call.strip_prefix(name)?, value)))
        .filter(|(c, _)| c.starts_with('('))
}

fn sample_test(sheet: &Sheet, name: &str) -> String {
    let checks: String = samples(sheet, name)
        .map(|(args, value)| format!("\tCHECK(call{args} == {value}ULL, \"{args}\");\n"))
        .collect();
    format!(
        "static void test_{name}(any_function f)\n{{\n\t__typeof__(&{name}) call = (__typeof__(&{name})) f;\n\n{checks}}}\n\n"
    )
}

/// A program in which every inline is called with parameters of the types that the sheet names; C and C++.
pub fn callers(sheet: &Sheet) -> String {
    let mut out: String = sheet.headers.iter().map(|h| format!("#include <{h}>\n")).collect();
    for (name, entry) in inlines(sheet) {
        let params: Vec<_> = list(entry, "params")
            .map(|p| declare(text(p, "type"), text(p, "name")))
            .collect();
        let args: Vec<_> = list(entry, "params").map(|p| text(p, "name")).collect();
        let params = if params.is_empty() {
            "void".into()
        } else {
            params.join(", ")
        };
        let returns = text(entry, "returns");
        let back = if returns == "void" { "" } else { "return " };
        let _ = writeln!(
            out,
            "\n{returns} use_{name}({params});\n{returns} use_{name}({params})\n{{\n\t{back}{name}({});\n}}",
            args.join(", ")
        );
    }
    out
}
