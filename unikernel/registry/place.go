package registry

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Open opens the registry of the user. It creates the folder if it does not exist.
//
// The folder is the folder loam in $XDG_RUNTIME_DIR. The variable is ignored if it names no folder of the user, or a
// folder that others can write. For root, it is also ignored if it is /run/user/0: systemd removes this folder at the end
// of the last session, and commands that run by sudo or cron do not have the variable. Without the variable, the folder is
// in /run for root, in /run/user/UID for others, or else it is /tmp/loam-UID.
//
// In /tmp, any user can create a file or a symbolic link with that name first. Open therefore accepts only a folder that
// belongs to the user and that no other user can read or write.
func Open() (*Registry, error) {
	uid := os.Geteuid()
	all := places(uid, os.Getenv("XDG_RUNTIME_DIR"))
	r, err := openAt(all[0], uid)
	if err != nil {
		return nil, err
	}
	for _, other := range all[1:] {
		if _, err := os.Lstat(other); err == nil {
			r.places = append(r.places, other)
		}
	}
	return r, nil
}

// places returns the paths at which a user's registry may be, the best first. variable is the value of XDG_RUNTIME_DIR.
func places(uid int, variable string) (all []string) {
	const rootSession = "/run/user/0"
	own := "/run/user/" + strconv.Itoa(uid)
	if uid == 0 {
		own = "/run"
	}
	for _, parent := range []string{variable, own} {
		if filepath.IsAbs(parent) && !(uid == 0 && filepath.Clean(parent) == rootSession) && owned(parent, uid) {
			all = append(all, filepath.Join(parent, "loam"))
		}
	}
	return append(all, "/tmp/loam-"+strconv.Itoa(uid)) // not in TMPDIR, which may differ from command to command
}

// owned reports whether a path is a folder of the user that no other user can write. Symbolic links are followed.
func owned(path string, uid int) bool {
	st, err := os.Stat(path)
	if err != nil || !st.IsDir() || st.Mode()&0o022 != 0 {
		return false
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && int(sys.Uid) == uid
}

// openAt opens or creates a registry of a user at a path.
func openAt(path string, uid int) (*Registry, error) {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, unsafePlace(path, errors.Unwrap(err).Error())
	}
	named, err := os.Lstat(path)
	if err != nil {
		return nil, unsafePlace(path, "it cannot be opened")
	}
	if why := fault(named, uid); why != "" {
		return nil, unsafePlace(path, why)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, unsafePlace(path, "it cannot be opened")
	}
	if opened, err := root.Stat("."); err != nil || !os.SameFile(opened, named) {
		root.Close()
		return nil, unsafePlace(path, "it was replaced")
	}
	return &Registry{root, []string{path}}, nil
}

// fault returns the reason why a file cannot be the registry of a user, or an empty string. st describes the file itself and
// not the target of a symbolic link. The check precedes the open, because the open of a named pipe would wait for ever. In
// a folder such as /tmp, whose sticky bit is set, no other user can replace a folder of the user after the check.
func fault(st os.FileInfo, uid int) string {
	sys, ok := st.Sys().(*syscall.Stat_t)
	switch {
	case st.Mode()&os.ModeSymlink != 0:
		return "it is a symbolic link"
	case !st.IsDir():
		return "it is no folder"
	case !ok || int(sys.Uid) != uid:
		return "it belongs to another user"
	case st.Mode().Perm()&0o077 != 0:
		return fmt.Sprintf("other users have access to it (mode %04o)", st.Mode().Perm())
	}
	return ""
}

// unsafePlace returns the error for a folder that cannot be used.
func unsafePlace(path, why string) error {
	return &Error{fmt.Sprintf("the folder of running guests, %s, cannot be used (%s)", path, why),
		"set XDG_RUNTIME_DIR to a folder of your own with mode 0700"}
}
