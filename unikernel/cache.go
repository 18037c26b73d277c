package unikernel

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"loam/unikernel/filled"
)

// The cache, below os.UserCacheDir:
//
//	std/HASH/       the overlay of the standard library for one toolchain, with
//	                Loam's packages; never changed once it exists
//	index/HASH      which std belongs to a build of this executable and a toolchain
//	goroot/NAME/    a GOROOT of links, for a toolchain that lies in the module cache
//	module/HASH/    modules that programs were built from without a checkout
//	build/HASH/     one program: its overlay.json, the executable, a lock
//
// Everything can be deleted at any time when no build is running.

// cache is the root folder of the cache.
type cache string

// openCache returns the cache and creates its folder if needed.
func openCache() (cache, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", errorf("set HOME or XDG_CACHE_HOME", "there is no cache folder: %v", err)
	}
	dir = filepath.Join(dir, "loam")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", errorf("set XDG_CACHE_HOME to a folder that can be written", "%v", err)
	}
	return cache(dir), checkOwner(dir)
}

// checkOwner rejects a cache in which another user could place programs: the user must own the
// folder, and no other user may have write access to it.
func checkOwner(dir string) error {
	const next = "set XDG_CACHE_HOME to a folder of your own, or remove this one"
	st, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	switch {
	case !st.IsDir():
		return errorf(next, "the cache %s is no folder", dir)
	case ok && int(sys.Uid) != os.Geteuid():
		return errorf(next, "the cache %s belongs to user %d", dir, sys.Uid)
	case st.Mode()&0o022 != 0:
		return errorf("make it your own (chmod go-w), or remove it", "others may write to the cache %s", dir)
	}
	return nil
}

// path returns the path of a file or folder in the cache.
func (c cache) path(parts ...string) string {
	return filepath.Join(append([]string{string(c)}, parts...)...)
}

// digest returns a name derived from parts: 32 hexadecimal digits.
func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))[:32]
}

// fill creates the folder dir by f, unless it exists and is complete: see package filled.
func (c cache) fill(dir string, f func(dir string) error) error { return filled.Fill(dir, lock, f) }

// lock takes the lock of a folder, waiting for other processes, and returns the function that releases it.
// It sets the lock file's modification time to now, which records the folder's last use.
func lock(dir string) (func(), error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err != syscall.EINTR {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	now := time.Now()
	os.Chtimes(f.Name(), now, now)
	return func() { f.Close() }, nil
}

// writeFile replaces a file atomically, since others may be reading it. It leaves a file with the same content untouched.
func writeFile(path string, data []byte) error {
	if old, err := os.ReadFile(path); err == nil && string(old) == string(data) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
