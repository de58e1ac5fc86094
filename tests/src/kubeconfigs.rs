//! Kubeconfigs of every kind, to be read by Cloudcoil and by `kubectl`: odd ones by hand, and many made of a seed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use cloudcoil_core::Random;

/// Files in a folder, and which of them are to be read.
#[derive(Clone, Debug)]
pub struct Case {
    /// What is odd about it.
    pub name: String,
    /// What it is about.
    pub kind: Kind,
    /// Paths in the folder, and what the files hold.
    pub files: Vec<(String, Vec<u8>)>,
    /// The files to read.
    pub reads: Reads,
    /// The context to take for the current one.
    pub context: Option<String>,
}

/// What a case is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a scalar, or not")]
pub enum Kind {
    /// One scalar, which is read or not however the file is shown.
    Scalar,
    /// Anything else.
    Other,
}

/// The files to read of a folder.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "kubectl knows no other way")]
pub enum Reads {
    /// One that is named, with `--kubeconfig`.
    File(String),
    /// Those that `KUBECONFIG` lists; an empty one stays empty, and one with a `/` at the beginning is taken as it is.
    List(Vec<String>),
}

impl Case {
    /// Writes the files into a folder, which is made.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        for (path, content) in &self.files {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap_or(folder))?;
            fs::write(path, content)?;
        }
        Ok(())
    }

    /// Has a command read it, as `kubectl` and `coil` are told to.
    pub fn tell(&self, command: &mut Command, folder: &Path) {
        command.env_remove("KUBECONFIG").envs(self.list(folder).map(|list| ("KUBECONFIG", list)));
        command.args(self.file(folder).into_iter().flat_map(|file| ["--kubeconfig".into(), file.into_os_string()]));
        command.args(self.context.iter().flat_map(|context| ["--context", context]));
    }

    /// The file to read, if one is named.
    pub fn file(&self, folder: &Path) -> Option<PathBuf> {
        match &self.reads {
            Reads::File(path) => Some(folder.join(path)),
            Reads::List(_) => None,
        }
    }

    /// The value of `KUBECONFIG`, if files are listed.
    pub fn list(&self, folder: &Path) -> Option<String> {
        let Reads::List(paths) = &self.reads else { return None };
        let path = |path: &String| match path.as_str() {
            "" => String::new(),
            path => folder.join(path).display().to_string(),
        };
        Some(paths.iter().map(path).collect::<Vec<_>>().join(":"))
    }
}

/// Where Cloudcoil and `kubectl` differ, by the name of the case, and why they may.
pub const DIFFERENCES: &[(&str, &str)] = &[
    ("JSON with a surrogate pair", JSON_ESCAPES),
    ("JSON with escapes", JSON_ESCAPES),
    ("escapes", JSON_ESCAPES),
    ("UTF-16 big", "files without a byte order mark are read too where their encoding is plain"),
    ("UTF-16 little", "files without a byte order mark are read too where their encoding is plain"),
    ("UTF-8 with two marks", "a second byte order mark is no part of the first key"),
    ("a newer directive", "files that say they are YAML 1.2 are read too"),
    ("a next-line character", "only YAML 1.1 takes it for the end of a line, and makes a space of it"),
    ("tabs between tokens", YAML_1_2),
    ("extension !!str", YAML_1_2),
    ("extension ?x", YAML_1_2),
    ("extension :x", YAML_1_2),
    ("extension a?b", YAML_1_2),
    ("token a?b", YAML_1_2),
    ("extension -", "a lone `-` between braces is no text in YAML 1.2"),
];
const JSON_ESCAPES: &str = "all escapes of JSON are read, of which kubectl's parser knows some";
const YAML_1_2: &str = "YAML 1.2 allows it, and it has one meaning";

/// All cases, in a fixed order.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    cases.extend(odd::FILES.iter().map(|(name, text)| file(name, text.as_bytes())));
    cases.extend(odd::CLUSTERS.iter().map(|(name, fields)| file(name, whole(fields, "token: t").as_bytes())));
    cases.extend(odd::USERS.iter().map(|(name, fields)| file(name, whole("server: 'https://a:1'", fields).as_bytes())));
    cases.extend(odd::SCALARS.iter().map(|scalar| {
        let text = whole(&format!("server: 'https://a:1', extensions: [{{name: x, extension: {{v: {scalar}}}}}]"), "");
        Case { kind: Kind::Scalar, ..file(&format!("extension {scalar}"), text.as_bytes()) }
    }));
    cases.extend(odd::SCALARS.iter().step_by(5).map(|scalar| {
        let text = whole("server: 'https://a:1'", &format!("token: {scalar}"));
        Case { kind: Kind::Scalar, ..file(&format!("token {scalar}"), text.as_bytes()) }
    }));
    cases.extend(encodings());
    cases.extend(odd::LISTS.iter().map(|(name, reads, files)| list(name, reads, files)));
    cases.extend(contexts());
    cases.extend((0..64).map(generated));
    cases
}

