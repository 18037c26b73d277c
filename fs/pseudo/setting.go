package pseudo

import (
	"strings"

	"loam/abi/linux"
	"loam/fs"
)

// Setting is a file that root may write. Text returns its content. Set is called with the bytes of a write and their offset in the file. It
// returns the number of bytes that it has used, or an error, which is returned to the writer. With an error, the number does not matter.
type Setting struct {
	Text func() string
	Set  func(text string, offset int64) (int, error)
}

// setting adds a file that root may write.
func (f *FileSystem) setting(path string, s Setting) {
	n := setting{file{text: s.Text}, s.Set}
	n.node = f.newNode(fs.Regular | 0o644)
	if f.isSysctl(path) {
		f.add(path, &sysctl{n, strings.HasPrefix(path, "sys/net/")})
	} else {
		f.add(path, &n)
	}
}

// isSysctl reports whether a path is below /proc/sys.
func (f *FileSystem) isSysctl(path string) bool {
	return f.magic == ProcMagic && strings.HasPrefix(path, "sys/")
}

// setting is a file that its owner, root, may write.
type setting struct {
	file
	set func(text string, offset int64) (int, error)
}

// Change implements fs.Node. O_TRUNC succeeds, and has no effect.
func (s *setting) Change(c fs.Change) error {
	if c.Fields == fs.SetSize {
		return nil
	}
	return linux.EPERM
}

// Open implements fs.Node.
func (s *setting) Open(fs.Flags) (fs.Handle, error) { return settingHandle{s}, nil }

// settingHandle is an open setting. Each read generates the text.
type settingHandle struct{ *setting }

// ReadAt implements fs.Handle.
func (h settingHandle) ReadAt(p []byte, offset int64) (int, error) {
	return handle(h.text()).ReadAt(p, offset)
}

// WriteAt implements fs.Handle. An empty write has no effect. A write that fails writes no bytes.
func (h settingHandle) WriteAt(p []byte, offset int64) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := h.set(string(p), offset)
	if err != nil {
		return 0, err
	}
	return n, nil
}

// Append implements fs.Handle. The size of the file is 0, so the offset is 0.
func (h settingHandle) Append(p []byte) (int, int64, error) {
	n, err := h.WriteAt(p, 0)
	return n, int64(n), err
}

// Immediate implements fs.Immediate.
func (h settingHandle) Immediate() {}

// Sync implements fs.Handle.
func (h settingHandle) Sync() error { return linux.EINVAL }

// Close implements fs.Handle.
func (h settingHandle) Close() error { return nil }

// sysctl is a setting in /proc/sys. On Linux, the user ID decides who may write it: user 0 needs no capability, and CAP_DAC_OVERRIDE does
// not suffice for another user. With CAP_NET_ADMIN, any user may write settings of the network.
type sysctl struct {
	setting
	network bool
}

// Allows implements fs.Judge.
func (s *sysctl) Allows(c *fs.Credentials, w fs.Wish) bool {
	bits := s.mode
	if c.UID == 0 || s.network && c.Has(fs.ConfigureNet) {
		bits >>= 6
	}
	return w&^fs.Wish(bits&7) == 0
}

// Open implements fs.Node.
func (s *sysctl) Open(fs.Flags) (fs.Handle, error) {
	return sysctlHandle{settingHandle{&s.setting}, s}, nil
}

// sysctlHandle is an open sysctl.
type sysctlHandle struct {
	settingHandle
	of *sysctl
}

// AllowsWrite implements fs.Restricted.
func (h sysctlHandle) AllowsWrite(c *fs.Credentials) bool { return h.of.Allows(c, fs.ToWrite) }

// fixed is a file in /proc/sys that no caller may write, even with CAP_DAC_OVERRIDE.
type fixed struct{ file }

// Allows implements fs.Judge.
func (f *fixed) Allows(_ *fs.Credentials, w fs.Wish) bool { return w&^fs.Wish(f.mode&7) == 0 }
