package rt

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"loam/fs"
	"loam/fs/memfs"
	"loam/fs/pseudo"
	"loam/fs/tarfs"
	"loam/posix"
	"loam/unikernel/guest"
)

// The tree that the program finds: a file system in memory, over it /dev, /proc
// and /sys, and what the user mounted. It is made before the program begins, on
// any platform in the same way. What the user mounted to read stays as it is: where Loam
// would put something of its own there (EROFS), it leaves that out.

// folders are there whatever the user mounts, with their modes.
var folders = []struct {
	path string
	mode fs.Mode
}{
	{"/dev", 0o755}, {"/proc", 0o555}, {"/sys", 0o555}, {"/etc", 0o755}, {"/run", 0o755}, {"/home", 0o755},
	{"/root", 0o700}, {"/usr/bin", 0o755}, {"/tmp", 0o777 | fs.Sticky}, {"/var/tmp", 0o777 | fs.Sticky},
	{"/dev/shm", 0o777 | fs.Sticky}, {"/var/log", 0o755}, {"/var/lib", 0o755}, {"/var/cache", 0o755}, {"/opt", 0o755}, {"/srv", 0o755},
}

// newTree makes the tree. Its /proc tells of the process when that is there.
func newTree(p Platform, c guest.Config) (*fs.Tree, error) {
	root, err := newRoot(p, c)
	if err != nil {
		return nil, err
	}
	v := fs.NewView(fs.NewTree(root))
	v.Umask = 0
	for _, f := range folders {
		if err := makeFolders(v, f.path, f.mode); err != nil {
			return nil, err
		}
	}
	if err := v.Symlink("/run", v.Root, "/var/run"); err != nil && !errors.Is(err, iofs.ErrExist) {
		return nil, err
	}
	if err := pseudo.Devices(v); err != nil {
		return nil, err
	}
	if err := p.Devices(v, c); err != nil {
		return nil, err
	}
	for _, m := range c.Mounts {
		if m.Path == "/" {
			continue
		}
		if err := mountArchive(v, p, m); err != nil {
			return nil, fmt.Errorf("%s: %w", m.Path, err)
		}
	}
	if err := ownFolders(v, c); err != nil {
		return nil, err
	}
	if err := resultFolders(v, c); err != nil {
		return nil, err
	}
	executable, content := p.Executable()
	if err := putFile(v, executable, content, 0o755, root); err != nil {
		return nil, err
	}
	return v.Tree, mountPseudo(v, aboutProcess(p, c, executable))
}