/// One file of that content, beside the files that it may name.
fn file(name: &str, content: &[u8]) -> Case {
    let mut files = material();
    files.push(("conf/cfg".to_owned(), content.to_vec()));
    Case { name: name.to_owned(), kind: Kind::Other, files, reads: Reads::File("conf/cfg".to_owned()), context: None }
}

fn list(name: &str, reads: &[&str], files: &[(&str, &str)]) -> Case {
    let mut all = material();
    all.extend(files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())));
    let reads = Reads::List(reads.iter().map(|path| (*path).to_owned()).collect());
    Case { name: name.to_owned(), kind: Kind::Other, files: all, reads, context: None }
}

/// What kubeconfigs name; `conf` is where they are.
fn material() -> Vec<(String, Vec<u8>)> {
    let files: [(&str, &[u8]); 6] = [
        ("pki/ca.pem", b"-----BEGIN CERTIFICATE-----\nY2E=\n-----END CERTIFICATE-----\n"),
        ("conf/crt", b"certificate"),
        ("conf/key", b"\x00\xff key \n"),
        ("conf/tok", b"abc\n"),
        ("conf/empty", b""),
        ("other/crt", b"another certificate"),
    ];
    files.into_iter().map(|(path, content)| (path.to_owned(), content.to_vec())).collect()
}

/// A file with those fields of the cluster and of the user.
fn whole(cluster: &str, user: &str) -> String {
    format!(
        "current-context: c\nclusters: [{{name: p, cluster: {{{cluster}}}}}]\n\
         contexts: [{{name: c, context: {{cluster: p, user: u}}}}]\nusers: [{{name: u, user: {{{user}}}}}]\n"
    )
}

fn encodings() -> Vec<Case> {
    let text = whole("server: 'https://a:1'", "token: 'ä😀'");
    let units: Vec<u16> = text.encode_utf16().collect();
    let little: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
    let big: Vec<u8> = units.iter().flat_map(|unit| unit.to_be_bytes()).collect();
    [
        ("UTF-8 with a mark", [b"\xef\xbb\xbf", text.as_bytes()].concat()),
        ("UTF-8 with two marks", [b"\xef\xbb\xbf\xef\xbb\xbf", text.as_bytes()].concat()),
        ("UTF-16 little with a mark", [b"\xff\xfe", &little[..]].concat()),
        ("UTF-16 big with a mark", [b"\xfe\xff", &big[..]].concat()),
        ("UTF-16 little", little),
        ("UTF-16 big", big),
        ("no UTF-8", [text.as_bytes(), b"# \xff\n"].concat()),
        ("half a character", [text.as_bytes(), b"x: \xc3"].concat()),
        ("a control character", text.replace("ä", "\u{1}").into_bytes()),
        ("a delete character", text.replace("ä", "\u{7f}").into_bytes()),
        ("a zero", text.replace("ä", "\0").into_bytes()),
        ("carriage returns", text.replace('\n', "\r\n").into_bytes()),
        ("old carriage returns", text.replace('\n', "\r").into_bytes()),
        ("a next-line character", text.replace("'ä", "'a\u{85}b").into_bytes()),
        ("a line separator", text.replace("'ä", "'a\u{2028}b").into_bytes()),
    ]
    .into_iter()
    .map(|(name, content)| file(name, &content))
    .collect()
}

fn contexts() -> Vec<Case> {
    let text = "current-context: a
clusters: [{name: p, cluster: {server: 'https://a'}}, {name: q, cluster: {server: 'https://b', certificate-authority: crt}}]
contexts: [{name: a, context: {cluster: p, user: u}}, {name: b, context: {cluster: q, user: v, namespace: n}}]
users: [{name: u, user: {token: t}}, {name: v, user: {token: w}}]";
    let with = |name: &str, context: &str| Case { context: Some(context.to_owned()), ..file(name, text.as_bytes()) };
    vec![
        with("the context asked for", "b"),
        with("an unknown context asked for", "z"),
        with("no context asked for", ""),
    ]
}

/// A case made of a seed: one file or several, with fields of every kind, some of them wrong.
fn generated(seed: u64) -> Case {
    let mut maker = Maker(Random::new(seed));
    let mut files = material();
    let count = 1 + maker.0.below(3) as usize;
    let paths = &["conf/one", "other/two", "three"][..count];
    for path in paths {
        files.push(((*path).to_owned(), maker.kubeconfig().into_bytes()));
    }
    let reads = match count {
        1 => Reads::File(paths[0].to_owned()),
        _ => Reads::List(paths.iter().chain(&["", "missing", paths[0]]).map(|path| (*path).to_owned()).collect()),
    };
    Case { name: format!("seed {seed}"), kind: Kind::Other, files, reads, context: None }
}

struct Maker(Random);

