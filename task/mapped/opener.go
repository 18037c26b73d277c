package mapped

import (
	"io"

	"loam/exec"
	"loam/fs"
	"loam/mem/cache"
	"loam/posix"
	"loam/posix/credential"
)

// Opener opens files for package exec, as one process sees them.
type Opener struct {
	process *posix.Process
	files   *Files
	last    posix.Mapped
	held    []*File
	hidden  bool
}

// NewOpener returns an Opener. Release ends its use.
func NewOpener(files *Files, p *posix.Process) *Opener { return &Opener{process: p, files: files} }

// Release ends the use of the files that were opened. Those without a mapping can then be closed.
func (o *Opener) Release() { o.files.Unhold(o.held...) }

// Last returns the file that the last call of Open has opened. The caller must not use its handle.
func (o *Opener) Last() posix.Mapped { return o.last }

// Hidden reports whether the process may not read one of the files that were opened. A core dump would show their content
// (Linux's would_dump).
func (o *Opener) Hidden() bool { return o.hidden }

// Open returns an executable file, relative to a directory descriptor.
func (o *Opener) Open(dirfd int, path string) (exec.File, error) {
	m, errno := o.process.OpenExecutable(dirfd, path)
	if errno != 0 {
		return exec.File{}, errno
	}
	o.last = m
	who := o.process.View().Who
	o.hidden = o.hidden || !who.May(m.Place.Node.Attr(), fs.ToRead)
	f := o.files.Object(m)
	o.held = append(o.held, f)
	return exec.File{Reader: cachedReader{f.File}, Object: f.File}, nil
}

// cachedReader reads a file through its pages.
type cachedReader struct{ *cache.File }

// ReadAt implements io.ReaderAt.
func (r cachedReader) ReadAt(b []byte, offset int64) (int, error) {
	n, err := r.File.ReadAt(b, offset)
	if err == nil && n < len(b) {
		err = io.EOF
	}
	return n, err
}

// Privileges returns the privileges that an executable file gives its program: the set-user-ID and set-group-ID bits, and
// file capabilities. On a mount with NoSetID, it gives none.
func Privileges(m posix.Mapped) credential.File {
	if m.Place != (fs.Place{}) && m.Place.On(fs.NoSetID) {
		return credential.File{}
	}
	const groupExecute = 0o010
	a := m.Attr
	f := credential.File{
		SetUID: a.Mode&fs.SetUID != 0, SetGID: a.Mode&fs.SetGID != 0 && a.Mode&groupExecute != 0, UID: a.UID, GID: a.GID,
	}
	if n, ok := m.Node.(fs.Attributed); ok {
		if b, err := n.Xattr(fs.CapabilityXattr); err == nil {
			f.ParseFile(b)
		}
	}
	return f
}
