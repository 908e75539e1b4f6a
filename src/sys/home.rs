//! The directory of a user's shared files, to which nobody else can write.
//!
//! It is in /dev/shm, where everybody may make names, so anybody may take the name that we want first, and in a sticky
//! directory we cannot take it back. So what counts is not the name but the owner: any private directory of this user
//! whose name begins with `PREFIX`. It is named after the user, or at random if that name is taken; then all names are
//! searched. Inside it, names can be predictable. Whoever leaves it empty removes it; whoever finds it removed begins
//! again.
//!
//! While one is made, /dev/shm is locked (flock), so that two processes don't make one each under different names.
//! Anybody may hold that lock for ever, so nobody waits long for it. Without it two are made only if somebody also
//! takes the usual name and gives it back at the right moment.
//!
//! Knows nothing of what the files are. Called by `provider::shm`, `api::av` and `transport::shm`.

use super::shared::{self, LockedDirectory};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// All names that we give begin with this.
pub const PREFIX: &str = "libfabric-rs.";

/// How often work is tried whose directory others remove, and how often the lock is tried; the pause between.
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
        // If the directory was removed, or replaced by another one, that is why the work failed. One that is just being
        // removed can still be found, without links.
        if let (Ok(before), Ok(after)) = (before, shared::status_of(&home)) {
            if before.is_same_file(&after) && after.links > 0 {
                leave(&home);
                break;
            }
        }
        // Without a pause, processes that come and go all the time can take turns in which one always comes too late.
        std::thread::sleep(NAP);
    }
    done
}

/// The directory of this user, found or made. It may be removed by others until it has a file of ours.
fn own(base: &Path) -> io::Result<PathBuf> {
    for _ in 0..TRIES {
        if let Some(home) = find(base)? {
            return Ok(home);
        }
        let _lock = lock(base);
        // Another process may have made it since.
        if let Some(home) = find(base)? {
            return Ok(home);
        }
        if let Some(home) = make(base)? {
            return Ok(home);
        }
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
    if has_no_directories(base)? {
        return Ok(None);
    }
    list(base).map(|homes| homes.into_iter().min())
}

/// None after a while in which somebody else has it, or on a file system without such locks.
fn lock(base: &Path) -> Option<LockedDirectory> {
    for _ in 0..TRIES {
        match LockedDirectory::try_new(base) {
            Ok(None) => std::thread::sleep(NAP),
            done => return done.ok().flatten(),
        }
    }
    None
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

/// Makes a directory. None: another process that has no lock either made it first, or removed it at once.
fn make(base: &Path) -> io::Result<Option<PathBuf>> {
    let usual = usual(base);
    let home = match usual.symlink_metadata() {
        Err(_) => usual,
        Ok(_) if is_ours(&usual) => return Ok(None),
        Ok(_) => base.join(format!("{PREFIX}{}.{:016x}", shared::own_uid(), shared::random()?)),
    };
    match shared::create_directory(&home) {
        Ok(()) => Ok(Some(home)),
        Err(error) if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

/// By the number of links, which saves reading all names. File systems that do not count links say 1.
fn has_no_directories(base: &Path) -> io::Result<bool> {
    const ITSELF_AND_ITS_NAME: u64 = 2;
    Ok(std::fs::metadata(base)?.nlink() == ITSELF_AND_ITS_NAME)
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

    /// Whoever holds the lock for ever keeps nobody out.
    #[test]
    fn a_lock_is_no_denial() {
        let base = Base::new();
        let held = LockedDirectory::try_new(&base.0).unwrap().unwrap();
        assert!(LockedDirectory::try_new(&base.0).unwrap().is_none());
        let home = own(&base.0).unwrap();
        assert_eq!(find(&base.0).unwrap(), Some(home.clone()));
        leave(&home);
        drop(held);
        assert!(lock(&base.0).is_some());
    }

    /// Many processes that come and go at once are always in one directory.
    #[test]
    fn all_processes_of_a_user_meet() {
        let base = Base::new();
        meet_in(&base);
        assert_eq!(list(&base.0).unwrap(), <[PathBuf; 0]>::default());
    }

    #[test]
    fn all_processes_of_a_user_meet_under_another_name() {
        let base = Base::new();
        base.squat();
        meet_in(&base);
        assert_eq!(list(&base.0).unwrap(), <[PathBuf; 0]>::default());
    }

    fn meet_in(base: &Base) {
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
        // All are waited for, since the directory goes with this test.
        assert_eq!(children.map(|child| child.wait()), [0; 4]);
    }

    #[test]
    fn work_that_fails_leaves_no_directory() {
        let base = Base::new();
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
