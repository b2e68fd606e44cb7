//! The house's floors: a file imports from its own floor or from below, and no files import each
//! other in a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The floors from the ground up, by module. A module is on the floor of the longest name that it
/// begins with.
const FLOORS: &[&[&str]] = &[
    &["error", "cost"],
    &["dtype"],
    &["promotion", "layout"],
    &["tensor"],
    &["exec::simd"],
    &["exec::threads"],
    &["exec"],
    &["ops"],
    &["graph"],
];

type Imports = BTreeMap<String, BTreeSet<String>>;

fn source_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            source_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// `exec::threads::pool` of `src/exec/threads/pool.rs`.
fn module(root: &Path, file: &Path) -> String {
    let name = file.strip_prefix(root).expect("below").with_extension("");
    let parts: Vec<_> = name.iter().map(|part| part.to_str().expect("UTF-8")).collect();
    parts.join("::")
}

/// The paths that a `use` declaration names, its groups taken apart.
fn paths(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some(open) = tree.find('{') else {
        return vec![tree.split(" as ").next().unwrap_or(tree).trim().to_string()];
    };
    let (prefix, group) = (&tree[..open], &tree[open + 1..tree.len() - 1]);
    let (mut depth, mut start, mut found) = (0, 0, Vec::new());
    for (i, character) in group.char_indices().chain([(group.len(), ',')]) {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let item = &group[start..i];
                start = i + 1;
                if !item.trim().is_empty() {
                    found.extend(paths(&format!("{prefix}{}", item.trim())));
                }
            }
            _ => {}
        }
    }
    found
}

/// The module that a path leads to: the longest one that it begins with.
fn resolve(path: &str, own: &str, modules: &BTreeSet<String>) -> Option<String> {
    let (first, rest) = path.split_once("::")?;
    let parent = |module: &str| module.rsplit_once("::").map_or(String::new(), |(parent, _)| parent.into());
    let absolute = match first {
        "crate" => rest.to_string(),
        "self" => format!("{own}::{rest}"),
        "super" => {
            let (mut base, mut rest) = (parent(own), rest);
            while let Some(further) = rest.strip_prefix("super::") {
                (base, rest) = (parent(&base), further);
            }
            if base.is_empty() { rest.to_string() } else { format!("{base}::{rest}") }
        }
        _ => return None,
    };
    let parts: Vec<_> = absolute.split("::").collect();
    (1..=parts.len()).rev().map(|n| parts[..n].join("::")).find(|name| modules.contains(name))
}

/// What each module imports, in its code but not in its tests.
fn imports() -> Imports {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    source_files(&root, &mut files);
    let modules: BTreeSet<String> = files.iter().map(|file| module(&root, file)).collect();
    let mut imports = Imports::new();
    for file in &files {
        let own = module(&root, file);
        let text = std::fs::read_to_string(file).expect("UTF-8");
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let code: String =
            code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
        let imported = imports.entry(own.clone()).or_default();
        let mut declarations = Vec::new();
        for (at, _) in code.match_indices("use ") {
            let declared = code[..at].ends_with(['\n', ' ', ')']) || at == 0;
            let end = code[at..].find(';').map(|end| at + end);
            if let (true, Some(end)) = (declared, end) {
                declarations.extend(paths(&code[at + 4..end].replace('\n', " ")));
            }
        }
        // Paths in the code itself, but not where something is visible.
        let roots = ["crate::", "super::", "self::"].iter().flat_map(|root| code.match_indices(root));
        for (at, _) in roots.filter(|(at, _)| !code[..*at].ends_with("(in ")) {
            let path: String =
                code[at..].chars().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | ':')).collect();
            declarations.push(path);
        }
        for path in declarations {
            if let Some(target) = resolve(&path, &own, &modules)
                && target != own
                && target != "lib"
            {
                imported.insert(target);
            }
        }
    }
    imports
}

fn floor(module: &str) -> Option<usize> {
    let within = |name: &str| module == name || module.starts_with(&format!("{name}::"));
    let places =
        FLOORS.iter().enumerate().flat_map(|(floor, names)| names.iter().map(move |name| (floor, name)));
    places.filter(|(_, name)| within(name)).max_by_key(|(_, name)| name.len()).map(|(floor, _)| floor)
}

#[test]
fn no_file_imports_from_a_floor_above() {
    let mut upward = Vec::new();
    for (module, imported) in imports() {
        let Some(own) = floor(&module) else {
            assert!(module == "lib", "{module} is on no floor");
            continue;
        };
        for target in imported {
            // A folder's own file names what is in it, and is imported by it.
            if floor(&target).is_some_and(|floor| floor > own) {
                upward.push(format!("{module} imports {target}"));
            }
        }
    }
    assert!(upward.is_empty(), "{}", upward.join("\n"));
}

/// The modules that a module imports, directly or not.
fn reachable(imports: &Imports, module: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![module];
    while let Some(module) = waiting.pop() {
        for target in &imports[module] {
            if found.insert(target.clone()) {
                waiting.push(target);
            }
        }
    }
    found
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let mut imports = imports();
    // What is in a folder may use the folder's own file: they are one module.
    for (module, imported) in &mut imports {
        imported.retain(|target| !module.starts_with(&format!("{target}::")));
    }
    let reached: BTreeMap<&String, BTreeSet<String>> =
        imports.keys().map(|module| (module, reachable(&imports, module))).collect();
    let mut circles = Vec::new();
    for (module, imported) in &imports {
        if reached[module].contains(module) {
            let back: Vec<_> =
                imported.iter().filter(|target| reached[target].contains(module)).cloned().collect();
            circles.push(format!("{module} -> {}", back.join(", ")));
        }
    }
    assert!(circles.is_empty(), "{}", circles.join("\n"));
}
