//! Turns a row of the wrapper table into a C inline function.

use crate::cbind::Blocks;
use crate::model::{Body, Row};
use crate::write::fold;
use std::collections::HashMap;
use syn::{Expr, FnArg, Member, Pat, Type, UnOp};

/// Fields of every struct, to see which op table an expression means.
pub type Fields<'a> = HashMap<&'a str, &'a HashMap<String, Type>>;

pub fn function(row: &Row, blocks: &Blocks, fields: &Fields) -> Result<String, String> {
    let prototype = blocks
        .get(&format!("{}()", row.name))
        .ok_or(format!("{}: cbindgen did not write it", row.name))?;
    let mark = if row.deprecated { "FI_DEPRECATED_FUNC " } else { "" };
    let head = fold(
        &format!("static inline {mark}{}", prototype.trim_end_matches(';')),
        "\t\t",
    );
    let body = body(row, fields).map_err(|e| format!("{}: {e}", row.name))?;
    Ok(format!("{head}\n{{\n{body}\n}}"))
}

fn body(row: &Row, fields: &Fields) -> Result<String, String> {
    let (guarded, table, slot, args) = match &row.body {
        Body::C(text) => return Ok(indent(text)),
        Body::Slot {
            guarded,
            table,
            slot,
            args,
        } => (*guarded, table, slot, args),
    };
    let args = args.iter().map(expr).collect::<Result<Vec<_>, _>>()?.join(", ");
    let path = expr(table)?;
    let call = format!("{path}->{slot}({args})");
    if guarded {
        let ops = pointee(&type_of(table, row, fields)?)?;
        let call = fold(&format!("\t\t{call} :"), "\t\t\t");
        return Ok(format!(
            "\treturn FI_CHECK_OP({path}, struct {ops}, {slot}) ?\n{call}\n\t\t-FI_ENOSYS;"
        ));
    }
    let void = matches!(row.ret, syn::ReturnType::Default);
    Ok(fold(
        &format!("\t{}{call};", if void { "" } else { "return " }),
        "\t\t\t",
    ))
}

fn indent(text: &str) -> String {
    let indented = |line: &str| {
        if line.is_empty() {
            String::new()
        } else {
            format!("\t{line}")
        }
    };
    text.lines().map(indented).collect::<Vec<_>>().join("\n")
}

/// The few shapes of expression that rows use.
fn expr(e: &Expr) -> Result<String, String> {
    Ok(match e {
        Expr::Path(p) => p.path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default(),
        Expr::Paren(p) => expr(&p.expr)?,
        Expr::Call(c) if matches!(expr(&c.func)?.as_str(), "null" | "null_mut") => "NULL".into(),
        Expr::Field(f) => format!("{}{}", owner(&f.base)?, member(&f.member)?),
        Expr::RawAddr(r) => format!("&{}", expr(&r.expr)?),
        Expr::Reference(r) => format!("&{}", expr(&r.expr)?),
        // To an integer or a void pointer C converts by itself; to another fid it must be said.
        Expr::Cast(c) => match pointee(&c.ty) {
            Ok(fid) if fid != "c_void" => format!("((struct {fid} *) {})", expr(&c.expr)?),
            _ => expr(&c.expr)?,
        },
        other => return Err(format!("no C known for {}", quote::quote!(#other))),
    })
}

/// `(*p).` is `p->`, anything else `x.`.
fn owner(base: &Expr) -> Result<String, String> {
    match base {
        Expr::Paren(p) => owner(&p.expr),
        Expr::Unary(u) if matches!(u.op, UnOp::Deref(_)) => Ok(format!("{}->", expr(&u.expr)?)),
        other => Ok(format!("{}.", expr(other)?)),
    }
}

fn member(m: &Member) -> Result<String, String> {
    match m {
        Member::Named(name) => Ok(name.to_string()),
        Member::Unnamed(_) => Err("tuple field".into()),
    }
}

fn type_of(e: &Expr, row: &Row, fields: &Fields) -> Result<Type, String> {
    let named = |ty: &Type| quote::quote!(#ty).to_string();
    match e {
        Expr::Paren(p) => type_of(&p.expr, row, fields),
        Expr::Cast(c) => Ok((*c.ty).clone()),
        Expr::Path(_) => {
            let name = expr(e)?;
            let is_it =
                |a: &&FnArg| matches!(a, FnArg::Typed(t) if matches!(&*t.pat, Pat::Ident(i) if i.ident == name));
            match row.params.iter().find(is_it) {
                Some(FnArg::Typed(t)) => Ok((*t.ty).clone()),
                _ => Err(format!("{name} is no parameter")),
            }
        }
        Expr::Unary(u) => match type_of(&u.expr, row, fields)? {
            Type::Ptr(p) => Ok(*p.elem),
            other => Err(format!("{} is no pointer", named(&other))),
        },
        Expr::Field(f) => {
            let owner = named(&type_of(&f.base, row, fields)?);
            let field = member(&f.member)?;
            let types = fields
                .get(owner.as_str())
                .ok_or(format!("{owner} is no struct of these headers"))?;
            types.get(&field).cloned().ok_or(format!("{owner} has no {field}"))
        }
        other => Err(format!("no type known for {}", quote::quote!(#other))),
    }
}

fn pointee(ty: &Type) -> Result<String, String> {
    match ty {
        Type::Ptr(p) => match &*p.elem {
            Type::Path(path) => path
                .path
                .get_ident()
                .map(|i| i.to_string())
                .ok_or("no plain name".into()),
            _ => Err("a pointer to no struct".into()),
        },
        _ => Err("no pointer".into()),
    }
}
