//! `coil get`.

use bytes::Bytes;
use cloudcoil_core::{ApiResource, Error, ListParams, Table, Unstructured, View, response};
use http::Request;
use serde_json::Value;

use super::session::Session;
use super::watch;
use super::world::{Api, dual};
use crate::args::{Get, Which};
use crate::fault::{Fault, failed_with};
use crate::format::{Format, print, trim};
use crate::kinds;
use crate::out::{Out, complain, note};
use crate::table::Style;
use crate::tabs::Tabs;

#[dual]
pub(crate) async fn run(get: Get, session: &mut Session, out: &mut Out) -> Result<(), Fault> {
    if let Some(path) = &get.raw {
        return raw(path, session, out).await;
    }
    let format = Format::parse(&get.output)?;
    let wanted = Wanted::resolve(&get, session).await?;
    if get.watch || get.watch_only {
        return watch(&get, &wanted, &format, session, out).await;
    }
    match &format {
        Format::Table { wide } => tables(&get, &wanted, *wide, session, out).await,
        _ => objects(&get, &wanted, &format, session, out).await,
    }
}

/// Prints what is at a path as it comes.
#[dual]
async fn raw(path: &str, session: &mut Session, out: &mut Out) -> Result<(), Fault> {
    // A word without a slash would be a host in a request, and the path of another server's root.
    if !path.starts_with('/') {
        return Err(Fault::misuse(format!("{path:?} is no path: it must begin with /")));
    }
    let request = Request::get(path).body(Bytes::new());
    let request = request.map_err(|error| Fault::misuse(format!("{path:?} is no path: {error}")))?;
    let answer = session.client().await?.request(request).await?;
    response::check(&answer)?;
    out.bytes(&answer.body)
}

/// What is to be printed.
struct Wanted {
    kinds: Vec<(ApiResource, Vec<String>)>,
    all_namespaces: bool,
}

#[dual]
impl Wanted {
    async fn resolve(get: &Get, session: &mut Session) -> Result<Self, Fault> {
        let targets = kinds::targets(&get.targets)?;
        let Which { all_namespaces, labels, fields } = &get.which;
        let named = targets.iter().any(|target| !target.names.is_empty());
        if named && *all_namespaces {
            return Err(Fault::misuse("an object of a name lives in one namespace: leave out the name or -A"));
        }
        if named && (labels.is_some() || fields.is_some()) {
            return Err(Fault::misuse("a name and a selector exclude each other"));
        }
        if !named && get.subresource.is_some() {
            return Err(Fault::misuse("--subresource needs the name of an object"));
        }
        let mut kinds = Vec::new();
        for target in targets {
            for kind in session.kinds(&target.word).await? {
                kinds.push((kind, target.names.clone()));
            }
        }
        Ok(Self { kinds, all_namespaces: *all_namespaces })
    }

    fn several_kinds(&self) -> bool {
        self.kinds.iter().any(|(kind, _)| *kind != self.kinds[0].0)
    }

    fn all_namespaced(&self) -> bool {
        self.kinds.iter().all(|(kind, _)| kind.resource_type.is_namespaced())
    }

    /// Whether one object is asked for, by its name.
    fn is_single(&self) -> bool {
        matches!(&self.kinds[..], [(_, names)] if names.len() == 1)
    }
}

/// Failures that do not keep the rest from being printed.
struct Failures {
    ignore_not_found: bool,
    faults: Vec<Fault>,
}

impl Failures {
    const fn new(ignore_not_found: bool) -> Self {
        Self { ignore_not_found, faults: Vec::new() }
    }

    fn add(&mut self, error: Error) {
        if !(self.ignore_not_found && failed_with(&error, 404)) {
            self.faults.push(error.into());
        }
    }

    /// The failure to end with; all but one are told right away.
    fn end(mut self) -> Result<(), Fault> {
        let Some(last) = self.faults.pop() else { return Ok(()) };
        self.faults.iter().for_each(complain);
        Err(last)
    }
}

#[dual]
async fn tables(get: &Get, wanted: &Wanted, wide: bool, session: &mut Session, out: &mut Out) -> Result<(), Fault> {
    let mut failures = Failures::new(get.ignore_not_found);
    let mut last: Option<&ApiResource> = None;
    let mut tabs = Tabs::default();
    let several = wanted.several_kinds();
    for (kind, names) in &wanted.kinds {
        let api = session.api(kind, wanted.all_namespaces).await?;
        let found = if names.is_empty() {
            let table = list_table(&api, list_params(&get.which, get.chunk_size)).await;
            vec![table]
        } else {
            let mut found = Vec::new();
            for name in names {
                found.push(one_table(&api, name, get.subresource.as_deref()).await);
            }
            found
        };
        for table in found {
            let table = match table {
                Ok(table) if table.rows.is_empty() => continue,
                Ok(table) => table,
                Err(error) => {
                    failures.add(error);
                    continue;
                }
            };
            let style = Style {
                wide,
                namespaces: wanted.all_namespaces && kind.resource_type.is_namespaced(),
                labels: get.show_labels,
                kind: several.then(|| kinds::label(&kind.resource_type.kind, &kind.resource_type.group)),
            };
            if last.is_none_or(|last| last != kind) {
                flush(&mut tabs, last.is_some() && !get.no_headers, get.no_headers, out)?;
                if !get.no_headers {
                    tabs.line(style.header(&table));
                }
                last = Some(kind);
            }
            style.fill(&table, &mut tabs);
        }
    }
    flush(&mut tabs, false, get.no_headers, out)?;
    if !out.written && failures.faults.is_empty() && !get.ignore_not_found {
        nothing_found(wanted, session).await?;
    }
    out.flush()?;
    failures.end()
}