// mountPseudo mounts what is made when it is read.
func mountPseudo(v *fs.View, about pseudo.Process) error {
	for _, m := range []struct {
		at     string
		system fs.FileSystem
	}{{"/proc", pseudo.Proc(about)}, {"/sys", pseudo.Sys(about)}, {"/sys/fs/cgroup", pseudo.Cgroup(about)}} {
		place, err := v.Lookup(v.Root, m.at, true)
		if err == nil {
			err = v.Tree.Mount(m.system, place, true)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// newRoot is the file system at the root, with what was packed for it. It may take
// half of the memory, as a tmpfs may.
func newRoot(p Platform, c guest.Config) (*memfs.FileSystem, error) {
	total, _ := memory()
	root := memfs.New(memfs.Config{Bytes: int64(total / 2)})
	for _, m := range c.Mounts {
		if m.Path != "/" {
			continue
		}
		image, err := p.Archive(m.Archive)
		if err == nil {
			err = tarfs.Add(root, image)
		}
		if err != nil {
			return nil, err
		}
	}
	return root, nil
}

// makeFolders makes a folder, and those above it.
func makeFolders(v *fs.View, name string, mode fs.Mode) error {
	for i := range name {
		if i > 0 && name[i] == '/' {
			if err := v.Mkdir(v.Root, name[:i], 0o755); err != nil && !errors.Is(err, iofs.ErrExist) {
				return err
			}
		}
	}
	if err := v.Mkdir(v.Root, name, mode); err != nil && !errors.Is(err, iofs.ErrExist) {
		return err
	}
	return nil
}

// mountArchive puts what the user gave where he wants it: a folder, or one file,
// which is all that its archive has.
func mountArchive(v *fs.View, p Platform, m guest.Mount) error {
	image, err := p.Archive(m.Archive)
	if err != nil {
		return err
	}
	if m.Deferred {
		return mountFolder(v, tarfs.Deferred(image, memfs.Config{}), m)
	}
	system, err := tarfs.Load(image, memfs.Config{})
	if err != nil {
		return err
	}
	if !m.File {
		return mountFolder(v, system, m)
	}
	file, err := onlyFile(system)
	if err != nil {
		return err
	}
	if err := makeFolders(v, path.Dir(m.Path), 0o755); err != nil {
		return err
	}
	if err := v.Mknod(v.Root, m.Path, fs.Regular|0o644, fs.Device{}); err != nil && !errors.Is(err, iofs.ErrExist) {
		return err
	}
	place, err := v.Lookup(v.Root, m.Path, true)
	if err != nil {
		return err
	}
	return v.Tree.MountFile(system, file, place, !m.Writable)
}

// mountFolder mounts a file system, at a folder that is made for it.
func mountFolder(v *fs.View, system fs.FileSystem, m guest.Mount) error {
	if err := makeFolders(v, m.Path, 0o755); err != nil {
		return err
	}
	place, err := v.LookupDir(v.Root, m.Path)
	if err != nil {
		return err
	}
	return v.Tree.Mount(system, place, !m.Writable)
}

// onlyFile is the file of an archive that has one.
func onlyFile(system fs.FileSystem) (file fs.Node, err error) {
	var name string
	err = system.Root().Read(0, func(e fs.Entry) bool {
		name = e.Name
		return false
	})
	if err != nil || name == "" {
		return nil, errors.Join(err, syscall.ENOENT)
	}
	return system.Root().Lookup(name)
}

// ownFolders makes the folder where the program begins, and its user's, if they are
// not there and can be; they belong to the user.
func ownFolders(v *fs.View, c guest.Config) error {
	for _, name := range [...]string{c.Folder, os.Getenv("HOME")} {
		if !strings.HasPrefix(name, "/") || path.Clean(name) == "/" {
			continue
		}
		if _, err := v.LookupDir(v.Root, name); err == nil {
			continue
		}
		err := makeFolders(v, path.Clean(name), 0o755)
		if errors.Is(err, syscall.EROFS) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		place, err := v.LookupDir(v.Root, name)
		if err != nil {
			return err
		}
		owner := fs.Change{Fields: fs.SetOwner | fs.SetGroup, UID: uint32(syscall.Getuid()), GID: uint32(syscall.Getgid())}
		if err := v.Change(place, owner, false); err != nil {
			return err
		}
	}
	return nil
}

// putFile makes a file whose content lies somewhere else, unless there is one or can be none.
func putFile(v *fs.View, name string, content []byte, mode fs.Mode, system *memfs.FileSystem) error {
	if content == nil {
		return nil
	}
	err := makeFolders(v, path.Dir(name), 0o755)
	if err == nil {
		err = v.Mknod(v.Root, name, fs.Regular|mode, fs.Device{})
	}
	if errors.Is(err, iofs.ErrExist) || errors.Is(err, syscall.EROFS) {
		return nil
	}
	if err != nil {
		return err
	}
	place, err := v.Lookup(v.Root, name, false)
	if err != nil {
		return err
	}
	return system.SetContent(place.Node, content)
}

// aboutProcess is what /proc tells. Functions are called when the program reads.
func aboutProcess(p Platform, c guest.Config, executable string) pseudo.Process {
	return pseudo.Process{
		PID: syscall.Getpid(), UID: syscall.Getuid(), GID: syscall.Getgid(),
		Executable: executable, Arguments: os.Args, Environment: os.Environ(),
		Mounts: mountsOf(c), Hostname: hostname(c), Release: stringOf(hostUname.Release[:]) + "-loam",
		Started: time.Now(), Somaxconn: somaxconn,
		Memory: memory, Alone: c.Machine, Used: used, Maps: p.Maps, ClockSource: p.ClockSource(),
		Net: procNet(c), Interfaces: interfaces(c),
		Folder: func() string {
			dir, _ := process.Getcwd()
			return dir
		},
		Descriptors: func() []int { return process.Descriptors() },
		Descriptor:  func(fd int) string { return process.Name(fd) },
	}
}

// procNet is /proc/net, of the process that is there when a file is read.
func procNet(c guest.Config) map[string]func() string {
	files := map[string]func() string{}
	for name, text := range posix.ProcNet {
		files[name] = func() string { return text(process) }
	}
	for _, name := range interfaceNames(c) {
		text := posix.DevSNMP6(name)
		files["dev_snmp6/"+name] = func() string { return text(process) }
	}
	return files
}

// interfaceNames are those that the program's stack has.
func interfaceNames(c guest.Config) []string {
	names := []string{"lo"}
	for _, l := range c.Links {
		names = append(names, l.Name)
	}
	return names
}

// interfaces are the folders of /sys/class/net, of the process in the same way.
func interfaces(c guest.Config) map[string]map[string]func() string {
	folders := map[string]map[string]func() string{}
	for _, name := range interfaceNames(c) {
		folders[name] = map[string]func() string{}
		for path, text := range posix.SysNet(name) {
			folders[name][path] = func() string { return text(process) }
		}
	}
	return folders
}

// mountsOf is what the user mounted, as proc(5) tells it.
func mountsOf(c guest.Config) (list []pseudo.Mount) {
	for _, m := range c.Mounts {
		if m.Path != "/" {
			list = append(list, pseudo.Mount{Path: m.Path, Writable: m.Writable})
		}
	}
	return list
}

// somaxconn is the longest queue of a listener (listen(2)).
const somaxconn = 4096

// memory is the machine's, in bytes.
func memory() (total, free uint64) {
	var s syscall.Sysinfo_t
	if syscall.Sysinfo(&s) != nil {
		return 0, 0
	}
	return s.Totalram * uint64(s.Unit), s.Freeram * uint64(s.Unit)
}

// used is the time that the program has had of all CPUs.
func used() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// hostname is the machine's name: what the loam command says, or the host's.
func hostname(c guest.Config) string {
	if c.Hostname != "" {
		return c.Hostname
	}
	return stringOf(hostUname.Nodename[:])
}

// writeEtc writes what the network says into /etc, over what may be there and whoever
// the user is.
func writeEtc(tree *fs.Tree, files map[string]string) error {
	v := fs.NewView(tree)
	for name, text := range files {
		f, err := v.Open(v.Root, "/etc/"+name, fs.WriteOnly|fs.Create|fs.Truncate, 0o644)
		if err == nil {
			_, err = f.Write([]byte(text))
			err = errors.Join(err, f.Close())
		}
		if err != nil && !errors.Is(err, syscall.EROFS) {
			return fmt.Errorf("/etc/%s: %w", name, err)
		}
	}
	return nil
}
