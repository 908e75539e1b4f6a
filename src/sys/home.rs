//! The directory in which a user's processes have their shared files: one that nobody else can write to.
//!
//! It lies where everybody may make names (/dev/shm), so whoever comes first may take the name that one wants, and a
//! sticky directory does not let it be taken back. So the name counts for nothing: a user's directory is the one that
//! they own. It is called after the user, or anything if somebody else has that name, and then it is looked for.
//! Inside, names may be predictable. Whoever leaves the empty directory removes it; whoever meets that begins again.
//!
//! Who has to make one looks for others before and after. Two processes that make one at the same time, each under
//! another name, see each other's: then both remove what they made and try again. Knows nothing of what the files are.
//! Called by `provider::shm` and `api::av`.

use super::shared;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// All names that we give begin so.
pub const PREFIX: &str = "libfabric-rs.";

/// How often it is tried, and how long between, while other processes of the user make directories too.
const TRIES: u32 = 200;
const NAP: Duration = Duration::from_millis(1);

/// Where shared memory has its files; elsewhere if the system has no such place.
pub fn base() -> PathBuf {
    let shm = Path::new("/dev/shm");
    if shm.is_dir() {
        shm.to_owned()
    } else {
        std::env::temp_dir()
    }
}

/// Does some work in the directory of this user, which is made if there is none. The work is done again if the last of
/// others left meanwhile and removed the directory.
pub fn enter<T, E: From<io::Error>>(base: &Path, mut work: impl FnMut(&Path) -> Result<T, E>) -> Result<T, E> {
    let mut done = Err(io::Error::from_raw_os_error(libc::EAGAIN).into());
    for _ in 0..TRIES {
        let home = own(base)?;
        let before = shared::status_of(&home);
        done = work(&home);
        if done.is_ok() {
            break;
        }
        // Another one may have its name by now.
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

/// The directory of this user. Whoever is in it may leave, and remove it, before there is anything of ours.
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
    // Nobody may have that name now, and somebody else may have had it when another was made.
    if directories_in(base)? == 0 {
        return Ok(None);
    }
    list(base).map(|homes| homes.into_iter().min())
}

/// A file in the directory that nobody knows yet.
pub fn draft(home: &Path, number: u64) -> PathBuf {
    home.join(format!("{PREFIX}~{number:016x}"))
}

/// To be called after a file was removed: the last who leaves removes the directory. Other directories stay.
pub fn leave(home: &Path) {
    let named = home
        .file_name()
        .is_some_and(|name| name.as_bytes().starts_with(PREFIX.as_bytes()));
    if named {
        // It fails where files are left.
        let _ = std::fs::remove_dir(home);
    }
}

fn usual(base: &Path) -> PathBuf {
    base.join(format!("{PREFIX}{}", shared::own_uid()))
}

/// None: the name was taken at this moment.
fn make(base: &Path) -> io::Result<Option<PathBuf>> {
    let usual = usual(base);
    let home = match usual.symlink_metadata() {
        Err(_) => usual,
        Ok(_) => base.join(format!("{PREFIX}{}.{:016x}", shared::own_uid(), shared::random()?)),
    };
    match shared::create_directory(&home) {
        Ok(()) => Ok(Some(home)),
        // Somebody was quicker, or removed it at once.
        Err(error) if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

/// How many there are, which the number of links tells. The names need not be read where there are none, nor again
/// where only ours was added.
fn directories_in(base: &Path) -> io::Result<u64> {
    const ITSELF_AND_ITS_NAME: u64 = 2;
    let links = std::fs::metadata(base)?.nlink();
    // File systems that do not count say 1.
    Ok(links.checked_sub(ITSELF_AND_ITS_NAME).unwrap_or(u64::MAX))
}

fn list(base: &Path) -> io::Result<Vec<PathBuf>> {
    let ours = |entry: std::fs::DirEntry| {
        let named = entry.file_name().as_bytes().starts_with(PREFIX.as_bytes());
        (named && is_ours(&entry.path())).then(|| entry.path())
    };
    Ok(std::fs::read_dir(base)?.flatten().filter_map(ours).collect())
}

/// Whether this is a directory of our own that nobody else can write to, and no link to one. In a sticky directory
/// nobody can put another in its place.
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

        /// Somebody takes the name that we want. What is not a private directory is as good as another user's.
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

    /// A name that is taken, by whatever, costs the name and nothing else; and when it becomes free, those who come
    /// later still find those who came before.
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

    /// Many who come and go at once are always in one directory.
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
