package rt

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"loam/abi/linux"
	"loam/fs"
	"loam/fs/devpts"
	"loam/fs/memfs"
	"loam/fs/pseudo"
	"loam/fs/tarfs"
	"loam/posix"
	"loam/stack/tcp/congestion"
	"loam/unikernel/guest"
)

// The program's file tree: a file system in memory, with /dev, /proc, /sys and the user's mounts on top of
// it. It is built before the program starts, in the same way on every platform. Read-only mounts stay
// unchanged: where Loam would add a file of its own and gets EROFS, it omits the file.

// folders always exist, even if the user's mounts do not contain them.
var folders = []struct {
	path string
	mode fs.Mode
}{
	{"/dev", 0o755}, {"/dev/pts", 0o755}, {"/proc", 0o555}, {"/sys", 0o555}, {"/etc", 0o755}, {"/run", 0o755}, {"/home", 0o755},
	{"/root", 0o700}, {"/usr/bin", 0o755}, {"/tmp", 0o777 | fs.Sticky}, {"/var/tmp", 0o777 | fs.Sticky},
	{"/var/log", 0o755}, {"/var/lib", 0o755}, {"/var/cache", 0o755}, {"/opt", 0o755}, {"/srv", 0o755},
}

// contents is the page cache of all files in memory, once UsePageCache has been called.
var contents memfs.Source

// UsePageCache moves the contents of files in memory to a page cache, which processes in ring 3 map.
func UsePageCache(c fs.Contents) { contents.Set(c) }

// newTree builds the tree, including the file system of pseudo-terminals. Files in /proc use the global process, which
// is set later.
func newTree(p Platform, c guest.Config) (*fs.Tree, *devpts.FileSystem, error) {
	var err error
	if disks, err = newDisks(p, c); err != nil {
		return nil, nil, err
	}
	terminals := devpts.New()
	if len(disks) > 0 {
		diskReports = newReports(p.Stream(2, c))
	}
	mounted, err := mountRoot(p, c)
	if err != nil {
		return nil, nil, err
	}
	if mounted != nil {
		tree, err := newMountedTree(p, c, *mounted, terminals)
		return tree, terminals, err
	}
	root, err := newRoot(p, c)
	if err != nil {
		return nil, nil, err
	}
	tree, err := fillTree(p, c, root, terminals)
	return tree, terminals, err
}

// fillTree adds the files that every program has to the root file system.
func fillTree(p Platform, c guest.Config, root *memfs.FileSystem, terminals *devpts.FileSystem) (*fs.Tree, error) {
	v := fs.NewView(fs.NewTree(root))
	v.Umask = 0
	if err := addFolders(v); err != nil {
		return nil, err
	}
	if err := errors.Join(pseudo.Devices(v), addDevices(v, disks), mountShm(v)); err != nil {
		return nil, err
	}
	if err := mountAll(v, p, c); err != nil {
		return nil, err
	}
	if err := ownFolders(v, c); err != nil {
		return nil, err
	}
	if err := resultFolders(v, c); err != nil {
		return nil, err
	}
	executable, content := p.Executable(c)
	if err := putFile(v, executable, content, 0o755); err != nil {
		return nil, err
	}
	about = aboutProcess(p, c, executable)
	return v.Tree, mountGenerated(v, about, terminals)
}

// about is the content of /proc. It does not change after start.
var about pseudo.Process

// Executable returns the path of the program.
func Executable() string { return about.Executable }

// MountPseudo changes the content of /proc and /sys and mounts them again. Package ring3 uses it to show its processes
// instead of the program in ring 0.
func MountPseudo(change func(*pseudo.Process)) error {
	changed := about
	change(&changed)
	return mountPseudo(process.View(), changed)
}

// addFolders creates folders.
func addFolders(v *fs.View) error {
	for _, f := range folders {
		if err := makeFolders(v, f.path, f.mode); err != nil {
			return err
		}
	}
	if err := v.Symlink("/run", v.Root, "/var/run"); err != nil && !errors.Is(err, iofs.ErrExist) {
		return err
	}
	return nil
}

// mountAll mounts the user's archives and disks, outer mount points before inner ones.
func mountAll(v *fs.View, p Platform, c guest.Config) error {
	type step struct {
		path  string
		mount func() error
	}
	var steps []step
	for _, m := range c.Mounts {
		if m.Path != "/" {
			steps = append(steps, step{m.Path, func() error { return mountArchive(v, p, m) }})
		}
	}
	for _, d := range disks {
		if d.Path != "" && d.Path != "/" {
			steps = append(steps, step{d.Path, func() error { return mountDisk(v, d) }})
		}
	}
	slices.SortStableFunc(steps, func(a, b step) int { return strings.Compare(a.path, b.path) })
	for _, s := range steps {
		if err := s.mount(); err != nil {
			return fmt.Errorf("%s: %w", s.path, err)
		}
	}
	return nil
}

