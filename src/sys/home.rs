//! The directory of a user's shared files, to which nobody else can write.
//!
//! It is in /dev/shm, where everybody may make names, so anybody may take the name that we want first, and in a sticky
//! directory we cannot take it back. So what counts is not the name but the owner: any private directory of this user
//! whose name begins with `PREFIX`. It is named after the user, or at random if that name is taken; then all names are
//! searched. Inside it, names can be predictable. Whoever leaves it empty removes it; whoever finds it removed begins
//! again.
//!
//! Two processes may make one each at the same time, under different names. So whoever makes one looks for others
//! before and after; both see the other's then, remove their own and try again.
//!
//! Knows nothing of what the files are. Called by `provider::shm`, `api::av` and `transport::shm`.

use super::shared;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// All names that we give begin with this.
pub const PREFIX: &str = "libfabric-rs.";

/// How often a directory is tried to be made while other processes of the user do so too, and the pause between.
const TRIES: u32 = 200;
const NAP: Duration = Duration::from_millis(1);

/// /dev/shm, or the directory for temporary files on a system without it.
pub fn base() -> PathBuf {
    let shm = Path::new("/dev/shm");
    if shm.is_dir() {
        shm.to_owned()
    } else {
        std::env::temp_dir()
    }
}

/// Does some work in the directory of this user, which is made if there is none. The work is done again if it failed
/// because another process left meanwhile and removed the directory.
pub fn enter<T, E: From<io::Error>>(base: &Path, mut work: impl FnMut(&Path) -> Result<T, E>) -> Result<T, E> {
    let mut done = Err(io::Error::from_raw_os_error(libc::EAGAIN).into());
    for _ in 0..TRIES {
        let home = own(base)?;
        let before = shared::status_of(&home);
        done = work(&home);
        if done.is_ok() {
            break;
        }
        // If the directory was removed, or replaced by another one, that is why the work failed.
        let (Ok(before), Ok(after)) = (before, shared::status_of(&home)) else {
            continue;
        };
        if before.is_same_file(&after) {
            leave(&home);
            break;
        }
    }
    done
}

/// The directory of this user, found or made. It may be removed by others until it has a file of ours.
fn own(base: &Path) -> io::Result<PathBuf> {
    for _ in 0..TRIES {
        let others = directories_in(base)?;
        if let Some(home) = find(base)? {
            return Ok(home);
        }
        match make(base)? {
            Some(home) if others.checked_add(1) == Some(directories_in(base)?) => return Ok(home),
            Some(home) if list(base)?.iter().all(|other| *other == home) => return Ok(home),
            Some(home) => leave(&home),
            None => {}
        }
        std::thread::sleep(NAP);
    }
    Err(io::Error::from_raw_os_error(libc::EAGAIN))
}

/// The directory of this user, if there is one.
pub fn find(base: &Path) -> io::Result<Option<PathBuf>> {
    let usual = usual(base);
    if is_ours(&usual) {
        return Ok(Some(usual));
    }
    // The usual name may have been taken when the directory was made, so all names are searched.
    if directories_in(base)? == 0 {
        return Ok(None);
    }
    list(base).map(|homes| homes.into_iter().min())
}

/// The name of a file that is being made, and will be linked to its real name when it is whole.
pub fn draft(home: &Path, number: u64) -> PathBuf {
    home.join(format!("{PREFIX}~{number:016x}"))
}

/// To be called after a file was removed: removes the directory if it is empty, and one of ours.
pub fn leave(home: &Path) {
    let named = home
        .file_name()
        .is_some_and(|name| name.as_bytes().starts_with(PREFIX.as_bytes()));
    if named {
        // Fails if there are files left, as it should.
        let _ = std::fs::remove_dir(home);
    }
}

fn usual(base: &Path) -> PathBuf {
    base.join(format!("{PREFIX}{}", shared::own_uid()))
}

