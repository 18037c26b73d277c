package unikernel

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"loam/fs/tarfs"
	"loam/unikernel/guest"
)

// Files of the host that a guest has. They are packed when it starts (fs/tarfs), and
// it inherits the archives: nothing that it does to them reaches the host.

// Volume is a folder or a file of the host.
type Volume struct {
	Host     string // what is packed
	Guest    string // its absolute path in the guest
	Writable bool   // what the guest writes there stays in its memory; else it is EROFS
	own      bool   // of a folder only the files that lie in it, if they are not large
}

// systemFiles are those that programs expect of a system, whatever they do: who is
// who, names of services and protocols, the time zone, and whose certificates are
// trusted (crypto/x509, root_linux.go). What the network says of these is written
// over them in the guest.
var systemFiles = []string{
	"/etc/passwd", "/etc/group", "/etc/services", "/etc/protocols", "/etc/nsswitch.conf", "/etc/hosts", "/etc/mime.types",
	"/etc/localtime", "/etc/timezone", "/etc/os-release", "/usr/share/zoneinfo",
	"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
	"/etc/pki/tls/cacert.pem", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
}

// systemArchive opens the archive of systemFiles, which is made when one of them has
// changed.
func systemArchive(c cache) (*os.File, error) {
	parts := []string{"system files"}
	for _, name := range systemFiles {
		if st, err := os.Stat(name); err == nil {
			parts = append(parts, fmt.Sprintln(name, st.Size(), st.ModTime().UnixNano(), st.Mode()))
		}
	}
	const name = "files.tar"
	dir := c.path("system", digest(parts...))
	err := c.fill(dir, func(tmp string) error {
		f, err := os.Create(filepath.Join(tmp, name))
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = tarfs.PackPaths(f, systemFiles)
		return err
	})
	if err != nil {
		return nil, err
	}
	return os.Open(filepath.Join(dir, name))
}

// mostOwn is the size of the largest file that is not large, in bytes.
const mostOwn = 1 << 20

// check refuses what cannot be packed, in one line.
func (v *Volume) check() error {
	_, err := os.Stat(v.Host)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errorf("name a folder or a file that is there", "-v: there is no %s", v.Host)
	case err != nil:
		return errorf("name a folder or a file that can be read", "-v: %v", err)
	case !path.IsAbs(v.Guest) || path.Clean(v.Guest) == "/":
		return errorf("name an absolute path other than /", "-v: %q is no place in the program's files", v.Guest)
	}
	return nil
}

// pack writes the archive of a volume, which will have a number, and returns how it
// is mounted.
func (v *Volume) pack(w io.Writer, number int) (guest.Mount, error) {
	if err := v.check(); err != nil {
		return guest.Mount{}, err
	}
	st, err := os.Stat(v.Host)
	switch {
	case err != nil:
	case v.own:
		_, err = tarfs.PackOwn(w, v.Host, mostOwn)
	default:
		_, err = tarfs.Pack(w, v.Host)
	}
	if err != nil {
		return guest.Mount{}, errorf("name a folder or a file that can be read", "-v %s: %v", v.Host, err)
	}
	return guest.Mount{Archive: number, Path: path.Clean(v.Guest), File: !st.IsDir(), Writable: v.Writable}, nil
}

// openVolumes gives the guest its files: give has it inherit a file, and returns
// the archive's number there.
func openVolumes(volumes []Volume, give func(*os.File) int) ([]guest.Mount, error) {
	c, err := openCache()
	if err != nil {
		return nil, err
	}
	system, err := systemArchive(c)
	if err != nil {
		return nil, err
	}
	mounts := []guest.Mount{{Archive: give(system), Path: "/"}}
	for _, v := range volumes {
		f, err := memoryFile("volume")
		if err != nil {
			return nil, err
		}
		m, err := v.pack(f, give(f))
		if err != nil {
			return nil, err
		}
		mounts = append(mounts, m)
	}
	return mounts, nil
}