impl Maker {
    fn one_in(&mut self, count: u64) -> bool {
        self.0.below(count) == 0
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.0.below(from.len() as u64) as usize]
    }

    fn kubeconfig(&mut self) -> String {
        let mut text = String::new();
        if self.one_in(2) {
            text += "apiVersion: v1\nkind: Config\n";
        }
        if !self.one_in(6) {
            text += &format!("current-context: {}\n", self.pick(&["a", "b", "c", "''", "~"]));
        }
        if self.one_in(4) {
            text += self.pick(&[
                "preferences: {}\n",
                "preferences: {colors: true}\n",
                "extensions: [{name: e, extension: {a: 1}}]\n",
            ]);
        }
        for (list, fields) in
            [("clusters", Self::cluster as fn(&mut Self) -> String), ("contexts", Self::context), ("users", Self::user)]
        {
            text += &self.list(list, fields);
        }
        text
    }

    fn list(&mut self, list: &str, fields: fn(&mut Self) -> String) -> String {
        if self.one_in(12) {
            return format!("{list}: {}\n", self.pick(&["~", "[]", ""]));
        }
        let mut text = format!("{list}:\n");
        for name in ["a", "b", "c"] {
            if self.one_in(5) {
                continue;
            }
            let field = &list[..list.len() - 1];
            text += &format!("- name: {name}\n  {field}:{}\n", fields(self));
        }
        if text.ends_with(":\n") { String::new() } else { text }
    }

    /// Some of the fields, in block style; a map without any is `null`.
    fn some(&mut self, fields: &[(&str, &[&str])]) -> String {
        let mut text = String::new();
        for (field, values) in fields {
            if self.one_in(2) {
                text += &format!("\n    {field}: {}", self.pick(values));
            }
        }
        text
    }

    fn cluster(&mut self) -> String {
        let server =
            self.pick(&["https://a:6443", "'https://[::1]:6443'", "http://b", "10.0.0.1:8443", "https://c/path/"]);
        let ca: &[&str] = if self.one_in(12) { &["missing"] } else { &["../pki/ca.pem", "./../pki//ca.pem", "''"] };
        let rest = match self.0.below(3) {
            0 => self.some(&[("certificate-authority", ca)]),
            1 => self.some(&[("certificate-authority-data", &["Y2E=", "\"Y2\\nE=\"", "~"])]),
            _ => self.some(&[("insecure-skip-tls-verify", &["true", "false", "yes"])]),
        };
        let more = self.some(&[
            ("tls-server-name", &["api.internal", "''"]),
            ("proxy-url", &["socks5://s:1080", "http://me:word@p", "''", "nonsense"]),
            ("disable-compression", &["true", "false", "~"]),
            (
                "extensions",
                &["[]", "[{name: client.authentication.k8s.io/exec, extension: {audience: x, n: [1, 2.5, ~]}}]"],
            ),
        ]);
        format!("\n    server: {server}{rest}{more}")
    }

    fn context(&mut self) -> String {
        self.some(&[
            ("cluster", &["a", "a", "a", "b", "c"]),
            ("user", &["a", "a", "b", "c", "''", "~"]),
            ("namespace", &["team", "''", "\"x\""]),
            ("unknown", &["{a: [1]}"]),
        ])
    }

    fn user(&mut self) -> String {
        match self.0.below(6) {
            0 => {
                self.some(&[("token", &["t0ken", "'123'", "a b", "''", "~"]), ("tokenFile", &["tok", "../x", "/abs"])])
            }
            1 => self.some(&[
                ("client-certificate", &["../conf/crt", "crt", "''"]),
                ("client-key", &["../conf/key", "''"]),
                ("as", &["admin"]),
            ]),
            2 => self.some(&[("client-certificate-data", &["Y3J0", "''"]), ("client-key-data", &["a2V5", "''", "~"])]),
            3 => self.some(&[("username", &["me", "'a:b'"]), ("password", &["'p w'", "\"\\\"\""])]),
            4 => format!("\n    exec:{}", self.exec()),
            _ => self.some(&[
                ("as", &["admin", "''"]),
                ("as-uid", &["'42'"]),
                ("as-groups", &["[a, b]", "[]", "[~]"]),
                ("as-user-extra", &["{a: [b, c], d: [], e: ~}", "{}"]),
                ("auth-provider", &["{name: gcp, config: {a: b}}", "{name: oidc}", "~"]),
            ]),
        }
    }

    fn exec(&mut self) -> String {
        self.some(&[
            ("  command", &["login", "./bin/login", "/usr/bin/env"]),
            ("  args", &["[a, '-b']", "[]", "~"]),
            ("  env", &["[{name: A, value: b}]", "[{name: A}]", "[]"]),
            ("  apiVersion", &["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1", "other/v1"]),
            ("  interactiveMode", &["Never", "IfAvailable", "Always", "Sometimes"]),
            ("  provideClusterInfo", &["true", "false"]),
            ("  installHint", &["'first line'", "|\n        two\n        lines"]),
        ])
    }
}

mod odd;