/// Makes a directory. None: its name was taken at this moment.
fn make(base: &Path) -> io::Result<Option<PathBuf>> {
    let usual = usual(base);
    let home = match usual.symlink_metadata() {
        Err(_) => usual,
        Ok(_) => base.join(format!("{PREFIX}{}.{:016x}", shared::own_uid(), shared::random()?)),
    };
    match shared::create_directory(&home) {
        Ok(()) => Ok(Some(home)),
        // Another process made it first, or removed it at once.
        Err(error) if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

/// How many directories there are, by the number of links. It saves reading all names if there are none, or only ours
/// was added.
fn directories_in(base: &Path) -> io::Result<u64> {
    const ITSELF_AND_ITS_NAME: u64 = 2;
    let links = std::fs::metadata(base)?.nlink();
    // File systems that do not count links say 1.
    Ok(links.checked_sub(ITSELF_AND_ITS_NAME).unwrap_or(u64::MAX))
}

fn list(base: &Path) -> io::Result<Vec<PathBuf>> {
    let ours = |entry: std::fs::DirEntry| {
        let named = entry.file_name().as_bytes().starts_with(PREFIX.as_bytes());
        (named && is_ours(&entry.path())).then(|| entry.path())
    };
    Ok(std::fs::read_dir(base)?.flatten().filter_map(ours).collect())
}

/// Whether this is a private directory of this user, and no link to one. In a sticky directory nobody else can replace
/// it.
fn is_ours(path: &Path) -> bool {
    shared::status_of(path).is_ok_and(|status| status.is_private(libc::S_IFDIR))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::child::Child;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    /// A directory in which everybody may make names, as /dev/shm is.
    struct Base(PathBuf);

    impl Base {
        fn new() -> Base {
            let dir = base().join(format!("lfab-test-home-{:x}", shared::random().unwrap()));
            std::fs::create_dir(&dir).unwrap();
            std::fs::set_permissions(&dir, Permissions::from_mode(0o1777)).unwrap();
            Base(dir)
        }

        /// Takes the usual name, as another user could: a link is not a private directory either.
        fn squat(&self) -> PathBuf {
            let name = usual(&self.0);
            std::os::unix::fs::symlink("/", &name).unwrap();
            name
        }
    }

    impl Drop for Base {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn it_is_made_once_and_goes_with_the_last_file() {
        let base = Base::new();
        assert_eq!(find(&base.0).unwrap(), None);
        let home = own(&base.0).unwrap();
        assert_eq!(
            (own(&base.0).unwrap(), find(&base.0).unwrap()),
            (home.clone(), Some(home.clone()))
        );
        let status = shared::status_of(&home).unwrap();
        assert_eq!((status.owner, status.mode), (shared::own_uid(), 0o700));
        let file = draft(&home, 1);
        std::fs::write(&file, "x").unwrap();
        leave(&home);
        assert!(home.exists());
        std::fs::remove_file(&file).unwrap();
        leave(&home);
        assert!(!home.exists());
        leave(&base.0);
        assert!(base.0.exists(), "it is none of ours");
    }

    /// A name that is taken only makes the directory have another one. When the name becomes free, processes that come
    /// later still find the directory of those that came before.
    #[test]
    fn squatting_is_no_denial() {
        let base = Base::new();
        let squatted = base.squat();
        let home = own(&base.0).unwrap();
        assert_ne!(home, squatted);
        assert_eq!(
            (own(&base.0).unwrap(), find(&base.0).unwrap()),
            (home.clone(), Some(home.clone()))
        );
        std::fs::write(draft(&home, 1), "x").unwrap();
        std::fs::remove_file(&squatted).unwrap();
        assert_eq!(own(&base.0).unwrap(), home);
        assert!(!squatted.exists());
    }

    #[test]
    fn what_others_may_write_to_is_not_used() {
        let base = Base::new();
        let home = own(&base.0).unwrap();
        for mode in [0o777, 0o770, 0o750] {
            std::fs::set_permissions(&home, Permissions::from_mode(mode)).unwrap();
            let other = own(&base.0).unwrap();
            assert_ne!(other, home, "{mode:o}");
            leave(&other);
        }
    }

    #[test]
    fn a_mask_does_not_lock_us_out() {
        let base = Base::new();
        let child = Child::run(|| {
            // SAFETY: concerns this child, which has one thread.
            unsafe { libc::umask(0o777) };
            let home = own(&base.0).unwrap();
            assert_eq!(shared::status_of(&home).unwrap().mode, 0o700);
        });
        assert_eq!(child.wait(), 0);
    }

    /// Many processes that come and go at once are always in one directory.
    #[test]
    fn all_processes_of_a_user_meet() {
        let base = Base::new();
        let meet = || {
            for _ in 0..200 {
                let number = shared::random().unwrap();
                let made = enter(&base.0, |home| {
                    std::fs::write(draft(home, number), "x").map(|()| home.to_owned())
                });
                let home = made.unwrap();
                let homes = list(&base.0).unwrap();
                let full = homes
                    .iter()
                    .filter(|home| std::fs::read_dir(home).is_ok_and(|mut files| files.next().is_some()));
                assert!(full.eq([home.as_path()]));
                std::fs::remove_file(draft(&home, number)).unwrap();
                leave(&home);
            }
        };
        let children = [(); 4].map(|()| Child::run(meet));
        assert!(children.iter().all(|child| child.wait() == 0));
        assert_eq!(list(&base.0).unwrap(), <[PathBuf; 0]>::default());
        let failed = enter(&base.0, |_| Err::<(), _>(io::Error::from(ErrorKind::NotFound)));
        assert_eq!(failed.err().map(|error| error.kind()), Some(ErrorKind::NotFound));
        assert_eq!(find(&base.0).unwrap(), None);
        let full = || io::Error::from_raw_os_error(libc::ENOSPC);
        let failed = enter(&base.0, |home| {
            leave(home);
            Err::<(), _>(full())
        });
        assert_eq!(failed.err().and_then(|error| error.raw_os_error()), Some(libc::ENOSPC));
    }
}
