//! `coil get -w`.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use cloudcoil_core::{
    Answer, Error, ListParams, Status, Table, TableColumn, TableRow, Unstructured, View, WatchParams, response,
};
use cloudcoil_runtime::Change;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::get;
use super::world::*;
use crate::fault::Fault;
use crate::format::{self, Format};
use crate::out::Out;
use crate::table::{Style, metadata};
use crate::tabs::Tabs;

/// What is watched, and how it is shown.
pub(crate) struct Watching<'a> {
    pub(crate) api: Api<Unstructured>,
    pub(crate) which: ListParams,
    pub(crate) only_changes: bool,
    pub(crate) no_headers: bool,
    pub(crate) trim: bool,
    pub(crate) out: &'a mut Out,
}

#[dual]
impl Watching<'_> {
    /// Prints objects whole, each time that they change.
    pub(crate) async fn objects(self, format: &Format) -> Result<(), Fault> {
        let (changes, mut letters) = mailbox();
        let synced = changes.clone();
        let mut informer = Informer::<Unstructured>::new(self.api);
        if let Some(labels) = &self.which.label_selector {
            informer = informer.labels(labels);
        }
        if let Some(fields) = &self.which.field_selector {
            informer = informer.fields(fields);
        }
        if !self.trim {
            informer = informer.keep_managed_fields();
        }
        let failed = changes.clone();
        let _informer = informer
            .on_change(move |change| {
                let (Change::Added(object) | Change::Updated { new: object, .. } | Change::Deleted(object)) = change;
                changes.send(Told::Object(object.clone()));
            })
            .on_synced(move || synced.send(Told::Synced))
            .on_error(move |error| failed.send(Told::Failed(error.clone())))
            .start();
        let mut is_synced = false;
        while let Some(told) = letters.next().await {
            match told {
                Told::Synced => is_synced = true,
                Told::Object(object) if is_synced || !self.only_changes => {
                    let object: Unstructured = object.decode().map_err(Error::from)?;
                    format::print_one(&object.into_value(), format, self.out)?;
                    self.out.flush()?;
                }
                Told::Object(_) => {}
                Told::Failed(error) if error.is_permanent() => return Err(error.into()),
                Told::Failed(_) => {}
            }
        }
        Ok(())
    }

    /// Prints rows of a table, each time that their objects change. What a broken watch has missed is found by listing anew.
    pub(crate) async fn rows(self, style: Style, first: Table, tabs: Tabs) -> Result<(), Fault> {
        let has_header = !self.only_changes && !first.rows.is_empty();
        let mut rows = Rows {
            header: !has_header && !self.no_headers,
            watching: self,
            style,
            tabs,
            seen: Seen::default(),
            version: first.resource_version.clone(),
            columns: first.columns,
        };
        first.rows.iter().for_each(|row| _ = rows.seen.is_news(row));
        loop {
            let began = Instant::now();
            match rows.watch().await {
                Err(Trouble::Fault(fault)) => return Err(fault),
                Err(Trouble::Watch(error)) if error.is_expired() => rows.list().await?,
                Err(Trouble::Watch(error)) if error.is_permanent() => return Err(error.into()),
                Err(Trouble::Watch(_)) | Ok(()) => {}
            }
            sleep_until(rows.watching.api.client(), began + PAUSE).await;
        }
    }

    fn request(&self, version: Option<&str>) -> Result<http::Request<bytes::Bytes>, Error> {
        let params = WatchParams {
            label_selector: self.which.label_selector.clone(),
            field_selector: self.which.field_selector.clone(),
            resource_version: version.map(ToOwned::to_owned),
            timeout: Some(WATCH),
            bookmarks: true,
            ..WatchParams::default()
        };
        self.api.requests().clone().viewed(View::Table).watch(&params)
    }
}

/// Rows, and how far their watch has got.
struct Rows<'a> {
    watching: Watching<'a>,
    style: Style,
    tabs: Tabs,
    header: bool,
    seen: Seen,
    version: Option<String>,
    columns: Vec<TableColumn>,
}

/// Why a watch has ended before its time.
enum Trouble {
    Watch(Error),
    Fault(Fault),
}