/// Prints the lines of one table, and a blank one if another comes.
fn flush(tabs: &mut Tabs, another: bool, no_headers: bool, out: &mut Out) -> Result<(), Fault> {
    out.table(tabs, !no_headers)?;
    *tabs = Tabs::default();
    if another { out.line("") } else { Ok(()) }
}

#[dual]
async fn nothing_found(wanted: &Wanted, session: &mut Session) -> Result<(), Fault> {
    if wanted.all_namespaced() && !wanted.all_namespaces {
        let client = session.client().await?;
        note(&format!("No resources found in {} namespace.", client.default_namespace()));
    } else {
        note("No resources found");
    }
    Ok(())
}

/// All pages of a list as one table. If a page's token expires on the way, everything is read anew at once.
#[dual]
pub(crate) async fn list_table(api: &Api<Unstructured>, mut params: ListParams) -> Result<Table, Error> {
    let requests = api.requests().clone().viewed(View::Table);
    let mut whole: Option<Table> = None;
    loop {
        let answer = api.client().request(requests.list(&params)?).await?;
        let page = match Table::decode(&answer) {
            Err(error) if error.is_expired() && params.continue_token.is_some() => {
                params = ListParams { continue_token: None, limit: None, ..params };
                whole = None;
                continue;
            }
            page => page?,
        };
        let token = page.continue_token.clone();
        let known = whole.get_or_insert_default();
        known.append(page);
        match token {
            Some(_) => params.continue_token = token,
            None => return Ok(whole.unwrap_or_default()),
        }
    }
}

#[dual]
async fn one_table(api: &Api<Unstructured>, name: &str, subresource: Option<&str>) -> Result<Table, Error> {
    let Some(subresource) = subresource else { return api.get(name).table().await };
    let request = api.requests().clone().viewed(View::Table).get_subresource(name, subresource)?;
    Table::decode(&api.client().request(request).await?)
}

fn list_params(which: &Which, chunk_size: u32) -> ListParams {
    ListParams {
        label_selector: which.labels.clone(),
        field_selector: which.fields.clone(),
        limit: Some(chunk_size).filter(|size| *size > 0),
        ..ListParams::default()
    }
}

/// Prints objects, and then each change of them.
#[dual]
async fn watch(get: &Get, wanted: &Wanted, format: &Format, session: &mut Session, out: &mut Out) -> Result<(), Fault> {
    let [(kind, names)] = &wanted.kinds[..] else {
        return Err(Fault::misuse("one type of object can be watched at a time"));
    };
    let api = session.api(kind, wanted.all_namespaces).await?;
    let mut which = list_params(&get.which, get.chunk_size);
    match &names[..] {
        [] => {}
        [name] => {
            // As kubectl does, a name that is not there is an error, and no reason to wait.
            api.get(name).metadata().await?;
            which.field_selector = Some(format!("metadata.name={name}"));
        }
        _ => return Err(Fault::misuse("one object of a name can be watched at a time; or use a selector")),
    }
    if get.subresource.is_some() {
        return Err(Fault::misuse("subresources cannot be watched"));
    }
    let Format::Table { wide } = format else {
        let (only_changes, no_headers, trim) = (get.watch_only, get.no_headers, !get.show_managed_fields);
        return watch::Watching { api, which, only_changes, no_headers, trim, out }.objects(format).await;
    };
    let style = Style {
        wide: *wide,
        namespaces: wanted.all_namespaces && kind.resource_type.is_namespaced(),
        labels: get.show_labels,
        kind: None,
    };
    let first = list_table(&api, which.clone()).await?;
    let mut tabs = Tabs::default();
    if !get.watch_only && !first.rows.is_empty() {
        if !get.no_headers {
            tabs.line(style.header(&first));
        }
        style.fill(&first, &mut tabs);
        out.table(&mut tabs, !get.no_headers)?;
        out.flush()?;
    }
    let (only_changes, no_headers, trim) = (get.watch_only, get.no_headers, true);
    watch::Watching { api, which, only_changes, no_headers, trim, out }.rows(style, first, tabs).await
}

#[dual]
async fn objects(
    get: &Get,
    wanted: &Wanted,
    format: &Format,
    session: &mut Session,
    out: &mut Out,
) -> Result<(), Fault> {
    let mut failures = Failures::new(get.ignore_not_found);
    let mut found: Vec<Value> = Vec::new();
    for (kind, names) in &wanted.kinds {
        let api = session.api(kind, wanted.all_namespaces).await?;
        if names.is_empty() {
            match list(&api, get).await {
                Ok(items) => found.extend(items),
                Err(error) => failures.add(error),
            }
        }
        for name in names {
            let object = match &get.subresource {
                Some(subresource) => api.subresource(name, subresource.as_str()).get().await,
                None => api.get(name).send().await.map(Unstructured::into_value),
            };
            match object {
                Ok(object) => found.push(object),
                Err(error) => failures.add(error),
            }
        }
    }
    if !get.show_managed_fields {
        found.iter_mut().for_each(trim);
    }
    print(found, wanted.is_single(), format, out)?;
    out.flush()?;
    failures.end()
}

#[dual]
async fn list(api: &Api<Unstructured>, get: &Get) -> Result<Vec<Value>, Error> {
    let mut list = api.list();
    if let Some(labels) = &get.which.labels {
        list = list.labels(labels);
    }
    if let Some(fields) = &get.which.fields {
        list = list.fields(fields);
    }
    if get.chunk_size > 0 {
        list = list.limit(get.chunk_size);
    }
    Ok(list.send().await?.items.into_iter().map(Unstructured::into_value).collect())
}
