package rt

import (
	"archive/tar"
	"io"
	"os"
	"path"

	"loam/fs"
	"loam/unikernel/guest"
)

// Results: files that a program leaves for the loam command, such as the profiles of
// a test. They are sent when it ends by itself, since its files end with it.

// resultFolders makes the folders of results, which on the host are there.
func resultFolders(v *fs.View, c guest.Config) error {
	for _, name := range c.ResultFolders {
		if err := makeFolders(v, name, 0o777); err != nil {
			return err
		}
	}
	for _, name := range c.Results {
		if err := makeFolders(v, path.Dir(name), 0o777); err != nil {
			return err
		}
	}
	return nil
}

// sendResults packs those that are there. A file that cannot be read is left out: the
// program may not have come so far.
func sendResults(to io.Writer, names []string) {
	archive := tar.NewWriter(to)
	defer archive.Close()
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		err = archive.WriteHeader(&tar.Header{Name: name, Size: int64(len(data)), Mode: 0o644, Typeflag: tar.TypeReg})
		if err == nil {
			_, err = archive.Write(data)
		}
		if err != nil {
			return
		}
	}
}