#[dual]
impl Rows<'_> {
    /// Prints what one watch tells, until it ends.
    async fn watch(&mut self) -> Result<(), Trouble> {
        let request = self.watching.request(self.version.as_deref()).map_err(Trouble::Watch)?;
        let mut pieces = self.watching.api.client().stream(request);
        let mut pending = Vec::new();
        while let Some(piece) = pieces.next().await {
            pending.extend_from_slice(&piece.map_err(Trouble::Watch)?);
            while let Some(length) = pending.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = pending.drain(..=length).collect();
                self.hear(&line)?;
            }
        }
        Ok(())
    }

    fn hear(&mut self, line: &[u8]) -> Result<(), Trouble> {
        match Event::read(line).map_err(Trouble::Watch)? {
            Event::Nothing => {}
            Event::Bookmark(version) => self.version = version.or_else(|| self.version.take()),
            Event::Table(mut table) => {
                if table.columns.is_empty() {
                    table.columns.clone_from(&self.columns);
                }
                self.columns.clone_from(&table.columns);
                self.version =
                    table.rows.last().map(|row| metadata(row, "resourceVersion")).or_else(|| self.version.take());
                table.rows.iter().for_each(|row| _ = self.seen.is_news(row));
                self.print(&table).map_err(Trouble::Fault)?;
            }
        }
        Ok(())
    }

    /// Prints what has changed while the server's history was lost.
    async fn list(&mut self) -> Result<(), Fault> {
        let mut table = get::list_table(&self.watching.api, self.watching.which.clone()).await?;
        self.version = table.resource_version.clone();
        table.rows.retain(|row| self.seen.is_news(row));
        self.print(&table)
    }

    fn print(&mut self, table: &Table) -> Result<(), Fault> {
        if table.rows.is_empty() {
            return Ok(());
        }
        let has_header = std::mem::take(&mut self.header);
        if has_header {
            self.tabs.line(self.style.header(table));
        }
        self.style.fill(table, &mut self.tabs);
        self.watching.out.table(&mut self.tabs, has_header)?;
        self.watching.out.flush()
    }
}

/// An event of a watch whose objects come as tables.
enum Event {
    Table(Table),
    Bookmark(Option<String>),
    Nothing,
}

impl Event {
    fn read(line: &[u8]) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Raw<'a> {
            #[serde(rename = "type")]
            kind: String,
            #[serde(borrow)]
            object: &'a RawValue,
        }
        if line.trim_ascii().is_empty() {
            return Ok(Self::Nothing);
        }
        // What cannot be read here is told as it would be of an answer.
        let Ok(Raw { kind, object }) = serde_json::from_slice(line) else {
            return response::decode::<Value>(&answer(StatusCode::OK, line)).map(|_| Self::Nothing);
        };
        match kind.as_str() {
            "ADDED" | "MODIFIED" | "DELETED" => {
                Table::decode(&answer(StatusCode::OK, object.get().as_bytes())).map(Self::Table)
            }
            "BOOKMARK" => {
                let object: Value = serde_json::from_str(object.get()).unwrap_or_default();
                let of_row = &object["rows"][0]["object"]["metadata"]["resourceVersion"];
                let version = of_row.as_str().or_else(|| object["metadata"]["resourceVersion"].as_str());
                Ok(Self::Bookmark(version.filter(|version| !version.is_empty()).map(ToOwned::to_owned)))
            }
            "ERROR" => {
                let status: Status = serde_json::from_str(object.get()).unwrap_or_default();
                Err(status.into())
            }
            _ => Ok(Self::Nothing),
        }
    }
}

fn answer(code: StatusCode, body: &[u8]) -> Answer {
    let mut answer = Answer::new(code, HeaderMap::new());
    answer.receive(body);
    answer
}

enum Told {
    Object(std::sync::Arc<cloudcoil_core::Object>),
    Synced,
    Failed(Error),
}

/// The versions of objects that were printed.
#[derive(Default)]
struct Seen(BTreeMap<(String, String), String>);

impl Seen {
    /// Whether an object is printed for the first time in this version; from now on it is known.
    fn is_news(&mut self, row: &TableRow) -> bool {
        let [namespace, name, version] = ["namespace", "name", "resourceVersion"].map(|field| metadata(row, field));
        let known = self.0.insert((namespace, name), version.clone());
        known.is_none_or(|known| known != version)
    }
}

/// How long a watch may run before it is asked for again.
const WATCH: Duration = Duration::from_secs(300);

/// Watches begin no more often than this.
const PAUSE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_leniently_and_failures_tell_themselves() {
        assert!(matches!(Event::read(b"\r\n"), Ok(Event::Nothing)));
        assert!(matches!(Event::read(br#"{"type":"NEW","object":{}}"#), Ok(Event::Nothing)));
        let bookmark =
            br#"{"type":"BOOKMARK","object":{"kind":"Table","rows":null,"metadata":{"resourceVersion":"7"}}}"#;
        assert!(matches!(Event::read(bookmark), Ok(Event::Bookmark(Some(version))) if version == "7"));
        let expired = br#"{"type":"ERROR","object":{"kind":"Status","reason":"Expired"}}"#;
        assert!(Event::read(expired).is_err_and(|error| error.is_expired()));
        assert!(matches!(Event::read(b"<html>\n"), Err(Error::Body(_))));
    }
}
