//! Files of this machine.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use cloudcoil_core::config::ReadError;

/// Reads a kubeconfig, a token, a certificate or a key whole: the one way in which every adapter does. It blocks, so it is called
/// where threads may.
///
/// Links are followed, as whoever mounts secrets replaces files by them.
///
/// # Errors
/// Besides what the system says: what is no file in the end, such as a pipe or a device, which could hold up whoever reads it for
/// ever; and a file of more than [`MAX_FILE`] bytes.
///
/// ```
/// let error = cloudcoil_runtime::read_file("/").unwrap_err();
/// assert_eq!(error.to_string(), "not a regular file");
/// ```
pub fn read_file(path: impl AsRef<Path>) -> Result<Vec<u8>, ReadError> {
    let path = path.as_ref();
    // Before it is opened: to open a pipe waits for whoever writes to it.
    regular(std::fs::metadata(path)?.is_file())?;
    let file = File::open(path)?;
    regular(file.metadata()?.is_file())?;
    let mut content = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut content)?;
    match content.len() as u64 {
        ..=MAX_FILE => Ok(content),
        _ => Err(ReadError::Failed(format!("larger than {} MiB", MAX_FILE >> 20).into())),
    }
}

fn regular(is_file: bool) -> Result<(), ReadError> {
    if is_file { Ok(()) } else { Err(ReadError::Failed("not a regular file".into())) }
}

/// How large a file may be that [`read_file`] reads, in bytes.
pub const MAX_FILE: u64 = 10 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let file = File::create(&path).unwrap();
        file.set_len(MAX_FILE).unwrap();
        assert_eq!(read_file(&path).unwrap().len() as u64, MAX_FILE);
        file.set_len(MAX_FILE + 1).unwrap();
        assert_eq!(read_file(&path), Err(ReadError::Failed("larger than 10 MiB".into())));
        assert_eq!(read_file(folder.path().join("none")), Err(ReadError::NotFound));
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_file_is_refused_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in [&pipe, folder.path(), Path::new("/dev/zero")] {
            assert_eq!(read_file(path), Err(ReadError::Failed("not a regular file".into())), "{path:?}");
        }
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, "content").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(read_file(&link).unwrap(), b"content");
    }
}
