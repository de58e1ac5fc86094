//! Files of this machine.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use cloudcoil_core::config::ReadError;

/// Reads a kubeconfig, a token, a certificate or a key whole: the one way in which every adapter does. It blocks, so it is called
/// where threads may.
///
/// Links are followed, as whoever mounts secrets replaces files by them, and a pipe is read until whoever writes to it has ended, as
/// in `--kubeconfig <(command)`.
///
/// # Errors
/// Besides what the system says: what has more than [`MAX_FILE`] bytes, or no end at all, such as `/dev/zero`.
///
/// ```
/// let error = cloudcoil_runtime::read_file("/").unwrap_err();
/// assert!(error.to_string().contains("directory"));
/// ```
pub fn read_file(path: impl AsRef<Path>) -> Result<Vec<u8>, ReadError> {
    let mut content = Vec::new();
    File::open(path)?.take(MAX_FILE + 1).read_to_end(&mut content)?;
    match content.len() as u64 {
        ..=MAX_FILE => Ok(content),
        _ => Err(ReadError::Failed(format!("larger than {} MiB", MAX_FILE >> 20).into())),
    }
}

/// Reads again what [`read_file`] has read: a token, a certificate or a key, which others renew. A pipe was read to its end, and whoever
/// opened it once more could wait for ever, so it is an error as all is that is no file.
///
/// # Errors
/// As [`read_file`], and for what is no regular file.
pub fn reread_file(path: impl AsRef<Path>) -> Result<Vec<u8>, ReadError> {
    match std::fs::metadata(&path)?.is_file() {
        true => read_file(path),
        false => Err(ReadError::Failed("no regular file, so it is not read again".into())),
    }
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
    fn pipes_are_read_to_their_end_and_devices_without_one_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let writing = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::write(pipe, "written").unwrap()
        });
        assert_eq!(read_file(&pipe).unwrap(), b"written");
        writing.join().unwrap();
        assert!(reread_file(&pipe).is_err(), "whoever opens it waits for somebody who writes");
        assert_eq!(read_file("/dev/zero"), Err(ReadError::Failed("larger than 10 MiB".into())));
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, "content").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(
            (read_file(&link).unwrap(), reread_file(&link).unwrap()),
            (b"content".to_vec(), b"content".to_vec())
        );
    }
}