// mountGenerated mounts the file systems whose content is generated when it is read, and the terminals.
func mountGenerated(v *fs.View, about pseudo.Process, terminals *devpts.FileSystem) error {
	err := mountPseudo(v, about)
	if err == nil {
		err = mountSystem(v, "/dev/pts", terminals, false)
	}
	return err
}

// mountPseudo mounts /proc and /sys.
func mountPseudo(v *fs.View, about pseudo.Process) error {
	err := mountSystem(v, "/proc", pseudo.Proc(about), !about.Writable)
	if err == nil {
		err = mountSystem(v, "/sys", pseudo.Sys(about), !about.Writable)
	}
	if err == nil {
		err = mountSystem(v, "/sys/fs/cgroup", pseudo.Cgroup(about), true)
	}
	return err
}

// mountSystem mounts a file system at a path.
func mountSystem(v *fs.View, at string, system fs.FileSystem, readOnly bool) error {
	place, err := v.Lookup(v.Root, at, true)
	if err == nil {
		err = v.Tree.Mount(system, place, readOnly)
	}
	return err
}

// mostFiles returns the number of files of a file system in memory, one for each page of the machine's memory: a name and the
// attributes of a file are in the kernel's heap, which no process gives back.
func mostFiles() int64 {
	total, _ := memory()
	return int64(total / pageBytes)
}

// pageBytes is the size of a page of memory.
const pageBytes = 4096

// newRoot returns the root file system with the archives mounted at /. Its size is limited to half of the
// memory, as for a tmpfs. Programs can add as many files as mostFiles returns: the files of the archives do not count, because a large
// archive of small files has room in memory.
func newRoot(p Platform, c guest.Config) (*memfs.FileSystem, error) {
	total, _ := memory()
	root := memfs.New(memfs.Config{Bytes: int64(total / 2), Source: &contents})
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
	root.LimitFiles(mostFiles())
	return root, nil
}

// shmFolder is where shm_open(3) creates its files.
const shmFolder = "/dev/shm"

// mountShm mounts a file system in memory at shmFolder, limited to half of the memory, like the root. Every user may
// create files there, even if the folder in the user's root has another mode.
func mountShm(v *fs.View) error {
	total, _ := memory()
	system := memfs.New(memfs.Config{Bytes: int64(total / 2), Files: mostFiles() / 2, Mode: 0o777 | fs.Sticky, Source: &contents})
	return mountFolder(v, system, guest.Mount{Path: shmFolder, Writable: true})
}

// newMemory returns a file system in memory for mount(2). Like tmpfs, it has at most half of the machine's memory, and
// one file for two pages of memory, by default.
func newMemory(c memfs.Config) *memfs.FileSystem {
	if c.Bytes == 0 {
		total, _ := memory()
		c.Bytes = int64(total / 2)
	}
	if c.Files == 0 {
		c.Files = mostFiles() / 2
	}
	c.Source = &contents
	return memfs.New(c)
}

// makeFolders creates a folder and its missing parents. Existing folders are not an error.
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

