//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, CommandFactory as _, Parser, Subcommand, ValueEnum, error::ErrorKind};
use cloudcoil_core::FieldValidation;

use crate::durations;
use crate::fault::Fault;

/// A small kubectl on Cloudcoil: every verb of the library, from a shell.
#[derive(Debug, Parser)]
#[command(name = "coil", version, max_term_width = 120, subcommand_required = true, arg_required_else_help = false)]
pub(crate) struct Coil {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes, before or after its name.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// The kubeconfig file, in place of those that KUBECONFIG names
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context, in place of the current one
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// The cluster of the kubeconfig, in place of the context's
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) cluster: Option<String>,
    /// The user of the kubeconfig, in place of the context's
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// The address of the API server
    #[arg(short, long, global = true, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// The bearer token
    #[arg(long, global = true, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// The user to impersonate
    #[arg(long = "as", global = true, value_name = "USER")]
    pub(crate) impersonate: Option<String>,
    /// A group to impersonate; can be repeated
    #[arg(long = "as-group", global = true, value_name = "GROUP", action = ArgAction::Append)]
    pub(crate) impersonate_groups: Vec<String>,
    /// The uid to impersonate
    #[arg(long = "as-uid", global = true, value_name = "UID")]
    pub(crate) impersonate_uid: Option<String>,
    /// The namespace, in place of the context's
    #[arg(short, long, global = true, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// How long a request may take in all, retries included: as 1m30s or as seconds, 0 for no limit [default: 30s];
    /// for 'wait' and 'delete', how long to wait
    #[arg(long, global = true, value_name = "DURATION", value_parser = durations::parse, allow_hyphen_values = true)]
    pub(crate) timeout: Option<durations::Span>,
    /// How long a request may take in all, also for 'wait' and 'delete'
    #[arg(long, global = true, value_name = "DURATION", value_parser = durations::parse, allow_hyphen_values = true)]
    pub(crate) request_timeout: Option<durations::Span>,
    /// What it runs on: the same is printed on each
    #[arg(long, global = true, value_name = "NAME", default_value = "tokio")]
    pub(crate) runtime: Runtime,
    /// Print requests and retries to stderr
    #[arg(
        short, long, global = true, value_name = "LEVEL", num_args = 0..=1, require_equals = true,
        default_missing_value = "1"
    )]
    pub(crate) verbose: Option<u8>,
}

