//! Which part of a log is read.

use crate::error::Error;
use crate::request::uri::Query;
use crate::time::UnixTime;

/// Which part of the log of a container is read, and whether what is yet to be written too.
///
/// See `PodLogOptions` in <https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/>.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made with struct update syntax")]
pub struct LogParams {
    /// Which container; may be left out where there is but one.
    pub container: Option<String>,
    /// Whether what the container writes from now on comes too, until it ends.
    pub follow: bool,
    /// Whether the container's last run before this one is meant.
    pub previous: bool,
    /// Whether each line begins with its time, in RFC 3339, and a blank.
    pub timestamps: bool,
    /// Only the last lines.
    pub tail_lines: Option<u64>,
    /// Only what was written in the last seconds; at least 1, and not together with [`since_time`](Self::since_time).
    pub since_seconds: Option<u64>,
    /// Only what was written from this time on, in whole seconds.
    pub since_time: Option<UnixTime>,
    /// The most bytes that are read; at least 1.
    pub limit_bytes: Option<u64>,
    /// Which of the container's outputs; both unless told otherwise. Not every server can tell them apart.
    pub source: Option<LogSource>,
    /// Whether a node that cannot prove who it is may be asked all the same.
    pub insecure_skip_tls_verify_backend: bool,
}

/// Where a container writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "these are the API's choices")]
pub enum LogSource {
    /// Both.
    All,
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl LogParams {
    pub(crate) fn write(&self, query: &mut Query) -> Result<(), Error> {
        self.check()?;
        query.text("container", self.container.as_deref());
        query.flag("follow", self.follow);
        query.flag("previous", self.previous);
        query.flag("timestamps", self.timestamps);
        query.number("tailLines", self.tail_lines);
        query.number("sinceSeconds", self.since_seconds);
        query.text("sinceTime", self.since_time.map(UnixTime::to_rfc3339).as_deref());
        query.number("limitBytes", self.limit_bytes);
        query.text("stream", self.source.map(LogSource::as_str));
        query.flag("insecureSkipTLSVerifyBackend", self.insecure_skip_tls_verify_backend);
        Ok(())
    }

    fn check(&self) -> Result<(), Error> {
        let misuse = |message: &str| Err(Error::misuse(message));
        if self.since_seconds.is_some() && self.since_time.is_some() {
            return misuse("a log is read since a number of seconds or since a time, not both");
        }
        if self.since_seconds == Some(0) {
            return misuse("a log is read since 1 second ago at the least");
        }
        if self.limit_bytes == Some(0) {
            return misuse("the limit of a log is 1 byte at the least");
        }
        if self.container.as_deref() == Some("") {
            return misuse("the name of a container must not be empty");
        }
        for (field, number) in
            [("tail_lines", self.tail_lines), ("since_seconds", self.since_seconds), ("limit_bytes", self.limit_bytes)]
        {
            if number.is_some_and(|number| i64::try_from(number).is_err()) {
                return Err(Error::misuse(format!("{field} of a log is too large")));
            }
        }
        if self.tail_lines.is_some() && self.source.is_some_and(|source| source != LogSource::All) {
            return misuse("the last lines of a log cannot be had of one of its sources alone");
        }
        Ok(())
    }
}

impl LogSource {
    const fn as_str(self) -> &'static str {
        match self {
            Self::All => "All",
            Self::Stdout => "Stdout",
            Self::Stderr => "Stderr",
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;
    use crate::{KnownResource, Requests};

    fn uri(params: &LogParams) -> Result<String, Error> {
        let pods = Requests::new(Pod::resource_type(), Some("ns"));
        pods.log("a", params).map(|request| request.uri().to_string())
    }

    #[test]
    fn every_parameter_is_sent_by_its_name() {
        assert_eq!(uri(&LogParams::default()).unwrap(), "/api/v1/namespaces/ns/pods/a/log");
        let params = LogParams {
            container: Some("c".into()),
            follow: true,
            previous: true,
            timestamps: true,
            tail_lines: Some(0),
            since_time: Some(UnixTime::from_secs(1)),
            limit_bytes: Some(5),
            source: Some(LogSource::All),
            insecure_skip_tls_verify_backend: true,
            since_seconds: None,
        };
        assert_eq!(
            uri(&params).unwrap(),
            "/api/v1/namespaces/ns/pods/a/log?container=c&follow=true&previous=true&timestamps=true&tailLines=0\
             &sinceTime=1970-01-01T00%3A00%3A01Z&limitBytes=5&stream=All&insecureSkipTLSVerifyBackend=true"
        );
    }

    #[test]
    fn what_the_server_would_refuse_is_not_sent() {
        let refused = |params: LogParams| assert!(matches!(uri(&params), Err(Error::Misuse(_))), "{params:?}");
        let base = LogParams::default;
        refused(LogParams { since_seconds: Some(1), since_time: Some(UnixTime::from_secs(1)), ..base() });
        refused(LogParams { since_seconds: Some(0), ..base() });
        refused(LogParams { limit_bytes: Some(0), ..base() });
        refused(LogParams { limit_bytes: Some(u64::MAX), ..base() });
        refused(LogParams { container: Some(String::new()), ..base() });
        refused(LogParams { tail_lines: Some(1), source: Some(LogSource::Stderr), ..base() });
    }
}