// mountArchive mounts one of the user's archives at its path. The archive holds a folder, or exactly one
// file if m.File is set.
func mountArchive(v *fs.View, p Platform, m guest.Mount) error {
	image, err := p.Archive(m.Archive)
	if err != nil {
		return err
	}
	if m.Deferred {
		return mountFolder(v, tarfs.Deferred(image, memfs.Config{Source: &contents}), m)
	}
	system, err := tarfs.Load(image, memfs.Config{Source: &contents})
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

// mountFolder mounts a file system at a folder, which it creates if needed.
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

// onlyFile returns the single file of an archive.
func onlyFile(system fs.FileSystem) (file fs.Node, err error) {
	var name string
	err = system.Root().Read(0, func(e fs.Entry) bool {
		name = e.Name
		return false
	})
	if err != nil || name == "" {
		return nil, errors.Join(err, linux.ENOENT)
	}
	return system.Root().Lookup(name)
}

// ownFolders creates the working folder and the home folder if they are missing, and makes the program's
// user their owner. Folders on a read-only mount are skipped.
func ownFolders(v *fs.View, c guest.Config) error {
	for _, name := range [...]string{c.Folder, os.Getenv("HOME")} {
		if !strings.HasPrefix(name, "/") || path.Clean(name) == "/" {
			continue
		}
		if _, err := v.LookupDir(v.Root, name); err == nil {
			continue
		}
		err := makeFolders(v, path.Clean(name), 0o755)
		if errors.Is(err, linux.EROFS) {
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := giveTo(v, name); err != nil {
			return err
		}
	}
	return nil
}

// putFile creates a file that shares the memory of content. An existing file and a read-only folder are
// left as they are.
func putFile(v *fs.View, name string, content []byte, mode fs.Mode) error {
	if content == nil {
		return nil
	}
	err := makeFolders(v, path.Dir(name), 0o755)
	if err == nil {
		err = v.Mknod(v.Root, name, fs.Regular|mode, fs.Device{})
	}
	if errors.Is(err, iofs.ErrExist) || errors.Is(err, linux.EROFS) {
		return nil
	}
	if err != nil {
		return err
	}
	place, err := v.Lookup(v.Root, name, false)
	if err != nil {
		return err
	}
	return memfs.SetContent(place.Node, content)
}

// aboutProcess returns the content of /proc. Its functions are called each time the program reads a file.
func aboutProcess(p Platform, c guest.Config, executable string) pseudo.Process {
	return pseudo.Process{
		PID: syscall.Getpid(), UID: syscall.Getuid(), GID: syscall.Getgid(),
		Executable: executable, Arguments: os.Args, Environment: os.Environ(),
		Mounts: append(diskMounts(), mountsOf(c)...), Hostname: func() string { return process.Uname().Nodename }, Domain: func() string { return process.Uname().Domainname }, Release: hostNames.Release + "-loam", Version: hostNames.Version,
		Started: time.Now(), Somaxconn: somaxconn, Congestions: congestion.Names(),
		Memory: memory, Alone: c.Machine, Used: used, Maps: p.Maps, ClockSource: p.ClockSource(c), Meltdown: p.Meltdown(),
		Disks: disksOf(disks),
		Net:   procNet(c), Interfaces: interfaces(c),
		Folder: func() string {
			dir, _ := process.Getcwd()
			return dir
		},
		Descriptors: func() []int { return process.Descriptors() },
		Descriptor:  func(fd int) string { return process.Name(fd) },
	}
}

// procNet returns the files of /proc/net. They read the global process when they are read.
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

// interfaceNames returns the names of the program's network interfaces.
func interfaceNames(c guest.Config) []string {
	names := []string{"lo"}
	for _, l := range c.Links {
		names = append(names, l.Name)
	}
	return names
}

// interfaces returns the folders of /sys/class/net. Like procNet, they read the global process.
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

// mountsOf returns the user's mounts and shmFolder for /proc/mounts (proc(5)). The root is the first.
func mountsOf(c guest.Config) (list []pseudo.Mount) {
	list = append(list, pseudo.Mount{Path: shmFolder, Writable: true})
	for _, m := range c.Mounts {
		if m.Path != "/" {
			list = append(list, pseudo.Mount{Path: m.Path, Writable: m.Writable})
		}
	}
	for i, s := range c.Shared {
		m := pseudo.Mount{Path: s.Path, Writable: true, Source: "folder" + strconv.Itoa(i), Kind: "9p"}
		if s.Path == "/" {
			list = slices.Insert(list, 0, m)
			continue
		}
		list = append(list, m)
	}
	return list
}

// somaxconn is the maximum length of a listener's accept queue (listen(2)).
const somaxconn = 4096

// memory returns the total and free memory of the machine, in bytes.
func memory() (total, free uint64) {
	var s syscall.Sysinfo_t
	if syscall.Sysinfo(&s) != nil {
		return 0, 0
	}
	return s.Totalram * uint64(s.Unit), s.Freeram * uint64(s.Unit)
}

// used returns the CPU time of the program on all CPUs.
func used() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(linux.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// hostname returns the configured host name, or else the host's.
func hostname(c guest.Config) string {
	if c.Hostname != "" {
		return c.Hostname
	}
	return hostNames.Nodename
}

// writeEtc writes network settings to files in /etc. It replaces existing files and ignores the program's
// user, so it needs no permissions. Files that cannot be written are left as they are.
func writeEtc(tree *fs.Tree, files map[string]string) error {
	v := fs.NewView(tree)
	for name, text := range files {
		f, err := v.Open(v.Root, "/etc/"+name, fs.WriteOnly|fs.Create|fs.Truncate, 0o644)
		if errors.Is(err, iofs.ErrNotExist) { // a symbolic link into a folder that is missing
			if _, err = createFile(v, "/etc/"+name); err == nil {
				f, err = v.Open(v.Root, "/etc/"+name, fs.WriteOnly, 0)
			}
		}
		if err == nil {
			_, err = f.Write([]byte(text))
			err = errors.Join(err, f.Close())
		}
		if err != nil && !cannotWrite(err) {
			return fmt.Errorf("/etc/%s: %w", name, err)
		}
	}
	return nil
}
