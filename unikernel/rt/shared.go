package rt

import (
	"fmt"
	"os"
	"syscall"

	"loam/fs"
	"loam/fs/ninep"
	"loam/unikernel/guest"
)

// Shared folders: folders of the host that the program can read and change. The loam command has started a server process
// for each.

// mountShared mounts the shared folders of the configuration, except the root (mountRoot). The hook in package syscall must
// already be installed: in a process, the connections to the server processes are files of the host.
func mountShared(tree *fs.Tree, p Platform, c guest.Config) error {
	v := fs.NewView(tree)
	v.Umask = 0
	for _, s := range c.Shared {
		if s.Path == "/" {
			continue
		}
		if err := mountOne(v, p, c, s); err != nil {
			return fmt.Errorf("%s: %w", s.Path, err)
		}
	}
	return nil
}

// Limits of a connection through a machine's console. QEMU drops bytes that the console's socket cannot take.
const (
	consoleMessage = 64 << 10
	consoleWindow  = 96 << 10
)

func mountOne(v *fs.View, p Platform, c guest.Config, s guest.Shared) error {
	system, err := connectShared(p, c, s)
	if err != nil {
		return err
	}
	return mountFolder(v, system, guest.Mount{Path: s.Path, Writable: true})
}

// connectShared connects to the server of a shared folder.
func connectShared(p Platform, c guest.Config, s guest.Shared) (fs.FileSystem, error) {
	conn, err := p.Shared(s)
	if err != nil {
		return nil, err
	}
	config := ninep.Config{
		UID: uint32(syscall.Getuid()), GID: uint32(syscall.Getgid()),
		Ended: func(err error) {
			if !ending.Load() {
				os.Stderr.WriteString("loam: the server of " + s.Path + " has ended: its files return EIO\n")
			}
		},
	}
	if c.Machine {
		config.Size, config.Window = consoleMessage, consoleWindow
	}
	if s.NoCache {
		config.Cache = ninep.None
	}
	return ninep.New(conn, config)
}
