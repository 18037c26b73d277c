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

// This file gives a guest files of the host. They are packed into archives when the guest starts (fs/tarfs),
// and the guest inherits the archives. Changes that the guest makes to the files do not reach the host.

// Volume is a folder or a file of the host that is copied into the guest.
type Volume struct {
	Host     string // path on the host
	Guest    string // absolute path in the guest
	Writable bool   // writes succeed and stay in the guest's memory; otherwise they fail with EROFS
	own      bool   // only the files directly in the folder, each of at most mostOwn bytes
	deferred bool   // a folder that the guest loads on first access
}

// systemFiles are files that programs expect on any system: users and groups, names of services and
// protocols, the time zone, and trusted certificates (crypto/x509, root_linux.go). The guest overwrites
// those that describe its network.
var systemFiles = []string{
	"/etc/passwd", "/etc/group", "/etc/services", "/etc/protocols", "/etc/nsswitch.conf", "/etc/hosts", "/etc/mime.types",
	"/etc/localtime", "/etc/timezone", "/etc/os-release",
	"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
	"/etc/pki/tls/cacert.pem", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem",
}

// zones is the folder of time zones. They are many files, and few programs use them. So they are in an
// archive of their own, which a guest loads on first access.
const zones = "/usr/share/zoneinfo"

// File names of the two archives in the cache.
const (
	filesArchive = "files.tar"
	zonesArchive = "zones.tar" // does not exist if the host has no time zones
)

// openSystem gives the guest the archives of systemFiles and of zones. The archives are packed again when a
// system file or the folder of zones has changed.
func openSystem(c cache, give func(*os.File) int) ([]guest.Mount, error) {
	parts := []string{"system files, and zones"}
	for _, name := range append([]string{zones}, systemFiles...) {
		if st, err := os.Stat(name); err == nil {
			parts = append(parts, fmt.Sprintln(name, st.Size(), st.ModTime().UnixNano(), st.Mode()))
		}
	}
	dir := c.path("system", digest(parts...))
	if err := c.fill(dir, packSystem); err != nil {
		return nil, err
	}
	files, err := os.Open(filepath.Join(dir, filesArchive))
	if err != nil {
		return nil, err
	}
	mounts := []guest.Mount{{Archive: give(files), Path: "/"}}
	f, err := os.Open(filepath.Join(dir, zonesArchive))
	if err == nil {
		mounts = append(mounts, guest.Mount{Archive: give(f), Path: zones, Writable: true, Deferred: true})
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return mounts, nil
}

// packSystem packs the two archives into a folder.
func packSystem(dir string) error {
	err := packTo(filepath.Join(dir, filesArchive), func(w io.Writer) (tarfs.Packed, error) { return tarfs.PackPaths(w, systemFiles) })
	if st, serr := os.Stat(zones); err != nil || serr != nil || !st.IsDir() {
		return err
	}
	return packTo(filepath.Join(dir, zonesArchive), func(w io.Writer) (tarfs.Packed, error) { return tarfs.Pack(w, zones) })
}

// packTo packs an archive into a file.
func packTo(name string, pack func(io.Writer) (tarfs.Packed, error)) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = pack(f)
	return errors.Join(err, f.Close())
}

// mostOwn is the size limit of files in an own volume, in bytes.
const mostOwn = 1 << 20

// check returns an error for a volume that cannot be packed.
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

// pack writes the archive of a volume to w, and returns how the guest mounts it under the archive's number.
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
	return guest.Mount{Archive: number, Path: path.Clean(v.Guest), File: !st.IsDir(), Writable: v.Writable, Deferred: v.deferred}, nil
}

// openVolumes packs the volumes and the system files into archives. The function give
// passes an archive to the guest and returns its number there.
func openVolumes(volumes []Volume, give func(*os.File) int) ([]guest.Mount, error) {
	c, err := openCache()
	if err != nil {
		return nil, err
	}
	mounts, err := openSystem(c, give)
	if err != nil {
		return nil, err
	}
	more, err := packVolumes(volumes, give)
	return append(mounts, more...), err
}

// packVolumes packs the volumes.
func packVolumes(volumes []Volume, give func(*os.File) int) (mounts []guest.Mount, err error) {
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