/// What coil runs on.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum Runtime {
    Tokio,
    AsyncStd,
    Blocking,
    Smol,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Look at the configuration
    Config {
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Say as whom the API server knows you
    Whoami(Whoami),
    /// Print the types of objects that the API server has
    ApiResources(ApiResources),
    /// Print the versions of coil and of the API server
    Version(Version),
    /// Print objects
    Get(Get),
    /// Print each change of objects as one line of JSON, until stopped
    ///
    /// Every line has the keys event, namespace, name, uid, resourceVersion and message; what does not apply is null.
    /// The event is 'added', 'updated' or 'deleted'; 'synced' after each complete list; or 'error', with a message,
    /// after which coil goes on by itself. SIGINT and SIGTERM end it with exit code 0.
    Follow(Follow),
    /// Create objects from files
    Create(Create),
    /// Make objects what files say, by server-side apply
    Apply(Apply),
    /// Replace objects by what files say
    Replace(Replace),
    /// Delete objects
    Delete(Delete),
    /// Change parts of an object
    Patch(Patch),
    /// Set how many replicas an object has
    Scale(Scale),
    /// Wait until objects are as they should be
    Wait(Wait),
    /// Print what a container has written
    Logs(Logs),
    /// Evict pods, as far as disruption budgets allow
    Evict(Evict),
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the current context and what it needs, as 'kubectl config view --minify --flatten' does
    View {
        /// Print secrets and certificates too
        #[arg(long)]
        raw: bool,
        /// How to print it
        #[arg(short, long, default_value = "yaml")]
        output: Structure,
        /// Taken for kubectl's sake: this is how it is always printed
        #[arg(long, hide = true)]
        minify: bool,
        /// Taken for kubectl's sake: this is how it is always printed
        #[arg(long, hide = true)]
        flatten: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum Structure {
    Json,
    Yaml,
}

#[derive(Debug, Args)]
pub(crate) struct Whoami {
    /// How to print it, other than as a table
    #[arg(short, long)]
    pub(crate) output: Option<Structure>,
}

#[derive(Debug, Args)]
pub(crate) struct Version {
    /// How to print it, other than as text
    #[arg(short, long)]
    pub(crate) output: Option<Structure>,
    /// Do not ask the server
    #[arg(long)]
    pub(crate) client: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ApiResources {
    /// How to print them, other than as a table
    #[arg(short, long)]
    pub(crate) output: Option<ResourceColumns>,
    /// Only those of this group; "" is the core group
    #[arg(long, value_name = "GROUP")]
    pub(crate) api_group: Option<String>,
    /// Only those that live in namespaces, or with =false those that do not
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub(crate) namespaced: Option<bool>,
    /// Only those that have all of these verbs
    #[arg(long, value_delimiter = ',', value_name = "VERBS")]
    pub(crate) verbs: Vec<String>,
    /// Only those that are in all of these categories
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub(crate) categories: Vec<String>,
    /// Do not print the header
    #[arg(long)]
    pub(crate) no_headers: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum ResourceColumns {
    Name,
    Wide,
}

/// Which objects of a type.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Which {
    /// In all namespaces
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,
    /// Only objects whose labels match
    #[arg(short = 'l', long = "selector", value_name = "SELECTOR", allow_hyphen_values = true)]
    pub(crate) labels: Option<String>,
    /// Only objects whose fields match
    #[arg(long = "field-selector", value_name = "SELECTOR")]
    pub(crate) fields: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Get {
    /// KIND [NAME...], KIND,KIND or KIND/NAME...
    #[arg(value_name = "KIND", required_unless_present = "raw")]
    pub(crate) targets: Vec<String>,
    #[command(flatten)]
    pub(crate) which: Which,
    /// Print them, then each change
    #[arg(short, long)]
    pub(crate) watch: bool,
    /// Print each change, but not what is there
    #[arg(long)]
    pub(crate) watch_only: bool,
    /// How to print: table, wide, name, json, yaml or jsonpath=TEMPLATE
    #[arg(short, long, default_value = "table", value_name = "FORMAT")]
    pub(crate) output: String,
    /// How many objects are asked for at a time; 0 for all at once
    #[arg(long, visible_alias = "limit", default_value_t = 500, value_name = "NUMBER")]
    pub(crate) chunk_size: u32,
    /// Print this part of the objects, such as status or scale
    #[arg(long, value_name = "NAME")]
    pub(crate) subresource: Option<String>,
    /// Keep managed fields in JSON and YAML
    #[arg(long)]
    pub(crate) show_managed_fields: bool,
    /// Print labels as the last column
    #[arg(long)]
    pub(crate) show_labels: bool,
    /// Do not print the header
    #[arg(long)]
    pub(crate) no_headers: bool,
    /// Say nothing of objects that do not exist
    #[arg(long)]
    pub(crate) ignore_not_found: bool,
    /// Print what the API server answers at this path, as it is
    #[arg(long, value_name = "PATH", conflicts_with_all = ["targets", "watch", "watch_only", "all_namespaces", "labels"])]
    pub(crate) raw: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Follow {
    /// KIND
    #[arg(value_name = "KIND")]
    pub(crate) kind: String,
    #[command(flatten)]
    pub(crate) which: Which,
}

/// Files of objects.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Files {
    /// A file, a folder of .json, .yaml and .yml files, or - for standard input; can be repeated
    #[arg(short, long = "filename", value_name = "FILE", action = ArgAction::Append, value_delimiter = ',')]
    pub(crate) filename: Vec<PathBuf>,
    /// Folders within folders too
    #[arg(short = 'R', long)]
    pub(crate) recursive: bool,
}

/// What every write takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct Writing {
    /// none, or server to check and answer as if it were done, but store nothing
    #[arg(long, default_value = "none", value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "server")]
    pub(crate) dry_run: DryRun,
    /// Who is writing, for the ownership of fields
    #[arg(long, default_value = "coil", value_name = "NAME")]
    pub(crate) field_manager: String,
    /// What becomes of fields that the type does not have: strict, warn or ignore
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "strict", default_value = "strict")]
    pub(crate) validate: Validation,
    /// How to print the results: name, json or yaml, other than as a line each
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Shape>,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum DryRun {
    None,
    Server,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum Validation {
    #[value(alias = "true")]
    Strict,
    Warn,
    #[value(alias = "false")]
    Ignore,
}

impl From<Validation> for FieldValidation {
    fn from(how: Validation) -> Self {
        match how {
            Validation::Strict => Self::Strict,
            Validation::Warn => Self::Warn,
            Validation::Ignore => Self::Ignore,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum Shape {
    Name,
    Json,
    Yaml,
}

#[derive(Debug, Args)]
pub(crate) struct Create {
    #[command(flatten)]
    pub(crate) files: Files,
    #[command(flatten)]
    pub(crate) writing: Writing,
}

#[derive(Debug, Args)]
pub(crate) struct Apply {
    #[command(flatten)]
    pub(crate) files: Files,
    #[command(flatten)]
    pub(crate) writing: Writing,
    /// Take fields over from those who own them
    #[arg(long)]
    pub(crate) force_conflicts: bool,
    /// Say 'serverside-applied' of each object, as kubectl does with this flag; apply is server-side in any case
    #[arg(long)]
    pub(crate) server_side: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Replace {
    #[command(flatten)]
    pub(crate) files: Files,
    #[command(flatten)]
    pub(crate) writing: Writing,
    /// Replace this part of the objects, such as status or scale
    #[arg(long, value_name = "NAME")]
    pub(crate) subresource: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Delete {
    /// KIND NAME..., or KIND/NAME...
    #[arg(value_name = "KIND", required_unless_present = "filename", conflicts_with = "filename")]
    pub(crate) targets: Vec<String>,
    #[command(flatten)]
    pub(crate) files: Files,
    #[command(flatten)]
    pub(crate) which: Which,
    /// All objects of the type in the namespace
    #[arg(long, conflicts_with_all = ["labels", "fields"])]
    pub(crate) all: bool,
    /// How many seconds an object has to end; -1 leaves it to the object
    #[arg(long, default_value_t = -1, value_name = "SECONDS", allow_hyphen_values = true)]
    pub(crate) grace_period: i64,
    /// End at once: the same as --grace-period=1
    #[arg(long, conflicts_with = "grace_period")]
    pub(crate) now: bool,
    /// With --grace-period=0: do not wait for an account that an object has ended
    #[arg(long)]
    pub(crate) force: bool,
    /// What becomes of objects that they own
    #[arg(long, default_value = "background", value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "background")]
    pub(crate) cascade: Cascade,
    /// Wait until they are gone, or with =false do not
    #[arg(long, default_value_t = true, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    pub(crate) wait: bool,
    /// Say nothing of objects that do not exist
    #[arg(long)]
    pub(crate) ignore_not_found: bool,
    /// none, or server to check and answer as if it were done, but delete nothing
    #[arg(long, default_value = "none", value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "server")]
    pub(crate) dry_run: DryRun,
    /// How to print the results, other than as a line each
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<OnlyName>,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum OnlyName {
    Name,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum Cascade {
    #[value(alias = "true")]
    Background,
    Foreground,
    #[value(alias = "false")]
    Orphan,
}

#[derive(Debug, Args)]
pub(crate) struct Patch {
    /// KIND NAME, or KIND/NAME
    #[arg(value_name = "KIND", required = true)]
    pub(crate) targets: Vec<String>,
    /// How the patch is to be understood
    #[arg(long = "type", default_value = "strategic", value_name = "TYPE")]
    pub(crate) kind: PatchKind,
    /// The patch, as JSON or YAML
    #[arg(
        short,
        long,
        required_unless_present = "patch_file",
        conflicts_with = "patch_file",
        value_name = "PATCH",
        allow_hyphen_values = true
    )]
    pub(crate) patch: Option<String>,
    /// A file with the patch, or - for standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) patch_file: Option<PathBuf>,
    /// Patch this part of the object, such as status or scale
    #[arg(long, value_name = "NAME")]
    pub(crate) subresource: Option<String>,
    /// With --type=apply: take fields over from those who own them
    #[arg(long)]
    pub(crate) force_conflicts: bool,
    #[command(flatten)]
    pub(crate) writing: Writing,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum PatchKind {
    Json,
    Merge,
    Strategic,
    Apply,
}

#[derive(Debug, Args)]
pub(crate) struct Scale {
    /// KIND NAME..., KIND/NAME..., or with --all or a selector KIND
    #[arg(value_name = "KIND", required_unless_present = "filename", conflicts_with = "filename")]
    pub(crate) targets: Vec<String>,
    #[command(flatten)]
    pub(crate) files: Files,
    /// All objects of the type in the namespace
    #[arg(long)]
    pub(crate) all: bool,
    /// Only objects whose labels match
    #[arg(
        short = 'l',
        long = "selector",
        value_name = "SELECTOR",
        allow_hyphen_values = true,
        conflicts_with = "filename"
    )]
    pub(crate) labels: Option<String>,
    /// How many replicas it should have
    #[arg(long, value_name = "NUMBER", required = true)]
    pub(crate) replicas: u32,
    /// Only if it should have this many now
    #[arg(long, value_name = "NUMBER")]
    pub(crate) current_replicas: Option<u32>,
    /// none, or server to check and answer as if it were done, but store nothing
    #[arg(long, default_value = "none", value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "server")]
    pub(crate) dry_run: DryRun,
    /// How to print the results: name, json or yaml, other than as a line each
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Shape>,
}

#[derive(Debug, Args)]
pub(crate) struct Wait {
    /// KIND [NAME...], or KIND/NAME...
    #[arg(value_name = "KIND", required = true)]
    pub(crate) targets: Vec<String>,
    #[command(flatten)]
    pub(crate) which: Which,
    /// All objects of the type in the namespace
    #[arg(long, conflicts_with_all = ["labels", "fields"])]
    pub(crate) all: bool,
    /// condition=NAME[=VALUE], delete, create, or jsonpath=PATH[=VALUE]
    #[arg(long = "for", value_name = "WHAT", required = true)]
    pub(crate) what: String,
    /// How to print the results: name, json or yaml, other than as a line each
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) output: Option<Shape>,
}

#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// The pod: NAME, or pod/NAME
    #[arg(value_name = "POD")]
    pub(crate) pod: String,
    /// The container; can be left out if the pod has only one
    #[arg(value_name = "CONTAINER", conflicts_with = "container")]
    pub(crate) name: Option<String>,
    /// The container; can be left out if the pod has only one
    #[arg(short, long, value_name = "NAME")]
    pub(crate) container: Option<String>,
    /// Go on with what it writes, until it ends
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// What its predecessor wrote, which ended
    #[arg(short, long)]
    pub(crate) previous: bool,
    /// Only the last lines; -1 for all
    #[arg(long, value_name = "NUMBER", default_value_t = -1, allow_hyphen_values = true)]
    pub(crate) tail: i64,
    /// Only what is no older than this, as 5s, 2m or 3h
    #[arg(long, value_name = "DURATION", value_parser = durations::parse, conflicts_with = "since_time")]
    pub(crate) since: Option<durations::Span>,
    /// Only what is no older than this time, as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    pub(crate) since_time: Option<String>,
    /// Each line with its time
    #[arg(long)]
    pub(crate) timestamps: bool,
    /// At most this many bytes
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit_bytes: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct Evict {
    /// The pods: NAME, or pod/NAME
    #[arg(value_name = "POD", required = true)]
    pub(crate) pods: Vec<String>,
    /// How many seconds a pod has to end; -1 leaves it to the pod
    #[arg(long, default_value_t = -1, value_name = "SECONDS", allow_hyphen_values = true)]
    pub(crate) grace_period: i64,
    /// none, or server to check and answer as if it were done, but evict nothing
    #[arg(long, default_value = "none", value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "server")]
    pub(crate) dry_run: DryRun,
}

impl Coil {
    /// What the command line asks for, or the help that it asks for.
    pub(crate) fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, Asked> {
        Self::try_parse_from(arguments).map_err(|error| match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Asked::Help(Box::new(error)),
            _ => Asked::Wrong(Fault::Misuse(in_one_line(&error))),
        })
    }

    /// How long one request may take.
    pub(crate) fn request_timeout(&self) -> Option<Duration> {
        let waits = matches!(self.command, Command::Wait(_) | Command::Delete(_));
        let general = self.global.timeout.filter(|_| !waits);
        let span = self.global.request_timeout.or(general);
        span.map_or(Some(REQUEST_TIMEOUT), durations::Span::limit)
    }
}

/// Why there is nothing to do.
#[derive(Debug)]
pub(crate) enum Asked {
    /// Help, or the version.
    Help(Box<clap::Error>),
    /// What cannot be.
    Wrong(Fault),
}

/// What clap explains over several lines, and where to read more.
fn in_one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let said: Vec<&str> = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .filter(|line| !line.is_empty())
        .collect();
    let command = text.lines().find_map(|line| line.trim().strip_prefix("Usage: coil "));
    let command = command
        .and_then(|usage| usage.split_whitespace().next())
        .filter(|word| Coil::command().get_subcommands().any(|command| command.get_name() == *word));
    let help = command.map_or_else(|| "coil --help".to_owned(), |command| format!("coil {command} --help"));
    format!("{}; see '{help}'", said.join(" "))
}

const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Coil, Asked> {
        Coil::read(std::iter::once("coil").chain(line.split_whitespace()).map(OsString::from))
    }

    #[test]
    fn the_definition_holds_together() {
        Coil::command().debug_assert();
    }

    #[test]
    fn global_flags_come_before_or_after_the_command() {
        for line in ["-n a --timeout 5 -v get pods", "get pods -n a --timeout 5s -v", "get -v=6 -n=a pods --timeout=5s"]
        {
            let coil = read(line).unwrap();
            assert_eq!(coil.global.namespace.as_deref(), Some("a"), "{line}");
            assert_eq!(coil.request_timeout(), Some(Duration::from_secs(5)), "{line}");
            assert!(coil.global.verbose.is_some_and(|level| level > 0), "{line}");
        }
    }

    #[test]
    fn mistakes_take_one_line_that_says_where_help_is() {
        for (line, part) in [
            ("get", "see 'coil get --help'"),
            ("", "see 'coil --help'"),
            ("get pods --lable x", "see 'coil get --help'"),
            ("scale deploy web", "--replicas"),
            ("frobnicate", "frobnicate"),
            ("patch cm a -p {} --type odd", "odd"),
            ("get pods --timeout soon", "soon"),
        ] {
            let Err(Asked::Wrong(Fault::Misuse(text))) = read(line) else { panic!("{line}") };
            assert!(text.contains(part) && !text.contains('\n'), "{line}: {text}");
        }
    }

    #[test]
    fn the_timeout_of_a_wait_is_none_of_its_requests() {
        let coil = read("wait pod a --for=delete --timeout=1h").unwrap();
        assert_eq!(coil.request_timeout(), Some(REQUEST_TIMEOUT));
        assert_eq!(read("get pods --timeout=0").unwrap().request_timeout(), None);
    }
}
